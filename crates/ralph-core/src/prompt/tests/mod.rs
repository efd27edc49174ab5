//! Tests of whole prompts, their order, and giant or hostile input.

mod bounds;
mod fixture;
mod order;
mod whole;
