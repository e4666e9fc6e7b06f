/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/server.h: functions that Kelp's libtritonserver.so adds to Triton's in-process API
 * (triton/core/tritonserver.h). NVIDIA's library does not have them; a program that runs with both
 * looks them up with dlsym.
 */
#ifndef KELP_SERVER_H_
#define KELP_SERVER_H_

#include <triton/core/tritonserver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the error of TRITONSERVER_ServerInferAsync for a full queue (UNAVAILABLE) if the queue of
 * the request's model is full at this moment, and counts the request as rejected. A front end calls
 * it before it decodes a large request, so that rejecting the request costs little. Otherwise
 * returns NULL, also for models that batch sequences, cache responses or are ensembles, and for
 * queues with limits for priority levels: TRITONSERVER_ServerInferAsync then decides. The request
 * needs no inputs, and is not changed. Returns INVALID_ARG for NULL and INTERNAL for a deleted
 * request. Thread-safe for different requests. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
KELP_InferenceRequestCheckQueue(TRITONSERVER_InferenceRequest *request);

#ifdef __cplusplus
}
#endif

#endif
