/* SPDX-License-Identifier: Apache-2.0 */
/* Models that batch sequences, through the C API. */
#include "server/support.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <time.h>

enum {
    START = TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
    END = TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
};
enum { SUM, AT_START, AT_READY, AT_END, CORRID, POSITION, COUNT, VALUES };

#define IO                                                   \
    "backend: \"sequence\" max_batch_size: 4\n"              \
    "input { name: \"IN\" data_type: TYPE_INT32 dims: 1 }\n" \
    "output { name: \"OUT\" data_type: TYPE_INT32 dims: 7 }\n"
#define CONTROL(name, kind)                                                     \
    "control_input { name: \"" name "\" control { kind: CONTROL_SEQUENCE_" kind \
    " int32_false_true: [ 0, 1 ] } }\n"
#define CONTROLS                                                                \
    CONTROL("START", "START")                                                   \
    CONTROL("READY", "READY")                                                   \
    CONTROL("END", "END")                                                       \
    "control_input { name: \"CORRID\" control { kind: CONTROL_SEQUENCE_CORRID " \
    "data_type: TYPE_UINT64 } }\n"
#define LIVE "max_sequence_idle_microseconds: 60000000 "
#define STATE(more)                                                                  \
    "state { input_name: \"SUM_IN\" output_name: \"SUM_OUT\" data_type: TYPE_INT32 " \
    "dims: 1 " more " }\n"

static const server_setup setup = {.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                   .backends = KELP_TEST_BACKENDS};

static int set_up(void **state) {
    return world_open(state, &setup);
}

/* A request to a model of a sequence. */
typedef struct turn {
    call c;
    int32_t value;
} turn;

static void turn_init(turn *t, const world *w, uint64_t id, uint32_t flags, int32_t value) {
    static const int64_t shape[] = {1, 1};
    call_init(&t->c, w->server, "m", -1);
    t->value = value;
    ok(TRITONSERVER_InferenceRequestSetCorrelationId(t->c.request, id));
    ok(TRITONSERVER_InferenceRequestSetFlags(t->c.request, flags));
    call_input(&t->c, "IN", TRITONSERVER_TYPE_INT32, shape, 2, &t->value, sizeof t->value);
}

static void values_of(turn *t, int32_t *out) {
    size_t size_bytes = 0;
    const void *data = call_output(&t->c, "OUT", &size_bytes);
    assert_int_equal(size_bytes, VALUES * sizeof *out);
    memcpy(out, data, size_bytes);
}

/* Runs a request and returns its values. */
static int32_t run(const world *w, uint64_t id, uint32_t flags, int32_t value, int32_t *out) {
    int32_t values[VALUES];
    turn t;
    turn_init(&t, w, id, flags, value);
    call_run(&t.c);
    values_of(&t, out != NULL ? out : values);
    call_deinit(&t.c);
    return out != NULL ? out[SUM] : values[SUM];
}

static void is_not_accepted(const world *w, uint64_t id, uint32_t flags, const char *text) {
    turn t;
    turn_init(&t, w, id, flags, 1);
    fails(TRITONSERVER_ServerInferAsync(w->server, t.c.request, NULL),
          TRITONSERVER_ERROR_INVALID_ARG, text);
    call_deinit(&t.c);
}

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void sequences_have_controls_and_state(void **state) {
    world *w = *state;
    int32_t values[VALUES];
    world_load(w, "m", IO "sequence_batching { " LIVE CONTROLS STATE("") " }");
    assert_int_equal(run(w, 11, START, 5, values), 5);
    assert_int_equal(values[AT_START], 1);
    assert_int_equal(values[AT_READY], 1);
    assert_int_equal(values[AT_END], 0);
    assert_int_equal(values[CORRID], 11);
    assert_int_equal(run(w, 12, START, 100, NULL), 100);
    assert_int_equal(run(w, 11, 0, 6, values), 11);
    assert_int_equal(values[AT_START], 0);
    assert_int_equal(run(w, 12, END, 1, values), 101);
    assert_int_equal(values[AT_END], 1);
    assert_int_equal(run(w, 11, END, 1, NULL), 12);
    assert_int_equal(run(w, 11, START | END, 1, values), 1);
    is_not_accepted(w, 11, END, "must specify the START flag on the first request");
    is_not_accepted(w, 0, START, "must specify a non-zero or non-empty correlation ID");
}

