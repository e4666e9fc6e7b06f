# SPDX-License-Identifier: Apache-2.0
"""Random ONNX graphs from a seed, with the value of every edge.

Each node is run by ONNX's reference as soon as it is drawn, so that the next one is drawn for its actual shapes and types; a node that the
reference rejects is drawn again. A value is exact if every float that it was computed from is a small multiple of a power of two.
Discontinuous operators (comparisons, rounding, ArgMax) read only exact values, since two correct results may differ for others.
"""
import warnings
import zlib

import ml_dtypes  # noqa: F401 (registers the small types with numpy)
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FLOATS = ("float32", "float64", "float16")
INTEGERS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, "bool")
# The other types of a graph, and the first version of ONNX in which any operator supports them.
EXTRAS = {("bfloat16",): 13, ("object",): 7, ("complex64",): 7, ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"): 19,
          ("int4", "uint4"): 21, ("float4_e2m1fn", "int4"): 23, ("float8_e8m0fnu",): 24, ("int2", "uint2"): 25}
MOST_ELEMENTS = 4000
LARGEST = 1e5
# Operators whose reference differs from the standard in more than details, so ONNX Runtime is used: another epsilon, sizes, the sign in a norm
# of order 1, another padding than the formula of the standard.
WRONG = ("BatchNormalization", "LRN", "LpNormalization", "MaxPool", "AveragePool", "LpPool", "Shape")
TYPE_NAMES = {"float32": "float", "float64": "double", "object": "string", "float8_e4m3fn": "float8e4m3fn", "float8_e4m3fnuz": "float8e4m3fnuz",
              "float8_e5m2": "float8e5m2", "float8_e5m2fnuz": "float8e5m2fnuz", "float8_e8m0fnu": "float8e8m0", "float4_e2m1fn": "float4e2m1"}
NUMPY_NAMES = {theirs: ours for ours, theirs in TYPE_NAMES.items()}
WORDS = ("", "a", "A", "ab", "kelp", "Kelp", "a b", " a,b ", "3", "-1.5", "1e3", "ä", "Ω海", "the", "THE", "x" * 40)
# Operators that define their own computation for bfloat16; see Graph.ask.
SUMS = ("MatMul", "Gemm", "Conv", "Einsum", "CumSum", "CumProd", "Sum", "Mean")
TYPED = ("Cast", "CastLike", "QuantizeLinear", "DequantizeLinear", "Constant")


def kind(dtype):
    """Returns numpy's letter for a type; ml_dtypes's types have no unique one."""
    name = np.dtype(dtype).name
    if "float" in name:
        return "f"
    return name[0] if name.rstrip("0123456789") in ("int", "uint") else np.dtype(dtype).kind


def numbers(array):
    return array.astype(np.float64)


class Refused(Exception):
    """No node can be made of this draw."""


class Value:
    def __init__(self, name, array, exact, constant=False):
        self.name, self.array, self.exact, self.constant = name, array, exact, constant

    @property
    def dtype(self):
        return self.array.dtype.name

    @property
    def shape(self):
        return self.array.shape


class Listed:
    """A sequence (a list of arrays) or an optional (of an array or a list, or None) that is an input or output of a graph."""

    def __init__(self, name, value, kind):
        self.name, self.value, self.kind = name, value, kind


class Record:
    """A node, or several that exchange lists, with the names that they and their subgraphs read."""

    def __init__(self, nodes, reads):
        self.nodes, self.reads = nodes, reads

    @property
    def node(self):
        return self.nodes[-1]


