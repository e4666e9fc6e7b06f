// SPDX-License-Identifier: Apache-2.0
//! Tensors that are bound as slices.
use crate::context::{check_shape, find, Capture, ExecutionContext, Input, Output, Table};
use crate::error::{invalid, Error, Result};
use crate::stream::Stream;
use crate::sys;
use crate::types::{check_type, Dims, Element, OutputElement};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// The tensors of a context, as slices that live as long as the bindings. Created by [`ExecutionContext::bindings`].
///
/// ```
/// use kelp_engine::{Builder, BuilderConfig, DataType, Logger, Runtime, Severity, UnaryOperation};
///
/// # fn main() -> kelp_engine::Result<()> {
/// let logger = Logger::new(Severity::Warning);
/// let builder = Builder::new(&logger)?;
/// let network = builder.create_network()?;
/// let x = network.add_input("x", [-1], DataType::Float)?;
/// let y = network.add_unary(x, UnaryOperation::Neg)?.output(0)?;
/// y.set_name("y")?;
/// network.mark_output(y)?;
/// let data = builder.build_serialized_network(&network, &BuilderConfig::new()?)?;
///
/// let engine = Runtime::new(&logger)?.deserialize_owned(data)?;
/// let mut context = engine.create_execution_context()?;
/// let mut bindings = context.bindings();
/// bindings.input("x", [3], &[1.0f32, 2.0, 3.0])?;
/// bindings.run()?;
/// assert_eq!(*bindings.get::<f32>("y")?, [-1.0, -2.0, -3.0]);
/// # Ok(())
/// # }
/// ```
///
/// A slice must outlive the bindings:
///
/// ```compile_fail,E0597
/// # use kelp_engine::{ExecutionContext, Result};
/// # fn run(context: &mut ExecutionContext) -> Result<()> {
/// let mut bindings = context.bindings();
/// {
///     let x = vec![1.0f32];
///     bindings.input("x", [1], &x)?;
/// }
/// bindings.run()
/// # }
/// ```
pub struct Bindings<'c, 'd> {
    context: &'c ExecutionContext<'c>,
    table: Table,
    /// For each input and output, true if it is bound to cells, which the application may use between inferences.
    input_cells: Vec<bool>,
    output_cells: Vec<bool>,
    /// True once the outputs are those of an inference that succeeded.
    succeeded: Option<Arc<AtomicBool>>,
    data: PhantomData<&'d Cell<()>>,
}

impl<'c, 'd> Bindings<'c, 'd> {
    pub(crate) fn new(context: &'c mut ExecutionContext<'_>) -> Self {
        context.wait();
        let context: &'c ExecutionContext<'c> = context;
        let table = Table::new(context.engine(), context.changed());
        let (input_cells, output_cells) = (vec![false; table.inputs.len()], vec![false; table.outputs.len()]);
        Self { context, table, input_cells, output_cells, succeeded: None, data: PhantomData }
    }

    /// Binds an input.
    pub fn input<T: Element>(&mut self, name: &str, dims: impl Into<Dims>, data: &'d [T]) -> Result<&mut Self> {
        self.bind_input::<T>(name, dims.into(), data.as_ptr(), data.len(), false)
    }

    /// Binds an input whose elements the application may change between inferences, for example before it replays a recording. Cannot
    /// be used with [`Stream::scope`].
    pub fn input_cells<T: Element>(
        &mut self,
        name: &str,
        dims: impl Into<Dims>,
        data: &'d [Cell<T>],
    ) -> Result<&mut Self> {
        self.bind_input::<T>(name, dims.into(), data.as_ptr().cast(), data.len(), true)
    }

    /// Binds memory for an output. An output that is not bound is in memory of the context. If the output is larger than the slice, the
    /// inference fails.
    pub fn output<T: OutputElement>(&mut self, name: &str, data: &'d mut [T]) -> Result<&mut Self> {
        self.bind_output::<T>(name, data.as_mut_ptr(), data.len(), false)
    }

    /// Binds memory for an output that the application may read between inferences. Cannot be used with [`Stream::scope`].
    pub fn output_cells<T: OutputElement>(&mut self, name: &str, data: &'d [Cell<T>]) -> Result<&mut Self> {
        self.bind_output::<T>(name, data.as_ptr().cast_mut().cast(), data.len(), true)
    }

    fn bind_input<T: Element>(
        &mut self,
        name: &str,
        dims: Dims,
        data: *const T,
        length: usize,
        cells: bool,
    ) -> Result<&mut Self> {
        let inputs = self.context.engine().inputs();
        let index = find(inputs, "input", name)?;
        check_type::<T>(name, inputs[index].data_type)?;
        check_shape(&inputs[index], &dims)?;
        if dims.elements() != Some(length) {
            return invalid(format!(
                "input '{name}' of shape {dims} has {} elements: found {length}",
                dims.elements().unwrap_or(0)
            ));
        }
        self.changed();
        self.table.inputs[index] = Input { address: data.cast_mut().cast(), dims: Some(dims) };
        self.input_cells[index] = cells;
        Ok(self)
    }

