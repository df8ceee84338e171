//! Which Ingresses are ours: by their class, its controller, or for want of both.

use k8s_openapi::api::networking::v1::Ingress;

use crate::objects::Objects;
use crate::options::Options;

/// The older way to name a class.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// Marks the class of Ingresses that name none.
const DEFAULT_ANNOTATION: &str = "ingressclass.kubernetes.io/is-default-class";

/// Whether an Ingress is ours. Where there is no IngressClass at all, as in a folder of an
/// application's manifests, a class is ours by its name, and so is an Ingress without one.
pub(crate) fn is_ours(ingress: &Ingress, objects: &Objects, options: &Options) -> bool {
    let namespace = ingress.metadata.namespace.as_deref();
    if options
        .namespace
        .as_deref()
        .is_some_and(|wanted| Some(wanted) != namespace)
    {
        return false;
    }
    let annotations = ingress.metadata.annotations.as_ref();
    if let Some(class) = annotations.and_then(|annotations| annotations.get(CLASS_ANNOTATION)) {
        return *class == options.class;
    }
    let class = ingress
        .spec
        .as_ref()
        .and_then(|spec| spec.ingress_class_name.as_deref());
    match class {
        Some(class) => is_our_class(class, objects, options),
        None if options.without_class || objects.classes.is_empty() => true,
        None => objects.classes.iter().any(|(name, class)| {
            let annotations = class.metadata.annotations.as_ref();
            let marked = annotations.and_then(|annotations| annotations.get(DEFAULT_ANNOTATION));
            marked.is_some_and(|mark| mark == "true") && is_our_class(name, objects, options)
        }),
    }
}

fn is_our_class(name: &str, objects: &Objects, options: &Options) -> bool {
    let by_name = options.is_class_by_name || objects.classes.is_empty();
    if by_name && name == options.class {
        return true;
    }
    let spec = objects
        .classes
        .get(name)
        .and_then(|class| class.spec.as_ref());
    let controller = spec.and_then(|spec| spec.controller.as_deref());
    controller == Some(&options.controller)
}
