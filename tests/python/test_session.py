#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests sessions of the Python package: outputs compared with ONNX Runtime, every element type, memory without copies, and errors."""
import array
import gc
import json
import os
import signal
import threading
import time
import unittest
import weakref

import kelp
import ml_dtypes
import numpy as np
import onnxruntime
from onnx import TensorProto as T, helper
from support import DIGITS, Interrupt, MODELS, ROOT, endless, identity, main, model


class Sessions(unittest.TestCase):
    def test_digits_are_classified_as_by_onnx_runtime(self):
        image = np.load(ROOT + "/examples/requests/digits.npy")
        ours, theirs = kelp.InferenceSession(DIGITS), onnxruntime.InferenceSession(DIGITS)
        for a, b in zip(ours.run(None, {"image": image}), theirs.run(None, {"image": image})):
            self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)

    def test_inputs_and_outputs_are_described_as_by_onnx_runtime(self):
        for path in (DIGITS, MODELS + "/string_identity.onnx", MODELS + "/dynamic_reshape.onnx", MODELS + "/mlp_f32.onnx"):
            ours, theirs = kelp.InferenceSession(path), onnxruntime.InferenceSession(path)
            for a, b in zip(ours.get_inputs() + ours.get_outputs(), theirs.get_inputs() + theirs.get_outputs(), strict=True):
                self.assertEqual((a.name, a.type), (b.name, b.type))
                if a.shape != b.shape:
                    # if ONNX Runtime has no name, Kelp may have inferred a size
                    self.assertEqual(len(a.shape), len(b.shape), (path, a, b.shape))
            self.assertEqual(ours.get_modelmeta().graph_name, theirs.get_modelmeta().graph_name)
            self.assertEqual(ours.get_modelmeta().custom_metadata_map, theirs.get_modelmeta().custom_metadata_map)

    def test_a_model_may_be_bytes_and_outputs_be_selected(self):
        with open(DIGITS, "rb") as file:
            session = kelp.InferenceSession(file.read(), providers=["CPUExecutionProvider"])
        gc.collect()
        image = np.load(ROOT + "/examples/requests/digits.npy")
        digit, = session.run(["digit"], {"image": image})
        both = session.run(["digit", "probabilities"], {"image": image})
        self.assertEqual(digit.tolist(), both[0].tolist())
        self.assertEqual(both[1].argmax(axis=-1).ravel().tolist(), digit.ravel().tolist())
        self.assertEqual(len(session.run(output_names=None, input_feed={"image": image}, run_options=kelp.RunOptions())), 2)
        with open(ROOT + "/examples/requests/digits.expected.json", encoding="utf-8") as file:
            expected = {o["name"]: o["data"] for o in json.load(file)["outputs"]}
        self.assertEqual(digit.ravel().tolist(), expected["digit"])

    def test_every_element_type_is_transferred(self):
        for onnx_type, dtype in ((T.FLOAT, "f4"), (T.DOUBLE, "f8"), (T.FLOAT16, "f2"), (T.INT8, "i1"), (T.INT16, "i2"),
                                 (T.INT32, "i4"), (T.INT64, "i8"), (T.UINT8, "u1"), (T.UINT16, "u2"), (T.UINT32, "u4"),
                                 (T.UINT64, "u8"), (T.BOOL, "?"), (T.COMPLEX64, "c8"), (T.COMPLEX128, "c16"),
                                 (T.BFLOAT16, ml_dtypes.bfloat16), (T.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
                                 (T.FLOAT8E5M2, ml_dtypes.float8_e5m2), (T.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz),
                                 (T.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz), (T.INT4, ml_dtypes.int4),
                                 (T.UINT4, ml_dtypes.uint4)):
            x = np.array([0, 1, 2, 1, 0], dtype=dtype)
            with self.subTest(dtype=x.dtype):
                y, = kelp.InferenceSession(identity(onnx_type)).run(None, {"x": x})
                self.assertEqual(y.dtype, x.dtype)
                self.assertEqual(y.tolist(), x.tolist())

    def test_negative_int4_values_are_unpacked(self):
        x = np.array([[-8, -1, 7], [3, -5, 0]], dtype=ml_dtypes.int4)
        y, = kelp.InferenceSession(identity(T.INT4, ("a", "b"))).run(None, {"x": x})
        self.assertEqual(y.astype(int).tolist(), x.astype(int).tolist())

    def test_strings_are_transferred(self):
        session = kelp.InferenceSession(identity(T.STRING, ("a", "b")))
        words = np.array([["Kelp", ""], ["Größe ✓", "a\0b"]], dtype=object)
        y, = session.run(None, {"x": words})
        self.assertEqual((y.dtype, y.tolist()), (np.dtype("O"), words.tolist()))
        for given in (words.astype(str)[:, :1], np.array([[b"bytes", b"too"]]), [["list", "of"], ["lists", "!"]]):
            y, = session.run(None, {"x": given})
            expected = [[i.decode() if isinstance(i, bytes) else i for i in row] for row in np.asarray(given).tolist()]
            self.assertEqual(y.tolist(), expected)
        with self.assertRaisesRegex(kelp.KelpError, "element 1 of a string array has type 'int'"):
            session.run(None, {"x": np.array([["a", 3]], dtype=object)})

    def test_output_shapes_may_depend_on_values(self):
        session = kelp.InferenceSession(model("NonZero", [("x", T.FLOAT, ("n",))], [("y", T.INT64, (1, "m"))]))
        for values in ([0, 1, 0, 2], [0], [], [1, 1, 1]):
            x = np.array(values, dtype="f4")
            self.assertEqual(session.run(None, {"x": x})[0].tolist(), [np.flatnonzero(x).tolist()])
        for values in ([0, 0, 1], [1, 1, 1], [0, 1, 0], [0, 0, 0], [1, 1, 0]):  # one shape of inputs, several shapes of outputs
            x = np.array(values, dtype="f4")
            self.assertEqual(session.run(None, {"x": x})[0].tolist(), [np.flatnonzero(x).tolist()])

    def test_scalars_lists_and_empty_arrays_are_inputs(self):
        add = kelp.InferenceSession(model("Add", [("a", T.FLOAT, None), ("b", T.FLOAT, None)], [("c", T.FLOAT, None)]))
        self.assertEqual(add.run(None, {"a": 2, "b": [1, 2]})[0].tolist(), [3, 4])
        zero_rank = add.run(None, {"a": np.float32(1), "b": np.array(2, "f4")})[0]
        self.assertEqual((zero_rank.shape, float(zero_rank)), ((), 3.0))
        self.assertEqual(add.run(None, {"a": np.zeros((0, 3), "f4"), "b": np.zeros(3, "f4")})[0].shape, (0, 3))

    def test_options_are_read_and_written(self):
        options = kelp.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = kelp.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.add_session_config_entry("session.something", "1")
        plain, fused = kelp.InferenceSession(DIGITS, options), kelp.InferenceSession(DIGITS)
        self.assertGreater(plain.get_modelmeta().planned_node_count, fused.get_modelmeta().planned_node_count)
        self.assertEqual(plain.get_providers(), ["CPUExecutionProvider"])
        with self.assertWarnsRegex(UserWarning, "provider 'CUDAExecutionProvider' is not available: the model runs on the CPU"):
            kelp.InferenceSession(DIGITS, providers=["CUDAExecutionProvider", ("CPUExecutionProvider", {})])

    def test_the_precision_is_an_option(self):
        options = kelp.SessionOptions()
        images = np.random.default_rng(1).random((4, 1, 8, 8), dtype="f4")
        exact = kelp.InferenceSession(DIGITS, options).run(["probabilities"], {"image": images})[0]
        options.precision = "bf16"
        rounded = kelp.InferenceSession(DIGITS, options).run(["probabilities"], {"image": images})[0]
        self.assertLess(np.abs(exact - rounded).max(), 2e-2)
        self.assertGreater(np.abs(exact - rounded).max(), 0)
        options.precision = "fp8"
        with self.assertRaisesRegex(kelp.KelpError, "unknown precision 'fp8': expected f32 or bf16"):
            kelp.InferenceSession(DIGITS, options)

    def test_a_session_runs_in_several_threads(self):
        session = kelp.InferenceSession(DIGITS)
        images = np.random.default_rng(1).random((32, 1, 1, 8, 8), dtype="f4")
        expected = [session.run(None, {"image": image})[0] for image in images]
        wrong = []

        def work(begin):
            for i in range(200):
                k = (begin + i) % 32
                if not np.array_equal(session.run(None, {"image": images[k]})[0], expected[k]):
                    wrong.append(k)
        threads = [threading.Thread(target=work, args=(8 * t,)) for t in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_nothing_leaks(self):
        x = np.zeros(4, "f4")
        session = kelp.InferenceSession(identity(T.FLOAT))
        for _ in range(3):
            y, = session.run(None, {"x": x})
            self.assertIsNot(y, x)
        class Kept(np.ndarray):
            pass
        kept = np.ones(4, "f4").view(Kept)
        ref = weakref.ref(kept)
        session.run(None, {"x": kept})
        del kept
        gc.collect()
        self.assertIsNone(ref())


HOURS = {"rounds": np.array(1 << 40)}


class Stopping(unittest.TestCase):
    def setUp(self):
        self.session = kelp.InferenceSession(endless())

    def test_an_uninterrupted_run_counts(self):
        self.assertEqual(self.session.run(None, {"rounds": np.array(1000)})[0].tolist(), 1000)

    def test_ctrl_c_ends_a_run(self):
        for _ in range(2):
            with Interrupt(self):
                self.session.run(None, HOURS)
        with Interrupt(self):
            self.session.run_into({"count": np.array(0)}, HOURS)
        self.test_an_uninterrupted_run_counts()

    def test_a_signal_handler_may_use_the_session(self):
        """The handler runs while the model runs, which then continues; the handler may use the session."""
        seen = []
        before = signal.signal(signal.SIGALRM, lambda *_: (seen.append(self.session.run(None, {"rounds": np.array(3)})[0].tolist()),
                                                           setattr(options, "terminate", len(seen) == 3)))
        options = kelp.RunOptions()
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        try:
            with self.assertRaises(kelp.KelpError) as caught:
                self.session.run(None, HOURS, options)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.assertEqual((caught.exception.code, seen[:3]), (kelp.Code.CANCELLED, [3, 3, 3]))

    def test_terminate_ends_a_run(self):
        options = kelp.RunOptions()
        options.logid = "the long one"
        self.assertEqual(self.session.run(None, {"rounds": np.array(5)}, options)[0].tolist(), 5)
        caught = []

        def work():
            try:
                self.session.run(None, HOURS, run_options=options)
            except kelp.KelpError as error:
                caught.append(error)
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.05)
        options.terminate = True
        for thread in threads:
            thread.join(60)
        self.assertEqual([error.code for error in caught], [kelp.Code.CANCELLED] * 3)
        self.assertIn("the run 'the long one' was cancelled by RunOptions.terminate", str(caught[0]))
        with self.assertRaisesRegex(kelp.KelpError, "RunOptions.terminate"):
            self.session.run(None, {"rounds": np.array(5)}, options)
        options.terminate = False
        self.assertEqual(self.session.run(None, {"rounds": np.array(5)}, options)[0].tolist(), 5)

    def test_the_severity_selects_what_is_logged(self):
        options = kelp.RunOptions()
        options.logid = "seven"
        digits = kelp.InferenceSession(DIGITS)
        feed = {"image": np.zeros((1, 1, 8, 8), "f4")}
        with self.assertLogs("kelp", "DEBUG") as logged:
            digits.run(None, feed, options)  # severity 2: nothing is logged
            options.log_severity_level = 1
            digits.run(None, feed, options)
        self.assertEqual(len(logged.output), 1)
        self.assertRegex(logged.output[0], r"^INFO:kelp:run 'seven': \d+ operators took [\d.]+ ms$")
        options.log_severity_level = 0
        with self.assertLogs("kelp", "DEBUG") as logged:
            digits.run(None, feed, options)
        self.assertGreater(len(logged.output), 3)
        self.assertRegex(logged.output[0], r"^DEBUG:kelp:run 'seven': \w+ '.*' took [\d.]+ ms$")

    def test_run_options_of_a_wrong_type_are_rejected(self):
        for wrong in ({}, "fast", onnxruntime.RunOptions()):
            with self.assertRaisesRegex(TypeError, "run_options: expected a kelp.RunOptions or None, found "):
                self.session.run(None, {"rounds": np.array(1)}, wrong)

    def test_a_session_works_after_a_fork(self):
        """The child creates its own thread that checks for signals."""
        self.test_an_uninterrupted_run_counts()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                fresh = kelp.InferenceSession(endless())
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
                fresh.run(None, HOURS)
            except KeyboardInterrupt:
                code = 0
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


class Mistakes(unittest.TestCase):
    def test_arguments_of_a_wrong_type_are_rejected(self):
        session, feed = kelp.InferenceSession(DIGITS), {"image": np.zeros((1, 1, 8, 8), "f4")}
        for wrong in (5, None, ["model.onnx"]):
            with self.assertRaisesRegex(TypeError, "path_or_bytes: expected a path or bytes, found "):
                kelp.InferenceSession(wrong)
        with self.assertRaisesRegex(TypeError, "sess_options: expected a kelp.SessionOptions or None, found 'dict'"):
            kelp.InferenceSession(DIGITS, {})
        with self.assertRaisesRegex(TypeError, "output_names: expected a list of str, or None for all, found the str 'digit'"):
            session.run("digit", feed)
        with self.assertRaisesRegex(kelp.KelpError, "missing input 'image': expected float32 .*; the model has no input 'img'"):
            session.run(None, {"img": feed["image"]})
        with open(DIGITS, "rb") as file:
            self.assertEqual(len(kelp.InferenceSession(bytearray(file.read())).get_inputs()), 1)


class Memory(unittest.TestCase):
    """Compares addresses to show that nothing is copied."""

    def test_outputs_are_written_in_place(self):
        session = kelp.InferenceSession(model("Relu", [("x", T.FLOAT, (2, 3))], [("y", T.FLOAT, (2, 3))]))
        y = np.zeros((2, 3), "f4")
        address = y.ctypes.data
        result, = session.run_into({"y": y}, {"x": np.full((2, 3), 5, "f4")})
        self.assertIs(result, y)
        self.assertEqual((y.ctypes.data, y.tolist()), (address, [[5] * 3] * 2))
        binding = session.io_binding()
        x = np.full((2, 3), -1, "f4")
        binding.bind_cpu_input("x", x)
        binding.bind_output("y", "cpu", 0, np.float32, (2, 3), y.ctypes.data)
        session.run_with_iobinding(binding)
        self.assertEqual(y.tolist(), [[0] * 3] * 2)
        x[:] = 7
        session.run_with_iobinding(binding)
        self.assertEqual(y.tolist(), [[7] * 3] * 2)
        copied, = binding.copy_outputs_to_cpu()
        y[:] = 0
        self.assertEqual(copied.tolist(), [[7] * 3] * 2)

    def graph(self, nodes, inputs, outputs):
        made = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs], [helper.make_tensor_value_info(*o) for o in outputs])
        imports = [helper.make_opsetid("", 24), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(made, opset_imports=imports, ir_version=11).SerializeToString()

    def check_cache(self, made, feeds, cache, caches):
        """Runs steps with `caches` (inputs and outputs by name) bound to the same memory, and compares with steps that copy them."""
        copying, sharing = kelp.InferenceSession(made), kelp.InferenceSession(made)
        old, shared = ({name: cache.copy() for name in caches} for _ in range(2))
        addresses = [array.ctypes.data for array in shared.values()]
        for feed in feeds:
            y, *new = copying.run(["y", *caches.values()], {**feed, **old})
            old = dict(zip(caches, new))
            binding = sharing.io_binding()
            for name, array in feed.items():
                binding.bind_cpu_input(name, array)
            for name, output in caches.items():
                binding.bind_cpu_input(name, shared[name])
                binding.bind_output(output, "cpu", 0, np.float32, cache.shape, shared[name].ctypes.data)
            binding.bind_output("y")
            sharing.run_with_iobinding(binding)
            np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[-1], y)
        self.assertEqual([array.ctypes.data for array in shared.values()], addresses)
        for name, rows in old.items():
            np.testing.assert_array_equal(shared[name], rows)

    def test_group_query_attention_appends_to_a_cache_in_place(self):
        random = np.random.default_rng(3)
        sizes = (("q", T.FLOAT, ("b", "n", 32)), ("k", T.FLOAT, ("b", "n", 16)), ("v", T.FLOAT, ("b", "n", 16)),
                 ("past_k", T.FLOAT, ("b", 2, "p", 8)), ("past_v", T.FLOAT, ("b", 2, "p", 8)), ("lasts", T.INT32, ("b",)), ("total", T.INT32, ()))
        outputs = (("y", T.FLOAT, ("b", "n", 32)), ("k_out", T.FLOAT, ("b", 2, "p", 8)), ("v_out", T.FLOAT, ("b", 2, "p", 8)))
        node = helper.make_node("GroupQueryAttention", [i[0] for i in sizes], [o[0] for o in outputs], domain="com.microsoft", num_heads=4,
                                kv_num_heads=2)
        made = self.graph([node], sizes, outputs)
        feeds, count = [], 0
        for fresh in (5, 1, 1, 3):  # of both sequences; the second one is two tokens shorter
            count += fresh
            feeds.append({name: random.standard_normal((2, fresh, width)).astype("f4") for name, width in (("q", 32), ("k", 16), ("v", 16))})
            feeds[-1].update(lasts=np.array([count - 1, count - 3], np.int32), total=np.array(count, np.int32))
        self.check_cache(made, feeds, np.zeros((2, 2, 12, 8), "f4"), {"past_k": "k_out", "past_v": "v_out"})

    def test_tensor_scatter_writes_to_a_cache_in_place(self):
        random = np.random.default_rng(4)
        nodes = [helper.make_node("TensorScatter", ["past", "x", "at"], ["present"]),
                 helper.make_node("Attention", ["q", "present", "present", "", "", "", "counts"], ["y"])]
        inputs = (("past", T.FLOAT, (2, 3, 16, 8)), ("x", T.FLOAT, (2, 3, 1, 8)), ("at", T.INT64, (2,)), ("q", T.FLOAT, (2, 3, 1, 8)),
                  ("counts", T.INT64, (2,)))
        outputs = (("y", T.FLOAT, (2, 3, 1, 8)), ("present", T.FLOAT, (2, 3, 16, 8)))
        made = self.graph(nodes, inputs, outputs)
        feeds = [{"x": random.standard_normal((2, 3, 1, 8)).astype("f4"), "q": random.standard_normal((2, 3, 1, 8)).astype("f4"),
                  "at": np.array([step, step + 2]), "counts": np.array([step + 1, step + 3])} for step in range(4)]
        self.check_cache(made, feeds, random.standard_normal((2, 3, 16, 8)).astype("f4"), {"past": "present"})

    def test_unwritable_outputs_are_rejected(self):
        session = kelp.InferenceSession(model("Relu", [("x", T.FLOAT, (2, 3))], [("y", T.FLOAT, (2, 3))]))
        feed = {"x": np.zeros((2, 3), "f4")}
        read_only = np.zeros((2, 3), "f4")
        read_only.flags.writeable = False
        for given, words in ((read_only, "read-only"), (np.zeros((3, 2), "f4").T, "not contiguous"),
                             (np.zeros((2, 3), "f8"), "output 'y' has type float32.* has type float64"),
                             (np.zeros((3, 2), "f4"), r"has shape \[2,3\].* has shape \[3,2\]"), ([1, 2], "not an array")):
            with self.assertRaisesRegex(kelp.KelpError, words):
                session.run_into({"y": given}, feed)

    def test_inputs_of_many_libraries_are_accepted(self):
        session = kelp.InferenceSession(model("Neg", [("x", T.FLOAT, ("a", "b"))], [("y", T.FLOAT, ("a", "b"))]))
        x = np.arange(6, dtype="f4").reshape(2, 3)
        read_only = x.copy()
        read_only.flags.writeable = False
        for given in (x, read_only, np.asfortranarray(x), x[::-1], x[:, ::2], kelp.DLTensor(x), kelp.DLTensor(x[:, ::2]),
                      memoryview(x), memoryview(x)[::-1], LegacyProducer(x), kelp.DLTensor(read_only)):
            y, = session.run(None, {"x": given})
            self.assertEqual(y.tolist(), (-np.asarray(getattr(given, "values", given))).tolist())
        y, = kelp.InferenceSession(identity(T.DOUBLE)).run(None, {"x": array.array("d", [1, 2])})
        self.assertEqual(y.tolist(), [1, 2])
        with self.assertRaisesRegex(kelp.KelpError, "foreign byte order"):
            session.run(None, {"x": x.astype(">f4")})

    def test_arrays_are_exchanged_by_dlpack(self):
        x = np.arange(12, dtype="f4").reshape(3, 4)[:, 1:3]
        t = kelp.DLTensor(x)
        self.assertEqual((t.data, t.shape, t.strides, t.dtype, t.device, t.ndim, t.read_only),
                         (x.ctypes.data, (3, 2), (4, 1), "float32", "cpu", 2, False))
        for back in (np.from_dlpack(t), np.asarray(t), t.numpy(), kelp.DLTensor(t.__dlpack__()).numpy(),
                     kelp.DLTensor(t.__dlpack__(max_version=(1, 1))).numpy()):
            self.assertEqual(back.ctypes.data, x.ctypes.data)
            self.assertEqual(back.tolist(), x.tolist())
        self.assertIn('"dltensor"', repr(t.__dlpack__()))
        self.assertIn('"dltensor_versioned"', repr(t.__dlpack__(max_version=(1, 0))))
        self.assertEqual(t.__dlpack_device__(), (1, 0))
        view = memoryview(t)
        self.assertEqual((view.shape, view.strides, view.format, view.readonly), ((3, 2), (16, 4), "f", False))

    def test_capsules_are_used_once(self):
        t = kelp.DLTensor(np.zeros(3))
        capsule = t.__dlpack__()
        kelp.DLTensor(capsule)
        with self.assertRaisesRegex(kelp.KelpError, "a capsule can be used once"):
            kelp.DLTensor(capsule)

    def test_a_capsule_keeps_its_memory_until_it_is_freed(self):
        x = np.zeros(5).view(type("A", (np.ndarray,), {}))
        ref = weakref.ref(x)
        y = np.from_dlpack(kelp.DLTensor(x))
        capsule = kelp.DLTensor(x).__dlpack__()
        del x
        gc.collect()
        self.assertIsNotNone(ref())
        del y, capsule
        gc.collect()
        self.assertIsNone(ref())

    def test_a_read_only_array_stays_read_only(self):
        x = np.zeros(3)
        x.flags.writeable = False
        t = kelp.DLTensor(x)
        self.assertTrue(t.read_only)
        self.assertFalse(t.numpy().flags.writeable)
        self.assertFalse(np.from_dlpack(t).flags.writeable)
        with self.assertRaisesRegex(BufferError, "read-only"):
            t.__dlpack__()

    def test_buffers_are_bound_by_address(self):
        a = np.arange(6, dtype="f4")
        t = kelp.DLTensor(data=a.ctypes.data, shape=(3,), dtype=a.dtype, device="cpu", strides=(2,), owner=a)
        self.assertEqual(np.asarray(t).tolist(), [0, 2, 4])
        self.assertEqual(kelp.DLTensor(a.ctypes.data, (6,), "FP32").dtype, "float32")
        self.assertEqual(kelp.DLTensor(a.ctypes.data, (6,), np.float32).dtype, "float32")
        for arguments, words in (((0, (2,), "float32"), "address 0"), ((8, (-1,), "float32"), "-1"), ((8,), "requires shape and dtype"),
                                 ((8, (1,), "float32", "gpu"), "unknown device 'gpu'"),
                                 ((8, (1,) * 17, "float32"), "at most 16")):
            with self.assertRaisesRegex(kelp.KelpError, words):
                kelp.DLTensor(*arguments)

    def test_bfloat16_is_exchanged_by_dlpack(self):
        x = np.array([1, 2, 3], dtype=ml_dtypes.bfloat16)
        t = kelp.DLTensor(x)
        self.assertEqual((t.dtype, t.data, t.numpy().dtype), ("bfloat16", x.ctypes.data, x.dtype))
        self.assertEqual(kelp.DLTensor(t.__dlpack__()).dtype, "bfloat16")


