mod claims;
mod fixture;
mod lifecycle;
mod polling;
