/* SPDX-License-Identifier: Apache-2.0 */
/* The batch policy, with a clock that the tests set: the documented semantics case by case, and a
 * comparison with a small executable model of them under random requests. */
#include "base/checked.h"
#include "base/clock.h"
#include "server/request/factory.h"
#include "server/scheduler/policy.h"

#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define IO                                                 \
    "input { name: \"X\" data_type: TYPE_FP32 dims: -1 } " \
    "output { name: \"Y\" data_type: TYPE_FP32 dims: -1 } "
#define MODEL "backend: \"x\" max_batch_size: 8 " IO

enum { MAX_REQUESTS = 600, US = 1000 };

/* ---- requests and policies ---- */

typedef struct fixture {
    kelp_model_config *config;
    kelp_policy *policy;
    kelp_model_base model;
    kelp_factory factories[MAX_REQUESTS];
    kelp_request requests[MAX_REQUESTS];
    kelp_input inputs[MAX_REQUESTS];
    kelp_input *input_lists[MAX_REQUESTS];
    kelp_request *taken[KELP_MAX_EXECUTION_REQUESTS];
} fixture;

static kelp_model_config *parse(const char *text) {
    const kelp_config_load_options options = {.model_name = "m"};
    kelp_model_config *config = NULL;
    kelp_status *status = kelp_model_config_parse(kelp_allocator_system(), &options, "config.pbtxt",
                                                  text, strlen(text), &config);
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
    return config;
}

static fixture *start(const char *text) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->config = parse(text);
    assert_null(kelp_batch_policy_create(kelp_allocator_system(), f->config, &f->policy));
    return f;
}

static kelp_request *request_of(fixture *f, size_t index, uint32_t batch_size, int64_t length) {
    kelp_request *request = &f->requests[index];
    kelp_input *input = &f->inputs[index];
    assert_true(index < MAX_REQUESTS);
    assert_null(kelp_text_set(kelp_allocator_system(), &input->name, "X"));
    input->rank = 2;
    input->shape[0] = batch_size;
    input->shape[1] = length;
    input->data.size_bytes = 4 * batch_size * (uint64_t)length;
    f->input_lists[index] = input;
    request->inputs = &f->input_lists[index];
    request->input_count = 1;
    request->factory = &f->factories[index];
    request->model = &f->model;
    request->batch_size = batch_size;
    return request;
}

static void cancel(fixture *f, size_t index) {
    atomic_store(&f->factories[index].cancelled, true);
    atomic_fetch_add(&f->model.cancellations, 1);
}

static kelp_status *try_push(fixture *f, kelp_request *request, uint64_t now_ns) {
    request->queue_start_ns = now_ns;
    request->deadline_ns = KELP_NEVER_NS;
    KELP_TRY(f->policy->ops->admit(f->policy, request));
    f->policy->ops->push(f->policy, request, now_ns);
    return NULL;
}

static void push(fixture *f, size_t index, uint32_t batch_size, uint64_t now_ns) {
    assert_null(try_push(f, request_of(f, index, batch_size, 4), now_ns));
}

static void push_with_priority(fixture *f, size_t index, uint64_t priority, uint64_t now_ns) {
    kelp_request *request = request_of(f, index, 1, 4);
    request->priority = priority;
    assert_null(try_push(f, request, now_ns));
}

static uint64_t ready_ns(const fixture *f) {
    return f->policy->ops->ready_at_ns(f->policy, NULL);
}

static uint32_t take(fixture *f, uint64_t now_ns) {
    return f->policy->ops->take(f->policy, NULL, true, now_ns, f->taken);
}

/* Takes the next execution and checks the indices of its requests. */
static void takes(fixture *f, uint64_t now_ns, size_t count, const size_t *expected) {
    assert_int_equal(take(f, now_ns), count);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(f->taken[i], &f->requests[expected[i]]);
}
#define TAKES(f, now_ns, ...)                                              \
    takes((f), (now_ns), sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t), \
          (const size_t[]){__VA_ARGS__})

static void stop(fixture *f) {
    assert_int_equal(f->policy->ops->size(f->policy), 0);
    f->policy->ops->destroy(f->policy);
    for (size_t i = 0; i < MAX_REQUESTS; i++)
        kelp_text_deinit(kelp_allocator_system(), &f->inputs[i].name);
    kelp_model_config_release(f->config);
    free(f);
}

static void is_full(fixture *f, kelp_request *request, uint64_t now_ns) {
    kelp_status *status = try_push(f, request, now_ns);
    assert_int_equal(kelp_status_code(status), KELP_UNAVAILABLE);
    assert_non_null(strstr(kelp_status_message(status), "Exceeds maximum queue size"));
    kelp_status_free(status);
}

