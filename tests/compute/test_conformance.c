/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compute providers, one suite for each: artifacts, life cycle, shapes, placement, batches,
 * streams, forks, errors. The arguments are the name of the provider and, for the provider of
 * kernels, a library. Shapes that a provider knows only after an inference, and messages of other
 * libraries, are not checked. Every provider gets a model with one float32 input.
 */
#include "support/failing_allocator.h"

#include <kelp/compute.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/check_status.h"

#define DIGITS KELP_SOURCE_DIR "/examples/models/digits/1/model.onnx"

/* The model of a provider: items of 64 elements to `output_dim` values between 0 and 1. */
static struct subject {
    const char *provider, *path, *input, *output;
    int32_t rank;   /* of the input, whose first dimension is the batch */
    size_t outputs; /* the first is float32, a second int64 */
    int64_t output_dim;
    char *bytes; /* of the file at `path` */
    size_t size_bytes;
} subject;

static void open_model(kelp_runtime **out_runtime, kelp_compute_model **out_model) {
    kelp_artifact artifact = {.path = subject.path};
    check_ok(kelp_runtime_create(NULL, out_runtime));
    check_ok(kelp_compute_load(*out_runtime, subject.provider, &artifact, out_model));
    check_ok(kelp_compute_init(*out_model));
}

static void close_model(kelp_runtime *runtime, kelp_compute_model *model) {
    kelp_compute_destroy(model);
    kelp_runtime_release(runtime);
}

static void make_input(kelp_tensor *tensor, float *data, int64_t batch) {
    const int64_t image[4] = {batch, 1, 8, 8}, rows[2] = {batch, 64};
    for (int64_t i = 0; i < batch * 64; i++)
        data[i] = (float)(i % 13) / 13.0f;
    check_ok(
        kelp_tensor_init(tensor, KELP_F32, subject.rank, subject.rank == 4 ? image : rows, data));
}

static void count_release(void *userp) {
    ++*(int *)userp;
}

/* Bytes are shared by their users and released once, also after errors. */
static void bytes_are_released_once(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model = NULL;
    float data[64];
    kelp_tensor input, outputs[2] = {0};
    int released = 0;
    static const char rubbish[] = "no model, nor the name of one";
    kelp_artifact good = {.data = subject.bytes,
                          .size_bytes = subject.size_bytes,
                          .label = "good.bin",
                          .release = count_release,
                          .userp = &released},
                  bad = good;
    bad.data = rubbish;
    bad.size_bytes = sizeof rubbish - 1;
    bad.label = "bad.bin";
    check_ok(kelp_runtime_create(NULL, &runtime));
    expect_failure(kelp_compute_load(runtime, subject.provider, &bad, &model),
                   KELP_INVALID_ARGUMENT, "bad.bin");
    assert_int_equal(released, 1);
    expect_failure(kelp_compute_load(runtime, "abacus", &good, &model), KELP_NOT_FOUND, "abacus");
    assert_int_equal(released, 2);
    check_ok(kelp_compute_load(runtime, subject.provider, &good, &model));
    check_ok(kelp_compute_init(model));
    make_input(&input, data, 1);
    kelp_infer_item item = {.inputs = &input, .outputs = outputs};
    check_ok(kelp_compute_infer_one(model, &item));
    assert_int_equal(outputs[0].rank, 2);
    close_model(runtime, model);
    assert_int_equal(released, 3);
}

static void calls_before_init_fail(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model, *fork = NULL;
    float data[64];
    kelp_tensor input, outputs[2] = {0};
    open_model(&runtime, &model);
    make_input(&input, data, 1);
    check_ok(kelp_compute_fork(model, &fork));
    kelp_infer_item item = {.inputs = &input, .outputs = outputs};
    expect_failure(kelp_compute_infer_one(fork, &item), KELP_FAILED_PRECONDITION,
                   "not initialized");
    expect_failure(kelp_compute_infer_batch(fork, &item, 1, KELP_BATCH_EACH),
                   KELP_FAILED_PRECONDITION, "not initialized");
    check_ok(kelp_compute_init(fork));
    check_ok(kelp_compute_infer_one(fork, &item));
    kelp_compute_destroy(fork);
    close_model(runtime, model);
}

