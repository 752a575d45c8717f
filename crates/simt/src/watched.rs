//! What happens at instructions that somebody watches, and where warps go that leave a barrier.
//!
//! A watched instruction has a handler that executes the instruction's own and tells the warp's [`Observer`] what it saw. Kernels
//! that nobody watches have none of it.

use crate::access::{self, Access};
use crate::lanes::{Lanes, Row};
use crate::level::{self, Levels, levels};
use crate::ops::bodies;
use crate::program::Kernel;
use crate::uop::{Flow, Handler, ROW, Uop};

/// What is to be told of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct What {
    /// Lanes that are at a branch, and those that jump.
    pub branch: bool,
    /// Addresses of a memory instruction.
    pub access: bool,
    /// The first register that it wrote.
    pub result: bool,
}

/// A watched instruction: its own handler, and what is told.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    inner: Handler,
    what: What,
}

/// General registers of a warp.
pub struct Registers<'a> {
    lanes: &'a Lanes,
    first: u32,
    rows: u32,
}

impl Registers<'_> {
    /// A register of all lanes; zeros where there is none.
    pub fn row(&self, register: u8) -> Row {
        let at = u32::from(register) * ROW;
        if at >= self.rows {
            return [0; 32];
        }
        // SAFETY: a row of the file that the lanes are bound to.
        unsafe { *self.lanes.row(self.first + at) }
    }
}

/// Who is told what a warp does. Places are those of the code that runs.
pub trait Observer: Send {
    /// Lanes leave a barrier for the code behind it, or begin with the kernel.
    fn enter(&mut self, block: u32, mask: u32, registers: &Registers<'_>);
    fn branch(&mut self, place: u32, active: u32, taken: u32);
    fn access(&mut self, place: u32, access: &Access);
    fn result(&mut self, place: u32, mask: u32, value: &Row);
    fn as_any(&mut self) -> &mut dyn std::any::Any;
    fn as_any_ref(&self) -> &dyn std::any::Any;
}

/// The registers that an observer may look at.
pub(crate) fn registers<'a>(lanes: &'a Lanes, kernel: &Kernel) -> Registers<'a> {
    let l = &kernel.layout;
    Registers { lanes, first: l.registers, rows: l.zeros - l.registers }
}

/// Makes instructions watched ones. Places that were watched before stay so.
pub(crate) fn watch(kernel: &mut Kernel, places: &[(u32, What)]) {
    let handlers: Levels = levels::<Tell>();
    for &(place, what) in places {
        let Some(u) = kernel.uops.get_mut(place as usize) else { continue };
        match kernel.watched.binary_search_by_key(&place, |w| w.0) {
            Ok(n) => kernel.watched[n].1.what = what,
            Err(n) => {
                let inner = std::mem::replace(&mut u.handler, handlers[kernel.level as usize]);
                kernel.watched.insert(n, (place, Watched { inner, what }));
            }
        }
    }
}

bodies! {
    Tell |l, u| {
        let kernel = &*l.kernel;
        // SAFETY: watched instructions are only ever executed where they stand in their kernel.
        let place = (u as *const Uop).offset_from(kernel.uops.as_ptr()) as u32;
        match kernel.watched.binary_search_by_key(&place, |w| w.0) {
            Ok(n) => tell(l, u, place, kernel.watched[n].1, kernel),
            Err(_) => Flow::Fault,
        }
    };
}

/// Executes an instruction, and tells what it did.
///
/// # Safety
/// As [`crate::uop::Handler`].
unsafe fn tell(l: &mut Lanes, u: &Uop, place: u32, watched: Watched, kernel: &Kernel) -> Flow {
    let Watched { inner, what } = watched;
    let (active, mask) = (l.active, l.mask(u));
    let mut touched = None;
    if what.access
        && let Some((s, size)) = access::kind(u)
    {
        let mut access = Access { size, mask, ..Access::default() };
        // SAFETY: the lanes are bound, the instruction is theirs, and the host has the kernel's level.
        unsafe { level::locate(kernel.level)(l, u, s, &mut access) };
        touched = Some(access);
    }
    // SAFETY: the caller's promise.
    let flow = unsafe { inner(l, u) };
    // What needs more than a handler does is told by the warp; what was not executed comes again.
    if !matches!(flow, Flow::Next | Flow::Jump) {
        return flow;
    }
    let Some(mut observer) = l.observer.take() else { return flow };
    if what.branch {
        observer.branch(place, active, mask);
    }
    if let Some(access) = &touched {
        observer.access(place, access);
    }
    if what.result {
        // SAFETY: the row exists.
        observer.result(place, mask, unsafe { &*l.row(u.d) });
    }
    l.observer = Some(observer);
    flow
}
