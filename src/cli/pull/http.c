/* SPDX-License-Identifier: Apache-2.0 */
/* What all stores share, and files over HTTP. */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/fs.h"
#include "cli/pull/source.h"

#include <stdio.h>
#include <string.h>

static bool is_unreserved(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '~';
}

void kelp_pull_encode(const char *text, size_t length, const char *kept, kelp_buf *out) {
    for (size_t i = 0; i < length; i++) {
        if (is_unreserved(text[i]) || (text[i] != '\0' && strchr(kept, text[i]) != NULL))
            kelp_buf_append_char(out, text[i]);
        else
            kelp_buf_printf(out, "%%%02X", (unsigned)(unsigned char)text[i]);
    }
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

kelp_status *kelp_pull_decode(const char *text, size_t length, kelp_buf *out) {
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < length ? hex_value(text[i + 1]) : -1;
            int low = i + 2 < length ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0 || high * 16 + low == 0)
                return KELP_ERROR(KELP_INVALID_ARGUMENT, "invalid percent-encoding in '%.*s'",
                                  (int)length, text);
            c = (char)(high * 16 + low);
            i += 2;
        }
        kelp_buf_append_char(out, c);
    }
    return kelp_buf_status(out);
}

kelp_status *kelp_pull_file(kelp_pull *pull, const kelp_fetch_request *request,
                            const char *relative) {
    char digest[65];
    char *path;
    if (relative == NULL)
        KELP_TRY(kelp_strdup(kelp_allocator_system(), pull->output, &path));
    else if (*relative == '\0' || !kelp_fs_is_inside(relative))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the store has a file with the unsafe name '%s': expected a path inside "
                          "the output",
                          relative);
    else
        KELP_TRY(kelp_fs_join(kelp_allocator_system(), pull->output, relative, &path));
    kelp_status *status = kelp_fetch_file(pull->fetch, request, path, digest);
    if (status == NULL) {
        printf("sha256:%s  %s\n", digest, path);
        pull->file_count++;
    }
    kelp_free_string(kelp_allocator_system(), path);
    return status;
}

kelp_status *kelp_pull_single(kelp_pull *pull, const kelp_fetch_request *request,
                              const char *name) {
    size_t length = strlen(pull->output);
    bool directory = kelp_fs_kind_of(pull->output) == KELP_FS_DIRECTORY ||
                     (length > 0 && pull->output[length - 1] == '/');
    return kelp_pull_file(pull, request, directory ? name : NULL);
}

kelp_status *kelp_pull_http(kelp_pull *pull) {
    kelp_buf url, name;
    kelp_buf_init(&url, kelp_allocator_system());
    kelp_buf_init(&name, kelp_allocator_system());
    kelp_buf_printf(&url, "%s://%s", pull->scheme, pull->address);
    size_t length = strcspn(pull->address, "?#");
    const char *begin = memrchr(pull->address, '/', length);
    kelp_status *status = kelp_buf_status(&url);
    if (status == NULL && begin != NULL)
        status = kelp_pull_decode(begin + 1, (size_t)(pull->address + length - begin - 1), &name);
    if (status == NULL) {
        const char *text = kelp_buf_cstr(&name);
        kelp_fetch_request request = {.url = kelp_buf_cstr(&url),
                                      .name = *text != '\0' ? text : NULL,
                                      .digest = pull->digest};
        status = kelp_pull_single(pull, &request, *text != '\0' ? text : "model.onnx");
    }
    kelp_buf_deinit(&url);
    kelp_buf_deinit(&name);
    return status;
}
