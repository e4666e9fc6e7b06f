#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The access log of `kelp serve`: its lines, hostile clients, full disks and rotation.

    test_access_log.py --kelp PATH [unittest arguments]
"""
import datetime
import json
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import unittest

import numpy as np
import tritonclient.grpc as grpc

import support
from support import ROOT, Repository, Server, kelp, read_json

EXAMPLES = os.path.join(ROOT, "examples", "models")
DIGITS = read_json("examples", "requests", "digits.json")
TRACE = "0af7651916cd43dd8448eb211c80319c"
IMAGE = np.zeros((1, 1, 8, 8), np.float32)


def image():
    given = grpc.InferInput("image", IMAGE.shape, "FP32")
    given.set_data_from_numpy(IMAGE)
    return [given]


class AccessLog(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = os.path.join(self.directory.name, "access.log")

    def serve(self, *words):
        server = Server(EXAMPLES, "--access-log", self.path, *words)
        self.addCleanup(server.__exit__)
        return server

    def lines(self, path=None):
        """Returns the lines in the order of their requests; threads may end them in another one."""
        with open(path or self.path, "rb") as file:
            return sorted((json.loads(line.decode()) for line in file.read().split(b"\n")[:-1]), key=lambda line: line["time"])

    def wait_for(self, condition, what):
        until = time.monotonic() + support.PATIENCE_S
        while time.monotonic() < until:
            if condition():
                return
            time.sleep(0.02)
        self.fail(f"{what}: {self.lines() if os.path.exists(self.path) else None}")

    def send(self, server, data):
        """Sends bytes, and returns what the server sends before it closes the connection or is silent."""
        with socket.create_connection(("127.0.0.1", server.port), support.PATIENCE_S) as peer:
            peer.sendall(data)
            peer.settimeout(0.3)
            response = b""
            try:
                while piece := peer.recv(65536):
                    response += piece
            except (TimeoutError, ConnectionError):
                pass
            return response

    def test_requests_over_http(self):
        server = self.serve()
        before = datetime.datetime.now(datetime.timezone.utc)
        body = json.dumps(DIGITS)
        status, headers, response = server.call("POST", "/v2/models/digits/versions/1/infer", body, User_Agent="tester/1",
                                              traceparent=f"00-{TRACE}-b7ad6b7169203331-01")
        self.assertEqual(status, 200)
        server.call("GET", "/v2/models/digits?token=secret")
        server.call("HEAD", "/v2")
        server.call("GET", "/nothing")
        server.call("POST", "/v2/models/digits/generate", {"id": "g", "image": [0] * 64})
        self.assertEqual(server.stop(), 0)
        infer, metadata, head, nothing, generate = self.lines()
        self.assertEqual(list(infer), ["time", "client", "protocol", "method", "path", "user_agent", "trace_id", "model", "request_id",
                                       "version", "status", "bytes_in", "bytes_out", "duration_us"])
        self.assertRegex(infer["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        at = datetime.datetime.fromisoformat(infer["time"].replace("Z", "+00:00"))
        self.assertLess(abs((at - before).total_seconds()), 5)
        self.assertRegex(infer.pop("client"), r"^127\.0\.0\.1:\d+$")
        self.assertGreater(infer.pop("duration_us"), 0)
        infer.pop("time")
        self.assertEqual(infer, {"protocol": "HTTP/1.1", "method": "POST", "path": "/v2/models/digits/versions/1/infer", "user_agent": "tester/1",
                                 "trace_id": TRACE, "model": "digits", "request_id": DIGITS["id"], "version": 1, "status": 200,
                                 "bytes_in": len(body), "bytes_out": int(headers["content-length"])})
        self.assertEqual(len(response), infer["bytes_out"])
        self.assertEqual((metadata["path"], metadata["model"], metadata["status"]), ("/v2/models/digits", "digits", 200))
        self.assertEqual((head["method"], head["bytes_out"]), ("HEAD", 0))
        self.assertEqual((nothing["path"], nothing["status"]), ("/nothing", 404))
        self.assertEqual((generate["model"], generate["request_id"], generate["version"]), ("digits", "g", 1))
        self.assertNotIn("secret", json.dumps(self.lines()))

    def test_requests_over_grpc(self):
        server = self.serve()
        client = grpc.InferenceServerClient(server.url)
        client.infer("digits", image(), request_id="a\"b", headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-00"})
        self.assertTrue(client.is_model_ready("digits", "1"))
        with self.assertRaises(Exception):
            client.infer("unknown", image())
        noise = grpc.InferInput("image", [4096], "UINT8")
        noise.set_data_from_numpy(np.frombuffer(random.Random(1).randbytes(4096), np.uint8))
        with self.assertRaises(Exception):  # rejected before it is decompressed
            client.infer("unknown", [noise], compression_algorithm="gzip")
        answers = []
        client.start_stream(lambda result, error: answers.append((result, error)))
        for i in range(3):
            client.async_stream_infer("digits", image(), request_id=str(i))
        client.stop_stream()
        client.close()
        self.assertEqual(len(answers), 3)
        self.assertEqual(server.stop(), 0)
        infer, ready, unknown, packed, stream = self.lines()
        prefix = "/inference.GRPCInferenceService/"
        self.assertEqual((infer["protocol"], infer["path"], infer["status"], infer["grpc_status"]), ("gRPC", prefix + "ModelInfer", 200, 0))
        self.assertEqual((infer["model"], infer["version"], infer["request_id"], infer["trace_id"]), ("digits", 1, "a\"b", TRACE))
        self.assertIn("grpc-python", infer["user_agent"])
        self.assertGreater(infer["bytes_in"], IMAGE.nbytes)
        self.assertGreater(infer["bytes_out"], 48)
        self.assertEqual((ready["path"], ready["model"], ready["version"]), (prefix + "ModelReady", "digits", 1))
        for line in unknown, packed:
            self.assertEqual((line["model"], line["grpc_status"]), ("unknown", 5))
        self.assertEqual((stream["path"], stream["model"], stream["request_id"], stream["grpc_status"]), (prefix + "ModelStreamInfer", "digits", "0", 0))
        self.assertGreater(stream["bytes_in"], 3 * IMAGE.nbytes)

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_requests_over_http2_and_a_unix_socket(self):
        server = self.serve()
        path = os.path.join(self.directory.name, "socket")
        ended = subprocess.run(["curl", "-s", "--http2-prior-knowledge", f"http://{server.url}/v2/models/digits/config"], capture_output=True,
                               timeout=support.PATIENCE_S, check=True)
        self.wait_for(lambda: len(self.lines()) == 1, "the line of HTTP/2")
        line = self.lines()[0]
        self.assertEqual((line["protocol"], line["bytes_out"]), ("HTTP/2", len(ended.stdout)))
        other = Server(EXAMPLES, "--access-log", self.path, "--http-address", f"unix:{path}", ready=False)
        self.addCleanup(other.__exit__)
        self.wait_for(lambda: os.path.exists(path), "the socket")
        self.wait_for(lambda: subprocess.run(["curl", "-sf", "--unix-socket", path, "http://x/v2/health/ready"], check=False).returncode == 0, "ready")
        self.wait_for(lambda: len(self.lines()) >= 2, "the line of the socket")
        self.assertEqual(self.lines()[-1]["client"], "unix")

    def test_a_client_cannot_forge_lines(self):
        server = self.serve()
        random.seed(1)
        evil = b'"}\r\n{"time":"forged"}\n'
        self.send(server, b"GET /" + evil.replace(b"\r\n", b"%0d%0a").replace(b"\n", b"") + b" HTTP/1.1\r\nHost: x\r\nUser-Agent: \xff\xfe\"},{\t\r\n\r\n")
        self.send(server, evil)
        server.call("POST", "/v2/models/%22%7d%0a%7b/infer", json.dumps({"id": evil.decode(), "inputs": []}))
        server.call("POST", "/v2/models/digits/infer", json.dumps({**DIGITS, "id": evil.decode()}))
        for _ in range(60):
            noise = bytes(random.randrange(256) for _ in range(random.randrange(1, 200)))
            self.send(server, random.choice([b"", b"GET /", b"GET / HTTP/1.1\r\nHost: x\r\nUser-Agent: "]) + noise + b"\r\n\r\n")
        self.send(server, b"GET /" + b"a" * 60000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(server.stop(), 0)
        lines = self.lines()  # each is JSON
        self.assertGreater(len(lines), 20)
        self.assertEqual([line for line in lines if line["time"] == "forged"], [])
        self.assertIn(evil.decode(), [line.get("request_id") for line in lines])
        self.assertLess(max(len(json.dumps(line)) for line in lines), 8192)
        self.assertGreaterEqual({line["status"] for line in lines}, {200, 400, 404})

    def test_a_client_that_leaves(self):
        server = self.serve()
        body = json.dumps(DIGITS).encode()
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", server.port)) as peer:
                peer.sendall(b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        self.assertEqual(server.stop(), 0)
        self.assertEqual({line["model"] for line in self.lines()}, {"digits"})

    def test_a_client_that_leaves_before_the_response(self):
        with Repository() as repository:
            repository.add("slow", model=os.path.join(EXAMPLES, "digits", "1", "model.onnx"),
                           config="max_batch_size: 32 dynamic_batching { preferred_batch_size: 16 max_queue_delay_microseconds: 60000000 }")
            server = Server(repository.path, "--access-log", self.path)
            self.addCleanup(server.__exit__)
            for kind, body in ("infer", DIGITS), ("generate", {"image": [0] * 64}):
                body = json.dumps(body).encode()
                with socket.create_connection(("127.0.0.1", server.port)) as peer:
                    peer.sendall(b"POST /v2/models/slow/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (kind.encode(), len(body)) + body)
                    time.sleep(0.3)  # the request waits for others
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close resets the connection
            client = grpc.InferenceServerClient(server.url)
            call = client.async_infer("slow", image(), lambda result, error: None)
            time.sleep(0.3)
            call.cancel()
            self.wait_for(lambda: os.path.exists(self.path) and len(self.lines()) >= 3, "the lines")
            members = ("status", "grpc_status", "aborted", "bytes_out")
            self.assertEqual([tuple(line.get(member) for member in members) for line in self.lines()],
                             [(499, None, True, 0), (499, None, True, 0), (200, 1, True, 0)])

    def test_standard_output(self):
        self.path = "-"
        server = self.serve()
        server.call("GET", "/v2/health/live")
        self.assertEqual(server.stop(), 0)
        found = re.findall(r"^{.*}$", server.output, re.M)
        self.assertEqual([json.loads(line)["path"] for line in found], ["/v2/health/live"])

    def test_rotation(self):
        server = self.serve()
        server.call("GET", "/v2/health/live")
        self.wait_for(lambda: len(self.lines()) == 1, "the first line")
        os.rename(self.path, self.path + ".1")
        time.sleep(1.1)
        server.call("GET", "/v2/health/ready")
        self.wait_for(lambda: os.path.exists(self.path) and len(self.lines()) == 1, "the second file")
        self.assertEqual(self.lines()[0]["path"], "/v2/health/ready")
        self.assertEqual([line["path"] for line in self.lines(self.path + ".1")], ["/v2/health/live"])

    def test_a_full_disk(self):
        self.path = "/dev/full"
        server = self.serve()
        for _ in range(10):
            self.assertEqual(server.infer("digits", DIGITS)[0], 200)
        name = "kelp_access_log_dropped_lines_total"
        self.wait_for(lambda: (re.search(rf"^{name} (\d+)$", server.metrics(), re.M) or [0, 0])[1] not in (0, "0"), "the metric")
        self.assertIn(f"# TYPE {name} counter", server.metrics())
        self.assertEqual(server.stop(), 0)
        self.assertEqual(len(re.findall(r"access log '/dev/full': dropped \d+ lines: No space left on device", server.log())), 1)

    def test_a_pipe_without_reader_delays_nothing(self):
        os.mkfifo(self.path)
        reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        server = self.serve()
        began = time.monotonic()
        for _ in range(300):
            self.assertEqual(server.call("GET", "/v2/health/live")[0], 200)
        self.assertLess(time.monotonic() - began, support.PATIENCE_S / 4)
        began = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - began, support.PATIENCE_S / 4)

    def test_a_file_that_cannot_be_opened(self):
        ended = kelp("serve", EXAMPLES, "--http-port", "0", "--access-log", "/nowhere/log")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("cannot open access log '/nowhere/log': No such file or directory", ended.stderr)
        self.assertNotIn("digits", ended.stdout)

    def test_without_the_option_there_is_no_metric(self):
        with Server(EXAMPLES) as server:
            self.assertNotIn("kelp_access_log", server.metrics())


if __name__ == "__main__":
    support.main()
