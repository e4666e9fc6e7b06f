/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/* A typed C function for each method of TensorRT's objects. A method that the library's version lacks,
 * or of no object (NULL), does nothing and gives zeros; trt_has tells. Written by tools/trt_tables.py; change that instead. */
#ifndef KELP_TENSORRT_TABLES_CALLS_H_
#define KELP_TENSORRT_TABLES_CALLS_H_

#include "tensorrt/tables/methods.h"

/* Objects of the library. A layer of any kind is a trt_layer as well (trt_as_layer). */
typedef struct trt_activation_layer trt_activation_layer;
typedef struct trt_assertion_layer trt_assertion_layer;
typedef struct trt_attention trt_attention;
typedef struct trt_attention_boundary_layer trt_attention_boundary_layer;
typedef struct trt_builder trt_builder;
typedef struct trt_cast_layer trt_cast_layer;
typedef struct trt_concatenation_layer trt_concatenation_layer;
typedef struct trt_condition_layer trt_condition_layer;
typedef struct trt_config trt_config;
typedef struct trt_constant_layer trt_constant_layer;
typedef struct trt_context trt_context;
typedef struct trt_convolution_layer trt_convolution_layer;
typedef struct trt_cumulative_layer trt_cumulative_layer;
typedef struct trt_debug_listener trt_debug_listener;
typedef struct trt_deconvolution_layer trt_deconvolution_layer;
typedef struct trt_dequantize_layer trt_dequantize_layer;
typedef struct trt_dist_collective_layer trt_dist_collective_layer;
typedef struct trt_dynamic_quantize_layer trt_dynamic_quantize_layer;
typedef struct trt_einsum_layer trt_einsum_layer;
typedef struct trt_element_wise_layer trt_element_wise_layer;
typedef struct trt_engine trt_engine;
typedef struct trt_error_recorder trt_error_recorder;
typedef struct trt_fill_layer trt_fill_layer;
typedef struct trt_gather_layer trt_gather_layer;
typedef struct trt_gpu_allocator trt_gpu_allocator;
typedef struct trt_grid_sample_layer trt_grid_sample_layer;
typedef struct trt_identity_layer trt_identity_layer;
typedef struct trt_if_conditional trt_if_conditional;
typedef struct trt_if_conditional_boundary_layer trt_if_conditional_boundary_layer;
typedef struct trt_if_conditional_input_layer trt_if_conditional_input_layer;
typedef struct trt_if_conditional_output_layer trt_if_conditional_output_layer;
typedef struct trt_inspector trt_inspector;
typedef struct trt_iterator_layer trt_iterator_layer;
typedef struct trt_kvcache_update_layer trt_kvcache_update_layer;
typedef struct trt_layer trt_layer;
typedef struct trt_logger trt_logger;
typedef struct trt_loop trt_loop;
typedef struct trt_loop_boundary_layer trt_loop_boundary_layer;
typedef struct trt_loop_output_layer trt_loop_output_layer;
typedef struct trt_lrn_layer trt_lrn_layer;
typedef struct trt_matrix_multiply_layer trt_matrix_multiply_layer;
typedef struct trt_memory trt_memory;
typedef struct trt_moe_layer trt_moe_layer;
typedef struct trt_network trt_network;
typedef struct trt_nms_layer trt_nms_layer;
typedef struct trt_non_zero_layer trt_non_zero_layer;
typedef struct trt_normalization_layer trt_normalization_layer;
typedef struct trt_one_hot_layer trt_one_hot_layer;
typedef struct trt_output_allocator trt_output_allocator;
typedef struct trt_padding_layer trt_padding_layer;
typedef struct trt_parametric_relu_layer trt_parametric_relu_layer;
typedef struct trt_parser trt_parser;
typedef struct trt_parser_error trt_parser_error;
typedef struct trt_parser_refitter trt_parser_refitter;
typedef struct trt_pooling_layer trt_pooling_layer;
typedef struct trt_profile trt_profile;
typedef struct trt_profiler trt_profiler;
typedef struct trt_progress_monitor trt_progress_monitor;
typedef struct trt_quantize_layer trt_quantize_layer;
typedef struct trt_ragged_soft_max_layer trt_ragged_soft_max_layer;
typedef struct trt_recurrence_layer trt_recurrence_layer;
typedef struct trt_reduce_layer trt_reduce_layer;
typedef struct trt_refitter trt_refitter;
typedef struct trt_refitter_observer trt_refitter_observer;
typedef struct trt_resize_layer trt_resize_layer;
typedef struct trt_reverse_sequence_layer trt_reverse_sequence_layer;
typedef struct trt_rotary_embedding_layer trt_rotary_embedding_layer;
typedef struct trt_runtime trt_runtime;
typedef struct trt_runtime_cache trt_runtime_cache;
typedef struct trt_runtime_config trt_runtime_config;
typedef struct trt_scale_layer trt_scale_layer;
typedef struct trt_scatter_layer trt_scatter_layer;
typedef struct trt_select_layer trt_select_layer;
typedef struct trt_serialization_config trt_serialization_config;
typedef struct trt_shape_layer trt_shape_layer;
typedef struct trt_shuffle_layer trt_shuffle_layer;
typedef struct trt_slice_layer trt_slice_layer;
typedef struct trt_soft_max_layer trt_soft_max_layer;
typedef struct trt_squeeze_layer trt_squeeze_layer;
typedef struct trt_stream_reader_v2 trt_stream_reader_v2;
typedef struct trt_stream_writer trt_stream_writer;
typedef struct trt_tensor trt_tensor;
typedef struct trt_timing_cache trt_timing_cache;
typedef struct trt_topk_layer trt_topk_layer;
typedef struct trt_trip_limit_layer trt_trip_limit_layer;
typedef struct trt_unary_layer trt_unary_layer;
typedef struct trt_unsqueeze_layer trt_unsqueeze_layer;
typedef struct trt_weights_manager trt_weights_manager;

