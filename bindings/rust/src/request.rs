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

/// A request: what is asked, and a place for answers.
///
/// It is given back to the server when it is dropped, and then answered with an error if nobody did. What its inputs give lives as long
/// as it does. It goes from thread to thread, but is used by one at a time.
pub struct Request {
    raw: *mut TRITONBACKEND_Request,
    account: Arc<Account>,
    /// Inputs that were put together: they stay until the request goes, as references to them do.
    memory: RefCell<Vec<*mut [Line]>>,
    factory: OnceCell<Arc<FactoryInner>>,
}

// SAFETY: the server lets a request be used by any thread, by one at a time: it is not Sync.
unsafe impl Send for Request {}

/// What follows from the order in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFlags(u32);

impl RequestFlags {
    /// The first of its sequence.
    pub fn is_start(self) -> bool {
        self.0 & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START != 0
    }

    /// The last of its sequence.
    pub fn is_end(self) -> bool {
        self.0 & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END != 0
    }
}

/// The sequence that a request belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CorrelationId {
    /// By number; 0 is none.
    Number(u64),
    /// By name.
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

    /// The factory that responses of a decoupled model are made with, which lets them be counted.
    pub(crate) fn own_factory(&self) -> Result<Arc<FactoryInner>, Error> {
        if let Some(factory) = self.factory.get() {
            return Ok(factory.clone());
        }
        let made = FactoryInner::new(self)?;
        Ok(self.factory.get_or_init(|| made).clone())
    }

    /// An input by name. INVALID_ARG when there is none.
    pub fn get_input(&self, name: &str) -> Result<Input<'_>, Error> {
        let name = c_name(name)?;
        let mut raw = null_mut();
        // SAFETY: the request is alive.
        unsafe { check(TRITONBACKEND_RequestInput(self.raw, name.as_ptr(), &mut raw)) }?;
        Ok(Input { raw, request: self })
    }

    /// All inputs.
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

    /// The names of the outputs that are asked for.
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

    /// Its id; empty when it has none.
    pub fn id(&self) -> Result<&str, Error> {
        let mut id = null();
        // SAFETY: the request is alive, and with it the id.
        unsafe {
            check(TRITONBACKEND_RequestId(self.raw, &mut id))?;
            text(id)
        }
    }

    /// The sequence that it belongs to.
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

    /// Where in its sequence it is.
    pub fn flags(&self) -> Result<RequestFlags, Error> {
        let mut flags = 0;
        // SAFETY: the request is alive.
        unsafe { check(TRITONBACKEND_RequestFlags(self.raw, &mut flags)) }?;
        Ok(RequestFlags(flags))
    }

    /// Its own time limit in microseconds, 0 for none.
    pub fn timeout_us(&self) -> Result<u64, Error> {
        let mut timeout = 0;
        // SAFETY: the request is alive.
        unsafe { check(TRITONBACKEND_InferenceRequestTimeoutMicroseconds(self.raw, &mut timeout)) }?;
        Ok(timeout)
    }

    /// Whether whoever asked has given up. Long work looks now and then.
    pub fn is_cancelled(&self) -> bool {
        let mut cancelled = false;
        // SAFETY: the request is alive.
        unsafe { check(TRITONBACKEND_RequestIsCancelled(self.raw, &mut cancelled)) }.is_ok() && cancelled
    }

    /// All parameters.
    pub fn parameters(&self) -> Result<Vec<(String, Parameter)>, Error> {
        let mut count = 0;
        // SAFETY: the request is alive.
        unsafe { check(TRITONBACKEND_RequestParameterCount(self.raw, &mut count)) }?;
        (0..count).map(|at| self.parameter_at(at)).collect()
    }

    /// A parameter by name.
    pub fn parameter(&self, name: &str) -> Result<Option<Parameter>, Error> {
        Ok(self.parameters()?.into_iter().find(|(key, _)| key == name).map(|(_, value)| value))
    }

    fn parameter_at(&self, at: u32) -> Result<(String, Parameter), Error> {
        let (mut name, mut value) = (null(), null());
        let mut kind = 0;
        // SAFETY: the request is alive, and with it name and value; the value is of the type that is told.
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
                return Err(Error::unsupported(format!("state '{name}' lies in GPU memory")));
            }
            if size > 0 {
                std::ptr::copy(data.as_ptr().cast::<u8>(), buffer.cast::<u8>(), size);
            }
            check(TRITONBACKEND_StateUpdate(state))
        }
    }

    /// Says that this request makes no more responses: they come from factories. It need not be called.
    ///
    /// The server gets the request back when nobody can use it any more, that is, when it is dropped and execute has returned: what was read
    /// from it stays readable until then.
    pub fn release(&self) {
        self.account.give_up(self.raw);
    }

    /// The handle of the C interface.
    pub fn as_ptr(&self) -> *mut TRITONBACKEND_Request {
        self.raw
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        drop(self.factory.take());
        for lines in self.memory.take() {
            // SAFETY: made by Box::into_raw, and nothing that was borrowed from the request is left.
            drop(unsafe { Box::from_raw(lines) });
        }
        self.account.return_request(self.raw);
    }
}

/// What an input is.
#[derive(Clone, Copy, Debug)]
pub struct Properties<'r> {
    /// Its name.
    pub name: &'r str,
    /// The type of its elements.
    pub datatype: DataType,
    /// Its extents; the batch is the first, if the model takes batches.
    pub shape: &'r [i64],
    /// Its size on the wire.
    pub byte_size: u64,
    /// The number of pieces that it lies in.
    pub buffer_count: u32,
}

/// An input of a request.
#[derive(Clone, Copy)]
pub struct Input<'r> {
    raw: *mut TRITONBACKEND_Input,
    request: &'r Request,
}

impl<'r> Input<'r> {
    /// Name, type, shape.
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

    /// The pieces that it lies in, in order.
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
                return Err(Error::unsupported(format!("input '{}' lies in GPU memory", properties.name)));
            }
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            if size == 0 || data.is_null() {
                return Ok(&[]);
            }
            Ok(std::slice::from_raw_parts(data.cast(), size))
        }
    }

    /// The bytes as they came over the wire, of any type: in place when they lie in one piece, else put together.
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

    /// The elements, row-major: in place when they lie in one aligned piece, else put together. INVALID_ARG when the input has another
    /// type, or its bytes do not make up its shape.
    pub fn slice<T: Element>(&self) -> Result<&'r [T], Error> {
        let view = self.view()?;
        view.check_type(T::DATA_TYPE)?;
        view.slice(self.aligned(std::mem::align_of::<T>())?)
    }

    /// The elements as an array of `N` dimensions, in place as by [`slice`](Input::slice). INVALID_ARG when there are more or fewer.
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

    /// The strings of an input of type BYTES, as bytes. INVALID_ARG when they do not make up its shape.
    pub fn strings(&self) -> Result<Vec<&'r [u8]>, Error> {
        self.view()?.strings(self.bytes()?)
    }

    /// The first string of an input of type BYTES. INVALID_ARG when there is none or it is not UTF-8.
    pub fn as_string(&self) -> Result<String, Error> {
        self.view()?.first_string(self.bytes()?)
    }

    /// The first number of an input of type UINT64. INVALID_ARG when there is none.
    pub fn as_u64(&self) -> Result<u64, Error> {
        self.view()?.first(self.aligned(8)?)
    }

    /// The handle of the C interface.
    pub fn as_ptr(&self) -> *mut TRITONBACKEND_Input {
        self.raw
    }
}
