/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine provider of a third party, on the public headers: kelp/engine.h calls the functions of
 * its table, and reports those that a shorter table lacks. Its engine copies input x to output y.
 */
#include "support.h"

#include <kelp/engine_provider.h>

typedef struct copy_context {
    const void *x;
    size_t elements, allocated;
    void *y;
    kelp_output_allocator place;
    void *place_userp;
    DLDevice device;
    kelp_profile_fn profile_fn;
    void *profile_userp;
    void *workspace;
    int cancelled;
} copy_context;

static struct {
    int engines, contexts, captures; /* alive */
    char cache[16];
    size_t cache_bytes, budget;
    copy_context *last;
} seen;

static void destroy_engine(void *engine) {
    (void)engine;
    seen.engines--;
}

static kelp_status *create_context(void *engine, void **out) {
    (void)engine;
    copy_context *context = calloc(1, sizeof *context);
    assert_non_null(context);
    seen.contexts++;
    seen.last = context;
    *out = context;
    return NULL;
}

static void destroy_context(void *context) {
    assert_int_equal(seen.captures, 0); /* they are destroyed first */
    seen.contexts--;
    free(context);
}

static kelp_status *set_profile(void *context, size_t profile) {
    (void)context, (void)profile;
    return NULL;
}

static kelp_status *set_input(void *userp, size_t index, const kelp_tensor *tensor) {
    copy_context *context = userp;
    assert_int_equal(index, 0);
    context->x = tensor->data;
    context->elements = (size_t)kelp_tensor_elements(tensor);
    return NULL;
}

static kelp_status *set_output(void *userp, size_t index, void *data, size_t capacity_bytes) {
    copy_context *context = userp;
    (void)index, (void)capacity_bytes;
    context->y = data;
    return NULL;
}

static kelp_status *invoke(void *userp, kelp_tensor *out_outputs) {
    copy_context *context = userp;
    int64_t shape[1] = {(int64_t)context->elements};
    KELP_TRY(kelp_tensor_init(&out_outputs[0], KELP_F32, 1, shape, context->y));
    if (context->place != NULL)
        out_outputs[0].data = context->place(context->place_userp, 0, &out_outputs[0],
                                             context->elements * sizeof(float));
    if (context->elements > 0)
        memcpy(out_outputs[0].data, context->x, context->elements * sizeof(float));
    if (context->profile_fn != NULL)
        context->profile_fn(context->profile_userp, 0, "Copy", "copy", "memcpy", 1000);
    return NULL;
}

static kelp_status *set_output_device(void *userp, size_t index, DLDevice device) {
    (void)index;
    ((copy_context *)userp)->device = device;
    return NULL;
}

static kelp_status *set_output_allocator(void *userp, size_t index, kelp_output_allocator fn,
                                         void *fn_userp) {
    copy_context *context = userp;
    (void)index;
    context->place = fn;
    context->place_userp = fn_userp;
    return NULL;
}

static kelp_status *set_workspace(void *userp, void *data, size_t size_bytes) {
    (void)size_bytes;
    ((copy_context *)userp)->workspace = data;
    return NULL;
}

static kelp_status *set_profiler(void *userp, kelp_profile_fn fn, void *fn_userp) {
    copy_context *context = userp;
    context->profile_fn = fn;
    context->profile_userp = fn_userp;
    return NULL;
}

static void cancel(void *userp) {
    ((copy_context *)userp)->cancelled++;
}

static kelp_status *capture(void *context, void **out_capture, size_t *out_steps) {
    seen.captures++;
    *out_capture = context;
    *out_steps = 1;
    return NULL;
}

static void destroy_capture(void *userp) {
    (void)userp;
    seen.captures--;
}

static kelp_status *set_runtime_cache(void *engine, const void *data, size_t size_bytes) {
    (void)engine;
    if (size_bytes > sizeof seen.cache)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "a cache of %zu bytes", size_bytes);
    memcpy(seen.cache, data, size_bytes);
    seen.cache_bytes = size_bytes;
    return NULL;
}

