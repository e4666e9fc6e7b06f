# SPDX-License-Identifier: Apache-2.0
"""LoRA adapters: files of ONNX Runtime with values for initializers that a run overrides. A file is a FlatBuffer with the identifier TORT.
Sources: flatbuffers.dev, "FlatBuffers internals"; onnxruntime/lora/adapter_format/adapter_schema.fbs of ONNX Runtime 1.30."""
import os
import struct

import numpy

from ._error import Code, KelpError
from ._types import NAMES, SIZES
from ._value import OrtValue, over

__all__ = ["AdapterFormat", "LoraAdapter"]

IDENTIFIER = b"TORT"
FORMAT_VERSION = 1
# Fields of the tables Adapter and Parameter, both of four fields of 4 bytes.
ADAPTER_FORMAT, ADAPTER_VERSION, ADAPTER_MODEL_VERSION, ADAPTER_PARAMETERS = range(4)
PARAMETER_NAME, PARAMETER_DIMS, PARAMETER_TYPE, PARAMETER_DATA = range(4)
VTABLE = struct.pack("<6H", 12, 20, 4, 8, 12, 16)


class Reader:
    """Reads tables of a FlatBuffer. Raises struct.error or ValueError for positions outside it."""

    def __init__(self, data):
        self.data = data

    def number(self, form, at):
        """Returns the number at a position."""
        if at < 0:
            raise ValueError
        return struct.unpack_from(form, self.data, at)[0]

    def field(self, table, index):
        """Returns the position of a field, or 0 if the table lacks it."""
        vtable = table - self.number("<i", table)
        entry = 4 + 2 * index
        offset = self.number("<H", vtable + entry) if entry < self.number("<H", vtable) else 0
        return table + offset if offset else 0

    def integer(self, table, index):
        """Returns an int32 field; 0 by default."""
        at = self.field(table, index)
        return self.number("<i", at) if at else 0

    def vector(self, table, index, size):
        """Returns the position of the first element, and the number of elements."""
        at = self.field(table, index)
        if not at:
            return 0, 0
        at += self.number("<I", at)
        count = self.number("<I", at)
        if at + 4 + count * size > len(self.data):
            raise ValueError
        return at + 4, count


def read_parameter(reader, table):
    """Returns the name and the OrtValue of a parameter, on the memory of the file."""
    at, count = reader.vector(table, PARAMETER_NAME, 1)
    name = bytes(reader.data[at:at + count]).decode()
    at, count = reader.vector(table, PARAMETER_DIMS, 8)
    shape = struct.unpack_from(f"<{count}q", reader.data, at)
    kind = NAMES.get(reader.integer(table, PARAMETER_TYPE), "string")
    at, count = reader.vector(table, PARAMETER_DATA, 1)
    size = SIZES.get(kind) or (numpy.dtype(kind).itemsize if hasattr(numpy, kind) and kind != "string" else 0)
    elements = 1
    for dimension in shape:
        elements *= dimension
    if size == 0 or min(shape, default=0) < 0 or elements * size != count:
        raise ValueError
    raw = reader.data[at:at + count].view(f"u{size}" if kind in SIZES else kind)
    return name, OrtValue._of(over(raw.reshape(shape), kind))


