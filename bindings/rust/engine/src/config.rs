// SPDX-License-Identifier: Apache-2.0
//! Configurations of builds.
use crate::error::{check, invalid, Error, Result};
use crate::sys;
use crate::types::{enumeration, Dims};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};

enumeration! {
    /// A flag of a build. `docs/engines.md` lists the flags that each provider supports.
    BuilderFlag: kelp_builder_flag {
        /// Multiply float32 matrices in bfloat16.
        Bf16 = KELP_BUILD_BF16,
        /// Allow TensorFloat-32.
        Tf32 = KELP_BUILD_TF32,
        /// Every weight can be replaced in the engine.
        Refit = KELP_BUILD_REFIT,
        /// Weights that [`Network::mark_refittable`](crate::Network::mark_refittable) names can be replaced.
        RefitIndividual = KELP_BUILD_REFIT_INDIVIDUAL,
        /// Refittable weights are left out of the engine.
        StripWeights = KELP_BUILD_STRIP_WEIGHTS,
        /// Weights may stay in host memory during inference.
        WeightStreaming = KELP_BUILD_WEIGHT_STREAMING,
        /// The engine runs on other versions of the provider's library.
        VersionCompatible = KELP_BUILD_VERSION_COMPATIBLE,
        /// Runs the network as written, for debugging.
        DisableFusion = KELP_BUILD_DISABLE_FUSION,
        /// Measures memory during the build.
        MonitorMemory = KELP_BUILD_MONITOR_MEMORY,
        /// [`Engine::inspect`](crate::Engine::inspect) reports all details.
        Detailed = KELP_BUILD_DETAILED,
    }
}

enumeration! {
    /// Memory that a build can limit.
    MemoryPool: kelp_memory_pool {
        /// Activations and scratch memory of one context.
        Workspace = KELP_POOL_WORKSPACE,
        /// Device memory.
        Device = KELP_POOL_DEVICE,
    }
}

enumeration! {
    /// A bound of an optimization profile.
    ProfileSelector: kelp_profile_selector {
        /// Minimum.
        Min = KELP_PROFILE_MIN,
        /// The shape to optimize for.
        Opt = KELP_PROFILE_OPT,
        /// Maximum.
        Max = KELP_PROFILE_MAX,
    }
}

#[derive(Default)]
struct Profile {
    shapes: Vec<(CString, [Dims; 3])>,
    values: Vec<(CString, [Vec<i64>; 3])>,
}

type Monitor = Box<dyn FnMut(&str, i32, i32) -> bool + Send>;

/// Specifies shapes, memory limits and the weights that a refit can replace. A configuration is independent of a builder and can be
/// used for several builds. The build checks whether the provider supports it.
#[derive(Default)]
pub struct BuilderConfig {
    flags: Cell<u32>,
    limits: RefCell<Vec<(MemoryPool, usize)>>,
    level: Cell<Option<i32>>,
    capabilities: RefCell<Vec<i32>>,
    timing_cache: RefCell<Option<Vec<u8>>>,
    profiles: RefCell<Vec<Profile>>,
    monitor: RefCell<Option<Monitor>>,
}

impl BuilderConfig {
    /// Creates a configuration with default settings.
    pub fn new() -> Result<Self> {
        Ok(Self::default())
    }

    /// Limits the memory for activations and scratch memory of one context: [`MemoryPool::Workspace`].
    pub fn set_max_workspace_size(&self, size_bytes: usize) -> Result<()> {
        self.set_memory_pool_limit(MemoryPool::Workspace, size_bytes)
    }

    /// Limits a memory pool; 0 removes the limit. If the limit is exceeded, the build selects algorithms that need less memory, or
    /// fails.
    pub fn set_memory_pool_limit(&self, pool: MemoryPool, size_bytes: usize) -> Result<()> {
        let mut limits = self.limits.borrow_mut();
        limits.retain(|(each, _)| *each != pool);
        limits.push((pool, size_bytes));
        Ok(())
    }

