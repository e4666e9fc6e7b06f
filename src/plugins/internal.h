/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of kernels, libraries, registries and sessions. */
#ifndef KELP_PLUGINS_INTERNAL_H_
#define KELP_PLUGINS_INTERNAL_H_

#include "base/buf.h"
#include "base/dl.h"
#include "base/sync/thread.h"
#include "signature/signature.h"

#include <stdatomic.h>

#define KELP_FAIL_TEXT 512

struct kelp_kernel {
    kelp_kernel_library *library;
    const char *name, *summary, *signature_text;
    kelp_signature signature; /* valid if typed */
    bool typed;               /* the kernel has a signature */
    kelp_kernel_fn fn;        /* NULL: `raw` */
    void *raw;                /* a bare function, called through libffi */
    bool with_context;        /* the first parameter of `raw` is the context */
    uint32_t devices;         /* bit n: DLDeviceType n is supported */
    uint32_t flags;
};

struct kelp_kernel_library {
    kelp_kernel_registry *registry;
    kelp_dl dl;
    const char *name, *path;
    const kelp_kernel_library_def *def; /* NULL: created by kelp_kernel_registry_add */
    void *state;
    kelp_kernel **kernels; /* guarded by the registry's mutex; the kernels do not move */
    size_t kernel_count, kernel_capacity;
};

struct kelp_kernel_registry {
    _Atomic uint32_t references;
    kelp_allocator allocator;
    pthread_mutex_t mutex; /* guards libraries, their kernels, and `spare` */
    kelp_arena arena;      /* names, libraries, kernels */
    kelp_pool *pool;       /* NULL with one thread */
    bool borrows_pool;     /* the pool is that of a runtime */
    int threads;
    const char *search_path;
    const kelp_device_config *configs;
    size_t config_count;
    void (*log)(void *userp, int level, const char *text);
    void *log_userp;
    kelp_kernel_library **libraries;
    size_t count, capacity;
    kelp_kernel_session *spare; /* unused sessions for operators, which run on many threads */
};

struct kelp_kernel_completion {
    kelp_kernel_session *session;
};

typedef struct kelp_owned {
    void (*release)(void *resource);
    void *resource;
} kelp_owned;

struct kelp_kernel_session {
    kelp_kernel_context context;    /* first: kernels see this address */
    kelp_kernel_registry *registry; /* retained unless in_registry */
    bool in_registry;               /* the registry owns the session; `next` is its next one */
    kelp_kernel_session *next;
    kelp_arena scratch;
    char fail_text[KELP_FAIL_TEXT];
    kelp_kernel_arg filled[KELP_SIGNATURE_PARAMS]; /* the arguments of a call with defaults */
    kelp_owned *owned;
    size_t owned_count, owned_capacity;
    /* the submission in flight */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    kelp_kernel_completion completion;
    const kelp_kernel *kernel;
    bool pending;  /* the kernel called `later` and not yet `complete` */
    bool finished; /* `complete` was called, perhaps before the kernel returned */
    bool scratch_used;
    kelp_event *event; /* the caller's, or NULL */
    kelp_status *result;
    /* Called once for a submission that succeeds, when it is done, with the mutex held if another
     * thread ends it; may be NULL. */
    void (*on_done)(void *userp);
    void *on_done_userp;
};

/* ---- library.c: the caller holds the registry's mutex ---- */
/* Loads, checks and initializes a library. Fails if `name` is not NULL and differs from its name.
 */
kelp_status *kelp_kernel_library_load(kelp_kernel_registry *registry, const char *path,
                                      const char *name, kelp_kernel_library **out) KELP_MUST_USE;
/* Creates a library without kernels in the registry's arena. */
kelp_status *kelp_kernel_library_new(kelp_kernel_registry *registry, const char *name,
                                     const char *path, kelp_kernel_library **out) KELP_MUST_USE;
/* Calls the library's `finalize` and frees its list of kernels. */
void kelp_kernel_library_finalize(kelp_kernel_library *library);

/* ---- find.c ---- */
/* Calls `fn` for each file that may hold library `name` (NULL: any library), in order, until it
 * returns true. `search_path` is as in kelp_kernel_registry_options. */
void kelp_kernel_candidates(kelp_allocator allocator, const char *search_path, const char *name,
                            bool (*fn)(void *userp, const char *path), void *userp);

/* ---- registry.c ---- */
/* Creates a registry that uses the threads of `pool` (NULL: none), which outlives it. */
kelp_status *kelp_kernel_registry_create_on(const kelp_kernel_registry_options *options,
                                            kelp_pool *pool,
                                            kelp_kernel_registry **out) KELP_MUST_USE;
/* Opens the library in a file. */
kelp_status *kelp_kernel_registry_load(kelp_kernel_registry *registry, const char *path,
                                       kelp_kernel_library **out) KELP_MUST_USE;
/* Opens a library by name in `search_path`. */
kelp_status *kelp_kernel_registry_open_in(kelp_kernel_registry *registry, const char *search_path,
                                          const char *name,
                                          kelp_kernel_library **out) KELP_MUST_USE;

/* ---- session.c ---- */
/* Returns the DLPack device type of a name, or 0 if it is unknown. */
int kelp_kernel_device_type(const char *name);
/* Returns an unused CPU session of the registry. Thread-safe, as is its counterpart. */
kelp_status *kelp_kernel_take_session(kelp_kernel_registry *registry,
                                      kelp_kernel_session **out) KELP_MUST_USE;
void kelp_kernel_return_session(kelp_kernel_registry *registry, kelp_kernel_session *session);

/* ---- raw.c ---- */
/* Calls a bare function. Fails with INVALID_ARGUMENT if an argument cannot be passed. */
kelp_status *kelp_kernel_call_raw(const kelp_kernel *kernel, const kelp_kernel_context *context,
                                  const kelp_kernel_arg *args, int32_t count) KELP_MUST_USE;

#endif
