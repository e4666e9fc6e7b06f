#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests named kernels from Python: the example of a C++ class, typed kernels in C, functions by address, and errors."""
import asyncio
import concurrent.futures
import ctypes
import gc
import inspect
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

import kelp
import kelp.runtime as rt
import numpy as np
from PIL import Image
from support import DIGITS, ROOT, main

DIRECTORY = os.path.join(os.environ["KELP_BUILD"], "tests", "plugins", "libraries")
EXAMPLE = '''
import kelp.runtime as rt
import numpy as np
runtime = rt.get_runtime()
try:
    custom_backend = runtime.get_backend("custom_add")
except rt.TritonException as e:
    print(f"Failed to get custom backend: {e}")
    exit()
a = np.array([1.0, 2.0, 3.0, 4.0], dtype=np.float32)
b = np.array([5.0, 6.0, 7.0, 8.0], dtype=np.float32)
output = np.empty_like(a)
a_dl = rt.DLTensor(data=a.ctypes.data, shape=a.shape, dtype=a.dtype, device="cpu")
b_dl = rt.DLTensor(data=b.ctypes.data, shape=b.shape, dtype=b.dtype, device="cpu")
output_dl = rt.DLTensor(data=output.ctypes.data, shape=output.shape, dtype=output.dtype, device="cpu")
add_fn = custom_backend.get_function_ptr("add")
num_elements = np.prod(a.shape).item()
custom_backend.execute_kernel("add", output_dl, a_dl, b_dl, num_elements)
print("Output:", output)
for call in (lambda: add_fn(runtime.get_context(), output_dl, a_dl, b_dl, num_elements),
             lambda: runtime.invoke_kernel(add_fn, [runtime.get_context(), output_dl, a_dl, b_dl, num_elements]),
             lambda: custom_backend.add(output, a, b, num_elements)):
    output[:] = 0
    call()
    assert output.tolist() == [6, 8, 10, 12], output
'''


class Example(unittest.TestCase):
    def run_example(self, **more):
        environment = {key: value for key, value in os.environ.items() if not key.endswith("_BACKEND_PATH")}
        return subprocess.run([sys.executable, "-c", EXAMPLE], env={**environment, **more}, capture_output=True, text=True, timeout=300,
                              check=False)

    def test_the_example_runs(self):
        for name in ("TRITON_BACKEND_PATH", "KELP_BACKEND_PATH"):
            ended = self.run_example(**{name: DIRECTORY})
            self.assertEqual((ended.returncode, ended.stdout), (0, "Output: [ 6.  8. 10. 12.]\n"), ended.stderr)
            self.assertIn("CustomAddBackend initialized", ended.stderr)

    def test_a_missing_kernel_is_reported(self):
        ended = self.run_example(KELP_BACKEND_PATH="/nowhere/kernels")
        self.assertIn("Failed to get custom backend: there is no kernel library 'custom_add'", ended.stdout)
        self.assertIn("/nowhere/kernels/libcustom_add_backend.so: no such file", ended.stdout)


