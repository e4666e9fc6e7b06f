/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors on devices; see placed.h. */
#include "runtime/opset/placed.h"

#include "base/assert.h"

#include <string.h>

static bool is_host(const kelp_tensor *tensor) {
    const kelp_placements readable = KELP_PLACED_HOST | KELP_PLACED_PINNED | KELP_PLACED_SHARED;
    return (kelp_placement_of(tensor->device) & readable) != 0;
}

bool kelp_places(const kelp_opset_entry *entry) {
    return (entry->table.placements & ~KELP_PLACED_HOST) != 0;
}

kelp_status *kelp_placed_check_inputs(const kelp_opset_entry *entry, const kelp_node *node,
                                      const kelp_tensor *const *inputs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (inputs[i] == NULL || is_host(inputs[i]) ||
            (kelp_placement_of(inputs[i]->device) & entry->table.placements) != 0)
            continue;
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "input %zu of '%s' is on device type %d, id %d, which provider '%s' does "
                          "not accept",
                          i, node->op->name, (int)inputs[i]->device.device_type,
                          inputs[i]->device.device_id, entry->table.name);
    }
    return NULL;
}

static void release_one(const kelp_opset_entry *entry, const kelp_tensor *tensor) {
    kelp_tensor copy = *tensor;
    if (entry->table.release_tensor != NULL)
        entry->table.release_tensor(entry->self, &copy);
}

kelp_status *kelp_placed_own(const kelp_opset_entry *entry, const kelp_op_env *env,
                             const kelp_tensor *results, size_t count) {
    kelp_status *status = NULL;
    for (size_t i = 0; i < count; i++) {
        if (results[i].dtype == KELP_DTYPE_INVALID || is_host(&results[i]))
            continue;
        kelp_placed *placed = kelp_op_env_alloc(env, sizeof *placed);
        if (placed == NULL || env->placed == NULL) { /* the others are released as well */
            release_one(entry, &results[i]);
            if (status == NULL)
                status = kelp_status_oom();
            continue;
        }
        *placed = (kelp_placed){*env->placed, entry, results[i]};
        *env->placed = placed;
    }
    return status;
}

/* Returns a node that reads the value, if possible one that the provider does not support. */
static const kelp_node *reader_of(const kelp_opset_entry *entry, const kelp_value *value) {
    const kelp_block *block = value->block;
    const kelp_node *reader = NULL;
    for (size_t n = 0; !value->is_output && n < block->node_count; n++)
        for (size_t i = 0; i < block->nodes[n]->input_count; i++) {
            if (block->nodes[n]->inputs[i] != value)
                continue;
            if (!kelp_opset_entry_covers(entry, block->nodes[n]))
                return block->nodes[n];
            reader = reader != NULL ? reader : block->nodes[n];
        }
    return reader;
}

static kelp_status *cannot_copy(const kelp_placer *placer, size_t index,
                                const kelp_tensor *result) {
    const kelp_value *value = placer->node->outputs[index];
    const kelp_node *reader = reader_of(placer->entry, value);
    if (reader == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "provider '%s' left '%s' of node '%s' (%s) on device type %d, id %d, and "
                          "cannot copy it to host memory: it is an output of graph '%s'",
                          placer->entry->table.name, value->name, placer->node->name,
                          placer->node->op->name, (int)result->device.device_type,
                          result->device.device_id, value->block->name);
    return KELP_ERROR(
        KELP_UNIMPLEMENTED,
        "provider '%s' left '%s' of node '%s' (%s) on device type %d, id %d, and cannot "
        "copy it to host memory: node '%s' (%s) does not run on this provider",
        placer->entry->table.name, value->name, placer->node->name, placer->node->op->name,
        (int)result->device.device_type, result->device.device_id, reader->name, reader->op->name);
}

kelp_status *kelp_placed_copy(const kelp_placer *placer, const kelp_op_env *env, size_t index,
                              const kelp_tensor *result, void *to) {
    size_t bytes = kelp_tensor_bytes(result);
    const kelp_opset_backend *table = &placer->entry->table;
    if (is_host(result)) {
        if (bytes > 0)
            memcpy(to, result->data, bytes);
        return NULL;
    }
    if (table->to_host == NULL)
        return cannot_copy(placer, index, result);
    return KELP_ANNOTATE(table->to_host(placer->entry->self, env, result, to),
                         "provider '%s' cannot copy '%s' to host memory", table->name,
                         placer->node->outputs[index]->name);
}

kelp_status *kelp_placed_set(const kelp_placer *placer, const kelp_op_env *env, size_t index,
                             const kelp_tensor *result, kelp_tensor *out) {
    if (!is_host(result) && index < 64 && (placer->stays >> index & 1) != 0) {
        *out = *result;
        return NULL;
    }
    KELP_TRY(kelp_tensor_init(out, result->dtype, result->rank, result->shape, NULL));
    size_t bytes = kelp_tensor_bytes(out);
    out->data = kelp_op_env_alloc(env, bytes > 0 ? bytes : 1);
    if (out->data == NULL)
        return kelp_status_oom();
    return kelp_placed_copy(placer, env, index, result, out->data);
}

kelp_status *kelp_placed_set_all(const kelp_placer *placer, kelp_op_args *args,
                                 const kelp_tensor *results) {
    for (int32_t i = 0; i < args->output_count; i++)
        if (args->outputs[i] != NULL)
            KELP_TRY(kelp_placed_set(placer, args->env, (size_t)i, &results[i], args->outputs[i]));
    args->placed = true;
    return NULL;
}

void kelp_placed_release(kelp_placed **head, const kelp_placed *until) {
    while (*head != until) {
        KELP_ASSERT(*head != NULL);
        const kelp_placed *placed = *head;
        *head = placed->next;
        release_one(placed->entry, &placed->tensor);
    }
}