static kelp_status *write_runtime_cache(void *engine,
                                        void (*write)(void *userp, const char *data, size_t length),
                                        void *userp) {
    (void)engine;
    write(userp, seen.cache, seen.cache_bytes);
    return NULL;
}

static kelp_status *streamable_weights(void *engine, size_t *out_bytes) {
    (void)engine;
    *out_bytes = 4096;
    return NULL;
}

static kelp_status *set_weight_budget(void *engine, size_t device_bytes) {
    (void)engine;
    seen.budget = device_bytes;
    return NULL;
}

static kelp_engine_vtbl table = {
    .destroy_engine = destroy_engine,
    .create_context = create_context,
    .destroy_context = destroy_context,
    .set_profile = set_profile,
    .set_input = set_input,
    .set_output = set_output,
    .invoke = invoke,
    .set_output_device = set_output_device,
    .set_output_allocator = set_output_allocator,
    .set_workspace = set_workspace,
    .set_profiler = set_profiler,
    .cancel = cancel,
    .capture = capture,
    .replay = invoke, /* a recording is the context itself */
    .destroy_capture = destroy_capture,
    .set_runtime_cache = set_runtime_cache,
    .write_runtime_cache = write_runtime_cache,
    .streamable_weights = streamable_weights,
    .set_weight_budget = set_weight_budget,
};

/* An engine with two profiles of x, 1 to 4 and 5 to 8 elements. `table_bytes` is the size of the
 * table that the provider reports. */
static void open_engine(bench *b, size_t table_bytes) {
    static const kelp_io_info x = {.name = "x", .dtype = KELP_F32, .rank = 1, .shape = {-1}},
                              y = {.name = "y", .dtype = KELP_F32, .rank = 1, .shape = {-1}};
    const kelp_shape bounds[2][3] = {{dims(1, 1), dims(1, 2), dims(1, 4)},
                                     {dims(1, 5), dims(1, 6), dims(1, 8)}};
    const char *const names[] = {"weight", "bias"};
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    *b = (bench){0};
    check_ok(kelp_runtime_create(&options, &b->runtime));
    table.struct_size = (uint32_t)table_bytes;
    kelp_engine_parts parts = {.struct_size = sizeof parts,
                               .provider = "copy",
                               .vtbl = &table,
                               .engine = &seen,
                               .inputs = &x,
                               .outputs = &y,
                               .input_count = 1,
                               .output_count = 1,
                               .profile_count = 2,
                               .profile_shapes = bounds,
                               .refittable = names,
                               .refittable_count = 2};
    seen.engines++;
    check_ok(kelp_engine_wrap(b->runtime, &parts, &b->engine));
    check_ok(kelp_context_create(b->engine, &b->context));
}

static void close_engine(bench *b) {
    bench_close(b);
    assert_int_equal(seen.engines, 0);
    assert_int_equal(seen.contexts, 0);
    assert_int_equal(seen.captures, 0);
}

static void profiles_and_names_are_checked(void **state) {
    (void)state;
    bench b;
    kelp_shape shape;
    float x[8] = {0};
    int64_t six[1] = {6};
    kelp_tensor tensor;
    open_engine(&b, sizeof table);
    assert_int_equal(kelp_engine_profile_count(b.engine), 2);
    assert_true(kelp_engine_profile_shape(b.engine, 1, 0, KELP_PROFILE_MAX, &shape));
    assert_int_equal(shape.d[0], 8);
    assert_int_equal(kelp_engine_refittable_count(b.engine), 2);
    assert_string_equal(kelp_engine_refittable(b.engine, 1), "bias");
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 1, six, x));
    expect_failure(
        kelp_context_set_input(b.context, 0, &tensor), KELP_INVALID_ARGUMENT,
        "wrong shape for profile 0: expected from [1] to [4], found [6]; profile 1 accepts "
        "it");
    check_ok(kelp_context_set_profile(b.context, 1));
    check_ok(kelp_context_set_input(b.context, 0, &tensor));
    close_engine(&b);
}

static void *place(void *userp, size_t index, const kelp_tensor *output, size_t size_bytes) {
    (void)index, (void)output;
    assert_int_equal(size_bytes, 2 * sizeof(float));
    return userp;
}

