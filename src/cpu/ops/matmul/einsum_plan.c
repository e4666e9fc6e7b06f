/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of one product of an Einsum. A product is a batch of matrix multiplications, of which
 * operands or the result may have to be copied, or loops whose innermost one is vectorized. All
 * candidates are estimated, in cycles of one core, and the cheapest is taken.
 */
#include "base/assert.h"
#include "cpu/ops/matmul/einsum.h"

/* Cycles of one core, estimated for AVX-512: of an element that is copied to another layout, of a
 * matrix of a batch, of the start of an innermost loop, and multiply-adds for each cycle of a
 * matrix multiplication and of a loop. */
#define COPY_CYCLES 1.5
#define MATRIX_CYCLES 100
#define LOOP_CYCLES 12
#define MATRIX_RATE 20
#define LOOP_RATE 8
/* Columns of a vector: narrower matrices take as long. */
#define NARROW 16
/* Results below which a large sum is divided for the threads. */
#define FEW_RESULTS 16

/* One candidate of a product as matrices. */
typedef struct candidate {
    bool is_swapped;  /* a and b change places */
    bool orders_by_b; /* the labels of k are in the order of B, else of A */
    bool copies_a, copies_b, copies_c;
    double cycles;
} candidate;

typedef struct matrices {
    uint32_t batch, m, n, k;
    kelp_einsum_list kept, m_list, n_list, k_list; /* all in the order of loops */
    kelp_einsum_tensor a, b, c;
    int32_t m_inner, n_inner; /* labels at the end of a list that are merged to one dimension */
} matrices;

static int64_t product_of(const kelp_einsum *e, uint32_t labels) {
    int64_t product = 1; /* of dimensions of one tensor or checked in the first step */
    for (int32_t i = 0; i < e->labels; i++)
        if (labels >> i & 1)
            product *= e->dims[i];
    return product;
}

static double work_of(const kelp_einsum *e, uint32_t labels) {
    double product = 1;
    for (int32_t i = 0; i < e->labels; i++)
        if (labels >> i & 1)
            product *= (double)e->dims[i];
    return product;
}

/* Appends labels in descending order of their strides in `tensor`. */
static void append(const kelp_einsum *e, const kelp_einsum_tensor *tensor, uint32_t labels,
                   kelp_einsum_list *list) {
    int32_t first = list->count;
    for (int32_t i = 0; i < e->labels; i++) {
        if ((labels >> i & 1) == 0)
            continue;
        int32_t at = list->count++;
        for (; at > first && tensor->strides[list->labels[at - 1]] < tensor->strides[i]; at--)
            list->labels[at] = list->labels[at - 1];
        list->labels[at] = (uint8_t)i;
    }
}

/* Returns the number of labels at the end of a list that are one dimension of `tensor`. */
static int32_t merged(const kelp_einsum *e, const kelp_einsum_tensor *tensor,
                      const kelp_einsum_list *list) {
    int32_t count = KELP_MIN(list->count, 1);
    for (; count > 0 && count < list->count; count++) {
        int32_t next = list->labels[list->count - count];
        int32_t label = list->labels[list->count - count - 1];
        if (tensor->strides[label] != tensor->strides[next] * e->dims[next])
            break;
    }
    return count;
}

static int64_t last_stride(const kelp_einsum_tensor *tensor, const kelp_einsum_list *list) {
    return list->count > 0 ? tensor->strides[list->labels[list->count - 1]] : 1;
}

/* Makes a compact tensor with the labels of the lists. */
static void lay_out(const kelp_einsum *e, const kelp_einsum_list *const *lists, int32_t count,
                    kelp_einsum_tensor *out) {
    int64_t stride = 1;
    *out = (kelp_einsum_tensor){.input = KELP_EINSUM_TEMPORARY};
    while (count-- > 0) {
        for (int32_t i = lists[count]->count; i-- > 0;) {
            int32_t label = lists[count]->labels[i];
            out->labels |= 1u << label;
            out->strides[label] = stride;
            stride *= e->dims[label];
        }
    }
}

/* ---- steps ---- */
static kelp_status *add_tensor(kelp_einsum *e, kelp_op_args *args, kelp_einsum_tensor *tensor,
                               uint8_t *out) {
    int64_t elements = 1;
    for (int32_t i = 0; i < e->labels; i++)
        if ((tensor->labels >> i & 1) != 0 && !kelp_i64_mul(elements, e->dims[i], &elements))
            return kelp_ops_bad_shapes(args, args->inputs[0], NULL,
                                       "an intermediate result is too large");
    KELP_ASSERT(e->tensors < KELP_EINSUM_TENSORS);
    KELP_TRY(kelp_ops_scratch(args, elements, kelp_product_bytes(e->type), &tensor->at));
    *out = (uint8_t)e->tensors++;
    e->tensor[*out] = *tensor;
    return NULL;
}

