#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/onnx/schemas_data.c, the operator schemas of the `onnx` package as one compact table, and
src/onnx/schema_index.h, the index of each operator's newest schema in that table.

Only facts are taken: names of operators, inputs, outputs and attributes, their types and counts.
Run it with the release of `onnx` that Kelp follows, and commit what it writes:

    python3 tools/gen_onnx_schemas.py
"""
import os

import onnx
from onnx import defs

# onnx.TensorProto.DataType by the names that type strings use
DTYPES = {"float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
          "string": 8, "bool": 9, "float16": 10, "double": 11, "uint32": 12, "uint64": 13,
          "complex64": 14, "complex128": 15, "bfloat16": 16, "float8e4m3fn": 17,
          "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20, "uint4": 21, "int4": 22,
          "float4e2m1": 23, "float8e8m0": 24, "uint2": 25, "int2": 26, "float6e2m3": 27,
          "float6e3m2": 28}
MAP, SEQUENCE_OF_MAP, OPTIONAL_OF_SEQUENCE = 1, 2, 4
OPTIONAL, VARIADIC, HETEROGENEOUS = 1, 2, 4
REQUIRED, HAS_DEFAULT = 1, 2
# The domains by their names in src/operator/operators.inc
DOMAINS = {"": "ONNX", "ai.onnx.ml": "ML", "ai.onnx.preview": "PREVIEW", "ai.onnx.preview.training": "TRAINING"}
DEPRECATED, FUNCTION, CONTEXT_FUNCTION = 1, 2, 4


class Pool:
    """Strings, each once, as one block of characters."""

    def __init__(self):
        self.offsets, self.size, self.items = {}, 0, []

    def add(self, text):
        assert not text[:1].isdigit()  # would extend the \\0 before it
        if text not in self.offsets:
            self.offsets[text] = self.size
            self.items.append(text)
            self.size += len(text.encode()) + 1
        return self.offsets[text]


class Flat:
    """Lists laid end to end; a list that is already there as a run is not stored again."""

    def __init__(self):
        self.items, self.known = [], {}

    def add(self, values):
        values = tuple(values)
        if not values:
            return 0
        if values not in self.known:
            for at in range(len(self.items) - len(values) + 1):
                if tuple(self.items[at:at + len(values)]) == values:
                    self.known[values] = at
                    break
            else:
                self.known[values] = len(self.items)
                self.items.extend(values)
        return self.known[values]


def type_set(names):
    """(tensor bits, sequence bits, optional bits, flags) of a set of type strings."""
    bits, flags = {"tensor": 0, "seq": 0, "optional": 0}, 0
    for name in names:
        outer, inner = name[:-1].split("(", 1)
        if outer == "map":
            flags |= MAP
        elif outer == "seq" and inner.startswith("map("):
            flags |= SEQUENCE_OF_MAP
        elif outer == "optional" and inner.startswith("seq("):
            flags |= OPTIONAL_OF_SEQUENCE
        elif outer == "tensor":
            bits["tensor"] |= 1 << DTYPES[inner]
        else:
            bits[outer] |= 1 << DTYPES[inner[len("tensor("):-1]]
    return bits["tensor"], bits["seq"], bits["optional"], flags


class Table:
    def __init__(self, schemas):
        self.pool, self.params, self.attrs = Pool(), Flat(), Flat()
        self.types, self.sets, self.rows = Flat(), {}, []
        for schema in schemas:
            self.rows.append(self.row(schema))

    def set_id(self, names):
        return self.sets.setdefault(type_set(names), len(self.sets))

    def param_list(self, params, types, names):
        out = []
        for p in params:
            if p.type_str not in names:  # a type spelled out is a constraint of its own
                names[p.type_str] = len(types)
                types.append(self.set_id([p.type_str]))
            flags = 0
            if p.option == defs.OpSchema.FormalParameterOption.Optional:
                flags |= OPTIONAL
            if p.option == defs.OpSchema.FormalParameterOption.Variadic:
                flags |= VARIADIC
                if not p.is_homogeneous:
                    flags |= HETEROGENEOUS
            out.append((self.pool.add(p.name), names[p.type_str], flags))
        return out

    def row(self, schema):
        types, names = [], {}
        for constraint in schema.type_constraints:
            names[constraint.type_param_str] = len(types)
            types.append(self.set_id(constraint.allowed_type_strs))
        inputs = self.param_list(schema.inputs, types, names)
        outputs = self.param_list(schema.outputs, types, names)
        attrs = [(self.pool.add(a.name), int(a.type.value),
                  (REQUIRED if a.required else 0) | (HAS_DEFAULT if a.default_value.type else 0))
                 for a in sorted(schema.attributes.values(), key=lambda a: a.name)]
        flags = (DEPRECATED if schema.deprecated else 0) | \
            (FUNCTION if schema.has_function else 0) | \
            (CONTEXT_FUNCTION if schema.has_context_dependent_function else 0)
        return (self.pool.add(schema.domain), self.pool.add(schema.name), self.params.add(inputs),
                self.params.add(outputs), self.attrs.add(attrs), self.types.add(types),
                schema.since_version, len(inputs), len(outputs), len(attrs), len(types),
                min(schema.min_input, 255), min(schema.max_input, 255),
                min(schema.min_output, 255), min(schema.max_output, 255), flags)


def emit(items, out):
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 98:
            out.write(line + "\n")
            line = "   "
        line += " " + item + ","
    out.write(line + "\n")


def braces(values):
    return "{" + ",".join(str(v) for v in values) + "}"


def newest(schemas):
    latest = {}
    for schema in schemas:
        latest[schema.domain] = max(latest.get(schema.domain, 0), schema.since_version)
    latest[""] = defs.onnx_opset_version()
    return sorted(latest.items())


def write_table(schemas, out):
    table = Table(schemas)
    domains = [(table.pool.add(domain), version) for domain, version in newest(schemas)]
    assert table.pool.size < 65536 and len(table.params.items) < 65536
    out.write("/* SPDX-License-Identifier: Apache-2.0 */\n"
              "/* Operator schemas. Written by tools/gen_onnx_schemas.py from onnx "
              f"{onnx.__version__}; not edited by hand. */\n"
              "#include \"onnx/schema_table.h\"\n\n/* clang-format off */\n")
    out.write("const char kelp_onnx_strings[] =\n")
    line = ""
    for text in table.pool.items:
        if len(line) + len(text) + 2 > 90:
            out.write(f"    \"{line}\"\n")
            line = ""
        line += text + "\\0"
    out.write(f"    \"{line}\";\n\n")
    for name, kind, items in (
            ("sets", "kelp_onnx_type_set",
             [braces([f"0x{s[0]:x}u", f"0x{s[1]:x}u", f"0x{s[2]:x}u", s[3]]) for s in table.sets]),
            ("params", "kelp_onnx_param", [braces(p) for p in table.params.items]),
            ("attrs", "kelp_onnx_attr_schema", [braces(a) for a in table.attrs.items]),
            ("types", "uint8_t", [str(t) for t in table.types.items]),
            ("domains", "kelp_onnx_domain", [braces(d) for d in domains]),
            ("schemas", "kelp_onnx_schema", [braces(r) for r in table.rows])):
        out.write(f"const {kind} kelp_onnx_{name}[] = {{\n")
        emit(items, out)
        out.write("};\n")
        if name in ("domains", "schemas"):
            out.write(f"const size_t kelp_onnx_{name}_count = {len(items)};\n")
        out.write("\n")
    out.write("/* clang-format on */\n")


def write_index(schemas, out):
    out.write("/* SPDX-License-Identifier: Apache-2.0 */\n"
              "/* Indices of the newest schemas. Written by tools/gen_onnx_schemas.py from onnx "
              f"{onnx.__version__}; not edited by hand. */\n"
              "#ifndef KELP_ONNX_SCHEMA_INDEX_H_\n#define KELP_ONNX_SCHEMA_INDEX_H_\n\n"
              "/* clang-format off */\nenum {\n")
    known = set()
    for index, schema in enumerate(schemas):
        name = f"KELP_ONNX_SCHEMA_{DOMAINS[schema.domain]}_{schema.name}"
        if name not in known:
            out.write(f"    {name} = {index},\n")
        known.add(name)
    out.write("};\n/* clang-format on */\n\n#endif\n")


def main():
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src", "onnx")
    schemas = sorted(defs.get_all_schemas_with_history(),
                     key=lambda s: (s.domain, s.name, -s.since_version))
    for name, write in (("schemas_data.c", write_table), ("schema_index.h", write_index)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            write(schemas, out)


if __name__ == "__main__":
    main()
