#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/sys/*.rs, the declarations of the C interface, from the headers in include/triton/core.

    make_sys.py            writes them
    make_sys.py --check    says whether they are what would be written (exit code 1 when not)

tests/rust/check_sys.py lets the C compiler compare the result with the headers, without this script.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HEADERS = os.path.join(HERE, "..", "..", "include", "triton", "core")
FILES = {"server": "tritonserver.h", "backend": "tritonbackend.h", "cache": "tritoncache.h", "repoagent": "tritonrepoagent.h"}
SCALARS = {"void": "c_void", "char": "c_char", "bool": "bool", "int": "c_int", "unsigned int": "c_uint", "double": "f64",
           "size_t": "usize", "int32_t": "i32", "int64_t": "i64", "uint32_t": "u32", "uint64_t": "u64"}


def statements(path):
    """The declarations of a header, each on one line, without comments and preprocessor."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
    versions = re.findall(r"^#define (TRITON\w+_API_VERSION_\w+) (\d+)", text, re.M)
    text = re.sub(r"^#.*(?:\\\n.*)*$", "", text, flags=re.M)
    text = text.replace('extern "C" {', "")
    found, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if letter == ";" and depth <= 0:
            found.append(" ".join(text[begin:at].split()))
            begin = at + 1
    return versions, found


def rust_type(c):
    """`const char **` as `*mut *const c_char`."""
    stars = c.count("*")
    base = c.replace("*", " ").split()
    is_const = base[0] == "const"
    base = " ".join(word for word in base if word != "const")
    rust = SCALARS.get(base, base)
    for level in range(stars):
        rust = ("*const " if level == 0 and is_const else "*mut ") + rust
    return rust


def parameter(c, at):
    """Name and type of a parameter."""
    found = re.match(r"(.*?)(\w+)$", c.strip())
    kind, name = found.group(1).strip(), found.group(2)
    if not kind or name in SCALARS:
        kind, name = c.strip(), f"arg{at}"
    if name in ("type", "ref", "fn"):
        name += "_"
    return f"{name}: {rust_type(kind)}"


def signature(result, parameters):
    parameters = [] if parameters.strip() in ("", "void") else parameters.split(",")
    text = "(" + ", ".join(parameter(each, at) for at, each in enumerate(parameters)) + ")"
    result = result.strip()
    return text if result == "void" else f"{text} -> {rust_type(result)}"


def translate(path, header):
    versions, found = statements(path)
    out, functions, entries = [], [], []
    for name, value in versions:
        out.append(f"pub const {name}: u32 = {value};")
    for text in found:
        if re.match(r"struct \w+$", text):
            name = text.split()[1]
            out.append(f"opaque!({name});")
        elif re.match(r"typedef struct \w+ \w+$", text):
            _, _, tag, name = text.split()
            assert tag == name, text
        elif text.startswith("typedef enum"):
            body, name = re.match(r"typedef enum \w+ \{(.*)\} (\w+)$", text).groups()
            out.append(f"pub type {name} = c_uint;")
            for word in body.split(","):
                if word.strip():
                    key, value = word.split("=")
                    out.append(f"pub const {key.strip()}: {name} = {value.strip()};")
        elif text.startswith("typedef"):
            result, name, parameters = re.match(r"typedef (.*?)\(\*(\w+)\)\((.*)\)$", text).groups()
            out.append(f'pub type {name} = Option<unsafe extern "C" fn{signature(result, parameters)}>;')
        else:
            side, result, name, parameters = re.match(r"(TRITON\w+_(?:DECLSPEC|ISPEC)) (.*?)(\w+)\((.*)\)$", text).groups()
            if side.endswith("_ISPEC"):
                entries.append(f'pub type {name}_t = unsafe extern "C" fn{signature(result, parameters)};')
            else:
                functions.append(f"pub fn {name}{signature(result, parameters)};")
    head = [f"// SPDX-License-Identifier: Apache-2.0",
            f"//! What `include/triton/core/{header}` declares, where every function has its contract. Written by make_sys.py.",
            "use super::*;", ""]
    if entries:
        functions_of = ["", "// Defined by the plugin.", *entries]
    else:
        functions_of = []
    return "\n".join([*head, *out, *functions_of, "", 'unsafe extern "C" {', *functions, "}", ""])


def formatted(text):
    return subprocess.run(["rustfmt", "--edition", "2021", "--config-path", HERE, "--emit", "stdout"], input=text, capture_output=True,
                          text=True, check=True).stdout


def main():
    wrong = []
    for name, header in FILES.items():
        path = os.path.join(HERE, "src", "sys", f"{name}.rs")
        text = formatted(translate(os.path.join(HEADERS, header), header))
        if "--check" in sys.argv[1:]:
            with open(path, encoding="utf-8") as file:
                if file.read() != text:
                    wrong.append(path)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    for path in wrong:
        print(f"{os.path.relpath(path)} is not what make_sys.py writes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
