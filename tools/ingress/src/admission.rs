//! Admission: what an Ingress would do is said before the API server stores it.
//!
//! What it is shown is only rendered and parsed: no file is opened, no name is looked up, and no
//! program is asked, since whoever may write an Ingress decides what is read here. The server's own
//! check follows in the background, and an event says what it refuses.
//!
//! The Ingress is rendered with those that share a host with it, before and after the change. It is
//! refused if it does not work itself, or if another one works less than before. What did not work
//! before the change either, and what waits for another object, is a warning.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::findings::{Finding, Level, Subject};
use crate::objects::{Key, Objects};
use crate::options::Options;
use crate::render::draft;
use crate::rules;
use crate::snippets::check_whole;

/// The most warnings of an answer: the API server passes 4,096 bytes on.
const WARNINGS_MAX: usize = 16;

/// The longest warning: the API server cuts longer ones.
const WARNING_BYTES_MAX: usize = 256;

/// The most findings that a refusal names.
const REASONS_MAX: usize = 10;

/// What the API server asks.
#[derive(Debug, Deserialize)]
struct Review {
    request: Request,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    object: Value,
    #[serde(default)]
    old_object: Value,
}

/// What is thought of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Opinion {
    /// Why it is refused; none allows it.
    refusal: Option<String>,
    warnings: Vec<String>,
}

/// Answers an `AdmissionReview` of `admission.k8s.io/v1` about an Ingress by another one.
///
/// # Errors
/// The text is no such review.
pub fn review(objects: &mut Objects, options: &Options, text: &[u8]) -> Result<String, String> {
    let review: Review = serde_json::from_slice(text)
        .map_err(|error| format!("this is not an AdmissionReview: {error}"))?;
    let uid = review.request.uid.clone();
    let opinion = opinion(objects, options, review.request);
    let mut response = json!({
        "uid": uid,
        "allowed": opinion.refusal.is_none(),
        "warnings": opinion.warnings,
    });
    if let Some(message) = opinion.refusal {
        response["status"] = json!({"code": 403, "message": message});
    }
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": response,
    });
    Ok(answer.to_string())
}

fn opinion(objects: &mut Objects, options: &Options, request: Request) -> Opinion {
    let is_other = request.object["kind"] != "Ingress";
    if is_other {
        return Opinion::default(); // an Ingress that goes has no object
    }
    let is_new = request.old_object.is_null();
    let old = read(request.old_object, &request.namespace).ok();
    let (key, mut ingress) = match read(request.object, &request.namespace) {
        Ok(read) => read,
        Err(text) => {
            return Opinion {
                refusal: Some(text),
                warnings: Vec::new(),
            };
        }
    };
    if !rules::is_ours(&ingress, objects, options) {
        return Opinion::default();
    }
    if is_new {
        // Whoever comes is the youngest, whatever clocks say.
        ingress.metadata.creation_timestamp = Some(Time(Timestamp::MAX));
    }
    let mut concerned = rules::names(&ingress, options);
    if let Some((_, old)) = &old {
        concerned.extend(rules::names(old, options));
    }
    let all = std::mem::take(&mut objects.ingresses);
    objects.ingresses = neighbours(&all, &key, &concerned, options);
    objects.ingresses.extend(old);
    let (_, before) = draft(objects, options);
    objects.ingresses.insert(key.clone(), ingress);
    let (text, after) = draft(objects, options);
    objects.ingresses = all;
    let subject = Subject::new("Ingress", &key.0, &key.1);
    judge(&subject, &before.into_iter().collect(), after, &text)
}

/// The other Ingresses that have one of these names: all that a review renders, however large the
/// cluster is.
fn neighbours(
    all: &BTreeMap<Key, Ingress>,
    key: &Key,
    concerned: &BTreeSet<String>,
    options: &Options,
) -> BTreeMap<Key, Ingress> {
    let others = all.iter().filter(|(other, ingress)| {
        *other != key && !rules::names(ingress, options).is_disjoint(concerned)
    });
    others
        .map(|(key, ingress)| (key.clone(), ingress.clone()))
        .collect()
}

/// Compares what does not work before a change with what does not work after it.
fn judge(
    subject: &Subject,
    before: &BTreeSet<Finding>,
    after: Vec<Finding>,
    text: &str,
) -> Opinion {
    let mut reasons = Vec::new();
    let mut warnings = Vec::new();
    for finding in after {
        let is_new = !before.contains(&finding);
        let is_own = finding.subject == *subject;
        let is_bad = finding.level > Level::Note && !finding.awaits_other;
        if is_bad && is_new && is_own {
            reasons.push(finding.to_string());
        } else if is_bad && is_new {
            reasons.push(format!(
                "it would take a path from another Ingress: {finding}"
            ));
        } else if is_own {
            warnings.push(shortened(&finding.to_string()));
        }
    }
    if let Err(error) = check_whole(text) {
        reasons.push(format!(
            "{subject}: its configuration cannot be parsed: {error}"
        ));
    }
    warnings.truncate(WARNINGS_MAX);
    let more = reasons.len().saturating_sub(REASONS_MAX);
    reasons.truncate(REASONS_MAX);
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    Opinion {
        refusal: (!reasons.is_empty()).then(|| reasons.join("\n")),
        warnings,
    }
}

/// Reads an Ingress as it is read from the cluster.
///
/// # Errors
/// Why it cannot be read.
fn read(mut object: Value, namespace: &str) -> Result<(Key, Ingress), String> {
    if object["metadata"]["namespace"].is_null() && object.is_object() {
        object["metadata"]["namespace"] = namespace.into();
    }
    let mut one = Objects::default();
    one.add(object);
    if let Some(finding) = one.findings.first() {
        return Err(finding.to_string());
    }
    let first = one.ingresses.pop_first();
    first.ok_or_else(|| "there is no Ingress in the review".to_owned())
}

/// A text that the API server passes on as a whole.
fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(WARNING_BYTES_MAX);
    text[..end].to_owned()
}

#[cfg(test)]
mod tests;
