//! Repeatable random numbers.

use std::time::SystemTime;

use crate::support::count_from_env;

/// A repeatable sequence of numbers.
pub(super) struct Random(u64);

impl Random {
    /// Starts the sequence with the seed of a variable, or else with another one each time.
    #[expect(clippy::print_stdout, reason = "a failed test shows how to repeat it")]
    pub(super) fn from_env(variable: &str) -> Self {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seed = count_from_env(variable, time.unwrap().subsec_micros() as usize);
        println!("{variable}={seed} repeats the random choices");
        Self(seed as u64)
    }

    /// Returns the next index into a list.
    pub(super) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    /// Returns the next number, below a limit.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}
