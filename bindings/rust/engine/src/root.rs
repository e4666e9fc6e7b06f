// SPDX-License-Identifier: Apache-2.0
//! The object of the C interface from which all others are created.
use crate::error::{c_path, check, Error, Result};
use crate::logger::{receive, Logger, Sink};
use crate::sys;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::Arc;

/// Options of [`Builder::with_options`](crate::Builder::with_options) and [`Runtime::with_options`](crate::Runtime::with_options).
#[derive(Clone, Debug, Default)]
pub struct Options {
    threads: i32,
    plugins: Vec<Plugin>,
}

/// A library, and the names and values of its settings.
type Plugin = (PathBuf, Vec<(String, String)>);

impl Options {
    /// Creates options with the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of threads that one inference or build uses, the calling thread included. 0, the default, is the number of
    /// usable CPUs.
    pub fn threads(mut self, threads: u16) -> Self {
        self.threads = threads.into();
        self
    }

    /// Loads a plug-in library with operators, kernels or providers, and passes it settings: names and values.
    ///
    /// # Safety
    ///
    /// The library must follow the contracts of `kelp/plugin.h`. Its code runs in this process.
    pub unsafe fn plugin(mut self, path: impl AsRef<Path>, settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        self.plugins.push((path.as_ref().to_owned(), settings.collect()));
        self
    }
}

/// A `kelp_runtime`. Every object of this crate that C code may use holds a reference, so that the log function outlives all of them.
pub(crate) struct Root {
    raw: *mut sys::kelp_runtime,
    _sink: Arc<Sink>,
}

// SAFETY: a runtime may be used by several threads at once. Plug-ins are loaded before it is shared.
unsafe impl Send for Root {}
unsafe impl Sync for Root {}

impl Root {
    pub(crate) fn new(logger: &Logger, options: &Options) -> Result<Arc<Self>> {
        let sink = logger.sink.clone();
        let raw_options = sys::kelp_runtime_options {
            struct_size: size_of::<sys::kelp_runtime_options>() as u32,
            allocator: sys::kelp_allocator { realloc: None, userp: null_mut() },
            threads: options.threads,
            log: Some(receive),
            log_userp: Arc::as_ptr(&sink).cast_mut().cast(),
            log_level: sink.severity as i32,
        };
        let mut raw = null_mut();
        // SAFETY: the options are valid during the call, and the sink as long as the runtime.
        check(unsafe { sys::kelp_runtime_create(&raw_options, &mut raw) }, Error::Runtime)?;
        let root = Self { raw, _sink: sink };
        for plugin in &options.plugins {
            root.load_plugin(plugin)?;
        }
        Ok(Arc::new(root))
    }

    fn load_plugin(&self, (path, settings): &Plugin) -> Result<()> {
        let path = c_path(path)?;
        let texts = settings.iter().map(|(name, value)| Ok((CString::new(&name[..])?, CString::new(&value[..])?)));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        let settings =
            texts.iter().map(|(name, value)| sys::kelp_plugin_setting { name: name.as_ptr(), value: value.as_ptr() });
        let settings: Vec<_> = settings.collect();
        // SAFETY: no other thread uses the runtime yet; the texts are valid during the call. The caller of Options::plugin guarantees for
        // the library.
        let status =
            unsafe { sys::kelp_runtime_load_plugin_with(self.raw, path.as_ptr(), settings.as_ptr(), settings.len()) };
        check(status, Error::Runtime)
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::kelp_runtime {
        self.raw
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // SAFETY: this object owns a reference.
        unsafe { sys::kelp_runtime_release(self.raw) }
    }
}

/// Passes owned bytes to a function that borrows them until it calls `release(userp)`, also if it fails.
pub(crate) fn lend<T: AsRef<[u8]> + Send + Sync + 'static, R>(
    owner: T,
    borrow: impl FnOnce(*const sys::c_void, usize, unsafe extern "C" fn(*mut sys::c_void), *mut sys::c_void) -> R,
) -> R {
    unsafe extern "C" fn release<T>(userp: *mut sys::c_void) {
        // SAFETY: called once, with the pointer below. A panic in the drop must not pass through C.
        let owner = unsafe { Box::from_raw(userp.cast::<T>()) };
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(owner)));
    }
    let owner = Box::into_raw(Box::new(owner));
    // SAFETY: the box is valid until `release`.
    let bytes = unsafe { (*owner).as_ref() };
    borrow(bytes.as_ptr().cast(), bytes.len(), release::<T>, owner.cast())
}

/// Bytes in memory that is aligned to 64 bytes, so that weights are used in place.
pub(crate) struct Aligned {
    chunks: Vec<Chunk>,
    length: usize,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Chunk([u8; 64]);

impl Aligned {
    pub(crate) fn copy(bytes: &[u8]) -> Self {
        let mut chunks = vec![Chunk([0; 64]); bytes.len().div_ceil(64)];
        for (chunk, part) in chunks.iter_mut().zip(bytes.chunks(64)) {
            chunk.0[..part.len()].copy_from_slice(part);
        }
        Self { chunks, length: bytes.len() }
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the chunks are contiguous and have at least `length` bytes.
        unsafe { std::slice::from_raw_parts(self.chunks.as_ptr().cast(), self.length) }
    }
}
