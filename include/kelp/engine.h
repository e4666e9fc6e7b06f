/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/engine.h: runtime → engine → context → bind → invoke.
 *
 *   kelp_runtime   threads, allocator, log, operators; one a program is enough, several are fine
 *   kelp_engine    a graph that was checked, folded, fused and matched to kernels; weights are
 * packed once; shared by contexts kelp_context   one stream of invocations: shapes, memory plan,
 * workspace
 *
 * Children retain their parents: destroy in any order. Phases: create (engine) → set shapes →
 * prepare (plans memory; only when a shape changed) → invoke. Invoke makes no allocation of its own
 * once a shape was seen. Threads: runtime and engine from any thread; a context from one thread at
 * a time.
 */
#ifndef KELP_ENGINE_H_
#define KELP_ENGINE_H_

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
KELP_API const kelp_opset_registry *kelp_runtime_opsets(const kelp_runtime *runtime);
KELP_API kelp_allocator kelp_runtime_allocator(const kelp_runtime *runtime);
KELP_API int kelp_runtime_threads(const kelp_runtime *runtime);

/* "0.1.0" */
KELP_API const char *kelp_version(void);

/* ---- engine ---- */
typedef struct kelp_engine kelp_engine;
typedef struct kelp_engine_options { /* zeroed fields take the defaults */
    uint32_t struct_size;            /* sizeof(kelp_engine_options) */
    uint32_t disable_fusion;         /* 1: run the graph as written, folded only */
    uint32_t max_plans;              /* shapes whose plan a context keeps [16] */
    /* Told how many of the graph's operators are made, whose weights are packed then, from the
     * thread that creates; false gives up: CANCELLED. [none] */
    bool (*progress)(void *userp, size_t done, size_t total);
    void *progress_userp;
} kelp_engine_options;
/* Retains runtime and graph. UNIMPLEMENTED lists every uncovered node; INVALID_ARGUMENT names the
 * node that is wrong. */
KELP_API kelp_status *kelp_engine_create(kelp_runtime *runtime, kelp_graph *graph,
                                         const kelp_engine_options *options,
                                         kelp_engine **out) KELP_MUST_USE;
KELP_API kelp_engine *kelp_engine_retain(kelp_engine *engine);
KELP_API void kelp_engine_release(kelp_engine *engine);

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
} kelp_engine_stats;
KELP_API kelp_engine_stats kelp_engine_get_stats(const kelp_engine *engine);

/* ---- context ---- */
typedef struct kelp_context kelp_context;
KELP_API kelp_status *kelp_context_create(kelp_engine *engine, kelp_context **out) KELP_MUST_USE;
KELP_API void kelp_context_destroy(kelp_context *context);

/* Binds an input: compact, host memory, borrowed until invoke returns. Its dtype must be the
 * input's and its shape must fit (INVALID_ARGUMENT says which input, what was expected and found).
 */
KELP_API kelp_status *kelp_context_set_input(kelp_context *context, size_t index,
                                             const kelp_tensor *tensor) KELP_MUST_USE;
/* Binds where an output goes: `capacity_bytes` at `data`, 64-byte alignment not needed. NULL data:
 * the context's own memory (the default). Invoke fails with OUT_OF_RANGE when it is too small. */
KELP_API kelp_status *kelp_context_set_output(kelp_context *context, size_t index, void *data,
                                              size_t capacity_bytes) KELP_MUST_USE;
/* Plans for the bound input shapes; invoke does it when it was not called. After it
 * kelp_context_output gives the outputs' shapes, but for those that depend on data (rank -1). */
KELP_API kelp_status *kelp_context_prepare(kelp_context *context) KELP_MUST_USE;
KELP_API kelp_status *kelp_context_invoke(kelp_context *context) KELP_MUST_USE;
/* The output's descriptor; its data is valid until the next invoke, and, in the context's own
 * memory, until destroy. */
KELP_API const kelp_tensor *kelp_context_output(const kelp_context *context, size_t index);
/* From any thread: the invoke under way returns CANCELLED at the next node. */
KELP_API void kelp_context_cancel(kelp_context *context);
/* Asked before each node and round of a loop, as a rule on the invoking thread, until invoke
 * returns: true ends it with CANCELLED. Keep it cheap. NULL: nobody is asked. Not during an invoke.
 */
typedef bool (*kelp_interrupt_fn)(void *userp);
KELP_API void kelp_context_set_interrupt(kelp_context *context, kelp_interrupt_fn fn, void *userp);

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

/* Time a node took, when profiling is on. `step` counts from 0. */
typedef void (*kelp_profile_fn)(void *userp, size_t step, const char *op_type, const char *name,
                                uint64_t duration_ns);
KELP_API void kelp_context_set_profiler(kelp_context *context, kelp_profile_fn fn, void *userp);

#ifdef __cplusplus
}
#endif
#endif
