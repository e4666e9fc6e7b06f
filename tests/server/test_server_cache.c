/* SPDX-License-Identifier: Apache-2.0 */
/* Responses from the built-in cache and from a cache in a shared library: which responses are
 * stored, and the statistics and metrics. */
#include "server/support.h"

#include <triton/core/tritoncache.h>

#define ENABLED "response_cache { enable: true }\n"

static TRITONSERVER_Server *start(repo *r, const char *cache, const char *config) {
    char text[2048];
    snprintf(text, sizeof text, "%s" ENABLED, addsub_config);
    repo_make(r);
    repo_model(r, "cached", text);
    repo_model(r, "plain", addsub_config);
    return server_start(r, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                           .startup = {"cached", "plain"},
                                           .cache = cache,
                                           .cache_config = config,
                                           .caches = KELP_TEST_BACKENDS});
}

static void end(TRITONSERVER_Server *server, repo *r) {
    server_end(server);
    repo_remove(r);
}

static void ask(TRITONSERVER_Server *server, const char *model, float value) {
    call c;
    float a[16], b[16];
    size_t size_bytes = 0;
    call_init(&c, server, model, -1);
    call_addsub(&c, a, b, value);
    call_run(&c);
    const float *sum = call_output(&c, "OUTPUT0", &size_bytes);
    assert_int_equal(size_bytes, 64);
    assert_true(sum[15] == value + 16);
    const float *difference = call_output(&c, "OUTPUT1", &size_bytes);
    assert_true(difference[15] == value + 14);
    assert_int_equal(c.responses, 1);
    assert_int_equal(c.finals, 1);
    assert_int_equal(c.releases, 1);
    call_deinit(&c);
}

/* Returns hits and misses of the model's statistics. */
static void expect(TRITONSERVER_Server *server, const char *model, long long hits,
                   long long misses) {
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelStatistics(server, model, -1, &message));
    char *text = message_text(message);
    const char *hit = strstr(text, "\"cache_hit\"");
    assert_non_null(hit);
    assert_int_equal(number_after(hit, "\"count\":"), hits);
    const char *miss = strstr(text, "\"cache_miss\"");
    assert_non_null(miss);
    assert_int_equal(number_after(miss, "\"count\":"), misses);
    free(text);
}

static void test_equal_request_hits(void **state) {
    repo r;
    (void)state;
    TRITONSERVER_Server *server = start(&r, "local", "{\"size\":\"1048576\"}");
    ask(server, "cached", 1);
    expect(server, "cached", 0, 1);
    ask(server, "cached", 1);
    ask(server, "cached", 1);
    expect(server, "cached", 2, 1);
    ask(server, "cached", 2);
    expect(server, "cached", 2, 2);
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelStatistics(server, "cached", -1, &message));
    char *stats = message_text(message);
    assert_int_equal(number_after(stats, "\"inference_count\":"), 2); /* hits are no executions */
    assert_int_equal(number_after(stats, "\"success\":{\"count\":"), 4);
    assert_int_equal(number_after(stats, "\"queue\":{\"count\":"), 4);
    assert_int_equal(number_after(stats, "\"compute_infer\":{\"count\":"), 2);
    free(stats);
    ask(server, "plain", 1);
    ask(server, "plain", 1);
    expect(server, "plain", 0, 0);
    TRITONSERVER_Metrics *metrics = NULL;
    const char *text = NULL;
    size_t length = 0;
    ok(TRITONSERVER_ServerMetrics(server, &metrics));
    ok(TRITONSERVER_MetricsFormatted(metrics, TRITONSERVER_METRIC_PROMETHEUS, &text, &length));
    contains(text, "nv_cache_num_hits_per_model{model=\"cached\",version=\"1\"} 2");
    contains(text, "nv_cache_num_misses_per_model{model=\"cached\",version=\"1\"} 2");
    contains(text, "nv_cache_util");
    contains(text, "\nnv_cache_num_entries 2\n");
    contains(text, "\nnv_cache_num_lookups 4\n");
    contains(text, "\nnv_cache_num_hits 2\n");
    contains(text, "\nnv_cache_num_misses 2\n");
    contains(text, "\nnv_cache_num_evictions 0\n");
    contains(text, "\nnv_cache_lookup_duration ");
    contains(text, "\nnv_cache_insertion_duration ");
    contains(text, "nv_inference_request_success{model=\"cached\",version=\"1\"} 4");
    ok(TRITONSERVER_MetricsDelete(metrics));
    end(server, &r);
}

