/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules for requests of one batch: inputs with dynamic dimensions have equal shapes unless they
 * are ragged (`allow_ragged_batch`), shape tensors have equal shapes and contents, and of optional
 * inputs, either all requests have one or none. Immutable after creation.
 */
#ifndef KELP_SERVER_SCHEDULER_JOIN_H_
#define KELP_SERVER_SCHEDULER_JOIN_H_

#include "server/request/request.h"

/* An input that is compared. */
typedef struct kelp_join_input {
    const char *name; /* of the configuration */
    bool same_shape;
    bool same_contents;
} kelp_join_input;

/* The rules of a model. */
typedef struct kelp_join_rules {
    kelp_join_input *inputs;
    size_t count;
    size_t capacity;
} kelp_join_rules;

/* Initializes the rules. The configuration is borrowed. */
kelp_status *kelp_join_rules_init(kelp_join_rules *rules, kelp_allocator allocator,
                                  const kelp_model_config *config) KELP_MUST_USE;
void kelp_join_rules_deinit(kelp_join_rules *rules, kelp_allocator allocator);
/* Returns true if two requests may be in one batch. */
bool kelp_join_rules_allow(const kelp_join_rules *rules, const kelp_request *a,
                           const kelp_request *b);

#endif
