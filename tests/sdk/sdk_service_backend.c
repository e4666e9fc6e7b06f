/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend that uses services of the server: calls to other models, metrics, kinds of memory. The
 * model's name selects what a request does. A failed check ends the process.
 */
#include "sdk_backend.h"

#include <stdatomic.h>
#include <time.h>

enum { SHORT_NS = 30000000 };

static kelp_status *answer(kelp_backend_request *request, int32_t value) {
    static const int64_t one[] = {1};
    kelp_backend_response *response;
    KELP_TRY(kelp_backend_respond(request, &response));
    return kelp_backend_put(response, "OUTPUT0", KELP_I32, 1, one, &value);
}

/* Waits until the request is cancelled, then returns CANCELLED. */
static kelp_status *sleep_until_cancelled(kelp_backend_request *request) {
    while (!kelp_backend_request_is_cancelled(request))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return KELP_ERROR(KELP_CANCELLED, "the sleeper was cancelled");
}

/* ---- calls ---- */

static kelp_status *open_call(kelp_backend_request *request, const char *target,
                              uint64_t timeout_ns, kelp_backend_call **out) {
    kelp_tensor x;
    kelp_backend_model *model = kelp_backend_instance_model(kelp_backend_request_instance(request));
    KELP_TRY(kelp_backend_call_create(model, request, target, -1, out));
    if (timeout_ns != 0)
        KELP_TRY(kelp_backend_call_set_timeout(*out, timeout_ns));
    KELP_TRY(kelp_backend_input(request, "INPUT0", KELP_I32, 1, &x));
    return kelp_backend_call_input(*out, "INPUT0", &x);
}

static kelp_status *call_and_wait(kelp_backend_request *request, const char *target,
                                  uint64_t timeout_ns) {
    kelp_backend_call *call = NULL;
    kelp_status *status = open_call(request, target, timeout_ns, &call);
    if (status == NULL)
        status = kelp_backend_call_start(call, NULL, NULL);
    if (status == NULL)
        status = kelp_backend_call_wait(call);
    if (status == NULL)
        status = answer(request, 1);
    kelp_backend_call_destroy(call);
    return status;
}

/* Destroys a call with a timeout while it is in flight: its callback is not called. */
static void never(kelp_backend_call *call, const kelp_status *failure, bool is_last, void *userp) {
    (void)call;
    (void)failure;
    (void)is_last;
    (void)userp;
    CHECK(!"a callback was called after the call was destroyed");
}

static kelp_status *abandon(kelp_backend_request *request) {
    kelp_backend_call *call = NULL;
    KELP_TRY(open_call(request, "sleeper", 3600000000000u, &call));
    KELP_TRY(kelp_backend_call_start(call, never, NULL));
    kelp_backend_call_destroy(call);
    return answer(request, 2);
}

/* The state of a request whose call reports to a callback. */
typedef struct callback_job {
    kelp_backend_request *request;
    unsigned failures;
    kelp_code code;
} callback_job;

static void on_call(kelp_backend_call *call, const kelp_status *failure, bool is_last,
                    void *userp) {
    callback_job *job = userp;
    if (!is_last) {
        job->failures += failure != NULL;
        job->code = kelp_status_code(failure);
        return;
    }
    CHECK(kelp_status_code(kelp_backend_call_failure(call)) == job->code);
    kelp_backend_call_destroy(call);
    kelp_backend_request *request = job->request;
    kelp_status *status = job->failures == 0
                              ? answer(request, 7)
                              : KELP_ERROR(job->code, "the callback has code %d", job->code);
    CHECK(job->failures <= 1);
    if (status != NULL)
        kelp_backend_fail(request, status);
    kelp_backend_release(request);
    free(job);
}

static kelp_status *call_back(kelp_backend_request *request, const char *target,
                              uint64_t timeout_ns) {
    kelp_backend_call *call = NULL;
    callback_job *job = calloc(1, sizeof *job);
    CHECK(job != NULL);
    job->request = request;
    KELP_TRY(open_call(request, target, timeout_ns, &call));
    kelp_backend_keep(request);
    return kelp_backend_call_start(call, on_call, job);
}

