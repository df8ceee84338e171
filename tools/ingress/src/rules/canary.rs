//! Canary Ingresses: a second group for the paths of another Ingress.

use std::collections::BTreeMap;
use std::rc::Rc;

use k8s_openapi::api::networking::v1::Ingress;

use super::{Canary, Location, Match, Server, Tenant, hosts};
use crate::endpoints::Port;
use crate::findings::{Finding, Level};

/// Gives the locations with the same host, path and type their second group. A location takes one.
pub(super) fn merge(
    ingress: &Ingress,
    tenant: &Rc<Tenant>,
    servers: &mut BTreeMap<String, Server>,
    findings: &mut Vec<Finding>,
) {
    let mut leave_out = |text: String, awaits_other: bool| {
        findings.push(Finding {
            subject: tenant.subject.clone(),
            level: Level::LeftOut,
            text,
            awaits_other,
        });
    };
    for (host, paths) in hosts(ingress) {
        for path in paths {
            let Some(service) = &path.backend.service else {
                continue;
            };
            let written = path.path.as_deref().filter(|path| !path.is_empty());
            let written = written.unwrap_or("/");
            let port = Port::of(&tenant.namespace, service);
            let Some(location) = find(servers, &host, written, Match::of(&path.path_type)) else {
                let text = format!("{host}{written}: no other Ingress has this path and type");
                leave_out(text, true);
                continue;
            };
            let is_foreign = location
                .tenant
                .as_ref()
                .is_some_and(|main| main.namespace != tenant.namespace);
            if is_foreign {
                leave_out(
                    format!("{host}{written} belongs to another namespace"),
                    false,
                );
            } else if location.port.as_ref() == Some(&port) {
                let text = format!("{host}{written}: the Service is the main one already");
                leave_out(text, false);
            } else if location.canary.is_some() {
                leave_out(format!("{host}{written} has a canary already"), false);
            } else {
                location.canary = Some(Canary {
                    tenant: Rc::clone(tenant),
                    port,
                });
            }
        }
    }
}

fn find<'a>(
    servers: &'a mut BTreeMap<String, Server>,
    host: &str,
    path: &str,
    matched: Match,
) -> Option<&'a mut Location> {
    let server = servers.get_mut(host)?;
    let mut locations = server.locations.iter_mut();
    locations.find(|location| {
        location.written_path == path && location.matched == matched && !location.is_default
    })
}
