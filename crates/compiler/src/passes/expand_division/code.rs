//! Writing operations and blocks into a function, for sequences that stand in the middle of one as for whole routines.

use ir::{Block, BlockCall, Cvt, CvtRound, Float, FloatCmp, Function, IntCmp, LocId, MufuFn, Op, Round};
use ir::{Scalar, Terminator, Type, Value};

/// A place in a function: operations go to the end of its block.
pub struct Code<'a> {
    pub func: &'a mut Function,
    pub at: Block,
    /// Where what is written comes from.
    pub loc: LocId,
    /// Blocks in the order in which they were entered.
    pub layout: Vec<Block>,
}

impl Code<'_> {
    pub fn ins(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let i = self.func.make_inst(op, args, &[ty], None, self.loc);
        self.func.block_mut(self.at).insts.push(i);
        self.func.inst(i).results[0]
    }

    /// An operation whose result is as wide as its first argument.
    fn same(&mut self, op: Op, args: &[Value]) -> Value {
        let ty = self.func.ty(args[0]);
        self.ins(op, args, ty)
    }

    // --- blocks ------------------------------------------------------------------------------------------------------

    pub fn create_block(&mut self, params: &[Type]) -> Block {
        let b = self.func.new_block();
        for &ty in params {
            self.func.add_block_param(b, ty);
        }
        b
    }

    /// Further operations go to `b`; returns its parameters.
    pub fn enter(&mut self, b: Block) -> Vec<Value> {
        self.at = b;
        self.layout.push(b);
        self.func.block(b).params.to_vec()
    }

    pub fn terminate(&mut self, term: Terminator) {
        let loc = self.loc;
        let block = self.func.block_mut(self.at);
        block.term = term;
        block.term_loc = loc;
    }

    pub fn jump(&mut self, to: Block, args: &[Value]) {
        self.terminate(Terminator::Jump(BlockCall { block: to, args: args.into() }));
    }

    pub fn branch(&mut self, cond: Value, then: (Block, &[Value]), otherwise: (Block, &[Value])) {
        let call = |(block, args): (Block, &[Value])| BlockCall { block, args: args.into() };
        self.terminate(Terminator::Branch {
            cond,
            then: call(then),
            otherwise: call(otherwise),
            uniform: false,
        });
    }

    // --- integers and bits -------------------------------------------------------------------------------------------

    pub fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.ins(Op::Const(bits & ty.mask()), &[], ty)
    }

    pub fn word(&mut self, bits: u32) -> Value {
        self.constant(Type::B32, bits.into())
    }

    /// A constant as wide as `like`.
    pub fn number(&mut self, like: Value, bits: u64) -> Value {
        let ty = self.func.ty(like);
        self.constant(ty, bits)
    }

    pub fn add(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::Add, &[a, b])
    }

    pub fn add_number(&mut self, a: Value, b: u64) -> Value {
        let b = self.number(a, b);
        self.add(a, b)
    }

    pub fn sub(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::Sub, &[a, b])
    }

    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::Mul, &[a, b])
    }

    /// High half of the unsigned product.
    pub fn mul_high(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::MulHi { signed: false }, &[a, b])
    }

    /// Minus a; of a constant, another constant.
    pub fn neg(&mut self, a: Value) -> Value {
        match self.func.const_of(a) {
            Some(bits) => self.number(a, bits.wrapping_neg()),
            None => self.same(Op::Neg, &[a]),
        }
    }

    pub fn abs(&mut self, a: Value) -> Value {
        match self.func.const_of(a) {
            Some(bits) => {
                let magnitude = super::super::evaluate::signed(bits, self.func.ty(a)).unsigned_abs();
                self.number(a, magnitude)
            }
            None => self.same(Op::Abs, &[a]),
        }
    }

    pub fn and(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::And, &[a, b])
    }

    pub fn and_number(&mut self, a: Value, bits: u64) -> Value {
        let b = self.number(a, bits);
        self.and(a, b)
    }

    pub fn or(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::Or, &[a, b])
    }

    pub fn or_number(&mut self, a: Value, bits: u64) -> Value {
        let b = self.number(a, bits);
        self.or(a, b)
    }

    pub fn xor(&mut self, a: Value, b: Value) -> Value {
        self.same(Op::Xor, &[a, b])
    }

    pub fn not(&mut self, a: Value) -> Value {
        self.same(Op::Not, &[a])
    }

    /// Shifts take a 32-bit count; counts at or above the width shift everything out.
    pub fn shl(&mut self, a: Value, count: Value) -> Value {
        self.same(Op::Shl, &[a, count])
    }

    pub fn shr(&mut self, a: Value, count: Value) -> Value {
        self.same(Op::ShrU, &[a, count])
    }

    /// Unsigned or, where the comparison is of signs, signed comparison.
    pub fn compare(&mut self, cmp: IntCmp, signed: bool, a: Value, b: Value) -> Value {
        self.ins(Op::ICmp { cmp, signed }, &[a, b], Type::P)
    }

    pub fn compare_number(&mut self, cmp: IntCmp, signed: bool, a: Value, bits: u64) -> Value {
        let b = self.number(a, bits);
        self.compare(cmp, signed, a, b)
    }

    pub fn select(&mut self, p: Value, yes: Value, no: Value) -> Value {
        let ty = self.func.ty(yes);
        self.ins(Op::Select, &[p, yes, no], ty)
    }

    // --- floats ------------------------------------------------------------------------------------------------------

    pub fn cvt(&mut self, to: Scalar, from: Scalar, round: CvtRound, a: Value) -> Value {
        let c = Cvt { to, from, round, ftz: false, sat: false, relu: false, satfinite: false };
        self.ins(Op::Cvt(c), &[a], to.ty())
    }

    pub fn mufu(&mut self, f: MufuFn, a: Value) -> Value {
        self.ins(Op::Mufu(f), &[a], Type::B32)
    }

    pub fn fma(&mut self, ty: Scalar, round: Round, a: Value, b: Value, c: Value) -> Value {
        self.ins(Op::FFma(Float { round, ..Float::rn(ty) }), &[a, b, c], ty.ty())
    }

    pub fn fmul(&mut self, ty: Scalar, round: Round, a: Value, b: Value) -> Value {
        self.ins(Op::FMul(Float { round, ..Float::rn(ty) }), &[a, b], ty.ty())
    }

    /// A negated operand: no instruction of its own.
    pub fn fneg(&mut self, ty: Scalar, a: Value) -> Value {
        self.ins(Op::FNeg { ty, ftz: false }, &[a], ty.ty())
    }

    /// An f32 negated by an instruction, as the assembler does in its library sequences.
    pub fn fneg_apart(&mut self, a: Value) -> Value {
        let minus = self.fneg(Scalar::F32, a);
        let zero = self.word(0x8000_0000);
        self.ins(Op::FAdd(Float { ftz: true, ..Float::rn(Scalar::F32) }), &[minus, zero], Type::B32)
    }

    pub fn fabs(&mut self, ty: Scalar, a: Value) -> Value {
        self.ins(Op::FAbs { ty, ftz: false }, &[a], ty.ty())
    }

    pub fn fcompare(&mut self, ty: Scalar, cmp: FloatCmp, ftz: bool, a: Value, b: Value) -> Value {
        self.ins(Op::FCmp { cmp, ty, ftz }, &[a, b], Type::P)
    }

    pub fn low(&mut self, a: Value) -> Value {
        self.ins(Op::TruncLo, &[a], Type::B32)
    }

    pub fn high(&mut self, a: Value) -> Value {
        self.ins(Op::TruncHi, &[a], Type::B32)
    }

    pub fn pair(&mut self, low: Value, high: Value) -> Value {
        self.ins(Op::Concat, &[low, high], Type::B64)
    }
}
