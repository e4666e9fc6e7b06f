/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/network.h: networks assembled layer by layer.
 *
 * Each kelp_network_add_… function checks types, ranks and known dimensions, appends a layer to the
 * network and returns the layer. If the function fails, the network is unchanged.
 *
 * Unless stated otherwise:
 *   - Errors: INVALID_ARGUMENT names layer, tensor, and the expected and actual types or shapes. A
 *     status about a layer has the domain KELP_DOMAIN_NETWORK.
 *   - `out` receives the layer, and may be NULL. Layers and tensors belong to the network and are
 *     valid as long as it is.
 *   - Options structs begin with `struct_size`; zeroed fields take the defaults given in
 *     [brackets], and NULL takes all defaults.
 *   - Weights are borrowed and must outlive the network. Weights without a name are called
 *     "<layer>.<role>" in a refit, for example "Convolution_3.kernel".
 *   - Names are copied. Returned strings are valid until the name changes.
 *   - A dimension of -1 is dynamic. Ranks that must be equal are never padded with 1; a dimension
 *     of 1 broadcasts only where stated. A mask of axes is a bit set: bit n selects axis n. Axes
 *     must not be negative.
 *   - Scalars are tensors of rank 0, or of one element where a function accepts both.
 *   - A network is used by one thread at a time.
 *
 * Source: 54 add methods of TensorRT 10's INetworkDefinition (NvInfer.h). One function covers both
 * versions of a method (addScaleNd, addGatherV2, addDynamicQuantizeV2, addNormalizationV2,
 * addAttentionV2). docs/engines.md maps TensorRT's names to Kelp's.
 */
#ifndef KELP_NETWORK_H_
#define KELP_NETWORK_H_

#include <kelp/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A builder (kelp/builder.h). */
typedef struct kelp_builder kelp_builder;

/* A configuration of a build (kelp/builder.h). */
typedef struct kelp_builder_config kelp_builder_config;

/* A network of layers. Created by a builder. */
typedef struct kelp_network kelp_network;

/* A layer of a network. */
typedef struct kelp_layer kelp_layer;

/* A symbolic tensor: an input of the network or an output of a layer. */
typedef struct kelp_net_tensor kelp_net_tensor;

/* A loop in a network. */
typedef struct kelp_loop kelp_loop;

/* A conditional in a network. */
typedef struct kelp_conditional kelp_conditional;

/* ---- Network ---- */

/* Adds a reference and returns `network`. */
KELP_API kelp_network *kelp_network_retain(kelp_network *network);

/* Drops a reference. NULL is allowed. */
KELP_API void kelp_network_release(kelp_network *network);

/* Sets the name, "network" by default or that of the parsed graph. Fails with INVALID_ARGUMENT if
 * it is empty. */
KELP_API kelp_status *kelp_network_set_name(kelp_network *network, const char *name) KELP_MUST_USE;

/* Returns the name. */
KELP_API const char *kelp_network_name(const kelp_network *network);

/* Returns the number of layers. */
KELP_API size_t kelp_network_layer_count(const kelp_network *network);

/* Returns a layer, or NULL if `index` is out of range. */
KELP_API kelp_layer *kelp_network_layer(const kelp_network *network, size_t index);

/* Returns the number of inputs. */
KELP_API size_t kelp_network_input_count(const kelp_network *network);

/* Returns an input, or NULL if `index` is out of range. */
KELP_API kelp_net_tensor *kelp_network_input(const kelp_network *network, size_t index);

/* Returns the number of outputs. */
KELP_API size_t kelp_network_output_count(const kelp_network *network);

/* Returns an output, or NULL if `index` is out of range. */
KELP_API kelp_net_tensor *kelp_network_output(const kelp_network *network, size_t index);

/* Marks a tensor as an output with the name of the tensor. Has no effect if it is an output
 * already. Fails with INVALID_ARGUMENT if the tensor belongs to another network or is produced
 * inside a loop or conditional. */
KELP_API kelp_status *kelp_network_mark_output(kelp_network *network,
                                               kelp_net_tensor *tensor) KELP_MUST_USE;

/* Removes a tensor from the outputs. Fails with NOT_FOUND if it is not an output. */
KELP_API kelp_status *kelp_network_unmark_output(kelp_network *network,
                                                 kelp_net_tensor *tensor) KELP_MUST_USE;

/* Allows the weights of this name to be replaced in engines built with
 * KELP_BUILD_REFIT_INDIVIDUAL. The name need not exist yet; kelp_builder_build checks it. */
KELP_API kelp_status *kelp_network_mark_refittable(kelp_network *network,
                                                   const char *weights_name) KELP_MUST_USE;

/* ---- Layers and tensors ---- */

/* Type of a layer. The values are generated from kelp/layers.inc: KELP_LAYER_CONVOLUTION and so
 * on. */
typedef enum kelp_layer_type {
#define KELP_LAYER(name, text) KELP_LAYER_##name,
#include <kelp/layers.inc>
#undef KELP_LAYER
    KELP_LAYER_TYPE_COUNT /* number of types */
} kelp_layer_type;

/* Returns a static name such as "Convolution"; "unknown" for an unknown type. */
KELP_API const char *kelp_layer_type_name(kelp_layer_type type);

/* Returns the type. */
KELP_API kelp_layer_type kelp_layer_type_of(const kelp_layer *layer);

/* Returns the name, such as "Convolution_3" by default. */
KELP_API const char *kelp_layer_name(const kelp_layer *layer);

/* Sets the name, which messages and the default names of the layer's weights contain. Fails with
 * INVALID_ARGUMENT if it is empty. */
KELP_API kelp_status *kelp_layer_set_name(kelp_layer *layer, const char *name) KELP_MUST_USE;

