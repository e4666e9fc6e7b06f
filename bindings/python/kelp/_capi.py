# SPDX-License-Identifier: Apache-2.0
"""ctypes declarations of kelp/builder.h, kelp/network.h and kelp/engine.h. Failures raise KelpError. ctypes releases the GIL during a
call."""
import ctypes
import os
import threading

import numpy

from . import _kelp
from ._error import Code, KelpError

library = ctypes.CDLL(_kelp.library_path())
MAX_RANK = 16

POINTER, SIZE, TEXT, BOOL = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_bool
INT, UINT, I64, FLOAT, DOUBLE = ctypes.c_int, ctypes.c_uint32, ctypes.c_int64, ctypes.c_float, ctypes.c_double


class Shape(ctypes.Structure):
    """kelp_shape."""

    _fields_ = [("rank", INT), ("d", I64 * MAX_RANK)]


class Weights(ctypes.Structure):
    """kelp_weights."""

    _fields_ = [("dtype", INT), ("data", POINTER), ("count", I64), ("name", TEXT)]


class CTensor(ctypes.Structure):
    """kelp_tensor."""

    _fields_ = [("data", POINTER), ("dtype", INT), ("rank", INT), ("shape", I64 * MAX_RANK), ("strides", I64 * MAX_RANK),
                ("device_type", INT), ("device_id", INT), ("flags", UINT)]


class IoInfo(ctypes.Structure):
    """kelp_io_info."""

    _fields_ = [("name", TEXT), ("dtype", INT), ("rank", INT), ("shape", I64 * MAX_RANK), ("symbols", TEXT * MAX_RANK)]


class RuntimeOptions(ctypes.Structure):
    """kelp_runtime_options."""

    _fields_ = [("struct_size", UINT), ("realloc", POINTER), ("userp", POINTER), ("threads", INT), ("log", POINTER),
                ("log_userp", POINTER), ("log_level", INT)]


class Window(ctypes.Structure):
    """kelp_window."""

    _fields_ = [("struct_size", UINT), ("stride", I64 * 3), ("dilation", I64 * 3), ("pre_padding", I64 * 3), ("post_padding", I64 * 3),
                ("padding_mode", INT), ("groups", I64), ("kernel", POINTER), ("bias", POINTER), ("include_padding", BOOL),
                ("blend", FLOAT)]


class Resize(ctypes.Structure):
    """kelp_resize."""

    _fields_ = [("struct_size", UINT), ("dims", Shape), ("scale_count", UINT), ("scales", FLOAT * MAX_RANK), ("shape", POINTER),
                ("mode", INT), ("coordinates", INT), ("rounding", INT), ("cubic_coefficient", FLOAT), ("exclude_outside", BOOL)]


class Shuffle(ctypes.Structure):
    """kelp_shuffle."""

    _fields_ = [("struct_size", UINT), ("first_transpose_given", BOOL), ("second_transpose_given", BOOL),
                ("first_transpose", INT * MAX_RANK), ("reshape_given", BOOL), ("reshape", Shape), ("shape", POINTER),
                ("zero_is_zero", BOOL), ("second_transpose", INT * MAX_RANK)]


class Slice(ctypes.Structure):
    """kelp_slice."""

    _fields_ = [("struct_size", UINT), ("mode", INT), ("start", POINTER), ("size", POINTER), ("stride", POINTER), ("fill", POINTER)]


class FillOptions(ctypes.Structure):
    """kelp_fill_options."""

    _fields_ = [("struct_size", UINT), ("alpha", DOUBLE), ("beta", DOUBLE), ("shape", POINTER), ("start", POINTER), ("delta", POINTER),
                ("dtype", INT)]


class Normalization(ctypes.Structure):
    """kelp_normalization."""

    _fields_ = [("struct_size", UINT), ("epsilon", FLOAT), ("groups", I64)]


class Attention(ctypes.Structure):
    """kelp_attention."""

    _fields_ = [("struct_size", UINT), ("causal", BOOL), ("no_softmax", BOOL), ("mask", POINTER)]


class Moe(ctypes.Structure):
    """kelp_moe."""

    _fields_ = [("struct_size", UINT), ("gate_bias", POINTER), ("up_bias", POINTER), ("down_bias", POINTER), ("activation", INT),
                ("swish", BOOL), ("alpha", FLOAT), ("beta", FLOAT)]


class Nms(ctypes.Structure):
    """kelp_nms."""

    _fields_ = [("struct_size", UINT), ("centers", BOOL), ("topk", I64), ("iou_threshold", POINTER), ("score_threshold", POINTER)]


class Allocator(ctypes.Structure):
    """kelp_allocator."""

    _fields_ = [("realloc", POINTER), ("userp", POINTER)]


