//! What a `map` block says.

use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Directive, View, bytes_of};
use turnpike_plan::builder::Builder;
use turnpike_plan::pattern::Pattern;
use turnpike_plan::pattern_list::PatternList;
use turnpike_plan::regex::Case;
use turnpike_plan::template::Template;
use turnpike_plan::variables::{Computed, Subject};

use super::numbers;
use crate::common::hostnames::Hostnames;

/// A map, ready to be asked.
pub(super) struct Table {
    pub(super) key: Template,
    pub(super) names: Hostnames<usize>,
    pub(super) patterns: PatternList<usize>,
    pub(super) values: Vec<Template>,
    /// Index of the value that holds where nothing else does.
    pub(super) default: Option<usize>,
    /// Whether a dot at the key's end is left out.
    pub(super) hostnames: bool,
}

/// Reads every `map` and `num_map` block of a level.
pub(super) fn define_all<S: Subject>(view: View<'_>, builder: &mut Builder<'_, S>) {
    for block in view.children("map") {
        if let Err(error) = define(block, builder) {
            builder.report(error);
        }
    }
    for block in view.children("num_map") {
        if let Err(error) = numbers::define(block, builder) {
            builder.report(error);
        }
    }
}

/// Reads a block and defines its variable.
fn define<S: Subject>(view: View<'_>, builder: &mut Builder<'_, S>) -> Result<(), ConfError> {
    let place = |message: Complaint| view.error(view.span(), message);
    let key = bytes_of(view.argument(0));
    let key = Template::compile(&key, &mut builder.variables);
    let key = key.map_err(|error| place(error.into()))?;
    let name = variable_name(view.argument(1)).map_err(place)?;
    let mut table = Table {
        key,
        names: Hostnames::default(),
        patterns: PatternList::default(),
        values: Vec::new(),
        default: None,
        hostnames: false,
    };
    let mut computed = Computed::Once;
    for line in view.data() {
        let done = match (line.name.text.as_str(), &*line.arguments) {
            ("hostnames", []) => {
                table.hostnames = true;
                Ok(())
            }
            ("volatile", []) => {
                computed = Computed::AtEachUse;
                Ok(())
            }
            (_, [_]) => table.add(line, view, builder),
            _ => Err("invalid number of the map parameters".into()),
        };
        if let Err(message) = done {
            builder.report(view.error(line.span, message));
        }
    }
    table.patterns.finish(builder.environment.purpose());
    let defined = builder.variables.define(name, computed, Arc::new(table));
    defined.map_err(|error| place(error.into()))?;
    Ok(())
}

/// The name of the variable that a block defines, without its dollar sign.
///
/// # Errors
/// nginx's message, without its place.
pub(super) fn variable_name(written: &str) -> Result<&str, Complaint> {
    let name = written.strip_prefix('$').filter(|name| !name.is_empty());
    name.ok_or_else(|| format!("invalid variable name \"{written}\"").into())
}

impl Table {
    fn add<S>(
        &mut self,
        line: &Directive,
        view: View<'_>,
        builder: &mut Builder<'_, S>,
    ) -> Result<(), Complaint> {
        let value = &line.arguments[0];
        let value = Template::compile(&value.bytes(), &mut builder.variables)?;
        self.values.push(value);
        let value = self.values.len() - 1;
        let key = line.name.text.as_str();
        if key == "default" {
            return match self.default.replace(value) {
                None => Ok(()),
                Some(_) => Err("duplicate default map parameter".into()),
            };
        }
        if let Some(pattern) = key.strip_prefix('~') {
            let (case, pattern) = match pattern.strip_prefix('*') {
                Some(pattern) => (Case::Ignored, pattern),
                None => (Case::Sensitive, pattern),
            };
            let place = view.place(line.span);
            let pattern = Pattern::compile(pattern, case, &place, &mut builder.variables)?;
            self.patterns.add(Arc::new(pattern), value);
            return Ok(());
        }
        let key = bytes_of(key.strip_prefix('\\').unwrap_or(key));
        let added = if self.hostnames {
            self.names.add(&key, value)
        } else {
            self.names.add_exact(&key, value)
        };
        let key = String::from_utf8_lossy(&key);
        added.map_err(|refusal| refusal.complaint(&key))
    }
}
