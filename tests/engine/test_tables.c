/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines, contexts and streams at their limits: providers whose tables lack functions, profiles
 * and indices out of range, streams of a device, engine images in files and in memory, and memory
 * that runs out.
 */
#include "builder/support.h"

#include <kelp/compute.h>
#include <kelp/engine_provider.h>

#include "support/failing_allocator.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* ---- a provider with few functions ---- */
static struct {
    int engines, contexts;
    void *native;
    kelp_code result;
} seen;

static void destroy_engine(void *engine) {
    (void)engine;
    seen.engines--;
}

static kelp_status *create_context(void *engine, void **out) {
    *out = engine;
    seen.contexts++;
    return NULL;
}

static void destroy_context(void *context) {
    (void)context;
    seen.contexts--;
}

static kelp_status *set_profile(void *context, size_t profile) {
    (void)context, (void)profile;
    return NULL;
}

static kelp_status *set_input(void *context, size_t index, const kelp_tensor *tensor) {
    (void)context, (void)index, (void)tensor;
    return NULL;
}

static kelp_status *invoke(void *context, kelp_tensor *outputs) {
    (void)context, (void)outputs;
    return kelp_status_new(KELP_INTERNAL, __FILE__, __LINE__, "device number %d fails", 5);
}

static kelp_status *enqueue(void *context, void *native) {
    (void)context;
    seen.native = native;
    return seen.result == KELP_OK
               ? NULL
               : kelp_status_new(seen.result, __FILE__, __LINE__, "the queue is full");
}

static kelp_status *capture(void *context, void **out, size_t *out_steps) {
    *out = context;
    *out_steps = 1;
    return NULL;
}

static const kelp_io_info inputs[] = {
    {.name = "a", .dtype = KELP_F32, .rank = 1, .shape = {-1}},
    {.name = "b", .dtype = KELP_F32, .rank = 1, .shape = {-1}},
};
static const kelp_io_info outputs[] = {{.name = "y", .dtype = KELP_F32, .rank = 1, .shape = {-1}}};
static char long_name[6000]; /* more than an arena of an engine has left */
static const char *const refittable[] = {"first weights", "second weights", long_name};
/* two profiles of "a", and none of "b" */
static const kelp_shape profiles[4][3] = {
    {{.rank = 1, .d = {1}}, {.rank = 1, .d = {2}}, {.rank = 1, .d = {4}}},
    {{.rank = -1}, {.rank = -1}, {.rank = -1}},
    {{.rank = 1, .d = {3}}, {.rank = 1, .d = {5}}, {.rank = 1, .d = {8}}},
    {{.rank = -1}, {.rank = -1}, {.rank = -1}},
};

static kelp_status *wrap(kelp_runtime *runtime, const kelp_engine_vtbl *vtbl, size_t profile_count,
                         kelp_engine **out) {
    static int self;
    kelp_engine_parts parts = {.struct_size = sizeof parts,
                               .provider = "few",
                               .vtbl = vtbl,
                               .engine = &self,
                               .inputs = inputs,
                               .outputs = outputs,
                               .input_count = 2,
                               .output_count = 1,
                               .profile_count = profile_count,
                               .profile_shapes = profile_count > 0 ? profiles : NULL,
                               .refittable = refittable,
                               .refittable_count = 3};
    seen.engines++;
    return kelp_engine_wrap(runtime, &parts, out);
}

static kelp_runtime *new_runtime(void) {
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_runtime *runtime = NULL;
    check_ok(kelp_runtime_create(&options, &runtime));
    return runtime;
}

static void missing_functions_are_named(void **state) {
    (void)state;
    kelp_runtime *runtime = new_runtime();
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    kelp_capture *recording = NULL;
    kelp_stream *stream = NULL;
    float data[4];
    kelp_tensor tensor;
    const int64_t shape[] = {4};
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 1, shape, data));
    kelp_engine_vtbl vtbl = {.struct_size = sizeof vtbl, .destroy_engine = destroy_engine};
    check_ok(wrap(runtime, &vtbl, 0, &engine));
    expect_failure(kelp_context_create(engine, &context), KELP_UNIMPLEMENTED, "contexts");
    kelp_engine_release(engine);
    vtbl.create_context = create_context;
    vtbl.destroy_context = destroy_context;
    check_ok(wrap(runtime, &vtbl, 1, &engine));
    check_ok(kelp_context_create(engine, &context));
    check_ok(kelp_stream_wrap(runtime, data, &stream));
    expect_failure(kelp_context_set_profile(context, 0), KELP_UNIMPLEMENTED, "profiles");
    expect_failure(kelp_context_set_input(context, 0, &tensor), KELP_UNIMPLEMENTED, "inputs");
    expect_failure(kelp_context_set_output(context, 0, NULL, 0), KELP_UNIMPLEMENTED, "outputs");
    expect_failure(kelp_context_enqueue(context, stream, NULL), KELP_UNIMPLEMENTED, "streams");
    expect_failure(kelp_context_capture(context, &recording), KELP_UNIMPLEMENTED, "recordings");
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    vtbl.capture = capture; /* a recording that cannot be run is none */
    check_ok(wrap(runtime, &vtbl, 0, &engine));
    check_ok(kelp_context_create(engine, &context));
    expect_failure(kelp_context_capture(context, &recording), KELP_UNIMPLEMENTED, "recordings");
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_stream_destroy(stream);
    kelp_runtime_release(runtime);
    assert_int_equal(seen.engines, 0);
    assert_int_equal(seen.contexts, 0);
}

