/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a sequence model without a server, for tests of the policy. */
#ifndef KELP_TESTS_SERVER_SEQUENCE_WORLD_H_
#define KELP_TESTS_SERVER_SEQUENCE_WORLD_H_

#include "base/clock.h"
#include "server/request/factory.h"
#include "server/request/sequence.h"
#include "server/scheduler/instance_pool.h"
#include "server/scheduler/sequence_policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    START = TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
    END = TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
};

/* A policy, its configuration, and a clock that stands still. */
typedef struct sequence_world {
    kelp_model_config *config;
    kelp_policy *policy;
    kelp_model_base model;
    kelp_request_pool pool;
    kelp_instance_base instances[4];
    uint64_t now_ns;
} sequence_world;

static inline void sequence_world_open(sequence_world *w, const char *text) {
    const kelp_config_load_options options = {.model_name = "m"};
    kelp_allocator heap = kelp_allocator_system();
    memset(w, 0, sizeof *w);
    w->now_ns = 1000000000;
    kelp_status *status =
        kelp_model_config_parse(heap, &options, "config.pbtxt", text, strlen(text), &w->config);
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
    w->model.config = w->config;
    w->model.name = (char *)"m";
    w->pool.allocator = heap;
    assert_null(kelp_sequence_policy_create(heap, w->config, &w->policy));
    for (uint32_t i = 0; i < kelp_sequence_instances(w->config); i++) {
        w->policy->ops->attach(w->policy, &w->instances[i]);
        assert_int_equal(w->instances[i].policy_index, i);
    }
}

static inline void sequence_world_close(sequence_world *w) {
    assert_int_equal(w->policy->ops->size(w->policy), 0);
    w->policy->ops->destroy(w->policy);
    kelp_model_config_release(w->config);
}

/* A request and its submission. */
typedef struct sequence_request {
    kelp_request request;
    kelp_factory factory;
} sequence_request;

static inline void sequence_request_init(sequence_world *w, sequence_request *r, uint64_t id,
                                         uint32_t flags) {
    memset(r, 0, sizeof *r);
    r->request.home = &w->pool;
    r->request.model = &w->model;
    r->request.factory = &r->factory;
    r->request.batch_size = 1;
    r->request.correlation_id = id;
    r->request.flags = flags;
    r->request.queue_start_ns = w->now_ns;
    atomic_store(&r->request.state, KELP_REQUEST_PENDING);
}

static inline void sequence_request_deinit(sequence_request *r) {
    kelp_request_leave_sequence(&r->request);
    kelp_request_trim(&r->request);
}

/* Submits a request to the policy as the pool does. */
static inline kelp_status *sequence_submit(sequence_world *w, sequence_request *r) {
    KELP_TRY(kelp_request_enter_sequence(&r->request));
    KELP_TRY(w->policy->ops->admit(w->policy, &r->request));
    w->policy->ops->push(w->policy, &r->request, w->now_ns);
    return NULL;
}

/* Takes the requests that are due on an instance. */
static inline uint32_t sequence_take(sequence_world *w, uint32_t instance, kelp_request **out) {
    const kelp_instance_base *on = &w->instances[instance];
    if (w->policy->ops->ready_at_ns(w->policy, on) > w->now_ns)
        return 0;
    uint32_t count = w->policy->ops->take(w->policy, on, true, w->now_ns, out);
    assert_true(count > 0);
    return count;
}

static inline void sequence_release(sequence_world *w, kelp_request *request) {
    kelp_request_leave_sequence(request);
    if (request->place != NULL)
        w->policy->ops->release(w->policy, request, w->now_ns);
}

#endif
