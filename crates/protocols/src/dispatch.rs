//! The types and calls that follow from the list of protocols: types with a place for each, and
//! calls of the one that something belongs to, or of all. Each is known when it is compiled.

/// Makes them of lines `field: Variant = type`.
macro_rules! dispatch {
    ($($field:ident: $variant:ident = $protocol:ty,)+) => {
        /// The protocols of a lane.
        pub struct Protocols {
            $(pub $field: $protocol,)+
        }

        /// What one configuration means, for each protocol.
        #[derive(Clone)]
        pub struct Plans {
            /// Counts the configurations since the start; a reload adds one.
            pub generation: u64,
            $(pub $field: Arc<<$protocol as Protocol>::Plan>,)+
        }

        /// What the lanes of a process share.
        #[derive(Default)]
        pub struct Process {
            pub common: ProcessCommon,
            $(pub $field: Arc<<$protocol as Protocol>::Process>,)+
        }

        /// The links to the process that takes connections over, for each protocol.
        #[derive(Clone, Default)]
        pub struct Successors {
            $(pub $field: Option<Arc<<$protocol as Protocol>::Successor>>,)+
        }

        /// A connection on its way to another lane.
        pub enum Moving {
            $($variant(<$protocol as Protocol>::Moving),)+
        }

        /// A command that one protocol knows.
        pub enum OwnCommand {
            $($variant(<$protocol as Protocol>::Command),)+
        }

        /// The protocols by their numbers, which are their places in the list.
        #[derive(Clone, Copy)]
        enum Number {
            $($variant,)+
        }

        const _: () = assert!([$(Number::$variant,)+].len() <= Owner::COUNT_MAX);

        impl Number {
            const fn is(self, owner: Owner) -> bool {
                self as u8 == owner.0
            }

            const fn owner(self) -> Owner {
                Owner(self as u8)
            }
        }

        impl Protocols {
            /// Protocols of a lane that serve nothing yet.
            pub(crate) fn new(lane: &Rc<LaneCommon>, process: &Process, plans: Plans) -> Self {
                Self {
                    $($field: Protocol::new(
                        Rc::clone(lane),
                        Number::$variant.owner(),
                        &process.$field,
                        plans.$field,
                    ),)+
                }
            }

            /// Whether a protocol has sessions.
            pub(crate) fn have_sessions(&self, owner: Owner) -> bool {
                $(if Number::$variant.is(owner) {
                    return <$protocol>::HAS_SESSIONS;
                })+
                false
            }

            /// Whether there is a gate whose connections end by themselves.
            pub(crate) fn have_brief_gates(&self) -> bool {
                false $(|| (!<$protocol>::HAS_SESSIONS && self.$field.gates() > 0))+
            }

            /// How many sessions there are.
            pub(crate) fn sessions(&self) -> usize {
                let mut count = 0;
                $(if <$protocol>::HAS_SESSIONS {
                    count += self.$field.connections();
                })+
                count
            }

            /// How many connections count against the lane's limit.
            pub(crate) fn connections(&self) -> usize {
                0 $(+ self.$field.connections())+
            }

            /// How many futures run.
            pub(crate) fn driven(&self) -> usize {
                0 $(+ self.$field.driven())+
            }

            /// What has to end before the lane may.
            pub(crate) fn held(&self) -> usize {
                0 $(+ self.$field.held())+
            }

            /// The error log of a gate's server.
            pub(crate) fn gate_log(&self, gate: GateNumber) -> Option<&ErrorLog> {
                $(if Number::$variant.is(gate.owner) {
                    return self.$field.gate_log(gate.place);
                })+
                None
            }

            /// The error log of the first server, for what concerns the lane.
            pub(crate) fn first_log(&self) -> Option<&ErrorLog> {
                None $(.or_else(|| self.$field.gate_log(0)))+
            }
        }

        /// Calls for the one that something belongs to.
        impl Protocols {
            /// A connection was accepted.
            pub(crate) fn accepted(
                &mut self,
                event_loop: &mut EventLoop,
                gate: GateNumber,
                socket: OwnedFd,
                peer: PeerAddress,
            ) {
                $(if Number::$variant.is(gate.owner) {
                    return self.$field.accepted(event_loop, gate.place, socket, peer);
                })+
            }

            /// A connection was accepted and closed.
            pub(crate) fn refused(&mut self, gate: GateNumber, connections_max: usize) {
                $(if Number::$variant.is(gate.owner) {
                    self.$field.refused(gate.place, connections_max);
                })+
            }

            /// Datagrams wait at a gate.
            pub(crate) fn datagrams(
                &mut self,
                event_loop: &mut EventLoop,
                gate: &LaneGate,
                room: usize,
            ) {
                let LaneGate { number, socket, .. } = gate;
                $(if Number::$variant.is(number.owner) {
                    self.$field.datagrams(event_loop, number.place, socket, room);
                })+
            }

            /// A datagram of a flow of this lane has come to it by another way than its gate.
            pub(crate) fn forwarded(
                &mut self,
                event_loop: &mut EventLoop,
                datagram: ForwardedDatagram,
                room: &mut usize,
            ) {
                $(if Number::$variant.is(datagram.key.owner()) {
                    return self.$field.forwarded(event_loop, datagram, room);
                })+
            }

            /// A numbered socket has an event.
            pub(crate) fn numbered_socket_ready(
                &mut self,
                event_loop: &mut EventLoop,
                owner: Owner,
                number: u64,
                event: Event,
            ) {
                $(if Number::$variant.is(owner) {
                    self.$field.numbered_socket_ready(event_loop, number, event);
                })+
            }

            /// The deadline of a numbered timer has passed.
            pub(crate) fn numbered_timer_due(
                &mut self,
                event_loop: &mut EventLoop,
                owner: Owner,
                number: u64,
            ) {
                $(if Number::$variant.is(owner) {
                    self.$field.numbered_timer_due(event_loop, number);
                })+
            }

            /// A protocol has a command of its own.
            pub(crate) fn obey(&mut self, event_loop: &mut EventLoop, command: OwnCommand) {
                match command {
                    $(OwnCommand::$variant(command) => self.$field.obey(event_loop, command),)+
                }
            }

            /// A connection comes from another lane.
            pub(crate) fn adopt(&mut self, event_loop: &mut EventLoop, moving: Moving) {
                match moving {
                    $(Moving::$variant(moving) => self.$field.adopt(event_loop, moving),)+
                }
            }

            /// A connection is passed to an address: the protocol that has it serves it. One whose
            /// address a reload has taken away in between is closed.
            fn receive(&mut self, event_loop: &mut EventLoop, passed: PassedConnection) {
                $(let Some(passed) = passed.move_to(&mut self.$field, event_loop) else {
                    return;
                };)+
                drop(passed);
            }
        }

        /// Calls for all, in the order of the list.
        impl Protocols {
            /// All events of a turn were handled.
            pub(crate) fn turn_ended(&mut self, event_loop: &mut EventLoop) {
                $(self.$field.turn_ended(event_loop);)+
            }

            /// Some time has passed.
            pub(crate) fn tick(&mut self, event_loop: &mut EventLoop) {
                $(self.$field.tick(event_loop);)+
            }

            /// Serves what was passed from one address to another.
            pub(crate) fn serve_passed(&mut self, event_loop: &mut EventLoop) {
                $(for passed in self.$field.take_passed() {
                    self.receive(event_loop, passed);
                })+
            }

            /// Serves by other plans from now on.
            pub(crate) fn take_plans(&mut self, event_loop: &mut EventLoop, plans: Plans) {
                $(self.$field.take_plan(event_loop, plans.$field);)+
            }

            /// Writes what is buffered.
            pub(crate) fn flush(&mut self) {
                $(self.$field.flush();)+
            }

            /// Closes what began up to that time.
            pub(crate) fn cut(&mut self, event_loop: &mut EventLoop, until_ms: u64) {
                $(self.$field.cut(event_loop, until_ms);)+
            }

            /// The process is about to end.
            pub(crate) fn announce_end(&mut self, event_loop: &mut EventLoop) {
                $(self.$field.announce_end(event_loop);)+
            }

            /// The process ends.
            pub(crate) fn drain(&mut self, event_loop: &mut EventLoop, successors: Successors) {
                $(self.$field.drain(event_loop, successors.$field);)+
            }

            /// The lane ends.
            pub(crate) fn leave(&mut self, event_loop: &mut EventLoop, plans: &Plans) {
                $(self.$field.leave(event_loop, &plans.$field);)+
            }

            /// No more is accepted.
            pub(crate) fn gates_closed(&mut self, event_loop: &mut EventLoop) {
                $(self.$field.gates_closed(event_loop);)+
            }

            /// Gives connections that are to move to other lanes; those that none takes stay.
            pub(crate) fn give_moving(&mut self, event_loop: &mut EventLoop, lanes: &RoundRobin) {
                $(for moving in self.$field.take_moving() {
                    match lanes.give(Moving::$variant(moving)) {
                        Ok(()) => self.$field.was_moved(),
                        Err(Moving::$variant(moving)) => self.$field.keep(event_loop, moving),
                        #[allow(unreachable_patterns)]
                        Err(_) => {}
                    }
                })+
            }

            /// Closes connections that may be closed, of the first protocol that has some.
            pub(crate) fn make_room(&mut self, event_loop: &mut EventLoop) -> bool {
                false $(|| self.$field.make_room(event_loop))+
            }
        }

        impl Plans {
            /// What is listened on, one protocol after the other. A place in this list is one in a
            /// bundle's list of sockets.
            pub fn listens(&self) -> impl Iterator<Item = PlanListen<'_>> {
                std::iter::empty()$(.chain(self.$field.listens()))+
            }

            /// The number of the gate at that place of the list.
            pub fn gate_number(&self, place: usize) -> Option<GateNumber> {
                let mut place = place;
                $(
                    let count = self.$field.listens().len();
                    if place < count {
                        return Some(GateNumber {
                            owner: Number::$variant.owner(),
                            place: u32::try_from(place).ok()?,
                        });
                    }
                    place -= count;
                )+
                let _ = place;
                None
            }

            /// How many server blocks there are.
            pub fn server_count(&self) -> usize {
                0 $(+ self.$field.server_count())+
            }

            /// What carries out the verb of that name.
            pub fn command(&self, name: &str) -> Option<Arc<dyn Command>> {
                None $(.or_else(|| self.$field.offers().command(name)))+
            }

            /// The verbs that families offer, each once.
            pub fn verbs(&self) -> Vec<&'static str> {
                let mut verbs: Vec<&str> = Vec::new();
                $(for (row, _) in &self.$field.offers().commands {
                    if !verbs.contains(&row.name) {
                        verbs.push(row.name);
                    }
                })+
                verbs
            }

            /// The work of the families that goes on in the background.
            pub fn services(&self) -> Vec<Arc<dyn Service>> {
                let mut services = Vec::new();
                $(services.extend_from_slice(&self.$field.offers().services);)+
                services
            }

            /// Keeps something until nobody holds any of the plans any more; nobody else holds them
            /// yet.
            pub fn keep(&mut self, kept: Arc<dyn Any + Send + Sync>) {
                $(if let Some(plan) = Arc::get_mut(&mut self.$field) {
                    plan.keep(Arc::clone(&kept));
                })+
            }
        }
    };
}

pub(crate) use dispatch;
