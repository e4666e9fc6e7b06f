# SPDX-License-Identifier: Apache-2.0
"""Draws a node of each operator with its inputs and attributes. OPS maps a label to (weight, function of a Graph, module)."""
import numpy as np
from onnx import helper
from random_graph import ALL, FLOATS, INTEGERS, NUMBERS, Refused, kind

OPS = {}


def op(*names, weight=1):
    def add(function):
        for name in names or (function.__name__,):
            OPS[name] = (weight, (lambda g, name=name: function(g, name)), function.__module__)
        return function
    return add


def jumps(g, name):
    """Returns an exact value, for a discontinuous operator."""
    return g.any(g.types(name), exact=True)


def number(g, low=-2.0, high=2.0):
    return float(g.rng.integers(int(low * 4), int(high * 4) + 1) / 4)


# ---- elementwise ----
@op("Abs", "Neg", "Relu", "Identity", "Not", "BitwiseNot", weight=.6)
def exact_unary(g, name):
    g.node(name, [g.any(g.types(name))])


@op("Floor", "Ceil", "Round", "Sign", "IsNaN", "IsInf", weight=.5)
def jumping_unary(g, name):
    g.node(name, [jumps(g, name)])


@op("Exp", "Erf", "Tanh", "Sigmoid", "Sin", "Cos", "Atan", "Sinh", "Cosh", "Asinh", "Softplus", "Softsign", "HardSwish", "Mish", "Tan", weight=.5)
def smooth_unary(g, name):
    g.node(name, [g.any(g.types(name))], exact=False)


@op("Sqrt", "Log", "Reciprocal", "Asin", "Acos", "Atanh", "Acosh", weight=.3)
def partial_unary(g, name):
    dtype = g.pick([t for t in g.types(name) if t in FLOATS])
    low, high = (-3, 3) if name in ("Asin", "Acos", "Atanh") else (4, 40)
    g.node(name, [g.source(np.asarray(g.rng.integers(low, high, g.shape()) / 4, dtype))], exact=False)


@op("LeakyRelu", "Elu", "Selu", "Celu", "HardSigmoid", "ThresholdedRelu", "Gelu", "Swish", "Shrink", weight=.4)
def unary_with_attributes(g, name):
    jump = name in ("ThresholdedRelu", "Shrink")
    given = {}
    for key in g.schema(name).attributes:
        if g.chance(.6):
            given[key] = g.pick(["none", "tanh"]) if key == "approximate" else abs(number(g)) + .25
    g.node(name, [jumps(g, name) if jump else g.any(g.types(name))], exact=None if jump else False, **given)


@op("Clip")
def clip(g, name):
    x = g.any(g.types(name))
    low, high = sorted([g.int(-3, 3), g.int(-3, 3)])
    if g.opset < 11:
        return g.node(name, [x], min=float(low), max=float(high))
    if x.dtype.startswith("uint"):
        low, high = abs(low), abs(high)
    bounds = [g.scalar(low, x.dtype) if g.chance(.7) else None, g.scalar(high, x.dtype) if g.chance(.7) else None]
    g.node(name, [x, *bounds])


@op("Add", "Sub", "Mul", weight=1.5)
def arithmetic(g, name):
    x = g.any(g.types(name))
    pair = [x, g.partner(x)]
    g.node(name, pair if g.chance(.6) else pair[::-1])


@op("Div", "Mod", "Pow")
def careful_arithmetic(g, name):
    x = g.any(g.types(name), exact=True)
    y = g.partner(x, exact=True)
    if name != "Pow" and not y.array.all():
        y = g.source(np.where(y.array == 0, np.asarray(3, y.array.dtype), y.array))
    if name == "Pow" and kind(x.dtype) in "iu":
        y = g.source(np.abs(y.array) % 4)
    given = {"fmod": 1} if name == "Mod" and (kind(x.dtype) == "f" or g.chance(.4)) else {}
    g.node(name, [x, y], exact=None if name == "Mod" or kind(x.dtype) != "f" else False, **given)


