/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the steps of an Einsum on all threads. */
#include "base/assert.h"
#include "cpu/ops/matmul/einsum.h"

/* Elements of the innermost loop that one unit computes, and rows and columns of a block of a
 * matrix multiplication of other types than float. */
#define LOOP_BLOCK 4096
#define BLOCK_ROWS 48
#define BLOCK_COLUMNS 256

typedef struct run {
    const kelp_einsum *e;
    const kelp_einsum_step *step;
    const char *a, *b;
    char *c;
    int64_t size;         /* bytes of an element */
    int64_t blocks, down; /* units of one iteration of the outer loops; rows of blocks */
} run;

static void *data_of(const kelp_einsum *e, const kelp_op_args *args, uint8_t index) {
    const kelp_einsum_tensor *tensor = &e->tensor[index];
    KELP_ASSERT(index < e->tensors);
    if (tensor->input == KELP_EINSUM_TEMPORARY)
        return kelp_ops_scratch_at(args, tensor->at);
    if (tensor->input == KELP_EINSUM_RESULT)
        return args->outputs[0]->data;
    return args->inputs[tensor->input]->data;
}

/* Returns the offset of iteration `at` of loops, in bytes. */
static int64_t offset_of(const run *r, const kelp_einsum_list *loops, uint8_t tensor, int64_t at) {
    const int64_t *strides = r->e->tensor[tensor].strides;
    int64_t offset = 0;
    for (int32_t i = loops->count; i-- > 0;) {
        int64_t dim = r->e->dims[loops->labels[i]];
        offset += at % dim * strides[loops->labels[i]];
        at /= dim;
    }
    return offset * r->size;
}

static int64_t stride_of(const run *r, uint8_t tensor, uint8_t label) {
    return tensor == KELP_EINSUM_NONE || label == KELP_EINSUM_NONE
               ? 0
               : r->e->tensor[tensor].strides[label];
}

static int64_t dim_of(const run *r, uint8_t label) {
    return label == KELP_EINSUM_NONE ? 1 : r->e->dims[label];
}

/* ---- loops ---- */
/* A factor of 1, for sums of one operand. */
static const void *one_of(kelp_product_type type) {
    static const float f32 = 1;
    static const double f64 = 1;
    static const uint32_t u32 = 1;
    static const uint64_t u64 = 1;
    const void *const ones[KELP_PRODUCT_TYPES] = {&f32, &f64, &u32, &u64};
    return ones[type];
}

/* Computes elements [first, first + count) of the innermost loop of one iteration. */
static void compute_loop(const run *r, const char *a, const char *b, char *c, int64_t first,
                         int64_t count) {
    const kelp_einsum_step *s = r->step;
    const kelp_product_kernels *kernels = kelp_product_kernels_get();
    int64_t terms = 1, a_stride = stride_of(r, s->a, s->vector);
    int64_t b_stride = stride_of(r, s->b, s->vector);
    bool is_kept = stride_of(r, s->c, s->vector) != 0;
    for (int32_t i = 0; i < s->summed.count; i++)
        terms *= r->e->dims[s->summed.labels[i]];
    kelp_product_sums sums = {.y = c,
                              .a_step = stride_of(r, s->a, s->step),
                              .b_step = stride_of(r, s->b, s->step),
                              .a_stride = a_stride,
                              .b_stride = b_stride,
                              .steps = dim_of(r, s->step),
                              .count = count};
    for (int64_t at = 0; at < terms; at++) {
        sums.a = a + offset_of(r, &s->summed, s->a, at) + first * a_stride * r->size;
        sums.b = s->b == KELP_EINSUM_NONE
                     ? b
                     : b + offset_of(r, &s->summed, s->b, at) + first * b_stride * r->size;
        sums.accumulate = at > 0;
        if (is_kept)
            kernels->sums[r->e->type](&sums);
        else
            kernels->dot[r->e->type](sums.a, a_stride, sums.b, b_stride, count, c, at > 0);
    }
}

static void loops_range(void *userp, int64_t begin, int64_t end, int worker) {
    const run *r = userp;
    const kelp_einsum_step *s = r->step;
    int64_t size = dim_of(r, s->vector);
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t at = unit / r->blocks, first = unit % r->blocks * LOOP_BLOCK;
        int64_t count = r->blocks > 1 ? KELP_MIN((int64_t)LOOP_BLOCK, size - first) : size;
        const char *a = r->a + offset_of(r, &s->kept, s->a, at);
        const char *b = s->b == KELP_EINSUM_NONE ? r->b : r->b + offset_of(r, &s->kept, s->b, at);
        compute_loop(r, a, b, r->c + offset_of(r, &s->kept, s->c, at) + first * r->size, first,
                     count);
    }
}

static void run_loops(run *r, const kelp_op_env *env) {
    const kelp_einsum_step *s = r->step;
    double work = (double)dim_of(r, s->step) * (double)dim_of(r, s->vector);
    for (int32_t i = 0; i < s->summed.count; i++)
        work *= (double)r->e->dims[s->summed.labels[i]];
    r->blocks =
        stride_of(r, s->c, s->vector) != 0 ? kelp_divide_up(dim_of(r, s->vector), LOOP_BLOCK) : 1;
    kelp_op_parallel(env, s->count * r->blocks,
                     kelp_cpu_grain_f64(4 * KELP_GRAIN_ELEMENTS, work / (double)r->blocks + 16),
                     loops_range, r);
}

