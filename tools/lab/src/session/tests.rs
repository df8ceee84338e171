#![allow(clippy::unwrap_used)]

use super::*;
use crate::matrix::ResolvedLevel;

fn dimensions() -> Vec<Dimension> {
    let dimension = |name: &str, levels: &[&str]| Dimension {
        name: name.to_owned(),
        title: name.to_owned(),
        levels: levels
            .iter()
            .map(|level| ResolvedLevel {
                name: (*level).to_owned(),
                ..ResolvedLevel::default()
            })
            .collect(),
    };
    vec![
        dimension("contender", &["nginx", "turnpike"]),
        dimension("mode", &["on", "off", "on, for a while"]),
    ]
}

#[test]
fn only_names_levels_with_or_without_their_dimension() {
    let words = ["mode=on,off", "nginx"].map(str::to_owned);
    let only = only(&dimensions(), &words).unwrap();
    assert_eq!(only["mode"], ["on", "off"]);
    assert_eq!(only["contender"], ["nginx"]);
    let words = ["mode=on, for a while,on".to_owned()];
    let only = super::only(&dimensions(), &words).unwrap();
    assert_eq!(only["mode"], ["on, for a while", "on"]);
    let error = super::only(&dimensions(), &["mode=up".to_owned()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--only mode=up: no such level; there are contender=nginx,turnpike \
         mode=on,off,on, for a while"
    );
}
