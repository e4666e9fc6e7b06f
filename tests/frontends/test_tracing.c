/* SPDX-License-Identifier: Apache-2.0 */
/* Trace settings and records without a server. */
#include "frontends/trace/tracing.h"
#include "support/failing_allocator.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/kelp-tracing-XXXXXX";
static char path[64];
static const kelp_logger silent = {0};

static const kelp_trace_values always = {
    .level = TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, .rate = 1, .count = -1};

static kelp_status *update(kelp_tracing *tracing, const char *name, const char *value) {
    kelp_str text = kelp_str_from(value);
    kelp_trace_change change = {
        .name = kelp_str_from(name), .reset = value == NULL, .values = &text, .count = 1};
    return kelp_tracing_update(tracing, "", &change, 1);
}

static kelp_status *create(kelp_allocator allocator, const char *file,
                           const kelp_trace_values *values, kelp_tracing **out) {
    const kelp_tracing_options options = {.values = *values, .file = file};
    return kelp_tracing_create(allocator, NULL, &silent, &options, out);
}

/* Samples a request that is not submitted. Returns true if it was traced. */
static bool trace_one(kelp_tracing *tracing) {
    const kelp_trace_origin origin = {.model = "model"};
    kelp_trace_record *record = kelp_tracing_sample(tracing, &origin);
    kelp_trace_stamp(record, "TEST");
    kelp_trace_record_release(record);
    return record != NULL;
}

static void read_file(const char *suffix, char *text, size_t size) {
    char name[96];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    FILE *file = fopen(name, "r");
    if (file == NULL)
        fail_msg("%s does not exist", name);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
    assert_int_equal(unlink(name), 0);
}

static unsigned count_of(const char *text, const char *word) {
    unsigned count = 0;
    for (text = strstr(text, word); text != NULL; text = strstr(text + 1, word))
        count++;
    return count;
}

static void requests_are_sampled_by_rate_and_count(void **state) {
    (void)state;
    kelp_tracing *tracing = NULL;
    kelp_trace_values values = always;
    char text[4096];
    values.rate = 3;
    values.count = 2;
    assert_null(create(kelp_allocator_system(), path, &values, &tracing));
    unsigned traced = 0;
    for (int i = 0; i < 20; i++)
        traced += trace_one(tracing) ? 1 : 0;
    assert_int_equal(traced, 2);
    assert_null(kelp_tracing_get(tracing, "", &values));
    assert_int_equal(values.count, 0);
    kelp_tracing_destroy(tracing);
    read_file(".0", text, sizeof text); /* written after the last trace */
    assert_int_equal(count_of(text, "\"TEST\""), 2);
    assert_int_equal(text[0], '[');
    assert_int_equal(text[strlen(text) - 1], ']');
}

static void tracing_can_be_off_or_absent(void **state) {
    (void)state;
    kelp_tracing *tracing = NULL;
    kelp_trace_values values = {.rate = 1, .count = -1};
    assert_false(trace_one(NULL));
    assert_null(create(kelp_allocator_system(), "", &values, &tracing));
    assert_false(trace_one(tracing));
    kelp_status *status = update(tracing, "trace_level", "TENSORS");
    assert_non_null(status);
    assert_non_null(strstr(kelp_status_message(status), "trace file name is not given"));
    kelp_status_free(status);
    kelp_tracing_destroy(tracing);
    kelp_tracing_destroy(NULL);
    kelp_status *bad = create(kelp_allocator_system(), "", &always, &tracing);
    assert_int_equal(kelp_status_code(bad), KELP_INVALID_ARGUMENT);
    kelp_status_free(bad);
}

static void a_record_keeps_the_settings_that_sampled_it(void **state) {
    (void)state;
    kelp_tracing *tracing = NULL;
    const kelp_trace_origin origin = {.model = "model"};
    char text[4096];
    assert_null(create(kelp_allocator_system(), path, &always, &tracing));
    kelp_trace_record *record = kelp_tracing_sample(tracing, &origin);
    assert_non_null(record);
    assert_null(update(tracing, "trace_level", "OFF"));
    assert_false(trace_one(tracing));
    kelp_trace_stamp(record, "LATE");
    kelp_trace_record_release(record);
    assert_null(update(tracing, "trace_level", NULL));
    assert_true(trace_one(tracing));
    kelp_tracing_destroy(tracing);
    read_file("", text, sizeof text);
    assert_int_equal(count_of(text, "\"LATE\""), 1);
    assert_int_equal(count_of(text, "\"TEST\""), 1);
}

/* ---- threads ---- */

static atomic_bool stop;

static void *trace_requests(void *userp) {
    while (!atomic_load(&stop))
        (void)trace_one(userp);
    return NULL;
}

static void settings_change_while_requests_are_traced(void **state) {
    (void)state;
    kelp_tracing *tracing = NULL;
    pthread_t threads[2];
    char text[4096], name[32];
    assert_null(create(kelp_allocator_system(), path, &always, &tracing));
    atomic_store(&stop, false);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, trace_requests, tracing), 0);
    for (int i = 0; i < 60; i++) {
        assert_null(update(tracing, "log_frequency", i % 2 ? "100" : "0"));
        assert_null(update(tracing, "trace_level", i % 3 ? "TIMESTAMPS" : "OFF"));
        usleep(500);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    kelp_tracing_destroy(tracing);
    for (int i = 0;; i++) { /* the files are complete */
        snprintf(name, sizeof name, "%s.%d", path, i);
        if (access(name, F_OK) != 0)
            break;
        snprintf(name, sizeof name, ".%d", i);
        read_file(name, text, sizeof text);
        assert_int_equal(text[0], '[');
    }
    read_file("", text, sizeof text);
    assert_int_equal(text[0], '[');
}

/* ---- memory ---- */

static kelp_status *use(kelp_allocator allocator) {
    kelp_tracing *tracing = NULL;
    KELP_TRY(create(allocator, path, &always, &tracing));
    (void)trace_one(tracing);
    kelp_status *status = update(tracing, "log_frequency", "1");
    (void)trace_one(tracing);
    kelp_tracing_destroy(tracing);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_status *status = use(test_failing_allocator(&memory));
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        kelp_status_free(status); /* a trace that has no memory is dropped */
        if (!failed)
            break;
    }
    char command[96]; /* some of the files exist */
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, i ? "%s" : "%s.0", path);
        (void)unlink(command);
    }
}

static int set_up(void **state) {
    (void)state;
    if (mkdtemp(directory) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/t", directory);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    return rmdir(directory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_sampled_by_rate_and_count),
        cmocka_unit_test(tracing_can_be_off_or_absent),
        cmocka_unit_test(a_record_keeps_the_settings_that_sampled_it),
        cmocka_unit_test(settings_change_while_requests_are_traced),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
