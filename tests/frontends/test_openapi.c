/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI description: its parts for endpoints, and failed allocations. tests/openapi compares
 * it with a server. */
#include "frontends/common/services.h"
#include "frontends/v2/openapi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/failing_allocator.h"

static kelp_status *create(kelp_allocator allocator, kelp_openapi **out) {
    const kelp_openapi_options options = {.version = KELP_STR("1"),
                                          .logging = true,
                                          .tracing = true,
                                          .shm = true,
                                          .register_shm = true,
                                          .load_models = true,
                                          .allocator = allocator};
    return kelp_openapi_create(&options, out);
}

/* Appends the description for an endpoint, and returns the number of its parts. */
static size_t collect(const kelp_openapi *openapi, uint32_t services, kelp_buf *out) {
    size_t part = 0, count = 0;
    kelp_str text;
    for (; kelp_openapi_next(openapi, services, &part, &text); count++)
        kelp_buf_append_str(out, text);
    return count;
}

static void an_endpoint_has_the_parts_of_its_services(void **state) {
    static const struct {
        uint32_t services;
        bool has_page, has_metrics;
    } rows[] = {
        {KELP_SERVICE_HTTP, false, false},
        {KELP_SERVICE_HTTP | KELP_SERVICE_PAGE, true, false},
        {KELP_SERVICE_HTTP | KELP_SERVICE_METRICS, false, true},
        {KELP_SERVICE_HTTP | KELP_SERVICE_METRICS | KELP_SERVICE_PAGE | KELP_SERVICE_GRPC, true,
         true},
    };
    kelp_openapi *openapi;
    (void)state;
    assert_null(create(kelp_allocator_system(), &openapi));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kelp_buf text;
        kelp_buf_init(&text, kelp_allocator_system());
        size_t parts = collect(openapi, rows[i].services, &text);
        assert_int_equal(parts, rows[i].has_page && rows[i].has_metrics ? 1 : 2);
        const char *found = kelp_buf_cstr(&text);
        assert_int_equal(strstr(found, "\"/status/page.css\":") != NULL, rows[i].has_page);
        assert_int_equal(strstr(found, "\"/metrics\":") != NULL, rows[i].has_metrics);
        assert_non_null(strstr(found, "\"/v2/models/{model}/versions/{version}/infer\":"));
        assert_null(strstr(found, ",,"));
        assert_string_equal(found + text.length - 2, "}}");
        kelp_buf_deinit(&text);
    }
    kelp_openapi_destroy(openapi);
    kelp_openapi_destroy(NULL);
}

static void a_failed_allocation_is_a_failure(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        kelp_openapi *openapi = NULL;
        test_failing_init(&memory, n);
        kelp_status *status = create(test_failing_allocator(&memory), &openapi);
        kelp_openapi_destroy(openapi);
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        assert_int_equal(kelp_status_code(status), failed ? KELP_RESOURCE_EXHAUSTED : KELP_OK);
        kelp_status_free(status);
        if (!failed)
            break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_endpoint_has_the_parts_of_its_services),
        cmocka_unit_test(a_failed_allocation_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
