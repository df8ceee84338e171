use super::*;

#[test]
fn the_environment_names_no_host() {
    let topology = Topology::Loopback(None);
    let text = format!("{:?}", sections(&topology));
    let host = Host::here().setting("kernel/hostname").unwrap_or_default();
    // A host called "vm" would be found in every word.
    if host.len() > 5 && host != "localhost" {
        assert!(!text.contains(&host), "{text}");
    }
    for wanted in [
        "Processor",
        "Kernel",
        "somaxconn",
        "open files",
        "mitigations",
    ] {
        assert!(text.contains(wanted), "{wanted} is missing in {text}");
    }
}

#[test]
fn the_machine_is_a_part_of_a_file_name() {
    let slug = slug();
    assert!(!slug.is_empty());
    let fits = |byte: char| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == '-';
    assert!(slug.chars().all(fits), "{slug}");
}
