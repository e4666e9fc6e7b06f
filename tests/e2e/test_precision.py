#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bfloat16 is used only if the option or the model's parameter selects it: in `kelp run`, in a plan, and in a server.

    test_precision.py --kelp PATH [unittest arguments]
"""
import json
import os
import shutil
import tempfile
import unittest

import numpy as np
import onnxruntime

import support
from support import ROOT, Repository, Server, kelp

DIGITS = os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx")
IMAGES = os.path.join(ROOT, "examples", "requests", "digits.npy")
PARAMETER = 'backend: "kelp" parameters {{ key: "precision" value {{ string_value: "{}" }} }}'


def run(model, *words):
    ended = kelp("run", model, "--input", f"image=@{IMAGES}", "--json", *words)
    assert ended.returncode == 0, ended.stderr
    return np.array(next(output["data"] for output in json.loads(ended.stdout)["outputs"] if output["name"] == "probabilities"))


class Precision(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.f32, cls.bf16 = run(DIGITS), run(DIGITS, "--precision", "bf16")

    def test_run_rounds_only_with_the_option(self):
        session = onnxruntime.InferenceSession(DIGITS, providers=["CPUExecutionProvider"])
        expected = session.run(["probabilities"], {"image": np.load(IMAGES)})[0].reshape(-1)
        np.testing.assert_allclose(self.f32, expected, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(self.bf16, expected, atol=2e-2)
        self.assertGreater(np.abs(self.bf16 - expected).max(), 1e-5)
        np.testing.assert_array_equal(run(DIGITS, "--precision", "f32"), self.f32)

    def test_a_plan_keeps_the_precision(self):
        for precision, expected in (("f32", self.f32), ("bf16", self.bf16)):
            for words in ((), ("--refit",), ("--no-fusion",)):
                with self.subTest(precision=precision, words=words):
                    plan = os.path.join(self.directory, "digits.plan")
                    ended = kelp("build", DIGITS, "-o", plan, "--precision", precision, "--min", "image:1x1x8x8", "--max", "image:64x1x8x8",
                                 *words)
                    self.assertEqual(ended.returncode, 0, ended.stderr)
                    if "--no-fusion" in words:
                        np.testing.assert_allclose(run(plan), expected, atol=1e-5 if precision == "f32" else 2e-2)
                    else:
                        np.testing.assert_array_equal(run(plan), expected)

    def served(self, server, model):
        images = np.load(IMAGES)
        status, response = server.infer(model, {"inputs": [{"name": "image", "shape": list(images.shape), "datatype": "FP32",
                                                          "data": images.reshape(-1).tolist()}], "outputs": [{"name": "probabilities"}]})
        self.assertEqual(status, 200, response)
        return np.array(response["outputs"][0]["data"])

    def test_the_precision_of_a_served_model_is_a_parameter(self):
        with Repository() as repository:
            repository.add("plain", DIGITS)
            repository.add("fast", DIGITS, PARAMETER.format("bf16"))
            repository.add("exact", DIGITS, PARAMETER.format("f32"))
            for words, plain in (((), self.f32), (("--precision", "bf16"), self.bf16)):
                with Server("--model-repository", repository.path, *words) as server:
                    for model, expected in (("plain", plain), ("fast", self.bf16), ("exact", self.f32)):
                        with self.subTest(words=words, model=model):
                            np.testing.assert_allclose(self.served(server, model), expected, rtol=1e-6, atol=1e-9)

    def test_an_unknown_precision_is_rejected(self):
        ended = kelp("run", DIGITS, "--random", "--precision", "f16")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("f32|bf16", ended.stderr)
        with Repository() as repository:
            repository.add("odd", DIGITS, PARAMETER.format("fp8"))
            with Server("--model-repository", repository.path, ready=False) as server:
                self.assertNotEqual(server.process.wait(support.PATIENCE_S), 0)
                self.assertIn("parameter 'precision' must be f32 or bf16, found 'fp8'", server.log())


if __name__ == "__main__":
    support.main()
