/* SPDX-License-Identifier: Apache-2.0 */
/* Resources at their limits: file descriptors, buffers and arenas without memory, keys that a map
 * replaces, marks of an arena, and loops without work. */
#include "base/arena.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/map.h"
#include "base/sync/loop.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int open_files(void) {
    kelp_fs_names names;
    assert_null(kelp_fs_list(kelp_allocator_system(), "/proc/self/fd", &names));
    int count = (int)names.count;
    kelp_fs_names_deinit(&names);
    return count;
}

static void file_descriptors_are_closed(void **state) {
    (void)state;
    kelp_event_loop *loop = NULL;
    kelp_buf buf;
    kelp_mapping mapping;
    int before = open_files();
    kelp_buf_init(&buf, kelp_allocator_system());
    assert_null(kelp_event_loop_create(kelp_allocator_system(), &loop));
    kelp_event_loop_destroy(loop);
    assert_null(kelp_fs_read("/proc/self/status", 0, &buf));
    assert_null(kelp_fs_map("/proc/self/exe", &mapping));
    kelp_fs_unmap(&mapping);
    assert_null(kelp_fs_write("/dev/null", "x", 1));
    kelp_status_free(kelp_fs_read("/proc/self", 0, &buf));
    kelp_status_free(kelp_fs_read("/proc/self/status", 1, &buf));
    assert_int_equal(open_files(), before);
    kelp_buf_deinit(&buf);
}

static void a_failed_read_keeps_the_buffer_as_it_was(void **state) {
    (void)state;
    kelp_buf buf;
    kelp_buf_init(&buf, kelp_allocator_system());
    kelp_buf_append_cstr(&buf, "before");
    kelp_status *status = kelp_fs_read("/proc/self/exe", 16, &buf);
    assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
    kelp_status_free(status);
    status = kelp_fs_read("/proc/kallsyms", 5000, &buf); /* its size is reported as 0 */
    assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
    kelp_status_free(status);
    assert_string_equal(kelp_buf_cstr(&buf), "before");
    assert_int_equal(buf.length, 6);
    kelp_buf_deinit(&buf);
}

static void reads_without_memory_fail(void **state) {
    (void)state;
    static const char *const files[] = {"/proc/self/status", KELP_SOURCE_DIR "/LICENSE"};
    for (size_t i = 0; i < KELP_COUNT(files); i++) {
        test_failing memory;
        kelp_buf buf;
        test_failing_init(&memory, 1);
        kelp_buf_init(&buf, test_failing_allocator(&memory));
        for (int again = 0; again < 2; again++) { /* a buffer that has failed stays so */
            kelp_status *status = kelp_fs_read(files[i], 0, &buf);
            assert_int_equal(kelp_status_code(status), KELP_RESOURCE_EXHAUSTED);
            kelp_status_free(status);
            assert_int_equal(buf.length, 0);
        }
        kelp_buf_deinit(&buf);
        test_failing_check(&memory);
        test_failing_deinit(&memory);
    }
}

static void the_new_key_of_a_replaced_value_is_kept(void **state) {
    (void)state;
    kelp_map map;
    kelp_map_init(&map, kelp_allocator_system());
    char *old_key = strdup("key"), *new_key = strdup("key");
    int one = 1, two = 2;
    assert_null(kelp_map_put(&map, kelp_str_from(old_key), &one));
    assert_null(kelp_map_put(&map, kelp_str_from(new_key), &two));
    free(old_key);
    assert_ptr_equal(kelp_map_get(&map, kelp_str_from("key")), &two);
    assert_int_equal(map.count, 1);
    kelp_map_deinit(&map);
    free(new_key);
}

static void arenas_without_memory_return_null(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    arena.limit_bytes = 1;
    assert_null(kelp_arena_strndup(&arena, "text", 4));
    assert_null(kelp_arena_strndup(&arena, "text", SIZE_MAX));
    assert_null(kelp_arena_printf(&arena, "%d", 5));
    kelp_arena_deinit(&arena);
}

