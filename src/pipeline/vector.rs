//! Exact vector search: every vector of the collection is compared, so the answer is never an approximation.

use std::ops::Range;

use crate::error::{Error, ErrorKind, Result};

/// Components that are multiplied at a time: four registers of AVX2, and two cache lines.
const WIDTH: usize = 32;

/// A part of a vector, padded with zeros. The alignment keeps a load from crossing a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Block([f32; WIDTH]);

/// The best passage of one document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VectorHit {
    /// The document's key.
    pub key: u64,
    /// The passage's number in its document.
    pub chunk: u32,
    /// Cosine of the angle to the query, from −1 to 1.
    pub score: f32,
}

impl VectorHit {
    /// The total order of results: higher scores first, then lower keys.
    fn before(&self, other: &Self) -> bool {
        other.score.total_cmp(&self.score).then(self.key.cmp(&other.key)).is_lt()
    }
}

/// The vectors of an index in one piece of memory, `4 × dims` bytes each, the documents of a collection together.
#[derive(Debug, Clone, Default)]
pub struct Vectors {
    dims: usize,
    blocks: Vec<Block>,
    /// Key and passage of each row.
    rows: Vec<(u64, u32)>,
    collections: Vec<(String, Range<usize>)>,
}

impl Vectors {
    /// No vectors yet, of `dims` components.
    pub fn new(dims: usize) -> Self {
        Self { dims, ..Self::default() }
    }

    /// Adds the vector of passage `chunk` of document `key`. Its L2 norm must be 1 for scores to be cosines.
    ///
    /// Rows of a collection must follow each other, in the order of keys. Fails on another number of components
    /// and on one that is not finite.
    pub fn push(
        &mut self,
        collection: &str,
        key: u64,
        chunk: u32,
        vector: impl IntoIterator<Item = f32>,
    ) -> Result<()> {
        let start = self.blocks.len();
        let mut count = 0;
        for component in vector {
            if count % WIDTH == 0 {
                self.blocks.push(Block([0.0; WIDTH]));
            }
            if let Some(block) = self.blocks.last_mut() {
                block.0[count % WIDTH] = component;
            }
            count += 1;
        }
        if count != self.dims
            || self.blocks[start..].iter().any(|block| block.0.iter().any(|x| !x.is_finite()))
        {
            self.blocks.truncate(start);
            let what =
                format!("passage {chunk} of document {key} has {count} components, or one that is no number");
            return Err(Error::new(
                ErrorKind::Input,
                format!("{what}; the index has {} a vector", self.dims),
            )
            .with_hint("the index is damaged: move it away and make it anew"));
        }
        self.rows.push((key, chunk));
        match self.collections.last_mut() {
            Some((name, range)) if name == collection => range.end += 1,
            _ => self.collections.push((collection.to_string(), self.rows.len() - 1..self.rows.len())),
        }
        Ok(())
    }

    /// How many vectors there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Components of a vector.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// The `limit` documents whose best passage is nearest to `query`, best first; equal scores by key.
    ///
    /// With a `collection` only its documents are compared, so that the limit is filled from it; a collection
    /// without vectors gives no hits. Fails when the query has another number of components or one that is not
    /// finite.
    ///
    /// ```
    /// use rankgate::pipeline::vector::Vectors;
    /// let mut vectors = Vectors::new(2);
    /// vectors.push("notes", 1, 0, [1.0, 0.0])?;
    /// vectors.push("notes", 1, 1, [0.0, 1.0])?;
    /// vectors.push("notes", 2, 0, [0.8, 0.6])?;
    /// let hits = vectors.search(&[0.0, 1.0], 10, None)?;
    /// assert_eq!(hits.iter().map(|hit| (hit.key, hit.chunk)).collect::<Vec<_>>(), [(1, 1), (2, 0)]);
    /// # Ok::<(), rankgate::Error>(())
    /// ```
    pub fn search(&self, query: &[f32], limit: usize, collection: Option<&str>) -> Result<Vec<VectorHit>> {
        let blocks = self.query(query)?;
        let mut best = Vec::with_capacity(limit.min(self.len()) + 1);
        for (name, rows) in &self.collections {
            if collection.is_none_or(|wanted| wanted == name) {
                self.scan(&blocks, rows.clone(), limit, &mut best);
            }
        }
        Ok(best)
    }

    /// The best passage of each of the documents `keys`, in their order; a document without vectors is left out.
    ///
    /// Fails like [`search`](Self::search).
    pub fn nearest(&self, query: &[f32], keys: impl IntoIterator<Item = u64>) -> Result<Vec<VectorHit>> {
        let blocks = self.query(query)?;
        let mut found = Vec::new();
        for key in keys {
            let mut best = Vec::new();
            self.scan(&blocks, self.rows_of(key), 1, &mut best);
            found.extend(best);
        }
        Ok(found)
    }

