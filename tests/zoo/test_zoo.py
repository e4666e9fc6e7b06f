#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that people use (tools/zoo.py), on inputs that suit them, answer as ONNX Runtime does.

    test_zoo.py --runner PATH --models FOLDER [NAME …]

--runner: tests/ops/run_cases. Ends with "N passed, N failed".
"""
import argparse
import os
import subprocess
import sys
import tempfile

import onnx
import onnxruntime

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "tests", "ops", "cases")]
import zoo  # noqa: E402
from common import Writer  # noqa: E402


def check(name, path, runner):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    model = onnx.load(path)
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(folder)
        for index, feed in enumerate(zoo.feeds(name)):
            writer.case(f"{name}_{index}", model, list(feed.items()), list(zip(outputs, session.run(outputs, feed))),
                        *zoo.TOLERANCES.get(name, zoo.TOLERANCE))
        writer.close()
        ended = subprocess.run([runner, folder, "--threads", "2"], capture_output=True, text=True, check=False, timeout=600)
    return ended.returncode == 0, (ended.stdout + ended.stderr).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runner", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    passed = failed = 0
    for name, path in zoo.fetch(options.models, options.names).items():
        good, said = check(name, path, options.runner)
        passed += good
        failed += not good
        print(f"{'ok     ' if good else 'FAILED '} {name}" + ("" if good else f"\n{said}"), flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