/* ---- matrices ---- */
static void run_gemm(const run *r, const kelp_op_args *args) {
    const kelp_einsum_step *s = r->step;
    kelp_gemm *jobs = kelp_ops_scratch_at(args, r->e->jobs);
    for (int64_t at = 0; at < s->count;) {
        int64_t count = KELP_MIN((int64_t)KELP_EINSUM_JOBS, s->count - at);
        for (int64_t i = 0; i < count; i++)
            jobs[i] =
                (kelp_gemm){.a = r->a + offset_of(r, &s->kept, s->a, at + i),
                            .b = r->b + offset_of(r, &s->kept, s->b, at + i),
                            .c = (float *)(void *)(r->c + offset_of(r, &s->kept, s->c, at + i)),
                            .m = s->m,
                            .n = s->n,
                            .k = s->k,
                            .lda = s->a_row,
                            .ldb = s->ldb,
                            .ldc = s->ldc,
                            .scratch = s->algorithm->scratch_floats != NULL
                                           ? kelp_ops_scratch_at(args, s->scratch)
                                           : NULL};
        s->algorithm->run(args->env, jobs, count);
        at += count;
    }
}

static void blocks_range(void *userp, int64_t begin, int64_t end, int worker) {
    const run *r = userp;
    const kelp_einsum_step *s = r->step;
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t at = unit / r->blocks, block = unit % r->blocks;
        int64_t row = block % r->down * BLOCK_ROWS, column = block / r->down * BLOCK_COLUMNS;
        const char *a = r->a + offset_of(r, &s->kept, s->a, at) + row * s->a_row * r->size;
        const char *b = r->b + offset_of(r, &s->kept, s->b, at) + column * r->size;
        char *c = r->c + offset_of(r, &s->kept, s->c, at) + (row * s->ldc + column) * r->size;
        kelp_product_kernels_get()->block[r->e->type](
            &(kelp_product_block){.a = a,
                                  .b = b,
                                  .c = c,
                                  .a_row = s->a_row,
                                  .a_column = s->a_column,
                                  .ldb = s->ldb,
                                  .ldc = s->ldc,
                                  .m = KELP_MIN((int64_t)BLOCK_ROWS, s->m - row),
                                  .n = KELP_MIN((int64_t)BLOCK_COLUMNS, s->n - column),
                                  .k = s->k});
    }
}

static void run_matrices(run *r, const kelp_op_args *args) {
    const kelp_einsum_step *s = r->step;
    if (r->e->type == KELP_PRODUCT_F32) {
        run_gemm(r, args);
        return;
    }
    r->down = kelp_divide_up(s->m, BLOCK_ROWS);
    r->blocks = r->down * kelp_divide_up(s->n, BLOCK_COLUMNS);
    double work = (double)KELP_MIN((int64_t)BLOCK_ROWS, s->m) *
                  (double)KELP_MIN((int64_t)BLOCK_COLUMNS, s->n) * (double)s->k;
    kelp_op_parallel(args->env, s->count * r->blocks,
                     kelp_cpu_grain_f64(KELP_GRAIN_GEMM / 4, work + 64), blocks_range, r);
}

/* ---- copies ---- */
static void run_copy(const run *r, const kelp_op_args *args) {
    const kelp_einsum_list *loops = &r->step->kept;
    int64_t shape[KELP_EINSUM_LABELS], to[KELP_EINSUM_LABELS], from[KELP_EINSUM_LABELS];
    for (int32_t i = 0; i < loops->count; i++) {
        shape[i] = r->e->dims[loops->labels[i]];
        to[i] = r->e->tensor[r->step->c].strides[loops->labels[i]];
        from[i] = r->e->tensor[r->step->a].strides[loops->labels[i]];
    }
    kelp_ops_copy(args->env, (size_t)r->size, loops->count, shape, r->c, to, r->a, from);
}

void kelp_einsum_run(const kelp_einsum *e, kelp_op_args *args) {
    if (e->is_empty)
        memset(args->outputs[0]->data, 0, kelp_tensor_bytes(args->outputs[0]));
    for (int32_t i = 0; i < e->steps; i++) {
        const kelp_einsum_step *s = &e->step[i];
        run r = {.e = e,
                 .step = s,
                 .a = data_of(e, args, s->a),
                 .b = s->b != KELP_EINSUM_NONE ? data_of(e, args, s->b) : one_of(e->type),
                 .c = data_of(e, args, s->c),
                 .size = (int64_t)kelp_product_bytes(e->type)};
        switch ((kelp_einsum_kind)s->kind) {
        case KELP_EINSUM_COPY:
            run_copy(&r, args);
            break;
        case KELP_EINSUM_LOOPS:
            run_loops(&r, args->env);
            break;
        case KELP_EINSUM_MATRICES:
            run_matrices(&r, args);
            break;
        }
    }
}
