"""An S3 server on loopback, and a proxy before it that fails as networks do."""

import threading
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUCKET = "bucket"
OPTIONS = {"key": "testing-key", "secret": "testing-secret"}


@contextmanager
def s3_server():
    """The endpoint of an S3 server with an empty bucket."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        keys = {"aws_access_key_id": OPTIONS["key"], "aws_secret_access_key": OPTIONS["secret"]}
        boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys).create_bucket(Bucket=BUCKET)
        yield endpoint
    finally:
        server.stop()


class Faults:
    """What the proxy does to requests: `wanted(method, path)` chooses them, `kind` says how, `left` how often."""

    def __init__(self):
        self.kind, self.left, self.wanted, self.seen = None, 0, lambda method, path: True, 0
        self._lock = threading.Lock()

    def set(self, kind, left, wanted=lambda method, path: True):
        self.kind, self.left, self.wanted, self.seen = kind, left, wanted, 0

    def taken(self, method, path):
        with self._lock:
            if self.kind is None or not self.left or not self.wanted(method, path):
                return None
            self.left -= 1
            self.seen += 1
            return self.kind


_DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
_BUSY = b"<Error><Code>ServiceUnavailable</Code><Message>Please try again</Message></Error>"


def _handler(place, faults, pause):
    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def _answer(self, status, headers, content, cut=False):
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in ("transfer-encoding", "content-length", "connection", "server", "date"):
                    self.send_header(name, value)
            length = {name.lower(): value for name, value in headers}.get("content-length", len(content))
            self.send_header("Content-Length", length if self.command == "HEAD" else len(content))
            self.end_headers()
            if self.command != "HEAD":  # Its answer has no body.
                self.wfile.write(content[: len(content) // 2] if cut else content)
            self.close_connection = self.close_connection or cut

        def _pass(self):
            fault = faults.taken(self.command, self.path)
            size = int(self.headers.get("Content-Length") or 0)
            if fault == "cut write":
                self.rfile.read(size // 2)
                self.close_connection = True
                self.connection.close()
                return
            body = self._chunked() if "chunked" in self.headers.get("Transfer-Encoding", "") else self.rfile.read(size)
            if fault == "503":
                return self._answer(503, [("Content-Type", "application/xml")], _BUSY)
            if fault == "403":
                return self._answer(403, [("Content-Type", "application/xml")], _DENIED)
            if fault == "slow":
                pause()
            onward = HTTPConnection(place, timeout=60)
            headers = {name: value for name, value in self.headers.items() if name.lower() != "transfer-encoding"}
            onward.request(self.command, self.path, body, headers)
            answer = onward.getresponse()
            content = answer.read()
            onward.close()
            return self._answer(answer.status, answer.getheaders(), content, cut=fault == "cut read")

        def _chunked(self):
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass

    return Proxy


@contextmanager
def faulty_proxy(endpoint, pause=lambda: None):
    """The endpoint of a proxy before an S3 server, and its `Faults`."""
    faults = Faults()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(endpoint.removeprefix("http://"), faults, pause))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", faults
    finally:
        server.shutdown()
        server.server_close()
