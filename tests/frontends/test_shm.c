/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of shared memory regions. */
#include "frontends/shm/registry.h"
#include "support/failing_allocator.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define OBJECT_BYTES ((size_t)256 * 1024)

/* A shared memory object of this process. */
typedef struct object {
    char key[64];
    int fd;
    unsigned char *bytes;
} object;

static void object_create(object *o, const char *name) {
    snprintf(o->key, sizeof o->key, "/kelp-test-%ld-%s", (long)getpid(), name);
    o->fd = shm_open(o->key, O_CREAT | O_EXCL | O_RDWR, 0600);
    assert_true(o->fd >= 0);
    assert_int_equal(ftruncate(o->fd, OBJECT_BYTES), 0);
    o->bytes = mmap(NULL, OBJECT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, o->fd, 0);
    assert_true(o->bytes != MAP_FAILED);
}

static void object_destroy(object *o) {
    assert_int_equal(munmap(o->bytes, OBJECT_BYTES), 0);
    assert_int_equal(close(o->fd), 0);
    assert_int_equal(shm_unlink(o->key), 0);
}

static kelp_shm_registry *create(void) {
    kelp_shm_registry *registry = NULL;
    assert_null(kelp_shm_create(kelp_allocator_system(), true, &registry));
    return registry;
}

static kelp_status *add(kelp_shm_registry *registry, const char *name, const char *key,
                        uint64_t offset, uint64_t byte_size) {
    return kelp_shm_register(registry, kelp_str_from(name), kelp_str_from(key), offset, byte_size);
}

static void rejected(kelp_status *status, kelp_code code, const char *words) {
    if (status == NULL)
        fail_msg("succeeded, expected '%s'", words);
    if (strstr(kelp_status_message(status), words) == NULL)
        fail_msg("'%s' does not contain '%s'", kelp_status_message(status), words);
    assert_int_equal(kelp_status_code(status), code);
    kelp_status_free(status);
}

static void list(void *userp, const kelp_shm_info *info) {
    char *text = userp;
    size_t length = strlen(text);
    snprintf(text + length, 256 - length, "%.*s:%llu+%llu ", KELP_STR_ARG(info->name),
             (unsigned long long)info->offset, (unsigned long long)info->byte_size);
}

static void listed(kelp_shm_registry *registry, const char *name, const char *expected) {
    char text[256] = "";
    assert_null(kelp_shm_status(registry, kelp_str_from(name), list, text));
    assert_string_equal(text, expected);
}

static kelp_status *map(kelp_shm_registry *registry, const char *name, uint64_t offset,
                        uint64_t byte_size, kelp_shm_region **region, void **address) {
    return kelp_shm_map(registry, kelp_str_from(name), offset, byte_size, region, address);
}

static void regions_are_mapped_at_any_offset(void **state) {
    (void)state;
    object o;
    object_create(&o, "map");
    kelp_shm_registry *registry = create();
    kelp_shm_region *region;
    void *address;
    assert_null(add(registry, "b", o.key, 0, OBJECT_BYTES));
    assert_null(add(registry, "a", o.key + 1, 4100, 64)); /* without the slash, unaligned */
    listed(registry, "", "a:4100+64 b:0+262144 ");
    listed(registry, "a", "a:4100+64 ");
    assert_null(map(registry, "a", 60, 4, &region, &address));
    memcpy(address, "kelp", 4);
    assert_memory_equal(o.bytes + 4160, "kelp", 4);
    assert_null(kelp_shm_region_check(region));
    kelp_shm_region_release(region);
    assert_null(map(registry, "b", OBJECT_BYTES - 1, 1, &region, &address));
    kelp_shm_region_release(region);
    kelp_shm_destroy(registry);
    kelp_shm_destroy(NULL);
    object_destroy(&o);
}

