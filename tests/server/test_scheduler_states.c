/* SPDX-License-Identifier: Apache-2.0 */
/* The values of implicit states. */
#include "server/request/states.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    kelp_model_config *config;
    kelp_sequence_states states;
} fixture;

static const kelp_initial_state zeros[2];

static void open_states(fixture *f, const char *more) {
    static const char head[] = "backend: \"x\" max_batch_size: 4 input { name: \"IN\" data_type: "
                               "TYPE_FP32 dims: 1 } sequence_batching { state [ { input_name: "
                               "\"B\" output_name: \"A_OUT\" data_type: TYPE_INT32 dims: [ -1 ] ";
    static const char second[] = " }, { input_name: \"A\" output_name: \"B_OUT\" data_type: "
                                 "TYPE_STRING dims: [ 2 ] } ] }";
    const kelp_config_load_options options = {.model_name = "m"};
    char text[1024];
    strcpy(text, head);
    strcat(strcat(text, more), second);
    kelp_status *status = kelp_model_config_parse(kelp_allocator_system(), &options, "config.pbtxt",
                                                  text, strlen(text), &f->config);
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
    assert_null(
        kelp_sequence_states_init(&f->states, kelp_allocator_system(), f->config->sequence));
    assert_null(kelp_sequence_states_reset(&f->states, zeros, true));
    f->states.in_use = true; /* a request executes */
}

static void close_states(fixture *f) {
    kelp_sequence_states_deinit(&f->states);
    kelp_model_config_release(f->config);
}

static void fails(kelp_status *status, kelp_code code, const char *part) {
    assert_int_equal(kelp_status_code(status), code);
    if (strstr(kelp_status_message(status), part) == NULL)
        fail_msg("expected '%s' in: %s", part, kelp_status_message(status));
    kelp_status_free(status);
}

/* Returns the current value. */
static const void *value_of(const kelp_state *state) {
    return state->buffers[state->current].data;
}

static void put(kelp_state *state, const int32_t *values, int64_t count) {
    const int64_t shape[] = {1, count};
    void *data = NULL;
    assert_null(kelp_state_begin(state, TRITONSERVER_TYPE_INT32, shape, 2));
    assert_null(kelp_state_memory(state, (uint64_t)count * sizeof *values, &data));
    memcpy(data, values, (size_t)count * sizeof *values);
    assert_null(kelp_state_update(state));
}

static void inputs_and_outputs_are_paired_by_entry(void **state) {
    fixture f;
    (void)state;
    open_states(&f, "");
    assert_string_equal(kelp_sequence_states_find(&f.states, "A_OUT")->config->input_name, "B");
    assert_string_equal(kelp_sequence_states_find(&f.states, "B_OUT")->config->input_name, "A");
    assert_null(kelp_sequence_states_find(&f.states, "B"));
    close_states(&f);
}

static void states_begin_with_zeros(void **state) {
    static const unsigned char expected[8];
    fixture f;
    (void)state;
    open_states(&f, "");
    const kelp_state *numbers = &f.states.items[0], *strings = &f.states.items[1];
    assert_int_equal(numbers->tensor.rank, 2);
    assert_int_equal(numbers->tensor.shape[1], 1); /* dynamic */
    assert_int_equal(numbers->tensor.size_bytes, 4);
    assert_memory_equal(value_of(numbers), expected, 4);
    assert_int_equal(strings->tensor.size_bytes, 8); /* two empty strings */
    assert_memory_equal(value_of(strings), expected, 8);
    close_states(&f);
}

static void values_replace_each_other(void **state) {
    static const int32_t first[] = {1, 2, 3}, second[] = {4};
    fixture f;
    (void)state;
    open_states(&f, "");
    kelp_state *s = &f.states.items[0];
    put(s, first, 3);
    assert_int_equal(s->tensor.shape[1], 3);
    assert_memory_equal(value_of(s), first, sizeof first);
    put(s, second, 1);
    assert_int_equal(s->tensor.size_bytes, 4);
    assert_memory_equal(value_of(s), second, sizeof second);
    assert_null(kelp_sequence_states_reset(&f.states, zeros, true));
    assert_int_equal(*(const int32_t *)value_of(s), 0); /* of the next sequence */
    close_states(&f);
}

static void values_that_are_not_stored_are_lost(void **state) {
    static const int32_t first[] = {1, 2, 3};
    const int64_t shape[] = {1, 1};
    fixture f;
    void *data = NULL;
    (void)state;
    open_states(&f, "");
    kelp_state *s = &f.states.items[0];
    put(s, first, 3);
    assert_null(kelp_state_begin(s, TRITONSERVER_TYPE_INT32, shape, 2));
    assert_null(kelp_state_memory(s, 4, &data));
    memset(data, 0xff, 4);
    assert_int_equal(s->tensor.shape[1], 3);
    assert_memory_equal(value_of(s), first, sizeof first);
    close_states(&f);
}

static void same_buffers_grow_with_their_contents(void **state) {
    static const int32_t first[] = {1, 2, 3};
    const int64_t shape[] = {1, 5}, large[] = {1, 10};
    fixture f;
    void *data = NULL;
    (void)state;
    open_states(&f, "use_same_buffer_for_input_output: true use_growable_memory: true");
    kelp_state *s = &f.states.items[0];
    put(s, first, 3);
    const void *before = value_of(s);
    assert_null(kelp_state_begin(s, TRITONSERVER_TYPE_INT32, shape, 2));
    assert_null(kelp_state_memory(s, 20, &data)); /* within twice the size */
    assert_ptr_equal(data, before);
    assert_memory_equal(data, first, sizeof first);
    assert_null(kelp_state_update(s));
    assert_int_equal(s->tensor.size_bytes, 20);
    assert_null(kelp_state_begin(s, TRITONSERVER_TYPE_INT32, large, 2));
    assert_null(kelp_state_memory(s, 40, &data));
    assert_ptr_not_equal(data, before);
    assert_memory_equal(data, first, sizeof first);
    assert_memory_equal(before, first, sizeof first); /* the request may still read it */
    close_states(&f);
}

static void unusual_calls_fail(void **state) {
    const int64_t shape[KELP_SERVER_MAX_RANK + 1] = {1};
    fixture f;
    void *data = NULL;
    (void)state;
    open_states(&f, "");
    kelp_state *s = &f.states.items[0];
    fails(kelp_state_update(s), KELP_INTERNAL, "it was updated before");
    fails(kelp_state_memory(s, 1, &data), KELP_INTERNAL, "it was updated before");
    fails(kelp_state_begin(s, TRITONSERVER_TYPE_FP32, shape, 1), KELP_INVALID_ARGUMENT,
          "state 'A_OUT' has type FP32: the configuration declares INT32");
    fails(kelp_state_begin(s, TRITONSERVER_TYPE_INT32, shape, KELP_SERVER_MAX_RANK + 1),
          KELP_INVALID_ARGUMENT, "expected at most");
    assert_null(kelp_state_begin(s, TRITONSERVER_TYPE_INT32, shape, 1));
    assert_null(kelp_state_memory(s, 0, &data)); /* an empty value has a buffer, too */
    assert_non_null(data);
    f.states.in_use = false;
    fails(kelp_state_update(s), KELP_INTERNAL, "its request was released");
    close_states(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_and_outputs_are_paired_by_entry),
        cmocka_unit_test(states_begin_with_zeros),
        cmocka_unit_test(values_replace_each_other),
        cmocka_unit_test(values_that_are_not_stored_are_lost),
        cmocka_unit_test(same_buffers_grow_with_their_contents),
        cmocka_unit_test(unusual_calls_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
