//! What a reload has changed: the shape of one configuration beside that of the next.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Map, Value, json};
use turnpike_conf::{Entry, View};
use turnpike_protocols::Plans;

use super::environment::Zones;
use crate::configuration::Configuration;

/// Stands between the name of a block and that of one in it.
const INSIDE: &str = " > ";

/// Things by their names, each with a digest of what was written about it.
type Digests = BTreeMap<String, u64>;

/// A configuration as far as a report tells of it.
#[derive(Default)]
pub(super) struct Shape {
    servers: Digests,
    /// Servers without a name, each without its listens.
    nameless: Digests,
    locations: Digests,
    listens: Digests,
    /// Groups of upstream servers, without their servers.
    upstreams: Digests,
    upstream_servers: Digests,
    /// Directives of the contexts above servers and groups.
    directives: Digests,
    /// By owner: `upstream`, `limit_req`, ...
    zones: BTreeMap<String, BTreeSet<String>>,
    lanes: usize,
}

impl Shape {
    /// Of a configuration and what was made of it.
    pub(super) fn of(configuration: &Configuration, plan: &Plans, zones: &Zones) -> Shape {
        let mut shape = Shape {
            lanes: configuration.settings.process.lanes,
            ..Shape::default()
        };
        shape.add_directives(configuration.root(), "");
        for (context, view) in ["http", "stream"].iter().flat_map(|name| {
            configuration
                .root()
                .children(name)
                .map(move |view| (name, view))
        }) {
            shape.add_directives(view, context);
            for server in view.children("server") {
                shape.add_server(server);
            }
            for group in view.children("upstream") {
                shape.add_group(group, context);
            }
        }
        for listen in plan.listens() {
            shape.listens.insert(listen.address.to_string(), 0);
        }
        for key in zones.keys() {
            let owner = key.split([':', ' ', '/']).next().unwrap_or_default();
            let owned = shape.zones.entry(owner.to_owned()).or_default();
            owned.insert(key.clone());
        }
        shape
    }

    /// Directives that stand directly in a context, each with its values together. Blocks are
    /// told of by what is in them.
    fn add_directives(&mut self, view: View<'_>, context: &str) {
        let mut hashers = BTreeMap::<String, DefaultHasher>::new();
        for entry in view
            .entries()
            .iter()
            .filter(|entry| view.child(entry).is_none())
        {
            let name = format!("{context} {}", entry.row.name);
            write_entry(entry, hashers.entry(name).or_default());
        }
        for (name, hasher) in hashers {
            self.directives.insert(name, hasher.finish());
        }
    }

    fn add_group(&mut self, group: View<'_>, context: &str) {
        let words = group.arguments().iter().map(|word| word.text.as_str());
        let path = format!("{context} {}", words.collect::<Vec<&str>>().join(" "));
        let mut hasher = DefaultHasher::new();
        for entry in group.entries() {
            if entry.row.name != "server" {
                write_entry(entry, &mut hasher);
                continue;
            }
            let name = free_name(
                &self.upstream_servers,
                format!("{path}{INSIDE}{}", entry.argument(0)),
            );
            let mut hasher = DefaultHasher::new();
            write_entry(entry, &mut hasher);
            self.upstream_servers.insert(name, hasher.finish());
        }
        self.upstreams.insert(path, hasher.finish());
    }

    /// A server is known by its names, so that one with another listen is the same, changed;
    /// without names by its listens.
    fn add_server(&mut self, server: View<'_>) {
        let words = |name: &str| -> Vec<String> {
            let entries = server.own_all(name);
            let words = entries.flat_map(|entry| entry.arguments.iter());
            words.map(|word| word.text.clone()).collect()
        };
        let names = words("server_name").join(" ");
        let is_nameless = names.is_empty();
        let name = if is_nameless {
            words("listen").join(" ")
        } else {
            names
        };
        let name = free_name(&self.servers, name);
        if is_nameless {
            let mut hasher = DefaultHasher::new();
            write(server, &["listen"], &mut hasher);
            self.nameless.insert(name.clone(), hasher.finish());
        }
        self.add_locations(server, &name);
        self.servers.insert(name, digest(server));
    }

    fn add_locations(&mut self, view: View<'_>, path: &str) {
        for location in view.children("location") {
            let words = location.arguments().iter().map(|word| word.text.as_str());
            let words: Vec<&str> = words.collect();
            let name = format!("{path}{INSIDE}{}", words.join(" "));
            let name = free_name(&self.locations, name);
            self.add_locations(location, &name);
            self.locations.insert(name, digest(location));
        }
    }

    /// What is different in `next`.
    pub(super) fn changes(&self, next: &Shape) -> Value {
        let mut zones = Map::new();
        let none = BTreeSet::new();
        let owners: BTreeSet<&String> = self.zones.keys().chain(next.zones.keys()).collect();
        for owner in owners {
            let old = self.zones.get(owner).unwrap_or(&none);
            let new = next.zones.get(owner).unwrap_or(&none);
            zones.insert(owner.clone(), zone_changes(old, new));
        }
        let moved = moved(&self.nameless, &next.nameless);
        json!({
            "servers": difference(&renamed(&self.servers, &moved), &next.servers),
            "locations": difference(&renamed(&self.locations, &moved), &next.locations),
            "listens": difference(&self.listens, &next.listens),
            "upstreams": difference(&self.upstreams, &next.upstreams),
            "upstream_servers": difference(&self.upstream_servers, &next.upstream_servers),
            "directives": difference(&self.directives, &next.directives),
            "lanes": { "before": self.lanes, "now": next.lanes },
            "zones": zones,
        })
    }
}

