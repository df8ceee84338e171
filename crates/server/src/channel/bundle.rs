//! The bundle: everything that the serving process needs to serve a configuration.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use turnpike_conf::MemoryLoader;
use turnpike_express::Passed;
use turnpike_lane::steering::Level;
use turnpike_plan::environment::Capability;
use turnpike_plan::product::Product;

use super::Log;
use super::codec::{Decoder, Encoder, Malformed};
use crate::needs::Rights;
use crate::paths::{Paths, Places};

/// A listening socket at the place where it is to be served.
#[derive(Debug)]
pub struct ListeningSocket {
    /// Which `listen` it belongs to, by its place in what the plan gives.
    pub listen: usize,
    /// The opened socket's own number: the same one in two bundles is the same socket.
    pub gate: u64,
    /// The lane it is for; `None`: all lanes share it.
    pub lane: Option<usize>,
    /// How the kernel chooses it; `None`: by nothing of ours.
    pub steering: Option<Level>,
    /// The socket.
    pub descriptor: OwnedFd,
}

/// Numbers of sockets for checks begin here, where those of gates never come.
pub(crate) const CHECK_GATES_FROM: u64 = 1 << 32;

/// What a bundle calls the board on which lanes tell how they are.
pub(crate) const BOARD_NAME: &str = "board";

/// What a bundle calls the descriptors of the express lane's program, before the words that say
/// what they are.
const EXPRESS_NAME: &str = "express ";

/// What a bundle calls the memory that outlives the serving process.
pub(crate) const KEPT_NAME: &str = "kept";

/// What a bundle calls the memory with what commands have changed.
pub(crate) const HELD_NAME: &str = "held";

/// Another descriptor: what belongs to the gates (steering), or outlives the process.
#[derive(Debug)]
pub struct Extra {
    pub name: String,
    pub descriptor: OwnedFd,
}

/// A configuration on its way to the serving process.
#[derive(Debug)]
pub struct Bundle {
    /// Counts up with every configuration that a master sends.
    pub generation: u64,
    /// Where relative paths start.
    pub paths: Paths,
    /// The `-g` text.
    pub globals: Option<String>,
    /// What a serving process is given that starts with it.
    pub rights: Rights,
    /// Every file that was read, by path.
    pub sources: Vec<(PathBuf, Vec<u8>)>,
    pub listening_sockets: Vec<ListeningSocket>,
    /// The open log files.
    pub logs: Vec<Log>,
    /// Other descriptors that are passed.
    pub extras: Vec<Extra>,
}

/// The express lane's program, for a bundle.
pub(crate) fn express_extras(passed: Passed) -> impl Iterator<Item = Extra> {
    let name = format!("{EXPRESS_NAME}{}", passed.words);
    let descriptors = passed.descriptors.into_iter();
    descriptors.map(move |descriptor| Extra {
        name: name.clone(),
        descriptor,
    })
}

/// Takes the express lane's program out of a bundle's extras, where it is there.
pub(crate) fn take_express(extras: &mut Vec<Extra>) -> Option<Passed> {
    let is_express = |extra: &mut Extra| extra.name.starts_with(EXPRESS_NAME);
    let mut passed = Passed::default();
    for extra in extras.extract_if(.., is_express) {
        passed.words = extra.name[EXPRESS_NAME.len()..].to_owned();
        passed.descriptors.push(extra.descriptor);
    }
    (!passed.descriptors.is_empty()).then_some(passed)
}

