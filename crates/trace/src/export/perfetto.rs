//! Timelines for Perfetto: what every SM and single warps did when, and the traffic of the memory.
//!
//! Perfetto counts nanoseconds; here one stands for one cycle, so that nothing is rounded.

use super::proto::Message;
use crate::profile::{Profile, Span};

/// Numbers of the fields that are written, by message.
mod field {
    pub const PACKET: u32 = 1;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const DESCRIPTOR_UUID: u32 = 1;
    pub const DESCRIPTOR_NAME: u32 = 2;
    pub const DESCRIPTOR_PARENT: u32 = 5;
    pub const DESCRIPTOR_COUNTER: u32 = 8;
    pub const COUNTER_UNIT_NAME: u32 = 6;
    pub const EVENT_ANNOTATION: u32 = 4;
    pub const EVENT_TYPE: u32 = 9;
    pub const EVENT_TRACK: u32 = 11;
    pub const EVENT_NAME: u32 = 23;
    pub const EVENT_DOUBLE: u32 = 44;
    pub const ANNOTATION_NAME: u32 = 10;
    pub const ANNOTATION_TEXT: u32 = 6;
}

/// Kinds of events.
const BEGIN: u64 = 1;
const END: u64 = 2;
const COUNTER: u64 = 4;

/// The one writer of the trace.
const SEQUENCE: u64 = 1;

struct Trace {
    out: Message,
    tracks: u64,
}

impl Trace {
    fn packet(&mut self, packet: Message) {
        let packet = packet.number(field::SEQUENCE, SEQUENCE);
        self.out = std::mem::take(&mut self.out).message(field::PACKET, packet);
    }

    /// A new track under another, 0 for none; a counter where a unit is given.
    fn track(&mut self, name: &str, parent: u64, unit: Option<&str>) -> u64 {
        self.tracks += 1;
        let mut d =
            Message::default().number(field::DESCRIPTOR_UUID, self.tracks).text(field::DESCRIPTOR_NAME, name);
        if parent != 0 {
            d = d.number(field::DESCRIPTOR_PARENT, parent);
        }
        if let Some(unit) = unit {
            d = d.message(field::DESCRIPTOR_COUNTER, Message::default().text(field::COUNTER_UNIT_NAME, unit));
        }
        self.packet(Message::default().message(field::TRACK_DESCRIPTOR, d));
        self.tracks
    }

    fn event(&mut self, at: u64, track: u64, kind: u64, rest: impl FnOnce(Message) -> Message) {
        let event = Message::default().number(field::EVENT_TYPE, kind).number(field::EVENT_TRACK, track);
        let packet = Message::default().number(field::TIMESTAMP, at).message(field::TRACK_EVENT, rest(event));
        self.packet(packet);
    }

    /// A counter's values, one a step.
    fn counter(&mut self, track: u64, step: u64, values: impl Iterator<Item = f64>) {
        let mut n = 0;
        for value in values {
            self.event(n * step, track, COUNTER, |e| e.double(field::EVENT_DOUBLE, value));
            n += 1;
        }
        self.event(n * step, track, COUNTER, |e| e.double(field::EVENT_DOUBLE, 0.0));
    }
}

/// The trace of one launch, and of the others that ran beside it where there were any.
pub fn trace(p: &Profile, all: Option<&Tasks>) -> Vec<u8> {
    let mut t = Trace { out: Message::default(), tracks: 0 };
    if let Some(all) = all {
        add_tasks(&mut t, all);
    }
    let root = t.track(&format!("{} on {} (1 ns = 1 cycle)", p.kernel, p.machine.name), 0, None);
    if all.is_none() {
        let launch = t.track("launch", root, None);
        t.event(0, launch, BEGIN, |e| e.text(field::EVENT_NAME, &p.kernel));
        t.event(p.cycles, launch, END, |e| e);
    }
    warps(&mut t, p, root);
    let step = p.timeline.step;
    if step > 0 {
        let group = t.track("memory", root, None);
        let per_cycle = |n: u64| n as f64 / step as f64;
        let rows: [(&str, &str, fn(&crate::profile::Traffic) -> u64); 4] = [
            ("L1 sectors", "sectors/cycle", |m| m.l1_sectors),
            ("L2 sectors", "sectors/cycle", |m| m.l2_sectors),
            ("DRAM read", "bytes/cycle", |m| m.dram_read_bytes),
            ("DRAM written", "bytes/cycle", |m| m.dram_write_bytes),
        ];
        for (name, unit, of) in rows {
            let track = t.track(name, group, Some(unit));
            t.counter(track, step, p.timeline.memory.iter().map(|m| per_cycle(of(m))));
        }
        let group = t.track("SMs", root, None);
        for (n, sm) in p.timeline.sms.iter().enumerate().filter(|(_, s)| s.issued.iter().any(|&n| n > 0)) {
            let track = t.track(&format!("SM {n} warps"), group, Some("warps"));
            t.counter(track, step, sm.warp_cycles.iter().map(|&n| per_cycle(n)));
            let track = t.track(&format!("SM {n} instructions"), group, Some("instructions/cycle"));
            t.counter(track, step, sm.issued.iter().map(|&n| per_cycle(n)));
        }
    }
    t.out.finish()
}

