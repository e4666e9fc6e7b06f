// SPDX-License-Identifier: Apache-2.0
//! Shapes, element types and weights.
use crate::error::{invalid, Result};
use crate::sys;
use std::any::Any;
use std::ffi::{CStr, CString};
use std::fmt;
use std::ops::Deref;
use std::ptr::null;
use std::sync::Arc;

/// Declares an enumeration with the values of one of the C interface.
macro_rules! enumeration {
    ($(#[$meta:meta])* $name:ident: $raw:ident { $($(#[$variant_meta:meta])* $variant:ident = $value:ident,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u32)]
        pub enum $name {
            $($(#[$variant_meta])* $variant = crate::sys::$value,)*
        }

        impl $name {
            #[allow(dead_code)]
            pub(crate) const ALL: &'static [$name] = &[$($name::$variant),*];

            pub(crate) fn raw(self) -> crate::sys::$raw {
                self as u32
            }
        }
    };
}
pub(crate) use enumeration;

/// The dimensions of a tensor, at most 16. A dimension of -1 is dynamic. Dereferences to a slice.
///
/// ```
/// use kelp_engine::Dims;
///
/// let dims = Dims::new(&[1, 3, 224, 224]);
/// assert_eq!(dims.len(), 4);
/// assert_eq!(dims, Dims::from([1, 3, 224, 224]));
/// assert_eq!(dims.to_string(), "[1,3,224,224]");
/// ```
#[derive(Clone, Copy)]
pub struct Dims {
    rank: usize,
    d: [i64; Dims::MAX],
}

impl Dims {
    /// The maximum number of dimensions.
    pub const MAX: usize = sys::KELP_MAX_RANK as usize;

    /// Creates dimensions.
    ///
    /// # Panics
    ///
    /// If there are more than [`Dims::MAX`].
    pub fn new(dims: &[i64]) -> Self {
        assert!(dims.len() <= Self::MAX, "a tensor has at most {} dimensions: found {}", Self::MAX, dims.len());
        let mut d = [0; Self::MAX];
        d[..dims.len()].copy_from_slice(dims);
        Self { rank: dims.len(), d }
    }

    /// Returns the number of elements; `None` if a dimension is dynamic or the number is larger than `usize`.
    pub fn elements(&self) -> Option<usize> {
        self.iter().try_fold(1usize, |product, &d| product.checked_mul(usize::try_from(d).ok()?))
    }

    pub(crate) fn raw(&self) -> sys::kelp_shape {
        sys::kelp_shape { rank: self.rank as i32, d: self.d }
    }

    /// `None` if the rank is unknown.
    pub(crate) fn from_raw(rank: i32, d: &[i64; Self::MAX]) -> Option<Self> {
        Some(Self::new(&d[..usize::try_from(rank).ok()?]))
    }
}

impl Deref for Dims {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        &self.d[..self.rank]
    }
}

impl PartialEq for Dims {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Dims {}

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.iter().map(i64::to_string).collect();
        write!(f, "[{}]", texts.join(","))
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dims({self})")
    }
}

impl From<&[i64]> for Dims {
    fn from(dims: &[i64]) -> Self {
        Self::new(dims)
    }
}

impl<const N: usize> From<[i64; N]> for Dims {
    fn from(dims: [i64; N]) -> Self {
        Self::new(&dims)
    }
}

enumeration! {
    /// The type of the elements of a tensor.
    DataType: kelp_dtype {
        /// 32-bit float.
        Float = KELP_F32,
        /// 16-bit float.
        Half = KELP_F16,
        /// The upper half of a 32-bit float.
        Bf16 = KELP_BF16,
        /// 64-bit float.
        Double = KELP_F64,
        /// Signed 8-bit integer.
        Int8 = KELP_I8,
        /// Signed 16-bit integer.
        Int16 = KELP_I16,
        /// Signed 32-bit integer.
        Int32 = KELP_I32,
        /// Signed 64-bit integer.
        Int64 = KELP_I64,
        /// Unsigned 8-bit integer.
        UInt8 = KELP_U8,
        /// Unsigned 16-bit integer.
        UInt16 = KELP_U16,
        /// Unsigned 32-bit integer.
        UInt32 = KELP_U32,
        /// Unsigned 64-bit integer.
        UInt64 = KELP_U64,
        /// One byte, 0 or 1.
        Bool = KELP_BOOL,
        /// Byte string, a `kelp_string`.
        String = KELP_STRING,
        /// 8-bit float with 4 exponent bits and no infinity.
        Fp8 = KELP_F8E4M3FN,
        /// As `Fp8`, with one zero and one NaN.
        Fp8E4M3Fnuz = KELP_F8E4M3FNUZ,
        /// 8-bit float with 5 exponent bits and IEEE special values.
        Fp8E5M2 = KELP_F8E5M2,
        /// 8-bit float with 5 exponent bits, no infinity, one zero and one NaN.
        Fp8E5M2Fnuz = KELP_F8E5M2FNUZ,
        /// Power of two with 8 exponent bits.
        E8M0 = KELP_F8E8M0,
        /// 6-bit float with 2 exponent bits, one per byte.
        Fp6E2M3 = KELP_F6E2M3,
        /// 6-bit float with 3 exponent bits, one per byte.
        Fp6E3M2 = KELP_F6E3M2,
        /// 4-bit float, packed.
        Fp4 = KELP_F4E2M1,
        /// Signed 4-bit integer, packed.
        Int4 = KELP_I4,
        /// Unsigned 4-bit integer, packed.
        UInt4 = KELP_U4,
        /// Signed 2-bit integer, packed.
        Int2 = KELP_I2,
        /// Unsigned 2-bit integer, packed.
        UInt2 = KELP_U2,
        /// Complex number of two 32-bit floats.
        Complex64 = KELP_C64,
        /// Complex number of two 64-bit floats.
        Complex128 = KELP_C128,
        /// A sequence, an optional or a map.
        List = KELP_LIST,
    }
}

impl DataType {
    /// `None` if the type is unknown.
    pub(crate) fn from_raw(raw: sys::kelp_dtype) -> Option<Self> {
        Self::ALL.iter().copied().find(|each| each.raw() == raw)
    }

    /// Returns the name in Kelp's messages, such as "float32".
    pub fn name(self) -> &'static str {
        // SAFETY: the function returns a static string.
        unsafe { CStr::from_ptr(sys::kelp_dtype_name(self.raw())) }.to_str().unwrap_or_default()
    }
}

