//! Builds the guest, the program that runs inside containers, and embeds it into ralph.
//!
//! It is linked statically, so that it runs in any Linux image. On Linux it is built with the same
//! toolchain as the workspace. Other systems need the toolchain's
//! `<architecture>-unknown-linux-musl` target; without it, ralph is built without Docker sandboxes
//! and reports that.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Variables that cargo sets for build scripts and that would change the guest.
const REMOVED_VARIABLES: [&str; 7] = [
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_TARGET_DIR",
    "CARGO_MAKEFLAGS",
    "RUSTC_WORKSPACE_WRAPPER",
    "TARGET",
];

fn main() {
    let guest = Path::new("../ralph-guest");
    println!("cargo::rerun-if-changed={}", guest.join("src").display());
    println!(
        "cargo::rerun-if-changed={}",
        guest.join("Cargo.toml").display()
    );
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    let out = PathBuf::from(variable("OUT_DIR"));
    let embedded = out.join("ralph-guest");
    match build(guest, &out) {
        Ok(program) => {
            fs::copy(program, &embedded).expect("the guest is copied");
        }
        Err(why) if variable("CARGO_CFG_TARGET_OS") == "linux" => {
            panic!("the guest cannot be built: {why}")
        }
        Err(why) => {
            println!("cargo::warning=built without Docker sandboxes: {why}");
            fs::write(&embedded, b"").expect("an empty guest is written");
        }
    }
}

/// Builds the guest and returns its path.
fn build(guest: &Path, out: &Path) -> Result<PathBuf, String> {
    let architecture = variable("CARGO_CFG_TARGET_ARCH");
    let target = match variable("CARGO_CFG_TARGET_OS").as_str() {
        "linux" => variable("TARGET"),
        _ => format!("{architecture}-unknown-linux-musl"),
    };
    // `PROFILE` does not tell `dist` from `release`, but the directory of the profile does:
    // OUT_DIR is `<target>/<profile>/build/<package>/out`.
    let directory = out.ancestors().nth(3).and_then(Path::file_name);
    let profile = match variable("PROFILE").as_str() {
        "debug" => "guest-dev",
        _ if directory.is_some_and(|name| name == "dist") => "guest-dist",
        _ => "guest",
    };
    // Next to the directories of the profiles, so that all optimised builds share one guest.
    let directory = out.ancestors().nth(4).unwrap_or(out).join("guest");
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .args(["build", "--quiet", "--locked", "--profile", profile])
        .args(["--bin", "ralph-guest", "--target", &target])
        .arg("--manifest-path")
        .arg(guest.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&directory);
    for name in REMOVED_VARIABLES {
        cargo.env_remove(name);
    }
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
    let output = cargo.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(directory.join(target).join(profile).join("ralph-guest"))
}

fn variable(name: &str) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "cargo passes its settings to a build script in variables"
    )]
    env::var(name).unwrap_or_else(|_| panic!("cargo sets `{name}`"))
}