/* ---- batches ---- */

static void test_default_scheduler_executes_single_requests(void **state) {
    fixture *f = start("backend: \"x\" max_batch_size: 8 " IO);
    (void)state;
    assert_true(f->policy->ops->bypass(f->policy, request_of(f, 0, 1, 4)));
    push(f, 0, 1, 0);
    push(f, 1, 1, 0);
    assert_false(f->policy->ops->bypass(f->policy, request_of(f, 2, 1, 4)));
    assert_int_equal(ready_ns(f), 0);
    TAKES(f, 0, 0);
    TAKES(f, 0, 1);
    assert_int_equal(take(f, 0), 0);
    stop(f);
}

static void test_without_delay_queued_requests_join(void **state) {
    fixture *f = start(MODEL "dynamic_batching { }");
    (void)state;
    assert_int_equal(ready_ns(f), KELP_NEVER_NS);
    for (size_t i = 0; i < 10; i++)
        push(f, i, 1, 0);
    assert_int_equal(ready_ns(f), 0);
    TAKES(f, 0, 0, 1, 2, 3, 4, 5, 6, 7);
    TAKES(f, 0, 8, 9);
    stop(f);
}

static void test_preferred_size_is_executed_at_once(void **state) {
    fixture *f = start(MODEL "dynamic_batching { preferred_batch_size: [ 4 ] "
                             "max_queue_delay_microseconds: 100 }");
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        push(f, i, 1, i * US);
        assert_int_equal(ready_ns(f), 100 * US); /* since the first request */
    }
    assert_int_equal(take(f, 100 * US - 1), 0);
    push(f, 3, 1, 50 * US);
    push(f, 4, 1, 50 * US);
    assert_int_equal(ready_ns(f), 0);
    TAKES(f, 50 * US, 0, 1, 2, 3);
    assert_int_equal(ready_ns(f), 150 * US);
    TAKES(f, 150 * US, 4);
    stop(f);
}

static void test_late_batch_exceeds_preferred_size(void **state) {
    fixture *f = start(MODEL "dynamic_batching { preferred_batch_size: [ 4 ] "
                             "max_queue_delay_microseconds: 100 }");
    (void)state;
    for (size_t i = 0; i < 6; i++)
        push(f, i, 1, 0);
    TAKES(f, 100 * US, 0, 1, 2, 3, 4, 5);
    stop(f);
}

/* Waking up a thread is a part of a delay of more than 110 us. */
static void test_delay_contains_the_wake_up(void **state) {
    static const unsigned delays_us[][2] = {{100, 100}, {110, 110}, {150, 110},
                                            {200, 110}, {201, 111}, {1000, 910}};
    (void)state;
    for (size_t i = 0; i < KELP_COUNT(delays_us); i++) {
        char text[512];
        snprintf(text, sizeof text, MODEL "dynamic_batching { max_queue_delay_microseconds: %u }",
                 delays_us[i][0]);
        fixture *f = start(text);
        push(f, 0, 1, 0);
        assert_int_equal(ready_ns(f), delays_us[i][1] * US);
        TAKES(f, delays_us[i][1] * US, 0);
        stop(f);
    }
}

static void test_batch_that_cannot_grow_does_not_wait(void **state) {
    fixture *f = start(MODEL "dynamic_batching { max_queue_delay_microseconds: 100 }");
    (void)state;
    push(f, 0, 5, 0);
    assert_int_equal(ready_ns(f), 100 * US);
    push(f, 1, 4, 0); /* 9 > max_batch_size */
    assert_int_equal(ready_ns(f), 0);
    TAKES(f, 0, 0);
    assert_int_equal(ready_ns(f), 100 * US);
    assert_null(try_push(f, request_of(f, 2, 1, 5), 0)); /* another shape */
    assert_int_equal(ready_ns(f), 0);
    TAKES(f, 0, 1);
    TAKES(f, 100 * US, 2);
    stop(f);
}

static void test_ragged_inputs_join(void **state) {
    fixture *f = start("backend: \"x\" max_batch_size: 8 "
                       "input { name: \"X\" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true "
                       "} output { name: \"Y\" data_type: TYPE_FP32 dims: -1 } "
                       "dynamic_batching { }");
    (void)state;
    assert_null(try_push(f, request_of(f, 0, 1, 4), 0));
    assert_null(try_push(f, request_of(f, 1, 1, 5), 0));
    TAKES(f, 0, 0, 1);
    stop(f);
}

