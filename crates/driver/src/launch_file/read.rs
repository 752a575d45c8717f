//! From TOML to a [`LaunchFile`].

use super::table::{Sink, Table, Value, list, number, printable};
use super::{Arg, Buffer, Launch, LaunchFile, Order, Output};
use crate::element::{Element, Number};
use crate::init::Init;
use crate::npy;
use crate::picture::{Palette, Picture};
use crate::problem::{Problem, Problems, Source};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

const LAUNCH_KEYS: [&str; 7] = ["ptx", "source", "entry", "grid", "block", "shared_bytes", "arg"];
/// Those of a `[[launch]]` among others.
const ORDER_KEYS: [&str; 6] = ["name", "stream", "priority", "after", "at", "head"];
const BUFFER_KEYS: [&str; 5] = ["buffer", "name", "count", "init", "out"];
/// What the memory of an H200 holds.
const MAX_BYTES: u64 = 141 << 30;

pub fn read(source: Source, path: &Path) -> Result<LaunchFile, Problems> {
    let text = match std::str::from_utf8(&source.bytes) {
        Ok(text) => text.to_owned(),
        Err(e) => {
            let at = e.valid_up_to();
            return Err(Problem::new("the launch file is not UTF-8 text")
                .at(&source, at..at + 1)
                .help("launch files are TOML text; check the path")
                .into());
        }
    };
    let root = DeTable::parse(&text).map_err(|e| {
        let span = e.span().unwrap_or(0..0);
        Problem::new(format!("the launch file is not TOML: {}", e.message().trim()))
            .at(&source, span)
            .help("docs/launch-files.md describes the format")
    })?;
    let sink = Sink::new(source);
    // The span of the whole file would mark every line: its first line stands for it.
    let table = Table::new(&sink, root.get_ref(), 0..0, "the launch file");
    let name = path.file_stem().map_or_else(|| "launch".into(), |s| s.to_string_lossy().into_owned());
    let dir = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let mut reader = Reader { sink: &sink, dir, name, buffers: Vec::new(), names: Vec::new() };
    let launches = reader.file(&table);
    let Reader { name, buffers, .. } = reader;
    if !sink.is_empty() {
        return Err(Problems(sink.into_problems()));
    }
    Ok(LaunchFile { source: sink.source, name, buffers, launches })
}

struct Reader<'a> {
    sink: &'a Sink,
    dir: PathBuf,
    name: String,
    buffers: Vec<Buffer>,
    /// What the launches so far are called.
    names: Vec<Option<String>>,
}

impl<'a> Reader<'a> {
    fn file(&mut self, table: &Table<'a>) -> Vec<Launch> {
        if !table.has("launch") {
            table.allow(&LAUNCH_KEYS);
            return self.launch(table, table, None).into_iter().collect();
        }
        table.allow(&["ptx", "source", "launch"]);
        let launches = table.tables("launch", "a launch");
        if launches.is_empty() {
            self.sink.report(table.span.clone(), "the launch file has no launch", "add a `[[launch]]` table");
        }
        launches
            .iter()
            .enumerate()
            .filter_map(|(n, launch)| {
                launch.allow(&[&LAUNCH_KEYS[..], &ORDER_KEYS].concat());
                self.launch(launch, table, Some(n))
            })
            .collect()
    }

    fn launch(&mut self, table: &Table<'a>, root: &Table<'a>, number: Option<usize>) -> Option<Launch> {
        let program = self.program(table, root);
        let entry = table
            .need("entry", "the kernel's name in the PTX")
            .and_then(|_| table.string("entry", "the kernel's name in quotes"));
        let shape = |key: &str| {
            let expected = "three positive numbers, `[x, y, z]`";
            let value = table.need(key, expected)?;
            let items = table.array(key, value, expected)?;
            let sizes: Vec<u32> = items
                .iter()
                .filter_map(|item| table.integer(key, item, 1..1 << 32, expected).map(|n| n as u32))
                .collect();
            if items.len() != 3 {
                table.wrong(value, key, &format!("{expected}; there are {}", items.len()));
            }
            Some((<[u32; 3]>::try_from(sizes).ok()?, value.span()))
        };
        let (grid, block) = (shape("grid"), shape("block"));
        let shared = match table.value("shared_bytes") {
            Some(value) => table
                .integer("shared_bytes", value, 0..1 << 31, "a number of bytes")
                .map(|n| (n as u32, value.span())),
            None => Some((0, table.span.clone())),
        };
        let args = table.tables("arg", "an argument");
        let args: Vec<_> = args
            .iter()
            .enumerate()
            .map(|(n, arg)| {
                let default_name = match number {
                    Some(launch) => format!("launch{launch}_arg{n}"),
                    None => format!("arg{n}"),
                };
                self.arg(arg, default_name).map(|a| (a, arg.span.clone()))
            })
            .collect();
        let order = self.order(table);
        let (program, program_span) = program?;
        let (entry, entry_span) = entry?;
        let ((grid, grid_span), (block, block_span)) = (grid?, block?);
        let (shared_bytes, shared_span) = shared?;
        Some(Launch {
            program,
            program_span,
            entry: entry.to_owned(),
            entry_span,
            grid,
            grid_span,
            block,
            block_span,
            shared_bytes,
            shared_span,
            args: args.into_iter().collect::<Option<_>>()?,
            order: order?,
        })
    }

