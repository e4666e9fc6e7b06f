// SPDX-License-Identifier: Apache-2.0
//! Failures, ours and the server's.
use crate::sys::*;
use std::ffi::{CStr, CString};
use std::fmt;

/// The class of a failure, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// No class fits.
    Unknown,
    /// Something in the server or in a backend is wrong.
    Internal,
    /// What was asked for does not exist.
    NotFound,
    /// The request is wrong.
    InvalidArg,
    /// Not now.
    Unavailable,
    /// Not here.
    Unsupported,
    /// What was to be made exists.
    AlreadyExists,
    /// Whoever asked has given up.
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

/// A failure: a class and what a person reads.
///
/// `?` turns every [`std::error::Error`] into one of class [`ErrorCode::Internal`]. For that to be possible this type does not implement
/// that trait itself; [`Error::boxed`] gives what does.
///
/// ```
/// use kelp_backend::{Error, ErrorCode};
///
/// fn parse(text: &str) -> Result<i32, Error> {
///     if text.is_empty() {
///         return Err(Error::new(ErrorCode::InvalidArg, "no number at all"));
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
    /// Makes a failure.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A failure of class [`ErrorCode::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// A failure of class [`ErrorCode::InvalidArg`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArg, message)
    }

    /// A failure of class [`ErrorCode::Unsupported`].
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unsupported, message)
    }

    /// The class.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// What a person reads.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same with more in front: `what: message`.
    pub fn context(self, what: impl fmt::Display) -> Self {
        Self { code: self.code, message: format!("{what}: {}", self.message) }
    }

    /// The failure as a [`std::error::Error`].
    pub fn boxed(self) -> Box<dyn std::error::Error + Send + Sync> {
        Box::new(Boxed(self))
    }

    /// A new error of the C interface, which the caller owns. A NUL in the message ends it.
    pub(crate) fn to_raw(&self) -> *mut TRITONSERVER_Error {
        let text = c_text(&self.message);
        // SAFETY: the message is copied.
        unsafe { TRITONSERVER_ErrorNew(self.code.raw(), text.as_ptr()) }
    }
}

/// A text for C; what follows a NUL is left out.
pub(crate) fn c_text(text: &str) -> CString {
    let bytes = text.as_bytes();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

/// A name for C; INVALID_ARG when there is a NUL in it.
pub(crate) fn c_name(name: &str) -> Result<CString, Error> {
    CString::new(name).map_err(|_| Error::invalid(format!("name {name:?} has a NUL in it")))
}

/// The text behind a pointer that may be NULL.
///
/// # Safety
/// It is NULL or ends with a NUL, and stays as it is during `'a`.
pub(crate) unsafe fn text<'a>(raw: *const c_char) -> Result<&'a str, Error> {
    if raw.is_null() {
        return Ok("");
    }
    unsafe { CStr::from_ptr(raw) }.to_str().map_err(|_| Error::internal("the server gave a text that is not UTF-8"))
}

/// What an error of the C interface says, which is deleted; NULL is success.
///
/// # Safety
/// It is NULL or an error that the caller owns.
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

/// Anything that has a message, as a failure of class [`ErrorCode::Internal`]: for those that `?` does not take.
pub fn failure(what: impl fmt::Display) -> Error {
    Error::internal(what.to_string())
}
