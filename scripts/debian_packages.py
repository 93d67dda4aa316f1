"""Downloads and unpacks Debian packages, without installing them and without root."""

import pathlib
import shutil
import subprocess


class NotPossible(Exception):
    """The packages are not available on this machine; the text says why."""


def apt_options(work):
    """Uses separate package lists and caches, so that the system's are not changed and root is not needed."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise NotPossible("apt-get or dpkg-deb is missing")
    for directory in ("lists/partial", "cache/archives/partial"):
        (work / "apt" / directory).mkdir(parents=True, exist_ok=True)
    options = ["-q", "-o", f"Dir::State::lists={work / 'apt/lists'}", "-o", f"Dir::Cache={work / 'apt/cache'}"]
    run_or_raise(["apt-get", *options, "update"], "apt-get update failed")
    return options


def unpack(apt, packages, work, into):
    """Downloads packages with the options from `apt_options`, and unpacks them into a directory, which is emptied first."""
    downloads = work / "downloads"
    shutil.rmtree(downloads, ignore_errors=True)
    downloads.mkdir(parents=True)
    run_or_raise(["apt-get", *apt, "download", *packages], "apt-get download failed", cwd=downloads)
    shutil.rmtree(into, ignore_errors=True)
    for package in sorted(downloads.glob("*.deb")):
        run_or_raise(["dpkg-deb", "-x", str(package), str(into)], f"{package.name} cannot be unpacked")
    shutil.rmtree(downloads)


def run_or_raise(command, reason, cwd=pathlib.Path(__file__).resolve().parent):
    if subprocess.run(command, cwd=cwd).returncode != 0:
        raise NotPossible(reason)
