#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests kelp.onnxruntime as a program of ONNX Runtime uses it, next to ONNX Runtime where both can do the same."""
import copy
import logging
import os
import pickle
import subprocess
import sys
import threading
import unittest
import warnings

import numpy as np
import onnxruntime
from support import DIGITS, MODELS, ROOT, identity, main, model

import kelp
import kelp.onnxruntime as ort
from kelp.onnxruntime.capi import onnxruntime_pybind11_state as states

IMAGE = np.load(ROOT + "/examples/requests/digits.npy")
FLOAT, STRING, INT64 = 1, 8, 7
BOTH = (ort, onnxruntime)
SIMPLE = model("Add", [("a", FLOAT, ["n"]), ("b", FLOAT, ["n"])], [("y", FLOAT, ["n"])])


def session(data=DIGITS, **options):
    chosen = ort.SessionOptions()
    for name, value in options.items():
        setattr(chosen, name, value)
    return ort.InferenceSession(data, chosen)


class Surface(unittest.TestCase):
    def test_public_names_of_onnx_runtime_exist_or_say_what_to_use(self):
        absent = {"AdapterFormat", "LoraAdapter", "ModelCompiler", "OrtCompileApiFlags", "OrtEpAssignedNode", "OrtEpAssignedSubgraph",
                  "OrtEpContextData", "OrtEpContextDataBuffer", "OrtExecutionProviderDevicePolicy", "OrtExternalInitializerInfo",
                  "OrtSyncStream", "preload_dlls", "print_debug_info", "register_execution_provider_library",
                  "unregister_execution_provider_library", "contextlib", "cuda_version", "import_capi_exception", "onnxruntime_validation",
                  "package_name", "version"}
        names = {name for name in dir(onnxruntime) if not name.startswith("_")}
        self.assertEqual(set(), {name for name in names if not hasattr(ort, name)} - absent)
        for name in ort.__all__:
            self.assertTrue(hasattr(ort, name), name)
        with self.assertRaisesRegex(AttributeError, "no 'ModelCompiler': kelp.Builder writes plan files"):
            ort.ModelCompiler  # pylint: disable=pointless-statement

    def test_methods_of_a_session_are_those_of_onnx_runtime(self):
        theirs = {name for name in dir(onnxruntime.InferenceSession) if not name.startswith("_")}
        absent = {"create_ortvalue_from_shape_and_type", "get_tuning_results", "release_captured_graph", "run_with_ortvaluevector",
                  "set_ep_dynamic_options", "set_tuning_results"}
        self.assertLessEqual(theirs - set(dir(ort.InferenceSession)), absent | MISSING_YET)

    def test_constants_are_those_of_onnx_runtime(self):
        for name in ("ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "OrtAllocatorType", "OrtMemType", "OrtSparseFormat",
                     "OrtDeviceMemoryType", "OrtMemoryInfoDeviceType", "OrtHardwareDeviceType"):
            ours, theirs = (getattr(module, name).__members__ for module in BOTH)
            self.assertEqual({key: int(value) for key, value in ours.items()}, {key: int(value) for key, value in theirs.items()}, name)
        for name in ("cpu", "cuda", "gpu", "fpga", "npu", "cann", "dml", "webgpu", "default_memory"):
            self.assertEqual(getattr(states.OrtDevice, name)(), getattr(onnxruntime.capi.onnxruntime_pybind11_state.OrtDevice, name)())

    def test_functions_of_the_module(self):
        self.assertEqual(ort.get_device(), "CPU")
        self.assertEqual(ort.get_available_providers(), ["CPUExecutionProvider"])
        self.assertEqual(ort.get_all_providers()[-1], "CPUExecutionProvider")
        self.assertIn(kelp.__version__, ort.get_build_info())
        self.assertEqual(ort.get_version_string(), ort.__version__)
        self.assertEqual([int(part) for part in ort.__version__.split(".")], [1, 31, 1])
        self.assertIsNone(ort.disable_telemetry_events())
        self.assertIsNone(ort.enable_telemetry_events())
        self.assertEqual(ort.get_ep_devices()[0].ep_name, "CPUExecutionProvider")

    def test_defaults_of_options_are_those_of_onnx_runtime(self):
        for name in ("SessionOptions", "RunOptions"):
            ours, theirs = (getattr(module, name)() for module in BOTH)
            for key in dir(theirs):
                if not key.startswith("_") and not callable(getattr(theirs, key)):
                    a, b = getattr(ours, key), getattr(theirs, key)
                    self.assertEqual(a, type(a)(b) if isinstance(a, str) else int(b), key)


