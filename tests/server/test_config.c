/* SPDX-License-Identifier: Apache-2.0 */
/* Model configurations: defaults, errors with their positions, and the JSON for clients. */
#include "base/alloc.h"
#include "base/checked.h"
#include "server/config/config.h"
#include "server/config/schema.h"
#include "server/scheduler/scheduler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static kelp_status *parse(const char *text, bool strict, kelp_model_config **out) {
    kelp_config_load_options options = {.model_name = "m", .strict = strict};
    return kelp_model_config_parse(kelp_allocator_system(), &options, "config.pbtxt", text,
                                   strlen(text), out);
}

static kelp_model_config *accepts(const char *text) {
    kelp_model_config *config = NULL;
    kelp_status *status = parse(text, false, &config);
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
    return config;
}

static void rejects(const char *text, bool strict, const char *part) {
    kelp_model_config *config = NULL;
    kelp_status *status = parse(text, strict, &config);
    assert_non_null(status);
    if (strstr(kelp_status_message(status), part) == NULL)
        fail_msg("expected '%s' in: %s", part, kelp_status_message(status));
    assert_int_equal(kelp_status_code(status), KELP_INVALID_ARGUMENT);
    kelp_status_free(status);
}

static void shows(const kelp_model_config *config, const char *part) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    assert_null(kelp_model_config_to_json(config, 1, &text));
    if (strstr(kelp_buf_cstr(&text), part) == NULL)
        fail_msg("expected '%s' in: %s", part, kelp_buf_cstr(&text));
    kelp_buf_deinit(&text);
}

#define ADDSUB                                                           \
    "backend: \"addsub\" max_batch_size: 8\n"                            \
    "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 16 ] },\n"  \
    "        { name: \"INPUT1\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n" \
    "output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: 16 }\n"

/* ---- every field is used, rejected, or reported to have no effect ---- */
static void lists_as_unused(const kelp_model_config *config, bool is_builtin,
                            const char *expected) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_model_config_list_unused(config, is_builtin, &text);
    assert_string_equal(kelp_buf_cstr(&text), expected);
    kelp_buf_deinit(&text);
}

