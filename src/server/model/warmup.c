/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that an instance executes before its model is ready (`model_warmup`). A sample is one or
 * more executions of one or more requests with one batch element, without the scheduler. They count
 * in the statistics. Responses are dropped, and an error fails the load. The code runs on the
 * instance's thread if it has one, otherwise on the loading thread.
 */
#include "base/arena.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/fs.h"
#include "server/config/view.h"
#include "server/core/error.h"
#include "server/core/log.h"
#include "server/model/model.h"
#include "server/request/response.h"

/* ---- the requests of one execution ---- */

/* The state of an execution, which the callbacks of its requests update. */
typedef struct flight {
    kelp_allocator allocator;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t pending; /* outstanding releases and final responses */
    kelp_status *error;
} flight;

static void note(flight *f, bool over, kelp_status *take_error) {
    pthread_mutex_lock(&f->lock);
    if (take_error != NULL && f->error == NULL)
        f->error = take_error;
    else
        kelp_status_free(take_error);
    f->pending -= over;
    if (f->pending == 0)
        pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void on_release(TRITONSERVER_InferenceRequest *request, uint32_t flags, void *userp) {
    (void)request;
    (void)flags;
    note(userp, true, NULL);
}

static void on_response(TRITONSERVER_InferenceResponse *handle, uint32_t flags, void *userp) {
    kelp_response *response = (kelp_response *)handle;
    kelp_status *error = NULL;
    if (response != NULL) {
        if (response->error != NULL)
            error = kelp_status_clone(response->error);
        kelp_response_delete(response);
    }
    note(userp, (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0, error);
}

static TRITONSERVER_Error *allocate(TRITONSERVER_ResponseAllocator *allocator, const char *name,
                                    size_t size_bytes, TRITONSERVER_MemoryType type, int64_t id,
                                    void *userp, void **buffer, void **buffer_userp,
                                    TRITONSERVER_MemoryType *actual_type, int64_t *actual_id) {
    (void)allocator, (void)name, (void)type, (void)id;
    *buffer = NULL;
    *buffer_userp = userp;
    *actual_type = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    return kelp_to_error(kelp_alloc(((flight *)userp)->allocator, size_bytes, buffer));
}

static TRITONSERVER_Error *deallocate(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
                                      void *buffer_userp, size_t size_bytes,
                                      TRITONSERVER_MemoryType type, int64_t id) {
    (void)allocator, (void)type, (void)id;
    kelp_free(((flight *)buffer_userp)->allocator, buffer, size_bytes);
    return NULL;
}

static kelp_response_allocator output_allocator = {.alloc_fn = allocate, .release_fn = deallocate};

/* ---- the data of a sample ---- */

/* An input of a sample. */
typedef struct sample_input {
    const char *name;
    TRITONSERVER_DataType datatype;
    int64_t shape[KELP_SERVER_MAX_RANK];
    uint64_t rank;
    const void *data;
    size_t size_bytes;
    bool is_control; /* of the sequence batcher: replaces the value that it sets */
    kelp_mapping file;
} sample_input;

/* A sample: `repeat_count` executions of `requests` requests. */
typedef struct sample {
    kelp_arena arena;
    const char *name;
    sample_input *inputs;
    size_t input_count;
    uint32_t requests, repeat_count;
} sample;

static kelp_status *read_shape(const kelp_model *model, const kelp_config_value *value,
                               sample_input *out) {
    const kelp_config_io *io = kelp_model_config_input(model->base.config, value->key);
    uint32_t element = TRITONSERVER_DataTypeByteSize(out->datatype);
    int64_t size_bytes = element ? element : 4; /* an empty string has only its length */
    if (io != NULL && model->base.config->max_batch_size > 0 && !io->is_shape_tensor)
        out->shape[out->rank++] = 1;
    for (const kelp_config_value *dim = kelp_config_get(value->message, "dims"); dim != NULL;
         dim = dim->next) {
        if (dim->i < 0 || out->rank == KELP_SERVER_MAX_RANK ||
            !kelp_i64_mul(size_bytes, dim->i, &size_bytes))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "input '%s': expected a size for every dimension, found %lld",
                              out->name, (long long)dim->i);
        out->shape[out->rank++] = dim->i;
    }
    out->size_bytes = (size_t)size_bytes;
    return NULL;
}

static kelp_status *read_file(const kelp_model *model, kelp_str file, sample_input *out) {
    kelp_allocator heap = model->base.host->allocator;
    char *relative = NULL, *path = NULL;
    kelp_buf text;
    kelp_buf_init(&text, heap);
    kelp_buf_printf(&text, "warmup/%.*s", KELP_STR_ARG(file));
    const char *joined = kelp_buf_cstr(&text);
    kelp_status *status = joined != NULL ? kelp_strdup(heap, joined, &relative) : kelp_status_oom();
    kelp_buf_deinit(&text);
    if (status == NULL && !kelp_fs_is_inside(relative + sizeof "warmup"))
        status =
            KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s': '%s' is outside the model's directory",
                       out->name, relative);
    if (status == NULL)
        status = kelp_fs_join(heap, model->directory, relative, &path);
    if (status == NULL)
        status = kelp_fs_map(path, &out->file);
    if (status == NULL && out->datatype == TRITONSERVER_TYPE_BYTES)
        out->size_bytes = out->file.size_bytes;
    else if (status == NULL && out->file.size_bytes < out->size_bytes)
        status =
            KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s': expected %zu bytes, found %zu in '%s'",
                       out->name, out->size_bytes, out->file.size_bytes, relative);
    out->data = out->file.data;
    kelp_free_string(heap, relative);
    kelp_free_string(heap, path);
    return status;
}

