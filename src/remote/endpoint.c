/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets and TCP: parses addresses, connects and listens. */
#include "remote/endpoint.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/fs.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A peer that does not respond to the kernel is lost after 10 + 3 * 5 seconds. */
#define PROBE_IDLE_S 10
#define PROBE_INTERVAL_S 5
#define PROBE_COUNT 3
#define LOST_MS (1000u * (PROBE_IDLE_S + PROBE_COUNT * PROBE_INTERVAL_S))

#define FORMS "expected HOST:PORT, [IPV6]:PORT, a path with a slash or unix:PATH"

/* ---- text ---- */
static kelp_status *parse_unix(const char *path, kelp_endpoint *out) {
    size_t length = strlen(path), limit = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
    if (length == 0 || length > limit)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "'%s' is not a valid socket path: expected 1 to %zu bytes", path, limit);
    memcpy(out->name, path, length + 1);
    return NULL;
}

static bool is_port(const char *text) {
    size_t length = strlen(text);
    return length > 0 && length < 6 && strspn(text, "0123456789") == length && atoi(text) <= 65535;
}

static kelp_status *parse_tcp(const char *address, kelp_endpoint *out) {
    const char *host = address, *colon = strrchr(address, ':');
    if (colon == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "'%s' is not an address of a worker: " FORMS,
                          address);
    if (!is_port(colon + 1))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "address '%s' has no valid port: expected a number from 0 to 65535, "
                          "found '%s'",
                          address, colon + 1);
    size_t length = (size_t)(colon - host);
    bool bracketed = length >= 2 && host[0] == '[' && host[length - 1] == ']';
    if (bracketed) {
        host++;
        length -= 2;
    }
    if (length >= sizeof out->name || (bracketed && length == 0) ||
        (!bracketed && memchr(host, ':', length) != NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "address '%s' has no valid host: " FORMS, address);
    out->is_tcp = true;
    if (length == 0)
        snprintf(out->name, sizeof out->name, "127.0.0.1");
    else
        snprintf(out->name, sizeof out->name, "%.*s", (int)length, host);
    snprintf(out->port, sizeof out->port, "%d", atoi(colon + 1));
    return NULL;
}

kelp_status *kelp_endpoint_parse(const char *address, kelp_endpoint *out) {
    *out = (kelp_endpoint){0};
    if (strncmp(address, "unix:", 5) == 0)
        return parse_unix(address + 5, out);
    return strchr(address, '/') != NULL ? parse_unix(address, out) : parse_tcp(address, out);
}

const char *kelp_endpoint_format(const kelp_endpoint *endpoint,
                                 char text[KELP_ENDPOINT_TEXT_BYTES]) {
    const char *name = endpoint->name;
    if (!endpoint->is_tcp)
        snprintf(text, KELP_ENDPOINT_TEXT_BYTES, "%s%s", strchr(name, '/') ? "" : "unix:", name);
    else if (strchr(name, ':') != NULL)
        snprintf(text, KELP_ENDPOINT_TEXT_BYTES, "[%s]:%s", name, endpoint->port);
    else
        snprintf(text, KELP_ENDPOINT_TEXT_BYTES, "%s:%s", name, endpoint->port);
    return text;
}

/* ---- sockets ---- */
static kelp_status *open_socket(int family, int *out_fd) {
    *out_fd =
        socket(family, SOCK_STREAM | SOCK_CLOEXEC | (family == AF_UNIX ? 0 : SOCK_NONBLOCK), 0);
    if (*out_fd < 0)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "cannot create a socket: %s", strerror(errno));
    return NULL;
}

static void close_socket(int *inout_fd) {
    if (*inout_fd >= 0)
        close(*inout_fd);
    *inout_fd = -1;
}

static struct sockaddr_un unix_address(const kelp_endpoint *endpoint) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    KELP_ASSERT(strlen(endpoint->name) < sizeof address.sun_path);
    memcpy(address.sun_path, endpoint->name, strlen(endpoint->name));
    return address;
}

/* Returns the addresses of the host. The caller frees them with freeaddrinfo. */
static kelp_status *resolve(const kelp_endpoint *endpoint, int flags, struct addrinfo **out) {
    struct addrinfo hints = {.ai_flags = flags | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    int failure = getaddrinfo(endpoint->name, endpoint->port, &hints, out);
    if (failure != 0)
        return KELP_ERROR(KELP_UNAVAILABLE, "cannot resolve host '%s': %s", endpoint->name,
                          failure == EAI_SYSTEM ? strerror(errno) : gai_strerror(failure));
    return NULL;
}

void kelp_endpoint_tune(const kelp_endpoint *endpoint, int fd) {
    static const struct {
        int level, name, value;
    } options[] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                   {SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, PROBE_IDLE_S},
                   {IPPROTO_TCP, TCP_KEEPINTVL, PROBE_INTERVAL_S},
                   {IPPROTO_TCP, TCP_KEEPCNT, PROBE_COUNT},
                   {IPPROTO_TCP, TCP_USER_TIMEOUT, (int)LOST_MS}};
    for (size_t i = 0; endpoint->is_tcp && i < sizeof options / sizeof *options; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                         sizeof options[i].value);
}

/* ---- connecting ---- */
static kelp_status *lost(const char *reason) {
    return KELP_ERROR(KELP_UNAVAILABLE, "%s", reason);
}

static kelp_status *connect_unix(const kelp_endpoint *endpoint, int *out_fd) {
    struct sockaddr_un address = unix_address(endpoint);
    KELP_TRY(open_socket(AF_UNIX, out_fd));
    if (connect(*out_fd, (struct sockaddr *)&address, sizeof address) != 0)
        return lost(strerror(errno));
    return NULL;
}

