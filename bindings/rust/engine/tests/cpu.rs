// SPDX-License-Identifier: Apache-2.0
//! Builds and runs networks on the CPU.
use kelp_engine::*;
use std::cell::Cell;
use std::sync::{Arc, Mutex};

fn quiet() -> Logger {
    Logger::from_fn(Severity::Error, |_, _| ())
}

/// relu(x w + b) with x float32 `[-1,3]`, w `[3,2]` and b `[1,2]`; the weights have the names "w" and "b".
fn linear<'b>(builder: &'b Builder) -> Result<Network<'b>> {
    let network = builder.create_network()?;
    let x = network.add_input("x", [-1, 3], DataType::Float)?;
    let w = network.add_constant([3, 2], Weights::new(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).named("w"))?.output(0)?;
    let b = network.add_constant([1, 2], Weights::new(&[-20.0f32, 0.5]).named("b"))?.output(0)?;
    let product = network.add_matrix_multiply(x, MatrixOperation::None, w, MatrixOperation::None)?.output(0)?;
    let sum = network.add_elementwise(product, b, ElementWiseOperation::Sum)?.output(0)?;
    let y = network.add_activation(sum, ActivationType::Relu, 0.0, 0.0)?.output(0)?;
    y.set_name("y")?;
    network.mark_output(y)?;
    Ok(network)
}

fn engine(logger: &Logger, config: &BuilderConfig) -> Result<Engine> {
    let builder = Builder::new(logger)?;
    let data = builder.build_serialized_network(&linear(&builder)?, config)?;
    Runtime::with_options(logger, &Options::new().threads(1))?.deserialize_owned(data)
}

fn run(engine: &Engine, x: &[f32]) -> Result<Vec<f32>> {
    let mut context = engine.create_execution_context()?;
    let mut bindings = context.bindings();
    bindings.input("x", [x.len() as i64 / 3, 3], x)?.run()?;
    Ok(bindings.get::<f32>("y")?.to_vec())
}

/// Builds a network with one output and returns its value for the inputs.
fn evaluate<T: OutputElement>(
    inputs: &[(&str, &[i64], &[f32])],
    add: impl for<'n> Fn(&'n Network<'n>, &[Tensor<'n>]) -> Result<Tensor<'n>>,
) -> Result<(Dims, Vec<T>)> {
    let logger = quiet();
    let builder = Builder::new(&logger)?;
    let data = {
        let network = builder.create_network()?;
        let tensors: Result<Vec<_>> =
            inputs.iter().map(|(name, dims, _)| network.add_input(name, *dims, DataType::Float)).collect();
        let y = add(&network, &tensors?)?;
        y.set_name("y")?;
        network.mark_output(y)?;
        builder.build_serialized_network(&network, &BuilderConfig::new()?)?
    };
    let engine = Runtime::new(&logger)?.deserialize_engine(&data)?;
    let mut context = engine.create_execution_context()?;
    let mut bindings = context.bindings();
    for (name, dims, data) in inputs {
        bindings.input(name, *dims, data)?;
    }
    bindings.run()?;
    let y = bindings.get::<T>("y")?;
    Ok((y.dims(), y.to_vec()))
}

