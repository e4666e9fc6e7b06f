/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to ensembles: results, iterations, failures, cancellation, pruning, parameters. */
#include "server/support.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static const int64_t batch_of_two[] = {2, 16};
static const int64_t two[] = {2};
static const int32_t pair[] = {1, 2};

/* OUT0 = 2 * A, OUT1 = 2 * B: the sum and the difference of A + B and A - B. */
static const char chain_config[] =
    "max_batch_size: 8\n"
    "input [ { name: \"A\" data_type: TYPE_FP32 dims: [ 16 ] },\n"
    "        { name: \"B\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n"
    "output [ { name: \"OUT0\" data_type: TYPE_FP32 dims: [ 16 ] },\n"
    "         { name: \"OUT1\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n"
    "ensemble_scheduling { step [\n"
    "  { model_name: \"second\" model_version: -1\n"
    "    input_map { key: \"INPUT0\" value: \"sum\" }\n"
    "    input_map { key: \"INPUT1\" value: \"difference\" }\n"
    "    output_map { key: \"OUTPUT0\" value: \"OUT0\" }\n"
    "    output_map { key: \"OUTPUT1\" value: \"OUT1\" } },\n"
    "  { model_name: \"first\" model_version: -1\n"
    "    input_map { key: \"INPUT0\" value: \"A\" }\n"
    "    input_map { key: \"INPUT1\" value: \"B\" }\n"
    "    output_map { key: \"OUTPUT0\" value: \"sum\" }\n"
    "    output_map { key: \"OUTPUT1\" value: \"difference\" } } ] }\n";

/* An ensemble of models with an INT32 input INPUT0 and output OUTPUT0. */
#define INT32_IO(dims)                                                      \
    "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ " dims " ] } ]\n" \
    "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ " dims " ] } ]\n"
#define STEP(model, in, input, output, out)                                          \
    "step [ { model_name: \"" model "\" input_map { key: \"" in "\" value: \"" input \
    "\" } output_map { key: \"" output "\" value: \"" out "\" } } ]\n"
#define ONE_STEP(model) \
    INT32_IO("2") "ensemble_scheduling { " STEP(model, "INPUT0", "IN", "OUTPUT0", "OUT") "}\n"
#define MEMBER(backend)                                                  \
    "backend: \"" backend "\"\n"                                         \
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n" \
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"

#define ONE_STEP_OF(model, in, out) \
    INT32_IO("-1") "ensemble_scheduling { " STEP(model, in, "IN", out, "OUT") "}\n"

static const char repeat_config[] =
    "backend: \"repeat\"\n"
    "model_transaction_policy { decoupled: true }\n"
    "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] },\n"
    "        { name: \"DELAY\" data_type: TYPE_UINT32 dims: [ -1 ] optional: true } ]\n"
    "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ] },\n"
    "         { name: \"IDX\" data_type: TYPE_UINT32 dims: [ 1 ] } ]\n";

/* One response with a value for each element of IN. */
#define STREAM(extra)                                                         \
    "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"         \
    "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"       \
    "ensemble_scheduling { " extra STEP("repeat", "IN", "IN", "OUT", "value") \
        STEP("identity", "INPUT0", "value", "OUTPUT0", "OUT") "}\n"

static int set_up(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT});
}

static int set_up_test_backends(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                             .backends = KELP_TEST_BACKENDS});
}

static void load_chain(world *w) {
    world_load(w, "first", addsub_config);
    world_load(w, "second", addsub_config);
    world_load(w, "chain", chain_config);
}

static void put_pair(call *c) {
    call_input(c, "IN", TRITONSERVER_TYPE_INT32, two, 1, pair, sizeof pair);
}

static char *statistics(world *w, const char *model) {
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelStatistics(w->server, model, -1, &message));
    return message_text(message);
}

/* ---- results ---- */

static void put_chain(call *c, float *a, float *b) {
    for (int i = 0; i < 32; i++) {
        a[i] = (float)i;
        b[i] = 100.0f - (float)i;
    }
    call_input(c, "A", TRITONSERVER_TYPE_FP32, batch_of_two, 2, a, 32 * sizeof *a);
    call_input(c, "B", TRITONSERVER_TYPE_FP32, batch_of_two, 2, b, 32 * sizeof *b);
}