static void state_of_a_failed_request_is_not_stored(void **state) {
    world *w = *state;
    turn t;
    world_load(w, "m", IO "sequence_batching { " LIVE CONTROLS STATE("") " }");
    assert_int_equal(run(w, 1, START, 5, NULL), 5);
    turn_init(&t, w, 1, 0, -2);
    call_run(&t.c);
    call_fails(&t.c, TRITONSERVER_ERROR_INTERNAL, "IN is negative");
    call_deinit(&t.c);
    assert_int_equal(run(w, 1, END, 1, NULL), 6);
}

static void null_requests_fill_slots_and_are_not_counted(void **state) {
    world *w = *state;
    int32_t values[VALUES];
    world_load(w, "m",
               IO "instance_group { count: 1 } sequence_batching { direct { } " LIVE CONTROLS STATE(
                   "") " }");
    void *library = dlopen(KELP_TEST_BACKENDS "/sequence/libtriton_sequence.so", RTLD_NOW);
    assert_non_null(library);
    atomic_int *nulls = dlsym(library, "sequence_nulls");
    *nulls = 0;
    assert_int_equal(run(w, 1, START, 5, NULL), 5);
    assert_int_equal(run(w, 2, START, 7, values), 7);
    assert_int_equal(values[POSITION], 1);
    assert_int_equal(values[COUNT], 2);
    assert_int_equal(*nulls, 1);
    assert_int_equal(run(w, 1, END, 1, values), 6);
    assert_int_equal(values[POSITION], 0);
    assert_int_equal(values[COUNT], 1);
    assert_int_equal(run(w, 2, END, 1, NULL), 8);
    assert_int_equal(*nulls, 2);
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelStatistics(w->server, "m", -1, &message));
    char *text = message_text(message);
    contains(text, "\"inference_count\":4,");
    free(text);
    dlclose(library);
}

static void oldest_sequences_share_an_instance(void **state) {
    world *w = *state;
    int32_t values[VALUES];
    world_load(w, "m",
               IO "sequence_batching { oldest { max_candidate_sequences: 2 } " LIVE CONTROLS STATE(
                   "use_same_buffer_for_input_output: true use_growable_memory: true") " }");
    assert_int_equal(run(w, 1, START, 5, NULL), 5);
    assert_int_equal(run(w, 2, START, 7, values), 7);
    assert_int_equal(values[COUNT], 1); /* no null requests */
    assert_int_equal(run(w, 1, END, 1, NULL), 6);
    assert_int_equal(run(w, 2, END, 1, NULL), 8);
}

static void sequences_begin_with_the_initial_state(void **state) {
    world *w = *state;
    static const char initial[] = "initial_state { name: \"first\" data_type: TYPE_INT32 dims: 1 "
                                  "data_file: \"forty\" }";
    char config[2048];
    snprintf(config, sizeof config, "%ssequence_batching { %s%s%s }", IO, CONTROLS,
             "state { input_name: \"SUM_IN\" output_name: \"SUM_OUT\" data_type: TYPE_INT32 dims: "
             "1 ",
             initial);
    strcat(config, "}");
    repo_model(&w->r, "m", config);
    fails(TRITONSERVER_ServerLoadModel(w->server, "m"), TRITONSERVER_ERROR_NOT_FOUND,
          "initial state 'first' of state 'SUM_IN'");
    repo_version(&w->r, "m", "initial_state");
    repo_file(&w->r, "m/initial_state/forty", "*");
    fails(TRITONSERVER_ServerLoadModel(w->server, "m"), TRITONSERVER_ERROR_INVALID_ARG,
          "'forty': expected 4 bytes, found 1");
    repo_file(&w->r, "m/initial_state/forty", "(\1\1\1");
    ok(TRITONSERVER_ServerLoadModel(w->server, "m"));
    assert_int_equal(run(w, 1, START, 1, NULL), 0x01010129);
    assert_int_equal(run(w, 1, START, 2, NULL), 0x0101012a); /* START begins again */
}

static void idle_sequences_lose_their_state(void **state) {
    world *w = *state;
    world_load(w, "m",
               IO
               "sequence_batching { max_sequence_idle_microseconds: 2000 " CONTROLS STATE("") " }");
    assert_int_equal(run(w, 1, START, 5, NULL), 5);
    for (int i = 0; i < 1000; i++) {
        turn t;
        turn_init(&t, w, 1, 0, 1);
        sleep_ms(10);
        TRITONSERVER_Error *error = TRITONSERVER_ServerInferAsync(w->server, t.c.request, NULL);
        if (error == NULL)
            call_wait(&t.c);
        call_deinit(&t.c);
        if (error != NULL) {
            fails(error, TRITONSERVER_ERROR_INVALID_ARG, "must specify the START flag");
            break;
        }
    }
    assert_int_equal(run(w, 2, START, 1, NULL), 1); /* in the slot of 1 */
    assert_int_equal(run(w, 1, START, 1, NULL), 1);
}

