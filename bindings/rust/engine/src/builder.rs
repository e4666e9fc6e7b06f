// SPDX-License-Identifier: Apache-2.0
//! Builders and the engines that they serialize.
use crate::config::BuilderConfig;
use crate::error::{c_path, check, copied, Error, Result};
use crate::logger::Logger;
use crate::network::Network;
use crate::root::{lend, Options, Root};
use crate::sys;
use std::ffi::CString;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// Builds engines. A builder can be moved to another thread, but not shared.
///
/// A logger must outlive its builders:
///
/// ```compile_fail,E0505
/// # use kelp_engine::{Builder, Logger, Severity};
/// let logger = Logger::new(Severity::Info);
/// let builder = Builder::new(&logger).unwrap();
/// drop(logger);
/// builder.create_network().unwrap();
/// ```
pub struct Builder<'a> {
    raw: *mut sys::kelp_builder,
    root: Arc<Root>,
    logger: &'a Logger,
}

// SAFETY: a builder is used by one thread at a time, since it is not Sync and its networks borrow it.
unsafe impl Send for Builder<'_> {}

impl<'a> Builder<'a> {
    /// Creates a builder for engines that run on the CPU.
    pub fn new(logger: &'a Logger) -> Result<Self> {
        Self::with_provider(logger, "cpu")
    }

    /// Creates a builder for a provider: "cpu", "null" (engines that return zeros, for tests), "tensorrt" or one of a plug-in.
    pub fn with_provider(logger: &'a Logger, provider: &str) -> Result<Self> {
        Self::with_options(logger, provider, &Options::new())
    }

    /// Creates a builder with options.
    pub fn with_options(logger: &'a Logger, provider: &str, options: &Options) -> Result<Self> {
        let provider = CString::new(provider)?;
        let root = Root::new(logger, options)?;
        let mut raw = null_mut();
        // SAFETY: the arguments are valid.
        check(unsafe { sys::kelp_builder_create(root.as_ptr(), provider.as_ptr(), &mut raw) }, Error::Builder)?;
        Ok(Self { raw, root, logger })
    }

    /// Returns the logger.
    pub fn logger(&self) -> &'a Logger {
        self.logger
    }

    /// Returns the name of the provider.
    pub fn provider(&self) -> String {
        // SAFETY: the builder is valid and returns a string.
        unsafe { copied(sys::kelp_builder_provider(self.raw)) }.unwrap_or_default()
    }

    /// Creates an empty network.
    pub fn create_network(&self) -> Result<Network<'_>> {
        self.network(|out| {
            // SAFETY: the builder is valid.
            unsafe { sys::kelp_builder_create_network(self.raw, out) }
        })
    }

    /// Creates a network from an ONNX model. Its inputs and outputs are those of the model; layers may be added after them. Takes the
    /// bytes without copying them: a `Vec<u8>`, a `&'static [u8]` or another owner.
    pub fn parse_onnx(&self, model: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Network<'_>> {
        self.network(|out| {
            lend(model, |data, size, release, userp| {
                // SAFETY: the bytes are valid until `release(userp)`.
                unsafe { sys::kelp_builder_parse_bytes(self.raw, data, size, null(), Some(release), userp, out) }
            })
        })
    }

    /// Creates a network from an ONNX file, whose external data may be in other files.
    ///
    /// # Safety
    ///
    /// The files are mapped. They must not be modified while the network exists.
    pub unsafe fn parse_onnx_file(&self, path: impl AsRef<Path>) -> Result<Network<'_>> {
        let path = c_path(path.as_ref())?;
        self.network(|out| {
            // SAFETY: the arguments are valid; the caller guarantees for the files.
            unsafe { sys::kelp_builder_parse_file(self.raw, path.as_ptr(), out) }
        })
    }

    fn network(
        &self,
        create: impl FnOnce(*mut *mut sys::kelp_network) -> *mut sys::kelp_status,
    ) -> Result<Network<'_>> {
        let mut raw = null_mut();
        check(create(&mut raw), Error::Builder)?;
        Ok(Network::new(raw, self.root.clone()))
    }

    /// Returns an error if the provider cannot build a network.
    pub fn check_supported(&self, network: &Network<'_>) -> Result<()> {
        let mut reason = null_mut();
        // SAFETY: the arguments are valid.
        unsafe { sys::kelp_builder_supports(self.raw, network.as_ptr(), &mut reason) };
        check(reason, Error::Builder)
    }

    /// Builds an engine and serializes it. The same network, configuration and library produce the same bytes.
    pub fn build_serialized_network(&self, network: &Network<'_>, config: &BuilderConfig) -> Result<EngineData> {
        config.apply(self.raw, |config| {
            let mut raw = null_mut();
            // SAFETY: the arguments are valid, and used by this thread only.
            check(unsafe { sys::kelp_builder_build(self.raw, network.as_ptr(), config, &mut raw) }, Error::Builder)?;
            Ok(EngineData { raw, _root: self.root.clone() })
        })
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut sys::kelp_builder {
        self.raw
    }
}

impl Drop for Builder<'_> {
    fn drop(&mut self) {
        // SAFETY: this object owns a reference.
        unsafe { sys::kelp_builder_release(self.raw) }
    }
}

/// A serialized engine: the contents of a plan file. Dereferences to bytes, which are aligned to 64 bytes.
pub struct EngineData {
    raw: *mut sys::kelp_blob,
    _root: Arc<Root>,
}

// SAFETY: a blob is immutable and thread-safe.
unsafe impl Send for EngineData {}
unsafe impl Sync for EngineData {}

impl EngineData {
    /// Writes the bytes to a temporary file and renames it to `path`, so that a reader never sees a partial file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        // SAFETY: the arguments are valid.
        check(unsafe { sys::kelp_blob_save(self.raw, path.as_ptr()) }, Error::Builder)
    }
}

impl Deref for EngineData {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are valid as long as the blob, and never modified.
        unsafe { std::slice::from_raw_parts(sys::kelp_blob_data(self.raw).cast(), sys::kelp_blob_size(self.raw)) }
    }
}

impl AsRef<[u8]> for EngineData {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for EngineData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EngineData({} bytes)", self.len())
    }
}

impl Drop for EngineData {
    fn drop(&mut self) {
        // SAFETY: this object owns a reference.
        unsafe { sys::kelp_blob_release(self.raw) }
    }
}
