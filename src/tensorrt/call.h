/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls into TensorRT that can fail. Their statuses contain the library's messages. For other
 * calls, tables/calls.h has a typed function for each method:
 *
 *     trt_shape_layer *shape = trt_network_add_shape(m, network, x);
 *     trt_tensor *y = trt_layer_get_output(m, trt_as_layer(shape), 0);
 *
 * with `m` the library's methods. Ownership is that of TensorRT: layers and tensors belong to their
 * network, profiles to their builder. Networks, configs, parsers, engines, contexts, memories and
 * similar objects are destroyed with trt_destroy or trt_destroy_parser in reverse order of
 * creation. A parser owns the weights of its model and must exist until the network is built.
 *
 * Threads: as in TensorRT, an object is used by one thread at a time. Several contexts of an engine
 * can run at once.
 */
#ifndef KELP_TENSORRT_CALL_H_
#define KELP_TENSORRT_CALL_H_

#include "tensorrt/callbacks.h"
#include "tensorrt/library.h"
#include "tensorrt/log.h"
#include "tensorrt/tables/calls.h"

#include <kelp/tensor.h>

/* Converts a layer of any kind. All begin like an ILayer. */
#define trt_as_layer(layer) ((trt_layer *)(void *)(layer))
#define trt_as_loop_boundary(layer) ((trt_loop_boundary_layer *)(void *)(layer))
#define trt_as_if_boundary(layer) ((trt_if_conditional_boundary_layer *)(void *)(layer))

/* ---- objects ---- */
/* Create objects. Fail with UNAVAILABLE and the library's messages. The objects log to `log`, which
 * must outlive them. */
kelp_status *trt_create_builder(const trt_library *library, trt_log *log,
                                trt_builder **out) KELP_MUST_USE;
kelp_status *trt_create_runtime(const trt_library *library, trt_log *log,
                                trt_runtime **out) KELP_MUST_USE;
kelp_status *trt_create_refitter(const trt_library *library, trt_log *log, trt_engine *engine,
                                 trt_refitter **out) KELP_MUST_USE;
/* `flags`: bits 1 << TRT_NETWORK_DEFINITION_CREATION_FLAG_… */
kelp_status *trt_create_network(const trt_library *library, trt_log *log, trt_builder *builder,
                                uint32_t flags, trt_network **out) KELP_MUST_USE;
kelp_status *trt_create_config(const trt_library *library, trt_log *log, trt_builder *builder,
                               trt_config **out) KELP_MUST_USE;
/* Creates an ONNX parser. Fails with NOT_FOUND if the parser's library is not installed. */
kelp_status *trt_create_parser(const trt_library *library, trt_log *log, trt_network *network,
                               trt_parser **out) KELP_MUST_USE;
/* Creates an object that refits weights from an ONNX model. `refitter` must outlive it. */
kelp_status *trt_create_parser_refitter(const trt_library *library, trt_log *log,
                                        trt_refitter *refitter,
                                        trt_parser_refitter **out) KELP_MUST_USE;

/* Destroys an object of any interface except the parsers'. NULL has no effect. */
void trt_destroy(void *object);
void trt_destroy_parser(trt_parser *parser);
void trt_destroy_parser_refitter(trt_parser_refitter *refitter);

/* ---- versions ---- */
/* Fails with UNIMPLEMENTED, and a list of the versions that support it, if the library lacks the
 * method. */
kelp_status *trt_require(const trt_library *library, trt_method method) KELP_MUST_USE;

/* ---- building ---- */
/* Checks a layer that was just added: it is not NULL, and its outputs have shapes. Fails with
 * INVALID_ARGUMENT, `what`, the shapes of its inputs and the library's messages. */
kelp_status *trt_check_layer(const trt_library *library, trt_log *log, trt_layer *layer,
                             const char *what) KELP_MUST_USE;
/* Builds a plan. `progress` may be NULL. Fails with CANCELLED if it ended the build, otherwise with
 * the library's code and errors. */
kelp_status *trt_build(const trt_library *library, trt_log *log, trt_builder *builder,
                       trt_network *network, trt_config *config, trt_progress *progress,
                       trt_memory **out) KELP_MUST_USE;
/* Sets the shapes of an input in a profile. Fails with INVALID_ARGUMENT, the name and the shape. */
kelp_status *trt_set_profile(const trt_library *library, trt_log *log, trt_profile *profile,
                             const char *input, const trt_dims *min, const trt_dims *opt,
                             const trt_dims *max) KELP_MUST_USE;
/* Sets the compute capabilities (86 for 8.6) to build for. TensorRT-RTX only. Fails with
 * INVALID_ARGUMENT if one is unknown. */
kelp_status *trt_set_compute_capabilities(const trt_library *library, trt_log *log,
                                          trt_config *config, const int *capabilities,
                                          size_t count) KELP_MUST_USE;

/* ---- ONNX ---- */
/* Parses a model into the parser's network. `path` is the model's file, for external data, or NULL.
 * Fails with INVALID_ARGUMENT, or UNIMPLEMENTED for unknown operators, and all errors of the
 * parser: node, operator, kind, message. Call it once per parser. */
kelp_status *trt_parse(const trt_library *library, trt_log *log, trt_parser *parser,
                       const void *data, size_t size, const char *path) KELP_MUST_USE;
kelp_status *trt_parse_file(const trt_library *library, trt_log *log, trt_parser *parser,
                            const char *path) KELP_MUST_USE;

/* Callback for a subgraph that the parser supports; `nodes` are indices of nodes in the model.
 * Nodes without a subgraph are not supported. If not `certain`, the surrounding nodes prevented a
 * complete check. */
typedef void (*trt_subgraph_fn)(void *userp, bool certain, const int64_t *nodes, int64_t count);
/* Determines the supported subgraphs of a model. Sets `*out_all` if all nodes are supported.
 * Otherwise calls `fn` (may be NULL) and sets `*out_reasons`, else to "" (free it with
 * kelp_free_string). */
kelp_status *trt_supports_model(const trt_library *library, trt_log *log, trt_builder *builder,
                                const void *data, size_t size, const char *path, trt_subgraph_fn fn,
                                void *userp, bool *out_all, char **out_reasons) KELP_MUST_USE;

/* ---- execution ---- */
/* Creates an engine from a plan, whose bytes are not used afterwards. Fails with INVALID_ARGUMENT
 * or UNAVAILABLE and the library's messages (another version, another GPU, no driver). */
kelp_status *trt_deserialize(const trt_library *library, trt_log *log, trt_runtime *runtime,
                             const void *data, size_t size, trt_engine **out) KELP_MUST_USE;
/* Returns a failure of `what` unless `done`. For calls that return a bool. */
kelp_status *trt_check(trt_log *log, bool done, const char *what) KELP_MUST_USE;

/* ---- values ---- */
/* Converts a shape. Fails with OUT_OF_RANGE if `rank` exceeds TRT_MAX_DIMS. */
kelp_status *trt_dims_from(size_t rank, const int64_t *shape, trt_dims *out) KELP_MUST_USE;
/* Formats dimensions as "[2,3]". Returns the length like snprintf. */
size_t trt_dims_format(const trt_dims *dims, char *buffer, size_t capacity);
/* Convert an element type. Fail with UNIMPLEMENTED if there is no equivalent type. */
kelp_status *trt_data_type_from(kelp_dtype dtype, trt_data_type *out) KELP_MUST_USE;
kelp_status *trt_data_type_to(trt_data_type type, kelp_dtype *out) KELP_MUST_USE;

#endif
