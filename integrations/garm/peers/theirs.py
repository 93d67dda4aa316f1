"""The existing providers, with the configuration of their own README, in front of the emulators.

They have no setting for another endpoint, so they are started with HTTPS_PROXY and SSL_CERT_FILE, which Go's HTTP client reads: the
program is unchanged, and its requests to the vendor's host arrive at the proxy on loopback.
"""

import json
import subprocess

from azure_groups import Groups, answer, sign_in
from provider import Provider, Setup
from proxy import Authority, Proxy

HOSTS = {"azure": "management.azure.com", "ec2": "ec2.us-east-1.amazonaws.com", "gcp": "compute.googleapis.com"}
SIGN_IN = {"login.microsoftonline.com": sign_in}
SUBSCRIPTION = "11111111-1111-4111-8111-111111111111"

AZURE = f"""
location = "eastus"
[credentials]
subscription_id = "{SUBSCRIPTION}"
[credentials.service_principal]
tenant_id = "22222222-2222-4222-8222-222222222222"
client_id = "33333333-3333-4333-8333-333333333333"
client_secret = "secret"
"""
EC2 = """
region = "us-east-1"
subnet_id = "subnet-00000000000000001"
[credentials]
credential_type = "static"
[credentials.static]
access_key_id = "test"
secret_access_key = "test"
session_token = ""
"""
GCP = """
project_id = "fleet"
zone = "us-central1-a"
network_id = "projects/fleet/global/networks/default"
subnetwork_id = "projects/fleet/regions/us-central1/subnetworks/default"
"""
CONFIGS = {"azure": AZURE, "ec2": EC2, "gcp": GCP}


def set_up(program, cloud, emulator, directory):
    """Returns the existing provider for a cloud, in front of its emulator."""
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / f"{program.name}.toml"
    config.write_text(CONFIGS[cloud.name])
    authority = Authority(directory, [*HOSTS.values(), *SIGN_IN, "oauth2.googleapis.com"])
    upstream, reset, created = emulator.address, lambda: emulator.control("POST", "reset", {}), dict
    if cloud.name == "azure":
        upstream = Groups(emulator)
        reset, created = upstream.reset, upstream.left
    proxy = Proxy(hosts={HOSTS[cloud.name]: upstream, **SIGN_IN, "oauth2.googleapis.com": google_token}, authority=authority)
    environment = {"HTTPS_PROXY": proxy.url, "SSL_CERT_FILE": str(authority.file)}
    if cloud.name == "gcp":
        environment["GOOGLE_APPLICATION_CREDENTIALS"] = service_account(directory)

    def left():
        counts = cloud.left(emulator.control("GET", "oracle"))
        return {**counts, **{kind: len(names) for kind, names in created().items()}}

    return Setup(Provider(program.name, program, config, environment), proxy, reset, left)


def service_account(directory):
    """Writes the key file of a service account that exists nowhere, and returns its path."""
    key = subprocess.run(["openssl", "genpkey", "-algorithm", "RSA"], check=True, capture_output=True, text=True).stdout
    path = directory / "service-account.json"
    path.write_text(json.dumps({"type": "service_account", "project_id": "fleet", "private_key_id": "1", "private_key": key,
                                "client_email": "garm@fleet.iam.gserviceaccount.com", "client_id": "1",
                                "token_uri": "https://oauth2.googleapis.com/token"}))
    return str(path)


def google_token(_method, _path, _headers, _body):
    """The upstream for oauth2.googleapis.com: any key gets a token."""
    return answer(200, {"access_token": "token", "expires_in": 3600, "token_type": "Bearer"})


google_token.uncounted = True
