/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts of OCI registries: the files of a manifest's layers, whose annotation
 * org.opencontainers.image.title is their path, as ORAS pushes them. */
#include "base/checked.h"
#include "base/text/json.h"
#include "cli/pull/sha256.h"
#include "cli/pull/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TITLE "org.opencontainers.image.title"
#define UNPACK "io.deis.oras.content.unpack"
#define DIGEST_PREFIX "sha256:"
#define DIGEST_DIGITS 64
#define ACCEPT                                             \
    "Accept: application/vnd.oci.image.manifest.v1+json, " \
    "application/vnd.docker.distribution.manifest.v2+json"

/* A repository of a registry. */
typedef struct oci_repository {
    kelp_pull *pull;
    kelp_buf base;          /* the URL of the repository */
    kelp_buf authorization; /* a header; empty: none */
    kelp_buf user;          /* "NAME:PASSWORD"; empty: none */
    bool basic;             /* `user` is sent with each request */
    const char *reference;  /* a tag or a digest */
} oci_repository;

static void repository_init(oci_repository *repository, kelp_pull *pull) {
    *repository = (oci_repository){.pull = pull};
    kelp_buf_init(&repository->base, kelp_allocator_system());
    kelp_buf_init(&repository->authorization, kelp_allocator_system());
    kelp_buf_init(&repository->user, kelp_allocator_system());
}

static void repository_deinit(oci_repository *repository) {
    kelp_buf_deinit(&repository->base);
    kelp_buf_deinit(&repository->authorization);
    kelp_buf_deinit(&repository->user);
}

/* Splits REGISTRY/REPOSITORY[:TAG|@DIGEST]; the tag is "latest" by default. */
static kelp_status *repository_parse(oci_repository *repository) {
    const kelp_pull *pull = repository->pull;
    const char *address = pull->address;
    const char *name = strchr(address, '/');
    if (name == NULL || name == address || name[1] == '\0')
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "invalid address 'oci://%s': expected "
                          "oci://REGISTRY/REPOSITORY[:TAG|@sha256:DIGEST]",
                          address);
    const char *at = strchr(name, '@');
    const char *colon = at != NULL ? NULL : strrchr(name, ':');
    const char *end = at != NULL ? at : colon != NULL ? colon : name + strlen(name);
    repository->reference = *end != '\0' ? end + 1 : "latest";
    kelp_buf_printf(&repository->base, "%s://%.*s/v2%.*s", pull->plain_http ? "http" : "https",
                    (int)(name - address), address, (int)(end - name), name);
    const char *user = getenv("KELP_REGISTRY_USERNAME");
    const char *password = getenv("KELP_REGISTRY_PASSWORD");
    if (user != NULL && password != NULL)
        kelp_buf_printf(&repository->user, "%s:%s", user, password);
    KELP_TRY(kelp_buf_status(&repository->user));
    return kelp_buf_status(&repository->base);
}

/* ---- authorization ---- */

/* Finds the parameter `name="value"` of a challenge. */
static bool find_parameter(const char *challenge, const char *name, kelp_str *out) {
    char text[32];
    int length = snprintf(text, sizeof text, "%s=\"", name);
    for (const char *at = challenge; (at = strstr(at, text)) != NULL; at += length) {
        if (at != challenge && at[-1] != ' ' && at[-1] != ',')
            continue;
        const char *end = strchr(at + length, '"');
        if (end == NULL)
            return false;
        *out = (kelp_str){at + length, (size_t)(end - at - length)};
        return true;
    }
    return false;
}

/* Sets the header with the token of a response. */
static kelp_status *take_token(oci_repository *repository, kelp_buf *body) {
    kelp_arena arena;
    kelp_json *root;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_status *status =
        kelp_json_parse(&arena, "the token of the registry", body->data, body->length, &root);
    if (status == NULL) {
        const kelp_json *token = kelp_json_get(root, "token");
        if (token == NULL)
            token = kelp_json_get(root, "access_token");
        kelp_buf_clear(&repository->authorization);
        if (token != NULL && token->type == KELP_JSON_STRING)
            kelp_buf_printf(&repository->authorization, "Authorization: Bearer %.*s",
                            KELP_STR_ARG(token->string));
        else
            status = KELP_ERROR(KELP_UNAVAILABLE, "the registry sent no token");
    }
    kelp_arena_deinit(&arena);
    return status != NULL ? status : kelp_buf_status(&repository->authorization);
}

