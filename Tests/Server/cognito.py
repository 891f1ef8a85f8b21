"""A Cognito of the tests: a user pool with real SRP, challenges, rotation and revocation, and an identity pool.

It listens on a free port of 127.0.0.1 and prints `listening PORT` when it does. Its argument is JSON: `pool`, `client`,
perhaps `secret` of the client, `identityPool`, `users` by name (`password`, and `steps`: the challenges that follow it),
`rotates`, `grace` and `lifetime` in seconds. A request `POST /control` replaces members of it and answers with the names
of the operations that were asked for; its member `fail` maps an operation to the error that it ends with. It ends when
its standard input does.

Every code is 123456; 999999 has expired. `prove_cognito.py` lets pycognito judge it.
"""

import base64
import calendar
import hashlib
import hmac
import json
import os
import secrets
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

N = int(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DDEF9519B3CD3A431B"
    "302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE6"
    "49286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB9ED529077096966D"
    "670C354E4ABC9804F1746C08CA18217C32905E462E36CE3BE39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF695581718"
    "3995497CEA956AE515D2261898FA051015728E5A8AAAC42DAD33170D04507A33A85521ABDF1CBA64ECFB850458DBEF0A8AEA71575D060C7D"
    "B3970F85A6E1E4C7ABF5AE8CDB0933D71E8C94E04A25619DCEE3D2261AD2EE6BF12FFA06D98A0864D87602733EC86A64521F2B18177B200C"
    "BBE117577A615D6C770988C0BAD946E208E24FA074E5AB3143DB5BFCE0FD108E4B82D120A93AD2CAFFFFFFFFFFFFFFFF",
    16,
)
G = 2


def pad(number):
    data = number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")
    return b"\0" + data if data[0] & 0x80 else data


