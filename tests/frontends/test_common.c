/* SPDX-License-Identifier: Apache-2.0 */
/* What the protocols share: access rules, forwarded headers, threads for work that blocks. */
#include "base/clock.h"
#include "frontends/common/access.h"
#include "frontends/common/forward.h"
#include "frontends/common/workers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- access ---- */

/* A header of a request. */
typedef struct header {
    const char *name;
    kelp_str value;
} header;

static const kelp_str *find(const void *userp, const char *name) {
    const header *given = userp;
    return given->name != NULL && !strcasecmp(given->name, name) ? &given->value : NULL;
}

static kelp_code check(kelp_access *access, kelp_access_category category, const char *name,
                       const char *value) {
    header given = {name, kelp_str_from(value)};
    kelp_status *status = kelp_access_check(access, category, find, &given);
    kelp_code code = kelp_status_code(status);
    kelp_status_free(status);
    return code;
}

static void everything_is_permitted_without_rules(void **state) {
    (void)state;
    kelp_access *access;
    assert_false(kelp_access_is_limited(NULL));
    assert_int_equal(check(NULL, KELP_ACCESS_HEALTH, NULL, ""), KELP_OK);
    assert_null(kelp_access_create(kelp_allocator_system(), NULL, &access));
    assert_false(kelp_access_is_limited(access));
    for (int category = 0; category <= KELP_ACCESS_OTHER; category++)
        assert_int_equal(check(access, (kelp_access_category)category, NULL, ""), KELP_OK);
    kelp_access_destroy(access);
    kelp_access_destroy(NULL);
}

static void a_category_needs_its_header(void **state) {
    (void)state;
    kelp_access *access;
    assert_null(kelp_access_create(kelp_allocator_system(), NULL, &access));
    assert_null(kelp_access_restrict(access, "inference,trace:k=a:b=c", "protocol", "pre-"));
    assert_int_equal(check(access, KELP_ACCESS_HEALTH, NULL, ""), KELP_OK);
    assert_int_equal(check(access, KELP_ACCESS_INFERENCE, NULL, ""), KELP_PERMISSION_DENIED);
    assert_int_equal(check(access, KELP_ACCESS_TRACE, "pre-k", "a:b"), KELP_PERMISSION_DENIED);
    assert_int_equal(check(access, KELP_ACCESS_TRACE, "k", "a:b=c"), KELP_PERMISSION_DENIED);
    assert_int_equal(check(access, KELP_ACCESS_TRACE, "pre-k", "a:b=ca:b=c"),
                     KELP_PERMISSION_DENIED);
    assert_int_equal(check(access, KELP_ACCESS_TRACE, "PRE-K", "a:b=c"), KELP_OK);
    header none = {0};
    kelp_status *status = kelp_access_check(access, KELP_ACCESS_TRACE, find, &none);
    assert_string_equal(kelp_status_message(status),
                        "This protocol is restricted, expecting header 'pre-k'");
    kelp_status_free(status);
    static const char *const wrong[] = {
        "",     ":",           "health",      "health:", "health:k",  "health:=v", "health:k=",
        ":k=v", "health,:k=v", ",health:k=v", "all:k=v", "trace:k=v", "Health:k=v"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        status = kelp_access_restrict(access, wrong[i], "API", "");
        if (kelp_status_code(status) != KELP_INVALID_ARGUMENT)
            fail_msg("'%s' is accepted", wrong[i]);
        kelp_status_free(status);
    }
    kelp_access_destroy(access);
}