@op("And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", weight=.4)
def logic(g, name):
    x = g.any(g.types(name))
    g.node(name, [x, g.partner(x)])


@op("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", weight=.6)
def comparison(g, name):
    x = jumps(g, name)
    g.node(name, [x, g.partner(x, exact=True)])


@op("BitShift", weight=.3)
def bit_shift(g, name):
    x = g.any(g.types(name))
    g.node(name, [x, g.source(g.array(x.dtype, x.shape, 0, 5))], direction=g.pick(["LEFT", "RIGHT"]))


@op("Max", "Min", "Sum", "Mean", weight=.6)
def variadic(g, name):
    x = g.any(g.types(name))
    others = range(g.int(0, 3))
    items = [x] + [g.partner(x) if g.opset >= 8 else g.source(g.array(x.dtype, x.shape)) for _ in others]
    g.node(name, items, exact=False if name == "Mean" else None)


@op()
def Where(g, name):
    x = g.any(ALL)
    y = g.partner(x)
    mask = g.partner(x, same_type=False, dtypes=["bool"])
    g.node(name, [mask, x, y] if g.chance(.5) else [mask, y, x])


@op(weight=.4)
def PRelu(g, name):
    x = g.any(g.types(name), ranks=range(1, 6))
    slope = (x.shape[1],) + (1,) * (x.array.ndim - 2) if x.array.ndim > 2 and g.chance(.5) else x.shape[g.int(0, x.array.ndim - 1):]
    g.node(name, [x, g.source(g.array(x.dtype, slope, -2, 2))])


@op(weight=2)
def Cast(g, name):
    x = g.any(ALL)
    to = g.pick(NUMBERS if g.chance(.8) else ALL)
    if kind(x.dtype) in "cO":
        raise Refused("see random_types.py")
    if kind(x.dtype) == "f" and np.dtype(to).kind in "iub":
        # not specified: out of range, or negative to unsigned
        if not x.exact or (x.array.size and (np.abs(x.array.astype(np.float64)).max() > 100 or (np.dtype(to).kind == "u" and x.array.min() < 0))):
            raise Refused("undetermined")
    g.node(name, [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))


@op(weight=.3)
def CastLike(g, name):
    x = g.any(INTEGERS)
    g.node(name, [x, g.any([*FLOATS, "int64", "int32"])])


# ---- reductions ----
def axes_of(g, rank):
    count = g.int(1, max(1, min(rank, 3)))
    axes = g.rng.permutation(rank)[:count].tolist() if rank else []
    return [a - rank if g.chance(.4) else a for a in axes]


@op("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceLogSum",
    weight=.5)
def reduction(g, name):
    smooth = name in ("ReduceMean", "ReduceL2", "ReduceLogSumExp", "ReduceLogSum", "ReduceProd")
    x = g.any(g.types(name), keep=lambda v: v.array.size > 0 or not smooth)
    given = {"keepdims": g.int(0, 1)} if g.chance(.7) else {}
    axes = axes_of(g, x.array.ndim) if g.chance(.8) else []
    inputs = [x]
    if "axes" in g.schema(name).attributes:
        if axes:
            given["axes"] = axes
    else:
        if axes or g.chance(.2):
            inputs.append(g.source(np.array(axes, np.int64), constant=g.chance(.8)))
        if g.chance(.3):
            given["noop_with_empty_axes"] = g.int(0, 1)
    g.node(name, inputs, exact=False if smooth else None, **given)


@op("ArgMax", "ArgMin", weight=.5)
def arg(g, name):
    x = g.any(g.types(name), ranks=range(1, 6), exact=True)
    given = {"axis": axis_of(g, x)} if g.chance(.8) else {}
    if g.opset >= 12 and g.chance(.4):
        given["select_last_index"] = g.int(0, 1)
    g.node(name, [x], keepdims=g.int(0, 1), **given)


