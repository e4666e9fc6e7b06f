/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 response heads. */
#include "frontends/http/http1.h"

void kelp_http1_put_status(kelp_buf *out, kelp_http_status status) {
    kelp_buf_append_str(out, KELP_STR("HTTP/1.1 "));
    kelp_buf_append_i64(out, (int64_t)status);
    kelp_buf_append_char(out, ' ');
    kelp_buf_append_cstr(out, kelp_http_reason(status));
    kelp_buf_append_str(out, KELP_STR("\r\n"));
}

void kelp_http1_put_header(kelp_buf *out, kelp_str name, kelp_str value) {
    kelp_buf_append_str(out, name);
    kelp_buf_append_str(out, KELP_STR(": "));
    kelp_buf_append_str(out, value);
    kelp_buf_append_str(out, KELP_STR("\r\n"));
}

static void end_head(kelp_buf *out, int minor, bool keep_alive) {
    if (!keep_alive)
        kelp_http1_put_header(out, KELP_STR("Connection"), KELP_STR("close"));
    else if (minor == 0)
        kelp_http1_put_header(out, KELP_STR("Connection"), KELP_STR("keep-alive"));
    kelp_buf_append_str(out, KELP_STR("\r\n"));
}

void kelp_http1_end_head(kelp_buf *out, int minor, bool keep_alive, uint64_t content_length) {
    kelp_buf_append_str(out, KELP_STR("Content-Length: "));
    kelp_buf_append_u64(out, content_length);
    kelp_buf_append_str(out, KELP_STR("\r\n"));
    end_head(out, minor, keep_alive);
}

void kelp_http1_end_head_chunked(kelp_buf *out, int minor, bool keep_alive) {
    if (minor > 0)
        kelp_http1_put_header(out, KELP_STR("Transfer-Encoding"), KELP_STR("chunked"));
    end_head(out, minor, keep_alive && minor > 0);
}

void kelp_http1_put_chunk_size(kelp_buf *out, uint64_t size_bytes) {
    kelp_buf_printf(out, "%llx\r\n", (unsigned long long)size_bytes);
}
