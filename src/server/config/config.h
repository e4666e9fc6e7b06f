/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model's configuration: the contents of config.pbtxt (message inference.ModelConfig of Triton's
 * model_config.proto), checked, with the defaults that follow from the model's files.
 *
 * The whole message is stored as a tree (schema.h), from which the JSON is written. The struct
 * below is a typed view of the fields that the server itself uses. A configuration is reference
 * counted and immutable: completing it creates a new one. Thread-safe.
 */
#ifndef KELP_SERVER_CONFIG_CONFIG_H_
#define KELP_SERVER_CONFIG_CONFIG_H_

#include "base/arena.h"
#include "base/buf.h"
#include "server/config/sequence.h"
#include "server/metrics/latency.h"

#include <kelp/tensor.h>
#include <stdatomic.h>
#include <triton/core/tritonserver.h>

typedef struct kelp_config_message kelp_config_message; /* a node of the tree: schema.h */

/* ---- the typed view ---- */
/* Strings are terminated and never NULL. Arrays may be NULL if their count is 0. */

/* An entry of a map from strings to strings. */
typedef struct kelp_config_parameter {
    const char *key;
    const char *value;
} kelp_config_parameter;

/* The layout of an image input. */
typedef enum kelp_config_format {
    KELP_CONFIG_FORMAT_NONE = 0,
    KELP_CONFIG_FORMAT_NHWC = 1,
    KELP_CONFIG_FORMAT_NCHW = 2
} kelp_config_format;

/* An input or an output. */
typedef struct kelp_config_io {
    const char *name;
    size_t name_length;
    TRITONSERVER_DataType data_type;
    kelp_dtype dtype;    /* the same type; KELP_DTYPE_INVALID if it is not set */
    const int64_t *dims; /* without the batch dimension; -1 for dynamic dimensions */
    uint32_t rank;
    const int64_t *reshape; /* the shape that the backend sees; NULL: dims */
    uint32_t reshape_rank;  /* may be 0 with a reshape: "reshape { shape: [ ] }" */
    bool has_reshape;
    bool is_shape_tensor;
    bool is_non_linear_format;
    bool allow_ragged_batch;    /* inputs */
    bool optional;              /* inputs */
    kelp_config_format format;  /* inputs */
    const char *label_filename; /* outputs; "" if there are no labels */
} kelp_config_io;

/* The kind of a version policy. */
typedef enum kelp_version_policy_kind {
    KELP_VERSIONS_LATEST, /* the `latest` highest versions */
    KELP_VERSIONS_ALL,
    KELP_VERSIONS_SPECIFIC
} kelp_version_policy_kind;

/* The versions of the model that the server loads. */
typedef struct kelp_version_policy {
    kelp_version_policy_kind kind;
    uint32_t latest;         /* at least 1 */
    const int64_t *versions; /* SPECIFIC */
    size_t version_count;
} kelp_version_policy;

/* A resource of the rate limiter that an instance needs. */
typedef struct kelp_config_resource {
    const char *name;
    bool global;
    uint32_t count;
} kelp_config_resource;

/* A group of instances with the same settings. */
typedef struct kelp_config_instance_group {
    const char *name;
    TRITONSERVER_InstanceGroupKind kind; /* never AUTO */
    int32_t count;                       /* at least 1; per GPU for KIND_GPU */
    const int32_t *gpus;
    size_t gpu_count;
    const char *const *profiles;
    size_t profile_count;
    bool passive;
    const char *host_policy;
    const kelp_config_resource *resources; /* rate limiter */
    size_t resource_count;
    uint32_t priority;
    /* The configuration itself sets the field, so that kelp_model_config_prefer does not. */
    bool has_kind;
    bool has_count;
} kelp_config_instance_group;

/* The treatment of a request whose queue timeout has expired. */
typedef enum kelp_timeout_action {
    KELP_TIMEOUT_REJECT = 0,
    KELP_TIMEOUT_DELAY = 1
} kelp_timeout_action;

/* The limits of a queue. */
typedef struct kelp_queue_policy {
    kelp_timeout_action timeout_action;
    uint64_t default_timeout_us;
    bool allow_timeout_override;
    uint32_t max_queue_size; /* 0: no limit */
} kelp_queue_policy;

