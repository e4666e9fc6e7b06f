/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responses in the cache. The identity of a request consists of the model's name and version, a
 * fingerprint of its files and configuration, and the request's inputs (names, types, shapes,
 * bytes), outputs and parameters. A hash of the identity is the cache's key. The identity itself is
 * stored with the response and compared on lookup, so that requests with colliding keys never get
 * each other's responses.
 *
 * An entry has one buffer: the length of the identity and the identity, then the parameters, then
 * the outputs. A value is 8 bytes in the machine's byte order, or a length and bytes. Every size is
 * checked when it is read, because a cache may return foreign memory.
 *
 * The functions run on the threads of the request.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "server/cache/cache.h"
#include "server/core/error.h"
#include "server/core/log.h"

#include <inttypes.h>
#include <stdio.h>

/* The identity of a request. */
struct kelp_cache_ticket {
    kelp_allocator allocator;
    char *identity;
    size_t identity_length;
    size_t identity_capacity;
    char key[40];       /* a hash of the identity */
    uint64_t lookup_ns; /* duration of the lookup */
};

/* ---- writing ---- */

static void put_u64(kelp_buf *out, uint64_t value) {
    kelp_buf_append(out, &value, sizeof value);
}

static void put_bytes(kelp_buf *out, const void *data, size_t length) {
    put_u64(out, length);
    kelp_buf_append(out, data, length);
}

static void put_text(kelp_buf *out, const char *text) {
    put_bytes(out, text, strlen(text));
}

static void put_params(kelp_buf *out, const kelp_params *params) {
    put_u64(out, params->count);
    for (size_t i = 0; i < params->count; i++) {
        const kelp_param *param = &params->items[i];
        put_text(out, kelp_text_get(&param->name));
        put_u64(out, (uint64_t)param->type);
        if (param->type == TRITONSERVER_PARAMETER_STRING)
            put_text(out, kelp_text_get(&param->string));
        else if (param->type == TRITONSERVER_PARAMETER_DOUBLE)
            kelp_buf_append(out, &param->f64, sizeof param->f64);
        else
            put_u64(out, param->type == TRITONSERVER_PARAMETER_BOOL ? param->boolean
                                                                    : (uint64_t)param->i64);
    }
}

static void put_shape(kelp_buf *out, const int64_t *shape, uint32_t rank) {
    put_u64(out, rank);
    kelp_buf_append(out, shape, rank * sizeof *shape);
}

/* Returns false if the input is not in host memory. */
static bool put_input(kelp_buf *out, const kelp_input *input) {
    const kelp_data *data = kelp_input_data(input, NULL);
    put_text(out, kelp_text_get(&input->name));
    put_u64(out, (uint64_t)input->datatype);
    put_shape(out, input->shape, input->rank);
    put_u64(out, data->size_bytes);
    for (size_t i = 0; i < data->count; i++) {
        if (data->blocks[i].attributes.memory_type == TRITONSERVER_MEMORY_GPU)
            return false;
        kelp_buf_append(out, data->blocks[i].base, data->blocks[i].attributes.size_bytes);
    }
    return input->policy_count == 0;
}

/* Returns the input whose name follows that of `last` alphabetically, or NULL: the identity does
 * not depend on the order of the inputs. */
static const kelp_input *next_input(const kelp_request *request, const kelp_input *last) {
    const kelp_input *next = NULL;
    for (size_t i = 0; i < request->input_count; i++) {
        const kelp_input *input = request->inputs[i];
        const char *name = kelp_text_get(&input->name);
        if (last != NULL && strcmp(name, kelp_text_get(&last->name)) <= 0)
            continue;
        if (next == NULL || strcmp(name, kelp_text_get(&next->name)) < 0)
            next = input;
    }
    return next;
}