def proto_type(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def info(name, array, dims=None):
    return helper.make_tensor_value_info(name, proto_type(array), list(array.shape) if dims is None else dims)


def single(node, feeds, opset):
    graph = helper.make_graph([node], "g", [info(n, a) for n, a in feeds.items()],
                              [helper.make_empty_tensor_value_info(n) for n in node.output if n])
    return helper.make_model(graph, opset_imports=imports(opset), ir_version=8)


def evaluate(nodes, feeds, outputs, opset, extra=()):
    """Returns the outputs of ONNX's reference; raises Refused if it fails."""
    graph = helper.make_graph(nodes, "g", [info(n, a) for n, a in feeds.items()], [helper.make_empty_tensor_value_info(n) for n in outputs])
    model = helper.make_model(graph, opset_imports=imports(opset), ir_version=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with np.errstate(all="ignore"):
                return ReferenceEvaluator(model).run(None, {n: a.copy() for n, a in feeds.items()})
        except Exception as error:  # any failure means that there is no output
            raise Refused(str(error)) from error


def imports(opset):
    return [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]


def ask_ort(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, dict(feeds))
    except Exception:  # it does not support the model, which is a result
        return None


class Graph:
    def __init__(self, seed, typed=False):
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.opset = int(self.rng.choice([7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28]))
        self.values, self.records, self.inputs, self.initializers = [], [], [], []
        self.count, self.dims = 0, {}
        self.lists_in, self.lists_out = [], []
        self.extras = ()
        if typed:
            self.extras, lowest = self.pick([*EXTRAS.items(), (("object",), 20), (("bfloat16",), 13)])
            if self.opset < lowest:
                self.opset = self.int(lowest, 28)
        self.wrapped = self.pick(WRAPS) if self.chance(.25) else None
        self.symbolic = self.rng.random() < 0.5
        self.floats = ["float32"] * 6 + (["float64", "float16"] if self.rng.random() < 0.3 else [])

    # ---- random numbers ----
    def chance(self, p):
        return self.rng.random() < p

    def pick(self, items):
        items = list(items)
        if not items:
            raise Refused("nothing to pick")
        return items[int(self.rng.integers(len(items)))]

    def int(self, low, high):
        """Returns a number from low to high, inclusive."""
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
        if dtype == "object":
            words = np.array(WORDS, object)
            return np.asarray(words[self.rng.integers(len(words), size=shape)], object)
        if dtype == "complex64":
            return np.asarray(self.rng.integers(low, high + 1, shape) + 1j * self.rng.integers(low, high + 1, shape), dtype)
        if dtype not in ALL:  # converts unrepresentable values like numpy
            array = self.rng.integers(low * 4, high * 4 + 1, shape) / 4 if kind(dtype) == "f" else self.rng.integers(-8, 8, shape)
            return np.asarray(np.abs(array) + (dtype == "float8_e8m0fnu") if dtype[0] == "u" or "e8m0" in dtype else array, np.float32).astype(dtype)
        if dtype.startswith("uint"):
            low = max(low, 0)
        if dtype in FLOATS:
            return np.asarray(self.rng.integers(low * 4, high * 4 + 1, shape) / 4, dtype)
        return np.asarray(self.rng.integers(low, high + 1, shape), dtype)

    def source(self, array, constant=None):
        """Returns a new input or constant."""
        constant = self.chance(0.4) if constant is None else constant
        value = Value(self.name("c" if constant else "x"), np.asarray(array), True, constant)
        self.values.append(value)
        (self.initializers if constant else self.inputs).append(value)
        return value

    def const(self, *numbers, dtype="int64"):
        """Returns a tensor of one axis that is required to be constant, or usually is."""
        return self.source(np.array(numbers, dtype), constant=self.chance(0.85))

    def scalar(self, number, dtype="int64"):
        return self.source(np.array(number, dtype), constant=self.chance(0.85))

    def widened(self, dtypes):
        """Returns the types of this graph for an operator that supports all; rare ones are as frequent as all others together."""
        if dtypes is ALL:
            return [*ALL, *self.extras * 6]
        return [*NUMBERS, *[t for t in self.extras if t == "bfloat16"] * 6] if dtypes is NUMBERS else dtypes

    def fresh(self, dtypes, rank=None, shape=None):
        dtype = self.pick(self.floats) if "float32" in dtypes and self.chance(self.plain()) else self.pick(dtypes)
        if dtype not in dtypes:
            dtype = self.pick(dtypes)
        return self.source(self.array(dtype, self.shape(rank) if shape is None else shape))

    def plain(self):
        return .4 if self.extras else .8

    def any(self, dtypes, ranks=None, exact=False, keep=lambda v: True):
        """Returns an existing value, usually a late one, or a new source."""
        dtypes = self.widened(dtypes)
        rare = [t for t in dtypes if t in self.extras]
        if rare and self.chance(.6):
            dtypes = rare
        found = [v for v in self.values if v.dtype in dtypes and (ranks is None or v.array.ndim in ranks) and (v.exact or not exact) and keep(v)]
        if found and self.chance(0.85):
            at = len(found) - 1 - min(int(self.rng.exponential(3)), len(found) - 1)
            return found[at]
        for _ in range(20):
            value = self.source(self.array(self.pick(self.floats) if "float32" in dtypes and self.chance(self.plain()) else self.pick(dtypes),
                                           self.shape(None if ranks is None else self.pick(ranks))))
            if value.dtype in dtypes and keep(value):
                return value
            self.values.pop()
            (self.initializers if value.constant else self.inputs).pop()
        raise Refused("no value fits")

    def partner(self, value, same_type=True, dtypes=None, exact=False):
        """Returns a value that broadcasts with this one."""
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
        """Returns the names of numpy's types that an input may have."""
        schema = self.schema(op)
        if schema.deprecated:
            raise Refused("deprecated")
        item = schema.inputs[min(index, len(schema.inputs) - 1)]
        found = [NUMPY_NAMES.get(t[7:-1], t[7:-1]) for t in sorted(item.types) if t.startswith("tensor(")]
        return [t for t in found if t in ALL] + [t for t in found if t in self.extras] * 6

    def check_types(self, op, inputs, arrays):
        """Raises Refused for types that the schema does not allow, since ONNX's reference checks neither its inputs nor its outputs."""
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
        """Adds a node and returns its outputs. exact: None if exact values remain exact, otherwise False. arrays: its outputs, instead of
        those of the reference."""
        feeds = {v.name: v.array for v in [*inputs, *reads] if v is not None}
        names = [self.name() for _ in range(outputs)] if isinstance(outputs, int) else [self.name() if o else "" for o in outputs]
        node = helper.make_node(op, [v.name if v is not None else "" for v in inputs], names, domain=domain, **attributes)
        wanted = [n for n in names if n]
        self.check_types(op, inputs, [])
        if op in WRONG:
            arrays = ask_ort(single(node, feeds, self.opset), feeds)
            if arrays is None:
                raise Refused("ONNX Runtime gives no answer")
        arrays = [np.asarray(a) for a in (arrays or self.ask(node, feeds, wanted)) if isinstance(a, (np.ndarray, np.generic))]
        if len(arrays) != len(wanted):
            raise Refused("not a tensor")
        self.check_types(op, inputs, arrays)
        made = []
        # a sum of float16 may be rounded once or after each addition
        rough = (op in SUMS or op.startswith("Reduce")) and any(v.dtype in ("float16", "bfloat16") for v in inputs if v is not None)
        for name, array in zip(wanted, arrays):
            if array.size > MOST_ELEMENTS or array.ndim > 6 or array.dtype.name not in (*ALL, *self.extras):
                raise Refused("not of a kind that goes on")
            if array.dtype == object and not all(isinstance(item, str) for item in array.reshape(-1)):
                raise Refused("numpy put a number among strings")
            if array.dtype.kind in "iu" and array.size and max(abs(int(array.min())), abs(int(array.max()))) > 2**52:
                raise Refused("more than a float can hold")
            if kind(array.dtype) in "fc" and array.size:
                plain = np.abs(array) if kind(array.dtype) == "c" else numbers(array)
                if not np.isfinite(plain).all() or np.abs(plain).max() > LARGEST:
                    raise Refused("not finite or large")
            grid = kind(array.dtype) != "f" or bool((numbers(array) * 64 % 1 == 0).all())
            through = all(v.exact for v in [*inputs, *reads] if v is not None)
            made.append(Value(name, array, through and exact is not False and grid and not (rough and kind(array.dtype) == "f")))
        self.values.extend(made)
        self.records.append(Record([node], [*feeds]))
        return made

    def ask(self, node, feeds, wanted):
        """Runs one node with ONNX's reference. It sums bfloat16 in that type, in numpy's order, which the standard does not specify; Kelp sums
        floats and rounds once. So the reference computes with floats, which are rounded here."""
        halves = [n for n, a in feeds.items() if a.dtype.name == "bfloat16"]
        if not halves or node.op_type in TYPED:
            return [a.astype(object) if isinstance(a, np.ndarray) and a.dtype.kind in "UT" else a for a in evaluate([node], feeds, wanted, self.opset)]
        wide = {n: a.astype(np.float32) if n in halves else a for n, a in feeds.items()}
        return [a.astype(feeds[halves[0]].dtype) if a.dtype == np.float32 else a for a in evaluate([node], wide, wanted, self.opset)]

    def drop(self, value):
        """Removes the last node."""
        self.values.remove(value)
        self.records.pop()
        raise Refused("not wanted")

    def several(self, nodes, reads, output, array=None):
        """Adds nodes that exchange lists; the reference computes their outputs unless they are given."""
        if array is None:
            array = evaluate(nodes, {v.name: v.array for v in reads}, [output], self.opset)[0]
        self.values.append(Value(output, np.asarray(array), all(getattr(v, "exact", True) for v in reads)))
        self.records.append(Record(nodes, [v.name for v in reads]))

    def list_in(self, value, kind):
        """Returns the name of a list that is an input of the graph, for several()."""
        if self.wrapped:
            raise Refused("bodies take tensors here")
        self.lists_in.append(Listed(self.name("s"), value, kind))
        return self.lists_in[-1].name

    def list_out(self, name, value, kind):
        """Makes a list that a node of several() returned an output of the graph."""
        if self.wrapped:
            raise Refused("bodies give tensors here")
        self.lists_out.append(Listed(name, value, kind))

    # ---- the model ----
    def declared(self, value):
        """Returns the declared dimensions of an input: some are names, some unknown."""
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
        self.dims = {v.name: self.declared(v) for v in used}
        return build(self, self.records, used, constants, outputs)


# ---- the nodes in another block ----
def empty(name):
    return helper.make_empty_tensor_value_info(name)


class Wrap:
    """Makes a graph the body of one node, which captures its inputs. Each method returns nodes, functions, feeds and expected outputs."""

    def __init__(self, graph, nodes, inputs, constants, stored, outputs):
        self.nodes, self.inputs, self.constants, self.stored, self.outputs = nodes, inputs, constants, stored, outputs
        self.feeds = [(v.name, v.array) for v in inputs]
        self.expected = [(v.name + "_out", v.array) for v in outputs]
        self.mark = zlib.crc32(f"{graph.seed}".encode())
        self.functions = []

    def body(self, name, inputs=(), outputs=(), nodes=()):
        return helper.make_graph([*nodes, *self.nodes], name, list(inputs), [*outputs, *(empty(v.name) for v in self.outputs)])

    def names(self):
        return [v.name + "_out" for v in self.outputs]

    def times(self, count):
        self.expected = [(name, np.stack([array] * count)) for name, array in self.expected]

    def constant(self, name, array):
        """A constant of the model, or an input."""
        if self.mark & 16:
            self.feeds.append((name, array))
        else:
            self.stored.append(numpy_helper.from_array(array, name))
        return name

    def If(self):
        taken = bool(self.mark & 1)
        other = helper.make_graph([helper.make_node("Constant", [], [f"{v.name}_else"], value=numpy_helper.from_array(v.array.reshape(-1)[:0]))
                                   for v in self.outputs], "other", [], [empty(f"{v.name}_else") for v in self.outputs])
        branches = (self.body("taken"), other) if taken else (other, self.body("taken"))
        return [helper.make_node("If", [self.constant("wrap_if", np.array(taken))], self.names(), then_branch=branches[0], else_branch=branches[1])]

    def Loop(self):
        trips = 1 + self.mark % 3
        self.times(trips)
        inner = self.body("again", [info("wrap_i", np.array(0, np.int64)), info("wrap_c", np.array(True))], [info("wrap_d", np.array(True))],
                          [helper.make_node("Identity", ["wrap_c"], ["wrap_d"])])
        return [helper.make_node("Loop", [self.constant("wrap_trips", np.array(trips)), ""], self.names(), body=inner)]

    def Scan(self):
        steps = 1 + self.mark % 3
        self.times(steps)
        first = self.inputs[0]
        self.feeds[0] = (first.name + "_all", np.stack([first.array] * steps))
        self.inputs = self.inputs[1:]
        return [helper.make_node("Scan", [first.name + "_all"], self.names(), body=self.body("each", [info(first.name, first.array)]), num_scan_inputs=1)]

    def function(self, imports):
        reads = [v.name for v in [*self.inputs, *self.constants] if not any(v.name in n.output for n in self.nodes)]
        self.functions.append(helper.make_function("local", "Part", reads, [v.name for v in self.outputs], self.nodes, imports))
        return [helper.make_node("Part", reads, self.names(), domain="local")]


WRAPS = ("If", "Loop", "Scan", "function")


def may_wrap(graph, inputs, outputs):
    """The first version of Loop needs a carried value, that of Scan a batch; lists can only be inputs and outputs of the model."""
    if graph.lists_in or graph.lists_out:
        return False
    if graph.wrapped in ("If", "Loop", "Scan"):
        taken = {t for c in graph.schema(graph.wrapped).type_constraints if c.type_param_str == "V" for t in c.allowed_type_strs}
        if any(f"tensor({TYPE_NAMES.get(v.dtype, v.dtype)})" not in taken for v in [*outputs, *inputs[:1]]):
            return False
    return {"Loop": graph.opset >= 11, "Scan": graph.opset >= 9 and inputs, None: False}.get(graph.wrapped, True)


def build(graph, records, inputs, constants, outputs):
    """Model, feeds and expected outputs."""
    nodes, stored = [], []
    for value in constants:
        tensor = numpy_helper.from_array(np.ascontiguousarray(value.array).reshape(value.shape), value.name)
        if zlib.crc32(f"{graph.seed} {value.name}".encode()) % 4 == 0:
            nodes.append(helper.make_node("Constant", [], [value.name], value=tensor))
        else:
            stored.append(tensor)
    nodes.extend(node for record in records for node in record.nodes)
    feeds, expected, functions = [(v.name, v.array) for v in inputs], [(v.name, v.array) for v in outputs], []
    if may_wrap(graph, inputs, outputs):
        wrap = Wrap(graph, nodes, inputs, constants, stored, outputs)
        nodes = wrap.function(imports(graph.opset)) if graph.wrapped == "function" else getattr(wrap, graph.wrapped)()
        feeds, expected, functions = wrap.feeds, wrap.expected, wrap.functions
    read, given = {name for r in records for name in r.reads}, {name for r in records for node in r.nodes for name in node.output}
    taken = [v for v in graph.lists_in if v.name in read]
    left = [v for v in graph.lists_out if v.name in given]
    made = helper.make_graph(
        nodes, "random", [info(name, array, graph.dims.get(name)) for name, array in feeds] + [helper.make_value_info(v.name, v.kind) for v in taken],
        [info(name, array, [None] * array.ndim) for name, array in expected] + [helper.make_value_info(v.name, v.kind) for v in left], stored)
    feeds, expected = [*feeds, *((v.name, v.value) for v in taken)], [*expected, *((v.name, v.value) for v in left)]
    local = [helper.make_opsetid("local", 1)] if functions else []
    return helper.make_model(made, opset_imports=[*imports(graph.opset), *local], ir_version=10, functions=functions), feeds, expected


def tolerance(graph):
    """Returns rtol and atol: the effect of float arithmetic in another order on a graph of this depth and these magnitudes."""
    floats = [v for v in graph.values if kind(v.array.dtype) in "fc" and v.array.size]
    largest = max([1.0] + [float(np.abs(v.array if kind(v.array.dtype) == "c" else numbers(v.array)).max()) for v in floats])
    if any(v.dtype == "bfloat16" for v in graph.values):
        return 8e-2, 2e-2 * largest
    half = any(v.dtype == "float16" for v in floats)
    return (2e-2, 4e-3 * largest) if half else (1e-3, 2e-5 * largest)
