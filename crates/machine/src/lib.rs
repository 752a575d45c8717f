//! When things happen: the hardware blocks of the machine, from push buffer to DRAM, cycle by cycle.
//!
//! `simt` computes, this crate counts cycles: a block asks `simt` to execute a warp's instruction and learns where it
//! went. One folder is one block: its specification (configuration), its state, its ports, its README.
//!
//! | module | holds |
//! | --- | --- |
//! | [`config`], [`spec`] | configurations: every number of every block, with its explanation |
//! | [`io`], [`host`], [`front_end`], [`compute_scheduler`], [`distribution`] | from the host's push buffer to CTAs on SMs |
//! | [`command`], [`front`] | words of push buffers; those five blocks as one |
//! | [`gpc`], [`tpc`], [`sm`] | clusters of SMs and the SM itself |
//! | [`crossbar`], [`l2`], [`dram`] | memory behind the SMs; [`memory`] puts it together |
//! | [`ppu`] | a whole processor, running launches; its state, saved and restored |
//! | [`optimizing`] | code that is optimized while a kernel runs |
//! | [`units`], [`ports`] | time, places; what travels between blocks |
//! | [`server`], [`workers`] | contention in virtual time; host threads |
//! | [`sm::watch`], [`sm::trace_cell`] | who watches warps: for profiles, and as hardware would |
//! | [`stall`], [`counters`], [`report`] | why warps wait; what is counted; what users are told |
//!
//! # Time
//! Blocks do not tick. Whoever needs a resource asks when it can have it, and gets a cycle: contention is a number, not
//! an event. SMs run on their own between *exchange points*, which are no farther apart than the shortest path between
//! two SMs; there requests, answers, CTAs and stores change hands in the order (cycle, SM, sequence).

pub mod command;
pub mod compute_scheduler;
pub mod config;
pub mod counters;
pub mod crossbar;
pub mod distribution;
pub mod dram;
pub mod front;
pub mod front_end;
pub mod gpc;
pub mod host;
pub mod io;
pub mod l2;
pub mod memory;
mod observe;
pub mod optimizing;
pub mod ports;
pub mod ppu;
pub mod progress;
pub mod report;
pub mod server;
pub mod sm;
pub mod spec;
pub mod stall;
pub mod tasks;
pub mod tpc;
pub mod units;
pub mod workers;

pub use config::Config;
pub use counters::Counters;
pub use report::Report;
pub use units::Cycle;
