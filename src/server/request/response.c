/* SPDX-License-Identifier: Apache-2.0 */
/* Responses and their outputs. */
#include "server/request/response.h"

#include "base/assert.h"
#include "base/clock.h"
#include "server/core/error.h"
#include "server/core/log.h"
#include "server/request/response_cache.h"
#include "server/request/trace.h"

kelp_status *kelp_response_create(kelp_factory *factory, kelp_response **out) {
    if (!kelp_factory_open(factory))
        return kelp_factory_over(factory);
    kelp_request_pool *pool = kelp_request_pool_of_thread(&factory->model->host->pools);
    kelp_response *response = kelp_request_pool_take_response(pool);
    kelp_status *status =
        response != NULL ? NULL : KELP_NEW(pool->allocator, kelp_response, &response);
    if (status != NULL) {
        atomic_store(&factory->starved, true);
        kelp_factory_close(factory);
        return status;
    }
    response->next = NULL;
    response->home = pool;
    response->factory = factory;
    response->sent = false;
    response->error = NULL;
    response->output_count = 0;
    kelp_params_clear(&response->params);
    kelp_factory_retain(factory);
    if (factory->trace != NULL)
        atomic_fetch_add_explicit(&factory->trace_users, 1, memory_order_relaxed);
    if (factory->allocator->start_fn != NULL)
        kelp_server_log_status(
            "response allocation start failed",
            kelp_from_error(factory->allocator->start_fn(
                (TRITONSERVER_ResponseAllocator *)factory->allocator, factory->allocator_userp)));
    *out = response;
    return NULL;
}

static void release_buffers(kelp_response *response) {
    kelp_response_allocator *allocator = response->factory->allocator;
    for (size_t i = 0; i < response->output_count; i++) {
        kelp_output *output = response->outputs[i];
        if (output->buffer == NULL)
            continue;
        TRITONSERVER_Error *error = allocator->release_fn(
            (TRITONSERVER_ResponseAllocator *)allocator, output->buffer, output->buffer_userp,
            output->attributes.size_bytes, output->attributes.memory_type,
            output->attributes.memory_type_id);
        output->buffer = NULL;
        kelp_server_log_status("failed to release a result buffer", kelp_from_error(error));
    }
}

void kelp_response_trim(kelp_response *response) {
    kelp_allocator allocator = response->home->allocator;
    for (size_t i = 0; i < response->output_spare; i++) {
        kelp_text_deinit(allocator, &response->outputs[i]->name);
        kelp_free(allocator, response->outputs[i], sizeof *response->outputs[i]);
    }
    kelp_free(allocator, response->outputs, response->output_capacity * sizeof *response->outputs);
    response->outputs = NULL;
    response->output_count = response->output_spare = response->output_capacity = 0;
    kelp_params_deinit(allocator, &response->params);
}

void kelp_response_delete(kelp_response *response) {
    KELP_ASSERT(response->factory != NULL);
    kelp_factory *factory = response->factory;
    bool sent = response->sent;
    release_buffers(response);
    kelp_factory_leave_trace(factory);
    kelp_status_free(response->error);
    response->error = NULL;
    response->factory = NULL;
    kelp_request_pool_put_response(response->home, response);
    if (!sent)
        kelp_factory_close(factory);
    kelp_factory_release(factory);
}

void kelp_response_free(kelp_response *response) {
    KELP_ASSERT(response->factory == NULL);
    kelp_allocator allocator = response->home->allocator;
    kelp_response_trim(response);
    kelp_free(allocator, response, sizeof *response);
}

kelp_status *kelp_response_send(kelp_response *take_response, uint32_t flags,
                                const kelp_status *error) {
    kelp_response *response = take_response;
    kelp_factory *factory = response->factory;
    if (response->sent)
        return KELP_ERROR(KELP_INTERNAL, "the response was sent before");
    if (!kelp_factory_may_send(factory, flags)) {
        kelp_status *status = kelp_factory_over(factory);
        kelp_response_delete(response);
        return status;
    }
    if (error != NULL) {
        response->error = kelp_status_clone(error);
        atomic_store_explicit(&factory->failed, true, memory_order_relaxed);
    }
    if (atomic_load_explicit(&factory->ticket, memory_order_relaxed))
        factory->model->cache->ops->store(factory->model->cache, response, flags);
    response->sent = true;
    unsigned long long before =
        atomic_fetch_add_explicit(&factory->response_count, 1, memory_order_relaxed);
    if (before == 0 && factory->model->latency != NULL)
        kelp_latency_add_first(factory->model->latency, kelp_now_ns() - factory->start_ns,
                               factory->trace != NULL ? kelp_text_get(&factory->trace->context)
                                                      : NULL);
    if (factory->trace != NULL)
        kelp_trace_outputs(factory->trace, response);
    if (factory->slot.order != NULL) {
        kelp_response_order_send(factory, response, flags);
        return NULL;
    }
    factory->response_fn((TRITONSERVER_InferenceResponse *)response, flags,
                         factory->response_userp);
    kelp_factory_close(factory);
    return NULL;
}

