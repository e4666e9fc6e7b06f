# SPDX-License-Identifier: Apache-2.0
"""Random ONNX graphs from a seed, with the value of every edge.

Each node is run by ONNX's reference as soon as it is drawn, so that the next one is drawn for shapes and types that are really there;
what the reference refuses is drawn anew. A value is exact when every float on the way to it is a small multiple of a power of two:
operators that jump (comparisons, rounding, ArgMax) take only those, since elsewhere two right answers may lie on two sides of a step.
"""
import warnings
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FLOATS = ("float32", "float64", "float16")
INTEGERS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
MOST_ELEMENTS = 4000
LARGEST = 1e5
# Where ONNX's reference strays from the standard in more than a corner, ONNX Runtime is asked: it takes another epsilon, sizes, the sign in a
# norm of order 1, another pad than the standard's formula.
WRONG = ("BatchNormalization", "LRN", "LpNormalization", "MaxPool", "AveragePool", "LpPool", "Shape")
TYPE_NAMES = {"float32": "float", "float64": "double"}


class Refused(Exception):
    """This draw gives no node here."""


class Value:
    def __init__(self, name, array, exact, constant=False):
        self.name, self.array, self.exact, self.constant = name, array, exact, constant

    @property
    def dtype(self):
        return self.array.dtype.name

    @property
    def shape(self):
        return self.array.shape


class Record:
    """A node, and the names that it reads (its subgraphs' as well)."""

    def __init__(self, node, reads):
        self.node, self.reads = node, reads


