// SPDX-License-Identifier: Apache-2.0
//! Declarations of `include/triton/core/tritoncache.h`, which documents every function. Written by make_sys.py.
use super::*;

pub const TRITONCACHE_API_VERSION_MAJOR: u32 = 0;
pub const TRITONCACHE_API_VERSION_MINOR: u32 = 1;
opaque!(TRITONCACHE_Allocator);
opaque!(TRITONCACHE_Cache);
opaque!(TRITONCACHE_CacheEntry);

// Defined by the plugin.
pub type TRITONCACHE_CacheInitialize_t =
    unsafe extern "C" fn(cache: *mut *mut TRITONCACHE_Cache, config: *const c_char) -> *mut TRITONSERVER_Error;
pub type TRITONCACHE_CacheFinalize_t = unsafe extern "C" fn(cache: *mut TRITONCACHE_Cache) -> *mut TRITONSERVER_Error;
pub type TRITONCACHE_CacheInsert_t = unsafe extern "C" fn(
    cache: *mut TRITONCACHE_Cache,
    key: *const c_char,
    entry: *mut TRITONCACHE_CacheEntry,
    allocator: *mut TRITONCACHE_Allocator,
) -> *mut TRITONSERVER_Error;
pub type TRITONCACHE_CacheLookup_t = unsafe extern "C" fn(
    cache: *mut TRITONCACHE_Cache,
    key: *const c_char,
    entry: *mut TRITONCACHE_CacheEntry,
    allocator: *mut TRITONCACHE_Allocator,
) -> *mut TRITONSERVER_Error;

unsafe extern "C" {
    pub fn TRITONCACHE_ApiVersion(major: *mut u32, minor: *mut u32) -> *mut TRITONSERVER_Error;
    pub fn TRITONCACHE_CacheEntryBufferCount(
        entry: *mut TRITONCACHE_CacheEntry,
        count: *mut usize,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONCACHE_CacheEntryAddBuffer(
        entry: *mut TRITONCACHE_CacheEntry,
        base: *mut c_void,
        buffer_attributes: *mut TRITONSERVER_BufferAttributes,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONCACHE_CacheEntryGetBuffer(
        entry: *mut TRITONCACHE_CacheEntry,
        index: usize,
        base: *mut *mut c_void,
        buffer_attributes: *mut TRITONSERVER_BufferAttributes,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONCACHE_CacheEntrySetBuffer(
        entry: *mut TRITONCACHE_CacheEntry,
        index: usize,
        new_base: *mut c_void,
        buffer_attributes: *mut TRITONSERVER_BufferAttributes,
    ) -> *mut TRITONSERVER_Error;
    pub fn TRITONCACHE_Copy(
        allocator: *mut TRITONCACHE_Allocator,
        entry: *mut TRITONCACHE_CacheEntry,
    ) -> *mut TRITONSERVER_Error;
}
