// SPDX-License-Identifier: Apache-2.0
//! The server's log.
use crate::error::c_text;
use crate::sys::*;

/// The level of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Information for operators.
    Info,
    /// A possible problem.
    Warn,
    /// An error.
    Error,
    /// Details for debugging.
    Verbose,
}

impl LogLevel {
    fn raw(self) -> TRITONSERVER_LogLevel {
        match self {
            Self::Info => TRITONSERVER_LOG_INFO,
            Self::Warn => TRITONSERVER_LOG_WARN,
            Self::Error => TRITONSERVER_LOG_ERROR,
            Self::Verbose => TRITONSERVER_LOG_VERBOSE,
        }
    }
}

/// Returns whether a level is logged.
pub fn log_enabled(level: LogLevel) -> bool {
    // SAFETY: takes any thread and value.
    unsafe { TRITONSERVER_LogIsEnabled(level.raw()) }
}

/// Writes to the log of the server. The macro [`log!`](crate::log!) formats the message and adds the line.
pub fn log(level: LogLevel, file: &str, line: u32, message: &str) {
    let (file, message) = (c_text(file), c_text(message));
    // SAFETY: texts are copied; an error is deleted.
    unsafe {
        TRITONSERVER_ErrorDelete(TRITONSERVER_LogMessage(
            level.raw(),
            file.as_ptr(),
            line.try_into().unwrap_or(0),
            message.as_ptr(),
        ));
    }
}

/// Writes to the log of the server: `log!(Info, "{} rows", count)`. Disabled levels are not formatted.
///
/// ```no_run
/// kelp_backend::log!(Warn, "the file is {} days old", 400);
/// ```
#[macro_export]
macro_rules! log {
    ($level:ident, $($message:tt)+) => {
        if $crate::log_enabled($crate::LogLevel::$level) {
            $crate::log($crate::LogLevel::$level, ::std::file!(), ::std::line!(), &::std::format!($($message)+));
        }
    };
}