/* Creates zeros, or random bytes that are the same in every run. */
static kelp_status *make_data(kelp_arena *arena, bool random, sample_input *out) {
    unsigned char *data = KELP_ARENA_ARRAY(arena, out->size_bytes + 1, unsigned char);
    uint64_t state = 0x9e3779b97f4a7c15u;
    if (data == NULL)
        return kelp_status_oom();
    memset(data, 0, out->size_bytes);
    random = random && out->datatype != TRITONSERVER_TYPE_BYTES;
    for (size_t i = 0; random && i < out->size_bytes; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        data[i] = (unsigned char)(out->datatype == TRITONSERVER_TYPE_BOOL ? state & 1 : state);
    }
    out->data = data;
    return NULL;
}

static bool is_control(const kelp_model *model, const char *name) {
    const kelp_config_sequence *sequence = model->base.config->sequence;
    for (size_t i = 0; sequence != NULL && i < sequence->control_count; i++)
        if (strcmp(sequence->controls[i].name, name) == 0)
            return true;
    return false;
}

static kelp_status *read_input(const kelp_model *model, kelp_arena *arena,
                               const kelp_config_value *value, sample_input *out) {
    const kelp_config_value *file = kelp_config_get(value->message, "input_data_file");
    const kelp_config_value *random = kelp_config_get(value->message, "random_data");
    out->name = kelp_arena_strndup(arena, value->key.data, value->key.length);
    out->datatype = (TRITONSERVER_DataType)kelp_config_number(value->message, "data_type");
    if (out->name == NULL)
        return kelp_status_oom();
    out->is_control = is_control(model, out->name);
    KELP_TRY(read_shape(model, value, out));
    if (file != NULL)
        return read_file(model, file->text, out);
    if (random == NULL && kelp_config_get(value->message, "zero_data") == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': expected zero_data, random_data or input_data_file",
                          out->name);
    return make_data(arena, random != NULL, out);
}

static kelp_status *read_sample(const kelp_model *model, const kelp_config_message *setting,
                                sample *out) {
    const kelp_config_value *first = kelp_config_get(setting, "inputs");
    size_t count = 0;
    out->name = kelp_config_text(&out->arena, setting, "name");
    out->requests = (uint32_t)kelp_config_number(setting, "batch_size");
    out->repeat_count = (uint32_t)kelp_config_number(setting, "count");
    if (out->repeat_count == 0)
        out->repeat_count = 1;
    for (const kelp_config_value *value = first; value != NULL; value = value->next)
        count++;
    out->inputs = KELP_ARENA_ARRAY(&out->arena, count + 1, sample_input);
    if (out->inputs == NULL || out->name == NULL)
        return kelp_status_oom();
    memset(out->inputs, 0, (count + 1) * sizeof *out->inputs);
    if (out->requests > KELP_MAX_EXECUTION_REQUESTS)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "expected a batch_size of at most %d, found %u",
                          KELP_MAX_EXECUTION_REQUESTS, out->requests);
    for (const kelp_config_value *value = first; value != NULL; value = value->next)
        KELP_TRY(read_input(model, &out->arena, value, &out->inputs[out->input_count++]));
    return NULL;
}

static void sample_deinit(sample *s) {
    for (size_t i = 0; i < s->input_count; i++)
        kelp_fs_unmap(&s->inputs[i].file);
    kelp_arena_deinit(&s->arena);
}

/* ---- execution ---- */

static kelp_status *fill_request(const sample *s, kelp_request *request, flight *f) {
    request->release_fn = on_release;
    request->release_userp = f;
    request->response_fn = on_response;
    request->response_userp = f;
    request->allocator = &output_allocator;
    request->allocator_userp = f;
    for (size_t i = 0; i < s->input_count; i++) {
        const sample_input *from = &s->inputs[i];
        const kelp_buffer_attributes attributes = {.size_bytes = from->size_bytes};
        kelp_input *input = NULL;
        if (from->is_control) /* see set_controls */
            continue;
        KELP_TRY(kelp_request_add_input(request, from->name, from->datatype, from->shape,
                                        from->rank, &input));
        KELP_TRY(kelp_request_append(request, input, NULL, from->data, &attributes));
    }
    return kelp_request_normalize(request);
}

