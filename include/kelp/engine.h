/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/engine.h: runtime → engine → context → bind → invoke.
 *
 *   kelp_runtime   threads, allocator, log, operators; one a program is enough, several are fine
 *   kelp_engine    a graph that was checked, folded, fused and matched to kernels, or a plan that a
 *                  builder made (kelp/builder.h); weights are packed once and shared by contexts
 *   kelp_context   one stream of invocations: shapes, memory plan, workspace
 *
 * Children retain their parents: destroy in any order. Phases: create (engine) → set shapes →
 * prepare (plans memory; only when a shape changed) → invoke. Invoke makes no allocation of its own
 * once a shape was seen. Threads: runtime and engine from any thread; a context from one thread at
 * a time.
 */
#ifndef KELP_ENGINE_H_
#define KELP_ENGINE_H_

#include <kelp/event.h>
#include <kelp/graph.h>
#include <kelp/opset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- runtime ---- */
typedef struct kelp_runtime kelp_runtime;
/* `level` 0 error, 1 warning, 2 info, 3 verbose. Any thread. */
typedef void (*kelp_log_callback)(void *userp, int level, const char *file, int line,
                                  const char *text, size_t length);
typedef struct kelp_runtime_options { /* zeroed fields take the defaults */
    uint32_t struct_size;             /* sizeof(kelp_runtime_options) */
    kelp_allocator allocator;         /* [the C library's heap] */
    int threads; /* intra-op threads, the caller's counted; [usable CPUs]; 1: no thread is made */
    kelp_log_callback log; /* [none] */
    void *log_userp;
    int log_level; /* highest level passed on */
} kelp_runtime_options;
KELP_API kelp_status *kelp_runtime_create(const kelp_runtime_options *options,
                                          kelp_runtime **out) KELP_MUST_USE;
KELP_API kelp_runtime *kelp_runtime_retain(kelp_runtime *runtime);
KELP_API void kelp_runtime_release(kelp_runtime *runtime);
/* Adds a backend of operators before engines are made of it (see kelp_opset_register). */
KELP_API kelp_status *kelp_runtime_register_opset(kelp_runtime *runtime,
                                                  const kelp_opset_backend *backend,
                                                  void *self) KELP_MUST_USE;
/* Loads a shared library (kelp/plugin.h) and registers what it offers: its opset backend, with NULL
 * as `self`, and its compute backend. It stays loaded. Before engines are made. UNIMPLEMENTED:
 * built for another version; NOT_FOUND: no such file (`path` is one, relative or absolute: nothing
 * is searched), or a library that offers neither. */
KELP_API kelp_status *kelp_runtime_load_plugin(kelp_runtime *runtime,
                                               const char *path) KELP_MUST_USE;
KELP_API const kelp_opset_registry *kelp_runtime_opsets(const kelp_runtime *runtime);
/* Limits for loading graphs that this runtime is to run: the newest ai.onnx is that of its
 * backends, which may be later than Kelp's own. The rest is as by default. */
KELP_API kelp_graph_limits kelp_runtime_graph_limits(const kelp_runtime *runtime);
KELP_API kelp_allocator kelp_runtime_allocator(const kelp_runtime *runtime);
KELP_API int kelp_runtime_threads(const kelp_runtime *runtime);
/* What the kernels of this process use of the CPU: "portable", "avx2", "avx512", "avx512 vnni",
 * "avx512 vnni bf16", "neon", "dotprod" or "i8mm". KELP_ISA in the environment, read when the first
 * runtime is made, caps it: portable, avx2 or avx512 (without VNNI and BF16), on arm64 portable,
 * neon or dotprod. kelp_runtime_create refuses another word, and what the CPU does not have. */
KELP_API const char *kelp_runtime_isa(const kelp_runtime *runtime);

/* "0.1.0" */
KELP_API const char *kelp_version(void);

