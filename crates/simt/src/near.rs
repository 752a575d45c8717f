//! Which rows of a warp's file the instructions from a place on use, so that the host's caches can be asked for them.

/// Instructions whose rows are asked for together.
const INSTRUCTIONS: usize = 4;

/// Rows by place in the code.
#[derive(Clone, Default)]
pub struct Near {
    /// Rows of each instruction.
    own: Vec<Vec<u32>>,
    /// Rows of [`INSTRUCTIONS`] from each place on, each once, and where those of a place begin.
    rows: Vec<u32>,
    first: Vec<u32>,
}

impl Near {
    /// The instruction at a place uses these rows.
    pub fn set(&mut self, pc: usize, rows: Vec<u32>) {
        if self.own.len() <= pc {
            self.own.resize(pc + 1, Vec::new());
        }
        self.own[pc] = rows;
    }

    /// With the rows of all places put together; before that [`Near::at`] knows none of what was set.
    pub fn joined(mut self) -> Near {
        self.rows.clear();
        self.first.clear();
        for pc in 0..self.own.len() {
            self.first.push(self.rows.len() as u32);
            let rows = self.following(pc, INSTRUCTIONS);
            self.rows.extend(rows);
        }
        self.first.push(self.rows.len() as u32);
        self
    }

    /// Rows of so many instructions from a place on, each once.
    pub fn following(&self, pc: usize, instructions: usize) -> Vec<u32> {
        let mut rows: Vec<u32> = self.own.iter().skip(pc).take(instructions).flatten().copied().collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Rows that the next instructions from a place on use.
    #[inline(always)]
    pub fn at(&self, pc: usize) -> &[u32] {
        match self.first.get(pc..pc + 2) {
            Some(&[first, end]) => &self.rows[first as usize..end as usize],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_next_instructions_are_there_once() {
        let mut near = Near::default();
        for (pc, rows) in [vec![128, 0], vec![256], vec![], vec![0], vec![512]].into_iter().enumerate() {
            near.set(pc, rows);
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
