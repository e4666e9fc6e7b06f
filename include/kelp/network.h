/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/network.h: a network put together layer by layer.
 *
 * Each kelp_network_add_… checks what can be known (types, ranks, extents: the message has the
 * shapes), appends a layer and returns it; nothing is left behind when it fails. Options are passed
 * as a struct whose zeroed fields take the defaults in brackets; NULL takes all of them. Tensors
 * and layers belong to the network and live as long as it does. Weights are borrowed until the
 * network goes; those without a name are "<layer>.<role>" for refitting. Shapes: -1 is an extent
 * that is not known before it runs; two ranks that must be equal are never padded; extents of 1
 * broadcast where that is said. Masks of axes: bit n is axis n. One thread at a time.
 *
 * Source: the layers of TensorRT 10's INetworkDefinition (NvInfer.h): 54 add methods, of which the
 * second versions (addScaleNd, addGatherV2, addDynamicQuantizeV2, addNormalizationV2,
 * addAttentionV2) and their first ones are one function here. docs/engines.md has the table.
 */
#ifndef KELP_NETWORK_H_
#define KELP_NETWORK_H_

#include <kelp/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kelp_builder kelp_builder;
typedef struct kelp_builder_config kelp_builder_config;
typedef struct kelp_network kelp_network;
typedef struct kelp_layer kelp_layer;
typedef struct kelp_net_tensor kelp_net_tensor; /* what flows between layers */
typedef struct kelp_loop kelp_loop;
typedef struct kelp_conditional kelp_conditional;

/* ---- network ---- */
KELP_API kelp_network *kelp_network_retain(kelp_network *network);
KELP_API void kelp_network_release(kelp_network *network);
KELP_API kelp_status *kelp_network_set_name(kelp_network *network, const char *name) KELP_MUST_USE;
KELP_API const char *kelp_network_name(const kelp_network *network);
KELP_API size_t kelp_network_layer_count(const kelp_network *network);
KELP_API kelp_layer *kelp_network_layer(const kelp_network *network, size_t index);
KELP_API size_t kelp_network_input_count(const kelp_network *network);
KELP_API kelp_net_tensor *kelp_network_input(const kelp_network *network, size_t index);
KELP_API size_t kelp_network_output_count(const kelp_network *network);
KELP_API kelp_net_tensor *kelp_network_output(const kelp_network *network, size_t index);
/* Makes a tensor an output, or no longer one. Its name is the output's; names are unique. */
KELP_API kelp_status *kelp_network_mark_output(kelp_network *network,
                                               kelp_net_tensor *tensor) KELP_MUST_USE;
KELP_API kelp_status *kelp_network_unmark_output(kelp_network *network,
                                                 kelp_net_tensor *tensor) KELP_MUST_USE;
/* Weights of this name can be exchanged in engines built with KELP_BUILD_REFIT_INDIVIDUAL. */
KELP_API kelp_status *kelp_network_mark_refittable(kelp_network *network,
                                                   const char *weights_name) KELP_MUST_USE;

/* ---- layers and tensors ---- */
typedef enum kelp_layer_type {
#define KELP_LAYER(name, text) KELP_LAYER_##name,
#include <kelp/layers.inc>
#undef KELP_LAYER
    KELP_LAYER_TYPE_COUNT
} kelp_layer_type;
KELP_API const char *kelp_layer_type_name(kelp_layer_type type); /* "Convolution" */
KELP_API kelp_layer_type kelp_layer_type_of(const kelp_layer *layer);
KELP_API const char *kelp_layer_name(const kelp_layer *layer);
KELP_API kelp_status *kelp_layer_set_name(kelp_layer *layer, const char *name) KELP_MUST_USE;
KELP_API size_t kelp_layer_input_count(const kelp_layer *layer);
KELP_API kelp_net_tensor *kelp_layer_input(const kelp_layer *layer, size_t index); /* or NULL */
KELP_API size_t kelp_layer_output_count(const kelp_layer *layer);
KELP_API kelp_net_tensor *kelp_layer_output(const kelp_layer *layer, size_t index);

KELP_API const char *kelp_net_tensor_name(const kelp_net_tensor *tensor);
KELP_API kelp_status *kelp_net_tensor_set_name(kelp_net_tensor *tensor,
                                               const char *name) KELP_MUST_USE;
