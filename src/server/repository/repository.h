/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The models of a server: which repositories it reads, the table from names to the models that
 * serve, loading and unloading, and the reaper, a thread that finalizes retired models.
 *
 * Locks: a look-up takes the lock of the calling thread's pool (request/pool.h); a change of the
 * table takes `lock` and then all pools. `lock` is always taken before the pools' locks. Loads and
 * unloads of one model are serialized by its entry's `busy` flag; those of different models run
 * concurrently.
 */
#ifndef KELP_SERVER_REPOSITORY_REPOSITORY_H_
#define KELP_SERVER_REPOSITORY_REPOSITORY_H_

#include "base/map.h"
#include "server/config/overrides.h"
#include "server/model/model.h"

typedef enum kelp_version_state {
    KELP_VERSION_UNKNOWN,
    KELP_VERSION_LOADING,
    KELP_VERSION_READY,
    KELP_VERSION_UNLOADING,
    KELP_VERSION_UNAVAILABLE
} kelp_version_state;

typedef struct kelp_version {
    int64_t number;
    kelp_version_state state;
    kelp_text reason;
    kelp_model *model;         /* while READY; written under all pools' locks */
    const kelp_model *leaving; /* while UNLOADING: the version is UNAVAILABLE after its end */
} kelp_version;

/* A model as the server knows it: of one name or, with namespaces, of one name in one repository.
 * Stays until the server is destroyed. */
typedef struct kelp_entry kelp_entry;
struct kelp_entry {
    kelp_entry *next;       /* of all, in the order in which they became known */
    kelp_entry *next_space; /* of the same name, in another namespace */
    char *name;
    char *space;   /* the namespace, a repository; "" without namespaces */
    char *path;    /* the model's directory; changes if another repository provides the model */
    bool wanted;   /* loaded and not unloaded since: what makes a name ambiguous; written under
                      all pools' locks */
    bool conflict; /* in two repositories that are not namespaces */
    bool busy;     /* being loaded or unloaded */
    bool present;  /* in a repository when last scanned */
    kelp_override override; /* of a load with parameters */
    kelp_text failure;      /* why the last load failed, if no version is known */
    int64_t signature;      /* of the files when loaded; compared by POLL and kept overrides */
    kelp_version *versions; /* ascending */
    size_t version_count;
    size_t version_capacity;
};

typedef struct kelp_repository {
    kelp_model_host *host; /* the server that it is a part of */
    atomic_bool stopping;  /* loads are rejected */
    pthread_mutex_t lock;  /* everything below, and the entries */
    pthread_cond_t changed;
    kelp_map entries; /* name -> the first kelp_entry of that name; also under the pools' locks */
    kelp_entry *first_entry, *last_entry;
    kelp_string_list paths;
    kelp_settings mappings; /* (repository, directory) -> the name that it is served as */
    kelp_model *retired;    /* idle, waiting for the reaper */
    size_t live_models; /* published and not yet finalized; each is a reference of the repository */
    pthread_t reaper;
    bool reaper_running;
    bool reaper_stop;
} kelp_repository;

void kelp_repository_init(kelp_repository *repository, kelp_model_host *host);
/* Starts the reaper and loads what the control mode asks for at startup. */
kelp_status *kelp_repository_start(kelp_repository *repository) KELP_MUST_USE;
/* Retires all models, waits for their requests until the exit timeout, and stops the reaper.
 * INTERNAL if the time was not enough: the reaper goes on. */
kelp_status *kelp_repository_stop(kelp_repository *repository) KELP_MUST_USE;
/* Frees the table, which is stopped. */
void kelp_repository_deinit(kelp_repository *repository);

/* ---- table.c ---- */
/* Returns a reference to a READY version; -1 is the highest that is ready. If out_request is not
 * NULL, also takes a request from the pool, or NULL if that is empty. INVALID_ARGUMENT if models of
 * several namespaces have the name, unless it says which: "NAMESPACE::NAME". Thread-safe. */
