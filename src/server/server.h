/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server object: options, repositories, the table of models, pools.
 *
 * Threads: the request path takes one lock, that of the calling thread's stripe, to look a model up
 * and to take objects from the pool. What was taken goes back there, from the thread that ends the
 * request, so that only those two meet: else one thread's pool would run dry while another's fills.
 * Whoever changes the table takes all stripes. Loads and unloads of one model are serialized by its
 * entry; those of different models run side by side.
 *
 * Memory: the server is counted. Its handle holds one reference and each model another, so that a
 * request or response that outlives the handle finds what it needs.
 */
#ifndef KELP_SERVER_SERVER_H_
#define KELP_SERVER_SERVER_H_

#include "base/map.h"
#include "server/core/options.h"
#include "server/cache/cache.h"
#include "server/metrics/latency.h"
#include "server/model/model.h"
#include "server/request/response.h"

#define KELP_SERVER_NAME "triton" /* the default id; clients know it */
#define KELP_SERVER_VERSION "0.1.0"
#define KELP_SERVER_STRIPES 16

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
    kelp_model *model;         /* while READY; written under all stripes */
    const kelp_model *leaving; /* while UNLOADING: whose end makes the version UNAVAILABLE */
} kelp_version;

/* What the server knows of one model: of one name or, with namespaces, of one name in one
 * repository. Lives as long as the server. */
typedef struct kelp_entry kelp_entry;
struct kelp_entry {
    kelp_entry *next;       /* of all, in the order in which they became known */
    kelp_entry *next_space; /* of the same name, in another namespace */
    char *name;
    char *space;           /* the namespace, a repository; "" without namespaces */
    char *path;            /* of the model's folder; changes when another repository takes over */
    bool wanted;           /* asked for and not unloaded since: what makes a name ambiguous;
                              written under all stripes */
    bool conflict;         /* lies in two repositories that are no namespaces */
    bool busy;             /* being loaded or unloaded; under the server's table lock */
    bool present;          /* in a repository when last looked */
    char *override_config; /* JSON of a load with parameters, which plain loads keep to; NULL when
                              none */
    char *override_directory; /* a temporary folder with the files of such a load; NULL when none */
    kelp_text failure;        /* why the last load failed before a version was known */
    int64_t signature;        /* of the files when loaded; what POLL and kept overrides compare */
    kelp_version *versions;   /* ascending */
    size_t version_count;
    size_t version_capacity;
};

typedef struct kelp_stripe {
    _Alignas(128) pthread_mutex_t lock;
    kelp_request *requests; /* with the memory of their last use; taken first */
    kelp_response *responses;
    kelp_request *bare_requests; /* beyond those, however many */
    kelp_response *bare_responses;
    kelp_factory *factories;
    size_t request_count, response_count; /* without the bare ones */
} kelp_stripe;

typedef enum kelp_server_state {
    KELP_SERVER_STARTING,
    KELP_SERVER_READY,
    KELP_SERVER_STOPPING,
    KELP_SERVER_STOPPED
} kelp_server_state;

struct kelp_server {
    kelp_stripe stripes[KELP_SERVER_STRIPES];
    atomic_uint refs;
    _Atomic int state; /* kelp_server_state */
    kelp_server_options *options;
    kelp_latency_rules latency_rules;
    kelp_cache *cache;          /* NULL when none is configured; until the server goes */
    pthread_mutex_t table_lock; /* entries' busy flags, version states, models in retirement; before
                                   the stripes */
    pthread_cond_t table_changed;
    kelp_map entries; /* name -> the first kelp_entry of that name; read under one stripe, changed
                         under table_lock and all of them */
    kelp_entry *first_entry, *last_entry;
    kelp_string_list repositories;
    kelp_settings mappings; /* (repository, folder) -> the name that it is served under */
    /* Held until the server goes, so that a reload does not finalize them. */
    kelp_backend **backends;
    size_t backend_count;
    size_t backend_capacity;
    kelp_model *retired; /* idle, waiting for the reaper */
    size_t live_models;  /* published and not yet finalized; the server holds a reference to each */
    pthread_t reaper;
    bool reaper_running;
    bool reaper_stop;
};

