/* SPDX-License-Identifier: Apache-2.0 */
/* Plans through the public interface: build, save, load, profiles, refit, capture, streams;
 * modified plans fail. */
#include "builder/support.h"
#include "support/failing_allocator.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGITS KELP_SOURCE_DIR "/examples/models/digits/1/model.onnx"

static const float weights[12] = {0.5f, -1, 2, 0.25f, 1, -0.5f, 3, 1, 0, 2, -2, 1};
static const float bias[3] = {0.1f, -0.2f, 0.3f};

/* relu(x · weights + bias), x [batch,4] */
static void make_network(bench *b, int batch) {
    kelp_net_tensor *x = NULL;
    kelp_layer *w = NULL, *product = NULL, *shift = NULL, *sum = NULL, *result = NULL;
    check_ok(kelp_network_add_input(b->network, "x", KELP_F32, dims(2, batch, 4), &x));
    check_ok(kelp_network_add_constant(b->network, dims(2, 4, 3),
                                       (kelp_weights){KELP_F32, weights, 12, "fc.weights"}, &w));
    check_ok(kelp_network_add_matrix_multiply(b->network, x, KELP_MATRIX_NONE, out_of(w),
                                              KELP_MATRIX_NONE, &product));
    check_ok(kelp_network_add_constant(b->network, dims(2, 1, 3),
                                       (kelp_weights){KELP_F32, bias, 3, "fc.bias"}, &shift));
    check_ok(kelp_network_add_elementwise(b->network, out_of(product), out_of(shift),
                                          KELP_ELEMENTWISE_SUM, &sum));
    check_ok(
        kelp_network_add_activation(b->network, out_of(sum), KELP_ACTIVATION_RELU, 0, 0, &result));
    check_ok(kelp_net_tensor_set_name(out_of(result), "y"));
    check_ok(kelp_network_mark_output(b->network, out_of(result)));
}

static void expected(const float *x, const float *w, const float *shift, int rows, float *out) {
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < 3; c++) {
            float sum = 0;
            for (int k = 0; k < 4; k++)
                sum += x[r * 4 + k] * w[k * 3 + c];
            sum += shift[c];
            out[r * 3 + c] = sum > 0 ? sum : 0;
        }
}

static void check_run(kelp_context *context, int rows, const float *w, const float *shift) {
    float x[32], wanted[24];
    for (int i = 0; i < rows * 4; i++)
        x[i] = (float)((i * 7) % 5) - 1.5f;
    bind(context, 0, KELP_F32, dims(2, rows, 4), x);
    check_ok(kelp_context_invoke(context));
    const kelp_tensor *y = kelp_context_output(context, 0);
    assert_int_equal(y->shape[0], rows);
    expected(x, w, shift, rows, wanted);
    for (int i = 0; i < rows * 3; i++)
        assert_float_equal(((const float *)y->data)[i], wanted[i], 1e-5);
}

static void set_profile(bench *b, size_t index, int least, int usual, int most) {
    const int64_t shapes[3][2] = {{least, 4}, {usual, 4}, {most, 4}};
    for (int i = 0; i < 3; i++)
        check_ok(kelp_builder_config_set_profile_shape(b->config, index, "x",
                                                       (kelp_profile_selector)i, 2, shapes[i]));
}

static void add_profile(bench *b, int least, int usual, int most) {
    size_t index = 0;
    check_ok(kelp_builder_config_add_profile(b->config, &index));
    set_profile(b, index, least, usual, most);
}

static void saved_plan_can_be_loaded(void **state) {
    bench b;
    kelp_blob *plan = NULL, *again = NULL;
    char path[] = "plan-XXXXXX";
    (void)state;
    bench_open(&b);
    make_network(&b, -1);
    check_ok(kelp_builder_build(b.builder, b.network, b.config, &plan));
    check_ok(kelp_builder_build(b.builder, b.network, b.config, &again));
    assert_int_equal(kelp_blob_size(plan), kelp_blob_size(again));
    assert_memory_equal(kelp_blob_data(plan), kelp_blob_data(again), kelp_blob_size(plan));
    close(mkstemp(path));
    check_ok(kelp_blob_save(plan, path));
    kelp_blob_release(plan);
    kelp_blob_release(again);
    assert_true(kelp_plan_is_known(b.runtime, "KELPPLAN........", 16));
    assert_false(kelp_plan_is_known(b.runtime, "something else..", 16));
    check_ok(kelp_engine_load_file(b.runtime, path, &b.engine));
    unlink(path);
    assert_string_equal(kelp_engine_input(b.engine, 0)->name, "x");
    assert_string_equal(kelp_engine_output(b.engine, 0)->name, "y");
    assert_int_equal(kelp_engine_input(b.engine, 0)->shape[0], -1);
    assert_string_equal(kelp_engine_provider_name(b.engine), "cpu");
    check_ok(kelp_context_create(b.engine, &b.context));
    check_run(b.context, 2, weights, bias);
    check_run(b.context, 5, weights, bias);
    bench_close(&b);
}

