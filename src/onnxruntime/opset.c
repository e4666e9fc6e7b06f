/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider `onnxruntime` for operators: each subgraph is saved as a model and loaded into a
 * session. Subgraphs that ONNX Runtime rejects are left to other providers.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "runtime/runtime.h"
#include "graph/save.h"
#include "onnxruntime/provider.h"

#include <pthread.h>
#include <string.h>

typedef struct ort_subgraph {
    kelp_runtime *runtime;
    kelp_buf bytes;
    kelp_compute_model *model;
    pthread_mutex_t lock; /* a model is used by one thread at a time */
    kelp_tensor *inputs, *outputs;
    size_t input_count, output_count;
} ort_subgraph;

static bool is_supported(const kelp_value *value) {
    return value == NULL || (kelp_value_kind_of(value) == KELP_VALUE_TENSOR &&
                             kelp_dtype_bits(kelp_value_dtype(value)) > 0);
}

static bool covers(void *self, const kelp_node *node) {
    const char *domain = kelp_node_domain(node);
    (void)self;
    if (strcmp(domain, "") != 0 && strcmp(domain, "ai.onnx.ml") != 0 &&
        strcmp(domain, "com.microsoft") != 0)
        return false;
    for (size_t i = 0; i < kelp_node_input_count(node); i++)
        if (!is_supported(kelp_node_input(node, i)))
            return false;
    for (size_t i = 0; i < kelp_node_output_count(node); i++)
        if (!is_supported(kelp_node_output(node, i)))
            return false;
    return true;
}

static void release_subgraph(void *self, void *state) {
    ort_subgraph *p = state;
    (void)self;
    if (p == NULL)
        return;
    kelp_allocator allocator = kelp_runtime_allocator(p->runtime);
    kelp_runtime *runtime = p->runtime;
    kelp_compute_destroy(p->model);
    kelp_buf_deinit(&p->bytes);
    kelp_free(allocator, p->inputs, p->input_count * sizeof *p->inputs);
    kelp_free(allocator, p->outputs, p->output_count * sizeof *p->outputs);
    pthread_mutex_destroy(&p->lock);
    kelp_free(allocator, p, sizeof *p);
    kelp_runtime_release(runtime);
}

/* Converts errors to UNIMPLEMENTED, which leaves the nodes to other providers. Out of memory is not
 * a property of the subgraph. */
static kelp_status *as_unsupported(kelp_status *status) {
    if (status == NULL || kelp_status_code(status) == KELP_RESOURCE_EXHAUSTED)
        return status;
    kelp_status *unsupported = KELP_ERROR(KELP_UNIMPLEMENTED, "%s", kelp_status_message(status));
    kelp_status_free(status);
    return unsupported;
}

static kelp_status *open_subgraph(ort_subgraph *p, const kelp_graph *graph) {
    kelp_allocator allocator = kelp_runtime_allocator(p->runtime);
    kelp_artifact artifact = {.label = graph->info.label};
    KELP_TRY(kelp_alloc_zero(allocator, p->input_count, sizeof *p->inputs, (void **)&p->inputs));
    KELP_TRY(kelp_alloc_zero(allocator, p->output_count, sizeof *p->outputs, (void **)&p->outputs));
    KELP_TRY(kelp_graph_save(graph, NULL, &p->bytes));
    artifact.data = p->bytes.data;
    artifact.size_bytes = p->bytes.length;
    KELP_TRY(kelp_onnxruntime_check_library());
    kelp_status *status = kelp_compute_load(p->runtime, "onnxruntime", &artifact, &p->model);
    return as_unsupported(status == NULL ? kelp_compute_init(p->model) : status);
}

static kelp_status *prepare_subgraph(void *self, const kelp_op_env *env, kelp_graph *graph,
                                     void **out_state) {
    kelp_runtime *runtime = self;
    kelp_allocator allocator = kelp_runtime_allocator(runtime);
    ort_subgraph *p = NULL;
    (void)env;
    KELP_TRY(KELP_NEW(allocator, ort_subgraph, &p));
    p->runtime = kelp_runtime_retain(runtime);
    p->input_count = graph->main->input_count;
    p->output_count = graph->main->output_count;
    pthread_mutex_init(&p->lock, NULL);
    kelp_buf_init(&p->bytes, allocator);
    kelp_status *status = open_subgraph(p, graph);
    if (status != NULL) {
        release_subgraph(self, p);
        return status;
    }
    *out_state = p;
    return NULL;
}

/* Copies an output to the caller's arena: the model overwrites its outputs in the next run. */
static kelp_status *copy_output(const kelp_op_env *env, const kelp_tensor *from, kelp_tensor *out) {
    size_t bytes = kelp_tensor_bytes(from), text_bytes = 0;
    int64_t strings = from->dtype == KELP_STRING ? kelp_tensor_elements(from) : 0;
    for (int64_t i = 0; i < strings; i++)
        text_bytes += ((const kelp_string *)from->data)[i].length;
    *out = *from;
    out->data = kelp_op_env_alloc(env, bytes + text_bytes + 1);
    if (out->data == NULL)
        return kelp_status_oom();
    if (bytes > 0)
        memcpy(out->data, from->data, bytes);
    char *text = (char *)out->data + bytes;
    for (int64_t i = 0; i < strings; i++) {
        kelp_string *string = (kelp_string *)out->data + i;
        if (string->length > 0)
            memcpy(text, string->data, string->length);
        string->data = text;
        text += string->length;
    }
    return NULL;
}

static kelp_status *run_subgraph(void *self, void *state, const kelp_op_env *env,
                                 const kelp_block *body, const kelp_tensor *const *inputs,
                                 kelp_tensor *outputs, kelp_completion *completion,
                                 kelp_dispatch_result *out_result) {
    ort_subgraph *p = state;
    KELP_ASSERT(p->model != NULL && p->output_count == kelp_block_output_count(body));
    (void)self;
    (void)body;
    (void)completion;
    *out_result = KELP_DISPATCH_IMMEDIATE;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->input_count; i++)
        p->inputs[i] = *inputs[i];
    memset(p->outputs, 0, p->output_count * sizeof *p->outputs);
    kelp_infer_item item = {.inputs = p->inputs, .outputs = p->outputs};
    kelp_status *status = kelp_compute_infer_one(p->model, &item);
    for (size_t i = 0; status == NULL && i < p->output_count; i++)
        status = copy_output(env, &p->outputs[i], &outputs[i]);
    pthread_mutex_unlock(&p->lock);
    return status;
}

const kelp_opset_backend kelp_onnxruntime_operators = {.abi_version = KELP_OPSET_ABI_VERSION,
                                                       .struct_size = sizeof(kelp_opset_backend),
                                                       .name = "onnxruntime",
                                                       .flags = KELP_OPSET_BY_NAME,
                                                       .covers = covers,
                                                       .prepare_subgraph = prepare_subgraph,
                                                       .run_subgraph = run_subgraph,
                                                       .release_subgraph = release_subgraph};
