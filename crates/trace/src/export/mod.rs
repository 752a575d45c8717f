//! Forms in which profiles are shown: each a pure function from a profile to text or bytes.
//!
//! | module | opens in |
//! | --- | --- |
//! | [`text`] | a terminal |
//! | [`html`] | a browser: one page with everything |
//! | [`perfetto`] | ui.perfetto.dev |
//! | [`pprof`] | `pprof` |
//! | [`flamegraph`] | a browser: one SVG picture |
//! | [`csv`], [`json`] | other programs |

pub mod csv;
pub mod flamegraph;
pub mod html;
pub mod json;
pub mod perfetto;
pub mod pprof;
mod proto;
#[cfg(test)]
mod tests;
pub mod text;
