//! Panels of a chart: bars, stacked bars, lines.

use super::{Anchor, BLACK, Canvas, Colour, GREY, PALE, series, short};

/// Pixels that a row of bars takes.
const ROW: f64 = 20.0;
/// Where bars begin, from the panel's left: room for names.
const NAMES: f64 = 110.0;
/// Room for numbers to the right of bars.
const NUMBERS: f64 = 50.0;
/// The title's height.
const TITLE: f64 = 26.0;
const SMALL: f64 = 11.0;

/// One bar a name.
#[derive(Clone, Copy, Debug)]
pub struct Bars<'a> {
    pub title: &'a str,
    pub rows: &'a [(String, f64)],
    /// Added to the numbers.
    pub unit: &'a str,
}

fn title(c: &mut Canvas, x: f64, y: f64, text: &str) {
    c.text((x, y + 14.0), 13.0, Anchor::Left, BLACK, text);
}

impl Bars<'_> {
    pub fn height(&self) -> f64 {
        TITLE + ROW * self.rows.len() as f64 + 8.0
    }

    /// Draws the panel with its upper left corner at a place; each row has the colour of its series.
    pub fn draw(&self, c: &mut Canvas, x: f64, y: f64, width: f64) {
        title(c, x, y, self.title);
        let most = self.rows.iter().map(|r| r.1).fold(0.0, f64::max).max(1e-12);
        let room = width - NAMES - NUMBERS;
        for (n, (name, value)) in self.rows.iter().enumerate() {
            let top = y + TITLE + ROW * n as f64;
            let length = room * (value / most).clamp(0.0, 1.0);
            c.text((x + NAMES - 8.0, top + 13.0), SMALL, Anchor::Right, BLACK, name);
            c.rect(x + NAMES, top + 2.0, length, ROW - 5.0, series(n));
            let number = format!("{}{}", short(*value), self.unit);
            c.text((x + NAMES + length + 5.0, top + 13.0), SMALL, Anchor::Left, GREY, &number);
        }
    }
}

/// A bar a name, made of parts.
#[derive(Clone, Copy, Debug)]
pub struct Stacks<'a> {
    pub title: &'a str,
    pub parts: &'a [String],
    /// Names, and a number a part.
    pub rows: &'a [(String, Vec<f64>)],
}

impl Stacks<'_> {
    fn legend_rows(&self) -> f64 {
        (self.parts.len() as f64 / 4.0).ceil()
    }

    pub fn height(&self) -> f64 {
        TITLE + ROW * self.rows.len() as f64 + 18.0 * self.legend_rows() + 12.0
    }

    pub fn draw(&self, c: &mut Canvas, x: f64, y: f64, width: f64) {
        title(c, x, y, self.title);
        let total = |r: &(String, Vec<f64>)| r.1.iter().sum::<f64>();
        let most = self.rows.iter().map(total).fold(0.0, f64::max).max(1e-12);
        let room = width - NAMES - NUMBERS;
        for (n, row) in self.rows.iter().enumerate() {
            let top = y + TITLE + ROW * n as f64;
            c.text((x + NAMES - 8.0, top + 13.0), SMALL, Anchor::Right, BLACK, &row.0);
            let mut left = x + NAMES;
            for (k, v) in row.1.iter().enumerate() {
                let length = room * v / most;
                c.rect(left, top + 2.0, length, ROW - 5.0, series(k));
                left += length;
            }
            c.text((left + 5.0, top + 13.0), SMALL, Anchor::Left, GREY, &short(total(row)));
        }
        let below = y + TITLE + ROW * self.rows.len() as f64 + 6.0;
        let step = (width - NAMES) / 4.0;
        for (k, part) in self.parts.iter().enumerate() {
            let at = (x + NAMES + step * (k % 4) as f64, below + 18.0 * (k / 4) as f64);
            c.rect(at.0, at.1, 10.0, 10.0, series(k));
            c.text((at.0 + 14.0, at.1 + 9.0), SMALL, Anchor::Left, BLACK, part);
        }
    }
}

/// A line a name.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    pub title: &'a str,
    pub x_axis: &'a str,
    pub rows: &'a [(String, Vec<(f64, f64)>)],
}

/// A round number not below another, for the end of an axis.
fn round_up(v: f64) -> f64 {
    if v <= 0.0 {
        return 1.0;
    }
    let unit = 10f64.powf(v.log10().floor());
    [1.0, 2.0, 4.0, 5.0, 8.0, 10.0].into_iter().map(|n| n * unit).find(|&n| n >= v).unwrap_or(10.0 * unit)
}

impl Lines<'_> {
    /// Draws the panel; `height` is all that it takes.
    pub fn draw(&self, c: &mut Canvas, (x, y): (f64, f64), (width, height): (f64, f64)) {
        title(c, x, y, self.title);
        let all = || self.rows.iter().flat_map(|r| &r.1);
        let high = round_up(all().map(|p| p.1).fold(0.0, f64::max));
        let end = round_up(all().map(|p| p.0).fold(0.0, f64::max));
        let (left, right) = (x + 40.0, x + width - NAMES - 20.0);
        let (top, bottom) = (y + TITLE + 4.0, y + height - 34.0);
        let place =
            |p: &(f64, f64)| (left + (right - left) * p.0 / end, bottom - (bottom - top) * p.1 / high);
        for k in 0..=4 {
            let part = f64::from(k) / 4.0;
            let at = bottom - (bottom - top) * part;
            c.line(vec![(left, at), (right, at)], 1.0, PALE);
            c.text((left - 6.0, at + 4.0), SMALL, Anchor::Right, GREY, &short(high * part));
            let at = left + (right - left) * part;
            c.text((at, bottom + 14.0), SMALL, Anchor::Middle, GREY, &short(end * part));
        }
        c.text(((left + right) / 2.0, bottom + 29.0), SMALL, Anchor::Middle, GREY, self.x_axis);
        for (n, (name, points)) in self.rows.iter().enumerate() {
            let colour: Colour = series(n);
            c.line(points.iter().map(place).collect(), 1.6, colour);
            let at = top + 16.0 * n as f64;
            c.rect(right + 14.0, at, 10.0, 10.0, colour);
            c.text((right + 28.0, at + 9.0), SMALL, Anchor::Left, BLACK, name);
        }
    }
}
