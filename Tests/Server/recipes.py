"""The GraphQL server that the guides of the documentation speak to: graphql-core, over a few recipes.

It listens on a free port of 127.0.0.1, prints `listening PORT`, and ends with its standard input.
usage: recipes.py SCHEMA
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from graphql import build_schema, graphql_sync

RECIPES = {id: {"__typename": "Recipe", "id": id, "title": title, "rating": None}
           for id, title in [("1", "Onion soup"), ("2", "Ratatouille"), ("3", "Tarte Tatin")]}


def rate(_, id, rating):
    RECIPES[id]["rating"] = rating
    return RECIPES[id]


ROOT = {"recipes": lambda _, first=20: {"items": list(RECIPES.values())[:first]}, 
        "latest": lambda _, first=20: list(RECIPES.values())[:first], "rateRecipe": rate}
schema = build_schema(Path(sys.argv[1]).read_text(), assume_valid_sdl=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        result = graphql_sync(schema, request["query"], ROOT, variable_values=request.get("variables"),
                              operation_name=request.get("operationName"))
        body = json.dumps(result.formatted).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("listening", server.server_address[1], flush=True)
sys.stdin.read()