static void invalid_registrations_are_rejected(void **state) {
    (void)state;
    object o;
    char name[KELP_SHM_MAX_NAME_BYTES + 2];
    object_create(&o, "invalid");
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    kelp_shm_registry *registry = create();
    kelp_code bad = KELP_INVALID_ARGUMENT;
    const char *range = "failed to register shared memory region 'r': invalid args";
    rejected(add(registry, "", o.key, 0, 1), bad, "'region name' is necessary");
    rejected(add(registry, name, o.key, 0, 1), bad, "too long");
    rejected(add(registry, "a\nb", o.key, 0, 1), bad, "control character");
    rejected(kelp_shm_register(registry, (kelp_str){"a\0b", 3}, kelp_str_from(o.key), 0, 1), bad,
             "control character");
    rejected(add(registry, "r", "", 0, 1), bad, "invalid shm key ''");
    rejected(add(registry, "r", "///", 0, 1), bad, "invalid shm key '///'");
    rejected(add(registry, "r", "/a/b", 0, 1), bad, "invalid shm key");
    rejected(add(registry, "r", "../a", 0, 1), bad, "invalid shm key");
    rejected(add(registry, "r", "/..", 0, 1), bad, "shared memory region");
    rejected(add(registry, "r", name, 0, 1), bad, "invalid shm key");
    rejected(kelp_shm_register(registry, KELP_STR("r"), (kelp_str){"/a\0b", 4}, 0, 1), bad,
             "invalid shm key");
    rejected(add(registry, "r", "//sem.lock", 0, 1), bad, "reserved prefix 'sem.'");
    rejected(add(registry, "r", "triton_python_backend_shm_region_1", 0, 1), bad,
             "as the key contains the reserved prefix 'triton_python_backend_shm_region_'");
    rejected(add(registry, "r", "/kelp-test-none", 0, 1), bad,
             "Unable to open shared memory region: '/kelp-test-none'");
    rejected(add(registry, "r", o.key, 0, 0), bad, range);
    rejected(add(registry, "r", o.key, 0, OBJECT_BYTES + 1), bad, range);
    rejected(add(registry, "r", o.key, 1, OBJECT_BYTES), bad, range);
    rejected(add(registry, "r", o.key, OBJECT_BYTES, 1), bad, range);
    rejected(add(registry, "r", o.key, UINT64_MAX, 1), bad, range);
    rejected(add(registry, "r", o.key, UINT64_MAX - 4095, UINT64_MAX), bad, range);
    listed(registry, "", "");
    assert_null(add(registry, "r", o.key, 0, 1));
    rejected(add(registry, "r", o.key, 0, 1), KELP_ALREADY_EXISTS,
             "shared memory region 'r' already in manager");
    kelp_shm_destroy(registry);
    object_destroy(&o);
}

static void uses_outside_of_a_region_are_rejected(void **state) {
    (void)state;
    object o;
    object_create(&o, "use");
    kelp_shm_registry *registry = create();
    kelp_shm_region *region;
    void *address;
    kelp_code bad = KELP_INVALID_ARGUMENT;
    assert_null(add(registry, "r", o.key, 64, 64));
    rejected(map(registry, "s", 0, 1, &region, &address), KELP_NOT_FOUND,
             "Unable to find shared memory region: 's'");
    rejected(map(registry, "", 0, 1, &region, &address), KELP_NOT_FOUND, "Unable to find");
    rejected(map(registry, "r", 64, 0, &region, &address), bad, "Invalid offset for");
    rejected(map(registry, "r", UINT64_MAX, 1, &region, &address), bad, "Invalid offset for");
    rejected(map(registry, "r", 1, 64, &region, &address), bad, "Invalid offset + byte size");
    rejected(map(registry, "r", 32, UINT64_MAX - 31, &region, &address), bad,
             "Integer overflow detected: byte_size (");
    rejected(kelp_shm_status(registry, KELP_STR("s"), list, NULL), KELP_NOT_FOUND,
             "Unable to find system shared memory region: 's'");
    kelp_shm_destroy(registry);
    object_destroy(&o);
}

