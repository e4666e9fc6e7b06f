#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces with OpenTelemetry: spans, W3C trace context, sampling and the exporter, with a collector of the test.

    test_otlp.py --kelp PATH [unittest arguments]
"""
import json
import os
import queue
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

import server
import support
from collector import Collector
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

TRACE, SPAN = "0af7651916cd43dd8448eb211c12666c", "b7ad6b7169242424"
PARENT = f"00-{TRACE}-{SPAN}-01"
NOT_SAMPLED = f"00-{TRACE}-{SPAN}-00"
INTERNAL, SERVER = 1, 2


def pair(name):
    return f'{{ name: "{name}" data_type: TYPE_FP32 dims: [ 16 ] }}'


def config(name, more=""):
    backend, inputs, outputs, own = server.CONFIGS[name]
    return f'backend: "{backend}"\n' + server.tensors("input", inputs) + server.tensors("output", outputs) + own + more


SUM = ('backend: "addsub"\n' f'input [ {pair("INPUT0")}, {pair("INPUT1")} ]\noutput [ {pair("OUTPUT0")}, {pair("OUTPUT1")} ]\n')
CALLER = ('backend: "pipeline"\n' f'input [ {pair("INPUT0")}, {pair("INPUT1")} ]\noutput [ {pair("OUTPUT")} ]\n')
STEPS = ('platform: "ensemble"\n' f'input [ {pair("a")}, {pair("b")} ]\noutput [ {pair("c")} ]\n'
         'ensemble_scheduling { step [ { model_name: "addsub" model_version: -1 input_map { key: "INPUT0" value: "a" } '
         'input_map { key: "INPUT1" value: "b" } output_map { key: "OUTPUT0" value: "sum" } output_map { key: "OUTPUT1" value: "difference" } }, '
         '{ model_name: "caller" model_version: -1 input_map { key: "INPUT0" value: "sum" } '
         'input_map { key: "INPUT1" value: "difference" } output_map { key: "OUTPUT" value: "c" } } ] }\n')


def floats(client, *names):
    made = [client.InferInput(name, [16], "FP32") for name in names]
    for item in made:
        item.set_data_from_numpy(np.ones(16, np.float32))
    return made


def integers(client, values=(1, 2)):
    made = client.InferInput("INPUT0", [len(values)], "INT64")
    made.set_data_from_numpy(np.array(values, np.int64))
    return [made]


class Case(unittest.TestCase):
    def setUp(self):
        self.repository = support.Repository()
        self.repository.add("identity", config=config("identity"))
        self.repository.add("slow", config=config("identity", 'parameters { key: "execute_delay_ms" value { string_value: "1500" } }\n'))
        self.repository.add("repeat", config=config("repeat"))
        self.repository.add("addsub", config=SUM)
        self.repository.add("caller", config=CALLER)
        self.repository.add("steps", config=STEPS)
        self.addCleanup(self.repository.__exit__)
        self.server = None

    def collect(self, *arguments, **named):
        collector = Collector(*arguments, **named)
        self.addCleanup(collector.close)
        return collector

    def start(self, collector, *options, **environment):
        """Starts a server that exports to the collector, at once."""
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector if isinstance(collector, str) else collector.url,
                     "OTEL_BSP_SCHEDULE_DELAY": "50", "NO_PROXY": "*", **environment}
        self.server = support.Server("--model-repository", self.repository.path, *options, environment=variables)
        self.addCleanup(self.server.__exit__)
        self.http = http_client.InferenceServerClient(self.server.url, network_timeout=60)
        self.addCleanup(self.http.close)
        self.grpc = grpc_client.InferenceServerClient(self.server.url)
        self.addCleanup(self.grpc.close)

    def stop(self):
        self.grpc.close()
        began = time.monotonic()
        self.assertEqual(self.server.stop(), 0, self.server.log())
        return time.monotonic() - began

    def infer(self, count=1, model="identity", **headers):
        for _ in range(count):
            self.http.infer(model, integers(http_client), headers=headers)

    def counter(self, name):
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.server.metrics().splitlines() if line.startswith(name))

    def wait_counter(self, name, count):
        """Waits, because spans are counted after the response of the collector."""
        end = time.monotonic() + 60
        while self.counter(name) < count:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.assertEqual(self.counter(name), count)

    def tree(self, spans):
        """Checks what all spans of one request have in common, and returns the names of the children of each name."""
        by_id = {span.id: span for span in spans}
        self.assertEqual(len(by_id), len(spans))
        self.assertEqual(len({span.trace for span in spans}), 1)
        children = {}
        for span in spans:
            self.assertRegex(span.id, "^(?!0{16})[0-9a-f]{16}$")
            self.assertLessEqual(span.start, span.end)
            self.assertEqual(span.times, sorted(span.times), span.name)
            for at in span.times:
                self.assertTrue(span.start <= at <= span.end, (span.name, span.events))
            parent = by_id.get(span.parent)
            if parent:
                self.assertTrue(parent.start <= span.start, (parent.name, span.name))
                children.setdefault(parent.name, []).append(span.name)
            self.assertEqual(span.kind, SERVER if span.name == "InferRequest" else INTERNAL)
        return {name: sorted(names) for name, names in children.items()}


class Spans(Case):
    def test_a_request_over_http(self):
        collector = self.collect()
        self.start(collector, OTEL_SERVICE_NAME="test service", OTEL_RESOURCE_ATTRIBUTES="a=b%20c,service.name=no")
        before = time.time_ns()
        self.http.infer("identity", integers(http_client), request_id="the id")
        root, = collector.roots(1)
        spans = collector.spans()
        self.assertEqual(self.tree(spans), {"InferRequest": ["identity"], "identity": ["compute"]})
        self.assertTrue(before <= root.start <= root.end <= time.time_ns())
        self.assertEqual(root.parent, "")
        self.assertEqual(root.flags & 0x3ff, 0x103)  # sampled, random, with a parent that is not remote
        self.assertEqual(root.events, ["HTTP_RECV_START", "HTTP_RECV_END", "INFER_RESPONSE_COMPLETE", "HTTP_SEND_START", "HTTP_SEND_END"])
        self.assertEqual(root.attributes, {"http.request.method": "POST", "url.path": "/v2/models/identity/infer",
                                           "http.route": "/v2/models/{model}/infer",
                                           "network.protocol.version": "1.1", "http.response.status_code": 200})
        self.assertFalse(root.failed)
        model, = collector.named("identity")
        self.assertEqual(model.events, ["REQUEST_START", "QUEUE_START", "REQUEST_END"])
        number = model.attributes.pop("triton.trace_id")
        self.assertGreater(number, 0)
        self.assertEqual(model.attributes, {"triton.model_name": "identity", "triton.model_version": 1,
                                            "triton.trace_parent_id": 0, "triton.request_id": "the id"})
        compute, = collector.named("compute")
        self.assertEqual(compute.events, ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"])
        request = collector.requests[0]
        self.assertEqual(request.path, "/v1/traces")
        self.assertEqual(request.headers["content-type"], "application/x-protobuf")
        resource, = request.message.resource_spans
        attributes = {item.key: item.value.string_value for item in resource.resource.attributes}
        self.assertEqual((attributes["service.name"], attributes["a"]), ("test service", "b c"))
        self.assertEqual(resource.scope_spans[0].scope.name, "kelp")
        self.wait_counter("kelp_trace_spans_exported_total", 3)

    def test_the_route_has_no_names(self):
        collector = self.collect()
        self.start(collector)
        self.http.infer("identity", integers(http_client), model_version="1")
        root, = collector.roots(1)
        self.assertEqual((root.attributes["url.path"], root.attributes["http.route"]),
                         ("/v2/models/identity/versions/1/infer", "/v2/models/{model}/versions/{version}/infer"))

    def test_a_request_over_grpc(self):
        collector = self.collect()
        self.start(collector)
        self.grpc.infer("identity", integers(grpc_client))
        root, = collector.roots(1)
        self.assertEqual(self.tree(collector.spans()), {"InferRequest": ["identity"], "identity": ["compute"]})
        self.assertEqual(root.events, ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "INFER_RESPONSE_COMPLETE", "GRPC_SEND_START", "GRPC_SEND_END"])
        self.assertEqual(root.attributes, {"rpc.system": "grpc", "rpc.service": "inference.GRPCInferenceService",
                                           "rpc.method": "ModelInfer", "rpc.grpc.status_code": 0})

    def test_steps_and_calls_of_backends_are_children(self):
        collector = self.collect()
        self.start(collector)
        self.http.infer("steps", floats(http_client, "a", "b"), headers={"traceparent": PARENT})
        root, = collector.roots(1)
        spans = collector.spans()
        self.assertEqual(self.tree(spans), {"InferRequest": ["steps"], "steps": ["addsub", "caller"], "addsub": ["compute"] * 3,
                                            "caller": ["addsub", "addsub", "compute"]})
        self.assertEqual({span.trace for span in spans}, {TRACE})
        self.assertEqual(root.parent, SPAN)

    def test_a_stream_has_a_trace_for_each_request(self):
        collector = self.collect()
        self.start(collector)
        results = queue.Queue()
        self.grpc.start_stream(lambda result, error: results.put(error or result), headers={"traceparent": PARENT, "tracestate": "a=1"})
        for _ in range(3):
            self.grpc.async_stream_infer("identity", integers(grpc_client))
        for _ in range(3):
            self.assertNotIsInstance(results.get(timeout=60), Exception)
        self.grpc.stop_stream()
        roots = collector.roots(3)
        self.assertEqual({(span.trace, span.parent, span.state, span.attributes["rpc.method"]) for span in roots},
                         {(TRACE, SPAN, "a=1", "ModelStreamInfer")})

    def test_a_decoupled_model_has_a_limited_number_of_events(self):
        collector = self.collect()
        self.start(collector)
        status, _, data = self.server.call("POST", "/v2/models/repeat/generate_stream", {"IN": list(range(300))})
        self.assertEqual(status, 200, data)
        root, = collector.roots(1)
        self.assertEqual(root.attributes["http.route"], "/v2/models/{model}/generate_stream")
        self.assertEqual(len(root.events), 128)
        self.assertGreater(root.message.dropped_events_count, 100)

    def test_failures_set_the_status(self):
        collector = self.collect()
        self.start(collector)
        with self.assertRaises(InferenceServerException):
            self.http.infer("identity", floats(http_client, "INPUT0"))
        with self.assertRaises(InferenceServerException):
            self.grpc.infer("identity", floats(grpc_client, "INPUT0"))
        with self.assertRaises(InferenceServerException):
            self.http.infer("none", integers(http_client))
        status, _, _ = self.server.call("POST", "/v2/models/identity/infer", b"{")
        self.assertEqual(status, 400)
        http, grpc, unknown, malformed = sorted(collector.roots(4), key=lambda span: span.start)
        for span, text in ((http, "INPUT0"), (grpc, "INPUT0"), (unknown, "none"), (malformed, "end")):
            self.assertFalse(span.failed)  # the client's errors
            self.assertIn(text, span.attributes["error.message"])
        self.assertEqual((http.attributes["http.response.status_code"], http.attributes["error.type"]), (400, "400"))
        self.assertEqual((grpc.attributes["rpc.grpc.status_code"], grpc.attributes["error.type"]), (3, "3"))

    def test_cancelled_requests_fail(self):
        collector = self.collect()
        self.start(collector)
        call = self.grpc.async_infer("slow", integers(grpc_client), callback=lambda result, error: None)
        time.sleep(0.3)
        call.cancel()
        with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
            body = json.dumps({"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "INT64", "data": [1]}]})
            connection.sendall(f"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            time.sleep(0.3)
        roots = {span.attributes.get("rpc.system", "http"): span for span in collector.roots(2)}
        self.assertEqual(roots["grpc"].attributes["rpc.grpc.status_code"], 1)
        self.assertEqual(roots["http"].attributes["http.response.status_code"], 499)
        self.assertFalse(roots["http"].failed or roots["grpc"].failed)

    def test_text_that_is_not_utf8_is_corrected(self):
        collector = self.collect()
        self.start(collector)
        with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
            connection.sendall(b"POST /v2/models/identity%ff/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
            connection.recv(4096)
        self.infer()
        collector.roots(1)


class Context(Case):
    def test_a_trace_is_continued(self):
        collector = self.collect()
        self.start(collector)
        headers = {"traceparent": PARENT, "tracestate": "a=1, b=2"}
        self.http.infer("identity", integers(http_client), headers=dict(headers))  # the client adds to the dictionary
        self.grpc.infer("identity", integers(grpc_client), headers=headers)
        for root in collector.roots(2):
            self.assertEqual((root.trace, root.parent, root.state), (TRACE, SPAN, "a=1,b=2"))
            self.assertEqual(root.flags & 0x3ff, 0x301)  # the parent is remote

    def test_malformed_contexts_are_ignored(self):
        collector = self.collect()
        self.start(collector)
        for value in ("", "00", PARENT + "-", PARENT.upper(), PARENT.replace(SPAN, "0" * 16), "ff" + PARENT[2:]):
            self.infer(traceparent=value, tracestate="a=1")
        self.infer(traceparent=PARENT, tracestate="A=1")
        roots = collector.roots(7)
        self.assertEqual([(span.parent, span.state) for span in roots[:6]], [("", "")] * 6)
        self.assertEqual(len({span.trace for span in roots}), 7)
        self.assertEqual((roots[6].trace, roots[6].state), (TRACE, ""))

    def test_the_flag_of_the_client_decides(self):
        collector = self.collect()
        self.start(collector, "--trace-config", "rate=0")
        self.infer()
        self.infer(traceparent=NOT_SAMPLED)
        self.infer(traceparent=PARENT)
        root, = collector.roots(1)
        self.infer(traceparent=NOT_SAMPLED)
        self.stop()
        self.assertEqual([span.id for span in collector.named("InferRequest")], [root.id])

    def test_samplers(self):
        # sampler, argument, traces of: no context, sampled, not sampled
        for sampler, argument, expected in (("always_on", "", "111"), ("always_off", "", "000"), ("parentbased_always_on", "", "110"),
                                            ("parentbased_always_off", "", "010"), ("traceidratio", "0", "000"), ("traceidratio", "1", "111"),
                                            ("parentbased_traceidratio", "0.0", "010")):
            with self.subTest(sampler=sampler, argument=argument), Collector() as collector:
                self.start(collector, OTEL_TRACES_SAMPLER=sampler, OTEL_TRACES_SAMPLER_ARG=argument)
                self.infer()
                self.infer(traceparent=PARENT)
                self.infer(traceparent=f"00-{TRACE[::-1]}-{SPAN}-00")
                self.stop()
                traces = {span.trace for span in collector.named("InferRequest")}
                found = [bool(traces - {TRACE, TRACE[::-1]}), TRACE in traces, TRACE[::-1] in traces]
                self.assertEqual("".join("01"[value] for value in found), expected)

    def test_a_ratio_selects_traces_by_their_ids(self):
        collector = self.collect()
        self.start(collector, OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG="0.25")
        low, high = "1" * 16 + "3" * 16, "1" * 16 + "5" * 16
        for trace in (low, high):
            self.infer(traceparent=f"00-{trace}-{SPAN}-01")
        self.stop()
        self.assertEqual([span.trace for span in collector.named("InferRequest")], [low])


class Metrics(Case):
    def test_exemplars_have_the_ids_of_traces(self):
        collector = self.collect()
        self.start(collector, "--metrics-config", "exemplars=true")
        self.infer(traceparent=PARENT)
        collector.roots(1)
        page = self.server.call("GET", "/metrics", Accept="application/openmetrics-text")[2].decode()
        self.assertIn(f'trace_id="{TRACE}"', page)


class Settings(Case):
    def test_settings_of_models_change_at_run_time(self):
        collector = self.collect()
        self.start(collector, "--trace-config", "rate=0", "--trace-config", "level=TIMESTAMPS", "--trace-config", "mode=opentelemetry",
                   "--trace-config", "opentelemetry,resource=a=b=c", "--trace-config", "opentelemetry,resource=service.name=named",
                   "--trace-config", f"opentelemetry,url={collector.url[7:]}/own/path", "--trace-config", "opentelemetry,bsp_max_queue_size=100",
                   OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
        self.infer(3)
        self.http.update_trace_settings("identity", {"trace_rate": "2", "trace_count": "2"})
        self.infer(8)
        self.assertEqual(self.http.get_trace_settings("identity")["trace_count"], "0")
        self.infer(traceparent=PARENT)
        self.http.update_trace_settings("identity", {"trace_level": "OFF"})
        self.infer(traceparent=PARENT)
        expected = {"trace_level": ["TIMESTAMPS"], "trace_rate": "0", "trace_count": "-1", "trace_mode": "opentelemetry",
                    "url": f"{collector.url[7:]}/own/path", "resource": ["a=b=c", "service.name=named"],
                    "bsp_max_queue_size": "100", "bsp_schedule_delay": "50", "bsp_max_export_batch_size": "512"}
        self.assertEqual(self.http.get_trace_settings(), expected)
        over_grpc = self.grpc.get_trace_settings(as_json=True)["settings"]
        self.assertEqual({name: value["value"] for name, value in over_grpc.items()},
                         {name: value if isinstance(value, list) else [value] for name, value in expected.items()})
        self.stop()
        self.assertEqual([span.parent for span in collector.named("InferRequest")], ["", "", SPAN])
        self.assertEqual(collector.requests[0].path, "/own/path")
        attributes = {item.key: item.value.string_value for item in collector.requests[0].message.resource_spans[0].resource.attributes}
        self.assertEqual((attributes["a"], attributes["service.name"]), ("b=c", "named"))

    def test_the_log_has_the_collector(self):
        self.start("http://[::1]:9/")
        self.stop()
        self.assertIn("traces are exported to 'http://[::1]:9/v1/traces'\"", self.server.output)
        self.start("http://127.0.0.1:9", "--trace-config", "mode=opentelemetry")
        self.stop()
        self.assertIn("when their level is TIMESTAMPS; it is OFF", self.server.output)

    def test_the_level_tensors_is_rejected(self):
        self.start("http://127.0.0.1:9")
        with self.assertRaisesRegex(InferenceServerException, "does not support the level TENSORS"):
            self.http.update_trace_settings(settings={"trace_level": ["TENSORS"]})

    def test_the_environment_can_turn_tracing_off(self):
        for variables in ({"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_TRACES_EXPORTER": "console"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}):
            with self.subTest(variables=variables):
                self.start("http://127.0.0.1:9", **variables)
                self.assertEqual(self.http.get_trace_settings()["trace_mode"], "triton")
                self.stop()

    def run_program(self, *options, program="serve", **environment):
        words = [support.KELP, program] if program else [support.KELP]
        return subprocess.run([*words, "--model-repository", self.repository.path, "--http-port", "0", *options], capture_output=True,
                              text=True, timeout=60, env={**os.environ, **environment})

    def test_wrong_settings_are_reported(self):
        on = ("--trace-config", "mode=opentelemetry")
        cases = [((*on, "--trace-config", f"opentelemetry,{setting}"), {}, words) for setting, words in (
            ("resource=a", "expected KEY=VALUE"), ("bsp_max_queue_size=0", "expected a number from 1"), ("bsp_schedule_delay=x", "expected a number"),
            ("url=ftp://x", "'opentelemetry,url': expected a URL http://HOST"), ("url=http://me:secret@x/", "OTEL_EXPORTER_OTLP_HEADERS"),
            ("url=http://", "expected a URL"), ("url=http://a b/", "expected a URL"), ("url=http://a:99999/", "expected a URL"),
            ("url=http://:1/", "expected a URL"), ("url=http://[::1]x/", "expected a URL"), ("x=y", "one of url, resource"))]
        cases += [(on, {name: value}, name) for name, value in (
            ("OTEL_TRACES_SAMPLER", "x"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "x"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "x"), ("OTEL_EXPORTER_OTLP_HEADERS", "a"), ("OTEL_EXPORTER_OTLP_HEADERS", "a=b%0d%0ac"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=c"), ("OTEL_RESOURCE_ATTRIBUTES", "=b"), ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
            ("OTEL_BSP_SCHEDULE_DELAY", "-1"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"), ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/no/file"))]
        cases.append(((*on, "--trace-config", "level=TENSORS"), {}, "option '--trace-config': 'level': expected TIMESTAMPS or OFF"))
        cases.append((on, {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"}, "OTEL_TRACES_SAMPLER_ARG"))
        for options, environment, words in cases:
            with self.subTest(options=options, environment=environment):
                result = self.run_program(*options, **environment)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(words, re.sub(r"\s+", " ", result.stderr))

    def test_a_missing_library_is_reported(self):
        with tempfile.TemporaryDirectory() as directory:
            open(os.path.join(directory, "libcurl.so.4"), "wb").close()
            result = self.run_program("--trace-config", "mode=opentelemetry", LD_LIBRARY_PATH=directory)
        self.assertNotEqual(result.returncode, 0)
        text = re.sub(r"\s+", " ", result.stderr)
        self.assertIn("libcurl.so.4", text)
        self.assertIn("Debian package libcurl4", text)
        self.assertNotIn("successfully loaded", text)


class Exporter(Case):
    def test_batches_and_compression(self):
        collector = self.collect()
        self.start(collector, OTEL_BSP_SCHEDULE_DELAY="60000", OTEL_BSP_MAX_EXPORT_BATCH_SIZE="6", OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
                   OTEL_EXPORTER_OTLP_HEADERS="api-key=a%20b,other=1", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.url}/v2")
        self.infer(5)
        collector.wait_for(lambda: len(collector.requests) >= 2)
        self.stop()  # sends the rest
        self.assertEqual([len(request.spans()) for request in collector.requests], [6, 6, 3])
        for request in collector.requests:
            self.assertEqual((request.headers["content-encoding"], request.headers["api-key"], request.headers["other"], request.path),
                             ("gzip", "a b", "1", "/v2"))

    def test_requests_are_sent_again(self):
        responses = [(503, {}, b""), (429, {"Retry-After": "1"}, b""), (200, {}, b"")]
        collector = self.collect(lambda request: responses[min(len(collector.requests), 3) - 1])
        self.start(collector)
        self.infer()
        collector.wait_for(lambda: len(collector.requests) >= 3)
        first, second, third = collector.requests
        self.assertGreater(second.time - first.time, 0.7)
        self.assertGreater(third.time - second.time, 0.95)
        self.assertEqual(first.message, third.message)
        self.stop()
        self.assertEqual(len(collector.requests), 3)
        self.assertIn("cannot export 3 spans", self.server.log())
        self.assertIn("status 503; trying again", self.server.log())

    def wait_dropped(self, reason, count):
        end = time.monotonic() + 60
        while self.counter(f'kelp_trace_spans_dropped_total{{reason="{reason}"}}') < count:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_rejected_requests_are_dropped(self):
        for status in (400, 401, 500):
            with self.subTest(status=status), Collector(lambda request: (status, {}, b"no")) as collector:
                self.start(collector)
                self.infer()
                self.wait_dropped("rejected", 3)
                self.assertEqual(len(collector.requests), 1)
                self.stop()
                self.assertIn(f"status {status}; they are dropped", self.server.log())

    def test_rejected_spans_are_counted(self):
        response = trace_service_pb2.ExportTraceServiceResponse()
        response.partial_success.rejected_spans = 2
        response.partial_success.error_message = "too old"
        collector = self.collect(lambda request: (200, {}, response.SerializeToString()))
        self.start(collector)
        self.infer()
        self.wait_dropped("rejected", 2)
        self.wait_counter("kelp_trace_spans_exported_total", 1)
        self.assertIn("too old", self.server.log())

    def test_a_collector_that_is_down(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.start(url, OTEL_BSP_EXPORT_TIMEOUT="100")
        began = time.monotonic()
        self.infer(10)
        self.assertLess(time.monotonic() - began, 20)
        self.wait_dropped("unreachable", 3)
        self.infer(10)
        self.assertLess(self.stop(), 30)
        self.assertIn("cannot export", self.server.log())
        self.assertEqual(self.server.log().count("cannot export"), 1, "the log is limited")

    def test_a_collector_that_comes_back(self):
        collector = self.collect()
        port = collector.port
        collector.close()
        self.start(f"http://127.0.0.1:{port}")
        self.infer()
        time.sleep(0.3)
        collector = self.collect(port=port)
        collector.roots(1)
        self.stop()
        self.assertIn("accepts spans again", self.server.output)

    def test_a_slow_collector_does_not_delay_requests(self):
        collector = self.collect(lambda request: time.sleep(30) or (200, {}, b""))
        self.start(collector, OTEL_EXPORTER_OTLP_TIMEOUT="1000", OTEL_BSP_EXPORT_TIMEOUT="500")
        self.infer()
        collector.wait_for(lambda: collector.requests)
        began = time.monotonic()
        self.infer(20)
        self.assertLess(time.monotonic() - began, 20)
        self.wait_dropped("unreachable", 3)

    def test_a_collector_that_dies_in_the_middle(self):
        responses = [None, (200, {}, b"")]
        collector = self.collect(lambda request: responses[min(len(collector.requests), 2) - 1])
        self.start(collector)
        self.infer()
        collector.wait_for(lambda: len(collector.requests) >= 2)
        self.assertEqual(collector.requests[0].message, collector.requests[1].message)

    def test_a_full_queue_drops_spans(self):
        collector = self.collect()
        self.start(collector, "--trace-config", "opentelemetry,bsp_max_queue_size=4", OTEL_BSP_MAX_EXPORT_BATCH_SIZE="100",
                   OTEL_BSP_SCHEDULE_DELAY="60000")
        collector.respond = lambda request: time.sleep(1) or (200, {}, b"")
        self.infer(10)
        self.wait_dropped("queue_full", 10)
        self.stop()
        self.assertIn("the queue of 4 spans", self.server.log())

    def test_the_stop_has_a_time_limit(self):
        collector = self.collect(lambda request: time.sleep(60) or (200, {}, b""))
        self.start(collector, OTEL_BSP_SCHEDULE_DELAY="60000")
        self.infer(3)
        took = self.stop()
        self.assertTrue(4 < took < 40, took)
        self.assertEqual(len(collector.requests), 1)

    def test_https(self):
        with tempfile.TemporaryDirectory() as directory:
            key, cert = os.path.join(directory, "key.pem"), os.path.join(directory, "cert.pem")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                            "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)
            collector = self.collect(certificate=(cert, key))
            self.start(collector, OTEL_EXPORTER_OTLP_CERTIFICATE=cert)
            self.infer()
            collector.roots(1)
            self.stop()
            self.start(collector, OTEL_BSP_EXPORT_TIMEOUT="100")
            self.infer()
            self.wait_dropped("unreachable", 3)
            self.stop()
            self.assertRegex(self.server.log(), "cannot export 3 spans .*certificate")


class Programs(Case):
    def test_tritonserver(self):
        collector = self.collect()
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", 0))
            two.bind(("127.0.0.1", 0))
            port, grpc_port = one.getsockname()[1], two.getsockname()[1]
        program = subprocess.Popen([os.path.join(os.path.dirname(support.KELP), "tritonserver"), "--model-repository", self.repository.path,
                                    "--http-port", str(port), "--http-address", "127.0.0.1", "--grpc-port", str(grpc_port), "--grpc-address",
                                    "127.0.0.1", "--allow-metrics=false", "--trace-config=mode=opentelemetry",
                                    "--trace-config=level=TIMESTAMPS", "--trace-config=rate=1",
                                    f"--trace-config=opentelemetry,url={collector.url}/v1/traces",
                                    "--trace-config=opentelemetry,bsp_schedule_delay=10"], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        client = http_client.InferenceServerClient(f"127.0.0.1:{port}")
        for _ in range(600):
            try:
                if client.is_server_ready():
                    break
            except OSError:
                pass
            time.sleep(0.1)
        client.infer("identity", integers(http_client))
        collector.roots(1)
        attributes = {item.key: item.value.string_value for item in collector.requests[0].message.resource_spans[0].resource.attributes}
        self.assertEqual(attributes["service.name"], "triton-inference-server")
        client.close()


if __name__ == "__main__":
    position = sys.argv.index("--kelp")
    support.KELP = os.path.abspath(sys.argv[position + 1])
    del sys.argv[position:position + 2]
    unittest.main(verbosity=2)