class Device(ctypes.Structure):
    """DLDevice."""

    _fields_ = [("device_type", INT), ("device_id", INT)]


class EngineStats(ctypes.Structure):
    """kelp_engine_stats."""

    _fields_ = [(name, SIZE) for name in ("nodes_loaded", "nodes_planned", "weight_bytes_borrowed", "weight_bytes_packed", "nodes_bf16")]


class PlanStats(ctypes.Structure):
    """kelp_plan_stats."""

    _fields_ = [(name, SIZE) for name in ("steps", "views", "folded", "dynamic_steps", "workspace_bytes", "workspace_lower_bound_bytes",
                                          "activation_bytes")]


PROGRESS = ctypes.CFUNCTYPE(BOOL, POINTER, TEXT, TEXT, INT, INT)
LOG = ctypes.CFUNCTYPE(None, POINTER, INT, TEXT, INT, POINTER, SIZE)
WRITE = ctypes.CFUNCTYPE(None, POINTER, POINTER, SIZE)
PROFILE = ctypes.CFUNCTYPE(None, POINTER, SIZE, TEXT, TEXT, TEXT, ctypes.c_uint64)
PLACE = ctypes.CFUNCTYPE(POINTER, POINTER, SIZE, ctypes.POINTER(CTensor), SIZE)

# Letters of argument types: p a pointer, i int32 or an enum, u uint32, U uint64, l int64, z size_t, f float, b bool, s text, S a shape,
# W weights, A an allocator, D a device.
LETTERS = {"p": POINTER, "i": INT, "u": UINT, "U": ctypes.c_uint64, "l": I64, "z": SIZE, "f": FLOAT, "b": BOOL, "s": TEXT, "S": Shape,
           "W": Weights, "A": Allocator, "D": Device, "v": None}

# "name:arguments"; returns a status.
FALLIBLE = """
runtime_create:pp runtime_load_plugins:ps builder_create:psp builder_create_network:pp builder_parse_file:psp
builder_parse_bytes:ppzsppp builder_create_config:pp builder_config_set_flags:pu builder_config_set_memory_limit:piz builder_config_set_optimization_level:pi
builder_config_add_compute_capability:pi builder_config_add_profile:pp builder_config_set_profile_shape:pzsiip
builder_config_set_profile_values:pzsipz builder_build:pppp
network_set_name:ps network_mark_output:pp network_unmark_output:pp network_mark_refittable:ps layer_set_name:ps net_tensor_set_name:ps
network_add_input:psiSp network_add_constant:pSWp network_add_activation:ppiffp network_add_unary:ppip network_add_elementwise:pppip
network_add_scale:ppiWWWip network_add_parametric_relu:pppp network_add_select:ppppp network_add_identity:ppp network_add_cast:ppip
network_add_convolution:pplSWWpp network_add_deconvolution:pplSWWpp network_add_pooling:ppiSpp network_add_lrn:pplfffp
network_add_padding:ppSSp network_add_resize:pppp network_add_grid_sample:pppibip network_add_shuffle:pppp
network_add_concatenation:ppzip network_add_slice:ppSSSpp network_add_shape:ppp network_add_squeeze:pppp network_add_unsqueeze:pppp
network_add_gather:pppiiip network_add_scatter:ppppiip network_add_one_hot:ppppip network_add_non_zero:ppip
network_add_reverse_sequence:pppiip network_add_fill:pSipp network_add_assertion:ppsp network_add_reduce:ppiubp
network_add_softmax:ppup network_add_ragged_softmax:pppp network_add_topk:ppblpuip network_add_cumulative:ppibbp
network_add_normalization:ppppupp network_add_matrix_multiply:ppipip network_add_einsum:ppzsp network_add_attention:pppppp
network_add_rotary_embedding:pppppblp network_add_kv_cache_update:ppppp network_add_moe:ppppppppp network_add_quantize:ppppiip
network_add_dequantize:ppppiip network_add_dynamic_quantize:ppiliip network_add_nms:pppppp network_add_collective:ppiiiip
network_add_loop:pp loop_set_trip_count:pp loop_set_condition:pp loop_add_recurrence:ppp recurrence_set_next:pp
loop_add_iterator:ppibp loop_add_output:ppiip network_add_conditional:ppp conditional_add_input:ppp conditional_add_output:pppp
engine_load_file:psp engine_load:ppzsppp engine_workspace_bytes:pzp engine_inspect:pbpp engine_refit:ppz context_create:pp
context_set_input:pzp context_set_profile:pz context_set_output_allocator:pzpp context_set_output:pzpz context_set_output_device:pzD
context_set_workspace:ppz context_prepare:p context_enqueue:ppp context_capture:pp context_set_profiler:ppp
stream_create:pp stream_wrap:ppp stream_synchronize:p event_create:Ap
engine_set_runtime_cache:ppz engine_write_runtime_cache:ppp engine_streamable_weights:pp engine_set_weight_budget:pz network_to_onnx:pp
"""
# "name:arguments:result"
OTHERS = """
status_code:p:i status_message:p:s status_cause:p:p status_free:p:v runtime_release:p:v builder_release:p:v network_release:p:v
builder_config_release:p:v blob_release:p:v blob_data:p:p blob_size:p:z network_input_count:p:z network_input:pz:p
network_output_count:p:z network_output:pz:p network_layer_count:p:z network_layer:pz:p layer_type_of:p:i layer_type_name:i:s
layer_name:p:s layer_output_count:p:z layer_output:pz:p layer_input_count:p:z layer_input:pz:p
net_tensor_name:p:s net_tensor_dtype:p:i net_tensor_dims:p:S
builder_config_set_progress:ppp:v engine_release:p:v engine_provider_name:p:s engine_profile_count:p:z
engine_profile_shape:pzzip:b engine_refittable_count:p:z engine_refittable:pz:s engine_input_count:p:z engine_output_count:p:z
engine_input:pz:I engine_output:pz:I context_destroy:p:v context_output:pz:T context_cancel:p:v dtype_name:i:s dtype_parse:s:i
dtype_bits:i:u stream_destroy:p:v event_destroy:p:v event_done:p:b event_wait:pU:b capture_destroy:p:v capture_step_count:p:z
engine_get_stats:p:E context_plan_stats:p:P allocator_system::A
"""


