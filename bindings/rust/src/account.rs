// SPDX-License-Identifier: Apache-2.0
//! Ensures that a request gets one final response and one release, whatever a backend does.
//!
//! The request, its factories and its responses share an account. They are its senders. When the last sender is dropped, a request without a
//! final response is completed. The lock is held while a response is sent, so that nothing follows the final one.
use crate::error::{check, Error};
use crate::log::{log, LogLevel};
use crate::sys::*;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) struct Account {
    instance: *mut TRITONBACKEND_ModelInstance,
    pub(crate) decoupled: bool,
    start_ns: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether the final response was sent.
    finished: bool,
    /// Whether a response was an error.
    failed: bool,
    responses: u64,
    senders: usize,
    /// Whether execute is still running. The request is completed after it returns.
    executing: bool,
    /// Whether the request can be released.
    returned: bool,
    /// Whether the request has stopped being a sender.
    given_up: bool,
}

// SAFETY: the pointer to the instance is only passed to thread-safe functions, and the server keeps the instance as long as one of its
// requests or factories lives.
unsafe impl Send for Account {}
unsafe impl Sync for Account {}

/// A handle that can send the final response.
#[derive(Clone, Copy)]
pub(crate) enum Means {
    Request(*mut TRITONBACKEND_Request),
    Factory(*mut TRITONBACKEND_ResponseFactory),
}

