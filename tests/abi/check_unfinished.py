#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the list of exports that are not supported yet: well formed, and never longer than it was.

Every name is a runtime function of the table, none stands twice, they are sorted, and there are no
more than the number in UNFINISHED.max, which is lowered with the list and never raised.

usage: check_unfinished.py ABI_FUNCTIONS.tsv UNFINISHED.txt UNFINISHED.max
"""

import csv
import sys


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return [line for line in lines if line and not line.startswith("#")]


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: check_unfinished.py ABI_FUNCTIONS.tsv UNFINISHED.txt UNFINISHED.max")
    table, listed, limit_path = sys.argv[1:]
    with open(table, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    runtime = {row["function"] for row in rows if row["side"] == "runtime_exports"}
    names = read_lines(listed)
    numbers = read_lines(limit_path)
    if len(numbers) != 1 or not numbers[0].isdigit():
        sys.exit(f"{limit_path}: expected one whole number, found {numbers}")
    limit = int(numbers[0])
    unknown = [name for name in names if name not in runtime]
    twice = sorted({name for name in names if names.count(name) > 1})
    unsorted = [f"'{b}' comes after '{a}'" for a, b in zip(names, names[1:]) if b < a]
    checks = (
        ("every name is a runtime function", unknown),
        ("no name stands twice", twice),
        ("the names are sorted", unsorted),
        (f"there are at most {limit}", [] if len(names) <= limit else [f"there are {len(names)}"]),
    )
    print(f"{len(names)} of {len(runtime)} runtime functions are not supported yet")
    failed = 0
    for text, details in checks:
        print(f"{'not ok' if details else 'ok'}: {text}")
        for detail in details:
            print(f"    {detail}")
        failed += bool(details)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
