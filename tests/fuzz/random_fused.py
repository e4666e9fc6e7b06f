# SPDX-License-Identifier: Apache-2.0
"""Draws chains of operators that Kelp's passes (src/graph/passes) fuse, like random_ops.py draws single ones.

Most differ in a detail: a constant with another value or more axes, another axis or order, an operand that is not constant, a value that
another node reads. A wrong fusion appears as a difference from ONNX's reference, and from Kelp without fusion.
"""
import numpy as np
from onnx import helper
from random_graph import Refused
from random_layers import dequantize, picture, window
from random_ops import axis_of, op

SQRT2 = float(np.sqrt(2))


def shaped(g, number, x, dtype=None):
    """Returns a constant that a pass expects: usually a scalar, sometimes with axes of size 1, rarely with more axes than x."""
    rank = g.pick([0, 0, 0, 1, x.array.ndim]) if g.chance(.9) else x.array.ndim + 1
    return g.source(np.full((1,) * rank, number, dtype or x.dtype), constant=g.chance(.95))


def about(g, number, others=(1.5, -1.0, 2.0, .25)):
    """Returns the number, or another one."""
    return number if g.chance(.85) else float(g.pick(others))


def weight(g, shape, dtype="float32", low=-2, high=2):
    return g.source(g.array(dtype, shape, low, high), constant=g.chance(.92))


def binary(g, op_type, a, b, ordered=False):
    return g.node(op_type, [a, b] if ordered or g.chance(.6) else [b, a])[0]


def watched(g, x):
    """Returns x, sometimes with another node that reads it."""
    if g.chance(.08):
        g.node(g.pick(["Neg", "Abs"]), [x])
    return x


def floats(g, shape):
    """Returns an input with small numbers."""
    return g.source(g.array("float32" if g.chance(.93) else "float64", shape), constant=False)


# ---- activations ----
def gelu(g, x):
    inner = binary(g, "Div", x, shaped(g, about(g, SQRT2), x), True) if g.chance(.6) else binary(g, "Mul", x, shaped(g, about(g, SQRT2 / 2), x))
    erf, = g.node("Erf", [watched(g, inner)], exact=False)
    return halve(g, x, binary(g, "Add", watched(g, erf), shaped(g, about(g, 1.0), x)))


def halve(g, x, total):
    """Returns total * x * ½ in some order."""
    other = x if g.chance(.92) else g.partner(x)
    way, half = g.int(0, 2), shaped(g, about(g, .5), x)
    if way == 0:
        return binary(g, "Mul", watched(g, binary(g, "Mul", total, other)), half)
    if way == 1:
        return binary(g, "Mul", watched(g, binary(g, "Mul", total, half)), other)
    return binary(g, "Mul", total, binary(g, "Mul", other, half))


def gelu_tanh(g, x):
    if g.chance(.5):
        cube, = g.node("Pow", [x, shaped(g, about(g, 3.0, (2.0,)), x)], exact=False)
    else:
        cube = binary(g, "Mul", binary(g, "Mul", x, x), x)
    total = binary(g, "Add", x, binary(g, "Mul", cube, shaped(g, about(g, .044715), x)))
    tanh, = g.node("Tanh", [binary(g, "Mul", total, shaped(g, about(g, .7978845608), x))], exact=False)
    return halve(g, x, binary(g, "Add", tanh, shaped(g, about(g, 1.0), x)))


def silu(g, x):
    inner = binary(g, "Mul", x, shaped(g, 1.702, x)) if g.chance(.2) else x
    gate, = g.node("Sigmoid", [inner], exact=False)
    return binary(g, "Mul", watched(g, gate), x if g.chance(.92) else g.partner(x))


def clip(g, x, low, high):
    if g.opset < 11:
        return g.node("Clip", [x], min=float(low), max=float(high))[0]
    bounds = [g.source(np.array(v, x.dtype), constant=g.chance(.95)) if g.chance(.95) else None for v in (low, high)]
    return g.node("Clip", [x, *bounds])[0]


