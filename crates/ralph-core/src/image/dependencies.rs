//! Parses `.agent-loop/dependencies`, which lists one Debian package per line.

/// Rejects generated or malicious lists; a hand-written list is far shorter.
const MAX_PACKAGES: usize = 1000;

/// The reason why the list of packages is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DependencyError {
    /// The file is not UTF-8.
    #[error("`.agent-loop/dependencies` is not UTF-8 text")]
    NotText,
    /// A line is not a valid package name.
    #[error("`.agent-loop/dependencies` line {line}: `{text}` is not a package name: {rule}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// The line without its comment.
        text: String,
        /// The violated rule.
        rule: &'static str,
    },
    /// The file lists too many packages.
    #[error("`.agent-loop/dependencies` names more than {MAX_PACKAGES} packages")]
    TooMany,
}

/// Returns the packages in file order. Skips blank lines and comments, including those after a
/// package.
pub fn parse(file: &[u8]) -> Result<Vec<String>, DependencyError> {
    let text = std::str::from_utf8(file).map_err(|_| DependencyError::NotText)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut packages = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let package = line.split('#').next().unwrap_or_default().trim();
        if package.is_empty() {
            continue;
        }
        if let Some(rule) = broken_rule(package) {
            return Err(DependencyError::Line {
                line: index + 1,
                text: package.to_owned(),
                rule,
            });
        }
        if packages.len() == MAX_PACKAGES {
            return Err(DependencyError::TooMany);
        }
        packages.push(package.to_owned());
    }
    Ok(packages)
}

/// Returns the rule that `name[:architecture][=version]` violates, if any.
///
/// A valid package has no characters with a meaning to the shell.
fn broken_rule(package: &str) -> Option<&'static str> {
    if package.contains(char::is_whitespace) {
        return Some("one package per line");
    }
    let (rest, version) = match package.split_once('=') {
        Some((rest, version)) => (rest, Some(version)),
        None => (package, None),
    };
    let (name, architecture) = match rest.split_once(':') {
        Some((name, architecture)) => (name, Some(architecture)),
        None => (rest, None),
    };
    let small = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    if name.len() < 2
        || !name.as_bytes().first().copied().is_some_and(small)
        || !name
            .bytes()
            .all(|b| small(b) || matches!(b, b'+' | b'-' | b'.'))
    {
        return Some(
            "a name has at least two lower-case letters, digits, `+`, `-` or `.`, and starts with a letter or digit",
        );
    }
    if name.ends_with('-') {
        return Some("apt would remove a package whose name ends with `-`");
    }
    if architecture.is_some_and(|text| {
        !text.bytes().next().is_some_and(small) || !text.bytes().all(|b| small(b) || b == b'-')
    }) {
        return Some("an architecture after `:` has the form `amd64`");
    }
    if version.is_some_and(|text| {
        !text
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric())
            || !text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-' | b':' | b'~'))
    }) {
        return Some("a version after `=` has the form `1.2-3`");
    }
    None
}

/// Returns the Dockerfile that installs packages on top of a base image.
pub fn dockerfile(packages: &[String]) -> String {
    format!(
        "ARG BASE_IMAGE\n\
         FROM ${{BASE_IMAGE}}\n\
         USER root\n\
         RUN apt-get update && apt-get install -y --no-install-recommends \\\n\
         {} \\\n\
         && rm -rf /var/lib/apt/lists/*\n\
         USER agent\n",
        packages.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages(text: &str) -> Vec<String> {
        parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn packages_are_listed_in_order() {
        assert_eq!(
            packages("openjdk-21-jdk\npython3-venv\nnodejs\n"),
            ["openjdk-21-jdk", "python3-venv", "nodejs"]
        );
    }

    #[test]
    fn lines_with_only_a_comment_are_skipped() {
        assert_eq!(packages("# one\n  # two\n#\njq\n"), ["jq"]);
    }

    #[test]
    fn comments_after_a_package_are_stripped() {
        assert_eq!(packages("jq # json\ngit#vcs\n"), ["jq", "git"]);
    }

    #[test]
    fn blank_lines_are_skipped() {
        assert_eq!(packages("\n\njq\n   \n\t\ngit\n\n"), ["jq", "git"]);
    }

    #[test]
    fn space_around_a_package_is_stripped() {
        assert_eq!(
            packages("  jq  \n\tgit\t\r\n\u{a0}curl"),
            ["jq", "git", "curl"]
        );
    }

    #[test]
    fn an_empty_file_has_no_packages() {
        for text in ["", "\n", "# only a comment", "\u{feff}"] {
            assert_eq!(packages(text), [""; 0], "{text:?}");
        }
    }

    #[test]
    fn every_valid_dpkg_name_is_accepted() {
        let text = "g++\nlibstdc++6\nlibc6:i386\nnodejs=20.1-1nodesource1\nx11-utils\npython3.11\nlinux-libc-dev:amd64=6.1.2~rc1+b1\nfoo=1:2.3-4\n7zip";
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(packages(text), lines);
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(packages("\u{feff}jq"), ["jq"]);
    }

    #[test]
    fn invalid_package_names_are_reported_with_their_line() {
        let rejected = |text: &str| match parse(text.as_bytes()) {
            Err(DependencyError::Line { line, text, .. }) => (line, text),
            other => panic!("{text:?}: {other:?}"),
        };
        assert_eq!(
            rejected("jq\n\n# x\nRipgrep # y\n"),
            (4, "Ripgrep".to_owned())
        );
        for text in [
            "a",
            "-y",
            "--force-yes",
            "jq git",
            "jq;rm",
            "$(id)",
            "`id`",
            "jq&&id",
            "vim-",
            "jq=",
            "jq=-x",
            "jq=1 2",
            "jq:",
            "jq:AMD64",
            "jq/stable",
            "../x",
            "jq\\",
            "caf\u{e9}",
            "jq|sh",
            "jq>x",
            "jq*",
            "jq?",
            "\u{202e}jq",
        ] {
            assert_eq!(rejected(text), (1, text.to_owned()));
        }
        assert_eq!(
            parse(b"jq git\n").unwrap_err().to_string(),
            "`.agent-loop/dependencies` line 1: `jq git` is not a package name: one package per line"
        );
        assert_eq!(parse(b"\xff\xfe"), Err(DependencyError::NotText));
        let many = "jq\n".repeat(MAX_PACKAGES);
        assert_eq!(packages(&many).len(), MAX_PACKAGES);
        assert_eq!(
            parse(format!("{many}jq").as_bytes()),
            Err(DependencyError::TooMany)
        );
    }

    #[test]
    fn one_package_is_rendered_as_a_dockerfile() {
        assert_eq!(
            dockerfile(&["jq".to_owned()]),
            "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nUSER root\n\
             RUN apt-get update && apt-get install -y --no-install-recommends \\\n\
             jq \\\n&& rm -rf /var/lib/apt/lists/*\nUSER agent\n"
        );
    }

    #[test]
    fn several_packages_share_one_instruction() {
        let text = dockerfile(&["jq", "g++", "git"].map(String::from));
        assert!(text.contains("\\\njq g++ git \\\n&&"), "{text}");
    }
}
