//! The trace cell by itself: moments, filters, the order and the loss of records.

use super::registers::{CONTROL, FORM, LOST, PERIOD, RECORDS};
use super::*;
use trace::record::{Encoding, Form, read_all};

const SPEC: Spec =
    Spec { fifo: 16, records_per_cycle: 4, own_bytes_per_cycle: 32, stream_bytes_per_cycle: 8 };
const WAIT: Stall = Stall::Wait;

fn settings() -> Settings {
    let form = Form { encoding: Encoding::Vector, warp: true, cycle: true, counters: 1 };
    Settings { period: 10, form, buffer: 0x1000, buffer_bytes: 1 << 20, ..Settings::default() }
}

fn cell(settings: &Settings) -> TraceCell {
    TraceCell::new(3, &SPEC, settings, 1, 1000, &[7]).expect("takes part")
}

/// Tells a cell of an interval, as an SM does.
fn tell(cell: &mut TraceCell, slot: u16, pc: u32, from: u64, until: u64) {
    if cell.is_due(slot, until) {
        cell.sample(slot, pc, WAIT, from, until, None);
    }
}

fn records(cell: &mut TraceCell) -> Vec<Record> {
    cell.flush(u64::MAX);
    read_all(cell.settings.form, &cell.bytes).collect()
}

#[test]
fn moments_lie_a_period_apart() {
    let mut c = cell(&settings());
    c.start(0, 5, 0, 1, 1003);
    c.start(1, 5, 0, 1, 1003);
    // Told of out of order, and in pieces.
    tell(&mut c, 0, 1, 1003, 1011);
    tell(&mut c, 0, 2, 1011, 1041);
    tell(&mut c, 1, 9, 1003, 1031);
    let found: Vec<(u64, u16, u32)> =
        records(&mut c).iter().map(|r| (r.cycle, r.warp, r.instruction())).collect();
    assert_eq!(
        found,
        [(1010, 0, 1), (1010, 1, 9), (1020, 0, 2), (1020, 1, 9), (1030, 0, 2), (1030, 1, 9), (1040, 0, 2)]
    );
    assert_eq!((c.records, c.lost), (7, 0));
    let r = records(&mut c)[0];
    assert_eq!((r.sm, r.cta, r.reason()), (3, 5, Some(Stall::Wait)));
}

#[test]
fn warps_take_turns() {
    // Slots 0 and 2 belong to one scheduler, 1 and 3 to the other; slot 3 is empty, and 2 leaves.
    let s = Settings { in_turn: true, phase: 2, ..settings() };
    let mut c = TraceCell::new(3, &SPEC, &s, 2, 1000, &[]).expect("takes part");
    for (slot, until) in [(0, 1060), (1, 1060), (2, 1030)] {
        c.start(slot, 0, 0, 1, 1000);
        tell(&mut c, slot, 1, 1000, until);
    }
    let found: Vec<(u64, u16)> = records(&mut c).iter().map(|r| (r.cycle, r.warp)).collect();
    let of = |slot: u16| found.iter().filter(|(_, s)| *s == slot).map(|(at, _)| *at).collect::<Vec<_>>();
    assert_eq!(of(0), [1012, 1032, 1042, 1052]);
    assert_eq!(of(1), [1002, 1012, 1022, 1032, 1042, 1052]);
    assert_eq!(of(2), [1002, 1022]);
}

#[test]
fn records_count_what_came_before_them() {
    let form = Form { cycle: true, counters: 4, ..Form::default() };
    let mut c = cell(&Settings { form, ..settings() });
    c.start(0, 0, 0, 1, 1000);
    tell(&mut c, 0, 1, 1000, 1040);
    // Told of late, and not in order.
    for (kind, now) in [(Kind::Barrier, 1025), (Kind::Fixed, 1005), (Kind::Branch, 1010), (Kind::Fixed, 1029)]
    {
        c.happens(1, kind, now);
    }
    c.event(Event::CacheMiss, 5, 1019);
    let found: Vec<(u64, [u32; 4])> = records(&mut c).iter().map(|r| (r.cycle, r.counters)).collect();
    assert_eq!(found, [(1000, [0; 4]), (1010, [1, 0, 0, 0]), (1020, [2, 5, 1, 0]), (1030, [4, 5, 1, 1])]);
}

