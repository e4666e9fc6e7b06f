// SPDX-License-Identifier: Apache-2.0
//! Backends for Kelp and Triton Inference Server, in Rust.
//!
//! A backend is a library `libtriton_NAME.so` that runs models for a server, behind the C interface of Triton. This crate makes one of a type
//! that implements [`Backend`]:
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
//! The package's `Cargo.toml` says `[lib] crate-type = ["cdylib"]`. The library needs the functions of the server that loads it and nothing
//! else: it runs in Kelp and in NVIDIA's server. `docs/rust.md` leads from nothing to a backend that streams what other models answer.
//!
//! # What the crate sees to
//!
//! - A request is answered once, or, when its model is decoupled, as often as you like and then ended: also when a function fails midway,
//!   panics, or forgets. It is given back once, and statistics are reported.
//! - A panic is caught where the server calls, and becomes an error; for that the library must not be built with `panic = "abort"`.
//! - What is borrowed from a request lives as long as the request. Whoever uses no `unsafe` cannot touch freed memory. One thing is out of
//!   its hands: an input in shared memory changes when the client writes to it meanwhile.
//! - Sending after the final answer is refused in words.
//!
//! What is borrowed cannot outlive its request:
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
//! A request goes to another thread, but is not shared with it:
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
//! Nor can a response be filled while its output is written in place:
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
//! # Several answers, later, from elsewhere
//!
//! A [`ResponseFactory`] makes responses on any thread, also after the request is given back:
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
//!     }); // the factory is dropped at the end of the thread: that ends the request
//!     Ok(())
//! }
//! ```
//!
//! # Asking other models
//!
//! An [`InferenceRequest`] asks another model of the same server. What it [starts](InferenceRequest::start) can be awaited, waited for, or
//! iterated over; [`start_with`](InferenceRequest::start_with) calls back.
//!
//! # Features
//!
//! - `ndarray`: [`Input`]`::as_array`, [`InferenceOutput`]`::as_array` and [`Response`]`::add_array`.
//!
//! # From the crate triton-rs
//!
//! `triton_rs = { package = "kelp-backend", … }` in `Cargo.toml` keeps the name. [`Backend`], [`declare_backend!`], [`Request`], [`Input`],
//! [`Response`], [`ResponseFactory`] and [`sys`] are called as they are there. States are set once by `set_state`; an array is an output by
//! `add_array`.
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