/* ---- outputs ---- */

kelp_status *kelp_response_restore_output(kelp_response *response, const char *name,
                                          TRITONSERVER_DataType datatype, const int64_t *shape,
                                          uint32_t rank, kelp_output **out) {
    KELP_ASSERT(response->output_count <= response->output_spare);
    kelp_allocator allocator = response->home->allocator;
    if (rank > KELP_SERVER_MAX_RANK)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "output '%s' has %u dimensions: expected at most %d", name, rank,
                          KELP_SERVER_MAX_RANK);
    if (response->output_count == response->output_spare) {
        KELP_TRY(kelp_grow(allocator, (void **)&response->outputs, &response->output_capacity,
                           response->output_count + 1, sizeof *response->outputs));
        KELP_TRY(KELP_NEW(allocator, kelp_output, &response->outputs[response->output_count]));
        response->output_spare++;
    }
    kelp_output *output = response->outputs[response->output_count];
    KELP_TRY(kelp_text_set(allocator, &output->name, name));
    output->response = response;
    output->datatype = datatype;
    output->rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        output->shape[i] = shape[i];
    output->allocated = false;
    output->buffer = NULL;
    output->buffer_userp = NULL;
    output->attributes = (kelp_buffer_attributes){0};
    response->output_count++;
    *out = output;
    return NULL;
}

/* Checks that the model has the output, and converts the backend's shape to the clients' shape. */
static kelp_status *reshape_output(const kelp_model_base *model, kelp_output *output) {
    const char *name = kelp_text_get(&output->name);
    const kelp_config_io *io = kelp_model_config_output(model->config, kelp_str_from(name));
    if (io == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "unexpected inference output '%s' for model '%s'",
                          name, model->name);
    if (!io->has_reshape)
        return NULL;
    return kelp_reshape(io->reshape, io->reshape_rank, io->dims, io->rank,
                        model->config->max_batch_size > 0, output->shape, &output->rank);
}

kelp_status *kelp_response_add_output(kelp_response *response, const char *name,
                                      TRITONSERVER_DataType datatype, const int64_t *shape,
                                      uint32_t rank, kelp_output **out) {
    KELP_ASSERT(response->factory != NULL && !response->sent);
    for (size_t i = 0; i < response->output_count; i++)
        if (strcmp(kelp_text_get(&response->outputs[i]->name), name) == 0)
            return KELP_ERROR(KELP_ALREADY_EXISTS, "output '%s' already exists in the response",
                              name);
    KELP_TRY(kelp_response_restore_output(response, name, datatype, shape, rank, out));
    kelp_status *status = reshape_output(response->factory->model, *out);
    if (status != NULL)
        response->output_count--;
    return status;
}

kelp_status *kelp_output_allocate(kelp_output *output, uint64_t size_bytes,
                                  TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
                                  void **out_buffer) {
    KELP_ASSERT(output->response->factory != NULL);
    const char *name = kelp_text_get(&output->name);
    if (output->allocated)
        return KELP_ERROR(KELP_ALREADY_EXISTS, "allocated buffer for output '%s' already exists",
                          name);
    kelp_factory *factory = output->response->factory;
    TRITONSERVER_ResponseAllocator *allocator =
        (TRITONSERVER_ResponseAllocator *)factory->allocator;
    void *buffer = NULL, *buffer_userp = NULL;
    kelp_buffer_attributes attributes = {
        .size_bytes = size_bytes, .memory_type = memory_type, .memory_type_id = memory_type_id};
    KELP_TRY(kelp_from_error(factory->allocator->alloc_fn(
        allocator, name, size_bytes, memory_type, memory_type_id, factory->allocator_userp, &buffer,
        &buffer_userp, &attributes.memory_type, &attributes.memory_type_id)));
    /* A client that only measures may have no buffer: the backend gets NULL, too. */
    output->allocated = true;
    output->buffer = buffer;
    output->buffer_userp = buffer_userp;
    output->attributes = attributes;
    if (factory->allocator->attributes_fn != NULL)
        KELP_TRY(kelp_from_error(factory->allocator->attributes_fn(
            allocator, name, (TRITONSERVER_BufferAttributes *)&output->attributes,
            factory->allocator_userp, buffer_userp)));
    *out_buffer = buffer;
    return NULL;
}
