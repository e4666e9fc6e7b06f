/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to a service manager: systemd's protocol of sd_notify(3), without its library. Used by
 * the main thread. */
#ifndef KELP_CLI_SERVE_NOTIFY_H_
#define KELP_CLI_SERVE_NOTIFY_H_

#include "frontends/http/server.h"

/* A connection to a service manager. Zeroed: none, and nothing is sent. */
typedef struct kelp_serve_notify {
    bool enabled;
    int fd;
    uint64_t watchdog_ns; /* half of the time after which the manager kills the process; 0: never */
    uint64_t due_ns;      /* the time of the next watchdog message; UINT64_MAX: none */
} kelp_serve_notify;

/* Connects to the socket that NOTIFY_SOCKET names, and reads WATCHDOG_USEC and WATCHDOG_PID.
 * Nothing is connected if the variable is absent. Fails with INVALID_ARGUMENT for a malformed
 * variable, UNAVAILABLE if the socket cannot be reached. */
kelp_status *kelp_serve_notify_init(kelp_serve_notify *out) KELP_MUST_USE;
void kelp_serve_notify_deinit(kelp_serve_notify *notify);
/* Sends assignments such as "READY=1", separated by newlines. A failure is printed. */
void kelp_serve_notify_send(const kelp_serve_notify *notify, const char *assignments);
/* Sends "WATCHDOG=1" if it is due and all threads of `http` (or NULL) responded since the latest
 * one. */
void kelp_serve_notify_watchdog(kelp_serve_notify *notify, kelp_http_server *http, uint64_t now_ns);

#endif
