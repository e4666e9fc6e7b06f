/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend whose behavior is selected by the model's name, up to the first '-': common errors of
 * backends, and rare but valid behavior (respond later on another thread, respond several times,
 * complete a configuration).
 */
#include <triton/core/tritonbackend.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool is(const char *name, const char *conduct) {
    size_t length = strlen(conduct);
    return strncmp(name, conduct, length) == 0 && (name[length] == '-' || name[length] == '\0');
}

static void drop(TRITONSERVER_Error *error) {
    TRITONSERVER_ErrorDelete(error);
}

static const char *conduct_of(TRITONBACKEND_ModelInstance *instance) {
    TRITONBACKEND_Model *model = NULL;
    const char *name = "";
    drop(TRITONBACKEND_ModelInstanceModel(instance, &model));
    drop(TRITONBACKEND_ModelName(model, &name));
    return name;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model) {
    static const char completed[] =
        "{\"name\":\"complete\",\"backend\":\"misbehave\",\"max_batch_size\":4,"
        "\"input\":[{\"name\":\"INPUT0\",\"data_type\":\"TYPE_INT32\",\"dims\":[2]}],"
        "\"output\":[{\"name\":\"OUTPUT0\",\"data_type\":\"TYPE_INT32\",\"dims\":[2]}]}";
    const char *name = "";
    TRITONSERVER_Error *error = TRITONBACKEND_ModelName(model, &name);
    if (error)
        return error;
    if (is(name, "init_error"))
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "no model would please me");
    if (is(name, "complete")) {
        TRITONSERVER_Message *message = NULL;
        bool complete = false;
        error = TRITONBACKEND_ModelAutoCompleteConfig(model, &complete);
        if (error || !complete)
            return error;
        error =
            TRITONSERVER_MessageNewFromSerializedJson(&message, completed, sizeof completed - 1);
        if (!error)
            error = TRITONBACKEND_ModelSetConfig(model, 1, message);
        drop(TRITONSERVER_MessageDelete(message));
    }
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance) {
    TRITONSERVER_BufferAttributes *usage = NULL;
    if (is(conduct_of(instance), "instance_error"))
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "no instance today");
    drop(TRITONSERVER_BufferAttributesNew(&usage));
    drop(TRITONSERVER_BufferAttributesSetByteSize(usage, 1234));
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceReportMemoryUsage(instance, &usage, 1);
    drop(TRITONSERVER_BufferAttributesDelete(usage));
    return error;
}

/* A response with OUTPUT0 = {7, 8}. */
static TRITONSERVER_Error *fill(TRITONBACKEND_Response *response) {
    static const int64_t shape[] = {2};
    static const int32_t values[] = {7, 8};
    TRITONBACKEND_Output *output = NULL;
    void *buffer = NULL, *again = NULL;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0",
                                                             TRITONSERVER_TYPE_INT32, shape, 1);
    if (!error)
        error = TRITONBACKEND_OutputBuffer(output, &buffer, sizeof values, &type, &id);
    if (error)
        return error;
    memcpy(buffer, values, sizeof values);
    error = TRITONBACKEND_OutputBuffer(output, &again, sizeof values, &type, &id);
    if (!error || TRITONSERVER_ErrorCode(error) != TRITONSERVER_ERROR_ALREADY_EXISTS)
        abort(); /* the second call must fail */
    drop(error);
    error = TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0", TRITONSERVER_TYPE_INT32,
                                         shape, 1);
    if (!error || TRITONSERVER_ErrorCode(error) != TRITONSERVER_ERROR_ALREADY_EXISTS)
        abort(); /* names of outputs are unique */
    drop(error);
    return NULL;
}

static void respond(TRITONBACKEND_Response *response, uint32_t flags) {
    TRITONSERVER_Error *error = fill(response);
    drop(TRITONBACKEND_ResponseSend(response, flags, error));
    drop(error);
}

/* Sends three responses, then only FINAL, long after the request was released. */
static void *respond_later(void *userp) {
    TRITONBACKEND_ResponseFactory *factory = userp;
    for (int i = 0; i < 3; i++) {
        TRITONBACKEND_Response *response = NULL;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        drop(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
        drop(TRITONBACKEND_ResponseSetIntParameter(response, "index", i));
        respond(response, 0);
    }
    drop(TRITONBACKEND_ResponseFactorySendFlags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    drop(TRITONBACKEND_ResponseFactoryDelete(factory));
    return NULL;
}

static void *wait_for_cancel(void *userp) {
    TRITONBACKEND_ResponseFactory *factory = userp;
    TRITONBACKEND_Response *response = NULL;
    bool cancelled = false;
    while (!cancelled) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        drop(TRITONBACKEND_ResponseFactoryIsCancelled(factory, &cancelled));
    }
    TRITONSERVER_Error *error = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_CANCELLED, "given up");
    drop(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
    drop(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error));
    drop(error);
    drop(TRITONBACKEND_ResponseFactoryDelete(factory));
    return NULL;
}

