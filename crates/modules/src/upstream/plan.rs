//! Reads `upstream` blocks, and finds the group that an address stands for.

use std::any::Any;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use md5::{Digest, Md5};
use turnpike_conf::{Complaint, ConfError, Entry, View, value};
use turnpike_lane::log::{Errno, ErrorLog};
use turnpike_plan::builder::Builder;
use turnpike_upstream::{Balancer, Group, GroupSettings, GroupStates, KeepAlive, PeerSettings};
use turnpike_upstream::{Pool, Resolving};
use turnpike_wire::hex;

use super::all_groups::{AllGroups, GroupFacts};
use super::background::{self, BackgroundTasks};
use super::balancing::Method;
use super::handler::{Directory, Implicit, LanePool, Upstream, group_key};
use super::limits;
use super::passed::Passed;
use super::resolver;
use super::servers::Server;
use super::state_file::StateFile;
use super::url::{Target, Url};

/// Least size of a zone: eight pages, nginx's.
const ZONE_BYTES_MIN: u64 = 8 * 4096;

/// Groups by the name they are asked for.
#[derive(Default)]
struct Store {
    named: HashMap<String, Arc<Upstream>>,
    implicit: Implicit,
    directory: Option<Arc<Directory>>,
}

/// Reads every `upstream` block.
pub(super) fn groups<S: Passed>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
) -> Result<(), ConfError> {
    let log = background::log(view, builder)?;
    for block in view.children("upstream") {
        if let Err(error) = group(block, builder, &log) {
            builder.report(error);
        }
    }
    background::offer(builder);
    Ok(())
}

/// The group that an address stands for: an `upstream` block of that name, else a group of the
/// address's own. `default_port` is that of the protocol, 0 where it has none.
///
/// # Errors
/// nginx's message, without its place.
pub(crate) fn find<S: Passed>(
    builder: &mut Builder<'_, S>,
    url: &Url,
    default_port: u16,
) -> Result<Arc<Upstream>, Complaint> {
    let host = &url.host;
    if let Some(upstream) = builder.store::<Store>().named.get(&*group_key(host)) {
        return match url.port {
            Some(port) => Err(format!("upstream \"{host}\" may not have port {port}").into()),
            None => Ok(Arc::clone(upstream)),
        };
    }
    if url.port.is_none() && default_port == 0 && !matches!(url.target, Target::Unix(_)) {
        return Err(format!("no port in upstream \"{host}\"").into());
    }
    let name = url.identity(default_port);
    let implicit = builder.store::<Store>().implicit.clone();
    if let Some(upstream) = implicit.find(&name) {
        return Ok(upstream);
    }
    let addresses = url
        .addresses(default_port)
        .map_err(|what| format!("{what} in upstream \"{host}\""))?;
    let server = Server {
        name: name.clone(),
        addresses,
        settings: PeerSettings::default(),
        resolved: None,
    };
    let settings = GroupSettings::default();
    let given = Given {
        name: host,
        identity: &name,
        lines: String::new(),
        servers: &[server],
        state: None,
        log: ErrorLog::none(),
    };
    let upstream = Arc::new(assemble(builder, given, settings));
    implicit.add(name, &upstream);
    Ok(upstream)
}

/// The named groups, for addresses that are known only when a request is served.
pub(crate) fn directory<S: Passed>(builder: &mut Builder<'_, S>) -> Arc<Directory> {
    if let Some(directory) = &builder.store::<Store>().directory {
        return Arc::clone(directory);
    }
    let pool = pool(builder, KeepAlive::default());
    let store = builder.store::<Store>();
    let directory = Arc::new(Directory::new(
        store.named.clone(),
        store.implicit.clone(),
        pool,
    ));
    store.directory = Some(Arc::clone(&directory));
    directory
}

