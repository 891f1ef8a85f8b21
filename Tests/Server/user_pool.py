"""A user pool that is not ours: moto's Cognito.

It listens on a free port of 127.0.0.1 and prints `listening PORT POOL CLIENT` when it does. There is the user `new`, who
has the password `First-passw0rd` and must choose another. It ends when its standard input does, so that nothing is left
over when tests die.
"""

import logging
import os
import sys
import threading

# Credentials of the set-up below, which nothing checks.
os.environ.setdefault("AWS_ACCESS_KEY_ID", "setup")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "setup")

import boto3
from botocore.config import Config
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


def main():
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    pools = boto3.client(
        "cognito-idp", region_name="us-east-1", endpoint_url=f"http://127.0.0.1:{port}", config=Config(proxies={}))
    pool = pools.create_user_pool(PoolName="movies")["UserPool"]["Id"]
    flows = ["ALLOW_USER_PASSWORD_AUTH", "ALLOW_USER_SRP_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"]
    client = pools.create_user_pool_client(UserPoolId=pool, ClientName="app", ExplicitAuthFlows=flows)
    pools.admin_create_user(UserPoolId=pool, Username="new", TemporaryPassword="First-passw0rd")
    print("listening", port, pool, client["UserPoolClient"]["ClientId"], flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


main()
