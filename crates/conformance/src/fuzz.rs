//! The entry functions of the fuzz targets, also run on seeded mutations by a test. None may panic or run without end.

use driver::problem::Source;
use driver::{Checkpoint, CompileOptions, Device, Dim, LaunchOptions, Module, Preempting, Session, Timing};
use machine::front::Front;
use machine::ports::CtaEnd;
use machine::{Config, Cycle};
use sha2::{Digest, Sha256};
use std::sync::atomic::AtomicBool;

/// Enough for any small kernel to end, and little enough to fuzz.
const INSTRUCTIONS: u64 = 20_000;

/// PTX text: parse, check, lower, compile; what compiles is also run on a small buffer.
pub fn ptx_text(bytes: &[u8]) {
    let source = Source::new("fuzz.ptx", bytes);
    if let Ok(image) = driver::compile(&source, &CompileOptions::default()) {
        run(image);
    }
}

/// Image bytes, as they are and with length and checksum made right, without which nearly no change gets past the
/// header: what loads is run.
pub fn image(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), signed(bytes)] {
        let source = Source::new("fuzz.wli", bytes);
        if driver::Image::is_image(&source.bytes)
            && let Ok(image) = driver::compile(&source, &CompileOptions::default())
        {
            run(image);
        }
    }
}

/// Trace bytes, as they are and with checksums made right: what can be read is shown in every form.
pub fn trace(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), signed_chunks(bytes)] {
        let Ok(launches) = ::trace::file::read(&bytes) else { continue };
        for launch in &launches {
            let p = &launch.profile;
            let style = ::trace::export::text::Style { width: 100, colour: true, lines: 5 };
            let _ = ::trace::export::text::view(p, style);
            let _ = ::trace::export::html::page("fuzz", &[(p, Some(p))]);
            let _ = ::trace::export::perfetto::trace(p, None);
            let _ = ::trace::export::pprof::file(p);
            let _ = ::trace::export::flamegraph::svg(p);
            let _ = ::trace::export::csv::table(p);
            let _ = ::trace::export::json::value(p);
        }
    }
}

/// Bytes of a checkpoint, as they are and with lengths and checksum made right: what can be read is restored, and not run.
pub fn checkpoint(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), signed_checkpoint(bytes)] {
        let Ok(checkpoint) = Checkpoint::read("fuzz".into(), Box::new(std::io::Cursor::new(bytes))) else {
            continue;
        };
        let Ok(session) = Session::reopen(&checkpoint) else { continue };
        if session.adopt(&checkpoint).is_err() {
            continue;
        }
        let cancel = AtomicBool::new(true);
        let options = LaunchOptions {
            threads: 1,
            cancel: Some(&cancel),
            timing: Some(Timing { resume: Some(checkpoint.machine()), ..checkpoint.timing() }),
            ..LaunchOptions::default()
        };
        // The outcome does not matter, only that there is one.
        if checkpoint.file().has_streams() {
            let _ = session.run_streams(&options, &Preempting::default());
        } else {
            let _ = session.launch(checkpoint.done().finished.len(), &options);
        }
    }
}

/// A checkpoint with the length of its first part and its checksum made right.
fn signed_checkpoint(bytes: &[u8]) -> Vec<u8> {
    use driver::checkpoint::file::{CHECKSUM, HEADER};
    let mut out = bytes.to_vec();
    let Some(body) = bytes.len().checked_sub(HEADER + CHECKSUM) else { return out };
    let length = |at: usize| bytes[at..at + 8].iter().rev().fold(0u64, |n, &b| n << 8 | u64::from(b));
    let others = length(28).saturating_add(length(36));
    out[20..28].copy_from_slice(&(body as u64).saturating_sub(others).to_le_bytes());
    let end = bytes.len() - CHECKSUM;
    let hash = Sha256::digest(&out[..end]);
    out[end..].copy_from_slice(&hash);
    out
}

