/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider `onnxruntime` beyond what all providers have in common: strings, symbols, errors of
 * its library, and subgraphs. Run with KELP_ONNXRUNTIME_LIBRARY.
 */
#include "onnx/onnx_writer.h"
#include "support/failing_allocator.h"

#include <kelp/compute.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

#define MODELS KELP_TEST_DATA "/models/"
#define VARIABLE "KELP_ONNXRUNTIME_LIBRARY"

static char library[4096];

static kelp_status *load(kelp_runtime *runtime, const char *path, kelp_compute_model **out) {
    kelp_artifact artifact = {.path = path};
    KELP_TRY(kelp_compute_load(runtime, "onnxruntime", &artifact, out));
    return kelp_compute_init(*out);
}

static void open_model(const char *path, kelp_runtime **out_runtime, kelp_compute_model **out) {
    *out = NULL;
    check_ok(kelp_runtime_create(NULL, out_runtime));
    check_ok(load(*out_runtime, path, out));
}

static void close_model(kelp_runtime *runtime, kelp_compute_model *model) {
    kelp_compute_destroy(model);
    kelp_runtime_release(runtime);
}

/* ---- strings ---- */
#define TEXT(literal) \
    { literal, sizeof(literal) - 1 }
static char large[6000]; /* larger than a chunk of an arena; filled by main */
static const kelp_string words[4] = {TEXT("k"), TEXT(""), {large, sizeof large}, TEXT("Z\xc3\xbc")};
static const kelp_string more[2] = {TEXT("fixed"), TEXT("gr\xc3\xbcn")};

static void expect_strings(const kelp_tensor *found, size_t count) {
    assert_int_equal(found->dtype, KELP_STRING);
    assert_int_equal(found->rank, 1);
    for (size_t i = 0; i < (size_t)found->shape[0]; i++) {
        const kelp_string *string = (const kelp_string *)found->data + i;
        const kelp_string *expected = i < count ? &words[i] : &more[i - count];
        assert_int_equal(string->length, expected->length);
        assert_memory_equal(string->data, expected->data, expected->length);
    }
}

static kelp_status *infer_words(kelp_compute_model *model, size_t count, kelp_tensor *outputs) {
    const int64_t shape[1] = {(int64_t)count};
    kelp_tensor input;
    kelp_string copy[4];
    memcpy(copy, words, sizeof copy);
    KELP_TRY(kelp_tensor_init(&input, KELP_STRING, 1, shape, copy));
    memset(outputs, 0, 2 * sizeof *outputs);
    kelp_infer_item item = {.inputs = &input, .outputs = outputs};
    return kelp_compute_infer_one(model, &item);
}

static void strings_are_inputs_and_outputs(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model;
    kelp_tensor outputs[2];
    open_model(MODELS "string_identity.onnx", &runtime, &model);
    for (size_t count = 5; count-- > 0;) {
        check_ok(infer_words(model, count, outputs));
        assert_int_equal(outputs[0].shape[0], count);
        assert_int_equal(outputs[1].shape[0], count + 2);
        expect_strings(&outputs[0], count);
        expect_strings(&outputs[1], count);
    }
    check_ok(kelp_compute_reset(model));
    check_ok(infer_words(model, 4, outputs));
    expect_strings(&outputs[1], 4);
    close_model(runtime, model);
}

/* ---- descriptions ---- */
static void dimensions_have_their_sizes_and_symbols(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model;
    open_model(MODELS "dynamic_reshape.onnx", &runtime, &model);
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(model);
    assert_int_equal(metadata->output_count, 3);
    const kelp_io_info *x = &metadata->inputs[0], *heads = &metadata->outputs[0],
                       *dims = &metadata->outputs[2];
    assert_string_equal(x->name, "x");
    assert_int_equal(x->rank, 3);
    assert_string_equal(x->symbols[0], "b");
    assert_string_equal(x->symbols[1], "s");
    assert_null(x->symbols[2]);
    assert_int_equal(x->shape[1], -1);
    assert_int_equal(x->shape[2], 12);
    assert_string_equal(heads->name, "heads");
    assert_int_equal(heads->rank, 4);
    assert_int_equal(heads->shape[1], 4);
    assert_string_equal(heads->symbols[2], "s");
    assert_string_equal(dims->name, "dims");
    assert_int_equal(dims->dtype, KELP_I64);
    assert_int_equal(dims->rank, 1);
    assert_int_equal(dims->shape[0], 3);
    close_model(runtime, model);
}

