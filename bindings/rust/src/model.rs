// SPDX-License-Identifier: Apache-2.0
//! Models, their instances, and their server.
use crate::error::{check, text, Error, ErrorCode};
use crate::json::Value;
use crate::sys::*;
use std::cell::RefCell;
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, RwLock};

/// The server of a model. Calls fail after the model is unloaded.
#[derive(Clone)]
pub struct Server {
    pub(crate) inner: Arc<ServerInner>,
}

pub(crate) struct ServerInner {
    raw: *mut TRITONSERVER_Server,
    calls: Mutex<Calls>,
    idle: Condvar,
}

#[derive(Default)]
struct Calls {
    /// Whether the model is unloaded, and possibly the server destroyed.
    closed: bool,
    in_flight: usize,
}

// SAFETY: functions that take the server may be called from any thread.
unsafe impl Send for ServerInner {}
unsafe impl Sync for ServerInner {}

thread_local! {
    /// The servers whose callbacks run on this thread. A callback may release the last reference to its own model, which is then unloaded.
    static INSIDE: RefCell<Vec<*const ServerInner>> = const { RefCell::new(Vec::new()) };
}

impl ServerInner {
    fn new(raw: *mut TRITONSERVER_Server) -> Self {
        Self { raw, calls: Mutex::default(), idle: Condvar::new() }
    }

    /// Runs `start`, which starts a call. The model is not unloaded before `over`.
    pub(crate) fn start(&self, start: impl FnOnce(*mut TRITONSERVER_Server) -> Result<(), Error>) -> Result<(), Error> {
        let mut calls = self.lock();
        if calls.closed {
            return Err(Error::new(ErrorCode::Unavailable, "the calling model is unloaded"));
        }
        calls.in_flight += 1;
        drop(calls);
        let result = start(self.raw);
        if result.is_err() {
            self.over();
        }
        result
    }

    /// Ends a call.
    pub(crate) fn over(&self) {
        self.lock().in_flight -= 1;
        self.idle.notify_all();
    }

    /// Runs a callback of a call.
    pub(crate) fn inside(&self, run: impl FnOnce()) {
        INSIDE.with_borrow_mut(|inside| inside.push(self));
        run();
        INSIDE.with_borrow_mut(|inside| inside.pop());
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Rejects new calls and waits for those in flight, except those whose callback is running on this thread.
    pub(crate) fn close(&self) {
        let ours = INSIDE.with_borrow(|inside| inside.iter().filter(|&&each| std::ptr::eq(each, self)).count());
        let mut calls = self.lock();
        calls.closed = true;
        while calls.in_flight > ours {
            calls = self.idle.wait(calls).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

/// The data of a model, attached to the server's object.
pub(crate) struct ModelInner {
    raw: *mut TRITONBACKEND_Model,
    name: String,
    version: u64,
    location: String,
    config: RwLock<Arc<Value>>,
    pub(crate) server: Server,
}

pub(crate) struct ModelBox<M> {
    pub(crate) inner: ModelInner,
    state: OnceLock<M>,
}

// SAFETY: the handle is only passed to thread-safe functions.
unsafe impl Send for ModelInner {}
unsafe impl Sync for ModelInner {}

impl<M> ModelBox<M> {
    /// # Safety
    /// `raw` is a model that is being initialized.
    pub(crate) unsafe fn new(raw: *mut TRITONBACKEND_Model) -> Result<Box<Self>, Error> {
        let (mut name, mut location) = (null(), null());
        let mut version = 0;
        let mut kind = TRITONBACKEND_ARTIFACT_FILESYSTEM;
        let mut server = null_mut();
        // SAFETY: the model is alive; texts are copied.
        let inner = unsafe {
            check(TRITONBACKEND_ModelName(raw, &mut name))?;
            check(TRITONBACKEND_ModelVersion(raw, &mut version))?;
            check(TRITONBACKEND_ModelRepository(raw, &mut kind, &mut location))?;
            check(TRITONBACKEND_ModelServer(raw, &mut server))?;
            ModelInner {
                raw,
                name: text(name)?.to_string(),
                version,
                location: text(location)?.to_string(),
                config: RwLock::new(Arc::new(read_config(raw)?)),
                server: Server { inner: Arc::new(ServerInner::new(server)) },
            }
        };
        Ok(Box::new(Self { inner, state: OnceLock::new() }))
    }

    pub(crate) fn handle(&self) -> Model<'_, M> {
        Model { model: self }
    }
}

unsafe fn read_config(raw: *mut TRITONBACKEND_Model) -> Result<Value, Error> {
    let mut message = null_mut();
    let (mut base, mut size) = (null(), 0);
    // SAFETY: the message is ours; its text lives as long as it.
    unsafe {
        check(TRITONBACKEND_ModelConfig(raw, 1, &mut message))?;
        let parsed = check(TRITONSERVER_MessageSerializeToJson(message, &mut base, &mut size)).and_then(|()| {
            let bytes = std::slice::from_raw_parts(base.cast::<u8>(), size);
            Value::parse(&String::from_utf8_lossy(bytes))
        });
        check(TRITONSERVER_MessageDelete(message))?;
        parsed
    }
}

/// A loaded version of a model.
pub struct Model<'a, M = ()> {
    model: &'a ModelBox<M>,
}

impl<M> Clone for Model<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Model<'_, M> {}

impl<'a, M> Model<'a, M> {
    /// Returns the name.
    pub fn name(&self) -> &'a str {
        &self.model.inner.name
    }

    /// Returns the version.
    pub fn version(&self) -> u64 {
        self.model.inner.version
    }

    /// Returns the directory of the model, which contains its versions.
    pub fn location(&self) -> &'a str {
        &self.model.inner.location
    }

