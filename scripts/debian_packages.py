"""Takes packages of Debian and unpacks them, without installing anything and without root."""

import pathlib
import shutil
import subprocess


class NotPossible(Exception):
    """This machine has no way to it; the text says why."""


def apt_options(work):
    """Lists and caches of our own: the system's stay as they are, and no root is needed."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise NotPossible("there is no apt-get to take Debian's packages with")
    for directory in ("lists/partial", "cache/archives/partial"):
        (work / "apt" / directory).mkdir(parents=True, exist_ok=True)
    options = ["-q", "-o", f"Dir::State::lists={work / 'apt/lists'}", "-o", f"Dir::Cache={work / 'apt/cache'}"]
    run_or_give_up(["apt-get", *options, "update"], "apt-get update fails")
    return options


def unpack(apt, packages, work, into):
    """Downloads packages, by apt options from above, and unpacks them into a directory that is empty before."""
    downloads = work / "downloads"
    shutil.rmtree(downloads, ignore_errors=True)
    downloads.mkdir(parents=True)
    run_or_give_up(["apt-get", *apt, "download", *packages], "apt-get download fails", cwd=downloads)
    shutil.rmtree(into, ignore_errors=True)
    for package in sorted(downloads.glob("*.deb")):
        run_or_give_up(["dpkg-deb", "-x", str(package), str(into)], f"{package.name} does not unpack")
    shutil.rmtree(downloads)


def run_or_give_up(command, reason, cwd=pathlib.Path(__file__).resolve().parent):
    if subprocess.run(command, cwd=cwd).returncode != 0:
        raise NotPossible(reason)