static void output_without_elements_fits_any_memory(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model;
    float data[16] = {0}, room[16];
    const int64_t none[2] = {0, 16};
    kelp_tensor input, output;
    open_model(MODELS "mlp_f32.onnx", &runtime, &model);
    const kelp_io_info *x = &kelp_compute_metadata_of(model)->inputs[0];
    const int64_t shape[2] = {0, x->shape[1]};
    check_ok(kelp_tensor_init(&input, KELP_F32, 2, shape, data));
    check_ok(kelp_tensor_init(&output, KELP_F32, 2, none, room));
    kelp_infer_item item = {.inputs = &input, .outputs = &output};
    check_ok(kelp_compute_infer_one(model, &item));
    assert_ptr_equal(output.data, room);
    assert_int_equal(output.shape[0], 0);
    close_model(runtime, model);
}

/* ---- models that are written here ---- */
/* A node with attribute `to` (0: none), inputs x and, if not NULL, s. Returns a buffer. */
static kelp_artifact one_node(pb *model, const char *op_type, int64_t to, const char *x,
                              const char *s, const char *y) {
    pb graph = {0}, node = pb_node(op_type, s != NULL ? "x s" : "x", "y");
    pb_text(&graph, 2, "one");
    if (to != 0)
        pb_attr_int(&node, "to", to);
    pb_add_node(&graph, &node);
    pb_add_input(&graph, "x", x);
    if (s != NULL)
        pb_add_input(&graph, "s", s);
    pb_add_output(&graph, "y", y);
    *model = pb_model(&graph, 17);
    return (kelp_artifact){.data = model->data, .size_bytes = model->length, .label = op_type};
}

static kelp_status *run_one(const kelp_artifact *artifact, const kelp_tensor *inputs,
                            kelp_tensor *output, void *copy, size_t size_bytes) {
    kelp_runtime *runtime = NULL;
    kelp_compute_model *model = NULL;
    kelp_infer_item item = {.inputs = inputs, .outputs = output};
    check_ok(kelp_runtime_create(NULL, &runtime));
    kelp_status *status = kelp_compute_load(runtime, "onnxruntime", artifact, &model);
    if (status == NULL)
        status = kelp_compute_init(model);
    if (status == NULL)
        status = kelp_compute_infer_one(model, &item);
    if (status == NULL)
        memcpy(copy, output->data, size_bytes);
    close_model(runtime, model);
    return status;
}

static void small_and_16_bit_elements_are_passed(void **state) {
    (void)state;
    static pb model;
    const int64_t one[1] = {1}, two[1] = {2};
    bool no = false, room = false, found = false;
    uint16_t halves[2] = {0x3F80, 0x4000}; /* bfloat16 */
    float values[2];
    kelp_tensor input, output;
    kelp_artifact artifact = one_node(&model, "Not", 0, "bool[1]", NULL, "bool[1]");
    check_ok(kelp_tensor_init(&input, KELP_BOOL, 1, one, &no));
    check_ok(kelp_tensor_init(&output, KELP_BOOL, 1, one, &room));
    check_ok(run_one(&artifact, &input, &output, &found, 1));
    assert_true(found && room); /* in the memory of the caller */
    artifact = one_node(&model, "Cast", 1, "bfloat16[2]", NULL, "float32[2]");
    check_ok(kelp_tensor_init(&input, KELP_BF16, 1, two, halves));
    output = (kelp_tensor){0};
    check_ok(run_one(&artifact, &input, &output, values, sizeof values));
    assert_true(values[0] == 1.0f && values[1] == 2.0f);
}