static void test_steps_run_in_the_order_of_the_data(void **state) {
    float a[32], b[32];
    size_t size_bytes = 0;
    call c;
    load_chain(*state);
    call_init(&c, ((world *)*state)->server, "chain", -1);
    put_chain(&c, a, b);
    for (int repeat = 0; repeat < 3; repeat++) {
        call_run(&c);
        const float *out0 = call_output(&c, "OUT0", &size_bytes);
        assert_int_equal(size_bytes, sizeof a);
        const float *out1 = call_output(&c, "OUT1", &size_bytes);
        for (int i = 0; i < 32; i++) {
            assert_float_equal(out0[i], 2 * a[i], 0.001);
            assert_float_equal(out1[i], 2 * b[i], 0.001);
        }
        assert_int_equal(c.responses, 1);
        call_clear(&c);
    }
    char *stats = statistics(*state, "chain");
    assert_int_equal(number_after(stats, "\"inference_count\":"), 6);
    assert_int_equal(number_after(stats, "\"execution_count\":"), 3);
    free(stats);
    stats = statistics(*state, "second");
    assert_int_equal(number_after(stats, "\"inference_count\":"), 6);
    free(stats);
    call_deinit(&c);
}

static void test_unrequested_steps_do_not_run(void **state) {
    static const char config[] =
        "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
        "output [ { name: \"X\" data_type: TYPE_INT32 dims: [ -1 ] },\n"
        "         { name: \"Y\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
        "ensemble_scheduling { " STEP("left", "INPUT0", "IN", "OUTPUT0", "X")
            STEP("right", "INPUT0", "IN", "OUTPUT0", "Y") "}\n";
    size_t size_bytes = 0;
    uint32_t count = 0;
    call c;
    world_load(*state, "left", identity_config);
    world_load(*state, "right", identity_config);
    world_load(*state, "fork", config);
    call_init(&c, ((world *)*state)->server, "fork", -1);
    put_pair(&c);
    ok(TRITONSERVER_InferenceRequestAddRequestedOutput(c.request, "Y"));
    call_run(&c);
    assert_memory_equal(call_output(&c, "Y", &size_bytes), pair, sizeof pair);
    ok(TRITONSERVER_InferenceResponseOutputCount(c.response, &count));
    assert_int_equal(count, 1);
    char *stats = statistics(*state, "left");
    assert_int_equal(number_after(stats, "\"inference_count\":"), 0);
    free(stats);
    call_deinit(&c);
}

/* Strings, tensors without elements, and tensors that are too large to keep their buffers. */
static void test_tensors_of_all_sizes_pass_through(void **state) {
    enum { MANY = 600000 };
    static const char text[] = {2, 0, 0, 0, 'a', 'b', 0, 0, 0, 0};
    static const int64_t sizes[] = {0, 1, MANY, 7};
    static int32_t values[MANY];
    size_t size_bytes = 0;
    call c;
    for (int i = 0; i < MANY; i++)
        values[i] = i;
    world_load(*state, "identity", identity_config);
    world_load(
        *state, "numbers",
        INT32_IO("-1") "ensemble_scheduling { " STEP("identity", "INPUT0", "IN", "OUTPUT0", "x")
            STEP("identity", "INPUT0", "x", "OUTPUT0", "OUT") "}\n");
    world_load(*state, "texts",
               "input [ { name: \"IN\" data_type: TYPE_STRING dims: [ -1 ] } ]\n"
               "output [ { name: \"OUT\" data_type: TYPE_STRING dims: [ -1 ] } ]\n"
               "ensemble_scheduling { " STEP("identity", "INPUT1", "IN", "OUTPUT1", "x")
                   STEP("identity", "INPUT1", "x", "OUTPUT1", "OUT") "}\n");
    call_init(&c, ((world *)*state)->server, "numbers", -1);
    for (size_t i = 0; i < 4; i++) {
        ok(TRITONSERVER_InferenceRequestRemoveAllInputs(c.request));
        call_input(&c, "IN", TRITONSERVER_TYPE_INT32, &sizes[i], 1, values,
                   (size_t)sizes[i] * sizeof *values);
        call_run(&c);
        const void *out = call_output(&c, "OUT", &size_bytes);
        assert_int_equal(size_bytes, (size_t)sizes[i] * sizeof *values);
        if (size_bytes > 0)
            assert_memory_equal(out, values, size_bytes);
        call_clear(&c);
    }
    call_deinit(&c);
    call_init(&c, ((world *)*state)->server, "texts", -1);
    call_input(&c, "IN", TRITONSERVER_TYPE_BYTES, two, 1, text, sizeof text);
    call_run(&c);
    assert_memory_equal(call_output(&c, "OUT", &size_bytes), text, sizeof text);
    call_deinit(&c);
}

