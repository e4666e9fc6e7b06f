// SPDX-License-Identifier: Apache-2.0
//! Runs an engine.
//!
//! ```text
//! run_inference ENGINE [INPUT:SHAPE:FILE]…
//! ```
//!
//! FILE contains the elements of an input of type float32 in the byte order of the machine, and SHAPE its dimensions separated by `x`.
//! Prints the outputs.
use kelp_engine::{Bindings, DataType, Dims, Logger, OutputElement, Runtime, Severity};
use std::error::Error;
use std::fmt::Display;

struct Input {
    name: String,
    dims: Dims,
    elements: Vec<f32>,
}

impl Input {
    fn read(text: &str) -> Result<Self, Box<dyn Error>> {
        let [name, shape, path] = text.splitn(3, ':').collect::<Vec<_>>()[..] else {
            return Err(format!("expected INPUT:SHAPE:FILE, found '{text}'").into());
        };
        let dims: Result<Vec<i64>, _> = shape.split('x').map(str::parse).collect();
        let bytes = std::fs::read(path)?;
        let elements =
            bytes.chunks_exact(4).map(|four| f32::from_ne_bytes([four[0], four[1], four[2], four[3]])).collect();
        Ok(Self { name: name.into(), dims: Dims::new(&dims?), elements })
    }
}

fn print<T: OutputElement + Display>(bindings: &Bindings<'_, '_>, name: &str) -> kelp_engine::Result<()> {
    let output = bindings.get::<T>(name)?;
    let texts: Vec<String> = output.iter().map(T::to_string).collect();
    println!("{name} {} {}", output.dims(), texts.join(" "));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, inputs @ ..] = &arguments[..] else {
        return Err("usage: run_inference ENGINE [INPUT:SHAPE:FILE]…".into());
    };
    let inputs = inputs.iter().map(|text| Input::read(text)).collect::<Result<Vec<_>, _>>()?;

    let logger = Logger::new(Severity::Info);
    let runtime = Runtime::new(&logger)?;
    let engine = runtime.deserialize_owned(std::fs::read(path)?)?;
    let mut context = engine.create_execution_context()?;
    let mut bindings = context.bindings();
    for input in &inputs {
        bindings.input(&input.name, input.dims, &input.elements)?;
    }
    bindings.run()?;
    for output in engine.outputs() {
        match output.data_type {
            Some(DataType::Float) => print::<f32>(&bindings, &output.name)?,
            Some(DataType::Int32) => print::<i32>(&bindings, &output.name)?,
            Some(DataType::Int64) => print::<i64>(&bindings, &output.name)?,
            Some(DataType::Bool) => print::<u8>(&bindings, &output.name)?,
            other => println!("{}: elements of type {other:?}", output.name),
        }
    }
    Ok(())
}