# Methods that later commits add.
MISSING_YET = {"end_profiling", "get_profiling_start_time_ns", "get_provider_graph_assignment_info"}


class Options(unittest.TestCase):
    def test_unknown_options_are_rejected(self):
        options = ort.SessionOptions()
        with self.assertRaisesRegex(AttributeError, "no option 'intra_op_num_thread': did you mean 'intra_op_num_threads'"):
            options.intra_op_num_thread = 4
        with self.assertRaisesRegex(AttributeError, "'RunOptions' has no option 'terminated': did you mean 'terminate'"):
            ort.RunOptions().terminated = True
        with self.assertRaisesRegex(TypeError, "SessionOptions.intra_op_num_threads: expected int, found 'str'"):
            options.intra_op_num_threads = "4"
        with self.assertRaisesRegex(TypeError, "found 'float'"):
            options.intra_op_num_threads = 1.5
        with self.assertRaises(ValueError):
            options.graph_optimization_level = 7

    def test_options_without_effect_warn(self):
        for name, value in (("execution_mode", ort.ExecutionMode.ORT_PARALLEL), ("enable_mem_pattern", False),
                            ("enable_mem_reuse", False), ("execution_order", ort.ExecutionOrder.PRIORITY_BASED)):
            with self.assertWarnsRegex(UserWarning, f"SessionOptions.{name} = .* has no effect"):
                setattr(ort.SessionOptions(), name, value)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            options = ort.SessionOptions()
            options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
            options.enable_mem_pattern = True
            options.enable_cpu_mem_arena = False
            options.inter_op_num_threads = 1
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            options.add_session_config_entry("session.set_denormal_as_zero", "0")
        with self.assertWarnsRegex(UserWarning, "unknown session configuration entry 'session.some_thing'"):
            options.add_session_config_entry("session.some_thing", "1")
        with self.assertWarnsRegex(UserWarning, "'session.set_denormal_as_zero' = '1' has no effect"):
            options.add_session_config_entry("session.set_denormal_as_zero", "1")
        self.assertEqual(options.get_session_config_entry("session.some_thing"), "1")
        with self.assertRaisesRegex(RuntimeError, "does not have configuration with key: nothing"):
            options.get_session_config_entry("nothing")

    def test_options_are_copied_and_pickled(self):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 3
        options.logid = "one"
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        for other in (copy.copy(options), copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
            self.assertEqual((other.intra_op_num_threads, other.logid), (3, "one"))
            self.assertEqual(other.get_session_config_entry("session.intra_op.allow_spinning"), "0")
            other.logid = "two"
            self.assertEqual(options.logid, "one")
        self.assertEqual(repr(options), "SessionOptions(intra_op_num_threads=3, logid='one')")
        one = session(intra_op_num_threads=1)
        one.get_session_options().logid = "changed"
        self.assertEqual(one.get_session_options().logid, "")

    def test_loading_can_be_cancelled(self):
        options = ort.SessionOptions()
        options.set_load_cancellation_flag(True)
        with self.assertRaises(states.ModelLoadCanceled):
            ort.InferenceSession(DIGITS, options)
        options.set_load_cancellation_flag(False)
        ort.InferenceSession(DIGITS, options)


class Failures(unittest.TestCase):
    def test_exceptions_have_the_classes_of_onnx_runtime(self):
        ones = np.ones(2, "f4")
        for module, extension in ((ort, states), (onnxruntime, onnxruntime.capi.onnxruntime_pybind11_state)):
            one = module.InferenceSession(SIMPLE, providers=["CPUExecutionProvider"])
            terminated = module.RunOptions()
            terminated.terminate = True
            for expected, function, *args in (
                    (extension.NoSuchFile, module.InferenceSession, "nowhere.onnx"),
                    (TypeError, module.InferenceSession, 3),
                    (ValueError, one.run, None, {"a": ones}),
                    (extension.InvalidArgument, one.run, None, {"a": ones, "b": ones, "c": ones}),
                    (extension.InvalidArgument, one.run, ["z"], {"a": ones, "b": ones}),
                    (extension.InvalidArgument, one.run, None, {"a": ones, "b": ones.astype("f8")}),
                    (extension.InvalidArgument, one.run, None, {"a": ones, "b": ones[None]}),
                    (extension.Fail, one.run, None, {"a": ones, "b": ones}, terminated),
                    (TypeError, one.run, None, {"a": ones, "b": ones}, 3),
                    (RuntimeError, module.SessionOptions().get_session_config_entry, "nothing"),
                    (RuntimeError, module.OrtValue.ortvalue_from_numpy, [1, 2]),
                    (RuntimeError, module.OrtValue.ortvalue_from_shape_and_type, [2], np.float32, "cuda")):
                with self.subTest(module=module.__name__, function=function), self.assertRaises(expected):
                    function(*args)

    def test_failures_are_kelp_errors_too(self):
        with self.assertRaises(kelp.KelpError) as caught:
            ort.InferenceSession("nowhere.onnx")
        self.assertEqual(caught.exception.code, kelp.Code.NOT_FOUND)
        error = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(error), str(error)), (states.NoSuchFile, str(caught.exception)))

    def test_unavailable_providers_warn(self):
        with self.assertWarnsRegex(UserWarning, "'CUDAExecutionProvider': the model runs on the CPU"):
            one = ort.InferenceSession(DIGITS, providers=["CUDAExecutionProvider"])
        self.assertEqual(one.get_providers(), ["CPUExecutionProvider"])
        with self.assertRaisesRegex(RuntimeError, "unknown provider 'CUDAExecutionProvid'"):
            one.set_providers(["CUDAExecutionProvid"])
        one.set_providers(["CPUExecutionProvider"])
        self.assertEqual(one.get_provider_options(), {"CPUExecutionProvider": {}})
        with self.assertWarnsRegex(UserWarning, "argument 'disabled_optimizers' has no effect"):
            ort.InferenceSession(DIGITS, disabled_optimizers=["ConstantFolding"])