KELP_API kelp_dtype kelp_net_tensor_dtype(const kelp_net_tensor *tensor);
/* rank -1 when not known. */
KELP_API kelp_shape kelp_net_tensor_dims(const kelp_net_tensor *tensor);

/* ---- inputs and constants ---- */
KELP_API kelp_status *kelp_network_add_input(kelp_network *network, const char *name,
                                             kelp_dtype dtype, kelp_shape dims,
                                             kelp_net_tensor **out) KELP_MUST_USE;
KELP_API kelp_status *kelp_network_add_constant(kelp_network *network, kelp_shape dims,
                                                kelp_weights weights,
                                                kelp_layer **out) KELP_MUST_USE;

/* ---- elementwise ---- */
typedef enum kelp_activation {
    KELP_ACTIVATION_RELU = 0,
    KELP_ACTIVATION_SIGMOID = 1,
    KELP_ACTIVATION_TANH = 2,
    KELP_ACTIVATION_LEAKY_RELU = 3, /* x >= 0 ? x : alpha x */
    KELP_ACTIVATION_ELU = 4,        /* x >= 0 ? x : alpha (exp x - 1) */
    KELP_ACTIVATION_SELU = 5,       /* x > 0 ? beta x : beta (alpha exp x - alpha) */
    KELP_ACTIVATION_SOFTSIGN = 6,
    KELP_ACTIVATION_SOFTPLUS = 7,          /* alpha log(exp(beta x) + 1) */
    KELP_ACTIVATION_CLIP = 8,              /* max(alpha, min(beta, x)) */
    KELP_ACTIVATION_HARD_SIGMOID = 9,      /* max(0, min(1, alpha x + beta)) */
    KELP_ACTIVATION_SCALED_TANH = 10,      /* alpha tanh(beta x) */
    KELP_ACTIVATION_THRESHOLDED_RELU = 11, /* max(0, x - alpha) > 0 ? x : 0 */
    KELP_ACTIVATION_GELU_ERF = 12,
    KELP_ACTIVATION_GELU_TANH = 13
} kelp_activation;
/* `alpha` and `beta` as the table says; unused ones are ignored. */
KELP_API kelp_status *kelp_network_add_activation(kelp_network *network, kelp_net_tensor *input,
                                                  kelp_activation type, float alpha, float beta,
                                                  kelp_layer **out) KELP_MUST_USE;
typedef enum kelp_unary {
    KELP_UNARY_EXP = 0,
    KELP_UNARY_LOG = 1,
    KELP_UNARY_SQRT = 2,
    KELP_UNARY_RECIP = 3,
    KELP_UNARY_ABS = 4,
    KELP_UNARY_NEG = 5,
    KELP_UNARY_SIN = 6,
    KELP_UNARY_COS = 7,
    KELP_UNARY_TAN = 8,
    KELP_UNARY_SINH = 9,
    KELP_UNARY_COSH = 10,
    KELP_UNARY_ASIN = 11,
    KELP_UNARY_ACOS = 12,
    KELP_UNARY_ATAN = 13,
    KELP_UNARY_ASINH = 14,
    KELP_UNARY_ACOSH = 15,
    KELP_UNARY_ATANH = 16,
    KELP_UNARY_CEIL = 17,
    KELP_UNARY_FLOOR = 18,
    KELP_UNARY_ERF = 19,
    KELP_UNARY_NOT = 20, /* bool */
    KELP_UNARY_SIGN = 21,
    KELP_UNARY_ROUND = 22, /* halves to even */
    KELP_UNARY_ISINF = 23, /* gives bool */
    KELP_UNARY_ISNAN = 24
} kelp_unary;
KELP_API kelp_status *kelp_network_add_unary(kelp_network *network, kelp_net_tensor *input,
                                             kelp_unary op, kelp_layer **out) KELP_MUST_USE;
