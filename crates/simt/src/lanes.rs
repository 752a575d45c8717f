//! The lanes of a warp as handlers see them: rows of registers, predicates, memories; and the loops over lanes.
//!
//! Handlers read whole rows, compute into a local array and store it: the array keeps the compiler from having to
//! prove that source and destination rows do not overlap, and it vanishes into vector registers.

use crate::cta::CtaState;
use crate::fault::{Access, FaultKind};
use crate::launch::Launch;
use crate::level::Level;
use crate::local::Local;
use crate::log::Log;
use crate::memory::{Bounds, Memory};
use crate::program::{Banks, Kernel};
use crate::uop::{Flow, ROW, Uop};
use crate::watched::Observer;

/// All lanes.
pub const FULL: u32 = u32::MAX;
/// One value a lane.
pub type Row = [u32; 32];

/// Predicates live at 0 to 7 (PT, always true, at 7), their complements eight above; writes to PT go to 16.
pub const PT: u8 = 7;
pub const COMPLEMENT: u8 = 8;
pub const DROPPED: u8 = 16;

/// What is bound to a warp while it runs. What every instruction looks at comes first, in one line of the host's cache; then
/// predicates, all but the place of those that nobody reads in one line, too.
#[repr(C, align(64))]
pub struct Lanes {
    /// The rows.
    pub(crate) file: *mut u8,
    /// Lanes of the split that runs.
    pub active: u32,
    /// Lanes that have not ended.
    pub live: u32,
    /// Where a jump goes.
    pub next: u32,
    /// The warp's place in its CTA.
    pub warp: u32,
    /// Host address of device address zero.
    pub(crate) global: *mut u8,
    pub(crate) bounds: *mut Bounds,
    pub(crate) shared: *mut u8,
    /// Where stores and atomics go that take effect later; none in functional runs.
    pub(crate) log: *mut Log,
    pub(crate) shared_bytes: u32,
    /// No other SM acts now: what the whole machine shares can be changed.
    pub(crate) alone: bool,
    /// A collective runs with the lanes that came, because the others never will.
    pub(crate) forced: bool,
    /// Other host threads may touch global memory now.
    pub(crate) concurrent: bool,
    pub preds: [u32; 32],
    pub(crate) memory: *const Memory,
    pub(crate) kernel: *const Kernel,
    pub(crate) banks: *const Banks,
    pub(crate) cta: *mut CtaState,
    pub(crate) launch: *const Launch,
    /// Who is told what happens at watched instructions.
    pub(crate) observer: Option<Box<dyn Observer>>,
    pub(crate) local: Local,
    pub fault: Option<(FaultKind, Option<Access>)>,
}

const _: () = assert!(std::mem::offset_of!(Lanes, preds) == 64);

impl Lanes {
    pub fn unbound() -> Lanes {
        Lanes {
            file: std::ptr::null_mut(),
            active: 0,
            live: 0,
            preds: Lanes::clear_preds(),
            next: 0,
            global: std::ptr::null_mut(),
            bounds: std::ptr::null_mut(),
            shared: std::ptr::null_mut(),
            shared_bytes: 0,
            memory: std::ptr::null(),
            kernel: std::ptr::null(),
            banks: std::ptr::null(),
            cta: std::ptr::null_mut(),
            launch: std::ptr::null(),
            local: Local::new(0),
            log: std::ptr::null_mut(),
            alone: true,
            fault: None,
            forced: false,
            concurrent: false,
            warp: 0,
            observer: None,
        }
    }

    /// P0 to P6 false, PT true.
    pub fn clear_preds() -> [u32; 32] {
        let mut preds = [0; 32];
        preds[PT as usize] = FULL;
        for n in COMPLEMENT..PT + COMPLEMENT {
            preds[n as usize] = FULL;
        }
        preds
    }

    /// Whether somebody is told what happens.
    #[inline(always)]
    pub(crate) fn is_observed(&self) -> bool {
        !cfg!(without_optimizer) && self.observer.is_some()
    }

    /// Lanes that execute this instruction.
    #[inline(always)]
    pub fn mask(&self, u: &Uop) -> u32 {
        self.active & self.pred(u.guard)
    }

    #[inline(always)]
    pub fn pred(&self, n: u8) -> u32 {
        self.preds[(n & 31) as usize]
    }

    #[inline(always)]
    pub fn set_pred(&mut self, n: u8, mask: u32, value: u32) {
        let n = (n & 23) as usize;
        let new = (self.preds[n] & !mask) | (value & mask);
        self.preds[n] = new;
        self.preds[n + COMPLEMENT as usize] = !new;
    }

