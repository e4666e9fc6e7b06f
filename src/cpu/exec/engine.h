/* SPDX-License-Identifier: Apache-2.0 */
/* Engines of the provider `cpu`: a graph after the passes, matched to kernels. Shared by all of its
 * contexts, and not changed by them, but for weights that kernels pack late. */
#ifndef KELP_CPU_EXEC_ENGINE_H_
#define KELP_CPU_EXEC_ENGINE_H_

#include "base/arena.h"
#include "cpu/exec/packs.h"
#include "graph/ir.h"
#include "graph/save.h"
#include "runtime/partition/partition.h"
#include "runtime/runtime.h"

#include <kelp/engine_provider.h>
#include <pthread.h>

/* A mask of inputs is a uint64_t with one bit for each of the first 63; schedule.c defines the last
 * bit. */
#define KELP_CPU_MASKED_INPUTS 63u

/* A node of the engine's graph, matched to its kernel. */
typedef struct kelp_cpu_node {
    const kelp_node *node;
    const kelp_op_kernel *kernel;
    void *state;                            /* from kernel->create or the bridge */
    struct kelp_cpu_program *const *bodies; /* of the node's blocks, in the attributes' order */
    size_t body_count;
    uint32_t index; /* among the nodes that an engine image contains */
} kelp_cpu_node;

/* A block with its kernels; the source of schedules. A schedule may include the branch of an If
 * with a known condition, so that the totals count the values and nodes of branches. */
typedef struct kelp_cpu_program {
    const kelp_block *block;
    kelp_cpu_node *nodes;
    size_t node_count;
    size_t value_total, node_total; /* of the block and of branches inside of it */
    size_t value_offset;            /* of a branch: index of its first value in a schedule */
} kelp_cpu_program;

/* Memory of the engine for a constant that was folded or copied to an aligned address. */
typedef struct kelp_cpu_owned_block {
    struct kelp_cpu_owned_block *next;
    void *data;
    size_t size_bytes;
} kelp_cpu_owned_block;

/* The graph before the passes, in an engine image whose bytes `engine->source` keeps. */
typedef struct kelp_cpu_image_source {
    kelp_str model; /* empty: there is none */
    uint64_t model_hash;
    kelp_str parts[KELP_PART_COUNT];
} kelp_cpu_image_source;

/* An engine of the provider `cpu`; the `engine` of kelp_engine_vtbl. */
typedef struct kelp_cpu_engine {
    _Atomic uint32_t references;
    kelp_runtime *runtime;
    kelp_allocator allocator;
    kelp_allocator weights; /* of packed weights; counts their bytes (weights.c) */
    _Atomic size_t packed_bytes;
    pthread_mutex_t weights_lock; /* guards `chunks` */
    struct kelp_cpu_weight_chunk *chunks;
    _Atomic size_t released_at_bytes; /* packed_bytes when pages were last released */
    kelp_graph *source;
    kelp_graph *graph;        /* the engine's own, after the passes */
    kelp_partition partition; /* subgraphs that other providers run */
    kelp_cpu_program *program;
    kelp_map moved; /* during the build: constants copied to an aligned address */
    const kelp_engine_options *options; /* during the build */
    kelp_cpu_owned_block *owned;
    kelp_io_info *inputs, *outputs;
    size_t input_count, output_count;
    uint32_t max_schedules; /* cached by a context */
    size_t nodes_loaded;
    bool no_fusion;
    kelp_precision precision;
    /* of engine images */
    kelp_arena arena;                /* profiles and names */
    kelp_shape (*profile_shapes)[3]; /* [profile_count * input_count]; rank -1: no bounds */
    kelp_shape (*profile_values)[3]; /* bounds of the values of inputs; NULL: no bounds */
    size_t profile_count;
    const char **refittable;
    size_t refittable_count;
    struct kelp_cpu_engine *refitted;        /* engine of the last refit, or NULL */
    bool stripped;                           /* weights are missing until a refit */
    kelp_cpu_packs *packs;                   /* of an engine image that is read or built; or NULL */
    kelp_pack_shares shares;                 /* packed weights that several nodes use */
    uint32_t node_count;                     /* created so far, see kelp_cpu_node.index */
    kelp_cpu_image_source refittable_source; /* of an image that can be refitted */
} kelp_cpu_engine;

/* The properties of an engine image that a model lacks. */
typedef struct kelp_cpu_origin {
    bool prepared;              /* the passes have run already */
    bool bare;                  /* weights are missing: inputs and outputs only */
    kelp_cpu_packs *take_packs; /* may be NULL; taken also on failure */
} kelp_cpu_origin;

/* ---- lifetime (engine.c) ---- */
/* Creates an engine from a graph: runs the passes and creates the kernels. */
kelp_status *kelp_cpu_engine_make(kelp_runtime *runtime, kelp_graph *graph,
                                  const kelp_engine_options *options, const kelp_cpu_origin *origin,
                                  kelp_cpu_engine **out) KELP_MUST_USE;
