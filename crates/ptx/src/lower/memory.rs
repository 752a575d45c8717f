//! Loads, stores, fences, address conversion and cache hints.

use super::Result;
use super::function::{Binding, FnLower};
use super::operand::{Dest, width};
use crate::ast::{Address, AddressBase, Instruction, Operand, OperandKind, ScalarType};
use crate::types::TypeClass;
use ir::{Access, AddrOf, CacheOp, Hint, Op, Order, Scalar, Scope, Space, Type, Value};

pub(super) fn lower<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    match inst.mnemonic.text {
        "ld" | "ldu" => load(cx, inst),
        "st" if inst.has_modifier("async") => cx.not_built(inst),
        "st" => store(cx, inst),
        "prefetch" | "prefetchu" | "applypriority" | "discard" => hint(cx, inst),
        "isspacep" => {
            let space = space_of(cx, inst)?;
            let operand = cx.operand(inst, 1)?;
            let address = address_value(cx, operand)?;
            let space = if space == Space::Generic { return cx.not_built(inst) } else { space };
            let value = cx.b.ins(Op::IsSpace(space), &[address], Type::P);
            cx.write(cx.operand(inst, 0)?, value)
        }
        "cvta" => convert_address(cx, inst),
        "membar" | "fence" => fence(cx, inst),
        // A policy is advice to the caches: any value will do, and loads that name one ignore it.
        "createpolicy" => {
            let value = cx.iconst(Type::B64, 0);
            cx.write(cx.operand(inst, 0)?, value)
        }
        _ => cx.not_built(inst),
    }
}

/// The state space among the modifiers; generic where there is none.
pub(super) fn space_of<'a>(cx: &FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result<Space> {
    for m in &inst.modifiers {
        let word = m.text.split("::").next().unwrap_or(m.text);
        return Ok(match word {
            "global" => Space::Global,
            "shared" if m.text == "shared::cluster" => return cx.not_built(inst),
            "shared" => Space::Shared,
            "local" => Space::Local,
            "const" => Space::Const,
            "param" => Space::Param,
            _ => continue,
        });
    }
    Ok(Space::Generic)
}

/// Scope and order among the modifiers.
pub(super) fn ordering(inst: &Instruction<'_>) -> (Order, Option<Scope>) {
    let order = inst.modifiers.iter().find_map(|m| {
        Some(match m.text {
            "volatile" | "mmio" => Order::Volatile,
            "relaxed" => Order::Relaxed,
            "acquire" => Order::Acquire,
            "release" => Order::Release,
            "acq_rel" => Order::AcqRel,
            "sc" => Order::Sc,
            _ => return None,
        })
    });
    (order.unwrap_or(Order::Weak), scope(inst))
}

fn scope(inst: &Instruction<'_>) -> Option<Scope> {
    inst.modifiers.iter().find_map(|m| {
        Some(match m.text {
            "cta" => Scope::Cta,
            "cluster" => Scope::Cluster,
            "gpu" | "gl" => Scope::Gpu,
            "sys" => Scope::Sys,
            _ => return None,
        })
    })
}

fn cache(inst: &Instruction<'_>) -> CacheOp {
    inst.modifiers
        .iter()
        .find_map(|m| {
            Some(match m.text {
                "cg" => CacheOp::Cg,
                "cs" => CacheOp::Cs,
                "lu" => CacheOp::Lu,
                "cv" => CacheOp::Cv,
                "wt" => CacheOp::Wt,
                "nc" => CacheOp::Nc,
                _ => return None,
            })
        })
        .unwrap_or_default()
}

/// How an element of a PTX type lies in memory.
fn element(ty: ScalarType) -> Scalar {
    match (ty.bits(), ty.class() == TypeClass::Signed) {
        (8, false) => Scalar::U8,
        (8, true) => Scalar::S8,
        (16, false) => Scalar::U16,
        (16, true) => Scalar::S16,
        (64, _) => Scalar::U64,
        (_, true) => Scalar::S32,
        _ => Scalar::U32,
    }
}