static void test_requests_with_the_same_optional_inputs_join(void **state) {
    fixture *f = start("backend: \"x\" max_batch_size: 8 "
                       "input { name: \"X\" data_type: TYPE_FP32 dims: 4 optional: true } "
                       "output { name: \"Y\" data_type: TYPE_FP32 dims: -1 } dynamic_batching { }");
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        kelp_request *request = request_of(f, i, 1, 4);
        request->input_count = i >= 2;
        assert_null(try_push(f, request, 0));
    }
    TAKES(f, 0, 0, 1);
    TAKES(f, 0, 2, 3);
    stop(f);
}

static void test_shape_tensors_are_compared(void **state) {
    static const int32_t contents[4] = {3, 3, 3, 5};
    static const size_t parts[4] = {1, 2, 1, 1};
    fixture *f = start("backend: \"x\" max_batch_size: 8 "
                       "input { name: \"X\" data_type: TYPE_INT32 dims: 1 is_shape_tensor: true } "
                       "output { name: \"Y\" data_type: TYPE_FP32 dims: -1 } dynamic_batching { }");
    kelp_data_block blocks[4][2];
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        kelp_request *request = request_of(f, i, 1, 1);
        size_t first = parts[i] == 2 ? 1 : 4; /* the same bytes, divided differently */
        request->inputs[0]->rank = 1;
        blocks[i][0] = (kelp_data_block){&contents[i], {.size_bytes = first}};
        blocks[i][1] = (kelp_data_block){(const char *)&contents[i] + first, {.size_bytes = 3}};
        request->inputs[0]->data = (kelp_data){blocks[i], parts[i], 2, 4};
        assert_null(try_push(f, request, 0));
    }
    TAKES(f, 0, 0, 1, 2);
    TAKES(f, 0, 3);
    stop(f);
}

static void test_scheduler_waits_for_configured_number_of_requests(void **state) {
    (void)state;
    setenv("TRITONSERVER_DELAY_SCHEDULER", "3", 1);
    fixture *f = start(MODEL "dynamic_batching { }");
    fixture *other = start(MODEL);
    unsetenv("TRITONSERVER_DELAY_SCHEDULER");
    push(f, 0, 1, 0);
    push(f, 1, 1, 0);
    assert_int_equal(take(f, 1000 * US), 0);
    push(f, 2, 1, 0);
    TAKES(f, 0, 0, 1, 2);
    push(f, 3, 1, 0); /* only the first execution waits */
    TAKES(f, 0, 3);
    push(other, 0, 1, 0);
    TAKES(other, 0, 0);
    stop(f);
    stop(other);
}

/* ---- priorities ---- */

static void test_priority_levels_order_requests(void **state) {
    fixture *f = start(MODEL "dynamic_batching { preferred_batch_size: 2 priority_levels: 3 "
                             "default_priority_level: 2 }");
    (void)state;
    push_with_priority(f, 0, 3, 0);
    push_with_priority(f, 1, 0, 0); /* the default level */
    push_with_priority(f, 2, 9, 0); /* not a level */
    push_with_priority(f, 3, 1, 0);
    TAKES(f, 0, 3, 1);
    TAKES(f, 0, 2, 0);
    stop(f);
}

/* The urgent request forms a preferred size with the first one, although a third one is queued. */
static void test_urgent_request_completes_a_preferred_size(void **state) {
    fixture *f = start(MODEL "dynamic_batching { preferred_batch_size: [ 4, 8 ] "
                             "max_queue_delay_microseconds: 10000000 "
                             "priority_levels: 2 default_priority_level: 2 }");
    (void)state;
    push(f, 0, 2, 0);
    push(f, 1, 1, 100000 * US);
    assert_true(ready_ns(f) > (uint64_t)9000000 * US);
    kelp_request *urgent = request_of(f, 2, 2, 4);
    urgent->priority = 1;
    assert_null(try_push(f, urgent, 300000 * US));
    assert_int_equal(ready_ns(f), 0);
    TAKES(f, 300000 * US, 2, 0);
    TAKES(f, (uint64_t)20000000 * US, 1);
    stop(f);
}

static void test_any_number_of_priority_levels(void **state) {
    static const uint64_t most = UINT64_MAX;
    fixture *f = start(MODEL "dynamic_batching { preferred_batch_size: 2 "
                             "priority_levels: 18446744073709551615 "
                             "default_priority_level: 4294967296 }");
    (void)state;
    push_with_priority(f, 0, most, 0);
    push_with_priority(f, 1, 0, 0); /* the default level */
    push_with_priority(f, 2, (uint64_t)UINT32_MAX + 2, 0);
    push_with_priority(f, 3, 1, 0);
    TAKES(f, 0, 3, 1);
    TAKES(f, 0, 2, 0);
    stop(f);
}

