//! Plans and exchanges for this crate's own tests, without a process around them.

use std::any::Any;
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_conf::{ConfError, Entry, MemoryLoader, Registry, View};
use turnpike_lane::log::{ErrorLog, LogFile, SpecError};
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_lane::transport::SocketFacts;
use turnpike_plan::protocol::{LaneCommon, ProcessCommon};

use crate::exchange::Exchange;
use crate::h1::input::Input;
use crate::h1::request::{self, HeadRead};
use crate::lane::{LanePlan, LaneShared};
use crate::phase::{Handler, HandlerPlace};
use crate::plan::{Environment, Family, ListenIndex, Plan};
use crate::process_rows::PROCESS_ROWS;
use crate::requester::ConnectionFacts;
use crate::settings::ROWS;

struct Nowhere;

impl Environment for Nowhere {
    fn prefix(&self) -> &Path {
        Path::new("/prefix")
    }

    fn conf_folder(&self) -> &Path {
        Path::new("/prefix/conf")
    }

    fn log_file(&mut self, path: &Path) -> io::Result<Arc<LogFile>> {
        Ok(Arc::new(LogFile::adopt(
            path,
            File::open("/dev/null")?.into(),
        )))
    }

    fn secret_log_file(&mut self, path: &Path) -> io::Result<Arc<LogFile>> {
        self.log_file(path)
    }

    fn error_log(&mut self, _: &[&Entry]) -> Result<ErrorLog, SpecError> {
        Ok(ErrorLog::none())
    }

    fn file(&mut self, path: &Path) -> io::Result<Arc<[u8]>> {
        Ok(std::fs::read(path)?.into())
    }

    fn warn(&mut self, _: ConfError) {}

    fn shared(
        &mut self,
        _: &str,
        make: &dyn Fn() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync> {
        make()
    }

    fn zone(
        &mut self,
        _: &str,
        make: &dyn Fn() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync> {
        make()
    }
}

/// The plan of `http { TEXT }`, or every error as nginx words it.
pub(crate) fn plan(http: &str) -> Result<Plan, String> {
    plan_with(&[], http)
}

/// The plan of `http { TEXT }` with the directive families' part.
pub(crate) fn plan_with(families: &[Family], http: &str) -> Result<Plan, String> {
    let text = format!("events {{ }} http {{ {http}\n}}");
    let loader: MemoryLoader = [(Path::new("/c").to_path_buf(), text.into_bytes())]
        .into_iter()
        .collect();
    let registry = Registry::new(&[("process", PROCESS_ROWS), ("http", ROWS)], &[]);
    let (_, scope) = registry
        .load(&loader, Path::new("/c"), None)
        .map_err(|errors| errors.to_string())?;
    Plan::build(View::root(&scope), 1, families, &mut Nowhere).map_err(|errors| errors.to_string())
}

/// A family without directives, whose handler answers every request.
pub(crate) fn answering<H: Handler + Default + 'static>() -> Family {
    Family {
        location: |_, _, draft| {
            draft.add_handler(HandlerPlace::Answer, Arc::new(H::default()));
            Ok(())
        },
        ..Family::NONE
    }
}

/// What the protocols of a lane share.
pub(crate) fn common() -> Rc<LaneCommon> {
    LaneCommon::new(0, &ProcessCommon::default(), || {})
}

/// An exchange on the first address of a plan, whose request is `input`; empty: none has come.
pub(crate) fn exchange(plan: Plan, input: &[u8]) -> Exchange {
    let lane = LaneShared::new(common(), Arc::default());
    let client = ConnectionFacts {
        serial: 1,
        peer: PeerAddress::Unix,
        listen: ListenIndex(0),
        socket: SocketFacts::NONE,
        local: None,
        requests: 0,
        is_pipelined: false,
        accepted_ms: 0,
        accepted_ns: 0,
    };
    let plan: Rc<LanePlan> = LanePlan::new(Arc::new(plan));
    let mut exchange = Exchange::new(lane, plan, client);
    exchange.begin_request();
    if !input.is_empty() {
        let mut received = Input::new(exchange.lane.inputs());
        received.put(input);
        let head = request::read(&mut received, &mut exchange);
        assert!(matches!(head, HeadRead::Complete | HeadRead::Refused(_)));
    }
    exchange
}
