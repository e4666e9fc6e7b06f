#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Restricted categories, bearer tokens, CORS and forwarded headers of `kelp serve`.

    test_access.py --kelp PATH [unittest arguments]
"""
import importlib.util
import json
import os
import tempfile
import time
import unittest

import support
from support import ROOT, Server, kelp, read_json

EXAMPLES = os.path.join(ROOT, "examples", "models")
DIGITS = read_json("examples", "requests", "digits.json")
# A request of each category, which does not change the server.
REQUESTS = {
    "health": [("GET", "/v2/health/live"), ("GET", "/v2/health/ready"), ("GET", "/v2/models/digits/ready")],
    "metadata": [("GET", "/v2"), ("GET", "/v2/models/digits")],
    "inference": [("POST", "/v2/models/digits/infer")],
    "model-config": [("GET", "/v2/models/digits/config")],
    "model-repository": [("POST", "/v2/repository/index")],
    "statistics": [("GET", "/v2/models/digits/stats"), ("GET", "/v2/models/stats")],
    "trace": [("GET", "/v2/trace/setting")],
    "logging": [("GET", "/v2/logging")],
    "shared-memory": [("GET", "/v2/systemsharedmemory/status")],
}


def ask(server, verb, path, **headers):
    return server.call(verb, path, DIGITS if path.endswith("/infer") else None if verb == "GET" else "{}", **headers)


class Restricted(unittest.TestCase):
    def test_each_category_needs_its_header(self):
        rules = [f"--http-restricted-api={category}:x-{category}=secret of {category}" for category in REQUESTS]
        with Server(EXAMPLES, *rules) as server:
            for category, requests in REQUESTS.items():
                for verb, path in requests:
                    with self.subTest(path=path):
                        header = f"x-{category}"
                        for given in ({}, {header: "secret"}, {header: f"secret of {category}!"}, {header: ""}, {"x": f"secret of {category}"}):
                            status, _, body = ask(server, verb, path, **given)
                            self.assertEqual(status, 403, path)
                            self.assertEqual(json.loads(body)["error"], f"This API is restricted, expecting header '{header}'")
                        self.assertEqual(ask(server, verb, path, **{header: f"secret of {category}"})[0], 200)
            self.assertEqual(server.call("GET", "/metrics")[0], 200)
            self.assertEqual(server.stop(), 0)

    def test_a_rule_has_several_categories(self):
        with Server(EXAMPLES, "--http-restricted-api", "health,metadata:k=v", "--http-restricted-api=statistics:k=w") as server:
            for path, value in (("/v2/health/live", "v"), ("/v2", "v"), ("/v2/models/stats", "w")):
                self.assertEqual(ask(server, "GET", path)[0], 403)
                self.assertEqual(ask(server, "GET", path, K=value)[0], 200)
            self.assertEqual(ask(server, "POST", "/v2/models/digits/infer")[0], 200)

    def test_wrong_rules_are_rejected_before_models_load(self):
        for rule, expected in (("health", "expected CATEGORY"), ("health:k", "expected CATEGORY"), (":k=v", "expected CATEGORY"),
                               ("health:=v", "expected CATEGORY"), ("health:k=", "expected CATEGORY"), ("helth:k=v", "unknown restricted api 'helth'"),
                               ("health,:k=v", "unknown restricted api ''")):
            with self.subTest(rule=rule):
                ended = kelp("serve", EXAMPLES, "--http-port", "0", f"--http-restricted-api={rule}")
                self.assertEqual(ended.returncode, 1)
                self.assertIn(expected, ended.stderr)
                self.assertNotIn("digits", ended.stdout)
        ended = kelp("serve", EXAMPLES, "--http-port", "0", "--http-restricted-api=health:a=b", "--http-restricted-api=metadata,health:c=d")
        self.assertIn("restricted api 'health' can not be specified in multiple config groups", ended.stderr)


class Tokens(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, "tokens")
        self.write("# comment\n\nfirst-token\nsecond\n")

    def tearDown(self):
        self.directory.cleanup()

    def write(self, text):
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(self.path + ".new", self.path)

    def test_every_request_needs_a_token(self):
        with Server(EXAMPLES, "--auth-token-file", self.path) as server:
            for requests in (*REQUESTS.values(), [("GET", "/metrics")]):
                for verb, path in requests:
                    with self.subTest(path=path):
                        for given in (None, "Bearer", "Bearer ", "Bearer third", "Bearer first-token2", "Bearer first-toke", "Basic first-token",
                                      "Bearer # comment"):
                            status, headers, body = ask(server, verb, path, **({"Authorization": given} if given is not None else {}))
                            self.assertEqual((status, headers["www-authenticate"]), (401, "Bearer"), given)
                            self.assertTrue(json.loads(body)["error"])
                        for given in ("Bearer first-token", "bearer second", "BEARER  second "):
                            self.assertEqual(ask(server, verb, path, Authorization=given)[0], 200, given)
            self.assertEqual(server.stop(), 0)

    def test_health_may_be_exempt(self):
        with Server(EXAMPLES, "--auth-token-file", self.path, "--auth-exempt-health") as server:
            for verb, path in REQUESTS["health"]:
                self.assertEqual(ask(server, verb, path)[0], 200)
            self.assertEqual(ask(server, "GET", "/v2")[0], 401)

    def test_a_changed_file_is_read_again(self):
        def wait(token, status):
            end = time.monotonic() + support.PATIENCE_S
            while ask(server, "GET", "/v2", Authorization=f"Bearer {token}")[0] != status:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)

        with Server(EXAMPLES, "--auth-token-file", self.path) as server:
            self.write("third\n")
            wait("third", 200)
            wait("second", 401)
            self.write("# no token\n")
            wait("third", 200)
            os.remove(self.path)
            time.sleep(1.2)
            for _ in range(3):
                wait("third", 200)  # the previous tokens remain
            self.assertEqual(server.log().count("the previous tokens remain"), 1, server.log())
            self.write("fourth\n")
            wait("fourth", 200)
            wait("third", 401)

    def test_a_file_without_tokens_is_rejected(self):
        self.write("# no token\n")
        for path, expected in ((self.path, "has no token"), ("/no/such/file", "/no/such/file")):
            ended = kelp("serve", EXAMPLES, "--http-port", "0", "--auth-token-file", path)
            self.assertEqual(ended.returncode, 1)
            self.assertIn(expected, ended.stderr)


@unittest.skipUnless(importlib.util.find_spec("grpc"), "no grpcio")
class Grpc(unittest.TestCase):
    def test_the_rules_hold_for_grpc(self):
        import tritonclient.grpc as triton
        with tempfile.NamedTemporaryFile("w", suffix=".tokens") as tokens:
            tokens.write("secret\n")
            tokens.flush()
            with Server(EXAMPLES, "--auth-token-file", tokens.name, "--grpc-restricted-protocol=model-config:admin=yes") as server:
                with triton.InferenceServerClient(server.url) as client:
                    for headers, method, code in (
                            ({}, lambda h: client.get_server_metadata(headers=h), "UNAUTHENTICATED"),
                            ({"authorization": "Bearer no"}, lambda h: client.get_server_metadata(headers=h), "UNAUTHENTICATED"),
                            ({"authorization": "Bearer secret"}, lambda h: client.get_server_metadata(headers=h), None),
                            ({"authorization": "Bearer secret"}, lambda h: client.get_model_config("digits", headers=h), "UNAVAILABLE"),
                            ({"authorization": "Bearer secret", "triton-grpc-protocol-admin": "yes"},
                             lambda h: client.get_model_config("digits", headers=h), None)):
                        with self.subTest(headers=headers):
                            found = None
                            try:
                                method(headers)
                            except triton.InferenceServerException as error:
                                found = error.status()
                                if code == "UNAVAILABLE":
                                    self.assertIn("This protocol is restricted, expecting header 'triton-grpc-protocol-admin'", error.message())
                            self.assertEqual(found, f"StatusCode.{code}" if code else None)


class Cors(unittest.TestCase):
    def test_it_is_off_by_default(self):
        with Server(EXAMPLES) as server:
            _, headers, _ = ask(server, "GET", "/v2", Origin="https://a.example")
            self.assertFalse([name for name in headers if name.startswith("access-control")])
            self.assertEqual(server.call("OPTIONS", "/v2", Origin="https://a.example", Access_Control_Request_Method="GET")[0], 405)

    def test_pages_of_known_origins_may_use_the_server(self):
        with Server(EXAMPLES, "--http-cors-origin", "https://a.example", "--http-cors-origin=https://b.example",
                    "--http-restricted-api=metadata:k=v") as server:
            for origin in ("https://a.example", "https://b.example"):
                for verb, path, expected in (("GET", "/v2/health/live", 200), ("POST", "/v2/models/digits/infer", 200), ("GET", "/v2", 403),
                                             ("GET", "/nothing", 404)):
                    status, headers, _ = ask(server, verb, path, Origin=origin)
                    self.assertEqual((status, headers["access-control-allow-origin"], headers["vary"]), (expected, origin, "Origin"))
                status, headers, body = server.call("OPTIONS", "/v2", Origin=origin, Access_Control_Request_Method="GET",
                                                    Access_Control_Request_Headers="k, content-type")
                self.assertEqual((status, body), (200, b""))
                self.assertEqual(headers["access-control-allow-headers"], "k, content-type")
                self.assertIn("POST", headers["access-control-allow-methods"])
            for origin in ("https://c.example", "https://a.example.evil", "null"):
                status, headers, _ = ask(server, "GET", "/v2/health/live", Origin=origin)
                self.assertEqual((status, headers.get("access-control-allow-origin"), headers["vary"]), (200, None, "Origin"))
                self.assertEqual(server.call("OPTIONS", "/v2", Origin=origin, Access_Control_Request_Method="GET")[0], 405)

    def test_all_origins_may_be_known(self):
        with Server(EXAMPLES, "--http-cors-origin", "*") as server:
            _, headers, _ = ask(server, "GET", "/v2", Origin="https://a.example")
            self.assertEqual((headers["access-control-allow-origin"], headers.get("vary")), ("*", None))


class Forwarded(unittest.TestCase):
    def infer(self, server, **headers):
        """The parameters that the example backend `identity` returns."""
        request = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [1]}], "parameters": {"echo": True}}
        status, _, body = server.call("POST", "/v2/models/identity/infer", request, **headers)
        response = json.loads(body)
        return status, response.get("parameters", response.get("error"))

    def repository(self):
        repository = support.Repository()
        with open(os.path.join(ROOT, "backends", "identity", "config.pbtxt"), encoding="utf-8") as file:
            repository.add("identity", config=file.read())
        return repository

    def test_matching_headers_become_parameters(self):
        with self.repository() as repository, Server(repository.path, "--http-header-forward-pattern", "^x-(user|trace)|custom|priority|triton") as server:
            status, parameters = self.infer(server, X_User="me", x_trace="é".encode().decode("latin-1"), a_CUSTOM_b="1", other="no")
            self.assertEqual(status, 200, parameters)
            found = {name.lower(): value for name, value in parameters.items()}
            self.assertEqual((found["x-user"], found["x-trace"], found["a-custom-b"]), ("me", "é", "1"))
            self.assertNotIn("other", found)
            for name in ("priority", "triton_x"):
                connection = support.http.client.HTTPConnection("127.0.0.1", server.port)
                connection.request("POST", "/v2/models/identity/infer", "{}", {name: "1"})
                response = connection.getresponse()
                self.assertEqual(response.status, 400)
                self.assertEqual(json.loads(response.read())["error"], f"Header '{name}' is reserved for Triton usage and cannot be forwarded.")
                connection.close()
            self.assertEqual(server.stop(), 0)

    def test_no_header_is_forwarded_by_default(self):
        with self.repository() as repository, Server(repository.path) as server:
            self.assertNotIn("x-user", str(self.infer(server, X_User="me")).lower())

    def test_a_malformed_pattern_is_rejected(self):
        ended = kelp("serve", EXAMPLES, "--http-port", "0", "--http-header-forward-pattern", "(")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("header pattern '('", ended.stderr)


if __name__ == "__main__":
    support.main()
