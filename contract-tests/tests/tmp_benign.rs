use fleetwright_contract_tests::{CLAUSES, Status, run_clause, zoo::benign};
#[test]
fn benign_only() {
    for odd in benign::all() {
        let began = std::time::Instant::now();
        for clause in CLAUSES {
            let verdict = run_clause(clause, &(odd.make)());
            if !matches!(verdict.status, Status::Pass | Status::Refused) {
                println!(
                    "BAD {}: {} {:?} {}",
                    odd.name,
                    clause.id,
                    verdict.status,
                    verdict.reason.unwrap_or_default()
                );
            }
        }
        println!("TIME {} {:?}", odd.name, began.elapsed());
    }
}
#[test]
fn slow_clauses() {
    use std::sync::Arc;
    let f: fleetwright_contract_tests::Factory =
        Arc::new(|| Arc::new(fleetwright_contract_tests::zoo::MemoryHarness::new()));
    for clause in CLAUSES {
        let v = run_clause(clause, &f);
        if v.duration.as_millis() > 150 {
            println!("SLOW {} {:?}", clause.id, v.duration);
        }
    }
}
