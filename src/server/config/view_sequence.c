/* SPDX-License-Identifier: Apache-2.0 */
/* The typed view of `sequence_batching`, and its checks. */
#include "base/assert.h"
#include "base/checked.h"
#include "server/config/view.h"

#include <string.h>

const char *kelp_control_kind_name(kelp_control_kind kind) {
    static const char *const names[] = {"CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_READY",
                                        "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_CORRID"};
    KELP_ASSERT((size_t)kind < KELP_COUNT(names));
    return names[kind];
}

/* ---- controls ---- */

static kelp_status *control_error(const kelp_model_config *config, const kelp_config_control *of,
                                  const char *what) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "%s: sequence_batching: control input '%s': %s for %s for %s", config->source,
                      of->name, what, kelp_control_kind_name(of->kind), config->name);
}

/* Reads the values false and true of a field that is set. */
static kelp_status *view_values(const kelp_model_config *config, const kelp_config_value *value,
                                TRITONSERVER_DataType type, kelp_config_control *to) {
    if (kelp_config_count(value) != 2)
        return control_error(config, to, "expected two values, false and true");
    to->data_type = type;
    to->size_bytes = TRITONSERVER_DataTypeByteSize(type);
    for (size_t i = 0; i < 2; i++, value = value->next) {
        int32_t number = (int32_t)value->i;
        float real = (float)value->f;
        uint8_t truth = value->i != 0;
        const void *from = type == TRITONSERVER_TYPE_INT32  ? (const void *)&number
                           : type == TRITONSERVER_TYPE_FP32 ? (const void *)&real
                                                            : &truth;
        memcpy(to->values[i], from, to->size_bytes);
    }
    return NULL;
}

static kelp_status *view_boolean(const kelp_model_config *config, const kelp_config_message *from,
                                 kelp_config_control *to) {
    static const struct {
        const char *field;
        TRITONSERVER_DataType type;
    } rows[] = {{"int32_false_true", TRITONSERVER_TYPE_INT32},
                {"fp32_false_true", TRITONSERVER_TYPE_FP32},
                {"bool_false_true", TRITONSERVER_TYPE_BOOL}};
    size_t found = 0;
    for (size_t i = 0; i < KELP_COUNT(rows); i++) {
        const kelp_config_value *value = kelp_config_get(from, rows[i].field);
        if (value == NULL)
            continue;
        found++;
        KELP_TRY(view_values(config, value, rows[i].type, to));
    }
    if (found != 1)
        return control_error(
            config, to,
            found == 0
                ? "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or "
                  "'bool_false_true'"
                : "sequence batching specifies more than one from 'int32_false_true', "
                  "'fp32_false_true' and 'bool_false_true'");
    if (kelp_config_number(from, "data_type") != TRITONSERVER_TYPE_INVALID)
        return control_error(config, to, "field 'data_type' is only for CONTROL_SEQUENCE_CORRID");
    return NULL;
}

static kelp_status *view_corrid(const kelp_model_config *config, const kelp_config_message *from,
                                kelp_config_control *to) {
    to->data_type = (TRITONSERVER_DataType)kelp_config_number(from, "data_type");
    if (kelp_config_get(from, "int32_false_true") != NULL ||
        kelp_config_get(from, "fp32_false_true") != NULL ||
        kelp_config_get(from, "bool_false_true") != NULL)
        return control_error(config, to, "expected no values for false and true");
    switch (to->data_type) {
    case TRITONSERVER_TYPE_INT32:
    case TRITONSERVER_TYPE_UINT32:
    case TRITONSERVER_TYPE_INT64:
    case TRITONSERVER_TYPE_UINT64:
    case TRITONSERVER_TYPE_BYTES:
        return NULL;
    default:
        return control_error(config, to,
                             "field 'data_type': expected TYPE_UINT64, TYPE_INT64, TYPE_UINT32, "
                             "TYPE_INT32 or TYPE_STRING");
    }
}

static kelp_status *view_control(const kelp_model_config *config, const char *name,
                                 const kelp_config_message *from, kelp_config_control *to) {
    to->name = name;
    to->kind = (kelp_control_kind)kelp_config_number(from, "kind");
    return to->kind == KELP_CONTROL_CORRID ? view_corrid(config, from, to)
                                           : view_boolean(config, from, to);
}

