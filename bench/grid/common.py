# SPDX-License-Identifier: Apache-2.0
"""Cases of the grid: what a model computes, on which types and shapes, without its data."""
import hashlib
import zlib

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

OPSET = 21
TYPES = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "u8": np.uint8, "i16": np.int16,
         "u16": np.uint16, "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "bool": np.bool_, "string": object}
CODES = {"f32": T.FLOAT, "f16": T.FLOAT16, "f64": T.DOUBLE, "bf16": T.BFLOAT16, "i8": T.INT8, "u8": T.UINT8, "i16": T.INT16, "u16": T.UINT16,
         "i32": T.INT32, "u32": T.UINT32, "i64": T.INT64, "u64": T.UINT64, "bool": T.BOOL, "string": T.STRING}
GENERATORS = []


class Input:
    """An input or a constant: its type, shape and values, which are made from a seed when they are needed."""

    def __init__(self, shape, dtype=None, low=-2.0, high=2.0, constant=False, values=None, label=None):
        self.shape, self.dtype, self.low, self.high, self.constant, self.values = tuple(shape), dtype, low, high, constant, values
        self.label = label if label is not None else ("w" if constant else "") + "x".join(map(str, self.shape)) if self.shape else "scalar"

    def dynamic(self):
        """The same values as an input of the model."""
        self.constant = False
        return self

    def scalar(self):
        """The first value, without dimensions."""
        make, self.shape = self.make, (1,)
        self.make = lambda rng, dtype: make(rng, dtype).reshape(-1)[0:1].reshape(())
        return self

    def make(self, rng, dtype):
        dtype = self.dtype or dtype
        if self.values is not None:
            value = self.values(rng) if callable(self.values) else self.values
            value = np.asarray(value)
            return value if value.dtype.kind == "O" else value.astype(TYPES[dtype]) if self.dtype else value
        if dtype == "string":
            letters = np.array(list("abcdefgh XYZ,éß12"))
            size = int(np.prod(self.shape))
            words = ["".join(rng.choice(letters, rng.integers(3, 14))) for _ in range(min(size, 512))]
            return np.array([words[i % len(words)] for i in range(size)], object).reshape(self.shape)
        if dtype == "bool":
            return rng.random(self.shape) < 0.5
        if dtype[0] in "iu":
            low, high = (0 if dtype[0] == "u" and self.low < 0 else int(self.low)), int(self.high)
            return rng.integers(low, max(high, low + 1), self.shape).astype(TYPES[dtype])
        return (rng.random(self.shape, dtype=np.float32) * (self.high - self.low) + self.low).astype(TYPES[dtype])


def X(*shape, **options):
    """A dynamic input."""
    return Input(shape, **options)


def W(*shape, low=-0.5, high=0.5, **options):
    """Weights: a constant with random values."""
    return Input(shape, constant=True, low=low, high=high, **options)


def K(values, dtype=None, label=""):
    """A constant with the given values; it is no part of the case's name unless labelled."""
    array = values if callable(values) else np.asarray(values)
    return Input(() if callable(values) else array.shape, dtype, constant=True, values=array, label=label)


def ints(*values):
    return K(np.array(values, np.int64))


def indices(shape, below, dtype="i64", low=0, constant=False):
    return Input(shape, dtype, low=low, high=below, constant=constant)


class Case:
    """One model. `name` is unique in the grid and stable: OPERATOR/TYPE/SHAPES and attributes."""

    def __init__(self, family, operators, dtype, label, build):
        self.family, self.operators, self.dtype, self.label, self.build = family, operators, dtype, label, build
        self.name = f"{operators[0]}/{dtype}/{label}"

    @property
    def op(self):
        return self.operators[0].rsplit(".", 1)[-1]

    @property
    def digest(self):
        return int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:8], "big")

    @property
    def half(self):
        """Half of the grid by a hash of the name: kernels are tuned on one, and checked on the other."""
        return "tune" if self.digest & 1 else "held-out"

    def make(self):
        """Returns the model and the list of pairs of an input's name and its values."""
        return self.build(np.random.default_rng(zlib.crc32(self.name.encode())))