static void fields_without_effect_are_listed(void **state) {
    (void)state;
    /* configuration, fields listed for a backend in a library, for a built-in backend */
    static const char *const rows[][3] = {
        {ADDSUB, "", ""},
        {ADDSUB "dynamic_batching { }", "", ""},
        {ADDSUB "dynamic_batching { max_queue_delay_microseconds: 0 preserve_ordering: false }", "",
         ""},
        {ADDSUB "dynamic_batching { preferred_batch_size: [ 4, 8 ] preserve_ordering: true }", "",
         ""},
        {ADDSUB "dynamic_batching { default_queue_policy { max_queue_size: 3 } }", "", ""},
        {ADDSUB "instance_group [ { count: 1 }, { secondary_devices { device_id: 2 } } ]",
         "instance_group.secondary_devices", "instance_group.secondary_devices"},
        {ADDSUB "optimization { input_pinned_memory { enable: true } }", "", ""},
        {ADDSUB "optimization { output_pinned_memory { enable: false } cuda { graphs: true } }", "",
         "optimization.cuda, optimization.output_pinned_memory.enable"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kelp_model_config *config = accepts(rows[i][0]);
        lists_as_unused(config, false, rows[i][1]);
        lists_as_unused(config, true, rows[i][2]);
        kelp_model_config_release(config);
    }
}

/* Fields with an effect. A message stands for all of its fields only if it ends in ".*". */
static const char *const used_fields[] = {
    "name",
    "platform",
    "backend",
    "runtime",
    "version_policy.*",
    "max_batch_size",
    "input.name",
    "input.data_type",
    "input.dims",
    "input.reshape.shape",
    "input.is_shape_tensor",
    "input.allow_ragged_batch",
    "input.optional",
    "output.name",
    "output.data_type",
    "output.dims",
    "output.reshape.shape",
    "output.label_filename",
    "output.is_shape_tensor",
    "batch_input.*",
    "batch_output.*",
    "dynamic_batching.preferred_batch_size",
    "dynamic_batching.max_queue_delay_microseconds",
    "dynamic_batching.preserve_ordering",
    "dynamic_batching.priority_levels",
    "dynamic_batching.default_priority_level",
    "dynamic_batching.priority_queue_policy.*",
    "dynamic_batching.default_queue_policy.timeout_action",
    "dynamic_batching.default_queue_policy.default_timeout_microseconds",
    "dynamic_batching.default_queue_policy.allow_timeout_override",
    "dynamic_batching.default_queue_policy.max_queue_size",
    "sequence_batching.direct.*",
    "sequence_batching.oldest.max_candidate_sequences",
    "sequence_batching.oldest.preferred_batch_size",
    "sequence_batching.oldest.max_queue_delay_microseconds",
    "sequence_batching.oldest.preserve_ordering",
    "sequence_batching.max_sequence_idle_microseconds",
    "sequence_batching.control_input.*",
    "sequence_batching.state.*",
    "sequence_batching.iterative_sequence",
    "instance_group.name",
    "instance_group.kind",
    "instance_group.count",
    "instance_group.passive",
    "instance_group.host_policy",
    "instance_group.rate_limiter.resources.name",
    "instance_group.rate_limiter.resources.global",
    "instance_group.rate_limiter.resources.count",
    "instance_group.rate_limiter.priority",
    "default_model_filename",
    "metric_tags",
    "parameters.string_value",
    "model_warmup.name",
    "model_warmup.batch_size",
    "model_warmup.count",
    "model_warmup.inputs.data_type",
    "model_warmup.inputs.dims",
    "model_warmup.inputs.zero_data",
    "model_warmup.inputs.random_data",
    "model_warmup.inputs.input_data_file",
    "model_operations.op_library_filename",
    "model_transaction_policy.decoupled",
    "model_repository_agents.agents.name",
    "model_repository_agents.agents.parameters",
    "response_cache.enable",
    "model_metrics.metric_control.metric_identifier.family",
    "model_metrics.metric_control.histogram_options.buckets",
};

/* Fields that make the model fail to load, with a configuration that sets them. */
static const char *const rejected_fields[][2] = {
    {"ensemble_scheduling.*", ADDSUB "platform: \"ensemble\" ensemble_scheduling { step { } }"},
    {"instance_group.gpus", ADDSUB "instance_group { gpus: 0 }"},
};

static bool stands_for(const char *row, const char *path) {
    size_t length = strlen(row);
    if (length > 2 && strcmp(row + length - 2, ".*") == 0)
        return strncmp(row, path, length - 1) == 0;
    return strcmp(row, path) == 0;
}

/* The fields on the way to a field, and whether each row of a table stood for a field. */
typedef struct walk {
    const kelp_config_field *fields[8];
    size_t depth;
    char path[256];
    bool used[KELP_COUNT(used_fields)], rejected[KELP_COUNT(rejected_fields)];
    size_t count;
} walk;

/* Sets only the field, to a value that is not its default, and returns whether it is listed as
 * unused. */
static bool is_listed_as_unused(const walk *w, int64_t value) {
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_config_message *root = kelp_config_message_new(&arena, &kelp_config_schema_model);
    kelp_config_message *message = root;
    kelp_buf text;
    kelp_buf_init(&text, kelp_allocator_system());
    for (size_t i = 0; i < w->depth; i++) {
        assert_non_null(message);
        const kelp_config_field *field = w->fields[i];
        bool many = (field->flags & (KELP_CONFIG_REPEATED | KELP_CONFIG_MAP)) != 0;
        kelp_config_value *at = many ? kelp_config_add(&arena, message, field->name)
                                     : kelp_config_set(&arena, message, field->name);
        assert_non_null(at);
        at->key = field->flags & KELP_CONFIG_MAP ? KELP_STR("1") : (kelp_str){0};
        if (field->kind == KELP_CONFIG_STRING)
            at->text = KELP_STR("text");
        else if (field->kind == KELP_CONFIG_DOUBLE)
            at->f = 1;
        else if (field->kind != KELP_CONFIG_MESSAGE)
            at->i = value;
        message = at->message;
    }
    kelp_model_config config = {.tree = root};
    kelp_model_config_list_unused(&config, true, &text);
    bool listed = text.length > 0;
    kelp_buf_deinit(&text);
    kelp_arena_deinit(&arena);
    return listed;
}

static void classify(walk *w) {
    size_t classes = is_listed_as_unused(w, 1) || is_listed_as_unused(w, 0);
    for (size_t i = 0; i < KELP_COUNT(used_fields); i++) {
        if (!stands_for(used_fields[i], w->path))
            continue;
        w->used[i] = true;
        classes++;
    }
    for (size_t i = 0; i < KELP_COUNT(rejected_fields); i++) {
        if (!stands_for(rejected_fields[i][0], w->path))
            continue;
        w->rejected[i] = true;
        classes++;
    }
    if (classes != 1)
        fail_msg("field '%s' is in %zu classes: expected one of used, rejected and unused", w->path,
                 classes);
    w->count++;
}

static void walk_fields(walk *w, const kelp_config_schema *schema) {
    size_t length = strlen(w->path);
    if (schema->field_count == 0) /* a message without fields, such as `all` */
        classify(w);
    for (size_t i = 0; i < schema->field_count; i++) {
        const kelp_config_field *field = &schema->fields[i];
        assert_true(w->depth < KELP_COUNT(w->fields));
        snprintf(w->path + length, sizeof w->path - length, "%s%s", length > 0 ? "." : "",
                 field->name);
        w->fields[w->depth++] = field;
        if (field->kind == KELP_CONFIG_MESSAGE)
            walk_fields(w, field->message);
        else
            classify(w);
        w->depth--;
        w->path[length] = '\0';
    }
}

static void every_field_is_used_rejected_or_listed(void **state) {
    (void)state;
    walk w = {0};
    walk_fields(&w, &kelp_config_schema_model);
    assert_true(w.count > 100);
    for (size_t i = 0; i < KELP_COUNT(used_fields); i++)
        if (!w.used[i])
            fail_msg("there is no field '%s'", used_fields[i]);
    for (size_t i = 0; i < KELP_COUNT(rejected_fields); i++)
        if (!w.rejected[i])
            fail_msg("there is no field '%s'", rejected_fields[i][0]);
}

static void fields_without_support_are_rejected(void **state) {
    (void)state;
    for (size_t i = 0; i < KELP_COUNT(rejected_fields); i++) {
        kelp_model_config *config = NULL;
        kelp_status *status = parse(rejected_fields[i][1], false, &config);
        if (status == NULL)
            status = kelp_scheduler_check(config);
        assert_non_null(status);
        kelp_status_free(status);
        kelp_model_config_release(config);
    }
    rejects(ADDSUB "instance_group { kind: KIND_CPU gpus: 0 }", false,
            "instance group m_0 of model m has kind KIND_CPU but specifies one or more GPUs");
    rejects(ADDSUB "instance_group { kind: KIND_MODEL gpus: 1 }", false,
            "has kind KIND_MODEL but specifies one or more GPUs");
}

static void batching_is_completed(void **state) {
    static const struct {
        const char *text;
        bool batches_all;
        const char *part; /* NULL: nothing changes */
    } rows[] = {
        {ADDSUB "dynamic_batching { max_queue_delay_microseconds: 7 }", false,
         "\"preferred_batch_size\":[8],\"max_queue_delay_microseconds\":7"},
        {ADDSUB "dynamic_batching { preferred_batch_size: 4 }", true, NULL},
        {ADDSUB, true, "\"dynamic_batching\":{\"preferred_batch_size\":[8]"},
        {ADDSUB, false, NULL},
        {"backend: \"b\" max_batch_size: 1", true, NULL},
        {"backend: \"b\" dynamic_batching { }", true, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kelp_model_config *config = accepts(rows[i].text), *completed = NULL;
        assert_null(kelp_model_config_complete_batching(config, rows[i].batches_all, &completed));
        if (rows[i].part == NULL)
            assert_ptr_equal(completed, config);
        else
            shows(completed, rows[i].part);
        kelp_model_config_release(completed);
        kelp_model_config_release(config);
    }
}

static void batch_inputs_and_outputs_are_checked(void **state) {
    static const char *const rows[][2] = {
        {"batch_input { target_name: \"N\" data_type: TYPE_INT32 }",
         "batch_input 0: batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 0"},
        {"batch_input { target_name: \"N\" source_input: [ \"INPUT0\", \"INPUT1\" ] }", "got 2"},
        {"batch_input { source_input: \"INPUT0\" }", "expected at least 1 'target_name', got 0"},
        {"batch_input { target_name: \"N\" source_input: \"X\" }", "unknown source input name 'X'"},
        {"batch_input [ { target_name: \"N\" source_input: \"INPUT0\" }, "
         "{ target_name: \"N\" source_input: \"INPUT1\" } ]",
         "batch_input 1: target input name 'N' can only be specified once"},
        {"batch_input { target_name: \"INPUT1\" source_input: \"INPUT0\" }",
         "target input name 'INPUT1' is also an input"},
        {"batch_output { target_name: \"Y\" source_input: \"INPUT0\" }",
         "batch_output 0: unknown target output name 'Y'"},
        {"batch_output { target_name: \"OUTPUT0\" source_input: \"OUTPUT0\" }",
         "unknown source input name 'OUTPUT0'"},
        {"batch_output [ { target_name: [ \"OUTPUT0\", \"OUTPUT0\" ] source_input: \"INPUT0\" } ]",
         "target output name 'OUTPUT0' can only be specified once"},
    };
    char text[1024];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(text, sizeof text, ADDSUB "%s", rows[i][0]);
        rejects(text, true, rows[i][1]);
    }
    kelp_model_config_release(
        accepts(ADDSUB "batch_input { target_name: [ \"N\", \"M\" ] source_input: \"INPUT0\" } "
                       "batch_output { target_name: \"OUTPUT0\" source_input: \"INPUT0\" }"));
}

static void a_configuration_is_read_and_filled_in(void **state) {
    (void)state;
    kelp_model_config *config = accepts(ADDSUB);
    assert_string_equal(config->name, "m");
    assert_string_equal(config->backend, "addsub");
    assert_int_equal(config->max_batch_size, 8);
    assert_int_equal(config->input_count, 2);
    assert_string_equal(config->inputs[1].name, "INPUT1");
    assert_int_equal(config->inputs[1].dtype, KELP_F32);
    assert_int_equal(config->inputs[1].data_type, TRITONSERVER_TYPE_FP32);
    assert_int_equal(config->inputs[1].dims[0], 16);
    assert_int_equal(config->outputs[0].rank, 1);
    assert_int_equal(config->instance_group_count, 1);
    assert_int_equal(config->instance_groups[0].count, 1);
    assert_int_equal(config->instance_groups[0].kind, TRITONSERVER_INSTANCEGROUPKIND_CPU);
    assert_int_equal(config->version_policy.kind, KELP_VERSIONS_LATEST);
    assert_int_equal(config->version_policy.latest, 1);
    assert_false(config->has_instance_groups);
    assert_null(kelp_model_config_validate(config));
    kelp_model_config_release(config);
}

static void clients_see_every_default(void **state) {
    (void)state;
    kelp_model_config *config = accepts(ADDSUB);
    shows(config, "{\"name\":\"m\",\"platform\":\"\",\"backend\":\"addsub\",\"runtime\":\"\","
                  "\"version_policy\":{\"latest\":{\"num_versions\":1}},\"max_batch_size\":8,"
                  "\"input\":[{\"name\":\"INPUT0\",\"data_type\":\"TYPE_FP32\","
                  "\"format\":\"FORMAT_NONE\",\"dims\":[16],\"is_shape_tensor\":false,"
                  "\"allow_ragged_batch\":false,\"optional\":false,");
    shows(config, "\"optimization\":{\"priority\":\"PRIORITY_DEFAULT\",\"input_pinned_memory\":"
                  "{\"enable\":true},\"output_pinned_memory\":{\"enable\":true},"
                  "\"gather_kernel_buffer_threshold\":0,\"eager_batching\":false}");
    shows(config, "\"instance_group\":[{\"name\":\"m\",\"kind\":\"KIND_CPU\",\"count\":1,"
                  "\"gpus\":[],\"secondary_devices\":[],\"profile\":[],\"passive\":false,"
                  "\"host_policy\":\"\"}]");
    shows(config, "\"parameters\":{},\"model_warmup\":[]}");
    kelp_model_config_release(config);
}

static void schedulers_parameters_and_groups_are_read(void **state) {
    (void)state;
    kelp_model_config *config = accepts(
        ADDSUB
        "dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100"
        " priority_levels: 2 default_priority_level: 1"
        " priority_queue_policy { key: 2 value { max_queue_size: 3 timeout_action: DELAY } } }\n"
        "instance_group [ { count: 3 }, { name: \"x\" kind: KIND_MODEL } ]\n"
        "parameters { key: \"a\" value { string_value: \"1\" } }\n"
        "parameters: { key: 'a' value: { string_value: 'b' 'c' } }\n"
        "model_transaction_policy { decoupled: true } response_cache { enable: True }\n"
        "version_policy { specific { versions: [ 3, 1 ] } }");
    assert_int_equal(config->scheduling, KELP_SCHEDULING_DYNAMIC);
    assert_int_equal(config->dynamic_batching.preferred_batch_sizes[1], 8);
    assert_int_equal(config->dynamic_batching.max_queue_delay_us, 100);
    assert_int_equal(config->dynamic_batching.policy_count, 1);
    assert_int_equal(config->dynamic_batching.policy_levels[0], 2);
    assert_int_equal(config->dynamic_batching.policies[0].timeout_action, KELP_TIMEOUT_DELAY);
    assert_int_equal(config->instance_group_count, 2);
    assert_string_equal(config->instance_groups[0].name, "m_0");
    assert_true(config->instance_groups[0].has_count);
    assert_false(config->instance_groups[0].has_kind);
    assert_int_equal(config->instance_groups[1].kind, TRITONSERVER_INSTANCEGROUPKIND_MODEL);
    assert_string_equal(kelp_model_config_parameter(config, "a"), "bc");
    assert_int_equal(config->parameter_count, 1);
    assert_true(config->decoupled);
    assert_true(config->response_cache);
    assert_int_equal(config->version_policy.kind, KELP_VERSIONS_SPECIFIC);
    assert_int_equal(config->version_policy.versions[0], 3);
    kelp_model_config_release(config);
}

static void errors_contain_the_position(void **state) {
    (void)state;
    rejects("backend: \"b\"\nmax_batchsize: 1", false,
            "config.pbtxt:2:1: ModelConfig has no field 'max_batchsize'; did you mean "
            "'max_batch_size'?");
    rejects(
        "max_batch_size: many", false,
        "config.pbtxt:1:17: field 'max_batch_size': expected a whole number from -2147483648 to "
        "2147483647, found 'many'");
    rejects("backend: \"b\" max_batch_size: -1", false,
            "'max_batch_size' must be non-negative value for m: found -1");
    rejects("backend: \"b\"\nbackend: \"c\"", false,
            "config.pbtxt:2:1: field 'backend' is set twice");
    rejects("input { name: \"a\" data_type: TYPE_FP99 }", false, "TYPE_FP99");
    rejects("input { name: \"a\" data_type: \"TYPE_FP32\" }", false,
            "expected a name without quotes");
    rejects("name: \"other\" backend: \"b\"", false, "expected 'm' (the model's directory)");
    rejects("backend: \"b\" dynamic_batching { }\nsequence_batching { }", false,
            "fields 'dynamic_batching' and 'sequence_batching' exclude each other");
    rejects("max_batch_size: 1", false,
            "Could not determine backend for model 'm' with no backend in model configuration.");
    rejects("backend: \"../b\"", false, "expected a name, found the path");
    rejects(ADDSUB "input { name: \"INPUT0\" data_type: TYPE_FP32 dims: 1 }", false,
            "input 'INPUT0' is defined twice");
    rejects("backend: \"b\" input { name: \"a\" data_type: TYPE_FP32 dims: [ 0 ] }", false,
            "model input 'a' dimension must be integer >= 1, or -1 to indicate a variable-size "
            "dimension for m");
    rejects("backend: \"b\" instance_group { kind: KIND_GPU }", false, "this server has no GPU");
    rejects("backend: \"b\" instance_group { count: -2 }", false, "expected 1 or more, found -2");
    rejects("backend: \"b\" input { name: \"a\" dims: 1 }", true,
            "model input 'a' must specify 'data_type' for m");
    rejects("backend: \"b\" input { name: \"a\" data_type: TYPE_FP32 }", true,
            "model input 'a' must specify 'dims' for m");
    rejects("platform: \"ensemble\"", false,
            "ensemble scheduling must be set for ensemble m whose platform is ensemble");
    rejects("platform: \"onnxruntime_onnx\" ensemble_scheduling { step { } }", false,
            "ensemble scheduling cannot be set for model 'm' whose platform is not ensemble");
    rejects("platform: \"ensemble\" backend: \"b\"", false,
            "Ensemble model 'm' must have platform type 'ensemble' and empty backend type");
    rejects("platform: \"ensemble\" ensemble_scheduling { }", false,
            "must specify 'step' for ensemble 'm'");
    rejects("platform: \"ensemble\" ensemble_scheduling { step { } } optimization { }", false,
            "optimization should not be specified for ensemble 'm'");
    rejects("backend: \"b\" dynamic_batching { preferred_batch_size: 9 } max_batch_size: 8", false,
            "expected 1 to max_batch_size (8), found 9");
}

static void priorities_are_checked(void **state) {
    static const char *const rows[][2] = {
        {"priority_levels: 3 default_priority_level: 4",
         "default priority level must be in range [1, 3] for m: found 4"},
        {"priority_levels: 3 default_priority_level: 0",
         "default priority level must be in range [1, 3] for m: found 0"},
        {"priority_levels: 3 default_priority_level: 1 priority_queue_policy { key: 0 value { } }",
         "priority queue policy must have priority level in range [1, 3] for m: found 0"},
        {"priority_levels: 3 default_priority_level: 1 priority_queue_policy { key: 4 value { } }",
         "priority queue policy must have priority level in range [1, 3] for m: found 4"},
    };
    char text[512];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(text, sizeof text, ADDSUB "dynamic_batching { %s }", rows[i][0]);
        rejects(text, false, rows[i][1]);
    }
}