/* ---- engine ---- */
typedef struct kelp_engine kelp_engine;
/* What float32 products multiply in. KELP_PRECISION_BF16: MatMul, Gemm and Conv with constant
 * float32 weights, and fused attention, round their operands to bfloat16 (to nearest, ties to even;
 * subnormals become zero), the weights once while the engine is made, which halves their memory;
 * sums, biases and activations stay float32, and so do tensors, but for those that go from one
 * convolution to others alone: they are rounded where they are made. Results then are often within
 * a few percent of float32's, see docs/performance.md. A processor with AVX512_BF16 does it in
 * about half the time; every other one takes the same roundings by a slower way, so that answers
 * differ by the order of sums alone. Models that other providers run are not touched. */
typedef enum kelp_precision { KELP_PRECISION_F32 = 0, KELP_PRECISION_BF16 = 1 } kelp_precision;
/* "f32" or "bf16"; false for another name. */
KELP_API bool kelp_precision_parse(const char *name, kelp_precision *out);
KELP_API const char *kelp_precision_name(kelp_precision precision);

typedef struct kelp_engine_options { /* zeroed fields take the defaults */
    uint32_t struct_size;            /* sizeof(kelp_engine_options) */
    uint32_t disable_fusion;         /* 1: run the graph as written, folded only */
    uint32_t max_plans;              /* shapes whose plan a context keeps [16] */
    /* Told how many of the graph's operators are made, whose weights are packed then, from the
     * thread that creates; false gives up: CANCELLED. [none] */
    bool (*progress)(void *userp, size_t done, size_t total);
    void *progress_userp;
    /* Who runs the model, in order of preference: "onnxruntime,cpu". Each takes what it covers of
     * what those before it left (see kelp/opset.h, whole subgraphs); nobody else is asked. NULL:
     * every registered backend that is not KELP_OPSET_BY_NAME, each for what Kelp's own kernels do
     * not cover or what its cost_ns says. NOT_FOUND lists the names there are. */
    const char *providers;
    kelp_precision precision; /* [KELP_PRECISION_F32] */
} kelp_engine_options;
/* Retains runtime and graph. UNIMPLEMENTED lists every uncovered node; INVALID_ARGUMENT names the
 * node that is wrong. */
KELP_API kelp_status *kelp_engine_create(kelp_runtime *runtime, kelp_graph *graph,
                                         const kelp_engine_options *options,
                                         kelp_engine **out) KELP_MUST_USE;
KELP_API kelp_engine *kelp_engine_retain(kelp_engine *engine);
KELP_API void kelp_engine_release(kelp_engine *engine);

/* ---- plans: engines that were built ahead of time ---- */
/* Whether the first bytes are those of a plan that one of the runtime's providers made. */
KELP_API bool kelp_plan_is_known(const kelp_runtime *runtime, const void *data, size_t size_bytes);
KELP_API bool kelp_plan_is_file(const kelp_runtime *runtime, const char *path);
/* Loads a plan. A cpu plan is mapped, and its weights are used where they lie. INVALID_ARGUMENT
 * says what is wrong with one that was cut short or altered; FAILED_PRECONDITION which version or
 * processor it was made for; what the library of another provider said is in the message. */
KELP_API kelp_status *kelp_engine_load_file(kelp_runtime *runtime, const char *path,
                                            kelp_engine **out) KELP_MUST_USE;
/* Bytes are borrowed until the engine goes; then `release(userp)` is called (may be NULL; also when
 * this fails). They must be aligned to 64 bytes for their weights not to be copied. */
KELP_API kelp_status *kelp_engine_load(kelp_runtime *runtime, const void *data, size_t size_bytes,
                                       const char *label, void (*release)(void *userp), void *userp,
                                       kelp_engine **out) KELP_MUST_USE;
/* "cpu" also for engines that were made of a graph. */
KELP_API const char *kelp_engine_provider_name(const kelp_engine *engine);

/* Optimisation profiles that it was built with. */
KELP_API size_t kelp_engine_profile_count(const kelp_engine *engine);
/* Bounds of an input: false when the profile does not bound it. `which`: 0 min, 1 opt, 2 max. */
KELP_API bool kelp_engine_profile_shape(const kelp_engine *engine, size_t profile, size_t input,
                                        int which, kelp_shape *out);