#[test]
fn a_slot_belongs_to_its_old_warp_until_that_is_gone() {
    for event in [None, Some(Event::Barrier)] {
        let period = if event.is_some() { 1 } else { 10 };
        let mut c = cell(&Settings { event, period, ..settings() });
        c.start(0, 0, 0, 1, 1000);
        // Its stores leave late; another warp comes meanwhile.
        tell(&mut c, 0, 1, 1000, 1040);
        c.leave(0);
        c.start(0, 1, 9, 1, 1012);
        tell(&mut c, 0, 2, 1012, 1060);
        if event.is_some() {
            (0..6).for_each(|n| c.happens(1, Kind::Barrier, 1000 + 10 * n));
        }
        let found: Vec<(u64, u32)> = records(&mut c).iter().map(|r| (r.cycle, r.instruction())).collect();
        assert_eq!(found, [(1000, 1), (1010, 1), (1020, 1), (1030, 1), (1040, 2), (1050, 2)]);
    }
}

#[test]
fn filters_leave_out() {
    let mut only = settings();
    only.only([2, 40]);
    assert!(TraceCell::new(3, &SPEC, &only, 1, 0, &[]).is_none());
    assert!(TraceCell::new(40, &SPEC, &only, 1, 0, &[]).is_some());
    let count = |change: &dyn Fn(&mut Settings)| {
        let mut s = settings();
        change(&mut s);
        let mut c = cell(&s);
        for (slot, cta) in [(0, 4), (1, 5)] {
            c.start(slot, 0, cta, 8, 1000);
            tell(&mut c, slot, 1, 1000, 1100);
        }
        records(&mut c).len()
    };
    assert_eq!(count(&|_| {}), 20);
    assert_eq!(count(&|s| s.ctas = (5, 5)), 10);
    assert_eq!(count(&|s| s.ctas = (6, 9)), 0);
    assert_eq!(count(&|s| s.task = 8), 20);
    assert_eq!(count(&|s| s.task = 7), 0);
    assert_eq!(count(&|s| s.window = (15, 41)), 6);
    assert_eq!(count(&|s| (s.machine_clock, s.window) = (true, (0, 1020))), 4);
}

#[test]
fn events_make_moments() {
    let mut c = cell(&Settings { event: Some(Event::Barrier), period: 3, ..settings() });
    c.start(0, 0, 0, 1, 1000);
    // Known before the events in it happen.
    tell(&mut c, 0, 4, 1000, 1050);
    for now in [1001, 1002, 1010, 1011, 1020, 1047] {
        c.happens(1, Kind::Barrier, now);
        c.happens(7, Kind::Branch, now);
    }
    tell(&mut c, 0, 5, 1050, 1060);
    let found: Vec<(u64, u32)> = records(&mut c).iter().map(|r| (r.cycle, r.instruction())).collect();
    assert_eq!(found, [(1010, 4), (1047, 4)]);
    let mut calls = cell(&Settings { event: Some(Event::Call), period: 2, ..settings() });
    calls.start(0, 0, 0, 1, 1000);
    tell(&mut calls, 0, 4, 1000, 1050);
    for (pc, now) in [(7, 1001), (6, 1002), (7, 1003)] {
        calls.happens(pc, Kind::Branch, now);
    }
    assert_eq!(records(&mut calls).iter().map(|r| r.cycle).collect::<Vec<_>>(), [1003]);
}

#[test]
fn a_full_fifo_loses_records() {
    // 64 records at once, four a cycle in and one a cycle out: 16 wait, and 15 more leave while they come.
    let slow = Spec { own_bytes_per_cycle: 24, ..SPEC };
    let form = Form { cycle: true, counters: 2, ..Form::default() };
    let s = Settings { form, ..settings() };
    let mut c = TraceCell::new(0, &slow, &s, 4, 1000, &[]).expect("takes part");
    for slot in 0..64 {
        c.start(slot, 0, 0, 1, 1000);
        tell(&mut c, slot, 1, 1000, 1001);
    }
    c.flush(u64::MAX);
    assert_eq!(c.records + c.lost, 64);
    assert!((30..=33).contains(&c.records), "{}", c.records);
    // The buffer's end is an end too.
    let mut c = cell(&Settings { buffer_bytes: 60, ..settings() });
    c.start(0, 0, 0, 1, 1000);
    tell(&mut c, 0, 1, 1000, 1100);
    c.flush(u64::MAX);
    assert_eq!((c.records, c.lost, c.bytes.len()), (2, 8, 48));
}

