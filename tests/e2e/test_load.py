# SPDX-License-Identifier: Apache-2.0
"""Instances and load: options for instances, large JSON, and stopping and reloading while clients send requests, of which none is lost. `--long`
reloads 1,000 times and limits the growth of memory."""
import gzip
import http.client
import json
import os
import re
import signal
import socket
import sys
import threading
import time
import unittest

import support
from support import ROOT, Repository, Server

LONG = "--long" in sys.argv
if LONG:
    sys.argv.remove("--long")

with open(os.path.join(ROOT, "examples", "requests", "digits.json"), "rb") as file:
    DIGITS = file.read()


class Client(threading.Thread):
    """Sends requests in a loop, until `stopping` is set or the server does not accept a connection. A response that does not arrive is lost, unless
    this thread has not sent the request in time: a server that stops closes connections that are idle for 100 ms."""

    def __init__(self, port, reconnects, path="/v2/models/digits/infer", body=DIGITS):
        super().__init__(daemon=True)
        self.port, self.reconnects, self.path, self.body = port, reconnects, path, body
        self.answered, self.lost, self.stopping = 0, [], False
        self.start()

    def run(self):
        connection = None
        while not self.stopping:
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=support.PATIENCE_S)
                    connection.connect()
                    idle_since = time.monotonic()
            except OSError:
                return
            sent_at = None
            try:
                connection.request("POST", self.path, self.body)
                sent_at = time.monotonic()
                response = connection.getresponse()
                text = response.read()
                idle_since = sent_at  # this thread may read the response long after the server has sent it
            except (OSError, http.client.HTTPException) as error:
                if (sent_at or time.monotonic()) < idle_since + 0.05:
                    self.lost.append(f"{type(error).__name__}: {error}")
                return
            if response.status != 200:
                self.lost.append(f"{response.status}: {text.decode()}")
            self.answered += 1
            if self.reconnects or response.getheader("Connection") == "close":
                connection.close()
                connection = None
        if connection is not None:
            connection.close()


def wait_for(condition):
    end = time.monotonic() + support.PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("the condition does not become true")
        time.sleep(0.01)


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"^VmRSS:\s+(\d+) kB", file.read(), re.M).group(1))


class Stopping(unittest.TestCase):
    def test_a_signal_under_load_loses_no_request(self):
        for sent in 1, 1, 2:  # `timeout` of coreutils sends it twice
            with Server("--model-repository", os.path.join(ROOT, "examples", "models")) as server:
                clients = [Client(server.port, reconnects=i % 2 == 1) for i in range(8)]
                wait_for(lambda: all(client.answered > 20 for client in clients))
                if sent == 2:
                    server.process.send_signal(signal.SIGTERM)
                self.assertEqual(server.stop(), 0, server.log())
                for client in clients:
                    client.join()
                self.assertEqual([client.lost for client in clients if client.lost], [])

    def test_a_slow_request_is_answered_before_the_server_stops(self):
        """Meanwhile, the server is not ready for clients that are still connected."""
        backends = os.path.join(os.path.dirname(os.path.dirname(support.KELP)), "backends")
        body = json.dumps({"parameters": {"delay_ms": 1500},
                           "inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1], "data": [7]}]}).encode()
        with Repository() as repository:
            repository.add("identity", config="""
                backend: "identity"
                input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] } ]
                output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ -1 ] } ]
                instance_group [ { kind: KIND_CPU count: 4 } ]""")
            with Server("--model-repository", repository.path, "--backend-directory", backends) as server:
                clients = [Client(server.port, False, "/v2/models/identity/infer", body) for _ in range(4)]
                time.sleep(0.5)
                self.assertEqual(server.stop(), 0, server.log())
                for client in clients:
                    client.join()
                self.assertEqual([client.lost for client in clients if client.lost], [])
                self.assertEqual([client.answered for client in clients], [1] * 4)


class LargeJson(unittest.TestCase):
    """JSON of more than 256 KiB is decoded and encoded on threads of its own."""

    def setUp(self):
        backends = os.path.join(os.path.dirname(os.path.dirname(support.KELP)), "backends")
        self.repository = Repository()
        self.addCleanup(self.repository.__exit__)
        self.repository.add("identity", config="""
            backend: "identity"
            input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] } ]
            output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ -1 ] } ]""")
        self.server = Server("--model-repository", self.repository.path, "--backend-directory", backends)
        self.addCleanup(self.server.__exit__)
        self.data = list(range(200000))
        self.request = {"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [len(self.data)], "data": self.data}]}

    def test_it_is_answered_also_by_several_threads(self):
        def ask():
            status, response = self.server.infer("identity", self.request)
            answers.append(status == 200 and response["outputs"][0]["data"] == self.data)
        answers = []
        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [True] * 6)

    def test_compressed_responses_are_equal(self):
        status, headers, body = self.server.call("POST", "/v2/models/identity/infer", self.request, Accept_Encoding="gzip")
        self.assertEqual((status, headers["content-encoding"]), (200, "gzip"))
        self.assertEqual(json.loads(gzip.decompress(body))["outputs"][0]["data"], self.data)

    def test_errors_are_reported(self):
        self.request["inputs"][0]["data"][-1] = "x"
        self.assertEqual(self.server.infer("identity", self.request)[0], 400)
        self.request["inputs"][0]["data"][-1] = 1
        self.assertEqual(self.server.infer("unknown", self.request)[0], 404)

    def test_clients_that_leave_do_no_harm(self):
        body = json.dumps(self.request).encode()
        head = f"POST /v2/models/identity/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", self.server.port)) as client:
                client.sendall(head + body)
        self.assertEqual(self.server.infer("identity", self.request)[0], 200)
        self.assertEqual(self.server.stop(), 0, self.server.log())


