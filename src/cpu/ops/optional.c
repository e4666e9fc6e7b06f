/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the optional libraries, and their states. */
#include "cpu/ops/optional.h"

#include "base/checked.h"

#include <stdio.h>
#include <string.h>

static const char decoders[] = "ImageDecoder, DecodeImage";
static const char both[] = "ImageDecoder, DecodeImage, EncodeImage";

const kelp_optional_library kelp_lib_turbojpeg = {"libturbojpeg.so.0", "libturbojpeg0",
                                                  "JPEG images", both};
const kelp_optional_library kelp_lib_png = {"libpng16.so.16", "libpng16-16", "PNG images", both};
const kelp_optional_library kelp_lib_webp = {"libwebp.so.7", "libwebp7", "WebP images", decoders};
const kelp_optional_library kelp_lib_tiff = {"libtiff.so.6", "libtiff6", "TIFF images", decoders};
const kelp_optional_library kelp_lib_openjpeg = {"libopenjp2.so.7", "libopenjp2-7",
                                                 "JPEG 2000 images", decoders};
const kelp_optional_library kelp_lib_pcre2 = {"libpcre2-8.so.0", "libpcre2-8-0",
                                              "regular expressions",
                                              "RegexFullMatch, Tokenizer, String*Regex*"};

static const kelp_optional_library *const libraries[] = {&kelp_lib_turbojpeg, &kelp_lib_png,
                                                         &kelp_lib_webp,      &kelp_lib_tiff,
                                                         &kelp_lib_openjpeg,  &kelp_lib_pcre2};

kelp_status *kelp_optional_open(const kelp_optional_library *library, kelp_dl *out) {
    kelp_status *status = kelp_dl_open(library->file, out);
    return status == NULL ? NULL
                          : KELP_ANNOTATE(status, "%s need the library '%s', of Debian package %s",
                                          library->subject, library->file, library->package);
}

void kelp_optional_describe(void (*write)(void *userp, const char *text, size_t length),
                            void *userp) {
    for (size_t i = 0; i < KELP_COUNT(libraries); i++) {
        const kelp_optional_library *library = libraries[i];
        kelp_dl dl;
        char line[256];
        kelp_status *status = kelp_dl_open(library->file, &dl);
        snprintf(line, sizeof line, "%-18s %-8s %s: %s%s%s\n", library->file,
                 status == NULL ? "found" : "missing", library->subject, library->operators,
                 status == NULL ? "" : "; install Debian's ",
                 status == NULL ? "" : library->package);
        if (status == NULL)
            kelp_dl_close(&dl);
        kelp_status_free(status);
        write(userp, line, strlen(line));
    }
}
