//! `turnpike tune`: says what holds a machine back and changes it with undo.
//!
//! `facts` reads a machine (through `turnpike_host`) or a recorded one. `findings` judges the facts
//! by its rows, and is pure, as are `plan`, which orders the changes that findings ask for, and
//! `placement`, whose plans put interrupts and workers on CPUs of their own. `journal` remembers
//! each change on the disk before it is made, and `steps` makes and undoes them. It must work
//! beside any server, and change nothing that the journal does not know.

mod change;
mod cli;
mod climb;
mod facts;
mod findings;
mod journal;
mod page;
mod placement;
mod plan;
mod report;
mod row;
mod steps;
mod system;
mod undo;

pub use cli::{main, usage};
pub use page::reference;