    /// Sets a flag.
    pub fn set_flag(&self, flag: BuilderFlag) {
        self.flags.set(self.flags.get() | flag.raw());
    }

    /// Clears a flag.
    pub fn clear_flag(&self, flag: BuilderFlag) {
        self.flags.set(self.flags.get() & !flag.raw());
    }

    /// Returns true if a flag is set.
    pub fn flag(&self, flag: BuilderFlag) -> bool {
        self.flags.get() & flag.raw() != 0
    }

    /// Sets the optimization level, 0 (fastest build) to 5; 3 by default.
    pub fn set_builder_optimization_level(&self, level: i32) -> Result<()> {
        if !(0..=5).contains(&level) {
            return invalid(format!("the optimization level must be 0 to 5: found {level}"));
        }
        self.level.set(Some(level));
        Ok(())
    }

    /// Adds a GPU architecture that the engine must support, as 10 * major + minor.
    pub fn add_compute_capability(&self, capability: i32) {
        self.capabilities.borrow_mut().push(capability);
    }

    /// Sets the measurements of earlier builds.
    pub fn set_timing_cache(&self, cache: Vec<u8>) {
        *self.timing_cache.borrow_mut() = Some(cache);
    }

    /// Returns the measurements of earlier builds and of the last one, or `None` if there are none.
    pub fn timing_cache(&self) -> Option<Vec<u8>> {
        self.timing_cache.borrow().clone()
    }

    /// Adds an optimization profile and returns its index.
    pub fn add_optimization_profile(&self) -> usize {
        let mut profiles = self.profiles.borrow_mut();
        profiles.push(Profile::default());
        profiles.len() - 1
    }

    /// Sets the minimum, optimum and maximum shape of an input. The build compares them with the network.
    pub fn set_profile_shape(
        &self,
        profile: usize,
        input: &str,
        min: impl Into<Dims>,
        opt: impl Into<Dims>,
        max: impl Into<Dims>,
    ) -> Result<()> {
        let bounds = (CString::new(input)?, [min.into(), opt.into(), max.into()]);
        self.with_profile(profile, |found| found.shapes.push(bounds))
    }

    /// Sets the minimum, optimum and maximum values of an integer input that determines shapes.
    pub fn set_profile_values(&self, profile: usize, input: &str, min: &[i64], opt: &[i64], max: &[i64]) -> Result<()> {
        let bounds = (CString::new(input)?, [min.to_vec(), opt.to_vec(), max.to_vec()]);
        self.with_profile(profile, |found| found.values.push(bounds))
    }

    fn with_profile(&self, profile: usize, change: impl FnOnce(&mut Profile)) -> Result<()> {
        let mut profiles = self.profiles.borrow_mut();
        let count = profiles.len();
        match profiles.get_mut(profile) {
            Some(found) => {
                change(found);
                Ok(())
            }
            None => invalid(format!("there is no profile {profile}: the configuration has {count}")),
        }
    }

    /// Sets a function that receives the progress of a build: the name of a phase, its current step, and its number of steps. If it
    /// returns false, the build is cancelled. If it panics, the build is cancelled and the panic continues in the thread that builds.
    pub fn set_progress_monitor(&self, monitor: impl FnMut(&str, i32, i32) -> bool + Send + 'static) {
        *self.monitor.borrow_mut() = Some(Box::new(monitor));
    }