def axis_of(g, x):
    rank = x.array.ndim
    if rank == 0:
        raise Refused("no axis")
    return g.int(-rank, rank - 1) if g.opset >= 11 else g.int(0, rank - 1)


@op("CumSum", "CumProd", weight=.5)
def cumulative(g, name):
    x = g.any(g.types(name), ranks=range(1, 5))
    g.node(name, [x, g.scalar(axis_of(g, x), g.pick(["int32", "int64"]))], exclusive=g.int(0, 1), reverse=g.int(0, 1))


@op(weight=.7)
def TopK(g, name):
    x = g.any(g.types(name), ranks=range(1, 5), exact=True)
    axis = axis_of(g, x)
    k = g.int(0 if g.chance(.1) else min(1, x.shape[axis]), x.shape[axis])
    # the lower index of equal elements is first
    if g.opset < 10:
        return g.node(name, [x], outputs=2, k=k, axis=axis)
    g.node(name, [x, g.const(k)], outputs=2, axis=axis, **({"largest": g.int(0, 1), "sorted": 1} if g.opset >= 11 else {}))


# ---- shapes ----
@op(weight=2)
def Reshape(g, name):
    x = g.any(ALL)
    dims, left = [], int(x.array.size)
    for _ in range(g.int(0, 3)):
        factors = [d for d in range(1, 34) if left and left % d == 0] or [0]
        dims.append(g.pick(factors))
        left //= dims[-1] or 1
    if x.array.size == 0:
        dims = list(g.rng.permutation(x.shape)) + [1]
        return g.node(name, [x, g.const(*(int(d) for d in dims))], **({"allowzero": 1} if g.opset >= 14 else {}))
    dims.append(left)
    if not x.array.ndim and g.chance(.3):
        dims = []
    g.rng.shuffle(dims)
    if dims and g.chance(.5):
        dims[g.int(0, len(dims) - 1)] = -1
    for i, d in enumerate(dims):
        if i < x.array.ndim and d == x.shape[i] and g.chance(.4):
            dims[i] = 0
    g.node(name, [x, g.const(*(int(d) for d in dims))])


@op(weight=2)
def Transpose(g, name):
    x = g.any(ALL)
    g.node(name, [x], **({"perm": g.rng.permutation(x.array.ndim).tolist()} if g.chance(.85) and x.array.ndim else {}))


def axes_node(g, name, x, axes):
    if "axes" in g.schema(name).attributes:
        return g.node(name, [x], axes=axes)
    g.node(name, [x, g.const(*axes)])


@op()
def Squeeze(g, name):
    x = g.any(ALL, keep=lambda v: 1 in v.shape)
    ones = [i for i, d in enumerate(x.shape) if d == 1]
    if g.chance(.2):
        return g.node(name, [x])
    axes = [a for a in ones if g.chance(.6)] or ones[:1]
    axes_node(g, name, x, [a - x.array.ndim if g.opset >= 11 and g.chance(.4) else a for a in axes])


@op()
def Unsqueeze(g, name):
    x = g.any(ALL, ranks=range(0, 4))
    count = g.int(1, 2)
    rank = x.array.ndim + count
    axes = g.rng.permutation(rank)[:count].tolist()
    if g.opset < 13:
        axes.sort()  # the reference inserts one after another, so its negative axes are relative to a smaller rank
    negative = g.opset >= 13 or (g.opset >= 11 and count == 1)
    axes_node(g, name, x, [a - rank if negative and g.chance(.4) else a for a in axes])


@op(weight=.6)
def Flatten(g, name):
    x = g.any(g.types(name))
    rank = x.array.ndim
    g.node(name, [x], **({"axis": g.int(-rank if g.opset >= 11 else 0, rank)} if g.chance(.8) or rank == 0 else {}))


