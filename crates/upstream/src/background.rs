//! BackgroundTask on groups that goes by time and belongs to no request: names that are looked up
//! again, active checks. One thread of the serving process does it for all lanes.
//!
//! It is a thread of its own, since a lane enters its runtime only while it serves something that
//! waits, and a peer that hangs must not be looked at later because a lane is busy.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

/// Stack of the thread in bytes; nothing on it grows with the input.
const STACK_BYTES: usize = 512 * 1024;

/// A piece of such work: begun on the background thread's thread, dropped where it waits when the
/// background thread is told other work.
pub trait BackgroundTask: Send + Sync {
    /// The work, which may go on for ever.
    fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()>>>;
}

/// The background thread. There is one for all configurations: those that come later take it over.
#[derive(Default)]
pub struct BackgroundThread {
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    order: u64,
    /// Dropped, it ends the thread.
    stop: Option<oneshot::Sender<()>>,
}

impl BackgroundThread {
    /// Does this work from now on and nothing else. `order` tells configurations apart: the work
    /// of one that is not newer than what is done already is left alone, so that every lane may
    /// say what it has taken up.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn take_up(&self, order: u64, tasks: &[Arc<dyn BackgroundTask>]) -> io::Result<()> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if order <= current.order {
            return Ok(());
        }
        current.order = order;
        current.stop = None;
        if tasks.is_empty() {
            return Ok(());
        }
        let tasks = tasks.to_vec();
        let (stop, stopped) = oneshot::channel();
        thread::Builder::new()
            .name("upstream".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || run(tasks, stopped))?;
        current.stop = Some(stop);
        Ok(())
    }
}

fn run(tasks: Vec<Arc<dyn BackgroundTask>>, stopped: oneshot::Receiver<()>) {
    // Without a runtime nothing waits, so there is nothing to be done; peers stay as they are.
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
        return;
    };
    let set = LocalSet::new();
    for work in tasks {
        set.spawn_local(work.run());
    }
    // It never gets a word: that its sender is gone is what ends it.
    let _ = set.block_on(&runtime, stopped);
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::mpsc::{Sender, channel};

    use super::{BackgroundTask, BackgroundThread};

    /// Says when it begins and when it is dropped.
    struct Told(&'static str, Sender<&'static str>);

    struct Dropped(Sender<&'static str>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send("dropped");
        }
    }

    impl BackgroundTask for Told {
        fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()>>> {
            Box::pin(async move {
                let _dropped = Dropped(self.1.clone());
                let _ = self.1.send(self.0);
                std::future::pending::<()>().await;
            })
        }
    }

    #[test]
    fn newer_work_takes_the_place_of_older() {
        let (tell, told) = channel();
        let work = |name| vec![Arc::new(Told(name, tell.clone())) as Arc<dyn BackgroundTask>];
        let background = BackgroundThread::default();
        background.take_up(1, &work("one")).expect("a thread");
        assert_eq!(told.recv(), Ok("one"));
        background
            .take_up(1, &work("again"))
            .expect("no thread needed");
        background.take_up(2, &[]).expect("no thread needed");
        assert_eq!(told.recv(), Ok("dropped"));
        background
            .take_up(1, &work("old"))
            .expect("no thread needed");
        background.take_up(3, &work("three")).expect("a thread");
        assert_eq!(told.recv(), Ok("three"));
        drop(background);
        assert_eq!(told.recv(), Ok("dropped"));
    }
}