static void test_queues_of_some_of_many_levels_are_limited(void **state) {
    fixture *f =
        start(MODEL "dynamic_batching { preferred_batch_size: 4 "
                    "priority_levels: 18446744073709551615 default_priority_level: 4294967295 "
                    "priority_queue_policy { key: 4294967296 value { max_queue_size: 1 } } "
                    "priority_queue_policy { key: 7 value { max_queue_size: 2 } } }");
    const uint64_t limited = (uint64_t)UINT32_MAX + 1;
    (void)state;
    push_with_priority(f, 0, limited, 0);
    kelp_request *second = request_of(f, 1, 1, 4);
    second->priority = limited;
    is_full(f, second, 0);
    for (size_t i = 1; i < 4; i++)
        push_with_priority(f, i, 0, 0);
    TAKES(f, 0, 1, 2, 3, 0);
    push_with_priority(f, 0, limited, 0);
    TAKES(f, 0, 0);
    stop(f);
}

static void test_urgent_request_changes_the_next_batch(void **state) {
    fixture *f = start(MODEL "dynamic_batching { max_queue_delay_microseconds: 100 "
                             "priority_levels: 2 default_priority_level: 2 }");
    (void)state;
    push(f, 0, 5, 0);
    push(f, 1, 5, 10 * US);
    assert_int_equal(ready_ns(f), 0); /* 0 cannot grow */
    kelp_request *urgent = request_of(f, 2, 3, 4);
    urgent->priority = 1;
    assert_null(try_push(f, urgent, 20 * US));
    assert_int_equal(ready_ns(f), 0);
    TAKES(f, 20 * US, 2, 0);
    assert_int_equal(ready_ns(f), 110 * US);
    TAKES(f, 110 * US, 1);
    stop(f);
}

static void test_each_level_has_its_limits(void **state) {
    fixture *f = start(MODEL "dynamic_batching { priority_levels: 2 default_priority_level: 2 "
                             "default_queue_policy { max_queue_size: 2 } "
                             "priority_queue_policy { key: 1 value { max_queue_size: 1 } } }");
    (void)state;
    push_with_priority(f, 0, 1, 0);
    kelp_request *urgent = request_of(f, 1, 1, 4);
    urgent->priority = 1;
    is_full(f, urgent, 0);
    push_with_priority(f, 2, 2, 0);
    push_with_priority(f, 3, 2, 0);
    is_full(f, request_of(f, 4, 1, 4), 0);
    TAKES(f, 0, 0, 2, 3);
    push_with_priority(f, 1, 1, 0);
    TAKES(f, 0, 1);
    stop(f);
}

/* ---- timeouts, cancellation, limits ---- */

static void test_timeouts_reject_or_delay(void **state) {
    fixture *f =
        start(MODEL "dynamic_batching { priority_levels: 2 default_priority_level: 2 "
                    "preferred_batch_size: 1 default_queue_policy { default_timeout_microseconds: "
                    "100 allow_timeout_override: true } priority_queue_policy { key: 1 value { "
                    "timeout_action: DELAY default_timeout_microseconds: 50 } } }");
    (void)state;
    kelp_request *shorter = request_of(f, 0, 1, 4), *longer = request_of(f, 1, 1, 4);
    shorter->timeout_us = 10;
    longer->timeout_us = 1000; /* an override only shortens */
    assert_null(try_push(f, shorter, 0));
    assert_null(try_push(f, longer, 0));
    push_with_priority(f, 2, 1, 0);
    assert_int_equal(shorter->deadline_ns, 10 * US);
    assert_int_equal(longer->deadline_ns, 100 * US);
    assert_int_equal(f->policy->ops->expires_at_ns(f->policy), 10 * US);
    assert_ptr_equal(f->policy->ops->expire(f->policy, 10 * US), shorter);
    assert_null(shorter->next);
    assert_int_equal(f->policy->ops->expires_at_ns(f->policy), 50 * US);
    assert_null(f->policy->ops->expire(f->policy, 50 * US)); /* 2 is delayed */
    push_with_priority(f, 3, 1, 60 * US);
    TAKES(f, 60 * US, 3); /* of its level, 2 is the last one */
    TAKES(f, 60 * US, 2);
    assert_int_equal(take(f, 100 * US), 1); /* the pool rejects it */
    assert_true(kelp_request_queue_is_dead(f->taken[0], 100 * US));
    stop(f);
}