@op()
def Expand(g, name):
    x = g.any(ALL)
    shape = [g.dim() if d == 1 and g.chance(.6) else d for d in x.shape]
    shape = [g.int(1, 3)] * g.int(0, 1) + [1 if d and g.chance(.2) else d for d in shape]
    g.node(name, [x, g.const(*shape)])


@op(weight=.6)
def Tile(g, name):
    x = g.any(ALL, ranks=range(1, 5))
    g.node(name, [x, g.const(*(g.pick([0, 1, 1, 1, 2, 2, 3]) for _ in x.shape))])


@op(weight=2)
def Concat(g, name):
    x = g.any(ALL, ranks=range(1, 5))
    axis = axis_of(g, x)
    others = []
    for _ in range(g.int(0, 3)):
        shape = list(x.shape)
        shape[axis] = g.dim()
        same = [v for v in g.values if v.dtype == x.dtype and v.array.ndim == x.array.ndim and
                all(a == b for i, (a, b) in enumerate(zip(v.shape, x.shape)) if i != axis % x.array.ndim)]
        others.append(g.pick(same) if same and g.chance(.6) else g.source(g.array(x.dtype, tuple(shape))))
    g.node(name, [x, *others], axis=axis)


@op()
def Split(g, name):
    x = g.any(ALL, ranks=range(1, 5))
    axis = axis_of(g, x)
    count = g.int(1, 4)
    cuts = sorted(g.int(0, x.shape[axis]) for _ in range(count - 1))
    parts = [b - a for a, b in zip([0, *cuts], [*cuts, x.shape[axis]])]
    if g.opset >= 18 and g.chance(.4):
        return g.node(name, [x], outputs=count, axis=axis, num_outputs=count)
    if "split" in g.schema(name).attributes:
        return g.node(name, [x], outputs=count, axis=axis, split=parts)
    g.node(name, [x, g.const(*parts)], outputs=count, axis=axis)


@op(weight=2)
def Slice(g, name):
    x = g.any(ALL, ranks=range(1, 6))
    axes = g.rng.permutation(x.array.ndim)[:g.int(1, x.array.ndim)].tolist()
    starts, ends, steps = [], [], []
    for a in axes:
        d = x.shape[a]
        starts.append(g.int(-d - 2, d + 2))
        ends.append(g.pick([g.int(-d - 2, d + 2), 2**31 - 1, -2**31 + 1, d]))
        steps.append(g.pick([1, 1, 2, 3, -1, -2]))
    if g.opset < 10:
        return g.node(name, [x], starts=starts, ends=ends, axes=axes)
    dtype = g.pick(["int32", "int64"])
    inputs = [x, g.const(*starts, dtype=dtype), g.const(*ends, dtype=dtype)]
    full = axes == list(range(len(axes))) and g.chance(.4)
    with_steps = g.chance(.6)
    if not full or with_steps:
        inputs.append(None if full else g.const(*axes, dtype=dtype))
    if with_steps:
        inputs.append(g.const(*steps, dtype=dtype))
    g.node(name, inputs)


def indices(g, shape, bound, negative=True):
    if bound == 0:
        if np.prod(shape, dtype=np.int64) > 0:
            raise Refused("nothing to index")
        return np.zeros(shape, np.int64)
    low = -bound if negative and g.opset >= 11 and g.chance(.5) else 0
    return np.asarray(g.rng.integers(low, bound, shape), np.int64)


@op(weight=1.5)
def Gather(g, name):
    x = g.any(ALL, ranks=range(1, 5))
    axis = axis_of(g, x)
    at = indices(g, g.shape(g.int(0, 2), 60), x.shape[axis])
    g.node(name, [x, g.source(at.astype(g.pick(["int32", "int64"])))], axis=axis)


