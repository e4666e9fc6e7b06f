/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network: layers with their parameters, in the order in which they were added, and a draft
 * graph that provides types and shapes. Providers read the layers.
 */
#ifndef KELP_BUILDER_NETWORK_H_
#define KELP_BUILDER_NETWORK_H_

#include "base/domain.h"
#include "base/map.h"
#include "graph/ir.h"

#include <kelp/builder.h>

struct kelp_net_tensor {
    kelp_network *network;
    const char *name;
    kelp_layer *producer; /* INPUT and PARSED layers too */
    uint32_t output_index;
    uint32_t id;       /* dense in its network */
    kelp_value *draft; /* types and shapes */
    bool is_output;
};

/* A loop or conditional. Layers that depend on its boundary layers belong to it. */
typedef struct kelp_region {
    struct kelp_region *parent; /* NULL for the network itself */
    uint32_t index;             /* increases with the order of creation; inner regions come later */
    kelp_loop *loop;            /* loop or conditional */
    kelp_conditional *conditional;
} kelp_region;

struct kelp_loop {
    kelp_region region;
    kelp_network *network;
    kelp_net_tensor *trip_count, *condition;
    kelp_layer *first; /* recurrences, iterators and outputs, linked by next_in_region */
};

struct kelp_conditional {
    kelp_region region;
    kelp_network *network;
    kelp_net_tensor *condition;
    kelp_layer *first; /* inputs and outputs */
};

typedef struct kelp_window_params {
    kelp_shape window; /* spatial dimensions of the kernel */
    int64_t maps;      /* number of output maps of convolutions */
    kelp_weights kernel, bias;
    kelp_window options; /* defaults filled in */
    kelp_pooling pooling;
} kelp_window_params;

/* Parameters of a layer. Tensors in options are inputs of the layer, in the order listed for each
 * member. */
typedef union kelp_layer_params {
    struct {
        kelp_shape dims;
        kelp_weights weights;
    } constant;
    struct {
        kelp_activation type;
        float alpha, beta;
    } activation;
    kelp_unary unary;
    kelp_elementwise elementwise; /* inputs a, b */
    struct {
        kelp_scale_mode mode;
        kelp_weights shift, scale, power;
        int32_t axis;
    } scale;
    kelp_dtype cast;
    kelp_window_params window; /* inputs: input, kernel, bias (the latter may be NULL) */
    struct {
        int64_t window;
        float alpha, beta, k;
    } lrn;
    struct {
        kelp_shape pre, post;
    } padding;
    kelp_resize resize; /* inputs: input, shape */
    struct {
        kelp_interpolation mode;
        bool align_corners;
        kelp_sample_mode outside;
    } grid_sample;
    kelp_shuffle shuffle; /* inputs: input, shape */
    int32_t axis;         /* concatenation, one hot */
    struct {
        kelp_shape start, size, stride;
        kelp_sample_mode mode;
    } slice;         /* inputs: input, start, size, stride, fill */
    kelp_shape axes; /* squeeze, unsqueeze: the constant's values; inputs: input, axes */
    struct {
        kelp_gather_mode mode;
        int32_t axis, batch_dims;
    } gather;
    struct {
        kelp_scatter_mode mode;
        int32_t axis;
    } scatter;
    kelp_dtype indices; /* non zero */
    struct {
        int32_t batch, sequence;
    } reverse_sequence;
    struct {
        kelp_shape dims;
        kelp_fill op;
        kelp_fill_options options;
    } fill;              /* inputs: shape, start, delta */
    const char *message; /* assertion */
    struct {
        kelp_reduce op;
        uint32_t axes;
        bool keep_dims;
    } reduce;
    uint32_t axes_mask; /* softmax */
    struct {
        bool largest;
        int64_t k;
        uint32_t axes;
        kelp_dtype indices;
    } topk; /* inputs: input, k */
    struct {
        int32_t axis;
        bool exclusive, reverse;
    } cumulative;
    struct {
        uint32_t axes;
        float epsilon;
        int64_t groups;
    } normalization; /* inputs: input, scale, bias */
    struct {
        kelp_matrix_op a, b;
    } matrix;
    const char *equation; /* einsum */
    struct {
        bool causal, no_softmax;
    } attention; /* inputs: query, key, value, mask */
    struct {
        bool interleaved;
        int64_t rotary_dims;
    } rotary; /* inputs: input, cos, sin, positions */
    struct {
        kelp_activation activation;
        bool swish;
        float alpha, beta;
    } moe; /* inputs: hidden, experts, scores, gate, up, down, gate_bias, up_bias, down_bias */
    struct {
        int32_t axis;
        kelp_dtype to;
    } quantize; /* and dequantize; inputs: input, scale, zero point */
    struct {
        int32_t axis;
        int64_t block;
        kelp_dtype to, scale_dtype;
    } dynamic_quantize;
    struct {
        bool centers;
        int64_t topk;
    } nms; /* inputs: boxes, scores, max, iou, score threshold */
    struct {
        kelp_collective op;
        kelp_reduce reduce;
        int32_t root, ranks;
    } collective;
    struct {
        int32_t axis;
        bool reverse;
    } iterator;
    struct {
        kelp_loop_output kind;
        int32_t axis;
    } loop_output;
} kelp_layer_params;

