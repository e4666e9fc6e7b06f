// SPDX-License-Identifier: Apache-2.0
//! Inference by other models of the same server.
//!
//! Callbacks run on threads of the server, possibly during the start. A call ends when the final response and the release have arrived and no
//! callback is running. Outputs are in memory of this crate, so that no memory of the server outlives the call.
use crate::backend::guarded;
use crate::error::{c_name, c_text, check, text, Error};
use crate::model::{Server, ServerInner};
use crate::sys::*;
use crate::types::{elements, encode_strings, lines, DataType, Element, Line, Parameter, View};
use std::collections::VecDeque;
use std::ffi::CString;
use std::future::Future;
use std::pin::Pin;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll, Waker};

/// An inference request to another model of the same server.
///
/// ```no_run
/// use kelp_backend::{Error, InferenceRequest, Model};
///
/// fn doubled(model: &Model, values: &[f32]) -> Result<Vec<f32>, Error> {
///     let mut request = InferenceRequest::new(&model.server(), "scale", -1);
///     request.add_input("IN", &[values.len() as i64], values)?;
///     request.add_output("OUT")?;
///     let response = request.start()?.wait()?; // or `.await`
///     Ok(response.output("OUT")?.slice::<f32>()?.to_vec())
/// }
/// ```
pub struct InferenceRequest {
    server: Server,
    model: String,
    version: i64,
    id: String,
    correlation: Option<Result<u64, String>>,
    flags: u32,
    priority: u64,
    timeout_us: u64,
    inputs: Vec<Tensor>,
    outputs: Vec<CString>,
    parameters: Vec<(CString, Parameter)>,
}

struct Tensor {
    name: CString,
    datatype: DataType,
    shape: Vec<i64>,
    data: Memory,
}

impl InferenceRequest {
    /// Creates a request to a model; version -1 uses its version policy.
    pub fn new(server: &Server, model: &str, version: i64) -> Self {
        Self {
            server: server.clone(),
            model: model.to_string(),
            version,
            id: String::new(),
            correlation: None,
            flags: 0,
            priority: 0,
            timeout_us: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            parameters: Vec::new(),
        }
    }

