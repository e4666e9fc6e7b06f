# SPDX-License-Identifier: Apache-2.0
"""What random graphs and mutated models (tests/fuzz) found: one case for each mistake that they showed."""
import ml_dtypes  # noqa: F401 (gives numpy the names of the small types)
import numpy as np
from common import T, f32, helper, i64
from fusion import chain


def cases(own):
    # without axes the squares, absolute values and logarithms remain
    for op in ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceMean"):
        own.add(op, [f32(3, 1, 4)], opset=18, noop_with_empty_axes=1, reference="onnx")
        own.add(op, [f32(2, 5), i64()], opset=18, noop_with_empty_axes=1, keepdims=0, constants=[1], reference="onnx")
    own.add("ReduceLogSum", [f32(2, 3, low=0.5)], opset=18, noop_with_empty_axes=1, reference="onnx")
    own.add("ReduceSumSquare", [np.arange(-3, 3, dtype=np.int32)], opset=18, noop_with_empty_axes=1, reference=[np.array([9, 4, 1, 0, 1, 4], np.int32)])
    # Erf of integers is cut off
    for kind in (np.int64, np.int8, np.int32):
        own.add("Erf", [np.arange(-6, 7, dtype=kind)], opset=9, reference="onnx")
    own.add("Erf", [np.arange(0, 9, dtype=np.uint16)], opset=9, reference="onnx")
    # weights of 8 bytes that lie at any address of the file
    for count in (1, 2, 3):
        for op, kernel in (("Conv", (count, 2, 1, 3)), ("ConvTranspose", (2, count, 1, 3))):
            own.add(op, [f32(1, 2, 2, 5).astype("f8"), f32(*kernel).astype("f8"), f32(count).astype("f8")], opset=11, constants=[1, 2], reference="onnx")
    # one output, though its window does not cover the input
    x = f32(3, 3, 2)
    own.add("AveragePool", [x], opset=19, kernel_shape=[2], dilations=[2], pads=[0, 1], reference=[x[:, :, :1]])
    x = f32(2, 3, 2, 2)
    own.add("AveragePool", [x], opset=19, kernel_shape=[1, 4], strides=[2, 1], pads=[0, 0, 0, 2], reference=[x[:, :, :1].mean(3, keepdims=True)])
    own.add("MaxPool", [x], opset=12, kernel_shape=[1, 4], strides=[2, 1], pads=[0, 0, 0, 2], reference=[x[:, :, :1].max(3, keepdims=True)])
    # windows whose rows lie as far apart as they move, or half as far: which rows hold no input was counted wrong
    for size, down, apart, pads in ((3, 2, 2, [2, 2, 0, 1]), (3, 2, 2, [3, 1, 0, 1]), (5, 2, 2, [1, 3, 2, 3]), (3, 4, 2, [3, 1, 2, 1]), (3, 3, 3, [2, 1, 2, 1])):
        for high, wide in ((9, 5), (8, 22), (13, 70)):
            around = {"strides": [down, 1], "dilations": [apart, 1], "pads": pads}
            own.add("Conv", [f32(2, 3, high, wide), f32(3, 1, size, size), f32(3)], group=3, **around)
            around["pads"] = [min(p, 2) for p in pads]
            own.add("MaxPool", [f32(2, 3, high, wide)], kernel_shape=[size, size], **around)
            own.add("AveragePool", [f32(2, 3, high, wide)], opset=19, kernel_shape=[size, size], **around)
    # a type's number that no type has: it was looked up beside a table, or cut to 32 bits and taken for another's
    for number in (-2**31, 2**31, 2**32 + 1, 2**62 + 1, 0, 127):
        own.refuse("Cast", [f32(2, 3)], "to", opset=13, to=number)
    own.refuse("BitCast", [f32(2, 3)], "BitCast", opset=26, to=-2**31)
    own.refuse("EyeLike", [f32(2, 3)], "EyeLike", opset=9, dtype=2**32 + 1)
    own.refuse("RandomNormalLike", [f32(2, 3)], "RandomNormalLike", dtype=-2**31)
    # floats of a byte: which of them have infinities
    for kind in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
        x = np.array([np.nan, np.inf, -np.inf, 1.5, -2, 0], np.float32).astype(kind)
        wide = x.astype(np.float32)
        own.add("IsNaN", [x], opset=20, reference=[np.isnan(wide)])
        own.add("IsInf", [x], opset=20, reference=[np.isinf(wide)])
        own.add("IsInf", [x], opset=20, detect_negative=0, reference=[np.isposinf(wide)])
    # complex numbers
    for kind in (np.complex64, np.complex128):
        own.add("NonZero", [np.array([[0, 1j, 2], [-3 + 1j, 0, 0]], kind)], opset=13, reference=[np.array([[0, 0, 1], [1, 2, 0]])])
    passes(own)


