//! `turnpike directives --support`: one line a directive, whether it works.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{has_effect, only_off};
use crate::families::{self, advice};

/// The matrix as Markdown.
pub(crate) fn matrix() -> String {
    let mut out = String::from(HEAD);
    let registry = families::registry();
    let mut family = "";
    let mut works: Vec<&str> = Vec::new();
    let mut idle: BTreeSet<String> = BTreeSet::new();
    let mut refused: BTreeSet<&str> = families::not_yet().iter().copied().collect();
    refused.remove("include");
    refused.extend(advice::parameters());
    for (of, row) in registry.rows() {
        if !has_effect(row) {
            if only_off(row) {
                idle.insert(format!("{} off", row.name));
                refused.insert(row.name);
            } else {
                idle.insert(row.name.to_owned());
            }
            continue;
        }
        if of != family {
            line(&mut out, family, &works);
            (family, works) = (of, Vec::new());
        }
        if !works.contains(&row.name) {
            works.push(row.name);
        }
    }
    line(&mut out, family, &works);
    let _ = writeln!(out, "{IDLE}{}", names(idle.iter().map(String::as_str)));
    out.push_str(MISSING);
    let mut rest = refused;
    let is_of = |name: &str, row: &advice::Advice| {
        advice::find(name).is_some_and(|found| std::ptr::eq(found, row))
    };
    for row in advice::NGINX {
        let own: Vec<&str> = rest
            .iter()
            .copied()
            .filter(|name| is_of(name, row))
            .collect();
        own.iter().for_each(|name| {
            rest.remove(name);
        });
        if !own.is_empty() {
            let (module, instead) = (row.module, row.instead);
            let _ = writeln!(out, "| {module} | {} | {instead} |", names(own.into_iter()));
        }
    }
    if !rest.is_empty() {
        let _ = writeln!(
            out,
            "| others | {} | Remove the line. |",
            names(rest.into_iter())
        );
    }
    out
}

fn line(out: &mut String, family: &str, works: &[&str]) {
    if !works.is_empty() {
        let _ = writeln!(out, "| {family} | {} |", names(works.iter().copied()));
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

const HEAD: &str = "\
# Which directives work

Written by `cargo xtask docs`; do not edit. `turnpike check FILE` shows the same for one file.
[directives.md](directives.md) describes every directive.

The version of nginx that `-V` names is the newest whose list of changes was worked through: \
all that a
configuration or a client can notice of it is here, or is in the tables below. Of later versions \
only parts of
the lists are known, and nothing of those is built yet.

## These work

| family | directives |
|---|---|
";

const IDLE: &str = "
## Accepted without effect

They are checked. [directives.md](directives.md) says why they have no effect.

";

const MISSING: &str = "
## nginx has these, and the server refuses them

| module | directives | instead |
|---|---|---|
";
