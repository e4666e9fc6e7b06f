/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/otlp/curl.h"

#include "base/checked.h"
#include "base/dl.h"

#include <pthread.h>
#include <string.h>

#define CURL_LIBRARY "libcurl.so.4"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static kelp_curl functions; /* set once, with `mutex` */
static bool loaded;

/* The library is never closed, because it keeps global state. */
static kelp_status *load(void) {
    static const char *const names[] = {
        "curl_global_init",     "curl_easy_init",        "curl_easy_cleanup",
        "curl_easy_setopt",     "curl_easy_getinfo",     "curl_easy_perform",
        "curl_easy_reset",      "curl_easy_strerror",    "curl_multi_init",
        "curl_multi_cleanup",   "curl_multi_add_handle", "curl_multi_remove_handle",
        "curl_multi_perform",   "curl_multi_poll",       "curl_multi_wakeup",
        "curl_multi_info_read", "curl_slist_append",     "curl_slist_free_all",
        "curl_getdate"};
    void *addresses[KELP_COUNT(names)];
    kelp_dl library;
    kelp_status *status = kelp_dl_open(CURL_LIBRARY, &library);
    if (status != NULL)
        return KELP_ANNOTATE(status, "the library '%s' of Debian package libcurl4 is missing",
                             CURL_LIBRARY);
    for (size_t i = 0; i < KELP_COUNT(names); i++) {
        addresses[i] = kelp_dl_symbol(&library, names[i]);
        if (addresses[i] == NULL)
            return KELP_ERROR(KELP_FAILED_PRECONDITION,
                              "the library '%s' lacks the function '%s': expected version 7.68 or "
                              "newer",
                              CURL_LIBRARY, names[i]);
    }
    _Static_assert(sizeof functions == sizeof addresses, "one function for each name, in order");
    memcpy(&functions, addresses, sizeof functions);
    int result = functions.curl_global_init(CURL_GLOBAL_DEFAULT);
    if (result != CURLE_OK)
        return KELP_ERROR(KELP_INTERNAL, "cannot initialize '%s': %s", CURL_LIBRARY,
                          functions.curl_easy_strerror(result));
    loaded = true;
    return NULL;
}

kelp_status *kelp_curl_load(const kelp_curl **out) {
    pthread_mutex_lock(&mutex);
    kelp_status *status = loaded ? NULL : load();
    pthread_mutex_unlock(&mutex);
    *out = &functions;
    return status;
}
