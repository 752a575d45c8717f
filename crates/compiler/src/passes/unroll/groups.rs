//! Puts copies of a body in a row, and loops and tests around them.

use super::copy::copy_body;
use super::guard::Predecessors;
use super::shape::Shape;
use super::trips::{self, Counter};
use ir::{Block, BlockCall, Function, IntCmp, Op, Terminator, Type, Value};

fn call(block: Block, args: &[Value]) -> BlockCall {
    BlockCall { block, args: args.into() }
}

fn jump(block: Block, args: &[Value]) -> Terminator {
    Terminator::Jump(call(block, args))
}

/// Where a row of copies ends (its terminator is to be set), what the last copy passes on and what it would pass out.
struct Row {
    end: Block,
    next: Vec<Value>,
    leaving: Vec<Value>,
}

/// Puts copies after `at`, whose terminator becomes a jump to the first with `args`.
fn row(f: &mut Function, s: &Shape, at: Block, args: &[Value], count: u64) -> Row {
    let mut row = Row { end: at, next: args.to_vec(), leaving: Vec::new() };
    for _ in 0..count {
        let c = copy_body(f, s);
        f.block_mut(row.end).term = jump(c.header, &row.next);
        row = Row { end: c.latch, next: c.next, leaving: c.leaving };
    }
    row
}

/// All iterations one after the other.
pub fn unroll_fully(f: &mut Function, s: &Shape, count: u64) {
    let all = row(f, s, s.before, &s.start, count);
    f.block_mut(all.end).term = jump(s.after, &all.leaving);
}

/// Appends instructions to blocks.
struct Grower<'a> {
    f: &'a mut Function,
    s: &'a Shape,
}

impl Grower<'_> {
    /// A new block whose parameters are of `types`.
    fn block(&mut self, types: &[Type]) -> Block {
        let b = self.f.new_block();
        self.f.layout.push(b);
        self.f.block_mut(b).term_loc = self.s.loc;
        types.iter().for_each(|&ty| {
            self.f.add_block_param(b, ty);
        });
        b
    }

    /// Lanes part at the new tests no more than at the loop's own.
    fn branch(&self, cond: Value, then: BlockCall, otherwise: BlockCall) -> Terminator {
        Terminator::Branch { cond, then, otherwise, uniform: self.s.uniform }
    }

    fn params(&self, b: Block) -> Vec<Value> {
        self.f.block(b).params.to_vec()
    }

    fn ins(&mut self, b: Block, op: Op, args: &[Value], ty: Type) -> Value {
        let i = self.f.make_inst(op, args, &[ty], None, self.s.loc);
        self.f.block_mut(b).insts.push(i);
        self.f.inst(i).results[0]
    }

    fn constant(&mut self, b: Block, ty: Type, bits: u64) -> Value {
        self.ins(b, Op::Const(bits & ty.mask()), &[], ty)
    }

    fn at_least(&mut self, b: Block, v: Value, k: u64) -> Value {
        let k = self.constant(b, self.f.ty(v), k);
        self.ins(b, Op::ICmp { cmp: IntCmp::Ge, signed: false }, &[v, k], Type::P)
    }

    fn minus(&mut self, b: Block, v: Value, k: u64) -> Value {
        let ty = self.f.ty(v);
        let k = self.constant(b, ty, k.wrapping_neg());
        self.ins(b, Op::Add, &[v, k], ty)
    }

    fn types(&self, values: &[Value]) -> Vec<Type> {
        values.iter().map(|&v| self.f.ty(v)).collect()
    }
}

/// `count` known iterations as a loop over groups of copies, then what is left over. Returns the loop's header.
pub fn unroll_in_groups(f: &mut Function, s: &Shape, count: u64, group: u64) -> Block {
    let mut g = Grower { f, s };
    let carried = g.types(&s.start);
    let header = g.block(&[&[Type::B32], &carried[..]].concat());
    let rounds = g.constant(s.before, Type::B32, count / group);
    g.f.block_mut(s.before).term = jump(header, &[&[rounds], &s.start[..]].concat());

    let params = g.params(header);
    let body = row(g.f, s, header, &params[1..], group);
    let left = g.minus(body.end, params[0], 1);
    let again = g.at_least(body.end, left, 1);
    let over = count % group;
    let out = if over == 0 {
        call(s.after, &body.leaving)
    } else {
        let rest = g.block(&carried);
        let params = g.params(rest);
        let last = row(g.f, s, rest, &params, over);
        g.f.block_mut(last.end).term = jump(s.after, &last.leaving);
        call(rest, &body.next)
    };
    let back = call(header, &[&[left], &body.next[..]].concat());
    g.f.block_mut(body.end).term = g.branch(again, back, out);
    header
}

