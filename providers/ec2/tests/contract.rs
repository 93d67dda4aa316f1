//! The backend on the emulator, held to the contract.

mod emulated;

use emulated::Ec2Harness;
use fleetwright_contract_tests::contract_tests;

contract_tests!(Ec2Harness::new);
