/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/engine.h: runtime, engine and context.
 *
 *   kelp_runtime   thread pool, allocator, log callback and the registered providers
 *   kelp_engine    a model prepared for execution, like a session of ONNX Runtime: created from a
 *                  graph (kelp/graph.h) or loaded from an engine image, the contents of a plan
 *                  file that a builder wrote (kelp/builder.h); contexts share its packed weights
 *   kelp_context   runs inferences, one at a time: bound tensors, memory plans and workspace
 *
 * A provider is an implementation that a runtime registers under a name, such as "cpu" or
 * "tensorrt". An operator provider runs nodes or subgraphs of an engine; an engine provider builds,
 * loads and runs whole engines.
 *
 * Life cycle: create an engine, create a context, bind inputs, prepare (optional: plans memory if
 * a shape has changed), invoke. After the first inference with given shapes, invoke makes no heap
 * allocation of its own.
 *
 * Unless stated otherwise:
 *   - Objects are reference-counted or retain their parents; release or destroy them in any order.
 *     Release and destroy functions accept NULL.
 *   - Returned strings and structs are borrowed and valid as long as the object that returned
 *     them.
 *   - A runtime and an engine may be used by several threads at once; a context and the recordings
 *     made from it by one thread at a time.
 *   - One runtime per program is sufficient. Several runtimes are independent of each other.
 *   - Options structs begin with `struct_size`; zeroed fields take the defaults given in
 *     [brackets].
 *   - kelp_status_domain of a failure tells the object that failed: KELP_DOMAIN_RUNTIME while a
 *     runtime or engine is created, KELP_DOMAIN_ENGINE for an engine or context, and
 *     KELP_DOMAIN_PARAMETER if a wrong argument was passed. A provider may set
 *     KELP_DOMAIN_DEVICE.
 */
#ifndef KELP_ENGINE_H_
#define KELP_ENGINE_H_

#include <kelp/event.h>
#include <kelp/graph.h>
#include <kelp/opset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Runtime ---- */

/* Root object: thread pool, allocator, log callback, registered providers. */
typedef struct kelp_runtime kelp_runtime;

/* Callback that receives one log message. `level` is 0 error, 1 warning, 2 info or 3 verbose.
 * `text` has `length` bytes and no trailing newline; it is valid during the call. Called on any
 * thread, also on several threads at once. */
typedef void (*kelp_log_callback)(void *userp, int level, const char *file, int line,
                                  const char *text, size_t length);

/* Options of kelp_runtime_create. */
typedef struct kelp_runtime_options {
    uint32_t struct_size;     /* sizeof(kelp_runtime_options) */
    kelp_allocator allocator; /* for everything the runtime creates [C library heap] */
    /* Number of threads that one inference uses, the calling thread included, 0 to 4096 [number of
     * usable CPUs]. 1 starts no worker thread. */
    int threads;
    kelp_log_callback log; /* receives log messages [none] */
    void *log_userp;       /* passed to `log` */
    int log_level;         /* highest level passed to `log` [0, errors only] */
} kelp_runtime_options;

/* Creates a runtime with the built-in providers. `options` may be NULL. Starts `threads` - 1
 * worker threads. Fails with INVALID_ARGUMENT if `threads` is out of range, or if the environment
 * variable KELP_ISA has an unknown value or names an instruction set that the CPU lacks. */
KELP_API kelp_status *kelp_runtime_create(const kelp_runtime_options *options,
                                          kelp_runtime **out) KELP_MUST_USE;

/* Adds a reference and returns `runtime`. */
KELP_API kelp_runtime *kelp_runtime_retain(kelp_runtime *runtime);

/* Drops a reference. The last one stops the worker threads and calls `destroy` of the operator
 * providers, the most recently registered first, and then of the plug-in libraries. */
KELP_API void kelp_runtime_release(kelp_runtime *runtime);

/* Registers an operator provider; see kelp_opset_register for errors. `backend` and `self` must
 * outlive the runtime. Not thread-safe: register before creating engines. */
KELP_API kelp_status *kelp_runtime_register_opset(kelp_runtime *runtime,
                                                  const kelp_opset_backend *backend,
                                                  void *self) KELP_MUST_USE;

