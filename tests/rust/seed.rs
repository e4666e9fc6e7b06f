// SPDX-License-Identifier: Apache-2.0
// The program that the crate must compile as it is. test_rust.py also builds it without its todo!(), and with each of the alternatives that
// its comments give.
use triton_rs::{Backend, Response};

struct ExampleBackend;

impl Backend for ExampleBackend {
    type ModelInstanceState = ();
    type ModelState = ();

    fn model_instance_execute(
        model_instance: triton_rs::ModelInstance,
        requests: &[triton_rs::Request],
    ) -> Result<(), triton_rs::Error> {

        for request in requests {
            let input = request.get_input("input")?;
            let data: &[f32] = input.slice()?;
            let shape = input.properties()?.shape;
            // or, alternatively with "ndarray" feature enabled:
            // let tensor = input.as_array::<f32, 2>()?;

            // Handle inference request here
            todo!();

            let response = Response::from_request(request)?;
            // or, alternatively:
            // let factory = ResponseFactory::from_request(request)?;
            // let response = Response::from_factory(factory)?;
            // request.release();
            response.add_output("output", &shape, data);
            // or: response.add_output("output", tensor);
            response.send();
        }

        Ok(())
    }
}

// Register the backend with Triton
triton_rs::declare_backend!(ExampleBackend);
