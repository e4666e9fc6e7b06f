/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry is a sorted array of regions under a lock with one stripe per group of threads:
 * lookups lock a stripe, changes lock all. A region is counted: the array holds one reference, each
 * use by a request another one.
 *
 * Source: the shared memory extension of Triton's inference protocol.
 */
#include "frontends/shm/registry.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/shm/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STRIPES 16
#define CACHE_LINE_BYTES 64

/* The state of a region: a count of references and a bit, which change together. */
#define PENDING UINT64_C(1) /* to be unregistered with the last use */
#define REFERENCE UINT64_C(2)

struct kelp_shm_region {
    kelp_shm_registry *registry;
    _Atomic uint64_t state;
    kelp_str name, key;
    uint64_t offset, byte_size; /* as registered */
    void *pages;                /* the mapping, whose start is a multiple of the page size */
    size_t pages_bytes;
    size_t skew; /* bytes of the mapping before the region */
    size_t guard;
    size_t allocated_bytes; /* of this structure */
    char text[];            /* name and key, each followed by NUL */
};

typedef struct stripe {
    _Alignas(CACHE_LINE_BYTES) pthread_mutex_t lock;
} stripe;

struct kelp_shm_registry {
    stripe stripes[STRIPES];
    kelp_allocator allocator;
    bool allow_clients;
    kelp_shm_region **regions; /* sorted by name */
    size_t count, capacity;
};

/* ---- locks ---- */

static pthread_mutex_t *lock_stripe(kelp_shm_registry *registry) {
    static atomic_uint next;
    static _Thread_local unsigned mine; /* index + 1; 0: not assigned yet */
    if (!mine)
        mine = 1 + atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % STRIPES;
    pthread_mutex_t *lock = &registry->stripes[mine - 1].lock;
    pthread_mutex_lock(lock);
    return lock;
}

static void lock_all(kelp_shm_registry *registry) {
    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_lock(&registry->stripes[i].lock);
}

static void unlock_all(kelp_shm_registry *registry) {
    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_unlock(&registry->stripes[i].lock);
}

/* ---- the registry ---- */

kelp_status *kelp_shm_create(kelp_allocator allocator, bool allow_clients,
                             kelp_shm_registry **out) {
    kelp_shm_registry *registry;
    KELP_TRY(kelp_alloc_aligned(allocator, sizeof *registry, CACHE_LINE_BYTES, (void **)&registry));
    memset(registry, 0, sizeof *registry);
    registry->allocator = allocator;
    registry->allow_clients = allow_clients;
    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_init(&registry->stripes[i].lock, NULL);
    *out = registry;
    return NULL;
}

static void region_free(kelp_shm_region *region) {
    kelp_allocator allocator = region->registry->allocator;
    if (region->pages != NULL) {
        kelp_shm_guard_remove(region->guard);
        (void)munmap(region->pages, region->pages_bytes);
    }
    kelp_free(allocator, region, region->allocated_bytes);
}

bool kelp_shm_allows_clients(const kelp_shm_registry *registry) {
    return registry->allow_clients;
}

void kelp_shm_destroy(kelp_shm_registry *registry) {
    if (registry == NULL)
        return;
    for (size_t i = 0; i < registry->count; i++) {
        KELP_ASSERT((registry->regions[i]->state | PENDING) == (REFERENCE | PENDING));
        region_free(registry->regions[i]);
    }
    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_destroy(&registry->stripes[i].lock);
    kelp_free(registry->allocator, registry->regions,
              registry->capacity * sizeof *registry->regions);
    kelp_free_aligned(registry->allocator, registry, sizeof *registry, CACHE_LINE_BYTES);
}

