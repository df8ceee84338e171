//! Rows of the main and events contexts: the process, its user, its lanes, its error log.

use turnpike_conf::{Arguments, Context, Merge, Repeat, Row, Value};
use turnpike_http::settings::check_debug_connection;

const MAIN: &[Context] = &[Context::Main];
const EVENTS: &[Context] = &[Context::Events];
const LOGGED: &[Context] = &[
    Context::Main,
    Context::Http,
    Context::Server,
    Context::Location,
    Context::Stream,
    Context::StreamServer,
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
        summary: "Whether the master runs in the background.",
        ..once("daemon", MAIN, ONE, Value::Flag)
    },
    Row {
        syntax: "on | off",
        default: "on",
        summary: "Whether a separate process serves the requests. With `off`, one process does \
            everything, for debugging.",
        ..once("master_process", MAIN, ONE, Value::Flag)
    },
    Row {
        syntax: "interval",
        summary: "Accepted for compatibility with nginx, without effect. A lane reads its clock \
            once per turn.",
        ..once("timer_resolution", MAIN, ONE, Value::Milliseconds)
    },
    Row {
        syntax: "file",
        default: "logs/nginx.pid",
        summary: "The file that holds the master's process ID while it runs.",
        ..once("pid", MAIN, ONE, Value::Text)
    },
    Row {
        syntax: "file | off",
        summary: "The unix socket for control commands to the running server. By default the \
            socket is beside the pid file, and its name ends in .control instead of .pid.",
        ..once("control", MAIN, ONE, Value::Text)
    },
    Row {
        syntax: "file",
        default: "logs/nginx.lock",
        summary: "Accepted for compatibility with nginx, without effect. Lanes of one process need \
            no lock file.",
        ..once("lock_file", MAIN, ONE, Value::Text)
    },
    Row {
        syntax: "number | auto",
        default: "1",
        summary: "The number of lanes (pinned threads) that serve requests. With `auto` there is \
            one lane for each CPU that the process may use. Its CPU set and the quota of its \
            control group limit this number.",
        ..once("worker_processes", MAIN, ONE, Value::Custom)
    },
    Row {
        syntax: "stop | abort",
        summary: "Accepted for compatibility with nginx, without effect. An internal error ends a \
            connection, not the process.",
        ..once("debug_points", MAIN, ONE, Value::OneOf(&["stop", "abort"]))
    },
    Row {
        syntax: "user [group]",
        default: "nobody",
        summary: "The user and group of the serving process if root starts the master.",
        ..once("user", MAIN, Arguments::between(1, 2), Value::Custom)
    },
    Row {
        syntax: "number",
        default: "0",
        summary: "The scheduling priority of the serving process, from -20 (highest) to 20.",
        ..once("worker_priority", MAIN, ONE, Value::Custom)
    },
    Row {
        syntax: "cpumask ... | auto [cpumask]",
        summary: "The CPUs of each lane, as masks of 0 and 1 of any length. The rightmost digit is \
            CPU 0. `auto` gives each lane one CPU.",
        ..once(
            "worker_cpu_affinity",
            MAIN,
            Arguments::at_least(1),
            Value::Custom,
        )
    },
    Row {
        syntax: "number",
        summary: "The maximum number of open descriptors for each lane. By default the serving \
            process uses as many as the system allows.",
        ..once("worker_rlimit_nofile", MAIN, ONE, Value::Number)
    },
    Row {
        syntax: "size",
        summary: "The maximum size of a core file of the serving process.",
        ..once("worker_rlimit_core", MAIN, ONE, Value::Offset)
    },
    Row {
        syntax: "time",
        summary: "The maximum time of a graceful stop. Connections that are still open after that \
            time are closed. As in nginx, a reload also closes the connections that were accepted \
            before it, once that time has passed; without this directive a reload closes none.",
        ..once("worker_shutdown_timeout", MAIN, ONE, Value::Milliseconds)
    },
    Row {
        syntax: "time",
        default: "0",
        summary: "How long the server still accepts connections after QUIT. During that time every \
            response closes its connection. Set it to the time that a load balancer needs to \
            detect the shutdown.",
        ..once("shutdown_delay", MAIN, ONE, Value::Milliseconds)
    },
    Row {
        syntax: "on | off | required",
        default: "off",
        summary: "Whether the serving process drops rights that it does not need: capabilities, \
            new privileges, starting programs, writing outside its own folders. With `required`, \
            the server does not start if the kernel cannot enforce this.",
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
        summary: "If a lane does not respond for this time, other lanes accept its waiting \
            connections until it responds again. After 200ms the server logs what the lane was \
            doing.",
        ..once("lane_rescue_timeout", MAIN, ONE, Value::Custom)
    },
    Row {
        syntax: "nginx | turnpike",
        summary: "The name of the server in the Server field, on error pages and in the log. By \
                  default it is nginx's name if the name of the program begins with nginx, and \
                  otherwise the server's own name.",
        ..once(
            "compatibility",
            MAIN,
            ONE,
            Value::OneOf(&["nginx", "turnpike"]),
        )
    },
    Row {
        syntax: "directory",
        summary: "The current folder of the serving process. Core files are written there.",
        ..once("working_directory", MAIN, ONE, Value::Text)
    },
    Row {
        syntax: "variable[=value]",
        default: "TZ",
        summary: "An environment variable that the serving process keeps or gets. All others \
            except TZ are removed.",
        repeat: Repeat::Many,
        ..once("env", MAIN, ONE, Value::Custom)
    },
    Row {
        syntax: "name ...",
        summary: "Puts the values of these environment variables in place of `${NAME}` in \
            arguments of all directives but `include`. A value is a part of one word: it cannot \
            end a directive, and one with a dollar sign or a control character is refused, as is \
            a name that is not set, or that is also a variable, in upper or lower case. A reload \
            keeps the values of the start. `-T` and messages about the configuration show the \
            name. Under nginx's name, the directive does not exist.",
        repeat: Repeat::Many,
        ..once("env_subst", MAIN, Arguments::at_least(1), Value::Custom)
    },
    Row {
        syntax: "file",
        summary: "Accepted for modules that are built in. For nginx's other modules a warning is \
            logged. Binary modules cannot be loaded.",
        repeat: Repeat::Many,
        ..once("load_module", MAIN, ONE, Value::Custom)
    },
    Row {
        syntax: "on | off",
        default: "off",
        summary: "Accepted for compatibility with nginx, without effect. Regular expressions are \
            always compiled to machine code if the machine supports it.",
        ..once("pcre_jit", MAIN, ONE, Value::Flag)
    },
    Row {
        syntax: "name threads=number [max_queue=number]",
        summary: "Accepted for compatibility with nginx, without effect. Nothing uses thread pools \
            yet.",
        repeat: Repeat::Many,
        ..once("thread_pool", MAIN, Arguments::between(2, 3), Value::Custom)
    },
    Row {
        syntax: "file | stderr | syslog:parameter,... [level] [format=default|json] \
            [filter=part:pattern ...] [rate=number]",
        default: "logs/error.log error",
        summary: "The destination of error messages and the lowest level that is logged. Several \
            destinations may be given. `format=json` writes each line as a JSON object, `filter` \
            lets only some lines pass, and `rate` limits them. As in Angie.",
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
        summary: "The maximum number of open client connections per lane. At the limit the lane \
            first closes idle keep-alive connections. Then it closes the oldest connections that \
            have not sent a whole request head within a second, and then those whose clients have \
            neither sent nor taken a byte of a request for a quarter of `send_timeout`. A \
            sixteenth of the connections, 16 at most, is reserved for requests that do not wait \
            for upstream servers. Other requests to upstream servers then get 500, and an alert is \
            logged. Sessions of `stream` leave these to HTTP too; a further one is closed, with an \
            alert. HTTP/2 requests that wait have a limit of their own: 16 for each connection.",
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
        summary: "Whether lanes take turns at listening.",
        ..once("accept_mutex", EVENTS, ONE, Value::Flag)
    },
    Row {
        syntax: "time",
        default: "500ms",
        summary: "How long a lane waits before it tries again to get its turn to listen, or to \
            accept after descriptors ran out.",
        ..once("accept_mutex_delay", EVENTS, ONE, Value::Milliseconds)
    },
    Row {
        syntax: "on | off",
        default: "off",
        summary: "Gives every lane its own listening socket for every `listen`. This directive \
            comes from Tengine.",
        ..once("reuse_port", EVENTS, ONE, Value::Flag)
    },
    Row {
        syntax: "address | CIDR | unix:",
        summary: "Logs everything about the HTTP requests of these clients, including `debug` \
            messages, to every `error_log` that applies, whatever its level. Differs from nginx: \
            host names are not accepted.",
        repeat: Repeat::Many,
        ..once(
            "debug_connection",
            EVENTS,
            ONE,
            Value::Checked(check_debug_connection),
        )
    },
];
