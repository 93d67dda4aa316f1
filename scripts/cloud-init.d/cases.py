"""User data of every format, and user data that must be refused because cloud-init would ignore or damage it."""

import base64

SETTINGS = """write_files:
  - {path: /tmp/theirs, content: theirs}
runcmd:
  - echo theirs
  - [echo, theirs too]
ssh_authorized_keys:
  - ssh-ed25519 AAAA theirs
packages: [jq]
"""
SCRIPT = "#!/bin/sh\necho hello >>$RAN\n"


def archive(*parts, boundary="==b=="):
    body = "".join(f"--{boundary}\n{part}\n" for part in parts)
    return f'Content-Type: multipart/mixed; boundary="{boundary}"\nMIME-Version: 1.0\n\n{body}--{boundary}--\n'


def part(of, content):
    return f"Content-Type: {of}\n\n{content}"


def encoded(of, content):
    return f"Content-Type: {of}\nContent-Transfer-Encoding: base64\n\n{base64.b64encode(content.encode()).decode()}"


def included(path):
    path.write_text("#cloud-config\n" + SETTINGS)
    return f"file://{path}"


def accepted(home):
    """Name: text. Each is accepted, and has the same effect alone and merged."""
    url = included(home / "included")
    config = "#cloud-config\n" + SETTINGS
    mime = archive(part("text/cloud-config", config), part("text/x-shellscript", SCRIPT),
                   part("text/cloud-config", "#cloud-config\nhostname: blue\n"))
    return {
        "cloud-config": config,
        "cloud-config without lists": "#cloud-config\nhostname: blue\n",
        "cloud-config that is empty": "#cloud-config\n",
        "cloud-config with other characters": config + "hostname: blé → \U0001f680\n",
        "cloud-config after blanks": " \n\n  " + config,
        "cloud-config in capitals": config.replace("#cloud-config", "#Cloud-Config"),
        "cloud-config with Windows' lines": config.replace("\n", "\r\n"),
        "cloud-config that mentions MIME": config + "# mime-version: 1.0\n",
        "cloud-config with its own merging": config + "merge_how: 'dict(replace)+list()+str()'\n",
        "cloud-config-archive": "#cloud-config-archive\n- type: text/cloud-config\n  content: |\n"
                                + "".join(f"    {line}\n" for line in config.splitlines())
                                + "- |\n  #!/bin/sh\n  echo\n",
        "cloud-config-jsonp": '#cloud-config-jsonp\n[{"op": "add", "path": "/runcmd", "value": ["echo theirs"]}]\n',
        "jinja of cloud-config": "## template: jinja\n" + config + "hostname: {{ v1.local_hostname }}\n",
        "jinja of script": "## template: jinja\n#!/bin/sh\necho {{ v1.local_hostname }}\n",
        "script": SCRIPT,
        "script with other characters": SCRIPT + "# é → \U0001f680\r\n\x07",
        "script that mentions MIME": SCRIPT + "# MIME-Version: 1.0\n# Content-Type: multipart/mixed\n",
        "boothook": "#cloud-boothook\n" + SCRIPT,
        "include": f"#include\n{url}\n",
        "include on one line": f"#include {url}\n",
        "include-once": f"#include-once\n{url}\n",
        "part-handler": "#part-handler\ndef list_types():\n    return ['text/x-own']\n"
                        "def handle_part(data, ctype, filename, payload):\n    pass\n",
        "archive": mime,
        "archive with Windows' lines": mime.replace("\n", "\r\n"),
        "archive of encoded parts": archive(encoded("text/cloud-config", config + "hostname: é\n"), encoded("text/plain", SCRIPT)),
        "archive in an archive": archive(mime, part("text/x-shellscript", SCRIPT), boundary="outer"),
        "archive with folded headers": mime.replace("multipart/mixed;", "multipart/mixed;\n "),
        "archive with its version first": "MIME-Version: 1.0\n" + mime.replace("MIME-Version: 1.0\n", "", 1),
        "archive with its own merging": archive(
            part("text/cloud-config", config),
            part("text/cloud-config\nX-Merge-Type: list(append)+dict(recurse_array)+str()", "#cloud-config\nruncmd: [echo theirs]\n")),
    }


# Name: bytes. Refused; on a machine they would have no effect or a wrong one.
REFUSED = {
    "nothing known": b"hello\n",
    "a byte order mark": "\ufeff#cloud-config\nhostname: blue\n".encode(),
    "a script after a blank line": b"\n" + SCRIPT.encode(),
    "a boothook after a blank line": b"\n#cloud-boothook\n" + SCRIPT.encode(),
    "a boothook in capitals": b"#Cloud-Boothook\n" + SCRIPT.encode(),
    "a template after a blank line": b"\n## template: jinja\n#cloud-config\nhostname: blue\n",
    "a patch in capitals": b'#Cloud-Config-Jsonp\n[{"op": "add", "path": "/hostname", "value": "blue"}]',
    "an invalid patch": b'#cloud-config-jsonp\n{"hostname": "blue"}',
    "a script in another encoding": b"#!/bin/sh\necho \xe9\n",
    "a cloud-config in another encoding": b"#cloud-config\nhostname: \xe9\n",
    "a list as a cloud-config": b"#cloud-config\n- hostname: blue\n",
    "a word as a cloud-config": b"#cloud-config\nhostname\n",
    "a cloud-config that is not YAML": b"#cloud-config\nhostname: [blue\nfqdn: a\n",
    "two cloud-configs in one": b"#cloud-config\nhostname: blue\n---\nfqdn: a\n",
    "a mapping as a cloud-config-archive": b"#cloud-config-archive\nhostname: blue\n",
    "an archive without its version": archive(part("text/cloud-config", "#cloud-config\nhostname: blue\n")).replace(
        "MIME-Version: 1.0\n", "").encode(),
    "an archive without a boundary": archive(part("text/cloud-config", "#cloud-config\nhostname: blue\n")).replace(
        '; boundary="==b=="', "").encode(),
    "an archive without parts": archive().encode(),
    "an archive after a blank line": b"\n" + archive(part("text/cloud-config", "#cloud-config\nhostname: blue\n")).encode(),
    "an archive with other characters": archive(part("text/cloud-config", "#cloud-config\nhostname: \xe9\n")).encode(),
    "a cloud-config that looks like a header": b"#cloud-config:\n# mime-version: 1.0\nhostname: blue\n",
}
