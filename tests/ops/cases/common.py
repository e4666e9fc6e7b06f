# SPDX-License-Identifier: Apache-2.0
"""Shared by the files of operator cases: seeded values, writing of cases, reference implementations."""
import functools
import os
import struct
import zlib

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper, numpy_helper  # noqa: F401 (T for the files of cases)
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(20)


INT64_MIN = -2**63
HALVES = (np.float16, ml_dtypes.bfloat16)
WHOLE = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)


def reseed(name):
    rng.bit_generator.state = np.random.default_rng([20, zlib.crc32(name.encode())]).bit_generator.state


def f32(*shape, low=-2.0, high=2.0):
    return rng.uniform(low, high, shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


def i32(*shape, low=0, high=2):
    return rng.integers(low, high, shape).astype(np.int32)


def ints(kind, *shape):
    """Returns values of the whole range of an integer type."""
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max + 1, shape, kind)


def wide(x, zero):
    """Returns x without its zero point, in 64 bits."""
    return x.astype(np.int64) - np.asarray(zero).astype(np.int64)


def saturate(x, zero):
    """Returns x rounded, with the zero point added, clamped to the type of the zero point."""
    limits = np.iinfo(zero.dtype)
    return np.clip(np.rint(x) + zero.astype(np.float64), limits.min, limits.max).astype(zero.dtype)


def as_proto(name, value):
    """Returns a TensorProto of a NumPy array or scalar, or the given TensorProto under another name."""
    if isinstance(value, onnx.TensorProto):
        proto = onnx.TensorProto()
        proto.CopyFrom(value)
    else:
        value = np.asarray(value)
        if value.dtype.kind in "US":
            value = value.astype(object)
        proto = numpy_helper.from_array(value)
    proto.name = name
    return proto


def pack(data):
    return struct.pack("<I", len(data)) + data


def as_value(label, value, kind):
    """Returns the bytes of a value whose type is the TypeProto `kind`: 0, then the length of a TensorProto and the TensorProto; or 1
    (sequence), 2 (optional), 3 (map: keys, values), then the number of elements and the elements."""
    what = kind.WhichOneof("value") if kind is not None else None
    if what == "optional_type":
        element = kind.optional_type.elem_type
        if isinstance(value, list) and element.WhichOneof("value") == "tensor_type":
            value = value[0] if value else None
        items = [] if value is None else [as_value("", value, element)]
        return struct.pack("<II", 2, len(items)) + b"".join(items)
    if what == "sequence_type" or isinstance(value, list):
        element = kind.sequence_type.elem_type if what == "sequence_type" else None
        return struct.pack("<II", 1, len(value)) + b"".join(as_value("", item, element) for item in value)
    if isinstance(value, dict):
        values = list(value.values())
        floats = any(isinstance(item, float) for item in values)
        sides = [np.array(list(value)), np.array(values, np.float32) if floats else np.array(values)]
        return struct.pack("<II", 3, 2) + b"".join(as_value("", side, None) for side in sides)
    return struct.pack("<I", 0) + pack(as_proto(label, value).SerializeToString())


class Writer:
    def __init__(self, out):
        self.out, self.names = out, []
        os.makedirs(out, exist_ok=True)

    def case(self, name, model, inputs, outputs, rtol, atol):
        """inputs, outputs: pairs of a name and an array, TensorProto, list (sequence), dict (map) or None (empty optional)."""
        self.names.append(name)
        with open(os.path.join(self.out, name + ".onnx"), "wb") as file:
            file.write(model.SerializeToString())
        body = struct.pack("<dd", rtol, atol)
        types = {value.name: value.type for value in [*model.graph.input, *model.graph.output]}
        for group in (inputs, outputs):
            body += struct.pack("<I", len(group))
            for label, value in group:
                body += pack(label.encode()) + as_value(label, value, types.get(label))
        with open(os.path.join(self.out, name + ".bin"), "wb") as file:
            file.write(body)

    def close(self):
        with open(os.path.join(self.out, "cases.txt"), "w") as file:
            file.write("".join(name + "\n" for name in self.names))


@functools.lru_cache(maxsize=None)
def node_tests():
    """Returns the node tests of the onnx package."""
    from onnx.backend.test import loader
    return loader.load_model_tests(kind="node")


def run_ort(model, feeds):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(model.SerializeToString(), options).run(None, feeds)


def run_onnx(model, feeds):
    return ReferenceEvaluator(model).run(None, feeds)


single_nodes = []  # operator, domain, model, feeds, peer: cases with expected values of a peer, which retyped.py runs with other dtypes

PEERS = {"ort": run_ort, "onnx": run_onnx}


