# SPDX-License-Identifier: Apache-2.0
"""The Python tools of an installed ONNX Runtime (quantization, transformers, tools), which kelp.onnxruntime uses if they are found."""
import os
import sys


def directory():
    """Returns the directory of an installed package `onnxruntime`, or None."""
    for entry in sys.path:
        path = os.path.join(entry or ".", "onnxruntime")
        if os.path.exists(os.path.join(path, "capi", "onnxruntime_validation.py")):
            return path
    return None


def become(name, namespace, required=True):
    """Continues a package of kelp.onnxruntime with the one of the same name in ONNX Runtime's package; modules of Kelp's come first. If that
    is not installed, raises ImportError, or does nothing if it is not required."""
    word = name.rsplit(".", 1)[-1]
    found = directory()
    source = os.path.join(found, word, "__init__.py") if found else None
    if source is not None and os.path.exists(source):
        namespace["__path__"].append(os.path.dirname(source))
        namespace["__file__"] = source
        with open(source, encoding="utf-8") as file:
            exec(compile(file.read(), source, "exec"), namespace)  # pylint: disable=exec-used
    elif required:
        raise ImportError(f"onnxruntime.{word} is not part of Kelp: install the package onnxruntime, whose tools then work on Kelp's sessions",
                          name=name)
