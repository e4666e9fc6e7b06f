/* SPDX-License-Identifier: Apache-2.0 */
/* Returns memory to the system after a burst of large requests or of connections. Without one, no
 * thread wakes up. */
#ifndef KELP_CLI_SERVE_TRIM_H_
#define KELP_CLI_SERVE_TRIM_H_

#include <kelp/status.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct kelp_http_server kelp_http_server;

typedef struct kelp_serve_trim {
    kelp_http_server *http; /* whose memory is trimmed, or NULL */
    int wake;               /* an eventfd, readable after the first large request; -1: closed */
    atomic_bool armed;      /* `wake` was written, and the memory is not returned yet */
    atomic_ullong ends;     /* of large requests, and of many connections */
    unsigned long long seen_ends;
    uint64_t due_ns; /* the time of the next check; UINT64_MAX: none */
    bool released;   /* the latest check let the server free all that it keeps */
} kelp_serve_trim;

kelp_status *kelp_serve_trim_init(kelp_serve_trim *trim) KELP_MUST_USE;
void kelp_serve_trim_deinit(kelp_serve_trim *trim);
/* Notes that a large request has ended. Any thread. `trim` is a kelp_serve_trim. */
void kelp_serve_trim_note(void *trim);
/* Returns memory if it is due: buffers that are not used, and the rest if no large request has
 * ended recently. Called when `wake` is readable, and at due_ns. */
void kelp_serve_trim_check(kelp_serve_trim *trim, uint64_t now_ns);

#endif
