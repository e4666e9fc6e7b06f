/* SPDX-License-Identifier: Apache-2.0 */
/* The access log: lines of several threads, full queues and files, and rotation. */
#include "base/buf.h"
#include "base/fs.h"
#include "frontends/request_log/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cmocka.h>

#include "support/failing_allocator.h"

#define THREADS 4
#define LINES 5000
#define PATIENCE_MS 60000

/* A directory for a log, with the number of lines that were dropped. */
typedef struct fixture {
    char directory[64], path[96], moved[96];
    kelp_request_log *log;
    _Atomic uint64_t dropped;
    atomic_int messages;
    char message[256];
} fixture;

static void on_dropped(void *userp, uint64_t lines) {
    atomic_fetch_add(&((fixture *)userp)->dropped, lines);
}

static void on_message(void *userp, kelp_log_level level, const char *file, int line,
                       const char *text, size_t length) {
    fixture *f = userp;
    (void)level, (void)file, (void)line;
    snprintf(f->message, sizeof f->message, "%.*s", (int)length, text);
    atomic_fetch_add(&f->messages, 1);
}

static void make(fixture *f) {
    *f = (fixture){.directory = "/tmp/kelp-request-log-XXXXXX"};
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->path, sizeof f->path, "%s/log", f->directory);
    snprintf(f->moved, sizeof f->moved, "%s/log.1", f->directory);
}

static void remove_all(fixture *f) {
    unlink(f->path);
    unlink(f->moved);
    assert_int_equal(rmdir(f->directory), 0);
}

static kelp_status *open_log(fixture *f, const kelp_logger *logger, const char *path) {
    const kelp_request_log_options options = {.path = path,
                                              .capacity_bytes = 4096,
                                              .logger = logger,
                                              .on_dropped = on_dropped,
                                              .userp = f};
    return kelp_request_log_create(&options, &f->log);
}

static kelp_logger logger_of(fixture *f) {
    return (kelp_logger){.fn = on_message, .userp = f, .level = KELP_LOG_WARNING};
}

static void put(fixture *f, const char *text) {
    kelp_request_log_put(f->log, kelp_str_from(text));
}

static char *read_all(const char *path) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    assert_null(kelp_fs_read(path, (size_t)64 << 20, &text));
    char *copy = strdup(kelp_buf_cstr(&text));
    kelp_buf_deinit(&text);
    assert_non_null(copy);
    return copy;
}

/* Waits until the file has the text. */
static void wait_for_text(const char *path, const char *expected) {
    for (int i = 0; i < PATIENCE_MS; i++) {
        char *text = access(path, R_OK) == 0 ? read_all(path) : NULL;
        bool found = text != NULL && strstr(text, expected) != NULL;
        free(text);
        if (found)
            return;
        usleep(1000);
    }
    fail_msg("'%s' has no '%s'", path, expected);
}

/* ---- lines ---- */

/* A thread that puts numbered lines. */
typedef struct source {
    pthread_t id;
    fixture *f;
    int index;
} source;

static void *put_lines(void *userp) {
    source *s = userp;
    char text[128];
    for (int i = 0; i < LINES; i++) {
        int length = snprintf(text, sizeof text, "%d %d %.*s\n", s->index, i, i % 60,
                              "............................................................");
        kelp_request_log_put(s->f->log, (kelp_str){text, (size_t)length});
        if (i % 16 == 0)
            usleep(200); /* the ring is small */
    }
    return NULL;
}