static void test_dead_requests_do_not_count_in_a_batch(void **state) {
    fixture *f = start(MODEL "dynamic_batching { preferred_batch_size: 3 "
                             "max_queue_delay_microseconds: 100 }");
    (void)state;
    for (size_t i = 0; i < 3; i++)
        push(f, i, 1, 0);
    cancel(f, 1);
    assert_int_equal(ready_ns(f), 0);
    TAKES(f, 0, 1); /* the pool rejects it; the others wait for a third one */
    assert_int_equal(ready_ns(f), 100 * US);
    push(f, 3, 1, 10 * US);
    TAKES(f, 10 * US, 0, 2, 3);
    stop(f);
}

static void test_full_queue_drops_requests_that_are_over(void **state) {
    fixture *f = start("backend: \"x\" parameters { key: \"kelp_max_queue_size\" value { "
                       "string_value: \"3\" } } parameters { key: \"kelp_queue_timeout_us\" value "
                       "{ string_value: \"100\" } } " IO);
    (void)state;
    for (size_t i = 0; i < 3; i++)
        push(f, i, 1, i * 50 * US);
    is_full(f, request_of(f, 3, 1, 4), 100 * US);
    cancel(f, 2);
    kelp_request *over = f->policy->ops->expire(f->policy, 100 * US);
    assert_ptr_equal(over, &f->requests[0]);
    assert_ptr_equal(over->next, &f->requests[2]);
    push(f, 3, 1, 100 * US);
    push(f, 4, 1, 100 * US);
    TAKES(f, 100 * US, 1);
    TAKES(f, 100 * US, 3);
    TAKES(f, 100 * US, 4);
    stop(f);
}

static void test_bytes_of_inputs_are_limited(void **state) {
    fixture *f = start("backend: \"x\" parameters { key: \"kelp_max_queue_bytes\" value { "
                       "string_value: \"40\" } } " IO);
    (void)state;
    push(f, 0, 16, 0); /* an empty queue takes one request of any size */
    is_full(f, request_of(f, 1, 1, 4), 0);
    TAKES(f, 0, 0);
    push(f, 1, 1, 0);
    push(f, 2, 1, 0);
    is_full(f, request_of(f, 3, 1, 4), 0);
    TAKES(f, 0, 1);
    TAKES(f, 0, 2);
    stop(f);
}

static void test_wrong_settings_are_rejected(void **state) {
    static const char *const rows[][2] = {
        {"parameters { key: \"kelp_max_queue_size\" value { string_value: \"many\" } }",
         "parameter 'kelp_max_queue_size': expected a number from 0 to 4294967295, found 'many'"},
        {"parameters { key: \"kelp_max_queue_bytes\" value { string_value: \"-1\" } }",
         "parameter 'kelp_max_queue_bytes'"},
        {"parameters { key: \"kelp_queue_timeout_us\" value { string_value: \"5\" } } "
         "dynamic_batching { }",
         "default_timeout_microseconds"},
        {"dynamic_batching { priority_levels: 99999999 default_priority_level: 1 "
         "default_queue_policy { max_queue_size: 1 } }",
         "field 'priority_levels': expected at most 1048576 with max_queue_size in "
         "default_queue_policy, found 99999999"},
    };
    char text[512];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(text, sizeof text, MODEL "%s", rows[i][0]);
        kelp_model_config *config = parse(text);
        kelp_policy *policy = NULL;
        kelp_status *status = kelp_batch_policy_create(kelp_allocator_system(), config, &policy);
        assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
        if (strstr(kelp_status_message(status), rows[i][1]) == NULL)
            fail_msg("%s", kelp_status_message(status));
        kelp_status_free(status);
        kelp_model_config_release(config);
    }
}

static void test_every_allocation_may_fail(void **state) {
    kelp_model_config *config =
        parse(MODEL "dynamic_batching { preferred_batch_size: [ 4, 2 ] priority_levels: 2 "
                    "default_priority_level: 1 default_queue_policy { max_queue_size: 2 } "
                    "priority_queue_policy { key: 1 value { max_queue_size: 1 } } }");
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        kelp_policy *policy = NULL;
        test_failing_init(&memory, n);
        kelp_status *status =
            kelp_batch_policy_create(test_failing_allocator(&memory), config, &policy);
        if (status == NULL)
            policy->ops->destroy(policy);
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        assert_int_equal(status != NULL, failed);
        kelp_status_free(status);
        if (!failed)
            break;
    }
    kelp_model_config_release(config);
}

