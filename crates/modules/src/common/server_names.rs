//! The names by which servers are counted.

use turnpike_conf::View;

/// The name under which servers without a name are counted.
pub(crate) const NAMELESS: &[u8] = b"_";

/// The first names of all servers of the http level, as requests know them; those without a name
/// are left out.
pub(crate) fn first_names<'a>(http: View<'a>) -> impl Iterator<Item = Vec<u8>> + 'a {
    let names = http.children("server").map(|server| {
        let entry = server.own_all("server_name").next();
        let name = entry
            .map_or("", |entry| entry.argument(0))
            .to_ascii_lowercase();
        name.strip_prefix('.').unwrap_or(&name).as_bytes().to_vec()
    });
    names.filter(|name| !name.is_empty())
}
