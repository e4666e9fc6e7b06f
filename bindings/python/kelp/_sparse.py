# SPDX-License-Identifier: Apache-2.0
"""SparseTensor: the values of a sparse tensor and their indices, in numpy arrays."""
import enum

import numpy

from ._error import Code, KelpError
from ._types import check_cpu, name_of, word

__all__ = ["OrtSparseFormat", "SparseBlockSparseView", "SparseCooView", "SparseCsrView", "SparseTensor"]


class OrtSparseFormat(enum.IntEnum):
    """Formats of a sparse tensor."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


def view_of(array):
    """Returns a read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view


class SparseCooView:
    """The indices of a tensor in COO format."""

    def __init__(self, indices):
        self._indices = indices

    def indices(self):
        """Returns the indices, linear (1-D) or per axis (2-D)."""
        return view_of(self._indices)


class SparseBlockSparseView(SparseCooView):
    """The indices of a tensor in block-sparse format."""


class SparseCsrView:
    """The indices of a tensor in CSR format."""

    def __init__(self, inner, outer):
        self._inner = inner
        self._outer = outer

    def inner(self):
        """Returns the columns of the values."""
        return view_of(self._inner)

    def outer(self):
        """Returns the index of each row's first value, and the number of values."""
        return view_of(self._outer)


class SparseTensor:
    """A sparse tensor on the CPU, which uses the arrays in place. Sessions do not take sparse inputs.

    >>> import numpy, kelp.onnxruntime as ort
    >>> cpu = ort.OrtDevice.make("cpu", 0)
    >>> sparse = ort.SparseTensor.sparse_coo_from_numpy([3, 3], numpy.ones(2, "float32"), numpy.array([0, 4]), cpu)
    >>> sparse.dense_shape(), sparse.data_type(), sparse.as_coo_view().indices()
    ([3, 3], 'sparse_tensor(float)', array([0, 4]))
    """

    def __init__(self, sparse_tensor):
        if not isinstance(sparse_tensor, SparseTensor):
            raise ValueError(f"SparseTensor: expected a SparseTensor, found '{type(sparse_tensor).__name__}'")
        self.__dict__.update(sparse_tensor.__dict__)

    @classmethod
    def _make(cls, form, dense_shape, values, device, **indices):
        check_cpu(device, "the sparse tensor")
        self = cls.__new__(cls)
        self._form = form
        self._shape = [int(size) for size in dense_shape]
        self._values = numpy.asarray(values)
        if self._values.dtype.kind in "US":
            self._values = self._values.astype(object)
        self._indices = {name: numpy.asarray(array) for name, array in indices.items()}
        for name, array in self._indices.items():
            if array.dtype.kind not in "iu":
                raise KelpError(f"{name} has type {array.dtype}: expected integers", Code.INVALID_ARGUMENT)
        return self

    @classmethod
    def sparse_coo_from_numpy(cls, dense_shape, values, coo_indices, ort_device):
        """Returns a tensor in COO format. coo_indices: int64, one linear index for each value, or one row of indices for each value."""
        self = cls._make(OrtSparseFormat.ORT_SPARSE_COO, dense_shape, values, ort_device, coo_indices=coo_indices)
        count, indices = self._values.size, self._indices["coo_indices"]
        if indices.ndim not in (1, 2) or indices.size not in (count, count * len(self._shape)):
            raise KelpError(f"coo_indices has {indices.size} elements: expected {count} or {count * len(self._shape)} for {count} values",
                            Code.INVALID_ARGUMENT)
        return self

    @classmethod
    def sparse_csr_from_numpy(cls, dense_shape, values, inner_indices, outer_indices, ort_device):
        """Returns a tensor in CSR format. inner_indices: the column of each value; outer_indices: where each row begins, and the end."""
        self = cls._make(OrtSparseFormat.ORT_SPARSE_CSRC, dense_shape, values, ort_device, inner_indices=inner_indices,
                         outer_indices=outer_indices)
        if len(self._shape) != 2:
            raise KelpError(f"dense_shape has {len(self._shape)} dimensions: CSR expects 2", Code.INVALID_ARGUMENT)
        for name, expected in (("inner_indices", self._values.size), ("outer_indices", self._shape[0] + 1)):
            if self._indices[name].size != expected:
                raise KelpError(f"{name} has {self._indices[name].size} elements: expected {expected}", Code.INVALID_ARGUMENT)
        return self

    @classmethod
    def blocksparse_from_numpy(cls, dense_shape, values, indices, ort_device):
        """Returns a tensor in block-sparse format. indices: int32, two for each block."""
        return cls._make(OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE, dense_shape, values, ort_device, indices=indices)

    def _view(self, form, cls, *names):
        if self._form != form:
            raise KelpError(f"the sparse tensor has the format {self._form.name}: expected {form.name}", Code.FAILED_PRECONDITION)
        return cls(*(self._indices[name] for name in names))

    def values(self):
        """Returns the values, a read-only view; strings as str objects."""
        return view_of(self._values)

    def as_coo_view(self):
        """Returns the SparseCooView."""
        return self._view(OrtSparseFormat.ORT_SPARSE_COO, SparseCooView, "coo_indices")

    get_coo_data = as_coo_view

    def as_csrc_view(self):
        """Returns the SparseCsrView."""
        return self._view(OrtSparseFormat.ORT_SPARSE_CSRC, SparseCsrView, "inner_indices", "outer_indices")

    get_csrc_data = as_csrc_view

    def as_blocksparse_view(self):
        """Returns the SparseBlockSparseView."""
        return self._view(OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE, SparseBlockSparseView, "indices")

    get_blocksparse_data = as_blocksparse_view

    def to_cuda(self, ort_device):
        """Raises NotImplemented: Kelp's values are on the CPU."""
        raise KelpError(f"cannot copy a sparse tensor to {ort_device!r}: values are on the CPU", Code.UNIMPLEMENTED)

    def format(self):
        """Returns the OrtSparseFormat."""
        return self._form

    def dense_shape(self):
        """Returns the shape of the dense tensor."""
        return list(self._shape)

    def data_type(self):
        """Returns the type, such as 'sparse_tensor(float)'."""
        return f"sparse_tensor({word(name_of(self._values.dtype))})"

    def device_name(self):
        """Returns 'cpu'."""
        return "cpu"

    def _get_c_tensor(self):
        return self

    def __repr__(self):
        return f"SparseTensor({self.data_type()}, shape={self._shape}, values={self._values.size}, {self._form.name})"
