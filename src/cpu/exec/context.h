/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of the provider `cpu`: bindings, schedules and memory of one stream of runs. One thread
 * at a time. */
#ifndef KELP_CPU_EXEC_CONTEXT_H_
#define KELP_CPU_EXEC_CONTEXT_H_

#include "cpu/exec/schedule.h"
#include "runtime/opset/placed.h"

typedef struct kelp_cpu_context kelp_cpu_context;

/* ---- instances (instance.c) ---- */
/* The memory of an output of an instance. */
typedef struct kelp_cpu_bound_output {
    void *user_data; /* NULL: own_data */
    size_t user_bytes;
    void *own_data;
    size_t own_bytes;
    void *other_data; /* of a carried output of a body: the result of the previous run */
    size_t other_bytes;
    void *target; /* where steps write: user_data, or own_data if that is absent or misaligned */
    kelp_output_allocator allocate; /* called in each run; may be NULL */
    void *allocate_userp;
} kelp_cpu_bound_output;

/* A program in one context: the main block's, or a body's. */
struct kelp_cpu_instance {
    kelp_cpu_context *context;
    const kelp_cpu_program *program;
    kelp_op_env env;      /* passed to kernels */
    kelp_body *body;      /* NULL for the main block */
    uint64_t specialized; /* of a body: inputs whose data is known during scheduling */
    kelp_tensor *inputs;  /* as bound; dtype INVALID: not bound yet */
    void **input_data;    /* read by steps: as bound, or an aligned copy of this run */
    kelp_cpu_bound_output *outputs;
    kelp_tensor *shown;           /* by output: its descriptor, as kelp_context_output returns it */
    kelp_cpu_schedule *schedules; /* the first is current if `scheduled` */
    size_t schedule_count;
    bool scheduled;
    bool hidden;     /* `shown` lacks the shapes that depend on data */
    bool rebind;     /* a binding changed since data pointers were resolved */
    uint32_t credit; /* for specialized schedules, see instance.c */
    uint32_t stamp;  /* changes with the bindings and with the schedule */
    char *workspace; /* own_workspace or user_workspace */
    char *own_workspace;
    size_t own_workspace_bytes;
    char *user_workspace;
    size_t user_workspace_bytes;
};

/* Initializes a zeroed instance. The caller calls deinit, also on failure. */
kelp_status *kelp_cpu_instance_init(kelp_cpu_instance *instance, kelp_cpu_context *context,
                                    const kelp_cpu_program *program) KELP_MUST_USE;
/* Frees the schedules, the memory and the arrays; does nothing before init. */
void kelp_cpu_instance_deinit(kelp_cpu_instance *instance);
/* Binds an input. Another shape selects another schedule. */
void kelp_cpu_instance_bind(kelp_cpu_instance *instance, size_t index, const kelp_tensor *tensor);
/* Selects or compiles the schedule of the bound shapes. All inputs are bound. */
kelp_status *kelp_cpu_instance_prepare(kelp_cpu_instance *instance) KELP_MUST_USE;
/* Runs the program; `shown` then describes the results. */
kelp_status *kelp_cpu_instance_run(kelp_cpu_instance *instance) KELP_MUST_USE;
/* Does the work of kelp_cpu_instance_run before its steps: selects the schedule and binds it. */
kelp_status *kelp_cpu_instance_begin(kelp_cpu_instance *instance) KELP_MUST_USE;
/* Does the work of kelp_cpu_instance_run after its steps: copies outputs to their memory. */
kelp_status *kelp_cpu_instance_deliver(kelp_cpu_instance *instance) KELP_MUST_USE;
/* Frees schedules and workspace; keeps the bindings. */
void kelp_cpu_instance_forget(kelp_cpu_instance *instance);
/* Removes the shapes that depend on data from `shown`, also with a specialized schedule. */
void kelp_cpu_instance_hide_dynamic(kelp_cpu_instance *instance);
/* Returns the status of a step, or CANCELLED if the run was stopped during the step, whose results
 * and status are then invalid. */
