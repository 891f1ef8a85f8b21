"""A GraphQL server that is not ours: Ariadne on graphql-core, over the star catalogue.

It listens on a free port of 127.0.0.1 and prints `listening PORT` when it does. It ends when its standard input
does, or when its parent is gone, so that nothing is left over when tests die.
"""

import os
import sys
import threading
import time
from datetime import date
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from ariadne import InterfaceType, MutationType, ObjectType, QueryType, ScalarType, UnionType, make_executable_schema
from ariadne.wsgi import GraphQL
from graphql import GraphQLError

from data import CONSTELLATIONS, PLANETS, STARS, VARIABLE_STARS

lock = threading.Lock()
names = {}
observations = []


def star(id):
    name, magnitude, spectral_class, hours, degrees, distance, constellation, companions, age = STARS[id]
    return {
        "__typename": "Star", "id": id, "name": names.get(id, name), "magnitude": magnitude,
        "spectralClass": spectral_class, "coordinates": {"hours": hours, "degrees": degrees},
        "light_years": distance, "constellation_code": constellation, "companion_ids": companions, "years": age,
    }


def planet(id):
    name, magnitude, radius, discovered, star_id = PLANETS[id]
    return {
        "__typename": "Planet", "id": id, "name": names.get(id, name), "magnitude": magnitude, "radius": radius,
        "discovered": date.fromisoformat(discovered), "star_id": star_id,
    }


def constellation(code):
    name, brightest = CONSTELLATIONS[code]
    return {"__typename": "Constellation", "code": code, "name": name, "brightest_id": brightest}


def body(id):
    if id in STARS:
        return star(id)
    return planet(id) if id in PLANETS else None


def choose(ids, first, classes):
    chosen = [star(id) for id in ids if not classes or STARS[id][2] in classes]
    return chosen if first is None else chosen[:first]


day = ScalarType("Day")
day.set_serializer(lambda value: value.isoformat())
day.set_value_parser(date.fromisoformat)

query = QueryType()
query.set_field("body", lambda _, info, id: body(id))
query.set_field("star", lambda _, info, id: star(id) if id in STARS else None)
query.set_field("stars", lambda _, info, first=None, classes=None: choose(STARS, first, classes))
query.set_field("constellation", lambda _, info, code: constellation(code) if code in CONSTELLATIONS else None)
query.set_field("constellations", lambda *_: [constellation(code) for code in CONSTELLATIONS])
query.set_field("observations", lambda *_: list(observations))


@query.field("search")
def resolve_search(_, info, text):
    found = [*map(star, STARS), *map(planet, PLANETS), *map(constellation, CONSTELLATIONS)]
    return [thing for thing in found if text.lower() in thing["name"].lower()]


@query.field("broken")
@query.field("brokenForced")
def resolve_broken(*_):
    raise GraphQLError("The telescope is out of order.", extensions={"code": "OUT_OF_ORDER"})


@query.field("sleep")
def resolve_sleep(_, info, ms):
    time.sleep(max(0, min(ms, 60_000)) / 1000)
    return ms


star_type = ObjectType("Star")
star_type.set_field("constellation", lambda it, info: constellation(it["constellation_code"]))
star_type.set_field("companions", lambda it, info: [id and star(id) for id in it["companion_ids"]])


@star_type.field("distance")
def resolve_distance(it, info, unit=None):
    return round(it["light_years"] / 3.26, 1) if unit == "PARSEC" else it["light_years"]


@star_type.field("planets")
def resolve_planets(it, info, minimumRadius=None):
    planets = [planet(id) for id in PLANETS if PLANETS[id][4] == it["id"]]
    return [one for one in planets if minimumRadius is None or one["radius"] >= minimumRadius]


@star_type.field("age")
def resolve_age(it, info):
    if it["id"] in VARIABLE_STARS:
        raise GraphQLError("The age of a variable star is not known.", extensions={"code": "NOT_KNOWN"})
    return it["years"]


planet_type = ObjectType("Planet")
planet_type.set_field("star", lambda it, info: star(it["star_id"]))

constellation_type = ObjectType("Constellation")
constellation_type.set_field("brightest", lambda it, info: star(it["brightest_id"]))


@constellation_type.field("stars")
def resolve_stars(it, info, first=None, classes=None):
    return choose([id for id in STARS if STARS[id][6] == it["code"]], first, classes)


mutation = MutationType()


@mutation.field("renameBody")
def resolve_rename(_, info, id, name):
    if body(id) is None:
        raise GraphQLError(f"There is no body {id}.", extensions={"code": "NOT_FOUND"})
    with lock:
        names[id] = name
    return body(id)


@mutation.field("observe")
def resolve_observe(_, info, input):
    seen = body(input["body"])
    if seen is None:
        raise GraphQLError(f"There is no body {input['body']}.", extensions={"code": "NOT_FOUND"})
    observation = {"body": seen, "day": input["day"], "notes": input.get("notes")}
    with lock:
        observations.append(observation)
    return observation


def type_name(it, *_):
    return it["__typename"]


schema = make_executable_schema(
    (Path(__file__).parent / "catalogue.graphqls").read_text(encoding="utf-8"),
    query, mutation, star_type, planet_type, constellation_type, day,
    InterfaceType("Body", type_name), UnionType("Found", type_name),
)


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class QuietHandler(WSGIRequestHandler):
    def log_message(self, *_):
        pass


def end_with_parent():
    parent = os.getppid()

    def watch_input():
        while sys.stdin.buffer.read(1024):
            pass
        os._exit(0)

    def watch_parent():
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(0)

    threading.Thread(target=watch_input, daemon=True).start()
    threading.Thread(target=watch_parent, daemon=True).start()


class NoLogger:
    """Errors are what the tests ask for; they stand in the answers."""

    def error(self, *_, **__):
        pass


if __name__ == "__main__":
    end_with_parent()
    application = GraphQL(schema, execute_get_queries=True, logger=NoLogger())
    with make_server("127.0.0.1", 0, application, server_class=Server, handler_class=QuietHandler) as server:
        print(f"listening {server.server_port}", flush=True)
        server.serve_forever()
