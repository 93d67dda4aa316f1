//! The program that GARM starts once for every call.

use std::{io::Write as _, process::ExitCode};

fn main() -> ExitCode {
    match garm_provider_fleetwright::run(|name| std::env::var(name).ok(), std::io::stdin()) {
        Ok(answer) => {
            let mut out = std::io::stdout().lock();
            // An answer that cannot be written did not arrive: GARM must not take the call for done.
            match out.write_all(answer.as_bytes()).and_then(|()| out.flush()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        Err(failure) => {
            // Nobody reads it if this fails.
            let _ = writeln!(std::io::stderr(), "{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
