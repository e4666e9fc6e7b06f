#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The example repository served by `kelp serve`, asked with Triton's client and with curl, answers as ONNX Runtime does; wrong
requests get clear errors and the server goes on.

    test_serve.py --kelp PATH [unittest arguments]
"""
import json
import os
import signal
import socket
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

import support
from support import ROOT, Server, read_json

DIGITS = os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx")


class Serving(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--model-repository", os.path.join(ROOT, "examples", "models"))
        cls.client = triton.InferenceServerClient(cls.server.url, connection_timeout=60, network_timeout=60)
        cls.peer = onnxruntime.InferenceSession(DIGITS, providers=["CPUExecutionProvider"])

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        code = cls.server.stop()
        if code:
            raise AssertionError(f"kelp serve ended with {code}:\n{cls.server.log()}")
        cls.server.__exit__()

    def test_the_table_of_models_is_printed(self):
        for model in ("digits", "addsub"):
            self.assertRegex(self.server.output, rf"\| {model} +\| 1 +\| READY +\|")

    def test_health_and_metadata_are_served(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("digits"))
        metadata = self.client.get_model_metadata("digits")
        self.assertEqual(metadata["inputs"], [{"name": "image", "datatype": "FP32", "shape": [-1, 1, 8, 8]}])
        self.assertEqual({output["name"] for output in metadata["outputs"]}, {"probabilities", "digit"})
        index = {model["name"]: model["state"] for model in self.client.get_model_repository_index()}
        self.assertEqual(index, {"digits": "READY", "addsub": "READY"})

    def digits(self, images, binary):
        given = triton.InferInput("image", images.shape, "FP32")
        given.set_data_from_numpy(images, binary_data=binary)
        wanted = [triton.InferRequestedOutput(name, binary_data=binary) for name in ("probabilities", "digit")]
        return self.client.infer("digits", [given], outputs=wanted)

    def test_digits_are_classified_as_by_onnx_runtime(self):
        random = np.random.default_rng(7)
        for batch in (1, 2, 3, 17, 64, 1):
            images = random.random((batch, 1, 8, 8), dtype=np.float32)
            expected = dict(zip(("probabilities", "digit"), self.peer.run(["probabilities", "digit"], {"image": images})))
            for binary in (False, True):
                with self.subTest(batch=batch, binary=binary):
                    response = self.digits(images, binary)
                    np.testing.assert_allclose(response.as_numpy("probabilities"), expected["probabilities"], rtol=1e-3, atol=1e-5)
                    np.testing.assert_array_equal(response.as_numpy("digit"), expected["digit"])

    def test_addsub_returns_sum_and_difference(self):
        random = np.random.default_rng(8)
        a, b = random.random((2, 4, 16), dtype=np.float32)
        inputs = []
        for name, value in (("INPUT0", a), ("INPUT1", b)):
            given = triton.InferInput(name, value.shape, "FP32")
            given.set_data_from_numpy(value)
            inputs.append(given)
        response = self.client.infer("addsub", inputs)
        np.testing.assert_array_equal(response.as_numpy("OUTPUT0"), a + b)
        np.testing.assert_array_equal(response.as_numpy("OUTPUT1"), a - b)

    def test_the_committed_requests_work_with_curl(self):
        for model in ("digits", "addsub"):
            response = subprocess.run(["curl", "-sS", "--fail-with-body", f"http://{self.server.url}/v2/models/{model}/infer", "-d",
                                     "@" + os.path.join(ROOT, "examples", "requests", f"{model}.json")],
                                    capture_output=True, text=True, check=False, timeout=support.PATIENCE_S)
            self.assertEqual(response.returncode, 0, response.stdout + response.stderr)
            found = {output["name"]: output for output in json.loads(response.stdout)["outputs"]}
            for expected in read_json("examples", "requests", f"{model}.expected.json")["outputs"]:
                output = found[expected["name"]]
                self.assertEqual(output["datatype"], expected["datatype"])
                self.assertEqual(output["shape"], expected["shape"])
                np.testing.assert_allclose(np.array(output["data"]).ravel(), np.array(expected["data"]).ravel(), rtol=1e-3, atol=1e-5)

    def expect_refusal(self, request, status, *words, model="digits"):
        found, response = self.server.infer(model, request)
        self.assertEqual(found, status, response)
        for word in words:
            self.assertIn(word, response["error"])
        self.assertTrue(self.client.is_server_ready())

    def request(self, **changes):
        request = read_json("examples", "requests", "digits.json")
        request["inputs"][0].update(changes)
        return request

    def test_an_unknown_model_is_rejected(self):
        found, response = self.server.infer("no_such_model", self.request())
        self.assertIn(found, (400, 404))
        self.assertIn("no_such_model", response["error"])
        with self.assertRaises(InferenceServerException):
            self.client.get_model_metadata("no_such_model")

    def test_an_unknown_input_is_rejected(self):
        self.expect_refusal(self.request(name="picture"), 400, "picture")

    def test_a_wrong_type_is_rejected(self):
        self.expect_refusal(self.request(datatype="INT64", data=[1] * 192), 400, "image")

    def test_a_wrong_shape_is_rejected(self):
        self.expect_refusal(self.request(shape=[3, 1, 4, 16]), 400, "image")

    def test_too_little_data_is_rejected(self):
        self.expect_refusal(self.request(data=[0.5] * 7), 400, "image")

    def test_an_unknown_output_is_rejected(self):
        request = self.request()
        request["outputs"] = [{"name": "letter"}]
        self.expect_refusal(request, 400, "letter")

    def test_invalid_json_is_rejected(self):
        self.expect_refusal('{"inputs": [', 400)

    def test_a_truncated_body_does_not_disturb_other_clients(self):
        """A client that closes its connection within a body gets no response; others are served."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as connection:
            connection.sendall(b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n{\"inputs\":")
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(60)
            response = connection.recv(4096)
        self.assertNotIn(b" 200 ", response.split(b"\r\n")[0])
        self.assertTrue(self.client.is_server_ready())

    def test_a_body_shorter_than_its_tensors_is_rejected(self):
        header = json.dumps({"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8],
                                         "parameters": {"binary_data_size": 256}}]}).encode()
        status, _, body = self.server.call("POST", "/v2/models/digits/infer", header + b"\0" * 100,
                                           Inference_Header_Content_Length=len(header))
        self.assertEqual(status, 400, body)
        self.assertTrue(self.client.is_server_ready())


