//! Tests of the lists of runs, whatever happens to the index.

mod lists;
