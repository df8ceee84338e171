//! The groups of the key exchange that clients agreed upon with our server, as its log has them.

use std::collections::BTreeSet;

use crate::outcome::Outcome;

/// What clients call themselves, and the group that each must get; `None`: it depends on the
/// client's version.
const CLIENTS: [(&str, &str, Option<&str>); 4] = [
    ("Chromium", "HeadlessChrome/", Some("X25519MLKEM768")),
    ("Go", "Go-http-client/", None),
    ("Python", "python-httpx/", None),
    ("curl", "curl/", None),
];

/// Prints the groups of a log whose lines are `GROUP USER-AGENT`, and says which are not as they
/// must be.
pub(super) fn judge(log: &str) -> Outcome {
    let mut wrong = Vec::new();
    for (client, agent, wanted) in CLIENTS {
        let lines = log.lines().filter_map(|line| line.split_once(' '));
        let own = lines.filter(|(_, name)| name.contains(agent));
        let groups: BTreeSet<&str> = own.map(|(group, _)| group).collect();
        let groups: Vec<&str> = groups.into_iter().collect();
        let groups = groups.join(", ");
        println!("{client:<10}key exchange by {groups}");
        if groups.is_empty() || wanted.is_some_and(|wanted| wanted != groups) {
            wrong.push(format!("{client}: the key exchange is by \"{groups}\""));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}