static void note(void *userp, size_t step, const char *op_type, const char *name,
                 const char *algorithm, uint64_t duration_ns) {
    assert_int_equal(step, 0);
    assert_string_equal(op_type, "Copy");
    assert_string_equal(name, "copy");
    assert_string_equal(algorithm, "memcpy");
    *(uint64_t *)userp += duration_ns;
}

static void calls_reach_the_provider(void **state) {
    (void)state;
    bench b;
    float x[2] = {1, 2}, y[2] = {0}, z[2] = {0};
    uint64_t took_ns = 0;
    open_engine(&b, sizeof table);
    bind(b.context, 0, KELP_F32, dims(1, 2), x);
    check_ok(kelp_context_set_output_device(b.context, 0, (DLDevice){kDLCUDA, 3}));
    assert_int_equal(seen.last->device.device_id, 3);
    expect_failure(kelp_context_set_output_device(b.context, 1, (DLDevice){kDLCUDA, 3}),
                   KELP_INVALID_ARGUMENT, "there is no output 1");
    check_ok(kelp_context_set_output(b.context, 0, y, sizeof y));
    check_ok(kelp_context_set_profiler(b.context, note, &took_ns));
    check_ok(kelp_context_invoke(b.context));
    check_ok(kelp_context_set_profiler(b.context, NULL, NULL));
    assert_memory_equal(x, y, sizeof y);
    assert_int_equal(took_ns, 1000);
    check_ok(kelp_context_set_output_allocator(b.context, 0, place, z));
    check_ok(kelp_context_invoke(b.context));
    assert_memory_equal(x, z, sizeof z);
    assert_ptr_equal(kelp_context_output(b.context, 0)->data, z);
    check_ok(kelp_context_set_workspace(b.context, y, sizeof y));
    assert_ptr_equal(seen.last->workspace, y);
    kelp_context_cancel(b.context);
    assert_int_equal(seen.last->cancelled, 1);
    close_engine(&b);
}

static void recordings_are_destroyed_before_their_context(void **state) {
    (void)state;
    bench b;
    float x[2] = {1, 2}, y[2] = {0};
    kelp_capture *first, *second;
    open_engine(&b, sizeof table);
    bind(b.context, 0, KELP_F32, dims(1, 2), x);
    check_ok(kelp_context_set_output(b.context, 0, y, sizeof y));
    check_ok(kelp_context_capture(b.context, &first));
    check_ok(kelp_context_capture(b.context, &second));
    assert_int_equal(kelp_capture_step_count(first), 1);
    x[1] = 5;
    check_ok(kelp_capture_replay(second));
    assert_memory_equal(x, y, sizeof y);
    assert_int_equal(kelp_context_output(b.context, 0)->shape[0], 2);
    kelp_capture_destroy(first);
    assert_int_equal(seen.captures, 1);
    kelp_context_destroy(b.context);
    b.context = NULL;
    assert_int_equal(seen.captures, 0);
    expect_failure(kelp_capture_replay(second), KELP_FAILED_PRECONDITION,
                   "the context of the recording was destroyed");
    kelp_capture_destroy(second);
    close_engine(&b);
}

static void append(void *userp, const char *data, size_t length) {
    strncat(userp, data, length);
}

static void runtime_cache_and_weight_budget_reach_the_provider(void **state) {
    (void)state;
    bench b;
    size_t bytes;
    char text[16] = "";
    open_engine(&b, sizeof table);
    check_ok(kelp_engine_set_runtime_cache(b.engine, "compiled", 8));
    check_ok(kelp_engine_write_runtime_cache(b.engine, append, text));
    assert_string_equal(text, "compiled");
    check_ok(kelp_engine_streamable_weights(b.engine, &bytes));
    assert_int_equal(bytes, 4096);
    check_ok(kelp_engine_set_weight_budget(b.engine, 1024));
    assert_int_equal(seen.budget, 1024);
    close_engine(&b);
}