class Metrics(unittest.TestCase):
    def test_latency_distributions_are_optional(self):
        words = ("--model-repository", os.path.join(ROOT, "examples", "models"))
        for more in ((), ("--metrics-config", "summary_latencies=true", "--metrics-config", "summary_quantiles=0.5:0.05,0.9:0.01")):
            with Server(*words, *more) as server:
                self.assertEqual(server.infer("digits", read_json("examples", "requests", "digits.json"))[0], 200)
                page = server.call("GET", "/metrics")[2].decode()
                self.assertEqual('nv_inference_request_summary_us{model="digits",version="1",quantile="0.9"}' in page, bool(more), page)
                self.assertEqual(server.stop(), 0)

    def test_wrong_arguments_are_rejected(self):
        for word, code, reason in (("summaries=true", 1, "expected KEY=VALUE with KEY one of"), ("summary_latencies", 1, "expected KEY=VALUE"),
                                   ("summary_latencies=1", 1, "'summary_latencies': expected true or false, found '1'")):
            ended = support.kelp("serve", "--model-repository", os.path.join(ROOT, "examples", "models"), "--http-port", "0",
                                 "--metrics-config", word)
            self.assertEqual((ended.returncode, reason in ended.stderr), (code, True), ended.stderr)


class Batching(unittest.TestCase):
    def test_a_strategy_limits_the_batches_of_an_onnx_model(self):
        strategy = os.path.join(os.path.dirname(os.path.dirname(support.KELP)), "backends-test", "strategy", "strategy.so")
        with support.Repository() as repository:
            repository.add("digits", model=DIGITS, config='backend: "onnxruntime" max_batch_size: 16 dynamic_batching { } '
                                                          'instance_group [ { count: 1 } ]')
            os.symlink(strategy, os.path.join(repository.path, "digits", "batchstrategy.so"))
            with Server("--model-repository", repository.path) as server, ThreadPoolExecutor(16) as pool:
                request = {"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": [0.5] * 64}]}
                self.assertEqual({code for code, _ in pool.map(lambda _: server.infer("digits", request), range(200))}, {200})
                stats = json.loads(server.call("GET", "/v2/models/digits/stats")[2])["model_stats"][0]
                self.assertEqual(sum(batch["batch_size"] * batch["compute_infer"]["count"] for batch in stats["batch_stats"]), 200)
                self.assertLessEqual(max(batch["batch_size"] for batch in stats["batch_stats"]), 2)


