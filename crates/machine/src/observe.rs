//! Watching a launch on all SMs: who watches, and what they saw, put together.

use crate::counters::Counters;
use crate::ppu::RunOptions;
use crate::sm::trace_cell::{Settings, TraceCell};
use crate::sm::watch::{self, Recorder, Watcher};
use crate::sm::{Context, Sm};
use crate::stall::{Stall, StallCycles};
use crate::units::Cycle;
use isa::Op;
use serde::{Deserialize, Serialize};
use simt::Memory;
use trace::profile::{Cause, Detail, Link, Span, Timeline};

/// The SM whose warps are watched one by one, unless others are asked for.
const CLOSELY: [u32; 1] = [0];
/// States of single warps that are kept of an SM, and of all of them together.
const SPANS: usize = 40_000;
const SPANS_OF_ALL: usize = 400_000;

/// Warps for each SM from which on launches take many cycles.
const MANY_WARPS: u64 = 32;

/// Whether launches on a machine of so many SMs take many cycles, as far as that can be known before.
pub fn are_long(launches: &[Context<'_>], sms: usize) -> bool {
    let warps = launches.iter().map(|c| c.launch.ctas().saturating_mul(c.launch.warps().into()));
    warps.fold(0, u64::saturating_add) / sms.max(1) as u64 >= MANY_WARPS
}

/// Who watches an SM during a launch, if anybody does.
pub fn watcher(
    sm: &Sm,
    context: &Context<'_>,
    start: Cycle,
    is_long: bool,
    settings: Option<&Settings>,
    options: &RunOptions<'_>,
) -> Option<Box<Watcher>> {
    let (_, sub_cores) = sm.size();
    let cell = settings.and_then(|s| {
        let code = context.image.code.iter().enumerate();
        let calls: Vec<u32> =
            code.filter(|(_, i)| matches!(i.op, Op::Call | Op::Callx)).map(|(n, _)| n as u32).collect();
        TraceCell::new(sm.id.0, sm.trace_spec(), s, sub_cores, start.0, &calls)
    });
    let recorder = recorder(sm, start, is_long, options);
    (cell.is_some() || recorder.is_some()).then(|| Box::new(Watcher { cell, recorder }))
}

/// Who keeps what a profile shows.
pub fn recorder(sm: &Sm, start: Cycle, is_long: bool, options: &RunOptions<'_>) -> Option<Recorder> {
    options.detail.then(|| {
        let closely = options.closely.unwrap_or(&CLOSELY);
        let spans = match closely.contains(&sm.id.0.into()) {
            true => SPANS.min(SPANS_OF_ALL / closely.len()),
            false => 0,
        };
        Recorder::new(sm.id.0, start.0, is_long, spans)
    })
}

/// Writes the records of all SMs to the event buffer, SM after SM: the bytes that are there then, and how many records were lost.
pub fn store(
    watchers: &mut [Box<Watcher>],
    settings: &Settings,
    memory: &Memory,
) -> Result<(Vec<u8>, u64), String> {
    let (size, room) = (settings.form.bytes(), settings.buffer_bytes as usize);
    let (mut bytes, mut lost) = (Vec::new(), 0);
    let sms = watchers.len();
    for (n, cell) in watchers.iter_mut().filter_map(|w| w.cell.as_mut()).enumerate() {
        let start = bytes.len();
        // Records of a long launch are there already, as many as the buffer has room for; the others come behind those of the SMs
        // before, so that their cell knows what room is left.
        let made = std::mem::replace(&mut cell.bytes, bytes);
        let kept = made.len().min(room - start) / size * size;
        cell.bytes.extend_from_slice(&made[..kept]);
        cell.flush(u64::MAX);
        lost += cell.lost + ((made.len() - kept) / size) as u64;
        bytes = std::mem::take(&mut cell.bytes);
        let own = &bytes[start..];
        memory
            .write_past_caches(settings.buffer + start as u64, own)
            .map_err(|e| format!("the event buffer of the trace cells cannot be written: {e}"))?;
        // Others have about as many.
        let own = own.len();
        if bytes.capacity() - bytes.len() < own {
            bytes.reserve((own * (sms - n - 1)).min(room - bytes.len()));
        }
    }
    Ok((bytes, lost))
}

/// What all SMs saw of code of so many instructions.
pub fn detail(
    watchers: Vec<Box<Watcher>>,
    context: &Context<'_>,
    instructions: usize,
    stalls: &[StallCycles],
) -> Detail {
    let mut detail = gather(watchers, instructions);
    add_waits(&mut detail, context, stalls);
    detail
}

/// The same for each of several launches: its instructions and warps. Timelines are those of all.
pub fn details(watchers: Vec<Box<Watcher>>, launches: &[(&Context<'_>, &[StallCycles])]) -> Vec<Detail> {
    let end = |(c, stalls): &(&Context<'_>, &[StallCycles])| c.rows as usize + stalls.len();
    let all = gather(watchers, launches.iter().map(end).max().unwrap_or(0));
    let of = |own: &(&Context<'_>, &[StallCycles])| {
        let (context, stalls) = *own;
        let rows = context.rows..end(own) as u32;
        let causes = all.causes.iter().filter(|c| rows.contains(&c.pc) && rows.contains(&c.cause));
        let causes = causes.map(|c| Cause { pc: c.pc - rows.start, cause: c.cause - rows.start, ..*c });
        let spans = all.spans.iter().filter(|s| rows.contains(&s.pc));
        let mut detail = Detail {
            work: all.work[rows.start as usize..rows.end as usize].to_vec(),
            causes: causes.collect(),
            spans: spans.map(|s| Span { pc: s.pc - rows.start, ..*s }).collect(),
            timeline: all.timeline.clone(),
            ..Detail::default()
        };
        add_waits(&mut detail, context, stalls);
        detail
    };
    launches.iter().map(of).collect()
}

/// What all SMs saw of so many instructions.
fn gather(watchers: Vec<Box<Watcher>>, instructions: usize) -> Detail {
    let mut detail = Detail::default();
    let (mut buckets, mut seen) = (Vec::new(), watch::Seen::with_room(instructions));
    for mut watcher in watchers {
        let Some(recorder) = &mut watcher.recorder else { continue };
        buckets.push(recorder.finish(&mut seen));
        detail.spans.append(&mut recorder.spans);
    }
    // Those of a warp slot come in the order of time.
    detail.spans.sort_by_key(|s| (s.sm, s.warp));
    debug_assert!(detail.spans.is_sorted());
    detail.timeline = watch::put_together(buckets, &seen.states);
    detail.work = seen.work().collect();
    detail.causes = seen.causes.list();
    detail
}

/// Waits of fixed length follow from the code.
fn add_waits(detail: &mut Detail, context: &Context<'_>, stalls: &[StallCycles]) {
    for (pc, producer) in watch::producers(&context.code, &context.image).into_iter().enumerate() {
        let cycles = stalls.get(pc).map_or(0, |row| row[Stall::Wait as usize]);
        if let Some(cause) = producer.filter(|_| cycles > 0) {
            let count = stalls[pc][Stall::Selected as usize];
            let pc = pc as u32;
            detail.causes.push(Cause { pc, reason: Stall::Wait, link: Link::Register, cause, cycles, count });
        }
    }
    detail.causes.sort_by_key(|c| (c.pc, std::cmp::Reverse(c.cycles), c.reason, c.link, c.cause));
}

/// The same for cycles by reason.
pub fn fold_stalls(stalls: &mut Vec<StallCycles>, own: usize, origin: impl Fn(u32) -> u32) {
    for pc in own..stalls.len() {
        let row = std::mem::take(&mut stalls[pc]);
        if let Some(sum) = stalls.get_mut(origin(pc as u32) as usize) {
            sum.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
        }
    }
    stalls.truncate(own);
}

/// What was seen of code that was made while the launch ran becomes that of the instructions that it comes from.
pub fn fold(detail: &mut Detail, own: usize, origin: impl Fn(u32) -> u32) {
    for pc in own..detail.work.len() {
        let work = std::mem::take(&mut detail.work[pc]);
        if let Some(sum) = detail.work.get_mut(origin(pc as u32) as usize) {
            sum.add(&work);
        }
    }
    detail.work.truncate(own);
    for cause in &mut detail.causes {
        (cause.pc, cause.cause) = (origin(cause.pc), origin(cause.cause));
    }
    detail.spans.iter_mut().for_each(|s| s.pc = origin(s.pc));
    // Causes that are one now.
    detail.causes.sort_by_key(|c| (c.pc, c.reason, c.link, c.cause));
    detail.causes.dedup_by(|b, a| {
        let is_same = (a.pc, a.reason, a.link, a.cause) == (b.pc, b.reason, b.link, b.cause);
        if is_same {
            (a.cycles, a.count) = (a.cycles + b.cycles, a.count + b.count);
        }
        is_same
    });
    detail.causes.sort_by_key(|c| (c.pc, std::cmp::Reverse(c.cycles), c.reason, c.link, c.cause));
}

/// What memory did so far, at some cycles of a launch.
#[derive(Clone, Serialize, Deserialize)]
pub struct Traffic {
    start: Cycle,
    /// Cycles between two looks: more in a long launch.
    every: u64,
    next: Cycle,
    counts: Vec<(u64, Counters)>,
}

/// Looks that are kept.
const LOOKS: usize = 1024;
/// Cycles between the first looks.
const FIRST: u64 = 16;

impl Traffic {
    pub fn new(start: Cycle) -> Traffic {
        Traffic { start, every: FIRST, next: start, counts: Vec::new() }
    }

    pub fn is_due(&self, now: Cycle) -> bool {
        now >= self.next
    }

    pub fn note(&mut self, now: Cycle, counters: Counters) {
        self.counts.push((now - self.start, counters));
        if self.counts.len() == LOOKS {
            let mut n = 0;
            self.counts.retain(|_| {
                n += 1;
                n % 2 == 0
            });
            self.every *= 2;
        }
        self.next = now + self.every;
    }

    /// Fills in a timeline.
    pub fn finish(mut self, cycles: u64, counters: Counters, timeline: &mut Timeline) {
        self.counts.retain(|(at, _)| *at < cycles);
        self.counts.push((cycles, counters));
        watch::traffic(timeline, &self.counts);
    }
}
