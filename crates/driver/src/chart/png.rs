//! A canvas as PNG: lines and letters are strokes, drawn by their distance from each pixel.

use super::{Anchor, Canvas, Colour, Shape, font};
use std::io::Write;

/// Pixels of the picture for one of the canvas.
const SCALE: f64 = 2.0;

struct Pixels {
    width: usize,
    height: usize,
    bytes: Vec<u8>,
}

impl Pixels {
    fn blend(&mut self, x: usize, y: usize, colour: Colour, part: f64) {
        let at = (y * self.width + x) * 3;
        for (c, colour) in self.bytes[at..at + 3].iter_mut().zip(colour) {
            *c = (f64::from(*c) + (f64::from(colour) - f64::from(*c)) * part).round() as u8;
        }
    }

    /// The pixels from one coordinate to another that exist.
    fn span(from: f64, to: f64, size: usize) -> std::ops::Range<usize> {
        let end = |v: f64| v.clamp(0.0, size as f64) as usize;
        end(from.floor())..end(to.ceil())
    }

    fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, colour: Colour) {
        let covered =
            |from: f64, to: f64, n: usize| ((n as f64 + 1.0).min(to) - (n as f64).max(from)).clamp(0.0, 1.0);
        for py in Pixels::span(y, y + height, self.height) {
            for px in Pixels::span(x, x + width, self.width) {
                self.blend(px, py, colour, covered(x, x + width, px) * covered(y, y + height, py));
            }
        }
    }

    /// A stroke with round ends. Its parts are drawn together, so that they do not darken where they meet.
    fn stroke(&mut self, points: &[(f64, f64)], width: f64, colour: Colour) {
        let reach = width / 2.0 + 1.0;
        let fold = |f: fn(f64, f64) -> f64, start: f64, of: fn(&(f64, f64)) -> f64| {
            points.iter().map(of).fold(start, f)
        };
        let (low_x, high_x) = (fold(f64::min, f64::MAX, |p| p.0), fold(f64::max, f64::MIN, |p| p.0));
        let (low_y, high_y) = (fold(f64::min, f64::MAX, |p| p.1), fold(f64::max, f64::MIN, |p| p.1));
        for py in Pixels::span(low_y - reach, high_y + reach, self.height) {
            for px in Pixels::span(low_x - reach, high_x + reach, self.width) {
                let at = (px as f64 + 0.5, py as f64 + 0.5);
                let near = points
                    .windows(2)
                    .filter(|w| at.0 >= w[0].0.min(w[1].0) - reach && at.0 <= w[0].0.max(w[1].0) + reach)
                    .map(|w| distance(at, w[0], w[1]))
                    .fold(f64::MAX, f64::min);
                let part = (width / 2.0 + 0.5 - near).clamp(0.0, 1.0);
                if part > 0.0 {
                    self.blend(px, py, colour, part);
                }
            }
        }
    }

    fn text(&mut self, (x, y): (f64, f64), size: f64, anchor: Anchor, colour: Colour, text: &str) {
        let unit = size / 9.0;
        let width = font::width(text) * unit;
        let mut left = match anchor {
            Anchor::Left => x,
            Anchor::Middle => x - width / 2.0,
            Anchor::Right => x - width,
        };
        for c in text.chars() {
            for line in font::strokes(c) {
                let points: Vec<(f64, f64)> =
                    line.iter().map(|&(px, py)| (left + px * unit, y + (py - font::BASE) * unit)).collect();
                self.stroke(&points, (unit * 0.9).max(1.2), colour);
            }
            left += font::ADVANCE * unit;
        }
    }
}

/// From a point to a line between two others.
fn distance(p: (f64, f64), a: (f64, f64), b: (f64, f64)) -> f64 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = dx * dx + dy * dy;
    let t = if length > 0.0 { (((p.0 - a.0) * dx + (p.1 - a.1) * dy) / length).clamp(0.0, 1.0) } else { 0.0 };
    (p.0 - a.0 - t * dx).hypot(p.1 - a.1 - t * dy)
}

pub fn write(c: &Canvas, to: impl Write) -> Result<(), String> {
    use image::ImageEncoder;
    let (width, height) = ((c.width * SCALE) as usize, (c.height * SCALE) as usize);
    let mut p = Pixels { width, height, bytes: vec![255; width * height * 3] };
    for shape in &c.shapes {
        match shape {
            Shape::Rect { x, y, width, height, colour } => {
                p.rect(x * SCALE, y * SCALE, width * SCALE, height * SCALE, *colour);
            }
            Shape::Line { points, width, colour } => {
                let points: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x * SCALE, y * SCALE)).collect();
                p.stroke(&points, width * SCALE, *colour);
            }
            Shape::Text { x, y, size, anchor, colour, text } => {
                p.text((x * SCALE, y * SCALE), size * SCALE, *anchor, *colour, text);
            }
        }
    }
    image::codecs::png::PngEncoder::new(to)
        .write_image(&p.bytes, width as u32, height as u32, image::ExtendedColorType::Rgb8)
        .map_err(|e| e.to_string())
}
