//! Shifts, bit fields, counts, permutes and logic on bit patterns.

/// What a shift or field amount beyond the width means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Amount {
    /// It counts as the width.
    Clamp,
    /// Its low bits count.
    Wrap,
}

/// Selection mode of [`prmt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prmt {
    /// Four selectors of four bits each; bit 3 replicates the byte's sign.
    Index,
    ForwardFour,
    BackwardFour,
    ReplicateByte,
    EdgeClampLeft,
    EdgeClampRight,
    ReplicateHalf,
}

#[inline(always)]
pub fn popc(a: u32) -> u32 {
    a.count_ones()
}

#[inline(always)]
pub fn popc64(a: u64) -> u32 {
    a.count_ones()
}

#[inline(always)]
pub fn clz(a: u32) -> u32 {
    a.leading_zeros()
}

#[inline(always)]
pub fn clz64(a: u64) -> u32 {
    a.leading_zeros()
}

#[inline(always)]
pub fn brev(a: u32) -> u32 {
    a.reverse_bits()
}

#[inline(always)]
pub fn brev64(a: u64) -> u64 {
    a.reverse_bits()
}

/// One when the operand is zero.
#[inline(always)]
pub fn cnot(a: u32) -> u32 {
    (a == 0) as u32
}

#[inline(always)]
pub fn cnot64(a: u64) -> u64 {
    (a == 0) as u64
}

/// Position of the most significant bit that differs from the sign (or is one, unsigned), or the left shift that
/// brings it to the top; all ones when there is none.
#[inline(always)]
pub fn bfind(a: u32, signed: bool, shift_amount: bool) -> u32 {
    let a = if signed & (a >> 31 != 0) { !a } else { a };
    let zeros = a.leading_zeros();
    if a == 0 {
        u32::MAX
    } else if shift_amount {
        zeros
    } else {
        31 - zeros
    }
}

#[inline(always)]
pub fn bfind64(a: u64, signed: bool, shift_amount: bool) -> u32 {
    let a = if signed & (a >> 63 != 0) { !a } else { a };
    let zeros = a.leading_zeros();
    if a == 0 {
        u32::MAX
    } else if shift_amount {
        zeros
    } else {
        63 - zeros
    }
}

/// Left shift; amounts of 32 and more give zero.
#[inline(always)]
pub fn shl(a: u32, b: u32) -> u32 {
    if b < 32 { a << (b & 31) } else { 0 }
}

#[inline(always)]
pub fn shr_u(a: u32, b: u32) -> u32 {
    if b < 32 { a >> (b & 31) } else { 0 }
}

/// Arithmetic right shift; amounts of 32 and more replicate the sign.
#[inline(always)]
pub fn shr_s(a: u32, b: u32) -> u32 {
    ((a as i32) >> b.min(31)) as u32
}

#[inline(always)]
pub fn shl64(a: u64, b: u32) -> u64 {
    if b < 64 { a << (b & 63) } else { 0 }
}

#[inline(always)]
pub fn shr64_u(a: u64, b: u32) -> u64 {
    if b < 64 { a >> (b & 63) } else { 0 }
}

#[inline(always)]
pub fn shr64_s(a: u64, b: u32) -> u64 {
    ((a as i64) >> b.min(63)) as u64
}

#[inline(always)]
fn funnel_amount(amount: u32, mode: Amount) -> u32 {
    match mode {
        Amount::Clamp => amount.min(32),
        Amount::Wrap => amount & 31,
    }
}

/// The high word of `high:low` shifted left.
#[inline(always)]
pub fn shf_l(low: u32, high: u32, amount: u32, mode: Amount) -> u32 {
    let pair = (high as u64) << 32 | low as u64;
    ((pair << funnel_amount(amount, mode)) >> 32) as u32
}

/// The low word of `high:low` shifted right.
#[inline(always)]
pub fn shf_r(low: u32, high: u32, amount: u32, mode: Amount) -> u32 {
    let pair = (high as u64) << 32 | low as u64;
    (pair >> funnel_amount(amount, mode)) as u32
}

/// Bit-field extract; position and length are 8-bit values.
#[inline(always)]
pub fn bfe(a: u32, position: u32, length: u32, signed: bool) -> u32 {
    let (position, length) = (position & 0xff, length & 0xff);
    let last = (position + length).clamp(1, 32) - 1;
    let sign = signed & (length != 0) & (a >> last & 1 != 0);
    let present = 32u32.saturating_sub(position).min(length);
    let mask = ((1u64 << present) - 1) as u32;
    let field = shr_u(a, position) & mask;
    field | if sign { !mask } else { 0 }
}