static kelp_einsum_step *add_step(kelp_einsum *e, kelp_einsum_kind kind, uint8_t a, uint8_t b,
                                  uint8_t c) {
    KELP_ASSERT(e->steps < KELP_EINSUM_STEPS);
    kelp_einsum_step *step = &e->step[e->steps++];
    *step = (kelp_einsum_step){.kind = (uint8_t)kind, .a = a, .b = b, .c = c, .count = 1};
    step->vector = step->step = KELP_EINSUM_NONE;
    return step;
}

static kelp_status *add_copy(kelp_einsum *e, kelp_op_args *args, uint8_t from,
                             kelp_einsum_tensor *to, uint8_t *out) {
    KELP_TRY(add_tensor(e, args, to, out));
    kelp_einsum_step *step = add_step(e, KELP_EINSUM_COPY, from, KELP_EINSUM_NONE, *out);
    append(e, to, to->labels, &step->kept);
    return NULL;
}

/* ---- matrices ---- */
/* Sets the loops and layouts of a candidate. Returns false if it is not a matrix multiplication. */
static bool describe(const kelp_einsum *e, const kelp_einsum_tensor *a, const kelp_einsum_tensor *b,
                     const kelp_einsum_tensor *c, uint32_t result, const candidate *way,
                     matrices *out) {
    *out = (matrices){.a = way->is_swapped ? *b : *a, .b = way->is_swapped ? *a : *b};
    uint32_t both = out->a.labels & out->b.labels;
    out->batch = both & result;
    out->k = both & ~result;
    out->m = out->a.labels & ~both;
    out->n = out->b.labels & ~both;
    append(e, c != NULL ? c : &out->a, out->batch, &out->kept);
    append(e, c != NULL ? c : &out->a, out->m, &out->m_list);
    append(e, c != NULL ? c : &out->b, out->n, &out->n_list);
    append(e, way->orders_by_b ? &out->b : &out->a, out->k, &out->k_list);
    if (way->copies_a)
        lay_out(e, (const kelp_einsum_list *[]){&out->kept, &out->m_list, &out->k_list}, 3,
                &out->a);
    if (way->copies_b)
        lay_out(e, (const kelp_einsum_list *[]){&out->kept, &out->k_list, &out->n_list}, 3,
                &out->b);
    if (c != NULL && !way->copies_c)
        out->c = *c;
    else
        lay_out(e, (const kelp_einsum_list *[]){&out->kept, &out->m_list, &out->n_list}, 3,
                &out->c);
    if (merged(e, &out->a, &out->k_list) < out->k_list.count ||
        merged(e, &out->b, &out->k_list) < out->k_list.count ||
        last_stride(&out->b, &out->n_list) != 1 || last_stride(&out->c, &out->n_list) != 1 ||
        (e->type == KELP_PRODUCT_F32 && last_stride(&out->a, &out->k_list) != 1))
        return false;
    out->m_inner = KELP_MIN(merged(e, &out->a, &out->m_list), merged(e, &out->c, &out->m_list));
    out->n_inner = KELP_MIN(merged(e, &out->b, &out->n_list), merged(e, &out->c, &out->n_list));
    return true;
}

/* Moves labels from the front of a list to the end of the outer loops, except the last `inner`.
 * Returns the product of those. */
static int64_t split_list(const kelp_einsum *e, kelp_einsum_list *list, int32_t inner,
                          kelp_einsum_list *kept) {
    int64_t size = 1;
    for (int32_t i = 0; i < list->count; i++) {
        if (i < list->count - inner)
            kept->labels[kept->count++] = list->labels[i];
        else
            size *= e->dims[list->labels[i]];
    }
    return size;
}

static int64_t inner_size(const kelp_einsum *e, const kelp_einsum_list *list, int32_t inner) {
    kelp_einsum_list rest = {0}, copy = *list;
    return split_list(e, &copy, inner, &rest);
}

static double matrices_cycles(const kelp_einsum *e, const matrices *x, const candidate *way) {
    double total = work_of(e, x->batch | x->m | x->n | x->k), copied = 0;
    double m = (double)inner_size(e, &x->m_list, x->m_inner);
    double n = (double)inner_size(e, &x->n_list, x->n_inner), k = work_of(e, x->k);
    double jobs = total / (m * n * k);
    copied += way->copies_a ? work_of(e, x->a.labels) : 0;
    copied += way->copies_b ? work_of(e, x->b.labels) : 0;
    copied += way->copies_c ? work_of(e, x->c.labels) : 0;
    double wide = n <= NARROW ? NARROW : n + NARROW / 4;
    return copied * COPY_CYCLES + jobs * (MATRIX_CYCLES + (m + 1) * wide * (k + 2) / MATRIX_RATE);
}

