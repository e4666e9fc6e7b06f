// SPDX-License-Identifier: Apache-2.0
//! Networks, their layers and tensors. `layers.rs` contains the functions that add layers.
use crate::error::{check, copied, invalid, Error, Result};
use crate::root::Root;
use crate::sys;
use crate::types::{DataType, Dims, Weights};
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::Arc;

/// A network of layers. Functions that add layers check types, ranks and known dimensions; if they fail, the network is unchanged.
///
/// Layers and tensors borrow their network:
///
/// ```compile_fail,E0505
/// # use kelp_engine::{Builder, DataType, Logger, Severity};
/// # let logger = Logger::new(Severity::Info);
/// # let builder = Builder::new(&logger).unwrap();
/// let network = builder.create_network().unwrap();
/// let input = network.add_input("x", [1], DataType::Float).unwrap();
/// drop(network);
/// println!("{}", input.name());
/// ```
pub struct Network<'b> {
    raw: *mut sys::kelp_network,
    weights: RefCell<Vec<Weights>>,
    _root: Arc<Root>,
    /// The builder, which is used by the same thread.
    _builder: PhantomData<(&'b (), *const ())>,
}

impl Network<'_> {
    pub(crate) fn new(raw: *mut sys::kelp_network, root: Arc<Root>) -> Self {
        Self { raw, weights: RefCell::default(), _root: root, _builder: PhantomData }
    }

    /// Calls an add function of the C interface.
    pub(crate) fn add(
        &self,
        add: impl FnOnce(*mut sys::kelp_network, *mut *mut sys::kelp_layer) -> *mut sys::kelp_status,
    ) -> Result<Layer<'_>> {
        let mut raw = null_mut();
        check(add(self.raw, &mut raw), Error::Builder)?;
        Ok(Layer { raw, network: PhantomData })
    }

    /// As `add`, and keeps weights as long as the network, which borrows them.
    pub(crate) fn add_with<const N: usize>(
        &self,
        weights: [Weights; N],
        add: impl FnOnce(*mut sys::kelp_network, [sys::kelp_weights; N], *mut *mut sys::kelp_layer) -> *mut sys::kelp_status,
    ) -> Result<Layer<'_>> {
        let raw = std::array::from_fn(|i| weights[i].raw());
        let layer = self.add(|network, out| add(network, raw, out))?;
        self.weights.borrow_mut().extend(weights);
        Ok(layer)
    }

    /// Adds an input. Fails if a tensor of the network has this name.
    pub fn add_input(&self, name: &str, dims: impl Into<Dims>, data_type: DataType) -> Result<Tensor<'_>> {
        let name = CString::new(name)?;
        let mut raw = null_mut();
        // SAFETY: the arguments are valid; the name is copied.
        let status = unsafe {
            sys::kelp_network_add_input(self.raw, name.as_ptr(), data_type.raw(), dims.into().raw(), &mut raw)
        };
        check(status, Error::Builder)?;
        Ok(Tensor { raw, network: PhantomData })
    }

    /// Marks a tensor as an output with the name of the tensor. Has no effect if it is an output already.
    pub fn mark_output<'n>(&'n self, tensor: Tensor<'n>) -> Result<()> {
        // SAFETY: network and tensor are valid.
        check(unsafe { sys::kelp_network_mark_output(self.raw, tensor.raw) }, Error::Builder)
    }

    /// Removes a tensor from the outputs.
    pub fn unmark_output<'n>(&'n self, tensor: Tensor<'n>) -> Result<()> {
        // SAFETY: network and tensor are valid.
        check(unsafe { sys::kelp_network_unmark_output(self.raw, tensor.raw) }, Error::Builder)
    }

    /// Allows the weights of this name to be replaced in engines built with
    /// [`BuilderFlag::RefitIndividual`](crate::BuilderFlag::RefitIndividual).
    pub fn mark_refittable(&self, weights: &str) -> Result<()> {
        let name = CString::new(weights)?;
        // SAFETY: the arguments are valid; the name is copied.
        check(unsafe { sys::kelp_network_mark_refittable(self.raw, name.as_ptr()) }, Error::Builder)
    }

    /// Serializes the network as an ONNX model with its weights. Fails if it has no outputs.
    pub fn to_onnx(&self) -> Result<Vec<u8>> {
        let mut blob = null_mut();
        // SAFETY: the network is valid; the bytes are valid until the blob is released.
        unsafe {
            check(sys::kelp_network_to_onnx(self.raw, &mut blob), Error::Builder)?;
            let (data, size) = (sys::kelp_blob_data(blob).cast::<u8>(), sys::kelp_blob_size(blob));
            let bytes = std::slice::from_raw_parts(data, size).to_vec();
            sys::kelp_blob_release(blob);
            Ok(bytes)
        }
    }

    /// Sets the name of the network.
    pub fn set_name(&self, name: &str) -> Result<()> {
        let name = CString::new(name)?;
        // SAFETY: the arguments are valid; the name is copied.
        check(unsafe { sys::kelp_network_set_name(self.raw, name.as_ptr()) }, Error::Builder)
    }

    /// Returns the name of the network.
    pub fn name(&self) -> String {
        // SAFETY: the network is valid and returns a string.
        unsafe { copied(sys::kelp_network_name(self.raw)) }.unwrap_or_default()
    }

    /// Returns the number of inputs.
    pub fn num_inputs(&self) -> usize {
        // SAFETY: the network is valid.
        unsafe { sys::kelp_network_input_count(self.raw) }
    }

    /// Returns the number of outputs.
    pub fn num_outputs(&self) -> usize {
        // SAFETY: the network is valid.
        unsafe { sys::kelp_network_output_count(self.raw) }
    }

    /// Returns the number of layers.
    pub fn num_layers(&self) -> usize {
        // SAFETY: the network is valid.
        unsafe { sys::kelp_network_layer_count(self.raw) }
    }

    /// Returns an input.
    pub fn input(&self, index: usize) -> Result<Tensor<'_>> {
        // SAFETY: the network is valid.
        Tensor::some(unsafe { sys::kelp_network_input(self.raw, index) }, || {
            self.lacks("input", index, self.num_inputs())
        })
    }

    /// Returns an output.
    pub fn output(&self, index: usize) -> Result<Tensor<'_>> {
        // SAFETY: the network is valid.
        Tensor::some(unsafe { sys::kelp_network_output(self.raw, index) }, || {
            self.lacks("output", index, self.num_outputs())
        })
    }

    /// Returns a layer.
    pub fn layer(&self, index: usize) -> Result<Layer<'_>> {
        // SAFETY: the network is valid.
        let raw = unsafe { sys::kelp_network_layer(self.raw, index) };
        if raw.is_null() {
            return invalid(self.lacks("layer", index, self.num_layers()));
        }
        Ok(Layer { raw, network: PhantomData })
    }

    fn lacks(&self, what: &str, index: usize, count: usize) -> String {
        format!("there is no {what} {index}: network '{}' has {count}", self.name())
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut sys::kelp_network {
        self.raw
    }
}

