/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs: the requests of an ensemble that are in flight.
 *
 * The callbacks of the members post events to the run. The thread that posts the first event
 * becomes the run's driver and processes events until there are none; other threads only post. All
 * members are the driver's, except those that `lock` guards. A run, its frames, calls and values
 * are pooled and keep their memory. Runs are freed with the ensemble, because a cancellation may
 * still look at one that is over.
 */
#ifndef KELP_SERVER_ENSEMBLE_RUN_H_
#define KELP_SERVER_ENSEMBLE_RUN_H_

#include "server/ensemble/ensemble.h"
#include "server/ensemble/flow.h"
#include "server/request/response.h"

typedef struct kelp_run kelp_run;
typedef struct kelp_run_frame kelp_run_frame;

/* The sequence of a request or response. */
typedef struct kelp_run_sequence {
    uint32_t flags;
    bool is_string;
    uint64_t id;
    kelp_text string;
} kelp_run_sequence;

/* A response of a step, which lives as long as its tensors are used. */
typedef struct kelp_run_value {
    struct kelp_run_value *next; /* in the list of unused ones */
    kelp_response *response;
    uint32_t refs;
    uint32_t batch_size; /* 0: the member does not batch */
    kelp_run_sequence sequence;
} kelp_run_value;

/* The value of a tensor in one iteration. Neither `input` nor `output`: the tensor is absent. */
typedef struct kelp_run_slot {
    bool set;
    uint32_t uses; /* readers that are not over */
    const kelp_input *input;
    const kelp_output *output;
    kelp_run_value *value; /* of `output`; a reference; also of an absent output */
} kelp_run_slot;

/* One iteration of a domain. */
struct kelp_run_frame {
    kelp_run_frame *next;  /* unused, or waiting to be sent */
    uint64_t index;        /* in the output domain */
    uint32_t source;       /* the decoupled step whose response it is, or KELP_FLOW_NONE */
    uint32_t refs;         /* calls, the emission, and the driver */
    uint32_t outputs_left; /* requested outputs that are not set */
    kelp_run_slot *slots;  /* by tensor */
    uint32_t *inputs_left; /* by step: inputs that are not set */
};

/* The events of a call. */
enum { KELP_CALL_FINAL = 1, KELP_CALL_RELEASED = 2, KELP_CALL_OVER = 3 };

/* A request of a step. */
typedef struct kelp_run_call {
    struct kelp_run_call *next;                          /* unused, or in a list of the driver */
    struct kelp_run_call *next_event;                    /* lock */
    struct kelp_run_call *next_active, *previous_active; /* lock */
    kelp_run *run;
    kelp_run_frame *frame; /* a reference */
    uint32_t step;
    unsigned posted; /* lock: events that the driver has not taken */
    unsigned seen;   /* events that the driver has taken */
    unsigned done;   /* events that the driver has processed */
    bool responded;
    uint32_t batch_size; /* of the request */
    kelp_request *request;
    kelp_factory *factory; /* lock: a reference, while it can be cancelled */
    kelp_run_sequence sequence;
} kelp_run_call;

/* A first-in, first-out list of calls. */
typedef struct kelp_call_list {
    kelp_run_call *head, *tail;
} kelp_call_list;

/* A run. */
struct kelp_run {
    kelp_run *next;         /* unused, or postponed */
    kelp_run *next_created; /* of all runs of the ensemble */
    kelp_ensemble *ensemble;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* `backlog` decreased, or the run failed */
    /* ---- guarded by `lock` ---- */
    bool driving;
    kelp_response *first_response, *last_response;
    kelp_run_call *events;
    kelp_run_call *active;
    kelp_factory *factory; /* of the ensemble's request; NULL if the run is over */
    uint32_t *backlog;     /* by decoupled step: responses that are not processed completely */
    bool ending;           /* the run failed: no thread waits */
    /* ---- the driver's ---- */
    bool begun;
    kelp_request *request;
    kelp_model_base **models; /* by step; entered references, or NULL if the step does not run */
    uint32_t *uses;           /* by tensor: inputs of steps that run, and a requested output */
    uint32_t *in_flight;      /* by step */
    kelp_call_list *deferred; /* by step: calls above max_inflight_requests */
    kelp_call_list ready;
    bool *wanted;        /* by tensor: a requested output */
    uint32_t requested;  /* number of requested outputs */
    uint32_t unfinished; /* calls without FINAL */
    uint32_t open;       /* calls that are not over */
    kelp_status *error;
    bool delivered;          /* the final response was sent */
    uint64_t frame_count;    /* of the output domain */
    uint64_t next_index;     /* of the frame to send */
    kelp_run_frame *waiting; /* complete frames that are not sent, ascending by index; references */
    kelp_run_frame *spare_frames;
    kelp_run_call *spare_calls;
    kelp_run_value *spare_values;
    size_t spare_count;
    uint64_t start_ns;
};

