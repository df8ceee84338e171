//! The tokens that a client is given for its next connection (RFC 9000 section 8.1.3), by which it
//! proves its address without another round trip.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quinn_proto::{TokenLog, TokenReuseError, ValidationTokenConfig};

/// How long a token is good for: as nginx's.
const LIFETIME: Duration = Duration::from_secs(600);

/// Tokens of a connection: a client that opens several proves its address for the others.
const SENT: u32 = 1;

/// Tokens of an age that are remembered. More are of no use, and their clients prove their
/// addresses by a round trip.
const USED_MAX: usize = 16 * 1024;

/// The tokens that clients of a process have shown: each is good once (RFC 9000 section 8.1.4).
#[derive(Clone, Default)]
pub struct UsedTokens(Arc<Mutex<Ages>>);

/// The tokens of the last two ages; one that is older has lost its validity.
#[derive(Default)]
struct Ages {
    /// The number of the newest age, each as long as tokens are good for.
    newest: u64,
    used: [HashSet<u128>; 2],
}

impl UsedTokens {
    /// How tokens are judged. `sends`: a connection gives its client one.
    pub(crate) fn rules(&self, sends: bool) -> ValidationTokenConfig {
        let mut rules = ValidationTokenConfig::default();
        let sent = if sends { SENT } else { 0 };
        rules.sent(sent).lifetime(LIFETIME);
        rules.log(Arc::new(self.clone()));
        rules
    }
}

impl TokenLog for UsedTokens {
    fn check_and_insert(
        &self,
        nonce: u128,
        issued: SystemTime,
        lifetime: Duration,
    ) -> Result<(), TokenReuseError> {
        let since = issued.duration_since(UNIX_EPOCH).unwrap_or_default();
        let age = since.as_secs() / lifetime.as_secs().max(1);
        let mut ages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while ages.newest < age {
            ages.used.swap(0, 1);
            ages.used[0] = HashSet::new();
            ages.newest = match ages.newest + 1 {
                next if next == age => age,
                // What was used before is older than two ages.
                _ => age - 1,
            };
        }
        let back = ages.newest - age;
        let used = usize::try_from(back).ok();
        let used = used.and_then(|back| ages.used.get_mut(back));
        let used = used.ok_or(TokenReuseError)?;
        if used.len() < USED_MAX && used.insert(nonce) {
            Ok(())
        } else {
            Err(TokenReuseError)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_once() {
        let log = UsedTokens::default();
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let age = LIFETIME.as_secs();
        // The token, the time when it was issued, and whether it is good.
        let cases = [
            (1, 10 * age, true),
            (1, 10 * age, false),
            (2, 10 * age + 1, true),
            (3, 11 * age, true),
            (2, 10 * age + 1, false),
            (4, 10 * age + 2, true),
            (5, 9 * age, false),
            (6, 20 * age, true),
            (3, 11 * age, false),
            (7, 19 * age, true),
            (7, 19 * age, false),
        ];
        for (nonce, seconds, expected) in cases {
            let shown = log.check_and_insert(nonce, at(seconds), LIFETIME);
            assert_eq!(shown.is_ok(), expected, "{nonce} of {seconds}");
        }
    }

    #[test]
    fn so_many_tokens_are_remembered() {
        let log = UsedTokens::default();
        let mut good = 0;
        for nonce in 0..USED_MAX as u128 + 5 {
            let shown = log.check_and_insert(nonce, UNIX_EPOCH, LIFETIME);
            good += usize::from(shown.is_ok());
        }
        assert_eq!(good, USED_MAX);
    }
}
