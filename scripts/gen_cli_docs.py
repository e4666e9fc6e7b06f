#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what follows from the program's tables: docs/cli.md, docs/man/*.1 and completions/*.

    gen_cli_docs.py KELP [--check]      --check compares instead of writing
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMANDS = ("serve", "run", "build", "inspect", "bench", "kernels", "ops", "worker", "new", "doctor", "completion")

INTRODUCTION = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by scripts/gen_cli_docs.py from the program's own help. -->
# The program

Results go to standard output, everything said about them to standard error. Exit codes: 0 done, 1 it failed and the message says why, 2 the
command line is wrong. An option is given as `--name value` or `--name=value`; one that is true or false may stand alone. A name that does not
exist is an error which says the nearest that does.
"""


def program(kelp, *words):
    return subprocess.run([kelp, *words], check=True, capture_output=True, text=True).stdout


def markdown(kelp):
    text = INTRODUCTION
    for command in ("", *COMMANDS):
        shown = program(kelp, "help", *([command] if command else []))
        shown = re.sub(r"^kelp \d\S*:", "kelp:", shown)
        text += f"\n## kelp {command}".rstrip() + f"\n\n```\n{shown.rstrip()}\n```\n"
    return text


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def manual(kelp, command):
    """One page; the layout of the help is kept as it is."""
    name = f"kelp-{command}" if command else "kelp"
    shown = program(kelp, "help", *([command] if command else []))
    summary = re.sub(r"^kelp [^:]*: ", "", shown.split("\n", 1)[0])
    blocks = re.split(r"\n(?=Usage: )", shown, maxsplit=1)[1]
    usage, rest = blocks.split("\n", 1)
    lines = ['.\\" SPDX-License-Identifier: Apache-2.0', '.\\" Written by scripts/gen_cli_docs.py.',
             f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "" "kelp" "Kelp"', ".SH NAME", roff(f"{name} - {summary}"),
             ".SH SYNOPSIS", ".nf", roff(usage[len("Usage: "):]), ".fi", ".SH DESCRIPTION", ".nf", roff(rest.strip()), ".fi",
             ".SH SEE ALSO"]
    others = [f"kelp-{other}" for other in COMMANDS if other != command] + (["kelp"] if command else [])
    lines.append(roff(", ".join(f"{other}(1)" for other in others)))
    return "\n".join(lines) + "\n"


def main():
    kelp = sys.argv[1]
    files = {"docs/cli.md": markdown(kelp), "docs/man/kelp.1": manual(kelp, "")}
    for command in COMMANDS:
        files[f"docs/man/kelp-{command}.1"] = manual(kelp, command)
    for shell in ("bash", "zsh", "fish"):
        files[f"completions/kelp.{shell}"] = program(kelp, "completion", shell)
    stale = 0
    for path, text in files.items():
        whole = os.path.join(ROOT, path)
        if "--check" in sys.argv:
            with open(whole, encoding="utf-8") as file:
                if file.read() != text:
                    print(f"{path} is not what the program says; run 'make cli-docs'")
                    stale += 1
        else:
            os.makedirs(os.path.dirname(whole), exist_ok=True)
            with open(whole, "w", encoding="utf-8") as file:
                file.write(text)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