/* Submits the same request object repeatedly. */
static void test_resubmitted_request_hits(void **state) {
    repo r;
    call c;
    float a[16], b[16];
    (void)state;
    TRITONSERVER_Server *server = start(&r, "local", "{\"size\":65536}");
    call_init(&c, server, "cached", -1);
    call_addsub(&c, a, b, 5);
    for (int i = 0; i < 5; i++) {
        size_t size_bytes = 0;
        call_run(&c);
        const float *sum = call_output(&c, "OUTPUT0", &size_bytes);
        assert_true(sum[0] == 6);
        call_clear(&c);
    }
    expect(server, "cached", 4, 1);
    call_deinit(&c);
    end(server, &r);
}

/* A small cache keeps the most recently used entries, and does not grow. */
static void test_size_is_limited(void **state) {
    repo r;
    (void)state;
    TRITONSERVER_Server *server = start(&r, "local", "{\"size\":2500}");
    ask(server, "cached", 1);
    ask(server, "cached", 2);
    ask(server, "cached", 1); /* now 2 is the least recently used entry */
    expect(server, "cached", 1, 2);
    for (int i = 3; i < 40; i++) {
        ask(server, "cached", (float)i);
        ask(server, "cached", 1);
    }
    expect(server, "cached", 38, 39);
    ask(server, "cached", 2);
    expect(server, "cached", 38, 40);
    end(server, &r);
    server = start(&r, "local", "{\"size\":100}"); /* no entry fits */
    ask(server, "cached", 1);
    ask(server, "cached", 1);
    expect(server, "cached", 0, 2);
    end(server, &r);
}

/* A change of files or configuration changes the model's fingerprint. */
static void test_reload_invalidates_responses(void **state) {
    repo r;
    char text[2048];
    (void)state;
    TRITONSERVER_Server *server = start(&r, "local", "{\"size\":1048576}");
    ask(server, "cached", 1);
    ask(server, "cached", 1);
    snprintf(text, sizeof text,
             "%s" ENABLED "parameters { key: \"a\" value { string_value: \"b\" } }\n",
             addsub_config);
    repo_file(&r, "cached/config.pbtxt", text);
    ok(TRITONSERVER_ServerLoadModel(server, "cached"));
    ask(server, "cached", 1);
    expect(server, "cached", 0, 1);
    end(server, &r);
}

