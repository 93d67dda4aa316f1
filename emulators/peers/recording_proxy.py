"""A proxy that forwards requests to the emulator, and records and checks every exchange."""

import http.client
import http.server
import threading


class Exchange:
    """One request and its response: the action, the status, the error code, and what is wrong with the response."""

    def __init__(self, action, status, code, problems):
        self.action, self.status, self.code, self.problems = action, status, code, problems


class RecordingProxy:
    """Listens on a port of its own, so that all its exchanges belong to one client."""

    def __init__(self, client, upstream, check_exchange):
        """`check_exchange` creates an exchange from a method, a path, a request body, a status and a response body."""
        self.client = client
        self.exchanges = []
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Send head and body together: sent apart, the body would wait for the client's acknowledgement of the head.
            wbufsize = -1

            def forward(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                connection = http.client.HTTPConnection(upstream, timeout=60)
                headers = {key: value for key, value in self.headers.items() if key.lower() != "connection"}
                connection.request(self.command, self.path, body, headers)
                response = connection.getresponse()
                content = response.read()
                connection.close()
                proxy.exchanges.append(check_exchange(self.command, self.path, body, response.status, content))
                self.send_response(response.status)
                for name, value in response.headers.items():
                    if name.lower() not in ("content-length", "connection", "date", "server"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = forward

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
