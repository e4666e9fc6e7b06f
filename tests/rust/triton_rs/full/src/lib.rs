// SPDX-License-Identifier: Apache-2.0
//! All that the crate has: every hook, numbers and strings, files of the model, and requests that are given back.
use std::ffi::CString;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{ptr, slice};
use triton_rs::sys::*;
use triton_rs::Backend;

struct Full;

static INSTANCES: AtomicUsize = AtomicUsize::new(0);

fn check(error: *mut TRITONSERVER_Error) -> Result<(), triton_rs::Error> {
    if error.is_null() {
        return Ok(());
    }
    unsafe {
        let text = std::ffi::CStr::from_ptr(TRITONSERVER_ErrorMessage(error))
            .to_string_lossy()
            .into_owned();
        TRITONSERVER_ErrorDelete(error);
        Err(text.into())
    }
}

unsafe fn put(
    response: *mut TRITONBACKEND_Response,
    name: &str,
    kind: TRITONSERVER_DataType,
    bytes: &[u8],
) -> Result<(), triton_rs::Error> {
    let name = CString::new(name)?;
    let shape = [1i64];
    let mut output = ptr::null_mut();
    let mut buffer = ptr::null_mut();
    let (mut memory, mut id) = (0, 0i64);
    check(TRITONBACKEND_ResponseOutput(
        response,
        &mut output,
        name.as_ptr(),
        kind,
        shape.as_ptr(),
        1,
    ))?;
    check(TRITONBACKEND_OutputBuffer(
        output,
        &mut buffer,
        bytes.len() as u64,
        &mut memory,
        &mut id,
    ))?;
    ptr::copy_nonoverlapping(bytes.as_ptr(), buffer as *mut u8, bytes.len());
    Ok(())
}

fn run(model: &triton_rs::Model, request: &triton_rs::Request) -> Result<(), triton_rs::Error> {
    let count = request.get_input("COUNT")?.as_u64()?;
    let word = request.get_input("WORD")?.as_string()?;
    let words = String::from_utf8(model.load_file("greeting.txt")?)?;
    let text = format!("{}{}", words.trim(), word.repeat(count as usize));
    let mut response = ptr::null_mut();
    unsafe {
        check(TRITONBACKEND_ResponseNew(&mut response, request.as_ptr()))?;
        put(
            response,
            "TEXT",
            TRITONSERVER_datatype_enum_TRITONSERVER_TYPE_BYTES,
            &triton_rs::encode_string(&text),
        )?;
        put(
            response,
            "INSTANCES",
            TRITONSERVER_datatype_enum_TRITONSERVER_TYPE_UINT64,
            &(INSTANCES.load(Ordering::SeqCst) as u64).to_le_bytes(),
        )?;
        check(TRITONBACKEND_ResponseSend(
            response,
            tritonserver_responsecompleteflag_enum_TRITONSERVER_RESPONSE_COMPLETE_FINAL,
            ptr::null_mut(),
        ))
    }
}

impl Backend for Full {
    fn initialize() -> Result<(), triton_rs::Error> {
        let (mut major, mut minor) = (0, 0);
        unsafe { check(TRITONBACKEND_ApiVersion(&mut major, &mut minor))? };
        if major != TRITONBACKEND_API_VERSION_MAJOR || minor < TRITONBACKEND_API_VERSION_MINOR {
            return Err(format!("the server has version {major}.{minor}").into());
        }
        Ok(())
    }

    fn finalize() -> Result<(), triton_rs::Error> {
        eprintln!("rsfull: the backend ends");
        Ok(())
    }

    fn model_instance_initialize() -> Result<(), triton_rs::Error> {
        // The hook has no handle, so a file tells what is to happen.
        if let Ok(path) = std::env::var("TRITON_RS_FULL_REFUSES") {
            if std::path::Path::new(&path).exists() {
                return Err("no instance today".into());
            }
        }
        INSTANCES.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn model_instance_finalize() -> Result<(), triton_rs::Error> {
        INSTANCES.fetch_sub(1, Ordering::SeqCst);
        eprintln!("rsfull: an instance ends");
        Ok(())
    }

    fn model_instance_execute(
        model: triton_rs::Model,
        requests: &[triton_rs::Request],
    ) -> Result<(), triton_rs::Error> {
        for request in requests {
            run(&model, request)?;
            unsafe {
                check(TRITONBACKEND_RequestRelease(
                    request.as_ptr(),
                    tritonserver_requestreleaseflag_enum_TRITONSERVER_REQUEST_RELEASE_ALL,
                ))?;
            }
        }
        Ok(())
    }
}

triton_rs::declare_backend!(Full);
