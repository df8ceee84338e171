//! What a `geo` block says.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Directive, View};
use turnpike_plan::Quoted;
use turnpike_plan::builder::Builder;
use turnpike_plan::variables::{Computed, VariableId};

use super::networks::Networks;
use super::ranges::{self, Ranges, RangesDraft};
use crate::common::address::{Located, Network};

/// A table, ready to be asked.
pub(super) struct Geo {
    /// The address that is looked up; `None` is the client's.
    pub(super) address: Option<VariableId>,
    pub(super) table: Table,
    pub(super) values: Vec<Box<[u8]>>,
    /// The proxies whose X-Forwarded-For is believed.
    pub(super) proxies: Vec<Network>,
    pub(super) proxy_recursive: bool,
}

/// Where values are found, by index.
pub(super) enum Table {
    Networks(Networks),
    Ranges(Ranges, Option<usize>),
}

/// A block while it is read.
#[derive(Default)]
struct Draft {
    ranges: Option<RangesDraft>,
    range_default: Option<usize>,
    networks: Networks,
    has_networks: bool,
    values: Vec<Box<[u8]>>,
    by_value: HashMap<Box<[u8]>, usize>,
    proxies: Vec<Network>,
    proxy_recursive: bool,
    computed: Computed,
}

/// Reads a block and defines its variable.
pub(super) fn define<S: Located>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
) -> Result<(), ConfError> {
    let place = |message: Complaint| view.error(view.span(), message);
    let variable = |index: usize| {
        let written = view.argument(index);
        written
            .strip_prefix('$')
            .filter(|name| !name.is_empty())
            .ok_or_else(|| place(format!("invalid variable name \"{written}\"").into()))
    };
    let (address, name) = match view.arguments().len() {
        1 => (None, variable(0)?),
        _ => (
            Some(builder.variables.reference(variable(0)?)),
            variable(1)?,
        ),
    };
    let mut draft = Draft::default();
    for line in view.data() {
        match draft.line(line) {
            Ok(None) => {}
            Ok(Some(warning)) => builder.environment.warn(view.error(line.span, warning)),
            Err(message) => builder.report(view.error(line.span, message)),
        }
    }
    let table = match draft.ranges {
        Some(ranges) => Table::Ranges(ranges.finish(), draft.range_default),
        None => Table::Networks(draft.networks),
    };
    let geo = Geo {
        address,
        table,
        values: draft.values,
        proxies: draft.proxies,
        proxy_recursive: draft.proxy_recursive,
    };
    let defined = builder
        .variables
        .define(name, draft.computed, Arc::new(geo));
    defined.map_err(|error| place(error.into()))?;
    Ok(())
}

impl Draft {
    /// Reads a line. Returns what is worth a warning, in nginx's words.
    fn line(&mut self, line: &Directive) -> Result<Option<String>, Complaint> {
        let first = line.name.text.as_str();
        match (first, &*line.arguments) {
            ("ranges", []) if self.has_networks => Err("the \"ranges\" directive must be the \
                 first directive inside \"geo\" block"
                .into()),
            ("ranges", []) => {
                self.ranges.get_or_insert_default();
                Ok(None)
            }
            ("proxy_recursive", []) => {
                self.proxy_recursive = true;
                Ok(None)
            }
            ("volatile", []) => {
                self.computed = Computed::AtEachUse;
                Ok(None)
            }
            ("proxy", [text]) => {
                self.proxies.push(network(&text.text)?);
                Ok(None)
            }
            (_, [second]) if self.ranges.is_some() => self.range(first, &second.text),
            (_, [second]) => self.network(first, &second.text),
            _ => Err("invalid number of the geo parameters".into()),
        }
    }

    fn range(&mut self, first: &str, second: &str) -> Result<Option<String>, Complaint> {
        if first == "default" {
            let value = self.value(second);
            let old = self.range_default.replace(value);
            return Ok(self.duplicate("default geo range", second, old));
        }
        let text = if first == "delete" { second } else { first };
        let (start, end) =
            ranges::parse(text).ok_or_else(|| format!("invalid range \"{text}\""))?;
        let value = self.value(second);
        let Some(ranges) = &mut self.ranges else {
            return Ok(None);
        };
        if first == "delete" {
            let was_there = ranges.remove(start, end);
            return Ok((!was_there).then(|| format!("no address range \"{text}\" to delete")));
        }
        let old = ranges
            .insert(start, end, value)
            .map_err(|other| format!("range \"{text}\" overlaps \"{other}\""))?;
        Ok(self.duplicate(&format!("range \"{text}\","), second, old))
    }

    fn network(&mut self, first: &str, second: &str) -> Result<Option<String>, Complaint> {
        self.has_networks = true;
        let old = match first {
            "default" => {
                let value = self.value(second);
                let all = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
                let old = all.map(|first| self.networks.insert(Network { first, bits: 0 }, value));
                old[0].or(old[1])
            }
            "delete" => {
                let was_there = self.networks.remove(network(second)?);
                return Ok((!was_there).then(|| format!("no network \"{second}\" to delete")));
            }
            text => {
                let network = network(text)?;
                let value = self.value(second);
                self.networks.insert(network, value)
            }
        };
        Ok(self.duplicate(&format!("network \"{first}\","), second, old))
    }

    /// A warning where there was an old value.
    fn duplicate(&self, what: &str, value: &str, old: Option<usize>) -> Option<String> {
        let old = Quoted(self.values.get(old?)?);
        Some(format!(
            "duplicate {what} value: \"{value}\", old value: \"{old}\""
        ))
    }

    /// Index of a value; equal ones are kept once.
    fn value(&mut self, text: &str) -> usize {
        let bytes = turnpike_conf::bytes_of(text).into_boxed_slice();
        *self.by_value.entry(bytes.clone()).or_insert_with(|| {
            self.values.push(bytes);
            self.values.len() - 1
        })
    }
}

fn network(text: &str) -> Result<Network, Complaint> {
    Network::parse(text).ok_or_else(|| format!("invalid network \"{text}\"").into())
}
