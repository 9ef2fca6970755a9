//! How many threads candle computes with.
//!
//! candle has one pool a process. Its size is the machine's cores or the variable `CANDLE_NUM_THREADS`, read
//! once, and its threads spin while they wait for each other: where other work runs beside them, two can be many
//! times slower than one. Nothing in its interface asks for fewer, but what runs on a thread of the pool is not
//! divided further.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

use candle_core::utils::barrier_pool;

/// Runs `work`, with all threads of candle's pool if `threads` allows so many, else with one. So 0, which leaves
/// the choice to a model, is one thread: the gain of a second is small, and the loss on a busy machine is not.
pub(super) fn with<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    let helpers = barrier_pool().n_workers();
    if helpers == 0 || helpers < threads {
        return work();
    }
    alone(helpers, work)
}

/// Runs `work` on the pool's first thread, while this one sleeps and the others have nothing to do.
fn alone<R: Send>(helpers: usize, work: impl FnOnce() -> R + Send) -> R {
    let (done, finished) = mpsc::sync_channel(1);
    // Each is taken by one thread; they are behind locks because the pool shares one closure among all.
    let (work, finished, result) = (Mutex::new(Some((work, done))), Mutex::new(finished), Mutex::new(None));
    barrier_pool().execute(|thread| {
        if thread == 0 {
            if let Some((work, done)) = locked(&work).take() {
                // A panic inside the pool would leave it unusable. The receiver outlives this call.
                let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
            }
        } else if thread == helpers {
            *locked(&result) = locked(&finished).recv().ok();
        }
    });
    match result.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(Ok(result)) => result,
        Some(Err(panic)) => resume_unwind(panic),
        None => unreachable!("the pool runs every thread's share"),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_does_all_of_it_and_a_panic_goes_on() {
        let names = || std::thread::current().name().map(str::to_string);
        let here = names();
        let helpers = barrier_pool().n_workers();
        assert_eq!(with(helpers + 1, names), here, "all threads may run: the caller leads");
        if helpers > 0 {
            assert_eq!(with(1, names).as_deref(), Some("candle-bp-0"));
            let nested = with(1, || {
                let seen = Mutex::new(Vec::new());
                barrier_pool().execute_chunked(64, |_| seen.lock().expect("is free").push(names()));
                seen.into_inner().expect("is free")
            });
            assert_eq!(nested, [Some("candle-bp-0".to_string())], "not divided");
            assert!(catch_unwind(|| with(1, || panic!("on purpose"))).is_err());
            assert_eq!(with(1, || 7), 7, "and the pool still works");
        }
    }
}
