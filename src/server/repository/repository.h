/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The models of a server: the repositories, the table from names to the models that serve, loading
 * and unloading, and the reaper, a thread that finalizes retired models. A stopping server has
 * several reapers, because models may take long to finalize.
 *
 * Locks: a lookup takes the lock of the calling thread's pool (request/pool.h). A change of the
 * table takes `lock` and then the locks of all pools, always in this order. The `busy` flag of an
 * entry serializes loads and unloads of one model; different models are loaded concurrently.
 */
#ifndef KELP_SERVER_REPOSITORY_REPOSITORY_H_
#define KELP_SERVER_REPOSITORY_REPOSITORY_H_

#include "base/map.h"
#include "server/config/overrides.h"
#include "server/model/model.h"
#include "server/repository/scan.h"

/* The maximum number of models that are finalized concurrently. */
#define KELP_MAX_REAPERS 32

/* The state of a version, as in the index. */
typedef enum kelp_version_state {
    KELP_VERSION_UNKNOWN,
    KELP_VERSION_LOADING,
    KELP_VERSION_READY,
    KELP_VERSION_UNLOADING,
    KELP_VERSION_UNAVAILABLE
} kelp_version_state;

/* A version of a model. */
typedef struct kelp_version {
    int64_t number;
    kelp_version_state state;
    kelp_text reason;
    kelp_model *model;         /* while READY; written under the locks of all pools */
    const kelp_model *leaving; /* while UNLOADING: the model that is being finalized */
} kelp_version;

/* The models of one name or, with namespaces, of one name in one repository. An entry exists until
 * the server is destroyed. */
typedef struct kelp_entry kelp_entry;
struct kelp_entry {
    kelp_entry *next;       /* of all entries, in the order of creation */
    kelp_entry *next_space; /* with the same name in another namespace */
    char *name;
    char *space;   /* the namespace, a repository; "" without namespaces */
    char *path;    /* the model's directory; changes if another repository provides the model */
    bool wanted;   /* loaded and not unloaded after that: counts for the ambiguity of names; written
                      under the locks of all pools */
    bool conflict; /* in two repositories that are not namespaces */
    bool busy;     /* a load or unload is in progress */
    pthread_t busy_thread;  /* that performs it; valid if busy */
    bool present;           /* in a repository at the last scan */
    kelp_override override; /* of a load with parameters */
    kelp_text failure;      /* why the last load failed, if no version is known */
    int64_t signature;      /* of the files when they were loaded */
    kelp_version *versions; /* ascending */
    size_t version_count;
    size_t version_capacity;
};

/* The models of a server. */
typedef struct kelp_repository {
    kelp_model_host *host; /* the server */
    atomic_bool stopping;  /* loads are rejected */
    pthread_mutex_t lock;  /* guards all following members, and the entries */
    pthread_cond_t changed;
    kelp_map entries; /* name -> the first kelp_entry of that name; also under the pools' locks */
    kelp_entry *first_entry, *last_entry;
    kelp_string_list paths;
    kelp_settings mappings; /* (repository, name of the served model) -> directory */
    kelp_model *retired;    /* without submissions, waiting for the reaper */
    size_t live_models; /* published and not yet finalized; each is a reference of the repository */
    size_t live_ensembles;               /* of them */
    pthread_t reapers[KELP_MAX_REAPERS]; /* one, and more while the server stops */
    unsigned reaper_count;
    bool reaper_stop;
} kelp_repository;

void kelp_repository_init(kelp_repository *repository, kelp_model_host *host);
/* Starts the reaper, and loads the startup models of the control mode. */
kelp_status *kelp_repository_start(kelp_repository *repository) KELP_MUST_USE;
/* Logs a warning if the directory `path` does not have the layout of a repository. */
void kelp_repository_warn_of_layout(const kelp_repository *repository, const char *path);
/* Waits for the end of sequences, retires all models, waits for their requests, in all at most for
 * the exit timeout, and stops the reaper.
 * INTERNAL if the timeout expired; the reapers then continue. */
kelp_status *kelp_repository_stop(kelp_repository *repository) KELP_MUST_USE;
/* Frees the table. The repository must be stopped. */
void kelp_repository_deinit(kelp_repository *repository);

/* ---- table.c ---- */
/* Returns a reference to a READY version; -1 selects the highest one. If out_request is not NULL,
 * also returns a request from the pool, or NULL if the pool is empty. INVALID_ARGUMENT if several
 * namespaces have a model of the name, unless the name is "NAMESPACE::NAME". Thread-safe. */
kelp_status *kelp_repository_find(kelp_repository *repository, const char *name, int64_t version,
                                  kelp_model **out, kelp_request **out_request) KELP_MUST_USE;
/* Returns the same for an entry. Thread-safe. */
kelp_status *kelp_repository_find_version(kelp_repository *repository, kelp_entry *entry,
                                          int64_t version, kelp_model **out) KELP_MUST_USE;
/* Returns true if a repository has the model, or a version of it was loaded. Thread-safe. */
bool kelp_repository_knows(kelp_repository *repository, const char *name);
/* Returns the name of a state in the index. */
const char *kelp_version_state_name(kelp_version_state state);
/* Returns an entry, and creates it if needed. The lock is held. */
kelp_status *kelp_repository_entry(kelp_repository *repository, const char *name, const char *space,
                                   kelp_entry **out) KELP_MUST_USE;
