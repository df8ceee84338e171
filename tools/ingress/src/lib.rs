//! From Kubernetes' objects to a configuration of Turnpike: Ingresses with the annotations, the
//! ConfigMap and the snippets of ingress-nginx, Services, EndpointSlices and Secrets.
//!
//! Only `cluster` knows an API server: everything else reads values and writes text. The crate
//! never becomes a part of the server.

mod admission;
mod annotations;
mod certificates;
mod check;
mod cluster;
mod endpoints;
mod findings;
mod gateway;
mod gateway_objects;
mod objects;
mod options;
mod render;
mod rules;
mod settings;
mod snippets;
mod text;
mod values;

pub use admission::review;
pub use annotations::{ANNOTATIONS, AnnotationRow};
pub use check::{Verdict, judge, settle};
pub use cluster::{Cluster, run};
pub use findings::{Finding, Level, Subject};
pub use objects::{Objects, ReadError};
pub use options::{ClusterOptions, Flag, FlagUse, GatewayServices, OptionError, Options, flags};
pub use render::{Rendering, Without, render, render_without};
pub use settings::{SETTINGS, SettingRow};
pub use values::{Effect, Kind};
