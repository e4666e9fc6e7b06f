/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of TRITONSERVER_InferenceRequest that fill in a request, without a server. They
 * replace those of the library in the program that contains them, and record their arguments. */
#ifndef KELP_TESTS_FAKE_REQUEST_H_
#define KELP_TESTS_FAKE_REQUEST_H_

#include <triton/core/tritonserver.h>

#define FAKE_MAX_ITEMS 16
#define FAKE_MAX_RANK 8
#define FAKE_MAX_TEXT 64

/* What a request received; further items are counted only. Texts are cut off. */
typedef struct fake_request {
    char id[FAKE_MAX_TEXT], correlation_text[FAKE_MAX_TEXT];
    uint64_t correlation, priority, timeout_us;
    uint32_t flags;
    size_t input_count, output_count, parameter_count;
    struct {
        char name[FAKE_MAX_TEXT];
        TRITONSERVER_DataType type;
        int64_t shape[FAKE_MAX_RANK];
        uint64_t rank;
        const void *data;
        size_t size_bytes;
    } inputs[FAKE_MAX_ITEMS];
    char outputs[FAKE_MAX_ITEMS][FAKE_MAX_TEXT];
    struct {
        char name[FAKE_MAX_TEXT], text[FAKE_MAX_TEXT];
        TRITONSERVER_ParameterType type;
        int64_t i64;
        double f64;
    } parameters[FAKE_MAX_ITEMS];
    uint64_t checksum; /* of all bytes of inputs */
} fake_request;

/* Returns the request as the API's type. */
static inline TRITONSERVER_InferenceRequest *fake_handle(fake_request *request) {
    return (TRITONSERVER_InferenceRequest *)(void *)request;
}

#endif
