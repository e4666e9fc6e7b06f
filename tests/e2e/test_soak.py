#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory after many requests and connections: HTTP/1.1, HTTP/2 and gRPC, with and without TLS. The clients are h2load's.

    test_soak.py --kelp PATH [--rounds N] [unittest arguments]

With 25 rounds (the default), 1,000,000 requests on 100,000 connections.
"""
import concurrent.futures
import http.client
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
from tritonclient.grpc import service_pb2

import support

ROUNDS = 25
ROUND_REQUESTS = 20000
LOAD_REQUESTS, LOAD_CONNECTIONS, LOAD_STREAMS = 1000, 100, 4  # at a time
# Until then, the pools of the server fill, and the heap gets gaps: about 2.5 MB.
WARM_REQUESTS, WARM_CONNECTIONS, WARM_STREAMS = 100000, 200, 5
MAX_GROWTH_BYTES = 1 << 20
MAX_BURST_GROWTH_BYTES = 16 << 20
SETTLE_S = 9  # until idle connections and bursts have returned their memory
BURST_REQUESTS, BURST_BYTES = 200, 1 << 20
ELEMENTS = 16
CONFIG = """backend: "identity"
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
"""
LENGTH = "Inference-Header-Content-Length"


def http_request(count):
    """Returns the head's value for the length of the JSON, and the body."""
    head = (f'{{"inputs":[{{"name":"INPUT0","shape":[{count}],"datatype":"FP32","parameters":{{"binary_data_size":{4 * count}}}}}],'
            '"parameters":{"binary_data_output":true}}').encode()
    return str(len(head)), head + np.arange(count, dtype=np.float32).tobytes()


def grpc_request():
    request = service_pb2.ModelInferRequest(model_name="identity")
    tensor = request.inputs.add(name="INPUT0", datatype="FP32")
    tensor.shape.append(ELEMENTS)
    request.raw_input_contents.append(np.arange(ELEMENTS, dtype=np.float32).tobytes())
    message = request.SerializeToString()
    return b"\0" + len(message).to_bytes(4, "big") + message


class Soak(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.repository = support.Repository()
        self.addCleanup(self.repository.__exit__)
        self.repository.add("identity", config=CONFIG)
        self.json_length, body = http_request(ELEMENTS)
        self.http_body, self.grpc_body = self.path("http"), self.path("grpc")
        for path, content in ((self.http_body, body), (self.grpc_body, grpc_request())):
            with open(path, "wb") as file:
                file.write(content)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def load(self, url, protocol, connections=LOAD_CONNECTIONS, streams=LOAD_STREAMS):
        """Sends requests on connections, each of which is closed after its part of them."""
        infer = ["-d", self.http_body, "-H", f"{LENGTH}: {self.json_length}", url + "/v2/models/identity/infer"]
        call = ["-d", self.grpc_body, "-H", "content-type: application/grpc", "-H", "te: trailers",
                url + "/inference.GRPCInferenceService/ModelInfer"]
        words = {"http/1.1": ["--h1", *infer], "http/2": infer, "grpc": call}[protocol]
        done = subprocess.run(["h2load", "-n", str(LOAD_REQUESTS), "-c", str(connections), "-m", str(streams), *words], capture_output=True, text=True,
                              check=False, timeout=1800)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{LOAD_REQUESTS} succeeded, 0 failed, 0 errored", done.stdout)
        self.assertIn(f"status codes: {LOAD_REQUESTS} 2xx", done.stdout)

    def loads(self, url, requests, *words):
        for i in range(requests // LOAD_REQUESTS):
            self.load(url, ("http/1.1", "http/2", "grpc")[i % 3], *words)

    @staticmethod
    def resident_bytes(server):
        """Returns the resident memory, without pages of files, which the system drops and reads at will."""
        time.sleep(SETTLE_S)
        with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"RssAnon:\s+(\d+) kB", file.read()).group(1)) * 1024

    def check(self, server, url):
        self.loads(url, WARM_REQUESTS, WARM_CONNECTIONS, WARM_STREAMS)
        before = self.resident_bytes(server)
        self.loads(url, ROUNDS * ROUND_REQUESTS)
        after = self.resident_bytes(server)
        print(f"{url}: {before} bytes after {WARM_REQUESTS} requests, {after} after {ROUNDS * ROUND_REQUESTS} more on "
              f"{ROUNDS * ROUND_REQUESTS // LOAD_REQUESTS * LOAD_CONNECTIONS} connections", file=sys.stderr)
        self.assertLess(after - before, MAX_GROWTH_BYTES)
        self.assertEqual(server.stop(), 0)

    def test_requests_and_connections(self):
        with support.Server("--model-repository", self.repository.path) as server:
            self.check(server, f"http://127.0.0.1:{server.port}")

    def test_requests_and_connections_with_tls(self):
        cert, key = self.path("cert.pem"), self.path("key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-keyout", key, "-out", cert], check=True, capture_output=True)
        with support.Server("--model-repository", self.repository.path, "--tls-cert", cert, "--tls-key", key) as server:
            self.check(server, f"https://127.0.0.1:{server.port}")

    def test_the_memory_of_bursts_is_returned(self):
        length, body = http_request(BURST_BYTES // 4)

        def post(port):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=support.PATIENCE_S)
            connection.request("POST", "/v2/models/identity/infer", body, {LENGTH: length})
            size = len(connection.getresponse().read())
            connection.close()
            return size

        def burst(port):
            with concurrent.futures.ThreadPoolExecutor(BURST_REQUESTS) as pool:
                for size in pool.map(post, [port] * BURST_REQUESTS):
                    self.assertGreater(size, BURST_BYTES)

        with support.Server("--model-repository", self.repository.path) as server:
            before = self.resident_bytes(server)
            for _ in range(5):
                burst(server.port)
            after = self.resident_bytes(server)
            print(f"{before} bytes before bursts, {after} after them", file=sys.stderr)
            self.assertLess(after - before, MAX_BURST_GROWTH_BYTES)
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    if "--rounds" in sys.argv:
        at = sys.argv.index("--rounds")
        ROUNDS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    support.main()
