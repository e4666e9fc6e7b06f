#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets the C compiler compare the declarations in bindings/rust/src/sys and bindings/rust/engine/src/sys with the headers: types of
functions, callbacks and entry points, values, sizes and layouts. All functions of tests/abi/abi_functions.tsv must be in the first. All
functions of kelp/network.h, kelp/builder.h and kelp/engine.h must be in the second, and the crate must use each of them except those in
UNUSED. Independent of bindings/rust/make_sys.py.

    check_sys.py [CC]
"""
import csv
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
C_NAMES = {"c_void": "void", "c_char": "char", "c_int": "int", "c_uint": "unsigned int", "u32": "uint32_t", "i32": "int32_t", "u64": "uint64_t",
           "i64": "int64_t", "usize": "size_t", "f64": "double", "f32": "float", "u8": "uint8_t", "bool": "bool"}
# Functions of the engine's headers that the Rust crate does not use, by what they are for.
UNUSED = {
    "references, which Rust counts, and flags, which the configuration keeps": r".*_retain|kelp_builder_config_flags",
    "graphs and operators, which kelp/graph.h and kelp/opset.h declare": r"kelp_runtime_(register_opset|opsets|graph_limits|allocator)|"
        r"kelp_op_env_.*|kelp_engine_create|kelp_engine_subgraph.*|kelp_precision_.*",
    "statistics and profiles of operators": r"kelp_engine_get_stats|kelp_context_plan_stats|kelp_context_set_profiler|kelp_runtime_isa",
    "plug-ins without settings, or described by text": r"kelp_runtime_load_plugins?",
    "recognizing plan files": r"kelp_plan_.*",
    "indices, which the crate finds in its copy of the names": r"kelp_engine_find_.*",
    "memory and weights on a device": r"kelp_engine_(set|write)_runtime_cache|kelp_engine_streamable_weights|kelp_engine_set_weight_budget|"
        r"kelp_context_set_output_device|kelp_context_set_workspace",
    "callbacks during a run": r"kelp_context_set_output_allocator|kelp_context_cancel|kelp_context_set_interrupt",
}


def c_type(rust):
    rust = rust.strip(" ,")
    for word, const in (("*mut ", ""), ("*const ", " const")):
        if rust.startswith(word):
            return f"{c_type(rust[len(word):])}{const} *"
    array = re.match(r"\[(.*); (\w+)(?: as usize)?\]$", rust)
    if array:
        return f"__typeof__({c_type(array.group(1))}[{array.group(2)}])"
    function = re.match(r'Option< *unsafe extern "C" fn\((.*)\)(?: -> (.*?))?,? *>$', rust)
    if function:
        return f"__typeof__({c_pointer(*function.groups())})"
    return C_NAMES.get(rust, rust)


def c_pointer(parameters, result):
    """The C type of a pointer to a function."""
    kinds = [c_type(each.split(":", 1)[1]) for each in re.split(r",(?![^(]*\))(?=\s*\w+:|\s*$)", parameters) if ":" in each]
    return f"{c_type(result) if result else 'void'} (*)({', '.join(kinds) or 'void'})"


def checks(text):
    """C assertions for what a Rust file declares, and the names of its functions."""
    text = " ".join(re.sub(r"//.*", "", text).split())
    lines, names = [], []

    def same(name, left, right):
        lines.append(f'_Static_assert(__builtin_types_compatible_p({left}, {right}), "{name}");')

    for name, fields in re.findall(r"#\[repr\(C\)\] #\[derive\(Clone, Copy\)\] pub struct (\w+) \{(.*?)\}", text):
        fields = re.findall(r"pub (\w+): (.*?)(?:,(?= *pub )|,? *$)", fields)
        members = " ".join(f"{c_type(kind)} {field.rstrip('_')};" for field, kind in fields)
        lines.append(f"struct mirror_{name} {{ {members} }};")
        lines.append(f'_Static_assert(sizeof(struct mirror_{name}) == sizeof({name}), "{name}");')
        for field, kind in fields:
            field = field.rstrip("_")
            lines.append(f'_Static_assert(offsetof(struct mirror_{name}, {field}) == offsetof({name}, {field}), "{name}.{field}");')
            same(f"{name}.{field}", f"__typeof__((({name} *)0)->{field})", c_type(kind))
    for name, parameters, result in re.findall(r"pub fn (\w+)\((.*?)\)(?: -> ([^;]+))?;", text):
        names.append(name)
        same(name, f"__typeof__(&{name})", c_pointer(parameters, result))
    for name, parameters, result in re.findall(r'pub type (\w+)_t = unsafe extern "C" fn\((.*?)\)(?: -> ([^;]+))?;', text):
        names.append(name)
        same(name, f"__typeof__(&{name})", c_pointer(parameters, result))
    for name, parameters, result in re.findall(r'pub type (\w+) = Option<\s*unsafe extern "C" fn\((.*?)\)(?: -> ([^;>]+))?,?\s*>;', text):
        same(name, name, c_pointer(parameters, result))
    for name in re.findall(r"pub type (\w+) = c_uint;", text):
        lines.append(f'_Static_assert(sizeof({name}) == sizeof(unsigned int) && ({name})-1 > 0, "{name}");')
    for name, value in re.findall(r"pub const (\w+): \w+ = ([^;]+);", text):
        lines.append(f'_Static_assert({name} == ({value}), "{name}");')
    return lines, names


def declared(pattern):
    """Assertions and functions of the Rust files."""
    lines, names = [], []
    for path in sorted(glob.glob(os.path.join(ROOT, "bindings", "rust", *pattern))):
        with open(path, encoding="utf-8") as file:
            more, found = checks(file.read())
        lines += more
        names += found
    return lines, names


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def compare(what, found, expected):
    found, expected = set(found), set(expected)
    if found != expected:
        print(f"{what}: missing:", sorted(expected - found), "too many:", sorted(found - expected))
    return found == expected


def main():
    lines = [f"#include <triton/core/triton{each}.h>" for each in ("server", "backend", "cache", "repoagent")]
    lines += ["#include <kelp/builder.h>", "#include <kelp/plugin.h>", "#include <stddef.h>"]
    triton, names = declared(("src", "sys", "*.rs"))
    engine, functions = declared(("engine", "src", "sys", "*.rs"))
    lines += triton + engine
    expected = [row["function"] for row in csv.DictReader(read("tests", "abi", "abi_functions.tsv").splitlines(), delimiter="\t")]
    right = compare("declarations of Triton", names, expected) and len(names) == len(expected)
    headers = "".join(read("include", "kelp", f"{name}.h") for name in ("network", "builder", "engine"))
    headers = re.findall(r"^KELP_API [^;]*?(kelp_\w+)\(", headers, re.M)
    omitted = {"kelp_runtime_graph_limits"}  # returns a struct of kelp/graph.h
    right = compare("declarations of the engine", {name for name in functions if name in headers}, set(headers) - omitted) and right
    crate = "".join(read(path) for path in glob.glob(os.path.join(ROOT, "bindings", "rust", "engine", "src", "*.rs")))
    unused = [name for name in headers if any(re.fullmatch(pattern, name) for pattern in UNUSED.values())]
    used = [name for name in headers if re.search(rf"\b{name}\b", crate)]
    right = compare("functions that the crate uses", used, set(headers) - set(unused)) and right
    if not right:
        return 1
    with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
        source.write("\n".join(lines) + "\n")
        source.flush()
        code = subprocess.call([sys.argv[1] if len(sys.argv) > 1 else "cc", "-std=gnu17", "-fsyntax-only", "-Werror",
                                "-I" + os.path.join(ROOT, "include"), source.name])
    print(f"{len(names) + len(functions)} functions, {sum('_Static_assert' in line for line in lines)} assertions")
    return code


if __name__ == "__main__":
    sys.exit(main())