static void test_errors_are_not_cached(void **state) {
    repo r;
    (void)state;
    repo_make(&r);
    repo_model(&r, "fail",
               "backend: \"misbehave\"\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n" ENABLED);
    TRITONSERVER_Server *server =
        server_start(&r, &(server_setup){.backends = KELP_TEST_BACKENDS,
                                         .cache = "local",
                                         .cache_config = "{\"size\":65536}",
                                         .caches = KELP_TEST_BACKENDS});
    for (int i = 0; i < 3; i++) {
        call c;
        const int64_t shape[] = {2};
        const int32_t data[] = {1, 2};
        call_init(&c, server, "fail", -1);
        call_input(&c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
        call_run(&c);
        TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseError(c.response);
        assert_non_null(error);
        TRITONSERVER_ErrorDelete(error);
        call_deinit(&c);
    }
    expect(server, "fail", 0, 3);
    end(server, &r);
}

static void test_library_is_loaded(void **state) {
    repo r;
    (void)state;
    TRITONSERVER_Server *server = start(&r, "collide", "{}");
    ask(server, "cached", 1);
    ask(server, "cached", 1);
    expect(server, "cached", 1, 1);
    ask(server, "cached", 2); /* the cache returns the response to 1, which is ignored */
    expect(server, "cached", 1, 2);
    ask(server, "cached", 2);
    expect(server, "cached", 2, 2);
    end(server, &r);
}

static void test_invalid_caches_are_rejected(void **state) {
    repo r;
    TRITONSERVER_Server *server = NULL;
    (void)state;
    repo_make(&r);
    repo_model(&r, "plain", addsub_config);
    server_setup setup = {.cache = "unknown", .cache_config = "{}", .caches = KELP_TEST_BACKENDS};
    fails(server_try(&r, &setup, &server), TRITONSERVER_ERROR_NOT_FOUND,
          "unknown/libtritoncache_unknown.so");
    setup.cache = "collide";
    setup.cache_config = "{\"reject\":\"1\"}";
    fails(server_try(&r, &setup, &server), TRITONSERVER_ERROR_INVALID_ARG, "rejected by the cache");
    setup.cache = "local";
    static const char *const wrong[] = {"{}", "{\"size\":-1}", "{\"size\":\"many\"}",
                                        "{\"size\":\"12x\"}", "{\"size\":\"\"}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setup.cache_config = wrong[i];
        fails(server_try(&r, &setup, &server), TRITONSERVER_ERROR_INVALID_ARG, "\"size\"");
    }
    repo_model(&r, "stream",
               "backend: \"addsub\" model_transaction_policy { decoupled: true }\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 16 ] },\n"
               "        { name: \"INPUT1\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 16 ] },\n"
               "         { name: \"OUTPUT1\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n" ENABLED);
    setup.cache_config = "{\"size\":4096}";
    fails(server_try(&r, &setup, &server), TRITONSERVER_ERROR_INTERNAL, "decoupled");
    repo_remove(&r);
}

static void test_entries_have_buffers(void **state) {
    TRITONCACHE_CacheEntry *entry = NULL;
    TRITONSERVER_BufferAttributes *attributes = NULL;
    extern TRITONSERVER_Error *TRITONCACHE_CacheEntryNew(TRITONCACHE_CacheEntry **);
    extern TRITONSERVER_Error *TRITONCACHE_CacheEntryDelete(TRITONCACHE_CacheEntry *);
    char bytes[4];
    void *base = NULL;
    size_t count = 9;
    (void)state;
    ok(TRITONSERVER_BufferAttributesNew(&attributes));
    ok(TRITONCACHE_CacheEntryNew(&entry));
    ok(TRITONCACHE_CacheEntryBufferCount(entry, &count));
    assert_int_equal(count, 0);
    fails(TRITONCACHE_CacheEntryAddBuffer(entry, bytes, attributes), TRITONSERVER_ERROR_INVALID_ARG,
          "empty");
    fails(TRITONCACHE_CacheEntryAddBuffer(entry, NULL, attributes), TRITONSERVER_ERROR_INVALID_ARG,
          "base");
    ok(TRITONSERVER_BufferAttributesSetByteSize(attributes, sizeof bytes));
    ok(TRITONSERVER_BufferAttributesSetMemoryType(attributes, TRITONSERVER_MEMORY_GPU));
    fails(TRITONCACHE_CacheEntryAddBuffer(entry, bytes, attributes), TRITONSERVER_ERROR_INVALID_ARG,
          "GPU");
    ok(TRITONSERVER_BufferAttributesSetMemoryType(attributes, TRITONSERVER_MEMORY_CPU));
    ok(TRITONCACHE_CacheEntryAddBuffer(entry, bytes, attributes));
    ok(TRITONCACHE_CacheEntrySetBuffer(entry, 0, bytes + 1, NULL));
    ok(TRITONCACHE_CacheEntryGetBuffer(entry, 0, &base, attributes));
    assert_ptr_equal(base, bytes + 1);
    fails(TRITONCACHE_CacheEntryGetBuffer(entry, 1, &base, attributes),
          TRITONSERVER_ERROR_INVALID_ARG, "out of bounds");
    fails(TRITONCACHE_CacheEntryBufferCount(NULL, &count), TRITONSERVER_ERROR_INVALID_ARG, "entry");
    fails(TRITONCACHE_Copy(NULL, entry), TRITONSERVER_ERROR_INVALID_ARG, "allocator");
    ok(TRITONCACHE_CacheEntryDelete(entry));
    ok(TRITONSERVER_BufferAttributesDelete(attributes));
}

/* ---- schedulers ---- */

#define BATCHED                                                             \
    "backend: \"identity\"\nmax_batch_size: 4\n" ENABLED                    \
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"   \
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n" \
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n"                      \
    "dynamic_batching { default_queue_policy { max_queue_size: 1 } }\n"

static int open_world(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                             .cache = "local",
                                             .cache_config = "{\"size\":\"1048576\"}",
                                             .caches = KELP_TEST_BACKENDS});
}

