# SPDX-License-Identifier: Apache-2.0
"""Cases of the onnx package and of the other files, with other dtypes. They run after all other files: each operator that ONNX's node tests,
or the other files, test only in float32 is tested in two or more other types.

Cases of the onnx package: expected float16 values are those of its reference for the rounded inputs in float32, rounded once; float64 values are
those of its reference. Cases of the other files: the values that their peer computes in float32 for inputs that both types represent.
"""
import numpy as np
import onnx

from .common import T, helper, node_tests, run_onnx, single_nodes

# Random, or tested in other types elsewhere; the standard does not define how GridSample interpolates integers.
LEFT_OUT = {"RandomNormalLike", "RandomUniformLike", "Bernoulli", "Dropout", "OptionalGetElement", ("GridSample", np.int16), ("GridSample", np.uint32)}
# Results are elements of the inputs: the reference of ONNX does not implement Scatter.
MOVES = {"Scatter"}
# A function whose body has float32 constants, which the reference of ONNX does not evaluate in float64.
IN_FLOAT = {"MeanVarianceNormalization"}
# Operators of com.microsoft whose scales are float32 by definition.
FLOAT_ONLY = ("QLinear", "QGemm", "DynamicQuantize", "MatMulIntegerToFloat")
FLOATS = [(T.DOUBLE, "tensor(double)", np.float64), (T.FLOAT16, "tensor(float16)", np.float16)]
INTEGERS = [(T.INT16, "tensor(int16)", np.int16), (T.UINT32, "tensor(uint32)", np.uint32)]
CASES_AN_OPERATOR = 2


def varying(schema):
    """Returns the type variable of the first input with several permitted types, and those types."""
    for parameter in schema.inputs:
        for constraint in schema.type_constraints:
            if constraint.type_param_str == parameter.type_str and len(constraint.allowed_type_strs) > 1:
                return parameter.type_str, set(constraint.allowed_type_strs)
    return None, set()


def bound(formal, count, name):
    """Returns which of the `count` values of a node have that type variable."""
    return [i for i in range(count) if formal[min(i, len(formal) - 1)].type_str == name]


def one_node(test):
    """Returns the node and its schema if the test has one node and tensors only; otherwise None."""
    graph = test.model.graph
    if len(graph.node) != 1 or graph.initializer or graph.node[0].domain or graph.node[0].op_type in LEFT_OUT:
        return None
    node = graph.node[0]
    kinds = [value.type.WhichOneof("value") for value in [*graph.input, *graph.output]]
    if any(kind != "tensor_type" for kind in kinds) or any(a.type == onnx.AttributeProto.GRAPH for a in node.attribute):
        return None
    version = next(o.version for o in test.model.opset_import if o.domain == node.domain)
    return node, onnx.defs.get_schema(node.op_type, version, node.domain)


def tested_types():
    """Returns operator -> types of the tests of the package, and operator -> tests."""
    shown, tests = {}, {}
    for test in node_tests():
        found = one_node(test)
        name = varying(found[1])[0] if found else None
        if name is None:
            continue
        node, schema = found
        types = {value.name: value.type for value in test.model.graph.input}
        for i in bound(schema.inputs, len(node.input), name):
            if node.input[i] in types:
                shown.setdefault(node.op_type, set()).add(types[node.input[i]].tensor_type.elem_type)
        tests.setdefault(node.op_type, []).append((test, node, schema, name))
    return shown, tests


def retyped(test, node, schema, name, number):
    """Returns the model with another type, and the names of the inputs and outputs that have it."""
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    changed = {node.input[i] for i in bound(schema.inputs, len(node.input), name)}
    changed |= {node.output[i] for i in bound(schema.outputs, len(node.output), name)}
    for value in [*model.graph.input, *model.graph.output]:
        if value.name in changed:
            value.type.tensor_type.elem_type = number
    return model, changed


def convert(value, kind):
    """Returns the values in another type; floats become small integers, of both signs if the type is signed."""
    value = np.asarray(value)
    if np.issubdtype(kind, np.integer) and value.dtype.kind == "f":
        value = np.clip(np.round(value * 8), 0 if np.issubdtype(kind, np.unsignedinteger) else -120, 120)
    return value.astype(kind)


def reference(test, node, model, feeds, changed, kind):
    """Returns the expected outputs and their tolerances."""
    if node.op_type in MOVES:
        return [convert(value, kind) for value in test.data_sets[0][1]], (0, 0)
    if kind == np.float16 or node.op_type in IN_FLOAT:
        wider = {label: data.astype(np.float32) if label in changed else data for label, data in feeds}
        return run_onnx(test.model, wider), (4e-3, 2e-3) if kind == np.float16 else (1e-5, 1e-6)
    return run_onnx(model, dict(feeds)), (1e-6, 1e-7) if kind == np.float64 else (0, 0)


