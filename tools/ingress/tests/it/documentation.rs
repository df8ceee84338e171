//! The page about Kubernetes names every annotation and key that differs, with the reason.

use turnpike_ingress::{ANNOTATIONS, Effect, SETTINGS};

const PAGE: &str = include_str!("../../../../docs/kubernetes.md");

fn rows(rows: impl Iterator<Item = (&'static str, Effect)>) -> Vec<String> {
    let rows = rows.filter_map(|(name, effect)| match effect {
        Effect::Works => None,
        Effect::Differs(text) => Some(format!("| `{name}` | works; {text} |")),
        Effect::WithoutEffect(text) => Some(format!("| `{name}` | changes nothing: {text} |")),
        Effect::Refused(text) => Some(format!("| `{name}` | refused: {text} |")),
    });
    rows.collect()
}

#[test]
fn the_page_has_every_difference() {
    let wanted = [
        (
            "Annotations",
            rows(ANNOTATIONS.iter().map(|row| (row.name, row.effect))),
        ),
        (
            "Keys",
            rows(SETTINGS.iter().map(|row| (row.name, row.effect))),
        ),
    ];
    for (what, wanted) in wanted {
        let heading = format!("## {what} that differ");
        let section = PAGE.split(&heading).nth(1).unwrap_or_default();
        let section = section.split("\n## ").next().unwrap_or_default();
        let found: Vec<&str> = section
            .lines()
            .filter(|line| line.starts_with("| `"))
            .collect();
        assert_eq!(
            found,
            wanted,
            "{heading}: the table should be\n{}",
            wanted.join("\n")
        );
    }
}