/* Returns the number of inputs, including optional inputs that are omitted. */
KELP_API size_t kelp_layer_input_count(const kelp_layer *layer);

/* Returns an input, or NULL if it is omitted or `index` is out of range. */
KELP_API kelp_net_tensor *kelp_layer_input(const kelp_layer *layer, size_t index);

/* Returns the number of outputs. */
KELP_API size_t kelp_layer_output_count(const kelp_layer *layer);

/* Returns an output, or NULL if `index` is out of range. */
KELP_API kelp_net_tensor *kelp_layer_output(const kelp_layer *layer, size_t index);

/* Returns the name, such as "tensor_7" by default. */
KELP_API const char *kelp_net_tensor_name(const kelp_net_tensor *tensor);

/* Sets the name. Fails with ALREADY_EXISTS if another tensor of the network has this name and
 * INVALID_ARGUMENT if it is empty. */
KELP_API kelp_status *kelp_net_tensor_set_name(kelp_net_tensor *tensor,
                                               const char *name) KELP_MUST_USE;

/* Returns the element type. */
KELP_API kelp_dtype kelp_net_tensor_dtype(const kelp_net_tensor *tensor);

/* Returns the dimensions; -1 for dynamic ones, and rank -1 if the rank is unknown. */
KELP_API kelp_shape kelp_net_tensor_dims(const kelp_net_tensor *tensor);

/* ---- Inputs and constants ---- */

/* Adds an input of the network. Its rank must be known. Fails with ALREADY_EXISTS if a tensor of
 * the network has this name, and with INVALID_ARGUMENT if `out` is NULL. */
KELP_API kelp_status *kelp_network_add_input(kelp_network *network, const char *name,
                                             kelp_dtype dtype, kelp_shape dims,
                                             kelp_net_tensor **out) KELP_MUST_USE;

/* Adds a constant of shape `dims`. The number of weights must equal the number of elements. */
KELP_API kelp_status *kelp_network_add_constant(kelp_network *network, kelp_shape dims,
                                                kelp_weights weights,
                                                kelp_layer **out) KELP_MUST_USE;

/* ---- Elementwise ---- */

/* Activation function. */
typedef enum kelp_activation {
    KELP_ACTIVATION_RELU = 0,              /* max(0, x) */
    KELP_ACTIVATION_SIGMOID = 1,           /* 1 / (1 + exp(-x)) */
    KELP_ACTIVATION_TANH = 2,              /* tanh(x) */
    KELP_ACTIVATION_LEAKY_RELU = 3,        /* x >= 0 ? x : alpha * x */
    KELP_ACTIVATION_ELU = 4,               /* x >= 0 ? x : alpha * (exp(x) - 1) */
    KELP_ACTIVATION_SELU = 5,              /* x > 0 ? beta * x : beta * (alpha * exp(x) - alpha) */
    KELP_ACTIVATION_SOFTSIGN = 6,          /* x / (1 + |x|) */
    KELP_ACTIVATION_SOFTPLUS = 7,          /* alpha * log(exp(beta * x) + 1) */
    KELP_ACTIVATION_CLIP = 8,              /* max(alpha, min(beta, x)) */
    KELP_ACTIVATION_HARD_SIGMOID = 9,      /* max(0, min(1, alpha * x + beta)) */
    KELP_ACTIVATION_SCALED_TANH = 10,      /* alpha * tanh(beta * x) */
    KELP_ACTIVATION_THRESHOLDED_RELU = 11, /* x > alpha ? x : 0 */
    KELP_ACTIVATION_GELU_ERF = 12,         /* x / 2 * (1 + erf(x / sqrt(2))) */
    KELP_ACTIVATION_GELU_TANH = 13         /* GELU, approximated with tanh */
} kelp_activation;

/* Adds an activation. `alpha` and `beta` are ignored by functions that do not use them. */
KELP_API kelp_status *kelp_network_add_activation(kelp_network *network, kelp_net_tensor *input,
                                                  kelp_activation type, float alpha, float beta,
                                                  kelp_layer **out) KELP_MUST_USE;

/* Unary function. */
typedef enum kelp_unary {
    KELP_UNARY_EXP = 0,    /* exp(x) */
    KELP_UNARY_LOG = 1,    /* natural logarithm */
    KELP_UNARY_SQRT = 2,   /* square root */
    KELP_UNARY_RECIP = 3,  /* 1 / x */
    KELP_UNARY_ABS = 4,    /* |x| */
    KELP_UNARY_NEG = 5,    /* -x */
    KELP_UNARY_SIN = 6,    /* sine */
    KELP_UNARY_COS = 7,    /* cosine */
    KELP_UNARY_TAN = 8,    /* tangent */
    KELP_UNARY_SINH = 9,   /* hyperbolic sine */
    KELP_UNARY_COSH = 10,  /* hyperbolic cosine */
    KELP_UNARY_ASIN = 11,  /* inverse sine */
    KELP_UNARY_ACOS = 12,  /* inverse cosine */
    KELP_UNARY_ATAN = 13,  /* inverse tangent */
    KELP_UNARY_ASINH = 14, /* inverse hyperbolic sine */
    KELP_UNARY_ACOSH = 15, /* inverse hyperbolic cosine */
    KELP_UNARY_ATANH = 16, /* inverse hyperbolic tangent */
    KELP_UNARY_CEIL = 17,  /* smallest integer not below x */
    KELP_UNARY_FLOOR = 18, /* largest integer not above x */
    KELP_UNARY_ERF = 19,   /* error function */
    KELP_UNARY_NOT = 20,   /* logical negation of a bool */
    KELP_UNARY_SIGN = 21,  /* -1, 0 or 1 */
    KELP_UNARY_ROUND = 22, /* nearest integer, ties to even */
    KELP_UNARY_ISINF = 23, /* true if infinite; the result is bool */
    KELP_UNARY_ISNAN = 24  /* true if NaN; the result is bool */
} kelp_unary;

