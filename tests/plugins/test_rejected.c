/* SPDX-License-Identifier: Apache-2.0 */
/* Files and tables that are no plug-in libraries of this Kelp: each error names the
 * cause. */
#include <elf.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <kelp/engine.h>

#include "support/check_status.h"

static kelp_runtime *new_runtime(void) {
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_runtime *runtime = NULL;
    check_ok(kelp_runtime_create(&options, &runtime));
    return runtime;
}

static void wrong_tables_are_rejected(void **state) {
    (void)state;
    static const struct {
        kelp_code code;
        const char *says;
    } cases[] = {
        {KELP_NOT_FOUND, "plug-in 'wrong' offers neither operators nor kernels nor models nor "},
        {KELP_INVALID_ARGUMENT, "bad plug-in magic 0x6b656c71, expected 0x6b656c70"},
        {KELP_UNIMPLEMENTED, "built for plug-in interface version 9: this Kelp has version 1"},
        {KELP_INVALID_ARGUMENT, "its table has 24 bytes: expected at least"},
        {KELP_INVALID_ARGUMENT, "and a name"},
        {KELP_UNIMPLEMENTED, "does not support plug-in interface version 1"},
    };
    kelp_runtime *runtime = new_runtime();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[PATH_MAX];
        (void)snprintf(path, sizeof path, "%s/libwrong_plugin_%zu.so", getenv("KERNEL_FOLDER"), i);
        expect_failure(kelp_runtime_load_plugin(runtime, path), cases[i].code, cases[i].says);
    }
    kelp_runtime_release(runtime);
}

/* Writes a file of `length` bytes that begins like a shared library. */
static void write_head(const char *path, size_t length, unsigned char data, uint16_t machine) {
    unsigned char head[64] = {0x7f, 'E', 'L', 'F', ELFCLASS64, data, 1};
    head[data == ELFDATA2LSB ? 18 : 19] = (unsigned char)machine;
    head[data == ELFDATA2LSB ? 19 : 18] = (unsigned char)(machine >> 8);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(head, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void wrong_files_are_rejected(void **state) {
    (void)state;
    static const struct {
        uint16_t machine;
        const char *name;
    } machines[] = {
        {EM_386, "x86, 32 bits"}, {EM_ARM, "arm, 32 bits"}, {EM_PPC64, "another machine"}};
    char path[] = "/tmp/kelp-library-XXXXXX", says[64];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    kelp_runtime *runtime = new_runtime();
    expect_failure(kelp_runtime_load_plugin(runtime, path), KELP_INVALID_ARGUMENT,
                   "it is not a shared library (ELF)");
    write_head(path, 19, ELFDATA2LSB, EM_386);
    expect_failure(kelp_runtime_load_plugin(runtime, path), KELP_INVALID_ARGUMENT,
                   "it is not a shared library (ELF)");
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        (void)snprintf(says, sizeof says, "it is built for %s", machines[i].name);
        for (unsigned char data = ELFDATA2LSB; data <= ELFDATA2MSB; data++) {
            write_head(path, 64, data, machines[i].machine);
            expect_failure(kelp_runtime_load_plugin(runtime, path), KELP_INVALID_ARGUMENT, says);
        }
    }
    unlink(path);
    expect_failure(kelp_runtime_load_plugin(runtime, path), KELP_NOT_FOUND, "no such file");
    expect_failure(kelp_runtime_load_plugin(runtime, "nothing.so"), KELP_NOT_FOUND,
                   "cannot load plug-in library 'nothing.so'");
    kelp_runtime_release(runtime);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_tables_are_rejected),
        cmocka_unit_test(wrong_files_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
