// SPDX-License-Identifier: Apache-2.0
//! Options of layers.
use crate::enums::*;
use crate::error::{invalid, Result};
use crate::network::{optional, Tensor};
use crate::sys;
use crate::types::{DataType, Dims};
use std::ptr::null_mut;

/// Options of convolutions and pooling, for two or three spatial axes, which follow batch and channel. The default has zeros, which
/// take the values in brackets.
///
/// ```
/// use kelp_engine::Window;
///
/// let window = Window { stride: [2, 2, 0], pre_padding: [1, 1, 0], post_padding: [1, 1, 0], ..Window::default() };
/// ```
#[derive(Clone, Debug)]
pub struct Window<'n> {
    /// Stride \[1 for convolutions, window size for pooling\].
    pub stride: [i64; 3],
    /// Dilation \[1\].
    pub dilation: [i64; 3],
    /// Padding before the first element \[0\].
    pub pre_padding: [i64; 3],
    /// Padding after the last element \[0\].
    pub post_padding: [i64; 3],
    /// How padding is determined.
    pub padding_mode: PaddingMode,
    /// Number of groups of channels, convolutions only \[1\].
    pub groups: i64,
    /// Kernel as a tensor, instead of the weights.
    pub kernel: Option<Tensor<'n>>,
    /// Bias as a tensor, instead of the weights.
    pub bias: Option<Tensor<'n>>,
    /// Average pooling includes padded elements.
    pub include_padding: bool,
    /// With [`PoolingType::Blend`]: weight of the average, 0 to 1.
    pub blend: f32,
}

impl Default for Window<'_> {
    fn default() -> Self {
        Self {
            stride: [0; 3],
            dilation: [0; 3],
            pre_padding: [0; 3],
            post_padding: [0; 3],
            padding_mode: PaddingMode::ExplicitRoundDown,
            groups: 0,
            kernel: None,
            bias: None,
            include_padding: false,
            blend: 0.0,
        }
    }
}

impl Window<'_> {
    pub(crate) fn raw(&self) -> sys::kelp_window {
        sys::kelp_window {
            struct_size: size_of::<sys::kelp_window>() as u32,
            stride: self.stride,
            dilation: self.dilation,
            pre_padding: self.pre_padding,
            post_padding: self.post_padding,
            padding_mode: self.padding_mode.raw(),
            groups: self.groups,
            kernel: optional(self.kernel),
            bias: optional(self.bias),
            include_padding: self.include_padding,
            blend: self.blend,
        }
    }
}

/// The size of the output of a resize layer.
#[derive(Clone, Debug)]
pub enum ResizeTo<'n> {
    /// Output dimensions.
    Dims(Dims),
    /// The scale of each axis.
    Scales(Vec<f32>),
    /// Computed output dimensions, int64 `[rank]`.
    Shape(Tensor<'n>),
}

/// Options of a resize layer. [`Resize::new`] creates them with the defaults.
#[derive(Clone, Debug)]
pub struct Resize<'n> {
    /// Size of the output.
    pub to: ResizeTo<'n>,
    /// Interpolation.
    pub mode: InterpolationMode,
    /// Coordinate mapping.
    pub coordinates: ResizeCoordinates,
    /// Rounding of nearest interpolation.
    pub rounding: ResizeRounding,
    /// Coefficient of cubic interpolation; 0 stands for -0.75.
    pub cubic_coefficient: f32,
    /// Cubic: elements outside the input have weight 0.
    pub exclude_outside: bool,
}

impl<'n> Resize<'n> {
    /// Creates options for nearest interpolation.
    pub fn new(to: ResizeTo<'n>) -> Self {
        Self {
            to,
            mode: InterpolationMode::Nearest,
            coordinates: ResizeCoordinates::AlignCorners,
            rounding: ResizeRounding::HalfUp,
            cubic_coefficient: 0.0,
            exclude_outside: false,
        }
    }

    pub(crate) fn raw(&self) -> Result<sys::kelp_resize> {
        let mut raw = sys::kelp_resize {
            struct_size: size_of::<sys::kelp_resize>() as u32,
            dims: Dims::new(&[]).raw(),
            scale_count: 0,
            scales: [0.0; Dims::MAX],
            shape: null_mut(),
            mode: self.mode.raw(),
            coordinates: self.coordinates.raw(),
            rounding: self.rounding.raw(),
            cubic_coefficient: self.cubic_coefficient,
            exclude_outside: self.exclude_outside,
        };
        match &self.to {
            ResizeTo::Dims(dims) => raw.dims = dims.raw(),
            ResizeTo::Shape(shape) => raw.shape = shape.as_ptr(),
            ResizeTo::Scales(scales) if scales.len() <= Dims::MAX => {
                raw.scale_count = scales.len() as u32;
                raw.scales[..scales.len()].copy_from_slice(scales);
            }
            ResizeTo::Scales(scales) => {
                return invalid(format!("a tensor has at most {} axes: found {} scales", Dims::MAX, scales.len()))
            }
        }
        Ok(raw)
    }
}

