"""Lists of 25,000 orders on graphql-core, with AppSync's rules on limits, as a Relay connection, by offset and by page.

AppSync's rules: 20 where no limit is asked for, and where one above 1,000 is; the filter is applied to what the limit
has counted; tokens are opaque, differ from answer to answer, and expire. It starts and ends as `server.py` does.
"""

import base64
import json
import os
import sys
import threading
from pathlib import Path
from wsgiref.simple_server import make_server

from ariadne import MutationType, QueryType, make_executable_schema
from ariadne.wsgi import GraphQL
from graphql import GraphQLError

from server import NoLogger, QuietHandler, Server, end_with_parent

lock = threading.Lock()
state = {"count": int(sys.argv[1]) if len(sys.argv) > 1 else 25_000, "generation": 0, "asked": 0}


def order(index):
    owner = "joebloggs" if index % 25 == 0 else "janedoe"
    return {"id": str(index), "sku": f"sku-{index}", "price": index % 97, "owner": owner}


def note():
    with lock:
        state["asked"] += 1


def token(index):
    salt = base64.b64encode(os.urandom(6)).decode()
    return base64.b64encode(json.dumps([index, state["generation"], salt]).encode()).decode()


def place(text):
    try:
        index, generation, _ = json.loads(base64.b64decode(text))
    except ValueError:
        raise GraphQLError("Invalid pagination token given.")
    if generation != state["generation"]:
        raise GraphQLError("The pagination token has expired.")
    return index


query = QueryType()
mutation = MutationType()


@query.field("listOrders")
def resolve_list(_, info, filter=None, limit=None, nextToken=None):
    note()
    size = 20 if limit is None or not 1 <= limit <= 1000 else limit
    start = 0 if nextToken is None else place(nextToken)
    end = min(start + size, state["count"])
    items = [order(index) for index in range(start, end)]
    if filter and filter.get("owner") is not None:
        items = [item for item in items if item["owner"] == filter["owner"]]
    return {"items": items, "nextToken": token(end) if end < state["count"] else None}


@query.field("orders")
def resolve_connection(_, info, first=None, after=None, last=None, before=None):
    note()
    if (first or 0) < 0 or (last or 0) < 0:
        raise GraphQLError("first and last must not be negative.")
    start = 0 if after is None else int(after[1:]) + 1
    end = state["count"] if before is None else int(before[1:])
    whole = (start, end)
    if first is not None:
        end = min(end, start + first)
    if last is not None:
        start = max(start, end - last)
    nodes = [order(index) for index in range(start, end)]
    edges = [{"cursor": f"c{node['id']}", "node": node} for node in nodes]
    return {
        "edges": edges, "nodes": nodes,
        "pageInfo": {
            "hasNextPage": end < (whole[1] if before is None else state["count"]), "hasPreviousPage": start > 0,
            "startCursor": edges[0]["cursor"] if edges else None, "endCursor": edges[-1]["cursor"] if edges else None,
        },
    }


def part(start, size):
    note()
    return [order(index) for index in range(start, max(start, min(start + size, state["count"])))]


query.set_field("ordersAt", lambda _, info, offset, limit: part(offset, limit))
query.set_field("ordersOn", lambda _, info, page, size: part((page - 1) * size, size))


@mutation.field("expireTokens")
def resolve_expire(*_):
    with lock:
        state["generation"] += 1
    return state["generation"]


@mutation.field("setCount")
def resolve_count(_, info, count):
    with lock:
        state["count"] = count
    return count


mutation.set_field("asked", lambda *_: state["asked"])

if __name__ == "__main__":
    end_with_parent()
    text = (Path(__file__).parent / "pages.graphqls").read_text(encoding="utf-8")
    application = GraphQL(make_executable_schema(text, query, mutation), logger=NoLogger())
    with make_server("127.0.0.1", 0, application, server_class=Server, handler_class=QuietHandler) as server:
        print(f"listening {server.server_port}", flush=True)
        server.serve_forever()
