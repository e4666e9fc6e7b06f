/* SPDX-License-Identifier: Apache-2.0 */
/* Subgraphs for backends: their nodes, costs, and execution. */
#include "onnx/onnx_writer.h"
#include "runtime/partition/regions.h"

#include <kelp/builder.h>
#include <kelp/engine.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

/* ---- models ---- */
static void add(pb *graph, const char *op_type, const char *inputs, const char *outputs) {
    pb node = pb_node(op_type, inputs, outputs);
    pb_text(&node, 3, outputs);
    pb_add_node(graph, &node);
}

static void keep_bytes(void *userp) {
    free(userp);
}

static kelp_graph *load(const pb *graph) {
    pb model = pb_model(graph, 17);
    kelp_graph *loaded = NULL;
    void *copy = malloc(model.length);
    assert_non_null(copy);
    memcpy(copy, model.data, model.length);
    check_ok(kelp_graph_load_bytes(kelp_allocator_system(), copy, model.length, "written", NULL,
                                   keep_bytes, copy, NULL, &loaded));
    return loaded;
}

/* x → Abs → Neg → Exp → Neg → Abs → y, with a path around the Exp: the result of the first Neg is
 * added at the end. */
static kelp_graph *chain_with_bypass(void) {
    pb graph = {0};
    pb_text(&graph, 2, "chain");
    add(&graph, "Abs", "x", "a");
    add(&graph, "Neg", "a", "b");
    add(&graph, "Exp", "b", "c");
    add(&graph, "Neg", "c", "d");
    add(&graph, "Abs", "d", "e");
    add(&graph, "Add", "e b", "y");
    pb_add_input(&graph, "x", "float32[4]");
    pb_add_output(&graph, "y", "float32[4]");
    return load(&graph);
}

/* ---- a backend that computes a few float operators, and records its arguments ---- */
typedef struct taker {
    const char *covered; /* "Abs Neg" */
    double cost_ns;      /* the cost that it reports */
    int graphs, runs, dispatches, prepared, released;
    size_t nodes;                 /* of the last body */
    char inputs[64], outputs[64]; /* names of its inputs and outputs */
    kelp_opset_region region;
    double elsewhere_ns;
    kelp_code prepare_code; /* error code of prepare */
    bool later;
    pthread_t thread;
    bool started;
} taker;

static bool covers(void *self, const kelp_node *node) {
    const char *at = strstr(((taker *)self)->covered, kelp_node_op_type(node));
    return at != NULL && *kelp_node_domain(node) == '\0';
}

static double cost_ns(void *self, const kelp_opset_region *region) {
    taker *t = self;
    t->region = *region;
    t->elsewhere_ns = region->elsewhere_ns;
    return t->cost_ns;
}

static float apply(const char *op, float a, float b) {
    if (strcmp(op, "Abs") == 0)
        return a < 0 ? -a : a;
    if (strcmp(op, "Neg") == 0)
        return -a;
    return a + b;
}

/* Constants are used in place, where they need not be aligned. */
static float element(const kelp_tensor *tensor, int64_t index) {
    float value;
    memcpy(&value, (const char *)tensor->data + index * (int64_t)sizeof value, sizeof value);
    return value;
}

static kelp_status *compute(const kelp_op_env *env, const kelp_node *node, const kelp_tensor *a,
                            const kelp_tensor *b, kelp_tensor *out) {
    KELP_TRY(kelp_tensor_init(out, KELP_F32, a->rank, a->shape, NULL));
    out->data = kelp_op_env_alloc(env, kelp_tensor_bytes(out) + 1);
    if (out->data == NULL)
        return kelp_status_oom();
    for (int64_t i = 0; i < kelp_tensor_elements(a); i++)
        ((float *)out->data)[i] =
            apply(kelp_node_op_type(node), element(a, i), b != NULL ? element(b, i) : 0);
    return NULL;
}