static void reshapes_keep_the_number_of_elements(void **state) {
    static const struct {
        const char *dims, *reshape, *problem; /* NULL: accepted */
    } rows[] = {
        {"2, 3", "6", NULL},
        {"1", "", NULL},
        {"2, -1, 3", "2, 1, -1, 3", NULL},
        {"-1", "1, -1", NULL},
        {"2, 3", "5", "has different size for dims and reshape for m"},
        {"2", "", "has different size for dims and reshape for m"},
        {"-1", "6", "has different size for dims and reshape for m"},
        {"6", "-1", "has different size for dims and reshape for m"},
        {"2, -1, 3", "3, -1, 2", "has different size for dims and reshape for m"},
        {"2, -1, 3", "2, -1, 6", "has different size for dims and reshape for m"},
        {"-1, -1", "-1",
         "has different number of variable-size dimensions for dims and reshape for m"},
        {"-1", "-1, -1",
         "has different number of variable-size dimensions for dims and reshape for m"},
        {"1", "0", "reshape dimensions must be integer >= 1, or -1"},
    };
    char text[512];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int output = 0; output < 2; output++) {
            snprintf(text, sizeof text,
                     "backend: \"b\" %s { name: \"a\" data_type: TYPE_FP32 dims: [ %s ] "
                     "reshape { shape: [ %s ] } }",
                     output ? "output" : "input", rows[i].dims, rows[i].reshape);
            if (rows[i].problem != NULL)
                rejects(text, false, rows[i].problem);
            else
                kelp_model_config_release(accepts(text));
        }
    }
}