static void requests_of_the_backlog_wait_for_a_slot(void **state) {
    world *w = *state;
    turn second[2];
    int32_t values[VALUES];
    world_load(w, "m",
               "backend: \"sequence\" max_batch_size: 1\n"
               "input { name: \"IN\" data_type: TYPE_INT32 dims: 1 }\n"
               "output { name: \"OUT\" data_type: TYPE_INT32 dims: 7 }\n"
               "sequence_batching { " LIVE CONTROLS STATE("") " }");
    assert_int_equal(run(w, 1, START, 5, NULL), 5);
    turn_init(&second[0], w, 2, START, 7);
    turn_init(&second[1], w, 2, END, 8);
    call_start(&second[0].c);
    call_start(&second[1].c);
    assert_int_equal(run(w, 1, 0, 1, NULL), 6);
    assert_int_equal(second[0].c.finals, 0);
    assert_int_equal(run(w, 1, END, 1, NULL), 7);
    for (int i = 0; i < 2; i++) {
        call_wait(&second[i].c);
        values_of(&second[i], values);
        assert_int_equal(values[SUM], i == 0 ? 7 : 15);
        call_deinit(&second[i].c);
    }
}

static void timeouts_reject_requests_of_the_backlog(void **state) {
    world *w = *state;
    turn t;
    world_load(w, "m",
               "backend: \"sequence\" max_batch_size: 1\n"
               "input { name: \"IN\" data_type: TYPE_INT32 dims: 1 }\n"
               "output { name: \"OUT\" data_type: TYPE_INT32 dims: 7 }\n"
               "sequence_batching { " LIVE CONTROLS STATE("") " }");
    assert_int_equal(run(w, 1, START, 5, NULL), 5);
    turn_init(&t, w, 2, START, 7);
    ok(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(t.c.request, 1000));
    call_run(&t.c);
    call_fails(&t.c, TRITONSERVER_ERROR_UNAVAILABLE,
               "timeout of the corresponding sequence has been expired");
    call_deinit(&t.c);
    assert_int_equal(run(w, 1, END, 5, NULL), 10);
}

static void cancelled_requests_leave_the_backlog(void **state) {
    world *w = *state;
    turn t[2];
    world_load(w, "m",
               "backend: \"sequence\" max_batch_size: 1\n"
               "input { name: \"IN\" data_type: TYPE_INT32 dims: 1 }\n"
               "output { name: \"OUT\" data_type: TYPE_INT32 dims: 7 }\n"
               "sequence_batching { " LIVE CONTROLS STATE("") " }");
    assert_int_equal(run(w, 1, START, 5, NULL), 5);
    for (int i = 0; i < 2; i++) {
        turn_init(&t[i], w, 2, i == 0 ? START : END, 7);
        call_start(&t[i].c);
    }
    ok(TRITONSERVER_InferenceRequestCancel(t[1].c.request));
    for (int i = 0; i < 2; i++) {
        call_wait(&t[i].c); /* although 1 still holds the slot */
        call_fails(&t[i].c, TRITONSERVER_ERROR_CANCELLED, "cancelled");
        call_deinit(&t[i].c);
    }
    assert_int_equal(run(w, 1, END, 1, NULL), 6);
}

static void iterative_requests_are_executed_again(void **state) {
    world *w = *state;
    uint64_t id = 1;
    uint32_t flags = 1;
    int32_t values[VALUES];
    turn t;
    world_load(w, "m", IO "sequence_batching { iterative_sequence: true " STATE("") " }");
    for (int i = 0; i < 3; i++) {
        turn_init(&t, w, 0, 0, 20 + i);
        call_run(&t.c);
        values_of(&t, values);
        assert_int_equal(values[SUM], 20 + i);
        ok(TRITONSERVER_InferenceRequestCorrelationId(t.c.request, &id));
        ok(TRITONSERVER_InferenceRequestFlags(t.c.request, &flags));
        assert_int_equal(id, 0);
        assert_int_equal(flags, 0);
        call_deinit(&t.c);
    }
}

static void requests_are_reusable(void **state) {
    world *w = *state;
    int32_t values[VALUES];
    turn t;
    world_load(w, "m", IO "sequence_batching { " LIVE CONTROLS STATE("") " }");
    turn_init(&t, w, 3, START, 2);
    call_run(&t.c);
    for (int i = 2; i < 20; i++) {
        call_clear(&t.c);
        ok(TRITONSERVER_InferenceRequestSetFlags(t.c.request, 0));
        call_run(&t.c);
        values_of(&t, values);
        assert_int_equal(values[SUM], 2 * i);
    }
    call_deinit(&t.c);
    assert_int_equal(run(w, 3, END, 2, NULL), 40);
}

