/* SPDX-License-Identifier: Apache-2.0 */
/* Networks built through the public interface: shapes and errors when a layer is added, loops and
 * conditionals, inference results. */
#include "builder/support.h"
#include "support/failing_allocator.h"

static kelp_net_tensor *constant_i32(bench *b, const int32_t *value) {
    kelp_layer *layer = NULL;
    kelp_weights weights = {KELP_I32, value, 1, NULL};
    check_ok(kelp_network_add_constant(b->network, dims(0), weights, &layer));
    return out_of(layer);
}

static void shapes_are_inferred_when_a_layer_is_added(void **state) {
    bench b;
    kelp_layer *layer = NULL;
    static const float kernel[8 * 3 * 3 * 3];
    (void)state;
    bench_open(&b);
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(4, -1, 3, 10, 12));
    kelp_window window = {.struct_size = sizeof window,
                          .stride = {2, 2},
                          .pre_padding = {1, 1},
                          .post_padding = {1, 1}};
    check_ok(kelp_network_add_convolution(b.network, x, 8, dims(2, 3, 3),
                                          (kelp_weights){KELP_F32, kernel, 216, NULL},
                                          (kelp_weights){0}, &window, &layer));
    check_shape_is(out_of(layer), dims(4, -1, 8, 5, 6));
    assert_string_equal(kelp_layer_type_name(kelp_layer_type_of(layer)), "Convolution");
    check_ok(
        kelp_network_add_reduce(b.network, out_of(layer), KELP_REDUCE_AVERAGE, 0xc, false, &layer));
    check_shape_is(out_of(layer), dims(2, -1, 8));
    check_ok(kelp_network_add_topk(b.network, out_of(layer), true, 3, NULL, 2, KELP_I32, &layer));
    assert_int_equal(kelp_layer_output_count(layer), 2);
    assert_int_equal(kelp_net_tensor_dtype(kelp_layer_output(layer, 1)), KELP_I32);
    check_shape_is(kelp_layer_output(layer, 1), dims(2, -1, 3));
    assert_int_equal(kelp_network_layer_count(b.network), 4);
    bench_close(&b);
}

static void invalid_layers_fail_when_they_are_added(void **state) {
    bench b;
    kelp_layer *layer = NULL;
    (void)state;
    bench_open(&b);
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(2, 3, 4));
    kelp_net_tensor *y = input(&b, "y", KELP_F32, dims(2, 5, 4));
    kelp_net_tensor *n = input(&b, "n", KELP_I32, dims(2, 3, 4));
    size_t before = kelp_network_layer_count(b.network);
    expect_failure(kelp_network_add_elementwise(b.network, x, y, KELP_ELEMENTWISE_SUM, &layer),
                   KELP_INVALID_ARGUMENT,
                   "shape [3,4] of 'x' and shape [5,4] of 'y' do not broadcast");
    expect_failure(kelp_network_add_elementwise(b.network, x, n, KELP_ELEMENTWISE_SUM, &layer),
                   KELP_INVALID_ARGUMENT, "float32 and int32");
    expect_failure(kelp_network_add_matrix_multiply(b.network, x, KELP_MATRIX_NONE, y,
                                                    KELP_MATRIX_NONE, &layer),
                   KELP_INVALID_ARGUMENT, "inner dimensions are 4 and 5");
    expect_failure(kelp_network_add_softmax(b.network, x, 1u << 5, &layer), KELP_INVALID_ARGUMENT,
                   "axis 5 is out of range for 'x'");
    expect_failure(kelp_network_add_unary(b.network, NULL, KELP_UNARY_EXP, &layer),
                   KELP_INVALID_ARGUMENT, "input 0 is NULL");
    static const float few[5];
    expect_failure(kelp_network_add_constant(b.network, dims(2, 2, 3),
                                             (kelp_weights){KELP_F32, few, 5, NULL}, &layer),
                   KELP_INVALID_ARGUMENT, "shape [2,3] needs 6 weights, found 5");
    kelp_status *status = kelp_network_add_slice(b.network, x, dims(2, 0, 2), dims(2, 3, 3),
                                                 dims(2, 1, 1), NULL, &layer);
    assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_NETWORK);
    expect_failure(status, KELP_INVALID_ARGUMENT,
                   "axis 1 has 4 elements, but the slice reaches from 2 to 4");
    expect_failure(kelp_network_add_input(b.network, "x", KELP_F32, dims(1, 1), &x),
                   KELP_ALREADY_EXISTS, "'x'");
    assert_int_equal(kelp_network_layer_count(b.network), before);
    expect_failure(kelp_builder_build(b.builder, b.network, b.config, NULL),
                   KELP_FAILED_PRECONDITION, "has no output");
    bench_close(&b);
}