def passes(own):
    """Chains that a pass took for one of its own."""
    # constants of more axes than what they are joined to
    node, six = helper.make_node, np.full((1,), 6, np.float32)
    chain(own, "swish_of_a_number", np.array(1.25, np.float32), [node("Add", ["x", "three"], ["a"]), node("Clip", ["a", "zero", "top"], ["g"]),
                                                                   node("Mul", ["x", "g"], ["m"]), node("Div", ["m", "six"], ["y"])],
          {"three": np.array(3, np.float32), "zero": np.array(0, np.float32), "top": np.array(6, np.float32), "six": six})
    chain(own, "attention_of_five_axes", f32(3, 8), [
        node("Reshape", ["x", "shape"], ["h"]), node("Transpose", ["h"], ["k"], perm=[0, 1, 3, 2]), node("MatMul", ["h", "k"], ["p"]),
        node("Mul", ["p", "half"], ["s"]), node("Softmax", ["s"], ["w"]), node("MatMul", ["w", "h"], ["y"])],
          {"half": np.full((1, 1, 1, 1, 1), .5, np.float32), "shape": i64(1, 2, 3, 4)})
    # one channel that becomes three
    chain(own, "one_channel_scaled", f32(2, 1, 5, 4), [node("Mul", ["x", "k"], ["m"]), node("Add", ["m", "k"], ["a"]), node("Conv", ["a", "w"], ["y"])],
          {"k": f32(3, 1, 1), "w": f32(2, 3, 2, 2)})
    # Add of before numpy's rules: the other axis of a square
    x, w, b = f32(3, 4), f32(4, 3), f32(3)
    chain(own, "rows_added", x, [node("MatMul", ["x", "w"], ["p"]), node("Add", ["p", "b"], ["y"], broadcast=1, axis=0)], {"w": w, "b": b}, opset=6,
          reference=[x @ w + b[:, None]])
    # a Loop that only counts
    body = helper.make_graph([node("Identity", ["c"], ["d"]), node("Neg", ["x"], ["n"])], "body",
                             [helper.make_tensor_value_info("i", T.INT64, []), helper.make_tensor_value_info("c", T.BOOL, [])],
                             [helper.make_tensor_value_info("d", T.BOOL, []), helper.make_tensor_value_info("n", T.FLOAT, [2])])
    x = f32(2)
    chain(own, "counted", x, [node("Loop", ["three", ""], ["y"], body=body)], {"three": np.array(3)}, reference=[np.stack([-x] * 3)])
    # a window that meets nothing but padding
    own.add("AveragePool", [f32(2, 7, 1)], opset=19, dilations=[2], kernel_shape=[2], pads=[1, 1], reference=[np.zeros((2, 7, 1), np.float32)])
    packed(own)


def packed(own):
    """What only moves elements moves those of less than a byte too."""
    for name in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
        x = np.arange(-15, 15).reshape(2, 3, 5) % 4 if name[0] == "u" else np.arange(-15, 15).reshape(2, 3, 5) % 4 - 2
        x = x.astype(np.float32).astype(np.dtype(name))
        own.add("Transpose", [x], opset=25, perm=[2, 0, 1], reference=[np.ascontiguousarray(x.transpose(2, 0, 1))])
        pads = i64(0, 1, 0, 0, 0, 2)
        own.add("Pad", [x, pads, np.ones((), x.dtype)], opset=25, constants=[1],
                reference=[np.pad(x.astype(np.float32), ((0, 0), (1, 0), (0, 2)), constant_values=1).astype(x.dtype)])
        own.add("Pad", [x, i64(1, 0, 2, 0, 0, 0)], opset=25, mode="reflect",
                reference=[np.pad(x.astype(np.float32), ((1, 0), (0, 0), (2, 0)), mode="reflect").astype(x.dtype)])
    # what is left of the last byte is zero
    for name, count in (("uint4", 33), ("int4", 1), ("uint2", 6)):
        x = f32(count, low=0, high=6)
        own.add("QuantizeLinear", [x, np.float32(2), np.ones((), np.dtype(name))], opset=25,
                reference=[np.clip(np.rint(x / 2) + 1, 0, 3 if name == "uint2" else 7).astype(np.dtype(name))])
