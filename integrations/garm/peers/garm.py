"""The real GARM program: its configuration, its process, and its API."""

import json
import os
import secrets
import signal
import subprocess
import time
import urllib.error
import urllib.request

import processes

CONFIG = """
[default]
enable_webhook_management = false
[logging]
log_file = "{home}/garm.log"
log_level = "debug"
[metrics]
enable = false
[jwt_auth]
secret = "{secret}"
time_to_live = "8760h"
[apiserver]
bind = "127.0.0.1"
port = {port}
use_tls = false
[database]
backend = "sqlite3"
passphrase = "{passphrase}"
[database.sqlite3]
db_file = "{home}/garm.db"
busy_timeout_seconds = 5
[[provider]]
name = "cloud"
description = "the provider under test"
provider_type = "external"
[provider.external]
interface_version = "{interface}"
config_file = "{provider_config}"
provider_executable = "{provider}"
environment_variables = {variables}
exec_timeout_seconds = {exec_timeout}
"""


class Garm:
    """One controller. Its process can be killed and started again; its database stays."""

    def __init__(self, program, home, provider, exec_timeout):
        """`provider`: a `Provider` of `provider.py`. `exec_timeout`: after how many seconds GARM kills the provider."""
        self.program, self.home, self.process, self.token = program, home, None, None
        self.environment = {**os.environ, **provider.environment}
        self.port = processes.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        home.mkdir(parents=True)
        (home / "config.toml").write_text(CONFIG.format(
            home=home, port=self.port, secret=secrets.token_hex(32), passphrase=secrets.token_hex(16),
            interface=provider.interface, provider=provider.program, provider_config=provider.config,
            variables=json.dumps(list(provider.environment)), exec_timeout=exec_timeout))

    def start(self):
        """Starts the process in a group of its own, and waits until its API answers."""
        with open(self.home / "stderr.log", "ab") as log:
            self.process = subprocess.Popen([self.program, "--config", self.home / "config.toml"], stdout=log, stderr=log,
                                            env=self.environment, start_new_session=True)
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{self.url}/api/v1/controller-info", timeout=5).close()
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.2)
        raise RuntimeError(f"GARM does not start; see {self.home}/garm.log and {self.home}/stderr.log")

    def kill(self):
        """Kills GARM and the providers that it started with SIGKILL, as a service manager does with a control group."""
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def api(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", data, method=method)
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                content = response.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"GARM refuses {method} {path}: {error.code} {error.read().decode(errors='replace')}") from None
        return json.loads(content) if content else None

    def set_up(self, forge):
        """Does what an operator does once: first run, login, URLs, endpoint, credentials, repository."""
        password = secrets.token_urlsafe(24) + "aA1!"
        self.api("POST", "first-run/", {"username": "admin", "password": password, "email": "admin@example.com", "full_name": "Admin"})
        self.token = self.api("POST", "auth/login", {"username": "admin", "password": password})["token"]
        api = f"{self.url}/api/v1"
        self.api("PUT", "controller", {"metadata_url": f"{api}/metadata", "callback_url": f"{api}/callbacks",
                                       "webhook_url": f"{self.url}/webhooks", "agent_url": f"{self.url}/agent"})
        self.api("POST", "gitea/endpoints", {"name": "forge", "base_url": forge.url, "api_base_url": forge.url,
                                             "tools_metadata_url": f"{forge.url}/releases"})
        self.api("POST", "gitea/credentials", {"name": "robot", "description": "the stand-in's", "endpoint": "forge",
                                               "auth_type": "pat", "pat": {"oauth2_token": secrets.token_hex(20)}})
        repository = {"owner": "acme", "name": "rocket", "credentials_name": "robot", "forge_type": "gitea",
                      "webhook_secret": secrets.token_hex(16), "pool_balancer_type": "roundrobin"}
        return self.api("POST", "repositories", repository)["id"]

    def add_pool(self, repository, cloud, size):
        """Creates a pool that keeps `size` idle runners."""
        pool = {"provider_name": "cloud", "image": cloud.image, "flavor": cloud.flavor, "os_type": "linux", "os_arch": "amd64",
                "tags": ["fleet"], "enabled": True, "min_idle_runners": size, "max_runners": size + 2, "runner_bootstrap_timeout": 20,
                "runner_prefix": "ci"}
        return self.api("POST", f"repositories/{repository}/pools", pool)["id"]

    def runners(self, pool):
        """Returns the runners of a pool by their name."""
        return {runner["name"]: runner for runner in self.api("GET", f"pools/{pool}/instances") or []}
