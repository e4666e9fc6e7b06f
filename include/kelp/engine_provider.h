/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/engine_provider.h: what builds and runs engines, for those who write one.
 *
 * A provider turns a network and a configuration into a plan, and a plan into an engine. The
 * built-in `cpu`, `null` (the one to clone: src/null/) and `tensorrt` are providers, and
 * a plugin may bring one. Users see kelp/builder.h and kelp/engine.h only. Threads: a provider is
 * called from several threads at once, for different objects.
 */
#ifndef KELP_ENGINE_PROVIDER_H_
#define KELP_ENGINE_PROVIDER_H_

#include <kelp/builder.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- engines and contexts of a provider ---- zeroed entries are optional, and answered by
 * UNIMPLEMENTED that names provider and call. Arguments were checked: indexes exist, dtypes and
 * shapes fit the engine's inputs and the profile that was chosen, and all inputs are bound when
 * prepare, invoke, enqueue or capture is called (set_profile unbinds them). */
typedef struct kelp_engine_vtbl {
    uint32_t struct_size; /* sizeof(kelp_engine_vtbl) */
    void (*destroy_engine)(void *engine);
    /* Text or JSON for people and tools, appended through `write`. */
    kelp_status *(*inspect)(void *engine, bool json,
                            void (*write)(void *userp, const char *text, size_t length),
                            void *userp);
    kelp_status *(*workspace_bytes)(void *engine, size_t profile, size_t *out);
    kelp_status *(*refit)(void *engine, const kelp_weights *weights, size_t count);

    kelp_status *(*create_context)(void *engine, void **out_context);
    void (*destroy_context)(void *context);
    kelp_status *(*set_profile)(void *context, size_t profile);
    kelp_status *(*set_input)(void *context, size_t index, const kelp_tensor *tensor);
    kelp_status *(*set_output)(void *context, size_t index, void *data, size_t capacity_bytes);
    /* Shapes of the outputs for what is bound: data NULL, rank -1 where only running tells. */
    kelp_status *(*prepare)(void *context, kelp_tensor *out_outputs);
    /* Runs and waits; sets the outputs. */
    kelp_status *(*invoke)(void *context, kelp_tensor *out_outputs);
    /* Puts the run on a stream of the provider's (a CUstream, …) and returns. */
    kelp_status *(*enqueue)(void *context, void *native_stream);

    /* ---- since 0.1.0's second table; those that end before lack them ---- */
    /* Where output `index` lies: what is bound, what the allocator gives and the context's own. */
    kelp_status *(*set_output_device)(void *context, size_t index, DLDevice device);
    /* Asked in each run once the size is known; a NULL function: what set_output said, which was
     * called with NULL before. */
    kelp_status *(*set_output_allocator)(void *context, size_t index, kelp_output_allocator fn,
                                         void *userp);
    /* NULL: the context's own. */
    kelp_status *(*set_workspace)(void *context, void *data, size_t size_bytes);
    /* NULL: nobody is told. */
    kelp_status *(*set_profiler)(void *context, kelp_profile_fn fn, void *userp);
    void (*cancel)(void *context); /* from any thread, during a run or not */
    /* Records the run as it is bound. The provider notices when something is bound anew. */
    kelp_status *(*capture)(void *context, void **out_capture, size_t *out_steps);
    kelp_status *(*replay)(void *capture, kelp_tensor *out_outputs);
    void (*destroy_capture)(void *capture); /* before its context's destruction */
    kelp_status *(*set_runtime_cache)(void *engine, const void *data, size_t size_bytes);
    kelp_status *(*write_runtime_cache)(void *engine,
                                        void (*write)(void *userp, const char *data, size_t length),
                                        void *userp);
    kelp_status *(*streamable_weights)(void *engine, size_t *out_bytes);
    kelp_status *(*set_weight_budget)(void *engine, size_t device_bytes);

    /* ---- since 0.1.0's third table ---- */
    /* Returns the array of output descriptors that the provider keeps, one for each output, valid
     * until destroy_context; prepare, invoke and replay are then called with this array. NULL: Kelp
     * allocates the array. */
    kelp_tensor *(*outputs)(void *context);
    /* Polled during a run, which ends with CANCELLED once `fn` returns true; NULL: no callback. */
    void (*set_interrupt)(void *context, kelp_interrupt_fn fn, void *userp);
    /* Prepares a new context, before inputs are bound, for the shapes that the model declares. */
    void (*warm_up)(void *context);
    kelp_plan_stats (*plan_stats)(const void *context);
    kelp_engine_stats (*stats)(const void *engine);
    /* Subgraphs that other providers run; `index` is less than the count. */
    size_t (*subgraph_count)(const void *engine);
    kelp_subgraph_info (*subgraph)(const void *engine, size_t index);
} kelp_engine_vtbl;

/* What an engine of a provider is made of. Names and symbols are borrowed from `engine`. */
typedef struct kelp_engine_parts {
    uint32_t struct_size; /* sizeof(kelp_engine_parts) */
    const char *provider;
    const kelp_engine_vtbl *vtbl;
    void *engine; /* for the table's calls; destroyed with the kelp_engine */
    const kelp_io_info *inputs, *outputs;
    size_t input_count, output_count, profile_count;
    /* Both are copied, and may be NULL. [profile_count * input_count][3] by kelp_profile_selector;
     * rank -1 where the profile gives no bounds: shapes are held to them before set_input. */
    const kelp_shape (*profile_shapes)[3];
    const char *const *refittable; /* names of weights that refit takes */
    size_t refittable_count;
} kelp_engine_parts;
/* Takes `parts->engine`, also when this fails. Retains the runtime. Both structs may be shorter
 * than here, as their struct_size says. */