static kelp_status *view_controls(kelp_model_config *config, const kelp_config_message *from,
                                  kelp_config_sequence *to) {
    size_t count = 0;
    for (const kelp_config_value *input = kelp_config_get(from, "control_input"); input != NULL;
         input = input->next)
        count += kelp_config_count(kelp_config_get(input->message, "control"));
    kelp_config_control *items = KELP_ARENA_ARRAY(config->arena, count + 1, kelp_config_control);
    if (items == NULL)
        return kelp_status_oom();
    to->controls = items;
    for (const kelp_config_value *input = kelp_config_get(from, "control_input"); input != NULL;
         input = input->next) {
        const kelp_config_value *control = kelp_config_get(input->message, "control");
        const char *name = kelp_config_text(config->arena, input->message, "name");
        if (name == NULL)
            return kelp_status_oom();
        if (kelp_config_count(control) != 1)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "%s: sequence_batching: control input '%s': expected one 'control', "
                              "found %zu",
                              config->source, name, kelp_config_count(control));
        KELP_TRY(view_control(config, name, control->message, &items[to->control_count++]));
    }
    return NULL;
}

/* ---- states ---- */

static bool view_dims(kelp_arena *arena, const kelp_config_value *value, const int64_t **out,
                      uint32_t *out_rank) {
    size_t rank = 0;
    bool copied = kelp_config_copy_i64s(arena, value, out, &rank);
    *out_rank = (uint32_t)rank;
    return copied;
}

static kelp_status *state_error(const kelp_model_config *config, const kelp_config_state *of,
                                const char *what) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: sequence_batching: state '%s': %s",
                      config->source, of->input_name, what);
}

static kelp_status *view_initial(const kelp_model_config *config, const kelp_config_value *value,
                                 kelp_config_state *to) {
    const kelp_config_message *from = value->message;
    const kelp_config_value *file = kelp_config_get(from, "data_file");
    if (value->next != NULL)
        return state_error(config, to, "expected at most one 'initial_state'");
    to->initial_name = kelp_config_text(config->arena, from, "name");
    to->initial_file = kelp_config_text(config->arena, from, "data_file");
    if (to->initial_name == NULL || to->initial_file == NULL ||
        !view_dims(config->arena, kelp_config_get(from, "dims"), &to->initial_dims,
                   &to->initial_rank))
        return kelp_status_oom();
    if (kelp_config_number(from, "data_type") != (int64_t)to->data_type)
        return state_error(config, to,
                           "field 'initial_state': expected the 'data_type' of the state");
    if (file == NULL && kelp_config_number(from, "zero_data") == 0)
        return state_error(config, to,
                           "field 'initial_state': expected 'zero_data: true' or 'data_file'");
    if (file != NULL && (to->initial_file[0] == '\0' || strchr(to->initial_file, '/') != NULL))
        return state_error(config, to,
                           "field 'data_file': expected a file name in the directory "
                           "initial_state of the model");
    bool fits = to->initial_rank == to->rank;
    for (uint32_t i = 0; fits && i < to->rank; i++)
        fits =
            to->initial_dims[i] >= 0 && (to->dims[i] == -1 || to->dims[i] == to->initial_dims[i]);
    if (!fits)
        return state_error(config, to,
                           "field 'initial_state': expected 'dims' that match those of the state, "
                           "without dynamic dimensions");
    return NULL;
}

/* Sets the initial state of a state without `initial_state`: zeros. */
static kelp_status *default_initial(const kelp_model_config *config, kelp_config_state *to) {
    int64_t *dims = KELP_ARENA_ARRAY(config->arena, to->rank + 1, int64_t);
    if (dims == NULL)
        return kelp_status_oom();
    for (uint32_t i = 0; i < to->rank; i++)
        dims[i] = to->dims[i] == -1 ? 1 : to->dims[i];
    to->initial_dims = dims;
    to->initial_rank = to->rank;
    to->initial_name = to->initial_file = "";
    return NULL;
}

