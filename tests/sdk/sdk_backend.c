/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend whose behavior is selected by the model's name, up to the first '-'. It makes typical
 * errors of backend authors and checks how the SDK handles them. A failed check ends the process.
 */
#include "sdk_backend.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static bool is(const char *name, const char *conduct) {
    size_t length = strlen(conduct);
    return strncmp(name, conduct, length) == 0 && (name[length] == '-' || name[length] == '\0');
}

static void pause_a_little(void) {
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* OUTPUT0 = {value, value + 1} */
static kelp_status *fill(kelp_backend_response *response, int32_t value) {
    static const int64_t two[] = {2};
    int32_t *out;
    KELP_TRY(kelp_backend_output(response, "OUTPUT0", KELP_I32, 1, two, &out));
    out[0] = value;
    out[1] = value + 1;
    return NULL;
}

static kelp_status *answer(kelp_backend_request *request, int32_t value) {
    kelp_backend_response *response;
    KELP_TRY(kelp_backend_respond(request, &response));
    return fill(response, value);
}

/* ---- responses ---- */

static kelp_status *midway(kelp_backend_request *request) {
    KELP_TRY(answer(request, 7));
    return KELP_ANNOTATE(KELP_ERROR(KELP_UNAVAILABLE, "the disk is full"), "cannot go on");
}

static kelp_status *twice(kelp_backend_request *request) {
    kelp_backend_response *response;
    KELP_TRY(answer(request, 7));
    KELP_TRY(kelp_backend_respond(request, &response));
    KELP_TRY(kelp_backend_send(response, KELP_BACKEND_FINAL, NULL));
    CHECK(fails_with(kelp_backend_send(response, 0, KELP_ERROR(KELP_INTERNAL, "lost")),
                     KELP_FAILED_PRECONDITION, "sent twice"));
    CHECK(fails_with(kelp_backend_respond(request, &response), KELP_FAILED_PRECONDITION,
                     "the final response to a request"));
    return NULL;
}

static kelp_status *error_after(kelp_backend_request *request) {
    kelp_backend_response *response;
    KELP_TRY(answer(request, 7));
    KELP_TRY(kelp_backend_respond(request, &response));
    KELP_TRY(kelp_backend_send(response, 0, NULL)); /* final, because the model is not decoupled */
    return KELP_ERROR(KELP_INTERNAL, "this message is not sent");
}

static kelp_status *release_twice(kelp_backend_request *request) {
    KELP_TRY(answer(request, 7));
    kelp_backend_release(request);
    kelp_backend_release(request);
    return KELP_ERROR(KELP_INTERNAL, "this message is not sent");
}

static kelp_status *dropped(kelp_backend_request *request) {
    kelp_backend_response *response;
    KELP_TRY(answer(request, 7));
    KELP_TRY(kelp_backend_respond(request, &response));
    kelp_backend_response_destroy(response);
    kelp_backend_response_destroy(response);
    return answer(request, 9);
}

static kelp_status *fail_twice(kelp_backend_request *request) {
    kelp_backend_fail(request, KELP_ERROR(KELP_NOT_FOUND, "the first failure"));
    kelp_backend_fail(request, KELP_ERROR(KELP_INTERNAL, "the second failure"));
    return KELP_ERROR(KELP_INTERNAL, "the third failure");
}

/* There is no state outside a sequence: this returns an error, and the request still gets a
 * response. */
static kelp_status *put_state(kelp_backend_request *request) {
    int32_t values[] = {1, 2};
    const kelp_tensor tensor = {.dtype = KELP_I32,
                                .rank = 1,
                                .shape = {2},
                                .strides = {1},
                                .device = {kDLCPU, 0},
                                .data = values};
    CHECK(fails_with(kelp_backend_put_state(request, "STATE", &tensor), KELP_INVALID_ARGUMENT,
                     "State configuration is missing for model"));
    return answer(request, 7);
}

/* ---- responses from other threads ---- */

static void detach(void *(*fn)(void *), void *userp) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fn, userp) == 0);
    pthread_detach(thread);
}

static void *late_thread(void *userp) {
    kelp_backend_request *request = userp;
    kelp_tensor x;
    pause_a_little();
    kelp_status *status = kelp_backend_input(request, "INPUT0", KELP_I32, 1, &x);
    if (!status)
        status = answer(request, 7);
    if (status)
        kelp_backend_fail(request, status);
    kelp_backend_release(request);
    return NULL;
}

static void *late_forget_thread(void *userp) {
    pause_a_little();
    kelp_backend_release(userp); /* without a response */
    return NULL;
}

