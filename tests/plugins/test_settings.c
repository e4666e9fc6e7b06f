/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of plug-in libraries, and the `self` of their providers. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <kelp/compute.h>
#include <kelp/engine_provider.h>
#include <kelp/plugin.h>

#include "support/check_status.h"

static const char *library(void) {
    return getenv("KELP_TEST_LIBRARY");
}

static int count_of(const char *name) {
    void *handle = dlopen(library(), RTLD_NOW);
    assert_non_null(handle);
    int *count = dlsym(handle, name);
    assert_non_null(count);
    int value = *count;
    dlclose(handle);
    return value;
}

static int created(void) {
    return count_of("settings_plugin_created");
}

static int destroyed(void) {
    return count_of("settings_plugin_destroyed");
}

static kelp_runtime *new_runtime(void) {
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_runtime *runtime = NULL;
    check_ok(kelp_runtime_create(&options, &runtime));
    return runtime;
}

/* Every provider of the library receives the `self` of its runtime. */
static void expect_factor(kelp_runtime *runtime, size_t factor) {
    const kelp_compute_backend *models = NULL;
    char says[32];
    check_ok(kelp_compute_find(runtime, "settings", &models));
    assert_int_equal(models->capabilities(models->self).max_batch, factor);
    const kelp_engine_provider *engines =
        kelp_engine_provider_at(runtime, kelp_engine_provider_count(runtime) - 1);
    snprintf(says, sizeof says, "factor %zu", factor);
    expect_failure(engines->available(engines->self, runtime), KELP_UNAVAILABLE, says);
    void *self = NULL;
    assert_non_null(kelp_opset_by_name(kelp_runtime_opsets(runtime), "settings", &self));
    assert_ptr_equal(self, models->self);
}

static void each_runtime_has_its_own_plugin(void **state) {
    (void)state;
    int before = created(), gone = destroyed();
    kelp_runtime *first = new_runtime(), *second = new_runtime();
    const kelp_plugin_setting five = {"factor", "5"};
    check_ok(kelp_runtime_load_plugin_with(first, library(), &five, 1));
    check_ok(kelp_runtime_load_plugin(second, library()));
    expect_factor(first, 5);
    expect_factor(second, 2);
    assert_int_equal(created() - before, 2);
    kelp_runtime_release(first);
    assert_int_equal(destroyed() - gone, 1);
    expect_factor(second, 2);
    kelp_runtime_release(second);
    assert_int_equal(destroyed() - gone, 2);
}

static void invalid_settings_are_rejected(void **state) {
    (void)state;
    static const struct {
        kelp_plugin_setting settings[2];
        size_t count;
        const char *says;
    } cases[] = {
        {{{"colour", "red"}}, 1, "plug-in 'settings' failed: unknown setting 'colour=red'"},
        {{{"factor", "1"}, {"factor", "2"}}, 2, "'factor' has two values: '1', '2'"},
        {{{NULL, "1"}}, 1, "setting 0 ('') has no name"},
        {{{"", "1"}}, 1, "setting 0 ('') has no name"},
        {{{"factor", NULL}}, 1, "setting 0 ('factor') has no value"}};
    int before = created(), gone = destroyed();
    kelp_runtime *runtime = new_runtime();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_failure(
            kelp_runtime_load_plugin_with(runtime, library(), cases[i].settings, cases[i].count),
            KELP_INVALID_ARGUMENT, cases[i].says);
    assert_null(kelp_opset_by_name(kelp_runtime_opsets(runtime), "settings", NULL));
    kelp_runtime_release(runtime);
    assert_int_equal(created(), before);
    assert_int_equal(destroyed(), gone);
}

static void settings_of_a_library_without_create_are_rejected(void **state) {
    (void)state;
    char path[4096];
    const kelp_plugin_setting setting = {"factor", "5"};
    kelp_runtime *runtime = new_runtime();
    snprintf(path, sizeof path, "%.*s/libcopy_engine.so",
             (int)(strrchr(library(), '/') - library()), library());
    expect_failure(kelp_runtime_load_plugin_with(runtime, path, &setting, 1), KELP_INVALID_ARGUMENT,
                   "plug-in 'copy' has no settings: found 'factor'");
    kelp_runtime_release(runtime);
}

static void text_names_libraries_and_settings(void **state) {
    (void)state;
    char text[9000];
    kelp_runtime *runtime = new_runtime();
    snprintf(text, sizeof text,
             ":%.*s/libcopy_engine.so:%s,fac\\tor=7:", (int)(strrchr(library(), '/') - library()),
             library(), library());
    expect_failure(kelp_runtime_load_plugins(runtime, text), KELP_INVALID_ARGUMENT,
                   "unknown setting 'fac\\tor=7'");
    kelp_runtime_release(runtime);
    runtime = new_runtime();
    snprintf(text, sizeof text, "%s,factor=7:", library());
    check_ok(kelp_runtime_load_plugins(runtime, text));
    expect_factor(runtime, 7);
    check_ok(kelp_runtime_load_plugins(runtime, ""));
    static const char *const wrong[][2] = {{",factor", "expected NAME=VALUE after ','"},
                                           {",factor=1,factor=2", "has two values"},
                                           {",a=1\\,2\\:3\\=4=5", "'a=1,2:3=4=5'"},
                                           {",=1", "has no name"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(text, sizeof text, "%s%s", library(), wrong[i][0]);
        expect_failure(kelp_runtime_load_plugins(runtime, text), KELP_INVALID_ARGUMENT,
                       wrong[i][1]);
    }
    expect_failure(kelp_runtime_load_plugins(runtime, ",a=1"), KELP_NOT_FOUND, "no such file");
    kelp_runtime_release(runtime);
}

static void library_can_be_loaded_twice(void **state) {
    (void)state;
    int before = created(), gone = destroyed();
    const kelp_plugin_setting five = {"factor", "5"};
    kelp_runtime *runtime = new_runtime();
    void *first = NULL, *second = NULL;
    check_ok(kelp_runtime_load_plugin(runtime, library()));
    kelp_opset_by_name(kelp_runtime_opsets(runtime), "settings", &first);
    check_ok(kelp_runtime_load_plugin_with(runtime, library(), &five, 1));
    kelp_opset_by_name(kelp_runtime_opsets(runtime), "settings", &second);
    assert_ptr_not_equal(first, second);
    kelp_runtime_release(runtime);
    assert_int_equal(created() - before, 2);
    assert_int_equal(destroyed() - gone, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_runtime_has_its_own_plugin),
        cmocka_unit_test(invalid_settings_are_rejected),
        cmocka_unit_test(settings_of_a_library_without_create_are_rejected),
        cmocka_unit_test(text_names_libraries_and_settings),
        cmocka_unit_test(library_can_be_loaded_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
