//! Coalescing: from the addresses of lanes to lines, sectors, and passes through the banks.

use crate::units::{LINE, SECTOR};
use simt::resident::{Access, Where};

/// One line of a warp's access.
#[derive(Clone, Copy, Default, Debug)]
pub struct Piece {
    /// Address of the line's first byte.
    pub line: u64,
    /// Words of the line that lanes touch, a bit each: the banks, too.
    pub words: u32,
    /// Words of which every byte is touched.
    pub full: u32,
    /// What the cache's table knows the line by, once that was asked, and the slot that it has there at first sight.
    pub mark: u32,
    pub slot: u16,
    /// The cycle in which its tag is looked up, from the first one of the access.
    round: u16,
}

impl Piece {
    #[inline(always)]
    fn new(line: u64, words: u32, full: u32) -> Piece {
        Piece { line, words, full, mark: 0, slot: u16::MAX, round: 0 }
    }

    /// Another lane's part.
    #[inline(always)]
    fn add(&mut self, p: Piece) {
        self.words |= p.words;
        self.full |= p.full;
    }

    /// Sectors touched.
    #[inline(always)]
    pub fn sectors(&self) -> u8 {
        sectors_of(self.words)
    }

    /// Sectors of which every byte is touched.
    #[inline(always)]
    pub fn whole(&self) -> u8 {
        !sectors_of(!self.full) & 15
    }
}

/// The sectors that some of these words are in.
#[inline(always)]
fn sectors_of(words: u32) -> u8 {
    // Eight words a sector: fold each byte into its lowest bit, then gather the four bits.
    let mut m = words | words >> 4;
    m |= m >> 2;
    m |= m >> 1;
    m &= 0x0101_0101;
    (m.wrapping_mul(0x0102_0408) >> 24) as u8 & 15
}

/// The lines of a warp's access, in the order of the first lane that touches each.
pub trait Lines {
    fn list(&self) -> &[Piece];

    /// Passes through the data banks.
    ///
    /// When all lines are found they go through the banks at once, else those that are looked up in one cycle. A bank that
    /// several lines of a group need takes as many passes.
    fn passes(&mut self, all_found: bool) -> Passes;
}

impl Lines for Piece {
    #[inline(always)]
    fn list(&self) -> &[Piece] {
        std::slice::from_ref(self)
    }

    #[inline(always)]
    fn passes(&mut self, _: bool) -> Passes {
        Passes { groups: 1, passes: 1 }
    }
}

/// The one line that the lanes of `mask` touch in an access to global memory, where that is simple to see.
#[inline(always)]
pub fn only_line(access: &Access, mask: u32) -> Option<Piece> {
    let size = u64::from(access.size);
    match access.place {
        Where::Same(address) => Some(piece(address, size)),
        Where::Consecutive(base) if size >= 4 && is_run(mask) => {
            let start = base.wrapping_add(u64::from(mask.trailing_zeros()) * size);
            let (from, count) = (start % LINE / 4, u64::from(mask.count_ones()) * size / 4);
            // Between one and 32 words: no shift is by 32.
            (from + count <= LINE / 4).then(|| {
                let words = (u32::MAX >> (32 - count)) << from;
                Piece::new(start & !(LINE - 1), words, words)
            })
        }
        _ => None,
    }
}

/// Any lines.
#[derive(Default)]
pub struct Pieces {
    list: Vec<Piece>,
    /// For [`Pieces::passes`]: cycles in which lines are looked up and, of the lines of each, how many need each data bank,
    /// one bit of the count a word. No more are looked up in a cycle than there are banks of tags, which is four at most.
    rounds: u32,
    groups: Vec<[u32; 3]>,
    /// The lines of the next access are there.
    is_made: bool,
}

/// What the lines of an access need of the data banks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passes {
    /// Sets of lines that go through them together.
    pub groups: u32,
    pub passes: u32,
}