static void metadata_describes_the_model(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model;
    open_model(&runtime, &model);
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(model);
    assert_int_equal(metadata->input_count, 1);
    assert_int_equal(metadata->output_count, subject.outputs);
    assert_string_equal(metadata->inputs[0].name, subject.input);
    assert_int_equal(metadata->inputs[0].dtype, KELP_F32);
    assert_int_equal(metadata->inputs[0].rank, subject.rank);
    assert_int_equal(metadata->inputs[0].shape[0], -1);
    assert_string_equal(metadata->outputs[0].name, subject.output);
    if (subject.outputs == 2)
        assert_int_equal(metadata->outputs[1].dtype, KELP_I64);
    close_model(runtime, model);
}

static void output_shapes_are_known_before_inference(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model;
    float data[3 * 64];
    kelp_tensor input, outputs[2] = {0};
    open_model(&runtime, &model);
    make_input(&input, data, 3);
    kelp_infer_item item = {.inputs = &input, .outputs = outputs};
    check_ok(kelp_compute_infer_shapes(model, &item));
    float room[3 * 64];
    int64_t count = 3 * subject.output_dim;
    memset(room, 0xff, sizeof room);
    if (outputs[0].rank == -1) { /* known only after an inference */
        const int64_t shape[2] = {3, subject.output_dim};
        check_ok(kelp_tensor_init(&outputs[0], KELP_F32, 2, shape, NULL));
        outputs[1] = (kelp_tensor){0};
    } else {
        assert_int_equal(outputs[0].rank, 2);
        assert_int_equal(outputs[0].shape[0], 3);
        assert_int_equal(outputs[0].shape[1], subject.output_dim);
        assert_null(outputs[0].data);
        if (subject.outputs == 2)
            assert_int_equal(outputs[1].shape[0], 3);
    }
    outputs[0].data = room;
    check_ok(kelp_compute_infer_one(model, &item));
    assert_ptr_equal(outputs[0].data, room);
    for (int64_t i = 0; i < count; i++)
        assert_true(room[i] >= 0.0f && room[i] <= 1.0f);
    if (subject.outputs == 2)
        assert_non_null(outputs[1].data);
    close_model(runtime, model);
}

/* Strided tensors are copied; unreadable or unwritable tensors and too small outputs fail. */
static void strided_tensors_are_copied_and_unreadable_tensors_fail(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model;
    float data[64], wide[128] = {0}, first[64], room[1];
    kelp_tensor input, gaps, outputs[2] = {0};
    open_model(&runtime, &model);
    make_input(&input, data, 1);
    for (int i = 0; i < 64; i++)
        wide[2 * i] = data[i];
    kelp_infer_item item = {.inputs = &input, .outputs = outputs};
    check_ok(kelp_compute_infer_one(model, &item));
    size_t bytes = (size_t)subject.output_dim * sizeof *first;
    memcpy(first, outputs[0].data, bytes);

    gaps = input;
    gaps.data = wide;
    for (int32_t axis = subject.rank - 1, step = 2; axis >= 0; axis--) {
        gaps.strides[axis] = step;
        step *= (int32_t)gaps.shape[axis];
    }
    memset(outputs, 0, sizeof outputs);
    item.inputs = &gaps;
    check_ok(kelp_compute_infer_one(model, &item));
    assert_memory_equal(outputs[0].data, first, bytes);

    gaps = input;
    gaps.device = (DLDevice){kDLCUDA, 0};
    expect_failure(kelp_compute_infer_one(model, &item), KELP_UNIMPLEMENTED, subject.input);
    const int64_t one = 1;
    memset(outputs, 0, sizeof outputs);
    check_ok(kelp_tensor_init(&outputs[0], KELP_F32, 1, &one, room));
    item.inputs = &input;
    expect_failure(kelp_compute_infer_one(model, &item), KELP_OUT_OF_RANGE, subject.output);
    close_model(runtime, model);
}

