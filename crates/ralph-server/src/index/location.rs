//! Where the index is stored: `RALPH_DB_URL`, or a file in the state directory.

use std::path::{Path, PathBuf};

use ralph_app::{App, AppError};

/// The name of the database in the state directory.
const FILE_NAME: &str = "index.db";

/// Where the index is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexLocation {
    /// An SQLite database, by its absolute path.
    File(PathBuf),
    /// A database that ends with the process.
    Memory,
}

impl IndexLocation {
    /// Returns the location that the environment sets.
    pub(crate) fn of(app: &App) -> Result<Self, AppError> {
        let environment = app.environment();
        match environment.database_url() {
            Some(url) => Self::parse(url, environment.working_dir()),
            None => Ok(Self::File(app.state_dir()?.root().join(FILE_NAME))),
        }
    }

    /// Parses an address. A relative path counts from `directory`.
    fn parse(url: &str, directory: &Path) -> Result<Self, AppError> {
        let invalid = |why: String| {
            let fix =
                "use `sqlite:///absolute/path`, `sqlite://relative/path` or `sqlite::memory:`";
            AppError::usage("invalid `RALPH_DB_URL`", why, fix)
        };
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(invalid(format!("`{url}` has no scheme")));
        };
        if scheme != "sqlite" {
            return Err(invalid(format!(
                "this version has SQLite only, not `{scheme}`"
            )));
        }
        if rest.contains(['?', '#']) {
            return Err(invalid(format!("`{url}` has options, which do not exist")));
        }
        let path = rest.strip_prefix("//").unwrap_or(rest);
        if path == ":memory:" {
            return Ok(Self::Memory);
        }
        // Other programs write a relative path as `sqlite:///./file`.
        let path = if path.starts_with("/./") {
            &path[1..]
        } else {
            path
        };
        let absolute = directory.join(path);
        if path.is_empty() || absolute.file_name().is_none() || path.ends_with('/') {
            return Err(invalid(format!("`{url}` names no file")));
        }
        Ok(Self::File(absolute))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_addresses_name_a_file_or_memory() {
        let parse = |url: &str| IndexLocation::parse(url, Path::new("/work"));
        let file = |path: &str| IndexLocation::File(path.into());
        for (url, expected) in [
            ("sqlite:///var/a b%.db", file("/var/a b%.db")),
            ("sqlite://data/index.db", file("/work/data/index.db")),
            ("sqlite:index.db", file("/work/index.db")),
            ("sqlite:///./ralph.db", file("/work/./ralph.db")),
            ("sqlite::memory:", IndexLocation::Memory),
            ("sqlite://:memory:", IndexLocation::Memory),
        ] {
            assert_eq!(parse(url), Ok(expected), "{url}");
        }
        for (url, why) in [
            (
                "postgres://localhost/ralph",
                "this version has SQLite only, not `postgres`",
            ),
            ("/var/index.db", "`/var/index.db` has no scheme"),
            ("sqlite://", "`sqlite://` names no file"),
            ("sqlite:///var/", "`sqlite:///var/` names no file"),
            (
                "sqlite://a.db?mode=ro",
                "`sqlite://a.db?mode=ro` has options, which do not exist",
            ),
        ] {
            assert_eq!(parse(url).unwrap_err().why, why, "{url}");
        }
    }
}
