/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the status page, which tools/embed_files.py writes as arrays. */
#ifndef KELP_FRONTENDS_PAGE_PAGE_H_
#define KELP_FRONTENDS_PAGE_PAGE_H_

#include <stddef.h>

extern const unsigned char kelp_page_html[];
extern const size_t kelp_page_html_bytes;
extern const unsigned char kelp_page_css[];
extern const size_t kelp_page_css_bytes;
extern const unsigned char kelp_page_js[];
extern const size_t kelp_page_js_bytes;

#endif
