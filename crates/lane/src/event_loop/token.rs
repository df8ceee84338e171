//! Tokens of the lane's epoll instance: each names what an event is about, and whose it is.

/// The protocol of a lane that a gate, a socket or a flow belongs to, by its number among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owner(pub u8);

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A parked connection.
    Parked(u32),
    /// The gate at this place among those that the lane watches.
    Gate(u32),
    /// A watched socket, by its place in the registry.
    Watched(u32),
    /// A socket that a protocol has given a number of its own.
    Numbered(Owner, u64),
    /// The lane's mailbox.
    Mailbox,
}

/// The bits of a token that say what kind it is, at its upper end.
const KIND_BITS: u32 = 3;
/// The bits below them that say whose it is.
const OWNER_BITS: u32 = 3;
/// The other bits: a place or a number.
pub(super) const NUMBER_BITS: u32 = u64::BITS - KIND_BITS - OWNER_BITS;

// Parked connections are most: their tokens are their places.
const PARKED: u64 = 0;
const GATE: u64 = 1;
const WATCHED: u64 = 2;
const NUMBERED: u64 = 3;
const MAILBOX: u64 = 4;

impl Owner {
    /// How many protocols a lane may have.
    pub const COUNT_MAX: usize = 1 << OWNER_BITS;
}

impl Token {
    /// The token as epoll keeps it.
    pub(super) fn encode(self) -> u64 {
        let (kind, owner, number) = match self {
            Self::Parked(place) => (PARKED, Owner::default(), u64::from(place)),
            Self::Gate(place) => (GATE, Owner::default(), u64::from(place)),
            Self::Watched(place) => (WATCHED, Owner::default(), u64::from(place)),
            Self::Numbered(owner, number) => (NUMBERED, owner, number),
            Self::Mailbox => (MAILBOX, Owner::default(), 0),
        };
        debug_assert!(number >> NUMBER_BITS == 0 && usize::from(owner.0) < Owner::COUNT_MAX);
        kind << (u64::BITS - KIND_BITS) | u64::from(owner.0) << NUMBER_BITS | number
    }

    /// What epoll has kept.
    pub(super) fn decode(encoded: u64) -> Self {
        let number = encoded & ((1 << NUMBER_BITS) - 1);
        match encoded >> (u64::BITS - KIND_BITS) {
            PARKED => Self::Parked(number as u32),
            GATE => Self::Gate(number as u32),
            WATCHED => Self::Watched(number as u32),
            NUMBERED => {
                let owner = encoded >> NUMBER_BITS & ((1 << OWNER_BITS) - 1);
                Self::Numbered(Owner(owner as u8), number)
            }
            _ => Self::Mailbox,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NUMBER_BITS, Owner, Token};

    #[test]
    fn tokens_come_back_as_they_were_given() {
        let last = Owner(Owner::COUNT_MAX as u8 - 1);
        let mut seen = Vec::new();
        for token in [
            Token::Parked(0),
            Token::Parked(u32::MAX),
            Token::Gate(0),
            Token::Gate(u32::MAX),
            Token::Watched(0),
            Token::Watched(u32::MAX),
            Token::Numbered(Owner(0), 0),
            Token::Numbered(Owner(1), 0),
            Token::Numbered(last, (1 << NUMBER_BITS) - 1),
            Token::Mailbox,
        ] {
            let encoded = token.encode();
            assert_eq!(Token::decode(encoded), token);
            assert!(!seen.contains(&encoded), "{token:?}");
            seen.push(encoded);
        }
    }
}