    /// Where a launch stands among the others.
    fn order(&mut self, table: &Table<'a>) -> Option<Order> {
        let text = |key: &str| match table.has(key) {
            true => table.string(key, "a name in quotes").map(|(text, span)| Some((text.to_owned(), span))),
            false => Some(None),
        };
        let number = |key: &str, below: i128, what: &str| match table.value(key) {
            Some(value) => table.integer(key, value, 0..below, what).map(|n| Some(n as u64)),
            None => Some(None),
        };
        let name = text("name");
        if let Some(Some((name, span))) = &name
            && self.names.iter().flatten().any(|n| n == name)
        {
            let message = format!("two launches are named `{}`", printable(name));
            self.sink.report(span.clone(), message, "rename one");
        }
        let mut after = Vec::new();
        if let Some(value) = table.value("after") {
            for item in table.array("after", value, "a list of names of launches before this one")? {
                let Some(wanted) = item.get_ref().as_str() else {
                    table.wrong(item, "after", "names of launches in quotes");
                    continue;
                };
                match self.names.iter().position(|n| n.as_deref() == Some(wanted)) {
                    Some(n) => after.push(n),
                    None => {
                        let names: Vec<&str> = self.names.iter().flatten().map(String::as_str).collect();
                        let help = match ptx::diagnostic::closest(wanted, names.iter().copied()) {
                            Some(near) => format!("did you mean `{near}`?"),
                            None if names.is_empty() => "give an earlier launch a `name`".into(),
                            None => format!("the launches before it are {}", list(&names)),
                        };
                        let message = format!("there is no launch `{}` before this one", printable(wanted));
                        self.sink.report(item.span(), message, help);
                    }
                }
            }
        }
        let at_head = match table.value("head") {
            Some(value) => match value.get_ref().as_bool() {
                Some(head) => head,
                None => {
                    table.wrong(value, "head", "`true` or `false`");
                    return None;
                }
            },
            None => false,
        };
        let name = name?.map(|(name, _)| name);
        self.names.push(name.clone());
        Some(Order {
            name,
            stream: text("stream")?.map(|(stream, _)| stream),
            priority: number("priority", 256, "a number from 0 to 255")?.map(|n| n as u8),
            after,
            at: number("at", 1 << 62, "a number of cycles")?,
            at_head,
        })
    }

    /// The program's path: of the launch, of the file, or found by the file's name.
    fn program(&self, table: &Table<'a>, root: &Table<'a>) -> Option<(PathBuf, Range<usize>)> {
        for place in [table, root] {
            if place.has("ptx") && place.has("source") {
                self.sink.report(place.span.clone(), "both `ptx` and `source` are given", "keep one of them");
                return None;
            }
            for key in ["ptx", "source"] {
                if place.has(key) {
                    let (path, span) = place.string(key, "a path in quotes")?;
                    return Some((self.dir.join(path), span));
                }
            }
        }
        let file = format!("{}.ptx", self.name);
        let beside = self.dir.join(&file);
        let folder = self.dir.join("..").join("ptx").join(&file);
        let source = self.dir.join(format!("{}.cu", self.name));
        match [&beside, &folder, &source].into_iter().find(|p| p.is_file()) {
            Some(found) => Some((found.clone(), table.span.clone())),
            None => {
                self.sink.report(
                    table.span.clone(),
                    "the launch names no program",
                    format!(
                        "add `ptx = \"FILE.ptx\"`; {file} is neither beside the launch file nor in ../ptx"
                    ),
                );
                None
            }
        }
    }

