//! The call graph: what an entry needs on behalf of everything it may call.

use ir::{AddrOf, AtomOp, FuncId, Module, Op, Order, Space, SymbolRef};

/// What one function does and needs by itself.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    pub registers: u32,
    pub frame_bytes: u32,
    pub barriers: u32,
    pub order_dependent: bool,
    pub dynamic_stack: bool,
    pub shared_bytes: u32,
    calls: Vec<FuncId>,
    calls_indirectly: bool,
}

impl Needs {
    /// What the body says; registers and frame come from allocation.
    pub fn of(m: &Module, id: FuncId) -> Needs {
        let f = m.function(id);
        let mut needs = Needs::default();
        let mut used = vec![false; f.values.len()];
        for &b in &f.layout {
            for &i in &f.block(b).insts {
                f.inst_values(i).iter().for_each(|v| used[v.index()] = true);
            }
            f.block(b).term.values().iter().for_each(|v| used[v.index()] = true);
        }
        for &i in f.layout.iter().flat_map(|&b| &f.block(b).insts) {
            let inst = f.inst(i);
            match inst.op {
                Op::Call(c) => needs.calls.push(c),
                Op::CallIndirect => needs.calls_indirectly = true,
                Op::Alloca { .. } => needs.dynamic_stack = true,
                Op::Bar { .. } => {
                    let barrier = inst.args.first().and_then(|&v| f.const_of(v));
                    needs.barriers = needs.barriers.max(barrier.map_or(16, |b| b.min(15) as u32 + 1));
                }
                Op::Atom(a) | Op::Red(a) => {
                    let outside = matches!(a.space, Space::Global | Space::Generic);
                    let result = inst.results.iter().any(|r| used[r.index()]);
                    let float = a.elem.is_float() && a.op == AtomOp::Add;
                    needs.order_dependent |=
                        outside && (result || float || matches!(a.op, AtomOp::Exch | AtomOp::Cas));
                }
                Op::Load(a) => {
                    let waits = matches!(
                        a.order,
                        Order::Volatile | Order::Relaxed | Order::Acquire | Order::Sc | Order::AcqRel
                    );
                    needs.order_dependent |= waits && matches!(a.space, Space::Global | Space::Generic);
                }
                // Which addresses threads get depends on who comes first.
                Op::Syscall(s) => {
                    needs.order_dependent |= !matches!(s, ir::Syscall::Vprintf | ir::Syscall::AssertFail);
                }
                _ => {}
            }
        }
        needs.calls.sort();
        needs.calls.dedup();
        needs
    }
}

/// The functions that have bodies, each after those it calls as far as there is such an order.
pub fn callees_first(m: &Module) -> Vec<FuncId> {
    let callees = |f: FuncId| {
        let f = m.function(f);
        let insts = f.layout.iter().flat_map(|&b| &f.block(b).insts);
        insts.filter_map(|&i| if let Op::Call(c) = f.inst(i).op { Some(c) } else { None }).collect::<Vec<_>>()
    };
    let mut seen = vec![false; m.functions.len()];
    let mut order = Vec::new();
    for root in (0..m.functions.len()).map(FuncId::new) {
        // The functions on the way, each with what is left of its callees.
        let mut path: Vec<(FuncId, Vec<FuncId>)> = Vec::new();
        let mut next = Some(root);
        loop {
            match next.take() {
                Some(f) if m.function(f).is_declaration || std::mem::replace(&mut seen[f.index()], true) => {}
                Some(f) => path.push((f, callees(f))),
                None => {}
            }
            let Some((f, rest)) = path.last_mut() else { break };
            let f = *f;
            next = rest.pop();
            if next.is_none() {
                order.push(f);
                path.pop();
            }
        }
    }
    order
}

/// What each function needs with all it may call: the maxima, and the deepest stack.
pub struct Totals {
    pub registers: u32,
    pub local_bytes: u32,
    pub unbounded_stack: bool,
    pub barriers: u32,
    pub order_dependent: bool,
    pub shared_bytes: u32,
}

/// Functions whose address somebody takes.
fn address_taken(m: &Module) -> Vec<FuncId> {
    let mut taken = Vec::new();
    for f in m.functions.iter().filter(|f| !f.is_declaration) {
        for &i in f.layout.iter().flat_map(|&b| &f.block(b).insts) {
            if let Op::Addr(AddrOf::Function(c), _) = f.inst(i).op {
                taken.push(c);
            }
        }
    }
    for piece in m.globals.iter().flat_map(|g| &g.pieces) {
        if let SymbolRef::Function(c) = piece.symbol {
            taken.push(c);
        }
    }
    taken.sort();
    taken.dedup();
    taken.retain(|c| !m.function(*c).is_declaration);
    taken
}

pub fn totals(m: &Module, needs: &[Needs]) -> Vec<Totals> {
    let taken = address_taken(m);
    let callees: Vec<Vec<FuncId>> = needs
        .iter()
        .map(|n| {
            let mut all = n.calls.clone();
            if n.calls_indirectly {
                all.extend(&taken);
            }
            all.sort();
            all.dedup();
            all
        })
        .collect();
    (0..needs.len()).map(|n| total(n, needs, &callees)).collect()
}

fn total(root: usize, needs: &[Needs], callees: &[Vec<FuncId>]) -> Totals {
    // Depth-first; a function met while it is on the path is recursion.
    let mut depth: Vec<Option<u32>> = vec![None; needs.len()];
    let mut on_path = vec![false; needs.len()];
    let mut t = Totals {
        registers: 0,
        local_bytes: 0,
        unbounded_stack: false,
        barriers: 0,
        order_dependent: false,
        shared_bytes: 0,
    };
    let mut stack = vec![(root, 0usize)];
    on_path[root] = true;
    while let Some((f, next)) = stack.pop() {
        if let Some(&c) = callees[f].get(next) {
            stack.push((f, next + 1));
            if on_path[c.index()] {
                t.unbounded_stack = true;
            } else if depth[c.index()].is_none() {
                on_path[c.index()] = true;
                stack.push((c.index(), 0));
            }
            continue;
        }
        on_path[f] = false;
        let n = &needs[f];
        let below = callees[f].iter().filter_map(|c| depth[c.index()]).max().unwrap_or(0);
        depth[f] = Some(n.frame_bytes.saturating_add(below));
        t.registers = t.registers.max(n.registers);
        t.barriers = t.barriers.max(n.barriers);
        t.order_dependent |= n.order_dependent;
        t.unbounded_stack |= n.dynamic_stack || n.calls_indirectly;
        t.shared_bytes = t.shared_bytes.max(n.shared_bytes);
    }
    t.local_bytes = depth[root].unwrap_or(0);
    t
}