def _declare():
    results = {**LETTERS, "I": ctypes.POINTER(IoInfo), "T": ctypes.POINTER(CTensor), "E": EngineStats, "P": PlanStats}
    for line in FALLIBLE.split():
        name, arguments = line.split(":")
        function = getattr(library, "kelp_" + name)
        function.argtypes, function.restype = [LETTERS[letter] for letter in arguments], POINTER
    for line in OTHERS.split():
        name, arguments, result = line.split(":")
        function = getattr(library, "kelp_" + name)
        function.argtypes, function.restype = [LETTERS[letter] for letter in arguments], results[result]


_declare()


def _error(status):
    cause = library.kelp_status_cause(status)
    return KelpError((library.kelp_status_message(status) or b"").decode("utf-8", "replace"), library.kelp_status_code(status),
                     _error(cause) if cause else None)


def call(name, *arguments):
    """Calls a function that returns a status. Raises KelpError on failure."""
    status = getattr(library, "kelp_" + name)(*arguments)
    if status:
        try:
            raise _error(status)
        finally:
            library.kelp_status_free(status)


def make(name, *arguments):
    """Calls a function whose last argument is an output pointer, and returns the pointer."""
    out = POINTER()
    call(name, *arguments, ctypes.byref(out))
    return out.value


def get(name, *arguments):
    """Calls a function that cannot fail. Converts text to str."""
    result = getattr(library, "kelp_" + name)(*arguments)
    return result.decode() if isinstance(result, bytes) else result


def shape(extents):
    """Returns a kelp_shape with the given dimensions."""
    extents = [int(extent) for extent in ((extents,) if isinstance(extents, (int, numpy.integer)) else extents)]
    if len(extents) > MAX_RANK:
        raise KelpError(f"a shape has at most {MAX_RANK} dimensions, found {len(extents)}", Code.INVALID_ARGUMENT)
    return Shape(len(extents), (I64 * MAX_RANK)(*extents))


def options(kind, **values):
    """Returns a struct of options with its size. None leaves a field zero; sequences fill arrays."""
    made = kind()
    made.struct_size = ctypes.sizeof(kind)
    fields = dict(kind._fields_)
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, (tuple, list)):
            if len(value) > fields[name]._length_:
                raise KelpError(f"'{name}' has at most {fields[name]._length_} values, found {len(value)}", Code.INVALID_ARGUMENT)
            value = fields[name](*value)
        setattr(made, name, value)
    return made


def as_dict(struct):
    """Returns the fields of a struct of numbers."""
    return {name: getattr(struct, name) for name, _ in struct._fields_}


# ---- element types ----
PACKED = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}
_OURS = {"float4_e2m1fn": "float4_e2m1", "float6_e2m3fn": "float6_e2m3", "float6_e3m2fn": "float6_e3m2", "float8_e8m0fnu": "float8_e8m0"}
_THEIRS = {ours: theirs for theirs, ours in _OURS.items()}


def dtype_number(dtype):
    """Returns the number of an element type, given as a numpy dtype or a name ("float32", "bfloat16", "float8_e4m3fn")."""
    name = dtype if isinstance(dtype, str) else numpy.dtype(dtype).name
    number = library.kelp_dtype_parse(_OURS.get(name, name).encode())
    if not number:
        raise KelpError(f"unknown element type '{name}'", Code.INVALID_ARGUMENT)
    return number


