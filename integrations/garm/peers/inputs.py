"""The programs of other projects that the script needs, and where they are looked for. Nothing is downloaded or built here."""

import os
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
WORK = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "garm"
BIN = WORK / "bin"
PEERS = {"azure": "garm-provider-azure", "ec2": "garm-provider-aws", "gcp": "garm-provider-gcp"}
HELP = f"""These programs are needed, in {BIN} or on PATH. scripts/garm does not install them:
  garm                 GARM, of github.com/cloudbase/garm: for the story
  garm-provider-azure  its providers, of github.com/cloudbase: each is
  garm-provider-aws    put beside ours in the table of its cloud
  garm-provider-gcp    if it is there
A file PROGRAM.version beside a program of {BIN} says which version the table names."""


class Missing(Exception):
    """A program that is not there. Nothing was checked."""


def garm():
    """Returns GARM's program."""
    return program("garm")


def peer(cloud):
    """Returns the existing provider for a cloud."""
    return program(PEERS[cloud])


def program(name):
    found = shutil.which(name, path=f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}")
    if not found:
        raise Missing(f"there is no {name}.\n{HELP}")
    return pathlib.Path(found)


def version(program):
    """Returns the version that a file beside the program states."""
    note = program.with_name(f"{program.name}.version")
    return note.read_text().strip() if note.exists() else "of an unknown version"