impl Drop for Network<'_> {
    fn drop(&mut self) {
        // SAFETY: this object owns a reference. The weights are dropped afterwards.
        unsafe { sys::kelp_network_release(self.raw) }
    }
}

/// A layer of a network.
#[derive(Clone, Copy)]
pub struct Layer<'n> {
    raw: *mut sys::kelp_layer,
    network: PhantomData<&'n Network<'n>>,
}

impl<'n> Layer<'n> {
    /// Returns the type, such as "Convolution".
    pub fn type_name(&self) -> &'static str {
        // SAFETY: the layer is valid and the string is static.
        unsafe { CStr::from_ptr(sys::kelp_layer_type_name(sys::kelp_layer_type_of(self.raw))) }
            .to_str()
            .unwrap_or_default()
    }

    /// Returns the name, such as "Convolution_3" by default.
    pub fn name(&self) -> String {
        // SAFETY: the layer is valid and returns a string.
        unsafe { copied(sys::kelp_layer_name(self.raw)) }.unwrap_or_default()
    }

    /// Sets the name, which messages and the default names of the layer's weights contain.
    pub fn set_name(&self, name: &str) -> Result<()> {
        let name = CString::new(name)?;
        // SAFETY: the arguments are valid; the name is copied.
        check(unsafe { sys::kelp_layer_set_name(self.raw, name.as_ptr()) }, Error::Builder)
    }

    /// Returns the number of inputs, including optional inputs that are omitted.
    pub fn num_inputs(&self) -> usize {
        // SAFETY: the layer is valid.
        unsafe { sys::kelp_layer_input_count(self.raw) }
    }

    /// Returns the number of outputs.
    pub fn num_outputs(&self) -> usize {
        // SAFETY: the layer is valid.
        unsafe { sys::kelp_layer_output_count(self.raw) }
    }

    /// Returns an input. Fails if it is omitted.
    pub fn input(&self, index: usize) -> Result<Tensor<'n>> {
        // SAFETY: the layer is valid.
        Tensor::some(unsafe { sys::kelp_layer_input(self.raw, index) }, || {
            format!("layer '{}' has no input {index}", self.name())
        })
    }

    /// Returns an output.
    pub fn output(&self, index: usize) -> Result<Tensor<'n>> {
        // SAFETY: the layer is valid.
        Tensor::some(unsafe { sys::kelp_layer_output(self.raw, index) }, || {
            format!("layer '{}' has no output {index}: it has {}", self.name(), self.num_outputs())
        })
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut sys::kelp_layer {
        self.raw
    }
}