fn group<S: Passed>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    log: &ErrorLog,
) -> Result<(), ConfError> {
    let name = view.argument(0);
    if builder
        .store::<Store>()
        .named
        .contains_key(&*group_key(name))
    {
        return Err(view.error(view.span(), format!("duplicate upstream \"{name}\"")));
    }
    let (servers, method) = servers(view, builder);
    let state = state(view, builder, method.balancer)?;
    if state.is_none() && view.own("server").is_none() {
        return Err(view.error(view.end(), "no servers are inside upstream"));
    }
    if servers.iter().all(|server| server.settings.backup) && !servers.is_empty() {
        let message = format!("no servers in upstream \"{name}\"");
        return Err(view.error(view.span(), message));
    }
    let place = |entry: &Entry, message| view.error(entry.span, message);
    if let Some(entry) = view.own("zone") {
        zone(entry).map_err(|message| place(entry, message))?;
        if entry.arguments.len() == 1 && !has_size(view, entry.argument(0)) {
            let zone = entry.argument(0);
            let message = format!("zero size shared memory zone \"{zone}\"");
            return Err(place(entry, message.into()));
        }
    }
    let sticky = match view.own("sticky") {
        Some(entry) => Some(S::sticky(entry, builder).map_err(|text| place(entry, text))?),
        None => None,
    };
    let settings = GroupSettings {
        balancer: method.balancer,
        keep_alive: keep_alive(view)?,
        queue: limits::queue(view)?,
        retries: limits::retries(view)?,
    };
    let given = Given {
        name,
        identity: name,
        lines: lines(view),
        servers: &servers,
        state,
        log: log.clone(),
    };
    let upstream = assemble(builder, given, settings);
    let upstream = Arc::new(upstream.choosing(method.key, sticky));
    resolve(view, builder, upstream.group(), &servers, log)?;
    let named = &mut builder.store::<Store>().named;
    named.insert(group_key(name).into_owned(), upstream);
    Ok(())
}

/// Whether an `upstream` block says how large the zone of that name is: one of them must.
fn has_size(view: View<'_>, zone: &str) -> bool {
    let blocks = view
        .parent()
        .into_iter()
        .flat_map(|http| http.children("upstream"));
    let mut zones = blocks.flat_map(|block| block.own_all("zone"));
    zones.any(|entry| entry.argument(0) == zone && entry.arguments.len() > 1)
}

/// The servers of a block, and how they are chosen. A server's parameters must make sense with
/// the method that was written before it, as with nginx.
fn servers<S: Passed>(view: View<'_>, builder: &mut Builder<'_, S>) -> (Vec<Server>, Method) {
    let (mut servers, mut method) = (Vec::new(), Method::default());
    for entry in view.entries() {
        let read = match entry.row.name {
            "server" => {
                Server::read(entry, &method, S::DEFAULT_PORT).map(|server| servers.push(server))
            }
            _ => Method::read(entry, builder).map(|read| {
                if let Some(read) = read {
                    method = read;
                }
            }),
        };
        if let Err(message) = read {
            builder.report(view.error(entry.span, message));
        }
    }
    (servers, method)
}

/// Has those servers looked up that are to be.
fn resolve<S: Passed>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    group: &Arc<Group>,
    servers: &[Server],
    log: &ErrorLog,
) -> Result<(), ConfError> {
    let resolved = servers.iter().enumerate();
    let resolved = resolved.filter_map(|(at, server)| Some((at, server.resolved.clone()?)));
    let mut resolved = resolved.peekable();
    if resolved.peek().is_none() {
        return Ok(());
    }
    let Some(names) = resolver::names(view, builder)? else {
        let message = format!(
            "no resolver defined to resolve names at run time in upstream \"{}\"",
            group.name()
        );
        return Err(view.error(view.span(), message));
    };
    for (source, server) in resolved {
        builder.store::<BackgroundTasks>().add(Arc::new(Resolving {
            group: Arc::downgrade(group),
            source,
            server,
            resolver: Arc::clone(&names.resolver),
            timeout_ms: names.timeout_ms,
            log: log.clone(),
        }));
    }
    Ok(())
}

/// What a configuration gives a group.
struct Given<'a> {
    /// The name for logs.
    name: &'a str,
    /// The name by which its states are found again.
    identity: &'a str,
    /// What tells its lines from others.
    lines: String,
    servers: &'a [Server],
    state: Option<StateFile>,
    log: ErrorLog,
}

