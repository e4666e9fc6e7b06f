#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The logging and trace extensions over HTTP, and the trace files.

    test_settings.py --kelp PATH [unittest arguments]
"""
import glob
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import numpy as np
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

import server
import support

OFF = {"trace_level": ["OFF"], "trace_rate": "1000", "trace_count": "-1", "log_frequency": "0", "trace_file": "", "trace_mode": "triton"}


class Case(unittest.TestCase):
    """A server of its own for each test."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.repository = support.Repository()
        for name in ("addsub", "identity"):
            backend, inputs, outputs, more = server.CONFIGS[name]
            self.repository.add(name, config=f'backend: "{backend}"\n' + server.tensors("input", inputs) + server.tensors("output", outputs) + more)

    def tearDown(self):
        self.stop()
        self.repository.__exit__()
        self.directory.cleanup()

    server = None

    def start(self, *options, environment=None):
        self.server = support.Server("--model-repository", self.repository.path, *options, environment=environment)

    def stop(self):
        if self.server:
            self.assertEqual(self.server.stop(), 0, self.server.log())
            self.server.__exit__()
            self.server = None

    def call(self, path, body=None):
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.port}{path}", data=data)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, json.loads(response.read() or "null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def infer(self, count=1, model="identity", **more):
        body = {"inputs": [{"name": "INPUT0", "shape": [2], "datatype": "INT64", "data": [1, 2]}], **more}
        for _ in range(count):
            self.assertEqual(self.call(f"/v2/models/{model}/infer", body)[0], 200)

    def path(self, name):
        return os.path.join(self.directory.name, name)


class Logging(Case):
    def test_settings_are_read_and_changed(self):
        self.start("--log-info", "false", "--log-format", "ISO8601", "--log-verbose", "2")
        first = {"log_file": "", "log_info": False, "log_warning": True, "log_error": True, "log_verbose_level": 2, "log_format": "ISO8601"}
        self.assertEqual(self.call("/v2/logging"), (200, first))
        changed = {**first, "log_info": True, "log_verbose_level": 0, "log_format": "default"}
        self.assertEqual(self.call("/v2/logging", {"log_info": True, "log_verbose_level": 0, "log_format": "default", "log_error": None}), (200, changed))
        self.assertEqual(self.call("/v2/logging", b""), (200, changed))
        self.assertEqual(self.call("/v2/logging"), (200, changed))

    def log_lines(self):
        return [line.split("] ", 1)[1] for line in self.server.log().splitlines() if "] " in line]

    def test_verbose_level_1_logs_each_request_and_failure(self):
        self.start("--log-verbose", "1")
        self.assertEqual(self.call("/v2/health/live"), (200, None))
        self.assertEqual(self.call("/v2/models/none%0a/config")[0], 404)
        with grpcclient.InferenceServerClient(f"127.0.0.1:{self.server.port}") as client:
            with self.assertRaises(InferenceServerException):
                client.get_model_config("none")
        lines = self.log_lines()
        for expected in ('"HTTP request: GET /v2/health/live"', '"HTTP request: GET /v2/models/none%0a/config"',
                         '"HTTP request failed: Request for unknown model: \'none\\n\' is not found"',
                         '"gRPC request: POST /inference.GRPCInferenceService/ModelConfig"',
                         '"gRPC request failed: Request for unknown model: \'none\' is not found"'):
            self.assertEqual(lines.count(expected), 1, lines)
        self.call("/v2/logging", {"log_verbose_level": 0})
        self.call("/v2/health/live")
        self.assertEqual(self.log_lines().count('"HTTP request: GET /v2/health/live"'), 1)

    def test_a_variable_turns_off_the_escapes_of_messages(self):
        for value, expected in (("0", "HTTP request failed: Request for unknown model: 'none"),
                                ("1", '"HTTP request failed: Request for unknown model: \'none\\n\' is not found"')):
            with self.subTest(value=value):
                self.start("--log-verbose", str(2**31 - 1), environment={"TRITON_SERVER_ESCAPE_LOG_MESSAGES": value})
                self.assertEqual(self.call("/v2/models/none%0a/config")[0], 404)
                self.assertIn(expected, self.log_lines())
                self.stop()

    def test_other_methods_are_rejected(self):
        self.start()
        for path, allowed in (("/v2/logging", "GET, HEAD, POST"), ("/v2/health/live", "GET, HEAD"), ("/v2/repository/index", "POST")):
            request = urllib.request.Request(f"http://127.0.0.1:{self.server.port}{path}", method="PUT")
            with self.assertRaises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(request, timeout=30)
            self.assertEqual((caught.exception.code, caught.exception.headers["Allow"]), (405, allowed))

    def test_wrong_settings_change_nothing(self):
        self.start()
        first = self.call("/v2/logging")
        cases = [({"log_file": "x"}, 501, "log file location can not be updated"), ({"log_info": 1}, 400, "'log_info': expected a boolean"),
                 ({"log_verbose_level": -1}, 400, "log_verbose_level"), ({"log_verbose_level": 2**40}, 400, "expected at most"),
                 ({"log_verbose_level": True}, 400, "expected a number"), ({"log_format": "x"}, 400, "invalid argument for --log_format, got: x"),
                 ({"log_info": False, "other": 1}, 400, "unknown log setting 'other'"), ([], 400, "expected an object"), (b"{", 400, "")]
        for body, expected, words in cases:
            with self.subTest(body=body):
                status, answer = self.call("/v2/logging", body)
                self.assertEqual(status, expected, answer)
                self.assertIn(words, answer["error"])
        self.assertEqual(self.call("/v2/logging"), first)