/* Binds inputs of 0 to 10 elements. Profile 0 accepts 1 to 4, profile 1 accepts 3 to 8. */
static void bind_lengths(const kelp_engine *engine, kelp_context *context, int profile,
                         int64_t least, int64_t most) {
    float data[16];
    kelp_tensor tensor;
    char part[64];
    (void)snprintf(part, sizeof part, "profile %d: expected from [%d] to [%d]", profile, (int)least,
                   (int)most);
    bool has_other = kelp_engine_profile_count(engine) > 1;
    for (int64_t n = 0; n <= 10; n++) {
        check_ok(kelp_tensor_init(&tensor, KELP_F32, 1, &n, data));
        check_ok(kelp_context_set_input(context, 1, &tensor));
        kelp_status *status = kelp_context_set_input(context, 0, &tensor);
        if (n >= least && n <= most) {
            check_ok(status);
            continue;
        }
        const char *hint = profile == 0 ? "profile 1 accepts it" : "profile 0 accepts it";
        bool is_hinted = strstr(kelp_status_message(status), "accepts it") != NULL;
        bool fits = profile == 0 ? n >= 3 && n <= 8 : n >= 1 && n <= 4;
        assert_int_equal(is_hinted, has_other && fits);
        if (is_hinted)
            assert_non_null(strstr(kelp_status_message(status), hint));
        expect_failure(status, KELP_INVALID_ARGUMENT, part);
    }
}

static void profiles_are_indexed_within_bounds(void **state) {
    (void)state;
    kelp_runtime *runtime = new_runtime();
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    kelp_shape shape;
    size_t bytes;
    const kelp_engine_vtbl vtbl = {.struct_size = sizeof vtbl,
                                   .destroy_engine = destroy_engine,
                                   .create_context = create_context,
                                   .destroy_context = destroy_context,
                                   .set_profile = set_profile,
                                   .set_input = set_input};
    check_ok(wrap(runtime, &vtbl, 2, &engine));
    assert_true(kelp_engine_profile_shape(engine, 1, 0, KELP_PROFILE_MAX, &shape));
    assert_int_equal(shape.d[0], 8);
    assert_true(kelp_engine_profile_shape(engine, 0, 0, KELP_PROFILE_MIN, &shape));
    assert_int_equal(shape.d[0], 1);
    assert_false(kelp_engine_profile_shape(engine, 0, 1, KELP_PROFILE_MIN, &shape));
    assert_false(kelp_engine_profile_shape(engine, 2, 0, KELP_PROFILE_MIN, &shape));
    assert_false(kelp_engine_profile_shape(engine, 0, 2, KELP_PROFILE_MIN, &shape));
    assert_false(kelp_engine_profile_shape(engine, 0, 0, -1, &shape));
    assert_false(kelp_engine_profile_shape(engine, 0, 0, 3, &shape));
    assert_string_equal(kelp_engine_refittable(engine, 1), "second weights");
    expect_failure(kelp_engine_workspace_bytes(engine, 2, &bytes), KELP_OUT_OF_RANGE,
                   "no profile 2");
    check_ok(kelp_context_create(engine, &context));
    bind_lengths(engine, context, 0, 1, 4);
    check_ok(kelp_context_set_profile(context, 1));
    bind_lengths(engine, context, 1, 3, 8);
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    check_ok(wrap(runtime, &vtbl, 1, &engine));
    check_ok(kelp_context_create(engine, &context));
    bind_lengths(engine, context, 0, 1, 4);
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    check_ok(wrap(runtime, &vtbl, 0, &engine));
    expect_failure(kelp_engine_workspace_bytes(engine, 1, &bytes), KELP_OUT_OF_RANGE,
                   "no profile 1");
    assert_false(kelp_engine_profile_shape(engine, 0, 0, KELP_PROFILE_MIN, &shape));
    kelp_engine_release(engine);
    kelp_runtime_release(runtime);
}