/* Adds a unary function. */
KELP_API kelp_status *kelp_network_add_unary(kelp_network *network, kelp_net_tensor *input,
                                             kelp_unary op, kelp_layer **out) KELP_MUST_USE;

/* Binary function. */
typedef enum kelp_elementwise {
    KELP_ELEMENTWISE_SUM = 0,       /* a + b */
    KELP_ELEMENTWISE_PROD = 1,      /* a * b */
    KELP_ELEMENTWISE_MAX = 2,       /* maximum */
    KELP_ELEMENTWISE_MIN = 3,       /* minimum */
    KELP_ELEMENTWISE_SUB = 4,       /* a - b */
    KELP_ELEMENTWISE_DIV = 5,       /* a / b */
    KELP_ELEMENTWISE_POW = 6,       /* a raised to b */
    KELP_ELEMENTWISE_FLOOR_DIV = 7, /* floor(a / b) */
    KELP_ELEMENTWISE_AND = 8,       /* logical and of bools */
    KELP_ELEMENTWISE_OR = 9,        /* logical or of bools */
    KELP_ELEMENTWISE_XOR = 10,      /* logical exclusive or of bools */
    KELP_ELEMENTWISE_EQUAL = 11,    /* a == b; the result is bool */
    KELP_ELEMENTWISE_GREATER = 12,  /* a > b; the result is bool */
    KELP_ELEMENTWISE_LESS = 13      /* a < b; the result is bool */
} kelp_elementwise;

/* Adds a binary function. Ranks and types must be equal; dimensions must be equal or 1, which
 * broadcasts. */
KELP_API kelp_status *kelp_network_add_elementwise(kelp_network *network, kelp_net_tensor *a,
                                                   kelp_net_tensor *b, kelp_elementwise op,
                                                   kelp_layer **out) KELP_MUST_USE;

/* Granularity of a scale layer. */
typedef enum kelp_scale_mode {
    KELP_SCALE_UNIFORM = 0,    /* one coefficient */
    KELP_SCALE_CHANNEL = 1,    /* one coefficient per index along `axis` */
    KELP_SCALE_ELEMENTWISE = 2 /* one coefficient per element of the axes from `axis` on */
} kelp_scale_mode;

/* Adds (input * scale + shift) ^ power. Zeroed weights stand for scale 1, shift 0 and power 1. */
KELP_API kelp_status *kelp_network_add_scale(kelp_network *network, kelp_net_tensor *input,
                                             kelp_scale_mode mode, kelp_weights shift,
                                             kelp_weights scale, kelp_weights power, int32_t axis,
                                             kelp_layer **out) KELP_MUST_USE;

/* Adds x >= 0 ? x : slope * x. `slope` broadcasts to `input`. */
KELP_API kelp_status *kelp_network_add_parametric_relu(kelp_network *network,
                                                       kelp_net_tensor *input,
                                                       kelp_net_tensor *slope,
                                                       kelp_layer **out) KELP_MUST_USE;

/* Adds condition ? then_input : else_input. `condition` is bool; all three broadcast together. */
KELP_API kelp_status *kelp_network_add_select(kelp_network *network, kelp_net_tensor *condition,
                                              kelp_net_tensor *then_input,
                                              kelp_net_tensor *else_input,
                                              kelp_layer **out) KELP_MUST_USE;

/* Adds a copy of the input. */
KELP_API kelp_status *kelp_network_add_identity(kelp_network *network, kelp_net_tensor *input,
                                                kelp_layer **out) KELP_MUST_USE;

/* Adds a conversion to type `to`. */
KELP_API kelp_status *kelp_network_add_cast(kelp_network *network, kelp_net_tensor *input,
                                            kelp_dtype to, kelp_layer **out) KELP_MUST_USE;

/* ---- Convolution, pooling and resizing ---- */

/* How padding is determined. */
typedef enum kelp_padding_mode {
    /* given padding; incomplete windows are dropped */
    KELP_PADDING_EXPLICIT_ROUND_DOWN = 0,
    KELP_PADDING_EXPLICIT_ROUND_UP = 1, /* given padding; the last window may exceed it */
    /* output is ceil(input / stride); odd padding at the end */
    KELP_PADDING_SAME_UPPER = 2,
    /* output is ceil(input / stride); odd padding at the start */
    KELP_PADDING_SAME_LOWER = 3
} kelp_padding_mode;

/* Options of convolutions and pooling, for two or three spatial axes, which follow batch and
 * channel. */
typedef struct kelp_window {
    uint32_t struct_size; /* sizeof(kelp_window) */
    int64_t stride[3];    /* [1 for convolutions, window size for pooling] */
    int64_t dilation[3];  /* [1] */
    /* padding before the first [0] and, in post_padding, after the last element [0] */
    int64_t pre_padding[3], post_padding[3];
    kelp_padding_mode padding_mode; /* how padding is determined */
    int64_t groups;                 /* number of groups of channels, convolutions only [1] */
    /* kernel and bias as tensors, used instead of the weights [none] */
    kelp_net_tensor *kernel, *bias;
    bool include_padding; /* average pooling includes padded elements */
    float blend;          /* with KELP_POOLING_BLEND: weight of the average, 0 to 1 */
} kelp_window;

/* Adds a convolution. Input [n, c, …], kernel [output_maps, c / groups, …], bias [output_maps] or
 * none, output [n, output_maps, …]. `kernel_dims` are the spatial dimensions of the kernel. */
