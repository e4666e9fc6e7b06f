/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loaded version of a model: its configuration, backend, instances and scheduler. An ensemble has
 * its data flow instead of the last three.
 * TRITONBACKEND_Model is a pointer to kelp_model. The counts are those of kelp_model_base.
 *
 * The server's reaper finalizes a retired model without submissions: its instances, then the model,
 * then the reference to the backend.
 */
#ifndef KELP_SERVER_MODEL_MODEL_H_
#define KELP_SERVER_MODEL_MODEL_H_

#include "server/ensemble/ensemble.h"
#include "server/model/host.h"
#include "server/model/instance.h"
#include "server/model/sequence.h"

typedef struct kelp_model kelp_model;
/* A loaded version of a model. */
struct kelp_model {
    kelp_model_base base;
    /* Used by the repository only. */
    kelp_model *next_retired;
    struct kelp_entry *entry;
    struct kelp_agent_chain *agents; /* a reference; NULL if the model has no agents */

    char *directory;           /* of the model */
    char *version_directory;   /* of this version */
    kelp_model_config *origin; /* before the backend completed it */
    int64_t files;             /* kelp_model_files_of_version at creation */
    /* Guards the members that an update of the instances changes: the list of instances, `shown`
     * and `config_json`. Readers hold it also while they call the backend. */
    pthread_rwlock_t change_lock;
    kelp_model_config *shown;     /* the configuration that clients see */
    kelp_message *config_json;    /* the configuration that the backend sees */
    kelp_ensemble *ensemble;      /* NULL for other models */
    kelp_server_backend *backend; /* NULL for ensembles */
    bool begun;                   /* ModelInitialize was called: ModelFinalize must be called */
    bool scheduling;              /* the scheduler is initialized */
    kelp_batcher batcher; /* the batching strategy; the entry points are NULL if there is none */
    bool initializing;    /* during ModelInitialize: ModelSetConfig is allowed */
    bool auto_complete;
    void *state;
    kelp_instance **instances;
    size_t instance_count;
    size_t instance_capacity;
    struct kelp_labels **labels; /* one for each output, NULL if it has none; references */
    kelp_sequencer *sequencer;   /* NULL if the model does not batch sequences */
    bool orders_executions;      /* responses are sent in the order of the executions */
    kelp_scheduler scheduler;
    uint64_t load_ns; /* duration of the creation */
};

static inline kelp_model_host *kelp_model_host_of(const kelp_model *model) {
    return (kelp_model_host *)model->base.host;
}

/* Creates a version of a model: backend, ModelInitialize with auto-completion, scheduler,
 * instances. `space` is borrowed. Takes the configuration, also on failure. */
kelp_status *kelp_model_create(kelp_model_host *host, const char *name, const char *space,
                               int64_t version, const char *directory,
                               kelp_model_config *take_config, kelp_model **out) KELP_MUST_USE;
/* Finalizes the instances and the model, which is retired and has no submissions. Not called from
 * an execution of the model. */
void kelp_model_finalize(kelp_model *model);

/* Completes the configuration with the backend's JSON. */
kelp_status *kelp_model_complete_config(kelp_model *model, const char *json,
                                        size_t length) KELP_MUST_USE;
/* Returns a configuration as JSON. */
kelp_status *kelp_model_config_message(const kelp_model_config *config,
                                       kelp_message **out) KELP_MUST_USE;

/* Returns true if all instances are ready according to the backend, or if it does not implement
 * ModelInstanceReady; for an ensemble, if all members serve. The caller has entered the model. */
bool kelp_model_is_ready(kelp_model *model);
/* Returns the number of queued requests. Thread-safe. */
uint32_t kelp_model_queued(kelp_model *model);
/* Adds the statistics of the model and its instances to `into`. */
kelp_status *kelp_model_add_stats(kelp_model *model, kelp_stats *into) KELP_MUST_USE;

/* ---- labels.c ---- */
/* Reads the label files of the outputs. */
kelp_status *kelp_model_load_labels(kelp_model *model) KELP_MUST_USE;
void kelp_model_free_labels(kelp_model *model);
/* Returns the label of a class of an output, or NULL. */
const char *kelp_model_label(const kelp_model *model, const char *output, size_t class_index);

/* ---- batcher.c ---- */
/* Loads and initializes the batching strategy of the model, if it has one. */
kelp_status *kelp_model_create_batcher(kelp_model *model) KELP_MUST_USE;
/* Finalizes the batching strategy. */
void kelp_model_destroy_batcher(kelp_model *model);

/* ---- instance.c ---- */
kelp_status *kelp_model_create_instances(kelp_model *model) KELP_MUST_USE;
void kelp_model_destroy_instances(kelp_model *model);

/* ---- update.c ---- */
/* An update of the instances of a serving model to the groups of a configuration that is otherwise
 * equal to the model's. Equal instances stay; other instances are added and removed while requests
 * run. Only kelp_model_prepare_update, which creates the new instances, can fail; the model is then
 * unchanged. FAILED_PRECONDITION if it is called from an execution on an instance that would be
 * removed. A prepared update must be committed or cancelled before the next one is prepared. One
 * thread at a time, which has entered the model. */
typedef struct kelp_model_update kelp_model_update;
kelp_status *kelp_model_prepare_update(kelp_model *model, const kelp_model_config *config,
                                       kelp_model_update **out) KELP_MUST_USE;
void kelp_model_commit_update(kelp_model_update *take_update);
/* Undoes a prepared update. NULL is ignored. */
void kelp_model_cancel_update(kelp_model_update *take_update);

#endif
