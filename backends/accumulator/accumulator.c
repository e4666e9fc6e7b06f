/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend "accumulator": a stateful model. Within a sequence, OUTPUT is the running sum of the
 * INPUTs and COUNT how many there were; another sequence has another sum. The state is the
 * backend's own, by the request's correlation id (a number or a text), shared by all instances of
 * the model. A sequence begins with the flag START, or with its first request, and is forgotten
 * with the flag END; beyond the parameter "max_sequences" (1024) new ones are refused.
 *
 *   INPUT, OUTPUT FP32 [1]; COUNT INT64 [1], where it is asked for
 */
#include <kelp/backend.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct sequence {
    struct sequence *next;
    uint64_t number; /* 0: named by `text` */
    float sum;
    int64_t count;
    char text[];
} sequence;

typedef struct model {
    pthread_mutex_t lock;
    sequence *first;
    int64_t count, max;
} model;

static void model_destroy(void *state) {
    model *m = state;
    while (m->first != NULL) {
        sequence *s = m->first;
        m->first = s->next;
        free(s);
    }
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static kelp_status *model_create(kelp_backend_model *handle, void **out_state) {
    model *m = calloc(1, sizeof *m);
    if (m == NULL)
        return kelp_status_oom();
    pthread_mutex_init(&m->lock, NULL);
    *out_state = m;
    return kelp_backend_model_i64(handle, "max_sequences", 1024, &m->max);
}

/* The link to a sequence, or to the end of the list. */
static sequence **find(model *m, uint64_t number, const char *text) {
    sequence **link = &m->first;
    while (*link != NULL && ((*link)->number != number || strcmp((*link)->text, text) != 0))
        link = &(*link)->next;
    return link;
}

static kelp_status *begin(model *m, uint64_t number, const char *text, sequence **link) {
    if (m->count >= m->max)
        return KELP_ERROR(KELP_UNAVAILABLE, "there are %lld sequences already",
                          (long long)m->count);
    sequence *s = calloc(1, sizeof *s + strlen(text) + 1);
    if (s == NULL)
        return kelp_status_oom();
    s->number = number;
    strcpy(s->text, text);
    *link = s;
    m->count++;
    return NULL;
}

/* Adds to the sequence of the request; the lock is held. */
static kelp_status *add(model *m, const kelp_backend_request *request, float value, sequence *out) {
    uint64_t number = kelp_backend_request_sequence(request);
    const char *text = kelp_backend_request_sequence_text(request);
    if (!number && !*text)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the request has no sequence id");
    sequence **link = find(m, number, text);
    if (*link == NULL)
        KELP_TRY(begin(m, number, text, link));
    sequence *s = *link;
    if (kelp_backend_request_is_start(request)) {
        s->sum = 0;
        s->count = 0;
    }
    s->sum += value;
    s->count++;
    *out = *s;
    if (kelp_backend_request_is_end(request)) {
        *link = s->next;
        m->count--;
        free(s);
    }
    return NULL;
}

static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request *request) {
    model *m = kelp_backend_model_state(kelp_backend_instance_model(instance));
    kelp_backend_response *response;
    kelp_tensor input;
    sequence now;
    KELP_TRY(kelp_backend_input(request, "INPUT", KELP_F32, KELP_ANY_RANK, &input));
    if (kelp_tensor_elements(&input) != 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "INPUT: expected one element");
    pthread_mutex_lock(&m->lock);
    kelp_status *status = add(m, request, *(const float *)input.data, &now);
    pthread_mutex_unlock(&m->lock);
    KELP_TRY(status);
    KELP_TRY(kelp_backend_respond(request, &response));
    if (kelp_backend_request_wants(request, "COUNT"))
        KELP_TRY(
            kelp_backend_put(response, "COUNT", KELP_I64, input.rank, input.shape, &now.count));
    return kelp_backend_put(response, "OUTPUT", KELP_F32, input.rank, input.shape, &now.sum);
}

static const kelp_backend_definition accumulator = {
    .struct_size = sizeof accumulator,
    .name = "accumulator",
    .model_create = model_create,
    .model_destroy = model_destroy,
    .execute_one = execute,
};
KELP_TRITON_BACKEND(accumulator)