/// Options of a shuffle layer: transpose, then reshape, then transpose. The default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct Shuffle<'n> {
    /// Permutation before reshaping.
    pub first_transpose: Option<Vec<usize>>,
    /// New dimensions; -1: inferred; 0: copied from the input.
    pub reshape: Option<Dims>,
    /// Computed new dimensions, int64 `[rank]`, instead of `reshape`.
    pub shape: Option<Tensor<'n>>,
    /// 0 in the new dimensions is not copied.
    pub zero_is_zero: bool,
    /// Permutation after reshaping.
    pub second_transpose: Option<Vec<usize>>,
}

impl Shuffle<'_> {
    /// Returns options that reshape.
    pub fn reshape(dims: impl Into<Dims>) -> Self {
        Self { reshape: Some(dims.into()), ..Self::default() }
    }

    /// Returns options that transpose.
    pub fn transpose(permutation: &[usize]) -> Self {
        Self { first_transpose: Some(permutation.to_vec()), ..Self::default() }
    }

    pub(crate) fn raw(&self) -> Result<sys::kelp_shuffle> {
        Ok(sys::kelp_shuffle {
            struct_size: size_of::<sys::kelp_shuffle>() as u32,
            first_transpose_given: self.first_transpose.is_some(),
            second_transpose_given: self.second_transpose.is_some(),
            first_transpose: permutation(&self.first_transpose)?,
            reshape_given: self.reshape.is_some(),
            reshape: self.reshape.unwrap_or(Dims::new(&[])).raw(),
            shape: optional(self.shape),
            zero_is_zero: self.zero_is_zero,
            second_transpose: permutation(&self.second_transpose)?,
        })
    }
}

/// Fills the unused entries with -1, so that a permutation that is too short is rejected.
fn permutation(axes: &Option<Vec<usize>>) -> Result<[i32; Dims::MAX]> {
    let mut raw = [-1; Dims::MAX];
    let axes = axes.as_deref().unwrap_or(&[]);
    if axes.len() > Dims::MAX || axes.iter().any(|&axis| axis >= Dims::MAX) {
        return invalid(format!("a permutation has at most {} axes: found {axes:?}", Dims::MAX));
    }
    for (to, &axis) in raw.iter_mut().zip(axes) {
        *to = axis as i32;
    }
    Ok(raw)
}

/// Options of a slice layer.
#[derive(Clone, Debug)]
pub struct Slice<'n> {
    /// Treatment of positions outside the input.
    pub mode: SampleMode,
    /// Computed start, int64 `[rank]`, instead of the argument.
    pub start: Option<Tensor<'n>>,
    /// Computed size, int64 `[rank]`, instead of the argument.
    pub size: Option<Tensor<'n>>,
    /// Computed stride, int64 `[rank]`, instead of the argument.
    pub stride: Option<Tensor<'n>>,
    /// A scalar for [`SampleMode::Fill`].
    pub fill: Option<Tensor<'n>>,
}

impl Default for Slice<'_> {
    fn default() -> Self {
        Self { mode: SampleMode::Strict, start: None, size: None, stride: None, fill: None }
    }
}

impl Slice<'_> {
    pub(crate) fn raw(&self) -> sys::kelp_slice {
        sys::kelp_slice {
            struct_size: size_of::<sys::kelp_slice>() as u32,
            mode: self.mode.raw(),
            start: optional(self.start),
            size: optional(self.size),
            stride: optional(self.stride),
            fill: optional(self.fill),
        }
    }
}

/// Options of a fill layer.
#[derive(Clone, Debug, Default)]
pub struct FillOptions<'n> {
    /// See [`FillOperation`]. If both are 0, `beta` is 1.
    pub alpha: f64,
    /// See [`FillOperation`].
    pub beta: f64,
    /// Computed dimensions, int32 or int64 `[rank]`, instead of those of the argument.
    pub shape: Option<Tensor<'n>>,
    /// Computed scalar instead of `alpha`.
    pub start: Option<Tensor<'n>>,
    /// [`FillOperation::Linspace`]: `[rank]`, one step per axis, instead of `beta`.
    pub delta: Option<Tensor<'n>>,
    /// Element type; `None`: that of `start`, or `Float`.
    pub data_type: Option<DataType>,
}

