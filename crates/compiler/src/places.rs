//! Where a module's variables lie: shared and constant offsets, and the words that the loader fills in.

use crate::CompileError;
use ir::{AddrOf, FuncId, FunctionKind, GlobalId, GlobalSpace, Linkage, Module, Op, SymbolRef};
use isa::image::{Relocation, Space, Symbol, Variable};
use std::collections::HashMap;

/// The loader's bank as far as it is filled.
#[derive(Default)]
pub struct LoaderBank {
    pub bytes: Vec<u8>,
    pub relocations: Vec<Relocation>,
    addresses: HashMap<(u32, bool, i64), u16>,
}

impl LoaderBank {
    fn reserve(&mut self, size: usize, align: usize) -> Result<u32, String> {
        let at = self.bytes.len().next_multiple_of(align);
        if at + size > 1 << 16 {
            return Err("addresses and jump tables take more than 64 KiB".into());
        }
        self.bytes.resize(at + size, 0);
        Ok(at as u32)
    }

    /// Room for a jump table.
    pub fn table(&mut self, entries: usize) -> Result<u32, String> {
        self.reserve(4 * entries, 4)
    }

    /// Offset of a 64-bit address.
    fn address(&mut self, key: (u32, bool, i64), symbol: Symbol) -> Result<u16, String> {
        if let Some(&at) = self.addresses.get(&key) {
            return Ok(at);
        }
        let offset = self.reserve(8, 8)?;
        self.relocations.push(Relocation {
            offset,
            size: 8,
            symbol,
            addend: key.2,
            generic: false,
            shift: 0,
        });
        self.addresses.insert(key, offset as u16);
        Ok(offset as u16)
    }
}

/// Where a variable lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Index into the image's variables.
    Global(u32),
    /// Offset in the bank of constants, and index into the image's variables.
    Const(u32, u32),
    /// A constant of another module.
    ExternConst(u32),
    Shared(u32),
    /// Behind the static variables of the entry.
    DynamicShared,
}

pub struct Places {
    pub globals: Vec<Place>,
    pub variables: Vec<Variable>,
    pub const_bytes: u32,
    /// Static shared bytes by function; dynamic shared memory starts there.
    pub shared_bytes: Vec<u32>,
    pub shared_align: u32,
    /// Index into the image's functions, for functions with a body.
    pub functions: Vec<Option<u32>>,
    pub loader: LoaderBank,
}

impl Places {
    pub fn new(m: &Module) -> Result<Self, CompileError> {
        let mut next = 0;
        let functions = m
            .functions
            .iter()
            .map(|f| {
                (!f.is_declaration).then(|| {
                    next += 1;
                    next - 1
                })
            })
            .collect();
        let mut p = Places {
            globals: Vec::new(),
            variables: Vec::new(),
            const_bytes: 0,
            shared_bytes: vec![0; m.functions.len()],
            shared_align: 1,
            functions,
            loader: LoaderBank::default(),
        };
        p.globals = vec![Place::DynamicShared; m.globals.len()];
        p.lay_out_shared(m)?;
        for (n, global) in m.globals.iter().enumerate() {
            match global.space {
                GlobalSpace::Shared => {}
                GlobalSpace::Global => {
                    p.globals[n] = Place::Global(p.add_variable(m, n, Space::Global, 0)?)
                }
                GlobalSpace::Const if global.linkage == Linkage::Extern => {
                    p.globals[n] = Place::ExternConst(p.add_variable(m, n, Space::Const, 0)?);
                }
                GlobalSpace::Const => {
                    let at = u64::from(p.const_bytes).next_multiple_of(u64::from(global.align.max(1)));
                    if at + global.size > 1 << 16 {
                        let g = GlobalId::new(n);
                        return Err(CompileError::of_global(
                            m,
                            g,
                            "constant variables take more than 64 KiB",
                        ));
                    }
                    p.const_bytes = (at + global.size) as u32;
                    p.globals[n] = Place::Const(at as u32, p.add_variable(m, n, Space::Const, at as u32)?);
                }
            }
        }
        p.add_initialisers(m)?;
        Ok(p)
    }

