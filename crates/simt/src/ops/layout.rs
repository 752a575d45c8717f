//! Loads from and stores to shared memory whose lanes lie as they did before: most instructions are executed again and
//! again with addresses that differ by where lane 0 is, and nothing has to be found out about them a second time.

use super::memory::{
    B32, B64, B128, SHARED, displacement, fill_half, gather, load_all, read_word, store_all, store_lane,
};
use crate::lanes::{FULL, Lanes, Row};
use crate::uop::{ROW, Uop};
use isa::Op;

/// How lanes lie: what can be done for many at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Consecutive,
    Same,
    /// Each half consecutive or at one address, which it is; the second half begins so far from lane 0.
    Halves([bool; 2], u32),
    Any,
}

/// The lanes of an access to shared memory by all lanes of a warp, as lane 0 sees them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(align(64))]
pub struct Layout {
    /// How far each lane is from lane 0.
    from: Row,
    /// Bytes a lane; 0 where no access is known.
    size: u32,
    /// How far the lowest lane is below lane 0, and the bytes from there to the end of the highest.
    below: u32,
    span: u32,
    how: How,
    /// For who uses it: passes through the banks, and those of an access without conflicts. They follow from the layout.
    pub passes: (u32, u32),
}

impl Default for Layout {
    fn default() -> Layout {
        Layout { from: [0; 32], size: 0, below: 0, span: 0, how: How::Any, passes: (1, 1) }
    }
}

/// [`step`], compiled for a level.
///
/// # Safety
/// The lanes are bound, the instruction is theirs, and the host has the level.
pub(crate) type Step = unsafe fn(&mut Lanes, &Uop, &Layout) -> bool;

impl Layout {
    /// Takes over how the lanes of an instruction lie that all of them will execute; false if that cannot be kept.
    ///
    /// # Safety
    /// The lanes are bound, and the instruction is theirs.
    pub(crate) unsafe fn learn(&mut self, l: &Lanes, u: &Uop) -> bool {
        self.size = 0;
        if !matches!(u.op, Op::Lds | Op::Sts) || !matches!(u.aux, 4 | 8 | 16) || l.mask(u) != FULL {
            return false;
        }
        let size = u.aux;
        // SAFETY: the address row exists.
        let low = unsafe { &*l.row(u.a) };
        let (mut lowest, mut highest, mut all) = (0i32, 0i32, 0);
        for i in 0..32 {
            self.from[i] = low[i].wrapping_sub(low[0]);
            lowest = lowest.min(self.from[i] as i32);
            highest = highest.max(self.from[i] as i32);
            all |= self.from[i];
        }
        // Shared memory is much smaller than this: nothing wraps around.
        if all & (size - 1) != 0 || lowest < -(1 << 24) || highest > 1 << 24 {
            return false;
        }
        (self.below, self.span) = (lowest.unsigned_abs(), lowest.unsigned_abs() + highest as u32 + size);
        let half = |h: usize| {
            let base = self.from[16 * h];
            let lanes = self.from[16 * h..16 * h + 16].iter();
            let is_same = lanes.clone().all(|&f| f == base);
            let is_consecutive = lanes.zip(0u32..).all(|(&f, i)| f == base.wrapping_add(i * size));
            (is_same || is_consecutive).then_some(is_same)
        };
        self.how = match (half(0), half(1), self.from[16]) {
            (Some(false), Some(false), second) if second == 16 * size => How::Consecutive,
            (Some(true), Some(true), 0) => How::Same,
            (Some(first), Some(other), second) => How::Halves([first, other], second),
            _ => How::Any,
        };
        self.size = size;
        true
    }
}

/// Executes an instruction if its lanes lie as in the layout and within shared memory; else nothing happens.
///
/// # Safety
/// As [`Step`].
#[inline(always)]
pub(crate) unsafe fn step(l: &mut Lanes, u: &Uop, layout: &Layout) -> bool {
    if !matches!(u.op, Op::Lds | Op::Sts) || layout.size != u.aux || l.mask(u) != FULL {
        return false;
    }
    // SAFETY: the address row exists.
    let (low, add) = unsafe { (&*l.row(u.a), displacement(l, u, SHARED) as u32) };
    let first = low[0];
    let mut differ = 0;
    for i in 0..32 {
        differ |= low[i].wrapping_sub(first) ^ layout.from[i];
    }
    let at = first.wrapping_add(add);
    let start = at.wrapping_sub(layout.below);
    if differ != 0
        || at & (layout.size - 1) != 0
        || u64::from(start) + u64::from(layout.span) > u64::from(l.shared_bytes)
    {
        return false;
    }
    // SAFETY: all lanes are aligned and within bounds.
    unsafe {
        let p = l.shared.add(start as usize);
        match (u.op == Op::Lds, layout.size) {
            (true, 4) => load::<B32>(l, u, p, layout),
            (true, 8) => load::<B64>(l, u, p, layout),
            (true, _) => load::<B128>(l, u, p, layout),
            (false, 4) => store::<B32>(l, u, p, layout),
            (false, 8) => store::<B64>(l, u, p, layout),
            (false, _) => store::<B128>(l, u, p, layout),
        }
    }
    true
}

