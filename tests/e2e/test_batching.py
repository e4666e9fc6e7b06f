#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dynamic batching with Triton's client: batches of ONNX models, ragged batches, priorities, timeouts, the order of responses and
`--auto-batch`.

    test_batching.py --kelp PATH [unittest arguments]
"""
import gzip
import json
import os
import random
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import tritonclient.http as triton
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

import support
from support import ROOT, Repository, Server

DIGITS = os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx")
IDENTITY = """backend: "identity" max_batch_size: 4 instance_group [ { kind: KIND_CPU count: %d } ]
input { name: "INPUT0" data_type: TYPE_INT32 dims: -1 } output { name: "OUTPUT0" data_type: TYPE_INT32 dims: -1 }
"""


def ragged_model(path):
    """y = 2 x; the other outputs are made of the inputs that `batch_input` adds, one row for each request."""
    def tensor(name, dtype, *shape):
        return helper.make_tensor_value_info(name, dtype, shape)

    def constant(name, values):
        return helper.make_node("Constant", [], [name], value=helper.make_tensor(name, TensorProto.INT64, [len(values)], values))

    i32, f32, i64 = TensorProto.INT32, TensorProto.FLOAT, TensorProto.INT64
    nodes = [
        helper.make_node("Add", ["x", "x"], ["y"]),
        helper.make_node("Identity", ["count"], ["count_out"]),
        helper.make_node("Identity", ["sum"], ["sum_out"]),
        constant("zero", [0]), constant("one", [1]), constant("last", [-1]), constant("end", [1 << 30]),
        helper.make_node("Slice", ["offsets", "zero", "last"], ["begin"]),
        helper.make_node("Slice", ["offsets", "one", "end"], ["stop"]),
        helper.make_node("Sub", ["stop", "begin"], ["length_out"]),
        helper.make_node("Shape", ["longest"], ["longest_shape"]),
        helper.make_node("Shape", ["count"], ["rows"]),
        helper.make_node("Expand", ["longest_shape", "rows"], ["longest_out"]),
        helper.make_node("Identity", ["shapes"], ["shapes_out"]),
        helper.make_node("Identity", ["flat"], ["flat_out"]),
    ]
    inputs = [tensor("x", f32, "n"), tensor("count", i32, "b"), tensor("sum", f32, "b"), tensor("offsets", i32, "b1"),
              tensor("longest", f32, "m"), tensor("shapes", i64, "r", "d"), tensor("flat", i32, "rd")]
    outputs = [tensor("y", f32, "n"), tensor("count_out", i32, "b"), tensor("sum_out", f32, "b"), tensor("length_out", i32, "b"),
               tensor("longest_out", i64, "b"), tensor("shapes_out", i64, "r", "d"), tensor("flat_out", i32, "rd")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "ragged", inputs, outputs),
                                opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def batch_input(kind, target, dtype):
    return f'batch_input {{ kind: {kind} target_name: "{target}" data_type: {dtype} source_input: "x" }}\n'


RAGGED = """backend: "onnxruntime" max_batch_size: 8 instance_group [ { count: 1 } ]
input { name: "x" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
output [ { name: "y" data_type: TYPE_FP32 dims: -1 }, { name: "count_out" data_type: TYPE_INT32 dims: 1 reshape { shape: [ ] } },
         { name: "sum_out" data_type: TYPE_FP32 dims: 1 reshape { shape: [ ] } },
         { name: "length_out" data_type: TYPE_INT32 dims: 1 reshape { shape: [ ] } },
         { name: "longest_out" data_type: TYPE_INT64 dims: 1 reshape { shape: [ ] } },
         { name: "shapes_out" data_type: TYPE_INT64 dims: 1 },
         { name: "flat_out" data_type: TYPE_INT32 dims: 1 reshape { shape: [ ] } } ]
batch_output { target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }
""" + batch_input("BATCH_ELEMENT_COUNT", "count", "TYPE_INT32") + \
    batch_input("BATCH_ACCUMULATED_ELEMENT_COUNT", "sum", "TYPE_FP32") + \
    batch_input("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", "offsets", "TYPE_INT32") + \
    batch_input("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", "longest", "TYPE_FP32") + \
    batch_input("BATCH_ITEM_SHAPE", "shapes", "TYPE_INT64") + \
    batch_input("BATCH_ITEM_SHAPE_FLATTEN", "flat", "TYPE_INT32")


def digits_request():
    image = triton.InferInput("image", [1, 1, 8, 8], "FP32")
    return [image.set_data_from_numpy(np.full((1, 1, 8, 8), 0.5, np.float32))]


def identity_request(value):
    data = triton.InferInput("INPUT0", [1, 1], "INT32")
    return [data.set_data_from_numpy(np.array([[value]], np.int32))]


class Batching(unittest.TestCase):
    def serve(self, *words, hold=0):
        """Schedulers execute nothing until `hold` requests are queued."""
        os.environ["TRITONSERVER_DELAY_SCHEDULER"] = str(hold)
        try:
            server = Server("--model-repository", self.repository.path, *words)
        finally:
            del os.environ["TRITONSERVER_DELAY_SCHEDULER"]
        self.addCleanup(server.__exit__)
        self.url = server.url
        return server

    def client(self):
        """A client must stay on one thread."""
        return triton.InferenceServerClient(self.url, connection_timeout=60, network_timeout=60)

    def infer(self, model, inputs, **options):
        with self.client() as client:
            return client.infer(model, inputs, **options)

    def setUp(self):
        self.repository = Repository()
        self.addCleanup(self.repository.__exit__)
        self.pool = ThreadPoolExecutor(32)
        self.addCleanup(self.pool.shutdown)

    def start(self, model, inputs, **options):
        return self.pool.submit(self.infer, model, inputs, **options)

    def statistics(self, model):
        with self.client() as client:
            return client.get_inference_statistics(model)["model_stats"][0]

    def config(self, model):
        with self.client() as client:
            return client.get_model_config(model)

    def test_an_onnx_model_runs_batches_of_the_preferred_size(self):
        self.repository.add("digits", model=DIGITS, config='backend: "onnxruntime" max_batch_size: 32 instance_group [ { count: 1 } ] '
                            'dynamic_batching { preferred_batch_size: 16 max_queue_delay_microseconds: 60000000 }')
        self.serve()
        alone = None
        for _ in range(2):
            results = [self.start("digits", digits_request()) for _ in range(16)]
            for result in results:
                values = result.result().as_numpy(result.result().get_response()["outputs"][0]["name"])
                alone = values if alone is None else alone
                np.testing.assert_allclose(values, alone, rtol=1e-5)
        stats = self.statistics("digits")
        self.assertEqual((stats["inference_count"], stats["execution_count"]), (32, 2))
        self.assertEqual([batch["batch_size"] for batch in stats["batch_stats"]], [16])

    def test_ragged_requests_run_as_one_batch(self):
        self.repository.add("ragged", config=RAGGED + "dynamic_batching { preferred_batch_size: 3 "
                            "max_queue_delay_microseconds: 60000000 }")
        ragged_model(os.path.join(self.repository.path, "ragged", "1", "model.onnx"))
        self.serve()
        data = [np.arange(length, dtype=np.float32).reshape(1, length) for length in (2, 5, 3)]
        results = [self.start("ragged", [triton.InferInput("x", list(x.shape), "FP32").set_data_from_numpy(x)]) for x in data]
        sums = set()
        for x, result in zip(data, results):
            result = result.result()
            np.testing.assert_array_equal(result.as_numpy("y"), 2 * x)
            self.assertEqual(result.as_numpy("y").shape, x.shape)
            for name in ("count_out", "length_out", "flat_out"):
                self.assertEqual(result.as_numpy(name).tolist(), [[x.size]], name)
            self.assertEqual(result.as_numpy("shapes_out").tolist(), [[x.size]])
            self.assertEqual(result.as_numpy("longest_out").tolist(), [[5]])
            sums.add(result.as_numpy("sum_out").item())
        self.assertEqual(max(sums), 10)
        self.assertEqual(len(sums), 3)
        self.assertEqual(self.statistics("ragged")["execution_count"], 1)

    def test_a_ragged_model_without_batching_runs_single_requests(self):
        self.repository.add("ragged", config=RAGGED)
        ragged_model(os.path.join(self.repository.path, "ragged", "1", "model.onnx"))
        self.serve()
        x = np.ones((1, 4), np.float32)
        result = self.infer("ragged", [triton.InferInput("x", [1, 4], "FP32").set_data_from_numpy(x)])
        np.testing.assert_array_equal(result.as_numpy("y"), 2 * x)
        self.assertEqual(result.as_numpy("sum_out").tolist(), [[4]])

    def test_urgent_requests_come_first(self):
        self.repository.add("m", config=IDENTITY % 1 + 'dynamic_batching { preferred_batch_size: 1 priority_levels: 3 '
                            'default_priority_level: 2 } parameters { key: "execute_delay_ms" value { string_value: "100" } }')
        self.serve(hold=4)
        order, lock = [], threading.Lock()

        def send(priority):
            self.infer("m", identity_request(priority), priority=priority)
            with lock:
                order.append(priority)

        for sent in [self.pool.submit(send, priority) for priority in (3, 2, 1, 3)]:
            sent.result()
        self.assertEqual(order, [1, 2, 3, 3])

    def test_timeouts_and_full_queues_reject_requests(self):
        self.repository.add("m", config=IDENTITY % 1 + 'dynamic_batching { preferred_batch_size: 1 default_queue_policy { max_queue_size: 2 '
                            'default_timeout_microseconds: 60000000 allow_timeout_override: true } }')
        self.serve()
        slow = self.start("m", identity_request(0), parameters={"delay_ms": 3000})
        while not slow.done():
            late = self.start("m", identity_request(1), timeout=20000)
            try:
                late.result()
            except InferenceServerException as error:  # while the instance is busy
                self.assertIn("Request timeout expired", error.message())
                self.assertEqual(error.status(), "503")
                break
        self.assertFalse(slow.done())
        outcomes = [self.start("m", identity_request(2)) for _ in range(6)]
        failed = [one.exception() for one in outcomes if one.exception()]
        self.assertEqual(len(failed), 4)
        for error in failed:
            self.assertIn("Exceeds maximum queue size", error.message())
        slow.result()

    def test_a_full_queue_rejects_large_requests_before_they_are_decoded(self):
        """Otherwise the response to a body that is no JSON would be 400, as it is when the queue is not full."""
        self.repository.add("m", config=IDENTITY % 1 + "dynamic_batching { preferred_batch_size: 1 default_queue_policy { max_queue_size: 1 } }")
        server = self.serve()
        path, invalid = "/v2/models/m/infer", b"x" * 300000
        bodies = (invalid, {}), (gzip.compress(random.Random(1).randbytes(3000)), {"Content_Encoding": "gzip"})
        for body, headers in bodies:
            self.assertEqual(server.call("POST", path, body, **headers)[0], 400)
        numbers = [random.Random(2).randrange(1000000) for _ in range(5000)]
        packed = gzip.compress(json.dumps({"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1, 5000], "data": numbers}]}).encode())
        status, _, text = server.call("POST", path, packed, Content_Encoding="gzip")
        self.assertEqual((status, json.loads(text)["outputs"][0]["data"]), (200, numbers))
        # On a slow machine, the queue may be empty again before the requests arrive.
        self.assertTrue(any(self.rejects(server, path, bodies, delay_ms) for delay_ms in (3000, 30000)))

    def rejects(self, server, path, bodies, delay_ms):
        """Sends bodies to a model with a full queue. Returns false if it was not full long enough."""
        running = self.start("m", identity_request(0), parameters={"delay_ms": delay_ms})
        while "nv_inference_pending_request_count" not in server.metrics():
            time.sleep(0.01)
        queued = None
        while queued is None or queued.done():  # rejected until the first one is taken from the queue
            queued = self.start("m", identity_request(1))
            time.sleep(0.05)
        results = [server.call("POST", path, body, **headers) for body, headers in bodies]
        full = not running.done()
        running.result()
        queued.result()
        for status, _, text in results if full else []:
            self.assertEqual(status, 503, text)
            self.assertIn(b"Exceeds maximum queue size", text)
        return full

    def test_responses_keep_the_order_of_requests(self):
        self.repository.add("m", config=IDENTITY % 2 + "dynamic_batching { preferred_batch_size: 1 preserve_ordering: true }")
        server = self.serve(hold=2)
        first = self.start("m", identity_request(1), parameters={"delay_ms": 1000})
        while 'nv_inference_pending_request_count{model="m",version="1"} 1' not in server.metrics():
            self.assertFalse(first.done())
        began = time.monotonic()
        self.infer("m", identity_request(2))
        self.assertGreater(time.monotonic() - began, 0.9)  # it waits for the first response
        first.result()

    def test_a_latency_target_batches_concurrent_requests(self):
        self.repository.add("digits", model=DIGITS, config='backend: "onnxruntime" max_batch_size: 32 instance_group [ { count: 1 } ] '
                            'dynamic_batching { } parameters { key: "kelp_latency_target_us" value { string_value: "50000" } }')
        self.serve(hold=16)
        results = [self.start("digits", digits_request()) for _ in range(200)]
        self.assertEqual({result.exception() for result in results}, {None})
        stats = self.statistics("digits")
        self.assertEqual(stats["inference_count"], 200)
        self.assertLess(stats["execution_count"], 200)

    def test_auto_batch_batches_every_model_with_a_batch_dimension(self):
        self.repository.add("plain", model=DIGITS)
        self.repository.add("sized", model=DIGITS, config='backend: "onnxruntime" max_batch_size: 8')
        self.repository.add("single", config='backend: "identity" input { name: "INPUT0" data_type: TYPE_INT32 dims: [ 2 ] } '
                            'output { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 2 ] }')
        server = self.serve("--auto-batch")
        plain, sized, single = (self.config(name) for name in ("plain", "sized", "single"))
        self.assertEqual(plain["max_batch_size"], 64)
        self.assertEqual(plain["input"][0]["dims"], [1, 8, 8])
        self.assertIn("dynamic_batching", plain)
        self.assertEqual(sized["max_batch_size"], 8)
        self.assertIn("dynamic_batching", sized)
        self.assertNotIn("dynamic_batching", single)
        self.infer("plain", digits_request())
        self.assertEqual(server.stop(), 0)

    def test_a_default_batch_size_applies_to_models_with_a_batch_dimension(self):
        self.repository.add("plain", model=DIGITS)
        self.repository.add("sized", model=DIGITS, config='backend: "onnxruntime" max_batch_size: 8')
        for size, batches in (("5", True), ("1", False), ("0", False)):
            with self.subTest(size=size):
                server = self.serve("--backend-config", f"onnxruntime,default-max-batch-size={size}")
                plain, sized = self.config("plain"), self.config("sized")
                self.assertEqual((plain["max_batch_size"], sized["max_batch_size"]), (int(size), 8))
                self.assertEqual(plain["input"][0]["dims"], [1, 8, 8] if int(size) else [-1, 1, 8, 8])
                self.assertEqual("dynamic_batching" in plain, batches)
                self.infer("plain", digits_request())
                self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    support.main()