#[test]
fn layers_compute() -> Result<()> {
    let x: &[f32] = &[1.0, 2.0, 3.0, 4.0];
    let input = [("x", &[1i64, 1, 2, 2][..], x)];
    let (dims, y) = evaluate::<f32>(&input, |network, x| {
        let window = Window { pre_padding: [1, 1, 0], post_padding: [1, 1, 0], ..Window::default() };
        network
            .add_convolution(x[0], 1, [3, 3], Weights::new(&[1.0f32; 9]), Weights::new(&[0.5f32]), &window)?
            .output(0)
    })?;
    assert_eq!((dims, y), ([1, 1, 2, 2].into(), vec![10.5; 4]));
    let (dims, y) = evaluate::<f32>(&input, |network, x| {
        network.add_pooling(x[0], PoolingType::Max, [2, 2], &Window::default())?.output(0)
    })?;
    assert_eq!((dims, y), ([1, 1, 1, 1].into(), vec![4.0]));
    let (dims, y) = evaluate::<f32>(&input, |network, x| {
        network.add_resize(x[0], &Resize::new(ResizeTo::Scales(vec![1.0, 1.0, 1.0, 2.0])))?.output(0)
    })?;
    assert_eq!((dims, y.len()), ([1, 1, 2, 4].into(), 8));
    let (dims, y) =
        evaluate::<f32>(&input, |network, x| network.add_shuffle(x[0], &Shuffle::transpose(&[0, 1, 3, 2]))?.output(0))?;
    assert_eq!((dims, y), ([1, 1, 2, 2].into(), vec![1.0, 3.0, 2.0, 4.0]));
    let (_, y) = evaluate::<i64>(&input, |network, x| {
        network.add_topk(x[0], true, 1, None, 0b1000, DataType::Int64)?.output(1)
    })?;
    assert_eq!(y, [1, 1]);
    let (_, y) = evaluate::<u8>(&input, |network, x| {
        let two = network.add_constant([1, 1, 1, 1], Weights::from(vec![2.0f32]))?.output(0)?;
        network.add_elementwise(x[0], two, ElementWiseOperation::Greater)?.output(0)
    })?;
    assert_eq!(y, [0, 0, 1, 1]);
    let (dims, y) = evaluate::<f32>(&[("a", &[2], &[1.0, 2.0]), ("b", &[1], &[3.0])], |network, x| {
        network.add_concatenation(x, 0)?.output(0)
    })?;
    assert_eq!((dims, y), ([3].into(), vec![1.0, 2.0, 3.0]));
    let (_, y) =
        evaluate::<u16>(&[("x", &[2], &[1.0, -2.0])], |network, x| network.add_cast(x[0], DataType::Half)?.output(0))?;
    assert_eq!(y, [0x3c00, 0xc000]);
    Ok(())
}

#[test]
fn loops_and_conditionals_compute() -> Result<()> {
    let (_, y) = evaluate::<f32>(&[("x", &[], &[1.0])], |network, x| {
        let body = network.add_loop()?;
        body.set_trip_count(network.add_constant([], Weights::new(&[5i64]))?.output(0)?)?;
        let value = body.add_recurrence(x[0])?;
        let current = value.output(0)?;
        value.set_next(network.add_elementwise(current, current, ElementWiseOperation::Sum)?.output(0)?)?;
        body.add_output(current, LoopOutput::LastValue, 0)?.output(0)
    })?;
    assert_eq!(y, [32.0]);
    for (x, expected) in [(3.0, 9.0), (-3.0, 3.0)] {
        let (_, y) = evaluate::<f32>(&[("x", &[], &[x])], |network, x| {
            let zero = network.add_constant([], Weights::new(&[0.0f32]))?.output(0)?;
            let positive = network.add_elementwise(x[0], zero, ElementWiseOperation::Greater)?.output(0)?;
            let branches = network.add_conditional(positive)?;
            let inside = branches.add_input(x[0])?.output(0)?;
            let square = network.add_elementwise(inside, inside, ElementWiseOperation::Prod)?.output(0)?;
            let negative = network.add_unary(inside, UnaryOperation::Neg)?.output(0)?;
            branches.add_output(square, negative)?.output(0)
        })?;
        assert_eq!(y, [expected]);
    }
    Ok(())
}

#[test]
fn networks_describe_themselves() -> Result<()> {
    let logger = quiet();
    let builder = Builder::new(&logger)?;
    assert_eq!((builder.provider().as_str(), builder.logger().severity()), ("cpu", Severity::Error));
    let network = linear(&builder)?;
    network.set_name("linear")?;
    assert_eq!((network.name().as_str(), network.num_inputs(), network.num_outputs()), ("linear", 1, 1));
    let last = network.layer(network.num_layers() - 1)?;
    last.set_name("activation")?;
    assert_eq!(format!("{last:?}"), "Layer(Activation 'activation')");
    assert_eq!(format!("{:?}", network.input(0)?), "Tensor('x' Some(Float) [-1,3])");
    assert_eq!(last.input(0)?.dims(), Some([-1, 2].into()));
    assert_eq!((last.num_inputs(), last.num_outputs(), network.output(0)?.name().as_str()), (1, 1, "y"));
    builder.check_supported(&network)?;
    network.unmark_output(last.output(0)?)?;
    assert_eq!(network.num_outputs(), 0);
    Ok(())
}