/* Asynchronously, in order, with the results of a call. */
static void streams_give_the_results_of_calls(void **state) {
    (void)state;
    enum { COUNT = 4 };
    kelp_runtime *runtime;
    kelp_compute_model *model;
    kelp_compute_stream *stream = NULL;
    float data[64], rooms[COUNT][64], first[64];
    kelp_tensor input, outputs[2] = {0}, later[COUNT][2] = {0};
    kelp_infer_item items[COUNT];
    open_model(&runtime, &model);
    make_input(&input, data, 1);
    kelp_infer_item item = {.inputs = &input, .outputs = outputs};
    check_ok(kelp_compute_infer_one(model, &item));
    size_t bytes = (size_t)subject.output_dim * sizeof *first;
    memcpy(first, outputs[0].data, bytes);
    check_ok(kelp_compute_stream_create(model, COUNT, &stream));
    expect_failure(kelp_compute_infer_one(model, &item), KELP_FAILED_PRECONDITION, "stream");
    for (int i = 0; i < COUNT; i++) {
        const int64_t shape[2] = {1, subject.output_dim};
        check_ok(kelp_tensor_init(&later[i][0], KELP_F32, 2, shape, rooms[i]));
        items[i] = (kelp_infer_item){.inputs = &input, .outputs = later[i]};
        check_ok(kelp_compute_submit(stream, &items[i], NULL));
    }
    check_ok(kelp_compute_drain(model));
    for (int i = 0; i < COUNT; i++) {
        check_ok(items[i].status);
        assert_memory_equal(rooms[i], first, bytes);
    }
    kelp_compute_stream_destroy(stream);
    check_ok(kelp_compute_infer_one(model, &item));
    close_model(runtime, model);
}

/* Asynchronous kernels run on threads of their own, several at once. */
static void submissions_of_an_asynchronous_kernel_overlap(void **state) {
    (void)state;
    enum { COUNT = 8, ROUNDS = 20 };
    kelp_runtime *runtime = NULL;
    kelp_compute_model *model = NULL;
    kelp_compute_stream *stream = NULL;
    char text[4096];
    double values[COUNT][3], sums[COUNT];
    kelp_tensor in[COUNT], out[COUNT];
    kelp_infer_item items[COUNT];
    kelp_event *last = NULL;
    const int64_t three = 3;
    if (strcmp(subject.provider, "kernels") != 0)
        skip();
    int length = (int)strcspn(subject.bytes, "\n");
    length = snprintf(text, sizeof text, "%.*s\nlater_sum\n", length, subject.bytes);
    kelp_artifact artifact = {.data = text, .size_bytes = (size_t)length};
    check_ok(kelp_runtime_create(NULL, &runtime));
    check_ok(kelp_compute_load(runtime, subject.provider, &artifact, &model));
    check_ok(kelp_compute_init(model));
    assert_non_null(model->vtbl->submit);
    check_ok(kelp_event_create(kelp_allocator_system(), &last));
    check_ok(kelp_compute_stream_create(model, COUNT, &stream));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) {
            values[i][0] = i, values[i][1] = round, values[i][2] = i == 5 ? INFINITY : 1;
            sums[i] = -1;
            check_ok(kelp_tensor_init(&in[i], KELP_F64, 1, &three, values[i]));
            check_ok(kelp_tensor_init(&out[i], KELP_F64, 0, NULL, i + 1 < COUNT ? &sums[i] : NULL));
            items[i] = (kelp_infer_item){.inputs = &in[i], .outputs = &out[i]};
            check_ok(kelp_compute_submit(stream, &items[i], i + 1 == COUNT ? last : NULL));
        }
        assert_true(kelp_event_wait(last, UINT64_MAX)); /* hence all before it are done */
        for (int i = 0; i < COUNT; i++) {
            if (i == 5) {
                expect_failure(items[i].status, KELP_OUT_OF_RANGE, "the sum is not finite");
                continue;
            }
            check_ok(items[i].status);
            assert_true(*(const double *)out[i].data == i + round + 1);
        }
    }
    in[0].shape[0] = 0; /* the signature is checked when it runs */
    in[0].dtype = KELP_F32;
    expect_failure(kelp_compute_submit(stream, &items[0], NULL), KELP_INVALID_ARGUMENT,
                   "expected float64");
    check_ok(kelp_compute_drain(model));
    kelp_compute_stream_destroy(stream);
    kelp_event_destroy(last);
    check_ok(kelp_compute_infer_one(model, &items[1]));
    assert_true(sums[1] == 1 + ROUNDS);
    close_model(runtime, model);
}

