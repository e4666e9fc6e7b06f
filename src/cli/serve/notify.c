/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/notify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static kelp_status *connect_to(const char *path, int *out_fd) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || length < 2 || length >= sizeof address.sun_path)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "environment variable NOTIFY_SOCKET is invalid: expected an absolute path "
            "or '@' and a name, of at most %zu bytes, found '%s'",
            sizeof address.sun_path - 1, path);
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') /* an abstract address, which has no terminator */
        address.sun_path[0] = '\0';
    socklen_t size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (path[0] == '/'));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, size) != 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return KELP_ERROR(KELP_UNAVAILABLE, "cannot connect to the service manager at '%s': %s",
                          path, strerror(error));
    }
    *out_fd = fd;
    return NULL;
}

/* Reads the interval of the watchdog; 0 if there is none. */
static kelp_status *read_watchdog(uint64_t *out_ns) {
    const char *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    *out_ns = 0;
    if (text == NULL || (pid != NULL && strtol(pid, NULL, 10) != getpid()))
        return NULL;
    char *end;
    errno = 0;
    unsigned long long us = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || us == 0 || us > UINT64_MAX / 1000)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "environment variable WATCHDOG_USEC is invalid: expected a number of "
                          "microseconds, found '%s'",
                          text);
    *out_ns = us * 1000 / 2;
    return NULL;
}

kelp_status *kelp_serve_notify_init(kelp_serve_notify *out) {
    *out = (kelp_serve_notify){.fd = -1, .due_ns = UINT64_MAX};
    const char *path = getenv("NOTIFY_SOCKET");
    if (path == NULL)
        return NULL;
    KELP_TRY(read_watchdog(&out->watchdog_ns));
    KELP_TRY(connect_to(path, &out->fd));
    out->enabled = true;
    if (out->watchdog_ns > 0)
        out->due_ns = 0;
    return NULL;
}

void kelp_serve_notify_deinit(kelp_serve_notify *notify) {
    if (notify->enabled)
        close(notify->fd);
    *notify = (kelp_serve_notify){.fd = -1, .due_ns = UINT64_MAX};
}

void kelp_serve_notify_send(const kelp_serve_notify *notify, const char *assignments) {
    if (notify->enabled && send(notify->fd, assignments, strlen(assignments), MSG_NOSIGNAL) < 0)
        fprintf(stderr, "kelp: cannot notify the service manager: %s\n", strerror(errno));
}

void kelp_serve_notify_watchdog(kelp_serve_notify *notify, kelp_http_server *http,
                                uint64_t now_ns) {
    if (now_ns < notify->due_ns)
        return;
    notify->due_ns = now_ns + notify->watchdog_ns;
    if (http != NULL && !kelp_http_server_probe(http))
        return;
    kelp_serve_notify_send(notify, "WATCHDOG=1");
}
