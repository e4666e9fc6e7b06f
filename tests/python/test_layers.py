# SPDX-License-Identifier: Apache-2.0
"""Compares every type of layer on the CPU with numpy. The tests are in the layers_*.py modules."""
import os
import re
import unittest

import kelp
from layers_elementwise import ElementwiseLayers
from layers_product import ProductLayers, QuantizeLayers
from layers_reduce import ReduceLayers
from layers_region import RegionLayers
from layers_shape import ShapeLayers
from layers_window import WindowLayers
from layers_support import SEEN
from onnx_support import COMPARED
from support import ROOT

__all__ = ["ElementwiseLayers", "ProductLayers", "QuantizeLayers", "ReduceLayers", "RegionLayers", "ShapeLayers", "WindowLayers", "ZEveryType"]


class ZEveryType(unittest.TestCase):
    """Runs after the others, since unittest sorts the classes by name."""

    def setUp(self):
        with open(os.path.join(ROOT, "include", "kelp", "layers.inc"), encoding="utf-8") as file:
            self.types = re.findall(r"^KELP_LAYER\((\w+),", file.read(), re.MULTILINE)

    def test_every_layer_has_its_number(self):
        self.assertEqual([member.name for member in kelp.builder.LayerType], self.types)

    def test_every_layer_was_run(self):
        if not SEEN:
            self.skipTest("only this one runs")
        self.assertEqual([name for name in self.types if name not in SEEN and name not in {"INPUT", "PARSED"}], [])

    def test_every_layer_was_run_with_two_types(self):
        if not SEEN:
            self.skipTest("only this one runs")
        self.assertEqual([name for name, types in SEEN.items() if len(types) < 2], ["ASSERTION"])  # it only reads bool

    def test_networks_of_most_layers_ran_in_onnx_runtime(self):
        if not SEEN:
            self.skipTest("only this one runs")
        missing = {name for name in self.types if name not in COMPARED} - {"PARSED"}
        self.assertLessEqual(missing, {"ASSERTION", "MOE"}, missing)  # ONNX Runtime lacks a OneHot of MoE's types


if __name__ == "__main__":
    unittest.main()
