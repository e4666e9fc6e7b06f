// SPDX-License-Identifier: Apache-2.0
//! The C interface as it is: every function, type and value of the headers in `include/triton/core`, for what the rest of this crate has
//! no words for.
//!
//! The handles that the rest of the crate works with are to be had with `as_ptr`. Contracts are those of the headers; whoever calls one of
//! these functions beside the crate answers for it.
#![allow(non_camel_case_types, missing_docs)]

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

mod backend;
mod cache;
mod repoagent;
mod server;

pub use backend::*;
pub use cache::*;
pub use repoagent::*;
pub use server::*;