class Toolbox(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runtime = rt.Runtime(DIRECTORY)
        cls.toolbox = cls.runtime.get_backend("toolbox")

    def test_a_library_describes_its_kernels(self):
        self.assertEqual(self.toolbox.kernels, ["add", "box_blur", "gauss_blur", "histogram", "sort", "later_sum"])
        self.assertEqual((self.toolbox.name, self.toolbox.path), ("toolbox", DIRECTORY + "/libtoolbox.so"))
        self.assertEqual(self.toolbox.get_supported_devices(), ["cpu"])
        self.assertEqual(self.toolbox.sort.signature, "inout values: int64[n]")
        self.assertIn("sort", dir(self.toolbox))
        self.assertIs(self.toolbox, self.runtime.get_backend("toolbox"))

    def test_arrays_are_written_in_place(self):
        a, b = np.arange(12, dtype="f4").reshape(3, 4), np.ones((3, 4), "f4")
        y = np.empty((3, 4), "f4")
        address = y.ctypes.data
        self.assertIsNone(self.toolbox.add(y, a, b))
        self.assertEqual((y.ctypes.data, y.tolist()), (address, (a + b).tolist()))
        self.toolbox.add(rt.DLTensor(y), memoryview(a), rt.DLTensor(b).__dlpack__ and rt.DLTensor(b))
        values = np.array([3, 1, 2])
        self.toolbox.sort(values)
        self.assertEqual(values.tolist(), [1, 2, 3])

    def test_kernels_have_memory_and_errors(self):
        image = np.random.default_rng(3).integers(0, 255, (90, 160), dtype="u1")
        bins = np.empty(256, "i8")
        self.toolbox.histogram(bins, image)
        self.assertEqual(bins.tolist(), np.bincount(image.ravel(), minlength=256).tolist())
        blurred = np.empty((90, 160), "f4")
        self.toolbox.box_blur(blurred, image.astype("f4"), 2)
        self.assertAlmostEqual(float(blurred[45, 80]), float(image[43:48, 78:83].mean()), places=3)
        total = np.empty((), "f8")
        self.toolbox.later_sum(total, np.arange(1000.0))
        self.assertEqual(float(total), 499500.0)

    def test_a_picture_of_the_documentation_is_reproduced(self):
        with tempfile.TemporaryDirectory() as directory:
            script = ROOT + "/examples/kernels/blur_picture.py"
            ended = subprocess.run([sys.executable, script, "--crop", "360x200", "--out", directory], capture_output=True, text=True, check=False,
                                   env={**os.environ, "KELP_BACKEND_PATH": DIRECTORY}, timeout=300)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertRegex(ended.stdout, r"^gauss_blur\(3840 x 2160, 8\): [\d.]+ ms$")
            for name in ("before", "after"):  # the pictures in docs/kernels.md
                with Image.open(f"{directory}/{name}.png") as made, Image.open(f"{ROOT}/docs/pictures/{name}.png") as shown:
                    self.assertEqual(made.size, (360, 200))
                    apart = np.abs(np.asarray(made, "i4") - np.asarray(shown, "i4"))
                    self.assertLess((apart > 1).mean(), 0.01)  # a sine near 0 may have another sign on other machines

    def test_gauss_blur_is_compared_with_numpy(self):
        x = np.random.default_rng(5).random((37, 53), dtype="f4")
        for sigma in (0.5, 2.0, 30.0):
            radius = int(np.ceil(3 * sigma))
            weights = np.exp(-np.arange(-radius, radius + 1.0) ** 2 / (2 * sigma * sigma))
            weights /= weights.sum()
            padded = np.pad(x.astype("f8"), radius, mode="edge")
            rows = np.array([np.convolve(row, weights, "valid") for row in padded])
            expected = np.array([np.convolve(column, weights, "valid") for column in rows.T]).T
            y = np.empty_like(x)
            self.toolbox.gauss_blur(y, x, sigma)
            np.testing.assert_allclose(y, expected, rtol=2e-6)
        for sigma in (0, -1, float("nan"), 1e9):
            self.rejected("sigma must be greater than 0", self.toolbox.gauss_blur, y, x, sigma)
        self.toolbox.gauss_blur(np.empty((0, 3), "f4"), np.empty((0, 3), "f4"), 1)

    def test_a_kernel_runs_in_several_threads(self):
        a = np.arange(1000, dtype="f4")
        wrong = []

        def work(k):
            y = np.empty_like(a)
            for _ in range(300):
                self.toolbox.add(y, a, np.full_like(a, k))
                if y[7] != 7 + k:
                    wrong.append(k)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def rejected(self, words, function, *arguments, kind=kelp.KelpError):
        with self.assertRaisesRegex(kind, words):
            function(*arguments)

    def test_wrong_arguments_are_rejected(self):
        add, a, y = self.toolbox.add, np.ones((2, 3), "f4"), np.zeros((2, 3), "f4")
        read_only = np.zeros((2, 3), "f4")
        read_only.flags.writeable = False
        self.rejected("'a'.*float32.*float64", add, y, a.astype("f8"), a)
        self.rejected("'b'", add, y, a, a[:1])
        self.rejected("read-only", add, read_only, a, a)
        self.rejected("gaps", add, y, np.asfortranarray(a), a)
        self.rejected("no argument for parameter 'b'", add, y, kind=TypeError)
        self.rejected("4 arguments are given by position", add, y, a, a, a, kind=TypeError)
        self.rejected("'toolbox'", add, y, a, 3)
        self.rejected("has type 'list'", add, y, a, [1], kind=TypeError)
        self.rejected("NUL", lambda: add(y, a, "a\0b"), kind=ValueError)
        self.rejected("foreign byte order", add, y, a.astype(">f4"), a)
        self.rejected("radius must not be negative", self.toolbox.box_blur, y, a, -1)
        self.assertEqual(y.tolist(), np.zeros((2, 3)).tolist())
        self.rejected("no_such", self.toolbox.execute_kernel, "no_such")
        self.assertFalse(hasattr(self.toolbox, "no_such"))
        untyped = self.runtime.get_backend("custom_add")
        self.rejected("not contiguous", untyped.add, np.zeros(2, "f4"), np.zeros(4, "f4")[::2], np.zeros(2, "f4"), 2)
        self.rejected("has no signature: its arguments have no names", lambda: untyped.add(y, a, a, num_elements=6), kind=TypeError)

    def test_a_missing_library_says_where_it_looked(self):
        with self.assertRaises(rt.TritonException) as caught:
            rt.Runtime("/nowhere:" + DIRECTORY).get_backend("missing")
        self.assertEqual(caught.exception.code, kelp.Code.NOT_FOUND)
        self.assertEqual(caught.exception.paths[:2], ["/nowhere/libmissing_backend.so", "/nowhere/libmissing.so"])
        self.assertIn(DIRECTORY + "/libmissing.so", caught.exception.paths)
        self.assertEqual(list(caught.exception.tried), caught.exception.paths)
        self.assertEqual(caught.exception.tried["/nowhere/libmissing.so"], "no such file")
        self.assertEqual(pickle.loads(pickle.dumps(caught.exception)).tried, caught.exception.tried)
        with self.assertRaises(kelp.KelpError) as caught:
            self.runtime.get_backend(f"{DIRECTORY}/libmistake_1.so")
        self.assertIn("bad plug-in magic", caught.exception.tried[f"{DIRECTORY}/libmistake_1.so"])

    def test_parameters_can_be_read(self):
        y, x, radius = self.toolbox.box_blur.parameters
        self.assertEqual(y, {"name": "y", "direction": "out", "dtype": "float32", "shape": ["h", "w"]})
        self.assertEqual((x["direction"], radius["dtype"], radius["shape"]), ("in", "int32", None))
        self.assertEqual([p["shape"] for p in self.toolbox.histogram.parameters], [[256], ["..."]])
        self.assertEqual(self.toolbox.add.parameters[0]["shape"], ["...s"])
        self.assertIsNone(self.runtime.get_backend("custom_add").add.parameters)

    def test_contexts_are_created_and_freed(self):
        context = self.runtime.get_context()
        y = np.empty((4, 4), "f4")
        for _ in range(3):
            self.toolbox.box_blur(context, y, np.ones((4, 4), "f4"), 1)
        self.assertEqual(y.tolist(), np.ones((4, 4)).tolist())
        self.assertGreater(context.address, 0)
        self.rejected("another runtime", self.toolbox.add, rt.Runtime(DIRECTORY).get_context(), y, y, y)


class Names(unittest.TestCase):
    """Arguments by name, outputs that Kelp allocates, and inspect.signature."""

    @classmethod
    def setUpClass(cls):
        cls.runtime = rt.Runtime(DIRECTORY)
        cls.toolbox, cls.counting = cls.runtime.get_backend("toolbox"), cls.runtime.get_backend("counting")
        cls.a = np.arange(6, dtype="f4").reshape(2, 3)

    def test_outputs_that_are_omitted_are_returned(self):
        a, add = self.a, self.toolbox.add
        for made in (add(a, a), add(a, b=a), add(b=a, a=a), add(a, a, y=None), self.toolbox.execute_kernel("add", a, a),
                     self.runtime.invoke_kernel(add, [a, a]), add(self.runtime.get_context(), a, a)):
            self.assertEqual((made.dtype, made.tolist()), (np.dtype("f4"), (a + a).tolist()))
        y, z = self.counting.describe(a[0], True, "four")
        self.assertEqual((y.tolist(), z.tolist()), ([1, 4], a[0].tolist()))
        y = np.empty(2, "f4")
        z = self.counting.describe(a[0], y=y, negate=False, text="")
        self.assertEqual((y.tolist(), z.tolist()), ([0, 0], a[0].tolist()))
        self.assertEqual(self.toolbox.later_sum(np.arange(4.0)), 6)
        self.assertEqual(self.toolbox.add(np.zeros((0, 3), "f4"), np.zeros((0, 3), "f4")).shape, (0, 3))

    def test_given_outputs_are_written(self):
        a, y = self.a, np.empty_like(self.a)
        for call in (lambda: self.toolbox.add(a, a, y=y), lambda: self.toolbox.add(y, a, a), lambda: self.toolbox.add(y, a, b=a),
                     lambda: self.toolbox.add(y=y, a=a, b=a)):
            y[:] = 0
            self.assertIsNone(call())
            self.assertEqual(y.tolist(), (a + a).tolist())

    def test_sizes_of_inputs_may_be_omitted(self):
        x = np.ones(3, "f4")
        self.assertEqual(self.counting.twice(x).tolist(), [2, 2, 2])
        self.assertEqual(self.counting.twice(x, n=3).tolist(), [2, 2, 2])
        with self.assertRaisesRegex(kelp.KelpError, "'n' is 4: expected 3"):
            self.counting.twice(x, n=4)
        self.assertEqual(self.counting.repeat(x, 2).shape, (2, 3))  # n is not the size of an input
        with self.assertRaisesRegex(TypeError, "no argument for parameter 'n'"):
            self.counting.repeat(x)

    def test_optional_parameters_may_be_omitted(self):
        x, scale = np.arange(3, dtype="f4"), self.counting.scale
        self.assertEqual(str(inspect.signature(scale)),
                         "(x: 'float32[n]', *, y: 'float32[n]' = None, factor: 'float32' = None, offset: 'float32[n]' = None)")
        self.assertEqual(scale(x).tolist(), [0, 2, 4])
        self.assertEqual(scale(x, factor=3, offset=x).tolist(), [0, 4, 8])
        self.assertEqual(scale(x, offset=None).tolist(), [0, 2, 4])
        y = np.empty_like(x)
        scale(y, x, 1, None)
        self.assertEqual(y.tolist(), [0, 1, 2])
        with self.assertRaisesRegex(kelp.KelpError, "'offset' has shape"):
            scale(x, offset=x[:2])

    def test_wrong_names_are_rejected(self):
        a, add = self.a, self.toolbox.add
        for words, call in (("has no parameter 'c': expected out y", lambda: add(a, c=a)), ("two values for parameter 'a'", lambda: add(a, a, a=a)),
                            ("no argument for parameter 'b'", lambda: add(a=a)), ("no argument for parameter 'a'", lambda: add())):
            with self.assertRaisesRegex(TypeError, words):
                call()
        with self.assertRaisesRegex(kelp.KelpError, "argument 'b' has shape"):
            add(a, a[:1])

    def test_inspect_describes_kernels(self):
        self.assertEqual(str(inspect.signature(self.toolbox.box_blur)), "(x: 'float32[h, w]', radius: 'int32', *, y: 'float32[h, w]' = None)")
        self.assertEqual(str(inspect.signature(self.counting.twice)), "(x: 'float32[n]', *, y: 'float32[n]' = None, n: 'uint32' = None)")
        self.assertEqual(str(inspect.signature(self.toolbox.histogram)), "(image: 'uint8[...]', *, bins: 'int64[256]' = None)")
        self.assertEqual(str(inspect.signature(self.runtime.get_backend("custom_add").add)), "(*arguments)")
        inspect.signature(self.toolbox.add).bind(1, b=2)

    def test_bools_are_scalars(self):
        for value, expected in ((True, 1), (False, 0), (np.True_, 1), (np.bool_(False), 0), (1, 1)):
            self.assertEqual(self.counting.describe(self.a[0], value, "")[0][0], expected)
        with self.assertRaisesRegex(kelp.KelpError, "2 is not a valid bool"):
            self.counting.describe(self.a[0], 2, "")


class Submit(unittest.TestCase):
    """Kernels in flight: futures, asyncio, and the lifetime of arguments."""

    @classmethod
    def setUpClass(cls):
        cls.runtime = rt.Runtime(DIRECTORY)
        cls.toolbox, cls.gate = cls.runtime.get_backend("toolbox"), cls.runtime.get_backend("gate")

    def test_submit_returns_a_future(self):
        total = np.empty((), "f8")
        future = self.toolbox.later_sum.submit(total, np.arange(4.0))
        self.assertIsInstance(future, rt.KernelFuture)
        self.assertIsNone(future.result(60))
        self.assertEqual((float(total), future.done(), future.exception()), (6, True, None))
        called = threading.Event()
        future.add_done_callback(lambda _: called.set())
        self.assertTrue(called.is_set())
        self.assertEqual(self.toolbox.later_sum.submit(values=np.arange(4.0)).result(60), 6)
        self.assertEqual(self.toolbox.add.submit(np.ones(2, "f4"), b=np.ones(2, "f4")).result(60).tolist(), [2, 2])

    def test_submit_returns_before_the_kernel_is_done(self):
        held = [self.gate.wait.submit(np.full(3, i, "f8")) for i in range(20)]
        self.assertFalse(any(future.done() for future in held))
        self.assertFalse(held[0].cancel())  # a kernel cannot be interrupted
        self.assertTrue(held[0].running())
        with self.assertRaises(concurrent.futures.TimeoutError):
            held[0].result(0.01)
        gc.collect()  # the arguments have no other owner
        self.gate.open()
        self.assertEqual([future.result(60) for future in held], [3.0 * i for i in range(20)])

    def test_a_failure_is_raised_by_result(self):
        for kernel, arguments, words in ((self.toolbox.later_sum, [np.array([np.inf])], "the sum is not finite"),
                                         (self.toolbox.later_sum, [np.arange(3)], "expected float64, found int64"),
                                         (self.toolbox.later_sum, [np.zeros(()), np.zeros(2), 3], "3 arguments are given by position"),
                                         (self.toolbox.box_blur, [np.ones((2, 2), "f4"), -1], "radius must not be negative"),
                                         (self.toolbox.add, [3], "no argument for parameter 'b'"),
                                         (self.gate.fails, [np.zeros(2)], "failed at once")):
            future = kernel.submit(*arguments)
            self.assertRegex(str(future.exception(60)), words)
            with self.assertRaises((kelp.KelpError, TypeError)):
                future.result()
        self.assertEqual(self.toolbox.later_sum.submit(np.ones(2)).result(60), 2)  # the sessions are usable

    def test_kernels_can_be_awaited(self):
        async def work():
            first = await self.toolbox.later_sum.submit(np.arange(4.0))
            sums = await asyncio.gather(*(self.toolbox.later_sum.submit(np.full(3, i, "f8")) for i in range(50)))
            blurred = await self.toolbox.box_blur.submit(np.ones((4, 4), "f4"), 1)
            with self.assertRaisesRegex(kelp.KelpError, "not finite"):
                await self.toolbox.later_sum.submit(np.array([np.nan]))
            held = asyncio.ensure_future(asyncio.wrap_future(self.gate.wait.submit(np.ones(2))))
            await asyncio.sleep(0)
            self.assertFalse(held.done())  # the loop runs while the kernel does
            self.gate.open()
            return first, [float(s) for s in sums], blurred.tolist(), float(await held)
        self.assertEqual(asyncio.run(work()), (6, [3.0 * i for i in range(50)], [[1] * 4] * 4, 2))

    def test_a_context_has_one_call_in_flight(self):
        context = self.runtime.get_context()
        held = self.gate.wait.submit(context, np.ones(2))
        with self.assertRaisesRegex(kelp.KelpError, "in use by another call"):
            self.toolbox.later_sum(context, np.ones(2))
        self.assertRegex(str(self.gate.wait.submit(context, np.ones(2)).exception(60)), "in use by another call")
        self.gate.open()
        self.assertEqual(held.result(60), 2)
        self.assertEqual(self.toolbox.later_sum(context, np.ones(3)), 3)

    def test_the_interpreter_waits_for_kernels_at_exit(self):
        code = "import sys, numpy, kelp.runtime as rt\nr = rt.Runtime(sys.argv[1])\n" \
               "r.get_backend('gate').slow.submit(numpy.ones(1 << 20)).add_done_callback(lambda f: print(f.result()))\n"
        ended = subprocess.run([sys.executable, "-c", code, DIRECTORY], capture_output=True, text=True, check=True, timeout=300)
        self.assertEqual(ended.stdout, f"{float(1 << 20)}\n")


class Typed(unittest.TestCase):
    """Signatures that follow from the types of C++ functions."""

    @classmethod
    def setUpClass(cls):
        cls.typed = rt.Runtime(DIRECTORY).get_backend("typed_class")

    def test_signatures_follow_from_types(self):
        self.assertEqual({name: getattr(self.typed, name).signature for name in self.typed.kernels}, {
            "scale": "out y: float32[...s], x: float32[...s], factor: float32",
            "describe": "out y: any[2], x: any[rows, columns]",
            "scalars": "out a0: float64[...], a1: bool, a2: int32, a3: uint32, a4: int64, a5: uint64, a6: float64, a7: string, a8: string",
            "fail": "kind: int32", "nothing": "", "increment": "inout x: uint8[...]"})
        self.assertEqual((self.typed.scale.summary, self.typed.untyped.parameters), ("multiplies", None))
        self.assertEqual(self.typed.get_supported_devices(), ["cpu"])

    def test_arguments_are_checked_and_converted(self):
        x = np.arange(6, dtype="f4").reshape(2, 3)
        self.assertEqual(self.typed.scale(x, 0.5).tolist(), (x / 2).tolist())
        sizes = np.zeros(2, "i8")
        self.typed.describe(sizes, x)
        self.assertEqual(sizes.tolist(), [2, 3])
        y = np.zeros(1)
        self.typed.scalars(y, True, -2, 3, -4, 5, 0.5, "four", "0.25")
        self.assertEqual(y[0], 1 - 2 + 3 - 4 + 5 + 0.5 + 4 + 0.25)
        bytes_ = np.array([1, 255], "u1")
        self.typed.increment(bytes_)
        self.assertEqual(bytes_.tolist(), [2, 0])
        self.typed.nothing()
        for words, call in (("expected float32, found float64", lambda: self.typed.scale(x.astype("f8"), 1)),
                            ("argument 'x' has shape", lambda: self.typed.scale(np.empty((3, 2), "f4"), x, 1)),
                            ("'a3' is out of range", lambda: self.typed.scalars(y, True, 0, -1, 0, 0, 0, "", "")),
                            ("y must be int64", lambda: self.typed.describe(np.zeros(2), x))):
            with self.assertRaisesRegex(kelp.KelpError, words):
                call()

    def test_exceptions_are_failures(self):
        for kind, code, words in ((0, kelp.Code.OUT_OF_RANGE, "there is no such bin"), (1, kelp.Code.RESOURCE_EXHAUSTED, "out of memory"),
                                  (2, kelp.Code.INTERNAL, "the disk is full"), (3, kelp.Code.INTERNAL, "no std::exception")):
            with self.assertRaisesRegex(kelp.KelpError, words) as caught:
                self.typed.fail(kind)
            self.assertEqual(caught.exception.code, code)
        self.typed.fail(4)

    def test_wrong_names_are_reported_when_the_library_is_loaded(self):
        for names, words in (("y, x", "names 2 parameters: the function has 3"), ("y[h w], x, factor", "is malformed at character"),
                             ("y[", "names 1 parameters")):
            ended = subprocess.run([sys.executable, "-c", "import sys, kelp.runtime as rt; rt.Runtime(sys.argv[1]).get_backend('typed_class')",
                                    DIRECTORY], env={**os.environ, "TYPED_CLASS_NAMES": names}, capture_output=True, text=True, check=False)
            self.assertIn(words, ended.stderr)


class Foreign:
    """An array of another library: DLPack only, and it records how it was asked."""

    def __init__(self, tensor, device=None):
        self.tensor, self.asked, self.device = tensor, [], device

    def __dlpack__(self, *, max_version=None, **keywords):
        self.asked.append(keywords)
        return self.tensor.__dlpack__(max_version=max_version)

    def __dlpack_device__(self):
        return self.device or self.tensor.__dlpack_device__()


class Devices(unittest.TestCase):
    """Tensors on a device are described by memory of the CPU: Kelp passes them on and does not read them."""

    def setUp(self):
        self.runtime, self.called = rt.Runtime(""), []
        self.function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(lambda *words: self.called.append(words))
        mine = self.runtime.add_backend("mine")
        mine.register("note", ctypes.cast(self.function, ctypes.c_void_p).value, "inout y: float32[n], x: float32[n]", with_context=True)
        mine.register("bare", ctypes.cast(self.function, ctypes.c_void_p).value, with_context=True)
        self.mine, self.x = mine, np.arange(3, dtype="f4")

    def on(self, device):
        return rt.DLTensor(data=self.x.ctypes.data, shape=(3,), dtype="float32", device=device, owner=self.x)

    def test_an_address_on_a_device_is_described(self):
        tensor = self.on("cuda:1")
        self.assertEqual((tensor.device, tensor.__dlpack_device__(), tensor.data), ("cuda:1", (2, 1), self.x.ctypes.data))
        self.assertEqual((self.on("cuda").device, self.on("cpu").device, self.on("cpu:0").device), ("cuda:0", "cpu", "cpu"))
        for call in (tensor.numpy, lambda: memoryview(tensor), lambda: np.asarray(tensor)):
            with self.assertRaises((kelp.KelpError, BufferError, TypeError)):
                call()
        for device in ("gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:99999999999", 3, ""):
            with self.assertRaisesRegex(kelp.KelpError, "unknown device"):
                self.on(device)
        with self.assertRaisesRegex(kelp.KelpError, "is on device cpu: expected cuda:0"):
            rt.DLTensor(self.x, device="cuda:0")
        with self.assertRaisesRegex(kelp.KelpError, "on device cuda:1: copy it to the CPU"):
            kelp.InferenceSession(DIGITS).run(None, {"image": tensor})

    def test_a_context_of_the_device_is_needed(self):
        tensor = self.on("cuda:1")
        for call in (lambda: self.mine.note(tensor, tensor), lambda: self.mine.bare(tensor, tensor),
                     lambda: self.mine.note(self.runtime.get_context("cuda:0"), tensor, tensor)):
            with self.assertRaisesRegex(kelp.KelpError, r'is on device cuda:1, and the call is for device .*get_context\(device="cuda:1"\)'):
                call()
        context = self.runtime.get_context("cuda:1", stream=4096)
        with self.assertRaisesRegex(kelp.KelpError, "is on device cpu, and the call is for device cuda:1"):
            self.mine.note(context, tensor, self.x)
        self.assertEqual(self.called, [])
        self.mine.note(context, tensor, tensor)
        self.mine.bare(context, tensor, tensor)
        self.assertEqual((context.device, self.called), ("cuda:1", 2 * [(context.address, tensor.pointer, tensor.pointer)]))
        with self.assertRaisesRegex(kelp.KelpError, "unknown device"):
            self.runtime.get_context("gpu")

    def test_objects_with_dlpack_are_passed_in_place(self):
        cpu, gpu = Foreign(rt.DLTensor(self.x)), Foreign(self.on("cuda:1"))
        seen = []
        check = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)(lambda y, x: seen.append(y[0]))
        self.mine.register("data", ctypes.cast(check, ctypes.c_void_p).value, "inout y: float32[n], x: float32[n]")
        self.mine.data(cpu, self.x)
        self.mine.data(self.runtime.get_context("cuda:1"), gpu, gpu)
        self.mine.data(self.runtime.get_context("cuda:1", stream=4096), gpu, gpu)
        self.assertEqual(seen, 3 * [self.x.ctypes.data])
        self.assertEqual(cpu.asked, [{}])
        self.assertEqual(gpu.asked, 2 * [{"stream": 1}] + 2 * [{"stream": 4096}])  # 1 is CUDA's default stream

    def test_an_object_on_another_device_is_rejected_before_it_is_exported(self):
        gpu = Foreign(self.on("cuda:1"))
        with self.assertRaisesRegex(kelp.KelpError, "is on device cuda:1, and the call is for device cpu"):
            self.mine.note(gpu, self.x)
        self.assertEqual(gpu.asked, [])
        for device in (3, (1, 2, 3), ("a", 0)):
            with self.assertRaises(TypeError):
                self.mine.note(Foreign(self.on("cpu"), device), self.x)

    def test_outputs_on_a_device_are_not_allocated(self):
        address = ctypes.cast(self.function, ctypes.c_void_p).value
        made = self.mine.register("made", address, "out y: float32[n], x: float32[n]", with_context=True)
        with self.assertRaisesRegex(kelp.KelpError, "allocates outputs on the CPU only"):
            made(self.runtime.get_context("cuda:1"), self.on("cuda:1"))

    def test_a_library_rejects_devices_that_it_does_not_support(self):
        runtime = rt.Runtime(DIRECTORY)
        with self.assertRaisesRegex(kelp.KelpError, "the library supports only cpu"):
            runtime.get_backend("toolbox").sort(runtime.get_context("cuda"), rt.DLTensor(4096, (1,), "int64", "cuda"))