static void make(call *c, world *w, const int32_t *value, int64_t delay_ms) {
    static const int64_t shape[] = {1, 1};
    call_init(c, w->server, "m", -1);
    call_input(c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 2, value, sizeof *value);
    if (delay_ms)
        ok(TRITONSERVER_InferenceRequestSetIntParameter(c->request, "delay_ms", delay_ms));
}

/* While the only instance executes a request for an hour and the queue is full, a cached response
 * is sent before the submission returns. */
static void test_hit_does_not_enter_the_queue(void **state) {
    static const int32_t values[] = {1, 2};
    world *w = *state;
    call hit, busy[3];
    world_load(w, "m", BATCHED);
    make(&hit, w, &values[0], 0);
    call_run(&hit);
    call_clear(&hit);
    unsigned queued = 0;
    for (int i = 0; i < 3; i++)
        make(&busy[i], w, &values[1], 3600000);
    call_start(&busy[0]);
    for (; queued < 2; queued++) {
        TRITONSERVER_Error *error =
            TRITONSERVER_ServerInferAsync(w->server, busy[1 + queued].request, NULL);
        TRITONSERVER_ErrorDelete(error);
        if (error)
            break; /* the queue is full */
    }
    unsigned finals = hit.finals;
    call_start(&hit);
    assert_int_equal(hit.finals, finals + 1);
    for (unsigned i = 0; i < 3; i++) {
        if (i <= queued) {
            ok(TRITONSERVER_InferenceRequestCancel(busy[i].request));
            call_wait(&busy[i]);
        }
        call_deinit(&busy[i]);
    }
    call_deinit(&hit);
}

typedef struct asker {
    world *w;
    pthread_barrier_t *begin;
} asker;

static void *ask_equal(void *userp) {
    static const int32_t value = 7;
    const asker *me = userp;
    size_t size_bytes = 0;
    call c;
    make(&c, me->w, &value, 0);
    pthread_barrier_wait(me->begin);
    call_run(&c);
    assert_int_equal(*(const int32_t *)call_output(&c, "OUTPUT0", &size_bytes), value);
    call_deinit(&c);
    return NULL;
}

/* Equal requests that come at the same time are each looked up, and executed if they miss. */
static void test_equal_requests_at_the_same_time(void **state) {
    enum { THREADS = 8 };
    static const int32_t value = 7;
    world *w = *state;
    pthread_t threads[THREADS];
    pthread_barrier_t begin;
    call c;
    world_load(w, "m",
               "backend: \"identity\"\nmax_batch_size: 4\n" ENABLED
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "dynamic_batching { }\n");
    pthread_barrier_init(&begin, NULL, THREADS);
    asker me = {w, &begin};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_equal, &me), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&begin);
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelStatistics(w->server, "m", -1, &message));
    char *text = message_text(message);
    long long misses = number_after(strstr(text, "\"cache_miss\""), "\"count\":");
    free(text);
    assert_in_range(misses, 1, THREADS);
    make(&c, w, &value, 0);
    call_run(&c);
    call_deinit(&c);
    expect(w->server, "m", THREADS - misses + 1, misses);
}

