#!/usr/bin/env bash
# Makes the images that stand in for those of Postgres, nginx and Prometheus, from Debian's packages.
#
# make-server-images.sh RECIPE POSTGRES_IMAGE NGINX_IMAGE PROMETHEUS_IMAGE
# shellcheck source=test/containers/base-image.sh
. "$(dirname "$0")/base-image.sh"
postgres_image=$2 nginx_image=$3 prometheus_image=$4
here=$(dirname "$0")

cp /etc/resolv.conf "$root/etc/"
# No program starts when its package is installed.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
quietly chroot "$root" sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends postgresql nginx-light prometheus'
install "$here/start-postgres.sh" "$root/usr/local/bin/start-postgres"
install "$here/nginx.sh" "$root/usr/local/bin/nginx"
import "$postgres_image" 'ENTRYPOINT ["start-postgres"]' 'CMD ["postgres"]' \
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
