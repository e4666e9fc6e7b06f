/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An application that runs models of a provider in a plug-in library: one inference, a batch with
 * an invalid item, and a stream that runs next to the calling thread.
 *
 *     cc -std=c17 host.c -o host $(pkg-config --cflags --libs kelp)
 *     ./host ./libpolynomial.so "1 0 2"
 */
#include <kelp/compute.h>
#include <kelp/engine.h>

#include <stdio.h>
#include <string.h>

enum { ITEMS = 3 };
static const int64_t shape[] = {1};

/* The items of a batch, and their memory. */
typedef struct batch {
    float x[ITEMS], y[ITEMS];
    kelp_tensor inputs[ITEMS], outputs[ITEMS];
    kelp_infer_item items[ITEMS];
} batch;

static kelp_status *fill(batch *b) {
    for (int i = 0; i < ITEMS; i++) {
        b->x[i] = (float)(i + 1);
        KELP_TRY(kelp_tensor_init(&b->inputs[i], KELP_F32, 1, shape, &b->x[i]));
        KELP_TRY(kelp_tensor_init(&b->outputs[i], KELP_F32, 1, shape, &b->y[i]));
        b->items[i] = (kelp_infer_item){.inputs = &b->inputs[i], .outputs = &b->outputs[i]};
    }
    return NULL;
}

/* Each item of a batch has its own result. */
static kelp_status *run_batch(kelp_compute_model *model, batch *b) {
    b->inputs[1].dtype = KELP_I32; /* on purpose: the model expects float32 */
    KELP_TRY(kelp_compute_infer_batch(model, b->items, ITEMS, KELP_BATCH_EACH));
    b->inputs[1].dtype = KELP_F32;
    for (int i = 0; i < ITEMS; i++) {
        if (b->items[i].status == NULL)
            printf("batch:  p(%g) = %g\n", b->x[i], b->y[i]);
        else
            printf("batch:  %s\n", kelp_status_message(b->items[i].status));
        kelp_status_free(b->items[i].status);
        b->items[i].status = NULL;
    }
    return NULL;
}

/* The stream owns the model, so that it gets a copy. */
static kelp_status *run_stream(kelp_compute_model *model, batch *b) {
    kelp_compute_stream *stream = NULL;
    KELP_TRY(kelp_compute_init(model));
    KELP_TRY(kelp_compute_stream_create(model, ITEMS, &stream));
    kelp_status *status = NULL;
    for (int i = 0; i < ITEMS && status == NULL; i++)
        status = kelp_compute_submit(stream, &b->items[i], NULL);
    kelp_compute_stream_destroy(stream); /* waits for all submissions */
    for (int i = 0; i < ITEMS; i++) {
        if (status != NULL)
            kelp_status_free(b->items[i].status);
        else if (b->items[i].status != NULL)
            status = b->items[i].status;
        else
            printf("stream: p(%g) = %g\n", b->x[i], b->y[i]);
    }
    return status;
}

static kelp_status *use(kelp_compute_model *model) {
    batch b = {0};
    kelp_compute_model *copy = NULL;
    KELP_TRY(kelp_compute_init(model));
    KELP_TRY(fill(&b));
    KELP_TRY(kelp_compute_infer_one(model, &b.items[0]));
    printf("single: p(%g) = %g\n", b.x[0], b.y[0]);
    KELP_TRY(run_batch(model, &b));
    KELP_TRY(kelp_compute_fork(model, &copy));
    kelp_status *status = run_stream(copy, &b);
    kelp_compute_destroy(copy);
    return status;
}

static kelp_status *load_and_use(kelp_runtime *runtime, const char *library, const char *text) {
    kelp_artifact artifact = {
        .data = text, .size_bytes = strlen(text), .label = "the second argument"};
    kelp_compute_model *model = NULL;
    KELP_TRY(kelp_runtime_load_plugin(runtime, library));
    KELP_TRY(kelp_compute_load(runtime, "polynomial", &artifact, &model));
    kelp_status *status = use(model);
    kelp_compute_destroy(model);
    return status;
}

int main(int argc, char **argv) {
    kelp_runtime *runtime = NULL;
    char text[1024];
    if (argc != 3) {
        fprintf(stderr, "usage: host LIBRARY COEFFICIENTS\n");
        return 2;
    }
    kelp_status *status = kelp_runtime_create(NULL, &runtime);
    if (status == NULL)
        status = load_and_use(runtime, argv[1], argv[2]);
    int code = status != NULL;
    if (status != NULL) {
        kelp_status_format(status, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    kelp_status_free(status);
    kelp_runtime_release(runtime);
    return code;
}
