//! Whatever the policy of the schedulers and however it is set up, programs compute the same and come to their end.

use conformance::generate;
use conformance::levels::{run, run_on};
use conformance::scheduling::outcomes;
use driver::compile::Phases;
use driver::init::splitmix;
use driver::{CompileOptions, Config, Device, Dim, LaunchOptions, Module, Source, Timing};
use machine::sm::Policy;
use machine::sm::policy::Accesses;
use machine::sm::policy::spec::{Age, Form, Value, Variant};
use machine::stall::Stall;

/// Random kernels, and machines for each.
const KERNELS: u64 = 40;
const MACHINES: u64 = 4;

const LOADS: CompileOptions =
    CompileOptions { opt_level: 3, fmad: true, max_registers: None, phases: Phases::Loads };

/// A small machine with a random scheduler.
fn random(seed: u64) -> Config {
    let mut drawn = 0;
    let mut below = |n: u64| {
        drawn += 1;
        splitmix(seed, drawn) % n
    };
    let mut pick = |n: usize| below(n as u64) as usize;
    let mut config = Config::preset("tiny").expect("the preset");
    let sm = &mut config.sm;
    sm.sub_cores = [1, 2, 4][pick(3)];
    sm.dispatch_units = 1 + pick(2) as u32;
    sm.policy = Policy::ALL[pick(Policy::ALL.len())];
    let s = &mut sm.scheduler;
    s.active_warps = 1 + pick(3) as u32;
    let c = &mut s.credit;
    c.variant = [Variant::All, Variant::Next, Variant::Half, Variant::Halving][pick(4)];
    (c.guard, c.step, c.bits) = (pick(4) == 0, pick(4) as u32, 2 + pick(12) as u32);
    c.weight = [Form::Packed, Form::Additive][pick(2)];
    (c.age_bits, c.patience) = (pick(6) as u32, [0, 3, 4096][pick(3)]);
    (c.oversubscribed, c.closed) = (1 + pick(3) as u32, 4);
    let g = &mut s.grants;
    g.accesses = [Accesses::None, Accesses::Texture, Accesses::Loads, Accesses::Loads][pick(4)];
    g.value = [Value::Fields, Value::Hash][pick(2)];
    (g.tile_bits, g.phase_bits, g.tex_bits) = (1 + pick(6) as u32, 1 + pick(5) as u32, 1 + pick(3) as u32);
    g.timeout = [1, 20, 2048][pick(3)];
    let w = &mut s.window;
    (w.entries, w.timeout, w.issue) = (1 + pick(4) as u32, [1, 8, 64][pick(3)], 1 + pick(2) as u32);
    w.age = [Age::Pc, Age::Residence][pick(2)];
    (w.depth, w.nesting, w.synchronise) = (pick(2) == 0, pick(2) == 0, pick(2) == 0);
    for pipe in &mut sm.pipes {
        pipe.queue = [0, 0, 8][pick(3)];
    }
    config
}

#[test]
fn random_programs_compute_the_same_under_random_schedulers() {
    for seed in 0..KERNELS {
        let kernel = generate::kernel(seed);
        let expected = run(&kernel.text, &LOADS).unwrap_or_else(|e| panic!("kernel {seed}: {e}"));
        for n in 0..MACHINES {
            let config = random(seed * MACHINES + n);
            let found = run_on(&kernel.text, &LOADS, Some(&config));
            let (policy, scheduler) = (config.sm.policy, &config.sm.scheduler);
            match found {
                Ok(memory) => assert!(memory == expected, "kernel {seed} on {policy:?} {scheduler:#?}"),
                Err(e) => panic!("kernel {seed} on {policy:?} {scheduler:#?}: {e}"),
            }
        }
    }
}

