"""Judges assembled user data by cloud-init's own code: judge.py <the example user_data> <cloud-init's examples>

Each case is one line of `passed` or `failed` with what was seen. See ../check-cloud-init.
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
    """The example, which is asked by lines."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, own, **added):
        question = {"own": base64.b64encode(own).decode() if own else None, **added}
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if answer.get("whole"):
            answer["whole"] = base64.b64decode(answer["whole"])
        return answer


class Court:
    def __init__(self, program):
        self.program, self.passed, self.failed, self.ours = program, 0, 0, {}

    def judge(self, what, problems):
        problems = [problem for problem in problems if problem]
        print(f"{'failed' if problems else 'passed'}: {what}", *problems, sep="\n    ")
        self.passed, self.failed = self.passed + (not problems), self.failed + bool(problems)

    def whole(self, own, **added):
        answer = self.program.ask(own, **added)
        return answer.get("whole"), [f"refused: {answer['refused']}"] if "refused" in answer else []


def same(what, seen, wanted):
    return None if seen == wanted else f"{what}: {seen!r} instead of {wanted!r}"


def ours_alone(court, added):
    """A machine that has nothing but ours, made once."""
    name = "".join(added)
    if name not in court.ours:
        court.ours[name] = Machine(court.whole(b"", **added)[0])
    return court.ours[name]


def added_alone(court):
    usual = Machine(b"").said
    for name, added in ADDED.items():
        machine = ours_alone(court, added)
        wanted = set(LISTS[:2] if "authority" in added else ()) | set(LISTS[2:] if "key" in added else ())
        problems = [same("said", [line for line in machine.said if line not in usual], []), same("settings", set(machine.config), wanted),
                    schema_problem(machine.config)]
        if "authority" in added:
            key, drop_in = machine.config["write_files"]
            problems += [same("key", key["content"].split(), [*AUTHORITY.split()[:2], "00000000-0000-0000-0000-000000000007"]),
                         same("drop-in", drop_in["content"], f"TrustedUserCAKeys {key['path']}\n"),
                         *(same("file", (file["owner"], file["permissions"]), ("root:root", "0644")) for file in (key, drop_in))]
        court.judge(f"{name} alone", problems)


def merged(court, name, own, added, alone):
    """That the tenant's user data do what they do alone, first, and ours is added."""
    whole, problems = court.whole(own, **added)
    if problems:
        return problems
    machine, ours = Machine(whole), ours_alone(court, added)
    # The end of the line before a boundary is the boundary's.
    (of, config), (_, wanted) = machine.parts[-1], ours.parts[0]
    problems = [same("parts", machine.parts[:-1], alone.parts),
                same("our part", (of, config.rstrip()), ("text/cloud-config", wanted.rstrip())),
                same("files", machine.files, alone.files), same("ran", machine.ran, alone.ran),
                same("said", [line for line in machine.said if line not in alone.said], [])]
    for key in LISTS:
        wanted = (alone.config.get(key) or []) + (ours.config.get(key) or [])
        problems.append(same(key, machine.config.get(key) or [], wanted))
    others = [{key: value for key, value in config.items() if key not in LISTS} for config in (machine.config, alone.config)]
    problems.append(same("other settings", *others))
    problems.append(None if schema_problem(alone.config) else schema_problem(machine.config))
    return problems


def taken(court, home):
    for name, text in cases.taken(home).items():
        own = text.encode()
        alone = Machine(own)
        problems = [same("type", court.program.ask(own).get("type"), cloud_init_type(own)),
                    same("sent alone", court.whole(own)[0], own)]
        # It must do something alone, or nothing is proved below.
        if "empty" not in name and not (alone.config or alone.files):
            problems.append(f"nothing comes of it alone: {alone.said}")
        court.judge(f"{name}, alone", problems)
        for what, added in ADDED.items():
            court.judge(f"{name}, with {what}", merged(court, name, own, added, alone))
        court.judge(f"{name}, compressed, with both", merged(court, name, gzip.compress(own), ADDED["both"], alone))


def cloud_init_type(own):
    if b"\nmime-version:" in b"\n" + own[:4096].lower():
        return "multipart/mixed"
    return handlers.type_from_starts_with(own)


def refused(court):
    for name, own in cases.REFUSED.items():
        answer, machine = court.program.ask(own), Machine(own)
        scripts = [name for name, content in machine.files.items() if content.startswith(b"#!")]
        done = (machine.config or {}).get("hostname") == "blue" or machine.ran or scripts
        problems = [same("answer", sorted(answer), ["refused"]), done and f"cloud-init does it: {vars(machine)}"]
        court.judge(f"{name} is refused: {answer.get('refused')}", problems)


def directive_is_needed(court):
    """What makes all this true is the merge directive: without it, the tenant's lists are gone. So the cases can fail."""
    own = ("#cloud-config\n" + cases.SETTINGS).encode()
    whole, problems = court.whole(own, **ADDED["both"])
    without, _, after = whole.partition(b"merge_how:")
    end = after.find(b"ssh_authorized_keys:")
    machine, ours = Machine(without + after[max(end, 0):]), ours_alone(court, ADDED["both"])
    problems += [same(key, (machine.config or {}).get(key), ours.config[key]) for key in LISTS]
    problems.append(None if after else "there is none")
    court.judge("without the merge directive the tenant's lists are lost", problems)
    # And lists that are none would lose ours, which is why they are refused.
    for key in LISTS:
        for value in (b"", b" ~", b" hello"):
            bad = whole.replace(own, b"#cloud-config\n" + key.encode() + b":" + value + b"\n")
            seen = Machine(bad).config.get(key)
            answer = court.program.ask(b"#cloud-config\n" + key.encode() + b":" + value + b"\n", **ADDED["both"])
            court.judge(f"{key}:{value.decode()} is refused, and would lose ours",
                        [same("answer", sorted(answer), ["refused"]), seen == ours.config[key] and f"{seen} is not lost"])


