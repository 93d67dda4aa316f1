"""A tap on the wire: forwards requests to the emulator, keeps every exchange and has it judged."""

import http.client
import http.server
import threading


class Exchange:
    """One request and its reply."""

    def __init__(self, action, status, code, problems):
        self.action, self.status, self.code, self.problems = action, status, code, problems


class Tap:
    """Listens on a port of its own, so that what passes it is one client's."""

    def __init__(self, client, upstream, judge):
        """`judge` makes an exchange of a method, a path, a body, a status and an answer."""
        self.client = client
        self.exchanges = []
        tap = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body leave together: apart, the second waits for the client to confirm the first.
            wbufsize = -1

            def forward(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                connection = http.client.HTTPConnection(upstream, timeout=60)
                headers = {key: value for key, value in self.headers.items() if key.lower() != "connection"}
                connection.request(self.command, self.path, body, headers)
                reply = connection.getresponse()
                answer = reply.read()
                connection.close()
                tap.exchanges.append(judge(self.command, self.path, body, reply.status, answer))
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    if name.lower() not in ("content-length", "connection", "date", "server"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

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