#[test]
fn networks_become_onnx_models_and_return() -> Result<()> {
    let logger = quiet();
    let builder = Builder::new(&logger)?;
    let model = linear(&builder)?.to_onnx()?;
    let parsed = builder.parse_onnx(model)?;
    let data = builder.build_serialized_network(&parsed, &BuilderConfig::new()?)?;
    assert_eq!(run(&Runtime::new(&logger)?.deserialize_engine(&data)?, &[1.0, 2.0, 3.0])?, [2.0, 28.5]);
    assert!(builder.create_network()?.to_onnx().is_err());
    Ok(())
}

#[test]
fn refit_replaces_weights() -> Result<()> {
    let (logger, config) = (quiet(), BuilderConfig::new()?);
    config.set_flag(BuilderFlag::Refit);
    let mut engine = engine(&logger, &config)?;
    assert_eq!(run(&engine, &[1.0, 2.0, 3.0])?, [2.0, 28.5]);
    let mut names = engine.refittable_weights();
    names.sort();
    assert_eq!(names, ["b", "w"]);
    let error = engine.refit(&[Weights::new(&[0.0f32]).named("b")]).unwrap_err();
    assert!(matches!(error, Error::Engine(_)), "{error}");
    engine.refit(&[Weights::new(&[0.0f32, 0.0]).named("b")])?;
    assert_eq!(run(&engine, &[1.0, 2.0, 3.0])?, [22.0, 28.0]);
    Ok(())
}

#[test]
fn individual_weights_can_be_refitted() -> Result<()> {
    let (logger, config) = (quiet(), BuilderConfig::new()?);
    config.set_flag(BuilderFlag::RefitIndividual);
    let builder = Builder::new(&logger)?;
    let network = linear(&builder)?;
    network.mark_refittable("b")?;
    let engine = Runtime::new(&logger)?.deserialize_engine(&builder.build_serialized_network(&network, &config)?)?;
    assert_eq!(engine.refittable_weights(), ["b"]);
    Ok(())
}

#[test]
fn profiles_are_enforced() -> Result<()> {
    let (logger, config) = (quiet(), BuilderConfig::new()?);
    for max in [2, 8] {
        let profile = config.add_optimization_profile();
        config.set_profile_shape(profile, "x", [1, 3], [1, 3], [max, 3])?;
    }
    let engine = engine(&logger, &config)?;
    assert_eq!(engine.num_optimization_profiles(), 2);
    assert_eq!(engine.profile_shape(1, "x", ProfileSelector::Max), Some([8, 3].into()));
    assert_eq!(engine.profile_shape(2, "x", ProfileSelector::Max), None);
    assert!(engine.workspace_size(1)? >= engine.workspace_size(0)?);
    assert!(engine.workspace_size(2).is_err());
    let mut context = engine.create_execution_context()?;
    let x = [1.0f32; 12];
    assert!(context.bindings().input("x", [4, 3], &x)?.run().is_err());
    context.set_optimization_profile(1)?;
    context.bindings().input("x", [4, 3], &x)?.run()
}

#[test]
fn memory_limits_are_enforced() -> Result<()> {
    let (logger, config) = (quiet(), BuilderConfig::new()?);
    let builder = Builder::new(&logger)?;
    let network = builder.create_network()?;
    let x = network.add_input("x", [1000, 64], DataType::Float)?;
    let squares = network.add_matrix_multiply(x, MatrixOperation::None, x, MatrixOperation::Transpose)?.output(0)?;
    let product = network.add_matrix_multiply(squares, MatrixOperation::None, x, MatrixOperation::None)?.output(0)?;
    network.mark_output(product)?;
    config.set_max_workspace_size(1 << 20)?;
    let error = builder.build_serialized_network(&network, &config).unwrap_err();
    assert!(error.to_string().contains("RESOURCE_EXHAUSTED"), "{error}");
    config.set_max_workspace_size(1 << 30)?;
    let engine = Runtime::new(&logger)?.deserialize_owned(builder.build_serialized_network(&network, &config)?)?;
    assert!(engine.workspace_size(0)? > 1 << 20);
    Ok(())
}