static inline void trt_activation_layer_set_activation_type(const trt_methods *m, trt_activation_layer *self, trt_activation_type type) {
    typedef void (*call)(void *, trt_activation_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_activation_layer_set_activation_type));
    if (f != NULL)
        f(self_, type);
}
static inline trt_activation_type trt_activation_layer_get_activation_type(const trt_methods *m, trt_activation_layer *self) {
    typedef trt_activation_type (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_activation_layer_get_activation_type));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_activation_layer_set_alpha(const trt_methods *m, trt_activation_layer *self, float alpha) {
    typedef void (*call)(void *, float);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_activation_layer_set_alpha));
    if (f != NULL)
        f(self_, alpha);
}
static inline void trt_activation_layer_set_beta(const trt_methods *m, trt_activation_layer *self, float beta) {
    typedef void (*call)(void *, float);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_activation_layer_set_beta));
    if (f != NULL)
        f(self_, beta);
}
static inline float trt_activation_layer_get_alpha(const trt_methods *m, trt_activation_layer *self) {
    typedef float (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_activation_layer_get_alpha));
    return f != NULL ? f(self_) : 0;
}
static inline float trt_activation_layer_get_beta(const trt_methods *m, trt_activation_layer *self) {
    typedef float (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_activation_layer_get_beta));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_assertion_layer_set_message(const trt_methods *m, trt_assertion_layer *self, const char *message) {
    typedef void (*call)(void *, const char *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_assertion_layer_set_message));
    if (f != NULL)
        f(self_, message);
}
static inline const char *trt_assertion_layer_get_message(const trt_methods *m, trt_assertion_layer *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_assertion_layer_get_message));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_attention_set_input(const trt_methods *m, trt_attention *self, int32_t index, trt_tensor *input) {
    typedef bool (*call)(void *, int32_t, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_input));
    return f != NULL ? f(self_, index, input) : 0;
}
static inline int32_t trt_attention_get_nb_inputs(const trt_methods *m, trt_attention *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_nb_inputs));
    return f != NULL ? f(self_) : 0;
}
static inline trt_tensor *trt_attention_get_input(const trt_methods *m, trt_attention *self, int32_t index) {
    typedef trt_tensor *(*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_input));
    return f != NULL ? f(self_, index) : 0;
}
static inline int32_t trt_attention_get_nb_outputs(const trt_methods *m, trt_attention *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_nb_outputs));
    return f != NULL ? f(self_) : 0;
}
static inline trt_tensor *trt_attention_get_output(const trt_methods *m, trt_attention *self, int32_t index) {
    typedef trt_tensor *(*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_output));
    return f != NULL ? f(self_, index) : 0;
}
static inline bool trt_attention_set_name(const trt_methods *m, trt_attention *self, const char *name) {
    typedef bool (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_name));
    return f != NULL ? f(self_, name) : 0;
}
static inline const char *trt_attention_get_name(const trt_methods *m, trt_attention *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_name));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_attention_set_normalization_operation(const trt_methods *m, trt_attention *self, trt_attention_normalization_op op) {
    typedef bool (*call)(void *, trt_attention_normalization_op);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_normalization_operation));
    return f != NULL ? f(self_, op) : 0;
}
static inline trt_attention_normalization_op trt_attention_get_normalization_operation(const trt_methods *m, trt_attention *self) {
    typedef trt_attention_normalization_op (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_normalization_operation));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_attention_set_causal(const trt_methods *m, trt_attention *self, bool is_causal) {
    typedef bool (*call)(void *, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_causal));
    return f != NULL ? f(self_, is_causal) : 0;
}
static inline bool trt_attention_get_causal(const trt_methods *m, trt_attention *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_causal));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_attention_set_mask(const trt_methods *m, trt_attention *self, trt_tensor *mask) {
    typedef bool (*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_mask));
    return f != NULL ? f(self_, mask) : 0;
}
static inline trt_tensor *trt_attention_get_mask(const trt_methods *m, trt_attention *self) {
    typedef trt_tensor *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_mask));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_attention_set_decomposable(const trt_methods *m, trt_attention *self, bool decomposable) {
    typedef bool (*call)(void *, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_decomposable));
    return f != NULL ? f(self_, decomposable) : 0;
}
static inline bool trt_attention_get_decomposable(const trt_methods *m, trt_attention *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_decomposable));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_attention_set_normalization_quantize_scale(const trt_methods *m, trt_attention *self, trt_tensor *tensor) {
    typedef bool (*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_normalization_quantize_scale));
    return f != NULL ? f(self_, tensor) : 0;
}
static inline trt_tensor *trt_attention_get_normalization_quantize_scale(const trt_methods *m, trt_attention *self) {
    typedef trt_tensor *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_normalization_quantize_scale));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_attention_set_normalization_quantize_to_type(const trt_methods *m, trt_attention *self, trt_data_type type) {
    typedef bool (*call)(void *, trt_data_type);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_normalization_quantize_to_type));
    return f != NULL ? f(self_, type) : 0;
}
static inline trt_data_type trt_attention_get_normalization_quantize_to_type(const trt_methods *m, trt_attention *self) {
    typedef trt_data_type (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_normalization_quantize_to_type));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_attention_set_metadata(const trt_methods *m, trt_attention *self, const char *doc_string) {
    typedef bool (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_metadata));
    return f != NULL ? f(self_, doc_string) : 0;
}
static inline const char *trt_attention_get_metadata(const trt_methods *m, trt_attention *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_metadata));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_attention_set_nb_ranks(const trt_methods *m, trt_attention *self, int32_t nb_ranks) {
    typedef bool (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_nb_ranks));
    return f != NULL ? f(self_, nb_ranks) : 0;
}
static inline int32_t trt_attention_get_nb_ranks(const trt_methods *m, trt_attention *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_nb_ranks));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_attention_set_causal_kind(const trt_methods *m, trt_attention *self, trt_causal_mask_kind kind) {
    typedef bool (*call)(void *, trt_causal_mask_kind);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_causal_kind));
    return f != NULL ? f(self_, kind) : 0;
}
static inline trt_causal_mask_kind trt_attention_get_causal_kind(const trt_methods *m, trt_attention *self) {
    typedef trt_causal_mask_kind (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_causal_kind));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_attention_set_query_form(const trt_methods *m, trt_attention *self, trt_attention_io_form form) {
    typedef bool (*call)(void *, trt_attention_io_form);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_query_form));
    return f != NULL ? f(self_, form) : 0;
}
static inline trt_attention_io_form trt_attention_get_query_form(const trt_methods *m, trt_attention *self) {
    typedef trt_attention_io_form (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_query_form));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_attention_set_key_value_form(const trt_methods *m, trt_attention *self, trt_attention_io_form form) {
    typedef bool (*call)(void *, trt_attention_io_form);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_key_value_form));
    return f != NULL ? f(self_, form) : 0;
}
static inline trt_attention_io_form trt_attention_get_key_value_form(const trt_methods *m, trt_attention *self) {
    typedef trt_attention_io_form (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_key_value_form));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_attention_set_query_lengths(const trt_methods *m, trt_attention *self, trt_tensor *lengths) {
    typedef bool (*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_query_lengths));
    return f != NULL ? f(self_, lengths) : 0;
}
static inline trt_tensor *trt_attention_get_query_lengths(const trt_methods *m, trt_attention *self) {
    typedef trt_tensor *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_query_lengths));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_attention_set_key_value_lengths(const trt_methods *m, trt_attention *self, trt_tensor *lengths) {
    typedef bool (*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_set_key_value_lengths));
    return f != NULL ? f(self_, lengths) : 0;
}
static inline trt_tensor *trt_attention_get_key_value_lengths(const trt_methods *m, trt_attention *self) {
    typedef trt_tensor *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_get_key_value_lengths));
    return f != NULL ? f(self_) : 0;
}
static inline trt_attention *trt_attention_boundary_layer_get_attention(const trt_methods *m, trt_attention_boundary_layer *self) {
    typedef trt_attention *(*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_attention_boundary_layer_get_attention));
    return f != NULL ? f(self_) : 0;
}
static inline int32_t trt_builder_get_max_dla_batch_size(const trt_methods *m, trt_builder *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_get_max_dla_batch_size));
    return f != NULL ? f(self_) : 0;
}
static inline int32_t trt_builder_get_nb_dla_cores(const trt_methods *m, trt_builder *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_get_nb_dla_cores));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_builder_set_gpu_allocator(const trt_methods *m, trt_builder *self, trt_gpu_allocator *allocator) {
    typedef void (*call)(void *, trt_gpu_allocator *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_set_gpu_allocator));
    if (f != NULL)
        f(self_, allocator);
}
static inline trt_config *trt_builder_create_builder_config(const trt_methods *m, trt_builder *self) {
    typedef trt_config *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_create_builder_config));
    return f != NULL ? f(self_) : 0;
}
static inline trt_network *trt_builder_create_network_v2(const trt_methods *m, trt_builder *self, uint32_t flags) {
    typedef trt_network *(*call)(void *, uint32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_create_network_v2));
    return f != NULL ? f(self_, flags) : 0;
}
static inline trt_profile *trt_builder_create_optimization_profile(const trt_methods *m, trt_builder *self) {
    typedef trt_profile *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_create_optimization_profile));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_builder_set_error_recorder(const trt_methods *m, trt_builder *self, trt_error_recorder *recorder) {
    typedef void (*call)(void *, trt_error_recorder *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_set_error_recorder));
    if (f != NULL)
        f(self_, recorder);
}
static inline trt_error_recorder *trt_builder_get_error_recorder(const trt_methods *m, trt_builder *self) {
    typedef trt_error_recorder *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_get_error_recorder));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_builder_reset(const trt_methods *m, trt_builder *self) {
    typedef void (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_reset));
    if (f != NULL)
        f(self_);
}
static inline trt_memory *trt_builder_build_serialized_network(const trt_methods *m, trt_builder *self, trt_network *network, trt_config *config) {
    typedef trt_memory *(*call)(void *, trt_network *, trt_config *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_build_serialized_network));
    return f != NULL ? f(self_, network, config) : 0;
}
static inline bool trt_builder_is_network_supported(const trt_methods *m, trt_builder *self, const trt_network *network, const trt_config *config) {
    typedef bool (*call)(void *, const trt_network *, const trt_config *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_is_network_supported));
    return f != NULL ? f(self_, network, config) : 0;
}
static inline trt_logger *trt_builder_get_logger(const trt_methods *m, trt_builder *self) {
    typedef trt_logger *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_get_logger));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_builder_set_max_threads(const trt_methods *m, trt_builder *self, int32_t max_threads) {
    typedef bool (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_set_max_threads));
    return f != NULL ? f(self_, max_threads) : 0;
}
static inline int32_t trt_builder_get_max_threads(const trt_methods *m, trt_builder *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_get_max_threads));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_builder_build_serialized_network_to_stream(const trt_methods *m, trt_builder *self, trt_network *network, trt_config *config, trt_stream_writer *writer) {
    typedef bool (*call)(void *, trt_network *, trt_config *, trt_stream_writer *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_build_serialized_network_to_stream));
    return f != NULL ? f(self_, network, config, writer) : 0;
}
static inline void trt_config_set_avg_timing_iterations(const trt_methods *m, trt_config *self, int32_t avg_timing) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_avg_timing_iterations));
    if (f != NULL)
        f(self_, avg_timing);
}
static inline int32_t trt_config_get_avg_timing_iterations(const trt_methods *m, trt_config *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_avg_timing_iterations));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_config_set_engine_capability(const trt_methods *m, trt_config *self, trt_engine_capability capability) {
    typedef void (*call)(void *, trt_engine_capability);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_engine_capability));
    if (f != NULL)
        f(self_, capability);
}
static inline trt_engine_capability trt_config_get_engine_capability(const trt_methods *m, trt_config *self) {
    typedef trt_engine_capability (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_engine_capability));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_config_set_flags(const trt_methods *m, trt_config *self, uint32_t builder_flags) {
    typedef void (*call)(void *, uint32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_flags));
    if (f != NULL)
        f(self_, builder_flags);
}
static inline uint32_t trt_config_get_flags(const trt_methods *m, trt_config *self) {
    typedef uint32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_flags));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_config_clear_flag(const trt_methods *m, trt_config *self, trt_builder_flag builder_flag) {
    typedef void (*call)(void *, trt_builder_flag);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_clear_flag));
    if (f != NULL)
        f(self_, builder_flag);
}
static inline void trt_config_set_flag(const trt_methods *m, trt_config *self, trt_builder_flag builder_flag) {
    typedef void (*call)(void *, trt_builder_flag);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_flag));
    if (f != NULL)
        f(self_, builder_flag);
}
static inline bool trt_config_get_flag(const trt_methods *m, trt_config *self, trt_builder_flag builder_flag) {
    typedef bool (*call)(void *, trt_builder_flag);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_flag));
    return f != NULL ? f(self_, builder_flag) : 0;
}
static inline void trt_config_set_device_type(const trt_methods *m, trt_config *self, const trt_layer *layer, trt_device_type device_type) {
    typedef void (*call)(void *, const trt_layer *, trt_device_type);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_device_type));
    if (f != NULL)
        f(self_, layer, device_type);
}
static inline trt_device_type trt_config_get_device_type(const trt_methods *m, trt_config *self, const trt_layer *layer) {
    typedef trt_device_type (*call)(void *, const trt_layer *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_device_type));
    return f != NULL ? f(self_, layer) : 0;
}
static inline bool trt_config_is_device_type_set(const trt_methods *m, trt_config *self, const trt_layer *layer) {
    typedef bool (*call)(void *, const trt_layer *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_is_device_type_set));
    return f != NULL ? f(self_, layer) : 0;
}
static inline void trt_config_reset_device_type(const trt_methods *m, trt_config *self, const trt_layer *layer) {
    typedef void (*call)(void *, const trt_layer *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_reset_device_type));
    if (f != NULL)
        f(self_, layer);
}
static inline bool trt_config_can_run_on_dla(const trt_methods *m, trt_config *self, const trt_layer *layer) {
    typedef bool (*call)(void *, const trt_layer *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_can_run_on_dla));
    return f != NULL ? f(self_, layer) : 0;
}
static inline void trt_config_set_dla_core(const trt_methods *m, trt_config *self, int32_t dla_core) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_dla_core));
    if (f != NULL)
        f(self_, dla_core);
}
static inline int32_t trt_config_get_dla_core(const trt_methods *m, trt_config *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_dla_core));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_config_set_default_device_type(const trt_methods *m, trt_config *self, trt_device_type device_type) {
    typedef void (*call)(void *, trt_device_type);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_default_device_type));
    if (f != NULL)
        f(self_, device_type);
}
static inline trt_device_type trt_config_get_default_device_type(const trt_methods *m, trt_config *self) {
    typedef trt_device_type (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_default_device_type));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_config_reset(const trt_methods *m, trt_config *self) {
    typedef void (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_reset));
    if (f != NULL)
        f(self_);
}
static inline void trt_config_set_profile_stream(const trt_methods *m, trt_config *self, trt_stream stream) {
    typedef void (*call)(void *, trt_stream);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_profile_stream));
    if (f != NULL)
        f(self_, stream);
}
static inline trt_stream trt_config_get_profile_stream(const trt_methods *m, trt_config *self) {
    typedef trt_stream (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_profile_stream));
    return f != NULL ? f(self_) : 0;
}
static inline int32_t trt_config_add_optimization_profile(const trt_methods *m, trt_config *self, const trt_profile *profile) {
    typedef int32_t (*call)(void *, const trt_profile *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_add_optimization_profile));
    return f != NULL ? f(self_, profile) : 0;
}
static inline int32_t trt_config_get_nb_optimization_profiles(const trt_methods *m, trt_config *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_nb_optimization_profiles));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_config_set_profiling_verbosity(const trt_methods *m, trt_config *self, trt_profiling_verbosity verbosity) {
    typedef void (*call)(void *, trt_profiling_verbosity);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_profiling_verbosity));
    if (f != NULL)
        f(self_, verbosity);
}
static inline trt_profiling_verbosity trt_config_get_profiling_verbosity(const trt_methods *m, trt_config *self) {
    typedef trt_profiling_verbosity (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_profiling_verbosity));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_config_set_tactic_sources(const trt_methods *m, trt_config *self, uint32_t tactic_sources) {
    typedef bool (*call)(void *, uint32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_tactic_sources));
    return f != NULL ? f(self_, tactic_sources) : 0;
}
static inline uint32_t trt_config_get_tactic_sources(const trt_methods *m, trt_config *self) {
    typedef uint32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_tactic_sources));
    return f != NULL ? f(self_) : 0;
}
static inline trt_timing_cache *trt_config_create_timing_cache(const trt_methods *m, trt_config *self, const void *blob, size_t size) {
    typedef trt_timing_cache *(*call)(void *, const void *, size_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_create_timing_cache));
    return f != NULL ? f(self_, blob, size) : 0;
}
static inline bool trt_config_set_timing_cache(const trt_methods *m, trt_config *self, const trt_timing_cache *cache, bool ignore_mismatch) {
    typedef bool (*call)(void *, const trt_timing_cache *, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_timing_cache));
    return f != NULL ? f(self_, cache, ignore_mismatch) : 0;
}
static inline const trt_timing_cache *trt_config_get_timing_cache(const trt_methods *m, trt_config *self) {
    typedef const trt_timing_cache *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_timing_cache));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_config_set_memory_pool_limit(const trt_methods *m, trt_config *self, trt_memory_pool_type pool, size_t pool_size) {
    typedef void (*call)(void *, trt_memory_pool_type, size_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_memory_pool_limit));
    if (f != NULL)
        f(self_, pool, pool_size);
}
static inline size_t trt_config_get_memory_pool_limit(const trt_methods *m, trt_config *self, trt_memory_pool_type pool) {
    typedef size_t (*call)(void *, trt_memory_pool_type);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_memory_pool_limit));
    return f != NULL ? f(self_, pool) : 0;
}
static inline void trt_config_set_preview_feature(const trt_methods *m, trt_config *self, trt_preview_feature feature, bool enable) {
    typedef void (*call)(void *, trt_preview_feature, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_preview_feature));
    if (f != NULL)
        f(self_, feature, enable);
}
static inline bool trt_config_get_preview_feature(const trt_methods *m, trt_config *self, trt_preview_feature feature) {
    typedef bool (*call)(void *, trt_preview_feature);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_preview_feature));
    return f != NULL ? f(self_, feature) : 0;
}
static inline void trt_config_set_builder_optimization_level(const trt_methods *m, trt_config *self, int32_t level) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_builder_optimization_level));
    if (f != NULL)
        f(self_, level);
}
static inline int32_t trt_config_get_builder_optimization_level(const trt_methods *m, trt_config *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_builder_optimization_level));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_config_set_hardware_compatibility_level(const trt_methods *m, trt_config *self, trt_hardware_compatibility_level hardware_compatibility_level) {
    typedef void (*call)(void *, trt_hardware_compatibility_level);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_hardware_compatibility_level));
    if (f != NULL)
        f(self_, hardware_compatibility_level);
}
static inline trt_hardware_compatibility_level trt_config_get_hardware_compatibility_level(const trt_methods *m, trt_config *self) {
    typedef trt_hardware_compatibility_level (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_hardware_compatibility_level));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_config_set_plugins_to_serialize(const trt_methods *m, trt_config *self, const char *const *paths, int32_t nb_paths) {
    typedef void (*call)(void *, const char *const *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_plugins_to_serialize));
    if (f != NULL)
        f(self_, paths, nb_paths);
}
static inline const char *trt_config_get_plugin_to_serialize(const trt_methods *m, trt_config *self, int32_t index) {
    typedef const char *(*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_plugin_to_serialize));
    return f != NULL ? f(self_, index) : 0;
}
static inline int32_t trt_config_get_nb_plugins_to_serialize(const trt_methods *m, trt_config *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_nb_plugins_to_serialize));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_config_set_max_aux_streams(const trt_methods *m, trt_config *self, int32_t nb_streams) {
    typedef bool (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_max_aux_streams));
    return f != NULL ? f(self_, nb_streams) : 0;
}
static inline int32_t trt_config_get_max_aux_streams(const trt_methods *m, trt_config *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_max_aux_streams));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_config_set_progress_monitor(const trt_methods *m, trt_config *self, trt_progress_monitor *monitor) {
    typedef void (*call)(void *, trt_progress_monitor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_progress_monitor));
    if (f != NULL)
        f(self_, monitor);
}
static inline trt_progress_monitor *trt_config_get_progress_monitor(const trt_methods *m, trt_config *self) {
    typedef trt_progress_monitor *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_progress_monitor));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_config_set_runtime_platform(const trt_methods *m, trt_config *self, trt_runtime_platform runtime_platform) {
    typedef void (*call)(void *, trt_runtime_platform);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_runtime_platform));
    if (f != NULL)
        f(self_, runtime_platform);
}
static inline trt_runtime_platform trt_config_get_runtime_platform(const trt_methods *m, trt_config *self) {
    typedef trt_runtime_platform (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_runtime_platform));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_config_set_max_nb_tactics(const trt_methods *m, trt_config *self, int32_t max_tactics) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_max_nb_tactics));
    if (f != NULL)
        f(self_, max_tactics);
}
static inline int32_t trt_config_get_max_nb_tactics(const trt_methods *m, trt_config *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_max_nb_tactics));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_config_set_tiling_optimization_level(const trt_methods *m, trt_config *self, trt_tiling_optimization_level level) {
    typedef bool (*call)(void *, trt_tiling_optimization_level);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_tiling_optimization_level));
    return f != NULL ? f(self_, level) : 0;
}
static inline trt_tiling_optimization_level trt_config_get_tiling_optimization_level(const trt_methods *m, trt_config *self) {
    typedef trt_tiling_optimization_level (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_tiling_optimization_level));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_config_set_l2_limit_for_tiling(const trt_methods *m, trt_config *self, int64_t size) {
    typedef bool (*call)(void *, int64_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_l2_limit_for_tiling));
    return f != NULL ? f(self_, size) : 0;
}
static inline int64_t trt_config_get_l2_limit_for_tiling(const trt_methods *m, trt_config *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_l2_limit_for_tiling));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_config_set_nb_compute_capabilities(const trt_methods *m, trt_config *self, int32_t max_nb_compute_capabilities) {
    typedef bool (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_nb_compute_capabilities));
    return f != NULL ? f(self_, max_nb_compute_capabilities) : 0;
}
static inline int32_t trt_config_get_nb_compute_capabilities(const trt_methods *m, trt_config *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_nb_compute_capabilities));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_config_set_compute_capability(const trt_methods *m, trt_config *self, trt_compute_capability compute_capability, int32_t index) {
    typedef bool (*call)(void *, trt_compute_capability, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_compute_capability));
    return f != NULL ? f(self_, compute_capability, index) : 0;
}
static inline trt_compute_capability trt_config_get_compute_capability(const trt_methods *m, trt_config *self, int32_t index) {
    typedef trt_compute_capability (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_compute_capability));
    return f != NULL ? f(self_, index) : 0;
}
static inline bool trt_config_set_build_route(const trt_methods *m, trt_config *self, const char *build_route) {
    typedef bool (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_build_route));
    return f != NULL ? f(self_, build_route) : 0;
}
static inline const char *trt_config_get_build_route(const trt_methods *m, trt_config *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_build_route));
    return f != NULL ? f(self_) : 0;
}
static inline const char *trt_config_get_all_build_routes(const trt_methods *m, trt_config *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_all_build_routes));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_cast_layer_set_to_type(const trt_methods *m, trt_cast_layer *self, trt_data_type to_type) {
    typedef void (*call)(void *, trt_data_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_cast_layer_set_to_type));
    if (f != NULL)
        f(self_, to_type);
}
static inline trt_data_type trt_cast_layer_get_to_type(const trt_methods *m, trt_cast_layer *self) {
    typedef trt_data_type (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_cast_layer_get_to_type));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_concatenation_layer_set_axis(const trt_methods *m, trt_concatenation_layer *self, int32_t axis) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_concatenation_layer_set_axis));
    if (f != NULL)
        f(self_, axis);
}
static inline int32_t trt_concatenation_layer_get_axis(const trt_methods *m, trt_concatenation_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_concatenation_layer_get_axis));
    return f != NULL ? f(self_) : 0;
}
static inline trt_if_conditional *trt_if_conditional_boundary_layer_get_conditional(const trt_methods *m, trt_if_conditional_boundary_layer *self) {
    typedef trt_if_conditional *(*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_if_conditional_boundary_layer_get_conditional));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_constant_layer_set_weights(const trt_methods *m, trt_constant_layer *self, trt_weights weights) {
    typedef void (*call)(void *, trt_weights);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_constant_layer_set_weights));
    if (f != NULL)
        f(self_, weights);
}
static inline trt_weights trt_constant_layer_get_weights(const trt_methods *m, trt_constant_layer *self) {
    typedef trt_weights (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_constant_layer_get_weights));
    return f != NULL ? f(self_) : (trt_weights){0};
}
static inline void trt_constant_layer_set_dimensions(const trt_methods *m, trt_constant_layer *self, const trt_dims *dimensions) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_constant_layer_set_dimensions));
    if (f != NULL)
        f(self_, dimensions);
}
static inline trt_dims trt_constant_layer_get_dimensions(const trt_methods *m, trt_constant_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_constant_layer_get_dimensions));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_convolution_layer_set_nb_output_maps(const trt_methods *m, trt_convolution_layer *self, int64_t nb_output_maps) {
    typedef void (*call)(void *, int64_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_set_nb_output_maps));
    if (f != NULL)
        f(self_, nb_output_maps);
}
static inline int64_t trt_convolution_layer_get_nb_output_maps(const trt_methods *m, trt_convolution_layer *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_get_nb_output_maps));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_convolution_layer_set_nb_groups(const trt_methods *m, trt_convolution_layer *self, int64_t nb_groups) {
    typedef void (*call)(void *, int64_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_set_nb_groups));
    if (f != NULL)
        f(self_, nb_groups);
}
static inline int64_t trt_convolution_layer_get_nb_groups(const trt_methods *m, trt_convolution_layer *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_get_nb_groups));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_convolution_layer_set_kernel_weights(const trt_methods *m, trt_convolution_layer *self, trt_weights weights) {
    typedef void (*call)(void *, trt_weights);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_set_kernel_weights));
    if (f != NULL)
        f(self_, weights);
}
static inline trt_weights trt_convolution_layer_get_kernel_weights(const trt_methods *m, trt_convolution_layer *self) {
    typedef trt_weights (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_get_kernel_weights));
    return f != NULL ? f(self_) : (trt_weights){0};
}
static inline void trt_convolution_layer_set_bias_weights(const trt_methods *m, trt_convolution_layer *self, trt_weights weights) {
    typedef void (*call)(void *, trt_weights);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_set_bias_weights));
    if (f != NULL)
        f(self_, weights);
}
static inline trt_weights trt_convolution_layer_get_bias_weights(const trt_methods *m, trt_convolution_layer *self) {
    typedef trt_weights (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_get_bias_weights));
    return f != NULL ? f(self_) : (trt_weights){0};
}
static inline void trt_convolution_layer_set_pre_padding(const trt_methods *m, trt_convolution_layer *self, const trt_dims *padding) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_set_pre_padding));
    if (f != NULL)
        f(self_, padding);
}
static inline trt_dims trt_convolution_layer_get_pre_padding(const trt_methods *m, trt_convolution_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_get_pre_padding));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_convolution_layer_set_post_padding(const trt_methods *m, trt_convolution_layer *self, const trt_dims *padding) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_set_post_padding));
    if (f != NULL)
        f(self_, padding);
}
static inline trt_dims trt_convolution_layer_get_post_padding(const trt_methods *m, trt_convolution_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_get_post_padding));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_convolution_layer_set_padding_mode(const trt_methods *m, trt_convolution_layer *self, trt_padding_mode padding_mode) {
    typedef void (*call)(void *, trt_padding_mode);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_set_padding_mode));
    if (f != NULL)
        f(self_, padding_mode);
}
static inline trt_padding_mode trt_convolution_layer_get_padding_mode(const trt_methods *m, trt_convolution_layer *self) {
    typedef trt_padding_mode (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_get_padding_mode));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_convolution_layer_set_kernel_size_nd(const trt_methods *m, trt_convolution_layer *self, const trt_dims *kernel_size) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_set_kernel_size_nd));
    if (f != NULL)
        f(self_, kernel_size);
}
static inline trt_dims trt_convolution_layer_get_kernel_size_nd(const trt_methods *m, trt_convolution_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_get_kernel_size_nd));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_convolution_layer_set_stride_nd(const trt_methods *m, trt_convolution_layer *self, const trt_dims *stride) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_set_stride_nd));
    if (f != NULL)
        f(self_, stride);
}
static inline trt_dims trt_convolution_layer_get_stride_nd(const trt_methods *m, trt_convolution_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_get_stride_nd));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_convolution_layer_set_padding_nd(const trt_methods *m, trt_convolution_layer *self, const trt_dims *padding) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_set_padding_nd));
    if (f != NULL)
        f(self_, padding);
}
static inline trt_dims trt_convolution_layer_get_padding_nd(const trt_methods *m, trt_convolution_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_get_padding_nd));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_convolution_layer_set_dilation_nd(const trt_methods *m, trt_convolution_layer *self, const trt_dims *dilation) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_set_dilation_nd));
    if (f != NULL)
        f(self_, dilation);
}
static inline trt_dims trt_convolution_layer_get_dilation_nd(const trt_methods *m, trt_convolution_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_convolution_layer_get_dilation_nd));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline int32_t trt_engine_get_nb_layers(const trt_methods *m, trt_engine *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_nb_layers));
    return f != NULL ? f(self_) : 0;
}
static inline trt_memory *trt_engine_serialize(const trt_methods *m, trt_engine *self) {
    typedef trt_memory *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_serialize));
    return f != NULL ? f(self_) : 0;
}
static inline trt_context *trt_engine_create_execution_context(const trt_methods *m, trt_engine *self, trt_execution_context_allocation_strategy strategy) {
    typedef trt_context *(*call)(void *, trt_execution_context_allocation_strategy);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_create_execution_context));
    return f != NULL ? f(self_, strategy) : 0;
}
static inline bool trt_engine_is_refittable(const trt_methods *m, trt_engine *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_is_refittable));
    return f != NULL ? f(self_) : 0;
}
static inline const char *trt_engine_get_name(const trt_methods *m, trt_engine *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_name));
    return f != NULL ? f(self_) : 0;
}
static inline int32_t trt_engine_get_nb_optimization_profiles(const trt_methods *m, trt_engine *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_nb_optimization_profiles));
    return f != NULL ? f(self_) : 0;
}
static inline trt_engine_capability trt_engine_get_engine_capability(const trt_methods *m, trt_engine *self) {
    typedef trt_engine_capability (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_engine_capability));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_engine_set_error_recorder(const trt_methods *m, trt_engine *self, trt_error_recorder *recorder) {
    typedef void (*call)(void *, trt_error_recorder *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_set_error_recorder));
    if (f != NULL)
        f(self_, recorder);
}
static inline trt_error_recorder *trt_engine_get_error_recorder(const trt_methods *m, trt_engine *self) {
    typedef trt_error_recorder *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_error_recorder));
    return f != NULL ? f(self_) : 0;
}
static inline uint32_t trt_engine_get_tactic_sources(const trt_methods *m, trt_engine *self) {
    typedef uint32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tactic_sources));
    return f != NULL ? f(self_) : 0;
}
static inline trt_profiling_verbosity trt_engine_get_profiling_verbosity(const trt_methods *m, trt_engine *self) {
    typedef trt_profiling_verbosity (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_profiling_verbosity));
    return f != NULL ? f(self_) : 0;
}
static inline trt_inspector *trt_engine_create_engine_inspector(const trt_methods *m, trt_engine *self) {
    typedef trt_inspector *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_create_engine_inspector));
    return f != NULL ? f(self_) : 0;
}
static inline trt_dims trt_engine_get_tensor_shape(const trt_methods *m, trt_engine *self, const char *tensor_name) {
    typedef trt_dims (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tensor_shape));
    return f != NULL ? f(self_, tensor_name) : (trt_dims){0};
}
static inline trt_data_type trt_engine_get_tensor_data_type(const trt_methods *m, trt_engine *self, const char *tensor_name) {
    typedef trt_data_type (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tensor_data_type));
    return f != NULL ? f(self_, tensor_name) : 0;
}
static inline trt_tensor_location trt_engine_get_tensor_location(const trt_methods *m, trt_engine *self, const char *tensor_name) {
    typedef trt_tensor_location (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tensor_location));
    return f != NULL ? f(self_, tensor_name) : 0;
}
static inline bool trt_engine_is_shape_inference_io(const trt_methods *m, trt_engine *self, const char *tensor_name) {
    typedef bool (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_is_shape_inference_io));
    return f != NULL ? f(self_, tensor_name) : 0;
}
static inline trt_tensor_io_mode trt_engine_get_tensor_io_mode(const trt_methods *m, trt_engine *self, const char *tensor_name) {
    typedef trt_tensor_io_mode (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tensor_io_mode));
    return f != NULL ? f(self_, tensor_name) : 0;
}
static inline int32_t trt_engine_get_tensor_bytes_per_component(const trt_methods *m, trt_engine *self, const char *tensor_name) {
    typedef int32_t (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tensor_bytes_per_component));
    return f != NULL ? f(self_, tensor_name) : 0;
}
static inline int32_t trt_engine_get_tensor_components_per_element(const trt_methods *m, trt_engine *self, const char *tensor_name) {
    typedef int32_t (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tensor_components_per_element));
    return f != NULL ? f(self_, tensor_name) : 0;
}
static inline trt_tensor_format trt_engine_get_tensor_format(const trt_methods *m, trt_engine *self, const char *tensor_name) {
    typedef trt_tensor_format (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tensor_format));
    return f != NULL ? f(self_, tensor_name) : 0;
}
static inline const char *trt_engine_get_tensor_format_desc(const trt_methods *m, trt_engine *self, const char *tensor_name) {
    typedef const char *(*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tensor_format_desc));
    return f != NULL ? f(self_, tensor_name) : 0;
}
static inline int32_t trt_engine_get_tensor_vectorized_dim(const trt_methods *m, trt_engine *self, const char *tensor_name) {
    typedef int32_t (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tensor_vectorized_dim));
    return f != NULL ? f(self_, tensor_name) : 0;
}
static inline trt_dims trt_engine_get_profile_shape(const trt_methods *m, trt_engine *self, const char *tensor_name, int32_t profile_index, trt_opt_profile_selector select) {
    typedef trt_dims (*call)(void *, const char *, int32_t, trt_opt_profile_selector);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_profile_shape));
    return f != NULL ? f(self_, tensor_name, profile_index, select) : (trt_dims){0};
}
static inline int32_t trt_engine_get_nb_io_tensors(const trt_methods *m, trt_engine *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_nb_io_tensors));
    return f != NULL ? f(self_) : 0;
}
static inline const char *trt_engine_get_io_tensor_name(const trt_methods *m, trt_engine *self, int32_t index) {
    typedef const char *(*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_io_tensor_name));
    return f != NULL ? f(self_, index) : 0;
}
static inline trt_hardware_compatibility_level trt_engine_get_hardware_compatibility_level(const trt_methods *m, trt_engine *self) {
    typedef trt_hardware_compatibility_level (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_hardware_compatibility_level));
    return f != NULL ? f(self_) : 0;
}
static inline int32_t trt_engine_get_nb_aux_streams(const trt_methods *m, trt_engine *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_nb_aux_streams));
    return f != NULL ? f(self_) : 0;
}
static inline int32_t trt_engine_get_tensor_bytes_per_component_v2(const trt_methods *m, trt_engine *self, const char *tensor_name, int32_t profile_index) {
    typedef int32_t (*call)(void *, const char *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tensor_bytes_per_component_v2));
    return f != NULL ? f(self_, tensor_name, profile_index) : 0;
}
static inline int32_t trt_engine_get_tensor_components_per_element_v2(const trt_methods *m, trt_engine *self, const char *tensor_name, int32_t profile_index) {
    typedef int32_t (*call)(void *, const char *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tensor_components_per_element_v2));
    return f != NULL ? f(self_, tensor_name, profile_index) : 0;
}
static inline trt_tensor_format trt_engine_get_tensor_format_v2(const trt_methods *m, trt_engine *self, const char *tensor_name, int32_t profile_index) {
    typedef trt_tensor_format (*call)(void *, const char *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tensor_format_v2));
    return f != NULL ? f(self_, tensor_name, profile_index) : 0;
}
static inline const char *trt_engine_get_tensor_format_desc_v2(const trt_methods *m, trt_engine *self, const char *tensor_name, int32_t profile_index) {
    typedef const char *(*call)(void *, const char *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tensor_format_desc_v2));
    return f != NULL ? f(self_, tensor_name, profile_index) : 0;
}
static inline int32_t trt_engine_get_tensor_vectorized_dim_v2(const trt_methods *m, trt_engine *self, const char *tensor_name, int32_t profile_index) {
    typedef int32_t (*call)(void *, const char *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_tensor_vectorized_dim_v2));
    return f != NULL ? f(self_, tensor_name, profile_index) : 0;
}
static inline trt_serialization_config *trt_engine_create_serialization_config(const trt_methods *m, trt_engine *self) {
    typedef trt_serialization_config *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_create_serialization_config));
    return f != NULL ? f(self_) : 0;
}
static inline trt_memory *trt_engine_serialize_with_config(const trt_methods *m, trt_engine *self, trt_serialization_config *config) {
    typedef trt_memory *(*call)(void *, trt_serialization_config *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_serialize_with_config));
    return f != NULL ? f(self_, config) : 0;
}
static inline trt_refitter *trt_engine_create_refitter(const trt_methods *m, trt_engine *self, trt_logger *logger) {
    typedef trt_refitter *(*call)(void *, trt_logger *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_create_refitter));
    return f != NULL ? f(self_, logger) : 0;
}
static inline int64_t trt_engine_get_streamable_weights_size(const trt_methods *m, trt_engine *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_streamable_weights_size));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_engine_is_debug_tensor(const trt_methods *m, trt_engine *self, const char *name) {
    typedef bool (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_is_debug_tensor));
    return f != NULL ? f(self_, name) : 0;
}
static inline bool trt_engine_set_weight_streaming_budget_v2(const trt_methods *m, trt_engine *self, int64_t gpu_memory_budget) {
    typedef bool (*call)(void *, int64_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_set_weight_streaming_budget_v2));
    return f != NULL ? f(self_, gpu_memory_budget) : 0;
}
static inline int64_t trt_engine_get_weight_streaming_budget_v2(const trt_methods *m, trt_engine *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_weight_streaming_budget_v2));
    return f != NULL ? f(self_) : 0;
}
static inline int64_t trt_engine_get_weight_streaming_automatic_budget(const trt_methods *m, trt_engine *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_weight_streaming_automatic_budget));
    return f != NULL ? f(self_) : 0;
}
static inline int64_t trt_engine_get_weight_streaming_scratch_memory_size(const trt_methods *m, trt_engine *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_weight_streaming_scratch_memory_size));
    return f != NULL ? f(self_) : 0;
}
static inline int64_t trt_engine_get_device_memory_size_v2(const trt_methods *m, trt_engine *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_device_memory_size_v2));
    return f != NULL ? f(self_) : 0;
}
static inline int64_t trt_engine_get_device_memory_size_for_profile_v2(const trt_methods *m, trt_engine *self, int32_t profile_index) {
    typedef int64_t (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_device_memory_size_for_profile_v2));
    return f != NULL ? f(self_, profile_index) : 0;
}
static inline const int64_t *trt_engine_get_profile_tensor_values_v2(const trt_methods *m, trt_engine *self, const char *tensor_name, int32_t profile_index, trt_opt_profile_selector select) {
    typedef const int64_t *(*call)(void *, const char *, int32_t, trt_opt_profile_selector);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_profile_tensor_values_v2));
    return f != NULL ? f(self_, tensor_name, profile_index, select) : 0;
}
static inline trt_context *trt_engine_create_execution_context_with_runtime_config(const trt_methods *m, trt_engine *self, trt_runtime_config *runtime_config) {
    typedef trt_context *(*call)(void *, trt_runtime_config *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_create_execution_context_with_runtime_config));
    return f != NULL ? f(self_, runtime_config) : 0;
}
static inline trt_runtime_config *trt_engine_create_runtime_config(const trt_methods *m, trt_engine *self) {
    typedef trt_runtime_config *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_create_runtime_config));
    return f != NULL ? f(self_) : 0;
}
static inline int64_t trt_engine_get_engine_stat(const trt_methods *m, trt_engine *self, trt_engine_stat stat) {
    typedef int64_t (*call)(void *, trt_engine_stat);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_engine_stat));
    return f != NULL ? f(self_, stat) : 0;
}
static inline const char *trt_engine_get_aliased_input_tensor(const trt_methods *m, trt_engine *self, const char *tensor_name) {
    typedef const char *(*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_get_aliased_input_tensor));
    return f != NULL ? f(self_, tensor_name) : 0;
}
static inline bool trt_engine_are_weights_loaded(const trt_methods *m, trt_engine *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_are_weights_loaded));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_engine_load_weights(const trt_methods *m, trt_engine *self, const void *blob, int64_t size) {
    typedef bool (*call)(void *, const void *, int64_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_load_weights));
    return f != NULL ? f(self_, blob, size) : 0;
}
static inline bool trt_engine_load_weights_async(const trt_methods *m, trt_engine *self, trt_stream_reader_v2 *stream_reader, trt_stream stream) {
    typedef bool (*call)(void *, trt_stream_reader_v2 *, trt_stream);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_load_weights_async));
    return f != NULL ? f(self_, stream_reader, stream) : 0;
}
static inline bool trt_engine_unload_weights(const trt_methods *m, trt_engine *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_unload_weights));
    return f != NULL ? f(self_) : 0;
}
static inline trt_weights_manager *trt_engine_create_weights_manager(const trt_methods *m, trt_engine *self) {
    typedef trt_weights_manager *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_engine_create_weights_manager));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_cumulative_layer_set_operation(const trt_methods *m, trt_cumulative_layer *self, trt_cumulative_operation op) {
    typedef bool (*call)(void *, trt_cumulative_operation);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_cumulative_layer_set_operation));
    return f != NULL ? f(self_, op) : 0;
}
static inline trt_cumulative_operation trt_cumulative_layer_get_operation(const trt_methods *m, trt_cumulative_layer *self) {
    typedef trt_cumulative_operation (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_cumulative_layer_get_operation));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_cumulative_layer_set_exclusive(const trt_methods *m, trt_cumulative_layer *self, bool exclusive) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_cumulative_layer_set_exclusive));
    if (f != NULL)
        f(self_, exclusive);
}
static inline bool trt_cumulative_layer_get_exclusive(const trt_methods *m, trt_cumulative_layer *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_cumulative_layer_get_exclusive));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_cumulative_layer_set_reverse(const trt_methods *m, trt_cumulative_layer *self, bool reverse) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_cumulative_layer_set_reverse));
    if (f != NULL)
        f(self_, reverse);
}
static inline bool trt_cumulative_layer_get_reverse(const trt_methods *m, trt_cumulative_layer *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_cumulative_layer_get_reverse));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_deconvolution_layer_set_nb_output_maps(const trt_methods *m, trt_deconvolution_layer *self, int64_t nb_output_maps) {
    typedef void (*call)(void *, int64_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_set_nb_output_maps));
    if (f != NULL)
        f(self_, nb_output_maps);
}
static inline int64_t trt_deconvolution_layer_get_nb_output_maps(const trt_methods *m, trt_deconvolution_layer *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_get_nb_output_maps));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_deconvolution_layer_set_nb_groups(const trt_methods *m, trt_deconvolution_layer *self, int64_t nb_groups) {
    typedef void (*call)(void *, int64_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_set_nb_groups));
    if (f != NULL)
        f(self_, nb_groups);
}
static inline int64_t trt_deconvolution_layer_get_nb_groups(const trt_methods *m, trt_deconvolution_layer *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_get_nb_groups));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_deconvolution_layer_set_kernel_weights(const trt_methods *m, trt_deconvolution_layer *self, trt_weights weights) {
    typedef void (*call)(void *, trt_weights);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_set_kernel_weights));
    if (f != NULL)
        f(self_, weights);
}
static inline trt_weights trt_deconvolution_layer_get_kernel_weights(const trt_methods *m, trt_deconvolution_layer *self) {
    typedef trt_weights (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_get_kernel_weights));
    return f != NULL ? f(self_) : (trt_weights){0};
}
static inline void trt_deconvolution_layer_set_bias_weights(const trt_methods *m, trt_deconvolution_layer *self, trt_weights weights) {
    typedef void (*call)(void *, trt_weights);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_set_bias_weights));
    if (f != NULL)
        f(self_, weights);
}
static inline trt_weights trt_deconvolution_layer_get_bias_weights(const trt_methods *m, trt_deconvolution_layer *self) {
    typedef trt_weights (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_get_bias_weights));
    return f != NULL ? f(self_) : (trt_weights){0};
}
static inline void trt_deconvolution_layer_set_pre_padding(const trt_methods *m, trt_deconvolution_layer *self, const trt_dims *padding) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_set_pre_padding));
    if (f != NULL)
        f(self_, padding);
}
static inline trt_dims trt_deconvolution_layer_get_pre_padding(const trt_methods *m, trt_deconvolution_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_get_pre_padding));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_deconvolution_layer_set_post_padding(const trt_methods *m, trt_deconvolution_layer *self, const trt_dims *padding) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_set_post_padding));
    if (f != NULL)
        f(self_, padding);
}
static inline trt_dims trt_deconvolution_layer_get_post_padding(const trt_methods *m, trt_deconvolution_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_get_post_padding));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_deconvolution_layer_set_padding_mode(const trt_methods *m, trt_deconvolution_layer *self, trt_padding_mode padding_mode) {
    typedef void (*call)(void *, trt_padding_mode);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_set_padding_mode));
    if (f != NULL)
        f(self_, padding_mode);
}
static inline trt_padding_mode trt_deconvolution_layer_get_padding_mode(const trt_methods *m, trt_deconvolution_layer *self) {
    typedef trt_padding_mode (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_get_padding_mode));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_deconvolution_layer_set_kernel_size_nd(const trt_methods *m, trt_deconvolution_layer *self, const trt_dims *kernel_size) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_set_kernel_size_nd));
    if (f != NULL)
        f(self_, kernel_size);
}
static inline trt_dims trt_deconvolution_layer_get_kernel_size_nd(const trt_methods *m, trt_deconvolution_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_get_kernel_size_nd));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_deconvolution_layer_set_stride_nd(const trt_methods *m, trt_deconvolution_layer *self, const trt_dims *stride) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_set_stride_nd));
    if (f != NULL)
        f(self_, stride);
}
static inline trt_dims trt_deconvolution_layer_get_stride_nd(const trt_methods *m, trt_deconvolution_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_get_stride_nd));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_deconvolution_layer_set_padding_nd(const trt_methods *m, trt_deconvolution_layer *self, const trt_dims *padding) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_set_padding_nd));
    if (f != NULL)
        f(self_, padding);
}
static inline trt_dims trt_deconvolution_layer_get_padding_nd(const trt_methods *m, trt_deconvolution_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_get_padding_nd));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_deconvolution_layer_set_dilation_nd(const trt_methods *m, trt_deconvolution_layer *self, const trt_dims *dilation) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_set_dilation_nd));
    if (f != NULL)
        f(self_, dilation);
}
static inline trt_dims trt_deconvolution_layer_get_dilation_nd(const trt_methods *m, trt_deconvolution_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_deconvolution_layer_get_dilation_nd));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline int32_t trt_dequantize_layer_get_axis(const trt_methods *m, trt_dequantize_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dequantize_layer_get_axis));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_dequantize_layer_set_axis(const trt_methods *m, trt_dequantize_layer *self, int32_t axis) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dequantize_layer_set_axis));
    if (f != NULL)
        f(self_, axis);
}
static inline trt_data_type trt_dequantize_layer_get_to_type(const trt_methods *m, trt_dequantize_layer *self) {
    typedef trt_data_type (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dequantize_layer_get_to_type));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_dequantize_layer_set_to_type(const trt_methods *m, trt_dequantize_layer *self, trt_data_type to_type) {
    typedef void (*call)(void *, trt_data_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dequantize_layer_set_to_type));
    if (f != NULL)
        f(self_, to_type);
}
static inline trt_dims trt_dequantize_layer_get_block_shape(const trt_methods *m, trt_dequantize_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dequantize_layer_get_block_shape));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline bool trt_dequantize_layer_set_block_shape(const trt_methods *m, trt_dequantize_layer *self, const trt_dims *block_shape) {
    typedef bool (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dequantize_layer_set_block_shape));
    return f != NULL ? f(self_, block_shape) : 0;
}
static inline int32_t trt_dynamic_quantize_layer_get_axis(const trt_methods *m, trt_dynamic_quantize_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dynamic_quantize_layer_get_axis));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_dynamic_quantize_layer_set_axis(const trt_methods *m, trt_dynamic_quantize_layer *self, int32_t axis) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dynamic_quantize_layer_set_axis));
    if (f != NULL)
        f(self_, axis);
}
static inline int32_t trt_dynamic_quantize_layer_get_block_size(const trt_methods *m, trt_dynamic_quantize_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dynamic_quantize_layer_get_block_size));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_dynamic_quantize_layer_set_block_size(const trt_methods *m, trt_dynamic_quantize_layer *self, int32_t axis) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dynamic_quantize_layer_set_block_size));
    if (f != NULL)
        f(self_, axis);
}
static inline trt_data_type trt_dynamic_quantize_layer_get_scale_type(const trt_methods *m, trt_dynamic_quantize_layer *self) {
    typedef trt_data_type (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dynamic_quantize_layer_get_scale_type));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_dynamic_quantize_layer_set_scale_type(const trt_methods *m, trt_dynamic_quantize_layer *self, trt_data_type axis) {
    typedef void (*call)(void *, trt_data_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dynamic_quantize_layer_set_scale_type));
    if (f != NULL)
        f(self_, axis);
}
static inline trt_data_type trt_dynamic_quantize_layer_get_to_type(const trt_methods *m, trt_dynamic_quantize_layer *self) {
    typedef trt_data_type (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dynamic_quantize_layer_get_to_type));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_dynamic_quantize_layer_set_to_type(const trt_methods *m, trt_dynamic_quantize_layer *self, trt_data_type to_type) {
    typedef void (*call)(void *, trt_data_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dynamic_quantize_layer_set_to_type));
    if (f != NULL)
        f(self_, to_type);
}
static inline trt_dims trt_dynamic_quantize_layer_get_block_shape(const trt_methods *m, trt_dynamic_quantize_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dynamic_quantize_layer_get_block_shape));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_dynamic_quantize_layer_set_block_shape(const trt_methods *m, trt_dynamic_quantize_layer *self, const trt_dims *block_shape) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_dynamic_quantize_layer_set_block_shape));
    if (f != NULL)
        f(self_, block_shape);
}
static inline bool trt_einsum_layer_set_equation(const trt_methods *m, trt_einsum_layer *self, const char *equation) {
    typedef bool (*call)(void *, const char *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_einsum_layer_set_equation));
    return f != NULL ? f(self_, equation) : 0;
}
static inline const char *trt_einsum_layer_get_equation(const trt_methods *m, trt_einsum_layer *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_einsum_layer_get_equation));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_element_wise_layer_set_operation(const trt_methods *m, trt_element_wise_layer *self, trt_element_wise_operation op) {
    typedef void (*call)(void *, trt_element_wise_operation);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_element_wise_layer_set_operation));
    if (f != NULL)
        f(self_, op);
}
static inline trt_element_wise_operation trt_element_wise_layer_get_operation(const trt_methods *m, trt_element_wise_layer *self) {
    typedef trt_element_wise_operation (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_element_wise_layer_get_operation));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_inspector_set_execution_context(const trt_methods *m, trt_inspector *self, const trt_context *context) {
    typedef bool (*call)(void *, const trt_context *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_inspector_set_execution_context));
    return f != NULL ? f(self_, context) : 0;
}
static inline const trt_context *trt_inspector_get_execution_context(const trt_methods *m, trt_inspector *self) {
    typedef const trt_context *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_inspector_get_execution_context));
    return f != NULL ? f(self_) : 0;
}
static inline const char *trt_inspector_get_layer_information(const trt_methods *m, trt_inspector *self, int32_t layer_index, trt_layer_information_format format) {
    typedef const char *(*call)(void *, int32_t, trt_layer_information_format);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_inspector_get_layer_information));
    return f != NULL ? f(self_, layer_index, format) : 0;
}
static inline const char *trt_inspector_get_engine_information(const trt_methods *m, trt_inspector *self, trt_layer_information_format format) {
    typedef const char *(*call)(void *, trt_layer_information_format);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_inspector_get_engine_information));
    return f != NULL ? f(self_, format) : 0;
}
static inline void trt_inspector_set_error_recorder(const trt_methods *m, trt_inspector *self, trt_error_recorder *recorder) {
    typedef void (*call)(void *, trt_error_recorder *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_inspector_set_error_recorder));
    if (f != NULL)
        f(self_, recorder);
}
static inline trt_error_recorder *trt_inspector_get_error_recorder(const trt_methods *m, trt_inspector *self) {
    typedef trt_error_recorder *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_inspector_get_error_recorder));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_context_set_debug_sync(const trt_methods *m, trt_context *self, bool sync) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_debug_sync));
    if (f != NULL)
        f(self_, sync);
}
static inline bool trt_context_get_debug_sync(const trt_methods *m, trt_context *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_debug_sync));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_context_set_profiler(const trt_methods *m, trt_context *self, trt_profiler *p0) {
    typedef void (*call)(void *, trt_profiler *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_profiler));
    if (f != NULL)
        f(self_, p0);
}
static inline trt_profiler *trt_context_get_profiler(const trt_methods *m, trt_context *self) {
    typedef trt_profiler *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_profiler));
    return f != NULL ? f(self_) : 0;
}
static inline const trt_engine *trt_context_get_engine(const trt_methods *m, trt_context *self) {
    typedef const trt_engine *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_engine));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_context_set_name(const trt_methods *m, trt_context *self, const char *name) {
    typedef void (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_name));
    if (f != NULL)
        f(self_, name);
}
static inline const char *trt_context_get_name(const trt_methods *m, trt_context *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_name));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_context_set_device_memory(const trt_methods *m, trt_context *self, void *memory) {
    typedef void (*call)(void *, void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_device_memory));
    if (f != NULL)
        f(self_, memory);
}
static inline int32_t trt_context_get_optimization_profile(const trt_methods *m, trt_context *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_optimization_profile));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_context_all_input_dimensions_specified(const trt_methods *m, trt_context *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_all_input_dimensions_specified));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_context_set_error_recorder(const trt_methods *m, trt_context *self, trt_error_recorder *recorder) {
    typedef void (*call)(void *, trt_error_recorder *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_error_recorder));
    if (f != NULL)
        f(self_, recorder);
}
static inline trt_error_recorder *trt_context_get_error_recorder(const trt_methods *m, trt_context *self) {
    typedef trt_error_recorder *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_error_recorder));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_context_execute_v2(const trt_methods *m, trt_context *self, void *const *bindings) {
    typedef bool (*call)(void *, void *const *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_execute_v2));
    return f != NULL ? f(self_, bindings) : 0;
}
static inline bool trt_context_set_optimization_profile_async(const trt_methods *m, trt_context *self, int32_t profile_index, trt_stream stream) {
    typedef bool (*call)(void *, int32_t, trt_stream);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_optimization_profile_async));
    return f != NULL ? f(self_, profile_index, stream) : 0;
}
static inline void trt_context_set_enqueue_emits_profile(const trt_methods *m, trt_context *self, bool enqueue_emits_profile) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_enqueue_emits_profile));
    if (f != NULL)
        f(self_, enqueue_emits_profile);
}
static inline bool trt_context_get_enqueue_emits_profile(const trt_methods *m, trt_context *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_enqueue_emits_profile));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_context_report_to_profiler(const trt_methods *m, trt_context *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_report_to_profiler));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_context_set_input_shape(const trt_methods *m, trt_context *self, const char *tensor_name, const trt_dims *dims) {
    typedef bool (*call)(void *, const char *, const trt_dims *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_input_shape));
    return f != NULL ? f(self_, tensor_name, dims) : 0;
}
static inline trt_dims trt_context_get_tensor_shape(const trt_methods *m, trt_context *self, const char *tensor_name) {
    typedef trt_dims (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_tensor_shape));
    return f != NULL ? f(self_, tensor_name) : (trt_dims){0};
}
static inline trt_dims trt_context_get_tensor_strides(const trt_methods *m, trt_context *self, const char *tensor_name) {
    typedef trt_dims (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_tensor_strides));
    return f != NULL ? f(self_, tensor_name) : (trt_dims){0};
}
static inline bool trt_context_set_tensor_address(const trt_methods *m, trt_context *self, const char *tensor_name, void *data) {
    typedef bool (*call)(void *, const char *, void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_tensor_address));
    return f != NULL ? f(self_, tensor_name, data) : 0;
}
static inline const void *trt_context_get_tensor_address(const trt_methods *m, trt_context *self, const char *tensor_name) {
    typedef const void *(*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_tensor_address));
    return f != NULL ? f(self_, tensor_name) : 0;
}
static inline bool trt_context_set_input_tensor_address(const trt_methods *m, trt_context *self, const char *tensor_name, const void *data) {
    typedef bool (*call)(void *, const char *, const void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_input_tensor_address));
    return f != NULL ? f(self_, tensor_name, data) : 0;
}
static inline bool trt_context_set_output_tensor_address(const trt_methods *m, trt_context *self, const char *tensor_name, void *data) {
    typedef bool (*call)(void *, const char *, void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_output_tensor_address));
    return f != NULL ? f(self_, tensor_name, data) : 0;
}
static inline int32_t trt_context_infer_shapes(const trt_methods *m, trt_context *self, int32_t nb_max_names, const char **tensor_names) {
    typedef int32_t (*call)(void *, int32_t, const char **);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_infer_shapes));
    return f != NULL ? f(self_, nb_max_names, tensor_names) : 0;
}
static inline bool trt_context_set_input_consumed_event(const trt_methods *m, trt_context *self, trt_event event) {
    typedef bool (*call)(void *, trt_event);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_input_consumed_event));
    return f != NULL ? f(self_, event) : 0;
}
static inline trt_event trt_context_get_input_consumed_event(const trt_methods *m, trt_context *self) {
    typedef trt_event (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_input_consumed_event));
    return f != NULL ? f(self_) : 0;
}
static inline void *trt_context_get_output_tensor_address(const trt_methods *m, trt_context *self, const char *tensor_name) {
    typedef void *(*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_output_tensor_address));
    return f != NULL ? f(self_, tensor_name) : 0;
}
static inline bool trt_context_set_output_allocator(const trt_methods *m, trt_context *self, const char *tensor_name, trt_output_allocator *output_allocator) {
    typedef bool (*call)(void *, const char *, trt_output_allocator *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_output_allocator));
    return f != NULL ? f(self_, tensor_name, output_allocator) : 0;
}
static inline trt_output_allocator *trt_context_get_output_allocator(const trt_methods *m, trt_context *self, const char *name) {
    typedef trt_output_allocator *(*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_output_allocator));
    return f != NULL ? f(self_, name) : 0;
}
static inline int64_t trt_context_get_max_output_size(const trt_methods *m, trt_context *self, const char *tensor_name) {
    typedef int64_t (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_max_output_size));
    return f != NULL ? f(self_, tensor_name) : 0;
}
static inline bool trt_context_set_temporary_storage_allocator(const trt_methods *m, trt_context *self, trt_gpu_allocator *allocator) {
    typedef bool (*call)(void *, trt_gpu_allocator *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_temporary_storage_allocator));
    return f != NULL ? f(self_, allocator) : 0;
}
static inline trt_gpu_allocator *trt_context_get_temporary_storage_allocator(const trt_methods *m, trt_context *self) {
    typedef trt_gpu_allocator *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_temporary_storage_allocator));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_context_enqueue_v3(const trt_methods *m, trt_context *self, trt_stream stream) {
    typedef bool (*call)(void *, trt_stream);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_enqueue_v3));
    return f != NULL ? f(self_, stream) : 0;
}
static inline void trt_context_set_persistent_cache_limit(const trt_methods *m, trt_context *self, size_t size) {
    typedef void (*call)(void *, size_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_persistent_cache_limit));
    if (f != NULL)
        f(self_, size);
}
static inline size_t trt_context_get_persistent_cache_limit(const trt_methods *m, trt_context *self) {
    typedef size_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_persistent_cache_limit));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_context_set_nvtx_verbosity(const trt_methods *m, trt_context *self, trt_profiling_verbosity verbosity) {
    typedef bool (*call)(void *, trt_profiling_verbosity);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_nvtx_verbosity));
    return f != NULL ? f(self_, verbosity) : 0;
}
static inline trt_profiling_verbosity trt_context_get_nvtx_verbosity(const trt_methods *m, trt_context *self) {
    typedef trt_profiling_verbosity (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_nvtx_verbosity));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_context_set_aux_streams(const trt_methods *m, trt_context *self, trt_stream *aux_streams, int32_t nb_streams) {
    typedef void (*call)(void *, trt_stream *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_aux_streams));
    if (f != NULL)
        f(self_, aux_streams, nb_streams);
}
static inline bool trt_context_set_debug_listener(const trt_methods *m, trt_context *self, trt_debug_listener *listener) {
    typedef bool (*call)(void *, trt_debug_listener *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_debug_listener));
    return f != NULL ? f(self_, listener) : 0;
}
static inline trt_debug_listener *trt_context_get_debug_listener(const trt_methods *m, trt_context *self) {
    typedef trt_debug_listener *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_debug_listener));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_context_set_tensor_debug_state(const trt_methods *m, trt_context *self, const char *name, bool flag) {
    typedef bool (*call)(void *, const char *, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_tensor_debug_state));
    return f != NULL ? f(self_, name, flag) : 0;
}
static inline bool trt_context_get_debug_state(const trt_methods *m, trt_context *self, const char *name) {
    typedef bool (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_debug_state));
    return f != NULL ? f(self_, name) : 0;
}
static inline bool trt_context_set_all_tensors_debug_state(const trt_methods *m, trt_context *self, bool flag) {
    typedef bool (*call)(void *, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_all_tensors_debug_state));
    return f != NULL ? f(self_, flag) : 0;
}
static inline size_t trt_context_update_device_memory_size_for_shapes(const trt_methods *m, trt_context *self) {
    typedef size_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_update_device_memory_size_for_shapes));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_context_set_device_memory_v2(const trt_methods *m, trt_context *self, void *memory, int64_t size) {
    typedef void (*call)(void *, void *, int64_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_device_memory_v2));
    if (f != NULL)
        f(self_, memory, size);
}
static inline trt_runtime_config *trt_context_get_runtime_config(const trt_methods *m, trt_context *self) {
    typedef trt_runtime_config *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_runtime_config));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_context_set_unfused_tensors_debug_state(const trt_methods *m, trt_context *self, bool flag) {
    typedef bool (*call)(void *, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_unfused_tensors_debug_state));
    return f != NULL ? f(self_, flag) : 0;
}
static inline bool trt_context_get_unfused_tensors_debug_state(const trt_methods *m, trt_context *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_get_unfused_tensors_debug_state));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_context_is_stream_capturable(const trt_methods *m, trt_context *self, trt_stream stream) {
    typedef bool (*call)(void *, trt_stream);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_is_stream_capturable));
    return f != NULL ? f(self_, stream) : 0;
}
static inline bool trt_context_set_communicator(const trt_methods *m, trt_context *self, void *communicator) {
    typedef bool (*call)(void *, void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_context_set_communicator));
    return f != NULL ? f(self_, communicator) : 0;
}
static inline void trt_fill_layer_set_dimensions(const trt_methods *m, trt_fill_layer *self, const trt_dims *dimensions) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_set_dimensions));
    if (f != NULL)
        f(self_, dimensions);
}
static inline trt_dims trt_fill_layer_get_dimensions(const trt_methods *m, trt_fill_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_get_dimensions));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_fill_layer_set_operation(const trt_methods *m, trt_fill_layer *self, trt_fill_operation op) {
    typedef void (*call)(void *, trt_fill_operation);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_set_operation));
    if (f != NULL)
        f(self_, op);
}
static inline trt_fill_operation trt_fill_layer_get_operation(const trt_methods *m, trt_fill_layer *self) {
    typedef trt_fill_operation (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_get_operation));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_fill_layer_set_alpha(const trt_methods *m, trt_fill_layer *self, double alpha) {
    typedef void (*call)(void *, double);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_set_alpha));
    if (f != NULL)
        f(self_, alpha);
}
static inline double trt_fill_layer_get_alpha(const trt_methods *m, trt_fill_layer *self) {
    typedef double (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_get_alpha));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_fill_layer_set_beta(const trt_methods *m, trt_fill_layer *self, double beta) {
    typedef void (*call)(void *, double);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_set_beta));
    if (f != NULL)
        f(self_, beta);
}
static inline double trt_fill_layer_get_beta(const trt_methods *m, trt_fill_layer *self) {
    typedef double (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_get_beta));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_fill_layer_set_alpha_int64(const trt_methods *m, trt_fill_layer *self, int64_t alpha) {
    typedef void (*call)(void *, int64_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_set_alpha_int64));
    if (f != NULL)
        f(self_, alpha);
}
static inline int64_t trt_fill_layer_get_alpha_int64(const trt_methods *m, trt_fill_layer *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_get_alpha_int64));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_fill_layer_set_beta_int64(const trt_methods *m, trt_fill_layer *self, int64_t beta) {
    typedef void (*call)(void *, int64_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_set_beta_int64));
    if (f != NULL)
        f(self_, beta);
}
static inline int64_t trt_fill_layer_get_beta_int64(const trt_methods *m, trt_fill_layer *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_get_beta_int64));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_fill_layer_is_alpha_beta_int64(const trt_methods *m, trt_fill_layer *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_is_alpha_beta_int64));
    return f != NULL ? f(self_) : 0;
}
static inline trt_data_type trt_fill_layer_get_to_type(const trt_methods *m, trt_fill_layer *self) {
    typedef trt_data_type (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_get_to_type));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_fill_layer_set_to_type(const trt_methods *m, trt_fill_layer *self, trt_data_type to_type) {
    typedef void (*call)(void *, trt_data_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_fill_layer_set_to_type));
    if (f != NULL)
        f(self_, to_type);
}
static inline void trt_gather_layer_set_gather_axis(const trt_methods *m, trt_gather_layer *self, int32_t axis) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_gather_layer_set_gather_axis));
    if (f != NULL)
        f(self_, axis);
}
static inline int32_t trt_gather_layer_get_gather_axis(const trt_methods *m, trt_gather_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_gather_layer_get_gather_axis));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_gather_layer_set_nb_element_wise_dims(const trt_methods *m, trt_gather_layer *self, int32_t k) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_gather_layer_set_nb_element_wise_dims));
    if (f != NULL)
        f(self_, k);
}
static inline int32_t trt_gather_layer_get_nb_element_wise_dims(const trt_methods *m, trt_gather_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_gather_layer_get_nb_element_wise_dims));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_gather_layer_set_mode(const trt_methods *m, trt_gather_layer *self, trt_gather_mode mode) {
    typedef void (*call)(void *, trt_gather_mode);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_gather_layer_set_mode));
    if (f != NULL)
        f(self_, mode);
}
static inline trt_gather_mode trt_gather_layer_get_mode(const trt_methods *m, trt_gather_layer *self) {
    typedef trt_gather_mode (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_gather_layer_get_mode));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_grid_sample_layer_set_interpolation_mode(const trt_methods *m, trt_grid_sample_layer *self, trt_interpolation_mode mode) {
    typedef void (*call)(void *, trt_interpolation_mode);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_grid_sample_layer_set_interpolation_mode));
    if (f != NULL)
        f(self_, mode);
}
static inline trt_interpolation_mode trt_grid_sample_layer_get_interpolation_mode(const trt_methods *m, trt_grid_sample_layer *self) {
    typedef trt_interpolation_mode (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_grid_sample_layer_get_interpolation_mode));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_grid_sample_layer_set_align_corners(const trt_methods *m, trt_grid_sample_layer *self, bool align_corners) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_grid_sample_layer_set_align_corners));
    if (f != NULL)
        f(self_, align_corners);
}
static inline bool trt_grid_sample_layer_get_align_corners(const trt_methods *m, trt_grid_sample_layer *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_grid_sample_layer_get_align_corners));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_grid_sample_layer_set_sample_mode(const trt_methods *m, trt_grid_sample_layer *self, trt_sample_mode mode) {
    typedef bool (*call)(void *, trt_sample_mode);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_grid_sample_layer_set_sample_mode));
    return f != NULL ? f(self_, mode) : 0;
}
static inline trt_sample_mode trt_grid_sample_layer_get_sample_mode(const trt_methods *m, trt_grid_sample_layer *self) {
    typedef trt_sample_mode (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_grid_sample_layer_get_sample_mode));
    return f != NULL ? f(self_) : 0;
}
static inline void *trt_memory_data(const trt_methods *m, trt_memory *self) {
    typedef void *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_memory_data));
    return f != NULL ? f(self_) : 0;
}
static inline size_t trt_memory_size(const trt_methods *m, trt_memory *self) {
    typedef size_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_memory_size));
    return f != NULL ? f(self_) : 0;
}
static inline trt_data_type trt_memory_type(const trt_methods *m, trt_memory *self) {
    typedef trt_data_type (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_memory_type));
    return f != NULL ? f(self_) : 0;
}
static inline trt_condition_layer *trt_if_conditional_set_condition(const trt_methods *m, trt_if_conditional *self, trt_tensor *tensor) {
    typedef trt_condition_layer *(*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_if_conditional_set_condition));
    return f != NULL ? f(self_, tensor) : 0;
}
static inline trt_if_conditional_input_layer *trt_if_conditional_add_input(const trt_methods *m, trt_if_conditional *self, trt_tensor *tensor) {
    typedef trt_if_conditional_input_layer *(*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_if_conditional_add_input));
    return f != NULL ? f(self_, tensor) : 0;
}
static inline trt_if_conditional_output_layer *trt_if_conditional_add_output(const trt_methods *m, trt_if_conditional *self, trt_tensor *true_tensor, trt_tensor *false_tensor) {
    typedef trt_if_conditional_output_layer *(*call)(void *, trt_tensor *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_if_conditional_add_output));
    return f != NULL ? f(self_, true_tensor, false_tensor) : 0;
}
static inline void trt_if_conditional_set_name(const trt_methods *m, trt_if_conditional *self, const char *name) {
    typedef void (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_if_conditional_set_name));
    if (f != NULL)
        f(self_, name);
}
static inline const char *trt_if_conditional_get_name(const trt_methods *m, trt_if_conditional *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_if_conditional_get_name));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_iterator_layer_set_axis(const trt_methods *m, trt_iterator_layer *self, int32_t axis) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 24);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_iterator_layer_set_axis));
    if (f != NULL)
        f(self_, axis);
}
static inline int32_t trt_iterator_layer_get_axis(const trt_methods *m, trt_iterator_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 24);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_iterator_layer_get_axis));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_iterator_layer_set_reverse(const trt_methods *m, trt_iterator_layer *self, bool reverse) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 24);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_iterator_layer_set_reverse));
    if (f != NULL)
        f(self_, reverse);
}
static inline bool trt_iterator_layer_get_reverse(const trt_methods *m, trt_iterator_layer *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 24);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_iterator_layer_get_reverse));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_kvcache_update_layer_set_cache_mode(const trt_methods *m, trt_kvcache_update_layer *self, trt_kvcache_mode cache_mode) {
    typedef bool (*call)(void *, trt_kvcache_mode);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_kvcache_update_layer_set_cache_mode));
    return f != NULL ? f(self_, cache_mode) : 0;
}
static inline trt_kvcache_mode trt_kvcache_update_layer_get_cache_mode(const trt_methods *m, trt_kvcache_update_layer *self) {
    typedef trt_kvcache_mode (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_kvcache_update_layer_get_cache_mode));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_kvcache_update_layer_set_update_form(const trt_methods *m, trt_kvcache_update_layer *self, trt_attention_io_form form) {
    typedef bool (*call)(void *, trt_attention_io_form);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_kvcache_update_layer_set_update_form));
    return f != NULL ? f(self_, form) : 0;
}
static inline trt_attention_io_form trt_kvcache_update_layer_get_update_form(const trt_methods *m, trt_kvcache_update_layer *self) {
    typedef trt_attention_io_form (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_kvcache_update_layer_get_update_form));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_kvcache_update_layer_set_update_lengths(const trt_methods *m, trt_kvcache_update_layer *self, trt_tensor *lengths) {
    typedef bool (*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_kvcache_update_layer_set_update_lengths));
    return f != NULL ? f(self_, lengths) : 0;
}
static inline trt_tensor *trt_kvcache_update_layer_get_update_lengths(const trt_methods *m, trt_kvcache_update_layer *self) {
    typedef trt_tensor *(*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_kvcache_update_layer_get_update_lengths));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_lrn_layer_set_window_size(const trt_methods *m, trt_lrn_layer *self, int64_t window_size) {
    typedef void (*call)(void *, int64_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_lrn_layer_set_window_size));
    if (f != NULL)
        f(self_, window_size);
}
static inline int64_t trt_lrn_layer_get_window_size(const trt_methods *m, trt_lrn_layer *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_lrn_layer_get_window_size));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_lrn_layer_set_alpha(const trt_methods *m, trt_lrn_layer *self, float alpha) {
    typedef void (*call)(void *, float);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_lrn_layer_set_alpha));
    if (f != NULL)
        f(self_, alpha);
}
static inline float trt_lrn_layer_get_alpha(const trt_methods *m, trt_lrn_layer *self) {
    typedef float (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_lrn_layer_get_alpha));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_lrn_layer_set_beta(const trt_methods *m, trt_lrn_layer *self, float beta) {
    typedef void (*call)(void *, float);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_lrn_layer_set_beta));
    if (f != NULL)
        f(self_, beta);
}
static inline float trt_lrn_layer_get_beta(const trt_methods *m, trt_lrn_layer *self) {
    typedef float (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_lrn_layer_get_beta));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_lrn_layer_set_k(const trt_methods *m, trt_lrn_layer *self, float k) {
    typedef void (*call)(void *, float);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_lrn_layer_set_k));
    if (f != NULL)
        f(self_, k);
}
static inline float trt_lrn_layer_get_k(const trt_methods *m, trt_lrn_layer *self) {
    typedef float (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_lrn_layer_get_k));
    return f != NULL ? f(self_) : 0;
}
static inline trt_layer_type trt_layer_get_type(const trt_methods *m, trt_layer *self) {
    typedef trt_layer_type (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_layer_get_type));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_layer_set_name(const trt_methods *m, trt_layer *self, const char *name) {
    typedef void (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_layer_set_name));
    if (f != NULL)
        f(self_, name);
}
static inline const char *trt_layer_get_name(const trt_methods *m, trt_layer *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_layer_get_name));
    return f != NULL ? f(self_) : 0;
}
static inline int32_t trt_layer_get_nb_inputs(const trt_methods *m, trt_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_layer_get_nb_inputs));
    return f != NULL ? f(self_) : 0;
}
static inline trt_tensor *trt_layer_get_input(const trt_methods *m, trt_layer *self, int32_t index) {
    typedef trt_tensor *(*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_layer_get_input));
    return f != NULL ? f(self_, index) : 0;
}
static inline int32_t trt_layer_get_nb_outputs(const trt_methods *m, trt_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_layer_get_nb_outputs));
    return f != NULL ? f(self_) : 0;
}
static inline trt_tensor *trt_layer_get_output(const trt_methods *m, trt_layer *self, int32_t index) {
    typedef trt_tensor *(*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_layer_get_output));
    return f != NULL ? f(self_, index) : 0;
}
static inline void trt_layer_set_input(const trt_methods *m, trt_layer *self, int32_t index, trt_tensor *tensor) {
    typedef void (*call)(void *, int32_t, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_layer_set_input));
    if (f != NULL)
        f(self_, index, tensor);
}
static inline trt_data_type trt_layer_get_output_type(const trt_methods *m, trt_layer *self, int32_t index) {
    typedef trt_data_type (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_layer_get_output_type));
    return f != NULL ? f(self_, index) : 0;
}
static inline void trt_layer_set_metadata(const trt_methods *m, trt_layer *self, const char *doc_string) {
    typedef void (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_layer_set_metadata));
    if (f != NULL)
        f(self_, doc_string);
}
static inline const char *trt_layer_get_metadata(const trt_methods *m, trt_layer *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_layer_get_metadata));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_layer_set_nb_ranks(const trt_methods *m, trt_layer *self, int32_t nb_ranks) {
    typedef bool (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_layer_set_nb_ranks));
    return f != NULL ? f(self_, nb_ranks) : 0;
}
static inline int32_t trt_layer_get_nb_ranks(const trt_methods *m, trt_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_layer_get_nb_ranks));
    return f != NULL ? f(self_) : 0;
}
static inline trt_recurrence_layer *trt_loop_add_recurrence(const trt_methods *m, trt_loop *self, trt_tensor *initial_value) {
    typedef trt_recurrence_layer *(*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_loop_add_recurrence));
    return f != NULL ? f(self_, initial_value) : 0;
}
static inline trt_trip_limit_layer *trt_loop_add_trip_limit(const trt_methods *m, trt_loop *self, trt_tensor *tensor, trt_trip_limit limit) {
    typedef trt_trip_limit_layer *(*call)(void *, trt_tensor *, trt_trip_limit);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_loop_add_trip_limit));
    return f != NULL ? f(self_, tensor, limit) : 0;
}
static inline trt_iterator_layer *trt_loop_add_iterator(const trt_methods *m, trt_loop *self, trt_tensor *tensor, int32_t axis, bool reverse) {
    typedef trt_iterator_layer *(*call)(void *, trt_tensor *, int32_t, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_loop_add_iterator));
    return f != NULL ? f(self_, tensor, axis, reverse) : 0;
}
static inline trt_loop_output_layer *trt_loop_add_loop_output(const trt_methods *m, trt_loop *self, trt_tensor *tensor, trt_loop_output output_kind, int32_t axis) {
    typedef trt_loop_output_layer *(*call)(void *, trt_tensor *, trt_loop_output, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_loop_add_loop_output));
    return f != NULL ? f(self_, tensor, output_kind, axis) : 0;
}
static inline void trt_loop_set_name(const trt_methods *m, trt_loop *self, const char *name) {
    typedef void (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_loop_set_name));
    if (f != NULL)
        f(self_, name);
}
static inline const char *trt_loop_get_name(const trt_methods *m, trt_loop *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_loop_get_name));
    return f != NULL ? f(self_) : 0;
}
static inline trt_loop *trt_loop_boundary_layer_get_loop(const trt_methods *m, trt_loop_boundary_layer *self) {
    typedef trt_loop *(*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_loop_boundary_layer_get_loop));
    return f != NULL ? f(self_) : 0;
}
static inline trt_loop_output trt_loop_output_layer_get_loop_output(const trt_methods *m, trt_loop_output_layer *self) {
    typedef trt_loop_output (*call)(void *);
    void *self_ = trt_self(self, 24);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_loop_output_layer_get_loop_output));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_loop_output_layer_set_axis(const trt_methods *m, trt_loop_output_layer *self, int32_t axis) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 24);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_loop_output_layer_set_axis));
    if (f != NULL)
        f(self_, axis);
}
static inline int32_t trt_loop_output_layer_get_axis(const trt_methods *m, trt_loop_output_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 24);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_loop_output_layer_get_axis));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_matrix_multiply_layer_set_operation(const trt_methods *m, trt_matrix_multiply_layer *self, int32_t index, trt_matrix_operation op) {
    typedef void (*call)(void *, int32_t, trt_matrix_operation);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_matrix_multiply_layer_set_operation));
    if (f != NULL)
        f(self_, index, op);
}
static inline trt_matrix_operation trt_matrix_multiply_layer_get_operation(const trt_methods *m, trt_matrix_multiply_layer *self, int32_t index) {
    typedef trt_matrix_operation (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_matrix_multiply_layer_get_operation));
    return f != NULL ? f(self_, index) : 0;
}
static inline void trt_moe_layer_set_gated_weights(const trt_methods *m, trt_moe_layer *self, trt_tensor *fc_gate_weights, trt_tensor *fc_up_weights, trt_tensor *fc_down_weights, trt_moe_act_type activation_type) {
    typedef void (*call)(void *, trt_tensor *, trt_tensor *, trt_tensor *, trt_moe_act_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_set_gated_weights));
    if (f != NULL)
        f(self_, fc_gate_weights, fc_up_weights, fc_down_weights, activation_type);
}
static inline void trt_moe_layer_set_gated_biases(const trt_methods *m, trt_moe_layer *self, trt_tensor *fc_gate_biases, trt_tensor *fc_up_biases, trt_tensor *fc_down_biases) {
    typedef void (*call)(void *, trt_tensor *, trt_tensor *, trt_tensor *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_set_gated_biases));
    if (f != NULL)
        f(self_, fc_gate_biases, fc_up_biases, fc_down_biases);
}
static inline void trt_moe_layer_set_activation_type(const trt_methods *m, trt_moe_layer *self, trt_moe_act_type activation_type) {
    typedef void (*call)(void *, trt_moe_act_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_set_activation_type));
    if (f != NULL)
        f(self_, activation_type);
}
static inline trt_moe_act_type trt_moe_layer_get_activation_type(const trt_methods *m, trt_moe_layer *self) {
    typedef trt_moe_act_type (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_get_activation_type));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_moe_layer_set_quantization_static(const trt_methods *m, trt_moe_layer *self, trt_tensor *fc_down_activation_scale, trt_data_type data_type) {
    typedef void (*call)(void *, trt_tensor *, trt_data_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_set_quantization_static));
    if (f != NULL)
        f(self_, fc_down_activation_scale, data_type);
}
static inline void trt_moe_layer_set_quantization_dynamic_dbl_q(const trt_methods *m, trt_moe_layer *self, trt_tensor *fc_down_activation_dbl_q_scale, trt_data_type data_type, const trt_dims *block_shape, trt_data_type dyn_q_output_scale_type) {
    typedef void (*call)(void *, trt_tensor *, trt_data_type, const trt_dims *, trt_data_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_set_quantization_dynamic_dbl_q));
    if (f != NULL)
        f(self_, fc_down_activation_dbl_q_scale, data_type, block_shape, dyn_q_output_scale_type);
}
static inline void trt_moe_layer_set_quantization_to_type(const trt_methods *m, trt_moe_layer *self, trt_data_type type) {
    typedef void (*call)(void *, trt_data_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_set_quantization_to_type));
    if (f != NULL)
        f(self_, type);
}
static inline trt_data_type trt_moe_layer_get_quantization_to_type(const trt_methods *m, trt_moe_layer *self) {
    typedef trt_data_type (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_get_quantization_to_type));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_moe_layer_set_quantization_block_shape(const trt_methods *m, trt_moe_layer *self, const trt_dims *block_shape) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_set_quantization_block_shape));
    if (f != NULL)
        f(self_, block_shape);
}
static inline trt_dims trt_moe_layer_get_quantization_block_shape(const trt_methods *m, trt_moe_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_get_quantization_block_shape));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_moe_layer_set_dyn_q_output_scale_type(const trt_methods *m, trt_moe_layer *self, trt_data_type type) {
    typedef void (*call)(void *, trt_data_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_set_dyn_q_output_scale_type));
    if (f != NULL)
        f(self_, type);
}
static inline trt_data_type trt_moe_layer_get_dyn_q_output_scale_type(const trt_methods *m, trt_moe_layer *self) {
    typedef trt_data_type (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_get_dyn_q_output_scale_type));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_moe_layer_set_swiglu_params(const trt_methods *m, trt_moe_layer *self, float limit, float alpha, float beta) {
    typedef void (*call)(void *, float, float, float);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_set_swiglu_params));
    if (f != NULL)
        f(self_, limit, alpha, beta);
}
static inline void trt_moe_layer_set_swiglu_param_limit(const trt_methods *m, trt_moe_layer *self, float limit) {
    typedef void (*call)(void *, float);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_set_swiglu_param_limit));
    if (f != NULL)
        f(self_, limit);
}
static inline float trt_moe_layer_get_swiglu_param_limit(const trt_methods *m, trt_moe_layer *self) {
    typedef float (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_get_swiglu_param_limit));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_moe_layer_set_swiglu_param_alpha(const trt_methods *m, trt_moe_layer *self, float alpha) {
    typedef void (*call)(void *, float);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_set_swiglu_param_alpha));
    if (f != NULL)
        f(self_, alpha);
}
static inline float trt_moe_layer_get_swiglu_param_alpha(const trt_methods *m, trt_moe_layer *self) {
    typedef float (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_get_swiglu_param_alpha));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_moe_layer_set_swiglu_param_beta(const trt_methods *m, trt_moe_layer *self, float beta) {
    typedef void (*call)(void *, float);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_set_swiglu_param_beta));
    if (f != NULL)
        f(self_, beta);
}
static inline float trt_moe_layer_get_swiglu_param_beta(const trt_methods *m, trt_moe_layer *self) {
    typedef float (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_get_swiglu_param_beta));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_moe_layer_set_input(const trt_methods *m, trt_moe_layer *self, int32_t index, trt_tensor *tensor) {
    typedef void (*call)(void *, int32_t, trt_tensor *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_moe_layer_set_input));
    if (f != NULL)
        f(self_, index, tensor);
}
static inline void trt_nms_layer_set_bounding_box_format(const trt_methods *m, trt_nms_layer *self, trt_bounding_box_format fmt) {
    typedef void (*call)(void *, trt_bounding_box_format);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_nms_layer_set_bounding_box_format));
    if (f != NULL)
        f(self_, fmt);
}
static inline trt_bounding_box_format trt_nms_layer_get_bounding_box_format(const trt_methods *m, trt_nms_layer *self) {
    typedef trt_bounding_box_format (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_nms_layer_get_bounding_box_format));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_nms_layer_set_topk_box_limit(const trt_methods *m, trt_nms_layer *self, int32_t limit) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_nms_layer_set_topk_box_limit));
    if (f != NULL)
        f(self_, limit);
}
static inline int32_t trt_nms_layer_get_topk_box_limit(const trt_methods *m, trt_nms_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_nms_layer_get_topk_box_limit));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_nms_layer_set_indices_type(const trt_methods *m, trt_nms_layer *self, trt_data_type type) {
    typedef bool (*call)(void *, trt_data_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_nms_layer_set_indices_type));
    return f != NULL ? f(self_, type) : 0;
}
static inline trt_data_type trt_nms_layer_get_indices_type(const trt_methods *m, trt_nms_layer *self) {
    typedef trt_data_type (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_nms_layer_get_indices_type));
    return f != NULL ? f(self_) : 0;
}
static inline trt_tensor *trt_network_add_input(const trt_methods *m, trt_network *self, const char *name, trt_data_type type, const trt_dims *dimensions) {
    typedef trt_tensor *(*call)(void *, const char *, trt_data_type, const trt_dims *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_input));
    return f != NULL ? f(self_, name, type, dimensions) : 0;
}
static inline void trt_network_mark_output(const trt_methods *m, trt_network *self, trt_tensor *tensor) {
    typedef void (*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_mark_output));
    if (f != NULL)
        f(self_, tensor);
}
static inline trt_activation_layer *trt_network_add_activation(const trt_methods *m, trt_network *self, trt_tensor *input, trt_activation_type type) {
    typedef trt_activation_layer *(*call)(void *, trt_tensor *, trt_activation_type);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_activation));
    return f != NULL ? f(self_, input, type) : 0;
}
static inline trt_lrn_layer *trt_network_add_lrn(const trt_methods *m, trt_network *self, trt_tensor *input, int64_t window, float alpha, float beta, float k) {
    typedef trt_lrn_layer *(*call)(void *, trt_tensor *, int64_t, float, float, float);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_lrn));
    return f != NULL ? f(self_, input, window, alpha, beta, k) : 0;
}
static inline trt_scale_layer *trt_network_add_scale(const trt_methods *m, trt_network *self, trt_tensor *input, trt_scale_mode mode, trt_weights shift, trt_weights scale, trt_weights power) {
    typedef trt_scale_layer *(*call)(void *, trt_tensor *, trt_scale_mode, trt_weights, trt_weights, trt_weights);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_scale));
    return f != NULL ? f(self_, input, mode, shift, scale, power) : 0;
}
static inline trt_soft_max_layer *trt_network_add_soft_max(const trt_methods *m, trt_network *self, trt_tensor *input) {
    typedef trt_soft_max_layer *(*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_soft_max));
    return f != NULL ? f(self_, input) : 0;
}
static inline trt_concatenation_layer *trt_network_add_concatenation(const trt_methods *m, trt_network *self, trt_tensor *const *inputs, int32_t nb_inputs) {
    typedef trt_concatenation_layer *(*call)(void *, trt_tensor *const *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_concatenation));
    return f != NULL ? f(self_, inputs, nb_inputs) : 0;
}
static inline trt_element_wise_layer *trt_network_add_element_wise(const trt_methods *m, trt_network *self, trt_tensor *input1, trt_tensor *input2, trt_element_wise_operation op) {
    typedef trt_element_wise_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_element_wise_operation);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_element_wise));
    return f != NULL ? f(self_, input1, input2, op) : 0;
}
static inline trt_unary_layer *trt_network_add_unary(const trt_methods *m, trt_network *self, trt_tensor *input, trt_unary_operation operation) {
    typedef trt_unary_layer *(*call)(void *, trt_tensor *, trt_unary_operation);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_unary));
    return f != NULL ? f(self_, input, operation) : 0;
}
static inline trt_shuffle_layer *trt_network_add_shuffle(const trt_methods *m, trt_network *self, trt_tensor *input) {
    typedef trt_shuffle_layer *(*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_shuffle));
    return f != NULL ? f(self_, input) : 0;
}
static inline int32_t trt_network_get_nb_layers(const trt_methods *m, trt_network *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_get_nb_layers));
    return f != NULL ? f(self_) : 0;
}
static inline trt_layer *trt_network_get_layer(const trt_methods *m, trt_network *self, int32_t index) {
    typedef trt_layer *(*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_get_layer));
    return f != NULL ? f(self_, index) : 0;
}
static inline int32_t trt_network_get_nb_inputs(const trt_methods *m, trt_network *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_get_nb_inputs));
    return f != NULL ? f(self_) : 0;
}
static inline trt_tensor *trt_network_get_input(const trt_methods *m, trt_network *self, int32_t index) {
    typedef trt_tensor *(*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_get_input));
    return f != NULL ? f(self_, index) : 0;
}
static inline int32_t trt_network_get_nb_outputs(const trt_methods *m, trt_network *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_get_nb_outputs));
    return f != NULL ? f(self_) : 0;
}
static inline trt_tensor *trt_network_get_output(const trt_methods *m, trt_network *self, int32_t index) {
    typedef trt_tensor *(*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_get_output));
    return f != NULL ? f(self_, index) : 0;
}
static inline trt_reduce_layer *trt_network_add_reduce(const trt_methods *m, trt_network *self, trt_tensor *input, trt_reduce_operation operation, uint32_t reduce_axes, bool keep_dimensions) {
    typedef trt_reduce_layer *(*call)(void *, trt_tensor *, trt_reduce_operation, uint32_t, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_reduce));
    return f != NULL ? f(self_, input, operation, reduce_axes, keep_dimensions) : 0;
}
static inline trt_topk_layer *trt_network_add_topk(const trt_methods *m, trt_network *self, trt_tensor *input, trt_topk_operation op, int32_t k, uint32_t reduce_axes) {
    typedef trt_topk_layer *(*call)(void *, trt_tensor *, trt_topk_operation, int32_t, uint32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_topk));
    return f != NULL ? f(self_, input, op, k, reduce_axes) : 0;
}
static inline trt_gather_layer *trt_network_add_gather(const trt_methods *m, trt_network *self, trt_tensor *data, trt_tensor *indices, int32_t axis) {
    typedef trt_gather_layer *(*call)(void *, trt_tensor *, trt_tensor *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_gather));
    return f != NULL ? f(self_, data, indices, axis) : 0;
}
static inline trt_ragged_soft_max_layer *trt_network_add_ragged_soft_max(const trt_methods *m, trt_network *self, trt_tensor *input, trt_tensor *bounds) {
    typedef trt_ragged_soft_max_layer *(*call)(void *, trt_tensor *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_ragged_soft_max));
    return f != NULL ? f(self_, input, bounds) : 0;
}
static inline trt_matrix_multiply_layer *trt_network_add_matrix_multiply(const trt_methods *m, trt_network *self, trt_tensor *input0, trt_matrix_operation op0, trt_tensor *input1, trt_matrix_operation op1) {
    typedef trt_matrix_multiply_layer *(*call)(void *, trt_tensor *, trt_matrix_operation, trt_tensor *, trt_matrix_operation);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_matrix_multiply));
    return f != NULL ? f(self_, input0, op0, input1, op1) : 0;
}
static inline trt_constant_layer *trt_network_add_constant(const trt_methods *m, trt_network *self, const trt_dims *dimensions, trt_weights weights) {
    typedef trt_constant_layer *(*call)(void *, const trt_dims *, trt_weights);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_constant));
    return f != NULL ? f(self_, dimensions, weights) : 0;
}
static inline trt_identity_layer *trt_network_add_identity(const trt_methods *m, trt_network *self, trt_tensor *input) {
    typedef trt_identity_layer *(*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_identity));
    return f != NULL ? f(self_, input) : 0;
}
static inline void trt_network_remove_tensor(const trt_methods *m, trt_network *self, trt_tensor *tensor) {
    typedef void (*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_remove_tensor));
    if (f != NULL)
        f(self_, tensor);
}
static inline void trt_network_unmark_output(const trt_methods *m, trt_network *self, trt_tensor *tensor) {
    typedef void (*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_unmark_output));
    if (f != NULL)
        f(self_, tensor);
}
static inline trt_slice_layer *trt_network_add_slice(const trt_methods *m, trt_network *self, trt_tensor *input, const trt_dims *start, const trt_dims *size, const trt_dims *stride) {
    typedef trt_slice_layer *(*call)(void *, trt_tensor *, const trt_dims *, const trt_dims *, const trt_dims *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_slice));
    return f != NULL ? f(self_, input, start, size, stride) : 0;
}
static inline void trt_network_set_name(const trt_methods *m, trt_network *self, const char *name) {
    typedef void (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_set_name));
    if (f != NULL)
        f(self_, name);
}
static inline const char *trt_network_get_name(const trt_methods *m, trt_network *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_get_name));
    return f != NULL ? f(self_) : 0;
}
static inline trt_shape_layer *trt_network_add_shape(const trt_methods *m, trt_network *self, trt_tensor *input) {
    typedef trt_shape_layer *(*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_shape));
    return f != NULL ? f(self_, input) : 0;
}
static inline bool trt_network_has_implicit_batch_dimension(const trt_methods *m, trt_network *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_has_implicit_batch_dimension));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_network_mark_output_for_shapes(const trt_methods *m, trt_network *self, trt_tensor *tensor) {
    typedef bool (*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_mark_output_for_shapes));
    return f != NULL ? f(self_, tensor) : 0;
}
static inline bool trt_network_unmark_output_for_shapes(const trt_methods *m, trt_network *self, trt_tensor *tensor) {
    typedef bool (*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_unmark_output_for_shapes));
    return f != NULL ? f(self_, tensor) : 0;
}
static inline trt_parametric_relu_layer *trt_network_add_parametric_relu(const trt_methods *m, trt_network *self, trt_tensor *input, trt_tensor *slope) {
    typedef trt_parametric_relu_layer *(*call)(void *, trt_tensor *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_parametric_relu));
    return f != NULL ? f(self_, input, slope) : 0;
}
static inline trt_convolution_layer *trt_network_add_convolution_nd(const trt_methods *m, trt_network *self, trt_tensor *input, int64_t nb_output_maps, const trt_dims *kernel_size, trt_weights kernel_weights, trt_weights bias_weights) {
    typedef trt_convolution_layer *(*call)(void *, trt_tensor *, int64_t, const trt_dims *, trt_weights, trt_weights);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_convolution_nd));
    return f != NULL ? f(self_, input, nb_output_maps, kernel_size, kernel_weights, bias_weights) : 0;
}
static inline trt_pooling_layer *trt_network_add_pooling_nd(const trt_methods *m, trt_network *self, trt_tensor *input, trt_pooling_type type, const trt_dims *window_size) {
    typedef trt_pooling_layer *(*call)(void *, trt_tensor *, trt_pooling_type, const trt_dims *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_pooling_nd));
    return f != NULL ? f(self_, input, type, window_size) : 0;
}
static inline trt_deconvolution_layer *trt_network_add_deconvolution_nd(const trt_methods *m, trt_network *self, trt_tensor *input, int64_t nb_output_maps, const trt_dims *kernel_size, trt_weights kernel_weights, trt_weights bias_weights) {
    typedef trt_deconvolution_layer *(*call)(void *, trt_tensor *, int64_t, const trt_dims *, trt_weights, trt_weights);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_deconvolution_nd));
    return f != NULL ? f(self_, input, nb_output_maps, kernel_size, kernel_weights, bias_weights) : 0;
}
static inline trt_scale_layer *trt_network_add_scale_nd(const trt_methods *m, trt_network *self, trt_tensor *input, trt_scale_mode mode, trt_weights shift, trt_weights scale, trt_weights power, int32_t channel_axis) {
    typedef trt_scale_layer *(*call)(void *, trt_tensor *, trt_scale_mode, trt_weights, trt_weights, trt_weights, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_scale_nd));
    return f != NULL ? f(self_, input, mode, shift, scale, power, channel_axis) : 0;
}
static inline trt_resize_layer *trt_network_add_resize(const trt_methods *m, trt_network *self, trt_tensor *input) {
    typedef trt_resize_layer *(*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_resize));
    return f != NULL ? f(self_, input) : 0;
}
static inline trt_loop *trt_network_add_loop(const trt_methods *m, trt_network *self) {
    typedef trt_loop *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_loop));
    return f != NULL ? f(self_) : 0;
}
static inline trt_select_layer *trt_network_add_select(const trt_methods *m, trt_network *self, trt_tensor *condition, trt_tensor *then_input, trt_tensor *else_input) {
    typedef trt_select_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_select));
    return f != NULL ? f(self_, condition, then_input, else_input) : 0;
}
static inline trt_padding_layer *trt_network_add_padding_nd(const trt_methods *m, trt_network *self, trt_tensor *input, const trt_dims *pre_padding, const trt_dims *post_padding) {
    typedef trt_padding_layer *(*call)(void *, trt_tensor *, const trt_dims *, const trt_dims *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_padding_nd));
    return f != NULL ? f(self_, input, pre_padding, post_padding) : 0;
}
static inline bool trt_network_set_weights_name(const trt_methods *m, trt_network *self, trt_weights weights, const char *name) {
    typedef bool (*call)(void *, trt_weights, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_set_weights_name));
    return f != NULL ? f(self_, weights, name) : 0;
}
static inline void trt_network_set_error_recorder(const trt_methods *m, trt_network *self, trt_error_recorder *recorder) {
    typedef void (*call)(void *, trt_error_recorder *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_set_error_recorder));
    if (f != NULL)
        f(self_, recorder);
}
static inline trt_error_recorder *trt_network_get_error_recorder(const trt_methods *m, trt_network *self) {
    typedef trt_error_recorder *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_get_error_recorder));
    return f != NULL ? f(self_) : 0;
}
static inline trt_gather_layer *trt_network_add_gather_v2(const trt_methods *m, trt_network *self, trt_tensor *data, trt_tensor *indices, trt_gather_mode mode) {
    typedef trt_gather_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_gather_mode);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_gather_v2));
    return f != NULL ? f(self_, data, indices, mode) : 0;
}
static inline trt_if_conditional *trt_network_add_if_conditional(const trt_methods *m, trt_network *self) {
    typedef trt_if_conditional *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_if_conditional));
    return f != NULL ? f(self_) : 0;
}
static inline trt_scatter_layer *trt_network_add_scatter(const trt_methods *m, trt_network *self, trt_tensor *data, trt_tensor *indices, trt_tensor *updates, trt_scatter_mode mode) {
    typedef trt_scatter_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_tensor *, trt_scatter_mode);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_scatter));
    return f != NULL ? f(self_, data, indices, updates, mode) : 0;
}
static inline trt_einsum_layer *trt_network_add_einsum(const trt_methods *m, trt_network *self, trt_tensor *const *inputs, int32_t nb_inputs, const char *equation) {
    typedef trt_einsum_layer *(*call)(void *, trt_tensor *const *, int32_t, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_einsum));
    return f != NULL ? f(self_, inputs, nb_inputs, equation) : 0;
}
static inline trt_assertion_layer *trt_network_add_assertion(const trt_methods *m, trt_network *self, trt_tensor *condition, const char *message) {
    typedef trt_assertion_layer *(*call)(void *, trt_tensor *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_assertion));
    return f != NULL ? f(self_, condition, message) : 0;
}
static inline trt_one_hot_layer *trt_network_add_one_hot(const trt_methods *m, trt_network *self, trt_tensor *indices, trt_tensor *values, trt_tensor *depth, int32_t axis) {
    typedef trt_one_hot_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_tensor *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_one_hot));
    return f != NULL ? f(self_, indices, values, depth, axis) : 0;
}
static inline trt_non_zero_layer *trt_network_add_non_zero(const trt_methods *m, trt_network *self, trt_tensor *input) {
    typedef trt_non_zero_layer *(*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_non_zero));
    return f != NULL ? f(self_, input) : 0;
}
static inline trt_grid_sample_layer *trt_network_add_grid_sample(const trt_methods *m, trt_network *self, trt_tensor *input, trt_tensor *grid) {
    typedef trt_grid_sample_layer *(*call)(void *, trt_tensor *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_grid_sample));
    return f != NULL ? f(self_, input, grid) : 0;
}
static inline trt_nms_layer *trt_network_add_nms(const trt_methods *m, trt_network *self, trt_tensor *boxes, trt_tensor *scores, trt_tensor *max_output_boxes_per_class) {
    typedef trt_nms_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_nms));
    return f != NULL ? f(self_, boxes, scores, max_output_boxes_per_class) : 0;
}
static inline trt_reverse_sequence_layer *trt_network_add_reverse_sequence(const trt_methods *m, trt_network *self, trt_tensor *input, trt_tensor *sequence_lens) {
    typedef trt_reverse_sequence_layer *(*call)(void *, trt_tensor *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_reverse_sequence));
    return f != NULL ? f(self_, input, sequence_lens) : 0;
}
static inline trt_normalization_layer *trt_network_add_normalization(const trt_methods *m, trt_network *self, trt_tensor *input, trt_tensor *scale, trt_tensor *bias, uint32_t axes_mask) {
    typedef trt_normalization_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_tensor *, uint32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_normalization));
    return f != NULL ? f(self_, input, scale, bias, axes_mask) : 0;
}
static inline trt_cast_layer *trt_network_add_cast(const trt_methods *m, trt_network *self, trt_tensor *input, trt_data_type to_type) {
    typedef trt_cast_layer *(*call)(void *, trt_tensor *, trt_data_type);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_cast));
    return f != NULL ? f(self_, input, to_type) : 0;
}
static inline trt_builder *trt_network_get_builder(const trt_methods *m, trt_network *self) {
    typedef trt_builder *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_get_builder));
    return f != NULL ? f(self_) : 0;
}
static inline uint32_t trt_network_get_flags(const trt_methods *m, trt_network *self) {
    typedef uint32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_get_flags));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_network_get_flag(const trt_methods *m, trt_network *self, trt_network_definition_creation_flag network_definition_creation_flag) {
    typedef bool (*call)(void *, trt_network_definition_creation_flag);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_get_flag));
    return f != NULL ? f(self_, network_definition_creation_flag) : 0;
}
static inline trt_quantize_layer *trt_network_add_quantize_v2(const trt_methods *m, trt_network *self, trt_tensor *input, trt_tensor *scale, trt_data_type output_type) {
    typedef trt_quantize_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_data_type);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_quantize_v2));
    return f != NULL ? f(self_, input, scale, output_type) : 0;
}
static inline trt_dequantize_layer *trt_network_add_dequantize_v2(const trt_methods *m, trt_network *self, trt_tensor *input, trt_tensor *scale, trt_data_type output_type) {
    typedef trt_dequantize_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_data_type);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_dequantize_v2));
    return f != NULL ? f(self_, input, scale, output_type) : 0;
}
static inline trt_fill_layer *trt_network_add_fill_v2(const trt_methods *m, trt_network *self, const trt_dims *dimensions, trt_fill_operation op, trt_data_type output_type) {
    typedef trt_fill_layer *(*call)(void *, const trt_dims *, trt_fill_operation, trt_data_type);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_fill_v2));
    return f != NULL ? f(self_, dimensions, op, output_type) : 0;
}
static inline bool trt_network_mark_debug(const trt_methods *m, trt_network *self, trt_tensor *tensor) {
    typedef bool (*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_mark_debug));
    return f != NULL ? f(self_, tensor) : 0;
}
static inline bool trt_network_unmark_debug(const trt_methods *m, trt_network *self, trt_tensor *tensor) {
    typedef bool (*call)(void *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_unmark_debug));
    return f != NULL ? f(self_, tensor) : 0;
}
static inline bool trt_network_is_debug_tensor(const trt_methods *m, trt_network *self, const trt_tensor *tensor) {
    typedef bool (*call)(void *, const trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_is_debug_tensor));
    return f != NULL ? f(self_, tensor) : 0;
}
static inline bool trt_network_mark_weights_refittable(const trt_methods *m, trt_network *self, const char *name) {
    typedef bool (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_mark_weights_refittable));
    return f != NULL ? f(self_, name) : 0;
}
static inline bool trt_network_unmark_weights_refittable(const trt_methods *m, trt_network *self, const char *name) {
    typedef bool (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_unmark_weights_refittable));
    return f != NULL ? f(self_, name) : 0;
}
static inline bool trt_network_are_weights_marked_refittable(const trt_methods *m, trt_network *self, const char *name) {
    typedef bool (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_are_weights_marked_refittable));
    return f != NULL ? f(self_, name) : 0;
}
static inline trt_squeeze_layer *trt_network_add_squeeze(const trt_methods *m, trt_network *self, trt_tensor *input, trt_tensor *axes) {
    typedef trt_squeeze_layer *(*call)(void *, trt_tensor *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_squeeze));
    return f != NULL ? f(self_, input, axes) : 0;
}
static inline trt_unsqueeze_layer *trt_network_add_unsqueeze(const trt_methods *m, trt_network *self, trt_tensor *input, trt_tensor *axes) {
    typedef trt_unsqueeze_layer *(*call)(void *, trt_tensor *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_unsqueeze));
    return f != NULL ? f(self_, input, axes) : 0;
}
static inline trt_dynamic_quantize_layer *trt_network_add_dynamic_quantize(const trt_methods *m, trt_network *self, trt_tensor *input, int32_t axis, int32_t block_size, trt_data_type to_type, trt_data_type scale_type) {
    typedef trt_dynamic_quantize_layer *(*call)(void *, trt_tensor *, int32_t, int32_t, trt_data_type, trt_data_type);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_dynamic_quantize));
    return f != NULL ? f(self_, input, axis, block_size, to_type, scale_type) : 0;
}
static inline trt_cumulative_layer *trt_network_add_cumulative(const trt_methods *m, trt_network *self, trt_tensor *input, trt_tensor *axis, trt_cumulative_operation operation, bool exclusive, bool reverse) {
    typedef trt_cumulative_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_cumulative_operation, bool, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_cumulative));
    return f != NULL ? f(self_, input, axis, operation, exclusive, reverse) : 0;
}
static inline bool trt_network_mark_unfused_tensors_as_debug_tensors(const trt_methods *m, trt_network *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_mark_unfused_tensors_as_debug_tensors));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_network_unmark_unfused_tensors_as_debug_tensors(const trt_methods *m, trt_network *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_unmark_unfused_tensors_as_debug_tensors));
    return f != NULL ? f(self_) : 0;
}
static inline trt_topk_layer *trt_network_add_topk_v2(const trt_methods *m, trt_network *self, trt_tensor *input, trt_topk_operation op, int32_t k, uint32_t reduce_axes, trt_data_type indices_type) {
    typedef trt_topk_layer *(*call)(void *, trt_tensor *, trt_topk_operation, int32_t, uint32_t, trt_data_type);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_topk_v2));
    return f != NULL ? f(self_, input, op, k, reduce_axes, indices_type) : 0;
}
static inline trt_non_zero_layer *trt_network_add_non_zero_v2(const trt_methods *m, trt_network *self, trt_tensor *input, trt_data_type indices_type) {
    typedef trt_non_zero_layer *(*call)(void *, trt_tensor *, trt_data_type);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_non_zero_v2));
    return f != NULL ? f(self_, input, indices_type) : 0;
}
static inline trt_nms_layer *trt_network_add_nms_v2(const trt_methods *m, trt_network *self, trt_tensor *boxes, trt_tensor *scores, trt_tensor *max_output_boxes_per_class, trt_data_type indices_type) {
    typedef trt_nms_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_tensor *, trt_data_type);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_nms_v2));
    return f != NULL ? f(self_, boxes, scores, max_output_boxes_per_class, indices_type) : 0;
}
static inline trt_attention *trt_network_add_attention(const trt_methods *m, trt_network *self, trt_tensor *query, trt_tensor *key, trt_tensor *value, trt_attention_normalization_op norm_op, bool is_causal) {
    typedef trt_attention *(*call)(void *, trt_tensor *, trt_tensor *, trt_tensor *, trt_attention_normalization_op, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_attention));
    return f != NULL ? f(self_, query, key, value, norm_op, is_causal) : 0;
}
static inline trt_rotary_embedding_layer *trt_network_add_rotary_embedding(const trt_methods *m, trt_network *self, trt_tensor *input, trt_tensor *cos_cache, trt_tensor *sin_cache, bool interleaved, int32_t rotary_embedding_dim) {
    typedef trt_rotary_embedding_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_tensor *, bool, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_rotary_embedding));
    return f != NULL ? f(self_, input, cos_cache, sin_cache, interleaved, rotary_embedding_dim) : 0;
}
static inline trt_dynamic_quantize_layer *trt_network_add_dynamic_quantize_v2(const trt_methods *m, trt_network *self, trt_tensor *input, const trt_dims *block_shape, trt_data_type to_type, trt_data_type scale_type) {
    typedef trt_dynamic_quantize_layer *(*call)(void *, trt_tensor *, const trt_dims *, trt_data_type, trt_data_type);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_dynamic_quantize_v2));
    return f != NULL ? f(self_, input, block_shape, to_type, scale_type) : 0;
}
static inline trt_kvcache_update_layer *trt_network_add_kvcache_update(const trt_methods *m, trt_network *self, trt_tensor *cache, trt_tensor *update, trt_tensor *write_indices, trt_kvcache_mode cache_mode) {
    typedef trt_kvcache_update_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_tensor *, trt_kvcache_mode);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_kvcache_update));
    return f != NULL ? f(self_, cache, update, write_indices, cache_mode) : 0;
}
static inline trt_normalization_layer *trt_network_add_normalization_v2(const trt_methods *m, trt_network *self, trt_tensor *input, trt_tensor *scale, trt_tensor *bias, uint32_t axes_mask) {
    typedef trt_normalization_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_tensor *, uint32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_normalization_v2));
    return f != NULL ? f(self_, input, scale, bias, axes_mask) : 0;
}
static inline trt_moe_layer *trt_network_add_moe(const trt_methods *m, trt_network *self, trt_tensor *hidden_states, trt_tensor *selected_experts_for_tokens, trt_tensor *scores_for_selected_experts) {
    typedef trt_moe_layer *(*call)(void *, trt_tensor *, trt_tensor *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_moe));
    return f != NULL ? f(self_, hidden_states, selected_experts_for_tokens, scores_for_selected_experts) : 0;
}
static inline trt_dist_collective_layer *trt_network_add_dist_collective(const trt_methods *m, trt_network *self, trt_tensor *input, trt_collective_operation dist_collective_op, trt_reduce_operation reduce_op, int64_t root, int64_t *groups, int64_t group_size) {
    typedef trt_dist_collective_layer *(*call)(void *, trt_tensor *, trt_collective_operation, trt_reduce_operation, int64_t, int64_t *, int64_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_dist_collective));
    return f != NULL ? f(self_, input, dist_collective_op, reduce_op, root, groups, group_size) : 0;
}
static inline trt_attention *trt_network_add_attention_v2(const trt_methods *m, trt_network *self, trt_tensor *query, trt_tensor *key, trt_tensor *value, trt_attention_normalization_op norm_op, trt_causal_mask_kind causal_kind) {
    typedef trt_attention *(*call)(void *, trt_tensor *, trt_tensor *, trt_tensor *, trt_attention_normalization_op, trt_causal_mask_kind);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_attention_v2));
    return f != NULL ? f(self_, query, key, value, norm_op, causal_kind) : 0;
}
static inline trt_squeeze_layer *trt_network_add_squeeze_v2(const trt_methods *m, trt_network *self, trt_tensor *input, trt_tensor *axes) {
    typedef trt_squeeze_layer *(*call)(void *, trt_tensor *, trt_tensor *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_network_add_squeeze_v2));
    return f != NULL ? f(self_, input, axes) : 0;
}
static inline bool trt_non_zero_layer_set_indices_type(const trt_methods *m, trt_non_zero_layer *self, trt_data_type type) {
    typedef bool (*call)(void *, trt_data_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_non_zero_layer_set_indices_type));
    return f != NULL ? f(self_, type) : 0;
}
static inline trt_data_type trt_non_zero_layer_get_indices_type(const trt_methods *m, trt_non_zero_layer *self) {
    typedef trt_data_type (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_non_zero_layer_get_indices_type));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_normalization_layer_set_epsilon(const trt_methods *m, trt_normalization_layer *self, float eps) {
    typedef void (*call)(void *, float);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_normalization_layer_set_epsilon));
    if (f != NULL)
        f(self_, eps);
}
static inline float trt_normalization_layer_get_epsilon(const trt_methods *m, trt_normalization_layer *self) {
    typedef float (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_normalization_layer_get_epsilon));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_normalization_layer_set_axes(const trt_methods *m, trt_normalization_layer *self, uint32_t axes_mask) {
    typedef void (*call)(void *, uint32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_normalization_layer_set_axes));
    if (f != NULL)
        f(self_, axes_mask);
}
static inline uint32_t trt_normalization_layer_get_axes(const trt_methods *m, trt_normalization_layer *self) {
    typedef uint32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_normalization_layer_get_axes));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_normalization_layer_set_nb_groups(const trt_methods *m, trt_normalization_layer *self, int64_t nb_groups) {
    typedef void (*call)(void *, int64_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_normalization_layer_set_nb_groups));
    if (f != NULL)
        f(self_, nb_groups);
}
static inline int64_t trt_normalization_layer_get_nb_groups(const trt_methods *m, trt_normalization_layer *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_normalization_layer_get_nb_groups));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_normalization_layer_is_v2(const trt_methods *m, trt_normalization_layer *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_normalization_layer_is_v2));
    return f != NULL ? f(self_) : 0;
}
static inline int32_t trt_one_hot_layer_get_axis(const trt_methods *m, trt_one_hot_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_one_hot_layer_get_axis));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_one_hot_layer_set_axis(const trt_methods *m, trt_one_hot_layer *self, int32_t axis) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_one_hot_layer_set_axis));
    if (f != NULL)
        f(self_, axis);
}
static inline bool trt_profile_set_dimensions(const trt_methods *m, trt_profile *self, const char *input_name, trt_opt_profile_selector select, const trt_dims *dims) {
    typedef bool (*call)(void *, const char *, trt_opt_profile_selector, const trt_dims *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_profile_set_dimensions));
    return f != NULL ? f(self_, input_name, select, dims) : 0;
}
static inline trt_dims trt_profile_get_dimensions(const trt_methods *m, trt_profile *self, const char *input_name, trt_opt_profile_selector select) {
    typedef trt_dims (*call)(void *, const char *, trt_opt_profile_selector);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_profile_get_dimensions));
    return f != NULL ? f(self_, input_name, select) : (trt_dims){0};
}
static inline int32_t trt_profile_get_nb_shape_values(const trt_methods *m, trt_profile *self, const char *input_name) {
    typedef int32_t (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_profile_get_nb_shape_values));
    return f != NULL ? f(self_, input_name) : 0;
}
static inline bool trt_profile_set_extra_memory_target(const trt_methods *m, trt_profile *self, float target) {
    typedef bool (*call)(void *, float);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_profile_set_extra_memory_target));
    return f != NULL ? f(self_, target) : 0;
}
static inline float trt_profile_get_extra_memory_target(const trt_methods *m, trt_profile *self) {
    typedef float (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_profile_get_extra_memory_target));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_profile_is_valid(const trt_methods *m, trt_profile *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_profile_is_valid));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_profile_set_shape_values_v2(const trt_methods *m, trt_profile *self, const char *input_name, trt_opt_profile_selector select, const int64_t *values, int32_t nb_values) {
    typedef bool (*call)(void *, const char *, trt_opt_profile_selector, const int64_t *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_profile_set_shape_values_v2));
    return f != NULL ? f(self_, input_name, select, values, nb_values) : 0;
}
static inline const int64_t *trt_profile_get_shape_values_v2(const trt_methods *m, trt_profile *self, const char *input_name, trt_opt_profile_selector select) {
    typedef const int64_t *(*call)(void *, const char *, trt_opt_profile_selector);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_profile_get_shape_values_v2));
    return f != NULL ? f(self_, input_name, select) : 0;
}
static inline void trt_profile_set_profile_stream(const trt_methods *m, trt_profile *self, trt_stream stream) {
    typedef void (*call)(void *, trt_stream);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_profile_set_profile_stream));
    if (f != NULL)
        f(self_, stream);
}
static inline trt_stream trt_profile_get_profile_stream(const trt_methods *m, trt_profile *self) {
    typedef trt_stream (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_profile_get_profile_stream));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_padding_layer_set_pre_padding_nd(const trt_methods *m, trt_padding_layer *self, const trt_dims *padding) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_padding_layer_set_pre_padding_nd));
    if (f != NULL)
        f(self_, padding);
}
static inline trt_dims trt_padding_layer_get_pre_padding_nd(const trt_methods *m, trt_padding_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_padding_layer_get_pre_padding_nd));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_padding_layer_set_post_padding_nd(const trt_methods *m, trt_padding_layer *self, const trt_dims *padding) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_padding_layer_set_post_padding_nd));
    if (f != NULL)
        f(self_, padding);
}
static inline trt_dims trt_padding_layer_get_post_padding_nd(const trt_methods *m, trt_padding_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_padding_layer_get_post_padding_nd));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_pooling_layer_set_pooling_type(const trt_methods *m, trt_pooling_layer *self, trt_pooling_type type) {
    typedef void (*call)(void *, trt_pooling_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_set_pooling_type));
    if (f != NULL)
        f(self_, type);
}
static inline trt_pooling_type trt_pooling_layer_get_pooling_type(const trt_methods *m, trt_pooling_layer *self) {
    typedef trt_pooling_type (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_get_pooling_type));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_pooling_layer_set_blend_factor(const trt_methods *m, trt_pooling_layer *self, float blend_factor) {
    typedef void (*call)(void *, float);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_set_blend_factor));
    if (f != NULL)
        f(self_, blend_factor);
}
static inline float trt_pooling_layer_get_blend_factor(const trt_methods *m, trt_pooling_layer *self) {
    typedef float (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_get_blend_factor));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_pooling_layer_set_average_count_excludes_padding(const trt_methods *m, trt_pooling_layer *self, bool exclusive) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_set_average_count_excludes_padding));
    if (f != NULL)
        f(self_, exclusive);
}
static inline bool trt_pooling_layer_get_average_count_excludes_padding(const trt_methods *m, trt_pooling_layer *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_get_average_count_excludes_padding));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_pooling_layer_set_pre_padding(const trt_methods *m, trt_pooling_layer *self, const trt_dims *padding) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_set_pre_padding));
    if (f != NULL)
        f(self_, padding);
}
static inline trt_dims trt_pooling_layer_get_pre_padding(const trt_methods *m, trt_pooling_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_get_pre_padding));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_pooling_layer_set_post_padding(const trt_methods *m, trt_pooling_layer *self, const trt_dims *padding) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_set_post_padding));
    if (f != NULL)
        f(self_, padding);
}
static inline trt_dims trt_pooling_layer_get_post_padding(const trt_methods *m, trt_pooling_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_get_post_padding));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_pooling_layer_set_padding_mode(const trt_methods *m, trt_pooling_layer *self, trt_padding_mode padding_mode) {
    typedef void (*call)(void *, trt_padding_mode);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_set_padding_mode));
    if (f != NULL)
        f(self_, padding_mode);
}
static inline trt_padding_mode trt_pooling_layer_get_padding_mode(const trt_methods *m, trt_pooling_layer *self) {
    typedef trt_padding_mode (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_get_padding_mode));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_pooling_layer_set_window_size_nd(const trt_methods *m, trt_pooling_layer *self, const trt_dims *window_size) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_set_window_size_nd));
    if (f != NULL)
        f(self_, window_size);
}
static inline trt_dims trt_pooling_layer_get_window_size_nd(const trt_methods *m, trt_pooling_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_get_window_size_nd));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_pooling_layer_set_stride_nd(const trt_methods *m, trt_pooling_layer *self, const trt_dims *stride) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_set_stride_nd));
    if (f != NULL)
        f(self_, stride);
}
static inline trt_dims trt_pooling_layer_get_stride_nd(const trt_methods *m, trt_pooling_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_get_stride_nd));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_pooling_layer_set_padding_nd(const trt_methods *m, trt_pooling_layer *self, const trt_dims *padding) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_set_padding_nd));
    if (f != NULL)
        f(self_, padding);
}
static inline trt_dims trt_pooling_layer_get_padding_nd(const trt_methods *m, trt_pooling_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_pooling_layer_get_padding_nd));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline int32_t trt_quantize_layer_get_axis(const trt_methods *m, trt_quantize_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_quantize_layer_get_axis));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_quantize_layer_set_axis(const trt_methods *m, trt_quantize_layer *self, int32_t axis) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_quantize_layer_set_axis));
    if (f != NULL)
        f(self_, axis);
}
static inline trt_data_type trt_quantize_layer_get_to_type(const trt_methods *m, trt_quantize_layer *self) {
    typedef trt_data_type (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_quantize_layer_get_to_type));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_quantize_layer_set_to_type(const trt_methods *m, trt_quantize_layer *self, trt_data_type to_type) {
    typedef void (*call)(void *, trt_data_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_quantize_layer_set_to_type));
    if (f != NULL)
        f(self_, to_type);
}
static inline trt_dims trt_quantize_layer_get_block_shape(const trt_methods *m, trt_quantize_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_quantize_layer_get_block_shape));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline bool trt_quantize_layer_set_block_shape(const trt_methods *m, trt_quantize_layer *self, const trt_dims *block_shape) {
    typedef bool (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_quantize_layer_set_block_shape));
    return f != NULL ? f(self_, block_shape) : 0;
}
static inline void trt_reduce_layer_set_operation(const trt_methods *m, trt_reduce_layer *self, trt_reduce_operation op) {
    typedef void (*call)(void *, trt_reduce_operation);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_reduce_layer_set_operation));
    if (f != NULL)
        f(self_, op);
}
static inline trt_reduce_operation trt_reduce_layer_get_operation(const trt_methods *m, trt_reduce_layer *self) {
    typedef trt_reduce_operation (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_reduce_layer_get_operation));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_reduce_layer_set_reduce_axes(const trt_methods *m, trt_reduce_layer *self, uint32_t reduce_axes) {
    typedef void (*call)(void *, uint32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_reduce_layer_set_reduce_axes));
    if (f != NULL)
        f(self_, reduce_axes);
}
static inline uint32_t trt_reduce_layer_get_reduce_axes(const trt_methods *m, trt_reduce_layer *self) {
    typedef uint32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_reduce_layer_get_reduce_axes));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_reduce_layer_set_keep_dimensions(const trt_methods *m, trt_reduce_layer *self, bool keep_dimensions) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_reduce_layer_set_keep_dimensions));
    if (f != NULL)
        f(self_, keep_dimensions);
}
static inline bool trt_reduce_layer_get_keep_dimensions(const trt_methods *m, trt_reduce_layer *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_reduce_layer_get_keep_dimensions));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_refitter_set_weights(const trt_methods *m, trt_refitter *self, const char *layer_name, trt_weights_role role, trt_weights weights) {
    typedef bool (*call)(void *, const char *, trt_weights_role, trt_weights);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_set_weights));
    return f != NULL ? f(self_, layer_name, role, weights) : 0;
}
static inline bool trt_refitter_refit_cuda_engine(const trt_methods *m, trt_refitter *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_refit_cuda_engine));
    return f != NULL ? f(self_) : 0;
}
static inline int32_t trt_refitter_get_missing(const trt_methods *m, trt_refitter *self, int32_t size, const char **layer_names, trt_weights_role *roles) {
    typedef int32_t (*call)(void *, int32_t, const char **, trt_weights_role *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_get_missing));
    return f != NULL ? f(self_, size, layer_names, roles) : 0;
}
static inline int32_t trt_refitter_get_all(const trt_methods *m, trt_refitter *self, int32_t size, const char **layer_names, trt_weights_role *roles) {
    typedef int32_t (*call)(void *, int32_t, const char **, trt_weights_role *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_get_all));
    return f != NULL ? f(self_, size, layer_names, roles) : 0;
}
static inline void trt_refitter_set_error_recorder(const trt_methods *m, trt_refitter *self, trt_error_recorder *recorder) {
    typedef void (*call)(void *, trt_error_recorder *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_set_error_recorder));
    if (f != NULL)
        f(self_, recorder);
}
static inline trt_error_recorder *trt_refitter_get_error_recorder(const trt_methods *m, trt_refitter *self) {
    typedef trt_error_recorder *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_get_error_recorder));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_refitter_set_named_weights(const trt_methods *m, trt_refitter *self, const char *name, trt_weights weights) {
    typedef bool (*call)(void *, const char *, trt_weights);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_set_named_weights));
    return f != NULL ? f(self_, name, weights) : 0;
}
static inline int32_t trt_refitter_get_missing_weights(const trt_methods *m, trt_refitter *self, int32_t size, const char **weights_names) {
    typedef int32_t (*call)(void *, int32_t, const char **);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_get_missing_weights));
    return f != NULL ? f(self_, size, weights_names) : 0;
}
static inline int32_t trt_refitter_get_all_weights(const trt_methods *m, trt_refitter *self, int32_t size, const char **weights_names) {
    typedef int32_t (*call)(void *, int32_t, const char **);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_get_all_weights));
    return f != NULL ? f(self_, size, weights_names) : 0;
}
static inline trt_logger *trt_refitter_get_logger(const trt_methods *m, trt_refitter *self) {
    typedef trt_logger *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_get_logger));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_refitter_set_max_threads(const trt_methods *m, trt_refitter *self, int32_t max_threads) {
    typedef bool (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_set_max_threads));
    return f != NULL ? f(self_, max_threads) : 0;
}
static inline int32_t trt_refitter_get_max_threads(const trt_methods *m, trt_refitter *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_get_max_threads));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_refitter_set_named_weights_with_location(const trt_methods *m, trt_refitter *self, const char *name, trt_weights weights, trt_tensor_location location) {
    typedef bool (*call)(void *, const char *, trt_weights, trt_tensor_location);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_set_named_weights_with_location));
    return f != NULL ? f(self_, name, weights, location) : 0;
}
static inline trt_weights trt_refitter_get_named_weights(const trt_methods *m, trt_refitter *self, const char *weights_name) {
    typedef trt_weights (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_get_named_weights));
    return f != NULL ? f(self_, weights_name) : (trt_weights){0};
}
static inline trt_tensor_location trt_refitter_get_weights_location(const trt_methods *m, trt_refitter *self, const char *weights_name) {
    typedef trt_tensor_location (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_get_weights_location));
    return f != NULL ? f(self_, weights_name) : 0;
}
static inline bool trt_refitter_unset_named_weights(const trt_methods *m, trt_refitter *self, const char *weights_name) {
    typedef bool (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_unset_named_weights));
    return f != NULL ? f(self_, weights_name) : 0;
}
static inline void trt_refitter_set_weights_validation(const trt_methods *m, trt_refitter *self, bool weights_validation) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_set_weights_validation));
    if (f != NULL)
        f(self_, weights_validation);
}
static inline bool trt_refitter_get_weights_validation(const trt_methods *m, trt_refitter *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_get_weights_validation));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_refitter_refit_cuda_engine_async(const trt_methods *m, trt_refitter *self, trt_stream stream) {
    typedef bool (*call)(void *, trt_stream);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_refit_cuda_engine_async));
    return f != NULL ? f(self_, stream) : 0;
}
static inline trt_weights trt_refitter_get_weights_prototype(const trt_methods *m, trt_refitter *self, const char *weights_name) {
    typedef trt_weights (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_get_weights_prototype));
    return f != NULL ? f(self_, weights_name) : (trt_weights){0};
}
static inline bool trt_refitter_release_refit_resources(const trt_methods *m, trt_refitter *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_refitter_release_refit_resources));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_resize_layer_set_output_dimensions(const trt_methods *m, trt_resize_layer *self, const trt_dims *dimensions) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_set_output_dimensions));
    if (f != NULL)
        f(self_, dimensions);
}
static inline trt_dims trt_resize_layer_get_output_dimensions(const trt_methods *m, trt_resize_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_get_output_dimensions));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_resize_layer_set_scales(const trt_methods *m, trt_resize_layer *self, const float *scales, int32_t nb_scales) {
    typedef void (*call)(void *, const float *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_set_scales));
    if (f != NULL)
        f(self_, scales, nb_scales);
}
static inline int32_t trt_resize_layer_get_scales(const trt_methods *m, trt_resize_layer *self, int32_t size, float *scales) {
    typedef int32_t (*call)(void *, int32_t, float *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_get_scales));
    return f != NULL ? f(self_, size, scales) : 0;
}
static inline void trt_resize_layer_set_resize_mode(const trt_methods *m, trt_resize_layer *self, trt_interpolation_mode interpolation_mode) {
    typedef void (*call)(void *, trt_interpolation_mode);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_set_resize_mode));
    if (f != NULL)
        f(self_, interpolation_mode);
}
static inline trt_interpolation_mode trt_resize_layer_get_resize_mode(const trt_methods *m, trt_resize_layer *self) {
    typedef trt_interpolation_mode (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_get_resize_mode));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_resize_layer_set_coordinate_transformation(const trt_methods *m, trt_resize_layer *self, trt_resize_coordinate_transformation coord_transform) {
    typedef void (*call)(void *, trt_resize_coordinate_transformation);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_set_coordinate_transformation));
    if (f != NULL)
        f(self_, coord_transform);
}
static inline trt_resize_coordinate_transformation trt_resize_layer_get_coordinate_transformation(const trt_methods *m, trt_resize_layer *self) {
    typedef trt_resize_coordinate_transformation (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_get_coordinate_transformation));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_resize_layer_set_selector_for_single_pixel(const trt_methods *m, trt_resize_layer *self, trt_resize_selector selector) {
    typedef void (*call)(void *, trt_resize_selector);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_set_selector_for_single_pixel));
    if (f != NULL)
        f(self_, selector);
}
static inline trt_resize_selector trt_resize_layer_get_selector_for_single_pixel(const trt_methods *m, trt_resize_layer *self) {
    typedef trt_resize_selector (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_get_selector_for_single_pixel));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_resize_layer_set_nearest_rounding(const trt_methods *m, trt_resize_layer *self, trt_resize_round_mode value) {
    typedef void (*call)(void *, trt_resize_round_mode);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_set_nearest_rounding));
    if (f != NULL)
        f(self_, value);
}
static inline trt_resize_round_mode trt_resize_layer_get_nearest_rounding(const trt_methods *m, trt_resize_layer *self) {
    typedef trt_resize_round_mode (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_get_nearest_rounding));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_resize_layer_set_cubic_coeff(const trt_methods *m, trt_resize_layer *self, float value) {
    typedef void (*call)(void *, float);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_set_cubic_coeff));
    if (f != NULL)
        f(self_, value);
}
static inline float trt_resize_layer_get_cubic_coeff(const trt_methods *m, trt_resize_layer *self) {
    typedef float (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_get_cubic_coeff));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_resize_layer_set_exclude_outside(const trt_methods *m, trt_resize_layer *self, bool value) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_set_exclude_outside));
    if (f != NULL)
        f(self_, value);
}
static inline bool trt_resize_layer_get_exclude_outside(const trt_methods *m, trt_resize_layer *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_resize_layer_get_exclude_outside));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_reverse_sequence_layer_set_batch_axis(const trt_methods *m, trt_reverse_sequence_layer *self, int32_t batch_axis) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_reverse_sequence_layer_set_batch_axis));
    if (f != NULL)
        f(self_, batch_axis);
}
static inline int32_t trt_reverse_sequence_layer_get_batch_axis(const trt_methods *m, trt_reverse_sequence_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_reverse_sequence_layer_get_batch_axis));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_reverse_sequence_layer_set_sequence_axis(const trt_methods *m, trt_reverse_sequence_layer *self, int32_t sequence_axis) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_reverse_sequence_layer_set_sequence_axis));
    if (f != NULL)
        f(self_, sequence_axis);
}
static inline int32_t trt_reverse_sequence_layer_get_sequence_axis(const trt_methods *m, trt_reverse_sequence_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_reverse_sequence_layer_get_sequence_axis));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_rotary_embedding_layer_set_interleaved(const trt_methods *m, trt_rotary_embedding_layer *self, bool interleaved) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_rotary_embedding_layer_set_interleaved));
    if (f != NULL)
        f(self_, interleaved);
}
static inline bool trt_rotary_embedding_layer_get_interleaved(const trt_methods *m, trt_rotary_embedding_layer *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_rotary_embedding_layer_get_interleaved));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_rotary_embedding_layer_set_rotary_embedding_dim(const trt_methods *m, trt_rotary_embedding_layer *self, int32_t rotary_embedding_dim) {
    typedef bool (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_rotary_embedding_layer_set_rotary_embedding_dim));
    return f != NULL ? f(self_, rotary_embedding_dim) : 0;
}
static inline int32_t trt_rotary_embedding_layer_get_rotary_embedding_dim(const trt_methods *m, trt_rotary_embedding_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_rotary_embedding_layer_get_rotary_embedding_dim));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_rotary_embedding_layer_set_input(const trt_methods *m, trt_rotary_embedding_layer *self, int32_t index, trt_tensor *input) {
    typedef void (*call)(void *, int32_t, trt_tensor *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_rotary_embedding_layer_set_input));
    if (f != NULL)
        f(self_, index, input);
}
static inline trt_engine *trt_runtime_deserialize_cuda_engine(const trt_methods *m, trt_runtime *self, const void *blob, size_t size) {
    typedef trt_engine *(*call)(void *, const void *, size_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_deserialize_cuda_engine));
    return f != NULL ? f(self_, blob, size) : 0;
}
static inline void trt_runtime_set_dla_core(const trt_methods *m, trt_runtime *self, int32_t dla_core) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_set_dla_core));
    if (f != NULL)
        f(self_, dla_core);
}
static inline int32_t trt_runtime_get_dla_core(const trt_methods *m, trt_runtime *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_get_dla_core));
    return f != NULL ? f(self_) : 0;
}
static inline int32_t trt_runtime_get_nb_dla_cores(const trt_methods *m, trt_runtime *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_get_nb_dla_cores));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_runtime_set_gpu_allocator(const trt_methods *m, trt_runtime *self, trt_gpu_allocator *allocator) {
    typedef void (*call)(void *, trt_gpu_allocator *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_set_gpu_allocator));
    if (f != NULL)
        f(self_, allocator);
}
static inline void trt_runtime_set_error_recorder(const trt_methods *m, trt_runtime *self, trt_error_recorder *recorder) {
    typedef void (*call)(void *, trt_error_recorder *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_set_error_recorder));
    if (f != NULL)
        f(self_, recorder);
}
static inline trt_error_recorder *trt_runtime_get_error_recorder(const trt_methods *m, trt_runtime *self) {
    typedef trt_error_recorder *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_get_error_recorder));
    return f != NULL ? f(self_) : 0;
}
static inline trt_logger *trt_runtime_get_logger(const trt_methods *m, trt_runtime *self) {
    typedef trt_logger *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_get_logger));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_runtime_set_max_threads(const trt_methods *m, trt_runtime *self, int32_t max_threads) {
    typedef bool (*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_set_max_threads));
    return f != NULL ? f(self_, max_threads) : 0;
}
static inline int32_t trt_runtime_get_max_threads(const trt_methods *m, trt_runtime *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_get_max_threads));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_runtime_set_temporary_directory(const trt_methods *m, trt_runtime *self, const char *p0) {
    typedef void (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_set_temporary_directory));
    if (f != NULL)
        f(self_, p0);
}
static inline const char *trt_runtime_get_temporary_directory(const trt_methods *m, trt_runtime *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_get_temporary_directory));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_runtime_set_tempfile_control_flags(const trt_methods *m, trt_runtime *self, uint32_t p0) {
    typedef void (*call)(void *, uint32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_set_tempfile_control_flags));
    if (f != NULL)
        f(self_, p0);
}
static inline uint32_t trt_runtime_get_tempfile_control_flags(const trt_methods *m, trt_runtime *self) {
    typedef uint32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_get_tempfile_control_flags));
    return f != NULL ? f(self_) : 0;
}
static inline trt_runtime *trt_runtime_load_runtime(const trt_methods *m, trt_runtime *self, const char *path) {
    typedef trt_runtime *(*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_load_runtime));
    return f != NULL ? f(self_, path) : 0;
}
static inline void trt_runtime_set_engine_host_code_allowed(const trt_methods *m, trt_runtime *self, bool allowed) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_set_engine_host_code_allowed));
    if (f != NULL)
        f(self_, allowed);
}
static inline bool trt_runtime_get_engine_host_code_allowed(const trt_methods *m, trt_runtime *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_get_engine_host_code_allowed));
    return f != NULL ? f(self_) : 0;
}
static inline trt_engine *trt_runtime_deserialize_cuda_engine_v2(const trt_methods *m, trt_runtime *self, trt_stream_reader_v2 *stream_reader) {
    typedef trt_engine *(*call)(void *, trt_stream_reader_v2 *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_deserialize_cuda_engine_v2));
    return f != NULL ? f(self_, stream_reader) : 0;
}
static inline int64_t trt_runtime_get_engine_header_size(const trt_methods *m, trt_runtime *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_get_engine_header_size));
    return f != NULL ? f(self_) : 0;
}
static inline trt_engine_validity trt_runtime_get_engine_validity(const trt_methods *m, trt_runtime *self, const void *blob, int64_t blob_size, uint64_t *diagnostics) {
    typedef trt_engine_validity (*call)(void *, const void *, int64_t, uint64_t *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_get_engine_validity));
    return f != NULL ? f(self_, blob, blob_size, diagnostics) : 0;
}
static inline void trt_runtime_set_deferred_weights_loading(const trt_methods *m, trt_runtime *self, bool defer) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_set_deferred_weights_loading));
    if (f != NULL)
        f(self_, defer);
}
static inline bool trt_runtime_get_deferred_weights_loading(const trt_methods *m, trt_runtime *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_get_deferred_weights_loading));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_runtime_set_dla_workspace_allocation_strategy(const trt_methods *m, trt_runtime *self, trt_dla_workspace_allocation_strategy strategy) {
    typedef bool (*call)(void *, trt_dla_workspace_allocation_strategy);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_set_dla_workspace_allocation_strategy));
    return f != NULL ? f(self_, strategy) : 0;
}
static inline trt_dla_workspace_allocation_strategy trt_runtime_get_dla_workspace_allocation_strategy(const trt_methods *m, trt_runtime *self) {
    typedef trt_dla_workspace_allocation_strategy (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_get_dla_workspace_allocation_strategy));
    return f != NULL ? f(self_) : 0;
}
static inline trt_memory *trt_runtime_cache_serialize(const trt_methods *m, trt_runtime_cache *self) {
    typedef trt_memory *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_cache_serialize));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_runtime_cache_deserialize(const trt_methods *m, trt_runtime_cache *self, const void *blob, size_t size) {
    typedef bool (*call)(void *, const void *, size_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_cache_deserialize));
    return f != NULL ? f(self_, blob, size) : 0;
}
static inline bool trt_runtime_cache_reset(const trt_methods *m, trt_runtime_cache *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_cache_reset));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_runtime_config_set_execution_context_allocation_strategy(const trt_methods *m, trt_runtime_config *self, trt_execution_context_allocation_strategy strategy) {
    typedef void (*call)(void *, trt_execution_context_allocation_strategy);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_config_set_execution_context_allocation_strategy));
    if (f != NULL)
        f(self_, strategy);
}
static inline trt_execution_context_allocation_strategy trt_runtime_config_get_execution_context_allocation_strategy(const trt_methods *m, trt_runtime_config *self) {
    typedef trt_execution_context_allocation_strategy (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_config_get_execution_context_allocation_strategy));
    return f != NULL ? f(self_) : 0;
}
static inline trt_runtime_cache *trt_runtime_config_create_runtime_cache(const trt_methods *m, trt_runtime_config *self) {
    typedef trt_runtime_cache *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_config_create_runtime_cache));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_runtime_config_set_runtime_cache(const trt_methods *m, trt_runtime_config *self, const trt_runtime_cache *cache) {
    typedef bool (*call)(void *, const trt_runtime_cache *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_config_set_runtime_cache));
    return f != NULL ? f(self_, cache) : 0;
}
static inline trt_runtime_cache *trt_runtime_config_get_runtime_cache(const trt_methods *m, trt_runtime_config *self) {
    typedef trt_runtime_cache *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_config_get_runtime_cache));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_runtime_config_set_dynamic_shapes_kernel_specialization_strategy(const trt_methods *m, trt_runtime_config *self, trt_dynamic_shapes_kernel_specialization_strategy dynamic_shapes_kernel_specialization_strategy) {
    typedef void (*call)(void *, trt_dynamic_shapes_kernel_specialization_strategy);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_config_set_dynamic_shapes_kernel_specialization_strategy));
    if (f != NULL)
        f(self_, dynamic_shapes_kernel_specialization_strategy);
}
static inline trt_dynamic_shapes_kernel_specialization_strategy trt_runtime_config_get_dynamic_shapes_kernel_specialization_strategy(const trt_methods *m, trt_runtime_config *self) {
    typedef trt_dynamic_shapes_kernel_specialization_strategy (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_config_get_dynamic_shapes_kernel_specialization_strategy));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_runtime_config_set_cuda_graph_strategy(const trt_methods *m, trt_runtime_config *self, trt_cuda_graph_strategy strategy) {
    typedef bool (*call)(void *, trt_cuda_graph_strategy);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_config_set_cuda_graph_strategy));
    return f != NULL ? f(self_, strategy) : 0;
}
static inline trt_cuda_graph_strategy trt_runtime_config_get_cuda_graph_strategy(const trt_methods *m, trt_runtime_config *self) {
    typedef trt_cuda_graph_strategy (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_runtime_config_get_cuda_graph_strategy));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_scale_layer_set_mode(const trt_methods *m, trt_scale_layer *self, trt_scale_mode mode) {
    typedef void (*call)(void *, trt_scale_mode);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_scale_layer_set_mode));
    if (f != NULL)
        f(self_, mode);
}
static inline trt_scale_mode trt_scale_layer_get_mode(const trt_methods *m, trt_scale_layer *self) {
    typedef trt_scale_mode (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_scale_layer_get_mode));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_scale_layer_set_shift(const trt_methods *m, trt_scale_layer *self, trt_weights shift) {
    typedef void (*call)(void *, trt_weights);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_scale_layer_set_shift));
    if (f != NULL)
        f(self_, shift);
}
static inline trt_weights trt_scale_layer_get_shift(const trt_methods *m, trt_scale_layer *self) {
    typedef trt_weights (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_scale_layer_get_shift));
    return f != NULL ? f(self_) : (trt_weights){0};
}
static inline void trt_scale_layer_set_scale(const trt_methods *m, trt_scale_layer *self, trt_weights scale) {
    typedef void (*call)(void *, trt_weights);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_scale_layer_set_scale));
    if (f != NULL)
        f(self_, scale);
}
static inline trt_weights trt_scale_layer_get_scale(const trt_methods *m, trt_scale_layer *self) {
    typedef trt_weights (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_scale_layer_get_scale));
    return f != NULL ? f(self_) : (trt_weights){0};
}
static inline void trt_scale_layer_set_power(const trt_methods *m, trt_scale_layer *self, trt_weights power) {
    typedef void (*call)(void *, trt_weights);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_scale_layer_set_power));
    if (f != NULL)
        f(self_, power);
}
static inline trt_weights trt_scale_layer_get_power(const trt_methods *m, trt_scale_layer *self) {
    typedef trt_weights (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_scale_layer_get_power));
    return f != NULL ? f(self_) : (trt_weights){0};
}
static inline int32_t trt_scale_layer_get_channel_axis(const trt_methods *m, trt_scale_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_scale_layer_get_channel_axis));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_scale_layer_set_channel_axis(const trt_methods *m, trt_scale_layer *self, int32_t channel_axis) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_scale_layer_set_channel_axis));
    if (f != NULL)
        f(self_, channel_axis);
}
static inline void trt_scatter_layer_set_mode(const trt_methods *m, trt_scatter_layer *self, trt_scatter_mode mode) {
    typedef void (*call)(void *, trt_scatter_mode);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_scatter_layer_set_mode));
    if (f != NULL)
        f(self_, mode);
}
static inline trt_scatter_mode trt_scatter_layer_get_mode(const trt_methods *m, trt_scatter_layer *self) {
    typedef trt_scatter_mode (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_scatter_layer_get_mode));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_scatter_layer_set_axis(const trt_methods *m, trt_scatter_layer *self, int32_t axis) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_scatter_layer_set_axis));
    if (f != NULL)
        f(self_, axis);
}
static inline int32_t trt_scatter_layer_get_axis(const trt_methods *m, trt_scatter_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_scatter_layer_get_axis));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_serialization_config_set_flags(const trt_methods *m, trt_serialization_config *self, uint32_t serialization_flags) {
    typedef bool (*call)(void *, uint32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_serialization_config_set_flags));
    return f != NULL ? f(self_, serialization_flags) : 0;
}
static inline uint32_t trt_serialization_config_get_flags(const trt_methods *m, trt_serialization_config *self) {
    typedef uint32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_serialization_config_get_flags));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_serialization_config_clear_flag(const trt_methods *m, trt_serialization_config *self, trt_serialization_flag serialization_flag) {
    typedef bool (*call)(void *, trt_serialization_flag);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_serialization_config_clear_flag));
    return f != NULL ? f(self_, serialization_flag) : 0;
}
static inline bool trt_serialization_config_set_flag(const trt_methods *m, trt_serialization_config *self, trt_serialization_flag serialization_flag) {
    typedef bool (*call)(void *, trt_serialization_flag);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_serialization_config_set_flag));
    return f != NULL ? f(self_, serialization_flag) : 0;
}
static inline bool trt_serialization_config_get_flag(const trt_methods *m, trt_serialization_config *self, trt_serialization_flag serialization_flag) {
    typedef bool (*call)(void *, trt_serialization_flag);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_serialization_config_get_flag));
    return f != NULL ? f(self_, serialization_flag) : 0;
}
static inline void trt_shuffle_layer_set_first_transpose(const trt_methods *m, trt_shuffle_layer *self, const trt_permutation *permutation) {
    typedef void (*call)(void *, const trt_permutation *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_shuffle_layer_set_first_transpose));
    if (f != NULL)
        f(self_, permutation);
}
static inline const trt_permutation *trt_shuffle_layer_get_first_transpose(const trt_methods *m, trt_shuffle_layer *self) {
    typedef const trt_permutation *(*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_shuffle_layer_get_first_transpose));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_shuffle_layer_set_reshape_dimensions(const trt_methods *m, trt_shuffle_layer *self, const trt_dims *dimensions) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_shuffle_layer_set_reshape_dimensions));
    if (f != NULL)
        f(self_, dimensions);
}
static inline trt_dims trt_shuffle_layer_get_reshape_dimensions(const trt_methods *m, trt_shuffle_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_shuffle_layer_get_reshape_dimensions));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_shuffle_layer_set_second_transpose(const trt_methods *m, trt_shuffle_layer *self, const trt_permutation *permutation) {
    typedef void (*call)(void *, const trt_permutation *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_shuffle_layer_set_second_transpose));
    if (f != NULL)
        f(self_, permutation);
}
static inline const trt_permutation *trt_shuffle_layer_get_second_transpose(const trt_methods *m, trt_shuffle_layer *self) {
    typedef const trt_permutation *(*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_shuffle_layer_get_second_transpose));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_shuffle_layer_set_zero_is_placeholder(const trt_methods *m, trt_shuffle_layer *self, bool zero_is_placeholder) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_shuffle_layer_set_zero_is_placeholder));
    if (f != NULL)
        f(self_, zero_is_placeholder);
}
static inline bool trt_shuffle_layer_get_zero_is_placeholder(const trt_methods *m, trt_shuffle_layer *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_shuffle_layer_get_zero_is_placeholder));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_slice_layer_set_start(const trt_methods *m, trt_slice_layer *self, const trt_dims *start) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_slice_layer_set_start));
    if (f != NULL)
        f(self_, start);
}
static inline trt_dims trt_slice_layer_get_start(const trt_methods *m, trt_slice_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_slice_layer_get_start));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_slice_layer_set_size(const trt_methods *m, trt_slice_layer *self, const trt_dims *size) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_slice_layer_set_size));
    if (f != NULL)
        f(self_, size);
}
static inline trt_dims trt_slice_layer_get_size(const trt_methods *m, trt_slice_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_slice_layer_get_size));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_slice_layer_set_stride(const trt_methods *m, trt_slice_layer *self, const trt_dims *stride) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_slice_layer_set_stride));
    if (f != NULL)
        f(self_, stride);
}
static inline trt_dims trt_slice_layer_get_stride(const trt_methods *m, trt_slice_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_slice_layer_get_stride));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_slice_layer_set_mode(const trt_methods *m, trt_slice_layer *self, trt_sample_mode mode) {
    typedef void (*call)(void *, trt_sample_mode);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_slice_layer_set_mode));
    if (f != NULL)
        f(self_, mode);
}
static inline trt_sample_mode trt_slice_layer_get_mode(const trt_methods *m, trt_slice_layer *self) {
    typedef trt_sample_mode (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_slice_layer_get_mode));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_slice_layer_set_axes(const trt_methods *m, trt_slice_layer *self, const trt_dims *axes) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_slice_layer_set_axes));
    if (f != NULL)
        f(self_, axes);
}
static inline trt_dims trt_slice_layer_get_axes(const trt_methods *m, trt_slice_layer *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_slice_layer_get_axes));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline void trt_soft_max_layer_set_axes(const trt_methods *m, trt_soft_max_layer *self, uint32_t axes) {
    typedef void (*call)(void *, uint32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_soft_max_layer_set_axes));
    if (f != NULL)
        f(self_, axes);
}
static inline uint32_t trt_soft_max_layer_get_axes(const trt_methods *m, trt_soft_max_layer *self) {
    typedef uint32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_soft_max_layer_get_axes));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_tensor_set_name(const trt_methods *m, trt_tensor *self, const char *name) {
    typedef void (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_set_name));
    if (f != NULL)
        f(self_, name);
}
static inline const char *trt_tensor_get_name(const trt_methods *m, trt_tensor *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_get_name));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_tensor_set_dimensions(const trt_methods *m, trt_tensor *self, const trt_dims *dimensions) {
    typedef void (*call)(void *, const trt_dims *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_set_dimensions));
    if (f != NULL)
        f(self_, dimensions);
}
static inline trt_dims trt_tensor_get_dimensions(const trt_methods *m, trt_tensor *self) {
    typedef trt_dims (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_get_dimensions));
    return f != NULL ? f(self_) : (trt_dims){0};
}
static inline trt_data_type trt_tensor_get_type(const trt_methods *m, trt_tensor *self) {
    typedef trt_data_type (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_get_type));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_tensor_is_network_input(const trt_methods *m, trt_tensor *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_is_network_input));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_tensor_is_network_output(const trt_methods *m, trt_tensor *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_is_network_output));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_tensor_set_allowed_formats(const trt_methods *m, trt_tensor *self, uint32_t formats) {
    typedef void (*call)(void *, uint32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_set_allowed_formats));
    if (f != NULL)
        f(self_, formats);
}
static inline uint32_t trt_tensor_get_allowed_formats(const trt_methods *m, trt_tensor *self) {
    typedef uint32_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_get_allowed_formats));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_tensor_is_shape_tensor(const trt_methods *m, trt_tensor *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_is_shape_tensor));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_tensor_is_execution_tensor(const trt_methods *m, trt_tensor *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_is_execution_tensor));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_tensor_set_dimension_name(const trt_methods *m, trt_tensor *self, int32_t index, const char *name) {
    typedef void (*call)(void *, int32_t, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_set_dimension_name));
    if (f != NULL)
        f(self_, index, name);
}
static inline const char *trt_tensor_get_dimension_name(const trt_methods *m, trt_tensor *self, int32_t index) {
    typedef const char *(*call)(void *, int32_t);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_get_dimension_name));
    return f != NULL ? f(self_, index) : 0;
}
static inline trt_memory *trt_timing_cache_serialize(const trt_methods *m, trt_timing_cache *self) {
    typedef trt_memory *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_timing_cache_serialize));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_timing_cache_combine(const trt_methods *m, trt_timing_cache *self, const trt_timing_cache *input_cache, bool ignore_mismatch) {
    typedef bool (*call)(void *, const trt_timing_cache *, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_timing_cache_combine));
    return f != NULL ? f(self_, input_cache, ignore_mismatch) : 0;
}
static inline bool trt_timing_cache_reset(const trt_methods *m, trt_timing_cache *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_timing_cache_reset));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_topk_layer_set_operation(const trt_methods *m, trt_topk_layer *self, trt_topk_operation op) {
    typedef void (*call)(void *, trt_topk_operation);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_topk_layer_set_operation));
    if (f != NULL)
        f(self_, op);
}
static inline trt_topk_operation trt_topk_layer_get_operation(const trt_methods *m, trt_topk_layer *self) {
    typedef trt_topk_operation (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_topk_layer_get_operation));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_topk_layer_set_k(const trt_methods *m, trt_topk_layer *self, int32_t k) {
    typedef void (*call)(void *, int32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_topk_layer_set_k));
    if (f != NULL)
        f(self_, k);
}
static inline int32_t trt_topk_layer_get_k(const trt_methods *m, trt_topk_layer *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_topk_layer_get_k));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_topk_layer_set_reduce_axes(const trt_methods *m, trt_topk_layer *self, uint32_t reduce_axes) {
    typedef void (*call)(void *, uint32_t);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_topk_layer_set_reduce_axes));
    if (f != NULL)
        f(self_, reduce_axes);
}
static inline uint32_t trt_topk_layer_get_reduce_axes(const trt_methods *m, trt_topk_layer *self) {
    typedef uint32_t (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_topk_layer_get_reduce_axes));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_topk_layer_set_indices_type(const trt_methods *m, trt_topk_layer *self, trt_data_type type) {
    typedef bool (*call)(void *, trt_data_type);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_topk_layer_set_indices_type));
    return f != NULL ? f(self_, type) : 0;
}
static inline trt_data_type trt_topk_layer_get_indices_type(const trt_methods *m, trt_topk_layer *self) {
    typedef trt_data_type (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_topk_layer_get_indices_type));
    return f != NULL ? f(self_) : 0;
}
static inline trt_trip_limit trt_trip_limit_layer_get_trip_limit(const trt_methods *m, trt_trip_limit_layer *self) {
    typedef trt_trip_limit (*call)(void *);
    void *self_ = trt_self(self, 24);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_trip_limit_layer_get_trip_limit));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_unary_layer_set_operation(const trt_methods *m, trt_unary_layer *self, trt_unary_operation op) {
    typedef void (*call)(void *, trt_unary_operation);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_unary_layer_set_operation));
    if (f != NULL)
        f(self_, op);
}
static inline trt_unary_operation trt_unary_layer_get_operation(const trt_methods *m, trt_unary_layer *self) {
    typedef trt_unary_operation (*call)(void *);
    void *self_ = trt_self(self, 16);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_unary_layer_get_operation));
    return f != NULL ? f(self_) : 0;
}
static inline int64_t trt_weights_manager_get_size(const trt_methods *m, trt_weights_manager *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_weights_manager_get_size));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_weights_manager_save_to_buffer(const trt_methods *m, trt_weights_manager *self, void *dst, int64_t dst_size, trt_tensor_location location, trt_stream stream) {
    typedef bool (*call)(void *, void *, int64_t, trt_tensor_location, trt_stream);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_weights_manager_save_to_buffer));
    return f != NULL ? f(self_, dst, dst_size, location, stream) : 0;
}
static inline bool trt_weights_manager_save_to_stream(const trt_methods *m, trt_weights_manager *self, trt_stream_writer *writer, trt_stream stream) {
    typedef bool (*call)(void *, trt_stream_writer *, trt_stream);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_weights_manager_save_to_stream));
    return f != NULL ? f(self_, writer, stream) : 0;
}
static inline bool trt_weights_manager_unload(const trt_methods *m, trt_weights_manager *self, trt_stream stream) {
    typedef bool (*call)(void *, trt_stream);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_weights_manager_unload));
    return f != NULL ? f(self_, stream) : 0;
}
static inline bool trt_weights_manager_restore_from_buffer(const trt_methods *m, trt_weights_manager *self, const void *src, int64_t src_size, trt_tensor_location location, trt_stream stream) {
    typedef bool (*call)(void *, const void *, int64_t, trt_tensor_location, trt_stream);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_weights_manager_restore_from_buffer));
    return f != NULL ? f(self_, src, src_size, location, stream) : 0;
}
static inline bool trt_weights_manager_restore_from_vmm_allocation(const trt_methods *m, trt_weights_manager *self, uint64_t allocation_handle, int64_t offset, int64_t size, trt_stream stream) {
    typedef bool (*call)(void *, uint64_t, int64_t, int64_t, trt_stream);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_weights_manager_restore_from_vmm_allocation));
    return f != NULL ? f(self_, allocation_handle, offset, size, stream) : 0;
}
static inline bool trt_parser_parse(const trt_methods *m, trt_parser *self, const void *serialized_onnx_model, size_t serialized_onnx_model_size, const char *model_path) {
    typedef bool (*call)(void *, const void *, size_t, const char *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_parse));
    return f != NULL ? f(self_, serialized_onnx_model, serialized_onnx_model_size, model_path) : 0;
}
static inline bool trt_parser_parse_from_file(const trt_methods *m, trt_parser *self, const char *onnx_model_file, int verbosity) {
    typedef bool (*call)(void *, const char *, int);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_parse_from_file));
    return f != NULL ? f(self_, onnx_model_file, verbosity) : 0;
}
static inline bool trt_parser_supports_operator(const trt_methods *m, trt_parser *self, const char *op_name) {
    typedef bool (*call)(void *, const char *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_supports_operator));
    return f != NULL ? f(self_, op_name) : 0;
}
static inline int trt_parser_get_nb_errors(const trt_methods *m, trt_parser *self) {
    typedef int (*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_get_nb_errors));
    return f != NULL ? f(self_) : 0;
}
static inline const trt_parser_error *trt_parser_get_error(const trt_methods *m, trt_parser *self, int index) {
    typedef const trt_parser_error *(*call)(void *, int);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_get_error));
    return f != NULL ? f(self_, index) : 0;
}
static inline void trt_parser_clear_errors(const trt_methods *m, trt_parser *self) {
    typedef void (*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_clear_errors));
    if (f != NULL)
        f(self_);
}
static inline const char *const *trt_parser_get_used_vc_plugin_libraries(const trt_methods *m, trt_parser *self, int64_t *nb_plugin_libs) {
    typedef const char *const *(*call)(void *, int64_t *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_get_used_vc_plugin_libraries));
    return f != NULL ? f(self_, nb_plugin_libs) : 0;
}
static inline void trt_parser_set_flags(const trt_methods *m, trt_parser *self, uint32_t onnx_parser_flags) {
    typedef void (*call)(void *, uint32_t);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_set_flags));
    if (f != NULL)
        f(self_, onnx_parser_flags);
}
static inline uint32_t trt_parser_get_flags(const trt_methods *m, trt_parser *self) {
    typedef uint32_t (*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_get_flags));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_parser_clear_flag(const trt_methods *m, trt_parser *self, trt_onnx_parser_flag onnx_parser_flag) {
    typedef void (*call)(void *, trt_onnx_parser_flag);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_clear_flag));
    if (f != NULL)
        f(self_, onnx_parser_flag);
}
static inline void trt_parser_set_flag(const trt_methods *m, trt_parser *self, trt_onnx_parser_flag onnx_parser_flag) {
    typedef void (*call)(void *, trt_onnx_parser_flag);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_set_flag));
    if (f != NULL)
        f(self_, onnx_parser_flag);
}
static inline bool trt_parser_get_flag(const trt_methods *m, trt_parser *self, trt_onnx_parser_flag onnx_parser_flag) {
    typedef bool (*call)(void *, trt_onnx_parser_flag);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_get_flag));
    return f != NULL ? f(self_, onnx_parser_flag) : 0;
}
static inline const trt_tensor *trt_parser_get_layer_output_tensor(const trt_methods *m, trt_parser *self, const char *name, int64_t i) {
    typedef const trt_tensor *(*call)(void *, const char *, int64_t);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_get_layer_output_tensor));
    return f != NULL ? f(self_, name, i) : 0;
}
static inline bool trt_parser_supports_model_v2(const trt_methods *m, trt_parser *self, const void *serialized_onnx_model, size_t serialized_onnx_model_size, const char *model_path) {
    typedef bool (*call)(void *, const void *, size_t, const char *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_supports_model_v2));
    return f != NULL ? f(self_, serialized_onnx_model, serialized_onnx_model_size, model_path) : 0;
}
static inline int64_t trt_parser_get_nb_subgraphs(const trt_methods *m, trt_parser *self) {
    typedef int64_t (*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_get_nb_subgraphs));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_parser_is_subgraph_supported(const trt_methods *m, trt_parser *self, int64_t index) {
    typedef bool (*call)(void *, int64_t);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_is_subgraph_supported));
    return f != NULL ? f(self_, index) : 0;
}
static inline int64_t *trt_parser_get_subgraph_nodes(const trt_methods *m, trt_parser *self, int64_t index, int64_t *subgraph_length) {
    typedef int64_t *(*call)(void *, int64_t, int64_t *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_get_subgraph_nodes));
    return f != NULL ? f(self_, index, subgraph_length) : 0;
}
static inline bool trt_parser_load_model_proto(const trt_methods *m, trt_parser *self, const void *serialized_onnx_model, size_t serialized_onnx_model_size, const char *model_path) {
    typedef bool (*call)(void *, const void *, size_t, const char *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_load_model_proto));
    return f != NULL ? f(self_, serialized_onnx_model, serialized_onnx_model_size, model_path) : 0;
}
static inline bool trt_parser_load_initializer(const trt_methods *m, trt_parser *self, const char *name, const void *data, size_t size) {
    typedef bool (*call)(void *, const char *, const void *, size_t);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_load_initializer));
    return f != NULL ? f(self_, name, data, size) : 0;
}
static inline bool trt_parser_parse_model_proto(const trt_methods *m, trt_parser *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_parse_model_proto));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_parser_set_builder_config(const trt_methods *m, trt_parser *self, const trt_config *const builder_config) {
    typedef bool (*call)(void *, const trt_config *const);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_set_builder_config));
    return f != NULL ? f(self_, builder_config) : 0;
}
static inline void trt_parser_set_refit_observer(const trt_methods *m, trt_parser *self, trt_refitter_observer *observer) {
    typedef void (*call)(void *, trt_refitter_observer *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_set_refit_observer));
    if (f != NULL)
        f(self_, observer);
}
static inline trt_onnx_error_code trt_parser_error_code(const trt_methods *m, trt_parser_error *self) {
    typedef trt_onnx_error_code (*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_error_code));
    return f != NULL ? f(self_) : 0;
}
static inline const char *trt_parser_error_desc(const trt_methods *m, trt_parser_error *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_error_desc));
    return f != NULL ? f(self_) : 0;
}
static inline const char *trt_parser_error_file(const trt_methods *m, trt_parser_error *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_error_file));
    return f != NULL ? f(self_) : 0;
}
static inline int trt_parser_error_line(const trt_methods *m, trt_parser_error *self) {
    typedef int (*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_error_line));
    return f != NULL ? f(self_) : 0;
}
static inline const char *trt_parser_error_func(const trt_methods *m, trt_parser_error *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_error_func));
    return f != NULL ? f(self_) : 0;
}
static inline int trt_parser_error_node(const trt_methods *m, trt_parser_error *self) {
    typedef int (*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_error_node));
    return f != NULL ? f(self_) : 0;
}
static inline const char *trt_parser_error_node_name(const trt_methods *m, trt_parser_error *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_error_node_name));
    return f != NULL ? f(self_) : 0;
}
static inline const char *trt_parser_error_node_operator(const trt_methods *m, trt_parser_error *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_error_node_operator));
    return f != NULL ? f(self_) : 0;
}
static inline const char *const *trt_parser_error_local_function_stack(const trt_methods *m, trt_parser_error *self) {
    typedef const char *const *(*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_error_local_function_stack));
    return f != NULL ? f(self_) : 0;
}
static inline int32_t trt_parser_error_local_function_stack_size(const trt_methods *m, trt_parser_error *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_error_local_function_stack_size));
    return f != NULL ? f(self_) : 0;
}
static inline bool trt_parser_refitter_refit_from_bytes(const trt_methods *m, trt_parser_refitter *self, const void *serialized_onnx_model, size_t serialized_onnx_model_size, const char *model_path) {
    typedef bool (*call)(void *, const void *, size_t, const char *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_refitter_refit_from_bytes));
    return f != NULL ? f(self_, serialized_onnx_model, serialized_onnx_model_size, model_path) : 0;
}
static inline bool trt_parser_refitter_refit_from_file(const trt_methods *m, trt_parser_refitter *self, const char *onnx_model_file) {
    typedef bool (*call)(void *, const char *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_refitter_refit_from_file));
    return f != NULL ? f(self_, onnx_model_file) : 0;
}
static inline int32_t trt_parser_refitter_get_nb_errors(const trt_methods *m, trt_parser_refitter *self) {
    typedef int32_t (*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_refitter_get_nb_errors));
    return f != NULL ? f(self_) : 0;
}
static inline const trt_parser_error *trt_parser_refitter_get_error(const trt_methods *m, trt_parser_refitter *self, int32_t index) {
    typedef const trt_parser_error *(*call)(void *, int32_t);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_refitter_get_error));
    return f != NULL ? f(self_, index) : 0;
}
static inline void trt_parser_refitter_clear_errors(const trt_methods *m, trt_parser_refitter *self) {
    typedef void (*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_refitter_clear_errors));
    if (f != NULL)
        f(self_);
}
static inline bool trt_parser_refitter_load_model_proto(const trt_methods *m, trt_parser_refitter *self, const void *serialized_onnx_model, size_t serialized_onnx_model_size, const char *model_path) {
    typedef bool (*call)(void *, const void *, size_t, const char *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_refitter_load_model_proto));
    return f != NULL ? f(self_, serialized_onnx_model, serialized_onnx_model_size, model_path) : 0;
}
static inline bool trt_parser_refitter_load_initializer(const trt_methods *m, trt_parser_refitter *self, const char *name, const void *data, size_t size) {
    typedef bool (*call)(void *, const char *, const void *, size_t);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_refitter_load_initializer));
    return f != NULL ? f(self_, name, data, size) : 0;
}
static inline bool trt_parser_refitter_refit_model_proto(const trt_methods *m, trt_parser_refitter *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_refitter_refit_model_proto));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_parser_refitter_set_refit_observer(const trt_methods *m, trt_parser_refitter *self, trt_refitter_observer *observer) {
    typedef void (*call)(void *, trt_refitter_observer *);
    void *self_ = trt_self(self, 0);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_parser_refitter_set_refit_observer));
    if (f != NULL)
        f(self_, observer);
}
static inline trt_engine *trt_builder_build_engine_with_config(const trt_methods *m, trt_builder *self, trt_network *network, trt_config *config) {
    typedef trt_engine *(*call)(void *, trt_network *, trt_config *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_build_engine_with_config));
    return f != NULL ? f(self_, network, config) : 0;
}
static inline trt_memory *trt_builder_build_serialized_network_with_kernel_text(const trt_methods *m, trt_builder *self, trt_network *network, trt_config *config, trt_memory **kernel_text) {
    typedef trt_memory *(*call)(void *, trt_network *, trt_config *, trt_memory **);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_builder_build_serialized_network_with_kernel_text));
    return f != NULL ? f(self_, network, config, kernel_text) : 0;
}
static inline bool trt_config_set_remote_auto_tuning_config(const trt_methods *m, trt_config *self, const char *config) {
    typedef bool (*call)(void *, const char *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_set_remote_auto_tuning_config));
    return f != NULL ? f(self_, config) : 0;
}
static inline const char *trt_config_get_remote_auto_tuning_config(const trt_methods *m, trt_config *self) {
    typedef const char *(*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_config_get_remote_auto_tuning_config));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_tensor_set_broadcast_across_batch(const trt_methods *m, trt_tensor *self, bool broadcast_across_batch) {
    typedef void (*call)(void *, bool);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_set_broadcast_across_batch));
    if (f != NULL)
        f(self_, broadcast_across_batch);
}
static inline bool trt_tensor_get_broadcast_across_batch(const trt_methods *m, trt_tensor *self) {
    typedef bool (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_get_broadcast_across_batch));
    return f != NULL ? f(self_) : 0;
}
static inline trt_tensor_location trt_tensor_get_location(const trt_methods *m, trt_tensor *self) {
    typedef trt_tensor_location (*call)(void *);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_get_location));
    return f != NULL ? f(self_) : 0;
}
static inline void trt_tensor_set_location(const trt_methods *m, trt_tensor *self, trt_tensor_location location) {
    typedef void (*call)(void *, trt_tensor_location);
    void *self_ = trt_self(self, 8);
    call f = TRT_AS(call, trt_slot(m, self_, TRT_M_tensor_set_location));
    if (f != NULL)
        f(self_, location);
}

#endif
