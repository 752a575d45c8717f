//! What the instructions from a place on use of a warp's file, in lines of the host's caches, so that they can be asked for it.

/// Instructions whose lines are asked for together.
const INSTRUCTIONS: usize = 4;

/// Lines by place in the code, in bytes from the begin of the file.
#[derive(Clone, Default)]
pub struct Near {
    /// Lines of each instruction.
    own: Vec<Vec<u32>>,
    /// Lines of [`INSTRUCTIONS`] from each place on, each once, and where those of a place begin.
    lines: Vec<u32>,
    first: Vec<u32>,
}

impl Near {
    /// The instruction at a place uses these lines.
    pub fn set(&mut self, pc: usize, lines: Vec<u32>) {
        if self.own.len() <= pc {
            self.own.resize(pc + 1, Vec::new());
        }
        self.own[pc] = lines;
    }

    /// With the lines of all places put together; before that [`Near::at`] knows none of what was set.
    pub fn joined(mut self) -> Near {
        self.lines.clear();
        self.first.clear();
        for pc in 0..self.own.len() {
            self.first.push(self.lines.len() as u32);
            let lines = self.following(pc, INSTRUCTIONS);
            self.lines.extend(lines);
        }
        self.first.push(self.lines.len() as u32);
        self
    }

    /// Lines of so many instructions from a place on, each once.
    pub fn following(&self, pc: usize, instructions: usize) -> Vec<u32> {
        let mut lines: Vec<u32> = self.own.iter().skip(pc).take(instructions).flatten().copied().collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// Lines that the next instructions from a place on use.
    #[inline(always)]
    pub fn at(&self, pc: usize) -> &[u32] {
        match self.first.get(pc..pc + 2) {
            Some(&[first, end]) => &self.lines[first as usize..end as usize],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_next_instructions_are_there_once() {
        let mut near = Near::default();
        for (pc, lines) in [vec![128, 0], vec![256], vec![], vec![0], vec![512]].into_iter().enumerate() {
            near.set(pc, lines);
        }
        let near = near.joined();
        assert_eq!(near.at(0), [0, 128, 256]);
        assert_eq!(near.at(1), [0, 256, 512]);
        assert_eq!(near.at(4), [512]);
        assert_eq!(near.at(5), [0; 0]);
        // Code that is put behind it is seen from before.
        let mut more = near.clone();
        more.set(6, vec![640]);
        assert_eq!(more.joined().at(4), [512, 640]);
    }
}