/* The backend "probe" does not produce EXTRA. */
static void test_a_missing_output_is_an_absent_optional_input(void **state) {
    static const char member[] =
        "backend: \"probe\"\n"
        "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] },\n"
        "        { name: \"MORE\" data_type: TYPE_INT32 dims: [ 2 ] optional: true } ]\n"
        "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] },\n"
        "         { name: \"EXTRA\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n";
    static const char config[] =
        "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ 2 ] },\n"
        "        { name: \"MORE_IN\" data_type: TYPE_INT32 dims: [ 2 ] optional: true } ]\n"
        "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ 2 ] },\n"
        "         { name: \"MORE_OUT\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"
        "ensemble_scheduling { step [\n"
        "{ model_name: \"probe\" input_map { key: \"INPUT0\" value: \"IN\" }\n"
        "  input_map { key: \"MORE\" value: \"MORE_IN\" }\n"
        "  output_map { key: \"OUTPUT0\" value: \"x\" }\n"
        "  output_map { key: \"EXTRA\" value: \"y\" } },\n"
        "{ model_name: \"probe\" input_map { key: \"INPUT0\" value: \"x\" }\n"
        "  input_map { key: \"MORE\" value: \"y\" }\n"
        "  output_map { key: \"OUTPUT0\" value: \"OUT\" }\n"
        "  output_map { key: \"EXTRA\" value: \"MORE_OUT\" } } ] }\n";
    size_t size_bytes = 0;
    uint32_t count = 0;
    call c;
    world_load(*state, "probe", member);
    world_load(*state, "optional", config);
    call_init(&c, ((world *)*state)->server, "optional", -1);
    put_pair(&c);
    call_run(&c);
    assert_memory_equal(call_output(&c, "OUT", &size_bytes), pair, sizeof pair);
    ok(TRITONSERVER_InferenceResponseOutputCount(c.response, &count));
    assert_int_equal(count, 1);
    call_clear(&c);
    call_input(&c, "MORE_IN", TRITONSERVER_TYPE_INT32, two, 1, pair, sizeof pair);
    call_run(&c);
    assert_memory_equal(call_output(&c, "OUT", &size_bytes), pair, sizeof pair);
    call_deinit(&c);
}

static void test_an_ensemble_can_contain_an_ensemble(void **state) {
    static const char config[] =
        "max_batch_size: 4\n"
        "input [ { name: \"X\" data_type: TYPE_FP32 dims: [ 16 ] },\n"
        "        { name: \"Y\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n"
        "output [ { name: \"Z\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n"
        "ensemble_scheduling { step [\n"
        "{ model_name: \"chain\" input_map { key: \"A\" value: \"X\" }\n"
        "  input_map { key: \"B\" value: \"Y\" } output_map { key: \"OUT1\" value: \"y2\" } },\n"
        "{ model_name: \"chain\" input_map { key: \"A\" value: \"y2\" }\n"
        "  input_map { key: \"B\" value: \"X\" } output_map { key: \"OUT0\" value: \"Z\" } } ] }\n";
    float x[32], y[32];
    size_t size_bytes = 0;
    call c;
    load_chain(*state);
    world_load(*state, "outer", config);
    call_init(&c, ((world *)*state)->server, "outer", -1);
    for (int i = 0; i < 32; i++) {
        x[i] = (float)i;
        y[i] = 1000.0f + (float)i;
    }
    call_input(&c, "X", TRITONSERVER_TYPE_FP32, batch_of_two, 2, x, sizeof x);
    call_input(&c, "Y", TRITONSERVER_TYPE_FP32, batch_of_two, 2, y, sizeof y);
    call_run(&c);
    const float *z = call_output(&c, "Z", &size_bytes);
    assert_int_equal(size_bytes, sizeof y);
    for (int i = 0; i < 32; i++)
        assert_float_equal(z[i], 4 * y[i], 0.01);
    call_deinit(&c);
}