KELP_API kelp_status *kelp_network_add_convolution(kelp_network *network, kelp_net_tensor *input,
                                                   int64_t output_maps, kelp_shape kernel_dims,
                                                   kelp_weights kernel, kelp_weights bias,
                                                   const kelp_window *options,
                                                   kelp_layer **out) KELP_MUST_USE;

/* Adds a transposed convolution. Input [n, c, …], kernel [c, output_maps / groups, …]; otherwise
 * like kelp_network_add_convolution. KELP_PADDING_EXPLICIT_ROUND_UP is rejected. */
KELP_API kelp_status *kelp_network_add_deconvolution(kelp_network *network, kelp_net_tensor *input,
                                                     int64_t output_maps, kelp_shape kernel_dims,
                                                     kelp_weights kernel, kelp_weights bias,
                                                     const kelp_window *options,
                                                     kelp_layer **out) KELP_MUST_USE;

/* Pooling function. */
typedef enum kelp_pooling {
    KELP_POOLING_MAX = 0,     /* maximum */
    KELP_POOLING_AVERAGE = 1, /* average */
    KELP_POOLING_BLEND = 2    /* (1 - blend) * maximum + blend * average */
} kelp_pooling;

/* Adds pooling over windows of `window_dims` of an input [n, c, …]. */
KELP_API kelp_status *kelp_network_add_pooling(kelp_network *network, kelp_net_tensor *input,
                                               kelp_pooling type, kelp_shape window_dims,
                                               const kelp_window *options,
                                               kelp_layer **out) KELP_MUST_USE;

/* Adds local response normalization: x / (k + alpha / window * s) ^ beta, where s is the sum of
 * squares over `window` neighbouring channels. `window` must be odd. */
KELP_API kelp_status *kelp_network_add_lrn(kelp_network *network, kelp_net_tensor *input,
                                           int64_t window, float alpha, float beta, float k,
                                           kelp_layer **out) KELP_MUST_USE;

/* Adds zero padding of the last two axes: `pre` before and `post` after, two values each. Negative
 * values crop. */
KELP_API kelp_status *kelp_network_add_padding(kelp_network *network, kelp_net_tensor *input,
                                               kelp_shape pre, kelp_shape post,
                                               kelp_layer **out) KELP_MUST_USE;

/* Interpolation. */
typedef enum kelp_interpolation {
    KELP_INTERPOLATION_NEAREST = 0, /* nearest element */
    KELP_INTERPOLATION_LINEAR = 1,  /* linear */
    KELP_INTERPOLATION_CUBIC = 2    /* cubic */
} kelp_interpolation;

/* How coordinates of the output map to the input. */
typedef enum kelp_coordinates {
    KELP_COORDINATES_ALIGN_CORNERS = 0, /* corner elements coincide */
    KELP_COORDINATES_ASYMMETRIC = 1,    /* x / scale */
    KELP_COORDINATES_HALF_PIXEL = 2     /* (x + 0.5) / scale - 0.5 */
} kelp_coordinates;

/* Rounding of coordinates with KELP_INTERPOLATION_NEAREST. */
typedef enum kelp_rounding {
    KELP_ROUNDING_HALF_UP = 0,   /* to nearest, ties up */
    KELP_ROUNDING_HALF_DOWN = 1, /* to nearest, ties down */
    KELP_ROUNDING_FLOOR = 2,     /* down */
    KELP_ROUNDING_CEIL = 3       /* up */
} kelp_rounding;

/* Options of a resize layer. Exactly one of `dims`, `scales` and `shape` must be given. */
typedef struct kelp_resize {
    uint32_t struct_size;         /* sizeof(kelp_resize) */
    kelp_shape dims;              /* output dimensions; rank 0: not given */
    uint32_t scale_count;         /* number of scales, 0 or the input's rank */
    float scales[KELP_MAX_RANK];  /* scale of each axis */
    kelp_net_tensor *shape;       /* computed output dimensions, int64 [rank] */
    kelp_interpolation mode;      /* interpolation */
    kelp_coordinates coordinates; /* coordinate mapping */
    kelp_rounding rounding;       /* rounding of nearest interpolation */
    float cubic_coefficient;      /* [-0.75] */
    bool exclude_outside;         /* cubic: elements outside the input have weight 0 */
} kelp_resize;

/* Adds a resize layer. */
KELP_API kelp_status *kelp_network_add_resize(kelp_network *network, kelp_net_tensor *input,
                                              const kelp_resize *options,
                                              kelp_layer **out) KELP_MUST_USE;

/* Treatment of positions outside a tensor. */
typedef enum kelp_sample_mode {
    KELP_SAMPLE_STRICT = 0, /* not allowed */
    KELP_SAMPLE_WRAP = 1,   /* modulo the dimension */
    KELP_SAMPLE_CLAMP = 2,  /* nearest element */
    KELP_SAMPLE_FILL = 3,   /* zero, or the fill value */
    KELP_SAMPLE_REFLECT = 4 /* mirrored */
} kelp_sample_mode;

/* Adds sampling at given positions. Input [n, c, h, w], grid [n, ho, wo, 2] with x and y in -1 …
 * 1, output [n, c, ho, wo]. `outside` is FILL, CLAMP or REFLECT. */
KELP_API kelp_status *kelp_network_add_grid_sample(kelp_network *network, kelp_net_tensor *input,
                                                   kelp_net_tensor *grid, kelp_interpolation mode,
                                                   bool align_corners, kelp_sample_mode outside,
                                                   kelp_layer **out) KELP_MUST_USE;

/* ---- Shapes and indexing ---- */

