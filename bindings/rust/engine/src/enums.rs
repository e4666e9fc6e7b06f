// SPDX-License-Identifier: Apache-2.0
//! Enumerations of `kelp/network.h`.
use crate::types::enumeration;

enumeration! {
    /// Activation function.
    ActivationType: kelp_activation {
        /// `max(0, x)`.
        Relu = KELP_ACTIVATION_RELU,
        /// `1 / (1 + exp(-x))`.
        Sigmoid = KELP_ACTIVATION_SIGMOID,
        /// `tanh(x)`.
        Tanh = KELP_ACTIVATION_TANH,
        /// `x >= 0 ? x : alpha * x`.
        LeakyRelu = KELP_ACTIVATION_LEAKY_RELU,
        /// `x >= 0 ? x : alpha * (exp(x) - 1)`.
        Elu = KELP_ACTIVATION_ELU,
        /// `x > 0 ? beta * x : beta * (alpha * exp(x) - alpha)`.
        Selu = KELP_ACTIVATION_SELU,
        /// `x / (1 + |x|)`.
        Softsign = KELP_ACTIVATION_SOFTSIGN,
        /// `alpha * log(exp(beta * x) + 1)`.
        Softplus = KELP_ACTIVATION_SOFTPLUS,
        /// `max(alpha, min(beta, x))`.
        Clip = KELP_ACTIVATION_CLIP,
        /// `max(0, min(1, alpha * x + beta))`.
        HardSigmoid = KELP_ACTIVATION_HARD_SIGMOID,
        /// `alpha * tanh(beta * x)`.
        ScaledTanh = KELP_ACTIVATION_SCALED_TANH,
        /// `x > alpha ? x : 0`.
        ThresholdedRelu = KELP_ACTIVATION_THRESHOLDED_RELU,
        /// `x / 2 * (1 + erf(x / sqrt(2)))`.
        GeluErf = KELP_ACTIVATION_GELU_ERF,
        /// GELU, approximated with tanh.
        GeluTanh = KELP_ACTIVATION_GELU_TANH,
    }
}

enumeration! {
    /// Unary function.
    UnaryOperation: kelp_unary {
        /// `exp(x)`.
        Exp = KELP_UNARY_EXP,
        /// Natural logarithm.
        Log = KELP_UNARY_LOG,
        /// Square root.
        Sqrt = KELP_UNARY_SQRT,
        /// `1 / x`.
        Recip = KELP_UNARY_RECIP,
        /// `|x|`.
        Abs = KELP_UNARY_ABS,
        /// `-x`.
        Neg = KELP_UNARY_NEG,
        /// Sine.
        Sin = KELP_UNARY_SIN,
        /// Cosine.
        Cos = KELP_UNARY_COS,
        /// Tangent.
        Tan = KELP_UNARY_TAN,
        /// Hyperbolic sine.
        Sinh = KELP_UNARY_SINH,
        /// Hyperbolic cosine.
        Cosh = KELP_UNARY_COSH,
        /// Inverse sine.
        Asin = KELP_UNARY_ASIN,
        /// Inverse cosine.
        Acos = KELP_UNARY_ACOS,
        /// Inverse tangent.
        Atan = KELP_UNARY_ATAN,
        /// Inverse hyperbolic sine.
        Asinh = KELP_UNARY_ASINH,
        /// Inverse hyperbolic cosine.
        Acosh = KELP_UNARY_ACOSH,
        /// Inverse hyperbolic tangent.
        Atanh = KELP_UNARY_ATANH,
        /// Smallest integer not below x.
        Ceil = KELP_UNARY_CEIL,
        /// Largest integer not above x.
        Floor = KELP_UNARY_FLOOR,
        /// Error function.
        Erf = KELP_UNARY_ERF,
        /// Logical negation of a bool.
        Not = KELP_UNARY_NOT,
        /// -1, 0 or 1.
        Sign = KELP_UNARY_SIGN,
        /// Nearest integer, ties to even.
        Round = KELP_UNARY_ROUND,
        /// True if infinite; the result is bool.
        Isinf = KELP_UNARY_ISINF,
        /// True if NaN; the result is bool.
        Isnan = KELP_UNARY_ISNAN,
    }
}

