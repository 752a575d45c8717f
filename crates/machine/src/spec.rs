//! How a block's specification is declared: once, as a struct whose comments are the explanations that users read.

use serde::de::DeserializeOwned;
use std::ops::{Bound, RangeBounds};
use toml::Spanned;
use toml::de::{DeValue, Error, ValueDeserializer};

/// One key of a configuration, with its explanation.
#[derive(Clone, Debug)]
pub struct Key {
    /// Names of the tables it is in, and its own, with dots between.
    pub path: String,
    pub explanation: &'static str,
    /// Its type as the specification has it. A table of its own has none.
    pub kind: Option<&'static str>,
    /// Smallest and largest value that its numbers may have.
    pub limits: Option<(u64, u64)>,
    /// Whether a value is of the type.
    pub fits: fn(Spanned<DeValue<'_>>) -> Result<(), Error>,
}

impl Key {
    /// The key is a table of its own.
    pub fn is_table(&self) -> bool {
        self.kind.is_none()
    }

    /// The key's own name, and the path of the table that it is in.
    pub fn split(&self) -> (&str, &str) {
        self.path.rsplit_once('.').map_or((&self.path, ""), |(table, name)| (name, table))
    }
}

/// A specification that can explain its keys, in the order in which they are written.
pub trait Explained {
    fn explain(path: &str, keys: &mut Vec<Key>);
}

/// Declares a specification: keys, then parts that are specifications of their own.
///
/// Reading is strict: unknown keys and missing keys are errors. `key: u32 where 1..=64,` limits the numbers of a key.
#[macro_export]
macro_rules! spec {
    ($(#[doc = $doc:literal])+ pub struct $name:ident {
        $($(#[doc = $kdoc:literal])+ $key:ident: $ty:ty $(where $limits:expr)?,)*
        $(parts { $($(#[doc = $pdoc:literal])+ $part:ident: $pty:ty,)+ })?
    }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[doc = $kdoc])+ pub $key: $ty,)*
            $($($(#[doc = $pdoc])+ pub $part: $pty,)+)?
        }

        impl $crate::spec::Explained for $name {
            fn explain(path: &str, keys: &mut Vec<$crate::spec::Key>) {
                $(keys.push($crate::spec::Key {
                    path: $crate::spec::join(path, stringify!($key)),
                    explanation: concat!($($kdoc),+).trim_ascii(),
                    kind: Some(stringify!($ty)),
                    // There is one or none.
                    limits: <[(u64, u64)]>::first(&[$($crate::spec::limits($limits))?]).copied(),
                    fits: $crate::spec::fits::<$ty>,
                });)*
                $($(
                    let part = $crate::spec::join(path, stringify!($part));
                    keys.push($crate::spec::Key {
                        path: part.clone(),
                        explanation: concat!($($pdoc),+).trim_ascii(),
                        kind: None,
                        limits: None,
                        fits: $crate::spec::fits::<$pty>,
                    });
                    <$pty as $crate::spec::Explained>::explain(&part, keys);
                )+)?
            }
        }
    };
}

/// A key's path below a table's.
pub fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A range's smallest and largest number.
pub fn limits(range: impl RangeBounds<u64>) -> (u64, u64) {
    let low = match range.start_bound() {
        Bound::Included(&n) => n,
        Bound::Excluded(&n) => n.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let high = match range.end_bound() {
        Bound::Included(&n) => n,
        Bound::Excluded(&n) => n.saturating_sub(1),
        Bound::Unbounded => u64::MAX,
    };
    (low, high)
}

/// Whether a value is one of type `T`.
pub fn fits<T: DeserializeOwned>(value: Spanned<DeValue<'_>>) -> Result<(), Error> {
    T::deserialize(ValueDeserializer::from(value)).map(|_| ())
}
