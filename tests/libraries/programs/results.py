# SPDX-License-Identifier: Apache-2.0
"""Writes the results of a program as JSON to the file that its only argument names, with the runtime that computed them."""
import json
import sys

import numpy as np


def plain(value):
    """Returns a value that JSON has: arrays become lists, other objects their text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def save(**results):
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"runtime": sys.modules["onnxruntime"].__file__, "results": plain(results)}, file)
