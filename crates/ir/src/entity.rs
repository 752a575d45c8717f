//! Typed indices: a block is not a value is not an instruction.

macro_rules! entity {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            pub fn new(index: usize) -> Self {
                $name(index as u32)
            }
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

entity! {
    /// A basic block of a function.
    Block "b";
    /// An SSA value of a function.
    Value "v";
    /// An instruction of a function.
    InstId "i";
    /// A mutable variable, known only to [`crate::FunctionBuilder`], which turns it into values.
    Var "var";
    /// A function of the module.
    FuncId "fn";
    /// A variable of the module in global, constant or shared memory.
    GlobalId "g";
    /// A variable in a function's local-memory frame.
    SlotId "slot";
    /// A source location of the module.
    LocId "loc";
}
