/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend "accumulator": a stateful model. OUTPUT is the running sum of INPUT within a
 * sequence, and COUNT is the number of requests. All instances of the model share the state, which
 * is stored by correlation id (a number or a string). A sequence begins with the flag START, or
 * with its first request, and ends with the flag END. If there are "max_sequences" (parameter,
 * default 1024), new ones are rejected.
 *
 * If the configuration has the states SUM -> NEXT_SUM (FP32 [1]) and NUMBER -> NEXT_NUMBER (INT64
 * [1]) in sequence_batching, the server stores them, and the backend has no state of its own.
 *
 *   INPUT, OUTPUT FP32 [1]; COUNT INT64 [1], if requested
 */
#include <kelp/backend.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct sequence {
    struct sequence *next;
    uint64_t number; /* 0: the id is `text` */
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

/* Returns the link to a sequence, or the link at the end of the list. */
static sequence **find(model *m, uint64_t number, const char *text) {
    sequence **link = &m->first;
    while (*link != NULL && ((*link)->number != number || strcmp((*link)->text, text) != 0))
        link = &(*link)->next;
    return link;
}

static kelp_status *begin(model *m, uint64_t number, const char *text, sequence **link) {
    if (m->count >= m->max)
        return KELP_ERROR(KELP_UNAVAILABLE, "too many sequences: at most %lld are supported",
                          (long long)m->max);
    sequence *s = calloc(1, sizeof *s + strlen(text) + 1);
    if (s == NULL)
        return kelp_status_oom();
    s->number = number;
    strcpy(s->text, text);
    *link = s;
    m->count++;
    return NULL;
}

/* Adds a value to the sequence of the request. The caller holds the lock. */
static kelp_status *add(model *m, const kelp_backend_request *request, float value, sequence *out) {
    uint64_t number = kelp_backend_request_sequence(request);
    const char *text = kelp_backend_request_sequence_text(request);
    if (number == 0 && text[0] == '\0')
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

static kelp_status *put_state(kelp_backend_request *request, const char *name, kelp_dtype dtype,
                              const kelp_tensor *like, void *value) {
    kelp_tensor next;
    KELP_TRY(kelp_tensor_init(&next, dtype, like->rank, like->shape, value));
    return kelp_backend_put_state(request, name, &next);
}

/* Adds a value to the state of the sequence that the server keeps. */
static kelp_status *add_to_state(kelp_backend_request *request, float value, sequence *out) {
    kelp_tensor sum, number;
    KELP_TRY(kelp_backend_input(request, "SUM", KELP_F32, KELP_ANY_RANK, &sum));
    KELP_TRY(kelp_backend_input(request, "NUMBER", KELP_I64, KELP_ANY_RANK, &number));
    out->sum = *(const float *)sum.data + value;
    out->count = *(const int64_t *)number.data + 1;
    KELP_TRY(put_state(request, "NEXT_SUM", KELP_F32, &sum, &out->sum));
    return put_state(request, "NEXT_NUMBER", KELP_I64, &number, &out->count);
}

static kelp_status *add_to_sequence(model *m, kelp_backend_request *request, float value,
                                    sequence *out) {
    pthread_mutex_lock(&m->lock);
    kelp_status *status = add(m, request, value, out);
    pthread_mutex_unlock(&m->lock);
    return status;
}

static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request *request) {
    model *m = kelp_backend_model_state(kelp_backend_instance_model(instance));
    kelp_backend_response *response;
    kelp_tensor input;
    sequence now;
    KELP_TRY(kelp_backend_input(request, "INPUT", KELP_F32, KELP_ANY_RANK, &input));
    if (kelp_tensor_elements(&input) != 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input 'INPUT' has the wrong shape: expected one element");
    if (kelp_backend_has_input(request, "SUM"))
        KELP_TRY(add_to_state(request, *(const float *)input.data, &now));
    else
        KELP_TRY(add_to_sequence(m, request, *(const float *)input.data, &now));
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
