# SPDX-License-Identifier: Apache-2.0
"""Records the outcome of each Python test in the file $KELP_QA_TESTS, one line for each test: outcome, script and name.

Python imports this module at its start if its directory is in PYTHONPATH, so that test scripts of others need no change. Without the variable
nothing happens. pytest loads it as a plug-in (`-p sitecustomize`)."""
import os
import sys
import unittest

PATH = os.environ.get("KELP_QA_TESTS")


def write(outcome, name):
    script = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
    with open(PATH, "a", encoding="utf-8") as file:
        file.write(f"{outcome}\t{script}\t{name}\n")


def name_of(test):
    return getattr(test, "id", lambda: str(test))().removeprefix("__main__.")


def wrap(method, outcome):
    """Makes a method of unittest.TestResult note `outcome` for the test. The worst outcome of a test counts."""
    original = getattr(unittest.TestResult, method)

    def recorded(self, test, *arguments):
        original(self, test, *arguments)
        if method == "startTest":
            self.kelp_outcome = "passed"
        elif method == "stopTest":
            write(self.kelp_outcome, name_of(test))
            del self.kelp_outcome
        elif method == "addSubTest" and (not arguments or arguments[-1] is None):
            pass
        elif hasattr(self, "kelp_outcome"):
            self.kelp_outcome = outcome
        else:  # setUpClass or setUpModule failed: none of its tests starts
            write(outcome, name_of(test))

    setattr(unittest.TestResult, method, recorded)


def pytest_runtest_logreport(report):
    if PATH and (report.when == "call" or report.outcome != "passed"):
        write("passed" if report.outcome == "passed" else report.outcome, report.nodeid)


if PATH:
    for each, result in (("startTest", None), ("stopTest", None), ("addSkip", "skipped"), ("addFailure", "failed"), ("addError", "failed"),
                         ("addSubTest", "failed"), ("addUnexpectedSuccess", "failed")):
        wrap(each, result)