static void test_sequences_are_not_cached(void **state) {
    world *w = *state;
    repo_model(&w->r, "s",
               "backend: \"identity\"\nmax_batch_size: 4\nsequence_batching { }\n" ENABLED
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n");
    fails(TRITONSERVER_ServerLoadModel(w->server, "s"), TRITONSERVER_ERROR_INTERNAL,
          "response_cache cannot be enabled for a model with sequence_batching");
}

static void test_decoupled_models_are_not_cached(void **state) {
    world *w = *state;
    repo_model(&w->r, "d",
               "backend: \"repeat\"\nmodel_transaction_policy { decoupled: true }\n" ENABLED
               "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] },\n"
               "        { name: \"DELAY\" data_type: TYPE_UINT32 dims: [ -1 ] optional: true } ]\n"
               "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ] },\n"
               "         { name: \"IDX\" data_type: TYPE_UINT32 dims: [ 1 ] } ]\n");
    fails(TRITONSERVER_ServerLoadModel(w->server, "d"), TRITONSERVER_ERROR_INVALID_ARG,
          "response cache does not currently support models with the decoupled transaction policy");
    /* An ensemble that declares it, although no member is decoupled. */
    world_load(w, "plain",
               "backend: \"identity\"\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n");
    repo_model(&w->r, "e",
               "model_transaction_policy { decoupled: true }\n" ENABLED
               "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "ensemble_scheduling { step { model_name: \"plain\" "
               "input_map { key: \"INPUT0\" value: \"IN\" } "
               "output_map { key: \"OUTPUT0\" value: \"OUT\" } } }\n");
    fails(TRITONSERVER_ServerLoadModel(w->server, "e"), TRITONSERVER_ERROR_INVALID_ARG,
          "response cache does not currently support models with the decoupled transaction policy");
}

static void test_several_caches_are_rejected(void **state) {
    repo r;
    TRITONSERVER_ServerOptions *options = NULL;
    TRITONSERVER_Server *server = NULL;
    (void)state;
    repo_make(&r);
    ok(TRITONSERVER_ServerOptionsNew(&options));
    ok(TRITONSERVER_ServerOptionsSetLogInfo(options, false));
    ok(TRITONSERVER_ServerOptionsSetModelRepositoryPath(options, r.path));
    ok(TRITONSERVER_ServerOptionsSetCacheConfig(options, "local", "{\"size\":\"8192\"}"));
    ok(TRITONSERVER_ServerOptionsSetCacheConfig(options, "redis", "{\"host\":\"h\"}"));
    fails(TRITONSERVER_ServerNew(&server, options), TRITONSERVER_ERROR_INVALID_ARG,
          "multiple cache configurations: '");
    ok(TRITONSERVER_ServerOptionsDelete(options));
    repo_remove(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_request_hits),
        cmocka_unit_test(test_resubmitted_request_hits),
        cmocka_unit_test(test_size_is_limited),
        cmocka_unit_test(test_reload_invalidates_responses),
        cmocka_unit_test(test_errors_are_not_cached),
        cmocka_unit_test(test_library_is_loaded),
        cmocka_unit_test(test_invalid_caches_are_rejected),
        cmocka_unit_test(test_entries_have_buffers),
        cmocka_unit_test_setup_teardown(test_hit_does_not_enter_the_queue, open_world, world_close),
        cmocka_unit_test_setup_teardown(test_sequences_are_not_cached, open_world, world_close),
        cmocka_unit_test_setup_teardown(test_decoupled_models_are_not_cached, open_world,
                                        world_close),
        cmocka_unit_test(test_several_caches_are_rejected),
        cmocka_unit_test_setup_teardown(test_equal_requests_at_the_same_time, open_world,
                                        world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
