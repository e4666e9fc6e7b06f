// SPDX-License-Identifier: Apache-2.0
//! Declarations of `include/kelp/builder.h`, which documents every function. Written by make_sys.py.
use super::*;

pub type kelp_builder_flag = c_uint;
pub const KELP_BUILD_BF16: kelp_builder_flag = 1 << 0;
pub const KELP_BUILD_TF32: kelp_builder_flag = 1 << 1;
pub const KELP_BUILD_REFIT: kelp_builder_flag = 1 << 2;
pub const KELP_BUILD_REFIT_INDIVIDUAL: kelp_builder_flag = 1 << 3;
pub const KELP_BUILD_STRIP_WEIGHTS: kelp_builder_flag = 1 << 4;
pub const KELP_BUILD_WEIGHT_STREAMING: kelp_builder_flag = 1 << 5;
pub const KELP_BUILD_VERSION_COMPATIBLE: kelp_builder_flag = 1 << 6;
pub const KELP_BUILD_DISABLE_FUSION: kelp_builder_flag = 1 << 7;
pub const KELP_BUILD_MONITOR_MEMORY: kelp_builder_flag = 1 << 8;
pub const KELP_BUILD_DETAILED: kelp_builder_flag = 1 << 9;
pub type kelp_memory_pool = c_uint;
pub const KELP_POOL_WORKSPACE: kelp_memory_pool = 0;
pub const KELP_POOL_DEVICE: kelp_memory_pool = 1;
pub type kelp_progress_fn = Option<
    unsafe extern "C" fn(
        userp: *mut c_void,
        phase: *const c_char,
        parent: *const c_char,
        step: c_int,
        steps: c_int,
    ) -> bool,
>;
pub type kelp_profile_selector = c_uint;
pub const KELP_PROFILE_MIN: kelp_profile_selector = 0;
pub const KELP_PROFILE_OPT: kelp_profile_selector = 1;
pub const KELP_PROFILE_MAX: kelp_profile_selector = 2;
opaque!(kelp_blob);

unsafe extern "C" {
    pub fn kelp_builder_create(
        runtime: *mut kelp_runtime,
        provider: *const c_char,
        out: *mut *mut kelp_builder,
    ) -> *mut kelp_status;
    pub fn kelp_builder_retain(builder: *mut kelp_builder) -> *mut kelp_builder;
    pub fn kelp_builder_release(builder: *mut kelp_builder);
    pub fn kelp_builder_provider(builder: *const kelp_builder) -> *const c_char;
    pub fn kelp_builder_create_network(builder: *mut kelp_builder, out: *mut *mut kelp_network) -> *mut kelp_status;
    pub fn kelp_builder_parse_file(
        builder: *mut kelp_builder,
        path: *const c_char,
        out: *mut *mut kelp_network,
    ) -> *mut kelp_status;
    pub fn kelp_builder_parse_bytes(
        builder: *mut kelp_builder,
        data: *const c_void,
        size_bytes: usize,
        label: *const c_char,
        release: Option<unsafe extern "C" fn(userp: *mut c_void)>,
        userp: *mut c_void,
        out: *mut *mut kelp_network,
    ) -> *mut kelp_status;
    pub fn kelp_builder_create_config(
        builder: *mut kelp_builder,
        out: *mut *mut kelp_builder_config,
    ) -> *mut kelp_status;
    pub fn kelp_builder_config_retain(config: *mut kelp_builder_config) -> *mut kelp_builder_config;
    pub fn kelp_builder_config_release(config: *mut kelp_builder_config);
    pub fn kelp_builder_config_set_flags(config: *mut kelp_builder_config, flags: u32) -> *mut kelp_status;
    pub fn kelp_builder_config_flags(config: *const kelp_builder_config) -> u32;
    pub fn kelp_builder_config_set_memory_limit(
        config: *mut kelp_builder_config,
        pool: kelp_memory_pool,
        size_bytes: usize,
    ) -> *mut kelp_status;
    pub fn kelp_builder_config_set_optimization_level(
        config: *mut kelp_builder_config,
        level: c_int,
    ) -> *mut kelp_status;
    pub fn kelp_builder_config_add_compute_capability(
        config: *mut kelp_builder_config,
        capability: c_int,
    ) -> *mut kelp_status;
    pub fn kelp_builder_config_set_timing_cache(
        config: *mut kelp_builder_config,
        data: *const c_void,
        size_bytes: usize,
    ) -> *mut kelp_status;
    pub fn kelp_builder_config_timing_cache(
        config: *const kelp_builder_config,
        out_size_bytes: *mut usize,
    ) -> *const c_void;
    pub fn kelp_builder_config_set_progress(
        config: *mut kelp_builder_config,
        fn_: kelp_progress_fn,
        userp: *mut c_void,
    );
    pub fn kelp_builder_config_add_profile(config: *mut kelp_builder_config, out_index: *mut usize)
        -> *mut kelp_status;
    pub fn kelp_builder_config_set_profile_shape(
        config: *mut kelp_builder_config,
        profile: usize,
        input: *const c_char,
        selector: kelp_profile_selector,
        rank: i32,
        shape: *const i64,
    ) -> *mut kelp_status;
    pub fn kelp_builder_config_set_profile_values(
        config: *mut kelp_builder_config,
        profile: usize,
        input: *const c_char,
        selector: kelp_profile_selector,
        values: *const i64,
        count: usize,
    ) -> *mut kelp_status;
    pub fn kelp_blob_data(blob: *const kelp_blob) -> *const c_void;
    pub fn kelp_blob_size(blob: *const kelp_blob) -> usize;
    pub fn kelp_blob_retain(blob: *mut kelp_blob) -> *mut kelp_blob;
    pub fn kelp_blob_release(blob: *mut kelp_blob);
    pub fn kelp_blob_save(blob: *const kelp_blob, path: *const c_char) -> *mut kelp_status;
    pub fn kelp_builder_build(
        builder: *mut kelp_builder,
        network: *const kelp_network,
        config: *mut kelp_builder_config,
        out_plan: *mut *mut kelp_blob,
    ) -> *mut kelp_status;
    pub fn kelp_network_to_onnx(network: *const kelp_network, out: *mut *mut kelp_blob) -> *mut kelp_status;
    pub fn kelp_builder_supports(
        builder: *mut kelp_builder,
        network: *const kelp_network,
        out_reason: *mut *mut kelp_status,
    ) -> bool;
}
