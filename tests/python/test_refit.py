# SPDX-License-Identifier: Apache-2.0
"""Weights that a refit offers: every one can be replaced without a change of a shape, in ONNX models and in networks of layers."""
import os
import re
import unittest

import numpy as np
from onnx import helper, load, numpy_helper, parser

import kelp
from refit_support import refit_each
from support import DIGITS, MODELS, main


def random_inputs(engine, rng):
    made = {}
    for info in engine.inputs:
        dtype = kelp._capi.numpy_dtype(info._number)
        shape = [2 if dim < 0 else dim for dim in info.shape]
        made[info.name] = rng.integers(0, 2, shape).astype(dtype) if dtype.kind in "iub" else rng.random(shape).astype(dtype)
    return made


class RefitTests(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(3)
        self.builder = kelp.Builder()

    def engine(self, network, flags="refit"):
        return kelp.Engine(self.builder.build(network, flags=flags))

    def rejects(self, code, function, *arguments, words=(), **options):
        with self.assertRaises(kelp.KelpError) as caught:
            function(*arguments, **options)
        self.assertEqual(caught.exception.code.name, code, caught.exception)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_models_keep_their_shapes(self):
        checked = {}
        for path in sorted([DIGITS] + [os.path.join(MODELS, name) for name in os.listdir(MODELS) if name.endswith(".onnx")]):
            name = os.path.basename(path)[:-5]
            try:
                engine = self.engine(self.builder.parse(path))
                inputs = random_inputs(engine, self.rng)
                engine.run(inputs)
            except (kelp.KelpError, TypeError, ValueError):
                continue  # not a model for this provider, or its inputs are strings or sequences
            with self.subTest(model=name):
                checked[name] = refit_each(engine, inputs, self.rng)
                initializers = {tensor.name for tensor in load(path).graph.initializer}
                self.assertLessEqual(set(engine.refittable), initializers | {node.output[0] for node in load(path).graph.node
                                                                             if node.op_type == "Constant"})
        self.assertGreater(len(checked), 8, checked)
        self.assertGreater(sum(checked.values()), 20, checked)
        self.assertGreaterEqual(checked["model"], 6)  # the weights of the convolutions and products of examples/models/digits

    def parsed(self, text, **weights):
        """Returns the network of a graph in ONNX's text format: "x => y { nodes }" with initializers."""
        made = parser.parse_graph(text)
        made.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items())
        return self.builder.parse(helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString())

    def test_parameters_of_shapes_are_not_offered(self):
        """The weights `w…` are refittable, the constants `c…` determine a shape."""
        i64 = lambda *values: np.array(values, "int64")
        f32 = lambda *values: np.array(values, "float32")
        ones = np.ones((2, 3), "float32")
        x = "g (float[2, 3] x) => (float[?, ?] y)"
        for text, weights in (
                (x + "{ a = Mul(x, w) y = Reshape(a, c) }", {"w": ones, "c": i64(3, 2)}),
                (x + "{ y = Expand(w, c) a = Identity(x) }", {"w": ones, "c": i64(2, 3)}),
                (x + "{ a = Add(x, w) y = Tile(a, c) }", {"w": ones, "c": i64(2, 2)}),
                (x + "{ a = Add(x, w) y = Slice(a, c0, c1, c2, c3) }", {"w": ones, "c0": i64(0), "c1": i64(2), "c2": i64(1), "c3": i64(1)}),
                (x + "{ y = Pad(x, c, w) }", {"w": np.array(7, "float32"), "c": i64(0, 1, 0, 1)}),
                (x + "{ a = Add(x, w) b = Constant<value = float[1] {0.0}>() y = Resize(a, , c) }", {"w": ones, "c": f32(1, 2)}),
                (x + "{ a = Add(x, w) y = Resize(a, , , c) }", {"w": ones, "c": i64(4, 6)}),
                (x + "{ a = ConstantOfShape(c) b = Add(a, w) y = Add(x, b) }", {"w": ones, "c": i64(2, 3)}),
                (x + "{ a, b = TopK(x, c) y = Mul(a, w) }", {"w": ones, "c": i64(3)}),
                (x + "{ a = Cast<to = 7>(x) b = OneHot(a, c, w) d = ReduceSum<keepdims = 0>(b, c2) y = Identity(d) }",
                 {"w": f32(0, 1), "c": np.array(4, "int64"), "c2": i64(2)}),
                (x + "{ a = Unsqueeze(x, c) b = Mul(a, w) y = Squeeze(b, c) }", {"w": ones, "c": i64(0)}),
                (x + "{ a, b = Split<axis = 1>(x, c) y = Mul(a, w) }", {"w": f32(3), "c": i64(1, 2)}),
                (x + "{ a = Mul(x, w) y = ReduceMax(a, c) }", {"w": ones, "c": i64(1)}),
                (x + "{ a = Mul(x, w) y = CenterCropPad(a, c) }", {"w": ones, "c": i64(2, 2)}),
                (x + "{ a = HannWindow(c) b = Mul(a, w) y = Add(x, b) }", {"w": f32(1, 2, 3), "c": np.array(3, "int64")}),
                (x + "{ a = Range(c0, c1, c2) b = Mul(a, w) y = Add(x, b) }",
                 {"w": f32(1, 2, 3), "c0": np.array(0, "float32"), "c1": np.array(3, "float32"), "c2": np.array(1, "float32")}),
                (x + "{ a = Mul(x, w) y = Compress<axis = 1>(a, c) }", {"w": ones, "c": np.array([True, False, True])}),
                (x + "{ a = NonZero(c) b = Cast<to = 1>(a) y = Mul(b, w) d = Identity(x) }", {"w": f32(2), "c": ones}),
                # computed from constants and shapes
                (x + "{ s = Shape(x) t = Mul(s, c) a = Mul(x, w) y = Expand(w2, t) }", {"w": ones, "w2": f32(1), "c": i64(1, 2)}),
                (x + "{ a = Add(c0, c1) b = Cast<to = 7>(a) d = Mul(x, w) y = Reshape(d, b) }", {"w": ones, "c0": f32(2, 1), "c1": f32(1, 1)}),
                # computed from elements of the input: integers are parameters, other weights are not
                (x + "{ a = ReduceMax<keepdims = 0>(x) b = Mul(a, w) d = Cast<to = 7>(b) e = Clip(d, c0, c1) f = Reshape(e, c2) "
                     "v, n = TopK(x, f) y = Mul(v, w2) }",
                 {"w": np.array(2, "float32"), "w2": f32(2), "c0": np.array(1, "int64"), "c1": np.array(3, "int64"), "c2": i64(1)}),
                (x + "{ a = Greater(x, w) b = NonZero(a) d = Cast<to = 1>(b) y = Mul(d, w2) }", {"w": ones, "w2": f32(2)}),
                # in a branch
                (x + "{ t = ReduceMax<keepdims = 0>(x) b = Greater(t, w) y = If(b) <then_branch = p () => (float[?, ?] q) "
                     "{ q = Reshape(w2, c0) }, else_branch = p () => (float[?, ?] q) { q = Reshape(w2, c1) }> }",
                 {"w": np.array(2, "float32"), "w2": ones, "c0": i64(3, 2), "c1": i64(6, 1)}),
                # in a loop, whose value is carried
                (x + "{ y = Loop(c0, , x) <body = b (int64 i, bool on, float[?, ?] v) => (bool go, float[?, ?] r) "
                     "{ go = Identity(c1) m = Mul(v, w) r = Reshape(m, c2) }> }",
                 {"w": f32(2), "c0": np.array(2, "int64"), "c1": np.array(True), "c2": i64(2, 3)})):
            with self.subTest(text=text):
                engine = self.engine(self.parsed(text, **weights))
                used = {name for name in weights if re.search(rf"\b{name}\b", text)}
                self.assertEqual(sorted(engine.refittable), sorted(name for name in used if name.startswith("w")))
                refit_each(engine, {"x": np.array([[2, 3, 4], [0, 2, 3]], "float32")}, self.rng)
                for name in used:
                    if name.startswith("c"):
                        self.rejects("NOT_FOUND", engine.refit, {name: weights[name]},
                                     words=(f"weights '{name}' cannot be refitted: they determine a shape", "expected one of 'w"))

    def reduced(self):
        """y = the average of relu(x + shift) over axis 1."""
        network = self.builder.create_network()
        x = network.add_input("x", "float32", (-1, 3))
        constant = network.add_constant(np.zeros((1, 3), "float32"))
        layer = network.add_activation(network.add_elementwise(x, constant, "sum"), "leaky_relu", alpha=0.1)
        network.mark_output(network.add_reduce(layer, "average", axes=1, keep_dims=True), "y")
        return network

    def test_constants_of_layers_are_not_offered(self):
        engine = self.engine(self.reduced())
        self.assertEqual(len(engine.refittable), 1, engine.refittable)
        refit_each(engine, {"x": np.ones((2, 3), "float32")}, self.rng)
        self.rejects("NOT_FOUND", engine.refit, {"Reduce_3.1": np.array([0], "int64")}, words=("'Reduce_3.1'", engine.refittable[0]))
        self.rejects("NOT_FOUND", engine.refit, {"nobody": np.array([0], "int64")}, words=("'nobody' cannot be refitted: the model has no such weights",))

    def test_marks_are_checked(self):
        for name, code, words in (("c", "INVALID_ARGUMENT", "weights 'c' cannot be refitted: they determine a shape"),
                                  ("nobody", "NOT_FOUND", "has no weights 'nobody'")):
            network = self.parsed("g (float[2, 3] x) => (float[?, ?] y) { a = Mul(x, w) y = Reshape(a, c) }",
                                  w=np.ones(3, "float32"), c=np.array([3, 2]))
            network.mark_refittable(name)
            self.rejects(code, self.engine, network, "refit_individual", words=(words,))

    def test_unmarked_weights_are_rejected(self):
        network = self.parsed("g (float[2, 3] x) => (float[?, ?] y) { a = Mul(x, w) y = Add(a, v) }",
                              w=np.ones(3, "float32"), v=np.ones(3, "float32"))
        network.mark_refittable("w")
        engine = self.engine(network, "refit_individual")
        self.assertEqual(engine.refittable, ["w"])
        self.rejects("NOT_FOUND", engine.refit, {"v": np.ones(3, "float32")}, words=("'v' cannot be refitted: the plan was not built to refit them",))
        plain = kelp.Engine(self.builder.build(network))
        self.rejects("NOT_FOUND", plain.refit, {"w": np.ones(3, "float32")}, words=("was not built for refits", "flag REFIT or REFIT_INDIVIDUAL"))

    def test_stripped_plans_keep_what_determines_shapes(self):
        network = self.parsed("g (float[2, 3] x) => (float[?, ?] y) { s = Cast<to = 7>(c) a = Mul(x, w) y = Reshape(a, s) }",
                              w=np.ones(3, "float32"), c=np.array([3, 2], "float32"))
        engine = self.engine(network, "strip_weights")
        self.assertEqual(engine.refittable, ["w"])
        engine.refit({"w": np.full(3, 2, "float32")})
        self.assertEqual(engine.run({"x": np.ones((2, 3), "float32")})["y"].tolist(), [[2, 2]] * 3)


if __name__ == "__main__":
    main()