class Own:
    """Adds the cases of the files in this directory, named after the operator that they test: own_<operator>_<number>[_<variant>].

    Models of several operators are named after the file's first word and what they test, such as own_fusion_<label>_<number>.
    `reference` is the expected outputs, or the implementation that computes them: "ort" (ONNX Runtime) or "onnx" (ONNX's reference)."""

    def __init__(self, writer):
        self.writer, self.family, self.counts = writer, "", {}

    def run(self, family, module):
        """Adds the cases of a file: runs the functions that it lists in CASES, each with a seed of its own."""
        self.family = family
        for function in module.CASES:
            reseed(f"{family}.{function.__name__}")  # so that a new case changes the values of no other function
            function(self)

    def number(self, subject):
        self.counts[subject] = self.counts.get(subject, 0) + 1
        return f"{self.counts[subject]:03d}"

    def name_of(self, label, op, rejected):
        label = label.lower()
        if op is None:
            subject = f"{self.family.split('_')[0]}_{label}"
            name = f"own_{subject}_{self.number(subject)}"
        else:
            name = f"own_{op.lower()}_{self.number(op.lower())}" + (f"_{label}" if label else "")
        return name + ("_refused" if rejected else "")

    def add(self, op, inputs, opset=17, outputs=1, constants=(), rtol=1e-4, atol=1e-5, domain="", reference="ort", attributes=None, **attrs):
        """A model of one node; the inputs in `constants`, given by index, become initializers."""
        inputs = [a if a is None else np.asarray(a) for a in inputs]
        names = [f"x{i}" if a is not None else "" for i, a in enumerate(inputs)]
        outs = [f"y{i}" for i in range(outputs)]
        node = helper.make_node(op, names, outs, domain=domain, **attrs)
        node.attribute.extend(helper.make_attribute(k, v) for k, v in (attributes or {}).items())
        feeds = [(n, a) for i, (n, a) in enumerate(zip(names, inputs)) if a is not None and i not in constants]
        graph = helper.make_graph(
            [node], op,
            [helper.make_tensor_value_info(n, as_proto(n, a).data_type, [f"d{n}{k}" for k in range(a.ndim)]) for n, a in feeds],
            [helper.make_empty_tensor_value_info(n) for n in outs],
            [as_proto(names[i], inputs[i]) for i in constants])
        imports = [helper.make_opsetid("", opset if not domain else 17)]
        if domain:
            imports.append(helper.make_opsetid(domain, opset))
        model = helper.make_model(graph, opset_imports=imports, ir_version=8)
        model = onnx.shape_inference.infer_shapes(model)
        if isinstance(reference, str):
            single_nodes.append((op, domain, model, feeds, PEERS[reference]))
        self.model("", model, feeds, reference, rtol, atol, op)

    def microsoft(self, op, inputs, **attrs):
        """A model of one node of com.microsoft; `opset` is an attribute of the operator."""
        attributes = {"opset": attrs.pop("opset")} if "opset" in attrs else None
        self.add(op, inputs, opset=1, domain="com.microsoft", attributes=attributes, **attrs)

    def refuse(self, op, inputs, why, opset=17, outputs=1, domain="", **attrs):
        """A model of one node that must be rejected, with `why` in the message."""
        inputs = [np.asarray(a) for a in inputs]
        names, outs = [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(outputs)]
        graph = helper.make_graph(
            [helper.make_node(op, names, outs, domain=domain, **attrs)], op,
            [helper.make_tensor_value_info(n, as_proto(n, a).data_type, a.shape) for n, a in zip(names, inputs)],
            [helper.make_empty_tensor_value_info(n) for n in outs])
        imports = [helper.make_opsetid("", 17 if domain else opset), *([helper.make_opsetid(domain, opset)] if domain else [])]
        self.model("", helper.make_model(graph, opset_imports=imports, ir_version=8), list(zip(names, inputs)), [("!refused", why)], 0, 0, op)

    def model(self, label, model, feeds, reference="ort", rtol=1e-4, atol=1e-5, op=None):
        """A complete model, of the operator `op` or of several. feeds: pairs of a name and an array. [("!refused", why)] as the reference: the
        model must be rejected, with `why` in the message."""
        result = PEERS[reference](model, dict(feeds)) if isinstance(reference, str) else reference
        outs = [o.name for o in model.graph.output]
        rejected = bool(result) and isinstance(result[0], tuple)
        if rejected:
            outs, result = [result[0][0]], [np.array([result[0][1]], object)]
        self.writer.case(self.name_of(label, op, rejected), model, feeds, list(zip(outs, result)), rtol, atol)
