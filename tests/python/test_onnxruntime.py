#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests kelp.onnxruntime as a program of ONNX Runtime uses it, next to ONNX Runtime where both can do the same."""
import copy
import gc
import glob
import json
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from support import DIGITS, ROOT, identity, main, model

import kelp
import kelp.backend
import kelp.onnxruntime as ort
from kelp.onnxruntime.capi import onnxruntime_pybind11_state as states

INSTALLED, OURS = ([int(part) for part in module.__version__.split(".")[:2]] for module in (onnxruntime, ort))
SAME_VERSION = unittest.skipUnless(INSTALLED == OURS, "another version of ONNX Runtime is installed")
# Python 3.10 has older versions only.
NOT_OLDER = unittest.skipUnless(INSTALLED >= OURS, "an older version of ONNX Runtime is installed")
IMAGE = np.load(ROOT + "/examples/requests/digits.npy")
FLOAT, STRING, INT64 = 1, 8, 7
BOTH = (ort, onnxruntime)
onnxruntime.set_default_logger_severity(3)
SIMPLE = model("Add", [("a", FLOAT, ["n"]), ("b", FLOAT, ["n"])], [("y", FLOAT, ["n"])])


def session(data=DIGITS, **options):
    chosen = ort.SessionOptions()
    for name, value in options.items():
        setattr(chosen, name, value)
    return ort.InferenceSession(data, chosen)


class Surface(unittest.TestCase):
    @SAME_VERSION
    def test_public_names_of_onnx_runtime_exist_or_say_what_to_use(self):
        absent = {"ModelCompiler", "OrtCompileApiFlags", "OrtEpContextData", "OrtEpContextDataBuffer", "OrtExecutionProviderDevicePolicy", "OrtExternalInitializerInfo",
                  "OrtSyncStream", "register_execution_provider_library",
                  "unregister_execution_provider_library", "contextlib", "cuda_version", "import_capi_exception", "onnxruntime_validation",
                  "package_name", "version"}
        names = {name for name in dir(onnxruntime) if not name.startswith("_")}
        self.assertEqual(set(), {name for name in names if not hasattr(ort, name)} - absent)
        for name in ort.__all__:
            self.assertTrue(hasattr(ort, name), name)
        with self.assertRaisesRegex(AttributeError, "no 'ModelCompiler': kelp.Builder writes plan files"):
            ort.ModelCompiler  # pylint: disable=pointless-statement

    @NOT_OLDER
    def test_methods_of_a_session_are_those_of_onnx_runtime(self):
        theirs = {name for name in dir(onnxruntime.InferenceSession) if not name.startswith("_")}
        absent = {"create_ortvalue_from_shape_and_type", "get_tuning_results", "release_captured_graph", "run_with_ortvaluevector",
                  "set_ep_dynamic_options", "set_tuning_results"}
        self.assertEqual(theirs - set(dir(ort.InferenceSession)), absent)

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


class Options(unittest.TestCase):
    def test_unknown_options_are_rejected(self):
        options = ort.SessionOptions()
        with self.assertRaisesRegex(AttributeError, "no option 'intra_op_num_thread': did you mean 'intra_op_num_threads'"):
            options.intra_op_num_thread = 4
        with self.assertRaisesRegex(AttributeError, "no 'InferenceSesion': did you mean 'InferenceSession'"):
            ort.InferenceSesion
        with self.assertRaisesRegex(AttributeError, "'RunOptions' has no option 'terminated': did you mean 'terminate'"):
            ort.RunOptions().terminated = True
        with self.assertRaisesRegex(TypeError, "SessionOptions.intra_op_num_threads: expected int, found 'str'"):
            options.intra_op_num_threads = "4"
        with self.assertRaisesRegex(TypeError, "found 'float'"):
            options.intra_op_num_threads = 1.5
        with self.assertRaises(ValueError):
            options.graph_optimization_level = 7
        for severity in (-2, 5):
            with self.assertRaisesRegex(RuntimeError, f"SessionOptions.log_severity_level: expected -1 to 4, found {severity}"):
                options.log_severity_level = severity
        with self.assertRaisesRegex(TypeError, "dimension 'batch': expected a size, found 'str'"):
            options.add_free_dimension_override_by_name("batch", "x")

    def test_overrides_of_unknown_dimensions_warn(self):
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_name("batch", 2)
        options.add_free_dimension_override_by_name("bach", 2)
        with self.assertWarnsRegex(UserWarning, "no dimension with the name 'bach'") as caught:
            self.assertEqual(ort.InferenceSession(DIGITS, options).get_inputs()[0].shape[0], 2)
        self.assertEqual((len(caught.warnings), os.path.basename(caught.filename)), (1, "test_onnxruntime.py"))

    def test_failures_name_the_option(self):
        options = ort.SessionOptions()
        options.optimized_model_filepath = "/nowhere/optimized.onnx"
        with self.assertRaisesRegex(RuntimeError, "cannot write the optimized model '/nowhere/optimized.onnx': No such file or directory"):
            ort.InferenceSession(DIGITS, options)
        options = ort.SessionOptions()
        options.add_session_config_entry("session.load_model_format", "TFLITE")
        with self.assertRaisesRegex(RuntimeError, "'session.load_model_format': expected ONNX, found 'TFLITE'"):
            ort.InferenceSession(DIGITS, options)

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


