//! The calls that read records, which are the same for every kind of record.

/// Adds `get`, `show` and `list` to a service.
///
/// The service has a field `records`. `$one` is a record with its article in the documentation, and `$many` several.
macro_rules! read_calls {
    ($service:ident, $record:ident, $id:ident, $one:literal, $many:literal) => {
        impl $service {
            #[doc = concat!("Returns ", $one, ".")]
            ///
            /// # Errors
            ///
            /// It does not exist, or is not visible to the principal.
            pub async fn get(
                &self,
                principal: &fleetwright_identity::Principal,
                id: $id,
            ) -> Result<fleetwright_store::Versioned<$record>, $crate::network::RecordError> {
                let read = fleetwright_identity::Verb::Read;
                self.records.find(principal, read, id).await
            }

            #[doc = concat!("Returns what can be shown of ", $one, ": all of it, or as much as this version understands if a newer one wrote it.")]
            /// Then the result names the places that are not shown, and [`get`](Self::get) fails.
            ///
            /// # Errors
            ///
            /// As for [`get`](Self::get), if nothing can be shown.
            pub async fn show(
                &self,
                principal: &fleetwright_identity::Principal,
                id: $id,
            ) -> Result<fleetwright_store::Partial<$record>, $crate::network::RecordError> {
                self.records.show(principal, id).await
            }

            #[doc = concat!("Returns the ", $many, " that match the filter and that the principal may list, in the order of their ids.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("The principal may not list ", $many, " anywhere, or the store fails.")]
            pub async fn list(
                &self,
                principal: &fleetwright_identity::Principal,
                filter: &$crate::network::Filter,
            ) -> Result<$crate::network::RecordList<$record>, $crate::network::RecordError> {
                self.records.list(principal, filter).await
            }
        }
    };
}

pub(in crate::network) use read_calls;
