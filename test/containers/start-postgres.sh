#!/bin/sh
# Does what the image of Postgres does with POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB.
set -eu
data=/var/lib/postgresql/18/docker
if [ ! -e "$data/PG_VERSION" ]; then
  mkdir -p "$data"
  chown -R postgres /var/lib/postgresql
  printf %s "$POSTGRES_PASSWORD" >/tmp/password
  chown postgres /tmp/password
  setpriv --reuid=postgres --regid=postgres --clear-groups initdb --pgdata="$data" --username="$POSTGRES_USER" \
    --pwfile=/tmp/password --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8
  rm /tmp/password
  echo 'host all all all scram-sha-256' >>"$data/pg_hba.conf"
  printf 'CREATE DATABASE "%s";\n' "$POSTGRES_DB" |
    setpriv --reuid=postgres --regid=postgres --clear-groups postgres --single -D "$data" postgres
fi
exec setpriv --reuid=postgres --regid=postgres --clear-groups "$@" -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp
