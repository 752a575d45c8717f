//! Calls: parameters travel as values, aggregates word by word.

use super::Result;
use super::function::{Binding, FnLower};
use super::module::flatten;
use super::operand::width;
use crate::ast::{Instruction, Name, Operand, OperandKind, StateSpace, Statement, Variable};
use ir::{Access, AddrOf, Op, Scalar, Space, Syscall, Terminator, Type, Value};

/// Functions of the system, where the module only declares them.
fn system_function(name: &str) -> Option<Syscall> {
    Some(match name {
        "vprintf" => Syscall::Vprintf,
        "malloc" => Syscall::Malloc,
        "free" => Syscall::Free,
        "__assertfail" => Syscall::AssertFail,
        // What `kernel<<<...>>>` in device code becomes.
        "__cudaCDP2GetParameterBufferV2" | "cudaGetParameterBufferV2" => Syscall::ParameterBuffer,
        "__cudaCDP2LaunchDeviceV2" | "cudaLaunchDeviceV2" => Syscall::LaunchDevice,
        // CUDA has no wait for child tasks any more, and no queues.
        "__warploom_wait_children" => Syscall::WaitChildren,
        "__warploom_queue_push" => Syscall::QueuePush,
        _ => return None,
    })
}

pub(super) fn lower<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let Some(parts) = inst.call_parts() else {
        return cx.fail(inst.span, "expected `call (results), function, (arguments);`");
    };
    let after = cx.branch_around();
    cx.call(inst, parts.target, parts.prototype, parts.returns, parts.arguments)?;
    cx.rejoin(after);
    Ok(())
}

/// Parameter and result lists of what is called.
struct Signature<'t, 'a> {
    params: Vec<&'t Variable<'a>>,
    returns: Vec<&'t Variable<'a>>,
    no_return: bool,
}

