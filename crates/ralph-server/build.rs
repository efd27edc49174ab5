//! Builds the dashboard with Node and embeds its files, compressed.
//!
//! Without Node 20 or newer, or with `RALPH_DASHBOARD=off`, the server is built without a dashboard and
//! reports that at its start.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The oldest version of Node that can build the dashboard.
const OLDEST_NODE: u32 = 20;
/// The files and directories from which the dashboard is built.
const SOURCES: [&str; 7] = [
    "index.html",
    "package.json",
    "package-lock.json",
    "public",
    "src",
    "tsconfig.json",
    "vite.config.ts",
];
/// The copy of the lock file from which the installed packages come.
const INSTALLED_LOCK: &str = "node_modules/.installed-lock.json";

fn main() {
    let web = Path::new("../../web");
    println!("cargo::rerun-if-env-changed=RALPH_DASHBOARD");
    println!("cargo::rerun-if-changed=build.rs");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", web.join(source).display());
    }
    let out = PathBuf::from(variable("OUT_DIR").expect("cargo sets OUT_DIR"));
    let files = match build(web, &out.join("dashboard")) {
        Ok(directory) => compressed_files(&directory, &out.join("compressed")),
        Err(why) => {
            println!("cargo::warning=built without the dashboard: {why}");
            Vec::new()
        }
    };
    fs::write(out.join("dashboard_files.rs"), table(&files)).expect("the table is written");
}

/// Builds the dashboard into `directory`, or returns why that is not possible.
fn build(web: &Path, directory: &Path) -> Result<PathBuf, String> {
    if variable("RALPH_DASHBOARD").is_some_and(|value| value == "off") {
        return Err("RALPH_DASHBOARD is off".to_owned());
    }
    let version = output(Command::new("node").arg("--version"))?;
    let major = version.trim().trim_start_matches('v').split('.').next();
    let major: u32 = major.map_or(Ok(0), str::parse).unwrap_or(0);
    if major < OLDEST_NODE {
        return Err(format!(
            "Node {OLDEST_NODE} or newer is needed, this is {}",
            version.trim()
        ));
    }
    install_packages(web)?;
    let mut vite = Command::new("node");
    vite.current_dir(web)
        .args([
            "node_modules/vite/bin/vite.js",
            "build",
            "--logLevel",
            "warn",
        ])
        .env("RALPH_WEB_OUT", directory)
        .env("NODE_ENV", "production");
    output(&mut vite)?;
    Ok(directory.to_owned())
}

/// Installs the packages of the lock file unless they are installed.
fn install_packages(web: &Path) -> Result<(), String> {
    let lock = fs::read(web.join("package-lock.json")).map_err(|error| error.to_string())?;
    let installed = web.join(INSTALLED_LOCK);
    if fs::read(&installed).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.current_dir(web)
        .args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
    output(&mut npm)?;
    fs::write(installed, lock).map_err(|error| error.to_string())
}

/// A file of the dashboard.
struct BuiltFile {
    /// Relative to the start page.
    path: String,
    compressed: PathBuf,
}

fn compressed_files(directory: &Path, compressed: &Path) -> Vec<BuiltFile> {
    fs::create_dir_all(compressed).expect("the directory is created");
    let mut paths = Vec::new();
    collect(directory, &mut paths);
    paths.sort();
    let mut files = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let relative = path
            .strip_prefix(directory)
            .expect("the file is in the directory");
        let target = compressed.join(format!("{number}.gz"));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let content = fs::read(path).expect("a built file is readable");
        encoder
            .write_all(&content)
            .expect("memory accepts all bytes");
        let content = encoder.finish().expect("memory accepts all bytes");
        fs::write(&target, content).expect("the compressed file is written");
        files.push(BuiltFile {
            path: relative.to_string_lossy().replace('\\', "/"),
            compressed: target,
        });
    }
    files
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the directory is readable") {
        let path = entry.expect("the directory is readable").path();
        if path.is_dir() {
            collect(&path, paths);
        } else {
            paths.push(path);
        }
    }
}

/// Returns the source of a constant with all files.
fn table(files: &[BuiltFile]) -> String {
    let mut text = String::from("&[\n");
    for BuiltFile { path, compressed } in files {
        let compressed = compressed.to_str().expect("the path is valid text");
        writeln!(
            text,
            "    DashboardFile {{ path: {path:?}, compressed: include_bytes!({compressed:?}) }},"
        )
        .expect("a text accepts all text");
    }
    text.push_str("]\n");
    text
}

/// Returns the output of a program that succeeds.
fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("`{program}` cannot be started: {error}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = error.lines().rev().take(12).collect();
        let lines: Vec<&str> = lines.into_iter().rev().collect();
        return Err(format!("`{program}` failed: {}", lines.join(" / ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "cargo passes its settings to a build script in variables"
    )]
    env::var(name).ok()
}
