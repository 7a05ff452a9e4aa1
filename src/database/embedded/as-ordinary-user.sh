#!/bin/sh
# Runs a program of Postgres, which refuses to run as root: as-ordinary-user.sh PROGRAM ARGUMENT…
if [ "$(id -u)" = 0 ]; then
  # As `nobody`, with root's right to read and write all files, because the data folder is closed to others. Without `no_setuid_fixup`, access(2) would
  # ignore that right.
  exec setpriv --reuid=65534 --regid=65534 --clear-groups --securebits=+no_setuid_fixup \
    --inh-caps=+dac_override --ambient-caps=+dac_override "$@"
fi
# Only in a build: initdb also refuses a user without a name, who has the name of `nobody` in a user namespace.
id -un >/dev/null 2>&1 || exec unshare --user --map-user=65534 --map-group=65534 -- "$@"
exec "$@"
