# SPDX-License-Identifier: Apache-2.0
"""What the conformance suite of layers shares: a network of one case is built for the cpu, run, and compared with what numpy says."""
import unittest

import numpy as np

import kelp

SEEN = {}  # types of the layers of all networks that ran -> the sets of types of what they read and write
TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 4e-3, "bfloat16": 2e-2}
FLOATS = ("float32", "float16")


def close(found, expected, what, tolerance=None):
    """Equal shapes and types; equal values, or near ones of floating-point types."""
    assert found.dtype == expected.dtype, f"{what}: the type is {found.dtype}, expected {expected.dtype}"
    assert found.shape == expected.shape, f"{what}: the shape is {found.shape}, expected {expected.shape}"
    limit = tolerance or TOLERANCE.get(found.dtype.name)
    if limit is None:
        np.testing.assert_array_equal(found.astype("float64"), expected.astype("float64"), err_msg=what)
    else:
        np.testing.assert_allclose(found.astype("float64"), expected.astype("float64"), rtol=limit, atol=limit, err_msg=what)


class LayerCase(unittest.TestCase):
    """A test with random values of its own."""

    def setUp(self):
        self.rng = np.random.default_rng(20)
        self.builder = kelp.Builder()

    def normal(self, *shape, dtype="float32"):
        return self.rng.standard_normal(shape).astype(dtype)

    def integers(self, low, high, *shape, dtype="int32"):
        return self.rng.integers(low, high, shape).astype(dtype)

    def outputs_of(self, make, inputs, open_axis=None, **options):
        """Outputs of a network: make(network, *tensors) gives a layer, a tensor or several."""
        network = self.builder.create_network()
        tensors = []
        for i, array in enumerate(inputs):
            shape = [-1 if axis == open_axis else extent for axis, extent in enumerate(array.shape)]
            tensors.append(network.add_input(f"in{i}", array.dtype, shape))
        made = make(network, *tensors)
        outputs = []
        for item in made if isinstance(made, (list, tuple)) else [made]:
            outputs += item.outputs if isinstance(item, kelp.builder.Layer) else [item]
        for i, tensor in enumerate(outputs):
            network.mark_output(tensor, f"out{i}")
        declared = [(tensor.dtype, tensor.shape) for tensor in outputs]
        engine = kelp.Engine.load(self.builder.build(network, **options))
        found = list(engine.run({f"in{i}": array for i, array in enumerate(inputs)}).values())
        for array, (dtype, shape) in zip(found, declared):  # what the network said before it ran
            self.assertEqual(array.dtype, kelp._capi.numpy_dtype(kelp._capi.dtype_number(dtype)))
            if shape is not None:
                self.assertEqual(len(shape), array.ndim)
                self.assertTrue(all(said in (-1, extent) for said, extent in zip(shape, array.shape)), f"{shape}, found {array.shape}")
        for layer in network.layers:
            SEEN.setdefault(layer.type.name, set()).add(frozenset(tensor.dtype for tensor in [*layer.inputs, *layer.outputs]))
        return found

    def check(self, make, inputs, expected, what="", tolerance=None, open_axis=0, **options):
        """The same with fixed extents and, unless open_axis is None, with one that is open."""
        expected = expected if isinstance(expected, (list, tuple)) else [expected]
        for axis in (None,) if open_axis is None or not inputs else (None, open_axis):
            found = self.outputs_of(make, inputs, axis, **options)
            self.assertEqual(len(found), len(expected), what)
            for i, (array, wanted) in enumerate(zip(found, expected)):
                close(array, np.asarray(wanted), f"{what or self.id()}, output {i}, open axis {axis}", tolerance)

    def refused(self, code, make, *inputs, words=()):
        """Adding or building it is a KelpError of that code with these words."""
        with self.assertRaises(kelp.KelpError) as caught:
            self.outputs_of(make, inputs)
        self.assertEqual(caught.exception.code.name, code, caught.exception)
        for word in words:
            self.assertIn(word, str(caught.exception))
