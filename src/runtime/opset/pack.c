/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights: those of an engine image, of another node, or memory for new ones. Thread-safe.
 */
#include "runtime/opset/pack.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "graph/ir.h"
#include "runtime/opset/env.h"

#include <string.h>

/* A block and what determines its bytes. */
typedef struct kelp_pack_share {
    struct kelp_pack_share *next;
    kelp_pack_shares *owner;
    const kelp_node *node;
    uint32_t index; /* of the node that packs */
    size_t users;
    bool done; /* the bytes are written */
    const void *data;
    size_t size_bytes;
    char layout[KELP_OP_LAYOUT_MAX + 1];
} kelp_pack_share;

void kelp_pack_shares_init(kelp_pack_shares *shares) {
    *shares = (kelp_pack_shares){.creating = true};
    (void)pthread_mutex_init(&shares->lock, NULL);
}

void kelp_pack_shares_close(kelp_pack_shares *shares) {
    (void)pthread_mutex_lock(&shares->lock);
    shares->creating = false;
    for (kelp_pack_share *share = shares->first; share != NULL; share = share->next)
        share->done = true;
    (void)pthread_mutex_unlock(&shares->lock);
}

void kelp_pack_shares_deinit(kelp_pack_shares *shares) {
    KELP_ASSERT(shares->first == NULL);
    (void)pthread_mutex_destroy(&shares->lock);
}

/* ---- equal nodes ---- */
static bool same_string(kelp_string a, kelp_string b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

/* Returns false for attributes with tensors, graphs or lists of strings. */
static bool same_attribute(const kelp_attr *a, const kelp_attr *b) {
    if (strcmp(a->name, b->name) != 0 || a->type != b->type || a->count != b->count ||
        a->tensor != NULL || a->blocks != NULL || a->strings != NULL || a->i != b->i ||
        memcmp(&a->f, &b->f, sizeof a->f) != 0 || !same_string(a->s, b->s) ||
        (a->ints == NULL) != (b->ints == NULL) || (a->floats == NULL) != (b->floats == NULL))
        return false;
    return (a->ints == NULL || memcmp(a->ints, b->ints, a->count * sizeof *a->ints) == 0) &&
           (a->floats == NULL || memcmp(a->floats, b->floats, a->count * sizeof *a->floats) == 0);
}

static bool same_constant(const kelp_value *a, const kelp_value *b) {
    const kelp_tensor *x = a != NULL ? a->constant : NULL, *y = b != NULL ? b->constant : NULL;
    if (x == NULL || y == NULL)
        return x == y;
    return x->data == y->data && x->dtype == y->dtype && x->rank == y->rank &&
           memcmp(x->shape, y->shape, (size_t)x->rank * sizeof *x->shape) == 0;
}

static bool same_node(const kelp_node *a, const kelp_node *b) {
    const kelp_attr *x = a->attributes, *y = b->attributes;
    if (a->op != b->op || a->opset_version != b->opset_version || a->input_count != b->input_count)
        return false;
    for (size_t i = 0; i < a->input_count; i++)
        if (!same_constant(a->inputs[i], b->inputs[i]))
            return false;
    for (; x != NULL && y != NULL && same_attribute(x, y); x = x->next)
        y = y->next;
    return x == NULL && y == NULL;
}

/* ---- blocks of several nodes ---- */
/* Takes the block of an equal node. */
static bool join(const kelp_op_pack_site *site, const kelp_op_packing *packing,
                 kelp_op_packed *out) {
    kelp_pack_shares *shares = site->shares;
    (void)pthread_mutex_lock(&shares->lock);
    kelp_pack_share *share = shares->first;
    for (; share != NULL; share = share->next) {
        bool written = share->done || (shares->creating && share->index != site->index);
        if (written && share->size_bytes == packing->size_bytes &&
            strcmp(share->layout, packing->layout) == 0 && same_node(share->node, site->node))
            break;
    }
    if (share != NULL) {
        share->users++;
        out->data = share->data;
        out->share = share;
    }
    (void)pthread_mutex_unlock(&shares->lock);
    return share != NULL;
}

static kelp_status *add(const kelp_op_pack_site *site, kelp_allocator allocator,
                        const kelp_op_packing *packing, kelp_op_packed *out) {
    kelp_pack_share *share = NULL;
    size_t length = strlen(packing->layout);
    if (length > KELP_OP_LAYOUT_MAX)
        return NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_pack_share, &share));
    *share = (kelp_pack_share){.owner = site->shares,
                               .node = site->node,
                               .index = site->index,
                               .users = 1,
                               .data = out->data,
                               .size_bytes = packing->size_bytes};
    memcpy(share->layout, packing->layout, length);
    (void)pthread_mutex_lock(&site->shares->lock);
    share->next = site->shares->first;
    site->shares->first = share;
    (void)pthread_mutex_unlock(&site->shares->lock);
    out->share = share;
    return NULL;
}

