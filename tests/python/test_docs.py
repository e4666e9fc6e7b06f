#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings run, every public name has a docstring, and the stubs match the modules. shown.py runs the pages."""
import ast
import doctest
import importlib
import os
import unittest

import kelp
import kelp.backend
from support import main

PACKAGE = os.path.dirname(kelp.__file__)


class Documents(unittest.TestCase):
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
