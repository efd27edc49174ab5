mod fixture;
mod lifecycle;
mod polling;
