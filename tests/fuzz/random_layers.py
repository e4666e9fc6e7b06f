# SPDX-License-Identifier: Apache-2.0
"""Draws layers, quantization, control flow and sequences, like random_ops.py draws the other operators."""
import numpy as np
from onnx import TensorProto as T, helper
from random_graph import FLOATS, Refused, ask_ort, empty, info, single
from random_ops import axis_of, number, op


def floats(g, name):
    return [t for t in g.types(name) if t in FLOATS or t == "bfloat16"]


# ---- products ----
@op(weight=2)
def MatMul(g, name):
    x = g.any(g.types(name), ranks=range(1, 5), keep=lambda v: all(v.shape))
    k, n = x.shape[-1], g.dim()
    shape = (k, n) if g.chance(.9) else (k,)
    if len(shape) > 1 and x.array.ndim > 2 and g.chance(.4):
        shape = tuple(d if g.chance(.6) else 1 for d in x.shape[:-2]) + shape
    g.node(name, [x, g.source(g.array(x.dtype, shape, -2, 2))], exact=False if x.dtype == "float16" else None)


@op(weight=1.5)
def Gemm(g, name):
    x = g.any([t for t in g.types(name) if t != "float16"], ranks=[2], keep=lambda v: all(v.shape))
    a, b = g.int(0, 1), g.int(0, 1)
    m, k = x.shape[::-1] if a else x.shape
    n = max(1, g.dim())
    inputs = [x, g.source(g.array(x.dtype, (n, k) if b else (k, n), -2, 2))]
    if g.opset < 11 or g.chance(.6):
        inputs.append(g.source(g.array(x.dtype, g.pick([(n,), (m, n), (1, n), (m, 1), (1,)] + ([()] if g.opset >= 11 else [])))))
    scale = {k: number(g) for k in ("alpha", "beta") if g.chance(.4)} if x.array.dtype.kind == "f" else {}
    g.node(name, inputs, transA=a, transB=b, **scale)


@op(weight=.7)
def Einsum(g, name):
    x = g.any(["float32", "int64"], ranks=[2, 3], keep=lambda v: all(v.shape))
    y = g.source(g.array(x.dtype, (x.shape[-1], g.int(1, 5)), -2, 2))
    left = "abc"[3 - x.array.ndim:]
    g.node(name, [x, y], equation=g.pick([f"{left},cd->{left[:-1]}d", f"{left},cd->d{left[:-1]}", f"{left}, cd", f"{left},cd->", f"...c,cd->...d"]))


@op(weight=.6)
def MatMulInteger(g, name):
    kinds = [g.pick(["int8", "uint8"]) for _ in range(2)]
    m, k, n = (g.pick([1, 2, 3, 5, 8, 17]) for _ in range(3))
    a = g.source(g.array(kinds[0], (g.int(1, 2), m, k) if g.chance(.3) else (m, k), -120, 120))
    b = g.source(g.array(kinds[1], (k, n), -120, 120))
    zeros = []
    if g.chance(.7):
        zeros = [g.scalar(g.int(0, 9), kinds[0]), g.scalar(g.int(0, 9), kinds[1]) if g.chance(.7) else g.source(g.array(kinds[1], (n,), 0, 9))]
    g.node(name, [a, b, *zeros])


# ---- windows ----
def window(g, x, rank, most=3):
    given = {}
    kernel = [g.int(1, min(most, d + 1)) for d in x.shape[2:]]
    if g.chance(.5):
        given["strides"] = [g.int(1, 3) for _ in range(rank)]
    if g.chance(.3):
        given["dilations"] = [g.int(1, 2) for _ in range(rank)]
    way = g.int(0, 3)
    if way == 0:
        given["auto_pad"] = g.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
        if given["auto_pad"] != "VALID":
            given.pop("dilations", None)
            given["strides"] = [min(s, k) for s, k in zip(given.get("strides", [1] * rank), kernel)]  # avoids negative padding
    elif way < 3:
        given["pads"] = [g.int(0, k - 1) for k in kernel * 2]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, given.get("dilations", [1] * rank))]
    pads = given.get("pads", [0] * 2 * rank)
    if any(s > d + pads[i] + pads[i + rank] for i, (s, d) in enumerate(zip(spans, x.shape[2:]))):
        raise Refused("the window is larger than the input")
    return kernel, given


