/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/engine_provider.h: how to add a provider that builds and runs engines.
 *
 * A provider turns a network and a configuration into an engine image, and an engine image into an
 * engine. `cpu`, `null` and `tensorrt` are built in; applications register others with
 * kelp_engine_provider_register. Users of engines need only kelp/builder.h and kelp/engine.h.
 *
 * Unless stated otherwise:
 *   - A provider's functions are called by several threads at once, for different objects.
 *     Functions of one context are called by one thread at a time.
 *   - Callbacks return NULL or a failure, which reaches the application unchanged.
 *   - Tables may be shorter than the current struct: `struct_size` tells which fields exist.
 */
#ifndef KELP_ENGINE_PROVIDER_H_
#define KELP_ENGINE_PROVIDER_H_

#include <kelp/builder.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Engines and contexts ---- */

/* Functions of an engine and its contexts. `engine` is kelp_engine_parts.engine and `context` is
 * what create_context returned. A NULL function makes the corresponding call fail with
 * UNIMPLEMENTED. Arguments are checked before: indices exist, and types and shapes match the
 * engine's inputs and the selected profile. All inputs are bound when prepare, invoke, enqueue or
 * capture is called; set_profile unbinds them. */
typedef struct kelp_engine_vtbl {
    uint32_t struct_size; /* sizeof(kelp_engine_vtbl) */
    /* Frees the engine, after all of its contexts. */
    void (*destroy_engine)(void *engine);
    /* Describes the engine as text or JSON, passed to `write` in pieces. */
    kelp_status *(*inspect)(void *engine, bool json,
                            void (*write)(void *userp, const char *text, size_t length),
                            void *userp);
    /* Computes the workspace that a context needs for a profile. */
    kelp_status *(*workspace_bytes)(void *engine, size_t profile, size_t *out);
    /* Replaces weights by name; all or none. */
    kelp_status *(*refit)(void *engine, const kelp_weights *weights, size_t count);
    /* Creates a context. */
    kelp_status *(*create_context)(void *engine, void **out_context);
    /* Frees a context and its bindings. */
    void (*destroy_context)(void *context);
    /* Selects an optimization profile. */
    kelp_status *(*set_profile)(void *context, size_t profile);
    /* Binds an input. The descriptor is valid during the call; the elements are valid until the
     * inference has finished. */
    kelp_status *(*set_input)(void *context, size_t index, const kelp_tensor *tensor);
    /* Binds memory for an output; NULL: memory of the context. */
    kelp_status *(*set_output)(void *context, size_t index, void *data, size_t capacity_bytes);
    /* Sets the outputs' types and shapes for the bound inputs, with NULL data; rank -1 where only
     * running tells. */
    kelp_status *(*prepare)(void *context, kelp_tensor *out_outputs);
    /* Runs an inference, waits for it and sets the outputs. */
    kelp_status *(*invoke)(void *context, kelp_tensor *out_outputs);
    /* Enqueues an inference on a stream of the device library (such as a CUstream) and returns. */
    kelp_status *(*enqueue)(void *context, void *native_stream);
    /* Sets the device of an output: of bound memory, of its allocator or of the context's memory.
     */
    kelp_status *(*set_output_device)(void *context, size_t index, DLDevice device);
    /* Sets the allocator that supplies memory for an output in each inference; NULL removes it.
     * set_output was called with NULL before. */
    kelp_status *(*set_output_allocator)(void *context, size_t index, kelp_output_allocator fn,
                                         void *userp);
    /* Supplies memory for activations; NULL: memory of the context. */
    kelp_status *(*set_workspace)(void *context, void *data, size_t size_bytes);
    /* Sets the profiler; NULL removes it. */
    kelp_status *(*set_profiler)(void *context, kelp_profile_fn fn, void *userp);
    /* Cancels the running inference, if any. Called from any thread. */
    void (*cancel)(void *context);
    /* Records the inference with the current bindings. The provider detects later changes of the
     * bindings. */
    kelp_status *(*capture)(void *context, void **out_capture, size_t *out_steps);
    /* Runs a recorded inference. */
    kelp_status *(*replay)(void *capture, kelp_tensor *out_outputs);
    /* Frees a recording, always before its context. */
    void (*destroy_capture)(void *capture);
    /* Supplies compiled kernels of an earlier process; must copy them. */
    kelp_status *(*set_runtime_cache)(void *engine, const void *data, size_t size_bytes);
    /* Passes the kernels compiled so far to `write`. */
    kelp_status *(*write_runtime_cache)(void *engine,
                                        void (*write)(void *userp, const char *data, size_t length),
                                        void *userp);
    /* Gets the number of bytes of weights that may stay in host memory. */
    kelp_status *(*streamable_weights)(void *engine, size_t *out_bytes);
    /* Limits the bytes of streamable weights on the device. */
    kelp_status *(*set_weight_budget)(void *engine, size_t device_bytes);

    /* Returns the provider's own array of output descriptors, one per output, valid until
     * destroy_context. prepare, invoke and replay then receive this array. NULL: Kelp allocates the
     * array. */
    kelp_tensor *(*outputs)(void *context);
    /* Sets a callback that is polled during a run; the run fails with CANCELLED once it returns
     * true. NULL removes it. */
    void (*set_interrupt)(void *context, kelp_interrupt_fn fn, void *userp);
    /* Prepares a new context for the shapes that the model declares, before inputs are bound. */
    void (*warm_up)(void *context);
    /* Returns counters of the shapes that were prepared last. */
    kelp_plan_stats (*plan_stats)(const void *context);
    /* Returns counters of the engine. */
    kelp_engine_stats (*stats)(const void *engine);
    /* Returns the number of subgraphs that other providers run as a whole. */
    size_t (*subgraph_count)(const void *engine);
    /* Returns a subgraph; `index` is in range. */
    kelp_subgraph_info (*subgraph)(const void *engine, size_t index);
} kelp_engine_vtbl;