static int compare(kelp_str a, kelp_str b) {
    int order = memcmp(a.data, b.data, KELP_MIN(a.length, b.length));
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

/* Returns true if the name exists, and its index or the index at which to insert it. A lock is
 * held. */
static bool find(const kelp_shm_registry *registry, kelp_str name, size_t *out) {
    size_t begin = 0, end = registry->count;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        int order = compare(registry->regions[middle]->name, name);
        if (order == 0) {
            *out = middle;
            return true;
        }
        if (order < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    *out = begin;
    return false;
}

/* Removes and frees an unused region. All locks are held. */
static void remove_at(kelp_shm_registry *registry, size_t index) {
    region_free(registry->regions[index]);
    registry->count--;
    memmove(&registry->regions[index], &registry->regions[index + 1],
            (registry->count - index) * sizeof *registry->regions);
}

static kelp_status *check_allowed(const kelp_shm_registry *registry) {
    return registry->allow_clients
               ? NULL
               : KELP_ERROR(KELP_UNIMPLEMENTED,
                            "Client shared memory is disabled. Start the server with "
                            "'--allow-client-shm=true' to enable.");
}

/* ---- registration ---- */

static kelp_status *check_name(kelp_str name) {
    if (name.length == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "'region name' is necessary to register system shared memory region");
    if (name.length > KELP_SHM_MAX_NAME_BYTES)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the name of a shared memory region is too long: expected at most %d "
                          "bytes, found %zu",
                          KELP_SHM_MAX_NAME_BYTES, name.length);
    for (size_t i = 0; i < name.length; i++)
        if ((unsigned char)name.data[i] < ' ' || name.data[i] == 0x7F)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "the name of a shared memory region contains a control character");
    return NULL;
}

/* Checks that a key names an object that belongs to clients: not a semaphore of the C library, nor
 * memory of Triton's Python backend. */
static kelp_status *check_key(kelp_str name, kelp_str key) {
    static const char *const reserved[] = {"triton_python_backend_shm_region_", "sem."};
    kelp_str rest = key;
    while (rest.length && *rest.data == '/') {
        rest.data++;
        rest.length--;
    }
    if (rest.length == 0 || rest.length > KELP_SHM_MAX_KEY_BYTES ||
        memchr(rest.data, '/', rest.length) != NULL || memchr(rest.data, 0, rest.length) != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "cannot register shared memory region '%.*s' - invalid shm key '%.*s': "
                          "expected 1 to %d characters without '/'",
                          KELP_STR_ARG(name), (int)KELP_MIN(key.length, KELP_SHM_MAX_KEY_BYTES),
                          key.data != NULL ? key.data : "", KELP_SHM_MAX_KEY_BYTES);
    for (size_t i = 0; i < KELP_COUNT(reserved); i++)
        if (kelp_str_starts(rest, kelp_str_from(reserved[i])))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "cannot register shared memory region '%.*s' with key '%.*s' as the "
                              "key contains the reserved prefix '%s'",
                              KELP_STR_ARG(name), KELP_STR_ARG(key), reserved[i]);
    return NULL;
}

/* Checks that the range is inside the open object. */
static kelp_status *check_range(const kelp_shm_region *region, int fd) {
    struct stat info;
    uint64_t end;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "Invalid shared memory region: '%s'",
                          region->key.data);
    if (region->byte_size == 0 || __builtin_add_overflow(region->offset, region->byte_size, &end) ||
        end > (uint64_t)info.st_size)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "failed to register shared memory region '%s': invalid args: %llu bytes "
                          "at offset %llu of '%s', which has %llu bytes",
                          region->name.data, (unsigned long long)region->byte_size,
                          (unsigned long long)region->offset, region->key.data,
                          (unsigned long long)info.st_size);
    return NULL;
}

/* Maps the pages that contain the range, and guards them. */
static kelp_status *map_pages(kelp_shm_region *region, int fd) {
    KELP_TRY(check_range(region, fd));
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    region->skew = (size_t)(region->offset % page_bytes);
    size_t size_bytes = 0;
    void *pages = MAP_FAILED;
    if (kelp_size_add((size_t)region->byte_size, region->skew, &size_bytes) &&
        kelp_size_align(size_bytes, (size_t)page_bytes, &size_bytes))
        pages = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                     (off_t)(region->offset - region->skew));
    else
        errno = ENOMEM;
    if (pages == MAP_FAILED)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "failed to register shared memory region '%s': cannot map %zu bytes of "
                          "'%s': %s",
                          region->name.data, size_bytes, region->key.data, strerror(errno));
    kelp_status *status = kelp_shm_guard_add(pages, size_bytes, &region->guard);
    if (status != NULL) {
        (void)munmap(pages, size_bytes);
        return status;
    }
    region->pages = pages;
    region->pages_bytes = size_bytes;
    return NULL;
}

static kelp_status *map_object(kelp_shm_region *region) {
    int fd = shm_open(region->key.data, O_RDWR, 0);
    if (fd < 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "Unable to open shared memory region: '%s': %s",
                          region->key.data, strerror(errno));
    kelp_status *status = map_pages(region, fd);
    (void)close(fd);
    return status;
}

