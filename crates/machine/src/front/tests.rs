//! The way from push buffer to CTAs on whole configurations, against a stand-in for the SMs.

use super::*;
use crate::command::{Command, Task};
use crate::distribution::Limiter;
use crate::ports::Left;
use crate::units::SmId;

fn preset(name: &str) -> Config {
    Config::preset(name).expect("a preset")
}

fn task(launch: u32, ctas: u64, threads: u32) -> Task {
    Task {
        launch,
        priority: 0,
        ctas,
        threads,
        registers: 32,
        shared_bytes: 0,
        barriers: 1,
        ..Task::default()
    }
}

fn words(commands: &[Command]) -> Vec<u32> {
    let mut words = Vec::new();
    commands.iter().for_each(|c| c.encode(&mut words));
    words
}

/// What a run of the front gave.
#[derive(Default, Debug, PartialEq)]
struct Trace {
    starts: Vec<CtaStart>,
    finished: Vec<(u32, Cycle)>,
    events: Vec<(Cycle, Event)>,
    /// The most CTAs that were on one SM.
    most: usize,
}

/// Runs until nothing is left, with exchange points `quantum` apart; every CTA lives as long as `life` says.
fn run(front: &mut Front, quantum: u64, life: impl Fn(&CtaStart) -> u64) -> Result<Trace, FrontError> {
    let mut trace = Trace::default();
    let mut running: Vec<CtaEnd> = Vec::new();
    let mut until = Cycle(0);
    while !front.is_idle() {
        until = if running.is_empty() {
            (until + 1).later(front.next_event().expect("something is left"))
        } else {
            until + quantum
        };
        running.sort_by_key(|end| (end.at, end.sm, end.linear));
        let ended = running.partition_point(|end| end.at < until);
        let ends: Vec<CtaEnd> = running.drain(..ended).collect();
        let first = trace.starts.len();
        front.advance(until, &ends, &mut trace.starts)?;
        for start in &trace.starts[first..] {
            assert!(start.at >= until, "{start:?} is in the past of {until:?}");
            running.push(CtaEnd {
                at: start.at + life(start),
                sm: start.sm,
                launch: start.launch,
                linear: start.linear,
                left: Left::Ended,
                ..CtaEnd::default()
            });
            let here = running.iter().filter(|end| end.sm == start.sm).count();
            trace.most = trace.most.max(here);
        }
        trace.finished.extend(front.finished());
        trace.events.extend(front.events());
    }
    Ok(trace)
}

#[test]
fn a_launch_costs_what_the_configuration_says() {
    for name in ["tiny", "classic", "h200"] {
        let config = preset(name);
        let mut front = Front::new(&config);
        front.submit(Cycle(1000), &words(&[Command::Launch(task(7, 1, 32))])).expect("room");
        let trace = run(&mut front, config.quantum.into(), |_| 500).expect("runs");
        let end_interval = config.distribution.end_interval.ceil() as u64;
        let expected = 1000 + u64::from(config.distribution.launch_overhead) + 500 + end_interval;
        assert_eq!(trace.finished, [(7, Cycle(expected))], "{name}");
    }
}

#[test]
fn every_cta_starts_once_and_no_sm_holds_more_than_fit() {
    let config = preset("h200");
    let mut front = Front::new(&config);
    front.submit(Cycle(0), &words(&[Command::Launch(task(0, 5000, 256))])).expect("room");
    let trace = run(&mut front, 64, |s| 300 + s.linear * 7919 % 400).expect("runs");
    let mut linear: Vec<u64> = trace.starts.iter().map(|s| s.linear).collect();
    linear.sort_unstable();
    assert_eq!(linear, (0..5000).collect::<Vec<u64>>());
    assert_eq!(trace.most, 8);
    assert_eq!(trace.finished.len(), 1);
}

#[test]
fn starts_do_not_depend_on_where_exchange_points_are() {
    let config = preset("h200");
    let traces: Vec<Trace> = [64, 17, 1]
        .into_iter()
        .map(|quantum| {
            let mut front = Front::new(&config);
            let tasks = [Command::Launch(task(0, 900, 512)), Command::Launch(task(1, 700, 96))];
            front.submit(Cycle(0), &words(&tasks)).expect("room");
            run(&mut front, quantum, |s| 100 + s.linear * 31 % 900).expect("runs")
        })
        .collect();
    assert_eq!(traces[0].starts, traces[1].starts);
    assert_eq!(traces[0].starts, traces[2].starts);
    assert_eq!(traces[0].finished, traces[2].finished);
}

#[test]
fn ctas_go_over_all_sms_before_any_gets_a_second() {
    let config = preset("h200");
    let mut front = Front::new(&config);
    front.submit(Cycle(0), &words(&[Command::Launch(task(0, 264, 32))])).expect("room");
    let trace = run(&mut front, 64, |_| 10_000).expect("runs");
    let mut first: Vec<SmId> = trace.starts[..132].iter().map(|s| s.sm).collect();
    // Neighbours in the grid are neighbours on the chip: one CTA for each SM of a GPC, then the next GPC.
    assert_eq!(first[..4], [SmId(0), SmId(1), SmId(2), SmId(3)]);
    first.sort_unstable();
    first.dedup();
    assert_eq!(first.len(), 132);
}