/* The settings of the dynamic batcher. */
typedef struct kelp_config_dynamic_batching {
    const int32_t *preferred_batch_sizes;
    size_t preferred_count;
    uint64_t max_queue_delay_us;
    bool preserve_ordering;
    uint64_t priority_levels; /* 0: no priorities */
    uint64_t default_priority_level;
    bool has_default_queue_policy;
    kelp_queue_policy default_queue_policy;
    const uint64_t *policy_levels; /* of policies, by index */
    const kelp_queue_policy *policies;
    size_t policy_count;
} kelp_config_dynamic_batching;

/* The scheduler that a configuration selects. */
typedef enum kelp_config_scheduling {
    KELP_SCHEDULING_DEFAULT, /* the configuration selects none */
    KELP_SCHEDULING_DYNAMIC,
    KELP_SCHEDULING_SEQUENCE,
    KELP_SCHEDULING_ENSEMBLE
} kelp_config_scheduling;

/* A step of an ensemble. The maps are from tensors of the step's model to tensors of the ensemble.
 */
typedef struct kelp_config_step {
    const char *model_name;
    const char *model_namespace; /* "" if it is not set */
    int64_t model_version;       /* -1: the latest */
    const kelp_config_parameter *input_map;
    size_t input_count;
    const kelp_config_parameter *output_map;
    size_t output_count;
} kelp_config_step;

/* The configuration of a model. */
typedef struct kelp_model_config {
    atomic_uint refs;
    kelp_allocator allocator;
    kelp_arena *arena;         /* holds everything below */
    kelp_config_message *tree; /* all fields */
    const char *source;        /* for messages: the file, or "configuration of model 'N'" */

    const char *name;
    const char *platform;
    const char *backend; /* "onnxruntime", "python", …; "" for an ensemble */
    const char *runtime; /* file name of the backend's library, usually "" */
    const char *default_model_filename;
    int32_t max_batch_size; /* 0: the model does not batch */

    const kelp_config_io *inputs;
    size_t input_count;
    const kelp_config_io *outputs;
    size_t output_count;

    kelp_version_policy version_policy;
    const kelp_config_instance_group *instance_groups;
    size_t instance_group_count;
    bool has_instance_groups; /* the configuration itself contains them */

    kelp_config_scheduling scheduling;
    kelp_config_dynamic_batching dynamic_batching; /* if scheduling is DYNAMIC */
    const kelp_config_sequence *sequence;          /* if it is SEQUENCE, else NULL */
    const kelp_config_step *steps;                 /* if it is ENSEMBLE */
    size_t step_count;
    uint64_t max_inflight_requests; /* of an ensemble's steps; 0: no limit */

    bool decoupled;
    bool response_cache;
    bool has_warmup;
    bool eager_batching;
    const kelp_config_parameter *parameters; /* in the order of the file */
    size_t parameter_count;
    const kelp_config_parameter *metric_tags;
    size_t metric_tag_count;
} kelp_model_config;

/* An instance group that a backend prefers. */
typedef struct kelp_preferred_group {
    TRITONSERVER_InstanceGroupKind kind;
    uint64_t count;
} kelp_preferred_group;

/* ---- creation ---- */

/* The options of reading a configuration. */
typedef struct kelp_config_load_options {
    const char
        *model_directory;       /* contains the versions; may be NULL for kelp_model_config_parse */
    const char *model_name;     /* the name that clients use: usually the directory's */
    const char *directory_name; /* another name that the configuration may contain, or NULL */
    const char *config_name;    /* prefer configs/NAME.pbtxt over config.pbtxt; may be NULL or "" */
    const char *override_json;  /* the configuration, in place of the file; NULL: read the file */
    size_t override_length;
    bool strict;        /* without auto-completion: derive nothing from file names, and check as
                           kelp_model_config_validate does */
    bool draft;         /* do not check a configuration with repository agents, which replace it */
    uint32_t gpu_count; /* if not 0, KIND_AUTO and missing kinds become GPU */
    bool gpu_fallback;  /* KIND_GPU becomes KIND_CPU, with a warning in the log */
} kelp_config_load_options;

/* Reads MODEL_DIRECTORY/config.pbtxt (a missing file is an empty configuration unless strict: then
 * NOT_FOUND) or the override; fills in backend, platform and default_model_filename from each other
 * and from the names of the files of the highest version, and all other defaults; checks the
 * result. Without `strict`, data types and dims may be missing: the backend completes them.
 * INVALID_ARGUMENT "FILE:LINE:COLUMN: …" names the field. */
kelp_status *kelp_model_config_load(kelp_allocator allocator,
                                    const kelp_config_load_options *options,
                                    kelp_model_config **out) KELP_MUST_USE;