/* Loads a plug-in library (kelp/plugin.h) and registers its operators, its compute provider, its
 * engine provider, and its kernels as operators (see kelp_kernel_library_opset; ignored if none is
 * suitable and the library offers something else). The library is never unloaded. `path` is a file
 * name, relative or absolute; no directories are searched. Not thread-safe: load before creating
 * engines. Fails with
 * - NOT_FOUND: the file does not exist, or the library offers none of these;
 * - INVALID_ARGUMENT: the file is not a plug-in library for this machine, or its table is
 *   malformed;
 * - UNIMPLEMENTED: the library was built for another version of the plug-in interface;
 * - any error of kelp_opset_register, kelp_compute_register and kelp_engine_provider_register. */
KELP_API kelp_status *kelp_runtime_load_plugin(kelp_runtime *runtime,
                                               const char *path) KELP_MUST_USE;

/* See kelp/plugin.h. */
struct kelp_plugin_setting;

/* Loads a plug-in library as kelp_runtime_load_plugin does, with settings that its `create`
 * receives. Also fails with INVALID_ARGUMENT if the library has no `create` and settings are given,
 * or if a setting has no name, no value or is repeated, and with any error of `create`. */
KELP_API kelp_status *kelp_runtime_load_plugin_with(kelp_runtime *runtime, const char *path,
                                                    const struct kelp_plugin_setting *settings,
                                                    size_t setting_count) KELP_MUST_USE;

/* Loads plug-in libraries that are described by text, as options of programs are:
 * PATH[,NAME=VALUE]…, several of them separated by ':'. A backslash before ',', ':', '=' or a
 * backslash makes it part of the path, name or value. Fails as kelp_runtime_load_plugin_with does,
 * and with INVALID_ARGUMENT if the text is malformed. */
KELP_API kelp_status *kelp_runtime_load_plugins(kelp_runtime *runtime,
                                                const char *text) KELP_MUST_USE;

/* Kinds of things that a provider offers, one bit each. */
#define KELP_OFFERS_SUBGRAPHS \
    1u                         /* runs operators and subgraphs, see kelp_engine_options.providers */
#define KELP_OFFERS_MODELS 2u  /* runs whole models, see kelp/compute.h */
#define KELP_OFFERS_ENGINES 4u /* builds and runs plan files, see kelp/engine_provider.h */

/* Description of a registered provider. */
typedef struct kelp_provider_info {
    const char *name; /* valid as long as the runtime */
    uint32_t offers;  /* bits of KELP_OFFERS_* */
} kelp_provider_info;

/* Enumerates the providers, built-in and registered, in order of registration. Returns false if
 * `index` is out of range. */
KELP_API bool kelp_runtime_provider_at(const kelp_runtime *runtime, size_t index,
                                       kelp_provider_info *out);

/* Checks that the provider can be used on this machine; loads the library that it needs, if any.
 * Fails with NOT_FOUND if no provider has the name, and otherwise with the provider's reason, such
 * as a missing library. Thread-safe. */
KELP_API kelp_status *kelp_runtime_check_provider(kelp_runtime *runtime,
                                                  const char *name) KELP_MUST_USE;

/* Returns the registry of operators, valid as long as the runtime. */
KELP_API const kelp_opset_registry *kelp_runtime_opsets(const kelp_runtime *runtime);

/* Creates an environment for kelp_opset_dispatch, for hosts that run single operators without an
 * engine. Retains the runtime. Results of kelp_op_env_alloc are valid until kelp_op_env_reset.
 * Used by one thread at a time. The caller destroys it. */
KELP_API kelp_status *kelp_op_env_create(kelp_runtime *runtime, kelp_op_env **out) KELP_MUST_USE;

/* Frees the results of all operators that used the environment, but keeps the memory for later
 * ones. Only for environments of kelp_op_env_create. */
KELP_API void kelp_op_env_reset(kelp_op_env *env);

/* Destroys an environment of kelp_op_env_create with all results. NULL is allowed. */
KELP_API void kelp_op_env_destroy(kelp_op_env *env);

/* Returns limits for loading graphs that this runtime will run. `newest_onnx` is the newest opset
 * version of ai.onnx that the registered operator providers support; a plug-in may support a newer
 * one than Kelp. The other fields have their defaults. */
