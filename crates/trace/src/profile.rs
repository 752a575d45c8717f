//! A profiled launch: its code with what every instruction cost, why, and where that stands in PTX and source.

use crate::metric::Section;
use crate::record::Form;
use crate::stall::{STALLS, Stall, StallCycles};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A profiled launch.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Profile {
    pub kernel: String,
    pub machine: Machine,
    pub launch: Launch,
    /// From the launch's command to its completion.
    pub cycles: u64,
    /// What users of Nsight Compute know, in its order.
    pub sections: Vec<Section>,
    /// Source files that the code comes from.
    pub files: Vec<Text>,
    /// The PTX text; no lines where the program came as an image.
    pub ptx: Text,
    /// Where the module's code lies: the program counters of records are offsets from here.
    pub code_base: u64,
    pub code: Vec<Instruction>,
    pub causes: Vec<Cause>,
    pub timeline: Timeline,
    /// What single warps did when, for those SMs that were watched closely.
    pub spans: Vec<Span>,
    /// What trace cells collected, if they were asked to.
    pub samples: Option<Samples>,
    /// Versions of code that were made while it ran. In trace files they are a chunk of their own.
    #[serde(skip)]
    pub versions: Vec<Version>,
}

/// A version of code that was made while a launch ran. What it cost is counted where its instructions come from.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Version {
    pub number: u32,
    /// The block that it stands for, and the instruction that this begins with.
    pub block: u32,
    pub entry: u32,
    /// How often the block had been optimized.
    pub level: u32,
    /// Cycles since the launch began when it was asked for.
    pub at: u64,
    pub instructions: u32,
    pub assumptions: Vec<String>,
    /// Checks of these, and those that failed.
    pub checks: u64,
    pub failures: u64,
    /// Sets of threads that ran it, and that gave it up.
    pub taken: u64,
    pub given_up: u64,
    /// Executions, cycles of one, and cycles of one of the original.
    pub executions: u64,
    pub cycles: u64,
    pub cycles_before: u64,
}

/// The machine that ran it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the configuration.
    pub name: String,
    pub clock_mhz: u32,
    pub sms: u32,
    pub schedulers: u32,
    /// Warp slots of an SM.
    pub warps: u32,
}

/// Shape of the launch and how it fills an SM.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Launch {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers: u32,
    pub shared_bytes: u32,
    pub ctas_per_sm: u32,
    /// What an SM runs out of first; empty where it is full of warps.
    pub limiter: String,
    /// CTAs of an SM that each resource would allow.
    pub limits: Vec<(String, u32)>,
}

impl Launch {
    pub fn ctas(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    pub fn threads(&self) -> u32 {
        self.block.iter().fold(1, |n, &d| n.saturating_mul(d))
    }
}

/// A text that code comes from.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Text {
    pub name: String,
    /// Its lines; none where the file was not found.
    pub lines: Vec<String>,
}

impl Text {
    pub fn new(name: &str, text: &str) -> Text {
        Text { name: name.to_owned(), lines: text.lines().map(str::to_owned).collect() }
    }

    /// A line by its number, which counts from 1.
    pub fn line(&self, number: u32) -> Option<&str> {
        self.lines.get((number as usize).checked_sub(1)?).map(String::as_str)
    }
}

/// A place in the source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Frame {
    /// Index into [`Profile::files`].
    pub file: u32,
    pub line: u32,
    pub column: u32,
}

/// An instruction and what it cost.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Instruction {
    /// Its number in the module's code.
    pub pc: u32,
    pub text: String,
    pub function: String,
    /// Line of the PTX text, 0 for none.
    pub ptx_line: u32,
    /// Where it stands in the source, innermost first: the others are the calls that were inlined.
    pub frames: Vec<Frame>,
    /// Warp-cycles by reason while it was a warp's next instruction.
    pub stalls: StallCycles,
    pub work: Work,
}

impl Instruction {
    /// Warp-cycles of all reasons.
    pub fn cycles(&self) -> u64 {
        self.stalls.iter().sum()
    }

    /// How often a warp executed it.
    pub fn executed(&self) -> u64 {
        self.stalls[Stall::Selected as usize]
    }
}

/// What an instruction did, counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Work {
    /// Threads that executed it; 0 where they were not counted.
    pub threads: u64,
    /// Requests to the first-level cache or to shared memory.
    pub requests: u64,
    /// Sectors that those looked up in the first-level cache, found there, and would have needed at least.
    pub sectors: u64,
    pub hits: u64,
    pub ideal_sectors: u64,
    /// Passes through the banks of shared memory beyond the first.
    pub conflicts: u64,
}