/* The tensor of a value: few nodes, so names are compared. */
static const kelp_tensor *lookup(const kelp_block *body, const kelp_tensor *const *inputs,
                                 const kelp_tensor *made, size_t made_count,
                                 const kelp_value *value) {
    for (size_t i = 0; i < kelp_block_input_count(body); i++)
        if (kelp_block_input(body, i) == value)
            return inputs[i];
    for (size_t n = 0; n < made_count; n++)
        if (kelp_node_output(kelp_block_node(body, n), 0) == value)
            return &made[n];
    return kelp_value_constant(value);
}

static void list_names(const kelp_block *body, taker *t) {
    *t->inputs = *t->outputs = '\0';
    for (size_t i = 0; i < kelp_block_input_count(body); i++)
        snprintf(t->inputs + strlen(t->inputs), sizeof t->inputs - strlen(t->inputs), "%s%s",
                 i ? " " : "", kelp_value_name(kelp_block_input(body, i)));
    for (size_t i = 0; i < kelp_block_output_count(body); i++)
        snprintf(t->outputs + strlen(t->outputs), sizeof t->outputs - strlen(t->outputs), "%s%s",
                 i ? " " : "", kelp_value_name(kelp_block_output(body, i)));
}

static kelp_status *execute_graph(void *self, const kelp_op_env *env, const kelp_block *body,
                                  const kelp_tensor *const *inputs, kelp_tensor *outputs) {
    taker *t = self;
    kelp_tensor made[32];
    size_t nodes = kelp_block_node_count(body);
    t->graphs++;
    t->nodes = nodes;
    list_names(body, t);
    assert_true(nodes <= 32);
    for (size_t n = 0; n < nodes; n++) {
        const kelp_node *node = kelp_block_node(body, n);
        const kelp_tensor *a = lookup(body, inputs, made, n, kelp_node_input(node, 0));
        const kelp_tensor *b = kelp_node_input_count(node) > 1
                                   ? lookup(body, inputs, made, n, kelp_node_input(node, 1))
                                   : NULL;
        KELP_TRY(compute(env, node, a, b, &made[n]));
    }
    for (size_t i = 0; i < kelp_block_output_count(body); i++)
        outputs[i] = *lookup(body, inputs, made, nodes, kelp_block_output(body, i));
    return NULL;
}

static kelp_status *dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                             const kelp_tensor *const *inputs, kelp_tensor *outputs,
                             kelp_completion *completion, kelp_dispatch_result *out_result) {
    (void)completion;
    ((taker *)self)->dispatches++;
    *out_result = KELP_DISPATCH_IMMEDIATE;
    return compute(env, node, inputs[0], kelp_node_input_count(node) > 1 ? inputs[1] : NULL,
                   &outputs[0]);
}

static kelp_status *prepare(void *self, const kelp_op_env *env, kelp_graph *graph,
                            void **out_state) {
    taker *t = self;
    (void)env;
    t->prepared++;
    assert_true(kelp_block_node_count(kelp_graph_main(graph)) > 0);
    assert_int_equal(kelp_graph_opset_version(graph, ""), 17);
    if (t->prepare_code != KELP_OK)
        return KELP_ERROR(t->prepare_code, "not this one");
    *out_state = t;
    return NULL;
}

static void release(void *self, void *state) {
    assert_ptr_equal(self, state);
    ((taker *)self)->released++;
}

typedef struct job {
    taker *t;
    const kelp_op_env *env;
    const kelp_block *body;
    const kelp_tensor *const *inputs;
    kelp_tensor *outputs;
    kelp_completion *completion;
} job;
static job pending;

static void *run_later(void *userp) {
    job *j = userp;
    kelp_status *status = execute_graph(j->t, j->env, j->body, j->inputs, j->outputs);
    kelp_completion_done(j->completion, status);
    return NULL;
}

static kelp_status *run_subgraph(void *self, void *state, const kelp_op_env *env,
                                 const kelp_block *body, const kelp_tensor *const *inputs,
                                 kelp_tensor *outputs, kelp_completion *completion,
                                 kelp_dispatch_result *out_result) {
    taker *t = self;
    (void)state;
    t->runs++;
    if (t->started)
        pthread_join(t->thread, NULL);
    pending = (job){t, env, body, inputs, outputs, completion};
    *out_result = KELP_DISPATCH_LATER;
    t->started = pthread_create(&t->thread, NULL, run_later, &pending) == 0;
    return t->started ? NULL : KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no thread");
}

