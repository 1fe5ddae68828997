//! `perch`: everything without a window.

fn main() {}
