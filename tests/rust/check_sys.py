#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets the C compiler compare the declarations in bindings/rust/src/sys with the headers: types of functions, callbacks and entry points,
values and sizes. And all functions of tests/abi/abi_functions.tsv must be there. Independent of bindings/rust/make_sys.py.

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
           "i64": "int64_t", "usize": "size_t", "f64": "double", "bool": "bool"}


def c_type(rust):
    rust = rust.strip(" ,")
    for word, const in (("*mut ", ""), ("*const ", " const")):
        if rust.startswith(word):
            return f"{c_type(rust[len(word):])}{const} *"
    return C_NAMES.get(rust, rust)


def c_pointer(parameters, result):
    """The C type of a pointer to a function."""
    kinds = [c_type(each.split(":", 1)[1]) for each in parameters.split(",") if ":" in each]
    return f"{c_type(result) if result else 'void'} (*)({', '.join(kinds) or 'void'})"


def checks(text):
    """C assertions for what a Rust file declares, and the names of its functions."""
    text = " ".join(re.sub(r"//.*", "", text).split())
    lines, names = [], []

    def same(name, left, right):
        lines.append(f'_Static_assert(__builtin_types_compatible_p({left}, {right}), "{name}");')

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


def main():
    files = sorted(set(glob.glob(os.path.join(ROOT, "bindings", "rust", "src", "sys", "*.rs"))))
    lines = [f"#include <triton/core/triton{each}.h>" for each in ("server", "backend", "cache", "repoagent")]
    names = []
    for path in files:
        with open(path, encoding="utf-8") as file:
            more, found = checks(file.read())
        lines += more
        names += found
    with open(os.path.join(ROOT, "tests", "abi", "abi_functions.tsv"), encoding="utf-8") as file:
        expected = {row["function"] for row in csv.DictReader(file, delimiter="\t")}
    if set(names) != expected or len(names) != len(expected):
        print("missing:", sorted(expected - set(names)), "too many:", sorted(set(names) - expected))
        return 1
    with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
        source.write("\n".join(lines) + "\n")
        source.flush()
        code = subprocess.call([sys.argv[1] if len(sys.argv) > 1 else "cc", "-std=c17", "-fsyntax-only", "-Werror",
                                "-I" + os.path.join(ROOT, "include"), source.name])
    print(f"{len(names)} functions, {sum('_Static_assert' in line for line in lines)} assertions")
    return code


if __name__ == "__main__":
    sys.exit(main())