typedef enum kelp_elementwise {
    KELP_ELEMENTWISE_SUM = 0,
    KELP_ELEMENTWISE_PROD = 1,
    KELP_ELEMENTWISE_MAX = 2,
    KELP_ELEMENTWISE_MIN = 3,
    KELP_ELEMENTWISE_SUB = 4,
    KELP_ELEMENTWISE_DIV = 5,
    KELP_ELEMENTWISE_POW = 6,
    KELP_ELEMENTWISE_FLOOR_DIV = 7,
    KELP_ELEMENTWISE_AND = 8,
    KELP_ELEMENTWISE_OR = 9,
    KELP_ELEMENTWISE_XOR = 10,
    KELP_ELEMENTWISE_EQUAL = 11,
    KELP_ELEMENTWISE_GREATER = 12,
    KELP_ELEMENTWISE_LESS = 13
} kelp_elementwise;
/* Equal ranks and dtypes; extents equal or 1. */
KELP_API kelp_status *kelp_network_add_elementwise(kelp_network *network, kelp_net_tensor *a,
                                                   kelp_net_tensor *b, kelp_elementwise op,
                                                   kelp_layer **out) KELP_MUST_USE;
typedef enum kelp_scale_mode {
    KELP_SCALE_UNIFORM = 0,    /* one coefficient */
    KELP_SCALE_CHANNEL = 1,    /* one a channel, along `axis` */
    KELP_SCALE_ELEMENTWISE = 2 /* one an element of the axes from `axis` on */
} kelp_scale_mode;
/* (input * scale + shift) ^ power. Absent weights are 1, 0 and 1. */
KELP_API kelp_status *kelp_network_add_scale(kelp_network *network, kelp_net_tensor *input,
                                             kelp_scale_mode mode, kelp_weights shift,
                                             kelp_weights scale, kelp_weights power, int32_t axis,
                                             kelp_layer **out) KELP_MUST_USE;
/* slope broadcasts. */
KELP_API kelp_status *kelp_network_add_parametric_relu(kelp_network *network,
                                                       kelp_net_tensor *input,
                                                       kelp_net_tensor *slope,
                                                       kelp_layer **out) KELP_MUST_USE;
/* Three tensors that broadcast together; `condition` is bool. */
KELP_API kelp_status *kelp_network_add_select(kelp_network *network, kelp_net_tensor *condition,
                                              kelp_net_tensor *then_input,
                                              kelp_net_tensor *else_input,
                                              kelp_layer **out) KELP_MUST_USE;
KELP_API kelp_status *kelp_network_add_identity(kelp_network *network, kelp_net_tensor *input,
                                                kelp_layer **out) KELP_MUST_USE;
KELP_API kelp_status *kelp_network_add_cast(kelp_network *network, kelp_net_tensor *input,
                                            kelp_dtype to, kelp_layer **out) KELP_MUST_USE;

/* ---- windows ---- */
typedef enum kelp_padding_mode {
    KELP_PADDING_EXPLICIT_ROUND_DOWN = 0,
    KELP_PADDING_EXPLICIT_ROUND_UP = 1,
    KELP_PADDING_SAME_UPPER = 2,
    KELP_PADDING_SAME_LOWER = 3
} kelp_padding_mode;
/* Two or three spatial axes, those after batch and channel. Zeroed extents take the default. */
typedef struct kelp_window {
    uint32_t struct_size; /* sizeof(kelp_window) */
    int64_t stride[3];    /* [1] of convolutions, [the window] of pooling */
    int64_t dilation[3];  /* [1] */
    int64_t pre_padding[3], post_padding[3];
    kelp_padding_mode padding_mode;
    int64_t groups;                 /* [1] */
    kelp_net_tensor *kernel, *bias; /* in place of the weights: computed ones */
    bool include_padding;           /* average pooling counts padding */
    float blend;                    /* of KELP_POOLING_BLEND: share of the average */
} kelp_window;
/* input [n,c,…], kernel [maps, c/groups, …], bias [maps] or none. `kernel_dims`: spatial. */
KELP_API kelp_status *kelp_network_add_convolution(kelp_network *network, kelp_net_tensor *input,
                                                   int64_t output_maps, kelp_shape kernel_dims,
                                                   kelp_weights kernel, kelp_weights bias,
                                                   const kelp_window *options,
                                                   kelp_layer **out) KELP_MUST_USE;
/* kernel [c, maps/groups, …]. */
KELP_API kelp_status *kelp_network_add_deconvolution(kelp_network *network, kelp_net_tensor *input,
                                                     int64_t output_maps, kelp_shape kernel_dims,
                                                     kelp_weights kernel, kelp_weights bias,
                                                     const kelp_window *options,
                                                     kelp_layer **out) KELP_MUST_USE;
