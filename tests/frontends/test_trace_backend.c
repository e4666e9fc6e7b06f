/* SPDX-License-Identifier: Apache-2.0 */
/* The trace context that backends receive. */
#include "frontends/trace/tracing.h"
#include "server/support.h"

#include <stdatomic.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

static const kelp_logger silent = {0};

static void a_backend_receives_the_context_of_its_span(void **state) {
    world *w = *state;
    const kelp_otlp_options otlp = {.client = {.url = "http://127.0.0.1:1/", .version = "0"},
                                    .max_queue = 8,
                                    .max_batch = 8,
                                    .delay_ms = 60000};
    const kelp_tracing_options options = {
        .values = {.level = TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, .rate = 1, .count = -1},
        .file = "",
        .otlp = &otlp,
        .sampler = {.parent_based = true, .ratio = 1}};
    kelp_trace_origin origin = {.model = "addsub"};
    kelp_tracing *tracing;
    float a[16], b[16];
    const char *context = NULL;
    call c;
    assert_true(kelp_traceparent_parse(KELP_STR("00-" TRACE "-" SPAN "-01"), &origin.parent));
    origin.parent.state = KELP_STR("a=1,b=2");
    assert_null(
        kelp_tracing_create(kelp_allocator_system(), w->server, &silent, &options, &tracing));
    kelp_trace_record *record = kelp_tracing_sample(tracing, &origin);
    assert_non_null(record);
    TRITONSERVER_InferenceTrace *trace = kelp_trace_submit(record);
    call_init(&c, w->server, "addsub", -1);
    call_addsub(&c, a, b, 1);
    ok(TRITONSERVER_ServerInferAsync(w->server, c.request, trace));
    call_wait(&c);
    ok(TRITONSERVER_InferenceTraceContext(trace, &context)); /* the response keeps the trace */
    contains(context, "{\"traceparent\":\"00-" TRACE "-");
    contains(context, "-01\",\"tracestate\":\"a=1,b=2\"}");
    assert_null(strstr(context, SPAN));
    call_deinit(&c);
    kelp_trace_record_release(record);
    /* The trace is released after the response. */
    ok(TRITONSERVER_ServerStop(w->server));
    kelp_tracing_destroy(tracing);
}

static int set_up(void **state) {
    if (world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT}) != 0)
        return -1;
    world_load(*state, "addsub", addsub_config);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_backend_receives_the_context_of_its_span, set_up,
                                        world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