class Tracing(Case):
    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def wait(self, name):
        for _ in range(200):
            if os.path.exists(self.path(name)):
                with open(self.path(name), encoding="utf-8") as file:
                    if file.read().endswith("]"):
                        return self.read(name)
            time.sleep(0.02)
        self.fail(f"{name} was not written")

    def test_settings_of_models_follow_the_global_ones(self):
        self.start("--trace-config", f"triton,file={self.path('t')}", "--trace-rate", "7")
        self.assertEqual(self.call("/v2/trace/setting"), (200, {**OFF, "trace_rate": "7", "trace_file": self.path("t")}))
        self.assertEqual(self.call("/v2/models/identity/trace/setting", {"trace_count": "5"})[1]["trace_count"], "5")
        self.call("/v2/trace/setting", {"trace_rate": "9", "trace_count": "6"})
        model = self.call("/v2/models/identity/trace/setting")[1]
        self.assertEqual((model["trace_rate"], model["trace_count"]), ("9", "5"))
        self.assertEqual(self.call("/v2/models/addsub/trace/setting")[1]["trace_count"], "6")
        self.assertEqual(self.call("/v2/models/identity/trace/setting", {"trace_count": None})[1]["trace_count"], "6")
        self.assertEqual(self.call("/v2/trace/setting", {"trace_rate": None, "trace_count": None})[1]["trace_rate"], "7")

    def test_wrong_settings_change_nothing(self):
        self.start()
        cases = [({"trace_file": "x"}, 501, "trace file location can not be updated through network protocol"),
                 ({"trace_level": ["OFF", "TENSORS"]}, 400, "Expect only one trace level 'OFF' is specified"),
                 ({"trace_level": ["x"]}, 400, "'trace_level'"), ({"trace_level": ["TIMESTAMPS"]}, 400, "trace file name is not given"),
                 ({"trace_rate": "x"}, 400, "Unable to parse 'trace_rate', got: x"), ({"trace_rate": "-1"}, 400, "out of range"),
                 ({"trace_count": "-2"}, 400, "out of range"), ({"trace_count": "10000000000"}, 400, "out of range"),
                 ({"trace_count": 5}, 400, "expected a string"), ({"trace_count": ["1", "2"]}, 400, "expect only 1 value for 'trace_count'"),
                 ({"trace_count": "1", "other": "1"}, 400, "unknown trace setting 'other'")]
        for body, expected, words in cases:
            with self.subTest(body=body):
                for path in ("/v2/trace/setting", "/v2/models/identity/trace/setting"):
                    status, answer = self.call(path, body)
                    self.assertEqual(status, expected, answer)
                    self.assertIn(words, answer["error"])
        self.assertEqual(self.call("/v2/trace/setting"), (200, OFF))
        status, answer = self.call("/v2/models/none/trace/setting")
        self.assertEqual((status, answer["error"]), (400, "Request for unknown model : none"))

    def names(self, elements):
        """Returns the activities of each trace."""
        traces = {}
        for element in elements:
            for stamp in element.get("timestamps", []):
                traces.setdefault(element["id"], []).append(stamp["name"])
        return traces

    def test_all_traces_are_in_one_file_after_the_end(self):
        self.start("--trace-config", f"triton,file={self.path('t')}", "--trace-config", "level=TIMESTAMPS", "--trace-config", "rate=2")
        self.infer(6, id='a"b')
        self.stop()
        elements = self.read("t")
        models = [element for element in elements if "model_name" in element]
        self.assertEqual([(m["model_name"], m["model_version"], m["request_id"]) for m in models], [("identity", 1, 'a"b')] * 3)
        for names in self.names(elements).values():
            for name in ("HTTP_RECV_START", "HTTP_RECV_END", "REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_END", "REQUEST_END",
                         "INFER_RESPONSE_COMPLETE", "HTTP_SEND_START", "HTTP_SEND_END"):
                self.assertIn(name, names)
        self.assert_order(elements, "HTTP_RECV_START", "HTTP_RECV_END", "REQUEST_START", "HTTP_SEND_START", "HTTP_SEND_END")
        times = [stamp["ns"] for element in elements for stamp in element.get("timestamps", [])]
        self.assertTrue(all(time > 0 for time in times))

    def assert_order(self, elements, *names):
        """Checks that each trace has these activities in this order."""
        for trace in self.names(elements):
            times = {stamp["name"]: stamp["ns"] for element in elements if element["id"] == trace for stamp in element.get("timestamps", [])}
            self.assertEqual([times[name] for name in names], sorted(times[name] for name in names))

    def test_a_body_that_arrives_slowly_is_received_for_that_time(self):
        self.start("--trace-config", f"triton,file={self.path('t')}", "--trace-config", "level=TIMESTAMPS", "--trace-config", "rate=1")
        body = json.dumps({"inputs": [{"name": "INPUT0", "shape": [2], "datatype": "INT64", "data": [1, 2]}]})
        head = f"POST /v2/models/identity/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.server.port), 30) as client:
            for part in (head[:20], head[20:] + body[:10], body[10:]):
                client.sendall(part.encode())
                time.sleep(0.1)
            self.assertIn(b"200 OK", client.recv(4096))
        self.stop()
        elements = self.read("t")
        times = {stamp["name"]: stamp["ns"] for element in elements for stamp in element.get("timestamps", [])}
        self.assertGreater(times["HTTP_RECV_END"] - times["HTTP_RECV_START"], 150e6)

    def test_requests_over_grpc_are_traced(self):
        self.start("--trace-config", f"triton,file={self.path('t')}", "--trace-config", "level=TIMESTAMPS", "--trace-config", "rate=1")
        with grpcclient.InferenceServerClient(f"127.0.0.1:{self.server.port}") as client:
            tensor = grpcclient.InferInput("INPUT0", [2], "INT64")
            tensor.set_data_from_numpy(np.array([1, 2], np.int64))
            client.infer("identity", [tensor])
        self.stop()
        self.assert_order(self.read("t"), "GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "REQUEST_START", "GRPC_SEND_START", "GRPC_SEND_END")

    def test_older_names_of_levels_are_accepted(self):
        for level, expected in (("MIN", ["TIMESTAMPS"]), ("max", ["TIMESTAMPS"]), ("tensors", ["TENSORS"]), ("off", ["OFF"])):
            with self.subTest(level=level):
                self.start("--trace-config", f"triton,file={self.path('t')}", "--trace-config", f"level={level}")
                self.assertEqual(self.call("/v2/trace/setting")[1]["trace_level"], expected)
                self.stop()
        self.start("--trace-config", f"triton,file={self.path('t')}", "--trace-config", "level=OFF", "--trace-config", "level=TIMESTAMPS")
        self.assertEqual(self.call("/v2/trace/setting")[1]["trace_level"], ["OFF"])

    def test_a_missing_file_is_a_warning(self):
        self.start("--trace-config", "mode=triton", "--trace-config", "level=TIMESTAMPS", "--trace-config", "rate=1")
        self.infer(2)
        self.assertEqual(self.call("/v2/trace/setting")[1]["trace_level"], ["OFF"])
        self.assertIn("requests are not traced, because '--trace-config triton,file=FILE' is missing", self.server.log())

    def test_traces_are_distributed_to_files(self):
        self.start("--trace-config", f"triton,file={self.path('t')}", "--trace-config", "triton,log-frequency=2", "--trace-level", "TIMESTAMPS",
                   "--trace-rate", "1")
        self.infer(5)
        self.assertEqual(len(self.names(self.wait("t.0"))), 2)
        self.assertEqual(len(self.names(self.wait("t.1"))), 2)
        self.stop()
        self.assertEqual(len(self.names(self.read("t.2"))), 1)
        self.assertEqual(len(glob.glob(self.path("t*"))), 3)

    def test_tracing_is_changed_while_requests_run(self):
        self.start("--trace-file", self.path("t"), "--trace-rate", "1")
        self.infer(3)
        self.assertEqual(self.call("/v2/models/identity/trace/setting", {"trace_level": ["TIMESTAMPS", "TENSORS"], "trace_count": "2"})[0], 200)
        self.infer(5)
        elements = self.wait("t.0")
        self.assertEqual(self.call("/v2/models/identity/trace/setting")[1]["trace_count"], "0")
        self.assertEqual(len(self.names(elements)), 2)
        tensors = [(e["activity"], e["tensor"]) for e in elements if "tensor" in e]
        self.assertIn(("TENSOR_QUEUE_INPUT", {"name": "INPUT0", "data": "1,2", "shape": "2", "dtype": "INT64"}), tensors)
        self.assertIn(("TENSOR_BACKEND_OUTPUT", {"name": "OUTPUT0", "data": "1,2", "shape": "2", "dtype": "INT64"}), tensors)
        self.call("/v2/models/identity/trace/setting", {"trace_level": ["OFF"]})
        self.infer(3)
        self.stop()
        self.assertEqual(len(glob.glob(self.path("t*"))), 1)

    def test_failed_requests_and_streams_are_traced(self):
        self.start("--trace-file", self.path("t"), "--trace-rate", "1", "--trace-level", "TIMESTAMPS")
        self.assertEqual(self.call("/v2/models/identity/infer", {"inputs": []})[0], 400)
        self.assertEqual(self.call("/v2/models/identity/generate", {"INPUT0": 1})[0], 200)
        self.stop()
        self.assertTrue(any("REQUEST_END" in names for names in self.names(self.read("t")).values()))

    def test_a_file_that_cannot_be_written_is_logged(self):
        self.start("--trace-file", "/proc/none/t", "--trace-rate", "1", "--trace-level", "TIMESTAMPS")
        self.infer(2)
        log = self.server
        self.stop_and_expect(log, "cannot write trace file '/proc/none/t'")

    def stop_and_expect(self, started, words):
        started.stop()
        self.assertIn(words, started.log())
        started.__exit__()
        self.server = None

    def test_wrong_options_are_reported(self):
        for option, words in (("mode=x", "'mode': expected triton or opentelemetry"), ("opentelemetry,x=1", "unknown setting"), ("x", "expected [MODE,]SETTING=VALUE"),
                              ("level=x", "invalid trace level 'x'"), ("rate=x", '"--trace-config rate": expected a number'), ("triton,x=1", "unknown setting")):
            result = subprocess.run([support.KELP, "serve", self.repository.path, "--http-port", "0", "--trace-config", option],
                                    capture_output=True, text=True, timeout=60)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(words, re.sub(r"\s+", " ", result.stderr))


if __name__ == "__main__":
    position = sys.argv.index("--kelp")
    support.KELP = os.path.abspath(sys.argv[position + 1])
    del sys.argv[position:position + 2]
    unittest.main(verbosity=2)