static kelp_opset_backend taking(void) {
    return (kelp_opset_backend){.abi_version = KELP_OPSET_ABI_VERSION,
                                .struct_size = sizeof(kelp_opset_backend),
                                .name = "taker",
                                .execute_graph = execute_graph,
                                .flags = KELP_OPSET_BY_NAME,
                                .covers = covers};
}

/* ---- running ---- */
typedef struct fixture {
    kelp_runtime *runtime;
    kelp_graph *graph;
    kelp_engine *engine;
    kelp_context *context;
} fixture;

static kelp_status *make(fixture *f, kelp_graph *graph, const kelp_opset_backend *backend,
                         void *self, const char *providers) {
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_engine_options engine = {.struct_size = sizeof engine, .providers = providers};
    *f = (fixture){.graph = graph};
    check_ok(kelp_runtime_create(&options, &f->runtime));
    if (backend != NULL)
        check_ok(kelp_runtime_register_opset(f->runtime, backend, self));
    KELP_TRY(kelp_engine_create(f->runtime, graph, &engine, &f->engine));
    return kelp_context_create(f->engine, &f->context);
}

static void drop(fixture *f) {
    kelp_context_destroy(f->context);
    kelp_engine_release(f->engine);
    kelp_graph_release(f->graph);
    kelp_runtime_release(f->runtime);
}

static kelp_status *invoke(fixture *f, float *out) {
    static float data[4] = {1.0f, -2.0f, 0.5f, 0.0f};
    kelp_tensor input;
    check_ok(kelp_tensor_init(&input, KELP_F32, 1, (int64_t[]){4}, data));
    check_ok(kelp_context_set_input(f->context, 0, &input));
    KELP_TRY(kelp_context_invoke(f->context));
    KELP_TRY(kelp_context_invoke(f->context));
    memcpy(out, kelp_context_output(f->context, 0)->data, sizeof data);
    return NULL;
}

static void expect_chain(fixture *f) {
    float found[4], expected[4];
    fixture plain;
    check_ok(invoke(f, found));
    check_ok(make(&plain, chain_with_bypass(), NULL, NULL, NULL));
    check_ok(invoke(&plain, expected));
    drop(&plain);
    assert_memory_equal(found, expected, sizeof found);
}

/* ---- tests ---- */
static void named_provider_gets_convex_regions(void **state) {
    (void)state;
    fixture f;
    taker t = {.covered = "Abs Neg Add"};
    kelp_opset_backend backend = taking();
    check_ok(make(&f, chain_with_bypass(), &backend, &t, "taker,cpu"));
    /* Abs and Neg before the Exp; Neg, Abs and Add after it: one region would depend on itself */
    assert_int_equal(kelp_engine_subgraph_count(f.engine), 2);
    kelp_subgraph_info first = kelp_engine_subgraph(f.engine, 0);
    assert_string_equal(first.provider, "taker");
    assert_int_equal(kelp_block_node_count(first.body), 2);
    assert_string_equal(kelp_value_name(kelp_block_input(first.body, 0)), "x");
    assert_string_equal(kelp_value_name(kelp_block_output(first.body, 0)), "b");
    assert_int_equal(kelp_block_node_count(kelp_engine_subgraph(f.engine, 1).body), 3);
    assert_null(kelp_engine_subgraph(f.engine, 2).body);
    expect_chain(&f);
    assert_int_equal(t.graphs, 4); /* two subgraphs, two runs */
    assert_string_equal(t.inputs, "c b");
    assert_string_equal(t.outputs, "y");
    assert_int_equal(t.dispatches, 0);
    drop(&f);
}

static void provider_of_all_operators_gets_one_region(void **state) {
    (void)state;
    fixture f;
    check_ok(make(&f, chain_with_bypass(), NULL, NULL, "null"));
    assert_int_equal(kelp_engine_subgraph_count(f.engine), 1);
    float found[4];
    check_ok(invoke(&f, found));
    for (int i = 0; i < 4; i++)
        assert_true(found[i] == 0);
    drop(&f);
}

