//! A language model in this process.