    /// The vector of passage `chunk` of document `key`, `dims` components; `None` when it has none.
    pub fn vector(&self, key: u64, chunk: u32) -> Option<impl Iterator<Item = f32> + '_> {
        let row = self.rows_of(key).find(|&row| self.rows[row].1 == chunk)?;
        let width = self.dims.div_ceil(WIDTH);
        let blocks = &self.blocks[row * width..(row + 1) * width];
        Some(blocks.iter().flat_map(|block| block.0).take(self.dims))
    }

    /// The rows of a document.
    fn rows_of(&self, key: u64) -> Range<usize> {
        for (_, range) in &self.collections {
            let rows = &self.rows[range.clone()];
            let start = rows.partition_point(|row| row.0 < key);
            let count = rows[start..].partition_point(|row| row.0 == key);
            if count > 0 {
                return range.start + start..range.start + start + count;
            }
        }
        0..0
    }

    /// The query in blocks, if it can be compared with the vectors at all.
    fn query(&self, query: &[f32]) -> Result<Vec<Block>> {
        if query.len() != self.dims || query.iter().any(|component| !component.is_finite()) {
            let what =
                format!("the query's vector has {} components, the index has {}", query.len(), self.dims);
            return Err(Error::new(ErrorKind::Model, format!("{what}, and each must be a number")));
        }
        let mut blocks = vec![Block([0.0; WIDTH]); query.len().div_ceil(WIDTH)];
        for (block, part) in blocks.iter_mut().zip(query.chunks(WIDTH)) {
            block.0[..part.len()].copy_from_slice(part);
        }
        Ok(blocks)
    }

    fn scan(&self, query: &[Block], range: Range<usize>, limit: usize, best: &mut Vec<VectorHit>) {
        let dot = dot_product();
        let width = query.len();
        let vectors = self.blocks[range.start * width..range.end * width].chunks_exact(width.max(1));
        let mut rows = self.rows[range].iter().zip(vectors).peekable();
        while let Some((&(key, chunk), vector)) = rows.next() {
            let mut hit = VectorHit { key, chunk, score: dot(vector, query) };
            while let Some((&(_, chunk), vector)) = rows.next_if(|((next, _), _)| *next == key) {
                let score = dot(vector, query);
                if score > hit.score {
                    hit = VectorHit { key, chunk, score };
                }
            }
            if best.len() < limit || best.last().is_some_and(|last| hit.before(last)) {
                let place = best.partition_point(|other| other.before(&hit));
                best.insert(place, hit);
                best.truncate(limit);
            }
        }
    }
}

/// The fastest way to multiply two vectors of equal length that this machine has.
fn dot_product() -> fn(&[Block], &[Block]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has both features, as was just asked.
        return |a, b| unsafe { dot_avx2(a, b) };
    }
    dot_portable
}

/// Sums in lanes, which any compiler turns into vector instructions when it optimises.
fn dot_portable(a: &[Block], b: &[Block]) -> f32 {
    let mut sums = [0.0f32; WIDTH];
    for (Block(a), Block(b)) in a.iter().zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum()
}

