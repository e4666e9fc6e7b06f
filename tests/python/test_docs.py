#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the code in docs/python.md and docs/onnxruntime.md and the examples in docstrings, and compares the stubs with the modules."""
import ast
import contextlib
import doctest
import importlib
import io
import os
import sys
import unittest

import kelp
import kelp.backend
from support import ROOT, main

sys.path.insert(0, ROOT + "/tests/support")
import shown  # noqa: E402 (shared with the C tests)

PACKAGE = os.path.dirname(kelp.__file__)


class Documents(unittest.TestCase):
    def run_page(self, page):
        blocks = [block for block in shown.blocks(f"{ROOT}/docs/{page}") if block[0] == "python"]
        self.assertGreater(len(blocks), 4)
        names, printed = {}, io.StringIO()
        for _, block, line in blocks:
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * (line - 1) + block, f"docs/{page}", "exec"), names)
        return printed.getvalue()

    def test_the_tutorial_runs(self):
        self.assertIn("digits:", self.run_page("python.md"))

    def test_the_page_about_onnx_runtime_runs(self):
        kept = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "onnxruntime"}
        self.assertIn("session_initialization", self.run_page("onnxruntime.md"))
        for name in [name for name in sys.modules if name.partition(".")[0] == "onnxruntime"]:
            del sys.modules[name]
        sys.modules.update(kept)

    def test_the_examples_of_docstrings_run(self):
        tried = 0
        for name in ("kelp", "kelp._kelp", "kelp._session", "kelp._options", "kelp._binding", "kelp._value", "kelp._sparse", "kelp._adapter", "kelp._error", "kelp._serving", "kelp._progress", "kelp.backend",
                     "kelp.builder", "kelp.runtime"):
            module = importlib.import_module(name)
            finder = doctest.DocTestFinder(exclude_empty=True)
            tests = finder.find(module, name)
            if name == "kelp._kelp":
                tests = [doctest.DocTestParser().get_doctest(kelp.DLTensor.__doc__, {}, "DLTensor", None, 0)]
            for test in tests:
                result = doctest.DocTestRunner(verbose=False).run(test)
                self.assertEqual(result.failed, 0, test.name)
                tried += result.attempted
        self.assertGreater(tried, 12)

    def test_everything_has_a_docstring(self):
        for name in kelp.__all__:
            thing = getattr(kelp, name)
            if name != "__version__":
                self.assertTrue(thing.__doc__, name)
            for word, member in vars(thing).items() if isinstance(thing, type) else ():
                if not word.startswith("_") and callable(member):
                    self.assertTrue(member.__doc__, f"{name}.{word}")

    def test_stubs_match_the_modules(self):
        self.assertTrue(os.path.exists(PACKAGE + "/py.typed"))
        for file in sorted(f for f in os.listdir(PACKAGE) if f.endswith(".pyi")):
            with open(os.path.join(PACKAGE, file), encoding="utf-8") as opened:
                tree = ast.parse(opened.read(), file)
            name = "kelp" if file == "__init__.pyi" else "kelp." + file[:-4]
            module = importlib.import_module(name)
            for node in tree.body:
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                    thing = getattr(module, node.name)
                    for member in node.body if isinstance(node, ast.ClassDef) else ():
                        if isinstance(member, ast.FunctionDef):
                            self.assertTrue(hasattr(thing, member.name), f"{file}: {node.name}.{member.name}")
            if file == "__init__.pyi":
                said = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
                said |= {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
                missing = set(kelp.__all__) - said - {"__version__", "backend", "runtime", "TritonException"}
                self.assertEqual(missing, set())


if __name__ == "__main__":
    main()
