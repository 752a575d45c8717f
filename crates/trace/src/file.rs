//! The trace file: profiles and raw records, written by a [`Recorder`] and read back by [`read`].
//!
//! | bytes | what |
//! | --- | --- |
//! | 4 | `WLTR` |
//! | 4 | version, 1 |
//! | ... | chunks up to the end of the file |
//!
//! A chunk is a tag of four letters, the length of its body (8 bytes), the body's checksum (4 bytes, FNV-1a) and the body:
//!
//! | tag | body |
//! | --- | --- |
//! | `PROF` | a [`Profile`], as postcard writes it; one for each launch, in order |
//! | `RECS` | records of the profile before it: 4 bytes with the [`Form`] word, then records back to back ([`crate::record`]) |
//! | `VERS` | versions of code of the profile before it, a list of [`Version`] as postcard writes it |
//! | others | left out by readers that do not know them |
//!
//! Numbers are little-endian. A reader trusts nothing: it checks every length, checksum and index.

use crate::profile::{Profile, Version};
use crate::record::{self, Form, Record};
use std::fmt;

const MAGIC: &[u8; 4] = b"WLTR";
const VERSION: u32 = 1;
const PROFILE: &[u8; 4] = b"PROF";
const RECORDS: &[u8; 4] = b"RECS";
const VERSIONS: &[u8; 4] = b"VERS";

/// Why bytes are no trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError(pub String);

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TraceError {}

/// Writes a trace, chunk by chunk.
#[derive(Clone, Debug)]
pub struct Recorder {
    out: Vec<u8>,
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder::new()
    }
}

impl Recorder {
    pub fn new() -> Recorder {
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        Recorder { out }
    }

    /// Appends a launch.
    pub fn profile(&mut self, profile: &Profile) -> Result<(), TraceError> {
        let body = postcard::to_allocvec(profile)
            .map_err(|e| TraceError(format!("the profile cannot be written: {e}")))?;
        self.chunk(PROFILE, &body);
        if !profile.versions.is_empty() {
            let body = postcard::to_allocvec(&profile.versions)
                .map_err(|e| TraceError(format!("the versions cannot be written: {e}")))?;
            self.chunk(VERSIONS, &body);
        }
        Ok(())
    }

    /// Appends the records of the last launch, as they lay in the event buffer.
    pub fn records(&mut self, form: Form, bytes: &[u8]) {
        let mut body = form.to_word().to_le_bytes().to_vec();
        body.extend_from_slice(bytes);
        self.chunk(RECORDS, &body);
    }

    fn chunk(&mut self, tag: &[u8; 4], body: &[u8]) {
        self.out.extend_from_slice(tag);
        self.out.extend((body.len() as u64).to_le_bytes());
        self.out.extend(checksum(body).to_le_bytes());
        self.out.extend_from_slice(body);
    }

    /// The file's bytes.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

/// A launch of a trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Recorded {
    pub profile: Profile,
    pub records: Vec<Record>,
}

