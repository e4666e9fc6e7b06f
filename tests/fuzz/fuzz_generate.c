/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the decoding of generate requests. The first byte selects the inputs of the model. All
 * bytes that a request receives are read, and its memory is at most proportional to the body. */
#include "frontends/v2/exchange.h"
#include "support/fake_request.h"

#include <stdlib.h>

#define BYTES_PER_BYTE 128
#define SPARE_BYTES ((size_t)64 * 1024)

static const char *const metadata[] = {
    "{\"inputs\":[]}",
    "{\"inputs\":[{\"name\":\"text_input\",\"datatype\":\"BYTES\",\"shape\":[1]},"
    "{\"name\":\"stream\",\"datatype\":\"BOOL\",\"shape\":[1]}]}",
    "{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[-1]},"
    "{\"name\":\"b\",\"datatype\":\"INT64\",\"shape\":[2,-1,3]},"
    "{\"name\":\"c\",\"datatype\":\"UINT8\",\"shape\":[]},"
    "{\"name\":\"d\",\"datatype\":\"FP16\",\"shape\":[-1,-1]}]}",
    "{\"inputs\":[{\"name\":\"id\",\"datatype\":\"INT8\",\"shape\":[4]},"
    "{\"name\":\"parameters\",\"datatype\":\"FP64\",\"shape\":[0]},"
    "{\"name\":\"x\",\"datatype\":\"BOGUS\",\"shape\":[1]}]}",
};
static const char *selected;

/* The functions of the server that the decoder uses besides those of the request. */
TRITONSERVER_Error *TRITONSERVER_ServerModelMetadata(TRITONSERVER_Server *server,
                                                     const char *model_name,
                                                     const int64_t model_version,
                                                     TRITONSERVER_Message **model_metadata) {
    (void)server, (void)model_name, (void)model_version;
    *model_metadata = (TRITONSERVER_Message *)(uintptr_t)&selected;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *message,
                                                        const char **base, size_t *byte_size) {
    (void)message;
    *base = selected;
    *byte_size = strlen(selected);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MessageDelete(TRITONSERVER_Message *message) {
    (void)message;
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static kelp_v2_service service;
    fake_request request = {0};
    if (size == 0)
        return 0;
    selected = metadata[data[0] % (sizeof metadata / sizeof *metadata)];
    kelp_v2_exchange exchange = {.base.handler = &service.handler, .model = "m", .version = -1};
    exchange.request = fake_handle(&request);
    kelp_arena_init(&exchange.arena, kelp_allocator_system(), 0);
    kelp_str json = {(const char *)data + 1, size - 1};
    kelp_status_free(kelp_v2_decode_generate(&exchange, json));
    if (exchange.arena.used_bytes > size * BYTES_PER_BYTE + SPARE_BYTES)
        abort();
    kelp_arena_deinit(&exchange.arena);
    return 0;
}