impl Pieces {
    /// The lines of the next access are to be found.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.list.clear();
        self.is_made = false;
    }

    /// Those of the next access have been found and looked up before it.
    #[inline(always)]
    pub fn keep(&mut self) {
        self.is_made = true;
    }

    /// Whether they have; the access behind that begins anew.
    #[inline(always)]
    pub fn take_kept(&mut self) -> bool {
        std::mem::take(&mut self.is_made)
    }

    /// Cycles of the tag stage, after [`Pieces::look_up`].
    #[inline(always)]
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    #[inline(always)]
    pub fn list_mut(&mut self) -> &mut [Piece] {
        &mut self.list
    }

    #[inline(always)]
    fn push(&mut self, piece: Piece) {
        self.list.push(piece);
    }

    /// Coalesces the lanes of `mask` in an access to global memory.
    #[inline]
    pub fn global(&mut self, access: &Access, mask: u32) {
        let size = u64::from(access.size);
        match access.place {
            Where::Same(address) => self.push(piece(address, size)),
            Where::Consecutive(base) if size >= 4 && is_run(mask) => {
                let first = u64::from(mask.trailing_zeros());
                let start = base.wrapping_add(first * size);
                self.run(start, u64::from(mask.count_ones()) * size);
            }
            Where::Consecutive(base) => {
                for lane in lanes(mask) {
                    let p = piece(base.wrapping_add(u64::from(lane) * size), size);
                    self.merge_last(p);
                }
                self.complete_narrow(base, size, mask);
            }
            Where::Halves(starts, same) if mask == u32::MAX && are_apart(starts, same, size) => {
                for (start, same) in starts.into_iter().zip(same) {
                    if same { self.push(piece(start, size)) } else { self.run(start, 16 * size) }
                }
            }
            Where::Tile(..) | Where::Halves(..) => {
                let lanes = std::array::from_fn(|n| access.address(n as u32));
                self.scattered(&lanes, mask, size);
            }
            Where::Lanes => self.scattered(&access.lanes, mask, size),
        }
    }

    /// A run of bytes of whole words.
    #[inline(always)]
    fn run(&mut self, start: u64, bytes: u64) {
        let mut line = start & !(LINE - 1);
        let end = start + bytes;
        let mut from = ((start % LINE) / 4) as u32;
        while line < end {
            let to = ((end - line).min(LINE) / 4) as u32;
            // Between one and 32 words: no shift is by 32.
            let words = (u32::MAX >> (32 - (to - from))) << from;
            self.push(Piece::new(line, words, words));
            line += LINE;
            from = 0;
        }
    }

    /// Adds to the last line, or begins one.
    #[inline(always)]
    fn merge_last(&mut self, p: Piece) {
        match self.list.last_mut() {
            Some(last) if last.line == p.line => last.add(p),
            _ => self.push(p),
        }
    }

    /// Consecutive bytes or half words fill words together: marks those that they fill.
    fn complete_narrow(&mut self, base: u64, size: u64, mask: u32) {
        if size >= 4 || !is_run(mask) {
            return;
        }
        let start = base + u64::from(mask.trailing_zeros()) * size;
        let end = start + u64::from(mask.count_ones()) * size;
        for p in &mut self.list {
            for w in lanes(p.words) {
                let word = p.line + u64::from(w) * 4;
                if start <= word && word + 4 <= end {
                    p.full |= 1 << w;
                }
            }
        }
    }

    fn scattered(&mut self, addresses: &[u64; 32], mask: u32, size: u64) {
        // Places of lines by a small hash, only for lanes that do not ascend: most do.
        let mut highest = 0;
        let mut ascends = true;
        let mut table = [u8::MAX; 64];
        for lane in lanes(mask) {
            let p = piece(addresses[lane as usize], size);
            match self.list.last_mut() {
                Some(last) if last.line == p.line => {
                    last.add(p);
                    continue;
                }
                _ => {}
            }
            if ascends && (self.list.is_empty() || p.line > highest) {
                highest = p.line;
                self.push(p);
                continue;
            }
            if ascends {
                ascends = false;
                for i in 0..self.list.len() {
                    let slot = find(&table, &self.list, self.list[i].line);
                    table[slot] = i as u8;
                }
            }
            let slot = find(&table, &self.list, p.line);
            if table[slot] == u8::MAX {
                table[slot] = self.list.len() as u8;
                self.push(p);
            } else {
                self.list[table[slot] as usize].add(p);
            }
        }
    }

    /// Coalesces the lanes of `mask` in an access to local memory: word `n` of all lanes of a warp is line `n` from
    /// `base`, so lanes at equal offsets share lines.
    pub fn local(&mut self, access: &Access, mask: u32, base: u64) {
        let rows = access.size.div_ceil(4).max(1);
        let narrow = access.size < 4;
        if let Where::Same(offset) = access.place {
            for row in 0..u64::from(rows) {
                let full = if narrow { 0 } else { mask };
                self.push(Piece::new(base + (offset / 4 + row) * LINE, mask, full));
            }
            return;
        }
        for lane in lanes(mask) {
            let offset = access.address(lane);
            for row in 0..u64::from(rows) {
                let line = base + (offset / 4 + row) * LINE;
                let words = 1 << lane;
                let full = if narrow { 0 } else { words };
                let p = Piece::new(line, words, full);
                match self.list.iter_mut().find(|p| p.line == line) {
                    Some(old) => old.add(p),
                    None => self.push(p),
                }
            }
        }
    }

    /// Finds the cycles of the tag stage. Tags are in `tag_banks` banks, each of which looks up one line in a cycle. `mark`: what
    /// the cache knows a line by.
    #[inline(always)]
    pub fn look_up(&mut self, tag_banks: u32, mark: impl Fn(u64) -> u32) {
        let mut used = [0; TAG_BANKS];
        let mut most = 1;
        for p in &mut self.list {
            p.mark = mark(p.line);
            let bank = &mut used[tag_bank(p.line, tag_banks)];
            p.round = *bank as u16;
            *bank += 1;
            most = most.max(*bank);
        }
        self.rounds = most;
    }

    /// Passes of all lines together. A count of them has so many bits.
    #[inline(always)]
    fn passes_by<const BITS: usize>(&self) -> Passes {
        let mut counts = [0; BITS];
        self.list.iter().for_each(|p| count_banks(&mut counts, p.words));
        Passes { groups: 1, passes: most_of(&counts) }
    }

    /// Passes of the lines of each cycle.
    #[inline(always)]
    fn passes_by_round(&mut self) -> Passes {
        self.groups.clear();
        self.groups.resize(self.rounds as usize, [0; 3]);
        for p in &self.list {
            if let Some(counts) = self.groups.get_mut(p.round as usize) {
                count_banks(counts, p.words);
            }
        }
        Passes { groups: self.rounds, passes: self.groups.iter().map(most_of).sum() }
    }
}

