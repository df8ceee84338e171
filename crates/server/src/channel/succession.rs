//! The links between a serving process and the one that follows it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::bundle::Extra;
use super::codec::{Decoder, Encoder, Malformed};

/// What a bundle calls the link to the serving process before, which goes on with its flows of UDP.
const FLOWS_NAME: &str = "flows";

/// What a bundle calls the link to the serving process before, which gives its connections away.
const CONNECTIONS_NAME: &str = "connections";

/// One end of each link between a serving process and the one that follows it.
#[derive(Debug, Default)]
pub struct SuccessionLinks {
    /// For datagrams of flows that the process before goes on with.
    pub flows: Option<OwnedFd>,
    /// For connections that the process after takes.
    pub connections: Option<OwnedFd>,
}

impl SuccessionLinks {
    pub(crate) fn is_empty(&self) -> bool {
        self.flows.is_none() && self.connections.is_none()
    }

    /// The links as a serving process's first bundle brings them.
    pub(crate) fn into_extras(self) -> impl Iterator<Item = Extra> {
        let links = [
            (FLOWS_NAME, self.flows),
            (CONNECTIONS_NAME, self.connections),
        ];
        links.into_iter().filter_map(|(name, link)| {
            Some(Extra {
                name: name.to_owned(),
                descriptor: link?,
            })
        })
    }

    /// Takes the links out of a bundle's extras.
    pub(crate) fn take(extras: &mut Vec<Extra>) -> Self {
        let mut take = |name| {
            let place = extras.iter().position(|extra| extra.name == name)?;
            Some(extras.remove(place).descriptor)
        };
        Self {
            flows: take(FLOWS_NAME),
            connections: take(CONNECTIONS_NAME),
        }
    }

    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let links = [&self.flows, &self.connections].into_iter().flatten();
        links.map(AsFd::as_fd).collect()
    }

    pub(super) fn encode(&self, encoder: &mut Encoder) {
        for link in [&self.flows, &self.connections] {
            encoder.number(u64::from(link.is_some()));
        }
    }

    pub(super) fn decode(
        decoder: &mut Decoder<'_>,
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> Result<Self, Malformed> {
        let mut next = || match decoder.number()? {
            0 => Ok(None),
            _ => descriptors.next().map(Some).ok_or(Malformed),
        };
        Ok(Self {
            flows: next()?,
            connections: next()?,
        })
    }
}