/* Gets a token according to the challenge of the registry. */
static kelp_status *get_token(oci_repository *repository, const char *challenge) {
    kelp_str realm, value;
    kelp_buf url, body;
    long code = 0;
    if (strncasecmp(challenge, "Basic", 5) == 0 && repository->user.length > 0) {
        repository->basic = true;
        return NULL;
    }
    if (strncasecmp(challenge, "Bearer", 6) != 0 || !find_parameter(challenge, "realm", &realm))
        return KELP_ERROR(KELP_PERMISSION_DENIED,
                          "the registry wants a name and a password: expected "
                          "KELP_REGISTRY_USERNAME and KELP_REGISTRY_PASSWORD");
    kelp_buf_init(&url, kelp_allocator_system());
    kelp_buf_init(&body, kelp_allocator_system());
    kelp_buf_append_str(&url, realm);
    char separator = memchr(realm.data, '?', realm.length) != NULL ? '&' : '?';
    static const char *const names[] = {"service", "scope"};
    for (size_t i = 0; i < KELP_COUNT(names); i++) {
        if (!find_parameter(challenge, names[i], &value))
            continue;
        kelp_buf_printf(&url, "%c%s=", separator, names[i]);
        kelp_pull_encode(value.data, value.length, "", &url);
        separator = '&';
    }
    kelp_fetch_request request = {
        .url = kelp_buf_cstr(&url),
        .user = repository->user.length > 0 ? kelp_buf_cstr(&repository->user) : NULL};
    kelp_status *status = kelp_buf_status(&url);
    if (status == NULL)
        status = kelp_fetch_text(repository->pull->fetch, &request, &body, &code, NULL);
    if (status == NULL && code != 200)
        status = kelp_fetch_failure("get a token from", request.url, code, &body);
    if (status == NULL)
        status = take_token(repository, &body);
    kelp_buf_deinit(&url);
    kelp_buf_deinit(&body);
    return status;
}

/* Returns a request without its URL. */
static kelp_fetch_request make_request(oci_repository *repository, const char *accept) {
    kelp_fetch_request request = {.name = NULL};
    size_t count = 0;
    if (accept != NULL)
        request.headers[count++] = accept;
    if (repository->authorization.length > 0)
        request.headers[count++] = kelp_buf_cstr(&repository->authorization);
    if (repository->basic)
        request.user = kelp_buf_cstr(&repository->user);
    return request;
}

/* ---- manifest ---- */

static kelp_status *get_manifest(oci_repository *repository, kelp_buf *out) {
    kelp_buf url, challenge;
    long code = 0;
    kelp_buf_init(&url, kelp_allocator_system());
    kelp_buf_init(&challenge, kelp_allocator_system());
    kelp_buf_printf(&url, "%s/manifests/%s", kelp_buf_cstr(&repository->base),
                    repository->reference);
    kelp_status *status = kelp_buf_status(&url);
    for (int attempt = 0; attempt < 2 && status == NULL; attempt++) {
        kelp_fetch_request request = make_request(repository, ACCEPT);
        request.url = kelp_buf_cstr(&url);
        kelp_buf_clear(out);
        status = kelp_fetch_text(repository->pull->fetch, &request, out, &code, &challenge);
        if (status != NULL || code != 401 || attempt > 0)
            break;
        status = get_token(repository, kelp_buf_cstr(&challenge));
    }
    if (status == NULL && code != 200)
        status = kelp_fetch_failure("read the manifest", kelp_buf_cstr(&url), code, out);
    kelp_buf_deinit(&url);
    kelp_buf_deinit(&challenge);
    return status;
}

static bool is_digest(kelp_str text) {
    size_t prefix = sizeof DIGEST_PREFIX - 1;
    return text.length == prefix + DIGEST_DIGITS && !memcmp(text.data, DIGEST_PREFIX, prefix) &&
           strspn(text.data + prefix, "0123456789abcdefABCDEF") >= DIGEST_DIGITS;
}

/* Compares the digest of the manifest with that of the address and that of --digest. */
static kelp_status *check_manifest(const oci_repository *repository, const kelp_buf *manifest) {
    char found[KELP_SHA256_TEXT_BYTES];
    kelp_sha256 hash;
    kelp_sha256_init(&hash);
    kelp_sha256_update(&hash, manifest->data, manifest->length);
    kelp_sha256_text(&hash, found);
    const char *expected[] = {NULL, kelp_pull_digest(repository->pull)};
    if (!strncmp(repository->reference, DIGEST_PREFIX, sizeof DIGEST_PREFIX - 1))
        expected[0] = repository->reference + sizeof DIGEST_PREFIX - 1;
    for (size_t i = 0; i < KELP_COUNT(expected); i++) {
        if (expected[i] != NULL && strcasecmp(expected[i], found) != 0)
            return KELP_ERROR(KELP_DATA_LOSS,
                              "the manifest has the wrong digest: expected sha256:%s, found "
                              "sha256:%s",
                              expected[i], found);
    }
    return NULL;
}

