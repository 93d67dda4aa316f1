"""A tap on the wire: forwards requests to the emulator, keeps every exchange and has it checked against the model."""

import http.client
import http.server
import threading
import urllib.parse

import model


class Exchange:
    """One request and its reply."""

    def __init__(self, action, status, code, problems):
        self.action, self.status, self.code, self.problems = action, status, code, problems


class Tap:
    """Listens on a port of its own, so that what passes it is one client's."""

    def __init__(self, client, upstream):
        self.client = client
        self.exchanges = []
        tap = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                connection = http.client.HTTPConnection(upstream, timeout=60)
                headers = {key: value for key, value in self.headers.items() if key.lower() != "connection"}
                connection.request(self.command, self.path, body, headers)
                reply = connection.getresponse()
                answer = reply.read()
                connection.close()
                tap.keep(self.path, body, reply.status, answer)
                self.send_response(reply.status)
                self.send_header("Content-Type", reply.headers["Content-Type"])
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = forward

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def keep(self, path, body, status, answer):
        query = urllib.parse.urlsplit(path).query or body.decode()
        action = urllib.parse.parse_qs(query).get("Action", [""])[0]
        problems = model.problems_of(action, status, answer)
        code = None if status == 200 else model.ET.fromstring(answer).findtext("Errors/Error/Code")
        self.exchanges.append(Exchange(action, status, code, problems))

    def close(self):
        self.server.shutdown()
        self.server.server_close()
