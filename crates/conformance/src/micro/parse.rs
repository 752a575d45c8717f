//! Reading a group of microbenchmarks: one line a row, in the order in which they run.

use std::path::{Path, PathBuf};

/// A group: its program and what is done with it, line by line.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    pub name: String,
    pub program: PathBuf,
    pub steps: Vec<Step>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Makes the buffer `p`: a random cycle through the lines of so many bytes, copied from the host.
    Chase(u64),
    /// Makes the buffer `p`: a walk that no cache holds anything of.
    Cold,
    Row(Row),
}

/// A row that is compared.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub name: String,
    pub what: What,
    pub value: Value,
    /// What the GPU had, and in which unit.
    pub measured: f64,
    pub unit: String,
    /// Largest difference from it, in per cent.
    pub tolerance: f64,
}

#[derive(Clone, PartialEq, Debug)]
pub enum What {
    Launch(Launch),
    /// A property of the machine.
    Property(String),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    pub entry: String,
    pub ctas: u32,
    pub threads: u32,
    pub args: Vec<Arg>,
    /// How often, one behind the other.
    pub times: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    Clock,
    Sink,
    Zero,
    Buffer,
    Number(i32),
}

/// How the row's number comes from what was read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// Clock difference over this.
    ClockOver(f64),
    /// This over the clock difference.
    OverClock(f64),
    /// Microseconds of all launches over this.
    TimeOver(f64),
    /// The property itself.
    Itself,
}

/// Reads a group.
pub fn load(path: &Path) -> Result<Group, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new("."));
    group(name, folder, &text).map_err(|(line, why)| format!("{}:{line}: {why}", path.display()))
}

fn group(name: String, folder: &Path, text: &str) -> Result<Group, (usize, String)> {
    let (mut program, mut steps) = (None, Vec::new());
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fail = |why: String| (n + 1, why);
        match line.split_once(' ').unwrap_or((line, "")) {
            ("program", file) => program = Some(folder.join(file.trim())),
            ("chase", kb) => steps.push(Step::Chase(number::<u64>(kb).map_err(fail)? * 1024)),
            ("cold", "") => steps.push(Step::Cold),
            _ => steps.push(Step::Row(row(line).map_err(fail)?)),
        }
    }
    let program = program.ok_or((1, "there is no `program FILE` line".to_owned()))?;
    Ok(Group { name, program, steps })
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("`{}` is no number that can stand here", text.trim()))
}

/// `text` up to a separator and behind it.
fn split<'a>(text: &'a str, at: &str) -> Result<(&'a str, &'a str), String> {
    let (a, b) = text.split_once(at).ok_or_else(|| format!("there should be a `{at}` in `{text}`"))?;
    Ok((a.trim(), b.trim()))
}

fn row(line: &str) -> Result<Row, String> {
    let (name, rest) = split(line, ":")?;
    let (what, rest) = split(rest, ";")?;
    let (value, rest) = split(rest, "=")?;
    let (measured, tolerance) = split(rest, " within ")?;
    let (measured, unit) = measured.split_once(' ').unwrap_or((measured, ""));
    let (what, value) = match what {
        "config" => (What::Property(value.to_owned()), Value::Itself),
        _ => (What::Launch(launch(what)?), quotient(value)?),
    };
    Ok(Row {
        name: name.to_owned(),
        what,
        value,
        measured: number(measured)?,
        unit: unit.trim().to_owned(),
        tolerance: number(tolerance.strip_suffix('%').ok_or("a tolerance ends in `%`")?)?,
    })
}

fn quotient(text: &str) -> Result<Value, String> {
    match split(text, "/")? {
        ("t", n) => Ok(Value::ClockOver(number(n)?)),
        ("time", n) => Ok(Value::TimeOver(number(n)?)),
        (n, "t") => Ok(Value::OverClock(number(n)?)),
        _ => Err(format!("`{text}` is none of `t / N`, `N / t`, `time / N`")),
    }
}

