// SPDX-License-Identifier: Apache-2.0
//! The server's log.
use crate::error::c_text;
use crate::sys::*;

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// What a person who runs the server wants to know.
    Info,
    /// What may be wrong.
    Warn,
    /// What is wrong.
    Error,
    /// What only helps to find faults.
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

/// Whether messages of a level are written.
pub fn log_enabled(level: LogLevel) -> bool {
    // SAFETY: takes any thread and value.
    unsafe { TRITONSERVER_LogIsEnabled(level.raw()) }
}

/// Writes to the server's log. The macro [`log!`](crate::log!) composes the message and knows the line.
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

/// Writes to the server's log: `log!(Info, "{} rows", count)`. What is not written is not composed.
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
