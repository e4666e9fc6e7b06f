/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/trace/setting.h"

#include "base/alloc.h"
#include "base/assert.h"

/* Collected text that is written before the setting ends, if the traces have one file. */
#define CHUNK_BYTES ((size_t)1024 * 1024)

kelp_status *kelp_trace_setting_create(kelp_allocator allocator, kelp_trace_writer *writer,
                                       const kelp_trace_values *values, kelp_trace_setting **out) {
    kelp_trace_setting *setting;
    KELP_TRY(KELP_NEW(allocator, kelp_trace_setting, &setting));
    setting->allocator = allocator;
    setting->writer = writer;
    setting->refs = 1;
    setting->values = *values;
    kelp_buf_init(&setting->text, allocator);
    pthread_mutex_init(&setting->lock, NULL);
    *out = setting;
    return NULL;
}

void kelp_trace_setting_retain(kelp_trace_setting *setting) {
    pthread_mutex_lock(&setting->lock);
    KELP_ASSERT(setting->refs > 0);
    setting->refs++;
    pthread_mutex_unlock(&setting->lock);
}

/* Queues the collected text for the writer. The lock is held. */
static void flush(kelp_trace_setting *setting, bool indexed) {
    if (setting->text.length > 0 && !setting->text.failed)
        kelp_trace_writer_put(setting->writer, (kelp_str){setting->text.data, setting->text.length},
                              indexed);
    kelp_buf_clear(&setting->text);
    setting->collected = 0;
}

void kelp_trace_setting_release(kelp_trace_setting *setting) {
    if (setting == NULL)
        return;
    pthread_mutex_lock(&setting->lock);
    KELP_ASSERT(setting->refs > 0);
    bool last = --setting->refs == 0;
    pthread_mutex_unlock(&setting->lock);
    if (!last)
        return;
    if (setting->writer != NULL)
        flush(setting, setting->values.log_frequency != 0);
    kelp_buf_deinit(&setting->text);
    pthread_mutex_destroy(&setting->lock);
    kelp_free(setting->allocator, setting, sizeof *setting);
}

bool kelp_trace_setting_sample(kelp_trace_setting *setting, kelp_trace_decision decision) {
    kelp_trace_values *values = &setting->values;
    pthread_mutex_lock(&setting->lock);
    bool hit = values->level != 0 && values->rate != 0 && values->count != 0 &&
               ++setting->seen % values->rate == 0 && decision != KELP_TRACE_NEVER;
    if (hit)
        values->count -= values->count > 0 ? 1 : 0;
    bool sampled = hit || (decision == KELP_TRACE_ALWAYS && values->level != 0);
    setting->open += sampled ? 1 : 0;
    pthread_mutex_unlock(&setting->lock);
    return sampled;
}

void kelp_trace_setting_collect(kelp_trace_setting *setting, kelp_str record) {
    pthread_mutex_lock(&setting->lock);
    KELP_ASSERT(setting->open > 0);
    setting->open--;
    if (record.length > 0) {
        if (setting->text.length > 0)
            kelp_buf_append_char(&setting->text, ',');
        kelp_buf_append_str(&setting->text, record);
        setting->collected++;
    }
    uint32_t frequency = setting->values.log_frequency;
    if ((frequency != 0 && setting->collected >= frequency) ||
        (setting->values.count == 0 && setting->open == 0))
        flush(setting, true);
    else if (frequency == 0 && setting->values.count < 0 && setting->text.length > CHUNK_BYTES)
        flush(setting, false);
    pthread_mutex_unlock(&setting->lock);
}

kelp_trace_values kelp_trace_setting_values(kelp_trace_setting *setting) {
    pthread_mutex_lock(&setting->lock);
    kelp_trace_values values = setting->values;
    pthread_mutex_unlock(&setting->lock);
    return values;
}
