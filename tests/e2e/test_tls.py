#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests TLS of `kelp serve` with curl, OpenSSL, Python's ssl and Triton's client: protocols, certificates of clients, reloading, errors.

    test_tls.py --kelp PATH [unittest arguments]
"""
import json
import os
import random
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import tritonclient.grpc
import tritonclient.utils

import support

REQUEST = os.path.join(support.ROOT, "examples", "requests", "addsub.json")
CONNECTIONS = 200
MAX_CONNECTION_BYTES = 32 * 1024


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def wait_until(condition):
    end = time.monotonic() + support.PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("the condition did not become true")
        time.sleep(0.1)


class Certificates:
    """A directory with authorities, and certificates that they sign."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="kelp-tls-")
        for ca in ("ca", "other"):
            openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", f"/CN={ca}", "-keyout", self[f"{ca}.key"], "-out", self[f"{ca}.pem"])
        self.sign("server", "ca")
        self.sign("client", "ca")
        self.sign("stranger", "other")

    def __getitem__(self, name):
        return os.path.join(self.path, name)

    def sign(self, name, ca):
        request = self[f"{name}.csr"]
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", self[f"{name}.key"], "-out", request)
        with tempfile.NamedTemporaryFile("w", suffix=".cnf") as extensions:
            extensions.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
            extensions.flush()
            openssl("x509", "-req", "-in", request, "-CA", self[f"{ca}.pem"], "-CAkey", self[f"{ca}.key"], "-CAcreateserial",
                    "-days", "2", "-extfile", extensions.name, "-out", self[f"{name}.pem"])


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.certs = Certificates()
        cls.repository = support.Repository()
        cls.repository.example("addsub")

    @classmethod
    def tearDownClass(cls):
        cls.repository.__exit__()
        shutil.rmtree(cls.certs.path)

    def server(self, *words, name="server", **options):
        return support.Server("--model-repository", self.repository.path, "--tls-cert", self.certs[f"{name}.pem"],
                              "--tls-key", self.certs[f"{name}.key"], *words, **options)

    def curl(self, server, path, *words, code=0):
        """Returns the output, and the version of HTTP."""
        done = subprocess.run(["curl", "-sS", "--max-time", "60", "--cacert", self.certs["ca.pem"], "-w", "\n%{http_version}",
                               f"https://127.0.0.1:{server.port}{path}", *words], capture_output=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        body, _, version = done.stdout.decode().rpartition("\n")
        return body, version

    def context(self, *protocols, client=None):
        context = ssl.create_default_context(cafile=self.certs["ca.pem"])
        context.set_alpn_protocols(protocols or ["http/1.1"])
        if client:
            context.load_cert_chain(self.certs[f"{client}.pem"], self.certs[f"{client}.key"])
        return context

    def connect(self, server, *protocols, client=None):
        raw = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        return self.context(*protocols, client=client).wrap_socket(raw, server_hostname="localhost")

    def test_both_versions_of_http(self):
        with self.server() as server:
            for words, version in ((["--http1.1"], "1.1"), (["--http2"], "2"), ([], "2")):
                self.assertEqual(self.curl(server, "/v2/health/ready", *words), ("", version))
                body, _ = self.curl(server, "/v2/models/addsub/infer", "-d", f"@{REQUEST}", *words)
                self.assertEqual(json.loads(body)["outputs"][0]["data"][:2], [1.0, 2.0])
            self.assertEqual(server.stop(), 0)

    def test_the_protocol_is_negotiated(self):
        with self.server() as server:
            for offered, chosen in ((["h2", "http/1.1"], "h2"), (["http/1.1", "h2"], "h2"), (["http/1.1"], "http/1.1"),
                                    (["spdy/1"], None)):
                with self.connect(server, *offered) as connection:
                    self.assertEqual(connection.selected_alpn_protocol(), chosen)
                    self.assertIn(connection.version(), ("TLSv1.3", "TLSv1.2"))
            with self.connect(server, "spdy/1") as connection:
                connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertTrue(connection.recv(1000).startswith(b"HTTP/1.1 200"))
            old = subprocess.run(["openssl", "s_client", "-connect", server.url, "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"],
                                 input=b"", capture_output=True, check=False)
            self.assertNotIn(b"BEGIN CERTIFICATE", old.stdout)

    def test_large_bodies(self):
        request = {"inputs": [{"name": n, "datatype": "FP32", "shape": [1, 16], "data": [1.0] * 16} for n in ("INPUT0", "INPUT1")],
                   "parameters": {"filler": "x" * 3000000}}
        with self.server() as server, tempfile.NamedTemporaryFile("w") as file:
            json.dump(request, file)
            file.flush()
            for version in ("--http1.1", "--http2"):
                body, _ = self.curl(server, "/v2/models/addsub/infer", "--data-binary", f"@{file.name}", version)
                self.assertEqual(json.loads(body)["outputs"][0]["data"], [2.0] * 16)

    def test_ciphertext_in_random_pieces(self):
        request = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
        generator = random.Random(1)
        with self.server() as server:
            for _ in range(20):
                ciphertext, received = ssl.MemoryBIO(), ssl.MemoryBIO()
                client = self.context("http/1.1").wrap_bio(received, ciphertext, server_hostname="localhost")
                with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
                    self.handshake(client, connection, ciphertext, received)
                    client.write(request * 10000)
                    reader = threading.Thread(target=self.drain, args=(connection,))
                    reader.start()
                    data = ciphertext.read()
                    while data:
                        size = generator.choice((1, 100, 5000, 65536 + generator.randrange(400), 150000))
                        connection.sendall(data[:size])
                        data = data[size:]
                    connection.shutdown(socket.SHUT_WR)
                    reader.join(60)
            self.assertEqual(self.curl(server, "/v2/health/live")[0], "")
            self.assertEqual(server.stop(), 0)

    @staticmethod
    def handshake(client, connection, ciphertext, received):
        while True:
            try:
                client.do_handshake()
                connection.sendall(ciphertext.read())
                return
            except ssl.SSLWantReadError:
                connection.sendall(ciphertext.read())
                received.write(connection.recv(65536))

    @staticmethod
    def drain(connection):
        while connection.recv(1 << 20):
            pass

    def test_many_requests_in_one_write(self):
        with self.server() as server, self.connect(server) as connection:
            connection.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n" * 2000)
            received = b""
            while received.count(b"HTTP/1.1 200") < 2000 or not received.endswith(b"}"):
                received += connection.recv(65536)

    def test_a_client_that_sends_a_byte_at_a_time(self):
        with self.server() as server:
            sent, received = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = self.context().wrap_bio(received, sent, server_hostname="localhost")
            raw = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            with raw:
                def run(call):
                    while True:
                        try:
                            result = call()
                        except ssl.SSLWantReadError:
                            result = None
                        for byte in sent.read():
                            raw.sendall(bytes([byte]))
                        if result is not None:
                            return result
                        received.write(raw.recv(65536))
                run(lambda: client.do_handshake() or 1)
                run(lambda: client.write(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"))
                self.assertTrue(run(lambda: client.read(1000)).startswith(b"HTTP/1.1 200"))

    def test_certificates_of_clients(self):
        with self.server("--tls-ca", self.certs["ca.pem"]) as server:
            key = ["--cert", self.certs["client.pem"], "--key", self.certs["client.key"]]
            self.assertEqual(self.curl(server, "/v2/health/ready", *key), ("", "2"))
            self.assertEqual(self.curl(server, "/v2/health/ready", "--http1.1", *key), ("", "1.1"))
            self.curl(server, "/v2/health/ready", code=56)
            wait_until(lambda: "the TLS handshake failed: peer did not return a certificate" in server.log())
            time.sleep(1.1)  # a rejection is logged each second
            self.curl(server, "/v2/health/ready", "--cert", self.certs["stranger.pem"], "--key", self.certs["stranger.key"], code=56)
            wait_until(lambda: "the TLS handshake failed: unable to get local issuer certificate" in server.log())
        with self.server("--tls-ca", self.certs["ca.pem"], "--tls-client-auth", "optional") as server:
            self.assertEqual(self.curl(server, "/v2/health/ready")[1], "2")
            self.curl(server, "/v2/health/ready", "--cert", self.certs["stranger.pem"], "--key", self.certs["stranger.key"], code=56)

    def grpc_ready(self, server, *client, port=None):
        """Returns true if Triton's client reaches the server, over gRPC."""
        url = f"localhost:{port or server.port}"
        key, cert = (self.certs[client[0] + ".key"], self.certs[client[0] + ".pem"]) if client else (None, None)
        connection = tritonclient.grpc.InferenceServerClient(url, ssl=True, root_certificates=self.certs["ca.pem"],
                                                             private_key=key, certificate_chain=cert)
        try:
            return connection.is_server_ready(client_timeout=30)
        except tritonclient.utils.InferenceServerException:
            return False
        finally:
            connection.close()

    def test_grpc_over_tls(self):
        with self.server() as server:
            self.assertTrue(self.grpc_ready(server))
            self.assertEqual(server.stop(), 0)

    def test_the_port_of_grpc_has_certificates_of_its_own(self):
        words = ["--grpc-server-cert", self.certs["server.pem"], "--grpc-server-key", self.certs["server.key"], "--grpc-port", "0"]
        mutual = ["--grpc-use-ssl-mutual", "--grpc-root-cert", self.certs["ca.pem"]]
        for more, reached, client in ((["--grpc-use-ssl"], True, ()), (mutual, False, ()), (mutual, True, ("client",)),
                                      (mutual, False, ("stranger",))):
            with support.Server("--model-repository", self.repository.path, *words, *more) as server:
                wait_until(lambda: "gRPC" in server.output)  # noqa: B023
                port = re.search(r"gRPC  https://127\.0\.0\.1:(\d+)", server.output)[1]
                self.assertEqual(self.grpc_ready(server, *client, port=port), reached)
                self.assertEqual(server.call("GET", "/v2/health/ready")[0], 200)
                # The port of HTTP, which has no TLS, does not serve gRPC.
                self.assertEqual(server.call("POST", "/inference.GRPCInferenceService/ServerReady", b"\0\0\0\0\0",
                                             Content_Type="application/grpc")[0], 404)
        for words, missing in ((["--grpc-use-ssl", "--grpc-port", "0"], "--grpc-server-cert"),
                               ([*words, "--grpc-use-ssl-mutual"], "--grpc-root-cert"),
                               ([*words[:4], "--grpc-use-ssl"], "--grpc-port")):
            done = support.kelp("serve", self.repository.path, *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(missing, done.stderr)

    def test_clients_without_tls_are_told(self):
        with self.server() as server:
            status, headers, body = server.call("GET", "/v2")
            self.assertEqual((status, headers["connection"]), (400, "close"))
            self.assertEqual(json.loads(body), {"error": "this address needs https"})
            wait_until(lambda: "the client does not use TLS" in server.log())
        with support.Server("--model-repository", self.repository.path) as server:
            self.curl(server, "/v2", code=35)
            wait_until(lambda: "the client uses TLS, which is not configured" in server.log())
            self.assertEqual(server.call("GET", "/v2")[0], 200)

    def test_a_unix_socket_needs_no_tls(self):
        path = self.certs["socket"]
        server = self.server("--http-address", f"unix:{path}", ready=False)
        with server:
            wait_until(lambda: os.path.exists(path) and path in server.output)
            done = subprocess.run(["curl", "-s", "--unix-socket", path, "http://x/v2/health/ready", "-w", "%{http_code}"],
                                  capture_output=True, check=True)
            self.assertEqual(done.stdout, b"200")

    def test_changed_certificates_are_used(self):
        def serial():
            with self.connect(server) as connection:
                return connection.getpeercert()["serialNumber"]
        self.certs.sign("moving", "ca")
        with self.server("--log-info=true", name="moving") as server:
            before = serial()
            with self.connect(server) as kept:
                self.certs.sign("next", "ca")
                for end in ("key", "pem"):
                    os.replace(self.certs[f"next.{end}"], self.certs[f"moving.{end}"])
                wait_until(lambda: serial() != before)
                self.assertIn("loaded the changed TLS certificate", server.output)
                kept.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertTrue(kept.recv(1000).startswith(b"HTTP/1.1 200"))
            after = serial()
            with open(self.certs["moving.pem"], "w", encoding="utf-8") as file:
                file.write("no certificate\n")
            wait_until(lambda: "the previous TLS certificate remains in use" in server.log())
            self.assertEqual(serial(), after)

    def test_errors_name_the_file_and_the_reason(self):
        with open(self.certs["empty.pem"], "w", encoding="utf-8"):
            pass
        openssl("ec", "-in", self.certs["server.key"], "-aes128", "-passout", "pass:secret", "-out", self.certs["secret.key"])
        for words, text in (
                (["--tls-cert", "server.pem"], "option '--tls-cert' requires '--tls-key'"),
                (["--tls-ca", "ca.pem"], "option '--tls-ca' requires '--tls-cert'"),
                (["--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-client-auth", "required"],
                 "option '--tls-client-auth required' requires '--tls-ca'"),
                (["--tls-cert", "none.pem", "--tls-key", "server.key"],
                 r"cannot read the TLS file '.*none.pem': No such file or directory"),
                (["--tls-cert", "empty.pem", "--tls-key", "server.key"],
                 r"cannot use the TLS certificate '.*empty.pem': no start line"),
                (["--tls-cert", "server.pem", "--tls-key", "client.key"],
                 r"cannot use the TLS key '.*client.key': key values mismatch"),
                (["--tls-cert", "server.pem", "--tls-key", "secret.key"], r"cannot use the TLS key '.*secret.key': "),
                (["--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-ca", "empty.pem"],
                 r"cannot use the TLS authorities '.*empty.pem': ")):
            with self.subTest(text):
                full = [self.certs[word] if word.endswith((".pem", ".key")) else word for word in words]
                done = subprocess.run([support.KELP, "serve", "--model-repository", self.repository.path, "--http-port", "0", *full],
                                      capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stderr.decode(), text)

    def test_idle_connections_use_little_memory(self):
        def memory():
            with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as file:
                return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1)) * 1024
        if support.is_sanitized():
            self.skipTest("a sanitizer uses more memory")
        with self.server("--http-thread-count", "1") as server:
            context = self.context("http/1.1")

            def connect():
                raw = socket.create_connection(("127.0.0.1", server.port), timeout=60)
                connection = context.wrap_socket(raw, server_hostname="localhost")
                connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
                connection.recv(1000)
                return connection
            opened = [connect() for _ in range(20)]
            before = memory()
            opened += [connect() for _ in range(CONNECTIONS)]
            used = (memory() - before) / CONNECTIONS
            for connection in opened:
                connection.close()
            self.assertLess(used, MAX_CONNECTION_BYTES)


if __name__ == "__main__":
    support.main()
