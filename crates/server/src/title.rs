//! The master's name in `ps`, as nginx shows it: what it is, then how it was started.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use turnpike_plan::product::Product;

/// Begins the name of a master, for the product that its program is called.
const fn master(product: Product) -> &'static str {
    match product {
        Product::Turnpike => "turnpike: master process ",
        Product::Nginx => "nginx: master process ",
    }
}

/// A serving process's own name for itself, by which it knows what it is, and which `ps` shows.
pub(crate) const fn serving(product: Product) -> &'static str {
    match product {
        Product::Turnpike => "turnpike: serving process",
        Product::Nginx => "nginx: worker process",
    }
}

/// The product of the running serving process, by that name; `None` in any other process.
pub(crate) fn serving_product() -> Option<Product> {
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    let products = [Product::Turnpike, Product::Nginx];
    let mut named = products.into_iter();
    let product = named.find(|product| name == serving(*product))?;
    arguments.next().is_none().then_some(product)
}

/// Starts this program anew under its title, in the same process: the only way to a title of any
/// length that needs no writing to memory which the C library owns. It costs a millisecond.
///
/// Returns under the title, and under the old name when the program cannot be started anew.
pub(crate) fn take(name: &OsStr, arguments: &[OsString]) {
    if untitled(name).is_some() {
        return;
    }
    let mut title = OsString::from(master(Product::of_program(name)));
    title.push(name);
    // It returns only with an error, and a plain name does as well.
    let _ = Command::new("/proc/self/exe")
        .arg0(title)
        .args(arguments)
        .exec();
}

/// The name under which the program was started, without the title.
pub(crate) fn program() -> OsString {
    let name = std::env::args_os().next().unwrap_or_default();
    untitled(&name).map_or_else(|| name.clone(), OsStr::to_os_string)
}

/// The name behind a master's title.
fn untitled(name: &OsStr) -> Option<&OsStr> {
    let products = [Product::Turnpike, Product::Nginx];
    let mut titles = products.into_iter().map(master);
    let name = titles.find_map(|title| name.as_bytes().strip_prefix(title.as_bytes()))?;
    Some(OsStr::from_bytes(name))
}
