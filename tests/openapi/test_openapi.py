#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI description of the HTTP endpoints: that it has what the server provides, and in the class Schemathesis, if the
package is installed, that the server conforms to it.

    test_openapi.py --kelp PATH [unittest arguments]
"""
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import support  # noqa: E402
from support import ROOT, Server  # noqa: E402

EXAMPLES = os.path.join(ROOT, "examples", "models")
EXPLICIT = ("--model-control-mode", "explicit", "--load-model", "*")
# How long schemathesis may take for each kind of server.
SECONDS = int(os.environ.get("KELP_SCHEMATHESIS_SECONDS", "90"))


def describe(server, port=None, **headers):
    status, answered, body = server.call("GET", "/openapi.json", **headers)
    assert status == 200 and answered["content-type"] == "application/json", (status, answered)
    return json.loads(body)


def operations(description):
    """Returns (METHOD, path) of each operation."""
    return {(method.upper(), path) for path, item in description["paths"].items() for method in item if method in ("get", "post")}


def routes():
    """Returns (METHOD, path) of each row of the route table."""
    with open(os.path.join(ROOT, "src", "frontends", "v2", "routes.c"), encoding="utf-8") as file:
        rows = re.findall(r'\{"(GET|POST)",\s+"([^"]+)"', file.read())
    found = set()
    for method, pattern in rows:
        path = pattern.replace("#", "{version}").replace("/region/*", "/region/{region}").replace("*", "{model}")
        found.add((method, path))
    return found


def references(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


class Description(unittest.TestCase):
    def test_it_has_exactly_the_routes(self):
        with Server(EXAMPLES, *EXPLICIT, "--allow-client-shm=true") as server:
            described = operations(describe(server))
        expected = {(method, path) for method, path in routes() if not path.startswith("/v2/cudasharedmemory/")}
        expected.remove(("POST", "/v2/systemsharedmemory/register"))  # needs a name
        self.assertGreater(len(expected), 35)
        self.assertEqual(described, expected)

    def test_each_described_operation_is_served(self):
        with Server(EXAMPLES, *EXPLICIT) as server:
            for method, path in operations(describe(server)):
                concrete = path.format(model="digits", version=1, region="r")
                if concrete.endswith("/unload"):
                    continue
                with self.subTest(method=method, path=path):
                    status, _, body = server.call(method, concrete, None if method == "GET" else "{}")
                    self.assertNotEqual((status, body), (404, b'{"error":"Not Found"}'))
                    self.assertNotEqual(status, 405)
                    other = "POST" if method == "GET" else "GET"
                    if (other, path) not in operations(describe(server)):
                        status, headers, _ = server.call(other, concrete)
                        self.assertEqual((status, headers["allow"]), (405, "GET, HEAD" if method == "GET" else "POST"))

    def test_what_is_not_provided_is_not_described(self):
        cases = [((), ("POST", "/v2/repository/models/{model}/load"), False),
                 ((), ("POST", "/v2/repository/index"), True),
                 (EXPLICIT, ("POST", "/v2/repository/models/{model}/load"), True),
                 (("--status-page=false",), ("GET", "/"), False),
                 ((), ("GET", "/"), True),
                 (("--allow-client-shm=false",), ("POST", "/v2/systemsharedmemory/unregister"), False),
                 (("--allow-client-shm=false",), ("GET", "/v2/systemsharedmemory/status"), True)]
        for words, operation, expected in cases:
            with self.subTest(words=words, operation=operation), Server(EXAMPLES, *words) as server:
                self.assertEqual(operation in operations(describe(server)), expected)

    def test_it_is_consistent(self):
        with Server(EXAMPLES, *EXPLICIT) as server:
            description = describe(server)
            metadata = json.loads(server.call("GET", "/v2")[2])
        self.assertEqual(description["openapi"], "3.1.0")
        self.assertEqual(description["info"]["version"], metadata["version"])
        identifiers = [item[m]["operationId"] for item in description["paths"].values() for m in item if m in ("get", "post")]
        self.assertEqual(len(identifiers), len(set(identifiers)))
        used = set(references(description))
        for reference in used:
            node = description
            for name in reference[2:].split("/"):
                node = node[name]
        self.assertEqual({r for r in used if r.startswith("#/components/parameters/")},
                         {f"#/components/parameters/{name}" for name in description["components"]["parameters"]})
        for schema in description["components"]["schemas"]:
            self.assertIn(f"#/components/schemas/{schema}", used)
        for path, item in description["paths"].items():
            declared = [p["$ref"].split("/")[-1] for p in item["parameters"]]
            self.assertEqual(declared, re.findall(r"{(\w+)}", path))

    def test_access(self):
        with tempfile.NamedTemporaryFile("w", suffix=".tokens") as tokens:
            tokens.write("secret-token\n")
            tokens.flush()
            with Server(EXAMPLES, "--auth-token-file", tokens.name, "--auth-exempt-health",
                        "--http-restricted-api=model-config,statistics:x-admin=1") as server:
                self.assertEqual(server.call("GET", "/openapi.json")[0], 401)
                description = describe(server, Authorization="Bearer secret-token")
        paths, components = description["paths"], description["components"]
        self.assertEqual(components["securitySchemes"], {"token": {"type": "http", "scheme": "bearer"},
                                                         "restricted-x-admin": {"type": "apiKey", "in": "header", "name": "x-admin"}})
        self.assertEqual(paths["/v2/models/{model}/infer"]["post"]["security"], [{"token": []}])
        self.assertEqual(paths["/v2/models/{model}/config"]["get"]["security"], [{"token": [], "restricted-x-admin": []}])
        self.assertIn("403", paths["/v2/models/{model}/config"]["get"]["responses"])
        self.assertIn("401", paths["/v2/models/{model}/infer"]["post"]["responses"])
        for path in "/v2/health/ready", "/":
            self.assertNotIn("security", paths[path]["get"])
            self.assertNotIn("401", paths[path]["get"]["responses"])
        self.assertNotIn("secret-token", json.dumps(description))

    def test_a_metrics_port_has_none(self):
        with Server(EXAMPLES, "--metrics-port", "0") as server:
            port = int(re.search(r"Metrics +http://127\.0\.0\.1:(\d+)", server.output + server.log()).group(1))
            server.port, http_port = port, server.port
            self.assertEqual(server.call("GET", "/openapi.json")[0], 404)
            server.port = http_port
            self.assertIn(("GET", "/metrics"), operations(describe(server)))


@unittest.skipUnless(importlib.util.find_spec("schemathesis"), "schemathesis is not installed")
class Schemathesis(unittest.TestCase):
    def test_the_description_is_valid(self):
        from openapi_spec_validator import validate
        with Server(EXAMPLES, *EXPLICIT) as server:
            validate(describe(server))

    def run_against(self, server, *words):
        with tempfile.TemporaryDirectory() as directory:
            config = os.path.join(directory, "schemathesis.toml")
            with open(os.path.join(HERE, "schemathesis.toml"), encoding="utf-8") as file:
                text = file.read()
            with open(config, "w", encoding="utf-8") as file:
                file.write(f'hooks = "{os.path.join(HERE, "hooks.py")}"\n{text}')
            ended = subprocess.run([os.path.join(os.path.dirname(sys.executable), "schemathesis"), "--config-file", config, "run",
                                    f"http://{server.url}/openapi.json", "--seed", "1", "--max-time", str(SECONDS), "--warnings", "off",
                                    "--continue-on-failure", *words], cwd=directory, capture_output=True, text=True,
                                   timeout=SECONDS + 300, check=False)
        print(ended.stdout[-2000:])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertIsNone(server.process.poll())

    def test_fixed_models(self):
        with Server(EXAMPLES) as server:
            self.run_against(server)
            self.assertEqual(server.infer("digits", support.read_json("examples", "requests", "digits.json"))[0], 200)
            self.assertEqual(server.stop(), 0)

    def test_explicit_model_control(self):
        with Server(EXAMPLES, *EXPLICIT) as server:
            self.run_against(server)
            self.assertEqual(server.stop(), 0)

    def test_with_access_rules(self):
        with tempfile.NamedTemporaryFile("w", suffix=".tokens") as tokens:
            tokens.write("secret-token\n")
            tokens.flush()
            with Server(EXAMPLES, "--auth-token-file", tokens.name, "--http-restricted-api=model-config,statistics:x-admin=1") as server:
                self.run_against(server, "-H", "Authorization: Bearer secret-token", "-H", "x-admin: 1", "--phases", "coverage")


if __name__ == "__main__":
    support.main()