static kelp_status *connect_address(const struct addrinfo *address, uint64_t timeout_ns,
                                    const kelp_op_env *env, int *out_fd) {
    int error = 0;
    socklen_t size = sizeof error;
    KELP_TRY(open_socket(address->ai_family, out_fd));
    if (connect(*out_fd, address->ai_addr, address->ai_addrlen) == 0)
        return NULL;
    if (errno != EINPROGRESS)
        return lost(strerror(errno));
    kelp_channel channel = {.fd = *out_fd, .timeout_ns = timeout_ns, .env = env};
    kelp_status *status = kelp_channel_wait(&channel, POLLOUT, kelp_now_ns() + timeout_ns);
    if (kelp_status_code(status) == KELP_DEADLINE_EXCEEDED) {
        kelp_status_free(status);
        return KELP_ERROR(KELP_UNAVAILABLE, "no response within %llu ms",
                          (unsigned long long)((timeout_ns + 999999) / 1000000));
    }
    KELP_TRY(status);
    if (getsockopt(*out_fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    return error == 0 ? NULL : lost(strerror(error));
}

/* Tries the host's addresses in order. Each may take an equal share of the remaining time. */
static kelp_status *connect_tcp(const kelp_endpoint *endpoint, uint64_t timeout_ns,
                                const kelp_op_env *env, int *out_fd) {
    struct addrinfo *list = NULL;
    uint64_t deadline_ns = kelp_now_ns() + timeout_ns, left = 0;
    KELP_TRY(resolve(endpoint, AI_ADDRCONFIG, &list));
    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next)
        left++;
    kelp_status *status = NULL;
    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next, left--) {
        uint64_t now_ns = kelp_now_ns();
        kelp_status_free(status);
        status = connect_address(at, deadline_ns > now_ns ? (deadline_ns - now_ns) / left : 0, env,
                                 out_fd);
        if (status == NULL || kelp_status_code(status) == KELP_CANCELLED)
            break;
        close_socket(out_fd);
    }
    freeaddrinfo(list);
    return status;
}

kelp_status *kelp_endpoint_connect(const kelp_endpoint *endpoint, uint64_t timeout_ns,
                                   const kelp_op_env *env, int *out_fd) {
    char text[KELP_ENDPOINT_TEXT_BYTES];
    *out_fd = -1;
    kelp_status *status = endpoint->is_tcp ? connect_tcp(endpoint, timeout_ns, env, out_fd)
                                           : connect_unix(endpoint, out_fd);
    if (status == NULL) {
        kelp_endpoint_tune(endpoint, *out_fd);
        return NULL;
    }
    close_socket(out_fd);
    return KELP_ANNOTATE(status, "cannot connect to a worker at '%s'",
                         kelp_endpoint_format(endpoint, text));
}

/* ---- listening ---- */
static kelp_status *listen_unix(const kelp_endpoint *endpoint, int *out_fd) {
    struct sockaddr_un address = unix_address(endpoint);
    KELP_TRY(open_socket(AF_UNIX, out_fd));
    kelp_fs_remove_stale_socket(endpoint->name);
    if (bind(*out_fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(*out_fd, SOMAXCONN) != 0)
        return lost(strerror(errno));
    return NULL;
}

static bool is_loopback(const struct sockaddr_storage *address) {
    if (address->ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
    return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
}

static kelp_status *listen_address(const struct addrinfo *address, kelp_endpoint *inout_endpoint,
                                   int *out_fd, bool *out_public) {
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    int one = 1;
    KELP_TRY(open_socket(address->ai_family, out_fd));
    (void)setsockopt(*out_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(*out_fd, address->ai_addr, address->ai_addrlen) != 0 ||
        listen(*out_fd, SOMAXCONN) != 0 ||
        getsockname(*out_fd, (struct sockaddr *)&bound, &size) != 0)
        return lost(strerror(errno));
    *out_public = !is_loopback(&bound);
    int failure = getnameinfo((struct sockaddr *)&bound, size, inout_endpoint->name,
                              sizeof inout_endpoint->name, inout_endpoint->port,
                              sizeof inout_endpoint->port, NI_NUMERICHOST | NI_NUMERICSERV);
    return failure == 0 ? NULL : KELP_ERROR(KELP_INTERNAL, "%s", gai_strerror(failure));
}

static kelp_status *listen_tcp(kelp_endpoint *inout_endpoint, int *out_fd, bool *out_public) {
    struct addrinfo *list = NULL;
    KELP_TRY(resolve(inout_endpoint, AI_PASSIVE, &list));
    kelp_status *status = NULL;
    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next) {
        kelp_status_free(status);
        status = listen_address(at, inout_endpoint, out_fd, out_public);
        if (status == NULL)
            break;
        close_socket(out_fd);
    }
    freeaddrinfo(list);
    return status;
}

kelp_status *kelp_endpoint_listen(kelp_endpoint *inout_endpoint, int *out_fd, bool *out_public) {
    char text[KELP_ENDPOINT_TEXT_BYTES];
    *out_fd = -1;
    *out_public = false;
    kelp_status *status = inout_endpoint->is_tcp ? listen_tcp(inout_endpoint, out_fd, out_public)
                                                 : listen_unix(inout_endpoint, out_fd);
    if (status == NULL)
        return NULL;
    close_socket(out_fd);
    return KELP_ANNOTATE(status, "cannot listen on '%s'",
                         kelp_endpoint_format(inout_endpoint, text));
}