/* Bytes of activations and scratch that a context needs for the largest shapes of a profile (0 when
 * there is none and all shapes are fixed). FAILED_PRECONDITION when open extents have no bound. */
KELP_API kelp_status *kelp_engine_workspace_bytes(const kelp_engine *engine, size_t profile,
                                                  size_t *out) KELP_MUST_USE;
/* What is inside, as text for people or JSON for tools, handed to `write` piece by piece. */
KELP_API kelp_status *kelp_engine_inspect(const kelp_engine *engine, bool json,
                                          void (*write)(void *userp, const char *text,
                                                        size_t length),
                                          void *userp) KELP_MUST_USE;

/* Weights that can be exchanged; SIZE_MAX never, NULL past the end. */
KELP_API size_t kelp_engine_refittable_count(const kelp_engine *engine);
KELP_API const char *kelp_engine_refittable(const kelp_engine *engine, size_t index);
/* Exchanges weights by name; their data is copied. All or none: NOT_FOUND lists what can be
 * exchanged, INVALID_ARGUMENT has the shape and type that are expected. No context of the engine
 * may run meanwhile; afterwards each gives what a rebuilt engine gives. */
KELP_API kelp_status *kelp_engine_refit(kelp_engine *engine, const kelp_weights *weights,
                                        size_t count) KELP_MUST_USE;

/* ---- engines on a device; the cpu has none of this: UNIMPLEMENTED ---- */
/* What earlier runs compiled, as kelp_engine_write_runtime_cache gave it; before contexts are made.
 * INVALID_ARGUMENT when it is of another device or version: runs compile anew. Copied. */
KELP_API kelp_status *kelp_engine_set_runtime_cache(kelp_engine *engine, const void *data,
                                                    size_t size_bytes) KELP_MUST_USE;
/* What runs have compiled so far, to be kept for another process, handed to `write` in pieces. */
KELP_API kelp_status *kelp_engine_write_runtime_cache(kelp_engine *engine,
                                                      void (*write)(void *userp, const char *data,
                                                                    size_t length),
                                                      void *userp) KELP_MUST_USE;
/* Bytes of weights that may stay in host memory: those of a plan that was built with
 * KELP_BUILD_WEIGHT_STREAMING. */
KELP_API kelp_status *kelp_engine_streamable_weights(const kelp_engine *engine,
                                                     size_t *out_bytes) KELP_MUST_USE;
/* How many of them may lie on the device; before contexts are made. */
KELP_API kelp_status *kelp_engine_set_weight_budget(kelp_engine *engine,
                                                    size_t device_bytes) KELP_MUST_USE;

/* ---- inputs and outputs ---- */
/* Inputs and outputs. `shape[i]` is -1 where not fixed; rank -1: unknown. */
typedef struct kelp_io_info {
    const char *name;
    kelp_dtype dtype;
    int32_t rank;
    int64_t shape[KELP_MAX_RANK];
    const char *symbols[KELP_MAX_RANK]; /* names of open extents, or NULL */
} kelp_io_info;
KELP_API size_t kelp_engine_input_count(const kelp_engine *engine);
KELP_API size_t kelp_engine_output_count(const kelp_engine *engine);
KELP_API const kelp_io_info *kelp_engine_input(const kelp_engine *engine, size_t index);
KELP_API const kelp_io_info *kelp_engine_output(const kelp_engine *engine, size_t index);
/* SIZE_MAX when there is none of that name. */
KELP_API size_t kelp_engine_find_input(const kelp_engine *engine, const char *name);
KELP_API size_t kelp_engine_find_output(const kelp_engine *engine, const char *name);

typedef struct kelp_engine_stats {
    size_t nodes_loaded;  /* in the graph */
    size_t nodes_planned; /* after folding and fusion */
    size_t weight_bytes_borrowed;
    size_t weight_bytes_packed; /* copied or packed by kernels */
    size_t nodes_bf16;          /* whose products are of bfloat16 */
} kelp_engine_stats;
KELP_API kelp_engine_stats kelp_engine_get_stats(const kelp_engine *engine);

