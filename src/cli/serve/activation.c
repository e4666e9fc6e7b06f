/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/activation.h"

#include "base/checked.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_FD 3
static const char *const services[] = {"http", "grpc", "metrics"};

/* Reads a variable with a decimal number. Returns false if it is absent. */
static kelp_status *read_number(const char *name, long max, bool *out_present, long *out) {
    const char *text = getenv(name);
    *out_present = text != NULL;
    if (text == NULL)
        return NULL;
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0' && *out > 0 && *out <= max)
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "environment variable %s is invalid: expected a number from 1 to %ld, found "
                      "'%s'",
                      name, max, text);
}

/* Returns the service with the name of `length` bytes, or NULL. */
static const char *find_service(const char *name, size_t length) {
    for (size_t i = 0; i < KELP_COUNT(services); i++) {
        if (strlen(services[i]) == length && !memcmp(services[i], name, length))
            return services[i];
    }
    return NULL;
}

/* Writes the address and the port of a socket. */
static kelp_status *describe(kelp_serve_socket *socket) {
    struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof bound;
    const struct sockaddr_un *local = (const struct sockaddr_un *)&bound;
    const struct sockaddr_in *ip4 = (const struct sockaddr_in *)&bound;
    const struct sockaddr_in6 *ip6 = (const struct sockaddr_in6 *)&bound;
    if (getsockname(socket->fd, (struct sockaddr *)&bound, &length) != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "cannot read the address of descriptor %d: %s",
                          socket->fd, strerror(errno));
    if (bound.ss_family == AF_UNIX) {
        size_t path = length - offsetof(struct sockaddr_un, sun_path);
        bool abstract = path > 0 && local->sun_path[0] == '\0';
        snprintf(socket->address, sizeof socket->address, "unix:%s%.*s", abstract ? "@" : "",
                 (int)path - abstract, local->sun_path + abstract);
    } else if (bound.ss_family == AF_INET) {
        inet_ntop(AF_INET, &ip4->sin_addr, socket->address, sizeof socket->address);
        socket->port = ntohs(ip4->sin_port);
    } else if (bound.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &ip6->sin6_addr, socket->address, sizeof socket->address);
        socket->port = ntohs(ip6->sin6_port);
    } else {
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "descriptor %d, which LISTEN_FDS passes, has address family %d: expected "
                          "an IPv4, IPv6 or Unix socket",
                          socket->fd, (int)bound.ss_family);
    }
    return NULL;
}

/* Checks that a descriptor is a listening stream socket. */
static kelp_status *check_listens(int fd) {
    int type = 0, listens = 0;
    socklen_t length = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "descriptor %d, which LISTEN_FDS passes, is not a socket: %s", fd,
                          strerror(errno));
    length = sizeof listens;
    if (type != SOCK_STREAM || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 ||
        !listens)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "descriptor %d, which LISTEN_FDS passes, is not a listening stream "
                          "socket: expected ListenStream= with Accept=no",
                          fd);
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return KELP_ERROR(KELP_INTERNAL, "cannot set the flags of descriptor %d: %s", fd,
                          strerror(errno));
    return NULL;
}

/* Adds a socket whose name has `length` bytes. */
static kelp_status *take_one(kelp_serve_sockets *out, const char *name, size_t length, bool alone) {
    kelp_serve_socket *socket = &out->items[out->count];
    socket->fd = FIRST_FD + (int)out->count;
    socket->service = find_service(name, length);
    if (socket->service == NULL && alone)
        socket->service = services[0];
    if (socket->service == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "socket %zu of LISTEN_FDNAMES has the unknown name '%.*s': expected "
                          "FileDescriptorName=http, grpc or metrics",
                          out->count, (int)length, name);
    KELP_TRY(check_listens(socket->fd));
    KELP_TRY(describe(socket));
    out->count++;
    return NULL;
}

static kelp_status *take_all(kelp_serve_sockets *out, size_t count) {
    const char *names = getenv("LISTEN_FDNAMES");
    if (names == NULL)
        names = "";
    while (out->count < count) {
        size_t length = strcspn(names, ":");
        KELP_TRY(take_one(out, names, length, count == 1));
        names += length + (names[length] == ':');
    }
    return NULL;
}

kelp_status *kelp_serve_sockets_take(kelp_serve_sockets *out) {
    *out = (kelp_serve_sockets){0};
    long pid, count;
    bool for_process, present;
    KELP_TRY(read_number("LISTEN_PID", INT32_MAX, &for_process, &pid));
    if (!for_process || pid != getpid())
        return NULL;
    KELP_TRY(read_number("LISTEN_FDS", KELP_SERVE_MAX_SOCKETS, &present, &count));
    if (present)
        KELP_TRY(take_all(out, (size_t)count));
    /* Children must not take them for theirs. */
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return NULL;
}

size_t kelp_serve_sockets_count(const kelp_serve_sockets *sockets, const char *service) {
    size_t count = 0;
    for (size_t i = 0; i < sockets->count; i++)
        count += !strcmp(sockets->items[i].service, service);
    return count;
}