static void lines_of_several_threads_are_complete_and_in_order(void **state) {
    (void)state;
    fixture f;
    source sources[THREADS];
    int next[THREADS] = {0};
    uint64_t found = 0;
    make(&f);
    assert_null(open_log(&f, &(kelp_logger){0}, f.path));
    for (int i = 0; i < THREADS; i++) {
        sources[i] = (source){.f = &f, .index = i};
        assert_int_equal(pthread_create(&sources[i].id, NULL, put_lines, &sources[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(sources[i].id, NULL);
    kelp_request_log_destroy(f.log);
    char *text = read_all(f.path), *rest = text;
    for (char *line = strsep(&rest, "\n"); line != NULL && *line; line = strsep(&rest, "\n")) {
        int index = -1, number = -1, dots = 0;
        assert_int_equal(sscanf(line, "%d %d %n", &index, &number, &dots), 2);
        assert_true(index >= 0 && index < THREADS && number >= next[index]);
        assert_int_equal(strlen(line + dots), number % 60);
        next[index] = number + 1;
        found++;
    }
    assert_int_equal(found + f.dropped, (uint64_t)THREADS * LINES);
    assert_true(found > 0);
    free(text);
    remove_all(&f);
}

static void a_line_that_is_empty_or_too_long_is_counted(void **state) {
    (void)state;
    fixture f;
    make(&f);
    assert_null(open_log(&f, &(kelp_logger){0}, f.path));
    char *text = calloc(1, 128 * 1024);
    assert_non_null(text);
    kelp_request_log_put(f.log, (kelp_str){text, 5000}); /* more than the ring */
    kelp_request_log_put(f.log, (kelp_str){text, 128 * 1024});
    kelp_request_log_put(f.log, (kelp_str){0});
    put(&f, "good\n");
    kelp_request_log_destroy(f.log);
    char *found = read_all(f.path);
    assert_string_equal(found, "good\n");
    assert_int_equal(f.dropped, 3);
    free(found);
    free(text);
    remove_all(&f);
}

/* ---- failures ---- */

static void a_file_that_cannot_be_opened_is_an_error(void **state) {
    (void)state;
    fixture f;
    make(&f);
    kelp_status *status = open_log(&f, &(kelp_logger){0}, "/nowhere/log");
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    assert_non_null(strstr(kelp_status_message(status), "cannot open access log '/nowhere/log'"));
    kelp_status_free(status);
    remove_all(&f);
}

static void a_full_disk_is_reported_once(void **state) {
    (void)state;
    fixture f;
    make(&f);
    kelp_logger logger = logger_of(&f);
    assert_null(open_log(&f, &logger, "/dev/full"));
    for (int i = 0; i < 20; i++) {
        put(&f, "line\n");
        usleep(2000);
    }
    kelp_request_log_destroy(f.log);
    assert_int_equal(f.dropped, 20);
    assert_int_equal(f.messages, 1);
    assert_non_null(strstr(f.message, "No space left on device"));
    remove_all(&f);
}

static void a_directory_that_is_moved_is_reported_once(void **state) {
    (void)state;
    fixture f;
    char away[96], file[128];
    make(&f);
    kelp_logger logger = logger_of(&f);
    snprintf(away, sizeof away, "%s.away", f.directory);
    snprintf(file, sizeof file, "%s/log", away);
    assert_null(open_log(&f, &logger, f.path));
    assert_int_equal(rename(f.directory, away), 0);
    for (int i = 0; i < 3; i++) { /* the file is checked every second */
        put(&f, "line\n");
        usleep(1100 * 1000);
    }
    kelp_request_log_destroy(f.log);
    char *text = read_all(file);
    assert_string_equal(text, "line\nline\nline\n");
    assert_int_equal(f.dropped, 0);
    assert_int_equal(f.messages, 1);
    assert_non_null(strstr(f.message, "cannot open access log"));
    free(text);
    assert_int_equal(rename(away, f.directory), 0);
    remove_all(&f);
}

static void a_pipe_that_nobody_reads_delays_nothing(void **state) {
    (void)state;
    fixture f;
    char text[1025], taken[4096];
    make(&f);
    assert_int_equal(mkfifo(f.path, 0600), 0);
    int reader = open(f.path, O_RDONLY | O_NONBLOCK);
    kelp_logger logger = logger_of(&f);
    assert_null(open_log(&f, &logger, f.path));
    memset(text, '.', sizeof text - 2);
    memcpy(text + sizeof text - 2, "\n", 2);
    for (int i = 0; i < 1000; i++)
        put(&f, text);
    assert_true(read(reader, taken, sizeof taken) > 0 || errno == EAGAIN);
    kelp_request_log_destroy(f.log); /* within seconds */
    assert_true(f.dropped > 500);
    assert_non_null(strstr(f.message, "dropped"));
    close(reader);
    remove_all(&f);
}

/* ---- rotation ---- */

static void a_file_that_was_moved_is_opened_again(void **state) {
    (void)state;
    fixture f;
    make(&f);
    assert_null(open_log(&f, &(kelp_logger){0}, f.path));
    put(&f, "first\n");
    wait_for_text(f.path, "first\n");
    assert_int_equal(rename(f.path, f.moved), 0);
    usleep(1100000); /* the check is at most one second old */
    put(&f, "second\n");
    wait_for_text(f.path, "second\n");
    assert_int_equal(unlink(f.path), 0);
    usleep(1100000);
    put(&f, "third\n");
    wait_for_text(f.path, "third\n");
    kelp_request_log_destroy(f.log);
    char *moved = read_all(f.moved), *now = read_all(f.path);
    assert_string_equal(moved, "first\n");
    assert_string_equal(now, "third\n");
    free(moved);
    free(now);
    remove_all(&f);
}

static void lines_are_appended_to_an_existing_file(void **state) {
    (void)state;
    fixture f;
    make(&f);
    for (int i = 0; i < 2; i++) {
        assert_null(open_log(&f, &(kelp_logger){0}, f.path));
        put(&f, i == 0 ? "a\n" : "b\n");
        kelp_request_log_stop(f.log);
        put(&f, "not written\n");
        kelp_request_log_destroy(f.log);
    }
    char *text = read_all(f.path);
    assert_string_equal(text, "a\nb\n");
    free(text);
    remove_all(&f);
}

/* ---- entries ---- */

static void an_entry_is_one_line_of_json(void **state) {
    (void)state;
    fixture f;
    make(&f);
    assert_null(open_log(&f, &(kelp_logger){0}, f.path));
    const kelp_str agent = KELP_STR("a\"\\\n\xff\x01");
    const kelp_request_facts facts = {.protocol = "HTTP/1.1",
                                      .method = KELP_STR("POST"),
                                      .path = KELP_STR("/x\r\n{\"time\":0}"),
                                      .user_agent = &agent,
                                      .trace_id = KELP_STR("0af7651916cd43dd8448eb211c80319c")};
    struct sockaddr_in6 address = {
        .sin6_family = AF_INET6, .sin6_port = htons(80), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const kelp_http_peer peer = kelp_http_peer_of((const struct sockaddr *)(const void *)&address);
    const kelp_str rpc = KELP_STR("5");
    kelp_request_entry entry = {0};
    kelp_buf_init(&entry.line, kelp_allocator_system());
    kelp_request_entry_begin(&entry, f.log, &peer, &facts);
    kelp_request_entry_set_model(&entry, "m", -1);
    kelp_request_entry_set_model(&entry, "other", 3);
    kelp_request_entry_set_id(&entry, "");
    kelp_request_entry_set_id(&entry, "7");
    entry.sent_bytes = 2;
    kelp_request_entry_end(&entry, &(kelp_request_result){.status = 200,
                                                          .rpc_status = &rpc,
                                                          .received_bytes = 1,
                                                          .duration_ns = 3999,
                                                          .aborted = true});
    kelp_request_entry_end(&entry, &(kelp_request_result){0}); /* no effect */
    kelp_request_log_destroy(f.log);
    kelp_buf_deinit(&entry.line);
    char *text = read_all(f.path);
    const char *rest = strstr(text, "Z\",");
    assert_non_null(rest);
    assert_int_equal(rest - text, strlen("{\"time\":\"2026-11-23T05:41:21.123456"));
    assert_string_equal(rest + 3,
                        "\"client\":\"[::1]:80\",\"protocol\":\"HTTP/1.1\",\"method\":\"POST\","
                        "\"path\":\"/x\\r\\n{\\\"time\\\":0}\","
                        "\"user_agent\":\"a\\\"\\\\\\n\xEF\xBF\xBD\\u0001\","
                        "\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\",\"model\":\"m\","
                        "\"request_id\":\"7\",\"status\":200,\"grpc_status\":5,\"bytes_in\":1,"
                        "\"bytes_out\":2,\"duration_us\":3,\"aborted\":true}\n");
    free(text);
    remove_all(&f);
}

static void a_failed_allocation_is_a_failure(void **state) {
    (void)state;
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        kelp_request_log *log = NULL;
        test_failing_init(&memory, n);
        const kelp_request_log_options options = {.path = "/dev/null",
                                                  .allocator = test_failing_allocator(&memory)};
        kelp_status *status = kelp_request_log_create(&options, &log);
        kelp_request_log_destroy(log);
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        assert_int_equal(kelp_status_code(status), failed ? KELP_RESOURCE_EXHAUSTED : KELP_OK);
        kelp_status_free(status);
        if (!failed)
            break;
    }
}

/* A line that there is no memory for counts as dropped. */
static void an_entry_without_memory_is_dropped(void **state) {
    (void)state;
    fixture f;
    test_failing memory;
    make(&f);
    test_failing_init(&memory, 1);
    assert_null(open_log(&f, &(kelp_logger){0}, f.path));
    const kelp_http_peer peer = {.family = AF_UNIX};
    const kelp_request_facts facts = {
        .protocol = "gRPC", .method = KELP_STR("GET"), .path = KELP_STR("/")};
    kelp_request_entry entry = {0};
    kelp_buf_init(&entry.line, test_failing_allocator(&memory));
    for (int i = 0; i < 2; i++) {
        kelp_request_entry_begin(&entry, f.log, &peer, &facts);
        kelp_request_entry_end(&entry, &(kelp_request_result){.status = 200});
    }
    kelp_request_log_destroy(f.log);
    kelp_buf_deinit(&entry.line);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
    char *text = read_all(f.path);
    assert_non_null(strstr(text, "\"client\":\"unix\",\"protocol\":\"gRPC\""));
    assert_int_equal(f.dropped, 1);
    free(text);
    remove_all(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_several_threads_are_complete_and_in_order),
        cmocka_unit_test(a_line_that_is_empty_or_too_long_is_counted),
        cmocka_unit_test(a_file_that_cannot_be_opened_is_an_error),
        cmocka_unit_test(a_full_disk_is_reported_once),
        cmocka_unit_test(a_directory_that_is_moved_is_reported_once),
        cmocka_unit_test(a_pipe_that_nobody_reads_delays_nothing),
        cmocka_unit_test(a_file_that_was_moved_is_opened_again),
        cmocka_unit_test(lines_are_appended_to_an_existing_file),
        cmocka_unit_test(an_entry_is_one_line_of_json),
        cmocka_unit_test(a_failed_allocation_is_a_failure),
        cmocka_unit_test(an_entry_without_memory_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
