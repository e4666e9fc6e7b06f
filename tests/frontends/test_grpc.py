#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gRPC: streams, deadlines, cancellation, messages on the wire, health, reflection, through Triton's client library and gRPC's.

    test_grpc.py (--kelp PATH | --url grpc://HOST:PORT) [unittest arguments]
"""
import asyncio
import contextlib
import io
import json
import os
import queue
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

import grpc
import numpy as np
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
import tritonclient.utils as triton_utils
import tritonclient.utils.shared_memory as shm
from google.protobuf import descriptor_pb2, json_format
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc

import server

sys.path.insert(0, os.path.join(server.cases.ROOT, "tests", "support"))
import shown  # noqa: E402: found by the line above

TARGET = {}
PATIENCE_S = 60
SERVICE = "/inference.GRPCInferenceService/"


def use(scheme, host, port):
    TARGET.update(url=f"{host}:{port}", http=f"http://{host}:{port}" if scheme == "kelp" else None)


def tensor(name, datatype, values, shape=None):
    made = triton.InferInput(name, shape or [len(values)], datatype)
    array = np.array(values, dtype=triton_utils.triton_to_np_dtype(datatype))
    return made.set_data_from_numpy(array.reshape(shape or [len(values)]))


def pair(values):
    return [tensor("INPUT0", "FP32", values), tensor("INPUT1", "FP32", [1.0] * len(values))]


def raw_request(model="identity", values=(1, 2), **more):
    """A request as a message, with raw contents."""
    request = service_pb2.ModelInferRequest(model_name=model, **more)
    item = request.inputs.add(name="INPUT0", datatype="INT64")
    item.shape.append(len(values))
    request.raw_input_contents.append(np.array(values, np.int64).tobytes())
    return request


class Case(unittest.TestCase):
    def setUp(self):
        self.channel = grpc.insecure_channel(TARGET["url"], options=[("grpc.max_receive_message_length", -1),
                                                                     ("grpc.max_send_message_length", -1)])
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(self.channel)
        self.client = triton.InferenceServerClient(TARGET["url"])
        self.addCleanup(self.channel.close)
        self.addCleanup(self.client.close)

    def fails(self, code, call, *words):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        self.assertEqual(caught.exception.code(), code, caught.exception)
        for word in words:
            self.assertIn(word, caught.exception.details())

    def call(self, path, *messages, metadata=None):
        """Sends messages as bytes."""
        method = self.channel.stream_unary(path, request_serializer=bytes, response_deserializer=bytes)
        return method(iter(messages), timeout=PATIENCE_S, metadata=metadata)

    def is_free(self, model="identity"):
        """Fails if the model, which has one instance, is still busy."""
        result = self.client.infer(model, [tensor("INPUT0", "INT64", [7])], client_timeout=PATIENCE_S)
        self.assertEqual(result.as_numpy("OUTPUT0").tolist(), [7])


class Streams(Case):
    def setUp(self):
        super().setUp()
        self.results = queue.Queue()

    def start(self, **named):
        self.client.start_stream(lambda result, error: self.results.put((result, error)), **named)

    def next(self):
        result, error = self.results.get(timeout=PATIENCE_S)
        self.assertIsNone(error)
        return result

    def test_a_decoupled_model_sends_any_number_of_responses(self):
        self.start()
        self.client.async_stream_infer("repeat", [tensor("IN", "INT32", [4, 5, 6])], request_id="a",
                                       enable_empty_final_response=True)
        for i, value in enumerate([4, 5, 6]):
            result = self.next()
            response = result.get_response()
            self.assertEqual((response.id, result.as_numpy("OUT").tolist(), result.as_numpy("IDX").tolist()), ("a", [value], [i]))
            self.assertFalse(response.parameters["triton_final_response"].bool_param)
        last = self.next().get_response()
        self.assertEqual((last.id, last.model_name, len(last.outputs)), ("a", "repeat", 0))
        self.assertTrue(last.parameters["triton_final_response"].bool_param)
        self.client.stop_stream()

    def test_the_empty_final_response_is_sent_on_request_only(self):
        self.start()
        self.client.async_stream_infer("repeat", [tensor("IN", "INT32", [4])], request_id="a")
        self.client.async_stream_infer("addsub", pair([1.0]), request_id="b")
        found = {self.next().get_response().id for _ in range(2)}
        self.assertEqual(found, {"a", "b"})
        self.client.stop_stream()
        self.assertTrue(self.results.empty())

    def test_responses_of_other_models_keep_the_order_of_the_requests(self):
        self.start()
        for i in range(3):
            self.client.async_stream_infer("identity", [tensor("INPUT0", "INT64", [i])], request_id=f"slow{i}",
                                           parameters={"delay_ms": 100})
            self.client.async_stream_infer("addsub", pair([1.0]), request_id=f"fast{i}")
        ids = [self.next().get_response().id for _ in range(6)]
        self.assertEqual(ids, ["slow0", "fast0", "slow1", "fast1", "slow2", "fast2"])
        self.client.stop_stream()

    def test_many_requests_are_in_flight(self):
        self.start()
        for i in range(3000):
            self.client.async_stream_infer("addsub", pair([float(i)]), request_id=str(i))
        for i in range(3000):
            result = self.next()
            self.assertEqual((result.get_response().id, result.as_numpy("OUTPUT0").tolist()), (str(i), [i + 1.0]))
        self.client.stop_stream()

    def test_the_error_of_a_request_does_not_end_the_stream(self):
        self.start()
        self.client.async_stream_infer("no_such_model", pair([1.0]), request_id="bad")
        self.client.async_stream_infer("addsub", pair([1.0]), request_id="good")
        result, error = self.results.get(timeout=PATIENCE_S)
        self.assertIn("no_such_model", str(error))
        self.assertEqual(self.next().get_response().id, "good")
        self.client.stop_stream()

    def test_errors_name_their_request(self):
        requests = [raw_request("no_such_model", id="r7")]
        responses = list(self.stub.ModelStreamInfer(iter(requests), timeout=PATIENCE_S))
        self.assertEqual([r.infer_response.id for r in responses], ["r7"])
        self.assertIn("no_such_model", responses[0].error_message)

    def test_an_error_of_the_model_ends_the_stream_on_request(self):
        def calls(metadata):
            requests = [raw_request(values=[1], parameters={"delay_ms": service_pb2.InferParameter(string_param="x")})]
            return list(self.stub.ModelStreamInfer(iter(requests), timeout=PATIENCE_S, metadata=metadata))
        self.assertNotEqual(calls(None)[0].error_message, "")
        with self.assertRaises(grpc.RpcError):
            calls([("triton_grpc_error", "true")])

    def test_responses_before_an_error_of_the_model_are_sent(self):
        bad = raw_request(values=[1], parameters={"delay_ms": service_pb2.InferParameter(string_param="x")})
        for _ in range(20):
            call = self.stub.ModelStreamInfer(iter([raw_request(id="a"), raw_request(id="b"), bad]), timeout=PATIENCE_S,
                                              metadata=[("triton_grpc_error", "true")])
            self.assertEqual([next(call).infer_response.id for _ in range(2)], ["a", "b"])
            with self.assertRaises(grpc.RpcError):
                next(call)

    def test_a_stream_without_requests_ends_with_ok(self):
        self.assertEqual(list(self.stub.ModelStreamInfer(iter([]), timeout=PATIENCE_S)), [])

    def test_cancelling_a_stream_cancels_its_requests(self):
        self.start()
        self.client.async_stream_infer("identity", [tensor("INPUT0", "INT64", [1])], parameters={"delay_ms": 600000})
        time.sleep(0.3)
        self.client.stop_stream(cancel_requests=True)
        self.is_free()

    def test_a_closed_connection_cancels_its_requests(self):
        for _ in range(5):
            channel = grpc.insecure_channel(TARGET["url"], options=[("grpc.use_local_subchannel_pool", 1)])
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            calls = [stub.ModelStreamInfer(iter([raw_request(parameters={
                "delay_ms": service_pb2.InferParameter(int64_param=600000)})] * 20)) for _ in range(10)]
            time.sleep(0.2)
            channel.close()
            del calls
        self.is_free()

    def test_the_deadline_of_a_stream_cancels_its_requests(self):
        request = raw_request(parameters={"delay_ms": service_pb2.InferParameter(int64_param=600000)})
        more = threading.Event()

        def requests():
            yield request
            more.wait(PATIENCE_S)
        self.fails(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: list(self.stub.ModelStreamInfer(requests(), timeout=0.3)))
        more.set()
        self.is_free()

    @staticmethod
    def wait_for_sender(model):
        """Waits until a model sends no more responses. Uses a connection of its own."""
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
        sent = []
        with grpc.insecure_channel(TARGET["url"], options=options) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            while sent[-4:-1] != sent[-3:] or len(sent) < 4:
                time.sleep(0.5)
                request = service_pb2.ModelStatisticsRequest(name=model)
                entries = stub.ModelStatistics(request, timeout=PATIENCE_S).model_stats[0].response_stats.values()
                sent.append(sum(entry.success.count for entry in entries))

    def test_a_client_that_does_not_read_is_ended(self):
        count = 1000000
        request = service_pb2.ModelInferRequest(model_name="repeat")
        request.inputs.add(name="IN", datatype="INT32").shape.append(count)
        request.raw_input_contents.append(np.arange(count, dtype=np.int32).tobytes())
        more = threading.Event()

        def requests():
            yield request
            more.wait(10 * PATIENCE_S)
        call = self.stub.ModelStreamInfer(requests())
        next(call)
        self.wait_for_sender("repeat")
        found = 1

        def read():
            nonlocal found
            for _ in call:
                found += 1
        self.fails(grpc.StatusCode.RESOURCE_EXHAUSTED, read, "too slowly")
        more.set()
        self.assertLess(found, count)

    def test_sequences_over_a_stream_and_asyncio(self):
        async def run():
            async with triton_aio.InferenceServerClient(TARGET["url"]) as client:
                async def requests():
                    for i in range(5):
                        yield {"model_name": "addsub", "inputs": pair([float(i)]), "request_id": str(i)}
                found = []
                async for result, error in client.stream_infer(requests()):
                    self.assertIsNone(error)
                    found.append(result.as_numpy("OUTPUT0").tolist())
                single = await client.infer("addsub", pair([1.0]))
                return found, single.as_numpy("OUTPUT1").tolist(), await client.is_server_ready()
        self.assertEqual(asyncio.run(run()), ([[i + 1.0] for i in range(5)], [0.0], True))


class Unary(Case):
    def test_the_deadline_of_a_call_cancels_its_request(self):
        with self.assertRaises(triton_utils.InferenceServerException) as caught:
            self.client.infer("identity", [tensor("INPUT0", "INT64", [1])], parameters={"delay_ms": 600000}, client_timeout=0.3)
        self.assertEqual(caught.exception.status(), "StatusCode.DEADLINE_EXCEEDED")
        self.is_free()

    def test_a_model_with_several_responses_needs_a_stream(self):
        with self.assertRaises(triton_utils.InferenceServerException) as caught:
            self.client.infer("repeat", [tensor("IN", "INT32", [1])])
        self.assertEqual(caught.exception.status(), "StatusCode.UNIMPLEMENTED")

    def test_large_tensors(self):
        values = np.arange(4 << 20, dtype=np.int64)
        result = self.stub.ModelInfer(raw_request(values=values), timeout=PATIENCE_S)
        self.assertEqual(result.raw_output_contents[0], values.tobytes())

    def test_empty_tensors(self):
        result = self.stub.ModelInfer(raw_request(values=[]), timeout=PATIENCE_S)
        self.assertEqual((list(result.outputs[0].shape), result.raw_output_contents[0]), ([0], b""))

    def test_messages_are_compressed_both_ways(self):
        for algorithm in ("gzip", "deflate"):
            result = self.client.infer("addsub", pair([2.0] * 5000), compression_algorithm=algorithm)
            self.assertEqual(result.as_numpy("OUTPUT0").tolist(), [3.0] * 5000)

    def test_text_of_errors_is_percent_encoded(self):
        self.fails(grpc.StatusCode.NOT_FOUND, lambda: self.stub.ModelInfer(raw_request("modèle%41 →")), "modèle%41 →")

    def test_reserved_and_mistyped_parameters_are_rejected(self):
        parameter = service_pb2.InferParameter
        for name, value in (("triton_x", parameter(bool_param=True)), ("priority", parameter(string_param="high")),
                            ("timeout", parameter(int64_param=-1)), ("sequence_start", parameter(int64_param=1)),
                            ("sequence_id", parameter(bool_param=True)), ("own", parameter())):
            self.fails(grpc.StatusCode.INVALID_ARGUMENT,
                       lambda: self.stub.ModelInfer(raw_request(parameters={name: value})), name)  # noqa: B023

    def test_parameters_of_all_types_are_returned(self):
        parameter = service_pb2.InferParameter
        sent = {"echo": parameter(bool_param=True), "i": parameter(int64_param=-5), "s": parameter(string_param="x"),
                "d": parameter(double_param=0.5), "b": parameter(bool_param=False)}
        result = self.stub.ModelInfer(raw_request(parameters=sent))
        for name in ("i", "s", "d", "b"):
            self.assertEqual(result.parameters[name], sent[name])


class Contents(Case):
    """Typed contents, of models that a case loads."""

    FIELDS = {"BOOL": ("bool_contents", [True, False]), "INT8": ("int_contents", [-128, 127]), "INT16": ("int_contents", [-5, 7]),
              "INT32": ("int_contents", [-2 ** 31, 2 ** 31 - 1]), "INT64": ("int64_contents", [-2 ** 63, 2 ** 63 - 1]),
              "UINT8": ("uint_contents", [0, 255]), "UINT16": ("uint_contents", [1, 65535]),
              "UINT32": ("uint_contents", [1, 2 ** 32 - 1]), "UINT64": ("uint64_contents", [1, 2 ** 64 - 1]),
              "FP32": ("fp32_contents", [1.5, float("inf")]), "FP64": ("fp64_contents", [1e300, -0.0]),
              "BYTES": ("bytes_contents", [b"one", b""])}

    def request(self, datatype, contents, model="any", count=2):
        request = service_pb2.ModelInferRequest(model_name=model)
        item = request.inputs.add(name="INPUT0", datatype=datatype)
        item.shape.append(count)
        for field, values in contents.items():
            getattr(item.contents, field).extend(values)
        return request

    def load(self, datatype):
        kind = {"BYTES": "STRING"}.get(datatype, datatype)
        ports = [{"name": name, "data_type": f"TYPE_{kind}", "dims": [-1]} for name in ("INPUT0", "OUTPUT0")]
        self.client.load_model("any", config=json.dumps({"backend": "identity", "input": ports[:1], "output": ports[1:]}))

    @unittest.skipUnless(os.environ.get("KELP_BIN") or "--kelp" in sys.argv, "needs the models of server.py")
    def test_contents_of_each_type(self):
        for datatype, (field, values) in self.FIELDS.items():
            with self.subTest(datatype):
                self.load(datatype)
                result = self.stub.ModelInfer(self.request(datatype, {field: values}))
                found = result.raw_output_contents[0]
                if datatype == "BYTES":
                    expected = triton_utils.serialize_byte_tensor(np.array(values, dtype=object)).item()
                else:
                    expected = np.array(values, dtype=triton_utils.triton_to_np_dtype(datatype)).tobytes()
                self.assertEqual(found, expected)
        self.client.unload_model("any")

    def test_wrong_contents_are_rejected(self):
        for contents, words in (({"int64_contents": [1]}, ("expected 2 elements", "found 1")),
                                ({"int64_contents": [1, 2, 3]}, ("found 3",)),
                                ({"fp32_contents": [1.0, 2.0]}, ("int64_contents", "fp32_contents")), ({}, ("found 0",))):
            self.fails(grpc.StatusCode.INVALID_ARGUMENT,
                       lambda: self.stub.ModelInfer(self.request("INT64", contents, "identity")), "INPUT0", *words)  # noqa: B023
        for datatype, value in (("INT8", 128), ("INT16", -40000)):
            self.fails(grpc.StatusCode.INVALID_ARGUMENT,
                       lambda: self.stub.ModelInfer(self.request(datatype, {"int_contents": [0, value]}, "identity")),  # noqa: B023
                       "element 1")
        self.fails(grpc.StatusCode.INVALID_ARGUMENT,
                   lambda: self.stub.ModelInfer(self.request("FP16", {"fp32_contents": [1.0, 2.0]}, "identity")),
                   "raw_input_contents")

    def test_contents_and_raw_contents_exclude_each_other(self):
        request = self.request("INT64", {"int64_contents": [1, 2]}, "identity")
        request.raw_input_contents.append(b"\0" * 16)
        self.fails(grpc.StatusCode.INVALID_ARGUMENT, lambda: self.stub.ModelInfer(request),
                   "contents field must not be specified when using raw_input_contents")

    def test_the_number_of_raw_contents_must_match(self):
        request = raw_request()
        request.raw_input_contents.append(b"")
        self.fails(grpc.StatusCode.INVALID_ARGUMENT, lambda: self.stub.ModelInfer(request), "raw_input_contents", "found 2")
        request = raw_request()
        request.raw_input_contents[0] = b"\0" * 15
        self.fails(grpc.StatusCode.INVALID_ARGUMENT, lambda: self.stub.ModelInfer(request), "INPUT0", "Expected 16, got 15")


class Wire(Case):
    def test_malformed_messages(self):
        good = raw_request().SerializeToString()
        for bad in (b"\xff", b"\x0a\x05ab", good[:-1], good + b"\x0b", b"\x08\x01", b"\x0a\x02\xff\xfe"):
            self.fails(grpc.StatusCode.INTERNAL, lambda: self.call(SERVICE + "ModelInfer", bad),  # noqa: B023
                       "Unable to parse request")
        self.fails(grpc.StatusCode.INTERNAL, lambda: self.call(SERVICE + "ModelConfig", b"\xff"), "Unable to parse request")

    def test_unknown_fields_are_ignored(self):
        more = b"\xf8\x07\x05" + b"\xfa\x07\x03abc" + b"\xfd\x07\0\0\0\0" + b"\xf9\x07" + b"\0" * 8
        result = service_pb2.ModelInferResponse.FromString(
            self.call(SERVICE + "ModelInfer", more + raw_request(values=[5]).SerializeToString() + more))
        self.assertEqual(np.frombuffer(result.raw_output_contents[0], np.int64).tolist(), [5])

    def test_a_unary_method_needs_exactly_one_message(self):
        self.fails(grpc.StatusCode.INTERNAL, lambda: self.call(SERVICE + "ServerLive"), "one message")
        slow = raw_request(parameters={"delay_ms": service_pb2.InferParameter(int64_param=600000)}).SerializeToString()
        self.fails(grpc.StatusCode.INTERNAL, lambda: self.call(SERVICE + "ModelInfer", slow, slow), "one message")
        self.is_free()

    def test_unknown_methods(self):
        for path in (SERVICE + "Nothing", "/inference.Other/ModelInfer", "/x"):
            self.fails(grpc.StatusCode.UNIMPLEMENTED, lambda: self.call(path, b""), path)  # noqa: B023

    def test_names_of_many_tensors_take_linear_time(self):
        request = service_pb2.ModelInferRequest(model_name="identity")
        for i in range(16000):
            request.inputs.add(name=f"x{i}", datatype="INT64").shape.append(1)
            request.raw_input_contents.append(b"\0" * 8)
        began = time.monotonic()
        self.fails(grpc.StatusCode.INVALID_ARGUMENT, lambda: self.stub.ModelInfer(request))
        self.assertLess(time.monotonic() - began, 10)
        for i in range(16000):
            request.inputs.add(name=f"y{i}", datatype="INT64")
        self.fails(grpc.StatusCode.INVALID_ARGUMENT, lambda: self.stub.ModelInfer(request), "16384 inputs")


class Control(Case):
    @unittest.skipUnless(os.environ.get("KELP_BIN") or "--kelp" in sys.argv, "needs HTTP on the same port")
    def test_configurations_are_those_of_http(self):
        config = {"backend": "identity", "max_batch_size": 8, "version_policy": {"specific": {"versions": [1, 3]}},
                  "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [16, -1], "reshape": {"shape": [4, 4, -1]}}],
                  "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [16, -1]}],
                  "instance_group": [{"kind": "KIND_CPU", "count": 3, "rate_limiter": {"resources": [
                      {"name": "R1", "count": 4, "global": True}], "priority": 2}}],
                  "dynamic_batching": {"preferred_batch_size": [2, 4], "max_queue_delay_microseconds": 100, "priority_levels": 3,
                                       "default_priority_level": 2, "default_queue_policy": {"timeout_action": "DELAY"},
                                       "priority_queue_policy": {"1": {"max_queue_size": 9}}},
                  "parameters": {"color": {"string_value": "red"}}, "metric_tags": {"team": "a"},
                  "response_cache": {"enable": False}}
        self.client.load_model("any", config=json.dumps(config))
        with urllib.request.urlopen(f"{TARGET['http']}/v2/models/any/config", timeout=PATIENCE_S) as response:
            text = response.read().decode()
        found = self.client.get_model_config("any").config
        self.assertEqual(found, json_format.Parse(text, model_config_pb2.ModelConfig()))
        self.assertEqual(found.dynamic_batching.priority_queue_policy[1].max_queue_size, 9)
        self.client.unload_model("any")

    @unittest.skipUnless(os.environ.get("KELP_BIN") or "--kelp" in sys.argv, "needs HTTP on the same port")
    def test_statistics_are_those_of_http(self):
        self.client.infer("addsub", pair([1.0]))
        with urllib.request.urlopen(f"{TARGET['http']}/v2/models/addsub/stats", timeout=PATIENCE_S) as response:
            text = response.read().decode()
        found = self.client.get_inference_statistics("addsub")
        self.assertEqual(found, json_format.Parse(text, service_pb2.ModelStatisticsResponse()))
        self.assertGreater(found.model_stats[0].inference_stats.success.ns, 0)

    def test_a_model_is_loaded_from_files_of_the_request(self):
        with open(os.path.join(server.support.MODELS, "string_identity.onnx"), "rb") as file:
            content = file.read()
        config = json.dumps({"backend": "onnxruntime"})
        self.client.load_model("uploaded", config=config, files={"file:1/model.onnx": content})
        self.assertTrue(self.client.is_model_ready("uploaded"))
        self.client.unload_model("uploaded", unload_dependents=True)
        with self.assertRaises(triton_utils.InferenceServerException):
            self.client.load_model("uploaded", config="{")

    def test_a_repository_name_is_not_supported(self):
        self.fails(grpc.StatusCode.UNIMPLEMENTED, lambda: self.stub.RepositoryIndex(
            service_pb2.RepositoryIndexRequest(repository_name="other")), "repository_name")
        ready = self.stub.RepositoryIndex(service_pb2.RepositoryIndexRequest(ready=True)).models
        self.assertEqual({model.state for model in ready}, {"READY"})

    def test_log_settings(self):
        before = self.client.get_log_settings(as_json=True)["settings"]
        self.assertEqual(set(before), {"log_file", "log_info", "log_warning", "log_error", "log_verbose_level", "log_format"})
        changed = self.client.update_log_settings({"log_verbose_level": 1, "log_info": False, "log_format": "ISO8601"}, as_json=True)
        self.assertEqual(changed["settings"]["log_verbose_level"], {"uint32_param": 1})
        self.assertEqual(changed["settings"]["log_format"], {"string_param": "ISO8601"})
        self.assertEqual(changed["settings"]["log_info"], {"bool_param": False})
        self.client.update_log_settings({"log_verbose_level": 0, "log_info": True, "log_format": "default"})
        self.assertEqual(self.client.get_log_settings(as_json=True)["settings"], before)
        for wrong in ({"log_file": "x"}, {"none": True}, {"log_format": "x"}):
            with self.assertRaises(triton_utils.InferenceServerException):
                self.client.update_log_settings(wrong)

    def test_trace_settings(self):
        before = self.client.get_trace_settings(as_json=True)["settings"]
        self.assertEqual(before["trace_level"], {"value": ["OFF"]})
        self.client.update_trace_settings("addsub", {"trace_rate": "7"})
        self.assertEqual(self.client.get_trace_settings("addsub", as_json=True)["settings"]["trace_rate"], {"value": ["7"]})
        self.assertEqual(self.client.get_trace_settings(as_json=True)["settings"], before)
        self.client.update_trace_settings("addsub", {"trace_rate": None})
        self.assertEqual(self.client.get_trace_settings("addsub", as_json=True)["settings"], before)
        for model, wrong in (("none", {"trace_rate": "7"}), ("", {"trace_rate": "x"}), ("", {"trace_file": "x"})):
            with self.assertRaises(triton_utils.InferenceServerException):
                self.client.update_trace_settings(model, wrong)

    def test_versions_must_be_numbers(self):
        self.fails(grpc.StatusCode.INVALID_ARGUMENT,
                   lambda: self.stub.ModelMetadata(service_pb2.ModelMetadataRequest(name="addsub", version="x")), "'x'")


class SharedMemory(Case):
    def region(self, name, size):
        handle = shm.create_shared_memory_region(name, f"/kelp-grpc-{os.getpid()}-{name}", size)
        self.addCleanup(shm.destroy_shared_memory_region, handle)
        self.client.register_system_shared_memory(name, f"/kelp-grpc-{os.getpid()}-{name}", size)
        self.addCleanup(self.client.unregister_system_shared_memory, name)
        return handle

    def test_inputs_and_outputs_in_shared_memory(self):
        handle, output = self.region("in", 64), self.region("out", 64)
        values = np.arange(4, dtype=np.float32)
        shm.set_shared_memory_region(handle, [values, values])
        inputs = [triton.InferInput(f"INPUT{i}", [4], "FP32") for i in range(2)]
        for i, item in enumerate(inputs):
            item.set_shared_memory("in", 16, 16 * i)
        outputs = [triton.InferRequestedOutput("OUTPUT0"), triton.InferRequestedOutput("OUTPUT1")]
        outputs[0].set_shared_memory("out", 16, 8)
        result = self.client.infer("addsub", inputs, outputs=outputs)
        self.assertEqual(shm.get_contents_as_numpy(output, np.float32, [4], 8).tolist(), [0.0, 2.0, 4.0, 6.0])
        self.assertEqual(result.as_numpy("OUTPUT1").tolist(), [0.0] * 4)
        status = self.client.get_system_shared_memory_status(as_json=True)["regions"]
        self.assertEqual(set(status), {"in", "out"})
        self.assertEqual(int(status["out"]["byte_size"]), 64)

    def test_inputs_mix_raw_contents_and_shared_memory(self):
        handle = self.region("mixed", 16)
        shm.set_shared_memory_region(handle, [np.full(4, 5, np.float32)])
        first = triton.InferInput("INPUT0", [4], "FP32")
        first.set_shared_memory("mixed", 16)
        result = self.client.infer("addsub", [first, tensor("INPUT1", "FP32", [1.0] * 4)])
        self.assertEqual(result.as_numpy("OUTPUT0").tolist(), [6.0] * 4)

    def test_wrong_regions_are_rejected(self):
        self.region("small", 16)
        for region, size, offset, code in (("none", 16, 0, "NOT_FOUND"), ("small", 16, 1, "INVALID_ARGUMENT"),
                                           ("small", 12, 0, "INVALID_ARGUMENT")):
            item = triton.InferInput("INPUT0", [4], "FP32")
            item.set_shared_memory(region, size, offset)
            with self.assertRaises(triton_utils.InferenceServerException) as caught:
                self.client.infer("addsub", [item, tensor("INPUT1", "FP32", [1.0] * 4)])
            self.assertEqual(caught.exception.status(), "StatusCode." + code)
        self.fails(grpc.StatusCode.NOT_FOUND, lambda: self.stub.SystemSharedMemoryStatus(
            service_pb2.SystemSharedMemoryStatusRequest(name="none")))

    def test_cuda_shared_memory_needs_a_gpu(self):
        self.assertEqual(self.client.get_cuda_shared_memory_status(as_json=True), {})
        self.client.unregister_cuda_shared_memory()
        self.fails(grpc.StatusCode.INVALID_ARGUMENT, lambda: self.stub.CudaSharedMemoryRegister(
            service_pb2.CudaSharedMemoryRegisterRequest(name="x", raw_handle=b"x", byte_size=4)))


class Protocols(Case):
    def health(self, kind, method):
        return kind("/grpc.health.v1.Health/" + method, request_serializer=bytes, response_deserializer=bytes)

    def test_health_is_checked_and_watched(self):
        serving = b"\x08\x01"
        for service in (b"", b"\x0a\x01x"):
            self.assertEqual(self.health(self.channel.unary_unary, "Check")(service, timeout=PATIENCE_S), serving)
        watch = self.health(self.channel.unary_stream, "Watch")(b"", timeout=PATIENCE_S)
        self.assertEqual(next(watch), serving)
        watch.cancel()

    def reflect(self, version, request):
        call = self.channel.stream_stream(f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
                                          request_serializer=bytes, response_deserializer=bytes)
        return list(call(iter([request] * 3), timeout=PATIENCE_S))

    @staticmethod
    def field(message, number):
        """The values of a field of bytes."""
        found, at = [], 0

        def varint():
            nonlocal at
            value, shift = 0, 0
            while True:
                byte = message[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value
        while at < len(message):
            key = varint()
            if key & 7 == 0:
                varint()
                continue
            size = varint()
            if key >> 3 == number:
                found.append(message[at:at + size])
            at += size
        return found

    def test_reflection_lists_the_services(self):
        for version in ("v1", "v1alpha"):
            answers = self.reflect(version, b"\x3a\x00")
            self.assertEqual(len(answers), 3)
            services = [self.field(item, 1)[0].decode() for item in self.field(self.field(answers[0], 6)[0], 1)]
            self.assertEqual(services, ["inference.GRPCInferenceService", "grpc.health.v1.Health",
                                        "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"])

    def same(self, found, expected):
        """Compares messages, enumerations and methods, in any order, without the names in JSON."""
        for item in (found, expected):
            for message in [*item.message_type]:
                self.order(message)
        self.assertEqual({m.name: m for m in found.message_type}, {m.name: m for m in expected.message_type})
        self.assertEqual({m.name: m for m in found.enum_type}, {m.name: m for m in expected.enum_type})
        for service, other in zip(found.service, expected.service):
            methods = {(m.name, m.input_type, m.output_type, m.client_streaming, m.server_streaming) for m in service.method}
            self.assertEqual(methods, {(m.name, m.input_type, m.output_type, m.client_streaming, m.server_streaming)
                                       for m in other.method})

    def order(self, message):
        fields = sorted(message.field, key=lambda field: field.number)
        for field in fields:
            field.ClearField("json_name")
        del message.field[:]
        message.field.extend(fields)
        for name in ("nested_type", "enum_type"):
            items = sorted(getattr(message, name), key=lambda item: item.name)
            del getattr(message, name)[:]
            getattr(message, name).extend(items)
        for nested in message.nested_type:
            self.order(nested)

    def test_reflection_returns_the_messages_of_triton(self):
        symbol = b"inference.ModelInferRequest.InferInputTensor.shape"
        answer = self.reflect("v1", b"\x22" + bytes([len(symbol)]) + symbol)[0]
        files = [descriptor_pb2.FileDescriptorProto.FromString(item) for item in self.field(self.field(answer, 4)[0], 1)]
        self.assertEqual([item.name for item in files], ["grpc_service.proto", "model_config.proto"])
        for found, module in zip(files, (service_pb2, model_config_pb2)):
            self.same(found, descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb))

    def test_reflection_reports_unknown_names(self):
        for number in (3, 4, 6):
            answer = self.reflect("v1", bytes([number << 3 | 2, 3]) + b"x.y")[0]
            self.assertIn(b"'x.y' is unknown", self.field(answer, 7)[0])

    def test_the_server_lists_its_extensions(self):
        metadata = self.client.get_server_metadata()
        for extension in ("classification", "sequence", "statistics", "model_configuration", "system_shared_memory"):
            self.assertIn(extension, metadata.extensions)
        for extension in ("cuda_shared_memory", "generate"):
            self.assertNotIn(extension, metadata.extensions)


@unittest.skipUnless(os.environ.get("KELP_BIN") or "--kelp" in sys.argv, "starts a server of its own")
class Options(unittest.TestCase):
    """Options of the server that change gRPC."""

    def serve(self, *words, slow=()):
        """Serves a model `identity`, and models that take 0.4 s to load."""
        repository = server.support.Repository()
        self.addCleanup(repository.__exit__)
        port = 'name: "%s" data_type: TYPE_INT64 dims: [ -1 ]'
        ports = 'backend: "identity"\ninput { %s }\noutput { %s }\n' % (port % "INPUT0", port % "OUTPUT0")
        repository.add("identity", config=ports)
        for name in slow:
            repository.add(name, config=ports + 'parameters { key: "instance_delay_ms" value { string_value: "400" } }\n')
        process = server.support.Server("--model-repository", repository.path, *words)
        self.addCleanup(process.__exit__)
        channel = grpc.insecure_channel(process.url)
        self.addCleanup(channel.close)
        return process, service_pb2_grpc.GRPCInferenceServiceStub(channel)

    def test_extensions_are_those_that_clients_can_use(self):
        for allowed in ("true", "false"):
            process, stub = self.serve("--allow-client-shm", allowed)
            found = set(stub.ServerMetadata(service_pb2.ServerMetadataRequest()).extensions)
            expected = {"classification", "sequence", "model_repository", "model_repository(unload_dependents)", "schedule_policy",
                        "model_configuration", "binary_tensor_data", "parameters", "statistics", "trace", "logging"}
            self.assertEqual(found, expected | ({"system_shared_memory"} if allowed == "true" else set()))
            # A request for text is possible over HTTP only.
            self.assertEqual(set(json.loads(process.call("GET", "/v2")[2])["extensions"]), found | {"generate"})

    def test_protocols_share_the_threads_that_load(self):
        process, stub = self.serve("--model-control-mode", "explicit", "--model-load-thread-count", "1", slow=("first", "second"))
        answers = []
        thread = threading.Thread(target=lambda: answers.append(process.call("POST", "/v2/repository/models/first/load", "{}")[0]))
        begin = time.monotonic()
        thread.start()
        stub.RepositoryModelLoad(service_pb2.RepositoryModelLoadRequest(model_name="second"))
        thread.join()
        self.assertEqual(answers, [200])
        self.assertGreaterEqual(time.monotonic() - begin, 0.8)

    def test_metadata_becomes_parameters(self):
        _, stub = self.serve("--grpc-header-forward-pattern", "^my-")
        request = raw_request(parameters={"echo": service_pb2.InferParameter(bool_param=True)})
        metadata = [("my-team", "a"), ("other", "b")]
        found = stub.ModelInfer(request, metadata=metadata).parameters
        self.assertEqual(found["my-team"].string_param, "a")
        self.assertNotIn("other", found)
        for response in stub.ModelStreamInfer(iter([request, request]), metadata=metadata):
            self.assertEqual(response.infer_response.parameters["my-team"].string_param, "a")
        # Clients send spaces at the end, which HTTP/2 does not allow.
        found = stub.ModelInfer(request, metadata=[("my-text", 'a "quoted" text with a backslash\\ ')]).parameters
        self.assertEqual(found["my-text"].string_param, 'a "quoted" text with a backslash\\ ')

    def test_a_pattern_may_distinguish_upper_and_lower_case(self):
        request = raw_request(parameters={"echo": service_pb2.InferParameter(bool_param=True)})
        for pattern, forwarded in (("MY-.*", True), ("(?i)MY-.*", True), ("(?-i)MY-.*", False), ("(?-i)my-.*", True)):
            with self.subTest(pattern=pattern):
                _, stub = self.serve("--grpc-header-forward-pattern", pattern)
                self.assertEqual("my-team" in stub.ModelInfer(request, metadata=[("my-team", "a")]).parameters, forwarded)

    def test_restricted_protocols_need_their_metadata(self):
        _, stub = self.serve("--grpc-restricted-protocol", "inference:key=secret")
        with self.assertRaises(grpc.RpcError) as caught:
            stub.ModelInfer(raw_request())
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertIn("triton-grpc-protocol-key", caught.exception.details())
        stub.ModelInfer(raw_request(), metadata=[("triton-grpc-protocol-key", "secret")])
        self.assertTrue(stub.ServerLive(service_pb2.ServerLiveRequest()).live)

    def test_responses_are_compressed(self):
        process, stub = self.serve("--grpc-infer-response-compression-level", "low")
        call = stub.ModelInfer.with_call(raw_request(values=[7] * 5000))
        self.assertEqual(np.frombuffer(call[0].raw_output_contents[0], np.int64).tolist(), [7] * 5000)
        self.assertEqual(process.stop(), 0)

    def test_a_port_of_its_own(self):
        process, _ = self.serve("--grpc-port", "0", "--allow-http", "true")
        deadline = time.monotonic() + PATIENCE_S
        while "gRPC" not in process.output and time.monotonic() < deadline:
            time.sleep(0.05)
        port = process.output.split("gRPC  http://127.0.0.1:")[1].split()[0]
        self.assertTrue(triton.InferenceServerClient(f"127.0.0.1:{port}").is_server_ready())
        with self.assertRaises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v2", timeout=PATIENCE_S)

    def test_several_servers_share_the_port(self):
        first, _ = self.serve("--grpc-port", "0", "--reuse-grpc-port", "true")
        self.assertTrue(first.up.wait(PATIENCE_S))
        deadline = time.monotonic() + PATIENCE_S
        while "gRPC  " not in first.output and time.monotonic() < deadline:
            time.sleep(0.05)
        port = first.output.split("gRPC  http://127.0.0.1:")[1].split()[0]
        second, _ = self.serve("--grpc-port", port, "--reuse-grpc-port", "true")
        self.assertEqual(first.stop(), 0)
        self.assertTrue(triton.InferenceServerClient(f"127.0.0.1:{port}").is_server_ready())
        with self.assertRaisesRegex(AssertionError, f"port {port}: Address already in use"):
            self.serve("--grpc-port", port)
        with self.assertRaisesRegex(AssertionError, f"port {port}: Address already in use"):
            self.serve("--grpc-port", port, "--reuse-http-port", "true")
        self.assertEqual(second.stop(), 0)

    def test_without_grpc(self):
        process, stub = self.serve("--allow-grpc", "false")
        with self.assertRaises(grpc.RpcError):
            stub.ServerLive(service_pb2.ServerLiveRequest(), timeout=PATIENCE_S)
        self.assertEqual(process.call("GET", "/v2/health/ready")[0], 200)

    def test_a_stop_ends_idle_streams(self):
        process, stub = self.serve()
        more = threading.Event()

        def requests():
            yield raw_request()
            more.wait(PATIENCE_S)
        call = stub.ModelStreamInfer(requests())
        next(call)
        began = time.monotonic()
        self.assertEqual(process.stop(), 0)
        self.assertLess(time.monotonic() - began, 20)
        with self.assertRaises(grpc.RpcError) as caught:
            next(call)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        more.set()

    def test_a_model_that_is_not_decoupled_has_one_response(self):
        """This backend sends three responses, and then the final flag alone."""
        repository = server.support.Repository()
        self.addCleanup(repository.__exit__)
        port = '%s { name: "%s" data_type: TYPE_INT32 dims: [ 2 ] }\n'
        repository.add("decoupled", config='backend: "misbehave"\n' + port % ("input", "INPUT0") + port % ("output", "OUTPUT0"))
        backends = os.path.join(os.path.dirname(os.path.dirname(server.support.KELP)), "backends-test")
        process = server.support.Server("--model-repository", repository.path, "--backend-directory", backends)
        self.addCleanup(process.__exit__)
        channel = grpc.insecure_channel(process.url)
        self.addCleanup(channel.close)
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        request = service_pb2.ModelInferRequest(model_name="decoupled", raw_input_contents=[bytes(8)])
        request.inputs.add(name="INPUT0", datatype="INT32", shape=[2])
        self.assertEqual(stub.ModelInfer(request).parameters["index"].int64_param, 0)
        found = [each.infer_response.parameters["index"].int64_param for each in stub.ModelStreamInfer(iter([request] * 3))]
        self.assertEqual(found, [0, 0, 0])
        self.assertEqual(process.stop(), 0)

    def test_a_stop_ends_watches(self):
        process, _ = self.serve()
        channel = grpc.insecure_channel(process.url)
        watch = channel.unary_stream("/grpc.health.v1.Health/Watch", request_serializer=bytes, response_deserializer=bytes)(b"")
        self.assertEqual(next(watch), b"\x08\x01")
        began = time.monotonic()
        self.assertEqual(process.stop(), 0)
        self.assertLess(time.monotonic() - began, 20)
        channel.close()


class Page(Case):
    def test_the_program_of_the_page_runs(self):
        blocks = [block.text for block in shown.blocks(os.path.join(server.cases.ROOT, "docs", "grpc.md")) if block.language == "python"]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(blocks[0].replace("localhost:8001", TARGET["url"]), {})
        self.assertRegex(printed.getvalue(), r"^\[\d\]")


if __name__ == "__main__":
    sys.exit(server.main("__main__", use, started="kelp"))
