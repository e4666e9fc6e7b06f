/* SPDX-License-Identifier: Apache-2.0 */
/* The writing half of HTTP/1.1, and small helpers on header values and paths. */
#include "frontends/http/http1.h"

#include "base/checked.h"

static const struct {
    int code;
    const char *reason;
} reasons[] = {
    {200, "OK"},
    {400, "Bad Request"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {431, "Request Header Fields Too Large"},
    {499, "Client Closed Request"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

const char *kelp_http1_reason(int code) {
    for (size_t i = 0; i < KELP_COUNT(reasons); i++)
        if (reasons[i].code == code)
            return reasons[i].reason;
    return "Unknown";
}

void kelp_http1_put_status(kelp_buf *out, int code) {
    kelp_buf_append_str(out, KELP_STR("HTTP/1.1 "));
    kelp_buf_append_i64(out, code);
    kelp_buf_append_char(out, ' ');
    kelp_buf_append_cstr(out, kelp_http1_reason(code));
    kelp_buf_append_str(out, KELP_STR("\r\n"));
}

void kelp_http1_put_header(kelp_buf *out, const char *name, const char *value) {
    kelp_buf_append_cstr(out, name);
    kelp_buf_append_str(out, KELP_STR(": "));
    kelp_buf_append_cstr(out, value);
    kelp_buf_append_str(out, KELP_STR("\r\n"));
}

void kelp_http1_put_header_u64(kelp_buf *out, const char *name, uint64_t value) {
    kelp_buf_append_cstr(out, name);
    kelp_buf_append_str(out, KELP_STR(": "));
    kelp_buf_append_u64(out, value);
    kelp_buf_append_str(out, KELP_STR("\r\n"));
}

void kelp_http1_end_head(kelp_buf *out, int minor, bool keep_alive, uint64_t content_length) {
    kelp_http1_put_header_u64(out, "Content-Length", content_length);
    if (!keep_alive)
        kelp_http1_put_header(out, "Connection", "close");
    else if (minor == 0)
        kelp_http1_put_header(out, "Connection", "keep-alive");
    kelp_buf_append_str(out, KELP_STR("\r\n"));
}

const kelp_str *kelp_http1_find(const kelp_http1_request *request, const char *name) {
    kelp_str wanted = kelp_str_from(name);
    for (size_t i = 0; i < request->header_count; i++)
        if (kelp_str_equal_nocase(request->headers[i].name, wanted))
            return &request->headers[i].value;
    return NULL;
}

bool kelp_http1_has_token(kelp_str value, const char *token) {
    kelp_str wanted = kelp_str_from(token);
    size_t start = 0;
    for (size_t i = 0; i <= value.length; i++) {
        if (i < value.length && value.data[i] != ',')
            continue;
        kelp_str item = {value.data + start, i - start};
        if (kelp_str_equal_nocase(kelp_str_trim(item), wanted))
            return true;
        start = i + 1;
    }
    return false;
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool kelp_http1_percent_decode(kelp_str in, char *out, size_t *out_length) {
    size_t n = 0;
    for (size_t i = 0; i < in.length; i++) {
        char c = in.data[i];
        if (c == '%') {
            if (in.length - i < 3)
                return false;
            int high = hex_value(in.data[i + 1]);
            int low = hex_value(in.data[i + 2]);
            if (high < 0 || low < 0 || (high == 0 && low == 0))
                return false;
            c = (char)(unsigned char)(high * 16 + low);
            i += 2;
        }
        out[n++] = c;
    }
    *out_length = n;
    return true;
}
