/* SPDX-License-Identifier: Apache-2.0 */
/* What engine, plan and context share. */
#ifndef KELP_CPU_EXEC_EXEC_H_
#define KELP_CPU_EXEC_EXEC_H_

#include "base/arena.h"
#include "cpu/exec/packs.h"
#include "runtime/runtime.h"
#include "graph/ir.h"
#include "graph/save.h"
#include "runtime/opset/body.h"
#include "runtime/opset/env.h"
#include "runtime/partition/partition.h"

#include <kelp/engine_provider.h>
#include <pthread.h>

typedef struct kelp_cpu_context kelp_cpu_context;

/* A node of the engine's graph, matched to its kernel. */
typedef struct kelp_cpu_node {
    const kelp_node *node;
    const kelp_op_kernel *kernel;
    void *state;                        /* from kernel->create or the bridge */
    struct kelp_program *const *bodies; /* of the node's blocks, in the attributes' order */
    size_t body_count;
    uint32_t index; /* among all of the engine that a plan would hold */
} kelp_cpu_node;

/* A block with its kernels, shared by all contexts: what plans are made of. A plan takes in the
 * branches of an If whose condition is known; their values and nodes are counted along. */
typedef struct kelp_program {
    const kelp_block *block;
    kelp_cpu_node *nodes;
    size_t node_count;
    size_t value_total, node_total; /* with those of branches, theirs included */
    size_t value_offset;            /* of a branch: where its values begin, after the parent's */
} kelp_program;

/* Memory that the engine owns for constants it folded or moved to an aligned place. */
typedef struct kelp_owned_block {
    struct kelp_owned_block *next;
    void *data;
    size_t size_bytes;
} kelp_owned_block;

/* The graph before the passes, in a plan whose bytes `engine->source` keeps. */
typedef struct kelp_plan_source {
    kelp_str model; /* empty: there is none */
    uint64_t model_hash;
    kelp_str parts[KELP_PART_COUNT];
} kelp_plan_source;

/* What kelp_engine holds for engines of the provider `cpu`. */
typedef struct kelp_cpu_engine {
    _Atomic uint32_t references;
    kelp_runtime *runtime;
    kelp_allocator allocator;
    kelp_allocator weights; /* counts what kernels pack (weights.c) */
    _Atomic size_t packed_bytes;
    pthread_mutex_t weights_lock; /* over the chunks */
    struct kelp_weight_chunk *chunks;
    _Atomic size_t relaxed_bytes; /* packed when the source's pages were last released */
    kelp_graph *source;
    kelp_graph *graph;        /* the engine's own, after the passes */
    kelp_partition partition; /* subgraphs that other providers run */
    kelp_program *program;
    kelp_map moved; /* while it is built: constants copied to an aligned place */
    const kelp_engine_options *options; /* while it is built */
    kelp_owned_block *owned;
    kelp_io_info *inputs, *outputs;
    size_t input_count, output_count;
    uint32_t max_plans;
    size_t nodes_loaded;
    /* of plans */
    kelp_arena arena;                /* profiles and names */
    kelp_shape (*profile_shapes)[3]; /* [profile_count * input_count]; rank -1: no bounds */
    kelp_shape (*profile_values)[3]; /* the same for what inputs hold; NULL: nothing is bounded */
    size_t profile_count;
    const char **refittable;
    size_t refittable_count;
    struct kelp_cpu_engine *refitted; /* contexts run it since the last refit, or NULL */
    bool no_fusion;
    kelp_precision precision;
    bool stripped;                      /* weights are missing until a refit brings them */
    kelp_cpu_packs *packs;              /* of a plan, or of one that is built; else NULL */
    uint32_t nodes_made;                /* see kelp_cpu_node.index */
    kelp_plan_source refittable_source; /* of a plan that holds the graph before the passes too */
} kelp_cpu_engine;

/* Where a plan differs from a graph that is made into an engine. */
typedef struct kelp_cpu_origin {
    bool prepared;              /* the passes have run already */
    bool bare;                  /* weights are missing: inputs and outputs alone */
    kelp_cpu_packs *take_packs; /* may be NULL; taken also when making fails */
} kelp_cpu_origin;
kelp_status *kelp_cpu_engine_make(kelp_runtime *runtime, kelp_graph *graph,
                                  const kelp_engine_options *options, const kelp_cpu_origin *origin,
                                  kelp_cpu_engine **out) KELP_MUST_USE;
