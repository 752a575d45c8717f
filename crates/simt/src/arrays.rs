//! How saved states are written where serde has no form of its own, or a slow one: long arrays, bytes, fields of
//! instructions.
//!
//! An array is saved as a list, and a list of another length is refused.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub fn serialize<S: Serializer, T: Serialize, const N: usize>(
    all: &[T; N],
    to: S,
) -> Result<S::Ok, S::Error> {
    all.as_slice().serialize(to)
}

pub fn deserialize<'d, D: Deserializer<'d>, T: Deserialize<'d>, const N: usize>(
    from: D,
) -> Result<[T; N], D::Error> {
    let all = Vec::deserialize(from)?;
    all.try_into().map_err(|all: Vec<T>| D::Error::invalid_length(all.len(), &"the array's own length"))
}

/// The same for arrays that stand for themselves.
pub mod boxed {
    use super::*;

    pub fn serialize<S: Serializer, T: Serialize, const N: usize>(
        all: &[T; N],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        all.as_slice().serialize(to)
    }

    pub fn deserialize<'d, D: Deserializer<'d>, T: Deserialize<'d>, const N: usize>(
        from: D,
    ) -> Result<Box<[T; N]>, D::Error> {
        let all = Vec::deserialize(from)?;
        all.try_into().map_err(|all: Vec<T>| D::Error::invalid_length(all.len(), &"the array's own length"))
    }
}

/// A field of an instruction as the bits that it has there.
pub mod bits {
    use super::*;
    use isa::field::FieldValue;

    pub fn serialize<S: Serializer, F: FieldValue>(field: &F, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(field.to_bits())
    }

    pub fn deserialize<'d, D: Deserializer<'d>, F: FieldValue>(from: D) -> Result<F, D::Error> {
        u32::deserialize(from).map(F::from_bits)
    }
}

/// Bytes in one piece.
pub mod bytes {
    use super::*;
    use serde::de::Visitor;
    use std::fmt;

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
        }
        from.deserialize_bytes(Bytes)
    }
}