static void unnamed_provider_gets_only_unsupported_nodes(void **state) {
    (void)state;
    fixture f;
    taker t = {.covered = "Abs Neg Add"};
    kelp_opset_backend backend = taking();
    backend.flags = 0;
    check_ok(make(&f, chain_with_bypass(), &backend, &t, NULL));
    assert_int_equal(kelp_engine_subgraph_count(f.engine), 0);
    drop(&f);
}

static void cost_selects_the_provider(void **state) {
    (void)state;
    fixture f;
    taker t = {.covered = "Abs Neg Add", .cost_ns = 1};
    kelp_opset_backend backend = taking();
    backend.flags = 0;
    backend.cost_ns = cost_ns;
    check_ok(make(&f, chain_with_bypass(), &backend, &t, NULL));
    assert_int_equal(kelp_engine_subgraph_count(f.engine), 2);
    assert_int_equal(t.region.node_count, 3);
    assert_int_equal(t.region.input_count, 2);
    assert_int_equal(t.region.output_count, 1);
    assert_int_equal(t.region.border_bytes, 3 * 16);
    assert_int_equal(t.region.required, 0);
    assert_true(t.elsewhere_ns > 100);
    expect_chain(&f);
    drop(&f);
    t.cost_ns = 1e9;
    check_ok(make(&f, chain_with_bypass(), &backend, &t, NULL));
    assert_int_equal(kelp_engine_subgraph_count(f.engine), 0);
    drop(&f);
    t.cost_ns = -1;
    check_ok(make(&f, chain_with_bypass(), &backend, &t, "taker,cpu"));
    assert_int_equal(kelp_engine_subgraph_count(f.engine), 0);
    drop(&f);
}

typedef struct estimated {
    const char *op_type, *inputs, *x, *y;
    int32_t rank; /* of the constant c; r has the shape [1,4,4] */
    int64_t dims[4];
    const char *attribute; /* NULL: none */
    int64_t value;
    double operations;
    size_t constant_bytes;
} estimated;

static kelp_graph *one_node_with_constants(const estimated *e) {
    static const float zeros[128];
    static const int64_t square[3] = {1, 4, 4};
    pb graph = {0}, node = pb_node(e->op_type, e->inputs, "y");
    size_t bytes = 4;
    for (int32_t i = 0; i < e->rank; i++)
        bytes *= (size_t)e->dims[i];
    pb c = pb_tensor("c", KELP_F32, e->rank, e->dims, zeros, bytes),
       r = pb_tensor("r", KELP_F32, 3, square, zeros, 64);
    pb_text(&graph, 2, "one");
    if (e->attribute != NULL)
        pb_attr_int(&node, e->attribute, e->value);
    pb_add_node(&graph, &node);
    pb_add_initializer(&graph, &c);
    pb_add_initializer(&graph, &r);
    pb_add_input(&graph, "x", e->x);
    pb_add_output(&graph, "y", e->y);
    return load(&graph);
}

/* Twice the multiply-adds; other operators count their elements. */
static void operations_and_constants_are_estimated(void **state) {
    static const estimated cases[] = {
        {"MatMul", "x c", "float32[2,3]", "float32[2,4]", 2, {3, 4}, NULL, 0, 48, 48},
        {"Gemm", "x c", "float32[2,3]", "float32[2,4]", 2, {3, 4}, NULL, 0, 48, 48},
        {"Gemm", "x c", "float32[3,2]", "float32[2,4]", 2, {3, 4}, "transA", 1, 48, 48},
        {"Conv",
         "x c",
         "float32[1,2,5,5]",
         "float32[1,4,3,3]",
         4,
         {4, 2, 3, 3},
         NULL,
         0,
         1296,
         288},
        {"ConvTranspose",
         "x c",
         "float32[1,2,3,3]",
         "float32[1,4,5,5]",
         4,
         {2, 4, 3, 3},
         NULL,
         0,
         1296,
         288},
        {"RNN",
         "x c r",
         "float32[5,1,3]",
         "float32[5,1,1,4]",
         3,
         {1, 4, 3},
         "hidden_size",
         4,
         280,
         112},
        {"Add", "x c", "float32[3,4]", "float32[3,4]", 2, {3, 4}, NULL, 0, 12, 48},
        {"Abs", "x", "float32[n]", "float32[n]", 1, {4}, NULL, 0, 1, 0},
    };
    (void)state;
    kelp_opset_backend backend = taking();
    backend.flags = 0;
    backend.cost_ns = cost_ns;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        taker t = {.covered = cases[i].op_type, .cost_ns = 1e9};
        check_ok(make(&f, one_node_with_constants(&cases[i]), &backend, &t, NULL));
        assert_int_equal(t.region.node_count, 1);
        if (t.region.operations != cases[i].operations ||
            t.region.constant_bytes != cases[i].constant_bytes)
            fail_msg("case %zu (%s): found %g operations, %zu bytes", i, cases[i].op_type,
                     t.region.operations, (size_t)t.region.constant_bytes);
        drop(&f);
    }
}

