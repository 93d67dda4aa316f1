"""Checks assembled user data with cloud-init's own code: check.py <the example user_data> <cloud-init's examples>

Each case prints one line, `passed` or `failed`, with the differences. See ../check-cloud-init.
"""

import base64
import gzip
import json
import os
import pathlib
import random
import stat
import subprocess
import sys
import tempfile

import cases
from cloudinit import handlers, util, version
from machine import Machine, schema_problem

KEY = "ssh-ed25519 AAAA ours"
AUTHORITY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX it's: \"é\ufffe\" #"
LISTS = ("write_files", "runcmd", "ssh_authorized_keys")
ADDED = {"a key": {"key": KEY}, "an authority": {"authority": AUTHORITY}, "both": {"key": KEY, "authority": AUTHORITY}}


class Program:
    """The example program, which takes one request per line."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def assemble(self, own, **added):
        request = {"own": base64.b64encode(own).decode() if own else None, **added}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        response = json.loads(self.process.stdout.readline())
        if response.get("whole"):
            response["whole"] = base64.b64decode(response["whole"])
        return response


class Report:
    def __init__(self, program):
        self.program, self.passed, self.failed, self.ours = program, 0, 0, {}

    def check(self, what, problems):
        problems = [problem for problem in problems if problem]
        print(f"{'failed' if problems else 'passed'}: {what}", *problems, sep="\n    ")
        self.passed, self.failed = self.passed + (not problems), self.failed + bool(problems)

    def whole(self, own, **added):
        response = self.program.assemble(own, **added)
        return response.get("whole"), [f"refused: {response['refused']}"] if "refused" in response else []


def difference(what, actual, expected):
    return None if actual == expected else f"{what}: {actual!r} instead of {expected!r}"


def ours_alone(report, added):
    """A machine with only our part, created once."""
    name = "".join(added)
    if name not in report.ours:
        report.ours[name] = Machine(report.whole(b"", **added)[0])
    return report.ours[name]


def added_alone(report):
    usual = Machine(b"").warnings
    for name, added in ADDED.items():
        machine = ours_alone(report, added)
        expected = set(LISTS[:2] if "authority" in added else ()) | set(LISTS[2:] if "key" in added else ())
        problems = [difference("warnings", [line for line in machine.warnings if line not in usual], []), difference("settings", set(machine.config), expected),
                    schema_problem(machine.config)]
        if "authority" in added:
            key, drop_in = machine.config["write_files"]
            problems += [difference("key", key["content"].split(), [*AUTHORITY.split()[:2], "00000000-0000-0000-0000-000000000007"]),
                         difference("drop-in", drop_in["content"], f"TrustedUserCAKeys {key['path']}\n"),
                         *(difference("file", (file["owner"], file["permissions"]), ("root:root", "0644")) for file in (key, drop_in))]
        report.check(f"{name} alone", problems)


def merged(report, name, own, added, alone):
    """Compares the merged user data with the tenant's alone: the tenant's part is unchanged and first, and ours is added."""
    whole, problems = report.whole(own, **added)
    if problems:
        return problems
    machine, ours = Machine(whole), ours_alone(report, added)
    # The line end before a boundary belongs to the boundary.
    (of, config), (_, expected) = machine.parts[-1], ours.parts[0]
    problems = [difference("parts", machine.parts[:-1], alone.parts),
                difference("our part", (of, config.rstrip()), ("text/cloud-config", expected.rstrip())),
                difference("files", machine.files, alone.files), difference("ran", machine.ran, alone.ran),
                difference("warnings", [line for line in machine.warnings if line not in alone.warnings], [])]
    for key in LISTS:
        expected = (alone.config.get(key) or []) + (ours.config.get(key) or [])
        problems.append(difference(key, machine.config.get(key) or [], expected))
    others = [{key: value for key, value in config.items() if key not in LISTS} for config in (machine.config, alone.config)]
    problems.append(difference("other settings", *others))
    problems.append(None if schema_problem(alone.config) else schema_problem(machine.config))
    return problems


def accepted(report, home):
    for name, text in cases.accepted(home).items():
        own = text.encode()
        alone = Machine(own)
        problems = [difference("type", report.program.assemble(own).get("type"), cloud_init_type(own)),
                    difference("sent alone", report.whole(own)[0], own)]
        # It must have an effect alone; otherwise the cases below prove nothing.
        if "empty" not in name and not (alone.config or alone.files):
            problems.append(f"it has no effect alone: {alone.warnings}")
        report.check(f"{name}, alone", problems)
        for what, added in ADDED.items():
            report.check(f"{name}, with {what}", merged(report, name, own, added, alone))
        report.check(f"{name}, compressed, with both", merged(report, name, gzip.compress(own), ADDED["both"], alone))


def cloud_init_type(own):
    if b"\nmime-version:" in b"\n" + own[:4096].lower():
        return "multipart/mixed"
    return handlers.type_from_starts_with(own)


def refused(report):
    for name, own in cases.REFUSED.items():
        response, machine = report.program.assemble(own), Machine(own)
        scripts = [name for name, content in machine.files.items() if content.startswith(b"#!")]
        done = (machine.config or {}).get("hostname") == "blue" or machine.ran or scripts
        problems = [difference("response", sorted(response), ["refused"]), done and f"cloud-init accepts it: {vars(machine)}"]
        report.check(f"{name} is refused: {response.get('refused')}", problems)


def directive_is_needed(report):
    """Without the merge directive the tenant's lists are lost. This shows that the other cases can fail."""
    own = ("#cloud-config\n" + cases.SETTINGS).encode()
    whole, problems = report.whole(own, **ADDED["both"])
    without, _, after = whole.partition(b"merge_how:")
    end = after.find(b"ssh_authorized_keys:")
    machine, ours = Machine(without + after[max(end, 0):]), ours_alone(report, ADDED["both"])
    problems += [difference(key, (machine.config or {}).get(key), ours.config[key]) for key in LISTS]
    problems.append(None if after else "there is none")
    report.check("without the merge directive the tenant's lists are lost", problems)
    # A value that is not a list would lose ours, so it is refused.
    for key in LISTS:
        for value in (b"", b" ~", b" hello"):
            bad = whole.replace(own, b"#cloud-config\n" + key.encode() + b":" + value + b"\n")
            actual = Machine(bad).config.get(key)
            response = report.program.assemble(b"#cloud-config\n" + key.encode() + b":" + value + b"\n", **ADDED["both"])
            report.check(f"{key}:{value.decode()} is refused, and would lose ours",
                        [difference("response", sorted(response), ["refused"]), actual == ours.config[key] and f"{actual} is not lost"])


