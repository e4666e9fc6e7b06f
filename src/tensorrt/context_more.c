/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More functions of TensorRT contexts: profiling by layer, workspaces of the caller, and recordings
 * as CUDA graphs.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "tensorrt/context.h"

#include <string.h>

/* ---- time by layer ---- */
static void report_layer(void *userp, const char *layer, float milliseconds) {
    trt_running *r = userp;
    if (r->profile_fn != NULL)
        r->profile_fn(r->profile_userp, r->profiled_layers++, "", layer, NULL,
                      (uint64_t)((double)milliseconds * 1e6 + 0.5));
}

kelp_status *trt_context_times(void *context, kelp_profile_fn fn, void *userp) {
    trt_running *r = context;
    if (r->times.table == NULL) {
        trt_layer_times_init(&r->times);
        r->times.report = report_layer;
        r->times.userp = r;
    }
    r->profile_fn = fn;
    r->profile_userp = userp;
    trt_context_set_profiler(r->engine->m, r->context,
                             fn != NULL ? TRT_LAYER_TIMES(&r->times) : NULL);
    r->stamp++;
    return NULL;
}

/* ---- workspaces of the caller ---- */
/* Creates TensorRT's context again: it needs to know then who owns the workspace. */
kelp_status *trt_context_memory(void *context, void *data, size_t size_bytes) {
    trt_running *r = context;
    const trt_loaded *e = r->engine;
    void *before = r->workspace;
    size_t before_bytes = r->workspace_bytes;
    KELP_TRY(kelp_cuda_use(e->cuda, e->device));
    KELP_TRY(kelp_cuda_stream_wait(e->cuda, r->stream));
    r->workspace = data;
    r->workspace_bytes = data != NULL ? size_bytes : 0;
    kelp_status *status = trt_context_open(r);
    if (status != NULL) {
        r->workspace = before;
        r->workspace_bytes = before_bytes;
        return status;
    }
    r->stamp++;
    return NULL;
}

/* ---- recordings ---- */
typedef struct recording {
    trt_running *context;
    void *graph;
    uint32_t stamp;
    kelp_tensor *outputs;
} recording;

static kelp_status *check_recordable(const trt_running *r) {
    for (size_t i = 0; i < r->engine->output_count; i++) {
        trt_dims dims =
            trt_context_get_tensor_shape(r->engine->m, r->context, trt_output_name(r, i));
        bool known = dims.rank >= 0;
        for (int32_t axis = 0; axis < dims.rank; axis++)
            known = known && dims.d[axis] >= 0;
        if (!known || r->outputs[i].on_host)
            return KELP_ERROR(
                KELP_FAILED_PRECONDITION,
                "the run cannot be recorded: the shape of output '%s' depends on data",
                trt_output_name(r, i));
        if (r->outputs[i].allocate != NULL)
            return KELP_ERROR(KELP_FAILED_PRECONDITION,
                              "the run cannot be recorded: output '%s' has an allocator",
                              trt_output_name(r, i));
    }
    return NULL;
}

static kelp_status *record(trt_running *r, recording *c) {
    const kelp_cuda *cuda = r->engine->cuda;
    KELP_TRY(kelp_cuda_capture_begin(cuda, r->stream));
    kelp_status *status = trt_context_start(r, r->stream);
    for (size_t i = 0; status == NULL && i < r->engine->output_count; i++)
        status = trt_context_fetch(r, i, r->stream, &c->outputs[i]);
    kelp_status *ended = kelp_cuda_capture_end(cuda, r->stream, &c->graph);
    if (status == NULL)
        return ended;
    kelp_status_free(ended); /* caused by the first failure */
    return status;
}

void trt_capture_free(void *capture) {
    recording *c = capture;
    const trt_loaded *e = c->context->engine;
    kelp_status_free(kelp_cuda_use(e->cuda, e->device));
    kelp_cuda_graph_destroy(e->cuda, c->graph);
    kelp_free(e->allocator, c->outputs, e->output_count * sizeof *c->outputs);
    kelp_free(e->allocator, c, sizeof *c);
}

/* Runs once before the recording, which allocates all memory: a recording must not allocate. */
kelp_status *trt_context_capture(void *context, void **out, size_t *out_steps) {
    trt_running *r = context;
    const trt_loaded *e = r->engine;
    recording *c = NULL;
    KELP_TRY(KELP_NEW(e->allocator, recording, &c));
    c->context = r;
    kelp_status *status =
        kelp_alloc_zero(e->allocator, e->output_count, sizeof *c->outputs, (void **)&c->outputs);
    if (status == NULL)
        status = trt_context_shapes(r, c->outputs);
    if (status == NULL)
        status = check_recordable(r);
    if (status == NULL)
        status = trt_context_run(r, c->outputs);
    if (status == NULL)
        status = record(r, c);
    if (status != NULL) {
        trt_capture_free(c);
        return status;
    }
    c->stamp = r->stamp;
    *out = c;
    *out_steps = 1;
    return NULL;
}

kelp_status *trt_capture_run(void *capture, kelp_tensor *out_outputs) {
    recording *c = capture;
    const trt_running *r = c->context;
    const trt_loaded *e = r->engine;
    KELP_ASSERT(c->graph != NULL);
    if (c->stamp != r->stamp)
        return KELP_ERROR(
            KELP_FAILED_PRECONDITION,
            "the recording is out of date: bindings of the context changed; record again");
    KELP_TRY(kelp_cuda_use(e->cuda, e->device));
    KELP_TRY(kelp_cuda_graph_launch(e->cuda, c->graph, r->stream));
    KELP_TRY(kelp_cuda_stream_wait(e->cuda, r->stream));
    memcpy(out_outputs, c->outputs, e->output_count * sizeof *out_outputs);
    return NULL;
}
