/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: the kernel calls and the memory layout for one set of input shapes. */
#ifndef KELP_CPU_EXEC_SCHEDULE_H_
#define KELP_CPU_EXEC_SCHEDULE_H_

#include "cpu/exec/engine.h"
#include "runtime/opset/body.h"

typedef struct kelp_cpu_instance kelp_cpu_instance;

/* The kind of memory of a value. */
typedef enum kelp_cpu_storage {
    KELP_CPU_STORAGE_NONE = 0,  /* never computed: its steps were folded */
    KELP_CPU_STORAGE_FIXED,     /* constant, or evaluated during scheduling */
    KELP_CPU_STORAGE_INPUT,     /* the memory bound to input `index` */
    KELP_CPU_STORAGE_OUTPUT,    /* the memory of output `index` */
    KELP_CPU_STORAGE_WORKSPACE, /* at `offset` in the workspace */
    KELP_CPU_STORAGE_DYNAMIC    /* allocated in each run */
} kelp_cpu_storage;

/* A value in a schedule. Values that share bytes (views, in-place results) have the same root. */
typedef struct kelp_cpu_value {
    kelp_tensor tensor; /* shape known unless `dynamic`; data is set when the schedule is bound */
    uint32_t root;      /* its own id if it is a root */
    kelp_cpu_storage storage; /* of a root */
    uint32_t index;
    size_t offset;
    size_t bytes;         /* of a root: the maximum over its values */
    uint32_t first, last; /* steps between which a root is alive */
    bool dynamic;         /* shape known only in the run */
} kelp_cpu_value;

/* A kernel call. */
typedef struct kelp_cpu_step {
    const kelp_cpu_node *engine_node;
    kelp_op_args args;
    size_t scratch_offset;
    bool dynamic; /* reshaped in each run */
} kelp_cpu_step;

/* A schedule of one instance. */
typedef struct kelp_cpu_schedule {
    struct kelp_cpu_schedule *next; /* most recently used first */
    kelp_arena arena;               /* owns all arrays below */
    kelp_tensor *input_shapes;      /* of the schedule; with `data` for specialized inputs */
    uint64_t specializable;         /* inputs whose data, if known, would remove steps (bit i) */
    uint64_t specialized;           /* inputs whose data the schedule is specialized for */
    kelp_cpu_value *values;         /* by value id; included branches at their value_offset */
    size_t value_count;
    kelp_cpu_step *steps;
    size_t step_count;
    size_t workspace_bytes;
    uint32_t *relocatable; /* values whose address changes with the caller's bindings */
    size_t relocatable_count;
    const kelp_cpu_value **outputs; /* of the block */
    /* by output: its shape depends on data, here or in the schedule without specialization */
    bool *data_dependent;
    bool *copies;          /* by output: it is copied to its memory after the last step */
    char *bound_workspace; /* the workspace of the data pointers */
    bool bound;
    struct kelp_cpu_body *bodies; /* of nodes with blocks */
    kelp_plan_stats stats;
} kelp_cpu_schedule;

/* Compiles the schedule of the bound input shapes, and of the data of the inputs in `specialized`.
 */
kelp_status *kelp_cpu_schedule_create(kelp_cpu_instance *instance, uint64_t specialized,
                                      kelp_cpu_schedule **out) KELP_MUST_USE;
/* Destroys a schedule or NULL. */
void kelp_cpu_schedule_destroy(kelp_cpu_schedule *schedule, kelp_allocator allocator);
/* Returns true if the schedule is for the bound shapes, and for the bound data of specialized
 * inputs. */
bool kelp_cpu_schedule_fits(const kelp_cpu_schedule *schedule, const kelp_cpu_instance *instance);
/* Sets the data pointers of all values: into the workspace, the caller's memory or the target of an
 * output. */
void kelp_cpu_schedule_bind(kelp_cpu_schedule *schedule, kelp_cpu_instance *instance);
/* Returns true if schedules may be specialized for the data of such an input: a small tensor of
 * integers or bools. */
bool kelp_cpu_may_specialize(const kelp_tensor *tensor);

/* ---- memory plan (memory_plan.c) ---- */
/* The lifetime of a block of the workspace. */
typedef struct kelp_cpu_interval {
    size_t bytes;
    uint32_t first, last; /* alive during steps first … last */
    size_t offset;        /* result */
    size_t best;          /* internal */
} kelp_cpu_interval;

/* Computes offsets so that intervals with overlapping lifetimes do not overlap in memory: largest
 * first, each in the lowest gap that fits. If the total is well above the lower bound, repeats the
 * placement with the intervals at the top placed first, and keeps the best. Offsets are multiples
 * of 64. `order` and `placed` have a capacity of `count`. Returns false if the sizes overflow.
 * Source: "greedy by size", Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
 * Inference", 2020. */
bool kelp_cpu_memory_plan(kelp_cpu_interval *intervals, size_t count, uint32_t *order,
                          uint32_t *placed, size_t *out_total_bytes, size_t *out_lower_bound_bytes);

#endif