fn vector_length(inst: &Instruction<'_>) -> u8 {
    inst.modifiers
        .iter()
        .find_map(|m| match m.text {
            "v2" => Some(2),
            "v4" => Some(4),
            "v8" => Some(8),
            _ => None,
        })
        .unwrap_or(1)
}

/// A memory operand: address value and constant offset.
pub(super) struct Place {
    pub address: Value,
    pub offset: i64,
}

impl<'a> FnLower<'_, '_, 'a> {
    /// The address an operand in brackets names, for an access of `space` (generic where none was written).
    pub(super) fn place(&mut self, operand: &Operand<'a>, space: Space) -> Result<Place> {
        let OperandKind::Address(address) = &operand.kind else {
            return self.wrong(operand, "an address in brackets");
        };
        if !address.coordinates.is_empty() {
            return self.wrong(operand, "an address without coordinates");
        }
        let offset = self.offset(address)?;
        let value = match &address.base {
            AddressBase::Absolute(expr) => {
                let bits = self.constant(expr, ScalarType::U64)?;
                self.iconst(Type::B64, bits)
            }
            AddressBase::Member { base, member } => self.member(*base, *member)?,
            AddressBase::Name(name) => {
                let (target, of) = match self.lookup(name.text) {
                    Some(Binding::Reg(var)) => {
                        let value = self.b.use_var(var);
                        if self.b.func.ty(value) == Type::B16 || self.b.func.ty(value) == Type::P {
                            return self.fail(name.span, "an address is 32 or 64 bits");
                        }
                        return Ok(Place { address: self.resize(value, Type::B64, false), offset });
                    }
                    Some(Binding::Global(id)) => {
                        let of = match self.module.module.global(id).space {
                            ir::GlobalSpace::Global => Space::Global,
                            ir::GlobalSpace::Const => Space::Const,
                            ir::GlobalSpace::Shared => Space::Shared,
                        };
                        (AddrOf::Global(id), of)
                    }
                    Some(Binding::Slot(id)) => (AddrOf::Slot(id), Space::Local),
                    Some(Binding::EntryParam(at)) => (AddrOf::Param(at), Space::Param),
                    Some(_) => return self.fail(name.span, format!("`{}` has no address", name.text)),
                    None => return self.fail(name.span, format!("`{}` is not declared", name.text)),
                };
                let value = self.b.ins(Op::Addr(target, 0), &[], Type::B64);
                // A generic access of a named variable goes through its generic address.
                if space == Space::Generic && of != Space::Global {
                    self.b.ins(Op::ToGeneric(of), &[value], Type::B64)
                } else {
                    value
                }
            }
        };
        Ok(Place { address: value, offset })
    }

    fn offset(&self, address: &Address<'a>) -> Result<i64> {
        match &address.offset {
            Some(expr) => Ok(self.constant(expr, ScalarType::S64)? as i64),
            None => Ok(0),
        }
    }

    /// The scalar or aggregate `.param` that a bracket names, if it is one that lives in values or in the frame.
    fn param_access(&mut self, operand: &Operand<'a>) -> Result<Option<(Binding<'static, 'static>, i64)>> {
        let OperandKind::Address(address) = &operand.kind else { return Ok(None) };
        let AddressBase::Name(name) = &address.base else { return Ok(None) };
        let offset = self.offset(address)?;
        Ok(match self.lookup(name.text) {
            Some(Binding::ScalarParam(var, ty)) => Some((Binding::ScalarParam(var, ty), offset)),
            Some(Binding::Slot(slot)) => Some((Binding::Slot(slot), offset)),
            _ => None,
        })
    }
}

fn address_value<'a>(cx: &mut FnLower<'_, '_, 'a>, operand: &Operand<'a>) -> Result<Value> {
    let value = cx.src(operand, ScalarType::U64)?;
    Ok(cx.resize(value, Type::B64, false))
}