impl Work {
    pub fn add(&mut self, other: &Work) {
        self.threads += other.threads;
        self.requests += other.requests;
        self.sectors += other.sectors;
        self.hits += other.hits;
        self.ideal_sectors += other.ideal_sectors;
        self.conflicts += other.conflicts;
    }
}

/// What made an instruction wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// The instruction that makes a register it reads.
    Register,
    /// What the last warp at the barrier was held up by longest.
    Barrier,
    /// A store that had to drain.
    Store,
    /// An instruction that took the last room of a queue or a pipe.
    Queue,
    /// The branch that it comes from.
    Branch,
}

impl Link {
    /// What the cause did, to be followed by the instruction.
    pub fn words(self) -> &'static str {
        match self {
            Link::Register => "makes the value",
            Link::Barrier => "held up the last warp at the barrier",
            Link::Store => "stores what has to drain",
            Link::Queue => "filled the queue",
            Link::Branch => "jumps here",
        }
    }
}

/// That an instruction waited for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cause {
    /// The instruction that waited.
    pub pc: u32,
    pub reason: Stall,
    pub link: Link,
    /// The one that it waited for.
    pub cause: u32,
    /// Warp-cycles, and how often.
    pub cycles: u64,
    pub count: u64,
}

/// What a machine tells of a launch beyond its cycles by reason.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Detail {
    /// Where the module's code lay.
    pub code_base: u64,
    /// By instruction.
    pub work: Vec<Work>,
    pub causes: Vec<Cause>,
    pub timeline: Timeline,
    pub spans: Vec<Span>,
}

/// What happened when, in steps of equal length.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// Cycles of a step; 0 where there is no timeline.
    pub step: u64,
    /// For every SM: resident warp-cycles, and instructions issued, of each step.
    pub sms: Vec<Track>,
    /// Warp-cycles by reason of each step, over all SMs.
    pub states: Vec<StallCycles>,
    pub memory: Vec<Traffic>,
}

/// One SM over time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Track {
    pub warp_cycles: Vec<u64>,
    pub issued: Vec<u64>,
}

/// What memory did in a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Traffic {
    pub l1_sectors: u64,
    pub l2_sectors: u64,
    pub l2_hits: u64,
    pub dram_read_bytes: u64,
    pub dram_write_bytes: u64,
}

/// A warp in one state at one instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Span {
    pub sm: u16,
    pub warp: u16,
    /// Since the launch's command.
    pub from: u64,
    pub until: u64,
    pub pc: u32,
    pub reason: Stall,
    pub cta: u64,
}

/// What trace cells collected.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Samples {
    /// What a sample was taken of, in words: `every 32 cycles`.
    pub mode: String,
    pub form: Form,
    /// Records that reached the event buffer, and that were lost on the way.
    pub records: u64,
    pub lost: u64,
    /// How often the program ran for them.
    pub passes: u32,
    /// Cycles that collecting them cost.
    pub extra_cycles: i64,
    /// By instruction and reason.
    pub counts: Vec<[u32; STALLS]>,
}

/// Costs of a line of PTX or source.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Line {
    pub stalls: StallCycles,
    pub executed: u64,
    pub work: Work,
    /// Instructions that come from it.
    pub instructions: Vec<u32>,
}

impl Line {
    pub fn cycles(&self) -> u64 {
        self.stalls.iter().sum()
    }

    fn add(&mut self, i: &Instruction) {
        self.stalls.iter_mut().zip(&i.stalls).for_each(|(sum, n)| *sum += n);
        self.executed += i.executed();
        self.work.add(&i.work);
        self.instructions.push(i.pc);
    }

    /// Reasons that took time, the longest first.
    pub fn reasons(&self) -> Vec<(Stall, u64)> {
        ranked(&self.stalls)
    }
}

/// Reasons that took time, the longest first, those of one length in their order.
pub fn ranked(stalls: &StallCycles) -> Vec<(Stall, u64)> {
    let mut list: Vec<(Stall, u64)> =
        Stall::ALL.into_iter().map(|s| (s, stalls[s as usize])).filter(|(_, n)| *n > 0).collect();
    list.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
    list
}

