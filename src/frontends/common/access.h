/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may use which part of a server: Triton's restricted categories, each with a header that
 * requests must have, and bearer tokens (RFC 6750) from a file. All protocols call
 * kelp_access_check with the category of a request.
 *
 * Rules are added before the first check; checks are thread-safe. Values are compared in a time
 * that does not depend on where they differ.
 */
#ifndef KELP_FRONTENDS_COMMON_ACCESS_H_
#define KELP_FRONTENDS_COMMON_ACCESS_H_

#include "base/log.h"
#include "base/str.h"

#include <kelp/allocator.h>

/* Triton's categories of requests. */
typedef enum kelp_access_category {
    KELP_ACCESS_HEALTH,
    KELP_ACCESS_METADATA,
    KELP_ACCESS_INFERENCE,
    KELP_ACCESS_SHARED_MEMORY,
    KELP_ACCESS_MODEL_CONFIG,
    KELP_ACCESS_MODEL_REPOSITORY,
    KELP_ACCESS_STATISTICS,
    KELP_ACCESS_TRACE,
    KELP_ACCESS_LOGGING,
    KELP_ACCESS_OTHER, /* not restricted by header, such as metrics; tokens apply */
    KELP_ACCESS_PUBLIC /* never restricted: files that contain nothing of the server */
} kelp_access_category;

typedef struct kelp_access kelp_access;

/* Returns the value of the first header or metadata of a name (in lower case), or NULL. */
typedef const kelp_str *(*kelp_access_find_fn)(const void *userp, const char *name);

/* Creates rules that permit everything. `logger` is borrowed and may be NULL. */
kelp_status *kelp_access_create(kelp_allocator allocator, const kelp_logger *logger,
                                kelp_access **out) KELP_MUST_USE;
void kelp_access_destroy(kelp_access *access); /* NULL is allowed */

/* Adds "CATEGORY[,CATEGORY]…:HEADER=VALUE": requests of the categories must have the header
 * PREFIX HEADER with this value. INVALID_ARGUMENT for another form, an unknown category, or one
 * that has a rule already. `noun` ("API", "protocol") and `prefix` ("" or that of gRPC metadata)
 * are literals. */
kelp_status *kelp_access_restrict(kelp_access *access, const char *rule, const char *noun,
                                  const char *prefix) KELP_MUST_USE;
/* Requires "Authorization: Bearer TOKEN" with a token of the file: one for each line, without blank
 * lines and those that start with '#'. The file is read again, at most once a second, after it
 * changed; if that fails, the previous tokens remain. With `health_exempt`, requests of the
 * category HEALTH need no token. Fails if the file cannot be read or has no token. */
kelp_status *kelp_access_set_token_file(kelp_access *access, const char *path,
                                        bool health_exempt) KELP_MUST_USE;

/* What requests of a category need. */
typedef struct kelp_access_needs {
    bool token;         /* a bearer token */
    const char *header; /* a header with a value, or NULL; lives as long as the rules */
} kelp_access_needs;
/* `access` may be NULL. */
kelp_access_needs kelp_access_needs_of(const kelp_access *access, kelp_access_category category);

/* Returns true if a check may reject a request. */
bool kelp_access_is_limited(const kelp_access *access); /* false for NULL */
/* Checks a request. PERMISSION_DENIED, with Triton's text, if the header of its category is missing
 * or differs; UNAUTHENTICATED if the token does. `access` may be NULL. */
kelp_status *kelp_access_check(kelp_access *access, kelp_access_category category,
                               kelp_access_find_fn find, const void *userp) KELP_MUST_USE;

#endif
