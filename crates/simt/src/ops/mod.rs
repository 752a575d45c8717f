//! Handlers: one body an operation, compiled for every level (see [`crate::level`]).
//!
//! Each file has a `decode` that picks the body for an instruction and sets `Uop::aux` as that body wants it. Bodies
//! that are often used are specialised on their modifiers by constants; the others look at `aux` once an instruction.

pub mod atomic;
pub mod collective;
pub mod control;
pub mod convert;
pub mod float;
pub mod half;
pub mod integer;
pub mod layout;
pub(crate) mod logged;
pub mod memory;
pub mod modify;
pub mod moves;
pub(crate) mod pattern;
pub mod system;
pub mod uniform;

/// Declares bodies: `name<constants> |lanes, uop| expression`; the level is `L`.
macro_rules! bodies {
    ($($(#[$doc:meta])* $name:ident $(<$(const $p:ident: $t:ty),*>)? |$l:ident, $u:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name $(<$(const $p: $t),*>)?;

        impl $(<$(const $p: $t),*>)? $crate::level::Exec for $name $(<$($p),*>)? {
            #[inline(always)]
            unsafe fn run<L: $crate::level::Level>(
                $l: &mut $crate::lanes::Lanes,
                $u: &$crate::uop::Uop,
            ) -> $crate::uop::Flow {
                // SAFETY: rows, memories and level are the caller's promise (see `Handler`).
                // Bodies that call nothing unsafe share the macro with those that do.
                #[allow(unused_unsafe)]
                unsafe { $body }
            }
        }
    )*};
}

/// The levels of the body with this constant: `pick!(value, Name, [0 1 2])`. Other values give the first.
macro_rules! pick {
    ($value:expr, $name:ident, [$first:literal $($n:literal)*]) => {
        match $value {
            $($n => $crate::level::levels::<$name<$n>>(),)*
            _ => $crate::level::levels::<$name<$first>>(),
        }
    };
}

pub(crate) use {bodies, pick};
