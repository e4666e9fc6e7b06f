/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of the server to requests: the first member of kelp_server. Models hold references
 * to it, so that requests and responses may outlive the server's handle.
 */
#ifndef KELP_SERVER_REQUEST_HOST_H_
#define KELP_SERVER_REQUEST_HOST_H_

#include "server/request/pool.h"

typedef struct kelp_model_base kelp_model_base;
typedef struct kelp_request_host kelp_request_host;

/* The functions that the server implements. Thread-safe. */
typedef struct kelp_request_host_ops {
    void (*retain)(kelp_request_host *host);
    void (*release)(kelp_request_host *host);
    /* Returns UNAVAILABLE unless the server accepts requests. */
    kelp_status *(*check_ready)(const kelp_request_host *host);
    /* Returns a reference to the model that replaced `retired` as `version` (-1: the latest). */
    kelp_status *(*find_successor)(kelp_request_host *host, const kelp_model_base *retired,
                                   int64_t version, kelp_model_base **out);
    /* Returns a reference to a model that serves, or to its latest version (-1). The name may be
     * "NAMESPACE::NAME". */
    kelp_status *(*find_model)(kelp_request_host *host, const char *name, int64_t version,
                               kelp_model_base **out);
    /* Takes a retired model without submissions, to finalize it on another thread. */
    void (*reap)(kelp_request_host *host, kelp_model_base *model);
} kelp_request_host_ops;

/* The part of the server that requests use. */
struct kelp_request_host {
    kelp_request_pools pools; /* first: its alignment is the largest */
    const kelp_request_host_ops *ops;
    kelp_allocator allocator;
};

#endif
