"""An AppSync API of the tests: it takes all five proofs of who asks, and recomputes signatures with botocore. It speaks
the real-time protocol at `/graphql/realtime`, as a custom domain does.

It listens on a free port of 127.0.0.1 and prints `listening PORT` when it does. Its argument is JSON: `apiKey`, `tokens`
(those it takes, for users, other providers and Lambda functions alike), `pool` (a user pool whose tokens it takes until they end, signed or not), `credentials` (access key, secret and session
token) and `region`. A request `POST /control` replaces members of it, so that a test can let a token end; `push` (an
event), `keepAlive` and `cut` are carried out. `put` (a todo's members) and `delete` (its id) change versioned todos, of
which the subscriptions hear, and which `syncTodos` serves: from a base table that keeps tombstones, and from a delta
table, both for `lifetime` milliseconds, in pages of `pageSize` at most. A list `put` in the argument is there at first.
`POST /real-time` tells what was opened and begun, and `POST /todos` what there is. It ends when its standard input does.

`storm` (a seed) makes the network a bad one until it is null: connections are cut, or say nothing any more; events come
twice, late and behind newer ones; requests are lost, also after they were carried out. `tokens end` (true) ends the
connections whose user pool tokens have ended, as they do. `every` (seconds) sends keep-alives.
"""

import base64
import json
import os
import random
import socket
import sys
import threading
import time
from datetime import datetime, timezone
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from urllib.parse import parse_qs, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from websockets.frames import Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol

lock = threading.Lock()
state = json.loads(sys.argv[1])
seen = []
# Each connection of the real-time endpoint, with the ids of its subscriptions.
sockets = {}
connects = []
starts = []
# Versioned todos by id, also those that were deleted; and the versions of all that there ever were.
todos = {}
versions = {}
# What subscriptions were told last, and connections that say nothing any more.
told = []
mute = set()
chance = random.Random(0)


def happens(one_in):
    """One time in so many, while there is a storm."""
    return state.get("storm") is not None and chance.randrange(one_in) == 0


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
    return time_refusal(handler.headers["X-Amz-Date"])


def time_refusal(stamp):
    """As AWS: a signature is good for five minutes before and after the time that it says."""
    signed = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc).timestamp()
    if abs(signed - time.time()) <= 300:
        return None
    said = "Signature expired" if signed < time.time() else "Signature not yet current"
    return refusal(403, "InvalidSignatureException", f"{said}: {stamp} is not within 5 min. of now")


def of_pool(token):
    """Whether it is a token of the user pool that has not ended yet. Nobody has signed it."""
    try:
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        return claims["iss"].endswith("/" + state["pool"]) and claims["exp"] > time.time()
    except (IndexError, KeyError, ValueError):
        return False


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
    if authorization in state.get("tokens", []) or of_pool(authorization):
        return None
    return refusal(401, "UnauthorizedException", "Token has expired.")


def object_refusal(header, path, body):
    """As `check`, for an object with the proof, which stands for the headers of a request to the API itself."""
    class Given:
        headers = HTTPMessage()

    given = Given()
    given.headers = HTTPMessage()
    for name, value in header.items():
        given.headers[name] = value
    given.path = path
    return check(given, body)


def send(connection, message):
    protocol, sock = connection
    if connection in mute or protocol.state is not State.OPEN:
        return
    protocol.send_text(json.dumps(message).encode())
    for data in protocol.data_to_send():
        sock.sendall(data)


def push(event):
    """Sends an event to every subscription, as AppSync does: with the fields of the mutation's selection alone."""
    for connection, ids in list(sockets.items()):
        if happens(60):
            mute.add(connection)
        if happens(30):
            cut(connection)
            continue
        for id in ids:
            try:
                send(connection, {"id": id, "type": "data", "payload": event})
                if told and happens(4):
                    send(connection, {"id": id, "type": "data", "payload": chance.choice(told)})
            except OSError:
                pass
    told.append(event)
    del told[:-20]


def cut(connection):
    try:
        connection[1].shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # It has ended.