/* ---- the executable model ---- */

enum { SECOND_LEVEL = 2, MODEL_MAX_BATCH = 8 };

typedef struct model_request {
    size_t index;
    uint64_t level, place; /* place: of arrival, or later of the move to the end of its level */
    bool moved;
    uint64_t queued_ns, timeout_ns; /* timeout_ns: KELP_NEVER_NS if none */
    bool delays;                    /* at timeout_ns; otherwise it is rejected */
    uint32_t size;
    int64_t length;
} model_request;

/* The semantics: plain lists that are searched from the start each time. */
typedef struct model {
    fixture *f;
    uint32_t preferred[2];
    size_t preferred_count;
    uint64_t delay_ns;
    model_request queue[MAX_REQUESTS];
    size_t count;
    uint64_t places;
} model;

static bool model_before(const model_request *a, const model_request *b) {
    if (a->level != b->level)
        return a->level < b->level;
    if (a->moved != b->moved)
        return b->moved;
    return a->place < b->place;
}

static void model_sort(model *m) {
    for (size_t i = 1; i < m->count; i++)
        for (size_t k = i; k > 0 && model_before(&m->queue[k], &m->queue[k - 1]); k--) {
            model_request moved = m->queue[k];
            m->queue[k] = m->queue[k - 1];
            m->queue[k - 1] = moved;
        }
}

static void model_remove(model *m, size_t at) {
    memmove(&m->queue[at], &m->queue[at + 1], (--m->count - at) * sizeof *m->queue);
}

/* Moves requests whose timeout delays them, in the order of the timeouts. */
static void model_delay(model *m, uint64_t now_ns) {
    for (;;) {
        model_request *first = NULL;
        for (size_t i = 0; i < m->count; i++) {
            model_request *at = &m->queue[i];
            if (at->delays && at->timeout_ns <= now_ns &&
                (first == NULL || at->timeout_ns < first->timeout_ns ||
                 (at->timeout_ns == first->timeout_ns && at->place < first->place)))
                first = at;
        }
        if (first == NULL)
            break;
        first->timeout_ns = KELP_NEVER_NS;
        first->moved = true;
        first->place = m->places++;
    }
    model_sort(m);
}

static bool model_is_dead(const model *m, const model_request *at, uint64_t now_ns) {
    return (!at->delays && at->timeout_ns <= now_ns) ||
           atomic_load(&m->f->factories[at->index].cancelled);
}

/* Returns the number of requests of the next execution, and of all that fit together. */
static size_t model_form(const model *m, uint64_t now_ns, size_t *out_fit, uint64_t *out_ready) {
    size_t fit = 0, best = 0;
    uint32_t size = 0, largest = m->preferred[m->preferred_count - 1];
    uint64_t oldest_ns = KELP_NEVER_NS;
    bool blocked = false;
    for (size_t i = 0; i < m->count && !blocked; i++) {
        const model_request *at = &m->queue[i];
        if (i > 0 && size + at->size > largest && best == 0)
            best = i;
        blocked = i > 0 && (size + at->size > MODEL_MAX_BATCH || at->length != m->queue[0].length);
        if (blocked)
            break;
        size += at->size;
        fit++;
        oldest_ns = at->queued_ns < oldest_ns ? at->queued_ns : oldest_ns;
        for (size_t k = 0; k < m->preferred_count; k++)
            if (size == m->preferred[k])
                best = fit;
    }
    bool late = m->delay_ns > 0 && fit > 0 && now_ns >= oldest_ns + m->delay_ns;
    bool now = best > 0 || blocked || m->delay_ns == 0 || size >= largest;
    *out_fit = fit;
    *out_ready = fit == 0 ? KELP_NEVER_NS : now ? 0 : oldest_ns + m->delay_ns;
    return best > 0 && !late ? best : fit;
}

/* Moves what `take` must return to `out`, by index: dead requests first, of which the first
 * `*out_dead` may have any order. */
static size_t model_take(model *m, uint64_t now_ns, size_t *out, size_t *out_dead) {
    size_t fit, count = 0;
    uint64_t ready;
    model_delay(m, now_ns);
    for (bool again = true; again;) {
        again = false;
        (void)model_form(m, now_ns, &fit, &ready);
        for (size_t i = 0, at = 0; i < fit; i++) {
            if (!model_is_dead(m, &m->queue[at], now_ns)) {
                at++;
                continue;
            }
            out[count++] = m->queue[at].index;
            model_remove(m, at);
            again = true;
        }
    }
    *out_dead = count;
    size_t next = model_form(m, now_ns, &fit, &ready);
    for (size_t i = 0; ready <= now_ns && i < next; i++) {
        out[count++] = m->queue[0].index;
        model_remove(m, 0);
    }
    return count;
}

