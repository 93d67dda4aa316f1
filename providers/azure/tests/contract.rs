//! The backend on the emulator, held to the contract.

mod emulated;

use emulated::AzureHarness;
use fleetwright_contract_tests::contract_tests;

contract_tests!(|| AzureHarness::new().wait_for_launch());
