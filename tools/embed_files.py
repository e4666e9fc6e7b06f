#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes files as arrays in C.

    embed_files.py OUT.c HEADER FILE…

For NAME.EXT, OUT.c defines `kelp_NAME_EXT[]` and `kelp_NAME_EXT_bytes`, which HEADER declares.
"""
import os
import sys


def main():
    out, header, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    parts = ["/* SPDX-License-Identifier: Apache-2.0 */", "/* Written by tools/embed_files.py. */", f'#include "{header}"']
    for path in files:
        name = "kelp_" + os.path.basename(path).replace(".", "_")
        with open(path, "rb") as file:
            data = file.read()
        lines = [",".join(map(str, data[i:i + 32])) for i in range(0, len(data), 32)]
        parts += [f"const unsigned char {name}[] = {{", ",\n".join(lines), "};", f"const size_t {name}_bytes = {len(data)};"]
    with open(out, "w", encoding="ascii") as file:
        file.write("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
