"""Subscribes to the AppSync API of the tests by gql's AppSync client, which is not ours.

Its arguments are the API's port and what proves who asks: `key KEY`, `token TOKEN` or `iam KEY SECRET TOKEN REGION`. It
prints `begun` once it has opened a connection and sent its start, then each event as JSON, and ends after the first.
What goes wrong is printed with the error's name, and ends it with status 1.
"""

import asyncio
import json
import sys

from botocore.credentials import Credentials
from gql import Client, gql
from gql.transport.appsync_auth import AppSyncApiKeyAuthentication, AppSyncIAMAuthentication, AppSyncJWTAuthentication
from gql.transport.appsync_websockets import AppSyncWebsocketsTransport

port, mode, *rest = sys.argv[1:]
host = f"127.0.0.1:{port}"


def proof():
    if mode == "key":
        return AppSyncApiKeyAuthentication(host=host, api_key=rest[0])
    if mode == "token":
        return AppSyncJWTAuthentication(host=host, jwt=rest[0])
    key, secret, token, region = rest
    return AppSyncIAMAuthentication(
        host=host, credentials=Credentials(key, secret, token), region_name=region)


class Plain(AppSyncWebsocketsTransport):
    """Over a socket without TLS, at a custom domain's path."""

    def __init__(self, auth):
        super().__init__(url=f"https://{host}/graphql", auth=auth)
        self.adapter.url = self.adapter.url.replace("wss://", "ws://").replace("/graphql?", "/graphql/realtime?")


async def main():
    async with Client(transport=Plain(proof())) as session:
        print("begun", flush=True)
        async for event in session.subscribe(gql("subscription { renamed { id name } }")):
            print(json.dumps(event), flush=True)
            return


try:
    asyncio.run(asyncio.wait_for(main(), 30))
except Exception as error:
    print(type(error).__name__, error, flush=True)
    sys.exit(1)