    /// Adds an input with a copy of `data`, row-major.
    pub fn add_input<T: Element>(&mut self, name: &str, shape: &[i64], data: &[T]) -> Result<(), Error> {
        if elements(shape)? != data.len() {
            return Err(Error::invalid(format!(
                "input '{name}': shape {shape:?} does not have {} elements",
                data.len()
            )));
        }
        // SAFETY: elements have no padding.
        let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), std::mem::size_of_val(data)) };
        self.add_bytes(name, T::DATA_TYPE, shape, bytes)
    }

    /// Adds an input of strings.
    pub fn add_strings<S: AsRef<[u8]>>(&mut self, name: &str, shape: &[i64], strings: &[S]) -> Result<(), Error> {
        self.add_bytes(name, DataType::Bytes, shape, &encode_strings(strings)?)
    }

    /// Adds an input from serialized bytes.
    pub fn add_bytes(&mut self, name: &str, datatype: DataType, shape: &[i64], bytes: &[u8]) -> Result<(), Error> {
        let data = Memory::new(bytes.len());
        // SAFETY: the memory is new and has that size.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data.base(), bytes.len()) };
        self.inputs.push(Tensor { name: c_name(name)?, datatype, shape: shape.to_vec(), data });
        Ok(())
    }

    /// Requests an output. Without requested outputs, the response contains all.
    pub fn add_output(&mut self, name: &str) -> Result<(), Error> {
        self.outputs.push(c_name(name)?);
        Ok(())
    }

    /// Sets the id.
    pub fn set_id(&mut self, id: &str) {
        self.id = id.to_string();
    }

    /// Sets the sequence by number, with flags for its first and last request.
    pub fn set_sequence(&mut self, id: u64, is_start: bool, is_end: bool) {
        self.correlation = Some(Ok(id));
        self.flags = if is_start { TRITONSERVER_REQUEST_FLAG_SEQUENCE_START } else { 0 }
            | if is_end { TRITONSERVER_REQUEST_FLAG_SEQUENCE_END } else { 0 };
    }

    /// Sets the sequence by name.
    pub fn set_named_sequence(&mut self, id: &str, is_start: bool, is_end: bool) {
        self.set_sequence(0, is_start, is_end);
        self.correlation = Some(Err(id.to_string()));
    }

    /// Sets the queue priority; 0 is the default of the model.
    pub fn set_priority(&mut self, priority: u64) {
        self.priority = priority;
    }

    /// Sets the queue timeout in microseconds; 0 is unlimited.
    pub fn set_timeout_us(&mut self, timeout_us: u64) {
        self.timeout_us = timeout_us;
    }

    /// Adds a parameter.
    pub fn set_parameter(&mut self, name: &str, value: impl Into<Parameter>) -> Result<(), Error> {
        self.parameters.push((c_name(name)?, value.into()));
        Ok(())
    }

    /// Starts the inference and returns. Waiting for a model that needs the current instance is a deadlock.
    pub fn start(self) -> Result<InferenceCall, Error> {
        Ok(InferenceCall { state: self.launch(None)? })
    }

    /// Starts the inference and returns. `tell` is called on threads of the server, one call at a time: with each response, and with
    /// `None` at the end, possibly before this function returns. A panic in it is logged.
    pub fn start_with(
        self,
        tell: impl FnMut(Option<Result<InferenceResponse, Error>>) + Send + 'static,
    ) -> Result<(), Error> {
        self.launch(Some(Box::new(tell))).map(drop)
    }

    fn launch(self, tell: Option<Tell>) -> Result<Arc<CallState>, Error> {
        let server = self.server.inner.clone();
        let state = Arc::new(CallState {
            server: server.clone(),
            inputs: self.inputs,
            progress: Mutex::default(),
            arrived: Mutex::default(),
            changed: Condvar::new(),
            tell: Mutex::new(tell),
        });
        let (model, id) = (c_name(&self.model)?, c_text(&self.id));
        server.start(|raw_server| {
            let mut raw = null_mut();
            // SAFETY: the server is alive during the start and while a call is in flight; texts are copied; data is borrowed, and
            // `state` keeps it until the request is released.
            unsafe {
                check(TRITONSERVER_InferenceRequestNew(&mut raw, raw_server, model.as_ptr(), self.version))
                    .map_err(|error| error.context(format!("cannot run model '{}'", self.model)))?;
                state.lock().raw = raw;
                let prepared = (|| {
                    check(TRITONSERVER_InferenceRequestSetId(raw, id.as_ptr()))?;
                    match &self.correlation {
                        Some(Ok(number)) => check(TRITONSERVER_InferenceRequestSetCorrelationId(raw, *number))?,
                        Some(Err(name)) => {
                            let name = c_text(name);
                            check(TRITONSERVER_InferenceRequestSetCorrelationIdString(raw, name.as_ptr()))?;
                        }
                        None => {}
                    }
                    check(TRITONSERVER_InferenceRequestSetFlags(raw, self.flags))?;
                    check(TRITONSERVER_InferenceRequestSetPriorityUInt64(raw, self.priority))?;
                    check(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(raw, self.timeout_us))?;
                    for (name, value) in &self.parameters {
                        set_parameter(raw, name, value)?;
                    }
                    state.add_inputs(raw)?;
                    for name in &self.outputs {
                        check(TRITONSERVER_InferenceRequestAddRequestedOutput(raw, name.as_ptr()))?;
                    }
                    state.clone().submit(raw_server, raw)
                })();
                if prepared.is_err() {
                    state.lock().raw = null_mut();
                    check(TRITONSERVER_InferenceRequestDelete(raw))?;
                }
                prepared
            }
        })?;
        Ok(state)
    }
}

unsafe fn set_parameter(
    raw: *mut TRITONSERVER_InferenceRequest,
    name: &CString,
    value: &Parameter,
) -> Result<(), Error> {
    let name = name.as_ptr();
    // SAFETY: the request is alive; texts are copied.
    unsafe {
        check(match value {
            Parameter::Text(value) => {
                TRITONSERVER_InferenceRequestSetStringParameter(raw, name, c_text(value).as_ptr())
            }
            Parameter::Int(value) => TRITONSERVER_InferenceRequestSetIntParameter(raw, name, *value),
            Parameter::Bool(value) => TRITONSERVER_InferenceRequestSetBoolParameter(raw, name, *value),
            Parameter::Double(value) => TRITONSERVER_InferenceRequestSetDoubleParameter(raw, name, *value),
        })
    }
}

// ---- memory ----

