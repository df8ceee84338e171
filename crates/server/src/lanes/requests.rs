//! The verb `requests`: each lane lists its own, or closes one; a thread waits for them, since a
//! lane may be at something long.

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnpike_http::connection;
use turnpike_http::running::{REQUESTS_MAX, RequestId, RequestList, RunningRequest};
use turnpike_plan::control::{Arguments, text};
use turnpike_protocols::{Command, OwnCommand};

use super::ask::run_work;
use super::service::LaneService;
use crate::control::RequestError;

/// How long lanes have to answer. A lane that is silent for longer is named in the answer.
const LANES_TIMEOUT: Duration = Duration::from_secs(1);

/// A lane's list, and the lane.
type LaneList = (usize, RequestList);

impl LaneService {
    /// Answers by a thread, or says why not.
    pub(super) fn requests(&self, number: u64, arguments: &Arguments) -> Result<(), RequestError> {
        let close = text(arguments, "close").map_err(RequestError::from)?;
        match close {
            None => self.list_requests(number),
            Some(written) => {
                let id = RequestId::parse(written).ok_or_else(|| {
                    RequestError::invalid(format!(
                        "\"{written}\" is not the ID of a request, which has the form \
                         CONNECTION.REQUEST"
                    ))
                })?;
                self.close_request(number, id);
            }
        }
        Ok(())
    }

    fn list_requests(&self, number: u64) {
        let mut lists: Vec<(usize, Receiver<RequestList>)> = Vec::new();
        for (index, lane) in self.all_lanes().enumerate() {
            let (to, list) = sync_channel(1);
            lane.send(own(connection::Command::ListRequests { to }));
            lists.push((index, list));
        }
        let work = move || {
            let until = Instant::now() + LANES_TIMEOUT;
            let mut came: Vec<LaneList> = Vec::new();
            let mut silent = Vec::new();
            for (lane, list) in lists {
                match list.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(list) => came.push((lane, list)),
                    Err(_) => silent.push(lane),
                }
            }
            Ok(answer(came, &silent))
        };
        run_work(self.reporter.clone(), number, work);
    }

    fn close_request(&self, number: u64, id: RequestId) {
        let (to, closed) = sync_channel(1);
        for lane in self.all_lanes() {
            let to = to.clone();
            lane.send(own(connection::Command::CloseRequest { id, to }));
        }
        drop(to);
        // The lanes that do not have the request drop their ends without a message.
        let work = move || match closed.recv_timeout(LANES_TIMEOUT) {
            Ok(()) => Ok(json!({ "closed": id.to_string() })),
            Err(_) => Err(RequestError::new(
                "not_found",
                format!("no request with the ID {id} is waiting here; it may have ended"),
            )),
        };
        run_work(self.reporter.clone(), number, work);
    }
}

/// A command that HTTP knows.
fn own(command: connection::Command) -> Command {
    Command::Own(OwnCommand::Http(command))
}

/// The lists of all lanes as one, the oldest request first.
fn answer(lists: Vec<LaneList>, silent: &[usize]) -> Value {
    let total: usize = lists.iter().map(|(_, list)| list.total).sum();
    let requests = |(lane, list): LaneList| {
        let requests = list.requests.into_iter();
        requests.map(move |request| (lane, request))
    };
    let mut all: Vec<(usize, RunningRequest)> = lists.into_iter().flat_map(requests).collect();
    all.sort_by_key(|(_, request)| std::cmp::Reverse(request.age_ms));
    all.truncate(REQUESTS_MAX);
    let requests: Vec<Value> = all.iter().map(member).collect();
    json!({ "requests": requests, "total": total, "silent_lanes": silent })
}

fn member((lane, request): &(usize, RunningRequest)) -> Value {
    json!({
        "id": request.id.to_string(),
        "age_ms": request.age_ms,
        "client": request.client,
        "method": request.method,
        "target": request.target,
        "server": request.server,
        "upstream": request.upstream.as_deref(),
        "state": request.state,
        "lane": lane,
    })
}