typedef enum kelp_pooling {
    KELP_POOLING_MAX = 0,
    KELP_POOLING_AVERAGE = 1,
    KELP_POOLING_BLEND = 2 /* (1 - blend) max + blend average */
} kelp_pooling;
KELP_API kelp_status *kelp_network_add_pooling(kelp_network *network, kelp_net_tensor *input,
                                               kelp_pooling type, kelp_shape window_dims,
                                               const kelp_window *options,
                                               kelp_layer **out) KELP_MUST_USE;
/* x / (k + alpha / window * sum of squares over `window` channels) ^ beta; window is odd. */
KELP_API kelp_status *kelp_network_add_lrn(kelp_network *network, kelp_net_tensor *input,
                                           int64_t window, float alpha, float beta, float k,
                                           kelp_layer **out) KELP_MUST_USE;
/* Zeros around the last two axes; negative amounts crop. */
KELP_API kelp_status *kelp_network_add_padding(kelp_network *network, kelp_net_tensor *input,
                                               kelp_shape pre, kelp_shape post,
                                               kelp_layer **out) KELP_MUST_USE;
typedef enum kelp_interpolation {
    KELP_INTERPOLATION_NEAREST = 0,
    KELP_INTERPOLATION_LINEAR = 1,
    KELP_INTERPOLATION_CUBIC = 2
} kelp_interpolation;
typedef enum kelp_coordinates {
    KELP_COORDINATES_ALIGN_CORNERS = 0,
    KELP_COORDINATES_ASYMMETRIC = 1,
    KELP_COORDINATES_HALF_PIXEL = 2
} kelp_coordinates;
typedef enum kelp_rounding {
    KELP_ROUNDING_HALF_UP = 0,
    KELP_ROUNDING_HALF_DOWN = 1,
    KELP_ROUNDING_FLOOR = 2,
    KELP_ROUNDING_CEIL = 3
} kelp_rounding;
typedef struct kelp_resize {
    uint32_t struct_size; /* sizeof(kelp_resize) */
    kelp_shape dims;      /* of the result; rank 0: `scales` or `shape` say it */
    uint32_t scale_count;
    float scales[KELP_MAX_RANK];
    kelp_net_tensor *shape; /* int64 [rank], computed */
    kelp_interpolation mode;
    kelp_coordinates coordinates;
    kelp_rounding rounding;  /* of nearest */
    float cubic_coefficient; /* [-0.75] */
    bool exclude_outside;
} kelp_resize;
KELP_API kelp_status *kelp_network_add_resize(kelp_network *network, kelp_net_tensor *input,
                                              const kelp_resize *options,
                                              kelp_layer **out) KELP_MUST_USE;
typedef enum kelp_sample_mode {
    KELP_SAMPLE_STRICT = 0, /* slices must stay inside */
    KELP_SAMPLE_WRAP = 1,
    KELP_SAMPLE_CLAMP = 2,
    KELP_SAMPLE_FILL = 3, /* zeros, or the fill value */
    KELP_SAMPLE_REFLECT = 4
} kelp_sample_mode;
/* input [n,c,h,w], grid [n,ho,wo,2] in [-1,1]. */
KELP_API kelp_status *kelp_network_add_grid_sample(kelp_network *network, kelp_net_tensor *input,
                                                   kelp_net_tensor *grid, kelp_interpolation mode,
                                                   bool align_corners, kelp_sample_mode outside,
                                                   kelp_layer **out) KELP_MUST_USE;

/* ---- shape and place ---- */
typedef struct kelp_shuffle {
    uint32_t struct_size; /* sizeof(kelp_shuffle) */
    bool first_transpose_given, second_transpose_given;
    int32_t first_transpose[KELP_MAX_RANK]; /* before reshaping */
    bool reshape_given;
    kelp_shape reshape;     /* -1: the rest; 0: as the input, unless `zero_is_zero` */
    kelp_net_tensor *shape; /* in place of `reshape`: int64 [rank], computed */
    bool zero_is_zero;
    int32_t second_transpose[KELP_MAX_RANK]; /* after reshaping */
} kelp_shuffle;
KELP_API kelp_status *kelp_network_add_shuffle(kelp_network *network, kelp_net_tensor *input,
                                               const kelp_shuffle *options,
                                               kelp_layer **out) KELP_MUST_USE;
