//! Runs truth directories against the compiler and the engines.
//!
//! | module | runs |
//! | --- | --- |
//! | [`vectors`] | single instructions on seeded operands ([`inputs`]) |
//! | [`kernels`] | whole launches, compared by SHA-256 |
//! | [`timed`], [`timing`], [`counters`], [`stalls`] | the same on the timed machine: cycles, counters and stall reasons beside a real GPU's ([`truth`]) |
//! | [`profile`] | the same by source line: distances to a real GPU's samples |
//! | [`micro`] | microbenchmarks whose values on a real GPU are known |
//! | [`timed_bench`] | how fast the timed machine runs |
//! | [`scheduling`] | the page on warp scheduling |
//! | [`watch_bench`] | what profiles and samples cost the host |
//! | [`beside_bench`] | how fast another build of this program runs |
//! | [`docs`] | the pages made of all that |
//! | [`bench`] | functional rates beside a bare loop ([`bare_loop`]) |
//! | [`code`] | our code beside NVIDIA's: executed instructions, registers, mix |
//! | [`compile_bench`] | how long large modules take to compile |
//! | [`generate`], [`levels`] | random kernels, at every level of optimisation |
//! | [`fuzz`] | the entry functions of the fuzz targets |

pub mod bare_loop;
pub mod bench;
pub mod beside_bench;
pub mod code;
pub mod compile_bench;
pub mod counters;
pub mod docs;
pub mod fuzz;
pub mod generate;
pub mod inputs;
pub mod kernels;
pub mod levels;
pub mod micro;
pub mod optimizer;
pub mod preemption;
pub mod profile;
pub mod scheduling;
pub mod stalls;
pub mod timed;
pub mod timed_bench;
pub mod timing;
pub mod truth;
pub mod vectors;
pub mod watch_bench;
