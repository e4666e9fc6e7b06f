/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guarded mappings, in a static table that the signal handler reads without locks. A slot changes
 * only while no thread accesses its pages, so that a handler can skip slots that change.
 */
#include "frontends/shm/guard.h"

#include "base/assert.h"
#include "frontends/shm/registry.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A slot of the table. */
typedef struct slot {
    atomic_uint version; /* odd while the slot changes */
    atomic_uintptr_t begin;
    atomic_uintptr_t end; /* 0: unused */
    atomic_bool damaged;
} slot;

static slot slots[KELP_SHM_MAX_REGIONS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while slots change */
static bool installed;
static struct sigaction previous;
static uintptr_t page_bytes;

/* ---- the handler ---- */

/* Returns the slot of an address, and the end of its mapping, or NULL. Async-signal-safe. */
static slot *find(uintptr_t address, uintptr_t *out_end) {
    for (size_t i = 0; i < KELP_SHM_MAX_REGIONS; i++) {
        slot *s = &slots[i];
        unsigned version = atomic_load(&s->version);
        uintptr_t begin = atomic_load(&s->begin);
        *out_end = atomic_load(&s->end);
        if (address >= begin && address < *out_end && version % 2 == 0 &&
            atomic_load(&s->version) == version)
            return s;
    }
    return NULL;
}

/* Runs the previous handler. Without one, the signal ends the process when the instruction is
 * repeated. */
static void call_previous(int number, siginfo_t *info, void *context) {
    if (previous.sa_flags & SA_SIGINFO)
        previous.sa_sigaction(number, info, context);
    else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)
        (void)signal(number, SIG_DFL);
    else
        previous.sa_handler(number);
}

static void on_sigbus(int number, siginfo_t *info, void *context) {
    int error = errno;
    uintptr_t address = (uintptr_t)info->si_addr, end = 0;
    slot *s = info->si_code > 0 ? find(address, &end) : NULL; /* raised by an access */
    if (s == NULL) {
        call_previous(number, info, context);
    } else {
        uintptr_t page = address & ~(page_bytes - 1);
        atomic_store(&s->damaged, true);
        if (mmap((void *)page, end - page,
                 PROT_READ | PROT_WRITE, // NOLINT(performance-no-int-to-ptr)
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
            (void)signal(number, SIG_DFL);
    }
    errno = error;
}

static kelp_status *install(void) {
    struct sigaction action;
    if (installed)
        return NULL;
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    (void)sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, &previous) != 0)
        return KELP_ERROR(KELP_INTERNAL, "cannot handle SIGBUS: %s", strerror(errno));
    installed = true;
    return NULL;
}

/* ---- slots ---- */

static void set(slot *s, uintptr_t begin, uintptr_t end) {
    atomic_fetch_add(&s->version, 1);
    atomic_store(&s->begin, begin);
    atomic_store(&s->end, end);
    atomic_store(&s->damaged, false);
    atomic_fetch_add(&s->version, 1);
}

static kelp_status *add_locked(uintptr_t begin, uintptr_t end, size_t *out) {
    KELP_TRY(install());
    for (size_t i = 0; i < KELP_SHM_MAX_REGIONS; i++) {
        if (atomic_load(&slots[i].end) == 0) {
            set(&slots[i], begin, end);
            *out = i;
            return NULL;
        }
    }
    return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                      "too many shared memory regions: expected at most %d", KELP_SHM_MAX_REGIONS);
}

kelp_status *kelp_shm_guard_add(void *data, size_t size_bytes, size_t *out) {
    pthread_mutex_lock(&lock);
    kelp_status *status = add_locked((uintptr_t)data, (uintptr_t)data + size_bytes, out);
    pthread_mutex_unlock(&lock);
    return status;
}

void kelp_shm_guard_remove(size_t slot_index) {
    pthread_mutex_lock(&lock);
    KELP_ASSERT(slot_index < KELP_SHM_MAX_REGIONS && slots[slot_index].end != 0);
    set(&slots[slot_index], 0, 0);
    pthread_mutex_unlock(&lock);
}

bool kelp_shm_guard_is_damaged(size_t slot_index) {
    KELP_ASSERT(slot_index < KELP_SHM_MAX_REGIONS);
    return atomic_load_explicit(&slots[slot_index].damaged, memory_order_acquire);
}