/// # Safety
/// As [`Step`]; `p` is the lowest lane's place, and all lanes' bytes are there.
#[inline(always)]
unsafe fn load<const W: u32>(l: &mut Lanes, u: &Uop, p: *mut u8, layout: &Layout) {
    let below = layout.below as usize;
    // SAFETY: the caller's promise.
    unsafe {
        match layout.how {
            How::Consecutive => load_all::<W>(l, u, p),
            How::Same => {
                for k in 0..layout.size / 4 {
                    *l.row(u.d + k * ROW) = [read_word::<W>(p, k as usize); 32];
                }
            }
            How::Halves(same, second) => {
                let first = p.add(below);
                let places = [first, first.offset(second as i32 as isize)];
                for h in 0..2 {
                    if same[h] {
                        fill_half::<W, true>(l, u, h, places[h]);
                    } else {
                        fill_half::<W, false>(l, u, h, places[h]);
                    }
                }
            }
            How::Any => {
                let mut from = [0; 32];
                for i in 0..32 {
                    from[i] = layout.from[i].wrapping_add(layout.below);
                }
                gather::<W>(l, u, FULL, p, &from);
            }
        }
    }
}

/// Lanes store in ascending order.
///
/// # Safety
/// As [`load`].
#[inline(always)]
unsafe fn store<const W: u32>(l: &Lanes, u: &Uop, p: *mut u8, layout: &Layout) {
    // SAFETY: the caller's promise.
    unsafe {
        if layout.how == How::Consecutive {
            return store_all::<W>(l, u, p);
        }
        for i in 0..32 {
            let from = layout.from[i as usize].wrapping_add(layout.below);
            store_lane::<W>(l, u, i, p.add(from as usize));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::PT;
    use crate::ops::memory;
    use crate::uop::Flow;
    use isa::Inst;
    use isa::field::Width;
    use proptest::prelude::*;

    /// Rows: addresses, zeros, four that are stored, four that are loaded.
    const ROWS: usize = 10;
    const SHARED_BYTES: usize = 4096;

    fn uop(op: Op, width: Width) -> Uop {
        let mut u = Uop {
            handler: |_, _| Flow::Fault,
            d: 6 * ROW,
            a: 0,
            b: ROW,
            c: 2 * ROW,
            e: 0,
            u: ROW,
            imm: 0,
            aux: 0,
            guard: PT,
            ps: [PT; 3],
            pd: [PT; 2],
            op,
            soft: false,
            hint: 0,
        };
        if let Some(levels) = memory::decode(&Inst::new(op).with(width), &mut u) {
            u.handler = levels[0];
        }
        u
    }

    /// Files and shared memory of two warps alike.
    struct Warps {
        files: [Vec<Row>; 2],
        shared: [Vec<u128>; 2],
    }

    impl Warps {
        fn lanes(&mut self, n: usize) -> Lanes {
            let mut l = Lanes::unbound();
            l.file = self.files[n].as_mut_ptr().cast();
            l.shared = self.shared[n].as_mut_ptr().cast();
            l.shared_bytes = SHARED_BYTES as u32;
            l.active = FULL;
            l
        }
    }

    /// Ways in which lanes can lie, in units of their size.
    fn shapes() -> impl Strategy<Value = [i32; 32]> {
        prop_oneof![
            Just(std::array::from_fn(|i| i as i32)),
            Just([0; 32]),
            (-40i32..40).prop_map(|second| std::array::from_fn(|i| if i < 16 { 0 } else { second })),
            (-40i32..40).prop_map(|second| std::array::from_fn(|i| i as i32 % 16 + second * (i as i32 / 16))),
            (-3i32..4).prop_map(|step| std::array::from_fn(|i| i as i32 * step)),
            proptest::array::uniform32(-40i32..40),
        ]
    }

    proptest! {
        #[test]
        fn known_layouts_do_what_the_instruction_does(
            shape in shapes(),
            base in 0u32..300,
            other in 0u32..300,
            is_load: bool,
            width in prop_oneof![Just(Width::B32), Just(Width::B64), Just(Width::B128)],
        ) {
            let u = uop(if is_load { Op::Lds } else { Op::Sts }, width);
            let row = |base: u32| -> Row {
                std::array::from_fn(|i| base.wrapping_add(shape[i] as u32).wrapping_mul(u.aux))
            };
            let mut file = vec![[0; 32]; ROWS];
            for (n, row) in file.iter_mut().enumerate().skip(2) {
                *row = std::array::from_fn(|i| (n * 100 + i) as u32);
            }
            file[0] = row(base);
            let shared: Vec<u128> = (0..SHARED_BYTES as u128 / 16).map(|n| n.wrapping_mul(0x1234_5678_9abc_def1)).collect();
            let mut warps = Warps { files: [file.clone(), file], shared: [shared.clone(), shared] };
            let mut layout = Layout::default();
            // SAFETY: the files have the rows, and shared memory its bytes.
            unsafe {
                prop_assert!(layout.learn(&warps.lanes(0), &u));
                warps.files.iter_mut().for_each(|f| f[0] = row(other));
                let stepped = step(&mut warps.lanes(0), &u, &layout);
                let flow = (u.handler)(&mut warps.lanes(1), &u);
                // What is out of bounds is the instruction's own matter.
                prop_assert_eq!(stepped, flow == Flow::Next);
            }
            warps.files[0][0][5] ^= u.aux;
            // SAFETY: as above.
            let stepped = unsafe { step(&mut warps.lanes(0), &u, &layout) };
            prop_assert!(!stepped);
            warps.files[0][0][5] ^= u.aux;
            let all = warps.shared[0] == warps.shared[1] && warps.files[0] == warps.files[1];
            let out_of_bounds = warps.files[1][0].iter().any(|&a| a as usize + u.aux as usize > SHARED_BYTES);
            prop_assert!(all || out_of_bounds);
        }
    }
}
