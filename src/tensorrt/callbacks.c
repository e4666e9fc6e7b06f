/* SPDX-License-Identifier: Apache-2.0 */
/* Method tables of the objects in callbacks.h. The first parameter `self` is the object, whose
 * first member is the table. Enumerations are 32-bit integers. */
#include "tensorrt/callbacks.h"

#include "base/assert.h"

int32_t trt_callback_language(const void *self) {
    (void)self;
    return TRT_API_LANGUAGE_CPP;
}

void trt_callback_destroy(void *self) {
    (void)self;
}

#define INFO(name, interface)                                 \
    static trt_interface_info name##_info(const void *self) { \
        (void)self;                                           \
        return (trt_interface_info){interface};               \
    }
INFO(progress, TRT_INTERFACE_PROGRESS_MONITOR)
INFO(layer_times, TRT_INTERFACE_PROFILER)
INFO(output_memory, TRT_INTERFACE_OUTPUT_ALLOCATOR)
INFO(device_memory, TRT_INTERFACE_GPU_ASYNC_ALLOCATOR)
INFO(writer, TRT_INTERFACE_STREAM_WRITER)
INFO(reader, TRT_INTERFACE_STREAM_READER_V2)
INFO(debugger, TRT_INTERFACE_DEBUG_LISTENER)

/* ---- progress ---- */
static const void *const progress_table[2 + TRT_SLOTS_PROGRESS_MONITOR];

static void progress_start(void *self, const char *phase, const char *parent, int32_t steps) {
    trt_progress *p = self;
    KELP_ASSERT(p->table == progress_table + 2);
    if (p->start != NULL)
        p->start(p->userp, phase, parent, steps);
}

static bool progress_step(void *self, const char *phase, int32_t step) {
    trt_progress *p = self;
    if (atomic_load(&p->cancelled))
        return false;
    if (p->step == NULL || p->step(p->userp, phase, step))
        return true;
    atomic_store(&p->cancelled, true);
    return false;
}

static void progress_finish(void *self, const char *phase) {
    trt_progress *p = self;
    if (p->finish != NULL)
        p->finish(p->userp, phase);
}

static const void *const progress_table[2 + TRT_SLOTS_PROGRESS_MONITOR] = {
    TRT_CALLBACK_HEAD(PROGRESS_MONITOR, progress_info),
    [2 + TRT_SLOT_PROGRESS_MONITOR_PHASE_START] = TRT_ADDRESS(progress_start),
    [2 + TRT_SLOT_PROGRESS_MONITOR_STEP_COMPLETE] = TRT_ADDRESS(progress_step),
    [2 + TRT_SLOT_PROGRESS_MONITOR_PHASE_FINISH] = TRT_ADDRESS(progress_finish)};

void trt_progress_init(trt_progress *progress) {
    *progress = (trt_progress){.table = progress_table + 2};
    atomic_init(&progress->cancelled, false);
}

/* ---- time by layer ---- */
static void layer_times_report(void *self, const char *layer, float milliseconds) {
    trt_layer_times *t = self;
    if (t->report != NULL)
        t->report(t->userp, layer, milliseconds);
}

static const void *const layer_times_table[2 + TRT_SLOTS_PROFILER] = {
    TRT_CALLBACK_HEAD(PROFILER, layer_times_info),
    [2 + TRT_SLOT_PROFILER_REPORT_LAYER_TIME] = TRT_ADDRESS(layer_times_report)};

void trt_layer_times_init(trt_layer_times *times) {
    *times = (trt_layer_times){.table = layer_times_table + 2};
}

/* ---- output memory ---- */
static void *output_reallocate_async(void *self, const char *tensor, void *current, uint64_t size,
                                     uint64_t alignment, trt_stream stream) {
    trt_output_memory *o = self;
    return o->reallocate != NULL ? o->reallocate(o->userp, tensor, current, size, alignment, stream)
                                 : NULL;
}

static void *output_reallocate(void *self, const char *tensor, void *current, uint64_t size,
                               uint64_t alignment) {
    return output_reallocate_async(self, tensor, current, size, alignment, NULL);
}

static void output_shape(void *self, const char *tensor, const trt_dims *dims) {
    trt_output_memory *o = self;
    if (o->shape != NULL)
        o->shape(o->userp, tensor, dims);
}

static const void *const rtx_output_table[2 + TRT_SLOTS_RTX_OUTPUT_ALLOCATOR] = {
    TRT_CALLBACK_HEAD(RTX_OUTPUT_ALLOCATOR, output_memory_info),
    [2 + TRT_SLOT_RTX_OUTPUT_ALLOCATOR_REALLOCATE_OUTPUT_ASYNC] =
        TRT_ADDRESS(output_reallocate_async),
    [2 + TRT_SLOT_RTX_OUTPUT_ALLOCATOR_NOTIFY_SHAPE] = TRT_ADDRESS(output_shape)};

