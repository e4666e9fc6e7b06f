// SPDX-License-Identifier: Apache-2.0
//! Element types, and the serialization of strings.
use crate::error::{text, Error};
use crate::sys::*;
use std::fmt;

/// The element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// Invalid.
    Invalid,
    /// One byte, 0 or 1.
    Bool,
    /// [`u8`]
    Uint8,
    /// [`u16`]
    Uint16,
    /// [`u32`]
    Uint32,
    /// [`u64`]
    Uint64,
    /// [`i8`]
    Int8,
    /// [`i16`]
    Int16,
    /// [`i32`]
    Int32,
    /// [`i64`]
    Int64,
    /// IEEE 754 binary16: [`F16`]
    Fp16,
    /// [`f32`]
    Fp32,
    /// [`f64`]
    Fp64,
    /// Byte strings, each with a prefix of its length.
    Bytes,
    /// The upper half of an [`f32`]: [`Bf16`]
    Bf16,
}

const ALL: [DataType; 15] = [
    DataType::Invalid,
    DataType::Bool,
    DataType::Uint8,
    DataType::Uint16,
    DataType::Uint32,
    DataType::Uint64,
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::Fp16,
    DataType::Fp32,
    DataType::Fp64,
    DataType::Bytes,
    DataType::Bf16,
];

const _: () = assert!(TRITONSERVER_TYPE_INVALID == 0 && TRITONSERVER_TYPE_FP32 == 11 && TRITONSERVER_TYPE_BF16 == 14);

impl DataType {
    pub(crate) fn raw(self) -> TRITONSERVER_DataType {
        self as TRITONSERVER_DataType
    }

    pub(crate) fn from_raw(raw: TRITONSERVER_DataType) -> Self {
        *ALL.get(raw as usize).unwrap_or(&Self::Invalid)
    }

    /// Returns the bytes per element; 0 for strings and the invalid type.
    pub fn byte_size(self) -> usize {
        match self {
            Self::Invalid | Self::Bytes => 0,
            Self::Bool | Self::Uint8 | Self::Int8 => 1,
            Self::Uint16 | Self::Int16 | Self::Fp16 | Self::Bf16 => 2,
            Self::Uint32 | Self::Int32 | Self::Fp32 => 4,
            Self::Uint64 | Self::Int64 | Self::Fp64 => 8,
        }
    }

    /// Returns the name in the protocol: "FP32".
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "<invalid>",
            Self::Bool => "BOOL",
            Self::Uint8 => "UINT8",
            Self::Uint16 => "UINT16",
            Self::Uint32 => "UINT32",
            Self::Uint64 => "UINT64",
            Self::Int8 => "INT8",
            Self::Int16 => "INT16",
            Self::Int32 => "INT32",
            Self::Int64 => "INT64",
            Self::Fp16 => "FP16",
            Self::Fp32 => "FP32",
            Self::Fp64 => "FP64",
            Self::Bytes => "BYTES",
            Self::Bf16 => "BF16",
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// The bits of an IEEE 754 binary16 number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct F16(pub u16);

/// The bits of a bfloat16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Bf16(pub u16);

impl From<Bf16> for f32 {
    fn from(value: Bf16) -> f32 {
        f32::from_bits(u32::from(value.0) << 16)
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type for the elements of a tensor.
pub trait Element: Copy + Default + Send + Sync + 'static + sealed::Sealed {
    /// The element type.
    const DATA_TYPE: DataType;

    /// Returns whether the bytes of complete elements are valid values of the type.
    #[doc(hidden)]
    fn valid(_bytes: &[u8]) -> bool {
        true
    }
}

macro_rules! element {
    ($($rust:ty => $name:ident),*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DATA_TYPE: DataType = DataType::$name;
        }
    )*};
}

element!(u8 => Uint8, u16 => Uint16, u32 => Uint32, u64 => Uint64, i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64,
    F16 => Fp16, f32 => Fp32, f64 => Fp64, Bf16 => Bf16);

impl sealed::Sealed for bool {}
impl Element for bool {
    const DATA_TYPE: DataType = DataType::Bool;

