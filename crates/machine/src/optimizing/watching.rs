//! What a warp tells of the blocks that it runs: profiles, and checks of assumptions that failed.

use super::table::Level;
use super::{Spec, Who};
use optimizer::profile::Where;
use optimizer::{Kind, Profile, Recorder, Site, Version, Watch};
use serde::{Deserialize, Serialize};
use simt::resident::Access;
use simt::watched::{Observer, Registers, What};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is recorded when an instruction executes; places are those of the original.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Told {
    Branch(u32),
    /// The guard is that of a branch of the original, for those who jump or the others.
    Converted {
        place: u32,
        taken: bool,
    },
    Assumed {
        place: u32,
        taken: bool,
    },
    Access {
        place: u32,
        is_store: bool,
    },
    Loaded(u32),
    /// A branch that is taken where assumptions do not hold.
    Check(Vec<String>),
}

/// A version that was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    pub block: u32,
    /// Where it is entered, and the places that it takes.
    pub entry: u32,
    pub first: u32,
    pub end: u32,
    pub level: u32,
}

/// What everybody knows of the program and its versions. It changes at exchange points only.
#[derive(Clone, Debug)]
pub struct Known {
    pub level: Level,
    pub who: Who,
    pub spec: Arc<Spec>,
    /// Where the originals of blocks begin.
    pub originals: Vec<u32>,
    /// From when on blocks can be optimized.
    pub from: u64,
    /// Values to look at where blocks begin, constants among them with their value.
    pub(super) values: Vec<Vec<(Where, u32)>>,
    /// What is told at places of the code, in their order.
    pub(super) told: Vec<(u32, Vec<Told>)>,
    /// Barriers and what is behind them, in the order of their places.
    pub openings: Vec<(u32, u32)>,
    pub versions: Vec<Placed>,
    /// What each of them assumes.
    pub(super) assumptions: Vec<Vec<Kind>>,
}

impl Known {
    pub fn blocks(&self) -> usize {
        self.originals.len()
    }

    /// A program of one block that has one version.
    #[cfg(test)]
    pub(crate) fn of_version(spec: Spec, version: Placed) -> Known {
        Known {
            level: Level::Cta,
            who: Who::Host,
            spec: Arc::new(spec),
            originals: vec![0],
            from: 0,
            values: vec![Vec::new()],
            told: Vec::new(),
            openings: Vec::new(),
            versions: vec![version],
            assumptions: vec![Vec::new()],
        }
    }

    fn told_at(&self, place: u32) -> &[Told] {
        self.told.binary_search_by_key(&place, |t| t.0).map_or(&[], |n| &self.told[n].1)
    }

    fn tell(&mut self, place: u32, what: Told) {
        match self.told.binary_search_by_key(&place, |t| t.0) {
            Ok(n) if self.told[n].1.contains(&what) => {}
            Ok(n) => self.told[n].1.push(what),
            Err(n) => self.told.insert(n, (place, vec![what])),
        }
    }

    /// A site of a block's original, or of a version at `place`.
    pub(super) fn watch(&mut self, block: u32, place: u32, site: &Site, constant: impl Fn(u8, u32) -> u32) {
        let at = site.place;
        match &site.watch {
            Watch::Entry(values) => {
                let own = &mut self.values[block as usize];
                for &v in values.iter().filter(|v| !matches!(v, Where::Loaded(_))) {
                    let value = match v {
                        Where::Constant(bank, offset) => constant(bank, offset.into()),
                        _ => 0,
                    };
                    if !own.contains(&(v, value)) {
                        own.push((v, value));
                    }
                }
            }
            Watch::Branch => self.tell(place, Told::Branch(at)),
            Watch::Converted { taken } => self.tell(place, Told::Converted { place: at, taken: *taken }),
            Watch::Assumed { taken } => self.tell(place, Told::Assumed { place: at, taken: *taken }),
            Watch::Access { is_store, .. } => {
                self.tell(place, Told::Access { place: at, is_store: *is_store })
            }
            Watch::Loaded { .. } => self.tell(place, Told::Loaded(at)),
        }
    }

