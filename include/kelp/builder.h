/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/builder.h: builder → network → config → serialized engine.
 *
 * A network is put together layer by layer (kelp/network.h) or parsed from ONNX; a configuration
 * says how it may be run (shapes, precisions, memory, what may be refitted); a provider turns both
 * into a plan: bytes that kelp_engine_load (kelp/engine.h) runs. `cpu` is always there and makes a
 * file that is mapped, not read; `tensorrt` makes NVIDIA's; `null` makes one that answers zeros.
 *
 *   kelp_runtime_create → kelp_builder_create → kelp_builder_create_network →
 *   kelp_network_add_… → kelp_builder_create_config → kelp_builder_build → kelp_engine_load
 *
 * The runtime carries the logger, the allocator and the threads. Ownership: children retain their
 * parents and everything is counted, so that any order of release is fine. Layers and tensors
 * belong to their network. Threads: one at a time for a builder, its networks and configurations;
 * different builders are independent. Errors: INVALID_ARGUMENT with layer, tensor and shapes for
 * what is wrong; UNIMPLEMENTED lists what a provider cannot do; what the provider's library logged
 * is part of the message; kelp_status_domain says which part failed.
 * Source of the concepts: the builder interfaces of TensorRT 10 (NvInfer.h), mapped one to one in
 * docs/engines.md.
 */
#ifndef KELP_BUILDER_H_
#define KELP_BUILDER_H_

#include <kelp/engine.h>
#include <kelp/network.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- builder ---- */
/* "cpu", "null", "tensorrt" or the name of one that was registered; NOT_FOUND lists what there is.
 * UNAVAILABLE, with every path that was tried, when the provider's library is not installed. */
KELP_API kelp_status *kelp_builder_create(kelp_runtime *runtime, const char *provider,
                                          kelp_builder **out) KELP_MUST_USE;
KELP_API kelp_builder *kelp_builder_retain(kelp_builder *builder);
KELP_API void kelp_builder_release(kelp_builder *builder);
KELP_API const char *kelp_builder_provider(const kelp_builder *builder);

/* An empty network. */
KELP_API kelp_status *kelp_builder_create_network(kelp_builder *builder,
                                                  kelp_network **out) KELP_MUST_USE;
/* A network out of an ONNX model: its inputs and outputs are the network's, layers may be added
 * behind it. The file is mapped; bytes are borrowed until the network goes, then `release(userp)`
 * is called (may be NULL; also called when this fails). Nodes that the provider does not cover are
 * an UNIMPLEMENTED that lists all of them. */
KELP_API kelp_status *kelp_builder_parse_file(kelp_builder *builder, const char *path,
                                              kelp_network **out) KELP_MUST_USE;
KELP_API kelp_status *kelp_builder_parse_bytes(kelp_builder *builder, const void *data,
                                               size_t size_bytes, const char *label,
                                               void (*release)(void *userp), void *userp,
                                               kelp_network **out) KELP_MUST_USE;

/* ---- config ---- */
typedef enum kelp_builder_flag {
    /* Lower precisions that the provider may choose. The cpu has BF16 alone (KELP_PRECISION_BF16 in
     * kelp/engine.h); it and tensorrt else compute in the types of the network's tensors. */
    KELP_BUILD_FP16 = 1u << 0,
    KELP_BUILD_BF16 = 1u << 1,
    KELP_BUILD_INT8 = 1u << 2,
    KELP_BUILD_FP8 = 1u << 3,
    KELP_BUILD_TF32 = 1u << 4,
    KELP_BUILD_REFIT = 1u << 5,            /* every weight can be exchanged in the engine */
    KELP_BUILD_REFIT_INDIVIDUAL = 1u << 6, /* those that kelp_network_mark_refittable names */
    KELP_BUILD_STRIP_WEIGHTS = 1u << 7,    /* refittable weights are left out of the plan */
    KELP_BUILD_WEIGHT_STREAMING = 1u << 8, /* weights may stay off the device */
    KELP_BUILD_VERSION_COMPATIBLE = 1u << 9,
    KELP_BUILD_DISABLE_FUSION = 1u << 10, /* the network as it is written; for debugging */
    KELP_BUILD_MONITOR_MEMORY = 1u << 11,
    KELP_BUILD_DETAILED = 1u << 12 /* the inspector tells everything */
} kelp_builder_flag;

typedef enum kelp_memory_pool {
    KELP_POOL_WORKSPACE = 0, /* activations and scratch of one context */
    KELP_POOL_HOST = 1,      /* host memory that the build itself may use */
    KELP_POOL_DEVICE = 2
} kelp_memory_pool;

KELP_API kelp_status *kelp_builder_create_config(kelp_builder *builder,
                                                 kelp_builder_config **out) KELP_MUST_USE;
KELP_API kelp_builder_config *kelp_builder_config_retain(kelp_builder_config *config);
KELP_API void kelp_builder_config_release(kelp_builder_config *config);
/* Bits of kelp_builder_flag. UNIMPLEMENTED names a flag that the provider has not, and those that
 * it has: the cpu has BF16, the three for refitting and DISABLE_FUSION, `null` none. */