/* Each parent is released before its children. */
static void parents_can_be_released_first(void **state) {
    bench b;
    (void)state;
    bench_open(&b);
    make_network(&b, 3);
    bench_build(&b);
    kelp_runtime_release(b.runtime);
    kelp_builder_release(b.builder);
    kelp_engine_release(b.engine);
    check_run(b.context, 3, weights, bias);
    kelp_builder_config_release(b.config);
    kelp_context_destroy(b.context);
    kelp_network_release(b.network);
}

static void shapes_outside_the_profile_fail(void **state) {
    bench b;
    kelp_shape shape;
    float x[64] = {0};
    kelp_tensor tensor;
    const int64_t three[2] = {3, 4};
    size_t small = 0, large = 0;
    (void)state;
    bench_open(&b);
    make_network(&b, -1);
    add_profile(&b, 1, 1, 2);
    add_profile(&b, 3, 4, 8);
    bench_build(&b);
    assert_int_equal(kelp_engine_profile_count(b.engine), 2);
    assert_true(kelp_engine_profile_shape(b.engine, 1, 0, 2, &shape));
    assert_int_equal(shape.d[0], 8);
    check_run(b.context, 2, weights, bias);
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 2, three, x));
    expect_failure(kelp_context_set_input(b.context, 0, &tensor), KELP_INVALID_ARGUMENT,
                   "profile 0: expected from [1,4] to [2,4], found [3,4]; profile 1 accepts it");
    check_ok(kelp_context_set_profile(b.context, 1));
    expect_failure(kelp_context_invoke(b.context), KELP_FAILED_PRECONDITION, "'x'");
    check_run(b.context, 3, weights, bias);
    expect_failure(kelp_context_set_profile(b.context, 2), KELP_OUT_OF_RANGE, "the engine has 2");
    check_ok(kelp_engine_workspace_bytes(b.engine, 0, &small));
    check_ok(kelp_engine_workspace_bytes(b.engine, 1, &large));
    assert_true(small <= large);
    bench_close(&b);
}

static void invalid_profiles_fail(void **state) {
    bench b;
    kelp_blob *plan = NULL;
    size_t index = 0;
    (void)state;
    bench_open(&b);
    make_network(&b, -1);
    add_profile(&b, 4, 2, 8);
    expect_failure(kelp_builder_build(b.builder, b.network, b.config, &plan), KELP_INVALID_ARGUMENT,
                   "found 4, 2, 8");
    set_profile(&b, 0, 1, 2, 8);
    check_ok(kelp_builder_config_add_profile(b.config, &index));
    const int64_t wide[2] = {2, 5};
    check_ok(
        kelp_builder_config_set_profile_shape(b.config, index, "x", KELP_PROFILE_MIN, 2, wide));
    expect_failure(kelp_builder_build(b.builder, b.network, b.config, &plan), KELP_INVALID_ARGUMENT,
                   "the optimum shape is missing");
    expect_failure(kelp_builder_config_add_compute_capability(b.config, 86), KELP_INVALID_ARGUMENT,
                   "no devices");
    kelp_status *status = kelp_builder_config_set_flags(b.config, KELP_BUILD_VERSION_COMPATIBLE);
    assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_PARAMETER);
    expect_failure(status, KELP_UNIMPLEMENTED, "VERSION_COMPATIBLE");
    bench_close(&b);
}

static void workspace_limit_applies(void **state) {
    bench b;
    kelp_blob *plan = NULL;
    kelp_layer *layer = NULL;
    kelp_net_tensor *x = NULL;
    (void)state;
    bench_open(&b);
    check_ok(kelp_network_add_input(b.network, "x", KELP_F32, dims(2, 64, 64), &x));
    check_ok(kelp_network_add_softmax(b.network, x, 2, &layer));
    check_ok(kelp_network_add_softmax(b.network, out_of(layer), 1, &layer));
    check_ok(kelp_network_add_reduce(b.network, out_of(layer), KELP_REDUCE_SUM, 3, false, &layer));
    check_ok(kelp_network_mark_output(b.network, out_of(layer)));
    check_ok(kelp_builder_config_set_memory_limit(b.config, KELP_POOL_WORKSPACE, 1024));
    expect_failure(kelp_builder_build(b.builder, b.network, b.config, &plan),
                   KELP_RESOURCE_EXHAUSTED, "the limit is 1024");
    check_ok(kelp_builder_config_set_memory_limit(b.config, KELP_POOL_WORKSPACE, 1 << 20));
    bench_build(&b);
    size_t needed = 0;
    check_ok(kelp_engine_workspace_bytes(b.engine, 0, &needed));
    assert_true(needed >= 64 * 64 * 4);
    static _Alignas(64) char memory[1 << 20];
    static float xs[64 * 64];
    bind(b.context, 0, KELP_F32, dims(2, 64, 64), xs);
    check_ok(kelp_context_set_workspace(b.context, memory, 64));
    expect_failure(kelp_context_invoke(b.context), KELP_RESOURCE_EXHAUSTED,
                   "the workspace is too small");
    memset(memory, 0, sizeof memory);
    check_ok(kelp_context_set_workspace(b.context, memory, sizeof memory));
    check_ok(kelp_context_invoke(b.context));
    char unused[4096] = {0};
    assert_memory_not_equal(memory, unused, sizeof unused);
    assert_float_equal(*(const float *)kelp_context_output(b.context, 0)->data, 64, 1e-3);
    bench_close(&b);
}

