import http.client, json, os, re, sys, time, urllib.error, urllib.request
if len(sys.argv) not in (3, 4) or not re.fullmatch("-?(0|[1-9][0-9]*)", sys.argv[1]) or not sys.argv[2]: sys.exit("Usage: store_plant.py ID NAME [TAG]")
url = os.environ.get("PLANT_STORE_URL", "http://127.0.0.1:3000").rstrip("/") + "/plants"
token = os.environ.get("PLANT_STORE_TOKEN", "").strip() or sys.exit("Set PLANT_STORE_TOKEN to a token of the Plant Store.")
plant = dict(zip(("id", "name", "tag"), (int(sys.argv[1]), *sys.argv[2:])))  # An int is exact, a float is not.
request = urllib.request.Request(url, json.dumps(plant).encode(), {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
for attempt in range(10):
    try:
        try: response = urllib.request.urlopen(request, timeout=10)
        except urllib.error.HTTPError as error_response: response = error_response
        text = response.read()
    except (OSError, http.client.HTTPException): response = None  # The plant may be stored or not: never send it with another id.
    if response and response.status not in (429, 503):
        try: result = dict(json.loads(text))
        except (TypeError, ValueError): result = {}  # The response is no JSON object.
        if response.status == 200 and result.get("name") == plant["name"]: sys.exit()
        sys.exit("The id is taken." if result.get("error") == 40006 else str(result.get("message") or f"{response.status}: not a response of the Plant Store"))
    seconds = response.headers.get("Retry-After", "") if response else ""
    time.sleep(int(seconds) if seconds.isdigit() else 1)
sys.exit("The Plant Store does not respond.")
