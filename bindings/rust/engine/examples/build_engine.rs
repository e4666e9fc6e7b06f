// SPDX-License-Identifier: Apache-2.0
//! Builds an engine from an ONNX model.
//!
//! ```text
//! build_engine MODEL.onnx ENGINE [INPUT:MIN:OPT:MAX]…
//! ```
//!
//! The shapes of a profile are dimensions separated by `x`, such as `image:1x1x8x8:8x1x8x8:64x1x8x8`.
use kelp_engine::{Builder, BuilderConfig, Dims, Logger, Severity};
use std::error::Error;

fn dims(text: &str) -> Result<Dims, Box<dyn Error>> {
    let dims: Result<Vec<i64>, _> = text.split('x').map(str::parse).collect();
    Ok(Dims::new(&dims?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, path, shapes @ ..] = &arguments[..] else {
        return Err("usage: build_engine MODEL.onnx ENGINE [INPUT:MIN:OPT:MAX]…".into());
    };
    let logger = Logger::new(Severity::Info);
    let builder = Builder::new(&logger)?;
    let network = builder.parse_onnx(std::fs::read(model)?)?;

    let config = BuilderConfig::new()?;
    if !shapes.is_empty() {
        let profile = config.add_optimization_profile();
        for shape in shapes {
            let [input, min, opt, max] = shape.split(':').collect::<Vec<_>>()[..] else {
                return Err(format!("expected INPUT:MIN:OPT:MAX, found '{shape}'").into());
            };
            config.set_profile_shape(profile, input, dims(min)?, dims(opt)?, dims(max)?)?;
        }
    }
    let data = builder.build_serialized_network(&network, &config)?;
    data.save(path)?;
    println!("{path}: {} bytes", data.len());
    Ok(())
}
