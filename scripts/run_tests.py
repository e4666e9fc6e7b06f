#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of a build with CTest and prints "N passed, N failed, N skipped".

    run_tests.py BUILD_FOLDER [--tally FILE] [ctest arguments…]

A test that is skipped must be listed in tests/skips.txt (name, tab, reason), or counts as failed. A name of
the form BUILD/PATTERN is of that build only: tests that match are not run there, and count as skipped.
--tally appends the counts to a file, for scripts that add up several runs.
"""
import argparse
import fnmatch
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def allowed_skips():
    skips = {}
    with open(os.path.join(ROOT, "tests", "skips.txt"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.rstrip("\n").partition("\t")
                skips[name] = reason
    return skips


def left_out(build, skips):
    """The tests that are not run in this build, and why."""
    prefix = os.path.basename(os.path.abspath(build)) + "/"
    patterns = {name[len(prefix):]: why for name, why in skips.items() if name.startswith(prefix)}
    if not patterns:
        return {}
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    names = [test["name"] for test in json.loads(listed.stdout)["tests"]]
    return {name: why for pattern, why in patterns.items()
            for name in names if fnmatch.fnmatchcase(name, pattern)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--tally")
    options, rest = parser.parse_known_args()
    report = os.path.join(os.path.abspath(options.build), "tests.xml")
    if os.path.exists(report):
        os.remove(report)
    skips = allowed_skips()
    absent = left_out(options.build, skips)
    if absent:
        without = "^(" + "|".join(re.escape(name) for name in sorted(absent)) + ")$"
        if "-E" in rest:  # of which CTest heeds one
            rest[rest.index("-E") + 1] += "|" + without
        else:
            rest += ["-E", without]
    jobs = os.environ.get("JOBS") or str(os.cpu_count() or 1)
    code = subprocess.call(["ctest", "--test-dir", options.build, "-j", jobs,
                            "--output-on-failure", "--no-tests=error",
                            "--output-junit", report] + rest, stdin=subprocess.DEVNULL)
    if not os.path.exists(report):
        print("the tests did not run", file=sys.stderr)
        return code or 1
    passed, failed, skipped = 0, [], []
    for case in xml.parse(report).getroot().iter("testcase"):
        status = case.get("status")
        if status == "run":
            passed += 1
        elif status == "fail":
            failed.append(case.get("name"))
        else:  # notrun, disabled
            skipped.append(case.get("name"))
    for name in skipped:
        print(f"skipped: {name}: {skips.get(name, 'NOT LISTED in tests/skips.txt')}")
    failed += [name for name in skipped if name not in skips]
    skipped = [name for name in skipped if name in skips]
    for name, why in absent.items():
        print(f"skipped: {name}: {why}")
    skipped += absent
    for name in failed:
        print(f"failed: {name}")
    if options.tally:
        with open(options.tally, "a", encoding="utf-8") as file:
            file.write(f"{passed} {len(failed)} {len(skipped)}\n")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or code else 0


if __name__ == "__main__":
    sys.exit(main())
