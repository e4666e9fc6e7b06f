# SPDX-License-Identifier: Apache-2.0
"""OrtValue: a tensor, sequence, map or sparse tensor, for runs and bindings of sessions."""
import ctypes

import numpy

from . import _kelp
from ._error import Code, KelpError
from ._sparse import SparseTensor
from ._types import NUMBERS, SIZES, check_cpu, name_of, word

__all__ = ["OrtValue", "OrtValueVector", "copy_tensors", "from_result", "is_dlpack_uint8_tensor"]


def address_of(data):
    """Returns the address of the first element."""
    return data.data if isinstance(data, _kelp.DLTensor) else data.__array_interface__["data"][0]


def over(array, name):
    """Returns a view of an array as elements of this type: an array, or a DLTensor if numpy lacks the type."""
    try:
        return array.view(numpy.dtype(name))
    except TypeError:
        return _kelp.DLTensor(address_of(array), array.shape, name, owner=array)


class OrtValue:
    """A value on the CPU. Tensors use the memory of the array that they were made from.

    >>> import numpy, kelp.onnxruntime as ort
    >>> array = numpy.arange(6, dtype="float32").reshape(2, 3)
    >>> value = ort.OrtValue.ortvalue_from_numpy(array)
    >>> value
    OrtValue(tensor(float), shape=[2, 3])
    >>> numpy.shares_memory(value.numpy(), array)
    True
    """

    __slots__ = ("__weakref__", "_data", "_type")

    def __init__(self, ortvalue, numpy_obj=None):
        if not isinstance(ortvalue, OrtValue):
            raise ValueError(f"ortvalue: expected an OrtValue, found '{type(ortvalue).__name__}'; see OrtValue.ortvalue_from_numpy")
        self._data, self._type = ortvalue._data, ortvalue._type

    @classmethod
    def _of(cls, data, kind=None):
        """Creates a value from an array, DLTensor, list, dict, SparseTensor or None. kind: its type, such as 'seq(tensor(float))'."""
        self = cls.__new__(cls)
        self._data = data
        self._type = kind
        return self

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj, /, device_type="cpu", device_id=0, vendor_id=-1):
        """Creates a tensor on the memory of an array. An array that is not contiguous is copied."""
        check_cpu(device_type, "the value")
        if not isinstance(numpy_obj, numpy.ndarray):
            raise KelpError(f"expected a numpy array, found '{type(numpy_obj).__name__}'", Code.INVALID_ARGUMENT)
        if numpy_obj.dtype.kind in "OUSTV" and name_of(numpy_obj.dtype) == "string":
            numpy_obj = numpy_obj.astype(object)
        return cls._of(numpy.ascontiguousarray(numpy_obj) if numpy_obj.ndim else numpy_obj)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data, /, onnx_element_type):
        """Creates a tensor on the memory of an array, whose elements are of the same size but have the type onnx_element_type, a
        number of onnx.TensorProto."""
        name = name_of(onnx_element_type)
        if NUMBERS.get(name_of(data.dtype)) == onnx_element_type:
            return cls.ortvalue_from_numpy(data)
        size = SIZES.get(name) or (numpy.dtype(name).itemsize if name not in ("string", "uint4", "int4", "uint2", "int2", "float4_e2m1") else 0)
        if size != data.itemsize:
            raise KelpError(f"elements of {data.dtype} have {data.itemsize} bytes: '{name}' has {size}", Code.INVALID_ARGUMENT)
        return cls._of(over(numpy.ascontiguousarray(data), name))

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape, element_type, device_type="cpu", device_id=0, vendor_id=-1, memory_info=None):
        """Creates a tensor on new memory. element_type: a numpy type, or a number of onnx.TensorProto. memory_info: an OrtMemoryInfo in the
        place of the device."""
        check_cpu(device_type if memory_info is None else memory_info.device, "the value")
        name = name_of(element_type)
        if name == "string":
            return cls._of(numpy.full(tuple(shape), "", dtype=object))
        if name in SIZES:
            return cls._of(over(numpy.zeros(tuple(shape), dtype=f"u{SIZES[name]}"), name))
        return cls._of(numpy.empty(tuple(shape), dtype=name))

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor):
        """Creates a value that contains a SparseTensor."""
        return cls._of(SparseTensor(sparse_tensor))

    @classmethod
    def from_dlpack(cls, data, is_bool_tensor=None, /):
        """Creates a tensor on the memory of a DLPack capsule or an object with __dlpack__. is_bool_tensor: elements of uint8 are bool."""
        tensor = data._data if isinstance(data, OrtValue) else _kelp.DLTensor(data)
        if isinstance(tensor, _kelp.DLTensor):
            try:
                tensor = tensor.numpy()
            except KelpError:  # numpy lacks the type
                return cls._of(tensor)
        return cls._of(tensor.view(bool) if is_bool_tensor and tensor.dtype == "uint8" else tensor)

    # ---- reading ----
    def numpy(self):
        """Returns the elements: a view of a tensor's memory."""
        if isinstance(self._data, (numpy.ndarray, _kelp.DLTensor)):
            return self._data if isinstance(self._data, numpy.ndarray) else self._data.numpy()
        raise KelpError(f"the value is a {self.data_type()}: only tensors are numpy arrays", Code.FAILED_PRECONDITION)

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if copy is False and dtype is not None and array.dtype != dtype:
            raise ValueError(f"cannot convert {array.dtype} to {numpy.dtype(dtype)} without a copy")
        return array.astype(dtype or array.dtype, copy=bool(copy))

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return _kelp.DLTensor(self._tensor()).__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self):
        return 1, 0

    def to_dlpack(self):
        """Returns a DLPack capsule of the tensor's memory."""
        return self.__dlpack__()

    def as_sparse_tensor(self):
        """Returns the SparseTensor."""
        if not isinstance(self._data, SparseTensor):
            raise KelpError(f"the value is a {self.data_type()}, not a sparse tensor", Code.FAILED_PRECONDITION)
        return self._data

    def _tensor(self):
        if not self.is_tensor():
            raise KelpError(f"the value is a {self.data_type()}, not a tensor", Code.FAILED_PRECONDITION)
        return self._data

    # ---- description ----
    def shape(self):
        """Returns the shape, a list."""
        return self._data.dense_shape() if isinstance(self._data, SparseTensor) else list(self._tensor().shape)

    def _element(self):
        data = self._tensor()
        return data.dtype if isinstance(data, _kelp.DLTensor) else name_of(data.dtype)

    def data_type(self):
        """Returns the type, such as 'tensor(float)'."""
        if self._type is not None:
            return self._type
        if isinstance(self._data, SparseTensor):
            return self._data.data_type()
        if self.is_tensor():
            return f"tensor({word(self._element())})"
        return {list: "seq", dict: "map"}.get(type(self._data), "optional")

    def element_type(self):
        """Returns the type of the elements, a number of onnx.TensorProto."""
        return NUMBERS[self._element()]

    def device_name(self):
        """Returns 'cpu'."""
        return "cpu"

    def data_ptr(self):
        """Returns the address of the tensor's first element."""
        return address_of(self._tensor())

    def tensor_size_in_bytes(self):
        """Returns the number of bytes of a tensor."""
        data = self._tensor()
        if isinstance(data, _kelp.DLTensor):
            count = 1
            for size in data.shape:
                count *= size
            return count * SIZES[data.dtype]
        return data.nbytes

    def has_value(self):
        """Returns whether the value is not an empty optional."""
        return self._data is not None

    def is_tensor(self):
        """Returns whether the value is a dense tensor."""
        return isinstance(self._data, (numpy.ndarray, _kelp.DLTensor))

    def is_sparse_tensor(self):
        """Returns whether the value is a sparse tensor."""
        return isinstance(self._data, SparseTensor)

    def is_tensor_sequence(self):
        """Returns whether the value is a sequence of tensors."""
        return isinstance(self._data, list) and not any(isinstance(item, dict) for item in self._data)

    # ---- writing ----
    def update_inplace(self, data):
        """Copies the elements of an array or OrtValue of the same type and number of elements to this tensor."""
        if not isinstance(data, (numpy.ndarray, OrtValue)):
            raise TypeError(f"data: expected a numpy array or OrtValue, found '{type(data).__name__}'")
        source, target = numpy.asarray(data), self.numpy()
        if source.dtype != target.dtype or source.size != target.size:
            raise KelpError(f"cannot copy {source.size} elements of {source.dtype} to {target.size} of {target.dtype}", Code.INVALID_ARGUMENT)
        numpy.copyto(target, source.reshape(target.shape))

    # The names that ONNX Runtime's objects have for the object of the extension module.
    def _get_c_value(self):
        return self

    _ortvalue = property(_get_c_value)

    def __getstate__(self):
        if isinstance(self._data, _kelp.DLTensor):
            raise TypeError(f"cannot pickle an OrtValue of {self._data.dtype}: numpy lacks the type")
        return {"data": self._data, "type": self._type}

    def __setstate__(self, state):
        self._data, self._type = state["data"], state["type"]

    def __repr__(self):
        if self.is_tensor() or self.is_sparse_tensor():
            return f"OrtValue({self.data_type()}, shape={self.shape()})"
        return f"OrtValue({self.data_type()})"


