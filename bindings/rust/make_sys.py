#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the declarations of the C interfaces: src/sys/*.rs from the headers in include/triton/core, and
engine/src/sys/*.rs from the headers of the engine in include/kelp.

    make_sys.py            writes them
    make_sys.py --check    reports whether they are up to date (exit code 1 if not)

tests/rust/check_sys.py lets the C compiler compare the result with the headers, without this script.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(HERE, "..", "..", "include")
# Directory of the declarations, and the header of each file in it.
TRITON = ("src/sys", {"server": "triton/core/tritonserver.h", "backend": "triton/core/tritonbackend.h",
                      "cache": "triton/core/tritoncache.h", "repoagent": "triton/core/tritonrepoagent.h"})
ENGINE = ("engine/src/sys", {name: f"kelp/{name}.h" for name in ("status", "allocator", "event", "tensor", "engine", "network", "builder")})
SCALARS = {"void": "c_void", "char": "c_char", "bool": "bool", "int": "c_int", "unsigned int": "c_uint", "double": "f64", "float": "f32",
           "size_t": "usize", "int32_t": "i32", "int64_t": "i64", "uint32_t": "u32", "uint64_t": "u64", "uint8_t": "u8"}
# Functions with variable arguments, and functions of which a type belongs to another header. The crate uses none of them.
OMITTED = {"kelp_status_new", "kelp_status_newv", "kelp_status_annotate", "kelp_runtime_graph_limits", "kelp_tensor_to_dl",
           "kelp_tensor_from_dl"}
KEYWORDS = {"type", "ref", "fn", "loop", "in", "move", "self"}


def statements(path):
    """The declarations of a header, each on one line, without comments and preprocessor."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
    versions = re.findall(r"^#define (TRITON\w+_API_VERSION_\w+|KELP_MAX_RANK|KELP_OFFERS_\w+)[\s\\]+(\d+)u?\b", text, re.M)
    text = text.replace("#include <kelp/layers.inc>", layers())
    text = re.sub(r"^#(?:.*\\\n)*.*$", "", text, flags=re.M)
    text = re.sub(r"\bKELP_MUST_USE\b|\bKELP_PRINTF\(.*?\)", "", text).replace("unsigned KELP_", "KELP_")
    text = text.replace('extern "C" {', "")
    found, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if letter == ";" and depth <= 0:
            found.append(" ".join(text[begin:at].split()))
            begin = at + 1
    return versions, found


def layers():
    """The enumerators of the layer types."""
    with open(os.path.join(INCLUDE, "kelp", "layers.inc"), encoding="utf-8") as file:
        return "".join(f"KELP_LAYER_{name}, " for name in re.findall(r"^KELP_LAYER\((\w+)", file.read(), re.M))


def rust_type(c):
    """`const char **` as `*mut *const c_char`."""
    base, *levels = c.split("*")
    words = [word for word in base.split() if word not in ("const", "struct")]
    rust = SCALARS.get(" ".join(words), " ".join(words))
    is_const = "const" in base.split()  # what the next pointer points to
    for level in levels:
        rust = ("*const " if is_const else "*mut ") + rust
        is_const = "const" in level.split()
    return rust


def parameter(c, at):
    """Name and type of a parameter."""
    function = re.match(r"(.*?)\(\*(\w+)\)\((.*)\)$", c.strip())
    if function:
        result, name, parameters = function.groups()
        return f'{rust_name(name)}: Option<unsafe extern "C" fn{signature(result, parameters)}>'
    found = re.match(r"(.*?)(\w+)$", c.strip())
    kind, name = (found.group(1).strip(), found.group(2)) if found else ("", "")
    if not kind or name in SCALARS:
        kind, name = c.strip(), f"arg{at}"
    return f"{rust_name(name)}: {rust_type(kind)}"


def rust_name(name):
    return name + "_" if name in KEYWORDS else name


def fields(body):
    """The fields of a struct, in Rust."""
    for text in filter(None, (each.strip() for each in body.split(";"))):
        function = re.match(r"(.*?)\(\*(\w+)\)\((.*)\)$", text)
        if function:
            result, name, parameters = function.groups()
            yield f'pub {rust_name(name)}: Option<unsafe extern "C" fn{signature(result, parameters)}>'
            continue
        kind, names = re.match(r"((?:const )?\w+)\s*(.*)$", text).groups()
        for declarator in names.split(","):
            stars, name, count = re.match(r"\s*(\**)(\w+)(?:\[(\w+)\])?$", declarator).groups()
            rust = rust_type(f"{kind} {stars}")
            size = count + " as usize" if count and not count.isdigit() else count
            yield f"pub {rust_name(name)}: " + (f"[{rust}; {size}]" if count else rust)


def enumerators(name, body):
    """The constants of an enumeration. One without a value follows the one before."""
    following = 0
    for word in filter(None, (each.strip() for each in body.split(","))):
        key, _, value = (part.strip() for part in word.partition("="))
        value = re.sub(r"\b(\d+)[uU]\b", r"\1", value) if value else str(following)
        following = int(value) + 1 if value.isdigit() else None
        yield f"pub const {key}: {name} = {value};"


def signature(result, parameters):
    parameters = [] if parameters.strip() in ("", "void") else re.split(r",(?![^()]*\))", parameters)
    text = "(" + ", ".join(parameter(each, at) for at, each in enumerate(parameters)) + ")"
    result = result.strip()
    return text if result == "void" else f"{text} -> {rust_type(result)}"


def translate(path, header, defined):
    """The declarations in Rust. `defined` collects the names of types."""
    versions, found = statements(path)
    out, functions, entries, forward = [], [], [], []
    for name, value in versions:
        out.append(f"pub const {name}: u32 = {value};")
    for text in found:
        if re.match(r"struct kelp_\w+$", text):
            continue  # of another header
        if re.match(r"struct \w+$", text):
            defined.add(text.split()[1])
            out.append(f"opaque!({text.split()[1]});")
        elif re.match(r"typedef struct \w+ \w+$", text):
            _, _, tag, name = text.split()
            assert tag == name, text
            forward.append(name)
        elif text.startswith("typedef struct"):
            body, name = re.match(r"typedef struct \w+ \{(.*)\} (\w+)$", text).groups()
            defined.add(name)
            out.append(f"#[repr(C)] #[derive(Clone, Copy)] pub struct {name} {{ {', '.join(fields(body))} }}")
        elif text.startswith("typedef enum"):
            body, name = re.match(r"typedef enum \w+ \{(.*)\} (\w+)$", text).groups()
            out.append(f"pub type {name} = c_uint;")
            out += enumerators(name, body)
        elif text.startswith("typedef"):
            result, name, parameters = re.match(r"typedef (.*?)\(\*(\w+)\)\((.*)\)$", text).groups()
            out.append(f'pub type {name} = Option<unsafe extern "C" fn{signature(result, parameters)}>;')
        else:
            side, result, name, parameters = re.match(r"(TRITON\w+_(?:DECLSPEC|ISPEC)|KELP_API) (.*?)(\w+)\((.*)\)$", text).groups()
            if side.endswith("_ISPEC"):
                entries.append(f'pub type {name}_t = unsafe extern "C" fn{signature(result, parameters)};')
            elif name not in OMITTED:
                functions.append(f"pub fn {name}{signature(result, parameters)};")
    for name in forward:  # with the definition in this header, or, in include/kelp, nowhere
        if name not in defined and header.startswith("kelp/"):
            defined.add(name)
            out.append(f"opaque!({name});")
    head = [f"// SPDX-License-Identifier: Apache-2.0",
            f"//! Declarations of `include/{header}`, which documents every function. Written by make_sys.py.",
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
    for directory, files in (TRITON, ENGINE):
        defined = set()
        for name, header in files.items():
            path = os.path.join(HERE, directory, f"{name}.rs")
            text = formatted(translate(os.path.join(INCLUDE, header), header, defined))
            if "--check" in sys.argv[1:]:
                with open(path, encoding="utf-8") as file:
                    if file.read() != text:
                        wrong.append(path)
            else:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
    for path in wrong:
        print(f"{os.path.relpath(path)} differs from what make_sys.py writes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
