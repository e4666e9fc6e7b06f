/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancellation of a run within a long node: it fails with CANCELLED before all work is done, and
 * the next run of the context gives bit-identical results. The bytes of the outputs and the number
 * of polls show how much was done; the test does not measure time.
 */
#include "onnx/onnx_writer.h"

#include <kelp/engine.h>

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

#define MAX_INPUTS 5
#define UNTOUCHED 0x5a
#define TRIES 50

/* One node whose inputs are all model inputs. */
typedef struct long_node {
    const char *op_type, *inputs; /* names a, b, … in order; "-": omitted */
    const char *types[MAX_INPUTS];
    const char *output;
    void (*attributes)(pb *node);
} long_node;

static void turned(pb *node) {
    pb_attr_int(node, "transA", 1);
    pb_attr_int(node, "transB", 1);
}

static void padded(pb *node) {
    const int64_t pads[4] = {1, 1, 1, 1};
    pb_attr_ints(node, "pads", 4, pads);
}

static void of_64(pb *node) {
    pb_attr_int(node, "hidden_size", 64);
}

static void product(pb *node) {
    pb_attr_text(node, "equation", "ij,jk->ik");
}

static const long_node nodes[] = {
    {"MatMul", "a b", {"float32[640,512]", "float32[512,768]"}, "float32[640,768]", NULL},
    {"MatMul", "a b", {"float64[512,512]", "float64[512,640]"}, "float64[512,640]", NULL},
    {"MatMul", "a b", {"float16[512,512]", "float16[512,512]"}, "float16[512,512]", NULL},
    {"Gemm",
     "a b c",
     {"float32[512,640]", "float32[768,512]", "float32[768]"},
     "float32[640,768]",
     turned},
    {"Gemm", "a b", {"int32[512,512]", "int32[512,640]"}, "int32[512,640]", NULL},
    {"MatMulInteger", "a b", {"uint8[640,512]", "int8[512,768]"}, "int32[640,768]", NULL},
    {"Conv", "a b", {"float32[1,48,96,96]", "float32[64,48,3,3]"}, "float32[1,64,96,96]", padded},
    {"Conv", "a b", {"float32[1,32,64,64]", "float32[96,32,5,5]"}, "float32[1,96,60,60]", NULL},
    {"ConvTranspose",
     "a b",
     {"float32[1,32,64,64]", "float32[32,48,4,4]"},
     "float32[1,48,67,67]",
     NULL},
    {"Softmax", "a", {"float32[2048,4096]"}, "float32[2048,4096]", NULL},
    {"Exp", "a", {"float32[8388608]"}, "float32[8388608]", NULL},
    {"Add", "a b", {"float32[2048,4096]", "float32[2048,1]"}, "float32[2048,4096]", NULL},
    {"Attention",
     "a b c",
     {"float32[1,8,512,64]", "float32[1,8,512,64]", "float32[1,8,512,64]"},
     "float32[1,8,512,64]",
     NULL},
    {"LSTM",
     "a b c",
     {"float32[60,1,64]", "float32[1,256,64]", "float32[1,256,64]"},
     "float32[60,1,1,64]",
     of_64},
    {"Einsum", "a b", {"float32[640,512]", "float32[512,768]"}, "float32[640,768]", product},
};
#define NODES (sizeof nodes / sizeof *nodes)

typedef struct session {
    kelp_runtime *runtime;
    kelp_graph *graph;
    kelp_engine *engine;
    kelp_context *context;
    kelp_tensor inputs[MAX_INPUTS];
    size_t bytes; /* of the output */
    unsigned char *found, *expected;
} session;

