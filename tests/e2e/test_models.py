#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares whole models with ONNX Runtime for several batch sizes and lengths: over HTTP, with `kelp run`, and from C.

    test_models.py --kelp PATH --runner PATH [--minilm MODEL.onnx] [unittest arguments]

--runner: tests/ops/run_cases, the C program. The sentence embedding is tested if --minilm names the file that
tools/make_minilm.py writes.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
import tritonclient.http as triton
from tritonclient.utils import np_to_triton_dtype

import support
from support import ROOT, Repository, Server, kelp

sys.path.insert(0, os.path.join(ROOT, "tests", "ops"))
from cases.common import Writer  # noqa: E402

RTOL, ATOL = 1e-3, 1e-5
RUNNER = MINILM = None


def digits():
    random = np.random.default_rng(7)
    return [{"image": random.random((batch, 1, 8, 8), dtype=np.float32)} for batch in (1, 2, 3, 17, 32, 64)]


def sentences():
    random = np.random.default_rng(11)
    feeds = []
    for batch, length in ((1, 1), (1, 16), (3, 7), (2, 128), (5, 33), (1, 512)):
        mask = np.ones((batch, length), np.int64)
        for row in range(1, batch):  # padded to the longest
            mask[row, random.integers(1, length + 1):] = 0
        feeds.append({"input_ids": random.integers(1000, 30000, (batch, length)), "attention_mask": mask,
                      "token_type_ids": np.zeros((batch, length), np.int64)})
    return feeds


class Model:
    """A model, its inputs and its outputs. The tests are in ModelTests."""

    def __init__(self, name, path, feeds):
        self.name, self.path, self.feeds = name, path, feeds
        peer = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.outputs = [output.name for output in peer.get_outputs()]
        self.expected = [dict(zip(self.outputs, peer.run(None, feed))) for feed in feeds]


class ModelTests:
    def assert_same(self, found, expected):
        self.assertEqual(set(found), set(expected))
        for name, value in expected.items():
            self.assertEqual(found[name].dtype, value.dtype)
            np.testing.assert_allclose(found[name], value, rtol=RTOL, atol=ATOL, err_msg=name)

    def test_served_over_http(self):
        with Repository() as repository:
            repository.add(self.model.name, self.model.path)
            with Server("--model-repository", repository.path) as server:
                client = triton.InferenceServerClient(server.url, connection_timeout=60, network_timeout=60)
                for feed, expected in zip(self.model.feeds, self.model.expected):
                    inputs = []
                    for name, value in feed.items():
                        inputs.append(triton.InferInput(name, value.shape, np_to_triton_dtype(value.dtype)))
                        inputs[-1].set_data_from_numpy(value)
                    response = client.infer(self.model.name, inputs)
                    self.assert_same({name: response.as_numpy(name) for name in self.model.outputs}, expected)
                client.close()
                self.assertEqual(server.stop(), 0, server.log())

    def test_run_by_kelp_run(self):
        for feed, expected in zip(self.model.feeds, self.model.expected):
            with tempfile.TemporaryDirectory() as directory:
                words = ["run", self.model.path, "--output-dir", directory]
                for name, value in feed.items():
                    np.save(os.path.join(directory, "in_" + name), value)
                    words += ["--input", f"{name}=@{directory}/in_{name}.npy"]
                ended = kelp(*words)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assert_same({name: np.load(os.path.join(directory, name + ".npy")) for name in self.model.outputs}, expected)

    def test_run_by_a_c_program(self):
        model = onnx.load(self.model.path)
        with tempfile.TemporaryDirectory() as directory:
            writer = Writer(directory)
            for index, (feed, expected) in enumerate(zip(self.model.feeds, self.model.expected)):
                writer.case(f"{self.model.name}_{index}", model, list(feed.items()), list(expected.items()), RTOL, ATOL)
            writer.close()
            for threads in ("1", "3"):
                ended = subprocess.run([RUNNER, directory, "--threads", threads], capture_output=True, text=True, check=False,
                                       timeout=support.PATIENCE_S)
                self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
                self.assertIn(f"{len(self.model.feeds)} passed, 0 failed", ended.stdout)


class Digits(ModelTests, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Model("digits", os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx"), digits())


class SentenceEmbedding(ModelTests, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Model("minilm", MINILM, sentences())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--runner", required=True)
    parser.add_argument("--minilm")
    options, sys.argv[1:] = parser.parse_known_args()
    RUNNER, MINILM = options.runner, options.minilm
    if not MINILM:
        del SentenceEmbedding
    support.main()