    /// Returns the path of a file of this version.
    pub fn path(&self, file: &str) -> PathBuf {
        PathBuf::from(self.location()).join(self.version().to_string()).join(file)
    }

    /// Reads a file of this version.
    pub fn load_file(&self, file: &str) -> Result<Vec<u8>, Error> {
        let path = self.path(file);
        std::fs::read(&path).map_err(|error| Error::from(error).context(format!("cannot read '{}'", path.display())))
    }

    /// Returns the configuration, with the names of Triton's ModelConfig and all defaults.
    pub fn config(&self) -> Arc<Value> {
        self.model.inner.config.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Returns a parameter of the configuration: `parameters { key: … value { string_value: … } }`.
    pub fn parameter(&self, name: &str) -> Option<String> {
        self.config()["parameters"][name]["string_value"].as_str().map(str::to_string)
    }

    /// Returns the maximum batch size. 0 if the model has no batch dimension, which is otherwise the first dimension.
    pub fn max_batch_size(&self) -> i64 {
        self.config()["max_batch_size"].as_i64().unwrap_or(0)
    }

    /// Returns whether a request may have any number of responses.
    pub fn is_decoupled(&self) -> bool {
        self.config()["model_transaction_policy"]["decoupled"].as_bool().unwrap_or(false)
    }

    /// Returns whether the backend should complete the configuration.
    pub fn wants_config(&self) -> Result<bool, Error> {
        let mut wants = false;
        // SAFETY: the model is alive as long as its handle.
        unsafe { check(TRITONBACKEND_ModelAutoCompleteConfig(self.model.inner.raw, &mut wants)) }?;
        Ok(wants)
    }

    /// Completes the configuration: JSON with name, max_batch_size, input, output and other fields. Only inside
    /// [`Backend::model_initialize`](crate::Backend::model_initialize).
    pub fn set_config(&self, json: &str) -> Result<(), Error> {
        let raw = self.model.inner.raw;
        let mut message = null_mut();
        // SAFETY: the text is read before the call returns; the message is ours.
        let config = unsafe {
            check(TRITONSERVER_MessageNewFromSerializedJson(&mut message, json.as_ptr().cast(), json.len()))?;
            let set = check(TRITONBACKEND_ModelSetConfig(raw, 1, message));
            check(TRITONSERVER_MessageDelete(message))?;
            set?;
            read_config(raw)?
        };
        *self.model.inner.config.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = Arc::new(config);
        Ok(())
    }

    /// Returns the server, for inference by other models.
    pub fn server(&self) -> Server {
        self.model.inner.server.clone()
    }

    /// Returns the state that [`set_state`](Model::set_state) set.
    pub fn state(&self) -> Result<&'a M, Error> {
        self.model.state.get().ok_or_else(|| Error::internal(format!("model '{}' has no state", self.name())))
    }

    /// Sets the state of the model, once.
    pub fn set_state(&self, state: M) -> Result<(), Error> {
        let refused = self.model.state.set(state);
        refused
            .map_err(|_| Error::new(ErrorCode::AlreadyExists, format!("model '{}' already has a state", self.name())))
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut TRITONBACKEND_Model {
        self.model.inner.raw
    }
}

/// The device of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceKind {
    /// The CPU.
    Cpu,
    /// The GPU with this number.
    Gpu(i32),
    /// Determined by the model.
    Model,
}

pub(crate) struct InstanceBox<S> {
    pub(crate) raw: *mut TRITONBACKEND_ModelInstance,
    /// The ModelBox, which outlives its instances.
    pub(crate) model: *const c_void,
    name: String,
    kind: InstanceKind,
    /// Locked while the backend has a handle: one call at a time.
    state: Mutex<Option<S>>,
}

