/* SPDX-License-Identifier: Apache-2.0 */
/* The core lists what it and the front-ends of Triton provide. */
#include "frontends/common/metadata.h"

#include "base/text/json.h"
#include "frontends/common/status.h"

/* Returns false for an extension of the core that the front-end does not provide. */
static bool is_provided(const kelp_v2_extensions *extensions, kelp_str name) {
    if (kelp_str_is(name, "system_shared_memory"))
        return extensions->shm != NULL && kelp_shm_allows_clients(extensions->shm);
    if (kelp_str_is(name, "logging"))
        return extensions->logging;
    if (kelp_str_is(name, "trace"))
        return extensions->trace;
    return true;
}

static void put_extensions(kelp_json_writer *writer, const kelp_json *listed,
                           const kelp_v2_extensions *extensions) {
    kelp_json_begin_array(writer);
    for (const kelp_json *item = listed->child; item != NULL; item = item->next)
        if (is_provided(extensions, item->string))
            kelp_json_put_string(writer, item->string);
    if (extensions->generate)
        kelp_json_put_cstr(writer, "generate");
    kelp_json_end_array(writer);
}

/* Copies the metadata; only the list of extensions changes. */
static kelp_status *put(kelp_str text, const kelp_v2_extensions *extensions, kelp_arena *arena,
                        kelp_buf *out) {
    kelp_json *metadata;
    kelp_json_writer writer;
    KELP_TRY(kelp_json_parse(arena, "metadata", text.data, text.length, &metadata));
    kelp_json_writer_init(&writer, out);
    kelp_json_begin_object(&writer);
    kelp_json_key(&writer, "name");
    kelp_json_put_string(&writer, kelp_json_get(metadata, "name")->string);
    kelp_json_key(&writer, "version");
    kelp_json_put_string(&writer, kelp_json_get(metadata, "version")->string);
    kelp_json_key(&writer, "extensions");
    put_extensions(&writer, kelp_json_get(metadata, "extensions"), extensions);
    kelp_json_end_object(&writer);
    return kelp_buf_status(out);
}

kelp_status *kelp_v2_put_metadata(TRITONSERVER_Server *core, const kelp_v2_extensions *extensions,
                                  kelp_arena *arena, kelp_buf *out) {
    TRITONSERVER_Message *message;
    const char *text = NULL;
    size_t length = 0;
    KELP_TRY(kelp_v2_status(TRITONSERVER_ServerMetadata(core, &message)));
    kelp_status *status =
        kelp_v2_status(TRITONSERVER_MessageSerializeToJson(message, &text, &length));
    if (status == NULL)
        status = put((kelp_str){text, length}, extensions, arena, out);
    kelp_status_free(kelp_v2_status(TRITONSERVER_MessageDelete(message)));
    return status;
}
