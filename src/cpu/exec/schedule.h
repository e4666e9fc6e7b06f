/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: for one set of input shapes, which kernels run in which order, and where every byte
 * is. */
#ifndef KELP_CPU_EXEC_SCHEDULE_H_
#define KELP_CPU_EXEC_SCHEDULE_H_

#include "cpu/exec/engine.h"
#include "runtime/opset/body.h"

typedef struct kelp_cpu_instance kelp_cpu_instance;

typedef enum kelp_cpu_storage {
    KELP_CPU_STORAGE_NONE = 0,  /* never computed: its steps were folded */
    KELP_CPU_STORAGE_FIXED,     /* constant, or known since scheduling */
    KELP_CPU_STORAGE_INPUT,     /* where the caller bound input `index` */
    KELP_CPU_STORAGE_OUTPUT,    /* in the memory of output `index` */
    KELP_CPU_STORAGE_WORKSPACE, /* at `offset` in the context's workspace */
    KELP_CPU_STORAGE_DYNAMIC    /* allocated while invoking */
} kelp_cpu_storage;

/* A value under a schedule. Values that share bytes (views, in place) have the same root. */
typedef struct kelp_cpu_value {
    kelp_tensor tensor; /* shape known unless `dynamic`; data is set when the schedule is bound */
    uint32_t root;      /* its own id if it is a root */
    kelp_cpu_storage storage; /* of a root */
    uint32_t index;
    size_t offset;
    size_t bytes;         /* of a root: the maximum over its values */
    uint32_t first, last; /* steps between which a root is alive */
    bool dynamic;         /* shape known only while invoking */
} kelp_cpu_value;

/* A kernel call. */
typedef struct kelp_cpu_step {
    const kelp_cpu_node *engine_node;
    kelp_op_args args;
    size_t scratch_offset;
    bool dynamic; /* reshaped in each run */
} kelp_cpu_step;

typedef struct kelp_cpu_schedule {
    struct kelp_cpu_schedule *next; /* most recently used first */
    kelp_arena arena;               /* holds everything below */
    kelp_tensor *input_shapes;      /* that it is for; with `data` where it is specialized */
    uint64_t specializable;         /* inputs whose data, if known, would remove steps (bit i) */
    uint64_t specialized;           /* inputs whose data it is specialized for */
    kelp_cpu_value *values;         /* by value id; those of included branches at their offsets */
    size_t value_count;
    kelp_cpu_step *steps;
    size_t step_count;
    size_t workspace_bytes;
    uint32_t *relocatable; /* values whose address changes with the caller's bindings */
    size_t relocatable_count;
    const kelp_cpu_value **outputs; /* of the block */
    /* by output: its shape depends on data, here or in the schedule that is not specialized */
    bool *data_dependent;
    bool *copies;          /* by output: it is copied to its place after the last step */
    char *bound_workspace; /* that data pointers were resolved against */
    bool bound;
    struct kelp_cpu_body *bodies; /* of its nodes that own blocks */
    kelp_plan_stats stats;
} kelp_cpu_schedule;

/* Makes the schedule for the instance's bound input shapes, and for the data of inputs in
 * `specialized`. */
kelp_status *kelp_cpu_schedule_create(kelp_cpu_instance *instance, uint64_t specialized,
                                      kelp_cpu_schedule **out) KELP_MUST_USE;
void kelp_cpu_schedule_destroy(kelp_cpu_schedule *schedule, kelp_allocator allocator);
/* Returns true if it is for the shapes, and where it is specialized for the data, that are bound.
 */
bool kelp_cpu_schedule_fits(const kelp_cpu_schedule *schedule, const kelp_cpu_instance *instance);
/* Points every value at its bytes: the workspace, the caller's memory, or the output's target. */
void kelp_cpu_schedule_bind(kelp_cpu_schedule *schedule, kelp_cpu_instance *instance);
/* Returns true if schedules may be specialized for the data of such an input: dimensions, a
 * condition. */
bool kelp_cpu_may_specialize(const kelp_tensor *tensor);

/* ---- memory planner (memory_plan.c) ---- */
typedef struct kelp_cpu_interval {
    size_t bytes;
    uint32_t first, last; /* alive during steps first … last */
    size_t offset;        /* out */
    size_t best;          /* used inside */
} kelp_cpu_interval;

/* Places the intervals so that no two that are alive at once overlap: largest first, each in the
 * lowest gap that fits. Where the result is well above the lower bound, it is repeated a few times
 * with the intervals that reached the top first. Offsets are multiples of 64. `order` and `placed`
 * have room for `count` indexes. Source: "greedy by size", Pisarchyk and Lee, "Efficient Memory
 * Management for Deep Neural Net Inference", 2020. */
bool kelp_cpu_memory_plan(kelp_cpu_interval *intervals, size_t count, uint32_t *order,
                          uint32_t *placed, size_t *out_total_bytes, size_t *out_lower_bound_bytes);

#endif