class Values(unittest.TestCase):
    def test_values_describe_themselves_as_in_onnx_runtime(self):
        arrays = [np.ones((2, 3), dtype) for dtype in ("f4", "f8", "f2", "i1", "i8", "u2", "?")] + [np.full((), 3, "f4")]
        for array in arrays:
            ours, theirs = (module.OrtValue.ortvalue_from_numpy(array) for module in BOTH)
            for name in ("shape", "data_type", "element_type", "device_name", "is_tensor", "is_sparse_tensor", "is_tensor_sequence",
                         "has_value", "tensor_size_in_bytes", "data_ptr", "__dlpack_device__"):
                self.assertEqual(getattr(ours, name)(), getattr(theirs, name)(), (array.dtype, name))
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())

    def test_memory_is_shared(self):
        array = np.arange(6, dtype="f4")
        value = ort.OrtValue.ortvalue_from_numpy(array)
        for other in (value.numpy(), np.asarray(value), np.from_dlpack(value), ort.OrtValue.from_dlpack(array).numpy(),
                      ort.OrtValue.from_dlpack(value).numpy(), ort.OrtValue.from_dlpack(value.to_dlpack()).numpy()):
            self.assertEqual(other.__array_interface__["data"][0], array.__array_interface__["data"][0])
        value.update_inplace(np.ones(6, "f4"))
        self.assertEqual(array.tolist(), [1] * 6)
        value.update_inplace(ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), "f4")))
        self.assertEqual(array.tolist(), [0] * 6)
        for wrong in (np.ones(5, "f4"), np.ones(6, "f8")):
            with self.assertRaises(states.InvalidArgument):
                value.update_inplace(wrong)
        strided = np.arange(6, dtype="f4")[::2]
        self.assertFalse(np.shares_memory(ort.OrtValue.ortvalue_from_numpy(strided).numpy(), strided))

    def test_new_tensors_and_types_that_numpy_lacks(self):
        value = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
        self.assertEqual((value.shape(), value.data_type()), ([2, 3], "tensor(float)"))
        value = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], 16)
        self.assertEqual((value.data_type(), value.tensor_size_in_bytes()), ("tensor(bfloat16)", 12))
        raw = np.array([0x3F80, 0x4000], "u2")
        value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, 16)
        self.assertEqual((value.data_type(), value.data_ptr()), ("tensor(bfloat16)", raw.ctypes.data))
        self.assertEqual(value.numpy().astype("f4").tolist(), [1, 2])
        out, = ort.InferenceSession(identity(16)).run(None, {"x": value})
        self.assertEqual(out.astype("f4").tolist(), [1, 2])
        with self.assertRaisesRegex(RuntimeError, "elements of uint16 have 2 bytes: 'float64' has 8"):
            ort.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, 11)

    def test_values_are_inputs_and_outputs(self):
        one = session()
        value = ort.OrtValue.ortvalue_from_numpy(IMAGE)
        expected = one.run(None, {"image": IMAGE})
        for got in (one.run(None, {"image": value}), one.run([], {"image": value}),
                    [v.numpy() for v in one.run_with_ort_values(None, {"image": value})],
                    [v.numpy() for v in one._sess.run_with_ort_values({"image": value}, ["probabilities", "digit"], None)]):
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_array_equal(a, b)
        self.assertEqual([v.data_type() for v in one.run_with_ort_values(["digit"], {"image": value})], ["tensor(int64)"])
        with self.assertRaisesRegex(TypeError, "input 'image': expected an OrtValue"):
            one.run_with_ort_values(None, {"image": IMAGE})

    def test_strings_are_values(self):
        one = ort.InferenceSession(identity(STRING))
        value = ort.OrtValue.ortvalue_from_numpy(np.array(["a", "bc"]))
        self.assertEqual(value.data_type(), "tensor(string)")
        result, = one.run_with_ort_values(None, {"x": value})
        self.assertEqual((result.numpy().tolist(), result.data_type()), (["a", "bc"], "tensor(string)"))

    def test_values_are_pickled(self):
        value = pickle.loads(pickle.dumps(ort.OrtValue.ortvalue_from_numpy(np.arange(3))))
        self.assertEqual(value.numpy().tolist(), [0, 1, 2])

    def test_sparse_tensors(self):
        cpu = ort.OrtDevice.make("cpu", 0)
        values, indices = np.array([1, 2], "f4"), np.array([0, 4])
        ours, theirs = (module.SparseTensor.sparse_coo_from_numpy([3, 3], values, indices, module.OrtDevice.make("cpu", 0))
                        for module in BOTH)
        self.assertEqual((ours.data_type(), ours.dense_shape(), int(ours.format())),
                         (theirs.data_type(), theirs.dense_shape(), int(theirs.format())))
        value = ort.OrtValue.ort_value_from_sparse_tensor(ours)
        self.assertTrue(value.is_sparse_tensor())
        self.assertEqual(value.as_sparse_tensor().as_coo_view().indices().tolist(), [0, 4])
        with self.assertRaisesRegex(RuntimeError, "expected ORT_SPARSE_CSRC"):
            ours.as_csrc_view()
        with self.assertRaises(states.InvalidArgument):
            ort.SparseTensor.sparse_csr_from_numpy([3, 3], values, indices, np.zeros(3, "i8"), cpu)
        with self.assertRaises(states.NotImplemented):
            ours.to_cuda(ort.OrtDevice.make("cuda", 0))


