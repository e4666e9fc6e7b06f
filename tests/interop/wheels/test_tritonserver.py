#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's Python package tritonserver (the in-process API) on our libtritonserver.so: its classes, and its bindings of the C API.

scripts/tritonfrontend.sh runs it."""
import asyncio
import concurrent.futures
import ctypes
import json
import os
import queue
import tempfile
import threading
import time
import unittest

import numpy as np
import repository
import tritonserver
from tritonserver import _c as bindings

repository.check_library()
FINAL = int(bindings.TRITONSERVER_ResponseCompleteFlag.FINAL)
IMAGES = np.load(os.path.join(repository.ROOT, "examples", "requests", "digits.npy"))


def value(response, name):
    return np.from_dlpack(response.outputs[name])


def next_response(request):
    """Returns the next response to a request of the bindings, and its flags."""
    future = concurrent.futures.Future()
    request.get_next_response(future)
    return future.result(timeout=10)


class Served(unittest.TestCase):
    """A server with all models for the tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        repository.make(cls.directory.name)
        cls.server = tritonserver.Server(repository.options(cls.directory.name)).start(wait_until_ready=True)

    @classmethod
    def tearDownClass(cls):
        began = time.monotonic()
        cls.server.stop()
        cls.directory.cleanup()
        assert time.monotonic() - began < 5, "the server waited for requests that had ended"