/* Contents of an engine, supplied by its provider. */
typedef struct kelp_engine_parts {
    uint32_t struct_size;         /* sizeof(kelp_engine_parts) */
    const char *provider;         /* name of the provider, static */
    const kelp_engine_vtbl *vtbl; /* functions; copied */
    void *engine;                 /* passed to the functions; destroyed with the engine */
    /* inputs and outputs; copied, while names and symbols are borrowed from `engine` */
    const kelp_io_info *inputs, *outputs;
    /* number of inputs, outputs and profiles */
    size_t input_count, output_count, profile_count;
    /* Shapes per profile and input, [profile_count * input_count][3], the last index a
     * kelp_profile_selector. Rank -1 where a profile has no bounds. Inputs are checked against
     * them before set_input. Copied; may be NULL. */
    const kelp_shape (*profile_shapes)[3];
    const char *const *refittable; /* names of replaceable weights; copied; may be NULL */
    size_t refittable_count;       /* number of replaceable weights */
} kelp_engine_parts;

/* Creates an engine of a provider. Retains the runtime. Takes ownership of `parts->engine`, also
 * on failure. */
KELP_API kelp_status *kelp_engine_wrap(kelp_runtime *runtime, const kelp_engine_parts *parts,
                                       kelp_engine **out) KELP_MUST_USE;

/* ---- Providers ---- */

/* Version of kelp_engine_provider. */
#define KELP_ENGINE_PROVIDER_ABI_VERSION 1

/* An engine provider. */
typedef struct kelp_engine_provider {
    uint32_t abi_version; /* KELP_ENGINE_PROVIDER_ABI_VERSION */
    uint32_t struct_size; /* sizeof(kelp_engine_provider) */
    const char *name;     /* name of the provider */
    uint32_t flags;       /* supported bits of kelp_builder_flag */
    bool has_devices;     /* compute capabilities can be selected */
    bool needs_profiles;  /* dynamic dimensions require a profile */
    /* Returns NULL, or UNAVAILABLE with what was tried if the provider cannot be used on this
     * machine. NULL: always available. */
    kelp_status *(*available)(void *self, kelp_runtime *runtime);
    /* Returns NULL, or UNIMPLEMENTED with a list of the unsupported layers and nodes. NULL:
     * supports everything. */
    kelp_status *(*supports)(void *self, kelp_runtime *runtime, const kelp_network *network);
    /* Builds an engine image. The network and the configuration have been checked. */
    kelp_status *(*build)(void *self, kelp_runtime *runtime, const kelp_network *network,
                          kelp_builder_config *config, kelp_blob **out_plan);
    /* Returns true if the bytes begin like an engine image of this provider. At least the first 64
     * bytes are passed, or the whole image if it is shorter. */
    bool (*recognises)(void *self, const void *data, size_t size_bytes);
    /* Loads an engine image. `data` is valid until `release(userp)` is called, which must happen
     * exactly once, also on failure; `release` may be NULL. `label` names the image in messages. */
    kelp_status *(*load)(void *self, kelp_runtime *runtime, const void *data, size_t size_bytes,
                         const char *label, void (*release)(void *userp), void *userp,
                         kelp_engine **out);
    void *self; /* passed to the functions */
    /* Describes the installation (library, version, devices) as lines of text. May be NULL. */
    kelp_status *(*describe)(void *self, kelp_runtime *runtime,
                             void (*write)(void *userp, const char *text, size_t length),
                             void *userp);
    /* Bits 1 << kelp_memory_pool: limits that the provider enforces. A table without this field
     * accepts all. */
    uint32_t pools;
    /* True if builds measure and can reuse measurements. A table without this field accepts any
     * timing cache. */
    bool timing_cache;
    /* Creates an engine from a graph directly. Retains the graph. kelp_engine_create calls the
     * first provider that has this function. May be NULL or missing. */
    kelp_status *(*create_engine)(void *self, kelp_runtime *runtime, kelp_graph *graph,
                                  const kelp_engine_options *options, kelp_engine **out);
} kelp_engine_provider;

