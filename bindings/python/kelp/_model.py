# SPDX-License-Identifier: Apache-2.0
"""Serialized ONNX models: what a session needs besides the engine, and changes before loading. Source: onnx.proto of release 1.23."""
import ctypes
import mmap
import os
import re
import warnings

import numpy

from . import _kelp
from ._error import Code, KelpError
from ._types import NAMES, NUMBERS, word
from ._wire import bytes_field, fields, get, number_field, signed, text, text_field, varint_at

# Numbers of fields.
IR_VERSION, GRAPH, METADATA = 1, 7, 14
NODE, INITIALIZER, INPUT, OUTPUT = 1, 5, 11, 12
VALUE_NAME, VALUE_TYPE = 1, 2
TENSOR_TYPE, SEQUENCE_TYPE, MAP_TYPE, SPARSE_TYPE, OPTIONAL_TYPE = 1, 4, 5, 8, 9
ELEMENT, SHAPE, DIMENSION = 1, 2, 1
DIM_VALUE, DIM_NAME, DIM_DENOTATION = 1, 2, 3
DIMS, DATA_TYPE, FLOATS, INT32S, STRINGS, INT64S, NAME, RAW, DOUBLES, UINT64S, EXTERNAL, LOCATION = 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14
NODE_NAME, NODE_OP, NODE_ATTRIBUTE, NODE_DOMAIN, ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS = 3, 4, 5, 7, 6, 11
ALIGNMENT = 64
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


def read(path):
    """Returns the contents of a file, mapped."""
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""


def is_model(data):
    """Returns whether the bytes are a ModelProto with a graph."""
    try:
        graph = get(data, GRAPH)
        return isinstance(graph, memoryview) and all(True for _ in fields(graph))
    except ValueError:
        return False


# ---- reading ----
def type_name(data):
    """Returns ONNX Runtime's name of a TypeProto, such as 'seq(map(int64,tensor(float)))'."""
    for number, value, _ in fields(data):
        if number in (TENSOR_TYPE, SPARSE_TYPE):
            element = word(NAMES.get(get(value, ELEMENT, 0), "undefined"))
            return f"{'sparse_' if number == SPARSE_TYPE else ''}tensor({element})"
        if number in (SEQUENCE_TYPE, OPTIONAL_TYPE):
            return f"{'seq' if number == SEQUENCE_TYPE else 'optional'}({type_name(get(value, 1, b''))})"
        if number == MAP_TYPE:
            return f"map({word(NAMES.get(get(value, 1, 0), 'undefined'))},{type_name(get(value, 2, b''))})"
    return "undefined"


def value_types(data):
    """Returns {name: type} of the inputs and outputs that declare a type."""
    found = {}
    for number, value, _ in fields(get(data, GRAPH, b"")):
        if number in (INPUT, OUTPUT) and get(value, VALUE_TYPE) is not None:
            found[text(get(value, VALUE_NAME, b""))] = type_name(get(value, VALUE_TYPE))
    return found


def map_values(types):
    """Returns {name: element type} of the values of maps, from the result of value_types."""
    found = {name: re.search(r"map\(\w+,tensor\((\w+)\)\)", kind) for name, kind in types.items()}
    return {name: next(element for element in NUMBERS if word(element) == match[1]) for name, match in found.items() if match}


def shape_of(data):
    """Returns the shape of a tensor type: numbers, names of dynamic dimensions, None."""
    shape = get(get(data, TENSOR_TYPE, b""), SHAPE)
    if shape is None:
        return None
    sizes = []
    for number, value, _ in fields(shape):
        if number == DIMENSION:
            size, name = get(value, DIM_VALUE), get(value, DIM_NAME)
            sizes.append(signed(size) if size is not None else text(name) if name else None)
    return sizes


def overridable(data):
    """Returns {name: (dtype, shape)} of the inputs that have an initializer. Models before IR version 4 have none: there, all
    initializers are inputs."""
    if get(data, IR_VERSION, 0) < 4:
        return {}
    inputs, initialized = {}, set()
    for number, value, _ in fields(get(data, GRAPH, b"")):
        if number == INPUT:
            kind = get(value, VALUE_TYPE, b"")
            inputs[text(get(value, VALUE_NAME, b""))] = NAMES.get(get(get(kind, TENSOR_TYPE, b""), ELEMENT, 0)), shape_of(kind)
        elif number == INITIALIZER:
            initialized.add(text(get(value, NAME, b"")))
    return {name: found for name, found in inputs.items() if name in initialized}


def metadata(data, key):
    """Returns a metadata entry, or None."""
    for number, value, _ in fields(data):
        if number == METADATA and text(get(value, 1, b"")) == key:
            return text(get(value, 2, b""))
    return None


