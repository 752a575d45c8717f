//! Host interface: reads push buffers and hands commands to the front end.

mod push_buffer;
mod spec;

pub use push_buffer::{Full, PushBuffer};
pub use spec::Spec;

use crate::io::Io;
use crate::server::Line;
use crate::units::Cycle;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Reads what the host submits, entry by entry, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostInterface {
    buffer: PushBuffer,
    fetch_cycles: u64,
    fetcher: Line,
    /// Entries that the PPU has been told of: when, and where they end.
    entries: VecDeque<(Cycle, u64)>,
}

impl HostInterface {
    pub fn new(spec: &Spec) -> HostInterface {
        HostInterface {
            buffer: PushBuffer::new(spec.push_buffer_words),
            fetch_cycles: spec.fetch_cycles.into(),
            fetcher: Line::default(),
            entries: VecDeque::new(),
        }
    }

    /// The host writes commands and rings at `at`.
    pub fn submit(&mut self, io: &mut Io, at: Cycle, words: &[u32]) -> Result<(), Full> {
        let end = self.buffer.write(words)?;
        let told = io.receive(at, words.len() as u64 * 4);
        self.entries.push_back((told, end));
        Ok(())
    }

    /// When the next entry can be fetched.
    pub fn next(&self) -> Option<Cycle> {
        self.entries.front().map(|&(told, _)| told.later(self.fetcher.free()))
    }

    /// Fetches the next entry; when its words are there.
    pub fn fetch(&mut self, words: &mut Vec<u32>) -> Option<Cycle> {
        let (told, end) = self.entries.pop_front()?;
        self.buffer.read(end, words);
        Some(self.fetcher.serve(told, self.fetch_cycles) + self.fetch_cycles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io;

    #[test]
    fn entries_are_fetched_one_after_the_other() {
        let mut link = Io::new(&io::Spec { latency: 10, bytes_per_cycle: 64 });
        let mut host =
            HostInterface::new(&Spec { push_buffer_words: 8, fetch_cycles: 5, submit_interval: 0 });
        host.submit(&mut link, Cycle(0), &[1, 2]).expect("room");
        host.submit(&mut link, Cycle(0), &[3]).expect("room");
        assert_eq!(host.next(), Some(Cycle(10)));
        let mut words = Vec::new();
        assert_eq!(host.fetch(&mut words), Some(Cycle(15)));
        assert_eq!(host.fetch(&mut words), Some(Cycle(20)));
        assert_eq!(words, [1, 2, 3]);
        assert_eq!(host.fetch(&mut words), None);
    }
}
