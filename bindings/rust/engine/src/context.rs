// SPDX-License-Identifier: Apache-2.0
//! Execution contexts, with tensors that are bound by address.
use crate::engine::{Engine, TensorInfo};
use crate::error::{check, invalid, Error, Result};
use crate::stream::Stream;
use crate::sys;
use crate::types::{DataType, Dims, Element};
use std::cell::{Cell, RefCell};
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

/// An address of a tensor: `*const T` for inputs, `*mut T` for inputs and outputs. `T` is an [`Element`] that stores the elements of
/// the tensor, or `c_void`.
pub trait TensorAddress: sealed::Sealed {}

mod sealed {
    use super::*;

    pub trait Sealed: Copy {
        fn address(self) -> *mut sys::c_void;
        fn writable() -> bool;
        /// The element type has this name, and true if it stores a type.
        fn check(data_type: Option<DataType>) -> (&'static str, bool);
    }

    macro_rules! addresses {
        ($($pointer:ty: $writable:literal $(where $element:ident)?;)*) => {
            $(
                impl$(<$element: Element>)? Sealed for $pointer {
                    fn address(self) -> *mut sys::c_void {
                        self.cast_mut().cast()
                    }
                    fn writable() -> bool {
                        $writable
                    }
                    fn check(_data_type: Option<DataType>) -> (&'static str, bool) {
                        let stores = true $(&& _data_type.is_some_and($element::stores))?;
                        (std::any::type_name::<$pointer>(), stores)
                    }
                }
                impl$(<$element: Element>)? TensorAddress for $pointer {}
            )*
        };
    }
    trait CastMut {
        type Mutable;
        fn cast_mut(self) -> Self::Mutable;
    }
    impl<T> CastMut for *mut T {
        type Mutable = *mut T;
        fn cast_mut(self) -> *mut T {
            self
        }
    }
    addresses! {
        *const T: false where T;
        *mut T: true where T;
        *const sys::c_void: false;
        *mut sys::c_void: true;
    }
}

/// An input as it is bound before a run.
#[derive(Clone, Copy)]
pub(crate) struct Input {
    pub(crate) address: *mut sys::c_void,
    pub(crate) dims: Option<Dims>,
}

/// An output as it is bound before a run. NULL: the context provides the memory.
#[derive(Clone, Copy)]
pub(crate) struct Output {
    pub(crate) address: *mut sys::c_void,
    pub(crate) capacity: usize,
}

/// The bindings of a run.
#[derive(Clone)]
pub(crate) struct Table {
    /// Identifies the table among those of a context.
    owner: u64,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<Output>,
}

impl Table {
    pub(crate) fn new(engine: &Engine, owner: u64) -> Self {
        let inputs = engine.inputs().iter().map(|each| Input { address: null_mut(), dims: each.dims });
        let outputs = vec![Output { address: null_mut(), capacity: 0 }; engine.outputs().len()];
        Self { owner, inputs: inputs.collect(), outputs }
    }
}

/// Runs inferences, one at a time. Can be moved to another thread, but not shared. Borrows its engine.
///
/// There are two ways to bind tensors. [`bindings`](Self::bindings) borrows slices, and the compiler checks that they live long enough.
/// [`set_tensor_address`](Self::set_tensor_address) takes addresses of any memory, as TensorRT does, and is `unsafe`;
/// [`enqueue_v3`](Self::enqueue_v3) and [`execute_v2`](Self::execute_v2) run with these addresses.
///
/// A function that uses the context waits first for an inference that was enqueued; so does dropping it.
pub struct ExecutionContext<'a> {
    raw: *mut sys::kelp_context,
    event: *mut sys::kelp_event,
    engine: &'a Engine,
    enqueued: Cell<bool>,
    table: RefCell<Table>,
    /// Counts changes of tables.
    generation: Cell<u64>,
    /// The owner of the table that the C context has bound, and its generation.
    bound: Cell<(u64, u64)>,
}