/* Adds a reference; returns `engine`. Thread-safe. */
kelp_cpu_engine *kelp_cpu_engine_retain(kelp_cpu_engine *engine);
/* Drops a reference; destroys the engine with the last one. NULL is allowed. Thread-safe. */
void kelp_cpu_engine_release(kelp_cpu_engine *engine);
/* Creates the kelp_engine that users see (context.c). Takes `take_engine`, also on failure. */
kelp_status *kelp_cpu_engine_wrap(kelp_cpu_engine *take_engine, kelp_engine **out) KELP_MUST_USE;
/* Counts the nodes and the bytes of weights. */
kelp_engine_stats kelp_cpu_engine_stats(const kelp_cpu_engine *engine);
/* Writes a description of the engine as text or JSON. */
kelp_status *kelp_cpu_engine_inspect(const kelp_cpu_engine *engine, bool json,
                                     void (*write)(void *userp, const char *text, size_t length),
                                     void *userp) KELP_MUST_USE;

/* ---- constants (fold.c, weights.c) ---- */
/* Evaluates every node whose inputs are all constant, in the main block and in bodies; the results
 * become constants. Replaces an If with a constant condition by its branch. With `keep_weights`,
 * weights of 8 and 16 bits are not converted. */
kelp_status *kelp_cpu_engine_fold_constants(kelp_cpu_engine *engine,
                                            bool keep_weights) KELP_MUST_USE;
/* Returns true and the branch if `node` is an If and its condition (may be NULL) is known. */
bool kelp_cpu_engine_known_branch(const kelp_node *node, const kelp_tensor *condition,
                                  kelp_block **out_branch);
/* Allocates memory that lives as long as the engine. */
kelp_status *kelp_cpu_engine_own(kelp_cpu_engine *engine, size_t size_bytes,
                                 void **out) KELP_MUST_USE;
/* Sets engine->weights; deinit after everything allocated from it is freed. */
void kelp_cpu_engine_weights_init(kelp_cpu_engine *engine);
void kelp_cpu_engine_weights_deinit(kelp_cpu_engine *engine);
/* Releases the pages of the model file if many bytes were packed since the last release.
 * Thread-safe. */
void kelp_cpu_engine_release_pages(kelp_cpu_engine *engine);
/* Returns the alignment in bytes that kernels need for data of this type. */
size_t kelp_cpu_element_alignment(kelp_dtype dtype);
/* Returns true if kernels may read data of this type at this address. */
bool kelp_cpu_is_aligned(const void *data, kelp_dtype dtype);

/* ---- profiles (profile.c) ---- */
/* Computes the memory for the largest shapes of a profile; without profiles dynamic dimensions are
 * 1. Returns false if weights are missing, or the model does not support these shapes. */
bool kelp_cpu_engine_measure(const kelp_cpu_engine *engine, size_t profile, kelp_plan_stats *out);
/* Computes the workspace for the largest shapes of a profile, or for a model without dynamic
 * dimensions. Fails with FAILED_PRECONDITION if a dimension has no bound. */
kelp_status *kelp_cpu_engine_workspace(const kelp_cpu_engine *engine, size_t profile,
                                       size_t *out) KELP_MUST_USE;
/* Returns INVALID_ARGUMENT if a value of an input is outside the bounds of the profile. */
kelp_status *kelp_cpu_engine_check_values(const kelp_cpu_engine *engine, size_t profile,
                                          const kelp_tensor *inputs) KELP_MUST_USE;
/* Compiles the schedule of the `which` shapes (a kelp_profile_selector) of a profile, so that
 * kernels pack their weights. Without a profile, dynamic dimensions are 1. */
kelp_status *kelp_cpu_engine_warm_up(kelp_cpu_engine *engine, const kelp_profile_shape *shapes,
                                     size_t count, int which) KELP_MUST_USE;

/* ---- refits (refit.c) ---- */
/* Creates an engine with other weights, which contexts use from their next run. */
kelp_status *kelp_cpu_engine_refit(kelp_cpu_engine *engine, const kelp_weights *weights,
                                   size_t count) KELP_MUST_USE;
/* Returns the engine that contexts run: the engine of the last refit, or the engine itself. */
static inline kelp_cpu_engine *kelp_cpu_engine_current(kelp_cpu_engine *engine) {
    return engine->refitted != NULL ? engine->refitted : engine;
}
/* Returns true while weights are missing. */
static inline bool kelp_cpu_engine_is_stripped(const kelp_cpu_engine *engine) {
    return engine->stripped && engine->refitted == NULL;
}
/* Returns the size of the stripped weights of this name; 0 if they are not stripped. */
size_t kelp_cpu_engine_missing_bytes(const kelp_cpu_engine *engine, const char *name);
/* Returns FAILED_PRECONDITION that lists the missing weights of a stripped engine. */
kelp_status *kelp_cpu_engine_check_complete(const kelp_cpu_engine *engine) KELP_MUST_USE;

#endif