    /// The word of this number among those that loads of constants take.
    ///
    /// # Safety
    /// The launch is bound, and the number is one that the decoder gave.
    #[inline(always)]
    pub(crate) unsafe fn known(&self, n: i32) -> u32 {
        // SAFETY: the launch has a word for every number that its kernel's decoder gave.
        unsafe {
            let launch = &*self.launch;
            *launch.loads.get_unchecked(n as usize)
        }
    }

    /// Reads a row of the file.
    ///
    /// # Safety
    /// `at` is the offset of a row of the bound file.
    #[inline(always)]
    pub unsafe fn row(&self, at: u32) -> *mut Row {
        // SAFETY: the decoder only makes offsets of rows that the file has.
        unsafe { self.file.add(at as usize).cast() }
    }

    /// One lane of a row.
    ///
    /// # Safety
    /// As [`Lanes::row`]; `lane` is below 32.
    #[inline(always)]
    pub unsafe fn lane(&self, at: u32, lane: u32) -> u32 {
        // SAFETY: the row exists and has 32 lanes.
        unsafe { (*self.row(at))[lane as usize & 31] }
    }

    /// One lane of a pair of rows.
    ///
    /// # Safety
    /// As [`Lanes::lane`], for the row that follows too.
    #[inline(always)]
    pub unsafe fn lane64(&self, at: u32, lane: u32) -> u64 {
        // SAFETY: both rows exist.
        unsafe { u64::from(self.lane(at, lane)) | u64::from(self.lane(at + ROW, lane)) << 32 }
    }

    /// # Safety
    /// As [`Lanes::lane`].
    #[inline(always)]
    pub unsafe fn set_lane(&mut self, at: u32, lane: u32, value: u32) {
        // SAFETY: the row exists and has 32 lanes.
        unsafe { (*self.row(at))[lane as usize & 31] = value }
    }

    /// # Safety
    /// As [`Lanes::lane64`].
    #[inline(always)]
    pub unsafe fn set_lane64(&mut self, at: u32, lane: u32, value: u64) {
        // SAFETY: both rows exist.
        unsafe {
            self.set_lane(at, lane, value as u32);
            self.set_lane(at + ROW, lane, (value >> 32) as u32);
        }
    }

    /// Stores a row for the lanes of a mask.
    ///
    /// # Safety
    /// As [`Lanes::row`].
    #[inline(always)]
    pub unsafe fn store(&mut self, at: u32, mask: u32, values: &Row) {
        // SAFETY: the row exists; nothing else refers to it while this borrow of the lanes lasts.
        let d = unsafe { &mut *self.row(at) };
        if mask == FULL {
            *d = *values;
        } else {
            zip::blend(d, mask, values);
        }
    }

    #[inline(always)]
    pub fn fail(&mut self, kind: FaultKind, access: Option<Access>) -> Flow {
        self.fault = Some((kind, access));
        Flow::Fault
    }
}

/// Loops over lanes. The references promise the compiler that the result overlaps no operand, which it needs for
/// vector code.
pub mod zip {
    use super::Row;

    /// The bit of each lane.
    const BITS: Row = {
        let mut bits = [0; 32];
        let mut i = 0;
        while i < 32 {
            bits[i] = 1 << i;
            i += 1;
        }
        bits
    };

    #[inline(always)]
    pub fn one(r: &mut Row, a: &Row, f: impl Fn(u32) -> u32) {
        for i in 0..32 {
            r[i] = f(a[i]);
        }
    }

    #[inline(always)]
    pub fn two(r: &mut Row, a: &Row, b: &Row, f: impl Fn(u32, u32) -> u32) {
        for i in 0..32 {
            r[i] = f(a[i], b[i]);
        }
    }

    #[inline(always)]
    pub fn three(r: &mut Row, a: &Row, b: &Row, c: &Row, f: impl Fn(u32, u32, u32) -> u32) {
        for i in 0..32 {
            r[i] = f(a[i], b[i], c[i]);
        }
    }

    #[inline(always)]
    pub fn four(r: &mut Row, a: &Row, b: &Row, c: &Row, e: &Row, f: impl Fn(u32, u32, u32, u32) -> u32) {
        for i in 0..32 {
            r[i] = f(a[i], b[i], c[i], e[i]);
        }
    }