static void a_backend_completes_missing_fields(void **state) {
    (void)state;
    kelp_model_config *config = accepts("backend: \"b\" instance_group { count: 2 }"), *completed;
    const char *found = "{\"max_batch_size\":4,\"input\":[{\"name\":\"x\",\"data_type\":"
                        "\"TYPE_STRING\",\"dims\":[\"-1\"]}],\"output\":[{\"name\":\"y\","
                        "\"data_type\":\"TYPE_INT64\",\"dims\":[2]}],\"dynamic_batching\":{},"
                        "\"backend\":\"never taken\"}";
    assert_null(kelp_model_config_complete(config, found, strlen(found), &completed));
    assert_string_equal(completed->backend, "b");
    assert_int_equal(completed->max_batch_size, 4);
    assert_int_equal(completed->inputs[0].dtype, KELP_STRING);
    assert_int_equal(completed->inputs[0].dims[0], -1);
    assert_int_equal(completed->scheduling, KELP_SCHEDULING_DYNAMIC);
    assert_int_equal(completed->instance_groups[0].count, 2);
    assert_true(completed->instance_groups[0].has_count);
    assert_null(kelp_model_config_validate(completed));
    assert_int_equal(config->input_count, 0);
    kelp_status *status = kelp_model_config_complete(config, "{\"input\":3}", 11, &completed);
    assert_non_null(status);
    assert_non_null(strstr(kelp_status_message(status), "field 'input': expected an array"));
    kelp_status_free(status);
    kelp_model_config_release(completed);
    kelp_model_config_release(config);
}

