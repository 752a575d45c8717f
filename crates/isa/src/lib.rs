//! The machine's instruction table, binary encoding, text form and program image.
