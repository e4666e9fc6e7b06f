/* SPDX-License-Identifier: Apache-2.0 */
/* The engine through the public interface: load, bind, invoke; changing shapes; outputs in memory
 * of the caller; errors; repeated runs do not allocate. */
#include "support/failing_allocator.h"

#include <kelp/engine.h>

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

#define DIGITS KELP_SOURCE_DIR "/examples/models/digits/1/model.onnx"
#define MODELS KELP_TEST_DATA "/models/"

typedef struct session {
    kelp_runtime *runtime;
    kelp_graph *graph;
    kelp_engine *engine;
    kelp_context *context;
} session;

static kelp_status *open_session(session *s, const char *path, kelp_allocator allocator,
                                 int threads) {
    kelp_runtime_options options = {
        .struct_size = sizeof options, .allocator = allocator, .threads = threads};
    *s = (session){0};
    KELP_TRY(kelp_runtime_create(&options, &s->runtime));
    KELP_TRY(kelp_graph_load_file(allocator, path, NULL, &s->graph));
    KELP_TRY(kelp_engine_create(s->runtime, s->graph, NULL, &s->engine));
    return kelp_context_create(s->engine, &s->context);
}

/* Parents are released first: children keep references. */
static void close_session(session *s) {
    kelp_runtime_release(s->runtime);
    kelp_graph_release(s->graph);
    kelp_engine_release(s->engine);
    kelp_context_destroy(s->context);
}

static void picture(float *data, int64_t batch) {
    for (int64_t i = 0; i < batch * 64; i++)
        data[i] = (float)((i * 37 + i / 64 * 11) % 17) / 16.0f;
}

static kelp_status *bind_pictures(kelp_context *context, float *data, int64_t batch) {
    kelp_tensor tensor;
    const int64_t shape[4] = {batch, 1, 8, 8};
    KELP_TRY(kelp_tensor_init(&tensor, KELP_F32, 4, shape, data));
    return kelp_context_set_input(context, 0, &tensor);
}

typedef struct watch {
    size_t asked, stop_at; /* 0: never */
    size_t done, total;
} watch;

static bool stop_at(void *userp) {
    watch *w = userp;
    return ++w->asked == w->stop_at;
}

static bool on_progress(void *userp, size_t done, size_t total) {
    watch *w = userp;
    w->asked++;
    assert_true(done >= w->done && done <= total);
    w->done = done;
    w->total = total;
    return w->asked != w->stop_at;
}

/* The interrupt callback is polled between nodes. An interrupted context can run again. */
static void invoke_can_be_interrupted(void **state) {
    (void)state;
    session s;
    float data[64];
    watch w = {0};
    check_ok(open_session(&s, DIGITS, kelp_allocator_system(), 1));
    picture(data, 1);
    check_ok(bind_pictures(s.context, data, 1));
    kelp_context_set_interrupt(s.context, stop_at, &w);
    check_ok(kelp_context_invoke(s.context));
    assert_true(w.asked > 1);
    w = (watch){.stop_at = w.asked};
    expect_failure(kelp_context_invoke(s.context), KELP_CANCELLED, "was cancelled");
    check_ok(kelp_context_invoke(s.context));
    kelp_context_set_interrupt(s.context, NULL, NULL);
    check_ok(kelp_context_invoke(s.context));
    close_session(&s);
}

static void loading_reports_progress(void **state) {
    (void)state;
    session s;
    watch w = {0};
    kelp_engine_options options = {
        .struct_size = sizeof options, .progress = on_progress, .progress_userp = &w};
    kelp_engine *engine = NULL;
    check_ok(open_session(&s, DIGITS, kelp_allocator_system(), 1));
    check_ok(kelp_engine_create(s.runtime, s.graph, &options, &engine));
    kelp_engine_release(engine);
    assert_true(w.total > 1);
    assert_int_equal(w.done, w.total);
    for (size_t n = w.asked; n > 0; n--) {
        w = (watch){.stop_at = n};
        expect_failure(kelp_engine_create(s.runtime, s.graph, &options, &engine), KELP_CANCELLED,
                       "was cancelled");
    }
    close_session(&s);
}

static void inputs_and_outputs_have_their_names(void **state) {
    (void)state;
    session s;
    check_ok(open_session(&s, DIGITS, kelp_allocator_system(), 1));
    assert_int_equal(kelp_engine_input_count(s.engine), 1);
    assert_int_equal(kelp_engine_output_count(s.engine), 2);
    const kelp_io_info *image = kelp_engine_input(s.engine, 0);
    assert_string_equal(image->name, "image");
    assert_int_equal(image->dtype, KELP_F32);
    assert_int_equal(image->rank, 4);
    assert_int_equal(image->shape[0], -1);
    assert_string_equal(image->symbols[0], "batch");
    assert_int_equal(image->shape[3], 8);
    assert_int_equal(kelp_engine_find_output(s.engine, "digit"), 1);
    assert_true(kelp_engine_find_output(s.engine, "nothing") == SIZE_MAX);
    close_session(&s);
}

