/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/access.h"

#include "base/checked.h"
#include "cli/serve/options/options.h"

#include <stddef.h>

#define AT(member) offsetof(kelp_serve_options, access.member)
static const kelp_arg_spec specs[] = {
    {.group = "Access",
     .name = "http-restricted-api",
     .kind = KELP_OPTION_LIST,
     .offset = AT(restricted_apis),
     .value = "CATEGORY:HEADER=VALUE",
     .help = "accept HTTP requests of these categories, separated by commas, only with this "
             "header: health, metadata, inference, shared-memory, model-config, model-repository, "
             "statistics, trace, logging; may be repeated"},
    {.name = "grpc-restricted-protocol",
     .kind = KELP_OPTION_LIST,
     .offset = AT(restricted_protocols),
     .value = "CATEGORY:KEY=VALUE",
     .help = "the same for gRPC, with the metadata triton-grpc-protocol-KEY; may be repeated"},
    {.name = "auth-token-file",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(token_file),
     .value = "FILE",
     .choices = "@file",
     .help = "accept requests only with 'Authorization: Bearer TOKEN' and a token of this file, "
             "one for each line; a changed file is read again"},
    {.name = "auth-exempt-health",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(exempt_health),
     .help = "accept health requests without a token (false)"},
    {.name = "http-header-forward-pattern",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(forward_pattern),
     .value = "REGEX",
     .help = "pass HTTP headers whose name matches this extended regular expression to models, as "
             "request parameters"},
    {.name = "grpc-header-forward-pattern",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(grpc_forward_pattern),
     .value = "REGEX",
     .help = "the same for the metadata of gRPC"},
    {.name = "http-cors-origin",
     .kind = KELP_OPTION_LIST,
     .offset = AT(cors_origins),
     .value = "ORIGIN",
     .help = "let web pages of this origin, such as https://example.org, use the server; * for "
             "all; may be repeated"},
};
#undef AT

const kelp_arg_table kelp_serve_access_table = {specs, KELP_COUNT(specs)};

static kelp_status *create(const kelp_serve_access *o, const kelp_arg_list *rules, const char *noun,
                           const char *prefix, const kelp_logger *logger, kelp_access **out) {
    KELP_TRY(kelp_access_create(kelp_allocator_system(), logger, out));
    for (size_t i = 0; i < rules->count; i++)
        KELP_TRY(kelp_access_restrict(*out, rules->items[i], noun, prefix));
    return o->token_file != NULL ? kelp_access_set_token_file(*out, o->token_file, o->exempt_health)
                                 : NULL;
}

kelp_status *kelp_serve_access_create(const kelp_serve_access *o, const kelp_logger *logger,
                                      kelp_access **out_http, kelp_access **out_grpc) {
    KELP_TRY(create(o, &o->restricted_apis, "API", "", logger, out_http));
    return create(o, &o->restricted_protocols, "protocol", "triton-grpc-protocol-", logger,
                  out_grpc);
}
