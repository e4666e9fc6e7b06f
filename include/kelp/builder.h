/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/builder.h: builds engine images ahead of time.
 *
 * A network is assembled layer by layer (kelp/network.h) or parsed from ONNX. A configuration
 * specifies shapes, precisions, memory limits and the weights that a refit can replace. A provider
 * builds an engine image from both: the bytes of an engine, which a plan file stores and
 * kelp_engine_load loads. Built-in providers: `cpu` (the image is mapped and used in place),
 * `tensorrt` (an engine of NVIDIA TensorRT) and `null` (an engine that returns zeros).
 *
 *   kelp_runtime_create → kelp_builder_create → kelp_builder_create_network →
 *   kelp_network_add_… → kelp_builder_create_config → kelp_builder_build → kelp_engine_load
 *
 * Unless stated otherwise:
 *   - Objects are reference-counted and retain their parents; release them in any order. Layers
 *     and tensors belong to their network. Release functions accept NULL.
 *   - A builder, its networks and its configurations must be used by one thread at a time.
 *     Different builders are independent.
 *   - Errors: INVALID_ARGUMENT names layer, tensor and shapes. UNIMPLEMENTED names the features
 *     that the provider does not support. Messages include the log of the provider's library.
 *     kelp_status_domain returns the module that failed.
 *
 * Source: builder interfaces of TensorRT 10 (NvInfer.h), mapped one to one in docs/engines.md.
 */
#ifndef KELP_BUILDER_H_
#define KELP_BUILDER_H_

#include <kelp/engine.h>
#include <kelp/network.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Builder ---- */

/* Creates a builder for a provider: "cpu", "null", "tensorrt" or a registered name. The caller
 * releases it. Fails with NOT_FOUND and the list of providers, or UNAVAILABLE, with every path
 * that was tried, if the provider's library is not installed. */
KELP_API kelp_status *kelp_builder_create(kelp_runtime *runtime, const char *provider,
                                          kelp_builder **out) KELP_MUST_USE;

/* Adds a reference and returns `builder`. */
KELP_API kelp_builder *kelp_builder_retain(kelp_builder *builder);

/* Drops a reference. */
KELP_API void kelp_builder_release(kelp_builder *builder);

/* Returns the name of the provider. */
KELP_API const char *kelp_builder_provider(const kelp_builder *builder);

/* Creates an empty network. The caller releases it. */
KELP_API kelp_status *kelp_builder_create_network(kelp_builder *builder,
                                                  kelp_network **out) KELP_MUST_USE;

/* Creates a network from an ONNX file. Its inputs and outputs are those of the model; layers may
 * be added after them. The file is mapped. Fails like kelp_graph_load_file, and with UNIMPLEMENTED
 * and a list of all nodes that the provider does not support. */
KELP_API kelp_status *kelp_builder_parse_file(kelp_builder *builder, const char *path,
                                              kelp_network **out) KELP_MUST_USE;

/* Creates a network from an ONNX model in memory. `data` is borrowed until the network is
 * destroyed; then `release(userp)` is called, and also on failure (`release` may be NULL). `label`
 * (may be NULL) names the model in error messages. Otherwise the same as kelp_builder_parse_file.
 */
KELP_API kelp_status *kelp_builder_parse_bytes(kelp_builder *builder, const void *data,
                                               size_t size_bytes, const char *label,
                                               void (*release)(void *userp), void *userp,
                                               kelp_network **out) KELP_MUST_USE;

/* ---- Configuration ---- */

/* Flags of a build. A provider rejects flags that it does not support. No flag selects float16,
 * int8 or 8-bit floats: networks are strongly typed, so the element types of the tensors decide. */
typedef enum kelp_builder_flag {
    KELP_BUILD_BF16 = 1u << 0, /* multiply float32 in bfloat16, see KELP_PRECISION_BF16 */
    KELP_BUILD_TF32 = 1u << 1, /* multiply float32 in TensorFloat-32 */
    /* weights can be replaced in the engine, see kelp_engine_refittable_count */
    KELP_BUILD_REFIT = 1u << 2,
    /* only weights named by kelp_network_mark_refittable, at least one, can be replaced */
    KELP_BUILD_REFIT_INDIVIDUAL = 1u << 3,
    KELP_BUILD_STRIP_WEIGHTS = 1u << 4,    /* refittable weights are left out of the image */
    KELP_BUILD_WEIGHT_STREAMING = 1u << 5, /* weights may stay in host memory during inference */
    /* the image runs on other versions of the provider's library */
    KELP_BUILD_VERSION_COMPATIBLE = 1u << 6,
    KELP_BUILD_DISABLE_FUSION = 1u << 7, /* runs the network as written; for debugging */
    KELP_BUILD_MONITOR_MEMORY = 1u << 8, /* measures memory during the build */
    KELP_BUILD_DETAILED = 1u << 9        /* kelp_engine_inspect reports all details */
} kelp_builder_flag;