/* Responds after 0 to 2 ms. */
static kelp_status *quick(kelp_backend_request *request) {
    static atomic_uint next;
    long delay_ns = (long)(atomic_fetch_add(&next, 1) % 5) * 500000;
    nanosleep(&(struct timespec){.tv_nsec = delay_ns}, NULL);
    return answer(request, 5);
}

/* Calls "quick" with timeouts that expire before, while or after it responds. */
static kelp_status *race(kelp_backend_request *request) {
    static atomic_uint next;
    unsigned number = atomic_fetch_add(&next, 1);
    kelp_backend_call *call = NULL;
    uint64_t timeout_ns = 100000 + (number % 13) * 200000;
    if (number % 3 == 0)
        return call_back(request, "quick", timeout_ns);
    if (number % 3 == 1)
        return call_and_wait(request, "quick", timeout_ns);
    KELP_TRY(open_call(request, "quick", timeout_ns, &call));
    kelp_status *status = kelp_backend_call_start(call, NULL, NULL);
    nanosleep(&(struct timespec){.tv_nsec = (long)(number % 7) * 300000}, NULL);
    kelp_backend_call_destroy(call);
    return status != NULL ? status : answer(request, 6);
}

static kelp_status *check_calls(kelp_backend_request *request) {
    kelp_backend_call *call = NULL;
    kelp_tensor x;
    kelp_backend_model *model = kelp_backend_instance_model(kelp_backend_request_instance(request));
    KELP_TRY(kelp_backend_input(request, "INPUT0", KELP_I32, 1, &x));
    KELP_TRY(kelp_backend_call_create(model, request, "sleeper", -1, &call));
    CHECK(fails_with(kelp_backend_call_set_timeout(call, 0), KELP_INVALID_ARGUMENT, "at least 1"));
    KELP_TRY(kelp_backend_call_set_timeout(call, 5000000000u));
    uint64_t timeout_us = 0;
    CHECK(TRITONSERVER_InferenceRequestTimeoutMicroseconds(kelp_backend_call_raw(call),
                                                           &timeout_us) == NULL);
    CHECK(timeout_us == 1000000); /* the shorter one of the request */
    KELP_TRY(kelp_backend_call_set_timeout(call, UINT64_MAX));
    x.device = (DLDevice){kDLCUDA, 1};
    CHECK(fails_with(kelp_backend_call_input(call, "INPUT0", &x), KELP_UNIMPLEMENTED,
                     "input 'INPUT0': the tensor is on a device of type 2"));
    x.device = (DLDevice){kDLCUDAHost, 0};
    KELP_TRY(kelp_backend_call_input(call, "INPUT0", &x));
    CHECK(fails_with(kelp_backend_call_set_timeout(call, 1), KELP_FAILED_PRECONDITION,
                     "before its first input"));
    kelp_backend_call_destroy(call);
    return answer(request, 3);
}

/* ---- metrics ---- */

static bool rejects(const kelp_backend_metric_spec *spec, kelp_backend_model *model,
                    const char *text) {
    kelp_backend_metric *metric = NULL;
    return fails_with(kelp_backend_metric_create(model, spec, &metric), KELP_INVALID_ARGUMENT,
                      text) &&
           metric == NULL;
}

static void check_rejected_metrics(kelp_backend_model *model) {
    static const double falling[] = {2, 1};
    static const kelp_backend_label own = {"model", "x"}, digit = {"1st", "x"},
                                    twice[] = {{"a", "1"}, {"a", "2"}};
    kelp_backend_metric_spec spec = {.kind = TRITONSERVER_METRIC_KIND_COUNTER, .help = "help"};
    CHECK(rejects(&spec, model, "cannot create metric 'NULL': the name is invalid"));
    static const char *const names[] = {"",           "9lives",     "9",
                                        "nine-lives", "nine lives", "n\xc3\xa9uf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        spec.name = names[i];
        CHECK(rejects(&spec, model, "the name is invalid"));
    }
    spec.name = "sdk_checked_total";
    spec.bounds = falling;
    spec.bound_count = 2;
    CHECK(rejects(&spec, model, "the counter needs no bounds, found 2"));
    spec.kind = TRITONSERVER_METRIC_KIND_HISTOGRAM;
    CHECK(rejects(&spec, model, "bound 1 is 1: expected more than the previous one, 2"));
    spec.bound_count = 0;
    CHECK(rejects(&spec, model, "the histogram needs at least one bound"));
    spec.kind = TRITONSERVER_METRIC_KIND_GAUGE;
    spec.label_count = 1;
    CHECK(rejects(&spec, model, "the labels are NULL"));
    spec.labels = &own;
    CHECK(rejects(&spec, model, "label 'model' occurs twice"));
    spec.labels = &digit;
    CHECK(rejects(&spec, model, "label 0 is invalid"));
    spec.labels = twice;
    spec.label_count = 2;
    CHECK(rejects(&spec, model, "label 'a' occurs twice"));
    spec.help = NULL;
    CHECK(rejects(&spec, model, "the help text is missing"));
}

