//! Sessions with servers: what families that pass requests on say of them in this family's words.

use std::sync::Arc;

use rustls::crypto::SupportedKxGroup;
use rustls::{KeyLog, SupportedCipherSuite, SupportedProtocolVersion};
use turnpike_conf::{ConfError, Entry, View};
use turnpike_plan::builder::Builder;

use super::commands::Commands;
use super::key_log::key_log;
use super::offered::{self, Listed};

/// The list of cipher suites that is the default; the library's own order stands for it.
const CIPHERS_DEFAULT: &str = "DEFAULT";

/// The directives of a family.
pub(crate) struct PeerDirectives<'a> {
    /// `..._ssl_ciphers`.
    pub(crate) ciphers: Option<&'a Entry>,
    /// `..._ssl_conf_command`.
    pub(crate) commands: Vec<&'a Entry>,
    /// `..._ssl_key_log`.
    pub(crate) key_log: Option<&'a Entry>,
    /// The versions that other directives let be spoken.
    pub(crate) versions: Vec<&'static SupportedProtocolVersion>,
}

/// What the directives mean.
pub(crate) struct PeerOffers<'a> {
    /// The certificate and the key that commands name.
    pub(crate) pair: Option<[&'a Entry; 2]>,
    /// The versions that commands let be spoken.
    pub(crate) versions: Vec<&'static SupportedProtocolVersion>,
    /// The best first; `None`: those of the library.
    pub(crate) suites: Option<Vec<SupportedCipherSuite>>,
    /// The best first; `None`: those of the library.
    pub(crate) groups: Option<Vec<&'static dyn SupportedKxGroup>>,
    pub(crate) key_log: Option<Arc<dyn KeyLog>>,
}

impl<'a> PeerDirectives<'a> {
    /// Reads them.
    ///
    /// # Errors
    /// What is unknown or not supported, and files that cannot be opened.
    pub(crate) fn read<S>(
        self,
        view: View<'a>,
        builder: &mut Builder<'_, S>,
    ) -> Result<PeerOffers<'a>, ConfError> {
        let commands = Commands::read(view, builder, self.commands)?;
        let mut versions = self.versions;
        versions.retain(|version| {
            let is_new = **version == rustls::version::TLS13;
            commands.allows(if is_new { 3 } else { 2 })
        });
        let chooses = |entry: &Entry| entry.argument(0) != CIPHERS_DEFAULT;
        let named = self.ciphers.filter(|entry| chooses(entry));
        let has_suites =
            named.is_some() || commands.ciphers.is_some() || commands.ciphersuites.is_some();
        let suites = if has_suites {
            let listed = Listed {
                entry: named,
                default: CIPHERS_DEFAULT,
            };
            Some(offered::cipher_suites(
                view,
                builder,
                listed,
                (&versions, &commands),
            )?)
        } else {
            None
        };
        let groups = match commands.groups {
            None => None,
            Some(_) => {
                let listed = Listed {
                    entry: None,
                    default: "auto",
                };
                Some(offered::groups(view, builder, listed, &commands)?)
            }
        };
        let key_log = match self.key_log {
            Some(entry) => Some(key_log(view, builder, entry)?),
            None => None,
        };
        Ok(PeerOffers {
            pair: commands.pair(view)?,
            versions,
            suites,
            groups,
            key_log,
        })
    }
}
