// SPDX-License-Identifier: Apache-2.0
//! The least that the crate's documentation asks for: answers each request and never gives one back.
use std::ffi::CString;
use std::{ptr, slice};
use triton_rs::sys::*;
use triton_rs::Backend;

struct Echo;

fn check(error: *mut TRITONSERVER_Error) {
    assert!(error.is_null());
}

/// Sends a response whose output "OUT" is one string.
fn answer(request: &triton_rs::Request, text: &str) {
    let bytes = triton_rs::encode_string(text);
    let name = CString::new("OUT").unwrap();
    let shape = [1i64];
    let mut response = ptr::null_mut();
    let mut output = ptr::null_mut();
    let mut buffer = ptr::null_mut();
    let (mut memory, mut id) = (0, 0i64);
    // What the crate leaves to its users is done on the raw interface.
    unsafe {
        check(TRITONBACKEND_ResponseNew(&mut response, request.as_ptr()));
        check(TRITONBACKEND_ResponseOutput(
            response,
            &mut output,
            name.as_ptr(),
            TRITONSERVER_datatype_enum_TRITONSERVER_TYPE_BYTES,
            shape.as_ptr(),
            1,
        ));
        check(TRITONBACKEND_OutputBuffer(
            output,
            &mut buffer,
            bytes.len() as u64,
            &mut memory,
            &mut id,
        ));
        ptr::copy_nonoverlapping(bytes.as_ptr(), buffer as *mut u8, bytes.len());
        check(TRITONBACKEND_ResponseSend(
            response,
            tritonserver_responsecompleteflag_enum_TRITONSERVER_RESPONSE_COMPLETE_FINAL,
            ptr::null_mut(),
        ));
    }
}

impl Backend for Echo {
    fn model_instance_execute(
        model: triton_rs::Model,
        requests: &[triton_rs::Request],
    ) -> Result<(), triton_rs::Error> {
        for request in requests {
            let word = request.get_input("IN")?.as_string()?;
            if let Some(path) = word.strip_prefix("wait for ") {
                while !std::path::Path::new(path).exists() {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
            if word == "fail" {
                return Err("told to fail".into());
            }
            answer(
                request,
                &format!("{} {} says {word}", model.name()?, model.version()?),
            );
        }
        Ok(())
    }
}

triton_rs::declare_backend!(Echo);
