#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX's own suite of node tests (onnx.backend.test), run through kelp.backend.

    onnx_backend_test.py [unittest's arguments]

Cases that tests/ops/missing_cases.tsv lists, and what ONNX's runner cannot compare, are expected to fail; every other must pass. A case
that is expected to fail and passes is an error: the list is to be shortened then.
"""
import os
import re
import sys
import unittest

import kelp.backend
import onnx.backend.test
from support import ROOT

# Kinds of cases that are not of nodes alone: models to be fetched, and the like.
KINDS = ("OnnxBackendNodeModelTest", "OnnxBackendSimpleModelTest")

# ONNX's runner asks for the length of each element of a sequence, which an element of rank 0 has not; tests/ops compares that case.
NOT_COMPARED = {"test_loop16_seq_none"}


def missing():
    with open(os.path.join(ROOT, "tests", "ops", "missing_cases.tsv"), encoding="utf-8") as file:
        return {line.split("\t")[0] for line in file if line.strip() and not line.startswith("#")}


def main():
    runner = onnx.backend.test.runner.Runner(kelp.backend.KelpBackend, __name__)
    expected = missing() | NOT_COMPARED
    for name in sorted(expected):
        runner.xfail(f"^{re.escape(name)}_cpu$")
    suite, loader = unittest.TestSuite(), unittest.TestLoader()
    wanted = sys.argv[1:]
    for kind in KINDS:
        for test in loader.loadTestsFromTestCase(runner.test_cases[kind]):
            name = test.id().rsplit(".", 1)[1]
            if name.endswith("_cpu") and (not wanted or any(re.search(w, name) for w in wanted)):
                suite.addTest(test)
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    failed, listed = len(result.failures) + len(result.errors), len(result.unexpectedSuccesses)
    passed = result.testsRun - failed - listed - len(result.expectedFailures) - len(result.skipped)
    print(f"{result.testsRun} cases: {passed} passed, {len(result.expectedFailures)} failed as expected, {failed} failed, "
          f"{listed} passed although they are listed, {len(result.skipped)} skipped")
    for test in result.unexpectedSuccesses:
        print(f"passes although it is listed: {test.id().rsplit('.', 1)[1]}")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
