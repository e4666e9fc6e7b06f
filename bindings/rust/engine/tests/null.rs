// SPDX-License-Identifier: Apache-2.0
//! The life cycle and the failures of every object, with engines of the provider `null`, which return zeros.
use kelp_engine::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

fn quiet() -> Logger {
    Logger::from_fn(Severity::Error, |_, _| ())
}

/// An engine with input `x` of float32 `[-1,3]` and output `y` of the same shape.
fn data(logger: &Logger, config: &BuilderConfig) -> Result<EngineData> {
    let builder = Builder::with_provider(logger, "null")?;
    let network = builder.create_network()?;
    let x = network.add_input("x", [-1, 3], DataType::Float)?;
    let y = network.add_unary(x, UnaryOperation::Neg)?.output(0)?;
    y.set_name("y")?;
    network.mark_output(y)?;
    builder.build_serialized_network(&network, config)
}

fn engine(logger: &Logger) -> Engine {
    Runtime::new(logger).unwrap().deserialize_owned(data(logger, &BuilderConfig::new().unwrap()).unwrap()).unwrap()
}

#[track_caller]
fn fails<T>(result: Result<T>, kind: fn(String) -> Error, text: &str) {
    let error = result.err().expect("succeeded");
    assert_eq!(std::mem::discriminant(&error), std::mem::discriminant(&kind(String::new())), "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

#[test]
fn zeros_replace_outputs() {
    let logger = quiet();
    let engine = engine(&logger);
    assert_eq!(engine.provider(), "null");
    let mut context = engine.create_execution_context().unwrap();
    let mut y = [7.0f32; 6];
    let mut bindings = context.bindings();
    bindings.input("x", [2, 3], &[1.0f32; 6]).unwrap().output("y", &mut y).unwrap();
    bindings.run().unwrap();
    assert_eq!(bindings.get::<f32>("y").unwrap().dims(), Dims::new(&[2, 3]));
    drop(bindings);
    assert_eq!(y, [0.0; 6]);
}

#[test]
fn objects_are_dropped_in_any_order_that_compiles() {
    let logger = quiet();
    let data = {
        let builder = Builder::with_provider(&logger, "null").unwrap();
        let network = builder.create_network().unwrap();
        let x = network.add_input("x", [1], DataType::Float).unwrap();
        network.mark_output(x).unwrap();
        builder.build_serialized_network(&network, &BuilderConfig::new().unwrap()).unwrap()
    };
    let runtime = Runtime::new(&logger).unwrap();
    let (engine, stream) = (runtime.deserialize_engine(&data).unwrap(), Stream::new(&runtime).unwrap());
    drop(data);
    drop(runtime);
    drop(logger); // engines hold what they need of it
    let context = engine.create_execution_context().unwrap();
    drop(stream);
    drop(context);
}

#[test]
fn owners_of_bytes_are_dropped_once() {
    struct Owner(Vec<u8>, Arc<AtomicUsize>);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    impl Drop for Owner {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
    let logger = quiet();
    let drops = Arc::new(AtomicUsize::new(0));
    let data = data(&logger, &BuilderConfig::new().unwrap()).unwrap();
    let runtime = Runtime::new(&logger).unwrap();
    let engine = runtime.deserialize_owned(Owner(data.to_vec(), drops.clone())).unwrap();
    drop(engine);
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    fails(runtime.deserialize_owned(Owner(b"no engine".to_vec(), drops.clone())), Error::Runtime, "INVALID_ARGUMENT");
    assert_eq!(drops.load(Ordering::SeqCst), 2);
    let builder = Builder::with_provider(&logger, "null").unwrap();
    assert!(builder.parse_onnx(Owner(b"no model".to_vec(), drops.clone())).is_err());
    assert_eq!(drops.load(Ordering::SeqCst), 3);
}

#[test]
fn errors_have_the_interface_that_failed() {
    let logger = quiet();
    fails(Builder::with_provider(&logger, "nonesuch"), Error::Builder, "nonesuch");
    fails(Builder::with_provider(&logger, "a\0b"), Error::InvalidParameter, "NUL");
    fails(Runtime::with_options(&logger, &Options::new().threads(5000)), Error::Runtime, "INVALID_ARGUMENT");
    let builder = Builder::with_provider(&logger, "null").unwrap();
    let network = builder.create_network().unwrap();
    let config = BuilderConfig::new().unwrap();
    fails(builder.build_serialized_network(&network, &config), Error::Builder, "FAILED_PRECONDITION");
    let x = network.add_input("x", [2], DataType::Float).unwrap();
    fails(network.add_input("x", [2], DataType::Float), Error::Builder, "ALREADY_EXISTS");
    let y = network.add_input("y", [2], DataType::Int32).unwrap();
    fails(network.add_elementwise(x, y, ElementWiseOperation::Sum), Error::Builder, "INVALID_ARGUMENT");
    fails(network.input(2), Error::InvalidParameter, "there is no input 2");
    fails(network.add_identity(x).unwrap().output(1), Error::InvalidParameter, "has no output 1");
    let other = builder.create_network().unwrap();
    fails(other.mark_output(x), Error::Builder, "INVALID_ARGUMENT");
    fails(config.set_builder_optimization_level(6), Error::InvalidParameter, "found 6");
    fails(config.set_profile_shape(0, "x", [1], [1], [1]), Error::InvalidParameter, "there is no profile 0");
    let too_many = Shuffle { first_transpose: Some(vec![0; 17]), ..Shuffle::default() };
    fails(network.add_shuffle(x, &too_many), Error::InvalidParameter, "at most 16 axes");
    config.set_flag(BuilderFlag::Refit);
    fails(data(&logger, &config), Error::InvalidParameter, "UNIMPLEMENTED");
    config.clear_flag(BuilderFlag::Refit);
    assert!(!config.flag(BuilderFlag::Refit) && data(&logger, &config).is_ok());
}

#[test]
fn providers_and_plugins_are_checked() {
    let logger = quiet();
    let runtime = Runtime::new(&logger).unwrap();
    let providers = runtime.providers();
    assert!(providers.iter().any(|name| name == "cpu") && providers.iter().any(|name| name == "null"), "{providers:?}");
    runtime.check_provider("cpu").unwrap();
    fails(runtime.check_provider("nonesuch"), Error::Runtime, "nonesuch");
    // SAFETY: there is no such library.
    let options = unsafe { Options::new().plugin("/nonexistent/library.so", &[("name", "value")]) };
    fails(Runtime::with_options(&logger, &options), Error::Runtime, "/nonexistent/library.so");
    fails(Builder::with_options(&logger, "cpu", &options), Error::Runtime, "/nonexistent/library.so");
    // SAFETY: as above.
    let options = unsafe { Options::new().plugin("/nonexistent/library.so", &[("na\0me", "value")]) };
    fails(Runtime::with_options(&logger, &options), Error::InvalidParameter, "NUL");
}

#[test]
fn wrong_bindings_are_rejected() {
    let logger = quiet();
    let engine = engine(&logger);
    let mut context = engine.create_execution_context().unwrap();
    let (x, mut small, mut wrong) = ([0.0f32; 6], [0.0f32; 2], [0i32; 6]);
    let mut bindings = context.bindings();
    fails(bindings.run(), Error::Engine, "input 'x' has no address");
    fails(bindings.get::<f32>("y"), Error::Engine, "no inference succeeded");
    fails(bindings.input("z", [2, 3], &x), Error::InvalidParameter, "no input 'z': expected one of 'x'");
    fails(bindings.input("x", [2, 3], &[0i64; 6]), Error::InvalidParameter, "float32: found a buffer of i64");
    fails(bindings.input("x", [2, 2], &x), Error::InvalidParameter, "the shape of input 'x' is [-1,3]: found [2,2]");
    fails(bindings.input("x", [1, 3], &x), Error::InvalidParameter, "has 3 elements: found 6");
    fails(bindings.input("x", [-1, 3], &x), Error::InvalidParameter, "found [-1,3]");
    fails(bindings.output("y", &mut wrong), Error::InvalidParameter, "float32: found a buffer of i32");
    bindings.input("x", [2, 3], &x).unwrap().output("y", &mut small).unwrap();
    fails(bindings.run(), Error::Engine, "OUT_OF_RANGE");
    fails(bindings.get::<f32>("y"), Error::Engine, "no inference succeeded");
    bindings.unbind_output("y").unwrap().run().unwrap();
    fails(bindings.get::<u32>("y"), Error::InvalidParameter, "found a buffer of u32");
    assert_eq!(*bindings.get::<f32>("y").unwrap(), [0.0; 6]);
}

#[test]
fn wrong_addresses_are_rejected() {
    let logger = quiet();
    let engine = engine(&logger);
    let context = engine.create_execution_context().unwrap();
    let (x, mut y) = ([1.0f32; 3], [7.0f32; 3]);
    // SAFETY: the arrays have three elements and outlive the inferences.
    unsafe {
        fails(context.set_tensor_address("z", x.as_ptr()), Error::InvalidParameter, "no tensor 'z'");
        fails(context.set_tensor_address("x", std::ptr::null::<f32>()), Error::InvalidParameter, "is NULL");
        fails(context.set_tensor_address("x", [1u8].as_ptr()), Error::InvalidParameter, "*const u8");
        fails(context.set_tensor_address("y", y.as_ptr()), Error::InvalidParameter, "needs a mutable address");
        fails(context.execute_v2(), Error::Engine, "output 'y' has no address");
        context.set_tensor_address("y", y.as_mut_ptr().cast::<std::ffi::c_void>()).unwrap();
        fails(context.execute_v2(), Error::Engine, "input 'x' has no address");
        context.set_tensor_address("x", x.as_ptr()).unwrap();
    }
    fails(context.execute_v2(), Error::Engine, "input 'x' needs a shape");
    fails(context.set_input_shape("x", [1]), Error::InvalidParameter, "found [1]");
    assert_eq!(context.tensor_shape("x").unwrap(), Some(Dims::new(&[-1, 3])));
    context.set_input_shape("x", [1, 3]).unwrap();
    assert_eq!(context.tensor_shape("y").unwrap(), Some(Dims::new(&[1, 3])));
    context.execute_v2().unwrap();
    assert_eq!(y, [0.0; 3]);
    fails(context.set_optimization_profile(0), Error::InvalidParameter, "OUT_OF_RANGE");
}

#[test]
fn addresses_of_dropped_bindings_are_not_used() {
    let logger = quiet();
    let engine = engine(&logger);
    let mut context = engine.create_execution_context().unwrap();
    let mut first = vec![7.0f32; 3];
    let x = vec![1.0f32; 3];
    let mut bindings = context.bindings();
    bindings.input("x", [1, 3], &x).unwrap().output("y", &mut first).unwrap().run().unwrap();
    std::mem::forget(bindings);
    drop((first, x));
    fails(context.execute_v2(), Error::Engine, "output 'y' has no address");
    fails(context.tensor_shape("y"), Error::Engine, "input 'x' has no address");
    fails(context.bindings().run(), Error::Engine, "input 'x' has no address");
}

#[test]
fn leaked_contexts_prevent_a_refit() {
    let logger = quiet();
    let mut engine = engine(&logger);
    std::mem::forget(engine.create_execution_context().unwrap());
    fails(engine.refit(&[]), Error::InvalidParameter, "1 contexts that were not dropped");
}

#[test]
fn weights_check_their_type() {
    assert!(Weights::of_type(DataType::Half, vec![0x3c00u16]).is_ok());
    fails(Weights::of_type(DataType::Half, vec![1.0f32]), Error::InvalidParameter, "float16: found a buffer of f32");
    assert!(
        u8::stores(DataType::Bool)
            && u16::stores(DataType::Bf16)
            && !u8::stores(DataType::Int8)
            && bool::stores(DataType::Bool)
    );
}

fn is_send<T: Send>() {}
fn is_sync<T: Sync>() {}

#[test]
fn thread_safety_is_that_of_the_c_interface() {
    is_send::<(Logger, Runtime, Engine, EngineData, Stream, Weights, Builder, BuilderConfig, ExecutionContext)>();
    is_sync::<(Logger, Runtime, Engine, EngineData, Stream, Weights, Error)>();
}
