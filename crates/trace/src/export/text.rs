//! The profile for a terminal: hot lines with bars by reason, what they waited for, advice.

use super::flamegraph::colour;
use crate::advice;
use crate::compare::Comparison;
use crate::metric::{seconds, thousands};
use crate::profile::{Line, Profile, ranked};
use crate::stall::Stall;
use std::fmt::Write;

/// How to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// With colours; letters tell the reasons apart otherwise.
    pub colour: bool,
    /// Lines to show.
    pub lines: usize,
}

/// Cells of a bar.
const BAR: usize = 24;

/// The letter of a reason where there are no colours.
fn letter(reason: Stall) -> char {
    match reason {
        Stall::Selected => '#',
        Stall::NotSelected => '=',
        Stall::Wait => 'w',
        Stall::LongScoreboard => 'L',
        Stall::ShortScoreboard => 'S',
        Stall::Barrier => 'B',
        Stall::BranchResolving => 'b',
        Stall::MathPipeThrottle => 'P',
        Stall::LgThrottle => 'G',
        Stall::MioThrottle => 'M',
        Stall::TexThrottle => 'T',
        Stall::DispatchStall => 'd',
        Stall::NoInstruction => 'i',
        Stall::ImcMiss => 'c',
        Stall::Membar => 'm',
        Stall::Sleeping => 'z',
        Stall::Drain => 'D',
        Stall::Misc => '?',
        Stall::Gmma => 'g',
        Stall::Grant => 'r',
        Stall::Window => 'W',
        Stall::Hazard => 'H',
    }
}

impl Style {
    /// A piece of a bar.
    fn cells(self, reason: Stall, n: usize) -> String {
        if !self.colour {
            return letter(reason).to_string().repeat(n);
        }
        let hex = colour(reason);
        let part = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap_or(128);
        format!("\x1b[48;2;{};{};{}m{}\x1b[0m", part(1), part(3), part(5), " ".repeat(n))
    }

    /// A bar whose whole width stands for `most`.
    fn bar(self, line: &[(Stall, u64)], most: u64) -> String {
        let mut out = String::new();
        let (mut done, mut cells) = (0u64, 0usize);
        for &(reason, cycles) in line {
            done += cycles;
            let end = ((done as f64 / most.max(1) as f64) * BAR as f64).round() as usize;
            if end > cells {
                out += &self.cells(reason, end - cells);
                cells = end;
            }
        }
        out + &" ".repeat(BAR.saturating_sub(cells))
    }

    fn bold(self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn cut(text: &str, width: usize) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.chars().count() <= width {
        return clean;
    }
    clean.chars().take(width.saturating_sub(1)).chain(['\u{2026}']).collect()
}

pub fn view(p: &Profile, style: Style) -> String {
    let mut out = String::new();
    let all = p.warp_cycles().max(1);
    let (time, unit) = seconds(p.seconds());
    let _ = writeln!(
        out,
        "{} on {}: {} cycles ({time} {unit}), {} CTAs of {} threads, {} warp-cycles, {} instructions",
        style.bold(&p.kernel),
        p.machine.name,
        thousands(p.cycles),
        thousands(p.launch.ctas()),
        p.launch.threads(),
        thousands(p.warp_cycles()),
        thousands(p.executed()),
    );
    if let Some(s) = &p.samples {
        let _ = writeln!(
            out,
            "{} samples, {}, {} lost, in {} runs, {:+} cycles",
            thousands(s.records),
            s.mode,
            thousands(s.lost),
            s.passes,
            s.extra_cycles
        );
    }
    let _ = writeln!(out, "\n{}", style.bold("Warp states"));
    let states = ranked(&p.stalls());
    let most = states.first().map_or(1, |s| s.1);
    for &(reason, cycles) in states.iter().take(10) {
        let _ = writeln!(
            out,
            "  {:>5.1} %  {:<18} {}",
            100.0 * cycles as f64 / all as f64,
            reason.name(),
            style.bar(&[(reason, cycles)], most).trim_end()
        );
    }
    hot_lines(&mut out, p, style, all);
    causes(&mut out, p, style, all);
    let advice = advice::of(p);
    if !advice.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold("Advice"));
    }
    for a in advice.iter().take(6) {
        let place = a.pc.and_then(|pc| p.at(pc)).map(|i| format!(" at {}", p.place(i))).unwrap_or_default();
        let _ = writeln!(out, "  {:>3.0} %  {}{place}", 100.0 * a.gain, style.bold(&a.title));
        for line in wrapped(&a.text, style.width.saturating_sub(9).max(30)) {
            let _ = writeln!(out, "         {line}");
        }
    }
    out
}