/// The chunks of a trace with their checksums made right, as far as their lengths are.
fn signed_chunks(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let mut at = 8;
    while let Some(head) = out.get(at..at + 16) {
        let length = u64::from_le_bytes([4, 5, 6, 7, 8, 9, 10, 11].map(|n| head[n])) as usize;
        let Some(body) = at.checked_add(16).and_then(|from| out.get(from..from.checked_add(length)?)) else {
            break;
        };
        let sum = body.iter().fold(0x811c_9dc5u32, |h, &b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
        out[at + 12..at + 16].copy_from_slice(&sum.to_le_bytes());
        at += 16 + length;
    }
    out
}

fn signed(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    if let Some((header, body)) = out.split_at_mut_checked(20) {
        let checksum = body.iter().fold(0x811c_9dc5u32, |h, &b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
        header[8..16].copy_from_slice(&(body.len() as u64).to_le_bytes());
        header[16..20].copy_from_slice(&checksum.to_le_bytes());
    }
    out
}

/// Launches every entry with zeros and a buffer's address for arguments. Faults are fine, panics are not.
pub fn run(image: driver::Image) {
    // Whatever a damaged program declares, it must not take the host's memory.
    let wanted: u64 = image.variables.iter().map(|v| v.size).fold(0, u64::saturating_add);
    let Ok(device) = Device::with_memory(64 << 20) else { return };
    if wanted > 32 << 20 {
        return;
    }
    let Ok(buffer) = device.alloc(4096) else { return };
    let entries: Vec<(String, Vec<usize>)> = image
        .entries()
        .map(|f| (f.name.clone(), f.params.iter().map(|p| p.size as usize).collect()))
        .collect();
    let Ok(module) = Module::load(&device, image) else { return };
    let dim = Dim { grid: [2, 1, 1], block: [40, 1, 1], shared_bytes: 256 };
    let options =
        LaunchOptions { threads: 1, max_instructions: Some(INSTRUCTIONS), ..LaunchOptions::default() };
    for (name, sizes) in entries.iter().take(8) {
        let args: Vec<Vec<u8>> = sizes
            .iter()
            .map(|&size| if size == 8 { buffer.to_le_bytes().to_vec() } else { vec![1; size] })
            .collect();
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        // The outcome does not matter, only that there is one.
        let _ = module.launch(&device, name, dim, &args, &options);
    }
}

/// Exchange points after which commands have done enough.
const EXCHANGES: u32 = 300;

/// Bytes as words of a push buffer: decoded, scheduled, and their CTAs placed on SMs that end each after a while.
pub fn commands(bytes: &[u8]) {
    let Ok(config) = Config::preset("tiny") else { return };
    let words: Vec<u32> = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .take(config.host.push_buffer_words as usize)
        .copied()
        .map(u32::from_le_bytes)
        .collect();
    let mut front = Front::new(&config);
    if front.submit(Cycle(0), &words).is_err() {
        return;
    }
    let (mut until, mut running) = (Cycle(0), Vec::<CtaEnd>::new());
    for _ in 0..EXCHANGES {
        let next = running.iter().map(|end| end.at).chain(front.next_event()).min();
        let Some(next) = next else { return };
        until = until.later(next) + 1;
        running.sort_by_key(|end| (end.at, end.sm, end.linear));
        let ends: Vec<CtaEnd> = running.drain(..running.partition_point(|end| end.at < until)).collect();
        let mut starts = Vec::new();
        if front.advance(until, &ends, &mut starts).is_err() {
            return;
        }
        running.extend(starts.iter().map(|s| CtaEnd {
            at: s.at + 40 + s.linear % 100,
            sm: s.sm,
            launch: s.launch,
            linear: s.linear,
            ..CtaEnd::default()
        }));
    }
}

/// A deterministic source of mutations.
#[derive(Clone, Debug)]
pub struct Mutator(u64);

impl Mutator {
    pub fn new(seed: u64) -> Mutator {
        Mutator(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        driver::init::splitmix(0x57ee1, self.0)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// A copy with one to four changes: bytes flipped, cut out, doubled, or replaced by a piece of `other`.
    pub fn mutate(&mut self, bytes: &[u8], other: &[u8]) -> Vec<u8> {
        let mut out = bytes.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(out.len());
            let length = self.below(24).min(out.len() - at);
            match self.below(6) {
                0 if !out.is_empty() => out[at] ^= 1 << self.below(8),
                1 if !out.is_empty() => out[at] = self.next() as u8,
                2 => drop(out.drain(at..at + length)),
                3 => {
                    let piece = out[at..at + length].to_vec();
                    let to = self.below(out.len());
                    out.splice(to..to, piece);
                }
                4 if !other.is_empty() => {
                    let from = self.below(other.len());
                    let piece = other[from..(from + length).min(other.len())].to_vec();
                    out.splice(at..at + length, piece);
                }
                _ => out.truncate(out.len() - length / 4),
            }
        }
        out
    }
}