static kelp_status *check_histogram(kelp_backend_model *model) {
    static const double bounds[] = {1, 10};
    const kelp_backend_metric_spec spec = {.kind = TRITONSERVER_METRIC_KIND_HISTOGRAM,
                                           .name = "sdk_checked_bytes",
                                           .help = "A histogram of a test",
                                           .bounds = bounds,
                                           .bound_count = 2};
    kelp_backend_metric *metric;
    double value = 0;
    KELP_TRY(kelp_backend_metric_create(model, &spec, &metric));
    KELP_TRY(kelp_backend_metric_observe(metric, 5));
    CHECK(fails_with(kelp_backend_metric_add(metric, 1), KELP_UNIMPLEMENTED,
                     "metric 'sdk_checked_bytes' is a histogram, which has no value to add to"));
    CHECK(fails_with(kelp_backend_metric_set(metric, 1), KELP_UNIMPLEMENTED, "cannot be set"));
    CHECK(fails_with(kelp_backend_metric_value(metric, &value), KELP_UNIMPLEMENTED,
                     "has no single value"));
    kelp_backend_metric_destroy(metric);
    return NULL;
}

static kelp_status *check_metrics(kelp_backend_request *request) {
    kelp_backend_model *model = kelp_backend_instance_model(kelp_backend_request_instance(request));
    static const kelp_backend_label color = {"color", "dark \"red\""};
    kelp_backend_metric_spec spec = {.kind = TRITONSERVER_METRIC_KIND_COUNTER,
                                     .name = "sdk_checked_total",
                                     .help = "A counter of a test"};
    kelp_backend_metric *one, *same, *other;
    double value = 0;
    check_rejected_metrics(model);
    KELP_TRY(check_histogram(model));
    KELP_TRY(kelp_backend_metric_create(model, &spec, &one));
    KELP_TRY(kelp_backend_metric_create(model, &spec, &same));
    spec.labels = &color;
    spec.label_count = 1;
    KELP_TRY(kelp_backend_metric_create(NULL, &spec, &other));
    spec.kind = TRITONSERVER_METRIC_KIND_GAUGE;
    CHECK(rejects(&spec, model, "the family has another kind: expected counter, found gauge"));
    KELP_TRY(kelp_backend_metric_add(one, 2));
    KELP_TRY(kelp_backend_metric_add(same, 3));
    KELP_TRY(kelp_backend_metric_value(one, &value));
    CHECK(value == 5);
    CHECK(fails_with(kelp_backend_metric_add(one, -1), KELP_INVALID_ARGUMENT, "cannot decrease"));
    CHECK(fails_with(kelp_backend_metric_set(one, 1), KELP_UNIMPLEMENTED, "cannot be set"));
    CHECK(fails_with(kelp_backend_metric_observe(one, 1), KELP_UNIMPLEMENTED, "observe"));
    kelp_backend_metric_destroy(one);
    kelp_backend_metric_destroy(NULL);
    KELP_TRY(kelp_backend_metric_value(same, &value));
    CHECK(value == 5);
    kelp_backend_metric_destroy(same);
    KELP_TRY(kelp_backend_metric_value(other, &value));
    CHECK(value == 0);
    kelp_backend_metric_destroy(other);
    return answer(request, 4); /* the family can be created again with another kind */
}

/* ---- kinds of memory ---- */

