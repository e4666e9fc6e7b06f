// SPDX-License-Identifier: Apache-2.0
// A program in TensorRT's terms that the crate kelp-engine must compile and run: from `let logger` to `synchronize`, every line without
// the comment `added` is unchanged. It omits the following, which is added:
//
// 1. imports, `main`, and a function around the program. The function is `unsafe`, because the program binds tensors by raw pointers
//    without an `unsafe` block, and must guarantee that the buffers are large enough and outlive the inference;
// 2. the layers and outputs for which `// Add layers to network...` and `// ...` stand. They use the first input of the network, because
//    the program drops the result of `add_input`;
// 3. `input_buffer`, `output_buffer` and `cuda_stream`, before the comment `// Bind tensors`;
// 4. the output of the result, which test_engine.py compares with that of NumPy.
use kelp_engine::{
    ActivationType, Builder, BuilderConfig, DataType, Dims, ElementWiseOperation, Logger, MatrixOperation, ReduceOperation, Runtime, Severity,
    Shuffle, Stream, Weights, Window,
};

/// Weights that test_engine.py computes as well.
fn weights(count: usize, divisor: f32) -> Weights {
    Weights::from((0..count).map(|i| ((i * 37 + 11) % 101) as f32 / divisor - 50.0 / divisor).collect::<Vec<f32>>())
}

#[rustfmt::skip] // lines of the program are unchanged
unsafe fn seed() -> Result<(), Box<dyn std::error::Error>> {
// Build phase
let logger = Logger::new(Severity::Info);
let builder = Builder::new(&logger)?;
let network = builder.create_network()?;

// Add layers to network...
network.add_input("input", Dims::new(&[1, 3, 224, 224]), DataType::Float)?;
// ...
    let input = network.input(0)?; // added
    let window = Window { stride: [16, 16, 0], ..Window::default() }; // added
    let features = network.add_convolution(input, 8, [16, 16], weights(8 * 3 * 256, 400.0), Weights::none(), &window)?.output(0)?; // added
    let relu = network.add_activation(features, ActivationType::Relu, 0.0, 0.0)?.output(0)?; // added
    let pooled = network.add_reduce(relu, ReduceOperation::Average, 0b1100, false)?.output(0)?; // added
    let rows = network.add_shuffle(pooled, &Shuffle::reshape([1, 8]))?.output(0)?; // added
    let matrix = network.add_constant([8, 10], weights(80, 50.0))?.output(0)?; // added
    let product = network.add_matrix_multiply(rows, MatrixOperation::None, matrix, MatrixOperation::None)?.output(0)?; // added
    let bias = network.add_constant([1, 10], weights(10, 100.0))?.output(0)?; // added
    let scores = network.add_elementwise(product, bias, ElementWiseOperation::Sum)?.output(0)?; // added
    let output = network.add_softmax(scores, 0b10)?.output(0)?; // added
    output.set_name("output")?; // added
    network.mark_output(output)?; // added

let config = BuilderConfig::new()?;
config.set_max_workspace_size(1 << 30)?;

let engine_data = builder.build_serialized_network(&network, &config)?;
std::fs::write("model.engine", &engine_data)?;

// Inference phase
let runtime = Runtime::new(&logger)?;
let engine = runtime.deserialize_engine(&engine_data)?;
let context = engine.create_execution_context()?;

    let input_buffer: Vec<f32> = (0..3 * 224 * 224).map(|i| (i % 255) as f32 / 255.0).collect(); // added
    let mut output_buffer = vec![0.0f32; 10]; // added
    let cuda_stream = Stream::new(&runtime)?; // added

// Bind tensors
context.set_tensor_address("input", input_buffer.as_ptr())?;
context.set_tensor_address("output", output_buffer.as_mut_ptr())?;

// Execute
context.enqueue_v3(&cuda_stream)?;
cuda_stream.synchronize()?;

    println!("{}", output_buffer.iter().map(f32::to_string).collect::<Vec<_>>().join(" ")); // added
    Ok(()) // added
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // SAFETY: the buffers have the sizes of the tensors, and exist until the inference has finished.
    unsafe { seed() }
}
