// SPDX-License-Identifier: Apache-2.0
//! Functions that add layers.
use crate::enums::*;
use crate::error::{check, Error, Result};
use crate::network::{optional, Conditional, Layer, Loop, Network, Tensor};
use crate::options::{Attention, FillOptions, Moe, Nms, Normalization, Resize, Shuffle, Slice, Window};
use crate::sys;
use crate::types::{DataType, Dims, Weights};
use std::ffi::CString;
use std::ptr::null_mut;

/// Functions that add layers. A mask of axes is a bit set: bit n selects axis n. A dimension of 1 broadcasts only where stated.
impl Network<'_> {
    /// Adds a constant of shape `dims`. The number of weights must equal the number of elements.
    pub fn add_constant<'n>(&'n self, dims: impl Into<Dims>, weights: Weights) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call, the weights as long as the network.
        self.add_with([weights], |network, [weights], out| unsafe {
            sys::kelp_network_add_constant(network, dims.into().raw(), weights, out)
        })
    }

    /// Adds an activation. `alpha` and `beta` are ignored by functions that do not use them.
    pub fn add_activation<'n>(
        &'n self,
        input: Tensor<'n>,
        activation: ActivationType,
        alpha: f32,
        beta: f32,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_activation(network, input.as_ptr(), activation.raw(), alpha, beta, out)
        })
    }

    /// Adds a unary function.
    pub fn add_unary<'n>(&'n self, input: Tensor<'n>, op: UnaryOperation) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe { sys::kelp_network_add_unary(network, input.as_ptr(), op.raw(), out) })
    }

    /// Adds a binary function. Ranks and types must be equal; dimensions must be equal or 1, which broadcasts.
    pub fn add_elementwise<'n>(&'n self, a: Tensor<'n>, b: Tensor<'n>, op: ElementWiseOperation) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_elementwise(network, a.as_ptr(), b.as_ptr(), op.raw(), out)
        })
    }

    /// Adds (input * scale + shift) ^ power. Zeroed weights stand for scale 1, shift 0 and power 1.
    pub fn add_scale<'n>(
        &'n self,
        input: Tensor<'n>,
        mode: ScaleMode,
        shift: Weights,
        scale: Weights,
        power: Weights,
        axis: i32,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call, the weights as long as the network.
        self.add_with([shift, scale, power], |network, [shift, scale, power], out| unsafe {
            sys::kelp_network_add_scale(network, input.as_ptr(), mode.raw(), shift, scale, power, axis, out)
        })
    }

    /// Adds x >= 0 ? x : slope * x. `slope` broadcasts to `input`.
    pub fn add_parametric_relu<'n>(&'n self, input: Tensor<'n>, slope: Tensor<'n>) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_parametric_relu(network, input.as_ptr(), slope.as_ptr(), out)
        })
    }

    /// Adds condition ? then_input : else_input. `condition` is bool; all three broadcast together.
    pub fn add_select<'n>(
        &'n self,
        condition: Tensor<'n>,
        then_input: Tensor<'n>,
        else_input: Tensor<'n>,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_select(network, condition.as_ptr(), then_input.as_ptr(), else_input.as_ptr(), out)
        })
    }

    /// Adds a copy of the input.
    pub fn add_identity<'n>(&'n self, input: Tensor<'n>) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe { sys::kelp_network_add_identity(network, input.as_ptr(), out) })
    }

    /// Adds a conversion to type `to`.
    pub fn add_cast<'n>(&'n self, input: Tensor<'n>, to: DataType) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe { sys::kelp_network_add_cast(network, input.as_ptr(), to.raw(), out) })
    }

    /// Adds a convolution. Input `[n, c, …]`, kernel `[output_maps, c / groups, …]`, bias `[output_maps]` or none,
    /// output `[n, output_maps, …]`. `kernel_dims` are the spatial dimensions of the kernel.
    pub fn add_convolution<'n>(
        &'n self,
        input: Tensor<'n>,
        output_maps: i64,
        kernel_dims: impl Into<Dims>,
        kernel: Weights,
        bias: Weights,
        options: &Window<'n>,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call, the weights as long as the network.
        self.add_with([kernel, bias], |network, [kernel, bias], out| unsafe {
            sys::kelp_network_add_convolution(
                network,
                input.as_ptr(),
                output_maps,
                kernel_dims.into().raw(),
                kernel,
                bias,
                &options.raw(),
                out,
            )
        })
    }

    /// Adds a transposed convolution. Input `[n, c, …]`, kernel `[c, output_maps / groups, …]`; otherwise like
    /// [`add_convolution`](Network::add_convolution). [`PaddingMode::ExplicitRoundUp`] is rejected.
    pub fn add_deconvolution<'n>(
        &'n self,
        input: Tensor<'n>,
        output_maps: i64,
        kernel_dims: impl Into<Dims>,
        kernel: Weights,
        bias: Weights,
        options: &Window<'n>,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call, the weights as long as the network.
        self.add_with([kernel, bias], |network, [kernel, bias], out| unsafe {
            sys::kelp_network_add_deconvolution(
                network,
                input.as_ptr(),
                output_maps,
                kernel_dims.into().raw(),
                kernel,
                bias,
                &options.raw(),
                out,
            )
        })
    }

    /// Adds pooling over windows of `window_dims` of an input `[n, c, …]`.
    pub fn add_pooling<'n>(
        &'n self,
        input: Tensor<'n>,
        pooling: PoolingType,
        window_dims: impl Into<Dims>,
        options: &Window<'n>,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_pooling(
                network,
                input.as_ptr(),
                pooling.raw(),
                window_dims.into().raw(),
                &options.raw(),
                out,
            )
        })
    }

    /// Adds local response normalization: x / (k + alpha / window * s) ^ beta, where s is the sum of squares over
    /// `window` neighbouring channels. `window` must be odd.
    pub fn add_lrn<'n>(&'n self, input: Tensor<'n>, window: i64, alpha: f32, beta: f32, k: f32) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_lrn(network, input.as_ptr(), window, alpha, beta, k, out)
        })
    }

    /// Adds zero padding of the last two axes: `pre` before and `post` after, two values each. Negative values crop.
    pub fn add_padding<'n>(
        &'n self,
        input: Tensor<'n>,
        pre: impl Into<Dims>,
        post: impl Into<Dims>,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_padding(network, input.as_ptr(), pre.into().raw(), post.into().raw(), out)
        })
    }

    /// Adds a resize layer.
    pub fn add_resize<'n>(&'n self, input: Tensor<'n>, options: &Resize<'n>) -> Result<Layer<'n>> {
        let raw = options.raw()?;
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe { sys::kelp_network_add_resize(network, input.as_ptr(), &raw, out) })
    }

    /// Adds sampling at given positions. Input `[n, c, h, w]`, grid `[n, ho, wo, 2]` with x and y in -1 … 1, output
    /// `[n, c, ho, wo]`. `outside` is FILL, CLAMP or REFLECT.
    pub fn add_grid_sample<'n>(
        &'n self,
        input: Tensor<'n>,
        grid: Tensor<'n>,
        mode: InterpolationMode,
        align_corners: bool,
        outside: SampleMode,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_grid_sample(
                network,
                input.as_ptr(),
                grid.as_ptr(),
                mode.raw(),
                align_corners,
                outside.raw(),
                out,
            )
        })
    }

    /// Adds a transpose, reshape or both.
    pub fn add_shuffle<'n>(&'n self, input: Tensor<'n>, options: &Shuffle<'n>) -> Result<Layer<'n>> {
        let raw = options.raw()?;
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe { sys::kelp_network_add_shuffle(network, input.as_ptr(), &raw, out) })
    }

    /// Adds a concatenation along `axis` of at least one input. All other dimensions must be equal.
    pub fn add_concatenation<'n>(&'n self, inputs: &[Tensor<'n>], axis: i32) -> Result<Layer<'n>> {
        let inputs: Vec<_> = inputs.iter().map(Tensor::as_ptr).collect();
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_concatenation(network, inputs.as_ptr(), inputs.len(), axis, out)
        })
    }

    /// Adds a slice: for each axis, `size` elements from `start` on in steps of `stride`.
    pub fn add_slice<'n>(
        &'n self,
        input: Tensor<'n>,
        start: impl Into<Dims>,
        size: impl Into<Dims>,
        stride: impl Into<Dims>,
        options: &Slice<'n>,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_slice(
                network,
                input.as_ptr(),
                start.into().raw(),
                size.into().raw(),
                stride.into().raw(),
                &options.raw(),
                out,
            )
        })
    }

    /// Adds the shape of the input as int64 `[rank]`.
    pub fn add_shape<'n>(&'n self, input: Tensor<'n>) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe { sys::kelp_network_add_shape(network, input.as_ptr(), out) })
    }

    /// Removes axes of dimension 1. `axes` is a constant int32 or int64 `[n]`.
    pub fn add_squeeze<'n>(&'n self, input: Tensor<'n>, axes: Tensor<'n>) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe { sys::kelp_network_add_squeeze(network, input.as_ptr(), axes.as_ptr(), out) })
    }

    /// Inserts axes of dimension 1. `axes`, positions in the result, is a constant int32 or int64 `[n]`.
    pub fn add_unsqueeze<'n>(&'n self, input: Tensor<'n>, axes: Tensor<'n>) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe { sys::kelp_network_add_unsqueeze(network, input.as_ptr(), axes.as_ptr(), out) })
    }

    /// Adds a gather. `indices` is int32 or int64.
    pub fn add_gather<'n>(
        &'n self,
        data: Tensor<'n>,
        indices: Tensor<'n>,
        mode: GatherMode,
        axis: i32,
        batch_dims: i32,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_gather(network, data.as_ptr(), indices.as_ptr(), mode.raw(), axis, batch_dims, out)
        })
    }

    /// Adds a scatter: a copy of `data` with `updates` at `indices`. `axis` applies to [`ScatterMode::Element`].
    pub fn add_scatter<'n>(
        &'n self,
        data: Tensor<'n>,
        indices: Tensor<'n>,
        updates: Tensor<'n>,
        mode: ScatterMode,
        axis: i32,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_scatter(
                network,
                data.as_ptr(),
                indices.as_ptr(),
                updates.as_ptr(),
                mode.raw(),
                axis,
                out,
            )
        })
    }

    /// Adds one-hot encoding. `values` `[2]` contains the off value and the on value. `depth` is a scalar: the size
    /// of the new axis, which is inserted at position `axis`.
    pub fn add_one_hot<'n>(
        &'n self,
        indices: Tensor<'n>,
        values: Tensor<'n>,
        depth: Tensor<'n>,
        axis: i32,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_one_hot(network, indices.as_ptr(), values.as_ptr(), depth.as_ptr(), axis, out)
        })
    }

    /// Adds the indices of non-zero elements, shape `[rank, n]`. `indices` is the element type of the output,
    /// `Int32` or `Int64`.
    pub fn add_non_zero<'n>(&'n self, input: Tensor<'n>, index_type: DataType) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_non_zero(network, input.as_ptr(), index_type.raw(), out)
        })
    }

    /// Reverses the first lengths[b] elements along `sequence_axis` of each index b of `batch_axis`. `lengths` is
    /// int32 or int64 `[batch]`.
    pub fn add_reverse_sequence<'n>(
        &'n self,
        input: Tensor<'n>,
        lengths: Tensor<'n>,
        batch_axis: i32,
        sequence_axis: i32,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_reverse_sequence(
                network,
                input.as_ptr(),
                lengths.as_ptr(),
                batch_axis,
                sequence_axis,
                out,
            )
        })
    }

    /// Adds a tensor of shape `dims` filled with values. The layer has no inputs unless options specify tensors.
    pub fn add_fill<'n>(
        &'n self,
        dims: impl Into<Dims>,
        op: FillOperation,
        options: &FillOptions<'n>,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_fill(network, dims.into().raw(), op.raw(), &options.raw(), out)
        })
    }

    /// Adds an assertion. `condition` is bool. Fails with INVALID_ARGUMENT if it is a constant with a false element.
    /// An inference fails with FAILED_PRECONDITION and `message` if an element of the computed condition is false. A
    /// build fails with UNIMPLEMENTED if the assertion is inside a conditional.
    pub fn add_assertion<'n>(&'n self, condition: Tensor<'n>, message: &str) -> Result<Layer<'n>> {
        let message = CString::new(message)?;
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_assertion(network, condition.as_ptr(), message.as_ptr(), out)
        })
    }

    /// Adds a reduction over the mask `axes`. Reduced axes become 1 with `keep_dims` and are removed otherwise.
    pub fn add_reduce<'n>(
        &'n self,
        input: Tensor<'n>,
        op: ReduceOperation,
        axes: u32,
        keep_dims: bool,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_reduce(network, input.as_ptr(), op.raw(), axes, keep_dims, out)
        })
    }

    /// Adds a softmax. `axes` has exactly one bit.
    pub fn add_softmax<'n>(&'n self, input: Tensor<'n>, axes: u32) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe { sys::kelp_network_add_softmax(network, input.as_ptr(), axes, out) })
    }

    /// Adds a softmax along the last axis, in which each row has its own number of valid elements: `bounds`, int32 or
    /// int64 `[n, 1]` or `[b, n, 1]`. Input `[n, k]` or `[b, n, k]`. The other elements of a row become 0.
    pub fn add_ragged_softmax<'n>(&'n self, input: Tensor<'n>, bounds: Tensor<'n>) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_ragged_softmax(network, input.as_ptr(), bounds.as_ptr(), out)
        })
    }

    /// Adds the k largest (or smallest) elements along an axis. Outputs: values, and indices of type `indices`
    /// (`Int32` or `Int64`). `axes` has exactly one bit. `k_tensor` is a scalar that is used instead of `k`, or
    /// NULL.
    pub fn add_topk<'n>(
        &'n self,
        input: Tensor<'n>,
        largest: bool,
        k: i64,
        k_tensor: Option<Tensor<'n>>,
        axes: u32,
        index_type: DataType,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_topk(
                network,
                input.as_ptr(),
                largest,
                k,
                optional(k_tensor),
                axes,
                index_type.raw(),
                out,
            )
        })
    }

    /// Adds cumulative sums along `axis`. With `exclusive`, a sum does not include its own element. With `reverse`,
    /// summation starts at the end of the axis.
    pub fn add_cumulative<'n>(
        &'n self,
        input: Tensor<'n>,
        axis: i32,
        exclusive: bool,
        reverse: bool,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_cumulative(network, input.as_ptr(), axis, exclusive, reverse, out)
        })
    }

    /// Adds (x - mean) / sqrt(variance + epsilon) * scale + bias, with mean and variance over the mask `axes`.
    /// `scale` and `bias` have the rank of `input` and broadcast to it. For group normalization, mean and variance
    /// are those of each group, and `scale` and `bias` are `[1, c, 1, …]` or `[1, groups, 1, …]`.
    pub fn add_normalization<'n>(
        &'n self,
        input: Tensor<'n>,
        scale: Tensor<'n>,
        bias: Tensor<'n>,
        axes: u32,
        options: &Normalization,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_normalization(
                network,
                input.as_ptr(),
                scale.as_ptr(),
                bias.as_ptr(),
                axes,
                &options.raw(),
                out,
            )
        })
    }

    /// Adds a batched matrix multiplication. Both operands must have the same number of batch axes, which broadcast.
    pub fn add_matrix_multiply<'n>(
        &'n self,
        a: Tensor<'n>,
        op_a: MatrixOperation,
        b: Tensor<'n>,
        op_b: MatrixOperation,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_matrix_multiply(network, a.as_ptr(), op_a.raw(), b.as_ptr(), op_b.raw(), out)
        })
    }

    /// Adds an Einstein summation such as "bij,bjk->bik", in lower-case letters.
    pub fn add_einsum<'n>(&'n self, inputs: &[Tensor<'n>], equation: &str) -> Result<Layer<'n>> {
        let inputs: Vec<_> = inputs.iter().map(Tensor::as_ptr).collect();
        let equation = CString::new(equation)?;
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_einsum(network, inputs.as_ptr(), inputs.len(), equation.as_ptr(), out)
        })
    }

    /// Adds softmax(query * transpose(key) + mask) * value. Each is `[b, heads, sequence, size]`. The layer does not
    /// scale the query: scale it before. Keys and values may have fewer heads than the query; a group of query heads
    /// then shares each of them (grouped-query attention).
    pub fn add_attention<'n>(
        &'n self,
        query: Tensor<'n>,
        key: Tensor<'n>,
        value: Tensor<'n>,
        options: &Attention<'n>,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_attention(network, query.as_ptr(), key.as_ptr(), value.as_ptr(), &options.raw(), out)
        })
    }

    /// Adds a rotary position embedding of an input `[b, heads, sequence, size]`. `cos` and `sin` are `[positions,
    /// dims / 2]`, or `[b, sequence, dims / 2]` if `positions` (int32 or int64 `[b, sequence]`) is NULL.
    /// `rotary_dims` 0 rotates all of `size`. `interleaved` pairs adjacent elements instead of halves.
    pub fn add_rotary_embedding<'n>(
        &'n self,
        input: Tensor<'n>,
        cos: Tensor<'n>,
        sin: Tensor<'n>,
        positions: Option<Tensor<'n>>,
        interleaved: bool,
        rotary_dims: i64,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_rotary_embedding(
                network,
                input.as_ptr(),
                cos.as_ptr(),
                sin.as_ptr(),
                optional(positions),
                interleaved,
                rotary_dims,
                out,
            )
        })
    }

    /// Adds an update of a key/value cache. The output is a copy of `cache` `[b, heads, max, size]` in which `update`
    /// `[b, heads, s, size]` replaces the s positions from write_indices[b] (int32 or int64) on.
    pub fn add_kv_cache_update<'n>(
        &'n self,
        cache: Tensor<'n>,
        update: Tensor<'n>,
        write_indices: Tensor<'n>,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_kv_cache_update(network, cache.as_ptr(), update.as_ptr(), write_indices.as_ptr(), out)
        })
    }

    /// Adds a mixture of experts. `hidden` `[b, s, h]`, `experts` int32 `[b, s, k]`, `scores` `[b, s, k]`, `gate`
    /// (may be NULL) and `up` `[experts, h, inner]`, `down` `[experts, inner, h]`. Output `[b, s, h]`.
    #[allow(clippy::too_many_arguments)] // the operands of the layer
    pub fn add_moe<'n>(
        &'n self,
        hidden: Tensor<'n>,
        experts: Tensor<'n>,
        scores: Tensor<'n>,
        gate: Option<Tensor<'n>>,
        up: Tensor<'n>,
        down: Tensor<'n>,
        options: &Moe<'n>,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_moe(
                network,
                hidden.as_ptr(),
                experts.as_ptr(),
                scores.as_ptr(),
                optional(gate),
                up.as_ptr(),
                down.as_ptr(),
                &options.raw(),
                out,
            )
        })
    }

    /// Adds quantization to type `to`. `scale` is a scalar, or `[n]` along `axis`. `zero_point` has the shape of
    /// `scale`; NULL means 0.
    pub fn add_quantize<'n>(
        &'n self,
        input: Tensor<'n>,
        scale: Tensor<'n>,
        zero_point: Option<Tensor<'n>>,
        axis: i32,
        to: DataType,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_quantize(
                network,
                input.as_ptr(),
                scale.as_ptr(),
                optional(zero_point),
                axis,
                to.raw(),
                out,
            )
        })
    }

    /// Adds dequantization to the floating-point type `to`. `scale` and `zero_point` as in [`add_quantize`](Network::add_quantize).
    pub fn add_dequantize<'n>(
        &'n self,
        input: Tensor<'n>,
        scale: Tensor<'n>,
        zero_point: Option<Tensor<'n>>,
        axis: i32,
        to: DataType,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_dequantize(
                network,
                input.as_ptr(),
                scale.as_ptr(),
                optional(zero_point),
                axis,
                to.raw(),
                out,
            )
        })
    }

    /// Adds block quantization: every `block` consecutive elements along `axis` share a scale, which is their maximum
    /// of |x| divided by the largest value of `to`. Outputs: data of type `to` (`Fp8` or `Fp4`) and
    /// scales of type `scale_dtype`. The dimensions from `axis` on must be fixed and `block` must divide the first of
    /// them.
    pub fn add_dynamic_quantize<'n>(
        &'n self,
        input: Tensor<'n>,
        axis: i32,
        block: i64,
        to: DataType,
        scale_type: DataType,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_dynamic_quantize(
                network,
                input.as_ptr(),
                axis,
                block,
                to.raw(),
                scale_type.raw(),
                out,
            )
        })
    }

    /// Adds non-maximum suppression. `boxes` `[b, n, 4]`, `scores` `[b, classes, n]`, `max_per_class` a scalar.
    /// Outputs, int32: indices (batch, class, box) of the selected boxes `[m, 3]`, and m as a scalar.
    pub fn add_nms<'n>(
        &'n self,
        boxes: Tensor<'n>,
        scores: Tensor<'n>,
        max_per_class: Tensor<'n>,
        options: &Nms<'n>,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_nms(
                network,
                boxes.as_ptr(),
                scores.as_ptr(),
                max_per_class.as_ptr(),
                &options.raw(),
                out,
            )
        })
    }

    /// Adds a collective operation among `ranks` ranks. Only one rank is supported: fails with UNIMPLEMENTED for
    /// more.
    pub fn add_collective<'n>(
        &'n self,
        input: Tensor<'n>,
        op: CollectiveOperation,
        reduce: ReduceOperation,
        root: i32,
        ranks: i32,
    ) -> Result<Layer<'n>> {
        // SAFETY: the arguments are valid, and borrowed during the call.
        self.add(|network, out| unsafe {
            sys::kelp_network_add_collective(network, input.as_ptr(), op.raw(), reduce.raw(), root, ranks, out)
        })
    }

    /// Adds a loop.
    pub fn add_loop(&self) -> Result<Loop<'_>> {
        let mut raw = null_mut();
        // SAFETY: the network is valid.
        check(unsafe { sys::kelp_network_add_loop(self.as_ptr(), &mut raw) }, Error::Builder)?;
        Ok(Loop { raw, network: self })
    }

    /// Adds a conditional. `condition` is a scalar bool.
    pub fn add_conditional<'n>(&'n self, condition: Tensor<'n>) -> Result<Conditional<'n>> {
        let mut raw = null_mut();
        // SAFETY: network and tensor are valid.
        check(
            unsafe { sys::kelp_network_add_conditional(self.as_ptr(), condition.as_ptr(), &mut raw) },
            Error::Builder,
        )?;
        Ok(Conditional { raw, network: self })
    }
}

