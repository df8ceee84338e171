use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::handler::elements;
use super::job::{Job, Source};

#[test]
fn elements_of_paths_are_counted() {
    for (path, count) in [("/", 0), ("/a", 1), ("/a/", 1), ("/a/b", 2), ("//a", 1)] {
        assert_eq!(elements(path.as_bytes()), count, "{path}");
    }
}

fn copy(folder: &Path, from: &str, to: &str) -> Result<u16, u16> {
    let job = Job::Transfer {
        source: Source {
            path: folder.join(from),
            is_folder: true,
        },
        destination: folder.join(to),
        overwrites: true,
        is_move: false,
        is_whole: true,
    };
    job.run().map_err(|failure| failure.status)
}

#[test]
fn folders_are_copied_with_all_that_is_in_them_and_nothing_else() {
    let folder = std::env::temp_dir().join(format!("turnpike-dav-{}", std::process::id()));
    let inner = folder.join("a/b");
    fs::create_dir_all(&inner).expect("a folder");
    fs::write(inner.join("file"), "text").expect("a file");
    symlink("../..", inner.join("link")).expect("a link");
    assert_eq!(copy(&folder, "a", "c"), Ok(201));
    assert_eq!(fs::read(folder.join("c/b/file")).expect("a copy"), b"text");
    let link = fs::read_link(folder.join("c/b/link")).expect("a link");
    assert_eq!(link, Path::new("../.."));
    // Neither into itself nor over what it is in, and over another as a whole.
    assert_eq!(copy(&folder, "a", "a/b/d"), Err(409));
    assert_eq!(copy(&folder, "a/b", "a"), Err(409));
    assert_eq!(copy(&folder, "a/b", "c"), Ok(201));
    assert!(!folder.join("c/b").exists() && folder.join("c/file").exists());
    // A link is what leads back here: the copy ends all the same.
    symlink(&folder, folder.join("back")).expect("a link");
    assert_eq!(copy(&folder, "a", "back/a/e"), Ok(201));
    assert!(folder.join("a/e/b/file").exists() && !folder.join("a/e/e").exists());
    fs::remove_dir_all(&folder).expect("removed");
}