/* Returns NULL if the request cannot be cached, or memory is exhausted. */
static kelp_cache_ticket *make_ticket(const kelp_request *request) {
    kelp_model_base *model = request->model;
    kelp_allocator allocator = request->home->allocator;
    kelp_cache_ticket *ticket = NULL;
    kelp_buf text;
    kelp_buf_init(&text, allocator);
    put_text(&text, model->name);
    put_u64(&text, (uint64_t)model->version);
    put_u64(&text, kelp_model_fingerprint(model));
    put_u64(&text, request->input_count);
    bool readable = true;
    for (const kelp_input *i = NULL; readable && (i = next_input(request, i)) != NULL;)
        readable = put_input(&text, i);
    size_t outputs = kelp_request_output_count(request);
    put_u64(&text, outputs);
    for (size_t i = 0; i < outputs; i++)
        put_text(&text, kelp_request_output_name(request, i));
    put_params(&text, &request->params);
    put_u64(&text, request->flags);
    put_u64(&text, request->correlation_id);
    put_text(&text, kelp_text_get(&request->correlation_string));
    kelp_status *status = kelp_buf_status(&text);
    if (status == NULL && readable)
        status = KELP_NEW(allocator, kelp_cache_ticket, &ticket);
    if (ticket != NULL) {
        ticket->allocator = allocator;
        snprintf(ticket->key, sizeof ticket->key, "%016" PRIx64 "%016" PRIx64,
                 kelp_hash_bytes(text.data, text.length),
                 kelp_hash_bytes(text.data + text.length / 2, text.length - text.length / 2));
        ticket->identity =
            kelp_buf_take(&text, &ticket->identity_length, &ticket->identity_capacity);
    }
    kelp_server_log_status("cannot look up a request in the cache", status);
    kelp_buf_deinit(&text);
    return ticket;
}

static void ticket_destroy(kelp_cache_ticket *ticket) {
    kelp_allocator allocator = ticket->allocator;
    kelp_free(allocator, ticket->identity, ticket->identity_capacity);
    kelp_free(allocator, ticket, sizeof *ticket);
}

static void discard(kelp_response_cache *cache, kelp_cache_ticket *ticket) {
    (void)cache;
    ticket_destroy(ticket);
}

/* ---- reading ---- */

typedef struct reader {
    kelp_allocator allocator;
    const char *at;
    size_t left;
    bool failed;
} reader;

static const void *take(reader *in, size_t length) {
    if (in->failed || length > in->left) {
        in->failed = true;
        return NULL;
    }
    const char *data = in->at;
    in->at += length;
    in->left -= length;
    return data;
}

static uint64_t take_u64(reader *in) {
    uint64_t value = 0;
    const void *data = take(in, sizeof value);
    if (data != NULL)
        memcpy(&value, data, sizeof value);
    return value;
}

static const void *take_bytes(reader *in, size_t *out_length) {
    *out_length = take_u64(in);
    return take(in, *out_length);
}

/* Reads a terminated copy of a text; free with kelp_free_string. */
static kelp_status *take_text(reader *in, char **out) {
    size_t length = 0;
    const char *data = take_bytes(in, &length);
    if (data == NULL)
        return KELP_ERROR(KELP_INTERNAL, "a cached response is truncated");
    if (memchr(data, '\0', length) != NULL)
        return KELP_ERROR(KELP_INTERNAL, "a cached response is corrupt");
    KELP_TRY(kelp_alloc(in->allocator, length + 1, (void **)out));
    memcpy(*out, data, length);
    (*out)[length] = '\0';
    return NULL;
}

static kelp_status *read_param(reader *in, kelp_params *params) {
    char *name = NULL, *string = NULL;
    kelp_param *param = NULL;
    KELP_TRY(take_text(in, &name));
    uint64_t type_number = take_u64(in);
    TRITONSERVER_ParameterType type = (TRITONSERVER_ParameterType)type_number;
    kelp_status *status = type_number <= TRITONSERVER_PARAMETER_DOUBLE
                              ? kelp_params_add(in->allocator, params, name, type, &param)
                              : KELP_ERROR(KELP_INTERNAL, "a cached response is corrupt");
    kelp_free_string(in->allocator, name);
    KELP_TRY(status);
    if (type == TRITONSERVER_PARAMETER_STRING) {
        KELP_TRY(take_text(in, &string));
        status = kelp_text_set(in->allocator, &param->string, string);
        kelp_free_string(in->allocator, string);
        return status;
    }
    uint64_t bits = take_u64(in);
    param->boolean = bits != 0;
    memcpy(&param->i64, &bits, sizeof bits);
    memcpy(&param->f64, &bits, sizeof bits);
    return NULL;
}

