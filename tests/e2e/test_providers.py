# SPDX-License-Identifier: Apache-2.0
"""Tests providers that run a part of a model, from the command line: a worker in another process, plugins, and ONNX Runtime.

    test_providers.py --kelp PATH [unittest arguments]
"""
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import numpy

import support
from support import kelp

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "examples/models/digits/1/model.onnx")
IMAGE = os.path.join(ROOT, "examples/requests/digits.npy")


def outputs(*words, env=None):
    ended = kelp("run", MODEL, "--input", f"image=@{IMAGE}", "--json", *words, env=env)
    assert ended.returncode == 0, ended.stderr
    return {o["name"]: numpy.array(o["data"], dtype=numpy.float64) for o in json.loads(ended.stdout)["outputs"]}


def parts(*words, env=None):
    ended = kelp("inspect", MODEL, "--json", *words, env=env)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)["parts"]


def same(found):
    for name, expected in outputs().items():
        numpy.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-6)


def ask(server, model, image):
    return server.infer(model, {"inputs": [{"name": "image", "shape": list(image.shape), "datatype": "FP32", "data": image.reshape(-1).tolist()}],
                                "outputs": [{"name": "probabilities"}]})


def served(server, model, image):
    status, response = ask(server, model, image)
    assert status == 200, response
    return numpy.array(response["outputs"][0]["data"])


class Worker:
    """A process `kelp worker`; .address is what it prints."""

    def __init__(self, *words):
        self.process = subprocess.Popen([support.KELP, "worker", "--threads", "1", *words], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.lines = []
        for line in self.process.stderr:
            self.lines.append(line)
            if "worker listens on " in line:
                break
        self.address = self.lines[-1].split()[-1] if self.lines else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)