/* Returns 10 * type of the input's device + type of the output's device. */
static kelp_status *report_devices(kelp_backend_request *request) {
    static const int64_t one[] = {1};
    kelp_backend_memory gpu = {TRITONSERVER_MEMORY_GPU, 3};
    kelp_backend_response *response;
    kelp_tensor x, y;
    int32_t value;
    KELP_TRY(kelp_backend_input_in(request, "INPUT0", KELP_I32, 1, gpu, &x));
    KELP_TRY(kelp_backend_respond(request, &response));
    KELP_TRY(kelp_tensor_init(&y, KELP_I32, 1, one, NULL));
    y.device = (DLDevice){kDLCUDA, 7};
    KELP_TRY(kelp_backend_output_in(response, "OUTPUT0", gpu, &y));
    value = 10 * (int32_t)x.device.device_type + (int32_t)y.device.device_type;
    if (y.device.device_type == kDLCUDA) /* the pretended GPU memory of the test */
        CHECK(y.device.device_id == 3);
    memcpy(y.data, &value, sizeof value);
    return NULL;
}

/* All functions that return host memory reject the memory of a GPU. */
static kelp_status *use_host_memory(kelp_backend_request *request) {
    kelp_backend_response *response;
    kelp_backend_pieces pieces;
    kelp_tensor x;
    const void *data = NULL;
    size_t size_bytes = 0;
    kelp_status *status = kelp_backend_input(request, "INPUT0", KELP_I32, 1, &x);
    if (kelp_status_code(status) == KELP_UNIMPLEMENTED) {
        KELP_TRY(kelp_backend_pieces_init(&pieces, request, "INPUT0"));
        CHECK(fails_with(kelp_backend_pieces_next(&pieces, &data, &size_bytes), KELP_UNIMPLEMENTED,
                         "input 'INPUT0' is in the memory of GPU 5: expected host memory"));
        CHECK(fails_with(kelp_backend_gather_flat(&request, 1, "INPUT0", KELP_I32, &x),
                         KELP_UNIMPLEMENTED, "GPU 5"));
    }
    KELP_TRY(status);
    KELP_TRY(kelp_backend_respond(request, &response));
    kelp_tensor y = x;
    y.data = NULL;
    y.device = (DLDevice){kDLCUDA, 7};
    KELP_TRY(kelp_backend_output_tensor(response, "OUTPUT0", &y));
    CHECK(y.device.device_type == kDLCPU && y.data != NULL);
    memcpy(y.data, x.data, kelp_tensor_bytes(&x));
    return NULL;
}

/* ---- the definition ---- */

static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request *request) {
    const char *name = kelp_backend_model_name(kelp_backend_instance_model(instance));
    CHECK(kelp_backend_instance_memory(instance).type == TRITONSERVER_MEMORY_CPU);
    if (strcmp(name, "sleeper") == 0)
        return sleep_until_cancelled(request);
    if (strcmp(name, "deadline") == 0)
        return call_and_wait(request, "sleeper", SHORT_NS);
    if (strcmp(name, "itself") == 0)
        return call_and_wait(request, "itself", SHORT_NS);
    if (strcmp(name, "endless") == 0)
        return call_and_wait(request, "endless", 0);
    if (strcmp(name, "cancelled") == 0)
        return call_and_wait(request, "sleeper", 0);
    if (strcmp(name, "abandon") == 0)
        return abandon(request);
    if (strcmp(name, "callback") == 0)
        return call_back(request, "sleeper", 0);
    if (strcmp(name, "callback_deadline") == 0)
        return call_back(request, "sleeper", SHORT_NS);
    if (strcmp(name, "quick") == 0)
        return quick(request);
    if (strcmp(name, "race") == 0)
        return race(request);
    if (strcmp(name, "checks") == 0)
        return check_calls(request);
    if (strcmp(name, "metrics") == 0)
        return check_metrics(request);
    if (strcmp(name, "devices") == 0)
        return report_devices(request);
    return use_host_memory(request);
}

static const kelp_backend_definition sdkservice = {
    .struct_size = sizeof sdkservice, .name = "sdkservice", .execute_one = execute};
KELP_TRITON_BACKEND(sdkservice)
