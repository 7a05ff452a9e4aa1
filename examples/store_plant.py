"""Stores a plant. Usage: python3 store_plant.py ID NAME [TAG]"""

import http.client
import json
import os
import re
import sys
import time
import urllib.error
import urllib.request

ATTEMPTS = 10
TIMEOUT_SECONDS = 10


def read_plant(args):
    if (
        len(args) not in (2, 3)
        or not re.fullmatch("-?(0|[1-9][0-9]*)", args[0])
        or not args[1]
    ):
        sys.exit("Usage: store_plant.py ID NAME [TAG]")
    # An int is exact, a float is not.
    return dict(zip(("id", "name", "tag"), (int(args[0]), *args[1:])))


def send(request):
    """Returns status, header fields and text, or None without a complete response."""
    try:
        try:
            response = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error_response:
            response = error_response
        return response.status, response.headers, response.read()
    except (OSError, http.client.HTTPException):
        return None  # The plant may be stored or not.


def parse_object(text):
    try:
        return dict(json.loads(text))
    except (TypeError, ValueError):
        return {}


def seconds_to_wait(headers):
    value = headers.get("Retry-After", "")
    return int(value) if value.isdigit() else 1


def store_plant(plant, url, token):
    """Each attempt sends the same plant, so it is stored only once."""
    request = urllib.request.Request(
        url.rstrip("/") + "/plants",
        json.dumps(plant).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    for _ in range(ATTEMPTS):
        response = send(request)
        if response is None:
            time.sleep(1)
            continue
        status, headers, text = response
        if status in (429, 503):
            time.sleep(seconds_to_wait(headers))
            continue
        result = parse_object(text)
        if status == 200 and result.get("name") == plant["name"]:
            return result
        if result.get("error") == 40006:
            sys.exit(f"The id {plant['id']} is taken.")
        sys.exit(
            str(result.get("message") or f"{status}: not a response of the Plant Store")
        )
    sys.exit("The Plant Store does not respond.")


if __name__ == "__main__":
    new_plant = read_plant(sys.argv[1:])
    access_token = os.environ.get("PLANT_STORE_TOKEN", "").strip()
    if not access_token:
        sys.exit("Set PLANT_STORE_TOKEN to a token of the Plant Store.")
    service = os.environ.get("PLANT_STORE_URL", "http://127.0.0.1:3000")
    print(json.dumps(store_plant(new_plant, service, access_token)))