class Instances(unittest.TestCase):
    """Options for the instances of models."""

    CONFIG = """
        backend: "identity"
        input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] } ]
        output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ -1 ] } ]
        instance_group [ { %s } ]"""
    REQUEST = {"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1], "data": [1]}]}

    def serve(self, group, *words, ready=True):
        backends = os.path.join(os.path.dirname(os.path.dirname(support.KELP)), "backends")
        repository = Repository()
        self.addCleanup(repository.__exit__)
        repository.add("m", config=self.CONFIG % group)
        server = Server("--model-repository", repository.path, "--backend-directory", backends, *words, ready=ready)
        self.addCleanup(server.__exit__)
        return server

    def fails(self, message, group, *words):
        server = self.serve(group, *words, ready=False)
        self.assertNotEqual(server.process.wait(support.PATIENCE_S), 0)
        self.assertIn(message, server.log().replace('\\"', '"'))

    def test_resources_of_the_rate_limiter(self):
        limit = "--rate-limit", "execution_count"
        group = 'count: 2 kind: KIND_CPU rate_limiter { resources [ { name: "a:b" count: 2 } ] }'
        self.fails('Resource count for "a:b" is limited to 1', group, *limit, "--rate-limit-resource", "a:b:1")
        self.fails('Resource count for "a:b" is limited to 1', group, *limit, "--rate-limit-resource", "a:b:1:0")
        for resource in "a:b", "a:b:", ":1", "1":
            self.fails(f"expected NAME:COUNT[:DEVICE], found '{resource}'", group, "--rate-limit-resource", resource)
        self.fails('Resource count for "a:b" is limited to 0', group, *limit, "--rate-limit-resource", "a:b:1:7")
        for words in ("--rate-limit-resource", "a:b:2:0"), ():
            server = self.serve(group, *limit, *words)
            self.assertEqual(server.infer("m", self.REQUEST)[0], 200)
            self.assertEqual(server.stop(), 0, server.log())

    def test_resources_without_the_rate_limiter_have_no_effect(self):
        server = self.serve('kind: KIND_CPU rate_limiter { resources [ { name: "R" count: 2 } ] }', "--rate-limit-resource", "R:1")
        self.assertEqual(server.infer("m", self.REQUEST)[0], 200)
        self.assertEqual(server.stop(), 0)
        self.assertIn("has no effect without --rate-limit=execution_count", server.log())

    def test_host_policies(self):
        group = 'kind: KIND_CPU host_policy: "near"'
        cpu = min(os.sched_getaffinity(0))
        server = self.serve(group, "--host-policy", f"near,cpu-cores={cpu}")
        self.assertEqual(server.infer("m", self.REQUEST)[0], 200)
        tasks = f"/proc/{server.process.pid}/task"
        allowed = {}
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/status", encoding="ascii") as file:
                text = file.read()
            allowed[re.search(r"^Name:\s+(.*)", text, re.M).group(1)] = re.search(r"^Cpus_allowed_list:\s+(.*)", text, re.M).group(1)
        self.assertEqual(allowed["kelp-instance"], str(cpu))
        self.assertEqual(server.stop(), 0, server.log())
        self.fails("expected NAME,KEY=VALUE, found 'near'", group, "--host-policy", "near")
        self.fails("Unsupported host policy setting 'colour'", group, "--host-policy", "near,colour=blue")
        self.fails("expected a list of CPUs", group, "--host-policy", "near,cpu-cores=a")

    def test_gpu_groups(self):
        group = "kind: KIND_GPU gpus: 0"
        self.fails("kind KIND_GPU, but this server has no GPU", group)
        server = self.serve(group, "--gpu-fallback", "cpu")
        self.assertEqual(server.infer("m", self.REQUEST)[0], 200)
        self.assertEqual(server.stop(), 0)
        self.assertIn("its instances run on the CPU", server.log())


class Reloading(unittest.TestCase):
    def test_reloads_under_load_fail_no_request(self):
        count = 1000 if LONG else 30
        with Repository() as repository:
            repository.example("digits")
            with Server("--model-repository", repository.path, "--model-control-mode", "explicit", "--load-model",
                        "digits") as server:
                model = os.path.join(repository.path, "digits", "1", "model.onnx")
                clients = [Client(server.port, reconnects=False) for _ in range(4)]
                wait_for(lambda: all(client.answered > 20 for client in clients))

                def reload(number):
                    os.utime(model, (number, number))  # a file that has not changed is not loaded again
                    status, _, text = server.call("POST", "/v2/repository/models/digits/load", {})
                    self.assertEqual(status, 200, text)

                for number in range(count // 10):
                    reload(1000 + number)
                before = rss_kib(server.process.pid)
                for number in range(count):
                    reload(1000000 + number)
                after = rss_kib(server.process.pid)
                for client in clients:
                    client.stopping = True
                for client in clients:
                    client.join()
                self.assertEqual([client.lost for client in clients if client.lost], [])
                print(f"{count} reloads, {sum(client.answered for client in clients)} requests, RSS {before} -> {after} KiB")
                if LONG:
                    self.assertLessEqual(after - before, 1024)
                loads = json.loads(server.call("GET", "/v2/models/digits/stats")[2])
                self.assertEqual(len(loads["model_stats"]), 1)
                self.assertEqual(server.stop(), 0, server.log())


if __name__ == "__main__":
    support.main()