fn access<'a>(
    cx: &FnLower<'_, '_, 'a>,
    inst: &Instruction<'a>,
    space: Space,
) -> Result<(Access, ScalarType)> {
    let ty = cx.type_at(inst, 0)?;
    if ty == ScalarType::Pred || ty.class() == TypeClass::Opaque {
        return cx.fail(inst.opcode_span(), "this type cannot be loaded or stored");
    }
    let (order, scope) = ordering(inst);
    let scope = scope.unwrap_or(if order == Order::Volatile { Scope::Sys } else { Scope::Cta });
    let mut access = Access {
        space,
        elem: element(ty),
        count: vector_length(inst),
        cache: cache(inst),
        order,
        scope,
        offset: 0,
    };
    if ty == ScalarType::B128 {
        access.elem = Scalar::U64;
        access.count *= 2;
    }
    if access.bytes() > 16 {
        return cx.fail(inst.opcode_span(), "an access moves at most 16 bytes on this target");
    }
    Ok((access, ty))
}

fn load<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let mut space = space_of(cx, inst)?;
    let dest = cx.operand(inst, 0)?;
    let from = cx.operand(inst, 1)?;
    if space == Space::Param
        && let Some((binding, offset)) = cx.param_access(from)?
    {
        match binding {
            Binding::ScalarParam(var, _) => return load_scalar_param(cx, inst, var, offset),
            _ => space = Space::Local,
        }
    }
    let (mut access, ty) = access(cx, inst, space)?;
    let place = cx.place(from, space)?;
    access.offset = place.offset;
    if ty == ScalarType::B128 {
        return load_wide(cx, access, place.address, dest);
    }
    let signed = ty.class() == TypeClass::Signed;
    let elements = cx.elements(dest);
    if elements.len() != usize::from(access.count) {
        return cx.wrong(dest, &format!("{} registers", access.count));
    }
    let dests: Vec<Dest> = elements.iter().map(|operand| Dest { operand, ty: width(ty), signed }).collect();
    cx.effect(Op::Load(access), &[place.address], &dests)
}

/// A 128-bit register is two values.
fn load_wide<'a>(cx: &mut FnLower<'_, '_, 'a>, access: Access, address: Value, dest: &Operand<'a>) -> Result {
    let Some(Binding::Wide(lo, hi)) = dest.as_name().and_then(|n| cx.lookup(n.text)) else {
        return cx.wrong(dest, "a 128-bit register");
    };
    let (old_lo, old_hi) = (cx.b.use_var(lo), cx.b.use_var(hi));
    let args: &[Value] = if cx.guard.is_some() { &[address, old_lo, old_hi] } else { &[address] };
    let values = cx.b.ins_multi(Op::Load(access), args, &[Type::B64, Type::B64], cx.guard);
    cx.b.def_var(lo, values[0]);
    cx.b.def_var(hi, values[1]);
    Ok(())
}

/// Part of a scalar parameter that lives in a value.
fn load_scalar_param<'a>(
    cx: &mut FnLower<'_, '_, 'a>,
    inst: &Instruction<'a>,
    var: ir::Var,
    offset: i64,
) -> Result {
    let ty = cx.type_at(inst, 0)?;
    let dest = cx.operand(inst, 0)?;
    let mut value = cx.b.use_var(var);
    let elements = cx.elements(dest).to_vec();
    for (n, element) in elements.iter().enumerate() {
        let at = offset + n as i64 * i64::from(ty.bytes());
        let bits = cx.b.func.ty(value).bits();
        if at < 0 || at as u64 * 8 >= u64::from(bits) {
            return cx.wrong(cx.operand(inst, 1)?, "an offset inside the parameter");
        }
        let mut part = value;
        if at > 0 {
            let count = cx.iconst(Type::B32, at as u64 * 8);
            part = cx.b.ins(Op::ShrU, &[value, count], cx.b.func.ty(value));
        }
        let part = cx.resize(part, width(ty), ty.class() == TypeClass::Signed);
        cx.write_extended(element, part, ty.class() == TypeClass::Signed)?;
        value = cx.b.use_var(var);
    }
    Ok(())
}