class Providers(unittest.TestCase):
    def test_a_worker_runs_the_model_over_tcp(self):
        image = numpy.load(IMAGE)
        with Worker("--listen", ":0") as worker, support.Repository() as repository:
            self.assertRegex(worker.address, r"^127\.0\.0\.1:[1-9][0-9]*$")
            providers = f"remote:{worker.address},cpu"
            [part] = parts("--providers", providers)
            self.assertEqual(part["provider"], f"remote:{worker.address}")
            self.assertGreater(part["nodes"], 0)
            same(outputs("--providers", providers))
            repository.add("there", MODEL, f'backend: "kelp" parameters {{ key: "providers" value {{ string_value: "{providers}" }} }}')
            with support.Server("--model-repository", repository.path) as server:
                expected = served(server, "there", image)
                worker.process.kill()
                worker.process.wait(60)
                status, response = ask(server, "there", image)
                self.assertEqual(status, 503, response)
                self.assertIn(f"worker at '{worker.address}'", str(response))
                with Worker("--listen", worker.address) as again:
                    self.assertEqual(again.address, worker.address)
                    numpy.testing.assert_allclose(served(server, "there", image), expected, rtol=1e-5, atol=1e-7)

    def test_a_worker_expects_its_token(self):
        with tempfile.TemporaryDirectory() as directory:
            paths = [os.path.join(directory, name) for name in ("right", "wrong")]
            for path in paths:
                with open(path, "w") as file:
                    file.write(f"{path}\n")
            with Worker("--listen", "0.0.0.0:0", "--token-file", paths[0]) as worker:
                self.assertEqual(len(worker.lines), 1, worker.lines)
                providers = f"remote:127.0.0.1:{worker.address.split(':')[1]},cpu"
                same(outputs("--providers", providers, env=dict(os.environ, KELP_REMOTE_TOKEN_FILE=paths[0])))
                for env, message in ((dict(os.environ, KELP_REMOTE_TOKEN_FILE=paths[1]), "the worker expects another token"),
                                     (dict(os.environ), "the worker expects a token")):
                    ended = kelp("run", MODEL, "--random", "--providers", providers, env=env)
                    self.assertEqual(ended.returncode, 1)
                    self.assertIn(message, ended.stderr)
            with Worker("--listen", "0.0.0.0:0") as worker:
                self.assertIn("without a token: any machine that can connect can run models", worker.lines[0])

    def test_addresses_of_workers_are_checked(self):
        for words, code, message in ((("--listen", "localhost"), 1, "'localhost' is not an address of a worker: expected HOST:PORT"),
                                     (("--listen", "./here"), 2, "'--socket' takes a path"),
                                     (("--listen", ":0", "--socket", "here"), 2, "expected one of '--socket' and '--listen'"),
                                     ((), 2, "expected one of '--socket' and '--listen'")):
            with self.subTest(words=words):
                ended = kelp("worker", *words)
                self.assertEqual(ended.returncode, code, ended.stderr)
                self.assertIn(message, ended.stderr)
        ended = kelp("run", MODEL, "--random", "--providers", "remote:localhost,cpu")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("'localhost' is not an address of a worker", ended.stderr)

    def test_a_worker_runs_the_model(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "worker.sock")
            worker = subprocess.Popen([support.KELP, "worker", "--socket", path, "--threads", "1"], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            try:
                while not os.path.exists(path):
                    self.assertIsNone(worker.poll())
                    time.sleep(0.01)
                providers = f"remote:{path},cpu"
                [part] = parts("--providers", providers)
                self.assertEqual((part["provider"], part["inputs"]), (f"remote:{path}", ["image"]))
                same(outputs("--providers", providers))
                with support.Repository() as repository:
                    repository.add("there", MODEL, f'backend: "kelp" parameters {{ key: "providers" value {{ string_value: "{providers}" }} }}')
                    repository.add("here", MODEL)
                    with support.Server("--model-repository", repository.path) as server:
                        image = numpy.load(IMAGE)
                        values = [served(server, model, image) for model in ("there", "here")]
                        numpy.testing.assert_allclose(values[0], values[1], rtol=1e-5, atol=1e-7)
                        worker.send_signal(signal.SIGTERM)  # shows that the worker ran the model
                        worker.wait(60)
                        status, response = ask(server, "there", image)
                        self.assertNotEqual(status, 200)
                        self.assertIn(path, str(response))
                        numpy.testing.assert_array_equal(served(server, "here", image), values[1])
            finally:
                worker.send_signal(signal.SIGTERM)
                worker.communicate(timeout=60)
            self.assertEqual(worker.returncode, 0)
            self.assertFalse(os.path.exists(path))
            ended = kelp("run", MODEL, "--random", "--providers", providers)
            self.assertEqual(ended.returncode, 1)
            self.assertIn("cannot connect to a worker at", ended.stderr)

    def test_a_plugin_is_served(self):
        from onnx import TensorProto, helper, save
        plugin = os.environ["KELP_TEST_PLUGIN"]
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
        graph = helper.make_graph([helper.make_node("Triple", ["x"], ["y"], domain="com.example")], "tripled", [x], [y])
        with tempfile.TemporaryDirectory() as directory, support.Repository() as repository:
            path = os.path.join(directory, "model.onnx")
            save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("com.example", 1)]), path)
            measured = kelp("bench", path, "--plugin", plugin, "--threads", "1", "--seconds", "0")
            self.assertEqual(measured.returncode, 0, measured.stderr)
            repository.add("shared", path)
            newer = os.path.join(directory, "newer.onnx")
            graph = helper.make_graph([helper.make_node("Thrice", ["x"], ["y"])], "thrice", [x], [y])
            save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 99)]), newer)
            repository.add("newer", newer)
            plan = os.path.join(directory, "newer.plan")
            for words in (("build", newer, "-o", plan), ("run", plan, "--input", "x=1,-2,4", "--json")):
                ended = kelp(*words, "--plugin", plugin)
                self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(json.loads(ended.stdout)["outputs"][0]["data"], [3, -6, 12])
            ended = kelp("build", newer, "-o", plan)
            self.assertEqual(ended.returncode, 1)
            self.assertIn("version 99: the newest supported version is", ended.stderr)
            repository.add("apart", path, 'backend: "kelp" parameters { key: "intra_op_threads" value { string_value: "1" } }')
            with support.Server("--model-repository", repository.path, "--plugin", plugin) as server:
                for model in ("shared", "apart", "newer"):
                    status, response = server.infer(model, {"inputs": [{"name": "x", "shape": [3], "datatype": "FP32", "data": [1, -2, 4]}]})
                    self.assertEqual(status, 200, response)
                    self.assertEqual(response["outputs"][0]["data"], [3, -6, 12])
            for words, message in (((), "newest supported version"), (("--plugin", "/nowhere/plugin.so"), "/nowhere/plugin.so")):
                with support.Server("--model-repository", repository.path, *words, ready=False) as server:
                    self.assertNotEqual(server.process.wait(support.PATIENCE_S), 0)
                    self.assertIn(message, server.log())

    def test_a_model_loads_its_operator_libraries(self):
        """model_operations.op_library_filename names plug-in libraries; parameters of Triton's onnxruntime backend are understood."""
        from onnx import TensorProto, helper, save
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
        graph = helper.make_graph([helper.make_node("Triple", ["x"], ["y"], domain="com.example")], "tripled", [x], [y])
        with tempfile.TemporaryDirectory() as directory, support.Repository() as repository:
            path = os.path.join(directory, "model.onnx")
            save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("com.example", 1)]), path)
            parameters = "".join(f'parameters {{ key: "{key}" value {{ string_value: "1" }} }}\n'
                                 for key in ("intra_op_thread_count", "inter_op_thread_count"))
            absolute = os.path.abspath(os.environ["KELP_TEST_PLUGIN"])
            repository.add("absolute", path, f'backend: "kelp" model_operations {{ op_library_filename: "{absolute}" }}\n{parameters}')
            repository.add("relative", path, 'backend: "kelp" model_operations { op_library_filename: "mine.so" }')
            shutil.copy(absolute, os.path.join(repository.path, "relative", "mine.so"))
            with support.Server("--model-repository", repository.path) as server:
                for model in ("absolute", "relative"):
                    status, response = server.infer(model, {"inputs": [{"name": "x", "shape": [3], "datatype": "FP32", "data": [1, -2, 4]}]})
                    self.assertEqual(status, 200, response)
                    self.assertEqual(response["outputs"][0]["data"], [3, -6, 12])
                self.assertIn("model 'absolute': parameter 'inter_op_thread_count' has no effect", server.log())
                self.assertNotIn("'intra_op_thread_count'", server.log())
            repository.add("missing", path, 'backend: "kelp" model_operations { op_library_filename: "nowhere.so" }')
            repository.add("wrong", path, 'backend: "kelp" parameters { key: "intra_op_thread_count" value { string_value: "many" } }')
            with support.Server("--model-repository", repository.path, ready=False) as server:
                self.assertNotEqual(server.process.wait(support.PATIENCE_S), 0)
                self.assertIn("model 'missing': cannot load op_library_filename 'nowhere.so'", server.log())
                self.assertIn("parameter 'intra_op_thread_count' must be a number from 0 to 4096, found 'many'", server.log())

    def test_an_invalid_plugin_is_rejected_with_a_message(self):
        plugin = os.environ["KELP_TEST_PLUGIN"]
        library = os.path.join(os.path.dirname(plugin), "../../libkelp.so")  # has no entry point
        with tempfile.TemporaryDirectory() as directory:
            with open(plugin, "rb") as file:
                foreign = bytearray(file.read())
            foreign[18] = 0xB7 if foreign[18] == 0x3E else 0x3E  # e_machine: arm64 and x86-64
            with open(os.path.join(directory, "foreign.so"), "wb") as file:
                file.write(foreign)
            with open(os.path.join(directory, "text.so"), "w") as file:
                file.write("no library")
            shutil.copy(plugin, os.path.join(directory, "here.so"))
            for name, words in (("missing.so", "no such file"), ("text.so", "it is not a shared library (ELF)"),
                                ("foreign.so", "this process runs on"), (library, "it does not export 'kelp_plugin_query'")):
                with self.subTest(name):
                    ended = kelp("run", MODEL, "--random", "--plugin", name, cwd=directory)
                    self.assertEqual(ended.returncode, 1)
                    self.assertIn(f"cannot load plug-in library '{name}': ", ended.stderr)
                    self.assertIn(words, ended.stderr)
            ended = kelp("run", MODEL, "--random", "--plugin", "here.so", cwd=directory)
            self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_a_missing_library_is_an_error(self):
        env = dict(os.environ, KELP_ONNXRUNTIME_LIBRARY="/nowhere/libonnxruntime.so")
        ended = kelp("run", MODEL, "--random", "--providers", "onnxruntime,cpu", env=env)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("/nowhere/libonnxruntime.so", ended.stderr)

    def test_an_unknown_provider_lists_the_known_ones(self):
        ended = kelp("run", MODEL, "--random", "--providers", "nobody,cpu")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("no provider 'nobody' is registered", ended.stderr)
        self.assertIn("cpu, null, onnxruntime", ended.stderr)
        self.assertIn("no provider 'nobody' is registered", kelp("bench", MODEL, "--seconds", "0", "--providers", "nobody,cpu").stderr)


class OnnxRuntime(unittest.TestCase):
    def test_onnxruntime_runs_the_model(self):
        import onnxruntime
        [library, *_] = glob.glob(os.path.join(os.path.dirname(onnxruntime.__file__), "capi", "libonnxruntime.so*"))
        env = dict(os.environ, KELP_ONNXRUNTIME_LIBRARY=library)
        [part] = parts("--providers", "onnxruntime,cpu", env=env)
        self.assertEqual(part["provider"], "onnxruntime")
        same(outputs("--providers", "onnxruntime,cpu", env=env))


if __name__ == "__main__":
    support.main()
