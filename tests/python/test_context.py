# SPDX-License-Identifier: Apache-2.0
"""Tests contexts from Python: bound arrays, streams, events, recordings, workspaces, profilers, and what happens when they are misused."""
import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import weakref

import ml_dtypes
import numpy as np

import kelp
from support import endless, main

LIBRARY = os.path.join(os.environ["KELP_BUILD"], "tests", "plugins", "libraries", "libcopy_engine.so")


def affine(builder=None, **options):
    """Returns an engine with y = 2 x + 1, x [-1,3] float32, and the weights 'scale'."""
    builder = builder or kelp.Builder()
    network = builder.create_network()
    x = network.add_input("x", "float32", (-1, 3))
    scale = network.add_constant(np.full((1, 3), 2, "float32"))
    scale.name = "scale"
    y = network.add_elementwise(network.add_elementwise(x, scale, "prod"), np.ones((1, 3), "float32"), "sum")
    network.mark_output(y, "y")
    return kelp.Engine(builder.build(network, **options))


def counting():
    """Returns an engine that counts to the input `rounds`, and can be cancelled."""
    builder = kelp.Builder()
    return kelp.Engine(builder.build(builder.parse(endless())))


class ContextTests(unittest.TestCase):
    def setUp(self):
        self.engine = affine()
        self.context = self.engine.create_context()
        self.x = np.arange(6, dtype="float32").reshape(2, 3)

    def raises(self, code, function, *arguments, words=(), **options):
        with self.assertRaises(kelp.KelpError) as caught:
            function(*arguments, **options)
        self.assertEqual(caught.exception.code.name, code, caught.exception)
        for word in words:
            self.assertIn(word, str(caught.exception))

    # ---- bound arrays ----
    def test_bound_arrays_are_used_in_place(self):
        y = np.zeros((2, 3), "float32")
        self.context.set_input("x", self.x)
        self.context.set_output("y", y)
        for value in (1, 5):
            self.x[:] = value
            self.assertIs(self.context.invoke()["y"], y)
            self.assertTrue((y == 2 * value + 1).all())
        self.context.set_output("y", None)
        other = self.context.invoke()["y"]
        self.assertFalse(np.shares_memory(other, y))
        self.assertFalse(np.shares_memory(other, self.context.invoke()["y"]))  # a new array for each run
        np.testing.assert_array_equal(other, y)

    def test_an_output_may_be_smaller_than_its_array(self):
        y = np.zeros(100, "float32")
        self.context.set_output("y", y)
        for rows in (1, 4):
            self.context.set_input("x", np.ones((rows, 3), "float32"))
            found = self.context.invoke()["y"]
            self.assertEqual((found.shape, found.ctypes.data), ((rows, 3), y.ctypes.data))
        self.context.set_input("x", np.ones((34, 3), "float32"))
        self.raises("OUT_OF_RANGE", self.context.invoke, words=("'y'",))
        self.raises("FAILED_PRECONDITION", self.context.outputs, words=("'y' has no result",))

    def test_shapes_are_known_before_a_run(self):
        self.raises("FAILED_PRECONDITION", self.context.prepare, words=("'x' is not bound",))
        self.context.set_input("x", self.x)
        self.assertEqual(self.context.prepare(), {"y": (2, 3)})
        self.assertGreater(self.context.stats["steps"], 0)
        self.assertGreater(self.engine.stats["nodes_planned"], 0)

    def test_outputs_of_the_last_run(self):
        self.raises("FAILED_PRECONDITION", self.context.outputs, words=("there was no run",))
        self.context.set_input("x", self.x)
        found = self.context.invoke()["y"]
        for _ in range(2):
            np.testing.assert_array_equal(self.context.outputs()["y"], found)

    def test_run_keeps_what_is_bound(self):
        y = np.zeros((2, 3), "float32")
        self.context.set_input("x", self.x)
        self.context.run({"x": np.full((5, 3), 9, "float32")})
        gc.collect()
        np.testing.assert_array_equal(self.context.invoke()["y"], 2 * self.x + 1)
        self.context.set_output("y", y)
        self.assertIs(self.context.run({"x": self.x + 1})["y"], y)
        np.testing.assert_array_equal(y, 2 * self.x + 3)
        self.raises("FAILED_PRECONDITION", self.context.run, {"x": self.x}, out={"y": y}, words=("set_output has bound it",))
        fresh = self.engine.create_context()
        fresh.run({"x": self.x})
        self.raises("FAILED_PRECONDITION", fresh.invoke, words=("'x' is not bound",))  # run does not leave a binding

    def test_arrays_stay_alive_while_they_are_bound(self):
        x, y = np.ones((2, 3), "float32"), np.empty((2, 3), "float32")
        gone = weakref.ref(x), weakref.ref(y)
        self.context.set_input("x", x)
        self.context.set_output("y", y)
        for array in (x, y):
            for check in (True, False):
                with self.assertRaisesRegex(ValueError, "cannot resize"):
                    array.resize((200, 200), refcheck=check)
        del array, x, y
        gc.collect()
        self.assertTrue(gone[0]() is not None and gone[1]() is not None)
        self.assertTrue((self.context.invoke()["y"] == 3).all())
        self.context.set_input("x", self.x)
        self.context.set_output("y", None)
        self.context.invoke()
        self.assertEqual([item() for item in gone], [None, None])

    def test_the_owner_of_a_bound_view_cannot_be_resized(self):
        owner = np.ones(12, "float32")
        self.context.set_input("x", owner[3:9].reshape(2, 3))
        with self.assertRaisesRegex(ValueError, "cannot resize"):
            owner.resize(1000, refcheck=False)
        memory = bytearray(24)
        self.context.set_input("x", np.frombuffer(memory, "float32").reshape(2, 3))
        with self.assertRaises(BufferError):
            memory.extend(b"more")
        self.assertTrue((self.context.invoke()["y"] == 1).all())

    def test_wrong_arrays_are_rejected(self):
        read_only = np.empty((2, 3), "float32")
        read_only.flags.writeable = False
        empty = lambda *shape, dtype="float32": np.empty(shape, dtype)
        for code, function, name, value, words in (
                ("NOT_FOUND", self.context.set_input, "z", self.x, "unknown input 'z': expected one of x"),
                ("NOT_FOUND", self.context.set_output, "x", self.x, "unknown output 'x': expected one of y"),
                ("INVALID_ARGUMENT", self.context.set_input, "x", self.x.astype("float64"), "input 'x'"),
                ("INVALID_ARGUMENT", self.context.set_input, "x", self.x[0], "expected [-1,3]"),
                ("INVALID_ARGUMENT", self.context.set_input, "x", empty(3, 2).T, "'x' is not contiguous"),
                ("INVALID_ARGUMENT", self.context.set_input, "x", np.array(["a"]), "'x' has elements of type"),
                ("INVALID_ARGUMENT", self.context.set_input, "x", empty(*[1] * 17), "17 dimensions"),
                ("UNIMPLEMENTED", self.context.set_input, "x", np.zeros((2, 3), ml_dtypes.int4), "are packed in Kelp"),
                ("INVALID_ARGUMENT", self.context.set_output, "y", empty(2, 3, dtype="int32"), "expected float32, found int32"),
                ("INVALID_ARGUMENT", self.context.set_output, "y", read_only, "output 'y' is read-only"),
                ("INVALID_ARGUMENT", self.context.set_output, "y", empty(3, 2).T, "'y' is not contiguous"),
                ("INVALID_ARGUMENT", self.context.set_output, "y", [[1.0, 2, 3]], "has no memory: expected an array, found list")):
            with self.subTest(words=words):
                self.raises(code, function, name, value, words=(words,))
        self.raises("FAILED_PRECONDITION", self.context.invoke, words=("not bound",))

    def test_outputs_of_a_fixed_shape_are_checked_when_they_are_bound(self):
        builder = kelp.Builder()
        network = builder.create_network()
        network.mark_output(network.add_identity(network.add_input("x", "float32", (2, 3))), "y")
        context = kelp.Engine(builder.build(network)).create_context()
        self.raises("INVALID_ARGUMENT", context.set_output, "y", np.empty(5, "float32"), words=("too small: expected 24 bytes for [2, 3], found 20",))

    def test_objects_with_dlpack_and_buffers(self):
        self.context.set_input("x", kelp.DLTensor(self.x))
        y = np.empty((2, 3), "float32")
        self.context.set_output("y", kelp.DLTensor(y))
        self.context.invoke()
        np.testing.assert_array_equal(y, 2 * self.x + 1)

    def test_device_memory_is_rejected_by_the_cpu(self):
        class OnDevice:
            """A tensor whose capsule says that it is on a GPU."""

            def __init__(self, array):
                self.array = array

            def __dlpack_device__(self):
                return 2, 0

            def __dlpack__(self, **_):
                capsule = self.array.__dlpack__()
                get = ctypes.pythonapi.PyCapsule_GetPointer
                get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
                ctypes.c_int32.from_address(get(capsule, b"dltensor") + 8).value = 2  # DLTensor.device.device_type
                return capsule

        self.raises("INVALID_ARGUMENT", self.context.set_input, "x", OnDevice(self.x), words=("must be compact and in host memory",))
        self.raises("INVALID_ARGUMENT", self.context.set_output, "y", OnDevice(self.x), words=("must be in host memory",))
        self.assertEqual(self.context.run({"x": self.x})["y"].shape, (2, 3))

    def test_profiles(self):
        engine = affine(profiles=[{"x": ((1, 3), (1, 3), (2, 3))}, {"x": ((3, 3), (4, 3), (4, 3))}])
        context = engine.create_context()
        self.assertEqual(len(engine.profiles), 2)
        context.set_input("x", self.x)
        context.set_profile(1)
        self.raises("FAILED_PRECONDITION", context.invoke, words=("not bound",))
        self.raises("INVALID_ARGUMENT", context.set_input, "x", self.x, words=("profile 0 accepts it",))
        context.set_input("x", np.ones((4, 3), "float32"))
        self.assertEqual(context.invoke()["y"].shape, (4, 3))
        for wrong in (2, -1, 2 ** 64):
            self.raises("OUT_OF_RANGE", context.set_profile, wrong, words=("there is no profile",))

    # ---- workspaces ----
    def test_workspaces(self):
        builder = kelp.Builder()
        network = builder.create_network()
        y = network.add_softmax(network.add_matrix_multiply(network.add_input("x", "float32", (-1, 3)), np.eye(3, dtype="float32")))
        network.mark_output(network.add_matrix_multiply(y, np.eye(3, dtype="float32")), "y")
        engine = kelp.Engine(builder.build(network, profiles=[{"x": ((1, 3), (1, 3), (8, 3))}]))
        needed = engine.workspace_bytes(0)
        self.assertGreater(needed, 0)
        expected = engine.run({"x": self.x})["y"]
        self.raises("OUT_OF_RANGE", engine.workspace_bytes, 1)
        self.raises("FAILED_PRECONDITION", self.engine.workspace_bytes)
        room = np.empty(needed + 128, "uint8")
        start = -room.ctypes.data % 64
        context = engine.create_context()
        context.set_input("x", self.x)
        for memory in (needed, room[start:start + needed], None):
            context.set_workspace(memory)
            gc.collect()
            np.testing.assert_array_equal(context.invoke()["y"], expected)
        context.set_workspace(0)
        self.raises("RESOURCE_EXHAUSTED", context.invoke, words=("workspace",))
        self.raises("INVALID_ARGUMENT", context.set_workspace, room[start + 1:], words=("not aligned",))
        self.raises("INVALID_ARGUMENT", context.set_workspace, -1)
        self.raises("INVALID_ARGUMENT", context.set_workspace, [1, 2, 3])

    def test_a_small_workspace_is_reported(self):
        builder = kelp.Builder()
        network = builder.create_network()
        x = network.add_input("x", "float32", (64, 64))
        y = network.add_softmax(network.add_matrix_multiply(x, x))
        network.mark_output(network.add_matrix_multiply(y, y), "y")
        engine = kelp.Engine(builder.build(network))
        context = engine.create_context()
        self.assertGreater(engine.workspace_bytes(), 16000)
        context.set_workspace(64)
        context.set_input("x", np.ones((64, 64), "float32"))
        self.raises("RESOURCE_EXHAUSTED", context.invoke, words=("workspace",))
        context.set_workspace(engine.workspace_bytes())
        self.assertEqual(context.invoke()["y"].shape, (64, 64))

    # ---- streams ----
    def test_runs_on_a_stream(self):
        with kelp.Stream() as stream:
            contexts = [self.engine.create_context() for _ in range(4)]
            arrays = [np.full((2, 3), i, "float32") for i in range(4)]
            outputs = [np.empty((2, 3), "float32") for _ in range(2)]
            for i, context in enumerate(contexts):
                context.set_input("x", arrays[i])
                if i < 2:
                    context.set_output("y", outputs[i])
            for _ in range(3):
                events = [context.enqueue(stream) for context in contexts]
                stream.synchronize()
                self.assertTrue(all(event.done for event in events))
                for i, context in enumerate(contexts):
                    self.assertTrue((context.outputs()["y"] == 2 * i + 1).all())
                    arrays[i] += 0
            event = contexts[0].enqueue(stream)
            self.assertTrue(event.wait())
            self.assertTrue(event.wait(0))
            self.assertTrue((outputs[0] == 1).all())
        self.raises("FAILED_PRECONDITION", stream.synchronize, words=("stream is closed",))
        self.raises("FAILED_PRECONDITION", contexts[0].enqueue, stream, words=("stream is closed",))
        self.assertTrue((contexts[0].invoke()["y"] == 1).all())  # usable after the failed call
        stream.close()
        with self.assertRaises(kelp.KelpError):
            stream.__enter__()

    def test_a_context_in_flight_cannot_be_used(self):
        engine, stream = counting(), kelp.Stream()
        context, rounds = engine.create_context(), np.array(2 ** 60)
        context.set_input("rounds", rounds)
        event = context.enqueue(stream)
        self.assertFalse(event.done)
        self.assertFalse(event.wait(0.01))
        for function, *arguments in ((context.invoke,), (context.outputs,), (context.capture,), (context.prepare,), (context.enqueue, stream),
                                     (context.set_input, "rounds", rounds), (context.set_output, "count", None), (context.set_profile, 0),
                                     (context.set_workspace, None), (context.run, {"rounds": rounds}), (context.set_profiler, None)):
            self.raises("FAILED_PRECONDITION", function, *arguments, words=("has an inference in flight",))
        self.raises("FAILED_PRECONDITION", engine.refit, {}, words=("the engine is running",))
        context.cancel()
        self.raises("CANCELLED", stream.synchronize)
        stream.synchronize()  # a failure is raised once
        self.raises("FAILED_PRECONDITION", context.outputs)
        context.set_input("rounds", np.array(3))
        self.assertEqual(context.invoke()["count"], 3)

    def test_failures_of_enqueued_runs(self):
        stream = kelp.Stream()
        self.context.set_input("x", self.x)
        self.context.set_output("y", np.empty(1, "float32"))
        event = self.context.enqueue(stream)
        self.assertTrue(event.wait())
        self.raises("OUT_OF_RANGE", stream.synchronize, words=("'y'",))
        self.raises("FAILED_PRECONDITION", self.context.outputs)
        self.raises("FAILED_PRECONDITION", self.engine.create_context().enqueue, stream, words=("not bound",))

    def test_everything_may_be_dropped_while_a_run_is_in_flight(self):
        engine, stream = counting(), kelp.Stream()
        context = engine.create_context()
        rounds = np.array(200000)
        gone = weakref.ref(rounds)
        context.set_input("rounds", rounds)
        context.enqueue(stream)
        del engine, context, rounds
        gc.collect()
        stream.close()
        gc.collect()
        self.assertIsNone(gone())
        engine, stream = counting(), kelp.Stream()
        context = engine.create_context()
        context.set_input("rounds", np.array(200000))
        context.enqueue(stream)
        cycle = [stream, context]
        cycle.append(cycle)
        del engine, stream, context, cycle
        gc.collect()

    def test_a_stream_takes_a_thousand_runs(self):
        stream, first = kelp.Stream(), counting().create_context()
        first.set_input("rounds", np.array(2 ** 60))
        first.enqueue(stream)
        contexts = [self.engine.create_context() for _ in range(1024)]
        for context in contexts:
            context.set_input("x", self.x)
        for context in contexts[:1023]:
            context.enqueue(stream)
        self.raises("RESOURCE_EXHAUSTED", contexts[1023].enqueue, stream, words=("1024",))
        first.cancel()
        self.raises("CANCELLED", stream.synchronize)
        np.testing.assert_array_equal(contexts[5].outputs()["y"], 2 * self.x + 1)
        contexts[1023].enqueue(stream).wait()

    def test_the_interpreter_ends_with_runs_in_flight(self):
        code = ("import sys; sys.path.insert(0, sys.argv[1])\nimport numpy as np, test_context as t, kelp\n"
                "stream, context = kelp.Stream(), t.counting().create_context()\ncontext.set_input('rounds', np.array(300000))\n"
                "context.enqueue(stream)\nprint('enqueued')\n")
        done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", code, os.path.dirname(os.path.abspath(__file__))],
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "enqueued\n"), done.stderr)

    def test_a_fork_loses_streams(self):
        stream = kelp.Stream()
        self.context.set_input("x", self.x)
        self.context.enqueue(stream).wait()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                stream.synchronize()
            except kelp.KelpError as error:
                code = 0 if "lost when the process forked" in str(error) else 2
            os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        stream.synchronize()

    def test_ctrl_c_interrupts_a_wait(self):
        engine, stream = counting(), kelp.Stream()
        for wait in ("event", "stream"):
            context = engine.create_context()
            context.set_input("rounds", np.array(2 ** 60))
            event = context.enqueue(stream)
            timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                (event.wait if wait == "event" else stream.synchronize)()
            timer.join()
            context.cancel()
            self.raises("CANCELLED", stream.synchronize)

    def test_the_gil_is_released_while_waiting(self):
        engine, stream = counting(), kelp.Stream()
        context = engine.create_context()
        context.set_input("rounds", np.array(2 ** 60))
        event, counted = context.enqueue(stream), []

        def count():
            for i in range(200):
                counted.append(i)
                time.sleep(0)
            context.cancel()

        thread = threading.Thread(target=count)
        thread.start()
        self.assertTrue(event.wait(60))
        thread.join()
        self.assertEqual(len(counted), 200)
        self.raises("CANCELLED", stream.synchronize)

    def test_two_threads_cannot_use_one_context(self):
        context = counting().create_context()
        context.set_input("rounds", np.array(2 ** 60))
        caught = []

        def run():
            try:
                context.invoke()
            except kelp.KelpError as error:
                caught.append(error.code)

        thread = threading.Thread(target=run)
        thread.start()
        deadline = time.monotonic() + 60
        while True:
            try:
                context.stats
            except kelp.KelpError as error:
                self.assertIn("used by another thread", str(error))
                break
            self.assertLess(time.monotonic(), deadline)
        while thread.is_alive():  # cancel has no effect before the run begins
            context.cancel()
            thread.join(0.01)
        self.assertEqual(caught, [kelp.Code.CANCELLED])

    def test_native_streams(self):
        called = []
        stream = kelp.Stream(native=4096, synchronize=lambda: called.append(1))
        self.context.set_input("x", self.x)
        self.raises("UNIMPLEMENTED", self.context.enqueue, stream, words=("'cpu' have no streams of a device",))
        np.testing.assert_array_equal(self.context.invoke()["y"], 2 * self.x + 1)
        stream.synchronize()
        self.assertEqual(called, [1])
        stream.close()
        for wrong in ({"native": 1}, {"native": "x", "synchronize": len}, {"native": 1, "synchronize": 3}):
            with self.assertRaises(TypeError):
                kelp.Stream(**wrong)
        self.raises("INVALID_ARGUMENT", kelp.Stream, synchronize=len)
        with self.assertRaises(TypeError):
            kelp.Stream(3)
        with self.assertRaises(TypeError):
            self.context.enqueue(None)

    def test_a_provider_with_native_streams(self):
        runtime = kelp.Runtime(1, log=lambda *_: None)
        self.assertFalse(kelp._capi.library.kelp_runtime_load_plugin(ctypes.c_void_p(runtime._borrowed), LIBRARY.encode()))
        builder = kelp.Builder("copy", runtime=runtime)
        network = builder.create_network()
        network.mark_output(network.add_identity(network.add_input("x", "float32", (-1,))), "y")
        engine = kelp.Engine(builder.build(network), runtime=runtime)
        context, x, y = engine.create_context(), np.arange(5, dtype="float32"), np.zeros(5, "float32")
        context.set_input("x", x)
        context.set_output("y", y)
        called = []
        stream = kelp.Stream(runtime, native=4096, synchronize=lambda: called.append(1))
        self.assertIsNone(context.enqueue(stream))
        self.raises("FAILED_PRECONDITION", context.outputs, words=("in flight",))
        stream.synchronize()
        self.assertEqual((called, y.tolist()), ([1], x.tolist()))
        context.enqueue(stream)
        stream.close()
        self.assertEqual(len(called), 2)
        engine.set_runtime_cache(b"kernels")
        self.assertEqual(engine.runtime_cache(), b"kernels")
        self.assertEqual(engine.streamable_weights, 100)
        engine.set_weight_budget(60)
        self.assertEqual(engine.streamable_weights, 40)
        self.raises("INVALID_ARGUMENT", engine.set_weight_budget, -1)

    def test_functions_of_devices_are_rejected_by_the_cpu(self):
        for function, *arguments in ((self.engine.set_runtime_cache, b"x"), (self.engine.runtime_cache,), (self.engine.set_weight_budget, 1),
                                     (lambda: self.engine.streamable_weights,)):
            self.raises("UNIMPLEMENTED", function, *arguments, words=("'cpu'",))

    # ---- recordings ----
    def test_recordings(self):
        y = np.zeros((2, 3), "float32")
        self.raises("FAILED_PRECONDITION", self.context.capture, words=("not bound",))
        self.context.set_input("x", self.x)
        self.context.set_output("y", y)
        recording = self.context.capture()
        self.assertGreater(recording.step_count, 0)
        for value in (3, 4):
            self.x[:] = value
            self.assertIs(recording.replay()["y"], y)
            self.assertTrue((y == 2 * value + 1).all())
        self.context.set_input("x", self.x)
        self.raises("FAILED_PRECONDITION", recording.replay, words=("bound after it",))
        recording.close()
        recording.close()
        self.raises("FAILED_PRECONDITION", recording.replay, words=("closed",))

    def test_a_recording_gets_arrays_for_its_outputs(self):
        self.context.set_input("x", self.x)
        recording = self.context.capture()
        first = recording.replay()["y"]
        np.testing.assert_array_equal(first, 2 * self.x + 1)
        self.x += 1
        self.assertIs(recording.replay()["y"], first)
        np.testing.assert_array_equal(first, 2 * self.x + 1)
        context, self.context = weakref.ref(self.context), None
        gc.collect()
        self.assertIsNotNone(context())  # a recording keeps its context
        recording.replay()

    def test_a_recording_ends_with_a_run_or_a_refit(self):
        engine = affine(flags="refit")
        context = engine.create_context()
        context.set_input("x", self.x)
        for end in (lambda: context.run({"x": self.x + 1}), lambda: engine.refit({engine.refittable[0]: np.full((1, 3), 7, "float32")})):
            recording = context.capture()
            recording.replay()
            end()
            self.raises("FAILED_PRECONDITION", recording.replay, words=("recording is invalid",))
        np.testing.assert_array_equal(context.invoke()["y"], 7 * self.x + 1)

    def test_shapes_that_depend_on_data_cannot_be_recorded(self):
        builder = kelp.Builder()
        network = builder.create_network()
        network.mark_output(network.add_non_zero(network.add_input("x", "float32", (4,))), "y")
        context = kelp.Engine(builder.build(network)).create_context()
        context.set_input("x", np.ones(4, "float32"))
        self.assertEqual(context.prepare(), {"y": None})
        self.raises("FAILED_PRECONDITION", context.capture, words=("cannot be recorded",))
        self.assertEqual(context.invoke()["y"].shape, (1, 4))

    # ---- others ----
    def test_profilers(self):
        seen = []
        self.context.set_input("x", self.x)
        self.context.set_profiler(lambda *note: seen.append(note))
        self.context.invoke()
        self.assertTrue(seen)
        self.assertTrue(all(isinstance(step, int) and operator and duration >= 0 for step, operator, _, _, duration in seen), seen)
        self.context.set_profiler(lambda *_: 1 / 0)  # ignored
        self.context.invoke()
        self.context.set_profiler(None)
        count = len(seen)
        self.context.invoke()
        self.assertEqual(len(seen), count)
        with self.assertRaises(TypeError):
            self.context.set_profiler(3)

    def test_packed_elements_and_lists_need_run(self):
        builder = kelp.Builder()
        network = builder.create_network()
        network.mark_output(network.add_identity(network.add_input("x", "int4", (3,))), "y")
        context = kelp.Engine(builder.build(network)).create_context()
        self.raises("UNIMPLEMENTED", context.set_input, "x", np.zeros(3, ml_dtypes.int4))
        self.raises("UNIMPLEMENTED", context.set_output, "y", np.zeros(3, ml_dtypes.int4))

    def test_contexts_are_freed_without_the_collector(self):
        stream = kelp.Stream()
        context = self.engine.create_context()
        context.set_input("x", self.x)
        context.enqueue(stream).wait()
        stream.synchronize()
        recording = context.capture()
        gone = weakref.ref(context), weakref.ref(recording)
        gc.disable()
        try:
            del context, recording
            self.assertEqual([item() for item in gone], [None, None])
        finally:
            gc.enable()


if __name__ == "__main__":
    main()
