/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models with ragged batches: inputs with `allow_ragged_batch` are concatenated to one dimension,
 * `batch_input` adds inputs that describe the requests of the batch, and `batch_output` splits
 * outputs by the shapes of an input. All requests of a batch run as one inference.
 */
#ifndef KELP_BACKENDS_KELP_RAGGED_H_
#define KELP_BACKENDS_KELP_RAGGED_H_

#include <kelp/backend.h>
#include <kelp/compute.h>

/* The values of an input of the model. */
typedef enum kelp_ragged_kind {
    KELP_RAGGED_ROWS,      /* of the requests, concatenated along the batch dimension */
    KELP_RAGGED_FLAT,      /* of the requests, concatenated to one dimension */
    KELP_RAGGED_COUNT,     /* BATCH_ELEMENT_COUNT */
    KELP_RAGGED_SUM,       /* BATCH_ACCUMULATED_ELEMENT_COUNT */
    KELP_RAGGED_SUM_ZERO,  /* BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO */
    KELP_RAGGED_MAXIMUM,   /* BATCH_MAX_ELEMENT_COUNT_AS_SHAPE */
    KELP_RAGGED_SHAPE,     /* BATCH_ITEM_SHAPE */
    KELP_RAGGED_SHAPE_FLAT /* BATCH_ITEM_SHAPE_FLATTEN */
} kelp_ragged_kind;

/* An input of the model. */
typedef struct kelp_ragged_input {
    kelp_ragged_kind kind;
    size_t source; /* kinds from KELP_RAGGED_COUNT on: the described input of the model */
} kelp_ragged_input;

/* The batches of a model. Immutable; shared by its instances. */
typedef struct kelp_ragged {
    kelp_ragged_input *inputs; /* by input of the model; NULL: the model has no ragged batches */
    size_t *scatter_like;      /* by output of the model: an input, or SIZE_MAX */
} kelp_ragged;

/* Memory for the joined inputs of an instance. */
typedef struct kelp_ragged_buffers {
    kelp_tensor *inputs, *outputs;
    void **memory; /* by input */
    size_t *capacity_bytes;
    size_t input_count;
} kelp_ragged_buffers;

/* Returns true if the model's configuration has ragged inputs, `batch_input` or `batch_output`. */
bool kelp_ragged_is_configured(const kelp_backend_model *model);
/* Returns true if the dims of an input or output of the configuration are those of one request. */
bool kelp_ragged_has_own_shape(const kelp_backend_model *model, const kelp_backend_value *tensor,
                               const char *name);
/* Reads the configuration, if it has any of these. INVALID_ARGUMENT if a name is not in the model,
 * or an input has another type. On failure, the caller still deinitializes `out`. */
kelp_status *kelp_ragged_init(kelp_ragged *out, const kelp_backend_model *model,
                              const kelp_compute_metadata *metadata) KELP_MUST_USE;
void kelp_ragged_deinit(kelp_ragged *ragged);

/* Allocates memory that grows with the batches. On failure, the caller still deinitializes it. */
kelp_status *kelp_ragged_buffers_init(kelp_ragged_buffers *out,
                                      const kelp_compute_metadata *metadata) KELP_MUST_USE;
void kelp_ragged_buffers_deinit(kelp_ragged_buffers *buffers);

/* Runs items as one inference. The inputs of a kind that describes the requests are not read from
 * the items. Sets the outputs of the items to parts of the model's memory. */
kelp_status *kelp_ragged_infer(const kelp_ragged *ragged, kelp_ragged_buffers *buffers,
                               kelp_compute_model *model, kelp_infer_item *items,
                               size_t count) KELP_MUST_USE;

#endif
