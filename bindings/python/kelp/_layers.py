# SPDX-License-Identifier: Apache-2.0
"""The layers of a network, with the names of kelp/network.h. Where a tensor is expected, a Tensor, a Layer (its first output) or a numpy
array (a constant) is accepted. Weights are numpy arrays. `axes` are indices of axes; negative ones count from the end."""
import ctypes

import numpy

from . import _capi
from ._capi import call, dtype_number, get, make, number, options, shape
from ._enums import (Activation, Collective, Coordinates, Elementwise, Fill, GatherMode, Interpolation, LayerType, LoopOutput, MatrixOp,
                     PaddingMode, Pooling, Reduce, Rounding, SampleMode, ScaleMode, ScatterMode, Unary)
from ._error import Code, KelpError
from ._handle import Handle


class Tensor(Handle):
    """A tensor between layers: `name` (may be set), `dtype` ("float32"), `shape` (-1: dynamic dimension; None: unknown rank)."""

    __slots__ = ("_network", "_pointer")
    CREATED_BY = "the methods of a Network"

    def _init(self, network, pointer):
        self._network, self._pointer = network, pointer

    @property
    def name(self):
        """The name, unique in the network."""
        return get("net_tensor_name", self._pointer)

    @name.setter
    def name(self, name):
        call("net_tensor_set_name", self._pointer, name.encode())

    @property
    def dtype(self):
        """The element type, "float32"."""
        return _capi.dtype_name(get("net_tensor_dtype", self._pointer))

    @property
    def shape(self):
        """The dimensions, or None."""
        dims = get("net_tensor_dims", self._pointer)
        return None if dims.rank < 0 else tuple(dims.d[:dims.rank])

    def __repr__(self):
        return f"Tensor(name={self.name!r}, dtype={self.dtype!r}, shape={self.shape!r})"


class Layer(Handle):
    """A layer: `name` (may be set), `type` (a LayerType), `inputs` and `outputs` (lists of Tensor)."""

    __slots__ = ("_network", "_pointer")
    CREATED_BY = "the methods of a Network"

    def _init(self, network, pointer):
        self._network, self._pointer = network, pointer

    @property
    def type(self):
        """The type, a LayerType."""
        return LayerType(get("layer_type_of", self._pointer))

    @property
    def name(self):
        """The name. Unnamed weights have the name "<layer>.<role>" for a refit."""
        return get("layer_name", self._pointer)

    @name.setter
    def name(self, name):
        call("layer_set_name", self._pointer, name.encode())

    @property
    def inputs(self):
        """The inputs, a list of Tensor, without omitted optional inputs."""
        pointers = [get("layer_input", self._pointer, i) for i in range(get("layer_input_count", self._pointer))]
        return [Tensor._made(self._network, pointer) for pointer in pointers if pointer]

    @property
    def outputs(self):
        """The outputs, a list of Tensor."""
        return [Tensor._made(self._network, get("layer_output", self._pointer, i)) for i in range(get("layer_output_count", self._pointer))]

    def set_next(self, tensor):
        """Sets the value of a recurrence in the next iteration."""
        call("recurrence_set_next", self._pointer, self._network._tensor(tensor)._pointer)

    def __repr__(self):
        return f"<layer {self.name}: {self.outputs}>"


class Loop(Handle):
    """A loop. Layers that depend on one of its recurrences or iterators are its body."""

    CREATED_BY = "the methods of a Network"

    def _init(self, network, pointer):
        self._network, self._pointer = network, pointer

    def set_trip_count(self, count):
        """Sets the number of iterations: a scalar, int32 or int64."""
        call("loop_set_trip_count", self._pointer, self._network._tensor(count)._pointer)

    def set_condition(self, condition):
        """Sets the condition for another iteration: a scalar bool, computed in the body."""
        call("loop_set_condition", self._pointer, self._network._tensor(condition)._pointer)

    def add_recurrence(self, initial):
        """Adds a value that is passed to the next iteration (`Layer.set_next`). Its output is the value of the current iteration."""
        return self._network._layer("loop_add_recurrence", self._pointer, self._network._p(initial))

    def add_iterator(self, tensor, axis=0, reverse=False):
        """Adds an iterator: slice `iteration` of a tensor along `axis`, without that axis."""
        tensor = self._network._tensor(tensor)
        return self._network._layer("loop_add_iterator", self._pointer, tensor._pointer, axis_of(tensor, axis), reverse)

    def add_output(self, tensor, kind="last_value", axis=0):
        """Adds an output: the last value of a recurrence, or all values of a body tensor along a new `axis`, optionally reversed."""
        return self._network._layer("loop_add_output", self._pointer, self._network._p(tensor),
                                    number(LoopOutput, kind, "output of a loop"), axis)