/* A shape that no tensor can have, or positions that overflow, fail when the layer is added. */
static void impossible_shapes_fail(void **state) {
    bench b;
    kelp_layer *layer = NULL;
    static const float weight = 1;
    const kelp_weights weights = {KELP_F32, &weight, 1, NULL};
    const kelp_shape below = {.rank = -1}, above = {.rank = KELP_MAX_RANK + 1};
    const kelp_shape far = {.rank = 1, .d = {INT64_MAX}};
    kelp_shuffle shuffle = {.struct_size = sizeof shuffle, .reshape_given = true, .reshape = above};
    kelp_resize resize = {.struct_size = sizeof resize, .dims = above};
    (void)state;
    bench_open(&b);
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(1, 4));
    expect_failure(kelp_network_add_constant(b.network, above, weights, &layer),
                   KELP_INVALID_ARGUMENT, "expected 0 to 16 dimensions, found 17");
    expect_failure(kelp_network_add_constant(b.network, below, weights, &layer),
                   KELP_INVALID_ARGUMENT, "expected 0 to 16 dimensions, found -1");
    expect_failure(kelp_network_add_fill(b.network, below, KELP_FILL_LINSPACE, NULL, &layer),
                   KELP_INVALID_ARGUMENT, "expected 0 to 16 dimensions, found -1");
    expect_failure(kelp_network_add_shuffle(b.network, x, &shuffle, &layer), KELP_INVALID_ARGUMENT,
                   "expected 0 to 16 dimensions, found 17");
    expect_failure(kelp_network_add_resize(b.network, x, &resize, &layer), KELP_INVALID_ARGUMENT,
                   "expected 0 to 16 dimensions, found 17");
    resize = (kelp_resize){.struct_size = sizeof resize, .scale_count = KELP_MAX_RANK + 1};
    expect_failure(kelp_network_add_resize(b.network, x, &resize, &layer), KELP_INVALID_ARGUMENT,
                   "expected at most 16 scales, found 17");
    expect_failure(kelp_network_add_slice(b.network, x, dims(1, 1), far, dims(1, 2), NULL, &layer),
                   KELP_INVALID_ARGUMENT,
                   "axis 0: start 1, size 9223372036854775807 and stride 2 overflow");
    bench_close(&b);
}

/* `out` may be NULL where the layer can be reached otherwise, but not where it is the result. */
static void layers_can_be_added_without_out(void **state) {
    bench b;
    kelp_loop *loop = NULL;
    kelp_conditional *conditional = NULL;
    kelp_layer *value = NULL, *inside = NULL;
    (void)state;
    bench_open(&b);
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(1, 3));
    kelp_net_tensor *condition = input(&b, "condition", KELP_BOOL, dims(0));
    check_ok(kelp_network_add_loop(b.network, &loop));
    check_ok(kelp_loop_add_recurrence(loop, x, &value));
    check_ok(kelp_loop_add_recurrence(loop, x, NULL));
    check_ok(kelp_loop_add_iterator(loop, x, 0, false, NULL));
    check_ok(kelp_loop_add_output(loop, out_of(value), KELP_LOOP_LAST_VALUE, 0, NULL));
    check_ok(kelp_network_add_conditional(b.network, condition, &conditional));
    check_ok(kelp_conditional_add_input(conditional, x, &inside));
    check_ok(kelp_conditional_add_input(conditional, x, NULL));
    check_ok(kelp_conditional_add_output(conditional, out_of(inside), out_of(inside), NULL));
    check_ok(kelp_network_add_unary(b.network, x, KELP_UNARY_EXP, NULL));
    size_t before = kelp_network_layer_count(b.network);
    expect_failure(kelp_network_add_input(b.network, "y", KELP_F32, dims(1, 3), NULL),
                   KELP_INVALID_ARGUMENT, "'out' is NULL");
    expect_failure(kelp_network_add_loop(b.network, NULL), KELP_INVALID_ARGUMENT, "'out' is NULL");
    expect_failure(kelp_network_add_conditional(b.network, condition, NULL), KELP_INVALID_ARGUMENT,
                   "'out' is NULL");
    assert_int_equal(kelp_network_layer_count(b.network), before);
    bench_close(&b);
}

