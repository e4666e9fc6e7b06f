/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a configuration that have no effect. A test checks that every other field is used or
 * rejected. */
#include "server/config/config.h"

#include "base/assert.h"
#include "base/checked.h"
#include "server/config/schema.h"

#include <string.h>

typedef struct unused_field {
    const char *path;    /* in ModelConfig; a message stands for all of its fields */
    int64_t default_i;   /* the value of an unset number or bool */
    bool is_for_backend; /* backends in libraries may use it; built-in backends do not */
} unused_field;

/* Remove a row when its field gets an effect. */
static const unused_field unused_fields[] = {
    {"input.format", 0, true},
    {"input.is_non_linear_format_io", 0, true},
    {"output.is_non_linear_format_io", 0, true},
    {"optimization.graph", 0, true},
    {"optimization.priority", 0, false},
    {"optimization.cuda", 0, true},
    {"optimization.execution_accelerators", 0, true},
    {"optimization.input_pinned_memory.enable", 1, true},
    {"optimization.output_pinned_memory.enable", 1, true},
    {"optimization.gather_kernel_buffer_threshold", 0, true},
    {"optimization.eager_batching", 0, false},
    {"instance_group.secondary_devices", 0, false},
    {"instance_group.profile", 0, true},
    {"cc_model_filenames", 0, true},
};

/* Returns true if the field has a value other than that of a field that is not set. */
static bool has_value(const kelp_config_value *value, int64_t default_i) {
    return value->message != NULL || value->next != NULL || value->text.length > 0 ||
           value->key.length > 0 || value->i != default_i || value->f != 0;
}

/* Returns true if the field at the dotted path is set in any of the messages on the path. */
static bool is_set(const kelp_config_message *message, const char *path, int64_t default_i) {
    const char *dot = strchr(path, '.');
    kelp_str name = {path, dot != NULL ? (size_t)(dot - path) : strlen(path)};
    size_t index = kelp_config_field_index(message->schema, name);
    KELP_ASSERT(index != SIZE_MAX);
    for (const kelp_config_value *value = message->values[index]; value != NULL;
         value = value->next)
        if (dot == NULL ? has_value(value, default_i) : is_set(value->message, dot + 1, default_i))
            return true;
    return false;
}

void kelp_model_config_list_unused(const kelp_model_config *config, bool is_builtin,
                                   kelp_buf *out) {
    for (size_t i = 0; i < KELP_COUNT(unused_fields); i++) {
        const unused_field *field = &unused_fields[i];
        if ((field->is_for_backend && !is_builtin) ||
            !is_set(config->tree, field->path, field->default_i))
            continue;
        if (out->length > 0)
            kelp_buf_append_cstr(out, ", ");
        kelp_buf_append_cstr(out, field->path);
    }
}
