# SPDX-License-Identifier: Apache-2.0
import enum
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy
from numpy.typing import ArrayLike, DTypeLike

Array: TypeAlias = numpy.ndarray[Any, numpy.dtype[Any]]
Path: TypeAlias = str | os.PathLike[str]
DType: TypeAlias = DTypeLike
Ints: TypeAlias = int | Sequence[int]
Bounds: TypeAlias = Mapping[str, Sequence[Ints]]

class Activation(enum.IntEnum):
    RELU = 0
    SIGMOID = 1
    TANH = 2
    LEAKY_RELU = 3
    ELU = 4
    SELU = 5
    SOFTSIGN = 6
    SOFTPLUS = 7
    CLIP = 8
    HARD_SIGMOID = 9
    SCALED_TANH = 10
    THRESHOLDED_RELU = 11
    GELU_ERF = 12
    GELU_TANH = 13

class BuilderFlag(enum.IntFlag):
    FP16 = 1
    BF16 = 2
    INT8 = 4
    FP8 = 8
    TF32 = 16
    REFIT = 32
    REFIT_INDIVIDUAL = 64
    STRIP_WEIGHTS = 128
    WEIGHT_STREAMING = 256
    VERSION_COMPATIBLE = 512
    DISABLE_FUSION = 1024
    MONITOR_MEMORY = 2048
    DETAILED = 4096

class Collective(enum.IntEnum):
    ALL_REDUCE = 0
    ALL_GATHER = 1
    BROADCAST = 2
    REDUCE = 3
    REDUCE_SCATTER = 4

class Coordinates(enum.IntEnum):
    ALIGN_CORNERS = 0
    ASYMMETRIC = 1
    HALF_PIXEL = 2

class Elementwise(enum.IntEnum):
    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    SUB = 4
    DIV = 5
    POW = 6
    FLOOR_DIV = 7
    AND = 8
    OR = 9
    XOR = 10
    EQUAL = 11
    GREATER = 12
    LESS = 13

class Fill(enum.IntEnum):
    LINSPACE = 0
    RANDOM_UNIFORM = 1
    RANDOM_NORMAL = 2

class GatherMode(enum.IntEnum):
    DEFAULT = 0
    ELEMENT = 1
    ND = 2

class Interpolation(enum.IntEnum):
    NEAREST = 0
    LINEAR = 1
    CUBIC = 2

class LayerType(enum.IntEnum):
    INPUT = 0
    PARSED = 1
    ACTIVATION = 2
    ASSERTION = 3
    ATTENTION = 4
    CAST = 5
    COLLECTIVE = 6
    CONCATENATION = 7
    CONDITIONAL_INPUT = 8
    CONDITIONAL_OUTPUT = 9
    CONSTANT = 10
    CONVOLUTION = 11
    CUMULATIVE = 12
    DECONVOLUTION = 13
    DEQUANTIZE = 14
    DYNAMIC_QUANTIZE = 15
    EINSUM = 16
    ELEMENTWISE = 17
    FILL = 18
    GATHER = 19
    GRID_SAMPLE = 20
    IDENTITY = 21
    ITERATOR = 22
    KV_CACHE_UPDATE = 23
    LOOP_OUTPUT = 24
    LRN = 25
    MATRIX_MULTIPLY = 26
    MOE = 27
    NMS = 28
    NON_ZERO = 29
    NORMALIZATION = 30
    ONE_HOT = 31
    PADDING = 32
    PARAMETRIC_RELU = 33
    POOLING = 34
    QUANTIZE = 35
    RAGGED_SOFTMAX = 36
    RECURRENCE = 37
    REDUCE = 38
    RESIZE = 39
    REVERSE_SEQUENCE = 40
    ROTARY_EMBEDDING = 41
    SCALE = 42
    SCATTER = 43
    SELECT = 44
    SHAPE = 45
    SHUFFLE = 46
    SLICE = 47
    SOFTMAX = 48
    SQUEEZE = 49
    TOPK = 50
    UNARY = 51
    UNSQUEEZE = 52

class LoopOutput(enum.IntEnum):
    LAST_VALUE = 0
    CONCATENATE = 1
    REVERSE = 2

class MatrixOp(enum.IntEnum):
    NONE = 0
    TRANSPOSE = 1
    VECTOR = 2

class MemoryPool(enum.IntEnum):
    WORKSPACE = 0
    HOST = 1
    DEVICE = 2

class PaddingMode(enum.IntEnum):
    EXPLICIT_ROUND_DOWN = 0
    EXPLICIT_ROUND_UP = 1
    SAME_UPPER = 2
    SAME_LOWER = 3