/* Creates a region with the reference of the registry. */
static kelp_status *region_create(kelp_shm_registry *registry, kelp_str name, kelp_str key,
                                  uint64_t offset, uint64_t byte_size, kelp_shm_region **out) {
    kelp_shm_region *region;
    KELP_TRY(check_name(name));
    KELP_TRY(check_key(name, key));
    size_t size_bytes = sizeof *region + name.length + 1 + key.length + 1;
    KELP_TRY(kelp_alloc_zero(registry->allocator, 1, size_bytes, (void **)&region));
    memcpy(region->text, name.data, name.length);
    memcpy(region->text + name.length + 1, key.data, key.length);
    region->registry = registry;
    region->allocated_bytes = size_bytes;
    region->name = (kelp_str){region->text, name.length};
    region->key = (kelp_str){region->text + name.length + 1, key.length};
    region->offset = offset;
    region->byte_size = byte_size;
    atomic_init(&region->state, REFERENCE);
    kelp_status *status = map_object(region);
    if (status != NULL) {
        region_free(region);
        return status;
    }
    *out = region;
    return NULL;
}

static kelp_status *insert_locked(kelp_shm_registry *registry, kelp_shm_region *region) {
    size_t index;
    if (find(registry, region->name, &index))
        return KELP_ERROR(KELP_ALREADY_EXISTS, "shared memory region '%s' already in manager",
                          region->name.data);
    KELP_TRY(kelp_grow(registry->allocator, (void **)&registry->regions, &registry->capacity,
                       registry->count + 1, sizeof(kelp_shm_region *)));
    memmove(&registry->regions[index + 1], &registry->regions[index],
            (registry->count - index) * sizeof *registry->regions);
    registry->regions[index] = region;
    registry->count++;
    return NULL;
}

kelp_status *kelp_shm_register(kelp_shm_registry *registry, kelp_str name, kelp_str key,
                               uint64_t offset, uint64_t byte_size) {
    kelp_shm_region *region;
    KELP_TRY(check_allowed(registry));
    KELP_TRY(region_create(registry, name, key, offset, byte_size, &region));
    lock_all(registry);
    kelp_status *status = insert_locked(registry, region);
    unlock_all(registry);
    if (status != NULL)
        region_free(region);
    return status;
}

/* Unregisters the region at an index, now or with its last use. Returns true if it was removed. */
static bool unregister_at(kelp_shm_registry *registry, size_t index) {
    kelp_shm_region *region = registry->regions[index];
    uint64_t state = atomic_fetch_or(&region->state, PENDING) | PENDING;
    if (state != (REFERENCE | PENDING))
        return false;
    remove_at(registry, index);
    return true;
}

kelp_status *kelp_shm_unregister(kelp_shm_registry *registry, kelp_str name) {
    size_t index;
    KELP_TRY(check_allowed(registry));
    if (name.length != 0)
        KELP_TRY(check_name(name));
    lock_all(registry);
    if (name.length != 0) {
        if (find(registry, name, &index))
            (void)unregister_at(registry, index);
    } else {
        for (size_t i = registry->count; i-- > 0;)
            (void)unregister_at(registry, i);
    }
    unlock_all(registry);
    return NULL;
}

/* ---- status ---- */

static void visit_region(const kelp_shm_region *region, kelp_shm_visit visit, void *userp) {
    const kelp_shm_info info = {region->name, region->key, region->offset, region->byte_size};
    visit(userp, &info);
}

kelp_status *kelp_shm_status(kelp_shm_registry *registry, kelp_str name, kelp_shm_visit visit,
                             void *userp) {
    size_t index;
    pthread_mutex_t *lock = lock_stripe(registry);
    bool known = name.length == 0 || find(registry, name, &index);
    if (name.length == 0) {
        for (size_t i = 0; i < registry->count; i++)
            visit_region(registry->regions[i], visit, userp);
    } else if (known) {
        visit_region(registry->regions[index], visit, userp);
    }
    pthread_mutex_unlock(lock);
    return known ? NULL
                 : KELP_ERROR(KELP_NOT_FOUND, "Unable to find system shared memory region: '%.*s'",
                              KELP_STR_ARG(name));
}

/* ---- requests ---- */

