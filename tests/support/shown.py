#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extracts the examples of the documentation and runs them.

    shown.py DOCUMENT NAME OUT                    writes the block of C or C++ whose first line has this name
    shown.py DOCUMENT --run --build FOLDER --prefix PREFIX
                                                  saves every named block, runs the sh blocks in order, and compares their output with
                                                  the following text block, in which … matches anything

Commands run in a temporary directory with `examples` and `tests` of a clone. They use the program, headers and libraries in PREFIX,
where the build in FOLDER is installed, and the Python package of FOLDER. In a cross build, FOLDER/emulated contains the emulated
programs and a compiler.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def blocks(document):
    """Returns (language, text, number of its first line) of each fenced block."""
    with open(document, encoding="utf-8") as file:
        text = file.read()
    return [(found[1], found[2], text.count("\n", 0, found.start()) + 2)
            for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)]


def sources(document):
    """Returns a dict from name to text of the C and C++ blocks; a first line such as /* add.c: purpose */ names one."""
    found = {}
    for language, text, line in blocks(document):
        named = re.match(r"/\* ([\w.]+)", text)
        if language in ("c", "cpp") and named:
            if named[1] in found:
                sys.exit(f"{document}:{line}: block '{named[1]}' exists twice")
            found[named[1]] = text
    return found


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def matches(expected, printed):
    pattern = re.escape(expected.strip()).replace("…", ".*")
    return re.fullmatch(pattern, printed.strip(), re.S) is not None


def run(document, build, prefix):
    """Returns the number of compared outputs."""
    build, prefix, compared = os.path.abspath(build), os.path.abspath(prefix), 0
    environment = dict(os.environ, PYTHONPATH=build + "/python", PYTHONDONTWRITEBYTECODE="1",
                       PKG_CONFIG_PATH=prefix + "/lib/pkgconfig", LD_LIBRARY_PATH=prefix + "/lib",
                       PATH=":".join((build + "/emulated", prefix + "/bin", os.path.dirname(sys.executable), os.environ["PATH"])))
    with tempfile.TemporaryDirectory() as directory:
        for name in ("examples", "tests"):
            os.symlink(os.path.join(ROOT, name), os.path.join(directory, name))
        for name, text in sources(document).items():
            write(os.path.join(directory, name), text)
        printed = None
        for language, text, line in blocks(document):
            if language == "sh":
                ended = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=directory, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, text=True, check=False, env=environment)
                printed = ended.stdout
                if ended.returncode != 0:
                    sys.exit(f"{document}:{line}: the commands failed with {ended.returncode}:\n{text}\n{printed}")
            elif language == "text" and printed is not None:
                compared += 1
                if not matches(text, printed):
                    sys.exit(f"{document}:{line}: expected\n{text}\nfound\n{printed}")
            if language != "sh":
                printed = None
    return compared


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("document")
    parser.add_argument("name", nargs="?")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--build")
    parser.add_argument("--prefix")
    options = parser.parse_args()
    if options.run:
        compared = run(options.document, options.build, options.prefix)
        if compared == 0:
            sys.exit(f"{options.document}: no sh block is followed by a text block")
        print(f"{options.document}: {len(sources(options.document))} sources, {compared} outputs match")
        return
    found = sources(options.document).get(options.name)
    if found is None:
        sys.exit(f"{options.document}: no C block starts with '/* {options.name}'")
    write(options.out, found)


if __name__ == "__main__":
    main()
