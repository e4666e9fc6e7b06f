/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server's tests share: a model repository in a temporary folder, a server over it, and
 * requests that are waited for. Everything goes through the public C API. Failures of the set-up
 * end the test with the API's own message.
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
/* REPO/NAME/config.pbtxt (none when config is NULL) and the folder REPO/NAME/1 */
void repo_model(const repo *r, const char *name, const char *config);
void repo_version(const repo *r, const char *name, const char *version);
/* a file in the repository, relative to it */
void repo_file(const repo *r, const char *path, const char *text);
void repo_drop(const repo *r, const char *path); /* a folder or file, with all in it */

/* a configuration of addsub: FP32 [16], batches of 8 */
extern const char addsub_config[];
/* identity over INT32 [-1] and BYTES [-1] */
extern const char identity_config[];

/* ---- server ---- */
typedef struct server_setup {
    TRITONSERVER_ModelControlMode mode;
    const char *startup[4];
    bool keep_on_error;      /* exit_on_error off */
    bool complete;           /* strict_model_config off */
    unsigned exit_timeout_s; /* 0: 30 */
    const char *backends;    /* NULL: those of this build */
    const char *cache;       /* NULL: none */
    const char *cache_config;
    const char *caches; /* folder; NULL: the usual one */
    const char *agents; /* folder; NULL: the usual one */
    const char *second_repository;
    const char *backend_setting[3]; /* backend, setting, value */
    const char *metrics_setting[4][2];
    bool namespaces;
} server_setup;
TRITONSERVER_Error *server_try(const repo *r, const server_setup *setup, TRITONSERVER_Server **out);
TRITONSERVER_Server *server_start(const repo *r, const server_setup *setup);
void server_end(TRITONSERVER_Server *server); /* deletes; must succeed */

/* Asserts success; prints the message otherwise. */
void ok(TRITONSERVER_Error *error);
/* Asserts a failure of that code whose message contains `text`, and deletes it. */
void fails(TRITONSERVER_Error *error, TRITONSERVER_Error_Code code, const char *text);
/* The text of a message, which is deleted. Free it. */
char *message_text(TRITONSERVER_Message *message);
/* The page that a monitor reads. Free it. */
char *metrics_of(TRITONSERVER_Server *server);
/* Asserts that `text` contains `part`. */
void contains(const char *text, const char *part);
/* The number that follows the first `key` in `text`; -1 when it is not there. */
long long number_after(const char *text, const char *key);

/* ---- one request ---- */
typedef struct call {
    TRITONSERVER_Server *server;
    TRITONSERVER_InferenceRequest *request;
    TRITONSERVER_ResponseAllocator *allocator;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    TRITONSERVER_InferenceResponse *response; /* the last that came */
    unsigned responses;                       /* that were not NULL */
    unsigned finals;
    unsigned releases;
    unsigned starts, allocations, frees; /* of the allocator */
    bool refuse_allocation;
} call;

void call_init(call *c, TRITONSERVER_Server *server, const char *model, int64_t version);
/* Waits for what is under way, then deletes everything. */
void call_deinit(call *c);
/* Submits; asserts that it is taken. */
void call_start(call *c);
/* Until it is released and FINAL came. */
void call_wait(call *c);
void call_run(call *c);
/* Forgets the last answer, so that the request can be submitted again. */
void call_clear(call *c);
void call_input(call *c, const char *name, TRITONSERVER_DataType type, const int64_t *shape,
                uint64_t rank, const void *data, size_t size_bytes);
/* Asserts success and gives the output of that name. */
const void *call_output(call *c, const char *name, size_t *out_size_bytes);
/* Asserts that the response carries an error with that text. */
void call_fails(call *c, TRITONSERVER_Error_Code code, const char *text);
/* The usual request to a model of addsub_config, filled with `value` and 1. The arrays must outlive
 * the call. */
void call_addsub(call *c, float *a, float *b, float value);

/* Waits (10 s at most) until the index of the server shows `text`. */
void wait_for_index(TRITONSERVER_Server *server, const char *text);

/* ---- a repository and a server over it, as the state of a test ---- */
typedef struct world {
    repo r;
    TRITONSERVER_Server *server;
} world;
world *world_new(void);                                  /* an empty repository, no server yet */
int world_open(void **state, const server_setup *setup); /* for a set-up: 0 */
int world_close(void **state);                           /* for a tear-down: 0 */
/* repo_model and the load of it, which must succeed */
void world_load(world *w, const char *name, const char *config);
/* Unloads, and waits until version 1 is gone. */
void world_unload(world *w, const char *name);

#endif
