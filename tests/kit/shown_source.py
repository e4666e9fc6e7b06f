#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes a source out of a document: the C block whose first line names it.

    shown_source.py DOCUMENT NAME OUT
"""
import re
import sys


def main():
    document, name, out = sys.argv[1:]
    with open(document, encoding="utf-8") as file:
        blocks = re.findall(r"^```c\n(.*?)^```$", file.read(), re.S | re.M)
    found = [block for block in blocks if block.startswith(f"/* {name}")]
    if len(found) != 1:
        sys.exit(f"{document}: expected one block of C that begins with '/* {name}', found {len(found)}")
    with open(out, "w", encoding="utf-8") as file:
        file.write(found[0])


if __name__ == "__main__":
    main()