/// Returns the time of the statistics clock in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    #[repr(C)]
    struct Time {
        seconds: std::ffi::c_long,
        nanoseconds: std::ffi::c_long,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    }
    const MONOTONIC: c_int = 1;
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: `time` has the layout of struct timespec.
    unsafe { clock_gettime(MONOTONIC, &mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}

/// Logs an error that cannot be returned.
pub(crate) fn log_failure(doing: &str, error: &Error) {
    log(LogLevel::Error, file!(), line!(), &format!("{doing}: {error}"));
}

fn log_raw(doing: &str, raw: *mut TRITONSERVER_Error) {
    // SAFETY: the error is ours.
    if let Err(error) = unsafe { check(raw) } {
        log_failure(doing, &error);
    }
}

impl Account {
    pub(crate) fn new(instance: *mut TRITONBACKEND_ModelInstance, decoupled: bool, start_ns: u64) -> Arc<Self> {
        let state = State { senders: 1, executing: true, ..State::default() };
        Arc::new(Self { instance, decoupled, start_ns, state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Runs `make`, which creates a response or factory. Fails after the final response. `counts`: the result is a sender.
    pub(crate) fn join<T>(
        &self,
        by_request: bool,
        counts: bool,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut state = self.lock();
        if state.finished {
            return Err(answered());
        }
        if by_request && state.given_up {
            return Err(Error::internal("the request was released"));
        }
        let made = make()?;
        state.senders += usize::from(counts);
        Ok(made)
    }

    /// Sends and consumes a response. `counts`: it was a sender.
    pub(crate) fn send(
        &self,
        raw: *mut TRITONBACKEND_Response,
        factory: *mut TRITONBACKEND_ResponseFactory,
        counts: bool,
        is_final: bool,
        error: Option<&Error>,
        times: (u64, u64),
    ) -> Result<(), Error> {
        let mut state = self.lock();
        state.senders -= usize::from(counts);
        if state.finished {
            // SAFETY: the response is ours and was not sent.
            log_raw("cannot delete a response", unsafe { TRITONBACKEND_ResponseDelete(raw) });
            return Err(answered());
        }
        self.send_locked(&mut state, raw, factory, is_final || !self.decoupled, error, times)
    }

    fn send_locked(
        &self,
        state: &mut State,
        raw: *mut TRITONBACKEND_Response,
        factory: *mut TRITONBACKEND_ResponseFactory,
        is_final: bool,
        error: Option<&Error>,
        times: (u64, u64),
    ) -> Result<(), Error> {
        let raw_error = error.map_or(null_mut(), Error::to_raw);
        let flags = if is_final { TRITONSERVER_RESPONSE_COMPLETE_FINAL } else { 0 };
        state.finished |= is_final;
        state.failed |= error.is_some();
        state.responses += 1;
        // SAFETY: the response is ours and goes to the server; the error stays ours.
        unsafe {
            let sent = check(TRITONBACKEND_ResponseSend(raw, flags, raw_error));
            if !factory.is_null() {
                self.report_response(factory, times, raw_error);
            }
            TRITONSERVER_ErrorDelete(raw_error);
            sent
        }
    }

    /// Handles a response that is dropped without being sent: deletes it, or sends it as an error if there is no other sender.
    pub(crate) fn drop_response(&self, raw: *mut TRITONBACKEND_Response, counts: bool) {
        let mut state = self.lock();
        state.senders -= usize::from(counts);
        if counts && state.senders == 0 && !state.finished {
            let error = Error::internal("the backend dropped its response");
            if let Err(error) = self.send_locked(&mut state, raw, null_mut(), true, Some(&error), (0, 0)) {
                log_failure("cannot send a response", &error);
            }
            return;
        }
        // SAFETY: the response is ours and was not sent.
        log_raw("cannot delete a response", unsafe { TRITONBACKEND_ResponseDelete(raw) });
    }

    /// Sends the final flag. Fails if it was already sent.
    pub(crate) fn finish(&self, means: Means) -> Result<(), Error> {
        let mut state = self.lock();
        if state.finished {
            return Err(answered());
        }
        self.end(&mut state, means, None)
    }

    /// Removes a sender.
    pub(crate) fn leave(&self, means: Means) {
        let mut state = self.lock();
        state.senders -= 1;
        if state.senders == 0 && !state.finished {
            if let Err(error) = self.end(&mut state, means, None) {
                log_failure("cannot end a request", &error);
            }
        }
    }

    /// Completes a request without a final response: with an error if it had no response and its model is not decoupled.
    fn end(&self, state: &mut State, means: Means, error: Option<&Error>) -> Result<(), Error> {
        let silent = Error::internal("the backend sent no response");
        let error = if error.is_none() && !self.decoupled { Some(&silent) } else { error };
        let start_ns = now_ns();
        let mut raw = null_mut();
        // SAFETY: what is made here is sent or deleted here; the means are alive.
        unsafe {
            match (error, means) {
                (Some(error), Means::Request(request)) => {
                    check(TRITONBACKEND_ResponseNew(&mut raw, request))?;
                    self.send_locked(state, raw, null_mut(), true, Some(error), (start_ns, 0))
                }
                (Some(error), Means::Factory(factory)) => {
                    check(TRITONBACKEND_ResponseNewFromFactory(&mut raw, factory))?;
                    let reported = if self.decoupled { factory } else { null_mut() };
                    self.send_locked(state, raw, reported, true, Some(error), (start_ns, 0))
                }
                (None, Means::Factory(factory)) => {
                    state.finished = true;
                    check(TRITONBACKEND_ResponseFactorySendFlags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL))?;
                    self.report_response(factory, (start_ns, 0), null_mut());
                    Ok(())
                }
                (None, Means::Request(request)) => {
                    let mut factory = null_mut();
                    check(TRITONBACKEND_ResponseFactoryNew(&mut factory, request))?;
                    let result = self.end(state, Means::Factory(factory), None);
                    log_raw("cannot delete a factory", TRITONBACKEND_ResponseFactoryDelete(factory));
                    result
                }
            }
        }
    }

    /// Removes the request from the senders.
    pub(crate) fn give_up(&self, raw: *mut TRITONBACKEND_Request) {
        let mut state = self.lock();
        if !state.given_up {
            self.give_up_locked(&mut state, raw, None);
        }
    }

    fn give_up_locked(&self, state: &mut State, raw: *mut TRITONBACKEND_Request, error: Option<&Error>) {
        state.given_up = true;
        state.senders -= 1;
        if !state.finished && (error.is_some() || state.senders == 0) {
            if let Err(error) = self.end(state, Means::Request(raw), error) {
                log_failure("cannot end a request", &error);
            }
        }
    }

    /// Completes the request, which is no longer in use, now or when execute returns.
    pub(crate) fn return_request(&self, raw: *mut TRITONBACKEND_Request) {
        let mut state = self.lock();
        if state.executing {
            state.returned = true;
            return;
        }
        self.complete(state, raw, None);
    }

    /// Handles the result of execute: sends a failure for a request without a response. Returns whether it was sent.
    pub(crate) fn executed(&self, raw: *mut TRITONBACKEND_Request, error: Option<&Error>) -> bool {
        let mut state = self.lock();
        state.executing = false;
        if !state.returned {
            return false;
        }
        let told = error.is_some() && !state.finished && !state.given_up;
        self.complete(state, raw, error);
        told
    }

    /// Reports and releases.
    fn complete(&self, mut state: MutexGuard<'_, State>, raw: *mut TRITONBACKEND_Request, error: Option<&Error>) {
        if !state.given_up {
            self.give_up_locked(&mut state, raw, error);
        }
        let success = !state.failed && (state.responses > 0 || self.decoupled || !state.finished);
        drop(state);
        let end_ns = now_ns();
        // SAFETY: the request is ours until it is released, and nobody uses it after that.
        unsafe {
            log_raw(
                "cannot report statistics",
                TRITONBACKEND_ModelInstanceReportStatistics(
                    self.instance,
                    raw,
                    success,
                    self.start_ns,
                    self.start_ns,
                    end_ns,
                    end_ns,
                ),
            );
            log_raw("cannot release a request", TRITONBACKEND_RequestRelease(raw, TRITONSERVER_REQUEST_RELEASE_ALL));
        }
    }

    /// Adds a response of a decoupled model to the statistics.
    unsafe fn report_response(
        &self,
        factory: *mut TRITONBACKEND_ResponseFactory,
        (start_ns, output_ns): (u64, u64),
        error: *mut TRITONSERVER_Error,
    ) {
        let mut report = null_mut();
        // SAFETY: factory and instance are alive, the error is borrowed for the report.
        let result = unsafe {
            check(TRITONBACKEND_ModelInstanceResponseStatisticsNew(&mut report))
                .and_then(|()| {
                    check(TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(report, self.instance))
                })
                .and_then(|()| check(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(report, factory)))
                .and_then(|()| check(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(report, start_ns)))
                .and_then(|()| {
                    check(TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(report, output_ns))
                })
                .and_then(|()| check(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(report, now_ns())))
                .and_then(|()| check(TRITONBACKEND_ModelInstanceResponseStatisticsSetError(report, error)))
                .and_then(|()| check(TRITONBACKEND_ModelInstanceReportResponseStatistics(report)))
        };
        if let Err(error) = result {
            log_failure("cannot report a response", &error);
        }
        if !report.is_null() {
            // SAFETY: it is ours.
            log_raw("cannot delete a report", unsafe { TRITONBACKEND_ModelInstanceResponseStatisticsDelete(report) });
        }
    }
}

fn answered() -> Error {
    Error::internal("the request already has its final response")
}