kelp_cpu_engine *kelp_cpu_engine_retain(kelp_cpu_engine *engine);
void kelp_cpu_engine_release(kelp_cpu_engine *engine);
/* Makes the engine that users see. Takes `take_engine`, also when this fails. */
kelp_status *kelp_cpu_engine_wrap(kelp_cpu_engine *take_engine, kelp_engine **out) KELP_MUST_USE;
kelp_engine_stats kelp_cpu_engine_stats(const kelp_cpu_engine *engine);
/* Memory for the largest shapes of a profile; without profiles dynamic dimensions are 1. Returns
 * false when there is none: weights are missing, or the model does not take these shapes. */
bool kelp_cpu_engine_measure(const kelp_cpu_engine *engine, size_t profile, kelp_plan_stats *out);
/* Memory for the largest shapes of a profile, or for those of a model without dynamic dimensions:
 * FAILED_PRECONDITION where dimensions have no bound. */
kelp_status *kelp_cpu_engine_workspace(const kelp_cpu_engine *engine, size_t profile,
                                       size_t *out) KELP_MUST_USE;
kelp_status *kelp_cpu_engine_inspect(const kelp_cpu_engine *engine, bool json,
                                     void (*write)(void *userp, const char *text, size_t length),
                                     void *userp) KELP_MUST_USE;
kelp_status *kelp_cpu_engine_refit(kelp_cpu_engine *engine, const kelp_weights *weights,
                                   size_t count) KELP_MUST_USE;
/* Returns INVALID_ARGUMENT when an input holds values outside of the profile's bounds. */
kelp_status *kelp_cpu_engine_check_values(const kelp_cpu_engine *engine, size_t profile,
                                          const kelp_tensor *inputs) KELP_MUST_USE;
/* Returns the engine that contexts run: the engine itself, or what the last refit made. */
static inline kelp_cpu_engine *kelp_cpu_engine_current(kelp_cpu_engine *engine) {
    return engine->refitted != NULL ? engine->refitted : engine;
}
/* Returns true while weights are missing. */
static inline bool kelp_cpu_engine_is_stripped(const kelp_cpu_engine *engine) {
    return engine->stripped && engine->refitted == NULL;
}
/* Returns the bytes of weights that were stripped and have this name; 0: none were. */
size_t kelp_cpu_engine_missing_bytes(const kelp_cpu_engine *engine, const char *name);
/* Returns FAILED_PRECONDITION that lists what is missing, for an engine of a stripped plan. */
kelp_status *kelp_cpu_engine_check_complete(const kelp_cpu_engine *engine) KELP_MUST_USE;
/* Plans for the shapes that a profile gives as its `which` (of kelp_profile_selector), or, without
 * any, those of the network with dynamic dimensions 1: kernels may pack for them. */
kelp_status *kelp_cpu_engine_warm_up(kelp_cpu_engine *engine, const kelp_profile_shape *shapes,
                                     size_t count, int which) KELP_MUST_USE;

/* Works out every node whose inputs are all constant, in the main block and in bodies; the results
 * become constants. An If whose condition is constant becomes its branch. With
 * `keep_bytes` weights of 8 bits stay. */
kelp_status *kelp_cpu_engine_fold_constants(kelp_cpu_engine *engine, bool keep_bytes) KELP_MUST_USE;
/* true when `node` is an If and the condition (may be NULL) tells which branch it takes. */
bool kelp_cpu_engine_known_branch(const kelp_node *node, const kelp_tensor *condition,
                                  kelp_block **out_branch);
/* Memory for `size_bytes` that lives as long as the engine. */
kelp_status *kelp_cpu_engine_own(kelp_cpu_engine *engine, size_t size_bytes,
                                 void **out) KELP_MUST_USE;
/* engine->weights; deinit when all that came from it is freed. */
void kelp_cpu_engine_weights_init(kelp_cpu_engine *engine);
void kelp_cpu_engine_weights_deinit(kelp_cpu_engine *engine);
/* Lets go of the model file's pages when much was packed since the last time. Any thread. */
void kelp_cpu_engine_weights_relax(kelp_cpu_engine *engine);

/* ---- plans ---- */
typedef enum kelp_storage {
    KELP_STORAGE_NONE = 0,  /* never made (its steps were folded away) */
    KELP_STORAGE_FIXED,     /* constant, or known since planning */
    KELP_STORAGE_INPUT,     /* where the caller bound input `index` */
    KELP_STORAGE_OUTPUT,    /* where output `index` goes */
    KELP_STORAGE_WORKSPACE, /* at `offset` in the context's workspace */
    KELP_STORAGE_DYNAMIC    /* placed while invoking */
} kelp_storage;

/* A value under a plan. Values that share bytes (views, in place) have the same root. */
typedef struct kelp_plan_value {
    kelp_tensor tensor;   /* shape known unless `dynamic`; data is set when the plan is bound */
    uint32_t root;        /* own id when it is its own */
    kelp_storage storage; /* of a root */
    uint32_t index;
    size_t offset;
    size_t bytes;         /* of a root: the most that any of its values needs */
    uint32_t first, last; /* steps between which a root is alive */
    bool dynamic;         /* shape known only while invoking */
} kelp_plan_value;

