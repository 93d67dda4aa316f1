//! A layer that hides every machine while it is switched on, as a handle on another account does.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use fleetwright::{
    BoxFuture, BoxStream, InstanceId, ListItem, Result,
    layer::{Layer, Request},
};
use futures_util::{StreamExt as _, stream};

/// While it is on, lists are complete and empty, and no instance is found. The account id stays the same. Clones share the switch.
#[derive(Clone, Debug, Default)]
pub struct HiddenMachines(Arc<AtomicBool>);

impl HiddenMachines {
    /// Hides the machines, or shows them again.
    pub fn set(&self, on: bool) {
        self.0.store(on, Ordering::SeqCst);
    }

    fn is_on(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Layer for HiddenMachines {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        match request.ids.first() {
            Some(id) if self.is_on() => {
                let error = request.call.not_found(id);
                Box::pin(async move { Err(error) })
            }
            Some(_) | None => send(),
        }
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Cow<'a, [InstanceId]>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        if !self.is_on() {
            return send(Cow::Borrowed(request.ids));
        }
        let missing = |id| Err(request.call.not_found(id));
        let results = request.ids.iter().map(missing).collect();
        Box::pin(async move { results })
    }

    fn stream<'a>(
        &'a self,
        _: Request<'a>,
        open: impl Fn() -> BoxStream<'a, Result<ListItem>> + Send + Sync + 'a,
    ) -> BoxStream<'a, Result<ListItem>> {
        if self.is_on() {
            stream::empty().boxed()
        } else {
            open()
        }
    }
}