@op(weight=.6)
def GatherElements(g, name):
    x = g.any(ALL, ranks=range(1, 5))
    axis = axis_of(g, x)
    shape = [g.int(0 if d == 0 else 1, d) for d in x.shape]
    shape[axis] = g.dim()
    g.node(name, [x, g.source(indices(g, tuple(shape), x.shape[axis]))], axis=axis)


def nd_indices(g, x, batch=0):
    depth = g.int(1, x.array.ndim - batch)
    lead = x.shape[:batch] + g.shape(g.int(0, 1) if batch else g.int(1, 2), 40)
    return np.stack([indices(g, lead, x.shape[batch + i]) for i in range(depth)], -1), depth


@op(weight=.6)
def GatherND(g, name):
    x = g.any(ALL, ranks=range(1, 5))
    batch = g.int(0, x.array.ndim - 1) if g.opset >= 12 and g.chance(.4) else 0
    at, _ = nd_indices(g, x, batch)
    g.node(name, [x, g.source(at)], **({"batch_dims": batch} if batch else {}))


def scatter_reduction(g):
    return {"reduction": g.pick(["none", "add", "mul"] + (["max", "min"] if g.opset >= 18 else []))} if g.opset >= 16 and g.chance(.6) else {}


@op(weight=.6)
def ScatterND(g, name):
    x = g.any(NUMBERS, ranks=range(1, 5))
    at, depth = nd_indices(g, x)
    given = scatter_reduction(g)
    if given.get("reduction", "none") == "none":  # the order of two writes is not specified
        flat = at.reshape(-1, depth) % np.maximum(x.shape[:depth], 1)
        if len(np.unique(flat, axis=0)) < len(flat):
            raise Refused("twice the same place")
    g.node(name, [x, g.source(at), g.source(g.array(x.dtype, at.shape[:-1] + x.shape[depth:]))], **given)


@op("ScatterElements", weight=.6)
def scatter_elements(g, name):
    x = g.any(NUMBERS, ranks=range(1, 4))
    axis = axis_of(g, x)
    shape = [g.int(0 if d == 0 else 1, d) for d in x.shape]
    at = indices(g, tuple(shape), x.shape[axis])
    given = scatter_reduction(g)
    if given.get("reduction", "none") == "none":
        rows = np.moveaxis(at % max(x.shape[axis], 1), axis, 0).reshape(at.shape[axis], -1) if at.size else at
        if at.size and any(len(np.unique(c)) < len(c) for c in rows.T):
            raise Refused("twice the same place")
    g.node(name, [x, g.source(at), g.source(g.array(x.dtype, at.shape))], axis=axis, **given)


@op()
def Pad(g, name):
    x = g.any(g.types(name), ranks=range(1, 5))
    mode = g.pick(["constant", "constant", "reflect", "edge"] + (["wrap"] if g.opset >= 19 else []))
    limit = [max(0, min(d - 1, 3)) for d in x.shape] if mode != "constant" else [3] * x.array.ndim
    pads = [g.int(-1 if mode == "constant" and d > 4 and g.chance(.2) else 0, m) for d, m in [*zip(x.shape, limit)] * 2]
    if g.opset < 11:
        return g.node(name, [x], pads=[max(0, p) for p in pads], mode=mode, value=number(g))
    inputs = [x, g.const(*pads)]
    if mode == "constant" and g.chance(.5):
        inputs.append(g.scalar(g.int(0, 3), x.dtype))
    g.node(name, inputs, mode=mode)


@op(weight=1.5)
def Shape(g, name):
    x = g.any(ALL)
    given = {k: g.int(-3, 4) for k in ("start", "end") if g.opset >= 15 and g.chance(.4)}
    g.node(name, [x], **given)


@op(weight=.3)
def Size(g, name):
    g.node(name, [g.any(ALL)])