/* Returns a version of an entry, or NULL; `entry` may be NULL. The lock is held. */
kelp_version *kelp_entry_version(kelp_entry *entry, int64_t number);
/* Formats "NAME" or "NAMESPACE::NAME", for messages. */
const char *kelp_entry_format(const kelp_entry *entry, char *out, size_t size);
void kelp_entry_destroy(kelp_allocator allocator, kelp_entry *entry);

/* References to models, so that the table is not locked while they are used. */
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
/* Adds a repository. A mapping is a STRING parameter: its name is a directory of the repository,
 * its value the name of the served model. ALREADY_EXISTS if the repository or a name exists. */
kelp_status *kelp_repository_register(kelp_repository *repository, const char *path,
                                      const kelp_parameter *const *mappings,
                                      uint32_t count) KELP_MUST_USE;
kelp_status *kelp_repository_unregister(kelp_repository *repository,
                                        const char *path) KELP_MUST_USE;

/* ---- reaper.c ---- */
/* Retires a model: runs UNLOAD of its agents; the reaper finalizes it after its last submission.
 * The lock is not held. */
void kelp_repository_retire(kelp_model *model);
/* Retires a version that serves. The lock is held, and released temporarily. */
void kelp_version_retire(kelp_repository *repository, kelp_version *version);
/* Passes a retired model without submissions to the reaper. Thread-safe. */
void kelp_repository_reap(kelp_repository *repository, kelp_model *model);
kelp_status *kelp_repository_start_reaper(kelp_repository *repository) KELP_MUST_USE;
/* Starts more reapers, so that each model has one, as far as threads are available. */
void kelp_repository_start_reapers(kelp_repository *repository);
void kelp_repository_stop_reaper(kelp_repository *repository);

/* ---- load.c ---- */
/* Loads an entry, which is busy, from the model's directory `path`. Previous versions serve until
 * the new ones are ready; they continue to serve if the load fails. `options` may be NULL. */
kelp_status *kelp_entry_load(kelp_repository *repository, kelp_entry *entry, const char *path,
                             const kelp_load_options *options) KELP_MUST_USE;

/* ---- lifecycle.c ---- */
/* Creates the error of a model that cannot be read from its repository: INTERNAL with Triton's
 * text and the reason, unless the reason is of another kind, such as a lack of memory. Logs the
 * reason with the model's directory, unless `path` is NULL. */
kelp_status *kelp_repository_poll_failure(const char *name, const char *path,
                                          kelp_status *take_reason) KELP_MUST_USE;
/* Loads or reloads the models of a name, and before that the members of ensembles that do not
 * serve. */
kelp_status *kelp_repository_load(kelp_repository *repository, const char *name,
                                  const kelp_load_options *options) KELP_MUST_USE;
/* Loads the models of a name without members; `space` is a namespace, or NULL for all. If
 * `only_missing`, models that serve are not loaded again. */
kelp_status *kelp_repository_load_named(kelp_repository *repository, const char *name,
                                        const char *space, const kelp_load_options *options,
                                        bool only_missing) KELP_MUST_USE;
/* Retires the models of a name. Each is finalized after its last request. With `dependents`, also
 * retires the members of those that are ensembles. */
kelp_status *kelp_repository_unload(kelp_repository *repository, const char *name,
                                    bool dependents) KELP_MUST_USE;
kelp_status *kelp_repository_load_startup(kelp_repository *repository) KELP_MUST_USE;
/* Updates the table from the repositories' directories: creates entries, and sets `present`. */
kelp_status *kelp_repository_scan(kelp_repository *repository) KELP_MUST_USE;
/* Loads new and changed models, and unloads those whose directories do not exist any more. */
kelp_status *kelp_repository_poll(kelp_repository *repository) KELP_MUST_USE;
/* Scans the repositories for one name, or for all models if `name` is NULL. The lock is held. */
kelp_status *kelp_repository_scan_for(kelp_repository *repository, const char *name,
                                      kelp_scan **out) KELP_MUST_USE;
/* Stores the failure of a load that did not begin, for the index. */
void kelp_repository_note_failure(kelp_repository *repository, const char *name,
                                  const kelp_status *failure);

/* ---- plan.c ---- */
typedef struct kelp_load_item kelp_load_item;
/* Models to load, and the members of the ensembles among them. Used by one thread. */
typedef struct kelp_load_plan {
    kelp_repository *repository;
    kelp_arena arena;
    kelp_map items; /* "SPACE::NAME" or "NAME" -> a kelp_load_item */
    kelp_load_item *first;
} kelp_load_plan;
void kelp_load_plan_init(kelp_load_plan *plan, kelp_repository *repository);
void kelp_load_plan_deinit(kelp_load_plan *plan);
/* Adds the models of a name. `space` is a namespace, or NULL for all. `options` are borrowed, and
 * may be NULL. */
kelp_status *kelp_load_plan_add(kelp_load_plan *plan, const char *name, const char *space,
                                const kelp_load_options *options) KELP_MUST_USE;
/* Loads the models and the members that do not serve: members first, independent models
 * concurrently. Failures of loads are stored in the plan. */
kelp_status *kelp_load_plan_run(kelp_load_plan *plan) KELP_MUST_USE;
/* Returns the failures of all loads: NULL, a copy of the only one, or one with the code of the
 * first and all messages. Those of added models are first. */
kelp_status *kelp_load_plan_failure(const kelp_load_plan *plan,
                                    const char *separator) KELP_MUST_USE;

#endif
