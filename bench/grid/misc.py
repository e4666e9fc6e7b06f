# SPDX-License-Identifier: Apache-2.0
"""Signals, random numbers, control flow, sequences and optional values."""
import numpy as np
from onnx import TensorProto as T, helper

from .common import K, X, generator, ints, several, single


@generator("signal")
def signals():
    for batch, length in ((1, 512), (32, 400), (1, 16384), (8, 1000), (1, 101)):
        yield single("DFT", "f32", [X(batch, length, 1), None, ints(1).scalar()], opset=20, onesided=1)
        yield single("DFT", "f32", [X(batch, length, 2), None, ints(1).scalar()], opset=20, inverse=1)
    for batch, length, frame, step in ((1, 16000, 400, 160), (4, 16000, 512, 128), (1, 4096, 256, 64)):
        yield single("STFT", "f32", [X(batch, length, 1), K(np.array(step)), K(np.hanning(frame).astype(np.float32)), K(np.array(frame))], note=f"{frame} {step}")
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        for size in (400, 16384):
            yield single(op, "i64", [X(low=size, high=size + 1).scalar()], out=["f32"], note=str(size))
    values = [K(np.array(v), kind) for v, kind in ((80, "i64"), (512, "i64"), (16000, "i64"), (20.0, "f32"))]
    yield single("MelWeightMatrix", "f32", [*values, K(np.array(8000.0), "f32").dynamic()], note="80 512")


@generator("random")
def random():
    for shape in ((32, 1024), (1, 64, 56, 56)):
        for op in ("RandomNormalLike", "RandomUniformLike"):
            yield single(op, "f32", [X(*shape)], seed=1.0)
        for op in ("RandomNormal", "RandomUniform"):
            yield several(op, "f32", "x".join(map(str, shape)), lambda rng, op=op, shape=shape: (
                [helper.make_node(op, [], ["r"], shape=shape, seed=1.0), helper.make_node("Add", ["r", "x"], ["y"])], [("x", np.ones(1, np.float32))], [], ["y"]))
        yield single("Bernoulli", "f32", [X(*shape, low=0, high=1)], seed=1.0)
    for batch, classes, count in ((1, 1000, 10), (32, 100, 4)):
        yield single("Multinomial", "f32", [X(batch, classes)], out=["i32"], sample_size=count, seed=1.0)


def value(name, code=T.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, code, shape)


@generator("control")
def control():
    for shape in ((4,), (64, 256)):
        text = "x".join(map(str, shape))

        def branch(rng, shape=shape):
            bodies = {side: helper.make_graph([helper.make_node(op, ["x"], [f"{op}_y"])], side, [], [value(f"{op}_y", shape=shape)])
                      for side, op in (("then_branch", "Relu"), ("else_branch", "Neg"))}
            return [helper.make_node("If", ["c"], ["y"], **bodies)], [("c", np.array(True)), ("x", np.ones(shape, np.float32))], [], ["y"]

        def loop(rng, shape=shape):
            body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["s", "x"], ["t"]),
                                      helper.make_node("Identity", ["t"], ["all"])], "body", [value("i", T.INT64, []), value("go", T.BOOL, []), value("s", shape=shape)],
                                     [value("on", T.BOOL, []), value("t", shape=shape), value("all", shape=shape)])
            return ([helper.make_node("Loop", ["n", "", "x"], ["y", "z"], body=body)], [("n", np.array(20)), ("x", np.ones(shape, np.float32))], [], ["y", "z"])

        def scan(rng, shape=shape):
            body = helper.make_graph([helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Tanh", ["t"], ["o"])], "body",
                                     [value("s", shape=shape), value("e", shape=shape)], [value("t", shape=shape), value("o", shape=shape)])
            return ([helper.make_node("Scan", ["x", "w"], ["y", "z"], num_scan_inputs=1, body=body)],
                    [("x", np.ones(shape, np.float32)), ("w", np.ones((20, *shape), np.float32))], [], ["y", "z"])
        yield several("If", "f32", text, branch)
        yield several("Loop", "f32", text + " 20 times", loop)
        yield several("Scan", "f32", text + " 20 times", scan)


@generator("sequence")
def sequences():
    def feeds(rng, shape):
        return [(name, rng.random(shape, dtype=np.float32)) for name in "ab"]
    for shape in ((4,), (64, 256)):
        text = "x".join(map(str, shape))

        def make(rng, nodes, shape, constants=()):
            return nodes, feeds(rng, shape), list(constants), ["y"]
        build = helper.make_node("SequenceConstruct", ["a", "b"], ["s"])
        at = [("i", np.array(1))]

        def nodes_of(*more):
            return lambda rng, shape=shape, more=more: make(rng, [build, *more], shape, at)
        node = helper.make_node
        yield several("SequenceAt", "f32", text, nodes_of(node("SequenceAt", ["s", "i"], ["y"])), covers=["ai.onnx.SequenceConstruct"])
        yield several("ConcatFromSequence", "f32", text, nodes_of(node("ConcatFromSequence", ["s"], ["y"], axis=0)))
        yield several("SequenceInsert", "f32", text, nodes_of(node("SequenceInsert", ["s", "a"], ["t"]), node("ConcatFromSequence", ["t"], ["y"], axis=0)))
        yield several("SequenceErase", "f32", text, nodes_of(node("SequenceErase", ["s", "i"], ["t"]), node("ConcatFromSequence", ["t"], ["y"], axis=0)))
        yield several("SequenceEmpty", "f32", text, nodes_of(node("SequenceEmpty", [], ["e"]), node("SequenceInsert", ["e", "a"], ["t"]),
                                                            node("ConcatFromSequence", ["t"], ["y"], axis=0)))
        yield several("SequenceLength", "f32", text, nodes_of(node("SequenceLength", ["s"], ["y"])), types=[T.INT64])
        body = helper.make_graph([node("Relu", ["e"], ["o"])], "body", [value("e", shape=shape)], [value("o", shape=shape)])
        yield several("SequenceMap", "f32", text, nodes_of(node("SequenceMap", ["s"], ["t"], body=body), node("ConcatFromSequence", ["t"], ["y"], axis=0)))
        yield several("SplitToSequence", "f32", text, lambda rng, shape=shape: (
            [node("SplitToSequence", ["a"], ["s"], axis=0, keepdims=0), node("SequenceAt", ["s", "i"], ["y"])], feeds(rng, shape)[:1], at, ["y"]))
        yield several("Optional", "f32", text, lambda rng, shape=shape: (
            [node("Optional", ["a"], ["o"]), node("OptionalHasElement", ["o"], ["h"]), node("OptionalGetElement", ["o"], ["g"]),
             node("Where", ["h", "g", "b"], ["y"])], feeds(rng, shape), [], ["y"]), opset=18, covers=["ai.onnx.OptionalHasElement", "ai.onnx.OptionalGetElement"])


@generator("ragged")
def contributed():
    for shape in ((32, 1024), (4, 16)):
        yield single("NegPos", "f32", [X(*shape)], domain="ai.onnx.contrib", outputs=2)
        yield single("SegmentSum", "f32", [X(*shape), K(np.sort(np.arange(shape[0]) // 2)).dynamic()], domain="ai.onnx.contrib")
    for op, extra in (("StringUpper", ()), ("StringLower", ()), ("StringLength", ()), ("StringStrip", ())):
        for count in (1, 1000):
            yield single(op, "string", [X(count, dtype="string")], domain="ai.onnx.contrib", out=["i64"] if op == "StringLength" else None)