impl Profile {
    /// Warp-cycles by reason, over all instructions.
    pub fn stalls(&self) -> StallCycles {
        let mut sum = [0; STALLS];
        for i in &self.code {
            sum.iter_mut().zip(&i.stalls).for_each(|(sum, n)| *sum += n);
        }
        sum
    }

    /// Warp-cycles of all instructions.
    pub fn warp_cycles(&self) -> u64 {
        self.code.iter().map(Instruction::cycles).sum()
    }

    /// Warp instructions executed.
    pub fn executed(&self) -> u64 {
        self.code.iter().map(Instruction::executed).sum()
    }

    /// A metric's value.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.sections.iter().flat_map(|s| &s.metrics).find(|m| m.name == name).map(|m| m.value)
    }

    pub fn seconds(&self) -> f64 {
        self.cycles as f64 / (f64::from(self.machine.clock_mhz.max(1)) * 1e6)
    }

    /// Costs by source line: the innermost where functions were inlined.
    pub fn source_lines(&self) -> BTreeMap<(u32, u32), Line> {
        let mut lines: BTreeMap<(u32, u32), Line> = BTreeMap::new();
        for i in &self.code {
            if let Some(f) = i.frames.first() {
                lines.entry((f.file, f.line)).or_default().add(i);
            }
        }
        lines
    }

    /// Costs by line of the PTX text; 0 for code that comes from none.
    pub fn ptx_lines(&self) -> BTreeMap<u32, Line> {
        let mut lines: BTreeMap<u32, Line> = BTreeMap::new();
        for i in &self.code {
            lines.entry(i.ptx_line).or_default().add(i);
        }
        lines
    }

    /// The instruction of a number.
    pub fn at(&self, pc: u32) -> Option<&Instruction> {
        let n = self.code.partition_point(|i| i.pc < pc);
        self.code.get(n).filter(|i| i.pc == pc)
    }

    /// The instruction at an address, wherever the module was placed.
    pub fn at_address(&self, address: u64) -> Option<&Instruction> {
        let offset = address.checked_sub(self.code_base)?;
        let pc = u32::try_from(offset / u64::from(crate::record::INSTRUCTION_BYTES)).ok()?;
        self.at(pc)
    }

    /// Where an instruction stands, in words: the source line, else the PTX line, else its address.
    pub fn place(&self, i: &Instruction) -> String {
        match (i.frames.first(), i.ptx_line) {
            (Some(f), _) => format!("{}:{}", self.file_name(f.file), f.line),
            (None, 0) => format!("{:#06x}", i.pc * crate::record::INSTRUCTION_BYTES),
            (None, line) => format!("PTX {line}"),
        }
    }

    /// The last part of a file's name.
    pub fn file_name(&self, file: u32) -> &str {
        let name = self.files.get(file as usize).map_or("?", |f| f.name.as_str());
        name.rsplit(['/', '\\']).next().unwrap_or(name)
    }

    /// What an instruction waited for, the longest first.
    pub fn causes_of(&self, pc: u32) -> Vec<Cause> {
        let mut list: Vec<Cause> = self.causes.iter().copied().filter(|c| c.pc == pc).collect();
        list.sort_by_key(|c| (std::cmp::Reverse(c.cycles), c.reason, c.cause));
        list
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::metric::Unit;

    /// A small launch that has something of everything.
    pub fn sample() -> Profile {
        let mut stalls = vec![[0u64; STALLS]; 4];
        for (pc, reason, n) in [
            (0, Stall::Selected, 64),
            (0, Stall::NoInstruction, 200),
            (1, Stall::Selected, 64),
            (1, Stall::ImcMiss, 40),
            (2, Stall::Selected, 64),
            (2, Stall::LongScoreboard, 30_000),
            (2, Stall::NotSelected, 100),
            (3, Stall::Selected, 64),
            (3, Stall::Drain, 900),
        ] {
            stalls[pc][reason as usize] = n;
        }
        let texts = ["S2R R0, SR_TID.X", "LDG.E R2, [R4+0x0]", "FFMA R2, R2, R3, R5", "EXIT"];
        let code: Vec<Instruction> = (0..4)
            .map(|n| Instruction {
                pc: n,
                text: texts[n as usize].to_owned(),
                function: "scale".to_owned(),
                ptx_line: 10 + n,
                frames: match n {
                    2 => vec![Frame { file: 1, line: 3, column: 1 }, Frame { file: 0, line: 2, column: 5 }],
                    _ => vec![Frame { file: 0, line: 1 + n / 2, column: 1 }],
                },
                stalls: stalls[n as usize],
                work: match n {
                    1 => Work {
                        threads: 2048,
                        requests: 64,
                        sectors: 2048,
                        hits: 0,
                        ideal_sectors: 256,
                        conflicts: 0,
                    },
                    _ => Work { threads: 2048, ..Work::default() },
                },
            })
            .collect();
        let steps = 8;
        Profile {
            kernel: "scale".to_owned(),
            machine: Machine { name: "tiny".to_owned(), clock_mhz: 1000, sms: 1, schedulers: 1, warps: 16 },
            launch: Launch {
                grid: [4, 1, 1],
                block: [512, 1, 1],
                registers: 16,
                shared_bytes: 0,
                ctas_per_sm: 1,
                limiter: "registers".to_owned(),
                limits: vec![("warps".to_owned(), 1), ("registers".to_owned(), 1)],
            },
            cycles: 4000,
            sections: vec![
                Section::new("Speed of light").row("cycles", "Elapsed cycles", Unit::Cycles, 4000.0).row(
                    "memory_throughput_pct",
                    "Memory throughput",
                    Unit::Percent,
                    60.0,
                ),
                Section::new("Launch and occupancy")
                    .row("theoretical_occupancy_pct", "Theoretical occupancy", Unit::Percent, 25.0)
                    .row("achieved_occupancy_pct", "Achieved occupancy", Unit::Percent, 24.0)
                    .row("waves", "Waves of CTAs", Unit::Number, 4.0),
                Section::new("Memory workload").row("l1_sectors", "L1 sectors", Unit::Count, 2048.0).row(
                    "l1_hit_pct",
                    "L1 hit rate",
                    Unit::Percent,
                    0.0,
                ),
            ],
            files: vec![
                Text::new("dir/scale.cu", "__global__ void scale(float *x) {\n  *x = twice(*x);\n}"),
                Text::new("inline.h", "\n\nreturn 2 * x;"),
            ],
            ptx: Text::new("scale.ptx", &"// text <&> \"quoted\"\n".repeat(14)),
            versions: vec![Version {
                number: 0,
                block: 1,
                entry: 1,
                level: 1,
                at: 900,
                instructions: 3,
                assumptions: vec!["R2 is 0x7 <always>".to_owned()],
                checks: 60,
                failures: 2,
                taken: 4,
                given_up: 1,
                executions: 16,
                cycles: 70,
                cycles_before: 90,
            }],
            code_base: 0x1000,
            code,
            causes: vec![
                Cause {
                    pc: 2,
                    reason: Stall::LongScoreboard,
                    link: Link::Register,
                    cause: 1,
                    cycles: 30_000,
                    count: 64,
                },
                Cause { pc: 3, reason: Stall::Drain, link: Link::Store, cause: 1, cycles: 900, count: 4 },
            ],
            timeline: Timeline {
                step: 500,
                sms: vec![Track { warp_cycles: vec![3000; steps], issued: vec![32; steps] }],
                states: vec![stalls[2]; steps],
                memory: vec![
                    Traffic {
                        l1_sectors: 256,
                        l2_sectors: 256,
                        l2_hits: 10,
                        dram_read_bytes: 8192,
                        dram_write_bytes: 0
                    };
                    steps
                ],
            },
            spans: vec![
                Span { sm: 0, warp: 0, from: 10, until: 20, pc: 0, reason: Stall::NoInstruction, cta: 0 },
                Span { sm: 0, warp: 0, from: 20, until: 500, pc: 2, reason: Stall::LongScoreboard, cta: 0 },
                Span { sm: 0, warp: 1, from: 12, until: 480, pc: 2, reason: Stall::LongScoreboard, cta: 0 },
            ],
            samples: None,
        }
    }

    #[test]
    fn lines_add_up() {
        let p = sample();
        let lines = p.source_lines();
        assert_eq!(lines.keys().copied().collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 3)]);
        assert_eq!(lines.values().map(Line::cycles).sum::<u64>(), p.warp_cycles());
        assert_eq!(lines[&(1, 3)].reasons()[0], (Stall::LongScoreboard, 30_000));
        assert_eq!(p.ptx_lines().len(), 4);
        assert_eq!(p.executed(), 256);
        assert_eq!(p.at_address(0x1020).map(|i| i.pc), Some(2));
        assert_eq!(p.at_address(0xfff), None);
        assert_eq!(p.place(&p.code[2]), "inline.h:3");
        assert_eq!(p.causes_of(2)[0].cause, 1);
    }
}