fn assemble<S: Passed>(
    builder: &mut Builder<'_, S>,
    given: Given<'_>,
    settings: GroupSettings,
) -> Upstream {
    let key = format!("{}:{}", S::STATES, given.identity);
    let states = states(builder, &key);
    let mut written = Vec::new();
    let servers = given.servers.iter();
    let sources = servers.map(|server| server.peers(&states, &mut written));
    let sources = sources.collect();
    let pool = pool(builder, settings.keep_alive);
    let group = Group::new(given.name, settings, sources, states);
    builder.store::<BackgroundTasks>().add_group(&group);
    let facts = GroupFacts {
        key,
        lines: given.lines,
        addresses: written,
        state: given.state,
    };
    AllGroups::of(builder).add::<S>(builder, &group, facts, given.log);
    Upstream::new(group, pool)
}

/// What tells the lines of a block from others: their words, without comments and spaces.
fn lines(view: View<'_>) -> String {
    let mut digest = Md5::new();
    for entry in view.entries() {
        digest.update(entry.row.name);
        for word in entry.arguments.iter() {
            // A word has no zero byte.
            digest.update([0]);
            digest.update(word.bytes());
        }
        digest.update([0, 0]);
    }
    hex::text(&digest.finalize())
}

/// `state`: the file with the servers, which takes the place of `server` lines.
fn state<S: Passed>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    balancer: Balancer,
) -> Result<Option<StateFile>, ConfError> {
    let Some(entry) = view.own("state") else {
        return Ok(None);
    };
    if let Some(server) = view.own("server") {
        let message = "\"server\" directive is incompatible with \"state\"";
        return Err(view.error(server.span, message));
    }
    let place = |message| view.error(entry.span, message);
    let path = builder.environment.prefix().join(entry.argument(0));
    builder.environment.replaced_file(&path);
    let servers = match builder.environment.changing_file(&path) {
        Ok(bytes) => StateFile::parse(&path, &bytes, balancer, S::DEFAULT_PORT).map_err(place)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            let (path, error) = (path.display(), Errno(&error));
            return Err(place(format!("open() \"{path}\" failed {error}")));
        }
    };
    Ok(Some(StateFile {
        path,
        servers,
        balancer,
        default_port: S::DEFAULT_PORT,
    }))
}

fn pool<S: Passed>(
    builder: &mut Builder<'_, S>,
    settings: KeepAlive,
) -> turnpike_plan::lane::LaneSlot<LanePool> {
    builder.lane_state(move || LanePool(Pool::new(settings)))
}

/// The states of the group's peers, from the configuration before where it had the group too.
fn states<S: Passed>(builder: &mut Builder<'_, S>, key: &str) -> Arc<GroupStates> {
    let make = || Arc::new(GroupStates::default()) as Arc<dyn Any + Send + Sync>;
    let states = builder.environment.zone(key, &make);
    states.downcast().unwrap_or_default()
}

/// Checks what is said of a zone, though a group needs none: its state is in the process anyway.
fn zone(entry: &Entry) -> Result<(), Complaint> {
    let (name, size) = (entry.argument(0), entry.argument(1));
    if name.is_empty() {
        return Err(format!("invalid zone name \"{name}\"").into());
    }
    match (entry.arguments.len(), value::size(size)) {
        (1, _) => Ok(()),
        (_, None) => Err(format!("invalid zone size \"{size}\"").into()),
        (_, Some(bytes)) if bytes < ZONE_BYTES_MIN => {
            Err(format!("zone \"{name}\" is too small").into())
        }
        (_, Some(_)) => Ok(()),
    }
}

fn keep_alive(view: View<'_>) -> Result<KeepAlive, ConfError> {
    let (connections_max, local) = match view.own("keepalive") {
        None => (32, true),
        Some(entry) => connections(entry).map_err(|message| view.error(entry.span, message))?,
    };
    Ok(KeepAlive {
        connections_max,
        requests_max: u64::try_from(view.number("keepalive_requests")).unwrap_or(0),
        time_ms: view.milliseconds("keepalive_time"),
        timeout_ms: view.milliseconds("keepalive_timeout"),
        local,
    })
}

fn connections(entry: &Entry) -> Result<(usize, bool), Complaint> {
    let text = entry.argument(0);
    let number = value::number(text).and_then(|number| usize::try_from(number).ok());
    let number =
        number.ok_or_else(|| format!("invalid value \"{text}\" in \"keepalive\" directive"))?;
    match entry.arguments.get(1).map(|word| word.text.as_str()) {
        None => Ok((number, false)),
        Some("local") => Ok((number, true)),
        Some(other) => Err(format!("invalid parameter \"{other}\"").into()),
    }
}
