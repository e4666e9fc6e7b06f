/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards headers of requests to models as request parameters. */
#ifndef KELP_FRONTENDS_COMMON_FORWARD_H_
#define KELP_FRONTENDS_COMMON_FORWARD_H_

#include "base/arena.h"
#include "base/str.h"

typedef struct kelp_forward kelp_forward;

/* Compiles a POSIX extended regular expression, which matches any part of a name, in any case, or
 * in its own case after "(?-i)". INVALID_ARGUMENT if it is malformed. */
kelp_status *kelp_forward_create(kelp_allocator allocator, const char *pattern,
                                 kelp_forward **out) KELP_MUST_USE;
void kelp_forward_destroy(kelp_forward *forward); /* NULL is allowed */

/* Decides about a header. Stores copies of its name and value, which the arena owns, if it is
 * forwarded; otherwise NULL. INVALID_ARGUMENT for a matching name that Triton reserves and for text
 * that is not UTF-8. Thread-safe. */
kelp_status *kelp_forward_header(const kelp_forward *forward, kelp_arena *arena, kelp_str name,
                                 kelp_str value, const char **out_name,
                                 const char **out_value) KELP_MUST_USE;

#endif