    fn arg(&mut self, table: &Table<'a>, default_name: String) -> Option<Arg> {
        if table.has("use") {
            table.allow(&["use"]);
            let (name, span) = table.string("use", "a buffer's name in quotes")?;
            let found = self.buffers.iter().position(|b| b.name == name);
            if found.is_none() {
                let names: Vec<&str> = self.buffers.iter().map(|b| b.name.as_str()).collect();
                let help = match ptx::diagnostic::closest(name, names.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if names.is_empty() => "an earlier argument must declare it with `name`".into(),
                    None => format!("the buffers before it are {}", list(&names)),
                };
                self.sink.report(span, format!("there is no buffer `{}`", printable(name)), help);
            }
            return found.map(Arg::Buffer);
        }
        if table.has("buffer") {
            return self.buffer(table, default_name).map(Arg::Buffer);
        }
        if let Some(value) = table.value("bytes") {
            table.allow(&["bytes"]);
            let expected = "bytes, `[1, 2, ...]`";
            let items = table.array("bytes", value, expected)?;
            let bytes: Vec<u8> = items
                .iter()
                .filter_map(|i| table.integer("bytes", i, 0..256, expected))
                .map(|b| b as u8)
                .collect();
            return (bytes.len() == items.len()).then_some(Arg::Value { what: "bytes".into(), bytes });
        }
        let types: Vec<&str> = Element::ALL.iter().map(|e| e.name()).collect();
        let mut scalars: Vec<_> =
            table.keys().filter_map(|(key, span)| Some((Element::from_name(key)?, span))).collect();
        scalars.sort_by_key(|(_, span)| span.start);
        if let [_, (_, second), ..] = &scalars[..] {
            let help = "write an `[[arg]]` line before each value";
            self.sink.report(second.clone(), "the argument has two values", help);
            return None;
        }
        let Some(&(element, _)) = scalars.first() else {
            let help =
                format!("write a scalar such as `i32 = 7` (types: {}), or a `buffer`", types.join(" "));
            match table.keys().next() {
                Some((key, span)) => {
                    let help = match ptx::diagnostic::closest(key, types.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => help,
                    };
                    self.sink.report(span, format!("`{}` is no kind of argument", printable(key)), help);
                }
                None => self.sink.report(table.span.clone(), "the argument is empty", help),
            }
            return None;
        };
        table.allow(&[element.name()]);
        let value = table.value(element.name())?;
        let bits = self.bits(table, element.name(), element, value)?;
        Some(Arg::Value { what: element.name().into(), bytes: bits.to_le_bytes()[..element.size()].to_vec() })
    }

    fn bits(&self, table: &Table<'a>, key: &str, element: Element, value: &Value<'_>) -> Option<u64> {
        let number = table.number(key, value, &format!("a number of type {}", element.name()))?;
        match element.bits_of(number) {
            Ok(bits) => Some(bits),
            Err(why) => {
                self.sink.report(value.span(), why, "choose another value or type");
                None
            }
        }
    }

