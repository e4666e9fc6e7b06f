// SPDX-License-Identifier: Apache-2.0
//! Requests and their inputs.
use crate::account::Account;
use crate::error::{c_name, check, text, Error};
use crate::response::FactoryInner;
use crate::sys::*;
use crate::types::{elements, lines, DataType, Element, Line, Parameter, View};
use std::cell::{OnceCell, RefCell};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// A request.
///
/// It is released when it is dropped, with an error if it has no response. Data of its inputs lives as long as the request. It may be moved
/// between threads, but not shared.
pub struct Request {
    raw: *mut TRITONBACKEND_Request,
    account: Arc<Account>,
    /// Inputs that were concatenated. They live as long as the request.
    memory: RefCell<Vec<*mut [Line]>>,
    factory: OnceCell<Arc<FactoryInner>>,
}

// SAFETY: any thread may use a request, one at a time: it is not Sync.
unsafe impl Send for Request {}

/// The position in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFlags(u32);

impl RequestFlags {
    /// The first request of its sequence.
    pub fn is_start(self) -> bool {
        self.0 & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START != 0
    }

    /// The last request of its sequence.
    pub fn is_end(self) -> bool {
        self.0 & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END != 0
    }
}

/// The sequence of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CorrelationId {
    /// A number; 0 means no sequence.
    Number(u64),
    /// A name.
    Name(String),
}

impl Request {
    /// # Safety
    /// The request is the caller's, and execute runs it.
    pub(crate) unsafe fn new(raw: *mut TRITONBACKEND_Request, account: Arc<Account>) -> Self {
        Self { raw, account, memory: RefCell::default(), factory: OnceCell::new() }
    }

    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// The factory of the responses of a decoupled model, which counts them.
    pub(crate) fn own_factory(&self) -> Result<Arc<FactoryInner>, Error> {
        if let Some(factory) = self.factory.get() {
            return Ok(factory.clone());
        }
        let made = FactoryInner::new(self)?;
        Ok(self.factory.get_or_init(|| made).clone())
    }

