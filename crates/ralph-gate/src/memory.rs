//! Bounds the memory for requests and responses that a gate buffers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The allocation unit of the budget, in bytes.
const UNIT_BYTES: usize = 1024;
/// Bytes that every holder may use without a reservation, so that small requests pass while large
/// ones wait.
const FREE_BYTES_PER_HOLDER: usize = 16 * 1024;

/// The byte budget shared by everything that a gate buffers.
#[derive(Clone)]
pub(crate) struct ByteBudget {
    units: Arc<Semaphore>,
}

/// A share of the budget, returned when it is dropped.
pub(crate) struct HeldBytes {
    budget: ByteBudget,
    permit: Option<OwnedSemaphorePermit>,
}

impl ByteBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            units: Arc::new(Semaphore::new(bytes.div_ceil(UNIT_BYTES))),
        }
    }

    /// Returns an empty share.
    pub(crate) fn hold(&self) -> HeldBytes {
        HeldBytes {
            budget: self.clone(),
            permit: None,
        }
    }
}

impl HeldBytes {
    /// Waits until the share has this size; returns false if the bytes stay in use for longer than
    /// `max_wait`.
    pub(crate) async fn grow_to(&mut self, bytes: usize, max_wait: Duration) -> bool {
        let more = self.missing(bytes);
        if more == 0 || self.try_grow_to(bytes) {
            return true;
        }
        let acquired = self.budget.units.clone().acquire_many_owned(more);
        match timeout(max_wait, acquired).await {
            Ok(Ok(permit)) => {
                self.add(permit);
                true
            }
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Grows the share to this size if enough bytes are free.
    pub(crate) fn try_grow_to(&mut self, bytes: usize) -> bool {
        let more = self.missing(bytes);
        if more == 0 {
            return true;
        }
        match self.budget.units.clone().try_acquire_many_owned(more) {
            Ok(permit) => {
                self.add(permit);
                true
            }
            Err(_) => false,
        }
    }

    /// Returns bytes beyond this size to the budget.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let kept = units(bytes);
        if let Some(permit) = &mut self.permit
            && let Some(excess) = permit.num_permits().checked_sub(kept)
        {
            drop(permit.split(excess));
        }
    }

    fn missing(&self, bytes: usize) -> u32 {
        let held = self
            .permit
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        // `u32::MAX` units are never free, so the request is refused.
        u32::try_from(units(bytes).saturating_sub(held)).unwrap_or(u32::MAX)
    }

    fn add(&mut self, more: OwnedSemaphorePermit) {
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
    }
}

fn units(bytes: usize) -> usize {
    bytes
        .saturating_sub(FREE_BYTES_PER_HOLDER)
        .div_ceil(UNIT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn holders_wait_for_bytes_held_by_others() {
        let budget = ByteBudget::new(64 * 1024);
        let (mut one, mut other) = (budget.hold(), budget.hold());
        let (max_wait, briefly) = (Duration::from_mins(1), Duration::from_millis(20));
        assert!(
            one.grow_to(FREE_BYTES_PER_HOLDER + 60 * 1024, max_wait)
                .await
        );
        assert!(other.try_grow_to(FREE_BYTES_PER_HOLDER + 4 * 1024));
        assert!(!other.try_grow_to(FREE_BYTES_PER_HOLDER + 5 * 1024));
        assert!(
            !other
                .grow_to(FREE_BYTES_PER_HOLDER + 5 * 1024, briefly)
                .await
        );
        assert!(other.grow_to(FREE_BYTES_PER_HOLDER, max_wait).await);
        one.shrink_to(FREE_BYTES_PER_HOLDER + 10 * 1024);
        assert!(
            other
                .grow_to(FREE_BYTES_PER_HOLDER + 54 * 1024, max_wait)
                .await
        );
        drop(one);
        assert!(
            other
                .grow_to(FREE_BYTES_PER_HOLDER + 64 * 1024, max_wait)
                .await
        );
        assert!(!other.grow_to(usize::MAX, briefly).await);
    }
}
