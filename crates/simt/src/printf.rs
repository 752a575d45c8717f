//! The text of a device `printf`, by the rules of C.

/// Where arguments come from.
pub trait Source {
    /// The next argument of `size` bytes (4 or 8), aligned to its size.
    fn next(&mut self, size: u64) -> u64;
    fn string(&mut self, address: u64) -> Option<Vec<u8>>;
}

#[derive(Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    /// Bytes of an integer.
    size: u32,
}

/// No field is wider than this: a program must not make us allocate without bound.
const WIDTH_MAX: usize = 4096;

/// Writes the formatted text; the number of arguments that were used.
pub fn format(format: &[u8], source: &mut dyn Source, out: &mut Vec<u8>) -> u32 {
    let mut used = 0;
    let mut at = 0;
    while at < format.len() {
        let c = format[at];
        at += 1;
        if c != b'%' {
            out.push(c);
            continue;
        }
        let start = at;
        let mut spec = Spec { size: 4, ..Spec::default() };
        while let Some(&c) = format.get(at) {
            match c {
                b'-' => spec.left = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'#' => spec.alternate = true,
                b'0' => spec.zero = true,
                _ => break,
            }
            at += 1;
        }
        let mut number = |at: &mut usize, source: &mut dyn Source| -> i64 {
            if format.get(*at) == Some(&b'*') {
                *at += 1;
                used += 1;
                return i64::from(source.next(4) as i32);
            }
            let mut n = 0i64;
            while let Some(d) = format.get(*at).filter(|c| c.is_ascii_digit()) {
                n = (n * 10 + i64::from(d - b'0')).min(1 << 30);
                *at += 1;
            }
            n
        };
        let width = number(&mut at, source);
        spec.left |= width < 0;
        spec.width = (width.unsigned_abs() as usize).min(WIDTH_MAX);
        if format.get(at) == Some(&b'.') {
            at += 1;
            spec.precision = usize::try_from(number(&mut at, source)).ok().map(|p| p.min(WIDTH_MAX));
        }
        while let Some(&c) = format.get(at) {
            match c {
                b'l' | b'j' | b'z' | b't' | b'q' => spec.size = 8,
                b'h' => spec.size = if spec.size == 2 { 1 } else { 2 },
                b'L' => {}
                _ => break,
            }
            at += 1;
        }
        let Some(&kind) = format.get(at) else {
            out.extend_from_slice(&format[start - 1..]);
            break;
        };
        at += 1;
        if kind == b'%' {
            out.push(b'%');
            continue;
        }
        if !b"diuoxXcspfFeEgGaA".contains(&kind) {
            out.extend_from_slice(&format[start - 1..at]);
            continue;
        }
        used += 1;
        convert(&spec, kind, source, out);
    }
    used
}

fn convert(spec: &Spec, kind: u8, source: &mut dyn Source, out: &mut Vec<u8>) {
    match kind {
        b'd' | b'i' => {
            let raw = source.next(if spec.size == 8 { 8 } else { 4 });
            let value = match spec.size {
                8 => raw as i64,
                2 => i64::from(raw as i16),
                1 => i64::from(raw as i8),
                _ => i64::from(raw as i32),
            };
            integer(spec, value < 0, value.unsigned_abs().to_string(), "", true, out);
        }
        b'u' | b'o' | b'x' | b'X' => {
            let raw = source.next(if spec.size == 8 { 8 } else { 4 });
            let value = match spec.size {
                8 => raw,
                2 => raw & 0xffff,
                1 => raw & 0xff,
                _ => raw & 0xffff_ffff,
            };
            let (digits, prefix) = match kind {
                b'u' => (value.to_string(), ""),
                b'o' => (format!("{value:o}"), if spec.alternate && value != 0 { "0" } else { "" }),
                b'x' => (format!("{value:x}"), if spec.alternate && value != 0 { "0x" } else { "" }),
                _ => (format!("{value:X}"), if spec.alternate && value != 0 { "0X" } else { "" }),
            };
            integer(spec, false, digits, prefix, false, out);
        }
        b'c' => pad(spec, &[source.next(4) as u8], out),
        b's' => {
            let address = source.next(8);
            let text = if address == 0 { Some(b"(null)".to_vec()) } else { source.string(address) };
            let mut text = text.unwrap_or_default();
            text.truncate(spec.precision.unwrap_or(usize::MAX));
            pad(spec, &text, out);
        }
        b'p' => {
            let value = source.next(8);
            pad(spec, if value == 0 { "(nil)".into() } else { format!("{value:#x}") }.as_bytes(), out);
        }
        _ => float(spec, kind, f64::from_bits(source.next(8)), out),
    }
}

