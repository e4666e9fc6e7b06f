#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a minimal model for bench/session.c: c = a + b, each f32 of shape [4].

    make_add.py OUT.onnx
"""
import sys

import onnx
from onnx import TensorProto, helper

value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "abc"]
graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["c"])], "add", value[:2], value[2:])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[1])
