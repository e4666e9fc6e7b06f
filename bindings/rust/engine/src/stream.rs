// SPDX-License-Identifier: Apache-2.0
//! Streams.
use crate::bindings::Bindings;
use crate::error::{check, Error, Result};
use crate::root::Root;
use crate::runtime::Runtime;
use crate::sys;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// A queue of inferences, which run in order on a thread of the stream, or on a stream of a device. Dropping it waits for them.
pub struct Stream {
    raw: *mut sys::kelp_stream,
    wrapped: bool,
    _root: Arc<Root>,
}

// SAFETY: a stream is thread-safe.
unsafe impl Send for Stream {}
unsafe impl Sync for Stream {}

impl Stream {
    /// Creates a stream with a thread of its own.
    pub fn new(runtime: &Runtime<'_>) -> Result<Self> {
        let mut raw = null_mut();
        // SAFETY: the runtime is valid.
        check(unsafe { sys::kelp_stream_create(runtime.as_ptr(), &mut raw) }, Error::Cuda)?;
        Ok(Self { raw, wrapped: false, _root: runtime.root.clone() })
    }

    /// Wraps a stream of a device library, such as a `cudaStream_t`.
    ///
    /// # Safety
    ///
    /// `native` must be valid as long as this object. Synchronize it, with its own library, before a context that was enqueued on it is
    /// used again or dropped, and before its tensors are used.
    pub unsafe fn from_raw(runtime: &Runtime<'_>, native: *mut sys::c_void) -> Result<Self> {
        let mut raw = null_mut();
        // SAFETY: the runtime is valid; the caller guarantees for the stream.
        check(unsafe { sys::kelp_stream_wrap(runtime.as_ptr(), native, &mut raw) }, Error::Cuda)?;
        Ok(Self { raw, wrapped: true, _root: runtime.root.clone() })
    }

    /// Waits for all inferences. Returns the first failure since the last call. Fails for a stream of a device library.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is valid.
        check(unsafe { sys::kelp_stream_synchronize(self.raw) }, Error::Cuda)
    }

    /// Calls a function that enqueues inferences with borrowed slices, and waits for the inferences. Fails if one of them failed, or an
    /// inference that was enqueued before. Fails for a stream of a device library.
    ///
    /// ```no_run
    /// # use kelp_engine::{Engine, Result, Stream};
    /// # fn run(engine: &Engine, stream: &mut Stream, x: &[f32], y: &[f32]) -> Result<()> {
    /// let (mut first, mut second) = (engine.create_execution_context()?, engine.create_execution_context()?);
    /// let (mut first, mut second) = (first.bindings(), second.bindings());
    /// first.input("x", [2], x)?;
    /// second.input("x", [2], y)?;
    /// stream.scope(|scope| {
    ///     scope.enqueue(&mut first)?;
    ///     scope.enqueue(&mut second)
    /// })??;
    /// println!("{:?} {:?}", first.get::<f32>("y")?, second.get::<f32>("y")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The bindings are borrowed until the inferences have finished:
    ///
    /// ```compile_fail,E0499
    /// # use kelp_engine::{Bindings, Result, Stream};
    /// # fn run(stream: &mut Stream, mut bindings: Bindings<'_, '_>) -> Result<()> {
    /// stream.scope(|scope| {
    ///     scope.enqueue(&mut bindings)?;
    ///     bindings.run()
    /// })?
    /// # }
    /// ```
    pub fn scope<'env, R>(&mut self, enqueue: impl FnOnce(&Scope<'_, 'env>) -> R) -> Result<R> {
        self.synchronize()?;
        let succeeded = Arc::new(AtomicBool::new(false));
        /// Waits also if `enqueue` panics.
        struct Guard<'s>(&'s Stream);
        impl Drop for Guard<'_> {
            fn drop(&mut self) {
                let _ = self.0.synchronize();
            }
        }
        let guard = Guard(self);
        let result = enqueue(&Scope { stream: self, succeeded: succeeded.clone(), env: PhantomData });
        self.synchronize()?;
        drop(guard);
        succeeded.store(true, Ordering::Relaxed);
        Ok(result)
    }

    pub(crate) fn is_wrapped(&self) -> bool {
        self.wrapped
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut sys::kelp_stream {
        self.raw
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: this object owns the stream.
        unsafe { sys::kelp_stream_destroy(self.raw) }
    }
}

/// Enqueues inferences for [`Stream::scope`].
pub struct Scope<'s, 'env> {
    stream: &'s Stream,
    succeeded: Arc<AtomicBool>,
    /// Invariant: a borrow for 'env lasts until the scope has ended.
    env: PhantomData<Cell<&'env mut ()>>,
}

impl<'env> Scope<'_, 'env> {
    /// Enqueues an inference with these bindings. Fails if a tensor is bound to cells.
    pub fn enqueue(&self, bindings: &'env mut Bindings<'_, '_>) -> Result<()> {
        bindings.enqueue(self.stream, self.succeeded.clone())
    }
}
