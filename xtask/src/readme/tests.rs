use super::*;

const README: &str = "\
Words.
    $ not a command of ours

## Two commands

    $ git clone ADDRESS turnpike
    $ make run     # serves

## Quick start

    $ cat > file <<END
    text
    END
    $ it's done

## Later

    $ nor this
";

#[test]
fn commands_are_those_of_two_sections_with_their_lines() {
    assert_eq!(
        commands(README),
        [
            "git clone ADDRESS turnpike",
            "make run     # serves",
            "cat > file <<END\ntext\nEND",
            "it's done",
        ]
    );
}

#[test]
fn a_command_whose_output_is_looked_at_stands_in_the_readme() {
    let error = steps(&commands(README)).expect_err("the table is for the real one");
    assert!(error.starts_with("README.md does not have the command"));
    let readme = fs::read_to_string(workspace::root().join("README.md")).expect("README.md");
    let script = steps(&commands(&readme)).expect("a script");
    assert!(script.contains("git clone /test/turnpike.git turnpike\n"));
    assert!(!script.contains("make test"));
}

#[test]
fn words_of_a_shell_keep_quotes() {
    assert_eq!(quoted("it's"), r"'it'\''s'");
}
