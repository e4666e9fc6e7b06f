/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers of complete byte ranges over a socket, with a timeout and cancellation. */
#include "remote/channel.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define HEAD_BYTES 16u
#define FAILURE_BYTES 4096u
#define MAX_BATCH_SPANS 64
/* The interval at which a wait checks for cancellation. */
#define POLL_MS 50

/* ---- bytes ---- */
kelp_status *kelp_channel_wait(const kelp_channel *channel, short events, uint64_t deadline_ns) {
    struct pollfd poller = {.fd = channel->fd, .events = events};
    for (;;) {
        int ready = poll(&poller, 1, POLL_MS);
        if (ready > 0)
            return NULL;
        if (ready < 0 && errno != EINTR)
            return KELP_ERROR(KELP_INTERNAL, "cannot wait for a socket: %s", strerror(errno));
        if (channel->env != NULL && kelp_op_env_cancelled(channel->env))
            return KELP_ERROR(KELP_CANCELLED, "the run was cancelled");
        if (channel->stopped != NULL && atomic_load(channel->stopped))
            return KELP_ERROR(KELP_CANCELLED, "the worker was stopped");
        if (deadline_ns != 0 && kelp_now_ns() > deadline_ns)
            return KELP_ERROR(KELP_DEADLINE_EXCEEDED, "the peer did not respond within %llu ms",
                              (unsigned long long)(channel->timeout_ns / 1000000));
    }
}

static uint64_t deadline_of(const kelp_channel *channel) {
    return channel->timeout_ns != 0 ? kelp_now_ns() + channel->timeout_ns : 0;
}

kelp_status *kelp_channel_read(const kelp_channel *channel, void *data, size_t size_bytes,
                               bool *out_ended) {
    uint64_t deadline_ns = deadline_of(channel);
    KELP_ASSERT(channel->fd >= 0);
    if (out_ended != NULL)
        *out_ended = false;
    for (size_t have = 0; have < size_bytes;) {
        ssize_t got = recv(channel->fd, (char *)data + have, size_bytes - have, MSG_DONTWAIT);
        if (got > 0) {
            have += (size_t)got;
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            KELP_TRY(kelp_channel_wait(channel, POLLIN, deadline_ns));
            continue;
        }
        if (have == 0 && out_ended != NULL) {
            *out_ended = true;
            return NULL;
        }
        return KELP_ERROR(KELP_UNAVAILABLE, "the connection was lost: %s",
                          got == 0 ? "the peer closed it" : strerror(errno));
    }
    return NULL;
}