KELP_API kelp_graph_limits kelp_runtime_graph_limits(const kelp_runtime *runtime);

/* Returns the allocator of the runtime. */
KELP_API kelp_allocator kelp_runtime_allocator(const kelp_runtime *runtime);

/* Returns the number of threads that one inference uses, the calling thread included. */
KELP_API int kelp_runtime_threads(const kelp_runtime *runtime);

/* Returns the instruction set that kernels use in this process: "portable", "avx2", "avx512",
 * "avx512 vnni", "avx512 vnni bf16", "neon", "dotprod" or "i8mm". `runtime` is not used. The
 * environment variable KELP_ISA, read once per process, selects a lower one: "portable", "avx2" or
 * "avx512" (without VNNI and BF16) on x86-64; "portable", "neon" or "dotprod" on arm64. */
KELP_API const char *kelp_runtime_isa(const kelp_runtime *runtime);

/* Returns the version of the library, such as "0.1.0". Static string, thread-safe. */
KELP_API const char *kelp_version(void);

/* ---- Engine ---- */

/* A model prepared for execution. */
typedef struct kelp_engine kelp_engine;

/* Precision of float32 GEMMs and convolutions. Applies to models that the provider `cpu` runs.
 *
 * KELP_PRECISION_BF16 rounds the operands of MatMul, Gemm and Conv with constant float32 weights,
 * and of fused attention, to bfloat16 (to nearest, ties to even; subnormals become zero). Weights
 * are rounded once, when the engine is created, which halves their memory. Sums, biases and
 * activations stay float32, except that a tensor passed only between convolutions is rounded where
 * it is produced. Results are often within a few percent of float32. CPUs with AVX512_BF16 take
 * about half the time; others apply the same rounding more slowly, so that results differ only in
 * the order of summation. */
typedef enum kelp_precision {
    KELP_PRECISION_F32 = 0, /* multiply in float32 */
    KELP_PRECISION_BF16 = 1 /* multiply in bfloat16, accumulate in float32 */
} kelp_precision;

/* Sets `*out` to the precision of a name ("f32" or "bf16") and returns true. Returns false,
 * without writing, for another name. */
KELP_API bool kelp_precision_parse(const char *name, kelp_precision *out);

/* Returns the static name of a precision. */
KELP_API const char *kelp_precision_name(kelp_precision precision);

/* Options of kelp_engine_create. */
typedef struct kelp_engine_options {
    uint32_t struct_size;    /* sizeof(kelp_engine_options) */
    uint32_t disable_fusion; /* 1: fold constants, but do not fuse operators [0] */
    /* number of input shapes for which a context keeps its memory plan [16] */
    uint32_t max_plans;
    /* Reports progress while weights are packed: `done` of `total` operators are ready. Called on
     * the thread that creates the engine. Returning false aborts with CANCELLED. [none] */
    bool (*progress)(void *userp, size_t done, size_t total);
    void *progress_userp; /* passed to `progress` */
    /* Names of operator providers in order of preference, separated by commas, such as
     * "onnxruntime,cpu". A node is assigned to the first of them that supports it (see "Subgraphs"
     * in kelp/opset.h); providers that are not listed are not used. NULL: uses every registered
     * provider except those with KELP_OPSET_BY_NAME. Kelp's own kernels then run all nodes except
     * those that they do not support, and the regions for which another provider's `cost_ns` is
     * lower. [NULL] */
    const char *providers;
    kelp_precision precision; /* see kelp_precision [KELP_PRECISION_F32] */
} kelp_engine_options;

/* Creates an engine from a graph. Retains `runtime` and `graph`; `options` may be NULL. Fails with
 * - UNIMPLEMENTED: no provider supports some nodes (the message lists them), or an input or output
 *   is a sparse tensor;
 * - INVALID_ARGUMENT: a node has wrong attributes, types or shapes (the message names the node), or
 *   `options->precision` has an unknown value;
 * - NOT_FOUND: `options->providers` contains an unknown name (the message lists the known ones);
 * - CANCELLED: `options->progress` returned false;
 * - any error of a provider that prepares a subgraph. */
