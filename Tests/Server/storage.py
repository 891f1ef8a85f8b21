"""An object storage that is not ours: moto's S3, which checks signatures.

It listens on a free port of 127.0.0.1 and prints `listening PORT KEY SECRET` when it does: a user's keys, who may do
everything. There is a bucket for each argument `NAME@REGION`. It ends when its standard input does, so that nothing is
left over when tests die.
"""

import logging
import os
import sys
import threading

# Parts may be small, so that tests need not send megabytes.
os.environ.setdefault("S3_UPLOAD_PART_MIN_SIZE", "1024")
# Credentials of the set-up below, which nothing checks yet.
os.environ.setdefault("AWS_ACCESS_KEY_ID", "setup")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "setup")

import boto3
from botocore.config import Config
from moto import settings
from moto.core.authorization import ActionAuthenticatorMixin
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

EVERYTHING = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'


class QuietHandler(MotoRequestHandler):
    """Says nothing of requests, broken ones included: tests send such."""

    def log(self, type, message, *args):
        pass


def main():
    # Neither of broken requests nor of what they make moto stumble over.
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    settings.INITIAL_NO_AUTH_ACTION_COUNT = float("inf")
    server = make_server(
        "127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), True, request_handler=QuietHandler
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]

    def client(service, region):
        return boto3.client(
            service, region_name=region, endpoint_url=f"http://127.0.0.1:{port}",
            config=Config(proxies={}, s3={"addressing_style": "path"}),
        )

    iam = client("iam", "us-east-1")
    iam.create_user(UserName="cook")
    key = iam.create_access_key(UserName="cook")["AccessKey"]
    iam.put_user_policy(UserName="cook", PolicyName="everything", PolicyDocument=EVERYTHING)
    for argument in sys.argv[1:]:
        name, region = argument.split("@")
        place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        client("s3", region).create_bucket(Bucket=name, **place)

    # From here on every request is checked.
    ActionAuthenticatorMixin.request_count = 0
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    print("listening", port, key["AccessKeyId"], key["SecretAccessKey"], flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


main()
