//! The program with all that keeps it in place, and its way from one process to another: to the
//! serving process, to the master of another binary, and back from a serving process whose master
//! is gone.

use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use crate::memory::{ARRAY_COUNT, Memory, read_proof};
use crate::program::{
    Attachment, CODE_COUNT, Mode, Program, ProgramSettings, Refusal, object_digest,
};
use crate::proof::Counts;

/// The form of [`Passed::words`] and of the program's settings. Another one is not understood.
const FORM: &str = "2";

/// A loaded program, and where it is attached.
#[derive(Debug)]
pub struct Installation {
    wish: ProgramSettings,
    program: Program,
    /// The digest of the program's object: another binary may have another one.
    digest: String,
    /// Told from every other loaded program by it.
    id: String,
    /// One for each interface of the wish.
    places: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    interface: String,
    attachment: Option<Attachment>,
    /// What the program sends from the driver has not arrived.
    distrusts_driver: bool,
}

impl Place {
    /// How the program is to be attached; `None`: not at all for now.
    fn mode(&self, wished: Mode) -> Option<Mode> {
        match (wished, self.distrusts_driver) {
            (Mode::Native, true) => None,
            (Mode::Auto, true) => Some(Mode::Generic),
            (mode, _) => Some(mode),
        }
    }

    fn answers(&self) -> bool {
        self.attachment.as_ref().is_some_and(Attachment::answers)
    }

    fn runs_in_driver(&self) -> bool {
        let driver = self
            .attachment
            .as_ref()
            .and_then(|attachment| attachment.driver.as_ref());
        driver.is_some_and(|(_, is_native)| *is_native)
    }
}

/// An installation on its way to another process.
#[derive(Debug, Default)]
pub struct Passed {
    /// What it is, in words without line feeds.
    pub words: String,
    /// Copies of its descriptors, in the order that the words say.
    pub descriptors: Vec<OwnedFd>,
}

/// What became of an attempt to attach the program.
#[derive(Debug)]
pub struct Attempt {
    pub interface: String,
    /// Whether the program runs in the driver there, or why it does not.
    pub outcome: Result<bool, Refusal>,
}

impl Installation {
    /// Loads the program, attached nowhere yet.
    ///
    /// # Errors
    /// Why the kernel does not take it.
    pub fn new(wish: &ProgramSettings) -> Result<Installation, Refusal> {
        let mut id = [0; 8];
        aws_lc_rs::rand::fill(&mut id).map_err(|_| Refusal::NotSupported)?;
        let places = wish.interfaces.iter().map(|interface| Place {
            interface: interface.clone(),
            attachment: None,
            distrusts_driver: false,
        });
        Ok(Installation {
            program: Program::load(wish.objects)?,
            digest: object_digest(),
            id: format!("{:016x}", u64::from_ne_bytes(id)),
            places: places.collect(),
            wish: wish.clone(),
        })
    }

    /// What it was made for.
    pub fn wish(&self) -> &ProgramSettings {
        &self.wish
    }

    /// Whether its program is the one of this binary.
    pub fn is_of_this_binary(&self) -> bool {
        self.digest == object_digest()
    }

    /// Whether the program answers at every interface of the wish where it may.
    pub fn is_complete(&self) -> bool {
        let mut places = self.places.iter();
        places.all(|place| place.answers() || place.mode(self.wish.mode).is_none())
    }

    /// Whether the program runs in any driver.
    pub fn runs_in_driver(&self) -> bool {
        self.places.iter().any(Place::runs_in_driver)
    }

