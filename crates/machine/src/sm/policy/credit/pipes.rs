//! Types of pipes, and the instructions that wait to start in each: only one type can run a single-issue instruction.

use super::super::super::code::{CLASSES, Class};
use super::super::super::spec::Pipe;
use super::super::spec::Credit;
use super::weight::Need;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// No type, or more than one.
const NONE: u8 = u8::MAX;

/// Pipes that run the same classes are of one type.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Type {
    pipes: u32,
    /// When the instructions that wait start, ascending.
    starts: VecDeque<u64>,
}

/// The types of a sub-core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pipes {
    types: Vec<Type>,
    /// The one type that runs each class.
    of: [u8; CLASSES],
    needs: [Need; CLASSES],
    /// Classes that only this type runs, a bit each.
    classes: Vec<u32>,
    oversubscribed: u32,
    closed: u32,
    /// Instructions in all lists of starts.
    waiting: u32,
}

impl Pipes {
    pub fn new(pipes: &[Pipe], spec: &Credit) -> Pipes {
        let sorted = |p: &Pipe| {
            let mut runs = p.runs.clone();
            runs.sort();
            runs
        };
        let mut kinds: Vec<Vec<String>> = Vec::new();
        let mut types: Vec<Type> = Vec::new();
        for p in pipes {
            let runs = sorted(p);
            match kinds.iter().position(|k| *k == runs) {
                Some(n) => types[n].pipes += 1,
                None => {
                    kinds.push(runs);
                    types.push(Type { pipes: 1, starts: VecDeque::new() });
                }
            }
        }
        let runs = |kind: &[String], c: Class| kind.iter().any(|r| r == c.name());
        let (mut of, mut needs) = ([NONE; CLASSES], [Need::Any; CLASSES]);
        let mut classes = vec![0; kinds.len()];
        for c in Class::ALL {
            let mut able = (0..kinds.len()).filter(|&n| runs(&kinds[n], c));
            if let (Some(n), None) = (able.next(), able.next()) {
                of[c as usize] = n as u8;
                classes[n] |= 1 << c as u32;
                let (mad, sfu) = (runs(&kinds[n], Class::Fma), runs(&kinds[n], Class::Xu));
                needs[c as usize] = match (mad, sfu) {
                    (true, false) => Need::Mad,
                    (false, true) => Need::Sfu,
                    _ => Need::Any,
                };
            }
        }
        Pipes {
            types,
            of,
            needs,
            classes,
            oversubscribed: spec.oversubscribed,
            closed: spec.closed,
            waiting: 0,
        }
    }

    pub fn need(&self, class: Class) -> Need {
        self.needs[class as usize]
    }

    /// An instruction was issued and starts at `start`. Classes of which no more may be issued before a cycle.
    #[inline(always)]
    pub fn enter(&mut self, class: Class, start: u64, now: u64) -> Option<(u32, u64)> {
        if start <= now && self.waiting == 0 { None } else { self.enter_late(class, start, now) }
    }

    /// The same where something waits, or will.
    fn enter_late(&mut self, class: Class, start: u64, now: u64) -> Option<(u32, u64)> {
        let number = self.of[class as usize];
        let kind = self.types.get_mut(number as usize)?;
        if start > now {
            let place = kind.starts.partition_point(|&s| s <= start);
            kind.starts.insert(place, start);
            self.waiting += 1;
        }
        while kind.starts.front().is_some_and(|&s| s <= now) {
            kind.starts.pop_front();
            self.waiting -= 1;
        }
        let limit = (self.closed * kind.pipes) as usize;
        // As many as are too many must start.
        let over = (kind.starts.len() + 1).checked_sub(limit)?;
        let until = over.checked_sub(1).and_then(|n| kind.starts.get(n)).copied()?;
        Some((self.classes[number as usize], until))
    }

    /// Nothing waits anywhere.
    #[inline(always)]
    pub fn is_quiet(&self) -> bool {
        self.waiting == 0
    }

