"""A proxy on loopback between a provider and the clouds' addresses, which can hold one request while the provider is killed.

A client reaches it as a plain endpoint, or as its HTTPS_PROXY: then the proxy ends TLS itself, with a certificate that `Authority`
made for this run, so that a program with fixed addresses of a vendor talks to an emulator. It answers only for hosts that have an
upstream; nothing leaves the machine.
"""

import http.client
import http.server
import re
import ssl
import subprocess
import threading
import time


class Authority:
    """A certificate for the given hosts, signed by itself. Clients trust it by the environment variable SSL_CERT_FILE."""

    def __init__(self, directory, hosts):
        self.file = directory / "proxy.pem"
        key = directory / "proxy.key"
        names = ",".join(f"DNS:{host}" for host in hosts)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=loopback", "-addext", f"subjectAltName={names}", "-keyout", key, "-out", self.file],
                       check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.file, key)


class Hold:
    """Kills the provider at request `number`: `before` it is forwarded, `after` the cloud has executed it, or before it is executed
    `late`, half a second later, as a request does that was under way when its sender died."""

    LATE_SECONDS = 0.5

    def __init__(self, number, phase, kill):
        self.number, self.phase, self.kill = number, phase, kill
        self.hit, self.over = None, threading.Event()


class Proxy:
    """Counts requests, and forwards them to `upstream`, or to the upstream of the host that the client asked for.

    An upstream is a host and port, or a function of method, path, headers and body that returns status, headers and body.
    """

    def __init__(self, upstream=None, hosts=None, authority=None):
        self.upstream, self.hosts, self.authority = upstream, hosts or {}, authority
        self.lock = threading.Lock()
        self.requests, self.hold = [], None
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1
            target = None

            def do_CONNECT(self):
                host = self.path.partition(":")[0]
                if host not in proxy.hosts:
                    self.send_error(502, f"no upstream for {host}")
                    return
                self.send_response(200)
                self.end_headers()
                self.wfile.flush()
                self.connection = proxy.authority.context.wrap_socket(self.connection, server_side=True)
                self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")
                self.target = host
                self.close_connection = False

            def forward(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if proxy.exchange(self, body):
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = forward

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                """A client that was killed closes its connections: that is no error of the proxy."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def exchange(self, handler, body):
        """Forwards one request. Returns whether the provider was killed instead of getting the response."""
        upstream = self.hosts[handler.target] if handler.target else self.upstream
        counted = handler.target is None or not getattr(upstream, "uncounted", False)
        with self.lock:
            if counted:
                self.requests.append(describe(handler.command, handler.path, body))
            hold = self.hold if counted and self.hold and len(self.requests) == self.hold.number else None
        if hold:
            self.interrupt(hold, lambda: self.ask(upstream, handler, body))
            return True
        status, headers, content = self.ask(upstream, handler, body)
        handler.send_response(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "connection", "date", "server", "transfer-encoding"):
                handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
        handler.wfile.flush()
        return False

    def interrupt(self, hold, execute):
        """Kills the provider at its request, which is executed before, after or never."""
        if hold.phase == "after":
            execute()
        hold.hit = self.requests[hold.number - 1]
        hold.kill()
        if hold.phase == "late":
            time.sleep(hold.LATE_SECONDS)
            execute()
        hold.over.set()

    @staticmethod
    def ask(upstream, handler, body):
        if callable(upstream):
            return upstream(handler.command, handler.path, handler.headers, body)
        return ask(upstream, handler.command, handler.path, handler.headers, body)

    def start_count(self, hold=None):
        """Counts from zero again, with this hold."""
        with self.lock:
            self.requests, self.hold = [], hold

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def describe(method, path, body):
    """Returns the name of a request: the action of EC2's query protocol, else the method and the kinds of the resource in its path."""
    action = re.search(rb"(?:^|&)Action=(\w+)", body)
    place = path.partition("?")[0].strip("/").rpartition("/providers/")[2]
    kinds = place.split("/")[1::2] if "/providers/" in path else place.split("/")[::2]
    return action[1].decode() if action else f"{method} {'/'.join(kinds)}"


def ask(address, method, path, headers, body):
    """Sends one request to a host and port, and returns status, headers and body."""
    connection = http.client.HTTPConnection(address, timeout=120)
    headers = {key: value for key, value in headers.items() if key.lower() not in ("connection", "proxy-connection", "content-length")}
    if body or method in ("POST", "PUT", "PATCH"):
        headers["Content-Length"] = str(len(body))
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, response.getheaders(), content