static void batch_stops_or_continues_after_a_failure(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model;
    float data[64];
    kelp_tensor inputs[3], outputs[3][2] = {0};
    open_model(&runtime, &model);
    for (int i = 0; i < 3; i++)
        make_input(&inputs[i], data, 1);
    inputs[1].dtype = KELP_F64;
    kelp_infer_item items[3];
    for (int i = 0; i < 3; i++)
        items[i] = (kelp_infer_item){.inputs = &inputs[i], .outputs = outputs[i]};
    expect_failure(kelp_compute_infer_batch(model, items, 3, KELP_BATCH_STOP_AT_FIRST),
                   KELP_INVALID_ARGUMENT, "item 1 of a batch of 3");
    assert_int_equal(outputs[0][0].rank, 2);
    assert_int_equal(outputs[2][0].rank, 0);
    check_ok(kelp_compute_infer_batch(model, items, 3, KELP_BATCH_EACH));
    assert_null(items[0].status);
    assert_null(items[2].status);
    expect_failure(items[1].status, KELP_INVALID_ARGUMENT, "expected float32, found float64");
    assert_int_equal(outputs[2][0].rank, 2);
    close_model(runtime, model);
}

/* Items of different sizes, in separate memory, run as one inference. */
static void batched_items_give_the_results_of_calls(void **state) {
    (void)state;
    enum { COUNT = 3 };
    kelp_runtime *runtime = NULL;
    kelp_compute_model *model = NULL;
    float data[COUNT][COUNT * 64], singles[COUNT][COUNT * 64], rooms[COUNT][COUNT * 64];
    kelp_tensor inputs[COUNT], outputs[COUNT][2] = {0};
    kelp_infer_item items[COUNT];
    kelp_artifact artifact = {.path = subject.path, .batched = true};
    check_ok(kelp_runtime_create(NULL, &runtime));
    check_ok(kelp_compute_load(runtime, subject.provider, &artifact, &model));
    check_ok(kelp_compute_init(model));
    for (int i = 0; i < COUNT; i++) {
        const int64_t shape[2] = {i + 1, subject.output_dim};
        make_input(&inputs[i], data[i], i + 1);
        data[i][5] = (float)i / 10.0f;
        items[i] = (kelp_infer_item){.inputs = &inputs[i], .outputs = outputs[i]};
        check_ok(kelp_tensor_init(&outputs[i][0], KELP_F32, 2, shape, singles[i]));
        check_ok(kelp_compute_infer_one(model, &items[i]));
        outputs[i][0].data = rooms[i];
        outputs[i][1] = (kelp_tensor){0};
    }
    assert_int_equal(kelp_compute_copies_of(model).inputs, 0);
    check_ok(kelp_compute_infer_batch(model, items, COUNT, KELP_BATCH_EACH));
    for (int i = 0; i < COUNT; i++) {
        check_ok(items[i].status);
        assert_int_equal(outputs[i][0].shape[0], i + 1);
        for (int64_t k = 0; k < (i + 1) * subject.output_dim; k++)
            assert_true(rooms[i][k] - singles[i][k] < 1e-5f && singles[i][k] - rooms[i][k] < 1e-5f);
        if (subject.outputs == 2)
            assert_int_equal(outputs[i][1].shape[0], i + 1);
    }
    kelp_compute_copies copies = kelp_compute_copies_of(model);
    assert_int_equal(copies.inputs, COUNT); /* joined */
    assert_int_equal(copies.input_bytes, 6 * 64 * sizeof(float));
    assert_int_equal(copies.outputs, COUNT);
    close_model(runtime, model);
}

