# SPDX-License-Identifier: Apache-2.0
"""Draws strings, small floats and small integers, like random_ops.py draws other types; operators that move elements use them too."""
import numpy as np
from onnx import helper
from random_graph import FLOATS, INTEGERS, Refused, kind, numbers
from random_ops import axis_of, op

PLAIN = ("a", "A", "kelp", "Kelp", "KELP", "the", "b")
PATTERNS = ("a", ".*", "[a-z]*", "", "(a|ab)", "[^ ]+", r"-?\d+(\.\d+)?", "x{40}", "(?i)kelp", ".{2}", "[ab ]*", "ab?", "[0-9A-Za-z_]+", "^a$")
LIMITS = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3), "int8": (-128, 127), "uint8": (0, 255)}


def since(g, version, dtype=None):
    if g.opset < version or (dtype and dtype not in g.extras):
        raise Refused("not there")


# ---- strings ----
@op(weight=.1)
def StringConcat(g, name):
    since(g, 20, "object")
    x = g.any(["object"])
    g.node(name, [x, g.partner(x)])


@op(weight=.1)
def StringSplit(g, name):
    since(g, 20, "object")
    x = g.any(["object"], ranks=range(0, 4))
    given = {"delimiter": g.pick(["", " ", ",", "a", "el", " a"])} if g.chance(.7) else {}
    if g.chance(.5):
        given["maxsplit"] = g.int(1, 2)
    g.node(name, [x], outputs=2, **given)


