"""A stand-in for the forge: the part of Gitea's API that GARM calls for the runners of one repository.

Owns the registered runners. The calls are those of GARM's `util/github/client.go` and `workers/cache/gitea_tools.go`: registration
tokens, the list of runners, their removal, and the releases of the runner program. Webhooks are not needed for idle runners.
"""

import http.server
import json
import re
import secrets
import threading

RUNNERS = re.compile(r"/api/v1/repos/[^/]+/[^/]+/actions/runners")


class Forge:
    """Listens on a free port of the loopback address until `close`."""

    def __init__(self):
        self.lock = threading.Lock()
        self.runners = {}
        self.tokens = set()
        forge = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def answer(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, document = forge.answer(self.command, self.path.partition("?")[0])
                content = b"" if document is None else json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, method, path):
        """Returns the status and the document of one call."""
        with self.lock:
            if path == "/releases":
                return 200, [self.release()]
            found = RUNNERS.match(path)
            rest = path[found.end():] if found else None
            if rest == "" and method == "GET":
                return 200, {"total_count": len(self.runners), "runners": list(self.runners.values())}
            if rest == "/registration-token" and method == "POST":
                self.tokens.add(token := secrets.token_hex(20))
                return 201, {"token": token, "expires_at": "2099-01-01T00:00:00Z"}
            if rest and method == "DELETE" and self.runners.pop(rest.removeprefix("/"), None):
                return 204, None
            return 404, {"message": f"the stand-in has no {method} {path}"}

    def release(self):
        """A release of the runner program, as Gitea lists them. Nothing downloads it here."""
        name = "gitea-runner-v0.2.13-linux-amd64"
        asset = {"id": 1, "name": name, "browser_download_url": f"{self.url}/download/{name}"}
        return {"tag_name": "v0.2.13", "name": "v0.2.13", "tarball_url": f"{self.url}/download/v0.2.13.tar.gz", "assets": [asset]}

    def register(self, token, name, labels):
        """Registers a runner with a token that this forge gave out, as `gitea-runner register` does, and returns its id."""
        with self.lock:
            if token not in self.tokens:
                raise RuntimeError(f"runner {name} registers with a token that the forge did not give out")
            number = 1 + max((runner["id"] for runner in self.runners.values()), default=0)
            labels = [{"id": index, "name": label, "type": "custom"} for index, label in enumerate(labels, 1)]
            self.runners[str(number)] = {"id": number, "name": name, "status": "online", "busy": False, "labels": labels}
            return number

    def unregister(self, name):
        """Removes the runner of a machine that is gone."""
        with self.lock:
            self.runners = {key: runner for key, runner in self.runners.items() if runner["name"] != name}

    def close(self):
        self.server.shutdown()
        self.server.server_close()
