/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/v2/routes.h"

#include "base/checked.h"
#include "base/text/utf8.h"
#include "frontends/common/services.h"
#include "frontends/v2/exchange.h"

const kelp_v2_row kelp_v2_rows[] = {
    {"POST", "/v2/models/*/infer", kelp_v2_infer, KELP_SERVICE_HTTP, KELP_ACCESS_INFERENCE},
    {"POST", "/v2/models/*/versions/#/infer", kelp_v2_infer, KELP_SERVICE_HTTP,
     KELP_ACCESS_INFERENCE},
    {"POST", "/v2/models/*/generate", kelp_v2_generate, KELP_SERVICE_HTTP, KELP_ACCESS_INFERENCE},
    {"POST", "/v2/models/*/versions/#/generate", kelp_v2_generate, KELP_SERVICE_HTTP,
     KELP_ACCESS_INFERENCE},
    {"POST", "/v2/models/*/generate_stream", kelp_v2_generate_stream, KELP_SERVICE_HTTP,
     KELP_ACCESS_INFERENCE},
    {"POST", "/v2/models/*/versions/#/generate_stream", kelp_v2_generate_stream, KELP_SERVICE_HTTP,
     KELP_ACCESS_INFERENCE},
    {"GET", "/v2/health/live", kelp_v2_live, KELP_SERVICE_HTTP, KELP_ACCESS_HEALTH},
    {"GET", "/v2/health/ready", kelp_v2_ready, KELP_SERVICE_HTTP, KELP_ACCESS_HEALTH},
    {"GET", "/v2", kelp_v2_server_metadata, KELP_SERVICE_HTTP, KELP_ACCESS_METADATA},
    {"GET", "/openapi.json", kelp_v2_openapi, KELP_SERVICE_HTTP, KELP_ACCESS_METADATA},
    {"GET", "/v2/models/stats", kelp_v2_model_statistics, KELP_SERVICE_HTTP,
     KELP_ACCESS_STATISTICS},
    {"GET", "/v2/models/*", kelp_v2_model_metadata, KELP_SERVICE_HTTP, KELP_ACCESS_METADATA},
    {"GET", "/v2/models/*/versions/#", kelp_v2_model_metadata, KELP_SERVICE_HTTP,
     KELP_ACCESS_METADATA},
    {"GET", "/v2/models/*/ready", kelp_v2_model_ready, KELP_SERVICE_HTTP, KELP_ACCESS_HEALTH},
    {"GET", "/v2/models/*/versions/#/ready", kelp_v2_model_ready, KELP_SERVICE_HTTP,
     KELP_ACCESS_HEALTH},
    {"GET", "/v2/models/*/config", kelp_v2_model_config, KELP_SERVICE_HTTP,
     KELP_ACCESS_MODEL_CONFIG},
    {"GET", "/v2/models/*/versions/#/config", kelp_v2_model_config, KELP_SERVICE_HTTP,
     KELP_ACCESS_MODEL_CONFIG},
    {"GET", "/v2/models/*/stats", kelp_v2_model_statistics, KELP_SERVICE_HTTP,
     KELP_ACCESS_STATISTICS},
    {"GET", "/v2/models/*/versions/#/stats", kelp_v2_model_statistics, KELP_SERVICE_HTTP,
     KELP_ACCESS_STATISTICS},
    {"POST", "/v2/repository/index", kelp_v2_repository_index, KELP_SERVICE_HTTP,
     KELP_ACCESS_MODEL_REPOSITORY},
    {"POST", "/v2/repository/models/*/load", kelp_v2_repository_load, KELP_SERVICE_HTTP,
     KELP_ACCESS_MODEL_REPOSITORY},
    {"POST", "/v2/repository/models/*/unload", kelp_v2_repository_unload, KELP_SERVICE_HTTP,
     KELP_ACCESS_MODEL_REPOSITORY},
    {"GET", "/v2/systemsharedmemory/status", kelp_v2_shm_status, KELP_SERVICE_HTTP,
     KELP_ACCESS_SHARED_MEMORY},
    {"GET", "/v2/systemsharedmemory/region/*/status", kelp_v2_shm_status, KELP_SERVICE_HTTP,
     KELP_ACCESS_SHARED_MEMORY},
    {"POST", "/v2/systemsharedmemory/register", kelp_v2_shm_register, KELP_SERVICE_HTTP,
     KELP_ACCESS_SHARED_MEMORY},
    {"POST", "/v2/systemsharedmemory/region/*/register", kelp_v2_shm_register, KELP_SERVICE_HTTP,
     KELP_ACCESS_SHARED_MEMORY},
    {"POST", "/v2/systemsharedmemory/unregister", kelp_v2_shm_unregister, KELP_SERVICE_HTTP,
     KELP_ACCESS_SHARED_MEMORY},
    {"POST", "/v2/systemsharedmemory/region/*/unregister", kelp_v2_shm_unregister,
     KELP_SERVICE_HTTP, KELP_ACCESS_SHARED_MEMORY},
    {"GET", "/v2/cudasharedmemory/status", kelp_v2_cuda_shm_status, KELP_SERVICE_HTTP,
     KELP_ACCESS_SHARED_MEMORY},
    {"GET", "/v2/cudasharedmemory/region/*/status", kelp_v2_cuda_shm_status, KELP_SERVICE_HTTP,
     KELP_ACCESS_SHARED_MEMORY},
    {"POST", "/v2/cudasharedmemory/register", kelp_v2_cuda_shm_register, KELP_SERVICE_HTTP,
     KELP_ACCESS_SHARED_MEMORY},
    {"POST", "/v2/cudasharedmemory/region/*/register", kelp_v2_cuda_shm_register, KELP_SERVICE_HTTP,
     KELP_ACCESS_SHARED_MEMORY},
    {"POST", "/v2/cudasharedmemory/unregister", kelp_v2_cuda_shm_unregister, KELP_SERVICE_HTTP,
     KELP_ACCESS_SHARED_MEMORY},
    {"POST", "/v2/cudasharedmemory/region/*/unregister", kelp_v2_cuda_shm_unregister,
     KELP_SERVICE_HTTP, KELP_ACCESS_SHARED_MEMORY},
    {"GET", "/v2/logging", kelp_v2_get_logging, KELP_SERVICE_HTTP, KELP_ACCESS_LOGGING},
    {"POST", "/v2/logging", kelp_v2_set_logging, KELP_SERVICE_HTTP, KELP_ACCESS_LOGGING},
    {"GET", "/v2/trace/setting", kelp_v2_get_trace, KELP_SERVICE_HTTP, KELP_ACCESS_TRACE},
    {"POST", "/v2/trace/setting", kelp_v2_set_trace, KELP_SERVICE_HTTP, KELP_ACCESS_TRACE},
    {"GET", "/v2/models/*/trace/setting", kelp_v2_get_trace, KELP_SERVICE_HTTP, KELP_ACCESS_TRACE},
    {"POST", "/v2/models/*/trace/setting", kelp_v2_set_trace, KELP_SERVICE_HTTP, KELP_ACCESS_TRACE},
    {"GET", "/", kelp_v2_page, KELP_SERVICE_PAGE, KELP_ACCESS_PUBLIC},
    {"GET", "/status/page.css", kelp_v2_page_style, KELP_SERVICE_PAGE, KELP_ACCESS_PUBLIC},
    {"GET", "/status/page.js", kelp_v2_page_script, KELP_SERVICE_PAGE, KELP_ACCESS_PUBLIC},
    {"GET", "/metrics", kelp_v2_metrics, KELP_SERVICE_METRICS, KELP_ACCESS_OTHER},
    {"GET", "/metrics/", kelp_v2_metrics, KELP_SERVICE_METRICS, KELP_ACCESS_OTHER},
};
const size_t kelp_v2_row_count = KELP_COUNT(kelp_v2_rows);