fn pad(spec: &Spec, text: &[u8], out: &mut Vec<u8>) {
    let fill = spec.width.saturating_sub(text.len());
    if !spec.left {
        out.resize(out.len() + fill, b' ');
    }
    out.extend_from_slice(text);
    if spec.left {
        out.resize(out.len() + fill, b' ');
    }
}

/// Sign, prefix and digits in a field, zeros between when asked for.
fn field(spec: &Spec, sign: &str, digits: &str, zeros: bool, out: &mut Vec<u8>) {
    let len = sign.len() + digits.len();
    let fill = if zeros && !spec.left { spec.width.saturating_sub(len) } else { 0 };
    pad(spec, format!("{sign}{}{digits}", "0".repeat(fill)).as_bytes(), out);
}

fn sign_of(spec: &Spec, negative: bool) -> &'static str {
    match () {
        () if negative => "-",
        () if spec.plus => "+",
        () if spec.space => " ",
        () => "",
    }
}

fn integer(spec: &Spec, negative: bool, digits: String, prefix: &str, signed: bool, out: &mut Vec<u8>) {
    let mut digits = if spec.precision == Some(0) && digits == "0" { String::new() } else { digits };
    if let Some(p) = spec.precision {
        digits.insert_str(0, &"0".repeat(p.saturating_sub(digits.len())));
    }
    let sign = if signed { sign_of(spec, negative) } else { "" };
    field(spec, &format!("{sign}{prefix}"), &digits, spec.zero && spec.precision.is_none(), out);
}

