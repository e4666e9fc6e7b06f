/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory extension: its endpoints, and the regions that an inference uses. */
#include "base/assert.h"
#include "base/text/json.h"
#include "frontends/v2/exchange.h"

/* ---- regions of an inference ---- */

kelp_status *kelp_v2_use_region(kelp_v2_exchange *exchange, const char *name, uint64_t offset,
                                uint64_t byte_size, void **out) {
    return kelp_shm_use_range(kelp_v2_service_of(exchange)->shm, &exchange->arena, name, offset,
                              byte_size, &exchange->regions, out);
}

/* ---- endpoints ---- */

static kelp_shm_registry *registry_of(kelp_v2_exchange *exchange) {
    return kelp_v2_service_of(exchange)->shm;
}

/* Sends an empty response, or the failure. */
static void finish(kelp_v2_exchange *exchange, kelp_status *take_status) {
    if (take_status != NULL) {
        kelp_v2_fail(exchange, take_status);
    } else {
        kelp_http_exchange_respond(&exchange->base, KELP_HTTP_OK);
        kelp_v2_send(exchange);
    }
}

/* Returns true if the server has shared memory; otherwise responds as for an unknown path. */
static bool require_registry(kelp_v2_exchange *exchange) {
    if (registry_of(exchange) != NULL)
        return true;
    kelp_v2_respond_error(exchange, KELP_HTTP_NOT_FOUND, KELP_STR("Not Found"));
    kelp_v2_send(exchange);
    return false;
}

static void write_info(void *userp, const kelp_shm_info *info) {
    kelp_json_writer *json = userp;
    kelp_json_begin_object(json);
    kelp_json_key(json, "name");
    kelp_json_put_string(json, info->name);
    kelp_json_key(json, "key");
    kelp_json_put_string(json, info->key);
    kelp_json_key(json, "offset");
    kelp_json_put_u64(json, info->offset);
    kelp_json_key(json, "byte_size");
    kelp_json_put_u64(json, info->byte_size);
    kelp_json_end_object(json);
}

static kelp_status *respond_status(kelp_v2_exchange *exchange) {
    kelp_json_writer json;
    kelp_v2_respond_json(exchange, KELP_HTTP_OK);
    kelp_json_writer_init(&json, &exchange->base.text);
    kelp_json_begin_array(&json);
    KELP_TRY(
        kelp_shm_status(registry_of(exchange), kelp_str_from(exchange->model), write_info, &json));
    kelp_json_end_array(&json);
    return kelp_buf_status(&exchange->base.text);
}

void kelp_v2_shm_status(kelp_v2_exchange *exchange) {
    if (!require_registry(exchange))
        return;
    kelp_status *status = respond_status(exchange);
    if (status != NULL)
        kelp_v2_respond_failure(exchange, status);
    kelp_v2_send(exchange);
}

/* Returns an unsigned integer of the body. */
static kelp_status *get_number(const kelp_json *body, const char *name, uint64_t *out) {
    const kelp_json *member = kelp_json_get(body, name);
    bool number =
        member->type == KELP_JSON_UINT || (member->type == KELP_JSON_INT && member->i64 >= 0);
    if (!number)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "'%s': expected a non-negative integer, found %s",
                          name, kelp_json_type_name(member->type));
    *out = member->u64;
    return NULL;
}

static kelp_status *register_region(kelp_v2_exchange *exchange) {
    kelp_json *body;
    uint64_t offset = 0, byte_size = 0;
    KELP_TRY(kelp_v2_parse_body(exchange, &body));
    const kelp_json *key = kelp_json_get(body, "key");
    if (key == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "Shared memory register request has no 'key' field");
    if (key->type != KELP_JSON_STRING)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "'key': expected a string, found %s",
                          kelp_json_type_name(key->type));
    if (kelp_json_get(body, "offset") != NULL)
        KELP_TRY(get_number(body, "offset", &offset));
    if (kelp_json_get(body, "byte_size") == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "Shared memory register request has no 'byte_size' field");
    KELP_TRY(get_number(body, "byte_size", &byte_size));
    return kelp_shm_register(registry_of(exchange), kelp_str_from(exchange->model), key->string,
                             offset, byte_size);
}

void kelp_v2_shm_register(kelp_v2_exchange *exchange) {
    if (require_registry(exchange))
        finish(exchange, register_region(exchange));
}

void kelp_v2_shm_unregister(kelp_v2_exchange *exchange) {
    if (require_registry(exchange))
        finish(exchange,
               kelp_shm_unregister(registry_of(exchange), kelp_str_from(exchange->model)));
}

void kelp_v2_cuda_shm_status(kelp_v2_exchange *exchange) {
    if (!require_registry(exchange))
        return;
    kelp_status *status = kelp_shm_status_cuda(kelp_str_from(exchange->model));
    if (status != NULL) {
        kelp_v2_respond_failure(exchange, status);
    } else {
        kelp_v2_respond_json(exchange, KELP_HTTP_OK);
        kelp_buf_append_cstr(&exchange->base.text, "[]");
    }
    kelp_v2_send(exchange);
}

void kelp_v2_cuda_shm_register(kelp_v2_exchange *exchange) {
    if (require_registry(exchange))
        finish(exchange,
               kelp_shm_register_cuda(registry_of(exchange), kelp_str_from(exchange->model)));
}

void kelp_v2_cuda_shm_unregister(kelp_v2_exchange *exchange) {
    if (require_registry(exchange))
        finish(exchange, kelp_shm_unregister_cuda(registry_of(exchange)));
}
