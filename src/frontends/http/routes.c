/* SPDX-License-Identifier: Apache-2.0 */
/* Which handler answers which path: one table. */
#include "base/checked.h"
#include "frontends/http/call.h"

/* In a pattern '*' stands for one segment, the name of a model, and '#' for the digits of a
 * version. */
static const struct {
    const char *method;
    const char *pattern;
    void (*handler)(kelp_http_call *call);
} routes[] = {
    {"POST", "/v2/models/*/infer", kelp_v2_infer},
    {"POST", "/v2/models/*/versions/#/infer", kelp_v2_infer},
    {"GET", "/v2/health/live", kelp_v2_live},
    {"GET", "/v2/health/ready", kelp_v2_ready},
    {"GET", "/v2", kelp_v2_server_metadata},
    {"GET", "/v2/models/stats", kelp_v2_model_statistics},
    {"GET", "/v2/models/*", kelp_v2_model_metadata},
    {"GET", "/v2/models/*/versions/#", kelp_v2_model_metadata},
    {"GET", "/v2/models/*/ready", kelp_v2_model_ready},
    {"GET", "/v2/models/*/versions/#/ready", kelp_v2_model_ready},
    {"GET", "/v2/models/*/config", kelp_v2_model_config},
    {"GET", "/v2/models/*/versions/#/config", kelp_v2_model_config},
    {"GET", "/v2/models/*/stats", kelp_v2_model_statistics},
    {"GET", "/v2/models/*/versions/#/stats", kelp_v2_model_statistics},
    {"POST", "/v2/repository/index", kelp_v2_repository_index},
    {"POST", "/v2/repository/models/*/load", kelp_v2_repository_load},
    {"POST", "/v2/repository/models/*/unload", kelp_v2_repository_unload},
    {"GET", "/metrics", kelp_v2_metrics},
    {"GET", "/metrics/", kelp_v2_metrics},
};

static bool match(const char *pattern, kelp_str path, kelp_str *out_model, kelp_str *out_version) {
    const char *p = path.data;
    const char *end = p + path.length;
    *out_model = *out_version = (kelp_str){0};
    for (; *pattern; pattern++) {
        const char *start = p;
        if (*pattern == '*') {
            while (p < end && *p != '/')
                p++;
            *out_model = (kelp_str){start, (size_t)(p - start)};
        } else if (*pattern == '#') {
            while (p < end && *p >= '0' && *p <= '9')
                p++;
            *out_version = (kelp_str){start, (size_t)(p - start)};
        } else if (p < end && *p == *pattern) {
            p++;
        }
        if (p == start)
            return false;
    }
    return p == end;
}

/* Copies the parts of the path that a handler needs, percent-decoded, since the head goes away with
 * the connection. */
static kelp_status *take_parts(kelp_http_call *call, kelp_str model, kelp_str version) {
    call->model = "";
    call->version = -1;
    if (model.length) {
        char *name = kelp_arena_alloc(&call->arena, model.length + 1, 1);
        size_t length;
        if (!name)
            return kelp_status_oom();
        if (!kelp_http1_percent_decode(model, name, &length))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "the model name '%.*s' in the path is not properly percent-encoded",
                              KELP_STR_ARG(model));
        name[length] = 0;
        call->model = name;
    }
    if (version.length && !kelp_parse_i64(version, &call->version))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "model version '%.*s' is too large",
                          KELP_STR_ARG(version));
    return NULL;
}

void kelp_http_route(kelp_http_call *call) {
    const char *allowed = NULL;
    kelp_status *status = NULL;
    for (size_t i = 0; i < KELP_COUNT(routes) && !status; i++) {
        kelp_str model, version;
        if (!match(routes[i].pattern, call->head->path, &model, &version))
            continue;
        if (!kelp_str_is(call->head->method, routes[i].method)) {
            allowed = routes[i].method;
            continue;
        }
        status = take_parts(call, model, version);
        if (!status) {
            routes[i].handler(call);
            return;
        }
    }
    if (status) {
        kelp_http_reply_status(call, status);
    } else if (allowed) {
        kelp_http_reply_error_text(call, 405, KELP_STR("Method Not Allowed"));
        call->allow = allowed;
    } else {
        kelp_http_reply_error_text(call, 404, KELP_STR("Not Found"));
    }
    kelp_http_call_finish(call);
}