static kelp_status *read_output(reader *in, kelp_response *response) {
    char *name = NULL;
    kelp_output *output = NULL;
    KELP_TRY(take_text(in, &name));
    TRITONSERVER_DataType datatype = (TRITONSERVER_DataType)take_u64(in);
    uint64_t rank = take_u64(in);
    int64_t shape[KELP_SERVER_MAX_RANK];
    const void *dims = rank <= KELP_SERVER_MAX_RANK ? take(in, rank * sizeof *shape) : NULL;
    size_t size_bytes = 0;
    const void *data = take_bytes(in, &size_bytes);
    kelp_status *status = NULL;
    if (dims == NULL || data == NULL)
        status = KELP_ERROR(KELP_INTERNAL, "a cached response is truncated");
    else
        memcpy(shape, dims, rank * sizeof *shape);
    if (status == NULL)
        status =
            kelp_response_restore_output(response, name, datatype, shape, (uint32_t)rank, &output);
    kelp_free_string(in->allocator, name);
    void *buffer = NULL;
    if (status == NULL)
        status = kelp_output_allocate(output, size_bytes, TRITONSERVER_MEMORY_CPU, 0, &buffer);
    if (status == NULL && output->attributes.memory_type == TRITONSERVER_MEMORY_GPU)
        status = KELP_ERROR(KELP_UNIMPLEMENTED, "a cached response cannot be copied to a GPU");
    if (status == NULL && size_bytes && buffer != NULL)
        memcpy(buffer, data, size_bytes);
    return status;
}

static kelp_status *read_response(const char *data, size_t length, kelp_response *response) {
    reader in = {.allocator = response->home->allocator, .at = data, .left = length};
    uint64_t params = take_u64(&in);
    for (uint64_t i = 0; i < params; i++)
        KELP_TRY(read_param(&in, &response->params));
    uint64_t outputs = take_u64(&in);
    for (uint64_t i = 0; i < outputs; i++)
        KELP_TRY(read_output(&in, response));
    return in.failed || in.left ? KELP_ERROR(KELP_INTERNAL, "a cached response is corrupt") : NULL;
}

/* ---- lookup ---- */

/* Copies the response from an entry with the identity of the ticket. */
typedef struct finder {
    kelp_cache_copier base;
    const kelp_cache_ticket *ticket;
    char *data; /* the bytes after the identity; NULL if the identity differs */
    size_t length;
} finder;

/* Only copies. Creating the response calls the application, and the cache may hold a lock here. */
static kelp_status *copy_found(kelp_cache_copier *self, kelp_cache_entry *entry) {
    finder *find = (finder *)self;
    if (entry->count != 1 || entry->buffers[0].base == NULL || find->data != NULL)
        return KELP_ERROR(KELP_INTERNAL, "a cache entry has %zu buffers: expected 1", entry->count);
    reader in = {.at = entry->buffers[0].base, .left = entry->buffers[0].attributes.size_bytes};
    size_t length = 0;
    const void *identity = take_bytes(&in, &length);
    if (identity == NULL || length != find->ticket->identity_length ||
        memcmp(identity, find->ticket->identity, length) != 0)
        return NULL; /* a different request with the same hash */
    KELP_TRY(kelp_alloc(find->ticket->allocator, in.left, (void **)&find->data));
    find->length = in.left;
    memcpy(find->data, in.at, in.left);
    return NULL;
}

static kelp_status *look_up_bytes(kelp_cache *cache, finder *find) {
    kelp_cache_entry entry;
    kelp_cache_entry_init(&entry, cache->allocator);
    kelp_status *status = kelp_from_error(cache->fn.lookup(cache->handle, find->ticket->key,
                                                           (TRITONCACHE_CacheEntry *)&entry,
                                                           (TRITONCACHE_Allocator *)&find->base));
    kelp_cache_entry_deinit(&entry);
    if (kelp_status_code(status) == KELP_NOT_FOUND) {
        kelp_status_free(status);
        status = NULL;
    }
    return status;
}

