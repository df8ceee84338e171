//! From rules to the text of a configuration.

mod access;
mod external_auth;
mod gateway;
mod gateway_filters;
mod gateway_stream;
mod groups;
mod http;
mod location;
mod pass;
mod server;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::path::PathBuf;

use crate::certificates::{Files, write_files};
use crate::findings::{Finding, Level, Subject};
use crate::gateway::{Analysis, analyse};
use crate::objects::Objects;
use crate::options::Options;
use crate::rules::{self, CATCH_ALL, Rules};
use crate::settings::Settings;
use crate::text::Text;

use groups::Groups;

/// Objects that are left out, since the server refused what came of them.
#[derive(Clone, Debug, Default)]
pub struct Without {
    pub objects: BTreeSet<Subject>,
}

/// A configuration with all that it needs.
#[derive(Clone, Debug)]
pub struct Rendering {
    /// The text of the main file.
    pub configuration: String,
    /// The other files, by the paths that the text names.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// The servers of the groups that have files of state, by the groups' names.
    pub groups: BTreeMap<String, Vec<String>>,
    /// What does not work, or not as written.
    pub findings: Vec<Finding>,
    /// Objects that are left out, since the server refused what came of them.
    pub refused: BTreeSet<Subject>,
    /// The Ingresses that are served, by namespace and name.
    pub served: Vec<(String, String)>,
    /// Lines of the text, the first being 1, that are an object's own.
    pub(crate) owners: Vec<(Range<usize>, Subject)>,
}

impl Rendering {
    /// Writes the other files, each for its owner only.
    ///
    /// # Errors
    /// The path and the system's words.
    pub fn write_files(&self) -> Result<(), String> {
        write_files(&self.files)
    }

    /// The object whose line this is; the innermost if there are several.
    pub(crate) fn owner(&self, line: usize) -> Option<&Subject> {
        let owners = self
            .owners
            .iter()
            .filter(|(lines, _)| lines.contains(&line));
        owners
            .min_by_key(|(lines, _)| lines.len())
            .map(|(_, owner)| owner)
    }
}

/// What is known while a configuration is written.
pub(crate) struct Renderer<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) options: &'a Options,
    pub(crate) settings: &'a Settings,
    pub(crate) without: &'a Without,
    pub(crate) files: Files,
    pub(crate) findings: Vec<Finding>,
    pub(crate) groups: Groups,
    /// What locations need in `http`: maps and zones.
    pub(crate) shared: Text,
    /// The names of zones in `shared`.
    pub(crate) zones: BTreeSet<String>,
    /// The ports of the container that are Gateways', with those that clients know.
    pub(crate) gateway_ports: BTreeMap<u16, u16>,
    /// The servers of the groups of `stream` that have files of state.
    pub(crate) stream_states: BTreeMap<String, Vec<String>>,
    numbers: usize,
}

impl<'a> Renderer<'a> {
    fn new(
        objects: &'a Objects,
        options: &'a Options,
        settings: &'a Settings,
        without: &'a Without,
        findings: Vec<Finding>,
    ) -> Renderer<'a> {
        Renderer {
            objects,
            options,
            settings,
            without,
            files: Files {
                folder: options.files.clone(),
                contents: BTreeMap::new(),
            },
            findings,
            groups: Groups::default(),
            shared: Text::inside(),
            zones: BTreeSet::new(),
            gateway_ports: BTreeMap::new(),
            stream_states: BTreeMap::new(),
            numbers: 0,
        }
    }

    /// A number that no other name of this rendering has.
    pub(crate) fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    pub(crate) fn find(&mut self, subject: &Subject, level: Level, text: impl Into<String>) {
        self.findings.push(Finding {
            subject: subject.clone(),
            level,
            text: text.into(),
            awaits_other: false,
        });
    }

    /// As [`Renderer::find`], about another object that the subject names.
    pub(crate) fn find_other(&mut self, subject: &Subject, level: Level, text: impl Into<String>) {
        self.findings.push(Finding {
            subject: subject.clone(),
            level,
            text: text.into(),
            awaits_other: true,
        });
    }
}