/* ---- streams ---- */
static void streams_of_a_device_are_passed_to_the_provider(void **state) {
    (void)state;
    kelp_runtime *runtime = new_runtime();
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    kelp_stream *stream = NULL;
    kelp_event *event = NULL;
    float data[4];
    kelp_tensor tensor;
    const int64_t shape[] = {4};
    const kelp_engine_vtbl vtbl = {.struct_size = sizeof vtbl,
                                   .destroy_engine = destroy_engine,
                                   .create_context = create_context,
                                   .destroy_context = destroy_context,
                                   .set_input = set_input,
                                   .enqueue = enqueue};
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 1, shape, data));
    check_ok(wrap(runtime, &vtbl, 0, &engine));
    check_ok(kelp_context_create(engine, &context));
    check_ok(kelp_event_create(kelp_allocator_system(), &event));
    check_ok(kelp_stream_wrap(runtime, data, &stream));
    check_ok(kelp_context_set_input(context, 0, &tensor));
    expect_failure(kelp_context_enqueue(context, stream, NULL), KELP_FAILED_PRECONDITION,
                   "input 'b' (float32) is not bound");
    check_ok(kelp_context_set_input(context, 1, &tensor));
    assert_null(seen.native);
    expect_failure(kelp_context_enqueue(context, stream, event), KELP_UNIMPLEMENTED,
                   "does not support events");
    assert_null(seen.native);
    check_ok(kelp_context_enqueue(context, stream, NULL));
    assert_ptr_equal(seen.native, data);
    seen.result = KELP_RESOURCE_EXHAUSTED;
    expect_failure(kelp_context_enqueue(context, stream, NULL), KELP_RESOURCE_EXHAUSTED,
                   "the queue is full");
    seen.result = KELP_OK;
    expect_failure(kelp_stream_synchronize(stream), KELP_UNIMPLEMENTED, "cannot be synchronized");
    kelp_event_destroy(event);
    kelp_stream_destroy(stream);
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_runtime_release(runtime);
}

static void a_stream_reports_the_first_failure_once(void **state) {
    (void)state;
    kelp_runtime *runtime = new_runtime();
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    kelp_stream *stream = NULL;
    float data[4];
    kelp_tensor tensor;
    const int64_t shape[] = {4};
    const kelp_engine_vtbl vtbl = {.struct_size = sizeof vtbl,
                                   .destroy_engine = destroy_engine,
                                   .create_context = create_context,
                                   .destroy_context = destroy_context,
                                   .set_input = set_input,
                                   .invoke = invoke};
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 1, shape, data));
    check_ok(wrap(runtime, &vtbl, 0, &engine));
    check_ok(kelp_context_create(engine, &context));
    check_ok(kelp_context_set_input(context, 0, &tensor));
    check_ok(kelp_context_set_input(context, 1, &tensor));
    check_ok(kelp_stream_create(runtime, &stream));
    for (int i = 0; i < 3; i++)
        check_ok(kelp_context_enqueue(context, stream, NULL));
    expect_failure(kelp_stream_synchronize(stream), KELP_INTERNAL, "device number 5 fails");
    check_ok(kelp_stream_synchronize(stream));
    check_ok(kelp_context_enqueue(context, stream, NULL)); /* its failure is not asked for */
    kelp_stream_destroy(stream);
    kelp_stream_destroy(NULL);
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_runtime_release(runtime);
}

/* ---- memory ---- */
static void the_provider_frees_its_engine_when_memory_runs_out(void **state) {
    (void)state;
    const kelp_engine_vtbl vtbl = {.struct_size = sizeof vtbl,
                                   .destroy_engine = destroy_engine,
                                   .create_context = create_context,
                                   .destroy_context = destroy_context};
    memset(long_name, 'n', sizeof long_name - 1);
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        kelp_runtime *runtime = NULL;
        kelp_engine *engine = NULL;
        kelp_context *context = NULL;
        test_failing_init(&memory, 0);
        kelp_runtime_options options = {.struct_size = sizeof options,
                                        .threads = 1,
                                        .allocator = test_failing_allocator(&memory)};
        check_ok(kelp_runtime_create(&options, &runtime));
        memory.fail_at = memory.calls + n;
        kelp_status *status = wrap(runtime, &vtbl, 2, &engine);
        if (status == NULL)
            status = kelp_context_create(engine, &context);
        bool failed = memory.failed;
        kelp_context_destroy(context);
        kelp_engine_release(engine);
        kelp_runtime_release(runtime);
        assert_int_equal(seen.engines, 0);
        assert_int_equal(seen.contexts, 0);
        test_failing_check(&memory);
        test_failing_deinit(&memory);
        assert_int_equal(kelp_status_code(status), failed ? KELP_RESOURCE_EXHAUSTED : KELP_OK);
        kelp_status_free(status);
        if (!failed)
            break;
    }
}

