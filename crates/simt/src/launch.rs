//! A launch, prepared: what all of its CTAs share.

use crate::decode::{self, NoRoom, Pooled, Room};
use crate::memory::Memory;
use crate::prefetch::HOST_LINE;
use crate::program::{Banks, Kernel, Program, launch_bank};
use crate::runner::LaunchError;
use crate::uop::ROW;
use crate::watched::{self, What};
use isa::Inst;
use isa::abi::launch::{ENVREG, PARAMS, PARAMS_MAX};
use isa::image::Function;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Shared bytes that a CTA can have.
pub const SHARED_MAX: u32 = 227 << 10;
/// Threads that a CTA can have.
pub const THREADS_MAX: u32 = 1024;

/// How a kernel is started.
#[derive(Clone, Debug)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
    /// Local bytes of a thread whose calls the compiler could not bound.
    pub stack_bytes: u32,
    /// What environment registers 1 and 2 hold.
    pub workspace: u64,
}

impl Shape {
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Shape {
        Shape { grid, block, dynamic_shared: 0, stack_bytes: 64 << 10, workspace: 0 }
    }
}

/// Local bytes that a thread can have.
const LOCAL_MAX: u32 = 512 << 10;

/// Code for a launch that runs, and what is to be known of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Growth<'a> {
    pub code: &'a [Inst],
    /// Instructions that become watched, besides those that are.
    pub watch: &'a [(u32, What)],
    /// Barriers behind which warps can be sent to other code, all of them, and numbers of what is behind them.
    pub openings: &'a [(u32, u32)],
}

/// The words of rows of constants.
fn words(pool: &[Pooled], banks: &Banks) -> Vec<u32> {
    let word = |p: &Pooled| match *p {
        Pooled::Imm(x) => x,
        Pooled::Const { bank, offset } => banks.word(bank, offset),
    };
    pool.iter().map(word).collect()
}

/// Bytes that most sprints write.
const FIRST_OF_TAPE: u32 = 256;

/// Levels that child tasks may nest.
pub const DEPTH_MAX: u32 = 64;

/// A kernel with its arguments.
#[derive(Clone)]
pub struct Launch {
    program: Program,
    /// Child tasks above this one.
    pub depth: u32,
    /// Where the queue is that bounds the launch, if its grid does not.
    pub queue: Option<u64>,
    pub(crate) kernel: Arc<Kernel>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub dynamic_shared: u32,
    pub(crate) local_bytes: u32,
    pub(crate) banks: Banks,
    /// The words of the rows of constants, and those that loads of constants take.
    pub(crate) pool: Vec<u32>,
    pub(crate) loads: Vec<u32>,
}

/// A launch as a checkpoint has it; its program is kept elsewhere.
#[derive(Clone, Serialize, Deserialize)]
pub struct Saved {
    /// The entry's number among the program's functions.
    function: u32,
    depth: u32,
    queue: Option<u64>,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    local_bytes: u32,
    workspace: u64,
    #[serde(with = "crate::arrays::bytes")]
    params: Vec<u8>,
    /// The program's constants as the launch sees them, where memory has others by now.
    constants: Option<Vec<u8>>,
}

