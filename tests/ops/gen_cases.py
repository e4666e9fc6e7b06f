#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes operator cases for run_cases: models of one node (or few) with seeded inputs and expected outputs.

usage: gen_cases.py OUT [--node-tests]

OUT/cases.txt lists the cases, OUT/NAME.onnx is the model, OUT/NAME.bin holds, little-endian: rtol, atol (float64); the number of
inputs, then each: name, dtype, rank, extents, elements; the same for outputs. Strings are a u32 length and bytes.
Expected outputs come from ONNX Runtime. --node-tests adds ONNX's own node tests (package onnx), as far as they are of tensors.
"""
import argparse, os, struct
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper, numpy_helper

rng = np.random.default_rng(20)


def dtype_of(array):
    return T.STRING if array.dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(array.dtype)


def pack_text(text):
    data = text if isinstance(text, bytes) else str(text).encode()
    return struct.pack("<I", len(data)) + data


def pack_array(name, array):
    array = np.asarray(array)
    head = pack_text(name) + struct.pack("<II", dtype_of(array), array.ndim)
    head += struct.pack(f"<{array.ndim}q", *array.shape)
    if array.dtype.kind in "OUS":
        return head + b"".join(pack_text(x) for x in array.ravel())
    return head + np.ascontiguousarray(array).tobytes()


class Writer:
    def __init__(self, out):
        self.out, self.names = out, []
        os.makedirs(out, exist_ok=True)

    def case(self, name, model, inputs, outputs, rtol, atol):
        self.names.append(name)
        with open(os.path.join(self.out, name + ".onnx"), "wb") as f:
            f.write(model.SerializeToString())
        body = struct.pack("<dd", rtol, atol) + struct.pack("<I", len(inputs))
        body += b"".join(pack_array(n, a) for n, a in inputs)
        body += struct.pack("<I", len(outputs)) + b"".join(pack_array(n, a) for n, a in outputs)
        with open(os.path.join(self.out, name + ".bin"), "wb") as f:
            f.write(body)

    def close(self):
        with open(os.path.join(self.out, "cases.txt"), "w") as f:
            f.write("".join(n + "\n" for n in self.names))


def f32(*shape, low=-2.0, high=2.0):
    return rng.uniform(low, high, shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


class Own:
    """One node under a given opset; `constants` become initializers."""

    def __init__(self, writer):
        self.w, self.count = writer, 0

    def add(self, op, inputs, opset=17, outputs=1, constants=(), rtol=1e-4, atol=1e-5, **attrs):
        inputs = [a if a is None else np.asarray(a) for a in inputs]
        names = [f"x{i}" if a is not None else "" for i, a in enumerate(inputs)]
        outs = [f"y{i}" for i in range(outputs)]
        node = helper.make_node(op, names, outs, **attrs)
        feeds = [(n, a) for i, (n, a) in enumerate(zip(names, inputs)) if a is not None and i not in constants]
        graph = helper.make_graph(
            [node], op,
            [helper.make_tensor_value_info(n, dtype_of(a), [f"d{n}{k}" for k in range(a.ndim)]) for n, a in feeds],
            [helper.make_empty_tensor_value_info(n) for n in outs],
            [numpy_helper.from_array(inputs[i], names[i]) for i in constants])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        model = onnx.shape_inference.infer_shapes(model)
        options = ort.SessionOptions()
        options.log_severity_level = 3
        session = ort.InferenceSession(model.SerializeToString(), options)
        result = session.run(outs, dict(feeds))
        self.count += 1
        self.w.case(f"own_{self.count:03d}_{op.lower()}", model, feeds, list(zip(outs, result)), rtol, atol)


def products(own):
    for m, k, n in [(1, 384, 384), (3, 7, 5), (13, 33, 47), (2, 100, 130), (67, 129, 95), (128, 384, 200), (5, 1, 9)]:
        a, b = f32(m, k), f32(k, n)
        atol = 2e-7 * k + 1e-6  # sums of k products cancel
        own.add("MatMul", [a, b], atol=atol)
        own.add("MatMul", [a, b], constants=(1,), atol=atol)
        own.add("Gemm", [a, b, f32(n)], constants=(1, 2), atol=atol)
        own.add("Gemm", [a, f32(n, k), f32(n)], constants=(1,), transB=1, atol=atol)
        own.add("Gemm", [f32(k, m), f32(n, k), f32(m, 1)], transA=1, transB=1, alpha=0.5, beta=2.0, opset=11, atol=atol)
    own.add("MatMul", [f32(2, 3, 4, 5), f32(3, 5, 6)])
    own.add("MatMul", [f32(4, 5), f32(2, 3, 5, 6)])
    own.add("MatMul", [f32(2, 1, 4, 5), f32(1, 3, 5, 6)])
    own.add("MatMul", [f32(5), f32(5, 6)])
    own.add("MatMul", [f32(2, 4, 5), f32(5)])
    own.add("MatMul", [f32(5), f32(5)])
    own.add("MatMul", [f32(4, 5).astype(np.float64), f32(5, 3).astype(np.float64)])
    own.add("MatMul", [np.arange(12, dtype=np.int64).reshape(3, 4), np.arange(20, dtype=np.int64).reshape(4, 5)])
    own.add("Gemm", [f32(4, 5).astype(np.float64), f32(5, 3).astype(np.float64)], alpha=0.25)


def convolutions(own):
    x = f32(2, 6, 11, 9)
    own.add("Conv", [x, f32(8, 6, 3, 3), f32(8)], pads=[1, 1, 1, 1])
    own.add("Conv", [x, f32(8, 6, 3, 3), f32(8)], strides=[2, 1], pads=[0, 1, 2, 1], constants=(1, 2))
    own.add("Conv", [x, f32(8, 3, 3, 2)], group=2, dilations=[2, 3])
    own.add("Conv", [x, f32(6, 1, 3, 3), f32(6)], group=6, strides=[2, 2], pads=[1, 1, 1, 1])
    own.add("Conv", [x, f32(12, 1, 5, 3)], group=6, pads=[2, 0, 2, 3])
    own.add("Conv", [x, f32(10, 6, 1, 1), f32(10)])
    own.add("Conv", [x, f32(10, 6, 1, 1)], strides=[2, 3])
    own.add("Conv", [x, f32(4, 6, 4, 3)], auto_pad="SAME_UPPER", strides=[2, 2])
    own.add("Conv", [x, f32(4, 6, 4, 3)], auto_pad="SAME_LOWER", strides=[3, 2])
    own.add("Conv", [x, f32(4, 6, 4, 3)], auto_pad="VALID")
    own.add("Conv", [f32(2, 4, 30), f32(5, 4, 7), f32(5)], strides=[2], pads=[3, 3], dilations=[2])
    own.add("Conv", [f32(1, 3, 5, 6, 7), f32(4, 3, 2, 3, 3), f32(4)], pads=[1, 0, 1, 0, 1, 1])
    own.add("Conv", [f32(1, 64, 14, 14), f32(70, 64, 3, 3), f32(70)], pads=[1, 1, 1, 1], atol=1e-4)
    own.add("ConvTranspose", [f32(2, 4, 5, 6), f32(4, 3, 3, 3), f32(3)])
    own.add("ConvTranspose", [f32(1, 4, 5, 6), f32(4, 3, 3, 2)], group=2, strides=[2, 3], pads=[1, 0, 1, 1])
    own.add("ConvTranspose", [f32(1, 4, 5, 6), f32(4, 3, 3, 3)], strides=[2, 2], output_padding=[1, 1], dilations=[1, 2])
    own.add("ConvTranspose", [f32(1, 2, 9), f32(2, 3, 4)], strides=[3], auto_pad="SAME_UPPER")
    for op in ("MaxPool", "AveragePool"):
        own.add(op, [x], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
        own.add(op, [x], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
        own.add(op, [x], kernel_shape=[2, 3], auto_pad="SAME_UPPER")
        own.add(op, [f32(2, 3, 20)], kernel_shape=[4], strides=[3])
        own.add(op, [f32(1, 2, 6, 7, 8)], kernel_shape=[2, 3, 2])
    own.add("AveragePool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    own.add("MaxPool", [x], kernel_shape=[3, 3], dilations=[2, 2], outputs=2)
    own.add("GlobalAveragePool", [x])
    own.add("GlobalMaxPool", [x])


def rows(own):
    for shape in [(3, 5), (2, 4, 129), (1, 1, 384), (7, 16), (4, 17)]:
        x, n = f32(*shape, low=-8, high=8), shape[-1]
        own.add("Softmax", [x])
        own.add("LogSoftmax", [x])
        own.add("Softmax", [x], axis=0)
        own.add("Softmax", [x], opset=11, axis=1)
        own.add("LayerNormalization", [x, f32(n), f32(n)], axis=-1, epsilon=1e-12)
    own.add("LayerNormalization", [f32(3, 4, 5), f32(4, 5)], axis=1, outputs=1)
    own.add("BatchNormalization", [f32(2, 5, 4, 3), f32(5), f32(5), f32(5), f32(5, low=0.1)], epsilon=1e-3)
    own.add("BatchNormalization", [f32(7, 5), f32(5), f32(5), f32(5), f32(5, low=0.1)], opset=9)
    own.add("InstanceNormalization", [f32(2, 3, 7, 5), f32(3), f32(3)], epsilon=1e-3)
    own.add("Hardmax", [f32(3, 4, 5)], axis=1)
    x = f32(3, 4, 5, 6)
    for op in ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
               "ReduceSumSquare", "ReduceLogSumExp"]:
        if op != "ReduceSum":
            own.add(op, [x], axes=[1, -1], keepdims=0)
            own.add(op, [x], axes=[0, 2])
        own.add(op, [x])
        own.add(op, [x, i64(-2, 0)], opset=18, keepdims=0, constants=(1,))
        own.add(op, [x, i64(3)], opset=18, keepdims=1)
    own.add("ReduceSum", [x], opset=11, axes=[1, 2])
    own.add("ReduceSum", [x, i64(1, 2)], noop_with_empty_axes=1)
    own.add("ReduceMean", [np.arange(24, dtype=np.int32).reshape(2, 3, 4)], axes=[1])
    own.add("ReduceLogSum", [f32(3, 4, low=0.5)], axes=[1])
    for op in ("ArgMax", "ArgMin"):
        own.add(op, [x], axis=2, keepdims=0)
        own.add(op, [np.array([[3, 1, 3], [2, 2, 0]], np.int32)], axis=1, select_last_index=1, opset=13)
    own.add("CumSum", [x, i64(1)[0:1].reshape(())], exclusive=1)
    own.add("CumSum", [x, i64(-1)[0:1].reshape(())], reverse=1)
    for largest in (0, 1):
        own.add("TopK", [x, i64(3)], outputs=2, axis=1, largest=largest)
        own.add("TopK", [np.array([5, 1, 5, 2, 5, 1], np.int64), i64(4)], outputs=2, largest=largest)


def elements(own):
    x, positive, unit = f32(3, 4, 33, low=-6, high=6), f32(50, low=0.01, high=50), f32(41, low=-0.99, high=0.99)
    for op in ["Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Exp", "Tanh", "Sigmoid", "Relu", "Erf", "Sin", "Cos",
               "Atan", "Sinh", "Cosh", "Asinh", "Softplus", "Softsign", "HardSwish", "LeakyRelu", "Elu", "Selu", "Celu",
               "HardSigmoid", "ThresholdedRelu", "Reciprocal", "IsNaN", "IsInf"]:
        own.add(op, [x])
    for op in ["Sqrt", "Log"]:
        own.add(op, [positive])
        own.add(op, [positive.astype(np.float64)])
    for op in ["Asin", "Acos", "Atanh", "Tan"]:
        own.add(op, [unit])
    own.add("Acosh", [positive + 1])
    own.add("Gelu", [x], opset=20)
    own.add("Gelu", [x], opset=20, approximate="tanh")
    own.add("Mish", [x], opset=18)
    own.add("Shrink", [x], lambd=1.5, bias=0.5)
    own.add("Clip", [x, np.float32(-1).reshape(()), np.float32(2).reshape(())])
    own.add("Clip", [x, None, np.float32(2).reshape(())])
    own.add("Clip", [x], opset=6, min=-1.0, max=0.5)
    own.add("Clip", [np.arange(9, dtype=np.int64), np.int64(2).reshape(())])
    own.add("Not", [np.array([True, False])])
    pairs = [((3, 4, 5), (3, 4, 5)), ((3, 4, 5), (5,)), ((3, 1, 5), (4, 1)), ((1,), (3, 4)), ((), (2, 3)), ((2, 3, 4), (2, 1, 1))]
    for a, b in pairs:
        for op in ["Add", "Sub", "Mul", "Div"]:
            own.add(op, [f32(*a), f32(*b, low=0.5)])
        own.add("Add", [f32(*a).astype(np.float64), f32(*b).astype(np.float64)])
        ia = rng.integers(-9, 9, a).astype(np.int64) if a else np.array(3, np.int64)
        ib = rng.integers(1, 9, b).astype(np.int64) if b else np.array(4, np.int64)
        for op in ["Add", "Sub", "Mul", "Div", "Mod", "Equal", "Greater", "LessOrEqual"]:
            own.add(op, [ia, ib])
        own.add("Less", [f32(*a), f32(*b)])
        own.add("GreaterOrEqual", [f32(*a), f32(*b)])
        own.add("And", [np.asarray(ia > 0), np.asarray(ib > 4)])
        own.add("Xor", [np.asarray(ia > 0), np.asarray(ib > 4)])
        own.add("Where", [np.asarray(ia > 0), f32(*b), f32(*a)])
        own.add("Pow", [np.abs(f32(*a)) + np.float32(0.1), f32(*b)])
        own.add("Max", [f32(*a), f32(*b), f32(1)])
        own.add("Sum", [f32(*a), f32(*b), f32(1)])
        own.add("Mean", [f32(*a), f32(*b)])
    own.add("Pow", [f32(7), np.array(3, np.int64)])
    own.add("Mod", [f32(9), f32(9, low=0.5)], fmod=1)
    own.add("Mod", [np.array([-7, 7, -7, 7], np.int32), np.array([3, -3, -3, 3], np.int32)])
    own.add("PRelu", [f32(2, 3, 4), f32(3, 1)])
    own.add("BitShift", [np.array([1, 2, 255], np.uint8), np.array([1, 3, 4], np.uint8)], direction="LEFT")
    own.add("Equal", [np.array(["a", "bc"], object), np.array(["a", "cb"], object)], opset=19)
    own.add("Where", [np.array([True, False]), np.array(["yes", "ja"], object), np.array(["no", "nein"], object)])
    numbers = np.array([-2.7, -1, 0, 0.4, 1, 100.5], np.float32)
    for to in [T.DOUBLE, T.INT64, T.INT32, T.INT8, T.BOOL, T.FLOAT16]:
        own.add("Cast", [numbers], to=to)
    for array in [np.array([-3, 0, 7], np.int8), np.array([0, 250], np.uint8), np.array([-70000, 5], np.int32),
                  np.array([2 ** 40, -1], np.int64), np.array([True, False]), np.array([0.1, 65504, 1e-7], np.float16)]:
        own.add("Cast", [array], to=T.FLOAT)
        own.add("Cast", [array], to=T.INT64)
    own.add("Cast", [np.array(["1.5", "-2e3", "7"], object)], to=T.FLOAT)
    own.add("Cast", [np.array([1, -20], np.int64)], to=T.STRING)
    own.add("CastLike", [numbers, np.zeros(1, np.int32)], opset=15)


def movement(own):
    x = f32(2, 3, 4, 5)
    own.add("Reshape", [x, i64(0, -1, 5)])
    own.add("Reshape", [x, i64(4, 30)], constants=(1,))
    own.add("Transpose", [x])
    for perm in ([0, 2, 1, 3], [3, 1, 0, 2], [0, 2, 3, 1], [0, 3, 1, 2]):
        own.add("Transpose", [x], perm=perm)
    own.add("Transpose", [f32(70, 130)])
    own.add("Concat", [x, f32(2, 1, 4, 5), f32(2, 2, 4, 5)], axis=1)
    own.add("Concat", [x, f32(2, 3, 4, 2)], axis=-1)
    own.add("Concat", [np.array(["a"], object), np.array(["b", "cd"], object)], axis=0)
    own.add("Split", [x], outputs=2, axis=2)
    own.add("Split", [x, i64(1, 4)], outputs=2, axis=3)
    own.add("Split", [x], outputs=2, axis=3, split=[2, 3], opset=11)
    own.add("Split", [f32(7, 3)], outputs=3, axis=0, num_outputs=3, opset=18)
    own.add("Slice", [x, i64(0, 1), i64(2, 3), i64(2, 3), i64(1, 1)])
    own.add("Slice", [x, i64(-1, 4), i64(-100, 0), i64(1, 3), i64(-1, -2)])
    own.add("Slice", [x, i64(1), i64(2 ** 62), i64(-1), i64(3)], constants=(1, 2, 3, 4))
    own.add("Slice", [x], starts=[1, 0], ends=[3, -1], axes=[2, 3], opset=9)
    own.add("Squeeze", [f32(1, 3, 1, 2), i64(0, -2)])
    own.add("Squeeze", [f32(1, 3, 1, 2)], axes=[2], opset=11)
    own.add("Squeeze", [f32(1, 3, 1, 2)])
    own.add("Unsqueeze", [x, i64(0, -1)])
    own.add("Unsqueeze", [x], axes=[1, 3], opset=11)
    own.add("Flatten", [x], axis=2)
    own.add("Flatten", [x], axis=-1)
    own.add("Identity", [np.array(["x", ""], object)])
    own.add("Expand", [f32(3, 1), i64(2, 1, 6)])
    own.add("Tile", [x, i64(1, 2, 1, 3)])
    own.add("Gather", [x, np.array([[0, -1], [2, 1]], np.int64)], axis=1)
    own.add("Gather", [x, np.array(1, np.int32)], axis=3)
    own.add("Gather", [np.array(["p", "q", "r"], object), i64(2, 0)])
    own.add("GatherElements", [x, rng.integers(-3, 3, (2, 2, 4, 5))], axis=1)
    own.add("GatherND", [x, rng.integers(0, 2, (4, 2))])
    own.add("GatherND", [x, rng.integers(0, 3, (2, 6, 1))], batch_dims=1)
    own.add("ScatterElements", [x, rng.integers(-3, 3, (2, 1, 4, 5)), f32(2, 1, 4, 5)], axis=1)
    own.add("ScatterElements", [f32(6), i64(1, 1, 3), f32(3)], reduction="add", opset=16)
    own.add("ScatterND", [x, np.array([[0, 1], [1, 2]], np.int64), f32(2, 4, 5)])
    own.add("ScatterND", [f32(6), np.array([[1], [1]], np.int64), f32(2)], reduction="mul", opset=16)
    for mode in ("constant", "edge", "reflect"):
        own.add("Pad", [x, i64(0, 1, 2, 1, 0, 0, 1, 3)] + ([np.array(2.5, np.float32)] if mode == "constant" else []), mode=mode)
    own.add("Pad", [x, i64(0, 0, -1, 1, 0, 0, 0, -2)])
    own.add("Pad", [x], pads=[0, 1, 0, 0, 0, 0, 1, 0], value=1.5, opset=10)
    own.add("Trilu", [f32(2, 4, 5)], upper=0)
    own.add("Trilu", [f32(4, 6), np.array(2, np.int64)])
    own.add("Trilu", [f32(4, 6), np.array(-1, np.int64)], upper=0)
    own.add("DepthToSpace", [f32(2, 12, 3, 4)], blocksize=2)
    own.add("DepthToSpace", [f32(2, 12, 3, 4)], blocksize=2, mode="CRD")
    own.add("SpaceToDepth", [f32(2, 3, 6, 4)], blocksize=2)
    own.add("Shape", [x], opset=15, start=1, end=-1)
    own.add("Size", [x])
    own.add("ConstantOfShape", [i64(2, 3)], value=numpy_helper.from_array(np.array([7], np.int32)))
    own.add("Range", [np.array(1, np.int64), np.array(12, np.int64), np.array(3, np.int64)])
    own.add("Range", [np.array(2, np.float32), np.array(-1, np.float32), np.array(-0.5, np.float32)])
    own.add("NonZero", [np.array([[1, 0, 2], [0, 0, 3]], np.float32)])
    own.add("EyeLike", [f32(3, 4)], k=1)
    own.add("Dropout", [x], opset=13)


def write_node_tests(writer):
    from onnx.backend.test.loader import load_model_tests  # noqa: F401
    from onnx.backend.test import loader
    tests = loader.load_node_model_tests() if hasattr(loader, "load_node_model_tests") else loader.load_model_tests(kind="node")
    for test in tests:
        model = test.model
        if model is None or not test.data_sets:
            continue
        inputs, outputs = test.data_sets[0]
        def plain(values):
            return all(isinstance(v, np.ndarray) and (v.dtype.kind in "biufOUS" or v.dtype == np.float16) and
                       v.dtype.name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
                                        "uint16", "uint32", "uint64", "bool", "object") or (
                           isinstance(v, np.ndarray) and v.dtype.kind in "US") for v in values)
        inputs = [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in inputs]
        outputs = [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in outputs]
        inputs = [np.asarray(v) if np.isscalar(v) else v for v in inputs]
        outputs = [np.asarray(v) if np.isscalar(v) else v for v in outputs]
        if not plain(inputs) or not plain(outputs):
            continue
        names_in = [i.name for i in model.graph.input][:len(inputs)]
        names_out = [o.name for o in model.graph.output][:len(outputs)]
        writer.case(test.name, model, list(zip(names_in, inputs)), list(zip(names_out, outputs)), test.rtol, test.atol)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--node-tests", action="store_true")
    options = parser.parse_args()
    writer = Writer(options.out)
    own = Own(writer)
    for family in (products, convolutions, rows, elements, movement):
        family(own)
    if options.node_tests:
        write_node_tests(writer)
    writer.close()
    print(f"{len(writer.names)} cases")


if __name__ == "__main__":
    main()
