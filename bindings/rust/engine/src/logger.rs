// SPDX-License-Identifier: Apache-2.0
//! Log messages.
use crate::sys::*;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

/// The severity of a log message, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum Severity {
    /// A failure.
    Error = 0,
    /// Something unexpected that is not a failure.
    Warning = 1,
    /// Builds and loads.
    Info = 2,
    /// Details for debugging.
    Verbose = 3,
}

impl Severity {
    fn from_raw(level: c_int) -> Self {
        match level {
            ..=0 => Self::Error,
            1 => Self::Warning,
            2 => Self::Info,
            3.. => Self::Verbose,
        }
    }

    fn letter(self) -> char {
        ['E', 'W', 'I', 'V'][self as usize]
    }
}

type Callback = dyn Fn(Severity, &str) + Send + Sync;

/// What the runtimes of a logger share with it.
pub(crate) struct Sink {
    pub(crate) severity: Severity,
    callback: Box<Callback>,
}

/// Receives the log messages of builders, runtimes and engines.
///
/// ```
/// use kelp_engine::{Builder, BuilderConfig, DataType, Logger, Severity};
/// use std::sync::{Arc, Mutex};
///
/// # fn main() -> kelp_engine::Result<()> {
/// let messages = Arc::new(Mutex::new(Vec::new()));
/// let sink = messages.clone();
/// let logger = Logger::from_fn(Severity::Info, move |severity, message| {
///     sink.lock().unwrap().push((severity, message.to_owned()));
/// });
/// let builder = Builder::new(&logger)?;
/// let network = builder.create_network()?;
/// let input = network.add_input("x", [2], DataType::Float)?;
/// network.mark_output(network.add_identity(input)?.output(0)?)?;
/// builder.build_serialized_network(&network, &BuilderConfig::new()?)?;
/// let messages = messages.lock().unwrap();
/// assert!(messages.iter().any(|(severity, text)| *severity == Severity::Info && text.contains("plan of")));
/// # Ok(())
/// # }
/// ```
pub struct Logger {
    pub(crate) sink: Arc<Sink>,
}

impl Logger {
    /// Creates a logger that writes messages of this severity and of more severe ones to standard error.
    pub fn new(severity: Severity) -> Self {
        Self::from_fn(severity, |severity, text| eprintln!("{} kelp: {text}", severity.letter()))
    }

    /// Creates a logger that passes messages of this severity and of more severe ones to a function. The function is called on any
    /// thread, and on several threads at once. If it panics, the message is lost.
    pub fn from_fn(severity: Severity, callback: impl Fn(Severity, &str) + Send + Sync + 'static) -> Self {
        Self { sink: Arc::new(Sink { severity, callback: Box::new(callback) }) }
    }

    /// Returns the least severe messages that the logger receives.
    pub fn severity(&self) -> Severity {
        self.sink.severity
    }
}

/// The log callback of a runtime. `userp` is a `Sink`.
pub(crate) unsafe extern "C" fn receive(
    userp: *mut c_void,
    level: c_int,
    _file: *const c_char,
    _line: c_int,
    text: *const c_char,
    length: usize,
) {
    // SAFETY: the runtime holds the sink as long as it calls this function; the text is valid during the call.
    let (sink, text) = unsafe { (&*userp.cast::<Sink>(), std::slice::from_raw_parts(text.cast::<u8>(), length)) };
    // A panic must not pass through C. The message is all that is lost.
    let _ =
        catch_unwind(AssertUnwindSafe(|| (sink.callback)(Severity::from_raw(level), &String::from_utf8_lossy(text))));
}
