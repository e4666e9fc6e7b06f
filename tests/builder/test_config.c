/* SPDX-License-Identifier: Apache-2.0 */
/* Builder configurations: every flag, limit, level and cache has an effect or fails with an error;
 * values of inputs are limited by the profile; builds report progress; objects can be released in
 * any order. */
#include "builder/support.h"
#include "support/failing_allocator.h"

#include <kelp/engine_provider.h>

#include <stdio.h>

#define WIDE 64

static float weights[WIDE * WIDE];

/* softmax(x · weights), x [-1,64] */
static void add_product(bench *b) {
    kelp_net_tensor *x = NULL;
    kelp_layer *w = NULL, *product = NULL, *result = NULL;
    for (int i = 0; i < WIDE * WIDE; i++)
        weights[i] = (float)(i * 37 % 101) / 101 - 0.5f;
    check_ok(kelp_network_add_input(b->network, "x", KELP_F32, dims(2, -1, WIDE), &x));
    check_ok(kelp_network_add_constant(b->network, dims(2, WIDE, WIDE),
                                       (kelp_weights){KELP_F32, weights, WIDE * WIDE, "w"}, &w));
    check_ok(kelp_network_add_matrix_multiply(b->network, x, KELP_MATRIX_NONE, out_of(w),
                                              KELP_MATRIX_NONE, &product));
    check_ok(kelp_network_add_softmax(b->network, out_of(product), 2, &result));
    check_ok(kelp_network_mark_output(b->network, out_of(result)));
}

/* ---- flags, limits, caches ---- */
static void options_that_the_cpu_lacks_fail(void **state) {
    static const struct {
        uint32_t flag;
        const char *name;
    } unsupported[] = {{KELP_BUILD_TF32, "TF32"},
                       {KELP_BUILD_WEIGHT_STREAMING, "WEIGHT_STREAMING"},
                       {KELP_BUILD_VERSION_COMPATIBLE, "VERSION_COMPATIBLE"},
                       {KELP_BUILD_MONITOR_MEMORY, "MONITOR_MEMORY"},
                       {KELP_BUILD_DETAILED, "DETAILED"},
                       {1u << 20, "of this number"}};
    bench b;
    char wanted[200];
    size_t size_bytes = 1;
    (void)state;
    bench_open(&b);
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++) {
        snprintf(wanted, sizeof wanted,
                 "'cpu' does not support builder flag %s (bit %d): it supports BF16, REFIT, "
                 "REFIT_INDIVIDUAL, "
                 "STRIP_WEIGHTS, DISABLE_FUSION",
                 unsupported[i].name, __builtin_ctz(unsupported[i].flag));
        kelp_status *status = kelp_builder_config_set_flags(b.config, unsupported[i].flag);
        assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_PARAMETER);
        expect_failure(status, KELP_UNIMPLEMENTED, wanted);
    }
    expect_failure(kelp_builder_config_set_memory_limit(b.config, KELP_POOL_DEVICE, 1),
                   KELP_UNIMPLEMENTED, "memory pool DEVICE: it limits WORKSPACE");
    check_ok(kelp_builder_config_set_memory_limit(b.config, KELP_POOL_DEVICE, 0));
    expect_failure(kelp_builder_config_set_memory_limit(b.config, (kelp_memory_pool)2, 1),
                   KELP_INVALID_ARGUMENT, "invalid memory pool 2");
    expect_failure(kelp_builder_config_set_timing_cache(b.config, "abc", 3), KELP_UNIMPLEMENTED,
                   "'cpu' has no timing cache");
    assert_null(kelp_builder_config_timing_cache(b.config, &size_bytes));
    assert_int_equal(size_bytes, 0);
    expect_failure(kelp_builder_config_set_optimization_level(b.config, 6), KELP_INVALID_ARGUMENT,
                   "expected 0 to 5, found 6");
    bench_close(&b);
}

