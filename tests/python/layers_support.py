# SPDX-License-Identifier: Apache-2.0
"""Shared by the conformance tests of layers: a network is built for the CPU, run, and compared with numpy."""
import unittest

import numpy as np

import kelp
from onnx_support import check_onnx
from refit_support import refit_each

SEEN = {}  # type of each layer that ran -> the sets of element types that it read and wrote
TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 4e-3, "bfloat16": 2e-2}
FLOATS = ("float32", "float16")


def close(found, expected, what, tolerance=None):
    """Checks shapes, types and values; floating-point values may differ by a tolerance."""
    assert found.dtype == expected.dtype, f"{what}: the type is {found.dtype}, expected {expected.dtype}"
    assert found.shape == expected.shape, f"{what}: the shape is {found.shape}, expected {expected.shape}"
    limit = tolerance or TOLERANCE.get(found.dtype.name)
    if limit is None:
        np.testing.assert_array_equal(found.astype("float64"), expected.astype("float64"), err_msg=what)
    else:
        np.testing.assert_allclose(found.astype("float64"), expected.astype("float64"), rtol=limit, atol=limit, err_msg=what)


class LayerCase(unittest.TestCase):
    """A test with its own random numbers."""

    def setUp(self):
        self.rng = np.random.default_rng(20)
        self.builder = kelp.Builder()

    def normal(self, *shape, dtype="float32"):
        return self.rng.standard_normal(shape).astype(dtype)

    def integers(self, low, high, *shape, dtype="int32"):
        return self.rng.integers(low, high, shape).astype(dtype)

    def outputs_of(self, make, inputs, dynamic_axis=None, **options):
        """Returns the outputs of a network. make(network, *tensors) returns a layer, a tensor, or a list of them."""
        network = self.builder.create_network()
        tensors = []
        for i, array in enumerate(inputs):
            shape = [-1 if axis == dynamic_axis else dim for axis, dim in enumerate(array.shape)]
            tensors.append(network.add_input(f"in{i}", array.dtype, shape))
        made = make(network, *tensors)
        outputs = []
        for item in made if isinstance(made, (list, tuple)) else [made]:
            outputs += item.outputs if isinstance(item, kelp.builder.Layer) else [item]
        for i, tensor in enumerate(outputs):
            network.mark_output(tensor, f"out{i}")
        declared = [(tensor.dtype, tensor.shape) for tensor in outputs]
        engine = kelp.Engine.load(self.builder.build(network, **options))
        given = {f"in{i}": array for i, array in enumerate(inputs)}
        found = list(engine.run(given).values())
        check_onnx(network, given, found)
        refit_each(kelp.Engine(self.builder.build(network, **{"flags": "refit", **options})), given, self.rng)
        for array, (dtype, shape) in zip(found, declared):  # the shape and type before the run
            self.assertEqual(array.dtype, kelp._capi.numpy_dtype(kelp._capi.dtype_number(dtype)))
            if shape is not None:
                self.assertEqual(len(shape), array.ndim)
                self.assertTrue(all(said in (-1, dim) for said, dim in zip(shape, array.shape)), f"{shape}, found {array.shape}")
        for layer in network.layers:
            SEEN.setdefault(layer.type.name, set()).add(frozenset(tensor.dtype for tensor in [*layer.inputs, *layer.outputs]))
        return found

    def check(self, make, inputs, expected, what="", tolerance=None, dynamic_axis=0, **options):
        """Compares the outputs for fixed dimensions and, unless dynamic_axis is None, with that axis dynamic."""
        expected = expected if isinstance(expected, (list, tuple)) else [expected]
        for axis in (None,) if dynamic_axis is None or not inputs else (None, dynamic_axis):
            found = self.outputs_of(make, inputs, axis, **options)
            self.assertEqual(len(found), len(expected), what)
            for i, (array, wanted) in enumerate(zip(found, expected)):
                close(array, np.asarray(wanted), f"{what or self.id()}, output {i}, dynamic axis {axis}", tolerance)

    def rejected(self, code, make, *inputs, words=()):
        """Checks that adding or building it raises a KelpError with this code and these words."""
        with self.assertRaises(kelp.KelpError) as caught:
            self.outputs_of(make, inputs)
        self.assertEqual(caught.exception.code.name, code, caught.exception)
        for word in words:
            self.assertIn(word, str(caught.exception))