    /// A version is there, its code from `first` on.
    pub(super) fn add(&mut self, version: &Version, first: u32, constant: impl Fn(u8, u32) -> u32) {
        for (n, site) in &version.sites {
            self.watch(version.block, first + n, site, &constant);
        }
        let mut checks: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        // A branch that goes the other way costs little, since the copy beside a trace leads back to it: cycles tell whether it pays. So do
        // guards.
        let is_way = |k: &Kind| matches!(k, Kind::Branch { .. } | Kind::Off { .. });
        for a in version.assumptions.iter().filter(|a| !is_way(&a.kind)) {
            checks.entry(a.check).or_default().push(a.kind.to_string());
        }
        for (check, kinds) in checks {
            self.tell(first + check, Told::Check(kinds));
        }
        self.assumptions.push(version.assumptions.iter().map(|a| a.kind).collect());
        self.versions.push(Placed {
            block: version.block,
            entry: first + version.entry,
            first,
            end: first + version.code.len() as u32,
            level: version.level,
        });
    }

    /// What the engine has to tell of each place.
    pub(super) fn watched(&self) -> Vec<(u32, What)> {
        let what = |told: &[Told]| {
            told.iter().fold(What::default(), |w, t| match t {
                Told::Branch(_) | Told::Converted { .. } | Told::Assumed { .. } | Told::Check(_) => {
                    What { branch: true, ..w }
                }
                Told::Access { .. } => What { access: true, ..w },
                Told::Loaded(_) => What { result: true, ..w },
            })
        };
        self.told.iter().map(|(place, told)| (*place, what(told))).collect()
    }

    /// Where warps go that run these versions, by block.
    pub fn entries(&self, versions: impl Fn(usize) -> Option<u32>) -> Vec<u32> {
        let entry = |b: usize| versions(b).and_then(|v| self.versions.get(v as usize)).map(|v| v.entry);
        (0..self.blocks()).map(|b| entry(b).unwrap_or(self.originals[b])).collect()
    }

    /// Whether all that a version assumes is what a profile shows.
    pub fn suits(&self, version: u32, profile: &Profile) -> bool {
        let one_in = u64::from(self.spec.failures_one_in);
        let rare = |n: u64, of: u64| n * one_in <= of;
        let is_so = |kind: &Kind| match *kind {
            Kind::Equal(at, value) => {
                profile.values.get(&at).is_none_or(|v| v.last == value && v.is_constant(one_in))
            }
            Kind::Branch { place, taken } => {
                let (executions, against) = profile.against(place, taken);
                rare(against, executions)
            }
            Kind::Aligned { load, bytes } => {
                let seen = profile.accesses.get(&load).map_or(0, |a| a.alignment);
                seen == 0 || seen >= u64::from(bytes)
            }
            Kind::Off { place } => {
                let (executions, against) = profile.against(place, false);
                rare(against, executions)
            }
            Kind::Apart { store, load } => {
                let executions = profile.accesses.get(&load).map_or(0, |a| a.executions);
                rare(profile.conflicts.get(&(store, load)).copied().unwrap_or(0), executions)
            }
        };
        self.assumptions.get(version as usize).is_some_and(|list| list.iter().all(is_so))
    }

    /// The block behind a barrier.
    pub fn behind(&self, barrier: u32) -> Option<u32> {
        let n = self.openings.binary_search_by_key(&barrier, |o| o.0).ok()?;
        Some(self.openings[n].1)
    }
}

/// Checks of a version's assumptions at one place, and those that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Checked {
    pub checks: u64,
    pub failed: u64,
}

/// The first entries of a block by a warp are all recorded, later ones now and then: profiles are taken for entries that were.
const ALL_OF: u32 = 16;
const ONE_IN: u32 = 8;

/// What a warp has told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Watching {
    recorder: Recorder,
    /// The block that it runs.
    block: Option<u32>,
    /// By block, since somebody took them.
    profiles: Vec<Profile>,
    /// Entries of each block so far, and whether this one is recorded.
    entries: Vec<u32>,
    is_on: bool,
    pub checked: BTreeMap<u32, Checked>,
}

