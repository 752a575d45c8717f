//! Charts: shapes on a canvas, written as SVG or as PNG.

mod font;
mod panel;
mod png;
mod svg;

pub use panel::{Bars, Lines, Stacks};

use std::io::Write;

/// Red, green, blue.
pub type Colour = [u8; 3];

pub const BLACK: Colour = [30, 30, 30];
pub const GREY: Colour = [120, 120, 120];
pub const PALE: Colour = [225, 225, 225];

/// Colours that can be told apart, by most people with any colour vision.
pub const SERIES: [Colour; 10] = [
    [0, 114, 178],
    [230, 159, 0],
    [0, 158, 115],
    [204, 121, 167],
    [86, 180, 233],
    [213, 94, 0],
    [120, 100, 60],
    [100, 60, 160],
    [160, 160, 40],
    [90, 90, 90],
];

/// The colour of a series.
pub fn series(n: usize) -> Colour {
    SERIES[n % SERIES.len()]
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor {
    Left,
    Middle,
    Right,
}

/// What is drawn, later ones above earlier ones. Lengths are in pixels of the SVG.
#[derive(Clone, PartialEq, Debug)]
pub enum Shape {
    Rect {
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        colour: Colour,
    },
    Line {
        points: Vec<(f64, f64)>,
        width: f64,
        colour: Colour,
    },
    /// The point is on the base line.
    Text {
        x: f64,
        y: f64,
        size: f64,
        anchor: Anchor,
        colour: Colour,
        text: String,
    },
}

/// A drawing.
#[derive(Clone, PartialEq, Debug)]
pub struct Canvas {
    pub width: f64,
    pub height: f64,
    pub shapes: Vec<Shape>,
}

impl Canvas {
    pub fn new(width: f64, height: f64) -> Canvas {
        Canvas { width, height, shapes: Vec::new() }
    }

    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, colour: Colour) {
        self.shapes.push(Shape::Rect { x, y, width, height, colour });
    }

    pub fn line(&mut self, points: Vec<(f64, f64)>, width: f64, colour: Colour) {
        self.shapes.push(Shape::Line { points, width, colour });
    }

    pub fn text(&mut self, (x, y): (f64, f64), size: f64, anchor: Anchor, colour: Colour, text: &str) {
        self.shapes.push(Shape::Text { x, y, size, anchor, colour, text: text.to_owned() });
    }

    pub fn svg(&self) -> String {
        svg::write(self)
    }

    pub fn png(&self, to: impl Write) -> Result<(), String> {
        png::write(self, to)
    }
}

/// A number for an axis or a bar: few digits, thousands as k, M.
pub fn short(v: f64) -> String {
    let digits = |v: f64, unit: &str| match v {
        _ if v.fract().abs() < 1e-9 || v >= 100.0 => format!("{v:.0}{unit}"),
        _ if v >= 10.0 => format!("{v:.1}{unit}"),
        _ => format!("{v:.2}{unit}"),
    };
    match v {
        _ if v >= 1e6 => digits(v / 1e6, "M"),
        _ if v >= 1e4 => digits(v / 1e3, "k"),
        _ => digits(v, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canvas() -> Canvas {
        let mut c = Canvas::new(40.0, 20.0);
        c.rect(0.0, 0.0, 10.0, 20.0, [255, 0, 0]);
        c.line(vec![(20.0, 10.0), (40.0, 10.0)], 4.0, [0, 0, 255]);
        c.text((12.0, 8.0), 10.0, Anchor::Left, BLACK, "a<b");
        c
    }

    #[test]
    fn svg_has_every_shape() {
        let svg = canvas().svg();
        assert!(svg.starts_with("<svg "));
        assert!(svg.contains("fill=\"#ff0000\"") && svg.contains("a&lt;b") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn png_has_the_pixels() {
        let mut bytes = Vec::new();
        canvas().png(&mut bytes).expect("written");
        let picture = image::load_from_memory(&bytes).expect("a PNG").to_rgb8();
        assert_eq!(picture.dimensions(), (80, 40));
        assert_eq!(picture.get_pixel(10, 20).0, [255, 0, 0]);
        assert_eq!(picture.get_pixel(70, 20).0, [0, 0, 255]);
        assert_eq!(picture.get_pixel(70, 5).0, [255, 255, 255]);
        let ink = (24..60).any(|x| (0..16).any(|y| picture.get_pixel(x, y).0[0] < 100));
        assert!(ink, "the text");
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 3.0, 3.25, 42.123, 1234.5, 12_345.0, 2_500_000.0].map(short);
        assert_eq!(shown, ["0", "3", "3.25", "42.1", "1234", "12.3k", "2.50M"]);
    }
}
