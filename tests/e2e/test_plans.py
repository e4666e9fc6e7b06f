#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `kelp build`, the commands that use a plan (run, inspect, bench, serve), `kelp doctor`, and KELP_ISA, with their errors.

    test_plans.py --kelp PATH [unittest arguments]
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import support
from support import ROOT, Server, kelp

DIGITS = os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx")
IMAGES = os.path.join(ROOT, "examples", "requests", "digits.npy")


class Plans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.plan = os.path.join(cls.directory, "digits.plan")
        ended = kelp("build", DIGITS, "-o", cls.plan, "--min", "image:1x1x8x8", "--max", "image:4x1x8x8",
                     "--min", "image:5x1x8x8", "--max", "image:64x1x8x8")
        assert ended.returncode == 0, ended.stderr
        assert "for provider cpu" in ended.stderr, ended.stderr

    def test_a_plan_computes_what_onnx_runtime_computes(self):
        images = np.load(IMAGES)
        expected = onnxruntime.InferenceSession(DIGITS, providers=["CPUExecutionProvider"]).run(["probabilities", "digit"], {"image": images})
        ended = kelp("run", self.plan, "--input", f"image=@{IMAGES}", "--json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        found = {output["name"]: np.array(output["data"]).reshape(output["shape"]) for output in json.loads(ended.stdout)["outputs"]}
        np.testing.assert_allclose(found["probabilities"], expected[0], rtol=1e-3, atol=1e-5)
        np.testing.assert_array_equal(found["digit"], expected[1])

    def classifier(self):
        """A classifier as skl2onnx writes it: a label, and a sequence of maps with the probabilities."""
        probabilities = onnx.ValueInfoProto(name="probabilities")
        probabilities.type.sequence_type.elem_type.map_type.key_type = TensorProto.INT64
        probabilities.type.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
        nodes = [helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", classlabels_ints=[0, 1, 2],
                                  coefficients=[0.1 * i for i in range(9)], intercepts=[0.3, 0.2, 0.1], post_transform="SOFTMAX"),
                 helper.make_node("ZipMap", ["scores"], ["probabilities"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2])]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
                                  [helper.make_tensor_value_info("label", TensorProto.INT64, ["n"]), probabilities])
        path = os.path.join(self.directory, "classifier.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)],
                                    ir_version=8), path)
        return path

    def test_a_plan_keeps_outputs_that_are_sequences_and_maps(self):
        path, plan = self.classifier(), os.path.join(self.directory, "classifier.plan")
        self.assertEqual(kelp("build", path, "-o", plan).returncode, 0)
        for file in (path, plan):
            ended = kelp("run", file, "--random", "--shape", "x=2x3", "--json")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual([output["name"] for output in json.loads(ended.stdout)["outputs"]], ["label", "probabilities"])
        direct, planned = (kelp("run", file, "--random", "--shape", "x=2x3", "--json").stdout for file in (path, plan))
        self.assertEqual(direct, planned)

    def test_a_model_with_list_outputs_serves_its_tensors(self):
        for source, name in ((self.classifier(), "model.onnx"), (os.path.join(self.directory, "classifier.plan"), "model.plan")):
            with self.subTest(name):
                if name == "model.plan":
                    self.assertEqual(kelp("build", self.classifier(), "-o", source).returncode, 0)
                repository = os.path.join(self.directory, "lists-" + name)
                os.makedirs(os.path.join(repository, "classifier", "1"))
                shutil.copy(source, os.path.join(repository, "classifier", "1", name))
                if name == "model.plan":
                    with open(os.path.join(repository, "classifier", "config.pbtxt"), "w", encoding="utf-8") as file:
                        file.write('backend: "kelp"\ndefault_model_filename: "model.plan"\n')
                with Server("--model-repository", repository) as server:
                    metadata = json.loads(server.call("GET", "/v2/models/classifier")[2])
                    self.assertEqual([output["name"] for output in metadata["outputs"]], ["label"])
                    status, response = server.infer("classifier", {"inputs": [
                        {"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [0, 0, 0]}]})
                    self.assertEqual(status, 200, response)
                    self.assertEqual([output["name"] for output in response["outputs"]], ["label"])
                    self.assertIn("output 'probabilities' is left out", server.log())

    def test_a_plan_of_every_model_computes_the_same(self):
        with open(os.path.join(support.MODELS, "index.tsv"), encoding="utf-8") as index:
            models = [line.split("\t")[0] for line in index
                      if line.strip() and line[0] != "#" and line.split("\t")[1].strip() == "good"]
        self.assertGreater(len(models), 5)
        compared = 0
        for model in models:
            with self.subTest(model=model):
                path, plan = os.path.join(support.MODELS, model), os.path.join(self.directory, "same.plan")
                ended = kelp("build", path, "-o", plan)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                direct, planned = (kelp("run", file, "--random", "--json") for file in (path, plan))
                self.assertEqual((planned.returncode, planned.stdout), (direct.returncode, direct.stdout), planned.stderr)
                compared += direct.returncode == 0
        self.assertGreater(compared, 3)

    def test_a_plan_is_inspected_and_benchmarked(self):
        ended = kelp("inspect", self.plan)
        self.assertIn("profile 1, image: min [5,1,8,8] opt [64,1,8,8] max [64,1,8,8]", ended.stdout)
        told = json.loads(kelp("inspect", self.plan, "--json").stdout)
        self.assertEqual([len(told["profiles"]), told["provider"]], [2, "cpu"])
        self.assertEqual(len(told["memory"]), 2)
        for memory in told["memory"]:
            self.assertGreater(memory["workspace_lower_bound_bytes"], 0)
            self.assertLess(memory["workspace_bytes"], 1.1 * memory["workspace_lower_bound_bytes"])
        self.assertRegex(ended.stdout, r"profile 1, workspace: \d+ bytes, of which \d+ live at once")
        ended = kelp("bench", self.plan, "--seconds", "0.1")
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_shapes_outside_the_profile_are_rejected(self):
        ended = kelp("run", self.plan, "--random", "--shape", "image=5x1x8x8")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("expected from [1,1,8,8] to [4,1,8,8], found [5,1,8,8]; profile 1 accepts it", ended.stderr)

    def test_a_plan_is_served(self):
        for platform in ("", 'platform: "tensorrt_plan"', 'backend: "kelp"\ndefault_model_filename: "model.plan"'):
            with self.subTest(platform=platform), tempfile.TemporaryDirectory() as repository:
                os.makedirs(os.path.join(repository, "digits", "1"))
                shutil.copy(self.plan, os.path.join(repository, "digits", "1", "model.plan"))
                if platform:
                    with open(os.path.join(repository, "digits", "config.pbtxt"), "w", encoding="utf-8") as file:
                        file.write(platform + "\n")
                with Server("--model-repository", repository) as server:
                    pixels = np.load(IMAGES)[:1]
                    status, response = server.infer("digits", {"inputs": [
                        {"name": "image", "datatype": "FP32", "shape": list(pixels.shape), "data": pixels.ravel().tolist()}]})
                    self.assertEqual(status, 200, response)
                    self.assertEqual({output["name"] for output in response["outputs"]}, {"probabilities", "digit"})

    def test_errors_are_reported(self):
        altered = os.path.join(self.directory, "altered.plan")
        with open(self.plan, "rb") as file:
            data = bytearray(file.read())
        data[len(data) // 2] ^= 255
        with open(altered, "wb") as file:
            file.write(data)
        text = os.path.join(self.directory, "text.plan")
        with open(text, "w", encoding="utf-8") as file:
            file.write("this is no plan")
        for words, said in (
                (("run", altered, "--random"), "was altered"),
                (("run", text, "--random"), "no engine provider recognizes this plan"),
                (("run", os.path.join(self.directory, "missing.plan"), "--random"), "missing.plan"),
                (("build", DIGITS, "-o", altered, "--max", "image"), "option '--max': expected NAME:1x3x224x224, found 'image'"),
                (("build", DIGITS, "-o", altered, "--max", "image:1x8x"), "dimensions such as 1x3x224x224"),
                (("build", DIGITS, "-o", altered, "--max", "picture:1x1x8x8"), "has no input 'picture'"),
                (("build", DIGITS, "-o", altered, "--max", "image:8x1x8x8"), "the minimum shape is missing"),
                (("build", DIGITS, "-o", altered, "--min", "image:1x1x9x9", "--max", "image:1x1x9x9"), "the network declares [-1,1,8,8]"),
                (("build", DIGITS, "-o", altered, "--provider", "gpu"), "no provider 'gpu' offers engines"),
                (("build", DIGITS, "-o", altered, "--refit-weights", "no_such_weights"), "no weights 'no_such_weights'"),
                (("build", DIGITS, "-o", altered, "--compute-capability", "86,89"), "'cpu' has no devices"),
                (("build", DIGITS, "-o", altered, "--compute-capability", ",86"), "such as 86 or 86,89, found ',86'"),
                (("build", DIGITS, "-o", altered, "--compute-capability", "8.6"), "such as 86 or 86,89, found '8.6'"),
                (("build", DIGITS, "-o", altered, "--weight-streaming"), "'cpu' does not support builder flag WEIGHT_STREAMING (bit 5): it supports BF16,"),
                (("build", DIGITS, "-o", altered, "--version-compatible"), "does not support builder flag VERSION_COMPATIBLE"),
                (("build", DIGITS, "-o", altered, "--timing-cache", os.path.join(self.directory, "times")), "'cpu' has no timing cache"),
                (("build", IMAGES, "-o", altered), "expected an ONNX ModelProto"),
                (("build", DIGITS, "-o", "/no/such/directory/x.plan"), "/no/such/directory/x.plan")):
            with self.subTest(words=words[2:]):
                ended = kelp(*words)
                self.assertEqual(ended.returncode, 1, ended.stdout)
                self.assertIn(said, ended.stderr)

    def test_compute_capabilities_are_lists(self):
        library = os.path.join(os.path.dirname(os.path.dirname(support.KELP)), "tests", "plugins", "libraries", "libcopy_engine.so")
        path = os.path.join(self.directory, "copy.plan")
        build = ("build", DIGITS, "-o", path, "--plugin", library, "--provider", "copy")
        for words, wanted in ((("86",), [86]), (("86,89",), [86, 89]), (("86,89", "120"), [86, 89, 120])):
            ended = kelp(*build, *[word for capability in words for word in ("--compute-capability", capability)])
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(np.fromfile(path, "int32", offset=8).tolist(), wanted)
        for words in ("86,", "86,,89", "86,x", "86;89", "86,1000"):
            self.assertIn(f"found '{words}'", kelp(*build, "--compute-capability", words).stderr)

    def test_an_interrupted_build_leaves_no_file(self):
        """The signal may come at any time: the program is killed, stops at the next operator, or has already finished."""
        model = os.path.join(self.directory, "large.onnx")
        weights = [numpy_helper.from_array(np.zeros((512, 512), np.float32), f"w{i}") for i in range(24)]
        nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(24)]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("n", 512)) for name in ("x0", "x24")]
        graph = helper.make_graph(nodes, "large", ends[:1], ends[1:], weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
        for delay in (0, 0.01, 0.03, 0.06, 0.1):
            with tempfile.TemporaryDirectory() as empty:
                process = subprocess.Popen([support.KELP, "build", model, "-o", os.path.join(empty, "large.plan")], stderr=subprocess.PIPE, text=True)
                time.sleep(delay)
                process.send_signal(signal.SIGINT)
                said = process.communicate(timeout=support.PATIENCE_S)[1]
                if process.returncode == 0:
                    self.assertEqual(os.listdir(empty), ["large.plan"])
                    continue
                self.assertEqual(os.listdir(empty), [])
                self.assertIn(process.returncode, (1, -signal.SIGINT, 128 + signal.SIGINT), said)
                if process.returncode == 1:
                    self.assertIn("interrupted: '", said)

    def test_a_lower_optimization_level_makes_a_smaller_plan(self):
        small, large = (os.path.join(self.directory, f"level{level}.plan") for level in (1, 4))
        outputs = []
        for level, path in ((1, small), (4, large)):
            ended = kelp("build", DIGITS, "-o", path, "--level", str(level))
            self.assertEqual(ended.returncode, 0, ended.stderr)
            outputs.append(kelp("run", path, "--input", f"image=@{IMAGES}", "--json").stdout)
        self.assertEqual(*outputs)
        self.assertLess(os.path.getsize(small), os.path.getsize(large))

    def test_doctor_lists_the_providers(self):
        ended = kelp("doctor")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"cpu +usable +plan files, models, subgraphs\n")

    def test_doctor_tells_why_a_provider_does_not_work(self):
        environment = {**os.environ, "KELP_ONNXRUNTIME_LIBRARY": "/nowhere/libonnxruntime.so", "KELP_TENSORRT_LIBRARY": "/nowhere/libnvinfer.so"}
        ended = kelp("doctor", env=environment)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"onnxruntime +missing +models, subgraphs\n +cannot load shared library '/nowhere/libonnxruntime.so'")
        ended = kelp("doctor", "--json", env=environment)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        found = json.loads(ended.stdout)
        self.assertIn(found["version"], kelp("--version").stdout)
        providers = {provider["name"]: provider for provider in found["providers"]}
        self.assertEqual({name: provider["usable"] for name, provider in providers.items()},
                         {"cpu": True, "null": True, "onnxruntime": False, "kernels": True, "tensorrt": False})
        self.assertEqual(providers["onnxruntime"]["offers"], ["models", "subgraphs"])
        for name, path in (("onnxruntime", "/nowhere/libonnxruntime.so"), ("tensorrt", "/nowhere/libnvinfer.so")):
            self.assertIn(path, providers[name]["details"])
        library, *_ = glob.glob(os.path.join(os.path.dirname(onnxruntime.__file__), "capi", "libonnxruntime.so*"))
        self.assertRegex(kelp("doctor", env={**environment, "KELP_ONNXRUNTIME_LIBRARY": library}).stdout, r"onnxruntime +usable")


    def test_doctor_lists_the_optional_libraries(self):
        files = ("libturbojpeg.so.0", "libpng16.so.16", "libwebp.so.7", "libtiff.so.6", "libopenjp2.so.7", "libpcre2-8.so.0")
        said = kelp("doctor").stdout
        for file in files:
            self.assertRegex(said, rf"\n +{re.escape(file)} +found    [\w ]+: [\w, *]+\n")
        packages = ("libturbojpeg0", "libpng16-16", "libwebp7", "libtiff6", "libopenjp2-7", "libpcre2-8-0")
        said = kelp("doctor", env=self.without(*files)).stdout
        for file, package in zip(files, packages):
            self.assertRegex(said, rf"\n +{re.escape(file)} +missing  [\w ]+: [\w, *]+; install Debian's {package}\n")

    def test_doctor_lists_the_libraries_of_the_server(self):
        self.assertRegex(kelp("doctor").stdout, r"libraries loaded on demand\n\n  openssl +usable +TLS\n  curl +usable +export of traces, kelp pull, kelp serve ADDRESS, kelp top, kelp bench URL\n")
        environment = self.without("libcurl.so.4", "libssl.so.3")
        said = kelp("doctor", env=environment).stdout
        self.assertRegex(said, r"\n  openssl +missing +TLS\n +TLS needs the library 'libssl.so.3', of Debian package libssl3\n")
        self.assertRegex(said, r"\n  curl +missing +export of traces, kelp pull, kelp serve ADDRESS, kelp top, kelp bench URL\n +the library 'libcurl.so.4' of Debian package libcurl4 is missing\n")
        libraries = json.loads(kelp("doctor", "--json", env=environment).stdout)["libraries"]
        self.assertEqual([(library["name"], library["usable"]) for library in libraries], [("openssl", False), ("curl", False)])
        self.assertIn("libcurl4", libraries[1]["details"])

    def without(self, *files):
        """Returns an environment in which the loader finds unusable files in place of libraries."""
        directory = tempfile.mkdtemp(dir=self.directory)
        for file in files:
            with open(os.path.join(directory, file), "w", encoding="utf-8") as made:
                made.write("not a library")
        return {**os.environ, "LD_LIBRARY_PATH": directory}

    def save_node(self, op, kind, shape, out_kind, out_shape, **attributes):
        path = os.path.join(self.directory, op + ".onnx")
        graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], **attributes)], "one_node", [helper.make_tensor_value_info("x", kind, shape)],
                                  [helper.make_tensor_value_info("y", out_kind, out_shape)])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
        return path

    def test_a_missing_library_is_named_with_its_package(self):
        path = self.save_node("ImageDecoder", TensorProto.UINT8, ["n"], TensorProto.UINT8, ["h", "w", 3])
        image = os.path.join(self.directory, "x.npy")
        np.save(image, np.frombuffer(b"\xff\xd8\xff\xe0" + bytes(60), np.uint8))
        ended = kelp("run", path, "--input", "x=@" + image, env=self.without("libturbojpeg.so.0"))
        self.assertEqual(ended.returncode, 1)
        self.assertIn("JPEG images need the library 'libturbojpeg.so.0', of Debian package libturbojpeg0", ended.stderr)
        path = self.save_node("RegexFullMatch", TensorProto.STRING, ["n"], TensorProto.BOOL, ["n"], pattern="a+")
        ended = kelp("run", path, "--random", env=self.without("libpcre2-8.so.0"))
        self.assertEqual(ended.returncode, 1)
        self.assertIn("regular expressions need the library 'libpcre2-8.so.0', of Debian package libpcre2-8-0", ended.stderr)


class InstructionSets(unittest.TestCase):
    """KELP_ISA selects the kernels; an unknown value is rejected."""

    def with_isa(self, isa, *words):
        return kelp(*words, env={**os.environ, "KELP_ISA": isa})

    def test_every_instruction_set_computes_the_same(self):
        run = "run", DIGITS, "--input", f"image=@{IMAGES}", "--output", "digit"
        best = self.with_isa("", *run)
        self.assertEqual(best.returncode, 0, best.stderr)
        names = re.search("expected (.*), or nothing", self.with_isa("sse9", *run).stderr).group(1)
        for isa in re.split(", | or ", names):
            with self.subTest(isa=isa):
                ended = self.with_isa(isa, *run)
                if ended.returncode:
                    self.assertIn("which this CPU lacks", ended.stderr)
                    continue
                self.assertEqual(ended.stdout, best.stdout)
                self.assertIn(f"kernels for {isa}\n", self.with_isa(isa, "doctor").stdout)

    def test_an_unknown_instruction_set_is_rejected(self):
        ended = self.with_isa("sse9", "run", DIGITS, "--random")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("KELP_ISA is 'sse9': expected portable", ended.stderr)


if __name__ == "__main__":
    support.main()