/* Matches a path with a pattern, and returns the variable parts. */
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

/* Copies and decodes the variable parts of the path, because the head is valid only while the
 * handler runs. */
static kelp_status *take_parts(kelp_v2_exchange *exchange, kelp_str model, kelp_str version) {
    exchange->model = "";
    exchange->version = -1;
    if (model.length) {
        char *name = kelp_arena_alloc(&exchange->arena, model.length + 1, 1);
        size_t length;
        if (name == NULL)
            return kelp_status_oom();
        if (!kelp_http_percent_decode(model, name, &length))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "invalid percent-encoding of the name '%.*s' in the path",
                              KELP_STR_ARG(model));
        name[length] = 0;
        if (!kelp_utf8_count((kelp_str){name, length}, NULL))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "the model name '%.*s' in the path is not valid UTF-8",
                              KELP_STR_ARG(model));
        exchange->model = name;
    }
    if (version.length && !kelp_parse_i64(version, &exchange->version))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the model version '%.*s' in the path is too large",
                          KELP_STR_ARG(version));
    return NULL;
}

void kelp_v2_route(kelp_v2_exchange *exchange) {
    const char *allowed = NULL;
    kelp_status *status = NULL;
    kelp_str method = exchange->base.request->method;
    if (kelp_v2_apply_cors(exchange))
        return;
    if (kelp_str_is(method, "HEAD")) /* the transport omits the body of the response */
        method = KELP_STR("GET");
    for (size_t i = 0; i < kelp_v2_row_count && status == NULL; i++) {
        const kelp_v2_row *row = &kelp_v2_rows[i];
        kelp_str model, version;
        if (!(row->service & exchange->base.request->services) ||
            !match(row->pattern, exchange->base.request->path, &model, &version))
            continue;
        if (!kelp_str_is(method, row->method)) {
            const char *other = !strcmp(row->method, "GET") ? "GET, HEAD" : row->method;
            allowed = allowed != NULL && strcmp(allowed, other) != 0 ? "GET, HEAD, POST" : other;
            continue;
        }
        if (!kelp_v2_permit(exchange, row->category))
            return;
        status = take_parts(exchange, model, version);
        if (status == NULL) {
            if (row->category != KELP_ACCESS_SHARED_MEMORY)
                kelp_request_entry_set_model(&exchange->base.entry, exchange->model,
                                             exchange->version);
            exchange->route = row->pattern;
            row->handler(exchange);
            return;
        }
    }
    if (status != NULL) {
        kelp_v2_respond_failure(exchange, status);
    } else if (allowed != NULL) {
        kelp_v2_respond_error(exchange, KELP_HTTP_METHOD_NOT_ALLOWED,
                              KELP_STR("Method Not Allowed"));
        kelp_http_exchange_add_header(&exchange->base, KELP_STR("Allow"), kelp_str_from(allowed));
    } else if ((exchange->base.request->services & KELP_SERVICE_HTTP) == 0) {
        kelp_v2_respond_error(exchange, KELP_HTTP_NOT_FOUND,
                              KELP_STR("Not Found: this port serves only /metrics"));
    } else {
        kelp_v2_respond_error(exchange, KELP_HTTP_NOT_FOUND, KELP_STR("Not Found"));
    }
    kelp_v2_send(exchange);
}