/* ---- images in files and in memory ---- */
static int released;

static void count_release(void *userp) {
    (void)userp;
    released++;
}

static int open_files(void) {
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static kelp_status *load(kelp_runtime *runtime, const kelp_artifact *artifact) {
    kelp_compute_model *model = NULL;
    kelp_status *status = kelp_compute_load(runtime, "cpu", artifact, &model);
    kelp_compute_destroy(model);
    return status;
}

static void images_are_recognized_by_name_or_content(void **state) {
    (void)state;
    bench b;
    kelp_blob *plan = NULL;
    kelp_net_tensor *x = NULL;
    kelp_layer *layer = NULL;
    char folder[] = "/tmp/kelp-images-XXXXXX", named[64], plain[64], bad[64], empty[64];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(named, sizeof named, "%s/m.plan", folder);
    (void)snprintf(plain, sizeof plain, "%s/model", folder);
    (void)snprintf(bad, sizeof bad, "%s/b.plan", folder);
    (void)snprintf(empty, sizeof empty, "%s/empty", folder);
    bench_open(&b);
    check_ok(kelp_network_add_input(b.network, "x", KELP_F32, dims(1, 4), &x));
    check_ok(kelp_network_add_activation(b.network, x, KELP_ACTIVATION_RELU, 0, 0, &layer));
    check_ok(kelp_network_mark_output(b.network, out_of(layer)));
    check_ok(kelp_builder_build(b.builder, b.network, b.config, &plan));
    write_file(named, kelp_blob_data(plan), kelp_blob_size(plan));
    write_file(plain, kelp_blob_data(plan), kelp_blob_size(plan));
    write_file(bad, "not a plan", 10);
    write_file(empty, "", 0);

    int files = open_files();
    assert_true(kelp_plan_is_file(b.runtime, named));
    assert_true(kelp_plan_is_file(b.runtime, plain));
    assert_false(kelp_plan_is_file(b.runtime, bad));
    assert_false(kelp_plan_is_file(b.runtime, empty));
    assert_false(kelp_plan_is_file(b.runtime, folder));
    assert_false(kelp_plan_is_file(b.runtime, "/nowhere"));
    assert_int_equal(open_files(), files);

    released = 0;
    kelp_artifact artifact = {.path = named, .release = count_release};
    check_ok(load(b.runtime, &artifact));
    artifact.path = plain;
    check_ok(load(b.runtime, &artifact));
    assert_int_equal(released, 2);
    artifact.path = bad;
    expect_failure(load(b.runtime, &artifact), KELP_INVALID_ARGUMENT,
                   "no engine provider recognizes this plan");
    artifact.path = ".plan";
    expect_failure(load(b.runtime, &artifact), KELP_NOT_FOUND, ".plan");
    artifact.path = "m";
    expect_failure(load(b.runtime, &artifact), KELP_NOT_FOUND, "'m'");
    assert_int_equal(released, 5);
    artifact = (kelp_artifact){.data = kelp_blob_data(plan),
                               .size_bytes = kelp_blob_size(plan),
                               .label = "bytes",
                               .release = count_release};
    check_ok(load(b.runtime, &artifact));
    assert_int_equal(released, 6);

    kelp_status *status =
        kelp_engine_load(b.runtime, "no plan", 7, "label", count_release, NULL, &b.engine);
    assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_RUNTIME);
    expect_failure(status, KELP_INVALID_ARGUMENT, "label: no engine provider recognizes");
    assert_int_equal(released, 7);
    status = kelp_engine_load_file(b.runtime, "/nowhere", &b.engine);
    assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_RUNTIME);
    expect_failure(status, KELP_NOT_FOUND, "/nowhere");
    kelp_blob_release(plan);
    bench_close(&b);
    unlink(named);
    unlink(plain);
    unlink(bad);
    unlink(empty);
    rmdir(folder);
}

static void precisions_have_names(void **state) {
    (void)state;
    kelp_precision precision;
    assert_string_equal(kelp_precision_name(KELP_PRECISION_F32), "f32");
    assert_string_equal(kelp_precision_name(KELP_PRECISION_BF16), "bf16");
    assert_true(kelp_precision_parse("bf16", &precision));
    assert_int_equal(precision, KELP_PRECISION_BF16);
    assert_false(kelp_precision_parse("f16", &precision));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_functions_are_named),
        cmocka_unit_test(profiles_are_indexed_within_bounds),
        cmocka_unit_test(streams_of_a_device_are_passed_to_the_provider),
        cmocka_unit_test(a_stream_reports_the_first_failure_once),
        cmocka_unit_test(the_provider_frees_its_engine_when_memory_runs_out),
        cmocka_unit_test(images_are_recognized_by_name_or_content),
        cmocka_unit_test(precisions_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
