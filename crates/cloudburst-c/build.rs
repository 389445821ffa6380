//! Names the interface of the library for the dynamic linker: `libcloudburst_c.so.0.1`, and from version
//! 1 on `libcloudburst_c.so.1`, so that a program never runs with an interface that it was not built for.

use std::env;

fn main() {
    let [major, minor] = ["CARGO_PKG_VERSION_MAJOR", "CARGO_PKG_VERSION_MINOR"]
        .map(|name| env::var(name).expect("cargo sets it"));
    let interface = if major == "0" { format!("0.{minor}") } else { major };
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcloudburst_c.so.{interface}");
    println!("cargo::rerun-if-changed=build.rs");
}