class Conditional(Handle):
    """A conditional with two branches. Layers that depend on its inputs run only in the branch that needs them."""

    CREATED_BY = "the methods of a Network"

    def _init(self, network, pointer):
        self._network, self._pointer = network, pointer

    def add_input(self, tensor):
        """Adds an input of the branches."""
        return self._network._layer("conditional_add_input", self._pointer, self._network._p(tensor))

    def add_output(self, then_tensor, else_tensor):
        """Adds an output that selects one of two tensors with equal types and ranks."""
        return self._network._layer("conditional_add_output", self._pointer, self._network._p(then_tensor), self._network._p(else_tensor))


def axis_of(tensor, axis):
    """Returns the index of an axis; negative ones count from the end."""
    axis = int(axis)
    if axis < 0:
        if tensor.shape is None:
            raise KelpError(f"axis {axis} of '{tensor.name}' cannot count from the end: the rank is unknown", Code.INVALID_ARGUMENT)
        axis += len(tensor.shape)
    return axis


def mask_of(tensor, axes):
    """Returns the bit mask of axes."""
    mask = 0
    for axis in (axes,) if isinstance(axes, (int, numpy.integer)) else axes:
        axis = axis_of(tensor, axis)
        if not 0 <= axis < 32:
            raise KelpError(f"invalid axis {axis}", Code.INVALID_ARGUMENT)
        mask |= 1 << axis
    return mask


def spatial(value, count):
    """Returns one number per spatial axis, from one or several numbers."""
    if value is None:
        return None
    return [int(value)] * count if isinstance(value, (int, numpy.integer)) else [int(item) for item in value]


