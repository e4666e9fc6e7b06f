# SPDX-License-Identifier: Apache-2.0
"""Reads the tables of Triton's C API that the ABI generators and checks share.

Tables are tab-separated with a header line:
  abi_functions.tsv  header, function, return, params, side
  abi_enums.tsv      enum, enumerator, value
  abi_typedefs.tsv   header, typedef, type
A list of names is one name a line; empty lines and lines that begin with '#' are left out.
"""

import csv
import sys

RUNTIME = "runtime_exports"
PLUGIN = "plugin_implements"


def fail(message):
    """Ends the program with a message, as a tool does that cannot go on."""
    sys.exit(f"{sys.argv[0]}: {message}")


def read_table(path, columns):
    """Returns the rows of a table as dictionaries; every row must have every column."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            if reader.fieldnames != columns:
                fail(f"{path}:1: expected the columns {columns}, found {reader.fieldnames}")
            rows = []
            for row in reader:
                if None in row or None in row.values():
                    fail(f"{path}:{reader.line_num}: expected {len(columns)} columns")
                rows.append(row)
    except OSError as error:
        fail(f"cannot read '{path}': {error.strerror}")
    return rows


def read_functions(path):
    rows = read_table(path, ["header", "function", "return", "params", "side"])
    for row in rows:
        if row["side"] not in (RUNTIME, PLUGIN):
            fail(f"{path}: '{row['function']}': unknown side '{row['side']}'")
    return rows


def read_enums(path):
    return read_table(path, ["enum", "enumerator", "value"])


def read_typedefs(path):
    return read_table(path, ["header", "typedef", "type"])


def read_names(path):
    """Returns the names of a list, in its order, with their line numbers."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except OSError as error:
        fail(f"cannot read '{path}': {error.strerror}")
    return [(number, line) for number, line in enumerate(lines, 1)
            if line and not line.startswith("#")]


def split_params(params):
    """Returns the parameter types of a function row; none of them has a comma of its own."""
    return [param.strip() for param in params.split(",")] if params.strip() else []


def write_text(path, text):
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        fail(f"cannot write '{path}': {error.strerror}")