static void fill(kelp_tensor *x) {
    int64_t count = kelp_tensor_elements(x);
    x->data = malloc(kelp_tensor_bytes(x));
    assert_non_null(x->data);
    for (int64_t i = 0; i < count; i++) {
        int value = (int)((i * 37 + i / 1000) % 17) - 8;
        switch (x->dtype) {
        case KELP_F64:
            ((double *)x->data)[i] = value / 8.0;
            break;
        case KELP_F32:
            ((float *)x->data)[i] = (float)value / 8.0f;
            break;
        case KELP_F16: /* 1 to 1.5, both signs */
            ((uint16_t *)x->data)[i] =
                (uint16_t)((value < 0 ? 0xbc00 : 0x3c00) + value * value * 8);
            break;
        case KELP_I32:
            ((int32_t *)x->data)[i] = value;
            break;
        default:
            ((uint8_t *)x->data)[i] = (uint8_t)(value & 0x7f);
            break;
        }
    }
}

static void load(session *s, const pb *model, int threads) {
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = threads};
    *s = (session){0};
    check_ok(kelp_runtime_create(&options, &s->runtime));
    check_ok(kelp_graph_load_bytes(kelp_allocator_system(), model->data, model->length, "model",
                                   NULL, NULL, NULL, NULL, &s->graph));
    check_ok(kelp_engine_create(s->runtime, s->graph, NULL, &s->engine));
    check_ok(kelp_context_create(s->engine, &s->context));
}

static void unload(session *s) {
    kelp_context_destroy(s->context);
    kelp_engine_release(s->engine);
    kelp_graph_release(s->graph);
    kelp_runtime_release(s->runtime);
    for (size_t i = 0; i < MAX_INPUTS; i++)
        free(s->inputs[i].data);
    free(s->found);
    free(s->expected);
}

static void open_node(session *s, const long_node *n, int threads) {
    static const char *const names[MAX_INPUTS] = {"a", "b", "c", "d", "e"};
    pb graph = {0}, node = pb_node(n->op_type, n->inputs, "y");
    if (n->attributes != NULL)
        n->attributes(&node);
    pb_add_node(&graph, &node);
    for (size_t i = 0; i < MAX_INPUTS && n->types[i] != NULL; i++)
        pb_add_input(&graph, names[i], n->types[i]);
    pb_add_output(&graph, "y", n->output);
    pb model = pb_model(&graph, 23);
    load(s, &model, threads);
    for (size_t i = 0; i < kelp_engine_input_count(s->engine); i++) {
        const kelp_io_info *info = kelp_engine_input(s->engine, i);
        check_ok(kelp_tensor_init(&s->inputs[i], info->dtype, info->rank, info->shape, NULL));
        fill(&s->inputs[i]);
        check_ok(kelp_context_set_input(s->context, i, &s->inputs[i]));
    }
    const kelp_io_info *info = kelp_engine_output(s->engine, 0);
    kelp_tensor output;
    check_ok(kelp_tensor_init(&output, info->dtype, info->rank, info->shape, NULL));
    s->bytes = kelp_tensor_bytes(&output);
    s->found = malloc(s->bytes);
    s->expected = malloc(s->bytes);
    assert_true(s->found != NULL && s->expected != NULL);
    check_ok(kelp_context_set_output(s->context, 0, s->found, s->bytes));
}

/* ---- cancelling ---- */
/* Another thread cancels at poll number `at`. The first poll is before the node. */
typedef struct canceller {
    kelp_context *context;
    pthread_t thread;
    sem_t inside, done;
    int asked, at;
    bool over;
} canceller;

static void *cancel_when_inside(void *userp) {
    canceller *c = userp;
    while (sem_wait(&c->inside) != 0) {
    }
    if (!c->over)
        kelp_context_cancel(c->context);
    sem_post(&c->done);
    return NULL;
}

static bool let_cancel(void *userp) {
    canceller *c = userp;
    if (++c->asked != c->at)
        return false;
    sem_post(&c->inside);
    while (sem_wait(&c->done) != 0) {
    }
    return false; /* only the other thread cancels */
}

static kelp_status *invoke_cancelled(kelp_context *context, int at, int *out_asked) {
    canceller c = {.context = context, .at = at};
    sem_init(&c.inside, 0, 0);
    sem_init(&c.done, 0, 0);
    assert_int_equal(pthread_create(&c.thread, NULL, cancel_when_inside, &c), 0);
    kelp_context_set_interrupt(context, let_cancel, &c);
    kelp_status *status = kelp_context_invoke(context);
    kelp_context_set_interrupt(context, NULL, NULL);
    if (c.asked < at) { /* it completed before */
        c.over = true;
        sem_post(&c.inside);
    }
    pthread_join(c.thread, NULL);
    sem_destroy(&c.inside);
    sem_destroy(&c.done);
    *out_asked = c.asked;
    return status;
}

