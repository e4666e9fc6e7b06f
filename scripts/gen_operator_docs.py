#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/operators.md: every operator of src/operator/operators.inc as `kelp ops` lists it, and the types in which its test cases pass.

    gen_operator_docs.py KELP CASES [--check]

CASES is the folder that tests/ops/gen_cases.py filled (build/release/tests/ops/cases). --check compares instead of writing: operators,
versions and kinds must be the same, and no type may be claimed that no case shows. Both fail when an operator has no case that passes, or
cases in one type alone where the standard allows several.
"""
import json
import os
import subprocess
import sys

import onnx

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "operators.md")
T = onnx.TensorProto
# What the types are called here, in the order in which they are listed.
NAMES = {T.FLOAT: "f32", T.DOUBLE: "f64", T.FLOAT16: "f16", T.BFLOAT16: "bf16", T.INT8: "i8", T.INT16: "i16", T.INT32: "i32", T.INT64: "i64",
         T.UINT8: "u8", T.UINT16: "u16", T.UINT32: "u32", T.UINT64: "u64", T.BOOL: "bool", T.STRING: "string", T.COMPLEX64: "c64",
         T.COMPLEX128: "c128", T.FLOAT8E4M3FN: "f8e4m3fn", T.FLOAT8E4M3FNUZ: "f8e4m3fnuz", T.FLOAT8E5M2: "f8e5m2",
         T.FLOAT8E5M2FNUZ: "f8e5m2fnuz", T.FLOAT8E8M0: "f8e8m0", T.FLOAT4E2M1: "f4e2m1", T.INT4: "i4", T.UINT4: "u4", T.INT2: "i2",
         T.UINT2: "u2"}
NAMES.update({getattr(T, name): short for name, short in (("FLOAT6E2M3", "f6e2m3"), ("FLOAT6E3M2", "f6e3m2")) if hasattr(T, name)})

INTRODUCTION = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by scripts/gen_operator_docs.py; `make operator-docs` writes it anew. -->
# Operators

{count} operators, from the one list `src/operator/operators.inc`, which dispatch and `kelp ops` follow as well (there with those that only passes make). Versions are those of the domain's opset.
Kind: a kernel is planned ahead (view: the result is the input's memory under another shape; in place: it may be written over an input); what is
dispatched runs when its inputs are there, for only data tell the shape of the result, or which subgraph runs. Types are those of the first input
whose type may vary in which at least one case of the tests gives its reference's answer; kernels take others that the standard allows.
`bench/operators.py` measures each on the largest of its cases, beside ONNX Runtime.

Random operators, and Dropout in training, draw as NumPy's RandomState does from its seed: with attribute `seed` every run gives the same values,
those of ONNX's reference, whatever the number of threads; without it every run gives others. Gradient is written out, before anything else is
done with the model, as the nodes that compute it; an operator whose derivative is not known is refused by name.
"""


def passing(cases):
    with open(os.path.join(ROOT, "tests", "ops", "missing_cases.tsv"), encoding="utf-8") as file:
        missing = {line.split("\t")[0] for line in file}
    with open(os.path.join(cases, "cases.txt"), encoding="utf-8") as file:
        return [name.strip() for name in file if name.strip() not in missing and not name.strip().endswith("_refused")]


def element_type(kind):
    """Of a TypeProto; 0 when it is none of tensors."""
    what = kind.WhichOneof("value")
    if what == "tensor_type":
        return kind.tensor_type.elem_type
    if what in ("sequence_type", "optional_type"):
        return element_type(getattr(kind, what).elem_type)
    return 0


def varying_input(node, version):
    """Which input says the type; None when none may vary."""
    try:
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return 0
    for i, parameter in enumerate(schema.inputs):
        allowed = [c for c in schema.type_constraints if c.type_param_str == parameter.type_str]
        if allowed and len(allowed[0].allowed_type_strs) > 1:
            return i
    return None


# What gives the type is an attribute, which other cases vary.
BY_ATTRIBUTE = {"RandomNormalLike"}