static void going_back_to_a_mark_frees_later_chunks(void **state) {
    (void)state;
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 256);
    char *kept = kelp_arena_strndup(&arena, "kept", 4);
    kelp_arena_mark mark = kelp_arena_get_mark(&arena);
    size_t total = 0;
    for (int round = 0; round < 4; round++) {
        char *blocks[20];
        for (int i = 0; i < 20; i++) {
            assert_non_null(blocks[i] = kelp_arena_alloc(&arena, 200, 1));
            memset(blocks[i], 'a' + i, 200);
        }
        for (int i = 0; i < 20; i++)
            assert_int_equal(blocks[i][199], 'a' + i);
        if (round == 0)
            total = arena.total_bytes;
        assert_int_equal(arena.total_bytes, total); /* chunks are used again */
        kelp_arena_go_back(&arena, mark);
        assert_string_equal(kept, "kept");
        assert_int_equal(arena.used_bytes, mark.used_bytes);
    }
    kelp_arena_deinit(&arena);
}

static void sizes_are_rounded_up(void **state) {
    (void)state;
    assert_int_equal(kelp_round_up(0, 8), 0);
    assert_int_equal(kelp_round_up(1, 8), 8);
    assert_int_equal(kelp_round_up(8, 8), 8);
    assert_int_equal(kelp_round_up(17, 8), 24);
    assert_int_equal(kelp_divide_up(17, 8), 3);
    assert_int_equal(kelp_divide_up(16, 8), 2);
}

static void negative_integers_are_read(void **state) {
    (void)state;
    int64_t value = 0;
    assert_true(kelp_parse_i64(kelp_str_from("-1"), &value));
    assert_int_equal(value, -1);
    assert_true(kelp_parse_i64(kelp_str_from("-9223372036854775807"), &value));
    assert_int_equal(value, -INT64_MAX);
}

static void accessors_of_success(void **state) {
    (void)state;
    kelp_status *status = kelp_status_new(KELP_INTERNAL, "f.c", 3, "text");
    kelp_status_set_domain(status, KELP_DOMAIN_ENGINE);
    assert_int_equal(kelp_status_domain(status), KELP_DOMAIN_ENGINE);
    assert_int_equal(kelp_status_domain(NULL), KELP_DOMAIN_NONE);
    kelp_status_set_domain(NULL, KELP_DOMAIN_ENGINE);
    kelp_status_free(status);
}

typedef struct watch {
    kelp_event_loop_io io;
    kelp_event_loop_timer timer;
    kelp_event_loop *loop;
    int calls;
} watch;

static void count_call(kelp_event_loop_io *io, uint32_t events) {
    (void)events;
    ((watch *)io->userp)->calls++;
}

static watch *watch_of_timer;

static void stop_loop(kelp_event_loop_timer *timer) {
    (void)timer;
    kelp_event_loop_stop(watch_of_timer->loop);
}

