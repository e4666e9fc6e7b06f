/* SPDX-License-Identifier: Apache-2.0 */
/* A shared library made of archives needs one source of its own. */
typedef int kelp_empty_translation_unit;