class Infer(Served):
    def addsub(self, **more):
        a, b = np.arange(16, dtype=np.float32).reshape(1, 16), np.ones((1, 16), dtype=np.float32)
        return a, b, {"inputs": {"INPUT0": a, "INPUT1": b}, **more}

    def test_arrays_are_passed_and_returned(self):
        a, b, request = self.addsub(request_id="one")
        response, = self.server.model("addsub").infer(**request)
        self.assertTrue(response.final)
        self.assertEqual((response.request_id, response.model.name, response.model.version), ("one", "addsub", 1))
        np.testing.assert_array_equal(value(response, "OUTPUT0"), a + b)
        np.testing.assert_array_equal(value(response, "OUTPUT1"), a - b)
        self.assertEqual(response.outputs["OUTPUT0"].memory_type, tritonserver.MemoryType.CPU)

    def test_an_onnx_model_recognizes_digits(self):
        response, = self.server.model("digits").infer(inputs={"image": IMAGES}, output_memory_type="cpu")
        self.assertEqual(value(response, "digit").tolist(), [3, 7, 4])

    def test_strings_and_half_precision(self):
        response, = self.server.model("text").infer(inputs={"INPUT0": tritonserver.Tensor.from_string_array(["some", "", "text"])})
        self.assertEqual(response.outputs["OUTPUT0"].to_string_array().tolist(), ["some", "", "text"])
        half = np.random.rand(3, 5).astype(np.float16)
        response, = self.server.model("half").infer(inputs={"INPUT0": half})
        np.testing.assert_array_equal(value(response, "OUTPUT0"), half)

    def test_outputs_live_as_long_as_arrays_of_them(self):
        half = np.random.rand(200, 500).astype(np.float16)
        arrays = [value(next(iter(self.server.model("half").infer(inputs={"INPUT0": half}))), "OUTPUT0") for _ in range(20)]
        for array in arrays:
            np.testing.assert_array_equal(array, half)

    def test_parameters_are_echoed(self):
        parameters = {"echo": True, "number": 7, "fraction": 0.5, "word": "x", "off": False}
        response, = self.server.model("text").infer(inputs={"INPUT0": ["a"]}, parameters=parameters)
        self.assertEqual(response.parameters, parameters)

    def test_a_decoupled_model_sends_several_responses(self):
        model = self.server.model("repeat")
        self.assertEqual(model.transaction_properties(), tritonserver.ModelTxnPropertyFlag.DECOUPLED)
        responses = list(model.infer(inputs={"IN": np.array([4, 5, 6], dtype=np.int32)}))
        self.assertEqual([int(value(each, "OUT")[0]) for each in responses if each.outputs], [4, 5, 6])
        self.assertEqual([each.final for each in responses], [False] * (len(responses) - 1) + [True])

    def test_responses_are_put_into_a_queue(self):
        _, _, request = self.addsub(response_queue=queue.SimpleQueue())
        iterators = [self.server.model("addsub").infer(**request) for _ in range(8)]
        answers = [request["response_queue"].get(timeout=10) for _ in range(8)]
        self.assertTrue(all(each.final and each.error is None for each in answers))
        for iterator in iterators:
            self.assertEqual(len(list(iterator)), 1)

    def test_asynchronous_requests_run_at_once(self):
        a, b, request = self.addsub()

        async def one():
            async for response in self.server.model("addsub").async_infer(**request):
                np.testing.assert_array_equal(value(response, "OUTPUT0"), a + b)
            return [int(value(each, "OUT")[0]) async for each in
                    self.server.model("repeat").async_infer(inputs={"IN": np.array([1, 2], dtype=np.int32)}) if each.outputs]

        async def every():
            return await asyncio.gather(*[one() for _ in range(50)])

        self.assertEqual(asyncio.run(every()), [[1, 2]] * 50)

    def test_threads_infer_at_once(self):
        failures = []

        def work(number):
            a = np.full((1, 16), number, dtype=np.float32)
            for _ in range(50):
                response, = self.server.model("addsub").infer(inputs={"INPUT0": a, "INPUT1": a})
                if not np.array_equal(value(response, "OUTPUT0"), a + a):
                    failures.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_a_request_is_cancelled(self):
        began = time.monotonic()
        iterator = self.server.model("text").infer(inputs={"INPUT0": ["a"]}, parameters={"delay_ms": 20000}, raise_on_error=False)
        time.sleep(0.1)
        iterator.cancel()
        response, = iterator
        self.assertIn("cancelled", str(response.error))
        self.assertLess(time.monotonic() - began, 5)

    def test_sequences_keep_their_state(self):
        start, end = (int(flag) for flag in (bindings.TRITONSERVER_RequestFlag.SEQUENCE_START, bindings.TRITONSERVER_RequestFlag.SEQUENCE_END))
        for correlation in (17, "seventeen"):
            sums = []
            for step, flags in enumerate((start, 0, end)):
                response, = self.server.model("accumulator").infer(inputs={"INPUT": np.array([step + 1], dtype=np.float32)},
                                                                   correlation_id=correlation, flags=flags)
                sums.append(float(value(response, "OUTPUT")[0]))
            self.assertEqual(sums, [1, 3, 6])

    def test_failures_are_raised_as_their_kind(self):
        _, _, request = self.addsub()
        with self.assertRaisesRegex(tritonserver.NotFoundError, "unknown model: 'nothing'"):
            self.server.model("nothing").infer(**request)
        with self.assertRaisesRegex(tritonserver.InvalidArgumentError, "expected 2 inputs but got 1"):
            self.server.model("addsub").infer(inputs={"INPUT0": request["inputs"]["INPUT0"]})
        with self.assertRaisesRegex(tritonserver.InvalidArgumentError, "unexpected shape for input 'INPUT0'"):
            self.server.model("addsub").infer(inputs={"INPUT0": np.zeros((1, 3), np.float32), "INPUT1": np.zeros((1, 16), np.float32)})
        iterator = self.server.model("text").infer(inputs={"INPUT0": ["a"]}, parameters={"delay_ms": "long"})
        with self.assertRaisesRegex(tritonserver.InvalidArgumentError, "delay_ms"):
            next(iterator)


