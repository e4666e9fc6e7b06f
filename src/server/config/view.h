/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and types that the files of this directory share. */
#ifndef KELP_SERVER_CONFIG_VIEW_H_
#define KELP_SERVER_CONFIG_VIEW_H_

#include "server/config/config.h"
#include "server/config/schema.h"

/* The fields of instance groups that the configuration itself sets, as opposed to defaults. */
typedef struct kelp_config_explicit {
    bool groups;  /* the configuration has instance groups */
    size_t count; /* of them */
    bool *kind;   /* the group has a kind; one element for each group */
    bool *number; /* the group has a count */
} kelp_config_explicit;

/* Fills the typed view from config->tree. */
kelp_status *kelp_config_view(kelp_model_config *config,
                              const kelp_config_explicit *explicit) KELP_MUST_USE;
/* Checks the fields that are set; with `complete` also that no required field is missing. */
kelp_status *kelp_config_check(const kelp_model_config *config, bool complete) KELP_MUST_USE;
/* Fills the typed view of `sequence_batching`. */
kelp_status *kelp_config_view_sequence(kelp_model_config *config,
                                       const kelp_config_message *from) KELP_MUST_USE;
/* Checks `sequence_batching` against the other fields. */
kelp_status *kelp_config_check_sequence(const kelp_model_config *config) KELP_MUST_USE;
/* Checks `batch_input` and `batch_output` of a configuration whose inputs and outputs are known. */
kelp_status *kelp_config_check_batch_io(const kelp_model_config *config) KELP_MUST_USE;
/* Fills in backend, platform, model file name and all other defaults. */
kelp_status *kelp_config_fill(kelp_model_config *config, const kelp_config_load_options *options,
                              kelp_config_explicit *out_explicit) KELP_MUST_USE;

/* Returns the text of a field: "" if it is unset, NULL if memory is exhausted. `message` may be
 * NULL in this and the following functions. */
const char *kelp_config_text(kelp_arena *arena, const kelp_config_message *message,
                             const char *field);
/* Returns the number of a field; 0 if it is unset. */
int64_t kelp_config_number(const kelp_config_message *message, const char *field);
/* Returns the number of values of a field. */
size_t kelp_config_count(const kelp_config_value *value);
/* Copies the numbers of a field into an array of the arena; false if memory is exhausted. */
bool kelp_config_copy_i64s(kelp_arena *arena, const kelp_config_value *value, const int64_t **out,
                           size_t *out_count);
/* Returns the message of a field; NULL if it is unset. */
kelp_config_message *kelp_config_sub(const kelp_config_message *message, const char *field);

#endif