/* Each picture of a batch gives the same result as alone, in every batch size and in repeated runs.
 */
static void batches_give_the_results_of_single_items(void **state) {
    (void)state;
    session s;
    float pictures[7 * 64], alone[7][10];
    picture(pictures, 7);
    check_ok(open_session(&s, DIGITS, kelp_allocator_system(), 2));
    for (int i = 0; i < 7; i++) {
        check_ok(bind_pictures(s.context, pictures + i * 64, 1));
        check_ok(kelp_context_invoke(s.context));
        const kelp_tensor *probabilities = kelp_context_output(s.context, 0);
        assert_int_equal(probabilities->rank, 2);
        assert_int_equal(probabilities->shape[0], 1);
        memcpy(alone[i], probabilities->data, sizeof alone[i]);
        double sum = 0;
        for (int k = 0; k < 10; k++)
            sum += (double)alone[i][k];
        assert_true(fabs(sum - 1.0) < 1e-5);
    }
    for (int round = 0; round < 2; round++) {
        check_ok(bind_pictures(s.context, pictures, 7));
        check_ok(kelp_context_invoke(s.context));
        const kelp_tensor *probabilities = kelp_context_output(s.context, 0);
        assert_int_equal(probabilities->shape[0], 7);
        const float *found = probabilities->data;
        for (int i = 0; i < 70; i++)
            assert_true(fabsf(found[i] - alone[i / 10][i % 10]) < 1e-5f);
    }
    close_session(&s);
}

static void outputs_are_written_to_the_memory_of_the_caller(void **state) {
    (void)state;
    session s;
    float pictures[2 * 64], own[20], room[21];
    char unaligned[2 * 8 + 1];
    picture(pictures, 2);
    check_ok(open_session(&s, DIGITS, kelp_allocator_system(), 1));
    check_ok(bind_pictures(s.context, pictures, 2));
    check_ok(kelp_context_invoke(s.context));
    memcpy(own, kelp_context_output(s.context, 0)->data, sizeof own);
    int64_t digits[2];
    memcpy(digits, kelp_context_output(s.context, 1)->data, sizeof digits);
    room[20] = 42.0f;
    check_ok(kelp_context_set_output(s.context, 0, room, 80));
    check_ok(kelp_context_set_output(s.context, 1, unaligned + 1, 16));
    check_ok(kelp_context_invoke(s.context));
    assert_ptr_equal(kelp_context_output(s.context, 0)->data, room);
    assert_memory_equal(room, own, sizeof own);
    assert_memory_equal(unaligned + 1, digits, sizeof digits);
    assert_true(room[20] == 42.0f);
    check_ok(kelp_context_set_output(s.context, 0, room, 79));
    expect_failure(kelp_context_invoke(s.context), KELP_OUT_OF_RANGE,
                   "'probabilities' is too small: expected 80 bytes, found 79");
    check_ok(kelp_context_set_output(s.context, 0, NULL, 0));
    check_ok(kelp_context_invoke(s.context));
    assert_memory_equal(kelp_context_output(s.context, 0)->data, own, sizeof own);
    close_session(&s);
}

/* Inputs: a sequence of two and a tensor. Outputs: a sequence of three, and its concatenation. */
static void sequences_can_be_inputs_and_outputs(void **state) {
    (void)state;
    session s;
    float data[3][2] = {{1, 2}, {3, 4}, {-5, 6}};
    const int64_t two = 2;
    kelp_tensor items[2], list, x;
    check_ok(open_session(&s, MODELS "lists.onnx", kelp_allocator_system(), 1));
    assert_int_equal(kelp_engine_input(s.engine, 0)->dtype, KELP_LIST);
    assert_int_equal(kelp_engine_input(s.engine, 0)->rank, 1);
    for (int i = 0; i < 2; i++)
        check_ok(kelp_tensor_init(&items[i], KELP_F32, 1, &two, data[i]));
    check_ok(kelp_tensor_init(&list, KELP_LIST, 1, &two, items));
    check_ok(kelp_tensor_init(&x, KELP_F32, 1, &two, data[2]));
    check_ok(kelp_context_set_input(s.context, 0, &list));
    check_ok(kelp_context_set_input(s.context, 1, &x));
    for (int round = 0; round < 2; round++) {
        check_ok(kelp_context_invoke(s.context));
        const kelp_tensor *longer = kelp_context_output(s.context, 0);
        const kelp_tensor *joined = kelp_context_output(s.context, 1);
        const float expected[6] = {1, 2, 3, 4, 5, 6};
        assert_int_equal(longer->dtype, KELP_LIST);
        assert_int_equal(longer->shape[0], 3);
        for (int i = 0; i < 3; i++)
            assert_memory_equal(((const kelp_tensor *)longer->data)[i].data, expected + 2 * i, 8);
        assert_int_equal(joined->shape[0], 6);
        assert_memory_equal(joined->data, expected, sizeof expected);
    }
    close_session(&s);
}