/* What was handed over whole (kelp/opset.h). `body` lives as long as the engine. */
typedef struct kelp_subgraph_info {
    const char *name;     /* of the BackendSubgraph node */
    const char *provider; /* whose it is */
    const kelp_block *body;
} kelp_subgraph_info;
KELP_API size_t kelp_engine_subgraph_count(const kelp_engine *engine);
/* Zeroed when there is none of that index. */
KELP_API kelp_subgraph_info kelp_engine_subgraph(const kelp_engine *engine, size_t index);

/* ---- context ---- */
typedef struct kelp_context kelp_context;
KELP_API kelp_status *kelp_context_create(kelp_engine *engine, kelp_context **out) KELP_MUST_USE;
KELP_API void kelp_context_destroy(kelp_context *context);

/* Binds an input: compact, in host memory (or, for an engine that runs on a device, on that
 * device), borrowed until invoke returns. Its dtype must be the input's and its shape must fit
 * (INVALID_ARGUMENT says which input, what was expected and found).
 */
KELP_API kelp_status *kelp_context_set_input(kelp_context *context, size_t index,
                                             const kelp_tensor *tensor) KELP_MUST_USE;
/* Binds where an output goes: `capacity_bytes` at `data`, host memory if nothing else was said,
 * 64-byte alignment not needed. NULL data: the context's own memory (the default). Invoke fails
 * with OUT_OF_RANGE when it is too small. */
KELP_API kelp_status *kelp_context_set_output(kelp_context *context, size_t index, void *data,
                                              size_t capacity_bytes) KELP_MUST_USE;
/* The device on which output `index` lies: what is bound, what its allocator gives, or the
 * context's own memory, which is then left there. {kDLCPU, 0} is the default, and all that the cpu
 * takes: INVALID_ARGUMENT. */
KELP_API kelp_status *kelp_context_set_output_device(kelp_context *context, size_t index,
                                                     DLDevice device) KELP_MUST_USE;
/* Holds the context to the shapes of a profile (0 from the start when there is one). Inputs that do
 * not fit are refused with the bounds. OUT_OF_RANGE when there is none of that number. */
KELP_API kelp_status *kelp_context_set_profile(kelp_context *context, size_t profile) KELP_MUST_USE;
/* Memory for activations, 64-byte aligned, the caller's until the context goes or gets other; NULL:
 * the context's own (the default). Invoke fails with RESOURCE_EXHAUSTED when it is too small. */
KELP_API kelp_status *kelp_context_set_workspace(kelp_context *context, void *data,
                                                 size_t size_bytes) KELP_MUST_USE;
/* Asked for the place of an output once its size is known, in each invoke; its memory is the
 * caller's. NULL from it is RESOURCE_EXHAUSTED. A NULL function: as kelp_context_set_output says.
 */
typedef void *(*kelp_output_allocator)(void *userp, size_t index, const kelp_tensor *output,
                                       size_t size_bytes);
KELP_API kelp_status *kelp_context_set_output_allocator(kelp_context *context, size_t index,
                                                        kelp_output_allocator fn,
                                                        void *userp) KELP_MUST_USE;
/* Plans for the bound input shapes; invoke does it when it was not called. After it
 * kelp_context_output gives the outputs' shapes, but for those that depend on data (rank -1). */
KELP_API kelp_status *kelp_context_prepare(kelp_context *context) KELP_MUST_USE;
KELP_API kelp_status *kelp_context_invoke(kelp_context *context) KELP_MUST_USE;
/* The output's descriptor; its data is valid until the next invoke, and, in the context's own
 * memory, until destroy. */
KELP_API const kelp_tensor *kelp_context_output(const kelp_context *context, size_t index);
/* From any thread: the invoke, or the replay of a captured run, that is under way returns
 * CANCELLED. It is seen before each node, each round of a loop and, within a node, each part of its
 * work that a thread takes, some ms; a kernel that does not share its work out ends first. What
 * outputs hold then is nothing; the context can be used on, and what it prepared stays. Without an
 * invoke under way nothing happens. Engines of providers that cannot stop run to their end. */