static candidate choose_matrices(const kelp_einsum *e, const kelp_einsum_tensor *a,
                                 const kelp_einsum_tensor *b, const kelp_einsum_tensor *c,
                                 uint32_t result) {
    candidate best = {.cycles = -1};
    for (uint32_t bits = 0; bits < 32; bits++) {
        candidate way = {.is_swapped = (bits & 1) != 0,
                         .orders_by_b = (bits & 2) != 0,
                         .copies_a = (bits & 4) != 0,
                         .copies_b = (bits & 8) != 0,
                         .copies_c = (bits & 16) != 0};
        matrices x;
        if ((way.copies_c && c == NULL) || !describe(e, a, b, c, result, &way, &x))
            continue;
        way.cycles = matrices_cycles(e, &x, &way);
        if (best.cycles < 0 || way.cycles < best.cycles)
            best = way;
    }
    KELP_ASSERT(best.cycles >= 0); /* the candidate with all copies always is one */
    return best;
}

static kelp_status *plan_gemm(kelp_einsum *e, kelp_op_args *args, kelp_einsum_step *step) {
    kelp_gemm_shape shape = {.m = step->m, .n = step->n, .k = step->k, .count = step->count};
    if (e->type != KELP_PRODUCT_F32)
        return NULL;
    step->algorithm = kelp_gemm_choose(&shape);
    if (step->algorithm->scratch_floats == NULL)
        return NULL;
    return kelp_ops_scratch(args, step->algorithm->scratch_floats(&shape), sizeof(float),
                            &step->scratch);
}

static kelp_status *plan_matrices(kelp_einsum *e, kelp_op_args *args, const candidate *way,
                                  uint8_t a, uint8_t b, uint8_t c, uint32_t result, uint8_t *out) {
    matrices x;
    uint8_t left = way->is_swapped ? b : a, right = way->is_swapped ? a : b, to = c;
    bool is = describe(e, &e->tensor[a], &e->tensor[b],
                       c != KELP_EINSUM_NONE ? &e->tensor[c] : NULL, result, way, &x);
    KELP_ASSERT(is);
    (void)is;
    if (way->copies_a)
        KELP_TRY(add_copy(e, args, left, &x.a, &left));
    if (way->copies_b)
        KELP_TRY(add_copy(e, args, right, &x.b, &right));
    if (way->copies_c || c == KELP_EINSUM_NONE)
        KELP_TRY(add_tensor(e, args, &x.c, &to));
    kelp_einsum_step *step = add_step(e, KELP_EINSUM_MATRICES, left, right, to);
    step->kept = x.kept;
    step->m = split_list(e, &x.m_list, x.m_inner, &step->kept);
    step->n = split_list(e, &x.n_list, x.n_inner, &step->kept);
    step->k = product_of(e, x.k);
    for (int32_t i = 0; i < step->kept.count; i++)
        step->count *= e->dims[step->kept.labels[i]];
    step->a_column = last_stride(&x.a, &x.k_list);
    step->a_row = x.m_list.count > 0 ? last_stride(&x.a, &x.m_list) : step->k;
    step->ldb = x.k_list.count > 0 ? last_stride(&x.b, &x.k_list) : step->n;
    step->ldc = x.m_list.count > 0 ? last_stride(&x.c, &x.m_list) : step->n;
    KELP_TRY(plan_gemm(e, args, step));
    *out = c;
    if (way->copies_c) {
        step = add_step(e, KELP_EINSUM_COPY, to, KELP_EINSUM_NONE, c);
        append(e, &e->tensor[c], result, &step->kept);
    } else if (c == KELP_EINSUM_NONE) {
        *out = to;
    }
    return NULL;
}

/* ---- loops ---- */
static bool is_short(int64_t stride) {
    return stride == 0 || stride == 1;
}

/* Returns true if the innermost loop over `label` can be vectorized; b may be NULL. */
static bool is_vector(const kelp_einsum_tensor *a, const kelp_einsum_tensor *b,
                      const kelp_einsum_tensor *c, int32_t label) {
    bool is_kept = (c->labels >> label & 1) != 0;
    return is_short(a->strides[label]) && (b == NULL || is_short(b->strides[label])) &&
           (!is_kept || c->strides[label] == 1);
}

