//! What one lane computes: integer, floating-point, conversion and special-function arithmetic, bit for bit.
