//! Problems as text for people: message, file, line, the place marked, and what to do.

use ariadne::{CharSet, Color, Config, IndexType, Label, Report, ReportKind, Source};
use driver::launch::triple;
use driver::problem::{Problem, Problems, Severity};
use driver::{FaultReport, LaunchError};
use std::io::IsTerminal;

/// Lines longer than this are not shown: the place would be out of sight.
const MAX_LENGTH: usize = 300;
/// Nor are lines beyond this one: a file so long was not written by people.
const MAX_LINE: usize = 1 << 20;

/// Whether standard error wants colours.
pub fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Whether standard output wants colours.
pub fn colour_output() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Columns of the terminal, where it is known.
pub fn width() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|n| n.parse().ok());
    let asked = || std::io::stdout().is_terminal().then(|| usize::from(console::Term::stdout().size().1));
    told.or_else(asked).unwrap_or(120).clamp(60, 240)
}

pub fn problems(problems: &Problems, colour: bool) -> String {
    let mut out: String = problems.0.iter().map(|p| problem(p, colour)).collect();
    let errors = problems.0.iter().filter(|p| p.severity == Severity::Error).count();
    if errors > 1 {
        out += &format!("{errors} errors\n");
    }
    out
}

fn problem(problem: &Problem, colour: bool) -> String {
    marked(problem, colour).unwrap_or_else(|| plain(problem))
}

/// One line each for message and help.
fn plain(problem: &Problem) -> String {
    let kind = match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut out = format!("{kind}: {}\n", problem.message);
    if let Some(at) = problem.location() {
        out += &format!("  at {at}\n");
    }
    if let Some(help) = &problem.help {
        out += &format!("  help: {help}\n");
    }
    out
}

/// With the source line and a marker; `None` where the line cannot be shown.
fn marked(problem: &Problem, colour: bool) -> Option<String> {
    let (source, span) = problem.place.as_ref()?;
    let (line, column) = source.locate(span.start);
    let whole = source.line_span(line)?;
    let text = source.bytes.get(whole.clone())?;
    if text.len() > MAX_LENGTH || column > MAX_LENGTH || line > MAX_LINE {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?.trim_end_matches('\r');
    if text.chars().any(|c| c.is_control() && c != '\t') {
        return None;
    }
    let start = (span.start - whole.start).min(text.len());
    let end = span.end.saturating_sub(whole.start).clamp(start, text.len());
    if !text.is_char_boundary(start) || !text.is_char_boundary(end) {
        return None;
    }
    // Only this line is given to the renderer, behind empty ones for its number: a long file costs nothing.
    let shown = "\n".repeat(line - 1) + text;
    let at = line - 1 + start..line - 1 + end;
    let (kind, ink) = match problem.severity {
        Severity::Error => (ReportKind::Error, Color::Red),
        Severity::Warning => (ReportKind::Warning, Color::Yellow),
    };
    let config = Config::default()
        .with_color(colour)
        .with_char_set(if colour { CharSet::Unicode } else { CharSet::Ascii })
        .with_index_type(IndexType::Byte)
        .with_compact(false);
    let name = source.name.as_str();
    let mut label = Label::new((name, at.clone())).with_color(ink);
    if start < text.len() {
        label = label.with_message("here");
    }
    let mut report =
        Report::build(kind, (name, at)).with_config(config).with_message(&problem.message).with_label(label);
    for (span, note) in &problem.notes {
        let (line, column) = source.locate(span.start);
        report.add_note(format!("{name}:{line}:{column}: {note}"));
    }
    if let Some(help) = &problem.help {
        report.set_help(help);
    }
    let mut out = Vec::new();
    report.finish().write((name, Source::from(shown)), &mut out).ok()?;
    String::from_utf8(out).ok()
}

/// Why a launch ended early.
pub fn launch_error(error: &LaunchError, program: &driver::Source, colour: bool) -> String {
    match error {
        LaunchError::Fault(report) => fault(report, program, colour),
        LaunchError::TooManyInstructions { .. } => {
            format!("error: {error}\n  help: a larger --max-instructions lets it run on\n")
        }
        other => format!("error: {other}\n"),
    }
}

fn fault(report: &FaultReport, program: &driver::Source, colour: bool) -> String {
    let message = format!("kernel {}: {}", report.kernel, report.message);
    let span = program.line_span(report.ptx_line as usize).filter(|_| report.ptx_line > 0);
    let mut out = match span {
        Some(span) => {
            let lead = program.bytes[span.clone()].iter().take_while(|b| b.is_ascii_whitespace()).count();
            problem(&Problem::new(message).at(program, span.start + lead..span.end), colour)
        }
        None => format!("error: {message}\n"),
    };
    for (n, (file, line, _)) in report.frames.iter().enumerate() {
        out += &format!("  {} {file}:{line}\n", if n == 0 { "source:" } else { "inlined at" });
    }
    if report.function != report.kernel {
        out += &format!("  function: {}\n", report.function);
    }
    out += &format!("  thread: {} of CTA {}\n", triple(report.thread), triple(report.cta));
    if let Some(access) = report.access {
        out += &format!("  address: {:#x} ({} memory)\n", access.address, access.space);
    }
    out + &format!("  instruction: {:#06x} {}\n", report.pc, report.instruction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::Source;

    #[test]
    fn the_place_is_marked() {
        let source = Source::new("a.ptx", *b".version 9.0\n  add.u33 %r1;\n");
        let text = problems(
            &Problem::new("no such type").at(&source, 19..22).help("did you mean u32?").into(),
            false,
        );
        for part in ["Error: no such type", "a.ptx:2:7", "2 |   add.u33 %r1;", "did you mean u32?"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn what_cannot_be_shown_is_still_named() {
        let noise = Source::new("noise", vec![0xff; 100_000]);
        let text = problems(&Problem::new("not PTX").at(&noise, 5..6).into(), false);
        assert!(text.contains("not PTX") && text.contains("noise:1:6"), "{text}");
        let bare = problems(&Problem::new("cannot").help("try").into(), true);
        assert_eq!(bare, "error: cannot\n  help: try\n");
    }
}
