//! The reference of the directives: what their rows say, and beside it texts that people write.
//!
//! A page has the directives of one family, and those of its counterpart in `stream` if both have
//! the same texts. Texts are checked against the rows, never trusted.

mod page;
mod sections;

use crate::registry::Row;
pub use page::plain;
use page::{Entry, Page};
use sections::{Section, read};

/// Texts about directives, in Markdown: an introduction, and a section `## NAME` for each
/// directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceText {
    markdown: &'static str,
    /// Words that are replaced, for a text that several families share.
    words: &'static [(&'static str, &'static str)],
}

impl ReferenceText {
    /// The texts of one family.
    pub const fn new(markdown: &'static str) -> ReferenceText {
        ReferenceText::shared(markdown, &[])
    }

    /// Texts that several families share, with each word that stands for another one.
    /// Sections about directives that the family does not have are left out.
    pub const fn shared(
        markdown: &'static str,
        words: &'static [(&'static str, &'static str)],
    ) -> ReferenceText {
        ReferenceText { markdown, words }
    }

    /// Whether other families have the same text with other words.
    fn is_shared(self) -> bool {
        !self.words.is_empty()
    }
}

/// What the reference shows of a family.
#[derive(Clone, Copy, Debug)]
pub struct FamilyReference {
    /// The name.
    pub name: &'static str,
    /// The directives.
    pub rows: &'static [Row],
    /// The texts about them: for each directive, the first section with its name.
    pub texts: &'static [ReferenceText],
}

/// Where a directive of a family comes from, such as `nginx, since 1.3.13`.
pub type Origin = fn(&str, &Row) -> Option<String>;

/// The whole reference.
#[derive(Clone, Debug)]
pub struct Reference {
    pages: Vec<Page>,
    problems: Vec<String>,
}

impl Reference {
    /// The reference of these families, in their order.
    pub fn new(families: &[FamilyReference], origin: Origin) -> Reference {
        let mut reference = Reference {
            pages: Vec::new(),
            problems: Vec::new(),
        };
        let mut shared = Vec::new();
        for (index, family) in families.iter().enumerate() {
            let is_same = |other: &FamilyReference| other.texts == family.texts;
            let is_first = family.texts.is_empty() || !families[..index].iter().any(is_same);
            // Some only count or add variables.
            if family.rows.is_empty() || !is_first {
                continue;
            }
            let others = families[index + 1..].iter();
            let others = others.filter(|other| !family.texts.is_empty() && is_same(other));
            let members: Vec<&FamilyReference> = std::iter::once(family).chain(others).collect();
            reference.add(&members, origin, &mut shared);
        }
        reference.missing_everywhere(&shared);
        reference
    }

    /// Adds the page of these families, which have the same texts. `shared` collects the sections
    /// of shared texts, and whether this family has the directive.
    fn add(
        &mut self,
        members: &[&FamilyReference],
        origin: Origin,
        shared: &mut Vec<(&'static str, bool)>,
    ) {
        let family = members[0];
        let mut page = Page::new(family.name);
        for member in members {
            for row in member.rows {
                page.add(row, origin(member.name, row));
            }
        }
        for text in family.texts {
            let (introduction, sections) = read(text.markdown, text.words);
            if !text.is_shared() {
                page.introduction = introduction;
            }
            for section in sections {
                let found = page.entries.iter_mut().find(|one| one.name == section.name);
                if text.is_shared() {
                    shared.push((section.heading, found.is_some()));
                }
                match found {
                    Some(entry) => self.describe(family.name, entry, section, text.is_shared()),
                    None if text.is_shared() => {}
                    None => self.problem(family.name, &section.name, "has a text, but no row"),
                }
            }
        }
        self.pages.push(page);
    }

    /// Gives a directive its text, and notes what the text lacks.
    fn describe(&mut self, family: &str, entry: &mut Entry, section: Section, is_shared: bool) {
        match entry.text {
            None => {}
            // A family's own text says more.
            Some(_) if is_shared => return,
            Some(_) => return self.problem(family, &section.name, "has two texts"),
        }
        for parameter in entry.parameters() {
            let is_named = [format!("`{parameter}="), format!("`{parameter}`")];
            if !is_named.iter().any(|form| section.body.contains(form)) {
                let complaint = format!("has a text that does not explain \"{parameter}=\"");
                self.problem(family, &section.name, &complaint);
            }
        }
        // Another section may have the example.
        if !section.body.contains("```nginx\n") && !section.body.contains("(#") {
            let complaint = "has a text without an example, or a link to a section with one";
            self.problem(family, &section.name, complaint);
        }
        entry.text = Some(section.body);
    }

    /// Notes the shared sections that no family has a directive for.
    fn missing_everywhere(&mut self, shared: &[(&'static str, bool)]) {
        for (index, (heading, _)) in shared.iter().enumerate() {
            let is_first = !shared[..index].iter().any(|(other, _)| other == heading);
            let is_used = shared.iter().any(|(other, used)| other == heading && *used);
            if is_first && !is_used {
                self.problem("shared", heading, "has a text, but no row in any family");
            }
        }
    }

    fn problem(&mut self, family: &str, name: &str, complaint: &str) {
        self.problems.push(format!("{family}: {name}: {complaint}"));
    }

    /// The errors of the texts: no row for one, a parameter that is not explained, no example.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The pages: a file name and Markdown each.
    pub fn pages(&self) -> impl Iterator<Item = (String, String)> {
        self.pages.iter().map(|page| (page.file(), page.markdown()))
    }

    /// A list of all pages with their directives, in which `folder` leads to the pages.
    pub fn index(&self, folder: &str) -> String {
        let lines = self.pages.iter().map(|page| page.index_line(folder));
        lines.collect()
    }

    /// The part about one directive, of each page that has it; `None` if there is none.
    pub fn of(&self, name: &str) -> Option<String> {
        let pages = self.pages.iter();
        let found: Vec<String> = pages.filter_map(|page| page.entry(name)).collect();
        (!found.is_empty()).then(|| found.join("\n"))
    }

    /// All directives: the name of the page, the rows, and the text by hand, if there is one.
    pub fn directives(
        &self,
    ) -> impl Iterator<Item = (&'static str, Vec<&'static Row>, Option<&str>)> {
        self.pages.iter().flat_map(|page| {
            let entries = page.entries.iter();
            entries.map(|entry| (page.name, entry.rows().collect(), entry.text.as_deref()))
        })
    }

    /// The rows that no text explains, with the names of their pages.
    pub fn unexplained(&self) -> impl Iterator<Item = (&'static str, &'static Row)> {
        self.pages.iter().flat_map(|page| {
            let bare = page.entries.iter().filter(|entry| entry.text.is_none());
            bare.flat_map(|entry| entry.rows().map(|row| (page.name, row)))
        })
    }
}
