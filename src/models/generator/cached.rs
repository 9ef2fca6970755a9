//! A generator that answers from the cache what it was asked before, and reports itself as the stage `generate`.