/// Bit-field extract on 64 bits; position and length count in full.
#[inline(always)]
pub fn bfe64(a: u64, position: u32, length: u32, signed: bool) -> u64 {
    let (position, length) = (position.min(64), length.min(64));
    let last = (position + length).clamp(1, 64) - 1;
    let sign = signed & (length != 0) & (a >> last & 1 != 0);
    let present = 64u32.saturating_sub(position).min(length);
    let mask = if present == 64 { u64::MAX } else { (1u64 << (present & 63)) - 1 };
    let field = shr64_u(a, position) & mask;
    field | if sign { !mask } else { 0 }
}

/// Inserts the low `length` bits of `a` into `b` at `position`, both 8-bit values.
#[inline(always)]
pub fn bfi(a: u32, b: u32, position: u32, length: u32) -> u32 {
    let (position, length) = (position & 0xff, length & 0xff);
    let field = ((1u64 << length.min(32)) - 1) as u32;
    let mask = shl(field, position);
    (b & !mask) | (shl(a, position) & mask)
}

/// Bit-field insert on 64 bits; position and length count in full.
#[inline(always)]
pub fn bfi64(a: u64, b: u64, position: u32, length: u32) -> u64 {
    let field = if length >= 64 { u64::MAX } else { (1u64 << (length & 63)) - 1 };
    let mask = shl64(field, position);
    (b & !mask) | (shl64(a, position) & mask)
}

/// Extends the low `length` bits of `a`.
#[inline(always)]
pub fn szext(a: u32, length: u32, mode: Amount, signed: bool) -> u32 {
    let whole = matches!(mode, Amount::Clamp) & (length >= 32);
    let length = length & 31;
    let mask = if whole { 0 } else { u32::MAX << length };
    let sign = signed & !whole & (length != 0) & (a >> (length.wrapping_sub(1) & 31) & 1 != 0);
    (a & !mask) | if sign { mask } else { 0 }
}

/// A mask of `length` ones from `position`.
#[inline(always)]
pub fn bmsk(position: u32, length: u32, mode: Amount) -> u32 {
    let (position, length) = match mode {
        Amount::Clamp => (position, length.min(32)),
        Amount::Wrap => (position & 31, length & 31),
    };
    shl(((1u64 << length) - 1) as u32, position)
}

/// Position of the n-th set bit from `base`, upward or downward as the sign of `offset` says; all ones if there is none.
pub fn fns(mask: u32, base: u32, offset: u32) -> u32 {
    let offset = offset as i32;
    // The machine's sequence negates the offset; the one number without a negative ends it at once.
    if offset == i32::MIN {
        return 0;
    }
    if base > 31 {
        return u32::MAX;
    }
    if offset == 0 {
        return if mask >> base & 1 == 1 { base } else { u32::MAX };
    }
    let mut wanted = offset.unsigned_abs();
    let mut position = base as i32;
    while (0..32).contains(&position) {
        wanted -= mask >> position & 1;
        if wanted == 0 {
            return position as u32;
        }
        position += offset.signum();
    }
    u32::MAX
}

/// Byte permute of the eight bytes `b:a`.
#[inline(always)]
pub fn prmt(a: u32, b: u32, selector: u32, mode: Prmt) -> u32 {
    let s = selector & 3;
    let selectors = match mode {
        Prmt::Index => selector,
        Prmt::ForwardFour => 0x3210 + 0x1111 * s,
        Prmt::BackwardFour => 0x5670u32.wrapping_add(0x1111 * s) & 0x7777,
        Prmt::ReplicateByte => 0x1111 * s,
        Prmt::EdgeClampLeft => clamp_left(s),
        Prmt::EdgeClampRight => clamp_right(s),
        Prmt::ReplicateHalf => 0x1010 + 0x2222 * (s & 1),
    };
    let mut r = 0;
    for i in 0..4 {
        let pick = selectors >> (4 * i) & 0xf;
        let word = if pick & 4 != 0 { b } else { a };
        // The byte at the top, so that an arithmetic shift spreads its sign.
        let byte = word << (24 - 8 * (pick & 3));
        let byte = if pick & 8 != 0 { (byte as i32 >> 31) as u32 } else { byte };
        r |= (byte >> 24) << (8 * i);
    }
    r
}

/// Positions below the edge take the edge's byte.
#[inline(always)]
fn clamp_left(s: u32) -> u32 {
    match s {
        0 => 0x3210,
        1 => 0x3211,
        2 => 0x3222,
        _ => 0x3333,
    }
}

/// Positions above the edge take the edge's byte.
#[inline(always)]
fn clamp_right(s: u32) -> u32 {
    match s {
        0 => 0x0000,
        1 => 0x1110,
        2 => 0x2210,
        _ => 0x3210,
    }
}

/// Any function of three bits, by its truth table.
#[inline(always)]
pub fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    let pick = |i: u32| if table >> i & 1 != 0 { u32::MAX } else { 0 };
    let by_c = |i: u32| (pick(i) & !c) | (pick(i + 1) & c);
    let by_b = |i: u32| (by_c(i) & !b) | (by_c(i + 2) & b);
    (by_b(0) & !a) | (by_b(4) & a)
}
