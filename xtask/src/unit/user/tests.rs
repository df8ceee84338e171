use std::os::unix::fs::PermissionsExt;

use turnpike_testkit::Folder;

use super::first_closed;

#[test]
fn the_outermost_closed_folder_is_found() {
    let folder = Folder::create().expect("a folder");
    folder.write("a/b/c/file", "").expect("a file");
    let inner = folder.path().join("a/b/c");
    assert_eq!(first_closed(&inner), None);
    for name in ["a/b", "a"] {
        let closed = folder.path().join(name);
        let mode = PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&closed, mode).expect("a mode");
        assert_eq!(first_closed(&inner), Some(closed));
    }
}
