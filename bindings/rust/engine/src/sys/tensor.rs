// SPDX-License-Identifier: Apache-2.0
//! Declarations of `include/kelp/tensor.h`, which documents every function. Written by make_sys.py.
use super::*;

pub const KELP_MAX_RANK: u32 = 16;
pub type kelp_dtype = c_uint;
pub const KELP_DTYPE_INVALID: kelp_dtype = 0;
pub const KELP_F32: kelp_dtype = 1;
pub const KELP_U8: kelp_dtype = 2;
pub const KELP_I8: kelp_dtype = 3;
pub const KELP_U16: kelp_dtype = 4;
pub const KELP_I16: kelp_dtype = 5;
pub const KELP_I32: kelp_dtype = 6;
pub const KELP_I64: kelp_dtype = 7;
pub const KELP_STRING: kelp_dtype = 8;
pub const KELP_BOOL: kelp_dtype = 9;
pub const KELP_F16: kelp_dtype = 10;
pub const KELP_F64: kelp_dtype = 11;
pub const KELP_U32: kelp_dtype = 12;
pub const KELP_U64: kelp_dtype = 13;
pub const KELP_C64: kelp_dtype = 14;
pub const KELP_C128: kelp_dtype = 15;
pub const KELP_BF16: kelp_dtype = 16;
pub const KELP_F8E4M3FN: kelp_dtype = 17;
pub const KELP_F8E4M3FNUZ: kelp_dtype = 18;
pub const KELP_F8E5M2: kelp_dtype = 19;
pub const KELP_F8E5M2FNUZ: kelp_dtype = 20;
pub const KELP_U4: kelp_dtype = 21;
pub const KELP_I4: kelp_dtype = 22;
pub const KELP_F4E2M1: kelp_dtype = 23;
pub const KELP_F8E8M0: kelp_dtype = 24;
pub const KELP_U2: kelp_dtype = 25;
pub const KELP_I2: kelp_dtype = 26;
pub const KELP_F6E2M3: kelp_dtype = 27;
pub const KELP_F6E3M2: kelp_dtype = 28;
pub const KELP_LIST: kelp_dtype = 64;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_string {
    pub data: *const c_char,
    pub length: usize,
}
pub type kelp_memory_class = c_uint;
pub const KELP_MEMORY_HOST: kelp_memory_class = 0;
pub const KELP_MEMORY_PINNED: kelp_memory_class = 1;
pub const KELP_MEMORY_DEVICE: kelp_memory_class = 2;
pub const KELP_MEMORY_SHARED: kelp_memory_class = 3;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_tensor {
    pub data: *mut c_void,
    pub dtype: kelp_dtype,
    pub rank: i32,
    pub shape: [i64; KELP_MAX_RANK as usize],
    pub strides: [i64; KELP_MAX_RANK as usize],
    pub device: DLDevice,
    pub flags: u32,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_shape {
    pub rank: i32,
    pub d: [i64; KELP_MAX_RANK as usize],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_weights {
    pub dtype: kelp_dtype,
    pub data: *const c_void,
    pub count: i64,
    pub name: *const c_char,
}

unsafe extern "C" {
    pub fn kelp_dtype_bits(dtype: kelp_dtype) -> u32;
    pub fn kelp_dtype_name(dtype: kelp_dtype) -> *const c_char;
    pub fn kelp_dtype_parse(name: *const c_char) -> kelp_dtype;
    pub fn kelp_dtype_triton_name(dtype: kelp_dtype) -> *const c_char;
    pub fn kelp_tensor_init(
        out: *mut kelp_tensor,
        dtype: kelp_dtype,
        rank: i32,
        shape: *const i64,
        data: *mut c_void,
    ) -> *mut kelp_status;
    pub fn kelp_tensor_elements(tensor: *const kelp_tensor) -> i64;
    pub fn kelp_tensor_bytes(tensor: *const kelp_tensor) -> usize;
    pub fn kelp_dtype_bytes(dtype: kelp_dtype, elements: i64, out_bytes: *mut usize) -> bool;
    pub fn kelp_shape_elements(rank: i32, shape: *const i64, out_elements: *mut i64) -> bool;
    pub fn kelp_tensor_is_compact(tensor: *const kelp_tensor) -> bool;
    pub fn kelp_shape_format(rank: i32, shape: *const i64, buffer: *mut c_char, capacity: usize) -> usize;
}