def examples(report, directory):
    """cloud-init's own examples are accepted and merged, except for those that are not user data."""
    no_user_data = {"kernel-cmdline.txt", "plain-ignored.txt"}
    found = sorted(path for path in directory.iterdir() if path.is_file())
    report.check("cloud-init has examples", [len(found) < 20 and f"only {len(found)}"])
    for path in found:
        own = path.read_bytes()
        own = gzip.decompress(own) if path.suffix == ".gz" else own
        response = report.program.assemble(own, **ADDED["both"])
        cloud_init = cloud_init_type(own)
        if path.name in no_user_data:
            report.check(f"example {path.name} is refused", [difference("response", sorted(response), ["refused"])])
        elif cloud_init in ("text/x-include-url", "text/x-include-once-url"):
            report.check(f"example {path.name}, not fetched", [difference("type", response.get("type"), cloud_init)])
        else:
            report.check(f"example {path.name}", merged(report, path.name, own, ADDED["both"], Machine(own)))


def recognition_matches(report, seed=7, count=3000):
    """Random texts have the type that cloud-init finds, or are refused; and text that it reads as settings is accepted."""
    rng = random.Random(seed)
    lines = [line for line in handlers.INCLUSION_TYPES_MAP if line.startswith("#")]
    wrong, types = [], set()
    for _ in range(count):
        line = rng.choice(lines)
        line = rng.choice([line, line, line.upper(), line[:rng.randrange(1, len(line))], line + rng.choice("-x :é")])
        body = "".join(rng.choice(["a: 1\n", "- b\n", "  c: [d]\n", "# e\n", "---\n", "é: 'f'\n", "\tg\n", "h: |\n  i\n", "k: {l: \"m\"}\n"])
                       for _ in range(rng.randrange(6)))
        own = (rng.choice(["", "", "", "\n", " ", "\x1c"]) + line + "\n" + body).encode()
        response, cloud_init = report.program.assemble(own), handlers.type_from_starts_with(own)
        types.add(response.get("type"))
        if response.get("type") not in (None, cloud_init):
            wrong.append(f"{own!r} is {response} and not {cloud_init}")
        if cloud_init == "text/cloud-config" and "refused" in response and Machine(own).config:
            wrong.append(f"{own!r} is refused and has an effect: {response}")
        has_settings = any(line.strip() and line[0] not in "#-" for line in body.splitlines())
        if cloud_init == "text/cloud-config" and "refused" not in response and has_settings and not Machine(own).config:
            wrong.append(f"{own!r} is accepted and does nothing")
    report.check(f"{count} random texts", [*wrong[:5], len(types) < 9 and f"only {types} were seen"])