/// Aligned memory that is written once and then only read.
struct Memory {
    lines: *mut [Line],
    size: usize,
}

// SAFETY: it is owned, and only read once it is shared.
unsafe impl Send for Memory {}
unsafe impl Sync for Memory {}

impl Memory {
    fn new(size: usize) -> Self {
        Self { lines: Box::into_raw(lines(size)), size }
    }

    fn base(&self) -> *mut u8 {
        self.lines.cast()
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the lines are initialized and at least that many bytes.
        unsafe { std::slice::from_raw_parts(self.base(), self.size) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: made by Box::into_raw.
        drop(unsafe { Box::from_raw(self.lines) });
    }
}

unsafe extern "C" fn allocate(
    _allocator: *mut TRITONSERVER_ResponseAllocator,
    _name: *const c_char,
    size: usize,
    _memory: TRITONSERVER_MemoryType,
    _id: i64,
    _userp: *mut c_void,
    buffer: *mut *mut c_void,
    buffer_userp: *mut *mut c_void,
    actual_memory: *mut TRITONSERVER_MemoryType,
    actual_id: *mut i64,
) -> *mut TRITONSERVER_Error {
    // SAFETY: the outputs are the server's.
    unsafe {
        *buffer = null_mut();
        *buffer_userp = null_mut();
        *actual_memory = TRITONSERVER_MEMORY_CPU;
        *actual_id = 0;
        if size > 0 {
            let memory = Arc::new(Memory::new(size));
            *buffer = memory.base().cast();
            *buffer_userp = Arc::into_raw(memory) as *mut c_void;
        }
    }
    null_mut()
}

unsafe extern "C" fn give_back(
    _allocator: *mut TRITONSERVER_ResponseAllocator,
    _buffer: *mut c_void,
    buffer_userp: *mut c_void,
    _size: usize,
    _memory: TRITONSERVER_MemoryType,
    _id: i64,
) -> *mut TRITONSERVER_Error {
    if !buffer_userp.is_null() {
        // SAFETY: `allocate` created it; called once.
        drop(unsafe { Arc::from_raw(buffer_userp.cast::<Memory>()) });
    }
    null_mut()
}

/// The allocator of all calls. It has no state and is never deleted.
fn allocator() -> Result<*mut TRITONSERVER_ResponseAllocator, Error> {
    struct Shared(*mut TRITONSERVER_ResponseAllocator);
    // SAFETY: it is only passed to the server, which uses it on any thread.
    unsafe impl Send for Shared {}
    unsafe impl Sync for Shared {}
    static ALLOCATOR: OnceLock<Result<Shared, Error>> = OnceLock::new();
    let made = ALLOCATOR.get_or_init(|| {
        let mut raw = null_mut();
        // SAFETY: the functions stay as long as this library.
        unsafe { check(TRITONSERVER_ResponseAllocatorNew(&mut raw, Some(allocate), Some(give_back), None)) }?;
        Ok(Shared(raw))
    });
    made.as_ref().map(|shared| shared.0).map_err(Error::clone)
}

// ---- responses ----

/// A response of another model.
pub struct InferenceResponse {
    id: String,
    parameters: Vec<(String, Parameter)>,
    outputs: Vec<InferenceOutput>,
}

impl InferenceResponse {
    /// Returns the id of the request.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> &[(String, Parameter)] {
        &self.parameters
    }

    /// Returns the outputs.
    pub fn outputs(&self) -> &[InferenceOutput] {
        &self.outputs
    }

    /// Returns an output by name. NOT_FOUND if there is none.
    pub fn output(&self, name: &str) -> Result<&InferenceOutput, Error> {
        let found = self.outputs.iter().find(|output| output.name == name);
        let missing = || Error::new(crate::ErrorCode::NotFound, format!("the response has no output '{name}'"));
        found.ok_or_else(missing)
    }

    /// Copies a response of the server.
    ///
    /// # Safety
    /// The response is alive and was created with the allocator of this crate.
    unsafe fn read(raw: *mut TRITONSERVER_InferenceResponse) -> Result<Self, Error> {
        let (mut id, mut count, mut parameter_count) = (null(), 0, 0);
        // SAFETY: the response is alive; texts are copied.
        unsafe {
            check(TRITONSERVER_InferenceResponseError(raw))?;
            check(TRITONSERVER_InferenceResponseId(raw, &mut id))?;
            check(TRITONSERVER_InferenceResponseOutputCount(raw, &mut count))?;
            check(TRITONSERVER_InferenceResponseParameterCount(raw, &mut parameter_count))?;
            Ok(Self {
                id: text(id)?.to_string(),
                parameters: (0..parameter_count).map(|at| read_parameter(raw, at)).collect::<Result<_, _>>()?,
                outputs: (0..count).map(|at| InferenceOutput::read(raw, at)).collect::<Result<_, _>>()?,
            })
        }
    }
}

