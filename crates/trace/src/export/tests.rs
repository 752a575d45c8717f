//! Every form of a profile, read back by a decoder of its own kind: protocol buffers by their field numbers, XML by a parser.

use super::{flamegraph, perfetto, pprof};
use crate::profile::tests::sample;
use prost::Message;
use std::collections::BTreeMap;

/// The messages of Perfetto's `trace.proto` that are written, with its field numbers.
mod perfetto_schema {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Trace {
        #[prost(message, repeated, tag = "1")]
        pub packet: Vec<TracePacket>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct TracePacket {
        #[prost(uint64, optional, tag = "8")]
        pub timestamp: Option<u64>,
        #[prost(uint32, optional, tag = "10")]
        pub trusted_packet_sequence_id: Option<u32>,
        #[prost(message, optional, tag = "11")]
        pub track_event: Option<TrackEvent>,
        #[prost(message, optional, tag = "60")]
        pub track_descriptor: Option<TrackDescriptor>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct TrackDescriptor {
        #[prost(uint64, optional, tag = "1")]
        pub uuid: Option<u64>,
        #[prost(string, optional, tag = "2")]
        pub name: Option<String>,
        #[prost(uint64, optional, tag = "5")]
        pub parent_uuid: Option<u64>,
        #[prost(message, optional, tag = "8")]
        pub counter: Option<CounterDescriptor>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct CounterDescriptor {
        #[prost(string, optional, tag = "6")]
        pub unit_name: Option<String>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct TrackEvent {
        #[prost(message, repeated, tag = "4")]
        pub debug_annotations: Vec<DebugAnnotation>,
        #[prost(int32, optional, tag = "9")]
        pub r#type: Option<i32>,
        #[prost(uint64, optional, tag = "11")]
        pub track_uuid: Option<u64>,
        #[prost(string, optional, tag = "23")]
        pub name: Option<String>,
        #[prost(double, optional, tag = "44")]
        pub double_counter_value: Option<f64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct DebugAnnotation {
        #[prost(string, optional, tag = "10")]
        pub name: Option<String>,
        #[prost(string, optional, tag = "6")]
        pub string_value: Option<String>,
    }
}

/// The messages of pprof's `profile.proto`, with its field numbers.
mod pprof_schema {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub sample: Vec<Sample>,
        #[prost(message, repeated, tag = "3")]
        pub mapping: Vec<Mapping>,
        #[prost(message, repeated, tag = "4")]
        pub location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        pub string_table: Vec<String>,
        #[prost(int64, tag = "10")]
        pub duration_nanos: i64,
        #[prost(message, optional, tag = "11")]
        pub period_type: Option<ValueType>,
        #[prost(int64, tag = "12")]
        pub period: i64,
        #[prost(int64, repeated, tag = "13")]
        pub comment: Vec<i64>,
        #[prost(int64, tag = "14")]
        pub default_sample_type: i64,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct ValueType {
        #[prost(int64, tag = "1")]
        pub r#type: i64,
        #[prost(int64, tag = "2")]
        pub unit: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub value: Vec<i64>,
        #[prost(message, repeated, tag = "3")]
        pub label: Vec<Label>,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Label {
        #[prost(int64, tag = "1")]
        pub key: i64,
        #[prost(int64, tag = "2")]
        pub str: i64,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Mapping {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub memory_start: u64,
        #[prost(uint64, tag = "3")]
        pub memory_limit: u64,
        #[prost(int64, tag = "5")]
        pub filename: i64,
        #[prost(bool, tag = "7")]
        pub has_functions: bool,
        #[prost(bool, tag = "8")]
        pub has_filenames: bool,
        #[prost(bool, tag = "9")]
        pub has_line_numbers: bool,
        #[prost(bool, tag = "10")]
        pub has_inline_frames: bool,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Location {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub mapping_id: u64,
        #[prost(uint64, tag = "3")]
        pub address: u64,
        #[prost(message, repeated, tag = "4")]
        pub line: Vec<Line>,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Line {
        #[prost(uint64, tag = "1")]
        pub function_id: u64,
        #[prost(int64, tag = "2")]
        pub line: i64,
        #[prost(int64, tag = "3")]
        pub column: i64,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Function {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(int64, tag = "2")]
        pub name: i64,
        #[prost(int64, tag = "3")]
        pub system_name: i64,
        #[prost(int64, tag = "4")]
        pub filename: i64,
    }
}

#[test]
fn perfetto_reads_the_timelines() {
    let bytes = perfetto::trace(&sample(), None);
    let trace = perfetto_schema::Trace::decode(&bytes[..]).expect("a trace");
    // Nothing was written in a field that the schema does not have.
    assert_eq!(trace.encoded_len(), bytes.len());
    let tracks: BTreeMap<u64, &perfetto_schema::TrackDescriptor> = trace
        .packet
        .iter()
        .filter_map(|p| p.track_descriptor.as_ref())
        .map(|d| (d.uuid.expect("an id"), d))
        .collect();
    let names: Vec<&str> = tracks.values().filter_map(|d| d.name.as_deref()).collect();
    for name in ["launch", "SM 0 warp states", "warp 0", "warp 1", "memory", "DRAM read", "SM 0 warps"] {
        assert!(names.contains(&name), "{name} {names:?}");
    }
    for d in tracks.values() {
        assert!(d.parent_uuid.is_none_or(|p| tracks.contains_key(&p)), "a parent that exists");
    }
    // Slices of a track begin and end like brackets, and its time never runs backwards.
    let mut open: BTreeMap<u64, (u64, i32)> = BTreeMap::new();
    let mut states = Vec::new();
    for p in &trace.packet {
        assert_eq!(p.trusted_packet_sequence_id, Some(1));
        let Some(event) = &p.track_event else { continue };
        let track = event.track_uuid.expect("a track");
        let at = p.timestamp.expect("a time");
        let (last, depth) = open.entry(track).or_default();
        assert!(at >= *last, "{p:?}");
        *last = at;
        match event.r#type {
            Some(1) => {
                *depth += 1;
                states.extend(event.name.clone());
                assert!(tracks[&track].counter.is_none());
            }
            Some(2) => *depth -= 1,
            Some(4) => assert!(tracks[&track].counter.is_some() && event.double_counter_value.is_some()),
            other => panic!("type {other:?}"),
        }
        assert!(*depth >= 0);
    }
    assert!(open.values().all(|(_, depth)| *depth == 0));
    assert_eq!(states, ["scale", "CTA 0", "no_instruction", "long_scoreboard", "CTA 0", "long_scoreboard"]);
    let notes: Vec<&str> = trace
        .packet
        .iter()
        .filter_map(|p| p.track_event.as_ref())
        .flat_map(|e| &e.debug_annotations)
        .filter_map(|a| a.string_value.as_deref())
        .collect();
    assert!(notes.contains(&"inline.h:3"));
}

#[test]
fn pprof_reads_the_samples() {
    let p = sample();
    let bytes = pprof::message(&p);
    let read = pprof_schema::Profile::decode(&bytes[..]).expect("a profile");
    let text = |n: i64| read.string_table[n as usize].as_str();
    assert_eq!(read.string_table[0], "");
    let types: Vec<(&str, &str)> = read.sample_type.iter().map(|t| (text(t.r#type), text(t.unit))).collect();
    assert_eq!(types, [("warp_cycles", "cycles"), ("instructions", "count")]);
    let sum = |n: usize| read.sample.iter().map(|s| s.value[n]).sum::<i64>() as u64;
    assert_eq!((sum(0), sum(1)), (p.warp_cycles(), p.executed()));
    for s in &read.sample {
        assert_eq!(s.value.len(), 2);
        assert!(read.location.iter().any(|l| l.id == s.location_id[0]));
        assert_eq!(text(s.label[0].key), "reason");
    }
    let inlined = &read.location[2];
    let frames: Vec<(&str, &str, i64)> = inlined
        .line
        .iter()
        .map(|l| {
            let f = read.function.iter().find(|f| f.id == l.function_id).expect("a function");
            (text(f.name), text(f.filename), l.line)
        })
        .collect();
    assert_eq!(frames, [("inlined from inline.h", "inline.h", 3), ("scale", "dir/scale.cu", 2)]);
    let m = &read.mapping[0];
    assert!(
        read.location
            .iter()
            .all(|l| l.mapping_id == m.id && (m.memory_start..m.memory_limit).contains(&l.address))
    );
    assert_eq!(text(read.default_sample_type), "warp_cycles");
    assert_eq!(&pprof::file(&p)[..3], &[0x1f, 0x8b, 8]);
}

#[test]
fn the_flame_graph_is_xml() {
    let mut p = sample();
    p.kernel = "a<b>&\"c\u{1}".to_owned();
    let text = flamegraph::svg(&p);
    let xml = roxmltree::Document::parse(&text).expect("XML");
    let root = xml.root_element();
    assert_eq!(
        (root.tag_name().name(), root.tag_name().namespace()),
        ("svg", Some("http://www.w3.org/2000/svg"))
    );
    let boxes: Vec<_> = root.children().filter(|n| n.attribute("class") == Some("b")).collect();
    let number = |n: &roxmltree::Node<'_, '_>, name: &str| {
        n.attribute(name).and_then(|v| v.parse::<f64>().ok()).expect("a number")
    };
    let rects: Vec<(f64, f64, f64)> = boxes
        .iter()
        .map(|b| {
            let r = b.children().find(|c| c.has_tag_name("rect")).expect("a rectangle");
            (number(&r, "x"), number(&r, "y"), number(&r, "width"))
        })
        .collect();
    // The kernel is as wide as the picture, and boxes of a row do not overlap.
    assert_eq!((rects[0].0, rects[0].2), (0.0, 1200.0));
    for (n, a) in rects.iter().enumerate() {
        for b in &rects[n + 1..] {
            assert!(a.1 != b.1 || a.0 + a.2 <= b.0 + 0.02 || b.0 + b.2 <= a.0 + 0.02, "{a:?} {b:?}");
        }
    }
    assert!(text.contains("long_scoreboard: 30,000 warp-cycles"));
    assert!(roxmltree::Document::parse(&flamegraph::svg(&crate::Profile::default())).is_ok());
}
