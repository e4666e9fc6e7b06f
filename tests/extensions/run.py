#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of onnxruntime-extensions: Kelp's results equal those of the package on a generated corpus.

    run.py [--count N] [NAME …]     NAME: a file of this directory, such as bert; all by default

Needs the packages of tools/requirements-extensions.txt and the Python package `kelp` (PYTHONPATH). Ends with "N passed, N failed", and
the number of inputs that undefined.py excludes.
"""
import argparse
import importlib
import sys

from peer import Tally

NAMES = ["bert", "bpe", "hf", "spm", "text", "numeric", "image", "vectorizers"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000, help="random texts for each operator")
    parser.add_argument("names", nargs="*", default=NAMES)
    options = parser.parse_args()
    tally = Tally()
    for name in options.names:
        importlib.import_module(name).check(tally, options.count)
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.excluded} excluded because the package has undefined behaviour")
    sys.exit(tally.failed > 0)


if __name__ == "__main__":
    main()
