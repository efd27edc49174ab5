//! Generates `docs/reference/cli.md` and the manual pages in `docs/man` from the clap definitions.
//!
//! The tests compare the files with the generated text; `just snap` rewrites them. Everything that
//! clap does not know, such as the shape of JSON output, comes from `crates/ralph/reference`: one
//! Markdown file per command, and `introduction.md`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory as _};
use snapbox::Data;
use snapbox::assert_data_eq;

use super::command_line::Cli;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the hand-written part of a command's section.
fn notes(name: &str) -> String {
    let file = format!("{}.md", name.replace(' ', "-"));
    let path = repository().join("crates/ralph/reference").join(file);
    match fs::read_to_string(&path) {
        Ok(text) => format!("\n{}\n", text.trim()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// Returns every command with its full name, parents first, without hidden commands.
fn commands(command: &Command, parent: &str, found: &mut Vec<(String, Command)>) {
    for command in command.get_subcommands() {
        if command.is_hide_set() || command.get_name() == "help" {
            continue;
        }
        let name = format!("{parent} {}", command.get_name());
        let name = name.trim().to_owned();
        found.push((name.clone(), command.clone()));
        commands(command, &name, found);
    }
}

fn all_commands() -> Vec<(String, Command)> {
    let mut cli = Cli::command();
    cli.build();
    let mut found = Vec::new();
    commands(&cli, "", &mut found);
    found
}

/// Escapes the characters that end a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn argument_row(argument: &Arg) -> String {
    let names: Vec<String> = [
        argument.get_short().map(|short| format!("-{short}")),
        argument.get_long().map(|long| format!("--{long}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let values: Vec<&str> = argument
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(clap::builder::Str::as_str)
        .collect();
    let takes_value = argument.get_action().takes_values();
    let name = match (names.is_empty(), takes_value) {
        (true, _) => format!("`{}`", values.join(" ")),
        (false, true) => format!("`{} <{}>`", names.join("`, `"), values.join("> <")),
        (false, false) => format!("`{}`", names.join("`, `")),
    };
    let mut help = argument
        .get_long_help()
        .or(argument.get_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    let possible: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if takes_value && !possible.is_empty() {
        let _ = write!(help, ": {}", possible.join(", "));
    }
    let defaults = argument.get_default_values();
    if takes_value && !defaults.is_empty() && !argument.is_hide_default_value_set() {
        let defaults: Vec<_> = defaults
            .iter()
            .map(|value| value.to_string_lossy())
            .collect();
        let _ = write!(help, " [default: `{}`]", defaults.join("`, `"));
    }
    format!("| {} | {} |\n", cell(&name), cell(&help))
}

fn section(name: &str, command: &Command) -> String {
    let level = "#".repeat(2 + name.matches(' ').count());
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let about = command.get_about().map(ToString::to_string);
    let mut text = format!(
        "\n{level} {name}\n\n{}.\n\n```text\n{usage}\n```\n",
        about.unwrap_or_default()
    );
    let rows: String = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && argument.get_id() != "help")
        .map(argument_row)
        .collect();
    if !rows.is_empty() {
        let _ = write!(text, "\n| argument | meaning |\n|---|---|\n{rows}");
    }
    if let Some(after) = command.get_after_help() {
        let _ = write!(text, "\n```text\n{}\n```\n", after.to_string().trim());
    }
    text + &notes(name)
}

/// Returns the page with every command.
fn reference() -> String {
    let mut text = String::from(
        "<!-- Generated from the clap definitions and crates/ralph/reference; `just snap` rewrites it. -->\n\n# Command line\n",
    );
    text += &notes("introduction");
    text += "\n| command | purpose |\n|---|---|\n";
    let all = all_commands();
    for (name, command) in all.iter().filter(|(name, _)| !name.contains(' ')) {
        let about = command.get_about().map(ToString::to_string);
        let _ = writeln!(
            text,
            "| [`{name}`](#{name}) | {} |",
            cell(&about.unwrap_or_default())
        );
    }
    for (name, command) in &all {
        text += &section(name, command);
    }
    text
}

#[test]
fn the_reference_page_is_current() {
    let path = repository().join("docs/reference/cli.md");
    assert_data_eq!(reference(), Data::read_from(&path, None).raw());
}

#[test]
fn the_manual_pages_are_current() {
    let directory = repository().join("docs/man");
    let mut pages = vec![("ralph".to_owned(), Cli::command())];
    pages.extend(
        all_commands()
            .into_iter()
            .map(|(name, command)| (format!("ralph-{}", name.replace(' ', "-")), command)),
    );
    for (name, command) in &pages {
        let mut page = Vec::new();
        // clap accepts only static names.
        let static_name: &'static str = name.clone().leak();
        let command = command
            .clone()
            .name(static_name)
            .bin_name(name.replace('-', " "));
        clap_mangen::Man::new(command)
            .title(name.clone())
            .render(&mut page)
            .unwrap();
        let path = directory.join(format!("{name}.1"));
        let page = String::from_utf8(page).unwrap();
        assert_data_eq!(page, Data::read_from(&path, None).raw());
    }
    let mut files: Vec<String> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut expected: Vec<String> = pages.iter().map(|(name, _)| format!("{name}.1")).collect();
    expected.sort();
    assert_eq!(
        files, expected,
        "docs/man has a page per command and no other"
    );
}

#[test]
fn every_note_belongs_to_a_command() {
    let names: Vec<String> = all_commands()
        .into_iter()
        .map(|(name, _)| name.replace(' ', "-"))
        .chain(["introduction".to_owned()])
        .collect();
    for entry in fs::read_dir(repository().join("crates/ralph/reference")).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(names.contains(&stem), "{}", path.display());
    }
}
