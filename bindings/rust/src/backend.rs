// SPDX-License-Identifier: Apache-2.0
//! The trait that a backend implements, and the functions that the entry points of its library call.
use crate::account::{log_failure, now_ns, Account};
use crate::error::{check, Error};
use crate::model::{Host, InstanceBox, Model, ModelBox, ModelInstance};
use crate::request::Request;
use crate::sys::*;
use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;
use std::sync::Arc;

/// The instance type of a backend.
pub type InstanceOf<'a, B> = ModelInstance<'a, <B as Backend>::ModelInstanceState, <B as Backend>::ModelState>;

/// A backend. All functions except [`model_instance_execute`](Backend::model_instance_execute) are optional.
///
/// A panic in any of these functions becomes an error, and the server continues.
///
/// ```no_run
/// use kelp_backend::{Backend, Error, Model, ModelInstance, Request, Response};
///
/// struct Scale;
///
/// impl Backend for Scale {
///     type ModelState = f32;
///     type ModelInstanceState = u64;
///
///     fn model_initialize(model: Model<f32>) -> Result<(), Error> {
///         let factor = model.parameter("factor").unwrap_or("2".into());
///         model.set_state(factor.parse()?)
///     }
///
///     fn model_instance_initialize(mut instance: ModelInstance<u64, f32>) -> Result<(), Error> {
///         instance.set_state(0);
///         Ok(())
///     }
///
///     fn model_instance_execute(mut instance: ModelInstance<u64, f32>, requests: &[Request]) -> Result<(), Error> {
///         let factor = instance.model().state()?;
///         for request in requests {
///             let input = request.get_input("IN")?;
///             let mut response = Response::from_request(request)?;
///             let output = response.output::<f32>("OUT", input.properties()?.shape)?;
///             for (y, x) in output.iter_mut().zip(input.slice::<f32>()?) {
///                 *y = factor * x;
///             }
///             response.send()?;
///             *instance.state_mut()? += 1;
///         }
///         Ok(())
///     }
/// }
///
/// kelp_backend::declare_backend!(Scale);
/// # fn main() {}
/// ```
pub trait Backend: Sized + 'static {
    /// The state of a model: [`Model::set_state`], [`Model::state`]. Shared by its instances.
    type ModelState: Send + Sync + 'static;

    /// The state of an instance: [`ModelInstance::set_state`], [`ModelInstance::state`].
    type ModelInstanceState: Send + 'static;

    /// Whether instances of a model may be initialized in parallel.
    const PARALLEL_LOADING: bool = false;

    /// Called when the library is loaded. A failure rejects it.
    fn initialize(_host: &Host) -> Result<(), Error> {
        Ok(())
    }

    /// Called after the last model is unloaded.
    fn finalize() -> Result<(), Error> {
        Ok(())
    }

    /// Called when a model is loaded. A failure rejects the model and is its error message.
    fn model_initialize(_model: Model<Self::ModelState>) -> Result<(), Error> {
        Ok(())
    }

    /// Called when a model is unloaded. Its state is dropped after that.
    fn model_finalize(_model: Model<Self::ModelState>) -> Result<(), Error> {
        Ok(())
    }

    /// Called when an instance is created. A failure rejects its model.
    fn model_instance_initialize(_model_instance: InstanceOf<Self>) -> Result<(), Error> {
        Ok(())
    }

    /// Called when an instance is destroyed. Its state is dropped after that.
    fn model_instance_finalize(_model_instance: InstanceOf<Self>) -> Result<(), Error> {
        Ok(())
    }

    /// Returns an error if the model is not ready. Called on any thread, also during executions.
    fn model_ready(_model: Model<Self::ModelState>) -> Result<(), Error> {
        Ok(())
    }

    /// Executes requests on the thread of the instance, one call at a time.
    ///
    /// If it fails, every request without a final response gets the error. A request without any response gets an error. The crate reports
    /// statistics and releases requests.
    fn model_instance_execute(model_instance: InstanceOf<Self>, requests: &[Request]) -> Result<(), Error>;

    /// Does the same with owned requests, which may be kept and moved to other threads. A request is released when it is dropped. The default
    /// calls [`model_instance_execute`](Backend::model_instance_execute).
    fn model_instance_execute_owned(model_instance: InstanceOf<Self>, requests: Vec<Request>) -> Result<(), Error> {
        Self::model_instance_execute(model_instance, &requests)
    }
}