static bool stop_at_once(void *userp, const char *phase, const char *parent, int step, int steps) {
    (void)phase, (void)parent, (void)step, (void)steps;
    return ++*(int *)userp < 2;
}

static void build_can_be_cancelled(void **state) {
    bench b;
    kelp_blob *plan = NULL;
    int calls = 0;
    (void)state;
    bench_open(&b);
    make_network(&b, 1);
    kelp_builder_config_set_progress(b.config, stop_at_once, &calls);
    expect_failure(kelp_builder_build(b.builder, b.network, b.config, &plan), KELP_CANCELLED,
                   "cancelled by its progress callback");
    assert_int_equal(calls, 2);
    bench_close(&b);
}

static void refit_equals_a_rebuild(void **state) {
    bench b;
    static const float other[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, shift[3] = {9, 8, 7};
    const kelp_weights both[2] = {{KELP_F32, other, 12, "fc.weights"},
                                  {KELP_F32, shift, 3, "fc.bias"}};
    kelp_weights wrong = {KELP_F32, other, 11, "fc.weights"};
    (void)state;
    bench_open(&b);
    make_network(&b, -1);
    check_ok(kelp_builder_config_set_flags(b.config, KELP_BUILD_REFIT));
    bench_build(&b);
    assert_int_equal(kelp_engine_refittable_count(b.engine), 2);
    check_run(b.context, 2, weights, bias);
    expect_failure(kelp_engine_refit(b.engine, &wrong, 1), KELP_INVALID_ARGUMENT,
                   "expected float32 [4,3] (12 elements), found float32 (11 elements)");
    wrong = (kelp_weights){KELP_F32, other, 12, "fc.weight"};
    expect_failure(kelp_engine_refit(b.engine, &wrong, 1), KELP_NOT_FOUND,
                   "expected one of 'fc.weights', 'fc.bias'");
    check_run(b.context, 2, weights, bias);
    check_ok(kelp_engine_refit(b.engine, both, 1));
    check_run(b.context, 2, other, bias);
    check_ok(kelp_engine_refit(b.engine, both + 1, 1));
    check_run(b.context, 3, other, shift);
    bench_close(&b);
}

static void only_marked_weights_can_be_refitted(void **state) {
    bench b;
    kelp_blob *plan = NULL;
    (void)state;
    bench_open(&b);
    make_network(&b, 1);
    check_ok(kelp_builder_config_set_flags(b.config, KELP_BUILD_REFIT_INDIVIDUAL));
    expect_failure(kelp_builder_build(b.builder, b.network, b.config, &plan),
                   KELP_FAILED_PRECONDITION, "REFIT_INDIVIDUAL has no effect: no weights");
    check_ok(kelp_network_mark_refittable(b.network, "fc.bias"));
    bench_build(&b);
    assert_int_equal(kelp_engine_refittable_count(b.engine), 1);
    assert_string_equal(kelp_engine_refittable(b.engine, 0), "fc.bias");
    kelp_weights unmarked = {KELP_F32, weights, 12, "fc.weights"};
    expect_failure(kelp_engine_refit(b.engine, &unmarked, 1), KELP_NOT_FOUND, "'fc.bias'");
    bench_close(&b);
}

static void captured_run_gives_the_same_results(void **state) {
    bench b;
    kelp_capture *capture = NULL;
    float x[8] = {1, 2, 3, 4, -1, 0.5f, 2, 8}, first[6], y[6];
    (void)state;
    bench_open(&b);
    make_network(&b, -1);
    bench_build(&b);
    bind(b.context, 0, KELP_F32, dims(2, 2, 4), x);
    check_ok(kelp_context_set_output(b.context, 0, y, sizeof y));
    check_ok(kelp_context_capture(b.context, &capture));
    assert_true(kelp_capture_step_count(capture) >= 1);
    for (int turn = 0; turn < 3; turn++) {
        x[turn] += 3;
        check_ok(kelp_context_invoke(b.context));
        memcpy(first, y, sizeof y);
        memset(y, 0, sizeof y);
        check_ok(kelp_capture_replay(capture));
        assert_memory_equal(y, first, sizeof y);
    }
    bind(b.context, 0, KELP_F32, dims(2, 1, 4), x);
    expect_failure(kelp_capture_replay(capture), KELP_FAILED_PRECONDITION, "were bound after it");
    kelp_context_destroy(b.context);
    b.context = NULL;
    expect_failure(kelp_capture_replay(capture), KELP_FAILED_PRECONDITION, "was destroyed");
    kelp_capture_destroy(capture);
    bench_close(&b);
}

static void recording_ends_with_a_refit(void **state) {
    static const float shift[3] = {9, 8, 7};
    const kelp_weights given = {KELP_F32, shift, 3, "fc.bias"};
    bench b;
    kelp_capture *before = NULL, *after = NULL;
    float x[4] = {1, 2, 3, 4}, y[3], expected[3];
    (void)state;
    bench_open(&b);
    make_network(&b, -1);
    check_ok(kelp_builder_config_set_flags(b.config, KELP_BUILD_REFIT));
    bench_build(&b);
    bind(b.context, 0, KELP_F32, dims(2, 1, 4), x);
    check_ok(kelp_context_set_output(b.context, 0, y, sizeof y));
    check_ok(kelp_context_capture(b.context, &before));
    check_ok(kelp_capture_replay(before));
    check_ok(kelp_engine_refit(b.engine, &given, 1));
    expect_failure(kelp_capture_replay(before), KELP_FAILED_PRECONDITION, "was refitted");
    check_ok(kelp_context_capture(b.context, &after));
    check_ok(kelp_capture_replay(after));
    memcpy(expected, y, sizeof y);
    check_ok(kelp_context_invoke(b.context));
    assert_memory_equal(y, expected, sizeof y);
    kelp_capture_destroy(before);
    kelp_capture_destroy(after);
    bench_close(&b);
}

static void *place(void *userp, size_t index, const kelp_tensor *output, size_t size_bytes) {
    void **memory = userp;
    assert_int_equal(index, 0);
    assert_int_equal(output->rank, 2);
    assert_int_equal(size_bytes, kelp_tensor_bytes(output));
    free(*memory);
    *memory = malloc(size_bytes);
    return *memory;
}

static void output_allocator_is_called(void **state) {
    bench b;
    void *memory = NULL;
    (void)state;
    bench_open(&b);
    make_network(&b, -1);
    bench_build(&b);
    check_ok(kelp_context_set_output_allocator(b.context, 0, place, &memory));
    for (int rows = 1; rows < 4; rows++) {
        check_run(b.context, rows, weights, bias);
        assert_ptr_equal(kelp_context_output(b.context, 0)->data, memory);
    }
    free(memory);
    bench_close(&b);
}

static void stream_runs_in_order(void **state) {
    bench b;
    kelp_stream *stream = NULL;
    kelp_event *event = NULL;
    kelp_context *second = NULL;
    float x[4] = {1, 2, 3, 4}, y[3] = {0};
    (void)state;
    bench_open(&b);
    make_network(&b, 1);
    bench_build(&b);
    check_ok(kelp_context_create(b.engine, &second));
    check_ok(kelp_stream_create(b.runtime, &stream));
    check_ok(kelp_event_create(kelp_allocator_system(), &event));
    bind(b.context, 0, KELP_F32, dims(2, 1, 4), x);
    check_ok(kelp_context_set_output(b.context, 0, y, sizeof y));
    for (int i = 0; i < 100; i++)
        check_ok(kelp_context_enqueue(b.context, stream, i == 99 ? event : NULL));
    assert_true(kelp_event_wait(event, UINT64_MAX));
    check_ok(kelp_stream_synchronize(stream));
    float wanted[3];
    expected(x, weights, bias, 1, wanted);
    for (int i = 0; i < 3; i++)
        assert_float_equal(y[i], wanted[i], 1e-5);
    check_ok(kelp_context_enqueue(second, stream, NULL)); /* no input is bound */
    expect_failure(kelp_stream_synchronize(stream), KELP_FAILED_PRECONDITION, "is not bound");
    check_ok(kelp_stream_synchronize(stream));
    kelp_stream_destroy(stream);
    kelp_event_destroy(event);
    kelp_context_destroy(second);
    bench_close(&b);
}

typedef struct altered {
    size_t offset;
    char flip;
    kelp_code code;
    const char *message;
} altered;

static void modified_plans_fail(void **state) {
    bench b;
    kelp_blob *plan = NULL;
    kelp_engine *engine = NULL;
    (void)state;
    bench_open(&b);
    make_network(&b, 1);
    check_ok(kelp_builder_build(b.builder, b.network, b.config, &plan));
    size_t size = kelp_blob_size(plan);
    char *bytes = NULL;
    assert_int_equal(posix_memalign((void **)&bytes, 64, size + 64), 0);
    const altered cases[] = {
        {8, 8, KELP_FAILED_PRECONDITION, "format version 10"},
        {20, 5, KELP_FAILED_PRECONDITION, "byte order"},
        {33, 'y', KELP_INVALID_ARGUMENT, "head of the plan was altered"},
        {70, 1, KELP_INVALID_ARGUMENT, "head of the plan was altered"},
        {330, 'x', KELP_INVALID_ARGUMENT, "section 0 (information) was altered"},
        {700, 77, KELP_INVALID_ARGUMENT, "section 1 (graph) was altered"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memcpy(bytes, kelp_blob_data(plan), size);
        bytes[cases[i].offset] = (char)(bytes[cases[i].offset] ^ cases[i].flip);
        expect_failure(kelp_engine_load(b.runtime, bytes, size, "p", NULL, NULL, &engine),
                       cases[i].code, cases[i].message);
    }
    memcpy(bytes, kelp_blob_data(plan), size);
    for (size_t length = 8; length < size; length += 61)
        expect_failure(kelp_engine_load(b.runtime, bytes, length, "p", NULL, NULL, &engine),
                       KELP_INVALID_ARGUMENT, "truncated");
    expect_failure(kelp_engine_load(b.runtime, bytes, size + 1, "p", NULL, NULL, &engine),
                   KELP_INVALID_ARGUMENT, "trailing bytes");
    check_ok(kelp_engine_load(b.runtime, bytes, size, "p", NULL, NULL, &engine));
    kelp_engine_release(engine);
    free(bytes);
    kelp_blob_release(plan);
    bench_close(&b);
}

/* A plan of a model file gives exactly the results of the model file. */
static void plan_of_an_onnx_model_gives_the_results_of_the_model(void **state) {
    bench b;
    kelp_network *network = NULL;
    kelp_layer *layer = NULL;
    kelp_blob *plan = NULL;
    kelp_graph *graph = NULL;
    kelp_engine *direct = NULL;
    kelp_context *context = NULL;
    float picture[64];
    (void)state;
    bench_open(&b);
    for (int i = 0; i < 64; i++)
        picture[i] = (float)(i * 37 % 17) / 16.0f;
    check_ok(kelp_builder_parse_file(b.builder, DIGITS, &network));
    assert_int_equal(kelp_network_input_count(network), 1);
    kelp_net_tensor *y = kelp_network_output(network, 0);
    check_ok(kelp_network_add_topk(network, y, true, 1, NULL, 2, KELP_I32, &layer));
    check_ok(kelp_net_tensor_set_name(kelp_layer_output(layer, 1), "best"));
    check_ok(kelp_network_mark_output(network, kelp_layer_output(layer, 1)));
    check_ok(kelp_builder_build(b.builder, network, b.config, &plan));
    check_ok(kelp_engine_load(b.runtime, kelp_blob_data(plan), kelp_blob_size(plan), "digits",
                              free_plan, plan, &b.engine));
    check_ok(kelp_context_create(b.engine, &b.context));
    check_ok(kelp_graph_load_file(kelp_allocator_system(), DIGITS, NULL, &graph));
    check_ok(kelp_engine_create(b.runtime, graph, NULL, &direct));
    check_ok(kelp_context_create(direct, &context));
    bind(b.context, 0, KELP_F32, dims(4, 1, 1, 8, 8), picture);
    bind(context, 0, KELP_F32, dims(4, 1, 1, 8, 8), picture);
    check_ok(kelp_context_invoke(b.context));
    check_ok(kelp_context_invoke(context));
    const kelp_tensor *ours = kelp_context_output(b.context, 0),
                      *theirs = kelp_context_output(context, 0);
    assert_int_equal(kelp_tensor_bytes(ours), kelp_tensor_bytes(theirs));
    assert_memory_equal(ours->data, theirs->data, kelp_tensor_bytes(ours));
    int best = 0;
    for (int i = 1; i < 10; i++)
        if (((const float *)theirs->data)[i] > ((const float *)theirs->data)[best])
            best = i;
    assert_string_equal(kelp_engine_output(b.engine, 2)->name, "best");
    assert_int_equal(*(const int32_t *)kelp_context_output(b.context, 2)->data, best);
    kelp_context_destroy(context);
    kelp_engine_release(direct);
    kelp_graph_release(graph);
    kelp_network_release(network);
    bench_close(&b);
}

static void *run_many(void *userp) {
    kelp_engine *engine = userp;
    kelp_context *context = NULL;
    kelp_status *status = kelp_context_create(engine, &context);
    for (int turn = 0; status == NULL && turn < 200; turn++) {
        float x[20], y[15], wanted[15];
        int rows = 1 + turn % 5;
        kelp_tensor tensor;
        const int64_t shape[2] = {rows, 4};
        for (int i = 0; i < rows * 4; i++)
            x[i] = (float)((turn * 3 + i * 7) % 11) - 5.0f;
        expected(x, weights, bias, rows, wanted);
        status = kelp_tensor_init(&tensor, KELP_F32, 2, shape, x);
        if (status == NULL)
            status = kelp_context_set_input(context, 0, &tensor);
        if (status == NULL)
            status = kelp_context_set_output(context, 0, y, sizeof y);
        if (status == NULL)
            status = kelp_context_invoke(context);
        for (int i = 0; status == NULL && i < rows * 3; i++)
            if (y[i] < wanted[i] - 1e-4f || y[i] > wanted[i] + 1e-4f)
                status = KELP_ERROR(KELP_INTERNAL, "turn %d, element %d: %g, not %g", turn, i,
                                    (double)y[i], (double)wanted[i]);
    }
    kelp_context_destroy(context);
    return status;
}

static void contexts_run_concurrently(void **state) {
    bench b;
    pthread_t threads[8];
    (void)state;
    bench_open(&b);
    make_network(&b, -1);
    bench_build(&b);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, b.engine), 0);
    for (int i = 0; i < 8; i++) {
        void *status = NULL;
        pthread_join(threads[i], &status);
        check_ok(status);
    }
    bench_close(&b);
}