/* Options of a shuffle layer: transpose, then reshape, then transpose. */
typedef struct kelp_shuffle {
    uint32_t struct_size; /* sizeof(kelp_shuffle) */
    /* true if first_transpose or second_transpose, respectively, applies */
    bool first_transpose_given, second_transpose_given;
    int32_t first_transpose[KELP_MAX_RANK]; /* permutation before reshaping */
    bool reshape_given;                     /* `reshape` applies */
    kelp_shape reshape; /* new dimensions; -1: inferred; 0: copied from the input */
    /* computed new dimensions, int64 [rank], instead of `reshape` */
    kelp_net_tensor *shape;
    bool zero_is_zero;                       /* 0 in the new dimensions is not copied */
    int32_t second_transpose[KELP_MAX_RANK]; /* permutation after reshaping */
} kelp_shuffle;

/* Adds a transpose, reshape or both. */
KELP_API kelp_status *kelp_network_add_shuffle(kelp_network *network, kelp_net_tensor *input,
                                               const kelp_shuffle *options,
                                               kelp_layer **out) KELP_MUST_USE;

/* Adds a concatenation along `axis` of at least one input. All other dimensions must be equal. */
KELP_API kelp_status *kelp_network_add_concatenation(kelp_network *network,
                                                     kelp_net_tensor *const *inputs, size_t count,
                                                     int32_t axis, kelp_layer **out) KELP_MUST_USE;

/* Options of a slice layer. */
typedef struct kelp_slice {
    uint32_t struct_size; /* sizeof(kelp_slice) */
    /* treatment of positions outside the input [KELP_SAMPLE_STRICT] */
    kelp_sample_mode mode;
    /* Computed `start`, `size` and `stride`, int64 [rank], instead of the arguments, and `fill`, a
     * scalar for KELP_SAMPLE_FILL. [none] */
    kelp_net_tensor *start, *size, *stride, *fill;
} kelp_slice;

/* Adds a slice: for each axis, `size` elements from `start` on in steps of `stride`. */
KELP_API kelp_status *kelp_network_add_slice(kelp_network *network, kelp_net_tensor *input,
                                             kelp_shape start, kelp_shape size, kelp_shape stride,
                                             const kelp_slice *options,
                                             kelp_layer **out) KELP_MUST_USE;

/* Adds the shape of the input as int64 [rank]. */
KELP_API kelp_status *kelp_network_add_shape(kelp_network *network, kelp_net_tensor *input,
                                             kelp_layer **out) KELP_MUST_USE;

/* Removes axes of dimension 1. `axes` is a constant int32 or int64 [n]. */
KELP_API kelp_status *kelp_network_add_squeeze(kelp_network *network, kelp_net_tensor *input,
                                               kelp_net_tensor *axes,
                                               kelp_layer **out) KELP_MUST_USE;

/* Inserts axes of dimension 1. `axes`, positions in the result, is a constant int32 or int64 [n].
 */
KELP_API kelp_status *kelp_network_add_unsqueeze(kelp_network *network, kelp_net_tensor *input,
                                                 kelp_net_tensor *axes,
                                                 kelp_layer **out) KELP_MUST_USE;

/* Kind of a gather layer. */
typedef enum kelp_gather_mode {
    /* slices along `axis`; the first `batch_dims` axes are batch axes (ONNX Gather) */
    KELP_GATHER_DEFAULT = 0,
    KELP_GATHER_ELEMENT = 1, /* one element per index along `axis` (ONNX GatherElements) */
    /* the last axis of the indices addresses the axes after batch_dims (ONNX GatherND) */
    KELP_GATHER_ND = 2
} kelp_gather_mode;

/* Adds a gather. `indices` is int32 or int64. */
KELP_API kelp_status *kelp_network_add_gather(kelp_network *network, kelp_net_tensor *data,
                                              kelp_net_tensor *indices, kelp_gather_mode mode,
                                              int32_t axis, int32_t batch_dims,
                                              kelp_layer **out) KELP_MUST_USE;

/* Kind of a scatter layer. */
typedef enum kelp_scatter_mode {
    /* one element per index along `axis` (ONNX ScatterElements) */
    KELP_SCATTER_ELEMENT = 0,
    /* slices addressed by the last axis of the indices (ONNX ScatterND) */
    KELP_SCATTER_ND = 1
} kelp_scatter_mode;

/* Adds a scatter: a copy of `data` with `updates` at `indices`. `axis` applies to
 * KELP_SCATTER_ELEMENT. */
KELP_API kelp_status *kelp_network_add_scatter(kelp_network *network, kelp_net_tensor *data,
                                               kelp_net_tensor *indices, kelp_net_tensor *updates,
                                               kelp_scatter_mode mode, int32_t axis,
                                               kelp_layer **out) KELP_MUST_USE;

/* Adds one-hot encoding. `values` [2] contains the off value and the on value. `depth` is a scalar:
 * the size of the new axis, which is inserted at position `axis`. */
KELP_API kelp_status *kelp_network_add_one_hot(kelp_network *network, kelp_net_tensor *indices,
                                               kelp_net_tensor *values, kelp_net_tensor *depth,
                                               int32_t axis, kelp_layer **out) KELP_MUST_USE;

/* Adds the indices of non-zero elements, shape [rank, n]. `indices` is the element type of the
 * output, KELP_I32 or KELP_I64. */
KELP_API kelp_status *kelp_network_add_non_zero(kelp_network *network, kelp_net_tensor *input,
                                                kelp_dtype indices, kelp_layer **out) KELP_MUST_USE;

/* Reverses the first lengths[b] elements along `sequence_axis` of each index b of `batch_axis`.
 * `lengths` is int32 or int64 [batch]. */
KELP_API kelp_status *kelp_network_add_reverse_sequence(kelp_network *network,
                                                        kelp_net_tensor *input,
                                                        kelp_net_tensor *lengths,
                                                        int32_t batch_axis, int32_t sequence_axis,
                                                        kelp_layer **out) KELP_MUST_USE;