class Pooling(enum.IntEnum):
    MAX = 0
    AVERAGE = 1
    BLEND = 2

class Reduce(enum.IntEnum):
    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    AVERAGE = 4
    NONE = 5

class Rounding(enum.IntEnum):
    HALF_UP = 0
    HALF_DOWN = 1
    FLOOR = 2
    CEIL = 3

class Runtime:
    def __init__(self, threads: int = 0, log: Callable[[str, str], object] | None = None,
                 log_level: Literal['error', 'warning', 'info', 'verbose'] = 'info') -> None: ...
    def load(self, plan_or_path: Path | bytes) -> Engine: ...

class SampleMode(enum.IntEnum):
    STRICT = 0
    WRAP = 1
    CLAMP = 2
    FILL = 3
    REFLECT = 4

class ScaleMode(enum.IntEnum):
    UNIFORM = 0
    CHANNEL = 1
    ELEMENTWISE = 2

class ScatterMode(enum.IntEnum):
    ELEMENT = 0
    ND = 1

class Unary(enum.IntEnum):
    EXP = 0
    LOG = 1
    SQRT = 2
    RECIP = 3
    ABS = 4
    NEG = 5
    SIN = 6
    COS = 7
    TAN = 8
    SINH = 9
    COSH = 10
    ASIN = 11
    ACOS = 12
    ATAN = 13
    ASINH = 14
    ACOSH = 15
    ATANH = 16
    CEIL = 17
    FLOOR = 18
    ERF = 19
    NOT = 20
    SIGN = 21
    ROUND = 22
    ISINF = 23
    ISNAN = 24

class Builder:
    provider: str
    def __init__(self, provider: str = 'cpu', threads: int = 0, runtime: Runtime | None = None) -> None: ...
    def create_network(self) -> Network: ...
    def parse(self, path_or_bytes: Path | bytes) -> Network: ...
    def build(self, network: Network, *, flags: BuilderFlag | int | str | Sequence[BuilderFlag | str] = 0,
              profiles: Bounds | Sequence[Bounds] = (), values: Bounds | Sequence[Bounds] = (),
              memory: Mapping[str | MemoryPool, int] | None = None, level: int | None = None, capabilities: Sequence[int] = (),
              progress: Callable[[str, str, int, int], bool | None] | None = None) -> Plan: ...

class Conditional:
    def add_input(self, tensor: TensorLike) -> Layer: ...
    def add_output(self, then_tensor: TensorLike, else_tensor: TensorLike) -> Layer: ...

class Context:
    def run(self, inputs: Mapping[str, ArrayLike], out: Mapping[str, Any] | None = None) -> dict[str, Array]: ...
    def cancel(self) -> None: ...

class Engine:
    inputs: list[IoInfo]
    outputs: list[IoInfo]
    provider: str
    def __init__(self, plan_or_path: Path | bytes, threads: int = 0, *, runtime: Runtime | None = None) -> None: ...
    @classmethod
    def load(cls, plan_or_path: Path | bytes, threads: int = 0) -> Engine: ...
    def create_context(self, profile: int | None = None) -> Context: ...
    def run(self, inputs: Mapping[str, ArrayLike], out: Mapping[str, Any] | None = None) -> dict[str, Array]: ...
    def inspect(self, format: Literal['json', 'text'] = 'json') -> Any: ...
    @property
    def refittable(self) -> list[str]: ...
    def refit(self, weights: Mapping[str, ArrayLike]) -> None: ...
    @property
    def profiles(self) -> list[dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]]: ...

class IoInfo:
    name: str
    dtype: str
    shape: tuple[int, ...] | None
    symbols: tuple[str | None, ...]

class Layer:
    @property
    def type(self) -> LayerType: ...
    @property
    def name(self) -> str: ...
    @name.setter
    def name(self, name: str) -> None: ...
    @property
    def inputs(self) -> list[Tensor]: ...
    @property
    def outputs(self) -> list[Tensor]: ...
    def set_next(self, tensor: TensorLike) -> None: ...

class Loop:
    def set_trip_count(self, count: TensorLike) -> None: ...
    def set_condition(self, condition: TensorLike) -> None: ...
    def add_recurrence(self, initial: TensorLike) -> Layer: ...
    def add_iterator(self, tensor: TensorLike, axis: int = 0, reverse: bool = False) -> Layer: ...
    def add_output(self, tensor: TensorLike, kind: LoopOutput | str = 'last_value', axis: int = 0) -> Layer: ...

