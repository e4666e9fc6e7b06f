/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes the message ModelInferResponse. Outputs are in raw_output_contents, and are sent from the
 * memory that the model wrote. */
#ifndef KELP_FRONTENDS_GRPC_CODEC_INFER_RESPONSE_H_
#define KELP_FRONTENDS_GRPC_CODEC_INFER_RESPONSE_H_

#include "frontends/grpc/codec/infer_request.h"
#include "frontends/grpc/codec/message.h"

/* What the encoding of a response depends on. */
typedef struct kelp_grpc_response_options {
    TRITONSERVER_Server *core;
    const kelp_grpc_infer_request *request;
    bool streamed; /* add the parameter triton_final_response */
    bool final;    /* its value */
} kelp_grpc_response_options;

/* Appends the fields of a response to a message that has begun. Fails with the error of the
 * response, if it has one. The response and the arena must live until the message is sent. */
kelp_status *kelp_grpc_put_response(kelp_grpc_message *message, kelp_arena *arena,
                                    const kelp_grpc_response_options *options,
                                    TRITONSERVER_InferenceResponse *response) KELP_MUST_USE;
/* Appends the fields of a response without outputs, which ends the responses of a request. */
void kelp_grpc_put_empty_response(kelp_grpc_message *message,
                                  const kelp_grpc_response_options *options);

#endif