    /// Instructions of the class's type that wait.
    fn waiting(&self, class: Class, now: u64) -> Option<(usize, u32)> {
        let kind = self.types.get(self.of[class as usize] as usize)?;
        Some((kind.starts.len() - kind.starts.partition_point(|&s| s <= now), kind.pipes))
    }

    /// The class's only type of pipe has more waiting than it should.
    #[inline]
    pub fn is_oversubscribed(&self, class: Class, now: u64) -> bool {
        self.waiting(class, now).is_some_and(|(n, pipes)| n >= (self.oversubscribed * pipes) as usize)
    }

    /// Instructions that wait for multiply-add pipes, less those that wait for special-function pipes.
    pub fn balance(&self, now: u64) -> i64 {
        let mut balance = 0;
        let mut seen = 0u64;
        for c in Class::ALL {
            let kind = self.of[c as usize];
            if kind == NONE || seen >> (kind % 64) & 1 != 0 {
                continue;
            }
            seen |= 1 << (kind % 64);
            let n = self.waiting(c, now).map_or(0, |w| w.0 as i64);
            match self.needs[c as usize] {
                Need::Mad => balance += n,
                Need::Sfu => balance -= n,
                Need::Any => {}
            }
        }
        balance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn pipe(name: &str, runs: &[&str]) -> Pipe {
        let runs = runs.iter().map(|r| (*r).to_owned()).collect();
        Pipe { name: name.into(), lanes: 16, queue: 16, runs }
    }

    fn pipes() -> Pipes {
        let mut spec = Config::preset("tiny").expect("the preset").sm.scheduler.credit;
        (spec.oversubscribed, spec.closed) = (2, 3);
        let list = [
            pipe("a", &["fma", "alu"]),
            pipe("b", &["alu", "fma"]),
            pipe("x", &["xu", "misc"]),
            pipe("u", &["uniform", "misc"]),
        ];
        Pipes::new(&list, &spec)
    }

    #[test]
    fn one_type_of_pipe_makes_a_single_issue_instruction() {
        let p = pipes();
        // Two pipes, one type. Two types run misc, none runs tensor.
        assert_eq!([Class::Fma, Class::Alu, Class::Xu].map(|c| p.need(c)), [Need::Mad, Need::Mad, Need::Sfu]);
        assert_eq!([Class::Uniform, Class::Misc, Class::Tensor].map(|c| p.need(c)), [Need::Any; 3]);
    }

    #[test]
    fn thresholds_count_what_has_not_started() {
        let mut p = pipes();
        // One that starts at once does not wait.
        assert_eq!(p.enter(Class::Xu, 10, 10), None);
        assert!(!p.is_oversubscribed(Class::Xu, 10));
        assert_eq!(p.enter(Class::Xu, 14, 11), None);
        assert!(!p.is_oversubscribed(Class::Xu, 11));
        // The second: oversubscribed from 2 x 1 on, until the first of them starts at 14.
        assert_eq!(p.enter(Class::Xu, 18, 12), None);
        assert!(p.is_oversubscribed(Class::Xu, 12));
        assert!(!p.is_oversubscribed(Class::Xu, 14));
        assert_eq!(p.balance(12), -2);
        // The third: closed from 3 x 1 on, until then too.
        assert_eq!(p.enter(Class::Xu, 22, 13), Some((1 << Class::Xu as u32, 14)));
        // Two pipes: the same numbers twice.
        for n in 0..5 {
            assert_eq!(p.enter(Class::Fma, 30 + n, 13), None);
        }
        assert!(p.is_oversubscribed(Class::Alu, 13));
        assert_eq!(p.enter(Class::Alu, 40, 13), Some((1 << Class::Alu as u32 | 1 << Class::Fma as u32, 30)));
        assert_eq!(p.balance(13), 6 - 3);
        // What more than one type runs is not counted.
        assert_eq!(p.enter(Class::Misc, 99, 13), None);
        assert!(!p.is_oversubscribed(Class::Misc, 13));
    }
}