    /// Variables that many name come first and lie at one place for all; those of one entry follow, each entry for itself.
    /// Dynamic memory starts behind an entry's own, or, where device functions use it, behind everybody's.
    fn lay_out_shared(&mut self, m: &Module) -> Result<(), CompileError> {
        let users = users(m);
        let is_shared = |g: &GlobalId| m.global(*g).space == GlobalSpace::Shared;
        let is_static = |g: &GlobalId| m.global(*g).size > 0 || m.global(*g).linkage != Linkage::Extern;
        let shared: Vec<GlobalId> = (0..m.globals.len()).map(GlobalId::new).filter(is_shared).collect();
        self.shared_align = shared.iter().map(|g| m.global(*g).align).max().unwrap_or(1).max(1);
        let globals = &mut self.globals;
        let mut put = |g: GlobalId, end: &mut u32| {
            let global = m.global(g);
            let at = u64::from(*end).next_multiple_of(u64::from(global.align.max(1)));
            if at + global.size > 1 << 24 {
                return Err(CompileError::of_global(m, g, "shared variables take more than a CTA can have"));
            }
            globals[g.index()] = Place::Shared(at as u32);
            *end = (at + global.size) as u32;
            Ok(())
        };
        let mut common = 0;
        for &g in shared.iter().filter(|g| is_static(g)) {
            if users[g.index()] == Users::Many {
                put(g, &mut common)?;
            }
        }
        let mut ends = vec![common; m.functions.len()];
        for &g in shared.iter().filter(|g| is_static(g)) {
            match users[g.index()] {
                Users::Entry(e) => put(g, &mut ends[e])?,
                Users::Nobody => put(g, &mut common.clone())?,
                Users::Many => {}
            }
        }
        let max = ends.iter().copied().max().unwrap_or(0);
        let same_for_all = shared.iter().any(|g| !is_static(g) && users[g.index()] == Users::Many);
        let align = self.shared_align;
        self.shared_bytes =
            ends.into_iter().map(|e| if same_for_all { max } else { e }.next_multiple_of(align)).collect();
        Ok(())
    }

    fn add_variable(&mut self, m: &Module, n: usize, space: Space, offset: u32) -> Result<u32, CompileError> {
        let g = &m.globals[n];
        if g.size > 1 << 40 || g.init.len() as u64 > g.size && g.linkage != Linkage::Extern {
            return Err(CompileError::of_global(m, GlobalId::new(n), "the variable has an impossible size"));
        }
        self.variables.push(Variable {
            name: g.name.clone(),
            space,
            is_visible: g.linkage != Linkage::Internal,
            is_extern: g.linkage == Linkage::Extern,
            size: g.size,
            align: g.align.max(1).next_power_of_two(),
            offset,
            init: g.init.clone(),
            relocations: Vec::new(),
        });
        Ok(self.variables.len() as u32 - 1)
    }

    fn add_initialisers(&mut self, m: &Module) -> Result<(), CompileError> {
        for (n, g) in m.globals.iter().enumerate() {
            let (Place::Global(var) | Place::Const(_, var)) = self.globals[n] else { continue };
            for piece in &g.pieces {
                let symbol = match piece.symbol {
                    SymbolRef::Global(g) => self.symbol(g),
                    SymbolRef::Function(f) => self.function_symbol(f).ok_or_else(|| {
                        let name = &m.function(f).name;
                        CompileError::of_global(
                            m,
                            GlobalId::new(n),
                            &format!("`{name}` has no body to take the address of"),
                        )
                    })?,
                };
                self.variables[var as usize].relocations.push(Relocation {
                    offset: piece.offset,
                    size: piece.size,
                    symbol,
                    addend: piece.addend,
                    generic: piece.generic,
                    shift: piece.shift,
                });
            }
        }
        Ok(())
    }

    fn symbol(&self, g: GlobalId) -> Symbol {
        match self.globals[g.index()] {
            Place::Global(v) | Place::Const(_, v) | Place::ExternConst(v) => Symbol::Variable(v),
            Place::Shared(at) => Symbol::Shared(at),
            Place::DynamicShared => Symbol::Shared(self.shared_bytes.iter().copied().max().unwrap_or(0)),
        }
    }

    fn function_symbol(&self, f: FuncId) -> Option<Symbol> {
        self.functions[f.index()].map(Symbol::Function)
    }

    /// Offset in the loader's bank of the address of a global or foreign constant variable.
    pub fn variable_address(&mut self, g: GlobalId, addend: i64) -> Result<u16, String> {
        let symbol = self.symbol(g);
        self.loader.address((g.0, false, addend), symbol)
    }

    /// Offset in the loader's bank of a function's address.
    pub fn function_address(&mut self, m: &Module, f: FuncId) -> Result<u16, String> {
        let name = &m.function(f).name;
        let symbol =
            self.function_symbol(f).ok_or_else(|| format!("`{name}` has no body to take the address of"))?;
        self.loader.address((f.0, true, 0), symbol)
    }
}

/// Who names a shared variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Users {
    Nobody,
    Entry(usize),
    /// Several entries, a device function, or an initialiser.
    Many,
}

/// Who names each variable, by their code and by initialisers.
fn users(m: &Module) -> Vec<Users> {
    let mut users = vec![Users::Nobody; m.globals.len()];
    for (n, f) in m.functions.iter().enumerate().filter(|(_, f)| !f.is_declaration) {
        for &b in &f.layout {
            for &i in &f.block(b).insts {
                if let Op::Addr(AddrOf::Global(g), _) = f.inst(i).op {
                    let user = &mut users[g.index()];
                    *user = match *user {
                        Users::Nobody if f.kind == FunctionKind::Entry => Users::Entry(n),
                        Users::Entry(e) if e == n => Users::Entry(e),
                        _ => Users::Many,
                    };
                }
            }
        }
    }
    for piece in m.globals.iter().flat_map(|g| &g.pieces) {
        if let SymbolRef::Global(g) = piece.symbol {
            users[g.index()] = Users::Many;
        }
    }
    users
}