/* A provider that was compiled with a table that ends with `enqueue`. */
static void functions_beyond_a_shorter_table_fail(void **state) {
    (void)state;
    bench b;
    size_t bytes;
    kelp_capture *none;
    char text[16] = "";
    open_engine(&b, offsetof(kelp_engine_vtbl, set_output_device));
    expect_failure(kelp_context_set_output_allocator(b.context, 0, place, NULL), KELP_UNIMPLEMENTED,
                   "provider 'copy' have no output allocators");
    check_ok(kelp_context_set_output_allocator(b.context, 0, NULL, NULL));
    check_ok(kelp_context_set_output_device(b.context, 0, (DLDevice){kDLCPU, 0}));
    expect_failure(
        kelp_context_set_output_device(b.context, 0, (DLDevice){kDLCUDA, 0}), KELP_INVALID_ARGUMENT,
        "must be in host memory for an engine of provider 'copy': found device 0 of type 2");
    expect_failure(kelp_context_set_workspace(b.context, text, sizeof text), KELP_UNIMPLEMENTED,
                   "provider 'copy' have no workspaces that the caller allocates");
    expect_failure(kelp_context_set_profiler(b.context, note, NULL), KELP_UNIMPLEMENTED,
                   "provider 'copy' have no profiler");
    expect_failure(kelp_context_capture(b.context, &none), KELP_UNIMPLEMENTED,
                   "provider 'copy' have no recordings");
    expect_failure(kelp_engine_set_runtime_cache(b.engine, "", 0), KELP_UNIMPLEMENTED,
                   "provider 'copy' have no runtime cache");
    expect_failure(kelp_engine_write_runtime_cache(b.engine, append, text), KELP_UNIMPLEMENTED,
                   "no runtime cache");
    expect_failure(kelp_engine_streamable_weights(b.engine, &bytes), KELP_UNIMPLEMENTED,
                   "provider 'copy' have no weights that are streamed");
    expect_failure(kelp_engine_set_weight_budget(b.engine, 1), KELP_UNIMPLEMENTED,
                   "no weights that are streamed");
    kelp_context_cancel(b.context);
    close_engine(&b);
}

/* ---- registration ---- */
static kelp_status *build_nothing(void *self, kelp_runtime *runtime, const kelp_network *network,
                                  kelp_builder_config *config, kelp_blob **out_plan) {
    const kelp_profile_shape *shapes = NULL;
    const int *capabilities = NULL;
    (void)network;
    assert_ptr_equal(self, &seen);
    assert_int_equal(kelp_builder_config_memory_limit(config, KELP_POOL_WORKSPACE), 64);
    assert_int_equal(kelp_builder_config_capabilities(config, &capabilities), 1);
    assert_int_equal(capabilities[0], 86);
    assert_int_equal(kelp_builder_config_profile(config, 0, &shapes), 1);
    assert_string_equal(shapes[0].input, "x");
    assert_int_equal(kelp_builder_config_profile(config, 1, &shapes), 0);
    check_ok(kelp_builder_config_store_timing_cache(config, "times", 5));
    return kelp_blob_wrap(kelp_runtime_allocator(runtime), "NOTHING", 7, NULL, NULL, out_plan);
}

static bool recognizes_nothing(void *self, const void *data, size_t size_bytes) {
    assert_ptr_equal(self, &seen);
    return size_bytes >= 7 && memcmp(data, "NOTHING", 7) == 0;
}

static kelp_status *load_nothing(void *self, kelp_runtime *runtime, const void *data,
                                 size_t size_bytes, const char *label, void (*release)(void *userp),
                                 void *userp, kelp_engine **out) {
    (void)self, (void)runtime, (void)data, (void)size_bytes, (void)out;
    if (release != NULL)
        release(userp);
    return KELP_ERROR(KELP_UNAVAILABLE, "%s: there is nothing to load", label);
}

static kelp_engine_provider nothing(void) {
    return (kelp_engine_provider){.abi_version = KELP_ENGINE_PROVIDER_ABI_VERSION,
                                  .struct_size = sizeof(kelp_engine_provider),
                                  .name = "nothing",
                                  .has_devices = true,
                                  .timing_cache = true,
                                  .pools = 1u << KELP_POOL_WORKSPACE,
                                  .build = build_nothing,
                                  .recognises = recognizes_nothing,
                                  .load = load_nothing,
                                  .self = &seen};
}