impl Bundle {
    /// A loader that gives the bundle's texts.
    pub fn loader(&self) -> MemoryLoader {
        self.sources
            .iter()
            .map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect()
    }

    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let listening_sockets = self
            .listening_sockets
            .iter()
            .map(|listening| listening.descriptor.as_fd());
        let logs = self.logs.iter().map(|log| log.descriptor.as_fd());
        let extras = self.extras.iter().map(|extra| extra.descriptor.as_fd());
        listening_sockets.chain(logs).chain(extras).collect()
    }

    pub(super) fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.generation);
        encoder.path(&self.paths.prefix);
        encoder.path(&self.paths.configuration);
        encoder.number(u64::from(self.paths.embedded));
        encoder.option(self.paths.error_log.as_deref(), |encoder, path| {
            encoder.path(path);
        });
        encoder.number(u64::from(self.paths.product == Product::Nginx));
        encoder.number(self.paths.cpu_count as u64);
        encode_places(&self.paths.places, encoder);
        encoder.option(self.paths.user.as_deref(), |encoder, user| {
            encoder.bytes(user.as_bytes());
        });
        encoder.option(self.globals.as_deref(), |encoder, text| {
            encoder.bytes(text.as_bytes());
        });
        encode_rights(&self.rights, encoder);
        encoder.list(&self.sources, |encoder, (path, bytes)| {
            encoder.path(path);
            encoder.bytes(bytes);
        });
        encoder.list(&self.listening_sockets, |encoder, listening| {
            encoder.number(listening.listen as u64);
            encoder.number(listening.gate);
            encoder.option(listening.lane, |encoder, lane| encoder.number(*lane as u64));
            encoder.option(listening.steering, |encoder, level| {
                encoder.bytes(level.name().as_bytes());
            });
        });
        encoder.list(&self.logs, |encoder, log| encoder.path(&log.path));
        encoder.list(&self.extras, |encoder, extra| {
            encoder.bytes(extra.name.as_bytes());
        });
    }

    pub(super) fn decode(
        decoder: &mut Decoder<'_>,
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> Result<Bundle, Malformed> {
        Ok(Bundle {
            generation: decoder.number()?,
            paths: Paths {
                prefix: decoder.path()?,
                configuration: decoder.path()?,
                embedded: decoder.number()? != 0,
                given: None,
                error_log: decoder.option(Decoder::path)?,
                product: match decoder.number()? {
                    0 => Product::Turnpike,
                    _ => Product::Nginx,
                },
                cpu_count: index(decoder.number()?)?,
                places: decode_places(decoder)?,
                user: decoder.option(Decoder::text)?,
            },
            globals: decoder.option(Decoder::text)?,
            rights: decode_rights(decoder)?,
            sources: decoder.list(|decoder| Ok((decoder.path()?, decoder.bytes()?.to_vec())))?,
            listening_sockets: decoder.list(|decoder| {
                Ok(ListeningSocket {
                    listen: index(decoder.number()?)?,
                    gate: decoder.number()?,
                    lane: decoder.option(|decoder| index(decoder.number()?))?,
                    steering: decoder.option(decode_level)?,
                    descriptor: descriptors.next().ok_or(Malformed)?,
                })
            })?,
            logs: decode_logs(decoder, descriptors)?,
            extras: decoder.list(|decoder| {
                let name = decoder.text()?;
                Ok(Extra {
                    name,
                    descriptor: descriptors.next().ok_or(Malformed)?,
                })
            })?,
        })
    }
}

/// The number of `CAP_NET_RAW` on the way.
const NET_RAW: u64 = 1;

fn encode_places(places: &Places, encoder: &mut Encoder) {
    let (number, folder) = match places {
        Places::Prefix => (0, None),
        Places::Nginx => (1, None),
        Places::Package => (2, None),
        Places::Unpackaged => (3, None),
        Places::Folder(folder) => (4, Some(folder)),
    };
    encoder.number(number);
    encoder.option(folder, |encoder, folder| encoder.path(folder));
}

fn decode_places(decoder: &mut Decoder<'_>) -> Result<Places, Malformed> {
    let number = decoder.number()?;
    match (number, decoder.option(Decoder::path)?) {
        (0, None) => Ok(Places::Prefix),
        (1, None) => Ok(Places::Nginx),
        (2, None) => Ok(Places::Package),
        (3, None) => Ok(Places::Unpackaged),
        (4, Some(folder)) => Ok(Places::Folder(folder)),
        _ => Err(Malformed),
    }
}

fn encode_rights(rights: &Rights, encoder: &mut Encoder) {
    let folders: Vec<&Path> = rights.folders.iter().map(PathBuf::as_path).collect();
    encoder.list(&folders, |encoder, folder| encoder.path(folder));
    let capabilities: Vec<Capability> = rights.capabilities.iter().copied().collect();
    encoder.list(&capabilities, |encoder, capability| {
        encoder.number(match capability {
            Capability::NetRaw => NET_RAW,
        });
    });
}

fn decode_rights(decoder: &mut Decoder<'_>) -> Result<Rights, Malformed> {
    let folders = decoder.list(Decoder::path)?;
    let capabilities = decoder.list(|decoder| match decoder.number()? {
        NET_RAW => Ok(Capability::NetRaw),
        _ => Err(Malformed),
    })?;
    Ok(Rights {
        folders: folders.into_iter().collect(),
        capabilities: capabilities.into_iter().collect(),
    })
}

fn decode_level(decoder: &mut Decoder<'_>) -> Result<Level, Malformed> {
    let name = decoder.text()?;
    let mut levels = Level::ALL.into_iter();
    levels.find(|level| level.name() == name).ok_or(Malformed)
}

pub(super) fn decode_logs(
    decoder: &mut Decoder<'_>,
    descriptors: &mut impl Iterator<Item = OwnedFd>,
) -> Result<Vec<Log>, Malformed> {
    decoder.list(|decoder| {
        let path = decoder.path()?;
        Ok(Log {
            path,
            descriptor: descriptors.next().ok_or(Malformed)?,
        })
    })
}

fn index(number: u64) -> Result<usize, Malformed> {
    usize::try_from(number).map_err(|_| Malformed)
}