typedef struct kelp_step {
    const kelp_cpu_node *engine_node;
    kelp_op_args args;
    size_t scratch_offset;
    bool dynamic;
} kelp_step;

typedef struct kelp_plan {
    struct kelp_plan *next;    /* most recently used first */
    kelp_arena arena;          /* everything below lives here */
    kelp_tensor *input_shapes; /* what it was made for; `data` where it was made for that too */
    uint64_t wants;            /* inputs whose data would leave fewer steps to invoke (bit i) */
    uint64_t given;            /* inputs that it was made for the data of */
    kelp_plan_value *values;   /* by value id; of branches taken in, at their offsets */
    size_t value_count;
    kelp_step *steps;
    size_t step_count;
    size_t workspace_bytes;
    uint32_t *moving; /* values whose address changes with what the caller binds */
    size_t moving_count;
    const kelp_plan_value **outputs; /* of the block */
    bool *open;   /* per output: its shape hangs on data, here or in the plan without them */
    bool *copies; /* per output: it is copied to its place after the last step */
    char *bound_workspace; /* what data pointers were resolved against */
    bool bound;
    struct kelp_cpu_body *bodies; /* of its nodes that own blocks */
    kelp_plan_stats stats;
} kelp_plan;

/* A program in one context: what is bound to it, its plans, its memory. */
typedef struct kelp_frame {
    kelp_cpu_context *context;
    const kelp_program *program;
    kelp_op_env env;     /* what kernels see */
    kelp_body *body;     /* that it is behind; NULL: the main block's */
    uint64_t given;      /* inputs whose data are known while planning */
    kelp_tensor *inputs; /* as bound; dtype INVALID: not bound yet */
    void **input_data;   /* where steps read it: as bound, or an aligned copy of this invoke */
    struct kelp_bound_output {
        void *user_data; /* NULL: own */
        size_t user_bytes;
        void *own_data;
        size_t own_bytes;
        void *other_data; /* of a body's carried output: what it gave in the run before */
        size_t other_bytes;
        void *target; /* where steps write it: user_data, or own_data when that is absent or
                         misaligned */
        kelp_output_allocator place; /* asked in each invoke, when there is one */
        void *place_userp;
    } * outputs;
    kelp_tensor *shown; /* by output: its descriptor, as kelp_context_output returns it */
    kelp_plan *plans;   /* the first is current when `planned` */
    size_t plan_count;
    bool planned;
    bool hidden;     /* outputs that hang on data are shown without a shape */
    bool rebind;     /* a binding changed since data pointers were resolved */
    uint32_t credit; /* what plans for data may still cost, see frame.c */
    uint32_t stamp;  /* changes with what is bound and with the plan */
    char *workspace; /* own_workspace or the caller's */
    char *own_workspace;
    size_t own_workspace_bytes;
    char *user_workspace;
    size_t user_workspace_bytes;
} kelp_frame;

struct kelp_cpu_context {
    kelp_cpu_engine *engine; /* outlives the context */
    kelp_allocator allocator;
    kelp_arena run_arena; /* cleared by each invoke; a body's run takes back what it took, unless
                             lists or strings came out, which lie there */
    kelp_stop stop;       /* of the run in progress */
    kelp_frame main;
    kelp_profile_fn profiler;
    void *profiler_userp;
    size_t profile;        /* the optimization profile that inputs are held to */
    kelp_cpu_engine *core; /* whose program the plans are of; counted */
};

kelp_status *kelp_cpu_context_create(kelp_cpu_engine *engine, kelp_cpu_context **out) KELP_MUST_USE;
void kelp_cpu_context_destroy(kelp_cpu_context *context);
/* Plans for the shapes that are bound, after a refit for the new engine. */
kelp_status *kelp_cpu_context_prepare(kelp_cpu_context *context) KELP_MUST_USE;
kelp_plan_stats kelp_cpu_context_plan_stats(const kelp_cpu_context *context);
/* Plans for the shapes that the model declares, and for 1 where only the first dimension is
 * dynamic, so that kernels pack their weights now. Binds nothing. Does nothing where shapes stay
 * unknown, where values of an input may matter, and for engines of plan files: their weights are
 * packed, and they are to be loaded fast. What cannot be planned fails when it is bound. */
void kelp_cpu_context_warm_up(kelp_cpu_context *context);

