/* SPDX-License-Identifier: Apache-2.0 */
/* Opset backends: errors of the registration, the readiness report, and the bridges between the
 * three ways to execute. */
#include <kelp/engine.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "graph/ir.h"

#include "support/check_status.h"

/* ---- a backend for com.example::Twice: y = x * times ---- */
static kelp_opset_op floor_table[KELP_OPSET_FLOOR_COUNT];
static kelp_opset atomic = {.domain = "", .version = 17};
static const kelp_opset_op own_ops[] = {{.name = "Twice", .since_version = 1}};
static const kelp_opset own = {"com.example", 2, own_ops, 1};

static const kelp_opset *atomic_opset(void *self) {
    (void)self;
    const char *const *names = kelp_opset_floor();
    for (int i = 0; i < KELP_OPSET_FLOOR_COUNT; i++)
        floor_table[i] = (kelp_opset_op){.name = names[i], .since_version = 7};
    atomic.ops = floor_table;
    atomic.op_count = KELP_OPSET_FLOOR_COUNT;
    return &atomic;
}

static const kelp_opset *extension_opsets(void *self, size_t *out_count) {
    (void)self;
    *out_count = 1;
    return &own;
}

static kelp_status *multiply(const kelp_op_env *env, const kelp_node *node, const kelp_tensor *x,
                             kelp_tensor *y) {
    if (strcmp(kelp_node_op_type(node), "Abs") != 0 &&
        strcmp(kelp_node_op_type(node), "Neg") != 0 &&
        strcmp(kelp_node_op_type(node), "Twice") != 0)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "this test's backend has no %s",
                          kelp_node_op_type(node));
    KELP_TRY(kelp_tensor_init(y, x->dtype, x->rank, x->shape, NULL));
    y->data = kelp_op_env_alloc(env, kelp_tensor_bytes(x) + 1);
    if (y->data == NULL)
        return kelp_status_oom();
    float times = (float)kelp_node_attr_i64(node, "times", 2);
    const float *from = x->data;
    float *to = y->data;
    for (int64_t i = 0; i < kelp_tensor_elements(x); i++) {
        if (strcmp(kelp_node_op_type(node), "Abs") == 0)
            to[i] = from[i] < 0 ? -from[i] : from[i];
        else
            to[i] = strcmp(kelp_node_op_type(node), "Neg") == 0 ? -from[i] : from[i] * times;
    }
    return NULL;
}

static int dispatched, executed;

static kelp_status *dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                             const kelp_tensor *const *inputs, kelp_tensor *outputs,
                             kelp_completion *completion, kelp_dispatch_result *out_result) {
    (void)self;
    (void)completion;
    dispatched++;
    *out_result = KELP_DISPATCH_IMMEDIATE;
    return multiply(env, node, inputs[0], &outputs[0]);
}

static kelp_status *execute_graph(void *self, const kelp_op_env *env, const kelp_block *block,
                                  const kelp_tensor *const *inputs, kelp_tensor *outputs) {
    (void)self;
    executed++;
    assert_int_equal(kelp_block_node_count(block), 1);
    assert_int_equal(kelp_block_input_count(block), 1);
    assert_int_equal(kelp_block_output_count(block), 1);
    return multiply(env, kelp_block_node(block, 0), inputs[0], &outputs[0]);
}

typedef struct later {
    const kelp_op_env *env;
    const kelp_node *node;
    const kelp_tensor *input;
    kelp_tensor *output;
    kelp_completion *completion;
} later;

static later pending;
static pthread_t later_thread;
static bool later_started, later_fails;

static void join_later(void) {
    if (later_started)
        pthread_join(later_thread, NULL);
    later_started = false;
}

static void *run_later(void *userp) {
    later *job = userp;
    kelp_status *status = later_fails ? KELP_ERROR(KELP_ABORTED, "the device went away")
                                      : multiply(job->env, job->node, job->input, job->output);
    kelp_completion_done(job->completion, status);
    return NULL;
}