    /// Calls `build` with this configuration for a builder.
    pub(crate) fn apply<R>(
        &self,
        builder: *mut sys::kelp_builder,
        build: impl FnOnce(*mut sys::kelp_builder_config) -> Result<R>,
    ) -> Result<R> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the builder is valid.
        check(unsafe { sys::kelp_builder_create_config(builder, &mut raw) }, Error::Builder)?;
        let raw = Raw(raw);
        self.apply_settings(raw.0)?;
        let mut monitor = self.monitor.borrow_mut();
        let mut progress = monitor.as_mut().map(|monitor| Progress { monitor, panic: None });
        if let Some(progress) = &mut progress {
            // SAFETY: `progress` outlives the build, during which the function is called.
            unsafe { sys::kelp_builder_config_set_progress(raw.0, Some(report), std::ptr::from_mut(progress).cast()) };
        }
        let result = build(raw.0);
        if let Some(payload) = progress.and_then(|progress| progress.panic) {
            drop(monitor);
            std::panic::resume_unwind(payload);
        }
        let mut size = 0;
        // SAFETY: the configuration is valid, and the cache until it is released.
        unsafe {
            let cache = sys::kelp_builder_config_timing_cache(raw.0, &mut size);
            if !cache.is_null() && size > 0 {
                *self.timing_cache.borrow_mut() = Some(std::slice::from_raw_parts(cache.cast::<u8>(), size).to_vec());
            }
        }
        result
    }

    fn apply_settings(&self, raw: *mut sys::kelp_builder_config) -> Result<()> {
        // SAFETY: the configuration is valid, and all arguments during the calls, which copy them.
        let call = |status| check(status, Error::Builder);
        unsafe {
            call(sys::kelp_builder_config_set_flags(raw, self.flags.get()))?;
            for (pool, size) in self.limits.borrow().iter() {
                call(sys::kelp_builder_config_set_memory_limit(raw, pool.raw(), *size))?;
            }
            if let Some(level) = self.level.get() {
                call(sys::kelp_builder_config_set_optimization_level(raw, level))?;
            }
            for capability in self.capabilities.borrow().iter() {
                call(sys::kelp_builder_config_add_compute_capability(raw, *capability))?;
            }
            if let Some(cache) = &*self.timing_cache.borrow() {
                call(sys::kelp_builder_config_set_timing_cache(raw, cache.as_ptr().cast(), cache.len()))?;
            }
            for profile in self.profiles.borrow().iter() {
                let mut index = 0;
                call(sys::kelp_builder_config_add_profile(raw, &mut index))?;
                for (input, bounds) in &profile.shapes {
                    for (selector, dims) in ProfileSelector::ALL.iter().zip(bounds) {
                        let (rank, shape) = (dims.len() as i32, dims.as_ptr());
                        call(sys::kelp_builder_config_set_profile_shape(
                            raw,
                            index,
                            input.as_ptr(),
                            selector.raw(),
                            rank,
                            shape,
                        ))?;
                    }
                }
                for (input, bounds) in &profile.values {
                    for (selector, values) in ProfileSelector::ALL.iter().zip(bounds) {
                        let (data, count) = (values.as_ptr(), values.len());
                        call(sys::kelp_builder_config_set_profile_values(
                            raw,
                            index,
                            input.as_ptr(),
                            selector.raw(),
                            data,
                            count,
                        ))?;
                    }
                }
            }
        }
        Ok(())
    }
}

struct Raw(*mut sys::kelp_builder_config);

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: this object owns a reference.
        unsafe { sys::kelp_builder_config_release(self.0) }
    }
}

struct Progress<'a> {
    monitor: &'a mut Monitor,
    panic: Option<Box<dyn Any + Send>>,
}

/// The progress callback of a build. `userp` is a `Progress`; calls are serialized.
unsafe extern "C" fn report(
    userp: *mut sys::c_void,
    phase: *const sys::c_char,
    _parent: *const sys::c_char,
    step: sys::c_int,
    steps: sys::c_int,
) -> bool {
    // SAFETY: both are valid during the call.
    let (progress, phase) = unsafe { (&mut *userp.cast::<Progress>(), CStr::from_ptr(phase).to_string_lossy()) };
    if progress.panic.is_some() {
        return false;
    }
    match catch_unwind(AssertUnwindSafe(|| (progress.monitor)(&phase, step, steps))) {
        Ok(goes_on) => goes_on,
        Err(payload) => {
            progress.panic = Some(payload);
            false
        }
    }
}
