// SPDX-License-Identifier: Apache-2.0
//! Runtimes, which load engines.
use crate::engine::Engine;
use crate::error::{c_path, check, copied, Error, Result};
use crate::logger::Logger;
use crate::root::{lend, Aligned, Options, Root};
use crate::sys;
use std::ffi::CString;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// Loads engines, and has the threads that run them. One per program is sufficient. Engines remain valid after their runtime.
pub struct Runtime<'a> {
    pub(crate) root: Arc<Root>,
    logger: &'a Logger,
}

impl<'a> Runtime<'a> {
    /// Creates a runtime.
    pub fn new(logger: &'a Logger) -> Result<Self> {
        Self::with_options(logger, &Options::new())
    }

    /// Creates a runtime with options.
    pub fn with_options(logger: &'a Logger, options: &Options) -> Result<Self> {
        Ok(Self { root: Root::new(logger, options)?, logger })
    }

    /// Returns the logger.
    pub fn logger(&self) -> &'a Logger {
        self.logger
    }

    /// Loads a serialized engine. Copies the bytes; [`deserialize_owned`](Self::deserialize_owned) does not. The first bytes identify
    /// the provider. Fails if the bytes are truncated, modified or of another version of Kelp.
    pub fn deserialize_engine(&self, data: &[u8]) -> Result<Engine> {
        self.deserialize_owned(Aligned::copy(data))
    }

    /// Loads a serialized engine without copying it: an [`EngineData`](crate::EngineData), a `Vec<u8>`, a `&'static [u8]` or another
    /// owner. If the bytes are not aligned to 64 bytes, weights are copied.
    pub fn deserialize_owned(&self, data: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Engine> {
        let mut raw = null_mut();
        let status = lend(data, |data, size, release, userp| {
            // SAFETY: the bytes are valid until `release(userp)`.
            unsafe { sys::kelp_engine_load(self.root.as_ptr(), data, size, null(), Some(release), userp, &mut raw) }
        });
        check(status, Error::Runtime)?;
        Ok(Engine::new(raw, self.root.clone()))
    }

    /// Loads a plan file. Engines that are loaded from the same file share its memory, also across processes.
    ///
    /// # Safety
    ///
    /// The file is mapped. It must not be modified while the engine exists.
    pub unsafe fn deserialize_engine_file(&self, path: impl AsRef<Path>) -> Result<Engine> {
        let path = c_path(path.as_ref())?;
        let mut raw = null_mut();
        // SAFETY: the arguments are valid; the caller guarantees for the file.
        check(unsafe { sys::kelp_engine_load_file(self.root.as_ptr(), path.as_ptr(), &mut raw) }, Error::Runtime)?;
        Ok(Engine::new(raw, self.root.clone()))
    }

    /// Returns the names of the providers, built-in ones and those of plug-ins.
    pub fn providers(&self) -> Vec<String> {
        let provider = |index| {
            let mut info = sys::kelp_provider_info { name: null(), offers: 0 };
            // SAFETY: the arguments are valid, and the name as long as the runtime.
            unsafe { sys::kelp_runtime_provider_at(self.root.as_ptr(), index, &mut info).then(|| copied(info.name))? }
        };
        (0..).map_while(provider).collect()
    }

    /// Returns the reason why a provider cannot be used on this machine, such as a missing library.
    pub fn check_provider(&self, name: &str) -> Result<()> {
        let name = CString::new(name)?;
        // SAFETY: the arguments are valid.
        check(unsafe { sys::kelp_runtime_check_provider(self.root.as_ptr(), name.as_ptr()) }, Error::Runtime)
    }

    /// Returns the number of threads that one inference uses, the calling thread included.
    pub fn threads(&self) -> usize {
        // SAFETY: the runtime is valid.
        unsafe { sys::kelp_runtime_threads(self.root.as_ptr()) as usize }
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut sys::kelp_runtime {
        self.root.as_ptr()
    }
}

/// Returns the version of the library, such as "0.1.0".
pub fn version() -> String {
    // SAFETY: the function returns a static string.
    unsafe { copied(sys::kelp_version()) }.unwrap_or_default()
}