    /// What the program has counted that tells whether its answers arrive.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn proof_counts(&self) -> io::Result<Counts> {
        read_proof(self.program.arrays()[2].as_fd())
    }

    /// Takes the program off every driver; the next [`Installation::attach`] attaches it behind
    /// them where the wish permits that.
    pub fn leave_drivers(&mut self) {
        for place in self
            .places
            .iter_mut()
            .filter(|place| place.runs_in_driver())
        {
            place.distrusts_driver = true;
            if let Some(attachment) = &mut place.attachment {
                attachment.detach_driver();
            }
        }
    }

    /// Takes the program off where it runs behind a driver that it was taken off; the next
    /// [`Installation::attach`] tries the driver again.
    pub fn trust_drivers(&mut self) {
        for place in self
            .places
            .iter_mut()
            .filter(|place| place.distrusts_driver)
        {
            place.distrusts_driver = false;
            if let Some(attachment) = &mut place.attachment {
                attachment.detach_driver();
            }
        }
    }

    /// Whether anything of it is attached anywhere.
    pub fn is_attached(&self) -> bool {
        self.places.iter().any(|place| place.attachment.is_some())
    }

    /// Attaches the program where it does not answer yet.
    pub fn attach(&mut self) -> Vec<Attempt> {
        let (program, wished) = (&self.program, self.wish.mode);
        let missing = self.places.iter_mut().filter(|place| !place.answers());
        let attach = |place: &mut Place| {
            let mode = place.mode(wished)?;
            Some(Attempt {
                interface: place.interface.clone(),
                outcome: program.attach(&place.interface, mode, &mut place.attachment),
            })
        };
        missing.filter_map(attach).collect()
    }

    /// Takes the place of `before` at the interfaces that both have, without a moment in which
    /// neither is there. Connections that have begun there are handed over by this one.
    ///
    /// # Errors
    /// Those of bpf(2) and dup(2).
    pub fn replace(&mut self, before: &Installation) -> io::Result<()> {
        let settings = |installation: &Installation| installation.program.arrays()[1].try_clone();
        Memory::copy_settings(settings(before)?.as_fd(), settings(self)?.as_fd())?;
        let mode = self.wish.mode;
        for place in &mut self.places {
            let mut others = before.places.iter();
            let other = others.find(|other| other.interface == place.interface);
            let Some(attachment) = other.and_then(|other| other.attachment.as_ref()) else {
                continue;
            };
            let driver = attachment.driver.as_ref();
            let driver = driver.filter(|(_, is_native)| mode.permits(*is_native));
            let attachment = Attachment {
                ingress: attachment.ingress.try_clone()?,
                driver: match driver {
                    Some((link, is_native)) => Some((link.try_clone()?, *is_native)),
                    None => None,
                },
            };
            // Where the interface is gone it fails, and the next attempt finds that.
            if self.program.replace(&attachment).is_ok() {
                place.attachment = Some(attachment);
            }
        }
        Ok(())
    }

    /// Puts its own program back where another one may have taken its place.
    pub fn renew(&self) {
        for attachment in self
            .places
            .iter()
            .filter_map(|place| place.attachment.as_ref())
        {
            // It fails where the interface is gone; a later attempt to attach it finds that.
            let _ = self.program.replace(attachment);
        }
    }

    /// Answers nowhere any more. Connections that have begun are still handed over.
    pub fn detach_drivers(&mut self) {
        let places = self.places.iter_mut();
        for attachment in places.filter_map(|place| place.attachment.as_mut()) {
            attachment.detach_driver();
        }
    }

    /// Leaves nothing attached, whoever has copies of the links.
    pub fn detach(&mut self) {
        let places = self.places.iter_mut();
        for attachment in places.filter_map(|place| place.attachment.take()) {
            attachment.detach();
        }
    }

    /// Copies for another process.
    ///
    /// # Errors
    /// Those of dup(2).
    pub fn pass(&self) -> io::Result<Passed> {
        let mode = self.wish.mode.name();
        let (digest, id, objects) = (&self.digest, &self.id, self.wish.objects);
        let mut words = format!("{FORM} {digest} {id} {objects} {mode}");
        let own = self.program.arrays().iter().chain(self.program.codes());
        let mut links = Vec::new();
        for place in &self.places {
            let state = match &place.attachment {
                None => State::Absent,
                Some(attachment) => {
                    links.push(&attachment.ingress);
                    links.extend(attachment.driver.as_ref().map(|(link, _)| link));
                    match attachment.driver {
                        None => State::Ingress,
                        Some((_, true)) => State::Native,
                        Some((_, false)) => State::Generic,
                    }
                }
            };
            // An interface's name has no colon and no space.
            let _ = write!(words, " {}:{}", place.interface, state.name());
        }
        let descriptors = own.chain(links).map(OwnedFd::try_clone);
        Ok(Passed {
            words,
            descriptors: descriptors.collect::<io::Result<_>>()?,
        })
    }

    /// What another process has passed; `None`: it is of a form that this binary does not
    /// understand.
    pub fn take(passed: Passed) -> Option<Installation> {
        let mut words = passed.words.split(' ');
        let mut descriptors = passed.descriptors.into_iter();
        (words.next()? == FORM).then_some(())?;
        let [digest, id] = [words.next()?, words.next()?].map(str::to_owned);
        let objects = words.next()?.parse().ok()?;
        let mode = Mode::of(words.next()?)?;
        let mut next = || descriptors.next();
        let arrays: [OwnedFd; ARRAY_COUNT] = [next()?, next()?, next()?, next()?, next()?];
        let codes: [OwnedFd; CODE_COUNT] = [next()?, next()?];
        let mut places = Vec::new();
        for word in words {
            let (interface, state) = word.split_once(':')?;
            let attachment = match State::of(state)? {
                State::Absent => None,
                state => Some(Attachment {
                    ingress: descriptors.next()?,
                    driver: match state {
                        State::Native => Some((descriptors.next()?, true)),
                        State::Generic => Some((descriptors.next()?, false)),
                        State::Absent | State::Ingress => None,
                    },
                }),
            };
            let interface = interface.to_owned();
            places.push(Place {
                interface,
                attachment,
                distrusts_driver: false,
            });
        }
        descriptors.next().is_none().then_some(())?;
        let interfaces = places.iter().map(|place| place.interface.clone());
        Some(Installation {
            wish: ProgramSettings {
                interfaces: interfaces.collect(),
                mode,
                objects,
            },
            program: Program::taken(arrays, codes),
            digest,
            id,
            places,
        })
    }
}

