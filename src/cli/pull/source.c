/* SPDX-License-Identifier: Apache-2.0 */
/* What all stores share. */
#include "cli/pull/source.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/fs.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define SEPARATOR "://"
#define FRAGMENT "#sha256="
#define DIGEST_DIGITS 64

static const kelp_pull_store stores[] = {{"http", kelp_pull_http},
                                         {"https", kelp_pull_http},
                                         {"s3", kelp_pull_s3},
                                         {"oci", kelp_pull_oci}};

bool kelp_pull_is_address(const char *text) {
    return strstr(text, SEPARATOR) != NULL;
}

bool kelp_pull_set_digest(kelp_pull *pull, const char *digits) {
    if (strlen(digits) != DIGEST_DIGITS ||
        strspn(digits, "0123456789abcdefABCDEF") != DIGEST_DIGITS)
        return false;
    snprintf(pull->digest, sizeof pull->digest, "%s", digits);
    return true;
}

/* Moves the digest from the end of the address to its member. */
static kelp_status *take_fragment(kelp_pull *pull, const char *address) {
    char *fragment = strstr(pull->address, FRAGMENT);
    if (fragment == NULL)
        return NULL;
    if (!kelp_pull_set_digest(pull, fragment + sizeof FRAGMENT - 1))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "invalid digest in '%s': expected #sha256= and 64 hexadecimal digits",
                          address);
    *fragment = '\0';
    return NULL;
}

kelp_status *kelp_pull_init(kelp_pull *pull, const char *address) {
    const char *end = strstr(address, SEPARATOR);
    *pull = (kelp_pull){.store = NULL};
    for (size_t i = 0; end != NULL && i < KELP_COUNT(stores); i++) {
        size_t length = (size_t)(end - address);
        if (strlen(stores[i].scheme) == length && !strncmp(address, stores[i].scheme, length) &&
            end[sizeof SEPARATOR - 1] != '\0')
            pull->store = &stores[i];
    }
    if (pull->store == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "invalid address '%s': expected http://, https://, s3:// or oci://",
                          address);
    KELP_TRY(kelp_strdup(kelp_allocator_system(), end + sizeof SEPARATOR - 1, &pull->address));
    kelp_status *status = take_fragment(pull, address);
    if (status != NULL)
        kelp_pull_deinit(pull);
    return status;
}

void kelp_pull_deinit(kelp_pull *pull) {
    kelp_free_string(kelp_allocator_system(), pull->address);
    pull->address = NULL;
}

const char *kelp_pull_scheme(const kelp_pull *pull) {
    return pull->store->scheme;
}

const char *kelp_pull_digest(const kelp_pull *pull) {
    return pull->digest[0] != '\0' ? pull->digest : NULL;
}

kelp_status *kelp_pull_name(const kelp_pull *pull, kelp_buf *out) {
    bool is_http = !strncmp(kelp_pull_scheme(pull), "http", 4);
    bool is_oci = !strcmp(kelp_pull_scheme(pull), "oci");
    const char *begin = pull->address;
    const char *end = begin + strcspn(begin, is_http ? "?#" : is_oci ? "@" : "");
    while (end > begin && end[-1] == '/' && !is_http)
        end--;
    const char *slash = memrchr(begin, '/', (size_t)(end - begin));
    if (slash == NULL && is_http) /* only a host */
        return NULL;
    if (slash != NULL)
        begin = slash + 1;
    if (is_oci)
        end = begin + KELP_MIN(strcspn(begin, ":"), (size_t)(end - begin));
    if (is_http)
        return kelp_pull_decode(begin, (size_t)(end - begin), out);
    kelp_buf_append(out, begin, (size_t)(end - begin));
    return kelp_buf_status(out);
}

kelp_status *kelp_pull_run(kelp_pull *pull) {
    return pull->store->list(pull);
}

kelp_status *kelp_pull_take(kelp_pull *pull, const kelp_pull_item *item) {
    if (*item->path == '\0' || !kelp_fs_is_inside(item->path))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the store has a file with the unsafe name '%s': expected a path inside "
                          "the output",
                          item->path);
    return pull->take(pull->userp, pull->fetch, item);
}

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

kelp_status *kelp_pull_decode(const char *text, size_t length, kelp_buf *out) {
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < length ? kelp_hex_value(text[i + 1]) : -1;
            int low = i + 2 < length ? kelp_hex_value(text[i + 2]) : -1;
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
