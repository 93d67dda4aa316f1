//! Fixtures that the tests of the façade share: catalogs, tenants, a region on the memory cloud, a running instance.
