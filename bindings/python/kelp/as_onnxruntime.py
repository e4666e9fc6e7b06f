# SPDX-License-Identifier: Apache-2.0
"""Runs a program with Kelp in the place of ONNX Runtime.

    python -m kelp.as_onnxruntime app.py [ARGUMENT …]
    python -m kelp.as_onnxruntime -m module [ARGUMENT …]
    python -m kelp.as_onnxruntime -c code [ARGUMENT …]
    python -m kelp.as_onnxruntime --path        prints the directory that the others add to PYTHONPATH

`import onnxruntime` imports kelp.onnxruntime, in the program and in processes that it starts, whether ONNX Runtime is installed or not.
importlib.metadata finds a distribution `onnxruntime` with the version of kelp.onnxruntime.
"""
import os
import subprocess
import sys

SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shim")


def main(words):
    """Replaces this process by Python with a PYTHONPATH that begins with the directory."""
    if not words or words[0] in ("-h", "--help"):
        print(__doc__, file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    if words[0] == "--path":
        print(SHIM)
        return 0
    if words[0].startswith("--"):
        print(f"kelp.as_onnxruntime: unknown option '{words[0]}': expected a program, -m, -c or --path", file=sys.stderr)
        return 2
    if sys.flags.ignore_environment:
        print("kelp.as_onnxruntime: Python ignores PYTHONPATH: run it without -E and -I", file=sys.stderr)
        return 2
    path = os.pathsep.join([SHIM, *filter(None, [os.environ.get("PYTHONPATH")])])
    flags = subprocess._args_from_interpreter_flags()
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *flags, *words], {**os.environ, "PYTHONPATH": path})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
