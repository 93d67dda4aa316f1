"""Lets foreign clients judge the emulated Compute Engine: gcp_judge.py <emulator> <work directory>

One line for each case, then the table of methods and clients. gcloud is not in any package registry: it judges where it is
installed, and the last line says so where it is not.
"""

import pathlib
import sys

import gcp_bench
import gcp_model
import gcp_with_apiclient
import gcp_with_compute
import gcp_with_gcloud
import gcp_with_libcloud
from court import hold

EXCUSED = {name: "nothing that is emulated begins an operation of a region"
           for name in ("regionOperations.get", "regionOperations.wait")}


def main():
    home = pathlib.Path(sys.argv[2]) / "gcloud"
    clients = {
        "google-cloud-compute": (gcp_with_compute, lambda tap: gcp_with_compute.ComputeClient(tap.url)),
        "google-api-python-client": (gcp_with_apiclient, lambda tap: gcp_with_apiclient.ApiClient(tap.url)),
        "libcloud": (gcp_with_libcloud, lambda tap: gcp_with_libcloud.Libcloud(tap.port)),
    }
    notes = []
    if gcp_with_gcloud.PROGRAM:
        clients["gcloud"] = (gcp_with_gcloud, lambda tap: gcp_with_gcloud.Gcloud(tap.url, home))
    else:
        notes.append("gcloud is not installed and was not asked")
    # Each command of gcloud takes a second: it is asked for what it does differently, and nothing is expected of it.
    no_call = {"libcloud": gcp_with_libcloud.NO_CALL, "gcloud": None}
    hold("gcp", gcp_model, clients, no_call, excused=EXCUSED, watch=gcp_bench.watch, notes=notes,
         more=lambda score, _: score.check("the watch over a case fires", gcp_bench.self_test()))


if __name__ == "__main__":
    main()
