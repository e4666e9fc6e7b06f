/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/http/message.h"

#include "base/checked.h"

const char *kelp_http_reason(kelp_http_status status) {
    switch (status) {
    case KELP_HTTP_CONTINUE:
        return "Continue";
    case KELP_HTTP_OK:
        return "OK";
    case KELP_HTTP_BAD_REQUEST:
        return "Bad Request";
    case KELP_HTTP_UNAUTHORIZED:
        return "Unauthorized";
    case KELP_HTTP_FORBIDDEN:
        return "Forbidden";
    case KELP_HTTP_NOT_FOUND:
        return "Not Found";
    case KELP_HTTP_METHOD_NOT_ALLOWED:
        return "Method Not Allowed";
    case KELP_HTTP_REQUEST_TIMEOUT:
        return "Request Timeout";
    case KELP_HTTP_CONFLICT:
        return "Conflict";
    case KELP_HTTP_CONTENT_TOO_LARGE:
        return "Content Too Large";
    case KELP_HTTP_TOO_MANY_REQUESTS:
        return "Too Many Requests";
    case KELP_HTTP_HEADERS_TOO_LARGE:
        return "Request Header Fields Too Large";
    case KELP_HTTP_CLIENT_CLOSED_REQUEST:
        return "Client Closed Request";
    case KELP_HTTP_INTERNAL_SERVER_ERROR:
        return "Internal Server Error";
    case KELP_HTTP_NOT_IMPLEMENTED:
        return "Not Implemented";
    case KELP_HTTP_SERVICE_UNAVAILABLE:
        return "Service Unavailable";
    case KELP_HTTP_VERSION_NOT_SUPPORTED:
        return "HTTP Version Not Supported";
    }
    return "Unknown";
}

const kelp_str *kelp_http_find(const kelp_http_request *request, const char *name) {
    kelp_str wanted = kelp_str_from(name);
    for (size_t i = 0; i < request->header_count; i++)
        if (kelp_str_equal_nocase(request->headers[i].name, wanted))
            return &request->headers[i].value;
    return NULL;
}

bool kelp_http_has_token(kelp_str value, const char *token) {
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

bool kelp_http_percent_decode(kelp_str in, char *out, size_t *out_length) {
    size_t n = 0;
    for (size_t i = 0; i < in.length; i++) {
        char c = in.data[i];
        if (c == '%') {
            if (in.length - i < 3)
                return false;
            int high = kelp_hex_value(in.data[i + 1]);
            int low = kelp_hex_value(in.data[i + 2]);
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
