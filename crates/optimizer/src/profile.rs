//! What was seen of a block while it ran.
//!
//! Everything is keyed by places in the original code, also what optimized code reports, so that profiles of an original and of its
//! versions can be compared and added. A [`Recorder`] holds what one warp needs to know of its own past for that.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How often a branch went where. Counts are warps, unless it says lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Branch {
    pub executions: u64,
    /// All lanes that were there jumped.
    pub taken: u64,
    /// None did.
    pub not_taken: u64,
    /// Some did.
    pub diverged: u64,
    pub lanes: u64,
    pub lanes_taken: u64,
}

/// A way out of a branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Edge {
    pub branch: u32,
    pub taken: bool,
}

/// Where a value was looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Where {
    /// A general register where the block begins.
    Register(u8),
    /// A word of a constant bank: bank, offset.
    Constant(u8, u16),
    /// The first register that the load at this place wrote.
    Loaded(u32),
}

/// What a value was. Counts are warps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Value {
    pub executions: u64,
    /// All lanes that were there had the same.
    pub uniform: u64,
    /// The value of the last execution in which it was uniform.
    pub last: u32,
    /// Executions in which it was uniform and `last`, the last run of equal ones.
    pub same: u64,
}

/// How lanes of a memory instruction lay to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Access {
    pub executions: u64,
    /// Sectors of 32 bytes touched, all together.
    pub sectors: u64,
    /// All lanes had one address.
    pub broadcast: u64,
    /// Neighbouring lanes had neighbouring addresses.
    pub coalesced: u64,
    /// The addresses were those of the instruction's last execution by this warp since it entered the block.
    pub repeated: u64,
    /// The lowest address bit that was ever set, as its value; 0 if none was.
    pub alignment: u64,
}

/// Everything that was seen of a block.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Profile {
    /// Times that a warp entered it.
    pub entries: u64,
    #[serde(with = "pairs")]
    pub branches: BTreeMap<u32, Branch>,
    /// How often one way out of a branch was followed by another, for branches that all lanes took the same way.
    #[serde(with = "pairs")]
    pub paths: BTreeMap<(Edge, Edge), u64>,
    #[serde(with = "pairs")]
    pub values: BTreeMap<Where, Value>,
    #[serde(with = "pairs")]
    pub accesses: BTreeMap<u32, Access>,
    /// Store and load that touched a byte in common, while the warp was in the block: executions of the load.
    #[serde(with = "pairs")]
    pub conflicts: BTreeMap<(u32, u32), u64>,
    /// Checks of assumptions of optimized code that failed, by [`crate::Kind`] in its written form.
    pub failures: BTreeMap<String, u64>,
}

/// Maps as lists, since keys are no strings.
mod pairs {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::collections::BTreeMap;

    pub fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_seq(map)
    }

    pub fn deserialize<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>, D: Deserializer<'de>>(
        d: D,
    ) -> Result<BTreeMap<K, V>, D::Error> {
        Ok(Vec::<(K, V)>::deserialize(d)?.into_iter().collect())
    }
}

impl Branch {
    fn add(&mut self, o: &Branch) {
        self.executions += o.executions;
        self.taken += o.taken;
        self.not_taken += o.not_taken;
        self.diverged += o.diverged;
        self.lanes += o.lanes;
        self.lanes_taken += o.lanes_taken;
    }
}

impl Value {
    fn add(&mut self, o: &Value) {
        self.executions += o.executions;
        self.uniform += o.uniform;
        if self.last == o.last {
            self.same += o.same;
        } else if o.same > self.same {
            (self.last, self.same) = (o.last, o.same);
        }
    }

    fn see(&mut self, mask: u32, lanes: &[u32; 32]) {
        self.executions += 1;
        let first = lanes[mask.trailing_zeros() as usize & 31];
        if (0..32).any(|i| mask >> i & 1 != 0 && lanes[i] != first) {
            return;
        }
        self.uniform += 1;
        if self.last != first {
            (self.last, self.same) = (first, 0);
        }
        self.same += 1;
    }

