// SPDX-License-Identifier: Apache-2.0
//! Engines.
use crate::config::ProfileSelector;
use crate::context::ExecutionContext;
use crate::error::{check, copied, invalid, Error, Result};
use crate::root::Root;
use crate::sys;
use crate::types::{DataType, Dims, Weights};
use std::fmt;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Description of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Unique among inputs, or among outputs.
    pub name: String,
    /// Element type; `None` if it is unknown.
    pub data_type: Option<DataType>,
    /// Dimensions, -1 for dynamic ones; `None` if their number is unknown.
    pub dims: Option<Dims>,
}

impl TensorInfo {
    /// # Safety
    ///
    /// `raw` is the description of an engine.
    unsafe fn new(raw: *const sys::kelp_io_info) -> Self {
        // SAFETY: as the caller guarantees.
        let (raw, name) = unsafe { (&*raw, copied((*raw).name)) };
        let (data_type, dims) = (DataType::from_raw(raw.dtype), Dims::from_raw(raw.rank, &raw.shape));
        Self { name: name.unwrap_or_default(), data_type, dims }
    }
}

/// A model that is ready for execution. Can be shared by threads, each with contexts of its own.
///
/// An engine must outlive its contexts:
///
/// ```compile_fail,E0505
/// # use kelp_engine::{Logger, Runtime, Severity};
/// let logger = Logger::new(Severity::Info);
/// let runtime = Runtime::new(&logger).unwrap();
/// let engine = runtime.deserialize_engine(&std::fs::read("model.engine").unwrap()).unwrap();
/// let context = engine.create_execution_context().unwrap();
/// drop(engine);
/// context.execute_v2().unwrap();
/// ```
///
/// It cannot be refitted while a context exists, because no inference may run at the same time:
///
/// ```compile_fail,E0502
/// # use kelp_engine::{Engine, Result, Weights};
/// # fn refit(engine: &mut Engine, weights: &[Weights]) -> Result<()> {
/// let context = engine.create_execution_context()?;
/// engine.refit(weights)?;
/// context.execute_v2()
/// # }
/// ```
pub struct Engine {
    raw: *mut sys::kelp_engine,
    inputs: Vec<TensorInfo>,
    outputs: Vec<TensorInfo>,
    /// Contexts that were not dropped. One that was leaked may still run.
    pub(crate) contexts: AtomicUsize,
    _root: Arc<Root>,
}

// SAFETY: an engine may be used by several threads at once. A refit has exclusive access.
unsafe impl Send for Engine {}
unsafe impl Sync for Engine {}

impl Engine {
    pub(crate) fn new(raw: *mut sys::kelp_engine, root: Arc<Root>) -> Self {
        // SAFETY: the engine is valid, and the indices are in range.
        let (inputs, outputs) = unsafe {
            let input = |i| TensorInfo::new(sys::kelp_engine_input(raw, i));
            let output = |i| TensorInfo::new(sys::kelp_engine_output(raw, i));
            (
                (0..sys::kelp_engine_input_count(raw)).map(input).collect(),
                (0..sys::kelp_engine_output_count(raw)).map(output).collect(),
            )
        };
        Self { raw, inputs, outputs, contexts: AtomicUsize::new(0), _root: root }
    }

    /// Creates a context. An engine may have several, which share its weights. Fails if the engine was built without weights and has
    /// not been refitted.
    pub fn create_execution_context(&self) -> Result<ExecutionContext<'_>> {
        ExecutionContext::new(self)
    }

    /// Returns the descriptions of the inputs.
    pub fn inputs(&self) -> &[TensorInfo] {
        &self.inputs
    }

    /// Returns the descriptions of the outputs.
    pub fn outputs(&self) -> &[TensorInfo] {
        &self.outputs
    }

    /// Returns the name of the provider that runs the engine.
    pub fn provider(&self) -> String {
        // SAFETY: the engine is valid and returns a string.
        unsafe { copied(sys::kelp_engine_provider_name(self.raw)) }.unwrap_or_default()
    }

    /// Returns the number of optimization profiles.
    pub fn num_optimization_profiles(&self) -> usize {
        // SAFETY: the engine is valid.
        unsafe { sys::kelp_engine_profile_count(self.raw) }
    }

    /// Returns a bound of the shape of an input in a profile; `None` if the profile does not restrict the input or there is no such
    /// profile or input.
    pub fn profile_shape(&self, profile: usize, input: &str, selector: ProfileSelector) -> Option<Dims> {
        let index = self.inputs.iter().position(|each| each.name == input)?;
        let mut shape = Dims::new(&[]).raw();
        // SAFETY: the arguments are valid.
        unsafe { sys::kelp_engine_profile_shape(self.raw, profile, index, selector.raw() as i32, &mut shape) }
            .then(|| Dims::from_raw(shape.rank, &shape.d))?
    }

    /// Returns how many bytes of activations and scratch memory a context needs for the maximum shapes of a profile. Without profiles,
    /// pass 0; all input shapes must then be fixed.
    pub fn workspace_size(&self, profile: usize) -> Result<usize> {
        let mut size = 0;
        // SAFETY: the arguments are valid.
        check(unsafe { sys::kelp_engine_workspace_bytes(self.raw, profile, &mut size) }, Error::Engine)?;
        Ok(size)
    }

    /// Describes the engine as text, or as JSON.
    pub fn inspect(&self, json: bool) -> Result<String> {
        unsafe extern "C" fn append(userp: *mut sys::c_void, text: *const sys::c_char, length: usize) {
            // SAFETY: `userp` is the vector below; the text is valid during the call.
            unsafe { (*userp.cast::<Vec<u8>>()).extend_from_slice(std::slice::from_raw_parts(text.cast(), length)) }
        }
        let mut text = Vec::<u8>::new();
        // SAFETY: the arguments are valid during the call.
        check(
            unsafe { sys::kelp_engine_inspect(self.raw, json, Some(append), std::ptr::from_mut(&mut text).cast()) },
            Error::Engine,
        )?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns the names of the weights that can be replaced.
    pub fn refittable_weights(&self) -> Vec<String> {
        // SAFETY: the engine is valid, and the indices are in range.
        unsafe {
            let count = sys::kelp_engine_refittable_count(self.raw);
            (0..count).filter_map(|i| copied(sys::kelp_engine_refittable(self.raw, i))).collect()
        }
    }

    /// Replaces weights by name, and copies their data. Either all are replaced or none. Contexts that are created afterwards use the
    /// new weights. Fails if a name is not refittable, or the type or the number of elements differs.
    pub fn refit(&mut self, weights: &[Weights]) -> Result<()> {
        let contexts = *self.contexts.get_mut();
        if contexts > 0 {
            return invalid(format!("an engine with {contexts} contexts that were not dropped cannot be refitted"));
        }
        let raw: Vec<_> = weights.iter().map(Weights::raw).collect();
        // SAFETY: no context of the engine exists; the weights are valid during the call.
        check(unsafe { sys::kelp_engine_refit(self.raw, raw.as_ptr(), raw.len()) }, Error::Engine)
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut sys::kelp_engine {
        self.raw
    }

    pub(crate) fn create_raw_context(&self) -> Result<*mut sys::kelp_context> {
        let mut raw = null_mut();
        // SAFETY: the engine is valid.
        check(unsafe { sys::kelp_context_create(self.raw, &mut raw) }, Error::Engine)?;
        self.contexts.fetch_add(1, Ordering::Relaxed);
        Ok(raw)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("provider", &self.provider())
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs)
            .finish()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: this object owns a reference.
        unsafe { sys::kelp_engine_release(self.raw) }
    }
}