/* Reads a configuration from text in the pbtxt format. `file` names the text in messages. Reads no
 * files if options->model_directory is NULL. */
kelp_status *kelp_model_config_parse(kelp_allocator allocator,
                                     const kelp_config_load_options *options, const char *file,
                                     const char *text, size_t length,
                                     kelp_model_config **out) KELP_MUST_USE;

/* Creates a configuration from a configuration and a backend's completion
 * (TRITONBACKEND_ModelSetConfig; a whole ModelConfig as JSON). The completion replaces
 * max_batch_size, input, output, the scheduler and model_transaction_policy. Checked as by
 * kelp_model_config_load. */
kelp_status *kelp_model_config_complete(const kelp_model_config *config, const char *json,
                                        size_t length, kelp_model_config **out) KELP_MUST_USE;

/* Creates a copy of an ensemble's configuration that declares whether it is decoupled. */
kelp_status *kelp_model_config_set_decoupled(const kelp_model_config *config, bool decoupled,
                                             kelp_model_config **out) KELP_MUST_USE;

/* Creates a configuration in which `dynamic_batching` prefers max_batch_size if it prefers no size.
 * With `batches_all`, a model with max_batch_size above 1 and without a scheduler gets
 * `dynamic_batching`. Returns the same object, retained, if nothing changes. */
kelp_status *kelp_model_config_complete_batching(kelp_model_config *config, bool batches_all,
                                                 kelp_model_config **out) KELP_MUST_USE;

/* Creates a configuration in which the backend's preferences
 * (TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup) replace the default groups, kinds and
 * counts of instance groups. Returns the same object, retained, if nothing changes. */
kelp_status *kelp_model_config_prefer(kelp_model_config *config, const kelp_preferred_group *groups,
                                      size_t count, uint32_t gpu_count,
                                      kelp_model_config **out) KELP_MUST_USE;

/* Tests whether two configurations are equal except for version_policy and, unless the model
 * batches sequences, instance_group. A model of one then becomes a model of the other without being
 * loaded again. */
kelp_status *kelp_model_config_same_model(const kelp_model_config *a, const kelp_model_config *b,
                                          bool *out_same) KELP_MUST_USE;
/* Creates a copy of `config` with instance_group and version_policy of `groups_of`. Checked as by
 * kelp_model_config_validate. */
kelp_status *kelp_model_config_regroup(const kelp_model_config *config,
                                       const kelp_model_config *groups_of,
                                       kelp_model_config **out) KELP_MUST_USE;
/* Appends a text that is equal for two instance groups whose instances are interchangeable: all
 * fields of the group except its name and count. */
kelp_status *kelp_model_config_group_key(const kelp_model_config *config, size_t index,
                                         kelp_buf *out) KELP_MUST_USE;

/* Checks that a completed configuration has all fields that serving requires: a backend, and a data
 * type and dims for every input and output. INVALID_ARGUMENT names the field. */
kelp_status *kelp_model_config_validate(const kelp_model_config *config) KELP_MUST_USE;

/* Adds and drops a reference. Releasing NULL has no effect. */
void kelp_model_config_retain(kelp_model_config *config);
void kelp_model_config_release(kelp_model_config *config);

/* ---- reading ---- */

/* Appends the JSON of Triton's GET /v2/models/N/config: the proto's field names, with all defaults.
 * UNIMPLEMENTED if `version` is not 1. */
kelp_status *kelp_model_config_to_json(const kelp_model_config *config, uint32_t version,
                                       kelp_buf *out) KELP_MUST_USE;

/* Reads the bounds of the model's histograms (`model_metrics`), or the defaults. INVALID_ARGUMENT
 * if they do not ascend. */
kelp_status *kelp_model_config_latency(const kelp_model_config *config,
                                       kelp_latency_options *out) KELP_MUST_USE;

/* Appends the paths of fields that are set and have no effect, separated by ", ". Fields that are
 * meant for backends are listed only if the model's backend is built in. */
void kelp_model_config_list_unused(const kelp_model_config *config, bool is_builtin, kelp_buf *out);

/* Returns an input or output by name, or NULL. */
const kelp_config_io *kelp_model_config_input(const kelp_model_config *config, kelp_str name);
const kelp_config_io *kelp_model_config_output(const kelp_model_config *config, kelp_str name);
/* Returns the string value of parameters[key], or NULL. */
const char *kelp_model_config_parameter(const kelp_model_config *config, const char *key);

#endif