impl fmt::Debug for Layer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layer({} '{}')", self.type_name(), self.name())
    }
}

/// A symbolic tensor: an input of the network or an output of a layer.
#[derive(Clone, Copy)]
pub struct Tensor<'n> {
    raw: *mut sys::kelp_net_tensor,
    network: PhantomData<&'n Network<'n>>,
}

impl Tensor<'_> {
    fn some(raw: *mut sys::kelp_net_tensor, otherwise: impl FnOnce() -> String) -> Result<Self> {
        if raw.is_null() {
            return invalid(otherwise());
        }
        Ok(Self { raw, network: PhantomData })
    }

    /// Returns the name, such as "tensor_7" by default.
    pub fn name(&self) -> String {
        // SAFETY: the tensor is valid and returns a string.
        unsafe { copied(sys::kelp_net_tensor_name(self.raw)) }.unwrap_or_default()
    }

    /// Sets the name. Fails if another tensor of the network has it.
    pub fn set_name(&self, name: &str) -> Result<()> {
        let name = CString::new(name)?;
        // SAFETY: the arguments are valid; the name is copied.
        check(unsafe { sys::kelp_net_tensor_set_name(self.raw, name.as_ptr()) }, Error::Builder)
    }

    /// Returns the element type; `None` if it is unknown.
    pub fn data_type(&self) -> Option<DataType> {
        // SAFETY: the tensor is valid.
        DataType::from_raw(unsafe { sys::kelp_net_tensor_dtype(self.raw) })
    }

    /// Returns the dimensions, -1 for dynamic ones; `None` if their number is unknown.
    pub fn dims(&self) -> Option<Dims> {
        // SAFETY: the tensor is valid.
        let shape = unsafe { sys::kelp_net_tensor_dims(self.raw) };
        Dims::from_raw(shape.rank, &shape.d)
    }

    /// Returns the handle of the C interface.
    pub fn as_ptr(&self) -> *mut sys::kelp_net_tensor {
        self.raw
    }
}

impl fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims = self.dims().map_or("of unknown rank".into(), |dims| dims.to_string());
        write!(f, "Tensor('{}' {:?} {dims})", self.name(), self.data_type())
    }
}

/// Returns the handle of an optional tensor.
pub(crate) fn optional(tensor: Option<Tensor<'_>>) -> *mut sys::kelp_net_tensor {
    tensor.map_or(null_mut(), |tensor| tensor.as_ptr())
}

/// A loop in a network. Layers that depend on a recurrence or an iterator form its body.
#[derive(Clone, Copy)]
pub struct Loop<'n> {
    pub(crate) raw: *mut sys::kelp_loop,
    pub(crate) network: &'n Network<'n>,
}

/// A conditional in a network. Layers that depend on one of its inputs run only in the branch that needs them.
#[derive(Clone, Copy)]
pub struct Conditional<'n> {
    pub(crate) raw: *mut sys::kelp_conditional,
    pub(crate) network: &'n Network<'n>,
}