/// Registers a backend: generates the entry points of the library.
#[macro_export]
macro_rules! declare_backend {
    ($backend:ty) => {
        const _: () = {
            use $crate::{entry, sys};

            #[unsafe(no_mangle)]
            unsafe extern "C" fn TRITONBACKEND_Initialize(
                backend: *mut sys::TRITONBACKEND_Backend,
            ) -> *mut sys::TRITONSERVER_Error {
                unsafe { entry::initialize::<$backend>(backend) }
            }
            const _: sys::TRITONBACKEND_Initialize_t = TRITONBACKEND_Initialize;

            #[unsafe(no_mangle)]
            unsafe extern "C" fn TRITONBACKEND_Finalize(
                backend: *mut sys::TRITONBACKEND_Backend,
            ) -> *mut sys::TRITONSERVER_Error {
                unsafe { entry::finalize::<$backend>(backend) }
            }
            const _: sys::TRITONBACKEND_Finalize_t = TRITONBACKEND_Finalize;

            #[unsafe(no_mangle)]
            unsafe extern "C" fn TRITONBACKEND_GetBackendAttribute(
                backend: *mut sys::TRITONBACKEND_Backend,
                attributes: *mut sys::TRITONBACKEND_BackendAttribute,
            ) -> *mut sys::TRITONSERVER_Error {
                unsafe { entry::attributes::<$backend>(backend, attributes) }
            }
            const _: sys::TRITONBACKEND_GetBackendAttribute_t = TRITONBACKEND_GetBackendAttribute;

            #[unsafe(no_mangle)]
            unsafe extern "C" fn TRITONBACKEND_ModelInitialize(
                model: *mut sys::TRITONBACKEND_Model,
            ) -> *mut sys::TRITONSERVER_Error {
                unsafe { entry::model_initialize::<$backend>(model) }
            }
            const _: sys::TRITONBACKEND_ModelInitialize_t = TRITONBACKEND_ModelInitialize;

            #[unsafe(no_mangle)]
            unsafe extern "C" fn TRITONBACKEND_ModelFinalize(
                model: *mut sys::TRITONBACKEND_Model,
            ) -> *mut sys::TRITONSERVER_Error {
                unsafe { entry::model_finalize::<$backend>(model) }
            }
            const _: sys::TRITONBACKEND_ModelFinalize_t = TRITONBACKEND_ModelFinalize;

            #[unsafe(no_mangle)]
            unsafe extern "C" fn TRITONBACKEND_ModelInstanceInitialize(
                instance: *mut sys::TRITONBACKEND_ModelInstance,
            ) -> *mut sys::TRITONSERVER_Error {
                unsafe { entry::instance_initialize::<$backend>(instance) }
            }
            const _: sys::TRITONBACKEND_ModelInstanceInitialize_t = TRITONBACKEND_ModelInstanceInitialize;

            #[unsafe(no_mangle)]
            unsafe extern "C" fn TRITONBACKEND_ModelInstanceFinalize(
                instance: *mut sys::TRITONBACKEND_ModelInstance,
            ) -> *mut sys::TRITONSERVER_Error {
                unsafe { entry::instance_finalize::<$backend>(instance) }
            }
            const _: sys::TRITONBACKEND_ModelInstanceFinalize_t = TRITONBACKEND_ModelInstanceFinalize;

            #[unsafe(no_mangle)]
            unsafe extern "C" fn TRITONBACKEND_ModelInstanceReady(
                instance: *mut sys::TRITONBACKEND_ModelInstance,
            ) -> *mut sys::TRITONSERVER_Error {
                unsafe { entry::instance_ready::<$backend>(instance) }
            }
            const _: sys::TRITONBACKEND_ModelInstanceReady_t = TRITONBACKEND_ModelInstanceReady;

            #[unsafe(no_mangle)]
            unsafe extern "C" fn TRITONBACKEND_ModelInstanceExecute(
                instance: *mut sys::TRITONBACKEND_ModelInstance,
                requests: *mut *mut sys::TRITONBACKEND_Request,
                request_count: u32,
            ) -> *mut sys::TRITONSERVER_Error {
                unsafe { entry::execute::<$backend>(instance, requests, request_count) }
            }
            const _: sys::TRITONBACKEND_ModelInstanceExecute_t = TRITONBACKEND_ModelInstanceExecute;
        };
    };
}

