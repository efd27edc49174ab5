//! The program `ralph`; its implementation is in the library.

fn main() -> std::process::ExitCode {
    ralph::cli::main()
}
