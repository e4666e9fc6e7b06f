/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/server/listener.h"

#include "base/alloc.h"
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096
#define ACCEPTS_PER_EVENT 64
#define ACCEPT_PAUSE_NS UINT64_C(100000000)

/* ---- sockets ---- */

/* Describes why a Unix socket cannot be bound: "address in use" is misleading for other files. */
static const char *bind_failure(const char *path, int error) {
    struct stat about;
    if (error == EADDRINUSE && lstat(path, &about) == 0 && !S_ISSOCK(about.st_mode))
        return "a file that is not a socket exists there";
    return strerror(error);
}

static kelp_status *listen_unix(kelp_http_listener *listener, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (*path == '\0')
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the address of the unix socket has no path: expected unix:/path");
    if (strlen(path) >= sizeof address.sun_path)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "unix socket path '%s' is longer than %zu bytes",
                          path, sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    kelp_fs_remove_stale_socket(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, BACKLOG) != 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return KELP_ERROR(KELP_UNAVAILABLE, "cannot listen on unix socket '%s': %s", path,
                          bind_failure(path, error));
    }
    listener->fd = fd;
    return kelp_strdup(listener->allocator, path, &listener->unix_path);
}

static int bind_one(const struct addrinfo *info, bool reuse_port) {
    int fd = socket(info->ai_family, info->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    info->ai_protocol);
    if (fd < 0)
        return -1;
    int on = 1;
    /* Permits binding while connections are in TIME_WAIT, but not while another socket listens. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (reuse_port)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static kelp_status *listen_tcp(kelp_http_listener *listener, const char *address, uint16_t port,
                               bool reuse_port) {
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)port);
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                             .ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int failure = getaddrinfo(address, service, &hints, &list);
    if (failure)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown address '%s': %s%s", address,
                          gai_strerror(failure),
                          address[0] == '[' ? "; IPv6 addresses have no brackets here" : "");
    int error = 0;
    for (const struct addrinfo *info = list; info != NULL && listener->fd < 0;
         info = info->ai_next) {
        listener->fd = bind_one(info, reuse_port);
        if (listener->fd < 0)
            error = errno;
    }
    freeaddrinfo(list);
    if (listener->fd < 0)
        return KELP_ERROR(KELP_UNAVAILABLE, "cannot listen on %s port %u: %s", address,
                          (unsigned)port, strerror(error));
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    if (getsockname(listener->fd, (struct sockaddr *)&bound, &length) != 0)
        return KELP_ERROR(KELP_INTERNAL, "cannot read the port of the socket: %s", strerror(errno));
    listener->port =
        ntohs(bound.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&bound)->sin6_port
                                          : ((const struct sockaddr_in *)&bound)->sin_port);
    return NULL;
}

kelp_status *kelp_http_listener_open(kelp_http_listener *listener, kelp_allocator allocator,
                                     const kelp_logger *logger, const char *address, uint16_t port,
                                     bool reuse_port) {
    static const char scheme[] = "unix:";
    *listener = (kelp_http_listener){.allocator = allocator, .logger = logger, .fd = -1};
    if (strncmp(address, scheme, sizeof scheme - 1) != 0)
        return listen_tcp(listener, address, port, reuse_port);
    const char *path = address + sizeof scheme - 1;
    return listen_unix(listener, path[0] == '/' && path[1] == '/' ? path + 2 : path);
}

kelp_status *kelp_http_listener_open_endpoint(kelp_http_listener *listener,
                                              kelp_allocator allocator, const kelp_logger *logger,
                                              const kelp_http_endpoint *endpoint) {
    int fd = endpoint->fd;
    const char *address = endpoint->address;
    if (address == NULL || !*address)
        address = "0.0.0.0";
    if (fd == 0)
        return kelp_http_listener_open(listener, allocator, logger, address, endpoint->port,
                                       endpoint->reuse_port);
    *listener = (kelp_http_listener){.allocator = allocator,
                                     .logger = logger,
                                     .fd = -1,
                                     .adopted = true,
                                     .port = endpoint->port};
    listener->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    int flags = listener->fd >= 0 ? fcntl(listener->fd, F_GETFL) : -1;
    if (flags < 0 || fcntl(listener->fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return KELP_ERROR(KELP_UNAVAILABLE, "cannot use the socket of descriptor %d: %s", fd,
                          strerror(errno));
    return NULL;
}

kelp_status *kelp_http_listener_set_mode(kelp_http_listener *listener, unsigned mode) {
    if (mode == 0 || listener->unix_path == NULL || chmod(listener->unix_path, mode) == 0)
        return NULL;
    return KELP_ERROR(KELP_UNAVAILABLE, "cannot set the permissions of unix socket '%s': %s",
                      listener->unix_path, strerror(errno));
}

/* ---- accepting ---- */

static void on_timer(kelp_event_loop_timer *timer) {
    kelp_http_listener *listener = timer->userp;
    if (listener->fd >= 0)
        kelp_status_free(kelp_event_loop_modify(listener->loop, &listener->io, KELP_LOOP_READ));
}

/* Stops polling for a short time, because the pending connection would wake the loop at once. */
static void pause_accepting(kelp_http_listener *listener, int error) {
    if (listener->failure_count++ == 0)
        KELP_LOGF(listener->logger, KELP_LOG_WARNING,
                  "cannot accept HTTP connections: %s; they wait until others are closed",
                  strerror(error));
    listener->timer.fn = on_timer;
    listener->timer.userp = listener;
    kelp_status *status = kelp_event_loop_timer_set(
        listener->loop, &listener->timer, kelp_event_loop_now_ns(listener->loop) + ACCEPT_PAUSE_NS);
    if (status == NULL)
        status = kelp_event_loop_modify(listener->loop, &listener->io, 0);
    kelp_status_free(status);
}

static void note_recovery(kelp_http_listener *listener) {
    KELP_LOGF(listener->logger, KELP_LOG_WARNING,
              "accepting HTTP connections again, after %llu failed attempts",
              (unsigned long long)listener->failure_count);
    listener->failure_count = 0;
}

static void accept_pending(kelp_http_listener *listener, int limit) {
    for (int i = 0; i < limit; i++) {
        struct sockaddr_storage client = {.ss_family = AF_UNSPEC};
        socklen_t length = sizeof client;
        int fd = accept4(listener->fd, (struct sockaddr *)&client, &length,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            listener->on_accept(listener->userp, fd, (const struct sockaddr *)&client);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            pause_accepting(listener, errno);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            if (listener->failure_count > 0) /* no client waits any more */
                note_recovery(listener);
            return;
        }
    }
}

static void on_readable(kelp_event_loop_io *io, uint32_t events) {
    (void)events;
    accept_pending(io->userp, ACCEPTS_PER_EVENT);
}

kelp_status *kelp_http_listener_start(kelp_http_listener *listener, kelp_event_loop *loop,
                                      void (*on_accept)(void *userp, int take_fd,
                                                        const struct sockaddr *client),
                                      void *userp) {
    listener->on_accept = on_accept;
    listener->userp = userp;
    listener->io = (kelp_event_loop_io){.fd = listener->fd, .fn = on_readable, .userp = listener};
    KELP_TRY(kelp_event_loop_add(loop, &listener->io, KELP_LOOP_READ));
    listener->loop = loop;
    return NULL;
}

/* Makes the kernel drop new connection attempts, so that no connection is established between the
 * last accept and the close, which would reset it. The clients are refused when they try again.
 * Without effect on Unix sockets. */
static void drop_new(const kelp_http_listener *listener) {
    struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
    const struct sock_fprog program = {.len = 1, .filter = &drop};
    (void)setsockopt(listener->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

void kelp_http_listener_stop(kelp_http_listener *listener) {
    if (!listener->adopted) {
        drop_new(listener);
        accept_pending(listener, BACKLOG);
    }
    kelp_event_loop_timer_cancel(listener->loop, &listener->timer);
    kelp_event_loop_remove(listener->loop, &listener->io);
    close(listener->fd);
    listener->fd = -1;
}

void kelp_http_listener_close(kelp_http_listener *listener) {
    if (listener->fd >= 0)
        close(listener->fd);
    listener->fd = -1;
    if (listener->unix_path == NULL)
        return;
    unlink(listener->unix_path);
    kelp_free_string(listener->allocator, listener->unix_path);
    listener->unix_path = NULL;
}
