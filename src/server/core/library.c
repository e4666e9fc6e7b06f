/* SPDX-License-Identifier: Apache-2.0 */
/* Opening shared libraries and finding their entry points. */
#include "server/core/library.h"

#include "base/assert.h"
#include "base/dl.h"
#include "base/fs.h"

#include <string.h>

kelp_status *kelp_library_open(const char *path, const char *kind,
                               const kelp_entry_point *entry_points, size_t count, void *object) {
    kelp_dl library;
    KELP_ASSERT(path[0] != '\0'); /* dlopen("") would open the program itself */
    KELP_TRY(kelp_dl_open(path, &library));
    for (size_t i = 0; i < count; i++) {
        void *address = kelp_dl_own_symbol(&library, entry_points[i].symbol);
        if (address == NULL && entry_points[i].required)
            return KELP_ERROR(KELP_NOT_FOUND, "'%s' is not a %s: it has no %s", path, kind,
                              entry_points[i].symbol);
        /* ISO C does not convert object pointers to function pointers; POSIX guarantees that their
         * representations are the same. */
        memcpy((char *)object + entry_points[i].offset, &address, sizeof address);
    }
    return NULL;
}

kelp_status *kelp_library_refers(const char *path, const char *const *symbols, size_t count,
                                 bool *out_found) {
    kelp_mapping file;
    KELP_TRY(kelp_fs_map(path, &file));
    for (size_t i = 0; i < count; i++)
        out_found[i] = file.data != NULL &&
                       memmem(file.data, file.size_bytes, symbols[i], strlen(symbols[i])) != NULL;
    kelp_fs_unmap(&file);
    return NULL;
}