static kelp_status *dispatch_later(void *self, const kelp_op_env *env, const kelp_node *node,
                                   const kelp_tensor *const *inputs, kelp_tensor *outputs,
                                   kelp_completion *completion, kelp_dispatch_result *out_result) {
    (void)self;
    if (strcmp(kelp_node_op_type(node), "Twice") != 0) {
        *out_result = KELP_DISPATCH_IMMEDIATE;
        return multiply(env, node, inputs[0], &outputs[0]);
    }
    assert_non_null(completion);
    join_later();
    pending = (later){env, node, inputs[0], &outputs[0], completion};
    *out_result = KELP_DISPATCH_LATER;
    later_started = true;
    assert_int_equal(pthread_create(&later_thread, NULL, run_later, &pending), 0);
    return NULL;
}

static kelp_opset_backend make_backend(void) {
    return (kelp_opset_backend){.abi_version = KELP_OPSET_ABI_VERSION,
                                .struct_size = sizeof(kelp_opset_backend),
                                .name = "example",
                                .atomic_opset = atomic_opset,
                                .extension_opsets = extension_opsets};
}

/* ---- registration ---- */
static void backend_without_execution_fails(void **state) {
    (void)state;
    kelp_opset_registry *registry = NULL;
    check_ok(kelp_opset_registry_create(kelp_allocator_system(), &registry));
    kelp_opset_backend backend = make_backend();
    expect_failure(kelp_opset_register(registry, &backend, NULL), KELP_INVALID_ARGUMENT,
                   "implements neither execute_graph nor dispatch");
    kelp_opset_registry_destroy(registry);
}

static const kelp_opset *short_opset(void *self) {
    atomic_opset(self);
    static kelp_opset_op some[KELP_OPSET_FLOOR_COUNT - 2];
    static kelp_opset result = {.domain = "ai.onnx", .version = 17, .ops = some};
    /* without MatMul (11th) and Gather (last) */
    memcpy(some, floor_table, 10 * sizeof *some);
    memcpy(some + 10, floor_table + 11, 18 * sizeof *some);
    result.op_count = KELP_OPSET_FLOOR_COUNT - 2;
    return &result;
}

static void incomplete_required_operators_are_named(void **state) {
    (void)state;
    kelp_opset_registry *registry = NULL;
    check_ok(kelp_opset_registry_create(kelp_allocator_system(), &registry));
    kelp_opset_backend backend = make_backend();
    backend.dispatch = dispatch;
    backend.atomic_opset = short_opset;
    expect_failure(kelp_opset_register(registry, &backend, NULL), KELP_INVALID_ARGUMENT,
                   "lacks 2 of the 30 operators that every provider must cover: MatMul, Gather");
    kelp_opset_registry_destroy(registry);
}

static void another_abi_version_fails(void **state) {
    (void)state;
    kelp_opset_registry *registry = NULL;
    check_ok(kelp_opset_registry_create(kelp_allocator_system(), &registry));
    kelp_opset_backend backend = make_backend();
    backend.dispatch = dispatch;
    backend.abi_version = 99;
    expect_failure(kelp_opset_register(registry, &backend, NULL), KELP_INVALID_ARGUMENT,
                   "ABI version 99");
    kelp_opset_registry_destroy(registry);
}

/* ---- readiness ---- */
static void readiness_lists_every_unsupported_node(void **state) {
    (void)state;
    kelp_runtime *runtime = NULL;
    kelp_graph *graph = NULL;
    check_ok(kelp_runtime_create(NULL, &runtime));
    check_ok(kelp_graph_load_file(kelp_allocator_system(),
                                  KELP_TEST_DATA "/models/uncovered_op.onnx", NULL, &graph));
    kelp_status *status = kelp_opset_check_ready(kelp_runtime_opsets(runtime), graph);
    assert_non_null(status);
    assert_int_equal(kelp_status_code(status), KELP_UNIMPLEMENTED);
    const char *text = kelp_status_message(status);
    const char *const parts[] = {
        "com.example::Frobnicate version 2, node 'top', in graph 'uncovered_op'",
        "com.example::Twiddle version 2, node 'inner', in subgraph 'yes' of node 'choice' (If)",
        "com.example::Grind version 2, node 'step', in function 'com.example.fn::Wrapped'",
        "com.example::Frobnicate version 2, node 'again'", "covers 4 of its nodes"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(text, parts[i]) == NULL)
            fail_msg("expected '%s' in: %s", parts[i], text);
    kelp_status_free(status);
    kelp_engine *engine = NULL;
    expect_failure(kelp_engine_create(runtime, graph, NULL, &engine), KELP_UNIMPLEMENTED,
                   "is not ready");
    kelp_graph_release(graph);
    kelp_runtime_release(runtime);
}