enumeration! {
    /// Binary function.
    ElementWiseOperation: kelp_elementwise {
        /// `a + b`.
        Sum = KELP_ELEMENTWISE_SUM,
        /// `a * b`.
        Prod = KELP_ELEMENTWISE_PROD,
        /// Maximum.
        Max = KELP_ELEMENTWISE_MAX,
        /// Minimum.
        Min = KELP_ELEMENTWISE_MIN,
        /// `a - b`.
        Sub = KELP_ELEMENTWISE_SUB,
        /// `a / b`.
        Div = KELP_ELEMENTWISE_DIV,
        /// `a` raised to `b`.
        Pow = KELP_ELEMENTWISE_POW,
        /// `floor(a / b)`.
        FloorDiv = KELP_ELEMENTWISE_FLOOR_DIV,
        /// Logical and of bools.
        And = KELP_ELEMENTWISE_AND,
        /// Logical or of bools.
        Or = KELP_ELEMENTWISE_OR,
        /// Logical exclusive or of bools.
        Xor = KELP_ELEMENTWISE_XOR,
        /// `a == b`; the result is bool.
        Equal = KELP_ELEMENTWISE_EQUAL,
        /// `a > b`; the result is bool.
        Greater = KELP_ELEMENTWISE_GREATER,
        /// `a < b`; the result is bool.
        Less = KELP_ELEMENTWISE_LESS,
    }
}

enumeration! {
    /// Granularity of a scale layer.
    ScaleMode: kelp_scale_mode {
        /// One coefficient.
        Uniform = KELP_SCALE_UNIFORM,
        /// One coefficient per index along `axis`.
        Channel = KELP_SCALE_CHANNEL,
        /// One coefficient per element of the axes from `axis` on.
        Elementwise = KELP_SCALE_ELEMENTWISE,
    }
}

enumeration! {
    /// How padding is determined.
    PaddingMode: kelp_padding_mode {
        /// Given padding; incomplete windows are dropped.
        ExplicitRoundDown = KELP_PADDING_EXPLICIT_ROUND_DOWN,
        /// Given padding; the last window may exceed it.
        ExplicitRoundUp = KELP_PADDING_EXPLICIT_ROUND_UP,
        /// The output is `ceil(input / stride)`; odd padding at the end.
        SameUpper = KELP_PADDING_SAME_UPPER,
        /// The output is `ceil(input / stride)`; odd padding at the start.
        SameLower = KELP_PADDING_SAME_LOWER,
    }
}

enumeration! {
    /// Pooling function.
    PoolingType: kelp_pooling {
        /// Maximum.
        Max = KELP_POOLING_MAX,
        /// Average.
        Average = KELP_POOLING_AVERAGE,
        /// `(1 - blend) * maximum + blend * average`.
        Blend = KELP_POOLING_BLEND,
    }
}

enumeration! {
    /// Interpolation.
    InterpolationMode: kelp_interpolation {
        /// Nearest element.
        Nearest = KELP_INTERPOLATION_NEAREST,
        /// Linear.
        Linear = KELP_INTERPOLATION_LINEAR,
        /// Cubic.
        Cubic = KELP_INTERPOLATION_CUBIC,
    }
}

enumeration! {
    /// How coordinates of the output map to the input.
    ResizeCoordinates: kelp_coordinates {
        /// Corner elements coincide.
        AlignCorners = KELP_COORDINATES_ALIGN_CORNERS,
        /// `x / scale`.
        Asymmetric = KELP_COORDINATES_ASYMMETRIC,
        /// `(x + 0.5) / scale - 0.5`.
        HalfPixel = KELP_COORDINATES_HALF_PIXEL,
    }
}

enumeration! {
    /// Rounding of coordinates with [`InterpolationMode::Nearest`](crate::InterpolationMode::Nearest).
    ResizeRounding: kelp_rounding {
        /// To nearest, ties up.
        HalfUp = KELP_ROUNDING_HALF_UP,
        /// To nearest, ties down.
        HalfDown = KELP_ROUNDING_HALF_DOWN,
        /// Down.
        Floor = KELP_ROUNDING_FLOOR,
        /// Up.
        Ceil = KELP_ROUNDING_CEIL,
    }
}