/* All steps from the runtime to a refitted and captured run. */
static kelp_status *whole_way(bench *b, kelp_capture **capture) {
    kelp_net_tensor *x = NULL;
    kelp_layer *w = NULL, *product = NULL, *row = NULL, *sum = NULL, *next = NULL, *last = NULL;
    kelp_loop *loop = NULL;
    kelp_blob *plan = NULL;
    kelp_tensor tensor;
    size_t profile = 0;
    static float xs[8];
    const int64_t shape[2] = {2, 4}, trips[1] = {2};
    const kelp_weights changed = {KELP_F32, weights, 12, "fc.weights"};
    KELP_TRY(kelp_builder_create(b->runtime, "cpu", &b->builder));
    KELP_TRY(kelp_builder_create_network(b->builder, &b->network));
    KELP_TRY(kelp_network_add_input(b->network, "x", KELP_F32, dims(2, -1, 4), &x));
    KELP_TRY(kelp_network_add_constant(b->network, dims(2, 4, 3),
                                       (kelp_weights){KELP_F32, weights, 12, "fc.weights"}, &w));
    KELP_TRY(kelp_network_add_matrix_multiply(b->network, x, KELP_MATRIX_NONE, out_of(w),
                                              KELP_MATRIX_NONE, &product));
    KELP_TRY(kelp_network_add_constant(b->network, dims(1, 3),
                                       (kelp_weights){KELP_F32, bias, 3, NULL}, &w));
    kelp_net_tensor *start = out_of(w);
    KELP_TRY(kelp_network_add_constant(b->network, dims(0),
                                       (kelp_weights){KELP_I64, trips, 1, NULL}, &w));
    KELP_TRY(kelp_network_add_loop(b->network, &loop));
    KELP_TRY(kelp_loop_set_trip_count(loop, out_of(w)));
    KELP_TRY(kelp_loop_add_recurrence(loop, start, &sum));
    KELP_TRY(kelp_loop_add_iterator(loop, out_of(product), 0, false, &row));
    KELP_TRY(kelp_network_add_elementwise(b->network, out_of(sum), out_of(row),
                                          KELP_ELEMENTWISE_SUM, &next));
    KELP_TRY(kelp_recurrence_set_next(sum, out_of(next)));
    KELP_TRY(kelp_loop_add_output(loop, out_of(sum), KELP_LOOP_LAST_VALUE, 0, &last));
    KELP_TRY(kelp_network_mark_output(b->network, out_of(last)));
    KELP_TRY(kelp_builder_create_config(b->builder, &b->config));
    KELP_TRY(kelp_builder_config_set_flags(b->config, KELP_BUILD_REFIT));
    KELP_TRY(kelp_builder_config_add_profile(b->config, &profile));
    for (int i = 0; i < 3; i++)
        KELP_TRY(kelp_builder_config_set_profile_shape(b->config, profile, "x",
                                                       (kelp_profile_selector)i, 2, shape));
    KELP_TRY(kelp_builder_build(b->builder, b->network, b->config, &plan));
    KELP_TRY(kelp_engine_load(b->runtime, kelp_blob_data(plan), kelp_blob_size(plan), "p",
                              free_plan, plan, &b->engine));
    KELP_TRY(kelp_context_create(b->engine, &b->context));
    KELP_TRY(kelp_tensor_init(&tensor, KELP_F32, 2, shape, xs));
    KELP_TRY(kelp_context_set_input(b->context, 0, &tensor));
    KELP_TRY(kelp_engine_refit(b->engine, &changed, 1));
    KELP_TRY(kelp_context_invoke(b->context));
    kelp_status *status = kelp_context_capture(b->context, capture);
    if (kelp_status_code(status) != KELP_FAILED_PRECONDITION)
        return status;
    kelp_status_free(status); /* the shapes of a loop depend on data */
    return NULL;
}

