/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the decoding of ModelInferRequest, and the text formats of gRPC. All bytes that a request
 * receives are read, and its memory is at most proportional to the message. */
#include "frontends/grpc/codec/infer_request.h"
#include "frontends/grpc/exchange.h"
#include "support/fake_request.h"

#include <stdlib.h>

/* Slices of 16 bytes for fields of 2, and a limit for the rest. */
#define BYTES_PER_BYTE 64
#define SPARE_BYTES ((size_t)64 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kelp_arena arena;
    kelp_grpc_infer_request decoded;
    kelp_str message = {(const char *)data, size};
    fake_request request = {0};
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_status *status = kelp_grpc_scan_request(&arena, message, &decoded);
    if (status == NULL)
        status = kelp_grpc_fill_request(&arena, NULL, &decoded, fake_handle(&request));
    if (arena.used_bytes > size * BYTES_PER_BYTE + SPARE_BYTES ||
        kelp_grpc_find_tensor(data, size) > size)
        abort();
    kelp_status_free(status);
    kelp_arena_deinit(&arena);
    kelp_buf text;
    uint64_t timeout_ns;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_grpc_encode_text(&text, message);
    kelp_buf_deinit(&text);
    (void)kelp_grpc_parse_timeout(message, &timeout_ns);
    return 0;
}