class Manage(Served):
    def test_a_server_describes_itself(self):
        self.assertTrue(self.server.live() and self.server.ready())
        self.assertEqual(self.server.metadata()["name"], "kelp")
        self.assertEqual(sorted(name for name, _ in self.server.models()), ["accumulator", "addsub", "digits", "half", "repeat", "text"])
        self.assertEqual({model.state for model in self.server.models(exclude_not_ready=True).values()}, {"READY"})

    def test_a_model_describes_itself(self):
        model = self.server.model("addsub")
        self.assertTrue(model.ready())
        self.assertEqual(model.batch_properties(), tritonserver.ModelBatchFlag.FIRST_DIM)
        self.assertEqual([each["name"] for each in model.metadata()["inputs"]], ["INPUT0", "INPUT1"])
        self.assertEqual(model.config()["max_batch_size"], 8)
        zeros = np.zeros((2, 16), np.float32)
        before = model.statistics()["model_stats"][0]["inference_count"]
        list(model.infer(inputs={"INPUT0": zeros, "INPUT1": zeros}))
        self.assertEqual(model.statistics()["model_stats"][0]["inference_count"] - before, 2)

    def test_models_are_loaded_and_unloaded(self):
        model = self.server.load("half", {"config": json.dumps({"backend": "identity", "max_batch_size": 4,
                                                                "input": [{"name": "INPUT0", "data_type": "TYPE_INT8", "dims": [2]}],
                                                                "output": [{"name": "OUTPUT0", "data_type": "TYPE_INT8", "dims": [2]}]})})
        self.assertEqual(model.config()["max_batch_size"], 4)
        self.server.unload(model, wait_until_unloaded=True, timeout=10)
        self.assertFalse(self.server.model("half").ready())
        with self.assertRaises(tritonserver.TritonError):
            self.server.load("half", {"config": "{"})
        with self.assertRaises(tritonserver.TritonError):
            self.server.load("nothing")
        self.assertTrue(self.server.load("half").ready())

    def test_repositories_are_registered(self):
        with tempfile.TemporaryDirectory() as other:
            os.makedirs(os.path.join(other, "more", "1"))
            with open(os.path.join(other, "more", "config.pbtxt"), "w", encoding="utf-8") as file:
                file.write(repository.MODELS["text"])
            self.server.register_model_repository(other)
            self.assertTrue(self.server.load("more").ready())
            self.server.unload("more", wait_until_unloaded=True)
            self.server.unregister_model_repository(other)
            self.assertNotIn("more", {name for name, _ in self.server.models()})

    def test_metrics_of_the_server_and_of_the_application(self):
        zeros = np.zeros((1, 16), np.float32)
        list(self.server.model("addsub").infer(inputs={"INPUT0": zeros, "INPUT1": zeros}))
        self.assertRegex(self.server.metrics(), r'nv_inference_request_success\{model="addsub",version="1"\} [1-9]')
        family = tritonserver.MetricFamily(tritonserver.MetricKind.COUNTER, "application_things", "Things")
        metric = tritonserver.Metric(family, {"kind": "a"})
        metric.increment(3)
        self.assertIn('application_things{kind="a"} 3', self.server.metrics())
        with self.assertRaises(tritonserver.TritonError):
            metric.set_value(1)
        del metric
        self.assertNotIn('application_things{kind="a"}', self.server.metrics())

    def test_a_trace_reports_activities_and_tensors(self):
        levels = bindings.TRITONSERVER_InferenceTraceLevel
        done, activities, tensors = threading.Event(), [], []
        trace = bindings.TRITONSERVER_InferenceTrace(
            int(levels.TIMESTAMPS) | int(levels.TENSORS), 0,
            lambda trace, activity, timestamp_ns, user: activities.append((activity, timestamp_ns)),
            lambda trace, activity, name, data_type, base, size, shape, memory, memory_id, user: tensors.append((name, size, list(shape))),
            lambda trace, user: done.set(), None)
        request = self.server.model("half").create_request(inputs={"INPUT0": np.ones((2, 3), np.float16)})._create_tritonserver_inference_request()
        self.server._server.infer_async(request, trace)
        response, flags = next_response(request)
        self.assertEqual(int(flags), FINAL)
        del response, request
        self.assertTrue(done.wait(10), "the trace was not released")
        names = [activity.name for activity, _ in activities]
        self.assertEqual((names[0], names[-1]), ("REQUEST_START", "REQUEST_END"))
        self.assertIn("COMPUTE_START", names)
        times = [timestamp for _, timestamp in activities]
        self.assertEqual(times, sorted(times))
        self.assertEqual(sorted(tensors), [("INPUT0", 12, [2, 3]), ("OUTPUT0", 12, [2, 3])])


