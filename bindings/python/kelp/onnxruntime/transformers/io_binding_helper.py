# SPDX-License-Identifier: Apache-2.0
"""Types of inputs and outputs as numpy, torch and ONNX have them."""
import importlib

import numpy

from kelp._error import Code, KelpError
from kelp._types import NAMES, NUMBERS, word

__all__ = ["TypeHelper"]

# From ONNX Runtime's names to Kelp's, which are numpy's and torch's but for two.
KELP_NAMES = {f"tensor({word(name)})": name for name in NUMBERS}
TORCH_NAMES = {"float4_e2m1": "float4_e2m1fn_x2", "float8_e8m0": "float8_e8m0fnu"}


def kelp_name(ort_type):
    """Returns Kelp's name of a type such as 'tensor(float)'."""
    if ort_type not in KELP_NAMES:
        raise ValueError(f"type '{ort_type}' is not a tensor of a known element type")
    return KELP_NAMES[ort_type]


def torch_type(name):
    """Returns torch's type of Kelp's name."""
    found = getattr(importlib.import_module("torch"), TORCH_NAMES.get(name, name), None)
    if found is None:
        raise ValueError(f"torch has no type '{name}'")
    return found


class TypeHelper:
    """Converts types: ONNX Runtime's 'tensor(float)', numpy.float32, torch.float32, onnx.TensorProto.FLOAT."""

    @staticmethod
    def _find(values, name, what):
        for value in values:
            if value.name == name:
                return value.type
        raise KelpError(f"the model has no {what} '{name}'", Code.NOT_FOUND)

    @staticmethod
    def get_input_type(ort_session, name):
        """Returns the type of an input."""
        return TypeHelper._find(ort_session.get_inputs(), name, "input")

    @staticmethod
    def get_output_type(ort_session, name):
        """Returns the type of an output."""
        return TypeHelper._find(ort_session.get_outputs(), name, "output")

    @staticmethod
    def ort_type_to_numpy_type(ort_type):
        """Returns numpy's type."""
        name = kelp_name(ort_type)
        if not hasattr(numpy, name):
            raise ValueError(f"numpy has no type '{name}'")
        return bool if name == "bool" else getattr(numpy, name)

    @staticmethod
    def ort_type_to_torch_type(ort_type):
        """Returns torch's type."""
        return torch_type(kelp_name(ort_type))

    @staticmethod
    def ort_type_to_onnx_type(ort_type):
        """Returns the number in onnx.TensorProto."""
        return NUMBERS[kelp_name(ort_type)]

    @staticmethod
    def numpy_type_to_torch_type(numpy_type):
        """Returns torch's type of a numpy type."""
        return torch_type(numpy.dtype(numpy_type).name)

    @staticmethod
    def torch_type_to_numpy_type(torch_dtype):
        """Returns numpy's type of a type of torch."""
        name = str(torch_dtype).rsplit(".", 1)[-1]
        if name not in NAMES.values() or not hasattr(numpy, name):
            raise ValueError(f"numpy has no type '{name}'")
        return bool if name == "bool" else getattr(numpy, name)

    @staticmethod
    def _map(ort_session, convert):
        return {value.name: convert(value.type) for value in [*ort_session.get_inputs(), *ort_session.get_outputs()]}

    @staticmethod
    def get_io_onnx_type_map(ort_session):
        """Returns {name: number} of the inputs and outputs."""
        return TypeHelper._map(ort_session, TypeHelper.ort_type_to_onnx_type)

    @staticmethod
    def get_io_numpy_type_map(ort_session):
        """Returns {name: numpy type} of the inputs and outputs."""
        return TypeHelper._map(ort_session, TypeHelper.ort_type_to_numpy_type)

    @staticmethod
    def get_io_torch_type_map(ort_session):
        """Returns {name: torch type} of the inputs and outputs."""
        return TypeHelper._map(ort_session, TypeHelper.ort_type_to_torch_type)
