//! `ralph proxy`: what it answers, what it lets through, and when it ends.

mod forwarding;
mod lifecycle;
mod running;
mod upstream;