def tend():
    """Sends keep-alives, and ends the connections whose tokens have ended."""
    while True:
        time.sleep(state.get("every") or 0.05)
        with lock:
            for connection in list(sockets):
                try:
                    if state.get("tokens end") and expired(tokens_of.get(connection)):
                        error = {"errorType": "UnauthorizedException", "message": "Token has expired.", "errorCode": 401}
                        send(connection, {"type": "connection_error", "payload": {"errors": [error]}})
                        cut(connection)
                    elif state.get("every"):
                        send(connection, {"type": "ka"})
                except OSError:
                    pass


tokens_of = {}


def expired(token):
    return token is not None and not of_pool(token)


def start(connection, message):
    id, payload = message["id"], message["payload"]
    refused = object_refusal(payload["extensions"]["authorization"], "/graphql", payload["data"].encode())
    starts.append({"id": id, "status": refused[0] if refused else 200})
    if refused:
        error = dict(refused[1]["errors"][0], errorCode=refused[0])
        return send(connection, {"id": id, "type": "error", "payload": {"errors": [error]}})
    if sum(map(len, sockets.values())) >= state.get("maximum", 100):
        error = {"errorType": "MaxSubscriptionsReachedError", "message": "Max number of 100 subscriptions reached"}
        return send(connection, {"id": id, "type": "error", "payload": {"errors": error}})
    if state.get("silent"):
        return None
    sockets[connection].append(id)
    send(connection, {"id": id, "type": "start_ack"})


def talk(connection, message):
    kind = message["type"]
    if kind == "connection_init":
        send(connection, {"type": "connection_ack", "payload": {"connectionTimeoutMs": state.get("timeout", 300000)}})
    elif kind == "start":
        start(connection, message)
    elif kind == "stop":
        if message["id"] in sockets[connection]:
            sockets[connection].remove(message["id"])
        send(connection, {"id": message["id"], "type": "complete"})


def real_time(handler):
    """The real-time endpoint of a custom domain: the proof is in the sub-protocol `header-…`, or in the query."""
    head = f"{handler.requestline}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in handler.headers.items()) + "\r\n"
    protocol = ServerProtocol(subprotocols=["graphql-ws"], max_size=1 << 20)
    protocol.receive_data(head.encode())
    request = protocol.events_received()[0]
    offered = handler.headers.get("Sec-WebSocket-Protocol", "").split(", ")
    encoded = next((one.removeprefix("header-") for one in offered if one.startswith("header-")), None)
    query = parse_qs(urlsplit(handler.path).query)
    if encoded is not None:
        encoded += "=" * (-len(encoded) % 4)
        header = json.loads(base64.urlsafe_b64decode(encoded))
    else:
        # gql does not write `+` as a query has to.
        header = json.loads(base64.b64decode(query["header"][0].replace(" ", "+")))
    with lock:
        refused = object_refusal(header, "/graphql/connect", b"{}")
        connects.append(refused[0] if refused else 200)
    sock = handler.connection
    connection = (protocol, sock)
    protocol.send_response(protocol.accept(request))
    for data in protocol.data_to_send():
        sock.sendall(data)
    if refused:
        # As AppSync does, it says so when it is spoken to, and closes the connection.
        error = dict(refused[1]["errors"][0], errorCode=refused[0])
        try:
            sock.recv(65536)
            send(connection, {"type": "connection_error", "payload": {"errors": [error]}})
            protocol.send_close(1008, "")
            for data in protocol.data_to_send():
                sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65536):
                pass
        except OSError:
            pass  # The client has gone.
        handler.close_connection = True
        return
    with lock:
        sockets[connection] = []
        tokens_of[connection] = header.get("Authorization") if "pool" in state else None
    try:
        while data := sock.recv(65536):
            protocol.receive_data(data)
            with lock:
                for frame in protocol.events_received():
                    if frame.opcode is Opcode.TEXT and connection not in mute:
                        talk(connection, json.loads(frame.data))
                for answer in protocol.data_to_send():
                    sock.sendall(answer)
                if protocol.close_expected():
                    break
    except OSError:
        pass
    finally:
        with lock:
            sockets.pop(connection, None)
            tokens_of.pop(connection, None)
            mute.discard(connection)
        handler.close_connection = True