KELP_API void kelp_context_cancel(kelp_context *context);
/* Asked where a cancellation is seen, within a node from time to time, as a rule on the invoking
 * thread, until invoke returns: true ends it with CANCELLED. Keep it cheap. NULL: nobody is asked.
 * Not during an invoke. */
typedef bool (*kelp_interrupt_fn)(void *userp);
KELP_API void kelp_context_set_interrupt(kelp_context *context, kelp_interrupt_fn fn, void *userp);

/* ---- streams ---- */
/* Runs what is enqueued, in that order, beside the caller. Threads: any may enqueue. */
typedef struct kelp_stream kelp_stream;
KELP_API kelp_status *kelp_stream_create(kelp_runtime *runtime, kelp_stream **out) KELP_MUST_USE;
/* A stream of a device's library (a CUstream), for engines of its provider; borrowed. */
KELP_API kelp_status *kelp_stream_wrap(kelp_runtime *runtime, void *native_stream,
                                       kelp_stream **out) KELP_MUST_USE;
/* Waits for all that was enqueued. */
KELP_API void kelp_stream_destroy(kelp_stream *stream);
/* The same; returns the first failure since the last call. */
KELP_API kelp_status *kelp_stream_synchronize(kelp_stream *stream) KELP_MUST_USE;
/* Invokes the context as it is bound now, on the stream. Until `event` (may be NULL) is done the
 * context and what is bound belong to the stream. RESOURCE_EXHAUSTED when 1,024 runs wait. */
KELP_API kelp_status *kelp_context_enqueue(kelp_context *context, kelp_stream *stream,
                                           kelp_event *event) KELP_MUST_USE;

/* ---- captured graphs: record once, replay without dispatch ---- */
typedef struct kelp_capture kelp_capture;
/* Records the run for the shapes and addresses that are bound: a flat list of kernel calls. It
 * stands as long as neither is changed. FAILED_PRECONDITION names a node whose shape depends on
 * data. */
KELP_API kelp_status *kelp_context_capture(kelp_context *context, kelp_capture **out) KELP_MUST_USE;
/* Reads inputs and writes outputs where they were bound; the same bytes as kelp_context_invoke. One
 * thread at a time with its context. FAILED_PRECONDITION once the context was bound anew. */
KELP_API kelp_status *kelp_capture_replay(kelp_capture *capture) KELP_MUST_USE;
KELP_API size_t kelp_capture_step_count(const kelp_capture *capture);
KELP_API void kelp_capture_destroy(kelp_capture *capture);

typedef struct kelp_plan_stats {        /* of the current plan */
    size_t steps;                       /* kernels that invoke calls */
    size_t views;                       /* nodes that became views */
    size_t folded;                      /* nodes worked out while planning */
    size_t dynamic_steps;               /* whose shapes depend on data */
    size_t workspace_bytes;             /* activations, scratch */
    size_t workspace_lower_bound_bytes; /* largest sum of what lives at once */
    size_t activation_bytes;            /* sum without reuse */
} kelp_plan_stats;
KELP_API kelp_plan_stats kelp_context_plan_stats(const kelp_context *context);

/* Reports the time of one step of a run. `step` counts from 0 in each run. `op_type`, `name` (the
 * node's; "" if it has none) and `algorithm` are valid during the call. `algorithm` is the name of
 * the algorithm that the kernel chose for the current shapes, such as "winograd_4x4"; NULL where
 * there is no choice, or where the provider does not tell. */
typedef void (*kelp_profile_fn)(void *userp, size_t step, const char *op_type, const char *name,
                                const char *algorithm, uint64_t duration_ns);
/* Sets the callback that reports each step of the invokes that follow, on the invoking thread. NULL
 * ends profiling. Not during an invoke. UNIMPLEMENTED by providers that do not measure. */
KELP_API kelp_status *kelp_context_set_profiler(kelp_context *context, kelp_profile_fn fn,
                                                void *userp) KELP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
