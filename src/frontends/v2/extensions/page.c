/* SPDX-License-Identifier: Apache-2.0 */
/* The status page: static files, whose script uses the HTTP API. The content security policy allows
 * these files only, so that text of a model can neither run nor load anything. */
#include "frontends/page/page.h"

#include "frontends/v2/exchange.h"

static void respond(kelp_v2_exchange *exchange, kelp_str type, const unsigned char *data,
                    size_t length) {
    static const char policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; "
                                 "connect-src 'self'; img-src data: blob:; base-uri 'none'; "
                                 "form-action 'none'; frame-ancestors 'none'";
    kelp_http_exchange *base = &exchange->base;
    kelp_http_exchange_respond(base, KELP_HTTP_OK);
    kelp_http_exchange_add_header(base, KELP_STR("Content-Type"), type);
    kelp_http_exchange_add_header(base, KELP_STR("Content-Security-Policy"), KELP_STR(policy));
    kelp_http_exchange_add_header(base, KELP_STR("X-Content-Type-Options"), KELP_STR("nosniff"));
    kelp_http_exchange_add_header(base, KELP_STR("Referrer-Policy"), KELP_STR("no-referrer"));
    kelp_http_exchange_add_header(base, KELP_STR("Cache-Control"), KELP_STR("no-cache"));
    kelp_status *status = kelp_http_exchange_add_piece(base, data, length);
    if (status != NULL)
        kelp_v2_respond_failure(exchange, status);
    kelp_v2_send(exchange);
}

void kelp_v2_page(kelp_v2_exchange *exchange) {
    respond(exchange, KELP_STR("text/html; charset=utf-8"), kelp_page_html, kelp_page_html_bytes);
}

void kelp_v2_page_style(kelp_v2_exchange *exchange) {
    respond(exchange, KELP_STR("text/css; charset=utf-8"), kelp_page_css, kelp_page_css_bytes);
}

void kelp_v2_page_script(kelp_v2_exchange *exchange) {
    respond(exchange, KELP_STR("text/javascript; charset=utf-8"), kelp_page_js, kelp_page_js_bytes);
}
