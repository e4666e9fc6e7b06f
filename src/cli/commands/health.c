/* SPDX-License-Identifier: Apache-2.0 */
/* kelp health: asks a server whether it is ready, for the health checks of containers and service
 * managers in which no HTTP client is installed. */
#include "base/checked.h"
#include "base/clock.h"
#include "cli/cli.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define DEFAULT_URL "http://127.0.0.1:8000"
#define DEFAULT_PORT "8000"
#define HTTP_OK 200
#define NS_PER_MS UINT64_C(1000000)

typedef struct health_options {
    kelp_arg_list positionals;
    bool live;
    const char *model;
    int64_t timeout_ms;
} health_options;

/* The address of a server. */
typedef struct health_address {
    char host[256]; /* or the path of a Unix socket */
    char port[8];
    bool is_unix;
} health_address;

#define AT(member) offsetof(health_options, member)
static const kelp_arg_spec specs[] = {
    {.name = "live",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(live),
     .help = "ask whether the server responds, even if it is not ready"},
    {.name = "model",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(model),
     .value = "NAME",
     .help = "ask whether this model is ready"},
    {.name = "timeout-ms",
     .kind = KELP_ARG_I64,
     .offset = AT(timeout_ms),
     .value = "N",
     .min = 1,
     .max = 3600000,
     .help = "time limit in milliseconds (2000)"},
};
#undef AT

static void defaults(void *userp) {
    health_options *o = userp;
    o->timeout_ms = 2000;
}

static kelp_status *bad_url(const char *url) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "invalid URL '%s': expected http://HOST[:PORT] or unix:PATH", url);
}

/* Splits http://HOST[:PORT][/], HOST[:PORT], http://[IPV6][:PORT] or unix:PATH. */
static kelp_status *parse_url(const char *url, health_address *out) {
    static const char scheme[] = "http://", local[] = "unix:";
    *out = (health_address){.port = DEFAULT_PORT};
    out->is_unix = !strncmp(url, local, sizeof local - 1);
    const char *host = url, *port = NULL;
    size_t length;
    if (out->is_unix) {
        host += sizeof local - 1;
        length = strlen(host);
    } else {
        if (!strncmp(url, scheme, sizeof scheme - 1))
            host += sizeof scheme - 1;
        bool brackets = *host == '[';
        host += brackets;
        length = strcspn(host, brackets ? "]" : ":/");
        const char *rest = host + length;
        if (brackets && *rest++ != ']')
            return bad_url(url);
        if (*rest == ':')
            port = rest + 1;
        else if (*rest != '\0' && strcmp(rest, "/") != 0)
            return bad_url(url);
    }
    if (length == 0 || length >= sizeof out->host)
        return bad_url(url);
    memcpy(out->host, host, length);
    if (port == NULL)
        return NULL;
    length = strspn(port, "0123456789");
    if (length == 0 || length >= sizeof out->port ||
        (port[length] != '\0' && strcmp(port + length, "/") != 0))
        return bad_url(url);
    snprintf(out->port, sizeof out->port, "%.*s", (int)length, port);
    return NULL;
}

/* Connects a socket, with the time limit also for what follows. Returns -1 and sets errno. */
static int connect_one(int family, const struct sockaddr *address, socklen_t size,
                       int64_t timeout_ms) {
    struct timeval limit = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
        connect(fd, address, size) == 0)
        return fd;
    int error = errno == EINPROGRESS ? ETIMEDOUT : errno;
    close(fd);
    errno = error;
    return -1;
}

static int connect_unix(const char *path, int64_t timeout_ms) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    return connect_one(AF_UNIX, (struct sockaddr *)&address, sizeof address, timeout_ms);
}

static kelp_status *connect_to(const health_address *to, int64_t timeout_ms, int *out_fd) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    *out_fd = -1;
    if (to->is_unix) {
        *out_fd = connect_unix(to->host, timeout_ms);
    } else {
        int failure = getaddrinfo(to->host, to->port, &hints, &list);
        if (failure != 0)
            return KELP_ERROR(KELP_UNAVAILABLE, "unknown host '%s': %s", to->host,
                              gai_strerror(failure));
        for (const struct addrinfo *info = list; info != NULL && *out_fd < 0; info = info->ai_next)
            *out_fd = connect_one(info->ai_family, info->ai_addr, info->ai_addrlen, timeout_ms);
    }
    int error = errno;
    if (list != NULL)
        freeaddrinfo(list);
    if (*out_fd >= 0)
        return NULL;
    return KELP_ERROR(KELP_UNAVAILABLE, "cannot connect to %s%s%s: %s", to->host,
                      to->is_unix ? "" : " port ", to->is_unix ? "" : to->port, strerror(error));
}