#[test]
fn ends_of_many_short_ctas_are_taken_one_by_one() {
    let config = preset("h200");
    let mut front = Front::new(&config);
    front.submit(Cycle(0), &words(&[Command::Launch(task(0, 16_384, 32))])).expect("room");
    let trace = run(&mut front, 64, |_| 150).expect("runs");
    // An H200 takes 22,716 cycles for this and 3,084 for one such CTA of 320 cycles.
    let cycles = trace.finished[0].1.0 as f64;
    assert!((cycles / 22_716.0 - 1.0).abs() < 0.03, "{cycles}");
}

#[test]
fn commands_wait_for_tasks_and_tell_the_host() {
    let config = preset("tiny");
    let mut front = Front::new(&config);
    let commands = [
        Command::Invalidate(Caches::ALL),
        Command::Launch(task(0, 3, 32)),
        Command::WaitForIdle,
        Command::Notify { value: 5 },
        Command::Launch(task(1, 1, 32)),
    ];
    front.submit(Cycle(0), &words(&commands)).expect("room");
    let trace = run(&mut front, 16, |_| 1000).expect("runs");
    let [(_, first), (_, second)] = trace.finished[..] else { panic!("{trace:?}") };
    let [(invalidated, Event::Invalidate(Caches::ALL)), (told, Event::Notify { value: 5 })] =
        trace.events[..]
    else {
        panic!("{trace:?}")
    };
    assert!(invalidated < trace.starts[0].at && told >= first && second >= told + 1000, "{trace:?}");
    assert!(trace.starts[3].at > trace.starts[2].at + 1000);
}

#[test]
fn what_cannot_run_is_an_error() {
    let config = preset("tiny");
    let mut front = Front::new(&config);
    let big = Task { shared_bytes: config.sm.l1_shared_bytes + 1, ..task(3, 1, 32) };
    front.submit(Cycle(0), &words(&[Command::Launch(big)])).expect("room");
    let error = FrontError::Task(TaskError::TooLarge { limiter: Limiter::SharedMemory });
    assert_eq!(run(&mut front, 16, |_| 1), Err(error));

    let mut front = Front::new(&config);
    front.submit(Cycle(0), &[0xff00_0000]).expect("room");
    let error = FrontError::Command(CommandError::UnknownMethod { header: 0xff00_0000 });
    assert_eq!(run(&mut front, 16, |_| 1), Err(error));

    let mut front = Front::new(&config);
    let twice = words(&[Command::Launch(task(3, 5, 32)), Command::Launch(task(3, 1, 32))]);
    front.submit(Cycle(0), &twice).expect("room");
    assert_eq!(run(&mut front, 16, |_| 1000), Err(FrontError::Task(TaskError::Duplicate { launch: 3 })));

    let mut front = Front::new(&config);
    assert!(front.submit(Cycle(0), &vec![0; config.host.push_buffer_words as usize + 1]).is_err());
}

#[test]
fn two_tasks_share_the_machine_and_the_more_urgent_goes_first() {
    let config = preset("h200");
    let mut front = Front::new(&config);
    let urgent = Task { priority: 3, ..task(1, 200, 1024) };
    let commands = [Command::Launch(task(0, 600, 1024)), Command::Launch(urgent)];
    front.submit(Cycle(0), &words(&commands)).expect("room");
    let trace = run(&mut front, 64, |_| 5000).expect("runs");
    // The first fills the machine before the second is there; then the second gets every place that is left.
    let order: Vec<u32> = trace.starts.iter().map(|s| s.launch).collect();
    assert!(order[..264].iter().all(|&l| l == 0) && order[264..464].iter().all(|&l| l == 1), "{order:?}");
    assert_eq!(trace.finished.iter().map(|f| f.0).collect::<Vec<u32>>(), [1, 0]);
}

#[test]
fn more_tasks_than_slots_all_run() {
    let mut config = preset("tiny");
    config.host.push_buffer_words = 1000;
    let mut front = Front::new(&config);
    for launch in 0..40 {
        let threads = 32 * (1 + launch % 8);
        front.submit(Cycle(0), &words(&[Command::Launch(task(launch, 3, threads))])).expect("room");
        let mut starts = Vec::new();
        front.advance(Cycle(0), &[], &mut starts).expect("nothing to refuse");
        assert!(starts.is_empty());
    }
    let trace = run(&mut front, 16, |s| 200 + u64::from(s.launch)).expect("runs");
    assert_eq!(trace.finished.len(), 40);
    assert_eq!(trace.starts.len(), 120);
}