class ReadOnly(unittest.TestCase):
    """A kernel without a signature may write to its arguments."""

    def test_read_only_memory_needs_permission(self):
        runtime = rt.Runtime(DIRECTORY)
        add = runtime.get_backend("custom_add").add
        a, y = np.ones(2, "f4"), np.zeros(2, "f4")
        a.flags.writeable = False
        for argument in (a, rt.DLTensor(a), memoryview(a), Foreign(rt.DLTensor(a)), b"12345678"):
            with self.assertRaisesRegex(kelp.KelpError, r"is read-only, and the kernel has no signature.*DLTensor\(array, writable=False\)"):
                add(y, argument, a, 2)
        self.assertEqual(y.tolist(), [0, 0])
        allowed = rt.DLTensor(a, writable=False)
        add(y, allowed, allowed, 2)
        self.assertEqual(y.tolist(), [2, 2])
        with self.assertRaisesRegex(kelp.KelpError, "writable=True is not possible"):
            rt.DLTensor(a, writable=True)
        self.assertFalse(rt.DLTensor(y, writable=True).read_only)

    def test_a_signature_decides_about_read_only_memory(self):
        toolbox = rt.Runtime(DIRECTORY).get_backend("toolbox")
        y = np.zeros(2, "f4")
        with self.assertRaisesRegex(kelp.KelpError, "'y' is read-only, but the kernel writes to it"):
            toolbox.add(rt.DLTensor(y, writable=False), y, y)
        toolbox.add(y, rt.DLTensor(y, writable=False), y)


