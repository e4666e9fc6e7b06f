/* SPDX-License-Identifier: Apache-2.0 */
/* What dl_library.c depends on. */
int test_dl_inherited(void);
int test_dl_inherited(void) {
    return 7;
}
