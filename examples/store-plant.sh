#!/bin/sh
# Do not build the JSON with jq before 1.7, which rounds the id.
set -eu

if [ $# -ne 1 ]; then
  echo "Usage: store-plant.sh '{\"id\": 9223372036854775807, \"name\": \"Acer negundo\"}'" >&2
  exit 1
fi
: "${PLANT_STORE_TOKEN:?Set it to a token of the Plant Store.}"
url=${PLANT_STORE_URL:-http://127.0.0.1:3000}
response=$(mktemp)
trap 'rm -f "$response"' EXIT

# --retry repeats 408, 429, 500, 502, 503, 504, timeouts and lost connections with the same plant,
# after the seconds of Retry-After.
# The token is sent through standard input, because every user can read a command line.
send_plant() {
  printf 'Authorization: Bearer %s\n' "$PLANT_STORE_TOKEN" |
    curl --silent --show-error --header @- --header 'Content-Type: application/json' \
      --retry 10 --retry-delay 1 --retry-all-errors --max-time 10 \
      --output "$response" --write-out '%{http_code}' \
      --data-raw "$1" "${url%/}/plants"
}

status=$(send_plant "$1")
case "$status $(head -c 15 "$response")" in
  '200 {"name":'*)
    cat "$response"
    echo
    exit 0
    ;;
  '400 {"error":40006,'*) echo 'The id is taken.' >&2 ;;
  *) echo "$status: $(cat "$response")" >&2 ;;
esac
exit 1