mod sealed {
    pub trait Sealed {}
}

/// An element of inputs and weights.
///
/// `u8` stands for every type with one element per byte but `Int8`, and `u16` also for `Half` and `Bf16`.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The type of weights and tensors of this element, unless another one is given.
    const TYPE: DataType;

    /// Returns true if elements of this type can be stored as `Self`.
    fn stores(data_type: DataType) -> bool {
        data_type == Self::TYPE
    }
}

/// An element of outputs: every bit pattern is valid. For outputs of type `Bool`, use `u8`.
pub trait OutputElement: Element {}

macro_rules! elements {
    ($($rust:ty: $type:ident $(| $other:ident)*;)*) => {
        $(
            impl sealed::Sealed for $rust {}
            impl OutputElement for $rust {}
            impl Element for $rust {
                const TYPE: DataType = DataType::$type;
                fn stores(data_type: DataType) -> bool {
                    matches!(data_type, DataType::$type $(| DataType::$other)*)
                }
            }
        )*
    };
}
elements! {
    f32: Float;
    f64: Double;
    i8: Int8;
    i16: Int16;
    i32: Int32;
    i64: Int64;
    u8: UInt8 | Bool | Fp8 | Fp8E4M3Fnuz | Fp8E5M2 | Fp8E5M2Fnuz | E8M0 | Fp6E2M3 | Fp6E3M2;
    u16: UInt16 | Half | Bf16;
    u32: UInt32;
    u64: UInt64;
}
impl sealed::Sealed for bool {}
impl Element for bool {
    const TYPE: DataType = DataType::Bool;
}

/// Checks that elements of a tensor can be stored as `T`.
pub(crate) fn check_type<T: Element>(name: &str, data_type: Option<DataType>) -> Result<DataType> {
    match data_type {
        Some(found) if T::stores(found) => Ok(found),
        Some(found) => invalid(format!(
            "tensor '{name}' has elements of type {}: found a buffer of {}",
            found.name(),
            std::any::type_name::<T>()
        )),
        None => invalid(format!("the element type of tensor '{name}' is not known")),
    }
}

/// Constant data of a layer or of a refit. Clones share the data.
///
/// ```
/// use kelp_engine::Weights;
///
/// let bias = Weights::new(&[0.5f32, -0.5]).named("bias");
/// assert_eq!(bias.len(), 2);
/// assert!(Weights::none().is_empty());
/// ```
#[derive(Clone)]
pub struct Weights {
    data_type: DataType,
    data: *const sys::c_void,
    count: usize,
    name: Option<CString>,
    _owner: Option<Arc<dyn Any + Send + Sync>>,
}

// SAFETY: the data is owned by an Arc, immutable, and its elements are Send and Sync.
unsafe impl Send for Weights {}
unsafe impl Sync for Weights {}

impl Weights {
    /// Creates weights with a copy of the data.
    pub fn new<T: Element>(data: &[T]) -> Self {
        Self::from(data.to_vec())
    }

    /// Creates weights of a type that has no type in Rust, such as `Half`. Fails if `T` does not store it.
    pub fn of_type<T: Element>(data_type: DataType, data: Vec<T>) -> Result<Self> {
        check_type::<T>("weights", Some(data_type))?;
        Ok(Self { data_type, ..Self::from(data) })
    }

    /// Returns the absence of weights, such as those of a bias.
    pub fn none() -> Self {
        Self { data_type: DataType::Float, data: null(), count: 0, name: None, _owner: None }
    }

    /// Sets the name that identifies the weights in a refit.
    ///
    /// # Panics
    ///
    /// If the name contains a NUL byte.
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(CString::new(name).expect("a name of weights has no NUL byte"));
        self
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns true if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The struct borrows from `self`.
    pub(crate) fn raw(&self) -> sys::kelp_weights {
        let dtype = if self.data.is_null() { sys::KELP_DTYPE_INVALID } else { self.data_type.raw() };
        let name = self.name.as_ref().map_or(null(), |name| name.as_ptr());
        sys::kelp_weights { dtype, data: self.data, count: self.count as i64, name }
    }
}

impl<T: Element> From<Vec<T>> for Weights {
    fn from(data: Vec<T>) -> Self {
        let (pointer, count) = (data.as_ptr(), data.len());
        Self { data_type: T::TYPE, data: pointer.cast(), count, name: None, _owner: Some(Arc::new(data)) }
    }
}

impl<T: Element> From<&[T]> for Weights {
    fn from(data: &[T]) -> Self {
        Self::new(data)
    }
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Weights({:?}, {} elements of {:?})", self.name, self.count, self.data_type)
    }
}
