/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of classes: a text file for each output, with a line for each class. They are read when
 * the model is loaded, and immutable. An output of an ensemble without a file has the labels that
 * the output of its member had when the ensemble was loaded. */
#include "base/fs.h"
#include "server/ensemble/ensemble.h"
#include "server/model/model.h"

/* The labels of an output, which ensembles share. */
typedef struct kelp_labels {
    atomic_uint refs;
    kelp_buf text;      /* the file, with NUL in place of line ends */
    const char **lines; /* into text */
    size_t count;
    size_t capacity;
} kelp_labels;

static void release_labels(kelp_allocator heap, kelp_labels *labels) {
    if (labels == NULL || atomic_fetch_sub_explicit(&labels->refs, 1, memory_order_acq_rel) != 1)
        return;
    kelp_buf_deinit(&labels->text);
    kelp_free(heap, labels->lines, labels->capacity * sizeof *labels->lines);
    kelp_free(heap, labels, sizeof *labels);
}

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

static kelp_status *create_labels(kelp_allocator heap, const char *directory, const char *file_name,
                                  kelp_labels **out) {
    kelp_labels *labels = NULL;
    KELP_TRY(KELP_NEW(heap, kelp_labels, &labels));
    atomic_store(&labels->refs, 1);
    kelp_buf_init(&labels->text, heap);
    kelp_status *status = read_labels(heap, directory, file_name, labels);
    if (status != NULL)
        release_labels(heap, labels);
    else
        *out = labels;
    return status;
}

static kelp_labels *find_labels(const kelp_model *model, const char *output) {
    for (size_t i = 0; model->labels != NULL && i < model->base.config->output_count; i++)
        if (strcmp(model->base.config->outputs[i].name, output) == 0)
            return model->labels[i];
    return NULL;
}

/* Returns a reference to the labels of the member that produces an output of an ensemble, or NULL.
 */
static kelp_labels *share_labels(const kelp_model *ensemble, const char *output) {
    const char *member_output = NULL;
    kelp_model_base *member = NULL;
    kelp_labels *labels = NULL;
    if (ensemble->ensemble != NULL)
        member = kelp_ensemble_find_producer(ensemble->ensemble, output, &member_output);
    if (member != NULL)
        labels = find_labels((const kelp_model *)member, member_output);
    if (labels != NULL)
        atomic_fetch_add_explicit(&labels->refs, 1, memory_order_relaxed);
    kelp_model_release(member);
    return labels;
}

kelp_status *kelp_model_load_labels(kelp_model *model) {
    kelp_allocator heap = model->base.host->allocator;
    const kelp_model_config *config = model->base.config;
    KELP_TRY(kelp_alloc_zero(heap, config->output_count, sizeof *model->labels,
                             (void **)&model->labels));
    for (size_t i = 0; i < config->output_count; i++) {
        const kelp_config_io *output = &config->outputs[i];
        if (output->label_filename[0])
            KELP_TRY(
                create_labels(heap, model->directory, output->label_filename, &model->labels[i]));
        else
            model->labels[i] = share_labels(model, output->name);
    }
    return NULL;
}

void kelp_model_free_labels(kelp_model *model) {
    kelp_allocator heap = model->base.host->allocator;
    if (model->labels == NULL)
        return;
    for (size_t i = 0; i < model->base.config->output_count; i++)
        release_labels(heap, model->labels[i]);
    kelp_free(heap, model->labels, model->base.config->output_count * sizeof *model->labels);
    model->labels = NULL;
}

const char *kelp_model_label(const kelp_model *model, const char *output, size_t class_index) {
    const kelp_labels *labels = find_labels(model, output);
    return labels != NULL && class_index < labels->count ? labels->lines[class_index] : NULL;
}