static void tensors_of_another_network_fail(void **state) {
    bench a, b;
    kelp_layer *layer = NULL;
    (void)state;
    bench_open(&a);
    bench_open(&b);
    kelp_net_tensor *x = input(&a, "x", KELP_F32, dims(1, 4));
    expect_failure(kelp_network_add_unary(b.network, x, KELP_UNARY_EXP, &layer),
                   KELP_INVALID_ARGUMENT, "belongs to another network");
    expect_failure(kelp_network_mark_output(b.network, x), KELP_INVALID_ARGUMENT,
                   "does not belong to network");
    bench_close(&a);
    bench_close(&b);
}

static void outputs_can_be_marked_again(void **state) {
    bench b;
    (void)state;
    bench_open(&b);
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(1, 4));
    check_ok(kelp_network_mark_output(b.network, x));
    check_ok(kelp_network_mark_output(b.network, x));
    assert_int_equal(kelp_network_output_count(b.network), 1);
    check_ok(kelp_network_unmark_output(b.network, x));
    assert_int_equal(kelp_network_output_count(b.network), 0);
    expect_failure(kelp_network_unmark_output(b.network, x), KELP_NOT_FOUND,
                   "tensor 'x' is not an output of network 'network'");
    check_ok(kelp_network_mark_output(b.network, x));
    assert_int_equal(kelp_network_output_count(b.network), 1);
    assert_ptr_equal(kelp_network_output(b.network, 0), x);
    kelp_network_release(kelp_network_retain(b.network));
    bench_close(&b);
}

/* Adds loops and conditionals to a network of another allocator, and writes them. `fill` shifts
 * where blocks of memory end. */
static kelp_status *add_regions(kelp_builder *builder, size_t fill, kelp_network **out,
                                kelp_blob **out_model) {
    static const int32_t three = 3;
    char name[1024];
    kelp_net_tensor *x = NULL, *condition = NULL;
    kelp_layer *count = NULL, *value = NULL, *last = NULL;
    memset(name, 'x', sizeof name);
    name[fill] = '\0';
    KELP_TRY(kelp_builder_create_network(builder, out));
    KELP_TRY(kelp_network_add_input(*out, name, KELP_F32, dims(1, 3), &x));
    KELP_TRY(kelp_network_add_input(*out, "condition", KELP_BOOL, dims(0), &condition));
    KELP_TRY(kelp_network_add_constant(*out, dims(0), (kelp_weights){KELP_I32, &three, 1, NULL},
                                       &count));
    for (int i = 0; i < 12; i++) {
        kelp_loop *loop = NULL;
        kelp_conditional *conditional = NULL;
        KELP_TRY(kelp_network_add_loop(*out, &loop));
        assert_non_null(loop);
        KELP_TRY(kelp_loop_set_trip_count(loop, out_of(count)));
        KELP_TRY(kelp_loop_add_recurrence(loop, x, &value));
        KELP_TRY(kelp_network_add_activation(*out, out_of(value), KELP_ACTIVATION_SCALED_TANH, 2, 3,
                                             &last));
        KELP_TRY(kelp_recurrence_set_next(value, out_of(last)));
        KELP_TRY(kelp_loop_add_output(loop, out_of(value), KELP_LOOP_LAST_VALUE, 0, &last));
        KELP_TRY(kelp_network_add_conditional(*out, condition, &conditional));
        assert_non_null(conditional);
        KELP_TRY(kelp_conditional_add_output(conditional, x, out_of(last), &last));
        x = out_of(last);
    }
    KELP_TRY(kelp_network_mark_output(*out, x));
    return kelp_network_to_onnx(*out, out_model);
}