/* At least one input; all extents but `axis`'s are equal. */
KELP_API kelp_status *kelp_network_add_concatenation(kelp_network *network,
                                                     kelp_net_tensor *const *inputs, size_t count,
                                                     int32_t axis, kelp_layer **out) KELP_MUST_USE;
typedef struct kelp_slice {
    uint32_t struct_size; /* sizeof(kelp_slice) */
    kelp_sample_mode mode;
    /* int64 [rank], computed, in place of the arguments; `fill` is a scalar */
    kelp_net_tensor *start, *size, *stride, *fill;
} kelp_slice;
/* size[i] elements from start[i] in steps of stride[i], for every axis. */
KELP_API kelp_status *kelp_network_add_slice(kelp_network *network, kelp_net_tensor *input,
                                             kelp_shape start, kelp_shape size, kelp_shape stride,
                                             const kelp_slice *options,
                                             kelp_layer **out) KELP_MUST_USE;
/* int64 [rank]. */
KELP_API kelp_status *kelp_network_add_shape(kelp_network *network, kelp_net_tensor *input,
                                             kelp_layer **out) KELP_MUST_USE;
/* `axes`: int32 or int64 [n], a constant. */
KELP_API kelp_status *kelp_network_add_squeeze(kelp_network *network, kelp_net_tensor *input,
                                               kelp_net_tensor *axes,
                                               kelp_layer **out) KELP_MUST_USE;
KELP_API kelp_status *kelp_network_add_unsqueeze(kelp_network *network, kelp_net_tensor *input,
                                                 kelp_net_tensor *axes,
                                                 kelp_layer **out) KELP_MUST_USE;
typedef enum kelp_gather_mode {
    KELP_GATHER_DEFAULT = 0, /* whole slices of `axis`; the first `batch_dims` axes go together */
    KELP_GATHER_ELEMENT = 1, /* one element each along `axis` */
    KELP_GATHER_ND = 2       /* indices' last axis addresses the axes after batch_dims */
} kelp_gather_mode;
KELP_API kelp_status *kelp_network_add_gather(kelp_network *network, kelp_net_tensor *data,
                                              kelp_net_tensor *indices, kelp_gather_mode mode,
                                              int32_t axis, int32_t batch_dims,
                                              kelp_layer **out) KELP_MUST_USE;
typedef enum kelp_scatter_mode { KELP_SCATTER_ELEMENT = 0, KELP_SCATTER_ND = 1 } kelp_scatter_mode;
KELP_API kelp_status *kelp_network_add_scatter(kelp_network *network, kelp_net_tensor *data,
                                               kelp_net_tensor *indices, kelp_net_tensor *updates,
                                               kelp_scatter_mode mode, int32_t axis,
                                               kelp_layer **out) KELP_MUST_USE;
/* values [2]: off, on; depth: a scalar. */
KELP_API kelp_status *kelp_network_add_one_hot(kelp_network *network, kelp_net_tensor *indices,
                                               kelp_net_tensor *values, kelp_net_tensor *depth,
                                               int32_t axis, kelp_layer **out) KELP_MUST_USE;
/* Indices of what is not zero: [rank, n]; KELP_I32 or KELP_I64. */
KELP_API kelp_status *kelp_network_add_non_zero(kelp_network *network, kelp_net_tensor *input,
                                                kelp_dtype indices, kelp_layer **out) KELP_MUST_USE;
/* lengths: int32 or int64 [batch]. */
KELP_API kelp_status *kelp_network_add_reverse_sequence(kelp_network *network,
                                                        kelp_net_tensor *input,
                                                        kelp_net_tensor *lengths,
                                                        int32_t batch_axis, int32_t sequence_axis,
                                                        kelp_layer **out) KELP_MUST_USE;