static void options_are_stored(void **state) {
    bench b;
    (void)state;
    bench_open(&b);
    assert_int_equal(kelp_builder_config_flags(b.config), 0);
    assert_int_equal(kelp_builder_config_optimization_level(b.config), 3);
    assert_int_equal(kelp_builder_config_memory_limit(b.config, KELP_POOL_WORKSPACE), 0);
    check_ok(kelp_builder_config_set_flags(b.config, KELP_BUILD_REFIT));
    check_ok(kelp_builder_config_set_optimization_level(b.config, 0));
    check_ok(kelp_builder_config_set_memory_limit(b.config, KELP_POOL_WORKSPACE, 5000));
    assert_int_equal(kelp_builder_config_flags(b.config), KELP_BUILD_REFIT);
    assert_int_equal(kelp_builder_config_optimization_level(b.config), 0);
    assert_int_equal(kelp_builder_config_memory_limit(b.config, KELP_POOL_WORKSPACE), 5000);
    expect_failure(kelp_builder_config_set_optimization_level(b.config, -1), KELP_INVALID_ARGUMENT,
                   "expected 0 to 5, found -1");
    expect_failure(kelp_builder_config_add_compute_capability(b.config, 86), KELP_INVALID_ARGUMENT,
                   "provider 'cpu' has no devices");
    bench_close(&b);
}

static void configuration_of_another_provider_fails(void **state) {
    bench b;
    kelp_builder *other = NULL;
    kelp_builder_config *config = NULL;
    kelp_blob *plan = NULL;
    (void)state;
    bench_open(&b);
    add_product(&b);
    check_ok(kelp_builder_create(b.runtime, "null", &other));
    check_ok(kelp_builder_create_config(other, &config));
    expect_failure(kelp_builder_build(b.builder, b.network, config, &plan), KELP_INVALID_ARGUMENT,
                   "configuration belongs to provider 'null', the builder to 'cpu'");
    expect_failure(kelp_builder_build(other, b.network, config, &plan), KELP_INVALID_ARGUMENT,
                   "belongs to provider 'cpu': the builder is of provider 'null'");
    kelp_builder_config_release(config);
    kelp_builder_release(other);
    bench_close(&b);
}

/* ---- levels ---- */
static size_t run_level(int level, float *out) {
    bench b;
    kelp_blob *plan = NULL;
    static float x[3 * WIDE];
    bench_open(&b);
    add_product(&b);
    for (int i = 0; i < 3 * WIDE; i++)
        x[i] = (float)(i % 17) - 8;
    check_ok(kelp_builder_config_set_optimization_level(b.config, level));
    check_ok(kelp_builder_build(b.builder, b.network, b.config, &plan));
    size_t size_bytes = kelp_blob_size(plan);
    kelp_blob_release(plan);
    bench_build(&b);
    bind(b.context, 0, KELP_F32, dims(2, 3, WIDE), x);
    check_ok(kelp_context_invoke(b.context));
    memcpy(out, kelp_context_output(b.context, 0)->data, 3 * WIDE * sizeof *out);
    bench_close(&b);
    return size_bytes;
}

static void low_levels_defer_packing_to_the_load(void **state) {
    static float low[3 * WIDE], high[3 * WIDE];
    (void)state;
    size_t small = run_level(0, low), large = run_level(3, high);
    assert_memory_equal(low, high, sizeof low);
    assert_int_equal(run_level(2, low), small);
    assert_memory_equal(low, high, sizeof low);
    assert_int_equal(run_level(5, low), large);
    assert_true(small < large); /* packed weights are stored in addition to the original weights */
}

/* ---- values ---- */
/* y = x reshaped to the values of `size`. */
static void add_reshape(bench *b) {
    kelp_net_tensor *x = NULL, *size = NULL;
    kelp_layer *shuffle = NULL;
    check_ok(kelp_network_add_input(b->network, "x", KELP_F32, dims(1, 12), &x));
    check_ok(kelp_network_add_input(b->network, "size", KELP_I64, dims(1, 2), &size));
    const kelp_shuffle options = {.struct_size = sizeof options, .shape = size};
    check_ok(kelp_network_add_shuffle(b->network, x, &options, &shuffle));
    check_ok(kelp_network_mark_output(b->network, out_of(shuffle)));
}

