#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plug-in libraries from Python: sessions, runtimes, builders and servers."""
import os
import subprocess
import tempfile
import unittest

import kelp
import numpy
from onnx import TensorProto, helper
from support import DIGITS

DIRECTORY = os.path.join(os.environ["KELP_BUILD"], "tests", "plugins", "libraries")
LIBRARY = os.path.join(DIRECTORY, "libsettings_plugin.so")
FIVE = (LIBRARY, {"factor": 5})


def times(opset=17):
    """Returns the bytes of a model with the operator of the plug-in library: y = x * factor."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
    nodes = [helper.make_node("Times", ["x"], ["t"], domain="com.example"), helper.make_node("Neg", ["t"], ["y"])]
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.example", 1)]
    return helper.make_model(helper.make_graph(nodes, "times", [x], [y]), opset_imports=imports, ir_version=10).SerializeToString()


X = numpy.array([1, -2], "float32")


class Sessions(unittest.TestCase):
    def test_sessions_run_operators_of_registered_libraries(self):
        options = kelp.SessionOptions()
        options.register_custom_ops_library(FIVE)
        self.assertEqual(kelp.InferenceSession(times(), options).run(None, {"x": X})[0].tolist(), [-5, 10])
        options = kelp.SessionOptions()
        options.register_custom_ops_library(LIBRARY)
        self.assertEqual(kelp.InferenceSession(times(), options).run(None, {"x": X})[0].tolist(), [-2, 4])

    def test_other_sessions_do_not_have_them(self):
        with self.assertRaisesRegex(kelp.KelpError, "com.example::Times"):
            kelp.InferenceSession(times())

    def test_nodes_are_compared_with_signatures(self):
        options = kelp.SessionOptions()
        options.register_custom_ops_library(LIBRARY)
        with self.assertRaisesRegex(kelp.KelpError, "expected type float32, found float64"):
            kelp.InferenceSession(times().replace(b"\x08\x01\x12\x05\x0a\x03\x12\x01n", b"\x08\x0b\x12\x05\x0a\x03\x12\x01n"), options)

    def test_invalid_libraries_are_rejected_at_once(self):
        options = kelp.SessionOptions()
        with tempfile.TemporaryDirectory() as folder:
            source, foreign = os.path.join(folder, "ort.c"), os.path.join(folder, "libort.so")
            with open(source, "w") as file:
                file.write("void *RegisterCustomOps(void *options, const void *api) { (void)options; (void)api; return 0; }\n")
            subprocess.run(["cc", "-shared", "-fPIC", "-o", foreign, source], check=True)
            with self.assertRaisesRegex(kelp.KelpError, "custom-operator library of ONNX Runtime .*expected a plug-in library of Kelp"):
                options.register_custom_ops_library(foreign)
        with self.assertRaisesRegex(kelp.KelpError, "no such file"):
            options.register_custom_ops_library("/nowhere/libx.so")
        with self.assertRaisesRegex(kelp.KelpError, "does not export 'kelp_plugin_query'"):
            options.register_custom_ops_library(kelp._kelp.library_path())
        with self.assertRaisesRegex(kelp.KelpError, "unknown setting 'colour=a,b:c=d\\\\e'"):
            options.register_custom_ops_library((LIBRARY, {"colour": "a,b:c=d\\e"}))
        for wrong in (None, 3, [LIBRARY], (LIBRARY, "factor=5")):
            with self.assertRaisesRegex(TypeError, "plugins: "):
                options.register_custom_ops_library(wrong)
        kelp.InferenceSession(DIGITS, options)  # nothing was added


class Builders(unittest.TestCase):
    def test_builders_and_engines_use_plugins(self):
        builder = kelp.Builder(plugins=[FIVE])
        plan = builder.build(builder.parse(times()), profiles={"x": (1, 2, 4)})
        engine = kelp.Engine(bytes(plan), runtime=kelp.Runtime(plugins=[FIVE]))
        self.assertEqual(engine.run({"x": X})["y"].tolist(), [-5, 10])
        with self.assertRaisesRegex(kelp.KelpError, "Times"):
            kelp.Engine(bytes(plan))

    def test_runtimes_with_a_log_load_plugins(self):
        runtime = kelp.Runtime(log=lambda level, text: None, plugins=[FIVE])
        builder = kelp.Builder(runtime=runtime)
        self.assertEqual(runtime.load(builder.build(builder.parse(times()))).run({"x": X})["y"].tolist(), [-5, 10])
        with self.assertRaisesRegex(kelp.KelpError, "unknown setting 'a=1'"):
            kelp.Runtime(log=lambda level, text: None, plugins=[(LIBRARY, {"a": 1})])
        with self.assertRaisesRegex(kelp.KelpError, "unknown setting 'a=1'"):
            kelp.Runtime(plugins=[(LIBRARY, {"a": 1})])

    def test_wrong_arguments_are_rejected(self):
        with self.assertRaisesRegex(kelp.KelpError, "plugins and a runtime are given"):
            kelp.Builder(runtime=kelp.Runtime(), plugins=[LIBRARY])
        for wrong in (LIBRARY, [3], [(LIBRARY, 3)], [(LIBRARY, {}, 1)]):
            with self.assertRaisesRegex(TypeError, "plugins: "):
                kelp.Runtime(plugins=wrong)


class Servers(unittest.TestCase):
    def test_servers_load_plugins(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "times", "1"))
            with open(os.path.join(folder, "times", "1", "model.onnx"), "wb") as file:
                file.write(times())
            with kelp.Server(folder, plugins=[FIVE]) as server:
                self.assertEqual(server.infer("times", {"x": X})["y"].tolist(), [-5, 10])
            with self.assertRaisesRegex(kelp.KelpError, "com.example::Times|times"):
                kelp.Server(folder)
            with self.assertRaisesRegex(kelp.KelpError, "unknown setting 'a=1'"):
                kelp.Server(folder, plugins=[(LIBRARY, {"a": "1"})])


if __name__ == "__main__":
    unittest.main()
