/* SPDX-License-Identifier: Apache-2.0 */
/* A library with a symbol of its own and one that only its dependency has. */
int test_dl_inherited(void);
int test_dl_own(void);
int test_dl_own(void) {
    return test_dl_inherited() + 1;
}
