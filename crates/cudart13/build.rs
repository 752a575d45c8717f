//! Names the shared library and the version of its symbols as programs look for them.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        // The version of every symbol is the library's own name, which only this linker can do of itself.
        for argument in ["-fuse-ld=bfd", "-Wl,-soname,libcudart.so.13", "-Wl,--default-symver"] {
            println!("cargo:rustc-cdylib-link-arg={argument}");
        }
    }
}
