//! The options of a usage text as data: the text stays what a person edits.

use turnpike_usage::OptionUsage;

/// The options that a help text lists, a line each, as `  -p prefix : what it does`.
pub(crate) fn options_of(help: &str) -> Vec<OptionUsage> {
    let mut options: Vec<OptionUsage> = Vec::new();
    for line in help.lines().filter(|line| line.starts_with("  ")) {
        let Some((names, meaning)) = line.split_once(" : ") else {
            if let Some(last) = options.last_mut() {
                last.help.push(' ');
                last.help.push_str(line.trim());
            }
            continue;
        };
        for name in names.split(',').map(str::trim) {
            let (name, value) = name.split_once(' ').unwrap_or((name, ""));
            let long = name.strip_prefix("--").map(str::to_owned);
            let letter = name.trim_start_matches('-').chars().next();
            options.push(OptionUsage {
                short: letter.filter(|_| long.is_none()),
                long,
                value: (!value.is_empty()).then(|| value.to_owned()),
                help: meaning.trim().to_owned(),
                ..OptionUsage::default()
            });
        }
    }
    options
}
