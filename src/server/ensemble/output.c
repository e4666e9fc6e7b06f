/* SPDX-License-Identifier: Apache-2.0 */
/* The responses of an ensemble. */
#include "base/assert.h"
#include "server/core/log.h"
#include "server/ensemble/run.h"

/* Copies a tensor to the buffer of the client. */
static kelp_status *copy_tensor(const kelp_output *from, kelp_output *to) {
    void *buffer = NULL;
    size_t size_bytes = from->attributes.size_bytes;
    KELP_TRY(kelp_output_allocate(to, size_bytes, from->attributes.memory_type,
                                  from->attributes.memory_type_id, &buffer));
    if (size_bytes == 0 || buffer == NULL) /* the client only measures */
        return NULL;
    if (to->attributes.memory_type == TRITONSERVER_MEMORY_GPU)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "output '%s' of an ensemble cannot be copied to GPU memory",
                          kelp_text_get(&to->name));
    memcpy(buffer, from->buffer, size_bytes);
    return NULL;
}

static kelp_status *add_output(const kelp_run *run, const kelp_run_frame *frame, uint32_t tensor,
                               kelp_response *response) {
    const kelp_config_io *io = run->ensemble->flow->tensors[tensor].output;
    const kelp_run_slot *slot = &frame->slots[tensor];
    kelp_output *output = NULL;
    int64_t shape[KELP_SERVER_MAX_RANK];
    uint32_t rank = 0;
    if (slot->output == NULL) {
        KELP_SERVER_LOG(KELP_LOG_VERBOSE, "Composing models did not output tensor %s", io->name);
        return NULL;
    }
    kelp_run_convert_shape(
        io->has_reshape ? io->reshape : io->dims, io->has_reshape ? io->reshape_rank : io->rank,
        run->ensemble->flow->config->max_batch_size > 0 && !io->is_shape_tensor,
        slot->value->batch_size, slot->output->shape, slot->output->rank, shape, &rank);
    KELP_TRY(
        kelp_response_add_output(response, io->name, slot->output->datatype, shape, rank, &output));
    return copy_tensor(slot->output, output);
}

/* Adds the parameters "sequence_id", "sequence_start" and "sequence_end" of the last step, as
 * Triton does. */
static kelp_status *add_sequence(kelp_response *response, const kelp_run_sequence *sequence) {
    kelp_allocator heap = response->home->allocator;
    kelp_param *param = NULL;
    if (sequence->is_string) {
        KELP_TRY(kelp_params_add_string(heap, &response->params, "sequence_id",
                                        kelp_text_get(&sequence->string)));
    } else {
        KELP_TRY(kelp_params_add(heap, &response->params, "sequence_id", TRITONSERVER_PARAMETER_INT,
                                 &param));
        param->i64 = (int64_t)sequence->id;
    }
    KELP_TRY(kelp_params_add(heap, &response->params, "sequence_start", TRITONSERVER_PARAMETER_BOOL,
                             &param));
    param->boolean = (sequence->flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START) != 0;
    KELP_TRY(kelp_params_add(heap, &response->params, "sequence_end", TRITONSERVER_PARAMETER_BOOL,
                             &param));
    param->boolean = (sequence->flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END) != 0;
    return NULL;
}

static kelp_status *fill_response(const kelp_run *run, const kelp_run_frame *frame,
                                  kelp_response *response) {
    const kelp_flow *flow = run->ensemble->flow;
    const kelp_run_sequence *sequence = NULL;
    for (size_t i = 0; i < flow->config->output_count; i++) {
        uint32_t tensor = flow->outputs[i];
        if (!run->wanted[tensor])
            continue;
        KELP_ASSERT(frame->slots[tensor].value != NULL);
        KELP_TRY(add_output(run, frame, tensor, response));
        sequence = &frame->slots[tensor].value->sequence;
    }
    return sequence != NULL ? add_sequence(response, sequence) : NULL;
}

kelp_status *kelp_run_create_response(const kelp_run *run, const kelp_run_frame *frame,
                                      kelp_response **out) {
    kelp_response *response = NULL;
    KELP_TRY(kelp_response_create(run->request->factory, &response));
    kelp_status *status = fill_response(run, frame, response);
    if (status != NULL)
        kelp_response_delete(response);
    else
        *out = response;
    return status;
}

void kelp_run_send_end(kelp_run *run) {
    kelp_factory *factory = run->request->factory;
    kelp_response *response = NULL;
    kelp_status *status;
    if (run->error == NULL) {
        status = kelp_factory_send_flags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL);
    } else {
        status = kelp_response_create(factory, &response);
        if (status == NULL)
            status = kelp_response_send(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, run->error);
    }
    /* If this failed, the factory sends an error when the request is released. */
    kelp_server_log_status("cannot send the final response of an ensemble", status);
}