KELP_API kelp_status *kelp_engine_wrap(kelp_runtime *runtime, const kelp_engine_parts *parts,
                                       kelp_engine **out) KELP_MUST_USE;

/* ---- providers ---- */
#define KELP_ENGINE_PROVIDER_ABI_VERSION 1
typedef struct kelp_engine_provider {
    uint32_t abi_version; /* KELP_ENGINE_PROVIDER_ABI_VERSION */
    uint32_t struct_size; /* sizeof(kelp_engine_provider) */
    const char *name;
    uint32_t flags;      /* kelp_builder_flag bits that it knows */
    bool has_devices;    /* compute capabilities may be chosen */
    bool needs_profiles; /* open extents take a profile */
    /* NULL, or why it cannot be used here: UNAVAILABLE with what was tried. May be NULL: always. */
    kelp_status *(*available)(void *self, kelp_runtime *runtime);
    /* NULL, or UNIMPLEMENTED that lists the layers and nodes that it has not. */
    kelp_status *(*supports)(void *self, kelp_runtime *runtime, const kelp_network *network);
    kelp_status *(*build)(void *self, kelp_runtime *runtime, const kelp_network *network,
                          kelp_builder_config *config, kelp_blob **out_plan);
    /* Whether the bytes are a plan of this provider; looks at the first few. */
    bool (*recognises)(void *self, const void *data, size_t size_bytes);
    /* `release(userp)` is called when the bytes are no longer needed, also when this fails. */
    kelp_status *(*load)(void *self, kelp_runtime *runtime, const void *data, size_t size_bytes,
                         const char *label, void (*release)(void *userp), void *userp,
                         kelp_engine **out);
    void *self;
    /* What is installed, and what it runs on: lines of text, handed to `write` piece by piece. May
     * be NULL, and left out of tables that end before it. */
    kelp_status *(*describe)(void *self, kelp_runtime *runtime,
                             void (*write)(void *userp, const char *text, size_t length),
                             void *userp);
    /* Tables that end before these take any limit and any timing cache. */
    uint32_t pools;    /* bits 1 << kelp_memory_pool: limits that it keeps */
    bool timing_cache; /* it measures while it builds, and reads and writes what it measured */
    /* Creates an engine of a graph without a plan in between, for kelp_engine_create, which calls
     * the first provider that has it. Retains the graph. May be NULL. */
    kelp_status *(*create_engine)(void *self, kelp_runtime *runtime, kelp_graph *graph,
                                  const kelp_engine_options *options, kelp_engine **out);
} kelp_engine_provider;

/* The table lives as long as the runtime. ALREADY_EXISTS, or INVALID_ARGUMENT for a table of
 * another version or without build and load. */
KELP_API kelp_status *
kelp_engine_provider_register(kelp_runtime *runtime,
                              const kelp_engine_provider *provider) KELP_MUST_USE;
KELP_API size_t kelp_engine_provider_count(const kelp_runtime *runtime);
KELP_API const kelp_engine_provider *kelp_engine_provider_at(const kelp_runtime *runtime,
                                                             size_t index);

/* ---- for build ---- */
/* Takes the bytes: `release(userp)` is called when they are no longer needed, also when this fails.
 */
KELP_API kelp_status *kelp_blob_wrap(kelp_allocator allocator, const void *data, size_t size_bytes,
                                     void (*release)(void *userp), void *userp,
                                     kelp_blob **out) KELP_MUST_USE;
/* false: cancel. Without a callback: true. */
KELP_API bool kelp_builder_config_progress(kelp_builder_config *config, const char *phase,
                                           const char *parent, int step, int steps);
KELP_API size_t kelp_builder_config_memory_limit(const kelp_builder_config *config,
                                                 kelp_memory_pool pool);
KELP_API int kelp_builder_config_optimization_level(const kelp_builder_config *config);
KELP_API size_t kelp_builder_config_capabilities(const kelp_builder_config *config,
                                                 const int **out);
typedef struct kelp_profile_shape {
    const char *input;
    bool has_shape, has_values;
    kelp_shape shapes[3]; /* by kelp_profile_selector */
    kelp_shape values[3];
} kelp_profile_shape;
KELP_API size_t kelp_builder_config_profile_count(const kelp_builder_config *config);
KELP_API size_t kelp_builder_config_profile(const kelp_builder_config *config, size_t profile,
                                            const kelp_profile_shape **out);
/* Copies what the build has measured for kelp_builder_config_timing_cache. */
KELP_API kelp_status *kelp_builder_config_store_timing_cache(kelp_builder_config *config,
                                                             const void *data,
                                                             size_t size_bytes) KELP_MUST_USE;
/* The network as an ONNX model, for providers that read such. */
KELP_API kelp_status *kelp_network_to_onnx(const kelp_network *network,
                                           kelp_blob **out) KELP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