class Operators(unittest.TestCase):
    """Sessions find the library of a domain in the directories of the environment."""

    MODEL = os.path.join(ROOT, "tests", "data", "models", "toolbox_ops.onnx")

    def test_a_session_uses_kernels_as_operators(self):
        kept = {key: value for key, value in os.environ.items() if not key.endswith("_BACKEND_PATH")}
        with mock.patch.dict(os.environ, kept, clear=True):
            with self.assertRaisesRegex(kelp.KelpError, "toolbox::add version 1, node 'y'"):
                kelp.InferenceSession(self.MODEL)
            os.environ["KELP_BACKEND_PATH"] = "/nowhere"
            with self.assertRaisesRegex(kelp.KelpError, "/nowhere/libtoolbox.so: no such file"):
                kelp.InferenceSession(self.MODEL)
            os.environ["KELP_BACKEND_PATH"] = DIRECTORY
            x = np.full((3, 4), 2, "f4")
            y, = kelp.InferenceSession(self.MODEL).run(None, {"x": x})
        self.assertEqual(y.tolist(), (2 * x).tolist())


class ByAddress(unittest.TestCase):
    def test_a_ctypes_function_is_a_kernel(self):
        mine = rt.Runtime("").add_backend("mine")
        called = []
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_double)(lambda *words: called.append(words))
        address = ctypes.cast(function, ctypes.c_void_p).value
        kernel = mine.register("note", address, "x: float32[n], k: int32, f: float64")
        x = np.zeros(3, "f4")
        tensor = rt.DLTensor(x)
        mine.note(tensor, 7, 2)
        kernel(tensor, np.int64(-1), np.float32(0.5))
        self.assertEqual(called, [(tensor.pointer, 7, 2.0), (tensor.pointer, -1, 0.5)])
        with self.assertRaises(kelp.KelpError):
            mine.register("wrong", address, "x: nothing")
        untyped = mine.register("untyped", address)
        self.assertEqual((untyped.signature, kernel.address), ("", address))

    def test_a_numba_function_is_a_kernel(self):
        from numba import carray, cfunc, types

        @cfunc(types.void(types.CPointer(types.float64), types.int64))
        def double(values, n):
            for i in range(n):
                values[i] *= 2

        @cfunc(types.void(types.CPointer(types.float32), types.CPointer(types.float32), types.int64, types.int64, types.float32))
        def threshold(y, x, h, w, limit):
            source, target = carray(x, (h, w)), carray(y, (h, w))
            for row in range(h):
                for column in range(w):
                    target[row, column] = 1 if source[row, column] > limit else 0
        mine = rt.Runtime("").add_backend("jit")
        mine.register("double", double, "inout values: *float64[n], n: int64")
        x = np.arange(4.0)
        mine.double(x, 4)
        self.assertEqual(x.tolist(), [0, 2, 4, 6])
        mine.register("threshold", threshold, "out y: *float32[h, w], x: *float32[h, w], h: int64, w: int64, limit: float32")
        picture = np.random.default_rng(3).random((5, 7), "f4")
        marks = np.empty_like(picture)
        mine.threshold(marks, picture, 5, 7, 0.5)
        self.assertEqual(marks.tolist(), (picture > 0.5).astype("f4").tolist())
        with self.assertRaises(kelp.KelpError) as caught:  # the function is not called with a wrong size
            mine.threshold(marks, picture, 5, 8, 0.5)
        self.assertIn("'w'", str(caught.exception))

    def test_a_numba_function_reads_descriptions(self):
        from numba import carray, cfunc, types
        from numba.extending import intrinsic

        @intrinsic
        def pointer(context, address):
            def code(cg, builder, signature, arguments):
                return builder.inttoptr(arguments[0], cg.get_value_type(types.voidptr))
            return types.voidptr(address), code

        @cfunc(types.void(types.CPointer(types.int64), types.int64))
        def double(tensor, n):  # the first member of a DLTensor is its data
            values = carray(pointer(tensor[0]), n, np.float64)
            for i in range(n):
                values[i] *= 2
        mine = rt.Runtime("").add_backend("jit")
        mine.register("double", double, "inout x: float64[n], n: int64")
        x = np.arange(4.0)
        mine.double(x, 4)
        self.assertEqual(x.tolist(), [0, 2, 4, 6])

    def test_the_comparison_runs(self):
        ended = subprocess.run([sys.executable, f"{ROOT}/bench/python_calls.py", "--kernels", DIRECTORY, "--rounds", "3", "--calls", "20"],
                               stdout=subprocess.PIPE, text=True, check=True)
        for name in ("kelp, checked", "kelp, untyped", "ctypes", "cffi", "tvm-ffi", "numpy ufunc"):
            self.assertRegex(ended.stdout, rf"(?m)^{name} +\d+ ns$")


if __name__ == "__main__":
    main()