def digest(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def number(data):
    return int.from_bytes(data, "big")


K = number(digest(pad(N), pad(G)))


class Refused(Exception):
    def __init__(self, kind, message):
        self.kind, self.message = kind, message


def base64url(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


class Pool:
    def __init__(self, state):
        self.state = state
        self.lock = threading.RLock()
        self.users, self.exchanges, self.refreshes, self.identities, self.asked = {}, {}, {}, {}, []
        self.devices, self.codes = {}, {}
        for name, about in state.get("users", {}).items():
            self.add(name, about["password"], about.get("steps", []), confirmed=about.get("confirmed", True))
            self.users[name].update(enabled=about.get("enabled", True), reset=about.get("reset", False))

    # Users

    def add(self, name, password, steps=(), confirmed=True, attributes=()):
        self.users[name] = {
            "name": name, "id": "sub-" + name, "steps": list(steps), "confirmed": confirmed, "enabled": True,
            "reset": False, "attributes": dict(attributes), "since": 0,
        }
        self.set_password(self.users[name], password)

    def set_password(self, user, password):
        if len(password) < 8:
            raise Refused("InvalidPasswordException", "Password did not conform with policy: Password not long enough")
        salt = secrets.token_bytes(16)
        pool = self.state["pool"].split("_", 1)[1]
        x = number(digest(pad(number(salt)), digest(f"{pool}{user['id']}:{password}".encode())))
        user.update(salt=number(salt), verifier=pow(G, x, N), password=password)

    def user(self, name):
        if name in self.users:
            return self.users[name]
        raise Refused("UserNotFoundException", "User does not exist.")

    def usable(self, user):
        if not user["enabled"]:
            raise Refused("NotAuthorizedException", "User is disabled.")
        if not user["confirmed"]:
            raise Refused("UserNotConfirmedException", "User is not confirmed.")
        if user["reset"]:
            raise Refused("PasswordResetRequiredException", "Password reset required for the user")
        return user

    def check_client(self, body, name=None, parameters=None):
        if body.get("ClientId") != self.state["client"]:
            raise Refused("ResourceNotFoundException", f"User pool client {body.get('ClientId')} does not exist.")
        secret = self.state.get("secret")
        if name is None:
            if body.get("ClientSecret") != secret:
                raise Refused("NotAuthorizedException", "Client secret is wrong or missing.")
            return
        given = parameters.get("SECRET_HASH") if parameters is not None else body.get("SecretHash")
        if secret is None:
            return
        if given is None:
            raise Refused(
                "NotAuthorizedException", f"Client {self.state['client']} is configured with secret but SECRET_HASH was"
                " not received")
        right = hmac.new(secret.encode(), (name + self.state["client"]).encode(), hashlib.sha256).digest()
        if given != base64.b64encode(right).decode():
            raise Refused("NotAuthorizedException", f"SecretHash does not match for the client: {self.state['client']}")

    def check_code(self, code):
        if code == "999999":
            raise Refused("ExpiredCodeException", "Invalid code provided, please request a code again.")
        if code != "123456":
            raise Refused("CodeMismatchException", "Invalid verification code provided, please try again.")

    # Tokens

    def jwt(self, user, use):
        now = int(time.time())
        region = self.state["pool"].split("_")[0]
        claims = {
            "iss": f"https://cognito-idp.{region}.amazonaws.com/{self.state.get('issuer', self.state['pool'])}",
            "sub": user["id"], "token_use": use, "iat": now, "exp": now + self.state.get("lifetime", 3600),
            "jti": secrets.token_hex(8),
        }
        if use == "id":
            claims.update({"aud": self.state["client"], "cognito:username": user["name"]})
        else:
            claims.update({"client_id": self.state["client"], "username": user["name"]})
        return f"{base64url({'alg': 'RS256', 'kid': '1'})}.{base64url(claims)}.{secrets.token_hex(16)}"

    def tokens(self, user, refresh=True):
        result = {
            "IdToken": self.jwt(user, "id"), "AccessToken": self.jwt(user, "access"), "TokenType": "Bearer",
            "ExpiresIn": self.state.get("lifetime", 3600),
        }
        if refresh:
            result["RefreshToken"] = secrets.token_hex(24)
            self.refreshes[result["RefreshToken"]] = {"user": user["name"], "used": None}
        return result

    def access(self, body):
        try:
            claims = json.loads(base64.urlsafe_b64decode(body["AccessToken"].split(".")[1] + "=="))
            user = self.users[claims["username"]]
        except Exception:
            raise Refused("NotAuthorizedException", "Could not verify signature for Access Token")
        if claims["exp"] < time.time() or claims["iat"] < user["since"]:
            raise Refused("NotAuthorizedException", "Access Token has been revoked")
        return user

    def live(self, token):
        entry = self.refreshes.get(token)
        if entry is None:
            raise Refused("NotAuthorizedException", "Invalid Refresh Token")
        if entry["used"] is not None and time.time() - entry["used"] > self.state.get("grace", 0):
            raise Refused("RefreshTokenReuseException", "Refresh token has been used")
        return entry, self.usable(self.user(entry["user"]))

    # Signing in

    def next_step(self, user, steps):
        if not steps:
            result = self.tokens(user)
            if self.state.get("devices"):
                key = f"{self.state['pool'].split('_')[0]}_{secrets.token_hex(8)}"
                self.devices[key] = {"user": user["name"], "group": "-" + secrets.token_hex(4), "verifier": None}
                result["NewDeviceMetadata"] = {"DeviceKey": key, "DeviceGroupKey": self.devices[key]["group"]}
            return {"AuthenticationResult": result, "ChallengeParameters": {}}
        session = secrets.token_hex(20)
        self.exchanges[session] = {"user": user["name"], "steps": list(steps)}
        parameters = {"USERNAME": user["name"], "USER_ID_FOR_SRP": user["id"]}
        kind = steps[0]
        if kind in ("SMS_MFA", "SMS_OTP", "EMAIL_OTP"):
            parameters.update(CODE_DELIVERY_DESTINATION="+*******1234", CODE_DELIVERY_DELIVERY_MEDIUM="SMS")
        elif kind == "NEW_PASSWORD_REQUIRED":
            parameters.update(
                requiredAttributes='["userAttributes.nickname"]', userAttributes='{"email": "ann@example.com"}')
        elif kind == "MFA_SETUP":
            parameters.update(MFAS_CAN_SETUP='["SOFTWARE_TOKEN_MFA"]')
        elif kind == "SELECT_MFA_TYPE":
            parameters.update(MFAS_CAN_CHOOSE='["SMS_MFA","SOFTWARE_TOKEN_MFA"]')
        elif kind == "CUSTOM_CHALLENGE":
            parameters.update(question="What is the word?")
        answer = {"ChallengeName": kind, "Session": session, "ChallengeParameters": parameters}
        if kind == "SELECT_CHALLENGE":
            answer["AvailableChallenges"] = ["PASSWORD", "PASSWORD_SRP", "EMAIL_OTP"]
        return answer

    def start_srp(self, user, parameters, device=None):
        a = int(parameters["SRP_A"], 16)
        if a % N == 0:
            raise Refused("InvalidParameterException", "SRP_A is not usable")
        holder = device or user
        b = number(secrets.token_bytes(32))
        public = (K * holder["verifier"] + pow(G, b, N)) % N
        block = base64.b64encode(secrets.token_bytes(800)).decode()
        session = secrets.token_hex(20)
        self.exchanges[session] = {"user": user["name"], "A": a, "B": public, "b": b, "block": block, "steps": ["SRP"]}
        self.exchanges[session]["device"] = parameters.get("DEVICE_KEY")
        asked = {
            "SALT": f"{holder['salt']:x}", "SRP_B": f"{public:x}", "SECRET_BLOCK": block, "USERNAME": user["name"],
        }
        if device:
            asked["DEVICE_KEY"] = parameters["DEVICE_KEY"]
        else:
            asked["USER_ID_FOR_SRP"] = user["id"]
        name = "DEVICE_PASSWORD_VERIFIER" if device else "PASSWORD_VERIFIER"
        return {"ChallengeName": name, "Session": session, "ChallengeParameters": asked}

    def device(self, key, user):
        device = self.devices.get(key)
        if device is None or device["user"] != user["name"] or device["verifier"] is None:
            raise Refused("ResourceNotFoundException", "Device does not exist.")
        return device

    def check_srp(self, user, exchange, answers, device=None):
        try:
            given = calendar.timegm(time.strptime(answers["TIMESTAMP"], "%a %b %d %H:%M:%S UTC %Y"))
        except (KeyError, ValueError):
            raise Refused("InvalidParameterException", "TIMESTAMP format should be EEE MMM d HH:mm:ss z yyyy in english")
        if abs(given - time.time()) > 300:
            raise Refused("NotAuthorizedException", "Incorrect timestamp.")
        if answers["PASSWORD_CLAIM_SECRET_BLOCK"] != exchange["block"]:
            raise Refused("NotAuthorizedException", "Incorrect username or password.")
        u = number(digest(pad(exchange["A"]), pad(exchange["B"])))
        shared = pow(exchange["A"] * pow((device or user)["verifier"], u, N), exchange["b"], N)
        extracted = hmac.new(pad(u), pad(shared), hashlib.sha256).digest()
        key = hmac.new(extracted, b"Caldera Derived Key\x01", hashlib.sha256).digest()[:16]
        pool = self.state["pool"].split("_", 1)[1]
        names = (device["group"], answers["DEVICE_KEY"]) if device else (pool, user["id"])
        text = "".join(names).encode() + base64.b64decode(exchange["block"])
        right = hmac.new(key, text + answers["TIMESTAMP"].encode(), hashlib.sha256).digest()
        if not hmac.compare_digest(base64.b64encode(right).decode(), answers["PASSWORD_CLAIM_SIGNATURE"]):
            raise Refused("NotAuthorizedException", "Incorrect username or password.")

    def InitiateAuth(self, body):
        flow, parameters = body["AuthFlow"], body["AuthParameters"]
        if flow in self.state.get("flowsOff", []):
            raise Refused("InvalidParameterException", f"{flow} flow not enabled for this client")
        if flow in ("REFRESH_TOKEN_AUTH", "REFRESH_TOKEN"):
            if self.state.get("rotates"):
                raise Refused("NotAuthorizedException", "Refresh token rotation is on: use GetTokensFromRefreshToken")
            # The hash is of the user's name, or of its id; which of them depends on the pool.
            if self.state.get("secret") is not None and "SECRET_HASH" not in parameters:
                raise Refused("NotAuthorizedException", "SECRET_HASH was not received")
            _, user = self.live(parameters["REFRESH_TOKEN"])
            return {"AuthenticationResult": self.tokens(user, refresh=False), "ChallengeParameters": {}}
        name = parameters["USERNAME"]
        self.check_client(body, name, parameters)
        user = self.user(name)
        if flow == "USER_SRP_AUTH":
            if "DEVICE_KEY" in parameters:
                self.device(parameters["DEVICE_KEY"], user)
            return self.start_srp(self.usable(user), parameters)
        if flow == "USER_PASSWORD_AUTH":
            if parameters["PASSWORD"] != user["password"]:
                raise Refused("NotAuthorizedException", "Incorrect username or password.")
            return self.next_step(self.usable(user), user["steps"])
        if flow == "CUSTOM_AUTH":
            return self.next_step(self.usable(user), ["CUSTOM_CHALLENGE"])
        if flow == "USER_AUTH":
            if parameters.get("PREFERRED_CHALLENGE") == "PASSWORD_SRP":
                return self.start_srp(self.usable(user), parameters)
            return self.next_step(self.usable(user), ["SELECT_CHALLENGE"])
        raise Refused("InvalidParameterException", "Unknown flow")

    def RespondToAuthChallenge(self, body):
        answers, kind = body["ChallengeResponses"], body["ChallengeName"]
        self.check_client(body, answers["USERNAME"], answers)
        session = body.get("Session")
        if kind in ("PASSWORD_VERIFIER", "DEVICE_PASSWORD_VERIFIER"):
            # The secret block tells which exchange it is; a session need not be sent.
            block = answers.get("PASSWORD_CLAIM_SECRET_BLOCK")
            session = next((key for key, one in self.exchanges.items() if one.get("block") == block), None)
        exchange = self.exchanges.get(session)
        if exchange is None or exchange["user"] != answers["USERNAME"]:
            raise Refused("NotAuthorizedException", "Invalid session for the user.")
        user = self.user(exchange["user"])
        if kind == "PASSWORD_VERIFIER":
            del self.exchanges[session]
            self.check_srp(user, exchange, answers)
            if exchange["device"] is not None:
                self.device(answers["DEVICE_KEY"], user)
                session = secrets.token_hex(20)
                self.exchanges[session] = {"user": user["name"], "steps": ["DEVICE_SRP_AUTH"]}
                return {"ChallengeName": "DEVICE_SRP_AUTH", "Session": session, "ChallengeParameters": {}}
            return self.next_step(user, user["steps"])
        if kind == "DEVICE_PASSWORD_VERIFIER":
            del self.exchanges[session]
            self.check_srp(user, exchange, answers, self.device(answers["DEVICE_KEY"], user))
            return {"AuthenticationResult": self.tokens(user), "ChallengeParameters": {}}
        if kind != exchange["steps"][0]:
            raise Refused("NotAuthorizedException", "Invalid session for the user.")
        rest = exchange["steps"][1:]
        if kind == "DEVICE_SRP_AUTH":
            del self.exchanges[session]
            return self.start_srp(user, answers, self.device(answers["DEVICE_KEY"], user))
        if kind in ("SMS_MFA", "SOFTWARE_TOKEN_MFA", "EMAIL_OTP", "SMS_OTP"):
            self.check_code(answers[kind + "_CODE"])
        elif kind == "NEW_PASSWORD_REQUIRED":
            if "userAttributes.nickname" not in answers:
                raise Refused("InvalidParameterException", "Missing required attribute nickname")
            self.set_password(user, answers["NEW_PASSWORD"])
            user["steps"] = [step for step in user["steps"] if step != kind]
        elif kind == "SELECT_MFA_TYPE":
            rest = [answers["ANSWER"]] + rest
        elif kind == "CUSTOM_CHALLENGE":
            if answers["ANSWER"] != "sesame":
                raise Refused("NotAuthorizedException", "Incorrect username or password.")
        elif kind == "MFA_SETUP":
            if not exchange.get("verified"):
                raise Refused("InvalidParameterException", "The software token was not verified")
        elif kind == "SELECT_CHALLENGE":
            if answers["ANSWER"] == "PASSWORD_SRP":
                return self.start_srp(user, answers)
            if answers["ANSWER"] == "PASSWORD":
                if answers["PASSWORD"] != user["password"]:
                    raise Refused("NotAuthorizedException", "Incorrect username or password.")
                rest = user["steps"]
            else:
                rest = [answers["ANSWER"]]
        else:
            raise Refused("InvalidParameterException", "Unknown challenge")
        del self.exchanges[body["Session"]]
        return self.next_step(user, rest)

    def AssociateSoftwareToken(self, body):
        exchange = self.exchanges.pop(body.get("Session"), None)
        if exchange is None:
            raise Refused("NotAuthorizedException", "Invalid session for the user.")
        session = secrets.token_hex(20)
        self.exchanges[session] = exchange
        return {"SecretCode": "JBSWY3DPEHPK3PXP", "Session": session}

    def VerifySoftwareToken(self, body):
        exchange = self.exchanges.get(body.get("Session"))
        if exchange is None:
            raise Refused("NotAuthorizedException", "Invalid session for the user.")
        if body["UserCode"] != "123456":
            raise Refused("EnableSoftwareTokenMFAException", "Code mismatch")
        del self.exchanges[body["Session"]]
        session = secrets.token_hex(20)
        self.exchanges[session] = {**exchange, "verified": True}
        return {"Status": "SUCCESS", "Session": session}

    def GetTokensFromRefreshToken(self, body):
        self.check_client(body)
        entry, user = self.live(body["RefreshToken"])
        if not self.state.get("rotates"):
            return {"AuthenticationResult": self.tokens(user, refresh=False)}
        if entry["used"] is None:
            entry["used"] = time.time()
        return {"AuthenticationResult": self.tokens(user)}

    def RevokeToken(self, body):
        self.check_client(body)
        self.refreshes.pop(body["Token"], None)
        return {}

    def GlobalSignOut(self, body):
        user = self.access(body)
        user["since"] = time.time() + 1
        self.refreshes = {token: entry for token, entry in self.refreshes.items() if entry["user"] != user["name"]}
        return {}

    # Devices

    def ConfirmDevice(self, body):
        user, device = self.access(body), self.devices[body["DeviceKey"]]
        config = body["DeviceSecretVerifierConfig"]
        device.update(
            user=user["name"], salt=number(base64.b64decode(config["Salt"])),
            verifier=number(base64.b64decode(config["PasswordVerifier"])), name=body.get("DeviceName"))
        return {"UserConfirmationNecessary": True}

    def UpdateDeviceStatus(self, body):
        self.device(body["DeviceKey"], self.access(body))["status"] = body["DeviceRememberedStatus"]
        return {}

    def ForgetDevice(self, body):
        self.device(body["DeviceKey"], self.access(body))
        del self.devices[body["DeviceKey"]]
        return {}

    # The pool's own pages

    def authorize(self, query):
        """A user who is signed in on the page at once."""
        if query["client_id"] != self.state["client"] or query["response_type"] != "code":
            return {"error": "unauthorized_client"}
        if self.state.get("gaveUp"):
            return {"error": "access_denied", "state": query["state"]}
        code = secrets.token_hex(12)
        self.codes[code] = (query["redirect_uri"], query["code_challenge"])
        return {"code": code, "state": query["state"]}

    def page(self, path, form, authorization):
        secret = self.state.get("secret")
        basic = base64.b64encode(f"{self.state['client']}:{secret}".encode()).decode()
        if secret is not None and authorization != "Basic " + basic:
            return 401, {"error": "invalid_client"}
        if path == "/oauth2/revoke":
            self.refreshes.pop(form["token"], None)
            return 200, {}
        if form["grant_type"] == "refresh_token":
            try:
                _, user = self.live(form["refresh_token"])
            except Refused:
                return 400, {"error": "invalid_grant"}
            given = self.tokens(user, refresh=False)
        else:
            redirect, challenge = self.codes.pop(form["code"], (None, None))
            proof = base64.urlsafe_b64encode(digest(form["code_verifier"].encode())).rstrip(b"=").decode()
            if redirect != form["redirect_uri"] or challenge != proof:
                return 400, {"error": "invalid_grant"}
            given = self.tokens(next(iter(self.users.values())))
        answer = {"id_token": given["IdToken"], "access_token": given["AccessToken"], "expires_in": given["ExpiresIn"]}
        if "RefreshToken" in given:
            answer["refresh_token"] = given["RefreshToken"]
        return 200, answer

    # Accounts

    def delivery(self):
        return {"AttributeName": "email", "DeliveryMedium": "EMAIL", "Destination": "a***@e***"}

    def SignUp(self, body):
        self.check_client(body, body["Username"])
        if body["Username"] in self.users:
            raise Refused("UsernameExistsException", "User already exists")
        attributes = {entry["Name"]: entry["Value"] for entry in body.get("UserAttributes", [])}
        if len(body["Password"]) < 8:
            raise Refused("InvalidPasswordException", "Password did not conform with policy: Password not long enough")
        self.add(body["Username"], body["Password"], confirmed=False, attributes=attributes)
        return {"UserConfirmed": False, "UserSub": "sub-" + body["Username"], "CodeDeliveryDetails": self.delivery()}

    def ConfirmSignUp(self, body):
        self.check_client(body, body["Username"])
        user = self.user(body["Username"])
        self.check_code(body["ConfirmationCode"])
        user["confirmed"] = True
        return {}

    def ResendConfirmationCode(self, body):
        self.check_client(body, body["Username"])
        self.user(body["Username"])
        return {"CodeDeliveryDetails": self.delivery()}

    def ForgotPassword(self, body):
        self.check_client(body, body["Username"])
        self.user(body["Username"])
        return {"CodeDeliveryDetails": self.delivery()}

    def ConfirmForgotPassword(self, body):
        self.check_client(body, body["Username"])
        user = self.user(body["Username"])
        self.check_code(body["ConfirmationCode"])
        self.set_password(user, body["Password"])
        user["reset"] = False
        return {}

    def ChangePassword(self, body):
        user = self.access(body)
        if body["PreviousPassword"] != user["password"]:
            raise Refused("NotAuthorizedException", "Incorrect username or password.")
        self.set_password(user, body["ProposedPassword"])
        return {}

    def GetUser(self, body):
        user = self.access(body)
        attributes = {"sub": user["id"], **user["attributes"]}
        return {
            "Username": user["name"], "UserMFASettingList": [],
            "UserAttributes": [{"Name": name, "Value": value} for name, value in attributes.items()],
        }

    def UpdateUserAttributes(self, body):
        user = self.access(body)
        for entry in body["UserAttributes"]:
            user["attributes"][entry["Name"]] = entry["Value"]
        return {"CodeDeliveryDetailsList": []}

    def DeleteUser(self, body):
        del self.users[self.access(body)["name"]]
        return {}

    # The identity pool

    def holder(self, body):
        logins = body.get("Logins") or {}
        if not logins:
            return "guest-" + secrets.token_hex(4)
        region = self.state["pool"].split("_")[0]
        name = f"cognito-idp.{region}.amazonaws.com/{self.state['pool']}"
        try:
            claims = json.loads(base64.urlsafe_b64decode(logins[name].split(".")[1] + "=="))
        except Exception:
            raise Refused("NotAuthorizedException", "Invalid login token. Not a valid OpenId Connect identity token.")
        if claims["exp"] < time.time():
            raise Refused("NotAuthorizedException", "Invalid login token. Token expired.")
        if claims["token_use"] != "id":
            raise Refused("NotAuthorizedException", "Invalid login token. Not an id token.")
        return claims["sub"]

    def GetId(self, body):
        if body["IdentityPoolId"] != self.state["identityPool"]:
            raise Refused("ResourceNotFoundException", f"IdentityPool '{body['IdentityPoolId']}' not found.")
        if not body.get("Logins") and not self.state.get("guests", True):
            raise Refused("NotAuthorizedException", "Unauthenticated access is not supported for this identity pool.")
        holder = self.holder(body)
        for identity, known in self.identities.items():
            if known == holder:
                return {"IdentityId": identity}
        identity = f"{self.state['identityPool'].split(':')[0]}:{secrets.token_hex(4)}-0000-0000-0000-{secrets.token_hex(6)}"
        self.identities[identity] = holder
        return {"IdentityId": identity}

    def GetCredentialsForIdentity(self, body):
        known = self.identities.get(body["IdentityId"])
        if known is None:
            raise Refused("ResourceNotFoundException", f"Identity '{body['IdentityId']}' not found.")
        if body.get("Logins"):
            if self.holder(body) != known:
                raise Refused("NotAuthorizedException", "Logins don't match. Please include at least one valid login.")
        elif not known.startswith("guest-"):
            raise Refused("NotAuthorizedException", f"Access to Identity '{body['IdentityId']}' is forbidden.")
        return {
            "IdentityId": body["IdentityId"],
            "Credentials": {
                "AccessKeyId": self.state.get("accessKey", "ASIA" + secrets.token_hex(6)),
                "SecretKey": self.state.get("secretKey", secrets.token_hex(20)),
                "SessionToken": self.state.get("sessionToken", secrets.token_hex(40)),
                "Expiration": time.time() + self.state.get("cloudLifetime", 3600),
            },
        }


pool = Pool(json.loads(sys.argv[1]))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass  # The client has gone.

    def log_message(self, *arguments):
        pass

    def reply(self, status, value, headers=()):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(body)))
        for name, text in headers:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with pool.lock:
            asked = urllib.parse.urlsplit(self.path)
            query = dict(urllib.parse.parse_qsl(asked.query))
            if asked.path != "/oauth2/authorize":
                return self.reply(404, {})
            answer = urllib.parse.urlencode(pool.authorize(query))
            self.reply(302, {}, [("Location", query["redirect_uri"] + "?" + answer)])

    def do_POST(self):
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith("/oauth2/"):
            form = dict(urllib.parse.parse_qsl(data.decode()))
            with pool.lock:
                pool.asked.append(self.path)
                return self.reply(*pool.page(self.path, form, self.headers.get("Authorization")))
        body = json.loads(data)
        with pool.lock:
            if self.path == "/control":
                pool.state.update(body)
                return self.reply(200, pool.asked)
            service, operation = self.headers["X-Amz-Target"].split(".")
            if self.headers["Content-Type"] != "application/x-amz-json-1.1" or "Authorization" in self.headers:
                return self.reply(400, {"__type": "SerializationException"})
            pool.asked.append(operation)
            fail = pool.state.get("fail", {}).get(operation)
            try:
                if fail and fail.get("raw") is not None:
                    data = fail["raw"].encode()
                    self.send_response(fail.get("status", 200))
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                    return
                if fail and not fail.get("after"):
                    raise Refused(fail["type"], fail.get("message", "as told"))
                answer = getattr(pool, operation)(body)
                if fail:
                    # It was done, and the answer is lost.
                    self.close_connection = True
                    return
            except Refused as refused:
                kind = refused.kind
                status = 500 if kind == "InternalErrorException" else 400
                if service == "AWSCognitoIdentityService":
                    return self.reply(
                        status, {"message": refused.message}, [("x-amzn-errortype", kind + ":http://internal/")])
                return self.reply(status, {"__type": "com.amazonaws.cognito#" + kind, "message": refused.message})
            self.reply(200, answer)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("listening", server.server_address[1], flush=True)
sys.stdin.buffer.read()
os._exit(0)