// SAFETY of the calls below: the loop or conditional, the layers and the tensors are valid as long as their network.

impl<'n> Loop<'n> {
    /// Sets the number of iterations, a scalar int32 or int64. A loop has a trip count, a condition or both.
    pub fn set_trip_count(&self, count: Tensor<'n>) -> Result<()> {
        check(unsafe { sys::kelp_loop_set_trip_count(self.raw, count.as_ptr()) }, Error::Builder)
    }

    /// Sets the condition, a scalar bool computed in the body: the loop continues while it is true.
    pub fn set_condition(&self, condition: Tensor<'n>) -> Result<()> {
        check(unsafe { sys::kelp_loop_set_condition(self.raw, condition.as_ptr()) }, Error::Builder)
    }

    /// Adds a loop-carried value. The output of the layer is the value in the current iteration.
    pub fn add_recurrence(&self, initial: Tensor<'n>) -> Result<Layer<'n>> {
        self.network.add(|_, out| unsafe { sys::kelp_loop_add_recurrence(self.raw, initial.as_ptr(), out) })
    }

    /// Adds an iterator. In iteration i, the output of the layer is slice i of `tensor` along `axis`, with this axis removed. With
    /// `reverse`, iteration 0 returns the last slice.
    pub fn add_iterator(&self, tensor: Tensor<'n>, axis: i32, reverse: bool) -> Result<Layer<'n>> {
        self.network.add(|_, out| unsafe { sys::kelp_loop_add_iterator(self.raw, tensor.as_ptr(), axis, reverse, out) })
    }

    /// Adds an output of the loop. `axis` is the position of the new axis; ignored for [`LoopOutput::LastValue`].
    pub fn add_output(&self, tensor: Tensor<'n>, kind: LoopOutput, axis: i32) -> Result<Layer<'n>> {
        self.network
            .add(|_, out| unsafe { sys::kelp_loop_add_output(self.raw, tensor.as_ptr(), kind.raw(), axis, out) })
    }
}

impl<'n> Layer<'n> {
    /// Sets the value of the next iteration of a recurrence. Fails for other layers.
    pub fn set_next(&self, next: Tensor<'n>) -> Result<()> {
        check(unsafe { sys::kelp_recurrence_set_next(self.as_ptr(), next.as_ptr()) }, Error::Builder)
    }
}

impl<'n> Conditional<'n> {
    /// Adds an input. Layers in the branches use the output of the returned layer instead of `input`.
    pub fn add_input(&self, input: Tensor<'n>) -> Result<Layer<'n>> {
        self.network.add(|_, out| unsafe { sys::kelp_conditional_add_input(self.raw, input.as_ptr(), out) })
    }

    /// Adds an output: `then_tensor` if the condition is true, otherwise `else_tensor`. Types and ranks must be equal.
    pub fn add_output(&self, then_tensor: Tensor<'n>, else_tensor: Tensor<'n>) -> Result<Layer<'n>> {
        self.network.add(|_, out| unsafe {
            sys::kelp_conditional_add_output(self.raw, then_tensor.as_ptr(), else_tensor.as_ptr(), out)
        })
    }
}