static const void *const enterprise_output_table[2 + TRT_SLOTS_ENTERPRISE_OUTPUT_ALLOCATOR] = {
    TRT_CALLBACK_HEAD(ENTERPRISE_OUTPUT_ALLOCATOR, output_memory_info),
    [2 + TRT_SLOT_ENTERPRISE_OUTPUT_ALLOCATOR_REALLOCATE_OUTPUT] = TRT_ADDRESS(output_reallocate),
    [2 + TRT_SLOT_ENTERPRISE_OUTPUT_ALLOCATOR_REALLOCATE_OUTPUT_ASYNC] =
        TRT_ADDRESS(output_reallocate_async),
    [2 + TRT_SLOT_ENTERPRISE_OUTPUT_ALLOCATOR_NOTIFY_SHAPE] = TRT_ADDRESS(output_shape)};

void trt_output_memory_init(const trt_methods *m, trt_output_memory *memory) {
    *memory = (trt_output_memory){
        .table = (m->flavor == TRT_FLAVOR_RTX ? rtx_output_table : enterprise_output_table) + 2};
}

/* ---- device memory ---- */
static void *device_allocate_async(void *self, uint64_t size, uint64_t alignment, uint32_t flags,
                                   trt_stream stream) {
    (void)flags; /* resizable or not: device_reallocate always fails */
    trt_device_memory *d = self;
    return d->allocate != NULL ? d->allocate(d->userp, size, alignment, stream) : NULL;
}

static void *device_allocate(void *self, uint64_t size, uint64_t alignment, uint32_t flags) {
    return device_allocate_async(self, size, alignment, flags, NULL);
}

static void *device_reallocate(void *self, void *pointer, uint64_t alignment, uint64_t size) {
    (void)self, (void)pointer, (void)alignment, (void)size;
    return NULL;
}

static bool device_free_async(void *self, void *pointer, trt_stream stream) {
    trt_device_memory *d = self;
    return pointer == NULL || (d->free != NULL && d->free(d->userp, pointer, stream));
}

static bool device_free(void *self, void *pointer) {
    return device_free_async(self, pointer, NULL);
}

static const void *const device_memory_table[2 + TRT_SLOTS_GPU_ALLOCATOR] = {
    TRT_CALLBACK_HEAD(GPU_ALLOCATOR, device_memory_info),
    [2 + TRT_SLOT_GPU_ALLOCATOR_ALLOCATE] = TRT_ADDRESS(device_allocate),
    [2 + TRT_SLOT_GPU_ALLOCATOR_REALLOCATE] = TRT_ADDRESS(device_reallocate),
    [2 + TRT_SLOT_GPU_ALLOCATOR_DEALLOCATE] = TRT_ADDRESS(device_free),
    [2 + TRT_SLOT_GPU_ALLOCATOR_ALLOCATE_ASYNC] = TRT_ADDRESS(device_allocate_async),
    [2 + TRT_SLOT_GPU_ALLOCATOR_DEALLOCATE_ASYNC] = TRT_ADDRESS(device_free_async)};

void trt_device_memory_init(trt_device_memory *memory) {
    *memory = (trt_device_memory){.table = device_memory_table + 2};
}

/* ---- streams ---- */
static int64_t writer_write(void *self, const void *data, int64_t size) {
    trt_writer *w = self;
    return w->write != NULL ? w->write(w->userp, data, size) : 0;
}

static const void *const writer_table[2 + TRT_SLOTS_STREAM_WRITER] = {
    TRT_CALLBACK_HEAD(STREAM_WRITER, writer_info),
    [2 + TRT_SLOT_STREAM_WRITER_WRITE] = TRT_ADDRESS(writer_write)};

void trt_writer_init(trt_writer *writer) {
    *writer = (trt_writer){.table = writer_table + 2};
}

static int64_t reader_read(void *self, void *out, int64_t size, trt_stream stream) {
    trt_reader *r = self;
    return r->read != NULL ? r->read(r->userp, out, size, stream) : 0;
}

static bool reader_seek(void *self, int64_t offset, trt_seek_position from) {
    trt_reader *r = self;
    return r->seek != NULL && r->seek(r->userp, offset, from);
}

static const void *const reader_table[2 + TRT_SLOTS_STREAM_READER_V2] = {
    TRT_CALLBACK_HEAD(STREAM_READER_V2, reader_info),
    [2 + TRT_SLOT_STREAM_READER_V2_READ] = TRT_ADDRESS(reader_read),
    [2 + TRT_SLOT_STREAM_READER_V2_SEEK] = TRT_ADDRESS(reader_seek)};

void trt_reader_init(trt_reader *reader) {
    *reader = (trt_reader){.table = reader_table + 2};
}

/* ---- debugging ---- */
static bool debugger_tensor(void *self, const void *data, trt_tensor_location location,
                            trt_data_type type, const trt_dims *dims, const char *name,
                            trt_stream stream) {
    trt_debugger *d = self;
    return d->tensor == NULL || d->tensor(d->userp, name, data, location, type, dims, stream);
}

static const void *const debugger_table[2 + TRT_SLOTS_DEBUG_LISTENER] = {
    TRT_CALLBACK_HEAD(DEBUG_LISTENER, debugger_info),
    [2 + TRT_SLOT_DEBUG_LISTENER_PROCESS_DEBUG_TENSOR] = TRT_ADDRESS(debugger_tensor)};

void trt_debugger_init(trt_debugger *debugger) {
    *debugger = (trt_debugger){.table = debugger_table + 2};
}
