//! Tests of jobs, of more jobs than the limits allow, and of abandoned jobs.

#![allow(clippy::unwrap_used)]

use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

fn pool(threads_max: usize, queued_max: usize) -> &'static WorkerPool {
    Box::leak(Box::new(WorkerPool::new(PoolLimits {
        name: "pool test",
        threads_max,
        queued_max,
    })))
}

/// A job that reports its start, and ends on a signal.
fn held(begun: &Sender<usize>, number: usize) -> (Sender<()>, impl FnOnce() -> usize + use<>) {
    let (release, held) = channel::<()>();
    let begun = begun.clone();
    let work = move || {
        begun.send(number).unwrap();
        let _ = held.recv();
        number
    };
    (release, work)
}

fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

fn two(begun: &Receiver<usize>) -> [usize; 2] {
    let mut two = [begun.recv().unwrap(), begun.recv().unwrap()];
    two.sort_unstable();
    two
}

#[test]
fn jobs_are_accepted_up_to_the_limits() {
    let pool = pool(2, 1);
    let (begins, begun) = channel();
    let (first_release, first) = held(&begins, 1);
    let (second_release, second) = held(&begins, 2);
    let (third_release, third) = held(&begins, 3);
    let first = pool.submit(first).unwrap();
    let second = pool.submit(second).unwrap();
    assert_eq!(two(&begun), [1, 2], "two threads at once");
    let third = pool.submit(third).unwrap();
    let refused = pool.submit(|| 4).err();
    assert!(matches!(refused, Some(PoolRefusal::Full)), "{refused:?}");
    drop(first_release);
    assert_eq!(wait_for(first), Some(1));
    assert_eq!(begun.recv().unwrap(), 3);
    drop((second_release, third_release));
    assert_eq!((wait_for(second), wait_for(third)), (Some(2), Some(3)));
    assert_eq!(wait_for(pool.submit(|| 5).unwrap()), Some(5));
}

#[test]
fn an_abandoned_job_leaves_its_place_and_is_not_run() {
    let pool = pool(1, 1);
    let (begins, begun) = channel();
    let (release, first) = held(&begins, 1);
    let (_second_release, second) = held(&begins, 2);
    let first = pool.submit(first).unwrap();
    assert_eq!(begun.recv().unwrap(), 1);
    let second = pool.submit(second).unwrap();
    assert!(pool.submit(|| 3).is_err());
    drop(second);
    let third = pool.submit(|| 3).unwrap();
    drop(release);
    assert_eq!((wait_for(first), wait_for(third)), (Some(1), Some(3)));
    assert!(begun.try_recv().is_err(), "the second job was not run");
}

#[test]
fn a_panic_affects_its_own_job_only() {
    let pool = pool(1, 1);
    let lost = pool.submit(|| -> usize { panic!("on purpose") }).unwrap();
    assert_eq!(wait_for(lost), None);
    assert_eq!(wait_for(pool.submit(|| 2).unwrap()), Some(2));
}

#[test]
fn its_threads_are_not_pinned_to_the_callers_cpu() {
    let everywhere = CpuSet::of_main_thread().unwrap();
    let pool = pool(1, 1);
    let own = everywhere.clone();
    let on_one = thread::spawn(move || {
        CpuSet::of(own.iter().next().unwrap())
            .pin_this_thread()
            .unwrap();
        wait_for(pool.submit(CpuSet::of_this_thread).unwrap())
    });
    assert_eq!(on_one.join().unwrap().unwrap().unwrap(), everywhere);
}

#[test]
fn threads_are_prepared_before_their_first_work() {
    thread_local! {
        static PREPARED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }
    let limits = *pool(1, 1).limits();
    let prepare: fn() = || PREPARED.set(PREPARED.get() + 1);
    let pool = Box::leak(Box::new(WorkerPool::new(limits).preparing_threads(prepare)));
    for _ in 0..2 {
        let prepared = pool.submit(|| PREPARED.get()).unwrap();
        assert_eq!(wait_for(prepared), Some(1));
    }
}

#[test]
fn a_job_without_a_result_is_run_and_counted() {
    let pool = pool(1, 1);
    let (begins, begun) = channel();
    let (release, first) = held(&begins, 1);
    let (_second_release, second) = held(&begins, 2);
    let first = move || assert_eq!(first(), 1);
    pool.spawn(first).unwrap();
    assert_eq!(begun.recv().unwrap(), 1);
    pool.spawn(move || {
        second();
    })
    .unwrap();
    assert_eq!(pool.waiting(), 1);
    assert!(matches!(pool.spawn(|| ()), Err(PoolRefusal::Full)));
    drop(release);
    assert_eq!(begun.recv().unwrap(), 2);
}
