#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a source file that compiles only while the public headers say what the ABI tables say.

It asserts the type of every function and callback, the value of every enumerator, and the versions.
Nothing in it is evaluated, so that it needs no library. In C a parameter of an enumeration cannot
be told from one of its integer type; the C++ file tells them apart, and asserts C linkage too.

usage: gen_abi_checks.py c|c++ TABLE_DIRECTORY OUT
"""

import os
import re
import sys

from abi_table import fail, read_enums, read_functions, read_typedefs, write_text

VERSIONS = (("TRITONSERVER", 1, 34), ("TRITONBACKEND", 1, 19), ("TRITONREPOAGENT", 0, 1),
            ("TRITONCACHE", 0, 1))

HEAD = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the public headers against the ABI tables. Made by gen_abi_checks.py. */
#include <triton/core/tritonbackend.h>
#include <triton/core/tritoncache.h>
#include <triton/core/tritonrepoagent.h>
#include <triton/core/tritonserver.h>
"""


class C:
    """Assertions as C11 and later have them."""

    head = HEAD

    @staticmethod
    def check(condition, text):
        return f'_Static_assert({condition}, "{text}");'

    @staticmethod
    def same_function(name, pointer):
        return f"_Generic(&{name}, {pointer}: 1, default: 0)"

    @staticmethod
    def same_typedef(name, pointer):
        return f"_Generic(({name})0, {pointer}: 1, default: 0)"

    @staticmethod
    def extras(row):
        del row
        return []

    @staticmethod
    def enumerator(enum, name, value):
        del enum
        return f"{name} == {value}"


class Cxx:
    """Assertions as C++17 has them."""

    head = HEAD + "\n#include <type_traits>\n"

    @staticmethod
    def check(condition, text):
        return f'static_assert({condition}, "{text}");'

    @staticmethod
    def same_function(name, pointer):
        return f"std::is_same<decltype(&{name}), {pointer}>::value"

    @staticmethod
    def same_typedef(name, pointer):
        return f"std::is_same<{name}, {pointer}>::value"

    @staticmethod
    def extras(row):
        # A second declaration conflicts when the header's has another linkage.
        return [f'extern "C" {row["return"]} {row["function"]}({row["params"]});']

    @staticmethod
    def enumerator(enum, name, value):
        return f"{name} == {value} && std::is_same<decltype({name}), {enum}>::value"


def generate(language, tables):
    """Returns the text of the source file."""
    lines = [language.head]
    for prefix, major, minor in VERSIONS:
        for part, value in (("MAJOR", major), ("MINOR", minor)):
            macro = f"{prefix}_API_VERSION_{part}"
            lines.append(language.check(f"{macro} == {value}", f"{macro} is not {value}"))
    enums = read_enums(os.path.join(tables, "abi_enums.tsv"))
    for enum in dict.fromkeys(row["enum"] for row in enums):
        lines.append(language.check(f"sizeof({enum}) == sizeof(int)", f"{enum} is not an int wide"))
    for row in enums:
        lines.append(language.check(
            language.enumerator(row["enum"], row["enumerator"], row["value"]),
            f"{row['enumerator']} is not {row['value']} of {row['enum']}"))
    for row in read_typedefs(os.path.join(tables, "abi_typedefs.tsv")):
        if not re.search(r"\(\*\)\(", row["type"]):
            fail(f"abi_typedefs.tsv: '{row['typedef']}': expected a pointer to a function")
        lines.append(language.check(language.same_typedef(row["typedef"], row["type"]),
                                    f"{row['typedef']} has another type"))
    for row in read_functions(os.path.join(tables, "abi_functions.tsv")):
        pointer = f"{row['return']} (*)({row['params']})"
        lines.append(language.check(language.same_function(row["function"], pointer),
                                    f"{row['function']} has another type"))
        lines += language.extras(row)
    return "\n".join(lines) + "\n"


def main():
    languages = {"c": C, "c++": Cxx}
    if len(sys.argv) != 4 or sys.argv[1] not in languages:
        fail("usage: gen_abi_checks.py c|c++ TABLE_DIRECTORY OUT")
    language, tables, out = sys.argv[1:]
    write_text(out, generate(languages[language], tables))


if __name__ == "__main__":
    main()
