//! Recognises, checks and assembles cloud-init user data.
