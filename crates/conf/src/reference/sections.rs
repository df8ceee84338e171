//! Texts of people, cut into sections. What is in a section is only copied.

/// The text about one directive.
pub(super) struct Section {
    /// The heading as it is written, before words are replaced.
    pub(super) heading: &'static str,
    /// The directive.
    pub(super) name: String,
    pub(super) body: String,
}

/// The introduction before the first section, and the sections.
pub(super) fn read(
    markdown: &'static str,
    words: &[(&'static str, &'static str)],
) -> (String, Vec<Section>) {
    let replaced = |text: &str| {
        let mut text = text.to_owned();
        for (word, other) in words {
            text = text.replace(word, other);
        }
        text
    };
    let (mut introduction, mut sections) = (String::new(), Vec::<Section>::new());
    let mut is_code = false;
    for line in markdown.lines() {
        is_code ^= line.starts_with("```");
        if let Some(heading) = line.strip_prefix("## ").filter(|_| !is_code) {
            let (name, body) = (replaced(heading), String::new());
            sections.push(Section {
                heading,
                name,
                body,
            });
            continue;
        }
        let body = match sections.last_mut() {
            Some(section) => &mut section.body,
            None => &mut introduction,
        };
        body.push_str(&replaced(line));
        body.push('\n');
    }
    for body in sections.iter_mut().map(|section| &mut section.body) {
        *body = body.trim().to_owned();
    }
    (introduction.trim().to_owned(), sections)
}
