#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kelp.ray on a cluster of two nodes on this machine: batch inference with Ray Data, and a deployment of Ray Serve.

    test_ray.py        needs ray[data,serve] and the package kelp (scripts/ray.sh)
"""
import json
import os
import socket
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

os.environ.setdefault("RAY_DEDUP_LOGS", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import kelp
import numpy as np
import pyarrow as pa
import ray
import ray.data
from kelp.ray import BatchPredictor, array_of, column_of, deployment, table
from ray import serve
from ray.cluster_utils import Cluster
from ray.data.extensions import ArrowTensorArray

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIGITS = os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx")
ROWS = 1000


def images(count=ROWS):
    return np.random.default_rng(5).random((count, 1, 8, 8), dtype=np.float32)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class NamedNode(BatchPredictor):
    """Adds the node that computed a row, and how many threads it used."""

    def __call__(self, batch):
        found = super().__call__(batch)
        node = ray.get_runtime_context().get_node_id()
        threads = self._session.get_session_options().intra_op_num_threads
        return found.append_column("node", [[node] * len(found)]).append_column("threads", [[threads] * len(found)])


def setUpModule():
    global cluster
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    cluster.add_node(num_cpus=2)
    ray.init(address=cluster.address, log_to_driver=False)


def tearDownModule():
    serve.shutdown()
    ray.shutdown()
    cluster.shutdown()


class Columns(unittest.TestCase):
    def test_columns_are_used_in_place(self):
        floats = np.arange(24, dtype=np.float32)
        for column, shape in ((pa.array(floats), (24,)), (column_of(floats.reshape(6, 2, 2)), (6, 2, 2)),
                              (pa.FixedSizeListArray.from_arrays(pa.array(floats), 4), (6, 4)),
                              (ArrowTensorArray.from_numpy(floats.reshape(6, 2, 2)), (6, 2, 2))):
            with self.subTest(str(column.type)):
                found = array_of("x", pa.chunked_array([column]))
                self.assertEqual(found.shape, shape)
                self.assertTrue(np.shares_memory(found, floats))
                self.assertEqual(found.ravel().tolist(), floats.tolist())
                part = array_of("x", pa.chunked_array([column.slice(1, 2)]))
                self.assertEqual(part.tolist(), floats.reshape(shape)[1:3].tolist())
                self.assertTrue(np.shares_memory(part, floats))

    def test_other_columns_are_copied(self):
        floats = np.arange(8, dtype=np.float32).reshape(4, 2)
        for values, expected in ((pa.chunked_array([column_of(floats[:1]), column_of(floats[1:])]), floats),
                                 (pa.chunked_array([pa.array([1.5]), pa.array([2.5, 3.5])]), np.array([1.5, 2.5, 3.5])),
                                 (pa.chunked_array([["a", "bc"]]), np.array(["a", "bc"], object)), (pa.chunked_array([[True, False]]), np.array([True, False])),
                                 (pa.chunked_array([[[1, 2], [3, 4]]]), np.array([[1, 2], [3, 4]]))):
            found = array_of("x", values)
            self.assertEqual((found.dtype, found.tolist()), (expected.dtype, expected.tolist()))

    def test_null_values_are_rejected(self):
        with self.assertRaisesRegex(ValueError, "column 'x' has 2 null values"):
            array_of("x", pa.chunked_array([pa.array([1.0, None, None])]))


class Data(unittest.TestCase):
    def predict(self, dataset, kind=NamedNode, batch_format="pyarrow", **arguments):
        return dataset.map_batches(kind, fn_constructor_args=[DIGITS], fn_constructor_kwargs=arguments, batch_format=batch_format, batch_size=64, num_cpus=1,
                                   compute=ray.data.ActorPoolStrategy(size=2), scheduling_strategy="SPREAD")

    def test_a_dataset_on_two_nodes(self):
        rows = images()
        probabilities, digits = kelp.InferenceSession(DIGITS).run(None, {"image": rows})
        dataset = ray.data.from_arrow([table(id=np.arange(ROWS), image=rows).slice(at, 125) for at in range(0, ROWS, 125)])
        found = self.predict(dataset).take_all()
        self.assertEqual(sorted(row["id"] for row in found), list(range(ROWS)))
        self.assertEqual(set(found[0]), {"id", "probabilities", "digit", "node", "threads"})
        for row in found:
            self.assertEqual(row["digit"], digits[row["id"]])
            np.testing.assert_allclose(row["probabilities"], probabilities[row["id"]], rtol=1e-5, atol=1e-6)
        self.assertEqual({row["node"] for row in found}, {node["NodeID"] for node in ray.nodes()})
        self.assertEqual({row["threads"] for row in found}, {1})

    def test_numpy_batches_and_names(self):
        rows = images(100)
        _, digits = kelp.InferenceSession(DIGITS).run(None, {"image": rows})
        dataset = ray.data.from_numpy(rows).rename_columns({"data": "picture"})
        found = self.predict(dataset, BatchPredictor, "numpy", inputs={"image": "picture"}, outputs=["digit"], keep=["picture"]).take_all()
        self.assertEqual(set(found[0]), {"picture", "digit"})
        self.assertEqual(sorted(row["digit"] for row in found), sorted(digits))

    def test_wrong_columns_and_types(self):
        predictor = BatchPredictor(DIGITS)
        with self.assertRaisesRegex(ValueError, "no column 'image'; it has 'picture'"):
            predictor({"picture": images(1)})
        with self.assertRaisesRegex(kelp.KelpError, "expected float32, found float64"):
            predictor({"image": images(1).astype("float64")})
        with self.assertRaisesRegex(ValueError, "no input 'imag'; it has 'image'"):
            BatchPredictor(DIGITS, inputs={"imag": "picture"})
        with self.assertRaisesRegex(kelp.KelpError, "no output 'digits'"):
            BatchPredictor(DIGITS, outputs=["digits"])({"image": images(1)})


class Serve(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.port = free_port()
        serve.start(http_options={"host": "127.0.0.1", "port": cls.port})
        cls.handle = serve.run(deployment(DIGITS, num_replicas=2, ray_actor_options={"num_cpus": 0.5}), name="digits", route_prefix="/digits")
        cls.batched = serve.run(deployment(DIGITS, name="batched", max_batch_size=8, batch_wait_timeout_s=0.2, max_ongoing_requests=16,
                                           ray_actor_options={"num_cpus": 0.5}), name="batched", route_prefix="/batched")
        cls.session = kelp.InferenceSession(DIGITS)

    def post(self, body, path="/digits"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=body.encode(), method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def test_http(self):
        with open(ROOT + "/examples/requests/digits.json", encoding="utf-8") as file:
            body = json.load(file)
        status, response = self.post(json.dumps({**body, "id": "7"}))
        self.assertEqual((status, response["id"]), (200, "7"))
        found = {output["name"]: output for output in response["outputs"]}
        self.assertEqual((found["digit"]["data"], found["digit"]["datatype"]), ([3, 7, 4], "INT64"))
        self.assertEqual(found["probabilities"]["shape"], [3, 10])
        status, response = self.post(json.dumps({**body, "outputs": [{"name": "digit"}]}))
        self.assertEqual([output["name"] for output in response["outputs"]], ["digit"])

    def test_wrong_requests(self):
        image = {"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": [0] * 64}
        for body, message in (("{", "Expecting"), ("[]", "list 'inputs'"), ('{"inputs": [{"name": "image"}]}', "a member 'datatype'"),
                              (json.dumps({"inputs": [{**image, "shape": [2, 1, 8, 8]}]}), "reshape"),
                              (json.dumps({"inputs": [{**image, "datatype": "FP64"}]}), "expected float32, found float64"),
                              (json.dumps({"inputs": [{**image, "datatype": "FP31"}]}), "unknown datatype 'FP31'"),
                              (json.dumps({"inputs": [{**image, "name": "imag"}]}), "missing input 'image'"),
                              (json.dumps({"inputs": [image], "outputs": [{"name": "digits"}]}), "no output 'digits'")):
            status, response = self.post(body)
            self.assertEqual(status, 400, body)
            self.assertIn(message, response["error"])

    def test_handles(self):
        rows = images(3)
        found = self.handle.infer.remote({"image": rows}).result(timeout_s=60)
        self.assertEqual(found["digit"].tolist(), self.session.run(["digit"], {"image": rows})[0].tolist())

    def test_batches(self):
        """Requests with one and with several rows run together; one with a wrong shape fails alone."""
        rows = images(12)
        digits = self.session.run(["digit"], {"image": rows})[0]
        parts = [rows[at:at + 1 + at % 2] for at in range(8)]
        pending = [self.batched.infer.remote({"image": part}) for part in parts] + [self.batched.infer.remote({"image": rows[:, :, :7]})]
        for at, response in enumerate(pending[:-1]):
            self.assertEqual(response.result(timeout_s=60)["digit"].tolist(), digits[at:at + 1 + at % 2].tolist())
        with self.assertRaisesRegex(Exception, "input 'image' has the wrong shape"):
            pending[-1].result(timeout_s=60)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        os.environ.setdefault("RAY_TMPDIR", directory)
        ended = unittest.main(exit=False, verbosity=2)
    sys.exit(not ended.result.wasSuccessful())
