//! The price maps in addition to the built-in one: the file that a `models.yaml` names, and the map
//! that the user stored in the state directory with `ralph models update-prices`.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ralph_core::price::{PriceBook, PriceMap};
use ralph_engine::durable;
use ralph_engine::durable::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::ConfigFileError;
use super::models::ModelProfiles;
use super::regular_file::read_regular;

/// The size limit of a price map, in bytes.
pub const MAX_PRICE_BYTES: u64 = 32 * 1024 * 1024;
/// The version of the stored file's format.
const VERSION: u32 = 1;
/// The name of the file in the state directory.
const FILE: &str = "prices.json";

/// A file with prices.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PriceFile {
    pub(super) path: PathBuf,
    /// The directory that must contain the file.
    pub(super) root: PathBuf,
}

/// The source of a price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PriceSource {
    /// The prices in the profile.
    Profile,
    /// The file that the configuration names.
    PriceFile { path: String },
    /// The map that the user stored with `ralph models update-prices`.
    Stored {
        /// The file or URL of the map.
        source: String,
        stored_at: Timestamp,
        /// The number of models in the map.
        models: usize,
    },
    /// The prices that ship with ralph.
    BuiltIn {
        /// The LiteLLM version of the prices.
        litellm: &'static str,
    },
    /// The model replays a file or runs on this machine.
    Local,
}

/// A price map with its origin.
#[derive(Debug, Serialize, Deserialize)]
pub struct StoredPrices {
    version: u32,
    /// The file or URL of the map.
    pub source: String,
    pub stored_at: Timestamp,
    models: Map<String, Value>,
}

impl StoredPrices {
    /// Returns the path of the stored map.
    pub fn path(state: &Path) -> PathBuf {
        state.join(FILE)
    }

    /// Creates the stored form of a validated map.
    pub fn new(map: &PriceMap, source: String, stored_at: Timestamp) -> Self {
        Self {
            version: VERSION,
            source,
            stored_at,
            models: map.entries().clone(),
        }
    }

    /// Reads the stored map. Returns `None` without a file.
    pub fn load(path: &Path) -> Result<Option<Self>, ConfigFileError> {
        // Opening the state directory reports an invalid one.
        if !path.parent().is_some_and(Path::is_dir) {
            return Ok(None);
        }
        let wrong = |why: String| ConfigFileError::StoredPrices {
            path: path.to_owned(),
            why,
        };
        let file = match read_regular(path, Path::new("/"), MAX_PRICE_BYTES) {
            Ok(file) => file,
            Err(problem) if problem.is_missing() => return Ok(None),
            Err(problem) => return Err(wrong(problem.to_string())),
        };
        let stored: Self =
            serde_json::from_slice(&file.bytes).map_err(|error| wrong(error.to_string()))?;
        if stored.version != VERSION {
            let version = stored.version;
            return Err(wrong(format!(
                "its format has version {version}, this ralph reads version {VERSION}"
            )));
        }
        Ok(Some(stored))
    }

    /// Stores the map and replaces an earlier one.
    pub fn save(&self, path: &Path) -> Result<(), StoreError> {
        let text = serde_json::to_vec(self)
            .map_err(io::Error::from)
            .map_err(StoreError::when("write", path))?;
        durable::write(path, &text)
    }

    /// Returns the prices.
    pub fn price_book(&self) -> PriceBook {
        PriceBook::from_entries(&self.models)
    }
}

impl ModelProfiles {
    /// Returns the prices that precede the built-in ones, in order of precedence: those of the file
    /// that the configuration names, and those that the user stored.
    pub fn price_sources(&self) -> Result<Vec<(PriceSource, PriceBook)>, ConfigFileError> {
        let mut sources = Vec::new();
        if let Some(file) = &self.price_file {
            let path = file.path.display().to_string();
            sources.push((PriceSource::PriceFile { path }, load_price_file(file)?));
        }
        let stored = self.stored_prices.as_deref().map(StoredPrices::load);
        if let Some(stored) = stored.transpose()?.flatten() {
            let book = stored.price_book();
            let source = PriceSource::Stored {
                source: stored.source,
                stored_at: stored.stored_at,
                models: book.len(),
            };
            sources.push((source, book));
        }
        Ok(sources)
    }

    /// Returns the same prices as one book, which may be empty.
    pub fn prices(&self) -> Result<PriceBook, ConfigFileError> {
        let sources = self.price_sources()?.into_iter().map(|(_, book)| book);
        Ok(sources.reduce(PriceBook::with_fallback).unwrap_or_default())
    }
}

/// Returns the prices of a file that the configuration names.
fn load_price_file(file: &PriceFile) -> Result<PriceBook, ConfigFileError> {
    let PriceFile { path, root } = file;
    let wrong = |why: String| ConfigFileError::Invalid {
        path: path.clone(),
        line: 1,
        column: 1,
        why: format!("invalid price map: {why}"),
    };
    let file = read_regular(path, root, MAX_PRICE_BYTES);
    let file = file.map_err(|error| wrong(error.to_string()))?;
    let text = String::from_utf8_lossy(&file.bytes);
    PriceBook::from_litellm(&text).map_err(|error| wrong(error.to_string()))
}
