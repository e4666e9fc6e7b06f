/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EncodeImage of com.microsoft.extensions: JPEG through TurboJPEG, with quality 95 and chroma
 * subsampling 4:2:0, PNG through the simplified interface of libpng. Source:
 * onnxruntime-extensions, docs/custom_ops.md; the documentation of TurboJPEG 2.1 and libpng 1.6.
 */
#include "base/assert.h"
#include "cpu/ops/image/decode.h"
#include "runtime/opset/env.h"

#define JPEG_QUALITY 95
#define PIXELS_MAX (1 << 28)

enum { TJ_RGB = 0, TJ_BGR = 1, TJ_SAMPLING_420 = 2, TJ_NO_REALLOC = 1024, TJ_ACCURATE_DCT = 4096 };
enum { PNG_RGB = 2, PNG_BGR = 18, PNG_FAST = 2 };

typedef void *(*tj_init_fn)(void);
typedef unsigned long (*tj_size_fn)(int width, int height, int sampling);
typedef int (*tj_encode_fn)(void *handle, const unsigned char *data, int width, int pitch,
                            int height, int format, unsigned char **inout_buffer,
                            unsigned long *inout_size, int sampling, int quality, int flags);
typedef int (*tj_destroy_fn)(void *handle);
typedef char *(*tj_error_fn)(void *handle);

typedef struct png_view { /* png_image, version 1 */
    void *opaque;
    uint32_t version, width, height, format, flags, colormap_entries, warning_or_error;
    char message[64];
} png_view;
typedef int (*png_write_fn)(png_view *view, void *memory, size_t *inout_size, int to_8_bit,
                            const void *pixels, int32_t stride, const void *colormap);

typedef struct picture {
    const kelp_op_env *env;
    const uint8_t *pixels;
    int32_t width, height;
    bool blue_first;
} picture;

typedef struct encoder_plan {
    uint8_t *data;
    size_t size;
} encoder_plan;

static kelp_status *encode_jpeg(const picture *p, encoder_plan *out) {
    static const char *const names[] = {"tjInitCompress", "tjBufSize", "tjCompress2", "tjDestroy",
                                        "tjGetErrorStr2"};
    kelp_image_fn fn[5];
    KELP_TRY(kelp_image_library(&kelp_lib_turbojpeg, names, 5, fn));
    unsigned long size = ((tj_size_fn)fn[1])(p->width, p->height, TJ_SAMPLING_420);
    out->data = kelp_op_env_alloc(p->env, size);
    if (out->data == NULL)
        return kelp_status_oom();
    void *handle = ((tj_init_fn)fn[0])();
    if (handle == NULL)
        return kelp_status_oom();
    kelp_status *status = NULL;
    if (((tj_encode_fn)fn[2])(handle, p->pixels, p->width, 0, p->height,
                              p->blue_first ? TJ_BGR : TJ_RGB, &out->data, &size, TJ_SAMPLING_420,
                              JPEG_QUALITY, TJ_NO_REALLOC | TJ_ACCURATE_DCT) != 0)
        status = KELP_ERROR(KELP_INTERNAL, "cannot encode a JPEG image: %s",
                            ((tj_error_fn)fn[4])(handle));
    ((tj_destroy_fn)fn[3])(handle);
    out->size = size;
    return status;
}

static kelp_status *encode_png(const picture *p, encoder_plan *out) {
    static const char *const names[] = {"png_image_write_to_memory"};
    kelp_image_fn fn[1];
    png_view view = {.version = 1,
                     .width = (uint32_t)p->width,
                     .height = (uint32_t)p->height,
                     .format = p->blue_first ? PNG_BGR : PNG_RGB,
                     .flags = PNG_FAST};
    KELP_TRY(kelp_image_library(&kelp_lib_png, names, 1, fn));
    /* rows with their filter, and what blocks and chunks add */
    size_t raw = ((size_t)p->width * 3 + 1) * (size_t)p->height;
    out->size = raw + raw / 256 + 4096;
    out->data = kelp_op_env_alloc(p->env, out->size);
    if (out->data == NULL)
        return kelp_status_oom();
    if (((png_write_fn)fn[0])(&view, out->data, &out->size, 0, p->pixels, 0, NULL) != 0)
        return NULL;
    view.message[sizeof view.message - 1] = '\0';
    return KELP_ERROR(KELP_INTERNAL, "cannot encode a PNG image: %s", view.message);
}

static kelp_status *encoder_reshape(const void *state, kelp_op_args *args) {
    encoder_plan *plan = args->plan;
    picture p = {.env = args->env};
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    KELP_TRY(kelp_image_blue_first(args->node, &p.blue_first));
    const kelp_tensor *x = args->inputs[0];
    const char *format = kelp_node_attr_string(args->node, "format", "", NULL);
    bool is_jpeg = strcmp(format, "jpg") == 0;
    if (!is_jpeg && strcmp(format, "png") != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s' (EncodeImage): attribute 'format': expected jpg or png, found "
                          "'%s'",
                          kelp_node_name(args->node), format);
    if (x->dtype != KELP_U8)
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank != 3 || x->shape[2] != 3 || x->shape[0] < 1 || x->shape[1] < 1 ||
        x->shape[0] > PIXELS_MAX / x->shape[1])
        return kelp_ops_bad_shapes(args, x, NULL, "expected an image [H,W,3]");
    if (kelp_ops_defer(args, 0))
        return NULL;
    if (kelp_op_env_is_planning(args->env)) {
        args->deferred = true;
        return NULL;
    }
    p.pixels = x->data;
    p.height = (int32_t)x->shape[0];
    p.width = (int32_t)x->shape[1];
    KELP_TRY(is_jpeg ? encode_jpeg(&p, plan) : encode_png(&p, plan));
    return kelp_ops_set(args, 0, KELP_U8, 1, (const int64_t[]){(int64_t)plan->size});
}

static kelp_status *encoder_invoke(const void *state, kelp_op_args *args) {
    const encoder_plan *plan = args->plan;
    (void)state;
    KELP_ASSERT(kelp_tensor_bytes(args->outputs[0]) == plan->size);
    memcpy(args->outputs[0]->data, plan->data, plan->size);
    return NULL;
}
KELP_KERNEL(EncodeImage, 0, sizeof(encoder_plan), 1, encoder_reshape, encoder_invoke);
