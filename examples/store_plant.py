import http.client, json, os, sys, time, urllib.error, urllib.request  # Usage: python3 store_plant.py ID NAME [TAG]
url = os.environ.get("PLANT_STORE_URL", "http://127.0.0.1:3000") + "/plants"
token = os.environ.get("PLANT_STORE_TOKEN") or sys.exit("Set PLANT_STORE_TOKEN to a token of the Plant Store.")
plant = dict(zip(("id", "name", "tag"), (int(sys.argv[1]), *sys.argv[2:])))  # An int is exact, a float is not.
request = urllib.request.Request(url, json.dumps(plant).encode(), {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
for attempt in range(10):
    try:
        response = urllib.request.urlopen(request, timeout=10)
        body = response.read()
    except urllib.error.HTTPError as error_response:
        response, body = error_response, error_response.read()
    except (OSError, http.client.HTTPException):  # The plant may be stored or not: send it again, never with another id.
        response = None
    if response and response.status not in (429, 503):
        result = json.loads(body) if response.headers.get_content_subtype() == "json" else {}
        failure = result.get("message", f"{response.status}: not a response of the Plant Store")
        sys.exit(None if "name" in result else "The id is taken." if result.get("error") == 40006 else failure)
    seconds = response.headers.get("Retry-After", "") if response else ""
    time.sleep(int(seconds) if seconds.isdigit() else 1)
sys.exit("The Plant Store does not respond.")