/// `entry<ctas, threads>(args)`, and perhaps `x times`.
fn launch(text: &str) -> Result<Launch, String> {
    let (entry, rest) = split(text, "<")?;
    let (shape, rest) = split(rest, ">")?;
    let (ctas, threads) = split(shape, ",")?;
    let rest = rest.strip_prefix('(').ok_or("arguments stand in parentheses")?;
    let (args, times) = split(rest, ")")?;
    Ok(Launch {
        entry: entry.to_owned(),
        ctas: number(ctas)?,
        threads: number(threads)?,
        args: args
            .split(',')
            .map(str::trim)
            .filter(|a| !a.is_empty())
            .map(argument)
            .collect::<Result<_, _>>()?,
        times: times.strip_prefix('x').map_or(Ok(1), number)?,
    })
}

fn argument(text: &str) -> Result<Arg, String> {
    Ok(match text {
        "t" => Arg::Clock,
        "o" => Arg::Sink,
        "g" => Arg::Zero,
        "p" => Arg::Buffer,
        _ => Arg::Number(number(text)?),
    })
}

/// A program's text with its repetitions written out.
pub fn expand(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut lines = text.lines().enumerate();
    while let Some((n, line)) = lines.next() {
        let Some(count) = line.trim().strip_prefix("// repeat ") else {
            out.push_str(line);
            out.push('\n');
            continue;
        };
        let count: usize = number(count).map_err(|why| format!("line {}: {why}", n + 1))?;
        let mut body = String::new();
        loop {
            match lines.next() {
                Some((_, line)) if line.trim() == "// end" => break,
                Some((_, line)) => {
                    body.push_str(line);
                    body.push('\n');
                }
                None => return Err(format!("line {}: the repetition has no `// end`", n + 1)),
            }
        }
        out.push_str(&body.repeat(count));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_to_launch_and_what_to_expect() {
        let text = "# words\nprogram a.ptx\nchase 16\n\nn: k<2, 64>(t, o, -3) x 5; 512 / t = 1.5 lanes/cycle within 15 %\ns: config; sms = 132 within 0 %\n";
        let group = group("g".into(), Path::new("d"), text).expect("a group");
        assert_eq!(group.program, Path::new("d/a.ptx"));
        assert_eq!(group.steps[0], Step::Chase(16384));
        let Step::Row(row) = &group.steps[1] else { panic!("a row") };
        let launch = Launch {
            entry: "k".into(),
            ctas: 2,
            threads: 64,
            args: vec![Arg::Clock, Arg::Sink, Arg::Number(-3)],
            times: 5,
        };
        assert_eq!(row.what, What::Launch(launch));
        assert_eq!((row.value, row.measured, row.tolerance), (Value::OverClock(512.0), 1.5, 15.0));
        assert_eq!(row.unit, "lanes/cycle");
        let Step::Row(row) = &group.steps[2] else { panic!("a row") };
        assert_eq!((&row.what, row.unit.as_str()), (&What::Property("sms".into()), ""));
    }

    #[test]
    fn mistakes_have_lines() {
        for (text, line) in [
            ("program a\nchase many", 2),
            ("latency k<1, 1>()", 1),
            ("program a\n\nn: k<1>(t); t / 2 = 1 within 5 %", 3),
            ("program a\nn: k<1, 1>(t); t * 2 = 1 within 5 %", 2),
            ("program a\nn: k<1, 1>(t); t / 2 = 1 within 5", 2),
            ("program a\nn: k<1, 1>(u); t / 2 = 1 within 5 %", 2),
            ("chase 1", 1),
        ] {
            assert_eq!(group("g".into(), Path::new(""), text).expect_err(text).0, line, "{text}");
        }
    }

    #[test]
    fn repetitions_are_written_out() {
        assert_eq!(expand("a\n // repeat 3\nb\nc\n // end\nd\n").as_deref(), Ok("a\nb\nc\nb\nc\nb\nc\nd\n"));
        assert!(expand("// repeat x\n// end\n").is_err());
        assert!(expand("// repeat 2\nb\n").is_err());
    }
}