static void malformed_sequences_fail(void **state) {
    (void)state;
    session s;
    float data[4] = {1, 2, 3, 4};
    const int64_t two = 2;
    kelp_tensor items[2], list, x;
    check_ok(open_session(&s, MODELS "lists.onnx", kelp_allocator_system(), 1));
    check_ok(kelp_tensor_init(&x, KELP_F32, 1, &two, data));
    expect_failure(kelp_context_set_input(s.context, 0, &x), KELP_INVALID_ARGUMENT,
                   "input 's' has the wrong type: expected list, found float32");
    check_ok(kelp_tensor_init(&list, KELP_LIST, 1, &two, items));
    items[0] = x;
    check_ok(kelp_tensor_init(&items[1], KELP_I32, 1, &two, data));
    expect_failure(kelp_context_set_input(s.context, 0, &list), KELP_INVALID_ARGUMENT,
                   "element 1 has the wrong type: expected float32, found int32");
    check_ok(kelp_tensor_init(&items[1], KELP_F32, 1, &two, (char *)data + 1));
    expect_failure(kelp_context_set_input(s.context, 0, &list), KELP_INVALID_ARGUMENT,
                   "element 1 of the list must be compact, aligned");
    check_ok(kelp_tensor_init(&items[1], KELP_F32, 1, &two, NULL));
    expect_failure(kelp_context_set_input(s.context, 0, &list), KELP_INVALID_ARGUMENT,
                   "element 1 of the list must be");
    DLTensor dl;
    expect_failure(kelp_tensor_to_dl(&list, &dl), KELP_UNIMPLEMENTED, "list");
    close_session(&s);
}

static void strided_inputs_are_read(void **state) {
    (void)state;
    session s;
    float pictures[64], expected[10];
    char bytes[64 * 4 + 1];
    picture(pictures, 1);
    memcpy(bytes + 1, pictures, sizeof pictures);
    check_ok(open_session(&s, DIGITS, kelp_allocator_system(), 1));
    check_ok(bind_pictures(s.context, pictures, 1));
    check_ok(kelp_context_invoke(s.context));
    memcpy(expected, kelp_context_output(s.context, 0)->data, sizeof expected);
    kelp_tensor tensor;
    const int64_t shape[4] = {1, 1, 8, 8};
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 4, shape, bytes + 1));
    check_ok(kelp_context_set_input(s.context, 0, &tensor));
    for (int i = 0; i < 3; i++) {
        check_ok(kelp_context_invoke(s.context));
        assert_memory_equal(kelp_context_output(s.context, 0)->data, expected, sizeof expected);
    }
    close_session(&s);
}

static void wrong_inputs_are_reported(void **state) {
    (void)state;
    session s;
    float data[64] = {0};
    kelp_tensor tensor;
    const int64_t shape[4] = {1, 1, 8, 7}, flat[1] = {64}, good[4] = {1, 1, 8, 8};
    check_ok(open_session(&s, DIGITS, kelp_allocator_system(), 1));
    expect_failure(kelp_context_invoke(s.context), KELP_FAILED_PRECONDITION,
                   "input 'image' (float32) is not bound");
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 4, shape, data));
    expect_failure(kelp_context_set_input(s.context, 0, &tensor), KELP_INVALID_ARGUMENT,
                   "input 'image' has the wrong shape: expected [-1,1,8,8], found [1,1,8,7]");
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 1, flat, data));
    expect_failure(kelp_context_set_input(s.context, 0, &tensor), KELP_INVALID_ARGUMENT,
                   "expected [-1,1,8,8], found [64]");
    check_ok(kelp_tensor_init(&tensor, KELP_I32, 4, good, data));
    expect_failure(kelp_context_set_input(s.context, 0, &tensor), KELP_INVALID_ARGUMENT,
                   "input 'image' has the wrong type: expected float32, found int32");
    expect_failure(kelp_context_set_input(s.context, 1, &tensor), KELP_INVALID_ARGUMENT,
                   "there is no input 1");
    close_session(&s);
}