static void *stop(void *userp) {
    return TRITONSERVER_ServerStop(((const world *)userp)->server);
}

static void sequences_continue_while_the_server_stops(void **state) {
    world *w = *state;
    pthread_t thread;
    void *error = NULL;
    bool ready = true;
    world_load(w, "m", IO "sequence_batching { " LIVE CONTROLS STATE("") " }");
    assert_int_equal(run(w, 1, START, 2, NULL), 2);
    assert_int_equal(pthread_create(&thread, NULL, stop, w), 0);
    while (ready) {
        TRITONSERVER_Error *stopping = TRITONSERVER_ServerIsReady(w->server, &ready);
        ready = ready && stopping == NULL;
        TRITONSERVER_ErrorDelete(stopping);
    }
    turn t;
    turn_init(&t, w, 2, START, 1);
    fails(TRITONSERVER_ServerInferAsync(w->server, t.c.request, NULL),
          TRITONSERVER_ERROR_UNAVAILABLE, "Server exiting");
    call_deinit(&t.c);
    assert_int_equal(run(w, 1, 0, 3, NULL), 5);
    assert_int_equal(run(w, 1, END, 3, NULL), 8);
    pthread_join(thread, &error);
    ok(error);
}

/* An execution with a null request begins after the model was unloaded. */
static void queued_requests_run_while_the_model_is_unloaded(void **state) {
    world *w = *state;
    int32_t values[VALUES];
    turn t;
    world_load(w, "m",
               IO
               "instance_group { count: 1 } sequence_batching { " LIVE "direct { "
               "max_queue_delay_microseconds: 100000 minimum_slot_utilization: 1 } " CONTROLS STATE(
                   "") " }");
    assert_int_equal(run(w, 1, START, 2, NULL), 2);
    turn_init(&t, w, 2, START | END, 3);
    call_start(&t.c);
    ok(TRITONSERVER_ServerUnloadModel(w->server, "m"));
    call_wait(&t.c);
    values_of(&t, values);
    assert_int_equal(values[SUM], 3);
    assert_int_equal(values[COUNT], 2);
    call_deinit(&t.c);
}

/* An abandoned sequence has the only slot. When the model is unloaded, the backlog does not wait
 * for its idle timeout, an hour. */
static void unloading_ends_idle_sequences(void **state) {
    world *w = *state;
    turn t;
    world_load(w, "m",
               IO "instance_group { count: 1 } sequence_batching { "
                  "max_sequence_idle_microseconds: 3600000000 oldest { max_candidate_sequences: 1 "
                  "} " CONTROLS STATE("") " }");
    assert_int_equal(run(w, 1, START, 2, NULL), 2);
    turn_init(&t, w, 2, START | END, 3);
    call_start(&t.c);
    world_unload(w, "m");
    call_wait(&t.c);
    call_deinit(&t.c);
}

static void samples_run_as_sequences(void **state) {
    world *w = *state;
    world_load(
        w, "m",
        IO "sequence_batching { " LIVE CONTROLS STATE(
            "") " }"
                "model_warmup { name: \"s\" batch_size: 2 count: 3 inputs { key: \"IN\" value { "
                "data_type: TYPE_INT32 dims: 1 zero_data: true } } }");
    assert_int_equal(run(w, 1, START | END, 5, NULL), 5);
}

/* Samples may contain controls, as in Triton; their values replace those of the server. */
static void samples_may_contain_controls(void **state) {
    static const char config[] =
        IO "sequence_batching { " LIVE CONTROLS "}"
           "model_warmup { name: \"s\" batch_size: 2 count: 3 inputs { key: \"IN\" value { "
           "data_type: TYPE_INT32 dims: 1 zero_data: true } } inputs { key: \"START\" value { "
           "data_type: %s dims: %d zero_data: true } } }";
    world *w = *state;
    char text[4096];
    snprintf(text, sizeof text, config, "TYPE_INT32", 1);
    world_load(w, "m", text);
    assert_int_equal(run(w, 1, START | END, 5, NULL), 5);
    snprintf(text, sizeof text, config, "TYPE_INT32", 2);
    repo_model(&w->r, "long", text);
    fails(TRITONSERVER_ServerLoadModel(w->server, "long"), TRITONSERVER_ERROR_INVALID_ARG,
          "failed to run warmup sample 's': input 'START': expected one element of INT32, found 8 "
          "bytes of INT32");
    snprintf(text, sizeof text, config, "TYPE_FP32", 1);
    repo_model(&w->r, "real", text);
    fails(TRITONSERVER_ServerLoadModel(w->server, "real"), TRITONSERVER_ERROR_INVALID_ARG,
          "failed to run warmup sample 's': input 'START': expected one element of INT32, found 4 "
          "bytes of FP32");
}