impl<'t, 'a> FnLower<'_, 't, 'a> {
    fn call(
        &mut self,
        inst: &Instruction<'a>,
        target: Name<'a>,
        prototype: Option<Name<'a>>,
        returns: &[Operand<'a>],
        arguments: &[Operand<'a>],
    ) -> Result {
        let direct = match self.lookup(target.text) {
            None => self.module.function_id(target.text),
            Some(_) => None,
        };
        let signature = match direct {
            Some(id) => match self.module.declaration(id) {
                Some(f) => Signature {
                    params: f.params.iter().collect(),
                    returns: f.returns.iter().collect(),
                    no_return: self.module.module.function(id).no_return,
                },
                None => return self.fail(target.span, format!("`{}` is not declared", target.text)),
            },
            None => self.prototype(target, prototype)?,
        };
        let count = |list: &[&Variable<'_>]| list.iter().map(|v| v.declarators.len()).sum::<usize>();
        if count(&signature.params) != arguments.len() || count(&signature.returns) != returns.len() {
            let message = format!(
                "`{}` takes {} arguments and gives {} results, here are {} and {}",
                target.text,
                count(&signature.params),
                count(&signature.returns),
                arguments.len(),
                returns.len()
            );
            return self.fail(inst.span, message);
        }
        let mut args: Vec<Value> = Vec::new();
        let mut result_types: Vec<Type> = Vec::new();
        let params = signature.params.iter().flat_map(|v| v.declarators.iter().map(move |d| (v, d)));
        for ((v, d), operand) in params.zip(arguments) {
            let types = flatten(v, d)?;
            args.extend(self.argument(operand, v, &types)?);
        }
        let result_vars: Vec<_> =
            signature.returns.iter().flat_map(|v| v.declarators.iter().map(move |d| (v, d))).collect();
        for (v, d) in &result_vars {
            result_types.extend(flatten(v, d)?);
        }
        let system = direct
            .filter(|&id| self.module.module.function(id).is_declaration)
            .and(system_function(target.text));
        let op = match (system, direct) {
            (Some(function), _) => {
                args = self.system_arguments(inst, function, args)?;
                Op::Syscall(function)
            }
            (None, Some(id)) => Op::Call(id),
            (None, None) => {
                let var = self.register(target)?;
                let address = self.b.use_var(var);
                let address = self.resize(address, Type::B64, false);
                args.insert(0, address);
                Op::CallIndirect
            }
        };
        let mut values = self.b.ins_multi(op, &args, &result_types, None).into_iter();
        for ((v, d), operand) in result_vars.iter().zip(returns) {
            let words: Vec<Value> = values.by_ref().take(flatten(v, d)?.len()).collect();
            self.receive(operand, &words)?;
        }
        if signature.no_return || matches!(op, Op::Syscall(Syscall::AssertFail)) {
            self.b.terminate(Terminator::Unreachable);
            let next = self.b.create_block();
            self.b.switch_to(next);
        }
        Ok(())
    }

    /// Arguments as the system function takes them, whatever widths the module declared.
    fn system_arguments(
        &mut self,
        inst: &Instruction<'a>,
        function: Syscall,
        args: Vec<Value>,
    ) -> Result<Vec<Value>> {
        let types: &[Type] = match function {
            Syscall::Vprintf => &[Type::B64, Type::B64],
            Syscall::Malloc | Syscall::Free => &[Type::B64],
            Syscall::AssertFail => &[Type::B64, Type::B64, Type::B32, Type::B64, Type::B64],
            Syscall::ParameterBuffer => return self.launch_arguments(inst, &args),
            Syscall::LaunchDevice | Syscall::QueuePush => &[Type::B64, Type::B64],
            Syscall::WaitChildren => &[],
        };
        if types.len() != args.len() {
            return self.fail(inst.span, format!("this system function takes {} arguments", types.len()));
        }
        Ok(args.into_iter().zip(types).map(|(v, &ty)| self.resize(v, ty, false)).collect())
    }

    /// A kernel, the three sizes of grid and block, and bytes of shared memory, packed into four values.
    fn launch_arguments(&mut self, inst: &Instruction<'a>, args: &[Value]) -> Result<Vec<Value>> {
        let &[kernel, gx, gy, gz, bx, by, bz, shared] = args else {
            return self.fail(
                inst.span,
                "the kernel, two structs of three 32-bit sizes and the bytes of shared memory are its arguments",
            );
        };
        let most = self.b.iconst(Type::B32, 0xffff);
        let [by, bz] = [by, bz].map(|v| self.b.ins(Op::Min { signed: false }, &[v, most], Type::B32));
        let sixteen = self.b.iconst(Type::B32, 16);
        let bz = self.b.ins(Op::Shl, &[bz, sixteen], Type::B32);
        let byz = self.b.ins(Op::Or, &[by, bz], Type::B32);
        let kernel = self.resize(kernel, Type::B64, false);
        let mut pack = |low, high| self.b.ins(Op::Concat, &[low, high], Type::B64);
        Ok(vec![kernel, pack(gx, gy), pack(gz, bx), pack(byz, shared)])
    }

    fn prototype(&mut self, target: Name<'a>, prototype: Option<Name<'a>>) -> Result<Signature<'t, 'a>> {
        let Some(name) = prototype else {
            return self
                .fail(target.span, "an indirect call needs a `.callprototype` or `.calltargets` label");
        };
        match self.lookup(name.text) {
            Some(Binding::Targets(Statement::CallPrototype(p))) => Ok(Signature {
                params: p.params.iter().collect(),
                returns: p.returns.iter().collect(),
                no_return: false,
            }),
            Some(Binding::Targets(Statement::CallTargets { targets, .. })) => {
                let first = targets.first().and_then(|t| self.module.function_id(t.text));
                match first.and_then(|id| self.module.declaration(id)) {
                    Some(f) => Ok(Signature {
                        params: f.params.iter().collect(),
                        returns: f.returns.iter().collect(),
                        no_return: false,
                    }),
                    None => self.fail(name.span, "the call targets are not declared"),
                }
            }
            _ => self.fail(name.span, format!("`{}` is no call prototype", name.text)),
        }
    }

    /// The words of one argument.
    fn argument(&mut self, operand: &Operand<'a>, v: &Variable<'_>, types: &[Type]) -> Result<Vec<Value>> {
        if let OperandKind::Name(text) = operand.kind {
            match self.lookup(text) {
                Some(Binding::Slot(slot)) if v.space == StateSpace::Param => {
                    return Ok(types
                        .iter()
                        .enumerate()
                        .map(|(n, &ty)| self.load_slot(slot, n as i64 * 4, ty))
                        .collect());
                }
                Some(Binding::ScalarParam(var, _)) => {
                    let value = self.b.use_var(var);
                    return Ok(vec![self.resize(value, types[0], false)]);
                }
                _ => {}
            }
        }
        let value = self.src(operand, v.ty)?;
        let wide = types.first().copied().unwrap_or_else(|| width(v.ty));
        Ok(vec![self.resize(value, wide, v.ty.class() == crate::types::TypeClass::Signed)])
    }

    fn receive(&mut self, operand: &Operand<'a>, words: &[Value]) -> Result {
        let Some(name) = operand.as_name() else {
            return if matches!(operand.kind, OperandKind::Sink) {
                Ok(())
            } else {
                self.wrong(operand, "a parameter or register")
            };
        };
        match self.lookup(name.text) {
            Some(binding @ (Binding::Slot(_) | Binding::ScalarParam(..))) => {
                self.store_words(&binding, words);
                Ok(())
            }
            _ => match words {
                [value] => self.write(operand, *value),
                _ => self.wrong(operand, "a `.param` variable"),
            },
        }
    }

    fn load_slot(&mut self, slot: ir::SlotId, at: i64, ty: Type) -> Value {
        let address = self.b.ins(Op::Addr(AddrOf::Slot(slot), at), &[], Type::B32);
        let elem = if ty == Type::B64 { Scalar::U64 } else { Scalar::U32 };
        self.b.ins(Op::Load(Access::plain(Space::Local, elem)), &[address], ty)
    }

    /// Puts received words where a parameter lives.
    pub(super) fn store_words(&mut self, binding: &Binding<'t, 'a>, words: &[Value]) {
        match *binding {
            Binding::Slot(slot) => {
                for (n, &word) in words.iter().enumerate() {
                    let address = self.b.ins(Op::Addr(AddrOf::Slot(slot), n as i64 * 4), &[], Type::B32);
                    self.b.effect(
                        Op::Store(Access::plain(Space::Local, Scalar::U32)),
                        &[address, word],
                        None,
                    );
                }
            }
            Binding::ScalarParam(var, _) | Binding::Reg(var) => {
                if let [word] = words {
                    let value = self.resize(*word, self.b.var_type(var), false);
                    self.b.def_var(var, value);
                }
            }
            _ => {}
        }
    }

    /// The words a device function gives back.
    pub(super) fn return_values(&mut self) -> Vec<Value> {
        let mut words = Vec::new();
        for (v, binding) in self.returns.clone() {
            match binding {
                Binding::Slot(slot) => {
                    let size = self.b.func.slots[slot.index()].size;
                    words.extend((0..size / 4).map(|n| self.load_slot(slot, i64::from(n) * 4, Type::B32)));
                }
                Binding::ScalarParam(var, _) | Binding::Reg(var) => {
                    let value = self.b.use_var(var);
                    let ty = if v.ty.bits() == 64 { Type::B64 } else { Type::B32 };
                    words.push(self.resize(value, ty, false));
                }
                _ => {}
            }
        }
        words
    }
}