class Bindings(unittest.TestCase):
    def test_memory_at_addresses_is_bound(self):
        one, out = session(), np.zeros((3, 10), "f4")
        binding = one.io_binding()
        binding.bind_input("image", "cpu", 0, np.float32, IMAGE.shape, IMAGE.ctypes.data)
        binding.bind_output("probabilities", "cpu", 0, FLOAT, out.shape, out.ctypes.data)
        binding.bind_output("digit")
        one.run_with_iobinding(binding)
        binding.synchronize_outputs()
        self.assertEqual(out.argmax(1).tolist(), binding.copy_outputs_to_cpu()[1].tolist())
        self.assertEqual([value.data_type() for value in binding.get_outputs()], ["tensor(float)", "tensor(int64)"])
        self.assertEqual(binding.get_outputs()[0].data_ptr(), out.ctypes.data)

    def test_values_are_bound(self):
        one = session()
        result = ort.OrtValue.ortvalue_from_shape_and_type([3, 10], np.float32)
        binding = ort.SessionIOBinding(one._sess)
        binding.bind_ortvalue_input("image", ort.OrtValue.ortvalue_from_numpy(IMAGE))
        binding.bind_ortvalue_output("probabilities", result)
        one._sess.run_with_iobinding(binding, None)
        np.testing.assert_array_equal(result.numpy(), one.run(["probabilities"], {"image": IMAGE})[0])
        self.assertIs(binding.get_outputs()[0], result)

    def test_devices_of_the_extension_module_are_bound(self):
        one, cpu = session(), states.OrtDevice(states.OrtDevice.cpu(), states.OrtDevice.default_memory(), 0)
        binding = states.SessionIOBinding(one._sess)
        binding.bind_input("image", cpu, np.float32, IMAGE.shape, IMAGE.ctypes.data)
        binding.bind_output("digit", cpu)
        one.run_with_iobinding(binding)
        self.assertEqual(binding.get_outputs()[0].numpy().tolist(), one.run(["digit"], {"image": IMAGE})[0].tolist())

    def test_wrong_bindings_are_rejected(self):
        one = session()
        binding = one.io_binding()
        for expected, words, function, *args in (
                (RuntimeError, "no input 'picture'", binding.bind_cpu_input, "picture", IMAGE),
                (RuntimeError, "on the CPU", binding.bind_input, "image", "cuda", 0, np.float32, [1], 1),
                (RuntimeError, "non-string", binding.bind_input, "image", "cpu", 0, STRING, [1], 1),
                (ValueError, "element_type and shape", binding.bind_output, "digit", "cpu", 0, None, None, 123),
                (TypeError, "expected an OrtValue", binding.bind_ortvalue_input, "image", IMAGE),
                (RuntimeError, "no output is bound", one.run_with_iobinding, binding),
                (ValueError, "another session", session().run_with_iobinding, binding)):
            with self.subTest(words), self.assertRaisesRegex(expected, words):
                function(*args)
        binding.bind_cpu_input("image", IMAGE)
        binding.bind_output("digit")
        one.run_with_iobinding(binding)
        binding.clear_binding_outputs()
        self.assertEqual((binding.get_outputs(), binding.copy_outputs_to_cpu()), ([], []))


