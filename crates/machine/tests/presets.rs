//! The configurations that come with the program are exactly what they render to. `BLESS=1` rewrites them: a new key
//! needs only its value in each, explanations and order come from the specifications.

use machine::Config;
use std::path::Path;

#[test]
fn presets_are_what_they_render_to() {
    let mut old = Vec::new();
    for name in Config::presets() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("presets").join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&path).expect("a preset");
        let config = Config::read(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(config.name, name);
        let rendered = config.render();
        assert_eq!(Config::read(&rendered).as_ref(), Ok(&config), "{name} is lost in rendering");
        if rendered != text {
            if std::env::var_os("BLESS").is_some() {
                std::fs::write(&path, rendered).expect("written");
            } else {
                old.push(name);
            }
        }
    }
    assert!(old.is_empty(), "{old:?} are old: run BLESS=1 cargo test -p machine --test presets");
}

#[test]
fn presets_are_the_machines_they_stand_for() {
    let h200 = Config::preset("h200").expect("a preset");
    assert_eq!((h200.sms(), h200.sm.warps, h200.sm.sub_cores), (132, 64, 4));
    let classic = Config::preset("classic").expect("a preset");
    assert_eq!((classic.sms(), classic.sm.warps, classic.sm.dispatch_units), (15, 48, 2));
    assert_eq!(Config::preset("tiny").expect("a preset").sms(), 1);
    let error = Config::preset("tny").expect_err("no preset").to_string();
    assert_eq!(error, "there is no configuration `tny` (did you mean `tiny`?)");
}

#[test]
fn the_reference_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = machine::config::page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &page).expect("docs/configuration.md is writable");
    }
    assert!(
        std::fs::read_to_string(path).unwrap_or_default() == page,
        "docs/configuration.md is old: run BLESS=1 cargo test -p machine --test presets"
    );
}
