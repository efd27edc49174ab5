//! Whole prompts, their order, and what giant or hostile input does to them.

mod bounds;
mod fixture;
mod order;
mod whole;