/// A number of iterations known only when the program runs: groups of four, then two, then one. Where the count cannot be
/// computed in advance (the counter would wrap, or the first test fails) the loop, or its single iteration, runs first
/// and leaves none over. Returns the headers of the new loops.
pub fn unroll_by_four(
    f: &mut Function,
    s: &Shape,
    counter: &Counter,
    preds: &Predecessors,
) -> Option<Vec<Block>> {
    let count = trips::compute(f, counter, s.before, s.loc, preds)?;
    let mut g = Grower { f, s };
    let mut headers = Vec::new();
    // Values that leave the loop and are not carried to the next iteration travel beside those that are.
    let is_extra = |v: &&Value| !s.next.contains(v);
    let extra: Vec<Value> = s.leaving.iter().filter(is_extra).copied().collect();
    let extra_of = |leaving: &[Value]| -> Vec<Value> {
        s.leaving.iter().zip(leaving).filter(|(old, _)| is_extra(old)).map(|(_, &new)| new).collect()
    };
    let carried = g.types(&s.start);
    let rem = counter.width;
    let all = [&[rem], &carried[..], &g.types(&extra)[..]].concat();
    let [join, pairs, single] = [(); 3].map(|()| g.block(&all));

    let none: Vec<Value> = extra.iter().map(|&v| g.ins(s.before, Op::Undef, &[], g.f.ty(v))).collect();
    let enter = call(join, &[&[count.count], &s.start[..], &none[..]].concat());
    let first = g.block(&[]);
    g.f.block_mut(s.before).term = g.branch(count.valid, enter, call(first, &[]));
    headers.extend(run_first(&mut g, first, join, &extra_of, count.else_once, rem));

    // Groups of four, in a loop.
    let params = g.params(join);
    let (left, values) = (params[0], &params[1..=carried.len()]);
    let fours = g.block(&[&[rem], &carried[..]].concat());
    let enough = g.at_least(join, left, 4);
    g.f.block_mut(join).term = g.branch(enough, call(fours, &params[..=values.len()]), call(pairs, &params));
    let inner = g.params(fours);
    let body = row(g.f, s, fours, &inner[1..], 4);
    let left = g.minus(body.end, inner[0], 4);
    let enough = g.at_least(body.end, left, 4);
    let back = call(fours, &[&[left], &body.next[..]].concat());
    let on = call(pairs, &[&[left], &body.next[..], &extra_of(&body.leaving)[..]].concat());
    g.f.block_mut(body.end).term = g.branch(enough, back, on);
    headers.push(fours);

    // One group of two.
    let params = g.params(pairs);
    let enough = g.at_least(pairs, params[0], 2);
    let two = g.block(&[]);
    g.f.block_mut(pairs).term = g.branch(enough, call(two, &[]), call(single, &params));
    let left = g.minus(two, params[0], 2);
    let body = row(g.f, s, two, &params[1..=carried.len()], 2);
    let on = [&[left], &body.next[..], &extra_of(&body.leaving)[..]].concat();
    g.f.block_mut(body.end).term = jump(single, &on);

    // The last one.
    let params = g.params(single);
    let enough = g.at_least(single, params[0], 1);
    let one = g.block(&[]);
    let mut extras = params[1 + carried.len()..].iter().copied();
    let current: Vec<Value> = s
        .leaving
        .iter()
        .filter_map(|v| match s.next.iter().position(|n| n == v) {
            Some(k) => Some(params[1 + k]),
            None => extras.next(),
        })
        .collect();
    g.f.block_mut(single).term = g.branch(enough, call(one, &[]), call(s.after, &current));
    let body = row(g.f, s, one, &params[1..=carried.len()], 1);
    g.f.block_mut(body.end).term = jump(s.after, &body.leaving);
    Some(headers)
}

/// The body once, or the loop as it was, then `join` with nothing left over. Returns the header of the loop.
fn run_first(
    g: &mut Grower,
    first: Block,
    join: Block,
    extra_of: &dyn Fn(&[Value]) -> Vec<Value>,
    once: bool,
    rem: Type,
) -> Option<Block> {
    let s = g.s;
    let none_left = g.constant(first, rem, 0);
    let c = copy_body(g.f, s);
    g.f.block_mut(first).term = jump(c.header, &s.start);
    let on = call(join, &[&[none_left], &c.next[..], &extra_of(&c.leaving)[..]].concat());
    g.f.block_mut(c.latch).term = if once {
        Terminator::Jump(on)
    } else {
        let back = call(c.header, &c.next);
        if s.continues_if { g.branch(c.cond, back, on) } else { g.branch(c.cond, on, back) }
    };
    (!once).then_some(c.header)
}
