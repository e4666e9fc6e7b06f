/* SPDX-License-Identifier: Apache-2.0 */
/* Throughput with submissions in flight: forks, their streams, and the loop of submissions. */
#include "cli/bench/in_flight.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"

#include <kelp/remote.h>

#define MIN_RUNS 10u

/* An inference in flight. */
typedef struct slot {
    kelp_compute_stream *stream;
    kelp_event *event;
    kelp_infer_item item;
    kelp_tensor *outputs;
    bool is_pending;
} slot;

typedef struct bench {
    const kelp_in_flight_options *options;
    kelp_runtime *runtime;
    kelp_inputs inputs;
    kelp_tensor *tensors; /* of the inputs, which all inferences read */
    size_t model_count, output_count;
    kelp_compute_model **models; /* the first is loaded, the others are forks */
    kelp_compute_stream **streams;
    slot *slots;
    uint64_t runs;
} bench;

/* ---- preparation ---- */
static kelp_status *load(bench *b) {
    const kelp_in_flight_options *o = b->options;
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = o->threads};
    kelp_artifact artifact = {.path = o->path, .label = o->path, .providers = o->model->providers};
    kelp_allocator allocator = kelp_allocator_system();
    (void)kelp_precision_parse(o->model->precision, &artifact.precision); /* one of the choices */
    KELP_TRY(kelp_runtime_create(&options, &b->runtime));
    if (o->model->plugin != NULL)
        KELP_TRY(kelp_runtime_load_plugin(b->runtime, o->model->plugin));
    KELP_TRY(kelp_remote_register_named(b->runtime, o->model->providers));
    KELP_TRY(
        kelp_alloc_zero(allocator, o->count, sizeof(kelp_compute_model *), (void **)&b->models));
    KELP_TRY(
        kelp_alloc_zero(allocator, o->count, sizeof(kelp_compute_stream *), (void **)&b->streams));
    KELP_TRY(kelp_alloc_zero(allocator, o->count, sizeof *b->slots, (void **)&b->slots));
    KELP_TRY(kelp_compute_load(b->runtime, o->provider, &artifact, &b->models[0]));
    return kelp_compute_init(b->models[0]);
}

static kelp_status *make_inputs(bench *b) {
    const kelp_compute_metadata *metadata = kelp_compute_metadata_of(b->models[0]);
    const kelp_model_options *model = b->options->model;
    KELP_TRY(kelp_inputs_init(&b->inputs, metadata->inputs, metadata->input_count, &model->inputs,
                              &model->shapes, &model->image, KELP_FILL_RANDOM));
    KELP_TRY(kelp_alloc_zero(kelp_allocator_system(), b->inputs.count, sizeof *b->tensors,
                             (void **)&b->tensors));
    for (size_t i = 0; i < b->inputs.count; i++)
        b->tensors[i] = b->inputs.arrays[i].tensor;
    return NULL;
}

static kelp_status *make_slots(bench *b) {
    kelp_allocator allocator = kelp_allocator_system();
    b->output_count = kelp_compute_metadata_of(b->models[0])->output_count;
    for (size_t i = 0; i < b->options->count; i++) {
        slot *s = &b->slots[i];
        KELP_TRY(
            kelp_alloc_zero(allocator, b->output_count, sizeof *s->outputs, (void **)&s->outputs));
        KELP_TRY(kelp_event_create(allocator, &s->event));
        s->item = (kelp_infer_item){.inputs = b->tensors, .outputs = s->outputs};
    }
    return NULL;
}

/* Forks the model unless it has submit, warms up, and creates a stream for each model. */
static kelp_status *make_streams(bench *b) {
    size_t count = b->options->count;
    b->model_count = b->models[0]->vtbl->submit != NULL ? 1 : count;
    for (size_t i = 0; i < b->model_count; i++) {
        slot *s = &b->slots[i];
        if (i > 0) {
            KELP_TRY(kelp_compute_fork(b->models[0], &b->models[i]));
            KELP_TRY(kelp_compute_init(b->models[i]));
        }
        KELP_TRY(kelp_compute_infer_one(b->models[i], &s->item));
    }
    for (size_t i = 0; i < b->model_count; i++)
        KELP_TRY(kelp_compute_stream_create(b->models[i], count / b->model_count, &b->streams[i]));
    for (size_t i = 0; i < count; i++)
        b->slots[i].stream = b->streams[i % b->model_count];
    return NULL;
}