def dtype_name(number):
    """Returns the name of an element type, such as "float32"."""
    return get("dtype_name", number)


def dtype_bytes(number):
    """Returns the size of an element in bytes; 1 for elements of fewer than 8 bits."""
    return max(library.kelp_dtype_bits(number) // 8, 1)


def numpy_dtype(number):
    """Returns the numpy dtype; types that numpy lacks are those of ml_dtypes."""
    name = dtype_name(number)
    name = _THEIRS.get(name, name)
    try:
        return numpy.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
        return numpy.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        raise KelpError(f"numpy does not support type '{name}': install the package ml_dtypes", Code.UNIMPLEMENTED) from None


def array_bytes(array, what):
    """Returns the array that Kelp reads: itself, or a packed copy for elements of fewer than 8 bits. It must be contiguous."""
    if array.dtype.kind in "OUSV" and not array.dtype.name.startswith(("bfloat", "float", "int", "uint")):
        raise KelpError(f"{what} has elements of type '{array.dtype}', which is not supported", Code.INVALID_ARGUMENT)
    if not array.flags.c_contiguous or not array.dtype.isnative:
        raise KelpError(f"{what} is not contiguous: its shape is {list(array.shape)} and its strides are {list(array.strides)} bytes; "
                        f"numpy.ascontiguousarray copies it", Code.INVALID_ARGUMENT)
    bits = PACKED.get(array.dtype.name)
    if bits is None:
        return array
    per = 8 // bits
    raw = array.reshape(-1).view("uint8") & ((1 << bits) - 1)
    raw = numpy.concatenate([raw, numpy.zeros(-len(raw) % per, "uint8")]).reshape(-1, per)
    return numpy.bitwise_or.reduce(raw << numpy.arange(0, 8, bits, dtype="uint8"), axis=1).astype("uint8")


def unpack(raw, dtype, extents):
    """Returns an array over `raw`, bytes that Kelp wrote; elements of fewer than 8 bits are unpacked into new memory."""
    count = int(numpy.prod(extents, dtype="int64"))
    bits = PACKED.get(dtype.name)
    if bits is None:
        return raw[:count * dtype.itemsize].view(dtype).reshape(extents)
    values = ((raw[:, None] >> numpy.arange(0, 8, bits, dtype="uint8")) & ((1 << bits) - 1)).reshape(-1)[:count]
    if dtype.name.startswith("int"):
        return (((values.astype("int8") << (8 - bits)) >> (8 - bits)).astype(dtype)).reshape(extents)
    return values.view(dtype).reshape(extents)


def as_array(value):
    """Returns a numpy array over the memory of an object with DLPack or the buffer protocol, or a new array for lists and numbers."""
    if not isinstance(value, numpy.ndarray) and hasattr(type(value), "__dlpack__"):
        return _kelp.DLTensor(value).numpy()
    return numpy.asarray(value)


def weights(value, what, dtype=None):
    """Returns a kelp_weights and its array, which must outlive it. None means no weights."""
    if value is None:
        return Weights(), None
    array = as_array(value)
    if dtype is not None:
        array = array.astype(numpy_dtype(dtype_number(dtype)), copy=False)
    array = numpy.ascontiguousarray(array)
    kept = array_bytes(array, what)
    return Weights(dtype_number(array.dtype), kept.ctypes.data, array.size, None), kept


# ---- runtimes ----
_runtimes = {}
_lock = threading.Lock()
# Threads do not survive a fork: a child process creates its own runtimes. Those of the parent are kept, not freed.
_before_fork = []
os.register_at_fork(after_in_child=lambda: (_before_fork.append(dict(_runtimes)), _runtimes.clear()))


def new_runtime(given, plugins):
    """Creates a runtime with plug-in libraries, a text of _plugins.as_text."""
    made = make("runtime_create", ctypes.byref(given))
    try:
        call("runtime_load_plugins", made, os.fsencode(plugins))
    except BaseException:
        library.kelp_runtime_release(made)
        raise
    return made


def runtime(threads=0, plugins=""):
    """Returns the shared runtime for a number of threads and a text of plug-in libraries."""
    with _lock:
        if (threads, plugins) not in _runtimes:
            _runtimes[threads, plugins] = new_runtime(options(RuntimeOptions, threads=threads), plugins)
        return _runtimes[threads, plugins]


# ---- enumerations ----
def number(kind, value, what):
    """Returns the value of a member, given as a member, its name in any case, or the value."""
    try:
        return int(kind[value.upper()] if isinstance(value, str) else kind(value))
    except (KeyError, ValueError):
        names = ", ".join(member.name.lower() for member in kind)
        raise KelpError(f"unknown {what} {value!r}: expected one of {names}", Code.INVALID_ARGUMENT) from None
