/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data flow of an ensemble: its steps, and the tensors between them. Built from the
 * configuration when the ensemble is loaded, then immutable except for kelp_flow_step.checked.
 */
#ifndef KELP_SERVER_ENSEMBLE_FLOW_H_
#define KELP_SERVER_ENSEMBLE_FLOW_H_

#include "server/config/reshape.h"
#include "server/request/model_base.h"

#define KELP_FLOW_NONE UINT32_MAX

/* A tensor of a step's model, and the ensemble tensor that it is mapped to. */
typedef struct kelp_flow_link {
    const char *name;
    uint32_t tensor;
    uint32_t id; /* of an output: unique in the ensemble */
} kelp_flow_link;

/* A step. */
typedef struct kelp_flow_step {
    const char *model_name;
    const char *lookup_name; /* with the namespace, if the step has one */
    const char *near_name;   /* in the namespace of the ensemble: preferred; may be NULL */
    int64_t version;         /* -1: the latest */
    kelp_flow_link *inputs;
    uint32_t input_count;
    kelp_flow_link *outputs;
    uint32_t output_count;
    bool decoupled;        /* the model was decoupled at the first check */
    uint32_t domain;       /* of the outputs */
    atomic_ullong checked; /* the serial number of the latest model that passed the check */
} kelp_flow_step;

/* A tensor of the ensemble. */
typedef struct kelp_flow_tensor {
    const char *name;
    const kelp_config_io *input;  /* the input of the ensemble, or NULL */
    const kelp_config_io *output; /* the output of the ensemble, or NULL */
    uint32_t producer;            /* a step, or KELP_FLOW_NONE for an input */
    uint32_t producer_link;       /* the output of that step */
    uint32_t *consumers;          /* steps, one element for each input that is mapped to it */
    uint32_t consumer_count;
    uint32_t domain;
} kelp_flow_tensor;

/* The data flow. Each decoupled step starts a domain: its tensors have one value for each response
 * of the step. Domain 0 has the values of the request. All inputs of a step are in one domain. */
typedef struct kelp_flow {
    kelp_arena arena;
    const char *name;                /* of the ensemble */
    const kelp_model_config *config; /* of the ensemble, borrowed */
    kelp_flow_step *steps;           /* in the order of the configuration */
    uint32_t step_count;
    uint32_t *order; /* steps in an order in which they can run */
    kelp_flow_tensor *tensors;
    uint32_t tensor_count;
    uint32_t *inputs;  /* tensors of the ensemble's inputs */
    uint32_t *outputs; /* tensors of the ensemble's outputs */
    uint32_t link_count;
    uint32_t output_domain; /* of the ensemble's outputs; not 0 if the ensemble is decoupled */
} kelp_flow;

/* Builds the flow of an ensemble, which is borrowed. */
kelp_status *kelp_flow_create(const kelp_model_base *ensemble, kelp_flow **out) KELP_MUST_USE;
void kelp_flow_destroy(kelp_flow *flow);

/* Checks that the models of all steps fit together; `models` has an element for each step. Computes
 * the domains if `first`; otherwise checks that no model became decoupled, or ceased to be. */
kelp_status *kelp_flow_check(kelp_flow *flow, kelp_model_base *const *models,
                             bool first) KELP_MUST_USE;

/* Appends the path from an input of the ensemble to a step: "'IN' -> step[0] 'a' -> 'X' -> …". */
void kelp_flow_write_path(const kelp_flow *flow, uint32_t step, kelp_buf *out);
/* Returns true if two shapes of dimensions match; -1 matches every size. */
bool kelp_flow_dims_match(const int64_t *a, uint32_t a_rank, const int64_t *b, uint32_t b_rank);

#endif