def proto_type(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def info(name, array, dims=None):
    return helper.make_tensor_value_info(name, proto_type(array), list(array.shape) if dims is None else dims)


def single(node, feeds, opset):
    graph = helper.make_graph([node], "g", [info(n, a) for n, a in feeds.items()],
                              [helper.make_empty_tensor_value_info(n) for n in node.output if n])
    return helper.make_model(graph, opset_imports=imports(opset), ir_version=8)


def evaluate(nodes, feeds, outputs, opset, extra=()):
    """What ONNX's reference says; Refused when it says nothing."""
    graph = helper.make_graph(nodes, "g", [info(n, a) for n, a in feeds.items()], [helper.make_empty_tensor_value_info(n) for n in outputs])
    model = helper.make_model(graph, opset_imports=imports(opset), ir_version=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with np.errstate(all="ignore"):
                return ReferenceEvaluator(model).run(None, {n: a.copy() for n, a in feeds.items()})
        except Exception as error:  # whatever it fails with, it gives no answer
            raise Refused(str(error)) from error


def imports(opset):
    return [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]


def ask_ort(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, dict(feeds))
    except Exception:  # it does not know the model; that is an answer as well
        return None


class Graph:
    def __init__(self, seed):
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.opset = int(self.rng.choice([7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26]))
        self.values, self.records, self.inputs, self.initializers = [], [], [], []
        self.count = 0
        self.symbolic = self.rng.random() < 0.5
        self.floats = ["float32"] * 6 + (["float64", "float16"] if self.rng.random() < 0.3 else [])

    # ---- chances ----
    def chance(self, p):
        return self.rng.random() < p

    def pick(self, items):
        items = list(items)
        if not items:
            raise Refused("nothing to pick")
        return items[int(self.rng.integers(len(items)))]

    def int(self, low, high):
        """low to high, both included"""
        return int(self.rng.integers(low, high + 1))

    def dim(self):
        return int(self.rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 16, 17, 33], p=[.02] + [.98 / 13] * 13))

    def shape(self, rank=None, most=MOST_ELEMENTS):
        rank = self.int(0, 4) if rank is None else rank
        while True:
            shape = tuple(self.dim() for _ in range(rank))
            if np.prod(shape, dtype=np.int64) <= most:
                return shape

    def name(self, prefix="v"):
        self.count += 1
        return f"{prefix}{self.count}"

    # ---- values ----
    def array(self, dtype, shape, low=-4, high=4):
        if dtype == "bool":
            return self.rng.random(shape) < 0.5
        if dtype.startswith("uint"):
            low = max(low, 0)
        if dtype in FLOATS:
            return np.asarray(self.rng.integers(low * 4, high * 4 + 1, shape) / 4, dtype)
        return np.asarray(self.rng.integers(low, high + 1, shape), dtype)

    def source(self, array, constant=None):
        """A value that no node makes: an input or a constant."""
        constant = self.chance(0.4) if constant is None else constant
        value = Value(self.name("c" if constant else "x"), np.asarray(array), True, constant)
        self.values.append(value)
        (self.initializers if constant else self.inputs).append(value)
        return value

    def const(self, *numbers, dtype="int64"):
        """A tensor of one axis that a node wants constant or nearly always has so."""
        return self.source(np.array(numbers, dtype), constant=self.chance(0.85))

    def scalar(self, number, dtype="int64"):
        return self.source(np.array(number, dtype), constant=self.chance(0.85))

    def fresh(self, dtypes, rank=None, shape=None):
        dtype = self.pick(self.floats) if "float32" in dtypes and self.chance(0.8) else self.pick(dtypes)
        if dtype not in dtypes:
            dtype = self.pick(dtypes)
        return self.source(self.array(dtype, self.shape(rank) if shape is None else shape))

    def any(self, dtypes, ranks=None, exact=False, keep=lambda v: True):
        """A value that is there, as a rule a late one; or a fresh source."""
        found = [v for v in self.values if v.dtype in dtypes and (ranks is None or v.array.ndim in ranks) and (v.exact or not exact) and keep(v)]
        if found and self.chance(0.85):
            at = len(found) - 1 - min(int(self.rng.exponential(3)), len(found) - 1)
            return found[at]
        for _ in range(20):
            value = self.source(self.array(self.pick(self.floats) if "float32" in dtypes and self.chance(0.8) else self.pick(dtypes),
                                           self.shape(None if ranks is None else self.pick(ranks))))
            if value.dtype in dtypes and keep(value):
                return value
            self.values.pop()
            (self.initializers if value.constant else self.inputs).pop()
        raise Refused("no value fits")

    def partner(self, value, same_type=True, dtypes=None, exact=False):
        """Something that broadcasts with a value."""
        def fits(other):
            try:
                return np.prod(np.broadcast_shapes(other.shape, value.shape), dtype=np.int64) <= MOST_ELEMENTS
            except ValueError:
                return False
        dtypes = [value.dtype] if same_type else dtypes
        found = [v for v in self.values if v.dtype in dtypes and fits(v) and (v.exact or not exact)]
        if found and self.chance(0.5):
            return self.pick(found)
        shape = list(value.shape)
        shape = [1 if self.chance(0.3) else d for d in shape][self.int(0, len(shape)) if self.chance(0.4) else 0:]
        return self.source(self.array(self.pick(dtypes), tuple(shape)))

    # ---- nodes ----
    def has(self, op, domain=""):
        return onnx.defs.has(op, max_inclusive_version=self.opset, domain=domain)

    def schema(self, op):
        if not onnx.defs.has(op, ""):
            raise Refused(f"{op} is unknown")
        try:
            return onnx.defs.get_schema(op, max_inclusive_version=self.opset, domain="")
        except Exception as error:
            raise Refused(str(error)) from error

    def types(self, op, index=0):
        """Names of numpy's types that an input may have."""
        schema = self.schema(op)
        if schema.deprecated:
            raise Refused("deprecated")
        item = schema.inputs[min(index, len(schema.inputs) - 1)]
        names = {"tensor(float)": "float32", "tensor(double)": "float64"}
        return [names.get(t, t[7:-1]) for t in item.types if names.get(t, t[7:-1]) in (*FLOATS, *INTEGERS, "bool")]

    def check_types(self, op, inputs, arrays):
        """Refuses what the schema does not allow, which ONNX's reference does not look at, nor at what it gives itself."""
        schema = self.schema(op)
        bound = {}
        for group, items in ((schema.inputs, [v.array if v is not None else None for v in inputs]), (schema.outputs, arrays)):
            for i, array in enumerate(items):
                if array is None or not group:
                    continue
                item = group[min(i, len(group) - 1)]
                kind = TYPE_NAMES.get(array.dtype.name, array.dtype.name)
                if f"tensor({kind})" not in item.types:
                    raise Refused(f"{op}: {kind} is not allowed")
                if item.is_homogeneous and bound.setdefault(item.type_str, kind) != kind:
                    raise Refused(f"{op}: two types for {item.type_str}")

    def node(self, op, inputs, outputs=1, exact=None, domain="", reads=(), arrays=None, **attributes):
        """Adds a node; returns its outputs. exact: whether it keeps exact values exact (None) or not (False). arrays: what it gives, where
        the reference is not to be asked."""
        feeds = {v.name: v.array for v in [*inputs, *reads] if v is not None}
        names = [self.name() for _ in range(outputs)] if isinstance(outputs, int) else [self.name() if o else "" for o in outputs]
        node = helper.make_node(op, [v.name if v is not None else "" for v in inputs], names, domain=domain, **attributes)
        wanted = [n for n in names if n]
        self.check_types(op, inputs, [])
        if op in WRONG:
            arrays = ask_ort(single(node, feeds, self.opset), feeds)
            if arrays is None:
                raise Refused("ONNX Runtime gives no answer")
        arrays = [np.asarray(a) for a in (arrays or evaluate([node], feeds, wanted, self.opset)) if isinstance(a, (np.ndarray, np.generic))]
        if len(arrays) != len(wanted):
            raise Refused("not a tensor")
        self.check_types(op, inputs, arrays)
        made = []
        for name, array in zip(wanted, arrays):
            if array.size > MOST_ELEMENTS or array.ndim > 6 or array.dtype.name not in (*FLOATS, *INTEGERS, "bool"):
                raise Refused("not of a kind that goes on")
            if array.dtype.kind in "iu" and array.size and max(abs(int(array.min())), abs(int(array.max()))) > 2**52:
                raise Refused("more than a float can hold")
            if array.dtype.kind == "f" and array.size:
                if not np.isfinite(array).all() or np.abs(array.astype(np.float64)).max() > LARGEST:
                    raise Refused("not finite or large")
            grid = array.dtype.kind != "f" or bool((array.astype(np.float64) * 64 % 1 == 0).all())
            through = all(v.exact for v in [*inputs, *reads] if v is not None)
            made.append(Value(name, array, through and exact is not False and grid))
        self.values.extend(made)
        self.records.append(Record(node, [*feeds]))
        return made

    def drop(self, value):
        """Takes the node that was added last off again."""
        self.values.remove(value)
        self.records.pop()
        raise Refused("not wanted")

    def several(self, nodes, reads, output):
        """Nodes that hand on what is no tensor among themselves."""
        array = np.asarray(evaluate(nodes, {v.name: v.array for v in reads}, [output], self.opset)[0])
        self.values.append(Value(output, array, all(v.exact for v in reads)))
        for node in nodes:
            self.records.append(Record(node, list(node.input)))

    # ---- the whole ----
    def declared(self, value):
        """The dimensions that the model declares of an input: some by name, some not at all."""
        dims = list(value.shape)
        if self.symbolic:
            dims = [d if self.chance(0.4) else (f"d{value.name}_{i}" if self.chance(0.8) else None) for i, d in enumerate(dims)]
        return dims

    def finish(self):
        """Model, feeds and expected outputs."""
        read = {name for record in self.records for name in record.reads}
        made = [v for v in self.values if any(v.name in r.node.output for r in self.records)]
        if not made:
            raise Refused("no node")
        outputs = [v for v in made if v.name not in read or self.chance(0.15)]
        used = [v for v in self.inputs if v.name in read]
        constants = [v for v in self.initializers if v.name in read]
        dims = {v.name: self.declared(v) for v in used}
        self.chosen = outputs
        return build(self, self.records, used, constants, outputs, dims), [(v.name, v.array) for v in used], [(v.name, v.array) for v in outputs]


