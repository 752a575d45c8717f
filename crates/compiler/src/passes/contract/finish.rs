//! What follows fusing: saturation and scaling by powers of two join the operation before them.

use crate::passes::edit::{Change, rewrite};
use ir::{Block, CvtRound, Function, InstId, Op, Round, Scalar, Scale, Value};

fn use_counts(f: &Function) -> Vec<u32> {
    let mut uses = vec![0; f.values.len()];
    for &b in &f.layout {
        for &i in &f.block(b).insts {
            f.inst_values(i).iter().for_each(|v| uses[v.index()] += 1);
        }
        f.block(b).term.values().iter().for_each(|v| uses[v.index()] += 1);
    }
    uses
}

/// `cvt.sat`, or `max` with 0 and then `min` with 1, of an f32 operation that nothing else reads: the operation saturates.
pub fn saturate(f: &mut Function) {
    let uses = use_counts(f);
    rewrite(f, |e, _, i| {
        let Some((x, ftz)) = saturated(e.func, i, &uses) else { return Change::Keep };
        let Some(p) = e.func.def_inst(x) else { return Change::Keep };
        if uses.get(x.index()) != Some(&1) {
            return Change::Keep;
        }
        match &mut e.func.inst_mut(p).op {
            Op::FAdd(m) | Op::FSub(m) | Op::FMul(m) | Op::FFma(m)
                if m.ty == Scalar::F32 && m.ftz == ftz && !m.sat =>
            {
                m.sat = true;
                Change::Replace(x)
            }
            _ => Change::Keep,
        }
    });
}

/// What `i` clamps to [0, 1], and its ftz.
fn saturated(f: &Function, i: InstId, uses: &[u32]) -> Option<(Value, bool)> {
    let inst = f.inst(i);
    match inst.op {
        Op::Cvt(c) if c.to == Scalar::F32 && c.from == Scalar::F32 && c.sat && c.round == CvtRound::None => {
            Some((inst.args[0], c.ftz))
        }
        Op::FMin { ty: Scalar::F32, ftz, nan: false, xorsign_abs: false } => {
            let clamped = other_than(f, &inst.args, 1f32.to_bits())?;
            let inner = f.def_op(clamped)?;
            let is_max = inner.op == (Op::FMax { ty: Scalar::F32, ftz, nan: false, xorsign_abs: false });
            if !is_max || uses.get(clamped.index()) != Some(&1) {
                return None;
            }
            Some((other_than(f, &inner.args, 0)?, ftz))
        }
        _ => None,
    }
}

/// The argument beside the constant `bits`.
fn other_than(f: &Function, args: &[Value], bits: u32) -> Option<Value> {
    let is = |v: Value| f.const_of(v) == Some(bits.into());
    match *args {
        [a, k] | [k, a] if is(k) => Some(a),
        _ => None,
    }
}

/// `(a * b) * 2^k`: one product with an output scale, rounded once.
pub fn scale(f: &mut Function) {
    let uses = use_counts(f);
    let mut home: Vec<Option<Block>> = vec![None; f.insts.len()];
    for &b in &f.layout {
        f.block(b).insts.iter().for_each(|i| home[i.index()] = Some(b));
    }
    let plain = |op: Op| match op {
        Op::FMul(m) if m.ty == Scalar::F32 && m.contract && !m.sat && m.round == Round::Rn => Some(m.ftz),
        _ => None,
    };
    for n in 0..f.insts.len() {
        let Some(b) = home[n] else { continue };
        let outer = &f.insts[n];
        let Some(ftz) = plain(outer.op) else { continue };
        // A product that fused everywhere is dead: nothing to scale.
        if uses[outer.results[0].index()] == 0 {
            continue;
        }
        let scaled = [(0, 1), (1, 0)].into_iter().find_map(|(x, k)| {
            let scale = f.const_of(outer.args[k]).and_then(|bits| power_of_two(bits as u32))?;
            let inner = f.def_inst(outer.args[x])?;
            let is_single = uses[outer.args[x].index()] == 1 && home[inner.index()] == Some(b);
            (is_single && plain(f.inst(inner).op) == Some(ftz)).then_some((scale, inner))
        });
        if let Some((scale, inner)) = scaled {
            let factors = f.inst(inner).args.clone();
            f.insts[n].op = Op::FMulScaled { ftz, scale };
            f.insts[n].args = factors;
        }
    }
}

/// The exponents that the machine can add.
fn power_of_two(bits: u32) -> Option<Scale> {
    [-3i8, -2, -1, 1, 2, 3].into_iter().find(|&k| bits == 2f32.powi(k.into()).to_bits()).map(Scale)
}

/// Nothing fuses any more: equal operations are equal from here on.
pub fn clear_marks(f: &mut Function) {
    for inst in &mut f.insts {
        if let Op::FAdd(m) | Op::FSub(m) | Op::FMul(m) = &mut inst.op {
            m.contract = false;
        }
    }
}
