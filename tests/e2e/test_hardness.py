#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kelp serve` withstands clients, models and crashes that misbehave.

    test_hardness.py --kelp PATH [unittest arguments]
"""
import base64
import concurrent.futures
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import unittest

import support
from support import ROOT, Repository, Server, kelp, read_json

EXAMPLES = os.path.join(ROOT, "examples", "models")
DIGITS = os.path.join(EXAMPLES, "digits", "1", "model.onnx")
HEAD = b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"


def identity(repository, name="identity"):
    with open(os.path.join(ROOT, "backends", "identity", "config.pbtxt"), encoding="utf-8") as file:
        repository.add(name, config=file.read())


def status_of(server, field):
    with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as file:
        return int(re.search(rf"^{field}:\s+(\d+)", file.read(), re.M).group(1))


def wait_until(done):
    end = time.monotonic() + support.PATIENCE_S
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


class Files(unittest.TestCase):
    def test_a_pipe_as_a_model_is_rejected(self):
        with Repository() as repository:
            repository.add("pipe")
            os.mkfifo(os.path.join(repository.path, "pipe", "1", "model.onnx"))
            ended = kelp("serve", repository.path, "--http-port", "0")
            self.assertEqual(ended.returncode, 1)
            self.assertIn("expected a file, found a device, pipe or socket", ended.stderr)

    def test_a_library_that_calls_exit_is_a_failure(self):
        backends = os.path.dirname(os.path.dirname(os.environ["KELP_TEST_EXIT_BACKEND"]))
        tensor = '{ name: "X" data_type: TYPE_INT32 dims: [ 1 ] }'
        with Repository() as repository:
            repository.add("exit", config=f'backend: "exit"\ninput [ {tensor} ]\noutput [ {tensor} ]\n')
            with Server(repository.path, "--backend-directory", backends) as server:
                with self.assertRaises((ConnectionError, support.http.client.HTTPException)):
                    server.infer("exit", {"inputs": [{"name": "X", "datatype": "INT32", "shape": [1], "data": [0]}]})
                self.assertEqual(server.process.wait(support.PATIENCE_S), 1)
                self.assertIn("a library called exit(0)", server.log())
            with Server(repository.path, "--backend-directory", backends) as server:
                self.assertEqual(server.stop(), 0)


class Clients(unittest.TestCase):
    def test_an_incomplete_request_does_not_delay_the_stop(self):
        for sent in (HEAD[:30], HEAD + b"{{{"):
            with self.subTest(sent=sent), Server(EXAMPLES, "--exit-timeout-secs", "60", "--drain-secs", "0") as server:
                with socket.create_connection(("127.0.0.1", server.port), timeout=support.PATIENCE_S) as client:
                    client.sendall(sent)
                    time.sleep(0.3)
                    begin = time.monotonic()
                    self.assertEqual(server.stop(), 0, server.log())
                    self.assertLess(time.monotonic() - begin, 20)
                    self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 503"))

    def test_memory_is_returned_after_a_burst(self):
        values = os.urandom(1 << 20)
        header = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [len(values) // 4],
                                         "parameters": {"binary_data_size": len(values)}}],
                             "parameters": {"binary_data_output": True}}).encode()
        with Repository() as repository:
            identity(repository)
            with Server(repository.path) as server:
                def post(_):
                    return server.call("POST", "/v2/models/identity/infer", header + values,
                                       Inference_Header_Content_Length=len(header))[0]
                self.assertEqual(post(0), 200)
                before = status_of(server, "VmRSS")
                with concurrent.futures.ThreadPoolExecutor(64) as pool:
                    self.assertEqual(set(pool.map(post, range(200))), {200})
                if support.is_sanitized():
                    self.skipTest("a sanitizer keeps memory")
                self.assertTrue(wait_until(lambda: status_of(server, "VmRSS") < before + 16 * 1024), status_of(server, "VmRSS") - before)
                self.assertEqual(server.stop(), 0)

    def test_exhausted_descriptors_are_logged_once(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        try:
            server = Server(EXAMPLES)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        with server:
            clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
            self.assertTrue(wait_until(lambda: "cannot accept HTTP connections" in server.log()), server.log())
            time.sleep(1)  # further attempts are not logged
            self.assertEqual(server.log().count("cannot accept HTTP connections"), 1, server.log())
            for client in clients:
                client.close()
            self.assertEqual(server.call("GET", "/v2/health/live")[0], 200)
            self.assertEqual(server.log().count("cannot accept HTTP connections"), 1, server.log())
            self.assertRegex(server.log(), r"accepting HTTP connections again, after \d+ failed attempts")
            self.assertEqual(server.stop(), 0)

    def test_connections_are_limited_and_a_proxy_may_use_all(self):
        for share, most in ((50, 2), (100, 4)):
            with self.subTest(share=share), Server(EXAMPLES, "--max-connections", 4, "--max-client-share", share) as server:
                clients = [socket.create_connection(("127.0.0.1", server.port), timeout=support.PATIENCE_S) for _ in range(4)]
                served = []
                for client in clients:
                    try:
                        client.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
                        served.append(client.recv(100).startswith(b"HTTP/1.1 200"))
                    except ConnectionError:
                        served.append(False)
                self.assertEqual(served, [i < most for i in range(4)])
                other = socket.create_connection(("127.0.0.1", server.port), timeout=support.PATIENCE_S, source_address=("127.0.0.2", 0))
                with contextlib.suppress(ConnectionError):
                    other.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
                    self.assertEqual(other.recv(100).startswith(b"HTTP/1.1 200"), most < 4)
                for client in (*clients, other):
                    client.close()
                self.assertEqual(server.stop(), 0)

    def test_requests_are_limited_and_a_proxy_may_use_all(self):
        body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [1]}], "parameters": {"delay_ms": 1500}})
        for share, most, status in ((50, 2, 429), (100, 4, 503)):
            with self.subTest(share=share), Repository() as repository:
                identity(repository)
                with Server(repository.path, "--max-requests", 4, "--max-client-share", share, "--http-thread-count", 1) as server, \
                        concurrent.futures.ThreadPoolExecutor(8) as pool:
                    found = list(pool.map(lambda _, server=server: server.call("POST", "/v2/models/identity/infer", body)[0], range(6)))
                    self.assertEqual(sorted(found), [200] * most + [status] * (6 - most))
                    self.assertEqual(server.stop(), 0)

    def test_a_limit_below_the_threads_serves(self):
        with Server(EXAMPLES, "--max-requests", 1, "--max-connections", 1, "--http-thread-count", 8) as server:
            self.assertEqual(server.call("GET", "/v2/health/live")[0], 200)
            self.assertEqual(server.stop(), 0)
        self.assertIn("'--max-client-share'", kelp("serve", EXAMPLES, "--max-client-share", "0").stderr)

    def test_many_names_take_linear_time(self):
        request = read_json("examples", "requests", "digits.json")
        count = 64000
        with Server(EXAMPLES) as server:
            for part in ({"parameters": {f"p{i}": i for i in range(count)}}, {"outputs": [{"name": f"o{i}"} for i in range(count)]},
                         {"inputs": [dict(request["inputs"][0], name=f"i{i}", shape=[0], data=[]) for i in range(count // 4)]}):
                begin = time.monotonic()
                server.infer("digits", dict(request, **part))
                self.assertLess(time.monotonic() - begin, 5, list(part))
            self.assertEqual(server.stop(), 0)


class Loads(unittest.TestCase):
    def test_loads_have_a_limited_number_of_threads(self):
        with Repository() as repository:
            for i in range(60):
                with open(os.path.join(ROOT, "backends", "identity", "config.pbtxt"), encoding="utf-8") as file:
                    repository.add(f"m{i}", config=file.read() + 'parameters { key: "instance_delay_ms" value { string_value: "200" } }\n')
            with Server(repository.path, "--model-control-mode=explicit", "--model-load-thread-count=3") as server:
                idle = status_of(server, "Threads")
                most = 0
                with concurrent.futures.ThreadPoolExecutor(60) as pool:
                    loads = [pool.submit(server.call, "POST", f"/v2/repository/models/m{i}/load", "{}") for i in range(60)]
                    while not all(load.done() for load in loads):
                        most = max(most, status_of(server, "Threads") - idle)
                        self.assertEqual(server.call("GET", "/v2/health/live")[0], 200)
                        time.sleep(0.02)
                    self.assertEqual({load.result()[0] for load in loads}, {200})
                # Beside the loading threads, each model has one for its instance.
                self.assertLessEqual(most, 3 + 60 + 2)
                self.assertTrue(wait_until(lambda: status_of(server, "Threads") <= idle + 60))
                self.assertEqual(server.stop(), 0)

    def load(self, server, name, config, **files):
        parameters = {"config": json.dumps(config)}
        for path, content in files.items():
            parameters[f"file:{path.replace('__', '/').replace('_dot_', '.')}"] = base64.b64encode(content).decode()
        status, _, body = server.call("POST", f"/v2/repository/models/{name}/load", {"parameters": parameters})
        return status, json.loads(body or b"{}").get("error", "")

    def test_uploads_bring_no_code(self):
        with open(DIGITS, "rb") as file:
            model = file.read()
        onnx = {"backend": "onnxruntime"}
        cases = ((dict(onnx, parameters={"providers": {"string_value": "remote:/tmp/socket,cpu"}}), {"1__model_dot_onnx": model}, "the providers"),
                 (onnx, {"1__libtriton_onnxruntime_dot_so": b"\x7fELF...."}, "the shared library"),
                 ({"backend": "identity"}, {"1__data": b"x"}, "files for the backend 'identity'"),
                 ({"backend": "python"}, {"1__model_dot_py": b"import os"}, "files for the backend 'python'"))
        with Repository() as repository:
            repository.example("digits")
            arguments = (repository.path, "--model-control-mode=explicit", "--load-model=digits")
            with Server(*arguments) as server:
                for config, files, expected in cases:
                    status, error = self.load(server, "up", config, **files)
                    self.assertGreaterEqual(status, 400)
                    self.assertIn(expected, error)
                    self.assertIn("--allow-uploaded-code", error)
                self.assertEqual(self.load(server, "up", onnx, **{"1__model_dot_onnx": model}), (200, ""))
                self.assertEqual(server.call("GET", "/v2/models/up/ready")[0], 200)
                self.assertEqual(server.stop(), 0)
            with Server(*arguments, "--allow-uploaded-code") as server:
                for config, files, expected in cases:
                    self.assertNotIn("--allow-uploaded-code", self.load(server, "up", config, **files)[1])
                self.assertEqual(server.stop(), 0)

    def test_uploaded_files_are_removed_after_a_crash(self):
        with open(DIGITS, "rb") as file:
            model = file.read()
        with tempfile.TemporaryDirectory() as directory, Repository() as repository:
            def folders():
                return sorted(name for name in os.listdir(directory) if name.startswith("kelp-"))

            arguments = (repository.path, DIGITS, "--model-control-mode=explicit")
            with Server(*arguments, environment={"TMPDIR": directory}) as first:
                self.assertEqual(self.load(first, "up", {"backend": "onnxruntime"}, **{"1__model_dot_onnx": model}), (200, ""))
                before = folders()
                self.assertEqual(len(before), 2)
                with Server(*arguments, environment={"TMPDIR": directory}) as second:  # does not touch those in use
                    self.assertEqual(set(folders()) - set(before), set(folders()) ^ set(before))
                    self.assertEqual(second.stop(), 0)
                self.assertEqual(folders(), before)
                first.process.send_signal(signal.SIGKILL)
                first.process.wait(support.PATIENCE_S)
            self.assertEqual(folders(), before)
            with Server(*arguments, environment={"TMPDIR": directory}) as third:
                self.assertEqual(len(folders()), 1)
                self.assertEqual(third.stop(), 0)
            self.assertEqual(folders(), [])


class Sockets(unittest.TestCase):
    def test_messages_of_addresses_name_the_mistake(self):
        for words, text in ((("--http-address", "unix:"), "the address of the unix socket has no path: expected unix:/path"),
                            (("--http-address", "[::1]"), "unknown address '[::1]': Name or service not known; IPv6 addresses have no brackets here"),
                            (("--grpc-address", "203.0.113.1", "--grpc-port", "0"), "cannot listen on 203.0.113.1 port 0: ")):
            with self.subTest(words=words):
                ended = kelp("serve", EXAMPLES, "--http-port", "0", *words)
                self.assertEqual(ended.returncode, 1)
                self.assertIn(f"kelp: {text}", ended.stderr)
        self.assertIn("kelp: cannot serve 'missing': No such file or directory", kelp("serve", "missing").stderr)

    def test_a_model_without_a_version_is_explained(self):
        with Repository() as repository:
            shutil.copytree(os.path.join(EXAMPLES, "digits", "1"), os.path.join(repository.path, "digits"))
            self.assertIn("such as digits/1/model.onnx", kelp("serve", repository.path, "--http-port", "0").stderr)

    def test_the_permissions_of_a_socket_can_be_set(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "kelp.sock")
            for mode in ("0660", "600"):
                with subprocess.Popen([support.KELP, "serve", EXAMPLES, "--http-address", f"unix:{path}", f"--http-socket-mode={mode}"],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True) as server:
                    for line in server.stdout:
                        if line.startswith("HTTP"):
                            break
                    self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), int(mode, 8))
                    server.send_signal(signal.SIGTERM)
                    server.stdout.read()
            for mode in ("rw", "0", "1777", "08"):
                ended = kelp("serve", EXAMPLES, "--http-address", f"unix:{path}", f"--http-socket-mode={mode}")
                self.assertEqual(ended.returncode, 1)
                self.assertIn("expected octal permissions", ended.stderr)


if __name__ == "__main__":
    support.main()