struct kelp_layer {
    kelp_network *network;
    kelp_layer_type type;
    const char *name;
    uint32_t index;
    kelp_net_tensor **inputs; /* NULL items are omitted */
    uint32_t input_count;
    kelp_net_tensor **outputs;
    uint32_t output_count;
    kelp_layer_params params;
    kelp_region *region;   /* region in which it runs; NULL: the network itself */
    kelp_region *boundary; /* region of recurrences, iterators, inputs and outputs */
    kelp_layer *next_in_region;
};

struct kelp_network {
    _Atomic uint32_t references;
    kelp_builder *builder;
    kelp_allocator allocator;
    kelp_arena arena; /* owns the following strings, arrays, layers and tensors */
    const char *name;
    kelp_layer **layers;
    size_t layer_count, layer_capacity;
    kelp_net_tensor **tensors; /* indexed by id */
    size_t tensor_count, tensor_capacity;
    kelp_net_tensor **inputs, **outputs;
    size_t input_count, input_capacity, output_count, output_capacity;
    const char **refittable;
    size_t refittable_count, refittable_capacity;
    uint32_t region_count;
    kelp_graph *parsed;      /* ONNX model that the network starts from, or NULL */
    const char *source_path; /* file of the model; NULL if it was in memory */
    const void *source_data;
    size_t source_bytes;
    kelp_graph *draft; /* all layers in one block, for types and shapes */
};

/* ---- errors ---- */
/* Creates a failure of KELP_DOMAIN_NETWORK. */
#define KELP_NETWORK_ERROR(code, ...) \
    kelp_in_domain(KELP_ERROR((code), __VA_ARGS__), KELP_DOMAIN_NETWORK)

/* Creates an error that begins with "layer 3 'conv1' (Convolution)". */
kelp_status *kelp_layer_error(const kelp_layer *layer, const char *format, ...)
    KELP_PRINTF(2, 3) KELP_MUST_USE;

/* Fails with FAILED_PRECONDITION if no tensor is marked as an output. */
kelp_status *kelp_network_check_outputs(const kelp_network *network) KELP_MUST_USE;

/* ---- construction of networks ---- */
/* Creates a network, empty or from a parsed model. */
kelp_status *kelp_network_new(kelp_builder *builder, kelp_allocator allocator, kelp_graph *parsed,
                              kelp_network **out) KELP_MUST_USE;
/* Grows an arena array of pointers for another pointer after `count`. */
kelp_status *kelp_network_reserve(kelp_network *network, void *inout_items, size_t count,
                                  size_t *inout_capacity) KELP_MUST_USE;

/* Fails with INVALID_ARGUMENT if a required `out` is NULL. */
kelp_status *kelp_network_check_out(const kelp_network *network, const void *out) KELP_MUST_USE;

/* Appends a layer: emits it into the draft, infers types and creates its output tensors. The first
 * `required` of `inputs` must not be NULL. The network is unchanged on failure. */
kelp_status *kelp_network_append(kelp_network *network, kelp_layer_type type,
                                 kelp_net_tensor *const *inputs, size_t input_count,
                                 size_t required, const kelp_layer_params *params,
                                 kelp_region *boundary, kelp_layer **out) KELP_MUST_USE;

/* Determines the region of a layer from its inputs and nests regions accordingly. Returns true if
 * something changed. */
bool kelp_network_place(kelp_layer *layer);
/* Nests the region in the region of the tensor. Returns true if something changed. */
bool kelp_region_nest(kelp_region *region, const kelp_net_tensor *tensor);

/* ---- lowering to a graph (lower.c) ---- */
/* Converts the network to a graph that an engine can be created from: loops and conditionals
 * become subgraphs, marked tensors become outputs and weights become named constants. The graph
 * borrows the weights from the network, which must outlive it. */
kelp_status *kelp_network_lower(const kelp_network *network, kelp_graph **out) KELP_MUST_USE;

#endif