// SAFETY: a context is used by one thread at a time, since it is not Sync. Addresses in the table are those for which the caller of
// set_tensor_address guarantees.
unsafe impl Send for ExecutionContext<'_> {}

impl<'a> ExecutionContext<'a> {
    pub(crate) fn new(engine: &'a Engine) -> Result<Self> {
        let mut event = null_mut();
        // SAFETY: the arguments are valid.
        check(unsafe { sys::kelp_event_create(sys::kelp_allocator_system(), &mut event) }, Error::Engine)?;
        let raw = engine.create_raw_context().inspect_err(|_| {
            // SAFETY: the event is not used.
            unsafe { sys::kelp_event_destroy(event) }
        })?;
        let table = RefCell::new(Table::new(engine, 0));
        Ok(Self {
            raw,
            event,
            engine,
            enqueued: Cell::new(false),
            table,
            generation: Cell::new(1),
            bound: Cell::new((0, 0)),
        })
    }

    /// Returns the engine.
    pub fn engine(&self) -> &'a Engine {
        self.engine
    }

    /// Sets the shape of an input with dynamic dimensions.
    pub fn set_input_shape(&self, name: &str, dims: impl Into<Dims>) -> Result<()> {
        let (index, dims) = (find(self.engine.inputs(), "input", name)?, dims.into());
        check_shape(&self.engine.inputs()[index], &dims)?;
        self.table.borrow_mut().inputs[index].dims = Some(dims);
        self.changed();
        Ok(())
    }

    /// Sets the address of an input, or of an output. If an input and an output have the same name, the input is meant. Fails if the
    /// address is NULL, if its type does not store the elements of the tensor, or if it is `*const` and the tensor is an output.
    ///
    /// # Safety
    ///
    /// For every inference that runs with this address, until the tensor gets another one:
    /// - the memory must be valid for the tensor, whose size follows from its shape;
    /// - during the inference, nobody may write to inputs or use outputs in any way. An inference that was enqueued ends at the latest
    ///   when its stream is synchronized or the context is dropped;
    /// - elements must be valid for their type: a bool is 0 or 1, and the bytes of a string are readable.
    ///
    /// For an engine on a device, memory may also be memory of that device.
    pub unsafe fn set_tensor_address<A: TensorAddress>(&self, name: &str, address: A) -> Result<()> {
        let (input, output) = (find(self.engine.inputs(), "input", name), find(self.engine.outputs(), "tensor", name));
        let info = match (&input, &output) {
            (Ok(index), _) => &self.engine.inputs()[*index],
            (_, Ok(index)) => &self.engine.outputs()[*index],
            (_, Err(error)) => return Err(error.clone()),
        };
        let (found, stores) = A::check(info.data_type);
        if !stores {
            let expected = info.data_type.map_or("unknown", DataType::name);
            return invalid(format!(
                "tensor '{name}' has elements of type {expected}: found an address of type {found}"
            ));
        }
        if address.address().is_null() {
            return invalid(format!("the address of tensor '{name}' is NULL"));
        }
        if input.is_err() && !A::writable() {
            return invalid(format!("output '{name}' needs a mutable address: found {found}"));
        }
        let mut table = self.table.borrow_mut();
        match (input, output) {
            (Ok(index), _) => table.inputs[index].address = address.address(),
            // The caller guarantees that the memory is large enough.
            (_, Ok(index)) => {
                table.outputs[index] = Output { address: address.address(), capacity: isize::MAX as usize }
            }
            (_, Err(error)) => return Err(error),
        }
        drop(table);
        self.changed();
        Ok(())
    }

    /// Returns the shape of a tensor: of an input as it is set, of an output as it follows from the inputs, which need addresses;
    /// `None` if it depends on data.
    pub fn tensor_shape(&self, name: &str) -> Result<Option<Dims>> {
        if let Ok(index) = find(self.engine.inputs(), "input", name) {
            return Ok(self.table.borrow().inputs[index].dims);
        }
        let index = find(self.engine.outputs(), "tensor", name)?;
        self.apply_own()?;
        // SAFETY: the context is valid and does not run.
        check(unsafe { sys::kelp_context_prepare(self.raw) }, Error::Engine)?;
        let output = self.output(index);
        Ok(Dims::from_raw(output.rank, &output.shape))
    }

    /// Selects an optimization profile, 0 by default.
    pub fn set_optimization_profile(&self, profile: usize) -> Result<()> {
        self.wait();
        self.changed();
        // SAFETY: the context is valid and does not run.
        check(unsafe { sys::kelp_context_set_profile(self.raw, profile) }, Error::Engine)
    }

    /// Enqueues an inference with the addresses that are set. [`Stream::synchronize`] returns its failure.
    pub fn enqueue_v3(&self, stream: &Stream) -> Result<()> {
        self.apply_addresses()?;
        self.enqueue(stream)
    }

    /// Runs an inference with the addresses that are set, and returns when it has finished.
    pub fn execute_v2(&self) -> Result<()> {
        self.apply_addresses()?;
        self.invoke()
    }

    /// Records an inference with the shapes and addresses that are set, like a CUDA graph. Setting a shape, an address or a profile
    /// invalidates the recording.
    pub fn capture(&self) -> Result<Capture<'_>> {
        self.apply_addresses()?;
        Capture::new(self)
    }

    /// Returns bindings of slices, which live as long as the bindings.
    pub fn bindings(&mut self) -> crate::Bindings<'_, '_> {
        crate::Bindings::new(self)
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut sys::kelp_context {
        self.raw
    }

    /// Waits for an inference that was enqueued.
    pub(crate) fn wait(&self) {
        if self.enqueued.replace(false) {
            // SAFETY: the event is valid.
            unsafe { sys::kelp_event_wait(self.event, u64::MAX) };
        }
    }

    /// Counts a change of a table. Returns the new generation.
    pub(crate) fn changed(&self) -> u64 {
        self.generation.set(self.generation.get() + 1);
        self.generation.get()
    }

    fn apply_addresses(&self) -> Result<()> {
        let table = self.table.borrow();
        if let Some(index) = table.outputs.iter().position(|output| output.address.is_null()) {
            return Err(Error::Engine(format!("output '{}' has no address", self.engine.outputs()[index].name)));
        }
        drop(table);
        self.apply_own()
    }

    fn apply_own(&self) -> Result<()> {
        self.apply(&self.table.borrow())
    }

    /// Binds the tensors of a table, unless they are bound. Every run does so: an address of bindings that were dropped is never used.
    pub(crate) fn apply(&self, table: &Table) -> Result<()> {
        self.wait();
        let wanted = (table.owner, self.generation.get());
        if self.bound.get() == wanted {
            return Ok(());
        }
        for (index, (input, info)) in table.inputs.iter().zip(self.engine.inputs()).enumerate() {
            self.apply_input(index, input, info)?;
        }
        for (index, output) in table.outputs.iter().enumerate() {
            // SAFETY: the context is valid and does not run; the memory is valid during the inference.
            let status = unsafe { sys::kelp_context_set_output(self.raw, index, output.address, output.capacity) };
            check(status, Error::Engine)?;
        }
        self.bound.set(wanted);
        Ok(())
    }

    fn apply_input(&self, index: usize, input: &Input, info: &TensorInfo) -> Result<()> {
        if input.address.is_null() {
            return Err(Error::Engine(format!("input '{}' has no address", info.name)));
        }
        let dims = match &input.dims {
            Some(dims) if dims.elements().is_some() => dims,
            _ => return Err(Error::Engine(format!("input '{}' needs a shape", info.name))),
        };
        let dtype = info.data_type.map_or(sys::KELP_DTYPE_INVALID, DataType::raw);
        let mut tensor = std::mem::MaybeUninit::uninit();
        // SAFETY: the context is valid and does not run; the memory is valid during the inference.
        unsafe {
            let status =
                sys::kelp_tensor_init(tensor.as_mut_ptr(), dtype, dims.len() as i32, dims.as_ptr(), input.address);
            check(status, Error::Engine)?;
            check(sys::kelp_context_set_input(self.raw, index, tensor.as_ptr()), Error::Engine)
        }
    }

    pub(crate) fn invoke(&self) -> Result<()> {
        // SAFETY: the context is valid and does not run; its tensors are bound.
        check(unsafe { sys::kelp_context_invoke(self.raw) }, Error::Engine)
    }

    pub(crate) fn enqueue(&self, stream: &Stream) -> Result<()> {
        // A wrapped stream has no events: whoever wraps it guarantees for the order.
        let event = if stream.is_wrapped() { null_mut() } else { self.event };
        // SAFETY: context and stream are valid, the tensors bound, and the event not in use.
        check(unsafe { sys::kelp_context_enqueue(self.raw, stream.as_ptr(), event) }, Error::Engine)?;
        self.enqueued.set(!event.is_null());
        Ok(())
    }

    /// The descriptor of an output after a run.
    pub(crate) fn output(&self, index: usize) -> &sys::kelp_tensor {
        // SAFETY: the context is valid and does not run; the index is in range.
        unsafe { &*sys::kelp_context_output(self.raw, index) }
    }
}

