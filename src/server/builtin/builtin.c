/* SPDX-License-Identifier: Apache-2.0 */
/* The table of built-in backends. */
#include "server/builtin/builtin.h"

#include "base/assert.h"
#include "base/checked.h"

#include <string.h>

#ifdef KELP_HAVE_BUILTIN_KELP
extern const kelp_builtin_backend kelp_builtin_kelp; /* kelp.c */
#endif

static const kelp_builtin_backend *const table[] = {
#ifdef KELP_HAVE_BUILTIN_KELP
    &kelp_builtin_kelp,
#endif
    NULL};

const kelp_builtin_backend *const *kelp_builtin_backends(size_t *out_count) {
    *out_count = KELP_COUNT(table) - 1;
    return table;
}

const kelp_builtin_backend *kelp_builtin_find(const char *name) {
    size_t count;
    const kelp_builtin_backend *const *all = kelp_builtin_backends(&count);
    for (size_t i = 0; i < count; i++) {
        KELP_ASSERT(all[i]->name != NULL && all[i]->execute != NULL);
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
        for (const char *const *alias = all[i]->aliases; alias != NULL && *alias != NULL; alias++)
            if (strcmp(*alias, name) == 0)
                return all[i];
    }
    return NULL;
}