    /// Always uniform, and the same nearly always: an execution in `one_in` may differ.
    pub fn is_constant(&self, one_in: u64) -> bool {
        self.executions > 0 && (self.executions - self.same.min(self.executions)) * one_in <= self.executions
    }
}

impl Access {
    fn add(&mut self, o: &Access) {
        self.executions += o.executions;
        self.sectors += o.sectors;
        self.broadcast += o.broadcast;
        self.coalesced += o.coalesced;
        self.repeated += o.repeated;
        self.alignment = lowest(self.alignment | o.alignment);
    }
}

fn lowest(bits: u64) -> u64 {
    bits & bits.wrapping_neg()
}

impl Profile {
    /// What two sets of threads saw, together.
    pub fn add(&mut self, other: &Profile) {
        fn each<K: Ord + Copy, V: Default>(
            a: &mut BTreeMap<K, V>,
            b: &BTreeMap<K, V>,
            add: impl Fn(&mut V, &V),
        ) {
            b.iter().for_each(|(k, v)| add(a.entry(*k).or_default(), v));
        }
        self.entries += other.entries;
        each(&mut self.branches, &other.branches, Branch::add);
        each(&mut self.paths, &other.paths, |a, b| *a += b);
        each(&mut self.values, &other.values, Value::add);
        each(&mut self.accesses, &other.accesses, Access::add);
        each(&mut self.conflicts, &other.conflicts, |a, b| *a += b);
        other.failures.iter().for_each(|(k, v)| *self.failures.entry(k.clone()).or_default() += v);
    }

    /// Whether every counter, taken for a thousand entries, is within a threshold of that of another profile.
    pub fn is_near(&self, other: &Profile, threshold: u64) -> bool {
        fn near<K: Ord + Copy, V>(
            a: &BTreeMap<K, V>,
            b: &BTreeMap<K, V>,
            counters: impl Fn(&V) -> Vec<u64>,
            ok: &impl Fn(u64, u64) -> bool,
        ) -> bool {
            let keys: std::collections::BTreeSet<K> = a.keys().chain(b.keys()).copied().collect();
            keys.iter().all(|k| {
                let (a, b) = (a.get(k).map(&counters), b.get(k).map(&counters));
                let n = a.as_ref().or(b.as_ref()).map_or(0, Vec::len);
                let (a, b) = (a.unwrap_or_else(|| vec![0; n]), b.unwrap_or_else(|| vec![0; n]));
                a.iter().zip(&b).all(|(a, b)| ok(*a, *b))
            })
        }
        let per = |count: u64, entries: u64| u128::from(count) * 1000 / u128::from(entries.max(1));
        let ok =
            |a: u64, b: u64| per(a, self.entries).abs_diff(per(b, other.entries)) <= u128::from(threshold);
        near(
            &self.branches,
            &other.branches,
            |b| vec![b.executions, b.taken, b.not_taken, b.diverged, b.lanes, b.lanes_taken],
            &ok,
        ) && near(&self.paths, &other.paths, |n| vec![*n], &ok)
            && near(&self.values, &other.values, |v| vec![v.executions, v.uniform, v.same], &ok)
            && near(
                &self.accesses,
                &other.accesses,
                |a| vec![a.executions, a.sectors, a.broadcast, a.coalesced, a.repeated],
                &ok,
            )
            && near(&self.conflicts, &other.conflicts, |n| vec![*n], &ok)
    }

    /// Executions of a branch, and how many of them were not all taken (`taken`), or not all not taken.
    pub fn against(&self, branch: u32, taken: bool) -> (u64, u64) {
        let b = self.branches.get(&branch).copied().unwrap_or_default();
        (b.executions, b.executions - if taken { b.taken } else { b.not_taken })
    }
}

/// Stores that a warp remembers since it entered the block, to find loads that read what it wrote.
const STORES: usize = 64;