static void *cancel_thread(void *userp) {
    kelp_backend_request *request = userp;
    while (!kelp_backend_request_is_cancelled(request))
        pause_a_little();
    kelp_backend_fail(request, KELP_ERROR(KELP_CANCELLED, "given up"));
    kelp_backend_release(request);
    return NULL;
}

static void *factory_thread(void *userp) {
    kelp_backend_factory *factory = userp;
    kelp_backend_response *response, *second;
    pause_a_little();
    CHECK(!kelp_backend_factory_is_cancelled(factory));
    CHECK(!kelp_backend_factory_respond(factory, &response));
    CHECK(!kelp_backend_factory_respond(factory, &second));
    CHECK(!fill(response, 7));
    CHECK(!kelp_backend_send(response, KELP_BACKEND_FINAL, NULL));
    CHECK(fails_with(kelp_backend_send(second, 0, NULL), KELP_FAILED_PRECONDITION,
                     "the final response to a request"));
    CHECK(fails_with(kelp_backend_factory_respond(factory, &second), KELP_FAILED_PRECONDITION, ""));
    CHECK(fails_with(kelp_backend_factory_finish(factory), KELP_FAILED_PRECONDITION, ""));
    kelp_backend_factory_destroy(factory);
    return NULL;
}

/* The factory is destroyed before its response is sent. */
static void *orphan_thread(void *userp) {
    kelp_backend_factory *factory = userp;
    kelp_backend_response *response;
    CHECK(!kelp_backend_factory_respond(factory, &response));
    kelp_backend_factory_destroy(factory);
    pause_a_little();
    CHECK(!fill(response, 7));
    CHECK(!kelp_backend_send(response, KELP_BACKEND_FINAL, NULL));
    return NULL;
}

static void *factory_forget_thread(void *userp) {
    kelp_backend_response *response;
    CHECK(!kelp_backend_factory_respond(userp, &response));
    kelp_backend_response_destroy(response);
    pause_a_little();
    kelp_backend_factory_destroy(userp);
    return NULL;
}

static kelp_status *with_factory(kelp_backend_request *request, void *(*fn)(void *)) {
    kelp_backend_factory *factory;
    KELP_TRY(kelp_backend_factory_create(request, &factory));
    kelp_backend_release(request);
    detach(fn, factory);
    return NULL;
}

static kelp_status *keep(kelp_backend_request *request, void *(*fn)(void *)) {
    kelp_backend_keep(request);
    detach(fn, request);
    return NULL;
}

/* ---- decoupled ---- */

static kelp_status *stream(kelp_backend_request *request, bool fails) {
    for (int i = 0; i < 3; i++) {
        kelp_backend_response *response;
        KELP_TRY(kelp_backend_respond(request, &response));
        KELP_TRY(fill(response, 7));
        KELP_TRY(kelp_backend_send(response, 0, NULL));
    }
    return fails ? KELP_ERROR(KELP_DATA_LOSS, "the stream broke") : NULL;
}

/* Two factories, one of which sends no response. */
static kelp_status *two_factories(kelp_backend_request *request) {
    kelp_backend_factory *one, *two;
    kelp_backend_response *response;
    KELP_TRY(kelp_backend_factory_create(request, &one));
    KELP_TRY(kelp_backend_factory_create(request, &two));
    KELP_TRY(kelp_backend_factory_respond(one, &response));
    KELP_TRY(fill(response, 7));
    KELP_TRY(kelp_backend_send(response, 0, NULL));
    detach(factory_forget_thread, two);
    kelp_backend_factory_destroy(one);
    return NULL;
}

static kelp_status *finish(kelp_backend_request *request) {
    kelp_backend_factory *factory;
    KELP_TRY(kelp_backend_factory_create(request, &factory));
    KELP_TRY(kelp_backend_factory_finish(factory));
    kelp_backend_factory_destroy(factory);
    return NULL;
}

/* ---- other models ---- */

static kelp_status *make_call(kelp_backend_request *request, const char *name,
                              kelp_backend_call **out) {
    kelp_backend_instance *instance = kelp_backend_request_instance(request);
    kelp_tensor x;
    KELP_TRY(kelp_backend_input(request, "INPUT0", KELP_I32, 1, &x));
    KELP_TRY(
        kelp_backend_call_create(kelp_backend_instance_model(instance), request, name, -1, out));
    return kelp_backend_call_input(*out, "INPUT0", &x);
}