KELP_API kelp_status *kelp_engine_create(kelp_runtime *runtime, kelp_graph *graph,
                                         const kelp_engine_options *options,
                                         kelp_engine **out) KELP_MUST_USE;

/* Adds a reference and returns `engine`. */
KELP_API kelp_engine *kelp_engine_retain(kelp_engine *engine);

/* Drops a reference. Contexts hold references of their own. */
KELP_API void kelp_engine_release(kelp_engine *engine);

/* ---- Engine images ----
 *
 * An engine image is an engine that kelp_builder_build serialized for one provider (TensorRT: a
 * serialized engine). A file with an engine image is a plan file, hence the name kelp_plan_.
 *
 * Images of the provider `cpu` have a format version. Every version of Kelp reads one format
 * version, and rejects others with FAILED_PRECONDITION and both numbers. Versions of Kelp with the
 * same format version read each other's images, as far as they support the operators; the results
 * are those of a newly built image. If the layout of packed weights is unknown, or of another
 * instruction set, the weights are packed again while the image is loaded. */

/* Returns true if `data` begins with the signature of an engine image of a registered provider. The
 * first 64 bytes are sufficient. */
KELP_API bool kelp_plan_is_known(const kelp_runtime *runtime, const void *data, size_t size_bytes);

/* Returns true if the file begins with the signature of an engine image of a registered provider.
 * Returns false if the file cannot be read. */
KELP_API bool kelp_plan_is_file(const kelp_runtime *runtime, const char *path);

/* Loads an engine image from a file. The file is mapped and must not be modified while the engine
 * exists, because the provider `cpu` uses the weights in place. Fails with
 * - NOT_FOUND, PERMISSION_DENIED or another code: the file cannot be read;
 * - INVALID_ARGUMENT: no provider recognizes the image, or it is truncated or modified;
 * - FAILED_PRECONDITION: the image was built for another version of Kelp or another instruction
 *   set;
 * - any error of the provider, with the messages of its library. */
KELP_API kelp_status *kelp_engine_load_file(kelp_runtime *runtime, const char *path,
                                            kelp_engine **out) KELP_MUST_USE;

/* Loads an engine image from memory. `data` is borrowed until the last reference to the engine is
 * dropped. Then, or if this function fails, `release(userp)` is called, unless `release` is NULL.
 * If `data` is not aligned to 64 bytes, weights are copied. `label` (may be NULL) names the image
 * in error messages. Errors are those of kelp_engine_load_file. */
KELP_API kelp_status *kelp_engine_load(kelp_runtime *runtime, const void *data, size_t size_bytes,
                                       const char *label, void (*release)(void *userp), void *userp,
                                       kelp_engine **out) KELP_MUST_USE;

/* Returns the name of the provider that runs the engine; "cpu" for an engine created from a graph.
 */
KELP_API const char *kelp_engine_provider_name(const kelp_engine *engine);

/* Returns the number of optimization profiles that the engine was built with; 0 if it was created
 * from a graph. */
KELP_API size_t kelp_engine_profile_count(const kelp_engine *engine);

/* Gets the shape of an input in a profile. `which` is a kelp_profile_selector: 0 minimum, 1
 * optimum, 2 maximum. Returns false if the profile does not restrict the input or an index does
 * not exist. */
KELP_API bool kelp_engine_profile_shape(const kelp_engine *engine, size_t profile, size_t input,
                                        int which, kelp_shape *out);

/* Computes how many bytes of activations and scratch memory a context needs for the maximum shapes
 * of `profile`. Without profiles, pass 0; all input shapes must then be fixed. Fails with
 * FAILED_PRECONDITION if a dynamic dimension has no bound, OUT_OF_RANGE if there is no such
 * profile and UNIMPLEMENTED if the provider cannot compute it. */
KELP_API kelp_status *kelp_engine_workspace_bytes(const kelp_engine *engine, size_t profile,
                                                  size_t *out) KELP_MUST_USE;

/* Describes the engine as text for people or as JSON for tools. Passes the output to `write` in
 * one or more pieces, on the calling thread. Fails with UNIMPLEMENTED if the provider has no
 * inspector. */
