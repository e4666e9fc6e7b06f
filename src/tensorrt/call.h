/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls into TensorRT that can fail, as statuses that carry what the library said; for everything
 * else tables/calls.h has a typed function a method:
 *
 *     trt_activation_layer *relu = trt_network_add_activation(m, network, x,
 * TRT_ACTIVATION_TYPE_RELU); trt_tensor *y = trt_layer_get_output(m, trt_as_layer(relu), 0);
 *
 * with `m` the library's methods. Ownership is the library's: layers and tensors belong to their
 * network, profiles to their builder; networks, configs, parsers, engines, contexts, memories and
 * so on are destroyed with trt_destroy or trt_destroy_parser, those that were made last first. A
 * parser owns the weights of the model that it read: it lives until the network is built.
 *
 * Threads: one object, one thread, as TensorRT says; several contexts of an engine run at once.
 */
#ifndef KELP_TENSORRT_CALL_H_
#define KELP_TENSORRT_CALL_H_

#include "tensorrt/callbacks.h"
#include "tensorrt/library.h"
#include "tensorrt/log.h"
#include "tensorrt/tables/calls.h"

#include <kelp/tensor.h>

/* A layer of any kind; each starts as an ILayer does. */
#define trt_as_layer(layer) ((trt_layer *)(void *)(layer))
#define trt_as_loop_boundary(layer) ((trt_loop_boundary_layer *)(void *)(layer))
#define trt_as_if_boundary(layer) ((trt_if_conditional_boundary_layer *)(void *)(layer))

/* ---- objects ---- */
/* All: UNAVAILABLE, with the library's words, when it makes none. The objects log to `log`, which
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
/* NOT_FOUND when the parser's library is not there. */
kelp_status *trt_create_parser(const trt_library *library, trt_log *log, trt_network *network,
                               trt_parser **out) KELP_MUST_USE;
/* The same for refitting weights from a model; `refitter` outlives it. */
kelp_status *trt_create_parser_refitter(const trt_library *library, trt_log *log,
                                        trt_refitter *refitter,
                                        trt_parser_refitter **out) KELP_MUST_USE;

/* Objects of any interface but the parser's; NULL is fine. */
void trt_destroy(void *object);
void trt_destroy_parser(trt_parser *parser);
void trt_destroy_parser_refitter(trt_parser_refitter *refitter);

/* ---- what a version has ---- */
/* UNIMPLEMENTED, naming the version and those that have it, when the library lacks the method. */
kelp_status *trt_require(const trt_library *library, trt_method method) KELP_MUST_USE;

/* ---- building ---- */
/* What can be checked of a layer that was just added: that it is there, and that its outputs have
 * shapes. INVALID_ARGUMENT, naming `what`, the shapes of its inputs and the library's words. */
kelp_status *trt_check_layer(const trt_library *library, trt_log *log, trt_layer *layer,
                             const char *what) KELP_MUST_USE;
/* `progress` may be NULL. CANCELLED when it ended the build; else the library's errors, with the
 * code that it gave. */
kelp_status *trt_build(const trt_library *library, trt_log *log, trt_builder *builder,
                       trt_network *network, trt_config *config, trt_progress *progress,
                       trt_memory **out) KELP_MUST_USE;
/* One dimension range of an input: INVALID_ARGUMENT with name and shape when it is refused. */
kelp_status *trt_set_profile(const trt_library *library, trt_log *log, trt_profile *profile,
                             const char *input, const trt_dims *min, const trt_dims *opt,
                             const trt_dims *max) KELP_MUST_USE;
/* Compute capabilities ("sm86") to build for, RTX only; INVALID_ARGUMENT for one that is unknown.
 */
kelp_status *trt_set_compute_capabilities(const trt_library *library, trt_log *log,
                                          trt_config *config, const int *capabilities,
                                          size_t count) KELP_MUST_USE;

/* ---- ONNX ---- */
/* Reads a model into the parser's network. `path` is where external data lies beside, or NULL.
 * INVALID_ARGUMENT, or UNIMPLEMENTED for operators that it does not know, with each of the parser's
 * errors: node, operator, kind, words. A parser parses once. */
kelp_status *trt_parse(const trt_library *library, trt_log *log, trt_parser *parser,
                       const void *data, size_t size, const char *path) KELP_MUST_USE;
kelp_status *trt_parse_file(const trt_library *library, trt_log *log, trt_parser *parser,
                            const char *path) KELP_MUST_USE;

/* Called once a subgraph that the parser can read; `nodes` are numbers in the model, and a node
 * that is in no subgraph cannot be read. Not `certain`: what surrounds it hid whether all of it
 * builds.
 */
typedef void (*trt_subgraph_fn)(void *userp, bool certain, const int64_t *nodes, int64_t count);
/* Which parts of a model can be read: *out_all when all can, else `fn` (may be NULL) is called and
 * *out_reasons says what is wrong (free with kelp_free_string; "" when all can). */
kelp_status *trt_supports_model(const trt_library *library, trt_log *log, trt_builder *builder,
                                const void *data, size_t size, const char *path, trt_subgraph_fn fn,
                                void *userp, bool *out_all, char **out_reasons) KELP_MUST_USE;

/* ---- running ---- */
/* The engine of serialized bytes, which may go once it is there. INVALID_ARGUMENT or UNAVAILABLE
 * with the library's words (another version, another GPU, no driver). */
kelp_status *trt_deserialize(const trt_library *library, trt_log *log, trt_runtime *runtime,
                             const void *data, size_t size, trt_engine **out) KELP_MUST_USE;
/* A failure of `what` unless `done`: for the calls that answer with a bool. */
kelp_status *trt_check(trt_log *log, bool done, const char *what) KELP_MUST_USE;

/* ---- values ---- */
/* `rank` up to TRT_MAX_DIMS; OUT_OF_RANGE beyond. */
kelp_status *trt_dims_from(size_t rank, const int64_t *shape, trt_dims *out) KELP_MUST_USE;
/* "[2,3]"; the length it has, as snprintf does. */
size_t trt_dims_format(const trt_dims *dims, char *buffer, size_t capacity);
/* UNIMPLEMENTED when the other side has no such type. */
kelp_status *trt_data_type_from(kelp_dtype dtype, trt_data_type *out) KELP_MUST_USE;
kelp_status *trt_data_type_to(trt_data_type type, kelp_dtype *out) KELP_MUST_USE;

#endif
