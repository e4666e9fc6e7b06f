/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of `batch_input` and `batch_output`, which the backend reads from the configuration. */
#include "server/config/view.h"

/* The messages of one list. */
typedef struct batch_io {
    const kelp_model_config *config;
    const char *field; /* "batch_input" or "batch_output" */
    bool is_input;
} batch_io;

static const char *kind_of(const kelp_config_message *message) {
    size_t index = kelp_config_field_index(message->schema, kelp_str_from("kind"));
    const kelp_config_value *kind = kelp_config_get(message, "kind");
    return message->schema->fields[index].values[kind != NULL ? kind->i : 0];
}

/* Checks that a message has one source, an input of the configuration. */
static kelp_status *check_source(const batch_io *io, size_t index,
                                 const kelp_config_message *message) {
    const kelp_config_value *source = kelp_config_get(message, "source_input");
    size_t count = 0;
    for (const kelp_config_value *at = source; at != NULL; at = at->next)
        count++;
    if (count != 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: %s %zu: batch %s kind '%s' expects 1 source input, got %zu",
                          io->config->source, io->field, index, io->is_input ? "input" : "output",
                          kind_of(message), count);
    if (kelp_model_config_input(io->config, source->text) == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: %s %zu: unknown source input name '%.*s'",
                          io->config->source, io->field, index, KELP_STR_ARG(source->text));
    return NULL;
}

/* Returns true if a target occurs in the list before `end`. */
static bool is_target_before(const batch_io *io, const kelp_config_value *end) {
    for (const kelp_config_value *one = kelp_config_get(io->config->tree, io->field); one != NULL;
         one = one->next)
        for (const kelp_config_value *target = kelp_config_get(one->message, "target_name");
             target != NULL; target = target->next) {
            if (target == end)
                return false;
            if (kelp_str_equal(target->text, end->text))
                return true;
        }
    return false;
}

static kelp_status *check_target(const batch_io *io, size_t index,
                                 const kelp_config_value *target) {
    const char *kind = io->is_input ? "input" : "output";
    const char *before = "", *after = "";
    if (is_target_before(io, target))
        after = " can only be specified once";
    else if (io->is_input && kelp_model_config_input(io->config, target->text) != NULL)
        after = " is also an input of the configuration, which clients send";
    else if (!io->is_input && kelp_model_config_output(io->config, target->text) == NULL)
        before = "unknown ";
    else
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: %s %zu: %starget %s name '%.*s'%s",
                      io->config->source, io->field, index, before, kind,
                      KELP_STR_ARG(target->text), after);
}

static kelp_status *check_list(const batch_io *io) {
    size_t index = 0;
    for (const kelp_config_value *one = kelp_config_get(io->config->tree, io->field); one != NULL;
         one = one->next, index++) {
        const kelp_config_value *target = kelp_config_get(one->message, "target_name");
        if (target == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "%s: %s %zu: expected at least 1 'target_name', got 0",
                              io->config->source, io->field, index);
        for (; target != NULL; target = target->next)
            KELP_TRY(check_target(io, index, target));
        KELP_TRY(check_source(io, index, one->message));
    }
    return NULL;
}

kelp_status *kelp_config_check_batch_io(const kelp_model_config *config) {
    const batch_io inputs = {config, "batch_input", true};
    const batch_io outputs = {config, "batch_output", false};
    KELP_TRY(check_list(&inputs));
    return check_list(&outputs);
}
