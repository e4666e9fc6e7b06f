# SPDX-License-Identifier: Apache-2.0
"""HAProxy and Envoy with the configurations of deploy/ in front of three servers, one of which is killed or stopped under load.

    python3 tests/packaging/test_balancing.py --kelp build/release/bin/kelp [HAProxy|Envoy] [--measure]
"""
import argparse
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENVOY = os.path.join(ROOT, "build", "venv-balancing", "bin", "envoy")
KELP = None
PATIENCE_S = 60
CLIENTS = 24
REQUEST = b'{"inputs":[{"name":"INPUT0","shape":[2],"datatype":"FP32","data":[3,4]}]}'
# An execution takes 20 ms without CPU time, and a server runs 8 at once: 400 requests/s each.
DELAY_MS, INSTANCES = 20, 8
CONFIG = f"""
backend: "identity"
input [ {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }} ]
instance_group [ {{ kind: KIND_CPU count: {INSTANCES} }} ]
parameters {{ key: "execute_delay_ms" value {{ string_value: "{DELAY_MS}" }} }}
"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [item.getsockname()[1] for item in sockets]
    for item in sockets:
        item.close()
    return ports


def status_of(port, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("POST" if body else "GET", path, body)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def wait_for(port, path):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if status_of(port, path) == 200:
                return
        except OSError:
            pass
        time.sleep(0.02)
    raise AssertionError(f"no response from port {port}")


class Client(threading.Thread):
    """Sends requests one after another on one connection and notes (begin, end, outcome); the outcome of a success is 200."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.results, self.ends = port, [], False

    def run(self):
        connection = None
        while not self.ends:
            began = time.monotonic()
            try:
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
                connection.request("POST", "/v2/models/slow/infer", REQUEST)
                response = connection.getresponse()
                response.read()
                outcome = response.status
                if response.will_close:
                    connection.close()
                    connection = None
            except (OSError, http.client.HTTPException) as error:
                outcome = repr(error)
                connection.close()
                connection = None
            self.results.append((began, time.monotonic(), outcome))
        if connection is not None:
            connection.close()


class Load:
    def __init__(self, port):
        self.clients = [Client(port) for _ in range(CLIENTS)]

    def __enter__(self):
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.ends = True
        for client in self.clients:
            client.join(PATIENCE_S)
            assert not client.is_alive(), "a client got neither a response nor an error"

    def results(self):
        return [result for client in self.clients for result in client.results]


