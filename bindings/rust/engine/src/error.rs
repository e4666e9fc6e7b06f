// SPDX-License-Identifier: Apache-2.0
//! Errors.
use crate::sys;
use std::ffi::{CStr, CString, NulError};
use std::fmt;

/// An error. The variant is the interface in which the failure occurred. The text contains the code of the failure, such as
/// `FAILED_PRECONDITION`, and its message with those of its causes.
///
/// ```
/// use kelp_engine::{Builder, BuilderConfig, Error, Logger, Severity};
///
/// # fn main() -> kelp_engine::Result<()> {
/// let logger = Logger::from_fn(Severity::Error, |_, _| ());
/// let builder = Builder::new(&logger)?;
/// let network = builder.create_network()?; // without outputs
/// match builder.build_serialized_network(&network, &BuilderConfig::new()?) {
///     Err(Error::Builder(message)) => assert!(message.starts_with("FAILED_PRECONDITION: ")),
///     _ => unreachable!(),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A builder, a network, a configuration or a build.
    Builder(String),
    /// An engine or a context.
    Engine(String),
    /// Creation of a runtime, or loading of an engine.
    Runtime(String),
    /// A device, its driver or a stream.
    Cuda(String),
    /// An argument of the call is wrong.
    InvalidParameter(String),
}

/// A result with an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Builder(text) => write!(f, "Builder error: {text}"),
            Error::Engine(text) => write!(f, "Engine error: {text}"),
            Error::Runtime(text) => write!(f, "Runtime error: {text}"),
            Error::Cuda(text) => write!(f, "CUDA error: {text}"),
            Error::InvalidParameter(text) => write!(f, "Invalid parameter: {text}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<NulError> for Error {
    fn from(error: NulError) -> Self {
        Error::InvalidParameter(format!("a name or path contains a NUL byte: {error}"))
    }
}

/// Returns an [`Error::InvalidParameter`].
pub(crate) fn invalid<T>(text: String) -> Result<T> {
    Err(Error::InvalidParameter(text))
}

/// Converts a status of the C interface, and frees it. `default` creates the error of a status that has no domain.
pub(crate) fn check(status: *mut sys::kelp_status, default: fn(String) -> Error) -> Result<()> {
    if status.is_null() {
        return Ok(());
    }
    // SAFETY: the status is valid, this function owns it, and each reader gets it before it is freed.
    unsafe {
        let code = CStr::from_ptr(sys::kelp_code_name(sys::kelp_status_code(status))).to_string_lossy();
        let length = sys::kelp_status_format(status, std::ptr::null_mut(), 0);
        let mut buffer = vec![0u8; length + 1];
        sys::kelp_status_format(status, buffer.as_mut_ptr().cast(), buffer.len());
        buffer.truncate(length);
        let kind = match sys::kelp_status_domain(status) {
            sys::KELP_DOMAIN_BUILDER | sys::KELP_DOMAIN_NETWORK => Error::Builder,
            sys::KELP_DOMAIN_ENGINE => Error::Engine,
            sys::KELP_DOMAIN_RUNTIME => Error::Runtime,
            sys::KELP_DOMAIN_DEVICE => Error::Cuda,
            sys::KELP_DOMAIN_PARAMETER => Error::InvalidParameter,
            _ => default,
        };
        sys::kelp_status_free(status);
        Err(kind(format!("{code}: {}", String::from_utf8_lossy(&buffer))))
    }
}

/// Converts a path to a C string.
pub(crate) fn c_path(path: &std::path::Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Copies a string of the C interface.
///
/// # Safety
///
/// `text` is NULL or a valid string.
pub(crate) unsafe fn copied(text: *const sys::c_char) -> Option<String> {
    // SAFETY: as the caller guarantees.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
