//! Which family lowers an instruction.

use super::Result;
use super::function::FnLower;
use super::{atomic, call, compare, control, convert, float, integer, logic, memory, mov, video, warp};
use crate::ast::Instruction;

impl<'a> FnLower<'_, '_, 'a> {
    /// Lowers one instruction; its guard is already read.
    pub(super) fn instruction(&mut self, inst: &Instruction<'a>) -> Result {
        match inst.mnemonic.text {
            "add" | "sub" | "mul" | "mad" | "neg" | "abs" | "min" | "max" | "div" => {
                let ty = self.type_at(inst, 0)?;
                if ty.class() == crate::types::TypeClass::Float {
                    float::lower(self, inst)
                } else {
                    integer::lower(self, inst)
                }
            }
            "addc" | "subc" | "madc" | "mul24" | "mad24" | "sad" | "rem" | "popc" | "clz" | "bfind"
            | "fns" | "brev" | "bfe" | "bfi" | "szext" | "bmsk" | "dp4a" | "dp2a" => {
                integer::lower(self, inst)
            }
            "fma" | "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" | "copysign"
            | "testp" => float::lower(self, inst),
            "set" | "setp" | "selp" | "slct" => compare::lower(self, inst),
            "and" | "or" | "xor" | "not" | "cnot" | "lop3" | "shf" | "shl" | "shr" | "prmt" => {
                logic::lower(self, inst)
            }
            "cvt" => convert::lower(self, inst),
            "vadd" | "vsub" | "vabsdiff" | "vmin" | "vmax" | "vshl" | "vshr" | "vmad" | "vset" | "vadd2"
            | "vsub2" | "vavrg2" | "vabsdiff2" | "vmin2" | "vmax2" | "vset2" | "vadd4" | "vsub4"
            | "vavrg4" | "vabsdiff4" | "vmin4" | "vmax4" | "vset4" => video::lower(self, inst),
            "shfl" | "vote" | "match" | "activemask" | "redux" | "elect" => warp::lower(self, inst),
            "mov" => mov::lower(self, inst),
            "ld" | "ldu" | "st" | "prefetch" | "prefetchu" | "applypriority" | "discard" | "isspacep"
            | "cvta" | "membar" | "fence" | "createpolicy" => memory::lower(self, inst),
            "atom" | "red" => atomic::lower(self, inst),
            "call" => call::lower(self, inst),
            "bra" | "brx" | "ret" | "exit" | "bar" | "barrier" | "brkpt" | "nanosleep" | "pmevent"
            | "trap" | "stacksave" | "stackrestore" | "alloca" | "griddepcontrol" => {
                control::lower(self, inst)
            }
            _ => self.not_built(inst),
        }
    }

    /// The instruction exists in PTX but has no counterpart here yet.
    pub(super) fn not_built<T>(&self, inst: &Instruction<'a>) -> Result<T> {
        let mut name = inst.mnemonic.text.to_string();
        for m in &inst.modifiers {
            name.push('.');
            name.push_str(m.text);
        }
        self.fail(inst.opcode_span(), format!("`{name}` is not built yet"))
    }
}