/* A loop that waits uses no processor time, even if a file has data that nobody asked for. */
static void events_that_nobody_asked_for_do_not_wake_up_the_loop(void **state) {
    (void)state;
    static const uint32_t asked[] = {0, KELP_LOOP_WRITE};
    for (size_t i = 0; i < KELP_COUNT(asked); i++) {
        int fds[2];
        watch w = {.io = {.fn = count_call, .userp = &w}, .timer = {.fn = stop_loop}};
        watch_of_timer = &w;
        assert_int_equal(pipe(fds), 0);
        assert_int_equal(write(fds[1], "x", 1), 1); /* readable, never writable */
        w.io.fd = fds[0];
        assert_null(kelp_event_loop_create(kelp_allocator_system(), &w.loop));
        assert_null(kelp_event_loop_add(w.loop, &w.io, asked[i]));
        assert_null(kelp_event_loop_timer_set(w.loop, &w.timer, kelp_now_ns() + 200000000));
        struct timespec before, after;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
        assert_null(kelp_event_loop_run(w.loop));
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
        assert_int_equal(w.calls, 0);
        int64_t used_ns =
            (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
        assert_true(used_ns < 20000000);
        kelp_event_loop_remove(w.loop, &w.io);
        kelp_event_loop_destroy(w.loop);
        close(fds[0]);
        close(fds[1]);
    }
}

typedef struct ringer {
    kelp_event_loop_timer timer;
    kelp_event_loop *loop;
    int id, *order, *count;
} ringer;

static void note_order(kelp_event_loop_timer *timer) {
    ringer *r = (ringer *)(void *)timer;
    r->order[(*r->count)++] = r->id;
    if (*r->count == 4)
        kelp_event_loop_stop(r->loop);
}

static void few_timers_ring_in_order_however_they_were_set(void **state) {
    (void)state;
    for (int code = 0; code < 4 * 4 * 4 * 4; code++) {
        int ids[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6};
        if ((1 << ids[0] | 1 << ids[1] | 1 << ids[2] | 1 << ids[3]) != 15)
            continue;
        ringer ringers[4];
        kelp_event_loop *loop = NULL;
        int order[4], count = 0;
        uint64_t base = kelp_now_ns();
        assert_null(kelp_event_loop_create(kelp_allocator_system(), &loop));
        for (int i = 0; i < 4; i++) {
            ringers[i] = (ringer){.timer = {.fn = note_order},
                                  .loop = loop,
                                  .id = ids[i],
                                  .order = order,
                                  .count = &count};
            assert_null(
                kelp_event_loop_timer_set(loop, &ringers[i].timer, base + (uint64_t)ids[i]));
        }
        assert_null(kelp_event_loop_run(loop));
        for (int i = 0; i < 4; i++)
            assert_int_equal(order[i], i);
        kelp_event_loop_destroy(loop);
    }
}

typedef struct pair_end {
    kelp_event_loop_io io;
    struct pair_end **other;
    kelp_event_loop *loop;
    int *calls;
} pair_end;

static void free_the_other(kelp_event_loop_io *io, uint32_t events) {
    pair_end *end = io->userp;
    (void)events;
    (*end->calls)++;
    kelp_event_loop_remove(end->loop, &(*end->other)->io);
    free(*end->other);
    *end->other = NULL;
    kelp_event_loop_stop(end->loop);
}

/* Two files are ready in the same round. The first one called frees the other. */
static void a_removed_file_is_not_touched_in_its_round(void **state) {
    (void)state;
    kelp_event_loop *loop = NULL;
    pair_end *ends[2];
    int fds[2][2], calls = 0;
    assert_null(kelp_event_loop_create(kelp_allocator_system(), &loop));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pipe(fds[i]), 0);
        assert_int_equal(write(fds[i][1], "x", 1), 1);
        assert_non_null(ends[i] = malloc(sizeof *ends[i]));
        *ends[i] = (pair_end){.io = {.fd = fds[i][0], .fn = free_the_other, .userp = ends[i]},
                              .other = &ends[1 - i],
                              .loop = loop,
                              .calls = &calls};
        assert_null(kelp_event_loop_add(loop, &ends[i]->io, KELP_LOOP_READ));
    }
    assert_null(kelp_event_loop_run(loop));
    assert_int_equal(calls, 1);
    pair_end *left = ends[0] != NULL ? ends[0] : ends[1];
    kelp_event_loop_remove(loop, &left->io);
    free(left);
    kelp_event_loop_destroy(loop);
    for (int i = 0; i < 4; i++)
        close(fds[i / 2][i % 2]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_descriptors_are_closed),
        cmocka_unit_test(a_failed_read_keeps_the_buffer_as_it_was),
        cmocka_unit_test(reads_without_memory_fail),
        cmocka_unit_test(the_new_key_of_a_replaced_value_is_kept),
        cmocka_unit_test(arenas_without_memory_return_null),
        cmocka_unit_test(going_back_to_a_mark_frees_later_chunks),
        cmocka_unit_test(sizes_are_rounded_up),
        cmocka_unit_test(negative_integers_are_read),
        cmocka_unit_test(accessors_of_success),
        cmocka_unit_test(few_timers_ring_in_order_however_they_were_set),
        cmocka_unit_test(a_removed_file_is_not_touched_in_its_round),
        cmocka_unit_test(events_that_nobody_asked_for_do_not_wake_up_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
