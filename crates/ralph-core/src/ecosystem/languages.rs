//! Languages whose tools need little or no configuration.

use serde_json::Value;

use super::detect::{DetectedProject, TestCommand};
use super::project_files::ProjectFiles;

/// A file that identifies a language, and the command that runs its tests.
struct LanguageRule {
    file: &'static str,
    language: &'static str,
    command: &'static str,
}

const fn rule(file: &'static str, language: &'static str, command: &'static str) -> LanguageRule {
    LanguageRule {
        file,
        language,
        command,
    }
}

/// The rules of languages with one test command; of several rules for a language the first one
/// applies.
const RULES: [LanguageRule; 16] = [
    rule("mvnw", "Java", "./mvnw test"),
    rule("pom.xml", "Java", "mvn test"),
    rule("gradlew", "Java", "./gradlew test"),
    rule("build.gradle", "Java", "gradle test"),
    rule("build.gradle.kts", "Kotlin", "gradle test"),
    rule("build.sbt", "Scala", "sbt test"),
    rule("project.clj", "Clojure", "lein test"),
    rule("mix.exs", "Elixir", "mix deps.get && mix test"),
    rule("rebar.config", "Erlang", "rebar3 eunit"),
    rule("Package.swift", "Swift", "swift test"),
    rule("stack.yaml", "Haskell", "stack test"),
    rule("cabal.project", "Haskell", "cabal test all"),
    rule("dune-project", "OCaml", "dune runtest"),
    rule(
        "test/runtests.jl",
        "Julia",
        "julia --project -e 'using Pkg; Pkg.test()'",
    ),
    rule("Makefile.PL", "Perl", "prove -lr t"),
    rule("cpanfile", "Perl", "prove -lr t"),
];

pub(super) fn detect_rust_and_go(files: &ProjectFiles, project: &mut DetectedProject) {
    if files.has_any(&["Cargo.toml"]) {
        let manifest = files.text("Cargo.toml");
        let is_workspace = manifest.lines().any(|line| line.trim() == "[workspace]");
        let command = if is_workspace {
            "cargo test --workspace"
        } else {
            "cargo test"
        };
        project.add("Rust", [TestCommand::new(command, "Cargo.toml")]);
    }
    if files.has_any(&["go.mod"]) {
        project.add("Go", [TestCommand::new("go test ./...", "go.mod")]);
    }
}

pub(super) fn detect_others(files: &ProjectFiles, project: &mut DetectedProject) {
    for rule in &RULES {
        let is_new = !project.languages.contains(&rule.language);
        // A Gradle project in Kotlin also has the wrapper script.
        let is_kotlin = rule.language == "Kotlin" && files.has_any(&["gradlew"]);
        if is_new && !is_kotlin && files.has_any(&[rule.file]) {
            project.add(rule.language, [TestCommand::new(rule.command, rule.file)]);
        }
    }
    if files.has_suffix(&[".sln", ".slnx", ".csproj", ".fsproj", ".vbproj"]) {
        project.add(
            ".NET",
            [TestCommand::new("dotnet test", "the project file")],
        );
    }
    detect_ruby(files, project);
    detect_php(files, project);
    if files.has_any(&["pubspec.yaml"]) {
        let uses_flutter = files.text("pubspec.yaml").contains("sdk: flutter");
        let command = if uses_flutter {
            "flutter test"
        } else {
            "dart pub get && dart test"
        };
        project.add("Dart", [TestCommand::new(command, "pubspec.yaml")]);
    }
    if files.has_any(&["build.zig"]) {
        let has_step = files.text("build.zig").contains("\"test\"");
        let tests = has_step.then(|| TestCommand::new("zig build test", "build.zig"));
        project.add("Zig", tests);
    }
}

fn detect_ruby(files: &ProjectFiles, project: &mut DetectedProject) {
    if !files.has_any(&["Gemfile", "Rakefile"]) {
        return;
    }
    let uses_rspec = files.has_any(&[".rspec"]) || files.text("Gemfile").contains("rspec");
    let has_test_task = ["TestTask", "task :test", "task test:", "task \"test\""]
        .iter()
        .any(|part| files.text("Rakefile").contains(part));
    let tests = if uses_rspec {
        Some(TestCommand::new(
            "bundle exec rspec",
            "RSpec in the Gemfile",
        ))
    } else if files.has_any(&["bin/rails"]) {
        Some(TestCommand::new("bin/rails test", "bin/rails"))
    } else if has_test_task {
        Some(TestCommand::new(
            "bundle exec rake test",
            "the task `test` in the Rakefile",
        ))
    } else {
        None
    };
    project.add("Ruby", tests);
}

fn detect_php(files: &ProjectFiles, project: &mut DetectedProject) {
    if !files.has_any(&["composer.json"]) {
        return;
    }
    let composer = serde_json::from_str::<Value>(files.text("composer.json"));
    let has_script = composer.is_ok_and(|composer| !composer["scripts"]["test"].is_null());
    let install = "composer install --no-interaction";
    let tests = if has_script {
        Some(TestCommand::new(
            format!("{install} && composer test"),
            "scripts.test in composer.json",
        ))
    } else if files.has_any(&["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"]) {
        Some(TestCommand::new(
            format!("{install} && vendor/bin/phpunit"),
            "the settings of PHPUnit",
        ))
    } else {
        None
    };
    project.add("PHP", tests);
}