/* ---- running through each bridge ---- */
static kelp_status *run_custom(const kelp_opset_backend *backend, float *out) {
    kelp_runtime *runtime = NULL;
    kelp_graph *graph = NULL;
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    check_ok(kelp_runtime_create(NULL, &runtime));
    check_ok(kelp_runtime_register_opset(runtime, backend, NULL));
    check_ok(kelp_graph_load_file(kelp_allocator_system(), KELP_TEST_DATA "/models/custom_op.onnx",
                                  NULL, &graph));
    check_ok(kelp_engine_create(runtime, graph, NULL, &engine));
    check_ok(kelp_context_create(engine, &context));
    float data[4] = {1.0f, -2.0f, 3.5f, -0.25f};
    int64_t shape[1] = {4};
    kelp_tensor input;
    check_ok(kelp_tensor_init(&input, KELP_F32, 1, shape, data));
    check_ok(kelp_context_set_input(context, 0, &input));
    kelp_status *status = kelp_context_invoke(context);
    if (status == NULL) /* again: no state of the first run remains */
        status = kelp_context_invoke(context);
    if (status == NULL)
        memcpy(out, kelp_context_output(context, 0)->data, sizeof data);
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_graph_release(graph);
    kelp_runtime_release(runtime);
    return status;
}

static void check_custom(const float *found) {
    const float expected[4] = {-3.0f, -6.0f, -10.5f, -0.75f};
    for (int i = 0; i < 4; i++)
        assert_true(found[i] == expected[i]);
}

static void operators_run_through_dispatch(void **state) {
    (void)state;
    float found[4];
    kelp_opset_backend backend = make_backend();
    backend.dispatch = dispatch;
    dispatched = 0;
    check_ok(run_custom(&backend, found));
    check_custom(found);
    assert_true(dispatched > 0);
}

static void operators_run_as_one_node_graphs(void **state) {
    (void)state;
    float found[4];
    kelp_opset_backend backend = make_backend();
    backend.execute_graph = execute_graph;
    executed = 0;
    check_ok(run_custom(&backend, found));
    check_custom(found);
    assert_true(executed > 0);
}

static void asynchronous_results_are_awaited(void **state) {
    (void)state;
    float found[4];
    kelp_opset_backend backend = make_backend();
    backend.dispatch = dispatch_later;
    later_fails = false;
    check_ok(run_custom(&backend, found));
    join_later();
    check_custom(found);
}

static void asynchronous_error_keeps_its_code(void **state) {
    (void)state;
    float found[4];
    kelp_opset_backend backend = make_backend();
    backend.dispatch = dispatch_later;
    later_fails = true;
    expect_failure(run_custom(&backend, found), KELP_ABORTED, "the device went away");
    join_later();
}

/* ---- backends with defects ---- */
static enum { NOTHING, NO_DATA, OTHER_TYPE, ENDED_EARLY } fault;

