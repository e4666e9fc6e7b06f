// SPDX-License-Identifier: Apache-2.0
//! Finds libkelp with pkg-config: the file `kelp.pc` of an installed Kelp.
use std::env;
use std::process::{exit, Command};

const OLDEST: &str = "0.1";

/// Runs pkg-config. Returns its output, or the reason of the failure.
fn pkg_config(words: &[&str]) -> Result<String, String> {
    let program = env::var("PKG_CONFIG").unwrap_or("pkg-config".into());
    match Command::new(&program).args(words).output() {
        Ok(ran) if ran.status.success() => Ok(String::from_utf8_lossy(&ran.stdout).into_owned()),
        Ok(ran) => Err(String::from_utf8_lossy(&ran.stderr).trim().to_owned()),
        Err(error) => Err(format!("cannot run '{program}': {error}")),
    }
}

fn main() {
    for name in ["PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR", "DOCS_RS"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if env::var_os("DOCS_RS").is_some() {
        return; // documentation is not linked
    }
    let flags = pkg_config(&["--libs", &format!("kelp >= {OLDEST}")]).unwrap_or_else(|reason| {
        eprintln!("pkg-config does not find Kelp {OLDEST} or newer: {reason}");
        eprintln!("Install Kelp (`make install PREFIX=/usr/local`), and, if its prefix is not a standard directory of");
        eprintln!("pkg-config, set PKG_CONFIG_PATH=PREFIX/lib/pkgconfig.");
        exit(1);
    });
    for flag in flags.split_whitespace() {
        if let Some(directory) = flag.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={directory}");
            println!("cargo:libdir={directory}"); // DEP_KELP_LIBDIR of packages that depend on this one
        } else if let Some(library) = flag.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={library}");
        }
    }
}
