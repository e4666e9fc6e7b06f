/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One version of one model, loaded: its configuration, backend, instances and scheduler. What
 * TRITONBACKEND_Model points at.
 *
 * Two counts. `refs` keeps the memory: requests (also idle ones), factories and the table hold
 * some. `live` counts submissions that are not over; its top bit says that the model is retired and
 * takes no more. When a retired model's count reaches 0 the server's reaper thread finalizes it:
 * instances, then the model, then the backend's reference.
 */
#ifndef KELP_SERVER_MODEL_MODEL_H_
#define KELP_SERVER_MODEL_MODEL_H_

#include "base/arena.h"
#include "server/model/backend.h"
#include "server/config/config.h"
#include "server/request/request.h"
#include "server/scheduler/scheduler.h"
#include "server/metrics/stats.h"

struct kelp_instance {
    kelp_instance *next_free, *next_threadless; /* scheduler's */
    kelp_model *model;
    char *name;
    TRITONSERVER_InstanceGroupKind kind;
    int32_t device_id;
    bool passive;
    bool begun;       /* ModelInstanceInitialize was called, so ModelInstanceFinalize will be */
    bool initialized; /* and, unless it is passive, the scheduler has it */
    bool has_thread;
    struct kelp_instance_start *start; /* what its own thread does first; NULL: nothing */
    pthread_t thread;
    void *state;
    const char *const *profiles;
    size_t profile_count;
    kelp_message *host_policy;
    kelp_model_config *config; /* a reference: what it was made of */
    char *key;                 /* alike for instances that can stand for each other */
    size_t key_capacity;
    bool leaving, left; /* the scheduler's: it executes nothing more */
    bool gone;          /* finalized; its memory stays for those who still report on it. Under the
                           model's change_lock */
    kelp_stats stats;
};

#define KELP_MODEL_RETIRED 0x80000000u

struct kelp_model {
    kelp_model *next_retired;
    kelp_server *server;      /* a reference */
    struct kelp_entry *entry; /* the server's */
    atomic_uint refs;
    atomic_uint live;
    char *name;
    int64_t version;
    char *directory;           /* of the model */
    char *version_directory;   /* of this version */
    kelp_model_config *config; /* what requests are held to; never changes once it serves */
    kelp_model_config *origin; /* as it was read, before anybody completed it */
    int64_t files;             /* kelp_scan_files of what it was made of */
    /* What an update of the instances changes: their list, and what is shown of the configuration.
     * Held for reading while one looks, also while a backend is asked. */
    pthread_rwlock_t change_lock;
    kelp_model_config *shown;
    kelp_message *config_json; /* as the backend sees it */
    kelp_backend *backend;
    struct kelp_agent_chain *agents; /* a reference; NULL when the model has no agents */
    bool begun;                      /* ModelInitialize was called, so ModelFinalize will be */
    bool scheduling;                 /* the scheduler is there */
    bool initializing;               /* inside it: ModelSetConfig is allowed */
    bool auto_complete;
    bool decoupled;
    bool cached;          /* its answers are looked up in and kept for the server's cache */
    uint64_t fingerprint; /* of files and configuration, when cached */
    void *state;
    kelp_instance **instances;
    size_t instance_count;
    size_t instance_capacity;
    /* One an output of the configuration; NULL when no output has any. */
    struct kelp_labels *labels;
    kelp_scheduler scheduler;
    struct kelp_latency *latency; /* distributions of durations; mostly NULL */
    kelp_stats stats; /* of the model itself: its memory, and what never reached an instance; each
                         instance has its own */
    uint64_t load_ns; /* what making it took */
};

/* Creates the model that the entry names: backend, ModelInitialize with auto-completion, instances,
 * scheduler. `take_config` is owned also on failure. */
kelp_status *kelp_model_create(kelp_server *server, struct kelp_entry *entry, int64_t version,
                               const char *directory, kelp_model_config *take_config,
                               kelp_model **out) KELP_MUST_USE;
/* Stops instances and finalizes; the model is retired and idle. Not on a thread of the model. */
void kelp_model_finalize(kelp_model *model);

void kelp_model_retain(kelp_model *model);
void kelp_model_release(kelp_model *model);

/* false when the model is retired; else the submission counts until kelp_model_leave. */
bool kelp_model_enter(kelp_model *model);
void kelp_model_leave(kelp_model *model);
/* No more submissions; the reaper gets it when the last is over. Once. */
void kelp_model_retire(kelp_model *model);

/* Replaces the configuration by the backend's completion (JSON). */
kelp_status *kelp_model_complete_config(kelp_model *model, const char *json,
                                        size_t length) KELP_MUST_USE;
/* The configuration in JSON. */
kelp_status *kelp_model_config_message(const kelp_model_config *config,
                                       kelp_message **out) KELP_MUST_USE;

/* Answers a request that the instance will not run, with the error (which stays the caller's). */
void kelp_instance_refuse(kelp_instance *instance, kelp_request *request, const kelp_status *error);
/* Runs requests on an instance and cleans up after a failure. The instance is not executing. */
void kelp_instance_execute(kelp_instance *instance, kelp_request **requests, uint32_t count);

/* ---- warmup.c ---- */
/* Runs the samples of the configuration on the instance, which executes nothing else. */
kelp_status *kelp_instance_warm_up(kelp_instance *instance) KELP_MUST_USE;

/* ---- labels.c ---- */
/* Reads the label files of the outputs. */
kelp_status *kelp_model_load_labels(kelp_model *model) KELP_MUST_USE;
void kelp_model_free_labels(kelp_model *model);
/* The label of a class of an output, or NULL. */
const char *kelp_model_label(const kelp_model *model, const char *output, size_t class_index);

/* ---- instance.c ---- */
kelp_status *kelp_model_create_instances(kelp_model *model) KELP_MUST_USE;
void kelp_model_destroy_instances(kelp_model *model);
/* Brings the instances of a model that serves in line with the groups of a configuration that is
 * otherwise the model's own: those that are alike stay, others come and go while requests run.
 * Preparing makes and begins what is new, and is all that can fail: the model is then as it was;
 * FAILED_PRECONDITION from inside an execution on an instance that would go. An update that is
 * prepared is committed or cancelled (which takes NULL) before the next. One thread at a time,
 * which has entered the model. */
typedef struct kelp_model_update kelp_model_update;
kelp_status *kelp_model_prepare_update(kelp_model *model, const kelp_model_config *config,
                                       kelp_model_update **out) KELP_MUST_USE;
void kelp_model_commit_update(kelp_model_update *take_update);
void kelp_model_cancel_update(kelp_model_update *take_update);

#endif