fn store<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let mut space = space_of(cx, inst)?;
    let to = cx.operand(inst, 0)?;
    let data = cx.operand(inst, 1)?;
    if space == Space::Param
        && let Some((binding, offset)) = cx.param_access(to)?
    {
        match binding {
            Binding::ScalarParam(var, declared) => {
                let ty = cx.type_at(inst, 0)?;
                if offset != 0 || ty.bits() != declared.bits() {
                    return cx.wrong(to, "the whole parameter");
                }
                let value = cx.src(data, ty)?;
                cx.write_var(var, value);
                return Ok(());
            }
            _ => space = Space::Local,
        }
    }
    let (mut access, ty) = access(cx, inst, space)?;
    let place = cx.place(to, space)?;
    access.offset = place.offset;
    let mut args = vec![place.address];
    if ty == ScalarType::B128 {
        let Some(Binding::Wide(lo, hi)) = data.as_name().and_then(|n| cx.lookup(n.text)) else {
            return cx.wrong(data, "a 128-bit register");
        };
        args.extend([cx.b.use_var(lo), cx.b.use_var(hi)]);
    } else {
        let elements = cx.elements(data);
        if elements.len() != usize::from(access.count) {
            return cx.wrong(data, &format!("{} values", access.count));
        }
        for element in elements {
            args.push(cx.src(element, ty)?);
        }
    }
    cx.effect(Op::Store(access), &args, &[])
}

fn hint<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let space = space_of(cx, inst)?;
    let kind = match inst.mnemonic.text {
        "prefetchu" => Hint::PrefetchUniform,
        "applypriority" => Hint::ApplyPriority,
        "discard" => Hint::Discard,
        _ if inst.modifiers.iter().any(|m| m.text == "tensormap") => return cx.not_built(inst),
        _ if inst.modifiers.iter().any(|m| m.text.starts_with("L2")) => Hint::PrefetchL2,
        _ => Hint::PrefetchL1,
    };
    let place = cx.place(cx.operand(inst, 0)?, space)?;
    let offset = cx.iconst(Type::B64, place.offset as u64);
    let address = cx.b.ins(Op::Add, &[place.address, offset], Type::B64);
    cx.effect(Op::Hint(kind, space), &[address], &[])
}

fn convert_address<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    let space = space_of(cx, inst)?;
    if matches!(space, Space::Generic) {
        return cx.fail(inst.opcode_span(), "`cvta` names a state space");
    }
    if space == Space::Param {
        return cx.not_built(inst);
    }
    let address = address_value(cx, cx.operand(inst, 1)?)?;
    let op = if inst.has_modifier("to") { Op::FromGeneric(space) } else { Op::ToGeneric(space) };
    // Global addresses are generic addresses.
    let value = if space == Space::Global { address } else { cx.b.ins(op, &[address], Type::B64) };
    let ty = cx.type_at(inst, 0)?;
    let value = cx.resize(value, width(ty), false);
    cx.write(cx.operand(inst, 0)?, value)
}

/// `membar.{cta,gl,sys}`, `fence{.sem}.scope`; proxy fences order nothing here, since there is one way to memory.
fn fence<'a>(cx: &mut FnLower<'_, '_, 'a>, inst: &Instruction<'a>) -> Result {
    if inst.modifiers.iter().any(|m| m.text.starts_with("proxy")) {
        return Ok(());
    }
    let (order, scope) = ordering(inst);
    let order = if order == Order::Weak { Order::AcqRel } else { order };
    cx.effect(Op::Fence { order, scope: scope.unwrap_or(Scope::Cta) }, &[], &[])
}
