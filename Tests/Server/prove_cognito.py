"""Lets pycognito, which is not ours, judge the user pool of `cognito.py`: sign-ins by SRP, and refused passwords.

Its argument is the port. It prints how many of each went as they should.
"""

import sys

import boto3
from botocore.config import Config
from pycognito.aws_srp import AWSSRP

POOL, CLIENT = "us-east-1_AbC123xyz", "client"
client = boto3.client(
    "cognito-idp", region_name="us-east-1", endpoint_url=f"http://127.0.0.1:{sys.argv[1]}",
    aws_access_key_id="unused", aws_secret_access_key="unused", config=Config(proxies={}, signature_version="unsigned"),
)


def sign_in(user, password):
    srp = AWSSRP(username=user, password=password, pool_id=POOL, client_id=CLIENT, client=client)
    return srp.authenticate_user()["AuthenticationResult"]


taken = refused = 0
for number in range(60):
    if sign_in(f"u{number}", f"password{number}")["RefreshToken"]:
        taken += 1
for number in range(10):
    try:
        sign_in(f"u{number}", "wrong password")
    except client.exceptions.NotAuthorizedException:
        refused += 1
print("taken", taken, "refused", refused)
