// SPDX-License-Identifier: Apache-2.0
//! Responses, and factories that create them after the request is released.
use crate::account::{now_ns, Account, Means};
use crate::error::{c_name, c_text, check, Error};
use crate::request::Request;
use crate::sys::*;
use crate::types::{elements, encode_strings, DataType, Element, Parameter};
use std::borrow::Borrow;
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::Arc;

pub(crate) struct FactoryInner {
    raw: *mut TRITONBACKEND_ResponseFactory,
    account: Arc<Account>,
}

// SAFETY: a factory is thread-safe; responses are created under the lock of the account.
unsafe impl Send for FactoryInner {}
unsafe impl Sync for FactoryInner {}

impl FactoryInner {
    pub(crate) fn new(request: &Request) -> Result<Arc<Self>, Error> {
        let account = request.account().clone();
        let raw = account.join(true, true, || {
            let mut raw = null_mut();
            // SAFETY: the request is alive.
            unsafe { check(TRITONBACKEND_ResponseFactoryNew(&mut raw, request.as_ptr())) }?;
            Ok(raw)
        })?;
        Ok(Arc::new(Self { raw, account }))
    }
}

impl Drop for FactoryInner {
    fn drop(&mut self) {
        self.account.leave(Means::Factory(self.raw));
        // SAFETY: this object owns it. This may unload the model, so it is last.
        if let Err(error) = unsafe { check(TRITONBACKEND_ResponseFactoryDelete(self.raw)) } {
            crate::account::log_failure("cannot delete a factory", &error);
        }
    }
}

/// Creates responses to a request on any thread, also after the request is released. It keeps the model loaded.
///
/// If the request, its factories and responses are dropped without a final response, the request is completed: with FINAL if its model is
/// decoupled, otherwise with an error.
#[derive(Clone)]
pub struct ResponseFactory {
    inner: Arc<FactoryInner>,
}

impl ResponseFactory {
    /// Creates a factory for the responses to a request.
    pub fn from_request(request: &Request) -> Result<Self, Error> {
        Ok(Self { inner: FactoryInner::new(request)? })
    }

    /// Returns whether the request is cancelled.
    pub fn is_cancelled(&self) -> bool {
        let mut cancelled = false;
        // SAFETY: the factory is alive; takes any thread.
        unsafe { check(TRITONBACKEND_ResponseFactoryIsCancelled(self.inner.raw, &mut cancelled)) }.is_ok() && cancelled
    }

    /// Sends the final flag before the factory is dropped.
    pub fn finish(&self) -> Result<(), Error> {
        self.inner.account.finish(Means::Factory(self.inner.raw))
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut TRITONBACKEND_ResponseFactory {
        self.inner.raw
    }
}

/// The flags of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFlags {
    /// More responses may follow. If the model is not decoupled, this response is final.
    None,
    /// The final response.
    Final,
}

/// A response that is being filled.
///
/// A response that is dropped without [`send`](Response::send) is not sent.
///
/// ```no_run
/// use kelp_backend::{Error, Request, Response};
///
/// fn respond(request: &Request) -> Result<(), Error> {
///     let response = Response::from_request(request)?;
///     response.add_output("SUM", &[2], &[1.0f32, 2.0])?;
///     response.add_strings("WORDS", &[1], &["two"])?;
///     response.set_parameter("model_says", "fine")?;
///     response.send()
/// }
/// ```
pub struct Response {
    raw: *mut TRITONBACKEND_Response,
    account: Arc<Account>,
    /// The factory that created it, if any.
    factory: Option<Arc<FactoryInner>>,
    start_ns: u64,
    output_ns: Cell<u64>,
}

// SAFETY: any thread may use a response, one at a time: it is not Sync.
unsafe impl Send for Response {}

impl Response {
    /// Creates a response to a request.
    pub fn from_request(request: &Request) -> Result<Self, Error> {
        let account = request.account().clone();
        if account.decoupled {
            return Self::by_factory(request.own_factory()?);
        }
        let raw = account.join(true, true, || {
            let mut raw = null_mut();
            // SAFETY: the request is alive.
            unsafe { check(TRITONBACKEND_ResponseNew(&mut raw, request.as_ptr())) }?;
            Ok(raw)
        })?;
        Ok(Self { raw, account, factory: None, start_ns: now_ns(), output_ns: Cell::new(0) })
    }