typedef enum kelp_fill {
    KELP_FILL_LINSPACE = 0,       /* alpha + i * beta */
    KELP_FILL_RANDOM_UNIFORM = 1, /* from alpha to beta */
    KELP_FILL_RANDOM_NORMAL = 2   /* mean alpha, deviation beta */
} kelp_fill;
typedef struct kelp_fill_options {
    uint32_t struct_size;   /* sizeof(kelp_fill_options) */
    double alpha, beta;     /* [0 and 1] when both are 0 */
    kelp_net_tensor *shape; /* int64 [rank], computed, in place of dims */
    kelp_net_tensor *start; /* a scalar in place of alpha */
    kelp_net_tensor *delta; /* LINSPACE: [rank], one a axis, in place of beta */
    kelp_dtype dtype;       /* [KELP_F32] */
} kelp_fill_options;
KELP_API kelp_status *kelp_network_add_fill(kelp_network *network, kelp_shape dims, kelp_fill op,
                                            const kelp_fill_options *options,
                                            kelp_layer **out) KELP_MUST_USE;
/* `condition`: bool. A constant false fails now, else the run fails with `message`. */
KELP_API kelp_status *kelp_network_add_assertion(kelp_network *network, kelp_net_tensor *condition,
                                                 const char *message,
                                                 kelp_layer **out) KELP_MUST_USE;

/* ---- reductions ---- */
typedef enum kelp_reduce {
    KELP_REDUCE_SUM = 0,
    KELP_REDUCE_PROD = 1,
    KELP_REDUCE_MAX = 2,
    KELP_REDUCE_MIN = 3,
    KELP_REDUCE_AVERAGE = 4,
    KELP_REDUCE_NONE = 5 /* of collectives */
} kelp_reduce;
KELP_API kelp_status *kelp_network_add_reduce(kelp_network *network, kelp_net_tensor *input,
                                              kelp_reduce op, uint32_t axes, bool keep_dims,
                                              kelp_layer **out) KELP_MUST_USE;
/* `axes` has one bit. */
KELP_API kelp_status *kelp_network_add_softmax(kelp_network *network, kelp_net_tensor *input,
                                               uint32_t axes, kelp_layer **out) KELP_MUST_USE;
/* input [n,k] or [b,n,k]; bounds: int32 [n,1] or [b,n,1], how many of k count; the rest become 0.
 */
KELP_API kelp_status *kelp_network_add_ragged_softmax(kelp_network *network, kelp_net_tensor *input,
                                                      kelp_net_tensor *bounds,
                                                      kelp_layer **out) KELP_MUST_USE;
/* Outputs: values, indices (KELP_I32 or KELP_I64). `k_tensor` (may be NULL): k, computed. */
KELP_API kelp_status *kelp_network_add_topk(kelp_network *network, kelp_net_tensor *input,
                                            bool largest, int64_t k, kelp_net_tensor *k_tensor,
                                            uint32_t axes, kelp_dtype indices,
                                            kelp_layer **out) KELP_MUST_USE;
/* Running sums along `axis`. */
KELP_API kelp_status *kelp_network_add_cumulative(kelp_network *network, kelp_net_tensor *input,
                                                  int32_t axis, bool exclusive, bool reverse,
                                                  kelp_layer **out) KELP_MUST_USE;
typedef struct kelp_normalization {
    uint32_t struct_size; /* sizeof(kelp_normalization) */
    float epsilon;        /* [1e-5] */
    int64_t groups;       /* [1]; more: a group normalisation of the channels */
} kelp_normalization;
/* (x - mean) / sqrt(variance + epsilon) * scale + bias, over `axes`; scale and bias have x's rank
 * and broadcast. */
KELP_API kelp_status *kelp_network_add_normalization(kelp_network *network, kelp_net_tensor *input,
                                                     kelp_net_tensor *scale, kelp_net_tensor *bias,
                                                     uint32_t axes,
                                                     const kelp_normalization *options,
                                                     kelp_layer **out) KELP_MUST_USE;

/* ---- products and attention ---- */
typedef enum kelp_matrix_op {
    KELP_MATRIX_NONE = 0,
    KELP_MATRIX_TRANSPOSE = 1,
    KELP_MATRIX_VECTOR = 2 /* the last axis is the vector */
} kelp_matrix_op;
/* The axes before the matrices broadcast, and are as many on both sides. */
KELP_API kelp_status *kelp_network_add_matrix_multiply(kelp_network *network, kelp_net_tensor *a,
                                                       kelp_matrix_op op_a, kelp_net_tensor *b,
                                                       kelp_matrix_op op_b,
                                                       kelp_layer **out) KELP_MUST_USE;
