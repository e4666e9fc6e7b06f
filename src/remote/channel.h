/* SPDX-License-Identifier: Apache-2.0 */
/* Frames over a socket, for both ends. One thread a channel. */
#ifndef KELP_REMOTE_CHANNEL_H_
#define KELP_REMOTE_CHANNEL_H_

#include <kelp/remote.h>

#include <stdatomic.h>

/* A frame: "KRPC", u32 kind, u64 length of what follows. */
typedef enum kelp_frame_kind {
    KELP_FRAME_LOAD = 1,   /* an ONNX model */
    KELP_FRAME_LOADED = 2, /* nothing */
    KELP_FRAME_RUN = 3,    /* an envelope: slots are the model's inputs */
    KELP_FRAME_RESULT = 4, /* an envelope: slots are the model's outputs */
    KELP_FRAME_FAILED = 5  /* u32 code, a message */
} kelp_frame_kind;

typedef struct kelp_channel {
    int fd;
    uint64_t timeout_ns;        /* that a transfer may take; 0: for ever */
    const kelp_op_env *env;     /* whose cancellation ends a wait; may be NULL */
    const atomic_bool *stopped; /* another reason; may be NULL */
} kelp_channel;

kelp_status *kelp_channel_connect(const char *path, int *out_fd) KELP_MUST_USE;
kelp_status *kelp_channel_listen(const char *path, int *out_fd) KELP_MUST_USE;
/* All of it. `out_ended` (may be NULL): the other end has closed before the first byte, which is no
 * failure then. */
kelp_status *kelp_channel_read(const kelp_channel *channel, void *data, size_t size_bytes,
                               bool *out_ended) KELP_MUST_USE;
kelp_status *kelp_frame_send(const kelp_channel *channel, kelp_frame_kind kind,
                             const kelp_span *spans, size_t count) KELP_MUST_USE;
kelp_status *kelp_frame_send_failure(const kelp_channel *channel,
                                     const kelp_status *failure) KELP_MUST_USE;
kelp_status *kelp_frame_read_head(const kelp_channel *channel, kelp_frame_kind *out_kind,
                                  uint64_t *out_length, bool *out_ended) KELP_MUST_USE;
/* The other end's failure as one of ours. */
kelp_status *kelp_frame_read_failure(const kelp_channel *channel, uint64_t length) KELP_MUST_USE;
/* An envelope that is the rest of a frame. */
kelp_status *kelp_frame_receive(const kelp_channel *channel, uint64_t length,
                                kelp_receiver *receiver) KELP_MUST_USE;

#endif
