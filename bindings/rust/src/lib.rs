// SPDX-License-Identifier: Apache-2.0
//! Backends for Kelp and Triton Inference Server, in Rust.
//!
//! A backend is a library `libtriton_NAME.so` that executes models for a server through Triton's C interface. This crate creates one from a
//! type that implements [`Backend`]:
//!
//! ```no_run
//! use kelp_backend::{Backend, Error, ModelInstance, Request, Response};
//!
//! struct Negate;
//!
//! impl Backend for Negate {
//!     type ModelState = ();
//!     type ModelInstanceState = ();
//!
//!     fn model_instance_execute(_instance: ModelInstance, requests: &[Request]) -> Result<(), Error> {
//!         for request in requests {
//!             let input = request.get_input("IN")?;
//!             let negated: Vec<f32> = input.slice::<f32>()?.iter().map(|x| -x).collect();
//!             let response = Response::from_request(request)?;
//!             response.add_output("OUT", input.properties()?.shape, &negated)?;
//!             response.send()?;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! kelp_backend::declare_backend!(Negate);
//! # fn main() {}
//! ```
//!
//! `Cargo.toml` of the package contains `[lib] crate-type = ["cdylib"]`. The library needs only the functions of the server that loads it,
//! and runs in Kelp and in NVIDIA's server. `docs/rust.md` is a tutorial.
//!
//! # Guarantees
//!
//! - A request gets exactly one final response, also if a function fails, panics or sends nothing. A decoupled model may send any number of
//!   responses before. A request is released once, and statistics are reported.
//! - A panic is converted to an error, unless the library is built with `panic = "abort"`.
//! - Data that is borrowed from a request lives as long as the request: safe code cannot access freed memory. However, an input in shared
//!   memory changes if the client writes to it at the same time.
//! - Sending after the final response is an error.
//!
//! Borrowed data cannot outlive its request:
//!
//! ```compile_fail,E0505
//! # use kelp_backend::{Error, Request};
//! fn first(request: Request) -> Result<f32, Error> {
//!     let data: &[f32] = request.get_input("IN")?.slice()?;
//!     drop(request);
//!     Ok(data[0])
//! }
//! ```
//!
//! A request can be moved to another thread, but not shared:
//!
//! ```compile_fail,E0277
//! # use kelp_backend::Request;
//! fn share(request: &Request) {
//!     std::thread::scope(|scope| {
//!         scope.spawn(|| request.is_cancelled());
//!     });
//! }
//! ```
//!
//! A response cannot get another output while one is written in place:
//!
//! ```compile_fail,E0502
//! # use kelp_backend::{Error, Response};
//! fn fill(response: &mut Response) -> Result<(), Error> {
//!     let output = response.output::<f32>("A", &[1])?;
//!     response.add_output("B", &[1], &[0.0f32])?;
//!     output[0] = 1.0;
//!     Ok(())
//! }
//! ```
//!
//! # Several responses
//!
//! A [`ResponseFactory`] creates responses on any thread, also after the request is released:
//!
//! ```no_run
//! # use kelp_backend::{Error, Request, Response, ResponseFactory};
//! fn count(request: &Request) -> Result<(), Error> {
//!     let factory = ResponseFactory::from_request(request)?;
//!     let last: i32 = request.get_input("N")?.slice()?[0];
//!     std::thread::spawn(move || {
//!         for i in 0..last {
//!             if let Ok(response) = Response::from_factory(&factory) {
//!                 let _ = response.add_output("I", &[1], &[i]).and_then(|()| response.send());
//!             }
//!         }
//!     }); // dropping the factory sends the final flag
//!     Ok(())
//! }
//! ```
//!
//! # Inference by other models
//!
//! An [`InferenceRequest`] runs another model of the same server. The result of [`start`](InferenceRequest::start) can be awaited, waited
//! for, or iterated over; [`start_with`](InferenceRequest::start_with) takes a callback.
//!
//! # Features
//!
//! - `ndarray`: [`Input`]`::as_array`, [`InferenceOutput`]`::as_array` and [`Response`]`::add_array`.
//!
//! # Migration from the crate triton-rs
//!
//! `triton_rs = { package = "kelp-backend", … }` in `Cargo.toml` keeps the name. [`Backend`], [`declare_backend!`], [`Request`], [`Input`],
//! [`Response`], [`ResponseFactory`] and [`sys`] have the same names. States are set once, with `set_state`. An array is added as an output with
//! `add_array("output", &tensor)`: Rust does not overload functions by the number of arguments, so that `add_output("output", tensor)`
//! fails with E0061.
#![warn(missing_docs, unsafe_op_in_unsafe_fn)]

mod account;
mod backend;
mod call;
mod error;
mod json;
mod log;
mod model;
mod request;
mod response;
pub mod sys;
mod types;

#[doc(hidden)]
pub use backend::entry;
pub use backend::{Backend, InstanceOf};
pub use call::{InferenceCall, InferenceOutput, InferenceRequest, InferenceResponse};
pub use error::{failure, Error, ErrorCode};
pub use json::Value;
pub use log::{log, log_enabled, LogLevel};
pub use model::{Host, InstanceKind, Model, ModelInstance, Server};
pub use request::{CorrelationId, Input, Properties, Request, RequestFlags};
pub use response::{Response, ResponseFactory, ResponseFlags};
pub use types::{decode_strings, encode_strings, Bf16, DataType, Element, Parameter, F16};