    /// Creates a response to the request of a factory.
    pub fn from_factory(factory: impl Borrow<ResponseFactory>) -> Result<Self, Error> {
        Self::by_factory(factory.borrow().inner.clone())
    }

    fn by_factory(factory: Arc<FactoryInner>) -> Result<Self, Error> {
        let account = factory.account.clone();
        let raw = account.join(false, false, || {
            let mut raw = null_mut();
            // SAFETY: the factory is alive.
            unsafe { check(TRITONBACKEND_ResponseNewFromFactory(&mut raw, factory.raw)) }?;
            Ok(raw)
        })?;
        Ok(Self { raw, account, factory: Some(factory), start_ns: now_ns(), output_ns: Cell::new(0) })
    }

    /// Returns the uninitialized memory of a new output.
    fn buffer(&self, name: &str, data_type: DataType, shape: &[i64], size: usize) -> Result<*mut u8, Error> {
        let c_name = c_name(name)?;
        let rank = u32::try_from(shape.len()).map_err(|_| Error::invalid("too many dimensions"))?;
        let (mut output, mut buffer) = (null_mut(), null_mut());
        let (mut memory, mut id) = (TRITONSERVER_MEMORY_CPU, 0);
        if self.output_ns.get() == 0 {
            self.output_ns.set(now_ns());
        }
        // SAFETY: the response is alive and not sent; name and shape are copied.
        unsafe {
            check(TRITONBACKEND_ResponseOutput(
                self.raw,
                &mut output,
                c_name.as_ptr(),
                data_type.raw(),
                shape.as_ptr(),
                rank,
            ))?;
            check(TRITONBACKEND_OutputBuffer(output, &mut buffer, size as u64, &mut memory, &mut id))?;
        }
        if memory == TRITONSERVER_MEMORY_GPU {
            return Err(Error::unsupported(format!("output '{name}' is in GPU memory")));
        }
        if buffer.is_null() && size > 0 {
            return Err(Error::internal(format!("output '{name}' has no memory")));
        }
        Ok(buffer.cast())
    }

    fn put(&self, name: &str, data_type: DataType, shape: &[i64], bytes: &[u8]) -> Result<(), Error> {
        let to = self.buffer(name, data_type, shape, bytes.len())?;
        if !bytes.is_empty() {
            // SAFETY: the buffer has that size, and Rust has no other reference to it. The source may be shared memory of a client,
            // and therefore the same memory.
            unsafe { std::ptr::copy(bytes.as_ptr(), to, bytes.len()) };
        }
        Ok(())
    }

