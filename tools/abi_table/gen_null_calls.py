#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C file that calls every export of the runtime with NULL: first for all pointers, then only for those that results go to.

Each call is a function of its own in the array `null_calls`, so that the test can say which one does not come back.

usage: gen_null_calls.py ABI_FUNCTIONS.tsv OUT.c
"""

import sys

from abi_table import RUNTIME, fail, read_functions, split_params, write_text

HEAD = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* Every export called with NULL. Made by gen_null_calls.py. */
#include "null_calls.h"

#include <triton/core/tritonserver.h>

#include <triton/core/tritonbackend.h>
#include <triton/core/tritoncache.h>
#include <triton/core/tritonrepoagent.h>
"""

# Results of plain types; a pointer to a pointer is one too, unless it is an array that is given.
SCALARS = {"bool", "char", "double", "int32_t", "int64_t", "size_t", "uint32_t", "uint64_t", "TRITONSERVER_DataType",
           "TRITONSERVER_MemoryType", "TRITONSERVER_MetricKind", "TRITONSERVER_ParameterType", "TRITONBACKEND_ArtifactType",
           "TRITONBACKEND_ExecutionPolicy", "TRITONREPOAGENT_ArtifactType", "TRITONSERVER_InstanceGroupKind"}


def is_result(param):
    if param.startswith("const ") and not param.endswith("**"):
        return False
    if param.startswith("const TRITONSERVER_Parameter"):
        return False
    return param.endswith("**") or (param.endswith("*") and param[:-1].strip() in SCALARS)


def argument(param, results_only):
    """Returns what a call is given for a parameter."""
    if not param.endswith("*"):
        return f"({param})0"
    if not results_only or is_result(param):
        return f"({param})NULL"
    if param == "const char *":
        return '"x"'
    return f"({param})null_calls_blank"


def call(row, results_only):
    params = split_params(row["params"])
    arguments = ",\n        ".join(argument(param, results_only) for param in params)
    text = f"{row['function']}({arguments})"
    if row["function"] == "TRITONSERVER_ErrorNew":
        return f"    TRITONSERVER_ErrorDelete({text});"
    if row["return"] == "TRITONSERVER_Error *":
        return f"    null_calls_take({text});"
    return f"    (void){text};" if row["return"] != "void" else f"    {text};"


def main():
    if len(sys.argv) != 3:
        fail("usage: gen_null_calls.py ABI_FUNCTIONS.tsv OUT.c")
    rows = [row for row in read_functions(sys.argv[1]) if row["side"] == RUNTIME and split_params(row["params"])]
    functions, table = [], []
    for row in rows:
        for results_only in (False, True):
            if results_only and not any(map(is_result, split_params(row["params"]))):
                continue
            name = f"call_{len(table)}"
            functions.append(f"static void {name}(void) {{\n{call(row, results_only)}\n}}\n")
            what = "its results" if results_only else "everything"
            table.append(f'    {{"{row["function"]} with NULL for {what}", {name}}},')
    text = [HEAD, *functions, "const null_call null_calls[] = {", *table, "};",
            "const size_t null_call_count = sizeof null_calls / sizeof null_calls[0];", ""]
    write_text(sys.argv[2], "\n".join(text))


if __name__ == "__main__":
    main()
