/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef KELP_PLUGINS_INTERNAL_H_
#define KELP_PLUGINS_INTERNAL_H_

#include "base/buf.h"
#include "base/dl.h"
#include "base/sync/thread.h"
#include "plugins/signature.h"

#include <stdatomic.h>

#define KELP_FAIL_TEXT 512

struct kelp_kernel {
    kelp_kernel_library *library;
    const char *name, *summary, *signature_text;
    kelp_signature signature; /* when there is one */
    bool typed;               /* has a signature */
    kelp_kernel_fn fn;        /* or: */
    void *raw;                /* a bare function, called through libffi */
    bool with_context;        /* raw takes the context's address first */
    uint32_t devices;         /* bit n: DLDeviceType n is supported */
    uint32_t flags;
};

struct kelp_kernel_library {
    kelp_kernel_registry *registry;
    kelp_dl dl;
    const char *name, *path;
    const kelp_kernel_library_def *def; /* NULL: a library of our own */
    void *state;
    kelp_kernel **kernels; /* grows under the registry's mutex; entries stay */
    size_t kernel_count, kernel_capacity;
};

struct kelp_kernel_registry {
    _Atomic uint32_t references;
    kelp_allocator allocator;
    pthread_mutex_t mutex; /* libraries and their kernels */
    kelp_arena arena;      /* names, libraries, kernels */
    kelp_pool *pool;       /* NULL with one thread */
    int threads;
    const char *search_path;
    const kelp_device_config *configs;
    size_t config_count;
    void (*log)(void *userp, int level, const char *text);
    void *log_userp;
    kelp_kernel_library **libraries;
    size_t count, capacity;
    kelp_kernel_session *spare; /* of operators, which come from many threads */
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
    kelp_kernel_registry *registry; /* retained, but by the registry's own sessions */
    bool own;                       /* of the registry: `next` is another one */
    kelp_kernel_session *next;
    kelp_arena scratch;
    char fail_text[KELP_FAIL_TEXT];
    kelp_owned *owned;
    size_t owned_count, owned_capacity;
    /* the submission under way */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    kelp_kernel_completion completion;
    const kelp_kernel *kernel;
    bool pending;  /* a kernel works on after it returned */
    bool finished; /* complete() came, maybe before the kernel returned */
    bool scratch_used;
    kelp_code code;    /* of what is finished */
    kelp_event *event; /* of the caller, or NULL */
    kelp_status *result;
};

/* ---- library.c: the registry's mutex is held ---- */
/* Loads, checks and initializes; `name` (may be NULL) is what it must call itself. */
kelp_status *kelp_kernel_library_load(kelp_kernel_registry *registry, const char *path,
                                      const char *name, kelp_kernel_library **out) KELP_MUST_USE;
kelp_status *kelp_kernel_library_new(kelp_kernel_registry *registry, const char *name,
                                     const char *path, kelp_kernel_library **out) KELP_MUST_USE;
void kelp_kernel_library_finalize(kelp_kernel_library *library);

/* ---- find.c ---- */
/* Calls `fn` for each file that may hold library `name` (NULL: any library), in order, until it
 * returns true. */
void kelp_kernel_candidates(const kelp_kernel_registry *registry, const char *name,
                            bool (*fn)(void *userp, const char *path), void *userp);

/* ---- session.c ---- */
/* DLPack's number of a device's name; 0 for an unknown one. */
int kelp_kernel_device_type(const char *name);
/* A session for the CPU, that the registry keeps. */
kelp_status *kelp_kernel_take_session(kelp_kernel_registry *registry,
                                      kelp_kernel_session **out) KELP_MUST_USE;
void kelp_kernel_give_session(kelp_kernel_registry *registry, kelp_kernel_session *session);

/* ---- raw.c ---- */
kelp_status *kelp_kernel_call_raw(const kelp_kernel *kernel, const kelp_kernel_context *context,
                                  const kelp_kernel_arg *args, int32_t count) KELP_MUST_USE;

#endif
