//! The directives of one passing family, by the ends of their names.

use turnpike_conf::{ConfError, Entry, View, bytes_of};
use turnpike_plan::builder::Builder;
use turnpike_plan::environment::Environment;
use turnpike_plan::template::Template;
use turnpike_plan::temporary::TemporaryFolder;

/// Longest name of a directive that is looked up without an allocation; all are shorter.
const NAME_BYTES_MAX: usize = 64;

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

    /// The name of a directive with this end, for messages.
    pub(crate) fn name(self, end: &str) -> String {
        [self.prefix, "_", end].concat()
    }

    /// Has a directive looked up by its name. The name is put together on the stack: each location
    /// asks for some hundred of them.
    pub(crate) fn look_up<T>(self, end: &str, look_up: impl FnOnce(View<'a>, &str) -> T) -> T {
        let mut room = [0; NAME_BYTES_MAX];
        let mut rest = &mut room[..];
        for part in [self.prefix, "_", end] {
            // What does not fit is left out, and has no row then.
            let bytes = part.len().min(rest.len());
            let (place, behind) = rest.split_at_mut(bytes);
            place.copy_from_slice(&part.as_bytes()[..bytes]);
            rest = behind;
        }
        let left = rest.len();
        let name = str::from_utf8(&room[..NAME_BYTES_MAX - left]);
        look_up(self.view, name.unwrap_or_default())
    }

    pub(crate) fn nearest(self, end: &str) -> Option<&'a Entry> {
        self.look_up(end, |view, name| view.nearest(name))
    }

    pub(crate) fn nearest_all(self, end: &str) -> Vec<&'a Entry> {
        self.look_up(end, |view, name| view.nearest_all(name))
    }

    /// The first directive with this end in this block itself.
    pub(crate) fn own(self, end: &str) -> Option<&'a Entry> {
        self.look_up(end, |view, name| view.own(name))
    }

    /// Whether such a directive is anywhere in the configuration.
    pub(crate) fn is_written(self, end: &str) -> bool {
        self.look_up(end, |view, name| view.is_written(name))
    }

    /// Whether the family has such a directive: not all have all of them.
    pub(crate) fn has_row(self, end: &str) -> bool {
        self.look_up(end, |view, name| view.has_row(name))
    }

    /// A flag; off where the family has no such directive.
    pub(crate) fn flag(self, end: &str) -> bool {
        self.look_up(end, |view, name| view.has_row(name) && view.flag(name))
    }

    pub(crate) fn milliseconds(self, end: &str) -> u64 {
        self.look_up(end, |view, name| view.milliseconds(name))
    }

    /// A size of memory that the kernel takes as 32 bits; 0 where the family has no such directive.
    pub(crate) fn small_size(self, end: &str) -> u32 {
        self.look_up(end, |view, name| {
            if view.has_row(name) {
                u32::try_from(view.size(name)).unwrap_or(0)
            } else {
                0
            }
        })
    }

    pub(crate) fn number(self, end: &str) -> i64 {
        self.look_up(end, |view, name| view.number(name))
    }

    /// Declares the folder for temporary files; to be called for every block.
    pub(crate) fn declare_temporary_folder(self, environment: &mut dyn Environment) {
        self.look_up("temp_path", |view, name| {
            self.look_up("temp", |_, default| {
                TemporaryFolder::declare(view, name, default, environment);
            });
        });
    }

    /// The folder for temporary files.
    pub(crate) fn temporary_folder(
        self,
        environment: &dyn Environment,
    ) -> Result<TemporaryFolder, ConfError> {
        self.look_up("temp_path", |view, name| {
            self.look_up("temp", |_, default| {
                TemporaryFolder::read(view, name, default, environment)
            })
        })
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
