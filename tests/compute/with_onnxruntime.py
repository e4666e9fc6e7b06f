#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command with KELP_ONNXRUNTIME_LIBRARY set to the library of the installed onnxruntime package.

    with_onnxruntime.py COMMAND [arguments…]
"""
import glob
import importlib.util
import os
import sys

folder = os.path.dirname(importlib.util.find_spec("onnxruntime").origin)
libraries = sorted(glob.glob(os.path.join(folder, "capi", "libonnxruntime.so*")))
if not libraries:
    raise SystemExit(f"no libonnxruntime.so under {folder}")
os.environ["KELP_ONNXRUNTIME_LIBRARY"] = libraries[0]
os.execv(sys.argv[1], sys.argv[1:])
