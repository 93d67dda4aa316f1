"""Runs the EC2 provider's contract on moto: contract_on_moto.py WORK, in the environment that emulators/peers/run makes."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys

from program import Moto, free_port


def main():
    work = pathlib.Path(sys.argv[1])
    moto = Moto(sys.executable, free_port(), work / "moto.log")
    told = {"FLEETWRIGHT_MOTO_ENDPOINT": moto.url, "FLEETWRIGHT_MOTO_VERSION": importlib.metadata.version("moto")}
    try:
        # The whole workspace, so that what the other tests have compiled is used again.
        command = ["cargo", "test", "--locked", "--workspace", "--all-features", "--test", "moto"]
        return subprocess.run(command, env={**os.environ, **told}).returncode
    finally:
        moto.stop()


if __name__ == "__main__":
    sys.exit(main())
