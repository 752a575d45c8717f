//! A flame graph: kernel, source lines with what is inlined into them, reasons. One SVG picture that browsers open.

use crate::metric::thousands;
use crate::profile::{Profile, ranked};
use crate::stall::{STALLS, Stall, StallCycles};
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: f64 = 1200.0;
const ROW: f64 = 18.0;
const TOP: f64 = 34.0;
/// Narrower boxes are left out: nobody can see them.
const LEAST: f64 = 0.4;
/// Width of a letter.
const LETTER: f64 = 6.6;

#[derive(Default)]
struct Node {
    cycles: u64,
    children: BTreeMap<(u32, u32), Node>,
    own: StallCycles,
}

/// A box: its row from the bottom, place, width, name, explanation, reason.
struct Box {
    depth: usize,
    x: f64,
    width: f64,
    name: String,
    hint: String,
    reason: Option<Stall>,
}

pub fn svg(p: &Profile) -> String {
    let mut root = Node { cycles: 0, children: BTreeMap::new(), own: [0; STALLS] };
    for i in p.code.iter().filter(|i| i.cycles() > 0) {
        let mut node = &mut root;
        node.cycles += i.cycles();
        for f in i.frames.iter().rev() {
            node = node.children.entry((f.file, f.line)).or_default();
            node.cycles += i.cycles();
        }
        node.own.iter_mut().zip(&i.stalls).for_each(|(sum, n)| *sum += n);
    }
    let mut boxes = Vec::new();
    let scale = WIDTH / root.cycles.max(1) as f64;
    collect(p, &root, &p.kernel, 0, 0.0, scale, &mut boxes);
    let depth = boxes.iter().map(|b| b.depth).max().unwrap_or(0) + 1;
    let height = TOP + depth as f64 * ROW + 8.0;
    let mut out = String::new();
    let title = format!("{} on {}: {} warp-cycles", p.kernel, p.machine.name, thousands(root.cycles));
    let _ = write!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" font-family=\"ui-monospace, monospace\" font-size=\"11\" role=\"img\">\n\
         <title>{0}</title>\n<style>rect {{ stroke: #fff; stroke-width: .5 }} g.b:hover rect {{ stroke: #000; stroke-width: 1 }} \
         g.b {{ cursor: pointer }} text {{ fill: #111; pointer-events: none }}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fafafa\" style=\"stroke:none\"/>\n<text x=\"6\" y=\"20\" font-size=\"14\">{0}</text>\n",
        escape(&title)
    );
    for b in boxes.iter().filter(|b| b.width >= LEAST) {
        let y = height - 8.0 - (b.depth + 1) as f64 * ROW;
        let letters = ((b.width - 6.0) / LETTER).max(0.0) as usize;
        let name = if letters >= 3 { short(&b.name, letters) } else { String::new() };
        let _ = writeln!(
            out,
            "<g class=\"b\"><title>{}</title><rect x=\"{:.2}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{:.1}\" fill=\"{}\"/><text \
             x=\"{:.2}\" y=\"{:.1}\" data-name=\"{}\">{}</text></g>",
            escape(&b.hint),
            b.x,
            b.width,
            ROW - 1.0,
            b.reason.map_or_else(|| warm(&b.name), |r| colour(r).to_owned()),
            b.x + 3.0,
            y + 13.0,
            escape(&b.name),
            escape(&name),
        );
    }
    // A click widens a box to the whole picture; a click on the lowest shows all again.
    let _ = write!(
        out,
        "<script><![CDATA[\nconst boxes=[...document.querySelectorAll('g.b')].map(g=>{{const r=g.querySelector('rect');return{{g,r,\
         t:g.querySelector('text'),x:+r.getAttribute('x'),w:+r.getAttribute('width')}}}});\nfor(const b of boxes)b.g.addEventListener(\
         'click',()=>{{const k={WIDTH}/b.w;for(const c of boxes){{const x=(c.x-b.x)*k,w=c.w*k,l=Math.max(0,x),e=Math.min({WIDTH},x+w);\
         c.g.style.display=e-l<.4?'none':'';c.r.setAttribute('x',l);c.r.setAttribute('width',Math.max(0,e-l));c.t.setAttribute('x',l+3);\
         const n=Math.floor((e-l-6)/{LETTER}),s=c.t.dataset.name;c.t.textContent=n<3?'':s.length<=n?s:s.slice(0,n-1)+'\u{2026}'}}}});\n\
         ]]></script>\n</svg>\n"
    );
    out
}

fn collect(p: &Profile, node: &Node, name: &str, depth: usize, x: f64, scale: f64, boxes: &mut Vec<Box>) {
    let width = node.cycles as f64 * scale;
    let share = 100.0 * width / WIDTH;
    let hint = format!("{name}: {} warp-cycles, {share:.1} %", thousands(node.cycles));
    boxes.push(Box { depth, x, width, name: name.to_owned(), hint, reason: None });
    let mut at = x;
    for (&(file, line), child) in &node.children {
        let text = p.files.get(file as usize).and_then(|f| f.line(line)).unwrap_or("").trim();
        let name = format!("{}:{line} {text}", p.file_name(file));
        collect(p, child, name.trim_end(), depth + 1, at, scale, boxes);
        at += child.cycles as f64 * scale;
    }
    for (reason, cycles) in ranked(&node.own) {
        let width = cycles as f64 * scale;
        let hint = format!(
            "{}: {} warp-cycles, {:.1} %. {}",
            reason.name(),
            thousands(cycles),
            100.0 * width / WIDTH,
            reason.meaning()
        );
        boxes.push(Box {
            depth: depth + 1,
            x: at,
            width,
            name: reason.name().to_owned(),
            hint,
            reason: Some(reason),
        });
        at += width;
    }
}

fn short(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters - 1).chain(['\u{2026}']).collect()
}

pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            // Control characters are not allowed in XML.
            c if (c as u32) < 0x20 || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A warm colour that depends on the name only.
fn warm(name: &str) -> String {
    let hash = name.bytes().fold(0x811c_9dc5u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    format!("hsl({} 75% {}%)", 20 + hash % 35, 66 + hash / 64 % 14)
}

/// The colour of a reason, the same in all pictures.
pub fn colour(reason: Stall) -> &'static str {
    match reason {
        Stall::Selected => "#2fa36b",
        Stall::NotSelected => "#9ccfb4",
        Stall::Wait => "#7aa6f0",
        Stall::LongScoreboard => "#e2574c",
        Stall::ShortScoreboard => "#f0a13c",
        Stall::Barrier => "#9a6fd6",
        Stall::BranchResolving => "#4fb6c9",
        Stall::MathPipeThrottle => "#5d7fd6",
        Stall::LgThrottle => "#b93a63",
        Stall::MioThrottle => "#d98324",
        Stall::TexThrottle => "#8d8f2a",
        Stall::DispatchStall => "#6aa0b8",
        Stall::NoInstruction => "#a58a6f",
        Stall::ImcMiss => "#d6b94a",
        Stall::Membar => "#c56bb5",
        Stall::Sleeping => "#b7bcc6",
        Stall::Drain => "#8f7f9e",
        Stall::Misc => "#a0a0a0",
        Stall::Gmma => "#3f9f8f",
        Stall::Grant => "#77a34f",
        Stall::Window => "#5f6f8f",
        Stall::Hazard => "#c78f8f",
    }
}