static kelp_status *dispatch_wrongly(void *self, const kelp_op_env *env, const kelp_node *node,
                                     const kelp_tensor *const *inputs, kelp_tensor *outputs,
                                     kelp_completion *completion,
                                     kelp_dispatch_result *out_result) {
    (void)self;
    *out_result = KELP_DISPATCH_IMMEDIATE;
    if (fault == ENDED_EARLY)
        kelp_completion_done(completion, KELP_ERROR(KELP_ABORTED, "it was over at once"));
    if (fault == NO_DATA)
        return kelp_tensor_init(&outputs[0], KELP_F32, 1, inputs[0]->shape, NULL);
    if (fault == OTHER_TYPE) {
        KELP_TRY(kelp_tensor_init(&outputs[0], KELP_I32, 1, inputs[0]->shape, NULL));
        outputs[0].data = kelp_op_env_alloc(env, kelp_tensor_bytes(&outputs[0]) + 1);
        return NULL;
    }
    return fault == ENDED_EARLY ? multiply(env, node, inputs[0], &outputs[0]) : NULL;
}

static void results_of_a_backend_are_checked(void **state) {
    (void)state;
    static const struct {
        kelp_code code;
        const char *says;
    } expected[] = {[NOTHING] = {KELP_INTERNAL, "provider 'example' returned no tensor for"},
                    [NO_DATA] = {KELP_INTERNAL, "returned no data for"},
                    [OTHER_TYPE] = {KELP_INTERNAL, "returned int32 for"},
                    [ENDED_EARLY] = {KELP_ABORTED, "it was over at once"}};
    float found[4];
    kelp_opset_backend backend = make_backend();
    backend.dispatch = dispatch_wrongly;
    for (fault = NOTHING; fault <= ENDED_EARLY; fault++)
        expect_failure(run_custom(&backend, found), expected[fault].code, expected[fault].says);
}

/* ---- newer versions ---- */
static const kelp_opset_op newest_ops[] = {{.name = "Neg", .since_version = 1000}};
static const kelp_opset newest = {"", 1000, newest_ops, 1};

static const kelp_opset *newest_opsets(void *self, size_t *out_count) {
    (void)self;
    *out_count = 1;
    return &newest;
}

static bool is_covered(const kelp_opset_registry *registry, const char *op, int64_t version) {
    kelp_graph *graph = NULL;
    kelp_node *node = NULL;
    kelp_opset_match match;
    check_ok(kelp_graph_new(kelp_allocator_system(), &graph));
    const kelp_operator *record = kelp_operator_find((kelp_str){0}, kelp_str_from(op));
    assert_non_null(record);
    check_ok(kelp_block_add_node(graph->main, record, version, "n", NULL, 0, NULL, 0, NULL, &node));
    bool covered = kelp_opset_find(registry, node, &match);
    kelp_graph_release(graph);
    return covered;
}

/* The operators of the runtime are complete up to its version; a newer version lists its changes.
 */
static void newer_version_lists_its_changes(void **state) {
    (void)state;
    kelp_runtime *runtime = NULL;
    check_ok(kelp_runtime_create(NULL, &runtime));
    const kelp_opset_registry *registry = kelp_runtime_opsets(runtime);
    assert_true(is_covered(registry, "Relu", 17));
    assert_false(is_covered(registry, "Relu", 1000));
    kelp_opset_backend backend = make_backend();
    backend.atomic_opset = NULL;
    backend.extension_opsets = newest_opsets;
    backend.dispatch = dispatch;
    check_ok(kelp_runtime_register_opset(runtime, &backend, NULL));
    assert_true(is_covered(registry, "Relu", 1000));
    assert_false(is_covered(registry, "Relu", 1001));
    assert_true(is_covered(registry, "Neg", 1000));
    assert_false(is_covered(registry, "Neg",
                            999)); /* between Kelp's version and the version with the change */
    kelp_runtime_release(runtime);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backend_without_execution_fails),
        cmocka_unit_test(incomplete_required_operators_are_named),
        cmocka_unit_test(another_abi_version_fails),
        cmocka_unit_test(readiness_lists_every_unsupported_node),
        cmocka_unit_test(operators_run_through_dispatch),
        cmocka_unit_test(operators_run_as_one_node_graphs),
        cmocka_unit_test(asynchronous_results_are_awaited),
        cmocka_unit_test(asynchronous_error_keeps_its_code),
        cmocka_unit_test(results_of_a_backend_are_checked),
        cmocka_unit_test(newer_version_lists_its_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
