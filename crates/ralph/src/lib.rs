//! ralph.