#[test]
fn early_records_wait_for_later_news() {
    let mut c = cell(&settings());
    c.start(0, 0, 0, 1, 1000);
    c.start(1, 0, 0, 1, 1000);
    tell(&mut c, 0, 1, 1000, 1100);
    c.flush(1000);
    assert_eq!(c.records, 0);
    tell(&mut c, 1, 1, 1000, 1050);
    c.flush(1050);
    assert_eq!(c.records, 10);
    let order: Vec<u64> = records(&mut c).iter().map(|r| r.cycle).collect();
    assert!(order.is_sorted() && order.len() == 15, "{order:?}");
}

#[test]
fn lines_go_through_the_load_store_unit() {
    let mut c = cell(&Settings { drain: Drain::LoadStore, form: Form::default(), ..settings() });
    assert_eq!(c.drain_at(), 1000);
    for slot in 0..4 {
        c.start(slot, 0, 0, 1, 1000);
    }
    // Four records of eight bytes a moment: a line is full after four moments.
    let mut stored = Vec::new();
    for _ in 0..40 {
        let now = c.drain_at();
        stored.extend(c.drain(now, true).map(|address| (now, address)));
    }
    assert_eq!(stored[..3], [(1030, 0x1000), (1070, 0x1080), (1110, 0x1100)]);
    // Without room the FIFO fills, and records of later moments are lost.
    let mut c = cell(&Settings { drain: Drain::LoadStore, form: Form::default(), ..settings() });
    for slot in 0..4 {
        c.start(slot, 0, 0, 1, 1000);
        tell(&mut c, slot, 1, 1000, 1200);
    }
    while c.drain_at() < 1200 {
        let now = c.drain_at();
        assert_eq!(c.drain(now, false), None);
    }
    c.flush(u64::MAX);
    assert_eq!((c.records, c.lost), (32, 48));
}

#[test]
fn registers_hold_what_the_host_writes() {
    let mut only = settings();
    only.only([0, 33, 131]);
    let s = Settings {
        event: Some(Event::CacheMiss),
        in_turn: true,
        drain: Drain::Stream,
        phase: 3,
        ctas: (5, 1 << 40),
        task: 2,
        machine_clock: true,
        window: (1 << 33, 1 << 34),
        ..only
    };
    let mut r = Registers::default();
    assert_eq!(r.settings(), None, "off");
    for (offset, value) in s.words() {
        r.write(offset, value).expect("a register");
    }
    assert_eq!(r.settings(), Some(s));
    for (offset, value) in
        [(CONTROL, 0x30), (CONTROL, 0x400), (PERIOD, 0), (FORM, 3), (2, 0), (0x48, 0), (RECORDS, 1)]
    {
        assert_eq!(r.write(offset, value), Err(RegisterError { offset, value }));
    }
    r.report(1 << 33, 7);
    assert_eq!((r.wide(RECORDS), r.wide(LOST)), (1 << 33, 7));
    r.write(CONTROL, 0).expect("off");
    assert_eq!(r.settings(), None);
}

#[test]
fn plain_records_are_those_of_the_format() {
    let s = Settings { form: Form::default(), ..settings() };
    let mut c = TraceCell::new(0x2a5, &SPEC, &s, 4, 1000, &[]).expect("takes part");
    assert!(c.fifo.is_fast());
    // Slots with gaps, and one whose CTA slot has all bits.
    for slot in [0, 1, 5, 63] {
        c.start(slot, u16::MAX, 0, 1, 1000);
        tell(&mut c, slot, 0x100 + u32::from(slot), 1000, 1011);
    }
    let found = records(&mut c);
    let wanted = [0, 1, 5, 63].map(|slot: u32| Record {
        pc: (0x100 + slot) * INSTRUCTION_BYTES,
        stalls: 1 << WAIT as u32,
        sm: 0x2a5,
        ..Record::default()
    });
    assert_eq!(found, [wanted, wanted].concat());
    // No more than there is room for.
    let s = Settings { buffer_bytes: 24, ..s };
    let mut c = TraceCell::new(3, &SPEC, &s, 1, 1000, &[]).expect("takes part");
    for slot in 0..2 {
        c.start(slot, 0, 0, 1, 1000);
        tell(&mut c, slot, 7, 1000, 1021);
    }
    assert_eq!((records(&mut c).len(), c.records, c.lost), (3, 3, 3));
}
