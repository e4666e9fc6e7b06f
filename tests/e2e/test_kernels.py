#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a kernel of a shared library that is served as a model. The configuration names the library and the kernel.

    test_kernels.py --kelp PATH --libraries DIRECTORY [unittest arguments]
"""
import argparse
import json
import os
import sys
import unittest

import numpy as np
import tritonclient.http as triton

import support
from support import Repository, Server, kelp

CONFIG = """
backend: "kelp"
parameters { key: "kernel_library" value { string_value: "toolbox" } }
parameters { key: "kernel" value { string_value: "%s" } }
"""
RADIUS = 'parameters { key: "radius" value { string_value: "%s" } }\n'


class Kernels(unittest.TestCase):
    def serve(self, *words, **models):
        repository = Repository()
        self.addCleanup(repository.__exit__)
        for name, config in models.items():
            repository.add(name, config=config)
        server = Server("--model-repository", repository.path, *words)
        self.addCleanup(server.__exit__)
        return server

    def test_kernels_of_a_library_are_served(self):
        server = self.serve(histogram=CONFIG % "histogram" + "input [ { name: \"image\" data_type: TYPE_UINT8 dims: [ -1, -1 ] } ]\n",
                            blur=CONFIG % "box_blur" + RADIUS % 1)
        client = triton.InferenceServerClient(server.url)
        image = np.random.default_rng(1).integers(0, 256, (30, 40), np.uint8)
        given = triton.InferInput("image", image.shape, "UINT8")
        given.set_data_from_numpy(image)
        bins = client.infer("histogram", [given]).as_numpy("bins")
        np.testing.assert_array_equal(bins, np.bincount(image.ravel(), minlength=256))
        picture = np.arange(12, dtype=np.float32).reshape(3, 4)
        given = triton.InferInput("x", picture.shape, "FP32")
        given.set_data_from_numpy(picture)
        found = client.infer("blur", [given]).as_numpy("y")
        expected = [[picture[max(r - 1, 0):r + 2, max(c - 1, 0):c + 2].mean() for c in range(4)] for r in range(3)]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        client.close()
        self.assertEqual(server.stop(), 0, server.log())

    def test_errors_of_a_configuration_are_reported(self):
        server = self.serve("--exit-on-error=false", "--strict-readiness=false", absent=CONFIG % "nothing",
                            scalar=CONFIG % "box_blur", half='backend: "kelp"\nparameters { key: "kernel" value { string_value: "add" } }\n',
                            number=CONFIG % "box_blur" + RADIUS % "wide")
        index = {model["name"]: model["reason"] for model in json.loads(server.call("POST", "/v2/repository/index", {})[2])}
        for name, word in (("absent", "has no kernel 'nothing'"), ("scalar", "parameter 'radius' (int32) is missing"),
                           ("half", "'kernel_library' is missing"), ("number", "parameter 'radius' is 'wide'")):
            self.assertIn(word, index[name])
        self.assertEqual(server.stop(), 0, server.log())

    def test_kelp_kernels_lists_the_kernels_of_a_library(self):
        ended = kelp("kernels", "--library", "toolbox")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("out y: float32[h, w], x: float32[h, w], radius: int32", ended.stdout)
        every = json.loads(kelp("kernels", "--json").stdout)
        self.assertTrue({"toolbox", "custom_add"} <= {library["name"] for library in every})
        ended = kelp("kernels", "--library", "absent")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("libabsent_backend.so: no such file", ended.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--libraries", required=True)
    options, sys.argv[1:] = parser.parse_known_args()
    os.environ["KELP_BACKEND_PATH"] = os.path.abspath(options.libraries)
    support.main()
