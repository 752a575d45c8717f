//! Launches on the timed machine through the driver: results as in functional runs, faults, limits, warm and cold caches.

use driver::{
    CompileOptions, Config, Device, Dim, LaunchError, LaunchOptions, LaunchStats, Module, Source, Timing,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const PROGRAM: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry scale(.param .u64 data, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd2, %rd1, %rd2;
    ld.global.u32 %r5, [%rd2];
    mad.lo.u32 %r5, %r5, 3, %r2;
    st.global.u32 [%rd2], %r5;
DONE:
    ret;
}
.visible .entry forever()
{
LOOP:
    bra LOOP;
}
";

const N: u32 = 5000;

fn set_up() -> (Device, Module, u64) {
    let device = Device::with_memory(1 << 30).expect("memory");
    let source = Source::new("timed.ptx", PROGRAM.as_bytes());
    let image = driver::compile(&source, &CompileOptions::default()).expect("compiles");
    let module = Module::load(&device, image).expect("loads");
    let data = device.alloc(u64::from(N) * 4).expect("room");
    (device, module, data)
}

fn write(device: &Device, data: u64) {
    let values: Vec<u8> = (0..N).flat_map(|n| (n * 7).to_le_bytes()).collect();
    device.write(data, &values).expect("written");
}

fn launch(
    (device, module, data): &(Device, Module, u64),
    entry: &str,
    options: &LaunchOptions<'_>,
) -> Result<LaunchStats, LaunchError> {
    let dim = Dim { grid: [N.div_ceil(128), 1, 1], block: [128, 1, 1], shared_bytes: 0 };
    let args: [&[u8]; 2] = [&data.to_le_bytes(), &N.to_le_bytes()];
    module.launch(device, entry, dim, if entry == "scale" { &args } else { &[] }, options)
}

fn result((device, _, data): &(Device, Module, u64)) -> Vec<u8> {
    let mut bytes = vec![0; N as usize * 4];
    device.read(*data, &mut bytes).expect("read");
    bytes
}

fn timed(config: &Config, cold: bool) -> LaunchOptions<'_> {
    LaunchOptions {
        threads: 1,
        timing: Some(Timing { cold, ..Timing::new(config) }),
        ..LaunchOptions::default()
    }
}

#[test]
fn results_are_those_of_a_functional_run_on_every_machine() {
    let setup = set_up();
    write(&setup.0, setup.2);
    let functional = launch(&setup, "scale", &LaunchOptions::default()).expect("runs");
    let expected = result(&setup);
    assert_eq!(functional.report, None);
    for name in ["tiny", "classic", "h200"] {
        let config = Config::preset(name).expect("a preset");
        write(&setup.0, setup.2);
        let stats = launch(&setup, "scale", &timed(&config, false)).expect("runs");
        assert_eq!(result(&setup), expected, "{name}");
        assert_eq!(stats.warp_instructions, functional.warp_instructions, "{name}");
        assert_eq!(stats.thread_instructions, functional.thread_instructions, "{name}");
        let report = stats.report.expect("a report");
        assert_eq!((report.config.as_str(), report.counters.ctas), (name, stats.ctas));
        assert!(report.cycles > u64::from(config.distribution.launch_overhead), "{}", report.cycles);
    }
}

#[test]
fn caches_stay_warm_unless_asked_cold_and_runs_repeat() {
    let config = Config::preset("h200").expect("a preset");
    let setup = set_up();
    write(&setup.0, setup.2);
    let read = |cold| {
        let report = launch(&setup, "scale", &timed(&config, cold)).expect("runs").report.expect("a report");
        (report.cycles, report.counters.dram_read_bytes)
    };
    let cold = read(true);
    let warm = read(false);
    assert!(cold.1 >= u64::from(N) * 4 && warm.1 < cold.1, "{cold:?} {warm:?}");
    assert!(warm.0 < cold.0, "{cold:?} {warm:?}");
    assert_eq!(read(true).1, cold.1);
}

#[test]
fn what_the_host_copied_is_in_the_second_level() {
    let config = Config::preset("h200").expect("a preset");
    let setup = set_up();
    write(&setup.0, setup.2);
    let stats = launch(&setup, "scale", &timed(&config, false)).expect("runs");
    // Code and constants come from DRAM, the buffer does not.
    let bytes = stats.report.expect("a report").counters.dram_read_bytes;
    assert!(bytes < u64::from(N), "{bytes}");
}

#[test]
fn limits_cancelling_and_faults_end_a_launch_and_the_next_one_runs() {
    let config = Config::preset("tiny").expect("a preset");
    let setup = set_up();
    let limited = LaunchOptions { max_instructions: Some(10_000), ..timed(&config, false) };
    let ended = launch(&setup, "forever", &limited);
    assert!(matches!(ended, Err(LaunchError::TooManyInstructions { limit: 10_000, .. })), "{ended:?}");

    let (stop, cycles) = (AtomicBool::new(true), AtomicU64::new(0));
    let cancelled = LaunchOptions {
        cancel: Some(&stop),
        timing: Some(Timing { cycles: Some(&cycles), ..Timing::new(&config) }),
        ..timed(&config, false)
    };
    let ended = launch(&setup, "forever", &cancelled);
    assert!(matches!(ended, Err(LaunchError::Cancelled { ctas_done: 0, .. })), "{ended:?}");
    assert!(cycles.load(Ordering::Relaxed) > 0);

    let freed = (set_up(), ());
    freed.0.0.free(freed.0.2).expect("freed");
    let ended = launch(&freed.0, "scale", &timed(&config, false));
    let Err(LaunchError::Fault(report)) = ended else { panic!("{ended:?}") };
    assert!(report.message.starts_with("load of 4 bytes at global address"), "{}", report.message);

    write(&setup.0, setup.2);
    assert!(launch(&setup, "scale", &timed(&config, false)).is_ok());
}

#[test]
fn a_cta_that_no_sm_can_hold_is_refused() {
    let config = Config::preset("classic").expect("a preset");
    let (device, module, data) = set_up();
    let dim = Dim { grid: [1, 1, 1], block: [32, 1, 1], shared_bytes: 200 << 10 };
    let args: [&[u8]; 2] = [&data.to_le_bytes(), &N.to_le_bytes()];
    let ended = module.launch(&device, "scale", dim, &args, &timed(&config, false));
    let Err(LaunchError::Refused(refusal)) = ended else { panic!("{ended:?}") };
    assert!(refusal.message.ends_with("one CTA needs more shared memory than an SM has"), "{refusal}");
}

#[test]
fn several_processors_work_side_by_side() {
    let cycles = |name: &str| {
        let config = Config::preset(name).expect("a preset");
        let setup = set_up();
        write(&setup.0, setup.2);
        let report = launch(&setup, "scale", &timed(&config, false)).expect("runs").report.expect("a report");
        (report.cycles, result(&setup))
    };
    // One host, four devices, two of them alike: each has its memory, push buffer and caches.
    let names = ["tiny", "h200", "tiny", "classic"];
    let alone: Vec<_> = names.iter().map(|name| cycles(name)).collect();
    let together: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = names.iter().map(|name| scope.spawn(|| cycles(name))).collect();
        threads.into_iter().map(|t| t.join().expect("a run")).collect()
    });
    assert_eq!(alone, together);
    assert_eq!(alone[0], alone[2]);
    assert_ne!(alone[0].0, alone[1].0);
}