/// What becomes of the zones of one owner. A zone under the same name that cannot be kept is a new
/// one: what it held is lost, unless it is in the same folder of a disk.
fn zone_changes(old: &BTreeSet<String>, new: &BTreeSet<String>) -> Value {
    let dropped: BTreeMap<&str, &String> = old
        .difference(new)
        .map(|key| (zone_name(key), key))
        .collect();
    let added: BTreeMap<&str, &String> = new
        .difference(old)
        .map(|key| (zone_name(key), key))
        .collect();
    let both = || added.iter().filter(|(name, _)| dropped.contains_key(*name));
    let (mut emptied, mut reopened) = (Vec::new(), Vec::new());
    for (name, key) in both() {
        let before = dropped.get(name).and_then(|key| zone_folder(key));
        if zone_folder(key).is_some_and(|folder| before == Some(folder)) {
            reopened.push(*name);
        } else {
            emptied.push(*name);
        }
    }
    let replaced = both().count();
    json!({
        "kept": new.intersection(old).count(),
        "new": added.len() - replaced,
        "dropped": dropped.len() - replaced,
        "emptied": emptied,
        "reopened": reopened,
    })
}

/// The name in a zone's key, `OWNER:NAME:IDENTITY`.
fn zone_name(key: &str) -> &str {
    key.split(':').nth(1).unwrap_or(key)
}

/// The folder of a zone on disk, which its identity begins with.
fn zone_folder(key: &str) -> Option<&str> {
    let identity = key.splitn(3, ':').nth(2)?;
    let (folder, _) = identity.strip_prefix("disk:")?.split_once('\n')?;
    Some(folder)
}

fn difference(old: &Digests, new: &Digests) -> Value {
    let added = new.keys().filter(|name| !old.contains_key(*name)).count();
    let removed = old.keys().filter(|name| !new.contains_key(*name)).count();
    let is_changed =
        |(name, digest): &(&String, &u64)| old.get(*name).is_some_and(|old| old != *digest);
    json!({
        "now": new.len(),
        "added": added,
        "removed": removed,
        "changed": new.iter().filter(is_changed).count(),
    })
}

/// Servers without a name that are the same but for their listens: the names before and now.
fn moved<'a>(old: &'a Digests, new: &'a Digests) -> Vec<(&'a str, &'a str)> {
    let mut added: Vec<(&String, &u64)> = new
        .iter()
        .filter(|(name, _)| !old.contains_key(*name))
        .collect();
    let dropped = old.iter().filter(|(name, _)| !new.contains_key(*name));
    dropped
        .filter_map(|(name, digest)| {
            let place = added.iter().position(|(_, other)| *other == digest)?;
            Some((name.as_str(), added.remove(place).0.as_str()))
        })
        .collect()
}

/// The same things, with the names that their servers have now.
fn renamed(digests: &Digests, moved: &[(&str, &str)]) -> Digests {
    let rename = |name: &String| {
        let (server, rest) = name.split_once(INSIDE).unwrap_or((name, ""));
        let now = moved.iter().find(|(before, _)| *before == server);
        match (now, rest) {
            (None, _) => name.clone(),
            (Some((_, now)), "") => (*now).to_owned(),
            (Some((_, now)), rest) => format!("{now}{INSIDE}{rest}"),
        }
    };
    let named = digests.iter().map(|(name, digest)| (rename(name), *digest));
    named.collect()
}

/// A second block of the same name is another one.
fn free_name(taken: &Digests, name: String) -> String {
    let mut free = name.clone();
    let mut number = 1;
    while taken.contains_key(&free) {
        number += 1;
        free = format!("{name} #{number}");
    }
    free
}

/// Of everything that stands in a block and in those inside it.
fn digest(view: View<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    write(view, &[], &mut hasher);
    hasher.finish()
}

fn write_entry(entry: &Entry, hasher: &mut DefaultHasher) {
    entry.row.name.hash(hasher);
    for word in entry.arguments.iter() {
        word.text.hash(hasher);
    }
}

/// Writes a block without the directives of these names.
fn write(view: View<'_>, without: &[&str], hasher: &mut DefaultHasher) {
    let entries = view.entries().iter();
    for entry in entries.filter(|entry| !without.contains(&entry.row.name)) {
        write_entry(entry, hasher);
        if let Some(inner) = view.child(entry) {
            write(inner, without, hasher);
        }
        0xff_u8.hash(hasher);
    }
    for line in view.data() {
        format!("{:?}", line.arguments).hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_zone_is_emptied_unless_its_folder_stays() {
        let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        let old = keys(&[
            "a:kept:1",
            "a:gone:1",
            "a:hot:memory:1",
            "a:disk:disk:/c\n5:x",
            "a:away:disk:/c\n1",
        ]);
        let new = keys(&[
            "a:kept:1",
            "a:made:1",
            "a:hot:memory:2",
            "a:disk:disk:/c\n6:x",
            "a:away:disk:/d\n1",
        ]);
        let expected = json!({
            "kept": 1, "new": 1, "dropped": 1, "emptied": ["away", "hot"], "reopened": ["disk"],
        });
        assert_eq!(zone_changes(&old, &new), expected);
    }
}