unsafe fn read_parameter(raw: *mut TRITONSERVER_InferenceResponse, at: u32) -> Result<(String, Parameter), Error> {
    let (mut name, mut value, mut kind) = (null(), null(), 0);
    // SAFETY: the response is alive; name and value are copied.
    unsafe {
        check(TRITONSERVER_InferenceResponseParameter(raw, at, &mut name, &mut kind, &mut value))?;
        Ok((text(name)?.to_string(), Parameter::read(kind, value)?))
    }
}

/// An output of another model.
pub struct InferenceOutput {
    name: String,
    datatype: DataType,
    shape: Vec<i64>,
    data: Option<Arc<Memory>>,
    size: usize,
}

impl InferenceOutput {
    /// # Safety
    /// The response is alive and was created with the allocator of this crate.
    unsafe fn read(raw: *mut TRITONSERVER_InferenceResponse, at: u32) -> Result<Self, Error> {
        let (mut name, mut shape, mut base, mut userp) = (null(), null(), null(), null_mut());
        let (mut datatype, mut rank, mut size, mut memory, mut id) = (0, 0, 0, 0, 0);
        // SAFETY: the response is alive; `allocate` set `userp`, whose count is increased.
        unsafe {
            check(TRITONSERVER_InferenceResponseOutput(
                raw,
                at,
                &mut name,
                &mut datatype,
                &mut shape,
                &mut rank,
                &mut base,
                &mut size,
                &mut memory,
                &mut id,
                &mut userp,
            ))?;
            let data = (!userp.is_null()).then(|| {
                let data = userp.cast_const().cast::<Memory>();
                Arc::increment_strong_count(data);
                Arc::from_raw(data)
            });
            if size > data.as_ref().map_or(0, |data| data.size) {
                return Err(Error::internal("an output is larger than its memory"));
            }
            let shape = if rank == 0 { &[] } else { std::slice::from_raw_parts(shape, rank as usize) };
            let name = text(name)?.to_string();
            Ok(Self { name, datatype: DataType::from_raw(datatype), shape: shape.to_vec(), data, size })
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the element type.
    pub fn datatype(&self) -> DataType {
        self.datatype
    }

    /// Returns the shape.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Returns the serialized bytes.
    pub fn bytes(&self) -> &[u8] {
        self.data.as_ref().map_or(&[], |data| &data.bytes()[..self.size])
    }

    fn view(&self) -> View<'_> {
        View { what: "output", name: &self.name, datatype: self.datatype, shape: &self.shape }
    }

    /// Returns the elements, row-major. INVALID_ARG if the output has another type.
    pub fn slice<T: Element>(&self) -> Result<&[T], Error> {
        self.view().slice(self.bytes())
    }

    /// Returns the elements as an array of `N` dimensions.
    #[cfg(feature = "ndarray")]
    pub fn as_array<T: Element, const N: usize>(
        &self,
    ) -> Result<ndarray::ArrayView<'_, T, ndarray::Dim<[usize; N]>>, Error>
    where
        [usize; N]: ndarray::IntoDimension<Dim = ndarray::Dim<[usize; N]>>,
        ndarray::Dim<[usize; N]>: ndarray::Dimension,
    {
        self.view().array(self.bytes())
    }

    /// Returns the strings of an output of type BYTES.
    pub fn strings(&self) -> Result<Vec<&[u8]>, Error> {
        self.view().strings(self.bytes())
    }

    /// Returns the first string of an output of type BYTES.
    pub fn as_string(&self) -> Result<String, Error> {
        self.view().first_string(self.bytes())
    }
}

// ---- the call ----

type Tell = Box<dyn FnMut(Option<Result<InferenceResponse, Error>>) + Send>;

struct CallState {
    server: Arc<ServerInner>,
    inputs: Vec<Tensor>,
    progress: Mutex<Progress>,
    arrived: Mutex<Arrived>,
    changed: Condvar,
    tell: Mutex<Option<Tell>>,
}

/// The state of a call in the server.
struct Progress {
    /// NULL after deletion.
    raw: *mut TRITONSERVER_InferenceRequest,
    /// The number of users of `raw` outside the lock.
    users: usize,
    /// The number of running callbacks.
    active: usize,
    is_final: bool,
    released: bool,
    over: bool,
}

impl Default for Progress {
    fn default() -> Self {
        Self { raw: null_mut(), users: 0, active: 0, is_final: false, released: false, over: false }
    }
}

// SAFETY: the request is used under the rules of Progress.
unsafe impl Send for Progress {}

/// Responses that have arrived and were not taken.
#[derive(Default)]
struct Arrived {
    responses: VecDeque<Result<InferenceResponse, Error>>,
    over: bool,
    waker: Option<Waker>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl CallState {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        lock(&self.progress)
    }