/* "bij,bjk->bik"; lower-case letters. */
KELP_API kelp_status *kelp_network_add_einsum(kelp_network *network, kelp_net_tensor *const *inputs,
                                              size_t count, const char *equation,
                                              kelp_layer **out) KELP_MUST_USE;
typedef struct kelp_attention {
    uint32_t struct_size; /* sizeof(kelp_attention) */
    bool causal;
    bool no_softmax;       /* the products alone */
    kelp_net_tensor *mask; /* bool (true: seen) or added; broadcasts to [b,heads,q,kv] */
} kelp_attention;
/* softmax(query keyᵀ + mask) value, [b,heads,seq,size] each; the caller scales the query. Fewer
 * key heads than query heads are shared. */
KELP_API kelp_status *kelp_network_add_attention(kelp_network *network, kelp_net_tensor *query,
                                                 kelp_net_tensor *key, kelp_net_tensor *value,
                                                 const kelp_attention *options,
                                                 kelp_layer **out) KELP_MUST_USE;
/* input [b,heads,seq,size]; caches [positions, dims/2], or [b,seq,dims/2] without positions
 * (int64 [b,seq], may be NULL). `rotary_dims` 0: all of size. */
KELP_API kelp_status *kelp_network_add_rotary_embedding(kelp_network *network,
                                                        kelp_net_tensor *input,
                                                        kelp_net_tensor *cos, kelp_net_tensor *sin,
                                                        kelp_net_tensor *positions,
                                                        bool interleaved, int64_t rotary_dims,
                                                        kelp_layer **out) KELP_MUST_USE;
/* Writes `update` [b,heads,s,size] into `cache` [b,heads,max,size] from write_indices (int32 or
 * int64 [b]) on. */
KELP_API kelp_status *kelp_network_add_kv_cache_update(kelp_network *network,
                                                       kelp_net_tensor *cache,
                                                       kelp_net_tensor *update,
                                                       kelp_net_tensor *write_indices,
                                                       kelp_layer **out) KELP_MUST_USE;
typedef struct kelp_moe {
    uint32_t struct_size;                             /* sizeof(kelp_moe) */
    kelp_net_tensor *gate_bias, *up_bias, *down_bias; /* [experts, inner or hidden] */
    kelp_activation activation;                       /* of the gate; with swish: SiLU */
    bool swish;
    float alpha, beta;
} kelp_moe;
/* Mixture of experts: hidden [b,s,h]; experts int32 [b,s,k]; scores [b,s,k]; gate and up
 * [experts,h,inner] (gate NULL: none), down [experts,inner,h]. Result [b,s,h]. */
KELP_API kelp_status *kelp_network_add_moe(kelp_network *network, kelp_net_tensor *hidden,
                                           kelp_net_tensor *experts, kelp_net_tensor *scores,
                                           kelp_net_tensor *gate, kelp_net_tensor *up,
                                           kelp_net_tensor *down, const kelp_moe *options,
                                           kelp_layer **out) KELP_MUST_USE;

/* ---- quantisation ---- */
/* scale: a scalar, or [n] along `axis`; zero_point NULL: 0. */
KELP_API kelp_status *kelp_network_add_quantize(kelp_network *network, kelp_net_tensor *input,
                                                kelp_net_tensor *scale, kelp_net_tensor *zero_point,
                                                int32_t axis, kelp_dtype to,
                                                kelp_layer **out) KELP_MUST_USE;
KELP_API kelp_status *kelp_network_add_dequantize(kelp_network *network, kelp_net_tensor *input,
                                                  kelp_net_tensor *scale,
                                                  kelp_net_tensor *zero_point, int32_t axis,
                                                  kelp_dtype to, kelp_layer **out) KELP_MUST_USE;
/* Blocks of `block` elements along `axis` share a scale, max |x| / largest of `to`: outputs data
 * (KELP_F8E4M3FN or KELP_F4E2M1) and scales (`scale_dtype`). */
KELP_API kelp_status *kelp_network_add_dynamic_quantize(kelp_network *network,
                                                        kelp_net_tensor *input, int32_t axis,
                                                        int64_t block, kelp_dtype to,
                                                        kelp_dtype scale_dtype,
                                                        kelp_layer **out) KELP_MUST_USE;