static void constants_are_part_of_the_subgraph(void **state) {
    (void)state;
    static const float four[4] = {1, 2, 3, 4};
    static const int64_t dims[1] = {4};
    fixture f;
    float found[4];
    taker t = {.covered = "Abs Neg Add"};
    kelp_opset_backend backend = taking();
    pb graph = {0}, c = pb_tensor("c", KELP_F32, 1, dims, four, sizeof four);
    pb_text(&graph, 2, "added");
    add(&graph, "Add", "x c", "y");
    pb_add_initializer(&graph, &c);
    pb_add_input(&graph, "x", "float32[4]");
    pb_add_output(&graph, "y", "float32[4]");
    check_ok(make(&f, load(&graph), &backend, &t, "taker,cpu"));
    check_ok(invoke(&f, found));
    assert_int_equal(t.graphs, 2);
    assert_string_equal(t.inputs, "x");
    assert_true(found[0] == 2.0f && found[1] == 0.0f && found[2] == 3.5f && found[3] == 4.0f);
    drop(&f);
}

/* Only this backend implements com.example::Twice. */
static bool covers_twice(void *self, const kelp_node *node) {
    return covers(self, node) || strcmp(kelp_node_op_type(node), "Twice") == 0;
}

static void expensive_region_shrinks_to_required_nodes(void **state) {
    (void)state;
    fixture f;
    pb graph = {0};
    taker t = {.covered = "Abs Neg Add", .cost_ns = 1e9};
    kelp_opset_backend backend = taking();
    backend.covers = covers_twice;
    backend.cost_ns = cost_ns;
    pb_text(&graph, 2, "required");
    add(&graph, "Abs", "x", "a");
    pb twice = pb_node("Twice", "a", "b");
    pb_text(&twice, 7, "com.example");
    pb_add_node(&graph, &twice);
    add(&graph, "Neg", "b", "y");
    pb_add_input(&graph, "x", "float32[4]");
    pb_add_output(&graph, "y", "float32[4]");
    pb model = pb_model(&graph, 17);
    pb_import(&model, "com.example", 1);
    kelp_graph *loaded = NULL;
    check_ok(kelp_graph_load_bytes(kelp_allocator_system(), model.data, model.length, "written",
                                   NULL, NULL, NULL, NULL, &loaded));
    check_ok(make(&f, loaded, &backend, &t, "taker,cpu"));
    assert_int_equal(kelp_engine_subgraph_count(f.engine), 1);
    assert_int_equal(kelp_block_node_count(kelp_engine_subgraph(f.engine, 0).body), 1);
    drop(&f);
    /* no selected provider implements it */
    check_ok(kelp_graph_load_bytes(kelp_allocator_system(), model.data, model.length, "written",
                                   NULL, NULL, NULL, NULL, &loaded));
    expect_failure(make(&f, loaded, &backend, &t, "cpu"), KELP_UNIMPLEMENTED,
                   "no chosen provider covers 1 of its nodes");
    drop(&f);
}

/* A plan keeps the original graph if a provider takes a part of it. It is partitioned when the plan
 * is loaded, and its weights are packed then. */