static void failed_allocations_are_reported(void **state) {
    (void)state;
    for (size_t fill = 1; fill < 1000; fill += 250)
        for (uint64_t n = 1;; n++) {
            test_failing memory;
            kelp_runtime *runtime = NULL;
            kelp_builder *builder = NULL;
            kelp_network *network = NULL;
            kelp_blob *model = NULL;
            test_failing_init(&memory, n);
            kelp_runtime_options options = {.struct_size = sizeof options,
                                            .allocator = test_failing_allocator(&memory),
                                            .threads = 1};
            kelp_status *status = kelp_runtime_create(&options, &runtime);
            if (status == NULL)
                status = kelp_builder_create(runtime, "cpu", &builder);
            if (status == NULL)
                status = add_regions(builder, fill, &network, &model);
            kelp_blob_release(model);
            kelp_network_release(network);
            kelp_builder_release(builder);
            kelp_runtime_release(runtime);
            if (test_failing_ended(&memory, status))
                break;
            assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
            kelp_status_free(status);
        }
}

/* Sum of the slices, with a trip count; the second output has the values of all iterations. */
static void loop_with_a_trip_count_runs(void **state) {
    bench b;
    kelp_loop *loop = NULL;
    kelp_layer *sum = NULL, *slice = NULL, *next = NULL, *last = NULL, *steps = NULL;
    static const int32_t three = 3;
    (void)state;
    bench_open(&b);
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(2, 3, 2));
    kelp_net_tensor *start = input(&b, "start", KELP_F32, dims(1, 2));
    check_ok(kelp_network_add_loop(b.network, &loop));
    check_ok(kelp_loop_set_trip_count(loop, constant_i32(&b, &three)));
    check_ok(kelp_loop_add_recurrence(loop, start, &sum));
    check_ok(kelp_loop_add_iterator(loop, x, 0, false, &slice));
    check_shape_is(out_of(slice), dims(1, 2));
    check_ok(kelp_network_add_elementwise(b.network, out_of(sum), out_of(slice),
                                          KELP_ELEMENTWISE_SUM, &next));
    expect_failure(kelp_network_mark_output(b.network, out_of(next)), KELP_INVALID_ARGUMENT,
                   "inside a loop");
    check_ok(kelp_recurrence_set_next(sum, out_of(next)));
    check_ok(kelp_loop_add_output(loop, out_of(sum), KELP_LOOP_LAST_VALUE, 0, &last));
    check_ok(kelp_loop_add_output(loop, out_of(next), KELP_LOOP_REVERSE, 1, &steps));
    check_ok(kelp_network_mark_output(b.network, out_of(last)));
    check_ok(kelp_network_mark_output(b.network, out_of(steps)));
    bench_build(&b);
    float xs[6] = {1, 2, 10, 20, 100, 200}, starts[2] = {0.5f, 0.25f};
    bind(b.context, 0, KELP_F32, dims(2, 3, 2), xs);
    bind(b.context, 1, KELP_F32, dims(1, 2), starts);
    check_ok(kelp_context_invoke(b.context));
    const float *total = kelp_context_output(b.context, 0)->data;
    assert_float_equal(total[0], 111.5f, 0);
    assert_float_equal(total[1], 222.25f, 0);
    const kelp_tensor *stacked = kelp_context_output(b.context, 1);
    assert_int_equal(stacked->rank, 2);
    assert_int_equal(stacked->shape[0], 2);
    assert_int_equal(stacked->shape[1], 3);
    const float expected[6] = {111.5f, 11.5f, 1.5f, 222.25f, 22.25f, 2.25f};
    assert_memory_equal(stacked->data, expected, sizeof expected);
    bench_close(&b);
}

