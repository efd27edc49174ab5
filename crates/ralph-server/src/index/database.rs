//! The database of the index: connections, tables, and what happens to a file that is damaged or gone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ralph_engine::durable::StoreError;
use rustix::fs::FlockOperation;
use sqlx::AnyPool;
use sqlx::ConnectOptions as _;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::Migrator;
use url::Url;

use super::index_error::IndexError;
use super::location::IndexLocation;

/// The connections: one writes, the others answer requests.
const MAX_CONNECTIONS: u32 = 4;
/// How long a statement waits for another process that locks the database.
const BUSY_TIMEOUT_MS: u32 = 500;
/// The first bytes of every SQLite database.
const HEADER: &[u8; 16] = b"SQLite format 3\0";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The tables.
static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// The open database; clones share its connections.
#[derive(Debug, Clone)]
pub(super) struct Database {
    pub(super) pool: AnyPool,
    files: Vec<OpenFile>,
}

/// A file that the database had when it was opened.
#[derive(Debug, Clone)]
struct OpenFile {
    path: PathBuf,
    identity: (u64, u64),
}

/// The right to update an index; released on drop and when the process dies.
#[derive(Debug)]
pub(super) struct MaintenanceLock {
    _file: Option<File>,
}

impl MaintenanceLock {
    /// Locks an index for this process.
    pub(super) fn acquire(location: &IndexLocation) -> Result<Self, IndexError> {
        let IndexLocation::File(path) = location else {
            return Ok(Self { _file: None });
        };
        let path = with_suffix(path, ".lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(StoreError::when("open", &path))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: Some(file) }),
            Err(_) => Err(IndexError::Maintained),
        }
    }
}

impl Database {
    /// Opens the database, checks its structure and creates its tables.
    pub(super) async fn open(location: &IndexLocation) -> Result<Self, IndexError> {
        let pool = match location {
            IndexLocation::Memory => connect("sqlite::memory:", 1).await?,
            IndexLocation::File(path) => {
                create_private(path)?;
                // The pool would repeat an attempt that fails because of damage.
                check_structure(location).await?;
                connect(file_url(path)?.as_str(), MAX_CONNECTIONS).await?
            }
        };
        MIGRATIONS.run(&pool).await?;
        let files = match location {
            IndexLocation::Memory => Vec::new(),
            IndexLocation::File(path) => [path.clone(), with_suffix(path, "-wal")]
                .into_iter()
                .filter_map(|path| {
                    let identity = identity(&path)?;
                    Some(OpenFile { path, identity })
                })
                .collect(),
        };
        Ok(Self { pool, files })
    }

    /// Checks whether the files are still those that were opened. A process that works with removed files
    /// notices nothing else.
    pub(super) fn check_files(&self) -> Result<(), IndexError> {
        let is_in_place = |file: &OpenFile| identity(&file.path) == Some(file.identity);
        if !self.files.iter().all(is_in_place) {
            return Err(IndexError::Damaged("its file was removed".to_owned()));
        }
        match self.files.first() {
            Some(file) if !has_header(&file.path)? => {
                Err(IndexError::Damaged("its file was overwritten".to_owned()))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Checks the structure of a database as a new process sees it.
pub(super) async fn check_structure(location: &IndexLocation) -> Result<(), IndexError> {
    let IndexLocation::File(path) = location else {
        return Ok(());
    };
    let url = file_url(path)?;
    let mut connection = options(url.as_str())?
        .connect()
        .await
        .map_err(IndexError::when("open"))?;
    let check: Result<String, sqlx::Error> = sqlx::query_scalar("PRAGMA quick_check(1)")
        .fetch_one(&mut connection)
        .await;
    let closed = sqlx::Connection::close(connection).await;
    let check = check.map_err(IndexError::when("check"))?;
    closed.map_err(IndexError::when("close"))?;
    if check == "ok" {
        Ok(())
    } else {
        Err(IndexError::Damaged(check))
    }
}

/// Moves the files of a damaged database aside, in place of those of the last one.
pub(super) fn move_aside(location: &IndexLocation) -> Result<(), StoreError> {
    let IndexLocation::File(path) = location else {
        return Ok(());
    };
    for suffix in ["-wal", "-shm"] {
        let path = with_suffix(path, suffix);
        tolerate_missing(fs::remove_file(&path)).map_err(StoreError::when("remove", &path))?;
    }
    let aside = with_suffix(path, ".broken");
    tolerate_missing(fs::rename(path, aside)).map_err(StoreError::when("rename", path))
}

async fn connect(url: &str, connections: u32) -> Result<AnyPool, IndexError> {
    sqlx::any::install_default_drivers();
    AnyPoolOptions::new()
        // A database in memory ends with its connection, and so does the log of a file's changes.
        .min_connections(1)
        .max_connections(connections)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(CONNECT_TIMEOUT)
        .after_connect(|connection, _| {
            Box::pin(async move {
                let pragmas = format!(
                    "PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"
                );
                sqlx::raw_sql(sqlx::AssertSqlSafe(pragmas))
                    .execute(connection)
                    .await
                    .map(drop)
            })
        })
        .connect_with(options(url)?)
        .await
        .map_err(IndexError::when("open"))
}

fn options(url: &str) -> Result<AnyConnectOptions, IndexError> {
    sqlx::any::install_default_drivers();
    let options: AnyConnectOptions = url.parse().map_err(IndexError::when("open"))?;
    Ok(options.disable_statement_logging())
}

/// Creates an empty file that only the user can read, unless it exists. SQLite gives its other files the
/// same mode.
fn create_private(path: &Path) -> Result<(), StoreError> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .map(drop)
        .map_err(StoreError::when("open", path))
}

/// Returns the address of a file in the form of the driver.
fn file_url(path: &Path) -> Result<Url, IndexError> {
    let text = path.to_string_lossy().replace('%', "%25");
    let mut url = Url::parse("sqlite:///").map_err(|error| IndexError::Database {
        doing: "open",
        source: sqlx::Error::Configuration(error.into()),
    })?;
    url.set_path(&text);
    Ok(url)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns device and number of a file; none if it cannot be inspected.
fn identity(path: &Path) -> Option<(u64, u64)> {
    match fs::metadata(path) {
        Ok(metadata) => Some((metadata.dev(), metadata.ino())),
        Err(_) => None,
    }
}

/// Returns whether a file starts like a database.
fn has_header(path: &Path) -> Result<bool, StoreError> {
    let mut start = [0; HEADER.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    match read {
        Ok(()) => Ok(start == *HEADER),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(StoreError::when("read", path)(error)),
    }
}

fn tolerate_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