def types_shown(cases):
    """(domain, operator) -> numbers of types; and those of the standard whose tensors may have several."""
    shown, several = {}, set()
    for name in passing(cases):
        model = onnx.load(os.path.join(cases, name + ".onnx"))
        try:
            model = onnx.shape_inference.infer_shapes(model)
        except onnx.shape_inference.InferenceError:
            pass
        versions = {entry.domain: entry.version for entry in model.opset_import}
        graph = model.graph
        known = {v.name: element_type(v.type) for v in (*graph.input, *graph.output, *graph.value_info)}
        known.update({t.name: t.data_type for t in graph.initializer})
        for node in graph.node:
            index = varying_input(node, versions.get(node.domain, 1))
            value = node.output[0] if index is None or index >= len(node.input) else node.input[index]
            domain = node.domain or "ai.onnx"
            shown.setdefault((domain, node.op_type), set())
            if index is not None and node.op_type not in BY_ATTRIBUTE and onnx.defs.has(node.op_type, domain=node.domain) and known.get(value, 0) in NAMES:
                several.add((domain, node.op_type))
            if known.get(value, 0) in NAMES:
                shown[domain, node.op_type].add(known[value])
    return shown, several


def thin(kelp, shown, several):
    """What is said of operators that are not tested enough."""
    for domain, row in rows(kelp, shown):
        if (domain, row[0]) not in shown:
            yield f"{domain} {row[0]} is in no case that passes"
        elif (domain, row[0]) in several and len(shown[domain, row[0]]) < 2:
            yield f"{domain} {row[0]} is shown in one type alone, {row[2]}"


def rows(kelp, shown):
    listed = json.loads(subprocess.run([kelp, "ops", "--json"], check=True, capture_output=True, text=True).stdout)
    for entry in listed:
        if entry["domain"] == "kelp":  # made by passes, in no model
            continue
        until = f"-{entry['until']}" if entry["until"] else "+"
        types = " ".join(short for number, short in NAMES.items() if number in shown.get((entry["domain"], entry["name"]), ()))
        yield entry["domain"], (entry["name"], f"{entry['since']}{until}", types, entry["kind"])


def page(kelp, shown):
    all_rows = list(rows(kelp, shown))
    text = INTRODUCTION.format(count=len(all_rows))
    last = None
    for domain, row in all_rows:
        if domain != last:
            text += f"\n## {domain}\n\n| operator | versions | types shown by tests | kind |\n|---|---|---|---|\n"
            last = domain
        text += "| " + " | ".join(row) + " |\n"
    return text


def cells(text):
    """(domain, operator, versions, kind) -> types."""
    found, domain = {}, None
    for line in text.splitlines():
        if line.startswith("## "):
            domain = line[3:]
        elif line.startswith("| ") and not line.startswith("| operator"):
            name, versions, types, kind = (cell.strip() for cell in line.strip("|").split("|"))
            found[domain, name, versions, kind] = set(types.split())
    return found


def main():
    kelp, cases = sys.argv[1:3]
    shown, several = types_shown(cases)
    text = page(kelp, shown)
    lacking = list(thin(kelp, shown, several))
    for line in lacking:
        print(line)
    if "--check" not in sys.argv:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(text)
        return 1 if lacking else 0
    with open(PAGE, encoding="utf-8") as file:
        held = cells(file.read())
    now, wrong = cells(text), 0
    for key in sorted(set(held) ^ set(now)):
        print(f"docs/operators.md {'has' if key in held else 'lacks'} {' '.join(key)}")
        wrong += 1
    for key in sorted(set(held) & set(now)):
        if held[key] - now[key]:
            print(f"docs/operators.md: no case shows {' '.join(key[:2])} with {' '.join(sorted(held[key] - now[key]))}")
            wrong += 1
    if wrong:
        print("run 'make operator-docs'")
    return 1 if wrong or lacking else 0


if __name__ == "__main__":
    sys.exit(main())
