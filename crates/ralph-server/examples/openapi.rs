//! Prints the description of the server's interface, from which the dashboard's client is generated.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    let text = ralph_server::openapi()
        .to_pretty_json()
        .map_err(io::Error::other)?;
    writeln!(io::stdout(), "{text}")
}
