//! Registers that a kernel may read before it writes them: the ones that must be zeros when a warp starts.

use isa::{Inst, Op, Operand, PredUse, UReg};

/// A set of registers: general ones, then uniform ones.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Set([u64; 8]);

/// Where uniform registers begin in a set.
const UNIFORM: u32 = 256;

impl Set {
    fn put(&mut self, from: u32, first: u8, count: u32, on: bool) {
        for r in from + u32::from(first)..from + (u32::from(first) + count).min(256) {
            let bit = 1 << (r % 64);
            let word = &mut self.0[(r / 64) as usize];
            *word = if on { *word | bit } else { *word & !bit };
        }
    }

    fn join(&mut self, other: Set) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a |= b;
        }
    }
}

/// Whether the instruction gives its destination a value in every lane that comes by.
fn defines(i: &Inst) -> bool {
    i.guard == PredUse::TRUE && !matches!(i.op, Op::Bar | Op::Syscall)
}

/// What may be read before it is written.
#[derive(PartialEq, Eq, Debug)]
pub struct ReadFirst {
    pub registers: Vec<u8>,
    pub uniforms: Vec<u8>,
}

/// Uniform registers that an instruction reads: first and how many. Those of addresses can be pairs.
fn uniform_reads(i: &Inst) -> impl Iterator<Item = (UReg, u32)> {
    let operands = i.op.row().roles.iter().filter_map(|&role| match i.source(role)?.operand {
        Operand::UReg(r) => Some((r, i.width(role))),
        _ => None,
    });
    operands.chain(i.address_ureg().map(|r| (r, 2))).filter(|(r, _)| *r != UReg::URZ)
}

/// Registers live at the start of a function's code; `None` where calls and computed jumps hide the flow.
pub fn registers(code: &[Inst], start: u32, end: u32) -> Option<ReadFirst> {
    let body = &code[start as usize..end as usize];
    if body.iter().any(|i| matches!(i.op, Op::Call | Op::Callx | Op::Brx | Op::Ret)) {
        return None;
    }
    let inside = |pc: u32| (start..end).contains(&pc);
    if body.iter().any(|i| i.target().is_some_and(|t| !inside(t))) {
        return None;
    }
    // Live sets in front of each instruction, found backward until nothing changes.
    let mut live = vec![Set::default(); body.len() + 1];
    loop {
        let mut changed = false;
        for n in (0..body.len()).rev() {
            let i = &body[n];
            let mut set = Set::default();
            let always = i.guard == PredUse::TRUE;
            let ends = always && (matches!(i.op, Op::Exit | Op::Bra));
            if !ends {
                set.join(live[n + 1]);
            }
            if let (Op::Bra, Some(t)) = (i.op, i.target()) {
                set.join(live[(t - start) as usize]);
            }
            if let (true, Some((r, count))) = (defines(i), i.writes()) {
                set.put(0, r.0, count, false);
            }
            if let (true, Some((r, count))) = (defines(i), i.writes_uniform()) {
                set.put(UNIFORM, r.0, count, false);
            }
            for (r, count) in i.reads() {
                set.put(0, r.0, count, true);
            }
            for (r, count) in uniform_reads(i) {
                set.put(UNIFORM, r.0, count, true);
            }
            if set != live[n] {
                live[n] = set;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    let has = |r: u32| live[0].0[(r / 64) as usize] >> (r % 64) & 1 != 0;
    let list = |from: u32| (0..=254u8).filter(|&r| has(from + u32::from(r))).collect();
    Some(ReadFirst { registers: list(0), uniforms: list(UNIFORM) })
}

#[cfg(test)]
mod tests {
    use super::ReadFirst;

    fn read_first(lines: &[&str]) -> Option<ReadFirst> {
        let code: Vec<_> = lines.iter().map(|l| isa::text::parse(l).expect("an instruction")).collect();
        super::registers(&code, 0, code.len() as u32)
    }

    fn live(lines: &[&str]) -> Option<Vec<u8>> {
        read_first(lines).map(|first| first.registers)
    }

    fn uniforms(lines: &[&str]) -> Option<Vec<u8>> {
        read_first(lines).map(|first| first.uniforms)
    }

    #[test]
    fn reads_before_writes_are_found_along_all_paths() {
        assert_eq!(live(&["MOV R1, R2", "MOV R3, R1", "EXIT"]), Some(vec![2]));
        // A guarded write leaves the old value in some lanes.
        assert_eq!(live(&["@P0 MOV R1, 0x5", "MOV R2, R1", "EXIT"]), Some(vec![1]));
        // Around the loop R4 is read before it is written.
        assert_eq!(
            live(&["IADD3 R5, PT, R4, 0x1, RZ, PT", "MOV R4, R5", "@P0 BRA 0x0", "EXIT"]),
            Some(vec![4])
        );
        assert_eq!(live(&["@P0 BRA 0x2", "MOV R1, 0x1", "MOV R2, R1", "EXIT"]), Some(vec![1]));
        assert_eq!(live(&["CALL R2, 0x1", "EXIT"]), None);
    }

    #[test]
    fn uniform_registers_are_found_like_others() {
        assert_eq!(
            uniforms(&["ULDC UR0, c[0x0][URZ]", "IMAD R0, R0, UR0, R2", "FFMA R0, R0, UR4, R6", "EXIT"]),
            Some(vec![4])
        );
        // Pairs are whole.
        assert_eq!(
            uniforms(&["ULDC.64 UR2, c[0x0][URZ+0x208]", "LDG.E R0, [R2.64+UR2]", "EXIT"]),
            Some(vec![])
        );
        assert_eq!(
            uniforms(&["ULDC UR2, c[0x0][URZ+0x208]", "LDG.E R0, [R2.64+UR2]", "EXIT"]),
            Some(vec![3])
        );
        assert_eq!(uniforms(&["@P0 ULDC UR1, c[0x0][URZ]", "MOV R0, UR1", "EXIT"]), Some(vec![1]));
    }
}
