//! The model folders that Perch knows.