/* Retains a region, or returns NULL. */
static kelp_shm_region *retain(kelp_shm_registry *registry, kelp_str name) {
    size_t index;
    kelp_shm_region *region = NULL;
    pthread_mutex_t *lock = lock_stripe(registry);
    if (name.length != 0 && find(registry, name, &index)) {
        region = registry->regions[index];
        atomic_fetch_add(&region->state, REFERENCE);
    }
    pthread_mutex_unlock(lock);
    return region;
}

static kelp_status *check_use(const kelp_shm_region *region, uint64_t offset, uint64_t byte_size) {
    uint64_t end;
    if (offset >= region->byte_size)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "Invalid offset for shared memory region: '%s': offset %llu of a region "
                          "of %llu bytes",
                          region->name.data, (unsigned long long)offset,
                          (unsigned long long)region->byte_size);
    if (__builtin_add_overflow(offset, byte_size, &end))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "Integer overflow detected: byte_size (%llu) + offset (%llu) exceeds "
                          "maximum value (%llu) for region '%s'",
                          (unsigned long long)byte_size, (unsigned long long)offset,
                          (unsigned long long)UINT64_MAX, region->name.data);
    if (end > region->byte_size)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "Invalid offset + byte size for shared memory region: '%s': %llu bytes "
                          "at offset %llu of a region of %llu bytes",
                          region->name.data, (unsigned long long)byte_size,
                          (unsigned long long)offset, (unsigned long long)region->byte_size);
    return kelp_shm_region_check(region);
}

kelp_status *kelp_shm_map(kelp_shm_registry *registry, kelp_str name, uint64_t offset,
                          uint64_t byte_size, kelp_shm_region **out_region, void **out_address) {
    kelp_shm_region *region = retain(registry, name);
    if (region == NULL)
        return KELP_ERROR(KELP_NOT_FOUND, "Unable to find shared memory region: '%.*s'",
                          (int)KELP_MIN(name.length, KELP_SHM_MAX_NAME_BYTES),
                          name.data != NULL ? name.data : "");
    kelp_status *status = check_use(region, offset, byte_size);
    if (status != NULL) {
        kelp_shm_region_release(region);
        return status;
    }
    *out_region = region;
    *out_address = (char *)region->pages + region->skew + offset;
    return NULL;
}

kelp_status *kelp_shm_region_check(const kelp_shm_region *region) {
    return !kelp_shm_guard_is_damaged(region->guard)
               ? NULL
               : KELP_ERROR(KELP_INVALID_ARGUMENT,
                            "shared memory region '%s' is damaged: '%s' was truncated after its "
                            "registration, or its file system is full; register it again",
                            region->name.data, region->key.data);
}

/* Removes a region that is to be unregistered, if it still exists and is unused. */
static void remove_pending(kelp_shm_registry *registry, const kelp_shm_region *region) {
    lock_all(registry);
    for (size_t i = 0; i < registry->count; i++) {
        if (registry->regions[i] == region &&
            atomic_load(&region->state) == (REFERENCE | PENDING)) {
            remove_at(registry, i);
            break;
        }
    }
    unlock_all(registry);
}

void kelp_shm_region_release(kelp_shm_region *region) {
    /* After the reference is dropped, another thread may free the region. */
    kelp_shm_registry *registry = region->registry;
    uint64_t state = atomic_fetch_sub(&region->state, REFERENCE) - REFERENCE;
    KELP_ASSERT(state >= REFERENCE);
    if (state == (REFERENCE | PENDING))
        remove_pending(registry, region);
}

/* ---- CUDA shared memory ---- */

kelp_status *kelp_shm_register_cuda(const kelp_shm_registry *registry, kelp_str name) {
    KELP_TRY(check_allowed(registry));
    if (name.length == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "failed to register shared memory region, invalid args: 'region name' "
                          "is necessary to register cuda shared memory region");
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "failed to register CUDA shared memory region: '%.*s', GPUs not supported",
                      (int)KELP_MIN(name.length, KELP_SHM_MAX_NAME_BYTES), name.data);
}

kelp_status *kelp_shm_unregister_cuda(const kelp_shm_registry *registry) {
    return check_allowed(registry);
}

kelp_status *kelp_shm_status_cuda(kelp_str name) {
    if (name.length == 0)
        return NULL;
    return KELP_ERROR(KELP_NOT_FOUND, "Unable to find cuda shared memory region: '%.*s'",
                      (int)KELP_MIN(name.length, KELP_SHM_MAX_NAME_BYTES), name.data);
}