    fn buffer(&mut self, table: &Table<'a>, default_name: String) -> Option<usize> {
        table.allow(&BUFFER_KEYS);
        let (type_name, type_span) = table.string("buffer", "an element type in quotes")?;
        let Some(element) = Element::from_name(type_name) else {
            let types: Vec<&str> = Element::ALL.iter().map(|e| e.name()).collect();
            self.sink.report(
                type_span,
                format!("`{}` is no element type", printable(type_name)),
                format!("the types are {}", types.join(" ")),
            );
            return None;
        };
        let name = match table.has("name") {
            true => table.string("name", "a name in quotes")?.0.to_owned(),
            false => default_name,
        };
        if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)) || name.starts_with('.') {
            self.sink.report(
                table.span.clone(),
                format!("`{}` cannot name a buffer", printable(&name)),
                "use letters, digits, `_`, `-` and `.`: outputs are written to files of that name",
            );
            return None;
        }
        if self.buffers.iter().any(|b| b.name == name) {
            self.sink.report(
                table.span.clone(),
                format!("two buffers are named `{name}`"),
                format!("rename one, or write `use = \"{name}\"` to pass the first again"),
            );
            return None;
        }
        let mut count = match table.value("count") {
            Some(value) => Some(table.integer("count", value, 1..1 << 40, "a number of elements")? as u64),
            None => None,
        };
        let init = match table.value("init") {
            Some(value) => self.init(table, value, element, &mut count)?,
            None => Init::Fill(0),
        };
        let Some(count) = count else {
            table.need("count", "the number of elements");
            return None;
        };
        if count.saturating_mul(element.size() as u64) > MAX_BYTES {
            self.sink.report(
                table.span.clone(),
                format!("the buffer takes {count} elements of {} bytes", element.size()),
                format!("an H200 has {} GiB", MAX_BYTES >> 30),
            );
            return None;
        }
        let out = match table.value("out") {
            Some(value) => self.output(table, value, count)?,
            None => None,
        };
        self.buffers.push(Buffer { name, element, count, init, out, span: table.span.clone() });
        Some(self.buffers.len() - 1)
    }

    fn init(
        &self,
        table: &Table<'a>,
        value: &'a Value<'a>,
        element: Element,
        count: &mut Option<u64>,
    ) -> Option<Init> {
        let expected = "`{ fill = V }`, `{ uniform = [low, high], seed = S }` or another kind of `init`";
        let init = table.table("init", value, "`init`", expected)?;
        const KINDS: [&str; 6] = ["fill", "uniform", "randint", "iota", "values", "npy"];
        let kinds: Vec<_> = init.keys().filter(|(k, _)| KINDS.contains(k)).collect();
        let [(kind, _)] = kinds[..] else {
            init.allow(&[&KINDS[..], &["seed"]].concat());
            let message = format!("`init` has {} kinds of contents", kinds.len());
            self.sink.report(value.span(), message, format!("give one of {}", list(&KINDS)));
            return None;
        };
        let seeded = matches!(kind, "uniform" | "randint");
        init.allow(if seeded { &["uniform", "randint", "seed"] } else { &KINDS });
        let inner = init.value(kind)?;
        let pair = || {
            let expected = "two numbers, `[low, high]`";
            let items = init.array(kind, inner, expected)?;
            let numbers: Vec<Number> = items.iter().filter_map(|i| number(i)).collect();
            match (items.len(), &numbers[..]) {
                (2, &[low, high]) => Some((low, high)),
                _ => {
                    self.sink.report(
                        inner.span(),
                        format!("`{kind}` needs {expected}"),
                        "see docs/launch-files.md",
                    );
                    None
                }
            }
        };
        let seed = match seeded {
            true => {
                let value = init.need("seed", "a number; the same seed gives the same data")?;
                init.integer("seed", value, 0..1 << 64, "a number")? as u64
            }
            false => 0,
        };
        match kind {
            "fill" => self.bits(&init, "fill", element, inner).map(Init::Fill),
            "uniform" => {
                let (low, high) = pair()?;
                Some(Init::Uniform { low: low.as_f64(), high: high.as_f64(), seed })
            }
            "randint" => {
                let (low, high) = pair()?;
                match (low, high) {
                    (Number::Int(low), Number::Int(high))
                        if low < high && i64::try_from(low).is_ok() && high - low < 1 << 64 =>
                    {
                        Some(Init::RandInt { low: low as i64, span: (high - low) as u64, seed })
                    }
                    _ => {
                        self.sink.report(
                            inner.span(),
                            "`randint` needs two integers, the first below the second",
                            "numbers are `low` to `high - 1`",
                        );
                        None
                    }
                }
            }
            "iota" => {
                let (start, step) = pair()?;
                Some(Init::Iota { start, step })
            }
            "values" => {
                let items = init.array("values", inner, "a list of numbers")?;
                let bits: Option<Vec<u64>> =
                    items.iter().map(|i| self.bits(&init, "values", element, i)).collect();
                let bytes: Vec<u8> =
                    bits?.iter().flat_map(|b| b.to_le_bytes().into_iter().take(element.size())).collect();
                self.settle_count(inner.span(), "`values` has", items.len() as u64, count)?;
                Some(Init::Bytes(bytes))
            }
            _ => {
                let (file, span) = init.string("npy", "a path in quotes")?;
                let path = self.dir.join(file);
                let array = std::fs::File::open(&path)
                    .map_err(|e| e.to_string())
                    .and_then(|f| npy::read(std::io::BufReader::new(f), MAX_BYTES));
                match array {
                    Ok(array) if array.element == element || is_bits_of(array.element, element) => {
                        let count_there = (array.bytes.len() / element.size()) as u64;
                        self.settle_count(span, "the file has", count_there, count)?;
                        Some(Init::Bytes(array.bytes))
                    }
                    Ok(array) => {
                        self.sink.report(
                            span,
                            format!("{} holds {}", path.display(), array.element.name()),
                            format!("the buffer is {}: convert the file or change `buffer`", element.name()),
                        );
                        None
                    }
                    Err(why) => {
                        let message = format!("cannot read {}: {why}", path.display());
                        self.sink.report(span, message, "the path is relative to the launch file");
                        None
                    }
                }
            }
        }
    }

    /// Takes the number of elements from the contents, or checks it against `count`.
    fn settle_count(
        &self,
        span: Range<usize>,
        what: &str,
        there: u64,
        count: &mut Option<u64>,
    ) -> Option<()> {
        match *count {
            _ if there == 0 => {
                self.sink.report(span, format!("{what} no elements"), "a buffer holds one at least")
            }
            Some(n) if n != there => self.sink.report(
                span,
                format!("{what} {there} elements, `count` is {n}"),
                "make them equal or leave `count` out",
            ),
            _ => {
                *count = Some(there);
                return Some(());
            }
        }
        None
    }

    /// The outer option is an error, the inner one `out = false`.
    fn output(&self, table: &Table<'a>, value: &'a Value<'a>, count: u64) -> Option<Option<Output>> {
        let expected = "`true`, a file name, or `{ png = ..., width = ..., height = ... }`";
        if let Some(out) = value.get_ref().as_bool() {
            return Some(out.then(Output::default));
        }
        if let Some(file) = value.get_ref().as_str() {
            self.file_name(file, ".npy", value.span())?;
            return Some(Some(Output { npy: Some(file.to_owned()), png: None }));
        }
        let out = table.table("out", value, "`out`", expected)?;
        out.allow(&["npy", "png", "width", "height", "palette", "range"]);
        let mut output = Output::default();
        if out.has("npy") {
            let (file, span) = out.string("npy", "a file name in quotes")?;
            self.file_name(file, ".npy", span)?;
            output.npy = Some(file.to_owned());
        }
        if !out.has("png") {
            for key in ["width", "height", "palette", "range"] {
                if let Some(value) = out.value(key) {
                    self.sink.report(
                        value.span(),
                        format!("`{key}` is for pictures"),
                        "add `png = \"FILE.png\"`",
                    );
                    return None;
                }
            }
            return Some(Some(output));
        }
        let (file, file_span) = out.string("png", "a file name in quotes")?;
        self.file_name(file, ".png", file_span)?;
        let size = |key| {
            let value = out.need(key, "a number of pixels")?;
            out.integer(key, value, 1..65536, "a number of pixels").map(|n| n as u32)
        };
        let (width, height) = (size("width")?, size("height")?);
        if u64::from(width) * u64::from(height) != count {
            self.sink.report(
                value.span(),
                format!("the picture has {width} x {height} pixels, the buffer {count} elements"),
                "one element is one pixel",
            );
            return None;
        }
        let names: Vec<&str> = Palette::ALL.iter().map(|(n, _)| *n).collect();
        let palette = match out.has("palette") {
            false => Palette::Gray,
            true => {
                let (name, span) = out.string("palette", "a palette's name in quotes")?;
                let found = Palette::from_name(name);
                if found.is_none() {
                    let message = format!("there is no palette `{}`", printable(name));
                    self.sink.report(span, message, format!("the palettes are {}", list(&names)));
                }
                found?
            }
        };
        let range = match out.value("range") {
            None => None,
            Some(value) => {
                let items = out.array("range", value, "two numbers, `[low, high]`")?;
                let numbers: Vec<f64> = items.iter().filter_map(|i| number(i)).map(Number::as_f64).collect();
                match numbers[..] {
                    [low, high] if items.len() == 2 && low < high => Some((low, high)),
                    _ => {
                        out.wrong(value, "range", "two numbers, `[low, high]`, the first below the second");
                        return None;
                    }
                }
            }
        };
        output.png = Some((file.to_owned(), Picture { width, height, palette, range }));
        Some(Some(output))
    }

    /// Outputs go to the directory the user chose, never elsewhere.
    fn file_name(&self, name: &str, extension: &str, span: Range<usize>) -> Option<()> {
        let plain = !name.contains(['/', '\\', ':', '\0']) && !name.starts_with('.') && name.len() < 200;
        if plain && name.ends_with(extension) && name.len() > extension.len() {
            return Some(());
        }
        self.sink.report(
            span,
            format!("`{}` is no name for an output", printable(name)),
            format!("write a plain file name that ends in {extension}; `--out DIR` chooses the folder"),
        );
        None
    }
}

/// NumPy has no bfloat16: files hold their bits.
fn is_bits_of(file: Element, buffer: Element) -> bool {
    file == Element::U16 && buffer == Element::Bf16
}
