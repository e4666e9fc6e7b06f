#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a published kernel library in C++ without a change, and runs the published Python program for it.

    test_kernel_program.py [--include DIRECTORY] [unittest arguments]

The headers are those of DIRECTORY (kelp.get_include()). CHANGES lists every change to the Python program: its imports, because Kelp
provides no package `triton`, which is the name of another project; and the indentation that the published text has lost.
"""
import os
import subprocess
import sys
import tempfile
import unittest

import kelp
from support import ROOT, main

DATA = os.path.join(ROOT, "tests", "data", "kernels")
INDENTED = ['custom_backend = runtime.get_backend("custom_add")\n', 'print(f"Failed to get custom backend: {e}")\n',
            'print("Ensure \'libcustom_add_backend.so\' is in your TRITON_BACKEND_PATH or a default plugin directory.")\n', "exit()\n",
            '"add", # Kernel name\n']
CHANGES = [("import triton\nimport triton.runtime as rt\n", "import kelp\nimport kelp.runtime as rt\n"),
           *((line, "    " + line) for line in INDENTED)]
INCLUDE = None


def program():
    with open(os.path.join(DATA, "custom_add_program.txt"), encoding="utf-8") as file:
        text = file.read()
    for before, after in CHANGES:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


class Program(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        for compiler in ("c++", "clang++"):
            subprocess.run([compiler, "-std=c++17", "-Wall", "-fPIC", "-shared", "-I", INCLUDE or kelp.get_include(),
                            os.path.join(DATA, "custom_add.cpp"), "-o", os.path.join(self.directory.name, "libcustom_add_backend.so")],
                           check=True, capture_output=True)

    def run_program(self, **variables):
        kept = {key: value for key, value in os.environ.items() if not key.endswith("_BACKEND_PATH")}
        return subprocess.run([sys.executable, "-c", program()], env={**kept, **variables}, capture_output=True, text=True, check=True,
                              timeout=300).stdout

    def test_the_program_calls_the_kernel(self):
        for name in ("TRITON_BACKEND_PATH", "KELP_BACKEND_PATH"):
            printed = self.run_program(**{name: self.directory.name})
            for line in ("CustomAddBackend initialized.", "Input a: [1. 2. 3. 4.]", "Input b: [5. 6. 7. 8.]", "Output: [ 6.  8. 10. 12.]",
                         "CustomAddBackend finalized."):
                self.assertIn(line, printed)

    def test_the_program_reports_a_missing_library(self):
        printed = self.run_program(TRITON_BACKEND_PATH="/nowhere")
        self.assertIn("Failed to get custom backend: there is no kernel library 'custom_add'", printed)
        self.assertIn("Ensure 'libcustom_add_backend.so' is in your TRITON_BACKEND_PATH", printed)
        self.assertNotIn("Output", printed)


if __name__ == "__main__":
    if "--include" in sys.argv:
        at = sys.argv.index("--include")
        INCLUDE = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    main()
