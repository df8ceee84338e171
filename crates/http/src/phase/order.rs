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

/// Places of handlers, in the order in which they are asked. Each is in one phase, and is named for
/// what its handlers look at or do; of several at one place the one added first is asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandlerPlace {
    /// The body of the request, for what is decided by it.
    Body,
    /// Challenges of certificate authorities, before anything is decided about the request.
    Challenge,
    /// The client's address, by the server's directives.
    ClientAddress,
    /// Rewriting by the server's directives.
    ServerRewrite,
    /// Rewriting by the location's directives.
    Rewrite,
    /// The client's address, by the location's directives.
    LocationClientAddress,
    /// Limits of rate.
    RequestRate,
    /// Limits of concurrency.
    Concurrency,
    /// What else may keep a request from being served now.
    OtherLimit,
    /// Access by the client's address.
    AddressAccess,
    /// Access by a name and a password.
    PasswordAccess,
    /// Access that another server or location decides about.
    RequestedAccess,
    /// Any other access control.
    OtherAccess,
    /// The first of several files or locations that is there.
    FirstFile,
    /// Copies of the request.
    Copies,
    /// Metrics that are counted before the content.
    Metrics,
    /// Which part of the whole is asked for first.
    FirstPart,
    /// Answers that are made, or changes that are carried out, without a file that is served.
    Answer,
    /// Files that are there in another coding.
    CodedFile,
    /// A file drawn from a folder.
    RandomFile,
    /// The file that stands for a folder.
    IndexFile,
    /// Lists of folders.
    Listing,
    /// Files.
    File,
}

impl HandlerPlace {
    /// The phase that it is in.
    pub fn phase(self) -> Phase {
        match self {
            HandlerPlace::Body | HandlerPlace::Challenge | HandlerPlace::ClientAddress => {
                Phase::PostRead
            }
            HandlerPlace::ServerRewrite => Phase::ServerRewrite,
            HandlerPlace::Rewrite => Phase::Rewrite,
            HandlerPlace::LocationClientAddress
            | HandlerPlace::RequestRate
            | HandlerPlace::Concurrency
            | HandlerPlace::OtherLimit => Phase::PreAccess,
            HandlerPlace::AddressAccess
            | HandlerPlace::PasswordAccess
            | HandlerPlace::RequestedAccess
            | HandlerPlace::OtherAccess => Phase::Access,
            HandlerPlace::FirstFile
            | HandlerPlace::Copies
            | HandlerPlace::Metrics
            | HandlerPlace::FirstPart => Phase::PreContent,
            HandlerPlace::Answer
            | HandlerPlace::CodedFile
            | HandlerPlace::RandomFile
            | HandlerPlace::IndexFile
            | HandlerPlace::Listing
            | HandlerPlace::File => Phase::Content,
        }
    }
}

/// How many phases there are.
pub const PHASE_COUNT: usize = Phase::Log as usize + 1;
