//! Settings by location, for variables, which are not made for one location.

use std::sync::{Arc, PoisonError, RwLock};

use turnpike_http::exchange::Exchange;
use turnpike_http::plan::LocationIndex;
use turnpike_plan::keys::PlanMap;

/// Settings by location. Written while the plan is built, read by requests.
pub(crate) struct ByLocation<T>(Arc<RwLock<PlanMap<u32, Arc<T>>>>);

impl<T> ByLocation<T> {
    /// Remembers what holds in a location.
    pub(crate) fn insert(&self, location: LocationIndex, settings: Arc<T>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(location.0, settings);
    }

    /// What holds in the location that a request is in.
    pub(crate) fn of(&self, exchange: &Exchange) -> Option<Arc<T>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(&exchange.walk.location().0).cloned()
    }
}

impl<T> Clone for ByLocation<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for ByLocation<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}
