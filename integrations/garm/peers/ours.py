"""garm-provider-fleetwright in front of the emulators: its config file names the proxy as the cloud's endpoint."""

from provider import Provider, Setup
from proxy import Proxy
from theirs import SUBSCRIPTION

# Any public key: nothing logs in.
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTEx fleet"
CONFIGS = {
    "ec2": '[ec2]\nregion = "us-east-1"\nendpoint = "{url}"\ndefault_subnet = "subnet-00000000000000001"\n',
    "gcp": '[gcp]\nproject = "fleet"\nzones = ["us-central1-a"]\nendpoint = "{url}"\ncredentials = "anonymous"\n',
    "azure": f'[azure]\nsubscription = "{SUBSCRIPTION}"\nresource_group = "rg"\nlocation = "eastus"\nsubnet = "vnet/default"\n'
             f'ssh_public_key = "{KEY}"\nendpoint = "{{url}}"\naccess_token_variable = "FLEET_TOKEN"\n',
}
# The reads of an emulator are not stale unless a knob says so.
LIMITS = "[limits]\nconsistency_window_seconds = 1\n"
ENVIRONMENTS = {"ec2": {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}, "gcp": {}, "azure": {"FLEET_TOKEN": "token"}}


def set_up(program, cloud, emulator, directory):
    """Returns our provider for a cloud, in front of its emulator."""
    directory.mkdir(parents=True, exist_ok=True)
    proxy = Proxy(upstream=emulator.address)
    config = directory / "fleetwright.toml"
    config.write_text(CONFIGS[cloud.name].format(url=proxy.url) + LIMITS)
    return Setup(Provider(program.name, program, config, ENVIRONMENTS[cloud.name]), proxy, lambda: emulator.control("POST", "reset", {}),
                 lambda: cloud.left(emulator.control("GET", "oracle")))
