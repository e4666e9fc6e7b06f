#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sequences over HTTP with NVIDIA's client: an ONNX model and a C backend, with state that the server keeps."""
import os
import threading
import unittest

import numpy as np
import onnx
import onnx.parser
import tritonclient.http as client
from tritonclient.utils import InferenceServerException

import support

# Y is the sum of X within the sequence, and F the flag START.
ADDER = """
<ir_version: 8, opset_import: ["" : 17]>
adder (float[N, 2] X, float[N, 1] START, float[N, 2] SUM) => (float[N, 2] Y, float[N, 2] NEXT, float[N, 1] F) {
    NEXT = Add(X, SUM)
    Y = Identity(NEXT)
    F = Identity(START)
}
"""
ADDER_CONFIG = """
backend: "onnxruntime"
max_batch_size: 4
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  STRATEGY
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
  state { input_name: "SUM" output_name: "NEXT" data_type: TYPE_FP32 dims: [ 2 ] }
}
"""
ACCUMULATOR_CONFIG = """
backend: "accumulator"
input { name: "INPUT" data_type: TYPE_FP32 dims: 1 }
output [ { name: "OUTPUT" data_type: TYPE_FP32 dims: 1 }, { name: "COUNT" data_type: TYPE_INT64 dims: 1 } ]
sequence_batching {
  oldest { max_candidate_sequences: 4 }
  max_sequence_idle_microseconds: 60000000
  state [
    { input_name: "SUM" output_name: "NEXT_SUM" data_type: TYPE_FP32 dims: 1 },
    { input_name: "NUMBER" output_name: "NEXT_NUMBER" data_type: TYPE_INT64 dims: 1 }
  ]
}
"""


def values(name, array):
    data = client.InferInput(name, array.shape, "FP32")
    data.set_data_from_numpy(array)
    return [data]


class Sequences(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = support.Repository()
        model = os.path.join(cls.repository.path, "adder.onnx")
        onnx.save(onnx.parser.parse_model(ADDER), model)
        for name, strategy in (("direct", "direct { }"), ("oldest", "oldest { max_candidate_sequences: 8 }")):
            cls.repository.add(name, model, ADDER_CONFIG.replace("STRATEGY", strategy))
        os.remove(model)
        cls.repository.add("accumulator", config=ACCUMULATOR_CONFIG)
        cls.server = support.Server("--model-repository", cls.repository.path)
        cls.client = client.InferenceServerClient(f"127.0.0.1:{cls.server.port}")

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.__exit__()
        cls.repository.__exit__()

    def add(self, model, sequence, x, connection=None, **flags):
        result = (connection or self.client).infer(model, values("X", np.array([[x, 2 * x]], np.float32)), sequence_id=sequence, **flags)
        return result.as_numpy("Y").tolist()[0], result.as_numpy("F").tolist()[0][0]

    def test_an_onnx_model_has_one_sum_per_sequence(self):
        for model in ("direct", "oldest"):
            with self.subTest(model):
                self.assertEqual(self.add(model, 1, 1, sequence_start=True), ([1, 2], 1))
                self.assertEqual(self.add(model, "one", 10, sequence_start=True), ([10, 20], 1))
                self.assertEqual(self.add(model, 1, 2), ([3, 6], 0))
                self.assertEqual(self.add(model, "one", 5, sequence_end=True), ([15, 30], 0))
                self.assertEqual(self.add(model, 1, 3, sequence_end=True), ([6, 12], 0))
                self.assertEqual(self.add(model, 1, 4, sequence_start=True, sequence_end=True), ([4, 8], 1))

    def test_states_are_no_inputs_of_clients(self):
        metadata = self.client.get_model_metadata("direct")
        self.assertEqual([tensor["name"] for tensor in metadata["inputs"]], ["X"])
        self.assertEqual(sorted(tensor["name"] for tensor in metadata["outputs"]), ["F", "Y"])
        config = self.client.get_model_config("direct")
        self.assertEqual(config["sequence_batching"]["state"][0]["input_name"], "SUM")
        self.assertIn("sequence", self.client.get_server_metadata()["extensions"])

    def test_a_backend_leaves_its_state_to_the_server(self):
        def add(sequence, value, **flags):
            result = self.client.infer("accumulator", values("INPUT", np.array([value], np.float32)), sequence_id=sequence, **flags)
            return result.as_numpy("OUTPUT")[0], result.as_numpy("COUNT")[0]
        self.assertEqual(add(1, 5, sequence_start=True), (5, 1))
        self.assertEqual(add(2, 7, sequence_start=True), (7, 1))
        self.assertEqual(add(1, 6), (11, 2))
        self.assertEqual(add(2, 1, sequence_end=True), (8, 2))
        self.assertEqual(add(1, 1, sequence_end=True), (12, 3))
        self.assertEqual(add(1, 1, sequence_start=True, sequence_end=True), (1, 1))

    def test_requests_must_begin_a_sequence(self):
        for flags, part in (({"sequence_id": 99}, "must specify the START flag on the first request of the sequence"),
                            ({}, "must specify a non-zero or non-empty correlation ID")):
            with self.assertRaisesRegex(InferenceServerException, part):
                self.client.infer("direct", values("X", np.zeros([1, 2], np.float32)), **flags)

    def test_many_clients_have_their_own_sums(self):
        """Twelve sequences share eight slots of two instances."""
        failures = []

        def work(sequence):
            connection = client.InferenceServerClient(f"127.0.0.1:{self.server.port}")
            for model in ("direct", "oldest"):
                for step in range(1, 21):
                    flags = {"sequence_start": step == 1, "sequence_end": step == 20}
                    total = self.add(model, 100 + sequence, sequence, connection, **flags)[0][0]
                    if total != step * sequence:
                        failures.append((model, sequence, step, total))
            connection.close()
        threads = [threading.Thread(target=work, args=(i,)) for i in range(1, 13)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    support.main()