static void malformed_tables_are_rejected(void **state) {
    kelp_runtime *runtime = NULL;
    kelp_engine_provider tables[8];
    (void)state;
    check_ok(kelp_runtime_create(NULL, &runtime));
    size_t count = kelp_engine_provider_count(runtime);
    for (size_t i = 0; i < 8; i++)
        tables[i] = nothing();
    tables[0].abi_version++;
    tables[1].build = NULL;
    tables[2].load = NULL;
    tables[3].recognises = NULL;
    tables[4].name = NULL;
    tables[5].name = "";
    tables[6].struct_size = 8;
    for (size_t i = 0; i < 7; i++)
        expect_failure(kelp_engine_provider_register(runtime, &tables[i]), KELP_INVALID_ARGUMENT,
                       "provider");
    expect_failure(kelp_engine_provider_register(runtime, NULL), KELP_INVALID_ARGUMENT, "provider");
    tables[7].name = "cpu";
    expect_failure(kelp_engine_provider_register(runtime, &tables[7]), KELP_ALREADY_EXISTS,
                   "'cpu'");
    assert_int_equal(kelp_engine_provider_count(runtime), count);
    assert_null(kelp_engine_provider_at(runtime, count));
    kelp_runtime_release(runtime);
}

static void registered_providers_build_and_load(void **state) {
    static const kelp_engine_provider *found = NULL;
    kelp_engine_provider provider = nothing();
    kelp_builder_config *config = NULL;
    kelp_builder *builder = NULL;
    kelp_network *network = NULL;
    kelp_net_tensor *x = NULL;
    kelp_layer *layer = NULL;
    kelp_runtime *runtime = NULL;
    kelp_engine *engine = NULL;
    kelp_blob *plan = NULL;
    size_t profile = 0, size_bytes = 0;
    (void)state;
    check_ok(kelp_runtime_create(NULL, &runtime));
    check_ok(kelp_engine_provider_register(runtime, &provider));
    found = kelp_engine_provider_at(runtime, kelp_engine_provider_count(runtime) - 1);
    assert_string_equal(found->name, "nothing");
    check_ok(kelp_builder_create(runtime, "nothing", &builder));
    check_ok(kelp_builder_create_network(builder, &network));
    check_ok(kelp_network_add_input(network, "x", KELP_F32, dims(1, 3), &x));
    check_ok(kelp_network_add_identity(network, x, &layer));
    check_ok(kelp_network_mark_output(network, out_of(layer)));
    check_ok(kelp_builder_create_config(builder, &config));
    check_ok(kelp_builder_config_set_memory_limit(config, KELP_POOL_WORKSPACE, 64));
    check_ok(kelp_builder_config_add_compute_capability(config, 86));
    check_ok(kelp_builder_config_add_profile(config, &profile));
    for (int which = 0; which < 3; which++)
        check_ok(kelp_builder_config_set_profile_shape(
            config, profile, "x", (kelp_profile_selector)which, 1, dims(1, 3).d));
    check_ok(kelp_builder_build(builder, network, config, &plan));
    assert_memory_equal(kelp_builder_config_timing_cache(config, &size_bytes), "times", 5);
    assert_true(kelp_plan_is_known(runtime, kelp_blob_data(plan), kelp_blob_size(plan)));
    kelp_status *status = kelp_engine_load(runtime, kelp_blob_data(plan), kelp_blob_size(plan),
                                           "it", free_plan, kelp_blob_retain(plan), &engine);
    assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_RUNTIME);
    expect_failure(status, KELP_UNAVAILABLE, "it: there is nothing to load");
    kelp_blob_release(plan);
    kelp_builder_config_release(config);
    kelp_network_release(network);
    kelp_builder_release(builder);
    kelp_runtime_release(runtime);
}