KELP_API kelp_status *kelp_engine_inspect(const kelp_engine *engine, bool json,
                                          void (*write)(void *userp, const char *text,
                                                        size_t length),
                                          void *userp) KELP_MUST_USE;

/* ---- Refitting ----
 *
 * These functions replace weights of an engine whose image was built with KELP_BUILD_REFIT or
 * KELP_BUILD_REFIT_INDIVIDUAL. */

/* Returns the number of weights that can be replaced. Constants that determine a shape, such as the
 * axes of a reduction, and constants that layers create for themselves cannot be replaced. */
KELP_API size_t kelp_engine_refittable_count(const kelp_engine *engine);

/* Returns the name of a replaceable weight, or NULL if `index` is out of range. */
KELP_API const char *kelp_engine_refittable(const kelp_engine *engine, size_t index);

/* Replaces weights by name; copies their data. Either all are replaced or none. No context of the
 * engine may run at the same time. Afterwards, existing contexts use the new weights, and the
 * results are those of a newly built engine; recordings must be made again. Fails with
 * - NOT_FOUND: a name is not replaceable (tells why, and lists those that are);
 * - INVALID_ARGUMENT: type or element count do not match (states the expected ones), the weights
 *   change the declared shape of an output, or the image was modified;
 * - FAILED_PRECONDITION: the first refit of an image built with KELP_BUILD_STRIP_WEIGHTS does not
 *   supply all missing weights;
 * - UNIMPLEMENTED: the provider does not support refitting. */
KELP_API kelp_status *kelp_engine_refit(kelp_engine *engine, const kelp_weights *weights,
                                        size_t count) KELP_MUST_USE;

/* ---- Engines on a device ----
 *
 * The provider `cpu` returns UNIMPLEMENTED for all functions of this section. */

/* Supplies kernels that an earlier process compiled for this engine and passed to the callback of
 * kelp_engine_write_runtime_cache. Copies `data`. Call before creating contexts. Fails with
 * INVALID_ARGUMENT if the cache is for another device or version; kernels are then compiled again.
 */
KELP_API kelp_status *kelp_engine_set_runtime_cache(kelp_engine *engine, const void *data,
                                                    size_t size_bytes) KELP_MUST_USE;

/* Passes the kernels compiled so far to `write`, in one or more pieces on the calling thread, to
 * be kept for another process. */
KELP_API kelp_status *kelp_engine_write_runtime_cache(kelp_engine *engine,
                                                      void (*write)(void *userp, const char *data,
                                                                    size_t length),
                                                      void *userp) KELP_MUST_USE;

/* Gets the number of bytes of weights that may stay in host memory. It is 0 unless the image was
 * built with KELP_BUILD_WEIGHT_STREAMING. */
KELP_API kelp_status *kelp_engine_streamable_weights(const kelp_engine *engine,
                                                     size_t *out_bytes) KELP_MUST_USE;

/* Limits how many bytes of streamable weights are kept on the device. Call before creating
 * contexts. */
KELP_API kelp_status *kelp_engine_set_weight_budget(kelp_engine *engine,
                                                    size_t device_bytes) KELP_MUST_USE;

/* ---- Inputs and outputs ---- */

/* Description of an input or output. */
typedef struct kelp_io_info {
    const char *name; /* unique among inputs, or among outputs */
    /* element type; KELP_DTYPE_INVALID if unknown, KELP_LIST for sequences, optionals and maps */
    kelp_dtype dtype;
    int32_t rank;                 /* number of dimensions; -1 if unknown */
    int64_t shape[KELP_MAX_RANK]; /* `rank` dimensions; -1 for dynamic ones */
    /* names of the dynamic dimensions, such as "batch"; NULL if unnamed */
    const char *symbols[KELP_MAX_RANK];
} kelp_io_info;

/* Returns the number of inputs. */
KELP_API size_t kelp_engine_input_count(const kelp_engine *engine);

/* Returns the number of outputs. */
KELP_API size_t kelp_engine_output_count(const kelp_engine *engine);

/* Returns the description of an input, or NULL if `index` is out of range. */
KELP_API const kelp_io_info *kelp_engine_input(const kelp_engine *engine, size_t index);

/* Returns the description of an output, or NULL if `index` is out of range. */
KELP_API const kelp_io_info *kelp_engine_output(const kelp_engine *engine, size_t index);