/// Returns the message of a panic.
pub(crate) fn panic_error(payload: Box<dyn Any + Send>) -> Error {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| text.to_string())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    // The payload may panic when it is dropped. Ignore the second payload.
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
    Error::internal(format!("the backend panicked: {text}"))
}

/// Runs a function that may fail or panic.
pub(crate) fn guarded<T>(run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| Err(panic_error(payload)))
}

fn answer(run: impl FnOnce() -> Result<(), Error>) -> *mut TRITONSERVER_Error {
    guarded(run).map_or_else(|error| error.to_raw(), |()| null_mut())
}

/// Called by the entry points of [`declare_backend!`], with their contracts.
#[doc(hidden)]
pub mod entry {
    use super::*;

    fn check_version() -> Result<(), Error> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: any thread.
        unsafe { check(TRITONBACKEND_ApiVersion(&mut major, &mut minor)) }?;
        let (our_major, our_minor) = (TRITONBACKEND_API_VERSION_MAJOR, TRITONBACKEND_API_VERSION_MINOR);
        if major == our_major && minor >= our_minor {
            return Ok(());
        }
        let text = format!(
            "the backend needs version {our_major}.{our_minor} of the backend API, the server has {major}.{minor}"
        );
        Err(Error::unsupported(text))
    }

    #[allow(clippy::missing_safety_doc)]
    pub unsafe fn initialize<B: Backend>(raw: *mut TRITONBACKEND_Backend) -> *mut TRITONSERVER_Error {
        answer(|| {
            check_version()?;
            // SAFETY: it is being initialized.
            B::initialize(&unsafe { Host::new(raw) })
        })
    }

    #[allow(clippy::missing_safety_doc)]
    pub unsafe fn finalize<B: Backend>(_raw: *mut TRITONBACKEND_Backend) -> *mut TRITONSERVER_Error {
        answer(B::finalize)
    }

    #[allow(clippy::missing_safety_doc)]
    pub unsafe fn attributes<B: Backend>(
        _raw: *mut TRITONBACKEND_Backend,
        attributes: *mut TRITONBACKEND_BackendAttribute,
    ) -> *mut TRITONSERVER_Error {
        if !B::PARALLEL_LOADING {
            return null_mut();
        }
        // SAFETY: borrowed for the call.
        unsafe { TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attributes, true) }
    }

    #[allow(clippy::missing_safety_doc)]
    pub unsafe fn model_initialize<B: Backend>(raw: *mut TRITONBACKEND_Model) -> *mut TRITONSERVER_Error {
        answer(|| {
            // SAFETY: it is being initialized; the box goes to the model and comes back when that is finalized.
            unsafe {
                let model = ModelBox::<B::ModelState>::new(raw)?;
                let begun = guarded(|| B::model_initialize(model.handle()));
                if let Err(error) = begun {
                    model.inner.server.inner.close();
                    return Err(error);
                }
                check(TRITONBACKEND_ModelSetState(raw, Box::into_raw(model).cast()))
            }
        })
    }

    #[allow(clippy::missing_safety_doc)]
    pub unsafe fn model_finalize<B: Backend>(raw: *mut TRITONBACKEND_Model) -> *mut TRITONSERVER_Error {
        answer(|| {
            let mut state = null_mut();
            // SAFETY: the state is what `model_initialize` left; no instance of the model is left.
            unsafe {
                check(TRITONBACKEND_ModelState(raw, &mut state))?;
                check(TRITONBACKEND_ModelSetState(raw, null_mut()))?;
                if state.is_null() {
                    return Ok(());
                }
                let model = Box::from_raw(state.cast::<ModelBox<B::ModelState>>());
                let ended = guarded(|| B::model_finalize(model.handle()));
                model.inner.server.inner.close();
                ended
            }
        })
    }

    #[allow(clippy::missing_safety_doc)]
    pub unsafe fn instance_initialize<B: Backend>(raw: *mut TRITONBACKEND_ModelInstance) -> *mut TRITONSERVER_Error {
        answer(|| {
            let (mut model, mut state) = (null_mut(), null_mut());
            // SAFETY: it is being initialized; the model is, and outlives it.
            unsafe {
                check(TRITONBACKEND_ModelInstanceModel(raw, &mut model))?;
                check(TRITONBACKEND_ModelState(model, &mut state))?;
                if state.is_null() {
                    return Err(Error::internal("the model was not initialized"));
                }
                let instance = InstanceBox::<B::ModelInstanceState>::new(raw, state)?;
                B::model_instance_initialize(instance.handle())?;
                check(TRITONBACKEND_ModelInstanceSetState(raw, Box::into_raw(instance).cast()))
            }
        })
    }

    /// The instance of `instance_initialize`.
    unsafe fn instance_of<B: Backend>(
        raw: *mut TRITONBACKEND_ModelInstance,
    ) -> Result<*mut InstanceBox<B::ModelInstanceState>, Error> {
        let mut state = null_mut();
        // SAFETY: the instance is alive.
        unsafe { check(TRITONBACKEND_ModelInstanceState(raw, &mut state)) }?;
        if state.is_null() {
            return Err(Error::internal("the instance was not initialized"));
        }
        Ok(state.cast())
    }

    #[allow(clippy::missing_safety_doc)]
    pub unsafe fn instance_finalize<B: Backend>(raw: *mut TRITONBACKEND_ModelInstance) -> *mut TRITONSERVER_Error {
        answer(|| {
            // SAFETY: the instance is no longer in use.
            unsafe {
                let instance = Box::from_raw(instance_of::<B>(raw)?);
                check(TRITONBACKEND_ModelInstanceSetState(raw, null_mut()))?;
                B::model_instance_finalize(instance.handle())
            }
        })
    }

    #[allow(clippy::missing_safety_doc)]
    pub unsafe fn instance_ready<B: Backend>(raw: *mut TRITONBACKEND_ModelInstance) -> *mut TRITONSERVER_Error {
        answer(|| {
            // SAFETY: the model outlives its instances. The instance's own state may be in use.
            let model = unsafe { &*(*instance_of::<B>(raw)?).model.cast::<ModelBox<B::ModelState>>() };
            B::model_ready(model.handle())
        })
    }

    /// Returns the batch size of a request.
    fn batch_of(request: &Request) -> u64 {
        let inputs = request.inputs().unwrap_or_default();
        let shape = inputs.first().and_then(|input| input.properties().ok()).map(|properties| properties.shape);
        shape.and_then(|shape| shape.first().copied()).and_then(|extent| u64::try_from(extent).ok()).unwrap_or(1)
    }

    #[allow(clippy::missing_safety_doc)]
    pub unsafe fn execute<B: Backend>(
        raw: *mut TRITONBACKEND_ModelInstance,
        requests: *mut *mut TRITONBACKEND_Request,
        request_count: u32,
    ) -> *mut TRITONSERVER_Error {
        let start_ns = now_ns();
        // SAFETY: the instance is alive, and execute is called one at a time.
        let instance = match unsafe { instance_of::<B>(raw) } {
            Ok(instance) => unsafe { &*instance },
            Err(error) => return error.to_raw(), // no response was sent: the server sends the error
        };
        // SAFETY: this function owns the requests; each is released once.
        let raws = unsafe { std::slice::from_raw_parts(requests, request_count as usize) }.to_vec();
        let handle = unsafe { instance.handle::<B::ModelState>() };
        let model = handle.model();
        let decoupled = model.is_decoupled();
        let accounts: Vec<Arc<Account>> = raws.iter().map(|_| Account::new(raw, decoupled, start_ns)).collect();
        let owned: Vec<Request> = raws
            .iter()
            .zip(&accounts)
            .map(|(&request, account)| unsafe { Request::new(request, account.clone()) })
            .collect();
        let batch: u64 =
            if model.max_batch_size() > 0 { owned.iter().map(batch_of).sum() } else { request_count.into() };
        let name = model.name();
        let result = guarded(|| B::model_instance_execute_owned(handle, owned));
        let error = result.as_ref().err();
        let mut told = false;
        for (request, account) in raws.into_iter().zip(&accounts) {
            told |= account.executed(request, error);
        }
        if let Some(error) = error.filter(|_| !told) {
            log_failure(name, error);
        }
        let end_ns = now_ns();
        // SAFETY: the instance is alive until this returns.
        let reported =
            unsafe { TRITONBACKEND_ModelInstanceReportBatchStatistics(raw, batch, start_ns, start_ns, end_ns, end_ns) };
        if let Err(error) = unsafe { check(reported) } {
            log_failure("cannot report statistics", &error);
        }
        null_mut()
    }
}