/// What a warp tells.
pub struct Watcher {
    pub known: Arc<Known>,
    pub seen: Watching,
}

impl Watcher {
    pub fn new(known: &Arc<Known>) -> Watcher {
        let seen = Watching {
            recorder: Recorder::default(),
            block: None,
            profiles: vec![Profile::default(); known.blocks()],
            entries: vec![0; known.blocks()],
            is_on: false,
            checked: BTreeMap::new(),
        };
        Watcher { known: known.clone(), seen }
    }

    /// Goes on with what a warp had told; none where it cannot be of this program.
    pub fn again(known: &Arc<Known>, seen: Watching) -> Option<Watcher> {
        let lengths = [seen.profiles.len(), seen.entries.len()];
        (lengths == [known.blocks(); 2]).then(|| Watcher { known: known.clone(), seen })
    }

    /// What was seen of blocks since the last time.
    pub fn take(&mut self, mut each: impl FnMut(usize, Profile)) {
        for (block, profile) in self.seen.profiles.iter_mut().enumerate() {
            if *profile != Profile::default() {
                each(block, std::mem::take(profile));
            }
        }
    }
}

impl Observer for Watcher {
    fn enter(&mut self, block: u32, mask: u32, registers: &Registers<'_>) {
        let seen = &mut self.seen;
        seen.block = Some(block);
        let Some(entries) = seen.entries.get_mut(block as usize) else { return };
        *entries += 1;
        seen.is_on = *entries <= ALL_OF || *entries % ONE_IN == 0;
        let Some(profile) = seen.profiles.get_mut(block as usize).filter(|_| seen.is_on) else { return };
        seen.recorder.enter(profile);
        for &(at, constant) in &self.known.values[block as usize] {
            let row = match at {
                Where::Register(r) => registers.row(r),
                _ => [constant; 32],
            };
            seen.recorder.value(profile, at, mask, &row);
        }
    }

    fn branch(&mut self, place: u32, active: u32, taken: u32) {
        let Watching { recorder, block, profiles, is_on, checked, .. } = &mut self.seen;
        let Some(profile) = block.and_then(|b| profiles.get_mut(b as usize)) else { return };
        for told in self.known.told_at(place) {
            match told {
                Told::Branch(at) if *is_on => recorder.branch(profile, *at, active, taken),
                Told::Converted { place: at, taken: way } if *is_on => {
                    let jump = if *way { taken } else { active & !taken };
                    recorder.branch(profile, *at, active, jump);
                }
                Told::Assumed { place: at, taken: way } if taken == 0 && *is_on => {
                    recorder.branch(profile, *at, active, if *way { active } else { 0 });
                }
                Told::Check(kinds) => {
                    let checked = checked.entry(place).or_default();
                    checked.checks += 1;
                    if taken != 0 {
                        checked.failed += 1;
                        kinds.iter().for_each(|k| recorder.failed(profile, k));
                    }
                }
                _ => {}
            }
        }
    }

    fn access(&mut self, place: u32, access: &Access) {
        if !self.seen.is_on {
            return;
        }
        let Watching { recorder, block, profiles, .. } = &mut self.seen;
        let Some(profile) = block.and_then(|b| profiles.get_mut(b as usize)) else { return };
        for told in self.known.told_at(place) {
            if let Told::Access { place: at, is_store } = told {
                let lanes = std::array::from_fn(|n| access.address(n as u32));
                recorder.access(profile, *at, access.mask, &lanes, access.size, *is_store);
            }
        }
    }

    fn result(&mut self, place: u32, mask: u32, value: &[u32; 32]) {
        if !self.seen.is_on {
            return;
        }
        let Watching { recorder, block, profiles, .. } = &mut self.seen;
        let Some(profile) = block.and_then(|b| profiles.get_mut(b as usize)) else { return };
        for told in self.known.told_at(place) {
            if let Told::Loaded(at) = told {
                recorder.value(profile, Where::Loaded(*at), mask, value);
            }
        }
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }

    fn as_any_ref(&self) -> &dyn std::any::Any {
        self
    }
}
