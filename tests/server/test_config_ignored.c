/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a configuration without effect are reported in the log. */
#include "base/alloc.h"
#include "base/fs.h"
#include "server/config/ignored.h"
#include "server/core/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Appends the warnings about a configuration with this field. */
static void warnings_of(const char *batching, kelp_buf *out) {
    char path[] = "/tmp/kelp-test-XXXXXX", text[512];
    kelp_config_load_options options = {.model_name = "m"};
    kelp_model_config *config = NULL;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(text, sizeof text,
             "backend: \"b\" max_batch_size: 8\n"
             "input { name: \"x\" data_type: TYPE_FP32 dims: 1 }\n"
             "output { name: \"y\" data_type: TYPE_FP32 dims: 1 }\n%s",
             batching);
    assert_null(kelp_model_config_parse(kelp_allocator_system(), &options, "config.pbtxt", text,
                                        strlen(text), &config));
    assert_null(kelp_server_log_open(path));
    kelp_server_log_enable(KELP_LOG_WARNING, true);
    kelp_model_config_warn_ignored(config);
    assert_null(kelp_server_log_open(""));
    assert_null(kelp_fs_read(path, 0, out));
    kelp_model_config_release(config);
    (void)unlink(path);
}

static void expect(const char *batching, const char *expected) {
    kelp_buf log;
    kelp_buf_init(&log, kelp_allocator_system());
    warnings_of(batching, &log);
    const char *text = kelp_buf_cstr(&log);
    assert_non_null(text);
    if (expected == NULL)
        assert_string_equal(text, "");
    else if (strstr(text, expected) == NULL)
        fail_msg("expected '%s' in: %s", expected, text);
    kelp_buf_deinit(&log);
}

static void fields_without_effect_are_named(void **state) {
    (void)state;
    expect("dynamic_batching { preferred_batch_size: [ 4 ] }",
           "model 'm': field 'dynamic_batching.preferred_batch_size' has no effect: ");
    expect("dynamic_batching { max_queue_delay_microseconds: 100 }",
           "'dynamic_batching.max_queue_delay_microseconds' has no effect: ");
    expect("dynamic_batching { preserve_ordering: true }",
           "'dynamic_batching.preserve_ordering' has no effect: ");
    expect("dynamic_batching { priority_levels: 2 default_priority_level: 1 }",
           "'dynamic_batching.priority_levels' has no effect: ");
    expect("dynamic_batching { priority_levels: 2 default_priority_level: 1 "
           "priority_queue_policy { key: 2 value { max_queue_size: 3 } } }",
           "'dynamic_batching.priority_queue_policy' has no effect: ");
}

static void other_configurations_cause_no_warning(void **state) {
    (void)state;
    expect("", NULL);
    expect("dynamic_batching { }", NULL);
    expect("dynamic_batching { default_queue_policy { max_queue_size: 3 } }", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_without_effect_are_named),
        cmocka_unit_test(other_configurations_cause_no_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
