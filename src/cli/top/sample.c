/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the endpoints of a server. */
#include "cli/top/sample.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/text/json.h"

#include <string.h>

/* ---- metrics ---- */
static const char *const metric_names[KELP_TOP_COUNTERS] = {
    [KELP_TOP_SUCCESS] = "nv_inference_request_success",
    [KELP_TOP_FAILURE] = "nv_inference_request_failure",
    [KELP_TOP_INFERENCES] = "nv_inference_count",
    [KELP_TOP_EXECUTIONS] = "nv_inference_exec_count",
    [KELP_TOP_REQUEST_US] = "nv_inference_request_duration_us",
    [KELP_TOP_QUEUE_US] = "nv_inference_queue_duration_us",
    [KELP_TOP_COMPUTE_US] = "nv_inference_compute_infer_duration_us",
    [KELP_TOP_PENDING] = "nv_inference_pending_request_count"};

/* Takes the text before one of `stops`, or all of it. */
static kelp_str take(kelp_str *inout, const char *stops) {
    size_t length = 0;
    while (length < inout->length && strchr(stops, inout->data[length]) == NULL)
        length++;
    kelp_str taken = {inout->data, length};
    inout->data += length;
    inout->length -= length;
    return taken;
}

static void skip(kelp_str *inout, size_t bytes) {
    bytes = KELP_MIN(bytes, inout->length);
    inout->data += bytes;
    inout->length -= bytes;
}

/* Takes a quoted value of a label. Values with escapes, which no name of a model has, are cut. */
static kelp_str take_value(kelp_str *inout) {
    skip(inout, 1);
    kelp_str value = take(inout, "\"\\");
    while (inout->length > 0 && inout->data[0] == '\\') {
        skip(inout, 2);
        (void)take(inout, "\"\\");
    }
    skip(inout, 1);
    return value;
}

/* Reads the labels `model` and `version`, and moves behind the closing brace. */
static void take_labels(kelp_str *inout, kelp_str *out_model, kelp_str *out_version) {
    skip(inout, 1);
    while (inout->length > 0 && inout->data[0] != '}') {
        kelp_str name = take(inout, "=}");
        if (inout->length == 0 || inout->data[0] == '}')
            break;
        skip(inout, 1);
        kelp_str value = take_value(inout);
        if (kelp_str_is(name, "model"))
            *out_model = value;
        else if (kelp_str_is(name, "version"))
            *out_version = value;
        if (inout->length > 0 && inout->data[0] == ',')
            skip(inout, 1);
    }
    skip(inout, 1);
}

static void add_machine(kelp_str name, double value, kelp_top_sample *inout) {
    if (kelp_str_is(name, "nv_cpu_utilization")) {
        inout->cpu = value;
        inout->has_machine = true;
    } else if (kelp_str_is(name, "nv_cpu_memory_used_bytes")) {
        inout->memory_used = value;
    } else if (kelp_str_is(name, "nv_cpu_memory_total_bytes")) {
        inout->memory_total = value;
    }
}

static void add_metric(kelp_str line, kelp_top_sample *inout) {
    kelp_str model = {0}, version = {0};
    double value;
    kelp_str name = take(&line, "{ ");
    if (line.length > 0 && line.data[0] == '{')
        take_labels(&line, &model, &version);
    line = kelp_str_trim(line);
    if (!kelp_parse_f64(take(&line, " "), &value))
        return;
    if (model.data == NULL) {
        add_machine(name, value, inout);
        return;
    }
    for (size_t c = 0; c < KELP_TOP_COUNTERS; c++) {
        if (!kelp_str_is(name, metric_names[c]))
            continue;
        for (size_t m = 0; m < inout->count; m++)
            if (kelp_str_is(model, inout->models[m].name) &&
                kelp_str_is(version, inout->models[m].version))
                inout->models[m].counters[c] += value;
    }
}

void kelp_top_parse_metrics(kelp_str text, kelp_top_sample *inout) {
    while (text.length > 0) {
        kelp_str line = take(&text, "\n");
        skip(&text, 1);
        if (line.length > 0 && line.data[0] != '#')
            add_metric(line, inout);
    }
}