class Stopping(unittest.TestCase):
    def test_a_request_that_never_ends_delays_the_end_by_one_exit_timeout(self):
        """The execution does not notice that its request is cancelled."""
        timeout_s = 6
        with support.Repository() as repository:
            repository.add("endless", config="""
                backend: "identity"
                parameters { key: "execute_delay_ms" value { string_value: "60000" } }
                input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 1 ] } ]
                output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 1 ] } ]
                instance_group [ { kind: KIND_CPU count: 1 } ]""")
            with Server("--model-repository", repository.path, "--exit-timeout-secs", timeout_s) as server, \
                    socket.create_connection(("127.0.0.1", server.port)) as client:
                body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1], "data": [1]}]})
                client.sendall(f"POST /v2/models/endless/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
                while "nv_inference_pending_request_count" not in server.metrics():
                    time.sleep(0.05)
                time.sleep(0.2)
                began = time.monotonic()
                self.assertNotEqual(server.stop(), 0)
                self.assertTrue(timeout_s - 2 < time.monotonic() - began < timeout_s + 2)
                self.assertIn("Exit timeout expired", server.log())

    def test_a_queued_request_is_cancelled_at_the_end(self):
        """A model that calls itself blocks its only instance, until the call that waits in the queue is cancelled."""
        backends = os.path.join(os.path.dirname(os.path.dirname(support.KELP)), "backends-test")
        with support.Repository() as repository:
            repository.add("endless", config="""
                backend: "sdkservice"
                input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 1 ] } ]
                output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 1 ] } ]
                instance_group [ { kind: KIND_CPU count: 1 } ]""")
            with Server("--model-repository", repository.path, "--backend-directory", backends, "--exit-timeout-secs",
                        3) as server, socket.create_connection(("127.0.0.1", server.port)) as client:
                body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1], "data": [1]}]})
                client.sendall(f"POST /v2/models/endless/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
                while 'nv_inference_pending_request_count{model="endless",version="1"} 1' not in server.metrics():
                    time.sleep(0.05)
                self.assertEqual(server.stop(), 0)

    def test_signals_end_it_quickly_and_cleanly(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number), Server("--model-repository", os.path.join(ROOT, "examples", "models")) as server:
                with socket.create_connection(("127.0.0.1", server.port), timeout=60):
                    began = time.monotonic()
                    self.assertEqual(server.stop(number), 0, server.log())
                    # While an idle connection is open, Triton waits for its exit timeout of 30 s.
                    self.assertLess(time.monotonic() - began, 20)

    def test_a_busy_server_is_not_ready_before_it_stops_accepting(self):
        """Without --drain-secs, the server accepts connections until no request has begun for 0.25 s; an idle one stops at once."""
        with Server("--model-repository", os.path.join(ROOT, "examples", "models")) as server:
            with open(os.path.join(ROOT, "examples", "requests", "digits.json")) as file:
                request = json.load(file)
            self.assertEqual(server.infer("digits", request)[0], 200)
            server.process.send_signal(signal.SIGTERM)
            last = time.monotonic()
            try:
                while server.call("GET", "/v2/health/ready")[0] == 200:
                    last = time.monotonic()
                for _ in range(20):  # each on a connection of its own
                    last = time.monotonic()
                    self.assertEqual(server.infer("digits", request)[0], 200)
                    self.assertEqual(server.call("GET", "/v2/health/ready")[0], 503)
            except OSError:  # only if this process paused so long that the server may stop
                self.assertGreaterEqual(time.monotonic() - last, 0.2)
            self.assertEqual(server.process.wait(support.PATIENCE_S), 0, server.log())
            self.assertGreaterEqual(time.monotonic() - last, 0.15)
            self.assertIn("kelp: not ready, stopping in 5 s or when there are no requests", server.log())
        with Server("--model-repository", os.path.join(ROOT, "examples", "models")) as server:
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(support.PATIENCE_S), 0, server.log())
            self.assertNotIn("not ready", server.log())

    def test_a_drained_server_answers_and_is_not_ready(self):
        with Server("--model-repository", os.path.join(ROOT, "examples", "models"), "--drain-secs", "3") as server:
            paths = "/v2/health/ready", "/v2/models/digits/ready", "/v2/health/live"
            self.assertEqual([server.call("GET", path)[0] for path in paths], [200, 200, 200])
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            while server.call("GET", paths[0])[0] == 200:
                time.sleep(0.01)
            self.assertEqual([server.call("GET", path)[0] for path in paths], [503, 503, 200])
            self.assertEqual(server.call("GET", paths[0])[2], b'')
            with open(os.path.join(ROOT, "examples", "requests", "digits.json")) as file:
                status, response = server.infer("digits", json.load(file))
            self.assertEqual(status, 200, response)
            self.assertEqual(server.process.wait(support.PATIENCE_S), 0, server.log())
            self.assertGreaterEqual(time.monotonic() - began, 3)
            self.assertIn("kelp: not ready, stopping in 3 s", server.log())

    def test_a_second_signal_and_an_interrupt_end_a_drain(self):
        for signals in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT,)):
            with self.subTest(signals=signals), \
                    Server("--model-repository", os.path.join(ROOT, "examples", "models"), "--drain-secs", "600") as server:
                for number in signals:
                    server.process.send_signal(number)
                    if len(signals) > 1:
                        while "not ready, stopping" not in server.log():
                            time.sleep(0.01)
                self.assertEqual(server.process.wait(support.PATIENCE_S), 0 if len(signals) == 1 else -signal.SIGTERM)


if __name__ == "__main__":
    support.main()