static kelp_str text_of(const kelp_json *object, const char *key) {
    const kelp_json *found =
        object != NULL && object->type == KELP_JSON_OBJECT ? kelp_json_get(object, key) : NULL;
    return found != NULL && found->type == KELP_JSON_STRING ? found->string : KELP_STR("");
}

/* Downloads the file of a layer. */
static kelp_status *pull_layer(oci_repository *repository, const kelp_json *layer) {
    const kelp_json *annotations =
        layer->type == KELP_JSON_OBJECT ? kelp_json_get(layer, "annotations") : NULL;
    kelp_str digest = text_of(layer, "digest"), title = text_of(annotations, TITLE);
    if (!is_digest(digest))
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "a layer of the manifest has the digest '%.*s': expected sha256",
                          KELP_STR_ARG(digest));
    if (title.length == 0 || kelp_str_equal(text_of(annotations, UNPACK), KELP_STR("true")))
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "layer '%.*s' is an archive: expected files with the annotation " TITLE
                          ", as 'oras push' makes them from files",
                          KELP_STR_ARG(digest));
    kelp_buf url, name;
    kelp_buf_init(&url, kelp_allocator_system());
    kelp_buf_init(&name, kelp_allocator_system());
    kelp_buf_printf(&url, "%s/blobs/%.*s", kelp_buf_cstr(&repository->base), KELP_STR_ARG(digest));
    kelp_buf_append_str(&name, title);
    kelp_status *status = kelp_buf_status(&url);
    if (status == NULL)
        status = kelp_buf_status(&name);
    if (status == NULL && memchr(title.data, '\0', title.length) != NULL)
        status = KELP_ERROR(KELP_INVALID_ARGUMENT, "the title of layer '%.*s' contains NUL",
                            KELP_STR_ARG(digest));
    if (status == NULL) {
        char digits[KELP_SHA256_TEXT_BYTES];
        snprintf(digits, sizeof digits, "%.*s", DIGEST_DIGITS,
                 digest.data + sizeof DIGEST_PREFIX - 1);
        kelp_fetch_request request = make_request(repository, NULL);
        request.url = kelp_buf_cstr(&url);
        request.name = kelp_buf_cstr(&name);
        request.digest = digits;
        status = kelp_pull_take(
            repository->pull,
            &(kelp_pull_item){.request = &request, .path = request.name, .version = digits});
    }
    kelp_buf_deinit(&url);
    kelp_buf_deinit(&name);
    return status;
}

static kelp_status *pull_layers(oci_repository *repository, const kelp_buf *manifest) {
    kelp_arena arena;
    kelp_json *root;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_status *status =
        kelp_json_parse(&arena, "the manifest", manifest->data, manifest->length, &root);
    const kelp_json *layers = NULL;
    if (status == NULL && root->type == KELP_JSON_OBJECT)
        layers = kelp_json_get(root, "layers");
    if (status == NULL && (layers == NULL || layers->type != KELP_JSON_ARRAY || layers->count == 0))
        status = KELP_ERROR(KELP_UNIMPLEMENTED,
                            "the manifest has no layers: expected one of "
                            "application/vnd.oci.image.manifest.v1+json, found '%.*s'",
                            KELP_STR_ARG(text_of(root, "mediaType")));
    for (const kelp_json *layer = status == NULL ? layers->child : NULL;
         layer != NULL && status == NULL; layer = layer->next)
        status = pull_layer(repository, layer);
    kelp_arena_deinit(&arena);
    return status;
}

kelp_status *kelp_pull_oci(kelp_pull *pull) {
    oci_repository repository;
    kelp_buf manifest;
    repository_init(&repository, pull);
    kelp_buf_init(&manifest, kelp_allocator_system());
    kelp_status *status = repository_parse(&repository);
    if (status == NULL)
        status = get_manifest(&repository, &manifest);
    if (status == NULL)
        status = check_manifest(&repository, &manifest);
    if (status == NULL)
        status = pull_layers(&repository, &manifest);
    kelp_buf_deinit(&manifest);
    repository_deinit(&repository);
    return status;
}
