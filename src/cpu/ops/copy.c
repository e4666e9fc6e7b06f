/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between strided layouts, on which the operators that move elements are built. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "cpu/ops/transpose.h"

/* Maximum number of dimensions that cannot be merged: that of an Einsum's loops. */
#define COPY_MAX_RANK 24

typedef struct copy_job {
    size_t size; /* of an element */
    int32_t rank;
    int64_t pieces; /* parts into which the rows of a plane (two innermost dimensions) are split */
    int64_t shape[COPY_MAX_RANK], to_strides[COPY_MAX_RANK], from_strides[COPY_MAX_RANK];
    char *to;
    const char *from;
} copy_job;

typedef struct block16 {
    uint64_t a, b;
} block16;

void kelp_ops_strides(int32_t rank, const int64_t *shape, int64_t *out_strides) {
    int64_t stride = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        out_strides[i] = stride;
        stride *= shape[i];
    }
}

/* Data may be unaligned, so elements are copied by memcpy of a fixed size. */
#define COPY_ROW(bits, type)                                                              \
    static void copy_row_##bits(char *to, int64_t to_stride, const char *from,            \
                                int64_t from_stride, int64_t count) {                     \
        for (int64_t i = 0; i < count; i++) {                                             \
            type value;                                                                   \
            memcpy(&value, from + i * from_stride * (int64_t)sizeof value, sizeof value); \
            memcpy(to + i * to_stride * (int64_t)sizeof value, &value, sizeof value);     \
        }                                                                                 \
    }
COPY_ROW(8, uint8_t)
COPY_ROW(16, uint16_t)
COPY_ROW(32, uint32_t)
COPY_ROW(64, uint64_t)
COPY_ROW(128, block16)

static void copy_row(size_t size, char *to, int64_t to_stride, const char *from,
                     int64_t from_stride, int64_t count) {
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, (size_t)count * size);
        return;
    }
    switch (size) {
    case 1:
        copy_row_8(to, to_stride, from, from_stride, count);
        break;
    case 2:
        copy_row_16(to, to_stride, from, from_stride, count);
        break;
    case 4:
        copy_row_32(to, to_stride, from, from_stride, count);
        break;
    case 8:
        copy_row_64(to, to_stride, from, from_stride, count);
        break;
    default:
        KELP_ASSERT(size == sizeof(block16));
        copy_row_128(to, to_stride, from, from_stride, count);
        break;
    }
}

/* Copies rows of the two innermost dimensions, in tiles if one side is transposed, so that both
 * sides stay in cache. */
static void copy_plane(const copy_job *job, char *to, const char *from, int64_t rows) {
    enum { TILE = 16 };
    int32_t r = job->rank - 2;
    int64_t size = (int64_t)job->size;
    int64_t columns = job->shape[r + 1];
    int64_t tr = job->to_strides[r], tc = job->to_strides[r + 1];
    int64_t fr = job->from_strides[r], fc = job->from_strides[r + 1];
    if (fc == 1 || fc == 0 || fr != 1) {
        for (int64_t i = 0; i < rows; i++)
            copy_row(job->size, to + i * tr * size, tc, from + i * fr * size, fc, columns);
        return;
    }
    if (size <= 8 && tc == 1) {
        kelp_ops_transpose(job->size, to, tr, from, fc, columns, rows);
        return;
    }
    for (int64_t j = 0; j < columns; j += TILE)
        for (int64_t i = 0; i < rows; i++)
            copy_row(job->size, to + (i * tr + j * tc) * size, tc, from + (i * fr + j * fc) * size,
                     fc, KELP_MIN(TILE, columns - j));
}

static void copy_range(void *userp, int64_t begin, int64_t end, int worker) {
    const copy_job *job = userp;
    (void)worker;
    int64_t rows = job->shape[job->rank - 2];
    int64_t piece = (rows + job->pieces - 1) / job->pieces;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t rest = unit / job->pieces, first = unit % job->pieces * piece;
        int64_t to = first * job->to_strides[job->rank - 2];
        int64_t from = first * job->from_strides[job->rank - 2];
        if (first >= rows)
            continue;
        for (int32_t i = job->rank - 3; i >= 0; i--) {
            int64_t at = rest % job->shape[i];
            rest /= job->shape[i];
            to += at * job->to_strides[i];
            from += at * job->from_strides[i];
        }
        copy_plane(job, job->to + to * (int64_t)job->size, job->from + from * (int64_t)job->size,
                   KELP_MIN(piece, rows - first));
    }
}