/* Memory that can be limited. */
typedef enum kelp_memory_pool {
    KELP_POOL_WORKSPACE = 0, /* activations and scratch memory of one context */
    KELP_POOL_DEVICE = 1     /* device memory */
} kelp_memory_pool;

/* Creates a configuration with default settings. The caller releases it. */
KELP_API kelp_status *kelp_builder_create_config(kelp_builder *builder,
                                                 kelp_builder_config **out) KELP_MUST_USE;

/* Adds a reference and returns `config`. */
KELP_API kelp_builder_config *kelp_builder_config_retain(kelp_builder_config *config);

/* Drops a reference. */
KELP_API void kelp_builder_config_release(kelp_builder_config *config);

/* Sets the flags, bits of kelp_builder_flag. Fails with UNIMPLEMENTED for a flag that the provider
 * does not support; the message lists the supported flags. `cpu` supports BF16, the three flags for
 * refitting and DISABLE_FUSION; `null` supports none. */
KELP_API kelp_status *kelp_builder_config_set_flags(kelp_builder_config *config,
                                                    uint32_t flags) KELP_MUST_USE;

/* Returns the flags. */
KELP_API uint32_t kelp_builder_config_flags(const kelp_builder_config *config);

/* Limits a memory pool; 0 removes the limit. If the limit is exceeded, the build selects algorithms
 * that need less memory or fails with RESOURCE_EXHAUSTED; `cpu` always fails. Fails with
 * INVALID_ARGUMENT for an unknown pool and UNIMPLEMENTED for a pool that the provider does not
 * limit: `cpu` limits KELP_POOL_WORKSPACE, `tensorrt` also KELP_POOL_DEVICE. */
KELP_API kelp_status *kelp_builder_config_set_memory_limit(kelp_builder_config *config,
                                                           kelp_memory_pool pool,
                                                           size_t size_bytes) KELP_MUST_USE;

/* Sets the optimization level, 0 (fastest build) to 5; 3 by default. On `cpu`, an image of level 0
 * to 2 contains the original graph and weights, and each load optimizes the graph and packs the
 * weights. From level 3 on, the build does both once, and the image is up to twice as large.
 * Results are bit-identical at all levels. Fails with INVALID_ARGUMENT for another level. */
KELP_API kelp_status *kelp_builder_config_set_optimization_level(kelp_builder_config *config,
                                                                 int level) KELP_MUST_USE;

/* Adds a GPU architecture that the image must support, as 10 * major + minor (86, 89, 120). If none
 * is added, the provider uses its default. Fails with INVALID_ARGUMENT for a provider without
 * devices or a value outside 10 to 999, and with OUT_OF_RANGE if 32 architectures were added
 * before. */
KELP_API kelp_status *kelp_builder_config_add_compute_capability(kelp_builder_config *config,
                                                                 int capability) KELP_MUST_USE;

/* Sets the timing cache, the measurements of earlier builds, to bytes that
 * kelp_builder_config_timing_cache returned. Copies `data`. Fails with UNIMPLEMENTED for a provider
 * that does not measure while it builds, such as `cpu`. */
KELP_API kelp_status *kelp_builder_config_set_timing_cache(kelp_builder_config *config,
                                                           const void *data,
                                                           size_t size_bytes) KELP_MUST_USE;

/* Returns the timing cache after a build, valid until the next build; NULL and size 0 if it is
 * empty. */
KELP_API const void *kelp_builder_config_timing_cache(const kelp_builder_config *config,
                                                      size_t *out_size_bytes);

/* Callback that receives the progress of a build: `phase` has reached `step` of `steps`. `parent`
 * is the name of the enclosing phase, or NULL. Calls are serialized; `cpu` calls it on the thread
 * that builds, `tensorrt` on any thread. Returning false cancels the build. */
typedef bool (*kelp_progress_fn)(void *userp, const char *phase, const char *parent, int step,
                                 int steps);

/* Sets the progress callback; NULL removes it. */
KELP_API void kelp_builder_config_set_progress(kelp_builder_config *config, kelp_progress_fn fn,
                                               void *userp);

/* ---- Optimization profiles ----
 *
 * A profile specifies the minimum, optimum and maximum shape of each input. Providers that compile
 * for particular shapes, such as `tensorrt`, need at least one profile for a network with dynamic
 * dimensions. Without profiles, `cpu` accepts any shape. With profiles, it enforces the bounds of
 * the profile that a context selects. */