def hard_swish(g, x):
    if g.chance(.25):
        gate, = g.node("HardSigmoid", [x], exact=False, alpha=about(g, 1 / 6), beta=about(g, .5))
        return binary(g, "Mul", gate, x)
    gate = clip(g, watched(g, binary(g, "Add", x, shaped(g, about(g, 3.0), x))), about(g, 0.0, (-1.0,)), about(g, 6.0, (5.0,)))
    if g.chance(.5):
        return binary(g, "Mul", watched(g, sixth(g, x, gate)), x if g.chance(.92) else g.partner(x))
    return sixth(g, x, watched(g, binary(g, "Mul", gate, x if g.chance(.92) else g.partner(x))))


def sixth(g, x, value):
    if g.chance(.6):
        return binary(g, "Div", value, shaped(g, about(g, 6.0), x), True)
    return binary(g, "Mul", value, shaped(g, about(g, 1 / 6), x))


def activation(g, x):
    kind = g.pick(["Relu", "Relu", "Tanh", "Sigmoid", "relu6", "gelu", "gelu_tanh", "silu", "hard_swish", "HardSwish", "Gelu", "LeakyRelu", ""])
    pieces = {"gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu, "hard_swish": hard_swish}
    if kind in pieces:
        return pieces[kind](g, x)
    if kind == "relu6":
        return clip(g, x, about(g, 0.0, (-1.0,)), about(g, 6.0, (1.0,)))
    if not kind or not g.has(kind) or (kind == "Gelu" and g.opset < 20) or (kind == "HardSwish" and g.opset < 14):
        return x
    given = {"approximate": "tanh"} if kind == "Gelu" and g.chance(.5) else {}
    return g.node(kind, [x], exact=None if kind == "Relu" else False, **given)[0]


@op(weight=1.5)
def ActivationPieces(g, _):
    x = g.any(["float32"], ranks=range(0, 4)) if g.chance(.5) else floats(g, g.shape(g.int(0, 3), 200))
    activation(g, x)


# ---- convolutions ----
def channels(g, x, count, low=-4, high=4):
    """Returns a constant for the channels of x: one for each, one for all, or another shape that broadcasts."""
    rank = x.array.ndim
    shape = g.pick([(count,) + (1,) * (rank - 2), (1, count) + (1,) * (rank - 2), (), (1,), (1,) * rank])
    if g.chance(.12):
        shape = g.pick([x.shape[-1:], x.shape[1:], x.shape[2:], (1,) * (rank + 1), (1, 1, count) + (1,) * (rank - 2), (x.shape[0], 1) + (1,) * (rank - 2)])
    return g.source(g.array(x.dtype, shape, low, high), constant=g.chance(.93))


def affine(g, x):
    if x.dtype == "float32" and g.chance(.35):
        c = x.shape[1]
        scale, bias, mean = (weight(g, (c,)) for _ in range(3))
        var = g.source(np.asarray(g.rng.integers(1, 9, (c,)) / 4, np.float32), constant=g.chance(.95))
        return g.node("BatchNormalization", [x, scale, bias, mean, var], exact=False, epsilon=g.pick([1e-5, 1e-2]))[0]
    return binary(g, g.pick(["Mul", "Add", "Mul", "Add", "Sub", "Div"]), x, channels(g, x, x.shape[1], 1, 4))


@op(weight=3)
def ConvChain(g, _):
    x = picture(g, ["float32"])
    narrow = x.shape[1] == 1 and g.chance(.4)
    for _ in range(g.int(0, 2) if g.chance(.5) else 0):
        x = binary(g, g.pick(["Mul", "Add"]), watched(g, x), channels(g, x, g.int(2, 4) if narrow else x.shape[1]))
        narrow = False
    if x.array.ndim > 5:
        raise Refused("more than three spatial axes, which Kelp has not")
    if g.chance(.1):
        x, = g.node("Pad", [x, g.const(0, 0, *(g.int(0, 2) for _ in x.shape[2:]), 0, 0, *(g.int(0, 2) for _ in x.shape[2:]))]) if g.opset >= 11 else [x]
    count, rank = x.shape[1], x.array.ndim - 2
    for _ in range(g.int(1, 2)):
        groups = g.pick([1, 1, 1, count] + [d for d in range(1, count + 1) if count % d == 0])
        outs = groups * g.pick([1, 1, 2, 4, 8] if groups < 4 else [1, 2])
        kernel, given = window(g, x, rank) if g.chance(.7) else ([1] * rank, {})
        w = weight(g, (outs, count // groups, *kernel), x.dtype)
        before, x = x, g.node("Conv", [x, w, *([weight(g, (outs,), x.dtype)] if g.chance(.5) else [])], group=groups, **given)[0]
        if not all(x.shape):
            raise Refused("nothing is left")
        for _ in range(g.int(0, 2)):
            x = affine(g, watched(g, x))
        if x.array.ndim != rank + 2:
            return
        x = activation(g, watched(g, x))
        if g.chance(.4):
            x = binary(g, "Add", watched(g, x), before if before.shape == x.shape and g.chance(.7) else g.partner(x))
            x = activation(g, x)
        if x.array.ndim != rank + 2 or not all(x.shape):
            return
        count = x.shape[1]


# ---- products ----
@op(weight=3)
def ProductChain(g, _):
    x = floats(g, tuple(max(1, d) for d in g.shape(g.int(1, 4), 600)))
    for _ in range(g.int(1, 2)):
        k, n = x.shape[-1], g.pick([1, 2, 3, 4, 8, 16, 17, 32])
        if g.chance(.15):
            x, = g.node("Transpose", [x], perm=g.rng.permutation(x.array.ndim).tolist())
            k = x.shape[-1]
        w = weight(g, (n, k) if g.chance(.15) else (k, n), x.dtype, -1, 1)
        if w.shape != (k, n):
            w, = g.node("Transpose", [w], perm=[1, 0])
        if w.shape != (k, n):
            raise Refused("does not fit")
        x, = g.node("MatMul", [x, w])
        if g.chance(.75) and x.array.ndim:
            shape = g.pick([(n,)] * 5 + [(1, n), (1,) * (x.array.ndim - 1) + (n,), (1,), (), x.shape, (*x.shape[:-1], 1), (1,) * x.array.ndim + (n,), x.shape[-2:]])
            x = binary(g, "Add" if g.chance(.92) else "Sub", watched(g, x), weight(g, shape, x.dtype))
        x = activation(g, watched(g, x))
        if x.array.ndim == 0 or not all(x.shape):
            return
        if g.chance(.2):
            x = binary(g, "Add", x, g.partner(x))


@op(weight=1.2)
def LookupChain(g, _):
    depth, n = g.int(1, 6), g.pick([1, 3, 4, 8])
    shape = g.shape(g.int(0, 2), 40)
    if g.chance(.5):
        at = g.source(np.asarray(g.rng.integers(-depth - 1, depth + 2, shape), g.pick([np.int64, np.int32])), constant=False)
        rank = at.array.ndim
        hot, = g.node("OneHot", [at, g.scalar(depth), g.source(np.array([0, 1] if g.chance(.9) else [1, 3], np.float32), constant=True)],
                      axis=g.pick([-1, -1, rank, 0]))
    else:
        dtype = g.pick(["int64", "int32"])
        if g.opset < 11:
            dtype = "int64"
        at = g.source(np.asarray(g.rng.integers(-2, depth + 2, (*shape, 1)), dtype), constant=False)
        numbers = np.arange(depth) if g.chance(.9) else np.arange(depth)[::-1]
        equal = binary(g, "Equal", at, g.source(numbers.astype(dtype).reshape(g.pick([(depth,), (1, depth)])), constant=True))
        hot, = g.node("Cast", [equal], to=1)
    if hot.array.ndim == 0 or hot.shape[-1] != depth:
        raise Refused("another axis")
    x, = g.node("MatMul", [hot, g.source(g.array("float32", (depth, n)), constant=True)])
    for _ in range(g.int(0, 3)):
        if g.chance(.5):
            shape = g.pick([(n,), (1, n), (), (1,), x.shape, (*x.shape[:-1], 1) if x.array.ndim else (), (1,) * (x.array.ndim + 1)])
            x = binary(g, g.pick(["Add", "Sub", "Mul", "Div"]), x, g.source(np.asarray(g.rng.integers(1, 9, shape) / 4, np.float32), constant=g.chance(.9)))
        else:
            x, = g.node(g.pick(["Relu", "Tanh", "Sigmoid", "Erf", "Neg", "HardSigmoid"]), [watched(g, x)], exact=False)


# ---- norms ----
def mean(g, x, axes, keepdims=1):
    if g.opset < 18:
        return g.node("ReduceMean", [x], axes=axes, keepdims=keepdims, exact=False)[0]
    return g.node("ReduceMean", [x, g.source(np.array(axes, np.int64), constant=g.chance(.95))], keepdims=keepdims, exact=False)[0]


def square(g, d):
    if g.chance(.5):
        return g.node("Pow", [d, shaped(g, about(g, 2.0, (4.0,)), d)], exact=False)[0]
    return binary(g, "Mul", d, d)


def columns(g, x):
    n = x.shape[-1]
    shape = (n,) if g.chance(.8) else g.pick([(1,), (), (1, n), x.shape, (*x.shape[:-1], 1), (1,) * x.array.ndim + (n,)])
    return weight(g, shape, x.dtype)


def last_axes(g, x):
    rank = x.array.ndim
    return [g.pick([-1, rank - 1])] if g.chance(.85) else g.pick([[-2] if rank > 1 else [0], [0], list(range(rank))])


@op(weight=1.5)
def LayerNormPieces(g, _):
    x = floats(g, tuple(max(1, d) for d in g.shape(g.int(1, 4), 300)))
    axes = last_axes(g, x)
    d = binary(g, "Sub", x, mean(g, x, axes, 1 if g.chance(.97) else 0), True)
    variance = mean(g, square(g, d), axes if g.chance(.92) else last_axes(g, x))
    root, = g.node("Sqrt", [binary(g, "Add", variance, shaped(g, about(g, 1e-2, (0.5, 1.0)), x))], exact=False)
    y = binary(g, "Div", d, watched(g, root), True)
    if g.chance(.9):
        y = binary(g, "Mul", watched(g, y), columns(g, x))
    if g.chance(.8):
        y = binary(g, "Add", watched(g, y), columns(g, x))


@op(weight=.8)
def RmsNormPieces(g, _):
    x = floats(g, tuple(max(1, d) for d in g.shape(g.int(1, 4), 300)))
    total = binary(g, "Add", mean(g, square(g, x), last_axes(g, x)), shaped(g, 1e-2, x))
    root, = g.node("Sqrt", [total], exact=False)
    if g.chance(.5):
        y = binary(g, "Div", x, root, True)
    else:
        y = binary(g, "Mul", x, g.node("Reciprocal", [root], exact=False)[0])
    binary(g, "Mul", y, columns(g, x))


@op(weight=1)
def SkipNorm(g, _):
    if g.opset < 17:
        raise Refused("no LayerNormalization yet")
    x = floats(g, tuple(max(1, d) for d in g.shape(g.int(1, 4), 300)))
    other = floats(g, x.shape) if g.chance(.6) else g.partner(x)
    if other.dtype != x.dtype:
        raise Refused("another type")
    total = binary(g, "Add", x, other)
    rank = total.array.ndim
    axis = g.pick([-1, rank - 1]) if g.chance(.85) else axis_of(g, total)
    shape = total.shape[axis:]
    inputs = [watched(g, total), weight(g, shape, x.dtype), *([weight(g, shape, x.dtype)] if g.chance(.8) else [])]
    g.node("LayerNormalization", inputs, exact=False, axis=axis, epsilon=1e-2)


# ---- attention ----
def masked(g, scores, batch, heads, queries, keys):
    shape = g.pick([(batch, 1, queries, keys), (batch, 1, 1, keys), (1, 1, queries, keys), (1, 1, 1, keys), (queries, keys), (keys,),
                    (batch, heads, queries, keys), (1, heads, 1, keys)])
    if g.chance(.15):
        shape = g.pick([(batch, 1, queries, 1), (1, 1, 1, 1), (), (1,), (1, queries, keys), (1, heads, 1, 1), (2 if batch == 1 else batch, 1, 1, keys),
                        (1, 1, 1, queries, keys)])
    return binary(g, "Add", watched(g, scores), g.source(g.array(scores.dtype, shape), constant=g.chance(.3)))


def shares(g, q, k, batch, heads, queries, keys, size):
    scores, = g.node("MatMul", [q, k], exact=False)
    if g.chance(.8):
        root = float(np.sqrt(size))
        scores = binary(g, "Div", scores, shaped(g, root, scores), True) if g.chance(.5) else binary(g, "Mul", scores, shaped(g, 1 / root, scores))
    if g.chance(.6):
        scores = masked(g, scores, batch, heads, queries, keys)
    axis = g.pick([-1, 3]) if g.chance(.93) else 2
    if g.opset < 13:  # the reference does not implement this version on inner axes
        axis = scores.array.ndim - 1
    soft, = g.node("Softmax", [watched(g, scores)], exact=False, axis=axis)
    return watched(g, soft)


@op(weight=1.5)
def AttentionPieces(g, _):
    batch, heads, queries, keys, size = g.int(1, 2), g.int(1, 3), g.int(1, 4), g.int(1, 5), g.pick([1, 2, 4, 8])
    if g.opset < 9:
        raise Refused("nothing exported this")

    def split(length, perm):
        x = floats(g, (batch, length, heads * size))
        dims = g.pick([(0, 0, heads, size), (0, -1, heads, size), (batch, length, heads, size), (batch, -1, heads, size)])
        x, = g.node("Reshape", [x, g.source(np.array(dims, np.int64), constant=True)])
        return g.node("Transpose", [watched(g, x)], perm=perm)[0]

    q, v = split(queries, [0, 2, 1, 3]), split(keys, [0, 2, 1, 3])
    if g.chance(.6):
        k = split(keys, [0, 2, 3, 1])
    else:
        k, = g.node("Transpose", [split(keys, [0, 2, 1, 3])], perm=[0, 1, 3, 2])
    if len({q.dtype, k.dtype, v.dtype}) > 1:
        raise Refused("another type")
    y, = g.node("MatMul", [shares(g, q, k, batch, heads, queries, keys, size), v], exact=False)
    if y.array.ndim != 4:
        return
    y, = g.node("Transpose", [watched(g, y)], perm=[0, 2, 1, 3] if g.chance(.93) else [0, 1, 2, 3])
    dims = g.pick([(0, 0, heads * size), (0, 0, -1), (0, -1, heads * size), (batch, queries, heads * size), (-1, queries, heads * size)])
    g.node("Reshape", [y, g.source(np.array(dims, np.int64), constant=True)])


@op(weight=1.2)
def AttentionHeadsPieces(g, _):
    batch, few, group, queries, keys, size = g.int(1, 2), g.int(1, 2), g.pick([1, 1, 2, 3]), g.int(1, 4), g.int(1, 5), g.pick([1, 2, 4, 8])
    heads = few * group
    q = floats(g, (batch, heads, queries, size))

    def repeated():
        x = g.source(g.array(q.dtype, (batch if g.chance(.93) else 1, few, keys, size)), constant=False)
        if group == 1 or g.opset < 8:
            return x
        near = x.shape[0]
        x, = g.node("Unsqueeze", [x, g.const(2)]) if g.opset >= 13 else g.node("Unsqueeze", [x], axes=[2])
        x, = g.node("Expand", [x, g.source(np.array((near, few, group, keys, size), np.int64), constant=True)])
        if g.chance(.1):  # another order of the heads
            x, = g.node("Transpose", [x], perm=[0, 2, 1, 3, 4])
        return g.node("Reshape", [watched(g, x), g.source(np.array((near, heads, keys, size), np.int64), constant=True)])[0]

    k, = g.node("Transpose", [repeated()], perm=[0, 1, 3, 2])
    y = shares(g, q, k, batch, heads, queries, keys, size)
    g.node("MatMul", [y, repeated()], exact=False)


# ---- quantized ----
def dequantized(g, kind, shape, axis=None, constant=False):
    scale_shape = () if axis is None else (shape[axis],)
    scale = g.source(np.asarray(2.0 ** g.rng.integers(-3, 1, scale_shape), np.float32), constant=g.chance(.93))
    x = g.source(g.array(kind, shape, -20, 20), constant=constant)
    zero = [g.source(g.array(kind, scale_shape, 0, 9) * np.array(g.pick([0, 1]), kind), constant=g.chance(.95))] if g.chance(.8) else []
    return dequantize(g, x, scale, zero, axis or 0)


@op(weight=2)
def QuantizedChain(g, _):
    if g.opset < 10:
        raise Refused("no QuantizeLinear yet")
    per = g.opset >= 13 and g.chance(.4)
    kind, weights = g.pick(["uint8", "int8"]), g.pick(["int8", "int8", "uint8"])
    if g.chance(.5):
        lead, k, n = g.pick([(2,), (3,), (2, 3), (1,)]), g.pick([1, 2, 4, 5, 16, 17]), g.pick([1, 2, 3, 8, 16])
        x = dequantized(g, kind, (*lead, k))
        if len(lead) == 1 and g.chance(.4):
            turned = g.chance(.5)
            w = dequantized(g, weights, (n, k) if turned else (k, n), g.pick([0, 1]) if per else None, True)
            x, = g.node("Gemm", [watched(g, x), w, *([weight(g, (n,))] if g.opset < 11 or g.chance(.6) else [])], transB=int(turned))
        else:
            w = dequantized(g, weights, (k, n), g.pick([1, 1, 1, 0]) if per else None, True)
            x, = g.node("MatMul", [watched(g, x), w])
            if g.chance(.5):
                x = binary(g, "Add", watched(g, x), weight(g, g.pick([(n,), (1, n), (), x.shape])))
    else:
        count, outs = g.pick([1, 2, 3, 4, 8]), g.pick([1, 2, 4, 8])
        groups = count if outs % count == 0 and g.chance(.4) else 1
        x = dequantized(g, kind, (g.int(1, 2), count, g.int(1, 6), g.int(1, 6)))
        kernel, given = window(g, x, 2) if g.chance(.6) else ([1, 1], {})
        w = dequantized(g, weights, (outs, count // groups, *kernel), g.pick([0, 0, 0, 1]) if per else None, True)
        x, = g.node("Conv", [watched(g, x), w, *([weight(g, (outs,))] if g.chance(.6) else [])], group=groups, **given)
        if not all(x.shape):
            raise Refused("nothing is left")
    if g.chance(.5):
        x, = g.node("Relu", [watched(g, x)]) if g.chance(.6) else [clip(g, x, 0.0, 6.0)]
    scale = g.source(np.array(2.0 ** g.int(0, 3), np.float32), constant=g.chance(.95))
    if g.chance(.75):
        if not x.exact:
            raise Refused("on a step")
        zero = [g.source(g.array(kind, (), 0, 9), constant=g.chance(.95))] if g.chance(.85) else []
        q, = g.node("QuantizeLinear", [watched(g, x), scale, *zero])
        if g.chance(.5):
            dequantize(g, q, scale, zero, 0)


@op(weight=.8)
def DynamicQuantizedChain(g, _):
    if g.opset < 11:
        raise Refused("no DynamicQuantizeLinear yet")
    m, k, n = g.int(1, 3), g.pick([2, 3, 8, 17]), g.pick([1, 2, 4, 8])
    # a range of 255 steps of 0.25 that includes both ends, so that no element is halfway between two steps
    array = np.asarray(g.rng.integers(-100, 101, (m, k)) / 4, np.float32)
    low = g.int(0, 255) / 4
    array.reshape(-1)[0], array.reshape(-1)[-1] = -low, 63.75 - low
    x = g.source(np.clip(array, -low, 63.75 - low), constant=False)
    q, s, z = g.node("DynamicQuantizeLinear", [x], outputs=3)
    w = g.source(g.array(g.pick(["int8", "uint8"]), (k, n), -20, 20), constant=g.chance(.95))
    zero = [g.source(g.array(w.dtype, g.pick([(), (n,)]), 0, 9), constant=True)] if g.chance(.6) else []
    y, = g.node("MatMulInteger", [q, w, z if g.chance(.95) else None, *zero] if zero or g.chance(.9) else [q, w])
    y, = g.node("Cast", [watched(g, y)], to=1)
    by = g.source(np.asarray(2.0 ** g.rng.integers(-3, 1, g.pick([(), (1,), (n,), (1, n)])), np.float32), constant=g.chance(.95))
    y = binary(g, "Mul", watched(g, y), binary(g, "Mul", s, by) if g.chance(.9) else s)
    if g.chance(.6):
        y = binary(g, "Add", watched(g, y), weight(g, g.pick([(n,), (1, n), (), y.shape])))
    activation(g, y)


@op(weight=.25)
def LargeByteWeights(g, _):
    """Weights that remain 8-bit, in MatMul or a table."""
    if g.opset < 13:
        raise Refused("no axis yet")
    table = g.chance(.3)
    rows, n = (4100, 257) if table else (g.pick([256, 300]), g.pick([256, 257]))
    w = g.source(g.array(g.pick(["int8", "uint8"]), (rows, n), -9, 9), constant=True)
    per = g.pick([None, 1, 0])
    scale = g.source(np.asarray(2.0 ** g.rng.integers(-4, 0, () if per is None else (w.shape[per],)), np.float32), constant=True)
    zero = [g.source(g.array(w.dtype, scale.shape, 0, 3), constant=True)] if g.chance(.6) else []
    if g.chance(.6):
        nodes = [helper.make_node("DequantizeLinear", [v.name for v in (w, scale, *zero)], [g.name("w")], **({} if per is None else {"axis": per}))]
    else:
        if per == 0:
            raise Refused("not written so")
        zero, cast = [], g.name("w")
        nodes = [helper.make_node("Cast", [w.name], [cast], to=1), helper.make_node("Mul", [cast, scale.name], [g.name("w")])]
    made = g.name()
    if table:
        x = g.source(np.asarray(g.rng.integers(-rows, rows, g.pick([(), (3,), (2, 2)])), np.int64), constant=False)
        nodes.append(helper.make_node("Gather", [nodes[-1].output[0], x.name], [made], axis=0))
    else:
        x = floats(g, (g.int(1, 3), rows))
        if x.dtype != "float32":
            raise Refused("another type")
        nodes.append(helper.make_node("MatMul", [x.name, nodes[-1].output[0]], [made]))
    g.several(nodes, [w, scale, x, *zero], made)
    y = g.values[-1]
    if not table and g.chance(.6):
        y = binary(g, "Add", y, weight(g, (n,)))
        activation(g, y)


# ---- shapes and layouts ----
@op(weight=1.5)
def ShapeArithmetic(g, _):
    """Reshape, Expand or Slice with a computed shape."""
    if g.opset < 11:
        raise Refused("written otherwise")
    x = g.any(["float32", "int64"], ranks=range(1, 5), keep=lambda v: all(v.shape))
    shape, = g.node("Shape", [x], arrays=[np.array(x.shape, np.int64)])

    def extent(i):
        if g.chance(.7):
            return g.node("Gather", [shape, g.source(np.array(i if g.chance(.5) else [i], np.int64), constant=True)], axis=0)[0]
        return g.node("Slice", [shape, g.const(i), g.const(i + 1), g.const(0)])[0]

    def flat(v):
        if v.array.ndim:
            return v
        return g.node("Unsqueeze", [v, g.const(0)])[0] if g.opset >= 13 else g.node("Unsqueeze", [v], axes=[0])[0]

    rank = x.array.ndim
    parts = [extent(i) for i in range(rank)]
    way = g.int(0, 4)
    if way == 0 and rank > 1:  # merges two axes
        i = g.int(0, rank - 2)
        parts[i:i + 2] = [g.node("Mul", [parts[i], parts[i + 1]])[0]] if g.chance(.7) else [g.source(np.array([-1], np.int64), constant=True)]
    elif way == 1:  # splits an axis
        i = g.int(0, rank - 1)
        by = g.pick([d for d in range(1, x.shape[i] + 1) if x.shape[i] % d == 0])
        parts[i:i + 1] = [g.node("Div", [parts[i], g.scalar(by)])[0], g.source(np.array([by], np.int64), constant=True)]
    elif way == 2:
        total, = g.node("Concat", [flat(p) for p in parts], axis=0)
        ones, = g.node("ConstantOfShape", [total], **({"value": helper.make_tensor("v", 1 if x.dtype == "float32" else 7, [1], [1])}))
        return g.node("Mul", [x, ones])
    elif way == 3:  # as exporters write Expand
        total, = g.node("Concat", [flat(p) for p in parts], axis=0)
        wanted = g.source(np.array([d if g.chance(.5) else -1 for d in x.shape], np.int64), constant=True)
        same = g.node("Equal", [wanted, g.source(np.array(-1, np.int64), constant=True)])[0]
        return g.node("Expand", [x, g.node("Where", [same, total, wanted])[0]])
    elif way == 4:  # the first half of an axis
        i = g.int(0, rank - 1)
        middle = flat(g.node("Div", [parts[i], g.scalar(2)])[0])
        first, = g.node("Slice", [x, g.const(0), middle, g.const(i)])
        second, = g.node("Slice", [x, middle, flat(parts[i]), g.const(i)])
        return g.node("Concat", [second, first], axis=i)
    total, = g.node("Concat", [flat(p) for p in parts], axis=0)
    if g.chance(.3):
        total, = g.node("Cast", [total], to=6)
        total, = g.node("Cast", [total], to=7)
    g.node("Reshape", [x, total])


@op(weight=1.2)
def Turns(g, _):
    """Several transposes and reshapes with other nodes between them."""
    x = g.any(["float32"], ranks=range(2, 5), keep=lambda v: all(v.shape))
    for _ in range(g.int(2, 4)):
        rank = x.array.ndim
        way = g.int(0, 5)
        if way < 3:
            x, = g.node("Transpose", [watched(g, x)], perm=g.rng.permutation(rank).tolist())
        elif way == 3:
            dims = list(x.shape)
            i = g.int(0, rank - 1)
            dims[i:i + 1] = [1, dims[i]] if rank < 5 and g.chance(.5) else [dims[i]]
            x, = g.node("Reshape", [x, g.const(*(int(d) for d in dims))])
        elif way == 4:
            x, = g.node(g.pick(["Relu", "Neg", "Identity", "Abs"]), [x])
        else:
            x = binary(g, g.pick(["Add", "Mul"]), x, g.partner(x) if g.chance(.7) else shaped(g, about(g, 1.0), x))
        if x.array.ndim < 2 or not all(x.shape):
            return
    if x.array.ndim >= 2 and g.chance(.5):
        g.node("MatMul", [x, weight(g, (x.shape[-1], g.int(1, 5)), x.dtype)])