def nodes(data):
    """Yields (op_type, name, domain, attributes) of the nodes of the main graph and its subgraphs; attributes: {name: message}."""
    graphs = [get(data, GRAPH, b"")]
    while graphs:
        for number, value, _ in fields(graphs.pop()):
            if number != NODE:
                continue
            words, attributes = {NODE_NAME: "", NODE_OP: "", NODE_DOMAIN: ""}, {}
            for inner, part, _ in fields(value):
                if inner in words:
                    words[inner] = text(part)
                elif inner == NODE_ATTRIBUTE:
                    attributes[text(get(part, 1, b""))] = part
                    graphs += [graph for which, graph, _ in fields(part) if which in (ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS)]
            yield words[NODE_OP], words[NODE_NAME], words[NODE_DOMAIN], attributes


def unseeded(data):
    """Returns the types of the nodes that draw random numbers without a seed."""
    return sorted({op for op, _, domain, attributes in nodes(data) if op in RANDOM and domain in ("", "ai.onnx") and "seed" not in attributes})


# ---- tensors ----
class Tensor:
    """A TensorProto: name, data_type, dims, external ({key: value}, or None), and its fields."""

    def __init__(self, data):
        self.data = data
        self.dims = []
        self.name, self.data_type, self.external, location = "", 0, {}, 0
        for number, value, _ in fields(data):
            if number == DIMS:
                self.dims += packed(value)
            elif number == NAME:
                self.name = text(value)
            elif number == DATA_TYPE:
                self.data_type = value
            elif number == LOCATION:
                location = value
            elif number == EXTERNAL:
                self.external[text(get(value, 1, b""))] = text(get(value, 2, b""))
        if location != 1:
            self.external = None

    def external_bytes(self, files, directory):
        """Returns the bytes of external data, from the contents of files or from a directory."""
        location, offset = self.external.get("location", ""), int(self.external.get("offset", 0))
        if location in files:
            data = files[location]
        elif directory is None:
            raise KelpError(f"initializer '{self.name}' has external data in '{location}': the model was not loaded from a file",
                            Code.INVALID_ARGUMENT)
        else:
            try:
                data = memoryview(read(os.path.join(directory, location)))
            except OSError as error:
                raise KelpError(f"initializer '{self.name}': cannot read external data: {error}", Code.NOT_FOUND) from None
        size = int(self.external.get("length", len(data) - offset))
        if offset < 0 or size < 0 or offset + size > len(data):
            raise KelpError(f"initializer '{self.name}': external data '{location}' has {len(data)} bytes: expected {offset + size}",
                            Code.INVALID_ARGUMENT)
        return memoryview(data)[offset:offset + size]

    def inner_bytes(self):
        """Returns the bytes of the elements, little-endian, or None for strings."""
        name = NAMES.get(self.data_type, "string")
        if name == "string":
            return None
        kept = []
        for number, value, _ in fields(self.data):
            if number == RAW:
                return value
            if number in (FLOATS, DOUBLES):
                kept.append(bytes(value))
            elif number in (INT32S, INT64S, UINT64S):
                dtype = {"float16": "uint16", "bfloat16": "uint16"}.get(name, name if name in NUMBERS and name[:3] in ("int", "uin", "boo") else "u1")
                numbers = numpy.array(packed(value), dtype="int64" if number != UINT64S else "uint64")
                kept.append(numbers.astype(dtype).tobytes())
        return b"".join(kept)


def packed(value):
    """Returns the integers of a repeated field, packed or not."""
    if isinstance(value, int):
        return [signed(value)]
    numbers, at = [], 0
    while at < len(value):
        number, at = varint_at(value, at)
        numbers.append(signed(number))
    return numbers


def tensor_parts(name, data_type, dims, *fields_after):
    """Returns the parts of an initializer field."""
    head = b"".join([number_field(DIMS, size) for size in dims] + [number_field(DATA_TYPE, data_type), text_field(NAME, name)])
    return bytes_field(INITIALIZER, head, *fields_after)


def value_parts(name, value):
    """Returns the parts of an initializer field with the elements of an OrtValue."""
    dims, data = value.shape(), value._tensor()
    if value.data_type() == "tensor(string)":
        items = [item if isinstance(item, bytes) else str(item).encode() for item in data.ravel().tolist()]
        return tensor_parts(name, NUMBERS["string"], dims, *(part for item in items for part in bytes_field(STRINGS, item)))
    raw = ctypes.string_at(data.data, value.tensor_size_in_bytes()) if isinstance(data, _kelp.DLTensor) else data.tobytes()
    return tensor_parts(name, value.element_type(), dims, *bytes_field(RAW, raw))