/* Reads `count` inputs and parameters from JSON, with every parameter twice. The time used to grow
 * with the square of the size of the text. */
static void a_large_override_is_read(void **state) {
    enum { COUNT = 20000 };
    (void)state;
    kelp_buf json;
    kelp_buf_init(&json, kelp_allocator_system());
    kelp_buf_append_cstr(&json, "{\"backend\":\"b\",\"input\":[");
    for (int i = 0; i < COUNT; i++)
        kelp_buf_printf(&json, "%s{\"name\":\"x%d\",\"data_type\":\"TYPE_FP32\",\"dims\":[1]}",
                        i ? "," : "", i);
    kelp_buf_append_cstr(&json, "],\"parameters\":{");
    for (int i = 0; i < 2 * COUNT; i++)
        kelp_buf_printf(&json, "%s\"p%d\":{\"string_value\":\"%d\"}", i ? "," : "", i % COUNT, i);
    kelp_buf_append_cstr(&json, "}}");
    assert_non_null(kelp_buf_cstr(&json));
    const kelp_config_load_options options = {
        .model_name = "m", .override_json = json.data, .override_length = json.length};
    kelp_model_config *config = NULL;
    kelp_status *status = kelp_model_config_load(kelp_allocator_system(), &options, &config);
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
    assert_int_equal(config->input_count, COUNT);
    assert_int_equal(config->parameter_count, COUNT);
    assert_string_equal(config->parameters[0].key, "p0");
    assert_string_equal(config->parameters[0].value, "20000");
    kelp_model_config_release(config);
    kelp_buf_deinit(&json);
}

