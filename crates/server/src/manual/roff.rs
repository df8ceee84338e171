//! Manual pages.

use std::fmt::Write as _;

use turnpike_conf::Row;
use turnpike_usage::{OptionUsage, Usage};

use crate::control::command_line;
use crate::families;
use crate::subcommands::SUBCOMMANDS;
use turnpike_plan::product::TURNPIKE_VERSION;

/// turnpike(8): the server's command line.
pub(super) fn server() -> String {
    let mut page = head(
        "turnpike",
        8,
        "HTTP server and accelerator that reads nginx.conf",
    );
    page.push_str(
        ".SH SYNOPSIS\n.B turnpike\n[\\fB\\-?hvVtTq\\fR] [\\fB\\-s\\fR \\fIsignal\\fR] \
         [\\fB\\-p\\fR \\fIprefix\\fR] [\\fB\\-e\\fR \\fIfilename\\fR] [\\fB\\-c\\fR \
         \\fIfilename\\fR] [\\fB\\-g\\fR \\fIdirectives\\fR]\n.br\n.B turnpike\n\\fIsubcommand\\fR \
         [\\fIargument\\fR ...]\n.SH DESCRIPTION\n",
    );
    page.push_str(&text(
        "Turnpike serves files, passes requests to other servers and caches their responses. \
         Without a subcommand it starts the server. Its configuration is an nginx.conf, which \
         turnpike.conf(5) describes. `turnpike check FILE` shows which directives of an existing \
         file work.",
    ));
    page.push_str(".SH OPTIONS\n");
    options(&mut page, &super::server_options());
    page.push_str(".SH SUBCOMMANDS\n");
    for tool in SUBCOMMANDS {
        tagged(&mut page, tool.name, tool.summary);
    }
    page.push_str(".SH SUBCOMMANDS FOR A RUNNING SERVER\n");
    page.push_str(&text(
        "These ask the running server over its control socket. -c and -p name its configuration \
         as they do for -s; --socket names the socket itself. --json prints JSON.",
    ));
    for usage in command_line::usages() {
        if usage.subcommands.is_empty() {
            tagged(&mut page, &usage.name, &usage.summary);
        }
        for verb in &usage.subcommands {
            let arguments = verb.options.iter().filter_map(|one| one.value.as_deref());
            let words = [usage.name.as_str(), &verb.name]
                .into_iter()
                .chain(arguments);
            let words: Vec<&str> = words.collect();
            tagged(&mut page, &words.join(" "), &verb.summary);
        }
    }
    page.push_str(".SH SIGNALS\n");
    for (signal, meaning) in SIGNALS {
        tagged(&mut page, signal, meaning);
    }
    page.push_str(".SH FILES\n");
    for (file, meaning) in FILES {
        tagged(&mut page, file, meaning);
    }
    see_also(&mut page, "turnpike.8");
    page
}

/// The places that an installation under `/usr` has; the options above name those without one.
const FILES: &[(&str, &str)] = &[
    (
        "/etc/turnpike/nginx.conf",
        "The configuration of an installed package.",
    ),
    (
        "/etc/turnpike/conf.d/*.conf",
        "Servers, included by that file.",
    ),
    ("/var/log/turnpike/", "Logs."),
    ("/var/cache/turnpike/", "Temporary files and caches."),
    (
        "/var/lib/turnpike/",
        "Data to keep, such as ACME certificates.",
    ),
    ("/run/turnpike/turnpike.pid", "The master's process ID."),
    ("/usr/share/turnpike/", "Where relative paths begin."),
];

/// What the master does on each signal.
const SIGNALS: &[(&str, &str)] = &[
    ("HUP", "Reload the configuration. No connection is closed."),
    ("QUIT", "Stop when running requests are done."),
    ("TERM, INT", "Stop at once."),
    ("USR1", "Reopen the log files."),
    ("USR2", "Start another binary beside this one."),
    ("WINCH", "Stop serving, but keep the master."),
];

