//! Typed SSA over a control-flow graph, neutral to front ends.
