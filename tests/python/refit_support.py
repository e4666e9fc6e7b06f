# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of layers and of refits: replaces every refittable weight of an engine, and checks that shapes stay."""
import re

import numpy as np

import kelp


def expected_of(engine, name):
    """Returns the type and shape of refittable weights, which the error for wrong weights states."""
    try:
        engine.refit({name: np.zeros(3, "complex64")})
    except kelp.KelpError as error:
        dtype, dims = re.search(r"expected (\w+) \[([\d,]*)\]", str(error)).groups()
        return kelp._capi.numpy_dtype(kelp._capi.dtype_number(dtype)), [int(dim) for dim in dims.split(",") if dim]
    raise AssertionError(f"complex weights '{name}' were accepted")


def other_weights(engine, rng):
    """Returns new values for every refittable weight: small ones, which are valid indices too."""
    made = {}
    for name in engine.refittable:
        dtype, shape = expected_of(engine, name)
        made[name] = rng.integers(0, 2, shape).astype(dtype) if dtype.kind in "iub" else (rng.random(shape) / 2 + 1.25).astype(dtype)
    return made


def shapes_of(outputs):
    return {name: array.shape for name, array in outputs.items()}


def refit_each(engine, inputs, rng):
    """Refits each weight, then all; the shapes of outputs must stay. Returns the number of weights."""
    before = shapes_of(engine.run(inputs))
    made = other_weights(engine, rng)
    for weights in [*({name: array} for name, array in made.items()), made]:
        engine.refit(weights)
        after = shapes_of(engine.run(inputs))
        assert after == before, f"{list(weights)}: {before} became {after}"
    return len(made)