class Network:
    def add_constant(self, array: ArrayLike) -> Layer: ...
    def add_activation(self, input: TensorLike, type: Activation | str, alpha: float = 0.0, beta: float = 0.0) -> Layer: ...
    def add_unary(self, input: TensorLike, op: Unary | str) -> Layer: ...
    def add_elementwise(self, a: TensorLike, b: TensorLike, op: Elementwise | str) -> Layer: ...
    def add_scale(self, input: TensorLike, mode: ScaleMode | str = 'uniform', shift: ArrayLike | None = None,
                  scale: ArrayLike | None = None, power: ArrayLike | None = None, axis: int = 1) -> Layer: ...
    def add_parametric_relu(self, input: TensorLike, slope: TensorLike) -> Layer: ...
    def add_select(self, condition: TensorLike, then_input: TensorLike, else_input: TensorLike) -> Layer: ...
    def add_identity(self, input: TensorLike) -> Layer: ...
    def add_cast(self, input: TensorLike, to: DType) -> Layer: ...
    def add_convolution(self, input: TensorLike, output_maps: int, kernel_dims: Ints, kernel: TensorLike,
                        bias: TensorLike | None = None, *, stride: Ints = 1, dilation: Ints = 1, pre_padding: Ints = 0,
                        post_padding: Ints = 0, padding_mode: PaddingMode | str = 'explicit_round_down', groups: int = 1) -> Layer: ...
    def add_deconvolution(self, input: TensorLike, output_maps: int, kernel_dims: Ints, kernel: TensorLike,
                          bias: TensorLike | None = None, *, stride: Ints = 1, dilation: Ints = 1, pre_padding: Ints = 0,
                          post_padding: Ints = 0, padding_mode: PaddingMode | str = 'explicit_round_down', groups: int = 1) -> Layer: ...
    def add_pooling(self, input: TensorLike, type: Pooling | str, window_dims: Ints, *, stride: Ints | None = None,
                    dilation: Ints | None = None, pre_padding: Ints = 0, post_padding: Ints = 0,
                    padding_mode: PaddingMode | str = 'explicit_round_down', include_padding: bool = False, blend: float = 0.0) -> Layer: ...
    def add_lrn(self, input: TensorLike, window: int, alpha: float, beta: float, k: float) -> Layer: ...
    def add_padding(self, input: TensorLike, pre: Ints, post: Ints) -> Layer: ...
    def add_resize(self, input: TensorLike, *, dims: Ints | None = None, scales: Sequence[float] | None = None,
                   shape: TensorLike | None = None, mode: Interpolation | str = 'nearest',
                   coordinates: Coordinates | str = 'align_corners', rounding: Rounding | str = 'half_up',
                   cubic_coefficient: float = 0.0, exclude_outside: bool = False) -> Layer: ...
    def add_grid_sample(self, input: TensorLike, grid: TensorLike, mode: Interpolation | str = 'linear',
                        align_corners: bool = False, outside: SampleMode | str = 'fill') -> Layer: ...
    def add_shuffle(self, input: TensorLike, *, first_transpose: Sequence[int] | None = None, reshape: Ints | None = None,
                    shape: TensorLike | None = None, second_transpose: Sequence[int] | None = None, zero_is_zero: bool = False) -> Layer: ...
    def add_concatenation(self, inputs: Sequence[TensorLike], axis: int = 0) -> Layer: ...
    def add_slice(self, input: TensorLike, start: Ints | TensorLike = (), size: Ints | TensorLike = (),
                  stride: Ints | TensorLike = (), *, mode: SampleMode | str = 'strict', fill: TensorLike | None = None) -> Layer: ...
    def add_shape(self, input: TensorLike) -> Layer: ...
    def add_squeeze(self, input: TensorLike, axes: Ints | TensorLike) -> Layer: ...
    def add_unsqueeze(self, input: TensorLike, axes: Ints | TensorLike) -> Layer: ...
    def add_gather(self, data: TensorLike, indices: TensorLike, mode: GatherMode | str = 'default', axis: int = 0,
                   batch_dims: int = 0) -> Layer: ...
    def add_scatter(self, data: TensorLike, indices: TensorLike, updates: TensorLike, mode: ScatterMode | str = 'element',
                    axis: int = 0) -> Layer: ...
    def add_one_hot(self, indices: TensorLike, values: Bounds | Sequence[Bounds], depth: TensorLike, axis: int = -1) -> Layer: ...
    def add_non_zero(self, input: TensorLike, indices: DType = 'int64') -> Layer: ...
    def add_reverse_sequence(self, input: TensorLike, lengths: TensorLike, batch_axis: int = 0, sequence_axis: int = 1) -> Layer: ...
    def add_fill(self, dims: Ints | None, op: Fill | str, *, alpha: float = 0.0, beta: float = 0.0,
                 shape: TensorLike | None = None, start: TensorLike | None = None, delta: TensorLike | None = None,
                 dtype: DType = 'float32') -> Layer: ...
    def add_assertion(self, condition: TensorLike, message: str) -> Layer: ...
    def add_reduce(self, input: TensorLike, op: Reduce | str, axes: Ints, keep_dims: bool = False) -> Layer: ...
    def add_softmax(self, input: TensorLike, axis: Ints = -1) -> Layer: ...
    def add_ragged_softmax(self, input: TensorLike, bounds: TensorLike) -> Layer: ...
    def add_topk(self, input: TensorLike, k: int | TensorLike, axis: Ints = -1, *, largest: bool = True, indices: DType = 'int32') -> Layer: ...
    def add_cumulative(self, input: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Layer: ...
    def add_normalization(self, input: TensorLike, scale: TensorLike, bias: TensorLike, axes: Ints, *, epsilon: float = 1e-05,
                          groups: int = 1) -> Layer: ...
    def add_matrix_multiply(self, a: TensorLike, b: TensorLike, op_a: MatrixOp | str = 'none', op_b: MatrixOp | str = 'none') -> Layer: ...
    def add_einsum(self, inputs: Sequence[TensorLike], equation: str) -> Layer: ...
    def add_attention(self, query: TensorLike, key: TensorLike, value: TensorLike, *, causal: bool = False,
                      no_softmax: bool = False, mask: TensorLike | None = None) -> Layer: ...
    def add_rotary_embedding(self, input: TensorLike, cos: TensorLike, sin: TensorLike, positions: TensorLike | None = None, *,
                             interleaved: bool = False, rotary_dims: int = 0) -> Layer: ...
    def add_kv_cache_update(self, cache: TensorLike, update: TensorLike, write_indices: TensorLike) -> Layer: ...
    def add_moe(self, hidden: TensorLike, experts: TensorLike, scores: TensorLike, gate: TensorLike, up: TensorLike,
                down: TensorLike, *, gate_bias: TensorLike | None = None, up_bias: TensorLike | None = None,
                down_bias: TensorLike | None = None, activation: Activation | str = 'relu', swish: bool = False,
                alpha: float = 0.0, beta: float = 0.0) -> Layer: ...
    def add_quantize(self, input: TensorLike, scale: TensorLike, zero_point: TensorLike | None = None, axis: int = 0,
                     to: DType = 'int8') -> Layer: ...
    def add_dequantize(self, input: TensorLike, scale: TensorLike, zero_point: TensorLike | None = None, axis: int = 0,
                       to: DType = 'float32') -> Layer: ...
    def add_dynamic_quantize(self, input: TensorLike, axis: int = -1, block: int = 16, to: DType = 'float4_e2m1fn',
                             scale_dtype: DType = 'float8_e4m3fn') -> Layer: ...
    def add_nms(self, boxes: TensorLike, scores: TensorLike, max_per_class: TensorLike, *,
                iou_threshold: TensorLike | None = None, score_threshold: TensorLike | None = None, centers: bool = False,
                topk: int = 0) -> Layer: ...
    def add_collective(self, input: TensorLike, op: Collective | str, reduce: Reduce | str = 'sum', root: int = 0, ranks: int = 1) -> Layer: ...
    def add_loop(self) -> Loop: ...
    def add_conditional(self, condition: TensorLike) -> Conditional: ...
    def add_input(self, name: str, dtype: DType, shape: Ints) -> Tensor: ...
    def mark_output(self, tensor: TensorLike, name: str | None = None) -> Tensor: ...
    def unmark_output(self, tensor: TensorLike) -> None: ...
    def mark_refittable(self, weights_name: str) -> None: ...
    @property
    def inputs(self) -> list[Tensor]: ...
    @property
    def outputs(self) -> list[Tensor]: ...
    @property
    def layers(self) -> list[Layer]: ...

class Plan(bytes):
    def save(self, path: Path) -> None: ...

class Tensor:
    @property
    def name(self) -> str: ...
    @name.setter
    def name(self, name: str) -> None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...] | None: ...

TensorLike: TypeAlias = Tensor | Layer | ArrayLike