kelp_status *kelp_cpu_instance_settle(const kelp_cpu_instance *instance, const kelp_node *node,
                                      kelp_status *take_status) KELP_MUST_USE;
/* Adds the node of an error, and the graphs that contain it, to the message. */
kelp_status *kelp_cpu_instance_name_node(const kelp_cpu_instance *instance, const kelp_node *node,
                                         kelp_status *take_status) KELP_MUST_USE;

/* ---- bodies (body.c) ---- */
/* A block of a node in a schedule. */
typedef struct kelp_cpu_body {
    kelp_body body; /* first: operators see this */
    kelp_cpu_instance instance;
    struct kelp_cpu_body *next; /* of the schedule */
} kelp_cpu_body;

/* Creates the bodies of a node; they are destroyed with the schedule. `specialized` has a bit for
 * each input of the node whose data is known. */
kelp_status *kelp_cpu_bodies_create(kelp_cpu_context *context, kelp_cpu_schedule *schedule,
                                    const kelp_cpu_node *engine_node, uint64_t specialized,
                                    kelp_body **out) KELP_MUST_USE;
void kelp_cpu_bodies_destroy(kelp_cpu_schedule *schedule);

/* ---- contexts (context.c) ---- */
/* The `context` of kelp_engine_vtbl. */
struct kelp_cpu_context {
    kelp_cpu_engine *engine; /* outlives the context */
    kelp_allocator allocator;
    kelp_arena run_arena; /* cleared by each run; the run of a body releases its allocations, unless
                             its results are lists or strings, which point to them */
    kelp_placed *placed;  /* tensors on devices of the run, in run_arena */
    kelp_stop stop;       /* of the run in progress */
    kelp_cpu_instance main;
    kelp_profile_fn profiler;
    void *profiler_userp;
    size_t profile;        /* the optimization profile that inputs are checked against */
    kelp_cpu_engine *core; /* whose program the schedules are of; retained */
};

/* Creates a context. Fails with FAILED_PRECONDITION if the engine lacks weights. */
kelp_status *kelp_cpu_context_create(kelp_cpu_engine *engine, kelp_cpu_context **out) KELP_MUST_USE;
/* Destroys a context or NULL. */
void kelp_cpu_context_destroy(kelp_cpu_context *context);
/* Selects or compiles the schedule of the bound shapes, after a refit with the new engine. */
kelp_status *kelp_cpu_context_prepare(kelp_cpu_context *context) KELP_MUST_USE;
/* Releases the memory of the last run. */
void kelp_cpu_context_clear_run(kelp_cpu_context *context);
/* Begins a run: clears the last one and resets `stop`. */
void kelp_cpu_context_begin_run(kelp_cpu_context *context);
/* Returns the statistics of the current schedule; zeros without one. */
kelp_plan_stats kelp_cpu_context_plan_stats(const kelp_cpu_context *context);
/* Compiles the schedule of the shapes that the model declares, with 1 for a dynamic first
 * dimension, so that kernels pack their weights now. Binds nothing. Does nothing if a shape is
 * unknown, if schedules may depend on values of an input, and for engine images, whose weights are
 * packed. Ignores errors: the shapes fail again when they are bound. (profile.c) */
void kelp_cpu_context_warm_up(kelp_cpu_context *context);

/* Gives `env` the memory and the stop flag of runs, which are absent during scheduling. */
static inline void kelp_cpu_context_lend(kelp_op_env *env, kelp_cpu_context *context) {
    env->arena = &context->run_arena;
    env->stop = &context->stop;
    env->placed = &context->placed;
}

/* ---- recordings (recording.c) ---- */
/* Implements kelp_engine_vtbl.capture, .replay and .destroy_capture. */
kelp_status *kelp_cpu_recording_create(void *context, void **out, size_t *out_steps) KELP_MUST_USE;
kelp_status *kelp_cpu_recording_replay(void *recording, kelp_tensor *outputs) KELP_MUST_USE;
void kelp_cpu_recording_destroy(void *recording);

#endif