static kelp_status *call_and_wait(kelp_backend_request *request, const char *name,
                                  size_t responses) {
    kelp_backend_call *call = NULL;
    kelp_tensor y = {0};
    kelp_status *status = make_call(request, name, &call);
    if (!status)
        CHECK(fails_with(kelp_backend_call_wait(call), KELP_FAILED_PRECONDITION, "not started"));
    if (!status)
        status = kelp_backend_call_wants(call, "OUTPUT0");
    if (!status)
        status = kelp_backend_call_start(call, NULL, NULL);
    if (!status)
        status = kelp_backend_call_wait(call);
    if (!status) {
        CHECK(kelp_backend_call_response_count(call) == responses);
        CHECK(fails_with(kelp_backend_call_output(call, 0, "OUTPUT9", 0, 1, &y), KELP_NOT_FOUND,
                         "no output 'OUTPUT9'"));
        CHECK(fails_with(kelp_backend_call_output(call, 0, "OUTPUT0", KELP_F32, 1, &y),
                         KELP_INVALID_ARGUMENT, "expected type FP32, found INT32"));
        CHECK(fails_with(kelp_backend_call_output(call, responses, "OUTPUT0", 0, 1, &y),
                         KELP_NOT_FOUND, "responses"));
        status = kelp_backend_call_output(call, responses - 1, "OUTPUT0", KELP_I32, 1, &y);
    }
    if (!status)
        status = answer(request, KELP_AT(const int32_t, &y, 0));
    kelp_backend_call_destroy(call);
    return status;
}

static kelp_status *abandon(kelp_backend_request *request) {
    kelp_backend_call *call = NULL;
    KELP_TRY(make_call(request, "cancel", &call));
    kelp_status *status = kelp_backend_call_start(call, NULL, NULL);
    kelp_backend_call_destroy(call); /* cancels the call and waits for it */
    return status ? status : answer(request, 7);
}

typedef struct seen {
    atomic_int count, failures, ends;
} seen;

static void on_stream(kelp_backend_call *call, const kelp_status *failure, bool is_last,
                      void *userp) {
    seen *s = userp;
    kelp_tensor y;
    if (is_last) {
        s->ends++;
        return;
    }
    s->count++;
    s->failures += failure != NULL;
    if (failure)
        return;
    CHECK(kelp_backend_call_response_count(call) == 1);
    CHECK(!kelp_backend_call_output(call, 0, "OUTPUT0", KELP_I32, 1, &y));
    CHECK(KELP_AT(const int32_t, &y, 1) == 8);
    kelp_backend_call_clear(call);
}

static kelp_status *call_stream(kelp_backend_request *request) {
    kelp_backend_call *call = NULL;
    seen s = {0};
    KELP_TRY(make_call(request, "stream", &call));
    kelp_status *status = kelp_backend_call_start(call, on_stream, &s);
    if (!status)
        status = kelp_backend_call_wait(call);
    kelp_backend_call_destroy(call);
    CHECK(status || (s.count == 3 && s.failures == 0 && s.ends == 1));
    return status ? status : answer(request, 7);
}

/* Cancellation of the request also cancels the call that it waits for. */
static kelp_status *call_cancel(kelp_backend_request *request) {
    return call_and_wait(request, "cancel", 1);
}

/* ---- definition ---- */

static kelp_status *conduct_of(const char *name, kelp_backend_request *request) {
    static const struct {
        const char *name;
        void *(*thread)(void *);
        bool factory;
    } threads[] = {
        {"late", late_thread, false},     {"late_forget", late_forget_thread, false},
        {"cancel", cancel_thread, false}, {"factory", factory_thread, true},
        {"orphan", orphan_thread, true},  {"factory_forget", factory_forget_thread, true},
    };
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        if (is(name, threads[i].name))
            return threads[i].factory ? with_factory(request, threads[i].thread)
                                      : keep(request, threads[i].thread);
    }
    return is(name, "midway")          ? midway(request)
           : is(name, "twice")         ? twice(request)
           : is(name, "error_after")   ? error_after(request)
           : is(name, "release_twice") ? release_twice(request)
           : is(name, "dropped")       ? dropped(request)
           : is(name, "fail_twice")    ? fail_twice(request)
           : is(name, "silent")        ? NULL
           : is(name, "stream")        ? stream(request, false)
           : is(name, "stream_error")  ? stream(request, true)
           : is(name, "two_factories") ? two_factories(request)
           : is(name, "finish")        ? finish(request)
           : is(name, "inputs")        ? check_inputs(request)
           : is(name, "outputs")       ? check_outputs(request)
           : is(name, "parameters")    ? check_parameters(request)
           : is(name, "state")         ? put_state(request)
           : is(name, "call")          ? call_and_wait(request, "good", 1)
           : is(name, "call_missing")  ? call_and_wait(request, "nowhere", 1)
           : is(name, "call_midway")   ? call_and_wait(request, "midway", 1)
           : is(name, "call_many")     ? call_and_wait(request, "stream", 3)
           : is(name, "call_stream")   ? call_stream(request)
           : is(name, "call_cancel")   ? call_cancel(request)
           : is(name, "abandon")       ? abandon(request)
                                       : answer(request, 7);
}

