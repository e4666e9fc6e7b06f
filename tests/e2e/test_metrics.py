#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The formats of /metrics: Prometheus' text, OpenMetrics with exemplars, and protobuf with native histograms; and what Prometheus
reads, if it is installed.

    test_metrics.py --kelp PATH [unittest arguments]
"""
import json
import math
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

import support
from support import ROOT, Server, read_json

EXAMPLES = os.path.join(ROOT, "examples", "models")
DIGITS = read_json("examples", "requests", "digits.json")
NATIVE = ("--metrics-config", "native_histograms=true")
EXEMPLARS = ("--metrics-config", "exemplars=true")
PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
# What Prometheus 2.42 sends with native histograms.
ACCEPT_NATIVE = PROTOBUF + "," + OPENMETRICS + ";q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
FIRST = "nv_inference_first_response_histogram_ms"
COUNTER, GAUGE, SUMMARY, UNTYPED, HISTOGRAM = range(5)


# ---- protobuf ----

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """Returns {number: [values]} of a message; fixed64 fields as floats."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        else:
            assert key & 7 == 2, key
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length
        found.setdefault(key >> 3, []).append(value)
    return found


def zigzag(value):
    return value >> 1 ^ -(value & 1)


def one(message, number, otherwise=None):
    values = message.get(number, [otherwise])
    assert len(values) == 1
    return values[0]


def families(data):
    """Returns {name: (type, [(labels, metric)])}."""
    found, at = {}, 0
    while at < len(data):
        length, at = varint(data, at)
        family = fields(data[at:at + length])
        at += length
        metrics = []
        for text in family.get(4, []):
            metric = fields(text)
            labels = {one(fields(label), 1).decode(): one(fields(label), 2).decode() for label in metric.get(1, [])}
            metrics.append((labels, metric))
        name = one(family, 1).decode()
        assert name not in found
        found[name] = (one(family, 3), metrics)
    return found


def native_buckets(histogram):
    """Returns {index: count}."""
    deltas, at = [], 0
    packed = one(histogram, 13, b"")
    while at < len(packed):
        value, at = varint(packed, at)
        deltas.append(zigzag(value))
    found, index, count = {}, 0, 0
    for number, span in enumerate(map(fields, histogram.get(12, []))):
        index += zigzag(one(span, 1, 0)) + (1 if number else 0)
        for i in range(one(span, 2)):
            count += deltas.pop(0)
            index += 1 if i else 0
            found[index] = count
    assert not deltas
    return found


def page(server, accept=None):
    status, headers, body = server.call("GET", "/metrics", **({"Accept": accept} if accept else {}))
    assert status == 200
    return headers["content-type"], body