/// The lines that took longest, in the order of their cost, with the text of source or PTX.
fn hot_lines(out: &mut String, p: &Profile, style: Style, all: u64) {
    let source = p.source_lines();
    let mut rows: Vec<(String, String, Line)> = if source.is_empty() {
        let text = |n: u32| p.ptx.line(n).unwrap_or("").to_owned();
        p.ptx_lines().into_iter().map(|(n, l)| (format!("PTX {n}"), text(n), l)).collect()
    } else {
        let text = |f: u32, n: u32| p.files.get(f as usize).and_then(|t| t.line(n)).unwrap_or("").to_owned();
        source.into_iter().map(|((f, n), l)| (format!("{}:{n}", p.file_name(f)), text(f, n), l)).collect()
    };
    rows.sort_by(|a, b| b.2.cycles().cmp(&a.2.cycles()).then(a.0.cmp(&b.0)));
    rows.retain(|r| r.2.cycles() > 0);
    let most = rows.first().map_or(1, |r| r.2.cycles());
    let shown = &rows[..rows.len().min(style.lines)];
    let width = shown.iter().map(|r| r.0.len()).max().unwrap_or(0);
    let _ = writeln!(out, "\n{}", style.bold("Lines"));
    for (place, text, line) in shown {
        let reasons = line.reasons();
        let top: Vec<String> = reasons
            .iter()
            .take(2)
            .map(|(r, n)| format!("{} {:.0} %", r.name(), 100.0 * *n as f64 / line.cycles() as f64))
            .collect();
        let room = style.width.saturating_sub(2 + 7 + 2 + BAR + 2 + width + 2).max(16);
        let _ = writeln!(
            out,
            "  {:>5.1} %  {}  {place:width$}  {}",
            100.0 * line.cycles() as f64 / all as f64,
            style.bar(&reasons, most),
            cut(text.trim(), room)
        );
        let _ = writeln!(out, "  {:>7}  {:BAR$}  {:width$}  {}", "", "", "", cut(&top.join(", "), room));
    }
    if rows.len() > shown.len() {
        let _ = writeln!(out, "  ... and {} more lines", rows.len() - shown.len());
    }
    let mut seen: Vec<Stall> = Vec::new();
    for (_, _, line) in shown {
        for (reason, n) in line.reasons() {
            if n as f64 >= most as f64 / BAR as f64 / 2.0 && !seen.contains(&reason) {
                seen.push(reason);
            }
        }
    }
    let legend: Vec<String> = seen.iter().map(|&r| format!("{} {}", style.cells(r, 1), r.name())).collect();
    let _ = writeln!(out, "  {}", legend.join("  "));
}

fn causes(out: &mut String, p: &Profile, style: Style, all: u64) {
    let mut list = p.causes.clone();
    list.sort_by_key(|c| (std::cmp::Reverse(c.cycles), c.pc, c.cause, c.reason));
    if list.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", style.bold("What was waited for"));
    for c in list.iter().take(style.lines.div_ceil(2).max(3)) {
        let (Some(from), Some(at)) = (p.at(c.cause), p.at(c.pc)) else { continue };
        let _ = writeln!(
            out,
            "  {:>5.1} %  {} at {} waits ({}) for {} at {}, which {}",
            100.0 * c.cycles as f64 / all as f64,
            cut(&at.text, 32),
            p.place(at),
            c.reason.name(),
            cut(&from.text, 32),
            p.place(from),
            c.link.words(),
        );
    }
}

/// What changed between two profiles.
pub fn comparison(c: &Comparison, style: Style) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}: {} cycles before, {} now ({})",
        style.bold("Comparison"),
        thousands(c.cycles.before as u64),
        thousands(c.cycles.after as u64),
        change(c.cycles.ratio())
    );
    let all = c.reasons.iter().map(|(_, p)| p.before).sum::<f64>().max(1.0);
    for (reason, pair) in c.reasons.iter().take(5).filter(|(_, p)| p.change() != 0.0) {
        let _ = writeln!(out, "  {:>+6.1} %  {}", 100.0 * pair.change() / all, reason.name());
    }
    let lines = c.lines.iter().take(style.lines).filter(|l| l.2.change() != 0.0);
    for (place, text, pair) in lines {
        let text = cut(text, style.width.saturating_sub(14 + place.len()).max(16));
        let _ = writeln!(out, "  {:>+6.1} %  {place}  {text}", 100.0 * pair.change() / all);
    }
    out
}

fn change(ratio: Option<f64>) -> String {
    match ratio {
        Some(r) => format!("{:+.1} %", 100.0 * (r - 1.0)),
        None => "new".to_owned(),
    }
}

/// Words in lines of a width.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !lines[last].is_empty() {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::profile::tests::sample;

    const PLAIN: Style = Style { width: 100, colour: false, lines: 5 };

    #[test]
    fn hot_lines_come_first() {
        let text = view(&sample(), PLAIN);
        let lines: Vec<&str> = text.lines().skip_while(|l| *l != "Lines").collect();
        assert!(lines[1].contains("inline.h:3  return 2 * x;"), "{text}");
        assert!(lines[1].contains("LLLLLLLLLLLLLLLLLLLLLLLL"), "{text}");
        assert!(lines[2].contains("long_scoreboard 99 %"), "{text}");
        assert!(text.contains("waits (long_scoreboard) for LDG.E R2, [R4+0x0] at scale.cu:1"), "{text}");
        assert!(text.contains("Uncoalesced access at scale.cu:1"), "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 180 && !l.contains('\x1b')));
        assert!(view(&sample(), Style { colour: true, ..PLAIN }).contains("\x1b[48;2;226;87;76m"));
        assert!(!view(&Profile::default(), PLAIN).is_empty());
    }

    #[test]
    fn comparisons_say_what_changed() {
        let mut after = sample();
        after.cycles = 3000;
        after.code[2].stalls[Stall::LongScoreboard as usize] = 20_000;
        let text = comparison(&compare(&sample(), &after), PLAIN);
        assert!(text.starts_with("Comparison: 4,000 cycles before, 3,000 now (-25.0 %)"), "{text}");
        assert!(text.contains("inline.h:3"), "{text}");
    }
}