/// Something that lasted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice {
    pub name: String,
    pub from: u64,
    pub until: u64,
    /// Names and values of what else there is to say.
    pub notes: Vec<(&'static str, String)>,
}

/// Several launches on one machine: when each ran, and which CTAs left SMs and came back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tasks {
    pub machine: String,
    pub launches: Vec<Slice>,
    /// By SM.
    pub moves: Vec<(u16, Slice)>,
}

/// The trace of several launches.
pub fn tasks(all: &Tasks) -> Vec<u8> {
    let mut t = Trace { out: Message::default(), tracks: 0 };
    add_tasks(&mut t, all);
    t.out.finish()
}

fn add_tasks(t: &mut Trace, all: &Tasks) {
    let root = t.track(&format!("tasks on {} (1 ns = 1 cycle)", all.machine), 0, None);
    let group = t.track("launches", root, None);
    slices(t, group, "launch", all.launches.iter());
    let mut sms: Vec<u16> = all.moves.iter().map(|(sm, _)| *sm).collect();
    sms.sort_unstable();
    sms.dedup();
    for sm in sms {
        let group = t.track(&format!("SM {sm}"), root, None);
        let own = all.moves.iter().filter(|(n, _)| *n == sm).map(|(_, slice)| slice);
        slices(t, group, "CTAs that leave and come back", own);
    }
}

/// Slices on as many tracks as overlap at a time.
fn slices<'a>(t: &mut Trace, parent: u64, name: &str, all: impl Iterator<Item = &'a Slice>) {
    let mut all: Vec<&Slice> = all.collect();
    all.sort_by_key(|s| (s.from, s.until));
    let mut tracks: Vec<(u64, u64)> = Vec::new();
    for slice in all {
        let free = tracks.iter().position(|&(_, until)| until <= slice.from);
        let n = free.unwrap_or_else(|| {
            tracks.push((t.track(name, parent, None), 0));
            tracks.len() - 1
        });
        let track = tracks[n].0;
        tracks[n].1 = slice.until;
        t.event(slice.from, track, BEGIN, |e| {
            let e = e.text(field::EVENT_NAME, &slice.name);
            slice.notes.iter().fold(e, |e, (name, text)| {
                let note = Message::default();
                let note = note.text(field::ANNOTATION_NAME, name).text(field::ANNOTATION_TEXT, text);
                e.message(field::EVENT_ANNOTATION, note)
            })
        });
        t.event(slice.until, track, END, |e| e);
    }
}

/// The warps of the SMs that were watched closely: a slice for each CTA's stay, and in it one for each state.
fn warps(t: &mut Trace, p: &Profile, root: u64) {
    let mut spans = p.spans.clone();
    spans.sort_by_key(|s| (s.sm, s.warp, s.from, s.until));
    let mut sm = None;
    for group in spans.chunk_by(|a, b| (a.sm, a.warp) == (b.sm, b.warp)) {
        let first = &group[0];
        let parent = match sm {
            Some((n, track)) if n == first.sm => track,
            _ => {
                let track = t.track(&format!("SM {} warp states", first.sm), root, None);
                sm = Some((first.sm, track));
                track
            }
        };
        let track = t.track(&format!("warp {}", first.warp), parent, None);
        for stay in group.chunk_by(|a, b| a.cta == b.cta) {
            let (from, until) = (stay[0].from, stay.iter().map(|s| s.until).max().unwrap_or(0));
            t.event(from, track, BEGIN, |e| e.text(field::EVENT_NAME, &format!("CTA {}", stay[0].cta)));
            // Neighbours in one state at one instruction are one slice.
            for run in stay.chunk_by(|a, b| (a.pc, a.reason) == (b.pc, b.reason) && a.until == b.from) {
                let until = run[run.len() - 1].until;
                t.event(run[0].from, track, BEGIN, |e| state(e, p, &run[0]));
                t.event(until, track, END, |e| e);
            }
            t.event(until, track, END, |e| e);
        }
    }
}

fn state(event: Message, p: &Profile, s: &Span) -> Message {
    let note = |name: &str, text: &str| {
        Message::default().text(field::ANNOTATION_NAME, name).text(field::ANNOTATION_TEXT, text)
    };
    let mut event = event.text(field::EVENT_NAME, s.reason.name());
    if let Some(i) = p.at(s.pc) {
        event = event
            .message(field::EVENT_ANNOTATION, note("instruction", &i.text))
            .message(field::EVENT_ANNOTATION, note("line", &p.place(i)));
    }
    event
}
