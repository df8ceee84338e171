//! `upstream_list` and `set_hashed_upstream` of the module set_misc: a name out of a list, by the
//! hash of a text.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use turnpike_conf::{Complaint, Entry, bytes_of};

/// Names of upstream servers, each as often as its weight says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UpstreamList {
    /// Each name, and the sum of the weights up to it.
    names: Vec<(u32, Box<[u8]>)>,
}

/// The lists of a configuration so far, by name in lower case. A request may name its list, which
/// can stand behind the directive that uses it.
#[derive(Clone, Default)]
pub(super) struct UpstreamLists(Arc<RwLock<HashMap<Vec<u8>, Arc<UpstreamList>>>>);

impl UpstreamLists {
    /// Reads an `upstream_list` and keeps it.
    ///
    /// # Errors
    /// The module's words for a list that is none, or one whose name is taken.
    pub(super) fn define(&self, entry: &Entry) -> Result<(), Complaint> {
        let name = entry.argument(0);
        let words = entry.arguments.iter().skip(1);
        let list = UpstreamList::read(words.map(|word| word.text.as_str()))?;
        let mut lists = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match lists.insert(bytes_of(name).to_ascii_lowercase(), Arc::new(list)) {
            None => Ok(()),
            Some(_) => Err(format!("duplicate upstream list name \"{name}\"").into()),
        }
    }

    /// The list of a name, in any case.
    pub(super) fn find(&self, name: &[u8]) -> Option<Arc<UpstreamList>> {
        let lists = self.0.read().unwrap_or_else(PoisonError::into_inner);
        lists.get(&name.to_ascii_lowercase()).cloned()
    }
}

impl UpstreamList {
    /// Reads `NAME` or `WEIGHT:NAME`, once or more.
    ///
    /// # Errors
    /// The module's words.
    pub(super) fn read<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, Complaint> {
        let mut sum = 0_u32;
        let names = words.map(|word| {
            let rest = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
            let digits = &word[..word.len() - rest.len()];
            let incorrect = || format!("upstream list not correct format \"{word}\"");
            let (weight, name) = match (digits, rest.strip_prefix(':')) {
                ("", _) => (1, word),
                (_, Some(name)) => (digits.parse().map_err(|_| incorrect())?, name),
                _ if rest.is_empty() => {
                    return Err(format!("upstream list just consists of number \"{word}\""));
                }
                _ => return Err(incorrect()),
            };
            sum = sum.checked_add(weight).ok_or_else(incorrect)?;
            Ok((sum, bytes_of(name).into()))
        });
        let names = names.collect::<Result<_, _>>()?;
        Ok(Self { names })
    }

    /// The name for a text; empty where all weights are zero.
    pub(super) fn choose(&self, text: &[u8]) -> &[u8] {
        let sum = self.names.last().map_or(0, |(sum, _)| *sum);
        let Some(place) = hash(text).checked_rem(sum) else {
            return &[];
        };
        let at = self.names.partition_point(|(sum, _)| *sum <= place);
        self.names.get(at).map_or(&[], |(_, name)| name)
    }
}

/// nginx's hash of keys in any case, of which the module takes the lower half.
fn hash(text: &[u8]) -> u32 {
    text.iter().fold(0, |hash: u32, byte| {
        let byte = byte.to_ascii_lowercase();
        hash.wrapping_mul(31).wrapping_add(u32::from(byte))
    })
}