class Lists(unittest.TestCase):
    def test_sequences_are_inputs_and_outputs(self):
        session, x = kelp.InferenceSession(MODELS + "/lists.onnx"), np.float32([1, -2])
        for given in ([], [x], (x, x + 1)):
            longer, joined = session.run(None, {"s": given, "x": x})
            self.assertIs(type(longer), list)
            np.testing.assert_array_equal(longer, [*given, np.abs(x)])
            np.testing.assert_array_equal(joined, np.concatenate([*given, np.abs(x)]))

    def test_an_invalid_sequence_is_rejected(self):
        session, x = kelp.InferenceSession(MODELS + "/lists.onnx"), np.float32([1, -2])
        for given, words in ((x, "expected a list of arrays, found 'numpy.ndarray'"), (None, "found 'NoneType'"), ({1: 2}, "found 'dict'"),
                             ([x, np.int32([1])], "element 1 has the wrong type: expected float32, found int32")):
            with self.assertRaisesRegex(kelp.KelpError, words):
                session.run(None, {"s": given, "x": x})


class LegacyProducer:
    """An array with the protocol of DLPack before 1.0."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Errors(unittest.TestCase):
    def rejected(self, code, words, function, *arguments):
        with self.assertRaisesRegex(kelp.KelpError, words) as caught:
            function(*arguments)
        self.assertEqual(caught.exception.code, code)
        return caught.exception

    def test_invalid_models_are_rejected(self):
        self.rejected(kelp.Code.NOT_FOUND, "nowhere.onnx", kelp.InferenceSession, "nowhere.onnx")
        self.rejected(kelp.Code.INVALID_ARGUMENT, "model", kelp.InferenceSession, b"no model")
        error = self.rejected(kelp.Code.UNIMPLEMENTED, "", kelp.InferenceSession, MODELS + "/uncovered_op.onnx")
        self.assertIsInstance(error, kelp.TritonException)
        self.assertTrue(error.message)
        self.rejected(kelp.Code.NOT_FOUND, "Unknown Provider Type: TPU: expected one of CPUExecutionProvider", kelp.InferenceSession, DIGITS, None, ["TPU"])
        self.assertRaises(TypeError, kelp.InferenceSession, 3.5)

    def test_wrong_feeds_are_rejected(self):
        session = kelp.InferenceSession(DIGITS)
        image = np.zeros((1, 1, 8, 8), "f4")
        bad = kelp.Code.INVALID_ARGUMENT
        self.rejected(bad, "input 'image': expected an array, found None", session.run, None, {"image": None})
        self.rejected(bad, r"missing input 'image': expected float32 \[-1,1,8,8\]\. Required inputs \(\['image'\]\) are missing from input feed \(\[\]\)",
                      session.run, None, {})
        self.rejected(bad, "no input 'x'; it has 'image'", session.run, None, {"image": image, "x": image})
        self.rejected(bad, "no output 'x'; it has 'probabilities', 'digit'", session.run, ["x"], {"image": image})
        self.rejected(bad, "expected float32, found float64", session.run, None, {"image": image.astype("f8")})
        self.rejected(bad, r"expected \[-1,1,8,8\], found \[1,1,8,9\]", session.run, None, {"image": np.zeros((1, 1, 8, 9), "f4")})
        self.rejected(bad, "datetime64", session.run, None, {"image": np.zeros(3, "M8[s]")})
        self.assertRaises(TypeError, session.run, None, [image])
        self.assertRaises(TypeError, session.run)
        self.assertRaises(TypeError, session.run, None, {"image": image}, wrong=1)
        self.assertEqual(len(session.run(None, {"image": image})), 2)

    def test_a_failure_while_running_has_a_cause(self):
        session = kelp.InferenceSession(model("Gather", [("x", T.FLOAT, ("n",)), ("i", T.INT64, ("m",))], [("y", T.FLOAT, ("m",))]))
        error = self.rejected(kelp.Code.OUT_OF_RANGE, "Gather", session.run, None, {"x": np.zeros(3, "f4"), "i": np.array([9])})
        self.assertIsInstance(error.cause, kelp.KelpError)
        self.assertEqual(str(error), f"{error.message}: {error.cause}")

    def test_errors_can_be_pickled(self):
        import pickle
        error = pickle.loads(pickle.dumps(kelp.KelpError("a", kelp.Code.NOT_FOUND, kelp.KelpError("b"), ["/x"])))
        self.assertEqual((str(error), error.code, error.paths), ("a: b", kelp.Code.NOT_FOUND, ["/x"]))


if __name__ == "__main__":
    main()
