//! How a block's specification is declared: once, as a struct whose comments are the explanations that users read.

/// One key of a configuration, with its explanation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// Names of the tables it is in, and its own, with dots between.
    pub path: String,
    pub explanation: &'static str,
    /// The key is a table of its own.
    pub is_table: bool,
}

/// A specification that can explain its keys, in the order in which they are written.
pub trait Explained {
    fn explain(path: &str, keys: &mut Vec<Key>);
}

/// Declares a specification: keys, then parts that are specifications of their own.
///
/// Reading is strict: unknown keys and missing keys are errors.
#[macro_export]
macro_rules! spec {
    ($(#[doc = $doc:literal])+ pub struct $name:ident {
        $($(#[doc = $kdoc:literal])+ $key:ident: $ty:ty,)*
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
            #[allow(unused_variables, clippy::ptr_arg)]
            fn explain(path: &str, keys: &mut Vec<$crate::spec::Key>) {
                $(keys.push($crate::spec::Key {
                    path: $crate::spec::join(path, stringify!($key)),
                    explanation: concat!($($kdoc),+).trim_ascii(),
                    is_table: false,
                });)*
                $($(
                    let part = $crate::spec::join(path, stringify!($part));
                    keys.push($crate::spec::Key {
                        path: part.clone(),
                        explanation: concat!($($pdoc),+).trim_ascii(),
                        is_table: true,
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
