"""Stores a plant. Usage: python3 store_plant.py ID NAME [TAG]"""

import json
import os
import re
import sys

import urllib3

TIMEOUT_SECONDS = 10

# Waits as long as Retry-After says, otherwise 0, 1, 2, 4, 8 and 16 seconds.
RETRY = urllib3.Retry(
    total=6,
    allowed_methods={"POST"},
    status_forcelist={429, 502, 503, 504},
    backoff_factor=0.5,
    raise_on_status=False,
)


def read_plant(args):
    if (
        len(args) not in (2, 3)
        or not re.fullmatch("-?(0|[1-9][0-9]*)", args[0])
        or not args[1]
    ):
        sys.exit("Usage: store_plant.py ID NAME [TAG]")
    # An int is exact, a float is not.
    plant = {"id": int(args[0]), "name": args[1]}
    if len(args) == 3:
        plant["tag"] = args[2]
    return plant


def send(plant, url, token):
    """Each attempt sends the same plant, so it is stored only once."""
    pool = urllib3.PoolManager(retries=RETRY, timeout=TIMEOUT_SECONDS)
    return pool.request(
        "POST",
        url.rstrip("/") + "/plants",
        body=json.dumps(plant).encode(),
        headers={
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
        },
    )


def parse_object(text):
    """Returns an empty object for anything else than a JSON object."""
    try:
        result = json.loads(text)
    except ValueError:
        return {}
    return result if isinstance(result, dict) else {}


def store_plant(plant, url, token):
    try:
        response = send(plant, url, token)
    except urllib3.exceptions.HTTPError as error:
        # The plant may be stored or not.
        sys.exit(f"The Plant Store does not respond: {error}")
    result = parse_object(response.data)
    if response.status == 200 and result.get("name") == plant["name"]:
        return result
    if result.get("error") == 40006:
        sys.exit(f"The id {plant['id']} is taken.")
    failure = f"{response.status}: not a response of the Plant Store"
    sys.exit(str(result.get("message") or failure))


if __name__ == "__main__":
    new_plant = read_plant(sys.argv[1:])
    access_token = os.environ.get("PLANT_STORE_TOKEN", "").strip()
    if not access_token:
        sys.exit("Set PLANT_STORE_TOKEN to a token of the Plant Store.")
    service = os.environ.get("PLANT_STORE_URL", "http://127.0.0.1:3000")
    print(json.dumps(store_plant(new_plant, service, access_token)))