/* ---- detection ---- */
typedef struct kelp_nms {
    uint32_t struct_size;                             /* sizeof(kelp_nms) */
    bool centers;                                     /* boxes are [x,y,w,h], not [y1,x1,y2,x2] */
    int64_t topk;                                     /* candidates a class [all] */
    kelp_net_tensor *iou_threshold, *score_threshold; /* scalars [0 and 0] */
} kelp_nms;
/* boxes [b,n,4], scores [b,classes,n] (ONNX's order), max_per_class: a scalar. Outputs: indices
 * [m,3] and how many, a scalar. */
KELP_API kelp_status *kelp_network_add_nms(kelp_network *network, kelp_net_tensor *boxes,
                                           kelp_net_tensor *scores, kelp_net_tensor *max_per_class,
                                           const kelp_nms *options, kelp_layer **out) KELP_MUST_USE;

/* ---- several devices ---- */
typedef enum kelp_collective {
    KELP_COLLECTIVE_ALL_REDUCE = 0,
    KELP_COLLECTIVE_ALL_GATHER = 1,
    KELP_COLLECTIVE_BROADCAST = 2,
    KELP_COLLECTIVE_REDUCE = 3,
    KELP_COLLECTIVE_REDUCE_SCATTER = 4
} kelp_collective;
/* The cpu provider is a world of one rank: other `ranks` are UNIMPLEMENTED there. */
KELP_API kelp_status *kelp_network_add_collective(kelp_network *network, kelp_net_tensor *input,
                                                  kelp_collective op, kelp_reduce reduce,
                                                  int32_t root, int32_t ranks,
                                                  kelp_layer **out) KELP_MUST_USE;

/* ---- control flow ---- */
/* Layers that depend on a recurrence or an iterator of the loop are its body. */
KELP_API kelp_status *kelp_network_add_loop(kelp_network *network, kelp_loop **out) KELP_MUST_USE;
/* count: a scalar int32 or int64, or condition: a scalar bool computed in the body ("while"). One
 * of each at most, one at least. */
KELP_API kelp_status *kelp_loop_set_trip_count(kelp_loop *loop,
                                               kelp_net_tensor *count) KELP_MUST_USE;
KELP_API kelp_status *kelp_loop_set_condition(kelp_loop *loop,
                                              kelp_net_tensor *condition) KELP_MUST_USE;
/* Its output is the value of this iteration; set the next one before building. */
KELP_API kelp_status *kelp_loop_add_recurrence(kelp_loop *loop, kelp_net_tensor *initial,
                                               kelp_layer **out) KELP_MUST_USE;
KELP_API kelp_status *kelp_recurrence_set_next(kelp_layer *recurrence,
                                               kelp_net_tensor *next) KELP_MUST_USE;
/* Its output is slice `iteration` of the tensor along `axis`. */
KELP_API kelp_status *kelp_loop_add_iterator(kelp_loop *loop, kelp_net_tensor *tensor, int32_t axis,
                                             bool reverse, kelp_layer **out) KELP_MUST_USE;
typedef enum kelp_loop_output {
    KELP_LOOP_LAST_VALUE = 0,  /* of a recurrence */
    KELP_LOOP_CONCATENATE = 1, /* along a new axis */
    KELP_LOOP_REVERSE = 2      /* the same, last iteration first */
} kelp_loop_output;
KELP_API kelp_status *kelp_loop_add_output(kelp_loop *loop, kelp_net_tensor *tensor,
                                           kelp_loop_output kind, int32_t axis,
                                           kelp_layer **out) KELP_MUST_USE;

/* Layers that depend on a conditional's inputs run only in the branch that needs them.
 * `condition`: a scalar bool. */
KELP_API kelp_status *kelp_network_add_conditional(kelp_network *network,
                                                   kelp_net_tensor *condition,
                                                   kelp_conditional **out) KELP_MUST_USE;
KELP_API kelp_status *kelp_conditional_add_input(kelp_conditional *conditional,
                                                 kelp_net_tensor *input,
                                                 kelp_layer **out) KELP_MUST_USE;
/* Equal dtypes and ranks. */
KELP_API kelp_status *kelp_conditional_add_output(kelp_conditional *conditional,
                                                  kelp_net_tensor *then_tensor,
                                                  kelp_net_tensor *else_tensor,
                                                  kelp_layer **out) KELP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