# ---- changes ----
def with_dimensions(field, dimensions, used):
    """Returns the parts of an input or output field in which dynamic dimensions have sizes. Adds the keys of those to a set."""
    def rebuilt(data, path):
        """Returns the parts of a message in which the dimensions at the end of a path of fields are replaced."""
        parts = []
        for number, value, raw in fields(data):
            if number != path[0]:
                parts.append(raw)
            elif len(path) > 1:
                parts += bytes_field(number, *rebuilt(value, path[1:]))
            else:
                keys = [(word, text(get(value, key, b""))) for word, key in (("name", DIM_NAME), ("denotation", DIM_DENOTATION))]
                used.update(keys)
                size = next((dimensions[key] for key in keys if key in dimensions and key[1]), None)
                parts += [raw] if size is None or get(value, DIM_VALUE) is not None else bytes_field(number, number_field(DIM_VALUE, size))
        return parts
    (number, value, _), = fields(field)
    return bytes_field(number, *rebuilt(value, (VALUE_TYPE, TENSOR_TYPE, SHAPE, DIMENSION)))


def check_replacement(tensor, value):
    """Raises InvalidArgument if an OrtValue does not have the type and shape of an initializer."""
    expected, found = (tensor.data_type, tensor.dims), (value.element_type(), value.shape())
    if expected != found:
        words = [f"{NAMES.get(kind, kind)} {shape}" for kind, shape in (expected, found)]
        raise KelpError(f"initializer '{tensor.name}' is {words[0]}: the value is {words[1]}", Code.INVALID_ARGUMENT)


def changed(data, options, as_inputs=()):
    """Returns the bytes of a model with the dimensions, initializers and files of SessionOptions. as_inputs: names of initializers that
    become inputs."""
    initializers, dimensions, files, left = options._initializers, options._dimensions, options._files, set(options._initializers)
    used = set()

    def initializer(value, raw):
        tensor = Tensor(value)
        if tensor.name in as_inputs:
            return []
        if tensor.name in initializers:
            left.discard(tensor.name)
            check_replacement(tensor, initializers[tensor.name])
            return value_parts(tensor.name, initializers[tensor.name])
        if tensor.external is not None and tensor.external.get("location") in files:
            return tensor_parts(tensor.name, tensor.data_type, tensor.dims, *bytes_field(RAW, tensor.external_bytes(files, None)))
        return [raw]

    parts = []
    for number, value, raw in fields(get(data, GRAPH, b"")):
        if number == INITIALIZER:
            parts += initializer(value, raw)
        elif number in (INPUT, OUTPUT) and dimensions:
            parts += with_dimensions(raw, dimensions, used)
        else:
            parts.append(raw)
    if left:
        raise KelpError(f"the model has no initializer '{min(left)}'", Code.INVALID_ARGUMENT)
    for kind, word in sorted(set(dimensions) - used):
        warnings.warn(f"the model has no dimension with the {kind} '{word}': its override has no effect", stacklevel=5)
    return with_graph(data, parts)


def with_graph(data, parts):
    """Returns the bytes of a model with the parts of another graph."""
    kept = [raw for number, _, raw in fields(data) if number != GRAPH]
    return b"".join([*kept, *bytes_field(GRAPH, *parts)])


def write(data, path, directory, external_file=None, external_bytes=0):
    """Writes a model to a file. External data is read from `directory`. With `external_file`, a path relative to the file, the elements of
    initializers of at least `external_bytes` bytes are written there; without, all are in the model. Existing files are replaced at the end,
    so that they may be the source."""
    parts, chunks, at = [], [], 0
    for number, value, raw in fields(get(data, GRAPH, b"")):
        tensor = Tensor(value) if number == INITIALIZER else None
        if tensor is None or tensor.external is None and external_file is None:
            parts.append(raw)
            continue
        elements = tensor.inner_bytes() if tensor.external is None else tensor.external_bytes({}, directory)
        if elements is None or external_file is None or len(elements) < external_bytes:
            parts += [raw] if tensor.external is None else tensor_parts(tensor.name, tensor.data_type, tensor.dims, *bytes_field(RAW, elements))
            continue
        chunks += [bytes(-at % ALIGNMENT), elements]
        at += -at % ALIGNMENT
        entries = [text_field(1, key) + text_field(2, entry) for key, entry in
                   (("location", external_file), ("offset", str(at)), ("length", str(len(elements))))]
        parts += tensor_parts(tensor.name, tensor.data_type, tensor.dims, *(part for entry in entries for part in bytes_field(EXTERNAL, entry)),
                              number_field(LOCATION, 1))
        at += len(elements)
    if external_file is not None:
        replace(os.path.join(os.path.dirname(path), external_file), chunks)
    replace(path, [with_graph(data, parts)])


def replace(path, chunks):
    """Writes a file next to its final place, and moves it there."""
    temporary = f"{path}.{os.getpid()}.part"
    with open(temporary, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
    os.replace(temporary, path)
