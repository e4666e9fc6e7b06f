/* SPDX-License-Identifier: Apache-2.0 */
/* Loads shared libraries through the system's loader. */
#include "base/dl.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

kelp_status *kelp_dl_open(const char *path, kelp_dl *out) {
    out->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (out->handle == NULL) {
        const char *reason = dlerror();
        return KELP_ERROR(KELP_NOT_FOUND, "cannot load shared library '%s': %s", path,
                          reason ? reason : "the loader gave no reason");
    }
    return NULL;
}

void kelp_dl_share_own(void) {
    Dl_info info;
    void *address = NULL;
    void (*own)(void) = kelp_dl_share_own;
    memcpy(&address, &own, sizeof address);
    if (dladdr(address, &info) != 0 && info.dli_fname != NULL)
        (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

void kelp_dl_close(kelp_dl *dl) {
    if (dl->handle != NULL)
        (void)dlclose(dl->handle);
    dl->handle = NULL;
}

void *kelp_dl_symbol(const kelp_dl *dl, const char *name) {
    return dl->handle != NULL ? dlsym(dl->handle, name) : NULL;
}

/* Compares the library of the address with the handle, because dlsym also searches dependencies. */
void *kelp_dl_own_symbol(const kelp_dl *dl, const char *name) {
    void *address = kelp_dl_symbol(dl, name);
    if (address == NULL)
        return NULL;
    struct link_map *own = NULL;
    struct link_map *owner = NULL;
    Dl_info info;
    if (dlinfo(dl->handle, RTLD_DI_LINKMAP, &own) != 0 ||
        dladdr1(address, &info, (void **)&owner, RTLD_DL_LINKMAP) == 0)
        return NULL;
    return own == owner ? address : NULL;
}