    fn valid(bytes: &[u8]) -> bool {
        bytes.iter().all(|&byte| byte <= 1)
    }
}

/// Returns the number of elements of a shape.
pub(crate) fn elements(shape: &[i64]) -> Result<usize, Error> {
    shape
        .iter()
        .try_fold(1usize, |product, &extent| product.checked_mul(usize::try_from(extent).ok()?))
        .ok_or_else(|| Error::invalid(format!("invalid tensor shape {shape:?}")))
}

/// Serializes strings: each with a prefix of its length in 4 bytes, little-endian.
///
/// ```
/// let bytes = kelp_backend::encode_strings(["one", "größer"]).unwrap();
/// assert_eq!(bytes.len(), 4 + 3 + 4 + 8);
/// assert_eq!(kelp_backend::decode_strings(&bytes).unwrap(), [b"one".as_slice(), "größer".as_bytes()]);
/// ```
pub fn encode_strings<S: AsRef<[u8]>>(strings: impl IntoIterator<Item = S>) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    for string in strings {
        let bytes = string.as_ref();
        let length = u32::try_from(bytes.len()).map_err(|_| Error::invalid("a string is longer than 4 GB"))?;
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(bytes);
    }
    Ok(out)
}

/// Decodes the strings of [`encode_strings`]. INVALID_ARG if the bytes are truncated.
pub fn decode_strings(mut bytes: &[u8]) -> Result<Vec<&[u8]>, Error> {
    let mut out = Vec::new();
    let cut = || Error::invalid("the last string is truncated");
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
        let length = u32::from_le_bytes(*length) as usize;
        out.push(rest.get(..length).ok_or_else(cut)?);
        bytes = &rest[length..];
    }
    Ok(out)
}

/// The value of a parameter of a request or a response.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// A string.
    Text(String),
    /// An integer.
    Int(i64),
    /// A boolean.
    Bool(bool),
    /// A number.
    Double(f64),
}

impl Parameter {
    /// Copies a value of the C interface.
    ///
    /// # Safety
    /// `value` has the type `kind`.
    pub(crate) unsafe fn read(kind: TRITONSERVER_ParameterType, value: *const c_void) -> Result<Self, Error> {
        // SAFETY: as above.
        unsafe {
            Ok(match kind {
                TRITONSERVER_PARAMETER_STRING => Self::Text(text(value.cast())?.to_string()),
                TRITONSERVER_PARAMETER_INT => Self::Int(value.cast::<i64>().read_unaligned()),
                TRITONSERVER_PARAMETER_BOOL => Self::Bool(value.cast::<u8>().read() != 0),
                TRITONSERVER_PARAMETER_DOUBLE => Self::Double(value.cast::<f64>().read_unaligned()),
                _ => return Err(Error::unsupported("unknown type of a parameter")),
            })
        }
    }
}

impl From<&str> for Parameter {
    fn from(value: &str) -> Self {
        Self::Text(value.to_string())
    }
}

impl From<String> for Parameter {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<i64> for Parameter {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for Parameter {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Parameter {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

/// A serialized tensor.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    /// "input" or "output"
    pub what: &'a str,
    pub name: &'a str,
    pub datatype: DataType,
    pub shape: &'a [i64],
}

impl<'a> View<'a> {
    fn wrong(&self, text: impl fmt::Display) -> Error {
        Error::invalid(format!("{} '{}' {text}", self.what, self.name))
    }

    pub fn check_type(&self, expected: DataType) -> Result<(), Error> {
        if self.datatype == expected {
            return Ok(());
        }
        Err(self.wrong(format_args!("is {}, expected {expected}", self.datatype)))
    }

    fn count(&self) -> Result<usize, Error> {
        elements(self.shape).map_err(|_| self.wrong(format_args!("has shape {:?}", self.shape)))
    }

