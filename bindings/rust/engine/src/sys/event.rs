// SPDX-License-Identifier: Apache-2.0
//! Declarations of `include/kelp/event.h`, which documents every function. Written by make_sys.py.
use super::*;

opaque!(kelp_event);

unsafe extern "C" {
    pub fn kelp_event_create(allocator: kelp_allocator, out: *mut *mut kelp_event) -> *mut kelp_status;
    pub fn kelp_event_destroy(event: *mut kelp_event);
    pub fn kelp_event_done(event: *mut kelp_event) -> bool;
    pub fn kelp_event_wait(event: *mut kelp_event, timeout_ns: u64) -> bool;
    pub fn kelp_event_set_callback(
        event: *mut kelp_event,
        callback: Option<unsafe extern "C" fn(userp: *mut c_void)>,
        userp: *mut c_void,
    );
}