static void ranks_above_the_maximum_are_rejected(void **state) {
    (void)state;
    static pb model;
    enum { RANK = KELP_MAX_RANK + 1 };
    const int64_t one[1] = {1}, count[1] = {RANK};
    int64_t ones[RANK];
    float value = 7, found;
    kelp_tensor inputs[2] = {0}, output = {0};
    for (int i = 0; i < RANK; i++)
        ones[i] = 1;
    kelp_artifact artifact =
        one_node(&model, "Abs", 0, "float32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", NULL, "float32");
    expect_failure(run_one(&artifact, inputs, &output, &found, 4), KELP_UNIMPLEMENTED,
                   "'x' has 17 dimensions: at most 16 are supported");
    artifact = one_node(&model, "Reshape", 0, "float32[1]", "int64[n]", "float32");
    check_ok(kelp_tensor_init(&inputs[0], KELP_F32, 1, one, &value));
    check_ok(kelp_tensor_init(&inputs[1], KELP_I64, 1, count, ones));
    kelp_status *status = run_one(&artifact, inputs, &output, &found, 4);
    assert_non_null(status);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    kelp_status_free(status);
}

/* ---- errors ---- */
static void errors_name_the_model_and_the_reason(void **state) {
    static const struct {
        const char *path;
        kelp_code code;
        const char *part;
    } cases[] = {
        {MODELS "gives_lists.onnx", KELP_UNIMPLEMENTED, "'parts' is not a tensor"},
        {MODELS "lists.onnx", KELP_UNIMPLEMENTED, "'s' is not a tensor"},
        {MODELS "bad/not_onnx.onnx", KELP_INVALID_ARGUMENT, "bad/not_onnx.onnx"},
        {MODELS "bad/unknown_op.onnx", KELP_INVALID_ARGUMENT, "ONNX Runtime: " MODELS "bad/unkno"},
        {MODELS "none.onnx", KELP_NOT_FOUND, "none.onnx"},
    };
    (void)state;
    kelp_runtime *runtime = NULL;
    kelp_compute_model *model = NULL;
    check_ok(kelp_runtime_create(NULL, &runtime));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_failure(load(runtime, cases[i].path, &model), cases[i].code, cases[i].part);
    kelp_runtime_release(runtime);
}

/* After an error of a run, the model can run again. */
static void failed_run_is_reported(void **state) {
    (void)state;
    kelp_runtime *runtime;
    kelp_compute_model *model;
    float data[3][12] = {{1, 2, 3, 4}, {5}, {1, 1, 1}};
    const int64_t one[2] = {1, 4}, three[2] = {3, 4}, two[2] = {2, 4}, start[2] = {1, 1};
    kelp_tensor inputs[3], outputs[2] = {0};
    open_model(MODELS "running_sum.onnx", &runtime, &model);
    kelp_infer_item item = {.inputs = inputs, .outputs = outputs};
    check_ok(kelp_tensor_init(&inputs[0], KELP_F32, 2, three, data[0]));
    check_ok(kelp_tensor_init(&inputs[1], KELP_F32, 2, two, data[1]));
    check_ok(kelp_tensor_init(&inputs[2], KELP_F32, 2, start, data[2]));
    expect_failure(kelp_compute_infer_one(model, &item), KELP_INTERNAL, "ONNX Runtime: the run");
    check_ok(kelp_tensor_init(&inputs[0], KELP_F32, 2, one, data[0]));
    check_ok(kelp_tensor_init(&inputs[1], KELP_F32, 2, one, data[1]));
    check_ok(kelp_compute_infer_one(model, &item));
    assert_true(((const float *)outputs[0].data)[0] == 6.0f);
    close_model(runtime, model);
}