/// Warps that wait for each other: a lock that one thread of each warp takes in turn, with loads in the locked part, and
/// in front of it the last warps of the last CTA let all others go.
const LOCKS: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry locks(.param .u64 data)
{
    .reg .pred %p<4>;
    .reg .b32 %r<12>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 31;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra DONE;
    mov.u32 %r3, %ctaid.x;
    setp.ne.u32 %p2, %r3, 3;
    @%p2 bra WAIT;
    ld.global.u32 %r4, [%rd1+64];
    ld.global.u32 %r5, [%rd1+192];
    add.u32 %r4, %r4, %r5;
    add.u32 %r4, %r4, 1;
    st.volatile.global.u32 [%rd1+8], %r4;
WAIT:
    ld.volatile.global.u32 %r6, [%rd1+8];
    setp.eq.u32 %p3, %r6, 0;
    @%p3 bra WAIT;
TAKE:
    atom.global.cas.b32 %r7, [%rd1], 0, 1;
    setp.ne.u32 %p3, %r7, 0;
    @%p3 bra TAKE;
    membar.gl;
    ld.global.cg.u32 %r8, [%rd1+4];
    ld.global.u32 %r9, [%rd1+128];
    add.u32 %r8, %r8, %r9;
    add.u32 %r8, %r8, 1;
    st.global.u32 [%rd1+4], %r8;
    membar.gl;
    atom.global.exch.b32 %r7, [%rd1], 0;
DONE:
    ret;
}
";

/// CTAs and warps of each.
const CTAS: u32 = 4;
const WARPS: u32 = 4;

fn locks(config: &Config) -> Result<(u32, driver::LaunchStats), String> {
    let device = Device::with_memory(16 << 20).map_err(|e| e.to_string())?;
    let source = Source::new("locks.ptx", LOCKS.as_bytes());
    let image = driver::compile(&source, &LOADS).map_err(|e| e.to_string())?;
    let module = Module::load(&device, image).map_err(|e| e.to_string())?;
    let data = device.alloc(256).map_err(|e| e.to_string())?;
    device.write(data, &[0; 256]).map_err(|e| e.to_string())?;
    let dim = Dim { grid: [CTAS, 1, 1], block: [WARPS * 32, 1, 1], shared_bytes: 0 };
    let options = LaunchOptions {
        threads: 1,
        max_instructions: Some(2_000_000),
        timing: Some(Timing::new(config)),
        ..LaunchOptions::default()
    };
    let stats =
        module.launch(&device, "locks", dim, &[&data.to_le_bytes()], &options).map_err(|e| e.to_string())?;
    let mut word = [0; 4];
    device.read(data + 4, &mut word).map_err(|e| e.to_string())?;
    Ok((u32::from_le_bytes(word), stats))
}

#[test]
fn warps_that_wait_for_each_other_come_to_their_end() {
    for seed in 0..60 {
        let config = random(1000 + seed);
        match locks(&config) {
            Ok((count, _)) => assert_eq!(count, CTAS * WARPS),
            Err(e) => panic!("{:?} {:#?}: {e}", config.sm.policy, config.sm.scheduler),
        }
    }
}

#[test]
fn what_holds_warps_has_its_name() {
    let with = |name: &str| {
        let mut config = Config::preset("tiny").expect("the preset");
        config.sm.sub_cores = 1;
        config.sm.scheduler.window.entries = 1;
        config.set_scheduler(name).expect("a scheduler");
        let (_, stats) = locks(&config).expect("it runs");
        let report = stats.report.expect("it was timed");
        let sum = |s: Stall| report.stalls.iter().map(|row| row[s as usize]).sum::<u64>();
        (sum(Stall::Grant) > 0, sum(Stall::Window) > 0)
    };
    assert_eq!(with("gto"), (false, false));
    assert_eq!(with("credit"), (false, false));
    assert_eq!(with("gto+grants"), (true, false));
    assert_eq!(with("window"), (false, true));
}

/// What grants are for: with a cache that does not hold what all CTAs touch, the tiled workload hits more often, and
/// half the cache is enough.
#[test]
fn grants_bring_hits_where_warps_share_tiles() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let names = ["lrr", "gto", "credit+grants"].map(str::to_owned);
    let run = |kilobytes: u32| {
        let outcomes =
            outcomes(&examples, "sampling", kilobytes, &names, 0).unwrap_or_else(|e| panic!("{e}"));
        assert!(outcomes.iter().all(|o| o.results == outcomes[0].results));
        let spreads: Vec<f64> = outcomes.iter().map(|o| o.spread()).collect();
        assert!(spreads[2] < spreads[0] && spreads[2] < spreads[1], "{spreads:?}");
        outcomes.iter().map(|o| o.l1_hit_pct()).collect::<Vec<f64>>()
    };
    let (small, large) = (run(8), run(16));
    for (rates, ahead) in [(&small, 8.0), (&large, 3.0)] {
        assert!(rates[2] > rates[0] + ahead && rates[2] > rates[1] + ahead, "{rates:?}");
    }
    assert!(small[2] > large[0] && small[2] > large[1], "{small:?} {large:?}");
}
