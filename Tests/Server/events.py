"""GraphQL servers that are not ours and push: Strawberry or Ariadne, behind a way to them that can be cut.

`events.py strawberry|ariadne` listens on two free ports of 127.0.0.1 and prints `listening PORT DIRECT` when it does. What
goes to PORT passes a proxy; DIRECT is the server itself, which also takes `POST /control` with a JSON object:

    {"set": {ID: TEXT or null}}   changes items, as another client would; they are pushed
    {"remove": [ID]}              removes items; nothing is pushed
    {"cut": true}                 breaks all connections of the proxy
    {"refuse": true or false}     whether the proxy takes no connections
    {"hold": true or false}       whether the proxy passes nothing on
    {"token": TEXT or null}       what `connection_init` must say, under `token`
    {"complete": true}            ends all subscriptions
    {"storm": SEED or null}       whether the proxy breaks connections at random, and delays what it passes on

It answers with how many subscriptions there are, and how many have begun. It ends when its standard input does.
"""

import asyncio
import json
import logging
import os
import random
import sys
import threading

import uvicorn
from starlette.responses import JSONResponse

items = {"1": {"id": "1", "text": "one", "version": 1}}
listeners = set()
state = {"begun": 0, "refuse": False, "hold": False, "token": None, "storm": None}
chance = random.Random(0)
connections = set()
END = object()


def change(id, text):
    version = items.get(id, {"version": 0})["version"] + 1
    items[id] = {"id": id, "text": text, "version": version}
    for listener in listeners:
        listener.put_nowait(dict(items[id]))
    return items[id]


async def changes():
    queue = asyncio.Queue()
    listeners.add(queue)
    state["begun"] += 1
    try:
        while True:
            item = await queue.get()
            if item is END:
                return
            yield item
    finally:
        listeners.discard(queue)


def strawberry_app():
    from typing import AsyncGenerator, Optional

    import strawberry
    from strawberry.asgi import GraphQL
    from strawberry.exceptions import ConnectionRejectionError

    @strawberry.type
    class Item:
        id: strawberry.ID
        text: Optional[str]
        version: int

        @strawberry.field
        def unreadable(self) -> Optional[str]:
            raise ValueError("unreadable")

    @strawberry.type
    class Query:
        @strawberry.field
        def items(self) -> list[Item]:
            return [Item(**items[id]) for id in sorted(items)]

    @strawberry.type
    class Mutation:
        @strawberry.mutation
        def set(self, id: strawberry.ID, text: Optional[str] = None) -> Item:
            return Item(**change(id, text))

    @strawberry.type
    class Subscription:
        @strawberry.subscription
        async def changed(self) -> AsyncGenerator[Item, None]:
            async for item in changes():
                yield Item(**item)

        @strawberry.subscription
        async def broken(self) -> AsyncGenerator[Item, None]:
            raise ValueError("broken")
            yield

    class App(GraphQL):
        async def on_ws_connect(self, context):
            if state["token"] is not None and context["connection_params"].get("token") != state["token"]:
                raise ConnectionRejectionError({"reason": "token"})
            return await super().on_ws_connect(context)

    schema = strawberry.Schema(Query, Mutation, Subscription)
    return App(schema, subscription_protocols=("graphql-transport-ws", "multipart-subscription"))


def ariadne_app():
    from ariadne import MutationType, QueryType, SubscriptionType, make_executable_schema
    from ariadne.asgi import GraphQL
    from ariadne.asgi.handlers import GraphQLTransportWSHandler
    from ariadne.exceptions import WebSocketConnectionError

    definitions = """
        type Query { items: [Item!]! }
        type Mutation { set(id: ID!, text: String): Item! }
        type Subscription { changed: Item! broken: Item! }
        type Item { id: ID! text: String version: Int! }
    """
    query, mutation, subscription = QueryType(), MutationType(), SubscriptionType()
    query.set_field("items", lambda *_: [items[id] for id in sorted(items)])
    mutation.set_field("set", lambda _, info, id, text=None: change(id, text))
    subscription.set_source("changed", lambda *_: changes())
    subscription.set_field("changed", lambda item, *_: item)

    async def connect(request, payload):
        given = payload.get("token") if isinstance(payload, dict) else None
        if state["token"] is not None and given != state["token"]:
            raise WebSocketConnectionError("token")

    schema = make_executable_schema(definitions, query, mutation, subscription)
    return GraphQL(schema, websocket_handler=GraphQLTransportWSHandler(on_connect=connect))


async def control(scope, receive, send):
    body = b""
    while True:
        part = await receive()
        body += part.get("body", b"")
        if not part.get("more_body"):
            break
    orders = json.loads(body)
    for key in ("refuse", "hold", "token"):
        if key in orders:
            state[key] = orders[key]
    if "storm" in orders:
        state["storm"] = orders["storm"]
        chance.seed(orders["storm"])
    for id in orders.get("remove", []):
        items.pop(id, None)
    for id, text in orders.get("set", {}).items():
        change(id, text)
    if orders.get("complete"):
        for listener in listeners:
            listener.put_nowait(END)
    if orders.get("cut"):
        for transport in list(connections):
            transport.abort()
    answer = JSONResponse({"subscriptions": len(listeners), "begun": state["begun"], "items": items})
    await answer(scope, receive, send)


def with_control(app):
    async def both(scope, receive, send):
        if scope["type"] == "http" and scope["path"] == "/control":
            return await control(scope, receive, send)
        return await app(scope, receive, send)

    return both


async def proxy(port):
    async def pump(reader, writer):
        try:
            while data := await reader.read(65536):
                while state["hold"]:
                    await asyncio.sleep(0.005)
                if state["storm"] is not None:
                    await asyncio.sleep(chance.random() * 0.02)
                    if chance.randrange(40) == 0:
                        writer.transport.abort()
                        return
                writer.write(data)
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def serve(reader, writer):
        if state["refuse"]:
            writer.transport.abort()
            return
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer.transport, there_writer.transport}
        connections.update(both)
        await asyncio.gather(pump(reader, there_writer), pump(there_reader, writer))
        connections.difference_update(both)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    return server.sockets[0].getsockname()[1]


async def main():
    app = strawberry_app() if sys.argv[1] == "strawberry" else ariadne_app()
    server = uvicorn.Server(uvicorn.Config(with_control(app), port=0, log_level="critical", ws="websockets-sansio"))
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    direct = server.servers[0].sockets[0].getsockname()[1]
    print("listening", await proxy(direct), direct, flush=True)
    await running


def end_with_input():
    sys.stdin.buffer.read()
    os._exit(0)


# Errors that tests ask for are no news.
logging.disable(logging.CRITICAL)
threading.Thread(target=end_with_input, daemon=True).start()
asyncio.run(main())
