/* SPDX-License-Identifier: Apache-2.0 */
/* The provider `null`: images are checked when they are loaded, outputs are zeros in the right
 * memory, and memory that runs out is a status. */
#include "builder/support.h"

#include "support/failing_allocator.h"

#include <stdio.h>

#define SIGNATURE "KELPNULL"
#define INPUT(name) "{\"name\":\"" name "\",\"type\":\"float32\",\"shape\":[-1]}"
#define OUTPUT "\"outputs\":[" INPUT("y") "]"

static int released;

static void count_release(void *userp) {
    (void)userp;
    released++;
}

static kelp_status *load(kelp_runtime *runtime, const char *text, kelp_engine **out) {
    return kelp_engine_load(runtime, text, strlen(text), "image", count_release, NULL, out);
}

static kelp_runtime *new_runtime(test_failing *memory) {
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_runtime *runtime = NULL;
    if (memory != NULL)
        options.allocator = test_failing_allocator(memory);
    check_ok(kelp_runtime_create(&options, &runtime));
    return runtime;
}

static void wrong_images_are_rejected(void **state) {
    (void)state;
    static const char *const tensors[] = {
        "{\"type\":\"float32\",\"shape\":[]}",
        "{\"name\":1,\"type\":\"float32\",\"shape\":[]}",
        "{\"name\":\"x\",\"shape\":[]}",
        "{\"name\":\"x\",\"type\":1,\"shape\":[]}",
        "{\"name\":\"x\",\"type\":\"float32\"}",
        "{\"name\":\"x\",\"type\":\"float32\",\"shape\":1}",
        "{\"name\":\"x\",\"type\":\"a type whose name has 32 letters ..\",\"shape\":[]}",
        "{\"name\":\"x\",\"type\":\"float32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}",
    };
    static const char *const bounds[] = {
        "{\"min\":[1],\"opt\":[1]}",
        "{\"min\":1,\"opt\":[1],\"max\":[1]}",
        "{\"min\":[1],\"opt\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"max\":[1]}",
    };
    char text[512];
    kelp_runtime *runtime = new_runtime(NULL);
    kelp_engine *engine = NULL;
    released = 0;
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        (void)snprintf(text, sizeof text, SIGNATURE "{\"inputs\":[%s]}", tensors[i]);
        expect_failure(load(runtime, text, &engine), KELP_INVALID_ARGUMENT,
                       "image: expected a tensor with a name, a type and a shape");
    }
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        (void)snprintf(text, sizeof text,
                       SIGNATURE "{\"inputs\":[" INPUT("x") "],\"profiles\":[{\"x\":%s}]}",
                       bounds[i]);
        expect_failure(load(runtime, text, &engine), KELP_INVALID_ARGUMENT,
                       "dimensions for each input of a profile");
    }
    expect_failure(load(runtime,
                        SIGNATURE "{\"inputs\":[{\"name\":\"x\",\"type\":\"float99\","
                                  "\"shape\":[]}]}",
                        &engine),
                   KELP_INVALID_ARGUMENT, "image: tensor 'x' has an unknown type: 'float99'");
    assert_int_equal(released, 12);
    kelp_runtime_release(runtime);
}

static void images_without_lists_have_no_tensors_or_profiles(void **state) {
    (void)state;
    static const char *const images[] = {
        SIGNATURE "{}", SIGNATURE "{\"inputs\":5,\"outputs\":{\"a\":1},\"profiles\":{\"a\":{}}}"};
    kelp_runtime *runtime = new_runtime(NULL);
    for (size_t i = 0; i < 2; i++) {
        kelp_engine *engine = NULL;
        check_ok(load(runtime, images[i], &engine));
        assert_int_equal(kelp_engine_input_count(engine), 0);
        assert_int_equal(kelp_engine_output_count(engine), 0);
        assert_int_equal(kelp_engine_profile_count(engine), 0);
        kelp_engine_release(engine);
    }
    kelp_runtime_release(runtime);
}

static void inputs_without_bounds_have_no_shapes_in_a_profile(void **state) {
    (void)state;
    static const char image[] = SIGNATURE "{\"inputs\":[" INPUT("a") "," INPUT(
        "b") "],\"profiles\":["
             "{\"b\":{\"min\":[1],\"opt\":[2],\"max\":[3]},\"unknown\":{}},"
             "{\"a\":{\"min\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"opt\":[5],\"max\":[6]}}]}";
    kelp_runtime *runtime = new_runtime(NULL);
    kelp_engine *engine = NULL;
    kelp_shape shape;
    check_ok(load(runtime, image, &engine));
    assert_int_equal(kelp_engine_profile_count(engine), 2);
    for (int which = 0; which < 3; which++) {
        assert_false(kelp_engine_profile_shape(engine, 0, 0, which, &shape));
        assert_true(kelp_engine_profile_shape(engine, 0, 1, which, &shape));
        assert_int_equal(shape.d[0], 1 + which);
        assert_true(kelp_engine_profile_shape(engine, 1, 0, which, &shape));
        assert_int_equal(shape.rank, which == 0 ? KELP_MAX_RANK : 1);
        assert_false(kelp_engine_profile_shape(engine, 1, 1, which, &shape));
    }
    kelp_engine_release(engine);
    kelp_runtime_release(runtime);
}

static void run(kelp_context *context, int64_t count) {
    static float x[5000];
    bind(context, 0, KELP_F32, dims(1, (int)count), x);
    check_ok(kelp_context_invoke(context));
    const kelp_tensor *y = kelp_context_output(context, 0);
    assert_int_equal(y->shape[0], count);
    for (int64_t i = 0; i < count; i++)
        assert_true(((const float *)y->data)[i] == 0);
}

