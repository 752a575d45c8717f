//! PTX text to a syntax tree with spans, and from there to ir.