static void bound_values(bench *b, int64_t low, int64_t high) {
    const int64_t bounds[3][2] = {{low, 1}, {low, 6}, {high, 12}};
    size_t index = 0;
    check_ok(kelp_builder_config_add_profile(b->config, &index));
    for (int i = 0; i < 3; i++)
        check_ok(kelp_builder_config_set_profile_values(b->config, index, "size",
                                                        (kelp_profile_selector)i, bounds[i], 2));
}

static void append(void *userp, const char *text, size_t length) {
    strncat(userp, text, length);
}

static void values_outside_the_profile_fail(void **state) {
    bench b;
    static float x[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    int64_t size[2] = {3, 4};
    static char text[8192];
    (void)state;
    bench_open(&b);
    add_reshape(&b);
    bound_values(&b, 1, 4);
    bound_values(&b, 6, 12);
    bench_build(&b);
    bind(b.context, 0, KELP_F32, dims(1, 12), x);
    bind(b.context, 1, KELP_I64, dims(1, 2), size);
    check_ok(kelp_context_invoke(b.context));
    assert_int_equal(kelp_context_output(b.context, 0)->shape[0], 3);
    size[0] = 6, size[1] = 2; /* bound values are read by the run */
    expect_failure(kelp_context_invoke(b.context), KELP_INVALID_ARGUMENT,
                   "value 0 of input 'size' is out of range: expected 1 to 4 in profile 0, "
                   "found 6");
    check_ok(kelp_context_set_profile(b.context, 1));
    bind(b.context, 0, KELP_F32, dims(1, 12), x);
    bind(b.context, 1, KELP_I64, dims(1, 2), size);
    check_ok(kelp_context_invoke(b.context));
    assert_int_equal(kelp_context_output(b.context, 0)->shape[0], 6);
    check_ok(kelp_engine_inspect(b.engine, false, append, text));
    assert_non_null(strstr(text, "profile 1, values of size: min [6,1] opt [6,6] max [12,12]"));
    *text = '\0';
    check_ok(kelp_engine_inspect(b.engine, true, append, text));
    assert_non_null(strstr(text, "{\"size\":{\"values\":{\"min\":[1,1],\"opt\":[1,6]"));
    bench_close(&b);
}

static void invalid_value_profiles_fail(void **state) {
    const int64_t one[1] = {3};
    bench b;
    kelp_blob *plan = NULL;
    (void)state;
    bench_open(&b);
    add_reshape(&b);
    bound_values(&b, 4, 1);
    expect_failure(kelp_builder_build(b.builder, b.network, b.config, &plan), KELP_INVALID_ARGUMENT,
                   "input 'size', value 0: expected minimum <= optimum <= maximum, found 4, 4, 1");
    for (int i = 0; i < 3; i++)
        check_ok(kelp_builder_config_set_profile_values(b.config, 0, "size",
                                                        (kelp_profile_selector)i, one, 1));
    expect_failure(kelp_builder_build(b.builder, b.network, b.config, &plan), KELP_INVALID_ARGUMENT,
                   "input 'size': expected 2 values, found 1");
    bound_values(&b, 1, 2);
    for (int i = 0; i < 3; i++)
        check_ok(kelp_builder_config_set_profile_values(b.config, 1, "x", (kelp_profile_selector)i,
                                                        one, 1));
    kelp_builder_config_release(b.config);
    check_ok(kelp_builder_create_config(b.builder, &b.config));
    bound_values(&b, 1, 2);
    for (int i = 0; i < 3; i++)
        check_ok(kelp_builder_config_set_profile_values(b.config, 0, "x", (kelp_profile_selector)i,
                                                        one, 1));
    expect_failure(kelp_builder_build(b.builder, b.network, b.config, &plan), KELP_INVALID_ARGUMENT,
                   "value bounds need an input of int32 or int64, found float32");
    bench_close(&b);
}

/* The three shapes of a profile must be given, in order, and fit the input x [-1,64]. */
static void profile_shapes_that_do_not_fit_fail(void **state) {
    static const struct {
        kelp_shape shapes[3]; /* rank -1: not set */
        const char *part;
    } cases[] = {
        {{{-1, {0}}, {2, {2, 64}}, {2, {3, 64}}}, "the minimum shape is missing"},
        {{{2, {1, 64}}, {-1, {0}}, {2, {3, 64}}}, "the optimum shape is missing"},
        {{{2, {1, 64}}, {2, {2, 64}}, {-1, {0}}}, "the maximum shape is missing"},
        {{{2, {1, 64}}, {1, {2}}, {2, {3, 64}}}, "lengths: minimum 2, optimum 1, maximum 2"},
        {{{2, {1, 64}}, {2, {2, 64}}, {1, {3}}}, "lengths: minimum 2, optimum 2, maximum 1"},
        {{{1, {1}}, {2, {2, 64}}, {2, {3, 64}}}, "lengths: minimum 1, optimum 2, maximum 2"},
        {{{2, {2, 64}}, {2, {1, 64}}, {2, {3, 64}}}, "shape 0: expected minimum <= optimum"},
        {{{2, {1, 64}}, {2, {3, 64}}, {2, {2, 64}}}, "maximum, found 1, 3, 2"},
        {{{2, {1, 63}}, {2, {2, 64}}, {2, {3, 64}}}, "[-1,64], but the minimum shape is [1,63]"},
        {{{2, {1, 64}}, {2, {2, 64}}, {2, {3, 65}}}, "[-1,64], but the maximum shape is [3,65]"},
        {{{1, {1}}, {1, {2}}, {1, {3}}}, "[-1,64], but the minimum shape is [1]"},
    };
    bench b;
    kelp_blob *plan = NULL;
    size_t index = 0;
    (void)state;
    bench_open(&b);
    add_product(&b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kelp_builder_config_release(b.config);
        check_ok(kelp_builder_create_config(b.builder, &b.config));
        check_ok(kelp_builder_config_add_profile(b.config, &index));
        for (int s = 0; s < 3; s++)
            if (cases[i].shapes[s].rank >= 0)
                check_ok(kelp_builder_config_set_profile_shape(
                    b.config, index, "x", (kelp_profile_selector)s, cases[i].shapes[s].rank,
                    cases[i].shapes[s].d));
        expect_failure(kelp_builder_build(b.builder, b.network, b.config, &plan),
                       KELP_INVALID_ARGUMENT, cases[i].part);
    }
    bench_close(&b);
}

/* ---- progress ---- */
typedef struct watched {
    int calls, operators, last_step, steps;
    int stop_at; /* the operator before which the build is cancelled; -1: none */
} watched;

static bool watch(void *userp, const char *phase, const char *parent, int step, int steps) {
    watched *w = userp;
    w->calls++;
    if (strcmp(phase, "creating operators") != 0)
        return true;
    assert_string_equal(parent, "optimizing");
    assert_true(step >= w->last_step && step <= steps);
    w->last_step = step;
    w->steps = steps;
    w->operators++;
    return step != w->stop_at;
}

static void progress_names_every_operator(void **state) {
    bench b;
    kelp_blob *plan = NULL;
    watched all = {.stop_at = -1}, some = {.stop_at = 1};
    (void)state;
    bench_open(&b);
    add_product(&b);
    kelp_builder_config_set_progress(b.config, watch, &all);
    check_ok(kelp_builder_build(b.builder, b.network, b.config, &plan));
    kelp_blob_release(plan);
    assert_int_equal(all.last_step, all.steps);
    assert_true(all.operators >= 3);
    kelp_builder_config_set_progress(b.config, watch, &some);
    kelp_status *status = kelp_builder_build(b.builder, b.network, b.config, &plan);
    assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_BUILDER);
    expect_failure(status, KELP_CANCELLED, "cancelled by its progress callback");
    assert_int_equal(some.operators, 2);
    bench_close(&b);
}

