/* SPDX-License-Identifier: Apache-2.0 */
/* The execution of sequences: implicit state and null requests. */
#ifndef KELP_SERVER_MODEL_SEQUENCE_H_
#define KELP_SERVER_MODEL_SEQUENCE_H_

#include "server/model/instance.h"
#include "server/request/sequence.h"

/* The states of a model's sequences. */
typedef struct kelp_sequencer {
    uint32_t slot_count;         /* of all instances */
    kelp_sequence_states *slots; /* allocated when a slot is first used */
    kelp_sequence_states *nulls; /* for null requests, one for each slot */
    kelp_initial_state *initial; /* one for each state of the configuration */
    kelp_buf *files;             /* one for each state; empty for zeros */
    size_t state_count;
} kelp_sequencer;

/* Reads the initial states. No effect if the model does not batch sequences. */
kelp_status *kelp_sequencer_create(struct kelp_model *model, kelp_sequencer **out) KELP_MUST_USE;
/* Frees a sequencer, whose model has no requests. NULL is ignored. */
void kelp_sequencer_destroy(kelp_sequencer *sequencer, kelp_allocator allocator);

/* Executes taken requests of sequences (kelp_execute_fn): sets their controls and states, and adds
 * null requests for the other slots of an execution. */
void kelp_instance_execute_sequences(kelp_instance_base *instance, kelp_request **requests,
                                     uint32_t count);
/* Prepares a request that is executed without the scheduler, as the only request of a sequence in
 * the slot `index` of the instance. INVALID_ARGUMENT if there is no such slot. */
kelp_status *kelp_instance_prepare_sample(kelp_instance *instance, kelp_request *request,
                                          uint32_t index) KELP_MUST_USE;

#endif