/// `d.ddde±dd` of a finite number.
fn exponential(x: f64, precision: usize, alternate: bool) -> String {
    let text = format!("{x:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let point = if alternate && precision == 0 { "." } else { "" };
    format!("{mantissa}{point}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs())
}

fn general(x: f64, precision: usize, alternate: bool) -> String {
    let precision = precision.max(1);
    let text = format!("{x:.*e}", precision - 1);
    let exponent: i32 = text.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let trim = |s: &str| {
        if alternate || !s.contains('.') {
            s.to_string()
        } else {
            s.trim_end_matches('0').trim_end_matches('.').to_string()
        }
    };
    if exponent < -4 || exponent >= precision as i32 {
        let text = exponential(x, precision - 1, alternate);
        let (mantissa, e) = text.split_once('e').unwrap_or((&text, "+00"));
        return format!("{}e{e}", trim(mantissa));
    }
    trim(&format!("{x:.*}", (precision as i32 - 1 - exponent) as usize))
}

/// `0xh.hhhp±d`.
fn hexadecimal(x: f64, precision: Option<usize>, alternate: bool) -> String {
    let bits = x.to_bits();
    let (mut fraction, field) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32);
    let mut lead = u64::from(field != 0);
    let exponent = match (field, fraction) {
        (0, 0) => 0,
        (0, _) => -1022,
        _ => field - 1023,
    };
    let mut digits = 13;
    if let Some(p) = precision.filter(|&p| p < 13) {
        let drop = 52 - 4 * p as u32;
        let all = lead << 52 | fraction;
        let (kept, rest, half) = (all >> drop, all & ((1 << drop) - 1), 1u64 << (drop - 1));
        let kept = kept + u64::from(rest > half || (rest == half && kept & 1 == 1));
        (lead, fraction, digits) = (kept >> (4 * p), kept & ((1 << (4 * p)) - 1), p);
    }
    let mut hex = if digits == 0 { String::new() } else { format!("{fraction:0digits$x}") };
    match precision {
        None => hex.truncate(hex.trim_end_matches('0').len()),
        Some(p) => hex.push_str(&"0".repeat(p.saturating_sub(hex.len()))),
    }
    let point = if hex.is_empty() && !alternate { "" } else { "." };
    format!("0x{lead}{point}{hex}p{exponent:+}")
}

fn float(spec: &Spec, kind: u8, x: f64, out: &mut Vec<u8>) {
    let upper = kind.is_ascii_uppercase();
    let magnitude = x.abs();
    let precision = spec.precision.unwrap_or(6);
    let text = if x.is_nan() {
        "nan".to_string()
    } else if x.is_infinite() {
        "inf".to_string()
    } else {
        match kind.to_ascii_lowercase() {
            b'f' => {
                format!("{magnitude:.precision$}{}", if spec.alternate && precision == 0 { "." } else { "" })
            }
            b'e' => exponential(magnitude, precision, spec.alternate),
            b'g' => general(magnitude, precision, spec.alternate),
            _ => hexadecimal(magnitude, spec.precision, spec.alternate),
        }
    };
    let text = if upper { text.to_ascii_uppercase() } else { text };
    let mut sign = sign_of(spec, x.is_sign_negative()).to_string();
    let mut digits = text.as_str();
    if kind.eq_ignore_ascii_case(&b'a') && x.is_finite() {
        // Zeros go behind the prefix.
        sign.push_str(&text[..2]);
        digits = &text[2..];
    }
    field(spec, &sign, digits, spec.zero && x.is_finite(), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Words(Vec<u64>);

    impl Source for Words {
        fn next(&mut self, _size: u64) -> u64 {
            self.0.remove(0)
        }

        fn string(&mut self, address: u64) -> Option<Vec<u8>> {
            (address == 7).then(|| b"text".to_vec())
        }
    }

    fn check(text: &str, arguments: &[u64], expected: &str) {
        let mut out = Vec::new();
        let used = format(text.as_bytes(), &mut Words(arguments.to_vec()), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), expected, "{text}");
        assert_eq!(used as usize, arguments.len(), "{text}");
    }

    #[test]
    fn integers() {
        check(
            "%d|%5d|%-5d|%05d|%+d|% d",
            &[u64::from(-3i32 as u32), 42, 42, 42, 42, 42],
            "-3|   42|42   |00042|+42| 42",
        );
        check(
            "%u %x %X %#x %o %#o",
            &[u64::from(u32::MAX), 255, 255, 255, 8, 8],
            "4294967295 ff FF 0xff 10 010",
        );
        check(
            "%lld %hd %hhu %.5d %8.3d|",
            &[-1i64 as u64, 0x1_8000, 0x1ff, 42, 7],
            "-1 -32768 255 00042      007|",
        );
        check("%*d|%-*d|", &[4, 1, 4, 1], "   1|1   |");
    }

    #[test]
    fn texts() {
        check("%s|%6s|%-6s|%.2s|%c%%", &[7, 7, 7, 7, 65], "text|  text|text  |te|A%");
        check("%p %s", &[0x1234, 0], "0x1234 (null)");
        check("100%", &[], "100%");
    }

    #[test]
    fn floats() {
        let f = |x: f64| x.to_bits();
        check(
            "%f %.2f %8.3f|%e",
            &[f(1.5), f(2.675), f(-1.0), f(12345.678)],
            "1.500000 2.67   -1.000|1.234568e+04",
        );
        check(
            "%g %g %g %g %g",
            &[f(0.0001), f(0.00001), f(100000.0), f(1e6), f(0.0)],
            "0.0001 1e-05 100000 1e+06 0",
        );
        check("%a %a %.1a", &[f(1.0), f(-0.1), f(1.97)], "0x1p+0 -0x1.999999999999ap-4 0x2.0p+0");
        check("%f %F %08.2f", &[f(f64::NAN), f(f64::INFINITY), f(-2.71)], "nan INF -0002.71");
    }
}