    unsafe fn add_inputs(&self, raw: *mut TRITONSERVER_InferenceRequest) -> Result<(), Error> {
        for input in &self.inputs {
            // SAFETY: name and shape are copied, and this object keeps the data.
            unsafe {
                check(TRITONSERVER_InferenceRequestAddInput(
                    raw,
                    input.name.as_ptr(),
                    input.datatype.raw(),
                    input.shape.as_ptr(),
                    input.shape.len() as u64,
                ))?;
                check(TRITONSERVER_InferenceRequestAppendInputData(
                    raw,
                    input.name.as_ptr(),
                    input.data.base().cast(),
                    input.data.size,
                    TRITONSERVER_MEMORY_CPU,
                    0,
                ))?;
            }
        }
        Ok(())
    }

    /// Submits the request to the server, with a reference that is released at the end.
    unsafe fn submit(
        self: Arc<Self>,
        server: *mut TRITONSERVER_Server,
        raw: *mut TRITONSERVER_InferenceRequest,
    ) -> Result<(), Error> {
        let userp = Arc::as_ptr(&self) as *mut c_void;
        // SAFETY: the callbacks run until the end, and the reference lives until then.
        unsafe {
            check(TRITONSERVER_InferenceRequestSetReleaseCallback(raw, Some(on_release), userp))?;
            let allocator = allocator()?;
            check(TRITONSERVER_InferenceRequestSetResponseCallback(raw, allocator, userp, Some(on_response), userp))?;
            std::mem::forget(self.clone());
            let started = check(TRITONSERVER_ServerInferAsync(server, raw, null_mut()));
            if started.is_err() {
                Arc::decrement_strong_count(Arc::as_ptr(&self));
            }
            started
        }
    }

    fn deliver(&self, response: Result<InferenceResponse, Error>) {
        if let Some(tell) = lock(&self.tell).as_mut() {
            return self.call(tell, Some(response));
        }
        let mut arrived = lock(&self.arrived);
        arrived.responses.push_back(response);
        self.wake(arrived);
    }

    fn wake(&self, mut arrived: MutexGuard<'_, Arrived>) {
        let waker = arrived.waker.take();
        drop(arrived);
        self.changed.notify_all();
        if let Some(waker) = waker {
            let _ = guarded(|| {
                waker.wake();
                Ok(())
            });
        }
    }

    fn call(&self, tell: &mut Tell, what: Option<Result<InferenceResponse, Error>>) {
        self.server.inside(|| {
            let told = guarded(|| {
                tell(what);
                Ok(())
            });
            if let Err(error) = told {
                crate::account::log_failure("in a callback of a call", &error);
            }
        });
    }

    /// Ends an event. The last one ends the call.
    fn step(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.lock();
        change(&mut progress);
        if progress.over || !(progress.is_final && progress.released && progress.active == 0) {
            return;
        }
        progress.over = true;
        drop(progress);
        let tell = lock(&self.tell).take();
        if let Some(mut tell) = tell {
            self.call(&mut tell, None);
            self.server.inside(|| {
                let _ = guarded(|| {
                    drop(tell);
                    Ok(())
                });
            });
        }
        self.delete_request();
        let mut arrived = lock(&self.arrived);
        arrived.over = true;
        self.wake(arrived);
        self.server.over();
        // SAFETY: the reference of `submit`; the caller holds another.
        unsafe { Arc::decrement_strong_count(self) };
    }

