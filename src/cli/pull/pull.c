/* SPDX-License-Identifier: Apache-2.0 */
/* kelp pull: downloads models from HTTP servers, S3-compatible stores and OCI registries. */
#include "base/checked.h"
#include "cli/cli.h"
#include "cli/pull/source.h"

#include <stdio.h>
#include <string.h>

#define DIGEST_PREFIX "sha256:"
#define DIGEST_DIGITS 64

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

static const struct {
    const char *scheme;
    kelp_status *(*pull)(kelp_pull *pull);
} stores[] = {{"http", kelp_pull_http},
              {"https", kelp_pull_http},
              {"s3", kelp_pull_s3},
              {"oci", kelp_pull_oci}};

/* Returns the store of an address and the address without its scheme. */
static kelp_status *find_store(const char *address, size_t *out_store, const char **out_rest) {
    static const char separator[] = "://";
    const char *end = strstr(address, separator);
    for (size_t i = 0; end != NULL && i < KELP_COUNT(stores); i++) {
        const char *rest = end + sizeof separator - 1;
        if (strlen(stores[i].scheme) == (size_t)(end - address) &&
            !strncmp(address, stores[i].scheme, (size_t)(end - address)) && *rest != '\0') {
            *out_store = i;
            *out_rest = rest;
            return NULL;
        }
    }
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "invalid address '%s': expected http://, https://, s3:// or oci://", address);
}

/* Returns the digits of --digest. */
static kelp_status *parse_digest(const char *text, const char **out) {
    const char *digits = text + sizeof DIGEST_PREFIX - 1;
    if (strncmp(text, DIGEST_PREFIX, sizeof DIGEST_PREFIX - 1) != 0 ||
        strlen(digits) != DIGEST_DIGITS ||
        strspn(digits, "0123456789abcdefABCDEF") != DIGEST_DIGITS)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "invalid digest '%s': expected sha256: and 64 hexadecimal digits", text);
    *out = digits;
    return NULL;
}

static int run(const kelp_command *command, void *userp) {
    const pull_options *o = userp;
    kelp_pull pull = {.output = o->output, .plain_http = o->plain_http};
    size_t store = 0;
    kelp_status *status = NULL;
    if (o->positionals.count != 1)
        status = KELP_ERROR(KELP_INVALID_ARGUMENT, "expected the address of a model");
    if (status == NULL)
        status = find_store(o->positionals.items[0], &store, &pull.address);
    if (status == NULL && o->digest != NULL)
        status = parse_digest(o->digest, &pull.digest);
    if (status != NULL)
        return kelp_cli_usage(command, status);
    pull.scheme = stores[store].scheme;
    status = kelp_fetch_create(o->quiet, &pull.fetch);
    if (status == NULL)
        status = stores[store].pull(&pull);
    kelp_fetch_destroy(pull.fetch);
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
        "below it,\nor oci://REGISTRY/REPOSITORY[:TAG|@sha256:DIGEST]. An interrupted download is "
        "continued by the\nsame command. Prints the digest and the path of each file. S3 uses the "
        "variables AWS_ACCESS_KEY_ID,\nAWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION and "
        "AWS_ENDPOINT_URL; registries use\nKELP_REGISTRY_USERNAME and KELP_REGISTRY_PASSWORD. "
        "Needs libcurl.",
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