static void plan_is_partitioned_when_loaded(void **state) {
    (void)state;
    fixture f;
    pb graph = {0};
    static float w[32 * 32], x[2 * 32], wanted[2 * 32];
    taker t = {.covered = "", .cost_ns = 1};
    kelp_opset_backend backend = taking();
    kelp_builder *builder = NULL;
    kelp_network *network = NULL;
    kelp_builder_config *config = NULL;
    kelp_blob *plan = NULL;
    kelp_engine *engine = NULL;
    kelp_context *context = NULL;
    kelp_tensor input;
    backend.covers = covers_twice;
    backend.flags = 0; /* considered without a name, because builders have no list of names */
    for (int i = 0; i < 32 * 32; i++)
        w[i] = (float)(i * 7 % 13) - 6;
    for (int i = 0; i < 2 * 32; i++)
        x[i] = (float)(i % 5) - 2;
    pb_text(&graph, 2, "parted");
    pb weights = pb_tensor("w", KELP_F32, 2, (int64_t[]){32, 32}, w, sizeof w);
    pb_add_initializer(&graph, &weights);
    add(&graph, "MatMul", "x w", "a");
    pb twice = pb_node("Twice", "a", "y");
    pb_text(&twice, 7, "com.example");
    pb_add_node(&graph, &twice);
    pb_add_input(&graph, "x", "float32[2,32]");
    pb_add_output(&graph, "y", "float32[2,32]");
    pb model = pb_model(&graph, 17);
    pb_import(&model, "com.example", 1);
    kelp_graph *loaded = NULL;
    check_ok(kelp_graph_load_bytes(kelp_allocator_system(), model.data, model.length, "written",
                                   NULL, NULL, NULL, NULL, &loaded));
    check_ok(make(&f, loaded, &backend, &t, NULL));
    check_ok(kelp_tensor_init(&input, KELP_F32, 2, (int64_t[]){2, 32}, x));
    check_ok(kelp_context_set_input(f.context, 0, &input));
    check_ok(kelp_context_invoke(f.context));
    memcpy(wanted, kelp_context_output(f.context, 0)->data, sizeof wanted);

    check_ok(kelp_builder_create(f.runtime, "cpu", &builder));
    check_ok(kelp_builder_parse_bytes(builder, model.data, model.length, "written", NULL, NULL,
                                      &network));
    check_ok(kelp_builder_create_config(builder, &config));
    check_ok(kelp_builder_build(builder, network, config, &plan));
    check_ok(kelp_engine_load(f.runtime, kelp_blob_data(plan), kelp_blob_size(plan), "plan", NULL,
                              NULL, &engine));
    assert_int_equal(kelp_engine_subgraph_count(engine), 1);
    assert_true(kelp_engine_get_stats(engine).weight_bytes_packed >= sizeof w);
    check_ok(kelp_context_create(engine, &context));
    check_ok(kelp_context_set_input(context, 0, &input));
    check_ok(kelp_context_invoke(context));
    assert_memory_equal(kelp_context_output(context, 0)->data, wanted, sizeof wanted);
    kelp_context_destroy(context);
    kelp_engine_release(engine);
    kelp_blob_release(plan);
    kelp_builder_config_release(config);
    kelp_network_release(network);
    kelp_builder_release(builder);
    drop(&f);
}

static void declined_region_runs_elsewhere(void **state) {
    (void)state;
    fixture f;
    taker t = {.covered = "Abs Neg Add", .prepare_code = KELP_UNIMPLEMENTED};
    kelp_opset_backend backend = taking();
    backend.prepare_subgraph = prepare;
    backend.release_subgraph = release;
    check_ok(make(&f, chain_with_bypass(), &backend, &t, "taker,cpu"));
    assert_int_equal(t.prepared, 2);
    assert_int_equal(kelp_engine_subgraph_count(f.engine), 0);
    expect_chain(&f);
    drop(&f);
    assert_int_equal(t.released, 0);
    expect_failure(make(&f, chain_with_bypass(), &backend, &t, "taker"), KELP_UNIMPLEMENTED,
                   "no chosen provider covers");
    drop(&f);
    t.prepare_code = KELP_INVALID_ARGUMENT;
    expect_failure(make(&f, chain_with_bypass(), &backend, &t, "taker,cpu"), KELP_INVALID_ARGUMENT,
                   "not this one");
    drop(&f);
    t.prepare_code = KELP_OK;
    check_ok(make(&f, chain_with_bypass(), &backend, &t, "taker,cpu"));
    expect_chain(&f);
    drop(&f);
    assert_int_equal(t.released, 2);
}