static double loops_cycles(const kelp_einsum *e, uint32_t labels, uint32_t result, int32_t label) {
    double total = work_of(e, labels), size = (double)e->dims[label];
    double wide = size <= NARROW ? NARROW : size + NARROW / 4, loops = total / size;
    /* a loop over a label of the result computes several terms of a sum at once */
    double starts = result >> label & 1 ? work_of(e, labels & result) / size : loops;
    return starts * LOOP_CYCLES + loops * wide / LOOP_RATE;
}

/* Chooses the innermost label of loops. Returns -1 if none can be vectorized. */
static int32_t choose_vector(const kelp_einsum *e, const kelp_einsum_tensor *a,
                             const kelp_einsum_tensor *b, const kelp_einsum_tensor *c,
                             double *out_cycles) {
    uint32_t labels = a->labels | (b != NULL ? b->labels : 0);
    int32_t best = -1;
    for (int32_t i = 0; i < e->labels; i++) {
        if ((labels >> i & 1) == 0 || !is_vector(a, b, c, i))
            continue;
        double cycles = loops_cycles(e, labels, c->labels, i);
        if (best < 0 || cycles < *out_cycles) {
            best = i;
            *out_cycles = cycles;
        }
    }
    return best;
}

/* Adds loops whose innermost label is `vector`. */
static void add_loops(kelp_einsum *e, uint8_t a, uint8_t b, uint8_t c, int32_t vector) {
    uint32_t labels = e->tensor[a].labels | (b != KELP_EINSUM_NONE ? e->tensor[b].labels : 0);
    uint32_t rest = labels & ~(vector >= 0 ? 1u << vector : 0),
             summed = rest & ~e->tensor[c].labels;
    kelp_einsum_step *step = add_step(e, KELP_EINSUM_LOOPS, a, b, c);
    append(e, &e->tensor[c], rest & e->tensor[c].labels, &step->kept);
    for (int32_t i = 0; i < step->kept.count; i++)
        step->count *= e->dims[step->kept.labels[i]];
    if (vector >= 0)
        step->vector = (uint8_t)vector;
    if (vector >= 0 && (e->tensor[c].labels >> vector & 1) != 0) {
        /* the largest sum is the loop around the innermost one */
        for (int32_t i = 0; i < e->labels; i++)
            if ((summed >> i & 1) != 0 &&
                (step->step == KELP_EINSUM_NONE || e->dims[i] > e->dims[step->step]))
                step->step = (uint8_t)i;
        if (step->step != KELP_EINSUM_NONE)
            summed &= ~(1u << step->step);
    }
    append(e, &e->tensor[a], summed, &step->summed);
}

/* Divides a large sum with few results: a temporary tensor keeps one more label, which is summed
 * afterwards, so that threads have work. Returns the label, or -1. */
static int32_t divided_label(const kelp_einsum *e, uint32_t labels, uint32_t result,
                             int32_t vector) {
    uint32_t summed = labels & ~result & ~(vector >= 0 ? 1u << vector : 0);
    int32_t best = -1;
    if (work_of(e, result) > FEW_RESULTS || work_of(e, labels) < 8 * KELP_GRAIN_ELEMENTS)
        return -1;
    for (int32_t i = 0; i < e->labels; i++)
        if ((summed >> i & 1) != 0 && (best < 0 || e->dims[i] > e->dims[best]))
            best = i;
    return best;
}

static kelp_status *plan_loops(kelp_einsum *e, kelp_op_args *args, uint8_t a, uint8_t b, uint8_t c,
                               int32_t vector) {
    uint32_t labels = e->tensor[a].labels | (b != KELP_EINSUM_NONE ? e->tensor[b].labels : 0);
    uint32_t result = e->tensor[c].labels;
    int32_t label = divided_label(e, labels, result, vector);
    if (label < 0) {
        add_loops(e, a, b, c, vector);
        return NULL;
    }
    kelp_einsum_list outer = {1, {(uint8_t)label}}, inner = {0};
    kelp_einsum_tensor parts;
    uint8_t to;
    append(e, &e->tensor[c], result, &inner);
    lay_out(e, (const kelp_einsum_list *[]){&outer, &inner}, 2, &parts);
    KELP_TRY(add_tensor(e, args, &parts, &to));
    add_loops(e, a, b, to, vector);
    double cycles = 0;
    add_loops(e, to, KELP_EINSUM_NONE, c,
              choose_vector(e, &e->tensor[to], NULL, &e->tensor[c], &cycles));
    return NULL;
}

