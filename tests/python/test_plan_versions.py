# SPDX-License-Identifier: Apache-2.0
"""Plan files of tests/data/plans, which earlier versions of Kelp built: those of the current format version load and compute the
same, also with another instruction set, and others are rejected. tests/data/make_plans.py made them."""
import glob
import os
import platform
import re
import subprocess
import sys
import unittest

import numpy as np

import kelp
from support import ROOT, main

PLANS = os.path.join(ROOT, "tests", "data", "plans")


def version_of(plan):
    return int.from_bytes(plan[8:12], "little")


def current_version():
    builder = kelp.Builder()
    network = builder.create_network()
    network.mark_output(network.add_identity(network.add_input("x", "float32", (1,))), "y")
    return version_of(builder.build(network))


def array(name):
    return np.load(os.path.join(PLANS, name + ".npy"))


def check(path):
    """Runs a plan before and after a refit, with the answers of ONNX Runtime."""
    engine = kelp.Engine(path)
    found = engine.run({"x": array("small.x")})
    np.testing.assert_allclose(found["y"], array("small.built.y"), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(found["shape"][0], [3, 10])
    assert engine.profiles == [{"x": ((1, 4, 6, 6), (3, 4, 6, 6), (64, 4, 6, 6))}], engine.profiles
    engine.refit({"b1": np.zeros(33, "float32")})
    np.testing.assert_allclose(engine.run({"x": array("small.x")})["y"], array("small.refitted.y"), rtol=1e-4, atol=1e-6)


class PlanVersionTests(unittest.TestCase):
    def setUp(self):
        self.paths = sorted(glob.glob(os.path.join(PLANS, "small.v*.plan")))
        self.current = os.path.join(PLANS, f"small.v{current_version()}.plan")

    def rejected(self, plan, pattern):
        with self.assertRaisesRegex(kelp.KelpError, pattern) as caught:
            kelp.Engine(plan)
        self.assertEqual(caught.exception.code, kelp.Code.FAILED_PRECONDITION)

    def test_every_file_is_of_the_version_in_its_name(self):
        self.assertIn(self.current, self.paths, "the format version has changed: run tests/data/make_plans.py")
        for path in self.paths:
            with open(path, "rb") as file:
                self.assertEqual(version_of(file.read()), int(re.search(r"\.v(\d+)\.", path).group(1)))

    @unittest.skipUnless(platform.machine() == "x86_64", "the plan was built on x86-64")
    def test_a_plan_of_the_current_version_runs(self):
        check(self.current)
        self.assertGreater(os.path.getsize(self.current), 10000)
        # all of them, or none on a machine with another instruction set
        self.assertRegex(kelp.Engine(self.current).inspect("text"), " (9216|0) packed in the plan")

    @unittest.skipUnless(platform.machine() == "x86_64", "the plan was built on x86-64")
    def test_packed_weights_of_another_instruction_set_are_packed_again(self):
        code = ("import sys, test_plan_versions as t, kelp\nt.check(sys.argv[1])\n"
                "assert ' 0 packed in the plan' in kelp.Engine(sys.argv[1]).inspect('text'), kelp.Engine(sys.argv[1]).inspect('text')")
        path = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), *sys.path])
        subprocess.run([sys.executable, "-c", code, self.current], check=True,
                       env={**os.environ, "KELP_ISA": "portable", "PYTHONPATH": path})

    def test_plans_of_other_versions_are_rejected(self):
        with open(self.current, "rb") as file:
            data = bytearray(file.read())
        version = version_of(data)
        for other in (0, version - 1, version + 1, 2 ** 32 - 1):
            data[8:12] = other.to_bytes(4, "little")
            self.rejected(bytes(data), f"plan has format version {other}, but this version of Kelp reads version {version}: build it again")
        for path in self.paths:
            if path != self.current:
                self.rejected(path, "but this version of Kelp reads")

    def test_plans_of_other_processors_are_rejected(self):
        if platform.machine() == "x86_64":
            self.skipTest("the plan was built on x86-64")
        self.rejected(self.current, "another processor: expected .*, found x86_64")


if __name__ == "__main__":
    main()
