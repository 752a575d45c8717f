//! Code that is optimized while it runs, where no CTA runs it twice: what the first CTAs saw is for those that come. And warps
//! that optimize while others of their CTA still run.

use driver::machine::optimizing::{Happened, Level, Optimized, Options, Who};
use driver::{CompileOptions, Config, Device, Dim, LaunchOptions, Module, Source, Timing};

/// How the kernels begin: `rounds` in %r1, `divisor` in %r2, the number of the thread in its CTA in %r3, among all in %r5 and %r6.
const HEAD: &str = r"
.version 8.0
.target sm_90
.address_size 64

.visible .entry kernel(.param .u64 out, .param .u32 rounds, .param .u32 divisor)
{
    .reg .pred %p<4>;
    .reg .b32 %r<12>;
    .reg .b64 %d<4>;
    .shared .align 4 .b8 words[256];

    ld.param.u64 %d1, [out];
    ld.param.u32 %r1, [rounds];
    ld.param.u32 %r2, [divisor];
    mov.u32 %r3, %tid.x;
    mov.u32 %r4, %ctaid.x;
    mad.lo.u32 %r5, %r4, 64, %r3;
    mov.u32 %r6, %r5;
";

/// Two blocks, each run once by a CTA; a branch that is never taken, and a divisor that is the same for all.
const WAVES: &str = r"
first:
    setp.eq.u32 %p1, %r6, 0xfffffff0;
    @%p1 bra rare;
    mad.lo.u32 %r6, %r6, 5, 7;
back:
    rem.u32 %r6, %r6, %r2;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra first;
    shl.b32 %r7, %r3, 2;
    mov.u32 %r8, words;
    add.u32 %r7, %r7, %r8;
    st.shared.u32 [%r7], %r6;
    bar.sync 0;
    ld.shared.u32 %r9, [%r7];
    ld.shared.u32 %r10, [words];
    add.u32 %r9, %r9, %r10;
    mul.wide.u32 %d2, %r5, 4;
    add.u64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r9;
    ret;
rare:
    xor.b32 %r6, %r6, 0x55;
    mul.lo.u32 %r6, %r6, %r6;
    bra back;
";

/// Warps meet at a barrier again and again, and the first has little to do in between.
const UNEVEN: &str = r"
    setp.lt.u32 %p1, %r3, 32;
    shr.u32 %r1, %r1, 3;
    selp.u32 %r7, 1, %r1, %p1;
    mov.u32 %r8, 96;
again:
    mov.u32 %r9, %r7;
inner:
    mad.lo.u32 %r6, %r6, 5, 7;
    rem.u32 %r6, %r6, %r2;
    sub.u32 %r9, %r9, 1;
    setp.ne.u32 %p2, %r9, 0;
    @%p2 bra inner;
    bar.sync 0;
    sub.u32 %r8, %r8, 1;
    setp.ne.u32 %p3, %r8, 0;
    @%p3 bra again;
    mul.wide.u32 %d2, %r5, 4;
    add.u64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r6;
    ret;
";

const CTAS: u32 = 120;
const THREADS: u32 = 64;

/// What is in memory then, cycles, and what was optimized, for each launch of the kernel.
fn run(config: &Config, launches: &[Option<Options>]) -> Vec<(Vec<u8>, u64, Option<Optimized>)> {
    let launches: Vec<_> = launches.iter().map(|&options| (options, None)).collect();
    run_program(config, WAVES, &launches)
}

/// The same of a kernel that goes on so, and how often somebody looks at its progress.
fn run_program(
    config: &Config,
    body: &str,
    launches: &[(Option<Options>, Option<u64>)],
) -> Vec<(Vec<u8>, u64, Option<Optimized>)> {
    let program = [HEAD, body, "}"].concat();
    let source = Source::new("program.ptx", program.as_bytes());
    let image = driver::compile(&source, &CompileOptions::default()).expect("it compiles");
    let device = Device::with_memory(1 << 20).expect("a device");
    let mut memory = vec![0; (CTAS * THREADS * 4) as usize];
    let out = device.alloc(memory.len() as u64).expect("memory");
    let module = Module::load(&device, image).expect("loaded");
    let dim = Dim { grid: [CTAS, 1, 1], block: [THREADS, 1, 1], shared_bytes: 0 };
    let args: [&[u8]; 3] = [&out.to_le_bytes(), &40u32.to_le_bytes(), &1009u32.to_le_bytes()];
    let mut all = Vec::new();
    for &(optimize, progress) in launches {
        memory.fill(0);
        device.write(out, &memory).expect("written");
        let timing = Timing { optimize, progress, cold: true, ..Timing::new(config) };
        let options = LaunchOptions { threads: 1, timing: Some(timing), ..LaunchOptions::default() };
        let stats = module.launch(&device, "kernel", dim, &args, &options).expect("it runs");
        device.read(out, &mut memory).expect("read");
        let cycles = stats.report.map_or(0, |r| r.cycles);
        all.push((memory.clone(), cycles, stats.optimized.map(|o| *o)));
    }
    all
}

/// A small machine, few CTAs of the kernel at a time.
fn tiny() -> Config {
    let mut config = Config::preset("tiny").expect("the preset");
    config.sm.ctas = 4;
    config
}

#[test]
fn ctas_that_come_begin_with_what_others_saw() {
    let config = tiny();
    let plain = run(&config, &[None]).remove(0);
    for who in [Who::Host, Who::Helper] {
        for level in [Level::Cta, Level::Sm, Level::Ppu] {
            let (memory, cycles, optimized) = run(&config, &[Some(Options::new(level, who))]).remove(0);
            let o = optimized.expect("it was optimized");
            assert!(memory == plain.0, "{level} by {who}");
            let executions: u64 = o.versions.iter().map(|v| v.executions).sum();
            if level == Level::Cta {
                assert_eq!((o.requests, executions, cycles), (0, 0, plain.1), "no CTA runs a block twice");
                continue;
            }
            assert!(executions > u64::from(CTAS) / 2, "{level} by {who}: {executions} executions");
            assert!(cycles < plain.1, "{level} by {who}: {cycles} cycles, {} without", plain.1);
            let published = |e: &driver::machine::optimizing::Event| {
                e.threads.is_none() && matches!(e.what, Happened::Replaced { .. })
            };
            assert!(o.events.iter().any(published), "{level} by {who}: it was the SM's");
        }
    }
}

#[test]
fn a_launch_that_is_not_optimized_does_not_change_when_others_are() {
    let some = |level| Some(Options::new(level, Who::Host));
    let all = run(&tiny(), &[None, some(Level::Ppu), None, some(Level::Sm), None]);
    for n in [2, 4] {
        // Parts of the machine count cycles in larger units: when a launch begins matters for a cycle or two.
        assert!(all[n].1.abs_diff(all[0].1) <= 4, "{} cycles, {} before", all[n].1, all[0].1);
        assert!(all[n].2.is_none());
    }
    assert!(all.iter().all(|l| l.0 == all[0].0));
}

#[test]
fn the_first_warp_at_a_barrier_works_at_once() {
    let mut config = Config::preset("h200").expect("the preset");
    config.tpcs = vec![1];
    let early = Some(Options::new(Level::Sm, Who::EarlyWarp));
    let launches = [(None, None), (early, None), (early, Some(1))];
    let [plain, often, always] = [0, 1, 2].map(|n| run_program(&config, UNEVEN, &launches[n..=n]).remove(0));
    assert!(plain.0 == often.0 && plain.0 == always.0);
    // Who looks at all warps in every cycle stops sub-cores there, and changes nothing else.
    let slots = |run: &(Vec<u8>, u64, Option<Optimized>)| run.2.as_ref().map_or(0, |o| o.slots);
    assert!(slots(&often) > 0);
    assert_eq!((often.1, slots(&often)), (always.1, slots(&always)));
}