def add(own, test, node, schema, name, number, kind):
    model, changed = retyped(test, node, schema, name, number)
    inputs = [(value.name, data) for value, data in zip(test.model.graph.input, test.data_sets[0][0])]
    feeds = [(label, convert(data, kind) if label in changed else data) for label, data in inputs]
    answers, tolerance = reference(test, node, model, feeds, changed, kind)
    types = [helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) for value in model.graph.output]
    answers = [np.asarray(answer).astype(dtype) for answer, dtype in zip(answers, types)]
    if types != [kind] and kind in (np.float64, np.float16) and np.float32 in types:
        tolerance = tuple(max(t, least) for t, least in zip(tolerance, (1e-4, 1e-5)))
    own.model(f"{test.name[5:]}_{np.dtype(kind).name}", model, feeds, answers, *tolerance, op=node.op_type)


def package_cases(own):
    shown, tests = tested_types()
    for op in sorted(tests):
        if shown.get(op, set()) != {T.FLOAT}:
            continue
        for test, node, schema, name in tests[op][:CASES_AN_OPERATOR]:
            allowed = varying(schema)[1]
            for number, text, kind in FLOATS + INTEGERS:
                if text in allowed and (op, kind) not in LEFT_OUT:
                    add(own, test, node, schema, name, number, kind)
    return set(tests)


def floats_of(model, node):
    """Returns the float32 values of the type variable, or all float32 values if the operator has no schema; and the permitted types."""
    values = {value.name: value.type.tensor_type for value in [*model.graph.input, *model.graph.output]}
    values.update((value.name, value) for value in model.graph.initializer)
    numbers = {name: value.data_type if isinstance(value, onnx.TensorProto) else value.elem_type for name, value in values.items()}
    try:
        version = next(o.version for o in model.opset_import if o.domain == node.domain)
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return {name for name, number in numbers.items() if number == T.FLOAT}, None
    name, allowed = varying(schema)
    changed = {node.input[i] for i in bound(schema.inputs, len(node.input), name)} if name else set()
    changed |= {node.output[i] for i in bound(schema.outputs, len(node.output), name)} if name else set()
    return {value for value in changed if numbers.get(value) == T.FLOAT}, allowed


def twin(own, op, model, feeds, peer, number, text, kind):
    """Adds the case in another type; returns false if the operator does not permit it."""
    changed, allowed = floats_of(model, model.graph.node[0])
    if not changed or (allowed is not None and text not in allowed) or (allowed is None and kind != np.float16):
        return False
    near = [(label, data.astype(np.float16).astype(np.float32) if label in changed else data) for label, data in feeds]
    plain, other = onnx.ModelProto(), onnx.ModelProto()
    plain.CopyFrom(model)
    other.CopyFrom(model)
    for value in plain.graph.initializer:
        if value.name in changed:
            value.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(value).astype(np.float16).astype(np.float32), value.name))
    for value, rounded in zip(other.graph.initializer, plain.graph.initializer):
        if value.name in changed:
            value.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(rounded).astype(kind), value.name))
    for value in [*other.graph.input, *other.graph.output]:
        if value.name in changed:
            value.type.tensor_type.elem_type = number
    answers = peer(plain, dict(near))
    unknown = allowed is None  # without a schema the outputs have no type either
    answers = [a.astype(kind) if value.name in changed or (unknown and a.dtype == np.float32) else a for a, value in zip(answers, other.graph.output)]
    own.model(np.dtype(kind).name, other, [(label, data.astype(kind) if label in changed else data) for label, data in near], answers,
              *((4e-3, 4e-3) if kind == np.float16 else (1e-4, 1e-5)), op=op)
    return True


def family_cases(own, done):
    """Adds the first two cases of each operator that the other files test in float32 only."""
    types, counts = {}, {}
    for op, domain, model, _, _ in single_nodes:
        changed, _ = floats_of(model, model.graph.node[0])
        types.setdefault((op, domain), set()).add(bool(changed))
    for op, domain, model, feeds, peer in single_nodes:
        if op.startswith(FLOAT_ONLY):
            continue
        if types[op, domain] != {True} or (op in done and not domain) or op in LEFT_OUT or counts.get((op, domain), 0) == CASES_AN_OPERATOR:
            continue
        counts[op, domain] = counts.get((op, domain), 0) + 1
        for number, text, kind in FLOATS:
            twin(own, op, model, feeds, peer, number, text, kind)


def retyped_nodes(own):
    family_cases(own, package_cases(own))


CASES = [retyped_nodes]
