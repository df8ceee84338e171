//! A question of an active check in HTTP/1, and its answer.

use std::pin::Pin;
use std::sync::Arc;

use turnpike_upstream::{CheckOutcome, Connection, Question};
use turnpike_wire::message::{Fields, Method};

use super::Conditions;
use crate::common::own_request::{self, exchange};

/// An answer, to be judged.
pub(super) struct Answer<'a> {
    /// Status code.
    pub(super) status: u16,
    pub(super) fields: &'a Fields,
    /// The beginning of its body.
    pub(super) body: &'a [u8],
}

/// A request, and what its answer has to be.
pub(super) struct HttpQuestion {
    /// What is sent.
    pub(super) request: Vec<u8>,
    /// The conditions; `None`: a status of 2xx or 3xx.
    pub(super) conditions: Option<Arc<Conditions>>,
    /// How long head and body of the answer may take each, in milliseconds.
    pub(super) read_timeout_ms: u64,
}

impl Question for HttpQuestion {
    fn ask<'a>(
        &'a self,
        connection: &'a Connection,
    ) -> Pin<Box<dyn Future<Output = CheckOutcome> + 'a>> {
        Box::pin(async move {
            let timeout_ms = self.read_timeout_ms;
            let asked = exchange(connection, &self.request, Method::Get, timeout_ms).await;
            match asked {
                Ok(answer) => CheckOutcome {
                    found: self.judge(&answer),
                    is_reusable: answer.is_reusable,
                },
                Err(failed) => CheckOutcome {
                    found: Err(failed.action()),
                    is_reusable: false,
                },
            }
        })
    }
}

impl HttpQuestion {
    fn judge(&self, answer: &own_request::Answer) -> Result<(), &'static str> {
        let status = answer.head.status;
        match &self.conditions {
            Some(conditions) => conditions.judge(&Answer {
                status,
                fields: &answer.head.fields,
                body: &answer.body,
            }),
            None if (200..400).contains(&status) => Ok(()),
            None => Err("checking status code"),
        }
    }
}

#[cfg(test)]
mod tests;