    #[inline(always)]
    pub fn pair(
        (low, high): (&mut Row, &mut Row),
        (a_low, a_high): (&Row, &Row),
        (b_low, b_high): (&Row, &Row),
        (c_low, c_high): (&Row, &Row),
        f: impl Fn(u64, u64, u64) -> u64,
    ) {
        let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        for i in 0..32 {
            let r = f(join(a_low[i], a_high[i]), join(b_low[i], b_high[i]), join(c_low[i], c_high[i]));
            low[i] = r as u32;
            high[i] = (r >> 32) as u32;
        }
    }

    #[inline(always)]
    pub fn blend(d: &mut Row, mask: u32, values: &Row) {
        // Through a row of its own: written in place, this becomes masked stores, which are slow on many hosts.
        let mut r = [0; 32];
        for i in 0..32 {
            // All ones for a lane of the mask: a select here would become a branch a lane.
            let pick = 0u32.wrapping_sub(u32::from(mask & BITS[i] != 0));
            r[i] = d[i] ^ (d[i] ^ values[i]) & pick;
        }
        *d = r;
    }
}

/// `d = f(a)` for the lanes that execute.
///
/// # Safety
/// As [`crate::uop::Handler`], here and in what follows.
#[inline(always)]
pub unsafe fn map1(l: &mut Lanes, u: &Uop, f: impl Fn(u32) -> u32) -> Flow {
    let m = l.mask(u);
    if m == 0 {
        return Flow::Next;
    }
    let mut r = [0; 32];
    // SAFETY: the rows of a micro-operation exist.
    unsafe {
        zip::one(&mut r, &*l.row(u.a), f);
        l.store(u.d, m, &r);
    }
    Flow::Next
}

/// `d = f(a, b)`.
///
/// # Safety
/// As [`map1`].
#[inline(always)]
pub unsafe fn map2(l: &mut Lanes, u: &Uop, f: impl Fn(u32, u32) -> u32) -> Flow {
    let m = l.mask(u);
    if m == 0 {
        return Flow::Next;
    }
    let mut r = [0; 32];
    // SAFETY: as in `map1`.
    unsafe {
        zip::two(&mut r, &*l.row(u.a), &*l.row(u.b), f);
        l.store(u.d, m, &r);
    }
    Flow::Next
}

/// `d = f(a, b, c)`.
///
/// # Safety
/// As [`map1`].
#[inline(always)]
pub unsafe fn map3(l: &mut Lanes, u: &Uop, f: impl Fn(u32, u32, u32) -> u32) -> Flow {
    let m = l.mask(u);
    if m == 0 {
        return Flow::Next;
    }
    let mut r = [0; 32];
    // SAFETY: as in `map1`.
    unsafe {
        zip::three(&mut r, &*l.row(u.a), &*l.row(u.b), &*l.row(u.c), f);
        l.store(u.d, m, &r);
    }
    Flow::Next
}

/// `d = f(a, b, c, e)`.
///
/// # Safety
/// As [`map1`].
#[inline(always)]
pub unsafe fn map4(l: &mut Lanes, u: &Uop, f: impl Fn(u32, u32, u32, u32) -> u32) -> Flow {
    let m = l.mask(u);
    if m == 0 {
        return Flow::Next;
    }
    let mut r = [0; 32];
    // SAFETY: as in `map1`.
    unsafe {
        zip::four(&mut r, &*l.row(u.a), &*l.row(u.b), &*l.row(u.c), &*l.row(u.e), f);
        l.store(u.d, m, &r);
    }
    Flow::Next
}

/// Stores results, a value a lane.
///
/// # Safety
/// As [`map1`].
#[inline(always)]
pub unsafe fn store32(l: &mut Lanes, u: &Uop, f: impl Fn(usize) -> u32) -> Flow {
    let m = l.mask(u);
    if m == 0 {
        return Flow::Next;
    }
    let mut r = [0; 32];
    for i in 0..32 {
        r[i] = f(i);
    }
    // SAFETY: the rows of a micro-operation exist.
    unsafe { l.store(u.d, m, &r) };
    Flow::Next
}

/// Stores 64-bit results to a pair of rows.
///
/// # Safety
/// As [`map1`].
#[inline(always)]
pub unsafe fn store64(l: &mut Lanes, u: &Uop, f: impl Fn(usize) -> u64) -> Flow {
    let (mut low, mut high) = ([0; 32], [0; 32]);
    for i in 0..32 {
        let r = f(i);
        low[i] = r as u32;
        high[i] = (r >> 32) as u32;
    }
    // SAFETY: the rows of a micro-operation exist.
    unsafe {
        let m = l.mask(u);
        l.store(u.d, m, &low);
        l.store(u.d + ROW, m, &high);
    }
    Flow::Next
}

