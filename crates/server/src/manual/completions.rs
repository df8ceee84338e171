//! Completions for shells: the first word, then what belongs to it. Values are completed as files
//! where nothing else is known.

use std::fmt::Write as _;

use turnpike_usage::{OptionUsage, Usage};

/// The words that can follow a command.
fn words(usage: &Usage) -> Vec<String> {
    let subcommands = usage.subcommands.iter().map(|one| one.name.clone());
    let options = usage.options.iter().flat_map(|option| {
        let names = names(option);
        let is_free = names.is_empty();
        let choices = option.choices.iter().filter(move |_| is_free).cloned();
        names.into_iter().chain(choices)
    });
    subcommands.chain(options).collect()
}

/// An option as it is written.
fn names(option: &OptionUsage) -> Vec<String> {
    let short = option.short.map(|letter| format!("-{letter}"));
    let long = option.long.as_ref().map(|word| format!("--{word}"));
    [short, long].into_iter().flatten().collect()
}

/// A text inside single quotes of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''").replace('\n', " "))
}

/// The first sentence: what fits beside a word.
fn brief(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.split(". ")
        .next()
        .unwrap_or(line)
        .trim_end_matches('.')
}

/// For bash, to be put into its folder of completions as `turnpike`.
pub(super) fn bash(whole: &Usage) -> String {
    let mut cases = String::new();
    let mut case = |name: &str, usage: &Usage| {
        let own = quoted(&words(usage).join(" "));
        let _ = writeln!(cases, "        '{name}'|'{name} '*) words={own} ;;");
    };
    for command in &whole.subcommands {
        let inner = command.subcommands.iter();
        for inner in inner.filter(|inner| !inner.options.is_empty()) {
            case(&format!("{} {}", command.name, inner.name), inner);
        }
        case(&command.name, command);
    }
    let first = quoted(&words(whole).join(" "));
    format!(
        "# Written by \"turnpike completions bash\".\n\
         _turnpike() {{\n    \
         local word=${{COMP_WORDS[COMP_CWORD]}} words={first} path='' index\n    \
         for ((index = 1; index < COMP_CWORD; index++)); do\n        \
         case ${{COMP_WORDS[index]}} in\n        -*) ;;\n        \
         *) path=\"${{path:+$path }}${{COMP_WORDS[index]}}\" ;;\n        esac\n    \
         done\n    \
         case $path in\n{cases}    esac\n    \
         COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n    \
         [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$word\"))\n\
         }}\n\
         complete -o filenames -F _turnpike turnpike\n"
    )
}

/// For zsh, to be put into a folder of `fpath` as `_turnpike`.
pub(super) fn zsh(whole: &Usage) -> String {
    let mut cases = String::new();
    for command in &whole.subcommands {
        let own = zsh_entries(command);
        let _ = write!(
            cases,
            "    {})\n      entries=(\n{own}      ) ;;\n",
            command.name
        );
    }
    let first = zsh_entries(whole);
    format!(
        "#compdef turnpike\n# Written by \"turnpike completions zsh\".\n\
         _turnpike() {{\n  local -a entries\n  local first='' word\n  \
         for word in ${{words[2,CURRENT-1]}}; do\n    \
         [[ $word == -* ]] || {{ first=$word; break }}\n  done\n  \
         case $first in\n{cases}    *)\n      entries=(\n{first}      ) ;;\n  esac\n  \
         _describe turnpike entries || _files\n}}\n_turnpike \"$@\"\n"
    )
}

/// A line for each word that can follow a command, with what it does.
fn zsh_entries(usage: &Usage) -> String {
    let mut out = String::new();
    let mut line = |word: &str, meaning: &str| {
        let entry = format!("{}:{}", word.replace(':', "\\:"), brief(meaning));
        let _ = writeln!(out, "        {}", quoted(&entry));
    };
    for one in &usage.subcommands {
        line(&one.name, &one.summary);
    }
    for option in &usage.options {
        let names = names(option);
        names.iter().for_each(|name| line(name, &option.help));
        if names.is_empty() {
            option.choices.iter().for_each(|choice| line(choice, ""));
        }
    }
    out
}

/// For fish, to be put into its folder of completions as `turnpike.fish`.
pub(super) fn fish(whole: &Usage) -> String {
    let mut out = String::from("# Written by \"turnpike completions fish\".\n");
    fish_of(&mut out, whole, "__fish_use_subcommand");
    for command in &whole.subcommands {
        let condition = format!("__fish_seen_subcommand_from {}", command.name);
        fish_of(&mut out, command, &condition);
    }
    out
}

fn fish_of(out: &mut String, usage: &Usage, condition: &str) {
    let start = format!("complete -c turnpike -n {}", quoted(condition));
    for one in &usage.subcommands {
        let summary = quoted(brief(&one.summary));
        let _ = writeln!(out, "{start} -f -a {} -d {summary}", quoted(&one.name));
    }
    for option in &usage.options {
        let mut line = start.clone();
        let has_name = option.short.is_some() || option.long.is_some();
        if let Some(letter) = option.short {
            let _ = write!(line, " -s {}", quoted(&letter.to_string()));
        }
        if let Some(word) = &option.long {
            let _ = write!(line, " -l {word}");
        }
        if option.value.is_some() && has_name {
            line.push_str(" -r");
        }
        if !option.choices.is_empty() {
            let _ = write!(line, " -a {}", quoted(&option.choices.join(" ")));
        } else if !has_name {
            continue;
        }
        let _ = writeln!(out, "{line} -d {}", quoted(brief(&option.help)));
    }
}
