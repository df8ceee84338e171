//! Which of the controllers writes status: the one that holds a Lease.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::Instant;

use super::Cluster;

/// A controller's part in the election.
pub(super) struct Leadership {
    api: Api<Lease>,
    /// None: every controller writes status.
    name: Option<String>,
    namespace: String,
    identity: String,
    lease: Duration,
    /// The renewal of another that was seen last, and when it was seen: clocks may differ, so that
    /// only our own is used.
    seen: Option<(Option<MicroTime>, Instant)>,
    held_until: Option<Instant>,
}

impl Leadership {
    pub(super) fn new(client: Client, cluster: &Cluster) -> Leadership {
        Leadership {
            api: Api::namespaced(client, &cluster.namespace),
            name: cluster.lease.clone(),
            namespace: cluster.namespace.clone(),
            identity: cluster.identity.clone(),
            lease: Duration::from_secs(u64::from(cluster.lease_s.max(3))),
            seen: None,
            held_until: None,
        }
    }

    /// The time between renewals.
    pub(super) fn period(&self) -> Duration {
        self.lease / 3
    }

    /// Whether this controller writes status now.
    pub(super) fn is_ours(&self) -> bool {
        self.name.is_none() || self.held_until.is_some_and(|until| Instant::now() < until)
    }

    /// Takes the Lease if it is free, or holds it longer.
    pub(super) async fn renew(&mut self) {
        let Some(name) = self.name.clone() else {
            return;
        };
        let begun = Instant::now();
        match self.try_renew(&name).await {
            Ok(true) => self.held_until = Some(begun + self.lease),
            Ok(false) => self.held_until = None,
            // It is another's only when this one has run out.
            Err(error) => eprintln!("Lease {}/{name}: {error}", self.namespace),
        }
    }

    async fn try_renew(&mut self, name: &str) -> kube::Result<bool> {
        let parameters = PostParams::default();
        let Some(mut lease) = self.api.get_opt(name).await? else {
            let metadata = ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            };
            let lease = Lease {
                metadata,
                spec: Some(self.spec(None)),
            };
            return Ok(self.api.create(&parameters, &lease).await.is_ok());
        };
        let spec = lease.spec.take().unwrap_or_default();
        let is_own = spec.holder_identity.as_deref() == Some(self.identity.as_str());
        if !is_own && !self.is_expired(&spec) {
            return Ok(false);
        }
        lease.spec = Some(self.spec(Some(&spec).filter(|_| is_own)));
        // The version in it lets only one of several win.
        match self.api.replace(name, &parameters, &lease).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether another's Lease was not renewed for as long as it lasts.
    fn is_expired(&mut self, spec: &LeaseSpec) -> bool {
        let is_free = spec
            .holder_identity
            .as_deref()
            .unwrap_or_default()
            .is_empty();
        let now = Instant::now();
        match &self.seen {
            Some((renewed, since)) if *renewed == spec.renew_time => {
                is_free || now.duration_since(*since) > self.lease
            }
            _ => {
                self.seen = Some((spec.renew_time.clone(), now));
                is_free
            }
        }
    }

    fn spec(&self, held: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.lease.as_secs()).ok(),
            acquire_time: held
                .and_then(|held| held.acquire_time.clone())
                .or(Some(now.clone())),
            renew_time: Some(now),
            ..LeaseSpec::default()
        }
    }
}