/* Kind of a fill layer. */
typedef enum kelp_fill {
    KELP_FILL_LINSPACE = 0,       /* alpha + i * beta */
    KELP_FILL_RANDOM_UNIFORM = 1, /* uniform between alpha and beta */
    KELP_FILL_RANDOM_NORMAL = 2   /* normal with mean alpha and standard deviation beta */
} kelp_fill;

/* Options of a fill layer. */
typedef struct kelp_fill_options {
    uint32_t struct_size; /* sizeof(kelp_fill_options) */
    double alpha, beta;   /* see kelp_fill [0 and 1 if both are 0] */
    /* computed dimensions, int32 or int64 [rank], instead of `dims` */
    kelp_net_tensor *shape;
    kelp_net_tensor *start; /* computed scalar instead of alpha */
    kelp_net_tensor *delta; /* LINSPACE: [rank], one step per axis, instead of beta */
    kelp_dtype dtype;       /* element type [that of `start`, else KELP_F32] */
} kelp_fill_options;

/* Adds a tensor of shape `dims` filled with values. The layer has no inputs unless options specify
 * tensors. */
KELP_API kelp_status *kelp_network_add_fill(kelp_network *network, kelp_shape dims, kelp_fill op,
                                            const kelp_fill_options *options,
                                            kelp_layer **out) KELP_MUST_USE;

/* Adds an assertion. `condition` is bool. Fails with INVALID_ARGUMENT if it is a constant with a
 * false element. An inference fails with FAILED_PRECONDITION and `message` if an element of the
 * computed condition is false. A build fails with UNIMPLEMENTED if the assertion is inside a
 * conditional. */
KELP_API kelp_status *kelp_network_add_assertion(kelp_network *network, kelp_net_tensor *condition,
                                                 const char *message,
                                                 kelp_layer **out) KELP_MUST_USE;

/* ---- Reductions ---- */

/* Reduction. */
typedef enum kelp_reduce {
    KELP_REDUCE_SUM = 0,     /* sum */
    KELP_REDUCE_PROD = 1,    /* product */
    KELP_REDUCE_MAX = 2,     /* maximum */
    KELP_REDUCE_MIN = 3,     /* minimum */
    KELP_REDUCE_AVERAGE = 4, /* average */
    KELP_REDUCE_NONE = 5     /* none; only for collectives */
} kelp_reduce;

/* Adds a reduction over the mask `axes`. Reduced axes become 1 with `keep_dims` and are removed
 * otherwise. */
KELP_API kelp_status *kelp_network_add_reduce(kelp_network *network, kelp_net_tensor *input,
                                              kelp_reduce op, uint32_t axes, bool keep_dims,
                                              kelp_layer **out) KELP_MUST_USE;

/* Adds a softmax. `axes` has exactly one bit. */
KELP_API kelp_status *kelp_network_add_softmax(kelp_network *network, kelp_net_tensor *input,
                                               uint32_t axes, kelp_layer **out) KELP_MUST_USE;

/* Adds a softmax along the last axis, in which each row has its own number of valid elements:
 * `bounds`, int32 or int64 [n, 1] or [b, n, 1]. Input [n, k] or [b, n, k]. The other elements of a
 * row become 0. */
KELP_API kelp_status *kelp_network_add_ragged_softmax(kelp_network *network, kelp_net_tensor *input,
                                                      kelp_net_tensor *bounds,
                                                      kelp_layer **out) KELP_MUST_USE;

/* Adds the k largest (or smallest) elements along an axis. Outputs: values, and indices of type
 * `indices` (KELP_I32 or KELP_I64). `axes` has exactly one bit. `k_tensor` is a scalar that is used
 * instead of `k`, or NULL. */
KELP_API kelp_status *kelp_network_add_topk(kelp_network *network, kelp_net_tensor *input,
                                            bool largest, int64_t k, kelp_net_tensor *k_tensor,
                                            uint32_t axes, kelp_dtype indices,
                                            kelp_layer **out) KELP_MUST_USE;

/* Adds cumulative sums along `axis`. With `exclusive`, a sum does not include its own element. With
 * `reverse`, summation starts at the end of the axis. */
KELP_API kelp_status *kelp_network_add_cumulative(kelp_network *network, kelp_net_tensor *input,
                                                  int32_t axis, bool exclusive, bool reverse,
                                                  kelp_layer **out) KELP_MUST_USE;

/* Options of a normalization layer. */
typedef struct kelp_normalization {
    uint32_t struct_size; /* sizeof(kelp_normalization) */
    float epsilon;        /* [1e-5] */
    int64_t groups;       /* number of groups of channels [1]; group normalization if more than 1 */
} kelp_normalization;

/* Adds (x - mean) / sqrt(variance + epsilon) * scale + bias, with mean and variance over the mask
 * `axes`. `scale` and `bias` have the rank of `input` and broadcast to it. For group normalization,
 * mean and variance are those of each group, and `scale` and `bias` are [1, c, 1, …] or [1, groups,
 * 1, …]. */
KELP_API kelp_status *kelp_network_add_normalization(kelp_network *network, kelp_net_tensor *input,
                                                     kelp_net_tensor *scale, kelp_net_tensor *bias,
                                                     uint32_t axes,
                                                     const kelp_normalization *options,
                                                     kelp_layer **out) KELP_MUST_USE;

/* ---- Matrix multiplication and attention ---- */

/* How an operand of a matrix multiplication is used. */
typedef enum kelp_matrix_op {
    KELP_MATRIX_NONE = 0,      /* matrices in the last two axes */
    KELP_MATRIX_TRANSPOSE = 1, /* transposed matrices in the last two axes */
    KELP_MATRIX_VECTOR = 2     /* vectors in the last axis */
} kelp_matrix_op;

