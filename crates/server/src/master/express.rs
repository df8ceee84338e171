//! The express lane's program: the master loads and attaches it, since it has the privilege, and
//! the serving process is given its memory.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use turnpike_express::{Attachment, Program, Refusal, Wish};
use turnpike_lane::log::{ErrorLog, Level};

use crate::channel::{EXPRESS_ARRAYS, EXPRESS_LINK, Extra};

/// The program, loaded and attached.
#[derive(Debug)]
pub(super) struct Express {
    wish: Wish,
    program: Program,
    attachments: Vec<Attachment>,
}

impl Express {
    /// The program as it is wished for: `old`, where that is there, else a new one. The log says
    /// what the kernel refuses.
    pub(super) fn place(
        old: Option<Arc<Express>>,
        wish: &Wish,
        log: &ErrorLog,
    ) -> Option<Arc<Express>> {
        if let Some(old) = old {
            if old.wish != *wish {
                log.event(
                    Level::Warn,
                    format_args!(
                        "\"express_interface\", \"express_mode\" and \"express_objects\" stay as \
                         they are until the server is started anew"
                    ),
                );
            }
            return Some(old);
        }
        match Express::new(wish, log) {
            Ok(express) => Some(Arc::new(express)),
            Err(refusal) => {
                say(log, &refusal);
                None
            }
        }
    }

    fn new(wish: &Wish, log: &ErrorLog) -> Result<Express, Refusal> {
        let program = Program::load(wish.objects)?;
        let mut attachments = Vec::new();
        for interface in &wish.interfaces {
            match program.attach(interface, wish.mode) {
                Ok(attachment) => {
                    let how = match attachment.is_native {
                        true => "in the driver",
                        false => "behind the driver (generic XDP)",
                    };
                    log.event(
                        Level::Notice,
                        format_args!("the express lane answers on \"{interface}\" {how}"),
                    );
                    attachments.push(attachment);
                }
                Err(refusal) => say(log, &refusal),
            }
        }
        Ok(Express {
            wish: wish.clone(),
            program,
            attachments,
        })
    }

    /// Copies of its memory and of what keeps it attached, for a bundle.
    ///
    /// # Errors
    /// Those of `dup(2)`.
    pub(super) fn extras(&self) -> io::Result<Vec<Extra>> {
        let extra = |name: &str, descriptor: OwnedFd| Extra {
            name: name.to_owned(),
            descriptor,
        };
        let arrays = self.program.arrays()?.into_iter();
        let mut extras: Vec<Extra> = EXPRESS_ARRAYS
            .iter()
            .zip(arrays)
            .map(|(name, array)| extra(name, array))
            .collect();
        for link in self.attachments.iter().flat_map(|known| &known.links) {
            extras.push(extra(EXPRESS_LINK, link.try_clone()?));
        }
        Ok(extras)
    }
}

/// Says of a configuration that is tested why the express lane would not work here. Whether another
/// program is on an interface is not judged: it may be that of the server that runs already.
pub(super) fn tell(wish: &Wish, log: &ErrorLog) {
    let found = Program::load(wish.objects).and_then(|_| {
        let mut interfaces = wish.interfaces.iter();
        interfaces.try_for_each(|name| turnpike_express::find_interface(name).map(|_| ()))
    });
    if let Err(refusal) = found {
        say(log, &refusal);
    }
}

fn say(log: &ErrorLog, refusal: &Refusal) {
    log.event(
        Level::Warn,
        format_args!("the express lane does not work: {refusal}; the lanes answer as ever"),
    );
}
