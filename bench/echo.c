/* SPDX-License-Identifier: Apache-2.0 */
#include "echo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { MAX_THREADS = 64, EVENTS = 64, BACKLOG = 1024 };

static echo_event_fn *handler;

void echo_watch(int poller, int fd, void *state, bool writable) {
    struct epoll_event event = {.events = writable ? EPOLLOUT : EPOLLIN, .data.ptr = state};
    if (epoll_ctl(poller, EPOLL_CTL_MOD, fd, &event) != 0)
        abort();
}

static void *thread_main(void *userp) {
    int poller = (int)(intptr_t)userp;
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(poller, events, EVENTS, -1);
        if (count < 0 && errno != EINTR)
            abort();
        for (int i = 0; i < count; i++)
            handler(poller, events[i].data.ptr, !(events[i].events & EPOLLOUT));
    }
    return NULL;
}

static int listen_on_free_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return -1;
    printf("%u\n", (unsigned)ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

int echo_serve(int argc, char **argv, echo_accept_fn *on_accept, echo_event_fn *on_event) {
    unsigned long threads = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    int pollers[MAX_THREADS], listener = listen_on_free_port();
    if (threads < 1 || threads > MAX_THREADS || listener < 0)
        return 2;
    handler = on_event;
    for (unsigned long i = 0; i < threads; i++) {
        pthread_t id;
        pollers[i] = epoll_create1(0);
        if (pollers[i] < 0 ||
            pthread_create(&id, NULL, thread_main, (void *)(intptr_t)pollers[i]) != 0)
            return 1;
    }
    for (unsigned long next = 0;; next++) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), on = 1;
        if (fd < 0)
            return 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = on_accept(fd)};
        if (epoll_ctl(pollers[next % threads], EPOLL_CTL_ADD, fd, &event) != 0)
            return 1;
    }
}
