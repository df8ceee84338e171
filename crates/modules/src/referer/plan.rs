//! What the `valid_referers` in force in a location say.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use turnpike_conf::{Complaint, ConfError, Context, View, bytes_of};
use turnpike_http::plan::LocationIndex;
use turnpike_http::regex::{Case, Programs, Regex};

use crate::common::hostnames::Hostnames;

/// Pages that are welcome.
#[derive(Default)]
pub(super) struct Referers {
    /// Hosts, each with the path that pages must begin with, if any.
    pub(super) hosts: Hostnames<Option<Box<[u8]>>>,
    /// Patterns of server names, for the host alone.
    pub(super) server_patterns: Vec<Regex>,
    /// Patterns for all behind the scheme.
    pub(super) patterns: Vec<Regex>,
    /// Requests without the field are welcome.
    pub(super) none: bool,
    /// So are those whose field has no scheme: something between has blanked it.
    pub(super) blocked: bool,
}

/// The referers of every location that has any. Filled while a plan is built, then only read.
#[derive(Clone, Default)]
pub(super) struct ByLocation(pub(super) Arc<RwLock<HashMap<u32, Referers>>>);

impl ByLocation {
    pub(super) fn insert(&self, location: LocationIndex, referers: Referers) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(location.0, referers);
    }
}

impl Referers {
    /// Reads the directives of the nearest level that has any.
    pub(super) fn read(view: View<'_>, programs: &mut Programs) -> Result<Option<Self>, ConfError> {
        let entries = view.nearest_all("valid_referers");
        let Some(last) = entries.last() else {
            return Ok(None);
        };
        let mut referers = Self::default();
        let mut server_names = false;
        for entry in &entries {
            for word in entry.arguments.iter() {
                match word.text.as_str() {
                    "none" => referers.none = true,
                    "blocked" => referers.blocked = true,
                    "server_names" => server_names = true,
                    text => referers
                        .add(text, &view.place(entry.span), programs)
                        .map_err(|message| view.error(entry.span, message))?,
                }
            }
        }
        if server_names {
            referers
                .add_server_names(view, programs)
                .map_err(|message| view.error(last.span, message))?;
        }
        if (referers.none || referers.blocked) && referers.hosts.is_empty() {
            let message = "the \"none\" or \"blocked\" referers are specified in the \
                           \"valid_referers\" directive without any valid referer";
            return Err(view.error(last.span, message));
        }
        Ok(Some(referers))
    }

    fn add(&mut self, text: &str, place: &str, programs: &mut Programs) -> Result<(), Complaint> {
        match text.strip_prefix('~') {
            Some("") => Err(format!("empty regex in \"{text}\"").into()),
            Some(pattern) => {
                let regex = Regex::shared(pattern, Case::Ignored, place, programs)?;
                self.patterns.push(regex);
                Ok(())
            }
            None if text.is_empty() => Err(format!("invalid referer \"{text}\"").into()),
            None => match text.find('/') {
                Some(slash) => self.add_host(&text[..slash], Some(&text[slash..])),
                None => self.add_host(text, None),
            },
        }
    }

    fn add_host(&mut self, host: &str, path: Option<&str>) -> Result<(), Complaint> {
        let path = path.map(|path| bytes_of(path).into_boxed_slice());
        self.hosts
            .add(&bytes_of(host), path)
            .map_err(|refusal| refusal.complaint(host))
    }

    fn add_server_names(
        &mut self,
        view: View<'_>,
        programs: &mut Programs,
    ) -> Result<(), Complaint> {
        let Some(server) = view.enclosing(Context::Server) else {
            return Ok(());
        };
        let mut any = false;
        let names = server.own_all("server_name");
        for (own, word) in names.flat_map(|own| own.arguments.iter().map(move |word| (own, word))) {
            any = true;
            match word.text.strip_prefix('~') {
                Some(pattern) => {
                    let place = view.place(own.span);
                    let case = Case::of_server_name(pattern);
                    let regex = Regex::shared(pattern, case, &place, programs)?;
                    self.server_patterns.push(regex);
                }
                None => self.add_host(&word.text, None)?,
            }
        }
        if any { Ok(()) } else { self.add_host("", None) }
    }
}
