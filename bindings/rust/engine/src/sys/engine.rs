// SPDX-License-Identifier: Apache-2.0
//! Declarations of `include/kelp/engine.h`, which documents every function. Written by make_sys.py.
use super::*;

pub const KELP_OFFERS_SUBGRAPHS: u32 = 1;
pub const KELP_OFFERS_MODELS: u32 = 2;
pub const KELP_OFFERS_ENGINES: u32 = 4;
pub type kelp_log_callback = Option<
    unsafe extern "C" fn(
        userp: *mut c_void,
        level: c_int,
        file: *const c_char,
        line: c_int,
        text: *const c_char,
        length: usize,
    ),
>;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_runtime_options {
    pub struct_size: u32,
    pub allocator: kelp_allocator,
    pub threads: c_int,
    pub log: kelp_log_callback,
    pub log_userp: *mut c_void,
    pub log_level: c_int,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_provider_info {
    pub name: *const c_char,
    pub offers: u32,
}
pub type kelp_precision = c_uint;
pub const KELP_PRECISION_F32: kelp_precision = 0;
pub const KELP_PRECISION_BF16: kelp_precision = 1;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_engine_options {
    pub struct_size: u32,
    pub disable_fusion: u32,
    pub max_plans: u32,
    pub progress: Option<unsafe extern "C" fn(userp: *mut c_void, done: usize, total: usize) -> bool>,
    pub progress_userp: *mut c_void,
    pub providers: *const c_char,
    pub precision: kelp_precision,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_io_info {
    pub name: *const c_char,
    pub dtype: kelp_dtype,
    pub rank: i32,
    pub shape: [i64; KELP_MAX_RANK as usize],
    pub symbols: [*const c_char; KELP_MAX_RANK as usize],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_engine_stats {
    pub nodes_loaded: usize,
    pub nodes_planned: usize,
    pub weight_bytes_borrowed: usize,
    pub weight_bytes_packed: usize,
    pub nodes_bf16: usize,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_subgraph_info {
    pub name: *const c_char,
    pub provider: *const c_char,
    pub body: *const kelp_block,
}
pub type kelp_output_allocator = Option<
    unsafe extern "C" fn(
        userp: *mut c_void,
        index: usize,
        output: *const kelp_tensor,
        size_bytes: usize,
    ) -> *mut c_void,
>;
pub type kelp_interrupt_fn = Option<unsafe extern "C" fn(userp: *mut c_void) -> bool>;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_plan_stats {
    pub steps: usize,
    pub views: usize,
    pub folded: usize,
    pub dynamic_steps: usize,
    pub workspace_bytes: usize,
    pub workspace_lower_bound_bytes: usize,
    pub activation_bytes: usize,
}
pub type kelp_profile_fn = Option<
    unsafe extern "C" fn(
        userp: *mut c_void,
        step: usize,
        op_type: *const c_char,
        name: *const c_char,
        algorithm: *const c_char,
        duration_ns: u64,
    ),
>;
opaque!(kelp_runtime);
opaque!(kelp_engine);
opaque!(kelp_context);
opaque!(kelp_stream);
opaque!(kelp_capture);

unsafe extern "C" {
    pub fn kelp_runtime_create(options: *const kelp_runtime_options, out: *mut *mut kelp_runtime) -> *mut kelp_status;
    pub fn kelp_runtime_retain(runtime: *mut kelp_runtime) -> *mut kelp_runtime;
    pub fn kelp_runtime_release(runtime: *mut kelp_runtime);
    pub fn kelp_runtime_register_opset(
        runtime: *mut kelp_runtime,
        backend: *const kelp_opset_backend,
        self_: *mut c_void,
    ) -> *mut kelp_status;
    pub fn kelp_runtime_load_plugin(runtime: *mut kelp_runtime, path: *const c_char) -> *mut kelp_status;
    pub fn kelp_runtime_load_plugin_with(
        runtime: *mut kelp_runtime,
        path: *const c_char,
        settings: *const kelp_plugin_setting,
        setting_count: usize,
    ) -> *mut kelp_status;
    pub fn kelp_runtime_load_plugins(runtime: *mut kelp_runtime, text: *const c_char) -> *mut kelp_status;
    pub fn kelp_runtime_provider_at(runtime: *const kelp_runtime, index: usize, out: *mut kelp_provider_info) -> bool;
    pub fn kelp_runtime_check_provider(runtime: *mut kelp_runtime, name: *const c_char) -> *mut kelp_status;
    pub fn kelp_runtime_opsets(runtime: *const kelp_runtime) -> *const kelp_opset_registry;
    pub fn kelp_op_env_create(runtime: *mut kelp_runtime, out: *mut *mut kelp_op_env) -> *mut kelp_status;
    pub fn kelp_op_env_reset(env: *mut kelp_op_env);
    pub fn kelp_op_env_destroy(env: *mut kelp_op_env);
    pub fn kelp_runtime_allocator(runtime: *const kelp_runtime) -> kelp_allocator;
    pub fn kelp_runtime_threads(runtime: *const kelp_runtime) -> c_int;
    pub fn kelp_runtime_isa(runtime: *const kelp_runtime) -> *const c_char;
    pub fn kelp_version() -> *const c_char;
    pub fn kelp_precision_parse(name: *const c_char, out: *mut kelp_precision) -> bool;
    pub fn kelp_precision_name(precision: kelp_precision) -> *const c_char;
    pub fn kelp_engine_create(
        runtime: *mut kelp_runtime,
        graph: *mut kelp_graph,
        options: *const kelp_engine_options,
        out: *mut *mut kelp_engine,
    ) -> *mut kelp_status;
    pub fn kelp_engine_retain(engine: *mut kelp_engine) -> *mut kelp_engine;
    pub fn kelp_engine_release(engine: *mut kelp_engine);
    pub fn kelp_plan_is_known(runtime: *const kelp_runtime, data: *const c_void, size_bytes: usize) -> bool;
    pub fn kelp_plan_is_file(runtime: *const kelp_runtime, path: *const c_char) -> bool;
    pub fn kelp_engine_load_file(
        runtime: *mut kelp_runtime,
        path: *const c_char,
        out: *mut *mut kelp_engine,
    ) -> *mut kelp_status;
    pub fn kelp_engine_load(
        runtime: *mut kelp_runtime,
        data: *const c_void,
        size_bytes: usize,
        label: *const c_char,
        release: Option<unsafe extern "C" fn(userp: *mut c_void)>,
        userp: *mut c_void,
        out: *mut *mut kelp_engine,
    ) -> *mut kelp_status;
    pub fn kelp_engine_provider_name(engine: *const kelp_engine) -> *const c_char;
    pub fn kelp_engine_profile_count(engine: *const kelp_engine) -> usize;
    pub fn kelp_engine_profile_shape(
        engine: *const kelp_engine,
        profile: usize,
        input: usize,
        which: c_int,
        out: *mut kelp_shape,
    ) -> bool;
    pub fn kelp_engine_workspace_bytes(engine: *const kelp_engine, profile: usize, out: *mut usize)
        -> *mut kelp_status;
    pub fn kelp_engine_inspect(
        engine: *const kelp_engine,
        json: bool,
        write: Option<unsafe extern "C" fn(userp: *mut c_void, text: *const c_char, length: usize)>,
        userp: *mut c_void,
    ) -> *mut kelp_status;
    pub fn kelp_engine_refittable_count(engine: *const kelp_engine) -> usize;
    pub fn kelp_engine_refittable(engine: *const kelp_engine, index: usize) -> *const c_char;
    pub fn kelp_engine_refit(engine: *mut kelp_engine, weights: *const kelp_weights, count: usize) -> *mut kelp_status;
    pub fn kelp_engine_set_runtime_cache(
        engine: *mut kelp_engine,
        data: *const c_void,
        size_bytes: usize,
    ) -> *mut kelp_status;
    pub fn kelp_engine_write_runtime_cache(
        engine: *mut kelp_engine,
        write: Option<unsafe extern "C" fn(userp: *mut c_void, data: *const c_char, length: usize)>,
        userp: *mut c_void,
    ) -> *mut kelp_status;
    pub fn kelp_engine_streamable_weights(engine: *const kelp_engine, out_bytes: *mut usize) -> *mut kelp_status;
    pub fn kelp_engine_set_weight_budget(engine: *mut kelp_engine, device_bytes: usize) -> *mut kelp_status;
    pub fn kelp_engine_input_count(engine: *const kelp_engine) -> usize;
    pub fn kelp_engine_output_count(engine: *const kelp_engine) -> usize;
    pub fn kelp_engine_input(engine: *const kelp_engine, index: usize) -> *const kelp_io_info;
    pub fn kelp_engine_output(engine: *const kelp_engine, index: usize) -> *const kelp_io_info;
    pub fn kelp_engine_find_input(engine: *const kelp_engine, name: *const c_char) -> usize;
    pub fn kelp_engine_find_output(engine: *const kelp_engine, name: *const c_char) -> usize;
    pub fn kelp_engine_get_stats(engine: *const kelp_engine) -> kelp_engine_stats;
    pub fn kelp_engine_subgraph_count(engine: *const kelp_engine) -> usize;
    pub fn kelp_engine_subgraph(engine: *const kelp_engine, index: usize) -> kelp_subgraph_info;
    pub fn kelp_context_create(engine: *mut kelp_engine, out: *mut *mut kelp_context) -> *mut kelp_status;
    pub fn kelp_context_destroy(context: *mut kelp_context);
    pub fn kelp_context_set_input(
        context: *mut kelp_context,
        index: usize,
        tensor: *const kelp_tensor,
    ) -> *mut kelp_status;
    pub fn kelp_context_set_output(
        context: *mut kelp_context,
        index: usize,
        data: *mut c_void,
        capacity_bytes: usize,
    ) -> *mut kelp_status;
    pub fn kelp_context_set_output_device(
        context: *mut kelp_context,
        index: usize,
        device: DLDevice,
    ) -> *mut kelp_status;
    pub fn kelp_context_set_profile(context: *mut kelp_context, profile: usize) -> *mut kelp_status;
    pub fn kelp_context_set_workspace(
        context: *mut kelp_context,
        data: *mut c_void,
        size_bytes: usize,
    ) -> *mut kelp_status;
    pub fn kelp_context_set_output_allocator(
        context: *mut kelp_context,
        index: usize,
        fn_: kelp_output_allocator,
        userp: *mut c_void,
    ) -> *mut kelp_status;
    pub fn kelp_context_prepare(context: *mut kelp_context) -> *mut kelp_status;
    pub fn kelp_context_invoke(context: *mut kelp_context) -> *mut kelp_status;
    pub fn kelp_context_output(context: *const kelp_context, index: usize) -> *const kelp_tensor;
    pub fn kelp_context_cancel(context: *mut kelp_context);
    pub fn kelp_context_set_interrupt(context: *mut kelp_context, fn_: kelp_interrupt_fn, userp: *mut c_void);
    pub fn kelp_stream_create(runtime: *mut kelp_runtime, out: *mut *mut kelp_stream) -> *mut kelp_status;
    pub fn kelp_stream_wrap(
        runtime: *mut kelp_runtime,
        native_stream: *mut c_void,
        out: *mut *mut kelp_stream,
    ) -> *mut kelp_status;
    pub fn kelp_stream_destroy(stream: *mut kelp_stream);
    pub fn kelp_stream_synchronize(stream: *mut kelp_stream) -> *mut kelp_status;
    pub fn kelp_context_enqueue(
        context: *mut kelp_context,
        stream: *mut kelp_stream,
        event: *mut kelp_event,
    ) -> *mut kelp_status;
    pub fn kelp_context_capture(context: *mut kelp_context, out: *mut *mut kelp_capture) -> *mut kelp_status;
    pub fn kelp_capture_replay(capture: *mut kelp_capture) -> *mut kelp_status;
    pub fn kelp_capture_step_count(capture: *const kelp_capture) -> usize;
    pub fn kelp_capture_destroy(capture: *mut kelp_capture);
    pub fn kelp_context_plan_stats(context: *const kelp_context) -> kelp_plan_stats;
    pub fn kelp_context_set_profiler(
        context: *mut kelp_context,
        fn_: kelp_profile_fn,
        userp: *mut c_void,
    ) -> *mut kelp_status;
}
