//! The model profiles of a directory, their prices and keys, and a test of one of them. `ralph models` and the
//! server use it.

mod model_test;
mod profile_list;

pub use model_test::{ModelTestReport, test_model};
pub use profile_list::{ProfileEntry, ProfileKeyInfo, ProfileList, list_profiles};
