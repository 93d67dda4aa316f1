"""Runs the EC2 provider's contract on moto: ec2_contract_on_moto.py WORK, in the environment that emulators/peers/run creates."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys

from processes import Moto, free_port


def main():
    work = pathlib.Path(sys.argv[1])
    moto = Moto(sys.executable, free_port(), work / "moto.log")
    variables = {"FLEETWRIGHT_MOTO_ENDPOINT": moto.url, "FLEETWRIGHT_MOTO_VERSION": importlib.metadata.version("moto")}
    try:
        # The whole workspace, so that the build of the other tests is reused.
        command = ["cargo", "test", "--locked", "--workspace", "--all-features", "--test", "moto"]
        return subprocess.run(command, env={**os.environ, **variables}).returncode
    finally:
        moto.stop()


if __name__ == "__main__":
    sys.exit(main())