class Proxy:
    """Three servers behind a proxy."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="kelp-balancing-")
        model = os.path.join(cls.directory, "models", "slow")
        os.makedirs(os.path.join(model, "1"))
        with open(os.path.join(model, "config.pbtxt"), "w", encoding="utf-8") as file:
            file.write(CONFIG)
        *cls.ports, cls.port, cls.grpc_port, cls.admin_port = free_ports(6)
        cls.servers, cls.proxy, cls.log = [None, None, None], None, None
        cls.addClassCleanup(cls.clean)
        for i in range(3):
            cls.start_server(i)
        with open(os.path.join(ROOT, "deploy", *cls.configuration), encoding="utf-8") as file:
            text = cls.adapt(file.read())
        path = os.path.join(cls.directory, cls.configuration[-1])
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        cls.log = open(os.path.join(cls.directory, "proxy.log"), "wb")
        cls.proxy = subprocess.Popen(cls.command(path), stdout=cls.log, stderr=cls.log, stdin=subprocess.DEVNULL)
        wait_for(cls.port, "/v2/models/slow/ready")

    @classmethod
    def clean(cls):
        for process in (*cls.servers, cls.proxy):
            if process is not None:
                process.kill()
                process.wait()
        if cls.log is not None:
            cls.log.close()
        shutil.rmtree(cls.directory)

    @classmethod
    def start_server(cls, index):
        cls.servers[index] = subprocess.Popen([KELP, "serve", "--model-repository", os.path.join(cls.directory, "models"), "--http-address", "127.0.0.1",
                                               "--http-port", str(cls.ports[index])], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(cls.ports[index], "/v2/health/ready")

    def restart(self, index):
        self.start_server(index)
        time.sleep(1.5)  # until the proxy has noticed

    def run_load(self, action):
        """Returns the results of the clients while `action` happens, and the time at which it began and ended."""
        with Load(self.port) as load:
            time.sleep(1)
            began = time.monotonic()
            action()
            ended = time.monotonic()
            time.sleep(2)
        return load.results(), began, ended

    def test_killed_server(self):
        def kill():
            self.servers[1].kill()
            self.servers[1].wait()

        results, began, ended = self.run_load(kill)
        failed = [result for result in results if result[2] != 200]
        print(f"{type(self).__name__}: killed: {len(results)} requests, {len(failed)} failed", file=sys.stderr)
        in_flight = [result for result in results if result[0] <= ended and result[1] >= began]
        # Each client has one request at a time, so that its error, if any, is one of these.
        self.assertEqual([result for result in failed if result not in in_flight], [], "requests failed that were not in flight when the server was killed")
        self.assertGreater(len(failed), 0, "the server had no request in flight, and the test shows nothing")
        self.assertLess(len(failed), CLIENTS, "requests on other servers failed")
        self.assertGreater(len([result for result in results if result[0] > ended and result[2] == 200]), 100)
        self.restart(1)

    def test_drained_server(self):
        def drain():
            self.servers[2].send_signal(signal.SIGTERM)
            self.assertEqual(self.servers[2].wait(PATIENCE_S), 0)

        results, began, _ = self.run_load(drain)
        print(f"{type(self).__name__}: drained: {len(results)} requests", file=sys.stderr)
        self.assertEqual([result for result in results if result[2] != 200], [])
        self.assertGreater(len([result for result in results if result[0] > began]), 100)
        self.restart(2)

    def test_no_server(self):
        """Every client gets an error at once, and responses again when a server is back."""
        for server in self.servers:
            server.kill()
            server.wait()
        time.sleep(1.5)
        began = time.monotonic()
        self.assertEqual(status_of(self.port, "/v2/models/slow/infer", REQUEST), 503)
        self.assertLess(time.monotonic() - began, 10)
        for i in range(3):
            self.start_server(i)
        wait_for(self.port, "/v2/models/slow/ready")
        time.sleep(1.5)
        self.assertEqual(status_of(self.port, "/v2/models/slow/infer", REQUEST), 200)

    def test_grpc(self):
        try:
            import tritonclient.grpc
        except ImportError:
            self.skipTest("tritonclient is not installed")
        client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{self.grpc_port if self.has_grpc_port else self.port}")
        self.assertTrue(client.is_model_ready("slow"))
        client.close()


class HAProxy(Proxy, unittest.TestCase):
    configuration = ("haproxy", "haproxy.cfg")
    has_grpc_port = True

    @classmethod
    def adapt(cls, text):
        for i, port in enumerate(cls.ports):
            text = text.replace(f"10.0.0.{i + 1}:8000", f"127.0.0.1:{port}")
        return text.replace("bind :8000", f"bind 127.0.0.1:{cls.port}").replace("bind :8001", f"bind 127.0.0.1:{cls.grpc_port}").replace(
            "127.0.0.1:8405", f"127.0.0.1:{cls.admin_port}")

    @classmethod
    def command(cls, path):
        return ["haproxy", "-db", "-f", path]


class Envoy(Proxy, unittest.TestCase):
    configuration = ("envoy", "envoy.yaml")
    has_grpc_port = False

    @classmethod
    def adapt(cls, text):
        for i, port in enumerate(cls.ports):
            text = text.replace(f"address: 10.0.0.{i + 1}, port_value: 8000", f"address: 127.0.0.1, port_value: {port}")
        return text.replace("address: 0.0.0.0, port_value: 8000", f"address: 127.0.0.1, port_value: {cls.port}").replace(
            "port_value: 9901", f"port_value: {cls.admin_port}")

    @classmethod
    def command(cls, path):
        return [ENVOY, "-c", path, "--concurrency", "1", "--log-level", "warning", "--disable-hot-restart"]

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(ENVOY):
            print("skipped: Envoy is brought by pip (tools/requirements-balancing.txt)")
            raise unittest.SkipTest("Envoy is not installed")
        super().setUpClass()


def measure(proxy):
    """Prints the throughput of one, two and three servers behind the proxy, with 32 connections for each server."""
    proxy.setUpClass()
    try:
        body = os.path.join(proxy.directory, "body")
        with open(body, "wb") as file:
            file.write(REQUEST)
        one = None
        for count in (1, 2, 3):
            for i, server in enumerate(proxy.servers):
                if i >= count and server.poll() is None:
                    server.kill()
                    server.wait()
                elif i < count and server.poll() is not None:
                    proxy.start_server(i)
            time.sleep(1.5)
            text = subprocess.run(["h2load", "--h1", "-t", "1", "-c", str(32 * count), "-D", "5", "--warm-up-time", "1", "-d", body,
                                   f"http://127.0.0.1:{proxy.port}/v2/models/slow/infer"], capture_output=True, text=True, check=True).stdout
            rate = float(re.search(r"([\d.]+) req/s", text).group(1))
            one = one or rate
            print(f"{proxy.__name__}: {count} servers: {rate:.0f} requests/s, {rate / (one * count):.3f} of linear")
    finally:
        proxy.doClassCleanups()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kelp", required=True)
    parser.add_argument("--measure", action="store_true")
    options, rest = parser.parse_known_args()
    KELP = os.path.abspath(options.kelp)
    if shutil.which("haproxy") is None:
        print("haproxy is not installed")
        sys.exit(77)
    if options.measure:
        for each in (HAProxy, Envoy):
            measure(each)
    else:
        unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