def build(graph, records, inputs, constants, outputs, dims=None):
    nodes = []
    for value in constants:
        tensor = numpy_helper.from_array(np.ascontiguousarray(value.array).reshape(value.shape), value.name)
        if zlib.crc32(f"{graph.seed} {value.name}".encode()) % 4 == 0:
            nodes.append(helper.make_node("Constant", [], [value.name], value=tensor))
    stored = [numpy_helper.from_array(np.ascontiguousarray(v.array).reshape(v.shape), v.name) for v in constants
              if not any(v.name in n.output for n in nodes)]
    made = helper.make_graph([*nodes, *(r.node for r in records)], "random",
                             [info(v.name, v.array, (dims or {}).get(v.name)) for v in inputs],
                             [info(v.name, v.array, [None] * v.array.ndim) for v in outputs], stored)
    return helper.make_model(made, opset_imports=imports(graph.opset), ir_version=8)


def tolerance(graph):
    """rtol, atol: what float arithmetic in another order may do to a graph of this depth and of these magnitudes."""
    floats = [v for v in graph.values if v.array.dtype.kind == "f"]
    largest = max([1.0] + [float(np.abs(v.array.astype(np.float64)).max()) for v in floats if v.array.size])
    half = any(v.dtype == "float16" for v in floats)
    return (2e-2, 4e-3 * largest) if half else (1e-3, 2e-5 * largest)