static bool any_untouched(const session *s) {
    unsigned char line[64];
    memset(line, UNTOUCHED, sizeof line);
    for (size_t i = 0; i + sizeof line <= s->bytes; i += sizeof line)
        if (memcmp(s->found + i, line, sizeof line) == 0)
            return true;
    return false;
}

/* ---- one node ---- */
static void runs_as_before(session *s) {
    memset(s->found, UNTOUCHED, s->bytes);
    check_ok(kelp_context_invoke(s->context));
    assert_memory_equal(s->found, s->expected, s->bytes);
}

static void cancelled_in_the_midst(const long_node *n, int threads) {
    session s;
    int asked = 0;
    open_node(&s, n, threads);
    memset(s.found, UNTOUCHED, s.bytes);
    check_ok(kelp_context_invoke(s.context));
    assert_false(any_untouched(&s));
    memcpy(s.expected, s.found, s.bytes);
    memset(s.found, UNTOUCHED, s.bytes);
    kelp_status *status = NULL;
    /* One thread does every part, and polls after it. Among several, the others may do all the
     * work before the caller, which polls, has a part of it. */
    for (int i = 0; i < (threads == 1 ? 1 : TRIES) && status == NULL; i++)
        status = invoke_cancelled(s.context, 2, &asked);
    if (status == NULL)
        fail_msg("%s of %s ran to its end after %d polls", n->op_type, n->output, asked);
    expect_failure(status, KELP_CANCELLED, "was cancelled");
    assert_int_equal(asked, 2);
    if (threads == 1)
        assert_true(any_untouched(&s));
    runs_as_before(&s);
    unload(&s);
}

static void node_on_one_thread_can_be_cancelled(void **state) {
    (void)state;
    for (size_t i = 0; i < NODES; i++)
        cancelled_in_the_midst(&nodes[i], 1);
}

static void node_on_several_threads_can_be_cancelled(void **state) {
    (void)state;
    for (size_t i = 0; i < NODES; i++)
        cancelled_in_the_midst(&nodes[i], 3);
}

/* ---- state that a cancellation keeps ---- */
static bool yes(void *userp) {
    ++*(int *)userp;
    return true;
}

/* x [m,32] times constant weights, which are packed when shapes are planned for the first time. */
static void open_weights(session *s, const float *weights, int threads) {
    const int64_t dims[2] = {32, 64};
    pb graph = {0}, node = pb_node("MatMul", "x w", "y");
    pb w = pb_tensor("w", KELP_F32, 2, dims, weights, 32 * 64 * sizeof *weights);
    pb_add_node(&graph, &node);
    pb_add_initializer(&graph, &w);
    pb_add_input(&graph, "x", "float32[m,32]");
    pb_add_output(&graph, "y", "float32[m,64]");
    pb model = pb_model(&graph, 23);
    load(s, &model, threads);
}

static void cancellation_keeps_packed_weights_complete(void **state) {
    (void)state;
    float weights[32 * 64], x[48 * 32];
    for (int i = 0; i < 32 * 64; i++)
        weights[i] = (float)(i % 13 - 6);
    for (int i = 0; i < 48 * 32; i++)
        x[i] = (float)(i % 7 - 3);
    for (int threads = 1; threads <= 2; threads++) {
        session s;
        int asked = 0;
        open_weights(&s, weights, threads);
        for (int64_t m = 1; m <= 48; m += 47) {
            kelp_tensor tensor;
            check_ok(kelp_tensor_init(&tensor, KELP_F32, 2, (int64_t[]){m, 32}, x));
            check_ok(kelp_context_set_input(s.context, 0, &tensor));
            kelp_context_cancel(s.context); /* no run is in flight */
            check_ok(kelp_context_prepare(s.context));
            kelp_context_set_interrupt(s.context, yes, &asked);
            expect_failure(kelp_context_invoke(s.context), KELP_CANCELLED, "was cancelled");
            kelp_context_set_interrupt(s.context, NULL, NULL);
            check_ok(kelp_context_invoke(s.context));
            const float *y = kelp_context_output(s.context, 0)->data;
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < 64; j++) {
                    float sum = 0;
                    for (int64_t k = 0; k < 32; k++)
                        sum += x[i * 32 + k] * weights[k * 64 + j];
                    assert_true(y[i * 64 + j] == sum); /* exact for small integers */
                }
        }
        unload(&s);
    }
}

