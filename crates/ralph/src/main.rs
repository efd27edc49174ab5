//! The program `ralph`; everything it does is in the library.

fn main() -> std::process::ExitCode {
    ralph::cli::main()
}