    /// Returns the aligned bytes as elements.
    pub fn slice<'d, T: Element>(&self, bytes: &'d [u8]) -> Result<&'d [T], Error> {
        self.check_type(T::DATA_TYPE)?;
        let count = self.count()?;
        if count.checked_mul(std::mem::size_of::<T>()) != Some(bytes.len()) {
            return Err(self.wrong(format_args!("of shape {:?} has {} bytes", self.shape, bytes.len())));
        }
        if !T::valid(bytes) {
            return Err(self.wrong(format_args!("has bytes that are not valid {}", T::DATA_TYPE)));
        }
        if count == 0 {
            return Ok(&[]);
        }
        assert!(bytes.as_ptr() as usize % std::mem::align_of::<T>() == 0);
        // SAFETY: size and alignment are those of `count` elements, and all of them are values of the type.
        Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), count) })
    }

    pub fn strings<'d>(&self, bytes: &'d [u8]) -> Result<Vec<&'d [u8]>, Error> {
        self.check_type(DataType::Bytes)?;
        let strings =
            decode_strings(bytes).map_err(|error| self.wrong(format_args!("is not a valid tensor: {error}")))?;
        if strings.len() != self.count()? {
            return Err(self.wrong(format_args!("of shape {:?} has {} strings", self.shape, strings.len())));
        }
        Ok(strings)
    }

    pub fn first_string(&self, bytes: &[u8]) -> Result<String, Error> {
        let first = *self.strings(bytes)?.first().ok_or_else(|| self.wrong("is empty"))?;
        String::from_utf8(first.to_vec()).map_err(|_| self.wrong("is not UTF-8"))
    }

    pub fn first<T: Element>(&self, bytes: &[u8]) -> Result<T, Error> {
        self.slice(bytes)?.first().copied().ok_or_else(|| self.wrong("is empty"))
    }

    #[cfg(feature = "ndarray")]
    pub fn array<'d, T: Element, const N: usize>(
        &self,
        bytes: &'d [u8],
    ) -> Result<ndarray::ArrayView<'d, T, ndarray::Dim<[usize; N]>>, Error>
    where
        [usize; N]: ndarray::IntoDimension<Dim = ndarray::Dim<[usize; N]>>,
        ndarray::Dim<[usize; N]>: ndarray::Dimension,
    {
        let data = self.slice::<T>(bytes)?;
        let wrong = || self.wrong(format_args!("has shape {:?}, expected {N} dimensions", self.shape));
        let shape: Vec<usize> = self.shape.iter().map(|&extent| extent as usize).collect();
        let shape: [usize; N] = shape.try_into().map_err(|_| wrong())?;
        let dimension = ndarray::IntoDimension::into_dimension(shape);
        ndarray::ArrayView::from_shape(dimension, data).map_err(|_| wrong())
    }
}

/// Memory with an alignment for every element type.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; 64]);

/// Allocates zeroed lines with at least this many bytes.
pub(crate) fn lines(size: usize) -> Box<[Line]> {
    vec![Line([0; 64]); size.div_ceil(64)].into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        assert_eq!(elements(&[]).unwrap(), 1);
        assert_eq!(elements(&[2, 0, 3]).unwrap(), 0);
        for shape in [[-1, 2, 1], [i64::MAX, i64::MAX, 4]] {
            assert!(elements(&shape).is_err());
        }
    }

    #[test]
    fn cut_strings() {
        for bytes in [&[1, 0, 0][..], &[1, 0, 0, 0], &[0, 0, 0, 0, 2, 0, 0, 0, 1]] {
            assert!(decode_strings(bytes).is_err());
        }
        assert_eq!(decode_strings(&[]).unwrap().len(), 0);
    }

    #[test]
    fn views() {
        let view = View { what: "input", name: "X", datatype: DataType::Bool, shape: &[2] };
        assert_eq!(view.slice::<bool>(&[0, 1]).unwrap(), [false, true]);
        assert_eq!(view.slice::<bool>(&[0, 2]).unwrap_err().to_string(), "input 'X' has bytes that are not valid BOOL");
        assert_eq!(view.slice::<bool>(&[0]).unwrap_err().to_string(), "input 'X' of shape [2] has 1 bytes");
        assert_eq!(view.slice::<u8>(&[0, 1]).unwrap_err().to_string(), "input 'X' is BOOL, expected UINT8");
    }
}