/* Copies a tensor so that `vector` is its innermost label, unless its stride is 0 or 1. */
static kelp_status *move_vector(kelp_einsum *e, kelp_op_args *args, int32_t vector,
                                uint8_t *inout) {
    const kelp_einsum_tensor *from = &e->tensor[*inout];
    if (is_short(from->strides[vector]))
        return NULL;
    kelp_einsum_list order = {0};
    kelp_einsum_tensor to;
    append(e, from, from->labels & ~(1u << vector), &order);
    order.labels[order.count++] = (uint8_t)vector;
    lay_out(e, (const kelp_einsum_list *[]){&order}, 1, &to);
    return add_copy(e, args, *inout, &to, inout);
}

/* Plans loops after copies that make one of them fast. */
static kelp_status *plan_moved(kelp_einsum *e, kelp_op_args *args, uint8_t a, uint8_t b,
                               uint8_t c) {
    uint32_t labels = e->tensor[a].labels | (b != KELP_EINSUM_NONE ? e->tensor[b].labels : 0);
    uint32_t result = e->tensor[c].labels;
    int32_t vector = -1;
    for (int32_t i = 0; i < e->labels; i++)
        if ((labels >> i & 1) != 0 && (result == 0 || e->tensor[c].strides[i] == 1))
            vector = i;
    if (vector >= 0) {
        KELP_TRY(move_vector(e, args, vector, &a));
        if (b != KELP_EINSUM_NONE)
            KELP_TRY(move_vector(e, args, vector, &b));
    }
    return plan_loops(e, args, a, b, c, vector);
}

/* Plans the sum of one tensor; first in the order of its own labels if that is vectorized. */
static kelp_status *plan_sum(kelp_einsum *e, kelp_op_args *args, uint8_t a, uint8_t c,
                             uint32_t labels, uint8_t *out) {
    double cycles = 0;
    int32_t vector;
    *out = c;
    if (c != KELP_EINSUM_NONE && labels == e->tensor[a].labels) {
        kelp_einsum_step *step = add_step(e, KELP_EINSUM_COPY, a, KELP_EINSUM_NONE, c);
        append(e, &e->tensor[c], labels, &step->kept);
        return NULL;
    }
    if (c != KELP_EINSUM_NONE) {
        vector = choose_vector(e, &e->tensor[a], NULL, &e->tensor[c], &cycles);
        if (vector >= 0)
            return plan_loops(e, args, a, KELP_EINSUM_NONE, c, vector);
    }
    kelp_einsum_list order = {0};
    kelp_einsum_tensor sums;
    uint8_t to;
    append(e, &e->tensor[a], labels, &order);
    lay_out(e, (const kelp_einsum_list *[]){&order}, 1, &sums);
    if (c != KELP_EINSUM_NONE && choose_vector(e, &e->tensor[a], NULL, &sums, &cycles) < 0)
        return plan_moved(e, args, a, KELP_EINSUM_NONE, c);
    KELP_TRY(add_tensor(e, args, &sums, &to));
    vector = choose_vector(e, &e->tensor[a], NULL, &e->tensor[to], &cycles);
    KELP_TRY(vector >= 0 ? plan_loops(e, args, a, KELP_EINSUM_NONE, to, vector)
                         : plan_moved(e, args, a, KELP_EINSUM_NONE, to));
    return c != KELP_EINSUM_NONE ? plan_sum(e, args, to, c, labels, out) : (*out = to, NULL);
}

kelp_status *kelp_einsum_plan_product(kelp_einsum *e, kelp_op_args *args, uint8_t a, uint8_t b,
                                      uint8_t c, uint32_t labels, uint8_t *out) {
    double cycles = 0;
    if (b == KELP_EINSUM_NONE)
        return plan_sum(e, args, a, c, labels, out);
    const kelp_einsum_tensor *left = &e->tensor[a], *right = &e->tensor[b];
    const kelp_einsum_tensor *to = c != KELP_EINSUM_NONE ? &e->tensor[c] : NULL;
    candidate way = choose_matrices(e, left, right, to, labels);
    /* loops write a temporary tensor in the order of the labels of a, then of b */
    kelp_einsum_tensor sums;
    kelp_einsum_list order = {0};
    append(e, left, left->labels & labels, &order);
    append(e, right, right->labels & labels & ~left->labels, &order);
    lay_out(e, (const kelp_einsum_list *[]){&order}, 1, &sums);
    int32_t vector = choose_vector(e, left, right, to != NULL ? to : &sums, &cycles);
    if (vector < 0 || cycles > way.cycles)
        return plan_matrices(e, args, &way, a, b, c, labels, out);
    *out = c;
    if (c == KELP_EINSUM_NONE)
        KELP_TRY(add_tensor(e, args, &sums, out));
    return plan_loops(e, args, a, b, *out, vector);
}
