/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of models that batch sequences. A request gets the inputs that the server adds (controls
 * and states) when it is submitted, and loses them before it returns to its caller, which never
 * sees them. Their memory stays with the request for its next use.
 */
#ifndef KELP_SERVER_REQUEST_SEQUENCE_H_
#define KELP_SERVER_REQUEST_SEQUENCE_H_

#include "server/request/request.h"
#include "server/request/states.h"

#define KELP_SEQUENCE_ID_CHARACTERS 128 /* the maximum length of a correlation ID */

/* A sequence that has a slot or waits for one. Its members belong to the scheduling policy. */
struct kelp_sequence {
    kelp_sequence *next;           /* free, or in the backlog */
    kelp_sequence *next_ready;     /* of an instance */
    kelp_sequence *next_in_bucket; /* of the table */
    kelp_request *head, *tail;     /* queued, linked by `next` */
    uint32_t slot;                 /* of the model; UINT32_MAX in the backlog */
    bool open;                     /* the last accepted request did not end the sequence */
    bool executing;                /* one of its requests was taken and is not released */
    bool ready;                    /* in the list of ready sequences */
    bool started;                  /* a request of the current run was taken */
    bool ending;                   /* the run ends when the executing request is released */
    uint64_t ready_ns;             /* the time since which it is ready */
    uint64_t idle_ns;              /* the time since which no request is queued or executes */
    uint64_t expires_ns;           /* in the backlog: the first timeout of a request */
    uint64_t hash;
    uint64_t number; /* the correlation ID; 0: it is `text` */
    char text[KELP_SEQUENCE_ID_CHARACTERS + 1];
};

/* The memory of a request for the use in sequences. */
struct kelp_request_sequence {
    kelp_sequence *spare; /* for a request that starts a sequence */
    uint8_t values[3][4]; /* of the controls START, READY and END */
    uint8_t corrid[4 + KELP_SEQUENCE_ID_CHARACTERS];
    uint32_t corrid_bytes;
    unsigned char *zeros; /* the data of a null request */
    size_t zeros_capacity;
};

/* Allocates request->sequence, if the request has none. */
kelp_status *kelp_request_reserve_sequence(kelp_request *request) KELP_MUST_USE;
/* Adds the inputs of controls and states, whose values are set later, and prepares the memory that
 * the policy needs. INVALID_ARGUMENT if the correlation ID does not have the type of the model's
 * input for it. On failure, the request is unchanged. */
kelp_status *kelp_request_enter_sequence(kelp_request *request) KELP_MUST_USE;
/* Sets the values of the controls from the request's flags. */
void kelp_request_set_controls(kelp_request *request, bool ready);
/* Sets the inputs of states to the current values, which the request may then replace. */
void kelp_request_bind_states(kelp_request *request, kelp_sequence_states *states);
/* Removes what kelp_request_enter_sequence added. No effect on other requests. */
void kelp_request_leave_sequence(kelp_request *request);
/* Frees the memory of a request. */
void kelp_request_free_sequence(kelp_request *request);

#endif
