"""Usage: python3 store_plant.py ID NAME [TAG]"""
import json, os, sys, time, urllib.error, urllib.request

url = os.environ.get("PLANT_STORE_URL", "http://127.0.0.1:3000") + "/plants"
headers = {"Authorization": "Bearer " + os.environ["PLANT_STORE_TOKEN"], "Content-Type": "application/json"}
plant = dict(zip(("id", "name", "tag"), (int(sys.argv[1]), *sys.argv[2:])))  # An int is exact, a float is not.
request = urllib.request.Request(url, json.dumps(plant).encode(), headers)
for attempt in range(10):
    seconds = 1
    try:
        sys.exit(urllib.request.urlopen(request, timeout=10).close())
    except urllib.error.HTTPError as response:
        if response.code not in (429, 503):
            failure = json.load(response)
            sys.exit("The id is taken." if failure["error"] == 40006 else str(failure))
        seconds = int(response.headers.get("Retry-After", 1))
    except OSError:  # No response, so the plant may be stored or not: send it again, never with another id.
        pass
    time.sleep(seconds)
sys.exit("The Plant Store does not respond.")