impl Drop for ExecutionContext<'_> {
    fn drop(&mut self) {
        self.wait();
        // SAFETY: this object owns both; the context does not run.
        unsafe {
            sys::kelp_context_destroy(self.raw);
            sys::kelp_event_destroy(self.event);
        }
        self.engine.contexts.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the index of a tensor.
pub(crate) fn find(infos: &[TensorInfo], what: &str, name: &str) -> Result<usize> {
    infos.iter().position(|info| info.name == name).map_or_else(
        || {
            let names: Vec<_> = infos.iter().map(|info| info.name.as_str()).collect();
            invalid(format!("the engine has no {what} '{name}': expected one of '{}'", names.join("', '")))
        },
        Ok,
    )
}

/// Compares a shape with the description of an input.
pub(crate) fn check_shape(info: &TensorInfo, dims: &Dims) -> Result<()> {
    let fits = |expected: &Dims| {
        expected.len() == dims.len() && expected.iter().zip(dims.iter()).all(|(&e, &d)| e < 0 || e == d)
    };
    if dims.elements().is_none() || info.dims.as_ref().is_some_and(|expected| !fits(expected)) {
        let expected = info.dims.map_or("any".into(), |expected| expected.to_string());
        return invalid(format!("the shape of input '{}' is {expected}: found {dims}", info.name));
    }
    Ok(())
}

/// A recorded inference.
pub struct Capture<'c> {
    raw: *mut sys::kelp_capture,
    context: &'c ExecutionContext<'c>,
    generation: u64,
}

impl<'c> Capture<'c> {
    /// Records what the context has bound.
    pub(crate) fn new(context: &'c ExecutionContext<'c>) -> Result<Self> {
        let mut raw = null_mut();
        // SAFETY: the context is valid and does not run.
        check(unsafe { sys::kelp_context_capture(context.raw, &mut raw) }, Error::Engine)?;
        Ok(Self { raw, context, generation: context.generation.get() })
    }

    /// Runs the inference: reads the inputs and writes the outputs at the recorded addresses. Results are those of a run.
    pub fn replay(&self) -> Result<()> {
        if self.generation != self.context.generation.get() {
            return Err(Error::Engine("a tensor was bound again after the recording: record again".into()));
        }
        self.context.wait();
        // SAFETY: the recording and its context are valid, and the tensors still bound.
        check(unsafe { sys::kelp_capture_replay(self.raw) }, Error::Engine)
    }

    /// Returns the number of recorded kernel calls.
    pub fn step_count(&self) -> usize {
        // SAFETY: the recording is valid.
        unsafe { sys::kelp_capture_step_count(self.raw) }
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        self.context.wait();
        // SAFETY: this object owns the recording, which does not run.
        unsafe { sys::kelp_capture_destroy(self.raw) }
    }
}
