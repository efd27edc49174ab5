//! `ralph proxy`: its responses, its filtering, and its lifetime.

mod forwarding;
mod lifecycle;
mod running;
mod upstream;