/* The number of results is known only in the run: the node is reshaped with its data. */
static void node_with_data_dependent_shape_can_be_cancelled(void **state) {
    static float boxes[2000 * 4], scores[2000];
    const int64_t most = 2000;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        float at = (float)i * 2;
        scores[i] = (float)(i % 97);
        memcpy(boxes + (size_t)i * 4, (float[4]){at, at, at + 1, at + 1}, 4 * sizeof(float));
    }
    pb graph = {0}, node = pb_node("NonMaxSuppression", "boxes scores most", "y");
    session s;
    kelp_tensor tensor;
    int asked = 0;
    pb_add_node(&graph, &node);
    pb_add_input(&graph, "boxes", "float32[1,2000,4]");
    pb_add_input(&graph, "scores", "float32[1,1,2000]");
    pb_add_input(&graph, "most", "int64[1]");
    pb_add_output(&graph, "y", "int64[n,3]");
    pb model = pb_model(&graph, 23);
    load(&s, &model, 1);
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 3, (int64_t[]){1, 2000, 4}, boxes));
    check_ok(kelp_context_set_input(s.context, 0, &tensor));
    check_ok(kelp_tensor_init(&tensor, KELP_F32, 3, (int64_t[]){1, 1, 2000}, scores));
    check_ok(kelp_context_set_input(s.context, 1, &tensor));
    check_ok(kelp_tensor_init(&tensor, KELP_I64, 1, (int64_t[]){1}, (void *)&most));
    check_ok(kelp_context_set_input(s.context, 2, &tensor));
    for (int i = 0; i < 2; i++) {
        check_ok(kelp_context_invoke(s.context));
        assert_int_equal(kelp_context_output(s.context, 0)->shape[0], 2000);
        expect_failure(invoke_cancelled(s.context, 500, &asked), KELP_CANCELLED, "was cancelled");
        assert_int_equal(asked, 500);
    }
    unload(&s);
}

static void replay_can_be_cancelled(void **state) {
    (void)state;
    session s;
    kelp_capture *capture = NULL;
    canceller c = {.at = -1};
    int asked = 0;
    open_node(&s, &nodes[0], 1);
    check_ok(kelp_context_invoke(s.context));
    memcpy(s.expected, s.found, s.bytes);
    check_ok(kelp_context_capture(s.context, &capture));
    memset(s.found, UNTOUCHED, s.bytes);
    kelp_context_set_interrupt(s.context, yes, &asked);
    expect_failure(kelp_capture_replay(capture), KELP_CANCELLED, "was cancelled");
    assert_true(any_untouched(&s));
    kelp_context_set_interrupt(s.context, let_cancel, &c); /* no cancellation */
    check_ok(kelp_capture_replay(capture));
    assert_memory_equal(s.found, s.expected, s.bytes);
    assert_true(c.asked >= 2);
    kelp_context_cancel(s.context); /* no run is in flight */
    memset(s.found, UNTOUCHED, s.bytes);
    check_ok(kelp_capture_replay(capture));
    assert_memory_equal(s.found, s.expected, s.bytes);
    kelp_capture_destroy(capture);
    unload(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_on_one_thread_can_be_cancelled),
        cmocka_unit_test(node_on_several_threads_can_be_cancelled),
        cmocka_unit_test(cancellation_keeps_packed_weights_complete),
        cmocka_unit_test(node_with_data_dependent_shape_can_be_cancelled),
        cmocka_unit_test(replay_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
