// SPDX-License-Identifier: Apache-2.0
//! A backend that does what the request's parameter "do" says: what authors get wrong, and what is done in several ways.
use kelp_backend::*;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Conduct;

/// Says when it goes.
struct Loud(&'static str);

impl Drop for Loud {
    fn drop(&mut self) {
        log!(Warn, "conduct: {} goes", self.0);
        if self.0 == "bomb" {
            panic!("in a drop");
        }
    }
}

#[derive(Default)]
struct Count(u64, #[allow(dead_code)] Option<Loud>);

type Instance<'a> = ModelInstance<'a, Count, Loud>;

fn text(request: &Request, name: &str) -> Result<String, Error> {
    Ok(match request.parameter(name)? {
        Some(Parameter::Text(text)) => text,
        _ => String::new(),
    })
}

/// Answers with the input.
fn echo(request: &Request, response: &Response) -> Result<(), Error> {
    let input = request.get_input("IN")?;
    let properties = input.properties()?;
    response.add_bytes("OUT", properties.datatype, properties.shape, input.bytes()?)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

fn ask(model: &Model<Loud>, request: &Request) -> Result<InferenceRequest, Error> {
    let mut call = InferenceRequest::new(&model.server(), &text(request, "whom")?, -1);
    let data: &[f32] = request.get_input("IN")?.slice()?;
    call.add_input("IN", &[data.len() as i64], data)?;
    call.add_output("OUT")?;
    call.set_id("asked");
    call.set_parameter("do", text(request, "then")?)?;
    call.set_parameter("gate", text(request, "gate")?)?;
    Ok(call)
}

fn forward(answer: Result<InferenceResponse, Error>, response: Response) -> Result<(), Error> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return response.send_error(error.context("asked")),
    };
    let output = answer.output("OUT")?;
    response.add_output("OUT", output.shape(), output.slice::<f32>()?)?;
    response.set_parameter("id", answer.id())?;
    response.send()
}

fn conduct(instance: &mut Instance, request: Request) -> Result<(), Error> {
    let model = instance.model();
    let what = text(&request, "do")?;
    match what.as_str() {
        "panic" => panic!("on purpose, {}", 1),
        "panic_while_answering" => {
            let _response = Response::from_request(&request)?;
            panic!("midway");
        }
        "error" => return Err(Error::new(ErrorCode::NotFound, "nothing here\0and more")),
        "io_error" => drop(std::fs::read("/no/such/file")?),
        "forget" => {}
        "drop_response" => drop(Response::from_request(&request)?),
        "wrong_type" => drop(request.get_input("IN")?.slice::<f64>()?),
        "missing_input" => drop(request.get_input("NONE")?),
        "wrong_shape" => Response::from_request(&request)?.add_output("OUT", &[7], &[1.0f32])?,
        "refuse" => Response::from_request(&request)?.send_error(Error::unsupported("not today"))?,
        "twice" => {
            let second = Response::from_request(&request)?;
            let first = Response::from_request(&request)?;
            echo(&request, &first)?;
            first.send()?;
            let refused = second.send().unwrap_err();
            assert!(Response::from_request(&request).is_err());
            assert!(ResponseFactory::from_request(&request).is_err());
            return Err(refused); // which nobody hears but the log
        }
        "in_place" => {
            let data: &[f32] = request.get_input("IN")?.slice()?;
            let mut response = Response::from_request(&request)?;
            for (at, value) in response.output::<f32>("OUT", &[data.len() as i64])?.iter_mut().enumerate() {
                assert!(*value == 0.0);
                *value = data[at] + 1.0;
            }
            response.send()?;
        }
        "facts" => {
            let response = Response::from_request(&request)?;
            echo(&request, &response)?;
            for (name, value) in request.parameters()? {
                response.set_parameter(&format!("got_{name}"), value)?;
            }
            response.set_parameter("id", request.id()?)?;
            response.set_parameter("model", format!("{} {}", model.name(), model.version()))?;
            response.set_parameter("instance", instance.name())?;
            response.set_parameter("count", instance.state()?.0 as i64)?;
            response.set_parameter("outputs", request.requested_outputs()?.join(","))?;
            response.set_parameter("setting", model.parameter("setting").unwrap_or_default())?;
            response.set_parameter("dims", model.config()["input"][0]["dims"][0].as_i64().unwrap_or(0))?;
            response.send()?;
        }
        "later" => drop(thread::spawn(move || {
            let response = Response::from_request(&request).unwrap();
            echo(&request, &response).unwrap();
            response.send().unwrap();
        })),
        // Answers when a file exists.
        "wait" => drop(thread::spawn(move || {
            let gate = text(&request, "gate").unwrap();
            while !std::path::Path::new(&gate).exists() && !request.is_cancelled() {
                thread::sleep(std::time::Duration::from_millis(1));
            }
            let response = Response::from_request(&request).unwrap();
            echo(&request, &response).unwrap();
            response.send().unwrap();
        })),
        "later_panic" => drop(thread::spawn(move || {
            let _request = request;
            panic!("in a thread");
        })),
        "factory" => {
            let factory = ResponseFactory::from_request(&request)?;
            let data = request.get_input("IN")?.slice::<f32>()?.to_vec();
            request.release();
            assert!(Response::from_request(&request).is_err());
            drop(thread::spawn(move || {
                let response = Response::from_factory(&factory).unwrap();
                response.add_output("OUT", &[data.len() as i64], &data).unwrap();
                response.send().unwrap();
            }));
        }
        "factory_lost" => {
            let factory = ResponseFactory::from_request(&request)?;
            drop(thread::spawn(move || drop(factory)));
        }
        "call" => forward(ask(&model, &request)?.start()?.wait(), Response::from_request(&request)?)?,
        "call_all" => {
            let mut call = InferenceRequest::new(&model.server(), &text(&request, "whom")?, -1);
            let data: &[f32] = request.get_input("IN")?.slice()?;
            call.add_input("IN", &[data.len() as i64], data)?;
            let mut all = Vec::new();
            for answer in call.start()? {
                all.extend_from_slice(answer?.output("OUT")?.slice::<f32>()?);
            }
            let response = Response::from_request(&request)?;
            response.add_output("OUT", &[all.len() as i64], &all)?;
            response.send()?;
        }
        "call_await" => forward(block_on(ask(&model, &request)?.start()?), Response::from_request(&request)?)?,
        "call_back" => {
            let mut factory = Some(ResponseFactory::from_request(&request)?);
            ask(&model, &request)?.start_with(move |answer| match answer {
                Some(answer) => forward(answer, Response::from_factory(factory.take().unwrap()).unwrap()).unwrap(),
                None => assert!(factory.is_none()),
            })?;
        }
        // Answers, while the call goes on.
        "call_and_answer" => {
            let goes = Loud("a call");
            ask(&model, &request)?.start_with(move |answer| {
                let _ = &goes;
                if let Some(Err(error)) = answer {
                    log!(Warn, "conduct: {error}");
                }
            })?;
            let response = Response::from_request(&request)?;
            echo(&request, &response)?;
            response.send()?;
        }
        "call_drop" => drop(ask(&model, &request)?.start()?),
        _ => {
            let response = Response::from_request(&request)?;
            echo(&request, &response)?;
            response.send()?;
        }
    }
    Ok(())
}

impl Backend for Conduct {
    type ModelState = Loud;
    type ModelInstanceState = Count;

    fn initialize(host: &Host) -> Result<(), Error> {
        log!(Warn, "conduct: lies in {}, setting {:?}", host.directory()?.display(), host.setting("mood")?);
        log!(Verbose, "not composed: {}", if log_enabled(LogLevel::Verbose) { "" } else { panic!() });
        Ok(())
    }

    fn finalize() -> Result<(), Error> {
        log!(Warn, "conduct: the backend ends");
        Ok(())
    }

    fn model_initialize(model: Model<Loud>) -> Result<(), Error> {
        assert!(model.state().is_err());
        match model.parameter("begin").unwrap_or_default().as_str() {
            "error" => return Err(Error::new(ErrorCode::Unavailable, "no model today")),
            "panic" => panic!("no model at all"),
            "bomb" => model.set_state(Loud("bomb"))?,
            _ => model.set_state(Loud("a model"))?,
        }
        assert_eq!(model.set_state(Loud("a second state")).unwrap_err().code(), ErrorCode::AlreadyExists);
        Ok(())
    }

    fn model_instance_initialize(mut instance: Instance) -> Result<(), Error> {
        if instance.model().parameter("instance").as_deref() == Some("error") {
            return Err(Error::invalid("no instance today"));
        }
        instance.set_state(Count(0, Some(Loud("an instance"))));
        Ok(())
    }

    fn model_ready(model: Model<Loud>) -> Result<(), Error> {
        match model.parameter("ready") {
            Some(text) => Err(failure(text)),
            None => Ok(()),
        }
    }

    fn model_instance_execute(_: Instance, _: &[Request]) -> Result<(), Error> {
        unreachable!()
    }

    fn model_instance_execute_owned(mut instance: Instance, requests: Vec<Request>) -> Result<(), Error> {
        for request in requests {
            instance.state_mut()?.0 += 1;
            conduct(&mut instance, request)?;
        }
        Ok(())
    }
}

declare_backend!(Conduct);
