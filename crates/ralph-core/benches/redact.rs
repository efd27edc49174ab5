//! Measures the throughput of the redactor: `cargo bench -p ralph-core --bench redact`.
//!
//! Prints megabytes per second for a log with 200 known secrets, read in pipe-sized chunks.

use std::fmt::Write as _;
use std::time::Instant;

use ralph_core::secret::{Redactor, Secret};

const SECRETS: u64 = 200;
const CHUNK: usize = 64 * 1024;
const MEGABYTES: usize = if cfg!(debug_assertions) { 2 } else { 256 };

fn main() {
    let redactor = Redactor::new((0..SECRETS).map(secret).collect());
    for (name, line) in [
        ("source", source_line as fn(u64) -> String),
        ("build log with addresses", log_line),
        ("base64", base64_line),
        ("coloured log", coloured_line),
        ("JSON in JSON", escaped_line),
    ] {
        measure(&redactor, name, line);
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
#[expect(clippy::print_stdout, reason = "a bench prints its result")]
fn measure(redactor: &Redactor, name: &str, line: fn(u64) -> String) {
    let text: String = (0..20_000).map(line).collect();
    let (mut stream, mut out) = (redactor.stream(), Vec::new());
    let mut bytes = 0;
    // The fastest pass: other load on the machine can only slow a pass down.
    let mut best = u128::MAX;
    while bytes < MEGABYTES * 1_000_000 {
        let started = Instant::now();
        for chunk in text.as_bytes().chunks(CHUNK) {
            out.clear();
            stream.push(chunk, &mut out);
        }
        best = best.min(started.elapsed().as_micros().max(1));
        bytes += text.len();
    }
    let hits = stream.finish(&mut out);
    println!("{name}: {} MB/s, {hits:?}", text.len() as u128 / best);
}

fn secret(number: u64) -> (String, Secret) {
    let mut value = String::from("key-");
    for part in 0..3 {
        write!(value, "{:x}", mixed(number * 3 + part)).expect("writing to a string cannot fail");
    }
    (format!("SECRET_{number}"), Secret::new(value))
}

fn source_line(number: u64) -> String {
    format!("    let value_{number} = self.table.get(&key).map_or(0, |entry| entry.count);\n")
}

fn log_line(number: u64) -> String {
    let (_, secret) = secret(number % SECRETS);
    let shown = if number.is_multiple_of(1000) {
        secret.expose()
    } else {
        "done"
    };
    format!(
        "12:00:{:02} GET https://example.com/packages/{number}.tgz {shown}\n",
        number % 60
    )
}

fn coloured_line(number: u64) -> String {
    format!(
        "\u{1b}[32m12:00:{:02}\u{1b}[0m \u{1b}[1mtest\u{1b}[0m module::case_{number} ... \u{1b}[32mok\u{1b}[0m\n",
        number % 60
    )
}

fn escaped_line(number: u64) -> String {
    format!("{{\"text\":\"{{\\\"id\\\":{number},\\\"path\\\":\\\"a\\\\/b\\\"}}\\n\"}}\n")
}

fn base64_line(number: u64) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |place: u64| char::from(DIGITS[(mixed(number * 76 + place) % 64) as usize]);
    (0..76).map(digit).chain(['\n']).collect()
}

/// Returns a pseudo-random number (`SplitMix64`).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