def from_result(data, kind):
    """Returns the OrtValue of a result of a run, whose type is `kind`. Outputs that are bound to an OrtValue stay, and those bound to other
    objects with DLPack or the buffer protocol use their memory."""
    if isinstance(data, OrtValue):
        return data
    if data is None or isinstance(data, (list, dict)):
        return OrtValue._of(data, kind)
    if isinstance(data, (numpy.ndarray, _kelp.DLTensor)):
        return OrtValue._of(data)
    return OrtValue.from_dlpack(data) if hasattr(data, "__dlpack__") else OrtValue._of(numpy.asarray(data))


class OrtValueVector(list):
    """A list of OrtValue, with the names of ONNX Runtime's vector."""

    def push_back(self, value):
        """Appends a value."""
        self.append(value)

    def element_type_at(self, index):
        """Returns the element type of a value, a number of onnx.TensorProto."""
        return self[index].element_type()

    def dlpack_at(self, index):
        """Returns a DLPack capsule of a value."""
        return self[index].__dlpack__()

    def to_dlpacks(self, to_tensor=None):
        """Returns DLPack capsules of all values, converted by `to_tensor` if it is given."""
        capsules = [value.__dlpack__() for value in self]
        return [to_tensor(capsule) for capsule in capsules] if to_tensor else capsules

    def bool_tensor_indices(self):
        """Returns the indices of the values of bool."""
        return [i for i, value in enumerate(self) if value.is_tensor() and value.element_type() == NUMBERS["bool"]]


def copy_tensors(src, dst, stream=None):
    """Copies tensors to tensors of the same type and number of elements."""
    if len(src) != len(dst):
        raise KelpError(f"src has {len(src)} values, dst {len(dst)}", Code.INVALID_ARGUMENT)
    for source, target in zip(src, dst):
        target.update_inplace(source)


get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def is_dlpack_uint8_tensor(capsule):
    """Returns whether a DLPack capsule, which is not consumed, has elements of uint8."""
    # DLTensor: void *data; int32 device_type, device_id, ndim; uint8 code, bits; code 1 is unsigned.
    return ctypes.string_at(get_pointer(capsule, b"dltensor") + 20, 2) == b"\x01\x08"


_kelp.set_value_type(OrtValue)