class Memory(Served):
    """The bindings' buffers."""

    def test_attributes_of_a_buffer_are_kept(self):
        attributes = bindings.TRITONSERVER_BufferAttributes()
        attributes.memory_type, attributes.memory_type_id, attributes.byte_size = tritonserver.MemoryType.CPU, 0, 12
        self.assertEqual((attributes.memory_type, attributes.memory_type_id, attributes.byte_size), (tritonserver.MemoryType.CPU, 0, 12))

    def test_inputs_of_several_buffers_are_joined(self):
        array = np.arange(6, dtype=np.float16).reshape(2, 3)
        request = bindings.TRITONSERVER_InferenceRequest(self.server._server, "half", -1)
        request.add_input("INPUT0", tritonserver.DataType.FP16, array.shape)
        for part in (array[:1], array[1:]):
            request.append_input_data("INPUT0", part.ctypes.data, part.nbytes, tritonserver.MemoryType.CPU, 0)
        request.add_requested_output("OUTPUT0")
        self.server._server.infer_async(request)
        response, flags = next_response(request)
        name, data_type, shape, base, size, memory_type, _ = response.output(0)
        self.assertEqual((name, data_type, tuple(shape), size, memory_type, int(flags)),
                         ("OUTPUT0", tritonserver.DataType.FP16, (2, 3), 12, tritonserver.MemoryType.CPU, FINAL))
        np.testing.assert_array_equal(np.frombuffer((ctypes.c_char * size).from_address(base), np.float16).reshape(2, 3), array)


class Life(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        repository.make(self.directory.name)

    def test_wrong_options_fail_the_start(self):
        with self.assertRaisesRegex(tritonserver.TritonError, "/nowhere"):
            tritonserver.Server(repository.options("/nowhere")).start()
        with self.assertRaisesRegex(tritonserver.TritonError, "Unsupported host policy setting 'colour'"):
            tritonserver.Server(repository.options(self.directory.name, host_policies={"near": {"colour": "blue"}})).start()
        with self.assertRaises(tritonserver.InvalidArgumentError):
            tritonserver.Server(repository.options(self.directory.name)).ready()

    def test_servers_are_started_again_and_again(self):
        for _ in range(5):
            server = tritonserver.Server(repository.options(self.directory.name)).start(wait_until_ready=True)
            response, = server.model("text").infer(inputs={"INPUT0": ["a"]})
            server.stop()
            with self.assertRaises(tritonserver.InvalidArgumentError):
                server.ready()
            # The response outlives the server.
            self.assertEqual(response.outputs["OUTPUT0"].to_string_array().tolist(), ["a"])

    def test_a_repository_is_polled(self):
        server = tritonserver.Server(repository.options(self.directory.name, model_control_mode=tritonserver.ModelControlMode.POLL,
                                                        startup_models=[])).start(wait_until_ready=True)
        self.assertTrue(server.model("text").ready())
        os.rename(os.path.join(self.directory.name, "text"), os.path.join(self.directory.name, "words"))
        server.poll_model_repository()
        self.assertTrue(server.model("words").ready())
        self.assertFalse(server.model("text").ready())
        server.stop()

    @unittest.skipUnless(hasattr(tritonserver.Options(), "log_callback"), "this tritonserver has no log_callback")
    def test_the_log_is_passed_to_python(self):
        records = []
        server = tritonserver.Server(repository.options(self.directory.name, log_info=True, log_callback=lambda *record: records.append(record)))
        server.start(wait_until_ready=True)
        server.stop()
        # Ends the callback, which the next test must not see.
        tritonserver.Server(repository.options(self.directory.name)).start().stop()
        messages = [message for *_, message in records]
        self.assertTrue(any("successfully loaded 'digits'" in message for message in messages), messages)
        self.assertEqual({level for level, *_ in records}, {tritonserver._api._server.LogLevel.INFO})
        count = len(records)
        bindings.TRITONSERVER_LogMessage(bindings.TRITONSERVER_LogLevel.ERROR, "test.py", 1, "after the callback")
        self.assertEqual(len(records), count)


if __name__ == "__main__":
    unittest.main()