/* Returns the index of the input of this name, or SIZE_MAX. */
KELP_API size_t kelp_engine_find_input(const kelp_engine *engine, const char *name);

/* Returns the index of the output of this name, or SIZE_MAX. */
KELP_API size_t kelp_engine_find_output(const kelp_engine *engine, const char *name);

/* Counters of an engine; zeros for a provider that does not count. */
typedef struct kelp_engine_stats {
    size_t nodes_loaded;          /* number of nodes in the graph, nested ones included */
    size_t nodes_planned;         /* number of nodes after folding and fusion */
    size_t weight_bytes_borrowed; /* bytes of weights used in place */
    size_t weight_bytes_packed;   /* bytes of weights that were copied or packed */
    size_t nodes_bf16;            /* number of nodes that multiply in bfloat16 */
} kelp_engine_stats;

/* Returns the counters. `weight_bytes_packed` may still grow while contexts prepare. */
KELP_API kelp_engine_stats kelp_engine_get_stats(const kelp_engine *engine);

/* A subgraph that an operator provider runs as a whole (kelp/opset.h). */
typedef struct kelp_subgraph_info {
    const char *name;       /* name of the kelp::BackendSubgraph node */
    const char *provider;   /* name of the provider */
    const kelp_block *body; /* nodes of the subgraph */
} kelp_subgraph_info;

/* Returns the number of subgraphs that providers run as a whole. */
KELP_API size_t kelp_engine_subgraph_count(const kelp_engine *engine);

/* Returns a subgraph, or a zeroed struct if `index` is out of range. */
KELP_API kelp_subgraph_info kelp_engine_subgraph(const kelp_engine *engine, size_t index);

/* ---- Context ---- */

/* Execution state for inferences that run one at a time. */
typedef struct kelp_context kelp_context;

/* Creates a context and retains the engine. Fails with FAILED_PRECONDITION if the engine image was
 * built without weights and has not been refitted. */
KELP_API kelp_status *kelp_context_create(kelp_engine *engine, kelp_context **out) KELP_MUST_USE;

/* Destroys a context. It must not be running. Its recordings must still be destroyed; replaying one
 * fails with FAILED_PRECONDITION. */
KELP_API void kelp_context_destroy(kelp_context *context);

/* Binds an input. Copies the descriptor, not the elements: `tensor->data` must stay valid and
 * unchanged until the inference has finished. For the provider `cpu` the tensor must be compact
 * and in host memory; providers with a device may also accept memory of that device. Fails with
 * INVALID_ARGUMENT if the index, type, shape, layout or device is wrong, or the shape is outside
 * the current profile; the message states the expected and the actual value. */
KELP_API kelp_status *kelp_context_set_input(kelp_context *context, size_t index,
                                             const kelp_tensor *tensor) KELP_MUST_USE;

/* Binds `capacity_bytes` bytes at `data` for an output; no alignment is required. The memory must
 * stay valid until the inference has finished. If `data` is NULL, the context provides the
 * memory, as by default. Removes an output allocator. Fails with INVALID_ARGUMENT if there is no
 * such output. If the output is larger than its memory, the inference fails with OUT_OF_RANGE.
 *
 * The memory may be that of an input only if the operator that computes the output permits it:
 * GroupQueryAttention and TensorScatter, whose past and present caches have the same shape, then
 * write only the new rows. No other node may read that input. */
KELP_API kelp_status *kelp_context_set_output(kelp_context *context, size_t index, void *data,
                                              size_t capacity_bytes) KELP_MUST_USE;

/* Sets the device whose memory holds an output, whether this memory is bound, returned by an output
 * allocator or provided by the context. The default is {kDLCPU, 0}. Fails with INVALID_ARGUMENT for
 * a device that the provider does not support; `cpu` supports host memory only. */
KELP_API kelp_status *kelp_context_set_output_device(kelp_context *context, size_t index,
                                                     DLDevice device) KELP_MUST_USE;

/* Selects an optimization profile, 0 by default. Unbinds all inputs: bind them again
 * afterwards. Fails with OUT_OF_RANGE if there is no such profile. */
KELP_API kelp_status *kelp_context_set_profile(kelp_context *context, size_t profile) KELP_MUST_USE;