static void start(void *(*fn)(void *), void *userp) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, fn, userp) != 0)
        abort();
    pthread_detach(thread);
}

static void detach(void *(*fn)(void *), TRITONBACKEND_Request *request) {
    TRITONBACKEND_ResponseFactory *factory = NULL;
    drop(TRITONBACKEND_ResponseFactoryNew(&factory, request));
    start(fn, factory);
}

/* Expects an error with a message. */
static void rejected(TRITONSERVER_Error *error) {
    if (!error || TRITONSERVER_ErrorCode(error) != TRITONSERVER_ERROR_INTERNAL ||
        TRITONSERVER_ErrorMessage(error)[0] == '\0')
        abort();
    drop(error);
}

static void allowed(TRITONSERVER_Error *error) {
    if (error)
        abort();
}

/* Uses a response after it was sent. */
static void touch(TRITONBACKEND_Response *response, TRITONBACKEND_Output *output) {
    static const int64_t shape[] = {2};
    TRITONBACKEND_Output *another = NULL;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    void *buffer = NULL;
    rejected(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
    rejected(TRITONBACKEND_ResponseSetIntParameter(response, "late", 1));
    rejected(TRITONBACKEND_ResponseOutput(response, &another, "OUTPUT0", TRITONSERVER_TYPE_INT32,
                                          shape, 1));
    rejected(TRITONBACKEND_OutputBuffer(output, &buffer, 8, &type, &id));
    rejected(TRITONBACKEND_ResponseDelete(response));
}

/* The client holds the response meanwhile, so that its memory is not reused. */
static void send_and_touch(TRITONBACKEND_Request *request) {
    static const int64_t shape[] = {2};
    TRITONBACKEND_Response *response = NULL;
    TRITONBACKEND_Output *output = NULL;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    void *buffer = NULL;
    allowed(TRITONBACKEND_ResponseNew(&response, request));
    allowed(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0", TRITONSERVER_TYPE_INT32,
                                         shape, 1));
    allowed(TRITONBACKEND_OutputBuffer(output, &buffer, 8, &type, &id));
    memcpy(buffer, (const int32_t[]){7, 8}, 8);
    allowed(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
    touch(response, output);
}

/* Sends another response after the final one, by all functions that can. */
static void respond_again(TRITONBACKEND_Request *request) {
    TRITONBACKEND_ResponseFactory *factory = NULL;
    TRITONBACKEND_Response *first = NULL, *second = NULL, *third = NULL;
    allowed(TRITONBACKEND_ResponseFactoryNew(&factory, request));
    allowed(TRITONBACKEND_ResponseNew(&first, request));
    allowed(TRITONBACKEND_ResponseNew(&second, request));
    allowed(TRITONBACKEND_ResponseNewFromFactory(&third, factory));
    respond(first, TRITONSERVER_RESPONSE_COMPLETE_FINAL);
    allowed(fill(second));
    rejected(TRITONBACKEND_ResponseSend(second, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
    rejected(TRITONBACKEND_ResponseSend(third, 0, NULL));
    rejected(TRITONBACKEND_ResponseFactorySendFlags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    allowed(TRITONBACKEND_ResponseFactoryDelete(factory));
}

/* Uses a released request that its caller has not deleted: factories can be created and tell
 * whether the request was cancelled, but no response can be sent. */
static void create_late_factories(TRITONBACKEND_Request *request) {
    TRITONBACKEND_ResponseFactory *first = NULL, *second = NULL;
    TRITONBACKEND_Response *response = NULL;
    bool cancelled = true;
    allowed(TRITONBACKEND_ResponseNew(&response, request));
    respond(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL);
    allowed(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
    allowed(TRITONBACKEND_ResponseFactoryNew(&first, request));
    allowed(TRITONBACKEND_ResponseFactoryNew(&second, request));
    allowed(TRITONBACKEND_ResponseFactoryIsCancelled(first, &cancelled));
    if (cancelled)
        abort();
    allowed(TRITONBACKEND_ResponseFactoryDelete(first));
    rejected(TRITONBACKEND_ResponseNewFromFactory(&response, second));
    rejected(TRITONBACKEND_ResponseFactorySendFlags(second, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    allowed(TRITONBACKEND_ResponseFactoryDelete(second));
    rejected(TRITONBACKEND_ResponseFactoryDelete(second));
    rejected(TRITONBACKEND_ResponseNew(&response, request));
    allowed(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
    rejected(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE));
}

/* Uses a request after its release, and a factory after its deletion. The caller may have deleted
 * or resubmitted the request. */
static void use_after_release(TRITONBACKEND_Request *request) {
    TRITONBACKEND_ResponseFactory *factory = NULL;
    TRITONBACKEND_Response *response = NULL;
    allowed(TRITONBACKEND_ResponseFactoryNew(&factory, request));
    allowed(TRITONBACKEND_ResponseNew(&response, request));
    respond(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL);
    allowed(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
    drop(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
    rejected(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE));
    allowed(TRITONBACKEND_ResponseFactoryDelete(factory));
    rejected(TRITONBACKEND_ResponseFactoryDelete(factory));
    rejected(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
    rejected(TRITONBACKEND_ResponseFactorySendFlags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
}

/* Responds and releases on another thread, long after Execute has returned. */
static void *respond_and_release(void *userp) {
    TRITONBACKEND_Request *request = userp;
    TRITONBACKEND_Response *response = NULL;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    allowed(TRITONBACKEND_ResponseNew(&response, request));
    respond(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL);
    allowed(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
    return NULL;
}

/* One of several threads that respond to one request. None of them knows which one is last. */
static void *respond_some(void *userp) {
    TRITONBACKEND_ResponseFactory *factory = userp;
    for (int i = 0; i < 5; i++) {
        TRITONBACKEND_Response *response = NULL;
        allowed(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
        respond(response, 0);
    }
    allowed(TRITONBACKEND_ResponseFactoryDelete(factory));
    return NULL;
}

/* Runs a behavior that includes the release; returns false for other behaviors. */
static bool run_odd(const char *conduct, TRITONBACKEND_Request *request) {
    if (is(conduct, "elsewhere")) {
        start(respond_and_release, request);
        return true;
    }
    if (is(conduct, "late_factory")) {
        create_late_factories(request);
        return NULL;
    }
    if (is(conduct, "use_after")) {
        use_after_release(request);
        return true;
    }
    if (is(conduct, "crowd")) {
        for (int i = 0; i < 4; i++)
            detach(respond_some, request);
    } else if (is(conduct, "touch")) {
        send_and_touch(request);
    } else if (is(conduct, "again")) {
        respond_again(request);
    } else {
        return false;
    }
    drop(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
    return true;
}

static void run(const char *conduct, TRITONBACKEND_Request *request) {
    if (run_odd(conduct, request))
        return;
    TRITONBACKEND_Response *response = NULL;
    if (is(conduct, "decoupled"))
        detach(respond_later, request);
    else if (is(conduct, "cancel"))
        detach(wait_for_cancel, request);
    else if (is(conduct, "unsent")) {
        drop(TRITONBACKEND_ResponseNew(&response, request));
        drop(fill(response));
        drop(TRITONBACKEND_ResponseDelete(response));
    } else if (!is(conduct, "no_response")) {
        drop(TRITONBACKEND_ResponseNew(&response, request));
        respond(response, is(conduct, "no_final") ? 0 : TRITONSERVER_RESPONSE_COMPLETE_FINAL);
    }
    if (is(conduct, "reschedule")) {
        TRITONSERVER_Error *error =
            TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE);
        if (TRITONSERVER_ErrorCode(error) != TRITONSERVER_ERROR_INVALID_ARG ||
            strstr(TRITONSERVER_ErrorMessage(error),
                   "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE") == NULL)
            abort();
        drop(error);
    }
    if (is(conduct, "respond_then_fail"))
        return; /* Execute fails, and the server releases the request */
    drop(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
    if (is(conduct, "double_release"))
        drop(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

/* The execution of the request with the id "gate" waits, after it has created its response,
 * until it is cancelled. */
static void pass_gate(TRITONBACKEND_Request *request) {
    const char *id = "";
    TRITONBACKEND_Response *response = NULL;
    bool cancelled = false;
    drop(TRITONBACKEND_RequestId(request, &id));
    if (strcmp(id, "gate") != 0)
        return;
    drop(TRITONBACKEND_ResponseNew(&response, request));
    while (!cancelled) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        drop(TRITONBACKEND_RequestIsCancelled(request, &cancelled));
    }
    drop(TRITONBACKEND_ResponseDelete(response));
}

static uint64_t first_extent(TRITONBACKEND_Request *request) {
    TRITONBACKEND_Input *input = NULL;
    const int64_t *extents = NULL;
    uint32_t rank = 0;
    drop(TRITONBACKEND_RequestInput(request, "INPUT0", &input));
    drop(TRITONBACKEND_InputProperties(input, NULL, NULL, &extents, &rank, NULL, NULL));
    return rank > 1 ? (uint64_t)extents[0] : 1;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t request_count) {
    const char *conduct = conduct_of(instance);
    if (is(conduct, "fail"))
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "the model has caught fire");
    uint64_t batch_size = 0;
    for (uint32_t i = 0; i < request_count; i++) {
        batch_size += first_extent(requests[i]);
        if (is(conduct, "gate"))
            pass_gate(requests[i]);
        run(conduct, requests[i]);
    }
    if (is(conduct, "respond_then_fail") || is(conduct, "release_then_fail"))
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "too late to say so");
    drop(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, batch_size, 1, 2, 3, 4));
    return NULL;
}
