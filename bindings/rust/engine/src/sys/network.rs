// SPDX-License-Identifier: Apache-2.0
//! Declarations of `include/kelp/network.h`, which documents every function. Written by make_sys.py.
use super::*;

pub type kelp_layer_type = c_uint;
pub const KELP_LAYER_INPUT: kelp_layer_type = 0;
pub const KELP_LAYER_PARSED: kelp_layer_type = 1;
pub const KELP_LAYER_ACTIVATION: kelp_layer_type = 2;
pub const KELP_LAYER_ASSERTION: kelp_layer_type = 3;
pub const KELP_LAYER_ATTENTION: kelp_layer_type = 4;
pub const KELP_LAYER_CAST: kelp_layer_type = 5;
pub const KELP_LAYER_COLLECTIVE: kelp_layer_type = 6;
pub const KELP_LAYER_CONCATENATION: kelp_layer_type = 7;
pub const KELP_LAYER_CONDITIONAL_INPUT: kelp_layer_type = 8;
pub const KELP_LAYER_CONDITIONAL_OUTPUT: kelp_layer_type = 9;
pub const KELP_LAYER_CONSTANT: kelp_layer_type = 10;
pub const KELP_LAYER_CONVOLUTION: kelp_layer_type = 11;
pub const KELP_LAYER_CUMULATIVE: kelp_layer_type = 12;
pub const KELP_LAYER_DECONVOLUTION: kelp_layer_type = 13;
pub const KELP_LAYER_DEQUANTIZE: kelp_layer_type = 14;
pub const KELP_LAYER_DYNAMIC_QUANTIZE: kelp_layer_type = 15;
pub const KELP_LAYER_EINSUM: kelp_layer_type = 16;
pub const KELP_LAYER_ELEMENTWISE: kelp_layer_type = 17;
pub const KELP_LAYER_FILL: kelp_layer_type = 18;
pub const KELP_LAYER_GATHER: kelp_layer_type = 19;
pub const KELP_LAYER_GRID_SAMPLE: kelp_layer_type = 20;
pub const KELP_LAYER_IDENTITY: kelp_layer_type = 21;
pub const KELP_LAYER_ITERATOR: kelp_layer_type = 22;
pub const KELP_LAYER_KV_CACHE_UPDATE: kelp_layer_type = 23;
pub const KELP_LAYER_LOOP_OUTPUT: kelp_layer_type = 24;
pub const KELP_LAYER_LRN: kelp_layer_type = 25;
pub const KELP_LAYER_MATRIX_MULTIPLY: kelp_layer_type = 26;
pub const KELP_LAYER_MOE: kelp_layer_type = 27;
pub const KELP_LAYER_NMS: kelp_layer_type = 28;
pub const KELP_LAYER_NON_ZERO: kelp_layer_type = 29;
pub const KELP_LAYER_NORMALIZATION: kelp_layer_type = 30;
pub const KELP_LAYER_ONE_HOT: kelp_layer_type = 31;
pub const KELP_LAYER_PADDING: kelp_layer_type = 32;
pub const KELP_LAYER_PARAMETRIC_RELU: kelp_layer_type = 33;
pub const KELP_LAYER_POOLING: kelp_layer_type = 34;
pub const KELP_LAYER_QUANTIZE: kelp_layer_type = 35;
pub const KELP_LAYER_RAGGED_SOFTMAX: kelp_layer_type = 36;
pub const KELP_LAYER_RECURRENCE: kelp_layer_type = 37;
pub const KELP_LAYER_REDUCE: kelp_layer_type = 38;
pub const KELP_LAYER_RESIZE: kelp_layer_type = 39;
pub const KELP_LAYER_REVERSE_SEQUENCE: kelp_layer_type = 40;
pub const KELP_LAYER_ROTARY_EMBEDDING: kelp_layer_type = 41;
pub const KELP_LAYER_SCALE: kelp_layer_type = 42;
pub const KELP_LAYER_SCATTER: kelp_layer_type = 43;
pub const KELP_LAYER_SELECT: kelp_layer_type = 44;
pub const KELP_LAYER_SHAPE: kelp_layer_type = 45;
pub const KELP_LAYER_SHUFFLE: kelp_layer_type = 46;
pub const KELP_LAYER_SLICE: kelp_layer_type = 47;
pub const KELP_LAYER_SOFTMAX: kelp_layer_type = 48;
pub const KELP_LAYER_SQUEEZE: kelp_layer_type = 49;
pub const KELP_LAYER_TOPK: kelp_layer_type = 50;
pub const KELP_LAYER_UNARY: kelp_layer_type = 51;
pub const KELP_LAYER_UNSQUEEZE: kelp_layer_type = 52;
pub const KELP_LAYER_TYPE_COUNT: kelp_layer_type = 53;
pub type kelp_activation = c_uint;
pub const KELP_ACTIVATION_RELU: kelp_activation = 0;
pub const KELP_ACTIVATION_SIGMOID: kelp_activation = 1;
pub const KELP_ACTIVATION_TANH: kelp_activation = 2;
pub const KELP_ACTIVATION_LEAKY_RELU: kelp_activation = 3;
pub const KELP_ACTIVATION_ELU: kelp_activation = 4;
pub const KELP_ACTIVATION_SELU: kelp_activation = 5;
pub const KELP_ACTIVATION_SOFTSIGN: kelp_activation = 6;
pub const KELP_ACTIVATION_SOFTPLUS: kelp_activation = 7;
pub const KELP_ACTIVATION_CLIP: kelp_activation = 8;
pub const KELP_ACTIVATION_HARD_SIGMOID: kelp_activation = 9;
pub const KELP_ACTIVATION_SCALED_TANH: kelp_activation = 10;
pub const KELP_ACTIVATION_THRESHOLDED_RELU: kelp_activation = 11;
pub const KELP_ACTIVATION_GELU_ERF: kelp_activation = 12;
pub const KELP_ACTIVATION_GELU_TANH: kelp_activation = 13;
pub type kelp_unary = c_uint;
pub const KELP_UNARY_EXP: kelp_unary = 0;
pub const KELP_UNARY_LOG: kelp_unary = 1;
pub const KELP_UNARY_SQRT: kelp_unary = 2;
pub const KELP_UNARY_RECIP: kelp_unary = 3;
pub const KELP_UNARY_ABS: kelp_unary = 4;
pub const KELP_UNARY_NEG: kelp_unary = 5;
pub const KELP_UNARY_SIN: kelp_unary = 6;
pub const KELP_UNARY_COS: kelp_unary = 7;
pub const KELP_UNARY_TAN: kelp_unary = 8;
pub const KELP_UNARY_SINH: kelp_unary = 9;
pub const KELP_UNARY_COSH: kelp_unary = 10;
pub const KELP_UNARY_ASIN: kelp_unary = 11;
pub const KELP_UNARY_ACOS: kelp_unary = 12;
pub const KELP_UNARY_ATAN: kelp_unary = 13;
pub const KELP_UNARY_ASINH: kelp_unary = 14;
pub const KELP_UNARY_ACOSH: kelp_unary = 15;
pub const KELP_UNARY_ATANH: kelp_unary = 16;
pub const KELP_UNARY_CEIL: kelp_unary = 17;
pub const KELP_UNARY_FLOOR: kelp_unary = 18;
pub const KELP_UNARY_ERF: kelp_unary = 19;
pub const KELP_UNARY_NOT: kelp_unary = 20;
pub const KELP_UNARY_SIGN: kelp_unary = 21;
pub const KELP_UNARY_ROUND: kelp_unary = 22;
pub const KELP_UNARY_ISINF: kelp_unary = 23;
pub const KELP_UNARY_ISNAN: kelp_unary = 24;
pub type kelp_elementwise = c_uint;
pub const KELP_ELEMENTWISE_SUM: kelp_elementwise = 0;
pub const KELP_ELEMENTWISE_PROD: kelp_elementwise = 1;
pub const KELP_ELEMENTWISE_MAX: kelp_elementwise = 2;
pub const KELP_ELEMENTWISE_MIN: kelp_elementwise = 3;
pub const KELP_ELEMENTWISE_SUB: kelp_elementwise = 4;
pub const KELP_ELEMENTWISE_DIV: kelp_elementwise = 5;
pub const KELP_ELEMENTWISE_POW: kelp_elementwise = 6;
pub const KELP_ELEMENTWISE_FLOOR_DIV: kelp_elementwise = 7;
pub const KELP_ELEMENTWISE_AND: kelp_elementwise = 8;
pub const KELP_ELEMENTWISE_OR: kelp_elementwise = 9;
pub const KELP_ELEMENTWISE_XOR: kelp_elementwise = 10;
pub const KELP_ELEMENTWISE_EQUAL: kelp_elementwise = 11;
pub const KELP_ELEMENTWISE_GREATER: kelp_elementwise = 12;
pub const KELP_ELEMENTWISE_LESS: kelp_elementwise = 13;
pub type kelp_scale_mode = c_uint;
pub const KELP_SCALE_UNIFORM: kelp_scale_mode = 0;
pub const KELP_SCALE_CHANNEL: kelp_scale_mode = 1;
pub const KELP_SCALE_ELEMENTWISE: kelp_scale_mode = 2;
pub type kelp_padding_mode = c_uint;
pub const KELP_PADDING_EXPLICIT_ROUND_DOWN: kelp_padding_mode = 0;
pub const KELP_PADDING_EXPLICIT_ROUND_UP: kelp_padding_mode = 1;
pub const KELP_PADDING_SAME_UPPER: kelp_padding_mode = 2;
pub const KELP_PADDING_SAME_LOWER: kelp_padding_mode = 3;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_window {
    pub struct_size: u32,
    pub stride: [i64; 3],
    pub dilation: [i64; 3],
    pub pre_padding: [i64; 3],
    pub post_padding: [i64; 3],
    pub padding_mode: kelp_padding_mode,
    pub groups: i64,
    pub kernel: *mut kelp_net_tensor,
    pub bias: *mut kelp_net_tensor,
    pub include_padding: bool,
    pub blend: f32,
}
pub type kelp_pooling = c_uint;
pub const KELP_POOLING_MAX: kelp_pooling = 0;
pub const KELP_POOLING_AVERAGE: kelp_pooling = 1;
pub const KELP_POOLING_BLEND: kelp_pooling = 2;
pub type kelp_interpolation = c_uint;
pub const KELP_INTERPOLATION_NEAREST: kelp_interpolation = 0;
pub const KELP_INTERPOLATION_LINEAR: kelp_interpolation = 1;
pub const KELP_INTERPOLATION_CUBIC: kelp_interpolation = 2;
pub type kelp_coordinates = c_uint;
pub const KELP_COORDINATES_ALIGN_CORNERS: kelp_coordinates = 0;
pub const KELP_COORDINATES_ASYMMETRIC: kelp_coordinates = 1;
pub const KELP_COORDINATES_HALF_PIXEL: kelp_coordinates = 2;
pub type kelp_rounding = c_uint;
pub const KELP_ROUNDING_HALF_UP: kelp_rounding = 0;
pub const KELP_ROUNDING_HALF_DOWN: kelp_rounding = 1;
pub const KELP_ROUNDING_FLOOR: kelp_rounding = 2;
pub const KELP_ROUNDING_CEIL: kelp_rounding = 3;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_resize {
    pub struct_size: u32,
    pub dims: kelp_shape,
    pub scale_count: u32,
    pub scales: [f32; KELP_MAX_RANK as usize],
    pub shape: *mut kelp_net_tensor,
    pub mode: kelp_interpolation,
    pub coordinates: kelp_coordinates,
    pub rounding: kelp_rounding,
    pub cubic_coefficient: f32,
    pub exclude_outside: bool,
}
pub type kelp_sample_mode = c_uint;
pub const KELP_SAMPLE_STRICT: kelp_sample_mode = 0;
pub const KELP_SAMPLE_WRAP: kelp_sample_mode = 1;
pub const KELP_SAMPLE_CLAMP: kelp_sample_mode = 2;
pub const KELP_SAMPLE_FILL: kelp_sample_mode = 3;
pub const KELP_SAMPLE_REFLECT: kelp_sample_mode = 4;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_shuffle {
    pub struct_size: u32,
    pub first_transpose_given: bool,
    pub second_transpose_given: bool,
    pub first_transpose: [i32; KELP_MAX_RANK as usize],
    pub reshape_given: bool,
    pub reshape: kelp_shape,
    pub shape: *mut kelp_net_tensor,
    pub zero_is_zero: bool,
    pub second_transpose: [i32; KELP_MAX_RANK as usize],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_slice {
    pub struct_size: u32,
    pub mode: kelp_sample_mode,
    pub start: *mut kelp_net_tensor,
    pub size: *mut kelp_net_tensor,
    pub stride: *mut kelp_net_tensor,
    pub fill: *mut kelp_net_tensor,
}
pub type kelp_gather_mode = c_uint;
pub const KELP_GATHER_DEFAULT: kelp_gather_mode = 0;
pub const KELP_GATHER_ELEMENT: kelp_gather_mode = 1;
pub const KELP_GATHER_ND: kelp_gather_mode = 2;
pub type kelp_scatter_mode = c_uint;
pub const KELP_SCATTER_ELEMENT: kelp_scatter_mode = 0;
pub const KELP_SCATTER_ND: kelp_scatter_mode = 1;
pub type kelp_fill = c_uint;
pub const KELP_FILL_LINSPACE: kelp_fill = 0;
pub const KELP_FILL_RANDOM_UNIFORM: kelp_fill = 1;
pub const KELP_FILL_RANDOM_NORMAL: kelp_fill = 2;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_fill_options {
    pub struct_size: u32,
    pub alpha: f64,
    pub beta: f64,
    pub shape: *mut kelp_net_tensor,
    pub start: *mut kelp_net_tensor,
    pub delta: *mut kelp_net_tensor,
    pub dtype: kelp_dtype,
}
pub type kelp_reduce = c_uint;
pub const KELP_REDUCE_SUM: kelp_reduce = 0;
pub const KELP_REDUCE_PROD: kelp_reduce = 1;
pub const KELP_REDUCE_MAX: kelp_reduce = 2;
pub const KELP_REDUCE_MIN: kelp_reduce = 3;
pub const KELP_REDUCE_AVERAGE: kelp_reduce = 4;
pub const KELP_REDUCE_NONE: kelp_reduce = 5;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_normalization {
    pub struct_size: u32,
    pub epsilon: f32,
    pub groups: i64,
}
pub type kelp_matrix_op = c_uint;
pub const KELP_MATRIX_NONE: kelp_matrix_op = 0;
pub const KELP_MATRIX_TRANSPOSE: kelp_matrix_op = 1;
pub const KELP_MATRIX_VECTOR: kelp_matrix_op = 2;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_attention {
    pub struct_size: u32,
    pub causal: bool,
    pub no_softmax: bool,
    pub mask: *mut kelp_net_tensor,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_moe {
    pub struct_size: u32,
    pub gate_bias: *mut kelp_net_tensor,
    pub up_bias: *mut kelp_net_tensor,
    pub down_bias: *mut kelp_net_tensor,
    pub activation: kelp_activation,
    pub swish: bool,
    pub alpha: f32,
    pub beta: f32,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_nms {
    pub struct_size: u32,
    pub centers: bool,
    pub topk: i64,
    pub iou_threshold: *mut kelp_net_tensor,
    pub score_threshold: *mut kelp_net_tensor,
}
pub type kelp_collective = c_uint;
pub const KELP_COLLECTIVE_ALL_REDUCE: kelp_collective = 0;
pub const KELP_COLLECTIVE_ALL_GATHER: kelp_collective = 1;
pub const KELP_COLLECTIVE_BROADCAST: kelp_collective = 2;
pub const KELP_COLLECTIVE_REDUCE: kelp_collective = 3;
pub const KELP_COLLECTIVE_REDUCE_SCATTER: kelp_collective = 4;
pub type kelp_loop_output = c_uint;
pub const KELP_LOOP_LAST_VALUE: kelp_loop_output = 0;
pub const KELP_LOOP_CONCATENATE: kelp_loop_output = 1;
pub const KELP_LOOP_REVERSE: kelp_loop_output = 2;
opaque!(kelp_builder);
opaque!(kelp_builder_config);
opaque!(kelp_network);
opaque!(kelp_layer);
opaque!(kelp_net_tensor);
opaque!(kelp_loop);
opaque!(kelp_conditional);

unsafe extern "C" {
    pub fn kelp_network_retain(network: *mut kelp_network) -> *mut kelp_network;
    pub fn kelp_network_release(network: *mut kelp_network);
    pub fn kelp_network_set_name(network: *mut kelp_network, name: *const c_char) -> *mut kelp_status;
    pub fn kelp_network_name(network: *const kelp_network) -> *const c_char;
    pub fn kelp_network_layer_count(network: *const kelp_network) -> usize;
    pub fn kelp_network_layer(network: *const kelp_network, index: usize) -> *mut kelp_layer;
    pub fn kelp_network_input_count(network: *const kelp_network) -> usize;
    pub fn kelp_network_input(network: *const kelp_network, index: usize) -> *mut kelp_net_tensor;
    pub fn kelp_network_output_count(network: *const kelp_network) -> usize;
    pub fn kelp_network_output(network: *const kelp_network, index: usize) -> *mut kelp_net_tensor;
    pub fn kelp_network_mark_output(network: *mut kelp_network, tensor: *mut kelp_net_tensor) -> *mut kelp_status;
    pub fn kelp_network_unmark_output(network: *mut kelp_network, tensor: *mut kelp_net_tensor) -> *mut kelp_status;
    pub fn kelp_network_mark_refittable(network: *mut kelp_network, weights_name: *const c_char) -> *mut kelp_status;
    pub fn kelp_layer_type_name(type_: kelp_layer_type) -> *const c_char;
    pub fn kelp_layer_type_of(layer: *const kelp_layer) -> kelp_layer_type;
    pub fn kelp_layer_name(layer: *const kelp_layer) -> *const c_char;
    pub fn kelp_layer_set_name(layer: *mut kelp_layer, name: *const c_char) -> *mut kelp_status;
    pub fn kelp_layer_input_count(layer: *const kelp_layer) -> usize;
    pub fn kelp_layer_input(layer: *const kelp_layer, index: usize) -> *mut kelp_net_tensor;
    pub fn kelp_layer_output_count(layer: *const kelp_layer) -> usize;
    pub fn kelp_layer_output(layer: *const kelp_layer, index: usize) -> *mut kelp_net_tensor;
    pub fn kelp_net_tensor_name(tensor: *const kelp_net_tensor) -> *const c_char;
    pub fn kelp_net_tensor_set_name(tensor: *mut kelp_net_tensor, name: *const c_char) -> *mut kelp_status;
    pub fn kelp_net_tensor_dtype(tensor: *const kelp_net_tensor) -> kelp_dtype;
    pub fn kelp_net_tensor_dims(tensor: *const kelp_net_tensor) -> kelp_shape;
    pub fn kelp_network_add_input(
        network: *mut kelp_network,
        name: *const c_char,
        dtype: kelp_dtype,
        dims: kelp_shape,
        out: *mut *mut kelp_net_tensor,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_constant(
        network: *mut kelp_network,
        dims: kelp_shape,
        weights: kelp_weights,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_activation(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        type_: kelp_activation,
        alpha: f32,
        beta: f32,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_unary(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        op: kelp_unary,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_elementwise(
        network: *mut kelp_network,
        a: *mut kelp_net_tensor,
        b: *mut kelp_net_tensor,
        op: kelp_elementwise,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_scale(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        mode: kelp_scale_mode,
        shift: kelp_weights,
        scale: kelp_weights,
        power: kelp_weights,
        axis: i32,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_parametric_relu(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        slope: *mut kelp_net_tensor,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_select(
        network: *mut kelp_network,
        condition: *mut kelp_net_tensor,
        then_input: *mut kelp_net_tensor,
        else_input: *mut kelp_net_tensor,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_identity(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_cast(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        to: kelp_dtype,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_convolution(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        output_maps: i64,
        kernel_dims: kelp_shape,
        kernel: kelp_weights,
        bias: kelp_weights,
        options: *const kelp_window,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_deconvolution(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        output_maps: i64,
        kernel_dims: kelp_shape,
        kernel: kelp_weights,
        bias: kelp_weights,
        options: *const kelp_window,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_pooling(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        type_: kelp_pooling,
        window_dims: kelp_shape,
        options: *const kelp_window,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_lrn(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        window: i64,
        alpha: f32,
        beta: f32,
        k: f32,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_padding(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        pre: kelp_shape,
        post: kelp_shape,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_resize(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        options: *const kelp_resize,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_grid_sample(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        grid: *mut kelp_net_tensor,
        mode: kelp_interpolation,
        align_corners: bool,
        outside: kelp_sample_mode,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_shuffle(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        options: *const kelp_shuffle,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_concatenation(
        network: *mut kelp_network,
        inputs: *const *mut kelp_net_tensor,
        count: usize,
        axis: i32,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_slice(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        start: kelp_shape,
        size: kelp_shape,
        stride: kelp_shape,
        options: *const kelp_slice,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_shape(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_squeeze(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        axes: *mut kelp_net_tensor,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_unsqueeze(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        axes: *mut kelp_net_tensor,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_gather(
        network: *mut kelp_network,
        data: *mut kelp_net_tensor,
        indices: *mut kelp_net_tensor,
        mode: kelp_gather_mode,
        axis: i32,
        batch_dims: i32,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_scatter(
        network: *mut kelp_network,
        data: *mut kelp_net_tensor,
        indices: *mut kelp_net_tensor,
        updates: *mut kelp_net_tensor,
        mode: kelp_scatter_mode,
        axis: i32,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_one_hot(
        network: *mut kelp_network,
        indices: *mut kelp_net_tensor,
        values: *mut kelp_net_tensor,
        depth: *mut kelp_net_tensor,
        axis: i32,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_non_zero(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        indices: kelp_dtype,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_reverse_sequence(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        lengths: *mut kelp_net_tensor,
        batch_axis: i32,
        sequence_axis: i32,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_fill(
        network: *mut kelp_network,
        dims: kelp_shape,
        op: kelp_fill,
        options: *const kelp_fill_options,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_assertion(
        network: *mut kelp_network,
        condition: *mut kelp_net_tensor,
        message: *const c_char,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_reduce(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        op: kelp_reduce,
        axes: u32,
        keep_dims: bool,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_softmax(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        axes: u32,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_ragged_softmax(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        bounds: *mut kelp_net_tensor,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_topk(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        largest: bool,
        k: i64,
        k_tensor: *mut kelp_net_tensor,
        axes: u32,
        indices: kelp_dtype,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_cumulative(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        axis: i32,
        exclusive: bool,
        reverse: bool,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_normalization(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        scale: *mut kelp_net_tensor,
        bias: *mut kelp_net_tensor,
        axes: u32,
        options: *const kelp_normalization,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_matrix_multiply(
        network: *mut kelp_network,
        a: *mut kelp_net_tensor,
        op_a: kelp_matrix_op,
        b: *mut kelp_net_tensor,
        op_b: kelp_matrix_op,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_einsum(
        network: *mut kelp_network,
        inputs: *const *mut kelp_net_tensor,
        count: usize,
        equation: *const c_char,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_attention(
        network: *mut kelp_network,
        query: *mut kelp_net_tensor,
        key: *mut kelp_net_tensor,
        value: *mut kelp_net_tensor,
        options: *const kelp_attention,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_rotary_embedding(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        cos: *mut kelp_net_tensor,
        sin: *mut kelp_net_tensor,
        positions: *mut kelp_net_tensor,
        interleaved: bool,
        rotary_dims: i64,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_kv_cache_update(
        network: *mut kelp_network,
        cache: *mut kelp_net_tensor,
        update: *mut kelp_net_tensor,
        write_indices: *mut kelp_net_tensor,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_moe(
        network: *mut kelp_network,
        hidden: *mut kelp_net_tensor,
        experts: *mut kelp_net_tensor,
        scores: *mut kelp_net_tensor,
        gate: *mut kelp_net_tensor,
        up: *mut kelp_net_tensor,
        down: *mut kelp_net_tensor,
        options: *const kelp_moe,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_quantize(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        scale: *mut kelp_net_tensor,
        zero_point: *mut kelp_net_tensor,
        axis: i32,
        to: kelp_dtype,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_dequantize(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        scale: *mut kelp_net_tensor,
        zero_point: *mut kelp_net_tensor,
        axis: i32,
        to: kelp_dtype,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_dynamic_quantize(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        axis: i32,
        block: i64,
        to: kelp_dtype,
        scale_dtype: kelp_dtype,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_nms(
        network: *mut kelp_network,
        boxes: *mut kelp_net_tensor,
        scores: *mut kelp_net_tensor,
        max_per_class: *mut kelp_net_tensor,
        options: *const kelp_nms,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_collective(
        network: *mut kelp_network,
        input: *mut kelp_net_tensor,
        op: kelp_collective,
        reduce: kelp_reduce,
        root: i32,
        ranks: i32,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_loop(network: *mut kelp_network, out: *mut *mut kelp_loop) -> *mut kelp_status;
    pub fn kelp_loop_set_trip_count(loop_: *mut kelp_loop, count: *mut kelp_net_tensor) -> *mut kelp_status;
    pub fn kelp_loop_set_condition(loop_: *mut kelp_loop, condition: *mut kelp_net_tensor) -> *mut kelp_status;
    pub fn kelp_loop_add_recurrence(
        loop_: *mut kelp_loop,
        initial: *mut kelp_net_tensor,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_recurrence_set_next(recurrence: *mut kelp_layer, next: *mut kelp_net_tensor) -> *mut kelp_status;
    pub fn kelp_loop_add_iterator(
        loop_: *mut kelp_loop,
        tensor: *mut kelp_net_tensor,
        axis: i32,
        reverse: bool,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_loop_add_output(
        loop_: *mut kelp_loop,
        tensor: *mut kelp_net_tensor,
        kind: kelp_loop_output,
        axis: i32,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_network_add_conditional(
        network: *mut kelp_network,
        condition: *mut kelp_net_tensor,
        out: *mut *mut kelp_conditional,
    ) -> *mut kelp_status;
    pub fn kelp_conditional_add_input(
        conditional: *mut kelp_conditional,
        input: *mut kelp_net_tensor,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
    pub fn kelp_conditional_add_output(
        conditional: *mut kelp_conditional,
        then_tensor: *mut kelp_net_tensor,
        else_tensor: *mut kelp_net_tensor,
        out: *mut *mut kelp_layer,
    ) -> *mut kelp_status;
}