/* Sends the request and reads the status line, until the deadline. */
static kelp_status *exchange(int fd, const kelp_buf *request, uint64_t deadline_ns, int *out_code) {
    char line[64];
    size_t length = 0;
    if (send(fd, request->data, request->length, MSG_NOSIGNAL) != (ssize_t)request->length)
        return KELP_ERROR(KELP_UNAVAILABLE, "cannot send the request: %s", strerror(errno));
    while (length < sizeof line - 1 && memchr(line, '\n', length) == NULL) {
        ssize_t got = recv(fd, line + length, sizeof line - 1 - length, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno != EAGAIN)
            return KELP_ERROR(KELP_UNAVAILABLE, "cannot read the response: %s", strerror(errno));
        if (got < 0 || kelp_now_ns() > deadline_ns)
            return KELP_ERROR(KELP_DEADLINE_EXCEEDED, "the server did not respond in time");
        if (got == 0)
            break;
        length += (size_t)got;
    }
    line[length] = '\0';
    if (sscanf(line, "HTTP/1.%*1d %3d", out_code) != 1)
        return KELP_ERROR(KELP_UNAVAILABLE,
                          "the response is not one of HTTP/1: a server with TLS is not supported");
    return NULL;
}

static kelp_status *ask(const health_options *o, const health_address *address, int *out_code) {
    uint64_t deadline_ns = kelp_now_ns() + (uint64_t)o->timeout_ms * NS_PER_MS;
    kelp_buf request;
    int fd;
    KELP_TRY(connect_to(address, o->timeout_ms, &fd));
    kelp_buf_init(&request, kelp_allocator_system());
    kelp_buf_append_cstr(&request, "GET ");
    if (o->model != NULL)
        kelp_buf_printf(&request, "/v2/models/%s/ready", o->model);
    else
        kelp_buf_printf(&request, "/v2/health/%s", o->live ? "live" : "ready");
    kelp_buf_printf(&request, " HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
                    address->is_unix ? "localhost" : address->host);
    kelp_status *status = kelp_buf_status(&request);
    if (status == NULL)
        status = exchange(fd, &request, deadline_ns, out_code);
    kelp_buf_deinit(&request);
    close(fd);
    return status;
}

/* Returns true if the name can be a part of a path as it is. */
static bool is_plain(const char *name) {
    return *name != '\0' && name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                              "0123456789-_.")] == '\0';
}

static int run(const kelp_command *command, void *userp) {
    const health_options *o = userp;
    const char *url = o->positionals.count > 0 ? o->positionals.items[0] : DEFAULT_URL;
    health_address address;
    int code = 0;
    kelp_status *status = parse_url(url, &address);
    if (status == NULL && o->model != NULL && !is_plain(o->model))
        status = KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "invalid name of a model '%s': expected letters, digits, '-', '_' and "
                            "'.'",
                            o->model);
    if (status == NULL && o->model != NULL && o->live)
        status = KELP_ERROR(KELP_INVALID_ARGUMENT, "options '--live' and '--model' exclude each "
                                                   "other");
    if (status != NULL)
        return kelp_cli_usage(command, status);
    status = ask(o, &address, &code);
    if (status != NULL)
        return kelp_cli_finish(KELP_ANNOTATE(status, "the server at '%s' is not healthy", url));
    const char *what = o->model != NULL ? "model ready" : o->live ? "live" : "ready";
    if (code == HTTP_OK)
        printf("%s\n", what);
    else
        fprintf(stderr, "kelp: not %s: the server at '%s' returned HTTP status %d\n", what, url,
                code);
    return code == HTTP_OK ? KELP_EXIT_OK : KELP_EXIT_FAILURE;
}

const kelp_command kelp_cmd_health = {
    .name = "health",
    .summary = "ask a server whether it is ready",
    .usage = "[URL] [options]",
    .details = "URL is http://HOST[:PORT] or unix:PATH (http://127.0.0.1:8000). The exit code is 0 "
               "if the\nserver is ready, and otherwise 1. TLS is not supported.",
    .examples = "  kelp health\n"
                "  kelp health http://10.0.0.5:8000 --model digits\n"
                "  kelp health unix:/run/kelp/http.sock --live",
    .positional = "URL",
    .max_positionals = 1,
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(health_options),
    .defaults = defaults,
    .run = run,
};
