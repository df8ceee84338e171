//! The directives of one passing family, by the ends of their names.

use std::path::Path;

use turnpike_conf::{ConfError, Entry, View, bytes_of};
use turnpike_plan::builder::Builder;
use turnpike_plan::environment::Environment;
use turnpike_plan::template::Template;
use turnpike_plan::temporary::TemporaryFolder;

/// The directives of one family: their names begin with its prefix.
#[derive(Clone, Copy)]
pub(crate) struct PassView<'a> {
    pub(crate) view: View<'a>,
    pub(crate) prefix: &'static str,
}

impl<'a> PassView<'a> {
    pub(crate) fn new(view: View<'a>, prefix: &'static str) -> Self {
        Self { view, prefix }
    }

    /// The name of a directive with this end.
    pub(crate) fn name(self, end: &str) -> String {
        [self.prefix, "_", end].concat()
    }

    pub(crate) fn nearest(self, end: &str) -> Option<&'a Entry> {
        self.view.nearest(&self.name(end))
    }

    pub(crate) fn nearest_all(self, end: &str) -> Vec<&'a Entry> {
        self.view.nearest_all(&self.name(end))
    }

    /// Whether the family has such a directive: not all have all of them.
    pub(crate) fn has_row(self, end: &str) -> bool {
        self.view.has_row(&self.name(end))
    }

    /// A flag; off where the family has no such directive.
    pub(crate) fn flag(self, end: &str) -> bool {
        self.has_row(end) && self.view.flag(&self.name(end))
    }

    pub(crate) fn milliseconds(self, end: &str) -> u64 {
        self.view.milliseconds(&self.name(end))
    }

    /// A size of memory that the kernel takes as 32 bits; 0 where the family has no such directive.
    pub(crate) fn small_size(self, end: &str) -> u32 {
        match self.has_row(end) {
            true => u32::try_from(self.view.size(&self.name(end))).unwrap_or(0),
            false => 0,
        }
    }

    pub(crate) fn number(self, end: &str) -> i64 {
        self.view.number(&self.name(end))
    }

    /// Declares the folder for temporary files; to be called for every block.
    pub(crate) fn declare_temporary_folder(self, environment: &mut dyn Environment) {
        let (name, default) = (self.name("temp_path"), self.name("temp"));
        TemporaryFolder::declare(self.view, &name, &default, environment);
    }

    /// The folder for temporary files.
    pub(crate) fn temporary_folder(self, prefix: &Path) -> Result<TemporaryFolder, ConfError> {
        let (name, default) = (self.name("temp_path"), self.name("temp"));
        TemporaryFolder::read(self.view, &name, &default, prefix)
    }

    /// The template of a directive of one argument, where it is in force.
    pub(crate) fn template<S>(
        self,
        end: &str,
        builder: &mut Builder<'_, S>,
    ) -> Result<Option<Template>, ConfError> {
        let Some(entry) = self.nearest(end) else {
            return Ok(None);
        };
        let text = bytes_of(entry.argument(0));
        builder.template(self.view, entry, &text).map(Some)
    }
}