static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request *request) {
    return conduct_of(kelp_backend_model_name(kelp_backend_instance_model(instance)), request);
}

static kelp_status *complete(kelp_backend_model *model) {
    static const char config[] =
        "{\"name\":\"complete\",\"backend\":\"sdkone\",\"max_batch_size\":4,"
        "\"input\":[{\"name\":\"INPUT0\",\"data_type\":\"TYPE_INT32\",\"dims\":[2]}],"
        "\"output\":[{\"name\":\"OUTPUT0\",\"data_type\":\"TYPE_INT32\",\"dims\":[2]}]}";
    bool wants = false;
    size_t count;
    CHECK(kelp_backend_model_max_batch(model) == 0);
    KELP_TRY(kelp_backend_model_wants_config(model, &wants));
    CHECK(wants);
    CHECK(fails_with(kelp_backend_model_set_config(model, "{", 1), KELP_INVALID_ARGUMENT, ""));
    KELP_TRY(kelp_backend_model_set_config(model, config, sizeof config - 1));
    CHECK(kelp_backend_model_max_batch(model) == 4);
    CHECK(kelp_backend_model_inputs(model, &count)[0].shape[0] == 2 && count == 1);
    return NULL;
}

static kelp_status *complete_io(kelp_backend_model *model) {
    static const int64_t rows[] = {-1, 3}, five[] = {5};
    static const kelp_backend_io inputs[] = {
        {.name = "X", .dtype = KELP_F32, .rank = 2, .shape = rows},
        {.name = "S", .dtype = KELP_STRING, .rank = 0, .is_optional = true}};
    kelp_backend_io output = {.name = "Y", .dtype = KELP_C64, .rank = 1, .shape = five};
    CHECK(fails_with(kelp_backend_model_complete(model, inputs, 2, &output, 1), KELP_UNIMPLEMENTED,
                     "output 'Y' has type complex64"));
    KELP_TRY(kelp_backend_model_complete(model, NULL, 0, NULL, 0));
    output.dtype = KELP_I64;
    return kelp_backend_model_complete(model, inputs, 2, &output, 1);
}

static kelp_status *model_create(kelp_backend_model *model, void **out_state) {
    const char *name = kelp_backend_model_name(model);
    *out_state = malloc(64);
    if (is(name, "model_fails"))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "no model would please me");
    if (is(name, "complete"))
        return complete(model);
    if (is(name, "complete_io"))
        return complete_io(model);
    return is(name, "config") ? check_config(model) : NULL;
}

static kelp_status *instance_create(kelp_backend_instance *instance, void **out_state) {
    kelp_backend_model *model = kelp_backend_instance_model(instance);
    *out_state = malloc(64);
    CHECK(kelp_backend_model_state(model));
    CHECK(kelp_backend_instance_kind(instance) == TRITONSERVER_INSTANCEGROUPKIND_CPU);
    CHECK(*kelp_backend_instance_name(instance) && !kelp_backend_instance_device(instance));
    return is(kelp_backend_model_name(model), "instance_fails")
               ? KELP_ERROR(KELP_UNAVAILABLE, "no instance today")
               : NULL;
}

static kelp_status *ready(kelp_backend_instance *instance) {
    return is(kelp_backend_model_name(kelp_backend_instance_model(instance)), "unready")
               ? KELP_ERROR(KELP_UNAVAILABLE, "not before noon")
               : NULL;
}

static kelp_status *create(kelp_backend_host *host, void **out_state) {
    CHECK(!kelp_backend_host_state(host));
    *out_state = malloc(64);
    return NULL;
}

static const kelp_backend_definition sdkone = {
    .struct_size = sizeof sdkone,
    .name = "sdkone",
    .flags = KELP_BACKEND_PARALLEL_LOADING,
    .create = create,
    .destroy = free,
    .model_create = model_create,
    .model_destroy = free,
    .instance_create = instance_create,
    .instance_destroy = free,
    .ready = ready,
    .execute_one = execute,
};
KELP_TRITON_BACKEND(sdkone)