static void errors_of_an_override_contain_the_position(void **state) {
    static const struct {
        const char *json, *part;
    } cases[] = {
        {"{\n\"backend\":\"b\",\n\"backend\":\"c\"}", "'m':3:"},
        {"{\"backend\":\"b\",\"backend\":\"c\"}", "field 'backend' is set twice"},
        {"{\"dynamic_batching\":{},\"sequence_batching\":{}}", "exclude each other"},
        {"{\"input\":[{\"data_type\":\"TYPE_FP99\"}]}", "expected one of TYPE_INVALID, TYPE_BOOL"},
        {"{\"max_batchsize\":1}", "did you mean 'max_batch_size'?"},
        {"{\"input\":[{\"data_type\":99}]}", "expected a name of the enumeration"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const kelp_config_load_options options = {.model_name = "m",
                                                  .override_json = cases[i].json,
                                                  .override_length = strlen(cases[i].json)};
        kelp_model_config *config = NULL;
        kelp_status *status = kelp_model_config_load(kelp_allocator_system(), &options, &config);
        assert_non_null(status);
        if (strstr(kelp_status_message(status), cases[i].part) == NULL)
            fail_msg("expected '%s' in: %s", cases[i].part, kelp_status_message(status));
        kelp_status_free(status);
    }
}

static void default_instance_count_depends_on_the_backend(void **state) {
    static const struct {
        const char *text;
        int count;
    } cases[] = {{"backend: \"b\"", 1},
                 {"backend: \"onnxruntime\"", 2},
                 {"platform: \"onnxruntime_onnx\"", 2},
                 {"platform: \"tensorflow_graphdef\"", 2},
                 {"backend: \"onnxruntime\" instance_group { count: 3 }", 3}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kelp_model_config *config = accepts(cases[i].text);
        assert_int_equal(config->instance_groups[0].count, cases[i].count);
        assert_int_equal(config->instance_groups[0].kind, TRITONSERVER_INSTANCEGROUPKIND_CPU);
        kelp_model_config_release(config);
    }
}

static void preferences_replace_only_defaults(void **state) {
    (void)state;
    kelp_model_config *config = accepts("backend: \"b\" instance_group [ { count: 2 }, { } ]"),
                      *out;
    const kelp_preferred_group groups[] = {{TRITONSERVER_INSTANCEGROUPKIND_GPU, 9},
                                           {TRITONSERVER_INSTANCEGROUPKIND_CPU, 5}};
    assert_null(kelp_model_config_prefer(config, groups, 2, 0, &out));
    assert_int_equal(out->instance_groups[0].count, 2);
    assert_int_equal(out->instance_groups[1].count, 5);
    assert_int_equal(out->instance_groups[1].kind, TRITONSERVER_INSTANCEGROUPKIND_CPU);
    kelp_model_config_release(out);
    assert_null(kelp_model_config_prefer(config, NULL, 0, 0, &out));
    assert_ptr_equal(out, config);
    kelp_model_config_release(out);
    kelp_model_config_release(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_configuration_is_read_and_filled_in),
        cmocka_unit_test(fields_without_effect_are_listed),
        cmocka_unit_test(every_field_is_used_rejected_or_listed),
        cmocka_unit_test(fields_without_support_are_rejected),
        cmocka_unit_test(batching_is_completed),
        cmocka_unit_test(batch_inputs_and_outputs_are_checked),
        cmocka_unit_test(clients_see_every_default),
        cmocka_unit_test(schedulers_parameters_and_groups_are_read),
        cmocka_unit_test(errors_contain_the_position),
        cmocka_unit_test(priorities_are_checked),
        cmocka_unit_test(reshapes_keep_the_number_of_elements),
        cmocka_unit_test(a_backend_completes_missing_fields),
        cmocka_unit_test(a_large_override_is_read),
        cmocka_unit_test(errors_of_an_override_contain_the_position),
        cmocka_unit_test(default_instance_count_depends_on_the_backend),
        cmocka_unit_test(preferences_replace_only_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
