// SPDX-License-Identifier: Apache-2.0
//! Errors of this crate and of the server.
use crate::sys::*;
use std::ffi::{CStr, CString};
use std::fmt;

/// The code of an error, which clients receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// No other code applies.
    Unknown,
    /// A defect in the server or a backend.
    Internal,
    /// The requested object does not exist.
    NotFound,
    /// The request is invalid.
    InvalidArg,
    /// Temporarily not available.
    Unavailable,
    /// Not supported.
    Unsupported,
    /// The object already exists.
    AlreadyExists,
    /// The client cancelled the request.
    Cancelled,
}

impl ErrorCode {
    fn raw(self) -> TRITONSERVER_Error_Code {
        match self {
            Self::Unknown => TRITONSERVER_ERROR_UNKNOWN,
            Self::Internal => TRITONSERVER_ERROR_INTERNAL,
            Self::NotFound => TRITONSERVER_ERROR_NOT_FOUND,
            Self::InvalidArg => TRITONSERVER_ERROR_INVALID_ARG,
            Self::Unavailable => TRITONSERVER_ERROR_UNAVAILABLE,
            Self::Unsupported => TRITONSERVER_ERROR_UNSUPPORTED,
            Self::AlreadyExists => TRITONSERVER_ERROR_ALREADY_EXISTS,
            Self::Cancelled => TRITONSERVER_ERROR_CANCELLED,
        }
    }

    fn from_raw(raw: TRITONSERVER_Error_Code) -> Self {
        match raw {
            TRITONSERVER_ERROR_INTERNAL => Self::Internal,
            TRITONSERVER_ERROR_NOT_FOUND => Self::NotFound,
            TRITONSERVER_ERROR_INVALID_ARG => Self::InvalidArg,
            TRITONSERVER_ERROR_UNAVAILABLE => Self::Unavailable,
            TRITONSERVER_ERROR_UNSUPPORTED => Self::Unsupported,
            TRITONSERVER_ERROR_ALREADY_EXISTS => Self::AlreadyExists,
            TRITONSERVER_ERROR_CANCELLED => Self::Cancelled,
            _ => Self::Unknown,
        }
    }
}

/// An error: a code and a message.
///
/// `?` converts every [`std::error::Error`] to code [`ErrorCode::Internal`]. Therefore this type does not implement that trait;
/// [`Error::boxed`] returns one that does.
///
/// ```
/// use kelp_backend::{Error, ErrorCode};
///
/// fn parse(text: &str) -> Result<i32, Error> {
///     if text.is_empty() {
///         return Err(Error::new(ErrorCode::InvalidArg, "the text is empty"));
///     }
///     Ok(text.parse()?)
/// }
/// assert_eq!(parse("").unwrap_err().code(), ErrorCode::InvalidArg);
/// assert_eq!(parse("x").unwrap_err().to_string(), "invalid digit found in string");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    code: ErrorCode,
    message: String,
}

impl Error {
    /// Creates an error.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Creates an error with code [`ErrorCode::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// Creates an error with code [`ErrorCode::InvalidArg`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArg, message)
    }

    /// Creates an error with code [`ErrorCode::Unsupported`].
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unsupported, message)
    }

    /// Returns the code.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Prepends text to the message: `what: message`.
    pub fn context(self, what: impl fmt::Display) -> Self {
        Self { code: self.code, message: format!("{what}: {}", self.message) }
    }

    /// Converts the error to a [`std::error::Error`].
    pub fn boxed(self) -> Box<dyn std::error::Error + Send + Sync> {
        Box::new(Boxed(self))
    }

    /// Creates an error of the C interface, which the caller owns. The message ends at a NUL.
    pub(crate) fn to_raw(&self) -> *mut TRITONSERVER_Error {
        let text = c_text(&self.message);
        // SAFETY: the message is copied.
        unsafe { TRITONSERVER_ErrorNew(self.code.raw(), text.as_ptr()) }
    }
}

/// Returns a C string. It ends at a NUL.
pub(crate) fn c_text(text: &str) -> CString {
    let bytes = text.as_bytes();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

/// Returns a name as a C string. INVALID_ARG if it contains a NUL.
pub(crate) fn c_name(name: &str) -> Result<CString, Error> {
    CString::new(name).map_err(|_| Error::invalid(format!("name {name:?} contains a NUL")))
}

/// Returns the text at a pointer that may be NULL.
///
/// # Safety
/// `raw` is NULL or NUL-terminated, and does not change during `'a`.
pub(crate) unsafe fn text<'a>(raw: *const c_char) -> Result<&'a str, Error> {
    if raw.is_null() {
        return Ok("");
    }
    unsafe { CStr::from_ptr(raw) }.to_str().map_err(|_| Error::internal("the server returned text that is not UTF-8"))
}

/// Converts and deletes an error of the C interface. NULL is success.
///
/// # Safety
/// `raw` is NULL or an error that the caller owns.
pub(crate) unsafe fn check(raw: *mut TRITONSERVER_Error) -> Result<(), Error> {
    if raw.is_null() {
        return Ok(());
    }
    // SAFETY: it is deleted after its last use; the message is copied.
    unsafe {
        let code = ErrorCode::from_raw(TRITONSERVER_ErrorCode(raw));
        let message = TRITONSERVER_ErrorMessage(raw);
        let message =
            if message.is_null() { String::new() } else { CStr::from_ptr(message).to_string_lossy().into_owned() };
        TRITONSERVER_ErrorDelete(raw);
        Err(Error { code, message })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}: {}", self.code, self.message)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            message += &format!(": {inner}");
            cause = inner.source();
        }
        Self::internal(message)
    }
}

struct Boxed(Error);

impl fmt::Display for Boxed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

impl fmt::Debug for Boxed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, out)
    }
}

impl std::error::Error for Boxed {}

/// Converts any value with a message to code [`ErrorCode::Internal`], for types that `?` does not accept.
pub fn failure(what: impl fmt::Display) -> Error {
    Error::internal(what.to_string())
}
