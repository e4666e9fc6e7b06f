/* SPDX-License-Identifier: Apache-2.0 */
/* The records of the backend "probe" about its latest calls. */
#ifndef KELP_TESTS_SERVER_PROBE_BACKEND_H_
#define KELP_TESTS_SERVER_PROBE_BACKEND_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <triton/core/tritonbackend.h>

typedef struct probe_notes {
    char backend_config[2048], artifacts[512], host_policy[512], instance[64];
    bool auto_complete;
    unsigned models, instances, passive;
    atomic_uint ended; /* instances that were finalized */
    atomic_uint held;  /* executions of the instance "held", which wait for let_go */
    atomic_bool let_go;
    pthread_t initialize_thread, execute_thread, finalize_thread;
    char reload[256]; /* the result of loading itself during an execution */
    TRITONBACKEND_Request *request;
    TRITONBACKEND_Response *response;
    char id[64], parameters[256], outputs[256];
    uint64_t correlation, timeout_us;
    uint32_t flags, inputs;
    TRITONSERVER_MemoryType preferred; /* of OUTPUT0 */
    int64_t preferred_id;
    char preferred_error[128];
    TRITONSERVER_DataType datatype; /* shape, size and data of INPUT0 */
    int64_t shape[8];
    uint32_t rank, buffers;
    uint64_t size_bytes, length;
    char data[1024];
} probe_notes;

#endif
