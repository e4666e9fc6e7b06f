/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenAPI description of the endpoints that the server provides.
 *
 * openapi.json describes the operation of each route. The description of a server contains those
 * that it provides, with what all operations share: parameters of the path, responses to requests
 * that are rejected before they are processed, and what access requires. It is built once.
 */
#ifndef KELP_FRONTENDS_V2_OPENAPI_H_
#define KELP_FRONTENDS_V2_OPENAPI_H_

#include "base/buf.h"
#include "frontends/common/access.h"

/* openapi.json, which tools/embed_files.py writes as an array. */
extern const unsigned char kelp_openapi_json[];
extern const size_t kelp_openapi_json_bytes;

typedef struct kelp_openapi kelp_openapi;

/* What the server provides, in addition to the services of an endpoint. */
typedef struct kelp_openapi_options {
    kelp_str version;          /* of the server */
    const kelp_access *access; /* may be NULL; borrowed for the call */
    bool logging, tracing;     /* the extensions */
    bool shm;                  /* the status of shared memory */
    bool register_shm;         /* clients may register shared memory */
    bool load_models;          /* clients may load and unload models */
    kelp_allocator allocator;
} kelp_openapi_options;

/* Builds the description. */
kelp_status *kelp_openapi_create(const kelp_openapi_options *options,
                                 kelp_openapi **out) KELP_MUST_USE;
void kelp_openapi_destroy(kelp_openapi *openapi); /* NULL is allowed */

/* Returns a part of the description for an endpoint with these services, which lives as long as
 * `openapi`. *inout_part is 0 for the first part; returns false after the last one. Thread-safe. */
bool kelp_openapi_next(const kelp_openapi *openapi, uint32_t services, size_t *inout_part,
                       kelp_str *out);

#endif
