"""Checks the emulated Compute Engine with clients of other projects: gcp_check.py <emulator> <work directory>

Prints one line for each case, then the table of methods and clients. gcloud is not in any package registry: it runs if it
is installed, and the last line says so if it is not.
"""

import pathlib
import sys

import gcp_client
import gcp_model
import gcp_with_apiclient
import gcp_with_compute
import gcp_with_gcloud
import gcp_with_libcloud
from harness import run_checks

EXCUSED = {name: "no emulated method starts a regional operation"
           for name in ("regionOperations.get", "regionOperations.wait")}


def main():
    home = pathlib.Path(sys.argv[2]) / "gcloud"
    clients = {
        "google-cloud-compute": (gcp_with_compute, lambda proxy: gcp_with_compute.ComputeClient(proxy.url)),
        "google-api-python-client": (gcp_with_apiclient, lambda proxy: gcp_with_apiclient.ApiClient(proxy.url)),
        "libcloud": (gcp_with_libcloud, lambda proxy: gcp_with_libcloud.Libcloud(proxy.port)),
    }
    notes = []
    if gcp_with_gcloud.PROGRAM:
        clients["gcloud"] = (gcp_with_gcloud, lambda proxy: gcp_with_gcloud.Gcloud(proxy.url, home))
    else:
        notes.append("gcloud is not installed and was not run")
    # Each gcloud command takes a second: its cases cover what it does differently, and it need not cover every method.
    no_call = {"libcloud": gcp_with_libcloud.NO_CALL, "gcloud": None}
    run_checks("gcp", gcp_model, clients, no_call, excused=EXCUSED, check_case=gcp_client.check_case, notes=notes,
         more=lambda results, _: results.check("the check of a case detects errors", gcp_client.self_test()))


if __name__ == "__main__":
    main()
