#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX Runtime's own Python tests on Kelp and on ONNX Runtime, and prints the results of both.

    ort_tests.py COPY [--module NAME …]      PYTHONPATH leads to the package kelp

COPY: a copy of the repository of ONNX Runtime, with onnxruntime/test/python and onnxruntime/test/testdata. Needs onnx; without onnxruntime,
only Kelp's results are printed.
"""
import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

# Modules about the interface and its results. The others need execution providers, graph tools or files that only ONNX Runtime has.
MODULES = ["onnxruntime_test_python"] + ["onnxruntime_test_" + name for name in (
    "python_iobinding", "python_backend", "python_backend_mlops", "python_mlops", "python_sparse_matmul", "python_symlink_data",
    "python_global_threadpool", "python_ort_parallel", "python_symbolic_shape_infer", "float8", "scatternd")]


class Outcomes(unittest.TestResult):
    """Collects one outcome for each test: a test with failed subtests failed."""

    def __init__(self):
        super().__init__()
        self.outcomes = {}

    def put(self, test, outcome, text=""):
        """Keeps the worst outcome."""
        name = test.id().split(".", 1)[-1]
        if self.outcomes.get(name, ("passed",))[0] != "failed":
            self.outcomes[name] = outcome, text

    def startTest(self, test):
        super().startTest(test)
        print("running", test.id(), file=sys.stderr, flush=True)

    def addSuccess(self, test):
        self.put(test, "passed")

    def addSkip(self, test, reason):
        self.put(getattr(test, "test_case", test), "skipped", reason)

    def addFailure(self, test, err):
        self.put(test, "failed", self.last_line(err))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.put(test, "failed", f"{subtest._subDescription()}: {self.last_line(err)}")

    @staticmethod
    def last_line(err):
        """Returns the type and the message of an exception."""
        return f"{err[0].__name__}: {err[1]}".strip().replace("\n", " | ")[:400]


def run_module(name, product, out):
    """Runs one module in this process and writes its outcomes."""
    if product == "kelp":
        import kelp.onnxruntime
        sys.modules["onnxruntime"] = kelp.onnxruntime
    result = Outcomes()
    unittest.defaultTestLoader.loadTestsFromName(name).run(result)
    with open(out, "w", encoding="utf-8") as file:
        json.dump(result.outcomes, file)


def run_in_copy(copy, name, product):
    """Runs one module in a process of its own, in a directory with the data of the tests. Returns its outcomes."""
    with tempfile.TemporaryDirectory() as directory:
        tests = os.path.join(copy, "onnxruntime", "test")
        shutil.copytree(os.path.join(tests, "testdata"), os.path.join(directory, "testdata"), ignore_dangling_symlinks=True)
        shutil.copytree(os.path.join(tests, "python"), os.path.join(directory, "python"), ignore_dangling_symlinks=True)
        out = os.path.join(directory, "outcomes.json")
        path = os.pathsep.join(filter(None, (os.path.join(directory, "python"), os.environ.get("PYTHONPATH"))))
        done = subprocess.run([sys.executable, "-W", "ignore", os.path.abspath(__file__), "--run", name, product, out], cwd=directory,
                              env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=600)
        if not os.path.exists(out):
            return {name: ("failed", f"the process ended with {done.returncode}: {done.stderr[-600:]}")}
        with open(out, encoding="utf-8") as file:
            return json.load(file)


def show(module, results):
    """Prints the counts of each product, and the tests that did not pass."""
    print(f"\n{module}")
    for product, outcomes in results.items():
        counts = {word: sum(outcome == word for outcome, _ in outcomes.values()) for word in ("passed", "failed", "skipped")}
        print(f"  {product:<12}" + "   ".join(f"{count:>3} {word}" for word, count in counts.items()))
    for test in sorted({test for outcomes in results.values() for test in outcomes}):
        for product, outcomes in results.items():
            outcome, text = outcomes.get(test, ("missing", ""))
            if outcome in ("failed", "missing"):
                print(f"  {outcome} on {product}: {test}\n      {text}")


def main():
    if sys.argv[1:2] == ["--run"]:
        run_module(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("copy")
    parser.add_argument("--module", nargs="+", default=MODULES)
    options = parser.parse_args()
    products = ["kelp"] + (["onnxruntime"] if importlib.util.find_spec("onnxruntime") else [])
    for module in options.module:
        show(module, {product: run_in_copy(os.path.abspath(options.copy), module, product) for product in products})


if __name__ == "__main__":
    main()