static void find_response(kelp_response_cache *base, kelp_request *request,
                          kelp_response **out_response) {
    KELP_ASSERT(atomic_load(&request->factory->ticket) == NULL);
    kelp_model_base *model = request->model;
    kelp_factory *factory = request->factory;
    uint64_t start_ns = kelp_now_ns();
    *out_response = NULL;
    kelp_cache_ticket *ticket = make_ticket(request);
    if (ticket == NULL)
        return;
    finder find = {.base = {copy_found}, .ticket = ticket};
    kelp_response *response = NULL;
    kelp_status *status = look_up_bytes((kelp_cache *)base, &find);
    if (status == NULL && find.data != NULL)
        status = kelp_response_create(factory, &response);
    if (status == NULL && response != NULL)
        status = read_response(find.data, find.length, response);
    kelp_free(ticket->allocator, find.data, find.length);
    ticket->lookup_ns = kelp_now_ns() - start_ns;
    if (status != NULL && response != NULL) {
        /* The submission continues without the cache. */
        kelp_response_delete(response);
        response = NULL;
    }
    kelp_server_log_status("cannot use the response cache", status);
    if (response != NULL) {
        kelp_stats_cache_hit(&model->stats, request->request_start_ns,
                             start_ns - request->queue_start_ns, ticket->lookup_ns);
        ticket_destroy(ticket);
    } else {
        atomic_store(&factory->ticket, ticket);
    }
    *out_response = response;
}

/* ---- insertion ---- */

/* Copies a response to the buffer that the cache provides. */
typedef struct keeper {
    kelp_cache_copier base;
    const kelp_buf *bytes;
} keeper;

static kelp_status *copy_kept(kelp_cache_copier *self, kelp_cache_entry *entry) {
    const keeper *keep = (const keeper *)self;
    if (entry->count != 1 || entry->buffers[0].base == NULL ||
        entry->buffers[0].attributes.size_bytes < keep->bytes->length)
        return KELP_ERROR(KELP_INTERNAL, "the cache provided no buffer of %zu bytes",
                          keep->bytes->length);
    memcpy(entry->buffers[0].base, keep->bytes->data, keep->bytes->length);
    return NULL;
}

/* Returns false if the response cannot be stored. */
static bool write_response(kelp_buf *out, const kelp_response *response) {
    put_params(out, &response->params);
    put_u64(out, response->output_count);
    for (size_t i = 0; i < response->output_count; i++) {
        const kelp_output *output = response->outputs[i];
        if (!output->allocated || (output->buffer == NULL && output->attributes.size_bytes > 0) ||
            output->attributes.memory_type == TRITONSERVER_MEMORY_GPU)
            return false;
        put_text(out, kelp_text_get(&output->name));
        put_u64(out, (uint64_t)output->datatype);
        put_shape(out, output->shape, output->rank);
        put_bytes(out, output->buffer, output->attributes.size_bytes);
    }
    return true;
}

/* Inserts the ticket's identity and the response. */
static kelp_status *insert(kelp_cache *cache, const kelp_cache_ticket *ticket,
                           const kelp_response *response) {
    kelp_buf bytes;
    kelp_cache_entry entry;
    kelp_buf_init(&bytes, cache->allocator);
    kelp_cache_entry_init(&entry, cache->allocator);
    put_bytes(&bytes, ticket->identity, ticket->identity_length);
    bool storable = write_response(&bytes, response);
    kelp_status *status = kelp_buf_status(&bytes);
    const kelp_buffer_attributes attributes = {.size_bytes = bytes.length};
    if (status == NULL && storable)
        status = kelp_cache_entry_add(&entry, NULL, &attributes);
    keeper keep = {.base = {copy_kept}, .bytes = &bytes};
    if (status == NULL && storable)
        status = kelp_from_error(cache->fn.insert(cache->handle, ticket->key,
                                                  (TRITONCACHE_CacheEntry *)&entry,
                                                  (TRITONCACHE_Allocator *)&keep.base));
    kelp_cache_entry_deinit(&entry);
    kelp_buf_deinit(&bytes);
    return status;
}

static void store_response(kelp_response_cache *base, kelp_response *response, uint32_t flags) {
    kelp_factory *factory = response->factory;
    KELP_ASSERT(!response->sent);
    kelp_cache_ticket *ticket = atomic_exchange(&factory->ticket, NULL);
    if (ticket == NULL)
        return;
    uint64_t start_ns = kelp_now_ns();
    if (response->error == NULL && (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL)) {
        kelp_status *status = insert((kelp_cache *)base, ticket, response);
        if (kelp_status_code(status) == KELP_ALREADY_EXISTS)
            kelp_status_free(status);
        else
            kelp_server_log_status("Failed to insert key into the response cache", status);
    }
    kelp_stats_cache_miss(&factory->model->stats, ticket->lookup_ns + (kelp_now_ns() - start_ns));
    ticket_destroy(ticket);
}

const kelp_response_cache_ops kelp_cache_ops = {
    .find = find_response, .store = store_response, .discard = discard};
