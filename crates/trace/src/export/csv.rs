//! A table with a row an instruction.

use crate::profile::Profile;
use crate::record::INSTRUCTION_BYTES;
use crate::stall::Stall;
use std::fmt::Write;

/// A cell; quoted where it has to be.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

pub fn table(p: &Profile) -> String {
    let mut out = String::from(
        "address,function,file,line,inlined_at,ptx_line,instruction,executed,threads,requests,sectors,l1_hits,ideal_sectors,\
         bank_conflicts,warp_cycles",
    );
    for stall in Stall::ALL {
        let _ = write!(out, ",{}", stall.name());
    }
    out.push('\n');
    for i in &p.code {
        let frame = i.frames.first();
        let file = frame.map_or("", |f| p.files.get(f.file as usize).map_or("?", |t| t.name.as_str()));
        let line = frame.map(|f| f.line.to_string()).unwrap_or_default();
        let calls: Vec<String> =
            i.frames.iter().skip(1).map(|f| format!("{}:{}", p.file_name(f.file), f.line)).collect();
        let w = &i.work;
        let _ = write!(
            out,
            "{:#x},{},{},{line},{},{},{},{},{},{},{},{},{},{},{}",
            i.pc * INSTRUCTION_BYTES,
            cell(&i.function),
            cell(file),
            cell(&calls.join(" ")),
            i.ptx_line,
            cell(&i.text),
            i.executed(),
            w.threads,
            w.requests,
            w.sectors,
            w.hits,
            w.ideal_sectors,
            w.conflicts,
            i.cycles()
        );
        for n in i.stalls {
            let _ = write!(out, ",{n}");
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::sample;

    #[test]
    fn every_row_has_every_column() {
        let text = table(&sample());
        // Commas inside quotes do not separate.
        let columns =
            |line: &str| line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>() + 1;
        let counts: Vec<usize> = text.lines().map(columns).collect();
        assert_eq!(counts, [15 + crate::STALLS; 5]);
        let third = text.lines().nth(3).expect("a row");
        assert!(
            third.starts_with("0x20,scale,inline.h,3,scale.cu:2,12,\"FFMA R2, R2, R3, R5\",64,2048,"),
            "{third}"
        );
    }
}