def picture(g, types, rank=None):
    if g.chance(.6) and rank is None:
        try:
            return g.any(types, ranks=[3, 4, 5], keep=lambda v: all(v.shape))
        except Refused:
            pass
    rank = rank or g.pick([1, 2, 2, 2, 3])
    return g.source(g.array(g.pick(types) if g.chance(.2) else "float32",
                            (g.int(1, 2), g.pick([1, 2, 3, 4, 6, 8, 16]), *(g.int(1, 9 if rank < 3 else 5) for _ in range(rank)))), constant=False)


@op(weight=2)
def Conv(g, name):
    x = picture(g, [t for t in floats(g, name) if t != "float16"])
    rank, channels = x.array.ndim - 2, x.shape[1]
    group = g.pick([d for d in range(1, channels + 1) if channels % d == 0]) if g.chance(.4) else 1
    outs = group * g.pick([1, 1, 2, 3, 8, 16] if group < 4 else [1, 2])
    kernel, given = window(g, x, rank)
    inputs = [x, g.source(g.array(x.dtype, (outs, channels // group, *kernel), -2, 2))]
    if g.chance(.5):
        inputs.append(g.source(g.array(x.dtype, (outs,))))
    g.node(name, inputs, group=group, **({"kernel_shape": kernel} if g.chance(.6) else {}), **given)


@op(weight=.6)
def ConvTranspose(g, name):
    x = picture(g, ["float32"])
    rank, channels = x.array.ndim - 2, x.shape[1]
    group = g.pick([d for d in range(1, channels + 1) if channels % d == 0]) if g.chance(.3) else 1
    kernel, given = window(g, x, rank)
    given.pop("auto_pad", None)
    if g.chance(.3) and "strides" in given:
        given["output_padding"] = [g.int(0, s - 1) for s in given["strides"]]
    y, = g.node(name, [x, g.source(g.array(x.dtype, (channels, g.int(1, 3), *kernel), -2, 2))], group=group, **given)
    if y.array.size == 0:  # nothing remains after padding: ONNX Runtime and Kelp reject that
        g.drop(y)


@op("MaxPool", "AveragePool", "LpPool")
def pool(g, name):
    x = picture(g, ["float32"])
    kernel, given = window(g, x, x.array.ndim - 2)
    schema = g.schema(name)
    if "dilations" not in schema.attributes:
        given.pop("dilations", None)
    if "ceil_mode" in schema.attributes and g.chance(.3):
        given["ceil_mode"] = 1
    if "count_include_pad" in schema.attributes and g.chance(.4):
        given["count_include_pad"] = 1
    if name == "LpPool":
        given["p"] = g.int(1, 3)
    g.node(name, [x], kernel_shape=kernel, exact=None if name == "MaxPool" else False, **given)


@op("GlobalAveragePool", "GlobalMaxPool", weight=.4)
def global_pool(g, name):
    x = picture(g, ["float32"])
    if "Max" in name and x.array.ndim != 4:
        raise Refused("the reference's answer has another rank")
    g.node(name, [x], exact=None if "Max" in name else False)


# ---- normalization ----
@op("Softmax", "LogSoftmax", "Hardmax", weight=.8)
def softmax(g, name):
    x = g.any([t for t in g.types(name) if t != "float16"], ranks=range(1, 5), exact=name == "Hardmax", keep=lambda v: all(v.shape))
    given = {"axis": axis_of(g, x)} if g.chance(.8) or x.array.ndim == 1 else {}
    arrays = None
    if g.opset < 13:  # rows included all later axes, which the reference does not implement
        axis = given.get("axis", 1) % x.array.ndim
        rows = x.array.reshape(int(np.prod(x.shape[:axis])), -1)
        e = np.exp(rows - rows.max(1, keepdims=True))
        soft = e / e.sum(1, keepdims=True)
        hard = np.eye(rows.shape[1], dtype=x.dtype)[rows.argmax(1)]
        arrays = [{"Softmax": soft, "LogSoftmax": rows - rows.max(1, keepdims=True) - np.log(e.sum(1, keepdims=True)), "Hardmax": hard}[name]
                  .reshape(x.shape).astype(x.dtype)]
    g.node(name, [x], exact=None if name == "Hardmax" else False, arrays=arrays, **given)


@op(weight=.8)
def BatchNormalization(g, name):
    x = g.any(["float32"], ranks=[2, 3, 4], keep=lambda v: all(v.shape))
    c = x.shape[1]
    scale, bias, mean = (g.source(g.array("float32", (c,))) for _ in range(3))
    var = g.source(np.asarray(g.rng.integers(1, 9, (c,)) / 4, np.float32))
    g.node(name, [x, scale, bias, mean, var], exact=False, epsilon=g.pick([1e-5, 1e-2]))


@op(weight=.5)
def InstanceNormalization(g, name):
    x = g.any(["float32"], ranks=[3, 4], exact=True, keep=lambda v: all(v.shape))
    g.node(name, [x, *(g.source(g.array("float32", (x.shape[1],))) for _ in range(2))], exact=False, epsilon=1e-2)


@op("LayerNormalization", "RMSNormalization", weight=.8)
def row_norm(g, name):
    g.schema(name)
    x = g.any(["float32"], ranks=range(1, 5), exact=True, keep=lambda v: all(v.shape))
    axis = axis_of(g, x)
    inputs = [x, g.source(g.array("float32", x.shape[axis:] if axis < 0 else x.shape[axis:]))]
    if name[0] == "L" and g.chance(.6):
        inputs.append(g.source(g.array("float32", x.shape[axis:])))
    g.node(name, inputs, exact=False, axis=axis, epsilon=1e-2)


@op(weight=.4)
def GroupNormalization(g, name):
    if g.opset < 21:
        raise Refused("its first version took one scale a group")
    x = g.any(["float32"], ranks=[3, 4], exact=True, keep=lambda v: all(v.shape))
    groups = g.pick([d for d in range(1, x.shape[1] + 1) if x.shape[1] % d == 0])
    g.node(name, [x, *(g.source(g.array("float32", (x.shape[1],))) for _ in range(2))], exact=False, num_groups=groups, epsilon=1e-2)


@op(weight=.4)
def LRN(g, name):
    x = g.any(["float32"], ranks=[4], keep=lambda v: all(v.shape))
    g.node(name, [x], exact=False, size=g.pick([1, 3, 5]), alpha=.5, beta=.75, bias=1.0)


@op("LpNormalization", weight=.3)
def lp_norm(g, name):
    x = g.any(["float32"], ranks=range(1, 4), exact=True, keep=lambda v: v.array.size and v.array.all())
    g.node(name, [x], exact=False, axis=axis_of(g, x), p=g.int(1, 2))


@op(weight=.4)
def Dropout(g, name):
    x = g.any(floats(g, name))
    g.node(name, [x], outputs=g.int(1, 2) if g.opset >= 10 else 1)


@op(weight=.8)
def Resize(g, name):
    if g.opset < 11:
        raise Refused("older ones had other rules")
    x = g.any(["float32"], ranks=[3, 4], keep=lambda v: all(v.shape))
    mode = g.pick(["nearest", "linear", "linear", "cubic"])
    inputs = [x, None, g.const(*(1.0 if i < x.array.ndim - 2 else g.pick([.5, 1.0, 1.5, 2.0, 3.0]) for i in range(x.array.ndim)), dtype="float32")]
    where = g.pick(["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"])
    given = {"nearest_mode": g.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])} if mode == "nearest" else {}
    if g.opset < 13:
        inputs[1] = g.source(np.zeros(0, np.float32), constant=True)
    g.node(name, inputs, exact=None if mode == "nearest" else False, mode=mode, coordinate_transformation_mode=where, **given)


# ---- quantization ----
def dequantize(g, x, scale, zero, axis):
    """DequantizeLinear; the reference has none before version 19."""
    per = [d if i == axis % x.array.ndim else 1 for i, d in enumerate(x.shape)] if scale.array.ndim else []
    shift = zero[0].array.astype(np.float64).reshape(per) if zero else 0
    arrays = [((x.array.astype(np.float64) - shift) * scale.array.reshape(per)).astype(np.float32)] if g.opset < 19 else None
    return g.node("DequantizeLinear", [x, scale, *zero], arrays=arrays, **({"axis": axis} if g.opset >= 13 and per else {}))[0]


@op(weight=.8)
def QuantizeLinear(g, name):
    x = g.any(["float32"], exact=True)
    kind = g.pick(["int8", "uint8"])
    per_axis = g.opset >= 13 and x.array.ndim and all(x.shape) and g.chance(.4)
    axis = axis_of(g, x) if per_axis else 1
    shape = (x.shape[axis],) if per_axis else ()
    scale = g.source(np.asarray(2.0 ** g.rng.integers(-3, 2, shape), np.float32))
    inputs = [x, scale] + ([g.source(g.array(kind, shape, 0, 20))] if g.chance(.8) else [])
    g.node(name, inputs, **({"axis": axis} if g.opset >= 13 else {}))


@op(weight=1.2)
def DequantizeLinear(g, _):
    x = g.any(["int8", "uint8"])
    per_axis = g.opset >= 13 and x.array.ndim and all(x.shape) and g.chance(.4)
    axis = axis_of(g, x) if per_axis else 1
    shape = (x.shape[axis],) if per_axis else ()
    scale = g.source(np.asarray(2.0 ** g.rng.integers(-3, 2, shape), np.float32))
    dequantize(g, x, scale, [g.source(g.array(x.dtype, shape, 0, 20))] if g.chance(.8) else [], axis)


@op(weight=.4)
def DynamicQuantizeLinear(g, name):
    x = g.any(["float32"], exact=True, keep=lambda v: v.array.size and v.dtype == "float32")
    low, high = min(0.0, float(x.array.min())), max(0.0, float(x.array.max()))
    if high - low == 0:
        raise Refused("no range")
    step = np.float32((np.float32(high) - np.float32(low)) / np.float32(255))
    at = x.array / step
    if (np.abs(at % 1 - .5) < 1e-3).any() or abs(-low / step % 1 - .5) < 1e-3:
        raise Refused("on a step")
    g.node(name, [x], outputs=3, exact=False)


@op(weight=.5)
def QuantizedProduct(g, _):
    """MatMul between DequantizeLinear and QuantizeLinear, which is fused to an integer product."""
    m, k, n = (g.pick([1, 2, 3, 5, 8, 17]) for _ in range(3))
    kind = g.pick(["int8", "uint8"])
    a = dequantize(g, g.source(g.array(kind, (m, k), -100, 100), constant=False), g.scalar(.25, "float32"), [g.scalar(g.int(0, 5), kind)], 1)
    b = dequantize(g, g.source(g.array("int8", (k, n), -100, 100), constant=True), g.scalar(.125, "float32"), [g.scalar(0, "int8")], 1)
    y, = g.node("MatMul", [a, b])
    g.node("QuantizeLinear", [y, g.scalar(64.0, "float32"), g.scalar(g.int(0, 9), kind)])


# ---- recurrent ----
@op("LSTM", "GRU", "RNN", weight=.5)
def recurrent(g, name):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[name]
    steps, batch, size, hidden = g.int(1, 5), g.int(1, 3), g.int(1, 6), g.int(1, 6)
    way = g.pick(["forward", "reverse", "bidirectional"])
    d = 2 if way == "bidirectional" else 1

    def weights(*shape):
        return g.source(np.asarray(g.rng.integers(-4, 5, shape) / 8, np.float32))

    inputs = [g.source(g.array("float32", (steps, batch, size), -2, 2)), weights(d, gates * hidden, size), weights(d, gates * hidden, hidden)]
    inputs.append(weights(d, 2 * gates * hidden) if g.chance(.7) else None)
    inputs.append(g.source(np.asarray(g.rng.integers(1, steps + 1, (batch,)), np.int32)) if g.chance(.4) else None)
    if g.chance(.6):
        inputs += [weights(d, batch, hidden)] * (2 if name == "LSTM" else 1)
    given = {"linear_before_reset": g.int(0, 1)} if name == "GRU" else {}
    outputs = 3 if name == "LSTM" else 2
    node = helper.make_node(name, [v.name if v is not None else "" for v in inputs], [f"y{i}" for i in range(outputs)], hidden_size=hidden,
                            direction=way, **given)
    held = {v.name: v.array for v in inputs if v is not None}
    arrays = ask_ort(single(node, held, g.opset), held)  # the reference supports neither two directions nor lengths
    if arrays is None:
        raise Refused("ONNX Runtime does not run it")
    g.node(name, inputs, outputs=outputs, exact=False, arrays=arrays, hidden_size=hidden, direction=way, **given)


# ---- control flow and sequences ----
@op(weight=.8)
def If(g, name):
    x = g.any(["float32", "int64"])
    y = g.partner(x)
    cond = g.source(np.array(g.chance(.5)), constant=g.chance(.3))
    branches = []
    for kind in (g.pick(["Add", "Mul", "Sub"]), g.pick(["Add", "Sub", "Max"])):
        if kind == "Max" and (g.opset < 8 or (g.opset < 12 and x.dtype == "int64")):
            kind = "Sub"
        made = g.name("b")
        branches.append(helper.make_graph([helper.make_node(kind, [x.name, y.name], [made])], g.name("branch"), [], [empty(made)]))
    g.node(name, [cond], reads=[x, y], then_branch=branches[0], else_branch=branches[1])


@op(weight=.8)
def Loop(g, name):
    x = g.any(["float32", "int64"], keep=lambda v: v.array.size < 200)
    y = g.partner(x)
    try:
        if np.broadcast_shapes(x.shape, y.shape) != x.shape:
            raise Refused("the state would grow")
    except ValueError as error:
        raise Refused("shapes") from error
    trips = g.int(0 if g.chance(.1) else 1, 4)
    kind = g.pick(["Add", "Sub"])
    i, c, s, c2, s2, out = (g.name("l") for _ in range(6))
    nodes = [helper.make_node("Identity", [c], [c2]), helper.make_node(kind, [s, y.name], [s2]), helper.make_node("Neg", [s2], [out])]
    inner = helper.make_graph(nodes, g.name("body"), [info(i, np.array(0, np.int64)), info(c, np.array(True)), info(s, x.array)],
                              [info(c2, np.array(True)), info(s2, x.array), info(out, x.array)])
    # the reference concatenates the parts of a scan output along an existing axis; the standard requires a new one
    state, pieces = x.array, []
    for _ in range(trips):
        state = state + y.array if kind == "Add" else state - y.array
        pieces.append(-state)
    stacked = np.stack(pieces) if pieces else np.zeros((0, *x.shape), x.array.dtype)
    g.node(name, [g.scalar(trips), g.scalar(True, "bool"), x], outputs=2, reads=[y], arrays=[state, stacked], body=inner)


@op(weight=.6)
def Scan(g, name):
    if g.opset < 9:
        raise Refused("another form")
    x = g.any(["float32", "int64"], ranks=[1, 2, 3], keep=lambda v: v.shape[0] > 0)
    state = g.source(g.array(x.dtype, x.shape[1:]))
    s, e, s2, out = (g.name("s") for _ in range(4))
    inner = helper.make_graph([helper.make_node("Add", [s, e], [s2]), helper.make_node("Sub", [s2, e], [out])], g.name("body"),
                              [info(s, state.array), info(e, state.array)], [info(s2, state.array), info(out, state.array)])
    g.node(name, [state, x], outputs=2, body=inner, num_scan_inputs=1)


@op(weight=.5)
def Sequence(g, _):
    """Writes to a sequence and reads the elements again."""
    if g.opset < 11:
        raise Refused("no sequences yet")
    x = g.any(["float32", "int64"], ranks=range(1, 4), keep=lambda v: all(v.shape))
    axis = axis_of(g, x)
    parts, made = g.name("q"), g.name()
    nodes = [helper.make_node("SplitToSequence", [x.name], [parts], axis=axis)]
    if g.chance(.5):
        nodes.append(helper.make_node("ConcatFromSequence", [parts], [made], axis=axis))
        return g.several(nodes, [x], made)
    at = g.scalar(g.int(-x.shape[axis], x.shape[axis] - 1))
    nodes.append(helper.make_node("SequenceAt", [parts, at.name], [made]))
    return g.several(nodes, [x, at], made)


@op(weight=.3)
def Optional(g, _):
    if g.opset < 15:
        raise Refused("no optionals yet")
    x = g.any(["float32", "int64"])
    held, made = g.name("o"), g.name()
    kind = helper.make_tensor_type_proto(T.FLOAT if x.dtype == "float32" else T.INT64, None)
    return g.several([helper.make_node("Optional", [x.name], [held], type=kind), helper.make_node("OptionalGetElement", [held], [made])], [x], made)
