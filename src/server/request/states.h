/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The implicit state of a sequence: tensors that a request leaves to the next request of its
 * sequence. TRITONBACKEND_State is a pointer to kelp_state.
 *
 * The states belong to the slot of a live sequence. At most one request of a sequence executes at a
 * time, and only that request uses them; its backend must not use them on two threads at once. A
 * new sequence begins with the initial states, so that no data passes from one sequence to another.
 */
#ifndef KELP_SERVER_REQUEST_STATES_H_
#define KELP_SERVER_REQUEST_STATES_H_

#include "server/config/config.h"
#include "server/config/reshape.h"
#include "server/core/values.h"

typedef struct kelp_sequence_states kelp_sequence_states;

/* The memory of a value. It stays when the value changes. */
typedef struct kelp_state_buffer {
    unsigned char *data;
    size_t capacity;
} kelp_state_buffer;

/* The type, shape and size of a value. */
typedef struct kelp_state_tensor {
    TRITONSERVER_DataType data_type;
    uint32_t rank;
    int64_t shape[KELP_SERVER_MAX_RANK];
    size_t size_bytes;
} kelp_state_tensor;

/* A state: the value that the executing request reads, and the one that it writes. */
typedef struct kelp_state {
    const kelp_config_state *config;
    kelp_sequence_states *owner;
    kelp_state_buffer buffers[2];
    unsigned current; /* the buffer to read */
    unsigned target;  /* the buffer to write */
    bool is_new;      /* a new value is described and not stored yet */
    kelp_state_tensor tensor, new_tensor;
    kelp_buffer_attributes attributes; /* of the new value */
} kelp_state;

/* The states of a slot. */
struct kelp_sequence_states {
    kelp_allocator allocator;
    kelp_state *items; /* one for each state of the configuration */
    size_t count;
    bool in_use; /* a request that executes may write them */
};

/* The contents of the file of an initial state; `data` is NULL for zeros. */
typedef struct kelp_initial_state {
    const void *data;
    size_t size_bytes;
} kelp_initial_state;

/* Allocates the states of a configuration, without values. */
kelp_status *kelp_sequence_states_init(kelp_sequence_states *states, kelp_allocator allocator,
                                       const kelp_config_sequence *config) KELP_MUST_USE;
void kelp_sequence_states_deinit(kelp_sequence_states *states);
/* Computes the number of bytes of the initial value of a state, without a file of type BYTES. */
kelp_status *kelp_state_initial_bytes(const kelp_config_state *config,
                                      size_t *out_bytes) KELP_MUST_USE;
/* Sets all states to their initial values; `initial` has one entry for each state. `batched` adds
 * the batch dimension. Allocates only if a value needs more memory than all before. */
kelp_status *kelp_sequence_states_reset(kelp_sequence_states *states,
                                        const kelp_initial_state *initial,
                                        bool batched) KELP_MUST_USE;
/* Sets all states to zeros with the types and shapes of the current values of `like`. */
kelp_status *kelp_sequence_states_zero(kelp_sequence_states *states,
                                       const kelp_sequence_states *like) KELP_MUST_USE;

/* Returns the state with an output name, or NULL. */
kelp_state *kelp_sequence_states_find(const kelp_sequence_states *states, const char *output_name);
/* Describes the new value of a state. INVALID_ARGUMENT if the rank is too high. */
kelp_status *kelp_state_begin(kelp_state *state, TRITONSERVER_DataType data_type,
                              const int64_t *shape, uint32_t rank) KELP_MUST_USE;
/* Returns memory for the new value. If the state replaces its value in place, the memory is that of
 * the current value or, where that is too small, contains a copy of it. INTERNAL without
 * kelp_state_begin, or after the request was released. */
kelp_status *kelp_state_memory(kelp_state *state, uint64_t size_bytes, void **out) KELP_MUST_USE;
/* Makes the new value the current one. INTERNAL as for kelp_state_memory. */
kelp_status *kelp_state_update(kelp_state *state) KELP_MUST_USE;

#endif