/// Runs until nothing is left, as [`run`] does; a CTA that is told to go is suspended after a while, and has its rest of life
/// when it comes back. The starts, and the launches in the order of their ends.
fn run_preempted(front: &mut Front, life: impl Fn(&CtaStart) -> u64) -> (Vec<CtaStart>, Vec<u32>) {
    let (mut starts, mut finished) = (Vec::new(), Vec::new());
    let mut running: Vec<(Cycle, CtaEnd)> = Vec::new();
    let mut rest: Vec<(u32, u64, u64)> = Vec::new();
    let mut until = Cycle(0);
    while !front.is_idle() {
        until = if running.is_empty() {
            (until + 1).later(front.next_event().expect("something is left"))
        } else {
            until + 64
        };
        running.sort_by_key(|(_, end)| (end.at, end.sm, end.linear));
        let ended = running.partition_point(|(_, end)| end.at < until);
        let ends: Vec<CtaEnd> = running.drain(..ended).map(|(_, end)| end).collect();
        let first = starts.len();
        front.advance(until, &ends, &mut starts).expect("runs");
        for s in &starts[first..] {
            let left = rest.iter().position(|r| (r.0, r.1) == (s.launch, s.linear));
            assert_eq!(left.is_some(), s.is_restored, "{s:?}");
            let lasts = left.map_or_else(|| life(s), |n| rest.remove(n).2);
            let end = CtaEnd {
                at: s.at + lasts,
                sm: s.sm,
                launch: s.launch,
                linear: s.linear,
                ..CtaEnd::default()
            };
            running.push((s.at, end));
        }
        for order in front.suspends() {
            let is_it =
                |(_, end): &&mut (Cycle, CtaEnd)| (end.launch, end.linear) == (order.launch, order.linear);
            let Some((since, end)) = running.iter_mut().find(is_it) else { continue };
            let at = order.at.later(*since) + 100;
            if at < end.at {
                rest.push((end.launch, end.linear, end.at - at));
                (end.at, end.left) = (at, Left::Suspended);
            }
        }
        finished.extend(front.finished().into_iter().map(|f| f.0));
    }
    assert!(rest.is_empty());
    (starts, finished)
}

#[test]
fn an_urgent_task_takes_places_and_gives_them_back() {
    let config = preset("tiny");
    for priority in [0, 7] {
        let mut front = Front::new(&config);
        front.set_preemption(Some(Preemption::default()));
        let fast = front.open_channel(priority);
        front.submit(Cycle(0), &words(&[Command::Launch(task(0, 40, 512))])).expect("room");
        let urgent = Task { priority, ..task(1, 3, 256) };
        front.submit_to(fast, Cycle(9000), &words(&[Command::Launch(urgent)])).expect("room");
        let (starts, finished) = run_preempted(&mut front, |_| 50_000);
        let suspended = starts.iter().filter(|s| s.is_restored).count();
        assert_eq!(suspended > 0, priority > 0);
        assert!(starts.iter().filter(|s| s.is_restored).all(|s| s.launch == 0));
        let place = |launch| starts.iter().position(|s| s.launch == launch).expect("started");
        if priority > 0 {
            assert!(starts[place(1)].at < Cycle(30_000), "{starts:?}");
            assert_eq!(finished, [1, 0]);
        }
        assert_eq!(starts.len(), 43 + suspended);
    }
}

#[test]
fn with_time_slices_all_ctas_get_their_turn() {
    let config = preset("tiny");
    let mut front = Front::new(&config);
    front.set_preemption(Some(Preemption { time_slice: Some(2000) }));
    front.submit(Cycle(0), &words(&[Command::Launch(task(0, 12, 1024))])).expect("room");
    let (starts, finished) = run_preempted(&mut front, |_| 9000);
    assert_eq!(finished, [0]);
    // Every CTA has begun before any comes back a second time.
    let first_back = starts.iter().position(|s| s.is_restored).expect("slices end");
    let begun = starts[..first_back].iter().filter(|s| !s.is_restored).count();
    assert_eq!(begun, 12, "{starts:?}");
}

#[test]
fn a_stopped_machine_is_empty_and_goes_on() {
    let config = preset("tiny");
    let mut front = Front::new(&config);
    front.set_preemption(Some(Preemption::default()));
    front.submit(Cycle(0), &words(&[Command::Launch(task(0, 2, 64))])).expect("room");
    let mut starts = Vec::new();
    let mut until = Cycle(0);
    while starts.len() < 2 {
        until = (until + 1).later(front.next_event().expect("more"));
        front.advance(until, &[], &mut starts).expect("runs");
    }
    front.stop(until);
    let orders = front.suspends();
    assert_eq!(orders.len(), 2);
    assert!(orders.iter().zip(&starts).all(|(o, s)| o.at > s.at) && !front.is_stopped());
    let leave = |s: &CtaStart, left| CtaEnd {
        at: s.at + 500,
        sm: s.sm,
        launch: 0,
        linear: s.linear,
        left,
        ..CtaEnd::default()
    };
    let ends: Vec<CtaEnd> = starts.iter().map(|s| leave(s, Left::Suspended)).collect();
    let until = ends[1].at + 5000;
    let mut back = Vec::new();
    front.advance(until, &ends, &mut back).expect("runs");
    assert!(front.is_stopped() && back.is_empty());
    front.go_on(until);
    front.advance(until + 1, &[], &mut back).expect("runs");
    assert!(back.len() == 2 && back.iter().all(|s| s.is_restored));
}