static void failed_allocations_are_reported(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        bench b = {0};
        kelp_capture *capture = NULL;
        test_failing_init(&memory, n);
        kelp_runtime_options options = {.struct_size = sizeof options,
                                        .allocator = test_failing_allocator(&memory),
                                        .threads = 1};
        kelp_status *status = kelp_runtime_create(&options, &b.runtime);
        if (status == NULL)
            status = whole_way(&b, &capture);
        kelp_capture_destroy(capture);
        if (b.runtime != NULL)
            bench_close(&b);
        if (test_failing_ended(&memory, status))
            break;
        /* a loop whose body cannot be planned in advance is planned when it runs */
        if (kelp_status_code(status) != KELP_RESOURCE_EXHAUSTED)
            check_ok(status);
        kelp_status_free(status);
    }
}

static void append(void *userp, const char *text, size_t length) {
    char *all = userp;
    strncat(all, text, length);
}

static void engine_lists_its_layers(void **state) {
    bench b;
    static char text[16384];
    (void)state;
    bench_open(&b);
    make_network(&b, -1);
    add_profile(&b, 1, 2, 4);
    bench_build(&b);
    check_ok(kelp_engine_inspect(b.engine, false, append, text));
    assert_non_null(strstr(text, "profile 0, x: min [1,4] opt [2,4] max [4,4]"));
    *text = '\0';
    check_ok(kelp_engine_inspect(b.engine, true, append, text));
    assert_non_null(strstr(text, "\"profiles\":[{\"x\":{\"min\":[1,4]"));
    bench_close(&b);
}