/* Sends some bytes from span `*inout_first` on, and advances to the first unsent byte. */
static kelp_status *send_some(const kelp_channel *channel, struct iovec *parts, size_t *inout_first,
                              size_t count, uint64_t deadline_ns) {
    KELP_ASSERT(channel->fd >= 0 && *inout_first < count);
    struct msghdr message = {.msg_iov = parts + *inout_first, .msg_iovlen = count - *inout_first};
    ssize_t sent = sendmsg(channel->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return kelp_channel_wait(channel, POLLOUT, deadline_ns);
    if (sent < 0)
        return KELP_ERROR(KELP_UNAVAILABLE, "the connection was lost: %s", strerror(errno));
    for (size_t left = (size_t)sent; *inout_first < count;) {
        struct iovec *part = &parts[*inout_first];
        size_t taken = KELP_MIN(left, part->iov_len);
        part->iov_base = (char *)part->iov_base + taken;
        part->iov_len -= taken;
        left -= taken;
        if (part->iov_len > 0)
            break;
        (*inout_first)++;
    }
    return NULL;
}

static kelp_status *send_spans(const kelp_channel *channel, const kelp_span *spans, size_t count) {
    uint64_t deadline_ns = deadline_of(channel);
    struct iovec parts[MAX_BATCH_SPANS];
    while (count > 0) {
        size_t batch = KELP_MIN(count, (size_t)MAX_BATCH_SPANS), first = 0;
        for (size_t i = 0; i < batch; i++)
            parts[i] = (struct iovec){(void *)(uintptr_t)spans[i].data, spans[i].size_bytes};
        while (first < batch)
            KELP_TRY(send_some(channel, parts, &first, batch, deadline_ns));
        spans += batch;
        count -= batch;
    }
    return NULL;
}

/* ---- frames ---- */
kelp_status *kelp_frame_send(const kelp_channel *channel, kelp_frame_kind kind,
                             const kelp_span *spans, size_t count) {
    char head[HEAD_BYTES] = "KRPC";
    uint32_t number = (uint32_t)kind;
    uint64_t length = 0;
    KELP_ASSERT(kind >= KELP_FRAME_LOAD && kind <= KELP_FRAME_TOKEN);
    for (size_t i = 0; i < count; i++)
        length += spans[i].size_bytes;
    memcpy(head + 4, &number, 4);
    memcpy(head + 8, &length, 8);
    KELP_TRY(send_spans(channel, &(kelp_span){head, sizeof head}, 1));
    return send_spans(channel, spans, count);
}

kelp_status *kelp_frame_send_failure(const kelp_channel *channel, const kelp_status *failure) {
    char text[FAILURE_BYTES];
    uint32_t code = (uint32_t)kelp_status_code(failure);
    memcpy(text, &code, 4);
    size_t length = kelp_status_format(failure, text + 4, sizeof text - 4);
    kelp_span span = {text, 4 + KELP_MIN(length, sizeof text - 5)};
    return kelp_frame_send(channel, KELP_FRAME_FAILED, &span, 1);
}

kelp_status *kelp_frame_read_head(const kelp_channel *channel, kelp_frame_kind *out_kind,
                                  uint64_t *out_length, bool *out_ended) {
    char head[HEAD_BYTES];
    uint32_t kind = 0;
    KELP_TRY(kelp_channel_read(channel, head, sizeof head, out_ended));
    if (out_ended != NULL && *out_ended)
        return NULL;
    memcpy(&kind, head + 4, 4);
    memcpy(out_length, head + 8, 8);
    if (memcmp(head, "KRPC", 4) != 0 || kind < KELP_FRAME_LOAD || kind > KELP_FRAME_TOKEN)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the peer sent an invalid frame (kind %u)", kind);
    *out_kind = (kelp_frame_kind)kind;
    return NULL;
}

kelp_status *kelp_frame_read_failure(const kelp_channel *channel, uint64_t length,
                                     kelp_status **out_failure) {
    char text[FAILURE_BYTES + 1];
    uint32_t code = 0;
    *out_failure = NULL;
    if (length < 4 || length > FAILURE_BYTES)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the peer sent an invalid failure of %llu bytes: expected 4 to %u",
                          (unsigned long long)length, FAILURE_BYTES);
    KELP_TRY(kelp_channel_read(channel, text, (size_t)length, NULL));
    text[length] = '\0';
    memcpy(&code, text, 4);
    if (code == KELP_OK || code > KELP_UNAUTHENTICATED)
        code = KELP_UNKNOWN;
    *out_failure = KELP_ERROR((kelp_code)code, "%s", text + 4);
    return NULL;
}

kelp_status *kelp_frame_receive(const kelp_channel *channel, uint64_t length,
                                kelp_receiver *receiver) {
    size_t wanted = 0;
    kelp_receiver_next(receiver);
    for (void *at = NULL; (at = kelp_receiver_want(receiver, &wanted)) != NULL;) {
        if (wanted > length)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "the envelope is longer than its frame");
        KELP_TRY(kelp_channel_read(channel, at, wanted, NULL));
        KELP_TRY(kelp_receiver_got(receiver, wanted));
        length -= wanted;
    }
    if (length != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the frame has %llu bytes after its envelope",
                          (unsigned long long)length);
    return NULL;
}
