/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of the shared memory extensions. */
#include "base/wire/protobuf_write.h"
#include "frontends/grpc/codec/decode.h"
#include "frontends/grpc/exchange.h"

/* Fields of the requests, and of a region in a status. */
enum { REGION_NAME = 1, REGION_KEY, REGION_OFFSET, REGION_BYTE_SIZE };
enum { STATUS_REGIONS = 1, ENTRY_KEY = 1, ENTRY_VALUE };

/* A decoded request. */
typedef struct region_request {
    kelp_str name, key;
    uint64_t offset, byte_size;
} region_request;

static kelp_status *read_request(kelp_grpc_request *request, region_request *out) {
    kelp_protobuf wire = kelp_protobuf_of(kelp_grpc_message_of(request));
    kelp_protobuf_field field;
    const char *text;
    bool more;
    *out = (region_request){0};
    KELP_TRY(kelp_grpc_next(&wire, "request", &field, &more));
    while (more) {
        if (field.number == REGION_NAME) {
            KELP_TRY(kelp_grpc_text(&request->arena, &field, "name", &text));
            out->name = field.bytes;
        } else if (field.number == REGION_KEY && field.type == KELP_PROTOBUF_BYTES) {
            out->key = field.bytes;
        } else if (field.number == REGION_OFFSET) {
            out->offset = field.value;
        } else if (field.number == REGION_BYTE_SIZE) {
            out->byte_size = field.value;
        }
        KELP_TRY(kelp_grpc_next(&wire, "request", &field, &more));
    }
    return NULL;
}

static kelp_status *registry_of(const kelp_grpc_exchange *exchange, kelp_shm_registry **out) {
    *out = kelp_grpc_service_of(exchange)->shm;
    return *out != NULL ? NULL
                        : KELP_ERROR(KELP_UNIMPLEMENTED, "shared memory regions are not supported");
}

/* Replies with an empty message, or fails. */
static void finish(kelp_grpc_exchange *exchange, kelp_status *take_status) {
    if (take_status != NULL) {
        kelp_grpc_finish(exchange, take_status);
        return;
    }
    kelp_grpc_begin(exchange);
    kelp_grpc_reply_end(exchange);
}

/* ---- system shared memory ---- */

static void put_region(void *userp, const kelp_shm_info *info) {
    kelp_buf *out = userp;
    size_t start = out->length;
    kelp_protobuf_put_str(out, ENTRY_KEY, info->name);
    size_t value = out->length;
    kelp_protobuf_put_str(out, REGION_NAME, info->name);
    kelp_protobuf_put_str(out, REGION_KEY, info->key);
    kelp_protobuf_put_i64(out, REGION_OFFSET, (int64_t)info->offset);
    kelp_protobuf_put_i64(out, REGION_BYTE_SIZE, (int64_t)info->byte_size);
    kelp_protobuf_wrap(out, ENTRY_VALUE, value);
    kelp_protobuf_wrap(out, STATUS_REGIONS, start);
}

static kelp_status *put_regions(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    region_request decoded;
    kelp_shm_registry *registry;
    KELP_TRY(registry_of(exchange, &registry));
    KELP_TRY(read_request(request, &decoded));
    return kelp_shm_status(registry, decoded.name, put_region, kelp_grpc_begin(exchange));
}

void kelp_grpc_shm_status(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    kelp_status *status = put_regions(exchange, request);
    if (status != NULL)
        kelp_grpc_finish(exchange, status);
    else
        kelp_grpc_reply_end(exchange);
}

static kelp_status *register_region(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    region_request decoded;
    kelp_shm_registry *registry;
    KELP_TRY(registry_of(exchange, &registry));
    KELP_TRY(read_request(request, &decoded));
    return kelp_shm_register(registry, decoded.name, decoded.key, decoded.offset,
                             decoded.byte_size);
}

void kelp_grpc_shm_register(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    finish(exchange, register_region(exchange, request));
}

static kelp_status *unregister_region(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    region_request decoded;
    kelp_shm_registry *registry;
    KELP_TRY(registry_of(exchange, &registry));
    KELP_TRY(read_request(request, &decoded));
    return kelp_shm_unregister(registry, decoded.name);
}

void kelp_grpc_shm_unregister(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    finish(exchange, unregister_region(exchange, request));
}

/* ---- CUDA shared memory ---- */

static kelp_status *cuda_status(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    region_request decoded;
    kelp_shm_registry *registry;
    KELP_TRY(registry_of(exchange, &registry));
    KELP_TRY(read_request(request, &decoded));
    return kelp_shm_status_cuda(decoded.name);
}

void kelp_grpc_cuda_shm_status(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    finish(exchange, cuda_status(exchange, request));
}

static kelp_status *cuda_register(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    region_request decoded;
    kelp_shm_registry *registry;
    KELP_TRY(registry_of(exchange, &registry));
    KELP_TRY(read_request(request, &decoded));
    return kelp_shm_register_cuda(registry, decoded.name);
}

void kelp_grpc_cuda_shm_register(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    finish(exchange, cuda_register(exchange, request));
}

void kelp_grpc_cuda_shm_unregister(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    kelp_shm_registry *registry;
    (void)request;
    kelp_status *status = registry_of(exchange, &registry);
    finish(exchange, status != NULL ? status : kelp_shm_unregister_cuda(registry));
}
