/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/caches.h"

#include "base/text/json.h"
#include "base/checked.h"
#include "cli/serve/options/options.h"

#include <stddef.h>
#include <stdio.h>

#define AT(member) offsetof(kelp_serve_options, caches.member)
static const kelp_arg_spec specs[] = {
    {.group = "Caches and repository agents",
     .name = "cache-config",
     .kind = KELP_OPTION_LIST,
     .offset = AT(cache_config),
     .value = "NAME,KEY=VALUE",
     .help = "response cache NAME and one of its settings, for models that enable response_cache; "
             "local,size=BYTES is built in; may be repeated"},
    {.name = "response-cache-byte-size",
     .kind = KELP_ARG_I64,
     .offset = AT(response_cache_bytes),
     .value = "BYTES",
     .min = 0,
     .max = INT64_MAX,
     .help = "alias of --cache-config local,size=BYTES"},
    {.name = "cache-directory",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(cache_directory),
     .value = "DIR",
     .choices = "@dir",
     .help = "directory with NAME/libtritoncache_NAME.so (/opt/tritonserver/caches)"},
    {.name = "repoagent-directory",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(repoagent_directory),
     .value = "DIR",
     .choices = "@dir",
     .help = "directory with NAME/libtritonrepoagent_NAME.so (/opt/tritonserver/repoagents)"},
};
#undef AT

const kelp_arg_table kelp_serve_caches_table = {specs, KELP_COUNT(specs)};

/* Converts all "NAME,KEY=VALUE" to one JSON object. INVALID_ARGUMENT if they name different caches.
 */
static kelp_status *set_caches(const kelp_arg_list *list, TRITONSERVER_ServerOptions *options) {
    if (list->count == 0)
        return NULL;
    kelp_str name = {0};
    kelp_buf json, owner;
    kelp_json_writer writer;
    kelp_buf_init(&json, kelp_allocator_system());
    kelp_buf_init(&owner, kelp_allocator_system());
    kelp_json_writer_init(&writer, &json);
    kelp_json_begin_object(&writer);
    kelp_status *status = NULL;
    for (size_t i = 0; i < list->count && status == NULL; i++) {
        const char *text = list->items[i];
        const char *comma = strchr(text, ','), *equals = comma != NULL ? strchr(comma, '=') : NULL;
        kelp_str mine = {text, comma != NULL ? (size_t)(comma - text) : 0};
        if (equals == NULL || mine.length == 0)
            status =
                KELP_ERROR(KELP_INVALID_ARGUMENT,
                           "option '--cache-config': expected NAME,KEY=VALUE, found '%s'", text);
        else if (name.length && !kelp_str_equal(name, mine))
            status = KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "option '--cache-config': multiple cache configurations: '%s' is of a second cache",
                text);
        if (status != NULL)
            break;
        name = mine;
        kelp_buf key;
        kelp_buf_init(&key, kelp_allocator_system());
        kelp_buf_append(&key, comma + 1, (size_t)(equals - comma - 1));
        if (kelp_buf_cstr(&key) != NULL)
            kelp_json_key(&writer, key.data);
        kelp_buf_deinit(&key);
        kelp_json_put_cstr(&writer, equals + 1);
    }
    kelp_json_end_object(&writer);
    kelp_buf_append_str(&owner, name);
    if (status == NULL && (kelp_buf_cstr(&json) == NULL || kelp_buf_cstr(&owner) == NULL))
        status = kelp_status_oom();
    if (status == NULL)
        status = kelp_serve_status(
            TRITONSERVER_ServerOptionsSetCacheConfig(options, owner.data, json.data),
            "option '--cache-config'");
    kelp_buf_deinit(&json);
    kelp_buf_deinit(&owner);
    return status;
}

void kelp_serve_caches_defaults(kelp_serve_caches *o) {
    o->response_cache_bytes = -1;
}

/* Sets the size of the local cache. */
static kelp_status *set_local_cache(const kelp_serve_caches *o,
                                    TRITONSERVER_ServerOptions *options) {
    char json[64];
    if (o->response_cache_bytes < 0)
        return NULL;
    if (o->cache_config.count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "incompatible flags: '--response-cache-byte-size' and '--cache-config'");
    snprintf(json, sizeof json, "{\"size\":\"%lld\"}", (long long)o->response_cache_bytes);
    return kelp_serve_status(TRITONSERVER_ServerOptionsSetCacheConfig(options, "local", json),
                             "option '--response-cache-byte-size'");
}

kelp_status *kelp_serve_caches_apply(const kelp_serve_caches *o,
                                     TRITONSERVER_ServerOptions *options) {
    KELP_TRY(set_caches(&o->cache_config, options));
    KELP_TRY(set_local_cache(o, options));
    if (o->cache_directory != NULL)
        KELP_TRY(kelp_serve_set(
            TRITONSERVER_ServerOptionsSetCacheDirectory(options, o->cache_directory)));
    if (o->repoagent_directory != NULL)
        KELP_TRY(kelp_serve_set(
            TRITONSERVER_ServerOptionsSetRepoAgentDirectory(options, o->repoagent_directory)));
    return NULL;
}