/* Doubles while below a limit: the condition is evaluated before each iteration. */
static void loop_runs_while_its_condition_is_true(void **state) {
    bench b;
    kelp_loop *loop = NULL;
    kelp_layer *value = NULL, *below = NULL, *twice = NULL, *last = NULL;
    (void)state;
    bench_open(&b);
    kelp_net_tensor *start = input(&b, "start", KELP_F32, dims(0));
    kelp_net_tensor *limit = input(&b, "limit", KELP_F32, dims(0));
    check_ok(kelp_network_add_loop(b.network, &loop));
    check_ok(kelp_loop_add_recurrence(loop, start, &value));
    check_ok(kelp_network_add_elementwise(b.network, out_of(value), limit, KELP_ELEMENTWISE_LESS,
                                          &below));
    check_ok(kelp_loop_set_condition(loop, out_of(below)));
    check_ok(kelp_network_add_elementwise(b.network, out_of(value), out_of(value),
                                          KELP_ELEMENTWISE_SUM, &twice));
    check_ok(kelp_recurrence_set_next(value, out_of(twice)));
    check_ok(kelp_loop_add_output(loop, out_of(value), KELP_LOOP_LAST_VALUE, 0, &last));
    check_ok(kelp_network_mark_output(b.network, out_of(last)));
    bench_build(&b);
    const float cases[3][3] = {{3, 40, 48}, {50, 40, 50}, {20, 40, 40}};
    for (int i = 0; i < 3; i++) {
        float from = cases[i][0], to = cases[i][1];
        bind(b.context, 0, KELP_F32, dims(0), &from);
        bind(b.context, 1, KELP_F32, dims(0), &to);
        check_ok(kelp_context_invoke(b.context));
        assert_float_equal(*(const float *)kelp_context_output(b.context, 0)->data, cases[i][2], 0);
    }
    bench_close(&b);
}

/* The branches have different shapes. Only the selected branch runs. */
static void conditional_runs_one_branch(void **state) {
    bench b;
    kelp_conditional *conditional = NULL;
    kelp_layer *inside = NULL, *negative = NULL, *sum = NULL, *result = NULL;
    (void)state;
    bench_open(&b);
    kelp_net_tensor *condition = input(&b, "condition", KELP_BOOL, dims(0));
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(1, 3));
    check_ok(kelp_network_add_conditional(b.network, condition, &conditional));
    check_ok(kelp_conditional_add_input(conditional, x, &inside));
    check_ok(kelp_network_add_unary(b.network, out_of(inside), KELP_UNARY_NEG, &negative));
    check_ok(kelp_network_add_reduce(b.network, out_of(inside), KELP_REDUCE_SUM, 1, true, &sum));
    check_ok(kelp_conditional_add_output(conditional, out_of(negative), out_of(sum), &result));
    check_shape_is(out_of(result), dims(1, -1));
    check_ok(kelp_network_mark_output(b.network, out_of(result)));
    bench_build(&b);
    float xs[3] = {1, 2, 4};
    bool yes = true, no = false;
    bind(b.context, 1, KELP_F32, dims(1, 3), xs);
    bind(b.context, 0, KELP_BOOL, dims(0), &yes);
    check_ok(kelp_context_invoke(b.context));
    const kelp_tensor *output = kelp_context_output(b.context, 0);
    assert_int_equal(output->shape[0], 3);
    assert_float_equal(((const float *)output->data)[2], -4, 0);
    bind(b.context, 0, KELP_BOOL, dims(0), &no);
    check_ok(kelp_context_invoke(b.context));
    output = kelp_context_output(b.context, 0);
    assert_int_equal(output->shape[0], 1);
    assert_float_equal(((const float *)output->data)[0], 7, 0);
    bench_close(&b);
}

