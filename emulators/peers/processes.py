"""The programs that the checks start and stop, and the emulator's control endpoint."""

import contextlib
import json
import socket
import subprocess
import time
import urllib.error
import urllib.request


class Emulator:
    """The emulator program on a free port."""

    def __init__(self, path, cloud="ec2", started=None):
        """`started` is called in the new process, before the program."""
        command = [path, cloud, "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=started)
        line = self.process.stdout.readline()
        if " http://" not in line:
            raise RuntimeError(f"the emulator printed {line!r} instead of its address")
        self.url = line.split()[-1]
        self.address = self.url.removeprefix("http://")

    def control(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/_emulator/{path}".rstrip("/"), data, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    @contextlib.contextmanager
    def set_knobs(self, **knobs):
        """Sets some knobs until the end of the block, and then resets them to their defaults."""
        self.control("PATCH", "knobs", knobs)
        try:
            yield
        finally:
            defaults = {key: dict.fromkeys(value) if isinstance(value, dict) else None for key, value in knobs.items()}
            self.control("PATCH", "knobs", defaults)

    def fault(self, operation, fault, nth=1):
        self.control("POST", "faults", {"operation": operation, "nth": nth, "fault": fault})

    def stop(self):
        stop(self.process)


class Moto:
    """The moto server, which takes about a second to start."""

    def __init__(self, python, port, log):
        command = [python, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        environment = {"MOTO_ENABLE_AMI_VALIDATION": "1", "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION": "1", "PATH": ""}
        self.log = open(log, "w")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment)
        self.url = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{self.url}/moto-api/", timeout=5).close()
                return
            except (urllib.error.URLError, OSError):
                if self.process.poll() is not None:
                    break
                time.sleep(0.2)
        self.stop()
        raise RuntimeError(f"moto does not start; see {log}")

    def stop(self):
        stop(self.process)
        self.log.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def stop(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
