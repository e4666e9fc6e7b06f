#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's front-ends (Python package tritonfrontend: KServeHttp, KServeGrpc, Metrics) on a server of our libtritonserver.so, with
tritonclient.

scripts/tritonfrontend.sh runs it."""
import asyncio
import json
import os
import queue
import socket
import tempfile
import time
import unittest
import urllib.request

import numpy as np
import repository
import tritonclient.grpc as grpcclient
import tritonclient.grpc.aio as grpcaio
import tritonclient.http as httpclient
import tritonclient.http.aio as httpaio
import tritonfrontend
import tritonserver
from tritonclient.utils import InferenceServerException

repository.check_library()
IMAGES = os.path.join(repository.ROOT, "examples", "requests", "digits.npy")
A, B = np.arange(16, dtype=np.float32).reshape(1, 16), np.ones((1, 16), dtype=np.float32)


def free_port():
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return each.getsockname()[1]


def inputs_of(module, **arrays):
    inputs = []
    for name, array in arrays.items():
        kind = {"f": "FP32", "i": "INT32", "O": "BYTES"}[array.dtype.kind]
        inputs.append(module.InferInput(name, list(array.shape), kind))
        inputs[-1].set_data_from_numpy(array)
    return inputs


class Frontends(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        repository.make(cls.directory.name)
        cls.server = tritonserver.Server(repository.options(cls.directory.name)).start(wait_until_ready=True)
        cls.ports = [free_port() for _ in range(3)]
        cls.services = [kind(cls.server, kind.Options(address="127.0.0.1", port=port)) for kind, port in
                        zip((tritonfrontend.KServeHttp, tritonfrontend.KServeGrpc, tritonfrontend.Metrics), cls.ports)]
        for service in cls.services:
            service.start()
        cls.urls = [f"127.0.0.1:{port}" for port in cls.ports]
        cls.http = httpclient.InferenceServerClient(cls.urls[0], concurrency=8)
        cls.grpc = grpcclient.InferenceServerClient(cls.urls[1])
        cls.both = ((httpclient, cls.http), (grpcclient, cls.grpc))

    @classmethod
    def tearDownClass(cls):
        cls.http.close()
        cls.grpc.close()
        for service in cls.services:
            service.stop()
        cls.server.stop()
        cls.directory.cleanup()

    def page(self, path, port=0, data=None):
        request = urllib.request.Request(f"http://{self.urls[port]}{path}", data=data)
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.read().decode()

    def test_health_and_metadata(self):
        for _, client in self.both:
            self.assertTrue(client.is_server_live() and client.is_server_ready() and client.is_model_ready("digits"))
            self.assertFalse(client.is_model_ready("digits", "9"))
        self.assertEqual(self.http.get_server_metadata()["name"], "kelp")
        self.assertEqual(self.grpc.get_server_metadata().name, "kelp")
        self.assertEqual(self.http.get_model_metadata("addsub")["inputs"],
                         [{"name": name, "datatype": "FP32", "shape": [-1, 16]} for name in ("INPUT0", "INPUT1")])
        self.assertEqual(self.grpc.get_model_config("addsub").config.max_batch_size, 8)
        self.assertEqual(self.grpc.get_model_metadata("repeat").outputs[0].name, "OUT")

    def test_an_onnx_model_recognizes_digits(self):
        for module, client in self.both:
            result = client.infer("digits", inputs_of(module, image=np.load(IMAGES)))
            self.assertEqual(result.as_numpy("digit").tolist(), [3, 7, 4])

    def test_binary_json_and_compressed_tensors(self):
        for binary in (True, False):
            for compression in (None, "gzip", "deflate"):
                inputs = [httpclient.InferInput(name, [1, 16], "FP32") for name in ("INPUT0", "INPUT1")]
                for each, array in zip(inputs, (A, B)):
                    each.set_data_from_numpy(array, binary_data=binary)
                outputs = [httpclient.InferRequestedOutput("OUTPUT0", binary_data=binary)]
                result = self.http.infer("addsub", inputs, outputs=outputs, request_compression_algorithm=compression,
                                         response_compression_algorithm=compression, request_id="x")
                self.assertEqual(result.get_response()["id"], "x")
                np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), A + B)
        result = self.grpc.infer("addsub", inputs_of(grpcclient, INPUT0=A, INPUT1=B), compression_algorithm="gzip")
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), A - B)

    def test_strings(self):
        words = np.array(["some", "", "text"], dtype=object)
        for module, client in self.both:
            result = client.infer("text", inputs_of(module, INPUT0=words))
            self.assertEqual(result.as_numpy("OUTPUT0").tolist(), [b"some", b"", b"text"])

    def test_classification(self):
        for module, client in self.both:
            outputs = [module.InferRequestedOutput("OUTPUT0", class_count=2)]
            result = client.infer("addsub", inputs_of(module, INPUT0=A, INPUT1=B), outputs=outputs)
            self.assertEqual(result.as_numpy("OUTPUT0").tolist(), [[b"16.000000:15", b"15.000000:14"]])

    def test_asynchronous_clients(self):
        async def run(module, url):
            async with module.InferenceServerClient(url) as client:
                kind = httpclient if module is httpaio else grpcclient
                results = await asyncio.gather(*[client.infer("addsub", inputs_of(kind, INPUT0=A, INPUT1=B)) for _ in range(64)])
                return [result.as_numpy("OUTPUT0")[0, 3] for result in results]

        for module, url in ((httpaio, self.urls[0]), (grpcaio, self.urls[1])):
            self.assertEqual(asyncio.run(run(module, url)), [4.0] * 64)
        handles = [self.http.async_infer("addsub", inputs_of(httpclient, INPUT0=A, INPUT1=B)) for _ in range(32)]
        for handle in handles:
            np.testing.assert_array_equal(handle.get_result().as_numpy("OUTPUT0"), A + B)

    def test_a_stream_carries_the_responses_of_a_decoupled_model(self):
        answers = queue.Queue()
        client = grpcclient.InferenceServerClient(self.urls[1])
        client.start_stream(lambda result, error: answers.put((result, error)))
        for number in range(10):
            client.async_stream_infer("repeat", inputs_of(grpcclient, IN=np.array([1, 2, 3], dtype=np.int32)), request_id=str(number),
                                      enable_empty_final_response=True)
        got = {str(number): [] for number in range(10)}
        finals = 0
        while finals < 10:
            result, error = answers.get(timeout=10)
            self.assertIsNone(error)
            reply = result.get_response()
            if reply.parameters["triton_final_response"].bool_param:
                finals += 1
            else:
                got[reply.id].append(int(result.as_numpy("OUT")[0]))
        self.assertEqual(set(map(tuple, got.values())), {(1, 2, 3)})
        client.async_stream_infer("nothing", inputs_of(grpcclient, IN=np.array([1], dtype=np.int32)))
        _, error = answers.get(timeout=10)
        self.assertIn("unknown model", str(error))
        client.stop_stream()
        client.close()

    def test_a_cancelled_stream_ends_its_requests(self):
        client = grpcclient.InferenceServerClient(self.urls[1])
        client.start_stream(lambda result, error: None)
        client.async_stream_infer("text", inputs_of(grpcclient, INPUT0=np.array(["a"], dtype=object)), parameters={"delay_ms": 30000})
        time.sleep(0.2)
        began = time.monotonic()
        client.stop_stream(cancel_requests=True)
        client.close()
        self.grpc.infer("text", inputs_of(grpcclient, INPUT0=np.array(["a"], dtype=object)), client_timeout=10)
        self.assertLess(time.monotonic() - began, 5)

    def test_generate(self):
        reply = json.loads(self.page("/v2/models/text/generate", data=b'{"INPUT0": "hello", "id": "7"}'))
        self.assertEqual((reply["OUTPUT0"], reply["model_name"]), ("hello", "text"))
        events = self.page("/v2/models/repeat/generate_stream", data=b'{"IN": [5, 6]}').split("\n\n")
        self.assertEqual([json.loads(event.removeprefix("data: "))["OUT"] for event in events if event], [5, 6])

    def test_shared_memory_is_left_to_the_executable(self):
        # Since 2.70, NVIDIA's front-ends let clients use shared memory only in the executable tritonserver.
        for _, client in self.both:
            with self.assertRaisesRegex(InferenceServerException, "tritonserver executable"):
                client.register_system_shared_memory("region", "/kelp_wheels", 192)

    def test_models_are_loaded_and_unloaded(self):
        for _, client in self.both:
            client.unload_model("half")
            until = time.monotonic() + 10
            while client.is_model_ready("half") and time.monotonic() < until:
                time.sleep(0.01)
            self.assertFalse(client.is_model_ready("half"))
            client.load_model("half")
            self.assertTrue(client.is_model_ready("half"))
            with self.assertRaisesRegex(InferenceServerException, "failed to (poll|load)"):
                client.load_model("nothing")
        states = {each["name"]: each.get("state") for each in self.http.get_model_repository_index()}
        self.assertEqual(states["half"], "READY")

    def test_sequences(self):
        for module, client in self.both:
            sums = [float(client.infer("accumulator", inputs_of(module, INPUT=np.array([step], dtype=np.float32)), sequence_id=42,
                                       sequence_start=step == 1, sequence_end=step == 3).as_numpy("OUTPUT")[0]) for step in (1, 2, 3)]
            self.assertEqual(sums, [1, 3, 6])

    def test_statistics_and_metrics(self):
        def count():
            return (self.http.get_inference_statistics("addsub")["model_stats"][0]["inference_count"],
                    self.grpc.get_inference_statistics("addsub").model_stats[0].inference_count)

        before = count()
        self.http.infer("addsub", inputs_of(httpclient, INPUT0=np.vstack((A, A)), INPUT1=np.vstack((B, B))))
        self.assertEqual(count(), tuple(number + 2 for number in before))
        self.assertRegex(self.page("/metrics", port=2), r'nv_inference_count\{model="addsub",version="1"\} \d+')

    def test_settings_of_the_log(self):
        self.assertIn("log_verbose_level", self.http.get_log_settings())
        self.grpc.update_log_settings({"log_verbose_level": 1})
        self.assertEqual(self.http.get_log_settings()["log_verbose_level"], 1)
        self.http.update_log_settings({"log_verbose_level": 0})

    def test_failures_have_the_codes_of_the_protocols(self):
        with self.assertRaises(InferenceServerException) as caught:
            self.http.infer("nothing", inputs_of(httpclient, INPUT0=A))
        self.assertEqual(caught.exception.status(), "404")
        for wrong in ({"INPUT0": A}, {"INPUT0": A, "INPUT1": B[:, :3]}):
            with self.assertRaises(InferenceServerException) as caught:
                self.http.infer("addsub", inputs_of(httpclient, **wrong))
            self.assertEqual(caught.exception.status(), "400")
            with self.assertRaises(InferenceServerException) as caught:
                self.grpc.infer("addsub", inputs_of(grpcclient, **wrong))
            self.assertEqual(caught.exception.status(), "StatusCode.INVALID_ARGUMENT")
        with self.assertRaises(InferenceServerException) as caught:
            self.grpc.infer("text", inputs_of(grpcclient, INPUT0=np.array(["a"], dtype=object)), parameters={"delay_ms": 20000},
                            client_timeout=0.2)
        self.assertEqual(caught.exception.status(), "StatusCode.DEADLINE_EXCEEDED")


class Life(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.server = tritonserver.Server(repository.options(repository.make(directory.name))).start(wait_until_ready=True)

    def test_a_front_end_starts_once(self):
        for kind in (tritonfrontend.KServeHttp, tritonfrontend.KServeGrpc):
            service = kind(self.server, kind.Options(address="127.0.0.1", port=free_port()))
            service.start()
            with self.assertRaises(tritonserver.AlreadyExistsError):
                service.start()
            service.stop()
        self.server.stop()

    def test_a_front_end_is_a_context(self):
        port = free_port()
        with tritonfrontend.KServeHttp(self.server, tritonfrontend.KServeHttp.Options(address="127.0.0.1", port=port, thread_count=2)):
            with httpclient.InferenceServerClient(f"127.0.0.1:{port}") as client:
                self.assertTrue(client.is_server_ready())
        with self.assertRaises(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v2", timeout=5)
        self.server.stop()

    def test_front_ends_may_stop_after_the_server(self):
        services = []
        for kind in (tritonfrontend.KServeHttp, tritonfrontend.KServeGrpc, tritonfrontend.Metrics):
            services.append(kind(self.server, kind.Options(address="127.0.0.1", port=free_port())))
            services[-1].start()
        self.server.stop()
        for service in services:
            service.stop()


if __name__ == "__main__":
    unittest.main()