class AdapterFormat:
    """The contents of an adapter file: versions, and parameters by name.

    >>> import numpy, tempfile, kelp.onnxruntime as ort
    >>> adapter = ort.AdapterFormat()
    >>> adapter.set_parameters({"lora_A": ort.OrtValue.ortvalue_from_numpy(numpy.ones((2, 4), "float32"))})
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     adapter.export_adapter(directory + "/one.onnx_adapter")
    ...     ort.AdapterFormat.read_adapter(directory + "/one.onnx_adapter").get_parameters()
    {'lora_A': OrtValue(tensor(float), shape=[2, 4])}
    """

    def __init__(self):
        self._adapter_version = 0
        self._model_version = 0
        self._parameters = {}

    @staticmethod
    def read_adapter(file_path):
        """Reads an adapter file."""
        path = os.fspath(file_path)
        try:
            data = numpy.fromfile(path, dtype="uint8")
        except OSError as error:
            raise KelpError(f"cannot open adapter '{path}': {error.strerror}", Code.NOT_FOUND) from None
        reader, adapter = Reader(data), AdapterFormat()
        try:
            if bytes(data[4:8]) != IDENTIFIER:
                raise ValueError
            root = reader.number("<I", 0)
            version = reader.integer(root, ADAPTER_FORMAT)
            adapter._adapter_version = reader.integer(root, ADAPTER_VERSION)
            adapter._model_version = reader.integer(root, ADAPTER_MODEL_VERSION)
            at, count = reader.vector(root, ADAPTER_PARAMETERS, 4)
            for entry in range(at, at + 4 * count, 4):
                name, value = read_parameter(reader, entry + reader.number("<I", entry))
                adapter._parameters[name] = value
        except (struct.error, ValueError, TypeError):
            raise KelpError(f"'{path}' is not an adapter, or it is malformed", Code.INVALID_ARGUMENT) from None
        if version != FORMAT_VERSION:
            raise KelpError(f"adapter '{path}' has the format version {version}: expected {FORMAT_VERSION}", Code.UNIMPLEMENTED)
        return adapter

    def export_adapter(self, file_path):
        """Writes an adapter file."""
        for name, value in self._parameters.items():
            if value.data_type() == "tensor(string)":
                raise KelpError(f"parameter '{name}' is a tensor of STRING: expected numbers", Code.INVALID_ARGUMENT)
        data = self._encoded()
        with open(file_path, "wb") as file:
            file.write(data)

    def _encoded(self):
        count = len(self._parameters)
        # the root, the vtable of both tables, the table Adapter, its vector of parameters, their tables
        tables = 40 + 4 + 4 * count
        out = bytearray(struct.pack("<I4s", 20, IDENTIFIER) + VTABLE)
        out += struct.pack("<iiiiI", 12, FORMAT_VERSION, self._adapter_version, self._model_version, 4)
        out += struct.pack("<I", count) + b"".join(struct.pack("<I", tables + 20 * i - (44 + 4 * i)) for i in range(count))
        out += bytes(20 * count)
        for i, (name, value) in enumerate(self._parameters.items()):
            table, ends = tables + 20 * i, []
            array = value.numpy()
            for align, length, content in ((1, len(name.encode()), name.encode() + b"\0"),
                                           (8, array.ndim, struct.pack(f"<{array.ndim}q", *array.shape)), (8, array.nbytes, array.tobytes())):
                out += bytes(-(len(out) + 4) % max(align, 4))  # elements are aligned, and so is the length before them
                ends.append(len(out))
                out += struct.pack("<I", length) + content
            struct.pack_into("<iIIiI", out, table, table - 8, ends[0] - (table + 4), ends[1] - (table + 8), value.element_type(),
                             ends[2] - (table + 16))
        return bytes(out)

    def get_format_version(self):
        """Returns the version of the format."""
        return FORMAT_VERSION

    def set_adapter_version(self, adapter_version):
        """Sets the version of the adapter."""
        self._adapter_version = int(adapter_version)

    def get_adapter_version(self):
        """Returns the version of the adapter."""
        return self._adapter_version

    def set_model_version(self, model_version):
        """Sets the version of the model that the adapter is for."""
        self._model_version = int(model_version)

    def get_model_version(self):
        """Returns the version of the model that the adapter is for."""
        return self._model_version

    def set_parameters(self, params):
        """Sets the parameters, a dict from names to OrtValue."""
        for name, value in params.items():
            if not isinstance(value, OrtValue) or not value.is_tensor():
                raise TypeError(f"parameter '{name}': expected an OrtValue with a tensor, found '{type(value).__name__}'")
        self._parameters = dict(params)

    def get_parameters(self):
        """Returns the parameters, a dict from names to OrtValue."""
        return dict(self._parameters)


class LoraAdapter:
    """An adapter for RunOptions.add_active_adapter: its parameters override initializers of the model."""

    def __init__(self):
        self._parameters = {}

    def Load(self, file_path):
        """Loads an adapter file."""
        self._parameters = AdapterFormat.read_adapter(file_path).get_parameters()
