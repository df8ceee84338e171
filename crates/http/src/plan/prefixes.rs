//! Prefixes in a radix tree: the longest one that a path begins with is found in one walk along
//! the path, however many there are.

use std::collections::BTreeMap;
use std::ops::Range;

/// Prefixes with what each of them stands for.
pub(super) struct PrefixTree<T> {
    written: BTreeMap<Box<[u8]>, T>,
    /// The root first.
    nodes: Vec<Node<T>>,
    /// The edges of all nodes, each node's together and in the order of their bytes.
    edges: Vec<Edge>,
    /// What stands on the edges, one after another.
    labels: Vec<u8>,
}

struct Node<T> {
    /// Where a prefix ends here.
    value: Option<T>,
    edges: Range<usize>,
}

struct Edge {
    /// The first byte of its label.
    byte: u8,
    label: Range<usize>,
    node: usize,
}

impl<T> Default for PrefixTree<T> {
    fn default() -> Self {
        Self {
            written: BTreeMap::new(),
            nodes: Vec::new(),
            edges: Vec::new(),
            labels: Vec::new(),
        }
    }
}

impl<T: Copy> PrefixTree<T> {
    /// Adds a prefix. `false`: it is there already, and stays what it was.
    pub(super) fn add(&mut self, prefix: &[u8], value: T) -> bool {
        if self.written.contains_key(prefix) {
            return false;
        }
        self.written.insert(prefix.into(), value);
        true
    }

    /// Builds the tree; called once, after the last was added.
    pub(super) fn finish(&mut self) {
        let written = std::mem::take(&mut self.written);
        let written: Vec<(Box<[u8]>, T)> = written.into_iter().collect();
        self.nodes.push(Node::new());
        // A node, the prefixes that lead to it or past it, and how long their common part is.
        let mut unfinished = vec![(0, 0..written.len(), 0)];
        while let Some((node, mut range, depth)) = unfinished.pop() {
            if let Some((prefix, value)) = written.get(range.start)
                && prefix.len() == depth
                && !range.is_empty()
            {
                self.nodes[node].value = Some(*value);
                range.start += 1;
            }
            let first_edge = self.edges.len();
            while !range.is_empty() {
                let first = &written[range.start].0;
                let same = written[range.clone()]
                    .iter()
                    .take_while(|(prefix, _)| prefix[depth] == first[depth]);
                let end = range.start + same.count();
                // They are sorted: what the first and the last have in common, all have.
                let last = &written[end - 1].0;
                let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
                let label = self.labels.len();
                self.labels.extend_from_slice(&first[depth..common]);
                self.edges.push(Edge {
                    byte: first[depth],
                    label: label..self.labels.len(),
                    node: self.nodes.len(),
                });
                unfinished.push((self.nodes.len(), range.start..end, common));
                self.nodes.push(Node::new());
                range.start = end;
            }
            self.nodes[node].edges = first_edge..self.edges.len();
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.len() <= 1 && self.longest(b"").is_none()
    }

    /// What the longest prefix that `path` begins with stands for.
    pub(super) fn longest(&self, path: &[u8]) -> Option<T> {
        let mut node = self.nodes.first()?;
        let mut rest = path;
        let mut longest = node.value;
        while let Some(byte) = rest.first() {
            let edges = &self.edges[node.edges.clone()];
            let Ok(index) = edges.binary_search_by_key(byte, |edge| edge.byte) else {
                break;
            };
            let edge = &edges[index];
            let Some(behind) = rest.strip_prefix(&self.labels[edge.label.clone()]) else {
                break;
            };
            rest = behind;
            node = &self.nodes[edge.node];
            longest = node.value.or(longest);
        }
        longest
    }
}

impl<T> Node<T> {
    fn new() -> Self {
        Self {
            value: None,
            edges: 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of a few letters, so that many begin alike.
    fn texts(seed: u64) -> Vec<Vec<u8>> {
        let mut state = seed;
        let mut next = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let text = |next: &mut dyn FnMut(u64) -> u64| {
            let length = next(7);
            (0..length).map(|_| b'a' + next(3) as u8).collect()
        };
        (0..40).map(|_| text(&mut next)).collect()
    }

    #[test]
    fn the_longest_prefix_is_found() {
        for seed in 0..200 {
            let texts = texts(seed);
            let (prefixes, paths) = texts.split_at(20);
            let mut tree = PrefixTree::default();
            let mut written: Vec<&[u8]> = Vec::new();
            for (number, prefix) in prefixes.iter().enumerate() {
                let is_new = !written.contains(&prefix.as_slice());
                assert_eq!(tree.add(prefix, number), is_new);
                written.push(prefix);
            }
            tree.finish();
            for path in paths {
                let longest = prefixes.iter().filter(|prefix| path.starts_with(prefix));
                let longest = longest.max_by_key(|prefix| prefix.len());
                let found = tree.longest(path).map(|number| &prefixes[number]);
                assert_eq!(found, longest, "{seed}: {path:?} of {prefixes:?}");
            }
        }
    }

    #[test]
    fn a_tree_without_prefixes_finds_none() {
        let mut tree = PrefixTree::<u8>::default();
        assert!(tree.is_empty());
        tree.finish();
        assert!(tree.is_empty());
        assert_eq!(tree.longest(b"/"), None);
    }
}