/* Registers a provider. The table must outlive the runtime. Not thread-safe: register before use.
 * Fails with ALREADY_EXISTS if the name is taken and INVALID_ARGUMENT if the table is NULL, its
 * version is wrong, or its name, build, load or recognises is missing. */
KELP_API kelp_status *
kelp_engine_provider_register(kelp_runtime *runtime,
                              const kelp_engine_provider *provider) KELP_MUST_USE;

/* Returns the number of providers. Thread-safe after registration. */
KELP_API size_t kelp_engine_provider_count(const kelp_runtime *runtime);

/* Returns a provider, or NULL if `index` is out of range. */
KELP_API const kelp_engine_provider *kelp_engine_provider_at(const kelp_runtime *runtime,
                                                             size_t index);

/* ---- Services for build ----
 *
 * Called by a provider's `build` and `supports`, on the calling thread. */

/* Creates a blob over existing bytes. `release(userp)` is called when the last reference is
 * dropped, and also on failure; may be NULL. */
KELP_API kelp_status *kelp_blob_wrap(kelp_allocator allocator, const void *data, size_t size_bytes,
                                     void (*release)(void *userp), void *userp,
                                     kelp_blob **out) KELP_MUST_USE;

/* Reports progress to the application. Returns false if the build must stop with CANCELLED; true
 * without a callback. */
KELP_API bool kelp_builder_config_progress(kelp_builder_config *config, const char *phase,
                                           const char *parent, int step, int steps);

/* Returns the limit of a memory pool in bytes; 0 means unlimited. */
KELP_API size_t kelp_builder_config_memory_limit(const kelp_builder_config *config,
                                                 kelp_memory_pool pool);

/* Returns the optimization level, 0 to 5. */
KELP_API int kelp_builder_config_optimization_level(const kelp_builder_config *config);

/* Returns the number of selected compute capabilities and sets `*out` to them, valid as long as
 * the configuration. */
KELP_API size_t kelp_builder_config_capabilities(const kelp_builder_config *config,
                                                 const int **out);

/* Bounds of one input in a profile, indexed by kelp_profile_selector. */
typedef struct kelp_profile_shape {
    const char *input;          /* name of the input */
    bool has_shape, has_values; /* `shapes`, and in has_values `values`, are given */
    kelp_shape shapes[3];       /* minimum, optimum and maximum shape */
    /* minimum, optimum and maximum values; the rank is their number */
    kelp_shape values[3];
} kelp_profile_shape;

/* Returns the number of profiles. */
KELP_API size_t kelp_builder_config_profile_count(const kelp_builder_config *config);

/* Returns the number of inputs that a profile bounds and sets `*out` to them, valid until the
 * profile changes; 0 and NULL if there is no such profile. */
KELP_API size_t kelp_builder_config_profile(const kelp_builder_config *config, size_t profile,
                                            const kelp_profile_shape **out);

/* Stores measurements for kelp_builder_config_timing_cache. Copies `data`. */
KELP_API kelp_status *kelp_builder_config_store_timing_cache(kelp_builder_config *config,
                                                             const void *data,
                                                             size_t size_bytes) KELP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