def change(id, deleted=False, **members):
    """Makes the next version of a todo, and tells the subscriptions of it."""
    versions[id] = versions.get(id, 0) + 1
    # No two changes are made in the same millisecond.
    latest = max((todo["_lastChangedAt"] for todo in todos.values()), default=0)
    todos[id] = {
        "__typename": "Todo", **todos.get(id, {}), **members, "id": id, "_version": versions[id],
        "_deleted": True if deleted else None, "_lastChangedAt": max(now(), latest + 1),
    }
    push({"data": {"changed": todos[id]}})


def now():
    return int(time.time() * 1000)


def sync(variables):
    """A page of the base or of the delta table. Its token says which, when the walk began, and the id before."""
    lifetime = state.get("lifetime", 30 * 60_000)
    for id in [id for id, todo in todos.items() if todo["_deleted"] and todo["_lastChangedAt"] < now() - lifetime]:
        del todos[id]
    since, token = variables.get("lastSync"), variables.get("nextToken")
    if token is None:
        is_delta, started, after = since is not None and since >= now() - lifetime, now(), ""
    else:
        try:
            is_delta, started, after = json.loads(base64.b64decode(token))
        except ValueError:
            error = {"message": "Invalid pagination token.", "errorType": "BadRequest", "path": ["syncTodos"]}
            return {"data": {"syncTodos": None}, "errors": [error]}
    rest = sorted(
        (todo for todo in todos.values()
         if todo["id"] > after and (not is_delta or todo["_lastChangedAt"] > since)),
        key=lambda todo: todo["id"])
    items = rest[:min(variables.get("limit") or 100, state.get("pageSize", 1000))]
    following = None
    if len(items) < len(rest):
        following = base64.b64encode(json.dumps([is_delta, started, items[-1]["id"]]).encode()).decode()
    page = {"__typename": "TodoConnection", "items": items, "nextToken": following, "startedAt": started}
    return {"data": {"syncTodos": page}}


def order(orders):
    """What a test asks beside changes of the state: under the lock."""
    if "push" in orders:
        push(orders.pop("push"))
    if "put" in orders:
        change(**orders.pop("put"))
    if "delete" in orders:
        change(orders.pop("delete"), deleted=True)
    if orders.pop("keepAlive", False):
        for connection in sockets:
            send(connection, {"type": "ka"})
    if orders.pop("cut", False):
        for _, sock in list(sockets):
            sock.shutdown(socket.SHUT_RDWR)
    if orders.get("storm") is not None:
        chance.seed(orders["storm"])
    elif "storm" in orders:
        for connection in list(mute):
            cut(connection)
    state.update(orders)


def answer(query, variables):
    if "syncTodos" in query:
        with lock:
            return sync(variables)
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


def shut(handler):
    """Breaks the connection in place of an answer."""
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


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

    def do_GET(self):
        real_time(self)

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError
        with lock:
            if self.path == "/control":
                order(json.loads(body))
                return self.reply(200, seen)
            if self.path == "/real-time":
                ids = [id for ids in sockets.values() for id in ids]
                return self.reply(200, {"connects": connects, "starts": starts, "subscriptions": len(ids)})
            if self.path == "/todos":
                return self.reply(200, todos)
            if happens(8):
                return shut(self)
            is_lost, pause = happens(8), chance.random() * 0.02 if state.get("storm") is not None else 0
            refused = check(self, body)
            seen.append({"status": refused[0] if refused else 200, "authorization": self.headers.get("Authorization")})
        if refused:
            return self.reply(*refused)
        request = json.loads(body)
        given = answer(request["query"], request.get("variables") or {})
        time.sleep(pause)
        if is_lost:
            return shut(self)
        self.reply(200, given)


for members in state.pop("put", []):
    change(**members)
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
threading.Thread(target=tend, daemon=True).start()
print("listening", server.server_address[1], flush=True)
sys.stdin.buffer.read()
os._exit(0)
