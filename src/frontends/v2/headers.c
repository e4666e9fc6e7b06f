/* SPDX-License-Identifier: Apache-2.0 */
/* Headers that concern all requests: access, CORS, and headers for models. */
#include "base/checked.h"
#include "frontends/v2/exchange.h"

/* ---- CORS: the Fetch standard, section 3.2 ---- */

/* Returns the value of Access-Control-Allow-Origin, or NULL. */
static const char *allowed_origin(const kelp_v2_service *service, kelp_str origin) {
    for (size_t i = 0; i < service->cors_origin_count; i++) {
        const char *allowed = service->cors_origins[i];
        if (!strcmp(allowed, "*") || kelp_str_is(origin, allowed))
            return allowed;
    }
    return NULL;
}

static void respond_preflight(kelp_v2_exchange *exchange) {
    const kelp_str *headers =
        kelp_http_find(exchange->base.request, "access-control-request-headers");
    kelp_http_exchange_respond(&exchange->base, KELP_HTTP_OK);
    kelp_http_exchange_add_header(&exchange->base, KELP_STR("Access-Control-Allow-Methods"),
                                  KELP_STR("GET, HEAD, POST"));
    kelp_http_exchange_add_header(&exchange->base, KELP_STR("Access-Control-Max-Age"),
                                  KELP_STR("600"));
    if (headers != NULL) { /* the origin is trusted: it may send any header */
        const char *copy = kelp_arena_strndup(&exchange->arena, headers->data, headers->length);
        if (copy != NULL)
            kelp_http_exchange_add_header(&exchange->base, KELP_STR("Access-Control-Allow-Headers"),
                                          (kelp_str){copy, headers->length});
    }
    kelp_v2_send(exchange);
}

bool kelp_v2_apply_cors(kelp_v2_exchange *exchange) {
    const kelp_v2_service *service = kelp_v2_service_of(exchange);
    const kelp_http_request *request = exchange->base.request;
    if (service->cors_origin_count == 0)
        return false;
    const kelp_str *origin = kelp_http_find(request, "origin");
    const char *allowed = origin != NULL ? allowed_origin(service, *origin) : NULL;
    if (strcmp(service->cors_origins[0], "*") != 0) /* caches: the response depends on it */
        kelp_http_exchange_add_header(&exchange->base, KELP_STR("Vary"), KELP_STR("Origin"));
    if (allowed != NULL) {
        kelp_http_exchange_add_header(&exchange->base, KELP_STR("Access-Control-Allow-Origin"),
                                      kelp_str_from(allowed));
        kelp_http_exchange_add_header(&exchange->base, KELP_STR("Access-Control-Expose-Headers"),
                                      KELP_STR("Inference-Header-Content-Length"));
    }
    kelp_http_exchange_keep_headers(&exchange->base);
    if (allowed == NULL || !kelp_str_is(request->method, "OPTIONS") ||
        kelp_http_find(request, "access-control-request-method") == NULL)
        return false;
    respond_preflight(exchange);
    return true;
}

/* ---- access ---- */

static const kelp_str *find_header(const void *userp, const char *name) {
    return kelp_http_find(userp, name);
}

bool kelp_v2_permit(kelp_v2_exchange *exchange, kelp_access_category category) {
    kelp_status *status = kelp_access_check(kelp_v2_service_of(exchange)->access, category,
                                            find_header, exchange->base.request);
    if (status == NULL)
        return true;
    bool unknown = kelp_status_code(status) == KELP_UNAUTHENTICATED;
    kelp_v2_respond_error(exchange, unknown ? KELP_HTTP_UNAUTHORIZED : KELP_HTTP_FORBIDDEN,
                          kelp_str_from(kelp_status_message(status)));
    if (unknown)
        kelp_http_exchange_add_header(&exchange->base, KELP_STR("WWW-Authenticate"),
                                      KELP_STR("Bearer"));
    kelp_status_free(status);
    kelp_v2_send(exchange);
    return false;
}

/* ---- headers for models ---- */

kelp_status *kelp_v2_forward_headers(kelp_v2_exchange *exchange) {
    const kelp_forward *forward = kelp_v2_service_of(exchange)->forward;
    const kelp_http_request *request = exchange->base.request;
    for (size_t i = 0; forward != NULL && i < request->header_count; i++) {
        const char *name, *value;
        KELP_TRY(kelp_forward_header(forward, &exchange->arena, request->headers[i].name,
                                     request->headers[i].value, &name, &value));
        if (name != NULL)
            KELP_TRY(kelp_v2_status(
                TRITONSERVER_InferenceRequestSetStringParameter(exchange->request, name, value)));
    }
    return NULL;
}