#[test]
fn contexts_run_in_parallel() -> Result<()> {
    let logger = quiet();
    let engine = engine(&logger, &BuilderConfig::new()?)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|i| {
                let engine = &engine;
                scope.spawn(move || {
                    (0..50).all(|_| {
                        run(engine, &[i as f32, 10.0, 0.0]).unwrap() == [i as f32 + 10.0, 2.0 * i as f32 + 40.5]
                    })
                })
            })
            .collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    });
    Ok(())
}

#[test]
fn enqueued_inferences_finish_before_the_context_is_used() -> Result<()> {
    let logger = quiet();
    let engine = engine(&logger, &BuilderConfig::new()?)?;
    let runtime = Runtime::new(&logger)?;
    let stream = Stream::new(&runtime)?;
    let (x, mut y) = ([1.0f32, 2.0, 3.0], [0.0f32; 2]);
    let context = engine.create_execution_context()?;
    context.set_input_shape("x", [1, 3])?;
    // SAFETY: the arrays have the sizes of the tensors, and outlive the inferences.
    unsafe {
        context.set_tensor_address("x", x.as_ptr())?;
        context.set_tensor_address("y", y.as_mut_ptr())?;
    }
    for _ in 0..100 {
        context.enqueue_v3(&stream)?;
    }
    drop(context);
    assert_eq!(y, [2.0, 28.5]);
    stream.synchronize()
}

#[test]
fn scopes_wait_for_their_inferences() -> Result<()> {
    let logger = quiet();
    let engine = engine(&logger, &BuilderConfig::new()?)?;
    let mut stream = Stream::new(&Runtime::new(&logger)?)?;
    let (mut first, mut second) = (engine.create_execution_context()?, engine.create_execution_context()?);
    let (mut first, mut second) = (first.bindings(), second.bindings());
    first.input("x", [1, 3], &[1.0f32, 2.0, 3.0])?;
    second.input("x", [1, 3], &[10.0f32, 0.0, 10.0])?;
    stream.scope(|scope| {
        scope.enqueue(&mut first)?;
        scope.enqueue(&mut second)
    })??;
    assert_eq!(*first.get::<f32>("y")?, [2.0, 28.5]);
    assert_eq!(*second.get::<f32>("y")?, [40.0, 80.5]);
    // An inference fails: the outputs have no value.
    let mut small = [0.0f32; 1];
    second.output("y", &mut small)?;
    let error = stream.scope(|scope| scope.enqueue(&mut second)).unwrap_err();
    assert!(error.to_string().contains("OUT_OF_RANGE"), "{error}");
    assert!(second.get::<f32>("y").is_err());
    // Cells could be changed while the inference runs.
    let cells = [Cell::new(0.0f32), Cell::new(0.0)];
    second.output_cells("y", &cells)?;
    let error = stream.scope(|scope| scope.enqueue(&mut second))?.unwrap_err();
    assert!(error.to_string().contains("bound to cells"), "{error}");
    // A panic waits as well.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        stream.scope(|scope| {
            scope.enqueue(&mut first).unwrap();
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err());
    first.run()
}

#[test]
fn streams_of_a_device_are_for_its_engines() -> Result<()> {
    let logger = quiet();
    let engine = engine(&logger, &BuilderConfig::new()?)?;
    let runtime = Runtime::new(&logger)?;
    // SAFETY: no engine of a device uses the pointer.
    let mut stream = unsafe { Stream::from_raw(&runtime, std::ptr::NonNull::dangling().as_ptr()) }?;
    assert!(stream.synchronize().unwrap_err().to_string().contains("UNIMPLEMENTED"));
    assert!(stream.scope(|_| ()).is_err());
    let (x, mut y) = ([1.0f32, 2.0, 3.0], [0.0f32; 2]);
    let context = engine.create_execution_context()?;
    context.set_input_shape("x", [1, 3])?;
    // SAFETY: the arrays have the sizes of the tensors, and outlive the inferences.
    unsafe {
        context.set_tensor_address("x", x.as_ptr())?;
        context.set_tensor_address("y", y.as_mut_ptr())?;
    }
    assert!(context.enqueue_v3(&stream).is_err());
    context.execute_v2()?;
    assert_eq!(y, [2.0, 28.5]);
    Ok(())
}

