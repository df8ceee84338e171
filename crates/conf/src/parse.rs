//! The parser: words to a tree, with `include` resolved. It knows no other name.
//!
//! The parser continues after an error, at the next `;` or `}`, so that one run shows as many
//! errors as possible. Depth and number of files are limited: dropping a tree must not overflow the
//! stack.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::environment::{self, Expanded, Include};
use crate::error::{Collector, ConfError, Errors};
use crate::glob;
use crate::lexer::{Draft, Lexer, Problem, Token};
use crate::source::{Loader, Sources};
use crate::text::text_of;
use crate::tree::{Directive, FileId, Span, Tree, Word};
use crate::unclosed;

/// The deepest inclusion of files; real ones have 4 or 5 levels.
pub const INCLUDE_DEPTH_MAX: usize = 32;

/// The most inclusions in all: enough for every site of a large host, and a limit for files that
/// include each other under new names.
pub const INCLUDES_MAX: usize = 100_000;

/// The deepest nesting of blocks, over all files: the recursion over the tree must be limited.
pub const BLOCK_DEPTH_MAX: usize = 100;

const IS_A_DIRECTORY: i32 = 21;

/// Parses the text of `-g`, then the main file with everything it includes.
///
/// Paths of `include` are relative to the main file's folder.
///
/// # Errors
/// All errors that one pass can find.
pub fn parse(loader: &dyn Loader, main: &Path, globals: Option<&str>) -> Result<Tree, Errors> {
    let (tree, errors) = parse_all(loader, main, globals);
    errors.finish().map(|()| tree)
}

/// As [`parse`], but also returns the readable part if there are errors.
pub(crate) fn parse_all(
    loader: &dyn Loader,
    main: &Path,
    globals: Option<&str>,
) -> (Tree, Collector) {
    let mut parser = Parser {
        loader,
        folder: main.parent().unwrap_or(Path::new("")),
        sources: Sources::default(),
        errors: Collector::default(),
        sequence: 0,
        open_blocks: Vec::new(),
        including: Vec::new(),
        includes: 0,
        patterns: Vec::new(),
    };
    let mut directives = Vec::new();
    if let Some(globals) = globals {
        let mut lexer = Lexer::of_command_line(globals);
        parser.items(&mut lexer, Inside::CommandLine, &mut directives);
    }
    parser.file(main, None, &mut directives);
    let Expanded { values, errors } =
        environment::expand(&mut directives, &parser.patterns, loader);
    for (sequence, span, message) in errors {
        let error = ConfError::at(&parser.sources, span, message);
        parser.errors.push(sequence, error);
    }
    (
        Tree {
            directives,
            sources: parser.sources,
            values,
        },
        parser.errors,
    )
}

/// The direct surroundings of the directives that are being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    File,
    Block,
    CommandLine,
}

struct Parser<'a> {
    loader: &'a dyn Loader,
    folder: &'a Path,
    sources: Sources,
    errors: Collector,
    sequence: u32,
    /// The open blocks, over all files, outermost first.
    open_blocks: Vec<unclosed::Opening>,
    including: Vec<PathBuf>,
    includes: usize,
    /// The `include` directives whose argument might have an environment variable.
    patterns: Vec<Include>,
}