def weighted(**options):
    """Returns a model y = x * w, whose initializer w is also an input."""
    infos = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in (("x", ["rows", "columns"]), ("w", [2, 3]))]
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["y"], name="multiply")], "weighted", infos,
                              [helper.make_tensor_value_info("y", FLOAT, ["rows", "columns"])],
                              initializer=[helper.make_tensor("w", FLOAT, [2, 3], [1, 2, 3, 4, 5, 6], **options)])
    graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.helper.set_model_props(made, {"ort_config": '{"session_options": {"intra_op_num_threads": 2, "logid": "from the model"}}'})
    return made.SerializeToString()


class Models(unittest.TestCase):
    """Options that change the model."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.x = np.ones((2, 3), "f4")

    def both(self, data, change, feed):
        """Returns the descriptions and results of both products with changed options."""
        for module in BOTH:
            options = module.SessionOptions()
            change(module, options)
            one = module.InferenceSession(data, options, providers=["CPUExecutionProvider"])
            yield [(v.name, v.type, v.shape) for v in one.get_inputs() + one.get_outputs()], one.run(None, feed)[0].tolist()

    def test_dynamic_dimensions_have_sizes(self):
        for change in (lambda _, options: (options.add_free_dimension_override_by_name("rows", 2),
                                           options.add_free_dimension_override_by_name("columns", 3)),
                       lambda _, options: options.add_free_dimension_override_by_denotation("DATA_BATCH", 2)):
            ours, theirs = self.both(weighted(), change, {"x": self.x})
            self.assertEqual(ours[0][0], theirs[0][0])
            self.assertEqual(ours[1], theirs[1])
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_name("rows", 1)
        one = ort.InferenceSession(weighted(), options)
        with self.assertRaisesRegex(states.InvalidArgument, "wrong shape"):
            one.run(None, {"x": self.x})
        with self.assertRaisesRegex(states.InvalidArgument, "dimension 'rows': expected a size, found -1"):
            options.add_free_dimension_override_by_name("rows", -1)

    def test_initializers_are_replaced(self):
        w = np.full((2, 3), 7, "f4")
        values = {module: module.OrtValue.ortvalue_from_numpy(w) for module in BOTH}  # ONNX Runtime needs them later
        ours, theirs = self.both(weighted(), lambda module, options: options.add_initializer("w", values[module]), {"x": self.x})
        self.assertEqual((ours[1], theirs[1]), (w.tolist(), w.tolist()))
        options = ort.SessionOptions()
        options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(w[:1]))
        with self.assertRaisesRegex(states.InvalidArgument, r"initializer 'w' is float32 \[2, 3\]: the value is float32 \[1, 3\]"):
            ort.InferenceSession(weighted(), options)
        options = ort.SessionOptions()
        options.add_initializer("v", ort.OrtValue.ortvalue_from_numpy(w))
        with self.assertRaisesRegex(states.InvalidArgument, "the model has no initializer 'v'"):
            ort.InferenceSession(weighted(), options)

    @NOT_OLDER
    def test_external_data_comes_from_memory(self):
        made = onnx.load_from_string(weighted())
        external = made.graph.initializer[0]
        data = np.arange(6, dtype="f4").tobytes()
        external.ClearField("float_data")
        external.data_location = 1
        for key, value in (("location", "not_on_disk.bin"), ("offset", "4"), ("length", str(len(data)))):
            external.external_data.add(key=key, value=value)
        content = b"skip" + data
        ours, theirs = self.both(made.SerializeToString(), lambda _, options: options.add_external_initializers_from_files_in_memory(
            ["not_on_disk.bin"], [content], [len(content)]), {"x": self.x})
        self.assertEqual((ours[1], theirs[1]), ([[0, 1, 2], [3, 4, 5]],) * 2)
        options = ort.SessionOptions()
        options.add_external_initializers(["w"], [ort.OrtValue.ortvalue_from_numpy(2 * self.x)])
        self.assertEqual(ort.InferenceSession(made.SerializeToString(), options).run(None, {"x": self.x})[0].tolist(), [[2, 2, 2]] * 2)
        options = ort.SessionOptions()
        options.add_external_initializers_from_files_in_memory(["not_on_disk.bin"], [content[:10]], [10])
        with self.assertRaisesRegex(states.InvalidArgument, "initializer 'w': external data 'not_on_disk.bin' has 10 bytes: expected 28"):
            ort.InferenceSession(made.SerializeToString(), options)
        with open(self.directory + "/not_on_disk.bin", "wb") as file:
            file.write(content)
        options = ort.SessionOptions()
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", self.directory)
        self.assertEqual(ort.InferenceSession(made.SerializeToString(), options).run(None, {"x": self.x})[0].tolist(), ours[1])

    def test_initializers_that_are_inputs_are_overridden(self):
        w = np.full((2, 3), 7, "f4")
        ours, theirs = (module.InferenceSession(weighted(), providers=["CPUExecutionProvider"]) for module in BOTH)
        self.assertEqual([(v.name, v.type, v.shape) for v in ours.get_overridable_initializers()],
                         [(v.name, v.type, v.shape) for v in theirs.get_overridable_initializers()])
        self.assertEqual([v.name for v in ours.get_inputs()], ["x"])
        for _ in range(2):
            self.assertEqual(ours.run(None, {"x": self.x})[0].tolist(), [[1, 2, 3], [4, 5, 6]])
            self.assertEqual(ours.run(None, {"x": self.x, "w": w})[0].tolist(), theirs.run(None, {"x": self.x, "w": w})[0].tolist())
        binding = ours.io_binding()
        binding.bind_cpu_input("x", self.x)
        binding.bind_cpu_input("w", w)
        binding.bind_output("y")
        ours.run_with_iobinding(binding)
        self.assertEqual(binding.copy_outputs_to_cpu()[0].tolist(), w.tolist())
        with self.assertRaisesRegex(states.InvalidArgument, "no input 'v'"):
            ours.run(None, {"x": self.x, "v": w})
        with self.assertRaisesRegex(states.InvalidArgument, "wrong shape"):
            ours.run(None, {"x": self.x, "w": w[:1]})
        threads = [threading.Thread(target=lambda: kept.append(ours.run(None, {"x": self.x, "w": w})[0].tolist())) for _ in range(8)]
        kept = []
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(kept, [w.tolist()] * 8)

    @NOT_OLDER
    def test_links_of_download_caches_are_followed(self):
        """Caches such as that of huggingface_hub link to files with other names in another directory."""
        made = onnx.load_from_string(weighted())
        made.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.arange(1, 7, dtype="f4").reshape(2, 3), "w"))
        onnx.external_data_helper.convert_model_to_external_data(made, location="data.bin", size_threshold=0)
        for name in ("blobs", "snapshots", "elsewhere"):
            os.mkdir(f"{self.directory}/{name}")
        onnx.save(made, self.directory + "/snapshots/saved.onnx")
        os.rename(self.directory + "/snapshots/saved.onnx", self.directory + "/blobs/1")
        os.rename(self.directory + "/snapshots/data.bin", self.directory + "/blobs/2")
        os.symlink("../blobs/1", self.directory + "/snapshots/model.onnx")
        os.symlink("../blobs/2", self.directory + "/snapshots/data.bin")
        for module in BOTH:
            one = module.InferenceSession(self.directory + "/snapshots/model.onnx", providers=["CPUExecutionProvider"])
            self.assertEqual(one.run(None, {"x": self.x})[0].tolist(), [[1, 2, 3], [4, 5, 6]])
        os.rename(self.directory + "/blobs/2", self.directory + "/elsewhere/2")
        os.remove(self.directory + "/snapshots/data.bin")
        os.symlink("../elsewhere/2", self.directory + "/snapshots/data.bin")
        for module, extension in ((ort, states), (onnxruntime, onnxruntime.capi.onnxruntime_pybind11_state)):
            with self.assertRaises(extension.Fail):
                module.InferenceSession(self.directory + "/snapshots/model.onnx", providers=["CPUExecutionProvider"])

    def test_a_deleted_file_is_not_needed(self):
        path = self.directory + "/deleted.onnx"
        with open(path, "wb") as file:
            file.write(weighted())
        one = ort.InferenceSession(path)
        os.remove(path)
        self.assertEqual(one.run(None, {"x": self.x})[0].tolist(), [[1, 2, 3], [4, 5, 6]])
        with self.assertRaisesRegex(states.InvalidArgument, "no input 'v'"):
            one.run(None, {"x": self.x, "v": self.x})
        binding = one.io_binding()
        binding.bind_cpu_input("x", self.x)
        with self.assertRaisesRegex(states.InvalidArgument, "no input 'v'"):
            binding.bind_cpu_input("v", self.x)

    def test_the_model_is_written(self):
        path, parts = self.directory + "/written.onnx", self.directory + "/parts.bin"
        options = ort.SessionOptions()
        options.optimized_model_filepath = path
        options.add_free_dimension_override_by_name("rows", 2)
        ort.InferenceSession(weighted(), options)
        onnx.checker.check_model(path)
        for module in BOTH:
            one = module.InferenceSession(path, providers=["CPUExecutionProvider"])
            self.assertEqual((one.get_inputs()[0].shape, one.run(None, {"x": self.x})[0].tolist()), ([2, "columns"], [[1, 2, 3], [4, 5, 6]]))
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "parts.bin")
        options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "8")
        ort.InferenceSession(path, options)  # replaces its own source
        self.assertEqual(os.path.getsize(parts), 24)
        ort.InferenceSession(path, options)  # also the external data
        for module in BOTH:
            self.assertEqual(module.InferenceSession(path).run(None, {"x": self.x})[0].tolist(), [[1, 2, 3], [4, 5, 6]])

    def test_types_are_spelled_as_by_onnx_runtime(self):
        zipped = helper.make_graph([helper.make_node("ZipMap", ["p"], ["z"], domain="ai.onnx.ml", classlabels_int64s=[3, 4])], "zip",
                                   [helper.make_tensor_value_info("p", FLOAT, [None, 2])],
                                   [helper.make_value_info("z", helper.make_sequence_type_proto(helper.make_map_type_proto(
                                       INT64, helper.make_tensor_type_proto(FLOAT, None))))])
        zipped = helper.make_model(zipped, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)])
        sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(INT64, None))
        optional = helper.make_graph([helper.make_node("Identity", ["s"], ["t"])], "optional",
                                     [helper.make_value_info("s", sequence)], [helper.make_value_info("t", sequence)])
        optional = helper.make_model(optional, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
        for made in (zipped, optional):
            ours, theirs = (module.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"]) for module in BOTH)
            self.assertEqual([v.type for v in ours.get_inputs() + ours.get_outputs()], [v.type for v in theirs.get_inputs() + theirs.get_outputs()])
        one = ort.InferenceSession(zipped.SerializeToString())
        value, = one.run_with_ort_values(None, {"p": ort.OrtValue.ortvalue_from_numpy(np.ones((1, 2), "f4"))})
        self.assertEqual(value.data_type(), "seq(map(int64,tensor(float)))")

    def test_the_backend_interface_runs_models(self):
        from kelp.onnxruntime import backend
        from kelp.onnxruntime.backend.backend import OnnxRuntimeBackend
        prepared = OnnxRuntimeBackend.prepare(weighted())
        self.assertEqual(prepared.run(self.x)[0].tolist(), backend.run(weighted(), self.x)[0].tolist())
        self.assertTrue(backend.supports_device("CPU"))

    def test_options_come_from_the_model(self):
        os.environ["ORT_LOAD_CONFIG_FROM_MODEL"] = "1"
        self.addCleanup(os.environ.pop, "ORT_LOAD_CONFIG_FROM_MODEL")
        options = ort.InferenceSession(weighted()).get_session_options()
        self.assertEqual((options.intra_op_num_threads, options.logid), (2, "from the model"))

    def test_the_assignment_lists_the_nodes(self):
        options = ort.SessionOptions()
        with self.assertRaisesRegex(states.Fail, "must be set to \"1\""):
            ort.InferenceSession(weighted()).get_provider_graph_assignment_info()
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        subgraph, = ort.InferenceSession(weighted(), options).get_provider_graph_assignment_info()
        node, = subgraph.get_nodes()
        self.assertEqual((subgraph.ep_name, node.op_type, node.name, node.domain), ("CPUExecutionProvider", "Mul", "multiply", ""))

    def test_malformed_models_have_the_exceptions_of_onnx_runtime(self):
        invalid = onnx.load_from_string(weighted())
        invalid.graph.node[0].input[0] = "nothing"
        unknown = onnx.load_from_string(weighted())
        unknown.graph.node[0].op_type = "NoSuchOperator"
        for extension, module in ((states, ort), (onnxruntime.capi.onnxruntime_pybind11_state, onnxruntime)):
            for expected, data in ((extension.InvalidProtobuf, b"abcdefgh"), (extension.InvalidArgument, invalid), (extension.InvalidGraph, unknown)):
                with self.subTest(module=module.__name__, expected=expected), self.assertRaises(expected):
                    module.InferenceSession(data if isinstance(data, bytes) else data.SerializeToString())
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_name("rows", 2)
        with self.assertRaises(states.InvalidProtobuf):
            ort.InferenceSession(b"abcdefgh", options)
        with self.assertRaises(states.NoSuchFile):
            ort.InferenceSession("nowhere.onnx", options)
        with self.assertRaisesRegex(states.NotImplemented, "ORT format"):
            ort.InferenceSession("model.ort")

    def test_seeds_warn_for_models_that_draw_numbers(self):
        drawing = model("RandomNormalLike", [("x", FLOAT, ["n"])], [("y", FLOAT, ["n"])])
        ort.set_seed(5)
        with self.assertWarnsRegex(UserWarning, "set_seed has no effect on RandomNormalLike"):
            ort.InferenceSession(drawing)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ort.InferenceSession(weighted())


class Adapters(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = directory.name + "/one.onnx_adapter"
        self.w = np.full((2, 3), 7, "f4")

    def written_by(self, module, **parameters):
        adapter = module.AdapterFormat()
        adapter.set_adapter_version(3)
        adapter.set_model_version(4)
        adapter.set_parameters({name: module.OrtValue.ortvalue_from_numpy(array) for name, array in parameters.items()})
        adapter.export_adapter(self.path)

    def test_files_are_those_of_onnx_runtime(self):
        parameters = {"w": self.w, "second one": np.arange(5), "one": np.array([2.5], "f4"), "half": np.zeros((2, 0), "f2"), "b": np.arange(3, dtype="i4")}
        for writer in BOTH:
            self.written_by(writer, **parameters)
            for reader in BOTH:
                adapter = reader.AdapterFormat.read_adapter(self.path)
                self.assertEqual((adapter.get_format_version(), adapter.get_adapter_version(), adapter.get_model_version()), (1, 3, 4))
                found = adapter.get_parameters()
                self.assertEqual(set(found), set(parameters))
                for name, array in parameters.items():
                    np.testing.assert_array_equal(found[name].numpy(), array)
                    self.assertEqual(found[name].numpy().dtype, array.dtype)

    def test_runs_use_the_parameters(self):
        x = np.ones((2, 3), "f4")
        self.written_by(ort, w=self.w)
        for module in BOTH:
            adapter, options = module.LoraAdapter(), module.RunOptions()
            adapter.Load(self.path)
            options.add_active_adapter(adapter)
            one = module.InferenceSession(weighted(), providers=["CPUExecutionProvider"])
            self.assertEqual(one.run(None, {"x": x}, options)[0].tolist(), self.w.tolist())
            self.assertEqual(one.run(None, {"x": x})[0].tolist(), [[1, 2, 3], [4, 5, 6]])
        self.written_by(ort, nothing=self.w)
        adapter, options = ort.LoraAdapter(), ort.RunOptions()
        adapter.Load(self.path)
        options.add_active_adapter(adapter)
        with self.assertRaisesRegex(states.InvalidArgument, "no input 'nothing'"):
            ort.InferenceSession(weighted()).run(None, {"x": x}, options)

    def test_malformed_files_are_rejected(self):
        self.written_by(ort, w=self.w, v=np.arange(3))
        with open(self.path, "rb") as file:
            data = file.read()
        random = np.random.default_rng(0)
        for _ in range(2000):  # never anything but an adapter or InvalidArgument or NotImplemented
            mutated = bytearray(data[:random.integers(len(data) + 1)] if random.random() < 0.3 else data)
            for at in random.integers(max(len(mutated), 1), size=3 if len(mutated) else 0):
                mutated[at] = random.integers(256)
            with open(self.path, "wb") as file:
                file.write(mutated)
            try:
                ort.AdapterFormat.read_adapter(self.path)
            except (states.InvalidArgument, states.NotImplemented):
                pass
        with self.assertRaisesRegex(states.NotFound, "cannot open adapter"):
            ort.AdapterFormat.read_adapter(self.path + ".missing")
        with self.assertRaisesRegex(RuntimeError, "tensor of STRING"):
            self.written_by(ort, words=np.array(["a"]))
        with self.assertRaisesRegex(TypeError, "expected an OrtValue"):
            ort.AdapterFormat().set_parameters({"w": self.w})


class Profiles(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.prefix = directory.name + "/trace"

    def test_a_trace_has_runs_and_nodes(self):
        before = time.monotonic_ns()
        one = session(enable_profiling=True, profile_file_prefix=self.prefix)
        self.assertTrue(before <= one.get_profiling_start_time_ns() <= time.monotonic_ns())
        options = ort.RunOptions()
        options.logid = "second"
        one.run(None, {"image": IMAGE})
        one.run(None, {"image": IMAGE}, options)
        path = one.end_profiling()
        one.run(None, {"image": IMAGE})
        self.assertTrue(path.startswith(self.prefix), path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)
        runs = [event for event in events if event["name"] == "model_run"]
        nodes = [event for event in events if event["cat"] == "Node"]
        self.assertEqual([run["args"] for run in runs], [{}, {"logid": "second"}])
        self.assertEqual({node["args"]["provider"] for node in nodes}, {"CPUExecutionProvider"})
        self.assertIn("Gemm", {node["args"]["op_name"] for node in nodes})
        for event in events:
            self.assertLessEqual({"cat", "pid", "tid", "dur", "ts", "ph", "name", "args"}, set(event))
            self.assertEqual(event["ph"], "X")
        for run in runs:  # nodes are inside their run
            inside = [n for n in nodes if run["ts"] <= n["ts"] and n["ts"] + n["dur"] <= run["ts"] + run["dur"]]
            self.assertEqual(len(inside), len(nodes) // 2)
        self.assertEqual(one.end_profiling(), "")  # as in ONNX Runtime
        self.assertEqual(session().end_profiling(), "")
        self.assertEqual(session().get_profiling_start_time_ns(), 0)

    def test_a_trace_is_written_when_the_session_ends(self):
        one = session(enable_profiling=True, profile_file_prefix=self.prefix)
        one.run(None, {"image": IMAGE})
        del one
        gc.collect()
        path, = glob.glob(self.prefix + "*.json")
        with open(path, encoding="utf-8") as file:
            self.assertIn("model_run", {event["name"] for event in json.load(file)})

    def test_a_model_that_is_not_loaded_leaves_no_trace(self):
        with self.assertRaises(states.NoSuchFile):
            session("nowhere.onnx", enable_profiling=True, profile_file_prefix=self.prefix)
        gc.collect()
        self.assertEqual(glob.glob(self.prefix + "*"), [])


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
        with self.assertWarnsRegex(UserWarning, "'CUDAExecutionProvider' is not available: the model runs on the CPU"):
            one = ort.InferenceSession(DIGITS, providers=["CUDAExecutionProvider"])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ort.InferenceSession(DIGITS, providers=["CUDAExecutionProvider"])
            ort.SessionOptions().enable_mem_pattern = False
            ort.SessionOptions().add_session_config_entry("session.some_thing", "1")
        self.assertEqual([os.path.basename(warning.filename) for warning in caught], ["test_onnxruntime.py"] * 3)
        self.assertEqual(one.get_providers(), ["CPUExecutionProvider"])
        with self.assertRaisesRegex(RuntimeError, "Unknown Provider Type: CUDAExecutionProvid:"):
            one.set_providers(["CUDAExecutionProvid"])
        one.set_providers(["CPUExecutionProvider"])
        self.assertEqual(one.get_provider_options(), {"CPUExecutionProvider": {}})
        with self.assertWarnsRegex(UserWarning, "argument 'disabled_optimizers' has no effect"):
            ort.InferenceSession(DIGITS, disabled_optimizers=["ConstantFolding"])


class Backends(unittest.TestCase):
    def test_keyword_arguments_are_options(self):
        image = np.zeros((2, 1, 8, 8), "float32")
        from kelp.onnxruntime import backend
        from kelp.onnxruntime.backend.backend_rep import OnnxRuntimeBackendRep
        prepared = backend.prepare(DIGITS, None, intra_op_num_threads=2, graph_optimization_level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL, unknown=1)
        self.assertIsInstance(prepared, OnnxRuntimeBackendRep)
        self.assertEqual(prepared.session.get_session_options().intra_op_num_threads, 2)
        digit = prepared.run(image, logid="one", unknown=1).digit
        for model in (prepared, prepared.session):
            np.testing.assert_array_equal(backend.run(model, {"image": image}).digit, digit)
        # those that write files or stop runs are not for users of a service
        for name, value in (("optimized_model_filepath", "/nowhere/x"), ("enable_profiling", True), ("profile_file_prefix", "/nowhere/x"), ("terminate", True)):
            with self.assertRaisesRegex(RuntimeError, f"Options.{name} is not permitted"):
                backend.run(DIGITS, [image], **{name: value})

    def test_the_only_input_may_be_a_map(self):
        graph = helper.make_graph([helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", "b"])], "g",
                                  [helper.make_value_info("x", helper.make_map_type_proto(onnx.TensorProto.STRING, helper.make_tensor_type_proto(11, [])))],
                                  [helper.make_tensor_value_info("y", 11, [1, 2])])
        prepared = kelp.backend.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=10))
        np.testing.assert_array_equal(prepared.run({"b": 2.0}).y, [[0, 2]])
        np.testing.assert_array_equal(prepared.run({"x": {"b": 2.0}}).y, [[0, 2]])
        with self.assertRaisesRegex(ValueError, "wrong number of inputs"):
            prepared.run([{"a": 1.0}, {"b": 1.0}])

    def test_values_of_maps_have_the_declared_type(self):
        for number in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64):
            kind = helper.make_map_type_proto(onnx.TensorProto.STRING, helper.make_tensor_type_proto(number, []))
            graph = helper.make_graph([helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", "b"])], "g",
                                      [helper.make_value_info("x", kind)], [helper.make_tensor_value_info("y", number, [1, 2])])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=10)
            for module in BOTH if number == onnx.TensorProto.FLOAT else [ort]:  # ONNX Runtime makes maps of float only
                found, = module.InferenceSession(model.SerializeToString()).run(None, {"x": {"b": 2.0}})
                self.assertEqual((found.dtype, found.tolist()), (helper.tensor_dtype_to_np_dtype(number), [[0, 2]]))


class Values(unittest.TestCase):
    @NOT_OLDER
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
        for name in ("Cpu", "Cuda"):
            info = ort.OrtMemoryInfo(name, ort.OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
            if name == "Cpu":
                self.assertEqual(ort.OrtValue.ortvalue_from_shape_and_type([2], np.int64, memory_info=info).data_type(), "tensor(int64)")
            else:
                with self.assertRaises(states.NotImplemented):
                    ort.OrtValue.ortvalue_from_shape_and_type([2], np.int64, memory_info=info)
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


class Foreign:
    """A tensor of another library, such as PyTorch: it has DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Tensors(unittest.TestCase):
    def test_tensors_of_other_libraries_are_used_in_place(self):
        one, out = session(), Foreign(np.zeros((3, 10), "f4"))
        value = ort.OrtValue.from_dlpack(Foreign(IMAGE))
        self.assertEqual(value.data_ptr(), IMAGE.ctypes.data)
        expected = one.run(["probabilities"], {"image": IMAGE})[0]
        np.testing.assert_array_equal(one.run(["probabilities"], {"image": Foreign(IMAGE)})[0], expected)
        binding = one.io_binding()
        binding.bind_cpu_input("image", Foreign(IMAGE))
        binding.bind_output("probabilities", out)
        one.run_with_iobinding(binding)
        np.testing.assert_array_equal(out.array, expected)
        self.assertEqual(binding.get_outputs()[0].data_ptr(), out.array.ctypes.data)
        copied, = binding.copy_outputs_to_cpu()
        out.array[:] = 0
        np.testing.assert_array_equal(copied, expected)

    def test_types_that_numpy_lacks_are_transferred(self):
        one = ort.InferenceSession(identity(17))  # float8_e4m3fn
        value, out = (ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.array(bits, "u1"), 17) for bits in ([0x38, 0x40], [0, 0]))
        binding = one.io_binding()
        binding.bind_input("x", "cpu", 0, 17, [2], value.data_ptr())
        binding.bind_output("y", "cpu", 0, 17, [2], out.data_ptr())
        one.run_with_iobinding(binding)
        self.assertEqual(out.numpy().astype("f4").tolist(), [1, 2])
        self.assertEqual(binding.copy_outputs_to_cpu()[0].astype("f4").tolist(), [1, 2])
        self.assertEqual(binding.get_outputs()[0].data_type(), "tensor(float8e4m3fn)")


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


    def run_as_onnxruntime(self, *words, errors="", **options):
        done = subprocess.run([sys.executable, "-m", "kelp.as_onnxruntime", *words], capture_output=True, text=True, check=False, **options)
        self.assertRegex(done.stderr, f"^{errors}$")
        return done.returncode, done.stdout.splitlines()

    def test_programs_run_as_onnxruntime(self):
        code = """
import importlib.metadata, importlib.util, multiprocessing, sys
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import NoSuchFile

def child(path):
    import onnxruntime
    return onnxruntime.get_build_info(), onnxruntime.InferenceSession(path).get_outputs()[0].name

if __name__ == "__main__":
    print(sys.argv[1:], onnxruntime.__name__, importlib.metadata.version("onnxruntime") == onnxruntime.__version__)
    print(importlib.util.find_spec("onnxruntime") is not None, "onnxruntime" in importlib.metadata.packages_distributions())
    try:
        onnxruntime.InferenceSession("nowhere.onnx")
    except NoSuchFile:
        print("caught")
    if len(sys.argv) > 1 and sys.argv[0].endswith("app.py"):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            info, name = pool.apply(child, sys.argv[1:])
            print("Kelp" in info, name)
    sys.exit(3)
"""
        with tempfile.TemporaryDirectory() as directory:
            with open(directory + "/app.py", "w", encoding="utf-8") as file:
                file.write(code)
            expected = [f"[{DIGITS!r}] kelp.onnxruntime True", "True True", "caught"]
            self.assertEqual(self.run_as_onnxruntime(directory + "/app.py", DIGITS), (3, [*expected, "True probabilities"]))
            self.assertEqual(self.run_as_onnxruntime("-c", code, DIGITS), (3, expected))
            self.assertEqual(self.run_as_onnxruntime("-m", "app", DIGITS, cwd=directory), (3, [*expected, "True probabilities"]))
        shim, = self.run_as_onnxruntime("--path")[1]
        path = os.pathsep.join(filter(None, [shim, os.environ.get("PYTHONPATH")]))
        done = subprocess.run([sys.executable, "-c", "import onnxruntime; print(onnxruntime.__name__)"], env={**os.environ, "PYTHONPATH": path},
                              capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "kelp.onnxruntime\n")
        self.assertEqual(self.run_as_onnxruntime(errors="Runs a program[^$]*")[0], 2)
        self.assertEqual(self.run_as_onnxruntime("--module", "app", errors="kelp.as_onnxruntime: unknown option '--module': expected a program, -m, -c or --path\n"),
                         (2, []))

    def test_tools_of_an_installed_onnx_runtime_work(self):
        code = """
import numpy, onnx, onnxruntime, sys
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.io_binding_helper import TypeHelper
import onnxruntime.quantization.calibrate as calibrate
assert calibrate.onnxruntime.InferenceSession is onnxruntime.InferenceSession
quantize_dynamic(sys.argv[1], sys.argv[2], weight_type=QuantType.QUInt8)
session = onnxruntime.InferenceSession(sys.argv[2])
print(TypeHelper.get_io_numpy_type_map(session)["digit"].__name__)
"""
        with tempfile.TemporaryDirectory() as directory:
            code_, lines = self.run_as_onnxruntime("-W", "ignore", "-c", code, DIGITS, directory + "/quantized.onnx",
                                                   errors="WARNING:root:Please consider to run pre-processing.*\n")
        self.assertEqual((code_, lines[-1:]), (0, ["int64"]))


    def test_missing_tools_are_reported(self):
        code = """
import sys
from kelp import _upstream
_upstream.directory = lambda: None
try:
    import kelp.onnxruntime.quantization
except ImportError as error:
    print(error)
from kelp.onnxruntime.transformers.io_binding_helper import TypeHelper
print(TypeHelper.ort_type_to_numpy_type("tensor(float)").__name__, TypeHelper.ort_type_to_onnx_type("tensor(bfloat16)"))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "onnxruntime.quantization is not part of Kelp: install the package onnxruntime, whose tools then work on "
                                      "Kelp's sessions\nfloat32 16\n")


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