/// Makes a configuration of a cluster's objects.
///
/// # Errors
/// The certificate for servers without one cannot be made.
pub fn render(objects: &Objects, options: &Options) -> Result<Rendering, String> {
    render_without(objects, options, &Without::default())
}

/// As [`render`], without some objects.
///
/// # Errors
/// As for [`render`].
pub fn render_without(
    objects: &Objects,
    options: &Options,
    without: &Without,
) -> Result<Rendering, String> {
    let mut findings = objects.findings.clone();
    let settings = settings(objects, options, &mut findings);
    let rules = rules::rules(objects, options, &settings, without, &mut findings);
    let mut renderer = Renderer::new(objects, options, &settings, without, findings);
    let mut servers = Text::inside();
    for server in ordered(&rules) {
        renderer.server(&mut servers, server);
    }
    let analysis = analyse(objects, options);
    renderer.gateways(&mut servers, &analysis);
    let mut text = Text::default();
    renderer.main(&mut text, servers)?;
    renderer.stream(&mut text, &rules, &analysis);
    if options.state.is_some() {
        // A file that changes must be read again: the server does so at a reload.
        text.comment(&format!("Files: {:016x}", digest(&renderer.files.contents)));
    }
    let (configuration, owners) = text.finish();
    let groups = renderer.states();
    let served = rules.tenants.iter();
    let served = served.map(|tenant| (tenant.namespace.clone(), tenant.name.clone()));
    let mut findings = renderer.findings;
    findings.sort();
    findings.dedup();
    Ok(Rendering {
        configuration,
        files: renderer.files.contents,
        groups,
        served: served.collect(),
        findings,
        refused: without.objects.clone(),
        owners,
    })
}

/// What the Ingresses alone come to: the text of their servers, and what does not work. No file is
/// read or written for it, and no program is asked.
pub(crate) fn draft(objects: &Objects, options: &Options) -> (String, Vec<Finding>) {
    let mut findings = Vec::new();
    let settings = settings(objects, options, &mut findings);
    let without = Without::default();
    let rules = rules::rules(objects, options, &settings, &without, &mut findings);
    let mut renderer = Renderer::new(objects, options, &settings, &without, findings);
    let mut servers = Text::inside();
    for server in ordered(&rules) {
        renderer.server(&mut servers, server);
    }
    let mut text = Text::default();
    text.around("http", servers);
    renderer.stream(&mut text, &rules, &Analysis::default());
    (text.finish().0, renderer.findings)
}

/// A number that changes with the content of files.
fn digest(files: &BTreeMap<PathBuf, Vec<u8>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    hasher.finish()
}

/// The servers, the one for all other requests first.
fn ordered(rules: &Rules) -> impl Iterator<Item = &rules::Server> {
    let first = rules.servers.get(CATCH_ALL);
    let others = rules
        .servers
        .values()
        .filter(|server| server.host != CATCH_ALL);
    first.into_iter().chain(others)
}

fn settings(objects: &Objects, options: &Options, findings: &mut Vec<Finding>) -> Settings {
    let none = BTreeMap::new();
    let named = options
        .config_map
        .as_deref()
        .and_then(|text| text.split_once('/'));
    let Some((namespace, name)) = named else {
        return Settings::default();
    };
    let subject = Subject::new("ConfigMap", namespace, name);
    let key = (namespace.to_owned(), name.to_owned());
    let config_map = objects.config_maps.get(&key);
    if config_map.is_none() {
        findings.push(Finding {
            subject: subject.clone(),
            level: Level::Note,
            text: "it is missing: every key has its default".to_owned(),
            awaits_other: false,
        });
    }
    let data = config_map.and_then(|config_map| config_map.data.as_ref());
    Settings::read(data.unwrap_or(&none), &subject, findings)
}
