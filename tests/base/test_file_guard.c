/* SPDX-License-Identifier: Apache-2.0 */
/* Guarded files keep their contents while other processes modify them in place. */
#include "base/file_guard.h"

#include "base/alloc.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SIZE ((size_t)3 << 20)

static char root[256], path[300], other[300];
static char old_data[SIZE], new_data[SIZE];

static int make_files(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    (void)snprintf(root, sizeof root, "%s/kelp-guard-XXXXXX", base ? base : P_tmpdir);
    if (mkdtemp(root) == NULL)
        return -1;
    (void)snprintf(path, sizeof path, "%s/model", root);
    (void)snprintf(other, sizeof other, "%s/other", root);
    for (size_t i = 0; i < SIZE; i++) {
        old_data[i] = (char)(i * 7);
        new_data[i] = (char)(i * 11 + 3);
    }
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    (void)remove(path);
    (void)remove(other);
    return rmdir(root);
}

static kelp_file_guard *new_guard(void) {
    kelp_file_guard *guard = NULL;
    assert_null(kelp_file_guard_create(kelp_allocator_system(), NULL, &guard));
    return guard;
}

static kelp_mapping map_old(kelp_file_guard *guard) {
    kelp_mapping mapping;
    assert_null(kelp_fs_write(path, old_data, SIZE));
    assert_null(kelp_file_guard_map(guard, path, &mapping));
    assert_int_equal(mapping.size_bytes, SIZE);
    return mapping;
}

/* Runs a shell command in the directory of the files, as a user would modify them. */
static void run(const char *command) {
    char line[1024];
    (void)snprintf(line, sizeof line, "cd '%s' && %s", root, command);
    assert_int_equal(system(line), 0);
}

static void overwritten_file_keeps_its_contents(void **state) {
    (void)state;
    static const char *const commands[] = {
        "cp other model", /* truncates and writes */
        "dd if=other of=model conv=notrunc bs=1M count=1 2>/dev/null",
        ": > model",
        "dd if=/dev/null of=model bs=10 seek=1 2>/dev/null",  /* shortens it to 10 bytes */
        "dd if=/dev/null of=model bs=10M seek=1 2>/dev/null", /* extends it to 10 MiB */
    };
    assert_null(kelp_fs_write(other, new_data, SIZE));
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        kelp_file_guard *guard = new_guard();
        kelp_mapping mapping = map_old(guard);
        run(commands[i]);
        assert_memory_equal(mapping.data, old_data, SIZE);
        assert_int_equal(kelp_file_guard_copies(guard), 1);
        kelp_fs_release_pages(&mapping); /* and again after its pages were released */
        assert_memory_equal(mapping.data, old_data, SIZE);
        kelp_fs_unmap(&mapping);
        assert_int_equal(kelp_file_guard_copies(guard), 0);
        kelp_file_guard_close(guard);
    }
}

/* A file that is replaced or read is not copied. */
static void replaced_file_is_not_copied(void **state) {
    (void)state;
    kelp_file_guard *guard = new_guard();
    kelp_mapping mapping = map_old(guard);
    bool leases = kelp_file_guard_copies(guard) == 0;
    run("cat model > /dev/null");
    assert_null(kelp_fs_write(path, new_data, SIZE)); /* renames */
    assert_memory_equal(mapping.data, old_data, SIZE);
    kelp_mapping replaced;
    assert_null(kelp_file_guard_map(guard, path, &replaced));
    assert_memory_equal(replaced.data, new_data, SIZE);
    run("rm model");
    assert_memory_equal(replaced.data, new_data, SIZE);
    assert_int_equal(kelp_file_guard_copies(guard), leases ? 0 : 2);
    kelp_fs_unmap(&mapping);
    kelp_fs_unmap(&replaced);
    kelp_file_guard_close(guard);
}

/* The kernel grants no lease on a file that a process has open for writing. */
static void file_that_is_being_written_is_copied(void **state) {
    (void)state;
    kelp_file_guard *guard = new_guard();
    assert_null(kelp_fs_write(path, old_data, SIZE));
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    kelp_mapping mapping;
    assert_null(kelp_file_guard_map(guard, path, &mapping));
    assert_int_equal(kelp_file_guard_copies(guard), 1);
    assert_int_equal(pwrite(fd, new_data, SIZE, 0), SIZE);
    close(fd);
    assert_memory_equal(mapping.data, old_data, SIZE);
    kelp_fs_unmap(&mapping);
    kelp_file_guard_close(guard);
}

/* One file may be mapped more than once, and in any order of closing. */
static void guard_exists_until_its_last_file_is_unmapped(void **state) {
    (void)state;
    kelp_mapping mappings[3];
    kelp_file_guard *guard = new_guard();
    for (size_t i = 0; i < 3; i++)
        mappings[i] = map_old(guard);
    kelp_fs_unmap(&mappings[1]);
    kelp_file_guard_close(guard);
    assert_null(kelp_fs_write(other, new_data, SIZE));
    run("cp other model");
    assert_memory_equal(mappings[0].data, old_data, SIZE);
    assert_memory_equal(mappings[2].data, old_data, SIZE);
    kelp_fs_unmap(&mappings[2]);
    kelp_fs_unmap(&mappings[0]);
    assert_null(mappings[0].data);
    kelp_file_guard_close(NULL);
}

static void errors_are_those_of_plain_mappings(void **state) {
    (void)state;
    kelp_file_guard *guard = new_guard();
    kelp_mapping mapping;
    kelp_status *status = kelp_file_guard_map(guard, "/nonexistent/model", &mapping);
    assert_int_equal(kelp_status_code(status), KELP_NOT_FOUND);
    kelp_status_free(status);
    status = kelp_file_guard_map(guard, root, &mapping);
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    kelp_status_free(status);
    assert_null(kelp_fs_write(path, "", 0));
    assert_null(kelp_file_guard_map(guard, path, &mapping));
    assert_int_equal(mapping.size_bytes, 0);
    kelp_fs_unmap(&mapping);
    kelp_file_guard_close(guard);
}

static kelp_status *map_and_unmap(kelp_allocator allocator) {
    kelp_file_guard *guard = NULL;
    kelp_mapping mapping;
    KELP_TRY(kelp_file_guard_create(allocator, NULL, &guard));
    kelp_status *status = kelp_file_guard_map(guard, path, &mapping);
    if (status == NULL)
        kelp_fs_unmap(&mapping);
    kelp_file_guard_close(guard);
    return status;
}

static void allocation_failures_leak_nothing(void **state) {
    (void)state;
    assert_null(kelp_fs_write(path, old_data, SIZE));
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        test_failing_init(&memory, n);
        kelp_status *status = map_and_unmap(test_failing_allocator(&memory));
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
        cmocka_unit_test(overwritten_file_keeps_its_contents),
        cmocka_unit_test(replaced_file_is_not_copied),
        cmocka_unit_test(file_that_is_being_written_is_copied),
        cmocka_unit_test(guard_exists_until_its_last_file_is_unmapped),
        cmocka_unit_test(errors_are_those_of_plain_mappings),
        cmocka_unit_test(allocation_failures_leak_nothing),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