static kelp_status *check_state(const kelp_model_config *config, const kelp_config_state *of) {
    int64_t elements = 1;
    if (of->input_name[0] == '\0' || of->output_name[0] == '\0')
        return state_error(config, of, "fields 'input_name' and 'output_name' are required");
    if (of->data_type == TRITONSERVER_TYPE_INVALID)
        return state_error(config, of, "field 'data_type' is missing");
    if (of->rank == 0)
        return state_error(config, of, "field 'dims' is missing");
    if (of->rank >= KELP_MAX_RANK)
        return state_error(config, of, "field 'dims' has too many dimensions");
    for (uint32_t i = 0; i < of->rank; i++)
        if (of->dims[i] < 1 && of->dims[i] != -1)
            return state_error(config, of, "field 'dims': expected dimensions above 0 or -1");
    for (uint32_t i = 0; i < of->rank; i++)
        if (of->dims[i] > 0 && !kelp_i64_mul(elements, of->dims[i], &elements))
            return state_error(config, of, "field 'dims': the tensor is too large");
    if (of->growable && !of->same_buffer)
        return state_error(
            config, of, "field 'use_growable_memory' requires 'use_same_buffer_for_input_output'");
    return NULL;
}

static kelp_status *view_state(const kelp_model_config *config, const kelp_config_message *from,
                               kelp_config_state *to) {
    const kelp_config_value *initial = kelp_config_get(from, "initial_state");
    to->input_name = kelp_config_text(config->arena, from, "input_name");
    to->output_name = kelp_config_text(config->arena, from, "output_name");
    if (to->input_name == NULL || to->output_name == NULL ||
        !view_dims(config->arena, kelp_config_get(from, "dims"), &to->dims, &to->rank))
        return kelp_status_oom();
    to->data_type = (TRITONSERVER_DataType)kelp_config_number(from, "data_type");
    to->same_buffer = kelp_config_number(from, "use_same_buffer_for_input_output") != 0;
    to->growable = kelp_config_number(from, "use_growable_memory") != 0;
    KELP_TRY(check_state(config, to));
    return initial != NULL ? view_initial(config, initial, to) : default_initial(config, to);
}

static kelp_status *view_states(kelp_model_config *config, const kelp_config_message *from,
                                kelp_config_sequence *to) {
    const kelp_config_value *value = kelp_config_get(from, "state");
    size_t count = kelp_config_count(value);
    kelp_config_state *items = KELP_ARENA_ARRAY(config->arena, count + 1, kelp_config_state);
    if (items == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < count; i++, value = value->next)
        KELP_TRY(view_state(config, value->message, &items[i]));
    to->states = items;
    to->state_count = count;
    return NULL;
}

/* ---- strategies ---- */

static kelp_status *view_oldest(kelp_model_config *config, const kelp_config_message *from,
                                kelp_config_sequence *to) {
    enum { MAX_CANDIDATES = 65536 };
    const kelp_config_value *preferred = kelp_config_get(from, "preferred_batch_size");
    int64_t candidates = kelp_config_number(from, "max_candidate_sequences");
    size_t count = kelp_config_count(preferred);
    int32_t *sizes = KELP_ARENA_ARRAY(config->arena, count + 1, int32_t);
    if (sizes == NULL)
        return kelp_status_oom();
    if (candidates < 0 || candidates > MAX_CANDIDATES)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: sequence_batching: field 'max_candidate_sequences': expected 1 to "
                          "%d, found %lld",
                          config->source, MAX_CANDIDATES, (long long)candidates);
    for (size_t i = 0; i < count; i++, preferred = preferred->next) {
        sizes[i] = (int32_t)preferred->i;
        if (sizes[i] < 1 || sizes[i] > (config->max_batch_size > 0 ? config->max_batch_size : 1))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "%s: sequence_batching: field 'preferred_batch_size': expected 1 to "
                              "max_batch_size (%d), found %d",
                              config->source, config->max_batch_size, sizes[i]);
    }
    to->oldest = true;
    to->slots = candidates > 0 ? (uint32_t)candidates : to->slots;
    to->preferred_batch_sizes = sizes;
    to->preferred_count = count;
    to->max_delay_us = (uint64_t)kelp_config_number(from, "max_queue_delay_microseconds");
    to->preserve_ordering = kelp_config_number(from, "preserve_ordering") != 0;
    return NULL;
}

