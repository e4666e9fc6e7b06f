#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests kernels of a shared library: served as models, and as operators of models that the program runs and serves.

    test_kernels.py --kelp PATH --libraries DIRECTORY [unittest arguments]
"""
import argparse
import contextlib
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np
import onnx
import tritonclient.http as triton
from onnx import helper

import support
from support import MODELS, Repository, Server, kelp

CONFIG = """
backend: "kelp"
parameters { key: "kernel_library" value { string_value: "toolbox" } }
parameters { key: "kernel" value { string_value: "%s" } }
"""
RADIUS = 'parameters { key: "radius" value { string_value: "%s" } }\n'


class Kernels(unittest.TestCase):
    def serve(self, *words, **models):
        repository = Repository()
        self.addCleanup(repository.__exit__)
        for name, config in models.items():
            repository.add(name, config=config)
        server = Server("--model-repository", repository.path, *words)
        self.addCleanup(server.__exit__)
        return server

    def test_submissions_of_an_asynchronous_kernel_are_measured(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "sum.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{os.path.join(LIBRARIES, 'libtoolbox.so')}\nlater_sum\n")
            ended = kelp("bench", path, "--models", "kernels", "--in-flight", "8", "--threads", "1", "--seconds", "0",
                                 "--shape", "values=1000", "--json")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertGreaterEqual(json.loads(ended.stdout)["results"][0]["runs"], 10)

    def test_kernels_of_a_library_are_served(self):
        server = self.serve(histogram=CONFIG % "histogram" + "input [ { name: \"image\" data_type: TYPE_UINT8 dims: [ -1, -1 ] } ]\n",
                            blur=CONFIG % "box_blur" + RADIUS % 1)
        client = triton.InferenceServerClient(server.url)
        image = np.random.default_rng(1).integers(0, 256, (30, 40), np.uint8)
        given = triton.InferInput("image", image.shape, "UINT8")
        given.set_data_from_numpy(image)
        bins = client.infer("histogram", [given]).as_numpy("bins")
        np.testing.assert_array_equal(bins, np.bincount(image.ravel(), minlength=256))
        picture = np.arange(12, dtype=np.float32).reshape(3, 4)
        given = triton.InferInput("x", picture.shape, "FP32")
        given.set_data_from_numpy(picture)
        found = client.infer("blur", [given]).as_numpy("y")
        expected = [[picture[max(r - 1, 0):r + 2, max(c - 1, 0):c + 2].mean() for c in range(4)] for r in range(3)]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        client.close()
        self.assertEqual(server.stop(), 0, server.log())

    def test_errors_of_a_configuration_are_reported(self):
        server = self.serve("--exit-on-error=false", "--strict-readiness=false", absent=CONFIG % "nothing",
                            scalar=CONFIG % "box_blur", half='backend: "kelp"\nparameters { key: "kernel" value { string_value: "add" } }\n',
                            number=CONFIG % "box_blur" + RADIUS % "wide")
        index = {model["name"]: model["reason"] for model in json.loads(server.call("POST", "/v2/repository/index", {})[2])}
        for name, word in (("absent", "has no kernel 'nothing'"), ("scalar", "parameter 'radius' (int32) is missing"),
                           ("half", "'kernel_library' is missing"), ("number", "parameter 'radius' is 'wide'")):
            self.assertIn(word, index[name])
        self.assertEqual(server.stop(), 0, server.log())

    def test_kelp_kernels_lists_the_kernels_of_a_library(self):
        ended = kelp("kernels", "--library", "toolbox")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("out y: float32[h, w], x: float32[h, w], radius: int32", ended.stdout)
        every = json.loads(kelp("kernels", "--json").stdout)
        self.assertTrue({"toolbox", "custom_add"} <= {library["name"] for library in every})
        ended = kelp("kernels", "--library", "absent")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("libabsent_backend.so: no such file", ended.stderr)


OPERATORS = os.path.join(MODELS, "toolbox_ops.onnx")  # y = x + toolbox::box_blur(x, radius=1)
PICTURE = np.arange(12, dtype=np.float32).reshape(3, 4)
BLURRED = np.array([[PICTURE[max(r - 1, 0):r + 2, max(c - 1, 0):c + 2].mean() for c in range(4)] for r in range(3)])


def environment(**more):
    """This process's environment with no paths of kernel libraries but these."""
    kept = {key: value for key, value in os.environ.items() if not key.endswith("_BACKEND_PATH")}
    return {**kept, **more}