/// turnpike.conf(5): every directive.
pub(super) fn directives() -> String {
    let mut page = head("turnpike.conf", 5, "configuration of the Turnpike server");
    page.push_str(".SH DESCRIPTION\n");
    page.push_str(&text(
        "The file has nginx's syntax: directives that end with a semicolon, and blocks in braces. \
         Every directive below has its syntax, its default and the contexts in which it may stand. \
         `turnpike -t` checks a file and reports all mistakes in one run.",
    ));
    page.push_str(".SH DIRECTIVES\n");
    let reference = families::reference();
    let mut family = "";
    for (of, rows, explanation) in reference.directives() {
        if of != family {
            family = of;
            let _ = writeln!(page, ".SS {}", escape(family));
        }
        for row in rows {
            directive(&mut page, row);
        }
        if let Some(explanation) = explanation {
            explain(&mut page, explanation);
        }
    }
    see_also(&mut page, "turnpike.conf.5");
    page
}

/// turnpike-view(1): the program that the server's binary starts for views.
pub(super) fn view() -> String {
    let mut page = head(
        "turnpike-view",
        1,
        "draw live views of Turnpike on a terminal",
    );
    page.push_str(".SH SYNOPSIS\n.B turnpike-view\n\\fBtop\\fR | \\fBload\\fR\n.SH DESCRIPTION\n");
    page.push_str(&text(
        "`turnpike top` and `turnpike load --live` start this program, which draws what they \
         measure on the whole terminal. It is not meant to be started by hand: it reads frames, \
         one line of JSON each, from standard input, and ends with its input. It is apart from \
         the server's program, so that the server links no library for terminals.",
    ));
    see_also(&mut page, "turnpike-view.1");
    page
}

/// The other pages, by section and name.
fn see_also(page: &mut String, own: &str) {
    let others = super::PAGES.iter().filter(|(name, _)| *name != own);
    let mut others: Vec<(&str, &str)> = others
        .filter_map(|(name, _)| name.rsplit_once('.'))
        .collect();
    others.sort_by_key(|(name, section)| (*section, *name));
    let others = others.iter().map(|(name, section)| {
        let name = escape(name);
        format!(".BR {name} ({section})")
    });
    let others: Vec<String> = others.collect();
    let _ = writeln!(page, ".SH SEE ALSO\n{}", others.join(",\n"));
}

fn directive(page: &mut String, row: &Row) {
    let ending = if row.value.is_block() { "{ ... }" } else { ";" };
    let gap = if row.syntax.is_empty() && !row.value.is_block() {
        ""
    } else {
        " "
    };
    let syntax = format!("{}{gap}{}", row.name, row.syntax);
    tag(page, &format!("{}{ending}", syntax.trim_end_matches(' ')));
    page.push_str(&text(row.summary));
    let contexts: Vec<&str> = row.contexts.iter().map(|context| context.text()).collect();
    if !row.default.is_empty() {
        let _ = write!(page, ".br\nDefault: {}\n", text(row.default).trim_end());
    }
    let _ = write!(page, ".br\nContext: {}\n", escape(&contexts.join(", ")));
}

/// A text of several paragraphs, lists and examples, below the directive that it is about.
fn explain(page: &mut String, markdown: &str) {
    let (mut paragraph, mut is_example) = (String::new(), false);
    let end = |paragraph: &mut String, page: &mut String| {
        if !paragraph.is_empty() {
            let _ = write!(page, ".IP\n{}", text(paragraph));
            paragraph.clear();
        }
    };
    for line in markdown.lines() {
        if line.starts_with("```") || line.is_empty() || line.starts_with("- ") {
            end(&mut paragraph, page);
        }
        if line.starts_with("```") {
            is_example = !is_example;
            page.push_str(if is_example { ".IP\n.EX\n" } else { ".EE\n" });
        } else if is_example {
            // The mark keeps a line that is empty, or that roff would take for an order.
            let _ = writeln!(page, "\\&{}", escape(line));
        } else if !line.starts_with("<!--") {
            let gap = if paragraph.is_empty() { "" } else { " " };
            paragraph.push_str(gap);
            paragraph.push_str(line.trim_start());
        }
    }
    end(&mut paragraph, page);
}

