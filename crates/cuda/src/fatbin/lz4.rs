//! Blocks of LZ4: runs of literal bytes, each followed by a copy from what was written before.

/// The bytes of a block, of which there are `size`; `None` where the block is broken.
pub fn unpack(mut block: &[u8], size: usize) -> Option<Vec<u8>> {
    /// A length whose first four bits are all set goes on in bytes, up to one that is not 255.
    fn length(block: &mut &[u8], nibble: u8) -> Option<usize> {
        let mut len = usize::from(nibble);
        let mut goes_on = nibble == 15;
        while goes_on {
            let (&more, rest) = block.split_first()?;
            *block = rest;
            len += usize::from(more);
            goes_on = more == 255;
        }
        Some(len)
    }
    /// A copy has at least this many bytes.
    const LEAST: usize = 4;
    let mut out: Vec<u8> = Vec::new();
    while let Some((&token, rest)) = block.split_first() {
        block = rest;
        let literals = length(&mut block, token >> 4)?;
        out.extend_from_slice(block.get(..literals)?);
        block = &block[literals..];
        if block.is_empty() {
            break;
        }
        let back = usize::from(u16::from_le_bytes([*block.first()?, *block.get(1)?]));
        block = &block[2..];
        let copied = length(&mut block, token & 15)? + LEAST;
        let from = out.len().checked_sub(back).filter(|_| back > 0)?;
        if out.len() + copied > size {
            return None;
        }
        // The copy may overlap what it writes.
        for n in 0..copied {
            out.push(out[from + n]);
        }
    }
    (out.len() == size).then_some(out)
}
