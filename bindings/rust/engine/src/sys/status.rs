// SPDX-License-Identifier: Apache-2.0
//! Declarations of `include/kelp/status.h`, which documents every function. Written by make_sys.py.
use super::*;

pub type kelp_code = c_uint;
pub const KELP_OK: kelp_code = 0;
pub const KELP_CANCELLED: kelp_code = 1;
pub const KELP_UNKNOWN: kelp_code = 2;
pub const KELP_INVALID_ARGUMENT: kelp_code = 3;
pub const KELP_DEADLINE_EXCEEDED: kelp_code = 4;
pub const KELP_NOT_FOUND: kelp_code = 5;
pub const KELP_ALREADY_EXISTS: kelp_code = 6;
pub const KELP_PERMISSION_DENIED: kelp_code = 7;
pub const KELP_RESOURCE_EXHAUSTED: kelp_code = 8;
pub const KELP_FAILED_PRECONDITION: kelp_code = 9;
pub const KELP_ABORTED: kelp_code = 10;
pub const KELP_OUT_OF_RANGE: kelp_code = 11;
pub const KELP_UNIMPLEMENTED: kelp_code = 12;
pub const KELP_INTERNAL: kelp_code = 13;
pub const KELP_UNAVAILABLE: kelp_code = 14;
pub const KELP_DATA_LOSS: kelp_code = 15;
pub const KELP_UNAUTHENTICATED: kelp_code = 16;
pub type kelp_domain = c_uint;
pub const KELP_DOMAIN_NONE: kelp_domain = 0;
pub const KELP_DOMAIN_BUILDER: kelp_domain = 1;
pub const KELP_DOMAIN_NETWORK: kelp_domain = 2;
pub const KELP_DOMAIN_ENGINE: kelp_domain = 3;
pub const KELP_DOMAIN_RUNTIME: kelp_domain = 4;
pub const KELP_DOMAIN_DEVICE: kelp_domain = 5;
pub const KELP_DOMAIN_PARAMETER: kelp_domain = 6;
opaque!(kelp_status);

unsafe extern "C" {
    pub fn kelp_status_oom() -> *mut kelp_status;
    pub fn kelp_status_free(status: *mut kelp_status);
    pub fn kelp_status_clone(status: *const kelp_status) -> *mut kelp_status;
    pub fn kelp_status_code(status: *const kelp_status) -> kelp_code;
    pub fn kelp_status_message(status: *const kelp_status) -> *const c_char;
    pub fn kelp_status_cause(status: *const kelp_status) -> *const kelp_status;
    pub fn kelp_status_file(status: *const kelp_status) -> *const c_char;
    pub fn kelp_status_line(status: *const kelp_status) -> c_int;
    pub fn kelp_status_domain(status: *const kelp_status) -> kelp_domain;
    pub fn kelp_status_set_domain(status: *mut kelp_status, domain: kelp_domain);
    pub fn kelp_domain_name(domain: kelp_domain) -> *const c_char;
    pub fn kelp_code_name(code: kelp_code) -> *const c_char;
    pub fn kelp_status_format(status: *const kelp_status, buffer: *mut c_char, capacity: usize) -> usize;
}
