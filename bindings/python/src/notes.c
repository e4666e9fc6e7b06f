/* SPDX-License-Identifier: Apache-2.0 */
#include "notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t kpy_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void kpy_notes_add(void *userp, size_t step, const char *op_type, const char *name,
                   const char *algorithm, uint64_t duration_ns) {
    kpy_notes *notes = userp;
    (void)step;
    if (notes->count == notes->capacity) {
        size_t capacity = notes->capacity ? 2 * notes->capacity : 64;
        kpy_note *more = realloc(notes->items, capacity * sizeof *more);
        if (more == NULL)
            return;
        notes->items = more;
        notes->capacity = capacity;
    }
    kpy_note *note = &notes->items[notes->count++];
    *note = (kpy_note){
        .op_type = op_type, .name = name, .duration_ns = duration_ns, .end_ns = kpy_now_ns()};
    snprintf(note->algorithm, sizeof note->algorithm, "%s", algorithm ? algorithm : "");
}

PyObject *kpy_notes_list(const kpy_notes *notes) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < notes->count; i++) {
        const kpy_note *note = &notes->items[i];
        PyObject *item =
            Py_BuildValue("(sssKK)", note->op_type, note->name, note->algorithm,
                          (unsigned long long)note->duration_ns, (unsigned long long)note->end_ns);
        if (item == NULL || PyList_Append(list, item))
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

void kpy_notes_deinit(kpy_notes *notes) {
    free(notes->items);
    *notes = (kpy_notes){0};
}