/* Returns true if no other node uses the block, which is then removed. */
static bool leave(kelp_pack_share *share) {
    kelp_pack_shares *shares = share->owner;
    (void)pthread_mutex_lock(&shares->lock);
    KELP_ASSERT(share->users > 0);
    bool last = --share->users == 0;
    kelp_pack_share **link = &shares->first;
    while (last && *link != share)
        link = &(*link)->next;
    if (last)
        *link = share->next;
    (void)pthread_mutex_unlock(&shares->lock);
    return last;
}

void kelp_op_pack_done(const kelp_op_packed *packed) {
    if (packed->share == NULL)
        return;
    (void)pthread_mutex_lock(&packed->share->owner->lock);
    packed->share->done = true;
    (void)pthread_mutex_unlock(&packed->share->owner->lock);
}

/* ---- packing ---- */
kelp_op_pack_site kelp_op_env_pack_site(const kelp_op_env *env) {
    return env->pack;
}

static kelp_status *new_block(const kelp_op_pack_site *site, kelp_allocator allocator,
                              const kelp_op_packing *packing, kelp_op_packed *out) {
    void *bytes = NULL;
    KELP_TRY(kelp_alloc_aligned(allocator, packing->size_bytes, KELP_TENSOR_ALIGNMENT, &bytes));
    if (site->packs != NULL && site->packs->keeps)
        memset(bytes, 0, packing->size_bytes);
    out->data = bytes;
    return site->shares != NULL ? add(site, allocator, packing, out) : NULL;
}

kelp_status *kelp_op_pack(const kelp_op_pack_site *site, kelp_allocator allocator,
                          const kelp_op_packing *packing, kelp_op_packed *out, void **out_bytes) {
    kelp_packs *packs = site->packs;
    kelp_status *status = NULL;
    *out = (kelp_op_packed){.size_bytes = packing->size_bytes};
    *out_bytes = NULL;
    if (packs != NULL)
        KELP_TRY(packs->take(packs, site, packing, &out->data));
    if (out->data != NULL) {
        out->borrowed = true;
        return NULL;
    }
    if (site->shares == NULL || !join(site, packing, out)) {
        status = new_block(site, allocator, packing, out);
        *out_bytes = (void *)(uintptr_t)out->data;
    }
    if (status == NULL && packs != NULL)
        status = packs->made(packs, site, packing, out->data);
    if (status != NULL) {
        kelp_op_unpack(out, allocator);
        *out_bytes = NULL;
    }
    return status;
}

void kelp_op_unpack(kelp_op_packed *packed, kelp_allocator allocator) {
    bool last = packed->share == NULL || leave(packed->share);
    if (packed->data != NULL && !packed->borrowed && last)
        kelp_free_aligned(allocator, (void *)(uintptr_t)packed->data, packed->size_bytes,
                          KELP_TENSOR_ALIGNMENT);
    if (packed->share != NULL && last)
        kelp_free(allocator, packed->share, sizeof *packed->share);
    *packed = (kelp_op_packed){0};
}