/* ---- random requests ---- */

static uint32_t random_below(uint64_t *seed, uint32_t bound) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % bound;
}

static const char random_config[] =
    MODEL "dynamic_batching { %s max_queue_delay_microseconds: %u priority_levels: 2 "
          "default_priority_level: 2 default_queue_policy { timeout_action: %s "
          "default_timeout_microseconds: 300 allow_timeout_override: true max_queue_size: 40 } "
          "priority_queue_policy { key: 1 value { timeout_action: %s "
          "default_timeout_microseconds: 200 allow_timeout_override: true max_queue_size: 30 } } }";

typedef struct play {
    model m;
    uint64_t seed, now_ns;
    size_t next_index;
    bool delays[SECOND_LEVEL + 1];
    bool left[MAX_REQUESTS]; /* the request was returned */
} play;

static void play_push(play *p) {
    fixture *f = p->m.f;
    size_t index = p->next_index;
    if (index == MAX_REQUESTS)
        return;
    p->next_index++;
    kelp_request *request = request_of(f, index, 1 + random_below(&p->seed, 4) / 2,
                                       4 + (random_below(&p->seed, 8) == 0));
    request->priority = random_below(&p->seed, 4);
    request->timeout_us = random_below(&p->seed, 3) == 0 ? random_below(&p->seed, 400) : 0;
    uint64_t level = request->priority == 1 ? 1 : 2, limit_us = level == 1 ? 200 : 300;
    if (request->timeout_us > 0 && request->timeout_us < limit_us)
        limit_us = request->timeout_us;
    size_t of_level = 0;
    for (size_t i = 0; i < p->m.count; i++)
        of_level += p->m.queue[i].level == level;
    if (of_level >= (level == 1 ? 30 : 40)) {
        is_full(f, request, p->now_ns);
        p->left[index] = true;
        return;
    }
    assert_null(try_push(f, request, p->now_ns));
    p->m.queue[p->m.count++] = (model_request){.index = index,
                                               .level = level,
                                               .place = p->m.places++,
                                               .queued_ns = p->now_ns,
                                               .timeout_ns = p->now_ns + limit_us * US,
                                               .delays = p->delays[level],
                                               .size = request->batch_size,
                                               .length = request->inputs[0]->shape[1]};
    model_sort(&p->m);
}

static void leave(play *p, const kelp_request *request) {
    size_t index = (size_t)(request - p->m.f->requests);
    assert_false(p->left[index]); /* exactly once */
    p->left[index] = true;
}

static void play_take(play *p) {
    size_t expected[MAX_REQUESTS], dead = 0;
    uint32_t count = take(p->m.f, p->now_ns), size = 0;
    assert_int_equal(count, model_take(&p->m, p->now_ns, expected, &dead));
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(p->m.f->taken[i] - p->m.f->requests, expected[i]);
        leave(p, p->m.f->taken[i]);
        size += i >= dead ? p->m.f->taken[i]->batch_size : 0;
    }
    assert_true(size <= MODEL_MAX_BATCH);
}

static void play_expire(play *p) {
    kelp_request *list = p->m.f->policy->ops->expire(p->m.f->policy, p->now_ns), *next;
    model_delay(&p->m, p->now_ns);
    for (; list != NULL; list = next) {
        next = list->next;
        leave(p, list);
    }
    for (size_t i = p->m.count; i-- > 0;) {
        if (!model_is_dead(&p->m, &p->m.queue[i], p->now_ns))
            continue;
        assert_true(p->left[p->m.queue[i].index]);
        model_remove(&p->m, i);
    }
}

static void play_step(play *p) {
    size_t fit;
    uint64_t ready;
    uint32_t action = random_below(&p->seed, 20);
    p->now_ns += random_below(&p->seed, 4) * 10 * US;
    if (action < 11)
        play_push(p);
    else if (action < 13 && p->m.count > 0)
        cancel(p->m.f, p->m.queue[random_below(&p->seed, (uint32_t)p->m.count)].index);
    else if (action < 15)
        play_expire(p);
    else
        play_take(p);
    assert_int_equal(p->m.f->policy->ops->size(p->m.f->policy), p->m.count);
    (void)model_form(&p->m, p->now_ns, &fit, &ready);
    assert_int_equal(ready_ns(p->m.f), ready);
}

