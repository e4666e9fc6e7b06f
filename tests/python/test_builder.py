# SPDX-License-Identifier: Apache-2.0
"""Tests builders, plans and engines from Python: profiles, refitting, progress, memory, errors. For layers, see test_layers.py."""
import gc
import os
import signal
import tempfile
import threading
import unittest

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper

import kelp
from onnx_support import nodes_of
from support import DIGITS, main


class BuilderTests(unittest.TestCase):
    def setUp(self):
        self.builder = kelp.Builder()
        self.rng = np.random.default_rng(3)

    def linear(self, weights, shape=(-1, 4)):
        """Returns a network of one product with the weights 'w'."""
        network = self.builder.create_network()
        x = network.add_input("x", "float32", shape)
        constant = network.add_constant(weights)
        constant.name = "w"
        network.mark_output(network.add_matrix_multiply(x, constant), "y")
        return network

    def raises(self, code, function, *arguments, words=(), **options):
        with self.assertRaises(kelp.KelpError) as caught:
            function(*arguments, **options)
        self.assertEqual(caught.exception.code.name, code, caught.exception)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_a_network_describes_itself(self):
        network = self.linear(np.eye(4, dtype="float32"))
        self.assertEqual([tensor.name for tensor in network.inputs], ["x"])
        self.assertEqual([(tensor.name, tensor.dtype, tensor.shape) for tensor in network.outputs], [("y", "float32", (-1, 4))])
        self.assertEqual([layer.type.name for layer in network.layers], ["INPUT", "CONSTANT", "MATRIX_MULTIPLY"])
        self.assertEqual(network.layers[1].name, "w")
        network.unmark_output(network.outputs[0])
        self.assertEqual(network.outputs, [])
        other = self.builder.create_network()
        self.raises("INVALID_ARGUMENT", other.add_identity, network.inputs[0], words=("another network",))
        with self.assertRaises(TypeError):
            network.add_identity([1, 2])
        self.raises("INVALID_ARGUMENT", network.add_input, "s", "complex", (1,))
        self.raises("INVALID_ARGUMENT", network.add_input, "x" * 3, "float32", (1,) * 17)

    def test_errors_fit_the_language(self):
        network = self.builder.create_network()
        network.add_input("x", "float32", (2,))
        plain = kelp.Engine(self.builder.build(self.linear(np.ones((4, 3), "float32"))))
        for function, *arguments in ((self.builder.build, network), (network.to_onnx,), (plain.refit, {"w": np.ones(12, "float32")}),
                                     (plain.set_runtime_cache, b""), (kelp.Engine, b"no plan")):
            with self.assertRaises(kelp.KelpError) as caught:
                function(*arguments)
            self.assertNotRegex(str(caught.exception), r"kelp_\w|KELP_")
        self.raises("FAILED_PRECONDITION", self.builder.build, network, words=("has no output: mark a tensor as an output first",))
        for options in ({"flags": "version_compatible"}, {"memory": {"device": 1}}, {"level": 9}, {"capabilities": [86]}):
            with self.assertRaises(kelp.KelpError) as caught:
                self.builder.build(self.linear(np.ones((4, 3), "float32")), **options)
            self.assertNotRegex(str(caught.exception), r"kelp_\w|KELP_")

    def test_weights_outlive_their_array(self):
        weights = self.rng.standard_normal((4, 3)).astype("float32")
        kept = weights.copy()
        network = self.linear(weights)
        del weights
        gc.collect()
        x = self.rng.standard_normal((2, 4)).astype("float32")
        found = kelp.Engine.load(self.builder.build(network)).run({"x": x})["y"]
        np.testing.assert_allclose(found, x @ kept, rtol=1e-5)

    def test_a_plan_can_be_saved_and_loaded(self):
        network = self.linear(np.ones((4, 3), "float32"))
        plan = self.builder.build(network)
        self.assertIsInstance(plan, bytes)
        self.assertEqual(plan, self.builder.build(network))
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "a.plan")
            plan.save(path)
            self.assertEqual(os.listdir(directory), ["a.plan"])
            with open(path, "rb") as file:
                self.assertEqual(file.read(), plan)
            engine = kelp.Engine.load(path)
            self.assertEqual(engine.run({"x": np.ones((1, 4), "float32")})["y"].tolist(), [[4, 4, 4]])
            self.raises("NOT_FOUND", kelp.Engine.load, path + "x")
        self.raises("INVALID_ARGUMENT", kelp.Engine.load, plan[:len(plan) // 2])
        self.raises("INVALID_ARGUMENT", kelp.Engine.load, b"no plan")
        self.assertIn("MatMul", engine.inspect("text"))
        self.assertIsInstance(engine.inspect(), dict)
        self.assertEqual(engine.provider, "cpu")

    def test_results_outlive_the_engine(self):
        engine = kelp.Engine.load(self.builder.build(self.linear(np.ones((4, 3), "float32"))))
        first = engine.run({"x": np.ones((1, 4), "float32")})["y"]
        second = engine.run({"x": np.zeros((2, 4), "float32")})["y"]
        del engine
        gc.collect()
        self.assertEqual((first.tolist(), second.tolist()), ([[4, 4, 4]], [[0, 0, 0]] * 2))
        context = kelp.Engine.load(self.builder.build(self.linear(np.ones((4, 3), "float32")))).create_context()
        gc.collect()
        self.assertEqual(context.run({"x": np.ones((1, 4), "float32")})["y"].tolist(), [[4, 4, 4]])

    def test_an_engine_is_freed_without_the_collector(self):
        import weakref
        engine = kelp.Engine.load(self.builder.build(self.linear(np.ones((4, 3), "float32"))))
        engine.run({"x": np.ones((1, 4), "float32")})
        gone, network = weakref.ref(engine), self.linear(np.ones((4, 3), "float32"))
        gone_too = weakref.ref(network)
        gc.disable()
        try:
            del engine, network
            self.assertIsNone(gone())  # without the collector, so there is no reference cycle
            self.assertIsNone(gone_too())
        finally:
            gc.enable()

    def test_an_output_may_be_an_input(self):
        network = self.builder.create_network()
        x = network.add_input("x", "float32", (2, -1))
        network.mark_output(network.add_identity(x), "y")
        network.mark_output(network.add_shuffle(x, reshape=(-1,)), "z")
        network.mark_output(network.add_constant(np.arange(3, dtype="int64")), "c")
        given = self.rng.standard_normal((2, 3)).astype("float32")
        engine = kelp.Engine.load(self.builder.build(network))
        found = engine.run({"x": given})
        np.testing.assert_array_equal(found["y"], given)
        np.testing.assert_array_equal(found["z"], given.reshape(-1))
        self.assertEqual(found["c"].tolist(), [0, 1, 2])
        for name in "yz":
            self.assertFalse(np.shares_memory(found[name], given))
        found["c"][0] = 9
        self.assertEqual(engine.run({"x": given})["c"].tolist(), [0, 1, 2])

    def test_dlpack_memory_is_used_in_place(self):
        """Inputs and outputs passed as DLPack are not copied."""
        engine = kelp.Engine.load(self.builder.build(self.linear(np.eye(4, dtype="float32"))))
        x, y = self.rng.standard_normal((2, 4)).astype("float32"), np.zeros((3, 4), "float32")

        class Foreign:  # like a framework's tensor, without numpy
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        for given, room in ((x, y), (Foreign(x), Foreign(y)), (kelp.DLTensor(x), kelp.DLTensor(y)), (memoryview(x), y)):
            y[:] = 7
            found = engine.run({"x": given}, out={"y": room})["y"]
            np.testing.assert_array_equal(found, x)
            np.testing.assert_array_equal(y, np.concatenate([x, np.full((1, 4), 7, "float32")]))
            self.assertTrue(np.shares_memory(found, y))
        self.assertFalse(np.shares_memory(engine.run({"x": x})["y"], y))  # only if it was requested
        small, locked = np.zeros(7, "float32"), np.zeros((2, 4), "float32")
        locked.flags.writeable = False
        self.raises("OUT_OF_RANGE", engine.run, {"x": x}, out={"y": small}, words=("'y'", "32 bytes", "28"))
        self.raises("INVALID_ARGUMENT", engine.run, {"x": x}, out={"y": locked}, words=("'y'", "read-only"))
        self.raises("INVALID_ARGUMENT", engine.run, {"x": x}, out={"y": y.astype("float64")}, words=("'y'", "float32", "float64"))
        self.raises("INVALID_ARGUMENT", engine.run, {"x": x}, out={"y": [0] * 8}, words=("'y'", "list"))
        self.raises("NOT_FOUND", engine.run, {"x": x}, out={"z": y}, words=("'z'", "y"))
        self.raises("INVALID_ARGUMENT", engine.run, {}, out={"y": y}, words=("missing input 'x'",))
        self.assertFalse(np.shares_memory(engine.run({"x": x})["y"], y))  # the buffers of a failed run are released
        np.testing.assert_array_equal(engine.run({"x": x})["y"], x)

    def test_a_runtime_loads_plans_and_logs(self):
        lines = []
        runtime = kelp.Runtime(threads=1, log=lambda level, text: lines.append((level, text)), log_level="verbose")
        builder = kelp.Builder(runtime=runtime)
        network = builder.create_network()
        network.mark_output(network.add_identity(network.add_input("x", "float32", (-1, 4))), "y")
        plan = builder.build(network)
        self.assertRegex("\n".join(text for _, text in lines), rf"plan of {len(plan)} bytes for provider 'cpu' built in \d+\.\d ms")
        engine = runtime.load(plan)
        self.assertEqual(lines[-1][0], "info")
        self.assertRegex(lines[-1][1], r"^plan 'plan': engine of provider 'cpu' with \d+ nodes")
        silent = []
        kelp.Runtime(log=lambda *line: silent.append(line), log_level="warning").load(plan)
        self.assertEqual(silent, [])
        del runtime
        gc.collect()
        x = np.ones((1, 4), "float32")
        np.testing.assert_array_equal(engine.run({"x": x})["y"], x)
        self.raises("INVALID_ARGUMENT", kelp.Runtime, log_level="loud", words=("'loud'", "verbose"))
        self.raises("INVALID_ARGUMENT", kelp.Runtime().load, b"KELPPLAN", words=("plan",))

    def test_ctrl_c_ends_a_run(self):
        """Ctrl-C ends a run; the engine can run again."""
        network = self.builder.create_network()
        count = network.add_input("count", "int64", ())
        loop = network.add_loop()
        loop.set_trip_count(count)
        value = loop.add_recurrence(np.zeros(2, "float32"))
        value.set_next(network.add_elementwise(value, np.ones(2, "float32"), "sum"))
        network.mark_output(loop.add_output(value), "y")
        engine = kelp.Engine.load(self.builder.build(network))
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            engine.run({"count": np.array(1 << 60)})
        self.assertEqual(engine.run({"count": np.array(3)})["y"].tolist(), [3, 3])

    def test_wrong_inputs_are_rejected(self):
        engine = kelp.Engine.load(self.builder.build(self.linear(np.ones((4, 3), "float32"))))
        good = np.ones((2, 4), "float32")
        self.raises("INVALID_ARGUMENT", engine.run, {}, words=("'x'",))
        self.raises("NOT_FOUND", engine.run, {"x": good, "z": good}, words=("'z'", "x"))
        self.raises("INVALID_ARGUMENT", engine.run, {"x": good.T.copy().T}, words=("'x'", "contiguous"))
        self.raises("INVALID_ARGUMENT", engine.run, {"x": good.astype("float64")}, words=("'x'",))
        self.raises("INVALID_ARGUMENT", engine.run, {"x": np.ones((2, 5), "float32")}, words=("'x'",))
        self.raises("INVALID_ARGUMENT", engine.run, {"x": np.array([["a"] * 4])}, words=("'x'",))
        self.raises("INVALID_ARGUMENT", engine.run, {"x": good.astype(">f4")}, words=("'x'",))
        self.assertEqual(engine.run({"x": good})["y"].shape, (2, 3))  # still works

    def test_profiles_limit_the_shapes(self):
        network = self.linear(np.ones((4, 3), "float32"))
        plan = self.builder.build(network, profiles=[{"x": ((1, 4), (2, 4), (4, 4))}, {"x": ((5, 4), (6, 4), (8, 4))}])
        engine = kelp.Engine.load(plan)
        self.assertEqual(engine.profiles, [{"x": ((1, 4), (2, 4), (4, 4))}, {"x": ((5, 4), (6, 4), (8, 4))}])
        context = engine.create_context(1)
        self.assertEqual(context.run({"x": np.ones((6, 4), "float32")})["y"].shape, (6, 3))
        self.raises("INVALID_ARGUMENT", context.run, {"x": np.ones((2, 4), "float32")}, words=("5", "8"))
        self.raises("OUT_OF_RANGE", engine.create_context, 2)
        self.raises("INVALID_ARGUMENT", self.builder.build, network, profiles=[{"x": ((1, 4), (2, 4))}], words=("'x'",))
        self.raises("INVALID_ARGUMENT", self.builder.build, network, profiles=[{"x": ((3, 4), (2, 4), (1, 4))}])

    def test_weights_can_be_refitted(self):
        weights = self.rng.standard_normal((4, 3)).astype("float32")
        engine = kelp.Engine.load(self.builder.build(self.linear(weights), flags=kelp.builder.BuilderFlag.REFIT))
        self.assertEqual(len(engine.refittable), 1)
        name = engine.refittable[0]
        x = self.rng.standard_normal((2, 4)).astype("float32")
        np.testing.assert_allclose(engine.run({"x": x})["y"], x @ weights, rtol=1e-5)
        other = self.rng.standard_normal((4, 3)).astype("float32")
        engine.refit({name: other})
        np.testing.assert_allclose(engine.run({"x": x})["y"], x @ other, rtol=1e-5)
        self.raises("INVALID_ARGUMENT", engine.refit, {name: other[:2]})
        self.raises("NOT_FOUND", engine.refit, {"no_such_name": other}, words=(name,))
        np.testing.assert_allclose(engine.run({"x": x})["y"], x @ other, rtol=1e-5)
        self.raises("INVALID_ARGUMENT", self.builder.build, self.linear(weights), flags="refit,nothing", words=("nothing",))

    def test_a_stripped_plan_needs_its_weights(self):
        weights = self.rng.standard_normal((4, 3)).astype("float32")
        network = self.linear(weights)
        whole = self.builder.build(network)
        bare = self.builder.build(network, flags=kelp.builder.BuilderFlag.STRIP_WEIGHTS)
        engine = kelp.Engine.load(bare)
        x = self.rng.standard_normal((2, 4)).astype("float32")
        name = engine.refittable[0]
        self.raises("FAILED_PRECONDITION", engine.run, {"x": x}, words=("built without its weights", name))
        engine.refit({name: weights})
        np.testing.assert_array_equal(engine.run({"x": x})["y"], kelp.Engine.load(whole).run({"x": x})["y"])

    def test_progress_is_reported_and_can_cancel(self):
        seen = []
        network = self.linear(np.ones((4, 3), "float32"))
        self.builder.build(network, progress=lambda *step: seen.append(step))
        self.assertTrue(seen and all(0 <= step <= steps for _, _, step, steps in seen))
        self.raises("CANCELLED", self.builder.build, network, progress=lambda *_: False)

        def fails(*_):
            raise ZeroDivisionError("mine")

        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            self.builder.build(network, progress=fails)
        self.builder.build(network)

    def test_a_model_is_parsed(self):
        with open(DIGITS, "rb") as file:
            data = file.read()
        image = self.rng.random((3, 1, 8, 8), "float32")
        expected = kelp.InferenceSession(DIGITS).run(None, {"image": image})
        for source in (DIGITS, data):
            network = self.builder.parse(source)
            names = [tensor.name for tensor in network.outputs]
            doubled = network.add_elementwise(network.outputs[0], network.outputs[0], "sum")
            network.mark_output(doubled, "doubled")
            found = kelp.Engine.load(self.builder.build(network)).run({"image": image})
            for name, wanted in zip(names, expected):
                np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found["doubled"], 2 * expected[0], rtol=1e-5, atol=1e-6)
            model = network.to_onnx()
            onnx.checker.check_model(model, full_check=True)
            session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
            for value, wanted in zip(session.run(None, {"image": image}), [*expected, 2 * expected[0]]):
                np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)
        self.raises("NOT_FOUND", self.builder.parse, "nowhere.onnx")
        self.raises("INVALID_ARGUMENT", self.builder.parse, b"no model")

    def test_an_exported_model_has_one_version(self):
        """A layer may need a newer version than the model, whose nodes may not exist in that version."""
        def model(op, version, **attributes):
            graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], "node", **attributes)], "g",
                                      [helper.make_tensor_value_info("x", 1, (2, 3))], [helper.make_tensor_value_info("y", 1, None)])
            return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8).SerializeToString()

        def exported(data, add):
            network = self.builder.parse(data)
            network.mark_output(add(network, network.outputs[0]), "z")
            return onnx.load_from_string(network.to_onnx())

        def version(made):
            onnx.checker.check_model(made, full_check=True)
            return {entry.domain: entry.version for entry in made.opset_import}[""]

        self.assertEqual(version(exported(model("Exp", 17), lambda network, y: network.add_unary(y, "exp"))), 17)
        self.assertEqual(version(exported(model("Exp", 17), lambda network, y: network.add_reduce(y, "max", axes=0))), 24)
        with self.assertRaisesRegex(kelp.KelpError, "node 'node' has version 12 of Softmax, which differs from version 24") as caught:
            exported(model("Softmax", 12), lambda network, y: network.add_reduce(y, "max", axes=0))
        self.assertEqual(caught.exception.code.name, "UNIMPLEMENTED")

    def test_an_exported_model_has_the_oldest_version_that_suffices(self):
        network = self.builder.create_network()
        x = network.add_input("x", "float32", (2, 3))
        network.mark_output(network.add_activation(x, "relu"), "y")
        made = onnx.load_from_string(network.to_onnx())
        onnx.checker.check_model(made, full_check=True)
        self.assertEqual((made.ir_version, {entry.domain: entry.version for entry in made.opset_import}[""]), (8, 17))
        network.mark_output(network.add_reduce(x, "max", axes=0), "z")
        made = onnx.load_from_string(network.to_onnx())
        self.assertEqual((made.ir_version, {entry.domain: entry.version for entry in made.opset_import}[""]), (9, 20))

    def test_an_exported_model_keeps_other_domains(self):
        nodes = [helper.make_node("Scaler", ["x"], ["scaled"], "scaler", domain="ai.onnx.ml", offset=[1.0], scale=[2.0]),
                 helper.make_node("Gelu", ["scaled"], ["gelu"], "gelu", domain="com.microsoft"), helper.make_node("Exp", ["x"], ["y"], "exp")]
        graph = helper.make_graph(nodes, "mine", [helper.make_tensor_value_info("x", 1, (2,))],
                                  [helper.make_tensor_value_info(name, 1, (2,)) for name in ("gelu", "y")])
        versions = {"com.microsoft": 1, "": 17, "ai.onnx.ml": 3}
        data = helper.make_model(graph, opset_imports=[helper.make_opsetid(*item) for item in versions.items()], ir_version=8).SerializeToString()
        network = self.builder.parse(data)
        self.assertEqual([tensor.name for tensor in network.outputs], ["gelu", "y"])
        network.mark_output(network.outputs[1])  # it is one already
        self.assertEqual([tensor.name for tensor in network.outputs], ["gelu", "y"])
        network.mark_output(network.add_reduce(network.outputs[0], "max", axes=0), "largest")
        network.unmark_output(network.outputs[1])
        model = onnx.load_from_string(network.to_onnx())
        self.assertEqual({entry.domain: entry.version for entry in model.opset_import}, {**versions, "": 24})
        self.assertEqual([value.name for value in model.graph.output], ["gelu", "largest"])
        x = np.array([0.5, -1], "float32")
        expected = kelp.InferenceSession(data).run(["gelu"], {"x": x})[0]
        found = kelp.InferenceSession(model.SerializeToString()).run(None, {"x": x})
        np.testing.assert_allclose(found[0], expected, rtol=1e-6)
        np.testing.assert_allclose(found[1], expected.max(), rtol=1e-6)

    def test_an_exported_model_names_every_node_once(self):
        network = self.builder.create_network()
        x, rows = network.add_input("x", "float32", (3,)), network.add_input("rows", "float32", (4, 3))
        loop = network.add_loop()
        loop.set_trip_count(np.array(4, "int32"))
        total = loop.add_recurrence(x)
        row = loop.add_iterator(rows, 0)
        last = loop.add_output(total)
        later = network.add_activation(x, "scaled_tanh", 2, 0.5)  # the loop needs it before its turn
        grown = network.add_elementwise(network.add_activation(row, "scaled_tanh", 3, 0.25), later, "sum")
        total.set_next(network.add_elementwise(total, grown, "sum"))
        network.mark_output(last, "y")
        model = onnx.load_from_string(network.to_onnx())
        onnx.checker.check_model(model, full_check=True)
        self.assertEqual((model.producer_name, model.ir_version), ("kelp", 12))
        nodes = list(nodes_of(model.graph))
        self.assertEqual(len({node.name for node in nodes}), len(nodes))
        self.assertEqual([node.op_type for node in nodes].count("Tanh"), 2)
        given = {"x": self.rng.random(3, "float32"), "rows": self.rng.random((4, 3), "float32")}
        expected = given["x"] + (3 * np.tanh(given["rows"] / 4)).sum(0) + 4 * (2 * np.tanh(given["x"] / 2))
        np.testing.assert_allclose(kelp.InferenceSession(model.SerializeToString()).run(None, given)[0], expected, rtol=1e-5)

    def test_normalization_of_the_last_axes_is_one_node(self):
        def types(axes, shape, dims=(2, 3, 4)):
            network = self.builder.create_network()
            x = network.add_input("x", "float32", dims)
            network.mark_output(network.add_normalization(x, np.ones(shape, "float32"), np.zeros(shape, "float32"), axes), "y")
            return {node.op_type for node in onnx.load_from_string(network.to_onnx()).graph.node}

        self.assertIn("LayerNormalization", types((2,), (1, 1, 4)))
        self.assertIn("LayerNormalization", types((1, 2), (1, 3, 4)))
        self.assertIn("LayerNormalization", types((0, 1, 2), (2, 3, 4)))
        self.assertIn("LayerNormalization", types((2,), (1, 1, 4), (-1, -1, 4)))
        for axes, shape, dims in (((1,), (1, 3, 1), (2, 3, 4)), ((0, 1), (2, 3, 1), (2, 3, 4)), ((0, 2), (2, 1, 4), (2, 3, 4)),
                                  ((2,), (1, 3, 4), (2, 3, 4)), ((2,), (1, 1, 1), (2, 3, 4)), ((1, 2), (1, 1, 4), (2, 3, 4)),
                                  ((2,), (1, 1, 4), (2, 3, -1)), ((2,), (1, 1, 1), (2, 3, -1))):
            self.assertNotIn("LayerNormalization", types(axes, shape, dims), (axes, shape, dims))

    def test_packed_types_are_unpacked(self):
        for dtype in (ml_dtypes.int4, ml_dtypes.uint4):
            network = self.builder.create_network()
            x = network.add_input("x", dtype, (-1, 3))
            network.mark_output(network.add_identity(x), "same")
            network.mark_output(network.add_dequantize(x, np.array(0.5, "float32")), "wide")
            engine = kelp.Engine.load(self.builder.build(network))
            low = -8 if dtype is ml_dtypes.int4 else 0
            for rows in (1, 4):
                x = self.rng.integers(low, low + 16, (rows, 3)).astype(dtype)
                found = engine.run({"x": x})
                np.testing.assert_array_equal(found["same"].astype("int8"), x.astype("int8"))
                np.testing.assert_array_equal(found["wide"], x.astype("float32") / 2)

    def test_engines_run_in_several_threads(self):
        engine = kelp.Engine.load(self.builder.build(self.linear(np.ones((4, 3), "float32"))), threads=2)
        wrong = []

        def many(value):
            for rows in range(1, 40):
                found = engine.run({"x": np.full((rows, 4), value, "float32")})["y"]
                if found.shape != (rows, 3) or not (found == 4 * value).all():
                    wrong.append((value, rows))

        threads = [threading.Thread(target=many, args=(value,)) for value in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_providers_are_chosen_by_name(self):
        self.raises("NOT_FOUND", kelp.Builder, "no_such_name", words=("cpu",))
        builder = kelp.Builder("null")
        network = builder.create_network()
        network.mark_output(network.add_unary(network.add_input("x", "float32", (2, 3)), "exp"), "y")
        engine = kelp.Engine.load(builder.build(network))
        self.assertEqual((engine.provider, engine.run({"x": np.ones((2, 3), "float32")})["y"].tolist()), ("null", [[0] * 3] * 2))


if __name__ == "__main__":
    main()
