//! `types`: content types by file extension.

use std::sync::Arc;

use turnpike_conf::{ConfError, View};
use turnpike_plan::keys::KeyMap;

/// Content types by lower-case file extension.
pub type TypesTable = KeyMap<Arc<[u8]>>;

/// The types that hold where no `types` block is given; nginx's three.
pub const DEFAULT_TYPES: &[(&str, &str)] = &[
    ("html", "text/html"),
    ("gif", "image/gif"),
    ("jpg", "image/jpeg"),
];

/// Reads the `types` blocks in force, the defaults where there is none.
pub(super) fn read(view: View<'_>) -> Result<Arc<TypesTable>, ConfError> {
    let blocks = view.nearest_all("types");
    let mut table = TypesTable::default();
    if blocks.is_empty() {
        for (extension, kind) in DEFAULT_TYPES {
            table.insert(extension.as_bytes().into(), Arc::from(kind.as_bytes()));
        }
    }
    for block in blocks {
        let inside = view.child(block);
        for directive in inside.iter().flat_map(|inside| inside.data()) {
            let kind: Arc<[u8]> = Arc::from(directive.name.bytes());
            for extension in directive.arguments.iter() {
                let extension = extension.bytes().to_ascii_lowercase();
                table.insert(extension.into(), kind.clone());
            }
        }
    }
    Ok(Arc::new(table))
}
