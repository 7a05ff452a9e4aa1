#!/usr/bin/env bash
# Makes images that stand in for the base images where no registry of images can be reached: Debian with Node from npm, and
# Debian with its own Postgres, nginx and Prometheus. They have the names of the real ones, so that Dockerfile and
# docker-compose.yml are used unchanged. Needs root, debootstrap and podman.
#
# make-base-images.sh RECIPE NODE_PROGRAM NODE_IMAGE POSTGRES_IMAGE NGINX_IMAGE PROMETHEUS_IMAGE
#   RECIPE  what tells these images from those of an earlier version of this script
set -euo pipefail
recipe=$1 node=$2 node_image=$3 postgres_image=$4 nginx_image=$5 prometheus_image=$6
here=$(cd "$(dirname "$0")" && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

# import ROOT IMAGE [INSTRUCTION…]: the packages' own caches and manuals are left out, as in the real images.
import() {
  local root=$1 image=$2 changes=(--change "LABEL plant-store.stand-in=$recipe")
  shift 2
  for change in "$@"; do changes+=(--change "$change"); done
  tar -C "$root" --numeric-owner \
    --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' \
    --exclude='./usr/share/locale/*' --exclude='./var/log/*.log' --exclude='./var/log/apt' -c . |
    podman import --quiet "${changes[@]}" - "$image" >/dev/null
}

debootstrap --variant=minbase bookworm "$root" >"$work/log" || { cat "$work/log"; exit 1; }
cp -a "$root" "$work/services"

install "$node" "$root/usr/local/bin/node"
mkdir -p "$root/usr/local/lib/node_modules"
cp -a "$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")" "$root/usr/local/lib/node_modules/"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
ln -s ../lib/node_modules/npm/bin/npx-cli.js "$root/usr/local/bin/npx"
chroot "$root" useradd --create-home --shell /bin/bash --uid 1000 node
import "$root" "$node_image" 'CMD ["node"]'

root=$work/services
cp /etc/resolv.conf "$root/etc/"
# No program starts when its package is installed.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
chroot "$root" sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends postgresql nginx-light prometheus' >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
install "$here/start-postgres.sh" "$root/usr/local/bin/start-postgres"
install "$here/nginx.sh" "$root/usr/local/bin/nginx"
import "$root" "$postgres_image" 'ENTRYPOINT ["start-postgres"]' 'CMD ["postgres"]' \
  'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/15/bin'
podman build --quiet --pull=never --tag "$nginx_image" - >/dev/null <<END
FROM $postgres_image
ENTRYPOINT []
CMD ["nginx", "-g", "daemon off;"]
END
podman build --quiet --pull=never --tag "$prometheus_image" - >/dev/null <<END
FROM $postgres_image
USER nobody
ENTRYPOINT ["prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
CMD []
END
