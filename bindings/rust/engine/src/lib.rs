// SPDX-License-Identifier: Apache-2.0
//! Builds and runs inference engines with Kelp. The interface follows TensorRT's: a logger, a builder, a network and a configuration
//! produce a serialized engine; a runtime loads it; contexts run it.
//!
//! ```
//! use kelp_engine::*;
//!
//! fn main() -> Result<()> {
//!     let logger = Logger::new(Severity::Warning);
//!
//!     // Build: y = relu(x w)
//!     let builder = Builder::new(&logger)?;
//!     let network = builder.create_network()?;
//!     let x = network.add_input("x", Dims::new(&[-1, 3]), DataType::Float)?;
//!     let w = network.add_constant([3, 2], Weights::new(&[1.0f32, -1.0, 2.0, -2.0, 3.0, -3.0]))?.output(0)?;
//!     let product = network.add_matrix_multiply(x, MatrixOperation::None, w, MatrixOperation::None)?.output(0)?;
//!     let y = network.add_activation(product, ActivationType::Relu, 0.0, 0.0)?.output(0)?;
//!     y.set_name("y")?;
//!     network.mark_output(y)?;
//!     let config = BuilderConfig::new()?;
//!     config.set_max_workspace_size(1 << 20)?;
//!     let profile = config.add_optimization_profile();
//!     config.set_profile_shape(profile, "x", [1, 3], [8, 3], [64, 3])?;
//!     let data = builder.build_serialized_network(&network, &config)?;
//!
//!     // Run
//!     let runtime = Runtime::new(&logger)?;
//!     let engine = runtime.deserialize_engine(&data)?;
//!     let mut context = engine.create_execution_context()?;
//!     let mut bindings = context.bindings();
//!     bindings.input("x", [1, 3], &[1.0f32, 1.0, 1.0])?;
//!     bindings.run()?;
//!     assert_eq!(*bindings.get::<f32>("y")?, [6.0, 0.0]);
//!     Ok(())
//! }
//! ```
//!
//! # Installation
//!
//! The build finds an installed Kelp with pkg-config (`kelp.pc`; set `PKG_CONFIG_PATH` for a prefix of your own). If the library is not
//! in a directory of the dynamic linker, set `LD_LIBRARY_PATH`, or link with an rpath.
//!
//! # Guarantees
//!
//! - Objects are released when they are dropped. The compiler rejects a context that outlives its engine, a tensor that outlives its
//!   network, and a slice that does not outlive the inference that uses it.
//! - `unsafe` functions are those that take addresses of memory ([`ExecutionContext::set_tensor_address`]), map files that another process
//!   may modify ([`Runtime::deserialize_engine_file`], [`Builder::parse_onnx_file`]), or run foreign code ([`Options::plugin`],
//!   [`Stream::from_raw`]). Each documents its conditions.
//! - A panic in a function that the crate calls does not pass through C.
//!
//! | type | can be moved to another thread | can be shared by threads |
//! |---|---|---|
//! | [`Logger`], [`Runtime`], [`Engine`], [`EngineData`], [`Stream`], [`Weights`] | yes | yes |
//! | [`Builder`], [`BuilderConfig`], [`ExecutionContext`] | yes | no |
//! | [`Network`], [`Tensor`], [`Layer`], [`Bindings`], [`Capture`] | no | no |
//!
//! ```compile_fail,E0277
//! # use kelp_engine::ExecutionContext;
//! fn share(context: &ExecutionContext) {
//!     std::thread::scope(|scope| {
//!         scope.spawn(|| context.execute_v2());
//!     });
//! }
//! ```
//!
//! [`sys`] is the C interface, with the handles that the functions `as_ptr` return.
#![warn(missing_docs, unsafe_op_in_unsafe_fn)]

mod bindings;
mod builder;
mod config;
mod context;
mod engine;
mod enums;
mod error;
mod layers;
mod logger;
mod network;
mod options;
mod root;
mod runtime;
mod stream;
pub mod sys;
mod types;

pub use bindings::{Array, Bindings};
pub use builder::{Builder, EngineData};
pub use config::{BuilderConfig, BuilderFlag, MemoryPool, ProfileSelector};
pub use context::{Capture, ExecutionContext, TensorAddress};
pub use engine::{Engine, TensorInfo};
pub use enums::*;
pub use error::{Error, Result};
pub use logger::{Logger, Severity};
pub use network::{Conditional, Layer, Loop, Network, Tensor};
pub use options::{Attention, FillOptions, Moe, Nms, Normalization, Resize, ResizeTo, Shuffle, Slice, Window};
pub use root::Options;
pub use runtime::{version, Runtime};
pub use stream::{Scope, Stream};
pub use types::{DataType, Dims, Element, OutputElement, Weights};

/// Tests the example of the page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
