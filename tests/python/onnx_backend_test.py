#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX's own suite (onnx.backend.test), run through kelp.backend: node tests, simple models, what PyTorch wrote, and whole vision
models with made-up weights. Nothing is fetched.

    onnx_backend_test.py [--light] [pattern…]     --light: the vision models as well, which take a minute

Cases that tests/ops/missing_cases.tsv lists, and what ONNX's runner cannot compare, are expected to fail; every other must pass. A case
that is expected to fail and passes is an error: the list is to be shortened then.
"""
import os
import re
import sys
import tempfile
import unittest

import kelp.backend
import onnx.backend.test
from support import ROOT

# What ONNX's runner calls its kinds, and how many cases of each must pass at least.
KINDS = {"OnnxBackendNodeModelTest": ("node", 1861), "OnnxBackendSimpleModelTest": ("simple", 22),
         "OnnxBackendPyTorchConvertedModelTest": ("pytorch-converted", 82),
         "OnnxBackendPyTorchOperatorModelTest": ("pytorch-operator", 35)}
LIGHT = {"OnnxBackendRealModelTest": ("light", 9)}

# ONNX's runner asks for the length of each element of a sequence, which an element of rank 0 has not; tests/ops compares that case.
NOT_COMPARED = {"test_loop16_seq_none"}


def missing():
    """Names of cases to the reasons why they fail."""
    with open(os.path.join(ROOT, "tests", "ops", "missing_cases.tsv"), encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("\t", 1) for line in file if line.strip() and not line.startswith("#"))


def cases_of(runner, kind, wanted):
    suite = unittest.TestSuite()
    for test in unittest.TestLoader().loadTestsFromTestCase(runner.test_cases[kind]):
        name = test.id().rsplit(".", 1)[1]
        if name.endswith("_cpu") and (not wanted or any(re.search(w, name) for w in wanted)):
            suite.addTest(test)
    return suite


def main():
    runner = onnx.backend.test.runner.Runner(kelp.backend.KelpBackend, __name__)
    reasons = missing()
    expected = reasons.keys() | NOT_COMPARED
    drawn = {name for name, reason in reasons.items() if reason.startswith("drawn:")}  # luck may have it that they pass
    for name in sorted(expected):
        runner.xfail(f"^{re.escape(name)}_cpu$")
    wanted = [word for word in sys.argv[1:] if word != "--light"]
    lines, good = [], True
    with tempfile.TemporaryDirectory() as home:
        os.environ["ONNX_HOME"] = home  # where the runner lays down the models that it finds in its package
        for kind, (label, least) in {**KINDS, **(LIGHT if "--light" in sys.argv else {})}.items():
            suite = cases_of(runner, kind, wanted)
            result = unittest.TextTestRunner(verbosity=0).run(suite)
            failed = len(result.failures) + len(result.errors)
            lucky = [test for test in result.unexpectedSuccesses if test.id().rsplit(".", 1)[1].removesuffix("_cpu") in drawn]
            found = [test for test in result.unexpectedSuccesses if test not in lucky]
            listed = len(found)
            passed = result.testsRun - failed - len(result.unexpectedSuccesses) - len(result.expectedFailures) - len(result.skipped)
            lines.append(f"{label}: {result.testsRun} cases, {passed} passed, {len(result.expectedFailures)} failed as expected, "
                         f"{failed} failed, {listed} passed although they are listed, {len(result.skipped)} skipped")
            for test in found:
                lines.append(f"passes although it is listed: {test.id().rsplit('.', 1)[1]}")
            if not wanted and passed < least:
                lines.append(f"{label}: {passed} passed, expected at least {least}")
            good = good and failed + listed == 0 and (wanted or passed >= least)
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