class Layers(Handle):
    """The methods that add layers to a network."""

    def _init(self, pointer):
        self._pointer = pointer
        self._kept = []  # memory that the network references

    # ---- what the methods share ----
    def _made_tensor(self, pointer):
        return Tensor._made(self, pointer)

    def _tensor(self, value):
        if isinstance(value, Layer):
            value = value.outputs[0]
        if isinstance(value, Tensor):
            if value._network is not self:
                raise KelpError(f"tensor '{value.name}' belongs to another network", Code.INVALID_ARGUMENT)
            return value
        if isinstance(value, (numpy.ndarray, numpy.generic)):
            return self.add_constant(value).outputs[0]
        raise TypeError(f"expected a Tensor, a Layer or a numpy array, found {type(value).__name__}")

    def _p(self, value):
        return None if value is None else self._tensor(value)._pointer

    def _layer(self, function, *arguments):
        return Layer._made(self, make(function, *arguments))

    def _weights(self, value, what):
        made, kept = _capi.weights(value, what)
        self._kept.append(kept)
        return made

    def _many(self, tensors):
        pointers = [self._p(tensor) for tensor in tensors]
        return (ctypes.c_void_p * max(len(pointers), 1))(*pointers), len(pointers)

    # ---- constants and elementwise ----
    def add_constant(self, array):
        """Adds a constant with the type and shape of the array. A contiguous array is referenced, not copied."""
        array = numpy.asarray(array)
        return self._layer("network_add_constant", self._pointer, shape(array.shape), self._weights(array, "a constant"))

    def add_activation(self, input, type, alpha=0.0, beta=0.0):
        """Adds an Activation, with alpha and beta if it has them."""
        return self._layer("network_add_activation", self._pointer, self._p(input), number(Activation, type, "activation"), alpha, beta)

    def add_unary(self, input, op):
        """Adds a Unary function of each element."""
        return self._layer("network_add_unary", self._pointer, self._p(input), number(Unary, op, "unary"))

    def add_elementwise(self, a, b, op):
        """Adds an Elementwise function of tensors of equal ranks and types. Dimensions must be equal or 1."""
        return self._layer("network_add_elementwise", self._pointer, self._p(a), self._p(b), number(Elementwise, op, "elementwise"))

    def add_scale(self, input, mode="uniform", shift=None, scale=None, power=None, axis=1):
        """Adds (input * scale + shift) ** power. Weights have one element, one per channel of `axis`, or one per element from `axis` on."""
        input = self._tensor(input)
        return self._layer("network_add_scale", self._pointer, input._pointer, number(ScaleMode, mode, "scale mode"),
                           self._weights(shift, "shift"), self._weights(scale, "scale"), self._weights(power, "power"),
                           axis_of(input, axis))

    def add_parametric_relu(self, input, slope):
        """Adds input >= 0 ? input : slope * input; slope broadcasts."""
        return self._layer("network_add_parametric_relu", self._pointer, self._p(input), self._p(slope))

    def add_select(self, condition, then_input, else_input):
        """Selects elements of one of two tensors. The bool condition and both tensors broadcast."""
        return self._layer("network_add_select", self._pointer, self._p(condition), self._p(then_input), self._p(else_input))

    def add_identity(self, input):
        """Adds a copy of the input."""
        return self._layer("network_add_identity", self._pointer, self._p(input))

    def add_cast(self, input, to):
        """Converts the input to another element type."""
        return self._layer("network_add_cast", self._pointer, self._p(input), dtype_number(to))

    # ---- windows ----
    def _window(self, count, stride, dilation, pre_padding, post_padding, padding_mode, groups=0, kernel=None, bias=None,
                include_padding=False, blend=0.0):
        return options(_capi.Window, stride=spatial(stride, count), dilation=spatial(dilation, count),
                       pre_padding=spatial(pre_padding, count), post_padding=spatial(post_padding, count),
                       padding_mode=number(PaddingMode, padding_mode, "padding mode"), groups=groups, kernel=kernel, bias=bias,
                       include_padding=include_padding, blend=blend)

    def _convolution(self, function, input, output_maps, kernel_dims, kernel, bias, stride, dilation, pre_padding, post_padding,
                     padding_mode, groups):
        dims = shape(kernel_dims)
        computed = [self._p(value) if isinstance(value, (Tensor, Layer)) else None for value in (kernel, bias)]
        given = [None if pointer else value for pointer, value in zip(computed, (kernel, bias))]
        window = self._window(dims.rank, stride, dilation, pre_padding, post_padding, padding_mode, groups, *computed)
        return self._layer(function, self._pointer, self._p(input), output_maps, dims, self._weights(given[0], "kernel"),
                           self._weights(given[1], "bias"), ctypes.byref(window))

    def add_convolution(self, input, output_maps, kernel_dims, kernel, bias=None, *, stride=1, dilation=1, pre_padding=0, post_padding=0,
                        padding_mode="explicit_round_down", groups=1):
        """Adds a convolution: input [n,c,…] with two or three spatial axes; kernel [maps,c/groups,…] and bias [maps] are arrays or tensors."""
        return self._convolution("network_add_convolution", input, output_maps, kernel_dims, kernel, bias, stride, dilation, pre_padding,
                                 post_padding, padding_mode, groups)

    def add_deconvolution(self, input, output_maps, kernel_dims, kernel, bias=None, *, stride=1, dilation=1, pre_padding=0,
                          post_padding=0, padding_mode="explicit_round_down", groups=1):
        """Adds a transposed convolution: kernel [c,maps/groups,…]."""
        return self._convolution("network_add_deconvolution", input, output_maps, kernel_dims, kernel, bias, stride, dilation,
                                 pre_padding, post_padding, padding_mode, groups)

    def add_pooling(self, input, type, window_dims, *, stride=None, dilation=None, pre_padding=0, post_padding=0,
                    padding_mode="explicit_round_down", include_padding=False, blend=0.0):
        """Adds a Pooling layer. The default stride is the size of the window. BLEND: (1 - blend) max + blend average."""
        dims = shape(window_dims)
        window = self._window(dims.rank, stride, dilation, pre_padding, post_padding, padding_mode, include_padding=include_padding,
                              blend=blend)
        return self._layer("network_add_pooling", self._pointer, self._p(input), number(Pooling, type, "pooling"), dims,
                           ctypes.byref(window))

    def add_lrn(self, input, window, alpha, beta, k):
        """Adds x / (k + alpha / window * sum of squares over `window` channels) ** beta."""
        return self._layer("network_add_lrn", self._pointer, self._p(input), window, alpha, beta, k)

    def add_padding(self, input, pre, post):
        """Pads the last two axes with zeros; negative amounts crop."""
        return self._layer("network_add_padding", self._pointer, self._p(input), shape(pre), shape(post))

    def add_resize(self, input, *, dims=None, scales=None, shape=None, mode="nearest", coordinates="align_corners", rounding="half_up",
                   cubic_coefficient=0.0, exclude_outside=False):
        """Resizes to dimensions `dims`, by factors `scales`, or to a tensor `shape` (int64 [rank])."""
        made = options(_capi.Resize, dims=None if dims is None else _capi.shape(dims),
                       scale_count=0 if scales is None else len(scales), scales=None if scales is None else list(map(float, scales)),
                       shape=self._p(shape), mode=number(Interpolation, mode, "interpolation"),
                       coordinates=number(Coordinates, coordinates, "coordinates"), rounding=number(Rounding, rounding, "rounding"),
                       cubic_coefficient=cubic_coefficient, exclude_outside=exclude_outside)
        return self._layer("network_add_resize", self._pointer, self._p(input), ctypes.byref(made))

    def add_grid_sample(self, input, grid, mode="linear", align_corners=False, outside="fill"):
        """Samples input [n,c,h,w] at grid [n,ho,wo,2], with coordinates in [-1,1]."""
        return self._layer("network_add_grid_sample", self._pointer, self._p(input), self._p(grid),
                           number(Interpolation, mode, "interpolation"), align_corners, number(SampleMode, outside, "sample mode"))

    # ---- shapes ----
    def add_shuffle(self, input, *, first_transpose=None, reshape=None, shape=None, second_transpose=None, zero_is_zero=False):
        """Transposes, reshapes (to `reshape`: -1 is inferred, 0 copies the dimension; or to a tensor `shape`) and transposes again."""
        made = options(_capi.Shuffle, first_transpose_given=first_transpose is not None, second_transpose_given=second_transpose is not None,
                       first_transpose=None if first_transpose is None else list(first_transpose), reshape_given=reshape is not None,
                       reshape=None if reshape is None else _capi.shape(reshape), shape=self._p(shape), zero_is_zero=zero_is_zero,
                       second_transpose=None if second_transpose is None else list(second_transpose))
        return self._layer("network_add_shuffle", self._pointer, self._p(input), ctypes.byref(made))

    def add_concatenation(self, inputs, axis=0):
        """Concatenates tensors along `axis`."""
        inputs = [self._tensor(value) for value in inputs]
        return self._layer("network_add_concatenation", self._pointer, *self._many(inputs), axis_of(inputs[0], axis) if inputs else axis)

    def add_slice(self, input, start=(), size=(), stride=(), *, mode="strict", fill=None):
        """Slices size[i] elements from start[i] with stride[i] of each axis i. Arguments are numbers or tensors (int64 [rank])."""
        computed = {name: self._p(value) if isinstance(value, (Tensor, Layer)) else None
                    for name, value in (("start", start), ("size", size), ("stride", stride))}
        given = [shape(()) if computed[name] else shape(value) for name, value in (("start", start), ("size", size), ("stride", stride))]
        made = options(_capi.Slice, mode=number(SampleMode, mode, "sample mode"), fill=self._p(fill), **computed)
        return self._layer("network_add_slice", self._pointer, self._p(input), *given, ctypes.byref(made))

    def add_shape(self, input):
        """Adds the shape of the input, int64 [rank]."""
        return self._layer("network_add_shape", self._pointer, self._p(input))

    def add_squeeze(self, input, axes):
        """Removes `axes`, whose dimensions must be 1."""
        return self._layer("network_add_squeeze", self._pointer, self._p(input), self._p(as_axes(axes)))

    def add_unsqueeze(self, input, axes):
        """Inserts `axes` of dimension 1."""
        return self._layer("network_add_unsqueeze", self._pointer, self._p(input), self._p(as_axes(axes)))

    def add_gather(self, data, indices, mode="default", axis=0, batch_dims=0):
        """Gathers slices or elements of `axis`, or, in ND mode, those that the last axis of the indices addresses."""
        data = self._tensor(data)
        return self._layer("network_add_gather", self._pointer, data._pointer, self._p(indices), number(GatherMode, mode, "gather mode"),
                           axis_of(data, axis), batch_dims)

    def add_scatter(self, data, indices, updates, mode="element", axis=0):
        """Copies `data` and writes `updates` at the indices."""
        data = self._tensor(data)
        return self._layer("network_add_scatter", self._pointer, data._pointer, self._p(indices), self._p(updates),
                           number(ScatterMode, mode, "scatter mode"), axis_of(data, axis))

    def add_one_hot(self, indices, values, depth, axis=-1):
        """Adds a one-hot encoding: values [2] (off, on) along a new axis with `depth` elements, a scalar."""
        indices = self._tensor(indices)
        if axis < 0:
            axis = axis_of(indices, axis) + 1
        return self._layer("network_add_one_hot", self._pointer, indices._pointer, self._p(values), self._p(depth), axis)

    def add_non_zero(self, input, indices="int64"):
        """Adds the indices of non-zero elements, [rank,n]."""
        return self._layer("network_add_non_zero", self._pointer, self._p(input), dtype_number(indices))

    def add_reverse_sequence(self, input, lengths, batch_axis=0, sequence_axis=1):
        """Reverses the first lengths[b] elements of each sequence; lengths [batch]."""
        input = self._tensor(input)
        return self._layer("network_add_reverse_sequence", self._pointer, input._pointer, self._p(lengths), axis_of(input, batch_axis),
                           axis_of(input, sequence_axis))

    def add_fill(self, dims, op, *, alpha=0.0, beta=0.0, shape=None, start=None, delta=None, dtype="float32"):
        """Fills a tensor of dimensions `dims` (or a tensor `shape`): alpha + i * beta, random between alpha and beta, or normal with mean
        alpha and deviation beta. Tensors `start` (a scalar) and `delta` ([rank]) replace alpha and beta."""
        made = options(_capi.FillOptions, alpha=alpha, beta=beta, shape=self._p(shape), start=self._p(start), delta=self._p(delta),
                       dtype=dtype_number(dtype))
        return self._layer("network_add_fill", self._pointer, _capi.shape(() if dims is None else dims), number(Fill, op, "fill"),
                           ctypes.byref(made))

    def add_assertion(self, condition, message):
        """Fails the run with `message` if the bool condition is false."""
        return self._layer("network_add_assertion", self._pointer, self._p(condition), message.encode())

    # ---- reductions ----
    def add_reduce(self, input, op, axes, keep_dims=False):
        """Adds a Reduce operation over `axes`."""
        input = self._tensor(input)
        return self._layer("network_add_reduce", self._pointer, input._pointer, number(Reduce, op, "reduction"), mask_of(input, axes),
                           keep_dims)

    def add_softmax(self, input, axis=-1):
        """Adds the softmax along an axis."""
        input = self._tensor(input)
        return self._layer("network_add_softmax", self._pointer, input._pointer, mask_of(input, axis))

    def add_ragged_softmax(self, input, bounds):
        """Adds the softmax of the first bounds[…,0] elements of the last axis of [n,k] or [b,n,k]; other elements are 0. bounds are int32."""
        return self._layer("network_add_ragged_softmax", self._pointer, self._p(input), self._p(bounds))

    def add_topk(self, input, k, axis=-1, *, largest=True, indices="int32"):
        """Adds the k largest or smallest elements along an axis. Outputs are values and indices. k is a number or a tensor."""
        input = self._tensor(input)
        tensor = self._p(k) if isinstance(k, (Tensor, Layer)) else None
        return self._layer("network_add_topk", self._pointer, input._pointer, largest, 0 if tensor else int(k), tensor,
                           mask_of(input, axis), dtype_number(indices))

    def add_cumulative(self, input, axis=0, exclusive=False, reverse=False):
        """Adds the cumulative sum along an axis."""
        input = self._tensor(input)
        return self._layer("network_add_cumulative", self._pointer, input._pointer, axis_of(input, axis), exclusive, reverse)

    def add_normalization(self, input, scale, bias, axes, *, epsilon=1e-5, groups=1):
        """Adds (x - mean) / sqrt(variance + epsilon) * scale + bias over `axes`. scale and bias have the rank of x and broadcast."""
        input = self._tensor(input)
        made = options(_capi.Normalization, epsilon=epsilon, groups=groups)
        return self._layer("network_add_normalization", self._pointer, input._pointer, self._p(scale), self._p(bias),
                           mask_of(input, axes), ctypes.byref(made))

    # ---- matmul and attention ----
    def add_matrix_multiply(self, a, b, op_a="none", op_b="none"):
        """Adds the matmul of a and b, which may be transposed or vectors. Batch dimensions broadcast."""
        return self._layer("network_add_matrix_multiply", self._pointer, self._p(a), number(MatrixOp, op_a, "matrix operation"),
                           self._p(b), number(MatrixOp, op_b, "matrix operation"))

    def add_einsum(self, inputs, equation):
        """Adds an einsum, such as "bij,bjk->bik"."""
        return self._layer("network_add_einsum", self._pointer, *self._many(inputs), equation.encode())

    def add_attention(self, query, key, value, *, causal=False, no_softmax=False, mask=None):
        """Adds softmax(query keyᵀ + mask) value, [b,heads,seq,size] each. The caller scales the query. Query heads may share key heads."""
        made = options(_capi.Attention, causal=causal, no_softmax=no_softmax, mask=self._p(mask))
        return self._layer("network_add_attention", self._pointer, self._p(query), self._p(key), self._p(value), ctypes.byref(made))

    def add_rotary_embedding(self, input, cos, sin, positions=None, *, interleaved=False, rotary_dims=0):
        """Adds a rotary embedding: input [b,heads,seq,size]; caches [positions,dims/2], or [b,seq,dims/2] without positions (int64 [b,seq])."""
        return self._layer("network_add_rotary_embedding", self._pointer, self._p(input), self._p(cos), self._p(sin), self._p(positions),
                           interleaved, rotary_dims)

    def add_kv_cache_update(self, cache, update, write_indices):
        """Writes `update` [b,heads,s,size] to `cache` [b,heads,max,size] at write_indices [b]."""
        return self._layer("network_add_kv_cache_update", self._pointer, self._p(cache), self._p(update), self._p(write_indices))

    def add_moe(self, hidden, experts, scores, gate, up, down, *, gate_bias=None, up_bias=None, down_bias=None, activation="relu",
                swish=False, alpha=0.0, beta=0.0):
        """Adds a mixture of experts: hidden [b,s,h]; experts int32 [b,s,k]; scores [b,s,k]; gate (or None) and up [experts,h,inner], down
        [experts,inner,h]; biases [experts,inner or h]. The output is [b,s,h]."""
        made = options(_capi.Moe, gate_bias=self._p(gate_bias), up_bias=self._p(up_bias), down_bias=self._p(down_bias),
                       activation=number(Activation, activation, "activation"), swish=swish, alpha=alpha, beta=beta)
        return self._layer("network_add_moe", self._pointer, *map(self._p, (hidden, experts, scores, gate, up, down)), ctypes.byref(made))

    # ---- quantization, detection, devices ----
    def add_quantize(self, input, scale, zero_point=None, axis=0, to="int8"):
        """Adds input / scale + zero_point, rounded. scale is a scalar, or [n] along `axis`."""
        input = self._tensor(input)
        return self._layer("network_add_quantize", self._pointer, input._pointer, self._p(scale), self._p(zero_point),
                           axis_of(input, axis), dtype_number(to))

    def add_dequantize(self, input, scale, zero_point=None, axis=0, to="float32"):
        """Adds (input - zero_point) * scale."""
        input = self._tensor(input)
        return self._layer("network_add_dequantize", self._pointer, input._pointer, self._p(scale), self._p(zero_point),
                           axis_of(input, axis), dtype_number(to))

    def add_dynamic_quantize(self, input, axis=-1, block=16, to="float4_e2m1fn", scale_dtype="float8_e4m3fn"):
        """Quantizes blocks of an axis with a common scale, max |x| / maximum of `to`. Outputs are data and scales."""
        input = self._tensor(input)
        return self._layer("network_add_dynamic_quantize", self._pointer, input._pointer, axis_of(input, axis), block, dtype_number(to),
                           dtype_number(scale_dtype))

    def add_nms(self, boxes, scores, max_per_class, *, iou_threshold=None, score_threshold=None, centers=False, topk=0):
        """Adds non-maximum suppression: boxes [b,n,4], scores [b,classes,n], scalars. Outputs are indices [m,3] and their number."""
        made = options(_capi.Nms, centers=centers, topk=topk, iou_threshold=self._p(iou_threshold),
                       score_threshold=self._p(score_threshold))
        return self._layer("network_add_nms", self._pointer, self._p(boxes), self._p(scores), self._p(max_per_class), ctypes.byref(made))

    def add_collective(self, input, op, reduce="sum", root=0, ranks=1):
        """Adds a Collective operation. The CPU has one rank."""
        return self._layer("network_add_collective", self._pointer, self._p(input), number(Collective, op, "collective"),
                           number(Reduce, reduce, "reduction"), root, ranks)

    # ---- control flow ----
    def add_loop(self):
        """A Loop."""
        return Loop._made(self, make("network_add_loop", self._pointer))

    def add_conditional(self, condition):
        """Adds a Conditional with a scalar bool condition."""
        return Conditional._made(self, make("network_add_conditional", self._pointer, self._p(condition)))


def as_axes(axes):
    """Returns the tensor of axes for a layer."""
    if isinstance(axes, (Tensor, Layer, numpy.ndarray)):
        return axes
    return numpy.atleast_1d(numpy.asarray(axes, "int64"))