class Formats(unittest.TestCase):
    def test_the_text_format_is_the_default(self):
        with Server(EXAMPLES) as plain, Server(EXAMPLES, *NATIVE, *EXEMPLARS) as both:
            for server in plain, both:
                for accept in None, "text/plain", "*/*":
                    kind, body = page(server, accept)
                    self.assertEqual(kind, "text/plain; charset=utf-8")
                    self.assertIn(b"# TYPE nv_inference_request_success counter\n", body)
                    self.assertNotIn(b"# NATIVE", body)
                    self.assertNotIn(b"# EOF", body)
            for accept in OPENMETRICS, ACCEPT_NATIVE:  # not enabled
                self.assertEqual(page(plain, accept)[0], "text/plain; charset=utf-8")

    def test_each_format_is_enabled_separately(self):
        with Server(EXAMPLES, *NATIVE) as native, Server(EXAMPLES, *EXEMPLARS) as exemplars:
            self.assertIn("protobuf", page(native, ACCEPT_NATIVE)[0])
            self.assertIn("text/plain", page(native, OPENMETRICS)[0])
            self.assertIn("openmetrics", page(exemplars, ACCEPT_NATIVE)[0])

    def test_openmetrics(self):
        with Server(EXAMPLES, *EXEMPLARS) as server:
            server.infer("digits", DIGITS)
            kind, body = page(server, OPENMETRICS)
        self.assertEqual(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8")
        text = body.decode()
        self.assertTrue(text.endswith("\n# EOF\n"))
        self.assertIn("# TYPE nv_inference_request_success unknown\n", text)
        self.assertIn('nv_inference_request_success{model="digits",version="1"} 1\n', text)
        self.assertNotRegex(text, r"(?m)^# TYPE \S+ counter$")

    def test_exemplars_are_the_trace_ids_of_clients(self):
        trace = "0af7651916cd43dd8448eb211c80319c"
        settings = ("mode=opentelemetry", "opentelemetry,url=http://127.0.0.1:9/v1/traces", "level=TIMESTAMPS", "rate=1")
        with Server(EXAMPLES, *EXEMPLARS, *(word for setting in settings for word in ("--trace-config", setting))) as server:
            body = json.dumps(DIGITS)
            status, _, _ = server.call("POST", "/v2/models/digits/infer", body, traceparent=f"00-{trace}-b7ad6b7169203331-01")
            self.assertEqual(status, 200)
            text = page(server, OPENMETRICS)[1].decode()
            plain = page(server)[1].decode()
        self.assertRegex(text, rf'(?m)^{FIRST}_bucket{{model="digits",version="1",le="[^"]+"}} 1 # {{trace_id="{trace}"}} \d+ \d+\.\d\d\d$')
        self.assertNotIn("trace_id", plain)

    def test_protobuf_has_what_the_text_has(self):
        with Server(EXAMPLES, *NATIVE, "--metrics-config", "summary_latencies=true", "--access-log", "/dev/null") as server:
            for _ in range(5):
                server.infer("digits", DIGITS)
            time.sleep(0.1)
            kind, body = page(server, ACCEPT_NATIVE)
            text = page(server)[1].decode()
        self.assertEqual(kind, "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited")
        found = families(body)
        types = dict(re.findall(r"(?m)^# TYPE (\S+) (\w+)$", text))
        numbers = {"counter": COUNTER, "gauge": GAUGE, "summary": SUMMARY, "histogram": HISTOGRAM}
        self.assertEqual({name: kind for name, (kind, _) in found.items()}, {name: numbers[kind] for name, kind in types.items()})
        for name, field in ("nv_inference_request_success", 3), ("nv_model_load_duration_secs", 2), ("kelp_access_log_dropped_lines_total", 3):
            for labels, metric in found[name][1]:
                shown = ",".join(f'{k}="{v}"' for k, v in labels.items())
                expected = re.search(rf"(?m)^{name}{re.escape('{' + shown + '}') if shown else ''} (\S+)$", text)
                self.assertEqual(one(fields(one(metric, field)), 1, 0.0), float(expected.group(1)))
        labels, metric = found["nv_inference_request_summary_us"][1][1]
        summary = fields(one(metric, 4))
        self.assertEqual((labels["model"], one(summary, 1)), ("digits", 5))
        self.assertEqual([one(fields(q), 1) for q in summary[3]], [0.5, 0.9, 0.95, 0.99, 0.999])
        self.assertGreater(one(fields(summary[3][0]), 2), 0)
        self.assertTrue(math.isnan(one(fields(fields(one(found["nv_inference_request_summary_us"][1][0][1], 4))[3][0]), 2)))

    def test_native_histograms(self):
        with Server(EXAMPLES, *NATIVE) as server:
            for _ in range(50):
                server.infer("digits", DIGITS)
            found = families(page(server, ACCEPT_NATIVE)[1])
        histograms = {labels["model"]: fields(one(metric, 7)) for labels, metric in found[FIRST][1]}
        idle, used = histograms["addsub"], histograms["digits"]
        self.assertEqual((one(idle, 1), native_buckets(idle), zigzag(one(idle, 5))), (0, {}, 3))
        self.assertEqual(one(idle, 6), 2 ** -10)
        buckets = native_buckets(used)
        self.assertEqual(one(used, 1), 50)
        self.assertEqual(sum(buckets.values()) + one(used, 7, 0), 50)
        # The sum lies between the bounds of the buckets.
        base = 2 ** (1 / 8)
        least = sum(base ** (i - 1) * n for i, n in buckets.items())
        most = sum(base ** i * n for i, n in buckets.items())
        self.assertLessEqual(least * 0.999, one(used, 2))
        self.assertLessEqual(one(used, 2), most * 1.001)
        bounds = [one(fields(bucket), 2) for bucket in used[3]]
        self.assertEqual((bounds[-1], one(fields(used[3][-1]), 1)), (math.inf, 50))

    def test_metrics_of_the_machine_can_be_omitted(self):
        with Server(EXAMPLES) as plain, Server(EXAMPLES, "--allow-cpu-metrics=false") as without:
            self.assertIn(b"\nnv_cpu_utilization ", page(plain)[1])
            self.assertNotIn(b"nv_cpu", page(without)[1])
            self.assertIn(b"\nnv_inference_request_success{", page(without)[1])

    def test_unknown_settings_are_rejected(self):
        for setting, expected in (("native=true", "native_histograms, exemplars, found 'native=true'"),
                                  ("exemplars=1", "'exemplars': expected true or false, found '1'")):
            ended = support.kelp("serve", EXAMPLES, "--http-port", "0", "--metrics-config", setting)
            self.assertEqual(ended.returncode, 1)
            self.assertIn(expected, ended.stderr)


@unittest.skipUnless(shutil.which("prometheus"), "Prometheus is not installed")
class Prometheus(unittest.TestCase):
    """Debian's Prometheus scrapes the server."""

    def start(self, server, *words):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        config = os.path.join(directory.name, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "1s"},
                       "scrape_configs": [{"job_name": "kelp", "static_configs": [{"targets": [server.url]}]}]}, file)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        process = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory.name}/data",
                                    f"--web.listen-address={self.address}", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)

    def query(self, text):
        try:
            with urllib.request.urlopen(f"http://{self.address}/api/v1/query?{urllib.parse.urlencode({'query': text})}", timeout=10) as answer:
                return json.load(answer)["data"]["result"]
        except OSError:
            return []

    def wait_for(self, text, accept):
        until = time.monotonic() + support.PATIENCE_S
        while time.monotonic() < until:
            result = self.query(text)
            if result and accept(result[0]):
                return result[0]
            time.sleep(0.2)
        self.fail(f"{text}: {self.query(text)}")

    def test_a_native_histogram_has_quantiles(self):
        with Server(EXAMPLES, *NATIVE, *EXEMPLARS) as server:
            self.start(server, "--enable-feature=native-histograms,exemplar-storage")
            series = FIRST + '{model="digits"}'
            self.wait_for(f"histogram_count({series})", lambda r: True)
            for _ in range(100):
                server.infer("digits", DIGITS)
            self.wait_for(f"histogram_count({series})", lambda r: r["value"][1] == "100")
            quantile = float(self.wait_for(f"histogram_quantile(0.5, {series})", lambda r: True)["value"][1])
            total = fields(one([m for labels, m in families(page(server, PROTOBUF)[1])[FIRST][1] if labels["model"] == "digits"][0], 7))
            buckets, below, expected = native_buckets(total), 0, None
            for index in sorted(buckets):
                below += buckets[index]
                if expected is None and below >= 50:
                    expected = 2 ** ((index - 0.5) / 8)
            self.assertLess(abs(math.log(quantile / expected)), math.log(2) / 8)
            self.assertEqual(self.wait_for('nv_inference_request_success{model="digits"}', lambda r: True)["value"][1], "100")

    def test_openmetrics_keeps_the_names(self):
        with Server(EXAMPLES, *EXEMPLARS) as server:
            server.infer("digits", DIGITS)
            self.start(server)
            self.wait_for('nv_inference_request_success{model="digits"}', lambda r: r["value"][1] == "1")
            self.wait_for(FIRST + '_bucket{model="digits",le="+Inf"}', lambda r: r["value"][1] == "1")

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_promtool_reads_the_page(self):
        with Server(EXAMPLES, "--metrics-config", "summary_latencies=true") as server:
            server.infer("digits", DIGITS)
            body = page(server)[1]
        ended = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, timeout=60, check=False)
        # 3: advice about names, which are Triton's. 1: the page is malformed.
        self.assertIn(ended.returncode, (0, 3), ended.stderr)
        self.assertNotIn(b"error while linting", ended.stderr)


if __name__ == "__main__":
    support.main()
