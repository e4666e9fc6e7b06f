# SPDX-License-Identifier: Apache-2.0
"""What the families of operator cases share: seeded values, writing of cases, references."""
import functools
import os
import struct
import zlib

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper, numpy_helper  # noqa: F401 (T for the families)
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(20)


def reseed(family):
    rng.bit_generator.state = np.random.default_rng([20, zlib.crc32(family.encode())]).bit_generator.state


def f32(*shape, low=-2.0, high=2.0):
    return rng.uniform(low, high, shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


def as_proto(name, value):
    """A TensorProto of a numpy array or scalar, or the TensorProto itself under that name."""
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
    """The bytes of a case's value of a TypeProto: 0 and a TensorProto after its length, or 1 (sequence), 2 (optional), 3 (map: keys,
    values) and the elements after their count."""
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
    """The node tests of the onnx package, made once."""
    from onnx.backend.test import loader
    return loader.load_model_tests(kind="node")


def run_ort(model, feeds):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(model.SerializeToString(), options).run(None, feeds)


def run_onnx(model, feeds):
    return ReferenceEvaluator(model).run(None, feeds)


single_nodes = []  # operator, domain, model, feeds: cases whose answers a peer gave, for typed_anew


class Own:
    """Cases of one node under a given opset; `constants` become initializers.

    reference: "ort" (ONNX Runtime), "onnx" (ONNX's reference implementation), or the expected outputs themselves."""

    def __init__(self, writer, family):
        self.w, self.family, self.count = writer, family, 0

    def add(self, op, inputs, opset=17, outputs=1, constants=(), rtol=1e-4, atol=1e-5, domain="", reference="ort", attributes=None, **attrs):
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
            single_nodes.append((op, domain, model, feeds, {"ort": run_ort, "onnx": run_onnx}[reference]))
        self.model(op, model, feeds, reference, rtol, atol)

    def refuse(self, op, inputs, why, opset=17, outputs=1, domain="", **attrs):
        """A node that must be refused, with `why` in the message."""
        inputs = [np.asarray(a) for a in inputs]
        names, outs = [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(outputs)]
        graph = helper.make_graph(
            [helper.make_node(op, names, outs, domain=domain, **attrs)], op,
            [helper.make_tensor_value_info(n, as_proto(n, a).data_type, a.shape) for n, a in zip(names, inputs)],
            [helper.make_empty_tensor_value_info(n) for n in outs])
        imports = [helper.make_opsetid("", 17 if domain else opset), *([helper.make_opsetid(domain, opset)] if domain else [])]
        self.count += 1
        self.w.case(f"own_{self.family}_{self.count:03d}_{op.lower()}_refused", helper.make_model(graph, opset_imports=imports, ir_version=8),
                    list(zip(names, inputs)), [("!refused", np.array([why], object))], 0, 0)

    def model(self, label, model, feeds, reference="ort", rtol=1e-4, atol=1e-5):
        """A whole model. feeds: pairs of a name and an array."""
        if isinstance(reference, str):
            result = {"ort": run_ort, "onnx": run_onnx}[reference](model, dict(feeds))
        else:
            result = reference
        outs = [o.name for o in model.graph.output]
        if result and isinstance(result[0], tuple):  # ("!refused", why)
            outs, result = [result[0][0]], [np.array([result[0][1]], object)]
        self.count += 1
        self.w.case(f"own_{self.family}_{self.count:03d}_{label.lower()}", model, feeds, list(zip(outs, result)), rtol, atol)