impl FillOptions<'_> {
    pub(crate) fn raw(&self) -> sys::kelp_fill_options {
        sys::kelp_fill_options {
            struct_size: size_of::<sys::kelp_fill_options>() as u32,
            alpha: self.alpha,
            beta: self.beta,
            shape: optional(self.shape),
            start: optional(self.start),
            delta: optional(self.delta),
            dtype: self.data_type.map_or(sys::KELP_DTYPE_INVALID, DataType::raw),
        }
    }
}

/// Options of a normalization layer. Zeros take the values in brackets.
#[derive(Clone, Debug, Default)]
pub struct Normalization {
    /// Added to the variance \[1e-5\].
    pub epsilon: f32,
    /// Number of groups of channels \[1\]; group normalization if more than 1.
    pub groups: i64,
}

impl Normalization {
    pub(crate) fn raw(&self) -> sys::kelp_normalization {
        let struct_size = size_of::<sys::kelp_normalization>() as u32;
        sys::kelp_normalization { struct_size, epsilon: self.epsilon, groups: self.groups }
    }
}

/// Options of an attention layer.
#[derive(Clone, Debug, Default)]
pub struct Attention<'n> {
    /// A query attends only to keys up to its position.
    pub causal: bool,
    /// No softmax between the two matrix multiplications.
    pub no_softmax: bool,
    /// Bool (true: attend) or added to the scores; broadcasts to `[b, heads, q, kv]`.
    pub mask: Option<Tensor<'n>>,
}

impl Attention<'_> {
    pub(crate) fn raw(&self) -> sys::kelp_attention {
        sys::kelp_attention {
            struct_size: size_of::<sys::kelp_attention>() as u32,
            causal: self.causal,
            no_softmax: self.no_softmax,
            mask: optional(self.mask),
        }
    }
}

/// Options of a mixture-of-experts layer.
#[derive(Clone, Debug)]
pub struct Moe<'n> {
    /// Bias `[experts, inner]` of `gate`.
    pub gate_bias: Option<Tensor<'n>>,
    /// Bias `[experts, inner]` of `up`.
    pub up_bias: Option<Tensor<'n>>,
    /// Bias `[experts, h]` of `down`.
    pub down_bias: Option<Tensor<'n>>,
    /// Applied to `gate`, or to `up` if there is no gate. `None` is SiLU.
    pub activation: Option<ActivationType>,
    /// Parameter of `activation`.
    pub alpha: f32,
    /// Parameter of `activation`.
    pub beta: f32,
}

impl Default for Moe<'_> {
    fn default() -> Self {
        Self {
            gate_bias: None,
            up_bias: None,
            down_bias: None,
            activation: Some(ActivationType::Relu),
            alpha: 0.0,
            beta: 0.0,
        }
    }
}

impl Moe<'_> {
    pub(crate) fn raw(&self) -> sys::kelp_moe {
        sys::kelp_moe {
            struct_size: size_of::<sys::kelp_moe>() as u32,
            gate_bias: optional(self.gate_bias),
            up_bias: optional(self.up_bias),
            down_bias: optional(self.down_bias),
            activation: self.activation.unwrap_or(ActivationType::Relu).raw(),
            swish: self.activation.is_none(),
            alpha: self.alpha,
            beta: self.beta,
        }
    }
}

/// Options of non-maximum suppression.
#[derive(Clone, Debug, Default)]
pub struct Nms<'n> {
    /// Boxes are `[x, y, w, h]` around a center instead of `[y1, x1, y2, x2]`.
    pub centers: bool,
    /// Number of candidates per class; 0: all.
    pub topk: i64,
    /// Scalar; `None` stands for 0.
    pub iou_threshold: Option<Tensor<'n>>,
    /// Scalar; `None`: no threshold.
    pub score_threshold: Option<Tensor<'n>>,
}

impl Nms<'_> {
    pub(crate) fn raw(&self) -> sys::kelp_nms {
        sys::kelp_nms {
            struct_size: size_of::<sys::kelp_nms>() as u32,
            centers: self.centers,
            topk: self.topk,
            iou_threshold: optional(self.iou_threshold),
            score_threshold: optional(self.score_threshold),
        }
    }
}