/* A provider that needs profiles gets no network with dynamic dimensions without one. */
static void profiles_may_be_required(void **state) {
    kelp_engine_provider provider = nothing();
    kelp_builder_config *config = NULL;
    kelp_builder *builder = NULL;
    kelp_network *network = NULL;
    kelp_net_tensor *x = NULL, *y = NULL;
    kelp_layer *layer = NULL;
    kelp_runtime *runtime = NULL;
    kelp_blob *plan = NULL;
    size_t size_bytes = 0;
    (void)state;
    kelp_network *parsed = NULL;
    kelp_blob *model = NULL;
    provider.needs_profiles = true;
    check_ok(kelp_runtime_create(NULL, &runtime));
    check_ok(kelp_engine_provider_register(runtime, &provider));
    check_ok(kelp_builder_create(runtime, "nothing", &builder));
    check_ok(kelp_builder_create_network(builder, &network));
    check_ok(kelp_network_add_input(network, "x", KELP_F32, dims(1, 3), &x));
    check_ok(kelp_network_add_input(network, "y", KELP_F32, dims(2, 3, -1), &y));
    check_ok(kelp_network_add_identity(network, y, &layer));
    check_ok(kelp_network_mark_output(network, out_of(layer)));
    check_ok(kelp_builder_create_config(builder, &config));
    expect_failure(kelp_builder_build(builder, network, config, &plan), KELP_FAILED_PRECONDITION,
                   "input 'y' has dynamic dimensions: provider 'nothing' needs an optimization "
                   "profile for it");
    check_ok(kelp_network_set_name(network, "mine"));
    check_ok(kelp_network_to_onnx(network, &model));
    check_ok(kelp_builder_parse_bytes(builder, kelp_blob_data(model), kelp_blob_size(model), NULL,
                                      free_plan, model, &parsed));
    expect_failure(kelp_builder_build(builder, parsed, config, &plan), KELP_FAILED_PRECONDITION,
                   "input 'y' has dynamic dimensions");
    assert_string_equal(kelp_network_name(parsed), "mine");
    kelp_network_release(parsed);
    check_ok(kelp_builder_config_set_timing_cache(config, "earlier", 7));
    assert_memory_equal(kelp_builder_config_timing_cache(config, &size_bytes), "earlier", 7);
    assert_int_equal(size_bytes, 7);
    check_ok(kelp_builder_config_set_timing_cache(config, NULL, 0));
    assert_null(kelp_builder_config_timing_cache(config, &size_bytes));
    assert_int_equal(size_bytes, 0);
    kelp_builder_config_release(config);
    kelp_network_release(network);
    kelp_builder_release(builder);
    kelp_runtime_release(runtime);
}

static void cpu_has_no_device(void **state) {
    (void)state;
    bench b;
    size_t bytes;
    bench_open(&b);
    kelp_net_tensor *x = NULL;
    kelp_layer *layer = NULL;
    check_ok(kelp_network_add_input(b.network, "x", KELP_F32, dims(1, 2), &x));
    check_ok(kelp_network_add_activation(b.network, x, KELP_ACTIVATION_RELU, 0, 0, &layer));
    check_ok(kelp_network_mark_output(b.network, out_of(layer)));
    bench_build(&b);
    expect_failure(kelp_context_set_output_device(b.context, 0, (DLDevice){kDLCUDA, 0}),
                   KELP_INVALID_ARGUMENT, "must be in host memory for an engine of provider 'cpu'");
    expect_failure(kelp_engine_set_runtime_cache(b.engine, "", 0), KELP_UNIMPLEMENTED,
                   "engines of provider 'cpu' have no runtime cache");
    expect_failure(kelp_engine_streamable_weights(b.engine, &bytes), KELP_UNIMPLEMENTED,
                   "engines of provider 'cpu' have no weights that are streamed");
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_and_names_are_checked),
        cmocka_unit_test(calls_reach_the_provider),
        cmocka_unit_test(recordings_are_destroyed_before_their_context),
        cmocka_unit_test(runtime_cache_and_weight_budget_reach_the_provider),
        cmocka_unit_test(functions_beyond_a_shorter_table_fail),
        cmocka_unit_test(malformed_tables_are_rejected),
        cmocka_unit_test(registered_providers_build_and_load),
        cmocka_unit_test(profiles_may_be_required),
        cmocka_unit_test(cpu_has_no_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