pub fn is_trace(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// The launches of a trace file.
pub fn read(bytes: &[u8]) -> Result<Vec<Recorded>, TraceError> {
    let fail = |why: &str| TraceError(why.to_owned());
    let rest =
        bytes.strip_prefix(MAGIC).ok_or_else(|| fail("not a Warploom trace: it does not start with WLTR"))?;
    let (version, mut rest) =
        rest.split_first_chunk::<4>().ok_or_else(|| fail("the trace is cut off in its header"))?;
    if u32::from_le_bytes(*version) != VERSION {
        let found = u32::from_le_bytes(*version);
        return Err(TraceError(format!("trace version {found} is not {VERSION}: profile the program again")));
    }
    let mut launches: Vec<Recorded> = Vec::new();
    while !rest.is_empty() {
        let (tag, body, after) = chunk(rest)?;
        rest = after;
        match &tag {
            PROFILE => {
                let profile: Profile = postcard::from_bytes(body)
                    .map_err(|e| TraceError(format!("a profile of the trace is damaged: {e}")))?;
                check(&profile)?;
                launches.push(Recorded { profile, records: Vec::new() });
            }
            VERSIONS => {
                let versions: Vec<Version> = postcard::from_bytes(body)
                    .map_err(|e| TraceError(format!("the versions of the trace are damaged: {e}")))?;
                let launch =
                    launches.last_mut().ok_or_else(|| fail("the trace has versions before a profile"))?;
                if versions.iter().any(|v| launch.profile.at(v.entry).is_none()) {
                    return Err(fail("a version of the trace begins with no instruction"));
                }
                launch.profile.versions = versions;
            }
            RECORDS => {
                let (word, body) = body
                    .split_first_chunk::<4>()
                    .ok_or_else(|| fail("the records of the trace are cut off"))?;
                let form = Form::from_word(u32::from_le_bytes(*word))
                    .ok_or_else(|| fail("the records of the trace have an unknown form"))?;
                let launch =
                    launches.last_mut().ok_or_else(|| fail("the trace has records before a profile"))?;
                launch.records.extend(record::read_all(form, body));
            }
            _ => {}
        }
    }
    if launches.is_empty() {
        return Err(fail("the trace has no profile"));
    }
    Ok(launches)
}

fn chunk(rest: &[u8]) -> Result<([u8; 4], &[u8], &[u8]), TraceError> {
    let cut = || TraceError("the trace is cut off in a chunk".to_owned());
    let (tag, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
    let (length, rest) = rest.split_first_chunk::<8>().ok_or_else(cut)?;
    let (sum, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
    let (body, after) = rest.split_at_checked(length).ok_or_else(cut)?;
    if checksum(body) != u32::from_le_bytes(*sum) {
        return Err(TraceError("the trace is damaged: a checksum differs".to_owned()));
    }
    Ok((*tag, body, after))
}

/// What exporters rely on: code in order, indices that exist, numbers that are finite and can be added up.
fn check(p: &Profile) -> Result<(), TraceError> {
    let fail = |why: &str| Err(TraceError(format!("a profile of the trace is damaged: {why}")));
    // Sums over a profile stay below 2^64 when no part exceeds this.
    const MOST: u64 = 1 << 40;
    let is_small = |list: &[u64]| list.iter().all(|&n| n <= MOST);
    if !p.code.windows(2).all(|w| w[0].pc < w[1].pc) || p.code.last().is_some_and(|i| i.pc >= 1 << 28) {
        return fail("its code is out of order");
    }
    for i in &p.code {
        let w = &i.work;
        let work = [w.threads, w.requests, w.sectors, w.hits, w.ideal_sectors, w.conflicts];
        if !is_small(&i.stalls)
            || !is_small(&work)
            || i.frames.iter().any(|f| f.file as usize >= p.files.len())
        {
            return fail("an instruction has impossible numbers");
        }
    }
    if !p
        .causes
        .iter()
        .all(|c| p.at(c.pc).is_some() && p.at(c.cause).is_some() && is_small(&[c.cycles, c.count]))
    {
        return fail("a cause names no instruction");
    }
    if p.spans.iter().any(|s| s.from > s.until || s.until > MOST || p.at(s.pc).is_none()) {
        return fail("a warp's time runs backwards");
    }
    let t = &p.timeline;
    let steps = t.states.len();
    let tracks = t.sms.iter().all(|s| {
        s.warp_cycles.len() == steps
            && s.issued.len() == steps
            && is_small(&s.warp_cycles)
            && is_small(&s.issued)
    });
    let memory = t
        .memory
        .iter()
        .all(|m| is_small(&[m.l1_sectors, m.l2_sectors, m.l2_hits, m.dram_read_bytes, m.dram_write_bytes]));
    let states = t.states.iter().all(|s| is_small(s));
    if t.memory.len() != steps
        || !tracks
        || !memory
        || !states
        || !is_small(&[t.step, p.cycles, steps as u64])
    {
        return fail("its timeline has impossible numbers");
    }
    if !p.sections.iter().flat_map(|s| &s.metrics).all(|m| m.value.is_finite()) {
        return fail("a metric is no number");
    }
    if let Some(s) = &p.samples
        && p.code.last().is_some_and(|i| s.counts.len() <= i.pc as usize)
    {
        return fail("its samples are not those of its code");
    }
    Ok(())
}

fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |h, &b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::sample;

    fn written() -> Vec<u8> {
        let mut recorder = Recorder::new();
        recorder.profile(&sample()).expect("written");
        let form = Form { cycle: true, ..Form::default() };
        let mut bytes = Vec::new();
        Record { pc: 32, stalls: 4, sm: 0, cycle: 77, ..Record::default() }.write(form, &mut bytes);
        recorder.records(form, &bytes);
        recorder.chunk(b"NEW!", b"from a later version");
        recorder.finish()
    }

    #[test]
    fn what_was_written_is_read() {
        let launches = read(&written()).expect("a trace");
        assert_eq!(launches.len(), 1);
        assert_eq!(launches[0].profile, sample());
        assert_eq!((launches[0].records[0].cycle, launches[0].records.len()), (77, 1));
    }

    #[test]
    fn damage_is_an_error() {
        let good = written();
        // Versions are a chunk of their own.
        let without = |p: &Profile| Profile { versions: Vec::new(), ..p.clone() };
        let expected = without(&sample());
        for n in 0..good.len() {
            if let Ok(launches) = read(&good[..n]) {
                assert_eq!(without(&launches[0].profile), expected, "cut at a chunk's end");
            }
        }
        for n in 0..good.len() {
            let mut bad = good.clone();
            bad[n] ^= 0x41;
            // Only the tag of a chunk is not covered by a checksum: an unknown one is left out.
            if let Ok(launches) = read(&bad) {
                assert_eq!(without(&launches[0].profile), expected);
            }
        }
        assert!(read(b"WLTR").is_err() && read(b"").is_err() && !is_trace(b"WLIM"));
    }

    #[test]
    fn impossible_profiles_are_refused() {
        let refuse = |change: fn(&mut Profile)| {
            let mut p = sample();
            change(&mut p);
            let mut recorder = Recorder::new();
            recorder.profile(&p).expect("written");
            read(&recorder.finish()).expect_err("refused").to_string()
        };
        assert!(refuse(|p| p.code.swap(0, 1)).contains("out of order"));
        assert!(refuse(|p| p.code[0].frames[0].file = 9).contains("impossible"));
        assert!(refuse(|p| p.causes[0].cause = 99).contains("no instruction"));
        assert!(refuse(|p| p.spans[0].from = 9999).contains("backwards"));
        assert!(refuse(|p| p.timeline.memory.clear()).contains("timeline"));
        assert!(refuse(|p| p.sections[0].metrics[0].value = f64::NAN).contains("metric"));
        assert!(refuse(|p| p.code[1].stalls[3] = u64::MAX).contains("impossible"));
    }
}