impl Launch {
    /// Lines of the host's caches that a warp's first instructions, so many of them, and its start need, in bytes from the
    /// begin of its file. One that sprints needs its tape.
    pub fn first_lines(&self, instructions: usize, sprints: bool) -> Vec<u32> {
        let kernel = &self.kernel;
        if sprints {
            let tape = kernel.layout.tape;
            return (tape..tape + FIRST_OF_TAPE).step_by(HOST_LINE).collect();
        }
        let mut lines = kernel.near.following(kernel.function.start as usize, instructions);
        lines.extend(kernel.cleared.iter().flat_map(|&row| (row..row + ROW).step_by(HOST_LINE)));
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// Everything but its program.
    pub fn save(&self, memory: &Memory) -> Saved {
        let image = self.program.image();
        let function = image.functions.iter().position(|f| f.start == self.kernel.function.start);
        let (bank, constants) = (self.banks.launch(), self.banks.constants());
        let now = self.program.banks(memory, Vec::new());
        let is_same = now.is_ok_and(|now| now.constants() == constants);
        Saved {
            function: function.unwrap_or(0) as u32,
            depth: self.depth,
            queue: self.queue,
            grid: self.grid,
            block: self.block,
            dynamic_shared: self.dynamic_shared,
            local_bytes: self.local_bytes,
            workspace: self.banks.read(isa::abi::BANK_LAUNCH, u32::from(ENVREG) + 4, 4).unwrap_or(0) as u64
                | (self.banks.word(isa::abi::BANK_LAUNCH, u32::from(ENVREG) + 8) as u64) << 32,
            params: bank.get(PARAMS.into()..).unwrap_or_default().to_vec(),
            constants: (!is_same).then(|| constants.to_vec()),
        }
    }

    /// The launch of a program that was saved, for the same vector level as another of it; `None` where it cannot be one.
    pub fn restore(other: &Launch, saved: Saved, memory: &Memory) -> Option<Launch> {
        let program = &other.program;
        let n = saved.function as usize;
        if !program.image().functions.get(n)?.is_entry || saved.depth > DEPTH_MAX {
            return None;
        }
        let kernel = program.decoded(n, other.kernel.level)?;
        let shape = Shape {
            dynamic_shared: saved.dynamic_shared,
            stack_bytes: saved.local_bytes.min(LOCAL_MAX),
            workspace: saved.workspace,
            ..Shape::new(saved.grid, saved.block)
        };
        let mut launch = Launch::new(program, kernel, &shape, &saved.params, memory).ok()?;
        if let Some(constants) = saved.constants {
            if !launch.banks.set_constants(constants) {
                return None;
            }
            launch.pool = words(&launch.kernel.pool, &launch.banks);
            launch.loads = words(&launch.kernel.loads, &launch.banks);
        }
        Some(Launch { depth: saved.depth, queue: saved.queue, ..launch })
    }

    /// Checks the shape against the machine's and the kernel's limits, and fills the launch's constant bank.
    pub fn new(
        program: &Program,
        kernel: Arc<Kernel>,
        shape: &Shape,
        params: &[u8],
        memory: &Memory,
    ) -> Result<Launch, LaunchError> {
        let fail = |m: String| Err(LaunchError::Invalid(m));
        let f = kernel.function();
        let threads = shape.block.iter().map(|&n| u64::from(n)).product::<u64>();
        let ctas = shape.grid.iter().map(|&n| u128::from(n)).product::<u128>();
        let [gx, gy, gz] = shape.grid;
        if ctas == 0 || gx > i32::MAX as u32 || gy > 0xffff || gz > 0xffff {
            return fail(format!("a grid of {gx} x {gy} x {gz} CTAs does not exist"));
        }
        let limits = f.max_threads.iter().map(|&n| u64::from(n.max(1))).product::<u64>();
        let bounded = f.max_threads.iter().any(|&n| n != 0) && threads > limits;
        if threads == 0 || threads > u64::from(THREADS_MAX) || shape.block[2] > 64 || bounded {
            let [x, y, z] = shape.block;
            return fail(format!("{} cannot run CTAs of {x} x {y} x {z} threads", f.name));
        }
        if f.required_threads.iter().any(|&n| n != 0) && f.required_threads.map(|n| n.max(1)) != shape.block {
            let [x, y, z] = f.required_threads;
            return fail(format!("{} requires CTAs of {x} x {y} x {z} threads", f.name));
        }
        let aligned = f.shared_bytes.next_multiple_of(f.shared_align.max(1));
        let shared_bytes = if shape.dynamic_shared == 0 {
            f.shared_bytes
        } else {
            aligned.saturating_add(shape.dynamic_shared)
        };
        if shared_bytes > SHARED_MAX {
            return fail(format!(
                "{shared_bytes} bytes of shared memory are more than the {SHARED_MAX} of a CTA"
            ));
        }
        if params.len() < f.param_bytes as usize || params.len() > PARAMS_MAX as usize {
            let want = f.param_bytes;
            return fail(format!("{} takes {want} bytes of parameters, {} were given", f.name, params.len()));
        }
        let bank = launch_bank(shape, program.const_base(), params);
        let banks = program.banks(memory, bank).map_err(|e| LaunchError::Invalid(e.to_string()))?;
        let (pool, loads) = (words(&kernel.pool, &banks), words(&kernel.loads, &banks));
        let local_bytes =
            if f.unbounded_stack { f.local_bytes.max(shape.stack_bytes) } else { f.local_bytes };
        Ok(Launch {
            program: program.clone(),
            depth: 0,
            queue: None,
            grid: shape.grid,
            block: shape.block,
            shared_bytes,
            dynamic_shared: shape.dynamic_shared,
            local_bytes: local_bytes.next_multiple_of(16),
            banks,
            pool,
            loads,
            kernel,
        })
    }

    /// The same launch with warps that have at least this room, for code that is made while it runs.
    pub fn with_room(&self, room: Room) -> Launch {
        let image = self.program.image();
        let is_it = |f: &Function| f.is_entry && f.start == self.kernel.function.start;
        let Some(entry) = image.functions.iter().position(is_it) else { return self.clone() };
        let kernel = Arc::new(decode::kernel(image, entry, self.kernel.level, room));
        let (pool, loads) = (words(&kernel.pool, &self.banks), words(&kernel.loads, &self.banks));
        Launch { kernel, pool, loads, ..self.clone() }
    }

    /// The same launch with code behind that of its kernel, at [`Kernel::end`].
    pub fn grown(&self, growth: &Growth<'_>) -> Result<Launch, NoRoom> {
        let mut kernel = decode::grown(&self.kernel, growth.code)?;
        watched::watch(&mut kernel, growth.watch);
        kernel.openings = growth.openings.to_vec();
        kernel.openings.sort_unstable();
        let (pool, loads) = (words(&kernel.pool, &self.banks), words(&kernel.loads, &self.banks));
        Ok(Launch { kernel: Arc::new(kernel), pool, loads, ..self.clone() })
    }

    /// A word of a constant bank as the launch's warps see it.
    pub fn constant(&self, bank: u8, offset: u32) -> u32 {
        self.banks.word(bank, offset)
    }

    /// A child task: another kernel of the program, by its address.
    pub fn child(
        &self,
        kernel: u64,
        shape: &Shape,
        params: &[u8],
        memory: &Memory,
    ) -> Result<Launch, LaunchError> {
        let no_kernel = || LaunchError::Invalid(format!("{kernel:#x} is the address of no kernel"));
        let n = self.program.entry_at(kernel).ok_or_else(no_kernel)?;
        let kernel = self.program.decoded(n, self.kernel.level).ok_or_else(no_kernel)?;
        let child = Launch::new(&self.program, kernel, shape, params, memory)?;
        Ok(Launch { depth: self.depth + 1, ..child })
    }

    /// Bytes of parameters of a kernel of the program, by its address.
    pub(crate) fn param_bytes(&self, kernel: u64) -> Option<u32> {
        let n = self.program.entry_at(kernel)?;
        Some(self.program.image().functions[n].param_bytes)
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Local bytes of a thread.
    pub fn local_bytes(&self) -> u32 {
        self.local_bytes
    }

    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    pub fn warps(&self) -> u32 {
        self.threads().div_ceil(32)
    }

    pub fn ctas(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// Rows that a warp has for registers of each kind.
    pub fn room(&self) -> Room {
        self.kernel.room
    }

    /// A CTA's place in the grid.
    pub fn index(&self, linear: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [(linear % x) as u32, (linear / x % y) as u32, (linear / x / y) as u32]
    }
}
