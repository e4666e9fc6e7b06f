/* SPDX-License-Identifier: Apache-2.0 */
/* Files and paths, in a scratch directory of the test. */
#include "base/fs.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char root[256];

static int make_root(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    (void)snprintf(root, sizeof(root), "%s/kelp-fs-XXXXXX", base ? base : P_tmpdir);
    return mkdtemp(root) ? 0 : -1;
}

static const char *in_root(const char *name) {
    static char path[2][512];
    static int turn;
    turn = !turn;
    (void)snprintf(path[turn], sizeof(path[turn]), "%s/%s", root, name);
    return path[turn];
}

static int remove_root(void **state) {
    (void)state;
    kelp_fs_names names;
    kelp_status *status = kelp_fs_list(kelp_allocator_system(), root, &names);
    if (status) {
        kelp_status_free(status);
        return -1;
    }
    for (size_t i = 0; i < names.count; i++)
        (void)remove(in_root(names.items[i]));
    kelp_fs_names_deinit(&names);
    return rmdir(root);
}

static void assert_code(kelp_status *status, kelp_code code, const char *part) {
    assert_int_equal(kelp_status_code(status), code);
    if (!strstr(kelp_status_message(status), part))
        fail_msg("'%s' does not say '%s'", kelp_status_message(status), part);
    kelp_status_free(status);
}

static void written_is_read(void **state) {
    (void)state;
    static char data[100000];
    kelp_buf buf;
    kelp_mapping mapping;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 7);
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, sizeof(data)};
    for (size_t n = 0; n < KELP_COUNT(sizes); n++) {
        const char *path = in_root("file");
        assert_null(kelp_fs_write(path, data, sizes[n]));
        kelp_buf_init(&buf, kelp_allocator_system());
        kelp_buf_append_char(&buf, '>');
        assert_null(kelp_fs_read(path, sizes[n], &buf));
        assert_int_equal(buf.length, sizes[n] + 1);
        assert_int_equal(buf.data[0], '>');
        assert_memory_equal(buf.data + 1, data, sizes[n]);
        if (sizes[n] > 1) {
            assert_code(kelp_fs_read(path, sizes[n] - 1, &buf), KELP_RESOURCE_EXHAUSTED, path);
            assert_int_equal(buf.length, sizes[n] + 1);
        }
        kelp_buf_deinit(&buf);
        assert_null(kelp_fs_map(path, &mapping));
        assert_int_equal(mapping.size_bytes, sizes[n]);
        if (sizes[n])
            assert_memory_equal(mapping.data, data, sizes[n]);
        else
            assert_null(mapping.data);
        kelp_fs_unmap(&mapping);
        assert_null(mapping.data);
    }
    /* Nothing is left beside the file. */
    kelp_fs_names names;
    assert_null(kelp_fs_list(kelp_allocator_system(), root, &names));
    assert_int_equal(names.count, 1);
    kelp_fs_names_deinit(&names);
}

static void a_buffer_as_large_as_its_file_suffices(void **state) {
    (void)state;
    kelp_buf buf;
    assert_null(kelp_fs_write(in_root("exact"), "12345678", 8));
    kelp_buf_init(&buf, kelp_allocator_system());
    buf.limit_bytes = 8;
    assert_null(kelp_fs_read(in_root("exact"), 0, &buf));
    assert_int_equal(buf.length, 8);
    assert_code(kelp_fs_read(in_root("exact"), 0, &buf), KELP_RESOURCE_EXHAUSTED, "limit");
    kelp_buf_deinit(&buf);
}

static void files_that_claim_no_size(void **state) {
    (void)state;
    kelp_buf buf;
    kelp_buf_init(&buf, kelp_allocator_system());
    assert_null(kelp_fs_read("/proc/self/status", 0, &buf));
    assert_true(buf.length > 100);
    kelp_buf_clear(&buf);
    assert_code(kelp_fs_read("/proc/self/status", 10, &buf), KELP_RESOURCE_EXHAUSTED, "10 bytes");
    kelp_buf_deinit(&buf);
}

static void failures_name_the_path(void **state) {
    (void)state;
    kelp_buf buf;
    kelp_mapping mapping;
    kelp_fs_names names;
    const char *missing = in_root("missing");
    kelp_buf_init(&buf, kelp_allocator_system());
    assert_code(kelp_fs_map(missing, &mapping), KELP_NOT_FOUND, missing);
    assert_code(kelp_fs_read(missing, 0, &buf), KELP_NOT_FOUND, missing);
    assert_code(kelp_fs_list(kelp_allocator_system(), missing, &names), KELP_NOT_FOUND, missing);
    assert_code(kelp_fs_map(root, &mapping), KELP_INVALID_ARGUMENT, "directory");
    assert_code(kelp_fs_read(root, 0, &buf), KELP_INVALID_ARGUMENT, root);
    assert_code(kelp_fs_write(root, "x", 1), KELP_INVALID_ARGUMENT, root);
    assert_code(kelp_fs_write(in_root("no/such/place"), "x", 1), KELP_NOT_FOUND, "no/such/place");
    assert_int_equal(mkfifo(in_root("pipe"), 0600), 0);
    assert_code(kelp_fs_map(in_root("pipe"), &mapping), KELP_INVALID_ARGUMENT, "pipe");
    if (geteuid() != 0) {
        assert_null(kelp_fs_write(in_root("secret"), "x", 1));
        assert_int_equal(chmod(in_root("secret"), 0), 0);
        assert_code(kelp_fs_map(in_root("secret"), &mapping), KELP_PERMISSION_DENIED, "secret");
    }
    kelp_buf_deinit(&buf);
}