static void tokens_come_from_a_file(void **state) {
    (void)state;
    static const char text[] = "# x\n\r\n  one \r\ntwo";
    char path[] = "/tmp/kelp-tokens-XXXXXX";
    kelp_access *access;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    assert_null(kelp_access_create(kelp_allocator_system(), NULL, &access));
    assert_null(kelp_access_set_token_file(access, path, true));
    assert_int_equal(check(access, KELP_ACCESS_HEALTH, NULL, ""), KELP_OK);
    static const struct {
        const char *value;
        kelp_code code;
    } rows[] = {{"Bearer one", KELP_OK},
                {"bEARER   two  ", KELP_OK},
                {"Bearer on", KELP_UNAUTHENTICATED},
                {"Bearer oneone", KELP_UNAUTHENTICATED},
                {"Bearer # x", KELP_UNAUTHENTICATED},
                {"Bearer ", KELP_UNAUTHENTICATED},
                {"Bearer", KELP_UNAUTHENTICATED},
                {"Basic one", KELP_UNAUTHENTICATED},
                {"one", KELP_UNAUTHENTICATED},
                {"", KELP_UNAUTHENTICATED}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(check(access, KELP_ACCESS_OTHER, "authorization", rows[i].value),
                         rows[i].code);
    assert_int_equal(check(access, KELP_ACCESS_OTHER, NULL, ""), KELP_UNAUTHENTICATED);
    kelp_access_destroy(access);
    unlink(path);
}

/* ---- forwarded headers ---- */

static void matching_headers_are_forwarded(void **state) {
    (void)state;
    kelp_forward *forward = NULL;
    kelp_arena arena;
    const char *name, *value;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_status *status = kelp_forward_create(kelp_allocator_system(), "[", &forward);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    kelp_status_free(status);
    assert_null(kelp_forward_create(kelp_allocator_system(), "^x-|timeout|triton", &forward));
    static const struct {
        const char *name, *value;
        bool forwarded;
        kelp_code code;
    } rows[] = {{"X-a", "1", true, KELP_OK},
                {"a-x-", "1", false, KELP_OK},
                {"my-Timeout", "", true, KELP_OK},
                {"timeout", "1", false, KELP_INVALID_ARGUMENT},
                {"triton_x", "1", false, KELP_INVALID_ARGUMENT},
                {"x-a", "\xff", false, KELP_INVALID_ARGUMENT}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        status = kelp_forward_header(forward, &arena, kelp_str_from(rows[i].name),
                                     kelp_str_from(rows[i].value), &name, &value);
        assert_int_equal(kelp_status_code(status), rows[i].code);
        kelp_status_free(status);
        assert_int_equal(name != NULL, rows[i].forwarded);
        if (rows[i].forwarded) {
            assert_string_equal(name, rows[i].name);
            assert_string_equal(value, rows[i].value);
        }
    }
    kelp_arena_deinit(&arena);
    kelp_forward_destroy(forward);
    kelp_forward_destroy(NULL);
}

/* ---- workers ---- */

enum { WORK_COUNT = 200, THREADS = 3 };

static atomic_int running, most, done;

static void run(kelp_work *work) {
    (void)work;
    int now = atomic_fetch_add(&running, 1) + 1;
    for (int seen = atomic_load(&most);
         now > seen && !atomic_compare_exchange_weak(&most, &seen, now);) {
    }
    usleep(500);
    atomic_fetch_sub(&running, 1);
    atomic_fetch_add(&done, 1);
}

static void work_runs_on_a_limited_number_of_threads(void **state) {
    (void)state;
    kelp_workers *workers;
    static kelp_work work[WORK_COUNT];
    assert_null(kelp_workers_create(kelp_allocator_system(), THREADS, &workers));
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < WORK_COUNT; i++) {
            work[i].run = run;
            assert_null(kelp_workers_submit(workers, &work[i]));
        }
        kelp_workers_wait(workers);
        assert_int_equal(atomic_load(&done), (round + 1) * WORK_COUNT);
    }
    kelp_workers_destroy(workers); /* waits for the threads */
    kelp_workers_destroy(NULL);
    assert_int_equal(atomic_load(&running), 0);
    assert_in_range(atomic_load(&most), 1, THREADS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_permitted_without_rules),
        cmocka_unit_test(a_category_needs_its_header),
        cmocka_unit_test(tokens_come_from_a_file),
        cmocka_unit_test(matching_headers_are_forwarded),
        cmocka_unit_test(work_runs_on_a_limited_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
