/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of sequence batching. */
#include "server/config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                \
    "backend: \"x\" max_batch_size: 8\n"                    \
    "input { name: \"IN\" data_type: TYPE_FP32 dims: 1 }\n" \
    "output { name: \"OUT\" data_type: TYPE_FP32 dims: 1 }\n"
#define CONTROL(name, body) "control_input { name: \"" name "\" control { " body " } }\n"
#define STATE(body) \
    "state { input_name: \"SI\" output_name: \"SO\" data_type: TYPE_INT32 " body " }\n"

static kelp_status *parse(const char *text, kelp_model_config **out) {
    const kelp_config_load_options options = {.model_name = "m", .strict = true};
    return kelp_model_config_parse(kelp_allocator_system(), &options, "config.pbtxt", text,
                                   strlen(text), out);
}

static void fields_are_read(void **state) {
    kelp_model_config *config = NULL;
    (void)state;
    kelp_status *status = parse(
        HEAD "sequence_batching { max_sequence_idle_microseconds: 5 oldest { "
             "max_candidate_sequences: 3 preferred_batch_size: [ 2, 4 ] "
             "max_queue_delay_microseconds: 7 }\n" CONTROL(
                 "START", "kind: CONTROL_SEQUENCE_START int32_false_true: [ 3, -4 ]")
                 CONTROL("READY", "kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ]")
                     CONTROL("ID", "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64")
                         STATE("dims: [ 2, -1 ] initial_state { data_type: TYPE_INT32 dims: [ 2, "
                               "3 ] data_file: \"f\" name: \"n\" }") "}\n",
        &config);
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
    const kelp_config_sequence *sequence = config->sequence;
    assert_int_equal(config->scheduling, KELP_SCHEDULING_SEQUENCE);
    assert_true(sequence->oldest);
    assert_int_equal(sequence->slots, 3);
    assert_int_equal(sequence->preferred_batch_sizes[1], 4);
    assert_int_equal(sequence->max_delay_us, 7);
    assert_int_equal(sequence->max_idle_us, 5);
    assert_int_equal(sequence->control_count, 3);
    int32_t value;
    memcpy(&value, sequence->controls[0].values[1], sizeof value);
    assert_int_equal(value, -4);
    assert_int_equal(sequence->controls[1].size_bytes, 1);
    assert_int_equal(sequence->controls[2].data_type, TRITONSERVER_TYPE_UINT64);
    assert_int_equal(sequence->state_count, 1);
    assert_int_equal(sequence->states[0].dims[1], -1);
    assert_int_equal(sequence->states[0].initial_dims[1], 3);
    assert_string_equal(sequence->states[0].initial_file, "f");
    kelp_model_config_release(config);
}

static void defaults_follow_the_batch_size(void **state) {
    kelp_model_config *config = NULL;
    (void)state;
    assert_null(parse(HEAD "sequence_batching { " STATE("dims: [ -1 ]") " }", &config));
    assert_false(config->sequence->oldest);
    assert_int_equal(config->sequence->slots, 8);
    assert_int_equal(config->sequence->max_idle_us, 1000000);
    assert_int_equal(config->sequence->states[0].initial_dims[0], 1);
    assert_string_equal(config->sequence->states[0].initial_file, "");
    kelp_model_config_release(config);
}

static void errors_name_the_input_and_the_field(void **state) {
    static const char *const rows[][2] = {
        {CONTROL("C", "kind: CONTROL_SEQUENCE_START"),
         "control input 'C': sequence batching must specify either 'int32_false_true', "
         "'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_START for m"},
        {CONTROL("C", "kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] "
                      "fp32_false_true: [ 0, 1 ]"),
         "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' "
         "and 'bool_false_true' for CONTROL_SEQUENCE_END for m"},
        {CONTROL("C", "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0 ]"),
         "expected two values, false and true"},
        {CONTROL("C", "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] "
                      "data_type: TYPE_INT32"),
         "only for CONTROL_SEQUENCE_CORRID"},
        {CONTROL("C", "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32"),
         "expected TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 or TYPE_STRING"},
        {CONTROL("C", "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32 "
                      "int32_false_true: [ 0, 1 ]"),
         "expected no values for false and true"},
        {"control_input { name: \"C\" }", "control input 'C': expected one 'control', found 0"},
        {CONTROL("", "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]"), "has no name"},
        {CONTROL("IN", "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]"),
         "control input 'IN' is also another input of the model"},
        {CONTROL("A", "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]")
             CONTROL("B", "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]"),
         "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for m: 'A' and 'B'"},
        {CONTROL("A", "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]")
             CONTROL("A", "kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ]"),
         "sequence batching control tensor 'A' is specified for multiple control kinds for m"},
        {STATE(""), "state 'SI': field 'dims' is missing"},
        {STATE("dims: [ 0 ]"), "expected dimensions above 0 or -1"},
        {STATE("dims: [ 1 ]") STATE("dims: [ 1 ]"), "state 'SI' is also another input"},
        {STATE("dims: [ 1 ] use_growable_memory: true"),
         "requires 'use_same_buffer_for_input_output'"},
        {STATE("dims: [ 2 ] initial_state { data_type: TYPE_INT32 dims: [ 3 ] zero_data: true }"),
         "expected 'dims' that match"},
        {STATE("dims: [ 2 ] initial_state { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true }"),
         "expected the 'data_type' of the state"},
        {STATE("dims: [ 2 ] initial_state { data_type: TYPE_INT32 dims: [ 2 ] }"),
         "expected 'zero_data: true' or 'data_file'"},
        {STATE("dims: [ 2 ] initial_state { data_type: TYPE_INT32 dims: [ 2 ] data_file: "
               "\"../x\" }"),
         "field 'data_file': expected a file name"},
        {"oldest { max_candidate_sequences: -1 }", "'max_candidate_sequences': expected 1 to"},
        {"oldest { preferred_batch_size: 9 }", "expected 1 to max_batch_size (8), found 9"},
        {"direct { minimum_slot_utilization: 1.5 }", "expected 0 to 1, found 1.5"},
        {"direct { } oldest { }", "exclude each other"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[2048];
        kelp_model_config *config = NULL;
        snprintf(text, sizeof text, HEAD "sequence_batching { %s }\n", rows[i][0]);
        kelp_status *status = parse(text, &config);
        assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
        if (strstr(kelp_status_message(status), rows[i][1]) == NULL)
            fail_msg("expected '%s' in: %s", rows[i][1], kelp_status_message(status));
        kelp_status_free(status);
    }
}

static void sequences_exclude_the_response_cache(void **state) {
    kelp_model_config *config = NULL;
    (void)state;
    kelp_status *status =
        parse(HEAD "sequence_batching { } response_cache { enable: true }", &config);
    assert_non_null(strstr(kelp_status_message(status), "response_cache cannot be enabled"));
    kelp_status_free(status);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_read),
        cmocka_unit_test(defaults_follow_the_batch_size),
        cmocka_unit_test(errors_name_the_input_and_the_field),
        cmocka_unit_test(sequences_exclude_the_response_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
