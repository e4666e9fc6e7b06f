#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what a libtritonserver exports: the runtime's functions, and no other of Triton's names.

A name that plugins define must not be exported: a look-up on a plugin's handle also searches the
libraries that the plugin needs, and would find ours in place of what the plugin left out.

usage: check_exports.py LIBTRITONSERVER ABI_FUNCTIONS.tsv UNFINISHED.txt
"""

import csv
import subprocess
import sys

# NVIDIA's library exports these too, although no header declares them.
ALLOWED = {"TRITONCACHE_CacheEntryNew", "TRITONCACHE_CacheEntryDelete"}
RUNTIME_COUNT = 282
PLUGIN_COUNT = 23


def exported_names(library):
    """Returns the names that a shared library defines for others, without symbol versions."""
    run = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                         check=False)
    if run.returncode != 0:
        sys.exit(f"nm failed on '{library}': {run.stderr.strip()}")
    return {line.split()[-1].split("@")[0] for line in run.stdout.splitlines() if line.split()}


def read_table(path):
    """Returns the names that the runtime exports and those that plugins define."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    runtime = {row["function"] for row in rows if row["side"] == "runtime_exports"}
    plugin = {row["function"] for row in rows if row["side"] == "plugin_implements"}
    return runtime, plugin


def read_list(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return {line for line in lines if line and not line.startswith("#")}


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: check_exports.py LIBTRITONSERVER ABI_FUNCTIONS.tsv UNFINISHED.txt")
    library, table, listed = sys.argv[1:]
    exported = exported_names(library)
    runtime, plugin = read_table(table)
    unfinished = read_list(listed)
    triton = {name for name in exported if name.startswith("TRITON")}
    missing = sorted(runtime - exported)
    forbidden = sorted(plugin & exported)
    unknown = sorted(triton - runtime - plugin - ALLOWED)
    print(f"{len(runtime & exported)} of {len(runtime)} runtime functions are exported, "
          f"{len(runtime & exported & unfinished)} of them not supported yet")
    print(f"{len(forbidden)} of {len(plugin)} plugin functions are exported")
    print(f"{len(triton & ALLOWED)} undeclared exports that Triton has too")
    checks = (
        (f"the table has {RUNTIME_COUNT} runtime and {PLUGIN_COUNT} plugin functions",
         (len(runtime), len(plugin)) == (RUNTIME_COUNT, PLUGIN_COUNT),
         [f"{len(runtime)} runtime, {len(plugin)} plugin"]),
        ("every runtime function is exported", not missing, missing),
        ("no plugin function is exported", not forbidden, forbidden),
        ("nothing else that begins with TRITON is exported", not unknown, unknown),
    )
    failed = 0
    for text, good, details in checks:
        print(f"{'ok' if good else 'not ok'}: {text}")
        if not good:
            failed += 1
            for detail in details:
                print(f"    {detail}")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
