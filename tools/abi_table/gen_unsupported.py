#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C file that defines every listed export as one that is not supported.

A backend is loaded with all symbols bound, so that one missing export fails the load: each of the
runtime's exports has to exist from the start. A function that returns an error returns UNSUPPORTED
with its own name; a void one does nothing; any other returns zero.

usage: gen_unsupported.py ABI_FUNCTIONS.tsv UNFINISHED.txt OUT.c
"""

import sys

from abi_table import RUNTIME, fail, read_functions, read_names, split_params, write_text

# Every other function makes its error with this one, which cannot make one while it is listed
# itself: it has to be the first that leaves the list.
ERROR_NEW = "TRITONSERVER_ErrorNew"

HEAD = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of the server API that Kelp does not support yet. Made by gen_unsupported.py. */
#include <triton/core/tritonserver.h>

#include <triton/core/tritonbackend.h>
#include <triton/core/tritoncache.h>
#include <triton/core/tritonrepoagent.h>
"""


def body(function, returns):
    """Returns the lines of a function's body."""
    if returns == "TRITONSERVER_Error *" and function == ERROR_NEW:
        return ["    return NULL;"]
    if returns == "TRITONSERVER_Error *":
        return ["    return TRITONSERVER_ErrorNew(",
                "        TRITONSERVER_ERROR_UNSUPPORTED,",
                f'        "{function} is not supported by Kelp yet");']
    if returns == "void":
        return []
    if returns.endswith("*"):
        return ["    return NULL;"]
    if returns in ("bool", "uint32_t"):
        return ["    return 0;"]
    return [f"    return ({returns})0;"]


def definition(row):
    """Returns the definition of one function."""
    params = split_params(row["params"])
    names = [f"a{index}" for index in range(len(params))]
    space = "" if row["return"].endswith("*") else " "
    lines = [f"{row['return']}{space}{row['function']}("]
    for index, (param, name) in enumerate(zip(params, names)):
        gap = "" if param.endswith("*") else " "
        end = ")" if index == len(params) - 1 else ","
        lines.append(f"    {param}{gap}{name}{end}")
    if not params:
        lines[0] += "void)"
    lines.append("{")
    lines += [f"    (void){name};" for name in names]
    lines += body(row["function"], row["return"])
    lines.append("}")
    return "\n".join(lines)


def main():
    if len(sys.argv) != 4:
        fail("usage: gen_unsupported.py ABI_FUNCTIONS.tsv UNFINISHED.txt OUT.c")
    table, listed, out = sys.argv[1:]
    rows = {row["function"]: row for row in read_functions(table)}
    parts = [HEAD]
    seen = set()
    for number, name in read_names(listed):
        if name not in rows:
            fail(f"{listed}:{number}: '{name}' is not in '{table}'")
        if rows[name]["side"] != RUNTIME:
            fail(f"{listed}:{number}: '{name}' is defined by plugins, never by the runtime")
        if name in seen:
            fail(f"{listed}:{number}: '{name}' is listed twice")
        seen.add(name)
        parts.append(definition(rows[name]) + "\n")
    write_text(out, "\n".join(parts))


if __name__ == "__main__":
    main()
