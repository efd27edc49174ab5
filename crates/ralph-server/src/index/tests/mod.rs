//! The index compared with the files it is derived from.

mod feed;
mod fixture;
mod lists;
mod outages;
mod rebuild;
mod records;