/* Supplies memory for activations, aligned to 64 bytes. It must stay valid until the context is
 * destroyed or gets another workspace. If `data` is NULL, the context provides the memory,
 * as by default. Fails with INVALID_ARGUMENT if `data` is not aligned. An inference that needs more
 * fails with RESOURCE_EXHAUSTED. */
KELP_API kelp_status *kelp_context_set_workspace(kelp_context *context, void *data,
                                                 size_t size_bytes) KELP_MUST_USE;

/* Callback that returns memory for an output. Called during each inference, once the output's size
 * is known; `output` has type and shape. The memory belongs to the application and must stay valid
 * until the inference has finished. NULL makes the inference fail with RESOURCE_EXHAUSTED. */
typedef void *(*kelp_output_allocator)(void *userp, size_t index, const kelp_tensor *output,
                                       size_t size_bytes);

/* Sets the allocator of an output; NULL removes it. Removes memory bound by
 * kelp_context_set_output. Fails with INVALID_ARGUMENT if there is no such output and
 * UNIMPLEMENTED if the provider has no output allocators. */
KELP_API kelp_status *kelp_context_set_output_allocator(kelp_context *context, size_t index,
                                                        kelp_output_allocator fn,
                                                        void *userp) KELP_MUST_USE;

/* Plans memory for the bound input shapes. Optional: kelp_context_invoke does so when needed.
 * Afterwards kelp_context_output returns the shapes of all outputs, with rank -1 for those that
 * depend on data. Fails with FAILED_PRECONDITION if an input is not bound, INVALID_ARGUMENT if a
 * node rejects the shapes, and RESOURCE_EXHAUSTED. */
KELP_API kelp_status *kelp_context_prepare(kelp_context *context) KELP_MUST_USE;

/* Runs one inference and returns when it has finished. Fails with
 * - FAILED_PRECONDITION: an input is not bound;
 * - INVALID_ARGUMENT: a node rejects its inputs (names the node), or an input value is outside the
 *   current profile;
 * - OUT_OF_RANGE: an output is larger than the memory bound for it;
 * - RESOURCE_EXHAUSTED: no memory, or the workspace is too small;
 * - CANCELLED: see kelp_context_cancel and kelp_context_set_interrupt;
 * - any error of a provider or of an operator.
 *
 * After a failure the contents of the outputs are undefined and the context can be used again. */
KELP_API kelp_status *kelp_context_invoke(kelp_context *context) KELP_MUST_USE;

/* Returns the descriptor of an output, or NULL if `index` is out of range. Its data is valid until
 * the next inference and, if it is memory of the context, until the context is destroyed. */
KELP_API const kelp_tensor *kelp_context_output(const kelp_context *context, size_t index);

/* Cancels the running inference or replay, which then returns CANCELLED. Thread-safe. Has no
 * effect if none is running. The inference checks for cancellation before each node, each loop
 * iteration and each chunk of parallel work within a node (a few milliseconds); a kernel that does
 * not split its work finishes first. Outputs are undefined afterwards; the context can be used
 * again. A provider that cannot be interrupted finishes the inference. */
KELP_API void kelp_context_cancel(kelp_context *context);

/* Callback that is polled during an inference. Returning true cancels the inference. It must be
 * cheap. */
typedef bool (*kelp_interrupt_fn)(void *userp);

/* Sets a callback that the inference polls when it checks for cancellation (see
 * kelp_context_cancel), on the thread that called invoke; NULL removes it. Do not call during an
 * inference. A provider that cannot be interrupted ignores it. */
KELP_API void kelp_context_set_interrupt(kelp_context *context, kelp_interrupt_fn fn, void *userp);

/* ---- Streams ---- */

/* A queue of inferences that run in order of submission, on a thread of the stream or on a device.
 * Thread-safe. */
typedef struct kelp_stream kelp_stream;

/* Creates a stream with a thread of its own. Retains the runtime. */
KELP_API kelp_status *kelp_stream_create(kelp_runtime *runtime, kelp_stream **out) KELP_MUST_USE;

/* Wraps a stream of a device library, such as a CUstream, for engines of that device's provider.
 * Borrows `native_stream`. */
