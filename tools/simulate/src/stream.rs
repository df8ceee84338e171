//! The part of a seed's run that is about `stream`: relays, and flows over lanes and processes; and
//! the connections of QUIC.

use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use turnpike_lane::event_loop::{AcceptSettings, Mailbox};
use turnpike_lane::sys::simulation;
use turnpike_protocols::{Apply, LaneHandler, Process};

use crate::flows::{Clock, FlowScenario, Flows};
use crate::plan;
use crate::quic::{Quic, QuicScenario};
use crate::relays::{RelayScenario, RelayWorld, Shared};
use crate::run::{Bench, Logs, Options, Report};
use crate::scenario::stream;

/// The part of the seeds with relays, and with flows, in percent.
const RELAYS_PERCENT: u64 = 25;
const FLOWS_PERCENT: u64 = 15;

/// The same of those with connections of QUIC: two thousand of ten thousand.
const QUIC_PERCENT: u64 = 20;

impl Bench {
    /// Runs what a seed has of it.
    ///
    /// # Errors
    /// An error of the machine, not of the lane.
    pub(crate) fn run_stream(
        &self,
        seed: u64,
        options: Options,
        report: &mut Report,
    ) -> Result<(), String> {
        let mut random = stream(seed, 8);
        if random.percent(RELAYS_PERCENT) {
            self.run_relays(seed, options, report)?;
        }
        if random.percent(FLOWS_PERCENT) {
            self.run_flows(seed, options, report)?;
        }
        if random.percent(QUIC_PERCENT) {
            self.run_quic(seed, options, report)?;
        }
        Ok(())
    }

    fn run_relays(&self, seed: u64, options: Options, report: &mut Report) -> Result<(), String> {
        let mut random = stream(seed, 9);
        let scenario = RelayScenario::new(&mut random);
        let folder = self.folder.display().to_string();
        let mut logs = Logs::new(&self.folder)?;
        let text = format!("events {{ }}\n{}", scenario.settings.configuration(&folder));
        let plans = plan::build(&self.registry, &text, 1, &mut logs)?;
        let mailbox = Mailbox::new().map_err(|error| format!("no mailbox: {error}"))?;
        let mailbox = Arc::new(mailbox);
        let apply = Apply {
            gates: self.relays.lane_gates(&plans),
            plans,
            accept: AcceptSettings::default(),
            heartbeat: None,
            cpus: None,
            // Nobody waits for it.
            done: sync_channel(1).0,
        };
        let mut world = RelayWorld::new(
            scenario,
            (random, options.fault),
            &self.folder,
            self.relays.servers(),
            mailbox.clone(),
        );
        world.trace = options.is_traced.then(Vec::new);
        let world = Rc::new(RefCell::new(world));
        simulation::enter(Some(Box::new(Shared(world.clone()))));
        let served = AssertUnwindSafe(|| serve(&mailbox, apply));
        let served = catch_unwind(served);
        simulation::enter(None);
        let world = Rc::into_inner(world).ok_or("the world is still held")?;
        let mut world = world.into_inner();
        self.relays.clear_queues();
        report.fault_hits += world.fault_hits;
        let trace = world.trace.take().unwrap_or_default();
        report.trace.splice(..0, trace);
        match served {
            Ok(served) => report.problems.extend(served?),
            Err(_) => report
                .problems
                .push("a panic ended the lane of relays".to_owned()),
        }
        report.problems.extend(world.problems());
        let lines = logs.access.contents()?.lines().count() as u64;
        if lines != world.accepted {
            let accepted = world.accepted;
            let problem = format!("{accepted} sessions were accepted, {lines} were logged");
            report.problems.push(problem);
        }
        Ok(())
    }

    fn run_flows(&self, seed: u64, options: Options, report: &mut Report) -> Result<(), String> {
        let mut random = stream(seed, 10);
        let scenario = FlowScenario::new(&mut random);
        let mut logs = Logs::new(&self.folder)?;
        let (gate, server) = (self.flows.gate_address, self.flows.server_address);
        let block = FlowScenario::configuration(gate, server);
        let plans = plan::build(
            &self.registry,
            &format!("events {{ }}\n{block}"),
            1,
            &mut logs,
        )?;
        let clock = Clock::new(random, options.fault);
        simulation::enter(Some(Box::new(clock.clone())));
        let mut flows = Flows::new(&self.flows, &plans, clock.clone());
        let ran = catch_unwind(AssertUnwindSafe(|| flows.run(&scenario)));
        let problems = std::mem::take(&mut flows.problems);
        let trace = std::mem::take(&mut flows.trace);
        report.answered += flows.answered;
        drop(flows);
        simulation::enter(None);
        report.fault_hits += clock.fault_hits.get();
        if options.is_traced {
            report.trace.splice(..0, trace);
        }
        report.problems.extend(problems);
        match ran {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("no flows: {error}")),
            Err(_) => {
                let problem = "a panic ended a lane of flows".to_owned();
                report.problems.push(problem);
                Ok(())
            }
        }
    }
}

impl Bench {
    fn run_quic(&self, seed: u64, options: Options, report: &mut Report) -> Result<(), String> {
        let mut random = stream(seed, 11);
        let scenario = QuicScenario::new(&mut random);
        let mut logs = Logs::new(&self.folder)?;
        let block = QuicScenario::configuration(self.quic.gate_address, &self.folder);
        let text = format!("events {{ }}\n{block}");
        let plans = plan::build(&self.registry, &text, 1, &mut logs)?;
        let clock = Clock::new(stream(seed, 12), options.fault);
        simulation::enter(Some(Box::new(clock.clone())));
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let mut quic = Quic::new(&self.quic, &scenario, &plans, clock.clone(), random)?;
            quic.run()?;
            Ok::<_, io::Error>((std::mem::take(&mut quic.problems), quic.answered))
        }));
        simulation::enter(None);
        report.fault_hits += clock.fault_hits.get();
        match ran {
            Ok(Ok((problems, answered))) => {
                report.problems.extend(problems);
                report.answered += answered;
            }
            Ok(Err(error)) => return Err(format!("no QUIC: {error}")),
            Err(_) => report
                .problems
                .push("a panic ended a lane of QUIC".to_owned()),
        }
        Ok(())
    }
}

/// Lets a lane serve relays to its end; returns what is left that should not be.
fn serve(
    mailbox: &Arc<Mailbox<turnpike_protocols::Command>>,
    apply: Apply,
) -> Result<Vec<String>, String> {
    let process = Process::default();
    let begun = LaneHandler::begin(0, &process, mailbox, apply);
    let (mut handler, mut event_loop) = begun.map_err(|error| format!("no lane: {error}"))?;
    let mut problems = Vec::new();
    if let Err(error) = handler.run(&mut event_loop) {
        problems.push(format!("the lane failed: {error}"));
    }
    let [timers, watched_sockets, futures] = event_loop.left();
    for (count, what) in [
        (handler.sessions(), "sessions"),
        (timers, "timers"),
        (watched_sockets, "watched sockets"),
        (futures, "futures"),
    ] {
        if count > 0 {
            problems.push(format!("{count} {what} of relays were left"));
        }
    }
    Ok(problems)
}
