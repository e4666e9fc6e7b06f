# SPDX-License-Identifier: Apache-2.0
"""ONNX's backend interface (onnx.backend.base) on Kelp.

>>> import numpy, onnx, kelp.backend
>>> prepared = kelp.backend.prepare(onnx.load("examples/models/digits/1/model.onnx"))
>>> [array.shape for array in prepared.run([numpy.zeros((3, 1, 8, 8), "float32")])]
[(3, 10), (3,)]
"""
import numpy
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ._error import Code, KelpError
from ._options import RunOptions, SessionOptions
from ._session import InferenceSession

__all__ = ["KelpBackend", "KelpBackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


# Options that write files or stop runs: keyword arguments may come from users of a service.
FORBIDDEN = {"enable_profiling", "optimized_model_filepath", "profile_file_prefix", "terminate"}


def options_of(kind, arguments):
    """Returns options with the keyword arguments that are options of this kind. Others are ignored, as ONNX Runtime ignores them."""
    options = kind()
    for name in sorted(set(arguments) & set(kind._TYPES)):
        if name in FORBIDDEN:
            raise KelpError(f"{kind.__name__}.{name} is not permitted as a keyword argument of a backend: it writes files or stops runs",
                            Code.INVALID_ARGUMENT)
        setattr(options, name, arguments[name])
    return options


class KelpBackendRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, session):
        self.session = session
        self._inputs = [item.name for item in session.get_inputs()]
        self._outputs = [item.name for item in session.get_outputs()]

    def run(self, inputs, **kwargs):
        """Runs the model and returns a named tuple. inputs: a list in the order of the model, a dict by name, or the value of the only
        input. kwargs: RunOptions."""
        if isinstance(inputs, dict) and self._inputs and not set(inputs).isdisjoint(self._inputs):
            feed = inputs
        elif isinstance(inputs, (list, tuple)):
            if len(inputs) > len(self._inputs):
                raise ValueError(f"wrong number of inputs: expected {', '.join(self._inputs) or 'none'}, found {len(inputs)}")
            feed = dict(zip(self._inputs, inputs))
        elif len(self._inputs) == 1:
            feed = {self._inputs[0]: inputs}
        else:
            raise ValueError(f"wrong number of inputs: expected {', '.join(self._inputs) or 'none'}, found one value")
        return namedtupledict("Outputs", self._outputs)(*self.session.run(None, feed, options_of(RunOptions, kwargs)))


class KelpBackend(Backend):
    """The backend of ONNX's interface."""

    @classmethod
    def supports_device(cls, device):
        """Returns whether a device such as 'CPU' is supported."""
        return device.split(":")[0].upper() == "CPU"

    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs):
        """Returns whether Kelp supports the model."""
        try:
            cls.prepare(model, device)
        except KelpError:
            return False
        return True

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        """Returns the KelpBackendRep of a ModelProto, its bytes, a path, or an InferenceSession. kwargs: SessionOptions; threads is
        intra_op_num_threads. A KelpBackendRep is returned as it is."""
        if device is not None and not cls.supports_device(device):
            raise ValueError(f"unsupported device '{device}': expected 'CPU'")
        options = options_of(SessionOptions, kwargs)
        if "threads" in kwargs:
            options.intra_op_num_threads = kwargs["threads"]
        if isinstance(model, KelpBackendRep):
            return model
        if isinstance(model, onnx.ModelProto):
            model = model.SerializeToString()
        return KelpBackendRep(model if isinstance(model, InferenceSession) else InferenceSession(model, options))

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        """Prepares the model and runs it once. kwargs: SessionOptions and RunOptions."""
        return cls.prepare(model, device, **kwargs).run(inputs, **kwargs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs):
        """Runs one node. inputs: arrays in the order of the node, or a dict by name. outputs_info: (dtype, shape) of each output, if the
        types cannot be inferred."""
        names = [name for name in node.input if name]
        arrays = [numpy.asarray(a) for a in ([inputs[name] for name in names] if isinstance(inputs, dict) else inputs)]
        given = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                 for name, array in zip(names, arrays)]
        if outputs_info is not None:
            results = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(numpy.dtype(dtype)), shape)
                       for name, (dtype, shape) in zip(node.output, outputs_info)]
        else:
            results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        graph = helper.make_graph([node], "one_node", given, results)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)], ir_version=10)
        if outputs_info is None:
            model = onnx.shape_inference.infer_shapes(model)
        return cls.run_model(model, dict(zip(names, arrays)), device)


prepare = KelpBackend.prepare
run_model = KelpBackend.run_model
run_node = KelpBackend.run_node
supports_device = KelpBackend.supports_device
is_compatible = KelpBackend.is_compatible