/* The library that the environment names, and none. */
static void missing_libraries_are_reported(void **state) {
    (void)state;
    kelp_runtime *runtime = NULL;
    kelp_compute_model *model = NULL;
    check_ok(kelp_runtime_create(NULL, &runtime));
    setenv(VARIABLE, "/nowhere/libonnxruntime.so", 1);
    expect_failure(load(runtime, MODELS "floor.onnx", &model), KELP_NOT_FOUND,
                   "/nowhere/libonnxruntime.so");
    setenv(VARIABLE, "libc.so.6", 1);
    expect_failure(load(runtime, MODELS "floor.onnx", &model), KELP_UNIMPLEMENTED,
                   "no C API of version 8: found no OrtGetApiBase");
    setenv(VARIABLE, "", 1);
    kelp_status *status = load(runtime, MODELS "floor.onnx", &model);
    if (status != NULL) /* the dynamic loader finds no library */
        expect_failure(status, KELP_NOT_FOUND, "cannot find ONNX Runtime's library");
    kelp_compute_destroy(model);
    setenv(VARIABLE, library, 1);
    kelp_runtime_release(runtime);
}

/* ---- subgraphs ---- */
typedef struct setup {
    kelp_runtime *runtime;
    kelp_graph *graph;
    kelp_engine *engine;
    kelp_context *context;
} setup;

static kelp_status *create(setup *s, kelp_allocator allocator, const char *path,
                           const char *providers) {
    kelp_runtime_options runtime = {
        .struct_size = sizeof runtime, .allocator = allocator, .threads = 1};
    kelp_engine_options options = {.struct_size = sizeof options, .providers = providers};
    *s = (setup){.runtime = NULL};
    KELP_TRY(kelp_runtime_create(&runtime, &s->runtime));
    KELP_TRY(kelp_graph_load_file(allocator, path, NULL, &s->graph));
    KELP_TRY(kelp_engine_create(s->runtime, s->graph, &options, &s->engine));
    return kelp_context_create(s->engine, &s->context);
}

static void drop(setup *s) {
    kelp_context_destroy(s->context);
    kelp_engine_release(s->engine);
    kelp_graph_release(s->graph);
    kelp_runtime_release(s->runtime);
}

static kelp_status *invoke_words(setup *s, size_t count) {
    kelp_string copy[4];
    const int64_t shape[1] = {(int64_t)count};
    kelp_tensor input;
    memcpy(copy, words, sizeof copy);
    KELP_TRY(kelp_tensor_init(&input, KELP_STRING, 1, shape, copy));
    KELP_TRY(kelp_context_set_input(s->context, 0, &input));
    return kelp_context_invoke(s->context);
}

static void subgraph_of_strings_runs(void **state) {
    (void)state;
    setup s;
    check_ok(create(&s, kelp_allocator_system(), MODELS "string_identity.onnx", "onnxruntime"));
    assert_int_equal(kelp_engine_subgraph_count(s.engine), 1);
    assert_string_equal(kelp_engine_subgraph(s.engine, 0).provider, "onnxruntime");
    for (size_t count = 1; count < 5; count++) {
        check_ok(invoke_words(&s, count));
        assert_int_equal(kelp_context_output(s.context, 1)->shape[0], count + 2);
        expect_strings(kelp_context_output(s.context, 0), count);
        expect_strings(kelp_context_output(s.context, 1), count);
    }
    drop(&s);
}

static void results_of_subgraphs_are_those_of_cpu(void **state) {
    (void)state;
    float data[2 * 5 * 12], expected[2 * 5 * 12];
    const int64_t shape[3] = {2, 5, 12};
    kelp_tensor input;
    for (size_t i = 0; i < 120; i++)
        data[i] = (float)i;
    for (int own = 0; own < 2; own++) {
        setup s;
        check_ok(create(&s, kelp_allocator_system(), MODELS "dynamic_reshape.onnx",
                        own == 0 ? "cpu" : "onnxruntime"));
        check_ok(kelp_tensor_init(&input, KELP_F32, 3, shape, data));
        check_ok(kelp_context_set_input(s.context, 0, &input));
        check_ok(kelp_context_invoke(s.context));
        const kelp_tensor *heads = kelp_context_output(s.context, 0);
        if (own == 0)
            memcpy(expected, heads->data, sizeof expected);
        assert_int_equal(heads->shape[2], 5);
        assert_memory_equal(heads->data, expected, sizeof expected);
        assert_true(((const int64_t *)kelp_context_output(s.context, 2)->data)[1] == 5);
        drop(&s);
    }
}

