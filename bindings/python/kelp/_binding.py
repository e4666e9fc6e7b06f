# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs that are bound to a session for several runs."""
from . import _kelp
from ._error import Code, KelpError
from ._types import OrtDevice, check_cpu, name_of
from ._value import OrtValue, OrtValueVector, from_result

__all__ = ["IOBinding"]


def memory_at(what, element_type, shape, buffer_ptr):
    """Returns a tensor on the memory at an address, which the caller keeps."""
    if element_type is None or shape is None:
        raise ValueError(f"{what}: element_type and shape are required with buffer_ptr")
    name = name_of(element_type)
    if name == "string":
        raise KelpError(f"{what}: Only binding non-string Tensors is supported, because the memory of strings is not theirs",
                        Code.INVALID_ARGUMENT)
    return _kelp.DLTensor(buffer_ptr, tuple(shape), name, "cpu")


class IOBinding:
    """Inputs and outputs of a session that are bound to arrays and used in place.

    >>> import numpy, kelp.onnxruntime as ort
    >>> session = ort.InferenceSession("examples/models/digits/1/model.onnx")
    >>> binding = session.io_binding()
    >>> binding.bind_cpu_input("image", numpy.zeros((2, 1, 8, 8), "float32"))
    >>> binding.bind_output("digit")
    >>> session.run_with_iobinding(binding)
    >>> binding.get_outputs()
    [OrtValue(tensor(int64), shape=[2])]
    """

    def __init__(self, session):
        self._session = session
        self._inputs = {}
        self._outputs = {}
        self._results = []

    def bind_cpu_input(self, name, arr_on_cpu):
        """Binds an array to an input. Every run reads it in place."""
        if not self._session._is_input(name):
            raise KelpError(f"the model has no input '{name}'", Code.INVALID_ARGUMENT)
        self._inputs[name] = arr_on_cpu

    def bind_ortvalue_input(self, name, ortvalue):
        """Binds an OrtValue to an input. Every run reads it in place."""
        if not isinstance(ortvalue, OrtValue):
            raise TypeError(f"input '{name}': expected an OrtValue, found '{type(ortvalue).__name__}'")
        self.bind_cpu_input(name, ortvalue)

    def bind_input(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        """Binds memory at an address to an input. element_type: a numpy type, or a number of onnx.TensorProto. Also takes
        (name, OrtDevice, element_type, shape, buffer_ptr) and (name, array), as ONNX Runtime's extension module does."""
        if isinstance(device_type, OrtDevice):
            device_id, element_type, shape, buffer_ptr = device_type.device_id(), device_id, element_type, shape
        elif not isinstance(device_type, str):
            self.bind_cpu_input(name, device_type)
            return
        check_cpu(device_type, f"input '{name}'")
        self.bind_cpu_input(name, memory_at(f"input '{name}'", element_type, shape, buffer_ptr))

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        """Binds an output to memory at an address, or to a new array in each run. Also takes
        (name, OrtDevice, element_type, shape, buffer_ptr), as ONNX Runtime's extension module does, and (name, array)."""
        if isinstance(device_type, OrtDevice):
            if element_type is not None:
                device_id, element_type, shape, buffer_ptr = device_type.device_id(), device_id, element_type, shape
        elif not isinstance(device_type, str):
            self._outputs[name] = device_type
            return
        check_cpu(device_type, f"output '{name}'")
        self._outputs[name] = None if buffer_ptr is None else memory_at(f"output '{name}'", element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name, ortvalue):
        """Binds an OrtValue to an output. Every run writes to it."""
        if not isinstance(ortvalue, OrtValue):
            raise TypeError(f"output '{name}': expected an OrtValue, found '{type(ortvalue).__name__}'")
        self._outputs[name] = ortvalue

    def synchronize_inputs(self):
        """Returns None: inputs on the CPU are ready at once."""

    def synchronize_outputs(self):
        """Returns None: outputs are complete when a run returns."""

    def get_outputs(self):
        """Returns the outputs of the last run, a list of OrtValue, in the order of binding."""
        types = {value.name: value.type for value in self._session.get_outputs()} if self._results else {}
        return OrtValueVector(from_result(data, types.get(name)) for name, data in zip(self._outputs, self._results))

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self):
        """Returns the outputs of the last run as numpy arrays, in the order of binding: copies of memory that is bound to them."""
        return [item if bound is None else from_result(item, None).numpy().copy()
                for item, bound in zip(self._results, self._outputs.values())]

    def clear_binding_inputs(self):
        """Removes all bound inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self):
        """Removes all bound outputs."""
        self._outputs.clear()
        self._results = []

    @property
    def _iobinding(self):
        """The binding itself. ONNX Runtime's package has an object of its extension module here."""
        return self

    def _run(self, session, options):
        if session is not self._session:
            raise ValueError("the binding belongs to another session")
        if not self._outputs:
            raise KelpError("no output is bound: see bind_output", Code.INVALID_ARGUMENT)
        self._results = session.run_into(self._outputs, self._inputs, options)

    def __repr__(self):
        return f"IOBinding(inputs={list(self._inputs)}, outputs={list(self._outputs)})"
