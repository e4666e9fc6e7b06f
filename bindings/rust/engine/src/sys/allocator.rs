// SPDX-License-Identifier: Apache-2.0
//! Declarations of `include/kelp/allocator.h`, which documents every function. Written by make_sys.py.
use super::*;

pub type kelp_realloc_fn = Option<
    unsafe extern "C" fn(
        userp: *mut c_void,
        pointer: *mut c_void,
        old_size_bytes: usize,
        new_size_bytes: usize,
        alignment: usize,
    ) -> *mut c_void,
>;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_allocator {
    pub realloc: kelp_realloc_fn,
    pub userp: *mut c_void,
}

unsafe extern "C" {
    pub fn kelp_allocator_system() -> kelp_allocator;
}