impl Lines for Pieces {
    #[inline(always)]
    fn list(&self) -> &[Piece] {
        &self.list
    }

    /// After [`Pieces::look_up`].
    #[inline]
    fn passes(&mut self, all_found: bool) -> Passes {
        if self.list.len() == 1 {
            return Passes { groups: 1, passes: 1 };
        }
        if !all_found && self.rounds > 1 {
            return self.passes_by_round();
        }
        // As many bits as a count of all lines can have: a warp has 128 at most.
        match self.list.len() {
            0..8 => self.passes_by::<3>(),
            8..64 => self.passes_by::<6>(),
            _ => self.passes_by::<8>(),
        }
    }
}

/// Whether halves of a warp touch whole words, and none of the same lines.
#[inline(always)]
fn are_apart(starts: [u64; 2], same: [bool; 2], size: u64) -> bool {
    let end = |h: usize| starts[h] + if same[h] { size } else { 16 * size };
    let follows = |a: usize, b: usize| (end(a) - 1) / LINE < starts[b] / LINE;
    size >= 4 && (follows(0, 1) || follows(1, 0))
}

/// Another line needs some of the banks. All bits of the counts are gone through, whether anything is carried or not: that
/// differs from line to line, and a host's guess of it is mostly wrong.
#[inline(always)]
fn count_banks<const BITS: usize>(planes: &mut [u32; BITS], words: u32) {
    let mut carry = words;
    for plane in planes {
        (*plane, carry) = (*plane ^ carry, *plane & carry);
    }
}

/// The most lines that need one bank.
#[inline(always)]
fn most_of<const BITS: usize>(planes: &[u32; BITS]) -> u32 {
    let (mut most, mut among) = (0, u32::MAX);
    for (n, plane) in planes.iter().enumerate().rev() {
        let some = plane & among;
        most |= u32::from(some != 0) << n;
        among = if some != 0 { some } else { among };
    }
    most
}

