/* SPDX-License-Identifier: Apache-2.0 */
/* kelp pull: downloads models from HTTP servers, S3-compatible stores and OCI registries. */
#include "base/alloc.h"
#include "base/fs.h"
#include "cli/cli.h"
#include "cli/pull/source.h"

#include <stdio.h>
#include <string.h>

#define DIGEST_PREFIX "sha256:"

typedef struct pull_options {
    kelp_arg_list positionals;
    const char *output;
    const char *digest;
    bool plain_http;
    bool quiet;
} pull_options;

#define AT(member) offsetof(pull_options, member)
static const kelp_arg_spec specs[] = {
    {.name = "output",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(output),
     .value = "PATH",
     .choices = "@file",
     .help = "file, or directory of several files; directories are created (the name in the "
             "address, in the current directory)"},
    {.name = "digest",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(digest),
     .value = "sha256:HEX",
     .help = "digest that the file, or the manifest of an OCI artifact, must have; a file that has "
             "it already is not downloaded"},
    {.name = "plain-http",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(plain_http),
     .help = "use HTTP without TLS for an OCI registry"},
    {.name = "quiet", .kind = KELP_OPTION_BOOL, .offset = AT(quiet), .help = "show no progress"},
};
#undef AT

static void defaults(void *userp) {
    pull_options *o = userp;
    o->output = "./";
}

/* Sets the digest of --digest. */
static kelp_status *set_digest(kelp_pull *pull, const char *text) {
    if (kelp_pull_digest(pull) != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "expected one digest: --digest, or #sha256= in the address");
    if (strncmp(text, DIGEST_PREFIX, sizeof DIGEST_PREFIX - 1) != 0 ||
        !kelp_pull_set_digest(pull, text + sizeof DIGEST_PREFIX - 1))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "invalid digest '%s': expected sha256: and 64 hexadecimal digits", text);
    return NULL;
}

/* Downloads a file to its path in the output, or to the output itself, and prints both. */
static kelp_status *take(void *userp, kelp_fetch *fetch, const kelp_pull_item *item) {
    const pull_options *o = userp;
    size_t length = strlen(o->output);
    bool in_directory = !item->is_single || kelp_fs_kind_of(o->output) == KELP_FS_DIRECTORY ||
                        (length > 0 && o->output[length - 1] == '/');
    kelp_fetch_file_info info;
    char *path;
    if (in_directory)
        KELP_TRY(kelp_fs_join(kelp_allocator_system(), o->output, item->path, &path));
    else
        KELP_TRY(kelp_strdup(kelp_allocator_system(), o->output, &path));
    kelp_status *status = kelp_fetch_file(fetch, item->request, path, &info);
    if (status == NULL)
        printf("sha256:%s  %s\n", info.digest, path);
    kelp_free_string(kelp_allocator_system(), path);
    return status;
}

static int run(const kelp_command *command, void *userp) {
    pull_options *o = userp;
    kelp_pull pull = {.address = NULL};
    kelp_status *status = NULL;
    if (o->positionals.count != 1)
        status = KELP_ERROR(KELP_INVALID_ARGUMENT, "expected the address of a model");
    if (status == NULL)
        status = kelp_pull_init(&pull, o->positionals.items[0]);
    if (status == NULL && o->digest != NULL)
        status = set_digest(&pull, o->digest);
    if (status != NULL) {
        kelp_pull_deinit(&pull);
        return kelp_cli_usage(command, status);
    }
    pull.take = take;
    pull.userp = o;
    pull.plain_http = o->plain_http;
    status = kelp_fetch_create(o->quiet, NULL, &pull.fetch);
    if (status == NULL)
        status = kelp_pull_run(&pull);
    kelp_fetch_destroy(pull.fetch);
    kelp_pull_deinit(&pull);
    if (status != NULL)
        return kelp_cli_finish(KELP_ANNOTATE(status, "cannot pull '%s'", o->positionals.items[0]));
    return kelp_cli_finish(
        fflush(stdout) == 0 ? NULL : KELP_ERROR(KELP_UNAVAILABLE, "cannot write to stdout"));
}

const kelp_command kelp_cmd_pull = {
    .name = "pull",
    .summary = "download models from HTTP, S3 and OCI stores",
    .usage = "ADDRESS [options]",
    .details =
        "ADDRESS is http(s)://HOST/PATH, s3://BUCKET/KEY, s3://BUCKET/PREFIX/ with all objects "
        "below it,\nor oci://REGISTRY/REPOSITORY[:TAG|@sha256:DIGEST]. At its end, #sha256=HEX is "
        "the digest of a file.\nAn interrupted download is continued by the same command. Prints "
        "the digest and the path of each\nfile. S3 uses the variables AWS_ACCESS_KEY_ID, "
        "AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION\nand AWS_ENDPOINT_URL; registries "
        "use KELP_REGISTRY_USERNAME and KELP_REGISTRY_PASSWORD. Needs libcurl.",
    .examples =
        "  kelp pull https://models.example/digits.onnx --output models/digits/1/model.onnx\n"
        "  kelp pull s3://models/digits/ --output models/digits\n"
        "  kelp pull oci://registry.example/models/digits:1 --output models/digits",
    .positional = "ADDRESS",
    .max_positionals = 1,
    .tables = KELP_ARG_TABLE(specs),
    .options_bytes = sizeof(pull_options),
    .defaults = defaults,
    .run = run,
};