    /// Returns an input by name. INVALID_ARG if there is none.
    pub fn get_input(&self, name: &str) -> Result<Input<'_>, Error> {
        let name = c_name(name)?;
        let mut raw = null_mut();
        // SAFETY: the request is alive.
        unsafe { check(TRITONBACKEND_RequestInput(self.raw, name.as_ptr(), &mut raw)) }?;
        Ok(Input { raw, request: self })
    }

    /// Returns all inputs.
    pub fn inputs(&self) -> Result<Vec<Input<'_>>, Error> {
        let mut count = 0;
        // SAFETY: the request is alive.
        unsafe { check(TRITONBACKEND_RequestInputCount(self.raw, &mut count)) }?;
        (0..count)
            .map(|at| {
                let mut raw = null_mut();
                // SAFETY: the request is alive.
                unsafe { check(TRITONBACKEND_RequestInputByIndex(self.raw, at, &mut raw)) }?;
                Ok(Input { raw, request: self })
            })
            .collect()
    }

    /// Returns the names of the requested outputs.
    pub fn requested_outputs(&self) -> Result<Vec<&str>, Error> {
        let mut count = 0;
        // SAFETY: the request is alive.
        unsafe { check(TRITONBACKEND_RequestOutputCount(self.raw, &mut count)) }?;
        (0..count)
            .map(|at| {
                let mut name = null();
                // SAFETY: the request is alive, and with it the name.
                unsafe {
                    check(TRITONBACKEND_RequestOutputName(self.raw, at, &mut name))?;
                    text(name)
                }
            })
            .collect()
    }

    /// Returns the id, or an empty string.
    pub fn id(&self) -> Result<&str, Error> {
        let mut id = null();
        // SAFETY: the request is alive, and with it the id.
        unsafe {
            check(TRITONBACKEND_RequestId(self.raw, &mut id))?;
            text(id)
        }
    }

    /// Returns the sequence.
    pub fn correlation_id(&self) -> Result<CorrelationId, Error> {
        let mut number = 0;
        let mut name = null();
        // SAFETY: the request is alive, and with it the name.
        unsafe {
            if check(TRITONBACKEND_RequestCorrelationId(self.raw, &mut number)).is_ok() {
                return Ok(CorrelationId::Number(number));
            }
            check(TRITONBACKEND_RequestCorrelationIdString(self.raw, &mut name))?;
            Ok(CorrelationId::Name(text(name)?.to_string()))
        }
    }

    /// Returns the position in the sequence.
    pub fn flags(&self) -> Result<RequestFlags, Error> {
        let mut flags = 0;
        // SAFETY: the request is alive.
        unsafe { check(TRITONBACKEND_RequestFlags(self.raw, &mut flags)) }?;
        Ok(RequestFlags(flags))
    }

    /// Returns the timeout of the request in microseconds; 0 means none.
    pub fn timeout_us(&self) -> Result<u64, Error> {
        let mut timeout = 0;
        // SAFETY: the request is alive.
        unsafe { check(TRITONBACKEND_InferenceRequestTimeoutMicroseconds(self.raw, &mut timeout)) }?;
        Ok(timeout)
    }

    /// Returns whether the request is cancelled. Long executions should poll it.
    pub fn is_cancelled(&self) -> bool {
        let mut cancelled = false;
        // SAFETY: the request is alive.
        unsafe { check(TRITONBACKEND_RequestIsCancelled(self.raw, &mut cancelled)) }.is_ok() && cancelled
    }

    /// Returns all parameters.
    pub fn parameters(&self) -> Result<Vec<(String, Parameter)>, Error> {
        let mut count = 0;
        // SAFETY: the request is alive.
        unsafe { check(TRITONBACKEND_RequestParameterCount(self.raw, &mut count)) }?;
        (0..count).map(|at| self.parameter_at(at)).collect()
    }

    /// Returns a parameter by name.
    pub fn parameter(&self, name: &str) -> Result<Option<Parameter>, Error> {
        Ok(self.parameters()?.into_iter().find(|(key, _)| key == name).map(|(_, value)| value))
    }

    fn parameter_at(&self, at: u32) -> Result<(String, Parameter), Error> {
        let (mut name, mut value) = (null(), null());
        let mut kind = 0;
        // SAFETY: the request is alive, and with it name and value; the value has the reported type.
        unsafe {
            check(TRITONBACKEND_RequestParameter(self.raw, at, &mut name, &mut kind, &mut value))?;
            Ok((text(name)?.to_string(), Parameter::read(kind, value)?))
        }
    }

    /// Writes a state of the sequence (`sequence_batching.state` of the configuration), which the next request of the sequence gets as an
    /// input.
    pub fn put_state<T: Element>(&self, name: &str, shape: &[i64], data: &[T]) -> Result<(), Error> {
        if data.len() != elements(shape)? {
            return Err(Error::invalid(format!(
                "state '{name}': shape {shape:?} does not have {} elements",
                data.len()
            )));
        }
        let c_name = c_name(name)?;
        let rank = u32::try_from(shape.len()).map_err(|_| Error::invalid("too many dimensions"))?;
        let size = std::mem::size_of_val(data);
        let (mut state, mut buffer) = (null_mut(), null_mut());
        let (mut memory, mut id) = (TRITONSERVER_MEMORY_CPU, 0);
        // SAFETY: the request is alive; the buffer has the size that was asked for.
        unsafe {
            check(TRITONBACKEND_StateNew(
                &mut state,
                self.raw,
                c_name.as_ptr(),
                T::DATA_TYPE.raw(),
                shape.as_ptr(),
                rank,
            ))?;
            check(TRITONBACKEND_StateBuffer(state, &mut buffer, size as u64, &mut memory, &mut id))?;
            if memory == TRITONSERVER_MEMORY_GPU {
                return Err(Error::unsupported(format!("state '{name}' is in GPU memory")));
            }
            if size > 0 {
                std::ptr::copy(data.as_ptr().cast::<u8>(), buffer.cast::<u8>(), size);
            }
            check(TRITONBACKEND_StateUpdate(state))
        }
    }

    /// Declares that further responses come from factories. Calling it is optional.
    ///
    /// The request is released when it is dropped and execute has returned. Its data is readable until then.
    pub fn release(&self) {
        self.account.give_up(self.raw);
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut TRITONBACKEND_Request {
        self.raw
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        drop(self.factory.take());
        for lines in self.memory.take() {
            // SAFETY: created by Box::into_raw, and no borrowed data is in use.
            drop(unsafe { Box::from_raw(lines) });
        }
        self.account.return_request(self.raw);
    }
}

/// The properties of an input.
#[derive(Clone, Copy, Debug)]
pub struct Properties<'r> {
    /// The name.
    pub name: &'r str,
    /// The element type.
    pub datatype: DataType,
    /// The shape. The batch is the first dimension if the model supports batches.
    pub shape: &'r [i64],
    /// The serialized size in bytes.
    pub byte_size: u64,
    /// The number of buffers.
    pub buffer_count: u32,
}

/// An input of a request.
#[derive(Clone, Copy)]
pub struct Input<'r> {
    raw: *mut TRITONBACKEND_Input,
    request: &'r Request,
}

