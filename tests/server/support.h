/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the server's tests share: a model repository in a temporary directory, a server
 * with it, and synchronous requests. They use only the public C API. A failure ends the test with
 * the API's message.
 */
#ifndef KELP_TESTS_SERVER_SUPPORT_H_
#define KELP_TESTS_SERVER_SUPPORT_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <triton/core/tritonserver.h>

/* ---- repository ---- */
typedef struct repo {
    char path[256];
} repo;
void repo_make(repo *r);
void repo_remove(repo *r);
/* Creates REPO/NAME/config.pbtxt (unless config is NULL) and the directory REPO/NAME/1. */
void repo_model(const repo *r, const char *name, const char *config);
void repo_version(const repo *r, const char *name, const char *version);
/* a file in the repository, relative to it */
void repo_file(const repo *r, const char *path, const char *text);
void repo_drop(const repo *r,
               const char *path); /* removes a file or a directory with its contents */

/* addsub: FP32 [16], max_batch_size 8 */
extern const char addsub_config[];
/* identity over INT32 [-1] and BYTES [-1] */
extern const char identity_config[];

/* ---- server ---- */
typedef struct server_setup {
    TRITONSERVER_ModelControlMode mode;
    const char *startup[4];
    bool keep_on_error;      /* exit_on_error off */
    bool complete;           /* strict_model_config off */
    unsigned exit_timeout_s; /* 0: the default */
    const char *backends;    /* NULL: the backends of this build */
    const char *cache;       /* NULL: none */
    const char *cache_config;
    const char *caches; /* a directory; NULL: that of the backends for tests */
    const char *agents; /* a directory; NULL: the default */
    const char *second_repository;
    const char *backend_setting[3]; /* backend, setting, value */
    const char *metrics_setting[4][2];
    bool namespaces;
    const char *host_policy[3]; /* policy, setting, value */
    bool rate_limit;            /* TRITONSERVER_RATE_LIMIT_EXEC_COUNT */
    const char *rate_resource;  /* on all devices, or NULL */
    size_t rate_count;
} server_setup;
TRITONSERVER_Error *server_try(const repo *r, const server_setup *setup, TRITONSERVER_Server **out);
TRITONSERVER_Server *server_start(const repo *r, const server_setup *setup);
void server_end(TRITONSERVER_Server *server); /* deletes the server, which must succeed */

/* Asserts success; otherwise prints the message. */
void ok(TRITONSERVER_Error *error);
/* Asserts a failure of that code whose message contains `text`, and deletes it. */
void fails(TRITONSERVER_Error *error, TRITONSERVER_Error_Code code, const char *text);
/* Deletes a message and returns its text; free it. */
char *message_text(TRITONSERVER_Message *message);
/* Returns the page of metrics; free it. */
char *metrics_of(TRITONSERVER_Server *server);
/* Asserts that `text` contains `part`. */
void contains(const char *text, const char *part);
/* Returns the number after the first `key` in `text`, or -1. */
long long number_after(const char *text, const char *key);

/* ---- one request ---- */
typedef struct call {
    TRITONSERVER_Server *server;
    TRITONSERVER_InferenceRequest *request;
    TRITONSERVER_ResponseAllocator *allocator;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    TRITONSERVER_InferenceResponse *response; /* the latest one */
    unsigned responses;                       /* not counting NULL */
    unsigned finals;
    unsigned releases;
    unsigned starts, allocations, frees; /* of the allocator */
    bool fail_allocation;
    bool no_buffers;                   /* the allocator succeeds with NULL */
    TRITONSERVER_MemoryType requested; /* by the latest allocation */
    TRITONSERVER_MemoryType memory;    /* of outputs, as the allocator pretends */
    int64_t memory_id;
} call;

void call_init(call *c, TRITONSERVER_Server *server, const char *model, int64_t version);
/* Deletes everything. The request is not in flight. */
void call_deinit(call *c);
/* Submits the request, which must succeed. */
void call_start(call *c);
/* Waits until the request is released and FINAL was received. */
void call_wait(call *c);
void call_run(call *c);
/* Deletes the latest response, so that the request can be submitted again. */
void call_clear(call *c);
void call_input(call *c, const char *name, TRITONSERVER_DataType type, const int64_t *shape,
                uint64_t rank, const void *data, size_t size_bytes);
/* Asserts success and returns an output by name. */
const void *call_output(call *c, const char *name, size_t *out_size_bytes);
/* Asserts that the response is an error whose message contains `text`. */
void call_fails(call *c, TRITONSERVER_Error_Code code, const char *text);
/* Prepares a request to a model with addsub_config, with `value` and 1 as inputs. The arrays
 * must outlive the request. */
void call_addsub(call *c, float *a, float *b, float value);

/* Waits, at most 10 s, until the server's index contains `text`. */
void wait_for_index(TRITONSERVER_Server *server, const char *text);
/* Waits until the index has no model of a name. */
void wait_until_unlisted(TRITONSERVER_Server *server, const char *name);

/* ---- a repository and a server over it, as the state of a test ---- */
typedef struct world {
    repo r;
    TRITONSERVER_Server *server;
} world;
world *world_new(void);                                  /* an empty repository without a server */
int world_open(void **state, const server_setup *setup); /* set-up function; returns 0 */
int world_close(void **state);                           /* tear-down function; returns 0 */
/* Creates a model with repo_model and loads it, which must succeed. */
void world_load(world *w, const char *name, const char *config);
/* Unloads a model, and waits until version 1 is unavailable. */
void world_unload(world *w, const char *name);

#endif
