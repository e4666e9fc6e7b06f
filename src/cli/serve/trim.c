/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/trim.h"

#include "frontends/http/server.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define DELAY_NS UINT64_C(2000000000)

kelp_status *kelp_serve_trim_init(kelp_serve_trim *trim) {
    atomic_init(&trim->armed, false);
    atomic_init(&trim->ends, 0);
    trim->seen_ends = 0;
    trim->due_ns = UINT64_MAX;
    trim->http = NULL;
    trim->released = false;
    trim->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return trim->wake >= 0
               ? NULL
               : KELP_ERROR(KELP_INTERNAL, "cannot create an eventfd: %s", strerror(errno));
}

void kelp_serve_trim_deinit(kelp_serve_trim *trim) {
    if (trim->wake >= 0)
        close(trim->wake);
    trim->wake = -1;
}

void kelp_serve_trim_note(void *userp) {
    kelp_serve_trim *trim = userp;
    atomic_fetch_add(&trim->ends, 1);
    if (!atomic_load(&trim->armed) && !atomic_exchange(&trim->armed, true))
        (void)eventfd_write(trim->wake, 1);
}

void kelp_serve_trim_check(kelp_serve_trim *trim, uint64_t now_ns) {
    eventfd_t count;
    bool woken = eventfd_read(trim->wake, &count) == 0;
    if (!woken && now_ns < trim->due_ns)
        return;
    unsigned long long ends = atomic_load(&trim->ends);
    bool quiet = !woken && ends == trim->seen_ends;
    trim->seen_ends = ends;
    trim->due_ns = now_ns + DELAY_NS;
    if (!woken && trim->http != NULL)
        kelp_http_server_trim(trim->http, quiet);
    /* The threads of the server free their memory until the next check. */
    bool releases = quiet && !trim->released && trim->http != NULL;
    trim->released = releases;
    if (!quiet || releases)
        return;
    trim->due_ns = UINT64_MAX;
    atomic_store(&trim->armed, false);
    if (atomic_load(&trim->ends) != ends) /* one ended before the store, and did not write */
        (void)eventfd_write(trim->wake, 1);
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}