/* A device stays one, whatever is written to it. */
static void devices_are_written_to(void **state) {
    (void)state;
    assert_int_equal(symlink("/dev/full", in_root("device")), 0);
    assert_code(kelp_fs_write(in_root("device"), "x", 1), KELP_RESOURCE_EXHAUSTED, "device");
    assert_int_equal(kelp_fs_kind_of(in_root("device")), KELP_FS_OTHER);
}

static void kinds_follow_links(void **state) {
    (void)state;
    assert_null(kelp_fs_write(in_root("kind"), "x", 1));
    assert_int_equal(symlink("kind", in_root("link")), 0);
    assert_int_equal(kelp_fs_kind_of(in_root("kind")), KELP_FS_FILE);
    assert_int_equal(kelp_fs_kind_of(in_root("link")), KELP_FS_FILE);
    assert_int_equal(kelp_fs_kind_of(root), KELP_FS_DIRECTORY);
    assert_int_equal(kelp_fs_kind_of("/dev/null"), KELP_FS_OTHER);
    assert_int_equal(kelp_fs_kind_of(in_root("none")), KELP_FS_NONE);
}

static void stale_sockets_are_removed(void **state) {
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = in_root("socket");
    assert_true(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_return_code(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_return_code(listen(fd, 1), 0);
    kelp_fs_remove_stale_socket(path);
    assert_int_equal(kelp_fs_kind_of(path), KELP_FS_OTHER);
    assert_return_code(close(fd), 0);
    kelp_fs_remove_stale_socket(path);
    assert_int_equal(kelp_fs_kind_of(path), KELP_FS_NONE);
    kelp_fs_remove_stale_socket(path);
    assert_null(kelp_fs_write(path, "data", 4));
    kelp_fs_remove_stale_socket(path);
    assert_int_equal(kelp_fs_kind_of(path), KELP_FS_FILE);
    kelp_fs_remove_stale_socket(root);
    assert_int_equal(kelp_fs_kind_of(root), KELP_FS_DIRECTORY);
    assert_int_equal(remove(path), 0);
}

static void lists_are_sorted(void **state) {
    (void)state;
    static const char *const made[] = {"b", "a10", "a2", ".hidden", "Z"};
    static const char *const expected[] = {".hidden", "Z", "a10", "a2", "b"};
    char folder[300];
    (void)snprintf(folder, sizeof(folder), "%s/listed", root);
    assert_int_equal(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < KELP_COUNT(made); i++) {
        char path[400];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, made[i]);
        assert_null(kelp_fs_write(path, "", 0));
    }
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        kelp_fs_names names;
        test_failing_init(&memory, n);
        kelp_status *status = kelp_fs_list(test_failing_allocator(&memory), folder, &names);
        bool failed = memory.failed;
        assert_int_equal(failed, status != NULL);
        if (!failed) {
            assert_int_equal(names.count, KELP_COUNT(expected));
            for (size_t i = 0; i < names.count; i++)
                assert_string_equal(names.items[i], expected[i]);
        }
        kelp_status_free(status);
        kelp_fs_names_deinit(&names);
        test_failing_check(&memory);
        test_failing_deinit(&memory);
        if (!failed)
            break;
    }
    for (size_t i = 0; i < KELP_COUNT(made); i++) {
        char path[400];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, made[i]);
        assert_int_equal(unlink(path), 0);
    }
}

static void paths_join(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"a", "b", "a/b"},           {"a/", "b", "a/b"}, {"/", "b", "/b"},
        {"a", "/b", "/b"},           {"", "b", "b"},     {"a", "", "a/"},
        {"a/b", "../c", "a/b/../c"},
    };
    for (size_t i = 0; i < KELP_COUNT(cases); i++) {
        test_failing memory;
        char *path;
        test_failing_init(&memory, 2);
        kelp_allocator allocator = test_failing_allocator(&memory);
        assert_null(kelp_fs_join(allocator, cases[i][0], cases[i][1], &path));
        assert_string_equal(path, cases[i][2]);
        kelp_free_string(allocator, path);
        assert_code(kelp_fs_join(allocator, cases[i][0], cases[i][1], &path),
                    KELP_RESOURCE_EXHAUSTED, "memory");
        assert_null(path);
        test_failing_check(&memory);
        test_failing_deinit(&memory);
    }
}

static void escapes_are_seen(void **state) {
    (void)state;
    static const char *const inside[] = {"a",   "a/b",  "./a",    "a/../b", "a//b",
                                         "..a", "a..",  "",       ".",      "a/b/../../c",
                                         "...", "a/..", "./././x"};
    static const char *const outside[] = {"/a",   "..", "../a",     "a/../..",         "a/../../b",
                                          "./..", "/",  "a//../..", "a/b/../../../c/d"};
    for (size_t i = 0; i < KELP_COUNT(inside); i++) {
        if (!kelp_fs_is_inside(inside[i]))
            fail_msg("'%s' was taken for outside", inside[i]);
    }
    for (size_t i = 0; i < KELP_COUNT(outside); i++) {
        if (kelp_fs_is_inside(outside[i]))
            fail_msg("'%s' was taken for inside", outside[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_is_read),
        cmocka_unit_test(a_buffer_as_large_as_its_file_suffices),
        cmocka_unit_test(files_that_claim_no_size),
        cmocka_unit_test(failures_name_the_path),
        cmocka_unit_test(devices_are_written_to),
        cmocka_unit_test(kinds_follow_links),
        cmocka_unit_test(stale_sockets_are_removed),
        cmocka_unit_test(lists_are_sorted),
        cmocka_unit_test(paths_join),
        cmocka_unit_test(escapes_are_seen),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
