//! What a pass did to which line, for passes that do not say so themselves: the function before it and after it compared.

use super::Remark;
use ir::{Block, Function, LocId, Op, Terminator};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem::discriminant;

/// What a function held.
pub struct Snapshot {
    /// Operation, line and block by instruction.
    insts: HashMap<usize, (Op, LocId, Block)>,
    /// Lines of branches.
    branches: Vec<LocId>,
}

impl Snapshot {
    pub fn of(f: &Function) -> Snapshot {
        let mut insts = HashMap::new();
        let mut branches = Vec::new();
        for &b in &f.layout {
            let data = f.block(b);
            for &i in &data.insts {
                insts.insert(i.index(), (f.inst(i).op, f.inst(i).loc, b));
            }
            if is_branch(&data.term) {
                branches.push(data.term_loc);
            }
        }
        Snapshot { insts, branches }
    }

    /// Adds what is different now to the remarks.
    pub fn explain(&self, f: &Function, pass: &'static str, remarks: &mut Vec<Remark>) {
        let after = Snapshot::of(f);
        let kept: HashSet<Block> = f.layout.iter().copied().collect();
        let mut lines: BTreeMap<LocId, Changes> = BTreeMap::new();
        for (i, &(op, loc, block)) in &self.insts {
            // Constants come and go without anybody having written them.
            if matches!(op, Op::Const(_)) {
                continue;
            }
            let changes = lines.entry(loc).or_default();
            match after.insts.get(i) {
                None | Some((Op::Const(_), ..)) => changes.removed += 1,
                Some((new, ..)) if discriminant(new) != discriminant(&op) => changes.changed += 1,
                // A block that is gone was joined to another.
                Some((.., now)) if *now != block && kept.contains(&block) => changes.moved += 1,
                Some(_) => {}
            }
        }
        for (i, (op, loc, _)) in &after.insts {
            if !self.insts.contains_key(i) && !matches!(op, Op::Const(_)) {
                lines.entry(*loc).or_default().added += 1;
            }
        }
        let still: HashSet<LocId> = after.branches.iter().copied().collect();
        for loc in self.branches.iter().filter(|loc| !still.contains(loc)) {
            lines.entry(*loc).or_default().branches += 1;
        }
        for (loc, changes) in lines {
            if let Some(message) = changes.describe(pass).filter(|_| loc != LocId(0)) {
                remarks.push(Remark { function: f.name.clone(), loc, pass, message });
            }
        }
    }
}

fn is_branch(t: &Terminator) -> bool {
    matches!(t, Terminator::Branch { .. } | Terminator::Switch { .. })
}

/// What happened to the operations of a line.
#[derive(Default)]
struct Changes {
    removed: usize,
    changed: usize,
    moved: usize,
    added: usize,
    branches: usize,
}

impl Changes {
    fn describe(&self, pass: &str) -> Option<String> {
        let count = |n: usize| if n == 1 { "one operation".to_owned() } else { format!("{n} operations") };
        let mut parts = Vec::new();
        match (self.removed, self.added) {
            (0, 0) => {}
            (0, added) => parts.push(format!("{} added", count(added))),
            (_, 0) => parts.push(reason(pass).to_owned()),
            (_, added) => parts.push(format!("replaced by {}", count(added))),
        }
        if self.changed > 0 {
            parts.push("simplified".to_owned());
        }
        if self.moved > 0 {
            parts.push("moved to another block".to_owned());
        }
        if self.branches > 0 {
            parts.push("branch removed".to_owned());
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Why a pass removes things.
fn reason(pass: &str) -> &'static str {
    match pass {
        "fold_constants" => "computed while compiling",
        "remove_dead_code" => "removed: nothing needs it",
        "eliminate_common_subexpressions" => "removed: an equal value was computed before",
        "merge_loads" => "part of the vector load of a neighbour",
        _ => "removed",
    }
}

/// A pass's name for people.
pub fn title(pass: &str) -> String {
    match pass {
        "contract" => "fuse products and sums".into(),
        "expand_approx" => "expand approximations".into(),
        "reduce_float_inductions" => "reduce float products in loops".into(),
        "simplify_cfg" => "simplify branches".into(),
        "unroll" => "unroll loops".into(),
        _ => pass.replace('_', " "),
    }
}