#[test]
fn recordings_replay_until_a_tensor_is_bound_again() -> Result<()> {
    let logger = quiet();
    let engine = engine(&logger, &BuilderConfig::new()?)?;
    let mut context = engine.create_execution_context()?;
    let (x, y) = ([1.0f32, 2.0, 3.0].map(Cell::new), [0.0f32; 2].map(Cell::new));
    let mut bindings = context.bindings();
    bindings.input_cells("x", [1, 3], &x)?.output_cells("y", &y)?;
    {
        let recording = bindings.capture()?;
        assert!(recording.step_count() > 0);
        for first in [1.0, 10.0] {
            x[0].set(first);
            recording.replay()?;
            assert_eq!([y[0].get(), y[1].get()], [first + 1.0, 2.0 * first + 26.5]);
        }
    }
    bindings.run()?;
    assert!(bindings.get::<f32>("y").is_err()); // bound to cells
    drop(bindings);
    // With addresses, a recording is invalid after a change.
    context.set_input_shape("x", [1, 3])?;
    // SAFETY: the arrays have the sizes of the tensors, and outlive the inferences.
    unsafe {
        context.set_tensor_address("x", x.as_ptr().cast::<f32>())?;
        context.set_tensor_address("y", y.as_ptr().cast::<f32>().cast_mut())?;
    }
    let recording = context.capture()?;
    recording.replay()?;
    context.execute_v2()?;
    recording.replay()?;
    context.set_input_shape("x", [1, 3])?;
    assert!(recording.replay().unwrap_err().to_string().contains("record again"));
    Ok(())
}

#[test]
fn progress_is_reported_and_cancels() -> Result<()> {
    let (logger, config) = (quiet(), BuilderConfig::new()?);
    let phases = Arc::new(Mutex::new(Vec::new()));
    let sink = phases.clone();
    config.set_progress_monitor(move |phase, step, steps| {
        assert!(step <= steps);
        sink.lock().unwrap().push(phase.to_owned());
        true
    });
    engine(&logger, &config)?;
    assert!(!phases.lock().unwrap().is_empty());
    config.set_progress_monitor(|_, _, _| false);
    let error = engine(&logger, &config).unwrap_err();
    assert!(error.to_string().contains("CANCELLED"), "{error}");
    config.set_progress_monitor(|_, _, _| panic!("on purpose"));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| engine(&logger, &config)));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"on purpose"));
    Ok(())
}

#[test]
fn panics_of_the_logger_are_lost() -> Result<()> {
    let logger = Logger::from_fn(Severity::Verbose, |_, _| panic!("on purpose"));
    engine(&logger, &BuilderConfig::new()?).map(drop)
}

#[test]
fn plan_files_are_loaded() -> Result<()> {
    let logger = quiet();
    let builder = Builder::new(&logger)?;
    let data = builder.build_serialized_network(&linear(&builder)?, &BuilderConfig::new()?)?;
    let path = std::env::temp_dir().join(format!("kelp_engine_{}.plan", std::process::id()));
    data.save(&path)?;
    assert_eq!(std::fs::read(&path).unwrap(), *data);
    // SAFETY: the file is not modified.
    let engine = unsafe { Runtime::new(&logger)?.deserialize_engine_file(&path) }?;
    std::fs::remove_file(&path).unwrap();
    assert_eq!(run(&engine, &[1.0, 2.0, 3.0])?, [2.0, 28.5]);
    assert!(engine.inspect(false)?.contains("cpu") && engine.inspect(true)?.starts_with('{'));
    assert_eq!(
        engine.inputs()[0],
        TensorInfo { name: "x".into(), data_type: Some(DataType::Float), dims: Some([-1, 3].into()) }
    );
    assert_eq!(engine.outputs().len(), 1);
    Ok(())
}

#[test]
fn truncated_data_is_rejected() -> Result<()> {
    let logger = quiet();
    let builder = Builder::new(&logger)?;
    let data = builder.build_serialized_network(&linear(&builder)?, &BuilderConfig::new()?)?;
    let runtime = Runtime::new(&logger)?;
    for length in [0, 1, data.len() / 2, data.len() - 1] {
        assert!(matches!(runtime.deserialize_engine(&data[..length]), Err(Error::Runtime(_))), "{length}");
    }
    Ok(())
}
