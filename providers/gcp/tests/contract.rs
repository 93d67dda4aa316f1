//! The backend on the emulator, held to the contract.

mod emulated;

use emulated::GcpHarness;
use fleetwright_contract_tests::contract_tests;

contract_tests!(|| GcpHarness::new().wait_for_launch());
