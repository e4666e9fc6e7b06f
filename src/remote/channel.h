/* SPDX-License-Identifier: Apache-2.0 */
/* Frames over a socket, for clients and workers. A channel is used by one thread at a time. */
#ifndef KELP_REMOTE_CHANNEL_H_
#define KELP_REMOTE_CHANNEL_H_

#include <kelp/remote.h>

#include <stdatomic.h>

/* The kind of a frame. A frame is "KRPC", u32 kind, u64 length of the content, content. */
typedef enum kelp_frame_kind {
    KELP_FRAME_LOAD = 1,   /* an ONNX model */
    KELP_FRAME_LOADED = 2, /* no content */
    KELP_FRAME_RUN = 3,    /* an envelope; the slots are the model's inputs */
    KELP_FRAME_RESULT = 4, /* an envelope; the slots are the model's outputs */
    KELP_FRAME_FAILED = 5, /* u32 code, message */
    KELP_FRAME_TOKEN = 6   /* the token, before the first LOAD; no response unless it is wrong */
} kelp_frame_kind;

/* A connection, and the conditions that end a wait. */
typedef struct kelp_channel {
    int fd;
    uint64_t timeout_ns;        /* of a transfer; 0: no timeout */
    const kelp_op_env *env;     /* its cancellation ends a wait; may be NULL */
    const atomic_bool *stopped; /* true ends a wait; may be NULL */
} kelp_channel;

/* Waits for one of the poll events `events`. Fails with CANCELLED, or with DEADLINE_EXCEEDED after
 * `deadline_ns` (0: none). */
kelp_status *kelp_channel_wait(const kelp_channel *channel, short events,
                               uint64_t deadline_ns) KELP_MUST_USE;
/* Reads exactly `size_bytes` bytes. If `out_ended` is not NULL and the peer closes the connection
 * before the first byte, sets it to true and succeeds. */
kelp_status *kelp_channel_read(const kelp_channel *channel, void *data, size_t size_bytes,
                               bool *out_ended) KELP_MUST_USE;
/* Sends a frame with the spans as content. */
kelp_status *kelp_frame_send(const kelp_channel *channel, kelp_frame_kind kind,
                             const kelp_span *spans, size_t count) KELP_MUST_USE;
/* Sends a frame of kind KELP_FRAME_FAILED. */
kelp_status *kelp_frame_send_failure(const kelp_channel *channel,
                                     const kelp_status *failure) KELP_MUST_USE;
/* Reads the head of a frame. `out_ended` is as in kelp_channel_read. */
kelp_status *kelp_frame_read_head(const kelp_channel *channel, kelp_frame_kind *out_kind,
                                  uint64_t *out_length, bool *out_ended) KELP_MUST_USE;
/* Reads the content of a frame of kind KELP_FRAME_FAILED into `*out_failure`, which the caller
 * frees. Fails if the content cannot be read. */
kelp_status *kelp_frame_read_failure(const kelp_channel *channel, uint64_t length,
                                     kelp_status **out_failure) KELP_MUST_USE;
/* Reads the content of a frame, `length` bytes, as an envelope. */
kelp_status *kelp_frame_receive(const kelp_channel *channel, uint64_t length,
                                kelp_receiver *receiver) KELP_MUST_USE;

#endif