/* Adds an empty profile. Fails with OUT_OF_RANGE if there are 16 profiles already. */
KELP_API kelp_status *kelp_builder_config_add_profile(kelp_builder_config *config,
                                                      size_t *out_index) KELP_MUST_USE;

/* Bound of a profile. */
typedef enum kelp_profile_selector {
    KELP_PROFILE_MIN = 0, /* minimum */
    KELP_PROFILE_OPT = 1, /* shape to optimize for */
    KELP_PROFILE_MAX = 2  /* maximum */
} kelp_profile_selector;

/* Sets one bound of an input's shape. All three bounds are required; kelp_builder_build checks
 * them against the network. Fails with OUT_OF_RANGE if there is no such profile and
 * INVALID_ARGUMENT for a wrong selector, rank or dimension. */
KELP_API kelp_status *kelp_builder_config_set_profile_shape(kelp_builder_config *config,
                                                            size_t profile, const char *input,
                                                            kelp_profile_selector selector,
                                                            int32_t rank,
                                                            const int64_t *shape) KELP_MUST_USE;

/* Sets one bound of the values of an integer input that determines shapes, at most KELP_MAX_RANK
 * values. Errors are those of kelp_builder_config_set_profile_shape. */
KELP_API kelp_status *kelp_builder_config_set_profile_values(kelp_builder_config *config,
                                                             size_t profile, const char *input,
                                                             kelp_profile_selector selector,
                                                             const int64_t *values,
                                                             size_t count) KELP_MUST_USE;

/* ---- Build ---- */

/* Reference-counted bytes. Thread-safe. */
typedef struct kelp_blob kelp_blob;

/* Returns the first byte, valid as long as the blob. */
KELP_API const void *kelp_blob_data(const kelp_blob *blob);

/* Returns the size in bytes. */
KELP_API size_t kelp_blob_size(const kelp_blob *blob);

/* Adds a reference and returns `blob`. */
KELP_API kelp_blob *kelp_blob_retain(kelp_blob *blob);

/* Drops a reference. */
KELP_API void kelp_blob_release(kelp_blob *blob);

/* Writes the bytes to a temporary file and renames it to `path`, so that a reader never sees a
 * partial file. */
KELP_API kelp_status *kelp_blob_save(const kelp_blob *blob, const char *path) KELP_MUST_USE;

/* Builds an engine image. The caller releases it. The same network, configuration and library
 * produce the same bytes. Does not modify `network`; `config` only receives timing measurements.
 * Fails with
 * - INVALID_ARGUMENT: the network or the configuration belongs to another provider, a profile does
 *   not match the network, or weights that determine a shape are marked as refittable;
 * - NOT_FOUND: a profile names an unknown input, or unknown weights are marked as refittable;
 * - FAILED_PRECONDITION: the network has no outputs, lacks a profile that the provider needs, or
 *   KELP_BUILD_REFIT_INDIVIDUAL is set and no weights are marked;
 * - UNIMPLEMENTED: the provider does not support a layer (lists all);
 * - CANCELLED: the progress callback returned false;
 * - RESOURCE_EXHAUSTED: a memory limit is exceeded. */
KELP_API kelp_status *kelp_builder_build(kelp_builder *builder, const kelp_network *network,
                                         kelp_builder_config *config,
                                         kelp_blob **out_plan) KELP_MUST_USE;

/* Serializes the network as an ONNX model, a file that contains the weights. The caller releases
 * it. Layers become nodes of ai.onnx 24, and marked tensors become outputs; a layer may become
 * several nodes, and a collective of one rank becomes an Identity. Assertions become nodes of
 * domain `kelp`, which only Kelp runs. A network that was parsed keeps its version of ai.onnx if
 * the added layers exist in this version, or gets version 24. The same network produces the same
 * bytes. Fails with FAILED_PRECONDITION if the network has no outputs, and UNIMPLEMENTED if
 * operators of the parsed model and of the layers have no common version (names a node). */
KELP_API kelp_status *kelp_network_to_onnx(const kelp_network *network,
                                           kelp_blob **out) KELP_MUST_USE;

/* Returns true if the provider can build the network. Otherwise returns false and sets
 * `*out_reason` to the reason, which the caller frees with kelp_status_free. Sets it to NULL on
 * success. `out_reason` may be NULL. */
KELP_API bool kelp_builder_supports(kelp_builder *builder, const kelp_network *network,
                                    kelp_status **out_reason);

#ifdef __cplusplus
}
#endif
#endif