/* A loop in a loop: sums of the rows, then their product. */
static void nested_loops_run(void **state) {
    bench b;
    kelp_loop *outer = NULL, *inner = NULL;
    kelp_layer *product = NULL, *row = NULL, *sum = NULL, *item = NULL, *next = NULL, *rows = NULL,
               *times = NULL, *last = NULL, *zero = NULL;
    static const int32_t two = 2, three = 3;
    static const float nothing = 0;
    (void)state;
    bench_open(&b);
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(2, 2, 3));
    kelp_net_tensor *one = input(&b, "one", KELP_F32, dims(0));
    check_ok(kelp_network_add_loop(b.network, &outer));
    check_ok(kelp_loop_set_trip_count(outer, constant_i32(&b, &two)));
    check_ok(kelp_loop_add_recurrence(outer, one, &product));
    check_ok(kelp_loop_add_iterator(outer, x, 0, false, &row));
    check_ok(kelp_network_add_constant(b.network, dims(0),
                                       (kelp_weights){KELP_F32, &nothing, 1, NULL}, &zero));
    check_ok(kelp_network_add_loop(b.network, &inner));
    check_ok(kelp_loop_set_trip_count(inner, constant_i32(&b, &three)));
    check_ok(kelp_loop_add_recurrence(inner, out_of(zero), &sum));
    check_ok(kelp_loop_add_iterator(inner, out_of(row), 0, true, &item));
    check_ok(kelp_network_add_elementwise(b.network, out_of(sum), out_of(item),
                                          KELP_ELEMENTWISE_SUM, &next));
    check_ok(kelp_recurrence_set_next(sum, out_of(next)));
    check_ok(kelp_loop_add_output(inner, out_of(sum), KELP_LOOP_LAST_VALUE, 0, &rows));
    check_ok(kelp_network_add_elementwise(b.network, out_of(product), out_of(rows),
                                          KELP_ELEMENTWISE_PROD, &times));
    check_ok(kelp_recurrence_set_next(product, out_of(times)));
    check_ok(kelp_loop_add_output(outer, out_of(product), KELP_LOOP_LAST_VALUE, 0, &last));
    check_ok(kelp_network_mark_output(b.network, out_of(last)));
    bench_build(&b);
    float xs[6] = {1, 2, 3, 4, 5, 6}, ones = 1;
    bind(b.context, 0, KELP_F32, dims(2, 2, 3), xs);
    bind(b.context, 1, KELP_F32, dims(0), &ones);
    check_ok(kelp_context_invoke(b.context));
    assert_float_equal(*(const float *)kelp_context_output(b.context, 0)->data, 90, 0);
    bench_close(&b);
}

static void false_assertion_fails_the_inference(void **state) {
    bench b;
    kelp_layer *layer = NULL;
    (void)state;
    bench_open(&b);
    kelp_net_tensor *x = input(&b, "x", KELP_F32, dims(1, 2));
    kelp_net_tensor *holds = input(&b, "holds", KELP_BOOL, dims(0));
    check_ok(kelp_network_add_assertion(b.network, holds, "x was measured", &layer));
    check_ok(kelp_network_add_unary(b.network, x, KELP_UNARY_NEG, &layer));
    check_ok(kelp_network_mark_output(b.network, out_of(layer)));
    bench_build(&b);
    float xs[2] = {1, 2};
    bool yes = true, no = false;
    bind(b.context, 0, KELP_F32, dims(1, 2), xs);
    bind(b.context, 1, KELP_BOOL, dims(0), &yes);
    check_ok(kelp_context_invoke(b.context));
    bind(b.context, 1, KELP_BOOL, dims(0), &no);
    expect_failure(kelp_context_invoke(b.context), KELP_FAILED_PRECONDITION, "x was measured");
    static const uint8_t never = 0;
    kelp_layer *constant = NULL;
    check_ok(kelp_network_add_constant(b.network, dims(0),
                                       (kelp_weights){KELP_BOOL, &never, 1, NULL}, &constant));
    expect_failure(kelp_network_add_assertion(b.network, out_of(constant), "known", &layer),
                   KELP_INVALID_ARGUMENT, "the assertion is false: known");
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_inferred_when_a_layer_is_added),
        cmocka_unit_test(invalid_layers_fail_when_they_are_added),
        cmocka_unit_test(impossible_shapes_fail),
        cmocka_unit_test(layers_can_be_added_without_out),
        cmocka_unit_test(tensors_of_another_network_fail),
        cmocka_unit_test(outputs_can_be_marked_again),
        cmocka_unit_test(failed_allocations_are_reported),
        cmocka_unit_test(loop_with_a_trip_count_runs),
        cmocka_unit_test(loop_runs_while_its_condition_is_true),
        cmocka_unit_test(conditional_runs_one_branch),
        cmocka_unit_test(nested_loops_run),
        cmocka_unit_test(false_assertion_fails_the_inference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
