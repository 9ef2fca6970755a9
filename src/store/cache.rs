//! A cache on disk, keyed by content: what was computed once is not computed again.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Version 1 of the schema. A row's id says how old it is.
const MIGRATIONS: &[&str] =
    &["CREATE TABLE cache(id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)"];

/// Bytes that a cache may take before its oldest entries go.
const LIMIT: i64 = 512 << 20;

/// Puts between two looks at the size.
const PUTS_A_CHECK: u32 = 64;

/// The key of an entry: a SHA-256.
pub type Key = [u8; 32];

/// The key of what `stage` makes of `parts`: model fingerprint, parameters, input, trial index. Parts that
/// differ only in where one ends and the next begins have different keys.
///
/// ```
/// use rankgate::store::cache::cache_key;
/// assert_ne!(cache_key("embed", &[b"ab", b"c"]), cache_key("embed", &[b"a", b"bc"]));
/// ```
pub fn cache_key(stage: &str, parts: &[&[u8]]) -> Key {
    let mut hasher = Sha256::new();
    for part in [stage.as_bytes()].iter().chain(parts) {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// What may be done with a cache: `RANKGATE_CACHE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheMode {
    /// Nothing is read or written.
    Off,
    /// Entries are read, none is added.
    ReadOnly,
    /// Entries are read and added.
    On,
}

impl CacheMode {
    /// The mode that `RANKGATE_CACHE` asks for: `off`, `read-only` or `on`, which is the default.
    pub fn from_env() -> Result<Self> {
        match std::env::var("RANKGATE_CACHE").unwrap_or_default().as_str() {
            "" | "on" | "1" => Ok(Self::On),
            "read-only" => Ok(Self::ReadOnly),
            "off" | "0" => Ok(Self::Off),
            other => Err(Error::usage(format!("RANKGATE_CACHE: `{other}` is not on, read-only or off"))),
        }
    }
}

/// Values by key in one SQLite file, shared between threads and processes.
///
/// A cache never fails a search: a file that is damaged or cannot be written is reported once on stderr and
/// left alone, and everything is computed again.
#[derive(Debug)]
pub struct Cache {
    path: PathBuf,
    state: Option<State>,
    read_only: bool,
    limit: i64,
    warned: AtomicBool,
}

#[derive(Debug)]
struct State(Mutex<(Connection, u32)>);

impl Cache {
    /// Opens the cache at `path` in the mode of `RANKGATE_CACHE`. Fails only when that is none.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self::with_mode(path, CacheMode::from_env()?))
    }

    /// Opens the cache at `path` in `mode`; in read-only mode a missing file is an empty cache.
    pub fn with_mode(path: &Path, mode: CacheMode) -> Self {
        let mut cache = Self {
            path: path.into(),
            state: None,
            read_only: mode == CacheMode::ReadOnly,
            limit: LIMIT,
            warned: AtomicBool::new(false),
        };
        if mode == CacheMode::On || (mode == CacheMode::ReadOnly && path.exists()) {
            match super::open(path, MIGRATIONS) {
                Ok(connection) => cache.state = Some(State(Mutex::new((connection, 0)))),
                Err(error) => cache.warn(&error.report()),
            }
        }
        cache
    }

    /// The value of `key`, if it is there and can be read.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let guard = self.state.as_ref()?.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = guard
            .0
            .prepare_cached("SELECT value FROM cache WHERE key = ?1")
            .and_then(|mut select| select.query_row([key.as_slice()], |row| row.get(0)).optional());
        found.unwrap_or_else(|e| {
            self.warn(&e.to_string());
            None
        })
    }

    /// Keeps `value` under `key`; one that is there already stays. Does nothing in read-only mode.
    pub fn put(&self, key: &Key, value: &[u8]) {
        let Some(State(state)) = self.state.as_ref().filter(|_| !self.read_only) else { return };
        let mut guard = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (connection, puts) = &mut *guard;
        let mut put = || -> rusqlite::Result<()> {
            connection
                .prepare_cached("INSERT OR IGNORE INTO cache(key, value) VALUES (?1, ?2)")?
                .execute(params![key.as_slice(), value])?;
            *puts += 1;
            if *puts % PUTS_A_CHECK == 1 { self.evict(connection) } else { Ok(()) }
        };
        if let Err(e) = put() {
            self.warn(&e.to_string());
        }
    }

    /// Removes the oldest entries, a tenth at a time, until the file holds no more than its limit.
    fn evict(&self, connection: &Connection) -> rusqlite::Result<()> {
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let used = || -> rusqlite::Result<i64> {
            Ok((pragma("page_count")? - pragma("freelist_count")?) * pragma("page_size")?)
        };
        let tenth = "DELETE FROM cache WHERE id IN (SELECT id FROM cache ORDER BY id LIMIT \
                     (SELECT 1 + count(*) / 10 FROM cache))";
        while used()? > self.limit && connection.execute(tenth, [])? > 0 {}
        Ok(())
    }

    fn warn(&self, why: &str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            use std::io::Write;
            let path = self.path.display();
            let _ = writeln!(std::io::stderr(), "rankgate: cache {path}: not used: {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_there_for_the_next_process() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("cache.db");
        let key = cache_key("embed", &[b"model", b"text"]);
        let cache = Cache::with_mode(&path, CacheMode::On);
        assert_eq!(cache.get(&key), None);
        cache.put(&key, b"value");
        drop(cache);
        let cache = Cache::with_mode(&path, CacheMode::ReadOnly);
        assert_eq!(cache.get(&key).as_deref(), Some(b"value".as_slice()));
        let other = cache_key("embed", &[b"model", b"other"]);
        cache.put(&other, b"value");
        assert_eq!(cache.get(&other), None, "read-only");
        assert_eq!(Cache::with_mode(&path, CacheMode::Off).get(&key), None, "off");
    }

    #[test]
    fn a_damaged_cache_is_off_and_kept() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("cache.db");
        std::fs::write(&path, "not a database".repeat(500)).expect("writes");
        let cache = Cache::with_mode(&path, CacheMode::On);
        let key = cache_key("x", &[]);
        cache.put(&key, b"y");
        assert_eq!(cache.get(&key), None);
        assert_eq!(std::fs::metadata(&path).expect("is there").len(), 7000);
        // A folder that is a file: nothing can be created.
        let cache = Cache::with_mode(&path.join("deeper/cache.db"), CacheMode::On);
        cache.put(&key, b"y");
        assert_eq!(cache.get(&key), None);
    }

    #[test]
    fn the_oldest_entries_go_first() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut cache = Cache::with_mode(&dir.path().join("cache.db"), CacheMode::On);
        cache.limit = 300_000;
        let keys: Vec<Key> = (0..1000u32).map(|i| cache_key("x", &[&i.to_le_bytes()])).collect();
        for key in &keys {
            cache.put(key, &[7; 1000]);
        }
        assert_eq!(cache.get(&keys[0]), None);
        assert!(cache.get(&keys[999]).is_some());
        let kept = keys.iter().filter(|key| cache.get(key).is_some()).count();
        assert!((150..360).contains(&kept), "{kept} kept");
    }

    #[test]
    fn threads_and_connections_share_it() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("cache.db");
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let path = &path;
                scope.spawn(move || {
                    let cache = Cache::with_mode(path, CacheMode::On);
                    for i in 0..50u32 {
                        cache.put(&cache_key("x", &[&i.to_le_bytes()]), &i.to_le_bytes());
                        cache.put(&cache_key("y", &[&thread.to_le_bytes(), &i.to_le_bytes()]), b"z");
                    }
                });
            }
        });
        let cache = Cache::with_mode(&path, CacheMode::On);
        for i in 0..50u32 {
            assert_eq!(
                cache.get(&cache_key("x", &[&i.to_le_bytes()])).as_deref(),
                Some(&i.to_le_bytes()[..])
            );
            assert!(
                (0..4u32)
                    .all(|t| cache.get(&cache_key("y", &[&t.to_le_bytes(), &i.to_le_bytes()])).is_some())
            );
        }
    }
}