static kelp_status *view_direct(const kelp_model_config *config, const kelp_config_message *from,
                                kelp_config_sequence *to) {
    enum { MAX_SLOTS = 256 };
    const kelp_config_value *utilization = kelp_config_get(from, "minimum_slot_utilization");
    if (to->slots > MAX_SLOTS)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: sequence_batching: strategy 'direct' supports a max_batch_size of "
                          "at most %d, found %u",
                          config->source, MAX_SLOTS, to->slots);
    to->max_delay_us = (uint64_t)kelp_config_number(from, "max_queue_delay_microseconds");
    to->min_slot_utilization = utilization != NULL ? utilization->f : 0;
    if (!(to->min_slot_utilization >= 0 && to->min_slot_utilization <= 1))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: sequence_batching: field 'minimum_slot_utilization': expected 0 to "
                          "1, found %g",
                          config->source, to->min_slot_utilization);
    return NULL;
}

kelp_status *kelp_config_view_sequence(kelp_model_config *config, const kelp_config_message *from) {
    kelp_config_sequence *to = KELP_ARENA_ARRAY(config->arena, 1, kelp_config_sequence);
    const kelp_config_message *oldest = kelp_config_sub(from, "oldest");
    if (to == NULL)
        return kelp_status_oom();
    *to = (kelp_config_sequence){
        .iterative = kelp_config_number(from, "iterative_sequence") != 0,
        .max_idle_us = (uint64_t)kelp_config_number(from, "max_sequence_idle_microseconds"),
        .slots = config->max_batch_size > 0 ? (uint32_t)config->max_batch_size : 1};
    if (oldest != NULL)
        KELP_TRY(view_oldest(config, oldest, to));
    else
        KELP_TRY(view_direct(config, kelp_config_sub(from, "direct"), to));
    KELP_TRY(view_controls(config, from, to));
    KELP_TRY(view_states(config, from, to));
    config->sequence = to;
    return NULL;
}

/* ---- checks of the whole configuration ---- */

/* Checks that a control or state is not also an input of the client, or another one. */
static kelp_status *check_input_name(const kelp_model_config *config, const char *kind,
                                     const char *name, size_t index) {
    const kelp_config_sequence *sequence = config->sequence;
    bool other = false;
    for (size_t i = 0; i < index && !other; i++)
        other = strcmp(name, i < sequence->control_count
                                 ? sequence->controls[i].name
                                 : sequence->states[i - sequence->control_count].input_name) == 0;
    if (name[0] == '\0')
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: sequence_batching: a %s has no name",
                          config->source, kind);
    if (other && index < sequence->control_count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: sequence batching control tensor '%s' is specified for multiple "
                          "control kinds for %s",
                          config->source, name, config->name);
    if (other || kelp_model_config_input(config, kelp_str_from(name)) != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: sequence_batching: %s '%s' is also another input of the model",
                          config->source, kind, name);
    return NULL;
}

kelp_status *kelp_config_check_sequence(const kelp_model_config *config) {
    const kelp_config_sequence *sequence = config->sequence;
    if (config->response_cache)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: response_cache cannot be enabled for a model with "
                          "sequence_batching",
                          config->source);
    for (size_t i = 0; i < sequence->control_count; i++) {
        const kelp_config_control *control = &sequence->controls[i];
        KELP_TRY(check_input_name(config, "control input", control->name, i));
        for (size_t k = 0; k < i; k++)
            if (sequence->controls[k].kind == control->kind)
                return KELP_ERROR(KELP_INVALID_ARGUMENT,
                                  "%s: sequence batching specifies multiple %s tensors for %s: "
                                  "'%s' and '%s'",
                                  config->source, kelp_control_kind_name(control->kind),
                                  config->name, sequence->controls[k].name, control->name);
    }
    for (size_t i = 0; i < sequence->state_count; i++) {
        const kelp_config_state *state = &sequence->states[i];
        KELP_TRY(check_input_name(config, "state", state->input_name, sequence->control_count + i));
        for (size_t k = 0; k < i; k++)
            if (strcmp(sequence->states[k].output_name, state->output_name) == 0)
                return state_error(config, state, "another state has the same 'output_name'");
    }
    return NULL;
}
