#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes texts as a table in C: what `kelp new` puts into a project.

    embed_text.py OUT.c NAME FILE=TARGET [FILE=TARGET…]

OUT.c defines `const kelp_template NAME[]`, each with TARGET, a path in the project, and the text of FILE without the licence line,
which is that of Kelp's sources and not of the project that is made.
"""
import sys


def quoted(text):
    lines = []
    for line in text.splitlines(keepends=True):
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("?", "\\?")
        lines.append(f'     "{escaped}"')
    return "\n".join(lines)


def main():
    out, name, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    parts = ['/* SPDX-License-Identifier: Apache-2.0 */', '/* Written by tools/embed_text.py. */', '#include "cli/templates.h"', "",
             f"const kelp_template {name}[] = {{"]
    for path, target in (file.split("=") for file in files):
        with open(path, encoding="utf-8") as file:
            text = "".join(line for line in file if "SPDX-License-Identifier" not in line)
        parts.append(f'    {{"{target}",\n{quoted(text)}}},')
    parts.append("    {NULL, NULL},\n};")
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