static void forks_are_independent(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model, *fork = NULL;
    float data[64];
    kelp_tensor input, outputs[2] = {0}, again[2] = {0};
    open_model(&runtime, &model);
    make_input(&input, data, 1);
    check_ok(kelp_compute_fork(model, &fork));
    check_ok(kelp_compute_init(fork));
    kelp_infer_item item = {.inputs = &input, .outputs = outputs};
    check_ok(kelp_compute_infer_one(model, &item));
    float first[64];
    size_t bytes = (size_t)subject.output_dim * sizeof *first;
    memcpy(first, outputs[0].data, bytes);
    check_ok(kelp_compute_drain(model));
    check_ok(kelp_compute_reset(model));
    kelp_compute_destroy(model);
    kelp_runtime_release(runtime); /* the fork keeps its references */
    kelp_infer_item second = {.inputs = &input, .outputs = again};
    check_ok(kelp_compute_infer_one(fork, &second));
    assert_memory_equal(again[0].data, first, bytes);
    kelp_compute_destroy(fork);
}

static bool yes(void *userp) {
    ++*(int *)userp;
    return true;
}

/* If the provider supports cancellation, the inference stops and the model can run again. */
static void running_inference_can_be_cancelled(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model;
    float data[64];
    int asked = 0;
    kelp_tensor input, outputs[2] = {0};
    open_model(&runtime, &model);
    make_input(&input, data, 1);
    kelp_infer_item item = {.inputs = &input, .outputs = outputs};
    kelp_compute_set_interrupt(model, yes, &asked);
    if (model->vtbl->set_interrupt != NULL) {
        expect_failure(kelp_compute_infer_one(model, &item), KELP_CANCELLED, "was cancelled");
        assert_true(asked > 0);
        check_ok(kelp_compute_reset(model));
        expect_failure(kelp_compute_infer_one(model, &item), KELP_CANCELLED, "was cancelled");
    }
    kelp_compute_set_interrupt(model, NULL, NULL);
    check_ok(kelp_compute_infer_one(model, &item));
    close_model(runtime, model);
}

/* Calls that create a model leave none after an error. */
static kelp_status *whole_life(kelp_allocator allocator) {
    kelp_runtime_options options = {
        .struct_size = sizeof options, .allocator = allocator, .threads = 1};
    kelp_artifact artifact = {.path = subject.path};
    kelp_runtime *runtime = NULL;
    kelp_compute_model *model = NULL, *fork = NULL;
    float data[64];
    kelp_tensor input, outputs[2] = {0};
    kelp_infer_item item = {.inputs = &input, .outputs = outputs};
    make_input(&input, data, 1);
    kelp_status *status = kelp_runtime_create(&options, &runtime);
    if (status == NULL)
        status = kelp_compute_load(runtime, subject.provider, &artifact, &model);
    if (status == NULL)
        status = kelp_compute_init(model);
    if (status == NULL)
        status = kelp_compute_infer_one(model, &item);
    if (status == NULL)
        status = kelp_compute_fork(model, &fork);
    if (status == NULL)
        status = kelp_compute_init(fork);
    if (status == NULL)
        status = kelp_compute_infer_one(fork, &item);
    kelp_compute_destroy(fork);
    kelp_compute_destroy(model);
    kelp_runtime_release(runtime);
    return status;
}

static void failed_allocations_are_reported(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_status *status = whole_life(test_failing_allocator(&memory));
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        if (!failed) {
            check_ok(status);
            return;
        }
        if (status != NULL) /* some failures have a fallback, such as that of packed weights */
            assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
        kelp_status_free(status);
    }
}

static void unknown_providers_and_artifacts_are_reported(void **state) {
    (void)state;
    kelp_runtime *runtime = NULL;
    kelp_compute_model *model = NULL;
    kelp_artifact artifact = {.path = subject.path}, nothing = {0},
                  absent = {.path = KELP_TEST_DATA "/no-such-model.onnx"};
    check_ok(kelp_runtime_create(NULL, &runtime));
    expect_failure(kelp_compute_load(runtime, "abacus", &artifact, &model), KELP_NOT_FOUND,
                   "no provider 'abacus' offers models: found cpu, null, onnxruntime, kernels");
    expect_failure(kelp_compute_load(runtime, subject.provider, &nothing, &model),
                   KELP_INVALID_ARGUMENT, "neither a path nor bytes");
    expect_failure(kelp_compute_load(runtime, subject.provider, &absent, &model), KELP_NOT_FOUND,
                   "no-such-model.onnx");
    kelp_runtime_release(runtime);
}