/* Replaces the values of controls that the sample contains. */
static kelp_status *set_controls(const sample *s, kelp_request *request) {
    for (size_t i = 0; i < s->input_count; i++) {
        const sample_input *from = &s->inputs[i];
        if (!from->is_control)
            continue;
        kelp_input *input = kelp_request_find_input(request, from->name);
        KELP_ASSERT(input != NULL && input->data.count == 1);
        kelp_data_block *block = &input->data.blocks[0];
        if (from->datatype != input->datatype || from->size_bytes != block->attributes.size_bytes)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "input '%s': expected one element of %s, found %zu bytes of %s",
                              from->name, TRITONSERVER_DataTypeString(input->datatype),
                              from->size_bytes, TRITONSERVER_DataTypeString(from->datatype));
        block->base = from->data;
    }
    return NULL;
}

static kelp_status *execute(kelp_instance *instance, const sample *s, kelp_request **requests,
                            uint32_t count, flight *f) {
    KELP_ASSERT(f->pending == 0 && count > 0);
    for (uint32_t i = 0; i < count; i++) {
        kelp_status *status = NULL;
        if (instance->model->sequencer != NULL)
            status = kelp_instance_prepare_sample(instance, requests[i], i);
        if (status == NULL)
            status = set_controls(s, requests[i]);
        if (status == NULL)
            status = kelp_request_begin(requests[i]);
        if (status == NULL) {
            f->pending += 2;
            continue;
        }
        kelp_request_leave_sequence(requests[i]);
        while (i-- > 0)
            kelp_request_reject(requests[i], &instance->base.stats, status);
        return status;
    }
    unsigned class_index = kelp_execution_class(kelp_execution_bytes(requests, count));
    uint64_t start_ns = kelp_now_ns();
    kelp_instance_execute(&instance->base, requests, count);
    kelp_instance_pool_add_time(instance->base.pool, class_index, kelp_now_ns() - start_ns);
    pthread_mutex_lock(&f->lock);
    while (f->pending > 0)
        pthread_cond_wait(&f->changed, &f->lock);
    kelp_status *error = f->error;
    f->error = NULL;
    pthread_mutex_unlock(&f->lock);
    return error;
}

static kelp_status *run_sample(kelp_instance *instance, const sample *s, flight *f) {
    kelp_request *requests[KELP_MAX_EXECUTION_REQUESTS];
    uint32_t made = 0;
    kelp_status *status = NULL;
    while (made < s->requests && status == NULL) {
        kelp_model_retain(&instance->model->base);
        status = kelp_request_create(&instance->model->base, instance->model->base.version, NULL,
                                     &requests[made]);
        if (status == NULL)
            status = fill_request(s, requests[made++], f);
    }
    for (uint32_t i = 0; i < s->repeat_count && status == NULL; i++) {
        kelp_request *order[KELP_MAX_EXECUTION_REQUESTS];
        memcpy(order, requests, made * sizeof *order);
        KELP_SERVER_LOG(KELP_LOG_VERBOSE,
                        "model '%s' instance %s is running warmup sample '%s' for iteration %u",
                        instance->model->base.name, instance->name, s->name, i + 1);
        status = execute(instance, s, order, made, f);
    }
    while (made-- > 0)
        kelp_server_log_status("cannot delete a request of a sample",
                               kelp_request_delete(requests[made]));
    return status;
}

kelp_status *kelp_instance_warm_up(kelp_instance_base *base) {
    kelp_instance *instance = (kelp_instance *)base;
    const kelp_model *model = instance->model;
    flight f = {.allocator = model->base.host->allocator,
                .lock = PTHREAD_MUTEX_INITIALIZER,
                .changed = PTHREAD_COND_INITIALIZER};
    kelp_status *status = NULL;
    for (const kelp_config_value *value = kelp_config_get(model->base.config->tree, "model_warmup");
         value != NULL && status == NULL; value = value->next) {
        sample s = {0};
        kelp_arena_init(&s.arena, f.allocator, 0);
        status = read_sample(model, value->message, &s);
        if (status == NULL && s.requests > 0)
            status = run_sample(instance, &s, &f);
        if (status != NULL)
            status = KELP_ANNOTATE(status, "instance '%s': failed to run warmup sample '%s'",
                                   instance->name, s.name ? s.name : "");
        sample_deinit(&s);
    }
    kelp_status_free(f.error);
    pthread_cond_destroy(&f.changed);
    pthread_mutex_destroy(&f.lock);
    return status;
}
