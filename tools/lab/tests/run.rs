//! Tests of whole runs of scripted studies: differences are found, results are kept, and errors are
//! reported.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, lab, run, runs, start, stderr, study, wait_for};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

#[test]
fn a_planted_difference_of_three_percent_is_found() {
    let folder = Folder::new();
    let output = run(&folder, &study(10300, 8, ""), &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let readme = folder.result("README.md");
    assert!(readme.contains("**seen**: the first is faster"), "{readme}");
    assert!(
        readme.contains("Ratio of requests/s: 1.03 (1.0"),
        "{readme}"
    );
}

#[test]
fn goals_are_met_or_missed_and_the_last_one_for_a_figure_counts() {
    let folder = Folder::new();
    let output = run(&folder, &study(10300, 8, ""), &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let readme = folder.result("README.md");
    let rows = readme.lines().skip_while(|line| *line != "## Goals");
    let rows: Vec<&str> = rows.filter(|line| line.starts_with("| 1 |")).collect();
    let [cpu, latency] = rows[..] else {
        panic!("{readme}");
    };
    assert!(readme.contains("| row | figure | first | second | ratio | goal | verdict |"));
    assert!(
        cpu.starts_with("| 1 | server CPU/request | 9.99 ms"),
        "{cpu}"
    );
    assert!(cpu.ends_with(" | ratio at most 0.98 | met |"), "{cpu}");
    assert!(
        latency.ends_with(" | at most 9.00 ms | missed |"),
        "{latency}"
    );
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains("  ratio at most 0.98  met\n"), "{printed}");
    assert!(
        folder
            .result("report.html")
            .contains("<section id=\"goals\">")
    );
}

#[test]
fn a_planted_difference_of_nothing_is_not_claimed() {
    let folder = Folder::new();
    let output = run(&folder, &study(10000, 8, ""), &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let readme = folder.result("README.md");
    let expected = "**no difference shown**: the first is faster";
    assert!(readme.contains(expected), "{readme}");
}

#[test]
fn results_are_whole_and_can_be_made_again() {
    let folder = Folder::new();
    let output = run(&folder, &study(12000, 3, ""), &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let results = folder.results();
    let name = results.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.contains("-scripted-"), "{name}");
    assert_eq!(runs(&results.join("raw.csv")), 6);
    let report = folder.result("report.html");
    let summary = folder.result("summary.json");
    assert!(summary.contains("script 1.0"), "{summary}");
    assert!(!report.contains("<script"), "no script is in a report");
    for outside in ["http://", "https://"] {
        let own = report.replace("http://www.w3.org/2000/svg", "");
        assert!(!own.contains(&format!("src=\"{outside}")));
        assert!(!own.contains(&format!("href=\"{outside}")));
    }
    std::fs::remove_file(results.join("report.html")).unwrap();
    let path = results.display().to_string();
    assert!(lab(&folder, &["report", &path]).status.success());
    assert_eq!(folder.result("report.html"), report);
    let compared = lab(&folder, &["compare", &path, &path]);
    let text = String::from_utf8_lossy(&compared.stdout).into_owned();
    assert!(text.contains("no difference shown"), "{text}");
    assert!(text.contains("\ncase  ") && !text.contains('|'), "{text}");
    let page = folder.0.join("compared.html").display().to_string();
    let written = lab(&folder, &["compare", &path, &path, "--html", &page]);
    assert!(written.status.success(), "{}", stderr(&written));
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("no difference shown"));
}

#[test]
fn a_comparison_of_few_runs_has_one_remark_and_aligned_columns() {
    let folder = Folder::new();
    let output = run(&folder, &study(12000, 3, ""), &["--repetitions", "1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let path = folder.results().display().to_string();
    let output = lab(&folder, &["compare", &path, &path]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (remarks, table) = text.split_once("\n\n").unwrap();
    assert_eq!(
        remarks.matches("three usable repetitions").count(),
        1,
        "{text}"
    );
    assert!(!table.contains("usable"), "{text}");
    let column = table.lines().next().and_then(|head| head.find("metric"));
    let column = column.unwrap_or_else(|| panic!("{text}"));
    for line in table.lines() {
        let (before, cell) = line.split_at(column);
        assert!(before.ends_with("  ") && !cell.starts_with(' '), "{text}");
    }
}

#[test]
fn a_quick_run_is_provisional_and_its_report_has_contents_and_links() {
    let folder = Folder::new();
    let output = run(&folder, &study(12000, 8, ""), &["--quick"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report = folder.result("report.html");
    for part in [
        "1 comparison: ",
        "This was a quick run: all figures are provisional",
        "<a href=\"raw.csv\">",
        "<a href=\"summary.json\">",
    ] {
        assert!(report.contains(part), "{part}");
    }
    assert!(!report.contains("not usable"), "{report}");
    let anchors = report.split("<a href=\"#").skip(1);
    let anchors: Vec<&str> = anchors.filter_map(|rest| rest.split('"').next()).collect();
    assert!(anchors.len() > 2, "{anchors:?}");
    for anchor in anchors {
        assert!(report.contains(&format!(" id=\"{anchor}\"")), "{anchor}");
    }
}

#[test]
fn the_list_says_how_long_a_study_takes_and_which_is_none() {
    let folder = Folder::new();
    let output = lab(&folder, &["list"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(" cases, about "), "{text}");
    assert!(text.contains("by turnpike tune climb"), "{text}");
}

#[test]
fn ctrl_c_keeps_what_is_done_and_resume_goes_on() {
    let folder = Folder::new();
    // The third round waits until there is a file.
    let wait = format!(
        "while [ \"$2\" = 2 ] && [ ! -e {}/go ]; do sleep 0.01; done",
        folder.0.display()
    );
    let path = folder.write("study.toml", &study(10300, 4, &wait));
    let path = path.display().to_string();
    let mut child = start(&folder, &["run", &path, "-q"]);
    let results = folder.0.join("results");
    let raw = || {
        let entry = std::fs::read_dir(&results).ok()?.next()?.ok()?;
        Some(entry.path().join("raw.csv"))
    };
    wait_for("two rounds are run", || {
        raw().is_some_and(|raw| runs(&raw) == 4)
    });
    let pid = i32::try_from(child.id()).unwrap();
    kill(Pid::from_raw(pid), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(runs(&raw().unwrap()), 4);
    assert!(folder.result("README.md").contains("(8 were planned)"));
    folder.write("go", "");
    let output = lab(&folder, &["run", &path, "-q", "--resume"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(runs(&raw().unwrap()), 8);
    assert!(folder.result("README.md").contains("**seen**"));
    // Nothing is left to do, and another study's results are not gone on with.
    folder.write("study.toml", &study(10301, 4, &wait));
    let output = lab(&folder, &["run", &path, "-q", "--resume"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("another version of the study"));
}

/// A replacement, the run before it in round 0, the exit status, and the message.
type Mistake = (&'static str, &'static str, Option<usize>, i32, &'static str);

const MISTAKES: &[Mistake] = &[
    (
        "seed = 3",
        "sead = 3",
        None,
        1,
        "unknown field `sead`, expected one of `repetitions`, `seconds`, `warmup_s`, `seed`, \
         `topology`, `driver_may_limit`, `quick` in STUDY:10",
    ),
    (
        "server = \"all\"",
        "server = \"first 9999\"",
        None,
        2,
        "not enough CPUs: 9999 asked for, ",
    ),
    (
        "exec sleep 1000",
        "echo no licence >&2; exit 7",
        Some(0),
        2,
        "contender \"",
    ),
    (
        "noise=",
        "kill $(cat \"$1/pid\"); sleep 1000; noise=",
        Some(0),
        2,
        "died half way with signal: 15 (SIGTERM)",
    ),
    (
        "echo errors 0",
        "exit 9",
        Some(0),
        2,
        "ended with exit status: 9",
    ),
    (
        "echo errors 0",
        "echo nonsense",
        Some(0),
        2,
        "cannot read the line \"nonsense\"",
    ),
    (
        "\"sh\", \"-c\", 'echo \"$1\"",
        "\"no-such-server\", 'echo \"$1\"",
        None,
        1,
        "no case is left to run in STUDY:1",
    ),
];

#[test]
fn errors_are_reported_and_no_process_is_left() {
    for (right, wrong, kept, status, text) in MISTAKES {
        let folder = Folder::new();
        // The contender prints its process number, so that a driver can end it.
        let right_study = study(10300, 3, "").replace("exec sleep", "echo $$ > pid; exec sleep");
        let wrong_study = right_study.replace(right, wrong);
        assert_ne!(right_study, wrong_study, "{right}");
        let output = run(&folder, &wrong_study, &[]);
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(*status), "{stderr}");
        let file = folder.0.join("study.toml").display().to_string();
        assert!(stderr.contains(&text.replace("STUDY", &file)), "{stderr}");
        assert_eq!(
            kept.is_some(),
            folder.0.join("results").exists(),
            "{stderr}"
        );
        if let Some(kept) = kept {
            assert_eq!(runs(&folder.results().join("raw.csv")), *kept);
        }
        let left = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
        let pid = output_pid(&stderr);
        let mut left = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
        assert!(pid.is_none() || !left.any(|name| Some(name) == pid));
    }
}

/// The lab's folder, where a message names it.
fn output_pid(stderr: &str) -> Option<String> {
    let start = stderr.find("turnpike-lab-")?;
    let rest = &stderr[start..];
    let end = rest.find(|byte: char| !byte.is_ascii_alphanumeric() && byte != '-');
    Some(rest[..end.unwrap_or(rest.len())].to_owned())
}

#[test]
fn a_port_in_use_is_reported() {
    let folder = Folder::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let wrong = format!("echo bind to 127.0.0.1:{port}: Address already in use >&2; exit 1");
    let text = study(10300, 2, "")
        .replace("exec sleep 1000", &wrong)
        .replace("ready = \"start\"", "ready = \"answer\"");
    let output = run(&folder, &text, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains(" is in use): bind to 127.0.0.1:"),
        "{}",
        stderr(&output)
    );
}

/// A small disk, where this process may mount one; removed when dropped.
struct Disk<'a>(&'a std::path::Path);

impl<'a> Disk<'a> {
    fn mount(path: &'a std::path::Path, size: &str) -> Option<Disk<'a>> {
        std::fs::create_dir_all(path).unwrap();
        let options = format!("size={size}");
        let flags = MsFlags::empty();
        mount(
            Some("none"),
            path,
            Some("tmpfs"),
            flags,
            Some(options.as_str()),
        )
        .ok()?;
        Some(Disk(path))
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = umount2(self.0, MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    let folder = Folder::new();
    let path = folder.0.join("results");
    // Room for what is written first, and for a few of the two hundred runs.
    let Some(_disk) = Disk::mount(&path, "64k") else {
        return;
    };
    let output = run(&folder, &study(10300, 100, ""), &[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("No space left on device"),
        "{}",
        stderr(&output)
    );
    assert!(
        stderr(&output).contains("runs are kept in"),
        "{}",
        stderr(&output)
    );
    assert!(runs(&folder.results().join("raw.csv")) > 0);
    assert!(folder.result("summary.json").trim_end().ends_with('}'));
}

#[test]
fn studies_are_listed_and_shown() {
    let folder = Folder::new();
    let listed = lab(&folder, &["list"]);
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names = text.lines().filter(|line| line.starts_with('s'));
    let names: Vec<&str> = names.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names.len(), 9, "{text}");
    for name in names {
        let shown = lab(&folder, &["show", name]);
        assert!(shown.status.success(), "{name}: {}", stderr(&shown));
        let source = lab(&folder, &["show", name, "--source"]);
        let source = String::from_utf8_lossy(&source.stdout).into_owned();
        assert!(source.contains(&format!("name = \"{name}\"")));
    }
    let output = lab(&folder, &["show", "s9"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is no study \"s9\""));
}

/// A ladder whose climb prints its words and makes its folder.
const LADDER: &str = r#"
name = "steps"
title = "Steps"
source = "nobody"
about = "Steps that build on each other."

[climb]
command = ["sh", "-c", 'mkdir "$1" && echo "$@" > "$1/words"; exit 7', "climb",
    "{folder}", "{turnpike}"]
quick = ["--quick"]

[[ladder]]
text = "the start"
connections_per_s = 1
"#;

#[test]
fn a_ladder_is_climbed_by_its_command() {
    let folder = Folder::new();
    for (words, last) in [(&[][..], "turnpike\n"), (&["--quick"], " --quick\n")] {
        let output = run(&folder, LADDER, words);
        assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
        let results = folder.results();
        let said = folder.result("words");
        assert!(
            said.starts_with(&format!("results/{}", name_of(&results))),
            "{said}"
        );
        assert!(said.ends_with(last), "{said}");
        std::fs::remove_dir_all(&results).unwrap();
    }
    let output = run(&folder, LADDER, &["--seconds", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "a climb accepts only --quick and --out, not --seconds in ";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

fn name_of(folder: &std::path::Path) -> String {
    folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[test]
fn a_study_of_published_steps_alone_has_nothing_to_run() {
    let folder = Folder::new();
    let (head, rest) = LADDER.split_once("[climb]").unwrap();
    let (_, ladder) = rest.split_once("[[ladder]]").unwrap();
    let output = run(&folder, &format!("{head}[[ladder]]{ladder}"), &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("this study is data and has nothing to run"),
        "{said}"
    );
    assert!(said.contains("study.toml:2"), "{said}");
}
