# SPDX-License-Identifier: Apache-2.0
"""The grid of bench/sweep.py: models of one operator, or a few, by operator, element type and shape.

A file per group of operators. Its generators are registered with a family (`common.generator`) and yield cases (`common.single`); data and
models are only made when a case is measured.
"""
from . import arithmetic, fusions, indexing, language, learning, misc, movement, products, quantized, reductions, windows  # noqa: F401
from .common import all_cases  # noqa: F401
