// SPDX-License-Identifier: Apache-2.0
//! Raw declarations of the C interface: `kelp/builder.h`, `kelp/network.h`, `kelp/engine.h` and the headers that they include. The
//! headers document each function. The functions `as_ptr` of this crate return the handles.
#![allow(non_camel_case_types, non_upper_case_globals, missing_docs)]

pub use std::ffi::{c_char, c_int, c_uint, c_void};

macro_rules! opaque {
    ($name:ident) => {
        #[repr(C)]
        pub struct $name {
            _nothing: [u8; 0],
            _neither_send_nor_sync: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
        }
    };
}

mod allocator;
mod builder;
mod engine;
mod event;
mod network;
mod status;
mod tensor;

pub use allocator::*;
pub use builder::*;
pub use engine::*;
pub use event::*;
pub use network::*;
pub use status::*;
pub use tensor::*;

// Types of headers that have no declarations here.
opaque!(kelp_graph);
opaque!(kelp_block);
opaque!(kelp_opset_backend);
opaque!(kelp_opset_registry);
opaque!(kelp_op_env);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct kelp_plugin_setting {
    pub name: *const c_char,
    pub value: *const c_char,
}

pub type DLDeviceType = c_uint;
pub const kDLCPU: DLDeviceType = 1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct DLDevice {
    pub device_type: DLDeviceType,
    pub device_id: i32,
}