/* Appends a dimension, unless its size is 1. Merges it with the previous one if both sides are
 * contiguous. */
static void add_dim(copy_job *job, int64_t dim, int64_t to_stride, int64_t from_stride) {
    int32_t last = job->rank - 1;
    if (dim == 1)
        return;
    if (job->rank > 0 && job->to_strides[last] == to_stride * dim &&
        job->from_strides[last] == from_stride * dim) {
        job->shape[last] *= dim;
    } else {
        KELP_ASSERT(job->rank < COPY_MAX_RANK);
        last = job->rank++;
        job->shape[last] = dim;
    }
    job->to_strides[last] = to_stride;
    job->from_strides[last] = from_stride;
}

void kelp_ops_copy(const kelp_op_env *env, size_t element_bytes, int32_t rank, const int64_t *shape,
                   void *to, const int64_t *to_strides, const void *from,
                   const int64_t *from_strides) {
    copy_job job = {.size = element_bytes, .to = to, .from = from};
    KELP_ASSERT(rank >= 0 && rank <= COPY_MAX_RANK && element_bytes > 0);
    for (int32_t i = 0; i < rank; i++) {
        if (shape[i] == 0)
            return;
        add_dim(&job, shape[i], to_strides[i], from_strides[i]);
    }
    if (job.rank == 0) {
        memcpy(to, from, element_bytes);
        return;
    }
    if (job.rank == 1) {
        if (job.to_strides[0] == 1 && job.from_strides[0] == 1)
            kelp_ops_memcpy(env, to, from, (size_t)job.shape[0] * element_bytes);
        else
            copy_row(element_bytes, to, job.to_strides[0], from, job.from_strides[0], job.shape[0]);
        return;
    }
    int64_t planes = 1;
    for (int32_t i = 0; i < job.rank - 2; i++)
        planes *= job.shape[i];
    int64_t plane = job.shape[job.rank - 2] * job.shape[job.rank - 1];
    int64_t max = KELP_MIN(plane / (2 * KELP_GRAIN_ELEMENTS), job.shape[job.rank - 2] / 16);
    job.pieces = KELP_MAX((int64_t)1, KELP_MIN(max, 16 * kelp_op_env_threads(env) / planes));
    kelp_op_parallel(env, planes * job.pieces,
                     KELP_MAX(1, 2 * KELP_GRAIN_ELEMENTS * job.pieces / plane), copy_range, &job);
}

/* Repeats a value of `each` bytes: small pieces are doubled, then copied. */
static void repeat(char *to, size_t size, const void *value, size_t each) {
    enum { PIECE = 4096 };
    size_t done = KELP_MIN(each, size);
    memcpy(to, value, done);
    while (done < size) {
        size_t next = KELP_MIN(KELP_MIN(done, (size_t)PIECE), size - done);
        memcpy(to + done, to, next);
        done += next;
    }
}

void kelp_ops_fill(void *to, size_t element_bytes, int64_t count, const void *value) {
    const char zero[16] = {0};
    KELP_ASSERT(value != NULL && count >= 0);
    if (element_bytes <= sizeof zero && memcmp(value, zero, element_bytes) == 0)
        memset(to, 0, (size_t)count * element_bytes);
    else
        repeat(to, (size_t)count * element_bytes, value, element_bytes);
}

typedef struct memcpy_job {
    char *to;
    const char *from;
} memcpy_job;

static void memcpy_range(void *userp, int64_t begin, int64_t end, int worker) {
    const memcpy_job *job = userp;
    (void)worker;
    memcpy(job->to + begin, job->from + begin, (size_t)(end - begin));
}

void kelp_ops_memcpy(const kelp_op_env *env, void *to, const void *from, size_t size_bytes) {
    memcpy_job job = {to, from};
    if (size_bytes > 0)
        kelp_op_parallel(env, (int64_t)size_bytes, KELP_GRAIN_COPY_BYTES, memcpy_range, &job);
}