/* Adds a batched matrix multiplication. Both operands must have the same number of batch axes,
 * which broadcast. */
KELP_API kelp_status *kelp_network_add_matrix_multiply(kelp_network *network, kelp_net_tensor *a,
                                                       kelp_matrix_op op_a, kelp_net_tensor *b,
                                                       kelp_matrix_op op_b,
                                                       kelp_layer **out) KELP_MUST_USE;

/* Adds an Einstein summation such as "bij,bjk->bik", in lower-case letters. */
KELP_API kelp_status *kelp_network_add_einsum(kelp_network *network, kelp_net_tensor *const *inputs,
                                              size_t count, const char *equation,
                                              kelp_layer **out) KELP_MUST_USE;

/* Options of an attention layer. */
typedef struct kelp_attention {
    uint32_t struct_size; /* sizeof(kelp_attention) */
    bool causal;          /* a query attends only to keys up to its position */
    bool no_softmax;      /* no softmax between the two matrix multiplications */
    /* bool (true: attend) or added to the scores; broadcasts to [b, heads, q, kv] */
    kelp_net_tensor *mask;
} kelp_attention;

/* Adds softmax(query * transpose(key) + mask) * value. Each is [b, heads, sequence, size]. The
 * layer does not scale the query: scale it before. Keys and values may have fewer heads than the
 * query; a group of query heads then shares each of them (grouped-query attention). */
KELP_API kelp_status *kelp_network_add_attention(kelp_network *network, kelp_net_tensor *query,
                                                 kelp_net_tensor *key, kelp_net_tensor *value,
                                                 const kelp_attention *options,
                                                 kelp_layer **out) KELP_MUST_USE;

/* Adds a rotary position embedding of an input [b, heads, sequence, size]. `cos` and `sin` are
 * [positions, dims / 2], or [b, sequence, dims / 2] if `positions` (int32 or int64 [b, sequence])
 * is NULL. `rotary_dims` 0 rotates all of `size`. `interleaved` pairs adjacent elements instead of
 * halves. */
KELP_API kelp_status *kelp_network_add_rotary_embedding(kelp_network *network,
                                                        kelp_net_tensor *input,
                                                        kelp_net_tensor *cos, kelp_net_tensor *sin,
                                                        kelp_net_tensor *positions,
                                                        bool interleaved, int64_t rotary_dims,
                                                        kelp_layer **out) KELP_MUST_USE;

/* Adds an update of a key/value cache. The output is a copy of `cache` [b, heads, max, size] in
 * which `update` [b, heads, s, size] replaces the s positions from write_indices[b] (int32 or
 * int64) on. */
KELP_API kelp_status *kelp_network_add_kv_cache_update(kelp_network *network,
                                                       kelp_net_tensor *cache,
                                                       kelp_net_tensor *update,
                                                       kelp_net_tensor *write_indices,
                                                       kelp_layer **out) KELP_MUST_USE;

/* Options of a mixture-of-experts layer. */
typedef struct kelp_moe {
    uint32_t struct_size; /* sizeof(kelp_moe) */
    /* biases: gate_bias and up_bias [experts, inner], down_bias [experts, h] [none] */
    kelp_net_tensor *gate_bias, *up_bias, *down_bias;
    kelp_activation activation; /* applied to `gate`, or to `up` if there is no gate */
    bool swish;                 /* use SiLU instead of `activation` */
    float alpha, beta;          /* parameters of `activation` */
} kelp_moe;

/* Adds a mixture of experts. `hidden` [b, s, h], `experts` int32 [b, s, k], `scores` [b, s, k],
 * `gate` (may be NULL) and `up` [experts, h, inner], `down` [experts, inner, h]. Output [b, s, h].
 */
KELP_API kelp_status *kelp_network_add_moe(kelp_network *network, kelp_net_tensor *hidden,
                                           kelp_net_tensor *experts, kelp_net_tensor *scores,
                                           kelp_net_tensor *gate, kelp_net_tensor *up,
                                           kelp_net_tensor *down, const kelp_moe *options,
                                           kelp_layer **out) KELP_MUST_USE;

/* ---- Quantization ---- */

/* Adds quantization to type `to`. `scale` is a scalar, or [n] along `axis`. `zero_point` has the
 * shape of `scale`; NULL means 0. */
KELP_API kelp_status *kelp_network_add_quantize(kelp_network *network, kelp_net_tensor *input,
                                                kelp_net_tensor *scale, kelp_net_tensor *zero_point,
                                                int32_t axis, kelp_dtype to,
                                                kelp_layer **out) KELP_MUST_USE;

/* Adds dequantization to the floating-point type `to`. `scale` and `zero_point` as in
 * kelp_network_add_quantize. */
KELP_API kelp_status *kelp_network_add_dequantize(kelp_network *network, kelp_net_tensor *input,
                                                  kelp_net_tensor *scale,
                                                  kelp_net_tensor *zero_point, int32_t axis,
                                                  kelp_dtype to, kelp_layer **out) KELP_MUST_USE;

/* Adds block quantization: every `block` consecutive elements along `axis` share a scale, which is
 * their maximum of |x| divided by the largest value of `to`. Outputs: data of type `to`
 * (KELP_F8E4M3FN or KELP_F4E2M1) and scales of type `scale_dtype`. The dimensions from `axis` on
 * must be fixed and `block` must divide the first of them. */
KELP_API kelp_status *kelp_network_add_dynamic_quantize(kelp_network *network,
                                                        kelp_net_tensor *input, int32_t axis,
                                                        int64_t block, kelp_dtype to,
                                                        kelp_dtype scale_dtype,
                                                        kelp_layer **out) KELP_MUST_USE;