@op(weight=.5)
def ConstantOfShape(g, name):
    shapes = [v for v in g.values if v.dtype == "int64" and v.array.ndim == 1 and (v.array >= 0).all() and np.prod(v.array) < 2000 and len(v.array) < 5]
    shape = g.pick(shapes) if shapes and g.chance(.7) else g.const(*g.shape(g.int(0, 3)))
    dtype = g.pick(ALL)
    given = {"value": helper.make_tensor("v", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [1], [g.int(0, 3)])} if g.chance(.7) else {}
    g.node(name, [shape], **given)


@op(weight=.4)
def Range(g, name):
    dtype = g.pick(["int64", "int32", "float32"])
    step = g.pick([1, 2, 3, -1, -2])
    g.node(name, [g.scalar(g.int(-5, 5), dtype), g.scalar(g.int(-9, 9), dtype), g.scalar(step, dtype)])


@op(weight=.5)
def OneHot(g, name):
    depth = g.int(1, 6)
    x = g.source(np.asarray(g.rng.integers(-depth, depth + 1, g.shape(g.int(0, 2), 60)), np.int64))
    dtype = g.pick(["float32", "int64", "int32"])
    rank = x.array.ndim + 1
    g.node(name, [x, g.scalar(depth), g.source(g.array(dtype, (2,)))], axis=g.int(-rank, rank - 1))


@op("NonZero", weight=.5)
def non_zero(g, name):
    g.node(name, [g.any(ALL, ranks=range(1, 5), exact=True)])


@op(weight=.5)
def Compress(g, name):
    x = g.any(ALL, ranks=range(1, 5))
    axis = axis_of(g, x) if g.chance(.7) else None
    length = x.array.size if axis is None else x.shape[axis]
    mask = g.source(g.array("bool", (g.int(0, length),)))
    g.node(name, [x, mask], **({} if axis is None else {"axis": axis}))


@op(weight=.6)
def Trilu(g, name):
    x = g.any(ALL, ranks=range(2, 5), keep=lambda v: v.dtype != "object")  # the zero of strings is not specified
    inputs = [x, g.scalar(g.int(-6, 6))] if g.chance(.7) else [x]
    g.node(name, inputs, upper=g.int(0, 1))


@op(weight=.3)
def EyeLike(g, name):
    g.node(name, [g.any(g.types(name), ranks=[2])], k=g.int(-3, 3))


@op("DepthToSpace", "SpaceToDepth", weight=.4)
def blocks(g, name):
    n, c, h, w, b = g.int(1, 2), g.int(1, 3), g.int(1, 4), g.int(1, 4), g.int(1, 3)
    shape = (n, c * b * b, h, w) if name[0] == "D" else (n, c, h * b, w * b)
    x = g.fresh(["float32"], shape=shape)
    g.node(name, [x], blocksize=b, **({"mode": g.pick(["DCR", "CRD"])} if name[0] == "D" and g.opset >= 11 else {}))


@op(weight=.4)
def ReverseSequence(g, name):
    x = g.any(["float32", "int64"], ranks=[2, 3], keep=lambda v: all(v.shape))
    time = g.int(0, 1)
    g.node(name, [x, g.source(np.asarray(g.rng.integers(1, x.shape[time] + 1, x.shape[1 - time]), np.int64))], time_axis=time, batch_axis=1 - time)


@op(weight=.4)
def Unique(g, name):
    x = g.any(["float32", "int64", "int8"], ranks=range(1, 3), exact=True, keep=lambda v: v.array.size)
    given = {"axis": axis_of(g, x)} if g.chance(.5) else {}
    g.node(name, [x], outputs=4, sorted=1, **given)


@op(weight=.4)
def CenterCropPad(g, name):
    x = g.any(["float32", "int64", "uint8"], ranks=range(1, 5), keep=lambda v: all(v.shape))
    axes = sorted(g.rng.permutation(x.array.ndim)[:g.int(1, x.array.ndim)].tolist())
    g.node(name, [x, g.const(*(g.int(1, 8) for _ in axes))], axes=axes)
