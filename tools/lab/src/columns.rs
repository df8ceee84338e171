//! Tables for a terminal.

/// The lines of a table, the head first, with cells as wide as the widest of their column.
pub(crate) fn aligned<'a, L>(head: &'a L, rows: &'a [L]) -> String
where
    L: AsRef<[String]>,
{
    let all = || std::iter::once(head).chain(rows).map(AsRef::as_ref);
    let width = |column: usize| {
        let cells = all().filter_map(|line| line.get(column));
        let widths = cells.map(|cell| cell.chars().count());
        widths.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.as_ref().len()).map(width).collect();
    let mut text = String::new();
    for line in all() {
        let cells = line.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}