/// The page of a tool that has a command line of its own.
pub(super) fn tool(usage: &Usage) -> String {
    let words = usage.name.replace(' ', "-");
    let mut page = head(&words, 1, usage.summary.trim_end_matches('.'));
    let _ = write!(page, ".SH SYNOPSIS\n.B {}\n", escape(&usage.name));
    let free = usage.options.iter().filter(|one| is_free(one));
    let free: Vec<&str> = free.filter_map(|one| one.value.as_deref()).collect();
    if usage.subcommands.is_empty() {
        let _ = writeln!(page, "[\\fIoption\\fR ...] {}", escape(&free.join(" ")));
    } else {
        page.push_str("\\fIcommand\\fR [\\fIoption\\fR ...]\n");
    }
    if !usage.options.is_empty() {
        page.push_str(".SH OPTIONS\n");
        options(&mut page, &usage.options);
    }
    if !usage.subcommands.is_empty() {
        page.push_str(".SH COMMANDS\n");
        for command in &usage.subcommands {
            let _ = writeln!(
                page,
                ".SS {} {}",
                escape(&usage.name),
                escape(&command.name)
            );
            page.push_str(&text(&command.summary));
            options(&mut page, &command.options);
        }
    }
    see_also(&mut page, &format!("{words}.1"));
    page
}

fn is_free(option: &OptionUsage) -> bool {
    option.short.is_none() && option.long.is_none()
}

fn options(page: &mut String, options: &[OptionUsage]) {
    for option in options {
        let short = option.short.map(|letter| format!("-{letter}"));
        let long = option.long.as_ref().map(|word| format!("--{word}"));
        let names: Vec<String> = [short, long].into_iter().flatten().collect();
        let mut words = vec![names.join(", ")];
        words.extend(option.value.clone());
        let name = words.join(" ");
        let mut help = option.help.clone();
        if !option.choices.is_empty() {
            let _ = write!(help, " One of: {}.", option.choices.join(", "));
        }
        tagged(page, name.trim(), help.trim());
    }
}

fn head(name: &str, section: u8, summary: &str) -> String {
    format!(
        ".\\\" Written by \"turnpike manual {name}.{section}\".\n\
         .TH {} {section} \"\" \"turnpike {TURNPIKE_VERSION}\"\n\
         .SH NAME\n{} \\- {}\n",
        escape(&name.to_uppercase()),
        escape(name),
        escape(summary),
    )
}

fn tagged(page: &mut String, name: &str, meaning: &str) {
    tag(page, name);
    page.push_str(&text(meaning));
}

fn tag(page: &mut String, name: &str) {
    let _ = write!(page, ".TP\n\\fB{}\\fR\n", escape(name));
}

/// A paragraph: Markdown's backquotes become bold, links keep their words.
fn text(markdown: &str) -> String {
    let mut out = String::new();
    for (index, part) in without_links(markdown).split('`').enumerate() {
        match index % 2 {
            0 => out.push_str(&escape(part)),
            _ => {
                let _ = write!(out, "\\fB{}\\fR", escape(part));
            }
        }
    }
    if out.starts_with(['.', '\'']) {
        format!("\\&{out}\n")
    } else {
        format!("{out}\n")
    }
}

/// `[words](target)` becomes `words`.
fn without_links(markdown: &str) -> String {
    let mut out = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once("](") {
        let (kept, words) = before.rsplit_once('[').unwrap_or((before, ""));
        let Some((_, after)) = link.split_once(')') else {
            break;
        };
        out.push_str(kept);
        out.push_str(words);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Text that roff prints as it is.
fn escape(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len());
    for letter in plain.chars() {
        match letter {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '~' => out.push_str("\\(ti"),
            '^' => out.push_str("\\(ha"),
            '\n' => out.push(' '),
            letter if letter.is_ascii() => out.push(letter),
            letter => {
                let _ = write!(out, "\\[u{:04X}]", letter as u32);
            }
        }
    }
    out
}