def examples(court, directory):
    """cloud-init's own examples are taken, but for those that are no user data, and merge."""
    no_user_data = {"kernel-cmdline.txt", "plain-ignored.txt"}
    found = sorted(path for path in directory.iterdir() if path.is_file())
    court.judge("cloud-init has examples", [len(found) < 20 and f"only {len(found)}"])
    for path in found:
        own = path.read_bytes()
        own = gzip.decompress(own) if path.suffix == ".gz" else own
        answer = court.program.ask(own, **ADDED["both"])
        known = cloud_init_type(own)
        if path.name in no_user_data:
            court.judge(f"example {path.name} is refused", [same("answer", sorted(answer), ["refused"])])
        elif known in ("text/x-include-url", "text/x-include-once-url"):
            court.judge(f"example {path.name}, not fetched", [same("type", answer.get("type"), known)])
        else:
            court.judge(f"example {path.name}", merged(court, path.name, own, ADDED["both"], Machine(own)))


def same_recognition(court, seed=7, tries=3000):
    """Texts at random are of the type that cloud-init finds, or are refused; and what it reads as settings is taken."""
    dice = random.Random(seed)
    lines = [line for line in handlers.INCLUSION_TYPES_MAP if line.startswith("#")]
    wrong, types = [], set()
    for _ in range(tries):
        line = dice.choice(lines)
        line = dice.choice([line, line, line.upper(), line[:dice.randrange(1, len(line))], line + dice.choice("-x :é")])
        body = "".join(dice.choice(["a: 1\n", "- b\n", "  c: [d]\n", "# e\n", "---\n", "é: 'f'\n", "\tg\n", "h: |\n  i\n", "k: {l: \"m\"}\n"])
                       for _ in range(dice.randrange(6)))
        own = (dice.choice(["", "", "", "\n", " ", "\x1c"]) + line + "\n" + body).encode()
        answer, known = court.program.ask(own), handlers.type_from_starts_with(own)
        types.add(answer.get("type"))
        if answer.get("type") not in (None, known):
            wrong.append(f"{own!r} is {answer} and not {known}")
        if known == "text/cloud-config" and "refused" in answer and Machine(own).config:
            wrong.append(f"{own!r} is refused and does something: {answer}")
        asks = any(line.strip() and line[0] not in "#-" for line in body.splitlines())
        if known == "text/cloud-config" and "refused" not in answer and asks and not Machine(own).config:
            wrong.append(f"{own!r} is taken and does nothing")
    court.judge(f"{tries} texts at random", [*wrong[:5], len(types) < 9 and f"only {types} were seen"])


def commands(court):
    """Our commands are run by a shell, as cloud-init would have them run, in a directory instead of /."""
    runcmd = ours_alone(court, ADDED["an authority"]).config["runcmd"]
    modern, line = "Include /etc/ssh/sshd_config.d/*.conf\nPort 22\n", "TrustedUserCAKeys {}/etc/ssh/fleetwright_user_ca.pub\n"
    for what, config, units, wanted in [
        ("an sshd that is called ssh", modern, "ssh", modern), ("an sshd that is called sshd", modern, "sshd", modern),
        ("an sshd without drop-ins", "Port 22\n", "sshd", line + "Port 22\n"), ("no sshd", modern, "none", modern),
    ]:
        with tempfile.TemporaryDirectory() as home:
            home = pathlib.Path(home)
            for directory in ("etc/ssh", "run/systemd/system", "bin"):
                (home / directory).mkdir(parents=True)
            (home / "etc/ssh/sshd_config").write_text(config)
            systemctl = home / "bin/systemctl"
            systemctl.write_text(f'#!/bin/sh\necho "$@" >>{home}/asked\n[ "$2" = {units}.service ]\n')
            systemctl.chmod(systemctl.stat().st_mode | stat.S_IXUSR)
            script = util.shellify(runcmd).replace("/etc/ssh", f"{home}/etc/ssh").replace("/run/systemd", f"{home}/run/systemd")
            codes = [subprocess.run(["sh", "-c", script], env=dict(os.environ, PATH=f"{home}/bin:{os.environ['PATH']}")).returncode
                     for _ in range(2)]
            asked = (home / "asked").read_text().splitlines()
            court.judge(f"commands with {what}, twice", [
                same("sshd_config", (home / "etc/ssh/sshd_config").read_text(), wanted.format(home) if "{}" in wanted else wanted),
                same("code", codes, [int(units == "none")] * 2),
                units != "none" and same("asked", asked[-1], f"try-reload-or-restart {units}.service")])


def main():
    court = Court(Program(sys.argv[1]))
    with tempfile.TemporaryDirectory() as home:
        added_alone(court)
        taken(court, pathlib.Path(home))
        refused(court)
        directive_is_needed(court)
        examples(court, pathlib.Path(sys.argv[2]))
        same_recognition(court)
        commands(court)
    print(f"cloud-init {version.version_string()}: {court.passed} passed, {court.failed} failed")
    sys.exit(1 if court.failed or not court.passed else 0)


if __name__ == "__main__":
    main()
