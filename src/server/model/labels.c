/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of classes: a text file for each output, with a line for each class. They are read when
 * the model is loaded, and immutable. */
#include "base/fs.h"
#include "server/model/model.h"

/* The labels of an output. */
typedef struct kelp_labels {
    kelp_buf text;      /* the file, with NUL in place of line ends */
    const char **lines; /* into text */
    size_t count;
    size_t capacity;
} kelp_labels;

static kelp_status *read_labels(kelp_allocator heap, const char *directory, const char *file_name,
                                kelp_labels *out) {
    enum { MAX_FILE_BYTES = 64 << 20 };
    char *path = NULL;
    if (!kelp_fs_is_inside(file_name))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "label file '%s' is outside the model's directory",
                          file_name);
    KELP_TRY(kelp_fs_join(heap, directory, file_name, &path));
    kelp_status *status = kelp_fs_read(path, MAX_FILE_BYTES, &out->text);
    kelp_free_string(heap, path);
    if (status != NULL)
        return status;
    char *text = (char *)(uintptr_t)kelp_buf_cstr(&out->text);
    if (text == NULL)
        return kelp_status_oom();
    while (*text) {
        KELP_TRY(kelp_grow(heap, (void **)&out->lines, &out->capacity, out->count + 1,
                           sizeof *out->lines));
        char *end = strchr(text, '\n');
        char *last = end != NULL ? end : text + strlen(text);
        char *next = end != NULL ? end + 1 : last;
        if (last > text && last[-1] == '\r')
            last--;
        *last = '\0';
        out->lines[out->count++] = text;
        text = next;
    }
    return NULL;
}

kelp_status *kelp_model_load_labels(kelp_model *model) {
    kelp_allocator heap = model->base.host->allocator;
    const kelp_model_config *config = model->base.config;
    for (size_t i = 0; i < config->output_count; i++) {
        if (!config->outputs[i].label_filename[0])
            continue;
        if (model->labels == NULL) {
            KELP_TRY(kelp_alloc_zero(heap, config->output_count, sizeof *model->labels,
                                     (void **)&model->labels));
            for (size_t k = 0; k < config->output_count; k++)
                kelp_buf_init(&model->labels[k].text, heap);
        }
        KELP_TRY(read_labels(heap, model->directory, config->outputs[i].label_filename,
                             &model->labels[i]));
    }
    return NULL;
}

void kelp_model_free_labels(kelp_model *model) {
    kelp_allocator heap = model->base.host->allocator;
    if (model->labels == NULL)
        return;
    for (size_t i = 0; i < model->base.config->output_count; i++) {
        kelp_labels *labels = &model->labels[i];
        kelp_buf_deinit(&labels->text);
        kelp_free(heap, labels->lines, labels->capacity * sizeof *labels->lines);
    }
    kelp_free(heap, model->labels, model->base.config->output_count * sizeof *model->labels);
    model->labels = NULL;
}

const char *kelp_model_label(const kelp_model *model, const char *output, size_t class_index) {
    for (size_t i = 0; model->labels != NULL && i < model->base.config->output_count; i++)
        if (strcmp(model->base.config->outputs[i].name, output) == 0)
            return class_index < model->labels[i].count ? model->labels[i].lines[class_index]
                                                        : NULL;
    return NULL;
}
