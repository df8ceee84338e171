//! The steps of a request, in their order. What happens in them is in [`crate::phase`].

/// A step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Right after the head: the client's real address.
    PostRead,
    /// Rewriting by the directives of the server block.
    ServerRewrite,
    /// The engine looks for the location of the path.
    FindLocation,
    /// Rewriting by the directives of the location.
    Rewrite,
    /// The engine goes back to `FindLocation` when the path was rewritten.
    PostRewrite,
    /// Limits of rate and of concurrency.
    PreAccess,
    /// Access control, combined by `satisfy`.
    Access,
    /// Before the content: `try_files`.
    PreContent,
    /// The handler that answers.
    Content,
    /// After the answer is sent.
    Log,
}

/// How many phases there are.
pub const PHASE_COUNT: usize = Phase::Log as usize + 1;