impl<'r> Input<'r> {
    /// Returns name, type and shape.
    pub fn properties(&self) -> Result<Properties<'r>, Error> {
        let (mut name, mut shape) = (null(), null());
        let (mut datatype, mut rank, mut byte_size, mut buffer_count) = (0, 0, 0, 0);
        // SAFETY: the input lives as long as the request, and with it name and shape.
        unsafe {
            check(TRITONBACKEND_InputProperties(
                self.raw,
                &mut name,
                &mut datatype,
                &mut shape,
                &mut rank,
                &mut byte_size,
                &mut buffer_count,
            ))?;
            let shape = if rank == 0 { &[] } else { std::slice::from_raw_parts(shape, rank as usize) };
            Ok(Properties { name: text(name)?, datatype: DataType::from_raw(datatype), shape, byte_size, buffer_count })
        }
    }

    /// Returns the buffers in order.
    pub fn pieces(&self) -> Result<Vec<&'r [u8]>, Error> {
        let properties = self.properties()?;
        (0..properties.buffer_count).map(|at| self.piece(&properties, at)).collect()
    }

    fn piece(&self, properties: &Properties, at: u32) -> Result<&'r [u8], Error> {
        let mut data = null();
        let (mut size, mut memory, mut id) = (0, TRITONSERVER_MEMORY_CPU, 0);
        // SAFETY: the input lives as long as the request, and with it the pieces.
        unsafe {
            check(TRITONBACKEND_InputBuffer(self.raw, at, &mut data, &mut size, &mut memory, &mut id))?;
            if memory == TRITONSERVER_MEMORY_GPU {
                return Err(Error::unsupported(format!("input '{}' is in GPU memory", properties.name)));
            }
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            if size == 0 || data.is_null() {
                return Ok(&[]);
            }
            Ok(std::slice::from_raw_parts(data.cast(), size))
        }
    }

    /// Returns the serialized bytes of any type: in place if there is one buffer, otherwise concatenated.
    pub fn bytes(&self) -> Result<&'r [u8], Error> {
        self.aligned(1)
    }

    fn aligned(&self, alignment: usize) -> Result<&'r [u8], Error> {
        let pieces = self.pieces()?;
        if let [piece] = pieces[..] {
            if piece.as_ptr() as usize % alignment == 0 {
                return Ok(piece);
            }
        }
        let size: usize = pieces.iter().map(|piece| piece.len()).sum();
        if size == 0 {
            return Ok(&[]);
        }
        let lines: *mut [Line] = Box::into_raw(lines(size));
        self.request.memory.borrow_mut().push(lines);
        let base: *mut u8 = lines.cast();
        let mut at = 0;
        for piece in pieces {
            // SAFETY: the pieces fit, as their sizes were added up.
            unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), base.add(at), piece.len()) };
            at += piece.len();
        }
        // SAFETY: the lines are initialized, and stay where and as they are until the request is dropped, which outlives 'r.
        Ok(unsafe { std::slice::from_raw_parts(base, size) })
    }

    fn view(&self) -> Result<View<'r>, Error> {
        let Properties { name, datatype, shape, .. } = self.properties()?;
        Ok(View { what: "input", name, datatype, shape })
    }

    /// Returns the elements, row-major: in place if there is one aligned buffer, otherwise copied. INVALID_ARG if the input has another
    /// type, or its size does not match its shape.
    pub fn slice<T: Element>(&self) -> Result<&'r [T], Error> {
        let view = self.view()?;
        view.check_type(T::DATA_TYPE)?;
        view.slice(self.aligned(std::mem::align_of::<T>())?)
    }

    /// Returns the elements as an array of `N` dimensions, like [`slice`](Input::slice). INVALID_ARG if the rank differs.
    #[cfg(feature = "ndarray")]
    pub fn as_array<T: Element, const N: usize>(
        &self,
    ) -> Result<ndarray::ArrayView<'r, T, ndarray::Dim<[usize; N]>>, Error>
    where
        [usize; N]: ndarray::IntoDimension<Dim = ndarray::Dim<[usize; N]>>,
        ndarray::Dim<[usize; N]>: ndarray::Dimension,
    {
        self.view()?.array(self.aligned(std::mem::align_of::<T>())?)
    }

    /// Returns the strings of an input of type BYTES, as bytes. INVALID_ARG if their number does not match the shape.
    pub fn strings(&self) -> Result<Vec<&'r [u8]>, Error> {
        self.view()?.strings(self.bytes()?)
    }

    /// Returns the first string of an input of type BYTES. INVALID_ARG if there is none or it is not UTF-8.
    pub fn as_string(&self) -> Result<String, Error> {
        self.view()?.first_string(self.bytes()?)
    }

    /// Returns the first number of an input of type UINT64. INVALID_ARG if there is none.
    pub fn as_u64(&self) -> Result<u64, Error> {
        self.view()?.first(self.aligned(8)?)
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut TRITONBACKEND_Input {
        self.raw
    }
}