/* ---- measurement ---- */
static kelp_status *submit(bench *b, slot *s) {
    for (size_t i = 0; i < b->output_count; i++)
        s->outputs[i].data = NULL;
    KELP_TRY(kelp_compute_submit(s->stream, &s->item, s->event));
    s->is_pending = true;
    return NULL;
}

static kelp_status *wait_for(bench *b, slot *s) {
    if (!s->is_pending)
        return NULL;
    (void)kelp_event_wait(s->event, UINT64_MAX);
    s->is_pending = false;
    b->runs++;
    kelp_status *status = s->item.status;
    s->item.status = NULL;
    return status;
}

/* Submits all inferences, and each again when it is done, until the time is over. */
static kelp_status *run(bench *b) {
    size_t count = b->options->count;
    uint64_t began_ns = kelp_now_ns(), limit_ns = (uint64_t)(b->options->seconds * 1e9);
    for (size_t i = 0; i < count; i++)
        KELP_TRY(submit(b, &b->slots[i]));
    for (size_t i = 0; b->runs + count < MIN_RUNS || kelp_now_ns() - began_ns < limit_ns;
         i = (i + 1) % count) {
        KELP_TRY(wait_for(b, &b->slots[i]));
        KELP_TRY(submit(b, &b->slots[i]));
    }
    for (size_t i = 0; i < count; i++)
        KELP_TRY(wait_for(b, &b->slots[i]));
    return NULL;
}

static void bench_deinit(bench *b) {
    kelp_allocator allocator = kelp_allocator_system();
    size_t count = b->options->count;
    for (size_t i = 0; b->streams != NULL && i < count; i++)
        kelp_compute_stream_destroy(b->streams[i]); /* waits */
    for (size_t i = count; b->models != NULL && i > 0; i--)
        kelp_compute_destroy(b->models[i - 1]);
    for (size_t i = 0; b->slots != NULL && i < count; i++) {
        kelp_status_free(b->slots[i].item.status);
        kelp_event_destroy(b->slots[i].event);
        kelp_free(allocator, b->slots[i].outputs, b->output_count * sizeof(kelp_tensor));
    }
    kelp_free(allocator, b->tensors, b->inputs.count * sizeof *b->tensors);
    kelp_inputs_deinit(&b->inputs);
    kelp_free(allocator, b->slots, count * sizeof *b->slots);
    kelp_free(allocator, b->streams, count * sizeof(kelp_compute_stream *));
    kelp_free(allocator, b->models, count * sizeof(kelp_compute_model *));
    kelp_runtime_release(b->runtime);
}

kelp_status *kelp_in_flight_measure(const kelp_in_flight_options *options,
                                    kelp_in_flight_result *out) {
    bench b = {.options = options};
    KELP_ASSERT(options->count > 0);
    *out = (kelp_in_flight_result){0};
    uint64_t began_ns = kelp_now_ns();
    kelp_status *status = load(&b);
    out->load_ns = kelp_now_ns() - began_ns;
    if (status == NULL)
        status = make_inputs(&b);
    if (status == NULL)
        status = make_slots(&b);
    if (status == NULL)
        status = make_streams(&b);
    began_ns = kelp_now_ns();
    if (status == NULL)
        status = run(&b);
    out->elapsed_ns = kelp_now_ns() - began_ns;
    out->runs = b.runs;
    for (size_t i = 0; status == NULL && i < b.model_count; i++) {
        kelp_compute_copies copies = kelp_compute_copies_of(b.models[i]);
        out->copies.inputs += copies.inputs;
        out->copies.input_bytes += copies.input_bytes;
    }
    bench_deinit(&b);
    return status;
}