/// Written with intrinsics, because test builds optimise too little to find these instructions by themselves.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_avx2(a: &[Block], b: &[Block]) -> f32 {
    use std::arch::x86_64::{
        _mm256_add_ps, _mm256_fmadd_ps, _mm256_load_ps, _mm256_setzero_ps, _mm256_store_ps,
    };
    let [mut s0, mut s1, mut s2, mut s3] = [_mm256_setzero_ps(); 4];
    let mut lanes = Block([0.0; WIDTH]);
    // SAFETY: a block is 32 floats at a multiple of 64 bytes, so each of the four loads and the store touches 8
    // floats inside it at a multiple of 32 bytes.
    unsafe {
        for (a, b) in a.iter().zip(b) {
            let (a, b) = (a.0.as_ptr(), b.0.as_ptr());
            s0 = _mm256_fmadd_ps(_mm256_load_ps(a), _mm256_load_ps(b), s0);
            s1 = _mm256_fmadd_ps(_mm256_load_ps(a.add(8)), _mm256_load_ps(b.add(8)), s1);
            s2 = _mm256_fmadd_ps(_mm256_load_ps(a.add(16)), _mm256_load_ps(b.add(16)), s2);
            s3 = _mm256_fmadd_ps(_mm256_load_ps(a.add(24)), _mm256_load_ps(b.add(24)), s3);
        }
        let sum = _mm256_add_ps(_mm256_add_ps(s0, s1), _mm256_add_ps(s2, s3));
        _mm256_store_ps(lanes.0.as_mut_ptr(), sum);
    }
    lanes.0[..8].iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random and are the same every time (xorshift).
    fn numbers(seed: u64) -> impl Iterator<Item = f32> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / 8_388_608.0 - 1.0
        })
    }

    #[test]
    fn search_agrees_with_a_plain_scan_at_any_length() {
        for dims in [1, 7, 31, 32, 33, 100, 384] {
            let mut source = numbers(dims as u64 + 1);
            let mut vectors = Vectors::new(dims);
            let mut plain: Vec<(u64, u32, Vec<f32>)> = Vec::new();
            for row in 0..200u64 {
                let vector: Vec<f32> = source.by_ref().take(dims).collect();
                vectors.push("c", row / 3, (row % 3) as u32, vector.clone()).expect("fits");
                plain.push((row / 3, (row % 3) as u32, vector));
            }
            let query: Vec<f32> = source.by_ref().take(dims).collect();
            let mut expected: Vec<(f64, u64, u32)> = plain
                .iter()
                .map(|(key, chunk, v)| {
                    (v.iter().zip(&query).map(|(a, b)| f64::from(a * b)).sum(), *key, *chunk)
                })
                .collect();
            expected.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mut seen = std::collections::HashSet::new();
            expected.retain(|(_, key, _)| seen.insert(*key));
            let hits = vectors.search(&query, 10, None).expect("searches");
            assert_eq!(hits.len(), 10);
            for (hit, (score, key, chunk)) in hits.iter().zip(expected) {
                assert_eq!((hit.key, hit.chunk), (key, chunk), "dims {dims}");
                assert!((f64::from(hit.score) - score).abs() < 1e-4, "dims {dims}: {} {score}", hit.score);
            }
        }
    }

    #[test]
    fn single_documents_and_vectors_are_found_again() {
        let mut vectors = Vectors::new(2);
        for (collection, key, chunk, vector) in [
            ("a", 2, 0, [1.0, 0.0]),
            ("a", 5, 0, [0.0, 1.0]),
            ("a", 5, 1, [0.6, 0.8]),
            ("b", 3, 0, [0.8, 0.6]),
        ] {
            vectors.push(collection, key, chunk, vector).expect("fits");
        }
        let hits = vectors.nearest(&[1.0, 0.0], [5, 4, 3]).expect("compares");
        assert_eq!(hits.iter().map(|hit| (hit.key, hit.chunk)).collect::<Vec<_>>(), [(5, 1), (3, 0)]);
        assert_eq!(vectors.vector(5, 1).expect("is there").collect::<Vec<_>>(), [0.6, 0.8]);
        assert!(vectors.vector(5, 2).is_none() && vectors.vector(9, 0).is_none());
    }

    #[test]
    fn both_kernels_agree() {
        let mut source = numbers(9);
        let mut block = || Block(std::array::from_fn(|_| source.next().unwrap_or_default()));
        let (a, b): (Vec<_>, Vec<_>) = (0..12).map(|_| (block(), block())).unzip();
        assert!((dot_product()(&a, &b) - dot_portable(&a, &b)).abs() < 1e-4);
    }

    #[test]
    fn equal_scores_are_in_the_order_of_keys_and_the_limit_cuts_there() {
        let mut vectors = Vectors::new(1);
        for key in [5, 3, 9, 1] {
            vectors.push("a", key, 0, [1.0]).expect("fits");
        }
        vectors.push("b", 2, 0, [1.0]).expect("fits");
        let keys = |limit, collection| -> Vec<u64> {
            let hits = vectors.search(&[1.0], limit, collection).expect("searches");
            hits.iter().map(|hit| hit.key).collect()
        };
        assert_eq!(keys(3, None), [1, 2, 3]);
        assert_eq!(keys(9, None), [1, 2, 3, 5, 9]);
        assert_eq!(keys(0, None), [0; 0]);
    }

    #[test]
    fn the_collection_is_chosen_before_the_best_are() {
        let mut vectors = Vectors::new(2);
        for key in 0..50 {
            vectors.push("loud", key, 0, [1.0, 0.0]).expect("fits");
        }
        vectors.push("quiet", 50, 0, [0.0, 1.0]).expect("fits");
        let hits = vectors.search(&[1.0, 0.0], 3, Some("quiet")).expect("searches");
        assert_eq!(hits, [VectorHit { key: 50, chunk: 0, score: 0.0 }]);
        assert_eq!(vectors.search(&[1.0, 0.0], 3, Some("absent")).expect("searches"), []);
    }

    #[test]
    fn vectors_that_do_not_fit_are_refused_and_change_nothing() {
        let mut vectors = Vectors::new(2);
        assert!(vectors.push("a", 1, 0, [1.0]).is_err());
        assert!(vectors.push("a", 1, 0, [1.0, f32::NAN]).is_err());
        assert!(vectors.is_empty());
        vectors.push("a", 1, 0, [1.0, 0.0]).expect("fits");
        assert!(vectors.search(&[1.0], 1, None).is_err());
        assert!(vectors.search(&[f32::INFINITY, 0.0], 1, None).is_err());
        assert_eq!(vectors.search(&[1.0, 0.0], 1, None).expect("searches")[0].score, 1.0);
    }
}
