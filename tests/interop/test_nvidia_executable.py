#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own tritonserver executable (2.51.0, from the wheel nvidia-pytriton 0.7.0) with our libtritonserver.so: HTTP, gRPC and
metrics work; tritonclient infers, loads, unloads and streams; SIGTERM ends it with exit code 0."""
import glob
import json
import os
import queue
import shutil
import tempfile
import time
import unittest

import interop

interop.need_nvidia()
import numpy as np  # noqa: E402
import tritonclient.grpc as grpcclient  # noqa: E402
import tritonclient.http as httpclient  # noqa: E402
from tritonclient.utils import InferenceServerException  # noqa: E402

ADDSUB = """
backend: "addsub" max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "INPUT1" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "OUTPUT1" data_type: TYPE_FP32 dims: [ 16 ] } ]
"""
REPEAT = """
backend: "repeat" model_transaction_policy { decoupled: true }
input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }, { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] } ]
"""
TEXT = """
backend: "identity"
input [ { name: "INPUT0" data_type: TYPE_STRING dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_STRING dims: [ -1 ] } ]
"""
# For NVIDIA's python backend.
STREAM = '''
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for value in pb_utils.get_input_tensor_by_name(request, "IN").as_numpy():
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([value], dtype=np.int32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
'''
STREAM_CONFIG = """
backend: "python" model_transaction_policy { decoupled: true }
input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
"""
# Calls another model.
ASKS = '''
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        results = []
        for request in requests:
            inputs = [pb_utils.get_input_tensor_by_name(request, name) for name in ("INPUT0", "INPUT1")]
            result = pb_utils.InferenceRequest(model_name="addsub", requested_output_names=["OUTPUT0"], inputs=inputs,
                                               trace=request.trace()).exec()
            results.append(pb_utils.InferenceResponse(error=result.error()) if result.has_error()
                           else pb_utils.InferenceResponse(result.output_tensors()))
        return results
'''
ASKS_CONFIG = """
backend: "python" max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "INPUT1" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
"""


class NvidiaExecutable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        staged = os.path.join(cls.directory.name, "staged")
        repository = os.path.join(cls.directory.name, "models")
        environment = interop.stage(staged)
        interop.write_model(repository, "addsub", ADDSUB)
        interop.write_model(repository, "repeat", REPEAT)
        interop.write_model(repository, "text", TEXT)
        interop.write_model(repository, "stream", STREAM_CONFIG, {"1/model.py": STREAM})
        interop.write_model(repository, "asks", ASKS_CONFIG, {"1/model.py": ASKS})
        shutil.copytree(os.path.join(interop.EXAMPLES, "digits"), os.path.join(repository, "digits"))
        cls.ports = interop.free_ports(3)
        cls.server = interop.Server(
            interop.nvidia_command(staged, repository, cls.ports, "--model-control-mode", "explicit", "--load-model", "addsub",
                                   "--load-model", "repeat", "--load-model", "digits",
                                   "--trace-config", "mode=triton",
                                   "--trace-config", "triton,file=" + os.path.join(cls.directory.name, "trace.json"),
                                   "--metrics-config", "summary_latencies=true",
                                   "--metrics-config", "summary_quantiles=0.5:0.05,0.75:0.01"), environment).wait_ready(cls.ports[0])
        cls.http = httpclient.InferenceServerClient(f"127.0.0.1:{cls.ports[0]}")
        cls.grpc = grpcclient.InferenceServerClient(f"127.0.0.1:{cls.ports[1]}")

    @classmethod
    def tearDownClass(cls):
        cls.http.close()
        cls.grpc.close()
        code = cls.server.stop()
        log = cls.server.text()
        cls.directory.cleanup()
        assert code == 0, f"exit code {code} after SIGTERM:\n{log}"

    def addsub(self, module, client):
        a = np.arange(16, dtype=np.float32).reshape(1, 16)
        b = np.ones((1, 16), dtype=np.float32)
        inputs = [module.InferInput("INPUT0", [1, 16], "FP32"), module.InferInput("INPUT1", [1, 16], "FP32")]
        inputs[0].set_data_from_numpy(a)
        inputs[1].set_data_from_numpy(b)
        result = client.infer("addsub", inputs, request_id="one")
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), a - b)

    def test_library_is_ours(self):
        with open(f"/proc/{self.server.process.pid}/maps", encoding="utf-8") as file:
            maps = file.read()
        self.assertIn(os.path.realpath(interop.LIBRARY), maps)
        self.assertNotIn("nvidia_pytriton.libs/libtritonserver", maps)

    def test_http_infers(self):
        self.addsub(httpclient, self.http)

    def test_grpc_infers(self):
        self.addsub(grpcclient, self.grpc)

    def test_an_onnx_model_is_served(self):
        about = self.grpc.get_model_metadata("digits").inputs[0]
        name = about.name
        image = np.zeros([max(dim, 1) for dim in about.shape], dtype=np.float32)
        given = grpcclient.InferInput(name, list(image.shape), "FP32")
        given.set_data_from_numpy(image)
        result = self.grpc.infer("digits", [given])
        self.assertTrue(result.get_response().outputs)

    def test_a_stream_carries_every_response(self):
        self.assertEqual(self.stream("repeat", [4, 5, 6]), [4, 5, 6])

    def test_a_python_model_streams(self):
        self.grpc.load_model("stream")
        self.assertEqual(self.stream("stream", list(range(20))), list(range(20)))
        self.grpc.unload_model("stream")

    def stream(self, model, numbers):
        results = queue.Queue()
        with grpcclient.InferenceServerClient(f"127.0.0.1:{self.ports[1]}") as client:
            client.start_stream(callback=lambda result, error: results.put(error or result))
            given = grpcclient.InferInput("IN", [len(numbers)], "INT32")
            given.set_data_from_numpy(np.array(numbers, dtype=np.int32))
            client.async_stream_infer(model, [given], enable_empty_final_response=True)
            values, final = [], False
            while not final:
                result = results.get(timeout=20)
                self.assertNotIsInstance(result, InferenceServerException, result)
                response = result.get_response()
                final = response.parameters["triton_final_response"].bool_param
                if response.outputs:
                    values.extend(result.as_numpy("OUT").tolist())
            client.stop_stream()
        return values

    def test_models_are_loaded_and_unloaded(self):
        for client in (self.http, self.grpc):
            client.load_model("text")
            self.assertTrue(client.is_model_ready("text"))
            module = httpclient if client is self.http else grpcclient
            given = module.InferInput("INPUT0", [2], "BYTES")
            given.set_data_from_numpy(np.array([b"kelp", b""], dtype=np.object_))
            self.assertEqual(client.infer("text", [given]).as_numpy("OUTPUT0").tolist(), [b"kelp", b""])
            client.unload_model("text")
            with self.assertRaises(InferenceServerException):
                client.infer("text", [given])

    def test_errors_have_codes_and_messages(self):
        with self.assertRaisesRegex(InferenceServerException, "unknown model"):
            self.grpc.infer("no_such_model", [])
        with self.assertRaisesRegex(InferenceServerException, "expected 2 inputs"):
            self.http.infer("addsub", [httpclient.InferInput("INPUT0", [1, 16], "FP32").set_data_from_numpy(
                np.zeros((1, 16), dtype=np.float32))])

    def test_metadata_configuration_index_and_statistics_are_served(self):
        self.addsub(httpclient, self.http)
        self.assertEqual(self.http.get_server_metadata()["name"], "triton")
        self.assertEqual(self.http.get_model_config("addsub")["max_batch_size"], 8)
        self.assertEqual(self.grpc.get_model_config("addsub").config.max_batch_size, 8)
        self.assertEqual([d.name for d in self.grpc.get_model_metadata("addsub").outputs], ["OUTPUT0", "OUTPUT1"])
        names = {model["name"] for model in self.http.get_model_repository_index()}
        self.assertEqual(names, {"addsub", "repeat", "text", "digits", "stream", "asks"})
        statistics = self.grpc.get_inference_statistics("addsub").model_stats[0]
        self.assertGreaterEqual(statistics.inference_count, 1)
        self.assertGreaterEqual(statistics.inference_stats.success.count, 1)

    def test_metrics_are_served(self):
        self.addsub(httpclient, self.http)
        text = interop.get(self.ports[2], "/metrics")
        self.assertIn('nv_inference_request_success{model="addsub",version="1"}', text)
        self.assertRegex(text, r'nv_inference_request_summary_us{model="addsub",version="1",quantile="0.75"} [0-9.]+\n')

    def test_trace_and_log_settings_can_be_changed(self):
        self.assertIn("trace_level", self.http.get_trace_settings())
        self.http.update_trace_settings(model_name="addsub", settings={"trace_rate": "3"})
        self.assertEqual(self.grpc.get_trace_settings("addsub").settings["trace_rate"].value[0], "3")
        self.assertIn("log_verbose_level", self.http.get_log_settings())
        self.http.update_log_settings({"log_verbose_level": 1})
        self.http.update_log_settings({"log_verbose_level": 0})

    def test_a_sub_inference_is_traced_as_a_child(self):
        """The trace contains a request that a model sends, as a child of its own request."""
        self.http.load_model("asks")
        name = os.path.join(self.directory.name, "trace.json")
        self.http.update_trace_settings(model_name="asks", settings={
            "trace_level": ["TIMESTAMPS"], "trace_rate": "1", "trace_count": "-1", "log_frequency": "1"})
        a = np.arange(16, dtype=np.float32).reshape(1, 16)
        inputs = [httpclient.InferInput(f"INPUT{i}", [1, 16], "FP32").set_data_from_numpy(a) for i in range(2)]
        np.testing.assert_array_equal(self.http.infer("asks", inputs).as_numpy("OUTPUT0"), a + a)
        models = {}
        until = time.monotonic() + 20
        while set(models) != {"asks", "addsub"} and time.monotonic() < until:
            time.sleep(0.1)
            models = {}
            for path in glob.glob(name + "*"):
                try:
                    with open(path, encoding="utf-8") as file:
                        models.update({entry["model_name"]: entry for entry in json.load(file) if "model_name" in entry})
                except ValueError:
                    pass  # the file is incomplete
        self.assertEqual(set(models), {"asks", "addsub"})
        self.assertEqual(models["addsub"]["parent_id"], models["asks"]["id"])
        self.assertNotIn("parent_id", models["asks"])
        self.http.unload_model("asks")

    def test_a_canceled_stream_does_not_disturb_the_server(self):
        client = grpcclient.InferenceServerClient(f"127.0.0.1:{self.ports[1]}")
        client.start_stream(callback=lambda result, error: None)
        given = grpcclient.InferInput("IN", [3], "INT32")
        given.set_data_from_numpy(np.array([4, 5, 6], dtype=np.int32))
        client.async_stream_infer("repeat", [given])
        client.stop_stream(cancel_requests=True)
        client.close()
        self.addsub(grpcclient, self.grpc)


if __name__ == "__main__":
    unittest.main(argv=["test_nvidia_executable.py"] + interop.REST, verbosity=2)