KELP_API kelp_status *kelp_stream_wrap(kelp_runtime *runtime, void *native_stream,
                                       kelp_stream **out) KELP_MUST_USE;

/* Waits for all enqueued inferences and destroys the stream. Does not wait for a wrapped stream. */
KELP_API void kelp_stream_destroy(kelp_stream *stream);

/* Waits for all enqueued inferences. Returns the first failure since the last call. Fails with
 * UNIMPLEMENTED for a wrapped stream: use the device library. */
KELP_API kelp_status *kelp_stream_synchronize(kelp_stream *stream) KELP_MUST_USE;

/* Enqueues an inference of the bound tensors. Do not use the context or access bound memory until
 * `event` (may be NULL) is done or the stream is synchronized. kelp_stream_synchronize returns the
 * inference's failure. Fails with RESOURCE_EXHAUSTED if 1,024 inferences wait. For a wrapped
 * stream, fails with INVALID_ARGUMENT if the engine runs on `cpu`,
 * UNIMPLEMENTED if `event` is not NULL or the provider has no streams. */
KELP_API kelp_status *kelp_context_enqueue(kelp_context *context, kelp_stream *stream,
                                           kelp_event *event) KELP_MUST_USE;

/* ---- Recordings ----
 *
 * A recording replays an inference with fixed shapes and addresses, without dispatch, like a CUDA
 * graph. */

/* A recorded inference. Use it on one thread at a time, together with its context. */
typedef struct kelp_capture kelp_capture;

/* Records the inference for the bound shapes and addresses as a flat list of kernel calls. On
 * the provider `cpu`, recording does not execute the inference. Fails with FAILED_PRECONDITION if a
 * shape depends on data (names the node), an input is not aligned to its element type or an output
 * has an allocator, and UNIMPLEMENTED if the provider has no recordings. */
KELP_API kelp_status *kelp_context_capture(kelp_context *context, kelp_capture **out) KELP_MUST_USE;

/* Runs the recorded inference: reads the inputs and writes the outputs at the recorded addresses.
 * Results are bitwise equal to those of kelp_context_invoke. Fails with FAILED_PRECONDITION if,
 * after the recording, tensors of the context were bound again, the engine was refitted or the
 * context was destroyed. Other errors are those of kelp_context_invoke. */
KELP_API kelp_status *kelp_capture_replay(kelp_capture *capture) KELP_MUST_USE;

/* Returns the number of recorded kernel calls. */
KELP_API size_t kelp_capture_step_count(const kelp_capture *capture);

/* Destroys a recording, before or after its context. */
KELP_API void kelp_capture_destroy(kelp_capture *capture);

/* ---- Statistics ---- */

/* Counters of a context's plan for the current input shapes. */
typedef struct kelp_plan_stats {
    size_t steps;                       /* number of kernels that an inference calls */
    size_t views;                       /* number of nodes that became views */
    size_t folded;                      /* number of nodes evaluated while planning */
    size_t dynamic_steps;               /* number of kernels whose shapes depend on data */
    size_t workspace_bytes;             /* activations and scratch memory */
    size_t workspace_lower_bound_bytes; /* largest sum of tensors alive at the same time */
    size_t activation_bytes;            /* sum of all activations, without reuse of memory */
} kelp_plan_stats;

/* Returns the counters of the current plan; zeros before the first prepare and for a provider
 * that does not count. */
KELP_API kelp_plan_stats kelp_context_plan_stats(const kelp_context *context);

/* Callback that receives the time of one node. `step` counts from 0 within an inference.
 * `algorithm` is the name of the algorithm that the kernel chose for the current shapes, such as
 * "winograd_4x4"; NULL if it has no choice or the provider does not report it. Strings are valid
 * during the call. Called on the thread that runs the inference. */
typedef void (*kelp_profile_fn)(void *userp, size_t step, const char *op_type, const char *name,
                                const char *algorithm, uint64_t duration_ns);

/* Sets the profiler; NULL removes it. Do not call during an inference. Fails with UNIMPLEMENTED if
 * the provider does not measure. */
KELP_API kelp_status *kelp_context_set_profiler(kelp_context *context, kelp_profile_fn fn,
                                                void *userp) KELP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
