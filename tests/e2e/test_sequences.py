#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sequences over HTTP with NVIDIA's client: an ONNX model and a C backend, with state that the server keeps.

The class Scheduling runs in NVIDIA's server instead if KELP_NVIDIA_WHEEL is set, as in test_backends.py."""
import os
import threading
import unittest

import numpy as np
import onnx
import onnx.parser
import tritonclient.http as client
from tritonclient.utils import InferenceServerException

import support
import test_backends

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


# The backend of tests/server/sequence_backend.c: OUT is sum, START, READY, END, CORRID, position in the batch, size of the batch.
REPORTER_CONFIG = """
backend: "sequence"
max_batch_size: SLOTS
input { name: "IN" data_type: TYPE_INT32 dims: 1 }
output { name: "OUT" data_type: TYPE_INT32 dims: 7 }
instance_group { count: 1 kind: KIND_CPU }
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  STRATEGY
  state {
    input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_INT32 dims: 1
    initial_state { name: "zero" data_type: TYPE_INT32 dims: 1 zero_data: true }
  }
}
"""
CONTROLS = "".join(f'control_input {{ name: "{kind}" control {{ kind: CONTROL_SEQUENCE_{kind} int32_false_true: [ 0, 1 ] }} }}\n'
                   for kind in ("START", "READY", "END"))
CONTROLS += 'control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }'


class Scheduling(unittest.TestCase):
    """What the backend sees of sequences, which is the same in both servers."""

    @classmethod
    def setUpClass(cls):
        wheel = os.environ.get("KELP_NVIDIA_WHEEL")
        cls.repository = support.Repository()
        for name, slots, strategy in (("direct", 4, "direct { }" + CONTROLS),
                                      ("oldest", 4, "oldest { max_candidate_sequences: 4 }" + CONTROLS),
                                      ("single", 1, "direct { }" + CONTROLS), ("iterative", 4, "iterative_sequence: true")):
            cls.repository.add(name, config=REPORTER_CONFIG.replace("SLOTS", str(slots)).replace("STRATEGY", strategy))
        words = ["--backend-directory", os.path.join(os.path.dirname(os.path.dirname(support.KELP)), "backends-test")]
        if wheel:
            cls.server = test_backends.NvidiaServer(wheel, cls.repository.path, *words)
        else:
            cls.server = support.Server("--model-repository", cls.repository.path, *words)
        cls.client = client.InferenceServerClient(f"127.0.0.1:{cls.server.port}", concurrency=4)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.__exit__()
        cls.repository.__exit__()

    def start(self, model, sequence, value, **flags):
        data = client.InferInput("IN", [1, 1], "INT32")
        data.set_data_from_numpy(np.array([[value]], np.int32))
        return self.client.async_infer(model, [data], sequence_id=sequence, **flags)

    def run_one(self, model, sequence, value, **flags):
        return self.start(model, sequence, value, **flags).get_result().as_numpy("OUT").tolist()[0]

    def test_slots_are_positions_in_the_batch(self):
        for row in ((1, 5, {"sequence_start": True}, [5, 1, 1, 0, 1, 0, 1]),
                    (2, 7, {"sequence_start": True}, [7, 1, 1, 0, 2, 1, 2]),  # with a null request
                    (1, 1, {}, [6, 0, 1, 0, 1, 0, 1]),  # without one behind it
                    (2, 1, {"sequence_end": True}, [8, 0, 1, 1, 2, 1, 2]),
                    (3, 3, {"sequence_start": True}, [3, 1, 1, 0, 3, 1, 2]),  # in the slot of 2
                    (1, 1, {"sequence_start": True}, [1, 1, 1, 0, 1, 0, 1]),  # begins again
                    (1, 1, {"sequence_end": True}, [2, 0, 1, 1, 1, 0, 1]),
                    (3, 1, {"sequence_end": True}, [4, 0, 1, 1, 3, 1, 2])):
            self.assertEqual(self.run_one("direct", row[0], row[1], **row[2]), row[3], row)

    def test_batches_of_the_oldest_requests_have_no_null_requests(self):
        for row in ((1, 5, {"sequence_start": True}, [5, 1, 1, 0, 1, 0, 1]),
                    (2, 7, {"sequence_start": True}, [7, 1, 1, 0, 2, 0, 1]),
                    (1, 1, {"sequence_end": True}, [6, 0, 1, 1, 1, 0, 1]),
                    (2, 1, {"sequence_end": True}, [8, 0, 1, 1, 2, 0, 1])):
            self.assertEqual(self.run_one("oldest", row[0], row[1], **row[2]), row[3], row)

    def test_iterative_requests_run_until_they_are_done(self):
        for value in (5, 9):
            self.assertEqual(self.run_one("iterative", 0, value), [value, -1, -1, -1, -1, 0, 1])

    def test_messages_are_those_of_triton(self):
        for sequence, part in ((99, "inference request for sequence 99 to model 'direct' must specify the START flag on the first "
                                    "request of the sequence"),
                               (0, "inference request to model 'direct' must specify a non-zero or non-empty correlation ID")):
            with self.assertRaises(InferenceServerException) as failure:
                self.run_one("direct", sequence, 1)
            self.assertEqual((failure.exception.status(), failure.exception.message()), ("400", part))

    def test_the_backlog_waits_and_times_out(self):
        self.assertEqual(self.run_one("single", 1, 5, sequence_start=True)[0], 5)
        waits = self.start("single", 2, 6, sequence_start=True, sequence_end=True)
        with self.assertRaisesRegex(InferenceServerException, r"^\[503\] timeout of the corresponding sequence has been expired"):
            data = client.InferInput("IN", [1, 1], "INT32")
            data.set_data_from_numpy(np.array([[1]], np.int32))
            self.client.infer("single", [data], sequence_id=3, sequence_start=True, timeout=20000)
        self.assertEqual(self.run_one("single", 1, 1, sequence_end=True)[0], 6)
        self.assertEqual(waits.get_result().as_numpy("OUT").tolist()[0][:5], [6, 1, 1, 1, 2])


if __name__ == "__main__":
    support.main()