/* ---- recordings: entries of the table (kelp/engine_provider.h) ---- */
kelp_status *kelp_cpu_recording_create(void *context, void **out, size_t *out_steps) KELP_MUST_USE;
kelp_status *kelp_cpu_recording_replay(void *recording, kelp_tensor *outputs) KELP_MUST_USE;
void kelp_cpu_recording_destroy(void *recording);

/* A block of a node under a plan. */
typedef struct kelp_cpu_body {
    kelp_body body;
    kelp_frame frame;
    struct kelp_cpu_body *next; /* of the plan */
} kelp_cpu_body;

/* The bodies of a node, for the planner: `given` has a bit for each input of the node whose data
 * are known. They go with the plan. */
kelp_status *kelp_bodies_create(kelp_cpu_context *context, kelp_plan *plan,
                                const kelp_cpu_node *engine_node, uint64_t given,
                                kelp_body **out) KELP_MUST_USE;
void kelp_bodies_destroy(kelp_plan *plan);

/* ---- frames ---- */
kelp_status *kelp_frame_init(kelp_frame *frame, kelp_cpu_context *context,
                             const kelp_program *program) KELP_MUST_USE;
void kelp_frame_deinit(kelp_frame *frame);
/* Gives `env` what steps have while they run, and planning does without. */
static inline void kelp_frame_lend(kelp_op_env *env, kelp_cpu_context *context) {
    env->arena = &context->run_arena;
    env->stop = &context->stop;
}
/* Plans for the shapes that are bound, unless there is such a plan. */
kelp_status *kelp_frame_prepare(kelp_frame *frame) KELP_MUST_USE;
/* Binds an input: its plan may have to be another one. */
void kelp_frame_bind(kelp_frame *frame, size_t index, const kelp_tensor *tensor);
/* Runs the program on what is bound; outputs[i].tensor is then the result. */
kelp_status *kelp_frame_run(kelp_frame *frame) KELP_MUST_USE;
/* What kelp_frame_run does before its steps, and after them. */
kelp_status *kelp_frame_begin(kelp_frame *frame) KELP_MUST_USE;
kelp_status *kelp_frame_deliver(kelp_frame *frame) KELP_MUST_USE;
/* Drops plans and memory; what is bound stays. */
void kelp_frame_forget(kelp_frame *frame);
/* Shows outputs whose shapes hang on data as open, also under a plan made for data. */
void kelp_frame_hide_open(kelp_frame *frame);
/* Before a run, for whose kernels `context->stop` speaks from here on. */
void kelp_cpu_context_begin_run(kelp_cpu_context *context);
/* What a step answered, or CANCELLED when the run was stopped in its midst: then its results are
 * nothing, and neither is what it says of them. */
kelp_status *kelp_frame_settle(const kelp_frame *frame, const kelp_node *node,
                               kelp_status *take_status) KELP_MUST_USE;
/* Adds to an error which node it is about, and in which graphs that stands. */
kelp_status *kelp_frame_name_node(const kelp_frame *frame, const kelp_node *node,
                                  kelp_status *take_status) KELP_MUST_USE;
/* true when a plan may be made for the data of such an input: extents, a condition. */
bool kelp_plan_may_know(const kelp_tensor *tensor);
/* true when kernels may read data of this type there. */
bool kelp_is_aligned(const void *data, kelp_dtype dtype);

/* Makes the plan for the frame's bound input shapes, and for the data of inputs in `given`. */
kelp_status *kelp_plan_create(kelp_frame *frame, uint64_t given, kelp_plan **out) KELP_MUST_USE;
/* true when it was made for the shapes, and as far as it was made for it, the data that are bound
 * now. */
bool kelp_plan_fits(const kelp_plan *plan, const kelp_frame *frame);
/* Points every value at its place: the workspace, what the caller bound, or the output's target. */
void kelp_plan_bind(kelp_plan *plan, kelp_frame *frame);
void kelp_plan_destroy(kelp_plan *plan, kelp_allocator allocator);

/* Bytes to which data of this type must be aligned for kernels. */
size_t kelp_element_alignment(kelp_dtype dtype);

/* ---- memory planner ---- */
typedef struct kelp_interval {
    size_t bytes;
    uint32_t first, last; /* alive during steps first … last */
    size_t offset;        /* out */
    size_t best;          /* used inside */
} kelp_interval;
/* Places the intervals so that no two that are alive at once overlap: largest first, each in the
 * lowest gap that fits; where that ends well above the lower bound, what reaches the top goes
 * first, a few times. Offsets are multiples of 64. `order` has room for `count` indexes. Source:
 * "greedy by size", Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
 * 2020. */
bool kelp_memory_plan(kelp_interval *intervals, size_t count, uint32_t *order, uint32_t *placed,
                      size_t *out_total_bytes, size_t *out_lower_bound_bytes);

#endif