impl<S> InstanceBox<S> {
    /// # Safety
    /// `raw` is an instance that is being initialized, and `model` is the data of its model.
    pub(crate) unsafe fn new(raw: *mut TRITONBACKEND_ModelInstance, model: *const c_void) -> Result<Box<Self>, Error> {
        let mut name = null();
        let (mut kind, mut device) = (TRITONSERVER_INSTANCEGROUPKIND_CPU, 0);
        // SAFETY: the instance is alive; the name is copied.
        unsafe {
            check(TRITONBACKEND_ModelInstanceName(raw, &mut name))?;
            check(TRITONBACKEND_ModelInstanceKind(raw, &mut kind))?;
            check(TRITONBACKEND_ModelInstanceDeviceId(raw, &mut device))?;
            let name = text(name)?.to_string();
            let kind = match kind {
                TRITONSERVER_INSTANCEGROUPKIND_GPU => InstanceKind::Gpu(device),
                TRITONSERVER_INSTANCEGROUPKIND_MODEL => InstanceKind::Model,
                _ => InstanceKind::Cpu,
            };
            Ok(Box::new(Self { raw, model, name, kind, state: Mutex::new(None) }))
        }
    }

    /// # Safety
    /// `M` is the type of the model's state.
    pub(crate) unsafe fn handle<M>(&self) -> ModelInstance<'_, S, M> {
        // SAFETY: the model outlives its instances.
        let model = unsafe { &*self.model.cast::<ModelBox<M>>() };
        let state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        ModelInstance { name: &self.name, kind: self.kind, raw: self.raw, model, state }
    }
}

/// An instance, which executes requests one call at a time. Only the current thread may use it, until the call returns.
pub struct ModelInstance<'a, S = (), M = ()> {
    name: &'a str,
    kind: InstanceKind,
    raw: *mut TRITONBACKEND_ModelInstance,
    model: &'a ModelBox<M>,
    state: MutexGuard<'a, Option<S>>,
}

impl<'a, S, M> ModelInstance<'a, S, M> {
    /// Returns the name.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the device.
    pub fn kind(&self) -> InstanceKind {
        self.kind
    }

    /// Returns the model.
    pub fn model(&self) -> Model<'a, M> {
        self.model.handle()
    }

    fn no_state(&self) -> Error {
        Error::internal(format!("instance '{}' has no state", self.name))
    }

    /// Returns the state.
    pub fn state(&self) -> Result<&S, Error> {
        self.state.as_ref().ok_or_else(|| self.no_state())
    }

    /// Returns the mutable state.
    pub fn state_mut(&mut self) -> Result<&mut S, Error> {
        let none = self.no_state();
        self.state.as_mut().ok_or(none)
    }

    /// Sets the state and returns the previous one.
    pub fn set_state(&mut self, state: S) -> Option<S> {
        self.state.replace(state)
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut TRITONBACKEND_ModelInstance {
        self.raw
    }
}

/// The backend in its server, during its initialization.
pub struct Host {
    raw: *mut TRITONBACKEND_Backend,
}

impl Host {
    /// # Safety
    /// The backend is being initialized.
    pub(crate) unsafe fn new(raw: *mut TRITONBACKEND_Backend) -> Self {
        Self { raw }
    }

    /// Returns the directory of the library.
    pub fn directory(&self) -> Result<PathBuf, Error> {
        let mut kind = TRITONBACKEND_ARTIFACT_FILESYSTEM;
        let mut location = null();
        // SAFETY: the text is copied.
        unsafe {
            check(TRITONBACKEND_BackendArtifacts(self.raw, &mut kind, &mut location))?;
            Ok(PathBuf::from(text(location)?))
        }
    }

    /// Returns a setting of the command line of the server (`--backend-config NAME,KEY=VALUE`).
    pub fn setting(&self, key: &str) -> Result<Option<String>, Error> {
        let mut message = null_mut();
        let (mut base, mut size) = (null(), 0);
        // SAFETY: the message belongs to the server; its text is copied.
        let settings = unsafe {
            check(TRITONBACKEND_BackendConfig(self.raw, &mut message))?;
            check(TRITONSERVER_MessageSerializeToJson(message, &mut base, &mut size))?;
            let bytes = std::slice::from_raw_parts(base.cast::<u8>(), size);
            Value::parse(&String::from_utf8_lossy(bytes))?
        };
        Ok(settings["cmdline"][key].as_str().map(str::to_string))
    }

    /// Executes all instances on one GPU on the same thread.
    pub fn set_device_blocking(&self) -> Result<(), Error> {
        // SAFETY: the backend is being initialized.
        unsafe { check(TRITONBACKEND_BackendSetExecutionPolicy(self.raw, TRITONBACKEND_EXECUTION_DEVICE_BLOCKING)) }
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut TRITONBACKEND_Backend {
        self.raw
    }
}