/* A model of provider `kernels` has a value for scalar parameters of the kernel only, each once. */
static void unknown_and_repeated_scalars_fail(void **state) {
    static const struct {
        const char *line, *error;
    } cases[] = {{"radios=1\n", "kernel 'box_blur' has no scalar parameter 'radios'"},
                 {"x=1\n", "kernel 'box_blur' has no scalar parameter 'x'"},
                 {"radius=1\n", "parameter 'radius' has two values"}};
    (void)state;
    kelp_runtime *runtime = NULL;
    kelp_compute_model *model = NULL;
    char text[4096];
    if (strcmp(subject.provider, "kernels") != 0)
        skip();
    check_ok(kelp_runtime_create(NULL, &runtime));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int length = snprintf(text, sizeof text, "%.*s%s", (int)subject.size_bytes, subject.bytes,
                              cases[i].line);
        assert_in_range(length, 1, sizeof text - 1);
        kelp_artifact artifact = {.data = text, .size_bytes = (size_t)length};
        expect_failure(kelp_compute_load(runtime, "kernels", &artifact, &model),
                       KELP_INVALID_ARGUMENT, cases[i].error);
    }
    kelp_runtime_release(runtime);
}

static int read_bytes(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        return -1;
    long size = ftell(file);
    rewind(file);
    subject.bytes = malloc((size_t)size);
    subject.size_bytes = subject.bytes ? fread(subject.bytes, 1, (size_t)size, file) : 0;
    fclose(file);
    return subject.size_bytes == (size_t)size ? 0 : -1;
}

/* The blur of the example library as a model file. Each line of a picture is an item. */
static int write_kernel_model(const char *library) {
    static char path[] = "kernel_model_XXXXXX";
    int written = -1, made = mkstemp(path);
    FILE *file = made >= 0 ? fdopen(made, "w") : NULL;
    if (file != NULL) {
        written = fprintf(file, "%s\nbox_blur\nradius=0\n", library);
        written = fclose(file) == 0 ? written : -1;
    }
    subject.path = path;
    return written;
}

static int suite(const char *name) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_released_once),
        cmocka_unit_test(calls_before_init_fail),
        cmocka_unit_test(metadata_describes_the_model),
        cmocka_unit_test(output_shapes_are_known_before_inference),
        cmocka_unit_test(strided_tensors_are_copied_and_unreadable_tensors_fail),
        cmocka_unit_test(streams_give_the_results_of_calls),
        cmocka_unit_test(submissions_of_an_asynchronous_kernel_overlap),
        cmocka_unit_test(batch_stops_or_continues_after_a_failure),
        cmocka_unit_test(batched_items_give_the_results_of_calls),
        cmocka_unit_test(forks_are_independent),
        cmocka_unit_test(running_inference_can_be_cancelled),
        cmocka_unit_test(failed_allocations_are_reported),
        cmocka_unit_test(unknown_providers_and_artifacts_are_reported),
        cmocka_unit_test(unknown_and_repeated_scalars_fail),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(int argc, char **argv) {
    if (argc != 2 && argc != 3)
        return 2;
    subject = (struct subject){.path = DIGITS,
                               .input = "image",
                               .output = "probabilities",
                               .rank = 4,
                               .outputs = 2,
                               .output_dim = 10};
    if (argc == 3)
        subject = (struct subject){
            .input = "x", .output = "y", .rank = 2, .outputs = 1, .output_dim = 64};
    subject.provider = argv[1];
    int code = argc == 3 && write_kernel_model(argv[2]) < 0 ? 2 : read_bytes(subject.path);
    if (code == 0)
        code = suite(subject.provider);
    if (argc == 3)
        unlink(subject.path);
    free(subject.bytes);
    return code;
}
