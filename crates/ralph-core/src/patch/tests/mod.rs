//! Patches as models write them: accepted, rejected, damaged and large ones.

mod applied;
mod damaged;
mod large;
mod modes;
mod refused;
mod sections;

/// The file in most cases.
const PATH: &str = "src/lib.rs";

/// Returns lines 1 to 20, one word each: `line1` … `line20`.
fn twenty_lines() -> String {
    let lines: Vec<String> = (1..=20).map(|number| format!("line{number}\n")).collect();
    lines.concat()
}