/* ---- many threads ---- */

enum { THREADS = 4, ROUNDS = 40, LENGTH = 8 };

typedef struct client {
    const world *w;
    uint64_t id;
    unsigned wrong; /* responses */
} client;

/* Returns true if the response is a success with the expected sum. */
static bool has_sum(turn *t, int32_t sum) {
    int32_t values[VALUES];
    TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseError(t->c.response);
    TRITONSERVER_ErrorDelete(error);
    if (error != NULL)
        return false;
    values_of(t, values);
    return values[SUM] == sum;
}

/* Submits a whole sequence, and cancels a request of every third one. Requests succeed in order,
 * with the sums of this sequence, up to a cancellation. */
static void run_sequence(client *me, int round) {
    turn turns[LENGTH];
    int accepted = 0, cancelled = round % 3 == 0 ? round / 3 % LENGTH : LENGTH, succeeded = 0;
    for (int i = 0; i < LENGTH; i++) {
        turn_init(&turns[i], me->w, me->id, i == 0 ? START : i == LENGTH - 1 ? END : 0, i + 1);
        TRITONSERVER_Error *error =
            TRITONSERVER_ServerInferAsync(me->w->server, turns[i].c.request, NULL);
        TRITONSERVER_ErrorDelete(error);
        if (error != NULL) { /* the sequence has ended */
            me->wrong += cancelled == LENGTH;
            call_deinit(&turns[i].c);
            break;
        }
        accepted++;
        if (i == cancelled)
            TRITONSERVER_ErrorDelete(TRITONSERVER_InferenceRequestCancel(turns[i].c.request));
    }
    for (int i = 0; i < accepted; i++) {
        call_wait(&turns[i].c);
        if (has_sum(&turns[i], (i + 1) * (i + 2) / 2) && succeeded == i)
            succeeded++;
        else
            me->wrong += i < cancelled && cancelled == LENGTH;
        call_deinit(&turns[i].c);
    }
    me->wrong += cancelled == LENGTH && succeeded != LENGTH;
}

static void *run_client(void *userp) {
    for (int round = 0; round < ROUNDS; round++)
        run_sequence(userp, round);
    return NULL;
}

static void run_clients(world *w, const char *config) {
    client clients[THREADS];
    pthread_t threads[THREADS];
    world_load(w, "m", config);
    for (unsigned i = 0; i < THREADS; i++) {
        clients[i] = (client){.w = w, .id = i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, run_client, &clients[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(clients[i].wrong, 0);
    }
}

static void clients_of_direct_sequences_are_independent(void **state) {
    run_clients(
        *state, IO
        "instance_group { count: 2 } sequence_batching { direct { } " LIVE CONTROLS STATE("") " }");
}

static void clients_of_oldest_sequences_are_independent(void **state) {
    run_clients(*state, IO "instance_group { count: 2 } sequence_batching { " LIVE "oldest { "
                           "max_candidate_sequences: 1 } " CONTROLS STATE("") " }");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sequences_have_controls_and_state, set_up, world_close),
        cmocka_unit_test_setup_teardown(state_of_a_failed_request_is_not_stored, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(null_requests_fill_slots_and_are_not_counted, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(oldest_sequences_share_an_instance, set_up, world_close),
        cmocka_unit_test_setup_teardown(sequences_begin_with_the_initial_state, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(idle_sequences_lose_their_state, set_up, world_close),
        cmocka_unit_test_setup_teardown(requests_of_the_backlog_wait_for_a_slot, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(timeouts_reject_requests_of_the_backlog, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(cancelled_requests_leave_the_backlog, set_up, world_close),
        cmocka_unit_test_setup_teardown(iterative_requests_are_executed_again, set_up, world_close),
        cmocka_unit_test_setup_teardown(requests_are_reusable, set_up, world_close),
        cmocka_unit_test_setup_teardown(sequences_continue_while_the_server_stops, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(clients_of_direct_sequences_are_independent, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(clients_of_oldest_sequences_are_independent, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(queued_requests_run_while_the_model_is_unloaded, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(unloading_ends_idle_sequences, set_up, world_close),
        cmocka_unit_test_setup_teardown(samples_run_as_sequences, set_up, world_close),
        cmocka_unit_test_setup_teardown(samples_may_contain_controls, set_up, world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
