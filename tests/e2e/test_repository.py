#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Errors of a model are reported clearly, and the other models are served.

    test_repository.py --kelp PATH [unittest arguments]
"""
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import support
from support import MODELS, ROOT, Repository, Server, kelp, read_json

ADDSUB_CONFIG = os.path.join(ROOT, "examples", "models", "addsub", "config.pbtxt")


def broken_repository():
    repository = Repository()
    repository.example("digits")
    repository.example("addsub")
    repository.add("uncovered", os.path.join(MODELS, "uncovered_op.onnx"))
    repository.add("truncated", os.path.join(MODELS, "truncated.onnx"))
    repository.add("badconfig", os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx"),
                   'max_batch_size: 8\ninput [ { name: "image" data_type: TYPE_FP99 dims: [ 1, 8, 8 ] } ]\n')
    with open(ADDSUB_CONFIG, encoding="utf-8") as file:
        config = file.read().replace('"addsub"', '"nobackend"', 1)
    repository.add("nobackend", config=config.replace('backend: "addsub"', 'backend: "not_there"'))
    return repository


class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = broken_repository()
        cls.server = Server("--model-repository", cls.repository.path, "--exit-on-error=false",
                            "--strict-readiness=false")
        status, _, body = cls.server.call("POST", "/v2/repository/index", {})
        if status != 200:
            raise AssertionError(body)
        cls.index = {model["name"]: model for model in support.json.loads(body)}

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        cls.server.__exit__()
        cls.repository.__exit__()
        if code:
            raise AssertionError(f"kelp serve ended with {code}")

    def reason(self, model, *words):
        self.assertEqual(self.index[model]["state"], "UNAVAILABLE", self.index[model])
        for word in words:
            self.assertIn(word, self.index[model]["reason"])
            self.assertIn(word, self.server.log())
        status, response = self.server.infer(model, read_json("examples", "requests", "digits.json"))
        self.assertIn(status, (400, 404, 503), response)
        self.assertIn(model, response["error"])

    def test_every_uncovered_operator_is_listed(self):
        with open(os.path.join(MODELS, "uncovered_op.tsv"), encoding="utf-8") as file:
            rows = [line.split("\t") for line in file if line.strip() and not line.startswith("#")]
        self.assertTrue(rows)
        for row in rows:
            self.reason("uncovered", row[1])

    def test_a_truncated_model_is_reported(self):
        self.reason("truncated", "model.onnx")

    def test_an_invalid_configuration_is_reported_with_its_position(self):
        self.reason("badconfig", "config.pbtxt:2:", "TYPE_FP99")

    def test_a_missing_backend_is_reported(self):
        self.reason("nobackend", "not_there")

    def test_each_failure_is_reported_once(self):
        """The log has the reason; the table only has the state."""
        reported = self.server.log() + self.server.output
        for reason in ("expected one of TYPE_INVALID", "expected an ONNX ModelProto", "not_there/libtriton_not_there.so"):
            self.assertEqual(reported.count(reason), 1, reported)
        for model in ("badconfig", "nobackend", "truncated", "uncovered"):
            self.assertRegex(self.server.output, rf"\| {model} +\| [-1] +\| UNAVAILABLE +\|")

    def test_the_table_has_the_reasons_if_the_log_does_not_and_fits_the_terminal(self):
        for width in (60, 100):
            with self.subTest(width=width), Server("--model-repository", self.repository.path, "--exit-on-error=false",
                                                   "--log-error=false", environment={"COLUMNS": str(width)}) as server:
                table = [line for line in server.output.splitlines() if line.startswith(("|", "+"))]
                self.assertEqual({len(line) for line in table}, {width}, table)
                self.assertIn("…", "".join(table))

    def test_other_models_are_served(self):
        for model in ("digits", "addsub"):
            self.assertEqual(self.index[model]["state"], "READY")
            status, response = self.server.infer(model, read_json("examples", "requests", f"{model}.json"))
            self.assertEqual(status, 200, response)


class Starting(unittest.TestCase):
    def test_exit_on_error_is_the_default(self):
        with Repository() as repository:
            repository.add("truncated", os.path.join(MODELS, "truncated.onnx"))
            ended = kelp("serve", "--model-repository", repository.path, "--http-port", "0")
            self.assertEqual(ended.returncode, 1, ended.stderr)
            self.assertEqual(ended.stderr.count("truncated.onnx") + ended.stderr.count("ModelProto"), 1, ended.stderr)
            self.assertTrue(ended.stderr.endswith("kelp: cannot start the server: not all models are loaded\n"), ended.stderr)
            ended = kelp("serve", "--model-repository", repository.path, "--http-port", "0", "--log-error=false")
            self.assertEqual(ended.stderr.count("ModelProto"), 1, ended.stderr)

    def test_a_repository_with_another_layout_is_reported(self):
        """The server starts, and the log tells the expected layout and what was found."""
        models = os.path.join(ROOT, "examples", "models")
        with tempfile.TemporaryDirectory() as directory:
            flat, mixed = (os.path.join(directory, name) for name in ("flat", "mixed"))
            os.makedirs(flat)
            shutil.copytree(os.path.join(models, "digits"), os.path.join(mixed, "digits"))
            for path in (flat, mixed):
                shutil.copy(os.path.join(models, "digits", "1", "model.onnx"), os.path.join(path, "letters.onnx"))
            with open(os.path.join(flat, ".hidden"), "w"):
                pass
            empty = os.path.join(directory, "empty")
            os.makedirs(empty)
            for path, expected in (
                    (flat, f"model repository '{flat}' has no models: expected {flat}/MODEL/VERSION/model.onnx, such as "
                           f"{flat}/letters/1/model.onnx, found 'letters.onnx'"),
                    (empty, f"such as {empty}/digits/1/model.onnx, found an empty directory"),
                    (mixed, f"'letters.onnx' is not in the directory of a model and is not served: expected {mixed}/letters/1/model.onnx"),
                    (os.path.join(mixed, "digits"), f"'{mixed}/digits' has the layout of a model, with versions: expected the directory that")):
                with self.subTest(path=path), Server("--model-repository", path, "--exit-on-error=false") as server:
                    self.assertIn(expected, server.log())
            with Server("--model-repository", models) as server:
                self.assertNotIn("model repository", server.log())

    def test_a_missing_repository_is_reported(self):
        ended = kelp("serve", "--model-repository", "/no/such/directory", "--http-port", "0")
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("/no/such/directory", ended.stderr)

    def test_a_port_in_use_is_reported(self):
        models = os.path.join(ROOT, "examples", "models")
        with Server("--model-repository", models) as first:
            ended = kelp("serve", "--model-repository", models, "--http-address", "127.0.0.1", "--http-port", first.port)
            self.assertEqual(ended.returncode, 1, ended.stderr)
            self.assertIn(str(first.port), ended.stderr)
            self.assertNotIn("digits", ended.stdout + ended.stderr)  # before models load
            self.assertEqual(first.stop(), 0)

    def test_a_directory_is_a_repository(self):
        with Server(os.path.join(ROOT, "examples", "models")) as server:
            self.assertEqual(server.call("GET", "/v2/models/digits/ready")[0], 200)
            self.assertEqual(server.stop(), 0)

    def test_single_files_are_served(self):
        digits = os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx")
        with tempfile.TemporaryDirectory() as directory:
            copy = os.path.join(directory, 'o"ne.onnx')
            shutil.copy(digits, copy)
            with Server(digits, copy) as server:
                for name in ("digits", 'o"ne'):  # the layout of a repository, and any other directory
                    status, response = server.infer(name.replace('"', "%22"), read_json("examples", "requests", "digits.json"))
                    self.assertEqual(status, 200, response)
                self.assertEqual(server.stop(), 0)
            again = shutil.copytree(directory, os.path.join(directory, "again"))
            for words, expected in (((os.path.join(directory, "no.onnx"),), "no.onnx': No such file"),
                                    ((__file__,), "expected a directory, or a file NAME.onnx or NAME.plan"),
                                    ((copy, os.path.join(again, 'o"ne.onnx')), "two models have the name"),
                                    ((), "no model repository")):
                with self.subTest(words=words):
                    ended = kelp("serve", "--http-port", "0", *words)
                    self.assertIn(ended.returncode, (1, 2))
                    self.assertIn(expected, ended.stderr)

    def test_only_this_machine_may_connect_by_default(self):
        with tempfile.TemporaryDirectory() as directory, subprocess.Popen(
                [support.KELP, "serve", directory, "--http-port", "0"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as server:
            for line in server.stdout:
                if line.startswith("HTTP"):
                    break
            self.assertRegex(line, r"^HTTP  http://127\.0\.0\.1:\d+$")
            server.send_signal(signal.SIGTERM)
            server.stdout.read()

    def test_the_socket_of_a_killed_server_is_replaced(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "kelp.sock")
            command = [support.KELP, "serve", "--model-repository", directory, "--http-address", f"unix:{path}"]
            for end in (signal.SIGKILL, signal.SIGTERM):
                with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as server:
                    for line in server.stdout:
                        if line.startswith("HTTP"):
                            break
                    else:
                        self.fail("the server did not start")
                    self.assertIn(path, kelp(*command[1:]).stderr)  # the socket is in use
                    server.send_signal(end)
                    server.stdout.read()
            self.assertFalse(os.path.exists(path))

    def test_explicit_control_loads_only_the_named_models(self):
        with Server("--model-repository", os.path.join(ROOT, "examples", "models"), "--model-control-mode", "explicit",
                    "--load-model", "digits") as server:
            self.assertEqual(server.call("GET", "/v2/models/digits/ready")[0], 200)
            self.assertNotEqual(server.call("GET", "/v2/models/addsub/ready")[0], 200)
            self.assertEqual(server.call("POST", "/v2/repository/models/addsub/load", {})[0], 200)
            self.assertEqual(server.call("GET", "/v2/models/addsub/ready")[0], 200)
            self.assertEqual(server.call("POST", "/v2/repository/models/addsub/unload", {})[0], 200)
            self.assertEqual(server.stop(), 0, server.log())


class Uploads(unittest.TestCase):
    """Models and configurations in the request that loads a model."""

    def load(self, server, parameters):
        status, _, body = server.call("POST", "/v2/repository/models/digits/load", {"parameters": parameters})
        return status, json.loads(body or b"{}").get("error", "")

    def test_base64_may_have_lines(self):
        with open(os.path.join(ROOT, "examples", "models", "digits", "1", "model.onnx"), "rb") as file:
            text = base64.encodebytes(file.read()).decode()
        self.assertTrue(text.endswith("\n"))
        with Repository() as repository, Server("--model-repository", repository.path, "--model-control-mode", "explicit") as server:
            for end in ("\n", "\r\n"):
                status, error = self.load(server, {"config": '{"backend": "onnxruntime"}', "file:1/model.onnx": text.replace("\n", end)})
                self.assertEqual((status, error), (200, ""))
            self.assertEqual(server.call("GET", "/v2/models/digits/ready")[0], 200)
            self.assertEqual(server.stop(), 0)

    def test_an_invalid_configuration_is_reported_and_logged(self):
        with Server("--model-repository", os.path.join(ROOT, "examples", "models"), "--model-control-mode", "explicit") as server:
            status, error = self.load(server, {"config": '{"max_batch_size": }'})
            self.assertGreaterEqual(status, 400)
            for text in (error, server.log()):
                self.assertIn("Invalid config override: override of the configuration of 'digits':1:20:", text)
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    support.main()