/* Contexts share the session, which overwrites its results in the next run. */
static void results_of_a_context_stay(void **state) {
    (void)state;
    setup s;
    kelp_context *second = NULL;
    kelp_string other[1] = {TEXT("something else")};
    const int64_t shape[1] = {1};
    kelp_tensor input;
    check_ok(create(&s, kelp_allocator_system(), MODELS "string_identity.onnx", "onnxruntime"));
    check_ok(invoke_words(&s, 4));
    check_ok(kelp_context_create(s.engine, &second));
    check_ok(kelp_tensor_init(&input, KELP_STRING, 1, shape, other));
    check_ok(kelp_context_set_input(second, 0, &input));
    check_ok(kelp_context_invoke(second));
    expect_strings(kelp_context_output(s.context, 0), 4);
    expect_strings(kelp_context_output(s.context, 1), 4);
    kelp_context_destroy(second);
    drop(&s);
}

/* ONNX Runtime has no Add of bfloat16 on CPUs. */
static void rejected_subgraph_runs_elsewhere(void **state) {
    (void)state;
    static pb model;
    setup s = {.runtime = NULL};
    kelp_runtime_options runtime = {.struct_size = sizeof runtime, .threads = 1};
    kelp_engine_options options = {.struct_size = sizeof options, .providers = "onnxruntime,cpu"};
    const int64_t two[1] = {2};
    uint16_t x[2] = {0x3F80, 0x4000};
    kelp_tensor input;
    one_node(&model, "Add", 0, "bfloat16[2]", "bfloat16[2]", "bfloat16[2]");
    check_ok(kelp_runtime_create(&runtime, &s.runtime));
    check_ok(kelp_graph_load_bytes(kelp_allocator_system(), model.data, model.length, "written",
                                   NULL, NULL, NULL, NULL, &s.graph));
    check_ok(kelp_engine_create(s.runtime, s.graph, &options, &s.engine));
    assert_int_equal(kelp_engine_subgraph_count(s.engine), 0);
    check_ok(kelp_context_create(s.engine, &s.context));
    check_ok(kelp_tensor_init(&input, KELP_BF16, 1, two, x));
    check_ok(kelp_context_set_input(s.context, 0, &input));
    check_ok(kelp_context_set_input(s.context, 1, &input));
    check_ok(kelp_context_invoke(s.context));
    assert_int_equal(((const uint16_t *)kelp_context_output(s.context, 0)->data)[0], 0x4000);
    drop(&s);
}

/* Nodes with sequences, of unknown domains, and those that the library rejects. */
static void unsupported_nodes_are_left_to_other_providers(void **state) {
    (void)state;
    setup s;
    expect_failure(create(&s, kelp_allocator_system(), MODELS "lists.onnx", "onnxruntime"),
                   KELP_UNIMPLEMENTED, "SequenceInsert");
    drop(&s);
    check_ok(create(&s, kelp_allocator_system(), MODELS "lists.onnx", "onnxruntime,cpu"));
    for (size_t i = 0; i < kelp_engine_subgraph_count(s.engine); i++) {
        const kelp_block *body = kelp_engine_subgraph(s.engine, i).body;
        for (size_t k = 0; k < kelp_block_node_count(body); k++)
            assert_null(strstr(kelp_node_op_type(kelp_block_node(body, k)), "Sequence"));
    }
    drop(&s);
    expect_failure(create(&s, kelp_allocator_system(), MODELS "custom_op.onnx", "onnxruntime"),
                   KELP_UNIMPLEMENTED, "Twice");
    drop(&s);
}