/* Tensors pass between models with and without batching. */
static void test_batches_of_one_pass_through_models_without_batching(void **state) {
    static const char plain[] =
        "backend: \"identity\"\n"
        "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n"
        "output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n";
    static const char config[] =
        "max_batch_size: 8\n"
        "input [ { name: \"IN\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n"
        "output [ { name: \"OUT\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n"
        "ensemble_scheduling { " STEP(
            "plain", "INPUT0", "IN", "OUTPUT0",
            "x") "step [ { model_name: \"batching\" input_map { key: \"INPUT0\" value: \"x\" }\n"
                 "  input_map { key: \"INPUT1\" value: \"IN\" }\n"
                 "  output_map { key: \"OUTPUT0\" value: \"OUT\" } } ] }\n";
    static const int64_t one[] = {1, 16};
    float values[16], batch[32] = {0};
    size_t size_bytes = 0;
    call c;
    for (int i = 0; i < 16; i++)
        values[i] = (float)i;
    world_load(*state, "plain", plain);
    world_load(*state, "batching", addsub_config);
    world_load(*state, "mixed", config);
    call_init(&c, ((world *)*state)->server, "mixed", -1);
    call_input(&c, "IN", TRITONSERVER_TYPE_FP32, one, 2, values, sizeof values);
    call_run(&c);
    const float *out = call_output(&c, "OUT", &size_bytes);
    for (int i = 0; i < 16; i++)
        assert_float_equal(out[i], 2 * values[i], 0.001);
    call_clear(&c);
    ok(TRITONSERVER_InferenceRequestRemoveAllInputs(c.request));
    call_input(&c, "IN", TRITONSERVER_TYPE_FP32, batch_of_two, 2, batch, sizeof batch);
    call_run(&c);
    call_fails(&c, TRITONSERVER_ERROR_INVALID_ARG, "in ensemble 'mixed', step[0] of model 'plain'");
    call_deinit(&c);
}

/* ---- several responses ---- */

typedef struct collector {
    call base;
    int32_t values[64];
    unsigned count;
    unsigned max_ahead; /* responses of "repeat" that were not delivered; 0: do not check */
    uint32_t flags;     /* of the latest response with tensors */
} collector;

/* Asserts that "repeat" is not far ahead of the delivered responses. */
static void check_ahead(const collector *c) {
    TRITONSERVER_Message *message = NULL;
    char key[32];
    unsigned sent = 0;
    ok(TRITONSERVER_ServerModelStatistics(c->base.server, "repeat", -1, &message));
    char *stats = message_text(message);
    while (snprintf(key, sizeof key, "\"%u\":{", sent), strstr(stats, key) != NULL)
        sent++;
    free(stats);
    assert_true(sent <= c->count + c->max_ahead);
}

