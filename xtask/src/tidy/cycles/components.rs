//! The strongly connected components of a directed graph, by Tarjan's algorithm. It knows nothing
//! of modules.

/// Splits the nodes `0..edges.len()` into components: in one, every node is reached from every
/// other one. `edges[node]` are the nodes that a node leads to; each node is in one component.
pub(super) fn strongly_connected(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        edges,
        visited: vec![None; edges.len()],
        open: Vec::new(),
        is_open: vec![false; edges.len()],
        count: 0,
        components: Vec::new(),
    };
    for node in 0..edges.len() {
        if search.visited[node].is_none() {
            search.visit(node);
        }
    }
    search.components
}

struct Search<'a> {
    edges: &'a [Vec<usize>],
    /// When each node was first seen.
    visited: Vec<Option<usize>>,
    /// Nodes that are in no component yet, in the order in which they were seen.
    open: Vec<usize>,
    is_open: Vec<bool>,
    count: usize,
    components: Vec<Vec<usize>>,
}

impl Search<'_> {
    /// Visits a node and all that it leads to. Returns the earliest visit of an open node that can
    /// be reached. It calls itself at most once for each module of a crate.
    fn visit(&mut self, node: usize) -> usize {
        let own = self.count;
        self.count += 1;
        self.visited[node] = Some(own);
        self.open.push(node);
        self.is_open[node] = true;
        let mut earliest = own;
        for next in &self.edges[node] {
            match self.visited[*next] {
                None => earliest = earliest.min(self.visit(*next)),
                Some(visit) if self.is_open[*next] => earliest = earliest.min(visit),
                Some(_) => {}
            }
        }
        if earliest == own {
            let at = self.open.iter().position(|open| *open == node);
            let component = self.open.split_off(at.unwrap_or_default());
            for member in &component {
                self.is_open[*member] = false;
            }
            self.components.push(component);
        }
        earliest
    }
}
