# SPDX-License-Identifier: Apache-2.0
"""Parts of models by providers, from the command line: a worker in another process, and ONNX Runtime.

    test_providers.py --kelp PATH [unittest arguments]
"""
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "examples/models/digits/1/model.onnx")
IMAGE = os.path.join(ROOT, "examples/requests/digits.npy")
KELP = None


def kelp(*words, **options):
    return subprocess.run([KELP, *words], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **options)


def outputs(*words, env=None):
    ended = kelp("run", MODEL, "--input", f"image=@{IMAGE}", "--json", *words, env=env)
    assert ended.returncode == 0, ended.stderr
    return {o["name"]: numpy.array(o["data"], dtype=numpy.float64) for o in json.loads(ended.stdout)["outputs"]}


def parts(*words, env=None):
    ended = kelp("inspect", MODEL, "--json", *words, env=env)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)["parts"]


def same(found):
    for name, expected in outputs().items():
        numpy.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-6)


class Providers(unittest.TestCase):
    def test_a_worker_runs_the_model(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "worker.sock")
            worker = subprocess.Popen([KELP, "worker", "--socket", path, "--threads", "1"], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            try:
                while not os.path.exists(path):
                    self.assertIsNone(worker.poll())
                    time.sleep(0.01)
                providers = f"remote:{path},cpu"
                [part] = parts("--providers", providers)
                self.assertEqual((part["provider"], part["inputs"]), (f"remote:{path}", ["image"]))
                same(outputs("--providers", providers))
            finally:
                worker.send_signal(signal.SIGTERM)
                worker.communicate(timeout=60)
            self.assertEqual(worker.returncode, 0)
            self.assertFalse(os.path.exists(path))
            ended = kelp("run", MODEL, "--random", "--providers", providers)
            self.assertEqual(ended.returncode, 1)
            self.assertIn("no worker answers at", ended.stderr)

    def test_a_missing_library_is_an_error(self):
        env = dict(os.environ, KELP_ONNXRUNTIME_LIBRARY="/nowhere/libonnxruntime.so")
        ended = kelp("run", MODEL, "--random", "--providers", "onnxruntime,cpu", env=env)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("/nowhere/libonnxruntime.so", ended.stderr)

    def test_an_unknown_provider_lists_those_there_are(self):
        ended = kelp("run", MODEL, "--random", "--providers", "nobody,cpu")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("there is no provider 'nobody'", ended.stderr)
        self.assertIn("cpu, null, onnxruntime", ended.stderr)


class OnnxRuntime(unittest.TestCase):
    def test_onnxruntime_runs_the_model(self):
        import onnxruntime
        [library, *_] = glob.glob(os.path.join(os.path.dirname(onnxruntime.__file__), "capi", "libonnxruntime.so*"))
        env = dict(os.environ, KELP_ONNXRUNTIME_LIBRARY=library)
        [part] = parts("--providers", "onnxruntime,cpu", env=env)
        self.assertEqual(part["provider"], "onnxruntime")
        same(outputs("--providers", "onnxruntime,cpu", env=env))


if __name__ == "__main__":
    at = sys.argv.index("--kelp")
    KELP = sys.argv[at + 1]
    del sys.argv[at : at + 2]
    unittest.main()
