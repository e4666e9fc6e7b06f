/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a configuration that the server accepts and does not implement. */
#include "server/config/config.h"

#include "base/assert.h"
#include "base/checked.h"
#include "server/config/schema.h"

#include <string.h>

/* Paths in ModelConfig. Remove a path when its field gets an effect. */
static const char *const unused_paths[] = {
    "batch_input",
    "batch_output",
    "dynamic_batching.preferred_batch_size",
    "dynamic_batching.max_queue_delay_microseconds",
    "dynamic_batching.preserve_ordering",
    "dynamic_batching.priority_levels",
    "dynamic_batching.default_priority_level",
    "dynamic_batching.priority_queue_policy",
    "instance_group.rate_limiter",
    "instance_group.secondary_devices",
};

/* Returns true if the field has a value other than that of a field that is not set. */
static bool has_value(const kelp_config_value *value) {
    return value->message != NULL || value->next != NULL || value->text.length > 0 ||
           value->i != 0 || value->f != 0;
}

/* Returns true if the field at the dotted path is set in any of the messages on the path. */
static bool is_set(const kelp_config_message *message, const char *path) {
    const char *dot = strchr(path, '.');
    kelp_str name = {path, dot != NULL ? (size_t)(dot - path) : strlen(path)};
    size_t index = kelp_config_field_index(message->schema, name);
    KELP_ASSERT(index != SIZE_MAX);
    for (const kelp_config_value *value = message->values[index]; value != NULL;
         value = value->next)
        if (dot == NULL ? has_value(value) : is_set(value->message, dot + 1))
            return true;
    return false;
}

void kelp_model_config_list_unused(const kelp_model_config *config, kelp_buf *out) {
    for (size_t i = 0; i < KELP_COUNT(unused_paths); i++) {
        if (!is_set(config->tree, unused_paths[i]))
            continue;
        if (out->length > 0)
            kelp_buf_append_cstr(out, ", ");
        kelp_buf_append_cstr(out, unused_paths[i]);
    }
}