def commands(report):
    """Runs our commands in a shell as cloud-init does, in a temporary directory instead of /."""
    runcmd = ours_alone(report, ADDED["an authority"]).config["runcmd"]
    modern, line = "Include /etc/ssh/sshd_config.d/*.conf\nPort 22\n", "TrustedUserCAKeys {}/etc/ssh/fleetwright_user_ca.pub\n"
    for what, config, units, expected in [
        ("an sshd that is called ssh", modern, "ssh", modern), ("an sshd that is called sshd", modern, "sshd", modern),
        ("an sshd without drop-ins", "Port 22\n", "sshd", line + "Port 22\n"), ("no sshd", modern, "none", modern),
    ]:
        with tempfile.TemporaryDirectory() as home:
            home = pathlib.Path(home)
            for directory in ("etc/ssh", "run/systemd/system", "bin"):
                (home / directory).mkdir(parents=True)
            (home / "etc/ssh/sshd_config").write_text(config)
            systemctl = home / "bin/systemctl"
            systemctl.write_text(f'#!/bin/sh\necho "$@" >>{home}/calls\n[ "$2" = {units}.service ]\n')
            systemctl.chmod(systemctl.stat().st_mode | stat.S_IXUSR)
            script = util.shellify(runcmd).replace("/etc/ssh", f"{home}/etc/ssh").replace("/run/systemd", f"{home}/run/systemd")
            codes = [subprocess.run(["sh", "-c", script], env=dict(os.environ, PATH=f"{home}/bin:{os.environ['PATH']}")).returncode
                     for _ in range(2)]
            calls = (home / "calls").read_text().splitlines()
            report.check(f"commands with {what}, twice", [
                difference("sshd_config", (home / "etc/ssh/sshd_config").read_text(), expected.format(home) if "{}" in expected else expected),
                difference("code", codes, [int(units == "none")] * 2),
                units != "none" and difference("calls", calls[-1], f"try-reload-or-restart {units}.service")])


def main():
    report = Report(Program(sys.argv[1]))
    with tempfile.TemporaryDirectory() as home:
        added_alone(report)
        accepted(report, pathlib.Path(home))
        refused(report)
        directive_is_needed(report)
        examples(report, pathlib.Path(sys.argv[2]))
        recognition_matches(report)
        commands(report)
    print(f"cloud-init {version.version_string()}: {report.passed} passed, {report.failed} failed")
    sys.exit(1 if report.failed or not report.passed else 0)


if __name__ == "__main__":
    main()