KELP_API kelp_status *kelp_builder_config_set_flags(kelp_builder_config *config,
                                                    uint32_t flags) KELP_MUST_USE;
KELP_API uint32_t kelp_builder_config_flags(const kelp_builder_config *config);
/* The build fails with RESOURCE_EXHAUSTED, or picks what needs less, when a pool's limit is passed.
 * 0: no limit, which is the default. UNIMPLEMENTED for a pool that the provider does not count: the
 * cpu counts KELP_POOL_WORKSPACE, `tensorrt` that and KELP_POOL_DEVICE. */
KELP_API kelp_status *kelp_builder_config_set_memory_limit(kelp_builder_config *config,
                                                           kelp_memory_pool pool,
                                                           size_t size_bytes) KELP_MUST_USE;
/* 0 (fastest build) to 5 [3]. On the cpu a plan of level 0 to 2 holds the graph and its weights as
 * the model has them, about half as large where weights are packed, and is optimised and packed
 * each time it is loaded; from 3 on that is done once, in the build. Answers are the same bits. */
KELP_API kelp_status *kelp_builder_config_set_optimization_level(kelp_builder_config *config,
                                                                 int level) KELP_MUST_USE;
/* GPUs that the plan is made for, as 10 * major + minor (86, 89, 120); none: the provider's
 * default. INVALID_ARGUMENT for a provider without devices. */
KELP_API kelp_status *kelp_builder_config_add_compute_capability(kelp_builder_config *config,
                                                                 int capability) KELP_MUST_USE;
/* What earlier builds measured: bytes from kelp_builder_config_timing_cache, copied. UNIMPLEMENTED,
 * of any size, for a provider that measures nothing while it builds, such as the cpu. */
KELP_API kelp_status *kelp_builder_config_set_timing_cache(kelp_builder_config *config,
                                                           const void *data,
                                                           size_t size_bytes) KELP_MUST_USE;
/* After a build; NULL and 0 when the provider keeps none. Valid until the next build. */
KELP_API const void *kelp_builder_config_timing_cache(const kelp_builder_config *config,
                                                      size_t *out_size_bytes);
/* Called from the building thread: `phase` (nested phases have a parent), `step` of `steps`. false
 * cancels: the build returns CANCELLED. */
typedef bool (*kelp_progress_fn)(void *userp, const char *phase, const char *parent, int step,
                                 int steps);
KELP_API void kelp_builder_config_set_progress(kelp_builder_config *config, kelp_progress_fn fn,
                                               void *userp);

/* ---- optimisation profiles: the shapes that inputs will have ---- */
/* A network with open extents needs one at least for a provider that compiles for shapes; the cpu
 * takes any shape without, and holds contexts to the profile they chose with. At most 16. */
KELP_API kelp_status *kelp_builder_config_add_profile(kelp_builder_config *config,
                                                      size_t *out_index) KELP_MUST_USE;
typedef enum kelp_profile_selector {
    KELP_PROFILE_MIN = 0,
    KELP_PROFILE_OPT = 1,
    KELP_PROFILE_MAX = 2
} kelp_profile_selector;
KELP_API kelp_status *kelp_builder_config_set_profile_shape(kelp_builder_config *config,
                                                            size_t profile, const char *input,
                                                            kelp_profile_selector selector,
                                                            int32_t rank,
                                                            const int64_t *shape) KELP_MUST_USE;
/* Values of an input that gives shapes: bounds that the provider may rely on. */
KELP_API kelp_status *kelp_builder_config_set_profile_values(kelp_builder_config *config,
                                                             size_t profile, const char *input,
                                                             kelp_profile_selector selector,
                                                             const int64_t *values,
                                                             size_t count) KELP_MUST_USE;

/* ---- build ---- */
/* Bytes that are counted. */
typedef struct kelp_blob kelp_blob;
KELP_API const void *kelp_blob_data(const kelp_blob *blob);
KELP_API size_t kelp_blob_size(const kelp_blob *blob);
KELP_API kelp_blob *kelp_blob_retain(kelp_blob *blob);
KELP_API void kelp_blob_release(kelp_blob *blob);
/* Writes beside the target and renames, so that a reader never sees half a plan. */
KELP_API kelp_status *kelp_blob_save(const kelp_blob *blob, const char *path) KELP_MUST_USE;

/* The same network, configuration and library give the same bytes. CANCELLED when the progress
 * callback said so. INVALID_ARGUMENT for a network or configuration of another provider's builder.
 * Neither network nor config is changed. */
KELP_API kelp_status *kelp_builder_build(kelp_builder *builder, const kelp_network *network,
                                         kelp_builder_config *config,
                                         kelp_blob **out_plan) KELP_MUST_USE;
/* Which of the network's layers the provider can build: true, or false and in `out_reason` (freed
 * by the caller) why not. */
KELP_API bool kelp_builder_supports(kelp_builder *builder, const kelp_network *network,
                                    kelp_status **out_reason);

#ifdef __cplusplus
}
#endif
#endif
