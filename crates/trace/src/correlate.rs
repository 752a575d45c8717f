//! From numbers by instruction to machine code, PTX and source lines.

use crate::profile::{Frame, Instruction, Text, Work};
use crate::record::Record;
use crate::stall::{STALLS, StallCycles};
use isa::image::Image;
use isa::{Op, Pc};
use std::collections::BTreeSet;

/// A module's code at its place in memory: the relocation of program counters.
#[derive(Clone, Copy, Debug)]
pub struct Module<'a> {
    pub base: u64,
    pub image: &'a Image,
}

impl Module<'_> {
    fn contains(&self, address: u64) -> bool {
        let bytes = self.image.code.len() as u64 * u64::from(crate::record::INSTRUCTION_BYTES);
        (self.base..self.base + bytes).contains(&address)
    }
}

/// The module that holds an address, and the instruction's number in it.
pub fn locate<'a>(modules: &'a [Module<'a>], address: u64) -> Option<(&'a Module<'a>, Pc)> {
    let module = modules.iter().find(|m| m.contains(address))?;
    let pc = (address - module.base) / u64::from(crate::record::INSTRUCTION_BYTES);
    Some((module, Pc(pc as u32)))
}

/// Functions that a kernel can reach by calls, itself among them: by index. All, where it calls through a pointer.
pub fn reachable(image: &Image, kernel: &str) -> BTreeSet<usize> {
    let index_at = |pc: u32| image.functions.iter().position(|f| f.start <= pc && pc < f.end);
    let mut found = BTreeSet::new();
    let mut rest: Vec<usize> = image.functions.iter().position(|f| f.name == kernel).into_iter().collect();
    while let Some(n) = rest.pop() {
        if !found.insert(n) {
            continue;
        }
        let f = &image.functions[n];
        for inst in image.code.get(f.start as usize..f.end as usize).unwrap_or_default() {
            if inst.op == Op::Callx {
                rest.extend((0..image.functions.len()).filter(|&k| !image.functions[k].is_entry));
            }
            rest.extend(inst.target().and_then(index_at));
        }
    }
    found
}

/// The instructions that a kernel can execute, with their costs. Costs past the end of a list are none.
pub fn code(image: &Image, kernel: &str, stalls: &[StallCycles], work: &[Work]) -> Vec<Instruction> {
    let functions = reachable(image, kernel);
    let mut code = Vec::new();
    for (n, inst) in image.code.iter().enumerate() {
        let pc = n as u32;
        let Some(f) = functions.iter().find(|&&f| {
            let f = &image.functions[f];
            f.start <= pc && pc < f.end
        }) else {
            continue;
        };
        let row = image.line_at(Pc(pc));
        code.push(Instruction {
            pc,
            text: inst.to_string(),
            function: image.functions[*f].name.clone(),
            ptx_line: row.map_or(0, |r| r.ptx_line),
            frames: frames(image, row.map_or(0, |r| r.source)),
            stalls: stalls.get(n).copied().unwrap_or([0; STALLS]),
            work: work.get(n).copied().unwrap_or_default(),
        });
    }
    code
}

/// The innermost line of a place, then those that it was inlined into.
fn frames(image: &Image, source: u32) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut next = source;
    while let Some(s) = (next as usize).checked_sub(1).and_then(|n| image.sources.get(n)) {
        frames.push(Frame { file: s.file, line: s.line, column: s.column });
        next = s.inlined_at;
    }
    frames
}

/// The files that an image names, with the text of those that `find` has.
pub fn files(image: &Image, find: impl Fn(&str) -> Option<String>) -> Vec<Text> {
    let text = |name: &String| match find(name) {
        Some(text) => Text::new(name, &text),
        None => Text { name: name.clone(), lines: Vec::new() },
    };
    image.files.iter().map(text).collect()
}

/// Samples by instruction and reason. Records of instructions that the module does not have are counted apart.
pub fn count(records: impl Iterator<Item = Record>, instructions: usize) -> (Vec<[u32; STALLS]>, u64) {
    let mut counts = vec![[0; STALLS]; instructions];
    let mut strangers = 0;
    for record in records {
        match (counts.get_mut(record.instruction() as usize), record.reason()) {
            (Some(row), Some(reason)) => row[reason as usize] += 1,
            _ => strangers += 1,
        }
    }
    (counts, strangers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stall::Stall;
    use isa::Inst;
    use isa::image::{Function, LineRow, SourceLine};

    fn function(name: &str, is_entry: bool, start: u32, end: u32) -> Function {
        Function { is_entry, ..Function::entry(name, start..end, 8) }
    }

    fn image() -> Image {
        Image {
            code: vec![Inst::new(Op::Nop), Inst::new(Op::Exit), Inst::new(Op::Exit)],
            functions: vec![function("one", true, 0, 2), function("two", true, 2, 3)],
            files: vec!["a.cu".into(), "b.h".into()],
            sources: vec![
                SourceLine { file: 0, line: 7, column: 1, inlined_at: 0 },
                SourceLine { file: 1, line: 3, column: 2, inlined_at: 1 },
            ],
            lines: vec![LineRow { pc: 0, ptx_line: 5, source: 2 }, LineRow { pc: 1, ptx_line: 6, source: 1 }],
            ..Image::default()
        }
    }

    #[test]
    fn code_knows_its_lines() {
        let image = image();
        let stalls = [[1; STALLS], [2; STALLS]];
        let code = code(&image, "one", &stalls, &[]);
        assert_eq!(code.len(), 2, "the other kernel's code is not shown");
        let lines: Vec<Vec<(u32, u32)>> =
            code.iter().map(|i| i.frames.iter().map(|f| (f.file, f.line)).collect()).collect();
        assert_eq!(lines, [vec![(1, 3), (0, 7)], vec![(0, 7)]]);
        assert_eq!((code[1].ptx_line, code[1].stalls[3], code[0].text.as_str()), (6, 2, "NOP"));
        let files = files(&image, |name| (name == "a.cu").then(|| "x\ny".to_owned()));
        assert_eq!((files[0].lines.len(), files[1].lines.len()), (2, 0));
    }

    #[test]
    fn addresses_are_relocated() {
        let image = image();
        let modules = [Module { base: 0x100, image: &image }, Module { base: 0x1000, image: &image }];
        let found = |a| locate(&modules, a).map(|(m, pc)| (m.base, pc.0));
        assert_eq!(found(0x110), Some((0x100, 1)));
        assert_eq!(found(0x102f), Some((0x1000, 2)));
        assert_eq!(found(0x1030), None);
    }

    #[test]
    fn samples_are_counted_by_the_first_reason() {
        let record = |pc, stalls| Record { pc, stalls, ..Record::default() };
        let wait = 1 << Stall::Wait as u32;
        let records = [record(16, wait), record(16, wait | 1 << 21), record(999, wait), record(0, 0)];
        let (counts, strangers) = count(records.into_iter(), 2);
        assert_eq!(counts[1][Stall::Wait as usize], 2);
        assert_eq!(strangers, 2);
    }
}
