/* SPDX-License-Identifier: Apache-2.0 */
/* See support.h. */
#include "server/support.h"

#include <ftw.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char addsub_config[] = "backend: \"addsub\"\nmax_batch_size: 8\n"
                             "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 16 ] },\n"
                             "        { name: \"INPUT1\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n"
                             "output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 16 ] },\n"
                             "         { name: \"OUTPUT1\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n"
                             "instance_group [ { kind: KIND_CPU count: 1 } ]\n";

const char identity_config[] =
    "backend: \"identity\"\n"
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] optional: true },\n"
    "        { name: \"INPUT1\" data_type: TYPE_STRING dims: [ -1 ] optional: true } ]\n"
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] },\n"
    "         { name: \"OUTPUT1\" data_type: TYPE_STRING dims: [ -1 ] } ]\n"
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n";

/* ---- repository ---- */

void repo_make(repo *r) {
    snprintf(r->path, sizeof r->path, "/tmp/kelp-test-repo-XXXXXX");
    assert_non_null(mkdtemp(r->path));
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

void repo_remove(repo *r) {
    nftw(r->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void repo_drop(const repo *r, const char *path) {
    char full[1024];
    snprintf(full, sizeof full, "%s/%s", r->path, path);
    nftw(full, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void repo_file(const repo *r, const char *path, const char *text) {
    char full[1024];
    snprintf(full, sizeof full, "%s/%s", r->path, path);
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

void repo_version(const repo *r, const char *name, const char *version) {
    char full[1024];
    snprintf(full, sizeof full, "%s/%s/%s", r->path, name, version);
    mkdir(full, 0755);
}

void repo_model(const repo *r, const char *name, const char *config) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", r->path, name);
    mkdir(path, 0755);
    repo_version(r, name, "1");
    if (config) {
        snprintf(path, sizeof path, "%s/config.pbtxt", name);
        repo_file(r, path, config);
    }
}

/* ---- results ---- */

void ok(TRITONSERVER_Error *error) {
    if (error)
        fail_msg("%s: %s", TRITONSERVER_ErrorCodeString(error), TRITONSERVER_ErrorMessage(error));
}

void fails(TRITONSERVER_Error *error, TRITONSERVER_Error_Code code, const char *text) {
    assert_non_null(error);
    if (TRITONSERVER_ErrorCode(error) != code || !strstr(TRITONSERVER_ErrorMessage(error), text))
        fail_msg("expected code %d with '%s', got %d: %s", (int)code, text,
                 (int)TRITONSERVER_ErrorCode(error), TRITONSERVER_ErrorMessage(error));
    TRITONSERVER_ErrorDelete(error);
}

char *message_text(TRITONSERVER_Message *message) {
    const char *base = NULL;
    size_t length = 0;
    ok(TRITONSERVER_MessageSerializeToJson(message, &base, &length));
    char *text = strndup(base, length);
    ok(TRITONSERVER_MessageDelete(message));
    return text;
}

void contains(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("expected '%s' in: %s", part, text);
}

char *metrics_of(TRITONSERVER_Server *server) {
    TRITONSERVER_Metrics *metrics = NULL;
    const char *base = NULL;
    size_t size = 0;
    ok(TRITONSERVER_ServerMetrics(server, &metrics));
    ok(TRITONSERVER_MetricsFormatted(metrics, TRITONSERVER_METRIC_PROMETHEUS, &base, &size));
    char *page = strndup(base, size);
    ok(TRITONSERVER_MetricsDelete(metrics));
    return page;
}

long long number_after(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

/* ---- server ---- */

TRITONSERVER_Error *server_try(const repo *r, const server_setup *setup,
                               TRITONSERVER_Server **out) {
    TRITONSERVER_ServerOptions *options = NULL;
    ok(TRITONSERVER_ServerOptionsNew(&options));
    ok(TRITONSERVER_ServerOptionsSetLogInfo(options, false));
    ok(TRITONSERVER_ServerOptionsSetLogWarn(options, false));
    ok(TRITONSERVER_ServerOptionsSetLogError(options, getenv("KELP_TEST_LOG") != NULL));
    ok(TRITONSERVER_ServerOptionsSetModelRepositoryPath(options, r->path));
    ok(TRITONSERVER_ServerOptionsSetModelControlMode(options, setup->mode));
    ok(TRITONSERVER_ServerOptionsSetBackendDirectory(options, setup->backends ? setup->backends
                                                                              : KELP_BACKENDS));
    ok(TRITONSERVER_ServerOptionsSetExitOnError(options, !setup->keep_on_error));
    ok(TRITONSERVER_ServerOptionsSetStrictModelConfig(options, !setup->complete));
    if (setup->backend_setting[0])
        ok(TRITONSERVER_ServerOptionsSetBackendConfig(options, setup->backend_setting[0],
                                                      setup->backend_setting[1],
                                                      setup->backend_setting[2]));
    for (int i = 0; i < 4 && setup->metrics_setting[i][0]; i++)
        ok(TRITONSERVER_ServerOptionsSetMetricsConfig(options, "", setup->metrics_setting[i][0],
                                                      setup->metrics_setting[i][1]));
    if (setup->second_repository)
        ok(TRITONSERVER_ServerOptionsSetModelRepositoryPath(options, setup->second_repository));
    ok(TRITONSERVER_ServerOptionsSetModelNamespacing(options, setup->namespaces));
    if (setup->cache)
        ok(TRITONSERVER_ServerOptionsSetCacheConfig(options, setup->cache, setup->cache_config));
    /* Not the default directory, where this machine may have a cache "local". */
    ok(TRITONSERVER_ServerOptionsSetCacheDirectory(options, setup->caches ? setup->caches
                                                                          : KELP_TEST_BACKENDS));
    if (setup->agents)
        ok(TRITONSERVER_ServerOptionsSetRepoAgentDirectory(options, setup->agents));
    if (setup->host_policy[0])
        ok(TRITONSERVER_ServerOptionsSetHostPolicy(options, setup->host_policy[0],
                                                   setup->host_policy[1], setup->host_policy[2]));
    if (setup->rate_limit)
        ok(TRITONSERVER_ServerOptionsSetRateLimiterMode(options,
                                                        TRITONSERVER_RATE_LIMIT_EXEC_COUNT));
    if (setup->rate_resource)
        ok(TRITONSERVER_ServerOptionsAddRateLimiterResource(options, setup->rate_resource,
                                                            setup->rate_count, -1));
    if (setup->exit_timeout_s)
        ok(TRITONSERVER_ServerOptionsSetExitTimeout(options, setup->exit_timeout_s));
    for (size_t i = 0; i < 4 && setup->startup[i]; i++)
        ok(TRITONSERVER_ServerOptionsSetStartupModel(options, setup->startup[i]));
    TRITONSERVER_Error *error = TRITONSERVER_ServerNew(out, options);
    ok(TRITONSERVER_ServerOptionsDelete(options));
    return error;
}

TRITONSERVER_Server *server_start(const repo *r, const server_setup *setup) {
    TRITONSERVER_Server *server = NULL;
    ok(server_try(r, setup, &server));
    return server;
}

void server_end(TRITONSERVER_Server *server) {
    ok(TRITONSERVER_ServerDelete(server));
}

/* Waits up to 10 s until the index contains a text, or until it does not. */
static void wait_for(TRITONSERVER_Server *server, const char *text, bool wanted) {
    for (int i = 0; i < 1000; i++) {
        TRITONSERVER_Message *message = NULL;
        ok(TRITONSERVER_ServerModelIndex(server, 0, &message));
        char *index = message_text(message);
        bool done = (strstr(index, text) != NULL) == wanted;
        if (!done && i == 999)
            fail_msg("expected '%s'%s in: %s", text, wanted ? "" : " not", index);
        free(index);
        if (done)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

void wait_for_index(TRITONSERVER_Server *server, const char *text) {
    wait_for(server, text, true);
}

void wait_until_unlisted(TRITONSERVER_Server *server, const char *name) {
    char text[300];
    snprintf(text, sizeof text, "\"name\":\"%s\"", name);
    wait_for(server, text, false);
}

/* ---- one request ---- */

static TRITONSERVER_Error *allocate(TRITONSERVER_ResponseAllocator *allocator, const char *name,
                                    size_t size_bytes, TRITONSERVER_MemoryType type, int64_t id,
                                    void *userp, void **buffer, void **buffer_userp,
                                    TRITONSERVER_MemoryType *actual_type, int64_t *actual_id) {
    call *c = userp;
    (void)allocator;
    (void)name;
    (void)id;
    pthread_mutex_lock(&c->lock);
    c->allocations++;
    c->requested = type;
    bool fail = c->fail_allocation, none = c->no_buffers;
    pthread_mutex_unlock(&c->lock);
    if (fail)
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "no room for outputs");
    *buffer = size_bytes && !none ? malloc(size_bytes) : NULL;
    *buffer_userp = c;
    *actual_type = c->memory;
    *actual_id = c->memory_id;
    return NULL;
}

static TRITONSERVER_Error *release_buffer(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
                                          void *buffer_userp, size_t size_bytes,
                                          TRITONSERVER_MemoryType type, int64_t id) {
    call *c = buffer_userp;
    (void)allocator;
    (void)size_bytes;
    (void)type;
    (void)id;
    free(buffer);
    pthread_mutex_lock(&c->lock);
    c->frees++;
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static TRITONSERVER_Error *start_response(TRITONSERVER_ResponseAllocator *allocator, void *userp) {
    call *c = userp;
    (void)allocator;
    pthread_mutex_lock(&c->lock);
    c->starts++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags, void *userp) {
    call *c = userp;
    (void)request;
    assert_int_equal(flags, TRITONSERVER_REQUEST_RELEASE_ALL);
    pthread_mutex_lock(&c->lock);
    c->releases++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                        void *userp) {
    call *c = userp;
    TRITONSERVER_InferenceResponse *old = NULL;
    pthread_mutex_lock(&c->lock);
    if (response) {
        old = c->response;
        c->response = response;
        c->responses++;
    }
    pthread_mutex_unlock(&c->lock);
    ok(TRITONSERVER_InferenceResponseDelete(old));
    pthread_mutex_lock(&c->lock);
    if (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        c->finals++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void call_init(call *c, TRITONSERVER_Server *server, const char *model, int64_t version) {
    memset(c, 0, sizeof *c);
    c->server = server;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    ok(TRITONSERVER_ResponseAllocatorNew(&c->allocator, allocate, release_buffer, start_response));
    ok(TRITONSERVER_InferenceRequestNew(&c->request, server, model, version));
    ok(TRITONSERVER_InferenceRequestSetReleaseCallback(c->request, on_release, c));
    ok(TRITONSERVER_InferenceRequestSetResponseCallback(c->request, c->allocator, c, on_response,
                                                        c));
}

void call_clear(call *c) {
    ok(TRITONSERVER_InferenceResponseDelete(c->response));
    c->response = NULL;
    c->responses = c->finals = c->releases = 0;
}

void call_deinit(call *c) {
    call_clear(c);
    ok(TRITONSERVER_InferenceRequestDelete(c->request));
    ok(TRITONSERVER_ResponseAllocatorDelete(c->allocator));
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
}

void call_start(call *c) {
    ok(TRITONSERVER_ServerInferAsync(c->server, c->request, NULL));
}

void call_wait(call *c) {
    pthread_mutex_lock(&c->lock);
    while (c->releases == 0 || c->finals == 0)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
    assert_int_equal(c->releases, 1);
    assert_int_equal(c->finals, 1);
}

void call_run(call *c) {
    call_start(c);
    call_wait(c);
}

void call_input(call *c, const char *name, TRITONSERVER_DataType type, const int64_t *shape,
                uint64_t rank, const void *data, size_t size_bytes) {
    ok(TRITONSERVER_InferenceRequestAddInput(c->request, name, type, shape, rank));
    ok(TRITONSERVER_InferenceRequestAppendInputData(c->request, name, data, size_bytes,
                                                    TRITONSERVER_MEMORY_CPU, 0));
}

const void *call_output(call *c, const char *name, size_t *out_size_bytes) {
    uint32_t count = 0;
    assert_non_null(c->response);
    ok(TRITONSERVER_InferenceResponseError(c->response));
    ok(TRITONSERVER_InferenceResponseOutputCount(c->response, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *found = NULL;
        TRITONSERVER_DataType type;
        const int64_t *shape = NULL;
        uint64_t rank = 0;
        const void *base = NULL;
        TRITONSERVER_MemoryType memory;
        int64_t id = 0;
        void *userp = NULL;
        ok(TRITONSERVER_InferenceResponseOutput(c->response, i, &found, &type, &shape, &rank, &base,
                                                out_size_bytes, &memory, &id, &userp));
        assert_ptr_equal(userp, c);
        if (strcmp(found, name) == 0)
            return base;
    }
    fail_msg("no output '%s' among %u", name, count);
    return NULL;
}

void call_fails(call *c, TRITONSERVER_Error_Code code, const char *text) {
    assert_non_null(c->response);
    fails(TRITONSERVER_InferenceResponseError(c->response), code, text);
}

void call_addsub(call *c, float *a, float *b, float value) {
    static const int64_t shape[] = {1, 16};
    for (int i = 0; i < 16; i++) {
        a[i] = value + (float)i;
        b[i] = 1;
    }
    call_input(c, "INPUT0", TRITONSERVER_TYPE_FP32, shape, 2, a, 16 * sizeof *a);
    call_input(c, "INPUT1", TRITONSERVER_TYPE_FP32, shape, 2, b, 16 * sizeof *b);
}

world *world_new(void) {
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    repo_make(&w->r);
    return w;
}

int world_open(void **state, const server_setup *setup) {
    world *w = world_new();
    w->server = server_start(&w->r, setup);
    *state = w;
    return 0;
}

int world_close(void **state) {
    world *w = *state;
    server_end(w->server);
    repo_remove(&w->r);
    free(w);
    return 0;
}

void world_load(world *w, const char *name, const char *config) {
    repo_model(&w->r, name, config);
    ok(TRITONSERVER_ServerLoadModel(w->server, name));
}

void world_unload(world *w, const char *name) {
    char gone[512];
    ok(TRITONSERVER_ServerUnloadModel(w->server, name));
    snprintf(
        gone, sizeof gone,
        "{\"name\":\"%s\",\"version\":\"1\",\"state\":\"UNAVAILABLE\",\"reason\":\"unloaded\"}",
        name);
    wait_for_index(w->server, gone);
}
