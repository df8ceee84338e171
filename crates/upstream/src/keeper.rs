//! Work on groups that goes by time and belongs to no request: names that are looked up again,
//! active checks. One thread of the serving process does it for all lanes.
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

/// A piece of such work: begun on the keeper's thread, dropped where it waits when the keeper is
/// told other work.
pub trait Work: Send + Sync {
    /// The work, which may go on for ever.
    fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()>>>;
}

/// The keeper. There is one for all configurations: those that come later take it over.
#[derive(Default)]
pub struct Keeper {
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    order: u64,
    /// Dropped, it ends the thread.
    stop: Option<oneshot::Sender<()>>,
}

impl Keeper {
    /// Does this work from now on and nothing else. `order` tells configurations apart: the work
    /// of one that is not newer than what is done already is left alone, so that every lane may
    /// say what it has taken up.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn take_up(&self, order: u64, works: &[Arc<dyn Work>]) -> io::Result<()> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if order <= current.order {
            return Ok(());
        }
        current.order = order;
        current.stop = None;
        if works.is_empty() {
            return Ok(());
        }
        let works = works.to_vec();
        let (stop, stopped) = oneshot::channel();
        thread::Builder::new()
            .name("upstream".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || run(works, stopped))?;
        current.stop = Some(stop);
        Ok(())
    }
}

fn run(works: Vec<Arc<dyn Work>>, stopped: oneshot::Receiver<()>) {
    // Without a runtime nothing waits, so there is nothing to be done; peers stay as they are.
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
        return;
    };
    let set = LocalSet::new();
    for work in works {
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

    use super::{Keeper, Work};

    /// Says when it begins and when it is dropped.
    struct Told(&'static str, Sender<&'static str>);

    struct Dropped(Sender<&'static str>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send("dropped");
        }
    }

    impl Work for Told {
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
        let work = |name| vec![Arc::new(Told(name, tell.clone())) as Arc<dyn Work>];
        let keeper = Keeper::default();
        keeper.take_up(1, &work("one")).expect("a thread");
        assert_eq!(told.recv(), Ok("one"));
        keeper.take_up(1, &work("again")).expect("no thread needed");
        keeper.take_up(2, &[]).expect("no thread needed");
        assert_eq!(told.recv(), Ok("dropped"));
        keeper.take_up(1, &work("old")).expect("no thread needed");
        keeper.take_up(3, &work("three")).expect("a thread");
        assert_eq!(told.recv(), Ok("three"));
        drop(keeper);
        assert_eq!(told.recv(), Ok("dropped"));
    }
}