static void outputs_grow_and_memory_may_run_out(void **state) {
    (void)state;
    static float x[5000];
    test_failing memory;
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    test_failing_init(&memory, 0);
    kelp_runtime *runtime = new_runtime(&memory);
    check_ok(load(runtime, SIGNATURE "{\"inputs\":[" INPUT("x") "]," OUTPUT "}", &engine));
    check_ok(kelp_context_create(engine, &context));
    run(context, 0);
    run(context, 2);
    uint64_t calls = memory.calls;
    run(context, 1);
    run(context, 2);
    assert_int_equal(memory.calls, calls); /* the memory is used again */
    memory.fail_at = memory.calls + 1;
    bind(context, 0, KELP_F32, dims(1, 5000), x);
    expect_failure(kelp_context_invoke(context), KELP_RESOURCE_EXHAUSTED, "memory");
    run(context, 2);
    run(context, 5000);
    calls = memory.calls;
    float y[2] = {1, 1};
    check_ok(kelp_context_set_output(context, 0, y, sizeof y));
    run(context, 2);
    assert_true(y[0] == 0 && y[1] == 0);
    kelp_context_destroy(context);
    check_ok(kelp_context_create(engine, &context));
    check_ok(kelp_context_set_output(context, 0, y, sizeof y));
    calls = memory.calls;
    run(context, 2);
    assert_int_equal(memory.calls, calls); /* bound memory needs no other */
    memory.fail_at = memory.calls + 1;
    check_ok(kelp_context_set_output(context, 0, NULL, 0));
    expect_failure(kelp_context_invoke(context), KELP_RESOURCE_EXHAUSTED, "memory");
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_runtime_release(runtime);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

static void *give(void *userp, size_t index, const kelp_tensor *output, size_t size_bytes) {
    (void)index, (void)output, (void)size_bytes;
    return userp;
}

static void bound_memory_replaces_an_allocator(void **state) {
    (void)state;
    float first[2] = {1, 1}, second[2] = {1, 1};
    kelp_runtime *runtime = new_runtime(NULL);
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    check_ok(load(runtime, SIGNATURE "{\"inputs\":[" INPUT("x") "]," OUTPUT "}", &engine));
    check_ok(kelp_context_create(engine, &context));
    check_ok(kelp_context_set_output_allocator(context, 0, give, first));
    run(context, 2);
    assert_ptr_equal(kelp_context_output(context, 0)->data, first);
    check_ok(kelp_context_set_output(context, 0, second, sizeof second));
    run(context, 2);
    assert_ptr_equal(kelp_context_output(context, 0)->data, second);
    assert_true(second[1] == 0);
    check_ok(kelp_context_set_output_allocator(context, 0, give, NULL));
    expect_failure(kelp_context_invoke(context), KELP_RESOURCE_EXHAUSTED,
                   "the allocator of output 'y' returned no memory for 8 bytes");
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_runtime_release(runtime);
}

/* Names are so long that each needs an allocation of its own. */
static void each_failed_allocation_is_reported(void **state) {
    (void)state;
    static char text[24000], name[5000];
    memset(name, 'n', sizeof name - 1);
    (void)snprintf(text, sizeof text,
                   SIGNATURE "{\"inputs\":[{\"name\":\"%s\",\"type\":\"float32\",\"shape\":[-1]}],"
                             "\"outputs\":[{\"name\":\"%s\",\"type\":\"int8\",\"shape\":[-1]}],"
                             "\"profiles\":[{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}]}",
                   name, name);
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        kelp_engine *engine = NULL;
        test_failing_init(&memory, 0);
        kelp_runtime *runtime = new_runtime(&memory);
        memory.fail_at = memory.calls + n;
        released = 0;
        kelp_status *status = load(runtime, text, &engine);
        assert_int_equal(released, 1);
        bool failed = memory.failed;
        kelp_engine_release(engine);
        kelp_runtime_release(runtime);
        test_failing_check(&memory);
        test_failing_deinit(&memory);
        assert_int_equal(kelp_status_code(status), failed ? KELP_RESOURCE_EXHAUSTED : KELP_OK);
        kelp_status_free(status);
        if (!failed)
            break;
    }
}

static bool refuse(void *userp, const char *phase, const char *parent, int step, int steps) {
    (void)phase, (void)parent;
    assert_int_equal(step, 0);
    *(int *)userp = steps;
    return false;
}

static void builds_can_be_cancelled(void **state) {
    (void)state;
    bench b = {.runtime = new_runtime(NULL)};
    kelp_net_tensor *x = NULL;
    kelp_blob *plan = NULL;
    int steps = 0;
    check_ok(kelp_builder_create(b.runtime, "null", &b.builder));
    check_ok(kelp_builder_create_network(b.builder, &b.network));
    check_ok(kelp_builder_create_config(b.builder, &b.config));
    check_ok(kelp_network_add_input(b.network, "x", KELP_F32, dims(1, 4), &x));
    check_ok(kelp_network_mark_output(b.network, x));
    kelp_builder_config_set_progress(b.config, refuse, &steps);
    expect_failure(kelp_builder_build(b.builder, b.network, b.config, &plan), KELP_CANCELLED,
                   "cancelled by its progress callback");
    assert_int_equal(steps, 1);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_images_are_rejected),
        cmocka_unit_test(images_without_lists_have_no_tensors_or_profiles),
        cmocka_unit_test(inputs_without_bounds_have_no_shapes_in_a_profile),
        cmocka_unit_test(outputs_grow_and_memory_may_run_out),
        cmocka_unit_test(bound_memory_replaces_an_allocator),
        cmocka_unit_test(each_failed_allocation_is_reported),
        cmocka_unit_test(builds_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