/// A pair of rows as 64-bit values.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    low: &'a Row,
    high: &'a Row,
}

impl Pair<'_> {
    /// # Safety
    /// Both rows exist and are not written while the pair is used.
    #[inline(always)]
    pub unsafe fn at(l: &Lanes, at: u32) -> Pair<'static> {
        // SAFETY: the caller's promise; the file outlives the handler's run.
        unsafe { Pair { low: &*l.row(at), high: &*l.row(at + ROW) } }
    }

    #[inline(always)]
    pub fn get(&self, i: usize) -> u64 {
        u64::from(self.low[i]) | u64::from(self.high[i]) << 32
    }
}

/// Pair `d = f(a, b, c)`, where the operands are pairs of rows: a row and the one for its high word.
///
/// # Safety
/// As [`map1`].
#[inline(always)]
unsafe fn map_pairs(
    l: &mut Lanes,
    u: &Uop,
    [a, b, c]: [(u32, u32); 3],
    f: impl Fn(u64, u64, u64) -> u64,
) -> Flow {
    let m = l.mask(u);
    if m == 0 {
        return Flow::Next;
    }
    let (mut low, mut high) = ([0; 32], [0; 32]);
    // SAFETY: the rows of a micro-operation exist; results are stored after all reads.
    unsafe {
        let rows = |(low, high)| (&*l.row(low), &*l.row(high));
        zip::pair((&mut low, &mut high), rows(a), rows(b), rows(c), f);
        l.store(u.d, m, &low);
        l.store(u.d + ROW, m, &high);
    }
    Flow::Next
}

/// Pair `d = f(pair a, pair b)`.
///
/// # Safety
/// As [`map1`].
#[inline(always)]
pub unsafe fn map64_2(l: &mut Lanes, u: &Uop, f: impl Fn(u64, u64) -> u64) -> Flow {
    let (a, b) = ((u.a, u.a + ROW), (u.b, u.b + ROW));
    // SAFETY: the caller's promise.
    unsafe { map_pairs(l, u, [a, b, a], |a, b, _| f(a, b)) }
}

/// Pair `d = f(pair a, pair b, pair c)`.
///
/// # Safety
/// As [`map1`].
#[inline(always)]
pub unsafe fn map64_3(l: &mut Lanes, u: &Uop, f: impl Fn(u64, u64, u64) -> u64) -> Flow {
    // SAFETY: the caller's promise.
    unsafe { map_pairs(l, u, [(u.a, u.a + ROW), (u.b, u.b + ROW), (u.c, u.c + ROW)], f) }
}

/// Pair `d = f(a, b, pair c)`.
///
/// # Safety
/// As [`map1`].
#[inline(always)]
pub unsafe fn map_wide(l: &mut Lanes, u: &Uop, f: impl Fn(u32, u32, u64) -> u64) -> Flow {
    // SAFETY: the caller's promise.
    unsafe { map_pairs(l, u, [(u.a, u.a), (u.b, u.b), (u.c, u.c + ROW)], |a, b, c| f(a as u32, b as u32, c)) }
}

/// Predicates from a comparison of lanes: `p0 = cmp bool ps0`, `p1 = !cmp bool ps0`.
///
/// # Safety
/// As [`map1`].
#[inline(always)]
pub unsafe fn compare<L: Level>(l: &mut Lanes, u: &Uop, f: impl Fn(u32, u32) -> bool) -> Flow {
    // SAFETY: the rows of a micro-operation exist.
    let answer = unsafe {
        let (a, b) = (&*l.row(u.a), &*l.row(u.b));
        L::mask_of(|i| f(a[i], b[i]))
    };
    combine(l, u, answer);
    Flow::Next
}

/// How a comparison's answer and the predicate source combine, in the low bits of `aux`.
#[inline(always)]
pub fn combine(l: &mut Lanes, u: &Uop, answer: u32) {
    let m = l.mask(u);
    let p = l.pred(u.ps[0]);
    let (yes, no) = match u.aux & 3 {
        0 => (answer & p, !answer & p),
        1 => (answer | p, !answer | p),
        _ => (answer ^ p, !answer ^ p),
    };
    l.set_pred(u.pd[0], m, yes);
    if u.pd[1] != DROPPED {
        l.set_pred(u.pd[1], m, no);
    }
}
