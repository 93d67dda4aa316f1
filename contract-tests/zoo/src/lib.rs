//! Broken backends that the contract kit must reject, and unusual ones that it must accept.