/* ---- Detection ---- */

/* Options of non-maximum suppression. */
typedef struct kelp_nms {
    uint32_t struct_size; /* sizeof(kelp_nms) */
    bool centers;         /* boxes are [x, y, w, h] around a center instead of [y1, x1, y2, x2] */
    int64_t topk;         /* number of candidates per class [0, all] */
    /* scalars: iou_threshold [0], score_threshold [no threshold] */
    kelp_net_tensor *iou_threshold, *score_threshold;
} kelp_nms;

/* Adds non-maximum suppression. `boxes` [b, n, 4], `scores` [b, classes, n], `max_per_class` a
 * scalar. Outputs, int32: indices (batch, class, box) of the selected boxes [m, 3], and m as a
 * scalar. */
KELP_API kelp_status *kelp_network_add_nms(kelp_network *network, kelp_net_tensor *boxes,
                                           kelp_net_tensor *scores, kelp_net_tensor *max_per_class,
                                           const kelp_nms *options, kelp_layer **out) KELP_MUST_USE;

/* ---- Collectives ---- */

/* Collective operation. */
typedef enum kelp_collective {
    KELP_COLLECTIVE_ALL_REDUCE = 0,    /* reduction on all ranks */
    KELP_COLLECTIVE_ALL_GATHER = 1,    /* concatenation on all ranks */
    KELP_COLLECTIVE_BROADCAST = 2,     /* copy from the root */
    KELP_COLLECTIVE_REDUCE = 3,        /* reduction on the root */
    KELP_COLLECTIVE_REDUCE_SCATTER = 4 /* reduction, one part per rank */
} kelp_collective;

/* Adds a collective operation among `ranks` ranks. Only one rank is supported: fails with
 * UNIMPLEMENTED for more. */
KELP_API kelp_status *kelp_network_add_collective(kelp_network *network, kelp_net_tensor *input,
                                                  kelp_collective op, kelp_reduce reduce,
                                                  int32_t root, int32_t ranks,
                                                  kelp_layer **out) KELP_MUST_USE;

/* ---- Control flow ---- */

/* Adds a loop. All layers that depend on a recurrence or iterator of the loop form its body, except
 * those that depend only on its outputs. Fails with INVALID_ARGUMENT if `out` is NULL. */
KELP_API kelp_status *kelp_network_add_loop(kelp_network *network, kelp_loop **out) KELP_MUST_USE;

/* Sets the number of iterations, a scalar int32 or int64. A loop has a trip count, a condition or
 * both; a build fails with INVALID_ARGUMENT if it has neither. Replaces an earlier trip count. */
KELP_API kelp_status *kelp_loop_set_trip_count(kelp_loop *loop,
                                               kelp_net_tensor *count) KELP_MUST_USE;

/* Sets the condition, a scalar bool computed in the body: the loop continues while it is true. */
KELP_API kelp_status *kelp_loop_set_condition(kelp_loop *loop,
                                              kelp_net_tensor *condition) KELP_MUST_USE;

/* Adds a loop-carried value. The output of the layer is the value in the current iteration, which
 * is `initial` in the first iteration. A build fails if kelp_recurrence_set_next was not called. */
KELP_API kelp_status *kelp_loop_add_recurrence(kelp_loop *loop, kelp_net_tensor *initial,
                                               kelp_layer **out) KELP_MUST_USE;

/* Sets the value of the next iteration. It must have the element type and rank of the initial
 * value. */
KELP_API kelp_status *kelp_recurrence_set_next(kelp_layer *recurrence,
                                               kelp_net_tensor *next) KELP_MUST_USE;

/* Adds an iterator. In iteration i, the output of the layer is slice i of `tensor` along `axis`,
 * with this axis removed. With `reverse`, iteration 0 returns the last slice. */
KELP_API kelp_status *kelp_loop_add_iterator(kelp_loop *loop, kelp_net_tensor *tensor, int32_t axis,
                                             bool reverse, kelp_layer **out) KELP_MUST_USE;

/* Kind of a loop output. */
typedef enum kelp_loop_output {
    KELP_LOOP_LAST_VALUE = 0,  /* final value of a recurrence of the loop */
    KELP_LOOP_CONCATENATE = 1, /* values of all iterations along a new axis */
    KELP_LOOP_REVERSE = 2      /* the same, last iteration first */
} kelp_loop_output;

/* Adds an output of the loop. `axis` is the position of the new axis; ignored for
 * KELP_LOOP_LAST_VALUE. */
KELP_API kelp_status *kelp_loop_add_output(kelp_loop *loop, kelp_net_tensor *tensor,
                                           kelp_loop_output kind, int32_t axis,
                                           kelp_layer **out) KELP_MUST_USE;

/* Adds a conditional. `condition` is a scalar bool. Layers that depend on an input of the
 * conditional run only in the branch that needs them. Fails with INVALID_ARGUMENT if `out` is NULL.
 */
KELP_API kelp_status *kelp_network_add_conditional(kelp_network *network,
                                                   kelp_net_tensor *condition,
                                                   kelp_conditional **out) KELP_MUST_USE;

/* Adds an input of the conditional. Layers in the branches use the output of the returned layer
 * instead of `input`. */
KELP_API kelp_status *kelp_conditional_add_input(kelp_conditional *conditional,
                                                 kelp_net_tensor *input,
                                                 kelp_layer **out) KELP_MUST_USE;

/* Adds an output: `then_tensor` if the condition is true, otherwise `else_tensor`. Types and ranks
 * must be equal. */
KELP_API kelp_status *kelp_conditional_add_output(kelp_conditional *conditional,
                                                  kelp_net_tensor *then_tensor,
                                                  kelp_net_tensor *else_tensor,
                                                  kelp_layer **out) KELP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