static void asynchronous_subgraphs_are_awaited(void **state) {
    (void)state;
    fixture f;
    taker t = {.covered = "Abs Neg Add"};
    kelp_opset_backend backend = taking();
    backend.run_subgraph = run_subgraph;
    check_ok(make(&f, chain_with_bypass(), &backend, &t, "taker,cpu"));
    expect_chain(&f);
    assert_int_equal(t.runs, 4);
    pthread_join(t.thread, NULL);
    drop(&f);
}

/* A backend with operators but without graph execution gets each operator dispatched. */
static kelp_opset_op floor_table[KELP_OPSET_FLOOR_COUNT];
static kelp_opset atomic = {.domain = "", .version = 17};

static const kelp_opset *atomic_opset(void *self) {
    const char *const *names = kelp_opset_floor();
    (void)self;
    for (int i = 0; i < KELP_OPSET_FLOOR_COUNT; i++)
        floor_table[i] = (kelp_opset_op){.name = names[i], .since_version = 1};
    atomic.ops = floor_table;
    atomic.op_count = KELP_OPSET_FLOOR_COUNT;
    return &atomic;
}

static void pending_results_are_limited(void **state) {
    (void)state;
    fixture f;
    taker t = {.covered = "Abs Neg Add"};
    kelp_opset_backend backend = taking();
    backend.run_subgraph = run_subgraph;
    check_ok(make(&f, chain_with_bypass(), &backend, &t, "taker,cpu"));
    kelp_opset_registry *registry =
        (kelp_opset_registry *)(uintptr_t)kelp_runtime_opsets(f.runtime);
    kelp_opset_set_max_pending(registry, 1);
    expect_chain(&f); /* one at a time, and each decrements the count */
    pthread_join(t.thread, NULL);
    drop(&f);
}

static void shorter_table_registers(void **state) {
    (void)state;
    kelp_opset_registry *registry = NULL;
    kelp_opset_backend backend = taking();
    check_ok(kelp_opset_registry_create(kelp_allocator_system(), &registry));
    backend.struct_size = offsetof(kelp_opset_backend, flags);
    backend.atomic_opset = atomic_opset;
    backend.dispatch = dispatch;
    check_ok(kelp_opset_register(registry, &backend, NULL));
    backend.struct_size--;
    expect_failure(kelp_opset_register(registry, &backend, NULL), KELP_INVALID_ARGUMENT,
                   "expected at least");
    kelp_opset_registry_destroy(registry);
}

static void unknown_providers_are_reported(void **state) {
    (void)state;
    fixture f;
    expect_failure(
        make(&f, chain_with_bypass(), NULL, NULL, "cpu, nobody"), KELP_NOT_FOUND,
        "no provider 'nobody' is registered (of 'cpu, nobody'): found cpu, null, onnxruntime");
    drop(&f);
}

/* ---- properties of the regions of many graphs ---- */
static uint64_t seed = 1;
static uint32_t dice(uint32_t sides) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % sides;
}

static kelp_status *random_block(uint32_t nodes, kelp_graph **out) {
    KELP_TRY(kelp_graph_new(kelp_allocator_system(), out));
    kelp_block *block = (*out)->main;
    static const kelp_operator custom = {"", "Op", KELP_OPERATOR_COUNT, KELP_ONNX_NO_SCHEMA};
    kelp_value *values[64] = {0};
    KELP_TRY(kelp_block_add_value(block, "x", &values[0]));
    for (uint32_t n = 0; n < nodes; n++) {
        kelp_value *inputs[3];
        uint32_t count = 1 + dice(3);
        for (uint32_t i = 0; i < count; i++)
            inputs[i] = values[n < 6 ? dice(n + 1) : n - dice(6)];
        KELP_TRY(kelp_block_add_value(block, "v", &values[n + 1]));
        KELP_TRY(kelp_block_add_node(block, &custom, 17, "", inputs, count, &values[n + 1], 1, NULL,
                                     NULL));
    }
    return NULL;
}

