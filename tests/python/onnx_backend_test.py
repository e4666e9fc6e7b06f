#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX's own tests (onnx.backend.test) with kelp.backend: node tests, simple models, models from PyTorch, and whole vision
models with random weights. Nothing is downloaded.

    onnx_backend_test.py [--light] [pattern…]     --light: includes the vision models, which take a minute

Cases that tests/ops/missing_cases.tsv lists, or ONNX's runner cannot compare, are expected to fail; all others must pass. A case
that is expected to fail and passes is an error: remove it from the list.
"""
import os
import re
import sys
import tempfile
import unittest

import kelp.backend
import onnx.backend.test
from support import ROOT

# The categories of ONNX's runner, and the least number of cases of each that must pass.
KINDS = {"OnnxBackendNodeModelTest": ("node", 1861), "OnnxBackendSimpleModelTest": ("simple", 22),
         "OnnxBackendPyTorchConvertedModelTest": ("pytorch-converted", 82),
         "OnnxBackendPyTorchOperatorModelTest": ("pytorch-operator", 35)}
LIGHT = {"OnnxBackendRealModelTest": ("light", 9)}

# ONNX's runner needs the length of each element of a sequence, but elements of rank 0 have none; tests/ops compares that case.
NOT_COMPARED = {"test_loop16_seq_none"}


def missing():
    """Returns a dict from the name of a case to the reason why it fails."""
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
    drawn = {name for name, reason in reasons.items() if reason.startswith("drawn:")}  # may pass by chance
    for name in sorted(expected):
        runner.xfail(f"^{re.escape(name)}_cpu$")
    wanted = [word for word in sys.argv[1:] if word != "--light"]
    lines, good = [], True
    with tempfile.TemporaryDirectory() as home:
        os.environ["ONNX_HOME"] = home  # the runner writes the models of its package here
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