/* ---- order of release ---- */
enum { RUNTIME, BUILDER, NETWORK, CONFIG, PLAN, ENGINE, CONTEXT, CAPTURE, STREAM, OBJECTS };

static void let_go(int object, void *thing) {
    switch (object) {
    case RUNTIME:
        kelp_runtime_release(thing);
        break;
    case BUILDER:
        kelp_builder_release(thing);
        break;
    case NETWORK:
        kelp_network_release(thing);
        break;
    case CONFIG:
        kelp_builder_config_release(thing);
        break;
    case PLAN:
        kelp_blob_release(thing);
        break;
    case ENGINE:
        kelp_engine_release(thing);
        break;
    case CONTEXT:
        kelp_context_destroy(thing);
        break;
    case CAPTURE:
        kelp_capture_destroy(thing);
        break;
    default:
        kelp_stream_destroy(thing);
        break;
    }
}

static void go_in_order(const int *order) {
    test_failing memory;
    bench b = {0};
    kelp_blob *plan = NULL;
    kelp_capture *capture = NULL;
    kelp_stream *stream = NULL;
    static float x[2 * WIDE];
    test_failing_init(&memory, 0);
    kelp_runtime_options options = {
        .struct_size = sizeof options, .allocator = test_failing_allocator(&memory), .threads = 1};
    check_ok(kelp_runtime_create(&options, &b.runtime));
    check_ok(kelp_builder_create(b.runtime, "cpu", &b.builder));
    check_ok(kelp_builder_create_network(b.builder, &b.network));
    check_ok(kelp_builder_create_config(b.builder, &b.config));
    add_product(&b);
    check_ok(kelp_builder_build(b.builder, b.network, b.config, &plan));
    check_ok(kelp_engine_load(b.runtime, kelp_blob_data(plan), kelp_blob_size(plan), "test",
                              free_plan, kelp_blob_retain(plan), &b.engine));
    check_ok(kelp_context_create(b.engine, &b.context));
    bind(b.context, 0, KELP_F32, dims(2, 2, WIDE), x);
    check_ok(kelp_context_capture(b.context, &capture));
    check_ok(kelp_stream_create(b.runtime, &stream));
    check_ok(kelp_context_enqueue(b.context, stream, NULL));
    check_ok(kelp_stream_synchronize(stream));
    void *things[OBJECTS] = {b.runtime, b.builder, b.network, b.config, plan,
                             b.engine,  b.context, capture,   stream};
    for (int i = 0; i < OBJECTS; i++)
        let_go(order[i], things[order[i]]);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

/* Every rotation in both directions, and random orders from a fixed seed. */
static void objects_can_be_released_in_any_order(void **state) {
    int order[OBJECTS];
    uint32_t random = 12345;
    (void)state;
    for (int first = 0; first < OBJECTS; first++)
        for (int step = -1; step <= 1; step += 2) {
            for (int i = 0; i < OBJECTS; i++)
                order[i] = (first + OBJECTS + step * i) % OBJECTS;
            go_in_order(order);
        }
    for (int turn = 0; turn < 100; turn++) {
        for (int i = OBJECTS - 1; i > 0; i--) {
            random = random * 1664525u + 1013904223u;
            int other = (int)(random >> 8) % (i + 1), kept = order[i];
            order[i] = order[other];
            order[other] = kept;
        }
        go_in_order(order);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_the_cpu_lacks_fail),
        cmocka_unit_test(options_are_stored),
        cmocka_unit_test(configuration_of_another_provider_fails),
        cmocka_unit_test(low_levels_defer_packing_to_the_load),
        cmocka_unit_test(values_outside_the_profile_fail),
        cmocka_unit_test(invalid_value_profiles_fail),
        cmocka_unit_test(profile_shapes_that_do_not_fit_fail),
        cmocka_unit_test(progress_names_every_operator),
        cmocka_unit_test(objects_can_be_released_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
