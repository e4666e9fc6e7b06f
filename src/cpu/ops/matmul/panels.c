/* SPDX-License-Identifier: Apache-2.0 */
/* Constant matrices packed in panels. The rows of a wide matrix are in different pages, so each row
 * would cost a TLB miss without packing. */
#include "cpu/ops/matmul/panels.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/kernels/gemm/gemm_kernels.h"
#include "cpu/kernels/tuning.h"
#include "runtime/opset/env.h"

#include <pthread.h>
#include <stdatomic.h>

struct kelp_panels {
    kelp_allocator allocator;
    kelp_op_pack_site site;
    const void *data;
    int64_t k, n;
    bool transposed;
    pthread_mutex_t lock;
    const kelp_gemm_kernels *kernels; /* instruction set for which they are packed */
    kelp_op_packed packed;
    _Atomic(const float *) filled; /* the panels; NULL until packed */
};

const kelp_tensor *kelp_panels_constant(const kelp_node *node) {
    const kelp_value *value = kelp_node_input_count(node) > 1 ? kelp_node_input(node, 1) : NULL;
    const kelp_tensor *b = value != NULL ? kelp_value_constant(value) : NULL;
    return b != NULL && b->rank == 2 && b->dtype == KELP_F32 && kelp_tensor_bytes(b) > 0 ? b : NULL;
}

/* Returns the panels; NULL until they are packed. */
static const float *filled(const kelp_panels *panels) {
    return atomic_load_explicit(&((kelp_panels *)panels)->filled, memory_order_acquire);
}

/* ---- packing ---- */
typedef struct fill_job {
    const kelp_op_env *env;
    const kelp_panels *panels;
    const kelp_gemm_kernels *kernels;
    float *memory;
    int64_t columns; /* packed at a time */
} fill_job;

static void fill(void *userp, int64_t begin, int64_t end, int worker) {
    const fill_job *job = userp;
    const kelp_panels *panels = job->panels;
    const kelp_float_u *b = panels->data;
    (void)worker;
    KELP_ASSERT(job->columns > 0 && job->columns % job->kernels->tile_columns == 0);
    for (int64_t at = begin; at < end; at++) {
        int64_t column = at * job->columns, columns = KELP_MIN(job->columns, panels->n - column);
        float *to = job->memory + column * panels->k;
        if (panels->transposed)
            kelp_gemm_pack_transposed(job->kernels, b + column * panels->k, panels->k, panels->k,
                                      columns, to);
        else
            kelp_gemm_pack(job->kernels, b + column, panels->n, panels->k, columns, to);
        if (columns < panels->n) /* else the engine releases the pages */
            kelp_op_env_release_pages(job->env);
    }
}

/* Packs a large matrix in parts, on all threads, and releases the pages of each part, so that
 * memory does not contain it twice. The result is for all contexts, so cancelling the current run
 * does not stop it. */
static void fill_all(const kelp_op_env *env, const kelp_panels *panels,
                     const kelp_gemm_kernels *kernels, float *memory) {
    int64_t width = kernels->tile_columns, each = width * panels->k * (int64_t)sizeof(float);
    int64_t columns = KELP_MAX((int64_t)1, KELP_PACK_SHARE_BYTES / each) * width;
    fill_job job = {env, panels, kernels, memory, columns};
    kelp_op_env lasting = *env;
    lasting.stop = NULL;
    kelp_op_parallel(&lasting, (panels->n + columns - 1) / columns, 1, fill, &job);
}

static kelp_status *pack(const kelp_op_env *env, kelp_panels *panels) {
    const kelp_gemm_kernels *kernels = kelp_gemm_kernels_get();
    char layout[KELP_OP_LAYOUT_MAX + 1];
    kelp_op_packing packing = {.layout = layout, .inputs = 1u << 1, .replaces = 1u << 1};
    size_t floats;
    KELP_ASSERT(filled(panels) == NULL);
    void *memory = NULL;
    if (!kelp_gemm_packed_size(kernels, panels->k, panels->n, &floats) ||
        !kelp_size_mul(floats, sizeof(float), &packing.size_bytes))
        return kelp_status_oom();
    kelp_gemm_layout(kernels, "gemm", layout, sizeof layout);
    KELP_TRY(kelp_op_pack(&panels->site, panels->allocator, &packing, &panels->packed, &memory));
    if (memory != NULL)
        fill_all(env, panels, kernels, memory);
    kelp_op_pack_done(&panels->packed);
    panels->kernels = kernels;
    atomic_store_explicit(&panels->filled, panels->packed.data, memory_order_release);
    return NULL;
}

/* Returns true if the matrix is packed on creation: it belongs to an engine image or is small. */
static bool packs_at_once(const kelp_panels *panels) {
    return panels->site.packs != NULL || !kelp_gemm_is_skinny(1, panels->k, panels->n);
}

kelp_status *kelp_panels_create(const kelp_op_env *env, const kelp_tensor *b, bool transposed,
                                kelp_panels **out) {
    kelp_panels *panels = NULL;
    *out = NULL;
    KELP_TRY(KELP_NEW(kelp_op_env_allocator(env), kelp_panels, &panels));
    panels->allocator = kelp_op_env_allocator(env);
    panels->site = kelp_op_env_pack_site(env);
    panels->data = b->data;
    panels->k = b->shape[transposed ? 1 : 0];
    panels->n = b->shape[transposed ? 0 : 1];
    panels->transposed = transposed;
    (void)pthread_mutex_init(&panels->lock, NULL);
    atomic_init(&panels->filled, NULL);
    kelp_status *status = packs_at_once(panels) ? pack(env, panels) : NULL;
    if (status != NULL)
        kelp_panels_destroy(panels, panels->allocator);
    else
        *out = panels;
    return status;
}

void kelp_panels_destroy(kelp_panels *panels, kelp_allocator allocator) {
    if (panels == NULL)
        return;
    kelp_op_unpack(&panels->packed, allocator);
    (void)pthread_mutex_destroy(&panels->lock);
    kelp_free(allocator, panels, sizeof *panels);
}

kelp_status *kelp_panels_plan(const kelp_op_env *env, const kelp_panels *shared, int64_t m) {
    kelp_panels *panels = (kelp_panels *)shared; /* protected by the lock */
    kelp_status *status = NULL;
    if (panels == NULL || m == 0 || filled(panels) != NULL ||
        (!panels->transposed && kelp_gemm_is_skinny(m, panels->k, panels->n)))
        return NULL;
    (void)pthread_mutex_lock(&panels->lock);
    if (filled(panels) == NULL)
        status = pack(env, panels);
    (void)pthread_mutex_unlock(&panels->lock);
    return status;
}

void kelp_panels_use(const kelp_panels *panels, kelp_gemm *inout_job) {
    inout_job->packed = panels != NULL ? filled(panels) : NULL;
    inout_job->kernels = inout_job->packed != NULL ? panels->kernels : NULL;
}
