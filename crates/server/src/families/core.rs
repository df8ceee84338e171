//! Rows of the main and events contexts: the process, its user, its lanes, its error log.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};

const MAIN: &[Context] = &[Context::Main];
const EVENTS: &[Context] = &[Context::Events];
const LOGGED: &[Context] = &[
    Context::Main,
    Context::Http,
    Context::Server,
    Context::Location,
];

const ONE: Arguments = Arguments::exactly(1);

/// A row that stands once in its block and is not inherited, as most of these do.
const fn once(
    name: &'static str,
    contexts: &'static [Context],
    arguments: Arguments,
    value: Value,
) -> Row {
    Row {
        name,
        contexts,
        arguments,
        value,
        repeat: Repeat::Once,
        merge: Merge::Own,
        variables: None,
        syntax: "",
        default: "",
        summary: "",
    }
}

/// The directives that the process code itself reads.
pub(super) const ROWS: &[Row] = &[
    Row {
        syntax: "on | off",
        default: "on",
        summary: "Whether the master goes into the background.",
        ..once("daemon", MAIN, ONE, Value::Flag)
    },
    Row {
        syntax: "on | off",
        default: "on",
        summary: "Whether requests are served by a process of their own. Off: one process does \
                  everything, for debugging.",
        ..once("master_process", MAIN, ONE, Value::Flag)
    },
    Row {
        syntax: "interval",
        summary: "Accepted for nginx's sake; a lane's clock is read once a turn anyway.",
        ..once("timer_resolution", MAIN, ONE, Value::Milliseconds)
    },
    Row {
        syntax: "file",
        default: "logs/nginx.pid",
        summary: "The file that holds the master's process number while it is running.",
        ..once("pid", MAIN, ONE, Value::Text)
    },
    Row {
        syntax: "file | off",
        summary: "The unix socket on which the running server is asked and told things. Without \
                  it: beside the pid file, under its name with .control instead of .pid.",
        ..once("control", MAIN, ONE, Value::Text)
    },
    Row {
        syntax: "file",
        default: "logs/nginx.lock",
        summary: "Accepted for nginx's sake; lanes of one process need no lock file.",
        ..once("lock_file", MAIN, ONE, Value::Text)
    },
    Row {
        syntax: "number | auto",
        default: "1",
        summary: "How many lanes (pinned threads) serve; auto: one per CPU.",
        ..once("worker_processes", MAIN, ONE, Value::Custom)
    },
    Row {
        syntax: "stop | abort",
        summary: "Accepted for nginx's sake; internal errors end a connection, not the process.",
        ..once("debug_points", MAIN, ONE, Value::OneOf(&["stop", "abort"]))
    },
    Row {
        syntax: "user [group]",
        default: "nobody",
        summary: "The user and group of the serving process, if the master is started by root.",
        ..once("user", MAIN, Arguments::between(1, 2), Value::Custom)
    },
    Row {
        syntax: "number",
        default: "0",
        summary: "The serving process's scheduling priority, -20 (first) to 20.",
        ..once("worker_priority", MAIN, ONE, Value::Custom)
    },
    Row {
        syntax: "cpumask ... | auto [cpumask]",
        summary: "The CPUs of each lane, as masks of 0 and 1 of any length, the rightmost digit \
                  being CPU 0; auto gives each lane one CPU.",
        ..once(
            "worker_cpu_affinity",
            MAIN,
            Arguments::at_least(1),
            Value::Custom,
        )
    },
    Row {
        syntax: "number",
        summary: "How many descriptors may be open for each lane. Without it the serving process \
                  takes all that it may have.",
        ..once("worker_rlimit_nofile", MAIN, ONE, Value::Number)
    },
    Row {
        syntax: "size",
        summary: "How large a core file of the serving process may be.",
        ..once("worker_rlimit_core", MAIN, ONE, Value::Offset)
    },
    Row {
        syntax: "time",
        summary: "How long a graceful stop may take; what is still open then is closed.",
        ..once("worker_shutdown_timeout", MAIN, ONE, Value::Milliseconds)
    },
    Row {
        syntax: "time",
        default: "0",
        summary: "How long connections are still accepted after QUIT, while every answer closes \
                  its connection already: the time that a load balancer needs to notice.",
        ..once("shutdown_delay", MAIN, ONE, Value::Milliseconds)
    },
    Row {
        syntax: "on | off | required",
        default: "off",
        summary: "Whether the serving process gives up what serving does not need: capabilities, \
                  new privileges, starting programs, writing outside of its own folders. \
                  required: the server does not start where the kernel cannot enforce it.",
        ..once(
            "sandbox",
            MAIN,
            ONE,
            Value::OneOf(&["on", "off", "required"]),
        )
    },
    Row {
        syntax: "time | off",
        default: "50ms",
        summary: "After which time of silence other lanes accept the connections that wait for a \
                  lane, until it works again. What it was doing is logged when it lasts for 200ms.",
        ..once("lane_rescue_timeout", MAIN, ONE, Value::Custom)
    },
    Row {
        syntax: "directory",
        summary: "The serving process's current folder: where its core files go.",
        ..once("working_directory", MAIN, ONE, Value::Text)
    },
    Row {
        syntax: "variable[=value]",
        default: "TZ",
        summary: "An environment variable that the serving process keeps or gets; all others but \
                  TZ are removed.",
        repeat: Repeat::Many,
        ..once("env", MAIN, ONE, Value::Custom)
    },
    Row {
        syntax: "file",
        summary: "Accepted for modules that are built in; of nginx's others it warns. Binary \
                  modules cannot be loaded.",
        repeat: Repeat::Many,
        ..once("load_module", MAIN, ONE, Value::Custom)
    },
    Row {
        syntax: "on | off",
        default: "off",
        summary: "Accepted for nginx's sake; regular expressions are always compiled to machine \
                  code where the machine can.",
        ..once("pcre_jit", MAIN, ONE, Value::Flag)
    },
    Row {
        syntax: "name threads=number [max_queue=number]",
        summary: "Accepted for nginx's sake; nothing uses thread pools yet.",
        repeat: Repeat::Many,
        ..once("thread_pool", MAIN, Arguments::between(2, 3), Value::Custom)
    },
    Row {
        syntax: "file [level] | stderr [level] | syslog:parameter,... [level]",
        default: "logs/error.log error",
        summary: "Where errors are logged, and from which level on. Several may be given.",
        repeat: Repeat::Many,
        merge: Merge::Nearest,
        ..once("error_log", LOGGED, Arguments::at_least(1), Value::Custom)
    },
    Row {
        summary: "Settings of connection handling.",
        ..once(
            "events",
            MAIN,
            Arguments::none(),
            Value::Block(Context::Events),
        )
    },
    Row {
        syntax: "number",
        default: "512",
        summary: "How many connections from clients a lane may have open. At the limit idle \
                  keep-alive connections are closed first, then the oldest of those that have \
                  not sent a whole request head within a second. Requests that wait for upstream \
                  servers leave a sixteenth to others, 16 at most: beyond that they get 502, and \
                  an alert is logged.",
        ..once("worker_connections", EVENTS, ONE, Value::Number)
    },
    Row {
        syntax: "method",
        default: "epoll",
        summary: "The event method; epoll is the only one.",
        ..once("use", EVENTS, ONE, Value::Custom)
    },
    Row {
        syntax: "on | off",
        default: "off",
        summary: "Whether a lane accepts all waiting connections at once.",
        ..once("multi_accept", EVENTS, ONE, Value::Flag)
    },
    Row {
        syntax: "on | off",
        default: "off",
        summary: "Whether lanes take turns in listening.",
        ..once("accept_mutex", EVENTS, ONE, Value::Flag)
    },
    Row {
        syntax: "time",
        default: "500ms",
        summary: "How long a lane waits before it tries again to get its turn to listen, or to \
                  accept where descriptors had run out.",
        ..once("accept_mutex_delay", EVENTS, ONE, Value::Milliseconds)
    },
    Row {
        syntax: "on | off",
        default: "off",
        summary: "Tengine's switch: a listening socket per lane for every listen.",
        ..once("reuse_port", EVENTS, ONE, Value::Flag)
    },
];