static void subgraph_without_library_is_reported(void **state) {
    (void)state;
    setup s;
    setenv(VARIABLE, "/nowhere/libonnxruntime.so", 1);
    kelp_status *status =
        create(&s, kelp_allocator_system(), MODELS "string_identity.onnx", "onnxruntime");
    setenv(VARIABLE, library, 1);
    expect_failure(status, KELP_NOT_FOUND, "/nowhere/libonnxruntime.so");
    drop(&s);
}

/* ---- memory ---- */
static kelp_status *whole_life(kelp_allocator allocator, bool subgraph) {
    kelp_runtime_options options = {
        .struct_size = sizeof options, .allocator = allocator, .threads = 1};
    kelp_compute_model *model = NULL;
    kelp_tensor outputs[2];
    setup s = {.runtime = NULL};
    kelp_status *status;
    if (subgraph) {
        status = create(&s, allocator, MODELS "string_identity.onnx", "onnxruntime");
        if (status == NULL)
            status = invoke_words(&s, 4);
    } else {
        status = kelp_runtime_create(&options, &s.runtime);
        if (status == NULL)
            status = load(s.runtime, MODELS "string_identity.onnx", &model);
        if (status == NULL)
            status = infer_words(model, 4, outputs);
        kelp_compute_destroy(model);
    }
    drop(&s);
    return status;
}

static void memory_does_not_grow_with_runs(void **state) {
    (void)state;
    test_failing memory;
    kelp_runtime *runtime = NULL;
    kelp_compute_model *model = NULL;
    kelp_tensor outputs[2];
    size_t before = 0;
    test_failing_init(&memory, 0);
    kelp_runtime_options options = {
        .struct_size = sizeof options, .allocator = test_failing_allocator(&memory), .threads = 1};
    check_ok(kelp_runtime_create(&options, &runtime));
    check_ok(load(runtime, MODELS "string_identity.onnx", &model));
    for (int i = 0; i < 1000; i++) {
        check_ok(infer_words(model, 4, outputs));
        if (i == 0)
            before = memory.live_bytes;
    }
    assert_int_equal(memory.live_bytes, before);
    close_model(runtime, model);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

static void failed_allocations_are_reported(void **state) {
    (void)state;
    for (int subgraph = 0; subgraph < 2; subgraph++) {
        for (uint64_t n = 1;; n++) {
            test_failing memory;
            test_failing_init(&memory, n);
            kelp_status *status = whole_life(test_failing_allocator(&memory), subgraph);
            if (test_failing_ended(&memory, status))
                break;
            if (status != NULL)
                expect_failure(status, KELP_RESOURCE_EXHAUSTED, "memory");
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_libraries_are_reported), /* before the library is loaded */
        cmocka_unit_test(strings_are_inputs_and_outputs),
        cmocka_unit_test(dimensions_have_their_sizes_and_symbols),
        cmocka_unit_test(output_without_elements_fits_any_memory),
        cmocka_unit_test(errors_name_the_model_and_the_reason),
        cmocka_unit_test(small_and_16_bit_elements_are_passed),
        cmocka_unit_test(ranks_above_the_maximum_are_rejected),
        cmocka_unit_test(failed_run_is_reported),
        cmocka_unit_test(results_of_a_context_stay),
        cmocka_unit_test(rejected_subgraph_runs_elsewhere),
        cmocka_unit_test(subgraph_of_strings_runs),
        cmocka_unit_test(results_of_subgraphs_are_those_of_cpu),
        cmocka_unit_test(unsupported_nodes_are_left_to_other_providers),
        cmocka_unit_test(subgraph_without_library_is_reported),
        cmocka_unit_test(memory_does_not_grow_with_runs),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    const char *path = getenv(VARIABLE);
    if (path == NULL || strlen(path) >= sizeof library)
        return 2;
    strcpy(library, path);
    memset(large, 'z', sizeof large);
    return cmocka_run_group_tests_name("onnxruntime", tests, NULL, NULL);
}
