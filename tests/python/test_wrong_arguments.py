# SPDX-License-Identifier: Apache-2.0
"""Every public class and function rejects wrong arguments with an exception and does not crash the interpreter."""
import copy
import inspect
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import kelp
import kelp.backend
import kelp.builder
import kelp.runtime
from support import DIGITS, main

WRONG = [None, True, -1, 0, 3, 2 ** 70, 1.5, float("nan"), "x", "x\0y", "", b"", b"\x00" * 100, [], ["x"], {}, {"x": 1}, object(), len,
         np.zeros((2, 3), "complex64"), np.zeros(3, "float32")[::-1]]

# These take the address of memory or of a function by contract. (The buffer of IOBinding.bind_input is a later argument.)
ADDRESSES = {"DLTensor", "register"}


def made_plan():
    builder = kelp.Builder()
    network = builder.create_network()
    network.mark_output(network.add_identity(network.add_input("x", "float32", (-1,))), "y")
    return builder.build(network)


def objects():
    """One object of each public class, and the class if it can be called."""
    session = kelp.InferenceSession(DIGITS)
    builder = kelp.Builder()
    network = builder.create_network()
    x = network.add_input("x", "float32", (2,))
    layer = network.add_identity(x)
    condition = network.add_constant(np.array(True))
    engine = kelp.Engine(made_plan())
    registry = kelp.runtime.Runtime("")
    stream, context, recorded = kelp.Stream(), engine.create_context(), engine.create_context()
    context.set_input("x", np.ones(2, "float32"))
    recorded.set_input("x", np.ones(2, "float32"))
    return [session, session.io_binding(), session.get_inputs()[0], session.get_modelmeta(), kelp.SessionOptions(), kelp.RunOptions(),
            kelp.builder.Runtime(1), engine, engine.create_context(), context.enqueue(stream), stream, context, recorded.capture(),
            engine.inputs[0], builder, network, x, layer, network.add_loop(),
            network.add_conditional(condition), registry, registry.add_backend("mine"), registry.get_context(),
            kelp.DLTensor(np.zeros(3)), kelp.backend.KelpBackend, kelp.KelpError("x")]


def attempt(name, function, *arguments):
    print(name, [type(a).__name__ for a in arguments], flush=True)
    try:
        function(*arguments)
    except SystemError:  # a C function that fails without an exception, or the reverse
        raise
    except Exception:
        pass


def attempt_all(name, function):
    attempt(name, function)
    for wrong in WRONG:
        for count in (1, 2, 3):
            attempt(name, function, *[wrong] * count)


def attempt_object(name, subject, attributes):
    for attribute in attributes:
        if attribute.startswith("_") or attribute in ADDRESSES:
            continue
        print(name, attribute, flush=True)
        try:
            value = getattr(subject, attribute)
        except Exception:
            continue
        if callable(value) and not inspect.isclass(value):
            attempt_all(f"{name}.{attribute}", value)
        for wrong in WRONG if not callable(value) else ():
            attempt(f"{name}.{attribute} =", setattr, subject, attribute, wrong)


def child_public():
    for module in (kelp, kelp.builder, kelp.runtime, kelp.backend):
        for name in getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]:
            value = getattr(module, name)
            if callable(value) and name not in ADDRESSES:
                attempt_all(f"{module.__name__}.{name}", value)


def child_objects():
    for subject in objects():
        attempt_object(type(subject).__name__, subject, dir(subject))


def child_uninitialized():
    for subject in objects():
        try:
            made = type(subject).__new__(type(subject))
        except TypeError:  # classes of C that only C can create
            continue
        attempt_object(f"{type(subject).__name__}.__new__()", made, dir(type(subject)))


def child_copies():
    for subject in objects():
        for how in (copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
            try:
                twin = how(subject)
            except Exception:
                continue
            print("copied", type(subject).__name__, flush=True)
            repr(twin)
            del twin


class WrongArgumentTests(unittest.TestCase):
    def run_child(self, name):
        with tempfile.TemporaryDirectory() as folder:  # Plan.save("x") writes there
            done = subprocess.run([sys.executable, "-X", "faulthandler", os.path.abspath(__file__), "--child", name], cwd=folder,
                                  env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True,
                                  timeout=240, check=False)
        self.assertEqual(done.returncode, 0, "\n".join(done.stdout.splitlines()[-3:]) + "\n" + done.stderr[-3000:])

    def test_public_names(self):
        self.run_child("public")

    def test_methods_and_attributes(self):
        self.run_child("objects")

    def test_objects_without_init(self):
        self.run_child("uninitialized")

    def test_copies(self):
        self.run_child("copies")

    def test_engine_from_bytes_and_from_a_path(self):
        plan = made_plan()
        x = np.array([1, 2], "float32")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.plan")
            plan.save(path)
            for argument in (plan, bytes(plan), bytearray(plan), memoryview(plan), path):
                self.assertEqual(kelp.Engine(argument).run({"x": x})["y"].tolist(), [1, 2])
            with self.assertRaisesRegex(kelp.KelpError, "is a plan, not an ONNX model: load it with kelp.Engine"):
                kelp.InferenceSession(path)
            with self.assertRaisesRegex(kelp.KelpError, "are a plan, not an ONNX model: load them with kelp.Engine"):
                kelp.InferenceSession(bytes(plan))
            with self.assertRaisesRegex(kelp.KelpError, DIGITS):
                kelp.Engine(DIGITS)
        for argument in (None, 5, object(), [1]):
            with self.assertRaisesRegex(TypeError, "expected a path or bytes"):
                kelp.Engine(argument)
        self.assertIsInstance(kelp.Engine(plan, 1), kelp.Engine)
        runtime = kelp.builder.Runtime(2)
        self.assertEqual(kelp.Engine(plan, runtime=runtime).run({"x": x})["y"].tolist(), [1, 2])

    def test_objects_of_a_network_are_created_by_it(self):
        for kind in (kelp.builder.Event, kelp.builder.Capture, kelp.builder.Tensor, kelp.builder.Layer, kelp.builder.Loop, kelp.builder.Conditional, kelp.builder.Network):
            with self.assertRaisesRegex(TypeError, f"cannot create a {kind.__name__} directly: use "):
                kind(None, 4096)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        globals()[f"child_{sys.argv[2]}"]()
        sys.exit(0)
    main()
