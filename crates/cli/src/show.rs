//! Results as text and as JSON.

use driver::digest::Digest;
use driver::element::Element;
use serde_json::{Value, json};
pub use trace::metric::thousands;

/// A buffer's summary in two lines.
pub fn summary(name: &str, element: Element, digest: &Digest) -> String {
    let first: Vec<String> = digest.first.iter().map(|&bits| element.show(bits)).collect();
    let more = if digest.count > digest.first.len() as u64 { " ..." } else { "" };
    let nans = if digest.nans > 0 { format!("  NaN {}", thousands(digest.nans)) } else { String::new() };
    format!(
        "{name}: {} {}  min {}  max {}  sum {}{nans}  sha256 {}\n  {}{more}\n",
        thousands(digest.count),
        element.name(),
        number(element, digest.min),
        number(element, digest.max),
        number(element, digest.sum),
        &digest.sha256[..digest.sha256.len().min(16)],
        first.join(" "),
    )
}

fn number(element: Element, value: f64) -> String {
    if !element.is_float() && value.abs() < 9e15 {
        return format!("{value:.0}");
    }
    match value.abs() {
        a if a == 0.0 || (1e-3..1e7).contains(&a) => format!("{value:.6}"),
        _ => format!("{value:.6e}"),
    }
}

/// The same with every digit.
pub fn json(name: &str, element: Element, digest: &Digest) -> Value {
    let first: Vec<f64> = digest.first.iter().map(|&bits| element.to_f64(bits)).collect();
    json!({
        "name": name, "type": element.name(), "count": digest.count, "sha256": digest.sha256, "sum": digest.sum,
        "sum_abs": digest.sum_abs, "weighted": digest.weighted, "min": digest.min, "max": digest.max,
        "nans": digest.nans, "first": first,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::digest::Digester;

    #[test]
    fn summaries_are_short() {
        let mut digester = Digester::new(Element::I32);
        digester.update(&(1..=10i32).flat_map(i32::to_le_bytes).collect::<Vec<u8>>());
        let text = summary("out", Element::I32, &digester.finish());
        assert!(text.starts_with("out: 10 i32  min 1  max 10  sum 55  sha256 "));
        assert!(text.ends_with("\n  1 2 3 4 5 6 7 8 ...\n"));
    }
}