    /// Deletes the request if the call has ended and it has no users.
    fn delete_request(&self) {
        let mut progress = self.lock();
        if !progress.over || progress.users > 0 || progress.raw.is_null() {
            return;
        }
        let raw = std::mem::replace(&mut progress.raw, null_mut());
        drop(progress);
        // SAFETY: the server has released it.
        if let Err(error) = unsafe { check(TRITONSERVER_InferenceRequestDelete(raw)) } {
            crate::account::log_failure("cannot delete a request", &error);
        }
    }

    fn cancel(&self) {
        let mut progress = self.lock();
        if progress.over || progress.raw.is_null() {
            return;
        }
        progress.users += 1;
        let raw = progress.raw;
        drop(progress);
        // SAFETY: it is not deleted while it has users; any thread may cancel. The call may end meanwhile, on this very thread.
        if let Err(error) = unsafe { check(TRITONSERVER_InferenceRequestCancel(raw)) } {
            crate::account::log_failure("cannot cancel a request", &error);
        }
        self.lock().users -= 1;
        self.delete_request();
    }
}

/// Returns a reference for the duration of a callback.
unsafe fn borrowed(userp: *mut c_void) -> Arc<CallState> {
    let state = userp.cast_const().cast::<CallState>();
    // SAFETY: the reference of `submit` lives until the end, and this is before.
    unsafe {
        Arc::increment_strong_count(state);
        Arc::from_raw(state)
    }
}

unsafe extern "C" fn on_release(_raw: *mut TRITONSERVER_InferenceRequest, _flags: u32, userp: *mut c_void) {
    // SAFETY: see `borrowed`.
    let state = unsafe { borrowed(userp) };
    state.step(|progress| progress.released = true);
}

unsafe extern "C" fn on_response(raw: *mut TRITONSERVER_InferenceResponse, flags: u32, userp: *mut c_void) {
    // SAFETY: see `borrowed`.
    let state = unsafe { borrowed(userp) };
    state.lock().active += 1;
    if !raw.is_null() {
        // SAFETY: this function owns the response and deletes it.
        let response = unsafe {
            let response = InferenceResponse::read(raw);
            let deleted = check(TRITONSERVER_InferenceResponseDelete(raw));
            response.and_then(|response| deleted.map(|()| response))
        };
        state.deliver(response);
    }
    state.step(|progress| {
        progress.active -= 1;
        progress.is_final |= flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL != 0;
    });
}

/// An inference by another model in flight. Dropping it cancels the inference.
///
/// It can be awaited ([`Future`]), waited for ([`wait`](InferenceCall::wait)), or, if the model sends several responses, iterated over:
/// each step blocks until the next response arrives.
pub struct InferenceCall {
    state: Arc<CallState>,
}

impl InferenceCall {
    /// Blocks until the call has ended, and returns its first response. INTERNAL if there was none.
    pub fn wait(mut self) -> Result<InferenceResponse, Error> {
        let mut arrived = lock(&self.state.arrived);
        while !arrived.over {
            arrived = self.state.changed.wait(arrived).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        drop(arrived);
        self.next().unwrap_or_else(|| Err(no_answer()))
    }

    /// Cancels the inference. Responses that have arrived can still be taken.
    pub fn cancel(&self) {
        self.state.cancel();
    }

    /// Polls for the next response, or `None` at the end. For asynchronous streams.
    pub fn poll_response(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<InferenceResponse, Error>>> {
        let mut arrived = lock(&self.state.arrived);
        if let Some(response) = arrived.responses.pop_front() {
            return Poll::Ready(Some(response));
        }
        if arrived.over {
            return Poll::Ready(None);
        }
        arrived.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

fn no_answer() -> Error {
    Error::internal("the call returned no response")
}

impl Iterator for InferenceCall {
    type Item = Result<InferenceResponse, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut arrived = lock(&self.state.arrived);
        loop {
            if let Some(response) = arrived.responses.pop_front() {
                return Some(response);
            }
            if arrived.over {
                return None;
            }
            arrived = self.state.changed.wait(arrived).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

/// The first response.
impl Future for InferenceCall {
    type Output = Result<InferenceResponse, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_response(context).map(|response| response.unwrap_or_else(|| Err(no_answer())))
    }
}

impl Drop for InferenceCall {
    fn drop(&mut self) {
        self.state.cancel();
    }
}