impl Passed {
    /// Maps the memory of the program.
    ///
    /// # Errors
    /// Those of mmap(2); `InvalidData`: it is of a form that this binary does not understand.
    pub fn memory(&self) -> io::Result<Memory> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let arrays: &[OwnedFd] = self.descriptors.get(..ARRAY_COUNT).ok_or_else(invalid)?;
        let arrays: &[OwnedFd; ARRAY_COUNT] = arrays.try_into().map_err(|_| invalid())?;
        Memory::map(arrays.each_ref().map(|array| array.as_fd()))
    }

    /// Whether both are of one loaded program, and have one memory.
    pub fn is_same_program(&self, other: &Passed) -> bool {
        let program = |passed: &Passed| {
            let words = passed.words.split(' ').take(3);
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        program(self) == program(other)
    }

    /// A copy.
    ///
    /// # Errors
    /// Those of dup(2).
    pub fn try_clone(&self) -> io::Result<Passed> {
        let descriptors = self.descriptors.iter().map(OwnedFd::try_clone);
        Ok(Passed {
            words: self.words.clone(),
            descriptors: descriptors.collect::<io::Result<_>>()?,
        })
    }
}

/// What of the program is attached to an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Absent,
    /// Only what takes connections over.
    Ingress,
    Native,
    Generic,
}

impl State {
    const ALL: [State; 4] = [State::Absent, State::Ingress, State::Native, State::Generic];

    fn name(self) -> &'static str {
        match self {
            State::Absent => "absent",
            State::Ingress => "ingress",
            State::Native => "native",
            State::Generic => "generic",
        }
    }

    fn of(name: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.name() == name)
    }
}