static void a_region_in_use_is_unregistered_with_its_last_use(void **state) {
    (void)state;
    object o;
    object_create(&o, "unregister");
    kelp_shm_registry *registry = create();
    kelp_shm_region *first, *second;
    void *address;
    assert_null(kelp_shm_unregister(registry, KELP_STR("unknown")));
    assert_null(kelp_shm_unregister(registry, KELP_STR("")));
    assert_null(add(registry, "r", o.key, 0, 64));
    assert_null(add(registry, "q", o.key, 0, 64));
    assert_null(map(registry, "r", 0, 64, &first, &address));
    assert_null(kelp_shm_unregister(registry, KELP_STR("")));
    assert_null(kelp_shm_unregister(registry, KELP_STR("r"))); /* twice */
    listed(registry, "", "r:0+64 ");
    rejected(add(registry, "r", o.key, 0, 64), KELP_ALREADY_EXISTS, "already in manager");
    assert_null(map(registry, "r", 0, 64, &second, &address));
    kelp_shm_region_release(first);
    listed(registry, "", "r:0+64 ");
    memset(address, 7, 64);
    kelp_shm_region_release(second);
    listed(registry, "", "");
    assert_null(add(registry, "r", o.key, 0, 64));
    kelp_shm_destroy(registry);
    object_destroy(&o);
}

static void a_truncated_region_does_not_end_the_process(void **state) {
    (void)state;
    object o;
    object_create(&o, "truncate");
    kelp_shm_registry *registry = create();
    kelp_shm_region *whole, *part;
    void *address, *start;
    memset(o.bytes, 1, OBJECT_BYTES);
    assert_null(add(registry, "whole", o.key, 0, OBJECT_BYTES));
    assert_null(add(registry, "part", o.key, 0, 4096));
    assert_null(map(registry, "whole", 0, OBJECT_BYTES, &whole, &address));
    assert_null(map(registry, "part", 0, 4096, &part, &start));
    assert_int_equal(ftruncate(o.fd, 4096), 0);
    unsigned char copy[OBJECT_BYTES / 16];
    memcpy(copy, (char *)address + OBJECT_BYTES / 2, sizeof copy); /* read, and write */
    memset((char *)address + OBJECT_BYTES / 4, 5, 100);
    assert_int_equal(copy[0], 0);
    rejected(kelp_shm_region_check(whole), KELP_INVALID_ARGUMENT,
             "shared memory region 'whole' is damaged");
    assert_null(kelp_shm_region_check(part));
    assert_int_equal(*(unsigned char *)start, 1);
    kelp_shm_region_release(whole);
    kelp_shm_region_release(part);
    rejected(map(registry, "whole", 0, 1, &whole, &address), KELP_INVALID_ARGUMENT, "is damaged");
    assert_int_equal(ftruncate(o.fd, OBJECT_BYTES), 0);
    assert_null(kelp_shm_unregister(registry, KELP_STR("whole")));
    assert_null(add(registry, "whole", o.key, 0, OBJECT_BYTES));
    assert_null(map(registry, "whole", OBJECT_BYTES - 1, 1, &whole, &address));
    *(unsigned char *)address = 3;
    assert_null(kelp_shm_region_check(whole));
    assert_int_equal(o.bytes[OBJECT_BYTES - 1], 3);
    kelp_shm_region_release(whole);
    kelp_shm_destroy(registry);
    object_destroy(&o);
}

static void the_number_of_regions_is_limited(void **state) {
    (void)state;
    object o;
    object_create(&o, "limit");
    kelp_shm_registry *registry = create();
    char name[32];
    for (int i = 0; i < KELP_SHM_MAX_REGIONS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        assert_null(add(registry, name, o.key, 0, 64));
    }
    rejected(add(registry, "one more", o.key, 0, 64), KELP_RESOURCE_EXHAUSTED,
             "too many shared memory regions");
    assert_null(kelp_shm_unregister(registry, KELP_STR("r500")));
    assert_null(add(registry, "one more", o.key, 0, 64));
    assert_null(kelp_shm_unregister(registry, KELP_STR("")));
    listed(registry, "", "");
    kelp_shm_destroy(registry);
    object_destroy(&o);
}