impl Parser<'_> {
    /// Reads directives up to the end of the block or text; returns the place of the end.
    fn items(&mut self, lexer: &mut Lexer<'_>, inside: Inside, out: &mut Vec<Directive>) -> Span {
        loop {
            let token = lexer.next();
            self.sequence += 1;
            let span = lexer.span();
            for Problem {
                line,
                message,
                hint,
            } in std::mem::take(&mut lexer.problems)
            {
                self.error_with_hint(Span { line, ..span }, message, hint);
            }
            if self.errors.is_full() {
                lexer.give_up();
                return span;
            }
            match token {
                Token::Directive(draft) => self.directive(lexer, draft, inside, out),
                Token::BlockEnd { .. } if inside == Inside::Block => return span,
                Token::BlockEnd { clean: true } => self.error(span, "unexpected \"}\""),
                Token::BlockEnd { clean: false } => {}
                Token::End { clean } => {
                    if clean && inside == Inside::Block {
                        let opening = self.open_blocks.last();
                        let hint = unclosed::hint(lexer.bytes(), span.file, opening, out);
                        let message = "unexpected end of file, expecting \"}\"";
                        self.error_with_hint(span, message, hint);
                        lexer.give_up();
                    }
                    return span;
                }
            }
        }
    }

    fn directive(
        &mut self,
        lexer: &mut Lexer<'_>,
        draft: Draft,
        inside: Inside,
        out: &mut Vec<Directive>,
    ) {
        let span = lexer.span();
        let sequence = self.sequence;
        let bytes = draft.bytes;
        let mut words = draft.words.into_iter();
        let name = words.next();
        let arguments: Arc<[Word]> = words.collect();
        let is_include = name.as_ref().is_some_and(|name| name.text == "include");
        if is_include && !draft.broken {
            self.include(span, &arguments, draft.opens_block, out);
        } else if draft.opens_block && inside == Inside::CommandLine && !draft.broken {
            self.error(span, "block directives are not supported in -g option");
        }
        let mut block = None;
        let mut end = span;
        if draft.opens_block {
            let mut items = Vec::new();
            let opening = match &name {
                Some(name) => unclosed::Opening::of(name),
                None => unclosed::Opening::nameless(span.line),
            };
            end = self.block(lexer, opening, &mut items);
            // Most blocks hold few directives, and the list grows by its double.
            items.shrink_to_fit();
            block = Some(items);
        }
        let kept = !draft.broken && !is_include;
        if let (true, Some(name)) = (kept, name) {
            out.push(Directive {
                name,
                arguments,
                block,
                span,
                end,
                bytes,
                sequence,
            });
        }
    }

    fn block(
        &mut self,
        lexer: &mut Lexer<'_>,
        opening: unclosed::Opening,
        items: &mut Vec<Directive>,
    ) -> Span {
        if self.open_blocks.len() == BLOCK_DEPTH_MAX {
            self.error(
                lexer.span(),
                format!("blocks are nested deeper than {BLOCK_DEPTH_MAX}"),
            );
            lexer.give_up();
            return lexer.span();
        }
        self.open_blocks.push(opening);
        let end = self.items(lexer, Inside::Block, items);
        self.open_blocks.pop();
        end
    }

    fn include(
        &mut self,
        span: Span,
        arguments: &[Word],
        opens_block: bool,
        out: &mut Vec<Directive>,
    ) {
        if opens_block {
            return self.error(span, "directive \"include\" is not terminated by \";\"");
        }
        let [argument] = arguments else {
            return self.error(span, "invalid number of arguments in \"include\" directive");
        };
        if argument.text.contains(environment::BEGINNING) {
            self.patterns.push(Include {
                sequence: self.sequence,
                span,
                argument: argument.text.clone(),
            });
        }
        let path = self.folder.join(OsString::from_vec(argument.bytes()));
        if !glob::is_pattern(path.as_os_str().as_bytes()) {
            return self.file(&path, Some(span), out);
        }
        match self.loader.glob(&path) {
            Ok(paths) => {
                for path in paths {
                    self.file(&path, Some(span), out);
                }
            }
            Err(error) => self.error(span, system_message("glob()", &path, &error)),
        }
    }

    /// Reads one file's directives into `out`; `from` is its `include`.
    fn file(&mut self, path: &Path, from: Option<Span>, out: &mut Vec<Directive>) {
        if self.errors.is_full() {
            return;
        }
        self.includes += 1;
        if let Some(message) = self.refusal(path) {
            return self.report(from, message);
        }
        let id = match self.load(path) {
            Ok(id) => id,
            Err(error) => {
                let is_folder = error.raw_os_error() == Some(IS_A_DIRECTORY);
                let call = if is_folder { "pread()" } else { "open()" };
                return self.report(from, system_message(call, path, &error));
            }
        };
        let Some(bytes) = self
            .sources
            .file(id)
            .map(|source| Arc::clone(&source.bytes))
        else {
            return;
        };
        self.including.push(path.to_owned());
        let mut lexer = Lexer::of_file(&bytes, id);
        self.items(&mut lexer, Inside::File, out);
        self.including.pop();
    }

    /// The reason why a file may not be included here, if any.
    fn refusal(&self, path: &Path) -> Option<String> {
        let name = || text_of(path.as_os_str().as_bytes());
        if self.including.iter().any(|open| open == path) {
            return Some(format!("\"{}\" includes itself", name()));
        }
        if self.including.len() > INCLUDE_DEPTH_MAX {
            return Some(format!(
                "includes are nested deeper than {INCLUDE_DEPTH_MAX}"
            ));
        }
        if self.includes > INCLUDES_MAX {
            return Some(format!("more than {INCLUDES_MAX} files are included"));
        }
        None
    }

    fn load(&mut self, path: &Path) -> io::Result<FileId> {
        if let Some(id) = self.sources.find(path) {
            return Ok(id);
        }
        let bytes = self.loader.read(path)?;
        Ok(self.sources.add(path, bytes))
    }

    fn report(&mut self, from: Option<Span>, message: String) {
        match from {
            Some(span) => self.error(span, message),
            None => self
                .errors
                .push(self.sequence, ConfError::unplaced(message)),
        }
    }

    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.error_with_hint(span, message, String::new());
    }

    fn error_with_hint(&mut self, span: Span, message: impl Into<String>, hint: String) {
        let mut error = ConfError::at(&self.sources, span, message.into());
        error.hint = hint;
        self.errors.push(self.sequence, error);
    }
}

/// nginx's format of a failed system call: `open() "PATH" failed (2: No such file or directory)`.
fn system_message(call: &str, path: &Path, error: &io::Error) -> String {
    let name = text_of(path.as_os_str().as_bytes());
    let Some(number) = error.raw_os_error() else {
        return format!("{call} \"{name}\" failed ({error})");
    };
    let text = io::Error::from_raw_os_error(number).to_string();
    let suffix = format!(" (os error {number})");
    let text = text.strip_suffix(&suffix).unwrap_or(&text);
    format!("{call} \"{name}\" failed ({number}: {text})")
}
