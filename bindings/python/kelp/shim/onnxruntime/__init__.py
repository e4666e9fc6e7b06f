# SPDX-License-Identifier: Apache-2.0
"""Replaces itself by kelp.onnxruntime. Its directory comes before site-packages in a program that kelp.as_onnxruntime runs."""
import sys

import kelp.onnxruntime

sys.modules[__name__] = kelp.onnxruntime