/* A buffer of an intermediate tensor. The data follows. */
typedef struct kelp_run_buffer {
    struct kelp_run_buffer *next;
    kelp_ensemble *ensemble;
    size_t capacity_bytes;
    uint32_t link; /* the output of a step */
} kelp_run_buffer;

/* Unused buffers of one output. */
typedef struct kelp_buffer_list {
    kelp_run_buffer *head;
    uint32_t count;
} kelp_buffer_list;

/* An ensemble. */
struct kelp_ensemble {
    kelp_allocator allocator;
    kelp_model_base *model; /* borrowed: it owns the ensemble */
    kelp_flow *flow;
    uint64_t max_in_flight;          /* 0: no limit */
    kelp_response_allocator buffers; /* for the members' responses */
    pthread_mutex_t lock;            /* guards the following */
    kelp_run *spare_runs;
    kelp_run *created_runs;
    kelp_buffer_list *spare_buffers; /* by link */
};

/* ---- pool.c ---- */
/* Returns an unused run, or creates one. */
kelp_status *kelp_run_take(kelp_ensemble *ensemble, kelp_run **out) KELP_MUST_USE;
/* Returns a run that is over to its ensemble. The caller does not use it any more. */
void kelp_run_put(kelp_run *run);
/* Frees a run. */
void kelp_run_free(kelp_run *run);
kelp_status *kelp_run_take_frame(kelp_run *run, uint32_t source,
                                 kelp_run_frame **out) KELP_MUST_USE;
kelp_status *kelp_run_take_call(kelp_run *run, kelp_run_frame *frame, uint32_t step,
                                kelp_run_call **out) KELP_MUST_USE;
void kelp_run_put_call(kelp_run_call *call);
kelp_status *kelp_run_take_value(kelp_run *run, kelp_response *response,
                                 kelp_run_value **out) KELP_MUST_USE;
/* Drops a reference; the last one deletes the response. */
void kelp_run_release_value(kelp_run *run, kelp_run_value *value);
/* Drops a reference to a frame. */
void kelp_run_release_frame(kelp_run *run, kelp_run_frame *frame);
/* Ends one use of a tensor; the last one drops its value. */
void kelp_run_end_use(kelp_run *run, kelp_run_slot *slot);
/* Copies a sequence. */
kelp_status *kelp_run_copy_sequence(kelp_allocator allocator, kelp_run_sequence *to,
                                    const kelp_run_sequence *from) KELP_MUST_USE;

/* ---- buffers.c ---- */
/* Sets the allocator for intermediate tensors. */
void kelp_ensemble_init_buffers(kelp_ensemble *ensemble);
void kelp_ensemble_free_buffers(kelp_ensemble *ensemble);

/* ---- plan.c ---- */
/* Determines the steps that a request needs, and enters their models. */
kelp_status *kelp_run_prepare(kelp_run *run, const kelp_request *request) KELP_MUST_USE;
/* Leaves the models. */
void kelp_run_leave_models(kelp_run *run);
/* Finds and enters the model of a step. The caller leaves and releases it. */
kelp_status *kelp_ensemble_enter_member(kelp_ensemble *ensemble, const kelp_flow_step *step,
                                        kelp_model_base **out) KELP_MUST_USE;

/* ---- step.c ---- */
/* Submits the request of a call. On failure, no event of the call follows. */
kelp_status *kelp_run_start_call(kelp_run_call *call) KELP_MUST_USE;
/* Deletes the released request of a call. */
void kelp_run_delete_request(kelp_run_call *call);
/* Hides the submission from cancellations. */
void kelp_run_unlink_call(kelp_run_call *call);

/* ---- output.c ---- */
/* Creates a response with the requested outputs of a frame. */
kelp_status *kelp_run_create_response(const kelp_run *run, const kelp_run_frame *frame,
                                      kelp_response **out) KELP_MUST_USE;
/* Sends the run's error, or the flag FINAL if it has none. */
void kelp_run_send_end(kelp_run *run);

/* ---- drive.c ---- */
/* Processes a run of which the calling thread became the driver, now or after the callbacks that
 * the thread is in. */
void kelp_run_drive(kelp_run *run);
/* Posts a response of a call, or NULL, and events. */
void kelp_run_post(kelp_run_call *call, kelp_response *take_response, unsigned events);

/* Converts a shape between models with and without batching. `dims` are those of the reader.
 * `out_shape` has KELP_SERVER_MAX_RANK entries; a shape of a higher rank stays as it is. */
void kelp_run_convert_shape(const int64_t *dims, uint32_t dims_rank, bool reader_batches,
                            uint32_t batch_size, const int64_t *shape, uint32_t rank,
                            int64_t *out_shape, uint32_t *out_rank);

#endif