/* reach[a][b]: there is a path from node a to node b. */
static void find_reach(const kelp_block *block, bool reach[64][64]) {
    memset(reach, 0, 64 * sizeof reach[0]);
    for (size_t b = 0; b < block->node_count; b++)
        for (size_t i = 0; i < block->nodes[b]->input_count; i++) {
            const kelp_node *producer = block->nodes[b]->inputs[i]->producer;
            if (producer == NULL)
                continue;
            for (size_t a = 0; a < block->node_count; a++)
                reach[a][b] = reach[a][b] || a == producer->index || reach[a][producer->index];
        }
}

static void regions_are_convex_and_cover_all(void **state) {
    static bool reach[64][64];
    (void)state;
    size_t joined = 0, all = 0;
    for (int round = 0; round < 300; round++) {
        kelp_graph *graph = NULL;
        kelp_arena arena;
        bool candidates[64];
        uint32_t *of = NULL, count = 0, nodes = 5 + dice(50);
        check_ok(random_block(nodes, &graph));
        kelp_arena_init(&arena, kelp_allocator_system(), 0);
        for (uint32_t n = 0; n < nodes; n++)
            candidates[n] = dice(4) != 0;
        check_ok(kelp_regions_grow(graph->main, candidates, &arena, &of, &count));
        find_reach(graph->main, reach);
        for (uint32_t n = 0; n < nodes; n++) {
            assert_true(candidates[n] == (of[n] != KELP_NO_REGION));
            assert_true(of[n] == KELP_NO_REGION || of[n] < count);
        }
        /* the graph of regions has no cycle */
        static bool links[64][64];
        memset(links, 0, sizeof links);
        for (uint32_t a = 0; a < nodes; a++)
            for (uint32_t b = 0; b < nodes; b++)
                if (reach[a][b] && of[a] != of[b] && of[a] != KELP_NO_REGION &&
                    of[b] != KELP_NO_REGION)
                    links[of[a]][of[b]] = true;
        for (uint32_t k = 0; k < count; k++)
            for (uint32_t a = 0; a < count; a++)
                for (uint32_t b = 0; b < count; b++)
                    links[a][b] = links[a][b] || (links[a][k] && links[k][b]);
        for (uint32_t a = 0; a < count; a++)
            assert_false(links[a][a]);
        for (uint32_t a = 0; a < nodes; a++)
            for (uint32_t b = 0; b < nodes; b++)
                for (uint32_t c = 0; of[a] != KELP_NO_REGION && of[a] == of[c] && c < nodes; c++)
                    assert_false(of[b] != of[a] && reach[a][b] && reach[b][c]);
        for (uint32_t n = 0; n < nodes; n++)
            all += candidates[n];
        joined += count;
        kelp_arena_deinit(&arena);
        kelp_graph_release(graph);
    }
    assert_true(joined * 3 < all); /* the regions are large */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_provider_gets_convex_regions),
        cmocka_unit_test(provider_of_all_operators_gets_one_region),
        cmocka_unit_test(unnamed_provider_gets_only_unsupported_nodes),
        cmocka_unit_test(cost_selects_the_provider),
        cmocka_unit_test(operations_and_constants_are_estimated),
        cmocka_unit_test(constants_are_part_of_the_subgraph),
        cmocka_unit_test(expensive_region_shrinks_to_required_nodes),
        cmocka_unit_test(plan_is_partitioned_when_loaded),
        cmocka_unit_test(declined_region_runs_elsewhere),
        cmocka_unit_test(asynchronous_subgraphs_are_awaited),
        cmocka_unit_test(pending_results_are_limited),
        cmocka_unit_test(shorter_table_registers),
        cmocka_unit_test(unknown_providers_are_reported),
        cmocka_unit_test(regions_are_convex_and_cover_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