static void clients_can_be_excluded(void **state) {
    (void)state;
    kelp_shm_registry *registry = NULL;
    const char *words = "Client shared memory is disabled";
    assert_null(kelp_shm_create(kelp_allocator_system(), false, &registry));
    rejected(add(registry, "r", "/kelp-test-none", 0, 64), KELP_UNIMPLEMENTED, words);
    rejected(kelp_shm_unregister(registry, KELP_STR("")), KELP_UNIMPLEMENTED, words);
    rejected(kelp_shm_register_cuda(registry, KELP_STR("r")), KELP_UNIMPLEMENTED, words);
    rejected(kelp_shm_unregister_cuda(registry), KELP_UNIMPLEMENTED, words);
    listed(registry, "", "");
    kelp_shm_destroy(registry);
}

static void cuda_regions_are_rejected(void **state) {
    (void)state;
    kelp_shm_registry *registry = create();
    rejected(kelp_shm_register_cuda(registry, KELP_STR("r")), KELP_INVALID_ARGUMENT,
             "failed to register CUDA shared memory region: 'r', GPUs not supported");
    rejected(kelp_shm_register_cuda(registry, KELP_STR("")), KELP_INVALID_ARGUMENT,
             "failed to register shared memory region, invalid args: 'region name' is "
             "necessary to register cuda shared memory region");
    rejected(kelp_shm_status_cuda(KELP_STR("r")), KELP_NOT_FOUND,
             "Unable to find cuda shared memory region: 'r'");
    assert_null(kelp_shm_unregister_cuda(registry));
    assert_null(kelp_shm_status_cuda(KELP_STR("")));
    kelp_shm_destroy(registry);
}

/* ---- threads ---- */

typedef struct shared {
    kelp_shm_registry *registry;
    const char *key;
    atomic_bool stop;
    atomic_uint uses;
} shared;

static void *use_region(void *userp) {
    shared *s = userp;
    kelp_shm_region *region;
    void *address;
    while (!atomic_load(&s->stop)) {
        kelp_status *status = map(s->registry, "r", 0, 64, &region, &address);
        if (status == NULL) {
            (void)*(volatile unsigned char *)address;
            kelp_shm_region_release(region);
            atomic_fetch_add(&s->uses, 1);
        }
        kelp_status_free(status);
    }
    return NULL;
}

static void regions_are_unregistered_while_threads_use_them(void **state) {
    (void)state;
    object o;
    pthread_t threads[3];
    object_create(&o, "threads");
    shared s = {.registry = create(), .key = o.key};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_region, &s), 0);
    for (int i = 0; i < 50000 && (i < 2000 || atomic_load(&s.uses) < 1000); i++) {
        kelp_status_free(add(s.registry, "r", o.key, 0, 64));
        if (i % 16 == 0)
            sched_yield();
        assert_null(kelp_shm_unregister(s.registry, KELP_STR("r")));
    }
    atomic_store(&s.stop, true);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_null(kelp_shm_unregister(s.registry, KELP_STR("")));
    listed(s.registry, "", "");
    kelp_shm_destroy(s.registry);
    object_destroy(&o);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    object o;
    object_create(&o, "memory");
    for (uint64_t n = 1;; n++) {
        test_failing memory;
        kelp_shm_registry *registry = NULL;
        test_failing_init(&memory, n);
        kelp_status *status = kelp_shm_create(test_failing_allocator(&memory), true, &registry);
        if (status == NULL)
            status = add(registry, "r", o.key, 0, 64);
        kelp_shm_destroy(registry);
        test_failing_check(&memory);
        bool failed = memory.failed;
        test_failing_deinit(&memory);
        assert_int_equal(failed, status != NULL);
        kelp_status_free(status);
        if (!failed)
            break;
    }
    object_destroy(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        /* first, because cmocka replaces the handler for SIGBUS after each test */
        cmocka_unit_test(a_truncated_region_does_not_end_the_process),
        cmocka_unit_test(regions_are_mapped_at_any_offset),
        cmocka_unit_test(invalid_registrations_are_rejected),
        cmocka_unit_test(uses_outside_of_a_region_are_rejected),
        cmocka_unit_test(a_region_in_use_is_unregistered_with_its_last_use),
        cmocka_unit_test(the_number_of_regions_is_limited),
        cmocka_unit_test(clients_can_be_excluded),
        cmocka_unit_test(cuda_regions_are_rejected),
        cmocka_unit_test(regions_are_unregistered_while_threads_use_them),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