    fn bind_output<T: OutputElement>(
        &mut self,
        name: &str,
        data: *mut T,
        length: usize,
        cells: bool,
    ) -> Result<&mut Self> {
        let outputs = self.context.engine().outputs();
        let index = find(outputs, "output", name)?;
        check_type::<T>(name, outputs[index].data_type)?;
        self.changed();
        self.table.outputs[index] = Output { address: data.cast(), capacity: length * size_of::<T>() };
        self.output_cells[index] = cells;
        Ok(self)
    }

    /// Removes the memory of an output: it is then in memory of the context.
    pub fn unbind_output(&mut self, name: &str) -> Result<&mut Self> {
        let index = find(self.context.engine().outputs(), "output", name)?;
        self.changed();
        self.table.outputs[index] = Output { address: null_mut(), capacity: 0 };
        self.output_cells[index] = false;
        Ok(self)
    }

    fn changed(&mut self) {
        self.context.wait();
        self.context.changed();
        self.succeeded = None;
    }

    /// Runs an inference and returns when it has finished.
    pub fn run(&mut self) -> Result<()> {
        self.succeeded = None;
        self.context.apply(&self.table)?;
        self.context.invoke()?;
        self.succeeded = Some(Arc::new(AtomicBool::new(true)));
        Ok(())
    }

    pub(crate) fn enqueue(&mut self, stream: &Stream, succeeded: Arc<AtomicBool>) -> Result<()> {
        self.succeeded = None;
        if self.input_cells.iter().chain(&self.output_cells).any(|&cells| cells) {
            return invalid(
                "tensors that are bound to cells cannot be enqueued: the inference runs on another thread".into(),
            );
        }
        self.context.apply(&self.table)?;
        self.context.enqueue(stream)?;
        self.succeeded = Some(succeeded);
        Ok(())
    }

    /// Records an inference with these bindings, like a CUDA graph. [`Capture::replay`] runs it. Bind the tensors that the application
    /// uses between replays as cells.
    ///
    /// ```
    /// # use kelp_engine::*;
    /// # use std::cell::Cell;
    /// # fn main() -> Result<()> {
    /// # let logger = Logger::new(Severity::Warning);
    /// # let builder = Builder::new(&logger)?;
    /// # let network = builder.create_network()?;
    /// # let x = network.add_input("x", [2], DataType::Float)?;
    /// # let y = network.add_unary(x, UnaryOperation::Neg)?.output(0)?;
    /// # y.set_name("y")?;
    /// # network.mark_output(y)?;
    /// # let data = builder.build_serialized_network(&network, &BuilderConfig::new()?)?;
    /// # let engine = Runtime::new(&logger)?.deserialize_owned(data)?;
    /// # let mut context = engine.create_execution_context()?;
    /// let (x, y) = ([1.0f32, 2.0].map(Cell::new), [0.0f32; 2].map(Cell::new));
    /// let mut bindings = context.bindings();
    /// bindings.input_cells("x", [2], &x)?.output_cells("y", &y)?;
    /// let recording = bindings.capture()?;
    /// recording.replay()?;
    /// assert_eq!(y[0].get(), -1.0);
    /// x[0].set(5.0);
    /// recording.replay()?;
    /// assert_eq!(y[0].get(), -5.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn capture(&mut self) -> Result<Capture<'_>> {
        self.succeeded = None;
        self.context.apply(&self.table)?;
        Capture::new(self.context)
    }

    /// Returns an output of the last inference. Fails if there was none, or it failed, since a tensor was bound, or if the output is
    /// bound to cells.
    pub fn get<T: OutputElement>(&self, name: &str) -> Result<Array<'_, T>> {
        let outputs = self.context.engine().outputs();
        let index = find(outputs, "output", name)?;
        if !self.succeeded.as_ref().is_some_and(|succeeded| succeeded.load(Ordering::Relaxed)) {
            return Err(Error::Engine(format!(
                "output '{name}' has no value: no inference succeeded with these tensors"
            )));
        }
        if self.output_cells[index] {
            return invalid(format!("output '{name}' is bound to cells: read these"));
        }
        let tensor = self.context.output(index);
        let dims = Dims::from_raw(tensor.rank, &tensor.shape).filter(|dims| dims.elements().is_some());
        let dims = dims.ok_or_else(|| Error::Engine(format!("output '{name}' has no shape")))?;
        check_type::<T>(name, crate::DataType::from_raw(tensor.dtype))?;
        if !matches!(tensor.device.device_type, 0 | sys::kDLCPU) {
            return invalid(format!("output '{name}' is in device memory"));
        }
        let count = dims.elements().unwrap_or(0);
        let data = match count {
            0 => &[][..],
            // SAFETY: the inference wrote `count` elements. Nothing writes to them while `self` is borrowed.
            _ => unsafe { std::slice::from_raw_parts(tensor.data.cast::<T>(), count) },
        };
        Ok(Array { dims, data })
    }
}

/// An output: a shape and elements, to which it dereferences.
#[derive(Clone, Copy, PartialEq)]
pub struct Array<'a, T> {
    dims: Dims,
    data: &'a [T],
}

impl<T> Array<'_, T> {
    /// Returns the shape.
    pub fn dims(&self) -> Dims {
        self.dims
    }
}

impl<T> Deref for Array<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.data
    }
}

impl<T: fmt::Debug> fmt::Debug for Array<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.dims, self.data)
    }
}
