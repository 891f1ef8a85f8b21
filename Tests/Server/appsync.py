"""An AppSync API of the tests: it takes all five proofs of who asks, and recomputes signatures with botocore.

It listens on a free port of 127.0.0.1 and prints `listening PORT` when it does. Its argument is JSON: `apiKey`, `tokens`
(those it takes, for users, other providers and Lambda functions alike), `credentials` (access key, secret and session
token) and `region`. A request `POST /control` replaces members of it, so that a test can let a token end. It ends when
its standard input does.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

lock = threading.Lock()
state = json.loads(sys.argv[1])
seen = []


class RecomputedAuth(SigV4Auth):
    """Signs with the time that a request says."""

    def recompute(self, request, timestamp):
        request.context["timestamp"] = timestamp
        canonical = self.canonical_request(request)
        return self.signature(self.string_to_sign(request, canonical), request)


class WithGivenHeaders(RecomputedAuth):
    def __init__(self, signed, *arguments):
        super().__init__(*arguments)
        self.signed = signed

    def headers_to_sign(self, request):
        from botocore.compat import HTTPHeaders

        headers = HTTPHeaders()
        for name in self.signed:
            for value in request.headers.get_all(name) or []:
                headers[name] = value
        return headers


def refusal(status, kind, message):
    return status, {"errors": [{"errorType": kind, "message": message}]}


def check_signature(handler, body):
    text = handler.headers["Authorization"]
    parts = dict(part.strip().split("=", 1) for part in text.removeprefix("AWS4-HMAC-SHA256 ").split(","))
    key, day, region, service, _ = parts["Credential"].split("/")
    known = state["credentials"]
    if key != known["key"] or handler.headers.get("X-Amz-Security-Token") != known.get("token"):
        return refusal(403, "UnrecognizedClientException", "The security token included in the request is invalid.")
    if region != state["region"] or service != "appsync":
        return refusal(403, "InvalidSignatureException", "Credential should be scoped to a valid region.")
    signed = parts["SignedHeaders"].split(";")
    needed = {"host", "x-amz-date"} | ({"x-amz-security-token"} if known.get("token") else set())
    if not needed.issubset(signed):
        return refusal(403, "IncompleteSignatureException", "Not all that must be signed is signed.")
    url = f"http://{handler.headers['Host']}{handler.path}"
    request = AWSRequest(method="POST", url=url, data=body)
    for name, value in handler.headers.items():
        request.headers[name] = value
    auth = WithGivenHeaders(signed, Credentials(known["key"], known["secret"]), service, region)
    if auth.recompute(request, handler.headers["X-Amz-Date"]) != parts["Signature"]:
        return refusal(403, "InvalidSignatureException", "The request signature we calculated does not match.")
    return None


def check(handler, body):
    """Nil, or the answer to one whose proof is not taken."""
    key, authorization = handler.headers.get("x-api-key"), handler.headers.get("Authorization")
    if key is not None:
        if key == state.get("apiKey"):
            return None
        return refusal(401, "UnauthorizedException", "You are not authorized to make this call.")
    if authorization is None:
        return refusal(401, "UnauthorizedException", "Missing authorization header")
    if authorization.startswith("AWS4-HMAC-SHA256 "):
        return check_signature(handler, body)
    if authorization in state.get("tokens", []):
        return None
    return refusal(401, "UnauthorizedException", "Token has expired.")


def answer(query):
    if "forbidden" in query:
        error = {
            "path": ["forbidden"], "data": None, "errorType": "Unauthorized", "errorInfo": None,
            "locations": [{"line": 1, "column": 3, "sourceName": None}],
            "message": "Not Authorized to access forbidden on type Query",
        }
        return {"data": {"forbidden": None}, "errors": [error]}
    if "rename" in query:
        error = {
            "path": ["rename"], "data": {"id": "1", "name": "theirs", "_version": 7},
            "errorType": "ConflictUnhandled", "errorInfo": {"hint": "fetch"}, "locations": None,
            "message": "Conflict resolver rejects mutation.",
        }
        return {"data": {"rename": None}, "errors": [error]}
    return {"data": {"name": "Vega"}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass  # The client has gone.

    def log_message(self, *arguments):
        pass

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json;charset=UTF-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with lock:
            if self.path == "/control":
                state.update(json.loads(body))
                return self.reply(200, seen)
            refused = check(self, body)
            seen.append({"status": refused[0] if refused else 200, "authorization": self.headers.get("Authorization")})
        if refused:
            return self.reply(*refused)
        request = json.loads(body)
        self.reply(200, answer(request["query"]))


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("listening", server.server_address[1], flush=True)
sys.stdin.buffer.read()
os._exit(0)