class Asynchronous(unittest.TestCase):
    def test_a_callback_gets_the_results(self):
        one, done, kept = session(), threading.Event(), []

        def callback(results, user_data, message):
            kept.append((results[0].tolist() if results else None, user_data, message))
            done.set()
        one.run_async(["digit"], {"image": IMAGE}, callback, 5)
        self.assertTrue(done.wait(30))
        self.assertEqual(kept, [(one.run(["digit"], {"image": IMAGE})[0].tolist(), 5, "")])
        done.clear()
        one.run_async(["digit"], {"image": IMAGE[:, :, :4]}, callback, 6)
        self.assertTrue(done.wait(30))
        self.assertEqual(kept[1][:2], (None, 6))
        self.assertIn("wrong shape", kept[1][2])

    def test_runs_are_awaited(self):
        import asyncio
        one = session()

        async def several():
            return await asyncio.gather(*(one.run_async(["digit"], {"image": IMAGE}) for _ in range(8)))
        expected = one.run(["digit"], {"image": IMAGE})[0].tolist()
        self.assertEqual([result[0].tolist() for result in asyncio.run(several())], [expected] * 8)


class Processes(unittest.TestCase):
    def test_sessions_are_pickled(self):
        with open(DIGITS, "rb") as file:
            data = file.read()
        for source in (DIGITS, data):
            one = session(source, intra_op_num_threads=1)
            other = pickle.loads(pickle.dumps(one))
            self.assertEqual(other.get_session_options().intra_op_num_threads, 1)
            self.assertEqual(other.run(["digit"], {"image": IMAGE})[0].tolist(), one.run(["digit"], {"image": IMAGE})[0].tolist())

    def test_modules_replace_onnxruntime(self):
        code = """
import sys, kelp.onnxruntime
sys.modules["onnxruntime"] = kelp.onnxruntime
import onnxruntime as ort
from onnxruntime import InferenceSession, SessionOptions
from onnxruntime.capi import _pybind_state as C
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, NoSuchFile
from onnxruntime.capi.onnxruntime_inference_collection import OrtValue, check_and_normalize_provider_args
import onnxruntime.capi.onnxruntime_pybind11_state
assert InferenceSession is ort.InferenceSession and C.OrtValue is OrtValue
try:
    ort.InferenceSession("nowhere.onnx")
except NoSuchFile as error:
    print("caught", isinstance(error, C.NoSuchFile), isinstance(error, ort.capi.onnxruntime_pybind11_state.NoSuchFile))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.stderr), ("caught True True\n", ""))


class Log(unittest.TestCase):
    def tearDown(self):
        ort.set_default_logger_severity(2)
        logging.getLogger("kelp").setLevel(logging.NOTSET)

    def test_severities_of_sessions_runs_and_the_default(self):
        one, quiet = session(log_severity_level=1, logid="mine"), session()
        with self.assertLogs("kelp", logging.DEBUG) as caught:
            one.run(None, {"image": IMAGE})
            quiet.run(None, {"image": IMAGE})
        self.assertEqual(len(caught.output), 1)
        self.assertRegex(caught.output[0], r"run 'mine': \d+ operators took")
        with self.assertLogs("kelp", logging.DEBUG) as caught:
            ort.set_default_logger_severity(0)
            quiet.run(None, {"image": IMAGE})
        self.assertIn("Gemm", "\n".join(caught.output))
        with self.assertRaisesRegex(RuntimeError, "severity 9: expected 0 to 4"):
            ort.set_default_logger_severity(9)


class Representation(unittest.TestCase):
    def test_objects_show_what_they_are(self):
        one = session()
        self.assertEqual(repr(one), f"InferenceSession({DIGITS!r}, inputs=[image: tensor(float)['batch', 1, 8, 8]], "
                                    "outputs=[probabilities: tensor(float)['batch', 10], digit: tensor(int64)['batch']])")
        self.assertEqual(repr(ort.OrtDevice.make("cuda", 1)), "OrtDevice(gpu:1)")
        self.assertEqual(repr(one.io_binding()), "IOBinding(inputs=[], outputs=[])")


if __name__ == "__main__":
    main()