static void unknown_providers_are_reported(void **state) {
    bench b;
    kelp_builder *builder = NULL;
    (void)state;
    bench_open(&b);
    expect_failure(kelp_builder_create(b.runtime, "gpu", &builder), KELP_NOT_FOUND, "cpu, null");
    assert_string_equal(kelp_builder_provider(b.builder), "cpu");
    bench_close(&b);
}

/* Through the table of another provider: names, types and shapes are inferred, results are zeros.
 */
static void null_provider_returns_zeros(void **state) {
    bench b = {0};
    kelp_blob *plan = NULL;
    kelp_stream *stream = NULL;
    kelp_capture *capture = NULL;
    float x[8] = {1, 2, 3, 4}, y[6] = {5, 5, 5, 5, 5, 5};
    (void)state;
    check_ok(kelp_runtime_create(NULL, &b.runtime));
    check_ok(kelp_builder_create(b.runtime, "null", &b.builder));
    check_ok(kelp_builder_create_network(b.builder, &b.network));
    check_ok(kelp_builder_create_config(b.builder, &b.config));
    make_network(&b, -1);
    expect_failure(kelp_builder_config_set_flags(b.config, KELP_BUILD_REFIT), KELP_UNIMPLEMENTED,
                   "provider 'null' does not support builder flag REFIT");
    bench_build(&b);
    assert_string_equal(kelp_engine_provider_name(b.engine), "null");
    expect_failure(kelp_context_invoke(b.context), KELP_FAILED_PRECONDITION, "'x'");
    bind(b.context, 0, KELP_F32, dims(2, 2, 4), x);
    check_ok(kelp_context_set_output(b.context, 0, y, sizeof y));
    check_ok(kelp_context_invoke(b.context));
    const kelp_tensor *output = kelp_context_output(b.context, 0);
    assert_int_equal(output->shape[0], 2);
    assert_int_equal(output->shape[1], 3);
    assert_ptr_equal(output->data, y);
    assert_float_equal(y[5], 0, 0);
    check_ok(kelp_context_set_output(b.context, 0, y, 4));
    expect_failure(kelp_context_invoke(b.context), KELP_OUT_OF_RANGE, "output 'y' is too small");
    expect_failure(kelp_context_capture(b.context, &capture), KELP_UNIMPLEMENTED,
                   "engines of provider 'null' have no recordings");
    expect_failure(kelp_engine_refit(b.engine, NULL, 0), KELP_UNIMPLEMENTED, "no refitting");
    check_ok(kelp_stream_create(b.runtime, &stream));
    check_ok(kelp_context_set_output(b.context, 0, NULL, 0));
    check_ok(kelp_context_enqueue(b.context, stream, NULL));
    check_ok(kelp_stream_synchronize(stream));
    kelp_stream_destroy(stream);
    static const char broken[] = "KELPNULL{\"inputs\":[{\"name\":1}]}";
    kelp_engine *engine = NULL;
    expect_failure(kelp_engine_load(b.runtime, broken, sizeof broken - 1, "b", NULL, NULL, &engine),
                   KELP_INVALID_ARGUMENT, "b: expected a tensor with a name");
    kelp_blob_release(plan);
    bench_close(&b);
}

