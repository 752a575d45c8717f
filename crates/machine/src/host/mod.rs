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

/// A push buffer and what the PPU has been told of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Channel {
    /// Of channels that are ready at once the highest is read first.
    priority: u8,
    buffer: PushBuffer,
    /// Entries that the PPU has been told of: when, and where they end.
    entries: VecDeque<(Cycle, u64)>,
}

/// Reads what the host submits: of every push buffer entry by entry, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostInterface {
    words: u32,
    fetch_cycles: u64,
    fetcher: Line,
    channels: Vec<Channel>,
}

impl HostInterface {
    /// With one push buffer, number 0.
    pub fn new(spec: &Spec) -> HostInterface {
        let mut host = HostInterface {
            words: spec.push_buffer_words,
            fetch_cycles: spec.fetch_cycles.into(),
            fetcher: Line::default(),
            channels: Vec::new(),
        };
        host.open(0);
        host
    }

    /// One more push buffer; its number.
    pub fn open(&mut self, priority: u8) -> usize {
        let buffer = PushBuffer::new(self.words);
        self.channels.push(Channel { priority, buffer, entries: VecDeque::new() });
        self.channels.len() - 1
    }

    /// Gives up all push buffers but the first.
    pub fn close(&mut self) {
        self.channels.truncate(1);
    }

    /// The host writes commands to a push buffer and rings at `at`.
    pub fn submit(&mut self, io: &mut Io, channel: usize, at: Cycle, words: &[u32]) -> Result<(), Full> {
        let channel = &mut self.channels[channel];
        let end = channel.buffer.write(words)?;
        let told = io.receive(at, words.len() as u64 * 4);
        channel.entries.push_back((told, end));
        Ok(())
    }

    /// Words that can be submitted to a push buffer now.
    pub fn room(&self, channel: usize) -> usize {
        self.channels[channel].buffer.room()
    }

    /// Nothing is left to be fetched.
    pub fn is_empty(&self) -> bool {
        self.channels.iter().all(|c| c.entries.is_empty())
    }

    /// When the next entry can be fetched, and from which push buffer, of those that `wants` names.
    pub fn next(&self, wants: impl Fn(usize) -> bool) -> Option<(Cycle, usize)> {
        let channels = self.channels.iter().enumerate().filter(|(n, _)| wants(*n));
        let ready = channels.filter_map(|(n, c)| {
            let &(told, _) = c.entries.front()?;
            Some((told.later(self.fetcher.free()), u8::MAX - c.priority, n))
        });
        ready.min().map(|(at, _, n)| (at, n))
    }

    /// Fetches the next entry of a push buffer; when its words are there.
    pub fn fetch(&mut self, channel: usize, words: &mut Vec<u32>) -> Option<Cycle> {
        let channel = &mut self.channels[channel];
        let (told, end) = channel.entries.pop_front()?;
        channel.buffer.read(end, words);
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
        host.submit(&mut link, 0, Cycle(0), &[1, 2]).expect("room");
        host.submit(&mut link, 0, Cycle(0), &[3]).expect("room");
        assert_eq!(host.next(|_| true), Some((Cycle(10), 0)));
        assert_eq!(host.next(|_| false), None);
        let mut words = Vec::new();
        assert_eq!(host.fetch(0, &mut words), Some(Cycle(15)));
        assert_eq!(host.fetch(0, &mut words), Some(Cycle(20)));
        assert_eq!(words, [1, 2, 3]);
        assert_eq!(host.fetch(0, &mut words), None);
    }
}
