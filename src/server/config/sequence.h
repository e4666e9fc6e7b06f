/* SPDX-License-Identifier: Apache-2.0 */
/* The typed view of `sequence_batching`. Strings are terminated and never NULL. */
#ifndef KELP_SERVER_CONFIG_SEQUENCE_H_
#define KELP_SERVER_CONFIG_SEQUENCE_H_

#include <kelp/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <triton/core/tritonserver.h>

/* The meaning of a control input. The values are those of the proto. */
typedef enum kelp_control_kind {
    KELP_CONTROL_START = 0,
    KELP_CONTROL_READY = 1,
    KELP_CONTROL_END = 2,
    KELP_CONTROL_CORRID = 3
} kelp_control_kind;

/* An input that tells the model the position of a request in its sequence. */
typedef struct kelp_config_control {
    const char *name;
    kelp_control_kind kind;
    TRITONSERVER_DataType data_type; /* INT32, FP32 or BOOL; CORRID: an integer or BYTES */
    /* The bytes of the values false and true; not used by CORRID. */
    uint32_t size_bytes;
    uint8_t values[2][4];
} kelp_config_control;

/* A tensor that the server passes from a request of a sequence to the next one. */
typedef struct kelp_config_state {
    const char *input_name;
    const char *output_name;
    TRITONSERVER_DataType data_type;
    const int64_t *dims; /* without the batch dimension; -1 for dynamic dimensions */
    uint32_t rank;
    /* The state of a new sequence: the data of a file, or zeros. */
    const int64_t *initial_dims; /* `dims` with 1 for dynamic dimensions if it is not configured */
    uint32_t initial_rank;
    const char *initial_name; /* for messages */
    const char *initial_file; /* in the directory initial_state of the model; "" for zeros */
    bool same_buffer;         /* the output replaces the input in place */
    bool growable;            /* the buffer grows by more than necessary */
} kelp_config_state;

/* The settings of the sequence batcher. */
typedef struct kelp_config_sequence {
    bool oldest; /* the strategy; false: direct */
    bool iterative;
    uint64_t max_idle_us;
    uint64_t max_delay_us;
    double min_slot_utilization;          /* direct */
    uint32_t slots;                       /* live sequences per instance */
    const int32_t *preferred_batch_sizes; /* oldest */
    size_t preferred_count;
    bool preserve_ordering; /* oldest */
    const kelp_config_control *controls;
    size_t control_count;
    const kelp_config_state *states;
    size_t state_count;
} kelp_config_sequence;

/* Returns the text of a control's kind in configurations. */
const char *kelp_control_kind_name(kelp_control_kind kind);

#endif