static void plans_of_the_null_provider_keep_profiles(void **state) {
    bench b = {0};
    kelp_engine *engine = NULL;
    kelp_shape shape;
    float x[12] = {0};
    kelp_tensor tensor;
    const int64_t three[2] = {3, 4};
    (void)state;
    check_ok(kelp_runtime_create(NULL, &b.runtime));
    check_ok(kelp_builder_create(b.runtime, "null", &b.builder));
    check_ok(kelp_builder_create_network(b.builder, &b.network));
    check_ok(kelp_builder_create_config(b.builder, &b.config));
    make_network(&b, -1);
    add_profile(&b, 1, 1, 2);
    add_profile(&b, 3, 4, 8);
    bench_build(&b);
    assert_int_equal(kelp_engine_profile_count(b.engine), 2);
    for (int which = 0; which < 3; which++) {
        static const int64_t rows[2][3] = {{1, 1, 2}, {3, 4, 8}};
        for (size_t i = 0; i < 2; i++) {
            assert_true(kelp_engine_profile_shape(b.engine, i, 0, which, &shape));
            assert_int_equal(shape.rank, 2);
            assert_int_equal(shape.d[0], rows[i][which]);
            assert_int_equal(shape.d[1], 4);
        }
    }
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 2, three, x));
    expect_failure(kelp_context_set_input(b.context, 0, &tensor), KELP_INVALID_ARGUMENT,
                   "profile 0: expected from [1,4] to [2,4], found [3,4]; profile 1 accepts it");
    bind(b.context, 0, KELP_F32, dims(2, 2, 4), x);
    check_ok(kelp_context_invoke(b.context));
    check_ok(kelp_context_set_profile(b.context, 1));
    expect_failure(kelp_context_invoke(b.context), KELP_FAILED_PRECONDITION, "'x'");
    bind(b.context, 0, KELP_F32, dims(2, 3, 4), x);
    check_ok(kelp_context_invoke(b.context));
    assert_int_equal(kelp_context_output(b.context, 0)->shape[0], 3);
    static const char broken[] = "KELPNULL{\"inputs\":[{\"name\":\"x\",\"type\":\"float32\","
                                 "\"shape\":[-1]}],\"profiles\":[{\"x\":{\"min\":[1]}}]}";
    expect_failure(kelp_engine_load(b.runtime, broken, sizeof broken - 1, "b", NULL, NULL, &engine),
                   KELP_INVALID_ARGUMENT, "b: expected 'opt'");
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_plan_can_be_loaded),
        cmocka_unit_test(parents_can_be_released_first),
        cmocka_unit_test(shapes_outside_the_profile_fail),
        cmocka_unit_test(invalid_profiles_fail),
        cmocka_unit_test(workspace_limit_applies),
        cmocka_unit_test(build_can_be_cancelled),
        cmocka_unit_test(refit_equals_a_rebuild),
        cmocka_unit_test(only_marked_weights_can_be_refitted),
        cmocka_unit_test(captured_run_gives_the_same_results),
        cmocka_unit_test(recording_ends_with_a_refit),
        cmocka_unit_test(output_allocator_is_called),
        cmocka_unit_test(stream_runs_in_order),
        cmocka_unit_test(modified_plans_fail),
        cmocka_unit_test(plan_of_an_onnx_model_gives_the_results_of_the_model),
        cmocka_unit_test(engine_lists_its_layers),
        cmocka_unit_test(unknown_providers_are_reported),
        cmocka_unit_test(contexts_run_concurrently),
        cmocka_unit_test(failed_allocations_are_reported),
        cmocka_unit_test(null_provider_returns_zeros),
        cmocka_unit_test(plans_of_the_null_provider_keep_profiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