enumeration! {
    /// Treatment of positions outside a tensor.
    SampleMode: kelp_sample_mode {
        /// Not allowed.
        Strict = KELP_SAMPLE_STRICT,
        /// Modulo the dimension.
        Wrap = KELP_SAMPLE_WRAP,
        /// Nearest element.
        Clamp = KELP_SAMPLE_CLAMP,
        /// Zero, or the fill value.
        Fill = KELP_SAMPLE_FILL,
        /// Mirrored.
        Reflect = KELP_SAMPLE_REFLECT,
    }
}

enumeration! {
    /// Kind of a gather layer.
    GatherMode: kelp_gather_mode {
        /// Slices along `axis`; the first `batch_dims` axes are batch axes (ONNX Gather).
        Default = KELP_GATHER_DEFAULT,
        /// One element per index along `axis` (ONNX GatherElements).
        Element = KELP_GATHER_ELEMENT,
        /// The last axis of the indices addresses the axes after batch_dims (ONNX GatherND).
        Nd = KELP_GATHER_ND,
    }
}

enumeration! {
    /// Kind of a scatter layer.
    ScatterMode: kelp_scatter_mode {
        /// One element per index along `axis` (ONNX ScatterElements).
        Element = KELP_SCATTER_ELEMENT,
        /// Slices addressed by the last axis of the indices (ONNX ScatterND).
        Nd = KELP_SCATTER_ND,
    }
}

enumeration! {
    /// Kind of a fill layer.
    FillOperation: kelp_fill {
        /// `alpha + i * beta`.
        Linspace = KELP_FILL_LINSPACE,
        /// Uniform between `alpha` and `beta`.
        RandomUniform = KELP_FILL_RANDOM_UNIFORM,
        /// Normal with mean `alpha` and standard deviation `beta`.
        RandomNormal = KELP_FILL_RANDOM_NORMAL,
    }
}

enumeration! {
    /// Reduction.
    ReduceOperation: kelp_reduce {
        /// Sum.
        Sum = KELP_REDUCE_SUM,
        /// Product.
        Prod = KELP_REDUCE_PROD,
        /// Maximum.
        Max = KELP_REDUCE_MAX,
        /// Minimum.
        Min = KELP_REDUCE_MIN,
        /// Average.
        Average = KELP_REDUCE_AVERAGE,
        /// None; only for collectives.
        None = KELP_REDUCE_NONE,
    }
}

enumeration! {
    /// How an operand of a matrix multiplication is used.
    MatrixOperation: kelp_matrix_op {
        /// Matrices in the last two axes.
        None = KELP_MATRIX_NONE,
        /// Transposed matrices in the last two axes.
        Transpose = KELP_MATRIX_TRANSPOSE,
        /// Vectors in the last axis.
        Vector = KELP_MATRIX_VECTOR,
    }
}

enumeration! {
    /// Collective operation.
    CollectiveOperation: kelp_collective {
        /// Reduction on all ranks.
        AllReduce = KELP_COLLECTIVE_ALL_REDUCE,
        /// Concatenation on all ranks.
        AllGather = KELP_COLLECTIVE_ALL_GATHER,
        /// Copy from the root.
        Broadcast = KELP_COLLECTIVE_BROADCAST,
        /// Reduction on the root.
        Reduce = KELP_COLLECTIVE_REDUCE,
        /// Reduction, one part per rank.
        ReduceScatter = KELP_COLLECTIVE_REDUCE_SCATTER,
    }
}

enumeration! {
    /// Kind of a loop output.
    LoopOutput: kelp_loop_output {
        /// Final value of a recurrence of the loop.
        LastValue = KELP_LOOP_LAST_VALUE,
        /// Values of all iterations along a new axis.
        Concatenate = KELP_LOOP_CONCATENATE,
        /// The same, last iteration first.
        Reverse = KELP_LOOP_REVERSE,
    }
}
