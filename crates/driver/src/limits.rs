//! Whether a kernel can be launched as asked: the limits of an H200, the kernel's own, and its arguments.

use crate::launch::Dim;
use isa::image::Function;

/// Threads of a CTA.
pub const MAX_THREADS: u64 = 1024;
pub const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
pub const MAX_GRID: [u32; 3] = [0x7fff_ffff, 65535, 65535];
/// Shared bytes of a CTA, static and dynamic.
pub const MAX_SHARED: u64 = 227 << 10;
/// Registers of an SM, all of which one CTA may have.
pub const REGISTERS: u64 = 65536;

/// What is wrong with a launch, and which part of the request says it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    pub part: Part,
    pub message: String,
    pub help: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Entry,
    Grid,
    Block,
    Shared,
    /// All arguments together.
    Arguments,
    Argument(usize),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.help)
    }
}

/// Checks shape, shared memory and registers.
pub fn check_shape(f: &Function, dim: &Dim) -> Result<(), Refusal> {
    let refuse = |part, message: String, help: String| Err(Refusal { part, message, help });
    for (n, axis) in ["x", "y", "z"].into_iter().enumerate() {
        if dim.grid[n] == 0 || dim.grid[n] > MAX_GRID[n] {
            let message = format!("the grid has {} CTAs in {axis}", dim.grid[n]);
            return refuse(Part::Grid, message, format!("1 to {} are possible", MAX_GRID[n]));
        }
        if dim.block[n] == 0 || dim.block[n] > MAX_BLOCK[n] {
            let message = format!("the block has {} threads in {axis}", dim.block[n]);
            return refuse(Part::Block, message, format!("1 to {} are possible", MAX_BLOCK[n]));
        }
    }
    let threads: u64 = dim.block.iter().map(|&n| u64::from(n)).product();
    if threads > MAX_THREADS {
        let message = format!("the block has {threads} threads");
        return refuse(Part::Block, message, format!("at most {MAX_THREADS} are possible"));
    }
    let shown = |d: [u32; 3]| format!("{} x {} x {}", d[0].max(1), d[1].max(1), d[2].max(1));
    if f.required_threads != [0; 3] && f.required_threads.map(|n| n.max(1)) != dim.block {
        let help = format!("its .reqntid asks for exactly {}", shown(f.required_threads));
        return refuse(Part::Block, format!("kernel {} cannot run with this block", f.name), help);
    }
    let bound: u64 = f.max_threads.iter().map(|&n| u64::from(n.max(1))).product();
    if f.max_threads != [0; 3] && threads > bound {
        let help = format!("its .maxntid allows {}", shown(f.max_threads));
        return refuse(Part::Block, format!("kernel {} cannot run with {threads} threads", f.name), help);
    }
    // Registers are given to warps in units of 256.
    let registers = u64::from(f.registers.next_multiple_of(8)) * threads.next_multiple_of(32);
    if registers > REGISTERS {
        let message = format!("{threads} threads of {} registers each do not fit an SM", f.registers);
        return refuse(Part::Block, message, "use a smaller block, or .maxntid in the PTX".into());
    }
    let shared = u64::from(f.shared_bytes) + u64::from(dim.shared_bytes);
    if shared > MAX_SHARED {
        let message = format!(
            "kernel {} takes {} static and {} dynamic bytes of shared memory",
            f.name, f.shared_bytes, dim.shared_bytes
        );
        return refuse(Part::Shared, message, format!("together they may be {MAX_SHARED}"));
    }
    Ok(())
}

/// Lays the arguments out as the kernel's parameter block.
pub fn parameters(f: &Function, args: &[&[u8]]) -> Result<Vec<u8>, Refusal> {
    if args.len() != f.params.len() {
        let names: Vec<String> = f.params.iter().map(|p| format!("{} ({} bytes)", p.name, p.size)).collect();
        return Err(Refusal {
            part: Part::Arguments,
            message: format!("kernel {} has {} parameters, {} are given", f.name, f.params.len(), args.len()),
            help: if names.is_empty() { "pass none".into() } else { format!("pass {}", names.join(", ")) },
        });
    }
    let mut block = vec![0; f.param_bytes as usize];
    for (n, (param, arg)) in f.params.iter().zip(args).enumerate() {
        let place = block.get_mut(param.offset as usize..).and_then(|b| b.get_mut(..arg.len()));
        match place {
            Some(place) if arg.len() == param.size as usize => place.copy_from_slice(arg),
            _ => {
                return Err(Refusal {
                    part: Part::Argument(n),
                    message: format!("argument {n} of kernel {} has {} bytes", f.name, arg.len()),
                    help: format!("parameter {} takes {}; use a type of that size", param.name, param.size),
                });
            }
        }
    }
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::image::Param;

    fn kernel() -> Function {
        let param = |name: &str, offset, size| Param { name: name.into(), offset, size, align: size };
        Function {
            shared_bytes: 1024,
            shared_align: 16,
            barriers: 1,
            params: vec![param("a", 0, 4), param("b", 8, 8)],
            param_bytes: 16,
            ..Function::entry("k", 0..1, 32)
        }
    }

    fn dim(grid: [u32; 3], block: [u32; 3], shared_bytes: u32) -> Dim {
        Dim { grid, block, shared_bytes }
    }

    #[test]
    fn shapes_are_those_of_the_hardware() {
        let one = [1, 1, 1];
        let check = |f: &Function, d: Dim| check_shape(f, &d).map_err(|r| r.part);
        assert_eq!(check(&kernel(), dim([0x7fff_ffff, 65535, 65535], [1024, 1, 1], 0)), Ok(()));
        assert_eq!(check(&kernel(), dim([1, 65536, 1], one, 0)), Err(Part::Grid));
        assert_eq!(check(&kernel(), dim([1, 0, 1], one, 0)), Err(Part::Grid));
        assert_eq!(check(&kernel(), dim(one, [1, 1, 65], 0)), Err(Part::Block));
        assert_eq!(check(&kernel(), dim(one, [32, 32, 2], 0)), Err(Part::Block));
        assert_eq!(check(&kernel(), dim(one, one, (227 << 10) - 1024)), Ok(()));
        assert_eq!(check(&kernel(), dim(one, one, (227 << 10) - 1023)), Err(Part::Shared));
        assert_eq!(
            check(&Function { registers: 65, ..kernel() }, dim(one, [1024, 1, 1], 0)),
            Err(Part::Block)
        );
        let bounded = Function { max_threads: [64, 2, 1], ..kernel() };
        assert_eq!(check(&bounded, dim(one, [128, 1, 1], 0)), Ok(()));
        assert_eq!(check(&bounded, dim(one, [129, 1, 1], 0)), Err(Part::Block));
        let required = Function { required_threads: [64, 0, 0], ..kernel() };
        assert_eq!(check(&required, dim(one, [64, 1, 1], 0)), Ok(()));
        assert_eq!(check(&required, dim(one, [32, 1, 1], 0)), Err(Part::Block));
    }

    #[test]
    fn arguments_are_laid_out() {
        let block = parameters(&kernel(), &[&[1, 2, 3, 4], &[9; 8]]).expect("right sizes");
        assert_eq!(block, [1, 2, 3, 4, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9]);
        let count = parameters(&kernel(), &[&[0; 4]]).expect_err("one is missing");
        assert_eq!(count.message, "kernel k has 2 parameters, 1 are given");
        let size = parameters(&kernel(), &[&[0; 8], &[0; 8]]).expect_err("the first is too long");
        assert_eq!(
            (size.part, &size.help[..]),
            (Part::Argument(0), "parameter a takes 4; use a type of that size")
        );
    }
}
