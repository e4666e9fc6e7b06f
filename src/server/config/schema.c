/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of inference.ModelConfig, in the order in which Triton prints them. Source:
 * model_config.proto of Triton's common repository. */
#include "server/config/schema.h"

#include "base/checked.h"

#include <triton/core/tritonserver.h>

#define R KELP_CONFIG_REPEATED
#define M KELP_CONFIG_MAP
#define TEXT(field) \
    { field, KELP_CONFIG_STRING, 0, NULL, NULL, NULL }
#define TEXTS(field) \
    { field, KELP_CONFIG_STRING, R, NULL, NULL, NULL }
#define TEXT_MAP(field) \
    { field, KELP_CONFIG_STRING, M, NULL, NULL, NULL }
#define BOOL(field) \
    { field, KELP_CONFIG_BOOL, 0, NULL, NULL, NULL }
#define NUMBER(kind, field) \
    { field, KELP_CONFIG_##kind, 0, NULL, NULL, NULL }
#define NUMBERS(kind, field) \
    { field, KELP_CONFIG_##kind, R, NULL, NULL, NULL }
#define ENUM(field, names) \
    { field, KELP_CONFIG_ENUM, 0, NULL, names, NULL }
#define MESSAGE(field, schema) \
    { field, KELP_CONFIG_MESSAGE, 0, &(schema), NULL, NULL }
#define MESSAGES(field, schema) \
    { field, KELP_CONFIG_MESSAGE, R, &(schema), NULL, NULL }
#define MESSAGE_MAP(field, schema) \
    { field, KELP_CONFIG_MESSAGE, M, &(schema), NULL, NULL }
#define ONE_OF(group, field, schema) \
    { field, KELP_CONFIG_MESSAGE, 0, &(schema), NULL, group }
#define ONE_BOOL(group, field) \
    { field, KELP_CONFIG_BOOL, 0, NULL, NULL, group }
#define ONE_TEXT(group, field) \
    { field, KELP_CONFIG_STRING, 0, NULL, NULL, group }
#define SCHEMA(id, text) \
    static const kelp_config_schema id = {text, id##_fields, KELP_COUNT(id##_fields)}

/* ---- enums ---- */
static const char *const data_types[] = {[TRITONSERVER_TYPE_INVALID] = "TYPE_INVALID",
#define KELP_TYPE_ROW(triton, config, kelp, kind, size_bytes) \
    [TRITONSERVER_TYPE_##triton] = "TYPE_" #config,
#include "base/triton/types.inc"
                                         NULL};
static const char *const formats[] = {"FORMAT_NONE", "FORMAT_NHWC", "FORMAT_NCHW", NULL};
static const char *const kinds[] = {"KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL", NULL};
static const char *const secondary_kinds[] = {"KIND_NVDLA", NULL};
static const char *const priorities[] = {"PRIORITY_DEFAULT", "PRIORITY_MAX", "PRIORITY_MIN", NULL};
static const char *const timeout_actions[] = {"REJECT", "DELAY", NULL};
static const char *const batch_input_kinds[] = {"BATCH_ELEMENT_COUNT",
                                                "BATCH_ACCUMULATED_ELEMENT_COUNT",
                                                "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
                                                "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
                                                "BATCH_ITEM_SHAPE",
                                                "BATCH_ITEM_SHAPE_FLATTEN",
                                                NULL};
static const char *const batch_output_kinds[] = {"BATCH_SCATTER_WITH_INPUT_SHAPE", NULL};
static const char *const control_kinds[] = {"CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_READY",
                                            "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_CORRID",
                                            NULL};

/* ---- inputs, outputs ---- */
static const kelp_config_field reshape_fields[] = {NUMBERS(INT64, "shape")};
SCHEMA(reshape, "reshape");
static const kelp_config_field input_fields[] = {TEXT("name"),
                                                 ENUM("data_type", data_types),
                                                 ENUM("format", formats),
                                                 NUMBERS(INT64, "dims"),
                                                 MESSAGE("reshape", reshape),
                                                 BOOL("is_shape_tensor"),
                                                 BOOL("allow_ragged_batch"),
                                                 BOOL("optional"),
                                                 BOOL("is_non_linear_format_io")};
SCHEMA(input, "input");
static const kelp_config_field output_fields[] = {TEXT("name"),
                                                  ENUM("data_type", data_types),
                                                  NUMBERS(INT64, "dims"),
                                                  MESSAGE("reshape", reshape),
                                                  TEXT("label_filename"),
                                                  BOOL("is_shape_tensor"),
                                                  BOOL("is_non_linear_format_io")};
SCHEMA(output, "output");
static const kelp_config_field batch_input_fields[] = {
    ENUM("kind", batch_input_kinds), TEXTS("target_name"), ENUM("data_type", data_types),
    TEXTS("source_input")};
SCHEMA(batch_input, "batch_input");
static const kelp_config_field batch_output_fields[] = {
    TEXTS("target_name"), ENUM("kind", batch_output_kinds), TEXTS("source_input")};
SCHEMA(batch_output, "batch_output");

/* ---- instances ---- */
static const kelp_config_field resource_fields[] = {TEXT("name"), BOOL("global"),
                                                    NUMBER(UINT32, "count")};
SCHEMA(resource, "resources");
static const kelp_config_field rate_limiter_fields[] = {MESSAGES("resources", resource),
                                                        NUMBER(UINT32, "priority")};
SCHEMA(rate_limiter, "rate_limiter");
static const kelp_config_field secondary_fields[] = {
    ENUM("kind", secondary_kinds),
    {"device_id", KELP_CONFIG_INT64, KELP_CONFIG_JSON_TEXT, NULL, NULL, NULL}};
SCHEMA(secondary, "secondary_devices");
static const kelp_config_field instance_group_fields[] = {
    TEXT("name"),           ENUM("kind", kinds),
    NUMBER(INT32, "count"), MESSAGE("rate_limiter", rate_limiter),
    NUMBERS(INT32, "gpus"), MESSAGES("secondary_devices", secondary),
    TEXTS("profile"),       BOOL("passive"),
    TEXT("host_policy")};
SCHEMA(instance_group, "instance_group");

/* ---- versions ---- */
static const kelp_config_field latest_fields[] = {NUMBER(UINT32, "num_versions")};
SCHEMA(latest, "latest");
static const kelp_config_schema all_versions = {"all", NULL, 0};
static const kelp_config_field specific_fields[] = {NUMBERS(INT64, "versions")};
SCHEMA(specific, "specific");
static const kelp_config_field version_policy_fields[] = {
    ONE_OF("policy_choice", "latest", latest), ONE_OF("policy_choice", "all", all_versions),
    ONE_OF("policy_choice", "specific", specific)};
SCHEMA(version_policy, "version_policy");

/* ---- optimization ---- */
static const kelp_config_field graph_fields[] = {NUMBER(INT32, "level")};
SCHEMA(graph, "graph");
static const kelp_config_field shape_fields[] = {
    {"dim", KELP_CONFIG_INT64, R | KELP_CONFIG_JSON_TEXT, NULL, NULL, NULL}};
SCHEMA(shape, "shape");
static const kelp_config_field lower_bound_fields[] = {NUMBER(INT32, "batch_size"),
                                                       MESSAGE_MAP("input", shape)};
SCHEMA(lower_bound, "graph_lower_bound");
static const kelp_config_field graph_spec_fields[] = {NUMBER(INT32, "batch_size"),
                                                      MESSAGE_MAP("input", shape),
                                                      MESSAGE("graph_lower_bound", lower_bound)};
SCHEMA(graph_spec, "graph_spec");
static const kelp_config_field cuda_fields[] = {BOOL("graphs"), BOOL("busy_wait_events"),
                                                MESSAGES("graph_spec", graph_spec),
                                                BOOL("output_copy_stream")};
SCHEMA(cuda, "cuda");
static const kelp_config_field accelerator_fields[] = {TEXT("name"), TEXT_MAP("parameters")};
SCHEMA(accelerator, "accelerator");
static const kelp_config_field accelerators_fields[] = {
    MESSAGES("gpu_execution_accelerator", accelerator),
    MESSAGES("cpu_execution_accelerator", accelerator)};
SCHEMA(accelerators, "execution_accelerators");
static const kelp_config_field pinned_fields[] = {BOOL("enable")};
SCHEMA(pinned, "pinned_memory");
static const kelp_config_field optimization_fields[] = {
    MESSAGE("graph", graph),
    ENUM("priority", priorities),
    MESSAGE("cuda", cuda),
    MESSAGE("execution_accelerators", accelerators),
    MESSAGE("input_pinned_memory", pinned),
    MESSAGE("output_pinned_memory", pinned),
    NUMBER(UINT32, "gather_kernel_buffer_threshold"),
    BOOL("eager_batching")};
SCHEMA(optimization, "optimization");

/* ---- schedulers ---- */
static const kelp_config_field queue_policy_fields[] = {
    ENUM("timeout_action", timeout_actions), NUMBER(UINT64, "default_timeout_microseconds"),
    BOOL("allow_timeout_override"), NUMBER(UINT32, "max_queue_size")};
SCHEMA(queue_policy, "queue_policy");
static const kelp_config_field dynamic_batching_fields[] = {
    NUMBERS(INT32, "preferred_batch_size"),
    NUMBER(UINT64, "max_queue_delay_microseconds"),
    BOOL("preserve_ordering"),
    NUMBER(UINT64, "priority_levels"),
    NUMBER(UINT64, "default_priority_level"),
    MESSAGE("default_queue_policy", queue_policy),
    {"priority_queue_policy", KELP_CONFIG_MESSAGE, M | KELP_CONFIG_MAP_U64, &queue_policy, NULL,
     NULL}};
SCHEMA(dynamic_batching, "dynamic_batching");
static const kelp_config_field direct_fields[] = {NUMBER(UINT64, "max_queue_delay_microseconds"),
                                                  NUMBER(DOUBLE, "minimum_slot_utilization")};
SCHEMA(direct, "direct");
static const kelp_config_field oldest_fields[] = {
    NUMBER(INT32, "max_candidate_sequences"), NUMBERS(INT32, "preferred_batch_size"),
    NUMBER(UINT64, "max_queue_delay_microseconds"), BOOL("preserve_ordering")};
SCHEMA(oldest, "oldest");
static const kelp_config_field control_fields[] = {
    ENUM("kind", control_kinds), NUMBERS(INT32, "int32_false_true"),
    NUMBERS(DOUBLE, "fp32_false_true"), NUMBERS(BOOL, "bool_false_true"),
    ENUM("data_type", data_types)};
SCHEMA(control, "control");
static const kelp_config_field control_input_fields[] = {TEXT("name"),
                                                         MESSAGES("control", control)};
SCHEMA(control_input, "control_input");
static const kelp_config_field initial_state_fields[] = {
    ENUM("data_type", data_types),
    {"dims", KELP_CONFIG_INT64, R | KELP_CONFIG_JSON_TEXT, NULL, NULL, NULL},
    ONE_BOOL("state_data", "zero_data"),
    ONE_TEXT("state_data", "data_file"),
    TEXT("name")};
SCHEMA(initial_state, "initial_state");
static const kelp_config_field state_fields[] = {TEXT("input_name"),
                                                 TEXT("output_name"),
                                                 ENUM("data_type", data_types),
                                                 NUMBERS(INT64, "dims"),
                                                 MESSAGES("initial_state", initial_state),
                                                 BOOL("use_same_buffer_for_input_output"),
                                                 BOOL("use_growable_memory")};
SCHEMA(state, "state");
static const kelp_config_field sequence_fields[] = {
    ONE_OF("strategy_choice", "direct", direct),
    ONE_OF("strategy_choice", "oldest", oldest),
    NUMBER(UINT64, "max_sequence_idle_microseconds"),
    MESSAGES("control_input", control_input),
    MESSAGES("state", state),
    BOOL("iterative_sequence")};
SCHEMA(sequence, "sequence_batching");
static const kelp_config_field step_fields[] = {TEXT("model_name"), NUMBER(INT64, "model_version"),
                                                TEXT_MAP("input_map"), TEXT_MAP("output_map"),
                                                TEXT("model_namespace")};
SCHEMA(step, "step");
static const kelp_config_field ensemble_fields[] = {
    MESSAGES("step", step),
    {"max_inflight_requests", KELP_CONFIG_UINT64, KELP_CONFIG_SPARSE, NULL, NULL, NULL}};
SCHEMA(ensemble, "ensemble_scheduling");

/* ---- other messages ---- */
static const kelp_config_field parameter_fields[] = {TEXT("string_value")};
SCHEMA(parameter, "parameter");
static const kelp_config_field warmup_input_fields[] = {
    ENUM("data_type", data_types), NUMBERS(INT64, "dims"), ONE_BOOL("input_data_type", "zero_data"),
    ONE_BOOL("input_data_type", "random_data"), ONE_TEXT("input_data_type", "input_data_file")};
SCHEMA(warmup_input, "inputs");
static const kelp_config_field warmup_fields[] = {TEXT("name"), NUMBER(UINT32, "batch_size"),
                                                  MESSAGE_MAP("inputs", warmup_input),
                                                  NUMBER(UINT32, "count")};
SCHEMA(warmup, "model_warmup");
static const kelp_config_field operations_fields[] = {TEXTS("op_library_filename")};
SCHEMA(operations, "model_operations");
static const kelp_config_field transaction_fields[] = {BOOL("decoupled")};
SCHEMA(transaction, "model_transaction_policy");
static const kelp_config_field agent_fields[] = {TEXT("name"), TEXT_MAP("parameters")};
SCHEMA(agent, "agents");
static const kelp_config_field agents_fields[] = {MESSAGES("agents", agent)};
SCHEMA(agents, "model_repository_agents");
static const kelp_config_field cache_fields[] = {BOOL("enable")};
SCHEMA(cache, "response_cache");
static const kelp_config_field metric_identifier_fields[] = {TEXT("family")};
SCHEMA(metric_identifier, "metric_identifier");
static const kelp_config_field histogram_fields[] = {NUMBERS(DOUBLE, "buckets")};
SCHEMA(histogram, "histogram_options");
static const kelp_config_field metric_control_fields[] = {
    MESSAGE("metric_identifier", metric_identifier),
    ONE_OF("metric_options", "histogram_options", histogram)};
SCHEMA(metric_control, "metric_control");
static const kelp_config_field metrics_fields[] = {MESSAGES("metric_control", metric_control)};
SCHEMA(metrics, "model_metrics");

static const kelp_config_field model_fields[] = {
    TEXT("name"),
    TEXT("platform"),
    TEXT("backend"),
    TEXT("runtime"),
    MESSAGE("version_policy", version_policy),
    NUMBER(INT32, "max_batch_size"),
    MESSAGES("input", input),
    MESSAGES("output", output),
    MESSAGES("batch_input", batch_input),
    MESSAGES("batch_output", batch_output),
    MESSAGE("optimization", optimization),
    ONE_OF("scheduling_choice", "dynamic_batching", dynamic_batching),
    ONE_OF("scheduling_choice", "sequence_batching", sequence),
    ONE_OF("scheduling_choice", "ensemble_scheduling", ensemble),
    MESSAGES("instance_group", instance_group),
    TEXT("default_model_filename"),
    TEXT_MAP("cc_model_filenames"),
    TEXT_MAP("metric_tags"),
    MESSAGE_MAP("parameters", parameter),
    MESSAGES("model_warmup", warmup),
    MESSAGE("model_operations", operations),
    MESSAGE("model_transaction_policy", transaction),
    MESSAGE("model_repository_agents", agents),
    MESSAGE("response_cache", cache),
    MESSAGE("model_metrics", metrics),
};
const kelp_config_schema kelp_config_schema_model = {"ModelConfig", model_fields,
                                                     KELP_COUNT(model_fields)};
