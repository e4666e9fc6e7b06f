/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for requests of one batch. */
#include "server/scheduler/join.h"

#include "base/alloc.h"

#include <string.h>

/* Returns true if requests may have different shapes of an input. */
static bool is_dynamic(const kelp_config_io *io) {
    for (uint32_t i = 0; i < io->rank; i++)
        if (io->dims[i] < 0)
            return true;
    return false;
}

kelp_status *kelp_join_rules_init(kelp_join_rules *rules, kelp_allocator allocator,
                                  const kelp_model_config *config) {
    *rules = (kelp_join_rules){0};
    KELP_TRY(kelp_alloc_zero(allocator, config->input_count + 1, sizeof *rules->inputs,
                             (void **)&rules->inputs));
    rules->capacity = config->input_count + 1;
    for (size_t i = 0; i < config->input_count; i++) {
        const kelp_config_io *io = &config->inputs[i];
        kelp_join_input input = {.name = io->name,
                                 .same_shape = io->is_shape_tensor ||
                                               (is_dynamic(io) && !io->allow_ragged_batch),
                                 .same_contents = io->is_shape_tensor};
        if (input.same_shape || io->optional)
            rules->inputs[rules->count++] = input;
    }
    return NULL;
}

void kelp_join_rules_deinit(kelp_join_rules *rules, kelp_allocator allocator) {
    kelp_free(allocator, rules->inputs, rules->capacity * sizeof *rules->inputs);
}

static bool equal_shapes(const kelp_input *a, const kelp_input *b, bool has_batch) {
    if (a->rank != b->rank)
        return false;
    for (uint32_t k = has_batch; k < a->rank; k++)
        if (a->shape[k] != b->shape[k])
            return false;
    return true;
}

/* Compares data in memory of the CPU; other data is different. The blocks may be divided
 * differently. */
static bool equal_contents(const kelp_data *a, const kelp_data *b) {
    size_t i = 0, k = 0;
    uint64_t in_a = 0, in_b = 0; /* offsets in the current blocks */
    if (a->size_bytes != b->size_bytes)
        return false;
    while (i < a->count && k < b->count) {
        const kelp_data_block *left = &a->blocks[i], *right = &b->blocks[k];
        if (left->attributes.memory_type == TRITONSERVER_MEMORY_GPU ||
            right->attributes.memory_type == TRITONSERVER_MEMORY_GPU)
            return false;
        uint64_t rest_a = left->attributes.size_bytes - in_a;
        uint64_t rest_b = right->attributes.size_bytes - in_b;
        uint64_t length = rest_a < rest_b ? rest_a : rest_b;
        if (memcmp((const char *)left->base + in_a, (const char *)right->base + in_b, length) != 0)
            return false;
        in_a += length;
        in_b += length;
        if (in_a == left->attributes.size_bytes)
            i++, in_a = 0;
        if (in_b == right->attributes.size_bytes)
            k++, in_b = 0;
    }
    return true;
}

bool kelp_join_rules_allow(const kelp_join_rules *rules, const kelp_request *a,
                           const kelp_request *b) {
    for (size_t i = 0; i < rules->count; i++) {
        const kelp_join_input *rule = &rules->inputs[i];
        const kelp_input *left = kelp_request_find_input(a, rule->name);
        const kelp_input *right = kelp_request_find_input(b, rule->name);
        if ((left == NULL) != (right == NULL))
            return false;
        if (left == NULL || !rule->same_shape)
            continue;
        if (!equal_shapes(left, right, !rule->same_contents) ||
            (rule->same_contents && !equal_contents(&left->data, &right->data)))
            return false;
    }
    return true;
}