    /// Adds an output with a copy of `data`, row-major. INVALID_ARG if the number of elements does not match the shape.
    pub fn add_output<T: Element>(&self, name: &str, shape: &[i64], data: &[T]) -> Result<(), Error> {
        let count = elements(shape).map_err(|error| error.context(format!("output '{name}'")))?;
        if data.len() != count {
            let text = format!("output '{name}': shape {shape:?} has {count} elements, not {}", data.len());
            return Err(Error::invalid(text));
        }
        // SAFETY: elements have no padding.
        let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), std::mem::size_of_val(data)) };
        self.put(name, T::DATA_TYPE, shape, bytes)
    }

    /// Adds an output of strings.
    pub fn add_strings<S: AsRef<[u8]>>(&self, name: &str, shape: &[i64], strings: &[S]) -> Result<(), Error> {
        let count = elements(shape).map_err(|error| error.context(format!("output '{name}'")))?;
        if strings.len() != count {
            let text = format!("output '{name}': shape {shape:?} has {count} elements, not {}", strings.len());
            return Err(Error::invalid(text));
        }
        self.put(name, DataType::Bytes, shape, &encode_strings(strings)?)
    }

    /// Adds an output of any type from serialized bytes.
    pub fn add_bytes(&self, name: &str, data_type: DataType, shape: &[i64], bytes: &[u8]) -> Result<(), Error> {
        let count = elements(shape).map_err(|error| error.context(format!("output '{name}'")))?;
        if data_type != DataType::Bytes && count.checked_mul(data_type.byte_size()) != Some(bytes.len()) {
            let text = format!("output '{name}': {data_type} of shape {shape:?} does not have {} bytes", bytes.len());
            return Err(Error::invalid(text));
        }
        self.put(name, data_type, shape, bytes)
    }

    /// Adds an output and returns its zeroed memory, which is written in place.
    pub fn output<T: Element>(&mut self, name: &str, shape: &[i64]) -> Result<&mut [T], Error> {
        let count = elements(shape).map_err(|error| error.context(format!("output '{name}'")))?;
        let size = count.checked_mul(std::mem::size_of::<T>()).filter(|&size| isize::try_from(size).is_ok());
        let size = size.ok_or_else(|| Error::invalid(format!("output '{name}' is too large")))?;
        let to = self.buffer(name, T::DATA_TYPE, shape, size)?;
        if size == 0 {
            return Ok(&mut []);
        }
        if to as usize % std::mem::align_of::<T>() != 0 {
            return Err(Error::unsupported(format!("the memory of output '{name}' is not aligned for its type")));
        }
        // SAFETY: the buffer has that size and is aligned, zero is a value of every element type, and it is borrowed from the response,
        // which cannot get another output at the same time.
        unsafe {
            std::ptr::write_bytes(to, 0, size);
            Ok(std::slice::from_raw_parts_mut(to.cast(), count))
        }
    }

    /// Adds an output from an array with any strides: `response.add_array("OUT", &array)`.
    #[cfg(feature = "ndarray")]
    pub fn add_array<'a, T: Element, D: ndarray::Dimension>(
        &self,
        name: &str,
        array: impl Into<ndarray::ArrayView<'a, T, D>>,
    ) -> Result<(), Error> {
        let array = array.into();
        let shape: Vec<i64> = array.shape().iter().map(|&extent| extent as i64).collect();
        match array.as_slice() {
            Some(data) => self.add_output(name, &shape, data),
            None => self.add_output(name, &shape, &array.iter().copied().collect::<Vec<T>>()),
        }
    }

    /// Adds a parameter.
    pub fn set_parameter(&self, name: &str, value: impl Into<Parameter>) -> Result<(), Error> {
        let name = c_name(name)?;
        // SAFETY: the response is alive; texts are copied.
        unsafe {
            check(match value.into() {
                Parameter::Text(text) => {
                    TRITONBACKEND_ResponseSetStringParameter(self.raw, name.as_ptr(), c_text(&text).as_ptr())
                }
                Parameter::Int(value) => TRITONBACKEND_ResponseSetIntParameter(self.raw, name.as_ptr(), value),
                Parameter::Bool(value) => TRITONBACKEND_ResponseSetBoolParameter(self.raw, name.as_ptr(), value),
                Parameter::Double(value) => TRITONBACKEND_ResponseSetDoubleParameter(self.raw, name.as_ptr(), value),
            })
        }
    }

    /// Sends the response. It is final unless the model is decoupled. Then more responses may follow, and the request is completed when it and
    /// its factories are dropped.
    pub fn send(self) -> Result<(), Error> {
        self.send_with(ResponseFlags::None, None)
    }

    /// Sends it as the final response.
    pub fn send_final(self) -> Result<(), Error> {
        self.send_with(ResponseFlags::Final, None)
    }

    /// Sends an error instead of the outputs.
    pub fn send_error(self, error: Error) -> Result<(), Error> {
        self.send_with(ResponseFlags::None, Some(error))
    }

    /// Sends it with flags, and with an error if there is one.
    pub fn send_with(self, flags: ResponseFlags, error: Option<Error>) -> Result<(), Error> {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped, so these are moved out once.
        let (account, factory) = unsafe { (std::ptr::read(&this.account), std::ptr::read(&this.factory)) };
        let reported = factory.as_ref().filter(|_| account.decoupled).map_or(null_mut(), |factory| factory.raw);
        let times = (this.start_ns, this.output_ns.get());
        account.send(this.raw, reported, factory.is_none(), flags == ResponseFlags::Final, error.as_ref(), times)
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut TRITONBACKEND_Response {
        self.raw
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        self.account.drop_response(self.raw, self.factory.is_none());
    }
}