kelp_status *kelp_repository_find(kelp_repository *repository, const char *name, int64_t version,
                                  kelp_model **out, kelp_request **out_request) KELP_MUST_USE;
/* Returns the same for an entry. Thread-safe. */
kelp_status *kelp_repository_find_version(kelp_repository *repository, kelp_entry *entry,
                                          int64_t version, kelp_model **out) KELP_MUST_USE;
const char *kelp_version_state_name(kelp_version_state state);
/* Returns the entry, which it creates if there is none; the lock is held. */
kelp_status *kelp_repository_entry(kelp_repository *repository, const char *name, const char *space,
                                   kelp_entry **out) KELP_MUST_USE;
/* Returns NULL if there is none; the lock is held. */
kelp_version *kelp_entry_version(kelp_entry *entry, int64_t number);
/* Formats "NAME" or "NAMESPACE::NAME", for messages. */
const char *kelp_entry_format(const kelp_entry *entry, char *out, size_t size);
void kelp_entry_destroy(kelp_allocator allocator, kelp_entry *entry);

/* Models with a reference each, so that the table is not locked while they are used. */
typedef struct kelp_model_list {
    kelp_allocator allocator;
    kelp_model **items;
    size_t count;
    size_t capacity;
} kelp_model_list;
/* Lists the models that serve: all, or those of one entry (`only`) or version (not -1). Locks the
 * table. */
kelp_status *kelp_repository_list(kelp_repository *repository, const kelp_entry *only,
                                  int64_t version, kelp_model_list *out) KELP_MUST_USE;
void kelp_model_list_deinit(kelp_model_list *list);

/* ---- paths.c: repositories registered at run time ---- */
/* Adds a repository; each mapping is a STRING parameter named by a directory of the repository,
 * with the name to serve it as. ALREADY_EXISTS if repository or name exist. */
kelp_status *kelp_repository_register(kelp_repository *repository, const char *path,
                                      const kelp_parameter *const *mappings,
                                      uint32_t count) KELP_MUST_USE;
kelp_status *kelp_repository_unregister(kelp_repository *repository,
                                        const char *path) KELP_MUST_USE;

/* ---- reaper.c ---- */
/* Retires a model: runs its agents' UNLOAD, and lets the reaper finalize it once it is idle. The
 * lock is not held. */
void kelp_repository_retire(kelp_model *model);
/* Retires a version that serves; the lock is held, and released for a moment. */
void kelp_version_retire(kelp_repository *repository, kelp_version *version);
/* Takes a retired model that is idle. Thread-safe. */
void kelp_repository_reap(kelp_repository *repository, kelp_model *model);
kelp_status *kelp_repository_start_reaper(kelp_repository *repository) KELP_MUST_USE;
void kelp_repository_stop_reaper(kelp_repository *repository);

/* ---- load.c ---- */
/* Loads an entry that is busy from the model's directory `path` and waits; versions that serve go
 * on until the new ones are ready, and for good if the load fails. `options` NULL: a plain load. */
kelp_status *kelp_entry_load(kelp_repository *repository, kelp_entry *entry, const char *path,
                             const kelp_load_options *options) KELP_MUST_USE;

/* ---- lifecycle.c ---- */
/* Loads or reloads the models of a name. */
kelp_status *kelp_repository_load(kelp_repository *repository, const char *name,
                                  const kelp_load_options *options) KELP_MUST_USE;
/* Rejects further requests for the models of a name; each is finalized after its last request. */
kelp_status *kelp_repository_unload(kelp_repository *repository, const char *name) KELP_MUST_USE;
kelp_status *kelp_repository_load_startup(kelp_repository *repository) KELP_MUST_USE;
/* Updates the table from the repositories' directories: entries for new models, `present` for all.
 */
kelp_status *kelp_repository_scan(kelp_repository *repository) KELP_MUST_USE;
/* POLL: loads new and changed models, unloads those that disappeared. */
kelp_status *kelp_repository_poll(kelp_repository *repository) KELP_MUST_USE;

#endif
