#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spans that pass through a collector of OpenTelemetry: kelp exports to it, and it exports to the collector of the tests.

    test_otelcol.py --kelp PATH --collector PATH [unittest arguments]
"""
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import tritonclient.grpc as grpc_client
import tritonclient.http as http_client

import test_otlp
from collector import Collector
from test_otlp import support

OTELCOL = None
CONFIG = """
receivers: {{ otlp: {{ protocols: {{ http: {{ endpoint: "127.0.0.1:{port}" }} }} }} }}
exporters: {{ otlphttp: {{ endpoint: "{url}", compression: none, sending_queue: {{ enabled: false }} }} }}
service:
  telemetry: {{ metrics: {{ level: none }} }}
  pipelines: {{ traces: {{ receivers: [otlp], exporters: [otlphttp] }} }}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Through(test_otlp.Case):
    def start_otelcol(self, url):
        """Returns the address of a running collector that exports to `url`."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path, port = os.path.join(directory.name, "config.yaml"), free_port()
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(port=port, url=url))
        log = open(os.path.join(directory.name, "log"), "w+b")
        self.addCleanup(log.close)
        process = subprocess.Popen([OTELCOL, "--config", path], stderr=log, stdout=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return f"http://127.0.0.1:{port}"
            if process.poll() is not None:
                break
            time.sleep(0.1)
        log.seek(0)
        raise AssertionError(f"the collector did not start: {log.read().decode()}")

    def test_the_collector_accepts_all_spans(self):
        with Collector() as sink:
            self.start(self.start_otelcol(sink.url), OTEL_EXPORTER_OTLP_COMPRESSION="gzip")
            headers = {"traceparent": test_otlp.PARENT, "tracestate": "a=1,b=2"}
            self.http.infer("steps", test_otlp.floats(http_client, "a", "b"), headers=dict(headers))
            self.grpc.infer("identity", test_otlp.integers(grpc_client), headers=headers)
            with self.assertRaises(Exception):
                self.http.infer("identity", test_otlp.floats(http_client, "INPUT0"))
            by_rpc = {span.attributes.get("rpc.system", span.attributes.get("url.path")): span for span in sink.roots(3)}
            steps, grpc, failed = (by_rpc[name] for name in ("/v2/models/steps/infer", "grpc", "/v2/models/identity/infer"))
            for root in (steps, grpc):
                self.assertEqual((root.trace, root.parent, root.state), (test_otlp.TRACE, test_otlp.SPAN, "a=1,b=2"))
            self.assertTrue(failed.failed)
            self.assertIn("INPUT0", failed.message_text)
            self.assertEqual(len(sink.named("compute")), 5)
            self.wait_counter("kelp_trace_spans_exported_total", len(sink.spans()))

    def test_the_collector_is_down_at_first(self):
        with Collector() as sink:
            url = self.start_otelcol(sink.url)
            sink.respond = lambda request: (503, {}, b"") if len(sink.requests) == 1 else (200, {}, b"")
            self.start(url)
            self.infer()
            sink.wait_for(lambda: len(sink.requests) >= 2)
            self.assertEqual([len(request.spans()) for request in sink.requests], [3, 3])


if __name__ == "__main__":
    for word in ("--collector", "--kelp"):
        position = sys.argv.index(word)
        value = os.path.abspath(sys.argv[position + 1])
        del sys.argv[position:position + 2]
        if word == "--kelp":
            support.KELP = value
        else:
            OTELCOL = value
    unittest.main(verbosity=2)