static void compare_with_model(uint64_t seed) {
    static const char *const preferred[] = {"", "preferred_batch_size: 4",
                                            "preferred_batch_size: [ 3, 6 ]"};
    static const uint32_t sizes[][2] = {{8, 0}, {4, 0}, {3, 6}};
    static const char *const actions[] = {"REJECT", "DELAY"};
    play *p = calloc(1, sizeof *p);
    char text[1024];
    assert_non_null(p);
    p->seed = seed;
    uint32_t kind = random_below(&p->seed, 3), delay_us = random_below(&p->seed, 3) * 50;
    for (size_t level = 1; level <= SECOND_LEVEL; level++)
        p->delays[level] = random_below(&p->seed, 2);
    snprintf(text, sizeof text, random_config, preferred[kind], delay_us, actions[p->delays[2]],
             actions[p->delays[1]]);
    p->m.f = start(text);
    memcpy(p->m.preferred, sizes[kind], sizeof p->m.preferred);
    p->m.preferred_count = kind == 2 ? 2 : 1;
    p->m.delay_ns = delay_us * (uint64_t)US;
    for (size_t i = 0; i < 1000; i++)
        play_step(p);
    p->now_ns += 1000 * US;
    while (p->m.count > 0)
        play_take(p);
    for (size_t i = 0; i < p->next_index; i++)
        assert_true(p->left[i]);
    stop(p->m.f);
    free(p);
}

static void test_policy_equals_the_model(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++)
        compare_with_model(seed);
}

/* Takes time in proportion to the number of requests, also with a different timeout for each. */
static void test_many_different_timeouts(void **state) {
    enum { COUNT = 100000 };
    fixture *f = start("backend: \"x\" parameters { key: \"kelp_queue_timeout_us\" value { "
                       "string_value: \"1000000000\" } } parameters { key: \"kelp_max_queue_size\" "
                       "value { string_value: \"0\" } } " IO);
    kelp_request *requests = calloc(COUNT, sizeof *requests);
    uint64_t seed = 7, last_ns = 0;
    (void)state;
    assert_non_null(requests);
    for (size_t i = 0; i < COUNT; i++) {
        requests[i].factory = &f->factories[0];
        requests[i].model = &f->model;
        requests[i].batch_size = 1;
        requests[i].timeout_us = 1 + random_below(&seed, 1000000);
        assert_null(try_push(f, &requests[i], 0));
    }
    for (size_t i = 0; i < COUNT;) {
        uint64_t time_ns = f->policy->ops->expires_at_ns(f->policy);
        assert_true(time_ns > last_ns);
        last_ns = time_ns;
        for (kelp_request *at = f->policy->ops->expire(f->policy, time_ns); at != NULL; i++) {
            assert_int_equal(at->deadline_ns, time_ns);
            at = at->next;
        }
    }
    free(requests);
    stop(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_scheduler_executes_single_requests),
        cmocka_unit_test(test_without_delay_queued_requests_join),
        cmocka_unit_test(test_preferred_size_is_executed_at_once),
        cmocka_unit_test(test_late_batch_exceeds_preferred_size),
        cmocka_unit_test(test_delay_contains_the_wake_up),
        cmocka_unit_test(test_batch_that_cannot_grow_does_not_wait),
        cmocka_unit_test(test_ragged_inputs_join),
        cmocka_unit_test(test_requests_with_the_same_optional_inputs_join),
        cmocka_unit_test(test_shape_tensors_are_compared),
        cmocka_unit_test(test_scheduler_waits_for_configured_number_of_requests),
        cmocka_unit_test(test_priority_levels_order_requests),
        cmocka_unit_test(test_urgent_request_completes_a_preferred_size),
        cmocka_unit_test(test_any_number_of_priority_levels),
        cmocka_unit_test(test_queues_of_some_of_many_levels_are_limited),
        cmocka_unit_test(test_urgent_request_changes_the_next_batch),
        cmocka_unit_test(test_each_level_has_its_limits),
        cmocka_unit_test(test_timeouts_reject_or_delay),
        cmocka_unit_test(test_dead_requests_do_not_count_in_a_batch),
        cmocka_unit_test(test_full_queue_drops_requests_that_are_over),
        cmocka_unit_test(test_bytes_of_inputs_are_limited),
        cmocka_unit_test(test_wrong_settings_are_rejected),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_policy_equals_the_model),
        cmocka_unit_test(test_many_different_timeouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