/// Banks of tags that there can be.
const TAG_BANKS: usize = 4;

/// The bank that has a line's tag: the parity of some of the line number's bits, for each bit of the bank's number.
///
/// On an H200, loads of two neighbouring lines take a second cycle for 585 of 8192 pairs: those where 4, 7, 10 or 13
/// bits of the line number change. These masks have that property, keep strides of powers of two apart, and give the
/// ten cycles that a stride of 160 bytes takes.
#[inline(always)]
fn tag_bank(line: u64, banks: u32) -> usize {
    // Bits from the fifth on repeat their roles every three.
    let n = line / LINE;
    let mut y = n >> 4;
    y ^= y >> 36;
    y ^= y >> 18;
    y ^= y >> 9;
    y ^= y >> 3 ^ y >> 6;
    let bank = (n ^ n >> 2 ^ y ^ y >> 1) as u32;
    (bank & (banks - 1)) as usize % TAG_BANKS
}

/// A lane's part of its line. Accesses are aligned to their size, so no lane touches two lines.
#[inline(always)]
fn piece(address: u64, size: u64) -> Piece {
    let line = address & !(LINE - 1);
    let word = (address % LINE / 4) as u32;
    let count = (size / 4).max(1) as u32;
    let words = ((1u32 << count) - 1) << word;
    Piece::new(line, words, if size >= 4 { words } else { 0 })
}

/// Where a line is in the table, or the empty place where it belongs. The table has twice the places that 32 lanes need.
#[inline(always)]
fn find(table: &[u8; 64], list: &[Piece], line: u64) -> usize {
    let mut slot = ((line / LINE).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as usize;
    while table[slot] != u8::MAX && list[table[slot] as usize].line != line {
        slot = (slot + 1) % 64;
    }
    slot
}

/// The lanes of a mask, ascending.
#[inline(always)]
pub fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    let mut left = mask;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let lane = left.trailing_zeros();
        left &= left - 1;
        Some(lane)
    })
}

/// The mask has no holes.
#[inline(always)]
fn is_run(mask: u32) -> bool {
    let shifted = mask >> mask.trailing_zeros().min(31);
    mask != 0 && shifted & shifted.wrapping_add(1) == 0
}

/// What atomics on global memory ask of a line and count.
#[derive(Clone, Copy, Default, Debug)]
pub struct Modify {
    /// Operations on the line.
    pub operations: u8,
    /// The most of them on one address.
    pub depth: u8,
}

/// Operations of the lanes of `mask` by line, in the order of `pieces`, and the sectors that are looked up: lanes on
/// one address go one after the other, and every pass looks up its sectors again.
pub fn modify(access: &Access, mask: u32, pieces: &Pieces, out: &mut [Modify; 32]) -> u32 {
    let list = pieces.list();
    if let Where::Same(_) = access.place {
        let n = mask.count_ones() as u8;
        out[0] = Modify { operations: n, depth: n };
        return u32::from(n);
    }
    out[..list.len().min(32)].fill(Modify::default());
    // How many lanes before this one are on its address; passes that have looked a sector up already.
    let mut sectors = 0;
    let mut seen: [(u64, u8); 32] = [(0, 0); 32];
    let mut looked: [(u64, u8); 32] = [(0, 0); 32];
    let (mut addresses, mut lookups) = (0, 0);
    for lane in lanes(mask) {
        let address = access.address(lane);
        let pass = match seen[..addresses].iter_mut().find(|s| s.0 == address) {
            Some(s) => {
                s.1 += 1;
                s.1
            }
            None => {
                seen[addresses] = (address, 1);
                addresses += 1;
                1
            }
        };
        let sector = (address / SECTOR, pass);
        if !looked[..lookups].contains(&sector) {
            looked[lookups] = sector;
            lookups += 1;
            sectors += 1;
        }
        let line = address & !(LINE - 1);
        if let Some(i) = list.iter().position(|p| p.line == line) {
            out[i].operations += 1;
            out[i].depth = out[i].depth.max(pass);
        }
    }
    sectors
}