/* Runs with shapes that were used before do not allocate, also if the shapes alternate. */
static void repeated_invoke_does_not_allocate(void **state) {
    (void)state;
    test_failing memory;
    session s;
    float pictures[5 * 64];
    picture(pictures, 5);
    test_failing_init(&memory, 0);
    check_ok(open_session(&s, DIGITS, test_failing_allocator(&memory), 2));
    for (int64_t batch = 1; batch <= 5; batch++) {
        check_ok(bind_pictures(s.context, pictures, batch));
        check_ok(kelp_context_invoke(s.context));
    }
    uint64_t before = memory.calls;
    for (int round = 0; round < 20; round++) {
        check_ok(bind_pictures(s.context, pictures, round % 5 + 1));
        check_ok(kelp_context_invoke(s.context));
    }
    assert_int_equal(memory.calls, before);
    close_session(&s);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

/* A context keeps a bounded number of plans, for any number of shapes. */
static void changing_shapes_do_not_grow_memory(void **state) {
    (void)state;
    test_failing memory;
    session s;
    static float pictures[64 * 64];
    picture(pictures, 64);
    test_failing_init(&memory, 0);
    check_ok(open_session(&s, DIGITS, test_failing_allocator(&memory), 1));
    size_t after_first = 0;
    for (int round = 0; round < 4; round++) {
        for (int64_t batch = 1; batch <= 64; batch++) {
            check_ok(bind_pictures(s.context, pictures, batch));
            check_ok(kelp_context_invoke(s.context));
        }
        if (round == 0)
            after_first = memory.live_bytes;
        assert_true(memory.live_bytes <= after_first);
    }
    close_session(&s);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

/* Every allocation of load, create and invoke fails once: an error without a leak. */
static void failed_allocations_are_reported(void **state) {
    (void)state;
    float pictures[2 * 64];
    bool workspace = false, output = false; /* the error names the user of the memory */
    picture(pictures, 2);
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        session s;
        char text[512];
        test_failing_init(&memory, n);
        kelp_status *status = open_session(&s, DIGITS, test_failing_allocator(&memory), 2);
        if (status == NULL)
            status = bind_pictures(s.context, pictures, 2);
        if (status == NULL)
            status = kelp_context_invoke(s.context);
        close_session(&s);
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        if (!failed) {
            check_ok(status);
            assert_true(n > 20);
            break;
        }
        kelp_status_format(status, text, sizeof text);
        workspace = workspace || strstr(text, "needs a workspace of ") != NULL;
        output = output || strstr(text, "output 'digit' needs ") != NULL;
        expect_failure(status, KELP_RESOURCE_EXHAUSTED, "");
    }
    assert_true(workspace && output);
}

/* ---- several contexts at once ---- */
typedef struct job {
    kelp_engine *engine;
    const float *expected;
    int64_t batch;
    float *pictures;
    bool agrees;
} job;

static void *run_job(void *userp) {
    job *j = userp;
    kelp_context *context = NULL;
    kelp_status *status = kelp_context_create(j->engine, &context);
    for (int i = 0; status == NULL && i < 30; i++) {
        status = bind_pictures(context, j->pictures, j->batch);
        if (status == NULL)
            status = kelp_context_invoke(context);
        const float *found = status ? NULL : kelp_context_output(context, 0)->data;
        for (int64_t k = 0; found != NULL && k < j->batch * 10; k++)
            j->agrees = j->agrees && fabsf(found[k] - j->expected[k]) < 1e-5f;
    }
    j->agrees = j->agrees && status == NULL;
    kelp_status_free(status);
    kelp_context_destroy(context);
    return NULL;
}

static void concurrent_contexts_share_an_engine(void **state) {
    (void)state;
    session s;
    float pictures[8 * 64], expected[80];
    pthread_t threads[8];
    job jobs[8];
    picture(pictures, 8);
    check_ok(open_session(&s, DIGITS, kelp_allocator_system(), 2));
    check_ok(bind_pictures(s.context, pictures, 8));
    check_ok(kelp_context_invoke(s.context));
    memcpy(expected, kelp_context_output(s.context, 0)->data, sizeof expected);
    for (int i = 0; i < 8; i++) {
        jobs[i] = (job){s.engine, expected, i + 1, pictures, true};
        assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_true(jobs[i].agrees);
    }
    close_session(&s);
}

/* ---- shape arithmetic and data-dependent shapes ---- */
static void shape_arithmetic_is_removed_by_planning(void **state) {
    (void)state;
    session s;
    check_ok(open_session(&s, MODELS "dynamic_reshape.onnx", kelp_allocator_system(), 1));
    for (size_t i = 0; i < kelp_engine_input_count(s.engine); i++) {
        const kelp_io_info *info = kelp_engine_input(s.engine, i);
        int64_t shape[KELP_MAX_RANK];
        for (int32_t axis = 0; axis < info->rank; axis++)
            shape[axis] = info->shape[axis] < 0 ? 3 : info->shape[axis];
        kelp_tensor tensor;
        check_ok(kelp_tensor_init(&tensor, info->dtype, info->rank, shape, NULL));
        static int64_t zeros[1024];
        assert_true(kelp_tensor_bytes(&tensor) <= sizeof zeros);
        tensor.data = zeros;
        check_ok(kelp_context_set_input(s.context, i, &tensor));
    }
    check_ok(kelp_context_prepare(s.context));
    kelp_plan_stats stats = kelp_context_plan_stats(s.context);
    assert_true(stats.folded > 0);
    assert_int_equal(stats.dynamic_steps, 0);
    assert_true(stats.workspace_bytes >= stats.workspace_lower_bound_bytes);
    close_session(&s);
}

static void fusion_does_not_change_results(void **state) {
    (void)state;
    session s;
    float pictures[3 * 64], fused[30];
    picture(pictures, 3);
    check_ok(open_session(&s, DIGITS, kelp_allocator_system(), 1));
    check_ok(bind_pictures(s.context, pictures, 3));
    check_ok(kelp_context_invoke(s.context));
    memcpy(fused, kelp_context_output(s.context, 0)->data, sizeof fused);
    kelp_engine_stats with = kelp_engine_get_stats(s.engine);
    kelp_engine *plain = NULL;
    kelp_context *context = NULL;
    kelp_engine_options options = {.struct_size = sizeof options, .disable_fusion = 1};
    check_ok(kelp_engine_create(s.runtime, s.graph, &options, &plain));
    check_ok(kelp_context_create(plain, &context));
    check_ok(bind_pictures(context, pictures, 3));
    check_ok(kelp_context_invoke(context));
    const float *found = kelp_context_output(context, 0)->data;
    for (int i = 0; i < 30; i++)
        assert_true(fabsf(found[i] - fused[i]) < 1e-6f);
    assert_true(with.nodes_planned < kelp_engine_get_stats(plain).nodes_planned);
    kelp_context_destroy(context);
    kelp_engine_release(plain);
    close_session(&s);
}

static void providers_are_enumerated_and_checked(void **state) {
    kelp_runtime *runtime = NULL;
    kelp_provider_info info = {0};
    uint32_t offers = 0;
    size_t count = 0;
    (void)state;
    check_ok(kelp_runtime_create(NULL, &runtime));
    for (; kelp_runtime_provider_at(runtime, count, &info); count++)
        if (strcmp(info.name, "cpu") == 0)
            offers = info.offers;
    assert_true(count > 1);
    assert_false(kelp_runtime_provider_at(runtime, SIZE_MAX, &info));
    assert_int_equal(offers, KELP_OFFERS_SUBGRAPHS | KELP_OFFERS_MODELS | KELP_OFFERS_ENGINES);
    check_ok(kelp_runtime_check_provider(runtime, "cpu"));
    expect_failure(kelp_runtime_check_provider(runtime, "nobody"), KELP_NOT_FOUND,
                   "no provider 'nobody' is registered");
    kelp_runtime_release(runtime);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_and_outputs_have_their_names),
        cmocka_unit_test(providers_are_enumerated_and_checked),
        cmocka_unit_test(invoke_can_be_interrupted),
        cmocka_unit_test(loading_reports_progress),
        cmocka_unit_test(batches_give_the_results_of_single_items),
        cmocka_unit_test(outputs_are_written_to_the_memory_of_the_caller),
        cmocka_unit_test(sequences_can_be_inputs_and_outputs),
        cmocka_unit_test(malformed_sequences_fail),
        cmocka_unit_test(strided_inputs_are_read),
        cmocka_unit_test(wrong_inputs_are_reported),
        cmocka_unit_test(repeated_invoke_does_not_allocate),
        cmocka_unit_test(changing_shapes_do_not_grow_memory),
        cmocka_unit_test(failed_allocations_are_reported),
        cmocka_unit_test(concurrent_contexts_share_an_engine),
        cmocka_unit_test(shape_arithmetic_is_removed_by_planning),
        cmocka_unit_test(fusion_does_not_change_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