/* ---- JSON ---- */
/* Copies a member that is a string; "" if there is none. NULL if memory is exhausted. */
static const char *copy_member(kelp_arena *arena, const kelp_json *object, const char *key) {
    const kelp_json *member = kelp_json_get(object, key);
    if (member == NULL || member->type != KELP_JSON_STRING)
        return "";
    return kelp_arena_strndup(arena, member->string.data, member->string.length);
}

static kelp_status *read_index(const char *url, kelp_str body, kelp_top_sample *out) {
    kelp_json *index = NULL;
    KELP_TRY(kelp_json_parse(&out->arena, url, body.data, body.length, &index));
    if (index->type != KELP_JSON_ARRAY)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "'%s': expected an array, found %s", url,
                          kelp_json_type_name(index->type));
    out->models = KELP_ARENA_ARRAY(&out->arena, index->count, kelp_top_model);
    if (out->models == NULL && index->count > 0)
        return kelp_status_oom();
    for (const kelp_json *entry = index->child; entry != NULL; entry = entry->next) {
        kelp_top_model *model = &out->models[out->count++];
        *model = (kelp_top_model){.name = copy_member(&out->arena, entry, "name"),
                                  .version = copy_member(&out->arena, entry, "version"),
                                  .state = copy_member(&out->arena, entry, "state"),
                                  .reason = copy_member(&out->arena, entry, "reason")};
        if (model->name == NULL || model->version == NULL || model->state == NULL ||
            model->reason == NULL)
            return kelp_status_oom();
        if (*model->state == '\0')
            model->state = "UNLOADED";
    }
    return NULL;
}

static kelp_status *read_server(const char *url, kelp_str body, kelp_top_sample *out) {
    kelp_json *server = NULL;
    KELP_TRY(kelp_json_parse(&out->arena, url, body.data, body.length, &server));
    const char *name = copy_member(&out->arena, server, "name");
    const char *version = copy_member(&out->arena, server, "version");
    if (name == NULL || version == NULL)
        return kelp_status_oom();
    out->server = kelp_arena_printf(&out->arena, "%s %s", name, version);
    return out->server != NULL ? NULL : kelp_status_oom();
}

/* Requests an endpoint, and fails for another status than 200. */
static kelp_status *request(kelp_cli_http *client, const char *url, const char *path, bool post,
                            kelp_arena *arena, const char **out_url, kelp_str *out_body) {
    unsigned code = 0;
    *out_url = kelp_arena_printf(arena, "%s%s", url, path);
    if (*out_url == NULL)
        return kelp_status_oom();
    if (post)
        KELP_TRY(kelp_cli_http_post(client, *out_url, KELP_STR("{}"), 0, &code, out_body));
    else
        KELP_TRY(kelp_cli_http_get(client, *out_url, &code, out_body));
    return kelp_cli_http_expect(*out_url, code, *out_body);
}

kelp_status *kelp_top_sample_read(kelp_cli_http *client, const char *url, kelp_top_sample *out) {
    const char *whole = NULL;
    kelp_str body;
    *out = (kelp_top_sample){0};
    kelp_arena_init(&out->arena, kelp_allocator_system(), 0);
    KELP_TRY(request(client, url, "/v2", false, &out->arena, &whole, &body));
    KELP_TRY(read_server(whole, body, out));
    KELP_TRY(request(client, url, "/v2/repository/index", true, &out->arena, &whole, &body));
    KELP_TRY(read_index(whole, body, out));
    out->time_ns = kelp_now_ns();
    KELP_TRY(request(client, url, "/metrics", false, &out->arena, &whole, &body));
    kelp_top_parse_metrics(body, out);
    return NULL;
}

void kelp_top_sample_deinit(kelp_top_sample *sample) {
    kelp_arena_deinit(&sample->arena);
    *sample = (kelp_top_sample){0};
}

const kelp_top_model *kelp_top_find(const kelp_top_sample *sample, const char *name,
                                    const char *version) {
    for (size_t i = 0; i < sample->count; i++)
        if (strcmp(sample->models[i].name, name) == 0 &&
            strcmp(sample->models[i].version, version) == 0)
            return &sample->models[i];
    return NULL;
}
