//! Facts about a function that passes and the back end ask for.

pub mod divergence;
pub mod domtree;
pub mod loops;
pub mod postdom;
pub mod regions;

pub use divergence::Divergence;
pub use domtree::DomTree;
pub use loops::{Loop, LoopId, Loops};
pub use postdom::PostDominators;
pub use regions::Regions;