/// What one warp remembers of its way through a block, to record into a profile.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Recorder {
    last: Option<Edge>,
    /// Addresses of each memory instruction at its last execution: mask, sum that tells them.
    addresses: BTreeMap<u32, u64>,
    /// Place, bytes, and the lowest and highest address of the latest stores.
    stores: Vec<(u32, u64, u64)>,
}

impl Recorder {
    /// The warp enters the block.
    pub fn enter(&mut self, profile: &mut Profile) {
        *self = Recorder::default();
        profile.entries += 1;
    }

    /// The lanes in `active` are at a branch and those in `taken` jump, as the original code has it.
    pub fn branch(&mut self, profile: &mut Profile, place: u32, active: u32, taken: u32) {
        let b = profile.branches.entry(place).or_default();
        b.executions += 1;
        b.lanes += u64::from(active.count_ones());
        b.lanes_taken += u64::from(taken.count_ones());
        let way = match taken {
            0 => Some(false),
            t if t == active => Some(true),
            _ => None,
        };
        match way {
            Some(true) => b.taken += 1,
            Some(false) => b.not_taken += 1,
            None => b.diverged += 1,
        }
        let edge = way.map(|taken| Edge { branch: place, taken });
        if let (Some(from), Some(to)) = (self.last, edge) {
            *profile.paths.entry((from, to)).or_default() += 1;
        }
        self.last = edge;
    }

    /// The value of a register, a constant or a load, in the lanes of `mask`.
    pub fn value(&mut self, profile: &mut Profile, at: Where, mask: u32, lanes: &[u32; 32]) {
        if mask != 0 {
            profile.values.entry(at).or_default().see(mask, lanes);
        }
    }

    /// A memory instruction with the addresses of its lanes, each so many bytes.
    pub fn access(
        &mut self,
        profile: &mut Profile,
        place: u32,
        mask: u32,
        lanes: &[u64; 32],
        bytes: u32,
        is_store: bool,
    ) {
        if mask == 0 {
            return;
        }
        let bytes = u64::from(bytes.max(1));
        let of = || (0..32).filter(|i| mask >> i & 1 != 0).map(|i| (i, lanes[i]));
        let (first_lane, first) = of().next().unwrap_or((0, 0));
        let mut sectors: Vec<u64> =
            of().flat_map(|(_, a)| [a >> 5, a.wrapping_add(bytes - 1) >> 5]).collect();
        sectors.sort_unstable();
        sectors.dedup();
        let sum = of().fold(u64::from(mask), |h, (i, a)| {
            (h ^ a.rotate_left(i as u32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        let a = profile.accesses.entry(place).or_default();
        a.executions += 1;
        a.sectors += sectors.len() as u64;
        a.broadcast += u64::from(of().all(|(_, x)| x == first));
        a.coalesced += u64::from(of().all(|(i, x)| x == first.wrapping_add((i - first_lane) as u64 * bytes)));
        a.alignment = lowest(of().fold(a.alignment, |all, (_, x)| all | x));
        a.repeated += u64::from(self.addresses.insert(place, sum) == Some(sum));
        // Ranges instead of bytes: what overlaps is counted, what lies between two lanes may be too.
        let (low, high) = of().fold((u64::MAX, 0), |(l, h), (_, x)| (l.min(x), h.max(x.wrapping_add(bytes))));
        if is_store {
            if self.stores.len() == STORES {
                self.stores.remove(0);
            }
            self.stores.push((place, low, high));
            return;
        }
        let mut hit: Vec<u32> = self.stores.iter().filter(|s| s.1 < high && low < s.2).map(|s| s.0).collect();
        hit.sort_unstable();
        hit.dedup();
        for store in hit {
            *profile.conflicts.entry((store, place)).or_default() += 1;
        }
    }

    /// A check of an assumption failed.
    pub fn failed(&mut self, profile: &mut Profile, assumption: &str) {
        *profile.failures.entry(assumption.to_string()).or_default() += 1;
    }
}
