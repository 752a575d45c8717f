//! Buffers as pictures: a palette maps numbers to colours, and the picture is written as a PNG.

use crate::element::Element;
use serde::{Deserialize, Serialize};
use std::io::Write;

/// How numbers become colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Palette {
    /// Black to white.
    Gray,
    /// Black over red and yellow to white.
    Fire,
    /// Deep blue over white and amber to black, for counts of iterations.
    Escape,
    /// Elements are packed bytes: red lowest, then green and blue.
    Rgb,
}

impl Palette {
    pub const ALL: [(&'static str, Palette); 4] = [
        ("gray", Palette::Gray),
        ("fire", Palette::Fire),
        ("escape", Palette::Escape),
        ("rgb", Palette::Rgb),
    ];

    pub fn from_name(name: &str) -> Option<Palette> {
        Palette::ALL.into_iter().find(|(n, _)| *n == name).map(|(_, p)| p)
    }

    /// Colour stops: place in [0, 1], red, green, blue.
    fn stops(self) -> &'static [(f64, [f64; 3])] {
        match self {
            Palette::Gray | Palette::Rgb => &[(0.0, [0.0; 3]), (1.0, [255.0; 3])],
            Palette::Fire => &[
                (0.0, [0.0, 0.0, 0.0]),
                (0.35, [170.0, 20.0, 10.0]),
                (0.7, [250.0, 180.0, 30.0]),
                (1.0, [255.0, 255.0, 240.0]),
            ],
            Palette::Escape => &[
                (0.0, [4.0, 8.0, 60.0]),
                (0.18, [24.0, 80.0, 180.0]),
                (0.42, [235.0, 250.0, 255.0]),
                (0.66, [255.0, 170.0, 20.0]),
                (0.9, [90.0, 20.0, 10.0]),
                (1.0, [0.0, 0.0, 0.0]),
            ],
        }
    }

    /// The colour of a place in [0, 1].
    fn colour(self, at: f64) -> [u8; 3] {
        let at = if at.is_nan() { 0.0 } else { at.clamp(0.0, 1.0) };
        let stops = self.stops();
        let next = stops.iter().position(|s| at <= s.0).unwrap_or(stops.len() - 1).max(1);
        let ((x0, from), (x1, to)) = (stops[next - 1], stops[next]);
        let part = (at - x0) / (x1 - x0);
        std::array::from_fn(|c| (from[c] + (to[c] - from[c]) * part).round() as u8)
    }
}

/// What a buffer is drawn as.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub palette: Palette,
    /// The numbers that get the first and the last colour; where left out, the smallest and the largest.
    pub range: Option<(f64, f64)>,
}

impl Picture {
    /// The pixels, three bytes each.
    pub fn draw(&self, element: Element, bytes: &[u8]) -> Vec<u8> {
        let values = || bytes.chunks_exact(element.size()).map(|b| element.read(b));
        let pixels = (self.width as usize).saturating_mul(self.height as usize);
        if self.palette == Palette::Rgb {
            return values().take(pixels).flat_map(|v| [v as u8, (v >> 8) as u8, (v >> 16) as u8]).collect();
        }
        let (low, high) = self.range.unwrap_or_else(|| {
            values()
                .map(|v| element.to_f64(v))
                .filter(|v| v.is_finite())
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
        });
        let span = if high > low { high - low } else { 1.0 };
        values()
            .take(pixels)
            .flat_map(|v| {
                let at = (element.to_f64(v) - low) / span;
                // Few iterations are far more common than many: a root spreads them over the colours.
                self.palette.colour(if self.palette == Palette::Escape { at.max(0.0).sqrt() } else { at })
            })
            .collect()
    }

    /// Writes the picture as a PNG.
    pub fn write(&self, element: Element, bytes: &[u8], to: impl Write) -> Result<(), String> {
        use image::ImageEncoder;
        let pixels = self.draw(element, bytes);
        if pixels.len() as u64 != u64::from(self.width) * u64::from(self.height) * 3 {
            return Err(format!("a picture of {} by {} needs more elements", self.width, self.height));
        }
        image::codecs::png::PngEncoder::new(to)
            .write_image(&pixels, self.width, self.height, image::ExtendedColorType::Rgb8)
            .map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn palettes_end_where_they_should() {
        assert_eq!(Palette::Gray.colour(0.0), [0, 0, 0]);
        assert_eq!(Palette::Gray.colour(0.5), [128, 128, 128]);
        assert_eq!(Palette::Gray.colour(1.0), [255, 255, 255]);
        assert_eq!(Palette::Escape.colour(7.0), [0, 0, 0]);
        assert_eq!(Palette::Fire.colour(f64::NAN), [0, 0, 0]);
    }

    #[test]
    fn pngs_have_the_pixels() {
        let picture = Picture { width: 2, height: 1, palette: Palette::Gray, range: None };
        let bytes: Vec<u8> = [3i32, 7].iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut png = Vec::new();
        picture.write(Element::I32, &bytes, &mut png).expect("written");
        let read = image::load_from_memory(&png).expect("a PNG").to_rgb8();
        assert_eq!(read.into_raw(), [0, 0, 0, 255, 255, 255]);
        assert!(picture.write(Element::I32, &bytes[..4], Vec::new()).is_err());
    }
}