def attribute_text(attributes):
    parts = []
    for key, value in attributes.items():
        if isinstance(value, (list, tuple)):
            if len(value) > 8:
                continue
            value = ",".join(map(str, value))
        if isinstance(value, (int, float, str, bytes)):
            parts.append(f"{key}={value.decode() if isinstance(value, bytes) else value}")
    return " ".join(parts)


def model_of(nodes, feeds, constants, outputs, opset, name="case", types=None):
    """A model of nodes; types of outputs come from onnx's inference, then from `types`."""
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype) if a.dtype.kind != "O" else T.STRING, a.shape)
              for n, a in feeds]
    graph = helper.make_graph(nodes, name, inputs, [helper.make_empty_tensor_value_info(n) for n in outputs],
                              [as_initializer(n, a) for n, a in constants])
    imports = [helper.make_opsetid("", opset)]
    # version 5 has one operator for trees instead of two
    versions = {"ai.onnx.ml": 5 if any(node.op_type == "TreeEnsemble" for node in nodes) else 3}
    imports += [helper.make_opsetid(d, versions.get(d, 1)) for d in sorted({node.domain for node in nodes if node.domain})]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    try:
        model = onnx.shape_inference.infer_shapes(model)
    except Exception:  # operators of other domains
        pass
    for value, code in zip(model.graph.output, types or [None] * len(outputs)):
        if not value.type.HasField("tensor_type") or value.type.tensor_type.elem_type == 0:
            value.type.tensor_type.elem_type = code or T.FLOAT
    return model


def as_initializer(name, array):
    if isinstance(array, onnx.TensorProto):
        array.name = name
        return array
    return numpy_helper.from_array(array, name)


def single(op, dtype, inputs, domain="", opset=OPSET, outputs=1, out=None, note="", **attributes):
    """A case of one node. `inputs`: Input or None for an omitted one. `out`: types of the outputs where they are not the case's. For operators
    of other domains `opset` is their attribute of this name."""
    if domain and opset != OPSET:
        attributes, opset = {**attributes, "opset": opset}, OPSET
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
    label = ",".join(v.label for v in inputs if v is not None and v.label)
    label = " ".join(part for part in (label or "-", attribute_text(attributes), note) if part)
    types = [CODES[word] for word in out] if out else [CODES.get(dtype, T.FLOAT)] * outputs

    def build(rng):
        arrays = [value.make(rng, dtype) if value is not None else None for value in inputs]
        node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
        feeds = [(n, a) for n, a, v in zip(names, arrays, inputs) if v is not None and not v.constant]
        constants = [(n, a) for n, a, v in zip(names, arrays, inputs) if v is not None and v.constant]
        return model_of([node], feeds, constants, [f"y{i}" for i in range(outputs)], opset, types=types), feeds
    return Case("", [f"{domain or 'ai.onnx'}.{op}"], dtype, label, build)


def several(op, dtype, label, make, opset=OPSET, covers=(), domain="", types=None):
    """A case of several nodes. make(rng): nodes, pairs of feeds, pairs of constants, names of outputs."""
    def build(rng):
        nodes, feeds, constants, outputs = make(rng)
        return model_of(nodes, feeds, constants, outputs, opset, types=types), feeds
    return Case("", [f"{domain or 'ai.onnx'}.{op}", *covers], dtype, label, build)


def generator(family):
    """Registers a function that yields cases of a family."""
    def register(function):
        GENERATORS.append((family, function))
        return function
    return register


def all_cases():
    """All cases; names are unique."""
    found = {}
    for family, function in GENERATORS:
        for case in function():
            case.family = family
            if case.name in found:
                raise ValueError(f"two cases have the name '{case.name}'")
            found[case.name] = case
    return list(found.values())
