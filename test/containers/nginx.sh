#!/bin/sh
# Debian's nginx is older than the image's, and looks for the addresses of its upstreams at its start only.
set -eu
for argument; do
  case $argument in
    *.conf) sed -i -e 's/ resolve max_fails=0/ max_fails=0/' "$argument" ;;
  esac
done
exec /usr/sbin/nginx "$@"