static void collect(TRITONSERVER_InferenceResponse *response, const uint32_t flags, void *userp) {
    collector *c = userp;
    if (response) {
        c->base.response = response;
        c->flags = flags;
        size_t size_bytes = 0;
        c->values[c->count++] = *(const int32_t *)call_output(&c->base, "OUT", &size_bytes);
        if (c->max_ahead > 0)
            check_ahead(c);
        c->base.response = NULL;
        ok(TRITONSERVER_InferenceResponseDelete(response));
    }
    pthread_mutex_lock(&c->base.lock);
    if (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        c->base.finals++;
    pthread_cond_broadcast(&c->base.changed);
    pthread_mutex_unlock(&c->base.lock);
}

static void run_stream(world *w, const char *model, unsigned max_ahead) {
    static const int64_t shape[] = {40};
    int32_t values[40];
    collector c = {.max_ahead = max_ahead};
    for (int i = 0; i < 40; i++)
        values[i] = 7 * i;
    call_init(&c.base, w->server, model, -1);
    ok(TRITONSERVER_InferenceRequestSetResponseCallback(c.base.request, c.base.allocator, &c.base,
                                                        collect, &c));
    call_input(&c.base, "IN", TRITONSERVER_TYPE_INT32, shape, 1, values, sizeof values);
    call_run(&c.base);
    assert_int_equal(c.count, 40);
    for (int i = 0; i < 40; i++)
        assert_int_equal(c.values[i], values[i]);
    call_deinit(&c.base);
}

static void test_each_response_of_a_decoupled_member_is_an_iteration(void **state) {
    world *w = *state;
    uint32_t flags = 0;
    TRITONSERVER_Message *message = NULL;
    world_load(w, "repeat", repeat_config);
    world_load(w, "identity", identity_config);
    world_load(w, "stream", STREAM(""));
    run_stream(w, "stream", 0);
    ok(TRITONSERVER_ServerModelTransactionProperties(w->server, "stream", -1, &flags, NULL));
    assert_int_equal(flags, TRITONSERVER_TXN_DECOUPLED);
    ok(TRITONSERVER_ServerModelConfig(w->server, "stream", -1, 1, &message));
    char *config = message_text(message);
    contains(config, "\"model_transaction_policy\":{\"decoupled\":true}");
    contains(config, "\"ensemble_scheduling\":{");
    /* gRPC servers of Triton before 2.64 cannot read it. */
    assert_null(strstr(config, "max_inflight_requests"));
    free(config);
}

static void test_the_number_of_requests_in_flight_is_limited(void **state) {
    static const char slow[] =
        "backend: \"identity\"\n"
        "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
        "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
        "instance_group [ { kind: KIND_CPU count: 4 } ]\n"
        "parameters { key: \"execute_delay_ms\" value { string_value: \"2\" } }\n";
    world *w = *state;
    world_load(w, "repeat", repeat_config);
    world_load(w, "identity", slow);
    world_load(w, "stream", STREAM("max_inflight_requests: 2 "));
    run_stream(w, "stream", 5);
}

/* The decoupled model sends its responses on the thread that executes it. */
static void test_a_member_on_the_calling_thread_is_limited(void **state) {
    static const char io[] = "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
                             "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n";
    static const char caller[] =
        "parameters { key: \"kelp_execute_on\" value { string_value: \"caller\" } }\n";
    world *w = *state;
    char burst[1024], slow[1024];
    snprintf(burst, sizeof burst,
             "backend: \"burst\" model_transaction_policy { decoupled: true }\n%s%s", io, caller);
    snprintf(slow, sizeof slow,
             "backend: \"burst\" instance_group [ { kind: KIND_CPU count: 4 } ]\n%s"
             "parameters { key: \"delay_ms\" value { string_value: \"2\" } }\n",
             io);
    world_load(w, "repeat", burst);
    world_load(w, "identity", slow);
    world_load(
        w, "stream",
        "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
        "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n"
        "ensemble_scheduling { max_inflight_requests: 2 " STEP("repeat", "IN", "IN", "OUT", "value")
            STEP("identity", "IN", "value", "OUT", "OUT") "}\n");
    run_stream(w, "stream", 5);
}

static const char slow_stream_config[] =
    "backend: \"identity\"\n"
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
    "parameters { key: \"kelp_execute_on\" value { string_value: \"instance\" } }\n"
    "parameters { key: \"execute_delay_ms\" value { string_value: \"50\" } }\n";

/* Clients that do not ask for empty final responses find the end of a stream by this flag. */
static void test_the_last_response_of_a_stream_has_the_flag_final(void **state) {
    static const int64_t shape[] = {2};
    world *w = *state;
    collector c = {0};
    world_load(w, "repeat", repeat_config);
    world_load(w, "identity", slow_stream_config);
    world_load(w, "stream", STREAM(""));
    call_init(&c.base, w->server, "stream", -1);
    ok(TRITONSERVER_InferenceRequestSetResponseCallback(c.base.request, c.base.allocator, &c.base,
                                                        collect, &c));
    call_input(&c.base, "IN", TRITONSERVER_TYPE_INT32, shape, 1, pair, sizeof pair);
    call_run(&c.base);
    assert_int_equal(c.count, 2);
    assert_int_equal(c.base.finals, 1);
    assert_int_equal(c.flags, TRITONSERVER_RESPONSE_COMPLETE_FINAL);
    call_deinit(&c.base);
}

static void test_a_decoupled_ensemble_may_send_no_response(void **state) {
    static const int64_t none[] = {0};
    world *w = *state;
    call c;
    world_load(w, "repeat", repeat_config);
    world_load(w, "identity", identity_config);
    world_load(w, "stream", STREAM(""));
    call_init(&c, w->server, "stream", -1);
    call_input(&c, "IN", TRITONSERVER_TYPE_INT32, none, 1, pair, 0);
    call_run(&c);
    assert_int_equal(c.responses, 0);
    call_deinit(&c);
}

/* Two decoupled steps: IN = {2, 3} gives the responses of {2, 3}, each as a stream of its own. */
static void test_decoupled_steps_follow_each_other(void **state) {
    world *w = *state;
    world_load(w, "repeat", repeat_config);
    world_load(w, "again", repeat_config);
    world_load(
        w, "stream",
        "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
        "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n"
        "ensemble_scheduling { max_inflight_requests: 1 " STEP("repeat", "IN", "IN", "OUT", "value")
            STEP("again", "IN", "value", "OUT", "OUT") "}\n");
    run_stream(w, "stream", 0);
}

/* ---- failures ---- */

typedef struct ordered {
    call base;
    atomic_uint *finished;
    unsigned position;
} ordered;

static void note_position(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                          void *userp) {
    ordered *o = userp;
    if (response)
        ok(TRITONSERVER_InferenceResponseDelete(response));
    o->position = atomic_fetch_add(o->finished, 1);
    pthread_mutex_lock(&o->base.lock);
    o->base.finals += (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    pthread_cond_broadcast(&o->base.changed);
    pthread_mutex_unlock(&o->base.lock);
}

static void test_steps_have_the_priority_of_the_request(void **state) {
    static const char member[] =
        "backend: \"identity\" max_batch_size: 1\n"
        "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
        "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
        "dynamic_batching { priority_levels: 2 default_priority_level: 2 }\n"
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
        "parameters { key: \"execute_delay_ms\" value { string_value: \"100\" } }\n";
    static const int64_t shape[] = {1, 2};
    world *w = *state;
    ordered requests[3] = {0};
    atomic_uint finished = 0;
    world_load(w, "slow", member);
    world_load(w, "first", "max_batch_size: 1\n" ONE_STEP_OF("slow", "INPUT0", "OUTPUT0"));
    for (int i = 0; i < 3; i++) {
        ordered *o = &requests[i];
        o->finished = &finished;
        call_init(&o->base, w->server, "first", -1);
        ok(TRITONSERVER_InferenceRequestSetResponseCallback(o->base.request, o->base.allocator,
                                                            &o->base, note_position, o));
        ok(TRITONSERVER_InferenceRequestSetPriority(o->base.request, i == 2 ? 1 : 0));
        call_input(&o->base, "IN", TRITONSERVER_TYPE_INT32, shape, 2, pair, sizeof pair);
        call_start(&o->base);
    }
    for (int i = 0; i < 3; i++)
        call_wait(&requests[i].base);
    assert_true(requests[2].position < requests[1].position);
    for (int i = 0; i < 3; i++)
        call_deinit(&requests[i].base);
}

static void expect_label(call *c, const char *label) {
    const char *found = NULL;
    ok(TRITONSERVER_InferenceResponseOutputClassificationLabel(c->response, 0, 1, &found));
    if (label != NULL)
        assert_string_equal(found, label);
    else
        assert_null(found);
}

static void run_for_label(world *w, const char *model, const char *label) {
    call c;
    call_init(&c, w->server, model, -1);
    put_pair(&c);
    call_run(&c);
    expect_label(&c, label);
    call_deinit(&c);
}

static void test_outputs_have_the_labels_of_their_members(void **state) {
    world *w = *state;
    repo_model(&w->r, "labelled",
               "backend: \"identity\"\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] "
               "label_filename: \"labels.txt\" } ]\n");
    repo_file(&w->r, "labelled/labels.txt", "zero\none\n");
    ok(TRITONSERVER_ServerLoadModel(w->server, "labelled"));
    world_load(w, "plain", MEMBER("identity"));
    world_load(w, "inner", ONE_STEP("labelled"));
    world_load(
        w, "outer",
        INT32_IO("2") "ensemble_scheduling { " STEP("inner", "IN", "IN", "OUT", "OUT") "}\n");
    world_load(w, "without", ONE_STEP("plain"));
    repo_model(&w->r, "own",
               "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"
               "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ 2 ] "
               "label_filename: \"own.txt\" } ]\n"
               "ensemble_scheduling { " STEP("labelled", "INPUT0", "IN", "OUTPUT0", "OUT") "}\n");
    repo_file(&w->r, "own/own.txt", "null\nuno\n");
    ok(TRITONSERVER_ServerLoadModel(w->server, "own"));
    run_for_label(w, "inner", "one");
    run_for_label(w, "outer", "one");
    run_for_label(w, "own", "uno");
    run_for_label(w, "without", NULL);
    world_unload(w, "labelled");
    ok(TRITONSERVER_ServerLoadModel(w->server, "labelled"));
    run_for_label(w, "inner", "one");
}

static void test_the_failure_of_a_member_names_it(void **state) {
    call c;
    world_load(*state, "fail", MEMBER("misbehave"));
    world_load(*state, "bad", ONE_STEP("fail"));
    call_init(&c, ((world *)*state)->server, "bad", -1);
    put_pair(&c);
    for (int i = 0; i < 2; i++) {
        call_run(&c);
        call_fails(&c, TRITONSERVER_ERROR_INTERNAL,
                   "in ensemble 'bad', step[0] of model 'fail': the model has caught fire");
        assert_int_equal(c.responses, 1);
        call_clear(&c);
    }
    char *stats = statistics(*state, "bad");
    contains(stats, "\"fail\":{\"count\":2");
    free(stats);
    char *page = metrics_of(((world *)*state)->server);
    contains(page, "{model=\"fail\",reason=\"BACKEND\",version=\"1\"} 2\n");
    contains(page, "{model=\"bad\",reason=\"OTHER\",version=\"1\"} 2\n");
    free(page);
    call_deinit(&c);
}

static void test_failures_of_clients_buffers_fail_the_request(void **state) {
    float a[32], b[32];
    call c;
    load_chain(*state);
    call_init(&c, ((world *)*state)->server, "chain", -1);
    put_chain(&c, a, b);
    c.fail_allocation = true;
    call_run(&c);
    call_fails(&c, TRITONSERVER_ERROR_UNAVAILABLE, "no room for outputs");
    call_deinit(&c);
}

/* A response after the release of the request, and none before. */
static void test_late_responses_continue_the_flow(void **state) {
    static const int32_t negative[] = {-1, 2};
    call c;
    world_load(*state, "late", MEMBER("late"));
    world_load(*state, "patient", ONE_STEP("late"));
    call_init(&c, ((world *)*state)->server, "patient", -1);
    put_pair(&c);
    call_run(&c);
    assert_int_equal(c.responses, 1);
    ok(TRITONSERVER_InferenceResponseError(c.response));
    call_clear(&c);
    ok(TRITONSERVER_InferenceRequestRemoveAllInputs(c.request));
    call_input(&c, "IN", TRITONSERVER_TYPE_INT32, two, 1, negative, sizeof negative);
    call_run(&c);
    call_fails(&c, TRITONSERVER_ERROR_INTERNAL, "it went wrong later");
    call_deinit(&c);
}

static void test_the_failure_of_a_stream_ends_it_once(void **state) {
    static const int64_t shape[] = {3};
    static const int32_t values[] = {1, 2, 3};
    world *w = *state;
    call c;
    world_load(w, "repeat", repeat_config);
    world_load(w, "real",
               "backend: \"identity\"\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "output [ { name: \"OTHER\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n");
    world_load(w, "stream",
               "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "ensemble_scheduling { " STEP("repeat", "IN", "IN", "OUT", "value")
                   STEP("real", "INPUT0", "value", "OTHER", "OUT") "}\n");
    call_init(&c, w->server, "stream", -1);
    call_input(&c, "IN", TRITONSERVER_TYPE_INT32, shape, 1, values, sizeof values);
    for (int i = 0; i < 3; i++) {
        call_run(&c);
        assert_int_equal(c.responses, 1);
        TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseError(c.response);
        assert_non_null(error);
        contains(TRITONSERVER_ErrorMessage(error), "in ensemble 'stream', step[1] of model 'real'");
        TRITONSERVER_ErrorDelete(error);
        call_clear(&c);
    }
    call_deinit(&c);
}

/* ---- cache ---- */

static int set_up_cache(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                             .cache = "local",
                                             .caches = KELP_TEST_BACKENDS,
                                             .cache_config = "{\"size\": 1048576}"});
}

static void test_a_cached_response_ends_with_its_members(void **state) {
    static const char config[] =
        "response_cache { enable: true }\n" ONE_STEP_OF("inner", "IN", "OUT");
    static const char inner[] = ONE_STEP_OF("identity", "INPUT0", "OUTPUT0");
    world *w = *state;
    call c;
    world_load(w, "identity", identity_config);
    world_load(w, "inner", inner);
    world_load(w, "cached", config);
    call_init(&c, w->server, "cached", -1);
    put_pair(&c);
    for (int i = 0; i < 4; i++) {
        size_t size_bytes = 0;
        if (i == 2)
            world_load(w, "identity", identity_config); /* an update in place */
        if (i == 3) {
            repo_file(&w->r, "identity/1/file", "new");
            ok(TRITONSERVER_ServerLoadModel(w->server, "identity"));
        }
        call_run(&c);
        assert_memory_equal(call_output(&c, "OUT", &size_bytes), pair, sizeof pair);
        call_clear(&c);
        char *stats = statistics(w, "cached");
        const char *hits = strstr(stats, "\"cache_hit\":");
        assert_non_null(hits);
        assert_int_equal(number_after(hits, "\"count\":"), i < 3 ? i : 2);
        free(stats);
    }
    call_deinit(&c);
}

/* ---- cancellation ---- */

static void test_cancellation_reaches_running_steps(void **state) {
    world *w = *state;
    call c;
    world_load(w, "identity", identity_config);
    world_load(w, "slow",
               "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "ensemble_scheduling { " STEP("identity", "INPUT0", "IN", "OUTPUT0", "x")
                   STEP("identity", "INPUT0", "x", "OUTPUT0", "OUT") "}\n");
    call_init(&c, w->server, "slow", -1);
    put_pair(&c);
    ok(TRITONSERVER_InferenceRequestSetIntParameter(c.request, "delay_ms", 30000));
    call_start(&c);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    ok(TRITONSERVER_InferenceRequestCancel(c.request));
    call_wait(&c);
    call_fails(&c, TRITONSERVER_ERROR_CANCELLED, "in ensemble 'slow'");
    call_deinit(&c);
}

/* ---- properties of requests ---- */

static const char *text_parameter(TRITONSERVER_InferenceResponse *response, const char *wanted) {
    uint32_t count = 0;
    ok(TRITONSERVER_InferenceResponseParameterCount(response, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *name = NULL;
        TRITONSERVER_ParameterType type;
        const void *value = NULL;
        ok(TRITONSERVER_InferenceResponseParameter(response, i, &name, &type, &value));
        if (strcmp(name, wanted) == 0 && type == TRITONSERVER_PARAMETER_STRING)
            return value;
    }
    return NULL;
}

static void test_parameters_and_sequences_are_forwarded(void **state) {
    world *w = *state;
    call c;
    world_load(w, "identity", identity_config);
    world_load(w, "echo",
               "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
               "ensemble_scheduling { " STEP("identity", "INPUT0", "IN", "OUTPUT0", "OUT") "}\n");
    call_init(&c, w->server, "echo", -1);
    put_pair(&c);
    ok(TRITONSERVER_InferenceRequestSetId(c.request, "request-7"));
    ok(TRITONSERVER_InferenceRequestSetBoolParameter(c.request, "echo", true));
    ok(TRITONSERVER_InferenceRequestSetStringParameter(c.request, "sequence_id", "from-member"));
    ok(TRITONSERVER_InferenceRequestSetCorrelationId(c.request, 12));
    call_run(&c);
    const char *id = NULL;
    ok(TRITONSERVER_InferenceResponseError(c.response));
    ok(TRITONSERVER_InferenceResponseId(c.response, &id));
    assert_string_equal(id, "request-7");
    assert_non_null(text_parameter(c.response, "sequence_id"));
    assert_string_equal(text_parameter(c.response, "sequence_id"), "from-member");
    call_deinit(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_steps_run_in_the_order_of_the_data, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_unrequested_steps_do_not_run, set_up, world_close),
        cmocka_unit_test_setup_teardown(test_tensors_of_all_sizes_pass_through, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_a_missing_output_is_an_absent_optional_input,
                                        set_up_test_backends, world_close),
        cmocka_unit_test_setup_teardown(test_an_ensemble_can_contain_an_ensemble, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_batches_of_one_pass_through_models_without_batching,
                                        set_up, world_close),
        cmocka_unit_test_setup_teardown(test_each_response_of_a_decoupled_member_is_an_iteration,
                                        set_up, world_close),
        cmocka_unit_test_setup_teardown(test_the_number_of_requests_in_flight_is_limited, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_a_member_on_the_calling_thread_is_limited,
                                        set_up_test_backends, world_close),
        cmocka_unit_test_setup_teardown(test_the_last_response_of_a_stream_has_the_flag_final,
                                        set_up, world_close),
        cmocka_unit_test_setup_teardown(test_a_decoupled_ensemble_may_send_no_response, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_decoupled_steps_follow_each_other, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_the_failure_of_a_stream_ends_it_once, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_a_cached_response_ends_with_its_members, set_up_cache,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_steps_have_the_priority_of_the_request, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_outputs_have_the_labels_of_their_members, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_the_failure_of_a_member_names_it, set_up_test_backends,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_failures_of_clients_buffers_fail_the_request, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_late_responses_continue_the_flow, set_up_test_backends,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_cancellation_reaches_running_steps, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_parameters_and_sequences_are_forwarded, set_up,
                                        world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