@op(weight=.1)
def StringNormalizer(g, name):
    """The reference removes empty strings and accents, and finds stop words within strings, unlike the standard."""
    since(g, 10, "object")
    shape = (g.int(1, 6),) if g.chance(.6) else (1, g.int(1, 6))
    x = g.source(np.asarray(np.array(PLAIN, object)[g.rng.integers(len(PLAIN), size=shape)], object), constant=False)
    case, exactly = g.pick(["NONE", "LOWER", "UPPER"]), g.int(0, 1)
    stop = [w for w in PLAIN if g.chance(.3)]
    plain = set(stop) if exactly else {w.lower() for w in stop}
    kept = [w for w in x.array.reshape(-1) if (w if exactly else w.lower()) not in plain] or [""]
    kept = [{"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[case](w) for w in kept]
    array = np.array(kept, object)
    g.node(name, [x], arrays=[array if len(shape) == 1 else array[None]], case_change_action=case, is_case_sensitive=exactly,
           **({"stopwords": stop} if stop else {}))


@op(weight=.1)
def RegexFullMatch(g, name):
    since(g, 20, "object")
    g.node(name, [g.any(["object"], keep=lambda v: v.array.size)], pattern=g.pick(PATTERNS))


@op(weight=.1)
def StringEqual(g, _):
    since(g, 19, "object")
    x = g.any(["object"])
    g.node("Equal", [x, g.partner(x)])


@op(weight=.1)
def StringCast(g, _):
    since(g, 9, "object")
    if g.chance(.5):
        return g.node("Cast", [g.any(["int64", "int32", "uint8"])], to=8)
    words = np.array(["3", "-15", "0", "+7", "100"] if g.chance(.5) else ["3.5", "-1e2", "0.25", "7", "1.5e-1"], object)
    x = g.source(np.asarray(words[g.rng.integers(len(words), size=g.shape(most=60))], object))
    whole = all("." not in w and "e" not in w for w in x.array.reshape(-1))
    g.node("Cast", [x], to=g.pick([1, 11] + [6, 7] * whole))


# ---- casts ----
def fits(array, dtype):
    """Returns True if the standard specifies the result for these numbers."""
    if kind(dtype) == "f" or not array.size:
        return kind(dtype) != "f" or "e8m0" not in dtype or bool((numbers(array) > 0).all())
    low, high = LIMITS.get(dtype, (-100, 100))
    return bool((numbers(array) >= max(low, 0 if dtype[0] == "u" else low)).all() and (numbers(array) <= high).all())


@op(weight=.2)
def SmallCast(g, _):
    small = [t for t in g.extras if t not in ("object", "complex64")]
    if not small:
        raise Refused("no small type here")
    x = g.any([*small, *FLOATS, "int8", "uint8", "int32", "int64"], exact=True)
    to = g.pick([*small * 3, *FLOATS, *INTEGERS])
    if not fits(x.array, to) or (x.dtype == to):
        raise Refused("undetermined")
    given = {}
    if "float8" in to and g.chance(.5):
        given["saturate"] = g.int(0, 1)
    if "e8m0" in to and g.chance(.5):
        given["round_mode"] = g.pick(["up", "down", "nearest"])
    g.node("Cast", [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)), **given)


# ---- quantization ----
def scales(g, x):
    """Returns the scales, the axis and the block size: one scale for all, for each slice, or for each block of an axis."""
    way = g.int(0, 2) if x.array.ndim and all(x.shape) else 0
    if way == 0:
        return np.asarray(2.0 ** g.int(-2, 2)), {}
    axis = axis_of(g, x)
    if way == 1 or g.opset < 21:
        return 2.0 ** g.rng.integers(-2, 3, x.shape[axis]), {"axis": axis}
    size = g.int(1, x.shape[axis])
    shape = list(x.shape)
    shape[axis] = -(-shape[axis] // size)
    return 2.0 ** g.rng.integers(-2, 3, shape), {"axis": axis, "block_size": size}


@op(weight=.2)
def SmallQuantize(g, _):
    since(g, 19)
    kinds = [t for t in g.extras if t in LIMITS or "float8_e4" in t or "float8_e5" in t or "float4" in t]
    if g.opset >= 21:
        kinds += ["int16", "uint16", "int8"]
    to = g.pick(kinds)
    x = g.any(["float32", "float16", *[t for t in g.extras if t == "bfloat16"]], exact=True)
    scale, given = scales(g, x)
    inputs = [x, g.source(np.asarray(scale).astype(x.dtype))]
    if g.opset < 21 or g.chance(.6):  # for floats it must be zero
        zero = np.zeros(np.shape(scale), to) if kind(to) == "f" else g.array(to, np.shape(scale), 0, 3)
        inputs.append(g.source(zero))
    else:
        given["output_dtype"] = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    if "float8" in to and g.chance(.3):
        given["saturate"] = g.int(0, 1)
    g.node("QuantizeLinear", inputs, **given)


@op(weight=.2)
def SmallDequantize(g, _):
    since(g, 19)
    kinds = [t for t in g.extras if t in LIMITS or "float8_e4" in t or "float8_e5" in t or "float4" in t]
    x = g.any(kinds + (["int16", "uint16"] if g.opset >= 21 else []))
    scale, given = scales(g, x)
    to = g.pick(["float32", "float32", "float16", *[t for t in g.extras if t == "bfloat16"]])
    inputs = [x, g.source(np.asarray(scale).astype(to))]
    if g.chance(.5):
        inputs.append(g.source(np.zeros(np.shape(scale), x.dtype) if kind(x.dtype) == "f" else g.array(x.dtype, np.shape(scale), 0, 3)))
    g.node("DequantizeLinear", inputs, **given)


# ---- 16-bit floats ----
@op(weight=.2)
def HalfNorm(g, _):
    since(g, 17, "bfloat16")  # the reference does not widen float16 as specified
    dtype = "bfloat16"
    x = g.source(g.array(dtype, tuple(max(1, d) for d in g.shape(g.int(1, 3), 100))))
    axis = g.pick([-1, 0])
    given = [g.source(g.array(dtype, x.shape[axis:])) for _ in range(2)]
    g.node("LayerNormalization", [x, *given], exact=False, axis=axis, epsilon=1e-2)