class Operators(unittest.TestCase):
    """Nodes whose domain is a kernel library: loaded with --plugin, and found in the directories of the environment."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.input = os.path.join(self.directory.name, "x.npy")
        np.save(self.input, PICTURE)
        self.library = os.path.join(LIBRARIES, "libtoolbox.so")

    def program(self, *words, rc=0, **variables):
        ended = kelp(*words, env=environment(**variables))
        self.assertEqual(ended.returncode, rc, ended.stderr)
        return ended.stderr if rc else ended.stdout

    def run_model(self, model, *words, **variables):
        shown = json.loads(self.program("run", model, "--input", f"x=@{self.input}", "--json", *words, **variables))
        return np.array(shown["outputs"][0]["data"]).reshape(3, 4)

    def model(self, *nodes, domains=("toolbox",), functions=()):
        names = [helper.make_tensor_value_info(n, 1, ["h", "w"]) for n in "xy"]
        graph = helper.make_graph(list(nodes), "kernels", names[:1], names[1:])
        made = helper.make_model(graph, ir_version=8, functions=list(functions),
                                 opset_imports=[helper.make_opsetid("", 17), *(helper.make_opsetid(d, 1) for d in domains)])
        path = os.path.join(self.directory.name, "made.onnx")
        onnx.save(made, path)
        return path

    def test_a_plugin_or_the_environment_provides_the_operators(self):
        self.assertIn("toolbox::box_blur", self.program("run", OPERATORS, "--random", rc=1))
        for words, variables in ((["--plugin", self.library], {}), ([], {"KELP_BACKEND_PATH": LIBRARIES}),
                                 ([], {"TRITON_BACKEND_PATH": "/nowhere:" + self.library}),
                                 (["--providers", "toolbox,cpu"], {"KELP_BACKEND_PATH": LIBRARIES}),
                                 (["--plugin", self.library, "--providers", "cpu,toolbox"], {})):
            np.testing.assert_allclose(self.run_model(OPERATORS, *words, **variables), BLURRED + PICTURE, rtol=1e-6)
            shown = json.loads(self.program("inspect", OPERATORS, "--json", *words, **variables))
            self.assertTrue(shown["ready"])
            self.assertEqual({o["covered_by"] for o in shown["operators"]}, {"toolbox"})
        self.assertIn("median", self.program("bench", OPERATORS, "--shape", "x=3x4", "--seconds", "0.1", "--plugin", self.library))

    def test_a_plan_file_needs_the_library(self):
        plan = os.path.join(self.directory.name, "blur.plan")
        self.program("build", OPERATORS, "-o", plan, "--plugin", self.library)
        self.program("build", OPERATORS, "-o", plan, KELP_BACKEND_PATH=LIBRARIES)
        for words, variables in ((["--plugin", self.library], {}), ([], {"KELP_BACKEND_PATH": LIBRARIES})):
            np.testing.assert_allclose(self.run_model(plan, *words, **variables), BLURRED + PICTURE, rtol=1e-6)
        said = self.program("run", plan, "--random", rc=1, KELP_BACKEND_PATH=self.directory.name)
        self.assertIn("no registered provider covers operator 'toolbox::box_blur'", said)
        self.assertIn(f"{self.directory.name}/libtoolbox.so: no such file", said)
        self.program("build", OPERATORS, "-o", plan, rc=1)

    def test_nested_blocks_and_functions_use_kernels(self):
        add = helper.make_node("add", ["a", "b"], ["c"], domain="toolbox")
        double = helper.make_function("mine", "Double", ["a"], ["c"],
                                      [helper.make_node("add", ["a", "a"], ["c"], domain="toolbox")],
                                      [helper.make_opsetid("toolbox", 1), helper.make_opsetid("", 17)])
        path = self.model(helper.make_node("Double", ["x"], ["y"], domain="mine"), domains=("mine", "toolbox"), functions=[double])
        np.testing.assert_allclose(self.run_model(path, KELP_BACKEND_PATH=LIBRARIES), 2 * PICTURE)
        branch = helper.make_graph([add], "sum", [], [helper.make_tensor_value_info("c", 1, ["h", "w"])])
        path = self.model(helper.make_node("Constant", [], ["t"], value=helper.make_tensor("t", 9, [], [True])),
                          helper.make_node("Identity", ["x"], ["a"]), helper.make_node("Identity", ["x"], ["b"]),
                          helper.make_node("If", ["t"], ["y"], then_branch=branch, else_branch=branch))
        np.testing.assert_allclose(self.run_model(path, KELP_BACKEND_PATH=LIBRARIES), 2 * PICTURE)

    def test_why_a_library_is_not_used_is_part_of_the_message(self):
        said = self.program("inspect", OPERATORS, rc=1, KELP_BACKEND_PATH="/nowhere", TRITON_BACKEND_PATH=self.directory.name)
        self.assertIn("toolbox::add version 1, node 'y', in graph 'toolbox'\nthere is no kernel library 'toolbox'", said)
        for name in (f"/nowhere/libtoolbox.so: no such file", f"{self.directory.name}/toolbox/libtoolbox.so: no such file"):
            self.assertIn(name, said)
        mistake = self.model(helper.make_node("nothing", ["x"], ["y"], domain="mistake_6"), domains=("mistake_6",))
        said = self.program("run", mistake, "--random", rc=1, KELP_BACKEND_PATH=LIBRARIES)
        self.assertIn("mistake_6.so: its name is 'mistake'", said)
        self.assertIn("the device is on fire", self.program("run", mistake, "--random", "--plugin",
                                                            os.path.join(LIBRARIES, "libmistake_6.so"), rc=1))
        untyped = self.model(helper.make_node("add", ["x", "x"], ["y"], domain="custom_add"), domains=("custom_add",))
        for words, variables in ((["--plugin", os.path.join(LIBRARIES, "libcustom_add_backend.so")], {}),
                                 ([], {"KELP_BACKEND_PATH": LIBRARIES})):
            self.assertIn("no kernel of library 'custom_add' can be an operator",
                          self.program("run", untyped, "--random", *words, rc=1, **variables))
        said = self.program("run", OPERATORS, "--random", "--providers", "cpu", rc=1, KELP_BACKEND_PATH=LIBRARIES)
        self.assertIn("no chosen provider covers 2 of its nodes", said)
        said = self.program("run", OPERATORS, "--random", "--providers", "cpu,absent", rc=1, KELP_BACKEND_PATH=LIBRARIES)
        self.assertIn("no provider 'absent' is registered", said)
        self.assertIn("libabsent.so: no such file", said)

    def test_a_model_chooses_no_file_outside_of_the_path(self):
        """A domain with '/' or '..' is not a part of a file name, and without a variable nothing is searched."""
        inner = os.path.join(self.directory.name, "inner")
        os.mkdir(inner)
        os.symlink(self.library, os.path.join(self.directory.name, "libtoolbox.so"))
        for domain in ("../toolbox", "..", self.directory.name + "/libtoolbox.so", "./libtoolbox.so", "a" * 4000):
            path = self.model(helper.make_node("add", ["x", "x"], ["y"], domain=domain), domains=(domain,))
            said = self.program("run", path, "--random", rc=1, KELP_BACKEND_PATH=inner)
            self.assertIn("no registered provider covers 1 of its nodes", said)
            self.assertNotIn("tried", said)
        self.assertNotIn("tried", self.program("run", OPERATORS, "--random", rc=1))
        self.assertNotIn("tried", self.program("run", OPERATORS, "--random", rc=1, KELP_BACKEND_PATH=""))
        nodes = [helper.make_node("f", ["x"], [f"y{i}" if i else "y"], domain=f"domain{i}") for i in range(100)]
        said = self.program("run", self.model(*nodes, domains=[f"domain{i}" for i in range(100)]), "--random", rc=1,
                            KELP_BACKEND_PATH=inner)
        self.assertEqual(said.count("there is no kernel library"), 16)

    @contextlib.contextmanager
    def server(self, *words, **variables):
        with Repository() as repository:
            repository.add("blur", OPERATORS, config="")
            with mock.patch.dict(os.environ, environment(**variables), clear=True):
                server = Server("--model-repository", repository.path, "--exit-on-error=false", "--strict-readiness=false", *words)
            with server:
                yield server
                self.assertEqual(server.stop(), 0, server.log())

    def test_the_server_uses_kernels_as_operators(self):
        for words, variables in ((["--plugin", self.library], {}), ([], {"KELP_BACKEND_PATH": LIBRARIES})):
            with self.server(*words, **variables) as server:
                client = triton.InferenceServerClient(server.url)
                given = triton.InferInput("x", PICTURE.shape, "FP32")
                given.set_data_from_numpy(PICTURE)
                for _ in range(3):
                    np.testing.assert_allclose(client.infer("blur", [given]).as_numpy("y"), BLURRED + PICTURE, rtol=1e-6)
                client.close()
        with self.server(KELP_BACKEND_PATH="/nowhere") as server:
            reason, = (m["reason"] for m in json.loads(server.call("POST", "/v2/repository/index", {})[2]) if m["name"] == "blur")
            self.assertIn("/nowhere/libtoolbox.so: no such file", reason)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--libraries", required=True)
    options, sys.argv[1:] = parser.parse_known_args()
    LIBRARIES = os.environ["KELP_BACKEND_PATH"] = os.path.abspath(options.libraries)
    support.main()