kelp_status *kelp_server_create(const kelp_server_options *options,
                                kelp_server **out) KELP_MUST_USE;
/* Refuses requests, waits for those in flight until the exit timeout, unloads all. INTERNAL when
 * time ran out. */
kelp_status *kelp_server_stop(kelp_server *server) KELP_MUST_USE;
void kelp_server_retain(kelp_server *server);
void kelp_server_release(kelp_server *server);

/* UNAVAILABLE unless the server takes requests. */
kelp_status *kelp_server_check_ready(const kelp_server *server) KELP_MUST_USE;

/* ---- the calling thread's stripe ---- */
kelp_stripe *kelp_server_stripe(kelp_server *server);
void kelp_server_lock_all(kelp_server *server);
void kelp_server_unlock_all(kelp_server *server);

/* ---- table.c ---- */
/* A reference to a READY version; -1 is the highest that is ready. With out_request not NULL also a
 * pooled request, or NULL when the pool is empty. INVALID_ARGUMENT when models of several
 * namespaces have the name, unless it says which: "NAMESPACE::NAME". Messages as Triton's. */
kelp_status *kelp_server_find_model(kelp_server *server, const char *name, int64_t version,
                                    kelp_model **out, kelp_request **out_request) KELP_MUST_USE;
/* The same where the entry is known. */
kelp_status *kelp_server_find_version(kelp_server *server, kelp_entry *entry, int64_t version,
                                      kelp_model **out) KELP_MUST_USE;
const char *kelp_version_state_name(kelp_version_state state);
/* NULL when there is none; table_lock held. */
kelp_entry *kelp_server_entry(kelp_server *server, const char *name, const char *space);
/* The same, made when there is none. */
kelp_status *kelp_server_entry_get(kelp_server *server, const char *name, const char *space,
                                   kelp_entry **out) KELP_MUST_USE;
kelp_version *kelp_entry_version(kelp_entry *entry, int64_t number);
/* "NAME" or "NAMESPACE::NAME": how messages call it. */
const char *kelp_entry_format(const kelp_entry *entry, char *out, size_t size);

/* Stops a version that serves; table_lock held, and let go of for a moment. */
void kelp_version_retire(kelp_server *server, kelp_version *version);
void kelp_entry_destroy(kelp_entry *entry);
/* Holds the backend until the server goes, so that it is not finalized between two loads. */
kelp_status *kelp_server_keep_backend(kelp_server *server, kelp_backend *backend) KELP_MUST_USE;

/* A model has become idle and is retired: the reaper finalizes it. Any thread. */
void kelp_server_reap(kelp_server *server, kelp_model *model);

/* ---- lifecycle.c ---- */
typedef struct kelp_load_options {
    const char *config_json;            /* NULL: the model's own */
    const kelp_parameter *const *files; /* BYTES "file:PATH" */
    size_t file_count;
} kelp_load_options;
/* Loads or reloads and waits; the versions that serve go on until the new ones are ready. `load`
 * NULL: a plain load. */
kelp_status *kelp_server_load(kelp_server *server, const char *name,
                              const kelp_load_options *load) KELP_MUST_USE;
/* Stops taking requests for the model; it goes when those in flight are done. */
kelp_status *kelp_server_unload(kelp_server *server, const char *name) KELP_MUST_USE;
/* Loads what the control mode asks for at the start. */
kelp_status *kelp_server_load_startup(kelp_server *server) KELP_MUST_USE;
/* Brings the table up to date with the repositories' folders: entries for new models, `present` for
 * all. */
kelp_status *kelp_server_scan(kelp_server *server) KELP_MUST_USE;
/* POLL: loads what is new or changed, unloads what is gone. */
kelp_status *kelp_server_poll(kelp_server *server) KELP_MUST_USE;

#endif
